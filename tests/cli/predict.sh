# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # run.sh's
# predict.sh - one prediction for one change: whichever command says it, and whoever ticks beside the work.

# predicts TRACE PERCENT STATE - by whatif, as a number.
predicts() {
	longpole whatif --json "$1" scale "$3=-$2%" | jq '.result.scenarios[0].best.predicted_speedup'
}

# agrees TRACE PERCENT STATE SPEEDUP WHO
agrees() {
	local by_whatif
	by_whatif=$(predicts "$1" "$2" "$3")
	awk -v a="$4" -v b="$by_whatif" 'BEGIN { exit !(a - b < 0.001 * b && b - a < 0.001 * b) }' ||
		fail "$1: scale '$3'=-$2%: $5 says $4, whatif $by_whatif"
}

# poles_agree TRACE - without the first pole, and without each state by itself.
poles_agree() {
	local state speedup
	longpole poles --json --states=6 "$1" >poles.json
	state=$(jq -r '.result.poles[0].state' poles.json)
	[[ $state == waiting* || $(jq '.result.poles | length' poles.json) -lt 2 ]] ||
		agrees "$1" 100 "$state" "$(jq '.result.poles[1].predicted_speedup' poles.json)" poles
	jq -r '.result as $r | $r.states[] | select(.drag_method) | [.state, $r.elapsed_ns / ([$r.elapsed_ns - .drag_ns, 1] | max)] | @tsv' poles.json >drags
	while IFS=$'\t' read -r state speedup; do
		agrees "$1" 100 "$state" "$speedup" 'the drag of poles'
	done <drags
}

# The report's table and poles say what whatif says, and no path gains more than its share.
same_answers() {
	local mode=$1 state percent speedup share
	longpole report --json "$mode.lpt" >"$mode.json"
	jq -r '.result.opportunities[] | select(.kind != "runnable") | [.state, .reduction_percent, .predicted_speedup, .share] | @tsv' "$mode.json" >rows
	[[ -s rows ]] || fail "$mode: the report predicts nothing"
	while IFS=$'\t' read -r state percent speedup share; do
		[[ $percent == 25 || $percent == 100 ]] || continue
		agrees "$mode.lpt" "$percent" "$state" "$speedup" report
		longpole whatif --method=path --json "$mode.lpt" scale "$state=-$percent%" |
			jq -e ".result.scenarios[0].predicted_speedup * (1 - $share * $percent / 100) < 1.001" >gain ||
			fail "$mode: $percent % of '$state', $share of the path, gains more than that"
	done <rows
	poles_agree "$mode.lpt"
}

test_predict_tickers() {
	local mode
	for mode in eventfd epoll signal cond sem child killed; do
		expect 0 longpole record -q -o $mode.lpt -- "$LONGPOLE_BUILD/tests/target/ticks" $mode
		awk -v x="$(predicts $mode.lpt 50 sleeping)" 'BEGIN { exit !(x > 1.7 && x < 2.1) }' ||
			fail "$mode: half the sleep: $(predicts $mode.lpt 50 sleeping) instead of nearly 2"
		same_answers $mode
	done
}

# Naps that the work needs are no ticks.
test_predict_naps() {
	expect 0 longpole record -q -o naps.lpt -- "$LONGPOLE_BUILD/tests/target/ticks" naps
	awk -v x="$(predicts naps.lpt 50 sleeping)" 'BEGIN { exit !(x < 1.1) }' ||
		fail "a twentieth of the path halved: $(predicts naps.lpt 50 sleeping)"
	same_answers naps
}

test_predict_same_answers() {
	cp "$trace" ladder.lpt
	same_answers ladder
}

# The lock that the path is spent under is named, with the numbers of `locks`.
test_predict_lock_of_report() {
	expect 0 longpole report --json "$trace"
	cp out report.json
	expect 0 longpole report "$trace"
	has out 'LOCK       mutex ladder_mutex: while it is held'
	expect 0 longpole locks --json "$trace"
	is_json report.json ".result.lock | .name == \"mutex ladder_mutex\" and .waits == $(jq '.result.locks[0].contended' out)
		and .path_share == $(jq '.result.locks[0].path_share' out)
		and .halved_hold_predicted_speedup == $(jq '.result.locks[0].halved_hold.predicted_speedup' out)"
}

# replayed TRACE [EDIT...] - processors that replay had, its own error, what the edit gains.
replayed() {
	longpole whatif --json "$1" "${@:2}" | jq -r '[.result.replay.processors, .result.replay.own_error_share, .result.scenarios[0].best.predicted_speedup, .result.scenarios[0].best.speedup_high] | @tsv'
}

# However a program's threads came to have one processor: replay gives them one. (What a mask leaves that
# the program set for itself stays where it is when the machine gets more.)
test_predict_processors() {
	local mode first nr
	first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	nr=$(nproc)
	((nr > 1)) || return 0
	expect 0 longpole record -q -o any.lpt -- taskset -c "$first" "$LONGPOLE_BUILD/tests/target/halves" any
	expect 0 taskset -c "$first" "$LONGPOLE" record -q -o outer.lpt -- "$LONGPOLE_BUILD/tests/target/halves" any
	for mode in any outer; do
		expect 0 longpole dump $mode.lpt
		grep -q "affinity whose=0 id=0 processors=[0-9]*($first)" out || fail "$mode: $(grep affinity out)"
		[[ $(replayed $mode.lpt add-processors +1 | cut -f 1) == 1 ]] || fail "$mode: replay on $(replayed $mode.lpt add-processors +1)"
	done
	for mode in self call; do
		expect 0 longpole record -q -o $mode.lpt -- "$LONGPOLE_BUILD/tests/target/halves" $mode
		[[ $(replayed $mode.lpt add-processors +1 | cut -f 1) == 1 ]] || fail "$mode: replay on $(replayed $mode.lpt add-processors +1)"
	done
	for mode in attr handle tid; do
		expect 0 longpole record -q -o $mode.lpt -- "$LONGPOLE_BUILD/tests/target/halves" $mode
		expect 0 longpole dump $mode.lpt
		(($(grep -c "affinity whose=[123] id=[1-9][0-9]* processors=[0-9]*($first)" out) == 2)) || fail "$mode: $(grep affinity out)"
		awk -v x="$(replayed $mode.lpt add-processors +1 | cut -f 3)" 'BEGIN { exit !(x < 1.25) }' ||
			fail "$mode: tied threads gain from a processor: $(replayed $mode.lpt add-processors +1)"
	done
}

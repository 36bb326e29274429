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
	for mode in eventfd epoll signal cond sem child killed group waitpid; do
		expect 0 longpole record -q -o $mode.lpt -- "$LONGPOLE_BUILD/tests/target/ticks" $mode
		awk -v x="$(predicts $mode.lpt 50 sleeping)" 'BEGIN { exit !(x > 1.7 && x < 2.1) }' ||
			fail "$mode: half the sleep: $(predicts $mode.lpt 50 sleeping) instead of nearly 2"
		same_answers $mode
	done
}

# A thread that joins one that sleeps again and again waits for the rest of one sleep, or for none
# that a signal breaks off.
test_predict_sleeping_tickers() {
	local mode
	for mode in sleep broken timerfd; do
		expect 0 longpole record -q -o $mode.lpt -- "$LONGPOLE_BUILD/tests/target/ticks" $mode
		awk -v x="$(predicts $mode.lpt 50 work)" 'BEGIN { exit !(x > 1.5 && x < 2.1) }' ||
			fail "$mode: half the sleep of work(): $(predicts $mode.lpt 50 work) instead of nearly 2"
	done
}

# Half as long a sleep is not over before a timer's signal ends it; without one, nothing is left.
test_predict_broken_sleeps() {
	expect 0 longpole record -q -o alarm.lpt -- "$LONGPOLE_BUILD/tests/target/ticks" alarm
	expect 0 longpole whatif --json alarm.lpt scale 'sleeping=-50%'
	is_json out '.result.scenarios[0].best.predicted_speedup | . > 0.95 and . < 1.05'
	expect 0 longpole whatif --json alarm.lpt scale 'sleeping=-99%'
	is_json out '.result.scenarios[0].best.predicted_speedup | . > 1.5'
	expect 0 longpole whatif alarm.lpt scale 'sleeping=-50%'
	grep -q 'of the path are waits that a time limit or a signal ended' out || fail 'that a signal ended the sleeps is not said'
}

# (On a busy machine the run is longer.) The interval has that nothing is gained, and 100 ms less.
reaches_100_ms='.result as $r | $r.scenarios[0].best | .predicted_speedup_low < 1.1 and .predicted_speedup_high > $r.elapsed_ns / ($r.elapsed_ns - 95e6)'

# A stopped thread waits for nobody that is known: the interval reaches as far as the change may,
# and no farther.
test_predict_unexplained() {
	expect 0 longpole record -q -o stopped.lpt -- "$LONGPOLE_BUILD/tests/target/ticks" stopped
	expect 0 longpole whatif --json stopped.lpt scale 'sleeping=-50%'
	is_json out "$reaches_100_ms"
	expect 0 longpole whatif --json stopped.lpt scale 'sleeping=-1%'
	is_json out '.result.scenarios[0].best.predicted_speedup_high < 1.2'
	expect 0 longpole whatif stopped.lpt scale 'sleeping=-50%'
	grep -q 'of the path are waits that no recorded event ended' out || fail 'what is not explained is not said'
}

# Between two looks it does something for as long as it looks: ticks or work, the interval has both.
test_predict_ticks_or_work() {
	expect 0 longpole record -q -o busy.lpt -- "$LONGPOLE_BUILD/tests/target/ticks" busy
	expect 0 longpole whatif --json busy.lpt scale 'sleeping=-50%'
	is_json out '.result.scenarios[0].best | .predicted_speedup_low < 1.7 and .predicted_speedup_high > 1.9'
}

# Naps that the work needs are no ticks.
test_predict_naps() {
	expect 0 longpole record -q -o naps.lpt -- "$LONGPOLE_BUILD/tests/target/ticks" naps
	awk -v x="$(predicts naps.lpt 50 sleeping)" 'BEGIN { exit !(x < 1.1) }' ||
		fail "a twentieth of the path halved: $(predicts naps.lpt 50 sleeping)"
	same_answers naps
}

# A thread that looks for a plain flag again and again waits for its setter: the interval reaches to
# that, and no farther.
test_predict_polls() {
	local mode
	for mode in polls limits; do
		expect 0 longpole record -q -o $mode.lpt -- "$LONGPOLE_BUILD/tests/target/ticks" $mode
		expect 0 longpole whatif --json $mode.lpt scale 'work=-50%'
		is_json out "$reaches_100_ms"
		is_json out '.result.polled_share > 0.5'
		expect 0 longpole whatif --json $mode.lpt scale 'work=-1%'
		is_json out '.result.scenarios[0].best.predicted_speedup_high < 1.2'
		expect 0 longpole whatif $mode.lpt scale 'work=-50%'
		grep -q 'may be polling: repeated short sleeps' out || fail "$mode: that it may be polling is not said"
	done
	expect 0 longpole record -q -o naps.lpt -- "$LONGPOLE_BUILD/tests/target/ticks" naps
	expect 0 longpole whatif --json naps.lpt scale 'main=-50%'
	is_json out '.result.scenarios[0].best.predicted_speedup_high < 1.25'
}

# What lasts until a timer's signal lasts as long with less work in it, of which it then does more.
test_predict_box() {
	expect 0 longpole record -q -o box.lpt -- "$LONGPOLE_BUILD/tests/target/ticks" box
	expect 0 longpole whatif --json box.lpt scale 'sleeping=-50%'
	is_json out '.result.box.ends_run and (.result.scenarios[0].best | .predicted_speedup < 1.2 and .throughput > 1.3)'
	expect 0 longpole whatif box.lpt scale 'sleeping=-50%'
	grep -q "a timer's signal ends the run" out || fail 'that the run lasts for a time is not said'
	grep -q 'in that time it does .* the work' out || fail 'what a change does instead is not said'
	longpole report box.lpt >out
	grep -q "a timer's signal ends the run" out || fail 'the report does not say that the run lasts for a time'
}

# So does what somebody outside ends.
test_predict_ended_from_outside() {
	longpole record -q -o ended.lpt -- sh -c 'while :; do sleep 0.05; done' &
	local recorder=$!
	sleep 1
	kill -TERM "$recorder"
	wait "$recorder" || true
	expect 0 longpole whatif --json ended.lpt scale 'sleeping=-50%'
	is_json out '.result.box.from_outside == 15 and (.result.scenarios[0].best | .predicted_speedup < 1.05 and .throughput > 1.3)'
	expect 0 longpole report ended.lpt
	grep -q 'the run was ended from outside (SIGTERM)' out || fail 'the report does not say that the run was ended'
	grep -q 'the work in the same time' out || fail 'the report does not say what a change does instead'
}

# Also when the program takes the signal and ends by itself; and what is recorded for a time lasts as long as that.
test_predict_ended_as_asked() {
	longpole record -q -o asked.lpt -- bash -c 'trap "exit 0" TERM; while :; do sleep 0.05; done' &
	local recorder=$!
	sleep 1
	kill -TERM "$recorder"
	wait "$recorder" || fail 'the program ended well, the recorder did not'
	expect 0 longpole whatif --json asked.lpt scale 'sleeping=-50%'
	is_json out '.result.box.from_outside == 15 and (.result.scenarios[0].best | .predicted_speedup < 1.05 and .throughput > 1.3)'
	# (who ends long after a signal does not end because of it)
	longpole record -q -o later.lpt -- bash -c 'trap "n=1" HUP; while [ $((n += 1)) -le 20 ]; do sleep 0.05; done' &
	recorder=$!
	sleep 0.5
	kill -HUP "$recorder"
	wait "$recorder" || fail 'the program that goes on after SIGHUP failed'
	expect 0 longpole whatif --json later.lpt scale 'sleeping=-50%'
	is_json out '.result.box == null'
}

# Records `asked`, and sends it SIGTERM after a while, past the recorder.
record_asked() {
	local trace=$1 how=$2 what=$3 recorder tries=100
	longpole record -q -o "$trace" -- "$LONGPOLE_BUILD/tests/target/asked" "$how" "$what" >pid &
	recorder=$!
	while [ ! -s pid ] && [ $((tries -= 1)) -gt 0 ]; do sleep 0.05; done
	sleep 1
	[ "$what" = self ] || kill -TERM "$(cat pid)"
	wait "$recorder" || fail "$how $what: the program ended well, the recorder did not"
	rm pid
}

# How a program takes a signal that came straight to it no record says: the interval has both.
test_predict_may_be_ended() {
	local how
	for how in poll pipe sleep; do
		record_asked may.lpt $how 0
		expect 0 longpole whatif --json may.lpt scale 'sleeping=-50%'
		is_json out '.result.box.from_outside == -2 and (.result.scenarios[0].best |
			.predicted_speedup > 1.3 and .predicted_speedup_low < 1 and .throughput == null)'
		expect 0 longpole report may.lpt
		grep -q 'a signal that no recorded program sent came just before the end' out ||
			fail "$how: that a signal may have ended the run is not said"
	done
	# (who goes on for long does not end because of it; nor is a recorded sender somebody outside)
	for how in 40 self; do
		record_asked not.lpt poll $how
		expect 0 longpole whatif --json not.lpt scale 'sleeping=-50%'
		is_json out '.result.box == null'
	done
}

test_predict_recorded_for_a_time() {
	bash -c 'while :; do sleep 0.05; done' &
	local program=$!
	expect 0 longpole record -q -o attached.lpt -p "$program" --for=1s
	kill "$program"
	expect 0 longpole report --json attached.lpt
	is_json out '.result.box.from_outside == -1 and .result.box.ends_run'
	expect 0 longpole report attached.lpt
	grep -q 'the recording ended while the program ran on' out || fail 'the report does not say that the program ran on'
	grep -q 'the work in the same time' out || fail 'the report does not say what a change does instead'
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
	has out 'The long pole is mutex ladder_mutex: '
	expect 0 longpole locks --json "$trace"
	is_json report.json ".result.lock | .name == \"mutex ladder_mutex\" and .waits == $(jq '.result.locks[0].contended' out)
		and .halved_hold_predicted_speedup == $(jq '.result.locks[0].halved_hold.predicted_speedup' out)"
}

# locks_agree TRACE - whatif says of each lock by its name what `locks` does, part of the path or not.
locks_agree() {
	local name gain
	longpole locks --json "$1" | jq -r '.result.locks[] | select(.halved_hold) | [.lock, .halved_hold.predicted_speedup] | @tsv' >gains
	[[ -s gains ]] || fail "$1: locks predicts nothing"
	while IFS=$'\t' read -r name gain; do
		agrees "$1" 50 "$name" "$gain" locks
	done <gains
}

# The same part of the path has the same share, whichever command says it: of the path without what is not the program's doing.
# shares_agree TRACE - adds to $nr_shares, and to $nr_locks those of locks.
shares_agree() {
	local number share name is_lock has_lock
	rm -f locks.json
	longpole report --json "$1" >report.json
	has_lock=$(jq 'any(.result.parts[]; .is_lock)' report.json)
	while IFS=$'\t' read -r number share name is_lock; do
		longpole whatif --json --method=path "$1" "#$number=-50%" >whatif.json
		is_json whatif.json ".result.scenarios[0].edits[0].path_share - $share | fabs < 1e-5"
		nr_shares=$((nr_shares + 1))
		[[ $is_lock == true ]] || continue
		[[ -s locks.json ]] || longpole locks --json "$1" >locks.json
		jq --arg name "$name" '.result.locks[] | select(.lock == $name)' locks.json >lock.json
		is_json lock.json ".path_share - $share | fabs < 1e-5"
		nr_locks=$((nr_locks + 1))
	done < <(jq -r '.result.parts[:2][] | [.number, .share, .name, .is_lock] | @tsv' report.json)
	[[ $has_lock == false ]] || return 0
	jq -e '.result.parts != []' report.json >/dev/null || return 0
	longpole poles --json "$1" >poles.json
	is_json poles.json ".result.poles[0].share - $(jq '.result.parts[0].share' report.json) | fabs < 1e-5"
}

test_predict_shares_agree() {
	local trace nr=0 nr_shares=0 nr_locks=0
	for trace in "$LONGPOLE_SOURCE"/tests/golden/screens/*.lpt; do
		cp "$trace" kept.lpt
		shares_agree kept.lpt
		nr=$((nr + 1))
	done
	((nr >= 20 && nr_shares > 30 && nr_locks >= 4)) || fail "$nr traces, $nr_shares shares, $nr_locks of locks"
}

test_predict_locks_that_are_no_part() {
	expect 0 longpole record -q -o prodcons.lpt -- "$LONGPOLE_BUILD/tests/target/prodcons"
	locks_agree prodcons.lpt
	locks_agree "$trace"
}

# A function that takes a hundred times as long adds that, and what it waited for its processor so
# much oftener: no more.
test_predict_slower() {
	local first held
	first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	expect 0 longpole record -q -o slower.lpt -- taskset -c "$first" "$LONGPOLE_BUILD/tests/target/lock_ladder"
	held=$(longpole locks --json slower.lpt | jq '.result.locks[0].hold.total_ns')
	expect 0 longpole whatif --json --method=replay slower.lpt scale "$(longpole locks --json slower.lpt | jq -r '.result.locks[0].lock')=x100"
	is_json out ".result as \$r | \$r.scenarios[0].best.predicted_speedup > \$r.elapsed_ns / (\$r.elapsed_ns + 99 * $held) / 1.5"
}

# replayed TRACE [EDIT...] - processors that replay had, its own error, what the edit gains.
replayed() {
	longpole whatif --json "$1" "${@:2}" | jq -r '[.result.replay.processors, .result.replay.own_error_share, .result.scenarios[0].best.predicted_speedup, .result.scenarios[0].best.predicted_speedup_high] | @tsv'
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
	# one more halves the run (with real-time priority, so that other programs are out of the way)
	if chrt -r 1 true 2>/dev/null; then
		expect 0 longpole record -q -o quiet.lpt -- chrt -r 1 taskset -c "$first" "$LONGPOLE_BUILD/tests/target/halves" any
		replayed quiet.lpt add-processors +1 | awk '{ exit !($1 == 1 && $2 < 0.05 && $2 > -0.05 && $3 > 1.7 && $3 < 2.1 && $4 > 1.9) }' ||
			fail "twice the work on one processor: $(replayed quiet.lpt add-processors +1)"
	fi
	for mode in attr handle tid; do
		expect 0 longpole record -q -o $mode.lpt -- "$LONGPOLE_BUILD/tests/target/halves" $mode
		expect 0 longpole dump $mode.lpt
		(($(grep -c "affinity whose=[123] id=[1-9][0-9]* processors=[0-9]*($first)" out) == 2)) || fail "$mode: $(grep affinity out)"
		awk -v x="$(replayed $mode.lpt add-processors +1 | cut -f 3)" 'BEGIN { exit !(x < 1.25) }' ||
			fail "$mode: tied threads gain from a processor: $(replayed $mode.lpt add-processors +1)"
	done
}

# control_group CONTROLLER - makes one of version 1, of the test's own, and prints its directory; fails where that cannot be done.
control_group() {
	local directory=/sys/fs/cgroup/$1/longpole-test-$$
	[[ -f /sys/fs/cgroup/$1/cgroup.procs ]] && mkdir "$directory" 2>/dev/null && echo "$directory"
}

# in_group DIRECTORY COMMAND... - in that control group.
in_group() {
	(echo "$BASHPID" >"$1/cgroup.procs" && exec "${@:2}")
}

# A quota of one and a half processors is recorded, said, and holds in the replay: two threads that compute gain nothing from
# another processor, and twice with half the work. (`halves` works as long on each of two threads.)
test_predict_quota() {
	local group
	(($(nproc) > 1)) || return 0
	as_root
	group=$(control_group cpu) || skip "no control group can be made here"
	echo 100000 >"$group/cpu.cfs_period_us"
	echo 150000 >"$group/cpu.cfs_quota_us"
	in_group "$group" "$LONGPOLE" record -q -o quota.lpt -- "$LONGPOLE_BUILD/tests/target/halves" any 300 || fail "no recording"
	rmdir "$group"
	expect 0 longpole dump -d quota.lpt
	has out 'quota_ns=150000000 period_ns=100000000'
	expect 0 longpole report quota.lpt
	has out 'its control group may use 1.5 processors'
	expect 0 longpole report --json quota.lpt
	is_json out '.trace.quota == {"quota_ns": 150000000, "period_ns": 100000000}'
	expect 0 longpole whatif quota.lpt add-processors +2
	has out 'its control group may use 1.5 processors'
	awk -v x="$(replayed quota.lpt add-processors +2 | cut -f 3)" 'BEGIN { exit !(x < 1.1) }' ||
		fail "processors beyond the quota: $(replayed quota.lpt add-processors +2)"
}

# A mask is recorded as the kernel took it: cut to the processors of the cpuset.
test_predict_cpuset() {
	local group first
	(($(nproc) > 1)) || return 0
	as_root
	group=$(control_group cpuset) || skip "no control group can be made here"
	first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	if echo "$first" >"$group/cpuset.cpus" && cat /sys/fs/cgroup/cpuset/cpuset.mems >"$group/cpuset.mems"; then
		in_group "$group" "$LONGPOLE" record -q -o cpuset.lpt -- taskset -c "0-$(($(nproc) - 1))" "$LONGPOLE_BUILD/tests/target/halves" tid ||
			fail "no recording"
		expect 0 longpole dump cpuset.lpt
		grep -q affinity out || fail "no mask"
		! grep affinity out | grep -v "($first)" || fail "more than the cpuset"
	fi
	rmdir "$group"
}

# law_abiding TRACE STATE SHARE - of one state of a real run: still less of it is never slower, nor gains a path more than its share;
# the report (report.json) says the same.
law_abiding() {
	local percent words=()
	for percent in 10 20 25 30 40 50 60 75 90 100; do
		words+=(scale "$2=-$percent%" --)
	done
	longpole whatif --json "$1" "${words[@]::${#words[@]}-1}" >asked.json || fail "$1: whatif of '$2'"
	jq -e --arg state "$2" --argjson share "$3" --slurpfile report report.json '
		[10, 20, 25, 30, 40, 50, 60, 75, 90, 100] as $percent
		| .result.scenarios
		| ([.[].best.predicted_speedup] | . == sort and .[0] >= 1)
		and ([.[].predicted_speedup] | . == sort)
		and ([.[].best | .predicted_speedup_low <= .predicted_speedup and .predicted_speedup <= .predicted_speedup_high] | all)
		and ([range(10) as $i | .[$i].predicted_speedup * (1 - $share * $percent[$i] / 100) < 1.001] | all)
		and ([.[].best.predicted_speedup] as $best | $report[0].result.opportunities
			| [.[] | select(.state == $state) | .predicted_speedup / $best[.reduction_percent as $p | $percent | index($p)]
				| . > 0.999 and . < 1.001] | all)' asked.json >law ||
		fail "$1: '$2': $(jq -c '[.result.scenarios[] | .predicted_speedup, .best.predicted_speedup]' asked.json)"
}

# law_trace TRACE
law_trace() {
	local state share
	expect 0 longpole report --json "$1"
	cp out report.json
	jq -r '[.result.opportunities[] | select(.reduction_percent == 50 and .kind != "runnable")] | sort_by(-.share)[:2][] | [.state, .share] | @tsv' out >states
	while IFS=$'\t' read -r state share; do
		law_abiding "$1" "$state" "$share"
	done <states
}

# law_run PROGRAM ARGUMENTS...
law_run() {
	expect 0 longpole record -q -o "$1.lpt" -- "$LONGPOLE_BUILD/tests/target/$1" "${@:2}"
	law_trace "$1.lpt"
}

test_predict_laws() {
	local n
	for n in 2 3 4; do
		law_run lock_ladder --rounds=200 --threads=$n
		law_run lock_ladder --rounds=150 --threads=$n --section-units=40
		law_run barrier --phases=40 --threads=$n
		law_run rwlock --rounds=150 --threads=$n
		law_run rwlock --rounds=80 --dominant=reader --threads=$n
		law_run workqueue --items=150 --workers=$n
		law_run workqueue --items=150 --workers=$n --bottleneck=generator
		law_run forkjoin --rounds=4 --workers=$n
	done
	law_run prodcons --items=150
	law_run prodcons --items=150 --fast-units=200
	law_run sem_pipeline --items=150
	law_run pipeline --blocks=150
	law_run pingpong --rounds=100
	law_run messages --items=100
	law_run annotated --items=150
	for n in 0 2 5; do
		law_run bounded --built=$n
	done
}

# The same of traces that are kept: real programs, and runs that once broke a law.
test_predict_laws_of_kept() {
	local trace nr=0
	for trace in "$LONGPOLE_SOURCE"/tests/golden/{screens,laws}/*.lpt; do
		cp "$trace" kept.lpt
		law_trace kept.lpt
		[[ ! -s states ]] || nr=$((nr + 1))
	done
	((nr > 10)) || fail "$nr traces have a state to shorten"
}

# A thread that waits without a call is said to, and no prediction is sure of the opposite. Loops as
# tight that do work are not. MODE FUNCTION [WORD]
test_predict_spins() {
	local mode function word
	while read -r mode function word; do
		# (on a busy machine the two may never run at the same time)
		for _ in 1 2 3 4; do
			expect 0 longpole record -q -o spins.lpt -- "$LONGPOLE_BUILD/tests/target/spins" "$mode"
			expect 0 longpole report --json spins.lpt
			jq -e '.result.spins != []' out >/dev/null && break
		done
		is_json out ".result.spins | length == 1 and .[0].function == \"$function\" and .[0].word == \"$word\" and .[0].spun_ns > 1000000"
	done <<-END
		flag await_flag ready
		pause await_pause ready
		cas take_cas lock
		tas take_tas lock
		ttas take_ttas lock
		backoff take_backoff
		seqlock seqlock_read
		ring ring_take ring.head
		barrier meet generation
	END
	for mode in hash sum matrix clear delay chase; do
		expect 0 longpole record -q -o work.lpt -- "$LONGPOLE_BUILD/tests/target/spins" "$mode"
		expect 0 longpole report --json work.lpt
		is_json out '.result.spins == []'
	done
}

# The producer at half its work: the run takes half as long, and the interval says that it may.
test_predict_spins_are_waits() {
	expect 0 longpole record -q -o spins.lpt -- "$LONGPOLE_BUILD/tests/target/spins" flag
	expect 0 longpole whatif spins.lpt scale produce=-50%
	has out 'may be spinning'
	has out 'longpole spin'
	expect 0 longpole whatif --json spins.lpt scale produce=-50%
	is_json out '.result.scenarios[0].best | .predicted_speedup_high > 1.7 and .predicted_speedup_low <= .predicted_speedup'
	# (chance says how much of the path who waits has, and whether any)
	for _ in {1..20}; do
		expect 0 longpole report spins.lpt
		grep -q '^ *#[12] .*await_flag' out && break
		expect 0 longpole record -q -o spins.lpt -- "$LONGPOLE_BUILD/tests/target/spins" flag
	done
	has out 'await_flag may only be spinning on ready'
	! grep -q 'The long pole is computing in await_flag' out || has out 'it may only be spinning'
}

# Waits for locks that were only counted are somewhere in what runs: less of that may gain less, or more, than it says.
test_predict_counted_locks() {
	local width
	expect 0 longpole record -q --locks=count -o count.lpt "$LONGPOLE_BUILD/tests/target/counted_waits"
	expect 0 longpole whatif --json count.lpt scale waiter=-50%
	width=$(jq '.result.scenarios[0].best | .predicted_speedup_high / .predicted_speedup_low' out)
	jq -en "$width > 1.25" >/dev/null || fail "an interval of $width"
}

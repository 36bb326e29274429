# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $trace comes from run.sh
# top.sh - windows one after the other say what a report of each, and of all, says.

# states FILE FILTER - [[state, path_ns], ...] of a report, states of one name together, without those of no length
report_states() {
	jq -c '[.result.path | group_by(.state)[] | {state: .[0].state, ns: (map(.path_ns) | add)} | select(.ns > 0)] | sort_by(.state)' "$1"
}
top_states() { # of all lines together
	jq -s -c '[map(.states[]) | group_by(.state)[] | {state: .[0].state, ns: (map(.path_ns) | add)} | select(.ns > 0)] | sort_by(.state)' "$1"
}
# same FILE FILE WHY - the same states, each as long but for rounding
same() {
	jq -e -n --slurpfile a "$1" --slurpfile b "$2" '($a[0] | map(.state)) == ($b[0] | map(.state)) and
		all(range($a[0] | length); ($a[0][.].ns - $b[0][.].ns) | fabs < 1000)' >/dev/null ||
		{ cat "$1" "$2" >&2; fail "$3"; }
}

test_top_windows_sum_to_the_run() {
	expect 0 longpole top --json --limit=0 --interval=7ms "$trace"
	mv out windows
	expect 0 longpole report --json "$trace"
	report_states out >whole
	top_states windows >sum
	same whole sum "the windows' states do not sum to the run's"
	[[ $(jq -s 'map(.path_ns) | add' windows) == "$(jq .result.elapsed_ns out)" ]] || fail "the windows are not as long as the run"
	# the program may start late
	jq -e -s 'length > 2 and all(.schema == "longpole/top/1" and .to_the_end) and map(.window) == [range(length)] and
		(.[(map(.paths) | index(1)):] | all(.paths == 1))' windows >/dev/null || fail "not one line after the other"
}

# windows_are_reports TRACE INTERVAL - the first ones that have a path, after the one in which the program starts: a report's path
# begins with the program, in a row of windows it begins with what led to it
windows_are_reports() {
	local from to line start nr=0
	expect 0 longpole report --json "$1"
	start=$(jq .result.start_ns out)
	expect 0 longpole top --json --limit=0 --interval="$2" "$1"
	mv out windows
	while read -r line; do
		from=$(jq .from_ns <<<"$line") to=$(jq .to_ns <<<"$line")
		expect 0 longpole report --json --from="${from}ns" --to="${to}ns" "$1"
		jq -c '[.result.path[] | select(.path_ns > 0)] | group_by(.kind) | map([.[0].kind, (map(.path_ns) | add)])' out >whole
		jq -c '[.states[] | select(.path_ns > 0)] | group_by(.kind) | map([.[0].kind, (map(.path_ns) | add)])' <<<"$line" >window
		cmp -s whole window || { cat whole window >&2; fail "window $from to $to is not its report"; }
		nr=$((nr + 1))
	done < <(jq -c "select(.paths == 1 and .from_ns >= $start)" windows | head -n 4)
	((nr >= 2)) || fail "only $nr windows"
}
test_top_window_is_its_report() { windows_are_reports "$trace" 20ms; }
test_top_window_of_a_system_is_its_report() {
	longpole record -q --system -o system.lpt -- ladder >out 2>err || skip "record --system: $(head -n 1 err)"
	windows_are_reports system.lpt 100ms
	expect 0 longpole report --json system.lpt
	jq -e -s --argjson run "$(jq .result.elapsed_ns out)" '(map(.path_ns) | add) >= $run' windows >/dev/null ||
		fail "the windows do not cover the run"
}

test_top_merge() {
	expect 0 longpole top --json --limit=0 --interval=20ms "$trace"
	sed 's/"host":"[^"]*"/"host":"web1"/' out >web1
	sed 's/web1/web2/' web1 >web2
	expect 0 longpole top --merge --json --limit=0 web1 web2
	is_json out '.schema == "longpole/top-merge/1" and .hosts == ["web1", "web2"]'
	[[ $(jq .path_ns out) == $(jq -s 'map(.path_ns) | add' web1 web2) ]] || fail "not as long as its parts"
	[[ $(jq '[.states[].path_ns] | add' out) == $(jq -s '[.[].states[].path_ns] | add' web1 web2) ]] || fail "states are missing"
	[[ $(jq '.states | map([.state, .process, .kind]) | length - (unique | length)' out) == 0 ]] || fail "one state, two rows"
	expect 0 longpole top --merge web1 web2
	has out '2 hosts' ' of 2)' 'STATES' 'PROCESSES'
	echo '{"schema": "another"}' >other
	expect 3 longpole top --merge web1 other
	has err 'other, line 1'
	expect 2 longpole top --merge
}

test_top_program() {
	expect 0 longpole top --interval=50ms --limit=0 --json -o windows -- ladder
	[[ -s out ]] || fail "the program's own output is not there"
	jq -e -s 'length > 1 and ([.[].states[] | select(.state == "holding mutex ladder_mutex")] | length > 1)' windows >/dev/null ||
		{ cat windows err >&2; fail "no window, or not of this program"; }
	expect 3 longpole top --count=1 -- sh -c 'exit 3'
	expect 2 longpole top "$trace" "$trace"
	expect 2 longpole top --interval=0s "$trace"
}

test_top_count_and_text() {
	expect 0 longpole top --interval=10ms --count=2 --limit=2 "$trace"
	[[ $(grep -c ' window ' out) == 2 && $(grep -c ' window [01]: ' out) == 2 ]] || { cat out >&2; fail "not two windows"; }
	# (these may be before the program's start)
	expect 0 longpole top --interval=10ms --limit=2 "$trace"
	grep -q '^  share .*STATES' out || { cat out >&2; fail "no states"; }
	expect 0 longpole top --interval=10ms --process='no-such-*' --json "$trace"
	is_json <(head -n 1 out) '.paths == 0 and .states == []'
	expect 0 longpole top --interval=10ms -p 'ladd*' --json "$trace" # as it was called
	cp out old
	has err '--process=ladd'
	expect 0 longpole top --interval=10ms --process='ladd*' --json "$trace"
	cmp old out || fail "-p NAME is not --process"
	jq -e -s 'any(.paths > 0)' out >/dev/null || fail "no paths of the process named"
	expect 2 longpole top -p 1 --process=x "$trace"
	has err 'one of them'
	expect 2 longpole report -p 1 "$trace"
	has err "unknown option '-p'" '--process'
	expect 2 longpole stat -p 1
	has err "'longpole top'"
}

# top_shows TEXT - waits until `out` has it, 20 s at most.
top_shows() {
	local i
	for ((i = 0; i < 200; i++)); do
		! grep -q "$1" out || return 0
		sleep 0.1
	done
}

# Keys on a terminal: another order from the next window on, a pause, the end.
test_top_keys() {
	as_root
	command -v script >/dev/null || skip "no script(1) for a terminal"
	# (of the whole system: that program is what goes on meanwhile)
	ladder --rounds=100000 >/dev/null &
	local load=$! before=$SECONDS result=0
	: >out
	(top_shows 'by path'; printf w; top_shows 'by waiting'; printf ' '; top_shows paused; printf ' '; sleep 0.7; printf q; sleep 5) |
		TERM=xterm timeout 50 script -qec "longpole top --interval=200ms" /dev/null >out || result=$?
	kill "$load" 2>/dev/null
	((result == 0 && SECONDS - before < 45)) || fail "q: exit status $result after $((SECONDS - before)) s: $(tail -n 3 out)"
	grep -q 'by path .*q quit, space pause' out || fail "no keys are shown"
	grep -q 'by waiting' out || fail "w is no order"
	grep -q 'paused; space goes on' out || fail "space is no pause"
}

# most_rows COLUMNS - of any window in `out`, as a screen of so many columns shows it
most_rows() {
	python3 -c 'import re, sys
text = open("out").read().replace("\r", "")
windows = [re.sub("\033\\[[0-9;]*m", "", w) for w in text.split("\033[H\033[J")[1:]]
print(max(sum(max(1, -(-len(line) // int(sys.argv[1]))) for line in w.rstrip("\n").split("\n")) for w in windows))' "$1"
}

# A window fits the screen, also one that became smaller.
test_top_fits_the_screen() {
	command -v script >/dev/null || skip "no script(1) for a terminal"
	local rows most
	unset COLUMNS LINES
	for rows in 24 14; do
		TERM=xterm script -qec "stty rows $rows cols 80; longpole top --limit=0 --interval=20ms '$trace'" /dev/null >out
		most=$(most_rows 80)
		((most < rows && most > rows / 2)) || fail "$most rows of a screen that has $rows"
	done
	TERM=xterm script -qec "stty rows 40 cols 80
		(sleep 0.8; stty rows 14 <&3) 3</dev/tty & longpole top --count=8 --limit=0 --interval=200ms -o /dev/tty -- ladder --rounds=3000" /dev/null >out
	sed -i '1,/window 5:/d' out
	most=$(most_rows 80)
	((most < 14)) || fail "$most rows after the screen became smaller"
}

# Columns are dropped by rank; what is no width is none.
test_queues_fit_the_width() {
	local columns
	for columns in 60 80 120; do
		COLUMNS=$columns expect 0 longpole queues --all "$trace"
		(($(wc -L <out) <= columns)) || fail "$(wc -L <out) columns of $columns"
		has out 'waited for data' 'mutex ladder_mutex'
	done
	has out 'units/s'
	mv out wide
	COLUMNS=-5 expect 0 longpole queues --all "$trace"
	cmp out wide || fail "a negative width is a width"
}

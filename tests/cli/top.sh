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
	jq -e -s 'length > 2 and all(.schema == "longpole/top/1" and .to_the_end and .paths == 1) and
		map(.window) == [range(length)]' windows >/dev/null || fail "not one line after the other"
}

test_top_window_is_its_report() {
	local from to line nr=0
	expect 0 longpole top --json --limit=0 --interval=20ms "$trace"
	mv out windows
	while read -r line; do
		from=$(jq .from_ns <<<"$line") to=$(jq .to_ns <<<"$line")
		expect 0 longpole report --json --from="${from}ns" --to="${to}ns" "$trace"
		jq -c '[.result.path[] | select(.path_ns > 0)] | group_by(.kind) | map([.[0].kind, (map(.path_ns) | add)])' out >whole
		jq -c '[.states[] | select(.path_ns > 0)] | group_by(.kind) | map([.[0].kind, (map(.path_ns) | add)])' <<<"$line" >window
		cmp -s whole window || { cat whole window >&2; fail "window $from to $to is not its report"; }
		nr=$((nr + 1))
	done < <(head -n 4 windows)
	((nr >= 2)) || fail "only $nr windows"
}

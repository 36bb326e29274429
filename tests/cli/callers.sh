# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # variables come from run.sh
# callers.sh - samples have stacks: who called the function that ran, without frame pointers.

# sampled_callers - a trace of tests/target/callers in $work/callers.lpt, made once.
sampled_callers() {
	[[ -s $work/callers.lpt ]] || expect 0 longpole record -q -o "$work/callers.lpt" "$LONGPOLE_BUILD/tests/target/callers"
	longpole dump -k sample "$work/callers.lpt" | grep -w leaf >samples || skip "this kernel gave no samples"
	[[ $(uname -m) == x86_64 ]] || skip "callers are found by frame pointers here"
}

# No leaf is without its caller, and each chain goes on to the thread's begin.
test_callers_are_never_lost() {
	sampled_callers
	grep -vE 'stack=[0-9]+\((heavy|light|descend) .*< work .*(start_thread|clone)' samples && fail "a caller is lost"
	grep -E '(descend [^<]*< ){13}work' samples >/dev/null || fail "nothing comes from as deep as it is"
}

# How often each is the caller is what the program does: 60, 20, 20 %, within five standard deviations.
test_callers_are_counted() {
	sampled_callers
	awk '{n++; for (f in want) if ($0 ~ "\\(" f " \\(") seen[f]++}
		BEGIN {want["heavy"] = .6; want["light"] = .2; want["descend"] = .2}
		END {for (f in want) {p = want[f]; d = seen[f] / n - p
			if (d * d > 25 * p * (1 - p) / n) {print f, seen[f], "of", n; bad = 1}} exit bad}' \
		<(sed 's/.*stack=[0-9]*\(([a-z]* (\).*/\1/' samples) >&2 || fail "shares of the callers"
}

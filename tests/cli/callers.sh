# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # variables come from run.sh
# callers.sh - samples have stacks: who called the function that ran, without frame pointers.

# sampled_callers - a trace of tests/target/callers in $work/callers.lpt, made once.
sampled_callers() {
	once "$work/callers.lpt" expect 0 longpole record -q -o "$work/callers.lpt" "$LONGPOLE_BUILD/tests/target/callers" || exit
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

# path_share_of FUNCTION [OPTION...] - in $share: of the critical path, as whatif says.
path_share_of() {
	local function=$1
	shift
	expect 0 longpole whatif "$@" --json "$work/callers.lpt" scale "$function=-50%"
	share=$(jq '.result.scenarios[0].edits[0].path_share' out)
}

# A function is scaled with all that it calls; --self leaves that out. (Of what the path has of all of it: others use processors, too.)
test_callers_in_what_if() {
	sampled_callers
	local share all name least most
	path_share_of work
	all=$share
	while read -r name least most; do
		path_share_of "$name"
		awk -v s="$share" -v all="$all" -v lo="$least" -v hi="$most" 'BEGIN {exit !(s >= lo * all && s <= hi * all)}' ||
			fail "$name is $share of the path, all of it $all"
	done <<-END
		heavy 0.50 0.70
		light 0.12 0.28
		leaf 0.95 1.01
	END
	path_share_of leaf --self
	awk -v s="$share" -v all="$all" 'BEGIN {exit !(s >= 0.9 * all)}' || fail "leaf itself is $share of the path"
	longpole whatif --self "$work/callers.lpt" scale heavy=-50% >out 2>err && fail "heavy runs nothing itself"
	grep -q 'no state, place or sampled function' err || fail "another reason: $(<err)"
}

# every_profile DIRECTORY - the exports that have samples.
every_profile() {
	expect 0 longpole export -q -f speedscope -o "$1/speedscope.json" "$work/callers.lpt"
	expect 0 longpole export -q -f firefox -o "$1/firefox.json" "$work/callers.lpt"
	expect 0 longpole export -q -f pprof --weight=cpu -o "$1/pprof.pb.gz" "$work/callers.lpt"
}

# All exports say the same of a function with all that it calls.
test_callers_in_exports() {
	sampled_callers
	every_profile .
	"$LONGPOLE_SOURCE/tests/cli/inclusive.py" speedscope.json firefox.json pprof.pb.gz >out 2>err || fail "$(<err)"
	awk '{share[$2] = $1} END {exit !(share["work"] > .9 && share["leaf"] > .9 && share["heavy"] > .45 && share["heavy"] < .75)}' out ||
		{ cat out >&2; fail "shares"; }
	expect 0 longpole export -q -f collapsed --weight=cpu -o a.txt "$work/callers.lpt"
	grep -Eq '^callers;.*work;descend;.*descend;leaf [0-9]+$' a.txt || fail "collapsed: no callers"
	expect 0 longpole export -q -f collapsed -o a.txt "$work/callers.lpt"
	grep -Eq ';running [^;]*;work;heavy;leaf [0-9]+$' a.txt || { cat a.txt >&2; fail "collapsed by the path: no callers"; }
	expect 2 longpole export -f pprof --weight=cpu --thread=x "$work/callers.lpt"
}

# And what perf says.
test_callers_like_perf() {
	sampled_callers
	perf record -q -F 999 -e cpu-clock:u --call-graph dwarf,8192 -o perf.data "$LONGPOLE_BUILD/tests/target/callers" >/dev/null 2>&1 ||
		skip "no perf (Debian package linux-perf), or it may not sample"
	perf report -i perf.data --children --stdio -g none -F overhead_children,symbol >perf.txt 2>/dev/null || skip "perf cannot report"
	every_profile .
	"$LONGPOLE_SOURCE/tests/cli/inclusive.py" perf.txt speedscope.json firefox.json pprof.pb.gz >out 2>err || { cat out >&2; fail "$(<err)"; }
}

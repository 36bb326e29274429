#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...] - exact counts: what `longpole locks` says a program took is what the program itself counted.
# Each of count.c's ways of locking, and C++'s, is recorded in tables (sampled, holds) and as single records (stamps).
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
build=${LONGPOLE_BUILD:-$(readlink -f "$here/../../build")}
longpole=${LONGPOLE:-$build/src/cmd/longpole}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ulimit -c 0
cd "$scratch" || exit 1

say() { printf '%s\n' "$*"; }
"${CC:-cc}" -O2 -g -D_GNU_SOURCE -pthread -I"$here" "$here/count.c" -o count -ldl &&
	"${CC:-cc}" -O2 -g -D_GNU_SOURCE -pthread -fPIC -shared -I"$here" "$here/late.c" -o count.so || {
	say "not ok build: count.c does not compile"
	exit 1
}

# check NAME COMMAND... - in these modes.
check() {
	local name=$1 mode got want lost
	shift
	for mode in sampled holds stamps; do
		if ! timeout 60 "$longpole" record -q --sample-hz=0 --no-switches --locks=$mode -o trace.lpt -- "$@" >out 2>err </dev/null; then
			cat err >&2
			say "not ok $name/$mode: exit status of the program"
			continue
		fi
		want=$(tail -n 1 out)
		"$longpole" locks --json --no-replay trace.lpt >locks.json 2>>err
		got=$(jq '([.result.locks[] | select(.type != "once") | .acquisitions] | add // 0) + (.result.table_full_acquisitions // 0)' locks.json)
		lost=$(jq '[.diagnostics[] | select(.name == "records_lost" or .name == "nested_dropped") | .count] | add // 0' locks.json)
		if ((lost > 0 && got <= want && got + lost >= want)); then
			say "ok $name/$mode" # what is missing was said to be lost
		elif [[ $got == "$want" && -n $want ]]; then
			say "ok $name/$mode"
		else
			cat err >&2
			say "not ok $name/$mode: $got instead of $want acquisitions"
		fi
	done
}

for name in $(./count list); do
	(($# == 0)) || [[ " $* " == *" $name "* ]] || continue
	check "$name" ./count "$name"
done
if (($# == 0)) || [[ " $* " == *" cxx "* ]]; then
	if "${CXX:-c++}" -std=gnu++17 -O2 -g -pthread -I"$here" "$here/cxx.cc" -o cxx 2>/dev/null; then
		check cxx ./cxx
	else
		say "skip cxx: no C++ compiler"
	fi
fi
for compiler in gcc clang-14; do
	name=omp-$compiler
	(($# == 0)) || [[ " $* " == *" omp "* || " $* " == *" $name "* ]] || continue
	if "$compiler" -O2 -g -w -fopenmp "$here/omp.c" -o omp 2>/dev/null; then
		check "$name" ./omp
		OMP_WAIT_POLICY=passive check "$name-passive" ./omp # its threads sleep: their mutexes are not the program's
	else
		say "skip $name: no $compiler with OpenMP"
	fi
done

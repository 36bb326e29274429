#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...] - programs that do to a recorder what it fears most: output and exit status must stay what they are without it.
# Each runs bare, under the library without a ring, with one, with one that is full at once, and, when LONGPOLE names a longpole, under `record` and `stat`.
# What a program's first comment asks of the ring: `expect: KIND COUNT`; `needs: root`; `broken: allowed`; `counted: not`, with tables.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
source_dir=$(readlink -f "$here/../../..")
build=${LONGPOLE_BUILD:-$source_dir/build}
library=${LONGPOLE_PRELOAD:-$build/src/preload/liblongpole-preload.so}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
readonly limit_s=60

say() { printf '%s\n' "$*"; }
[[ -f $library ]] || {
	say "not ok build: no $library"
	exit 1
}
"${CC:-cc}" -O2 -D_GNU_SOURCE -I"$source_dir/src" "$here/../ring_cat.c" -o "$scratch/ring_cat" || {
	say "not ok build: ring_cat does not compile"
	exit 1
}

# run_as NAME COMMAND... - output and status to files.
run_as() {
	local name=$1
	shift
	(cd "$scratch" && timeout -k 5 "$limit_s" "$@" >"$name.out" 2>"$name.err" </dev/null)
	say $? >"$scratch/$name.status"
}

# differs NAME - says how a run differs from the bare one.
differs() {
	cmp -s "$scratch/bare.out" "$scratch/$1.out" || say "$1: output differs"
	cmp -s "$scratch/bare.status" "$scratch/$1.status" ||
		say "$1: exit status $(<"$scratch/$1.status") instead of $(<"$scratch/bare.status")"
}

# expectations FILE - of the source's comment that the counts do not meet.
expectations() {
	local kind want
	while read -r kind want; do
		grep -qx "$kind $want" "$scratch/counts" ||
			say "ring: $kind is $(sed -n "s/^$kind //p" "$scratch/counts"), not $want"
	done < <(grep -o 'expect: [a-zA-Z_]* [0-9]*' "$1" | cut -d' ' -f2-)
	if ! grep -q 'broken: allowed' "$1" && grep -q '^ring_cat:' "$scratch/ring.err"; then
		say "$(grep -m1 '^ring_cat:' "$scratch/ring.err")"
	fi
}

check() {
	local file=$1 name why compiler=("${CC:-cc}" -std=gnu17)
	name=$(basename "${file%.*}")
	[[ $file != *.cc ]] || compiler=("${CXX:-c++}" -std=gnu++17)
	if [[ $file == *.cc ]] && ! command -v "${compiler[0]}" >/dev/null; then
		say "skip $name: no C++ compiler"
		return
	fi
	if grep -q 'needs: root' "$file" && ((EUID != 0)); then
		say "skip $name: needs root"
		return
	fi
	if ! "${compiler[@]}" -O2 -g -w -D_GNU_SOURCE -pthread "$file" -o "$scratch/$name" -ldl; then
		say "not ok $name: does not compile"
		return
	fi
	run_as bare "./$name"
	run_as unrecorded env LD_PRELOAD="$library" "./$name"
	run_as ring ./ring_cat -c -b 2048 -o "$scratch/counts" "$library" "./$name"
	run_as full ./ring_cat -c -k -b 1 -o /dev/null "$library" "./$name"
	if grep -q 'broken: allowed' "$file" && [[ $(<"$scratch/ring.status") == 99 ]]; then
		cp "$scratch/bare.status" "$scratch/ring.status"
		cp "$scratch/bare.status" "$scratch/full.status"
	fi
	why=$(differs unrecorded; differs ring; differs full; expectations "$file")
	if [[ -n ${LONGPOLE:-} && -x $LONGPOLE ]]; then
		run_as longpole "$LONGPOLE" record --heap -o "$scratch/trace.lpt" -- "./$name"
		why+=$(differs longpole)
		run_as stat "$LONGPOLE" stat -o "$scratch/stat.txt" -- "./$name"
		why+=$(differs stat)
	fi
	if [[ -n ${LONGPOLE:-} && -x $LONGPOLE ]] && ! grep -q 'counted: not' "$file"; then
		run_as counted "$LONGPOLE" record --heap --locks=sampled -o "$scratch/trace.lpt" -- "./$name"
		why+=$(differs counted)
		run_as called "$LONGPOLE" calls -q -k -o "$scratch/trace.lpt" -- "./$name"
		why+=$(differs called)
	fi
	[[ -z $why ]] && say "ok $name" || say "not ok $name: ${why//$'\n'/; }"
}

for file in "$here"/*.c "$here"/*.cc; do
	name=$(basename "${file%.*}")
	if (($# == 0)) || [[ " $* " == *" $name "* ]]; then
		check "$file"
	fi
done

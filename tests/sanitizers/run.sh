#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...] - programs that stand before or behind us in the loader's order: builds with sanitizers, with functions of glibc's
# inner names, with a preloaded library of the user's. Each behaves under each command as it does alone.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${LONGPOLE_BUILD:=$here/../../build}"
: "${LONGPOLE:=$LONGPOLE_BUILD/src/cmd/longpole}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 2

# NAME COMPILER OPTIONS...
builds='gcc_asan gcc -fsanitize=address
gcc_tsan gcc -fsanitize=thread
gcc_asan_static gcc -fsanitize=address -static-libasan
gcc_tsan_static gcc -fsanitize=thread -static-libtsan
gcc_ubsan gcc -fsanitize=undefined
gcc_lsan gcc -fsanitize=leak
clang_asan clang-14 -fsanitize=address
clang_asan_shared clang-14 -fsanitize=address -shared-libasan -Wl,-rpath,RUNTIME
clang_tsan clang-14 -fsanitize=thread
clang_msan clang-14 -fsanitize=memory
clang_ubsan clang-14 -fsanitize=undefined
clang_lsan clang-14 -fsanitize=leak'
commands='record -q -o t.lpt --
record -q --heap -o h.lpt --
locks -q -o l.lpt --
locks -q --mode=stamps -o s.lpt --
stat -o /dev/null --'
runtime=$(clang-14 -print-runtime-dir 2>/dev/null)

same() { # PROGRAM - as alone, under each command
	local command status
	timeout 60 "$1" >alone 2>alone.err || { echo "exit status $? alone"; return; }
	while read -r command; do
		status=0
		# shellcheck disable=SC2086 # a command and its options
		timeout 60 "$LONGPOLE" $command "$1" >out 2>err </dev/null || status=$?
		((!status)) || printf '%s: exit status %s: %s\n' "${command%% *}" "$status" "$(grep -m1 -E 'SUMMARY|does not|error' err)"
		grep -qxF "$(cat alone)" out || printf '%s: says something else\n' "$command"
		! grep -m1 -E 'Sanitizer|ld\.so' err
	done <<<"$commands"
}
# Counting calls is refused before the start, with the reason.
refused() { # COMMAND PROGRAM
	! "$LONGPOLE" "$1" -q -o c.lpt -- "$2" >out 2>err || echo "$1: not refused"
	[[ ! -s out ]] || echo "$1: the program ran"
	grep -q 'was built with .*Sanitizer' err || echo "$1: does not say why"
}
# A program that it executes runs as alone, without our libraries, and is told; so do later ones,
# counted.
left_out() { # PROGRAM
	local way
	printf '#!%s\n' "$PWD/${1#./}" >script
	chmod +x script
	for way in "$1; true" "sh -c '$1; true'; true" "./script; true" "env $1" "PATH=. exec ${1#./}"; do
		"$LONGPOLE" calls -q -o c.lpt -- sh -c "$way" >out 2>err || echo "calls sh -c '$way': exit status $?"
		grep -qxF "$(cat alone)" out || echo "calls sh -c '$way': says something else"
		"$LONGPOLE" calls c.lpt 2>/dev/null | grep -q '1 program ran without being recorded' || echo "calls sh -c '$way': not told"
	done
	refused calls ./script
}
recorded() { # the locks of a build are records, as many as it makes
	local nr
	nr=$("$LONGPOLE" dump "${1:-t.lpt}" | grep -c ' lock_acquire ')
	((nr >= 2000)) || echo "only $nr locks are recorded"
}
result() {
	if [[ -z $2 ]]; then printf 'ok %s\n' "$1"; else printf 'not ok %s: %s\n' "$1" "${2//$'\n'/; }"; fi
}
wanted() { (($# == 1)) || [[ " ${*:2} " == *" $1 "* ]]; }

while read -r name compiler options; do
	wanted "$name" "$@" || continue
	# shellcheck disable=SC2086 # options
	if ! command -v "$compiler" >/dev/null || ! "$compiler" -g -O1 -pthread ${options//RUNTIME/$runtime} -o "$name" "$here/prog.c" 2>cc.err ||
		! timeout 60 "./$name" >/dev/null 2>&1; then
		printf 'skip %s: cannot be built or run here\n' "$name"
		continue
	fi
	result "$name" "$(same "./$name"; recorded; refused calls "./$name"; left_out "./$name")"
done <<<"$builds"

# The words may be anywhere in a large table, and a file may say anything of itself.
if wanted large "$@" && { seq -f 'int a_function_of_a_rather_long_name_%g(void) { return 0; }' 2000; cat "$here/prog.c"; } >large.c &&
	gcc -O1 -pthread -rdynamic -fsanitize=address -o large large.c 2>cc.err && ./large >alone 2>alone.err; then
	result large "$(left_out ./large)"
fi
hostile() {
	local at
	for at in 32 40 54 56 64 72 80 96; do # of the header's and the first segments' numbers
		cp plain odd
		printf '\377\377\377\377\377\377\377\177' | dd of=odd bs=1 seek=$at conv=notrunc 2>/dev/null
		timeout 20 "$LONGPOLE" calls -q -o c.lpt -- sh -c './odd; true' >out 2>err || echo "at $at: exit status $?"
	done
}
if wanted hostile "$@" && "${CC:-cc}" -O1 -o plain "$here/prog.c" -pthread; then
	result hostile "$(hostile)"
fi
if wanted own_names "$@"; then
	"${CC:-cc}" -O1 -rdynamic -o own "$here/own.c" -pthread && result own_names "$(same ./own; "$LONGPOLE" calls -q -o c.lpt -- ./own 2>/dev/null | grep -qx 2000 || echo calls)"
fi
# Each call passes by the user's library, as without us: be it preloaded, or linked (then the program's names have no version).
passes() { # PROGRAM [VARIABLE=VALUE]
	local command
	while read -r command; do
		# shellcheck disable=SC2086 # a command and its options
		env ${2:+"$2"} "$LONGPOLE" $command -- "$1" 2>/dev/null >out || echo "$command: exit status $?"
		grep -qx 2000 out || echo "$command: says something else"
		grep -qE '^2 signals, 20[0-9]{2} locks$' out || echo "$command: the library saw $(grep locks out | tail -1)"
	done <<-END
		record -q -o w.lpt
		locks -q -o w.lpt
		locks -q --mode=stamps -o w.lpt
		calls -q -o w.lpt
	END
	"$LONGPOLE" record -q -o w.lpt "$1" >/dev/null 2>&1
	recorded w.lpt
}
preloaded() {
	"${CC:-cc}" -O1 -D_GNU_SOURCE -shared -fPIC -o wrapper.so "$here/wrapper.c" -ldl && "${CC:-cc}" -O1 -o plain "$here/prog.c" -pthread || { echo "cannot be built"; return; }
	passes ./plain "LD_PRELOAD=$PWD/wrapper.so"
}
linked() {
	"${CC:-cc}" -O1 -D_GNU_SOURCE -shared -fPIC -o libwrapper.so "$here/wrapper.c" -ldl &&
		"${CC:-cc}" -O1 -o linked "$here/prog.c" -pthread -Wl,--no-as-needed -L. -lwrapper "-Wl,-rpath,$PWD" || { echo "cannot be built"; return; }
	passes ./linked
}
! wanted preloaded "$@" || result preloaded "$(preloaded)"
! wanted linked "$@" || result linked "$(linked)"
# A program's time is another one: ours is the kernel's, be only the program that way or longpole, too.
faked_clock() {
	local who elapsed_ms held_ms
	"${CC:-cc}" -O1 -D_GNU_SOURCE -shared -fPIC -o clock.so "$here/clock.c" && "${CC:-cc}" -O1 -o ticks "$here/ticks.c" -pthread || { echo "cannot be built"; return; }
	for who in program both; do
		case $who in
		program) "$LONGPOLE" record -q -o f.lpt -- env "LD_PRELOAD=$PWD/clock.so" ./ticks ;;
		both) LD_PRELOAD=$PWD/clock.so "$LONGPOLE" record -q -o f.lpt -- ./ticks ;;
		esac >out 2>err || echo "$who: exit status $?"
		(($(<out) >= 2000)) || { echo "$who: the program's time is not another one: $(<out) ms"; continue; }
		elapsed_ms=$("$LONGPOLE" report --json f.lpt | jq '.result.elapsed_ns / 1000000 | floor')
		held_ms=$("$LONGPOLE" locks --json f.lpt | jq '[.result.locks[] | .held_ns] | add / 1000000 | floor')
		((elapsed_ms >= 200 && elapsed_ms < 1900)) || echo "$who: $elapsed_ms ms"
		((held_ms >= 200 && held_ms < 1900)) || echo "$who: a lock was held for $held_ms ms"
	done
}
! wanted faked_clock "$@" || result faked_clock "$(faked_clock)"
# What a leak makes the program lose at its end is lost with us, too, and nothing else.
leaks() {
	printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { void *volatile p = malloc(99); p = 0; puts("kept?"); return p != 0; }\n' >leaking.c
	"$@" -O1 -o leaking leaking.c 2>cc.err || return
	local status=0 alone=0
	./leaking >alone 2>alone.err || alone=$?
	"$LONGPOLE" record -q -o leak.lpt -- ./leaking >out 2>err || status=$?
	[[ $status == "$alone" ]] || echo "exit status $status, alone $alone"
	cmp -s out alone || echo "says '$(<out)', alone '$(<alone)'"
}
! wanted leaks "$@" || result leaks "$(leaks gcc -fsanitize=address; leaks gcc -fsanitize=leak; leaks clang-14 -fsanitize=address)"
# A race is still seen, and only that.
races() {
	"$1" -g -O1 -pthread -fsanitize=thread -DRACE -o racing "$here/prog.c" || return
	TSAN_OPTIONS=exitcode=66 ./racing >/dev/null 2>alone.err
	grep -q 'data race' alone.err || return # (by chance it was not seen alone)
	"$LONGPOLE" record -q -o r.lpt -- ./racing >out 2>err
	[[ $(grep -c 'WARNING: ThreadSanitizer' err) == "$(grep -c 'WARNING: ThreadSanitizer' alone.err)" ]] || echo "other warnings than alone"
}
! wanted races "$@" || result races "$(races gcc; races clang-14)"

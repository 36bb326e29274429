#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - the counter library as its users meet it: header, both libraries, what they export, the how-to's example.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
source_dir=$(readlink -f "$here/../..")
: "${LONGPOLE_BUILD:=$source_dir/build}"
library=$LONGPOLE_BUILD/src/counter
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

result() { # NAME, what is wrong
	if [[ -z $2 ]]; then printf 'ok %s\n' "$1"; else printf 'not ok %s: %s\n' "$1" "${2//$'\n'/; }"; fi
}

header() { # COMPILER LANGUAGE STANDARD
	local warn=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror) option
	command -v "$1" >/dev/null || return 0
	for option in -O0 -O2; do
		"$1" -x "$2" "-std=$3" "${warn[@]}" "$option" -I"$source_dir/include" -c "$here/header.c" -o "$scratch/header.o" 2>&1 |
			head -3
		[[ -f $scratch/header.o ]] || return 0
		"$1" "$scratch/header.o" "$library/liblongpole-counter.a" -pthread -o "$scratch/static" 2>&1 | head -3
		"$1" "$scratch/header.o" -L"$library" -llongpole-counter -Wl,-rpath,"$library" -o "$scratch/shared" 2>&1 | head -3
		timeout 20 "$scratch/static" || printf '%s %s static: exit status %s\n' "$1" "$option" $?
		timeout 20 "$scratch/shared" || printf '%s %s shared: exit status %s\n' "$1" "$option" $?
		rm -f "$scratch/header.o"
	done
	"$1" -x "$2" "-std=$3" "${warn[@]}" -DLONGPOLE_DISABLE -I"$source_dir/include" -fsyntax-only "$here/header.c" 2>&1 | head -3
}

# One symbol more is one more to keep.
exports() {
	nm -D --defined-only "$library/liblongpole-counter.so" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | LC_ALL=C sort -u |
		diff - <(sed -nE 's/^.*[ *](longpole_(counter|event|backend)_[a-z_]+)\($/\1/p; s/^[a-z].*[ *](longpole_(counter|event|backend)_[a-z_0-9]+)\(.*$/\1/p' \
			"$source_dir/include/longpole/counter.h" | grep -vE '_(read|read1|scope_begin|scope_end)$' | LC_ALL=C sort -u) |
		sed -n 's/^< /not in counter.h: /p; s/^> /not exported: /p'
}

# Its host may be anything: nothing but libc is needed, and it is never unloaded.
needs() {
	readelf -d "$library/liblongpole-counter.so" | grep NEEDED | grep -vE 'libc\.so|ld-linux'
	readelf -d "$library/liblongpole-counter.so" | grep -q NODELETE || printf 'can be unloaded\n'
}

example() {
	sed -n '/^```c$/,/^```$/p' "$source_dir/doc/howto/count-exactly.md" | sed '/^```/d' >"$scratch/example.c"
	"${CC:-cc}" -Wall -Wextra -Werror -O2 -I"$source_dir/include" "$scratch/example.c" "$library/liblongpole-counter.a" -pthread \
		-o "$scratch/example" 2>&1 | head -5
	timeout 20 "$scratch/example" >"$scratch/out" 2>"$scratch/err" || { printf 'exit status %s\n' $?; cat "$scratch/err"; return; }
	grep -Eq '^[1-9][0-9]* ns with a processor, [0-9]+ switches, [0-9]+ ns waiting' "$scratch/out" || printf 'said: %s\n' "$(<"$scratch/out")"
	grep -q '^10 scopes, [1-9]' "$scratch/out" || printf 'said: %s\n' "$(<"$scratch/out")"
	grep -q '^ticks: counted by ' "$scratch/err" || printf 'explained: %s\n' "$(<"$scratch/err")"
}

clang=$(compgen -c clang- | grep -E '^clang-[0-9]+$' | sort -V | tail -n 1)
result header-c11 "$(header "${CC:-gcc}" c c11 2>&1)"
result header-c++17 "$(header "${CXX:-g++}" c++ c++17 2>&1)"
if [[ -n $clang ]]; then
	result header-clang "$(header "$clang" c c11 2>&1; header "${clang/clang/clang++}" c++ c++17 2>&1)"
else
	echo "skip header-clang: no clang"
fi
result exports "$(exports 2>&1)"
result needs-libc-only "$(needs 2>&1)"
result howto-example "$(example 2>&1)"

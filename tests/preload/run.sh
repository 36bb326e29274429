#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...] - the preload library by itself: what it exports, the annotation header, what annotations record, robustness.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
source_dir=$(readlink -f "$here/../..")
export LONGPOLE_BUILD=${LONGPOLE_BUILD:-$source_dir/build}
library=${LONGPOLE_PRELOAD:-$LONGPOLE_BUILD/src/record/liblongpole-preload.so}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

result() { # NAME, what is wrong
	if [[ -z $2 ]]; then printf 'ok %s\n' "$1"; else printf 'not ok %s: %s\n' "$1" "${2//$'\n'/; }"; fi
}

# Each name that we define takes the place of libc's in every program: none by accident.
exports() {
	nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | LC_ALL=C sort -u |
		diff "$here/exports.txt" - | sed -n 's/^< /missing: /p; s/^> /not listed: /p'
}

# The library must bring its own unwinder, and must not read what another one wrote.
personality() {
	if nm "$library" | grep -q __gcc_personality; then
		printf 'has landing pads (-fexceptions)\n'
	fi
	if readelf -d "$library" | grep -q libgcc_s; then
		printf 'needs libgcc_s\n'
	fi
}

header() { # COMPILER STANDARD SUFFIX
	local warn=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
	local option
	command -v "$1" >/dev/null || return 0
	for option in -O0 -O2 -DLONGPOLE_DISABLE; do
		"$1" "-std=$2" "${warn[@]}" "$option" -I"$source_dir/include" -c "$here/header.$3" \
			-o "$scratch/header.o" 2>&1 | head -3
	done
}

# New programs with old recorders.
versions() {
	local language
	for language in c c++; do
		"${CC:-cc}" -O2 -D_GNU_SOURCE -I"$source_dir/include" -x "$language" "$here/versions.c" -o "$scratch/versions" &&
			"$scratch/versions" >"$scratch/said" || { printf '%s: exit status %s\n' "$language" $?; continue; }
		diff "$scratch/said" - <<-'END' | sed -n "s/^[<>]/$language: &/p"
			queue 91 q 7 3 64
			queue 92 q 7 2 4
			queue 92 q 7 1 0
			state busy 0
			item 102 q 7 42 3 64
			item 103 q 7 42 2 4
			act fiber 5
			queue_state 92 q 7 1 0 busy
		END
	done
}

# Every way to close the last writing end is one io_close of its own: the reader's, the parent's and it.
closings() {
	local how n
	"${CC:-cc}" -O2 -w -D_GNU_SOURCE -pthread "$source_dir/tests/target/eof.c" -o "$scratch/eof" -ldl || return
	while read -r how n; do
		"$scratch/ring_cat" -c -o "$scratch/counts" "$library" "$scratch/eof" "--how=$how" --section-percent=1 >/dev/null ||
			printf '%s: exit status %s\n' "$how" $?
		grep -qx "io_close $n" "$scratch/counts" ||
			printf '%s: not %s io_close, but %s\n' "$how" "$n" "$(sed -n 's/^io_close //p' "$scratch/counts")"
	done <<-END
		close 3
		dup2 3
		close_range 3
		fclose 3
		exec 3
		shutdown 3
		socket 3
	END
}

annotations() {
	local cc=${CC:-cc} count
	"$cc" -O2 -pthread -I"$source_dir/include" "$source_dir/examples/annotated.c" -o "$scratch/annotated" &&
		strip "$scratch/annotated" || { printf 'does not compile\n'; return; }
	"$scratch/annotated" 1000 >"$scratch/bare"
	"$scratch/ring_cat" -c -o "$scratch/counts" "$library" "$scratch/annotated" 1000 >"$scratch/recorded" ||
		printf 'exit status %s\n' $?
	cmp -s "$scratch/bare" "$scratch/recorded" || printf 'output differs\n'
	for count in 'note_begin 2' 'note_end 2' 'note_enqueue 1000' 'note_dequeue 1000' 'note_identify 1000' 'note_resize 1'; do
		grep -qx "$count" "$scratch/counts" || printf 'not %s\n' "$count"
	done
	"$cc" -O2 -D_GNU_SOURCE -pthread -I"$source_dir/include" "$source_dir/tests/target/fibers.c" -o "$scratch/fibers" &&
		"$scratch/ring_cat" -c -o "$scratch/counts" "$library" "$scratch/fibers" --rounds=10 >/dev/null || printf 'fibers: exit status %s\n' $?
	for count in 'note_act 23' 'note_put_item 80' 'note_take_item 80' 'note_end 1'; do
		grep -qx "$count" "$scratch/counts" || printf 'fibers: not %s\n' "$count"
	done
}
# What the runtime of gcc's OpenMP hands over, and its locks: as many as the program's text says. It computes what it does alone.
sums_of() { # RECORD - of a dump of the trace: tokens, by the name of the object
	sed -nE "s/.* $1 object=[0-9]+\\((OpenMP [a-z ]*)\\) n=([0-9]+).*/\\1=\\2/p" | awk -F= '{n[$1] += $2} END {for (name in n) print name, n[name]}' | sort
}
openmp_with() { # PROGRAM
	local longpole=${LONGPOLE:-$LONGPOLE_BUILD/src/cmd/longpole} record
	timeout 60 "$1" >"$scratch/alone" || { printf 'exit status %s alone\n' $?; return; }
	timeout 60 "$longpole" record -q -o "$scratch/openmp.lpt" -- "$1" >"$scratch/said" || { printf 'exit status %s recorded\n' $?; return; }
	cmp "$scratch/alone" "$scratch/said" 2>&1
	timeout 60 "$longpole" dump "$scratch/openmp.lpt" >"$scratch/dump" || { printf 'no dump\n'; return; }
	for record in token_give token_take; do
		sums_of "$record" <"$scratch/dump" | grep -E '^OpenMP (region begin|tasks|copyprivate|ordered section) '
	done | sort | uniq -c | diff - <(cat <<-'END'
		      2 OpenMP copyprivate 50
		      2 OpenMP ordered section 200
		      2 OpenMP region begin 116
		      2 OpenMP tasks 601
	END
	)
	sed -nE 's/.* lock_acquire object=[0-9]+\((mutex [^)]*)\).*/\1/p' "$scratch/dump" | sed 's/ 0x.*//' | sort | uniq -c | diff - <(cat <<-'END'
		    210 mutex
		     70 mutex .gomp_critical_user_of_name
		     70 mutex unnamed_critical_section
	END
	)
	# who arrives leaves
	awk '/ barrier_(arrive|leave) object=[0-9]*\(barrier of OpenMP\)/ {at[$2] = $3} END {for (t in at) if (at[t] != "barrier_leave") print t, "is left in a barrier"}' "$scratch/dump"
}
openmp() {
	gcc -O1 -g -w -fopenmp "$here/openmp.c" -o "$scratch/openmp" || return
	openmp_with "$scratch/openmp"
}
# Its libgomp is seen by nobody else.
openmp_loaded() {
	gcc -O1 -g -w -fopenmp -fPIC -shared -Dmain=in_library "$here/openmp.c" -o "$scratch/openmp.so" &&
		gcc -x c - -o "$scratch/loads" <<-END || return
			#include <dlfcn.h>
			int main(void)
			{
				void *library = dlopen("$scratch/openmp.so", RTLD_NOW | RTLD_LOCAL);
				return library ? ((int (*)(void))dlsym(library, "in_library"))() : 1;
			}
		END
	openmp_with "$scratch/loads"
}

if [[ ! -f $library ]]; then
	printf 'not ok build: no %s\n' "$library"
	exit 1
fi
"${CC:-cc}" -O2 -D_GNU_SOURCE -I"$source_dir/src" "$source_dir/tests/target/ring_cat.c" -o "$scratch/ring_cat" ||
	printf 'not ok build: ring_cat does not compile\n'
# check NAME FUNCTION - what it prints is wrong.
wanted=" $* "
check() {
	[[ $wanted != '  ' && $wanted != *" $1 "* ]] || result "$1" "$("$2")"
}
header_c() { header "${CC:-gcc}" c11 c; header clang-14 c11 c; }
header_cxx() { header "${CXX:-g++}" c++17 cc; header clang++-14 c++17 cc; }
check exports exports
check unwinder personality
check header_c11 header_c
check header_cxx17 header_cxx
check versions versions
check annotations annotations
check closings closings
check openmp openmp
check openmp_loaded openmp_loaded
mapfile -t robust < <(grep -oE 'robust/[^ ]+' <<<"$wanted" | cut -d/ -f2)
if (($# == 0 || ${#robust[@]})); then
	"$source_dir/tests/target/robust/run.sh" "${robust[@]}" | sed -E 's#^(ok|not ok|skip) #&robust/#'
fi

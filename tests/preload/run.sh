#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...] - the preload library by itself: what it exports, the annotation header, what annotations record, robustness.
# `run.sh --update` writes exports.txt anew (look at the difference).
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
source_dir=$(readlink -f "$here/../..")
export LONGPOLE_BUILD=${LONGPOLE_BUILD:-$source_dir/build}
library=${LONGPOLE_PRELOAD:-$LONGPOLE_BUILD/src/preload/liblongpole-preload.so}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

result() { # NAME, what is wrong
	if [[ -z $2 ]]; then printf 'ok %s\n' "$1"; else printf 'not ok %s: %s\n' "$1" "${2//$'\n'/; }"; fi
}

# Each name that we define takes the place of libc's in every program: none by accident.
exported() { nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | LC_ALL=C sort -u; }
exports() {
	exported | diff "$here/exports.txt" - | sed -n 's/^< /missing: /p; s/^> /not listed: /p'
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

# glibc keeps 1,664 bytes of thread-local storage for all libraries that are loaded late, fewer where others took some. In front of that is
# what an auditor, a sanitizer, or a program that loads us itself, leaves.
tls() {
	local file bytes limit
	for file in "$LONGPOLE_BUILD"/src/{record,counter}/liblongpole-*.so; do
		bytes=$(readelf -lW "$file" | awk '$1 == "TLS" { print $6 }') limit=64
		[[ $file != */counter/* ]] || limit=128
		((${bytes:-0} <= limit)) || printf '%s has %d bytes of thread-local storage\n' "${file##*/}" "$bytes"
	done
}
# Where little is left: an auditor, libraries with a lot of it, we ourselves among those that the program loads.
late() {
	local longpole=${LONGPOLE:-$LONGPOLE_BUILD/src/cmd/longpole} cc=${CC:-cc} command i loaded=()
	"$cc" -shared -fPIC -x c - -o "$scratch/audit.so" <<<'unsigned la_version(unsigned version) { return version; }' || return
	for i in 1 2 3; do
		"$cc" -shared -fPIC -ftls-model=initial-exec -x c - -o "$scratch/tls$i.so" <<<'static __thread char room[480]; char *room_of_thread(void); char *room_of_thread(void) { return room; }' || return
		loaded+=("$scratch/tls$i.so")
	done
	"$cc" -O1 "$here/late.c" -o "$scratch/late" -ldl -pthread || return
	while read -r command; do
		# shellcheck disable=SC2086 # a command and its options
		LD_AUDIT=$scratch/audit.so timeout 60 "$longpole" $command -o "$scratch/late.lpt" -- "$scratch/late" "${loaded[@]}" >"$scratch/said" 2>"$scratch/err" ||
			printf '%s: exit status %s: %s\n' "$command" $? "$(grep -m1 -a 'ld\.so\|loading' "$scratch/err")"
		grep -qx '3 loaded, 400 locks' "$scratch/said" || printf '%s: says %s\n' "$command" "$(head -n 1 "$scratch/said")"
		[[ $command != record* ]] || [[ $("$longpole" dump "$scratch/late.lpt" | grep -c ' lock_acquire ') == 400 ]] || printf '%s: not 400 locks\n' "$command"
	done <<-END
		record -q
		record -q --heap
		locks -q
		calls -q
		stat
	END
	for i in preload/liblongpole-preload tally/liblongpole-tally tally/liblongpole-calls; do
		"$scratch/late" "$LONGPOLE_BUILD/src/$i.so" | grep -x '1 loaded, 400 locks' >/dev/null || printf '%s cannot be loaded late\n' "$i"
	done
}

header() { # COMPILER STANDARD SUFFIX
	local warn=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
	local option
	command -v "$1" >/dev/null || return 0
	for option in -O0 -O2 -DLONGPOLE_DISABLE; do
		"$1" "-std=$2" "${warn[@]}" "$option" -I"$source_dir/include" -c "$here/header.$3" \
			-o "$scratch/header.o" 2>&1 | head -3
	done
	# A linker that throws away what nobody refers to keeps the note, without which no recorder finds the program's calls.
	printf '#include <longpole/annotate.h>\nint main(void) { longpole_state("s", 0); return 0; }\n' >"$scratch/kept.$3"
	for option in --gc-sections --no-gc-sections; do
		"$1" "-std=$2" -ffunction-sections -fdata-sections -I"$source_dir/include" "$scratch/kept.$3" "-Wl,$option" -o "$scratch/kept" 2>&1 | head -3
		readelf -n "$scratch/kept" | grep '^ *longpole ' >/dev/null || printf '%s %s: no note\n' "$1" "$option"
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

# What we find in the libraries' tables is what the loader would find: in programs of few and of many libraries, with other symbol tables,
# with a sanitizer's functions in between, started by the loader's name.
next_functions() {
	local program nr=0
	"${CC:-cc}" -O1 -w -D_GNU_SOURCE -fPIC -shared -I"$source_dir/src" "$here/next.c" -o "$scratch/next.so" || return
	for program in '' -fsanitize=address -Wl,-z,lazy -Wl,-z,nodynamic-undefined-weak; do
		"${CC:-cc}" -w "$program" -x c - -o "$scratch/host_$nr" -lm <<<'int main(void) {return 0;}' 2>/dev/null && nr=$((nr + 1))
	done
	for program in "$scratch"/host_* ls bash perl git jq gdb python3; do
		command -v "$program" >/dev/null || continue
		: >"$scratch/found"
		NEXT_SAYS=$scratch/found ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=$scratch/next.so env "$program" --version >/dev/null 2>&1
		grep -v ': [0-9]*$' "$scratch/found"
		awk -F': ' '$2 > 200 {n++} END {exit !n}' "$scratch/found" || printf '%s: too few were compared\n' "$program"
	done
}
# While a library is loaded, its constructor waits for a thread that calls what nobody has called before.
loader_lock() {
	"${CC:-cc}" -w -D_GNU_SOURCE -fPIC -shared -x c - -o "$scratch/waits.so" <<-'END' || return
		#include <fcntl.h>
		#include <pthread.h>
		#include <semaphore.h>
		#include <unistd.h>
		static void *first(void *arg)
		{
			pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
			sem_t sem;
			int fd[2];
			pthread_rwlock_rdlock(&lock);
			pthread_rwlock_unlock(&lock);
			sem_init(&sem, 0, 1);
			sem_wait(&sem);
			return pipe2(fd, O_CLOEXEC) ? 0 : arg;
		}
		__attribute__((constructor)) static void begin(void)
		{
			pthread_t thread;
			pthread_create(&thread, 0, first, 0);
			pthread_join(thread, 0);
		}
	END
	"${CC:-cc}" -w -x c - -o "$scratch/loads_it" <<<"#include <dlfcn.h>
		int main(void) {return !dlopen(\"$scratch/waits.so\", RTLD_NOW);}" || return
	timeout 20 "${LONGPOLE:-$LONGPOLE_BUILD/src/cmd/longpole}" record -q -o "$scratch/loads.lpt" -- "$scratch/loads_it" || printf 'exit status %s\n' $?
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
# What an OpenMP runtime hands over, and its locks: as many as the program's text says. It computes what it does alone.
sums_of() { # RECORD - of a dump of the trace: tokens, by the name of the object
	sed -nE "s/.* $1 object=[0-9]+\\((OpenMP [a-z ]*)\\) n=([0-9]+).*/\\1=\\2/p" | awk -F= '{n[$1] += $2} END {for (name in n) print name, n[name]}' | sort
}
openmp_with() { # PROGRAM COPYPRIVATE UNNAMED NAMED - tokens (0: it has barriers there), names of critical sections
	local longpole=${LONGPOLE:-$LONGPOLE_BUILD/src/cmd/longpole} record
	timeout 60 "$1" >"$scratch/alone" || { printf 'exit status %s alone\n' $?; return; }
	timeout 60 "$longpole" record -q -o "$scratch/openmp.lpt" -- "$1" >"$scratch/said" || { printf 'exit status %s recorded\n' $?; return; }
	cmp "$scratch/alone" "$scratch/said" 2>&1
	timeout 60 "$longpole" dump "$scratch/openmp.lpt" >"$scratch/dump" || { printf 'no dump\n'; return; }
	for record in token_give token_take; do
		sums_of "$record" <"$scratch/dump" | grep -E '^OpenMP (region begin|tasks|copyprivate|ordered section) '
	done | sort | uniq -c | diff - <(grep -v ' 0$' <<-END
		      2 OpenMP copyprivate $2
		      2 OpenMP ordered section 200
		      2 OpenMP region begin 116
		      2 OpenMP tasks 601
	END
	)
	sed -nE 's/.* lock_acquire object=[0-9]+\((mutex [^)]*)\).*/\1/p' "$scratch/dump" | sed 's/ 0x.*//' | sort | uniq -c | diff - <(LC_ALL=C sort -k 2 <<-END
		    210 mutex
		     70 mutex $3
		     70 mutex $4
	END
	)
	# who arrives leaves
	awk '/ barrier_(arrive|leave) object=[0-9]*\(barrier of OpenMP\)/ {at[$2] = $3} END {for (t in at) if (at[t] != "barrier_leave") print t, "is left in a barrier"}' "$scratch/dump"
}
openmp() {
	gcc -O1 -g -w -fopenmp "$here/openmp.c" -o "$scratch/openmp" || return
	openmp_with "$scratch/openmp" 50 .gomp_critical_user_of_name unnamed_critical_section
}
# Loaded by a program that has nothing of OpenMP: its runtime is seen by nobody else.
loads() { # COMPILER
	"$1" -O1 -g -w -fopenmp -fPIC -shared -Dmain=in_library "$here/openmp.c" -o "$scratch/openmp.so" &&
		gcc -x c - -o "$scratch/loads" <<-END
			#include <dlfcn.h>
			int main(void)
			{
				void *library = dlopen("$scratch/openmp.so", RTLD_NOW | RTLD_LOCAL);
				return library ? ((int (*)(void))dlsym(library, "in_library"))() : 1;
			}
		END
}
openmp_loaded() {
	loads gcc || return
	openmp_with "$scratch/loads" 50 .gomp_critical_user_of_name unnamed_critical_section
}
# LLVM's runtime: the same, but that copyprivate is two barriers.
libomp() {
	clang-14 -O1 -g -w -fopenmp "$here/openmp.c" -o "$scratch/libomp" || return
	for policy in active passive; do
		OMP_WAIT_POLICY=$policy openmp_with "$scratch/libomp" 0 .gomp_critical_user_.var .gomp_critical_user_of_name.var
	done
}
libomp_loaded() {
	loads clang-14 || return
	openmp_with "$scratch/loads" 0 .gomp_critical_user_.var .gomp_critical_user_of_name.var
}
# gcc's program with LLVM's runtime, which has gcc's functions: what it is told is told once.
libomp_for_gcc() {
	gcc -O1 -g -w -fopenmp "$here/openmp_gcc.c" -o "$scratch/for_gcc" || return
	LD_PRELOAD=$(libomp_path) openmp_sums "$scratch/for_gcc"
}
libomp_path() { clang-14 -print-file-name=libomp.so.5; }
# Both in one program: six regions of three threads, half of them each's.
openmp_both() {
	gcc -O1 -g -w -fopenmp -c "$here/openmp_gcc.c" -Dmain=of_gcc -o "$scratch/of_gcc.o" &&
		clang-14 -O1 -g -w -fopenmp -c "$here/openmp_gcc.c" -Dmain=of_clang -o "$scratch/of_clang.o" &&
		gcc -x c - -x none "$scratch/of_gcc.o" "$scratch/of_clang.o" -o "$scratch/both" -lgomp "$(libomp_path)" <<-'END' || return
			int of_gcc(void), of_clang(void);
			int main(void) { return of_gcc() || of_clang(); }
		END
	openmp_sums "$scratch/both" 2
}
openmp_sums() { # PROGRAM [TIMES]
	local longpole=${LONGPOLE:-$LONGPOLE_BUILD/src/cmd/longpole} record n=${2:-1}
	timeout 60 env -u LD_PRELOAD "$longpole" record -q -o "$scratch/openmp.lpt" -- env ${LD_PRELOAD:+"LD_PRELOAD=$LD_PRELOAD"} "$1" >/dev/null || printf 'exit status %s\n' $?
	timeout 60 "$longpole" dump "$scratch/openmp.lpt" >"$scratch/dump" || printf 'no dump\n'
	for record in token_give token_take; do
		sums_of "$record" <"$scratch/dump" | grep -E '^OpenMP (region begin|tasks) '
	done | sort | uniq -c | sed -E 's/^ +//' | diff - <(printf '2 OpenMP region begin %s\n2 OpenMP tasks %s\n' $((6 * n)) $((4 * n)))
	grep -E ' (token_give|barrier_arrive) .* site=[0-9]*\((GOMP|__kmpc)_' "$scratch/dump" | head -n 1
	[[ $(grep -c ' barrier_arrive ' "$scratch/dump") == $((9 * n)) ]] || printf 'barriers: %s\n' "$(grep -c ' barrier_arrive ' "$scratch/dump")"
}
# Tasks in each other, deeper than is remembered; not tied to a thread; over when an event comes; cancelled. Each is ready once and run once,
# and what it gives is what waits for it.
libomp_tasks() {
	local longpole=${LONGPOLE:-$LONGPOLE_BUILD/src/cmd/longpole} what
	clang-14 -O1 -g -w -fopenmp "$here/tasks.c" -o "$scratch/tasks" || return
	OMP_CANCELLATION=true timeout 60 "$longpole" record -q -o "$scratch/openmp.lpt" -- "$scratch/tasks" >"$scratch/said" || printf 'exit status %s\n' $?
	timeout 60 "$longpole" dump "$scratch/openmp.lpt" >"$scratch/dump"
	for what in give take; do
		sums_of token_$what <"$scratch/dump" | sed -n 's/^OpenMP tasks //p'
	done | diff - <(cat "$scratch/said" "$scratch/said")
	sums_of token_give <"$scratch/dump" | sed -n 's/^OpenMP child tasks //p' | diff - "$scratch/said"
}
# The program does as without us, and who was to come has come.
libomp_corners() {
	local longpole=${LONGPOLE:-$LONGPOLE_BUILD/src/cmd/longpole} what
	clang-14 -O1 -g -w -fopenmp "$here/corners.c" -o "$scratch/corners" || return
	timeout 60 "$scratch/corners" >"$scratch/alone" 2>&1 || printf 'exit status %s alone\n' $?
	timeout 60 "$longpole" record -q -o "$scratch/openmp.lpt" -- "$scratch/corners" >"$scratch/said" 2>&1 || printf 'exit status %s\n' $?
	cmp "$scratch/alone" "$scratch/said" 2>&1
	timeout 60 "$longpole" dump "$scratch/openmp.lpt" >"$scratch/dump"
	for what in give take; do
		sums_of token_$what <"$scratch/dump" >"$scratch/$what"
	done
	diff "$scratch/give" "$scratch/take"
	grep -q '^OpenMP region begin ' "$scratch/give" || printf 'no regions\n'
}
# Tasks that others hold up: each is ready once, when the last of those is over.
libomp_depend() {
	local longpole=${LONGPOLE:-$LONGPOLE_BUILD/src/cmd/longpole} what
	clang-14 -O1 -g -w -fopenmp "$here/depend.c" -o "$scratch/depend" || return
	timeout 60 "$longpole" record -q -o "$scratch/openmp.lpt" -- "$scratch/depend" >"$scratch/said" || printf 'exit status %s\n' $?
	timeout 60 "$longpole" dump "$scratch/openmp.lpt" >"$scratch/dump"
	for what in give take; do # 44 tasks; what was held up was taken back by who made it: all of the chain, and the diamond
		sums_of token_$what <"$scratch/dump" | sed -n 's/^OpenMP tasks //p'
	done >"$scratch/tasks"
	[[ $(sort -u "$scratch/tasks" | wc -l) == 1 && $(head -n 1 "$scratch/tasks") == 67 ]] || printf 'tasks given and taken: %s\n' "$(paste -s "$scratch/tasks")"
	# the chain's 20 ms lie one behind the other, whichever thread each ran on: all of them on the path, and nobody waits there
	timeout 60 "$longpole" path --json "$scratch/openmp.lpt" >"$scratch/path.json"
	[[ $(jq '[.result.steps[] | select(.state == "sleeping" and .increment_ns >= 1000000)] | length' "$scratch/path.json") -ge 20 ]] || printf 'the chain is not on the path\n'
}
# Threads that wait for the last one, at a barrier or a region's end, spinning or asleep: the path
# is that thread's. Of 5 rounds of two loops (6 iterations of 1 ms, then 2 of 6) the last of 1, 2, 4
# threads has 18, 14, 12 ms a loop.
libomp_skew() {
	local longpole=${LONGPOLE:-$LONGPOLE_BUILD/src/cmd/longpole} policy threads
	local -A ms=([1]=180 [2]=140 [4]=120)
	clang-14 -O1 -g -w -fopenmp "$here/skew.c" -o "$scratch/skew" || return
	for policy in active passive; do
		for threads in 1 2 4; do
			# (LLVM's runtime would try each processor first, which no record explains)
			KMP_AFFINITY=disabled OMP_WAIT_POLICY=$policy OMP_NUM_THREADS=$threads timeout 60 "$longpole" record -q -o "$scratch/skew.lpt" -- "$scratch/skew" || printf 'exit status %s\n' $?
			timeout 60 "$longpole" report --json "$scratch/skew.lpt" | jq -r --arg what "$policy $threads" --argjson least_ms "${ms[$threads]}" '.result |
				([.path[] | select(.state == "sleeping") | .path_ns] | add // 0) as $slept_ns |
				if .explained_share < 0.95 then "\($what): \(.explained_share) of the path is explained" else empty end,
				if $slept_ns < $least_ms * 1000000 then "\($what): \($slept_ns) ns of \($least_ms) ms on the path" else empty end'
		done
	done
}
# A runtime tells one tool only: the user's goes first, and it is said; so is OMP_TOOL=disabled.
libomp_untold() {
	local longpole=${LONGPOLE:-$LONGPOLE_BUILD/src/cmd/longpole}
	clang-14 -O1 -g -w -fopenmp "$here/openmp_gcc.c" -o "$scratch/plain" &&
		clang-14 -fPIC -shared -w "$here/omp_tool.c" -o "$scratch/omp_tool.so" &&
		clang-14 -O1 -w -fopenmp "$here/openmp_gcc.c" "$here/omp_tool.c" -rdynamic -o "$scratch/own_tool" || return
	untold() { # WHAT TOOL_SAYS PROGRAM
		timeout 60 "$longpole" record -q -o "$scratch/openmp.lpt" -- "$3" >"$scratch/said" 2>&1 || printf 'exit status %s\n' $?
		timeout 60 "$longpole" report --json "$scratch/openmp.lpt" >"$scratch/report.json"
		[[ $(jq -r '[.diagnostics[].name | select(startswith("omp_"))] | join(" ")' "$scratch/report.json") == "$1" ]] || printf '%s: not said\n' "${1:-none}"
		[[ $(grep -c '^tool: 3 regions$' "$scratch/said") == "$2" ]] || printf '%s: the tool has not seen what it is to see\n' "${1:-none}"
	}
	untold '' 0 "$scratch/plain"
	OMP_TOOL=disabled untold omp_disabled 0 "$scratch/plain"
	OMP_TOOL_LIBRARIES=$scratch/omp_tool.so untold omp_other_tool 1 "$scratch/plain"
	untold omp_other_tool 1 "$scratch/own_tool"
}
if [[ ! -f $library ]]; then
	printf 'not ok build: no %s\n' "$library"
	exit 1
fi
if [[ ${1:-} == --update ]]; then
	exported >"$here/exports.txt"
	exit
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
check tls tls
check late late
check header_c11 header_c
check header_cxx17 header_cxx
check versions versions
check annotations annotations
check closings closings
check next_functions next_functions
check loader_lock loader_lock
check openmp openmp
check openmp_loaded openmp_loaded
if clang-14 -x c -fopenmp - -o "$scratch/has" <<<'int main(void) {return 0;}' 2>/dev/null && [[ -e $(libomp_path) ]]; then
	for name in libomp libomp_loaded libomp_for_gcc openmp_both libomp_corners libomp_tasks libomp_depend libomp_skew libomp_untold; do
		check $name $name
	done
else
	printf 'skip libomp: no clang-14 with OpenMP (Debian package libomp-14-dev)\n'
fi
mapfile -t robust < <(grep -oE 'robust/[^ ]+' <<<"$wanted" | cut -d/ -f2)
if (($# == 0 || ${#robust[@]})); then
	"$source_dir/tests/target/robust/run.sh" "${robust[@]}" | sed -E 's#^(ok|not ok|skip) #&robust/#'
fi

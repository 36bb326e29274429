# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# jit.sh - code that programs make at run time, by the names that they tell perf.

make_jit() {
	cc -O1 -fno-omit-frame-pointer -D_GNU_SOURCE "$LONGPOLE_SOURCE/tests/cli/jit.c" -o jit 2>cc.err || { cat cc.err >&2; fail 'jit.c does not build'; }
}

# record_jit NAME COMMAND... - its functions and their call paths are in NAME.txt, by samples.
record_jit() {
	local name=$1
	shift
	expect 0 longpole record -o "$name.lpt" "$@"
	mv err refused
	[[ ! -s out ]] || rm -f "$(<out)" "$(<out).hidden"
	longpole dump --json "$name.lpt" >"$name.json" || fail 'no dump'
	grep -q '"sample"' "$name.json" || skip 'no samples here'
	longpole report --full "$name.lpt" >"$name.txt" 2>err || fail "$(<err)"
}

test_jit_map() {
	make_jit
	record_jit map ./jit map
	has map.txt 'jit::inner(int, char) [v1]'
	! grep -q 'no file' map.txt || fail 'code of no file although the map names it'
	# the frames above it, although one of them is in made code, too
	longpole dump map.lpt | grep 'sample site=.*jit::inner.*stack=[0-9]*(jit::outer.* < main' >chain || fail 'no call path through made code'
}

# A child that a fork made runs what its parent told perf.
test_jit_map_of_parent() {
	make_jit
	record_jit fork ./jit fork
	has fork.txt 'jit::inner(int, char) [v1]'
}

# Somebody else's link in /tmp leads nowhere; neither another user's file nor one that was there before the process names anything.
test_jit_map_of_others() {
	make_jit
	local how
	for how in link old foreign; do
		[[ $how != foreign || $(id -u) == 0 ]] || continue
		record_jit $how ./jit $how
		has $how.txt 'code of no file'
		has refused 'in code that was made at run time' "/tmp/perf-"
	done
}

# One place, two functions one after the other: each has its own half, though both are told at the end.
test_jit_dump_replaced() {
	make_jit
	record_jit dump ./jit dump
	has dump.txt 'jit::first' 'jit::second'
	! grep -q 'no file' dump.txt || fail 'code of no file although the jitdump names it'
	local first second
	first=$(grep -o 'jit::first [0-9]* %' dump.txt | grep -o '[0-9]* %' | head -n 1)
	second=$(grep -o 'jit::second [0-9]* %' dump.txt | grep -o '[0-9]* %' | head -n 1)
	((${first% %} >= 40 && ${first% %} <= 60 && ${second% %} >= 40)) || { fail "$first and $second instead of halves"; }
}

# In a pid namespace with a /tmp of its own both are others than ours.
test_jit_map_in_container() {
	make_jit
	mkdir own
	unshare --pid --fork --mount true 2>/dev/null || skip 'no namespaces here'
	record_jit inside unshare --pid --fork --mount sh -c "mount -t tmpfs none /tmp && ./jit map"
	grep -q "jit::inner(int, char)" inside.json || fail "no name"
}

# The kernel's own page of code is no code of no file, however a process came to it.
test_vdso_everywhere() {
	cat >vdso.c <<-'END'
		#define _GNU_SOURCE
		#include <sched.h>
		#include <signal.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/syscall.h>
		#include <sys/wait.h>
		#include <time.h>
		#include <unistd.h>
		static int spin(void *x)
		{
			struct timespec a, b;
			(void)x;
			clock_gettime(CLOCK_MONOTONIC, &a);
			do
				clock_gettime(CLOCK_MONOTONIC, &b);
			while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 300);
			return 0;
		}
		int main(int argc, char **argv)
		{
			const char *how = argc > 1 ? argv[1] : "none";
			char *stack = malloc(1 << 16);
			if (!strcmp(how, "clone"))
				clone(spin, stack + (1 << 16), SIGCHLD, NULL);
			else if (!strcmp(how, "raw") && !syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))
				_exit(spin(NULL));
			else if (!strcmp(how, "fork") && !fork())
				_exit(spin(NULL));
			else if (!strcmp(how, "none"))
				spin(NULL);
			wait(NULL);
			return 0;
		}
	END
	cc -O1 vdso.c -o vdso || fail 'vdso.c does not build'
	cc -O1 -static vdso.c -o static || skip 'no static libc'
	local program
	for program in './vdso none' './vdso fork' './vdso clone' './vdso raw' './static none' './static raw'; do
		expect 0 longpole record -q -o t.lpt sh -c "$program; true" # (no static program is recorded alone)
		longpole dump t.lpt >"dump"
		grep -q 'sample.*vdso' "dump" || skip 'no samples in the vdso here'
		longpole report --full t.lpt >out 2>err
		! grep -q 'no file' out || fail "$program: $(grep 'no file' out)"
	done
}

# Of programs that ran already when the recording of the system began, too.
test_jit_of_the_system() {
	as_root
	make_jit
	longpole record --system --full -q -o probe.lpt true >/dev/null 2>err || skip "$(head -n 1 err)"
	./jit dump >/dev/null &
	local pid=$!
	longpole record --system --full -q -o system.lpt sh -c "while kill -0 $pid 2>/dev/null; do sleep 0.05; done" 2>err || fail "$(<err)"
	wait
	longpole dump system.lpt >"dump" 2>/dev/null
	grep -q ' sample ' "dump" || skip 'no samples of the system here'
	grep -q 'sample site=[0-9]*(jit::second' "dump" || fail 'the jitdump of another process names nothing'
}

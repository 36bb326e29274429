# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $LONGPOLE_SOURCE comes from run.sh
# attach.sh - recordings of processes that run already: what they say, and that the process goes on as if nothing had been.

# steady KIND [OPTIONS OF CC...] - starts tests/cli/attach_steady.c, as process $steady, and lets it get going.
steady() {
	local kind=$1
	shift
	cc -O1 -g -pthread "$@" "$LONGPOLE_SOURCE/tests/cli/attach_steady.c" -o steady || fail 'attach_steady.c does not build'
	./steady "$kind" >said 2>&1 &
	steady=$!
	sleep 0.3
}

# attached OPTIONS... - records it, or skips where nobody may.
attached() {
	longpole record -p "$steady" "$@" >out 2>err && return
	grep -q 'ptrace_scope' err && skip "$(head -1 err)"
	fail "record -p: $(cat err)"
}

# ends_well - it still runs; it ends as it would alone.
ends_well() {
	local status
	kill -0 "$steady" 2>/dev/null || fail "the process has ended: $(cat said)"
	kill -TERM "$steady"
	wait "$steady"
	status=$?
	((status == 9)) || fail "its exit status is $status: $(cat said)"
	[[ $(cat said) == right ]] || fail "it says: $(cat said)"
}

# attach_agrees KIND PATTERN - the first fix of a recording by attaching and of one from the start match. Where others use the machine,
# the waits that had begun before may be most of a short recording: up to three times, each twice as long.
attach_agrees() {
	local time from wrong
	for time in 1s 2s 4s; do
		wrong=
		steady "$1"
		attached --for=$time -o attached.lpt
		ends_well
		longpole record -q -o started.lpt ./steady "$1" 12 >/dev/null
		for from in attached started; do
			longpole report $from.lpt >$from.txt 2>&1
			grep -qE "^The long pole is .*$2" $from.txt || wrong="$from: $(sed -n 2p $from.txt)"
		done
		[[ $wrong ]] || return 0
	done
	fail "$wrong"
}

test_attach_sees_a_lock() {
	attach_agrees ladder 'mutex shared'
}

# What it takes is a share of the process's own time, from when it was joined: also of one that ends meanwhile.
test_attach_says_what_it_cost() {
	local how
	for how in goes_on ends; do
		steady ladder
		[[ $how == goes_on ]] || (sleep 0.8 && exec kill -TERM "$steady") &
		attached --for=$([[ $how == ends ]] && echo 5s || echo 1s) -o cost.lpt
		[[ $how == ends ]] || ends_well
		wait
		expect 0 longpole report --json cost.lpt
		is_json out '.. | objects | select(has("recording_cost")) | .recording_cost | .target_cpu_ns > 10000000 and .share_high >= .share and .share > 0'
		is_json out "(.. | objects | select(has(\"recording_cost\")) | .recording_cost.target_cpu_ns) < 12000000000"
	done
}

# Those that wait already take units that nobody says: later ones are not taken for those.
test_attach_sees_a_semaphore() {
	steady tokens
	for _ in 1 2; do
		attached --for=1s -o attached.lpt
		longpole report --json attached.lpt >report.json 2>err || fail "$(cat err)"
		is_json report.json '[.result.path[] | select(.state | startswith("sleeping")) | .share] | add > 0.7'
		is_json report.json '[.result.path[] | select(.state | contains("semaphore tokens")) | .share] | add // 0 | . < 0.2'
	done
	ends_well
}

# Also the second time places are said of the program's lines.
test_attach_to_python() {
	command -v python3 >/dev/null || skip 'no python3'
	cat >steady.py <<-'END'
		import threading, time
		lock = threading.Lock()
		def work():
		    while True:
		        with lock:
		            time.sleep(0.004)
		for _ in range(3): threading.Thread(target=work, daemon=True).start()
		time.sleep(60)
	END
	python3 steady.py &
	steady=$!
	sleep 1
	for _ in 1 2; do
		attached --for=500ms -o attached.lpt
		longpole dump attached.lpt >dump.txt
		grep -q 'sleep_until .*work (.*steady.py:6)' dump.txt || fail "no line: $(grep -m1 sleep_until dump.txt)"
	done
	kill "$steady"
}

test_attach_sees_who_is_waited_for() {
	attach_agrees pipe 'compute|running'
	longpole queues attached.lpt >queues.txt 2>&1
	grep -q 'pipe' queues.txt || fail "no pipe: $(cat queues.txt)"
}

test_attach_sees_a_condition() {
	attach_agrees cond 'compute|running'
	longpole queues attached.lpt >queues.txt 2>&1
	grep -q 'condition variable has_i' queues.txt || fail "the condition variable is not there: $(cat queues.txt)"
}

test_attach_says_what_it_did() {
	steady work
	attached --for=100ms -o a.lpt
	ends_well
	grep -qE "process $steady goes on; attaching stopped one of its threads for [0-9.]+ .?s; the library stays" err || fail "$(cat err)"
	[[ ! -s out ]] || fail 'something is on standard output'
}

test_attach_by_default_reports() {
	steady ladder
	longpole -p "$steady" --for=500ms >out 2>err || fail "$(cat err)"
	ends_well
	grep -q 'The long pole is' err || fail "no report: $(cat err)"
}

# Twice, with tables that are bound at the start, and with one that is bound as functions are called.
test_attach_leaves_memory_as_it_was() {
	local how
	for how in -Wl,-z,now,-z,relro -Wl,-z,lazy,-z,norelro; do
		steady work $how
		python3 "$LONGPOLE_SOURCE/tests/cli/attach_memory.py" "$steady" >before || skip 'its memory cannot be read'
		attached --for=200ms --buffer=1M -o a.lpt # (of a larger one, a busy moment has more mapped)
		python3 "$LONGPOLE_SOURCE/tests/cli/attach_memory.py" "$steady" >after
		cmp -s before after || fail "$how: $(diff before after | head -5)"
		sed 's/ .*//' "/proc/$steady/maps" >maps
		attached --for=200ms --buffer=1M -o a.lpt
		sed 's/ .*//' "/proc/$steady/maps" | diff maps - >moved || fail "the second recording has left more: $(cat moved)"
		! grep -qs '^longpole$' "/proc/$steady"/task/*/comm || fail 'the thread is still there'
		ends_well
		rm -f a.lpt
	done
}

test_attach_a_hundred_times() {
	local i
	steady work
	for ((i = 0; i < 100; i++)); do
		attached --for="$((RANDOM % 20 + 5))ms" --buffer=1M -o a.lpt
		rm a.lpt
	done
	ends_well
}

test_attach_outlives_its_recorder() {
	local i recorder
	steady work
	for ((i = 0; i < 30; i++)); do
		longpole record -q -p "$steady" --for=10s --buffer=1M -o a.lpt >/dev/null 2>&1 &
		recorder=$!
		sleep "0.$(printf %03d $((RANDOM % 160)))"
		kill -KILL "$recorder" 2>/dev/null
		wait "$recorder" 2>/dev/null
		kill -0 "$steady" 2>/dev/null || fail "it died with its recorder, at time $i: $(cat said)"
	done
	for ((i = 0; i < 100; i++)); do # the library sees it within a tenth of a second
		grep -q '/longpole-session-' "/proc/$steady/maps" || break
		sleep 0.05
	done
	! grep -q '/longpole-session-' "/proc/$steady/maps" || fail 'it is still recorded'
	attached --for=100ms -o b.lpt
	ends_well
}

test_attach_sees_children() {
	cat >forks.c <<-'END'
		#include <pthread.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static pthread_mutex_t in_child = PTHREAD_MUTEX_INITIALIZER;
		int main(void) {
			for (int i = 0; i < 40; i++) {
				if (!fork()) {
					pthread_mutex_lock(&in_child);
					usleep(20000);
					pthread_mutex_unlock(&in_child);
					_exit(0);
				}
				wait(0);
				usleep(20000);
			}
			return 5;
		}
	END
	cc -g -pthread forks.c -o forks || fail 'forks.c does not build'
	./forks & steady=$!
	sleep 0.2
	attached --for=500ms -o a.lpt
	wait "$steady"
	(($? == 5)) || fail 'it did not end as alone'
	longpole dump a.lpt >dumped
	grep -q ' lock_acquire .*in_child' dumped || fail 'no lock of a child is in it'
	! grep -q ':longpole ' dumped || fail "longpole's own thread is in it"
}

test_attach_ends_with_the_process() {
	cc -O1 -g -pthread "$LONGPOLE_SOURCE/tests/cli/attach_steady.c" -o steady || fail 'attach_steady.c does not build'
	timeout -s TERM 1 ./steady ladder >said & # (timeout is the parent)
	sleep 0.3
	steady=$(pgrep -P $! -x steady)
	attached -o a.lpt # without --for: until it ends
	longpole report a.lpt >report.txt 2>&1
	grep -q 'The long pole is' report.txt || fail 'no report'
	[[ $(cat said) == right ]] || fail "it says $(cat said)"
}

# refused WORDS PID - and process PID, if it is there, runs on.
refused() {
	! longpole record -p "$2" --for=100ms -o r.lpt >out 2>err || fail "$1: was not refused"
	grep -q "$1" err || fail "$1: it says: $(cat err)"
	[[ ! -e r.lpt ]] || fail "$1: a trace is left"
}

test_attach_refuses() {
	local pid
	refused 'there is no process' 4194303
	refused 'is longpole itself\|belongs to another user\|is in another' 1
	sleep 30 & pid=$!
	kill -STOP $pid
	sleep 0.1
	refused 'is stopped' $pid
	kill -CONT $pid
	longpole record -q -p $pid --for=5s -o a.lpt & other=$!
	sleep 0.6
	refused 'is recorded already' $pid
	kill -INT $other
	wait $other || fail "the recording was disturbed"
	kill $pid
	longpole record -q -o b.lpt sleep 2 & other=$!
	sleep 0.5
	refused 'is recorded already' "$(pgrep -P $other -x sleep)"
	wait $other || fail "the other program was disturbed"
	printf 'int main(void) { for (;;) pause(); }' >p.c
	if gcc -w -static p.c -o static 2>/dev/null; then
		./static & pid=$!
		sleep 0.1
		refused 'static program' $pid
		kill $pid
	fi
	if gcc -w -m32 p.c -o small 2>/dev/null; then
		./small & pid=$!
		sleep 0.1
		refused '32-bit' $pid
		kill $pid
	fi
	python3 -c '
import ctypes, time
libc = ctypes.CDLL(None)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
allow = ctypes.create_string_buffer(b"\x06\0\0\0\0\0\xff\x7f")
libc.prctl(38, 1, 0, 0, 0)
libc.prctl(22, 2, ctypes.byref(Program(1, ctypes.addressof(allow))))
time.sleep(5)' & pid=$!
	sleep 0.5
	refused 'filter of system calls' $pid
	kill $pid
	cat >below.c <<'PROGRAM'
#include <stdlib.h>
static int forever(const void *a, const void *b)
{
	for (;;)
		__asm__ volatile("" : : "r"(a), "r"(b));
	return 0;
}
int main(void) { char two[2] = ""; qsort(two, 2, 1, forever); }
PROGRAM
	gcc below.c -o below
	./below & pid=$!
	refused 'no thread of process' $pid
	kill -0 $pid || fail 'the program has ended'
	kill $pid
}

test_attach_refuses_what_is_not_ours() {
	local pid
	as_root
	((EUID == 0)) || skip 'not root: nobody can be another user'
	setpriv --reuid=65534 --regid=65534 --clear-groups sleep 30 & pid=$!
	sleep 0.2
	refused 'belongs to another user (65534, and this is 0)' $pid
	kill -0 $pid || fail 'it has ended'
	kill $pid
	setpriv --ruid=65534 sleep 30 & pid=$! # as a setuid program
	sleep 0.2
	refused 'belongs to another user' $pid
	kill -0 $pid || fail 'it has ended'
	kill $pid
}

test_attach_refuses_other_namespaces() {
	local pid
	unshare -Ur true 2>/dev/null || skip 'no user namespaces here'
	unshare -Ur sleep 30 & pid=$!
	sleep 0.3
	refused 'user namespace' $pid
	kill -0 $pid || fail 'it has ended'
	kill $pid
}

# Somebody else traces it; and a kernel that lets nobody (as with ptrace_scope 2 or 3: every ptrace() fails with EPERM).
test_attach_refuses_who_may_not_be_traced() {
	local pid tracer status
	steady work
	cat >trace.py <<-'END'
		import ctypes, sys, time
		ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0)
		print("seized", flush=True)
		time.sleep(30)
	END
	python3 trace.py "$steady" >traced & tracer=$!
	for _ in {1..50}; do grep -q seized traced && break; sleep 0.1; done
	if grep -q 'TracerPid:.*[1-9]' "/proc/$steady/status"; then
		refused "is traced by process $tracer (python3" "$steady"
	fi
	kill $tracer
	wait $tracer
	cat >forbid.py <<-'END'
		import ctypes, os, struct, sys
		libc = ctypes.CDLL(None)
		def op(code, jt, jf, k): return struct.pack("=HBBI", code, jt, jf, k)
		code = op(0x20, 0, 0, 0) + op(0x15, 0, 1, 101) + op(6, 0, 0, 0x50001) + op(6, 0, 0, 0x7fff0000)
		class Program(ctypes.Structure):
		    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
		kept = ctypes.create_string_buffer(code)
		libc.prctl(38, 1, 0, 0, 0)
		if libc.prctl(22, 2, ctypes.byref(Program(4, ctypes.addressof(kept)))): sys.exit(77)
		os.execvp(sys.argv[1], sys.argv[1:])
	END
	python3 forbid.py longpole record -p "$steady" --for=100ms -o r.lpt >out 2>err
	status=$?
	((status == 77)) || { ((status != 0)) && grep -qE 'may not attach to process|lets nobody attach' err; } || fail "it says: $(cat err)"
	ends_well
}

test_attach_refuses_go() {
	local pid
	command -v go >/dev/null || skip 'no Go'
	printf 'package main\nimport "time"\nfunc main() { time.Sleep(30 * time.Second) }\n' >sleeper.go
	GOCACHE=$PWD/cache GOFLAGS=-mod=mod CGO_ENABLED=0 go build -o sleeper sleeper.go >out 2>&1 || skip "go build: $(cat out)"
	./sleeper & pid=$!
	sleep 0.3
	refused 'static program' $pid
	kill -0 $pid || fail 'it has ended'
	kill $pid
}

# What it is after an exec is recorded, too.
test_attach_goes_on_after_exec() {
	cat >again.c <<-'END'
		#include <pthread.h>
		#include <unistd.h>
		static pthread_mutex_t after_exec = PTHREAD_MUTEX_INITIALIZER;
		static void *work(void *p) {
			for (int i = 0; i < 60; i++) {
				pthread_mutex_lock(&after_exec);
				usleep(4000);
				pthread_mutex_unlock(&after_exec);
			}
			return p;
		}
		int main(int argc, char **argv) {
			pthread_t thread;
			if (argc < 2) {
				sleep(1);
				execl(argv[0], argv[0], "again", (char *)0);
			}
			pthread_create(&thread, 0, work, 0);
			work(0);
			pthread_join(thread, 0);
			return 5;
		}
	END
	cc -g -pthread again.c -o again || fail 'again.c does not build'
	./again & steady=$!
	sleep 0.2
	attached -o a.lpt
	wait "$steady"
	(($? == 5)) || fail 'it did not end as alone'
	longpole dump a.lpt >dumped
	grep -q ' lock_acquire .*after_exec' dumped || fail 'no lock is in it that was taken after the exec'
}

# What is seen of programs alone that start recorded is said.
test_attach_says_what_it_does_not_see() {
	cat >team.c <<-'END'
		#include <unistd.h>
		int main(void) {
			for (int i = 0; i < 1000; i++) {
				#pragma omp parallel num_threads(2)
				usleep(1000);
			}
			return 5;
		}
	END
	cc -g -fopenmp team.c -o team 2>/dev/null || skip 'no OpenMP'
	OMP_WAIT_POLICY=passive ./team & steady=$!
	sleep 0.3
	attached --for=200ms -o a.lpt
	grep -q 'waits in OpenMP are not seen as such' err || fail "$(cat err)"
	wait "$steady"
	(($? == 5)) || fail 'it did not end as alone'
}

# One thread, never in a call of the kernel: joined again and again, its recorder killed or not, it computes what it would alone.
test_attach_to_what_only_computes() {
	cat >busy.c <<'PROGRAM'
#include <signal.h>
#include <stdio.h>
static volatile sig_atomic_t stop;
static void on_term(int signal) { stop = signal; }
static unsigned long long a = 1, b;
#define STEPS(n) for (unsigned i = 0; i < n; i++) { a = a * 6364136223846793005u + 1; b ^= a >> 32; }
__attribute__((noinline)) void much(void) { STEPS(3000000) }
__attribute__((noinline)) void little(void) { STEPS(1000000) }
int main(void)
{
	unsigned long long n = 0, a_here, b_here;
	signal(SIGTERM, on_term);
	for (; !stop; n++) { much(); little(); }
	a_here = a, b_here = b, a = 1, b = 0;
	for (; n; n--)
		STEPS(4000000)
	puts(a == a_here && b == b_here ? "right" : "wrong");
	return 9;
}
PROGRAM
	cc -O1 -g busy.c -o steady || fail 'busy.c does not build'
	./steady >said 2>&1 &
	steady=$!
	for _ in {1..8}; do
		{ timeout -s KILL "0.$((RANDOM % 4 + 1))$((RANDOM % 10))" longpole record -q -p "$steady" -o killed.lpt >out 2>err; } 2>/dev/null
		grep -q ptrace_scope err && skip "$(head -1 err)"
	done
	sleep 0.2
	attached --for=2s -o a.lpt
	ends_well
	expect 0 longpole report a.lpt
	grep -qE '^The long pole is computing, [67][0-9] % of it in much, [23][0-9] % of it in little' out ||
		fail "$(grep 'long pole is' out)"
}

test_attach_options() {
	longpole record -p 1 ls >out 2>err && fail 'a process and a program'
	grep -q 'not both' err || fail "$(cat err)"
	longpole record -p x >out 2>err && fail 'x is a process'
	longpole record -p 1 --system >out 2>err && fail 'with --system'
	longpole record -p 1 --level=2 >out 2>err && fail 'with memory accesses'
	longpole record --for=1s ls >out 2>err && fail 'for a program'
	true
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $trace and $work come from run.sh
# recover.sh - recordings whose recorder was killed.

# counted - builds a program of two processes, of two threads each, that takes locks $1 times in all; it makes the file `ended`.
counted() {
	cat >counted.c <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
		static long nr;
		static void *work(void *x) {
			for (long i = 0; i < nr / 4; i++) {
				pthread_mutex_lock(&mutex);
				pthread_mutex_unlock(&mutex);
				if (i % (nr / 1200) == 0) usleep(10000);
			}
			return x;
		}
		int main(int argc, char **argv) {
			nr = argc > 1 ? atol(argv[1]) : 24000;
			pid_t child = fork();
			pthread_t t[2];
			for (int i = 0; i < 2; i++) pthread_create(t + i, 0, work, 0);
			for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
			if (!child) _exit(0);
			waitpid(child, 0, 0);
			fclose(fopen("ended", "w"));
			return 0;
		}
	END
	cc -O1 -g -pthread counted.c -o counted || fail 'counted.c does not build'
}

# killed SECONDS COMMAND... - records it into cut.lpt, kills the recorder with SIGKILL after that time and waits for the program's end;
# $id is what `longpole recover` calls it.
killed() {
	local after=$1 pid
	shift
	rm -f ended
	longpole record -q -o cut.lpt "$@" >/dev/null 2>&1 &
	pid=$!
	sleep "$after"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	for ((i = 0; i < 600; i++)); do
		[[ -e ended ]] && break
		sleep 0.1
	done
	if [[ ! -e ended ]]; then # (the ring's pages stay: there may be no room for the program either)
		(($(cat "$group"/memory.{events,oom_control} 2>/dev/null | awk '$1 == "oom_kill" { n = $2 } END { print n + 0 }') < 2)) ||
			skip 'the kernel killed the program, too'
		fail 'the program ended with its recorder'
	fi
	id=$(longpole recover | sed -n "s/^\($pid-[^ ]*\)  .*/\1/p")
	[[ $id ]] || fail "nothing is left of recorder $pid"
}

# Whenever it is killed, each record of the program is there, once.
test_recover_has_every_record() {
	local after nr=240000
	counted
	for after in 0.4 1.3 2.2; do
		killed "$after" ./counted "$nr"
		expect 0 longpole recover "$id"
		has out 'Recovered' 'cut.lpt' 'records'
		[[ $(longpole dump cut.lpt | grep -c ' lock_acquire ') == "$nr" ]] || fail "not $nr acquisitions, killed after $after s"
		[[ $(longpole dump cut.lpt | grep -c ' lock_release ') == "$nr" ]] || fail "not $nr releases, killed after $after s"
		longpole dump cut.lpt | grep ' lock_acquire ' | grep -vF '(mutex mutex)' | head -1 >unnamed
		[[ ! -s unnamed ]] || fail "a mutex without its name, killed after $after s: $(cat unnamed)"
		expect 0 longpole report cut.lpt
		has out 'the recorder was killed'
		if longpole recover | grep -q "^$id"; then fail 'it is still listed'; fi
	done
}

# The next recording says so, leaves it, and takes the name, not the file; two of them are two.
test_recover_waits_for_who_asks() {
	local first second
	counted
	killed 0.4 ./counted 24000
	first=$id
	expect 0 longpole record -o cut.lpt ./counted 4000
	has err "a recording of ./counted 24000 was cut off at" "longpole recover $first"
	[[ -e cut.lpt.$first ]] || fail "what it wrote is gone: $(ls)"
	killed 0.4 ./counted 12000
	second=$id
	expect 0 longpole recover
	tr -s '\n ' ' ' <out >words
	has words "$first ./counted 24000, cut off at" "$second ./counted 12000, cut off at" "longpole recover --remove $first"
	expect 0 longpole recover --json
	is_json out '.schema == "longpole/recover/1"'
	is_json out "[.result.left[] | select(.id == \"$first\")][0] | .trace_is_there == false and (.program_runs | not) and .refused == \"\""
	expect 0 longpole recover --json "$second"
	is_json out '.result.records_from_memory > 24000'
	[[ $(longpole dump cut.lpt | grep -c ' lock_acquire ') == 12000 ]] || fail 'the second is not its own'
	expect 0 longpole recover "$first"
	has out "cut.lpt.$first:"
	[[ $(longpole dump "cut.lpt.$first" | grep -c ' lock_acquire ') == 24000 ]] || fail 'the first is not its own'
	[[ $(longpole dump cut.lpt | grep -c ' lock_acquire ') == 12000 ]] || fail 'the first took the name of the second'
	expect 2 longpole recover "$first"
	has err "no recording '$first' was cut off"
}

# While the program runs: it goes on, and its trace ends; or there is none.
test_recover_lets_the_program_run() {
	local pid nr
	counted
	for how in recover remove; do
		rm -f ended cut.lpt
		longpole record -q -o cut.lpt ./counted 1200000 >/dev/null 2>&1 &
		pid=$!
		sleep 1.2
		kill -KILL $pid
		wait $pid 2>/dev/null
		id=$(longpole recover | sed -n "s/^\($pid-[^ ]*\)  .*/\1/p")
		[[ $id ]] || fail "nothing is left of recorder $pid"
		[[ ! -e ended ]] || skip 'this machine is too fast, or too slow'
		if [[ $how == recover ]]; then
			expect 0 longpole recover "$id" -o part.lpt
			nr=$(longpole dump part.lpt | grep -c ' lock_acquire ')
			((nr > 0 && nr < 1200000)) || fail "$nr acquisitions"
			expect 0 longpole report part.lpt
		else
			expect 0 longpole recover --remove "$id"
		fi
		[[ ! -e /dev/shm/longpole-session-$id ]] || fail 'its memory is still there'
		for ((i = 0; i < 600; i++)); do
			[[ -e ended ]] && break
			sleep 0.1
		done
		[[ -e ended ]] || fail "the program ended with $how"
	done
}

# What cannot be made says why, and leaves what there is.
test_recover_fails_whole() {
	counted
	killed 0.4 ./counted 24000
	expect 4 longpole recover "$id" -o /nonexistent/there.lpt
	has err '/nonexistent/there.lpt'
	expect 2 longpole recover "$id" "$id"
	expect 2 longpole recover --remove
	has err 'of which recording?'
	expect 2 longpole recover 4711-nobody
	if ! (
		ulimit -f 8 # 8 KiB: as a full disk
		trap '' XFSZ
		expect 4 longpole recover "$id" -o full.lpt
	); then exit 1; fi
	[[ ! -e full.lpt && ! -e full.lpt.part ]] || fail 'a part of a trace is there'
	expect 0 longpole recover "$id" -o whole.lpt
	[[ $(longpole dump whole.lpt | grep -c ' lock_acquire ') == 24000 ]] || fail 'it is not whole'
}

# A file that was removed leaves its number to the next one of that name: what is recovered is of one recording.
test_recover_knows_its_trace() {
	counted
	killed 0.4 ./counted 24000
	cp cut.lpt kept
	longpole record -q -o other.lpt ./counted 2400 || fail 'does not record'
	cat other.lpt >cut.lpt # the same file, as the kernel counts them
	expect 4 longpole recover "$id" -o mixed.lpt
	has err 'cut.lpt is gone' 'replaced by another file'
	: >cut.lpt
	expect 4 longpole recover "$id" -o mixed.lpt
	[[ ! -e mixed.lpt ]] || fail 'two recordings were made one'
	cat kept >cut.lpt
	expect 0 longpole recover "$id" -o whole.lpt
	[[ $(longpole dump whole.lpt | grep -c ' lock_acquire ') == 24000 ]] || fail 'it is not whole'
}

# Nobody else's are listed, recovered or removed.
test_recover_leaves_others_alone() {
	((EUID == 0)) || skip 'needs root, to be two users'
	command -v setpriv >/dev/null || skip 'setpriv is not here'
	counted
	killed 0.4 ./counted 24000
	chmod 755 . "$work" "$work/tests"
	mkdir -m 777 other
	cp "$LONGPOLE" other/longpole-here 2>/dev/null
	setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$LONGPOLE" || skip 'another user does not reach longpole'
	local as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	expect 0 "${as[@]}" "$LONGPOLE" recover
	grep -q "$id" out && fail "another user's is listed"
	expect 2 "${as[@]}" "$LONGPOLE" recover "$id"
	expect 2 "${as[@]}" "$LONGPOLE" recover --remove "$id"
	mkdir -m 700 "/dev/shm/longpole-session-1-other$$" && chown 65534 "/dev/shm/longpole-session-1-other$$"
	: >"/dev/shm/longpole-session-1-other$$/session"
	chown 65534 "/dev/shm/longpole-session-1-other$$/session"
	longpole recover >list
	expect 0 longpole record -q -o next.lpt true
	[[ -e /dev/shm/longpole-session-1-other$$/session ]] || fail "another user's was removed"
	rm -r "/dev/shm/longpole-session-1-other$$"
	expect 0 longpole recover --remove "$id"
}

# A hangup is no death: it goes to the program, and what that one makes of it is recorded to its end.
test_recover_is_not_needed_after_a_hangup() {
	local pid status=0
	counted
	longpole record -q -o hup.lpt ./counted 1200000 >/dev/null 2>&1 &
	pid=$!
	sleep 0.6
	kill -HUP "$pid"
	wait "$pid" || status=$?
	((status == 129)) || fail "exit status $status"
	(($(longpole dump hup.lpt | grep -c ' lock_acquire ') > 1000)) || fail 'what was before the hangup is not there'
	rm -f ended
	longpole record -q -o ignored.lpt sh -c 'trap "" HUP; exec ./counted 240000' >/dev/null 2>&1 &
	pid=$!
	sleep 0.6
	kill -HUP "$pid"
	wait "$pid" || fail "who ignores it ended with status $?"
	[[ -e ended ]] || fail 'who ignores it did not go on'
	[[ $(longpole dump ignored.lpt | grep -c ' lock_acquire ') == 240000 ]] || fail 'not all of who ignores it'
	if longpole recover | grep -q "^$pid-"; then fail 'something is left'; fi
}

# group_of_memory BYTES - $group is a new control group with that limit; or the test is skipped.
group_of_memory() {
	local root=/sys/fs/cgroup
	if [[ -e $root/memory/memory.limit_in_bytes ]]; then
		group=$root/memory/longpole-test-$$
		mkdir "$group" 2>/dev/null && echo "$1" >"$group/memory.limit_in_bytes" && return
	elif grep -qsw memory $root/cgroup.subtree_control; then
		group=$root/longpole-test-$$
		mkdir "$group" 2>/dev/null && echo "$1" >"$group/memory.max" && echo 0 >"$group/memory.swap.max" && return
	fi
	skip 'no control group of memory can be made here'
}

# The kernel kills the recorder for lack of memory: the program goes on, and nothing is lost.
test_recover_after_lack_of_memory() {
	as_root
	local pid group
	((EUID == 0)) || skip 'needs root, to limit memory'
	cat >greedy.c <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
		static void take(int nr) {
			for (int i = 0; i < nr; i++) {
				pthread_mutex_lock(&mutex);
				pthread_mutex_unlock(&mutex);
			}
		}
		int main(void) {
			pid_t recorder = getppid();
			take(10000);
			fclose(fopen("began", "w"));
			while (access("go", F_OK) != 0) usleep(1000);
			for (int i = 0; i < 2000 && getppid() == recorder; i++) {
				memset(malloc(1 << 20), 1, 1 << 20);
				usleep(1000);
			}
			if (getppid() == recorder) return 3;
			take(10000);
			fclose(fopen("ended", "w"));
			return 0;
		}
	END
	cc -O0 -pthread greedy.c -o greedy || fail 'greedy.c does not build'
	group_of_memory $((400 << 20))
	# shellcheck disable=SC2064 # now
	trap "rmdir '$group' 2>/dev/null" EXIT
	(
		echo "$BASHPID" >"$group/cgroup.procs"
		exec longpole record -q -o oom.lpt ./greedy >/dev/null 2>&1
	) &
	pid=$!
	for ((i = 0; i < 600; i++)); do [[ -e began ]] && break; sleep 0.1; done
	echo 1000 >"/proc/$pid/oom_score_adj" # it, and not the program
	: >go
	wait "$pid" 2>/dev/null
	(($? == 137)) || skip 'the kernel did not kill the recorder'
	for ((i = 0; i < 600; i++)); do [[ -e ended ]] && break; sleep 0.1; done
	if [[ ! -e ended ]]; then # (the ring's pages stay: there may be no room for the program either)
		(($(cat "$group"/memory.{events,oom_control} 2>/dev/null | awk '$1 == "oom_kill" { n = $2 } END { print n + 0 }') < 2)) ||
			skip 'the kernel killed the program, too'
		fail 'the program ended with its recorder'
	fi
	id=$(longpole recover | sed -n "s/^\($pid-[^ ]*\)  .*/\1/p")
	[[ $id ]] || fail "nothing is left of recorder $pid"
	expect 0 longpole recover "$id"
	has out 'Recovered'
	[[ $(longpole dump oom.lpt | grep -c ' lock_acquire ') == 20000 ]] || fail 'not all acquisitions'
	expect 0 longpole report oom.lpt
	has out 'the recorder was killed'
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $trace and $work come from run.sh
# recover.sh - recordings whose recorder was killed.

# counted - builds a program of two processes, of two threads each, that takes locks $1 times in all; it makes the file `done`.
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
			fclose(fopen("done", "w"));
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
	rm -f done
	longpole record -q -o cut.lpt "$@" >/dev/null 2>&1 &
	pid=$!
	sleep "$after"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	for ((i = 0; i < 600; i++)); do
		[[ -e done ]] && break
		sleep 0.1
	done
	[[ -e done ]] || fail 'the program ended with its recorder'
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

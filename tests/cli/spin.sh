# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2016 # $work comes from run.sh; jq's variables are not the shell's
# spin.sh - longpole spin and longpole run on programs whose waits are known (tests/target/spin_known.c).

spin_known=$LONGPOLE_BUILD/tests/target/spin_known

# spinning KIND THREADS - starts it, waits until it is ready; its pid is in $spinner.
spinning() {
	"$spin_known" "$@" >ready &
	spinner=$!
	# shellcheck disable=SC2064 # the number as it is now
	trap "kill -9 $spinner 2>/dev/null" EXIT
	for _ in {1..100}; do
		[[ -s ready ]] && sleep 0.3 && return # (its threads are on their way)
		sleep 0.05
	done
	fail "spin_known $* is not ready"
}
enough() { kill -9 "$spinner"; wait "$spinner" 2>/dev/null || true; }
may_trace() {
	yes >/dev/null &
	local pid=$!
	longpole spin -p $pid -d 200ms --json >may 2>/dev/null
	kill $pid
	jq -e '.result.samples > 0' may >/dev/null || skip "ptrace is refused here: $(jq -r '.result.refused // ""' may)"
}

test_spin_samples_known_waits() {
	may_trace
	local kind word
	while read -r kind word; do
		spinning "hold-$kind" 2
		expect 0 longpole spin -p "$spinner" --duration 150ms --longest-stop 60s --json
		enough
		is_json out '.schema == "longpole/spin/1" and .result.method == "samples" and .result.samples > 0'
		# (its first thread may be on its way into a wait, or a sample meet the kernel)
		is_json out '.result | .samples_spinning >= (.samples - .samples_cut) * 0.8 and .samples_counting == 0'
		is_json out ".result.loops | length == 1 and .[0].branch.function == \"wait_$kind\" and
			(.[0].branch.file | endswith(\"spin_known.c\"))"
		is_json out ".result.loops[0].words | any(.name == \"$word\")"
	done <<<"tas lock[0].word
		ttas lock[0].word
		cas lock[0].word
		ticket lock[0].serving
		flag lock[0].word
		yield lock[0].word"
}

test_spin_samples_controls() {
	may_trace
	local kind
	for kind in compute scan; do
		expect 0 longpole spin --sample --interval 1ms --max-stop 50 --json -o spin.json "$spin_known" $kind 2 20 300000
		is_json spin.json '.result.samples_spinning == 0 and .result.samples_counting == 0 and .result.exit_status == 0'
	done
	expect 0 longpole spin --sample --interval 1ms --max-stop 50 --json -o spin.json "$spin_known" poll 2 50 4000000
	is_json spin.json '.result.samples_spinning == 0'
}

test_spin_livelock() {
	may_trace
	spinning circle-tas 4
	expect 1 longpole spin -p "$spinner" --until-livelock --longest-stop 60s --duration 20s --json
	enough
	is_json out '.result.livelock | .verdict == "found" and .threads_spinning == 4 and (.signal_handlers | not)'
	# one that holds the lock sleeps with a timeout: it may go on
	spinning hold-ttas 3
	expect 0 longpole spin -p "$spinner" --longest-stop 60s --duration 600ms -o said
	! grep -q '^livelock' said || fail "a sleeper with a timeout is no livelock: $(head -n 1 said)"
	expect 0 longpole spin -p "$spinner" --until-livelock --longest-stop 60s --duration 600ms --json
	enough
	is_json out '.result.livelock.verdict != "found"'
	# and contention is none
	expect 0 longpole spin --sample --interval 1ms --json -o spin.json "$spin_known" ttas 4 30 30000
	is_json spin.json '.result.livelock.verdict != "found" and .result.exit_status == 0'
}

# May all processes be looked into? (Else it is not known that none shares a word.)
all_readable() {
	local maps
	for maps in /proc/[0-9]*/maps; do
		: 2>/dev/null <"$maps" || [[ ! -e $maps ]] || return
	done
}

# Certain is only what no other process can write: not what a sleeping child shares, what has a name, or what was not seen because its first thread ended.
test_spin_on_shared_words() {
	may_trace
	"${CC:-cc}" -O1 -pthread -x c -o on_shared - <<-'EOF' || fail 'cc'
		#define _GNU_SOURCE
		#include <pthread.h>
		#include <stdio.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <sys/prctl.h>
		#include <unistd.h>
		static volatile int own;
		static void *sleeps(void *word) { sleep(600); *(volatile int *)word = 1; return 0; }
		int main(int argc, char **argv)
		{
			const char *kind = argv[argc - 1];
			int fd = strcmp(kind, "file") ? -1 : memfd_create("word", 0);
			if (fd >= 0 && ftruncate(fd, 4096)) return 1;
			volatile int *word = mmap(0, 4096, PROT_READ | PROT_WRITE,
				MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
			if (!strcmp(kind, "own")) word = &own;
			if (strcmp(kind, "alone") && fork() == 0) {
				pthread_t t;
				prctl(PR_SET_PDEATHSIG, 9);
				if (!strcmp(kind, "gone") && munmap((void *)word, 4096)) return 1;
				if (strcmp(kind, "main-ended")) sleep(600);
				pthread_create(&t, 0, sleeps, (void *)word);
				pthread_exit(0);
			}
			usleep(100000);
			puts("READY"); fflush(stdout);
			while (!*word) __builtin_ia32_pause();
		}
	EOF
	local kind verdict status duration
	while read -r kind verdict status duration; do
		[[ $kind == alone || $kind == gone ]] && ! all_readable && continue
		./on_shared "$kind" >ready &
		spinner=$!
		# shellcheck disable=SC2064 # the number as it is now
		trap "kill -9 $spinner 2>/dev/null" EXIT
		until [[ -s ready ]]; do sleep 0.05; done
		expect "$status" longpole spin -p "$spinner" --longest-stop 60s --until-livelock --duration "$duration" --json
		enough
		is_json out ".result.livelock.verdict == \"$verdict\""
		[[ $verdict == found ]] || is_json out '.result.livelock.open | test("another process (shares|may open)")'
	done <<<"own found 1 20s
		alone found 1 20s
		gone found 1 20s
		shared not_certain 0 2s
		main-ended not_certain 0 2s
		file not_certain 0 2s"
}

# Every instruction in the marked waits, as counted apart, against those found to spin.
test_spin_counts_known_waits() {
	longpole spin --json -o spin.json true 2>err || fail "$(cat err)"
	jq -e '.result.method == "valgrind"' spin.json >/dev/null || skip "$(jq -r .result.not_counted spin.json)"
	local marked kind share from size
	marked=$(readelf -SW "$spin_known" | awk '/ spin_marked / {
		sub(/.*spin_marked/, ""); print $2, $4 }')
	[[ $marked ]] || fail "spin_known has no section spin_marked"
	read -r from size <<<"$marked"
	marked=$from-$(printf %x $((0x$from + 0x$size)))
	# (a critical section that is longer than Valgrind's slices, so that others come to wait)
	for kind in tas cas ticket mcs clh flag barrier ttas futex idle; do
		local amount=150000 threads=3 rounds=3 yield=8
		case $kind in
		ttas | futex) threads=6 ;;
		idle) threads=2 yield=0 ;; # a round has hundreds of instructions, and the first one of a wait is never known
		barrier) amount=50000 ;;
		esac
		expect 0 longpole spin --marked "$marked" --yield-after $yield --json -o spin.json "$spin_known" $kind $threads $rounds $amount
		share=$(jq '.result | (.spin_instructions + .counting_instructions) / .marked_instructions' spin.json)
		jq -e -n "$share >= 0.99 and $share <= 1.01" >/dev/null || fail "$kind: $share of the marked instructions"
		is_json spin.json '.result.sdt_evictions == 0 and .result.rub_overflows == 0'
		# nobody ends its own wait, where another one wrote
		is_json spin.json '[.result.loops[] as $l | $l.words[] | select((.writers | length) > 1) | .last_writer != $l.thread] | all'
	done
	is_json spin.json '.result.loops[0].words | any(.name | startswith("queue"))'
	for kind in compute scan poll; do
		expect 0 longpole spin --json -o spin.json "$spin_known" $kind 2 4 4000
		is_json spin.json '.result.spin_instructions == 0'
	done
	expect 0 longpole spin -o spin.txt "$spin_known" flag 2 4 4000
	has spin.txt 'only wait' 'in wait_flag' 'on lock' 'changed last by thread' 'in flag_release (spin_known.c:' 'useful IPC' 'run --spin-yield 2'
	expect 0 longpole spin -o spin.txt "$spin_known" compute 2 4 4000
	has spin.txt 'no spinning' '(counted)' 'longpole record'
	! grep -E 'useful IPC|spin-yield' spin.txt >&2 || fail 'advice for a program that does not spin'
}

test_spin_usage() {
	expect 125 longpole spin
	expect 2 longpole spin -p 0
	expect 2 longpole spin -p 1 true
	expect 4 longpole spin -p 2147483647
	expect 127 longpole spin --sample /nonexistent
	expect 126 longpole spin --sample /etc/passwd
	expect 125 longpole spin --max-stop 200 true
	expect 3 longpole spin --sample -o /dev/null sh -c 'exit 3'
	expect 143 longpole spin --sample -o /dev/null sh -c 'kill $$'
}

# hold-ttas under longpole, with $1, until it had so many hundredths of a second of processor time: run.json
run_and_kill() {
	local option=$1 ticks=$2 pid='' longpole
	rm -f ready
	(exec longpole run --always "$option" --json -o run.json "$spin_known" hold-ttas 2 >ready) &
	longpole=$!
	until [[ $pid ]]; do
		sleep 0.05
		[[ -e /proc/$longpole ]] || fail 'longpole ended before the program began'
		pid=$(sed -n 's/READY //p' ready)
	done
	until (($(awk '{ print $14 }' "/proc/$pid/stat") > ticks)); do
		sleep 0.1
	done
	kill -9 "$pid"
	wait $longpole && fail 'the program was killed, and longpole says 0'
	is_json run.json '.result.exit_status == 137'
}

# Is what spins met here, and is there a proof? Its code alone is enough.
test_run_lets_what_spins_give_way() {
	local option ticks gave='.result | .loops >= 1 and .loops_by_code >= 1 and .signals_spinning > 0 and .yields > 0'
	expect 0 longpole run --always --json -o run.json "$spin_known" compute 2 1 10
	is_json run.json '.schema == "longpole/run/2" and .result.exit_status == 0 and .result.loops == 0'
	for option in --sleep=0 --sleep=1ms; do
		# (a busy machine may let longpole wait: again, for longer)
		for ticks in 20 100 400; do
			run_and_kill $option $ticks
			[[ $(jq -r '.result.unable // ""' run.json) == perf_event* ]] && skip "perf_event_open is refused"
			jq -e "$gave and (.sleeps > 0) == (\"$option\" == \"--sleep=1ms\")" run.json >jq.out && break
		done
		is_json run.json "$gave"
		is_json run.json ".result | (.sleeps > 0) == (\"$option\" == \"--sleep=1ms\")"
	done
	# what it does comes out right, and it says what it did
	expect 0 longpole run --always -o run.txt "$spin_known" flag 3 20 1000
	has out 'flag: 60 of 60'
	has run.txt 'how: '
}

test_run_leaves_alone_who_handles_the_signal() {
	# the program's own handler stays its own (ours may be there before)
	expect 0 longpole run --always --json -o run.json python3 -c 'import signal, os
seen = []
signal.signal(signal.SIGURG, lambda *a: seen.append(1))
os.kill(os.getpid(), signal.SIGURG)
assert 1 in seen'
	# a child has nothing of it, an exec begins anew
	expect 0 longpole run --always --json -o run.json sh -c "\"$spin_known\" flag 2 5 1000 >/dev/null && exec \"$spin_known\" flag 2 20 1000"
	has out 'flag: 40 of 40'
	# a static program cannot be helped, and this is said
	"${CC:-cc}" -static -O1 -x c -o static - <<<'int main(void) { for (volatile int i = 0; i < 90000000; i++) { } return 0; }' || skip 'no static libc'
	expect 0 longpole run --always -o run.txt ./static
	has run.txt 'no thread could be made to give way: the library was not loaded'
}

test_run_is_transparent() {
	expect 3 longpole run -q sh -c 'exit 3'
	expect 143 longpole run -q sh -c 'kill $$'
	expect 127 longpole run /nonexistent
	expect 126 longpole run /etc/passwd
	expect 125 longpole run
	expect 125 longpole run --spin-yield 0 true
	[[ $(longpole run -q echo out 2>err) == out && ! -s err ]] || fail "said more: $(cat err)"
}

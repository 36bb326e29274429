# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091 # $trace and $work come from run.sh; words split on purpose
# system.sh - recordings of the whole system, where the kernel allows them.

# record_system OUT ARG... - a recording; false when the kernel refuses it.
record_system() {
	local out=$1
	shift
	if ! longpole record --system -o "$out" "$@" >record.out 2>record.err; then
		grep -q 'does not show us the whole system' record.err && return 1
		cat record.err >&2
		fail "longpole record --system $*"
	fi
	grep -q '^longpole: kernel events: [0-9]* through' record.err
}

# Two processes hand a byte to and fro.
write_pingpong() {
	cat >pingpong.py <<'PROGRAM'
import os
a, b = os.pipe(), os.pipe()
if os.fork() == 0:
    for i in range(1500):
        os.read(a[0], 1); os.write(b[1], b"x")
    os._exit(0)
for i in range(1500):
    os.write(a[1], b"x"); os.read(b[0], 1)
os.wait()
PROGRAM
}

# Each process is woken by the other one, whatever shows us the kernel's events; switches nest.
test_system_wakes() {
	as_root
	local source seen=0
	write_pingpong
	for source in bpf perf; do
		record_system s.lpt --source=$source -- python3 pingpong.py || continue
		seen=1
		longpole dump --json s.lpt >dump || fail "dump"
		# who woke whom how often: two did it to each other all the time
		jq -r 'select(.kind == "wake") | "\(.stream) \(.woken)"' dump | sort | uniq -c | sort -rn >most
		awk '{n[$2 " " $3] = $1}
			END {for (k in n) {split(k, p); if (n[k] >= 300 && n[p[2] " " p[1]] >= 300) found = 1}; exit !found}' most ||
			fail "$source: not woken by each other: $(head -n 4 most | tr '\n' ';')"
		# nobody enters a processor twice without leaving, but for what the kernel did not show
		jq -r 'select(.kind == "cpu_in" or .kind == "cpu_out") | "\(.stream) \(.kind)"' dump |
			awk '$1 in last && last[$1] == $2 {bad++} {last[$1] = $2} END {exit bad > NR / 200}' ||
			fail "$source: switches do not alternate"
	done
	((seen)) || skip "$(grep -m 1 'does not show\|not used' record.err)"
}

# A sleeper is woken by a timer interrupt (or the softirq of timers), not by the thread that was
# interrupted.
test_system_timer() {
	as_root
	local ours right wrong
	record_system t.lpt --source=bpf --full -- python3 -c '
import os, time
print(os.getpid())
for i in range(50): time.sleep(0.002)' || skip "$(grep -m 1 'does not show\|not used' record.err)"
	longpole dump --json --definitions t.lpt >dump || fail "dump"
	# (other programs' sleepers may be woken by anything)
	ours=$(jq -n --argjson pid "$(head -n 1 record.out)" \
		'[inputs | select(.kind == "stream" and .tid == $pid) | {key: (.stream | tostring), value: true}] | from_entries' dump)
	jq -rn --argjson ours "$ours" 'reduce inputs as $r ({};
			if $r.kind == "context" and ($r.type_text == "timer interrupt" or $r.type_text == "softirq")
				then .timer[$r.stream | tostring] = true
			elif $r.kind == "call_begin" and $ours[$r.stream | tostring] and ($r.number_text == "clock_nanosleep" or $r.number_text == "pselect6")
				then .asleep[$r.stream | tostring] = true
			elif $r.kind == "call_end" then del(.asleep[$r.stream | tostring])
			elif $r.kind == "wake" and .asleep[$r.woken | tostring] then
				if .timer[$r.stream | tostring] then .right += 1 else .wrong += 1 end
			else . end) | "\(.right // 0) \(.wrong // 0)"' dump >counts
	read -r right wrong <counts
	((right >= 45 && wrong * 10 <= right)) || fail "$right wakes by timers, $wrong by others"
}

# Calls are paired, their objects are known, and the library's records are in the same streams.
test_system_full() {
	as_root
	write_pingpong
	record_system f.lpt --source=bpf --full -- python3 pingpong.py ||
		skip "$(grep -m 1 'does not show\|not used' record.err)"
	longpole dump --json f.lpt >dump || fail "dump"
	# (a child comes out of its parent's clone, and a new image out of the old one's execve)
	jq -r 'select(.kind == "call_begin" or .kind == "call_end") | select(.number_text | test("clone|fork|execve") | not)
		| "\(.stream) \(.kind) \(.number)"' dump |
		awk '$2 == "call_begin" {open[$1] = $3; n++; next}
			{if (!($1 in open) || open[$1] != $3) bad++; delete open[$1]}
			END {exit !(n > 3000 && bad <= n / 100)}' || fail "calls are not paired"
	jq -e -n '[inputs | select(.kind == "call_begin" and .number_text == "read") | .object_text // "none" | startswith("pipe")]
		| (map(select(.)) | length) >= 2900' dump >/dev/null || fail "reads without their pipe"
	jq -e -n '[inputs | select(.kind == "io_begin" or .kind == "call_begin")] | group_by(.stream)
		| map(map(.kind) | unique | length) | max == 2' dump >/dev/null || fail "two streams for one thread"
	for kind in context_begin timer_fire wait_at sample; do
		grep -q "\"kind\":\"$kind\"" dump || [[ $kind == wait_at ]] || fail "no $kind"
	done
}

# A thread that slept before the recording began is in the call that it slept in.
test_system_asleep() {
	as_root
	local reader
	mkfifo asleep.fifo && exec {hold}<>asleep.fifo
	cat <&"$hold" >asleep.out &
	reader=$!
	until grep -q '^0 ' "/proc/$reader/syscall"; do sleep 0.05; done
	record_system a.lpt --source=bpf --full -- sh -c 'sleep 0.3; echo x >asleep.fifo; sleep 0.1' || {
		kill "$reader"
		skip "$(grep -m 1 'does not show\|not used' record.err)"
	}
	kill "$reader"
	exec {hold}>&-
	longpole dump --json --definitions a.lpt >dump || fail "dump"
	jq -e -n --argjson tid "$reader" 'reduce inputs as $r ({};
			if $r.kind == "stream" and $r.tid == $tid then .stream = $r.stream
			elif .stream and $r.stream == .stream and .first == null then .first = $r else . end)
		| .first | .kind == "call_begin" and .number_text == "read" and .time_ns < 100000000' dump >/dev/null ||
		fail "the call that it slept in is not its first record"
}

# Each request of an io_uring: who submits it, of which file, whether a worker thread of the kernel gets it, who completes it.
test_system_io_uring() {
	as_root
	local source uring=$LONGPOLE_BUILD/tests/target/system/uring seen=0
	[[ -x $uring ]] || skip "$uring was not built"
	"$uring" --how=async --rounds=2 2>uring.err || { (($? == 77)) && skip "$(<uring.err)"; fail "$(<uring.err)"; }
	[[ -d /sys/kernel/tracing/events/io_uring/io_uring_complete ]] || skip "no tracepoint io_uring_complete"
	for source in bpf perf; do
		record_system u.lpt --source=$source --full -- "$uring" --how=async --rounds=100 --work-us=100 || continue
		seen=1
		longpole dump --json --definitions u.lpt >dump || fail "dump"
		# (others may use io_urings, too: ours is that of most completions)
		jq -n '[inputs | select(.kind | startswith("ring_"))] | group_by(.object) | max_by(length)' dump >ours
		jq -e 'map(.kind) | ((map(select(. == "ring_submit")) | length) | . >= 90 and . <= 101) and
			((map(select(. == "ring_async")) | length) >= 90) and ((map(select(. == "ring_complete")) | length) | . >= 90 and . <= 101)' ours >/dev/null ||
			fail "$source: not 100 requests: $(jq -c '[.[].kind] | group_by(.) | map({(.[0]): length})' ours)"
		jq -e '[.[] | select(.kind == "ring_submit") | .op_text == "read" and (.user == 0)] | all' ours >/dev/null || fail "$source: other requests"
		# a worker completes, so another stream than that which submits
		jq -e '([.[] | select(.kind == "ring_submit") | .stream] | unique) as $by |
			$by | length == 1' ours >/dev/null || fail "$source: submitted by several"
		jq -e '([.[] | select(.kind == "ring_submit") | .stream] | unique) as $by |
			[.[] | select(.kind == "ring_complete" and .result == 8 and (.stream | IN($by[]) | not))] | length >= 90' ours >/dev/null ||
			fail "$source: the submitter completes, not a worker"
		[[ $source == perf ]] || jq -e '[.[] | select(.kind == "ring_submit") | .file_text // "" | startswith("pipe")] | all' ours >/dev/null ||
			fail "$source: requests without their pipe"
		COLUMNS=200 expect 0 longpole queues --all u.lpt
		has out io_uring 'submissions of io_uring' 'work for threads of io_uring'
	done
	((seen)) || skip "$(grep -m 1 'does not show\|not used' record.err)"
}

# The recorder is stopped until the kernel's buffers must have run over: all is counted once and said, and the path is still as long as the time.
test_system_drops() {
	as_root
	cat >stop.py <<'PROGRAM'
import os, signal
recorder = os.getppid()
a, b = os.pipe(), os.pipe()
if os.fork() == 0:
    while os.read(a[0], 1) == b"x":
        os.write(b[1], b"x")
    os._exit(0)
def hand_over(n):
    for i in range(n):
        os.write(a[1], b"x"); os.read(b[0], 1)
hand_over(200)
os.kill(recorder, signal.SIGSTOP)
hand_over(20000)
os.kill(recorder, signal.SIGCONT)
hand_over(200)
os.write(a[1], b"q")
os.wait()
PROGRAM
	local source kind seen=0
	for source in bpf perf; do
		record_system d.lpt --source=$source --sample-hz=0 --buffer=1M -- python3 stop.py || continue
		seen=1
		grep -q 'caveat: .*(kernel_dropped)' record.err || fail "$source: $(tail -n 3 record.err)"
		for kind in report path queues; do
			expect 0 longpole $kind --json d.lpt
			# what was lost is the same number everywhere: the recorder's own
			sed -n 's/^longpole: caveat: \([0-9]*\) \([a-z_]*\).*/\2 \1/p' record.err | while read -r name n; do
				[[ $name == @(kernel_dropped|kernel_gap_ms|records_lost) ]] || continue
				jq -e --arg name "$name" --argjson n "$n" '.diagnostics | map(select(.name == $name and .count == $n)) | length == 1' out >/dev/null ||
					echo "$kind: not $n $name"
			done >differ
			[[ ! -s differ ]] || fail "$source: $(<differ)"
		done
		expect 0 longpole report d.lpt
		has out 'kernel events were dropped: the recorder did not read fast enough' 'ms of the recording kernel events were dropped'
		longpole report --json d.lpt | jq -e '.result | [.path[].path_ns] | add' >sum || fail "$source: report"
		longpole report --json d.lpt | jq -e --argjson sum "$(<sum)" '.result.elapsed_ns as $e | ($sum / $e - 1) | . < 0.001 and . > -0.001' >/dev/null ||
			fail "$source: the path is not as long as the time: $(<sum)"
		expect 0 longpole whatif --method=replay d.lpt scale running=-50%
		has out 'kernel events were dropped'
	done
	((seen)) || skip "$(grep -m 1 'does not show\|not used' record.err)"
}

test_system_alone() {
	as_root
	record_system a.lpt --for=1 || skip "$(grep -m 1 'does not show\|not used' record.err)"
	longpole dump --json --definitions a.lpt >dump || fail "dump"
	grep -q '"kind":"context"' dump || fail "no context is defined"
	grep -q '"kind":"group"' dump || fail "no process has a group"
	grep -q '"kind":"wake"' dump || fail "nobody woke anybody in a second"
}

# A user without rights gets a recording of the program, and is told why nothing else.
test_system_refused() {
	as_root
	((EUID == 0)) || skip "only root can give up rights"
	command -v setpriv >/dev/null || skip "no setpriv"
	chmod 777 .
	expect 0 setpriv --reuid 65534 --regid 65534 --clear-groups longpole record --system -o n.lpt true
	has err 'bpf not used' 'perf not used'
	expect 125 setpriv --reuid 65534 --regid 65534 --clear-groups longpole record --system -o o.lpt
	has err 'does not show us the whole system' 'run it as root'
}

# Into a static program no library can be loaded: the kernel shows its threads, and what that cannot show is said.
test_system_static() {
	as_root
	local mode
	cat >static.c <<'PROGRAM'
#include <pthread.h>
#include <unistd.h>
static int to[2], from[2];
static void *echo(void *unused)
{
	char c;
	while (read(to[0], &c, 1) == 1)
		write(from[1], &c, 1);
	return unused;
}
int main(void)
{
	char c = 0;
	pthread_t t;
	if (pipe(to) || pipe(from) || pthread_create(&t, 0, echo, 0))
		return 1;
	for (int i = 0; i < 5000; i++)
		if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
			return 1;
	close(to[1]);
	return pthread_join(t, 0) ? 1 : 7;
}
PROGRAM
	"${CC:-cc}" -O1 -static -pthread static.c -o static 2>/dev/null || skip "no static C library"
	for mode in --sched --full; do
		longpole record --system $mode -o static.lpt ./static >record.out 2>record.err
		(($? == 7)) || { grep -q 'statically linked' record.err && skip "$(grep -m 1 'not used' record.err)"; fail "$mode: $(tail -n 2 record.err)"; }
		expect 0 longpole dump --json --definitions static.lpt
		# its two threads wake each other, each time
		jq -r 'if .kind == "stream" and (.process_text // "" | startswith("static[")) then "stream \(.stream)" elif .kind == "wake" then "wake \(.stream) \(.woken)" else empty end' out |
			awk '$1 == "stream" {ours[$2] = 1} $1 == "wake" && $2 in ours && $3 in ours {n++} END {exit !(n >= 1000)}' ||
			fail "$mode: its threads do not wake each other"
		expect 0 longpole report --full static.lpt
		has out 'seen from outside only' 'THE PATH of static'
		! grep -q 'but not recorded' out || fail "$mode: it was recorded"
	done
	((EUID == 0)) && command -v setpriv >/dev/null || return 0
	chmod 777 .
	expect 125 setpriv --reuid 65534 --regid 65534 --clear-groups longpole record --system -o o.lpt ./static
	has err 'statically linked' 'record --system'
}

# What an exec with two user ids starts gets no library, and the kernel tells its beginning as its end.
test_started_with_two_user_ids() {
	as_root
	((EUID == 0)) || skip "needs root"
	expect 0 longpole record -o two.lpt python3 -c '
import os
if os.fork() == 0:
    os.setresuid(-1, 65534, 0)
    os.execv("/bin/sleep", ["sleep", "0.3"])
os.wait()'
	expect 0 longpole report two.lpt
	grep -q 'switches of processors were not recorded\|perf_event_open' out && skip "no events of the kernel"
	has out '1 program image was started but not recorded' 'blocked outside every recorded call'
}

test_system_usage() {
	as_root
	expect 125 longpole record --sched ladder
	has err 'need --system'
	expect 125 longpole record --system --sched --full ladder
	expect 125 longpole record --system --for=1 ladder
	expect 125 longpole record --system --for=0
	expect 125 longpole record --system --for=2h
	has err "'2h' is no time"
	expect 125 longpole record --system --for=0.0s
	expect 125 longpole record --system --for=99999999999999999999
	expect 2 longpole record --system --source=nothing ladder
}

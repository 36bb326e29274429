# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2016 # $work comes from run.sh; jq's variables are not the shell's
# stat.sh - longpole stat against what threads know of themselves (tests/target/stat_known.c).

known=$LONGPOLE_BUILD/tests/target/stat_known

# Each thread's line is: tid name ran_ns voluntary forced faults, just before its end.
test_stat_equals_what_threads_say() {
	expect 7 longpole stat --json -o stat.json "$known"
	is_json stat.json '.schema == "longpole/stat/1" and .result.exit_status == 7 and (.result.threads | length) == 4'
	is_json stat.json '.result.threads | all(.counted and .ended)'
	local tid rest ran voluntary forced faults nr=0
	while read -r tid rest; do
		read -r ran voluntary forced faults <<<"${rest#* }"
		[[ $rest == napper* ]] && read -r _ _ _ ran voluntary forced faults <<<"x $rest"
		nr=$((nr + 1))
		# what follows the thread's own line: its last instants, and a little waiting
		is_json stat.json ".result.threads[] | select(.tid == $tid) |
			.ran_ns >= $ran and .ran_ns < $ran + 20000000 and
			.forced_switches >= $forced and .minor_faults + .major_faults >= $faults and
			.minor_faults + .major_faults <= $faults + 40"
		# our own stops are switches, but not the program's: the thread still had them in its own count
		is_json stat.json ".result.threads[] | select(.tid == $tid) |
			.voluntary_switches <= $voluntary + 20 and .voluntary_switches >= $voluntary - 15"
	done < <(sed -E 's/^([0-9]+) (.*) ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+)$/\1 name \3 \4 \5 \6/' out)
	((nr == 3)) || fail "$nr threads said something"
	is_json stat.json '.result.threads[] | select(.name == "napper) 1 (x") | .voluntary_switches >= 95 and .ran_ns < 50000000'
	is_json stat.json '.result.threads[] | select(.name == "toucher") | .minor_faults >= 500'
	is_json stat.json '.result.threads[] | select(.name == "worker") | .ran_ns >= 50000000'
	is_json stat.json '.result.signals_passed_on >= 10'
}

# Of a tick or two nobody knows what was the kernel's; and one is not many.
test_stat_of_little() {
	expect 0 longpole stat true
	has err ' together (too few clock ticks to tell them apart), ' '; 1 stop to read them cost some'
	! grep -q 'kernel 0 ns' err || fail 'a zero that was not counted'
}

test_stat_phases() {
	expect 7 longpole stat --json -o stat.json "$known"
	is_json stat.json '.result.phases[] | select(.name == "busy") |
		.entered == 50 and .ran_ns >= 50000000 and .lasted_ns >= .ran_ns * 0.999 and (.open_at_end | not)'
	is_json stat.json '(.result.phases[] | select(.name == "busy") | .tid) as $tid |
		.result.threads[] | select(.tid == $tid) | .name == "worker"'
	is_json stat.json '[.result.phases[] | select(.name == "left open")] | length == 1'
	# a thread's phases, and what it did in none of them, are all that it did
	is_json stat.json '.result as $r | [$r.phases[] | select(.in_no_phase) | .tid] as $marked | ($marked | length) > 0 and all($marked[]; . as $tid |
		([$r.phases[] | select(.tid == $tid) | .ran_ns] | add) as $sum | [$r.threads[] | select(.tid == $tid) | .ran_ns][0] as $ran |
		$sum >= $ran and $sum < $ran * 1.2 + 5000000)'
	# the child of a fork counts for itself
	expect 0 longpole stat --json -o stat.json "$known" fork
	is_json stat.json '[.result.phases[] | select(.name == "both")] | length == 2 and (map(.pid) | unique | length) == 2'
	is_json stat.json '[.result.phases[] | select(.name == "both") | .ran_ns >= 2000000] | all'
	expect 137 longpole stat --json -o stat.json "$known" die
	is_json stat.json '.result.phases[] | select(.name == "never ends") | .open_at_end'
}

test_stat_is_transparent() {
	expect 0 longpole stat -o stat.txt sh -c 'echo out; echo err >&2; cat' <<<in
	[[ $(<out) == out && $(<err) == err ]] || fail "said '$(<out)' and '$(<err)'"
	expect 3 longpole stat -o stat.txt sh -c 'exit 3'
	expect 143 longpole stat -o stat.txt sh -c 'kill $$'
	expect 127 longpole stat /nonexistent
	expect 126 longpole stat /etc/passwd
	expect 125 longpole stat
	expect 0 longpole stat -- true
	has err 'true ran' 'next: '
	# a stopped program stays stopped until it is continued
	expect 0 longpole stat -o stat.txt bash -c '(sleep 0.2; kill -CONT $$) & kill -STOP $$; wait; exit 0'
}

test_stat_execs_and_children() {
	expect 0 longpole stat --json -o stat.json sh -c 'true; ls >/dev/null; exec sh -c "ls >/dev/null; exec sleep 0.05"'
	is_json stat.json '[.result.threads[] | select(.name == "ls")] | length == 2'
	is_json stat.json '[.result.threads[] | select(.name == "sleep")] | length == 1'
	# one that lives on is let go, and lives on
	expect 0 longpole stat --json -o stat.json sh -c '(sleep 2; echo alive >later) & exit 0'
	is_json stat.json '[.result.threads[] | select(.ended | not)] | length >= 1'
	for _ in {1..200}; do
		[[ -s later ]] && return
		sleep 0.1
	done
	fail "what lived on did not end well"
}

test_stat_static_program() {
	printf 'int main(void) { for (volatile int i = 0; i < 5000000; i++) ; return 4; }\n' >static.c
	"${CC:-cc}" -O1 -static static.c -o static 2>/dev/null || skip "no static libc"
	expect 4 longpole stat --json -o stat.json ./static
	is_json stat.json '.result.threads | length == 1 and .[0].ran_ns > 1000000'
}

# A program smaller than longpole: neither its memory nor its time and faults are those that longpole's child had before it became the program.
test_stat_small_program() {
	cat >small.c <<'EOF'
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
	char text[4096], *peak;
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = read(fd, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	peak = strstr(text, "VmHWM:") + 6;
	return write(1, peak, strcspn(peak, "k")) < 0;
}
EOF
	"${CC:-cc}" -O1 -static small.c -o small || skip "no static libc"
	expect 0 longpole stat --json -o small.json ./small
	jq -e '.result | has("threads_missed") and .threads_missed == 0 and (.threads | length) == 1' small.json >/dev/null || skip "no ptrace"
	local own_kb
	own_kb=$(<out)
	is_json small.json ".result | .max_rss_bytes >= ($own_kb - 200) * 1024 and .max_rss_bytes <= ($own_kb + 200) * 1024"
	is_json small.json '.result | .minor_faults - .threads[0].minor_faults | . >= 0 and . < 10'
	expect 0 longpole stat ./small
	has err 'the program, and those of its children'
	# a child that is larger than longpole and its parent
	expect 0 longpole stat --json -o large.json sh -c 'dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null; true'
	is_json large.json '.result.max_rss_bytes > 64 * 1048576'
}

test_stat_says_what_it_has_not() {
	expect 0 longpole stat --whole --json -o stat.json true
	is_json stat.json '.result.threads == [] and (.result.not_counted | any(.what == "threads"))'
	expect 0 longpole stat --json -e cycles -o stat.json true
	# counted, or null and why
	is_json stat.json '(.result.threads[0].events.cycles | type) as $t |
		if $t == "null" then (.result.not_counted | any(.what == "cycles")) else $t == "number" end'
	expect 125 longpole stat -e nonsense true
	has err "'nonsense' is no event"
	expect 125 longpole stat -e context-switches true
	expect 0 longpole stat -e list
	has out cycles instructions
	# traced already: it runs all the same
	command -v strace >/dev/null || return 0
	strace -f -o /dev/null longpole stat --json -o stat.json true >out 2>err || fail "under strace: exit status $?"
	is_json stat.json '.result.not_counted | any(.what == "threads")'
}

# Time in system calls: next to all of it in one program, next to none in the other. What a machine's
# host took meanwhile is in it, and not in what a thread ran.
test_stat_kernel_time() {
	as_root
	printf 'int main(void) { for (volatile long i = 0; i < 100000000; i++) ; return 0; }\n' >user.c
	"${CC:-cc}" -O1 user.c -o user || fail "user.c does not compile"
	expect 0 longpole stat -k --json -o stat.json ./user
	local why
	why=$(jq -r '.result.not_counted[] | select(.what == "system calls") | .why' stat.json)
	[[ -z $why ]] || skip "$why"
	is_json stat.json '.result.stolen_ns as $s | .result.threads[0] | (.system_call_ns - $s) * 10 < .ran_ns and .system_calls > 3'
	expect 0 longpole stat -k --json -o stat.json dd if=/dev/zero of=/dev/null bs=1M count=3000
	is_json stat.json '.result.stolen_ns as $s | .result.threads[0] | .system_call_ns * 10 > .ran_ns * 7 and .system_call_ns - $s <= .ran_ns * 1.05 and .system_calls >= 6000'
	# asleep in a call is not in it
	expect 0 longpole stat -k --json -o stat.json sleep 0.3
	is_json stat.json '.result | .threads[0].system_call_ns - .stolen_ns < 100000000'
	# the program's own reads of it: stat_known burns its time in clock_gettime
	expect 7 longpole stat -k --json -o stat.json "$known"
	is_json stat.json '.result.stolen_ns as $s | .result.phases[] | select(.name == "busy") | .system_call_ns > 0 and .system_call_ns - $s <= .ran_ns * 1.05'
	expect 125 longpole stat -k --whole true
}

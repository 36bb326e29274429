# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016 # $trace and $work come from run.sh
# locks.sh - longpole locks: its forms; the numbers are tested in unit/test_report_locks.c.

test_locks() {
	expect 0 longpole locks "$trace"
	head -n 1 out | grep -Eq '^mutex ladder_mutex is [0-9]+ % of the critical path \(observed\); held half as long' ||
		fail "first line: $(head -n 1 out)"
	has out '(static; ' 'acquisitions (dynamic)' 'halved' 'KNOWN BY' "longpole whatif $trace"
	[[ ! -s err ]] || fail "wrote to standard error"
	! sed 1d out | grep -v longpole | grep -E '^.{101,}' >&2 || fail "wider than COLUMNS"
	expect 0 longpole locks --site --threads --histogram "$trace"
	has out '  climb' 'THREADS' 'HOLDS' 'WAITS'
	expect 2 longpole locks --name=nosuch "$trace"
	has err 'no lock of this trace matches'
	expect 2 longpole locks --sort=nosuch "$trace"
}

test_locks_json() {
	expect 0 longpole locks --json "$trace"
	is_json out '.schema == "longpole/locks/1" and (.result.locks | length == 1)'
	is_json out '.result.locks[0] | .acquisitions == 3200 and .path_share > 0 and .halved_hold.predicted_speedup >= 1
		and .hold.count == 3200 and (.sites | length == 1)'
	is_json out '.result.totals | .static_locks == 1 and .threads_locking == 2 and .held_all_threads_ns > 0'
	is_json out '[.result.histograms.hold[].dynamic] | add == 3200'
	longpole locks --json "$trace" | cmp - out || fail "not the same bytes"
}

# All modes agree about what is counted; what a mode cannot know is absent.
test_locks_modes() {
	local mode
	for mode in count sampled holds stamps full; do
		expect 0 longpole locks -q --mode=$mode -o "$mode.lpt" -- ladder
		expect 0 longpole locks --json "$mode.lpt"
		is_json out '.result.locks | length == 1 and .[0].acquisitions == 3200'
		is_json out ".result.recorded_as == \"$mode\" and .result.floor_bare_ps > 0"
		cp out "$mode.json"
	done
	is_json count.json '.result.locks[0] | has("hold") or has("path_share") or has("convoys") | not'
	is_json sampled.json '.result.locks[0] | .held_estimated and .hold.count > 300 and .hold.count < 3200'
	is_json holds.json '.result.locks[0] | .hold.count == 3200 and (.held_estimated | not) and .held_standard_error_ns == 0 and (has("path_share") | not)'
	is_json holds.json '[.result.histograms.hold[].dynamic] | add == 3200'
	is_json holds.json '.result.totals | .held_all_threads_ns > 0 and .held_all_threads_ns <= .held_ns * 1.01'
	expect 0 longpole locks --histogram --threads holds.lpt
	has out 'each hold that ended was timed' 'with at least one lock held' 'of its time'
	grep -q 'HOLDS of the sample' out && fail "no sample was timed"
	is_json stamps.json '.result.locks[0] | has("path_share") and (has("lock_call") | not)'
	is_json full.json '.result.locks[0] | .lock_call.count == 3200 and .unlock_call.count == 3200'
	expect 3 longpole locks -q -o x.lpt -- sh -c 'exit 3'
	expect 125 longpole locks --
}

# Of a lock that is taken often fewer holds are timed, each for more: together they still stand for one in eight.
test_locks_weights() {
	expect 0 longpole locks -q --mode=sampled -o often.lpt -- ladder --rounds=20000 --section-units=1 --parallel-units=1
	expect 0 longpole locks --json often.lpt
	is_json out '.result.locks[0] | .acquisitions == 20000 and .hold.count > 2000 and .hold.count < 3000'
	is_json out '.result.locks[0] | .held_ns > 7 * .hold.total_ns and .held_ns < 10 * .hold.total_ns and .held_standard_error_ns > 0'
	is_json out '.result.locks[0] | .held_ns / (.acquisitions + .reacquisitions_after_wait) - .hold.mean_ns | fabs < 1'
	expect 0 longpole locks --histogram often.lpt
	has out 'HOLDS of the sample that was timed'
}

# A lock that is held while others are taken: its hold is timed, and theirs, and in a fork's child that of no lock which its parent took.
test_locks_held_long() {
	expect 0 longpole locks -q -o long.lpt -- "$LONGPOLE_BUILD/tests/target/held_long"
	expect 0 longpole locks --json --all long.lpt
	is_json out '[.result.locks[] | select(.lock | test("outer")) | .acquisitions, .hold.count] == [1, 1]'
	is_json out '[.result.locks[] | select(.lock | test("inner")) | .acquisitions] | add == 4 * 900'
	is_json out '[.result.locks[] | select(.lock | test("inner")) | .hold.count] | add | . > 500 and . < 750' # the first of 18 in each process, and one in eight
	is_json out '([.result.locks[] | select(.lock | test("outer")) | .hold.max_ns] | add) >=
		([.result.locks[] | select(.lock | test("inner")) | .hold.max_ns] | max)'
}

# Each hold is timed (holds), in whatever order locks are given up, up to 32 at once; one in a signal handler may be missed.
test_locks_held_each() {
	expect 0 longpole locks -q --mode=holds -o chain.lpt -- "$LONGPOLE_BUILD/tests/target/held_chain"
	expect 0 longpole locks --json --all chain.lpt
	is_json out '[.result.locks[] | select(.lock | test("node")) | .acquisitions, .hold.count] | add == 2 * 5000'
	is_json out '[.result.locks[] | select(.lock | test("deep")) | .acquisitions, .hold.count // 0] | add == 40 + 32'
	is_json out '[.result.locks[] | select(.lock | test("in_handler")) | .acquisitions - .hold.count | fabs < 3] | all'
	is_json out '.result.totals | .held_all_threads_ns > .held_ns / 40 and .held_all_threads_ns < .held_ns and .held_all_threads_ns < .cpu_ns * 2'
	expect 0 longpole locks -q --mode=holds -o long.lpt -- "$LONGPOLE_BUILD/tests/target/held_long"
	expect 0 longpole locks --json --all long.lpt
	is_json out '[.result.locks[] | select(.lock | test("outer")) | .acquisitions, .hold.count] == [1, 1]'
	is_json out '[.result.locks[] | select(.lock | test("inner")) | .acquisitions, .hold.count] | add == 2 * 4 * 900'
	is_json out '.result.totals.held_all_threads_ns as $any | [.result.locks[] | select(.lock | test("outer")) | .hold.max_ns] | all(. <= $any)'
}

# Semaphores, which are the locks of some interpreters: every token given, and the waits for one.
test_locks_semaphores() {
	local mode
	for mode in sampled stamps; do
		expect 0 longpole locks -q --mode=$mode -o sem.lpt -- "$LONGPOLE_BUILD/tests/target/sem_pipeline"
		expect 0 longpole locks --json --no-replay sem.lpt
		is_json out '[.result.condition_variables[] | select(.condition_variable | test("^semaphore (parsed|filtered)[.]")) | .signals] == [2500, 2500, 2500, 2500]'
		is_json out '[.result.condition_variables[] | select(.condition_variable | test("^semaphore")) | .waits > 0 and .wait.total_ns > 0] | any'
		is_json out '[.result.condition_variables[] | .timeouts, .broadcasts] | add == 0'
	done
}

# Locks in allocated memory are called after who made them, in tables and in single records.
test_locks_heap() {
	local mode name want
	for mode in sampled stamps; do
		expect 0 longpole locks -q --mode=$mode -o heap.lpt -- "$LONGPOLE_BUILD/tests/target/heap_lock" 20
		expect 0 longpole locks --json --no-replay heap.lpt
		while read -r want name; do
			is_json out "[.result.locks[] | select(.lock | test(\"^(mutex|spin lock) $name\")) | .acquisitions] == [$want]" ||
				fail "$mode: $(jq -c '[.result.locks[] | [.lock, .acquisitions]]' out)"
		done <<-'END'
			60 made by session_new .heap_lock.c:[0-9]+.$
			40 in memory of cache_new .heap_lock.c:[0-9]+.$
			60 in memory of buckets_new .heap_lock.c:[0-9]+.$
			80 made by lock_setup .heap_lock.c:[0-9]+. in memory of table_new .heap_lock.c:[0-9]+.$
			100 made by queue_new .heap_lock.c:[0-9]+.$
			120 made by pool_new .heap_lock.c:[0-9]+.$
			140 in memory of pool_alloc[a-z.0-9]* .heap_lock.c:[0-9]+., first taken by (main|take) .heap_lock.c:[0-9]+.$
			160 made by job_new .heap_lock.c:[0-9]+.$
			160 made by flag_new .heap_lock.c:[0-9]+.$
			41 made by first_life .heap_lock.c:[0-9]+. in memory of main .heap_lock.c:[0-9]+. and others$
		END
		is_json out '[.result.condition_variables[] | select(.condition_variable | test("made by job_new")) | .members, .broadcasts] == [8, 8]'
	done
	expect 0 longpole locks -q --no-heap -o heap.lpt -- "$LONGPOLE_BUILD/tests/target/heap_lock" 20
	expect 0 longpole locks --json heap.lpt
	is_json out '[.result.locks[].lock | select(test("in memory of"))] == []'
}

# A static program that was linked with liblongpole-wrap.a says the same as the dynamic one; another one is told how.
test_locks_static() {
	as_root
	local program kind options records=$LONGPOLE_BUILD/src/preload
	for program in prodcons rwlock; do
		for kind in -no-pie -static -static-pie; do
			options=("$kind")
			[[ $kind == -no-pie ]] || options+=("-L$records" "@$records/wrap.opts")
			"${CC:-cc}" -O2 -g -pthread -I"$LONGPOLE_SOURCE/include" "$LONGPOLE_SOURCE/tests/target/$program.c" -o "$program" \
				"${options[@]}" 2>link.err || skip "cannot link: $(head -n 1 link.err)"
			[[ ! -s link.err ]] || fail "the linker says $(head -n 1 link.err)"
			expect 0 longpole record -q --sample-hz=0 --no-switches -o static.lpt -- "./$program"
			expect 0 longpole locks --json --no-replay static.lpt
			jq -c '.result | [.locks[] | [.lock, .acquisitions]], [.condition_variables[]? | [.name, .signals, .broadcasts]]' \
				out >"$program$kind.counts"
			cmp -s "$program-no-pie.counts" "$program$kind.counts" ||
				fail "$program $kind: $(<"$program$kind.counts"), not $(<"$program-no-pie.counts")"
		done
	done
	expect 125 longpole locks -q -o static.lpt -- ./rwlock
	has err 'which cannot count' 'longpole locks --mode=stamps'
	"${CC:-cc}" -O2 -static -pthread "$LONGPOLE_SOURCE/tests/target/rwlock.c" -I"$LONGPOLE_SOURCE/include" -o plain
	expect 125 longpole record -q -o static.lpt -- ./plain
	has err 'statically linked' '/wrap.opts' 'record --system'
}

test_calls() {
	expect 0 longpole calls -o calls.lpt -- ladder
	has err 'of the processor time is in library calls' 'KNOWN BY' 'NOT SEEN'
	expect 0 longpole calls --json calls.lpt
	is_json out '[.result.functions[] | select(.function == "pthread_mutex_lock") | .calls] == [3200]'
	is_json out '.result.categories.pthreads.calls >= 6400'
	expect 2 longpole calls "$trace"
	has err 'no counts of library calls' 'for another question'
	! grep -qF 'longpole queues' err || fail 'advice that does not help'
}

# What memchr() looked at, not what it was allowed to.
test_calls_bytes() {
	cat >find.c <<'EOF'
#include <string.h>
static char text[1 << 20];
int main(void)
{
	unsigned long found = 0;
	void *(*volatile find)(const void *, int, size_t) = memchr;
	text[9] = 'x';
	for (int i = 0; i < 1000; i++)
		found += find(text, 'x', sizeof text) == text + 9;
	return found != 1000 || find(text, 'y', 100);
}
EOF
	"${CC:-cc}" -O1 find.c -o find
	expect 0 longpole calls -o find.lpt -- ./find
	expect 0 longpole calls --json find.lpt
	is_json out '[.result.functions[] | select(.function == "memchr") | .calls, .bytes] == [1001, 10100]'
}

# The names that large files and fortification make of functions, those with any number of arguments, and what the recorder itself wraps:
# the program is answered as ever, and each call is counted.
test_calls_names() {
	cat >names.c <<'EOF'
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define MUST(what) do { if (!(what)) { fprintf(stderr, "not so: %s\n", #what); exit(1); } } while (0)
static void *nothing(void *argument)
{
	return argument;
}
int main(int argc, char **argv)
{
	struct stat s;
	pthread_t t;
	int status, volatile_flags = argc > 1 ? O_WRONLY : O_RDONLY, number = 0;
	char *text = NULL, *line = NULL, word[8] = "";
	size_t room = 0;
	(void)argv;
	umask(0);
	int fd = open("names.txt", O_CREAT | O_TRUNC | O_RDWR, 0640);
	MUST(fd >= 0 && fstat(fd, &s) == 0 && (s.st_mode & 07777) == 0640);
	for (int i = 0; i < 20; i++) {
		errno = 0;
		MUST(open("no such file", volatile_flags) == -1 && errno == ENOENT);
		errno = 0;
		MUST(ioctl(fd, TIOCGWINSZ, word) == -1 && errno == ENOTTY);
	}
	MUST(write(fd, "seven 7\nx\n", 10) == 10 && lseek(fd, 0, SEEK_SET) == 0);
	MUST(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	MUST(fstatat(AT_FDCWD, "names.txt", &s, 0) == 0 && s.st_size == 10);
	FILE *f = fdopen(fd, "r");
	MUST(f && getline(&line, &room, f) == 8 && getc(f) == 'x' && ungetc('y', f) == 'y' && fgetc(f) == 'y');
	MUST(sscanf(line, "%7s %d", word, &number) == 2 && number == 7 && !strcmp(word, "seven"));
	MUST(asprintf(&text, "%s-%d", word, number) == 7 && !strcmp(text, "seven-7"));
	char *p = mmap(NULL, 1 << 14, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q = p + (1 << 13);
	MUST(p != MAP_FAILED && mremap(p, 1 << 12, 1 << 12, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	MUST(syscall(SYS_getppid) == getppid());
	errno = 0;
	MUST(syscall(SYS_close, -1) == -1 && errno == EBADF);
	long child = syscall(SYS_fork);
	if (!child)
		_exit(3);
	MUST(waitpid((pid_t)child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
	MUST(system("exit 4") == 4 << 8);
	for (int i = 0; i < 5; i++) {
		void *result;
		MUST(pthread_create(&t, NULL, nothing, &t) == 0 && pthread_join(t, &result) == 0 && result == &t);
	}
	return fclose(f);
}
EOF
	"${CC:-cc}" -O2 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_FORTIFY_SOURCE=2 -pthread names.c -o names
	expect 0 longpole calls -q -o names.lpt -- ./names
	expect 0 longpole calls --json names.lpt
	is_json out '[.result.functions[] | {(.function): .calls}] | add
		| .open64 == 1 and .__open64_2 == 20 and .ioctl == 20 and .lseek64 == 1 and .fstatat64 == 1 and .fdopen == 1 and .ungetc == 1
		and (.getline // .__getdelim) == 1 and .__isoc99_sscanf == 1 and .__asprintf_chk == 1 and .mmap64 == 1 and .mremap == 1
		and .syscall == 2 and .waitpid == 1 and .system == 1 and .pthread_create == 5 and .pthread_join == 5'
}

# Every second read is of the end: the one in 8 whose processor time is measured must not all be of one kind.
test_calls_pairs() {
	cat >pairs.c <<'EOF'
#include <fcntl.h>
#include <unistd.h>
static char data[1 << 17];
__attribute__((noinline)) static long paired(int zero, int null, int i)
{
	return read(i % 2 ? zero : null, data, sizeof data) + 1;
}
__attribute__((noinline)) static long single(int zero)
{
	return read(zero, data, sizeof data) + 1;
}
int main(void)
{
	int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_RDONLY);
	long sum = 0;
	for (int i = 0; i < 6000; i++)
		sum += paired(zero, null, i) + (i % 2 ? single(zero) : 0);
	return sum != 9000 + 6000 * (1l << 17);
}
EOF
	"${CC:-cc}" -O1 -g pairs.c -o pairs
	expect 0 longpole calls -q -o pairs.lpt -- ./pairs
	expect 0 longpole calls --json pairs.lpt
	is_json out '[.result.functions[] | select(.function == "read").places[] | {(.where | split(" ")[0]): .cpu_ns}] | add
		| .paired > 0.5 * .single and .paired < 1.6 * .single'
}

# A call in 32 is timed: neither the first, for which all is cold, nor a rhythm of 32 may speak for the others.
test_calls_sample() {
	cat >lengths.c <<'EOF'
#include <string.h>
static char text[100001];
__attribute__((noinline)) static size_t cold(size_t (*length)(const char *), int i)
{
	return length(text + (i ? 100000 : 0)) + 1;
}
__attribute__((noinline)) static size_t rhythm(size_t (*length)(const char *), int i)
{
	return length(text + (i % 32 ? 100000 : 0)) + 1;
}
__attribute__((noinline)) static size_t shifted(size_t (*length)(const char *), int i)
{
	return length(text + (i % 32 == 16 ? 0 : 100000)) + 1;
}
int main(void)
{
	size_t (*volatile length)(const char *) = strlen, sum = 0;
	memset(text, 'x', 100000);
	for (int i = 0; i < 64; i++)
		sum += cold(length, i);
	for (int i = 0; i < 32000; i++)
		sum += rhythm(length, i) + shifted(length, i);
	return sum != 64064 + 2001ul * 100000;
}
EOF
	"${CC:-cc}" -O1 -g lengths.c -o lengths
	expect 0 longpole calls -q -o lengths.lpt -- ./lengths
	expect 0 longpole calls --json lengths.lpt
	is_json out '[.result.functions[] | select(.function == "strlen").places[] | {(.where | split(" ")[0]): .}] | add
		| .cold.wall_ns < 8 * .cold.max_ns and .rhythm.wall_ns < 4 * .shifted.wall_ns and .shifted.wall_ns < 4 * .rhythm.wall_ns'
}

# What is too short for the clock takes time all the same; of what is longer, the estimate is what the program measures itself.
test_calls_short() {
	cat >short.c <<'EOF'
#include <stdio.h>
#include <string.h>
#include <time.h>
static char text[20001];
static double cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
__attribute__((noinline)) static size_t brief(size_t (*length)(const char *), int n)
{
	size_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += length(text + 19990);
	return sum;
}
__attribute__((noinline)) static size_t longer(size_t (*length)(const char *), int n)
{
	size_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += length(text);
	return sum;
}
int main(void)
{
	size_t (*volatile length)(const char *) = strlen, sum;
	memset(text, 'x', 20000);
	sum = brief(length, 1000000);
	double begin_ns = cpu_ns();
	sum += longer(length, 60000);
	printf("%.0f\n", cpu_ns() - begin_ns);
	return sum == 0;
}
EOF
	"${CC:-cc}" -O1 -g short.c -o short
	expect 0 longpole calls -q -o short.lpt -- ./short
	local own_ns
	own_ns=$(<out)
	expect 0 longpole calls short.lpt
	has out 'a ~ are estimates'
	grep -q '^strlen  *1,060,000 .* ~' out || fail "strlen's time is not marked as an estimate"
	expect 0 longpole calls --json short.lpt
	is_json out '[.result.functions[] | select(.function == "strlen").places[] | {(.where | split(" ")[0]): .}] | add
		| .brief.is_estimate and .brief.cpu_ns > 100000 and .longer.cpu_ns > 0.5 * '"$own_ns"' and .longer.cpu_ns < 2 * '"$own_ns"
}

# A thread that waits in the kernel for a stream's other end, for a stream that another thread has,
# or for a lock, has no processor.
test_calls_waits() {
	cat >waits.c <<'EOF'
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static FILE *in, *shared, *out;
static void *reader(void *unused)
{
	pthread_rwlock_rdlock(&lock);
	pthread_rwlock_unlock(&lock);
	return unused;
}
static void *writer(void *unused)
{
	pthread_rwlock_wrlock(&lock);
	pthread_rwlock_unlock(&lock);
	return unused;
}
static void *gets_line(void *unused)
{
	char line[100];
	return fgets(line, sizeof line, in) ? unused : NULL;
}
static void *gets_char(void *unused)
{
	return getc(shared) == EOF ? unused : NULL;
}
static void *puts_line(void *unused)
{
	fwrite("xy\n", 1, 3, out);
	return unused;
}
int main(void)
{
	pthread_t t[5];
	int p[2], q[2];
	if (pipe(p) || pipe(q))
		return 1;
	in = fdopen(p[0], "r");
	shared = fdopen(q[0], "r");
	out = fopen("/dev/null", "w");
	pthread_rwlock_wrlock(&lock);
	flockfile(out);
	pthread_create(&t[0], NULL, reader, NULL);
	pthread_create(&t[1], NULL, writer, NULL);
	pthread_create(&t[2], NULL, gets_line, NULL);
	pthread_create(&t[3], NULL, gets_char, NULL);
	pthread_create(&t[4], NULL, puts_line, NULL);
	usleep(300000);
	pthread_rwlock_unlock(&lock);
	funlockfile(out);
	if (write(p[1], "a\n", 2) != 2 || write(q[1], "b", 1) != 1)
		return 1;
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], NULL);
	return 0;
}
EOF
	"${CC:-cc}" -O1 -g waits.c -o waits -pthread
	expect 0 longpole calls -q -o waits.lpt -- ./waits
	expect 0 longpole calls --json waits.lpt
	local name
	for name in fgets getc fwrite pthread_rwlock_rdlock; do
		is_json out "[.result.functions[] | select(.function == \"$name\")][0] | .wall_ns > 50000000 and .cpu_ns < .wall_ns / 4"
	done
	is_json out '[.result.functions[] | select(.function == "pthread_rwlock_wrlock")][0] | .calls == 2 and .wall_ns > 50000000 and .cpu_ns < .wall_ns / 4'
	is_json out '.result.all.cpu_ns < .result.all.wall_ns / 4'
}

# Calls that returned an error, in each of the ways to say so, and what only looks like one.
test_calls_failed() {
	cat >failed.c <<'EOF'
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_barrier_t b;
	sem_t s;
	char line[10];
	int wrong = 0;
	pthread_mutex_lock(&m);
	for (int i = 0; i < 7; i++)
		wrong += pthread_mutex_trylock(&m) != EBUSY;
	for (int i = 0; i < 3; i++)
		wrong += open("/no such file", O_RDONLY) != -1 || errno != ENOENT;
	for (int i = 0; i < 2; i++)
		wrong += read(-1, line, 1) != -1 || errno != EBADF;
	wrong += waitpid(-1, NULL, 0) != -1 || errno != ECHILD;
	pthread_barrier_init(&b, NULL, 1);
	pthread_barrier_wait(&b);
	sem_init(&s, 0, 0);
	wrong += sem_trywait(&s) != -1 || errno != EAGAIN;
	FILE *end = fopen("/dev/null", "r"), *directory = fopen("/", "r"), *full = fopen("/dev/full", "w");
	wrong += fgets(line, sizeof line, end) != NULL;
	wrong += fgets(line, sizeof line, directory) != NULL || errno != EISDIR;
	wrong += fopen("/no such file", "r") != NULL || errno != ENOENT;
	setvbuf(full, NULL, _IONBF, 0);
	wrong += fputs("many", full) != EOF || errno != ENOSPC;
	DIR *d = opendir(".");
	while (readdir(d))
		;
	return wrong;
}
EOF
	"${CC:-cc}" -O1 -g -fno-builtin failed.c -o failed -pthread
	expect 0 longpole calls -q -o failed.lpt -- ./failed
	expect 0 longpole calls --all failed.lpt
	grep -q '^pthread_mutex_trylock  *7  *7 ' out || fail "trylock's 7 failed calls are not in the table"
	grep -q '^pthread_mutex_lock  *1  *- ' out || fail "pthread_mutex_lock failed"
	expect 0 longpole calls --json failed.lpt
	is_json out '[.result.functions[] | select(.failed_calls > 0) | {(.function): [.failed_calls, .last_errno]}] | add == {
		pthread_mutex_trylock: [7, "EBUSY"], open: [3, "ENOENT"], read: [2, "EBADF"], waitpid: [1, "ECHILD"], sem_trywait: [1, "EAGAIN"],
		fgets: [1, "EISDIR"], fopen: [1, "ENOENT"], fputs: [1, "ENOSPC"]}'
	is_json out '.result.categories.pthreads.failed_calls == 8 and .result.all.failed_calls == 17'
}

# Where operations are only counted: a condition variable without a symbol has the same name in each run, what is not measured has no
# key, a lock that could not be taken was not free, and a thread that nobody ended lived as long as the program.
test_locks_counted() {
	local names=() i
	cat >quiet.c <<'EOF'
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wakened = PTHREAD_COND_INITIALIZER;
static int waits, ready, nr_busy;
static void *sleeper(void *unused)
{
	pthread_mutex_lock(&lock);
	for (waits = 1; !ready;)
		pthread_cond_wait(&wakened, &lock);
	pthread_mutex_unlock(&lock);
	return unused;
}
static void *trier(void *unused)
{
	for (int i = 0; i < 3; i++)
		nr_busy += pthread_mutex_trylock(&lock) != 0;
	return unused;
}
int main(int argc, char **argv)
{
	pthread_t t;
	(void)argv;
	pthread_mutex_lock(&lock);
	pthread_create(&t, NULL, argc == 2 ? trier : sleeper, NULL);
	if (argc == 2)
		return pthread_join(t, NULL) || nr_busy != 3;
	while (!waits) {
		pthread_mutex_unlock(&lock);
		sched_yield();
		pthread_mutex_lock(&lock);
	}
	if (argc == 3)
		return 0;
	ready = 1;
	pthread_cond_signal(&wakened);
	pthread_mutex_unlock(&lock);
	return pthread_join(t, NULL);
}
EOF
	"${CC:-cc}" -O1 -s -pthread quiet.c -o quiet
	for i in 1 2; do
		expect 0 longpole locks -q --mode=count -o "quiet$i.lpt" -- ./quiet
		expect 0 longpole locks --json "quiet$i.lpt"
		is_json out '.result.condition_variables | length == 1 and .[0].wait.count > 0 and (.[0].wait | has("max_ns") | not)'
		names+=("$(jq -r '.result.condition_variables[].condition_variable' out)")
	done
	[[ ${names[0]} == "${names[1]}" && ${names[0]} == 'condition variable quiet+0x'* ]] || fail "names: ${names[*]}"
	expect 0 longpole locks -q --mode=count -o quiet.lpt -- ./quiet try
	has err 'No lock was waited for: 1 kind of lock; 3 tries to take one without waiting failed (counted).'
	expect 0 longpole locks -q --mode=count -o quiet.lpt -- ./quiet is left
	expect 0 longpole locks --json quiet.lpt
	is_json out '.result.threads | length == 2 and all(.[]; .alive_ns > 0)'
}

# read() of zeros is the kernel's, filling memory the program's.
test_calls_kernel() {
	as_root
	expect 0 longpole calls -q -k -o calls.lpt -- dd if=/dev/zero of=/dev/null bs=1M count=300
	if grep -q 'no time inside of system calls' err || [[ $(longpole calls --json calls.lpt | jq -r .result.kernel_time_by) == none ]]; then
		skip "no BPF: $(longpole calls -k -o x.lpt -- true 2>&1 | grep -m1 'no time inside')"
	fi
	expect 0 longpole calls --json calls.lpt
	is_json out '[.result.functions[] | select(.function == "read")][0] | .kernel_measured_calls >= 300
		and .kernel_ns > .user_ns and .kernel_ns <= .cpu_ns'
	expect 0 longpole calls -q -o calls.lpt -- dd if=/dev/zero of=/dev/null bs=64K count=20
	has err 'not told from user time'
	expect 0 longpole calls --json calls.lpt
	is_json out '.result.kernel_time_by == "none" and ([.. | objects | select(has("kernel_ns"))] == [])'
}

# What the kernel counts for the processor: each page that is touched first is a fault, in user space where the program's memset() touches it,
# in the kernel where its read() does.
test_calls_events() {
	cat >faults.c <<'EOF'
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
enum { PAGE = 4096, LARGE = 1000, SMALL = 640, READ = 64, OWN = 300 };
static void *(*volatile fill)(void *, int, size_t) = memset;
static char *fresh(size_t pages)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, pages * PAGE, MADV_NOHUGEPAGE);
	return p;
}
static void *work(void *unused)
{
	int fd = open("/dev/zero", O_RDONLY);
	char *large = fresh(LARGE), *small = fresh(SMALL), *in = fresh(READ), *own = fresh(OWN);
	fill(large, 1, LARGE * PAGE);
	for (int i = 0; i < SMALL; i++)
		fill(small + i * PAGE, 1, PAGE);
	for (int i = 0; i < READ; i++)
		if (read(fd, in + i * PAGE, PAGE) != PAGE)
			return (void *)&fill;
	for (int i = 0; i < OWN; i++)
		((volatile char *)own)[i * PAGE] = 1;
	close(fd);
	for (int i = 0; i < 9000; i++) /* nothing new is touched */
		fill(small + i % SMALL * PAGE, 2, 64);
	return unused;
}
int main(void)
{
	pthread_t thread;
	void *bad = &thread;
	int before = open("/dev/null", O_RDONLY);
	close(before);
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, &bad);
	pid_t child = fork();
	if (!child)
		_exit(work(NULL) != NULL);
	int status = 1;
	waitpid(child, &status, 0);
	return bad != NULL || status != 0 || work(NULL) != NULL || open("/dev/null", O_RDONLY) != before; /* its own numbers, as ever */
}
EOF
	"${CC:-cc}" -O1 -pthread faults.c -o faults
	if ! longpole calls -q -e page-faults -o faults.lpt -- ./faults 2>err; then
		grep -q 'cannot be counted' err && skip "no perf events: $(grep -m1 'cannot be counted' err)"
		fail "$(cat err)"
	fi
	expect 0 longpole calls --json faults.lpt
	# three times: in a thread, in a child, in the program
	is_json out '[.result.functions[] | select(.function == "memset")][0] | .events.user.counts["page-faults"] as $n
		| .calls == 3 * 9641 and $n >= 3 * 1640 and $n < 3 * 1640 + 40'
	if [[ $(jq '.result.program_events.kernel' out) != null ]]; then
		is_json out '[.result.functions[] | select(.function == "read")][0].events | .kernel.counts["page-faults"] == 3 * 64 and .user.counts["page-faults"] < 30'
		is_json out '[.result.functions[] | select(.function == "memset")][0].events.kernel.counts["page-faults"] == 0'
	fi
	is_json out '.result.program_events.user | .counts["page-faults"] >= 3 * 1940 and .own_code.counts["page-faults"] >= 3 * 300
		and .own_code.counts["page-faults"] < 3 * 300 + 500'
	expect 0 longpole calls faults.lpt
	has out 'category, user space' 'the whole program' 'faults/call'
	expect 2 longpole calls -e nonsense -- ./faults
	has err "'nonsense' is no event"
	expect 2 longpole calls -e page-faults,page-faults,page-faults,page-faults,page-faults -- ./faults
	has err 'from 1 to 4 events'
	expect 0 longpole calls -e list
	has out 'L1-icache-load-misses' 'page-faults'
	touch there
	longpole calls -q -e misses -o misses.lpt -- rm there 2>err || true
	if grep -q 'cannot be counted' err; then
		has err 'cycles cannot be counted: there is no such counter here'
		[[ -e there ]] || fail 'the program ran all the same'
	else
		expect 0 longpole calls --json misses.lpt
		is_json out '.result.program_events.user | .cycles_per_instruction > 0.05 and .cycles_per_instruction < 50'
	fi
}

# What is counted while a mutex is held is of its critical section: two pages are touched first in each hold of one, a page is filled by the
# kernel in each hold of the other; in a third, nothing; and much where none is held.
test_locks_events() {
	cat >held.c <<'EOF'
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { PAGE = 4096, ROUNDS = 2000 };
static pthread_mutex_t toucher = PTHREAD_MUTEX_INITIALIZER, reader = PTHREAD_MUTEX_INITIALIZER, quiet = PTHREAD_MUTEX_INITIALIZER;
static volatile char *fresh(size_t pages)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, pages * PAGE, MADV_NOHUGEPAGE);
	return p;
}
static void *work(void *unused)
{
	volatile char *two = fresh(2 * ROUNDS), *in = fresh(ROUNDS), *own = fresh(5 * ROUNDS);
	int fd = open("/dev/zero", O_RDONLY), bad = 0;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&toucher);
		two[2 * i * PAGE] = two[(2 * i + 1) * PAGE] = 1;
		pthread_mutex_lock(&quiet); /* (inside) */
		pthread_mutex_unlock(&quiet);
		pthread_mutex_unlock(&toucher);
		pthread_mutex_lock(&reader);
		bad += read(fd, (char *)in + i * PAGE, PAGE) != PAGE;
		pthread_mutex_unlock(&reader);
		for (int k = 0; k < 5; k++)
			own[(5 * i + k) * PAGE] = 1;
	}
	close(fd);
	return bad ? &toucher : unused;
}
int main(void)
{
	pthread_t thread;
	void *bad = &thread;
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, &bad);
	return bad != NULL || work(NULL) != NULL;
}
EOF
	"${CC:-cc}" -O1 -pthread held.c -o held
	if ! longpole locks -q -e page-faults -o held.lpt -- ./held 2>err; then
		grep -q 'cannot be counted' err && skip "no perf events: $(grep -m1 'cannot be counted' err)"
		fail "$(cat err)"
	fi
	expect 0 longpole locks --json --no-replay held.lpt
	local of='.result.locks[] | select(.lock | test("toucher|reader|quiet"; "x")) | .acquisitions == 4000'
	is_json out "[$of] | length == 3 and all"
	is_json out '[.result.locks[] | select(.lock | test("toucher"))][0].events.held.user
		| .measured_calls > 100 and (.counts["page-faults"] / .measured_calls | . >= 1.99 and . < 2.05)'
	is_json out '[.result.locks[] | select(.lock | test("quiet"))][0].events.held.user | .counts["page-faults"] / .measured_calls < 0.02'
	is_json out '[.result.locks[] | select(.lock | test("reader"))][0].events | .held.user.counts["page-faults"] / .held.user.measured_calls < 0.02
		and (.held.kernel == null or (.held.kernel | .counts["page-faults"] / .measured_calls | . >= 0.98 and . < 1.02))'
	is_json out '[.result.locks[] | select(.lock | test("toucher"))][0].events.taking.user | .measured_calls > 20 and .counts["page-faults"] / .measured_calls < 0.1'
	expect 0 longpole locks --no-replay held.lpt
	has out 'while it is held, user space' 'taking it while free, user space' 'faults'
	expect 2 longpole locks -e page-faults --mode=holds -- ./held
	has err 'mode=sampled'
}

# In memory that nobody allocated or initialised by a call, a condition variable or semaphore is called after the function that waits for it.
test_locks_cond_name() {
	cat >nameless.c <<'EOF'
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	int nr;
};
__attribute__((noinline)) static void queue_pop(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	while (!q->nr)
		pthread_cond_wait(&q->filled, &q->lock);
	pthread_mutex_unlock(&q->lock);
}
static void *pop(void *q)
{
	queue_pop(q);
	return NULL;
}
int main(void)
{
	struct queue *q = mmap(NULL, sizeof *q, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t t;
	pthread_create(&t, NULL, pop, q);
	usleep(100000);
	pthread_mutex_lock(&q->lock);
	q->nr = 1;
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
	return pthread_join(t, NULL);
}
EOF
	"${CC:-cc}" -O1 -g nameless.c -o nameless -pthread
	local mode
	for mode in count sampled stamps; do
		expect 0 longpole record -q --sample-hz=0 --locks=$mode -o nameless.lpt -- ./nameless
		expect 0 longpole locks --no-replay --json nameless.lpt
		is_json out '[.result.condition_variables[].condition_variable] | length == 1 and (.[0] | startswith("condition variable of queue_pop"))'
	done
}

# Waits that were given up, readers, and a lock that its own thread takes again: in each mode, and in the sums of --name.
test_locks_outcomes() {
	cat >outcomes.c <<'EOF'
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER, again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static void *give_up(void *unused)
{
	for (int i = 0; i < 5; i++)
		pthread_mutex_trylock(&taken);
	for (int i = 0; i < 3; i++) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 20000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_mutex_timedlock(&taken, &until);
	}
	return unused;
}
int main(void)
{
	pthread_t t;
	pthread_mutex_lock(&taken);
	pthread_create(&t, NULL, give_up, NULL);
	pthread_join(t, NULL);
	pthread_mutex_unlock(&taken);
	for (int i = 0; i < 4; i++) {
		pthread_mutex_lock(&again);
		for (int k = 0; k < 3; k++)
			pthread_mutex_lock(&again);
		usleep(10000);
		for (int k = 0; k < 3; k++)
			pthread_mutex_unlock(&again);
		pthread_mutex_unlock(&again);
	}
	for (int i = 0; i < 6; i++) {
		pthread_rwlock_rdlock(&shared);
		pthread_rwlock_unlock(&shared);
	}
	pthread_rwlock_wrlock(&shared);
	pthread_rwlock_unlock(&shared);
	return 0;
}
EOF
	"${CC:-cc}" -O1 -g outcomes.c -o outcomes -pthread
	local mode
	for mode in sampled holds stamps; do
		expect 0 longpole record -q --sample-hz=0 --locks=$mode -o $mode.lpt -- ./outcomes
		COLUMNS=200 expect 0 longpole locks --no-replay $mode.lpt
		grep -q '^lock .* readers .* failed ' out || fail "no columns of readers and failed in $mode"
		grep -q '^rwlock shared  *7  *6 ' out || fail "6 of 7 acquisitions are readers' in $mode"
		expect 0 longpole locks --no-replay --json $mode.lpt
		is_json out '[.result.locks[] | select(.lock == "mutex taken")][0] | .failed == 8 and .wait.count == 3 and .wait.total_ns > 50000000'
		is_json out '.result.totals.wait_all_threads_ns > 50000000'
		expect 0 longpole locks --no-replay --json --name='rwlock *' $mode.lpt
		is_json out '.result.totals | .acquisitions == 7 and .static_locks == 1 and .wait_all_threads_ns == 0 and (has("held_all_threads_ns") | not)'
	done
	expect 0 longpole locks --no-replay --json stamps.lpt
	is_json out '[.result.locks[] | select(.lock == "mutex again")][0] | .acquisitions == 16 and .nested_acquisitions == 12
		and .hold.count == 4 and .held_ns == .hold.total_ns and (.held_estimated | not)'
	expect 2 longpole diff sampled.lpt -- stamps.lpt
	has err 'sampled.lpt was recorded with --locks=sampled and stamps.lpt with --locks=stamps'
	expect 2 longpole diff sampled.lpt holds.lpt -- holds.lpt
	expect 0 longpole diff holds.lpt -- holds.lpt
}

test_diff() {
	local i
	for i in 1 2 3 4 5 6; do
		ladder --rounds=400 >/dev/null
		expect 0 longpole record -q --sample-hz=0 -o "a$i.lpt" ladder --rounds=400
		expect 0 longpole record -q --sample-hz=0 -o "b$i.lpt" ladder --rounds=800
	done
	expect 0 longpole diff --label=short --label=long --svg=trend.svg --fail-on=dynamic_locks=+200% a?.lpt -- b?.lpt
	has out 'From short to long' 'dynamic locks' '+100.0 %' 'KNOWN BY'
	grep -q '^<svg xmlns' trend.svg && ! command -v xmllint >/dev/null || xmllint --noout trend.svg || fail "no SVG"
	expect 1 longpole diff --fail-on=dynamic_locks=+50% a?.lpt -- b?.lpt
	has err 'over the budget: dynamic_locks=+50%'
	expect 0 longpole diff --json a?.lpt -- b?.lpt
	is_json out '.schema == "longpole/diff/1" and (.result.versions | length == 2)'
	is_json out '.result.quantities[] | select(.key == "dynamic_locks") | .versions[1] | .ratio == 2 and .significant and .p_value < 0.01 and .runs == 6'
	longpole diff --json a?.lpt -- b?.lpt | cmp - out || fail "not the same bytes"
	expect 0 longpole diff a1.lpt b1.lpt # two traces are two versions
	cp out pair
	expect 0 longpole diff a1.lpt -- b1.lpt
	cmp out pair || fail "A B is not A -- B"
	head -n 1 out | grep -q '^Nothing can be said for sure' || fail "$(head -n 1 out)"
	mkdir old new none # a directory is a version; those of one file name are told apart by theirs
	cp a1.lpt a2.lpt old
	cp b1.lpt new/a1.lpt
	expect 0 longpole diff --json old new
	is_json out '[.result.versions[] | [.label, (.runs | length)]] == [["old", 2], ["new", 1]]'
	expect 0 longpole diff --json old/a1.lpt new/a1.lpt
	is_json out '[.result.versions[].label] == ["old", "new"]'
	expect 2 longpole diff old none
	has err 'none: a directory without a *.lpt file'
	expect 2 longpole diff a1.lpt b1.lpt a2.lpt
	has err 'with several runs'
	expect 2 longpole diff a1.lpt --
	expect 2 longpole diff a1.lpt
	expect 2 longpole diff --fail-on=nosuch=+5% a1.lpt -- b1.lpt
	expect 2 longpole diff --fail-on=elapsed a1.lpt -- b1.lpt
}

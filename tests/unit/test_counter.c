/* SPDX-License-Identifier: Apache-2.0 */
/* Counters against the kernel's own accounts; the PMU's path against a page that is rewritten. */
#include "test.h"

static uint64_t mock_rdpmc(uint32_t index);
#define LONGPOLE_RDPMC(index) mock_rdpmc(index)
#include "counter/counter_priv.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t stolen_ns;

/* In libc's place: a thread's time as the kernel gives it where a host takes processors away. What
 * was stolen is in the ticks until the next renewal, and then the kernel says less than they. */
int clock_gettime(clockid_t id, struct timespec *tp)
{
	int error = (int)syscall(SYS_clock_gettime, id, tp);
	if (!error && id == CLOCK_THREAD_CPUTIME_ID) {
		int64_t ns = tp->tv_sec * 1000000000LL + tp->tv_nsec -
			     (int64_t)__atomic_load_n(&stolen_ns, __ATOMIC_RELAXED);
		*tp = (struct timespec){ns / 1000000000, ns % 1000000000};
	}
	return error;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void nap(long ns)
{
	struct timespec ts = {0, ns};
	nanosleep(&ts, NULL);
}

static void burn(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		continue;
}

static const enum longpole_backend backends[] = {
	LONGPOLE_BACKEND_SENTINEL, LONGPOLE_BACKEND_PAGE, LONGPOLE_BACKEND_SYSCALL};
enum { BACKENDS_NR = sizeof backends / sizeof *backends };

/* False: this machine refuses, and says why. */
static bool open_forced(struct longpole_counter *c, enum longpole_backend backend,
	const enum longpole_event *event, unsigned nr)
{
	const struct longpole_counter_options options = {
		.size = sizeof options, .backends = 1u << backend};
	char text[2048];
	int error = longpole_counter_open(c, event, nr, &options);
	if (error == LONGPOLE_COUNTER_OK) {
		for (unsigned i = 0; i < nr; i++)
			assert_int_equal(c->event[i].backend, backend);
		return true;
	}
	assert_int_equal(error, LONGPOLE_COUNTER_NOT_COUNTED);
	longpole_counter_explain(c, text, sizeof text);
	assert_non_null(strstr(text, "CANNOT BE COUNTED"));
	/* (cmocka cuts what is long, and then has no end of a line) */
	print_message("%s: refused here:\n%s", longpole_backend_name(backend), text);
	print_message("\n");
	return false;
}

/* ---- against the kernel ---------------------------------------------------------------------- */

/* Never behind the kernel's clock by more than the rate's error, never ahead of the wall. */
static void check_clock(struct longpole_counter *c, uint64_t kernel_start)
{
	uint64_t wall_start = clock_ns(CLOCK_MONOTONIC), before = 0;
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 2000; i++) {
			uint64_t now = longpole_counter_read1(c);
			assert_true(now != LONGPOLE_NO_COUNT && now >= before);
			before = now;
		}
		uint64_t kernel = clock_ns(CLOCK_THREAD_CPUTIME_ID) - kernel_start;
		uint64_t ours = longpole_counter_ticks_to_ns(longpole_counter_read1(c));
		assert_true(ours + ours / 1000 + 50000 >= kernel);
		round % 4 ? nap(100000) : (void)sched_yield();
	}
	uint64_t wall = clock_ns(CLOCK_MONOTONIC) - wall_start;
	assert_true(longpole_counter_ticks_to_ns(before) <= wall + wall / 1000 + 20000000);
}

static void test_clock(void **state)
{
	const enum longpole_event event = LONGPOLE_TICKS;
	(void)state;
	for (int b = 0; b < BACKENDS_NR; b++) {
		struct longpole_counter c;
		if (!open_forced(&c, backends[b], &event, 1))
			continue;
		uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		check_clock(&c, start);
		longpole_counter_close(&c);
		assert_int_equal(longpole_counter_read1(&c), LONGPOLE_NO_COUNT);
	}
}

/* Time without a processor is not counted: of 200 ms asleep less than half. */
static void test_sleep(void **state)
{
	const enum longpole_event event = LONGPOLE_TICKS;
	(void)state;
	for (int b = 0; b < BACKENDS_NR; b++) {
		struct longpole_counter c;
		if (!open_forced(&c, backends[b], &event, 1))
			continue;
		uint64_t before = longpole_counter_read1(&c);
		nap(200000000);
		uint64_t passed = longpole_counter_ticks_to_ns(longpole_counter_read1(&c) - before);
		assert_true(passed < 100000000);
		longpole_counter_close(&c);
	}
}

/* What moves at switches is exactly the kernel's: each read lies between two of the kernel's. */
static void test_switches(void **state)
{
	const enum longpole_event event[] = {
		LONGPOLE_SWITCHES, LONGPOLE_SWITCHES_FORCED, LONGPOLE_RUNQUEUE_NS, LONGPOLE_TICKS};
	(void)state;
	for (int b = 0; b < BACKENDS_NR; b++) {
		struct longpole_counter c;
		struct rusage before, after;
		uint64_t value[4], waited = 0;
		if (!open_forced(&c, backends[b], event, 4))
			continue;
		long base = (long)c.event[0].base, base_forced = (long)c.event[1].base;
		for (int i = 0; i < 200; i++) {
			nap(20000);
			getrusage(RUSAGE_THREAD, &before);
			assert_int_equal(longpole_counter_read(&c, value), 0);
			getrusage(RUSAGE_THREAD, &after);
			long all = (long)value[0] + base, forced = (long)value[1] + base_forced;
			assert_true(all >= before.ru_nvcsw + before.ru_nivcsw &&
				    all <= after.ru_nvcsw + after.ru_nivcsw);
			assert_true(forced >= before.ru_nivcsw && forced <= after.ru_nivcsw);
			assert_true(value[2] >= waited);
			waited = value[2];
		}
		assert_true(value[0] > 0);
		longpole_counter_close(&c);
	}
}

/* Two sets of one thread share its mark: neither is misled by the other's renewal. */
static void test_two_sets(void **state)
{
	const enum longpole_event one[] = {LONGPOLE_TICKS},
				  two[] = {LONGPOLE_TICKS, LONGPOLE_SWITCHES};
	(void)state;
	for (int b = 0; b < BACKENDS_NR; b++) {
		struct longpole_counter a, c;
		uint64_t value[2], before = 0;
		if (!open_forced(&a, backends[b], one, 1))
			continue;
		burn(1000000);
		assert_true(open_forced(&c, backends[b], two, 2));
		uint64_t behind = c.event[0].base - a.event[0].base;
		for (int i = 0; i < 300; i++) {
			nap(10000);
			uint64_t first = longpole_counter_read1(&a);
			assert_int_equal(longpole_counter_read(&c, value), 0);
			assert_true(first >= before && value[0] + behind >= first);
			before = value[0] + behind;
		}
		longpole_counter_close(&a);
		assert_int_equal(longpole_counter_read(&c, value), 0);
		longpole_counter_close(&c);
	}
}

/* A set of events with different ways; faults are counted when they happen. */
static void test_mixed(void **state)
{
	enum { PAGES = 64, PAGE = 4096 };
	const enum longpole_event event[] = {LONGPOLE_FAULTS, LONGPOLE_TICKS, LONGPOLE_SWITCHES};
	struct longpole_counter c;
	uint64_t before[3], after[3];
	(void)state;
	assert_int_equal(longpole_counter_open(&c, event, 3, NULL), 0);
	assert_int_equal(c.event[0].backend, LONGPOLE_BACKEND_SYSCALL);
	volatile char *memory = aligned_alloc(PAGE, PAGES * PAGE);
	assert_non_null(memory);
	assert_int_equal(longpole_counter_read(&c, before), 0);
	for (int i = 0; i < PAGES; i++)
		memory[i * PAGE] = 1;
	nap(100000);
	assert_int_equal(longpole_counter_read(&c, after), 0);
	assert_true(after[0] >= before[0] && after[1] > before[1] && after[2] > before[2]);
	free((void *)(uintptr_t)memory);
	longpole_counter_close(&c);
}

/* ---- destructive reads, signals -------------------------------------------------------------- */

static struct longpole_counter shared;
static uint64_t handler_sum, handler_last, main_last, handler_runs, handler_wrong;

enum { ALARM_US = 100 };

static void on_alarm(int number)
{
	uint64_t value[2];
	(void)number;
	stolen_ns += ALARM_US * 1000 / 2;
	if (longpole_counter_take(&shared, value) == 0)
		handler_sum += value[0];
	if (longpole_counter_read(&shared, value) || value[0] < handler_last ||
		value[0] < main_last)
		handler_wrong++;
	handler_last = value[0];
	handler_runs++;
}

static void alarms(long us)
{
	const struct itimerval timer = {{0, us}, {0, us}};
	const struct sigaction action = {.sa_handler = on_alarm};
	assert_int_equal(sigaction(SIGPROF, &action, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* Each tick is in exactly one take; reads of handler and thread together never go backwards, though
 * half of the time is stolen. */
static void test_take_in_signals(void **state)
{
	const enum longpole_event event[] = {LONGPOLE_TICKS, LONGPOLE_SWITCHES};
	(void)state;
	for (int b = 0; b < BACKENDS_NR; b++) {
		uint64_t value[2], sum = 0;
		if (!open_forced(&shared, backends[b], event, 2))
			continue;
		handler_sum = handler_last = main_last = handler_runs = handler_wrong = 0;
		alarms(ALARM_US);
		while (*(volatile uint64_t *)&handler_runs < 300) {
			for (int i = 0; i < 100; i++) {
				assert_int_equal(longpole_counter_take(&shared, value), 0);
				sum += value[0];
				uint64_t seen = *(volatile uint64_t *)&handler_last;
				assert_int_equal(longpole_counter_read(&shared, value), 0);
				assert_true(value[0] >= main_last && value[0] >= seen);
				*(volatile uint64_t *)&main_last = value[0];
			}
		}
		alarms(0);
		assert_int_equal(handler_wrong, 0);
		assert_int_equal(longpole_counter_take(&shared, value), 0);
		assert_true(sum + value[0] + handler_sum == shared.event[0].taken);
		longpole_counter_close(&shared);
		stolen_ns = 0;
	}
}

static sigjmp_buf out_of_here;
static volatile sig_atomic_t jumps;
static void on_jump(int number)
{
	(void)number;
	jumps++;
	siglongjmp(out_of_here, 1);
}

/* A handler that leaves a read in the middle: later reads are right, if not fast. */
static void test_longjmp(void **state)
{
	const enum longpole_event event = LONGPOLE_TICKS;
	const struct sigaction action = {.sa_handler = on_jump};
	const struct itimerval timer = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	static struct longpole_counter c;
	static uint64_t before;
	(void)state;
	for (int b = 0; b < BACKENDS_NR; b++) {
		if (!open_forced(&c, backends[b], &event, 1))
			continue;
		before = 0;
		jumps = 0;
		assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
		sigsetjmp(out_of_here, 1);
		setitimer(ITIMER_REAL, &timer, NULL);
		while (jumps < 500) {
			/* every other read begins with a renewal */
			sched_yield();
			uint64_t now = longpole_counter_read1(&c);
			assert_true(now >= before);
			before = now;
		}
		setitimer(ITIMER_REAL, &never, NULL);
		signal(SIGALRM, SIG_IGN);
		uint64_t kernel = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		uint64_t raw = longpole_counter_read1(&c) + c.event[0].base;
		uint64_t ours = longpole_counter_ticks_to_ns(raw);
		assert_true(ours + ours / 1000 + 50000 >= kernel);
		longpole_counter_close(&c);
	}
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void test_arguments(void **state)
{
	const enum longpole_event many[9] = {LONGPOLE_TICKS, LONGPOLE_TICKS, LONGPOLE_TICKS,
		LONGPOLE_TICKS, LONGPOLE_TICKS, LONGPOLE_TICKS, LONGPOLE_TICKS, LONGPOLE_TICKS,
		LONGPOLE_TICKS};
	const enum longpole_event unknown = (enum longpole_event)999;
	const struct longpole_counter_options small = {.size = 4};
	struct longpole_counter c;
	uint64_t value[8];
	(void)state;
	assert_int_equal(longpole_counter_open(&c, many, 0, NULL), LONGPOLE_COUNTER_ARGUMENT);
	assert_int_equal(longpole_counter_open(&c, many, 9, NULL), LONGPOLE_COUNTER_ARGUMENT);
	assert_int_equal(longpole_counter_open(&c, &unknown, 1, NULL), LONGPOLE_COUNTER_ARGUMENT);
	assert_int_equal(longpole_counter_open(&c, many, 1, &small), LONGPOLE_COUNTER_ARGUMENT);
	assert_int_equal(longpole_counter_read(&c, value), LONGPOLE_COUNTER_CLOSED);
	longpole_counter_close(&c);
	longpole_counter_close(&c);
	for (int error = 0; error >= -7; error--)
		assert_string_not_equal(longpole_counter_error_text(error), "unknown error");
	assert_string_equal(longpole_counter_error_text(-8), "unknown error");
}

static void test_names(void **state)
{
	unsigned nr = 0;
	(void)state;
	for (enum longpole_event event; (event = longpole_event_at(nr)) != 0; nr++)
		assert_int_equal(longpole_event_find(longpole_event_name(event)), event);
	assert_true(nr > 15);
	assert_int_equal(longpole_event_find("nonsense"), 0);
	assert_null(longpole_event_name((enum longpole_event)999));
}

/* What nobody counts is an error, never zero; what is counted has moved. */
static void test_every_event(void **state)
{
	enum longpole_event event;
	(void)state;
	for (unsigned i = 0; (event = longpole_event_at(i)) != 0; i++) {
		struct longpole_counter c;
		char text[2048];
		uint64_t value;
		int error = longpole_counter_open(&c, &event, 1, NULL);
		longpole_counter_explain(&c, text, sizeof text);
		assert_ptr_equal(strstr(text, longpole_event_name(event)), text);
		if (error) {
			assert_int_equal(error, LONGPOLE_COUNTER_NOT_COUNTED);
			assert_non_null(strstr(text, "  not by "));
			assert_int_equal(
				longpole_counter_read(&c, &value), LONGPOLE_COUNTER_CLOSED);
		} else {
			assert_int_not_equal(c.event[0].backend, LONGPOLE_BACKEND_NONE);
			burn(200000);
			assert_int_equal(longpole_counter_read(&c, &value), 0);
			if (event == LONGPOLE_TICKS || event == LONGPOLE_CYCLES_OR_TICKS ||
				event == LONGPOLE_INSTRUCTIONS)
				assert_true(value > 0);
			longpole_counter_close(&c);
		}
	}
}

static void test_environment(void **state)
{
	const enum longpole_event event = LONGPOLE_TICKS;
	struct longpole_counter c;
	(void)state;
	setenv("LONGPOLE_COUNTER_BACKEND", "pmu,syscall", 1);
	assert_int_equal(longpole_counter_open(&c, &event, 1, NULL), 0);
	assert_int_equal(c.event[0].backend, LONGPOLE_BACKEND_SYSCALL);
	assert_int_equal(c.event[0].refused[LONGPOLE_BACKEND_SENTINEL], COUNTER_REASON_not_asked);
	longpole_counter_close(&c);
	setenv("LONGPOLE_COUNTER_BACKEND", "nonsense", 1);
	assert_int_equal(longpole_counter_open(&c, &event, 1, NULL), LONGPOLE_COUNTER_NOT_COUNTED);
	unsetenv("LONGPOLE_COUNTER_BACKEND");
}

/* ---- other threads, other processes ---------------------------------------------------------- */

static void *read_of_another(void *argument)
{
	uint64_t value[8];
	return (void *)(intptr_t)longpole_counter_read(argument, value);
}

static void test_other_thread(void **state)
{
	const enum longpole_event kept = LONGPOLE_TICKS, asked = LONGPOLE_FAULTS;
	struct longpole_counter c[2];
	(void)state;
	assert_int_equal(longpole_counter_open(&c[0], &kept, 1, NULL), 0);
	assert_int_equal(longpole_counter_open(&c[1], &asked, 1, NULL), 0);
	for (int i = 0; i < 2; i++) {
		pthread_t thread;
		void *result;
		longpole_counter_read1(&c[i]);
		assert_int_equal(pthread_create(&thread, NULL, read_of_another, &c[i]), 0);
		pthread_join(thread, &result);
		assert_int_equal((intptr_t)result, LONGPOLE_COUNTER_THREAD);
		longpole_counter_close(&c[i]);
	}
}

static int in_child(struct longpole_counter *c, enum longpole_backend backend)
{
	const enum longpole_event event = LONGPOLE_TICKS;
	const struct longpole_counter_options options = {
		.size = sizeof options, .backends = 1u << backend};
	struct longpole_counter mine;
	uint64_t value;
	if (longpole_counter_read(c, &value) != LONGPOLE_COUNTER_FORKED)
		return 1;
	if (longpole_counter_open(&mine, &event, 1, &options))
		return 2;
	if (longpole_counter_read(c, &value) != LONGPOLE_COUNTER_FORKED)
		return 3;
	longpole_counter_close(c);
	for (uint64_t before = 0, i = 0; i < 100; i++, before = value) {
		nap(1000);
		if (longpole_counter_read(&mine, &value) || value < before)
			return 4;
	}
	/* the parent's time is not in it */
	uint64_t raw = longpole_counter_ticks_to_ns(value + mine.event[0].base);
	if (raw > 2 * clock_ns(CLOCK_THREAD_CPUTIME_ID) + 50000000)
		return 5;
	longpole_counter_close(&mine);
	return 0;
}

static void test_fork(void **state)
{
	const enum longpole_event event = LONGPOLE_TICKS;
	(void)state;
	burn(150000000); /* more than in_child() forgives */
	for (int b = 0; b < BACKENDS_NR; b++) {
		struct longpole_counter c;
		uint64_t value;
		int status;
		if (!open_forced(&c, backends[b], &event, 1))
			continue;
		assert_int_equal(longpole_counter_read(&c, &value), 0);
		pid_t pid = fork();
		if (!pid)
			_exit(in_child(&c, backends[b]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(longpole_counter_read(&c, &value), 0);
		longpole_counter_close(&c);
	}
}

enum { THREADS = 2000, AT_A_TIME = 100 };

static int nr_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;
	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static void *one_of_many(void *argument)
{
	const enum longpole_event event[] = {LONGPOLE_TICKS, LONGPOLE_RUNQUEUE_NS};
	bool leave_open = (uintptr_t)argument % 2;
	struct longpole_counter c;
	uint64_t value[2], before = 0;
	if (longpole_counter_open(&c, event, 2, NULL))
		return (void *)1;
	for (int i = 0; i < 20; i++) {
		sched_yield();
		if (longpole_counter_read(&c, value) || value[0] < before)
			return (void *)2;
		before = value[0];
	}
	/* a new thread: it cannot have run longer than since its creation */
	if (longpole_counter_ticks_to_ns(before) > 60000000000u)
		return (void *)3;
	if (!leave_open)
		longpole_counter_close(&c);
	return NULL;
}

/* Half of them end with an open set: nothing is left of it. */
static void test_2000_threads(void **state)
{
	int descriptors = nr_descriptors();
	(void)state;
	for (int done = 0; done < THREADS; done += AT_A_TIME) {
		pthread_t thread[AT_A_TIME];
		for (uintptr_t i = 0; i < AT_A_TIME; i++)
			assert_int_equal(
				pthread_create(&thread[i], NULL, one_of_many, (void *)i), 0);
		for (int i = 0; i < AT_A_TIME; i++) {
			void *result;
			pthread_join(thread[i], &result);
			assert_null(result);
		}
	}
	assert_int_equal(nr_descriptors(), descriptors);
}

static void *read_for_ever(void *argument)
{
	const enum longpole_event event[] = {LONGPOLE_TICKS, LONGPOLE_RUNQUEUE_NS};
	struct longpole_counter c;
	uint64_t value[2], *reads = argument;
	int old;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	if (longpole_counter_open(&c, event, 2, NULL))
		return (void *)1;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
	while (*(volatile uint64_t *)reads < 2000) {
		sched_yield();
		if (longpole_counter_read(&c, value))
			return (void *)2;
		__atomic_add_fetch(reads, 1, __ATOMIC_RELAXED);
	}
	return NULL; /* it was cancelled long ago, and no read was where it ended */
}

/* Reads are no cancellation points, also when they ask the kernel. */
static void test_cancel(void **state)
{
	uint64_t reads = 0;
	pthread_t thread;
	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, read_for_ever, &reads), 0);
	while (__atomic_load_n(&reads, __ATOMIC_RELAXED) < 10)
		sched_yield();
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	assert_int_equal(reads, 2000);
}

/* Without restartable sequences the next way is taken, and it says why. */
static int without_rseq(void)
{
	const enum longpole_event event = LONGPOLE_TICKS;
	struct longpole_counter c;
	if (longpole_counter_open(&c, &event, 1, NULL))
		return 1;
	if (c.event[0].refused[LONGPOLE_BACKEND_SENTINEL] != COUNTER_REASON_no_rseq)
		return 2;
	if (c.event[0].backend == LONGPOLE_BACKEND_SENTINEL)
		return 3;
	check_clock(&c, clock_ns(CLOCK_THREAD_CPUTIME_ID));
	longpole_counter_close(&c);
	return 0;
}

static void test_without_rseq(void **state)
{
	char *argv[] = {(char[]){"test_counter"}, (char[]){"--without-rseq"}, NULL};
	pid_t pid;
	int status;
	(void)state;
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
	unsetenv("GLIBC_TUNABLES");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- the PMU, as a page that another thread rewrites ----------------------------------------- */

static struct perf_event_mmap_page page;
static uint64_t mock_raw, mock_calls;
static int mock_stop;

static uint64_t mock_rdpmc(uint32_t index)
{
	mock_calls++;
	assert_int_equal(index, page.index - 1);
	return *(volatile uint64_t *)&mock_raw & ((1ull << page.pmc_width) - 1);
}

static void mock_page(uint16_t width, int64_t offset, uint64_t raw)
{
	memset(&page, 0, sizeof page);
	page.cap_user_rdpmc = 1;
	page.index = 5;
	page.pmc_width = width;
	page.offset = offset;
	mock_raw = raw;
}

static void test_pmu_known(void **state)
{
	uint64_t value;
	(void)state;
	mock_page(48, 1000, 23);
	assert_int_equal(longpole_pmu_read(&page, &value), 1);
	assert_int_equal(value, 1023);
	mock_page(48, 1000, 0xffffffffffffu); /* 48 bits of -1: it is about to overflow */
	assert_int_equal(longpole_pmu_read(&page, &value), 1);
	assert_int_equal(value, 999);
	mock_page(40, 0x8000000000, 0x8000000000); /* 40 bits: the lowest */
	assert_int_equal(longpole_pmu_read(&page, &value), 1);
	assert_int_equal(value, 0);
	/* no counter now, or not for us: what the kernel had, and no rdpmc */
	mock_calls = 0;
	page.index = 0;
	assert_int_equal(longpole_pmu_read(&page, &value), 0);
	assert_int_equal(value, 0x8000000000);
	mock_page(48, 77, 5);
	page.cap_user_rdpmc = 0;
	assert_int_equal(longpole_pmu_read(&page, &value), 0);
	assert_int_equal(value, 77);
	assert_int_equal(mock_calls, 0);
}

/* The kernel's part: counts five more, moves the counter to a place just below an overflow. */
static void *mock_kernel(void *argument)
{
	uint64_t *count = argument, random = 1;
	while (!__atomic_load_n(&mock_stop, __ATOMIC_RELAXED)) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint64_t raw = (1ull << 48) - 1 - (random >> 40 & 0xffffff);
		__atomic_store_n(&page.lock, page.lock + 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(count, *count + 5, __ATOMIC_SEQ_CST);
		*(volatile __s64 *)&page.offset = (int64_t)*count - (int64_t)(raw - (1ull << 48));
		*(volatile uint64_t *)&mock_raw = raw;
		__atomic_store_n(&page.lock, page.lock + 1, __ATOMIC_SEQ_CST);
		for (volatile int i = 0; i < 50; i++)
			continue;
	}
	return NULL;
}

static void test_pmu_rewritten(void **state)
{
	enum { READS = 1000000 };
	uint64_t count = 0, before = 0, value;
	pthread_t thread;
	(void)state;
	mock_page(48, 0, 0);
	mock_stop = 0;
	assert_int_equal(pthread_create(&thread, NULL, mock_kernel, &count), 0);
	while (!__atomic_load_n(&count, __ATOMIC_SEQ_CST))
		sched_yield();
	for (int i = 0; i < READS; i++) {
		assert_int_equal(longpole_pmu_read(&page, &value), 1);
		assert_true(value >= before && value <= __atomic_load_n(&count, __ATOMIC_SEQ_CST));
		before = value;
	}
	__atomic_store_n(&mock_stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static void test_scope(void **state)
{
	const enum longpole_event event = LONGPOLE_TICKS;
	struct longpole_counter_sums sums = {0};
	struct longpole_counter c;
	(void)state;
	assert_int_equal(longpole_counter_open(&c, &event, 1, NULL), 0);
	uint64_t before = longpole_counter_read1(&c);
	for (int i = 0; i < 10; i++) {
		LONGPOLE_COUNTED(&c, &sums);
		burn(100000);
	}
	uint64_t all = longpole_counter_read1(&c) - before;
	assert_int_equal(sums.entered, 10);
	assert_int_equal(sums.failed, 0);
	assert_true(sums.count[0] > 0 && sums.count[0] <= all);
	longpole_counter_close(&c);
	{
		LONGPOLE_COUNTED(&c, &sums);
	}
	assert_int_equal(sums.failed, 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_sleep),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_two_sets),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_take_in_signals),
		cmocka_unit_test(test_longjmp),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_every_event),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_other_thread),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_2000_threads),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_without_rseq),
		cmocka_unit_test(test_pmu_known),
		cmocka_unit_test(test_pmu_rewritten),
		cmocka_unit_test(test_scope),
	};
	if (argc > 1 && !strcmp(argv[1], "--without-rseq"))
		return without_rseq();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

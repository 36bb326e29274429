/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_inject.c - into a process that sleeps: libc itself, which it has already, is "loaded", and a function of its own
 * called, whose answer is known. The process must not notice.
 */
#include "inject/inject.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { GOOD = 9, INTERRUPTED = 1, WRONG_TIME = 2, ROUNDS = 20, KILLS = 60 };

static volatile sig_atomic_t has_term;

static void on_term(int signal)
{
	(void)signal;
	has_term = 1;
}

/* ---- processes that sleep, and end with GOOD on SIGTERM if nothing woke them before ----------- */

static void sleep_in_epoll(void)
{
	struct epoll_event event;
	int epoll = epoll_create1(0);
	while (epoll_wait(epoll, &event, 1, -1) >= 0 || errno != EINTR)
		continue;
}

static void sleep_in_read(void)
{
	int ends[2];
	char byte;
	if (pipe(ends) || read(ends[0], &byte, 1) >= 0)
		_exit(INTERRUPTED);
}

/* What is left of a sleep must not begin anew, nor end early. */
static void sleep_for_a_time(void)
{
	struct timespec begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (nanosleep(&(struct timespec){.tv_sec = 2}, NULL))
		_exit(INTERRUPTED);
	clock_gettime(CLOCK_MONOTONIC, &end);
	long ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
	has_term = 1;
	_exit(ms >= 2000 && ms < 3500 ? GOOD : WRONG_TIME);
}

static void sleep_long(void)
{
	nanosleep(&(struct timespec){.tv_sec = 1000}, NULL);
}

/* What sigaction() leaves on the stack: {handler, flags, restorer, mask} as the kernel takes them. */
static void sleep_above_leavings(void)
{
	struct {
		uint64_t handler, flags, restorer, mask;
	} left[8] = {{0}};
	syscall(SYS_rt_sigaction, SIGTERM, NULL, &left[0], sizeof left[0].mask);
	for (int i = 1; i < 8; i++)
		left[i] = left[0];
	nanosleep(&(struct timespec){.tv_sec = 1000}, NULL);
	__asm__ volatile("" : : "r"(left) : "memory");
}

static void on_usr1(int signal)
{
	(void)signal;
	pause();
}

static void sleep_in_handler(void)
{
	signal(SIGUSR1, on_usr1);
	raise(SIGUSR1);
}

/* As PostgreSQL's processes do: a handler that never returns, called in a wait. */
static void sleep_in_handler_of_a_sleep(void (*sleeps)(void))
{
	pid_t sleeper = getpid();
	signal(SIGUSR1, on_usr1);
	if (!fork()) {
		for (int i = 0; i < 5; i++) {
			nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
			kill(sleeper, SIGUSR1);
		}
		_exit(0);
	}
	sleeps();
}

static void sleep_in_handler_of_read(void)
{
	sleep_in_handler_of_a_sleep(sleep_in_read);
}

static void sleep_in_handler_of_nanosleep(void)
{
	sleep_in_handler_of_a_sleep(sleep_long);
}

static void sleep_in_handler_of_epoll(void)
{
	sleep_in_handler_of_a_sleep(sleep_in_epoll);
}

/* Never asleep, and in the allocator half of the time, with its lock: who is led away there could not begin a thread. */
static void *allocate_until_term(void *unused)
{
	enum { BLOCKS = 64 };
	void *block[BLOCKS] = {NULL};
	volatile unsigned sum = 0;
	for (unsigned i = 0; !has_term; i++) {
		free(block[i % BLOCKS]);
		block[i % BLOCKS] = malloc(2000 + i * 7919 % 50000);
		for (unsigned k = 0; k < 100; k++)
			sum = sum + k;
	}
	return unused;
}

static void compute_and_allocate(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, allocate_until_term, NULL);
	allocate_until_term(NULL);
	pthread_join(thread, NULL);
}

/* NOLINTNEXTLINE(misc-no-recursion): a deep stack is what it is for */
static unsigned long fibonacci(unsigned n)
{
	return n < 2 || has_term ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static void compute_deeply(void)
{
	volatile unsigned long sum = 0;
	while (!has_term)
		sum = sum + fibonacci(30);
}

static int compare_until_term(const void *a, const void *b)
{
	while (!has_term)
		continue;
	return (int)((const char *)a - (const char *)b);
}

/* In code of its own, but called by libc, of which nobody knows what it is in the middle of. */
static void compute_below_libc(void)
{
	char bytes[2] = "";
	qsort(bytes, 2, 1, compare_until_term);
}

static pid_t start_sleeper(void (*sleeps)(void))
{
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
		close(ready[0]);
		close(ready[1]);
		sleeps();
		_exit(has_term ? GOOD : INTERRUPTED);
	}
	close(ready[1]);
	(void)!read(ready[0], &byte, 1);
	close(ready[0]);
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	return pid;
}

static int end_of(pid_t pid)
{
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Ends a sleeper, and says how it ended. Asked until it ends: a signal that comes before a thread has a processor to go
 * back to its call with does not wake it from that call. */
static int end_by_term(pid_t pid)
{
	int status = 0;
	do {
		kill(pid, SIGTERM);
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	} while (waitpid(pid, &status, WNOHANG) == 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* ---- injections -------------------------------------------------------------------------------- */

static enum base_status call_in(pid_t pid, const char *library, const char *entry,
	const char *argument, struct inject_result *ret, struct base_err *err)
{
	struct {
		char text[16];
		uint64_t scaffold, bytes;
	} given = {.text = ""};
	snprintf(given.text, sizeof given.text, "%s", argument);
	return inject_library(pid,
		&(struct inject_what){.library = library,
			.entry = entry,
			.argument = &given,
			.argument_bytes = sizeof given,
			.scaffold = &given.scaffold,
			.scaffold_bytes = &given.bytes},
		ret, err);
}

static bool has_writable_code(pid_t pid)
{
	char path[64], line[512];
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(path, "r");
	while (maps && fgets(line, sizeof line, maps))
		found |= strstr(line, "rwxp") != NULL;
	if (maps)
		fclose(maps);
	return found;
}

/* Where nobody may trace anybody there is nothing to see. */
static void must_be_allowed(enum base_status status, const struct base_err *err)
{
	if (status == BASE_ERR_ENV && strstr(err->cause[0], "ptrace_scope"))
		skip();
}

/* A sanitizer's own functions stand between ours and libc: nobody sleeps in a call that is made from
 * libc's code, and record -p refuses such programs. */
static void must_be_plain(void)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
	skip();
#endif
#endif
}

static void calls_and_is_not_noticed(void (*sleeps)(void), bool ends_itself)
{
	struct base_err err = {0};
	pid_t pid = start_sleeper(sleeps);
	for (int i = 0; i < ROUNDS; i++) {
		char number[16];
		struct inject_result result;
		snprintf(number, sizeof number, "%d", i + 1);
		enum base_status status = call_in(pid, "libc.so.6", "atoi", number, &result, &err);
		must_be_allowed(status, &err);
		assert_int_equal(status, BASE_OK);
		assert_int_equal(result.refused, i + 1);
		assert_true(result.through == pid || sleeps == compute_and_allocate);
		assert_true(result.stopped_ns > 0);
	}
	assert_false(has_writable_code(pid));
	assert_int_equal(ends_itself ? end_of(pid) : end_by_term(pid), GOOD);
}

static void epoll_wait_is_not_interrupted(void **state)
{
	(void)state;
	calls_and_is_not_noticed(sleep_in_epoll, false);
}

static void read_is_not_interrupted(void **state)
{
	(void)state;
	must_be_plain();
	calls_and_is_not_noticed(sleep_in_read, false);
}

static void sleep_is_as_long(void **state)
{
	(void)state;
	must_be_plain();
	calls_and_is_not_noticed(sleep_for_a_time, true);
}

static void handler_that_came_in_a_sleep_is_no_obstacle(void **state)
{
	(void)state;
	must_be_plain();
	calls_and_is_not_noticed(sleep_in_handler_of_read, false);
	calls_and_is_not_noticed(sleep_in_handler_of_nanosleep, false);
	calls_and_is_not_noticed(sleep_in_handler_of_epoll, false);
}

static void computing_is_not_disturbed(void **state)
{
	(void)state;
	must_be_plain();
	calls_and_is_not_noticed(compute_deeply, false);
}

static void allocating_is_not_disturbed(void **state)
{
	(void)state;
	must_be_plain();
	calls_and_is_not_noticed(compute_and_allocate, false);
}

static void what_cannot_be_loaded_is_said(void **state)
{
	struct base_err err = {0};
	struct inject_result result;
	(void)state;
	must_be_plain();
	pid_t pid = start_sleeper(sleep_in_read);
	enum base_status status = call_in(pid, "/nowhere/lib.so", "f", "", &result, &err);
	must_be_allowed(status, &err);
	assert_int_equal(status, BASE_ERR_ENV);
	assert_non_null(strstr(err.cause[0], "/nowhere/lib.so: cannot open"));
	assert_int_equal(
		call_in(pid, "libc.so.6", "no_such_function", "", &result, &err), BASE_ERR_ENV);
	assert_non_null(strstr(err.cause[0], "no_such_function"));
	assert_false(has_writable_code(pid));
	assert_int_equal(end_by_term(pid), GOOD);
}

static void is_injected_and_killed(pid_t pid)
{
	struct base_err err = {0};
	struct inject_result result;
	enum base_status status = call_in(pid, "libc.so.6", "atoi", "1", &result, &err);
	must_be_allowed(status, &err);
	if (status)
		fail_msg("%s", err.cause[0]);
	for (int i = 0; i < KILLS; i++) {
		pid_t tracer = fork();
		if (!tracer)
			for (;;)
				(void)!call_in(pid, "libc.so.6", "atoi", "5", &result, &err);
		nanosleep(&(struct timespec){.tv_nsec = 1000000L + random() % 4000000}, NULL);
		kill(tracer, SIGKILL);
		assert_int_equal(end_of(tracer), -SIGKILL);
	}
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	if (call_in(pid, "libc.so.6", "atoi", "77", &result, &err))
		fail_msg("%s", err.cause[0]);
	assert_int_equal(result.refused, 77);
}

/* Killed at any time. */
static void outlives_whoever_injects(void **state)
{
	(void)state;
	must_be_plain();
	pid_t pid = start_sleeper(sleep_in_read);
	is_injected_and_killed(pid);
	assert_int_equal(end_by_term(pid), GOOD);
}

/* What is left of a sleep nobody knows then: it may last as long again, but it does not end early. */
static void sleeps_on_without_whoever_injects(void **state)
{
	(void)state;
	pid_t pid = start_sleeper(sleep_long);
	is_injected_and_killed(pid);
	assert_int_equal(end_by_term(pid), GOOD);
}

static void finds_what_sigaction_left_harmless(void **state)
{
	struct base_err err = {0};
	struct inject_result result;
	(void)state;
	pid_t pid = start_sleeper(sleep_above_leavings);
	enum base_status status = call_in(pid, "libc.so.6", "atoi", "9", &result, &err);
	must_be_allowed(status, &err);
	if (status)
		fail_msg("%s", err.cause[0]);
	assert_int_equal(result.refused, 9);
	assert_int_equal(end_by_term(pid), GOOD);
}

/* ---- refusals ---------------------------------------------------------------------------------- */

static void refuses_itself_and_nobody(void **state)
{
	struct base_err err = {0};
	(void)state;
	assert_int_equal(inject_check(getpid(), &err), BASE_ERR_USAGE);
	assert_int_equal(inject_check(INT32_MAX, &err), BASE_ERR_USAGE);
}

static void is_refused(void (*sleeps)(void))
{
	struct base_err err = {0};
	struct inject_result result;
	pid_t pid = start_sleeper(sleeps);
	enum base_status status = call_in(pid, "libc.so.6", "atoi", "9", &result, &err);
	must_be_allowed(status, &err);
	assert_int_equal(status, BASE_ERR_ENV);
	assert_non_null(strstr(err.cause[0], "where another one can be begun"));
	kill(pid, SIGKILL);
	assert_int_equal(end_of(pid), -SIGKILL);
}

static void refuses_who_sleeps_in_a_handler(void **state)
{
	(void)state;
	is_refused(sleep_in_handler);
}

static void refuses_who_computes_below_libc(void **state)
{
	(void)state;
	is_refused(compute_below_libc);
}

static void refuses_who_is_stopped_or_traced(void **state)
{
	struct base_err err = {0};
	(void)state;
	pid_t pid = start_sleeper(sleep_in_read);
	assert_int_equal(inject_check(pid, &err), BASE_OK);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	assert_int_equal(inject_check(pid, &err), BASE_ERR_ENV);
	assert_non_null(strstr(err.cause[0], "is stopped"));
	kill(pid, SIGCONT);
	if (!ptrace(PTRACE_SEIZE, pid, 0, 0)) {
		assert_int_equal(inject_check(pid, &err), BASE_ERR_ENV);
		assert_non_null(strstr(err.cause[0], "is traced by"));
	}
	kill(pid, SIGKILL);
	assert_int_equal(end_of(pid), -SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(epoll_wait_is_not_interrupted),
		cmocka_unit_test(read_is_not_interrupted),
		cmocka_unit_test(sleep_is_as_long),
		cmocka_unit_test(computing_is_not_disturbed),
		cmocka_unit_test(allocating_is_not_disturbed),
		cmocka_unit_test(what_cannot_be_loaded_is_said),
		cmocka_unit_test(outlives_whoever_injects),
		cmocka_unit_test(sleeps_on_without_whoever_injects),
		cmocka_unit_test(handler_that_came_in_a_sleep_is_no_obstacle),
		cmocka_unit_test(finds_what_sigaction_left_harmless),
		cmocka_unit_test(refuses_itself_and_nobody),
		cmocka_unit_test(refuses_who_sleeps_in_a_handler),
		cmocka_unit_test(refuses_who_computes_below_libc),
		cmocka_unit_test(refuses_who_is_stopped_or_traced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

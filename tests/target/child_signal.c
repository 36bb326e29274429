/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child_signal - a process sleeps until the signal that its child has ended, as shells do, and then
 * computes for a tenth of what the child did. Known answer: the path is the child's `child_work`.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

static volatile sig_atomic_t nr_ended;

static void on_end(int number)
{
	(void)number;
	nr_ended++;
}

TARGET_FUNCTION uint64_t child_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

TARGET_FUNCTION uint64_t conclude(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static void wait_by_handler(const sigset_t *before)
{
	while (!nr_ended)
		target_must(sigsuspend(before) == -1 && errno == EINTR, "sigsuspend");
}

static void wait_by_taking(const sigset_t *ends)
{
	int number;
	target_must(sigwait(ends, &number) == 0 && number == SIGCHLD, "sigwait");
}

static void wait_with_limit(const sigset_t *ends)
{
	const struct timespec limit = {.tv_sec = 600};
	target_must(sigtimedwait(ends, NULL, &limit) == SIGCHLD, "sigtimedwait");
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --by --units");
	uint64_t percent = target_percent(argc, argv);
	uint64_t units = target_number(argc, argv, "--units", 300000);
	const char *by = target_text(argc, argv, "--by", "sigsuspend");
	struct sigaction action = {.sa_handler = on_end};
	sigset_t ends, before;
	sigemptyset(&ends);
	sigaddset(&ends, SIGCHLD);
	target_must(!sigprocmask(SIG_BLOCK, &ends, &before), "sigprocmask");
	target_must(!sigaction(SIGCHLD, &action, NULL), "sigaction");
	pid_t child = fork();
	target_must(child >= 0, "fork");
	if (!child)
		_exit(child_work(1, units * percent / 100) == 0);
	if (!strcmp(by, "sigsuspend"))
		wait_by_handler(&before);
	else if (!strcmp(by, "sigwait"))
		wait_by_taking(&ends);
	else
		wait_with_limit(&ends);
	target_must(waitpid(child, NULL, 0) == child, "waitpid");
	target_print(conclude(1, units / 10));
	return 0;
}

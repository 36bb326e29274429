/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal_thread - a thread computes, then sends its process's main thread the signal that this one
 * waits for, and sleeps on; main computes for a tenth of that and ends. Known answer: the path is
 * the thread's `work`.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "target.h"

static pthread_t main_thread;
static const char *by;
static volatile sig_atomic_t came;

static void on_signal(int number)
{
	(void)number;
	came = 1;
}

TARGET_FUNCTION uint64_t work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

TARGET_FUNCTION uint64_t conclude(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static void *worker(void *units)
{
	volatile uint64_t sum = work(1, *(uint64_t *)units);
	const union sigval nothing = {0};
	if (!strcmp(by, "kill"))
		kill(getpid(), SIGUSR1);
	else if (!strcmp(by, "killpg"))
		killpg(getpgrp(), SIGUSR1);
	else if (!strcmp(by, "tgkill"))
		tgkill(getpid(), getpid(), SIGUSR1);
	else if (!strcmp(by, "sigqueue"))
		sigqueue(getpid(), SIGUSR1, nothing);
	else if (!strcmp(by, "pthread_sigqueue"))
		pthread_sigqueue(main_thread, SIGUSR1, nothing);
	else
		pthread_kill(main_thread, SIGUSR1);
	for (;;)
		pause();
	return sum ? NULL : units;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --by --wait --units");
	uint64_t units = target_number(argc, argv, "--units", 300000);
	uint64_t section = units * target_percent(argc, argv) / 100;
	const char *wait = target_text(argc, argv, "--wait", "sigwait");
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t waited, before;
	pthread_t thread;
	int number;
	by = target_text(argc, argv, "--by", "pthread_kill");
	main_thread = pthread_self();
	target_must(!setpgid(0, 0), "setpgid"); /* nobody else is to get it */
	sigemptyset(&waited);
	sigaddset(&waited, SIGUSR1);
	target_must(!pthread_sigmask(SIG_BLOCK, &waited, &before), "pthread_sigmask");
	target_must(!sigaction(SIGUSR1, &action, NULL), "sigaction");
	target_must(!pthread_create(&thread, NULL, worker, &section), "pthread_create");
	if (!strcmp(wait, "sigwait"))
		target_must(!sigwait(&waited, &number), "sigwait");
	while (strcmp(wait, "sigsuspend") == 0 && !came)
		target_must(sigsuspend(&before) == -1 && errno == EINTR, "sigsuspend");
	target_print(conclude(1, units / 10));
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asked poll|pipe|sleep ROUNDS|self - works and waits in rounds of 20 ms until SIGTERM comes, then
 * ROUNDS more and ends well. It says its process id first. self: a thread of its own sends it
 * SIGUSR1, after half a second, which asks for the same.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 20, WORK = 300000, SELF_NS = 500000000 };

static volatile sig_atomic_t asked;
static volatile unsigned long sink;
static pthread_t first;
static int pipe_end = -1;

static void take(int signal)
{
	(void)signal;
	asked = 1;
}

static void *ask(void *unused)
{
	nanosleep(&(struct timespec){.tv_nsec = SELF_NS}, NULL);
	pthread_kill(first, SIGUSR1);
	return unused;
}

static void wait_a_while(const char *how)
{
	struct pollfd file = {.fd = pipe_end, .events = POLLIN};
	if (strcmp(how, "sleep") == 0)
		nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
	else
		(void)poll(&file, pipe_end >= 0, WAIT_MS);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = take};
	int ends[2];
	pthread_t thread;
	if (argc != 3 || sigaction(SIGTERM, &action, NULL) || sigaction(SIGUSR1, &action, NULL) ||
		pipe(ends))
		return 2;
	if (strcmp(argv[1], "pipe") == 0)
		pipe_end = ends[0];
	first = pthread_self();
	bool self = strcmp(argv[2], "self") == 0;
	if (self && pthread_create(&thread, NULL, ask, NULL))
		return 1;
	printf("%d\n", (int)getpid());
	fflush(stdout);
	for (long left = -1; left; left -= left > 0) {
		wait_a_while(argv[1]);
		for (unsigned i = 0; i < WORK; i++)
			sink += i;
		if (asked && left < 0)
			left = self ? 1 : 1 + atol(argv[2]);
	}
	if (self)
		pthread_join(thread, NULL);
	return 0;
}

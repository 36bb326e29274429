/* SPDX-License-Identifier: Apache-2.0 */
/* hang.h - shared by programs that hang on purpose, and by those that only look so. */
#ifndef HANG_H
#define HANG_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct hang_case {
	const char *name;
	void (*run)(void);
};

static inline void nap_ms(long ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

static inline void ready(void)
{
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
}

/* Children end with whoever started the test. */
static inline pid_t fork_child(void)
{
	pid_t pid = fork();
	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static inline void *shared_memory(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static inline pthread_t start(void *(*body)(void *), long argument)
{
	pthread_t t;
	if (pthread_create(&t, NULL, body, (void *)(intptr_t)argument) != 0)
		exit(9);
	return t;
}

/* Runs the case that is named by the first argument; no argument: lists them. */
static inline int hang_main(int argc, char **argv, const struct hang_case *c, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (argc < 2)
			puts(c[i].name);
		else if (!strcmp(argv[1], c[i].name))
			c[i].run();
	}
	return 0;
}

#endif

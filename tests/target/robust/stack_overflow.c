/* SPDX-License-Identifier: Apache-2.0 */
/* A handler on its own small stack sees the stack overflow and uses what we wrap. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* (two locks: the stack may end within pthread_mutex_unlock, with the first one held) */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER,
		       lock_of_handler = PTHREAD_MUTEX_INITIALIZER;
static char small[16384];

static void handler(int number)
{
	pthread_mutex_lock(&lock_of_handler);
	pthread_mutex_unlock(&lock_of_handler);
	write(1, "overflow\n", 9);
	_exit(number == SIGSEGV ? 11 : 1);
}

static int deeper(int depth)
{
	volatile char fill[4096];
	memset((char *)fill, depth, sizeof fill);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return depth > 1 << 20 ? fill[depth & 4095] : deeper(depth + 1) + fill[5];
}

int main(void)
{
	stack_t stack = {.ss_sp = small, .ss_size = sizeof small};
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = SA_ONSTACK;
	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	return deeper(0);
}

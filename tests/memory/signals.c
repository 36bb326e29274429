/* SPDX-License-Identifier: Apache-2.0 */
/* signals.c - what strict C (-std=c99) and old programs ask of signals, that of a failing access
 * too: it may be blocked, and it may have a handler before a thread begins. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 100000 };
static volatile int data[1000], nr_caught;
int sigsetmask(int mask);
int sigblock(int mask);

static void fill(void)
{
	for (int i = 0; i < MANY; i++)
		data[i % 1000] += i;
}

static void caught(int number)
{
	nr_caught += number;
	fill();
}

static void unexpected(int number)
{
	_Exit(number);
}

static void *begin(void *unused)
{
	fill();
	return unused;
}

int main(void)
{
	pthread_t thread;
	sigset_t some, all;
	signal(SIGSEGV, unexpected);
	pthread_create(&thread, NULL, begin, NULL);
	pthread_join(thread, NULL);
	printf("%d\n", signal(SIGSEGV, unexpected) == unexpected);

	signal(SIGUSR1, caught); /* once: in strict C it is the default again */
	raise(SIGUSR1);
	printf("%d %d\n", nr_caught, signal(SIGUSR1, SIG_DFL) == SIG_DFL);

	sigset(SIGUSR2, caught);
	sighold(SIGUSR2);
	raise(SIGUSR2);
	printf("%d ", nr_caught);
	sigfillset(&all);
	sigdelset(&all, SIGUSR2);
	sigsuspend(&all); /* the handler runs with all others blocked */
	printf("%d ", nr_caught);
	printf("%d ", sigset(SIGUSR2, SIG_IGN) == SIG_HOLD);
	printf("%d\n", sigset(SIGUSR2, SIG_HOLD) == SIG_IGN);
	sigignore(SIGUSR1);
	raise(SIGUSR1);

	sigemptyset(&some);
	sigaddset(&some, SIGSEGV);
	sigprocmask(SIG_BLOCK, &some, NULL);
	fill();
	sighold(SIGSEGV);
	fill();
	printf("%d %d\n", sigblock(-1) >= 0, sigset(SIGSEGV, SIG_HOLD) != SIG_ERR);
	fill();
	sigsetmask(-1);
	fill();
	printf("%d\n", data[7]);
	return 0;
}

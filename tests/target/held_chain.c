/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held_chain - locks that are not given up in the order of a stack: a list of NODES is walked hand
 * over hand ROUNDS times, so that at least one lock is held from each walk's beginning to its end;
 * then DEEP locks are held at once, given up the last one first. A signal handler locks meanwhile.
 * Known answers: how often each is taken, and that what is held adds up.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

enum { NODES = 100, ROUNDS = 50, DEEP = 40 };

static pthread_mutex_t node[NODES], deep[DEEP], in_handler = PTHREAD_MUTEX_INITIALIZER;

static void on_alarm(int signal)
{
	(void)signal;
	pthread_mutex_lock(&in_handler);
	pthread_mutex_unlock(&in_handler);
}

static void walk(void)
{
	pthread_mutex_lock(&node[0]);
	for (int i = 1; i < NODES; i++) {
		pthread_mutex_lock(&node[i]);
		pthread_mutex_unlock(&node[i - 1]);
	}
	pthread_mutex_unlock(&node[NODES - 1]);
}

int main(void)
{
	struct sigaction handler = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 100}, {0, 100}}, never = {0};
	for (int i = 0; i < NODES; i++)
		pthread_mutex_init(&node[i], NULL);
	for (int i = 0; i < DEEP; i++)
		pthread_mutex_init(&deep[i], NULL);
	sigaction(SIGALRM, &handler, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int round = 0; round < ROUNDS; round++)
		walk();
	setitimer(ITIMER_REAL, &never, NULL);
	for (int i = 0; i < DEEP; i++)
		pthread_mutex_lock(&deep[i]);
	for (int i = DEEP; i > 0; i--)
		pthread_mutex_unlock(&deep[i - 1]);
	return 0;
}

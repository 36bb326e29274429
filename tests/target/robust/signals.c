/* SPDX-License-Identifier: Apache-2.0 */
/* A storm of signals whose handler uses what we wrap, in two threads. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, handlers = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;
static atomic_int nr_signals;
static int count, null_fd[2];

static void handler(int number)
{
	(void)number;
	for (int i = 0; i < 30; i++)
		if (pthread_mutex_trylock(&handlers) == 0)
			pthread_mutex_unlock(&handlers);
	sem_post(&semaphore);
	write(null_fd[1], "x", 0);
	nr_signals++;
}

static void *work(void *unused)
{
	while (nr_signals < 3000) {
		pthread_mutex_lock(&lock);
		count++;
		pthread_mutex_unlock(&lock);
		sem_trywait(&semaphore);
	}
	return unused;
}

int main(void)
{
	struct sigaction action;
	struct itimerval timer = {{0, 100}, {0, 100}};
	pthread_t t[2];
	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	sem_init(&semaphore, 0, 0);
	pipe(null_fd);
	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, work, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	memset(&timer, 0, sizeof timer);
	setitimer(ITIMER_REAL, &timer, NULL);
	printf("%s\n", count > 0 ? "done" : "nothing");
	return 0;
}

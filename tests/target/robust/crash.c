/* SPDX-License-Identifier: Apache-2.0 */
/* Dies by SIGSEGV while other threads hold and want a lock. expect: barrier_leave 2 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *holder(void *unused)
{
	pthread_mutex_lock(&a);
	pthread_barrier_wait(&both);
	for (;;)
		pause();
	return unused;
}

static void *waiter(void *unused)
{
	pthread_mutex_lock(&b);
	pthread_mutex_lock(&a);
	return unused;
}

int main(void)
{
	pthread_t t;
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&t, NULL, holder, NULL);
	pthread_barrier_wait(&both);
	pthread_create(&t, NULL, waiter, NULL);
	while (pthread_mutex_trylock(&b) == 0) {
		pthread_mutex_unlock(&b);
		usleep(1000);
	}
	printf("before the crash\n");
	fflush(stdout);
	raise(SIGSEGV);
	return 0;
}

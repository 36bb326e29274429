/* SPDX-License-Identifier: Apache-2.0 */
/* crowd.c - more threads than the recorder has blocks, all of which wait for each other. */
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 150, ROUNDS = 3, TURNS = 3000 };

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long cell[THREADS], sum;

static void *run(void *number)
{
	long *own = &cell[(long)number];
	for (int round = 0; round < ROUNDS; round++) {
		for (long i = 0; i < TURNS; i++)
			*own += i;
		pthread_mutex_lock(&mutex);
		sum += *own;
		pthread_mutex_unlock(&mutex);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("%ld\n", sum);
	return 0;
}

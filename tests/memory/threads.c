/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - threads that share: plain, locked, by atomics and by string instructions. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 3, TURNS = 400, ITEMS = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(64) atomic_long turns; /* in a line of its own */
static long sum, item[THREADS][ITEMS];
static double scaled[ITEMS];

static void *run(void *number)
{
	long *own = item[(long)number];
	for (long i = 0; i < TURNS; i++) {
		long clear[ITEMS], nr = ITEMS;
		void *to = clear;
		__asm__ volatile("rep stosq" : "+c"(nr), "+D"(to) : "a"(i) : "memory");
		for (int k = 0; k < ITEMS; k++)
			own[k] += clear[k] + k;
		pthread_mutex_lock(&mutex);
		sum += own[i % ITEMS];
		scaled[i % ITEMS] += (double)own[i % ITEMS] * 0.5;
		pthread_mutex_unlock(&mutex);
		atomic_fetch_add(&turns, 1);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	for (long i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("%ld %ld %.1f\n", atomic_load(&turns), sum, scaled[ITEMS - 1]);
	return 0;
}

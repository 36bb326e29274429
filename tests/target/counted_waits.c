/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counted_waits.c [SCALE] - one thread computes under a lock nearly all the time; another one waits for
 * it between two computations of its own (of SCALE times their length), and ends last. With half of
 * these the run takes 0.85 to 0.9 of its time.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double scale = 1;

static void compute(double us)
{
	struct timespec from, now;
	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((double)(now.tv_sec - from.tv_sec) * 1e6 +
			(double)(now.tv_nsec - from.tv_nsec) / 1e3 <
		us);
}

static void *holder(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		compute(4000);
		pthread_mutex_unlock(&lock);
		compute(300);
	}
	return unused;
}

static void *waiter(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		compute(50 * scale);
		pthread_mutex_unlock(&lock);
		compute(3000 * scale);
	}
	compute(20000 * scale);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t first, second;
	if (argc > 1)
		scale = atof(argv[1]);
	pthread_create(&first, NULL, holder, NULL);
	pthread_create(&second, NULL, waiter, NULL);
	pthread_join(second, NULL);
	pthread_join(first, NULL);
	return 0;
}

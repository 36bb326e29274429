/* SPDX-License-Identifier: Apache-2.0 */
/* ticks.c - holds a lock for 40 ms, five times; says how long it thinks that it took. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
	struct timespec begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&lock);
		usleep(40000);
		pthread_mutex_unlock(&lock);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%ld\n",
		(end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000);
	return 0;
}

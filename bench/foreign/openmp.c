/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openmp ordered|critical MICROSECONDS ROUNDS - a loop with a part in order, or under a lock: that
 * part waits so long for something outside.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NR_THREADS = 2, LOOPS = 60000 };

static volatile uint64_t sinks[NR_THREADS * 1024];

__attribute__((noinline)) static void work_alone(long round)
{
	volatile uint64_t *sink = &sinks[round % NR_THREADS * 1024];
	for (uint64_t i = 0; i < LOOPS; i++)
		*sink += i;
}

__attribute__((noinline)) static void wait_outside(long microseconds)
{
	struct timespec time = {.tv_nsec = microseconds * 1000};
	nanosleep(&time, NULL);
}

static void loop_in_order(long rounds, long microseconds)
{
#pragma omp parallel for ordered schedule(static, 1) num_threads(NR_THREADS)
	for (long round = 0; round < rounds; round++) {
		work_alone(round);
#pragma omp ordered
		wait_outside(microseconds);
	}
}

static void loop_with_lock(long rounds, long microseconds)
{
#pragma omp parallel for schedule(static, 1) num_threads(NR_THREADS)
	for (long round = 0; round < rounds; round++) {
		work_alone(round);
#pragma omp critical
		wait_outside(microseconds);
	}
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	long microseconds = atol(argv[2]), rounds = atol(argv[3]);
	if (strcmp(argv[1], "ordered") == 0)
		loop_in_order(rounds, microseconds);
	else
		loop_with_lock(rounds, microseconds);
	return 0;
}

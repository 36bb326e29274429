/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotate_cost - what a verb of longpole/annotate.h costs when nobody records, and when somebody
 * does. Usage: annotate_cost LIBRARY [ROUNDS]
 *
 * Not recorded: a loop with the verb against the same loop without. Recorded: against a loop with
 * one rdtsc, in a child under the preload library while this process gives its blocks back. Goals:
 * 2 ns; 1.5 x rdtsc + 10 ns.
 */
#include "../tests/target/ring_host.h"
#include <longpole/annotate.h>

#include <pthread.h>
#include <time.h>

enum { VERBS = 20000, ROUNDS_MAX = 4000 };

static volatile uint64_t counter;

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((noinline)) static double measure_nothing(void)
{
	double begin = now_ns();
	for (int i = 0; i < VERBS; i++)
		counter = (uint64_t)i;
	return (now_ns() - begin) / VERBS;
}

__attribute__((noinline)) static double measure_rdtsc(void)
{
	double begin = now_ns();
	for (int i = 0; i < VERBS; i++)
		counter = __rdtsc();
	return (now_ns() - begin) / VERBS;
}

__attribute__((noinline)) static double measure_verb(void)
{
	double begin = now_ns();
	for (int i = 0; i < VERBS; i++) {
		counter = (uint64_t)i;
		longpole_enqueue("queue", 1, 1, 0);
	}
	return (now_ns() - begin) / VERBS;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static int measure(int rounds, bool recorded)
{
	static double nothing[ROUNDS_MAX], rdtsc[ROUNDS_MAX], verb[ROUNDS_MAX];
	for (int i = 0; i < rounds; i++) {
		nothing[i] = measure_nothing();
		rdtsc[i] = measure_rdtsc();
		verb[i] = measure_verb();
		if (recorded)
			usleep(1000); /* the reader keeps up */
	}
	qsort(nothing, (size_t)rounds, sizeof(double), ascending);
	qsort(rdtsc, (size_t)rounds, sizeof(double), ascending);
	qsort(verb, (size_t)rounds, sizeof(double), ascending);
	double base = nothing[rounds / 2], stamp = rdtsc[rounds / 2] - base;
	printf("%-12s rdtsc %6.2f ns, verb %6.2f ns (least %.2f); goal %.2f\n",
		recorded ? "recorded" : "not recorded", stamp, verb[rounds / 2] - base,
		verb[0] - nothing[0], recorded ? 1.5 * stamp + 10 : 2.0);
	return 0;
}

static volatile bool stop;

static void *drain(void *argument)
{
	struct ring_host *host = argument;
	while (!stop) {
		for (uint32_t i = 0; i < host->head->nr_blocks; i++)
			if (__atomic_load_n(&ring_host_block(host, i)->state, __ATOMIC_ACQUIRE) ==
				RING_BLOCK_DONE)
				ring_host_free(host, i);
		usleep(100);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 500;
	struct ring_host host;
	pthread_t drainer;
	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX)
		return fprintf(stderr, "usage: annotate_cost LIBRARY [ROUNDS]\n"), 2;
	if (strcmp(argv[1], "--recorded") == 0)
		return measure(rounds, true);
	measure(rounds, false);
	fflush(stdout);
	if (!ring_host_open(&host, 256))
		return 4;
	pthread_create(&drainer, NULL, drain, &host);
	ring_host_setenv(&host, argv[1]);
	char command[300];
	snprintf(command, sizeof command, "%s --recorded %d", argv[0], rounds);
	int status = system(command);
	stop = true;
	pthread_join(drainer, NULL);
	printf("lost %llu\n", (unsigned long long)host.head->lost_records);
	ring_host_close(&host);
	return status != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkjoin - each round creates workers and joins them all; one has more to do than the others.
 * Known answer: slow_work() is the path. Shortened to half, the others are the longer for some
 * rounds.
 */
#include <pthread.h>

#include "target.h"

enum { WORKERS_MAX = 16 };

struct worker {
	pthread_t thread;
	uint64_t units, sum;
};

TARGET_FUNCTION uint64_t slow_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

TARGET_FUNCTION uint64_t fast_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static void *run_slow(void *arg)
{
	struct worker *w = arg;
	w->sum = slow_work(w->sum, w->units);
	return NULL;
}

static void *run_fast(void *arg)
{
	struct worker *w = arg;
	w->sum = fast_work(w->sum, w->units);
	return NULL;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --rounds --workers --slow-units --fast-units");
	uint64_t rounds = target_number(argc, argv, "--rounds", 60);
	uint64_t nr_workers = target_number(argc, argv, "--workers", 2);
	uint64_t slow_units = target_number(argc, argv, "--slow-units", 9000);
	uint64_t fast_units = target_number(argc, argv, "--fast-units", 5000);
	uint64_t percent = target_percent(argc, argv);
	if (!nr_workers || nr_workers > WORKERS_MAX)
		return 2;
	uint64_t sum = 0;
	for (uint64_t round = 0; round < rounds; round++) {
		struct worker worker[WORKERS_MAX] = {0};
		for (uint64_t i = 0; i < nr_workers; i++) {
			struct worker *w = &worker[i];
			w->units = i ? target_vary(i, round, fast_units)
				     : target_vary(i, round, slow_units) * percent / 100;
			w->sum = round;
			target_must(!pthread_create(&w->thread, NULL, i ? run_fast : run_slow, w),
				"pthread_create");
		}
		for (uint64_t i = 0; i < nr_workers; i++) {
			pthread_join(worker[i].thread, NULL);
			sum += worker[i].sum;
		}
		TARGET_PROGRESS("round");
	}
	target_print(sum);
	return 0;
}

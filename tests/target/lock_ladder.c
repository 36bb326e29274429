/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_ladder - threads take turns at one lock: {critical_section(); parallel_work()}.
 * Known answer: with two threads and a section longer than the rest, the path goes from holder to
 * holder. Shortened to half, the lock is no longer always taken, and the gain is less than twice.
 * --lock=mutex|spin; --threads=4 on two processors is the oversubscribed variant.
 */
#include <pthread.h>

#include "target.h"

enum { THREADS_MAX = 64 };

static pthread_mutex_t ladder_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t ladder_spin;
static uint64_t rung;

struct climber {
	pthread_t thread;
	uint64_t number, rounds, section_units, parallel_units, percent, sum;
	bool spin;
};

TARGET_FUNCTION void critical_section(uint64_t units)
{
	TARGET_WORK(rung, units); /* section */
}

TARGET_FUNCTION uint64_t parallel_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static void *climb(void *arg)
{
	struct climber *c = arg;
	for (uint64_t i = 0; i < c->rounds; i++) {
		uint64_t units = target_vary(c->number, i, c->section_units) * c->percent / 100;
		if (c->spin)
			pthread_spin_lock(&ladder_spin);
		else
			pthread_mutex_lock(&ladder_mutex);
		critical_section(units);
		if (c->spin)
			pthread_spin_unlock(&ladder_spin);
		else
			pthread_mutex_unlock(&ladder_mutex);
		c->sum = parallel_work(
			c->sum, target_vary(c->number + THREADS_MAX, i, c->parallel_units));
		TARGET_PROGRESS("rung");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	target_check(argc, argv,
		"--section-percent --threads --rounds --lock --section-units --parallel-units");
	uint64_t nr_threads = target_number(argc, argv, "--threads", 2);
	if (!nr_threads || nr_threads > THREADS_MAX)
		return 2;
	struct climber climber[THREADS_MAX] = {0};
	target_must(!pthread_spin_init(&ladder_spin, PTHREAD_PROCESS_PRIVATE), "pthread_spin_init");
	for (uint64_t i = 0; i < nr_threads; i++) {
		struct climber *c = &climber[i];
		c->number = i;
		c->rounds = target_number(argc, argv, "--rounds", 3200) / nr_threads;
		c->section_units = target_number(argc, argv, "--section-units", 200);
		c->parallel_units = target_number(argc, argv, "--parallel-units", 130);
		c->percent = target_percent(argc, argv);
		c->spin = !strcmp(target_text(argc, argv, "--lock", "mutex"), "spin");
		target_must(!pthread_create(&c->thread, NULL, climb, c), "pthread_create");
	}
	uint64_t sum = 0;
	for (uint64_t i = 0; i < nr_threads; i++) {
		pthread_join(climber[i].thread, NULL);
		sum += climber[i].sum;
	}
	target_print(sum + rung);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * barrier - phases with a barrier after each; one thread has more to do than the others, but not in
 * every phase. Known answer: heavy_phase() is most of the path.
 */
#include <pthread.h>

#include "target.h"

enum { THREADS_MAX = 16 };

static pthread_barrier_t phase_barrier;

struct party {
	pthread_t thread;
	uint64_t number, phases, units, percent, sum;
};

TARGET_FUNCTION uint64_t heavy_phase(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

TARGET_FUNCTION uint64_t light_phase(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static void *run(void *arg)
{
	struct party *p = arg;
	for (uint64_t phase = 0; phase < p->phases; phase++) {
		uint64_t units = target_vary(p->number, phase, p->units) * p->percent / 100;
		p->sum = p->number ? light_phase(p->sum, units) : heavy_phase(p->sum, units);
		pthread_barrier_wait(&phase_barrier);
		if (!p->number)
			TARGET_PROGRESS("phase");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	target_check(
		argc, argv, "--section-percent --phases --threads --heavy-units --light-units");
	uint64_t nr_threads = target_number(argc, argv, "--threads", 2);
	uint64_t phases = target_number(argc, argv, "--phases", 700);
	uint64_t heavy_units = target_number(argc, argv, "--heavy-units", 800);
	uint64_t light_units = target_number(argc, argv, "--light-units", 500);
	uint64_t percent = target_percent(argc, argv);
	if (!nr_threads || nr_threads > THREADS_MAX)
		return 2;
	target_must(!pthread_barrier_init(&phase_barrier, NULL, (unsigned)nr_threads),
		"pthread_barrier_init");
	struct party party[THREADS_MAX] = {0};
	for (uint64_t i = 0; i < nr_threads; i++) {
		party[i].number = i;
		party[i].phases = phases;
		party[i].units = i ? light_units : heavy_units;
		party[i].percent = i ? 100 : percent;
		target_must(
			!pthread_create(&party[i].thread, NULL, run, &party[i]), "pthread_create");
	}
	uint64_t sum = 0;
	for (uint64_t i = 0; i < nr_threads; i++) {
		pthread_join(party[i].thread, NULL);
		sum += party[i].sum;
	}
	target_print(sum);
	return 0;
}

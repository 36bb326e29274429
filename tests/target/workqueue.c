/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workqueue - the main thread generates items into a bounded queue, workers take them; condition
 * variables on both ends. Known answer: --bottleneck=generator: generate() is the path;
 * --bottleneck=workers: process_item() is, in whichever worker; what finish_item() does stays.
 */
#include <pthread.h>

#include "target.h"

enum { QUEUE_SLOTS = 16, WORKERS_MAX = 16 };

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_available = PTHREAD_COND_INITIALIZER;
static pthread_cond_t space_available = PTHREAD_COND_INITIALIZER;
static uint64_t queue_item[QUEUE_SLOTS], nr_put, nr_taken;
static bool finished;

struct worker {
	pthread_t thread;
	uint64_t units, finish_units, percent, sum;
};

TARGET_FUNCTION uint64_t generate(uint64_t seed, uint64_t units)
{
	TARGET_WORK(seed, units); /* section generator */
	return seed;
}

TARGET_FUNCTION uint64_t process_item(uint64_t item, uint64_t units)
{
	TARGET_WORK(item, units); /* section workers */
	return item;
}

TARGET_FUNCTION uint64_t finish_item(uint64_t item, uint64_t units)
{
	TARGET_WORK(item, units);
	return item;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	for (;;) {
		pthread_mutex_lock(&queue_lock);
		while (nr_put == nr_taken && !finished)
			pthread_cond_wait(&work_available, &queue_lock);
		if (nr_put == nr_taken) {
			pthread_mutex_unlock(&queue_lock);
			return NULL;
		}
		uint64_t number = nr_taken++;
		uint64_t item = queue_item[number % QUEUE_SLOTS];
		pthread_cond_signal(&space_available);
		pthread_mutex_unlock(&queue_lock);
		item = process_item(item, target_vary(2, number, w->units) * w->percent / 100);
		w->sum += finish_item(item, target_vary(3, number, w->finish_units));
		TARGET_PROGRESS("item");
	}
}

int main(int argc, char **argv)
{
	target_check(argc, argv,
		"--section-percent --bottleneck --items --workers --generate-units --process-units "
		"--finish-units");
	bool slow_workers =
		!strcmp(target_text(argc, argv, "--bottleneck", "generator"), "workers");
	uint64_t items = target_number(argc, argv, "--items", slow_workers ? 3000 : 2500);
	uint64_t nr_workers = target_number(argc, argv, "--workers", 2);
	uint64_t generate_units =
		target_number(argc, argv, "--generate-units", slow_workers ? 8 : 220);
	uint64_t process_units =
		target_number(argc, argv, "--process-units", slow_workers ? 300 : 60);
	uint64_t finish_units = target_number(argc, argv, "--finish-units", slow_workers ? 60 : 20);
	uint64_t percent = target_percent(argc, argv);
	if (!nr_workers || nr_workers > WORKERS_MAX)
		return 2;
	struct worker worker[WORKERS_MAX] = {0};
	for (uint64_t i = 0; i < nr_workers; i++) {
		worker[i].units = process_units;
		worker[i].finish_units = finish_units;
		worker[i].percent = slow_workers ? percent : 100;
		target_must(!pthread_create(&worker[i].thread, NULL, work, &worker[i]),
			"pthread_create");
	}
	for (uint64_t i = 0; i < items; i++) {
		uint64_t item = generate(i,
			target_vary(1, i, generate_units) * (slow_workers ? 100 : percent) / 100);
		pthread_mutex_lock(&queue_lock);
		while (nr_put - nr_taken == QUEUE_SLOTS)
			pthread_cond_wait(&space_available, &queue_lock);
		queue_item[nr_put++ % QUEUE_SLOTS] = item;
		pthread_cond_signal(&work_available);
		pthread_mutex_unlock(&queue_lock);
	}
	pthread_mutex_lock(&queue_lock);
	finished = true;
	pthread_cond_broadcast(&work_available);
	pthread_mutex_unlock(&queue_lock);
	uint64_t sum = 0;
	for (uint64_t i = 0; i < nr_workers; i++) {
		pthread_join(worker[i].thread, NULL);
		sum += worker[i].sum;
	}
	target_print(sum);
	return 0;
}

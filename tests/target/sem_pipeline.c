/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sem_pipeline - three threads, a bounded buffer between two neighbours: one semaphore counts
 * items, one counts free places. Known answer: the middle stage, filter(), is the path.
 * --by=futex: semaphores of the program's own, of futex words, as other languages' libraries have
 * them.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target.h"

enum { BUFFER_SLOTS = 4 };

struct semaphore {
	sem_t posix;
	_Atomic uint32_t units, sleepers;
};
struct buffer {
	struct semaphore items, places;
	uint64_t slot[BUFFER_SLOTS], nr_put, nr_taken;
};
static struct buffer parsed, filtered;

static uint64_t nr_items, parse_units, filter_units, store_units, percent, total;
static bool by_futex;

static void down(struct semaphore *s)
{
	if (!by_futex) {
		sem_wait(&s->posix);
		return;
	}
	for (;;) {
		uint32_t units = s->units;
		if (units && atomic_compare_exchange_weak(&s->units, &units, units - 1))
			return;
		s->sleepers++;
		syscall(SYS_futex, &s->units, FUTEX_WAIT_PRIVATE, 0, NULL);
		s->sleepers--;
	}
}

static void up(struct semaphore *s)
{
	if (!by_futex) {
		sem_post(&s->posix);
		return;
	}
	s->units++;
	if (s->sleepers)
		syscall(SYS_futex, &s->units, FUTEX_WAKE_PRIVATE, 1);
}

TARGET_FUNCTION uint64_t parse(uint64_t item, uint64_t units)
{
	TARGET_WORK(item, units);
	return item;
}

TARGET_FUNCTION uint64_t filter(uint64_t item, uint64_t units)
{
	TARGET_WORK(item, units); /* section */
	return item;
}

TARGET_FUNCTION uint64_t store(uint64_t item, uint64_t units)
{
	TARGET_WORK(item, units);
	return item;
}

static void put(struct buffer *b, uint64_t item)
{
	down(&b->places);
	b->slot[b->nr_put++ % BUFFER_SLOTS] = item;
	up(&b->items);
}

static uint64_t take(struct buffer *b)
{
	down(&b->items);
	uint64_t item = b->slot[b->nr_taken++ % BUFFER_SLOTS];
	up(&b->places);
	return item;
}

static void *run_parser(void *arg)
{
	for (uint64_t i = 0; i < nr_items; i++)
		put(&parsed, parse(i, target_vary(1, i, parse_units)));
	return arg;
}

static void *run_filter(void *arg)
{
	for (uint64_t i = 0; i < nr_items; i++)
		put(&filtered,
			filter(take(&parsed), target_vary(2, i, filter_units) * percent / 100));
	return arg;
}

static void *run_store(void *arg)
{
	for (uint64_t i = 0; i < nr_items; i++) {
		total += store(take(&filtered), target_vary(3, i, store_units));
		TARGET_PROGRESS("item");
	}
	return arg;
}

int main(int argc, char **argv)
{
	target_check(argc, argv,
		"--section-percent --items --parse-units --filter-units --store-units --by");
	nr_items = target_number(argc, argv, "--items", 2500);
	parse_units = target_number(argc, argv, "--parse-units", 30);
	filter_units = target_number(argc, argv, "--filter-units", 220);
	store_units = target_number(argc, argv, "--store-units", 50);
	percent = target_percent(argc, argv);
	by_futex = !strcmp(target_text(argc, argv, "--by", "sem"), "futex");
	struct buffer *buffer[2] = {&parsed, &filtered};
	for (int i = 0; i < 2; i++) {
		target_must(!sem_init(&buffer[i]->items.posix, 0, 0) &&
				    !sem_init(&buffer[i]->places.posix, 0, BUFFER_SLOTS),
			"sem_init");
		buffer[i]->places.units = BUFFER_SLOTS;
	}
	void *(*stage[3])(void *) = {run_parser, run_filter, run_store};
	pthread_t thread[3];
	for (int i = 0; i < 3; i++)
		target_must(!pthread_create(&thread[i], NULL, stage[i], NULL), "pthread_create");
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	target_print(total);
	return 0;
}

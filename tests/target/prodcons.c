/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prodcons - producer and consumer over a bounded ring with a mutex and two condition variables.
 * Known answer: the slow side, --slow=producer|consumer, is the path; the section is the slow
 * side's work.
 */
#include <pthread.h>

#include "target.h"

enum { RING_SLOTS = 8 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	uint64_t slot[RING_SLOTS], nr_put, nr_taken;
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.not_empty = PTHREAD_COND_INITIALIZER,
	.not_full = PTHREAD_COND_INITIALIZER};

struct side {
	uint64_t items, units, percent, sum;
};

TARGET_FUNCTION uint64_t produce(uint64_t seed, uint64_t units)
{
	TARGET_WORK(seed, units); /* section producer */
	return seed;
}

TARGET_FUNCTION uint64_t consume(uint64_t item, uint64_t units)
{
	TARGET_WORK(item, units); /* section consumer */
	return item;
}

static void *run_producer(void *arg)
{
	struct side *s = arg;
	for (uint64_t i = 0; i < s->items; i++) {
		uint64_t item = produce(i, target_vary(1, i, s->units) * s->percent / 100);
		pthread_mutex_lock(&ring.lock);
		while (ring.nr_put - ring.nr_taken == RING_SLOTS)
			pthread_cond_wait(&ring.not_full, &ring.lock);
		ring.slot[ring.nr_put++ % RING_SLOTS] = item;
		pthread_cond_signal(&ring.not_empty);
		pthread_mutex_unlock(&ring.lock);
	}
	return NULL;
}

static void *run_consumer(void *arg)
{
	struct side *s = arg;
	for (uint64_t i = 0; i < s->items; i++) {
		pthread_mutex_lock(&ring.lock);
		while (ring.nr_put == ring.nr_taken)
			pthread_cond_wait(&ring.not_empty, &ring.lock);
		uint64_t item = ring.slot[ring.nr_taken++ % RING_SLOTS];
		pthread_cond_signal(&ring.not_full);
		pthread_mutex_unlock(&ring.lock);
		s->sum += consume(item, target_vary(2, i, s->units) * s->percent / 100);
		TARGET_PROGRESS("item");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --slow --items --slow-units --fast-units");
	bool slow_producer = !strcmp(target_text(argc, argv, "--slow", "consumer"), "producer");
	uint64_t items = target_number(argc, argv, "--items", 2500);
	uint64_t slow_units = target_number(argc, argv, "--slow-units", 220);
	uint64_t fast_units = target_number(argc, argv, "--fast-units", 90);
	uint64_t percent = target_percent(argc, argv);
	struct side producer = {.items = items, .units = fast_units, .percent = 100};
	struct side consumer = producer;
	struct side *slow = slow_producer ? &producer : &consumer;
	slow->units = slow_units;
	slow->percent = percent;

	pthread_t producer_thread, consumer_thread;
	target_must(
		!pthread_create(&producer_thread, NULL, run_producer, &producer), "pthread_create");
	target_must(
		!pthread_create(&consumer_thread, NULL, run_consumer, &consumer), "pthread_create");
	pthread_join(producer_thread, NULL);
	pthread_join(consumer_thread, NULL);
	target_print(consumer.sum);
	return 0;
}

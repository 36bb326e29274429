/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units with times and keys in replay's queues, against a plain array that is searched from its
 * begin: with few items, which are searched as well, and with thousands, which have an index.
 */
#include "graph/replay_priv.h"

#include "test.h"

#include <string.h>

enum { ITEMS_MAX = 4096 };

struct plain {
	struct replay_item item[ITEMS_MAX];
	size_t nr;
};

static uint64_t rand_of(uint64_t *seed, uint64_t below)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (*seed >> 33) % below;
}

/* The one to take after `seen` that were looked at; nr: none. */
static size_t plain_next(const struct plain *p, const struct replay_take *take, size_t seen)
{
	size_t best = seen;
	if (take->keyed) {
		while (best < p->nr && p->item[best].key != take->key)
			best++;
		return best;
	}
	if (take->discipline == GRAPH_LIFO)
		return p->nr - 1 - seen;
	for (size_t i = seen + 1; take->discipline == GRAPH_PRIORITY && i < p->nr; i++)
		if (p->item[i].key < p->item[best].key)
			best = i;
	return best;
}

static void plain_remove(struct plain *p, size_t i)
{
	p->nr--;
	memmove(&p->item[i], &p->item[i + 1], (p->nr - i) * sizeof p->item[0]);
}

static uint64_t plain_take(
	struct plain *p, const struct replay_take *take, struct replay_item *latest)
{
	uint64_t left = take->n;
	size_t seen = 0;
	*latest = (struct replay_item){.time_ns = REPLAY_NOBODY};
	while (left && seen < p->nr) {
		size_t i = plain_next(p, take, seen);
		if (i >= p->nr)
			break;
		struct replay_item *it = &p->item[i];
		uint64_t n = left < it->nr_units ? left : it->nr_units;
		left -= n;
		if (it->time_ns != REPLAY_NOBODY &&
			(latest->time_ns == REPLAY_NOBODY || it->time_ns >= latest->time_ns))
			*latest = *it;
		if (take->keep && take->discipline == GRAPH_PRIORITY && !take->keyed)
			break;
		if (take->keep) {
			seen = take->keyed ? i + 1 : seen + 1;
			continue;
		}
		it->nr_units -= n;
		if (!it->nr_units)
			plain_remove(p, i);
	}
	return take->n - left;
}

static void plain_take_back(struct plain *p, uint64_t n)
{
	while (n && p->nr) {
		struct replay_item *it = &p->item[p->nr - 1];
		uint64_t k = n < it->nr_units ? n : it->nr_units;
		n -= k;
		it->nr_units -= k;
		p->nr -= !it->nr_units;
	}
}

static uint64_t plain_units(const struct plain *p, uint64_t key)
{
	uint64_t n = 0;
	for (size_t i = 0; i < p->nr; i++)
		n += p->item[i].key == key ? p->item[i].nr_units : 0;
	return n;
}

struct case_of {
	enum graph_discipline discipline;
	uint64_t nr_keys, nr_keyed_of_ten; /* takes by key, of ten */
	uint64_t puts_of_ten;
	size_t nr_first; /* items before anything is taken */
};

struct queues {
	struct replay_memory memory;
	struct replay_ring ring;
	struct plain *plain;
	uint64_t seed, now;
};

static void put_one(struct queues *q, uint64_t nr_keys)
{
	q->now += rand_of(&q->seed, 3);
	struct replay_item item = {.time_ns = rand_of(&q->seed, 16) ? q->now : REPLAY_NOBODY,
		.nr_units = 1 + rand_of(&q->seed, 3),
		.key = rand_of(&q->seed, nr_keys),
		.order = q->now,
		.step = (uint32_t)q->plain->nr};
	struct base_err err;
	assert_int_equal(graph_replay_ring_push(q->memory, &q->ring, item, &err), BASE_OK);
	q->plain->item[q->plain->nr++] = item;
}

static void take_some(struct queues *q, const struct case_of *c)
{
	struct replay_take take = {.discipline = c->discipline,
		.keyed = rand_of(&q->seed, 10) < c->nr_keyed_of_ten,
		.keep = !rand_of(&q->seed, 4),
		.key = rand_of(&q->seed, c->nr_keys),
		.n = rand_of(&q->seed, 50) ? 1 + rand_of(&q->seed, 6) : UINT64_MAX};
	struct replay_item got, expected;
	if (take.n == UINT64_MAX) /* all of a queue only to look at it, or of one key */
		take.keep |= !take.keyed;
	assert_int_equal(graph_replay_ring_take(&q->ring, &take, &got),
		plain_take(q->plain, &take, &expected));
	assert_memory_equal(&got, &expected, sizeof got);
}

static void run_case(const struct case_of *c, uint64_t seed)
{
	size_t used = 0;
	struct queues q = {.memory = {.used_bytes = &used, .max_bytes = 1 << 30},
		.plain = base_alloc(sizeof *q.plain),
		.seed = seed};
	assert_non_null(q.plain);
	/* who asked for a key before anybody put one decides that there is an index */
	take_some(&q, c);
	while (q.plain->nr < c->nr_first)
		put_one(&q, c->nr_keys);
	for (unsigned i = 0; i < 6000; i++) {
		uint64_t key = rand_of(&q.seed, c->nr_keys);
		if (rand_of(&q.seed, 10) < c->puts_of_ten && q.plain->nr < ITEMS_MAX)
			put_one(&q, c->nr_keys);
		else if (!rand_of(&q.seed, 6)) {
			uint64_t n = 1 + rand_of(&q.seed, 4);
			graph_replay_ring_take_back(&q.ring, n);
			plain_take_back(q.plain, n);
		} else
			take_some(&q, c);
		assert_int_equal(q.ring.nr, q.plain->nr);
		assert_int_equal(graph_replay_ring_units(&q.ring, key), plain_units(q.plain, key));
	}
	graph_replay_ring_fini(&q.ring);
	base_free(q.plain);
}

static void test_as_a_plain_array(void **state)
{
	(void)state;
	static const enum graph_discipline discipline[] = {
		GRAPH_FIFO, GRAPH_LIFO, GRAPH_PRIORITY, GRAPH_POOL};
	static const uint64_t nr_keys[] = {1, 7, 500, UINT64_C(1) << 30};
	for (size_t d = 0; d < BASE_COUNT(discipline); d++)
		for (size_t k = 0; k < BASE_COUNT(nr_keys); k++)
			for (uint64_t by_key = 0; by_key <= 10; by_key += 5)
				for (uint64_t puts = 3; puts <= 7; puts += 2)
					run_case(&(struct case_of){.discipline = discipline[d],
							 .nr_keys = nr_keys[k],
							 .nr_keyed_of_ten = by_key,
							 .puts_of_ten = puts,
							 .nr_first = puts == 3 ? 1500 : 0},
						d * 1000 + k * 100 + by_key * 10 + puts);
}

/* An index is made where somebody takes by key, of many items, and nowhere else. */
static void test_has_an_index(void **state)
{
	(void)state;
	for (unsigned keyed = 0; keyed < 2; keyed++) {
		size_t used = 0;
		struct replay_memory m = {.used_bytes = &used, .max_bytes = 1 << 30};
		struct replay_ring ring = {0};
		struct replay_item got;
		struct base_err err;
		graph_replay_ring_take(&ring, &(struct replay_take){.keyed = keyed, .n = 1}, &got);
		for (uint64_t i = 0; i < 1000; i++) {
			assert_int_equal(
				graph_replay_ring_push(m, &ring,
					(struct replay_item){.nr_units = 1, .key = i}, &err),
				BASE_OK);
			assert_int_equal(ring.keys != NULL, keyed && i >= 64);
		}
		graph_replay_ring_fini(&ring);
	}
}

/* Every byte counts: less room is an error, and what was there is still there. */
static void test_no_room(void **state)
{
	(void)state;
	unsigned nr_refused = 0;
	for (size_t max = 1000; max < 200000; max += 1500) {
		size_t used = 0;
		struct replay_memory m = {.used_bytes = &used, .max_bytes = max};
		struct replay_ring ring = {.by_key = true};
		struct base_err err;
		enum base_status s = BASE_OK;
		uint64_t nr = 0;
		for (; s == BASE_OK && nr < 400; nr += s == BASE_OK)
			s = graph_replay_ring_push(m, &ring,
				(struct replay_item){.nr_units = 1, .key = nr * 977}, &err);
		assert_true(used <= max);
		assert_true(s == BASE_OK || s == BASE_ERR_LIMIT);
		nr_refused += s != BASE_OK;
		for (uint64_t i = 0; i < nr; i++)
			assert_int_equal(graph_replay_ring_units(&ring, i * 977), 1);
		graph_replay_ring_fini(&ring);
	}
	assert_true(nr_refused > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_a_plain_array),
		cmocka_unit_test(test_has_an_index),
		cmocka_unit_test(test_no_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

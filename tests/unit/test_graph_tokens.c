/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_tokens.c - how long a pool's tokens keep a run: by hand, and never more than replay.
 */
#include "graph/tokens.h"

#include "test.h"

#include <math.h>
#include <stdlib.h>

enum { FREE, BUSY, OTHER };
enum { US = 1000 };

static struct graph_tokens *new_tokens(const struct graph_queue_options *o)
{
	struct graph_tokens *t;
	assert_int_equal(graph_tokens_new(NULL, &t, NULL), BASE_OK);
	const struct graph_sink *s = graph_tokens_sink(t);
	assert_int_equal(s->queue(s->ctx, 0, o, NULL), BASE_OK);
	return t;
}

static void say_at(struct graph_tokens *t, enum graph_verb_kind kind, uint64_t us, uint32_t actor,
	int64_t n, uint32_t state)
{
	const struct graph_sink *s = graph_tokens_sink(t);
	struct graph_verb v = {.time_ns = us * US, .actor = actor, .state = state, .n = n};
	assert_int_equal(s->verb(s->ctx, kind, &v, 0, NULL), BASE_OK);
}

static double bound_us(const struct graph_tokens *t, struct graph_edit e)
{
	struct graph_scenario one = {.edit = &e, .nr_edits = 1};
	return graph_tokens_bound(t, &one).length_ns / US;
}

static struct graph_edit edit(enum graph_edit_kind kind, uint32_t id, double factor, uint64_t units)
{
	return (struct graph_edit){kind, id, factor, units};
}

/* One token: 30 us busy, 10 other, 5 of waiting with it in hand; another actor has it for 20. */
static void test_one_token(void **state)
{
	struct graph_tokens *t =
		new_tokens(&(struct graph_queue_options){.discipline = GRAPH_POOL, .initial = 1});
	(void)state;
	say_at(t, GRAPH_VERB_dequeue, 100, 1, 1, BUSY);
	say_at(t, GRAPH_VERB_state, 130, 1, 0, OTHER);
	say_at(t, GRAPH_VERB_wait, 140, 1, 0, FREE);
	say_at(t, GRAPH_VERB_enqueue, 145, 1, 1, BUSY);
	say_at(t, GRAPH_VERB_dequeue, 200, 2, 1, BUSY);
	say_at(t, GRAPH_VERB_enqueue, 220, 2, 1, FREE);
	struct graph_tokens_bound b = graph_tokens_bound(t, NULL);
	assert_float_equal(b.length_ns, 60.0 * US, 1e-6);
	assert_float_equal(b.state_ns, 50.0 * US, 1e-6);
	assert_int_equal(b.state, BUSY);
	assert_float_equal(bound_us(t, edit(GRAPH_EDIT_SCALE_STATE, BUSY, 0.5, 0)), 35, 1e-9);
	assert_float_equal(bound_us(t, edit(GRAPH_EDIT_ELIDE_STATE, OTHER, 0, 0)), 50, 1e-9);
	assert_float_equal(bound_us(t, edit(GRAPH_EDIT_RESIZE_QUEUE, 0, 1, 2)), 20, 1e-9);
	assert_float_equal(bound_us(t, edit(GRAPH_EDIT_UNBOUND_QUEUE, 0, 1, 0)), 0, 1e-9);
	graph_tokens_free(t);
}

/* Buffers that others free, unlimited tokens, and what is no pool say nothing. */
static void test_what_does_not_count(void **state)
{
	static const struct graph_queue_options row[] = {
		{.discipline = GRAPH_POOL, .initial = 2},
		{.discipline = GRAPH_POOL, .initial = GRAPH_UNLIMITED},
		{.discipline = GRAPH_FIFO, .initial = 1},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct graph_tokens *t = new_tokens(&row[i]);
		say_at(t, GRAPH_VERB_dequeue, 0, 1, 1, BUSY);
		say_at(t, GRAPH_VERB_state, 50, 1, 0, FREE);
		say_at(t, GRAPH_VERB_enqueue, 60, i ? 1 : 2, 1, FREE);
		assert_float_equal(graph_tokens_bound(t, NULL).length_ns, 0, 1e-9);
		graph_tokens_free(t);
	}
}

/* ---- law: no run that is simulated by itself is shorter -------------------------------------- */

enum { SEEDS = 200, ACTORS = 6, ROUNDS = 20, VERBS = ACTORS * ROUNDS * 3 };

struct network {
	unsigned nr_actors, nr_tokens;
	uint64_t think_us[ACTORS][ROUNDS], hold_us[ACTORS][ROUNDS];
	uint64_t percent[ACTORS]; /* of its holds */
};
struct said {
	uint64_t us;
	enum graph_verb_kind kind;
	uint32_t actor, state;
};

static uint64_t dice(uint32_t *seed, uint64_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % below;
}

/* The first that is ready takes first. Returns the end; fills verbs (as many as there are rounds,
 * times three), in no order. */
static uint64_t simulate(const struct network *w, struct said *verb)
{
	uint64_t free_us[ACTORS] = {0}, at_us[ACTORS], end_us = 0;
	unsigned round[ACTORS] = {0};
	for (unsigned a = 0; a < w->nr_actors; a++)
		at_us[a] = w->think_us[a][0];
	for (unsigned k = 0; k < w->nr_actors * ROUNDS; k++) {
		unsigned a = ACTORS, token = 0;
		for (unsigned i = 0; i < w->nr_actors; i++)
			if (round[i] < ROUNDS && (a == ACTORS || at_us[i] < at_us[a]))
				a = i;
		for (unsigned i = 0; i < w->nr_tokens; i++)
			token = free_us[i] < free_us[token] ? i : token;
		uint64_t take = free_us[token] > at_us[a] ? free_us[token] : at_us[a];
		uint64_t give = take + w->hold_us[a][round[a]] * w->percent[a] / 100;
		*verb++ = (struct said){at_us[a], GRAPH_VERB_wait_empty, a, FREE};
		*verb++ = (struct said){take, GRAPH_VERB_dequeue, a, OTHER + a};
		*verb++ = (struct said){give, GRAPH_VERB_enqueue, a, FREE};
		free_us[token] = give;
		end_us = give > end_us ? give : end_us;
		if (++round[a] < ROUNDS)
			at_us[a] = give + w->think_us[a][round[a]];
	}
	return end_us;
}

/* By time; at the same time an actor waits, others give, it takes. */
static int by_time(const void *a, const void *b)
{
	const struct said *x = a, *y = b;
	const int rank[] = {
		[GRAPH_VERB_wait_empty] = 0, [GRAPH_VERB_enqueue] = 1, [GRAPH_VERB_dequeue] = 2};
	if (x->us != y->us)
		return x->us < y->us ? -1 : 1;
	return rank[x->kind] - rank[y->kind];
}

static void test_no_run_is_shorter(void **state)
{
	struct network w;
	static struct said verb[VERBS], unused[VERBS];
	(void)state;
	for (uint32_t seed = 1; seed <= SEEDS; seed++) {
		uint32_t s = seed;
		uint64_t held_us = 0;
		w.nr_tokens = 1 + (unsigned)dice(&s, 3);
		w.nr_actors = w.nr_tokens + (unsigned)dice(&s, ACTORS - w.nr_tokens + 1);
		for (unsigned a = 0; a < w.nr_actors; a++) {
			w.percent[a] = 100;
			for (unsigned r = 0; r < ROUNDS; r++) {
				w.think_us[a][r] = 1 + dice(&s, 100);
				held_us += w.hold_us[a][r] = 100 * (1 + dice(&s, 9));
			}
		}
		size_t nr = (size_t)w.nr_actors * ROUNDS * 3;
		struct graph_tokens *t = new_tokens(&(struct graph_queue_options){
			.discipline = GRAPH_POOL, .initial = w.nr_tokens});
		uint64_t end_us = simulate(&w, verb);
		qsort(verb, nr, sizeof *verb, by_time);
		for (size_t i = 0; i < nr; i++)
			say_at(t, verb[i].kind, verb[i].us, 1 + verb[i].actor,
				verb[i].kind != GRAPH_VERB_wait_empty, verb[i].state);
		double bound = graph_tokens_bound(t, NULL).length_ns / US;
		assert_true(fabs(bound - (double)held_us / w.nr_tokens) < 1e-6);
		assert_true(bound <= (double)end_us);
		unsigned a = (unsigned)dice(&s, w.nr_actors);
		w.percent[a] = 25 * dice(&s, 4);
		bound = bound_us(
			t, edit(GRAPH_EDIT_SCALE_STATE, OTHER + a, (double)w.percent[a] / 100, 0));
		assert_true(bound <= (double)simulate(&w, unused) + 1e-6);
		graph_tokens_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_token),
		cmocka_unit_test(test_what_does_not_count),
		cmocka_unit_test(test_no_run_is_shorter),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_tokens.c - how long a pool's tokens keep a run: by hand, and never more than replay.
 */
#include "graph/tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_token),
		cmocka_unit_test(test_what_does_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

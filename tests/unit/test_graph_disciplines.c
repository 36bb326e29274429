/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_graph_disciplines.c - which unit a take gets, hence whom it depends on: known answers.
 *
 * Three producers begin at 0 and put one unit each, at 10, 20 and 30, with keys 5, 1 and 3. The
 * consumer waits from 0 and takes at 40.
 */
#include "graph/graph.h"
#include "test.h"

enum { PRODUCERS = 3, CONSUMER = 3, ROOT = 4, ACTORS = 5, WAITS = 5, LATENCY = 6, STATES = 7 };

static const uint64_t put_at_ns[PRODUCERS] = {10, 20, 30}, key_of[PRODUCERS] = {5, 1, 3};

static void verb(struct graph *g, enum graph_verb_kind kind, struct graph_verb v)
{
	v.n = v.n ? v.n : 1;
	assert_int_equal(graph_apply(g, kind, &v, ROOT, NULL), BASE_OK);
}

static struct graph *put_three(
	struct graph_queue_options queue, const struct graph_scenario *sc, unsigned nr_scenarios)
{
	struct graph_options o = {.size = sizeof o, .scenario = sc, .nr_scenarios = nr_scenarios};
	struct graph *g;
	uint32_t id;

	queue.latency_state = LATENCY;
	assert_int_equal(graph_new(&o, &g, NULL), BASE_OK);
	for (int i = 0; i < ACTORS; i++)
		assert_int_equal(graph_add_actor(g, &id, NULL), BASE_OK);
	for (int i = 0; i < STATES; i++)
		assert_int_equal(graph_add_state(g, &id, NULL), BASE_OK);
	assert_int_equal(graph_add_queue(g, &queue, &id, NULL), BASE_OK);
	verb(g, GRAPH_VERB_state,
		(struct graph_verb){.actor = ROOT, .state = ROOT, .flags = GRAPH_START});
	for (uint32_t i = 0; i < ROOT; i++)
		verb(g, GRAPH_VERB_link, (struct graph_verb){.actor = i, .state = i});
	verb(g, GRAPH_VERB_wait_empty, (struct graph_verb){.actor = CONSUMER, .state = WAITS});
	for (uint32_t i = 0; i < PRODUCERS; i++)
		verb(g, GRAPH_VERB_enqueue,
			(struct graph_verb){.time_ns = put_at_ns[i],
				.actor = i,
				.state = i,
				.tag = 100 + i,
				.key = key_of[i]});
	return g;
}

/* The consumer takes at 40 by this verb; it must have got the unit of `producer`. */
static void takes(struct graph *g, struct graph_verb v, uint32_t producer)
{
	struct graph_lane_result r;
	double work_ns = 0, latency_ns = 0;

	v.time_ns = 40;
	v.actor = v.state = CONSUMER;
	v.n = 1;
	assert_int_equal(graph_queue_tag(g, &v), 100 + producer);
	verb(g, GRAPH_VERB_dequeue, v);
	assert_int_equal(graph_finish(g, CONSUMER, NULL), BASE_OK);
	assert_int_equal(graph_lane(g, 0, &r, NULL), BASE_OK);
	assert_true(r.found && r.length_ns == 40);
	for (size_t i = 0; i < r.nr_states; i++) {
		if (r.state[i].actor == producer && r.state[i].state == producer)
			work_ns += r.state[i].path_ns;
		if (r.state[i].actor == CONSUMER && r.state[i].state == LATENCY)
			latency_ns += r.state[i].path_ns;
	}
	assert_true(work_ns == (double)put_at_ns[producer]);
	assert_true(latency_ns == (double)(40 - put_at_ns[producer]));
	graph_free(g);
}

static void oldest_newest_smallest(void **unused)
{
	(void)unused;
	takes(put_three((struct graph_queue_options){.discipline = GRAPH_FIFO}, NULL, 0),
		(struct graph_verb){0}, 0);
	takes(put_three((struct graph_queue_options){.discipline = GRAPH_LIFO}, NULL, 0),
		(struct graph_verb){0}, 2);
	takes(put_three((struct graph_queue_options){.discipline = GRAPH_PRIORITY}, NULL, 0),
		(struct graph_verb){0}, 1);
	takes(put_three((struct graph_queue_options){.discipline = GRAPH_POOL}, NULL, 0),
		(struct graph_verb){0}, 0);
}

/* Work stealing, elevators: by name, in any queue. */
static void the_one_that_is_asked_for(void **unused)
{
	(void)unused;
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		for (int d = GRAPH_FIFO; d <= GRAPH_POOL; d++)
			takes(put_three(
				      (struct graph_queue_options){
					      .discipline = (enum graph_discipline)d},
				      NULL, 0),
				(struct graph_verb){.flags = GRAPH_KEYED, .key = key_of[i]}, i);
	}
}

static void what_is_left(void **unused)
{
	struct graph *g =
		put_three((struct graph_queue_options){.discipline = GRAPH_PRIORITY}, NULL, 0);
	static const uint32_t order[] = {1, 2, 0}; /* by keys 1, 3, 5 */

	(void)unused;
	for (unsigned i = 0; i < PRODUCERS; i++) {
		struct graph_verb v = {
			.time_ns = 40 + i, .actor = CONSUMER, .state = CONSUMER, .n = 1};

		assert_int_equal(graph_queue_tag(g, &v), 100 + order[i]);
		verb(g, GRAPH_VERB_dequeue, v);
	}
	assert_int_equal(graph_queue_units(g, 0), 0);
	/* nobody put that one */
	verb(g, GRAPH_VERB_dequeue,
		(struct graph_verb){.time_ns = 50,
			.actor = CONSUMER,
			.state = CONSUMER,
			.flags = GRAPH_KEYED,
			.key = 77});
	assert_int_equal(graph_queue_stats(g, 0)->underflows, 1);
	graph_free(g);
}

/* The consumer was busy until 40 and found a unit: in a FIFO it needed that unit, in a pool any. */
static double busy_then_take(enum graph_discipline d, bool exchangeable)
{
	struct graph_edit slow = {.kind = GRAPH_EDIT_SCALE_STATE, .id = 0, .factor = 9};
	struct graph_scenario sc = {.edit = &slow, .nr_edits = 1};
	struct graph *g = put_three(
		(struct graph_queue_options){.discipline = d, .exchangeable = exchangeable}, &sc,
		1);
	struct graph_lane_result r;

	verb(g, GRAPH_VERB_state,
		(struct graph_verb){.time_ns = 1, .actor = CONSUMER, .state = CONSUMER});
	verb(g, GRAPH_VERB_dequeue,
		(struct graph_verb){.time_ns = 40, .actor = CONSUMER, .state = CONSUMER});
	assert_int_equal(graph_finish(g, CONSUMER, NULL), BASE_OK);
	assert_int_equal(graph_lane(g, 1, &r, NULL), BASE_OK);
	graph_free(g);
	return r.length_ns;
}

static void tokens_bind_only_who_waited(void **unused)
{
	(void)unused;
	assert_true(busy_then_take(GRAPH_FIFO, false) == 90);
	assert_true(busy_then_take(GRAPH_POOL, false) == 40);
}

/* It waited 40; with a holder of 9 times the length it would get another's token, not wait 90. */
static double wait_then_take(bool exchangeable)
{
	struct graph_edit slow = {.kind = GRAPH_EDIT_SCALE_STATE, .id = 0, .factor = 9};
	struct graph_scenario sc = {.edit = &slow, .nr_edits = 1};
	struct graph *g =
		put_three((struct graph_queue_options){.exchangeable = exchangeable}, &sc, 1);
	struct graph_lane_result r;
	double sum = 0;

	verb(g, GRAPH_VERB_dequeue,
		(struct graph_verb){.time_ns = 40, .actor = CONSUMER, .state = CONSUMER});
	verb(g, GRAPH_VERB_state,
		(struct graph_verb){.time_ns = 45, .actor = CONSUMER, .state = CONSUMER});
	assert_int_equal(graph_finish(g, CONSUMER, NULL), BASE_OK);
	assert_int_equal(graph_lane(g, 0, &r, NULL), BASE_OK);
	assert_true(r.length_ns == 45);
	assert_int_equal(graph_lane(g, 1, &r, NULL), BASE_OK);
	for (size_t i = 0; i < r.nr_states; i++)
		sum += r.state[i].path_ns;
	assert_true(sum == r.length_ns);
	graph_free(g);
	return r.length_ns;
}

static void a_lock_is_waited_for_no_longer_than_it_was(void **unused)
{
	(void)unused;
	assert_true(wait_then_take(false) == 90 + 30 + 5); /* made at 90, handed over in 30 */
	assert_true(wait_then_take(true) == 40 + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(oldest_newest_smallest),
		cmocka_unit_test(the_one_that_is_asked_for),
		cmocka_unit_test(what_is_left),
		cmocka_unit_test(tokens_bind_only_who_waited),
		cmocka_unit_test(a_lock_is_waited_for_no_longer_than_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

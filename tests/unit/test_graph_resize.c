/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_graph_resize.c - k units more, in a lane: against the same pipeline run with k units more.
 *
 * A producer and a consumer with random times and one bounded queue, or one queue of credits. Their
 * order cannot change, so the lane must give what the other run takes, to the nanosecond.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "graph/priv.h"

enum { ITEMS = 60, PRODUCER = 0, CONSUMER = 1, LATENCY = 2, STATES = 3, LARGEST = 6 };

struct world {
	uint64_t produce_ns[ITEMS], consume_ns[ITEMS];
	unsigned units; /* capacity, or credits at the start */
	bool credits;
};

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

static struct world make_world(uint32_t seed, bool credits)
{
	struct world w = {.units = 1 + seed % 4, .credits = credits};
	uint32_t random = seed * 2654435761u + 1;

	for (int i = 0; i < ITEMS; i++) {
		w.produce_ns[i] = 1 + next_random(&random) % 50;
		w.consume_ns[i] = 1 + next_random(&random) % 50;
	}
	return w;
}

/* When item i is put, taken and done with. */
struct times {
	uint64_t ready[ITEMS], put[ITEMS], idle[ITEMS], taken[ITEMS], end;
};

static struct times simulate(const struct world *w, unsigned units)
{
	struct times t;
	uint64_t producer = 0, consumer = 0;

	for (unsigned i = 0; i < ITEMS; i++) {
		t.ready[i] = producer + w->produce_ns[i];
		t.put[i] = t.ready[i];
		if (i >= units && t.taken[i - units] > t.put[i])
			t.put[i] = t.taken[i - units];
		producer = t.put[i];
		t.idle[i] = consumer;
		t.taken[i] = t.put[i] > consumer ? t.put[i] : consumer;
		consumer = t.taken[i] + w->consume_ns[i];
	}
	t.end = consumer;
	return t;
}

struct event {
	uint64_t time_ns;
	unsigned order; /* of one time: frees before takes */
	enum graph_verb_kind kind;
	uint32_t actor, queue;
	bool start;
};

static int by_time(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static struct event event(
	uint64_t time_ns, unsigned order, enum graph_verb_kind kind, uint32_t actor, uint32_t queue)
{
	return (struct event){
		.time_ns = time_ns, .order = order, .kind = kind, .actor = actor, .queue = queue};
}

/* Queue 0 holds the items; queue 1 the credits, when the first is not bounded itself. An item's
 * number orders what happens at one time, and within it wait, put, wait, take. */
static size_t list_events(const struct world *w, const struct times *t, struct event *e)
{
	size_t nr = 0;

	e[nr] = event(0, 0, GRAPH_VERB_state, PRODUCER, 0);
	e[nr++].start = true;
	for (unsigned i = 0; i < ITEMS; i++) {
		unsigned order = 10 * (i + 1);

		if (t->put[i] > t->ready[i])
			e[nr++] = event(t->ready[i], order,
				w->credits ? GRAPH_VERB_wait_empty : GRAPH_VERB_wait_full, PRODUCER,
				w->credits);
		if (w->credits)
			e[nr++] = event(t->put[i], order + 1, GRAPH_VERB_dequeue, PRODUCER, 1);
		e[nr++] = event(t->put[i], order + 2, GRAPH_VERB_enqueue, PRODUCER, 0);
		if (t->taken[i] > t->idle[i])
			e[nr++] = event(t->idle[i], order + 3, GRAPH_VERB_wait_empty, CONSUMER, 0);
		e[nr++] = event(t->taken[i], order + 4, GRAPH_VERB_dequeue, CONSUMER, 0);
		if (w->credits)
			e[nr++] = event(t->taken[i], order + 5, GRAPH_VERB_enqueue, CONSUMER, 1);
	}
	e[nr++] = event(t->end, 10 * (ITEMS + 2), GRAPH_VERB_state, CONSUMER, 0);
	qsort(e, nr, sizeof *e, by_time);
	return nr;
}

static void play(struct graph *g, const struct world *w, const struct event *e, size_t nr)
{
	uint32_t id;

	for (int i = 0; i < 2; i++)
		assert_int_equal(graph_add_actor(g, &id, NULL), BASE_OK);
	for (int i = 0; i < STATES; i++)
		assert_int_equal(graph_add_state(g, &id, NULL), BASE_OK);
	assert_int_equal(
		graph_add_queue(g,
			&(struct graph_queue_options){
				.capacity = w->credits ? 0 : w->units, .latency_state = LATENCY},
			&id, NULL),
		BASE_OK);
	if (w->credits)
		assert_int_equal(graph_add_queue(g,
					 &(struct graph_queue_options){
						 .initial = w->units, .latency_state = LATENCY},
					 &id, NULL),
			BASE_OK);
	for (size_t i = 0; i < nr; i++) {
		struct graph_verb v = {
			.time_ns = e[i].time_ns,
			.actor = e[i].actor,
			.state = e[i].actor,
			.queue = e[i].queue,
			.n = 1,
			.flags = e[i].start ? GRAPH_START : 0,
		};

		assert_int_equal(graph_apply(g, e[i].kind, &v, 0, NULL), BASE_OK);
	}
	assert_int_equal(graph_finish(g, CONSUMER, NULL), BASE_OK);
}

static void check(uint32_t seed, bool credits)
{
	struct world w = make_world(seed, credits);
	struct times t = simulate(&w, w.units);
	struct event e[8 * ITEMS];
	size_t nr = list_events(&w, &t, e);
	struct graph_edit edit[LARGEST];
	struct graph_scenario lane[LARGEST];
	struct graph_options o = {.size = sizeof o, .scenario = lane, .nr_scenarios = LARGEST};
	struct graph_lane_result r;
	struct graph *g;

	for (unsigned k = 0; k < LARGEST; k++) {
		edit[k] = (struct graph_edit){
			.kind = GRAPH_EDIT_RESIZE_QUEUE, .id = credits, .units = k + 1};
		lane[k] = (struct graph_scenario){.edit = &edit[k], .nr_edits = 1};
	}
	assert_int_equal(graph_new(&o, &g, NULL), BASE_OK);
	if (seed % 2)
		graph_set_arena_nodes(g, 3);
	play(g, &w, e, nr);
	for (unsigned k = 0; k <= LARGEST; k++) {
		assert_int_equal(graph_lane(g, k, &r, NULL), BASE_OK);
		assert_true(r.found);
		assert_true(r.length_ns == (double)simulate(&w, w.units + k).end);
	}
	graph_free(g);
}

static void more_room(void **unused)
{
	(void)unused;
	for (uint32_t seed = 0; seed < 300; seed++)
		check(seed, false);
}

static void more_credits(void **unused)
{
	(void)unused;
	for (uint32_t seed = 0; seed < 300; seed++)
		check(seed, true);
}

/* Each time round is one crossing of the credit queue; links and data are counted beside it. */
static void crossings_are_counted(void **unused)
{
	struct world w = make_world(5, true);
	struct times t;
	struct event e[8 * ITEMS];
	struct graph_options o = {.size = sizeof o, .crossings = true};
	const struct graph_crossing *c;
	uint64_t there = 0, back = 0;
	struct graph *g;
	size_t nr;

	(void)unused;
	w.units = 1;
	t = simulate(&w, w.units);
	nr = list_events(&w, &t, e);
	assert_int_equal(graph_new(&o, &g, NULL), BASE_OK);
	graph_set_arena_nodes(g, 3);
	play(g, &w, e, nr);
	assert_int_equal(graph_crossings_of(g, 0, 0, &c, &nr, NULL), BASE_OK);
	for (size_t i = 0; i < nr; i++) {
		assert_false(c[i].space);
		if (c[i].queue == 0) {
			assert_int_equal(c[i].from_actor, PRODUCER);
			assert_int_equal(c[i].to_actor, CONSUMER);
			there += c[i].visits;
		} else {
			assert_int_equal(c[i].queue, 1);
			assert_int_equal(c[i].from_actor, CONSUMER);
			back += c[i].visits;
		}
	}
	/* It begins at the producer and ends at the consumer. */
	assert_true(there == back + 1);
	assert_true(back > 0);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_room),
		cmocka_unit_test(more_credits),
		cmocka_unit_test(crossings_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

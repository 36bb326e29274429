/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph.c - known answers: graphs drawn by hand, their longest paths worked out on paper. */
#include "graph/graph.h"
#include "graph/priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct graph *open_graph(const struct graph_options *o)
{
	struct graph *g = NULL;

	assert_int_equal(graph_new(o, &g, NULL), BASE_OK);
	assert_non_null(g);
	return g;
}

static struct graph *open_scenarios(const struct graph_scenario *sc, unsigned nr, bool path)
{
	return open_graph(&(struct graph_options){
		.size = sizeof(struct graph_options),
		.scenario = sc,
		.nr_scenarios = nr,
		.keep_path = path,
	});
}

static void add(struct graph *g, unsigned nr_actors, unsigned nr_states)
{
	uint32_t id;

	for (unsigned i = 0; i < nr_actors; i++)
		assert_int_equal(graph_add_actor(g, &id, NULL), BASE_OK);
	for (unsigned i = 0; i < nr_states; i++)
		assert_int_equal(graph_add_state(g, &id, NULL), BASE_OK);
}

static uint32_t add_queue(struct graph *g, uint64_t capacity, uint64_t initial, uint32_t latency)
{
	uint32_t id;

	assert_int_equal(
		graph_add_queue(g,
			&(struct graph_queue_options){
				.capacity = capacity, .initial = initial, .latency_state = latency},
			&id, NULL),
		BASE_OK);
	return id;
}

typedef enum base_status verb_fn(struct graph *, const struct graph_verb *, struct base_err *);

static void does(struct graph *g, verb_fn *fn, uint64_t t, uint32_t actor, uint32_t state,
	uint32_t queue, int64_t n, uint32_t flags)
{
	struct graph_verb v = {.time_ns = t,
		.actor = actor,
		.state = state,
		.queue = queue,
		.flags = flags,
		.n = n};

	assert_int_equal(fn(g, &v, NULL), BASE_OK);
}

static void state(struct graph *g, uint64_t t, uint32_t actor, uint32_t s)
{
	does(g, graph_state, t, actor, s, 0, 0, 0);
}

static void start(struct graph *g, uint64_t t, uint32_t actor, uint32_t s)
{
	does(g, graph_state, t, actor, s, 0, 0, GRAPH_START);
}

static void link_from(struct graph *g, uint64_t t, uint32_t actor, uint32_t s, uint32_t from)
{
	struct graph_verb v = {.time_ns = t, .actor = actor, .state = s};

	assert_int_equal(graph_link(g, &v, from, NULL), BASE_OK);
}

static struct graph_lane_result lane(struct graph *g, unsigned l)
{
	struct graph_lane_result r;

	assert_int_equal(graph_lane(g, l, &r, NULL), BASE_OK);
	return r;
}

static struct graph_path_state path_state(struct graph *g, unsigned l, uint32_t actor, uint32_t s)
{
	struct graph_lane_result r = lane(g, l);

	for (size_t i = 0; i < r.nr_states; i++) {
		if (r.state[i].actor == actor && r.state[i].state == s)
			return r.state[i];
	}
	return (struct graph_path_state){0};
}

static void finish(struct graph *g, uint32_t actor)
{
	assert_int_equal(graph_finish(g, actor, NULL), BASE_OK);
}

static void assert_length(struct graph *g, unsigned l, double expected)
{
	struct graph_lane_result r = lane(g, l);
	double sum = 0;

	assert_true(r.found);
	assert_true(r.length_ns == expected);
	for (size_t i = 0; i < r.nr_states; i++)
		sum += r.state[i].path_ns;
	assert_true(sum == expected);
}

/* Seed 000, figures 4.3 and 4.4: the driver waits 13 for a packet that came at 11. */
static void stack_and_driver(void **unused)
{
	enum { STACK, DRIVER };
	enum { GET_PKT, APPEND, LOOK_UP, WAIT_PKT, DMA, LATENCY, NR_STATES };
	const struct graph_path_edge *path;
	size_t nr;
	struct graph *g = open_scenarios(NULL, 0, true);
	uint32_t q;

	(void)unused;
	add(g, 2, NR_STATES);
	q = add_queue(g, 0, 0, LATENCY);
	start(g, 0, STACK, APPEND);
	does(g, graph_wait_empty, 0, DRIVER, WAIT_PKT, q, 1, 0);
	state(g, 5, STACK, LOOK_UP);
	does(g, graph_enqueue, 11, STACK, GET_PKT, q, 1, 0);
	does(g, graph_dequeue, 13, DRIVER, DMA, q, 1, 0);
	state(g, 20, STACK, APPEND);
	state(g, 33, DRIVER, WAIT_PKT);
	finish(g, DRIVER);
	assert_length(g, 0, 33);
	assert_true(path_state(g, 0, DRIVER, LATENCY).latency_ns == 2);
	assert_true(path_state(g, 0, DRIVER, LATENCY).path_ns == 2);
	assert_true(path_state(g, 0, DRIVER, DMA).path_ns == 20);
	assert_true(path_state(g, 0, STACK, APPEND).path_ns == 5);
	assert_true(path_state(g, 0, STACK, LOOK_UP).path_ns == 6);
	assert_int_equal(graph_path(g, &path, &nr, NULL), BASE_OK);
	assert_int_equal(nr, 4);
	assert_int_equal(path[2].queue, q);
	assert_int_equal(path[2].begin_ns, 11);
	assert_int_equal(path[2].end_ns, 13);
	assert_int_equal(path[2].from_actor, STACK);
	assert_int_equal(path[2].actor, DRIVER);
	assert_int_equal(path[3].state, DMA);
	assert_int_equal(graph_queue_stats(g, q)->latency_ns, 2);
	assert_int_equal(graph_queue_stats(g, q)->wait_data_ns, 13);
	assert_int_equal(graph_queue_stats(g, q)->residence_ns, 2);
	graph_free(g);
}

/* Three threads, one lock: main forks them at 0; each runs 10, then holds the lock for 100. */
static void lock_ladder(void **unused)
{
	enum { RUN, HOLD, WAIT, HANDOVER, JOIN, NR_STATES };
	const struct graph_edit half[] = {{GRAPH_EDIT_SCALE_STATE, HOLD, 0.5}};
	const struct graph_edit none[] = {{GRAPH_EDIT_IGNORE_QUEUE, 0, 0}};
	const struct graph_scenario sc[] = {{half, 1}, {none, 1}};
	struct graph *g = open_scenarios(sc, 2, false);
	uint32_t lock, end;

	(void)unused;
	add(g, 4, NR_STATES);
	lock = add_queue(g, 0, 1, HANDOVER);
	end = add_queue(g, 0, 0, HANDOVER);
	start(g, 0, 0, RUN);
	for (uint32_t i = 1; i <= 3; i++)
		link_from(g, 0, i, RUN, 0);
	does(g, graph_wait_empty, 0, 0, JOIN, end, 3, 0);
	does(g, graph_dequeue, 10, 1, HOLD, lock, 1, 0);
	does(g, graph_wait_empty, 10, 2, WAIT, lock, 1, 0);
	does(g, graph_wait_empty, 10, 3, WAIT, lock, 1, 0);
	does(g, graph_enqueue, 110, 1, RUN, lock, 1, 0);
	does(g, graph_enqueue, 110, 1, RUN, end, 1, 0);
	does(g, graph_dequeue, 111, 2, HOLD, lock, 1, 0);
	does(g, graph_enqueue, 211, 2, RUN, lock, 1, 0);
	does(g, graph_enqueue, 211, 2, RUN, end, 1, 0);
	does(g, graph_dequeue, 212, 3, HOLD, lock, 1, 0);
	does(g, graph_enqueue, 312, 3, RUN, lock, 1, 0);
	does(g, graph_enqueue, 312, 3, RUN, end, 1, 0);
	does(g, graph_dequeue, 315, 0, RUN, end, 3, 0);
	state(g, 320, 0, RUN);
	finish(g, 0);
	assert_length(g, 0, 320);
	assert_length(g, 1, 170);
	/* Without the lock: 10 + 100, then the join's own 3 and main's 5. */
	assert_length(g, 2, 118);
	assert_true(path_state(g, 0, 1, HOLD).path_ns == 100);
	assert_true(path_state(g, 0, 3, HANDOVER).latency_ns == 1);
	assert_true(path_state(g, 0, 0, HANDOVER).latency_ns == 3);
	graph_free(g);
}

/* A wait that nothing explains, one for what was there already, and conservation all the same. */
static void unexplained(void **unused)
{
	enum { RUN, WAIT, LATENCY, NR_STATES };
	struct graph *g = open_scenarios(NULL, 0, false);
	uint32_t q;

	(void)unused;
	add(g, 2, NR_STATES);
	q = add_queue(g, 0, 0, LATENCY);
	start(g, 0, 0, RUN);
	link_from(g, 0, 1, RUN, 0);
	does(g, graph_wait, 10, 0, WAIT, 0, 0, 0);
	state(g, 25, 0, RUN);
	does(g, graph_enqueue, 30, 1, RUN, q, 1, 0);
	does(g, graph_wait_empty, 40, 0, WAIT, q, 1, 0);
	does(g, graph_dequeue, 47, 0, RUN, q, 1, 0);
	state(g, 50, 0, RUN);
	finish(g, GRAPH_ANY_ACTOR);
	assert_length(g, 0, 50);
	assert_true(path_state(g, 0, 0, WAIT).unexplained_ns == 15);
	assert_true(path_state(g, 0, 0, WAIT).latency_ns == 7);
	assert_true(path_state(g, 0, 0, RUN).path_ns == 28);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stack_and_driver),
		cmocka_unit_test(lock_ladder),
		cmocka_unit_test(unexplained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph.c - known answers: graphs drawn by hand, their longest paths worked out on paper. */
#include "graph/graph.h"
#include "graph/priv.h"
#include "test.h"

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

/* Waits from 0 on for what comes at 1 ms, is on a processor again at `on_ns`, and goes on at end_ns: the time in
 * between is the queue's latency, or that of a processor that came late. */
static void came(
	uint64_t on_ns, uint64_t end_ns, bool late, const struct graph_scenario *sc, unsigned nr)
{
	enum { GIVER, TAKER };
	enum { WORK, WAIT, LATENCY, READY, NR_STATES };
	enum { LATER = 1000000 };
	const uint64_t given_ns = 1000000;
	struct graph *g = open_scenarios(sc, nr, nr > 0);
	struct graph_verb take = {.time_ns = end_ns,
		.actor = TAKER,
		.state = WORK,
		.n = 1,
		.came_ns = on_ns,
		.came_state = READY};

	add(g, 2, NR_STATES);
	take.queue = add_queue(g, 0, 0, LATENCY);
	const uint32_t back = add_queue(g, 0, 0, LATENCY);
	start(g, 0, GIVER, WORK);
	does(g, graph_wait_empty, 0, TAKER, WAIT, take.queue, 1, 0);
	does(g, graph_enqueue, given_ns, GIVER, WORK, take.queue, 1, 0);
	does(g, graph_wait_empty, given_ns, GIVER, WAIT, back, 1, 0);
	assert_int_equal(graph_apply(g, GRAPH_VERB_dequeue, &take, 0, NULL), BASE_OK);
	/* (what the taker waits for next does not know of it) */
	does(g, graph_enqueue, end_ns, TAKER, WORK, back, 1, 0);
	does(g, graph_dequeue, end_ns, GIVER, WORK, back, 1, 0);
	does(g, graph_wait_empty, end_ns, TAKER, WAIT, take.queue, 1, 0);
	does(g, graph_enqueue, end_ns + 1, GIVER, WORK, take.queue, 1, 0);
	does(g, graph_dequeue, end_ns + 1 + LATER, TAKER, WORK, take.queue, 1, 0);
	finish(g, TAKER);
	const double apart = (double)(end_ns - given_ns);
	assert_true(path_state(g, 0, TAKER, READY).path_ns == (late ? apart : 0));
	assert_true(path_state(g, 0, TAKER, LATENCY).path_ns == LATER + (late ? 0 : apart));
	if (nr) /* without waits for processors */
		assert_true(
			lane(g, 1).length_ns == (double)end_ns + 1 + LATER - (late ? apart : 0));
	graph_free(g);
}

static void processor_came_late(void **unused)
{
	static const struct graph_edit none[] = {{GRAPH_EDIT_SCALE_STATE, 3, 0, 0}};
	static const struct graph_scenario sc[] = {{.edit = none, .nr_edits = 1}};

	(void)unused;
	for (unsigned nr = 0; nr < 2; nr++) {
		came(1900000, 1910000, true, sc, nr);
		came(1000000 + GRAPH_CAME_LATE_NS, 1310000, true, sc, nr);
		came(1000000 + GRAPH_CAME_LATE_NS - 1, 1310000, false, sc, nr); /* soon enough */
		came(1500000, 2500000, false, sc, nr); /* it did not go on at once */
		came(900000, 1910000, false, sc, nr);  /* it was there before */
		came(0, 1910000, false, sc, nr);       /* not known */
	}
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
	const struct graph_edit half[] = {{GRAPH_EDIT_SCALE_STATE, HOLD, 0.5, 0}};
	const struct graph_edit none[] = {{GRAPH_EDIT_IGNORE_QUEUE, 0, 0, 0}};
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

/* One slot between a quick producer and a slow consumer, then the other way round. */
static void bounded_queue(void **unused)
{
	enum { PRODUCE, CONSUME, WAIT_SPACE_STATE, WAIT_DATA_STATE, LATENCY, NR_STATES };
	const struct graph_edit unbound[] = {{GRAPH_EDIT_UNBOUND_QUEUE, 0, 0, 0}};
	const struct graph_edit quick[] = {{GRAPH_EDIT_SCALE_STATE, CONSUME, 0, 0}};
	const struct graph_scenario sc[] = {{unbound, 1}, {quick, 1}};
	struct graph *g = open_scenarios(sc, 2, false);
	uint32_t q;

	(void)unused;
	add(g, 2, NR_STATES);
	q = add_queue(g, 1, 0, LATENCY);
	start(g, 0, 0, PRODUCE);
	link_from(g, 0, 1, CONSUME, 0);
	does(g, graph_wait_empty, 0, 1, WAIT_DATA_STATE, q, 1, 0);
	does(g, graph_enqueue, 3, 0, PRODUCE, q, 1, 0); /* 1st */
	does(g, graph_dequeue, 3, 1, CONSUME, q, 1, 0);
	does(g, graph_enqueue, 6, 0, PRODUCE, q, 1, 0); /* 2nd */
	does(g, graph_wait_full, 9, 0, WAIT_SPACE_STATE, q, 1, 0);
	does(g, graph_dequeue, 23, 1, CONSUME, q, 1, 0);
	does(g, graph_enqueue, 24, 0, PRODUCE, q, 1, 0); /* 3rd, 1 after the space */
	state(g, 27, 0, PRODUCE);
	finish(g, 0);
	assert_length(g, 0, 27); /* 3 + consumer's 20 + 1 + 3 */
	assert_true(path_state(g, 0, 1, CONSUME).path_ns == 20);
	assert_true(path_state(g, 0, 0, LATENCY).latency_ns == 1);
	assert_length(g, 1, 12); /* four times 3 */
	assert_length(g, 2, 12); /* the producer by itself */
	assert_int_equal(graph_queue_stats(g, q)->wait_space_ns, 15);
	assert_int_equal(graph_queue_stats(g, q)->nr_waits_space, 1);
	assert_int_equal(graph_queue_stats(g, q)->max_units, 1);
	graph_free(g);
}

/* The same when nobody told the capacity: the wait shows that there is one. */
static void unknown_capacity(void **unused)
{
	enum { RUN, WAIT, LATENCY, NR_STATES };
	struct graph *g = open_scenarios(NULL, 0, false);
	uint32_t q;

	(void)unused;
	add(g, 2, NR_STATES);
	q = add_queue(g, 0, 0, LATENCY);
	start(g, 0, 0, RUN);
	link_from(g, 0, 1, RUN, 0);
	does(g, graph_enqueue, 2, 0, RUN, q, 5, 0);
	does(g, graph_dequeue, 3, 1, RUN, q, 1, 0);
	does(g, graph_wait_full, 4, 0, WAIT, q, 3, 0);
	does(g, graph_dequeue, 10, 1, RUN, q, 4, 0);
	does(g, graph_enqueue, 12, 0, RUN, q, 3, 0);
	finish(g, 0);
	assert_length(g, 0, 12);
	assert_true(path_state(g, 0, 1, RUN).path_ns == 10);
	assert_true(path_state(g, 0, 0, LATENCY).path_ns == 2);
	graph_free(g);
}

/* Two children work 10 and 8; the second path is that of the other child. */
static void fork_and_join(void **unused)
{
	enum { RUN, WORK, WAIT, LATENCY, NR_STATES };
	struct graph *g = open_graph(
		&(struct graph_options){.size = sizeof(struct graph_options), .runner_up = true});
	struct graph_lane_result second;
	uint32_t end;

	(void)unused;
	add(g, 3, NR_STATES);
	end = add_queue(g, 0, 0, LATENCY);
	start(g, 100, 0, RUN);
	state(g, 105, 0, RUN);
	link_from(g, 106, 1, WORK, 0);
	link_from(g, 107, 2, WORK, 0);
	does(g, graph_wait_empty, 108, 0, WAIT, end, 2, 0);
	does(g, graph_enqueue, 115, 2, RUN, end, 1, 0);
	does(g, graph_enqueue, 116, 1, RUN, end, 1, 0);
	does(g, graph_dequeue, 116, 0, RUN, end, 2, 0);
	state(g, 120, 0, RUN);
	finish(g, GRAPH_ANY_ACTOR);
	assert_length(g, 0, 20);
	assert_int_equal(lane(g, 0).start_ns, 100);
	assert_int_equal(lane(g, 0).end_ns, 120);
	assert_true(path_state(g, 0, 1, WORK).path_ns == 10);
	assert_true(path_state(g, 0, 0, RUN).path_ns == 10);
	second = lane(g, GRAPH_RUNNER_UP);
	assert_true(second.found);
	assert_true(second.length_ns == 19); /* 7 + 8 + 4 */
	assert_true(path_state(g, GRAPH_RUNNER_UP, 2, WORK).path_ns == 8);
	assert_true(path_state(g, GRAPH_RUNNER_UP, 1, WORK).path_ns == 0);
	graph_free(g);
}

/*
 * Seed 000, figure 5.4: A sends through B to C and needs C's credit for the next round. Round the
 * loop it is 11 units; without it 7, inside A.
 */
static void resource_loop(void **unused)
{
	enum { A, B, C };
	enum { WORK, WAIT, LATENCY, NR_STATES };
	enum { CREDIT, TO_B, TO_C, ROUNDS = 5 };
	const struct graph_edit no_loop[] = {{GRAPH_EDIT_IGNORE_QUEUE, CREDIT, 0, 0}};
	const struct graph_scenario sc[] = {{no_loop, 1}};
	struct graph *g = open_scenarios(sc, 1, true);

	(void)unused;
	graph_set_arena_nodes(g, 4);
	add(g, 3, NR_STATES);
	for (uint32_t q = CREDIT; q <= TO_C; q++)
		assert_int_equal(add_queue(g, 0, q == CREDIT, LATENCY), q);
	start(g, 0, A, WORK);
	link_from(g, 0, B, WORK, A);
	link_from(g, 0, C, WORK, A);
	does(g, graph_wait_empty, 0, B, WAIT, TO_B, 1, 0);
	does(g, graph_wait_empty, 0, C, WAIT, TO_C, 1, 0);
	does(g, graph_dequeue, 0, A, WORK, CREDIT, 1, 0);
	for (uint64_t t = 0; t < ROUNDS * 11; t += 11) {
		does(g, graph_enqueue, t + 1, A, WORK, TO_B, 1, 0);
		does(g, graph_dequeue, t + 1, B, WORK, TO_B, 1, 0);
		does(g, graph_enqueue, t + 5, B, WORK, TO_C, 1, 0);
		does(g, graph_wait_empty, t + 5, B, WAIT, TO_B, 1, 0);
		does(g, graph_dequeue, t + 5, C, WORK, TO_C, 1, 0);
		does(g, graph_wait_empty, t + 7, A, WAIT, CREDIT, 1, 0);
		does(g, graph_enqueue, t + 11, C, WORK, CREDIT, 1, 0);
		does(g, graph_wait_empty, t + 11, C, WAIT, TO_C, 1, 0);
		does(g, graph_dequeue, t + 11, A, WORK, CREDIT, 1, 0);
	}
	finish(g, A);
	assert_length(g, 0, 11 * ROUNDS);
	assert_length(g, 1, 7 * ROUNDS);
	assert_true(path_state(g, 0, C, WORK).path_ns == 6 * ROUNDS);
	assert_true(path_state(g, 0, B, WORK).path_ns == 4 * ROUNDS);
	assert_true(path_state(g, 1, A, WORK).path_ns == 7 * ROUNDS);
	graph_free(g);
}

/* A condition variable: signalled at 10, the mutex is free at 14, the waiter runs at 15. */
static void two_dependences(void **unused)
{
	enum { RUN, WAIT, COND_LATENCY, MUTEX_LATENCY, NR_STATES };
	enum { COND, MUTEX };
	const struct graph_edit no_mutex[] = {{GRAPH_EDIT_IGNORE_QUEUE, MUTEX, 0, 0}};
	const struct graph_edit no_cond[] = {{GRAPH_EDIT_IGNORE_QUEUE, COND, 0, 0}};
	const struct graph_scenario sc[] = {{no_mutex, 1}, {no_cond, 1}};
	struct graph *g = open_scenarios(sc, 2, true);
	const struct graph_path_edge *path;
	size_t nr;

	(void)unused;
	add(g, 2, NR_STATES);
	add_queue(g, 0, 0, COND_LATENCY);
	add_queue(g, 0, 1, MUTEX_LATENCY);
	start(g, 0, 0, RUN);
	link_from(g, 0, 1, RUN, 0);
	does(g, graph_wait_empty, 3, 1, WAIT, COND, 1, 0);
	does(g, graph_dequeue, 8, 0, RUN, MUTEX, 1, 0);
	does(g, graph_enqueue, 10, 0, RUN, COND, 1, 0);
	does(g, graph_enqueue, 14, 0, RUN, MUTEX, 1, 0);
	does(g, graph_dequeue, 15, 1, RUN, COND, 1, GRAPH_MORE);
	does(g, graph_dequeue, 15, 1, RUN, MUTEX, 1, 0);
	state(g, 18, 1, RUN);
	finish(g, 1);
	assert_length(g, 0, 18);
	assert_true(path_state(g, 0, 1, MUTEX_LATENCY).latency_ns == 1);
	assert_length(g, 1, 14); /* 10, woken 1 later, 3 */
	assert_length(g, 2, 17); /* the wait was none; the mutex orders: 14, 3 */
	assert_int_equal(graph_path(g, &path, &nr, NULL), BASE_OK);
	assert_int_equal(path[nr - 2].queue, MUTEX);
	assert_int_equal(path[nr - 2].begin_ns, 14);
	graph_free(g);
}

/* A processor that becomes free after the lock explains the rest of the wait; one free before does
 * not. */
static void optional_dependence(void **unused)
{
	enum { RUN, WAIT, LOCK_LATENCY, CPU_LATENCY, NR_STATES };
	enum { LOCK, CPU };
	struct graph *g = open_scenarios(NULL, 0, false);

	(void)unused;
	add(g, 3, NR_STATES);
	add_queue(g, 0, 0, LOCK_LATENCY);
	add_queue(g, 0, 0, CPU_LATENCY);
	start(g, 0, 0, RUN);
	link_from(g, 0, 1, RUN, 0);
	link_from(g, 0, 2, RUN, 0);
	does(g, graph_wait_empty, 1, 1, WAIT, LOCK, 1, 0);
	does(g, graph_enqueue, 10, 0, RUN, LOCK, 1, 0);
	does(g, graph_enqueue, 20, 2, RUN, CPU, 1, 0);
	does(g, graph_dequeue, 22, 1, RUN, LOCK, 1, GRAPH_MORE);
	does(g, graph_dequeue, 22, 1, RUN, CPU, 1, GRAPH_OPTIONAL);
	does(g, graph_wait_empty, 30, 1, WAIT, LOCK, 1, 0);
	does(g, graph_enqueue, 31, 2, RUN, CPU, 1, 0);
	does(g, graph_enqueue, 40, 0, RUN, LOCK, 1, 0);
	does(g, graph_dequeue, 45, 1, RUN, LOCK, 1, GRAPH_MORE);
	does(g, graph_dequeue, 45, 1, RUN, CPU, 1, GRAPH_OPTIONAL);
	finish(g, 1);
	assert_length(g, 0, 45);
	/* The second wait leads to actor 0 (40) and hides the first. */
	assert_true(path_state(g, 0, 1, LOCK_LATENCY).latency_ns == 5);
	assert_true(path_state(g, 0, 0, RUN).path_ns == 40);
	assert_int_equal(graph_queue_stats(g, CPU)->nr_latencies, 1);
	assert_int_equal(graph_queue_stats(g, CPU)->latency_ns, 2);
	assert_int_equal(graph_queue_stats(g, LOCK)->latency_ns, 5);
	graph_free(g);
}

/* A dependence that nobody waited for weighs nothing, but holds in an edited lane. */
static void order_without_waiting(void **unused)
{
	enum { RUN, WORK, LATENCY, NR_STATES };
	const struct graph_edit quick[] = {{GRAPH_EDIT_SCALE_STATE, WORK, 0, 0}};
	const struct graph_scenario sc[] = {{quick, 1}};
	struct graph *g = open_scenarios(sc, 1, false);
	uint32_t q;

	(void)unused;
	add(g, 2, NR_STATES);
	q = add_queue(g, 0, 0, LATENCY);
	start(g, 0, 0, RUN);
	link_from(g, 0, 1, WORK, 0);
	does(g, graph_enqueue, 60, 0, RUN, q, 1, 0);
	does(g, graph_dequeue, 100, 1, WORK, q, 1, 0);
	state(g, 110, 1, RUN);
	finish(g, 1);
	assert_length(g, 0, 110);
	assert_length(g, 1, 60);
	assert_true(path_state(g, 1, 1, LATENCY).visits == 1);
	assert_true(path_state(g, 1, 1, LATENCY).path_ns == 0);
	graph_free(g);
}

/* Which units are taken: from the front, the back, only the newest, more than there are. */
static void units_of_a_queue(void **unused)
{
	enum { RUN, LATENCY, NR_STATES };
	struct graph *g = open_scenarios(NULL, 0, false);
	const struct graph_queue_stats *st;
	uint32_t q, endless;

	(void)unused;
	add(g, 2, NR_STATES);
	q = add_queue(g, 0, 2, LATENCY);
	endless = add_queue(g, 0, GRAPH_UNLIMITED, LATENCY);
	start(g, 0, 0, RUN);
	link_from(g, 0, 1, RUN, 0);
	does(g, graph_enqueue, 1, 0, RUN, q, 10, 0);
	assert_int_equal(graph_queue_units(g, q), 12);
	does(g, graph_dequeue, 2, 0, RUN, q, 3, GRAPH_BACK);
	assert_int_equal(graph_queue_units(g, q), 9);
	does(g, graph_peek, 3, 1, RUN, q, 4, 0);
	assert_int_equal(graph_queue_units(g, q), 9);
	does(g, graph_peek, 3, 1, RUN, q, GRAPH_ALL, GRAPH_LAST);
	assert_int_equal(graph_queue_units(g, q), 7); /* the two that nobody put are older */
	does(g, graph_resize, 4, 0, RUN, q, 5, 0);
	assert_int_equal(graph_queue_units(g, q), 5);
	does(g, graph_resize, 4, 0, RUN, q, 8, 0);
	assert_int_equal(graph_queue_units(g, q), 8);
	does(g, graph_dequeue, 5, 1, RUN, q, 11, 0);
	assert_int_equal(graph_queue_units(g, q), 0);
	does(g, graph_dequeue, 5, 1, RUN, q, GRAPH_ALL, 0);
	does(g, graph_dequeue, 5, 1, RUN, endless, 1000, 0);
	st = graph_queue_stats(g, q);
	assert_int_equal(st->underflows, 3);
	assert_int_equal(graph_queue_stats(g, endless)->underflows, 0);
	assert_int_equal(st->enqueued, 13);
	assert_int_equal(st->dequeued, 15);
	assert_int_equal(st->max_units, 12);
	assert_int_equal(st->units_time, st->residence_ns); /* Little's law: all were taken */
	finish(g, GRAPH_ANY_ACTOR);
	graph_free(g);
}

/* A timer needs no explanation; a processor given away while waiting carries the path until then.
 */
static void explained_and_aside(void **unused)
{
	enum { RUN, SLEEP, WAIT, LATENCY, NR_STATES };
	struct graph *g = open_scenarios(NULL, 0, false);
	uint32_t cpu;

	(void)unused;
	add(g, 2, NR_STATES);
	cpu = add_queue(g, 0, 0, LATENCY);
	start(g, 0, 0, RUN);
	link_from(g, 0, 1, RUN, 0);
	does(g, graph_wait_empty, 2, 1, WAIT, cpu, 1, 0);
	does(g, graph_wait, 10, 0, SLEEP, 0, 0, 0);
	does(g, graph_enqueue, 15, 0, RUN, cpu, 1, GRAPH_ASIDE);
	does(g, graph_dequeue, 17, 1, RUN, cpu, 1, 0);
	state(g, 20, 1, RUN);
	does(g, graph_state, 30, 0, RUN, 0, 0, GRAPH_EXPLAINED);
	finish(g, 1);
	assert_length(g, 0, 20);
	assert_true(path_state(g, 0, 0, SLEEP).path_ns == 5);
	assert_true(path_state(g, 0, 0, SLEEP).unexplained_ns == 0);
	assert_true(path_state(g, 0, 1, LATENCY).latency_ns == 2);
	graph_free(g);
}

/*
 * Main looks every 100 ns whether the worker has finished, and after each look does something
 * for 5. Nobody waits for its looks: the worker in half the time is the whole in half the time, and
 * of the worker in no time there is left what main does itself. What tells of a time limit without
 * an end by what was waited for is a sleep.
 */
static void looks_do_not_hold(void **unused)
{
	enum { RUN, WORK, SLEEP, LATENCY, NR_STATES };
	static const struct graph_edit edit[] = {
		{GRAPH_EDIT_SCALE_STATE, WORK, 0.5, 0}, {GRAPH_EDIT_SCALE_STATE, WORK, 0, 0}};
	static const struct graph_scenario scenario[] = {
		{.edit = &edit[0], .nr_edits = 1}, {.edit = &edit[1], .nr_edits = 1}};

	(void)unused;
	for (int comes = 0; comes < 2; comes++) {
		struct graph *g = open_scenarios(scenario, 2, false);
		uint32_t q;

		add(g, 2, NR_STATES);
		q = add_queue(g, 0, 0, LATENCY);
		start(g, 0, 0, RUN);
		link_from(g, 0, 1, WORK, 0);
		does(g, graph_wait_empty, 10, 0, SLEEP, q, 1, 0);
		for (uint64_t t = 110; t < 400; t += 105) {
			does(g, graph_state, t, 0, RUN, 0, 0, GRAPH_EXPLAINED | GRAPH_TIMED_OUT);
			does(g, graph_wait_empty, t + 5, 0, SLEEP, q, 1, 0);
		}
		does(g, graph_enqueue, 400, 1, RUN, q, 1, 0);
		if (comes)
			does(g, graph_dequeue, 402, 0, RUN, q, 1, 0);
		else
			does(g, graph_state, 402, 0, RUN, 0, 0, GRAPH_EXPLAINED);
		state(g, 410, 0, RUN);
		finish(g, 0);
		assert_length(g, 0, 410);
		assert_length(g, 1, comes ? 200 + 2 + 8 : 410);
		assert_length(g, 2, comes ? 10 + 3 * 5 + 8 : 410);
		assert_true(path_state(g, 2, 0, RUN).path_ns == 33);
		graph_free(g);
	}
}

/*
 * Without the first queue nothing leads to the second actor before the processor that it waits for:
 * there it did not stay awake, but was not there at all.
 */
static void who_is_not_there_is_not_awake(void **unused)
{
	enum { RUN, LATENCY, NR_STATES };
	static const struct graph_edit edit = {GRAPH_EDIT_IGNORE_QUEUE, 0, 0, 0};
	static const struct graph_scenario scenario = {&edit, 1};
	struct graph_queue_options processor = {.latency_state = LATENCY, .processor = true};
	struct graph *g = open_scenarios(&scenario, 1, false);
	uint32_t q, cpu;

	(void)unused;
	add(g, 2, NR_STATES);
	q = add_queue(g, 0, 0, LATENCY);
	assert_int_equal(graph_add_queue(g, &processor, &cpu, NULL), BASE_OK);
	start(g, 0, 0, RUN);
	does(g, graph_enqueue, 10, 0, RUN, q, 1, 0);
	does(g, graph_dequeue, 20, 1, RUN, q, 1, 0);
	does(g, graph_wait_empty, 20, 1, RUN, q, 1, 0);
	does(g, graph_enqueue, 30, 0, RUN, q, 1, 0);
	does(g, graph_dequeue, 32, 1, RUN, q, 1, 0);
	does(g, graph_wait_empty, 32, 1, RUN, cpu, 1, 0);
	does(g, graph_enqueue, 40, 0, RUN, cpu, 1, 0);
	does(g, graph_dequeue, 41, 1, RUN, cpu, 1, 0);
	state(g, 51, 1, RUN);
	finish(g, 1);
	assert_length(g, 0, 51);
	assert_length(g, 1, 51);
	graph_free(g);
}

/* An actor that nobody started has no path until it gets units; then the time since is charged. */
static void path_by_dequeue(void **unused)
{
	enum { RUN, LATENCY, NR_STATES };
	struct graph *g = open_scenarios(NULL, 0, false);
	struct graph_lane_result r;
	const struct graph_state_totals *totals;
	size_t nr;
	uint32_t q;

	(void)unused;
	add(g, 3, NR_STATES);
	q = add_queue(g, 0, 0, LATENCY);
	start(g, 10, 0, RUN);
	state(g, 10, 1, RUN);
	state(g, 10, 2, RUN);
	does(g, graph_enqueue, 14, 0, RUN, q, 1, 0);
	does(g, graph_dequeue, 20, 1, RUN, q, 1, 0);
	state(g, 25, 1, RUN);
	state(g, 99, 2, RUN); /* never gets one */
	finish(g, GRAPH_ANY_ACTOR);
	assert_length(g, 0, 15);
	assert_true(path_state(g, 0, 1, LATENCY).latency_ns == 6);
	assert_int_equal(graph_totals(g, &totals, &nr, NULL), BASE_OK);
	assert_int_equal(nr, 3);
	assert_int_equal(totals[2].total_ns, 89);
	graph_free(g);

	g = open_scenarios(NULL, 0, false);
	add(g, 1, NR_STATES);
	state(g, 5, 0, RUN);
	finish(g, 0);
	assert_int_equal(graph_lane(g, 0, &r, NULL), BASE_OK);
	assert_false(r.found);
	assert_int_equal(graph_lane(g, 1, &r, NULL), BASE_ERR_NOTFOUND);
	graph_free(g);
}

static void bad_options(void **unused)
{
	const struct graph_edit nan[] = {{GRAPH_EDIT_SCALE_STATE, 0, NAN, 0}};
	const struct graph_edit negative[] = {{GRAPH_EDIT_SCALE_STATE, 0, -1, 0}};
	struct graph_scenario sc[GRAPH_LANES_MAX] = {{nan, 1}};
	struct graph_options o = {.size = sizeof o, .scenario = sc, .nr_scenarios = 1};
	struct base_err err = {0};
	struct graph *g;

	(void)unused;
	assert_int_equal(graph_new(&o, &g, &err), BASE_ERR_USAGE);
	assert_null(g);
	sc[0].edit = negative;
	assert_int_equal(graph_new(&o, &g, &err), BASE_ERR_USAGE);
	sc[0].nr_edits = 0;
	o.nr_scenarios = GRAPH_LANES_MAX;
	assert_int_equal(graph_new(&o, &g, &err), BASE_ERR_LIMIT);
	o.nr_scenarios = GRAPH_LANES_MAX - 1;
	assert_int_equal(graph_new(&o, &g, &err), BASE_OK);
	graph_free(g);
}

/* Largest and smallest factor are allowed, and with a runner-up there is room for two lanes less;
 * it, queues of another size and more processors are refused together, as graph.h says. */
static void limits_of_options(void **unused)
{
	struct graph_edit edit[] = {{GRAPH_EDIT_SCALE_STATE, 0, 0, 0},
		{GRAPH_EDIT_SCALE_STATE, 0, 1e12, 0}, {GRAPH_EDIT_SCALE_STATE, 0, 2e12, 0},
		{GRAPH_EDIT_RESIZE_QUEUE, 0, 0, 1}, {GRAPH_EDIT_PROCESSORS, 0, 0, 1}};
	static const struct {
		bool alone, beside; /* a runner-up */
	} allowed[] = {{true, true}, {true, true}, {false, false}, {true, false}, {false, false}};
	struct graph_scenario sc[GRAPH_LANES_MAX] = {{0}};
	struct graph_options o = {.size = sizeof o, .scenario = sc, .nr_scenarios = 1};
	struct graph *g;

	(void)unused;
	for (size_t i = 0; i < BASE_COUNT(edit); i++) {
		sc[0] = (struct graph_scenario){&edit[i], 1};
		o.runner_up = false;
		assert_int_equal(
			graph_new(&o, &g, NULL), allowed[i].alone ? BASE_OK : BASE_ERR_USAGE);
		graph_free(g);
		o.runner_up = true;
		assert_int_equal(
			graph_new(&o, &g, NULL), allowed[i].beside ? BASE_OK : BASE_ERR_USAGE);
		graph_free(g);
	}
	sc[0].nr_edits = 0;
	o.nr_scenarios = GRAPH_LANES_MAX - 2;
	assert_int_equal(graph_new(&o, &g, NULL), BASE_ERR_LIMIT);
	o.nr_scenarios = GRAPH_LANES_MAX - 3;
	assert_int_equal(graph_new(&o, &g, NULL), BASE_OK);
	graph_free(g);
}

/* Several edits of one state are one product, whichever comes first: to the last bit. */
static void edits_have_no_order(void **unused)
{
	enum { IDLE, WORK, LATENCY, NR_STATES };
	static const double factor[][3] = {{0.1, 0.7, 3.3}, {0.1, 3.3, 0.7}, {0.7, 0.1, 3.3},
		{0.7, 3.3, 0.1}, {3.3, 0.1, 0.7}, {3.3, 0.7, 0.1}};
	struct graph_edit edit[BASE_COUNT(factor)][5];
	struct graph_scenario sc[BASE_COUNT(factor)];
	struct graph_lane_result first, r;

	(void)unused;
	for (size_t i = 0; i < BASE_COUNT(factor); i++) {
		for (int k = 0; k < 3; k++)
			edit[i][k] =
				(struct graph_edit){GRAPH_EDIT_SCALE_STATE, WORK, factor[i][k], 0};
		/* (around those of other states) */
		edit[i][3] = (struct graph_edit){GRAPH_EDIT_SCALE_STATE, IDLE, 0.5, 0};
		edit[i][4] = (struct graph_edit){GRAPH_EDIT_ELIDE_STATE, LATENCY, 0, 0};
		sc[i] = (struct graph_scenario){edit[i], 5};
	}
	struct graph *g = open_scenarios(sc, BASE_COUNT(factor), false);

	add(g, 1, NR_STATES);
	start(g, 0, 0, WORK);
	state(g, 1000003, 0, IDLE);
	state(g, 1000013, 0, WORK);
	finish(g, 0);
	assert_int_equal(graph_lane(g, 1, &first, NULL), BASE_OK);
	assert_true(fabs(first.length_ns - (1000003 * (0.1 * 0.7 * 3.3) + 5)) < 1e-6);
	for (unsigned l = 2; l <= BASE_COUNT(factor); l++) {
		assert_int_equal(graph_lane(g, l, &r, NULL), BASE_OK);
		assert_true(r.length_ns == first.length_ns);
	}
	graph_free(g);
}

/* `nr` actors one after the other, each in two states of its own and one of all. */
static size_t memory_of_many(unsigned nr)
{
	struct graph *g = open_scenarios(NULL, 0, false);
	uint32_t all, actor, own[2];

	assert_int_equal(graph_add_state(g, &all, NULL), BASE_OK);
	for (unsigned i = 0; i < nr; i++) {
		assert_int_equal(graph_add_actor(g, &actor, NULL), BASE_OK);
		assert_int_equal(graph_add_state(g, &own[0], NULL), BASE_OK);
		assert_int_equal(graph_add_state(g, &own[1], NULL), BASE_OK);
		does(g, graph_state, 10 * i, actor, own[0], 0, 0, GRAPH_START);
		does(g, graph_state, 10 * i + 3, actor, own[1], 0, 0, 0);
		does(g, graph_state, 10 * i + 5, actor, all, 0, 0, 0);
		does(g, graph_state, 10 * i + 7, actor, all, 0, 0, 0);
	}
	size_t bytes = graph_memory_bytes(g);

	graph_free(g);
	return bytes;
}

/* (Tables double: so twice as many may be four times as much, and eight times cannot be 20.) */
static void many_actors_cost_what_they_weigh(void **state)
{
	(void)state;
	assert_true(memory_of_many(16000) < 20 * memory_of_many(2000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processor_came_late),
		cmocka_unit_test(stack_and_driver),
		cmocka_unit_test(lock_ladder),
		cmocka_unit_test(unexplained),
		cmocka_unit_test(bounded_queue),
		cmocka_unit_test(unknown_capacity),
		cmocka_unit_test(fork_and_join),
		cmocka_unit_test(resource_loop),
		cmocka_unit_test(two_dependences),
		cmocka_unit_test(optional_dependence),
		cmocka_unit_test(order_without_waiting),
		cmocka_unit_test(units_of_a_queue),
		cmocka_unit_test(explained_and_aside),
		cmocka_unit_test(looks_do_not_hold),
		cmocka_unit_test(who_is_not_there_is_not_awake),
		cmocka_unit_test(path_by_dequeue),
		cmocka_unit_test(bad_options),
		cmocka_unit_test(limits_of_options),
		cmocka_unit_test(edits_have_no_order),
		cmocka_unit_test(many_actors_cost_what_they_weigh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_graph_ticks.c - known answers about who looks after something every so often, beside those
 * who work: by the path with edited weights, and by replay.
 */
#include "graph/graph.h"
#include "graph/replay.h"
#include "replay_fixture.h"
#include "test.h"

enum { SPARE, ENDS, MEETS, NR_QUEUES };
enum { MAIN, TICKER, WORKER, NR_ACTORS };
enum { TICK = 100 };

/* A graph with one scenario and a replay hear the same. */
struct both {
	struct graph *graph;
	struct graph_replay *replay;
	const struct graph_sink *sink;
	struct graph_edit edit;
	struct graph_scenario scenario;
};

static void open_both(struct both *b, double factor)
{
	uint32_t id;

	b->edit = (struct graph_edit){GRAPH_EDIT_SCALE_STATE, RUN, factor, 0};
	b->scenario = (struct graph_scenario){.edit = &b->edit, .nr_edits = 1};
	assert_int_equal(graph_new(&(struct graph_options){.size = sizeof(struct graph_options),
					   .scenario = &b->scenario,
					   .nr_scenarios = 1},
				 &b->graph, NULL),
		BASE_OK);
	b->sink = begin_replay(NULL, &b->replay);
	for (unsigned i = 0; i < NR_STATES; i++)
		assert_int_equal(graph_add_state(b->graph, &id, NULL), BASE_OK);
	for (unsigned i = 0; i < NR_ACTORS; i++)
		assert_int_equal(graph_add_actor(b->graph, &id, NULL), BASE_OK);
	for (uint32_t i = 0; i < NR_QUEUES; i++) {
		struct graph_queue_options o = {.latency_state = LATENCY};

		assert_int_equal(graph_add_queue(b->graph, &o, &id, NULL), BASE_OK);
		declare_queue(b->sink, i, o);
	}
}

static void both_do(struct both *b, enum graph_verb_kind kind, uint64_t t, uint32_t actor,
	uint32_t queue, uint32_t state, uint32_t flags)
{
	struct graph_verb v = {.time_ns = t,
		.actor = actor,
		.state = state,
		.queue = queue,
		.flags = flags,
		.n = 1};

	assert_int_equal(graph_apply(b->graph, kind, &v, MAIN, NULL), BASE_OK);
	assert_int_equal(b->sink->verb(b->sink->ctx, kind, &v, MAIN, NULL), BASE_OK);
}

static void both_start(struct both *b)
{
	both_do(b, GRAPH_VERB_state, 0, MAIN, 0, IDLE, GRAPH_START);
	both_do(b, GRAPH_VERB_link, 0, TICKER, 0, HOLD, 0);
	both_do(b, GRAPH_VERB_link, 0, WORKER, 0, RUN, 0);
}

/* How long the run takes when RUN takes that share of its time: by the path, by replay. */
static void both_end(struct both *b, uint32_t actor, double path_ns, uint64_t replay_ns)
{
	struct graph_replay_result res;
	struct graph_lane_result lane;

	assert_int_equal(graph_finish(b->graph, actor, NULL), BASE_OK);
	assert_int_equal(graph_lane(b->graph, 1, &lane, NULL), BASE_OK);
	assert_true(lane.found);
	assert_true(lane.length_ns == path_ns);
	graph_replay_set_end(b->replay, actor);
	assert_int_equal(replay_end(b->replay, b->edit, &res), replay_ns);
	assert_int_equal(res.nr_stuck, 0);
	graph_free(b->graph);
	graph_replay_free(b->replay);
}

/* Sleeps from `t`, until its limit. */
static void tick(struct both *b, uint64_t t)
{
	both_do(b, GRAPH_VERB_wait_empty, t, TICKER, ENDS, WAIT, 0);
	both_do(b, GRAPH_VERB_state, t + TICK, TICKER, 0, HOLD, GRAPH_EXPLAINED | GRAPH_TIMED_OUT);
}

/*
 * The worker meets the ticker at what it holds for 4 in its last tick. It has begun to wait when
 * that tick had begun: it need not wait for any tick. Had it begun before, or did most ticks give
 * somebody something, it may wait for just that.
 */
static void meet(unsigned nr_ticks, bool serves, uint64_t waits_after, double factor, double end)
{
	struct both b;
	uint64_t t = 0;

	open_both(&b, factor);
	both_start(&b);
	for (unsigned i = 1; i < nr_ticks; i++) {
		if (serves)
			both_do(&b, GRAPH_VERB_wait_empty, t + 50, WORKER, MEETS, WAIT, 0);
		tick(&b, t);
		t += 105;
		if (serves) {
			both_do(&b, GRAPH_VERB_enqueue, t - 2, TICKER, MEETS, HOLD, 0);
			both_do(&b, GRAPH_VERB_dequeue, t - 1, WORKER, MEETS, RUN, 0);
		}
	}
	both_do(&b, GRAPH_VERB_wait_empty, t, TICKER, ENDS, WAIT, 0);
	if (waits_after < TICK)
		both_do(&b, GRAPH_VERB_wait_empty, t + waits_after, WORKER, MEETS, WAIT, 0);
	both_do(&b, GRAPH_VERB_state, t + TICK, TICKER, 0, HOLD, GRAPH_EXPLAINED | GRAPH_TIMED_OUT);
	if (waits_after >= TICK)
		both_do(&b, GRAPH_VERB_wait_empty, t + waits_after, WORKER, MEETS, WAIT, 0);
	both_do(&b, GRAPH_VERB_enqueue, t + 104, TICKER, MEETS, HOLD, 0);
	both_do(&b, GRAPH_VERB_wait_empty, t + 104, TICKER, ENDS, WAIT, 0);
	both_do(&b, GRAPH_VERB_dequeue, t + 105, WORKER, MEETS, RUN, 0);
	both_do(&b, GRAPH_VERB_enqueue, t + 199, WORKER, ENDS, RUN, 0);
	both_do(&b, GRAPH_VERB_dequeue, t + 200, TICKER, ENDS, HOLD, 0);
	both_do(&b, GRAPH_VERB_state, t + 249, WORKER, 0, IDLE, 0);
	both_end(&b, WORKER, end, (uint64_t)end);
}

static void test_meets_by_chance(void **state)
{
	(void)state;
	meet(3, false, 102, 1, 459);
	meet(3, false, 102, 0, 3); /* what it waited, and no more */
	meet(3, false, 102, 0.5, 156 + 3 + 72);
}

static void test_waits_for_a_tick(void **state)
{
	(void)state;
	meet(3, false, 98, 0, 314 + 1);  /* it waited when the ticker slept */
	meet(1, false, 102, 0, 104 + 1); /* the only tick served it */
	meet(2, false, 102, 0, 209 + 1); /* one of two did */
	meet(3, true, 102, 0, 314 + 1);  /* as all did */
}

/*
 * In a tick it takes what the worker made, then ticks on until that one ends it: neither sleeps
 * before nor after that hold anybody up.
 */
static void test_takes_in_a_tick(void **state)
{
	struct both b;

	(void)state;
	open_both(&b, 0);
	both_start(&b);
	tick(&b, 10);
	both_do(&b, GRAPH_VERB_wait_empty, 115, TICKER, MEETS, WAIT, 0);
	both_do(&b, GRAPH_VERB_enqueue, 150, WORKER, MEETS, RUN, 0);
	both_do(&b, GRAPH_VERB_dequeue, 152, TICKER, MEETS, HOLD, 0);
	tick(&b, 155);
	both_do(&b, GRAPH_VERB_wait_empty, 260, TICKER, ENDS, WAIT, 0);
	both_do(&b, GRAPH_VERB_enqueue, 300, WORKER, ENDS, RUN, 0);
	both_do(&b, GRAPH_VERB_state, 300, WORKER, 0, IDLE, 0);
	both_do(&b, GRAPH_VERB_dequeue, 302, TICKER, ENDS, HOLD, 0);
	both_do(&b, GRAPH_VERB_state, 310, TICKER, 0, IDLE, 0);
	/* 10 before and 8 after; between them 5, 3 and 5, which replay leaves out, as those ticks
	 * do not happen. */
	both_end(&b, TICKER, 10 + 5 + 3 + 5 + 8, 10 + 8);
}

/* What it takes in a tick it had to wait for, though what ends the ticks comes at once. (That the
 * last tick would not have been at all only replay knows.) */
static void test_waits_in_a_tick(void **state)
{
	struct both b;

	(void)state;
	open_both(&b, 0);
	both_do(&b, GRAPH_VERB_state, 0, MAIN, 0, IDLE, GRAPH_START);
	both_do(&b, GRAPH_VERB_link, 0, TICKER, 0, HOLD, 0);
	both_do(&b, GRAPH_VERB_link, 0, WORKER, 0, OTHER, 0);
	tick(&b, 10);
	both_do(&b, GRAPH_VERB_wait_empty, 115, TICKER, MEETS, WAIT, 0);
	both_do(&b, GRAPH_VERB_enqueue, 150, WORKER, MEETS, RUN, 0);
	both_do(&b, GRAPH_VERB_dequeue, 152, TICKER, MEETS, HOLD, 0);
	tick(&b, 252);
	both_do(&b, GRAPH_VERB_wait_empty, 357, TICKER, ENDS, WAIT, 0);
	both_do(&b, GRAPH_VERB_enqueue, 400, WORKER, ENDS, RUN, 0);
	both_do(&b, GRAPH_VERB_state, 400, WORKER, 0, IDLE, 0);
	both_do(&b, GRAPH_VERB_dequeue, 402, TICKER, ENDS, HOLD, 0);
	both_do(&b, GRAPH_VERB_state, 410, TICKER, 0, IDLE, 0);
	both_end(&b, TICKER, 152 + 100 + 5 + 8, 152 + 100 + 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meets_by_chance),
		cmocka_unit_test(test_waits_for_a_tick),
		cmocka_unit_test(test_takes_in_a_tick),
		cmocka_unit_test(test_waits_in_a_tick),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

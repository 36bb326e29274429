/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_replay_quota.c - replay under a control group's quota, where its answers are known by
 * hand. */
#include "graph/replay.h"

#include "replay_fixture.h"

enum { MS = 1000000, PERIOD = 100 * MS };

struct net {
	struct graph_replay *r;
	const struct graph_sink *s;
	uint32_t nr_processors;
};

static struct net begin(uint64_t quota_ns, uint32_t nr_processors)
{
	struct graph_replay_options o = {.size = sizeof o,
		.nr_processors = nr_processors,
		.quota_ns = quota_ns,
		.quota_period_ns = PERIOD};
	struct net n = {.nr_processors = nr_processors};
	n.s = begin_replay(&o, &n.r);
	for (uint32_t q = 0; q < nr_processors; q++)
		declare_queue(n.s, q, (struct graph_queue_options){.processor = true});
	say(n.s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	return n;
}

static void leave(const struct net *n, uint64_t at, uint32_t actor, bool ready)
{
	say(n->s, GRAPH_VERB_dequeue, at, actor, actor - 1, GRAPH_ALL, RUN,
		GRAPH_BACK | GRAPH_ASIDE);
	say(n->s, GRAPH_VERB_enqueue, at, actor, actor - 1, 1, RUN, GRAPH_ASIDE);
	if (ready)
		say(n->s, GRAPH_VERB_wait_empty, at, actor, actor - 1, 1, RUNNABLE, 0);
}

static void come(const struct net *n, uint64_t at, uint32_t actor)
{
	say(n->s, GRAPH_VERB_state, at, actor, actor - 1, 0, RUN, GRAPH_LAST | GRAPH_EXPLAINED);
}

static uint64_t end_of(const struct net *n, double run, struct graph_replay_result *res)
{
	return replay_end(n->r, (struct graph_edit){GRAPH_EDIT_SCALE_STATE, RUN, run, 0}, res);
}

/* One actor executes 300 ms, with half a processor: 50 in each period; the run shows where it had
 * to wait. Half of the work takes 150: two periods and another half. */
static void one_has_half_a_processor(void **state)
{
	struct graph_replay_result res;
	(void)state;
	for (unsigned shown = 0; shown < 2; shown++) {
		struct net n = begin(50 * MS, 1);
		say_link(n.s, 0, 1, RUN);
		for (uint64_t period = 0; shown && period < 5; period++) {
			leave(&n, period * PERIOD + 50 * MS, 1, true);
			come(&n, (period + 1) * PERIOD, 1);
		}
		say(n.s, GRAPH_VERB_state, shown ? 550 * MS : 300 * MS, 1, 0, 0, IDLE, 0);
		if (!shown)
			leave(&n, 300 * MS, 1, false);
		assert_int_equal(end_of(&n, 1, &res), 550 * MS);
		assert_int_equal(res.nr_stuck, 0);
		assert_int_equal(end_of(&n, 0.5, &res), 250 * MS);
		assert_int_equal(end_of(&n, 0.1, &res), 30 * MS);
		assert_int_equal(end_of(&n, 2, &res), 1150 * MS);
		graph_replay_free(n.r);
	}
}

/* Two execute 300 ms each on two processors, with one and a half: 75 ms each, then both wait. Half
 * of what both do: 150, twice that. Without one of them the other never waits. */
static void two_have_one_and_a_half(void **state)
{
	struct graph_replay_result res;
	struct net n = begin(150 * MS, 2);
	(void)state;
	for (uint32_t actor = 1; actor <= 2; actor++)
		say_link(n.s, 0, actor, actor == 1 ? RUN : OTHER);
	for (uint32_t actor = 1; actor <= 2; actor++) {
		say(n.s, GRAPH_VERB_state, 300 * MS, actor, 0, 0, IDLE, 0);
		leave(&n, 300 * MS, actor, false);
	}
	assert_int_equal(end_of(&n, 1, &res), 375 * MS);
	assert_int_equal(res.nr_processors, 2);
	assert_int_equal(end_of(&n, 0, &res), 300 * MS);
	/* 1 is done after 30; 2 alone has 120 of the rest of the period's, needs 70 */
	assert_int_equal(end_of(&n, 0.1, &res), 300 * MS);
	/* more processors are of no use */
	assert_int_equal(replay_end(n.r, (struct graph_edit){GRAPH_EDIT_PROCESSORS, 0, 1, 2}, &res),
		375 * MS);
	graph_replay_free(n.r);
}

/* A sleeper uses nothing, and what it did not use is lost; one that wakes when all is used up waits
 * for the period's end. */
static void sleepers_use_nothing(void **state)
{
	struct graph_replay_result res;
	struct net n = begin(50 * MS, 2);
	(void)state;
	say_link(n.s, 0, 1, RUN);
	say_link(n.s, 0, 2, OTHER);
	say(n.s, GRAPH_VERB_wait, 10 * MS, 2, 0, 0, IDLE, 0);
	leave(&n, 10 * MS, 2, false);
	say(n.s, GRAPH_VERB_state, 40 * MS, 1, 0, 0, IDLE, 0);
	leave(&n, 40 * MS, 1, false);
	say(n.s, GRAPH_VERB_state, 60 * MS, 2, 0, 0, OTHER, GRAPH_EXPLAINED);
	say(n.s, GRAPH_VERB_state, 80 * MS, 2, 0, 0, IDLE, 0);
	leave(&n, 80 * MS, 2, false);
	/* 10 both, 30 of 1: all 50 are used; 2 is awake at 60 and begins at 100 */
	assert_int_equal(end_of(&n, 1, &res), 120 * MS);
	/* 30 of 1: 10 are left for 2, and its other 10 come in the next period */
	assert_int_equal(end_of(&n, 0.75, &res), 110 * MS);
	assert_int_equal(end_of(&n, 0.5, &res), 80 * MS);
	graph_replay_free(n.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_has_half_a_processor),
		cmocka_unit_test(two_have_one_and_a_half),
		cmocka_unit_test(sleepers_use_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

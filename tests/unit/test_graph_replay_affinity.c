/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_replay_affinity.c - who may run on which processor: sets of the kernel's numbers. */
#include "graph/replay.h"
#include "replay_fixture.h"

enum { MS = 1000000, CPU = 0 };

static void declare_set(const struct graph_sink *s, uint32_t set, uint64_t bits)
{
	assert_int_equal(s->processor_set(s->ctx, set, &bits, 1, NULL), BASE_OK);
}

static void tie(const struct graph_sink *s, uint32_t actor, uint32_t set)
{
	assert_int_equal(s->affinity(s->ctx, actor, set, NULL), BASE_OK);
}

/* Two that need 4 ms each, one after the other on processor `number` of a machine with four. */
static const struct graph_sink *begin(struct graph_replay **r, uint64_t number)
{
	struct graph_replay_options o = {.size = sizeof o, .nr_processors = 4};
	const struct graph_sink *s = begin_replay(&o, r);

	declare_queue(s, CPU, (struct graph_queue_options){.processor = true});
	assert_int_equal(s->processor(s->ctx, CPU, number, NULL), BASE_OK);
	return s;
}

static void run_two(const struct graph_sink *s)
{
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, 1, RUN);
	say_link(s, 0, 2, RUN);
	say(s, GRAPH_VERB_wait_empty, 0, 2, CPU, 1, RUNNABLE, 0);
	say(s, GRAPH_VERB_state, 4 * MS, 1, 0, 0, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, 4 * MS, 1, CPU, GRAPH_ALL, IDLE, GRAPH_BACK | GRAPH_ASIDE);
	say(s, GRAPH_VERB_enqueue, 4 * MS, 1, CPU, 1, IDLE, GRAPH_ASIDE);
	say(s, GRAPH_VERB_dequeue, 4 * MS, 2, CPU, 1, RUN, GRAPH_LAST | GRAPH_EXPLAINED);
	say(s, GRAPH_VERB_state, 8 * MS, 2, 0, 0, IDLE, 0);
}

static const struct graph_edit one_more = {GRAPH_EDIT_PROCESSORS, 0, 1, 1};

/* With nothing said they would have four processors: the run is 8 ms long all the same. */
static void test_program_with_one_processor(void **state)
{
	struct graph_replay *r;
	const struct graph_sink *s = begin(&r, 2);
	struct graph_replay_result res;

	(void)state;
	declare_set(s, 0, 1 << 2);
	for (uint32_t i = 0; i < 3; i++)
		tie(s, i, 0);
	run_two(s);
	assert_int_equal(replay_end(r, nothing, &res), 8 * MS);
	assert_int_equal(res.nr_processors, 1);
	assert_int_equal(replay_end(r, one_more, &res), 4 * MS);
	assert_int_equal(res.nr_processors, 2);
	graph_replay_free(r);
}

/* The third may use two processors, and has nothing to do; the two stay where they are tied. */
static void test_tied_threads(void **state)
{
	struct graph_replay *r;
	const struct graph_sink *s = begin(&r, 1);
	struct graph_replay_result res;

	(void)state;
	declare_set(s, 0, 1 << 0 | 1 << 1);
	declare_set(s, 1, 1 << 1);
	tie(s, 0, 0);
	tie(s, 1, 0); /* the last word counts */
	tie(s, 1, 1);
	tie(s, 2, 1);
	run_two(s);
	assert_int_equal(replay_end(r, nothing, &res), 8 * MS);
	assert_int_equal(res.nr_processors, 2);
	assert_int_equal(replay_end(r, one_more, &res), 8 * MS);
	assert_int_equal(res.nr_processors, 3);
	graph_replay_free(r);
}

/* One of the two may go to the other processor, which nobody was seen on. */
static void test_one_is_tied(void **state)
{
	struct graph_replay *r;
	const struct graph_sink *s = begin(&r, 1);
	struct graph_replay_result res;

	(void)state;
	declare_set(s, 0, 1 << 1);
	declare_set(s, 1, 1 << 0 | 1 << 1);
	tie(s, 0, 0);
	tie(s, 1, 0);
	tie(s, 2, 1);
	run_two(s);
	assert_int_equal(replay_end(r, nothing, &res), 4 * MS);
	assert_int_equal(res.nr_processors, 2);
	graph_replay_free(r);
}

/* A mask may name more processors than there are, and sets that nobody is tied to are nothing. */
static void test_masks_beyond_the_machine(void **state)
{
	struct graph_replay *r;
	const struct graph_sink *s = begin(&r, 0);
	struct graph_replay_result res;

	(void)state;
	declare_set(s, 0, 1 << 0);
	declare_set(s, 1, UINT64_MAX);
	tie(s, 0, 1);
	run_two(s);
	replay_end(r, nothing, &res);
	assert_int_equal(res.nr_processors, 4);
	graph_replay_free(r);
}

/* Taking turns with another program on the only processor: each of the two waits for it, too. (The
 * other program's time is a wait, which keeps nobody else off: 5 ms of 6, where all of it was
 * lost.) */
static void test_turns_with_others(void **state)
{
	struct graph_replay *r;
	const struct graph_sink *s = begin(&r, 0);
	struct graph_replay_result res;

	(void)state;
	declare_set(s, 0, 1);
	for (uint32_t i = 0; i < 3; i++)
		tie(s, i, 0);
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, 1, RUN);
	say_link(s, 0, 2, RUN);
	say(s, GRAPH_VERB_wait_empty, 0, 2, CPU, 1, RUNNABLE, 0);
	say(s, GRAPH_VERB_wait_empty, 1 * MS, 1, CPU, 1, RUNNABLE, 0); /* others until 3 */
	say(s, GRAPH_VERB_state, 3 * MS, 1, CPU, 0, RUN, GRAPH_EXPLAINED);
	say(s, GRAPH_VERB_state, 4 * MS, 1, 0, 0, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, 4 * MS, 1, CPU, GRAPH_ALL, IDLE, GRAPH_BACK | GRAPH_ASIDE);
	say(s, GRAPH_VERB_enqueue, 4 * MS, 1, CPU, 1, IDLE, GRAPH_ASIDE);
	say(s, GRAPH_VERB_dequeue, 4 * MS, 2, CPU, 1, RUN, GRAPH_LAST | GRAPH_EXPLAINED);
	say(s, GRAPH_VERB_state, 6 * MS, 2, 0, 0, IDLE, 0);
	assert_int_equal(replay_end(r, nothing, &res), 5 * MS);
	graph_replay_free(r);
}

/* ---- whom who comes takes it from ------------------------------------------------------------ */

/*
 * Two processors: FIRST works on one from 0 to 1000, SECOND on the other from 50 to 1050. HELPER,
 * woken by FIRST at 100 for 50, takes the processor of the actor that has run longest: FIRST's,
 * which goes on there afterwards.
 */
static void test_longest_run_is_preempted(void **state)
{
	enum { CALLS, PROCESSOR, FIRST = 1, SECOND, HELPER };
	static const uint64_t end_ns[] = {[FIRST] = 1050, [SECOND] = 1050, [HELPER] = 150};
	struct graph_replay_options o = {.size = sizeof o, .nr_processors = 2};
	struct graph_replay_assumed preempts = {.preempts = true};
	struct graph_replay_result res;
	struct graph_replay *r;
	const struct graph_sink *s = begin_replay(&o, &r);

	(void)state;
	declare_queue(s, CALLS, (struct graph_queue_options){0});
	declare_queue(s, PROCESSOR, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, FIRST, RUN);
	say_link(s, 0, HELPER, RUN);
	say(s, GRAPH_VERB_wait_empty, 0, HELPER, CALLS, 1, WAIT, 0);
	say(s, GRAPH_VERB_dequeue, 0, HELPER, PROCESSOR, GRAPH_ALL, WAIT, GRAPH_BACK | GRAPH_ASIDE);
	say(s, GRAPH_VERB_enqueue, 0, HELPER, PROCESSOR, 1, WAIT, GRAPH_ASIDE);
	say(s, GRAPH_VERB_state, 50, 0, 0, 0, IDLE, 0);
	say_link(s, 50, SECOND, RUN);
	say(s, GRAPH_VERB_enqueue, 100, FIRST, CALLS, 1, RUN, 0);
	say(s, GRAPH_VERB_state, 1000, FIRST, 0, 0, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, 1000, FIRST, PROCESSOR, GRAPH_ALL, IDLE,
		GRAPH_BACK | GRAPH_ASIDE);
	say(s, GRAPH_VERB_enqueue, 1000, FIRST, PROCESSOR, 1, IDLE, GRAPH_ASIDE);
	say(s, GRAPH_VERB_peek, 1000, HELPER, PROCESSOR, 1, RUN,
		GRAPH_LAST | GRAPH_MORE | GRAPH_OPTIONAL);
	say(s, GRAPH_VERB_dequeue, 1000, HELPER, CALLS, 1, RUN, 0);
	say(s, GRAPH_VERB_state, 1050, HELPER, 0, 0, IDLE, 0);
	say(s, GRAPH_VERB_state, 1050, SECOND, 0, 0, IDLE, 0);
	for (uint32_t who = FIRST; who <= HELPER; who++) {
		graph_replay_set_end(r, who);
		assert_int_equal(
			graph_replay_run_as(r, NULL, &preempts, NULL, &res, NULL), BASE_OK);
		assert_int_equal(res.end_ns, end_ns[who]);
		assert_int_equal(res.nr_stuck, 0);
	}
	/* What it tells: the first has left its processor for the helper, and waits for it. */
	struct graph_lane_result lane;
	struct ear again;
	struct graph *g;

	graph_replay_set_end(r, FIRST);
	assert_int_equal(graph_new(NULL, &g, NULL), BASE_OK);
	ear_init(&again, g);
	assert_int_equal(graph_replay_run_as(r, NULL, &preempts, &again.sink, &res, NULL), BASE_OK);
	assert_int_equal(graph_finish(g, FIRST, NULL), BASE_OK);
	assert_int_equal(graph_lane(g, 0, &lane, NULL), BASE_OK);
	assert_true(lane.length_ns == 1050);
	double by_helper = 0;

	for (size_t i = 0; i < lane.nr_states; i++)
		by_helper += lane.state[i].actor == HELPER ? lane.state[i].path_ns : 0;
	assert_true(by_helper == 50);
	for (uint32_t q = 0; q < graph_nr_queues(g); q++)
		assert_int_equal(graph_queue_stats(g, q)->underflows, 0);
	graph_free(g);
	ear_fini(&again);
	graph_replay_free(r);
}

static void test_no_memory(void **state)
{
	(void)state;
	for (uint64_t fail_at = 1; fail_at < 40; fail_at++) {
		struct graph_replay *r;
		uint64_t bits[2] = {1, 1};
		bool failed = false;

		assert_int_equal(graph_replay_new(NULL, &r, NULL), BASE_OK);
		const struct graph_sink *s = graph_replay_sink(r);
		base_alloc_fail_nth(fail_at);
		for (uint32_t i = 0; i < 20 && !failed; i++)
			failed = s->processor_set(s->ctx, i, bits, 2, NULL) == BASE_ERR_NOMEM ||
				 s->affinity(s->ctx, i * 8, i, NULL) == BASE_ERR_NOMEM;
		base_alloc_fail_nth(0);
		graph_replay_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_program_with_one_processor),
		cmocka_unit_test(test_tied_threads),
		cmocka_unit_test(test_one_is_tied),
		cmocka_unit_test(test_masks_beyond_the_machine),
		cmocka_unit_test(test_turns_with_others),
		cmocka_unit_test(test_longest_run_is_preempted),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

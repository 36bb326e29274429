/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_graph_elide.c - "this wait does not happen", by both methods: small runs whose other end is
 * worked out on paper. (Random ones: test_graph_law.c, test_graph_replay.c.)
 */
#include "graph/replay.h"

#include "replay_fixture.h"

static struct graph_edit elide_wait = {GRAPH_EDIT_ELIDE_STATE, WAIT, 0, 0};
static const struct graph_scenario elision = {.edit = &elide_wait, .nr_edits = 1};

struct run {
	struct graph *g;
	struct graph_replay *r;
	struct ear ear;
	struct graph_sink sink; /* both hear it */
};

static enum base_status both_verb(void *ctx, enum graph_verb_kind kind, const struct graph_verb *v,
	uint32_t from, struct base_err *err)
{
	struct run *run = ctx;
	const struct graph_sink *s = graph_replay_sink(run->r);

	assert_int_equal(run->ear.sink.verb(run->ear.sink.ctx, kind, v, from, err), BASE_OK);
	return s->verb(s->ctx, kind, v, from, err);
}

static enum base_status both_state(void *ctx, uint32_t state, bool executes, struct base_err *err)
{
	struct run *run = ctx;
	const struct graph_sink *s = graph_replay_sink(run->r);
	uint32_t id;

	assert_int_equal(graph_add_state(run->g, &id, err), BASE_OK);
	assert_int_equal(id, state);
	return s->state(s->ctx, state, executes, err);
}

static enum base_status both_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	struct run *run = ctx;
	const struct graph_sink *s = graph_replay_sink(run->r);
	uint32_t id;

	assert_int_equal(graph_add_queue(run->g, o, &id, err), BASE_OK);
	assert_int_equal(id, queue);
	return s->queue(s->ctx, queue, o, err);
}

static void begin(struct run *run)
{
	struct graph_options o = {.size = sizeof o, .scenario = &elision, .nr_scenarios = 1};
	uint32_t id;

	assert_int_equal(graph_new(&o, &run->g, NULL), BASE_OK);
	run->r = new_replay();
	ear_init(&run->ear, NULL);
	run->ear.graph = run->g;
	for (int i = 0; i < 4; i++)
		assert_int_equal(graph_add_actor(run->g, &id, NULL), BASE_OK);
	run->ear.nr_actors = 4;
	run->sink = (struct graph_sink){
		.ctx = run, .state = both_state, .queue = both_queue, .verb = both_verb};
	declare(&run->sink);
}

/* Of actor 0: as it was, and without the wait. */
static void ends(struct run *run, uint64_t recorded, uint64_t by_path, uint64_t by_replay)
{
	struct graph_replay_result res;
	struct graph_lane_result lane;

	assert_int_equal(graph_finish(run->g, 0, NULL), BASE_OK);
	assert_int_equal(graph_lane(run->g, 0, &lane, NULL), BASE_OK);
	assert_true(lane.length_ns == (double)recorded);
	assert_int_equal(graph_lane(run->g, 1, &lane, NULL), BASE_OK);
	assert_true(lane.length_ns == (double)by_path);
	graph_replay_set_end(run->r, 0);
	assert_int_equal(replay_end(run->r, nothing, &res), recorded);
	assert_int_equal(replay_end(run->r, elide_wait, &res), by_replay);
	assert_int_equal(res.nr_stuck, 0);
	graph_free(run->g);
	graph_replay_free(run->r);
	ear_fini(&run->ear);
}

/* As the kernel's records tell it: asleep until the disk's interrupt, then without a processor. */
static void test_flush(void **unused)
{
	enum { WAKE, PROCESSOR, DISK = 1 };
	struct run run;

	(void)unused;
	begin(&run);
	declare_queue(&run.sink, WAKE, (struct graph_queue_options){0});
	declare_queue(&run.sink, PROCESSOR, (struct graph_queue_options){.processor = true});
	say(&run.sink, GRAPH_VERB_state, 0, 0, 0, 0, RUN, GRAPH_START);
	say_link(&run.sink, 10, DISK, IDLE);
	say(&run.sink, GRAPH_VERB_wait, 10, 0, 0, 0, WAIT, 0);
	say(&run.sink, GRAPH_VERB_enqueue, 40, DISK, WAKE, 1, IDLE, 0);
	say(&run.sink, GRAPH_VERB_dequeue, 40, 0, WAKE, GRAPH_ALL, RUNNABLE, GRAPH_LAST);
	say(&run.sink, GRAPH_VERB_wait_empty, 40, 0, PROCESSOR, 1, RUNNABLE, 0);
	say(&run.sink, GRAPH_VERB_state, 45, 0, 0, 0, RUN, GRAPH_EXPLAINED);
	say(&run.sink, GRAPH_VERB_state, 60, 0, 0, 0, IDLE, 0);
	ends(&run, 60, 10 + 15, 10 + 15);
}

/* What it waited for it takes later, and that holds it neither; nor does the next of the kind. */
static void test_taken_later(void **unused)
{
	struct run run;

	(void)unused;
	begin(&run);
	declare_queue(&run.sink, 0, (struct graph_queue_options){0});
	say(&run.sink, GRAPH_VERB_state, 0, 0, 0, 0, RUN, GRAPH_START);
	say_link(&run.sink, 0, 1, OTHER);
	say(&run.sink, GRAPH_VERB_wait_empty, 10, 0, 0, 1, WAIT, 0);
	say(&run.sink, GRAPH_VERB_enqueue, 40, 1, 0, 1, OTHER, 0);
	say(&run.sink, GRAPH_VERB_peek, 40, 0, 0, 1, RUN, GRAPH_LAST);
	say(&run.sink, GRAPH_VERB_dequeue, 45, 0, 0, 1, RUN, 0);
	say(&run.sink, GRAPH_VERB_enqueue, 50, 1, 0, 1, IDLE, 0);
	say(&run.sink, GRAPH_VERB_dequeue, 60, 0, 0, 1, RUN, 0);
	say(&run.sink, GRAPH_VERB_state, 65, 0, 0, 0, IDLE, 0);
	ends(&run, 65, 65 - 30, 65 - 30);
}

/*
 * A lock that actor 0 does not wait for any more: it holds it together with actor 1. Actor 2, which
 * waits in a state of its own, gets it when both have left, whichever was the last.
 */
static void test_lock(void **unused)
{
	enum { LOCK, EXITS };
	struct run run;

	(void)unused;
	begin(&run);
	declare_queue(&run.sink, LOCK, (struct graph_queue_options){.initial = 1});
	declare_queue(&run.sink, EXITS, (struct graph_queue_options){0});
	say(&run.sink, GRAPH_VERB_state, 0, 0, 0, 0, RUN, GRAPH_START);
	say_link(&run.sink, 0, 1, RUN);
	say_link(&run.sink, 0, 2, RUN);
	say(&run.sink, GRAPH_VERB_dequeue, 2, 1, LOCK, GRAPH_ALL, HOLD, GRAPH_BACK);
	say(&run.sink, GRAPH_VERB_wait_empty, 10, 0, LOCK, 1, WAIT, 0);
	say(&run.sink, GRAPH_VERB_enqueue, 30, 1, LOCK, 1, RUN, 0);
	say(&run.sink, GRAPH_VERB_dequeue, 30, 0, LOCK, GRAPH_ALL, HOLD, 0);
	say(&run.sink, GRAPH_VERB_wait_empty, 31, 2, LOCK, 1, IDLE, 0);
	say(&run.sink, GRAPH_VERB_enqueue, 70, 0, LOCK, 1, RUN, 0); /* 0 held it for 40 */
	say(&run.sink, GRAPH_VERB_dequeue, 70, 2, LOCK, GRAPH_ALL, HOLD, 0);
	say(&run.sink, GRAPH_VERB_wait_empty, 71, 0, EXITS, 1, OTHER, 0);
	say(&run.sink, GRAPH_VERB_enqueue, 75, 2, LOCK, 1, RUN, 0);
	say(&run.sink, GRAPH_VERB_enqueue, 75, 2, EXITS, 1, IDLE, 0);
	say(&run.sink, GRAPH_VERB_dequeue, 76, 0, EXITS, 1, RUN, 0);
	say(&run.sink, GRAPH_VERB_state, 80, 0, 0, 0, IDLE, 0);
	/* 0 leaves it at 50, 2 at 55; a hand-off of 1, and 4 more */
	ends(&run, 80, 60, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_taken_later),
		cmocka_unit_test(test_lock),
	};

	return cmocka_run_group_tests_name("graph_elide", tests, NULL, NULL);
}

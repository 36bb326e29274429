/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_replay_known.c - replay's answers where they are known by hand: tokens, locks,
 * processors. */
#include "graph/replay.h"

#include "replay_fixture.h"

#include <math.h>

/* n jobs of 10 us behind one token; with k tokens they take ceil(n / k) rounds. */
static void test_servers(void **state)
{
	enum { JOBS = 12, US = 10000 };
	static const enum graph_discipline kind[] = {GRAPH_POOL, GRAPH_FIFO};

	(void)state;
	for (size_t d = 0; d < BASE_COUNT(kind); d++) {
		struct graph_replay *r = new_replay();
		const struct graph_sink *s = graph_replay_sink(r);
		struct graph_replay_result res;

		declare(s);
		declare_queue(
			s, 0, (struct graph_queue_options){.discipline = kind[d], .initial = 1});
		say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
		for (uint32_t i = 1; i <= JOBS; i++)
			say_link(s, 0, i, RUN);
		for (uint32_t i = 1; i <= JOBS; i++) {
			if (i > 1)
				say(s, GRAPH_VERB_wait_empty, 0, i, 0, 1, WAIT, 0);
			else
				say(s, GRAPH_VERB_dequeue, 0, i, 0, 1, HOLD, 0);
		}
		for (uint32_t i = 1; i <= JOBS; i++) {
			say(s, GRAPH_VERB_enqueue, i * US, i, 0, 1, IDLE, 0);
			if (i < JOBS)
				say(s, GRAPH_VERB_dequeue, i * US, i + 1, 0, 1, HOLD, 0);
		}
		assert_int_equal(replay_end(r, nothing, &res), JOBS * US);
		for (uint64_t k = 1; k <= JOBS + 2; k++) {
			struct graph_edit more = {GRAPH_EDIT_RESIZE_QUEUE, 0, 1, k - 1};

			assert_int_equal(replay_end(r, more, &res), (JOBS + k - 1) / k * US);
			assert_int_equal(res.nr_stuck, 0);
		}
		assert_int_equal(
			replay_end(r, (struct graph_edit){GRAPH_EDIT_IGNORE_QUEUE, 0, 1, 0}, &res),
			US);
		graph_replay_free(r);
	}
}

/* A locks first in the run; when its way there takes longer, B does, and A waits for B. */
static void test_lock_changes_hands(void **state)
{
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;

	(void)state;
	declare(s);
	declare_queue(s, 0, (struct graph_queue_options){.initial = 1});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, 1, OTHER);
	say_link(s, 0, 2, RUN);
	say(s, GRAPH_VERB_dequeue, 10, 1, 0, GRAPH_ALL, HOLD, GRAPH_BACK); /* free */
	say(s, GRAPH_VERB_wait_empty, 12, 2, 0, 1, WAIT, 0);
	say(s, GRAPH_VERB_enqueue, 15, 1, 0, 1, RUN, 0);
	say(s, GRAPH_VERB_dequeue, 18, 2, 0, 1, HOLD, GRAPH_LAST); /* latency 3 */
	say(s, GRAPH_VERB_enqueue, 23, 2, 0, 1, IDLE, 0);
	say(s, GRAPH_VERB_state, 35, 1, 0, 0, IDLE, 0);
	assert_int_equal(replay_end(r, nothing, &res), 35);
	assert_int_equal(res.nr_waits_new, 0);
	/* B holds it from 12 to 17; A asks at 15, gets it at 17 + 3, holds it until 25, ends at 45
	 */
	assert_int_equal(
		replay_end(r, (struct graph_edit){GRAPH_EDIT_SCALE_STATE, OTHER, 1.5, 0}, &res),
		45);
	assert_int_equal(res.nr_waits_new, 1);
	assert_int_equal(res.nr_waits_gone, 1);
	/* At 20 it finds it free */
	assert_int_equal(
		replay_end(r, (struct graph_edit){GRAPH_EDIT_SCALE_STATE, OTHER, 2, 0}, &res), 45);
	assert_int_equal(res.nr_waits_new, 0);
	graph_replay_free(r);
}

/*
 * B is given the lock and gets a processor 900 us later, which other programs had: only 10 us are the
 * lock's.
 */
static void test_processor_came_late(void **state)
{
	enum { US = 1000 };
	static const struct {
		uint64_t came_ns;
		struct graph_edit edit;
		uint64_t end_ns;
	} row[] = {
		{2400 * US, {GRAPH_EDIT_SCALE_STATE, IDLE, 1, 0}, 6510 * US},
		{2400 * US, {GRAPH_EDIT_SCALE_STATE, LATENCY, 0, 0}, 6500 * US},
		{2400 * US, {GRAPH_EDIT_SCALE_STATE, RUNNABLE, 0, 0}, 5610 * US},
		/* A, later, is the one who waits: from 1500 to 1700, comes at 1710, has it for 500 us */
		{2400 * US, {GRAPH_EDIT_SCALE_STATE, OTHER, 1.5, 0}, 4510 * US},
		/* As nobody knows of processors, it is all the lock's: A comes at 2610. */
		{0, {GRAPH_EDIT_SCALE_STATE, IDLE, 1, 0}, 6510 * US},
		{0, {GRAPH_EDIT_SCALE_STATE, LATENCY, 0, 0}, 5600 * US},
		{0, {GRAPH_EDIT_SCALE_STATE, RUNNABLE, 0, 0}, 6510 * US},
		{0, {GRAPH_EDIT_SCALE_STATE, OTHER, 1.5, 0}, 5410 * US},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct graph_replay *r;
		const struct graph_sink *s = begin_replay(
			&(struct graph_replay_options){
				.size = sizeof(struct graph_replay_options), .nr_processors = 4},
			&r);
		const struct graph_verb take = {.time_ns = 2410 * US,
			.actor = 2,
			.state = HOLD,
			.flags = GRAPH_LAST,
			.n = 1,
			.came_ns = row[i].came_ns,
			.came_state = RUNNABLE};
		struct graph_replay_result res;
		uint32_t last = row[i].edit.id == OTHER ? 1 : 2;
		declare_queue(s, 0, (struct graph_queue_options){.initial = 1});
		declare_queue(s, 1, (struct graph_queue_options){.processor = true});
		say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
		say_link(s, 0, 1, OTHER);
		say_link(s, 0, 2, RUN);
		say(s, GRAPH_VERB_dequeue, 1000 * US, 1, 0, GRAPH_ALL, HOLD, GRAPH_BACK);
		say(s, GRAPH_VERB_wait_empty, 1200 * US, 2, 0, 1, WAIT, 0);
		say(s, GRAPH_VERB_enqueue, 1201 * US, 2, 1, 1, WAIT, GRAPH_ASIDE);
		say(s, GRAPH_VERB_enqueue, 1500 * US, 1, 0, 1, RUN, 0);
		assert_int_equal(s->verb(s->ctx, GRAPH_VERB_dequeue, &take, 0, NULL), BASE_OK);
		say(s, GRAPH_VERB_enqueue, 2910 * US, 2, 0, 1, RUN, 0);
		say(s, GRAPH_VERB_state, 3800 * US, 1, 0, 0, IDLE, 0);
		say(s, GRAPH_VERB_state, 6510 * US, 2, 0, 0, IDLE, 0);
		graph_replay_set_end(r, last);
		assert_int_equal(replay_end(r, row[i].edit, &res), row[i].end_ns);
		graph_replay_free(r);
	}
}

/* Two that need 4 ms each and one processor; a second one halves it. */
static void test_processors(void **state)
{
	enum { MS = 1000000 };
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;
	struct graph_lane_result lane;
	struct ear again;
	struct graph *g;

	(void)state;
	declare(s);
	declare_queue(s, 0, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, 1, RUN);
	say_link(s, 0, 2, RUN);
	say(s, GRAPH_VERB_wait_empty, 0, 2, 0, 1, RUNNABLE, 0);
	say(s, GRAPH_VERB_state, 4 * MS, 1, 0, 0, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, 4 * MS, 1, 0, GRAPH_ALL, IDLE, GRAPH_BACK | GRAPH_ASIDE);
	say(s, GRAPH_VERB_enqueue, 4 * MS, 1, 0, 1, IDLE, GRAPH_ASIDE);
	say(s, GRAPH_VERB_dequeue, 4 * MS, 2, 0, 1, RUN, GRAPH_LAST | GRAPH_EXPLAINED);
	say(s, GRAPH_VERB_state, 8 * MS, 2, 0, 0, IDLE, 0);
	assert_int_equal(replay_end(r, nothing, &res), 8 * MS);
	assert_int_equal(res.nr_processors, 1);
	assert_int_equal(res.nr_processor_waits, 3); /* 3 ms each, then the rests */
	assert_int_equal(res.processor_wait_ns, 3 * MS + 3 * MS + 1 * MS);
	assert_int_equal(
		replay_end(r, (struct graph_edit){GRAPH_EDIT_PROCESSORS, 0, 1, 1}, &res), 4 * MS);
	assert_int_equal(res.nr_processors, 2);
	assert_int_equal(res.nr_processor_waits, 0);
	/* The path goes from the one on the processor to the other. */
	assert_int_equal(graph_new(NULL, &g, NULL), BASE_OK);
	ear_init(&again, g);
	assert_int_equal(graph_replay_run(r, NULL, &again.sink, &res, NULL), BASE_OK);
	assert_int_equal(graph_finish(g, GRAPH_ANY_ACTOR, NULL), BASE_OK);
	assert_int_equal(graph_lane(g, 0, &lane, NULL), BASE_OK);
	assert_true(lane.length_ns == 8.0 * MS);
	graph_free(g);
	ear_fini(&again);
	graph_replay_free(r);
}

/* An interrupt serves 1 at 10 and 2 at 20, which have nothing to do with each other: what makes 1
 * later does not concern 2. */
static void test_lives(void **state)
{
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;

	(void)state;
	declare(s);
	for (uint32_t q = 0; q < 4; q++)
		declare_queue(s, q, (struct graph_queue_options){0});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, 1, OTHER);
	say_link(s, 0, 2, RUN);
	for (uint32_t i = 1; i <= 2; i++) {
		say(s, GRAPH_VERB_enqueue, i * 10, i, i - 1, 1, RUN, 0);
		say(s, GRAPH_VERB_wait_empty, i * 10, i, i + 1, 1, WAIT, 0);
		say(s, GRAPH_VERB_dequeue, i * 10, 3, i - 1, 1, RUN, 0);
		say(s, GRAPH_VERB_enqueue, i * 10 + 2, 3, i + 1, 1, RUN, 0);
		say(s, GRAPH_VERB_forget, i * 10 + 2, 3, 0, 0, IDLE, 0);
		say(s, GRAPH_VERB_dequeue, i * 10 + 2, i, i + 1, 1, RUN, 0);
		say(s, GRAPH_VERB_state, i * 10 + 5, i, 0, 0, IDLE, 0);
	}
	graph_replay_set_end(r, 2);
	assert_int_equal(graph_replay_end_actor(r), 2);
	assert_int_equal(replay_end(r, nothing, &res), 25);
	assert_int_equal(
		replay_end(r, (struct graph_edit){GRAPH_EDIT_SCALE_STATE, OTHER, 10, 0}, &res), 25);
	assert_int_equal(res.nr_stuck, 0);
	graph_replay_set_end(r, 1);
	assert_int_equal(
		replay_end(r, (struct graph_edit){GRAPH_EDIT_SCALE_STATE, OTHER, 10, 0}, &res),
		105);
	graph_replay_set_end(r, 3); /* its second life */
	assert_int_equal(graph_replay_end_actor(r), 4);
	graph_replay_free(r);
}

/* A hundred requests one after the other, the last done by another slot of the disk. It had nothing
 * to wait for before, so it does not take what the first slot's lives are there for, not all of
 * which have begun. */
static void test_lives_in_order(void **state)
{
	enum { REQUESTS = 100, ASKS = 0, FIRST = 1, OTHER_SLOT = 2 }; /* queues */
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;

	(void)state;
	declare(s);
	for (uint32_t q = ASKS; q <= OTHER_SLOT; q++)
		declare_queue(s, q, (struct graph_queue_options){0});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, 1, RUN);
	for (uint32_t i = 1; i <= REQUESTS; i++) {
		uint32_t slot = i < REQUESTS ? FIRST : OTHER_SLOT;

		say(s, GRAPH_VERB_enqueue, i * 10, 1, ASKS, 1, RUN, 0);
		say(s, GRAPH_VERB_wait_empty, i * 10, 1, slot, 1, WAIT, 0);
		say(s, GRAPH_VERB_dequeue, i * 10, 1 + slot, ASKS, 1, OTHER, 0);
		say(s, GRAPH_VERB_enqueue, i * 10 + 2, 1 + slot, slot, 1, OTHER, 0);
		say(s, GRAPH_VERB_forget, i * 10 + 2, 1 + slot, 0, 0, IDLE, 0);
		say(s, GRAPH_VERB_dequeue, i * 10 + 2, 1, slot, 1, RUN, 0);
	}
	say(s, GRAPH_VERB_state, REQUESTS * 10 + 5, 1, 0, 0, IDLE, 0);
	graph_replay_set_end(r, 1);
	assert_int_equal(replay_end(r, nothing, &res), REQUESTS * 10 + 5);
	assert_int_equal(res.nr_stuck, 0);
	assert_int_equal(
		replay_end(r, (struct graph_edit){GRAPH_EDIT_SCALE_STATE, OTHER, 0.5, 0}, &res),
		REQUESTS * 9 + 5);
	assert_int_equal(res.nr_stuck, 0);
	graph_replay_free(r);
}

/*
 * Two requests for one sector, each waited for by another slot of the disk; the first is on its way
 * to slot 2 when slot 3, which is quicker, asks, too. It is not for 3: the second comes when the
 * first is done.
 */
static void test_keys_are_promised(void **state)
{
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;
	struct graph_verb put = {.actor = 1, .state = RUN, .n = 1, .key = 7};
	struct graph_verb take = {.state = RUN, .flags = GRAPH_KEYED, .n = 1, .key = 7};

	(void)state;
	declare(s);
	declare_queue(s, 0, (struct graph_queue_options){0});
	declare_queue(s, 1, (struct graph_queue_options){0});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, 1, RUN);
	say_link(s, 0, 2, RUN);
	say_link(s, 0, 3, OTHER);
	say_link(s, 0, 4, RUN);
	say(s, GRAPH_VERB_wait_empty, 1, 2, 0, 1, WAIT, 0);
	put.time_ns = 10;
	assert_int_equal(s->verb(s->ctx, GRAPH_VERB_enqueue, &put, 0, NULL), BASE_OK);
	say(s, GRAPH_VERB_wait_empty, 10, 1, 1, 1, WAIT, 0);
	say(s, GRAPH_VERB_enqueue, 12, 4, 0, 1, IDLE, 0); /* another sector */
	take.time_ns = 15;
	take.actor = 2;
	assert_int_equal(s->verb(s->ctx, GRAPH_VERB_dequeue, &take, 0, NULL), BASE_OK);
	say(s, GRAPH_VERB_enqueue, 16, 2, 1, 1, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, 16, 1, 1, 1, RUN, 0);
	say(s, GRAPH_VERB_wait_empty, 17, 3, 0, 1, WAIT, 0);
	put.time_ns = 20;
	assert_int_equal(s->verb(s->ctx, GRAPH_VERB_enqueue, &put, 0, NULL), BASE_OK);
	take.time_ns = 21;
	take.actor = 3;
	assert_int_equal(s->verb(s->ctx, GRAPH_VERB_dequeue, &take, 0, NULL), BASE_OK);
	say(s, GRAPH_VERB_state, 30, 3, 0, 0, IDLE, 0);
	assert_int_equal(replay_end(r, nothing, &res), 30);
	assert_int_equal(
		replay_end(r, (struct graph_edit){GRAPH_EDIT_SCALE_STATE, OTHER, 0.1, 0}, &res),
		30);
	assert_int_equal(res.nr_stuck, 0);
	graph_replay_free(r);
}

/*
 * The taker waits for the unit with key 7 that is put at 10, and for another one that comes at 20. In
 * the meantime, at 14, somebody looks at the former. When the other one comes at 5 already, the
 * taker would have both at 10; it still lets the looker come first, which would wait for ever
 * otherwise. It does not wait for one that looks for another key, in another queue, or later than
 * the taker in the run.
 */
enum { HERE, THERE, BESIDE, PUTS_IT = 1, LOOKS, TAKES_IT, HELPS, THEN = 5 };
struct looked {
	uint32_t queue;
	uint64_t key, put_ns; /* what is looked for, 4 after it was put */
	bool apart;           /* it is not the taker's unit */
	uint64_t taken_ns;
};

static void say_keyed(const struct graph_sink *s, enum graph_verb_kind kind, uint64_t time_ns,
	uint32_t actor, uint32_t queue, uint64_t key, uint32_t flags)
{
	const struct graph_verb v = {.time_ns = time_ns,
		.actor = actor,
		.state = RUN,
		.queue = queue,
		.n = 1,
		.key = key,
		.flags = flags};
	assert_int_equal(s->verb(s->ctx, kind, &v, 0, NULL), BASE_OK);
}

static void say_look(const struct graph_sink *s, const struct looked *l)
{
	if (l->apart)
		say_keyed(s, GRAPH_VERB_enqueue, l->put_ns, PUTS_IT, l->queue, l->key, 0);
	say_keyed(s, GRAPH_VERB_peek, l->put_ns + 4, LOOKS, l->queue, l->key, GRAPH_KEYED);
}

static void test_who_looks_comes_first(void **state)
{
	static const struct looked row[] = {{HERE, 7, 10, false, 14}, {HERE, 8, 10, true, 10},
		{THERE, 7, 10, true, 10}, {HERE, 7, 26, true, 10}};
	const struct graph_edit soon = {GRAPH_EDIT_SCALE_STATE, OTHER, 0.25, 0};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct graph_replay *r = new_replay();
		const struct graph_sink *s = graph_replay_sink(r);
		struct graph_replay_result res;
		declare(s);
		for (uint32_t queue = HERE; queue <= BESIDE; queue++)
			declare_queue(s, queue, (struct graph_queue_options){0});
		say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
		for (uint32_t actor = PUTS_IT; actor <= HELPS; actor++)
			say_link(s, 0, actor, actor == HELPS ? OTHER : RUN);
		say(s, GRAPH_VERB_wait_empty, 5, LOOKS, row[i].queue, 1, WAIT, 0);
		say(s, GRAPH_VERB_wait_empty, 7, TAKES_IT, HERE, 1, WAIT, 0);
		say_keyed(s, GRAPH_VERB_enqueue, 10, PUTS_IT, HERE, 7, 0);
		if (row[i].put_ns < 20)
			say_look(s, &row[i]);
		say(s, GRAPH_VERB_enqueue, 20, HELPS, BESIDE, 1, IDLE, 0);
		say_keyed(s, GRAPH_VERB_dequeue, 20, TAKES_IT, HERE, 7, GRAPH_KEYED | GRAPH_MORE);
		say(s, GRAPH_VERB_dequeue, 20, TAKES_IT, BESIDE, 1, RUN, 0);
		say(s, GRAPH_VERB_state, 20 + THEN, TAKES_IT, 0, 0, IDLE, 0);
		if (row[i].put_ns >= 20)
			say_look(s, &row[i]);
		graph_replay_set_end(r, TAKES_IT);
		assert_int_equal(replay_end(r, nothing, &res), 20 + THEN);
		assert_int_equal(replay_end(r, soon, &res), row[i].taken_ns + THEN);
		assert_int_equal(res.nr_stuck, 0);
		graph_replay_free(r);
	}
}

/* ---- what cannot go on ----------------------------------------------------------------------- */

/* A takes 1 then 2, B takes 2 then 1; the run was lucky, the change is not. */
static void test_deadlock(void **state)
{
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;

	(void)state;
	declare(s);
	declare_queue(s, 0, (struct graph_queue_options){.initial = 1});
	declare_queue(s, 1, (struct graph_queue_options){.initial = 1});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, 1, RUN);
	say_link(s, 0, 2, OTHER);
	say(s, GRAPH_VERB_dequeue, 10, 1, 0, GRAPH_ALL, HOLD, GRAPH_BACK);
	say(s, GRAPH_VERB_dequeue, 20, 1, 1, GRAPH_ALL, HOLD, GRAPH_BACK);
	say(s, GRAPH_VERB_enqueue, 30, 1, 1, 1, HOLD, 0);
	say(s, GRAPH_VERB_enqueue, 40, 1, 0, 1, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, 60, 2, 1, GRAPH_ALL, HOLD, GRAPH_BACK);
	say(s, GRAPH_VERB_dequeue, 70, 2, 0, GRAPH_ALL, HOLD, GRAPH_BACK);
	say(s, GRAPH_VERB_enqueue, 80, 2, 0, 1, IDLE, 0);
	say(s, GRAPH_VERB_enqueue, 90, 2, 1, 1, IDLE, 0);
	assert_int_equal(replay_end(r, nothing, &res), 90);
	assert_int_equal(res.nr_stuck, 0);
	replay_end(r, (struct graph_edit){GRAPH_EDIT_SCALE_STATE, OTHER, 0.25, 0}, &res);
	assert_int_equal(res.nr_stuck, 2);
	assert_int_equal(res.first_stuck, 1);
	assert_int_equal(res.first_stuck_queue, 1);
	assert_int_equal(res.first_stuck_ns, 20);
	assert_true(res.first_stuck_anew);
	graph_replay_free(r);
}

/* One that sleeps inside a call needs no processor meanwhile. */
static void test_sleeps_in_a_call(void **state)
{
	enum { MS = 1000000 };
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;

	(void)state;
	declare(s);
	declare_queue(s, 0, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, 1, RUN);
	say_link(s, 0, 2, OTHER);
	say(s, GRAPH_VERB_dequeue, 0, 2, 0, GRAPH_ALL, OTHER, GRAPH_BACK | GRAPH_ASIDE);
	say(s, GRAPH_VERB_enqueue, 0, 2, 0, 1, OTHER, GRAPH_ASIDE);
	say(s, GRAPH_VERB_state, 4 * MS, 1, 0, 0, IDLE, 0);
	say(s, GRAPH_VERB_state, 5 * MS, 2, 0, 0, IDLE, 0);
	assert_int_equal(replay_end(r, nothing, &res), 5 * MS);
	assert_int_equal(res.nr_processors, 1);
	assert_int_equal(res.nr_processor_waits, 0);
	graph_replay_free(r);
}

/*
 * A handler looks for a packet while it has the processor. In the run the packet was there before;
 * with a faster handler it is not, and whoever brings it needs the processor, too.
 */
static void test_polling(void **state)
{
	enum { PROCESSOR, PACKETS, ME = 0, BRINGS, POLLS };
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;
	struct graph_edit faster = {GRAPH_EDIT_SCALE_STATE, OTHER, 0.05, 0};

	(void)state;
	declare(s);
	declare_queue(
		s, PROCESSOR, (struct graph_queue_options){.discipline = GRAPH_POOL, .initial = 1});
	declare_queue(s, PACKETS, (struct graph_queue_options){0});
	say(s, GRAPH_VERB_state, 0, ME, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, BRINGS, RUN);
	say_link(s, 0, POLLS, OTHER);
	say(s, GRAPH_VERB_dequeue, 10, BRINGS, PROCESSOR, 1, HOLD, 0);
	say(s, GRAPH_VERB_enqueue, 30, BRINGS, PACKETS, 1, HOLD, 0);
	say(s, GRAPH_VERB_enqueue, 30, BRINGS, PROCESSOR, 1, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, 100, POLLS, PROCESSOR, 1, HOLD, 0);
	say(s, GRAPH_VERB_dequeue, 107, POLLS, PACKETS, 1, HOLD, 0);
	say(s, GRAPH_VERB_enqueue, 110, POLLS, PROCESSOR, 1, IDLE, 0);
	graph_replay_set_end(r, POLLS);
	assert_int_equal(replay_end(r, nothing, &res), 110);
	assert_int_equal(res.nr_waits_new, 0);
	/* It has the processor from 5, looks at 12, lends it; packet and processor come at 32. */
	assert_int_equal(replay_end(r, faster, &res), 35);
	assert_int_equal(res.nr_stuck, 0);
	graph_replay_free(r);
}

/*
 * The same with a token that goes from hand to hand: nobody lends what somebody else has to give
 * back (a window's credits, a ring's buffers).
 */
static void test_credits_are_not_lent(void **state)
{
	enum { CREDITS, PACKETS, ME = 0, SENDS, BRINGS, WANTS };
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;
	struct graph_edit faster = {GRAPH_EDIT_SCALE_STATE, OTHER, 0.1, 0};

	(void)state;
	declare(s);
	declare_queue(
		s, CREDITS, (struct graph_queue_options){.discipline = GRAPH_POOL, .initial = 1});
	declare_queue(s, PACKETS, (struct graph_queue_options){0});
	say(s, GRAPH_VERB_state, 0, ME, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, SENDS, OTHER);
	say_link(s, 0, BRINGS, RUN);
	say_link(s, 0, WANTS, OTHER);
	say(s, GRAPH_VERB_enqueue, 65, BRINGS, PACKETS, 1, RUN, 0);
	say(s, GRAPH_VERB_dequeue, 100, SENDS, CREDITS, 1, HOLD, 0);
	say(s, GRAPH_VERB_wait_empty, 105, WANTS, CREDITS, 1, WAIT, 0);
	say(s, GRAPH_VERB_dequeue, 110, SENDS, PACKETS, 1, IDLE, 0);
	say(s, GRAPH_VERB_enqueue, 120, BRINGS, CREDITS, 1, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, 122, WANTS, CREDITS, 1, IDLE, 0);
	graph_replay_set_end(r, WANTS);
	assert_int_equal(replay_end(r, nothing, &res), 122);
	/* SENDS has the credit from 10 and waits for the packet from 20 to 65; it is not free then.
	 */
	assert_int_equal(replay_end(r, faster, &res), 122);
	assert_int_equal(res.nr_stuck, 0);
	graph_replay_free(r);
}

/* An interrupt takes the processor and gives it back: a longer interrupt delays whom it stopped. */
static void test_interrupted(void **state)
{
	enum { PROCESSOR, ARRIVALS, WORKS = 0, INTERRUPTS };
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;
	struct graph_edit longer = {GRAPH_EDIT_SCALE_STATE, OTHER, 3, 0};
	struct graph_edit gone = {GRAPH_EDIT_SCALE_STATE, OTHER, 0, 0};

	(void)state;
	declare(s);
	declare_queue(
		s, PROCESSOR, (struct graph_queue_options){.discipline = GRAPH_POOL, .initial = 1});
	say(s, GRAPH_VERB_state, 0, WORKS, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, INTERRUPTS, RUN);
	say(s, GRAPH_VERB_dequeue, 0, WORKS, PROCESSOR, 1, RUN, 0);
	say(s, GRAPH_VERB_enqueue, 40, WORKS, PROCESSOR, 1, HOLD, 0); /* interrupted */
	say(s, GRAPH_VERB_dequeue, 40, INTERRUPTS, PROCESSOR, 1, OTHER, 0);
	say(s, GRAPH_VERB_enqueue, 50, INTERRUPTS, PROCESSOR, 1, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, 50, WORKS, PROCESSOR, 1, RUN, 0);
	say(s, GRAPH_VERB_state, 100, WORKS, 0, 0, IDLE, 0);
	graph_replay_set_end(r, WORKS);
	assert_int_equal(replay_end(r, nothing, &res), 100);
	assert_int_equal(replay_end(r, longer, &res), 120);
	assert_int_equal(replay_end(r, gone, &res), 90);
	graph_replay_free(r);
}

/*
 * A read-write lock: the writer waits until the reader is out, and takes what the readers left. A
 * reader that comes later than the writer does not hold it up.
 */
static void test_informing_queue(void **state)
{
	enum { ROOM, LEFT, READER = 1, WRITER };
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;
	struct graph_edit later = {GRAPH_EDIT_SCALE_STATE, OTHER, 10, 0};

	(void)state;
	declare(s);
	declare_queue(
		s, ROOM, (struct graph_queue_options){.discipline = GRAPH_POOL, .initial = 1});
	declare_queue(s, LEFT, (struct graph_queue_options){.informs = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, READER, OTHER);
	say_link(s, 0, WRITER, RUN);
	say(s, GRAPH_VERB_dequeue, 4, READER, ROOM, 1, HOLD, 0);
	say(s, GRAPH_VERB_wait_empty, 10, WRITER, ROOM, 1, WAIT, 0);
	say(s, GRAPH_VERB_enqueue, 15, READER, ROOM, 1, RUN, 0);
	say(s, GRAPH_VERB_enqueue, 15, READER, LEFT, 1, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, 17, WRITER, LEFT, GRAPH_ALL, HOLD, GRAPH_MORE | GRAPH_LAST);
	say(s, GRAPH_VERB_dequeue, 17, WRITER, ROOM, 1, HOLD, 0);
	say(s, GRAPH_VERB_enqueue, 27, WRITER, ROOM, 1, IDLE, 0);
	graph_replay_set_end(r, WRITER);
	assert_int_equal(replay_end(r, nothing, &res), 27);
	assert_int_equal(replay_end(r, later, &res), 20); /* from 10 on; the reader comes at 40 */
	assert_int_equal(res.nr_stuck, 0);
	graph_replay_free(r);
}

/* ---- sleeps, time limits, and what recording took -------------------------------------------- */

/*
 * An actor waits with a time limit, again and again, until something comes: when it comes earlier,
 * the limits hold nobody up. The maker puts it at 750; the waits end at 300, 605 and then with it,
 * 10 late, with 5 of work after each limit. One that waits more than it works ticks: what it does
 * after a limit that is not reached is not done, either. Otherwise that is work of its own (1000
 * after each limit, and the maker puts it at 2750).
 */
static void time_limits(uint64_t put, uint64_t work, bool at_place, double factor, uint64_t end)
{
	enum { ITEMS, MAKER = 1, TAKER, LIMIT = 300, LATE = 10, PLACE = 7 };
	enum graph_verb_kind wait = at_place ? GRAPH_VERB_wait : GRAPH_VERB_wait_empty;
	uint32_t what = at_place ? PLACE : ITEMS;
	struct graph_edit edit = {GRAPH_EDIT_SCALE_STATE, RUN, factor, 0};
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;

	declare(s);
	declare_queue(s, ITEMS, (struct graph_queue_options){0});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, MAKER, RUN);
	say_link(s, 0, TAKER, WAIT);
	say(s, wait, 0, TAKER, what, 1, WAIT, 0);
	say(s, GRAPH_VERB_state, LIMIT, TAKER, 0, 0, HOLD, GRAPH_EXPLAINED);
	say(s, wait, LIMIT + work, TAKER, what, 1, WAIT, 0);
	say(s, GRAPH_VERB_state, 2 * LIMIT + work, TAKER, 0, 0, HOLD, GRAPH_EXPLAINED);
	say(s, wait, 2 * (LIMIT + work), TAKER, what, 1, WAIT, 0);
	say(s, GRAPH_VERB_enqueue, put, MAKER, ITEMS, 1, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, put + LATE, TAKER, ITEMS, 1, IDLE, 0);
	graph_replay_set_end(r, TAKER);
	assert_int_equal(replay_end(r, edit, &res), end);
	assert_int_equal(res.nr_stuck, 0);
	graph_replay_free(r);
}

static void test_time_limits(void **state)
{
	(void)state;
	for (int at_place = 0; at_place < 2; at_place++) {
		time_limits(750, 5, at_place, 1, 750 + 10);
		time_limits(750, 5, at_place, 0.5, 375 + 10);
		time_limits(750, 5, at_place, 0.1, 75 + 10);
		time_limits(750, 5, at_place, 2, 1500 + 10);
		time_limits(2750, 1000, at_place, 1, 2750 + 10);
		time_limits(2750, 1000, at_place, 0.1, 275 + 10 + 2000);
	}
}

/*
 * A child sleeps again and again until its parent, who works up to 750, kills it. Killed earlier,
 * it sleeps less often; later, it waits. What ends so late needs the link to be one that cuts.
 */
static void test_killed_while_sleeping(void **state)
{
	enum { EXITS, PARENT = 1, CHILD, NAP = 100, NR = 7, KILL = 750, LATE = 10 };
	static const struct {
		uint32_t flags;
		double factor;
		uint64_t end;
	} want[] = {{GRAPH_CUTS, 1, KILL + LATE}, {GRAPH_CUTS, 0.2, KILL / 5 + LATE},
		{GRAPH_CUTS, 2, 2 * KILL + LATE}, {0, 0.2, NR * NAP}};

	(void)state;
	for (size_t i = 0; i < BASE_COUNT(want); i++) {
		struct graph_edit edit = {GRAPH_EDIT_SCALE_STATE, RUN, want[i].factor, 0};
		struct graph_replay *r = new_replay();
		const struct graph_sink *s = graph_replay_sink(r);
		struct graph_verb kill = {.time_ns = KILL + LATE,
			.actor = CHILD,
			.state = HOLD,
			.flags = want[i].flags};
		struct graph_replay_result res;

		declare(s);
		declare_queue(s, EXITS, (struct graph_queue_options){0});
		say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
		say_link(s, 0, PARENT, RUN);
		say_link(s, 0, CHILD, IDLE);
		for (uint64_t k = 1; k <= NR; k++)
			say(s, GRAPH_VERB_state, k * NAP, CHILD, 0, 0, IDLE, 0);
		say(s, GRAPH_VERB_wait_empty, KILL, PARENT, EXITS, 1, WAIT, 0);
		assert_int_equal(s->verb(s->ctx, GRAPH_VERB_link, &kill, PARENT, NULL), BASE_OK);
		say(s, GRAPH_VERB_enqueue, KILL + LATE, CHILD, EXITS, 1, HOLD, 0);
		say(s, GRAPH_VERB_dequeue, KILL + LATE, PARENT, EXITS, 1, IDLE, 0);
		graph_replay_set_end(r, PARENT);
		assert_int_equal(replay_end(r, edit, &res), want[i].end);
		assert_int_equal(res.nr_stuck, 0);
		graph_replay_free(r);
	}
}

/* Of 50 ns 200 were told, of the next 20 ns 10: only these 10 are left for the 100 ns after that, and
 * nothing for the last. */
static void test_recording_is_not_owed_for_ever(void **state)
{
	const struct graph_replay_assumed unrecorded = {.unrecorded = true};
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;
	(void)state;
	declare(s);
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, RUN, GRAPH_START);
	assert_int_equal(s->recording(s->ctx, 0, 200, NULL), BASE_OK);
	say(s, GRAPH_VERB_state, 50, 0, 0, 0, OTHER, 0);
	assert_int_equal(s->recording(s->ctx, 0, 10, NULL), BASE_OK);
	say(s, GRAPH_VERB_state, 70, 0, 0, 0, RUN, 0);
	say(s, GRAPH_VERB_state, 170, 0, 0, 0, OTHER, 0);
	say(s, GRAPH_VERB_state, 270, 0, 0, 0, IDLE, 0);
	graph_replay_set_end(r, 0);
	assert_int_equal(graph_replay_run_as(r, NULL, &unrecorded, NULL, &res, NULL), BASE_OK);
	assert_int_equal(res.end_ns, 90 + 100);
	graph_replay_free(r);
}

/*
 * Of 100 ns of RUN 30 were recording, told in two parts; of 50 ns of OTHER, as it was told, 70: 20 of
 * them are in what follows. Of the 40 ns until a link begins another actor 10 were, and of the 60
 * after that none more. Without it each is shorter by so much, however long an edit makes the rest,
 * and none is shorter than nothing.
 */
static void test_recording_is_taken_off(void **state)
{
	enum { OTHER_ENDS = 150, LINKED = 190, END = 250, LATER = 100 };
	static const struct {
		struct graph_replay_assumed assumed;
		double run;
		uint64_t end_ns, linked_end_ns;
	} row[] = {{{0}, 1, END, LINKED + LATER}, {{.recording_more = 1}, 1, END, LINKED + LATER},
		{{.unrecorded = true}, 1, 70 + 70, 70 + 10 + LATER},
		{{.unrecorded = true, .recording_more = 0.5}, 1, 55 + 30, 55 + LATER},
		{{.unrecorded = true, .recording_more = -1}, 1, END, LINKED + LATER},
		{{.unrecorded = true}, 2, 140 + 140, 140 + 20 + 2 * LATER}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct graph_replay *r = new_replay();
		const struct graph_sink *s = graph_replay_sink(r);
		struct graph_edit edit = {GRAPH_EDIT_SCALE_STATE, RUN, row[i].run, 0};
		struct graph_scenario edits = {.edit = &edit, .nr_edits = 1};
		struct graph_replay_result res;
		declare(s);
		assert_int_equal(s->recording(s->ctx, 1, 1000, NULL), BASE_OK); /* nobody yet */
		say(s, GRAPH_VERB_state, 0, 0, 0, 0, RUN, GRAPH_START);
		assert_int_equal(s->recording(s->ctx, 0, 10, NULL), BASE_OK);
		assert_int_equal(s->recording(s->ctx, 0, 20, NULL), BASE_OK);
		say(s, GRAPH_VERB_state, 100, 0, 0, 0, OTHER, 0);
		assert_int_equal(s->recording(s->ctx, 0, 70, NULL), BASE_OK);
		say(s, GRAPH_VERB_state, OTHER_ENDS, 0, 0, 0, RUN, 0);
		assert_int_equal(s->recording(s->ctx, 0, 10, NULL), BASE_OK);
		say_link(s, LINKED, 1, RUN);
		say(s, GRAPH_VERB_state, END, 0, 0, 0, IDLE, 0);
		say(s, GRAPH_VERB_state, LINKED + LATER, 1, 0, 0, IDLE, 0);
		for (uint32_t actor = 0; actor < 2; actor++) {
			graph_replay_set_end(r, actor);
			assert_int_equal(
				graph_replay_run_as(r, &edits, &row[i].assumed, NULL, &res, NULL),
				BASE_OK);
			assert_int_equal(res.end_ns, actor ? row[i].linked_end_ns : row[i].end_ns);
		}
		graph_replay_free(r);
	}
}

/* Samples slow down what executes, and no sleep. */
static void test_samples_are_taken_off(void **state)
{
	static const struct graph_replay_assumed bare = {.unrecorded = true};
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_measured m = {.samples_share = 0.25};
	struct graph_replay_result res;
	(void)state;
	declare(s);
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, RUN, GRAPH_START);
	say(s, GRAPH_VERB_wait, 1000, 0, 0, 0, IDLE, 0);
	say(s, GRAPH_VERB_state, 3000, 0, 0, 0, OTHER, GRAPH_EXPLAINED);
	say(s, GRAPH_VERB_state, 3400, 0, 0, 0, IDLE, 0);
	assert_int_equal(graph_replay_learn(r, &m, NULL), BASE_OK);
	assert_int_equal(graph_replay_run_as(r, NULL, &bare, NULL, &res, NULL), BASE_OK);
	assert_int_equal(res.end_ns, 750 + 2000 + 300);
	assert_int_equal(replay_end(r, nothing, &res), 3400);
	graph_replay_free(r);
}

/* 1000 ns of sleep became 1200, twice: half of the sleep is 700, none of it nothing. What came late
 * is as late as it was when the sleep is longer, and may be later in another run. */
static void test_sleeps_end_late(void **state)
{
	static const struct {
		double factor, late_more;
		uint64_t end_ns;
	} row[] = {{1, 0, 2600}, {0.5, 0, 1600}, {2, 0, 4600}, {0, 0, 200}, {1, 0.5, 2800},
		{0.5, 0.5, 1800}};
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_result res;
	(void)state;
	declare(s);
	assert_int_equal(s->late(s->ctx, 1, 1000, NULL), BASE_OK); /* nobody yet */
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	assert_int_equal(s->late(s->ctx, 0, 200, NULL), BASE_OK);
	say(s, GRAPH_VERB_state, 1200, 0, 0, 0, RUN, 0);
	say(s, GRAPH_VERB_wait, 1400, 0, 0, 0, IDLE, 0);
	assert_int_equal(s->late(s->ctx, 0, 200, NULL), BASE_OK);
	say(s, GRAPH_VERB_state, 2600, 0, 0, 0, RUN, 0);
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct graph_edit edit = {GRAPH_EDIT_SCALE_STATE, IDLE, row[i].factor, 0};
		struct graph_scenario edits = {.edit = &edit, .nr_edits = 1};
		struct graph_replay_assumed assumed = {.late_more = row[i].late_more};
		assert_int_equal(
			graph_replay_run_as(r, &edits, &assumed, NULL, &res, NULL), BASE_OK);
		assert_int_equal(res.end_ns, row[i].end_ns);
	}
	graph_replay_free(r);
}

/* A signal ended it after 1000 ns, so many before its time: it lasts until then, or as long as is
 * asked for. */
static void test_sleeps_end_early(void **state)
{
	static const struct {
		int64_t left_ns;
		double factor;
		uint64_t end_ns;
	} row[] = {{3000, 1, 2200}, {3000, 0.5, 2200}, {3000, 0.25, 2200}, {3000, 0.2, 1800},
		{3000, 2, 2200}, {3000, 0, 200}, {500, 0.5, 1700}, {INT64_MAX, 0.1, 2200},
		{INT64_MAX, 0, 200}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct graph_replay *r = new_replay();
		const struct graph_sink *s = graph_replay_sink(r);
		struct graph_edit edit = {GRAPH_EDIT_SCALE_STATE, IDLE, row[i].factor, 0};
		struct graph_scenario edits = {.edit = &edit, .nr_edits = 1};
		struct graph_replay_result res;
		declare(s);
		say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
		assert_int_equal(s->late(s->ctx, 0, -row[i].left_ns, NULL), BASE_OK);
		say(s, GRAPH_VERB_state, 1000, 0, 0, 0, RUN, 0);
		say(s, GRAPH_VERB_wait, 1200, 0, 0, 0, IDLE, 0);
		assert_int_equal(s->late(s->ctx, 0, -row[i].left_ns, NULL), BASE_OK);
		say(s, GRAPH_VERB_state, 2200, 0, 0, 0, RUN, 0);
		assert_int_equal(graph_replay_run(r, &edits, NULL, &res, NULL), BASE_OK);
		assert_int_equal(res.end_ns, row[i].end_ns);
		graph_replay_free(r);
	}
}

/* Two actors of 1000 ns of RUN each, one of which waits for 500: what edits take from all of them. */
static void test_edits_take_away(void **state)
{
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_replay_change change;
	(void)state;
	declare(s);
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, RUN, GRAPH_START);
	say(s, GRAPH_VERB_state, 0, 1, 0, 0, RUN, GRAPH_START);
	say(s, GRAPH_VERB_wait, 1000, 0, 0, 0, IDLE, 0);
	say(s, GRAPH_VERB_state, 1000, 1, 0, 0, IDLE, 0);
	say(s, GRAPH_VERB_state, 1500, 0, 0, 0, RUN, 0);
	struct graph_edit edit[] = {{GRAPH_EDIT_SCALE_STATE, RUN, 0.25, 0},
		{GRAPH_EDIT_SCALE_STATE, IDLE, 0.5, 0}, {GRAPH_EDIT_SCALE_STATE, RUN, 2, 0},
		{GRAPH_EDIT_SCALE_STATE, 1000, 0, 0}, {GRAPH_EDIT_IGNORE_QUEUE, 0, 0, 0}};
	static const double away_ns[] = {1500, 1750, 1250, 1250, INFINITY};
	for (size_t i = 0; i < BASE_COUNT(edit); i++) {
		struct graph_scenario edits = {.edit = edit, .nr_edits = i + 1};
		assert_int_equal(graph_replay_change(r, &edits, NULL, 0, &change, NULL), BASE_OK);
		assert_true(change.taken_ns == away_ns[i]);
	}
	graph_replay_free(r);
}

/* Actor 0 waits, so what it has of the edits itself is not what it waits for; when both wait, the
 * other's may be. Half as much again is added. */
static void test_edits_take_from_others(void **state)
{
	static const struct {
		unsigned waits; /* actors, by bits */
		double factor, taken_ns, added_ns;
	} row[] = {{0, 0.5, 750, 0}, {1, 0.5, 500, 0}, {2, 0.5, 250, 0}, {3, 0.5, 500, 0},
		{0, 1.5, 0, 750}, {1, 1.5, 0, 500}, {3, 1.5, 0, 500}};
	static const uint32_t wait[] = {IDLE, 1000};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct graph_replay *r = new_replay();
		const struct graph_sink *s = graph_replay_sink(r);
		struct graph_edit edit = {GRAPH_EDIT_SCALE_STATE, RUN, row[i].factor, 0};
		struct graph_scenario edits = {.edit = &edit, .nr_edits = 1};
		struct graph_replay_change change;
		declare(s);
		say(s, GRAPH_VERB_state, 0, 0, 0, 0, RUN, GRAPH_START);
		say(s, GRAPH_VERB_state, 0, 1, 0, 0, RUN, GRAPH_START);
		say(s, GRAPH_VERB_state, 500, 0, 0, 0, row[i].waits & 1 ? IDLE : HOLD, 0);
		say(s, GRAPH_VERB_state, 1000, 1, 0, 0, row[i].waits & 2 ? IDLE : HOLD, 0);
		say(s, GRAPH_VERB_state, 2000, 0, 0, 0, HOLD, 0);
		assert_int_equal(graph_replay_change(r, &edits, wait, 2, &change, NULL), BASE_OK);
		assert_true(change.taken_ns == row[i].taken_ns);
		assert_true(change.added_ns == row[i].added_ns);
		graph_replay_free(r);
	}
}

/* A sleep of 1000 ns that ended 400 late: an edit leaves these, or scales them, too. */
static void test_late_sleeps(void **state)
{
	static const struct {
		bool scales;
		double factor;
		uint64_t end_ns;
	} row[] = {{false, 0.5, 700}, {true, 0.5, 500}, {true, 0.01, 10}, {false, 0, 0},
		{true, 1, 1000}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct graph_replay *r = new_replay();
		const struct graph_sink *s = graph_replay_sink(r);
		struct graph_edit edit = {GRAPH_EDIT_SCALE_STATE, IDLE, row[i].factor, 0};
		struct graph_scenario edits = {.edit = &edit, .nr_edits = 1};
		struct graph_replay_assumed assumed = {.late_scales = row[i].scales};
		struct graph_replay_result res;
		declare(s);
		say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
		assert_int_equal(s->late(s->ctx, 0, 400, NULL), BASE_OK);
		say(s, GRAPH_VERB_state, 1000, 0, 0, 0, RUN, 0);
		assert_int_equal(
			graph_replay_run_as(r, &edits, &assumed, NULL, &res, NULL), BASE_OK);
		assert_int_equal(res.end_ns, row[i].end_ns);
		graph_replay_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edits_take_from_others),
		cmocka_unit_test(test_late_sleeps),
		cmocka_unit_test(test_edits_take_away),
		cmocka_unit_test(test_sleeps_end_early),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_lock_changes_hands),
		cmocka_unit_test(test_processor_came_late),
		cmocka_unit_test(test_processors),
		cmocka_unit_test(test_sleeps_in_a_call),
		cmocka_unit_test(test_deadlock),
		cmocka_unit_test(test_polling),
		cmocka_unit_test(test_credits_are_not_lent),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_informing_queue),
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_lives_in_order),
		cmocka_unit_test(test_keys_are_promised),
		cmocka_unit_test(test_who_looks_comes_first),
		cmocka_unit_test(test_time_limits),
		cmocka_unit_test(test_killed_while_sleeping),
		cmocka_unit_test(test_recording_is_taken_off),
		cmocka_unit_test(test_recording_is_not_owed_for_ever),
		cmocka_unit_test(test_samples_are_taken_off),
		cmocka_unit_test(test_sleeps_end_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

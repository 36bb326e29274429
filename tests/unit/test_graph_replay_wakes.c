/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_replay_wakes.c - what replay learns of a run, where it is known by hand: what waking
 * costs, how late a woken actor comes, whom it preempts. */
#include "graph/replay.h"

#include "replay_fixture.h"

#include <math.h>

enum { PUTS = 40, PERIOD = 1000, LATE_NS = 30 };

static void leave(
	const struct graph_sink *s, uint64_t t, uint32_t actor, uint32_t processor, uint32_t state)
{
	say(s, GRAPH_VERB_dequeue, t, actor, processor, GRAPH_ALL, state, GRAPH_BACK | GRAPH_ASIDE);
	say(s, GRAPH_VERB_enqueue, t, actor, processor, 1, state, GRAPH_ASIDE);
}

/*
 * The maker puts one every period; the taker sleeps before each, except before the odd ones in the
 * second half, for which it comes too late. Waking costs the maker `wake` ns.
 */
static struct graph_replay *waking(uint64_t wake, bool sleeper, uint64_t measured)
{
	enum { ITEMS, PROCESSOR, MAKER = 1, TAKER };
	struct graph_replay_options o = {.size = sizeof o, .nr_processors = 4};
	struct graph_replay *r;
	const struct graph_sink *s;
	uint64_t t = 0;

	s = begin_replay(&o, &r);
	declare_queue(s, ITEMS, (struct graph_queue_options){0});
	declare_queue(s, PROCESSOR, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, MAKER, RUN);
	say_link(s, 0, TAKER, HOLD);
	say(s, GRAPH_VERB_wait_empty, 0, TAKER, ITEMS, 1, WAIT, 0);
	if (sleeper)
		leave(s, 0, TAKER, PROCESSOR, WAIT);
	for (unsigned i = 0; i < PUTS; i++) {
		bool sleeps = i < PUTS / 2 || i % 2 == 0;

		t += PERIOD;
		if (i) /* what the maker does after a put */
			t += i - 1 < PUTS / 2 || (i - 1) % 2 == 0 ? wake : 0;
		say(s, GRAPH_VERB_enqueue, t, MAKER, ITEMS, 1, RUN, 0);
		if (sleeps)
			say(s, GRAPH_VERB_dequeue, t + LATE_NS, TAKER, ITEMS, 1, HOLD, 0);
		else
			say(s, GRAPH_VERB_dequeue, t + 500, TAKER, ITEMS, 1, HOLD, 0);
		if (i + 1 < PUTS && (i + 1 < PUTS / 2 || (i + 1) % 2 == 0)) {
			say(s, GRAPH_VERB_wait_empty, t + 600, TAKER, ITEMS, 1, WAIT, 0);
			if (sleeper)
				leave(s, t + 600, TAKER, PROCESSOR, WAIT);
		}
	}
	leave(s, t + 600, 0, PROCESSOR, IDLE);
	graph_replay_set_end(r, MAKER);
	assert_int_equal(
		graph_replay_learn(r, &(struct graph_replay_measured){.wake_ns = measured}, NULL),
		BASE_OK);
	return r;
}

/* A taker that is always late is never woken: the maker saves what that cost, and only that. */
static void test_waking_costs(void **state)
{
	(void)state;
	for (uint64_t wake = 0; wake <= 800; wake += 400) {
		struct graph_replay *r = waking(wake, true, 5000);
		struct graph_replay_result res;
		struct graph_edit late = {GRAPH_EDIT_SCALE_STATE, HOLD, 100, 0};
		uint64_t end = PUTS * PERIOD + (PUTS / 2 + PUTS / 4) * wake;

		assert_int_equal(graph_replay_wake_ns(r), wake);
		assert_int_equal(replay_end(r, nothing, &res), end);
		assert_int_equal(res.nr_stuck, 0);
		/* the first put finds it asleep all the same */
		assert_int_equal(replay_end(r, late, &res), PUTS * PERIOD + wake);
		graph_replay_free(r);
	}
}

/*
 * An actor that never left its processor while it waited spun: nobody woke it, whatever that costs.
 * And where the run cannot tell, since each put wakes somebody, what was measured beside it counts,
 * which an edit of the maker's work does not shorten.
 */
static void test_measured_wakes(void **state)
{
	enum { ITEMS, PROCESSOR, MAKER = 1, TAKER };
	struct graph_replay_options o = {.size = sizeof o, .nr_processors = 4};
	struct graph_edit late = {GRAPH_EDIT_SCALE_STATE, HOLD, 100, 0};
	struct graph_edit quick = {GRAPH_EDIT_SCALE_STATE, RUN, 0.5, 0};
	struct graph_replay_result res;
	struct graph_replay *r = waking(400, false, 5000);
	const struct graph_sink *s;
	uint64_t t = 0;

	(void)state;
	assert_int_equal(replay_end(r, late, &res), PUTS * PERIOD + (PUTS / 2 + PUTS / 4) * 400);
	graph_replay_free(r);

	s = begin_replay(&o, &r);
	declare_queue(s, ITEMS, (struct graph_queue_options){0});
	declare_queue(s, PROCESSOR, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, MAKER, RUN);
	say_link(s, 0, TAKER, HOLD);
	for (unsigned i = 0; i < PUTS; i++) {
		say(s, GRAPH_VERB_wait_empty, t, TAKER, ITEMS, 1, WAIT, 0);
		leave(s, t, TAKER, PROCESSOR, WAIT);
		t += PERIOD;
		say(s, GRAPH_VERB_enqueue, t, MAKER, ITEMS, 1, RUN, 0);
		say(s, GRAPH_VERB_dequeue, t, TAKER, ITEMS, 1, HOLD, 0);
	}
	graph_replay_set_end(r, MAKER);
	assert_int_equal(
		graph_replay_learn(r, &(struct graph_replay_measured){.wake_ns = 300}, NULL),
		BASE_OK);
	assert_int_equal(graph_replay_wake_ns(r), 300);
	assert_int_equal(replay_end(r, nothing, &res), PUTS * PERIOD);
	/* before the first it woke nobody */
	assert_int_equal(replay_end(r, quick, &res), 500 + (PUTS - 1) * (300 + 350));
	graph_replay_free(r);
}

/*
 * Each round the worker takes a free lock, and takes it again at once, before the sleeper whom its
 * first release woke has come. The first to put pays for the waking, as in the run, so an unedited
 * replay repeats the run whatever waking costs.
 */
static void test_snatched_while_woken(void **state)
{
	enum { LOCK, PROCESSOR, WORKER = 1, SLEEPER, ROUND_NS = 2000 };
	struct graph_replay_options o = {.size = sizeof o, .nr_processors = 4};
	struct graph_replay *r;
	struct graph_replay_result res;
	const struct graph_sink *s;
	uint64_t t = 0;

	(void)state;
	s = begin_replay(&o, &r);
	declare_queue(s, LOCK, (struct graph_queue_options){.initial = 1});
	declare_queue(s, PROCESSOR, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, WORKER, RUN);
	say_link(s, 0, SLEEPER, OTHER);
	for (unsigned i = 0; i < PUTS; i++, t += ROUND_NS) {
		say(s, GRAPH_VERB_dequeue, t + 100, WORKER, LOCK, GRAPH_ALL, HOLD, GRAPH_BACK);
		say(s, GRAPH_VERB_wait_empty, t + 200, SLEEPER, LOCK, 1, WAIT, 0);
		leave(s, t + 210, SLEEPER, PROCESSOR, WAIT);
		say(s, GRAPH_VERB_enqueue, t + 400, WORKER, LOCK, 1, RUN, 0); /* wakes */
		say(s, GRAPH_VERB_dequeue, t + 700, WORKER, LOCK, GRAPH_ALL, HOLD, GRAPH_BACK);
		say(s, GRAPH_VERB_enqueue, t + 900, WORKER, LOCK, 1, OTHER, 0);
		say(s, GRAPH_VERB_dequeue, t + 910, SLEEPER, LOCK, 1, HOLD, 0);
		say(s, GRAPH_VERB_enqueue, t + 1100, SLEEPER, LOCK, 1, OTHER, 0);
	}
	graph_replay_set_end(r, SLEEPER);
	assert_int_equal(
		graph_replay_learn(r, &(struct graph_replay_measured){.wake_ns = 290}, NULL),
		BASE_OK);
	assert_int_equal(graph_replay_wake_ns(r), 290);
	assert_int_equal(replay_end(r, nothing, &res), t - ROUND_NS + 1100);
	assert_int_equal(res.nr_waits_new, 0);
	graph_replay_free(r);
}

/* Other programs have its processor now and then while it runs: half as much running, half of that.
 */
static void test_preempted(void **state)
{
	enum { PROCESSOR, RUNS_NS = 500, HAD_NS = 400 };
	struct graph_replay_options o = {.size = sizeof o, .nr_processors = 4};
	struct graph_edit half = {GRAPH_EDIT_SCALE_STATE, RUN, 0.5, 0};
	struct graph_scenario sc = {.edit = &half, .nr_edits = 1};
	struct graph_replay_assumed others_stay = {.others_stay = true};
	struct graph_replay_result res;
	const struct graph_sink *s;
	struct graph_replay *r;
	uint64_t t = 0;

	(void)state;
	s = begin_replay(&o, &r);
	declare_queue(s, PROCESSOR, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, RUN, GRAPH_START);
	for (unsigned i = 0; i < PUTS; i++) {
		t += RUNS_NS;
		leave(s, t, 0, PROCESSOR, RUN);
		say(s, GRAPH_VERB_wait_empty, t, 0, PROCESSOR, 1, WAIT, 0);
		t += HAD_NS;
		say(s, GRAPH_VERB_state, t, 0, PROCESSOR, 1, RUN, GRAPH_LAST | GRAPH_EXPLAINED);
	}
	t += RUNS_NS;
	say(s, GRAPH_VERB_state, t, 0, 0, 0, IDLE, 0);
	graph_replay_set_end(r, 0);
	assert_int_equal(graph_replay_learn(r, &(struct graph_replay_measured){.wake_ns = 0}, NULL),
		BASE_OK);
	assert_int_equal(replay_end(r, nothing, &res), t);
	assert_int_equal(replay_end(r, half, &res), t / 2);
	/* or they stay for as long as they did */
	assert_int_equal(graph_replay_run_as(r, &sc, &others_stay, NULL, &res, NULL), BASE_OK);
	assert_int_equal(res.end_ns, (t - PUTS * HAD_NS) / 2 + PUTS * HAD_NS);
	assert_int_equal(graph_replay_run_as(r, NULL, &others_stay, NULL, &res, NULL), BASE_OK);
	assert_int_equal(res.end_ns, t);
	graph_replay_free(r);
}

/*
 * One processor; a worker runs 1000, a helper is woken after 100 of them and runs 50. It waits its
 * turn, or preempts; the work is the same.
 */
static void test_preempts(void **state)
{
	enum { CALLS, PROCESSOR, WORKER = 1, HELPER };
	struct graph_replay_options o = {.size = sizeof o, .nr_processors = 1};
	struct graph_replay_assumed waits = {0}, preempts = {.preempts = true};
	struct graph_replay_assumed jitter = {.jitter = 1}, other = {.jitter = 2};
	struct graph_replay_result res;
	const struct graph_sink *s;
	struct graph_replay *r;
	uint64_t once;

	(void)state;
	s = begin_replay(&o, &r);
	declare_queue(s, CALLS, (struct graph_queue_options){0});
	declare_queue(s, PROCESSOR, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, WORKER, RUN);
	say_link(s, 0, HELPER, RUN);
	say(s, GRAPH_VERB_wait_empty, 0, HELPER, CALLS, 1, WAIT, 0);
	leave(s, 0, HELPER, PROCESSOR, WAIT);
	say(s, GRAPH_VERB_enqueue, 100, WORKER, CALLS, 1, RUN, 0);
	say(s, GRAPH_VERB_state, 1000, WORKER, 0, 0, IDLE, 0);
	leave(s, 1000, WORKER, PROCESSOR, IDLE);
	say(s, GRAPH_VERB_peek, 1000, HELPER, PROCESSOR, 1, RUN,
		GRAPH_LAST | GRAPH_MORE | GRAPH_OPTIONAL);
	say(s, GRAPH_VERB_dequeue, 1000, HELPER, CALLS, 1, RUN, 0);
	say(s, GRAPH_VERB_state, 1050, HELPER, 0, 0, IDLE, 0);
	graph_replay_set_end(r, HELPER);
	assert_int_equal(graph_replay_run_as(r, NULL, &waits, NULL, &res, NULL), BASE_OK);
	assert_int_equal(res.end_ns, 1050);
	assert_int_equal(graph_replay_run_as(r, NULL, &preempts, NULL, &res, NULL), BASE_OK);
	assert_int_equal(res.end_ns, 150);
	assert_int_equal(res.nr_stuck, 0);
	graph_replay_set_end(r, WORKER);
	assert_int_equal(graph_replay_run_as(r, NULL, &preempts, NULL, &res, NULL), BASE_OK);
	assert_int_equal(res.end_ns, 1050);
	/* At most so much more or less; the same dice, the same answer. */
	assert_int_equal(graph_replay_run_as(r, NULL, &jitter, NULL, &res, NULL), BASE_OK);
	once = res.end_ns;
	assert_in_range(once, 900, 1100);
	assert_int_equal(graph_replay_run_as(r, NULL, &jitter, NULL, &res, NULL), BASE_OK);
	assert_int_equal(res.end_ns, once);
	assert_int_equal(graph_replay_run_as(r, NULL, &other, NULL, &res, NULL), BASE_OK);
	assert_int_not_equal(res.end_ns, once);
	graph_replay_free(r);
}

/*
 * A caller sleeps for as long as the server works: 1 us, then late by 100 ns, or 16 us, then late
 * by 500. Where the work is halved, the latency lies between; where nothing changes, nothing does.
 */
static void test_latency_by_sleep(void **state)
{
	enum { CALLS, ANSWERS, PROCESSOR, CALLER = 1, SERVER, ROUNDS = 40 };
	struct graph_replay_options o = {.size = sizeof o, .nr_processors = 4};
	struct graph_edit half = {GRAPH_EDIT_SCALE_STATE, OTHER, 0.5, 0};
	struct graph_edit tiny = {GRAPH_EDIT_SCALE_STATE, OTHER, 0.01, 0};
	struct graph_replay_result res;
	const struct graph_sink *s;
	struct graph_replay *r;
	uint64_t t = 0, end;

	(void)state;
	s = begin_replay(&o, &r);
	assert_int_equal(
		s->queue(s->ctx, CALLS, &(struct graph_queue_options){.latency_state = IDLE}, NULL),
		BASE_OK);
	declare_queue(s, ANSWERS, (struct graph_queue_options){0});
	declare_queue(s, PROCESSOR, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, CALLER, RUN);
	say_link(s, 0, SERVER, RUN);
	say(s, GRAPH_VERB_wait_empty, 0, SERVER, CALLS, 1, WAIT, 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t work = i % 2 ? 16000 : 1000;

		say(s, GRAPH_VERB_enqueue, t, CALLER, CALLS, 1, RUN, 0);
		say(s, GRAPH_VERB_dequeue, t, SERVER, CALLS, 1, OTHER, 0);
		say(s, GRAPH_VERB_wait_empty, t, CALLER, ANSWERS, 1, WAIT, 0);
		say(s, GRAPH_VERB_enqueue, t + work, SERVER, ANSWERS, 1, RUN, 0);
		say(s, GRAPH_VERB_wait_empty, t + work, SERVER, CALLS, 1, WAIT, 0);
		t += work + (i % 2 ? 500 : 100);
		say(s, GRAPH_VERB_dequeue, t, CALLER, ANSWERS, 1, RUN, 0);
	}
	say(s, GRAPH_VERB_dequeue, t, 0, PROCESSOR, GRAPH_ALL, IDLE, GRAPH_BACK | GRAPH_ASIDE);
	say(s, GRAPH_VERB_enqueue, t, 0, PROCESSOR, 1, IDLE, GRAPH_ASIDE);
	say(s, GRAPH_VERB_state, t, CALLER, 0, 0, IDLE, 0);
	graph_replay_set_end(r, CALLER);
	end = replay_end(r, half, &res);
	assert_int_equal(end, ROUNDS / 2 * (8000 + 500 + 500 + 100)); /* nothing learned */
	assert_int_equal(graph_replay_learn(r, &(struct graph_replay_measured){.wake_ns = 0}, NULL),
		BASE_OK);
	assert_int_equal(replay_end(r, nothing, &res), t);
	/* 4 octaves make 400 ns, so one less is 100 less; below what was seen at most half */
	assert_int_equal(replay_end(r, half, &res), ROUNDS / 2 * (8000 + 500 + 400 + 50));
	assert_int_equal(replay_end(r, tiny, &res), ROUNDS / 2 * (160 + 10 + 50 + 50));
	graph_replay_free(r);
}

/*
 * Two processors; the maker puts one every period and wakes the taker. A third actor runs for a
 * moment shortly before; where it still has the other processor at the put, waking costs less. What
 * recording added to each hand-off is taken off where that is asked for.
 */
static void test_wakes_on_busy_processors(void **state)
{
	enum { ITEMS, TICKS, PROCESSOR, OTHERS, MAKER = 1, TAKER, THIRD };
	enum { IDLE_NS = 300, BUSY_NS = 100, AHEAD = 5 };
	struct graph_replay_options o = {.size = sizeof o, .nr_processors = 2};
	struct graph_replay_measured measured = {
		.wake_ns = IDLE_NS, .wake_busy_ns = BUSY_NS, .record_ns = 20};
	struct graph_replay_assumed bare = {.unrecorded = true}, preempts = {.preempts = true};
	struct graph_edit runs = {GRAPH_EDIT_SCALE_STATE, OTHER, 2 * AHEAD, 0};
	struct graph_scenario sc = {.edit = &runs, .nr_edits = 1};
	struct graph_replay_result res;
	const struct graph_sink *s;
	struct graph_replay *r;
	uint64_t t = 0;

	(void)state;
	s = begin_replay(&o, &r);
	declare_queue(s, ITEMS, (struct graph_queue_options){0});
	declare_queue(s, TICKS, (struct graph_queue_options){0});
	declare_queue(s, PROCESSOR, (struct graph_queue_options){.processor = true});
	declare_queue(s, OTHERS, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, MAKER, RUN);
	say_link(s, 0, TAKER, WAIT);
	say_link(s, 0, THIRD, WAIT);
	say(s, GRAPH_VERB_wait_empty, 0, THIRD, TICKS, 1, WAIT, 0); /* it polls */
	for (unsigned i = 0; i < PUTS; i++) {
		say(s, GRAPH_VERB_wait_empty, t + 40, TAKER, ITEMS, 1, WAIT, 0);
		leave(s, t + 40, TAKER, PROCESSOR, WAIT);
		t += PERIOD;
		say(s, GRAPH_VERB_enqueue, t - AHEAD, MAKER, TICKS, 1, HOLD, 0);
		say(s, GRAPH_VERB_dequeue, t - AHEAD, THIRD, TICKS, 1, OTHER, 0);
		say(s, GRAPH_VERB_wait_empty, t - AHEAD + 1, THIRD, TICKS, 1, WAIT, 0);
		say(s, GRAPH_VERB_enqueue, t, MAKER, ITEMS, 1, RUN, 0);
		say(s, GRAPH_VERB_dequeue, t + LATE_NS, TAKER, ITEMS, 1, HOLD, 0);
	}
	leave(s, t + 99, MAKER, OTHERS, RUN);
	say(s, GRAPH_VERB_state, t + 100, TAKER, 0, 0, IDLE, 0);
	graph_replay_set_end(r, MAKER);
	assert_int_equal(graph_replay_learn(r, &measured, NULL), BASE_OK);
	assert_int_equal(graph_replay_wake_ns(r), IDLE_NS);
	assert_int_equal(replay_end(r, nothing, &res), t);
	/* before the first put it woke nobody */
	assert_int_equal(replay_end(r, runs, &res), t - (PUTS - 1) * (IDLE_NS - BUSY_NS));
	assert_int_equal(graph_replay_run_as(r, &sc, &preempts, NULL, &res, NULL), BASE_OK);
	assert_int_equal(res.end_ns, t);
	graph_replay_set_end(r, TAKER);
	assert_int_equal(replay_end(r, nothing, &res), t + 100);
	assert_int_equal(graph_replay_run_as(r, NULL, &bare, NULL, &res, NULL), BASE_OK);
	assert_int_equal(res.end_ns, t + 100 - measured.record_ns);
	graph_replay_free(r);
}

/* A wait of a length that hardly ever was in the run teaches nothing: what made it long made it
 * late. Where a queue was waited for too seldom, all sleepers say how late one is. */
static void test_rare_lengths(void **state)
{
	enum { CALLS, SELDOM, PROCESSOR, CALLER = 1, SERVER, ROUNDS = 1000, RARE_ROUNDS = 8 };
	struct graph_replay_options o = {.size = sizeof o, .nr_processors = 4};
	struct graph_edit longer = {GRAPH_EDIT_SCALE_STATE, OTHER, 16, 0};
	uint64_t rare_ns = RARE_ROUNDS * (16000 + 9000), usual_ns = ROUNDS - RARE_ROUNDS;
	struct graph_edit late = {GRAPH_EDIT_SCALE_STATE, HOLD, 50, 0};
	struct graph_replay_result res;
	const struct graph_sink *s;
	struct graph_replay *r;
	uint64_t t = 0;

	(void)state;
	s = begin_replay(&o, &r);
	declare_queue(s, CALLS, (struct graph_queue_options){0});
	assert_int_equal(s->queue(s->ctx, SELDOM,
				 &(struct graph_queue_options){.latency_state = IDLE}, NULL),
		BASE_OK);
	declare_queue(s, PROCESSOR, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, CALLER, RUN);
	say_link(s, 0, SERVER, IDLE);
	for (unsigned i = 0; i < ROUNDS; i++) {
		bool rare = i < RARE_ROUNDS;

		say(s, GRAPH_VERB_wait_empty, t, CALLER, CALLS, 1, WAIT, 0);
		leave(s, t, CALLER, PROCESSOR, WAIT);
		t += rare ? 16000 : 1000;
		say(s, GRAPH_VERB_enqueue, t, SERVER, CALLS, 1, IDLE, 0);
		t += rare ? 9000 : 100;
		say(s, GRAPH_VERB_dequeue, t, CALLER, CALLS, 1, RUN, 0);
		say(s, GRAPH_VERB_state, t, SERVER, 0, 0, i + 1 < RARE_ROUNDS ? IDLE : OTHER, 0);
	}
	/* then it is handed something that is there already, unless it is put later */
	say(s, GRAPH_VERB_state, t, SERVER, 0, 0, HOLD, 0);
	say(s, GRAPH_VERB_enqueue, t + 100, SERVER, SELDOM, 1, IDLE, 0);
	say(s, GRAPH_VERB_dequeue, t + 1000, CALLER, SELDOM, 1, RUN, 0);
	say(s, GRAPH_VERB_state, t + 1000, CALLER, 0, 0, IDLE, 0);
	graph_replay_set_end(r, CALLER);
	assert_int_equal(graph_replay_learn(r, &(struct graph_replay_measured){0}, NULL), BASE_OK);
	assert_int_equal(replay_end(r, nothing, &res), t + 1000);
	assert_int_equal(replay_end(r, late, &res), t + 5000 + 100);
	/* not 9000 late, as the few were whose wait was as long */
	assert_int_equal(replay_end(r, longer, &res), rare_ns + usual_ns * (16000 + 100) + 1000);
	graph_replay_free(r);
}

/*
 * Two processors. One is a third actor's all the time; on the other the maker works, and the helper
 * that it wakes each time takes it away at once. What a run does always its replay does again, and
 * after a change, too; whoever has to wait for a processor that is free first does not hinder the
 * maker.
 */
static void test_preempts_as_in_the_run(void **state)
{
	enum { ITEMS, FIRST, SECOND, MAKER = 1, HELPER, THIRD, WORK = 1000, HELP = 50 };
	struct graph_replay_options o = {.size = sizeof o, .nr_processors = 2};
	struct graph_replay_assumed any = {.any_processor = true};
	struct graph_edit less = {GRAPH_EDIT_SCALE_STATE, RUN, 0.5, 0};
	struct graph_edit more = {GRAPH_EDIT_SCALE_STATE, HOLD, 2, 0};
	struct graph_replay_result res;
	const struct graph_sink *s;
	struct graph_replay *r;
	uint64_t t = WORK;

	(void)state;
	s = begin_replay(&o, &r);
	declare_queue(s, ITEMS, (struct graph_queue_options){0});
	declare_queue(s, FIRST, (struct graph_queue_options){.processor = true});
	declare_queue(s, SECOND, (struct graph_queue_options){.processor = true});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, MAKER, RUN);
	say_link(s, 0, HELPER, HOLD);
	say_link(s, 0, THIRD, OTHER);
	say(s, GRAPH_VERB_wait_empty, 0, HELPER, ITEMS, 1, WAIT, 0);
	leave(s, 0, HELPER, FIRST, WAIT);
	for (unsigned i = 0; i < PUTS; i++) {
		say(s, GRAPH_VERB_enqueue, t, MAKER, ITEMS, 1, RUN, 0);
		leave(s, t + 1, MAKER, FIRST, RUN);
		say(s, GRAPH_VERB_wait_empty, t + 1, MAKER, FIRST, 1, WAIT, 0);
		say(s, GRAPH_VERB_peek, t + 1, HELPER, FIRST, 1, HOLD,
			GRAPH_LAST | GRAPH_MORE | GRAPH_OPTIONAL);
		say(s, GRAPH_VERB_dequeue, t + 1, HELPER, ITEMS, 1, HOLD, 0);
		t += HELP;
		say(s, GRAPH_VERB_wait_empty, t + 1, HELPER, ITEMS, 1, WAIT, 0);
		leave(s, t + 1, HELPER, FIRST, WAIT);
		say(s, GRAPH_VERB_dequeue, t + 1, MAKER, FIRST, 1, RUN,
			GRAPH_LAST | GRAPH_EXPLAINED);
		t += WORK;
	}
	say(s, GRAPH_VERB_state, t, MAKER, 0, 0, IDLE, 0);
	leave(s, 3 * t, THIRD, SECOND, OTHER);
	say(s, GRAPH_VERB_state, 3 * t, THIRD, 0, 0, IDLE, 0);
	graph_replay_set_end(r, MAKER);
	assert_int_equal(graph_replay_learn(r, &(struct graph_replay_measured){0}, NULL), BASE_OK);
	assert_int_equal(replay_end(r, nothing, &res), t);
	assert_int_equal(replay_end(r, less, &res), WORK / 2 + PUTS * (WORK / 2 + HELP));
	assert_int_equal(replay_end(r, more, &res), WORK + PUTS * (WORK + 2 * HELP));
	assert_int_equal(graph_replay_run_as(r, NULL, &any, NULL, &res, NULL), BASE_OK);
	assert_int_equal(res.end_ns, WORK + PUTS * WORK);
	for (uint64_t dice = 1; dice <= 10; dice++) { /* always, whatever falls */
		struct graph_replay_assumed chance = {.jitter = dice};

		assert_int_equal(graph_replay_run_as(r, NULL, &chance, NULL, &res, NULL), BASE_OK);
		assert_in_range(res.end_ns, t - PUTS * HELP / 2, t + PUTS * HELP / 2);
	}
	graph_replay_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waking_costs),
		cmocka_unit_test(test_measured_wakes),
		cmocka_unit_test(test_snatched_while_woken),
		cmocka_unit_test(test_preempted),
		cmocka_unit_test(test_preempts),
		cmocka_unit_test(test_latency_by_sleep),
		cmocka_unit_test(test_wakes_on_busy_processors),
		cmocka_unit_test(test_rare_lengths),
		cmocka_unit_test(test_preempts_as_in_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_clock.c - periodic programs: a deadline does not move when work gets shorter. Loops
 * are played here with one work and with another; from the trace of the first both methods must
 * know how long the second takes.
 */
#include "model/model.h"
#include "graph/replay.h"
#include "model_fixture.h"

#include <math.h>

enum {
	PERIODS = 200, /* the first one to three only say what the period is */
	MS = 1000000,
	LATE_NS = 60000,      /* from a deadline to the sleeper's first step */
	STEP_NS = 100,        /* between two calls */
	EPOCH_NS = 123456789, /* of the program's clock at time 0 */
};
enum how { DEADLINE, REST, FROM_NOW, FROM_NOW_BUSY, READ_TIMER, POLL_TIMER, LOOPS };

struct loop {
	struct bench *b; /* NULL: nothing is written down */
	enum how how;
	uint64_t work_ns, period_ns;
	double factor; /* of the work */
	uint32_t main_fn, loop_fn, timer;
	uint64_t t, next, taken;
};

#define TELL(l, what, ...)                                                                         \
	do {                                                                                       \
		if ((l)->b)                                                                        \
			PUT((l)->b, (l)->t, 1, what, __VA_ARGS__);                                 \
	} while (0)

static void sleep_until(struct loop *l, uint64_t deadline_ns)
{
	l->t = deadline_ns > l->t ? deadline_ns + LATE_NS : l->t + STEP_NS;
}

/* next += period; clock_nanosleep(TIMER_ABSTIME, next) */
static void deadline(struct loop *l)
{
	l->next += l->period_ns;
	TELL(l, sleep_until, .remaining_ns = (int64_t)(l->next - l->t),
		.deadline_ns = EPOCH_NS + l->next, .site = l->loop_fn);
	sleep_until(l, l->next);
	if (l->b)
		put(l->b, (struct trace_record){
				  .time_ns = l->t, .stream = 1, .kind = TRACE_sleep_end});
}

/* std::this_thread::sleep_until(next += period): a nanosleep() of what is left, if anything is;
 * a bit is gone until it is recorded. */
static void rest(struct loop *l)
{
	l->next += l->period_ns;
	if (l->next <= l->t)
		return;
	TELL(l, sleep_begin, .duration_ns = l->next - l->t + l->t % 700, .site = l->loop_fn);
	sleep_until(l, l->next);
	if (l->b)
		put(l->b, (struct trace_record){
				  .time_ns = l->t, .stream = 1, .kind = TRACE_sleep_end});
}

/* Python's time.sleep(): a deadline that is counted from now. On a busy machine others run between
 * looking at the clock and the call: then what is left of the sleep differs by more than the work.
 */
static void from_now(struct loop *l)
{
	uint64_t busy = l->how == FROM_NOW_BUSY ? l->t / 1000 * 31 % 50 * 1000 : 0;
	uint64_t next = l->t + l->period_ns / 2, gone = l->t % 700 + busy;
	TELL(l, sleep_until, .remaining_ns = (int64_t)(next - l->t - gone),
		.deadline_ns = EPOCH_NS + next, .site = l->loop_fn);
	sleep_until(l, next);
	if (l->b)
		put(l->b, (struct trace_record){
				  .time_ns = l->t, .stream = 1, .kind = TRACE_sleep_end});
}

static void read_timer(struct loop *l)
{
	TELL(l, io_begin, .object = l->timer, .op = TRACE_IO_read, .n = 8, .site = l->loop_fn);
	sleep_until(l, l->next + (l->taken + 1) * l->period_ns);
	l->taken = (l->t - l->next) / l->period_ns;
	TELL(l, io_end, .object = l->timer, .op = TRACE_IO_read, .result = 8);
}

static void poll_timer(struct loop *l)
{
	TELL(l, poll_begin, .n = 1, .site = l->loop_fn);
	sleep_until(l, l->next + (l->taken + 1) * l->period_ns);
	TELL(l, poll_end, .object = l->timer, .result = 1);
	l->t += STEP_NS;
	read_timer(l);
}

static uint64_t play(struct loop *l)
{
	static void (*const wait[LOOPS])(struct loop *) = {
		[DEADLINE] = deadline,
		[REST] = rest,
		[FROM_NOW] = from_now,
		[FROM_NOW_BUSY] = from_now,
		[READ_TIMER] = read_timer,
		[POLL_TIMER] = poll_timer,
	};
	l->t = 3 * MS;
	l->next = l->t;
	l->taken = 0;
	if (l->how == READ_TIMER || l->how == POLL_TIMER)
		TELL(l, timer_set, .object = l->timer, .first_ns = l->period_ns,
			.period_ns = l->period_ns, .armed = 1, .site = l->main_fn);
	for (unsigned i = 0; i < PERIODS; i++) {
		uint64_t more_ns = i * 7 % 5 * l->work_ns / 50; /* not each time the same */
		l->t += (uint64_t)((double)(l->work_ns + more_ns) * l->factor);
		wait[l->how](l);
	}
	return l->t;
}

/* What is changed: all that runs, or the clock. */
static size_t edit_of(
	const struct bench *b, struct graph_edit *edit, size_t max, bool clock, double factor)
{
	size_t nr = 0;
	for (uint32_t s = 0; s < graph_nr_states(model_graph(b->model)); s++) {
		const struct model_state *st = model_state(b->model, s);
		if (clock ? st->cause == MODEL_CAUSE_sleep_deadline : st->kind == MODEL_STATE_run) {
			assert_true(nr < max);
			edit[nr++] = (struct graph_edit){GRAPH_EDIT_SCALE_STATE, s, factor, 0};
		}
	}
	return nr;
}

/* The trace of `l`, with that changed, against what is true then. */
static void foretell(struct loop l, bool clock, double factor, double within)
{
	struct bench b;
	struct graph_edit edit[16];
	struct graph_scenario changed = {.edit = edit};
	struct graph_replay *replay;
	struct graph_replay_result as_it_was, then;
	start(&b);
	l.main_fn = site(&b, "main");
	l.loop_fn = site(&b, "loop");
	l.timer = object(&b, TRACE_OBJECT_timerfd, "anon_inode:[timerfd]", 0);
	stream(&b, process_of(&b, "prog", 0, 100));
	l.b = &b;
	PUT(&b, 0, 1, process_begin, .token = 0);
	uint64_t was_ns = play(&l);
	assert_int_equal(graph_replay_new(NULL, &replay, NULL), BASE_OK);
	b.options.sink = graph_replay_sink(replay);
	end(&b, was_ns);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	bool by_timer = l.how == READ_TIMER || l.how == POLL_TIMER;
	assert_true(
		(model_nr_late_timer_reads(b.model) > 0) == (by_timer && l.work_ns > l.period_ns));
	graph_replay_set_end(replay, model_end_actor(b.model));
	assert_int_equal(graph_replay_run(replay, NULL, NULL, &as_it_was, NULL), BASE_OK);
	assert_int_equal(as_it_was.end_ns, was_ns);

	changed.nr_edits = edit_of(&b, edit, BASE_COUNT(edit), clock, factor);
	assert_int_equal(graph_replay_run(replay, &changed, NULL, &then, NULL), BASE_OK);
	model_free(b.model);
	assert_int_equal(trace_reader_rewind(b.reader, &b.err), BASE_OK);
	b.options.sink = NULL;
	b.options.scenario = &changed;
	b.options.nr_scenarios = 1;
	assert_int_equal(model_run(b.reader, &b.options, &b.model, &b.err), BASE_OK);

	struct loop other = l;
	other.b = NULL;
	*(clock ? &other.period_ns : &other.work_ns) =
		(uint64_t)(factor * (double)(clock ? l.period_ns : l.work_ns));
	double is = (double)play(&other), path = lane(&b, 1).length_ns,
	       simulated = (double)(then.end_ns - then.start_ns);
	if (fabs(path / is - 1) > within || fabs(simulated / is - 1) > within)
		print_message("loop %d, work %.0f us, %s times %g: truly %.0f us, path %.0f us, "
			      "replay %.0f us\n",
			l.how, (double)l.work_ns / 1000, clock ? "period" : "work", factor,
			is / 1000, path / 1000, simulated / 1000);
	assert_true(fabs(path / is - 1) <= within);
	assert_true(fabs(simulated / is - 1) <= within);
	graph_replay_free(replay);
	finish(&b);
}

static struct loop loop(enum how how, uint64_t work_ns)
{
	return (struct loop){.how = how, .work_ns = work_ns, .period_ns = 10 * MS, .factor = 1};
}

static const enum how on_a_clock[] = {DEADLINE, REST, READ_TIMER, POLL_TIMER};

/* Work that fits into its period buys nothing when it gets shorter. */
static void shorter_work_buys_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(on_a_clock); i++) {
		foretell(loop(on_a_clock[i], 6 * MS), false, 0.5, 0.02);
		foretell(loop(on_a_clock[i], 6 * MS), false, 0, 0.02);
	}
}

/* Longer than the period it makes the loop slower. */
static void longer_work_costs(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(on_a_clock); i++)
		foretell(loop(on_a_clock[i], 6 * MS), false, 2, 0.02);
}

/* Work that was longer than the period helps as far as the period. */
static void the_period_is_the_limit(void **state)
{
	(void)state;
	foretell(loop(DEADLINE, 14 * MS), false, 0.5, 0.01);
	foretell(loop(DEADLINE, 14 * MS), false, 0.9, 0.01);
	/* Two expiries were taken at times; that a quicker reader finds one, and sleeps until the
	 * next one of the timer's and not for what was left then, is not modelled. */
	foretell(loop(READ_TIMER, 14 * MS), false, 0.5, 0.11);
	foretell(loop(POLL_TIMER, 14 * MS), false, 0.5, 0.11);
}

/* To scale the clock is to give the loop another period. */
static void another_period(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(on_a_clock); i++) {
		foretell(loop(on_a_clock[i], 3 * MS), true, 0.5, 0.02);
		foretell(loop(on_a_clock[i], 6 * MS), true, 0.25, 0.02);
		foretell(loop(on_a_clock[i], 6 * MS), true, 1.5, 0.02);
	}
}

/* A deadline that the program counts from now moves with its work, as a duration does. */
static void counted_from_now(void **state)
{
	(void)state;
	foretell(loop(FROM_NOW, 6 * MS), false, 0.5, 0.01);
	foretell(loop(FROM_NOW, 6 * MS), false, 2, 0.01);
	foretell(loop(FROM_NOW_BUSY, MS / 2), false, 0, 0.01);
	foretell(loop(FROM_NOW_BUSY, MS / 2), false, 3, 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shorter_work_buys_nothing),
		cmocka_unit_test(longer_work_costs),
		cmocka_unit_test(the_period_is_the_limit),
		cmocka_unit_test(another_period),
		cmocka_unit_test(counted_from_now),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_kernel_clock.c - periodic programs in recordings of the system: the kernel's own calls
 * and timers tell of the deadlines. Loops are played with one work and with another; from the trace
 * of the first the path must know how long the second takes.
 */
#include "kernel_fixture.h"
#include "model/model.h"

#include <math.h>

enum {
	READ = 0,
	NANOSLEEP = 35,
	CLOCK_NANOSLEEP = 230,
	EPOLL_WAIT = 232,
	ABSOLUTE = 1,
	PERIODS = 200,
	PERIOD_NS = 40000000,
	LATE_NS = 30000, /* from a deadline to the interrupt, and from there to the processor */
	STEP_NS = 200,   /* into a call, and out */
};
enum how { DEADLINE, REST, READ_TIMER, POLL_TIMER, FROM_NOW, LOOPS };

struct loop {
	struct bench *b; /* NULL: nothing is written down */
	enum how how;
	uint64_t work_ns;
	uint32_t program, interrupt, timer;
	uint64_t t, next;
};

#define TELL(l, by, what, ...)                                                                     \
	do {                                                                                       \
		if ((l)->b)                                                                        \
			PUT((l)->b, (l)->t, by, what, __VA_ARGS__);                                \
	} while (0)

/* In a call; if it is not due yet, a timer's interrupt ends the sleep. */
static void sleep_until(struct loop *l, uint64_t due_ns)
{
	l->t += STEP_NS;
	if (due_ns <= l->t)
		return;
	TELL(l, l->program, cpu_out, .processor = 0);
	l->t = due_ns + LATE_NS;
	TELL(l, l->interrupt, context_begin, .interrupted = 0);
	TELL(l, l->interrupt, wake, .woken = l->program);
	TELL(l, l->interrupt, context_end);
	l->t += LATE_NS;
	TELL(l, l->program, cpu_in, .processor = 0);
}

static void call_sleep(struct loop *l, uint64_t due_ns, bool absolute)
{
	uint64_t number = absolute ? CLOCK_NANOSLEEP : NANOSLEEP;
	TELL(l, l->program, call_begin, .number = number, .op = absolute ? ABSOLUTE : 0,
		.n = absolute ? due_ns : due_ns - l->t);
	if (absolute)
		TELL(l, l->program, sleep_until, .remaining_ns = (int64_t)(due_ns - l->t),
			.deadline_ns = due_ns);
	sleep_until(l, due_ns);
	TELL(l, l->program, call_end, .number = number);
}

static void read_timer(struct loop *l)
{
	TELL(l, l->program, call_begin, .number = READ, .object = l->timer, .n = 8);
	sleep_until(l, l->next);
	l->next += ((l->t - l->next) / PERIOD_NS + 1) * PERIOD_NS;
	TELL(l, l->program, call_end, .number = READ, .object = l->timer, .result = 8);
}

static void wait_for_period(struct loop *l)
{
	if (l->how == READ_TIMER || l->how == POLL_TIMER) {
		if (l->how == POLL_TIMER) {
			TELL(l, l->program, call_begin, .number = EPOLL_WAIT);
			sleep_until(l, l->next);
			TELL(l, l->program, call_end, .number = EPOLL_WAIT, .result = 1);
			l->t += STEP_NS;
		}
		read_timer(l);
		return;
	}
	if (l->how == FROM_NOW)
		l->next = l->t + PERIOD_NS / 2;
	if (l->how == DEADLINE || l->next > l->t)
		call_sleep(l, l->next, l->how != REST);
	l->next += PERIOD_NS;
}

static uint64_t play(struct loop *l, double factor)
{
	l->t = 1000000;
	l->next = l->t + PERIOD_NS;
	TELL(l, l->program, cpu_in, .processor = 0);
	if (l->how == READ_TIMER || l->how == POLL_TIMER) {
		TELL(l, l->program, call_begin, .number = 286, .object = l->timer);
		TELL(l, l->program, timer_set, .object = l->timer, .first_ns = PERIOD_NS,
			.period_ns = PERIOD_NS, .armed = 1);
		TELL(l, l->program, call_end, .number = 286);
	}
	for (unsigned i = 0; i < PERIODS; i++) {
		uint64_t more_ns = i * 7 % 5 * l->work_ns / 50; /* not each time the same */
		l->t += (uint64_t)((double)(l->work_ns + more_ns) * factor);
		wait_for_period(l);
	}
	TELL(l, l->program, cpu_out, .processor = 0);
	return l->t;
}

/* The path of the loop with its work changed, against what is true then. */
static void foretell(enum how how, uint64_t work_ns, double factor, double within)
{
	struct bench b;
	struct loop l = {.how = how, .work_ns = work_ns};
	struct graph_edit edit[8];
	struct graph_scenario changed = {.edit = edit};
	start(&b, "");
	b.options.process = "prog";
	l.program = thread(&b, "prog");
	l.interrupt = context(&b, TRACE_CONTEXT_timer, 0, "local timer");
	l.timer = object(&b, TRACE_OBJECT_timerfd, "", 0);
	l.b = &b;
	uint64_t was_ns = play(&l, 1) - 1000000;
	analyse(&b);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	assert_float_equal(lane(&b, 0).length_ns, (double)was_ns, LATE_NS);
	for (uint32_t s = 0; s < graph_nr_states(model_graph(b.model)); s++)
		if (model_state(b.model, s)->kind == MODEL_STATE_run) {
			assert_true(changed.nr_edits < BASE_COUNT(edit));
			edit[changed.nr_edits++] =
				(struct graph_edit){GRAPH_EDIT_SCALE_STATE, s, factor, 0};
		}
	model_free(b.model);
	assert_int_equal(trace_reader_rewind(b.reader, &b.err), BASE_OK);
	b.options.scenario = &changed;
	b.options.nr_scenarios = 1;
	assert_int_equal(model_run(b.reader, &b.options, &b.model, &b.err), BASE_OK);
	l.b = NULL;
	double is = (double)(play(&l, factor) - 1000000), path = lane(&b, 1).length_ns;
	if (fabs(path / is - 1) > within)
		print_message("loop %d, work times %g: truly %.0f us, path %.0f us\n", how, factor,
			is / 1000, path / 1000);
	assert_true(fabs(path / is - 1) <= within);
	finish(&b);
}

static const enum how on_a_clock[] = {DEADLINE, REST, READ_TIMER, POLL_TIMER};

static void shorter_work_buys_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(on_a_clock); i++) {
		foretell(on_a_clock[i], 24000000, 0.5, 0.02);
		foretell(on_a_clock[i], 24000000, 0, 0.02);
	}
}

static void longer_work_costs(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(on_a_clock); i++)
		foretell(on_a_clock[i], 24000000, 2, 0.02);
}

/* Work that was longer than the period helps as far as the period. */
static void the_period_is_the_limit(void **state)
{
	(void)state;
	foretell(DEADLINE, 56000000, 0.5, 0.01);
	foretell(READ_TIMER, 56000000, 0.5, 0.11); /* see test_model_clock.c */
}

/* A deadline that the program counts from now moves with its work. */
static void counted_from_now(void **state)
{
	(void)state;
	foretell(FROM_NOW, 24000000, 0.5, 0.01);
	foretell(FROM_NOW, 24000000, 2, 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shorter_work_buys_nothing),
		cmocka_unit_test(longer_work_costs),
		cmocka_unit_test(the_period_is_the_limit),
		cmocka_unit_test(counted_from_now),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

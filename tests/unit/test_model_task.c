/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_task.c - tasks of a language's runtime. Known answers. */
#include "model/model.h"
#include "model_fixture.h"

static void who_wakes_is_followed(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t worker = site(&b, "worker"), what = string(&b, "to receive from a channel");
	spawn(&b, 1, worker);
	PUT(&b, 0, 1, task_run, .site = 0);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 15, 2, task_ready);
	PUT(&b, 20, 2, cpu_in, .processor = 1);
	PUT(&b, 50, 1, task_wait, .what = what, .how = TRACE_TASK_meeting);
	PUT(&b, 50, 1, cpu_out, .processor = 0);
	PUT(&b, 300, 2, task_wake, .woken = 1, .site = worker);
	PUT(&b, 310, 1, cpu_in, .processor = 0);
	PUT(&b, 320, 2, thread_end);
	end(&b, 400);
	assert_float_equal(on_path_of(&b, "worker", "running"), 280, 1e-9);
	assert_float_equal(on_path(&b, "waking up on an idle processor"), 15, 1e-9);
	assert_float_equal(on_path(&b, "waiting"), 0, 1e-9);
	finish(&b);
}

/* Two tasks, one P: the second waits for the first, and not for nobody. */
static void the_processor_leads_to_who_had_it(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	b.is_otherwise_in_replay = true; /* this trace does not say how many processors there are */
	uint32_t worker = site(&b, "worker"), what = string(&b, "for a WaitGroup");
	spawn(&b, 1, worker);
	PUT(&b, 0, 1, task_run, .site = 0);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 15, 2, task_ready);
	PUT(&b, 200, 1, task_wait, .what = what, .how = TRACE_TASK_wait);
	PUT(&b, 200, 1, cpu_out, .processor = 0);
	PUT(&b, 201, 2, cpu_in, .processor = 0);
	PUT(&b, 300, 2, task_wake, .woken = 1, .site = worker);
	PUT(&b, 301, 2, thread_end);
	PUT(&b, 305, 1, cpu_in, .processor = 0);
	end(&b, 400);
	assert_float_equal(on_path_of(&b, "worker", "running"), 100, 1.5);
	finish(&b);
}

/* What the scheduler ended nobody did: it stays the task's, by its kind. */
static void timers_and_networks_are_nobodys(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t what = string(&b, "for the network"),
		 chan = string(&b, "to receive from a channel");
	uint32_t where = site(&b, "serve");
	spawn(&b, 0, where);
	PUT(&b, 0, 1, task_run, .site = where);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 50, 1, task_wait, .what = what, .how = TRACE_TASK_outside, .site = where);
	PUT(&b, 50, 1, cpu_out, .processor = 0);
	PUT(&b, 150, 1, task_ready);
	PUT(&b, 160, 1, cpu_in, .processor = 0);
	PUT(&b, 200, 1, task_wait, .what = 0, .how = TRACE_TASK_sleep, .site = where);
	PUT(&b, 200, 1, cpu_out, .processor = 0);
	PUT(&b, 260, 1, task_ready);
	PUT(&b, 260, 1, cpu_in, .processor = 0);
	PUT(&b, 300, 1, task_wait, .what = chan, .how = TRACE_TASK_meeting, .site = where);
	PUT(&b, 300, 1, cpu_out, .processor = 0);
	PUT(&b, 330, 1, task_ready);
	PUT(&b, 330, 1, cpu_in, .processor = 0);
	end(&b, 400);
	assert_float_equal(on_path(&b, "waiting for the network in serve"), 100, 1e-9);
	assert_float_equal(on_path(&b, "sleeping in serve"), 60, 1e-9);
	assert_float_equal(
		on_path(&b, "waiting to receive from a channel in serve, ended by no task"), 30,
		1e-9);
	assert_float_equal(on_path(&b, "running serve"), 50 + 40 + 40 + 70, 1e-9);
	finish(&b);
}

/* A worker that needs less is held up by whom it meets: the channel has no room. */
static void a_meeting_needs_both(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t worker = site(&b, "worker"), chan = string(&b, "to send to a channel");
	uint32_t busy = site(&b, "busy");
	spawn(&b, 1, worker);
	PUT(&b, 0, 1, task_run, .site = busy);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 15, 2, task_ready);
	PUT(&b, 15, 2, cpu_in, .processor = 1);
	/* the worker comes to the meeting first; main takes what it brings 100 later */
	PUT(&b, 200, 2, task_wait, .what = chan, .how = TRACE_TASK_meeting, .site = worker);
	PUT(&b, 200, 2, cpu_out, .processor = 1);
	PUT(&b, 300, 1, task_wake, .woken = 2, .site = busy);
	PUT(&b, 300, 2, cpu_in, .processor = 1);
	PUT(&b, 310, 2, thread_end);
	PUT(&b, 400, 1, thread_end);
	PUT(&b, 400, 1, process_end, .status = 0);
	analyse(&b);
	conserved(&b, 400);
	/* main's work gone: it still cannot go on before the worker has come, at 200 */
	takes_then(&b, "running busy", 0, 200, 200);
	finish(&b);
}

/*
 * Main takes what the worker makes, always asleep before: its processor needs 40 to wake. Made in half the time, main is never asleep. (Replay keeps
 * waits for a processor: they may be other programs' doing.)
 */
static void who_has_come_first_does_not_sleep(void **state)
{
	enum { N = 20, MAKES = 300, TAKES = 200, WAKES = 40 };
	(void)state;
	struct bench b;
	start(&b);
	uint32_t makes = site(&b, "make"), takes = site(&b, "take");
	uint32_t what = string(&b, "to receive from a channel");
	spawn(&b, 1, makes);
	PUT(&b, 0, 1, task_run, .site = takes);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 15, 2, task_run, .site = makes);
	PUT(&b, 15, 2, task_ready);
	PUT(&b, 15, 2, cpu_in, .processor = 1);
	PUT(&b, 20, 1, task_wait, .what = what, .how = TRACE_TASK_meeting, .site = takes);
	PUT(&b, 20, 1, cpu_out, .processor = 0);
	for (uint64_t i = 1; i <= N; i++) {
		uint64_t met = 15 + MAKES * i;
		PUT(&b, met, 2, task_wake, .woken = 1, .site = makes);
		if (i == N)
			PUT(&b, met, 2, thread_end);
		PUT(&b, met + WAKES, 1, cpu_in, .processor = 0);
		if (i == N)
			break;
		PUT(&b, met + WAKES + TAKES, 1, task_wait, .what = what, .how = TRACE_TASK_meeting,
			.site = takes);
		PUT(&b, met + WAKES + TAKES, 1, cpu_out, .processor = 0);
	}
	PUT(&b, 15 + MAKES * N + WAKES + TAKES, 1, thread_end);
	PUT(&b, 15 + MAKES * N + WAKES + TAKES, 1, process_end, .status = 0);
	analyse(&b);
	enum { END = 15 + MAKES / 2 + WAKES + N * TAKES };
	takes_then(&b, "running make", 0.5, END, END + (N - 1) * WAKES);
	finish(&b);
}

/*
 * The worker puts into a channel that holds two, and always found it full; main takes. If main takes in no time it has to wait for what the worker
 * makes: the last item but two when it takes the last one, for the channel was full then.
 */
static void who_takes_is_behind_by_what_the_channel_holds(void **state)
{
	enum { N = 20, MAKES = 200, TAKES = 300, ROOM = 2 };
	(void)state;
	struct bench b;
	start(&b);
	uint32_t makes = site(&b, "make"), takes = site(&b, "take");
	uint32_t what = string(&b, "to send to a channel");
	spawn(&b, 1, makes);
	PUT(&b, 0, 1, task_run, .site = takes);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 15, 2, task_run, .site = makes);
	PUT(&b, 15, 2, task_ready);
	PUT(&b, 15, 2, cpu_in, .processor = 1);
	for (uint64_t i = 1; i <= N; i++) {
		uint64_t taken = TAKES * i, full = i == 1 ? 15 + MAKES : taken - TAKES + MAKES;
		PUT(&b, full, 2, task_channel, .side = 1, .room = ROOM);
		PUT(&b, full, 2, task_wait, .what = what, .how = TRACE_TASK_meeting, .site = makes);
		PUT(&b, full, 2, cpu_out, .processor = 1);
		PUT(&b, taken, 1, task_wake, .woken = 2, .site = takes);
		PUT(&b, taken, 2, cpu_in, .processor = 1);
	}
	PUT(&b, TAKES * N + 1, 2, thread_end);
	PUT(&b, TAKES * N + 1, 1, thread_end);
	PUT(&b, TAKES * N + 1, 1, process_end, .status = 0);
	analyse(&b);
	enum { END = 15 + (N - ROOM) * MAKES };
	takes_then(&b, "running take", 0, END, END);
	finish(&b);
}

/* A WaitGroup's other workers, which had been done with it before. */
static void other_ends_are_needed_too(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t quick = site(&b, "quick"), slow = site(&b, "slow");
	uint32_t what = string(&b, "for a WaitGroup");
	spawn(&b, 2, quick);
	PUT(&b, 0, 1, task_run, .site = 0);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 15, 2, task_run, .site = quick);
	PUT(&b, 15, 2, task_ready);
	PUT(&b, 15, 2, cpu_in, .processor = 1);
	PUT(&b, 25, 3, task_run, .site = slow);
	PUT(&b, 25, 3, task_ready);
	PUT(&b, 25, 3, cpu_in, .processor = 2);
	PUT(&b, 30, 1, task_wait, .what = what, .how = TRACE_TASK_wait);
	PUT(&b, 30, 1, cpu_out, .processor = 0);
	PUT(&b, 215, 2, thread_end);
	PUT(&b, 324, 1, task_needs, .ended = 2);
	PUT(&b, 325, 3, task_wake, .woken = 1, .site = slow);
	PUT(&b, 325, 1, cpu_in, .processor = 0);
	PUT(&b, 326, 3, thread_end);
	PUT(&b, 400, 1, thread_end);
	PUT(&b, 400, 1, process_end, .status = 0);
	analyse(&b);
	conserved(&b, 400);
	/* the slow one's work gone: the quick one's end is at 215, and 75 are left */
	takes_then(&b, "running slow", 0, 290, 290);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_wakes_is_followed),
		cmocka_unit_test(the_processor_leads_to_who_had_it),
		cmocka_unit_test(timers_and_networks_are_nobodys),
		cmocka_unit_test(a_meeting_needs_both),
		cmocka_unit_test(who_has_come_first_does_not_sleep),
		cmocka_unit_test(who_takes_is_behind_by_what_the_channel_holds),
		cmocka_unit_test(other_ends_are_needed_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

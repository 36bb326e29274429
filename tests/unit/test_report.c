/* SPDX-License-Identifier: Apache-2.0 */
/* test_report.c - known answers of opportunities and what-if; the edit grammar; rendering. */
#include "report_fixture.h"

#include "report/private.h"
#include "report/report.h"
#include "report/top.h"

static struct report_run run_of(const struct bench *b)
{
	return (struct report_run){.reader = b->reader, .trace_path = "a.lpt"};
}

static struct report *build(struct bench *b)
{
	struct report_run run = run_of(b);
	struct report_options opts = {.nr_opportunities_max = 10, .nr_parts_max = 5};
	struct report *r = NULL;
	enum base_status s = report_build(&run, &opts, &r, &b->err);
	if (s != BASE_OK)
		print_message("%s\n", b->err.cause[0]);
	assert_int_equal(s, BASE_OK);
	return r;
}

static const struct report_opportunity *opportunity(const struct report *r, const char *part)
{
	for (size_t i = 0; i < r->nr_opportunities; i++)
		if (strstr(r->opportunity[i].state, part))
			return &r->opportunity[i];
	fail_msg("no opportunity '%s'", part);
	return NULL;
}

static void opportunity_until_the_other_thread(void **state)
{
	(void)state;
	struct bench b;
	slow_and_fast(&b);
	struct report *r = build(&b);
	const struct report_opportunity *o = opportunity(r, "slow");
	assert_near(r->elapsed_ns, 1001e3, 1e-3);
	assert_near(r->explained_share, 1, 1e-9);
	assert_near(o->path_ns, 985e3, 1e-3);
	assert_near(o->predicted_ns[0], (16 + 985 * 0.9) * 1e3, 1);
	assert_near(o->predicted_ns[1], (16 + 985 * 0.75) * 1e3, 1);
	/* (replay has the main thread's last steps after it, too) */
	assert_near(o->predicted_ns[2], 601e3, 1);
	assert_near(o->predicted_ns[3], 601e3, 1);
	assert_near(o->useful_reduction, 1 - 584.0 / 985, 1e-6);
	assert_true(o->useful_exact);
	assert_non_null(strstr(o->next, "fast"));
	assert_non_null(
		strstr(r->finding, "98 % of the time the critical path is computing in slow()"));
	report_free(r);
	finish(&b);
}

static void turns_in_a_lock(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report *r = build(&b);
	const struct report_row *row = &r->row[0];
	assert_string_equal(row->state, "holding mutex m");
	assert_int_equal(row->kind, MODEL_STATE_hold);
	assert_near(row->path_ns, 800e3, 1e-3);
	assert_int_equal(row->nr_actors, 2);
	assert_string_equal(row->actor, "prog/work \xc3\x97"
					"2");
	assert_near(row->waiting_share, 0, 1e-9);
	assert_int_equal(row->nr_functions, 2);
	assert_string_equal(row->function[0].name, "fill");
	assert_near(row->function[0].share, 0.75, 1e-9);
	assert_true(row->function[0].share_low < 0.75 && row->function[0].share_high > 0.75);
	assert_non_null(strstr(r->finding, "inside mutex m (taken at work"));
	assert_non_null(strstr(r->finding, ", through 2 threads (prog/work)"));
	const struct report_opportunity *o = opportunity(r, "holding mutex m");
	assert_near(o->predicted_ns[2], (11 + 400) * 1e3, 3500); /* (of 7 hand-offs half may go) */
	assert_near(o->useful_reduction, 1, 1e-6);
	double sum = 0;
	for (size_t i = 0; i < r->nr_rows; i++)
		sum += r->row[i].share;
	assert_near(sum, 1, 1e-9);
	report_free(r);
	finish(&b);
}

/* Of 905 us that both are in it one worker has 900: who comes and goes beside it is not said. */
static void one_has_nearly_all(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), work = site(&b, "work"), m = mutex(&b, "m");
	begin_threads(&b, p, 3);
	for (unsigned i = 0; i < 2; i++) {
		PUT(&b, 0, 1, thread_create, .token = 1 + i, .site = work);
		PUT(&b, 0, 2 + i, thread_begin, .token = 1 + i, .handle = 2000 + i, .site = work);
	}
	PUT(&b, 0, 2, lock_acquire, .object = m, .site = work);
	PUT(&b, 0, 3, lock_wait, .object = m, .site = work);
	PUT(&b, 0, 1, join_wait, .handle = 2001);
	PUT(&b, 5, 2, lock_release, .object = m, .site = work);
	PUT(&b, 5, 2, thread_end);
	PUT(&b, 5, 3, lock_acquire, .object = m, .site = work);
	PUT(&b, 905, 3, lock_release, .object = m, .site = work);
	PUT(&b, 905, 3, thread_end);
	PUT(&b, 906, 1, join_done, .handle = 2001);
	PUT(&b, 906, 1, join_wait, .handle = 2000);
	PUT(&b, 906, 1, join_done, .handle = 2000);
	end(&b, 906);
	struct report *r = build(&b);
	assert_string_equal(r->row[0].state, "holding mutex m");
	assert_int_equal(r->row[0].nr_topic_actors, 2);
	assert_string_equal(r->row[0].topic_actor, "prog/work #2");
	assert_non_null(strstr(r->finding, "prog/work #2"));
	report_free(r);
	finish(&b);
}

/* One thread runs from 10 to 990 under a lock of its own; another has one for as long, for which a
 * third waits from 500 on. The first is no critical section to be shortened. */
static void a_lock_that_nobody_waits_for(void **state)
{
	(void)state;
	for (unsigned shared = 0; shared < 2; shared++) {
		struct bench b;
		start(&b);
		uint32_t p = process(&b, "prog"), work = site(&b, "work"), lock = mutex(&b, "m");
		begin_threads(&b, p, 2);
		PUT(&b, 5, 1, thread_create, .token = 1, .site = work);
		PUT(&b, 5, 2, thread_begin, .token = 1, .handle = 2000, .site = work);
		PUT(&b, 10, 1, lock_acquire, .object = lock, .site = work);
		PUT(&b, 400, 1, sample, .site = site(&b, "fill"));
		if (shared)
			PUT(&b, 500, 2, lock_wait, .object = lock, .site = work);
		PUT(&b, 990, 1, lock_release, .object = lock, .site = work);
		if (shared)
			PUT(&b, 991, 2, lock_acquire, .object = lock, .site = work);
		PUT(&b, 992, 2, thread_end);
		end(&b, 1000);
		struct report *r = build(&b);
		assert_string_equal(r->row[0].state, "holding mutex m");
		assert_non_null(strstr(
			r->finding, shared ? "inside mutex m (taken at work"
					   : "computing in fill() under a lock, for which "));
		assert_int_equal(strstr(r->finding, "for which nobody waited") != NULL, !shared);
		report_free(r);
		finish(&b);
	}
}

/* It sleeps because it asked for that; a wait whose time limit ended it is no such sleep. */
static void sleeping_is_said_to_be_asked_for(void **state)
{
	(void)state;
	for (unsigned limited = 0; limited < 2; limited++) {
		struct bench b;
		start(&b);
		uint32_t p = process(&b, "prog"), here = site(&b, "here");
		stream(&b, p);
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 0, 1, thread_begin, .token = 0, .handle = 1000);
		if (limited)
			PUT(&b, 10, 1, poll_begin, .n = 1, .site = here);
		else
			PUT(&b, 10, 1, sleep_begin, .duration_ns = 900, .site = here);
		PUT(&b, 11, 1, cpu_out, .processor = 0);
		PUT(&b, 910, 1, cpu_in, .processor = 0);
		if (limited)
			PUT(&b, 911, 1, poll_end, .result = 0);
		else
			PUT(&b, 911, 1, sleep_end);
		end(&b, 1000);
		struct report *r = build(&b);
		assert_int_equal(
			r->row[0].cause, limited ? MODEL_CAUSE_sleep_limit : MODEL_CAUSE_sleep);
		assert_non_null(strstr(
			r->finding, limited ? "a sleep until a time limit ends the wait, at here"
					    : "a sleep that the program asks for, at here"));
		report_free(r);
		finish(&b);
	}
}

/* Many programs had the processor, each for a little: what they did together is the finding. */
static void processors_that_many_had(void **state)
{
	(void)state;
	const struct live_row row[] = {
		{.process = "p", .name = "running f", .path_ns = 250},
		{.process = "p", .name = "waiting", .had = "cc1", .path_ns = 240},
		{.process = "q", .name = "waiting", .had = "ld", .path_ns = 200},
		{.process = "q", .name = "waiting", .had = "cc1", .path_ns = 110},
		{.process = "q", .name = "waiting", .had = "x", .path_ns = 100},
		{.process = "q", .name = "waiting for a processor", .path_ns = 100},
	};
	struct live_window w = {.nr_paths = 1, .path_ns = 1000, .state = row, .nr_states = 6};
	struct base_str s = {0};
	report_top_finding(&s, &w);
	assert_string_equal(base_str_text(&s),
		"65 % of the critical path is waiting for a processor: cc1 had it for 35 %, ld for "
		"20 %, others for 10 % (observed; all of the path is explained)");
	base_str_reset(&s);
	w.nr_states = 2; /* one holder: its row says all */
	report_top_finding(&s, &w);
	assert_non_null(strstr(base_str_text(&s), "25 % of the critical path is running f, p"));
	base_str_fini(&s);
}

/* ---- what-if --------------------------------------------------------------------------------- */

static struct report_whatif *try_words(
	struct bench *b, size_t nr, char *const *word, enum base_status want)
{
	struct report_run run = run_of(b);
	struct report_scenarios s = {0};
	struct report_whatif *w = NULL;
	assert_int_equal(report_scenarios_words(&s, word, nr, &b->err), BASE_OK);
	assert_int_equal(report_whatif_build(&run, &s, 0, &w, &b->err), want);
	report_scenarios_fini(&s);
	return w;
}
#define TRY(b, want, ...)                                                                          \
	try_words(b, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                       \
		(char *const *)(const char *[]){__VA_ARGS__}, want)

static void scenarios_side_by_side(void **state)
{
	(void)state;
	struct bench b;
	slow_and_fast(&b);
	struct report_whatif *w = TRY(&b, BASE_OK, "scale", "slow=-20%", "--", "remove", "slow",
		"--", "scale", "*slow=+10%", "--", "remove", "slow", "remove", "running fast");
	assert_int_equal(w->nr_predictions, 4);
	assert_near(w->prediction[0].length_ns, (16 + 985 * 0.8) * 1e3, 1);
	assert_near(w->prediction[1].length_ns, 600e3, 1);
	assert_near(w->prediction[2].length_ns, (16 + 985 * 1.1) * 1e3, 1);
	assert_near(w->prediction[3].length_ns, 30e3, 1); /* main, up to its first join */
	assert_non_null(strstr(w->prediction[1].next, "fast"));
	assert_false(w->prediction[0].estimated);
	report_whatif_free(w);
	finish(&b);
}

static void function_is_an_estimate(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_whatif *w = TRY(&b, BASE_OK, "remove", "fill", "--", "remove", "mutex m");
	const struct report_prediction *p = &w->prediction[0];
	assert_true(p->estimated);
	assert_near(p->length_ns, (11 + 800 * 0.25) * 1e3, 1);
	assert_true(p->low_ns < p->length_ns && p->length_ns < p->high_ns);
	assert_true(p->speedup_low < p->speedup && p->speedup < p->speedup_high);
	assert_false(w->prediction[1].estimated);
	assert_near(w->prediction[1].length_ns, 4e3, 1); /* its hand-offs, too */
	report_whatif_free(w);
	finish(&b);
}

/*
 * Thread a runs 200 us in slow(), with another program on its processor for 540 in between, and
 * takes two locks; thread b takes them at 400, the other way round, and has given them back at 500.
 * With half of slow(), a comes at 385 when the other program stays for half as long, too: deadlock;
 * and at 655 when it stays for as long as it did.
 */
static void others_stay_where_replay_has_no_end(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), slow = site(&b, "slow"), fast = site(&b, "fast");
	uint32_t from = site(&b, "main"), l1 = mutex(&b, "l1"), l2 = mutex(&b, "l2");
	begin_threads(&b, p, 3);
	PUT(&b, 10, 1, thread_create, .token = 1, .site = from);
	PUT(&b, 15, 2, thread_begin, .token = 1, .handle = 2000, .site = slow);
	PUT(&b, 20, 1, thread_create, .token = 2, .site = from);
	PUT(&b, 25, 3, thread_begin, .token = 2, .handle = 2001, .site = fast);
	PUT(&b, 30, 1, join_wait, .handle = 2000);
	PUT(&b, 115, 2, cpu_out, .processor = 0, .preempted = 1);
	PUT(&b, 400, 3, lock_acquire, .object = l2, .site = fast);
	PUT(&b, 450, 3, lock_acquire, .object = l1, .site = fast);
	PUT(&b, 480, 3, lock_release, .object = l1, .site = fast);
	PUT(&b, 500, 3, lock_release, .object = l2, .site = fast);
	PUT(&b, 510, 3, thread_end);
	PUT(&b, 655, 2, cpu_in, .processor = 0);
	PUT(&b, 755, 2, lock_acquire, .object = l1, .site = from);
	PUT(&b, 825, 2, lock_acquire, .object = l2, .site = from);
	PUT(&b, 830, 2, lock_release, .object = l2, .site = from);
	PUT(&b, 840, 2, lock_release, .object = l1, .site = from);
	PUT(&b, 850, 2, thread_end);
	PUT(&b, 851, 1, join_done, .handle = 2000);
	PUT(&b, 851, 1, join_wait, .handle = 2001);
	PUT(&b, 851, 1, join_done, .handle = 2001);
	end(&b, 851);
	struct report_whatif *w =
		TRY(&b, BASE_OK, "scale", "running slow=-50%", "--", "scale", "running slow=-1%");
	const struct report_replay_prediction *r = &w->prediction[0].replay;
	assert_near(w->base.own_error, 0, 1e-9);
	assert_int_equal(r->nr_stuck, 0);
	assert_true(r->others_stay);
	assert_near(r->length_ns, 751e3, 1);
	assert_false(w->prediction[1].replay.others_stay);
	struct base_str text = {0};
	report_whatif_text(&text, w, &(struct report_style){.columns = 100});
	const char *said = strstr(base_str_text(&text), "for as long as in the run");
	assert_non_null(said);
	assert_null(strstr(said + 1, "for as long as in the run")); /* of the first alone */
	base_str_fini(&text);
	json_t *j = report_whatif_json(w);
	const json_t *list = json_object_get(json_object_get(j, "result"), "scenarios");
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(
			json_is_true(json_object_get(
				json_object_get(json_array_get(list, i), "replay"), "others_stay")),
			i == 0);
	json_decref(j);
	report_whatif_free(w);
	finish(&b);
}

/*
 * Main and its thread take turns with two semaphores, ten times: main computes 100 us in slow(),
 * the sleeper goes on 50 us after it was called, and so does main. How late sleepers come differs
 * from run to run by 15 %: a run with half of slow() may have so much more or less of that than the
 * recorded one, which is what it is.
 */
static void the_changed_run_is_another_run(void **state)
{
	enum { ROUNDS = 10, SLOW = 100, LATE = 50, ROUND = SLOW + 2 * LATE };
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), slow = site(&b, "slow"), from = site(&b, "main");
	enum { THERE = 1, BACK = 2 };
	stream(&b, p);
	stream(&b, p);
	for (uint32_t i = THERE; i <= BACK; i++)
		PUT(&b, 0, 0, object, .object = i, .process = p, .type = TRACE_OBJECT_semaphore,
			.address = i * 64);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 0, 1, thread_create, .token = 1, .site = from);
	PUT(&b, 0, 2, thread_begin, .token = 1, .handle = 2000, .site = from);
	PUT(&b, 0, 2, cpu_in, .processor = 1);
	for (uint32_t i = THERE; i <= BACK; i++)
		PUT(&b, 0, 1, token_set, .object = i, .n = 0);
	PUT(&b, 1, 2, token_wait, .object = THERE, .n = 1, .site = from);
	PUT(&b, 2, 2, cpu_out, .processor = 1);
	for (unsigned i = 0, at = SLOW; i < ROUNDS; i++, at += ROUND) {
		PUT(&b, at, 1, token_give, .object = THERE, .n = 1, .site = from);
		PUT(&b, at + 1, 1, token_wait, .object = BACK, .n = 1, .site = from);
		PUT(&b, at + 2, 1, cpu_out, .processor = 0);
		PUT(&b, at + LATE, 2, cpu_in, .processor = 1);
		PUT(&b, at + LATE, 2, token_take, .object = THERE, .n = 1, .site = from);
		PUT(&b, at + LATE, 2, token_give, .object = BACK, .n = 1, .site = from);
		PUT(&b, at + LATE + 1, 2, token_wait, .object = THERE, .n = 1, .site = from);
		PUT(&b, at + LATE + 2, 2, cpu_out, .processor = 1);
		PUT(&b, at + 2 * LATE, 1, cpu_in, .processor = 0);
		PUT(&b, at + 2 * LATE, 1, token_take, .object = BACK, .n = 1, .site = slow);
	}
	end(&b, ROUNDS * ROUND);
	struct report_whatif *w = TRY(&b, BASE_OK, "scale", "running slow=-50%");
	const struct report_replay_prediction *r = &w->prediction[0].replay;
	const double recorded = ROUNDS * ROUND, late = ROUNDS * 2 * LATE;
	const double changed = recorded - (ROUNDS - 1) * SLOW / 2.0;
	assert_near(w->base.own_error, 0, 1e-9);
	assert_near(r->speedup, recorded / changed, 1e-3);
	/* (and work takes up to 10 % more or less at random) */
	assert_near(r->low * exp(REPORT_RUNS_DIFFER), recorded / (changed + 0.15 * late), 0.03);
	assert_near(r->high / exp(REPORT_RUNS_DIFFER), recorded / (changed - 0.15 * late), 0.03);
	report_whatif_free(w);
	finish(&b);
}

/*
 * Twenty times: main writes 20 us, runs 20, sleeps 100, runs 20; each of these begins with a record
 * that takes 4 us of it. So a run that nobody records takes 144 us each time, and 48 without the
 * sleep. In the second row another thread does the writing, beside; in the third an elder recorder
 * did not tell kinds apart; in the last it did not say.
 */
static void what_recording_took_is_taken_off_where_it_was(void **state)
{
	enum { ROUNDS = 20, NR_RECORDS = 4 * ROUNDS, EACH_NS = 4000 };
	static const struct {
		const char *cost;
		bool beside;
		double before_us, after_us;
	} row[] = {{TRACE_COST_CALLS, false, 144, 48}, {TRACE_COST_CALLS, true, 152, 56},
		{TRACE_COST_RECORDS, false, 144, 48}, {TRACE_COST_LOCKS, false, 160, 60}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct bench b;
		start(&b);
		uint32_t p = process(&b, "prog"), from = site(&b, "main");
		uint32_t what = string(&b, row[i].cost), how = string(&b, "by hand");
		uint32_t writer = row[i].beside ? 2 : 1;
		stream(&b, p);
		stream(&b, p);
		PUT(&b, 0, 0, object, .object = 1, .process = p, .type = TRACE_OBJECT_file,
			.address = 64);
		PUT(&b, 0, 0, cost, .cost = 1, .name = what, .n = NR_RECORDS,
			.total_ns = NR_RECORDS * EACH_NS, .target_cpu_ns = 3000000, .method = how);
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 0, 1, thread_begin, .token = 0, .handle = 1000);
		PUT(&b, 0, 1, thread_create, .token = 1, .site = from);
		PUT(&b, 0, 2, thread_begin, .token = 1, .handle = 2000, .site = from);
		for (unsigned k = 0, at = 0; k < ROUNDS; k++, at += 160) {
			PUT(&b, at, writer, io_begin, .object = 1, .op = TRACE_IO_write, .n = 10,
				.site = from);
			PUT(&b, at + 20, writer, io_end, .object = 1, .op = TRACE_IO_write,
				.result = 10);
			PUT(&b, at + 40, 1, sleep_begin, .duration_ns = 100000, .site = from);
			PUT(&b, at + 140, 1, sleep_end);
		}
		end(&b, 160 * ROUNDS);
		struct report_whatif *w = TRY(&b, BASE_OK, "remove", "sleeping");
		const struct report_replay_prediction *r = &w->prediction[0].replay;
		double before = row[i].before_us, after = row[i].after_us;
		assert_near(w->base.own_error, 0, 1e-9);
		assert_near(w->base.bare_ns, ROUNDS * before * 1000, 10000);
		assert_near(r->speedup, before / after, 0.01);
		if (before < 160) { /* it may have been a third less, or half as much again */
			double all = 160 - before, rest = 60 - after;
			assert_true(r->low <= (160 - all * 2 / 3) / (60 - rest * 2 / 3) + 0.01);
			assert_true(r->high >= (160 - all * 3 / 2) / (60 - rest * 3 / 2) - 0.01);
		}
		report_whatif_free(w);
		finish(&b);
	}
}

/* Main works 20 us and sleeps for 80, which end 20 us late: half of the sleep is 40 and 20, none of
 * it nothing. A sleep that a signal broke off was not late, and lasts until then. */
static void what_a_sleep_was_late_stays(void **state)
{
	static const struct {
		uint64_t asked_ns;
		double halved_us;
	} row[] = {{80000, 80}, {100000, 70}, {150000, 95}, {5000000, 120}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct bench b;
		start(&b);
		uint32_t p = process(&b, "prog"), from = site(&b, "main");
		begin_threads(&b, p, 1);
		for (unsigned k = 0; k < 10; k++) {
			PUT(&b, 120 * k + 20, 1, sleep_begin, .duration_ns = row[i].asked_ns,
				.site = from);
			PUT(&b, 120 * k + 120, 1, sleep_end);
		}
		end(&b, 1200);
		struct report_whatif *w =
			TRY(&b, BASE_OK, "scale", "sleeping=-50%", "--", "remove", "sleeping");
		assert_near(w->prediction[0].replay.speedup, 120 / row[i].halved_us, 0.01);
		assert_near(w->prediction[1].replay.speedup, 120 / 20.0, 0.01);
		report_whatif_free(w);
		finish(&b);
	}
}

static void pattern_without_match(void **state)
{
	(void)state;
	struct bench b;
	slow_and_fast(&b);
	assert_null(TRY(&b, BASE_ERR_NOTFOUND, "remove", "nothing like it"));
	assert_non_null(strstr(b.err.cause[0], "slow")); /* says what there is */
	assert_null(TRY(&b, BASE_ERR_NOTFOUND, "ignore-queue", "nothing like it"));
	finish(&b);
}

/* Nine files of one place are one name, and each is still there by its own. */
static void one_of_many_files(void **state)
{
	(void)state;
	enum { FILES = 9, EACH = 10 };
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), at = site(&b, "flush");
	uint64_t t = 10;
	begin_threads(&b, p, 1);
	for (uint32_t i = 0; i < FILES; i++, t += 2 * EACH) {
		char path[32];
		snprintf(path, sizeof path, i < 4 ? "/d/x%u" : "/d/y%u", i);
		uint32_t file = ++b.nr_objects, name = string(&b, path);
		PUT(&b, 0, 0, object, .object = file, .process = p, .type = TRACE_OBJECT_file,
			.address = file, .name = name);
		PUT(&b, t, 1, io_begin, .object = file, .op = TRACE_IO_sync, .site = at);
		PUT(&b, t + EACH, 1, io_end, .object = file, .op = TRACE_IO_sync, .result = 0);
	}
	end(&b, t);
	static const struct {
		const char *edit;
		unsigned nr;
		const char *example;
	} c[] = {{"fsync of many files", FILES, "fsync of many files"},
		{"fsync /d/x*", 4, "fsync of file /d/x0"},
		{"fsync of file /d/y5", 1, "fsync of file /d/y5"},
		{"/d/x", 4, "fsync of file /d/x0"}};
	for (size_t i = 0; i < BASE_COUNT(c); i++) {
		struct report_whatif *w = TRY(&b, BASE_OK, "remove", c[i].edit);
		assert_near(w->prediction[0].length_ns, ((double)t - EACH * c[i].nr) * 1e3, 1);
		assert_string_equal(w->prediction[0].match[0].example, c[i].example);
		report_whatif_free(w);
	}
	assert_null(TRY(&b, BASE_ERR_NOTFOUND, "remove", "fsync /d/z*"));
	finish(&b);
}

static void grammar(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t nr_scenarios, nr_first;
		const char *error;
	} given[] = {
		{"scale 'a b'=-50%\n", 1, 1, NULL},
		{"# all\n\nscale a=x2\nremove b # gone\n\n\n  \nignore-queue \"q 1\"\n", 2, 2,
			NULL},
		{"scale a=-50%\n# between\nremove b\n", 1, 2, NULL},
		{"", 0, 0, NULL},
		{"scale a\n", 0, 0, "f:1: 'scale a': the amount is missing or wrong"},
		{"remove a\nscale a=50%\n", 0, 0, "f:2:"},
		{"scale a=-101%\n", 0, 0, "f:1:"},
		{"scale a=xnan\n", 0, 0, "f:1:"},
		{"scale =-10%\n", 0, 0, "pattern is empty"},
		{"shrink a\n", 0, 0, "'shrink' is no edit"},
		{"remove a b\n", 0, 0, "quotes"},
		{"remove 'a b\n", 0, 0, "a quote is not closed"},
		{"remove\n", 0, 0, "needs one pattern"},
	};
	for (size_t i = 0; i < BASE_COUNT(given); i++) {
		struct report_scenarios s = {0};
		struct base_err err = {0};
		enum base_status st = report_scenarios_text(&s, given[i].text, "f", &err);
		if (given[i].error) {
			assert_int_equal(st, BASE_ERR_USAGE);
			assert_non_null(strstr(err.cause[0], given[i].error));
		} else {
			assert_int_equal(st, BASE_OK);
			assert_int_equal(s.nr, given[i].nr_scenarios);
			if (s.nr)
				assert_int_equal(s.scenario[0].nr_edits, given[i].nr_first);
		}
		report_scenarios_fini(&s);
	}
	assert_true(report_pattern_matches("lock", "my_lock 1"));
	assert_false(report_pattern_matches("Lock", "my_lock 1"));
	assert_true(report_pattern_matches("my*1", "my_lock 1"));
	assert_false(report_pattern_matches("lock*", "my_lock 1"));
	assert_true(
		report_pattern_matches_word("filter", "hand-off of semaphore filtered, filter"));
	assert_true(report_pattern_matches_word("queue::", "work::queue::take"));
	assert_false(report_pattern_matches_word("filter", "running run_filter"));
	assert_false(report_pattern_matches_word("filter", "hand-off of semaphore filtered"));
	assert_true(report_pattern_matches_word("my*1", "my_lock 1"));
}

/* ---- path and queues ------------------------------------------------------------------------- */

static void path_adds_up(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_run run = run_of(&b);
	struct report_path_options opts = {.limit = 3};
	struct report_path *p = NULL;
	assert_int_equal(report_path_build(&run, &opts, &p, &b.err), BASE_OK);
	double sum = 0;
	for (size_t i = 0; i < p->nr_steps; i++)
		sum += p->step[i].weight_ns;
	assert_near(sum, p->elapsed_ns, 1e-3);
	struct base_str text = {0};
	struct report_style st = {.columns = 100};
	report_path_text(&text, p, &opts, &st);
	unsigned lines = 0, holds = 0;
	for (const char *at = base_str_text(&text); (at = strchr(at, '\n')); at++)
		lines++;
	for (const char *at = base_str_text(&text); (at = strstr(at, "holding mutex m")); at++)
		holds++;
	assert_int_equal(holds, 3);
	assert_true(lines <= 2 + 3 + 4); /* heading, steps, what is between them */
	base_str_fini(&text);
	report_path_free(p);
	finish(&b);
}

static void queues_count_waits(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_run run = run_of(&b);
	struct report_queues *q = NULL;
	assert_int_equal(report_queues_build(&run, "mutex", &q, &b.err), BASE_OK);
	assert_int_equal(q->nr_queues, 1);
	assert_string_equal(q->queue[0].name, "mutex m");
	assert_int_equal(q->queue[0].s.nr_waits_data, 7);
	assert_int_equal(q->queue[0].s.wait_data_ns, (101 + 6 * 102) * 1000);
	assert_int_equal(q->queue[0].s.dequeued, 8);
	report_queues_free(q);
	assert_int_equal(report_queues_build(&run, "no such", &q, &b.err), BASE_ERR_NOTFOUND);
	finish(&b);
}

/* Little's law: mean units = units a second x mean residence. A read takes many units at once. */
static void residence_is_of_a_unit(void **state)
{
	(void)state;
	enum { BYTES = 65536 };
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), fn = site(&b, "copy");
	uint32_t pipe_id = ++b.nr_objects;
	PUT(&b, 0, 0, object, .object = pipe_id, .process = p, .type = TRACE_OBJECT_pipe,
		.address = 64, .capacity = BYTES);
	stream(&b, p);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 100, 1, io_begin, .object = pipe_id, .op = TRACE_IO_write, .n = BYTES, .site = fn);
	PUT(&b, 100, 1, io_end, .object = pipe_id, .op = TRACE_IO_write, .result = BYTES);
	PUT(&b, 350, 1, io_begin, .object = pipe_id, .op = TRACE_IO_read, .n = BYTES, .site = fn);
	PUT(&b, 350, 1, io_end, .object = pipe_id, .op = TRACE_IO_read, .result = BYTES);
	end(&b, 1000);
	struct report_run run = run_of(&b);
	struct report_queues *q = NULL;
	struct base_str text = {0};
	assert_int_equal(report_queues_build(&run, "pipe", &q, &b.err), BASE_OK);
	assert_int_equal(q->nr_queues, 1);
	const struct graph_queue_stats *s = &q->queue[0].s;
	assert_int_equal(s->dequeued, BYTES);
	assert_int_equal(s->nr_dequeues, 1);
	assert_int_equal(s->residence_ns, 250000ULL * BYTES);
	assert_int_equal(s->units_time, s->residence_ns);
	assert_float_equal(q->queue[0].mean_units, BYTES / 4, 1e-6);
	report_queues_text(&text, q, 0, &(struct report_style){.columns = 120});
	assert_non_null(strstr(base_str_text(&text), " 250 us "));
	base_str_fini(&text);
	report_queues_free(q);
	finish(&b);
}

/* ---- rendering ------------------------------------------------------------------------------- */

static void render(const struct report *r, struct base_str *out, bool utf8, bool color)
{
	struct report_style st = {.utf8 = utf8, .color = color, .columns = 80, .full = true};
	report_text(out, r, &st);
	assert_false(out->failed);
}

static void text_fits_and_is_plain(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report *r = build(&b);
	struct base_str plain = {0}, again = {0}, colored = {0};
	render(r, &plain, false, false);
	render(r, &again, false, false);
	render(r, &colored, true, true);
	assert_string_equal(base_str_text(&plain), base_str_text(&again));
	unsigned lines = 0;
	for (const char *p = base_str_text(&plain); *p; p++) {
		assert_true(*p == '\n' || (*p >= 0x20 && *p < 0x7f));
		lines += *p == '\n';
	}
	assert_in_range(lines, 8, 35);
	assert_non_null(strstr(base_str_text(&plain), "prog/work x2"));
	assert_non_null(strstr(base_str_text(&plain), "fill 75 %"));
	assert_non_null(strstr(base_str_text(&plain), "longpole whatif a.lpt '#1=-50%'"));
	assert_non_null(strstr(base_str_text(&colored), "\033[1m"));
	base_str_fini(&plain);
	base_str_fini(&again);
	base_str_fini(&colored);
	report_free(r);
	finish(&b);
}

static void json_says_the_same(void **state)
{
	(void)state;
	struct bench b;
	slow_and_fast(&b);
	struct report *r = build(&b);
	json_t *j = report_json(r);
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "schema")), "longpole/report/1");
	const json_t *result = json_object_get(j, "result");
	assert_int_equal(json_integer_value(json_object_get(result, "elapsed_ns")), 1001000);
	assert_int_equal(json_array_size(json_object_get(result, "path")), r->nr_rows);
	assert_int_equal(json_array_size(json_object_get(result, "opportunities")),
		r->nr_opportunities * REPORT_LEVELS);
	json_decref(j);
	report_free(r);
	finish(&b);
}

/* 1000 records of 10 ns and 20 samples of 1.5 us, of 2 ms: 2 %. What goes on beside is not in it.
 */
static void says_what_recording_cost(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	stream(&b, process(&b, "prog"));
	uint32_t what[] = {string(&b, "records"), string(&b, "samples"),
		string(&b, TRACE_COST_BESIDE), string(&b, TRACE_COST_BEFORE),
		string(&b, TRACE_COST_WAKING)};
	uint32_t how = string(&b, "by hand");
	PUT(&b, 0, 0, cost, .cost = 1, .name = what[0], .n = 1000, .total_ns = 10000,
		.target_cpu_ns = 2000000, .method = how);
	PUT(&b, 0, 0, cost, .cost = 2, .name = what[1], .n = 20, .total_ns = 30000,
		.target_cpu_ns = 2000000, .method = how);
	PUT(&b, 0, 0, cost, .cost = 3, .name = what[2], .n = 1, .total_ns = 70000, .beside = 1,
		.target_cpu_ns = 2000000, .method = how);
	PUT(&b, 0, 0, cost, .cost = 4, .name = what[3], .n = 1, .total_ns = 30000, .beside = 1,
		.target_cpu_ns = 2000000, .method = how);
	PUT(&b, 0, 0, cost, .cost = 5, .name = what[4], .n = 1, .total_ns = 5000, .beside = 1,
		.target_cpu_ns = 2000000, .method = how);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	end(&b, 2000);
	struct report *r = build(&b);
	struct base_str text = {0};
	render(r, &text, false, false);
	assert_non_null(
		strstr(base_str_text(&text), "recording cost about 2.0 % (1.3 % to 3.0 %)"));
	/* before it, then beside it; the wakes are part of the first */
	assert_non_null(strstr(base_str_text(&text), "longpole itself took 100 us"));
	assert_non_null(strstr(base_str_text(&text), "70.0 us beside it"));
	assert_non_null(strstr(base_str_text(&text), "20 samples"));
	assert_null(strstr(base_str_text(&text), "reading"));
	base_str_fini(&text);
	json_t *j = report_json(r);
	const json_t *cost = json_object_get(json_object_get(j, "trace"), "recording_cost");
	assert_near(json_real_value(json_object_get(cost, "share")), 0.02, 1e-9);
	assert_near(json_real_value(json_object_get(cost, "share_low")), 0.013333, 1e-9);
	assert_near(json_real_value(json_object_get(cost, "share_high")), 0.03, 1e-9);
	assert_int_equal(json_integer_value(json_object_get(cost, "own_cpu_ns")), 100000);
	assert_int_equal(json_array_size(json_object_get(cost, "parts")), 5);
	json_decref(j);
	report_free(r);
	finish(&b);
}

/* A process forks or starts another at 100 us, which begins at 900 and works to 1000. Of the 800 us
 * 600 are what recording adds to a start: a state of its own, that is neither the finding nor a row
 * of what would help. What was measured for one may be more than there is. */
static void longpole_itself_is_set_apart(void **state)
{
	static const struct {
		const char *cost;
		uint64_t token, start_ns;
		double own_us, start_us;
	} row[] = {{TRACE_COST_STARTS, 0, 600000, 600, 200},
		{TRACE_COST_FORKS, 7, 600000, 600, 200}, {TRACE_COST_STARTS, 7, 600000, 0, 800},
		{TRACE_COST_FORKS, 7, 2000000, 790, 10}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct bench b;
		start(&b);
		uint32_t fn = site(&b, "starts"), how = string(&b, "by hand");
		uint32_t what = string(&b, row[i].cost);
		uint32_t p = process_of(&b, "parent", 0, 100), c = process_of(&b, "child", p, 101);
		stream(&b, p);
		stream(&b, c);
		PUT(&b, 0, 0, cost, .cost = 1, .name = what, .n = 3,
			.total_ns = 3 * row[i].start_ns, .target_cpu_ns = 9000000, .method = how);
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 100, 1, process_fork, .token = row[i].token, .site = fn);
		PUT(&b, 110, 1, child_wait, .site = fn);
		PUT(&b, 900, 2, process_begin, .token = row[i].token);
		PUT(&b, 900, 2, thread_begin, .token = 0, .handle = 2000);
		PUT(&b, 1000, 2, process_end, .status = 0);
		PUT(&b, 1010, 1, child_waited, .pid = 101);
		end(&b, 1020);
		struct report *r = build(&b);
		double own_ns = 0, start_ns = 0;
		for (size_t k = 0; k < r->nr_rows; k++) {
			own_ns +=
				strstr(r->row[k].state, "longpole itself") ? r->row[k].path_ns : 0;
			start_ns += !strcmp(r->row[k].state, "start of a process")
					    ? r->row[k].path_ns
					    : 0;
		}
		assert_near(own_ns, row[i].own_us * 1000, 1);
		assert_near(start_ns, row[i].start_us * 1000, 1);
		assert_null(strstr(r->finding, "longpole"));
		for (size_t k = 0; k < r->nr_opportunities; k++) {
			assert_null(strstr(r->opportunity[k].state, "longpole"));
			assert_null(strstr(r->opportunity[k].next, "longpole"));
		}
		report_free(r);
		finish(&b);
	}
}

static void foreign_texts_are_cleaned(void **state)
{
	(void)state;
	static const struct {
		const char *from, *to;
	} given[] = {
		{"plain", "plain"},
		{"a\033[2Jb\n", "a?[2Jb?"},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"\xff", "\xef\xbf\xbd"},
		{"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* surrogate */
		{"\xc2\x9b"
		 "31m",
			"?31m"}, /* C1: starts a sequence */
		{"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
	};
	for (size_t i = 0; i < BASE_COUNT(given); i++) {
		struct base_str s = {0};
		report_clean_add(&s, given[i].from);
		assert_string_equal(base_str_text(&s), given[i].to);
		json_t *j = json_string(base_str_text(&s));
		assert_non_null(j);
		json_decref(j);
		base_str_fini(&s);
	}
}

/* Long names lose what is between their brackets, never operators, times or line numbers. */
static void long_names_keep_what_tells_them_apart(void **state)
{
	static const struct {
		const char *from, *to;
		size_t width;
	} given[] = {
		{"std::vector<int, std::allocator<int> >::size() const", "std::vector<int>::size",
			40},
		{"std::vector<int, std::allocator<int> >::size() const",
			"std::vector<int, std::allocator<int> >::size() const", 60},
		{"f<a::b<c>, (d)3>(a::b<c> const&, void (*)(int))", "f<..>", 20},
		{"a::operator<<(std::ostream&, x<y, z> const&)", "a::operator<<", 20},
		{"a::operator()(std::ostream&, x<y, z> const&)", "a::operator()", 20},
		{"x<yyyy, zzz>::operator->() const", "x<yyyy, zzz>::operator->", 26},
		{"bool operator< <int, long>(p<int, long> const&)", "bool operator< <int, long>",
			20},
		{"g<h, decltype(i->j)>::k", "g<..>::k", 10},
		{"memcmp 42 % <0.1 %, fill (work.cc:12)", "memcmp 42 % <0.1 %, fill (work.cc:12)",
			10},
		{"waits < 5 and > 3", "waits < 5 and > 3", 3},
		{"a<b", "a<b", 1},
		{"main::{lambda(int, long)#1}::operator()(int, long) const", "main::lambda", 30},
		{"(anonymous namespace)::run(unsigned long)", "run", 20},
		{"v<int>", "v<int>", 1},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(given); i++) {
		struct base_str s = {0};
		report_add_elided(&s, given[i].from, given[i].width, "..");
		assert_string_equal(base_str_text(&s), given[i].to);
		base_str_fini(&s);
	}
}

static void survives_lack_of_memory(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_run run = run_of(&b);
	struct report_options opts = {.nr_opportunities_max = 4};
	SWEEP_ALL_ALLOCATIONS(100, ({
		struct report *r = NULL;
		enum base_status s = report_build(&run, &opts, &r, &b.err);
		report_free(r);
		s;
	}));
	finish(&b);
}

/* Where records are missing and replay says the contrary of the path, the path's answer counts. */
static void replay_lacks_records(void **state)
{
	(void)state;
	struct report_whatif w = {.elapsed_ns = 100,
		.base = {.recorded_ns = 100, .nr_given = 1, .nr_variants = REPORT_VARIANTS}};
	struct report_prediction p = {.by_path = true,
		.speedup = 1.2,
		.speedup_low = 1.2,
		.speedup_high = 1.2,
		.replay = {.made = true, .speedup = 0.6, .low = 0.5, .high = 0.7}};
	struct report_best best = report_best_of(&w, &p);
	assert_true(best.replay_share == 0 && best.speedup == 1.2);
	assert_true(best.low < 1.2 && best.high > 1.2);
	p.replay.made = false; /* nor does what was not asked for widen anything */
	best = report_best_of(&w, &p);
	assert_true(best.low == 1.2 && best.high == 1.2);
	p.replay.made = true;
	w.base.nr_given = 0; /* all is there: then more of one thing may slow down another */
	best = report_best_of(&w, &p);
	assert_true(best.replay_share == 1 && fabs(best.speedup - 0.6) < 1e-9);
	p.less_work = true; /* less of it alone does not: what replay says is chance, and in the
			       interval */
	best = report_best_of(&w, &p);
	assert_true(best.speedup == 1 && best.low == 0.5 && best.high == 1);
	assert_false(best.no_interval);
	w.base.nr_variants = 0; /* simulated once: what is between is no interval */
	best = report_best_of(&w, &p);
	assert_true(best.no_interval && best.low == best.speedup && best.high == best.speedup);
	p.replay.made = false; /* the path's never has one */
	assert_false(report_best_of(&w, &p).no_interval);
	p.replay.made = true;
	p.known_factor = 1.1; /* but for how far off answers were before */
	best = report_best_of(&w, &p);
	assert_true(!best.no_interval && best.low < best.speedup && best.high > best.speedup);
}

/* Of a place that is too long the name is cut, not its line; of one without a line, the end. */
static void place_cell_keeps_the_line(void **state)
{
	static const struct {
		const char *text, *want;
		size_t width;
	} CASES[] = {
		{"climb (ladder.c:7)", "climb (ladder.c:7)  ", 20},
		{"main::{lambda()#1} (invoke.h:61), inlined f (sm.cc:8)",
			"main::\xce\xbb (i\xe2\x80\xa6 (sm.cc:8)", 21},
		{"prog+0x1234567", "prog+0x12\xe2\x80\xa6", 10},
		{"climb (ladder.c:7)", "climb (la\xe2\x80\xa6", 10},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(CASES); i++) {
		struct base_str s = {0};
		report_place_cell(
			&s, &(struct report_style){.utf8 = true}, CASES[i].text, CASES[i].width);
		assert_string_equal(base_str_text(&s), CASES[i].want);
		base_str_fini(&s);
	}
}

static void a_number_of_members_is_not_cut_off(void **state)
{
	(void)state;
	struct base_str out = {0};
	struct report_style st = {.columns = 80};
	report_members_cell(&out, &st, "mutex made by connection_new", 231, 24);
	assert_string_equal(base_str_text(&out), "mutex made by con.. x231");
	base_str_reset(&out);
	report_members_cell(&out, &st, "mutex a", 2, 12);
	assert_string_equal(base_str_text(&out), "mutex a x2  ");
	base_str_reset(&out);
	report_members_cell(&out, &st, "mutex made by connection_new", 1, 24);
	assert_string_equal(base_str_text(&out), "mutex made by connecti..");
	base_str_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(place_cell_keeps_the_line),
		cmocka_unit_test(replay_lacks_records),
		cmocka_unit_test(opportunity_until_the_other_thread),
		cmocka_unit_test(turns_in_a_lock),
		cmocka_unit_test(one_has_nearly_all),
		cmocka_unit_test(a_lock_that_nobody_waits_for),
		cmocka_unit_test(sleeping_is_said_to_be_asked_for),
		cmocka_unit_test(processors_that_many_had),
		cmocka_unit_test(scenarios_side_by_side),
		cmocka_unit_test(function_is_an_estimate),
		cmocka_unit_test(others_stay_where_replay_has_no_end),
		cmocka_unit_test(the_changed_run_is_another_run),
		cmocka_unit_test(what_recording_took_is_taken_off_where_it_was),
		cmocka_unit_test(what_a_sleep_was_late_stays),
		cmocka_unit_test(pattern_without_match),
		cmocka_unit_test(one_of_many_files),
		cmocka_unit_test(grammar),
		cmocka_unit_test(path_adds_up),
		cmocka_unit_test(queues_count_waits),
		cmocka_unit_test(residence_is_of_a_unit),
		cmocka_unit_test(text_fits_and_is_plain),
		cmocka_unit_test(json_says_the_same),
		cmocka_unit_test(says_what_recording_cost),
		cmocka_unit_test(longpole_itself_is_set_apart),
		cmocka_unit_test(foreign_texts_are_cleaned),
		cmocka_unit_test(long_names_keep_what_tells_them_apart),
		cmocka_unit_test(a_number_of_members_is_not_cut_off),
		cmocka_unit_test(survives_lack_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

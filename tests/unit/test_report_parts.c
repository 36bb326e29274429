/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_parts.c - what is named as the long pole, with which numbers, and how it is shown. */
#include "report_fixture.h"

#include "report/locks/locks.h"
#include "report/private.h"

#include <math.h>

static struct report *parts_build(struct bench *b)
{
	struct report_run run = {.reader = b->reader, .trace_path = "a.lpt"};
	struct report_options opts = {.nr_parts_max = REPORT_PARTS_DEFAULT};
	struct report *r = NULL;
	assert_int_equal(report_build(&run, &opts, &r, &b->err), BASE_OK);
	return r;
}

/* As whatif answers one edit. */
static struct report_best parts_whatif(struct bench *b, const char *verb, const char *what)
{
	struct report_run run = {.reader = b->reader, .trace_path = "a.lpt"};
	struct report_scenarios s = {0};
	struct report_whatif *w = NULL;
	char *word[] = {(char *)(uintptr_t)verb, (char *)(uintptr_t)what};
	size_t first = *verb ? 0 : 1;
	assert_int_equal(report_scenarios_words(&s, word + first, 2 - first, &b->err), BASE_OK);
	assert_int_equal(report_whatif_build(&run, &s, 0, &w, &b->err), BASE_OK);
	struct report_best best = report_best_of(w, &w->prediction[0]);
	report_whatif_free(w);
	report_scenarios_fini(&s);
	return best;
}

static bool parts_says(const struct report *r, unsigned columns, bool full, const char *text)
{
	struct base_str out = {0};
	struct report_style st = {.columns = columns, .full = full};
	report_text(&out, r, &st);
	assert_false(out.failed);
	bool says = strstr(base_str_text(&out), text);
	base_str_fini(&out);
	return says;
}

/* How the workers keep each other out. */
enum turns {
	TURNS_MUTEX,
	TURNS_SEMAPHORE, /* of one unit, which its taker gives back */
	TURNS_RELAYED    /* ... which the main thread gives back */
};

static void turns_wait(
	struct bench *b, enum turns how, uint64_t at, uint32_t who, uint32_t m, uint32_t work)
{
	if (how == TURNS_MUTEX)
		PUT(b, at, who, lock_wait, .object = m, .site = work);
	else
		PUT(b, at, who, token_wait, .object = m, .site = work, .n = 1);
}

static void turns_take(
	struct bench *b, enum turns how, uint64_t at, uint32_t who, uint32_t m, uint32_t work)
{
	if (how == TURNS_MUTEX)
		PUT(b, at, who, lock_acquire, .object = m, .site = work);
	else
		PUT(b, at, who, token_take, .object = m, .site = work, .n = 1);
}

static void turns_give(
	struct bench *b, enum turns how, uint64_t at, uint32_t who, uint32_t m, uint32_t work)
{
	if (how == TURNS_MUTEX)
		PUT(b, at, who, lock_release, .object = m, .site = work);
	else
		PUT(b, at, how == TURNS_RELAYED ? 1 : who, token_give, .object = m, .site = work,
			.n = 1);
}

/*
 * Two workers, in turns: 100 us asleep while one holds mutex m, 40 us asleep without it. The other
 * one waits for the mutex meanwhile, unless nobody does: then there is one worker only.
 */
static void sleeping_turns_by(struct bench *b, bool alone, enum turns how)
{
	start(b);
	uint32_t p = process(b, "prog"), work = site(b, "work"), nap = site(b, "nap");
	uint32_t m =
		object_of(b, how == TURNS_MUTEX ? TRACE_OBJECT_mutex : TRACE_OBJECT_semaphore, "m");
	uint32_t from = site(b, "main");
	unsigned nr = alone ? 1 : 2;
	for (unsigned i = 0; i < 1 + nr; i++)
		stream(b, p);
	PUT(b, 0, 1, process_begin, .token = 0);
	PUT(b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	if (how != TURNS_MUTEX)
		PUT(b, 0, 1, token_set, .object = m, .n = 1);
	for (unsigned i = 0; i < nr; i++) {
		PUT(b, 1, 1, thread_create, .token = 1 + i, .site = from);
		PUT(b, 1, 2 + i, thread_begin, .token = 1 + i, .handle = 2000 + i, .site = work);
	}
	PUT(b, 1, 1, join_wait, .handle = 2000 + nr - 1);
	uint64_t at = 1;
	if (!alone)
		turns_wait(b, how, at, 3, m, work);
	for (unsigned i = 0; i < 10; i++) {
		uint32_t owner = alone ? 2 : 2 + i % 2;
		turns_take(b, how, at, owner, m, work);
		PUT(b, at, owner, sleep_begin, .duration_ns = 100000, .site = nap);
		PUT(b, at + 100, owner, sleep_end);
		turns_give(b, how, at + 100, owner, m, work);
		at += 101;
		if (alone || i == 9) {
			PUT(b, at, owner, sleep_begin, .duration_ns = 40000, .site = work);
			PUT(b, at + 40, owner, sleep_end);
			at += 40;
		}
		if (i >= (alone ? 9u : 8u))
			PUT(b, at, owner, thread_end);
		else if (!alone)
			turns_wait(b, how, at, owner, m, work);
	}
	at++;
	PUT(b, at, 1, join_done, .handle = 2000 + nr - 1);
	if (!alone) {
		PUT(b, at, 1, join_wait, .handle = 2000);
		PUT(b, at, 1, join_done, .handle = 2000);
	}
	end(b, at);
}

static void sleeping_turns(struct bench *b, bool alone)
{
	sleeping_turns_by(b, alone, TURNS_MUTEX);
}

/* Sleep under a lock for which others wait is the lock's; what is slept without it is its own. */
static void a_lock_that_is_waited_for_is_named(void **state)
{
	struct bench b;
	(void)state;
	sleeping_turns(&b, false);
	struct report *r = parts_build(&b);
	const struct report_part *p = r->parts.part;
	assert_true(r->parts.nr >= 2);
	assert_true(p->is_lock);
	assert_string_equal(p->name, "mutex m");
	assert_int_equal(p->kind, MODEL_STATE_sleep);
	assert_near(p->path_ns, 1009e3, 1); /* with its 9 hand-offs */
	assert_int_equal(p->nr_waits, 9);
	assert_false(p[1].is_lock);
	assert_int_equal(p[1].kind, MODEL_STATE_sleep);
	assert_near(p[1].path_ns, 40e3, 1);
	assert_string_equal(p->then, p[1].name);
	assert_near(p->gain[REPORT_PART_HALVED].speedup, 1052.0 / 552, 0.02);
	assert_true(parts_says(r, 80, false, "The long pole is mutex m: its holders sleep"));
	assert_true(parts_says(r, 80, false, "Holding it half as long: 1.05 ms -> "));
	report_free(r);
	finish(&b);
}

/* A semaphore that is used as a lock is one, with the lock's numbers. One that others give back passes
 * something on. */
static void a_semaphore_that_each_gives_back_is_a_lock(void **state)
{
	(void)state;
	for (unsigned how = TURNS_SEMAPHORE; how <= TURNS_RELAYED; how++) {
		struct bench b;
		sleeping_turns_by(&b, false, (enum turns)how);
		struct report *r = parts_build(&b);
		const struct report_part *p = r->parts.part;
		assert_int_equal(p->is_lock, how == TURNS_SEMAPHORE);
		if (p->is_lock) {
			assert_string_equal(p->name, "semaphore m");
			assert_int_equal(p->kind, MODEL_STATE_sleep);
			assert_near(p->path_ns, 1009e3, 1);
			assert_int_equal(p->nr_waits, 9);
			assert_near(p->gain[REPORT_PART_HALVED].speedup, 1052.0 / 552, 0.02);
			assert_true(p->gain[REPORT_PART_HALVED].low > 1.5); /* no polling */
		}
		report_free(r);
		finish(&b);
	}
}

/* A lock that keeps nobody waiting hides nothing that is done under it. */
static void a_lock_that_nobody_waits_for_is_not(void **state)
{
	struct bench b;
	(void)state;
	sleeping_turns(&b, true);
	struct report *r = parts_build(&b);
	assert_false(r->parts.part->is_lock);
	assert_int_equal(r->parts.part->kind, MODEL_STATE_sleep);
	assert_near(r->parts.part->path_ns, 1400e3, 1);
	assert_false(parts_says(r, 80, false, "The long pole is mutex"));
	report_free(r);
	finish(&b);
}

/* Whoever asks for the same change gets the same number: the report, `whatif` by its number and by
 * its name, `locks`. */
static void all_say_the_same(void **state)
{
	static void (*const trace[])(struct bench *) = {slow_and_fast, taking_turns};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(trace) + 1; i++) {
		struct bench b;
		if (i < BASE_COUNT(trace))
			trace[i](&b);
		else
			sleeping_turns(&b, false);
		struct report *r = parts_build(&b);
		for (size_t k = 0; k < r->parts.nr && r->parts.part[k].predicted; k++) {
			const struct report_best *gain = r->parts.part[k].gain;
			char word[32];
			snprintf(word, sizeof word, "#%zu=-50%%", k + 1);
			assert_near(parts_whatif(&b, "", word).speedup,
				gain[REPORT_PART_HALVED].speedup, 1e-9);
			snprintf(word, sizeof word, "#%zu", k + 1);
			assert_near(parts_whatif(&b, "remove", word).speedup,
				gain[REPORT_PART_GONE].speedup, 1e-9);
		}
		if (r->parts.part->is_lock) {
			struct report_run run = {.reader = b.reader, .trace_path = "a.lpt"};
			struct report_locks_options opts = {.size = sizeof opts,
				.sort = REPORT_LOCK_SORT_path,
				.nr_gains_max = 1};
			struct report_locks *l = NULL;
			double halved = r->parts.part->gain[REPORT_PART_HALVED].speedup;
			assert_int_equal(report_locks_build(&run, &opts, &l, &b.err), BASE_OK);
			assert_near(report_lock_gain(l->lock), halved, 1e-9);
			report_locks_free(l);
			assert_near(
				parts_whatif(&b, "scale", "mutex m=-50%").speedup, halved, 1e-9);
		}
		report_free(r);
		finish(&b);
	}
}

/*
 * Two workers sleep 20 times, side by side, 100 us each time, and a third thread as often somewhere
 * else; one of these places is halved. Its sleeps may be work, for which the others look; or they are
 * looks, too, and shorter ones gain nothing. They are not both: then all would end at once.
 */
static void naps_are_work_or_looks(void **state)
{
	enum { NAPS = 20, NR = 3 };
	struct bench b;
	uint64_t at = 2;
	(void)state;
	start(&b);
	uint32_t p = process(&b, "prog"), from = site(&b, "main");
	const uint32_t job = site(&b, "job"), look = site(&b, "look"), nap[NR] = {job, job, look};
	for (unsigned i = 0; i <= NR; i++)
		stream(&b, p);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	for (unsigned i = 0; i < NR; i++) {
		PUT(&b, 1, 1, thread_create, .token = 1 + i, .site = from);
		PUT(&b, 1, 2 + i, thread_begin, .token = 1 + i, .handle = 2000 + i, .site = from);
	}
	PUT(&b, 1, 1, join_wait, .handle = 2000);
	for (unsigned k = 0; k < NAPS; k++, at += 101)
		for (unsigned i = 0; i < NR; i++) {
			PUT(&b, at, 2 + i, sleep_begin, .duration_ns = 100000, .site = nap[i]);
			PUT(&b, at + 100, 2 + i, sleep_end);
		}
	for (unsigned i = 0; i < NR; i++)
		PUT(&b, at, 2 + i, thread_end);
	for (unsigned i = 0; i < NR; i++) {
		if (i)
			PUT(&b, at + i, 1, join_wait, .handle = 2000 + i);
		PUT(&b, at + i + 1, 1, join_done, .handle = 2000 + i);
	}
	end(&b, at + NR);
	static const char *const edit[] = {"job=-50%", "look=-50%"};
	for (size_t i = 0; i < BASE_COUNT(edit); i++) {
		struct report_best best = parts_whatif(&b, "scale", edit[i]);
		assert_true(best.low < 1);
		assert_in_range((uint64_t)(100 * best.high), 195, 215);
	}
	finish(&b);
}

/*
 * A worker sleeps for 2000 us; beside it a thread reads a timer that expires every 100 us, and the run
 * ends with its last look. It may wait for the worker: a clock holds nobody up, and none of its time
 * is the looking thread's.
 */
static void a_clock_does_not_nap(void **state)
{
	enum { TICKS = 20, PERIOD = 100, WORK = TICKS * PERIOD };
	struct bench b;
	(void)state;
	start(&b);
	uint32_t p = process(&b, "prog"), from = site(&b, "main"), look = site(&b, "look");
	uint32_t timer = object_of(&b, TRACE_OBJECT_timerfd, "anon_inode:[timerfd]");
	stream(&b, p);
	stream(&b, p);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	PUT(&b, 0, 1, timer_set, .object = timer, .first_ns = PERIOD * 1000,
		.period_ns = PERIOD * 1000, .armed = 1, .site = from);
	PUT(&b, 0, 1, thread_create, .token = 1, .site = from);
	PUT(&b, 0, 2, thread_begin, .token = 1, .handle = 2000, .site = from);
	PUT(&b, 1, 2, sleep_begin, .duration_ns = (WORK - 10) * 1000, .site = site(&b, "work"));
	for (uint64_t i = 1; i <= TICKS; i++) {
		PUT(&b, i * PERIOD - 80, 1, io_begin, .object = timer, .op = TRACE_IO_read, .n = 8,
			.site = look);
		if (i == TICKS) {
			PUT(&b, WORK - 9, 2, sleep_end);
			PUT(&b, WORK - 8, 2, thread_end);
		}
		PUT(&b, i * PERIOD, 1, io_end, .object = timer, .op = TRACE_IO_read, .result = 8);
	}
	end(&b, WORK + 1);
	struct report_best best = parts_whatif(&b, "scale", "work=-50%");
	assert_in_range((uint64_t)(100 * best.speedup), 99, 101);
	assert_in_range((uint64_t)(100 * best.high), 200, 220);
	finish(&b);
}

/* Of 1000 us 700 pass while another program has the processor: no pole, and shares are without it. */
static void other_programs_are_set_apart(void **state)
{
	struct bench b;
	(void)state;
	start(&b);
	uint32_t p = process(&b, "prog"), nap = site(&b, "nap");
	stream(&b, p);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 100, 1, cpu_out, .processor = 0, .preempted = 1);
	PUT(&b, 800, 1, cpu_in, .processor = 0);
	PUT(&b, 800, 1, sleep_begin, .duration_ns = 200000, .site = nap);
	PUT(&b, 1000, 1, sleep_end);
	end(&b, 1000);
	struct report *r = parts_build(&b);
	assert_near(r->parts.own.apart_ns[REPORT_APART_PROCESSOR], 700e3, 1);
	assert_near(r->parts.own.own_ns, 300e3, 1);
	assert_int_equal(r->parts.part[0].kind, MODEL_STATE_sleep);
	assert_near(r->parts.part[0].share, 2.0 / 3, 1e-6);
	assert_true(
		parts_says(r, 200, false, "70 % waiting for processors that other programs had"));
	assert_true(parts_says(r, 80, false, "The long pole is a sleep"));
	report_free(r);
	finish(&b);
}

/* No line of the table is wider than the terminal, and each width has the numbers. */
static void fits_the_terminal(void **state)
{
	static const unsigned columns[] = {60, 80, 100, 120, 200};
	struct bench b;
	(void)state;
	taking_turns(&b);
	struct report *r = parts_build(&b);
	for (size_t i = 0; i < BASE_COUNT(columns); i++)
		for (int full = 0; full < 2; full++) {
			struct base_str out = {0};
			struct report_style st = {
				.columns = columns[i], .full = full, .utf8 = i % 2};
			report_screen(&out, r, &st);
			const char *text = base_str_text(&out);
			assert_non_null(strstr(text, "#1"));
			assert_non_null(strstr(text, "HALVED"));
			for (; *text; text += strcspn(text, "\n") + 1) {
				char line[512] = "";
				snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
				if (report_width(line) > columns[i])
					print_message("%u: %s\n", columns[i], line);
				assert_true(report_width(line) <= columns[i]);
			}
			base_str_fini(&out);
		}
	report_free(r);
	finish(&b);
}

/* MPI is no kernel: the first is a call that waits for nobody, alone and with a lock held. */
static void time_in_mpi(void **state)
{
	(void)state;
	for (int locked = 0; locked < 2; locked++) {
		struct bench b;
		start(&b);
		uint32_t p = process(&b, "prog"), here = site(&b, "here");
		uint32_t world = object_of(&b, TRACE_OBJECT_communicator, "MPI_COMM_WORLD"),
			 m = mutex(&b, "m");
		stream(&b, p);
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 0, 1, thread_begin, .token = 0, .handle = 1000);
		PUT(&b, 10, 1, mpi_comm, .object = world, .rank = 0, .size = 2, .world = 1);
		if (locked)
			PUT(&b, 90, 1, lock_acquire, .object = m, .site = here);
		PUT(&b, 100, 1, mpi_send, .object = world, .site = here, .peer = 1, .tag = 1,
			.n = 4, .op = TRACE_MPI_Bsend);
		PUT(&b, 900, 1, mpi_done, .peer = -1, .tag = -1);
		PUT(&b, 900, 1, mpi_return, .op = TRACE_MPI_Bsend, .site = here);
		if (locked)
			PUT(&b, 910, 1, lock_release, .object = m, .site = here);
		end(&b, 1000);
		struct report *r = parts_build(&b);
		assert_false(parts_says(r, 200, true, "in the kernel"));
		assert_null(strstr(r->finding, "in the kernel"));
		assert_true(parts_says(r, 200, true, "MPI_Bsend"));
		if (!locked) {
			assert_int_equal(r->parts.part[0].cause, MODEL_CAUSE_mpi_call);
			assert_non_null(strstr(r->finding, "in MPI_Bsend, at here"));
			assert_true(parts_says(r, 200, true, "Half as long in MPI"));
		}
		report_free(r);
		finish(&b);
	}
}

static void numbers_that_are_none(void **state)
{
	static const char *const bad[] = {"#0=-50%", "#99=-50%", "#1000000000000=-50%"};
	struct bench b;
	(void)state;
	taking_turns(&b);
	struct report_run run = {.reader = b.reader, .trace_path = "a.lpt"};
	for (size_t i = 0; i < BASE_COUNT(bad); i++) {
		struct report_scenarios s = {0};
		struct report_whatif *w = NULL;
		char *word = (char *)(uintptr_t)bad[i];
		assert_int_equal(report_scenarios_words(&s, &word, 1, &b.err), BASE_OK);
		assert_int_equal(report_whatif_build(&run, &s, 0, &w, &b.err), BASE_ERR_NOTFOUND);
		b.err = (struct base_err){0};
		report_scenarios_fini(&s);
	}
	finish(&b);
}

/* A replay that is as far from the run as to be refuted has no say in the interval, either. */
static void replay_is_refuted(void **state)
{
	(void)state;
	struct report_whatif w = {
		.elapsed_ns = 100, .base = {.recorded_ns = 100, .nr_variants = REPORT_VARIANTS}};
	struct report_prediction p = {.by_path = true,
		.speedup = 1.3,
		.speedup_low = 1.2,
		.speedup_high = 1.4,
		.replay = {.made = true, .speedup = 3, .low = 0.1, .high = 24}};
	for (int sign = -1; sign <= 1; sign += 2) {
		w.base.own_error = sign * 0.49;
		struct report_best best = report_best_of(&w, &p);
		assert_true(best.low < 0.11 && best.high > 23);
		w.base.own_error = sign * 0.51;
		best = report_best_of(&w, &p);
		assert_true(best.replay_share == 0 && best.speedup == 1.3);
		assert_true(fabs(best.low - 1.2 / 1.284) < 1e-3);
		assert_true(fabs(best.high - 1.4 * 1.284) < 1e-3);
	}
}

/* Where replay stands still, the largest reduction with which it did not says the least; the
 * further that is from what was asked, the more the path counts. */
static void replay_stands_still(void **state)
{
	static const struct {
		double path, ray, reach, want;
	} CASES[] = {
		{1.69, 1.04, 1, 1.04}, {1.69, 1.04, 0.1, 1.6099}, {1.69, 1.04, 0.5, 1.3257},
		{1.69, 1.04, 0, 1.69},
		{1.2, 1.5, 0.5, 1.5}, /* less of it gains more than the path says */
	};
	(void)state;
	struct report_whatif w = {
		.elapsed_ns = 100, .base = {.recorded_ns = 100, .nr_variants = REPORT_VARIANTS}};
	for (size_t i = 0; i < BASE_COUNT(CASES); i++) {
		struct report_prediction p = {.by_path = true,
			.less_work = true,
			.speedup = CASES[i].path,
			.speedup_low = CASES[i].path,
			.speedup_high = CASES[i].path,
			.replay = {.made = true,
				.nr_stuck = 1,
				.ray_speedup = CASES[i].ray,
				.ray_reach = CASES[i].reach}};
		struct report_best best = report_best_of(&w, &p);
		assert_true(fabs(best.speedup - CASES[i].want) < 1e-3);
		assert_true(fabs(best.replay_share - CASES[i].reach) < 1e-9);
		assert_true(best.low < fmin(CASES[i].path, CASES[i].ray));
		assert_true(best.high > fmax(CASES[i].path, CASES[i].ray) || CASES[i].ray > 1.4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_that_is_waited_for_is_named),
		cmocka_unit_test(a_semaphore_that_each_gives_back_is_a_lock),
		cmocka_unit_test(a_lock_that_nobody_waits_for_is_not),
		cmocka_unit_test(all_say_the_same),
		cmocka_unit_test(other_programs_are_set_apart),
		cmocka_unit_test(fits_the_terminal),
		cmocka_unit_test(time_in_mpi),
		cmocka_unit_test(naps_are_work_or_looks),
		cmocka_unit_test(a_clock_does_not_nap),
		cmocka_unit_test(numbers_that_are_none),
		cmocka_unit_test(replay_stands_still),
		cmocka_unit_test(replay_is_refuted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

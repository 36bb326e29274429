/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_locks.c - longpole locks on hand-made traces whose every number is known. */
#include "report_fixture.h"

#include "report/locks/locks.h"

#include <errno.h>
#include <jansson.h>

static struct report_locks *locks_of(struct bench *b, uint64_t from_us, uint64_t to_us)
{
	struct report_run run = {.reader = b->reader,
		.trace_path = b->path,
		.from_ns = from_us * 1000,
		.to_ns = to_us * 1000};
	struct report_locks_options o = {.size = sizeof o, .nr_gains_max = 8};
	struct report_locks *l = NULL;
	enum base_status s = report_locks_build(&run, &o, &l, &b->err);
	if (s != BASE_OK)
		print_message("%s\n", b->err.cause[0]);
	assert_int_equal(s, BASE_OK);
	return l;
}

static const struct report_lock *lock_of(const struct report_locks *l, const char *name)
{
	for (size_t i = 0; i < l->nr_locks; i++)
		if (!strcmp(l->lock[i].name, name))
			return &l->lock[i];
	fail_msg("no lock %s", name);
	return NULL;
}

static uint32_t object_of_type(struct bench *b, enum trace_object_type type, const char *name)
{
	uint32_t id = ++b->nr_objects, text = string(b, name);
	PUT(b, 0, 0, object, .object = id, .process = 1, .type = type, .address = id * 64,
		.name = text);
	return id;
}

/* Two threads, two sites. a is held 100..400 and inside it b 200..300; then a recursively. */
static void nested(struct bench *b)
{
	start(b);
	uint32_t p = process(b, "prog"), outer = site(b, "outer"), inner = site(b, "inner");
	uint32_t same = site(b, "inner"); /* another call, that a reader cannot tell apart */
	uint32_t a = mutex(b, "a"), x = mutex(b, "b");
	begin_threads(b, p, 2);
	PUT(b, 1, 1, thread_create, .token = 1, .site = outer);
	PUT(b, 1, 2, thread_begin, .token = 1, .handle = 2000, .site = outer);
	PUT(b, 100, 1, lock_acquire, .object = a, .site = outer);
	PUT(b, 200, 1, lock_acquire, .object = x, .site = inner);
	PUT(b, 250, 2, lock_wait, .object = a, .site = inner);
	PUT(b, 300, 1, lock_release, .object = x, .site = inner);
	PUT(b, 400, 1, lock_release, .object = a, .site = outer);
	PUT(b, 410, 2, lock_acquire, .object = a, .site = inner); /* waited 160, holds 50 + 40 */
	PUT(b, 430, 2, lock_acquire, .object = a, .site = same);  /* again: recursive */
	PUT(b, 440, 2, lock_release, .object = a, .site = same);
	PUT(b, 460, 2, lock_release, .object = a, .site = inner);
	PUT(b, 470, 1, lock_fail, .object = x, .site = inner); /* a trylock */
	PUT(b, 500, 2, thread_end);
	PUT(b, 510, 1, join_wait, .handle = 2000);
	PUT(b, 510, 1, join_done, .handle = 2000);
	end(b, 600);
}

static void nested_locks_are_not_counted_twice(void **state)
{
	(void)state;
	struct bench b;
	nested(&b);
	struct report_locks *l = locks_of(&b, 0, 0);
	const struct report_lock *a = lock_of(l, "mutex a"), *x = lock_of(l, "mutex b");
	assert_int_equal(l->has & REPORT_LOCKS_events, REPORT_LOCKS_events);
	assert_int_equal(l->has & REPORT_LOCKS_tallies, 0);
	assert_int_equal(l->nr_static, 2);
	assert_int_equal(l->all.acquired, 4);
	assert_int_equal(a->use.acquired, 3);
	assert_int_equal(a->use.contended, 1);
	assert_int_equal(a->use.wait.total_ns, 160 * 1000);
	assert_int_equal(a->waiters_max, 1);
	assert_int_equal(a->waited_by_any_ns, 160 * 1000);
	assert_int_equal(a->use.hold.nr, 2); /* the recursive one is inside the other */
	assert_int_equal(a->use.hold.total_ns, 350 * 1000);
	assert_int_equal(a->use.hold.max_ns, 300 * 1000);
	assert_int_equal(x->use.hold.total_ns, 100 * 1000);
	assert_int_equal(x->use.failed, 1);
	assert_int_equal(l->held_ns, 350 * 1000); /* 300 and 50, not 450 */
	assert_int_equal(a->nr_sites, 2);
	assert_string_equal(a->site[0].where, "inner");
	assert_int_equal(a->site[0].use.acquired, 2);
	assert_int_equal(a->site[0].use.hold.total_ns, 50 * 1000);
	assert_int_equal(a->site[1].use.hold.total_ns, 300 * 1000);
	assert_int_equal(l->nr_threads, 2);
	/* 262144..524287 ns: 300 us; 65536..: 100 us; 32768..: 50 us */
	assert_int_equal(l->dynamic.hold[18], 1);
	assert_int_equal(l->dynamic.hold[16], 1);
	assert_int_equal(l->dynamic.hold[15], 1);
	assert_int_equal(l->by_static.hold[17], 1); /* a: 175 us on average */
	assert_int_equal(l->by_static.hold[16], 1);
	report_locks_free(l);

	l = locks_of(&b, 0, 320); /* a window cuts what lasts over its end */
	a = lock_of(l, "mutex a");
	assert_int_equal(a->use.acquired, 1);
	assert_int_equal(a->use.hold.nr, 0);
	assert_int_equal(lock_of(l, "mutex b")->use.hold.total_ns, 100 * 1000);
	report_locks_free(l);
	finish(&b);
}

static void path_and_prediction(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_locks *l = locks_of(&b, 0, 0);
	const struct report_lock *m = lock_of(l, "mutex m");
	assert_true(l->has & REPORT_LOCKS_path);
	assert_true(m->path_ns / l->path_ns > 0.9);
	assert_true(m->path_hold_ns <= m->path_ns);
	assert_true(m->halved.tried);
	double gain = report_lock_gain(m);
	assert_true(gain > 1.7 && gain <= 2.0); /* nearly all of the run is in the lock */
	assert_true(m->convoy_longest >= REPORT_CONVOY_MIN);
	report_locks_free(l);
	finish(&b);
}

/* A replay in which by chance threads meet less is not believed: half of the holds' time is all
 * that can be won. */
static void no_more_than_the_holds(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_locks *l = locks_of(&b, 0, 0);
	struct report_lock m = *lock_of(l, "mutex m");
	double half_ns = (double)m.use.hold.total_ns / 2,
	       most = l->path_ns / (l->path_ns - half_ns);
	assert_true(most > 1.7);
	assert_true(report_lock_gain(&m) <= most);
	m.halved.answer.best.speedup = 9;
	assert_near(report_lock_gain(&m), most, 1e-9);
	report_locks_free(l);
	finish(&b);
}

/* A lock's share of the path is all that is done under it: here a write to the disk and another
 * lock. */
static void what_is_done_under_a_lock(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), at = site(&b, "commit");
	uint32_t log = mutex(&b, "log"), inner = mutex(&b, "inner");
	uint32_t file = object_of_type(&b, TRACE_OBJECT_file, "disk");
	begin_threads(&b, p, 1);
	PUT(&b, 100, 1, lock_acquire, .object = log, .site = at);
	PUT(&b, 150, 1, io_begin, .object = file, .op = TRACE_IO_sync, .site = at);
	PUT(&b, 350, 1, io_end, .object = file, .op = TRACE_IO_sync);
	PUT(&b, 360, 1, lock_acquire, .object = inner, .site = at);
	PUT(&b, 380, 1, lock_release, .object = inner, .site = at);
	PUT(&b, 400, 1, lock_release, .object = log, .site = at);
	end(&b, 500);
	struct report_locks *l = locks_of(&b, 0, 0);
	const struct report_lock *x = lock_of(l, "mutex log"), *y = lock_of(l, "mutex inner");
	assert_near(l->path_ns, 500e3, 1);
	assert_near(x->path_ns, 300e3, 1);
	assert_near(y->path_ns, 20e3, 1);
	assert_near(x->halved.answer.path_speedup, 500.0 / 350,
		0.01); /* all of it takes half as long */
	assert_near(y->halved.answer.path_speedup, 500.0 / 490, 0.01);
	report_locks_free(l);
	finish(&b);
}

static void condition_variables(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), at = site(&b, "wait");
	uint32_t m = mutex(&b, "m"), c = object_of_type(&b, TRACE_OBJECT_cond, "c");
	begin_threads(&b, p, 2);
	PUT(&b, 0, 2, thread_begin, .token = 0, .handle = 1001);
	PUT(&b, 10, 1, lock_acquire, .object = m, .site = at);
	PUT(&b, 30, 1, cond_wait, .object = c, .mutex = m, .site = at);
	PUT(&b, 50, 2, cond_signal, .object = c, .site = at);
	PUT(&b, 70, 1, cond_wake, .object = c, .mutex = m, .site = at);
	PUT(&b, 75, 1, cond_wait, .object = c, .mutex = m, .site = at);
	PUT(&b, 95, 1, cond_wake, .object = c, .mutex = m, .site = at, .result = ETIMEDOUT);
	PUT(&b, 96, 1, lock_release, .object = m, .site = at);
	end(&b, 100);
	struct report_locks *l = locks_of(&b, 0, 0);
	const struct report_lock *x = lock_of(l, "mutex m");
	assert_int_equal(x->use.acquired, 1);
	assert_int_equal(x->use.retaken, 2);
	assert_int_equal(x->use.hold.nr, 3);
	assert_int_equal(x->use.hold.total_ns, (20 + 5 + 1) * 1000);
	assert_int_equal(l->held_ns, 26 * 1000);
	assert_int_equal(l->nr_conds, 1);
	assert_string_equal(l->cond[0].name, "condition variable c");
	assert_int_equal(l->cond[0].waits, 2);
	assert_int_equal(l->cond[0].timeouts, 1);
	assert_int_equal(l->cond[0].signals, 1);
	assert_int_equal(l->cond[0].wait.total_ns, 60 * 1000);
	report_locks_free(l);
	finish(&b);
}

/* Taken, by its owner once more, and never released: held from the first time to the end. */
static void held_to_the_end(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), at = site(&b, "take"), m = mutex(&b, "m");
	begin_threads(&b, p, 1);
	PUT(&b, 10, 1, lock_acquire, .object = m, .site = at);
	PUT(&b, 30, 1, lock_acquire, .object = m, .site = at);
	end(&b, 100);
	struct report_locks *l = locks_of(&b, 0, 0);
	const struct report_lock *x = lock_of(l, "mutex m");
	assert_int_equal(x->use.acquired, 2);
	assert_int_equal(x->use.hold.nr, 1);
	assert_int_equal(x->use.hold.total_ns, 90 * 1000);
	assert_int_equal(l->held_ns, 90 * 1000);
	report_locks_free(l);
	finish(&b);
}

/* The one long hold of a lock, timed, does not stand for the short ones of another of which one in
 * ten was. */
static void tallies_unequal(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), at = site(&b, "take");
	uint32_t rare = mutex(&b, "rare"), often = mutex(&b, "often");
	uint32_t mode = string(&b, "sampled");
	begin_threads(&b, p, 1);
	PUT(&b, 1, 1, lock_floor, .mode = mode, .bare_ps = 8000, .stamps_ps = 42000);
	PUT(&b, 900, 1, lock_count, .object = rare, .site = at, .acquired = 1);
	PUT(&b, 900, 1, lock_holds, .object = rare, .site = at, .nr = 1, .total_ns = 500000,
		.max_ns = 500000);
	PUT(&b, 900, 1, lock_count, .object = often, .site = at, .acquired = 1000);
	PUT(&b, 900, 1, lock_holds, .object = often, .site = at, .nr = 100, .total_ns = 2000,
		.max_ns = 30);
	end(&b, 1000000);
	struct report_locks *l = locks_of(&b, 0, 0);
	json_t *j = report_locks_json(l),
	       *all = json_object_get(json_object_get(j, "result"), "totals");
	assert_int_equal(json_integer_value(json_object_get(all, "held_ns")), 500000 + 1000 * 20);
	struct base_str text = {0};
	struct report_locks_view view = {0};
	struct report_style style = {.columns = 120};
	report_locks_text(&text, l, &view, &style);
	assert_non_null(strstr(base_str_text(&text), "held 519 ns"));
	assert_non_null(strstr(base_str_text(&text), "520 us of holds by the clock"));
	base_str_fini(&text);
	json_decref(j);
	report_locks_free(l);
	finish(&b);
}

/* Each hold was timed: sums are no estimates, and nested holds count once where that was measured.
 */
static void tallies_each(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), at = site(&b, "take");
	uint32_t m = mutex(&b, "m"), mode = string(&b, "holds");
	begin_threads(&b, p, 1);
	PUT(&b, 1, 1, lock_floor, .mode = mode, .bare_ps = 8000, .stamps_ps = 42000);
	PUT(&b, 900, 1, lock_count, .object = m, .site = at, .acquired = 20, .retaken = 1);
	PUT(&b, 900, 1, lock_holds, .object = m, .site = at, .nr = 21, .total_ns = 2100,
		.max_ns = 500);
	PUT(&b, 900, 1, lock_held, .held_ns = 1500);
	PUT(&b, 900, 1, lock_held, .held_ns = 100); /* of a second table */
	end(&b, 1000000);
	struct report_locks *l = locks_of(&b, 0, 0);
	assert_int_equal(l->has & (REPORT_LOCKS_events | REPORT_LOCKS_held), REPORT_LOCKS_held);
	assert_int_equal(l->held_ns, 1600);
	assert_near(l->all.hold_variance, 0, 0);
	json_t *j = report_locks_json(l),
	       *all = json_object_get(json_object_get(j, "result"), "totals");
	assert_int_equal(json_integer_value(json_object_get(all, "held_all_threads_ns")), 1600);
	assert_int_equal(json_integer_value(json_object_get(all, "held_ns")), 2100);
	assert_true(json_is_false(json_object_get(all, "held_estimated")));
	struct base_str text = {0};
	struct report_locks_view view = {.histograms = true};
	struct report_style style = {.columns = 120};
	report_locks_text(&text, l, &view, &style);
	assert_non_null(
		strstr(base_str_text(&text), "1.60 us by the clock with at least one lock held"));
	assert_non_null(strstr(base_str_text(&text), "each hold that ended was timed"));
	assert_null(strstr(base_str_text(&text), "sample"));
	base_str_fini(&text);
	json_decref(j);
	report_locks_free(l);
	finish(&b);
}

/* What a recorder counted: sums over threads, an estimate of what was only sampled. */
static void tallies(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), at = site(&b, "take");
	uint32_t m = mutex(&b, "m"), mode = string(&b, "sampled");
	begin_threads(&b, p, 2);
	PUT(&b, 0, 2, thread_begin, .token = 0, .handle = 1001);
	PUT(&b, 1, 1, lock_floor, .mode = mode, .bare_ps = 8000, .stamps_ps = 42000);
	for (unsigned i = 1; i <= 2; i++) {
		PUT(&b, 900, i, lock_count, .object = m, .site = at, .acquired = 800,
			.contended = 10, .failed = 1);
		PUT(&b, 900, i, lock_waits, .object = m, .site = at, .nr = 10, .total_ns = 5000,
			.max_ns = 900);
		PUT(&b, 900, i, lock_holds, .object = m, .site = at, .nr = 100,
			.total_ns = 100 * 1000 * i, .max_ns = 3000, .deviation_ns = 200);
		PUT(&b, 900, i, lock_bin, .what = 1, .bin = 10, .n = 100);
	}
	end(&b, 1000);
	struct report_locks *l = locks_of(&b, 0, 0);
	const struct report_lock *x = lock_of(l, "mutex m");
	assert_int_equal(l->has & REPORT_LOCKS_tallies, REPORT_LOCKS_tallies);
	assert_int_equal(l->has & (REPORT_LOCKS_events | REPORT_LOCKS_path), 0);
	assert_int_equal(x->use.acquired, 1600);
	assert_int_equal(x->nr_threads, 2);
	assert_int_equal(x->use.hold.nr, 200);
	assert_int_equal(x->use.contended, 20);
	assert_int_equal(l->dynamic.hold[10], 200);
	assert_int_equal(l->floor_stamps_ps, 42000);
	assert_string_equal(l->mode, "sampled");
	/* the estimate: mean 1500 ns of 1600 holds, give or take 1600 * 200 / sqrt(200) * sqrt(7/8)
	 */
	assert_near(x->use.hold_variance, 1600.0 * 1600 * 200 * 200 / 200 * 7 / 8,
		1600.0 * 1600 * 200 * 200 / 200 * 0.02);
	json_t *j = report_locks_json(l);
	const json_t *row =
		json_array_get(json_object_get(json_object_get(j, "result"), "locks"), 0);
	assert_int_equal(json_integer_value(json_object_get(row, "held_ns")), 1600 * 1500);
	assert_true(json_is_true(json_object_get(row, "held_estimated")));
	assert_null(json_object_get(row, "path_share"));
	json_decref(j);
	report_locks_free(l);
	finish(&b);
}

static void out_of_memory(void **state)
{
	(void)state;
	struct bench b;
	nested(&b);
	struct report_run run = {.reader = b.reader, .trace_path = b.path};
	struct report_locks_options o = {.size = sizeof o, .nr_gains_max = 1};
	unsigned refused = 0;
	for (uint64_t n = 1; n < 200; n++) { /* some can be done without: then nothing is missing */
		struct report_locks *l = NULL;
		enum base_status s = WITHOUT_NTH(n, report_locks_build(&run, &o, &l, &b.err));
		refused += s == BASE_ERR_NOMEM;
		if (s != BASE_OK)
			continue;
		assert_int_equal(l->all.acquired, 4);
		assert_int_equal(l->nr_locks, 2);
		assert_int_equal(l->nr_threads, 2);
		/* a call whose text could not be kept has a row of its own */
		assert_in_range(l->lock[0].nr_sites + l->lock[1].nr_sites, 3, 4);
		report_locks_free(l);
	}
	assert_true(refused > 50);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_locks_are_not_counted_twice),
		cmocka_unit_test(path_and_prediction),
		cmocka_unit_test(no_more_than_the_holds),
		cmocka_unit_test(what_is_done_under_a_lock),
		cmocka_unit_test(condition_variables),
		cmocka_unit_test(held_to_the_end),
		cmocka_unit_test(tallies),
		cmocka_unit_test(tallies_each),
		cmocka_unit_test(tallies_unequal),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

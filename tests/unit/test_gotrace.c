/* SPDX-License-Identifier: Apache-2.0 */
/* test_gotrace.c - both formats of Go's execution trace. Known answers; damage; no memory. */
#include "gotrace/gotrace.h"
#include "gotrace_fixture.h"

#include "base/base.h"

static struct gotrace *read_of(const struct bytes *o)
{
	struct base_err err = {0};
	struct gotrace *t = NULL;
	enum base_status s = gotrace_read(o->b, o->nr, &t, &err);
	if (s != BASE_OK)
		print_error("%s\n", err.cause[0]);
	assert_int_equal(s, BASE_OK);
	return t;
}

static const char *function_of(const struct gotrace *t, uint32_t stack, uint32_t i)
{
	assert_true(stack < t->nr_stacks && i < t->stack[stack].nr);
	uint32_t frame = t->stack_frame[t->stack[stack].first + i];
	return base_strtab_get(t->texts, t->frame[frame].function);
}

/* The events that both formats tell of, but for those at the beginning. */
static void is_hand_over(const struct gotrace *t, bool has_times)
{
	static const struct {
		uint64_t time_ns, g, other;
		enum gotrace_kind kind;
		uint32_t p;
	} want[] = {{100, 1, 2, GOTRACE_create, 0}, {150, 2, 0, GOTRACE_start, 1},
		{200, 1, 0, GOTRACE_block, 0}, {1000, 2, 1, GOTRACE_unblock, 1},
		{1010, 1, 0, GOTRACE_start, 0}, {1100, 2, 0, GOTRACE_end, 1}};
	size_t at = 0;
	while (at < t->nr_events && t->event[at].kind != GOTRACE_create)
		at++;
	assert_int_equal(t->nr_events - at, BASE_COUNT(want));
	for (size_t i = 0; i < BASE_COUNT(want); i++) {
		const struct gotrace_event *e = &t->event[at + i];
		assert_int_equal(e->kind, want[i].kind);
		assert_int_equal(e->g, want[i].g);
		assert_int_equal(e->other, want[i].other);
		assert_int_equal(e->p, want[i].p);
		if (has_times)
			assert_int_equal(e->time_ns, want[i].time_ns);
	}
	const struct gotrace_event *block = &t->event[at + 2], *wake = &t->event[at + 3];
	assert_string_equal(base_strtab_get(t->texts, block->text), "chan receive");
	assert_string_equal(function_of(t, block->stack, 0), "runtime.chanrecv1");
	assert_string_equal(function_of(t, block->stack, 1), "main.main");
	assert_string_equal(function_of(t, wake->stack, 0), "example.com/x/y.worker");
	assert_string_equal(function_of(t, t->event[at].new_stack, 0), "example.com/x/y.worker");
	assert_int_equal(t->nr_processors, 2);
	assert_int_equal(t->nr_disordered, 0);
	assert_int_equal(t->nr_damaged, 0);
	assert_false(t->is_cut);
}

static void (*const format[])(struct bytes *, uint64_t) = {hand_over_v1, hand_over_v2};

static void events_have_their_times_and_stacks(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(format); i++) {
		struct bytes o = {.nr = 0};
		format[i](&o, 0);
		struct gotrace *t = read_of(&o);
		is_hand_over(t, true);
		gotrace_free(t);
	}
}

/* The worker's clock is 60 behind: it seems to start before it is made. */
static void numbers_order_what_clocks_do_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(format); i++) {
		struct bytes o = {.nr = 0};
		format[i](&o, 60);
		struct gotrace *t = read_of(&o);
		is_hand_over(t, false);
		for (size_t k = 1; k < t->nr_events; k++)
			assert_true(t->event[k].time_ns >= t->event[k - 1].time_ns);
		gotrace_free(t);
	}
}

/* Without its beginning the wake follows from nothing: it is taken, and counted. */
static void missing_events_are_counted(void **state)
{
	(void)state;
	struct bytes o = {.nr = 0}, in = {.nr = 0};
	header(&o, "go 1.22 trace");
	EVENT_OF(&in, 10, 0, 1, 1);
	EVENT_OF(&in, 16, 0, 2, 1);
	EVENT_OF(&in, 20, 100, CHAN_RECEIVE, IN_WORKER);
	batch_v2(&o, 1, 11, 5000, &in);
	tables_v2(&o, 1);
	struct gotrace *t = read_of(&o);
	assert_int_equal(t->nr_events, 2);
	assert_int_equal(t->nr_disordered, 2);
	gotrace_free(t);
}

static void others_are_refused(void **state)
{
	static const char *const head[] = {"", "go 1.22 trace?", "go 2.22 trace", "go 1.7 trace",
		"go 1. trace", "{\"traceEvents\":[]}"};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(head); i++) {
		struct bytes o = {.nr = 0};
		struct gotrace *t;
		header(&o, head[i]);
		assert_int_equal(gotrace_read(o.b, o.nr, &t, NULL), BASE_ERR_FOREIGN);
		assert_null(t);
	}
}

/* Refused, or read as far as it goes: in its own memory, so that a step beyond it is seen. */
static void cut_anywhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(format); i++) {
		struct bytes o = {.nr = 0};
		size_t nr_read = 0;
		format[i](&o, 0);
		for (size_t nr = 0; nr < o.nr; nr++) {
			uint8_t *own = base_alloc(nr + 1);
			struct gotrace *t = NULL;
			assert_non_null(own);
			memcpy(own, o.b, nr);
			enum base_status s = gotrace_read(own, nr, &t, NULL);
			assert_true(s == BASE_OK || s == BASE_ERR_FOREIGN);
			assert_true((s == BASE_OK) == (t != NULL));
			nr_read += s == BASE_OK;
			gotrace_free(t);
			base_free(own);
		}
		assert_true(i == 0 || nr_read > 0); /* version 1 has its clock at the end */
	}
}

static void no_memory_is_an_error(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(format); i++) {
		struct bytes o = {.nr = 0};
		enum base_status s = BASE_ERR_NOMEM;
		format[i](&o, 0);
		for (unsigned nth = 1; s != BASE_OK && nth < 1000; nth++) {
			struct gotrace *t = NULL;
			base_alloc_fail_nth(nth);
			s = gotrace_read(o.b, o.nr, &t, NULL);
			base_alloc_fail_nth(0);
			assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
			gotrace_free(t);
		}
		assert_int_equal(s, BASE_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_have_their_times_and_stacks),
		cmocka_unit_test(numbers_order_what_clocks_do_not),
		cmocka_unit_test(missing_events_are_counted),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(no_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

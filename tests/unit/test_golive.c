/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_golive.c - a Go program's file in miniature (tests/fuzz/corpus/golive: three functions, one of which is a wrapper, and an inlined call), whose
 * answers are known; records of our code as Go's events.
 */
#include "golive/private.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = 0x401000, WORK = TEXT + 16, WRAPPER = TEXT + 48, FILE_BYTES = 1 << 14 };

static uint8_t file[FILE_BYTES];

static struct golive_image image_of(const char *name)
{
	const char *source = getenv("LONGPOLE_SOURCE");
	struct golive_image im;
	struct base_err err = {0};
	char path[4096];
	snprintf(path, sizeof path, "%s/tests/fuzz/corpus/golive/%s", source ? source : ".", name);
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	size_t nr = fread(file, 1, sizeof file, f);
	fclose(f);
	assert_int_equal(golive_image_read(&im, file, nr, &err), BASE_OK);
	return im;
}

static void place_is(
	const struct golive_place *p, const char *function, const char *name, unsigned line)
{
	assert_string_equal(p->function, function);
	assert_string_equal(p->file, name);
	assert_int_equal(p->line, line);
}

static void has_its_functions(const char *name, unsigned version)
{
	struct golive_image im = image_of(name);
	struct golive_place p[4];
	assert_int_equal(im.version, version);
	assert_true(im.is_static);
	assert_int_equal(golive_image_function(&im, "runtime.casgstatus"), TEXT);
	assert_int_equal(golive_image_function(&im, "main.none"), 0);
	assert_int_equal(golive_image_places(&im, TEXT + 3, p, 4), 1);
	place_is(p, "runtime.casgstatus", "/go/proc.go", 100);
	assert_int_equal(golive_image_places(&im, WORK + 20, p, 4), 1);
	place_is(p, "main.work", "/src/main.go", 11);
	/* what is inlined there was called at WORK + 4 */
	assert_int_equal(golive_image_places(&im, WORK + 9, p, 4), 2);
	place_is(&p[0], "main.inlined", "/src/main.go", 40);
	place_is(&p[1], "main.work", "/src/main.go", 10);
	assert_int_equal(golive_image_places(&im, TEXT + 64, p, 4), 0);
	assert_int_equal(golive_image_wrapped(&im, WRAPPER), WORK);
	assert_int_equal(golive_image_wrapped(&im, WORK), WORK);
}

static void functions_of_both_tables(void **state)
{
	(void)state;
	has_its_functions("go1.19", 19);
	has_its_functions("go1.26", 26);
}

static void reasons_are_found(void **state)
{
	struct golive_image im = image_of("go1.19");
	char text[32];
	uint64_t at = golive_image_reasons(&im);
	(void)state;
	assert_true(golive_image_reason(&im, at, 1, text, sizeof text));
	assert_string_equal(text, "GC assist marking");
	assert_true(golive_image_reason(&im, at, 2, text, sizeof text));
	assert_string_equal(text, "chan receive");
	assert_false(golive_image_reason(&im, at, 2, text, 4));
	assert_int_equal(golive_image_reason_number(&im, "GC worker (idle)"), 3);
	assert_true(golive_image_reason_number(&im, "GC worker") == UINT64_MAX);
	assert_false(golive_image_reason(&im, at, 1000, text, sizeof text));
}

static void damage_is_an_error(void **state)
{
	struct golive_image im = image_of("go1.19");
	struct base_err err = {0};
	(void)state;
	for (size_t nr = 0; nr < im.nr_bytes; nr += 7)
		if (golive_image_read(&im, file, nr, &err) == BASE_OK)
			(void)golive_image_function(&im, "runtime.casgstatus");
	assert_int_equal(
		golive_image_read(&im, (const uint8_t *)"no program", 10, &err), BASE_ERR_FOREIGN);
}

/* In the order of writing: A makes B and waits; B wakes it and ends. A's call of the kernel loses its P. */
static struct gotrace *hand_over(const struct golive_image *im)
{
	enum { A = 0x100, B = 0x200 };
	static const struct golive_record record[] = {
		{.ticks = 11, .g = A, .before = 6, .after = 1, .what = WORK},
		{.ticks = 12, .g = A, .before = 1, .after = 2, .goid = 1},
		{.ticks = 20,
			.g = B,
			.before = 6,
			.after = 1,
			.by = A,
			.what = WRAPPER,
			.pc = {WORK + 21}},
		{.ticks = 40, .g = B, .before = 1, .after = 2, .goid = 7, .p = 1, .tid = 2},
		{.ticks = 30,
			.g = A,
			.before = 2,
			.after = 4,
			.goid = 1,
			.reason = 2,
			.room = 8,
			.by = A,
			.pc = {WORK + 10, WORK + 21}},
		{.ticks = 50,
			.g = A,
			.before = 4,
			.after = 1,
			.goid = 1,
			.p = 1,
			.by = B,
			.pc = {WORK + 21}},
		{.ticks = 51, .g = A, .before = 1, .after = 2, .goid = 1},
		{.ticks = 60,
			.g = B,
			.before = 2,
			.after = 6,
			.goid = 7,
			.p = 1,
			.tid = 2,
			.by = B},
		{.ticks = 70,
			.g = A,
			.before = 2,
			.after = 4,
			.goid = 1,
			.by = A}, /* it only says so */
		{.ticks = 71, .g = A, .before = 4, .after = 2, .goid = 1, .by = A},
		{.ticks = 80, .g = A, .before = 2, .after = 3, .goid = 1, .by = A},
		{.ticks = 90, .g = A, .before = 3, .after = 2, .goid = 1, .p = 1, .by = A},
	};
	/* Of B's thread while B ran there; in a function without a frame; of the scheduler; of a thread that is not known. */
	static uint64_t pc[] = {TEXT, WORK, WORK, WORK};
	static struct golive_sample sample[] = {
		{.time_ns = 70, .tid = 2, .nr = 1, .first = 0, .top = WORK + 21},
		{.time_ns = 74, .tid = 2, .nr = 1, .first = 1, .top = WORK + 21},
		{.time_ns = 125, .tid = 2, .nr = 1, .first = 2},
		{.time_ns = 126, .tid = 9, .nr = 1, .first = 3}};
	const struct golive_samples samples = {
		.sample = sample, .nr = BASE_COUNT(sample), .pc = pc, .nr_pcs = BASE_COUNT(pc)};
	static struct golive_record copy[BASE_COUNT(record)];
	const struct os_clock clock = {
		.tsc_origin = 10, .factor = UINT64_C(2) << OS_CLOCK_FACTOR_SHIFT};
	struct gotrace *t = NULL;
	struct base_err err = {0};
	memcpy(copy, record, sizeof record);
	const struct golive_seen seen = {.image = im,
		.record = copy,
		.nr_records = BASE_COUNT(copy),
		.samples = &samples,
		.clock = &clock};
	return golive_events(&seen, &t, &err) == BASE_OK ? t : NULL;
}

static void records_become_events(void **state)
{
	static const struct {
		uint64_t time_ns, g, other;
		enum gotrace_kind kind;
		uint32_t p;
	} want[] = {{2, 1, 0, GOTRACE_exists, GOTRACE_NO_P}, {4, 1, 0, GOTRACE_start, 0},
		{20, 1, 7, GOTRACE_create, GOTRACE_NO_P}, {40, 1, 0, GOTRACE_block, 0},
		{60, 7, 0, GOTRACE_start, 1}, {70, 7, 0, GOTRACE_sample, GOTRACE_NO_P},
		{74, 7, 0, GOTRACE_sample, GOTRACE_NO_P}, {80, 7, 1, GOTRACE_unblock, 1},
		{82, 1, 0, GOTRACE_start, 0}, {100, 7, 0, GOTRACE_end, 1},
		{140, 1, 0, GOTRACE_call_begin, 0}, {160, 1, 0, GOTRACE_call_away, 0},
		{160, 1, 0, GOTRACE_call_return, 0}, {160, 1, 0, GOTRACE_start, 1}};
	struct golive_image im = image_of("go1.19");
	struct gotrace *t = hand_over(&im);
	(void)state;
	assert_non_null(t);
	assert_int_equal(t->nr_events, BASE_COUNT(want));
	for (size_t i = 0; i < BASE_COUNT(want); i++) {
		assert_int_equal(t->event[i].kind, want[i].kind);
		assert_int_equal(t->event[i].time_ns, want[i].time_ns);
		assert_int_equal(t->event[i].g, want[i].g);
		assert_int_equal(t->event[i].other, want[i].other);
		assert_int_equal(t->event[i].p, want[i].p);
	}
	assert_string_equal(base_strtab_get(t->texts, t->event[3].text), "chan receive");
	const struct gotrace_stack *stack = &t->stack[t->event[3].stack];
	assert_int_equal(stack->nr, 3);
	assert_string_equal(
		base_strtab_get(t->texts, t->frame[t->stack_frame[stack->first]].function),
		"main.inlined");
	assert_int_equal(t->event[3].room, 8);
	/* its own place is exact: nothing is inlined there */
	stack = &t->stack[t->event[5].stack];
	assert_int_equal(stack->nr, 1);
	/* ... and in a function without a frame the top of the stack is where it was called from */
	assert_int_equal(t->stack[t->event[6].stack].nr, 2);
	/* what B begins in is what its wrapper calls */
	stack = &t->stack[t->event[2].new_stack];
	assert_string_equal(
		base_strtab_get(t->texts, t->frame[t->stack_frame[stack->first]].function),
		"main.work");
	assert_int_equal(t->nr_processors, 2);
	gotrace_free(t);
}

static struct gotrace *gotrace_of(const struct golive_image *im, struct golive_record *r, size_t nr)
{
	const struct os_clock clock = {.factor = UINT64_C(1) << OS_CLOCK_FACTOR_SHIFT};
	struct gotrace *t = NULL;
	struct base_err err = {0};
	const struct golive_seen seen = {
		.image = im, .record = r, .nr_records = nr, .clock = &clock};
	assert_int_equal(golive_events(&seen, &t, &err), BASE_OK);
	return t;
}

/* The collector's worker comes to the P that a goroutine leaves: that one woke it. It says that it waits when it marks; one that allocates does, too. */
static void the_collector_follows_who_left(void **state)
{
	enum { A = 0x100, WORKER = 0x200, ASSIST = 1, RECEIVE = 2, IDLE = 3 };
	static struct golive_record record[] = {
		{.ticks = 1, .g = A, .before = 6, .after = 1, .what = WORK},
		{.ticks = 2, .g = A, .before = 1, .after = 2, .goid = 1},
		{.ticks = 3, .g = WORKER, .before = 6, .after = 1, .by = A, .what = WORK},
		{.ticks = 4, .g = WORKER, .before = 1, .after = 2, .goid = 5, .p = 1},
		{.ticks = 5,
			.g = WORKER,
			.before = 2,
			.after = 4,
			.goid = 5,
			.p = 1,
			.reason = IDLE},
		/* (the reason is the one before, until it is back) */
		{.ticks = 10, .g = A, .before = 2, .after = 4, .goid = 1, .reason = RECEIVE},
		{.ticks = 12, .g = A, .before = 4, .after = 2, .goid = 1, .reason = ASSIST},
		{.ticks = 20, .g = A, .before = 2, .after = 1, .goid = 1},
		{.ticks = 22, .g = WORKER, .before = 4, .after = 1, .goid = 5, .reason = IDLE},
		{.ticks = 23, .g = WORKER, .before = 1, .after = 2, .goid = 5, .reason = IDLE},
		{.ticks = 24, .g = WORKER, .before = 2, .after = 4, .goid = 5, .reason = IDLE},
		{.ticks = 25, .g = WORKER, .before = 4, .after = 2, .goid = 5, .reason = IDLE},
		{.ticks = 30, .g = WORKER, .before = 2, .after = 4, .goid = 5, .reason = IDLE},
		/* nobody had that P since */
		{.ticks = 40, .g = WORKER, .before = 4, .after = 1, .goid = 5, .reason = IDLE}};
	static const struct {
		uint64_t time_ns, g, other;
		enum gotrace_kind kind;
	} want[] = {{1, 1, 0, GOTRACE_exists}, {2, 1, 0, GOTRACE_start}, {3, 1, 5, GOTRACE_create},
		{4, 5, 0, GOTRACE_start}, {5, 5, 0, GOTRACE_block},
		{10, 1, 0, GOTRACE_assist_begin}, {12, 1, 0, GOTRACE_assist_end},
		{20, 1, 5, GOTRACE_unblock}, {20, 1, 0, GOTRACE_stop}, {23, 5, 0, GOTRACE_start},
		{30, 5, 0, GOTRACE_block}, {40, 0, 5, GOTRACE_unblock}};
	struct golive_image im = image_of("go1.26");
	struct gotrace *t = gotrace_of(&im, record, BASE_COUNT(record));
	(void)state;
	assert_int_equal(t->nr_events, BASE_COUNT(want));
	for (size_t i = 0; i < BASE_COUNT(want); i++) {
		assert_int_equal(t->event[i].kind, want[i].kind);
		assert_int_equal(t->event[i].time_ns, want[i].time_ns);
		assert_int_equal(t->event[i].g, want[i].g);
		assert_int_equal(t->event[i].other, want[i].other);
	}
	gotrace_free(t);
}

static void no_memory_is_an_error(void **state)
{
	struct golive_image im = image_of("go1.19");
	struct gotrace *t = NULL;
	(void)state;
	for (unsigned nth = 1; !t && nth < 1000; nth++) {
		base_alloc_fail_nth(nth);
		t = hand_over(&im);
	}
	base_alloc_fail_nth(0);
	assert_non_null(t);
	gotrace_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_both_tables),
		cmocka_unit_test(reasons_are_found),
		cmocka_unit_test(damage_is_an_error),
		cmocka_unit_test(records_become_events),
		cmocka_unit_test(the_collector_follows_who_left),
		cmocka_unit_test(no_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

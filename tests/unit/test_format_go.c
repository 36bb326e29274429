/* SPDX-License-Identifier: Apache-2.0 */
/* test_format_go.c - Go's execution traces as recordings: known answers of both formats; cut
 * anywhere; no memory. */
#include "model_fixture.h"

#include "format/format.h"
#include "format_memory.h"
#include "gotrace_fixture.h"

static void (*const format[])(struct bytes *, uint64_t) = {hand_over_v1, hand_over_v2};

static enum base_status import(struct bench *b, const uint8_t *bytes, size_t nr)
{
	static const struct trace_info info = {
		.size = sizeof info, .host = "h", .command = "c", .tool = "t"};
	struct memory memory = {bytes, nr};
	struct format_source from = memory_source(&memory, "dir/shop.trace");
	struct format_import_options o = {.tick_ps = 1};
	struct base_str notes = {0};
	bench_open(b, 1, &info);
	enum base_status s =
		format_import(format_import_find("go"), &from, b->w, &o, &notes, &b->err);
	base_str_fini(&notes);
	return s;
}

/* Main waits for its worker, which runs from 150 to 1000: the path is the worker's. A few ns are
 * added where events have one time. */
static void who_woke_is_followed(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(format); i++) {
		struct bytes o = {.nr = 0};
		struct bench b;
		format[i](&o, 0);
		assert_int_equal(import(&b, o.b, o.nr), BASE_OK);
		analyse(&b);
		assert_float_equal(on_path_of(&b, "shop/y.worker", "running y.worker"), 850, 8);
		assert_float_equal(on_path(&b, "waking up on an idle processor"), 50 + 10, 8);
		assert_float_equal(on_path(&b, "running main.main"), 100 + 90, 12);
		assert_float_equal(on_path(&b, "waiting"), 0, 1e-9);
		finish(&b);
	}
}

static void says_what_was_waited_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(format); i++) {
		struct bytes o = {.nr = 0};
		struct bench b;
		bool found = false;
		format[i](&o, 0);
		assert_int_equal(import(&b, o.b, o.nr), BASE_OK);
		analyse(&b);
		for (uint32_t s = 0; s < graph_nr_states(model_graph(b.model)); s++)
			found |= !strcmp(model_state(b.model, s)->name,
				"waiting to receive from a channel in main.main");
		assert_true(found);
		finish(&b);
	}
}

static void says_how_many_processors(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(format); i++) {
		struct bytes o = {.nr = 0};
		struct format_started started;
		format[i](&o, 0);
		struct memory memory = {o.b, o.nr};
		struct format_source from = memory_source(&memory, "shop.trace");
		assert_int_equal(
			format_import_started(format_import_find("go"), &from, &started, NULL),
			BASE_OK);
		assert_int_equal(started.nr_processors, 2);
		assert_true(started.is_program);
		base_str_fini(&started.command);
	}
}

static void cut_anywhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(format); i++) {
		struct bytes o = {.nr = 0};
		format[i](&o, 0);
		for (size_t nr = 0; nr < o.nr; nr += 3) {
			struct bench b;
			enum base_status s = import(&b, o.b, nr);
			assert_true(s == BASE_OK || s == BASE_ERR_FOREIGN);
			if (s == BASE_OK) {
				analyse(&b);
				finish(&b);
				continue;
			}
			assert_int_equal(trace_writer_close(b.w, NULL), BASE_OK);
			unlink(b.path);
		}
	}
}

static void no_memory_is_an_error(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(format); i++) {
		struct bytes o = {.nr = 0};
		bool done = false;
		format[i](&o, 0);
		for (unsigned nth = 1; !done; nth++) {
			struct memory memory = {o.b, o.nr};
			struct format_source from = memory_source(&memory, "shop.trace");
			struct format_import_options options = {.tick_ps = 1};
			struct base_str notes = {0};
			struct bench b;
			start(&b);
			base_alloc_fail_nth(nth);
			enum base_status s = format_import(
				format_import_find("go"), &from, b.w, &options, &notes, &b.err);
			base_alloc_fail_nth(0);
			done = s == BASE_OK && !notes.failed;
			assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
			assert_true(nth < 1000);
			(void)!trace_writer_close(b.w, NULL);
			base_str_fini(&notes);
			unlink(b.path);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_woke_is_followed),
		cmocka_unit_test(says_what_was_waited_for),
		cmocka_unit_test(says_how_many_processors),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(no_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_annotate.c - samples by line: inlining, callers, recursion, files that are not there.
 */
#include "report_fixture.h"

#include "report/annotate.h"

#include <sys/stat.h>

static struct report_run annotate_run_of(const struct bench *b)
{
	return (struct report_run){.reader = b->reader, .trace_path = "t.lpt"};
}

static uint32_t annotate_site(
	struct bench *b, const char *function, const char *file, uint64_t line)
{
	uint32_t id = ++b->nr_sites, name = string(b, function), path = string(b, file);
	PUT(b, 0, 0, site, .site = id, .offset = id * 16);
	PUT(b, 0, 0, symbol, .site = id, .function = name, .file = path, .line = line);
	return id;
}

static char source[64];

static void annotate_write_source(void)
{
	snprintf(source, sizeof source, "/tmp/longpole-annotate-XXXXXX.c");
	int fd = mkstemps(source, 2);
	static const char text[] = "one\n\ttwo\nthree \x1b[2J\nfour\nfive\n";
	assert_true(fd >= 0 && write(fd, text, sizeof text - 1) == sizeof text - 1);
	close(fd);
}

/*
 * 10 samples: `leaf(int)` is at line 2 four times, called by `top` at its line 4 in three of them,
 * and by itself (line 3) in one of these, whose path has leaf's line 3 twice; `top` itself is at
 * line 5 twice; `top` with `small` inlined from another file (line 7) once, at line 4; `nowhere` in
 * a file that is not there, three times.
 */
static void annotate_trace(struct bench *b)
{
	annotate_write_source();
	start(b);
	uint32_t p = process(b, "prog"), leaf = annotate_site(b, "leaf(int)", source, 2),
		 again = annotate_site(b, "leaf(int)", source, 3),
		 calls = annotate_site(b, "top", source, 4),
		 top = annotate_site(b, "top", source, 5),
		 with = annotate_site(b, "top", "/nonexistent/small.h", 7),
		 gone = annotate_site(b, "nowhere", "/nonexistent/gone.c", 9);
	uint32_t small = string(b, "small"), file = string(b, source);
	PUT(b, 0, 0, inlined, .inlined = 1, .site = with, .function = small, .file = file,
		.line = 4);
	PUT(b, 0, 0, stack, .stack = 1, .parent = 0, .site = calls);
	PUT(b, 0, 0, stack, .stack = 2, .parent = 1, .site = again);
	PUT(b, 0, 0, stack, .stack = 3, .parent = 2, .site = again);
	stream(b, p);
	PUT(b, 0, 1, process_begin, .token = 0);
	PUT(b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	uint64_t at = 10;
	const struct {
		uint32_t site, stack, nr;
	} sampled[] = {
		{leaf, 0, 1}, {leaf, 1, 2}, {leaf, 3, 1}, {top, 0, 2}, {with, 0, 1}, {gone, 0, 3}};
	for (size_t i = 0; i < BASE_COUNT(sampled); i++)
		for (uint32_t k = 0; k < sampled[i].nr; k++, at += 10)
			PUT(b, at, 1, sample, .site = sampled[i].site, .stack = sampled[i].stack);
	end(b, 1000);
}

static struct report_annotation *annotate_of(struct bench *b, const char *function)
{
	struct report_run run = annotate_run_of(b);
	struct report_annotate_options opts = {.function = function, .nr_functions = 10};
	struct report_annotation *a = NULL;
	assert_int_equal(report_annotate_build(&run, &opts, &a, &b->err), BASE_OK);
	return a;
}

static void annotate_line_is(
	const struct report_annotated_file *f, uint64_t line, uint64_t nr_own, uint64_t nr_all)
{
	for (size_t i = 0; i < f->nr_sampled; i++)
		if (f->sampled[i].line == line) {
			assert_int_equal(f->sampled[i].nr_own, nr_own);
			assert_int_equal(f->sampled[i].nr_all, nr_all);
			return;
		}
	fail_msg("no line %d", (int)line);
}

static void counts_lines(void **state)
{
	(void)state;
	struct bench b;
	annotate_trace(&b);
	struct report_annotation *a = annotate_of(&b, "leaf"); /* without its parameters */
	assert_int_equal(a->nr_samples, 10);
	assert_int_equal(a->nr_functions, 1);
	assert_string_equal(a->function[0].function, "leaf(int)");
	assert_int_equal(a->function[0].nr_own, 4);
	assert_int_equal(a->function[0].nr_all, 4);
	assert_int_equal(a->function[0].nr_files, 1);
	annotate_line_is(&a->function[0].file[0], 2, 4, 4);
	annotate_line_is(&a->function[0].file[0], 3, 0, 1); /* twice in one path: once */
	assert_string_equal(a->function[0].file[0].text[1], "    two");
	assert_null(strchr(a->function[0].file[0].text[2], '\x1b'));
	report_annotation_free(a);

	a = annotate_of(&b, "top");
	assert_int_equal(a->function[0].nr_own, 2);
	assert_int_equal(a->function[0].nr_all, 6); /* 2 of its own, 3 through calls, 1 inlined */
	annotate_line_is(&a->function[0].file[0], 4, 0, 4);
	annotate_line_is(&a->function[0].file[0], 5, 2, 2);
	report_annotation_free(a);

	a = annotate_of(&b, "small");
	assert_int_equal(a->function[0].nr_own, 1);
	assert_int_equal(a->function[0].nr_places, 0); /* it has no code of its own */
	annotate_line_is(&a->function[0].file[0], 7, 1, 1);
	report_annotation_free(a);
	unlink(source);
	finish(&b);
}

static void says_what_it_cannot_read(void **state)
{
	(void)state;
	struct bench b;
	struct base_str text = {0};
	const struct report_style style = {.columns = 100};
	annotate_trace(&b);
	struct report_annotation *a = annotate_of(&b, "nowhere");
	assert_null(a->function[0].file[0].text);
	report_annotate_text(&text, a, &style);
	assert_non_null(strstr(base_str_text(&text), "/nonexistent/gone.c: No such file"));
	assert_non_null(strstr(base_str_text(&text), "30 %"));
	report_annotation_free(a);
	assert_non_null(strstr(base_str_text(&text), "source not shown"));
	base_str_fini(&text);
	a = annotate_of(&b, NULL); /* all of them, most samples first */
	assert_int_equal(a->nr_functions, 4);
	assert_string_equal(a->function[0].function, "top");
	report_annotation_free(a);
	a = annotate_of(&b, "o"); /* a part: of top and nowhere */
	assert_int_equal(a->nr_functions, 2);
	report_annotation_free(a);
	struct report_run run = annotate_run_of(&b);
	struct report_annotate_options opts = {.function = "xyz", .nr_functions = 10};
	assert_int_equal(report_annotate_build(&run, &opts, &a, &b.err), BASE_ERR_NOTFOUND);
	assert_non_null(strstr(b.err.cause[0], "top, leaf(int), nowhere"));
	run.from_ns = 41000; /* the first four are left out */
	opts.function = "top";
	assert_int_equal(report_annotate_build(&run, &opts, &a, &b.err), BASE_OK);
	assert_int_equal(a->nr_samples, 6);
	assert_int_equal(a->function[0].nr_all, 3);
	report_annotation_free(a);
	unlink(source);
	finish(&b);
}

/* A trace that names a file of secrets is not shown any. */
static void reads_sources_only(void **state)
{
	(void)state;
	static const char *const paths[] = {"/etc/passwd", "/usr/include/../../etc/passwd",
		"/dev/zero", "/etc/x.c/../passwd", ""};
	for (size_t i = 0; i < BASE_COUNT(paths); i++) {
		struct bench b;
		start(&b);
		uint32_t p = process(&b, "prog"), at = annotate_site(&b, "f", paths[i], 1);
		stream(&b, p);
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 0, 1, thread_begin, .token = 0, .handle = 1000);
		PUT(&b, 10, 1, sample, .site = at);
		end(&b, 1000);
		struct report_annotation *a = annotate_of(&b, "f");
		assert_null(a->function[0].file[0].text);
		assert_non_null(a->function[0].file[0].why);
		report_annotation_free(a);
		finish(&b);
	}
}

static void survives_lack_of_memory(void **state)
{
	(void)state;
	struct bench b;
	annotate_trace(&b);
	struct report_run run = annotate_run_of(&b);
	struct report_annotate_options opts = {.nr_functions = 4};
	struct report_annotation *a = NULL;
	enum base_status s = BASE_ERR_NOMEM;
	for (uint64_t n = 1; s != BASE_OK; n++) {
		assert_true(n < 3000);
		base_alloc_fail_nth(n);
		s = report_annotate_build(&run, &opts, &a, &b.err);
		base_alloc_fail_nth(0);
		assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
	}
	report_annotation_free(a);
	unlink(source);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_lines),
		cmocka_unit_test(says_what_it_cannot_read),
		cmocka_unit_test(reads_sources_only),
		cmocka_unit_test(survives_lack_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_counted.c - one and many, in tables' sentences and in formats. */
#include "test.h"

#include <inttypes.h>
#include <string.h>

#include "base/base.h"

static void sentences_have_a_singular(void **state)
{
	static const char sentence[] = "of %s {wait that was|waits that were} seen {it|they} ended";
	struct base_str s = {0};

	(void)state;
	base_str_add_counted(&s, sentence, 1);
	assert_string_equal(base_str_text(&s), "of 1 wait that was seen it ended");
	base_str_reset(&s);
	base_str_add_counted(&s, sentence, 1200);
	assert_string_equal(base_str_text(&s), "of 1,200 waits that were seen they ended");
	base_str_reset(&s);
	base_str_add_counted(&s, "nothing to count", 0);
	assert_string_equal(base_str_text(&s), "nothing to count");
	base_str_reset(&s);
	base_str_add_counted(&s, "{} %s {of {it}", 1);
	assert_string_equal(base_str_text(&s), "{} 1 {of {it}");
	base_str_fini(&s);
}

static void assert_formatted(const char *expected, const char *fmt, ...) BASE_PRINTF(2, 3);

static void assert_formatted(const char *expected, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, fmt);
	int n = base_vformat(text, sizeof text, fmt, ap);
	va_end(ap);
	assert_string_equal(text, expected);
	assert_int_equal(n, strlen(expected));
}

/* Each noun follows the count before it, whatever arguments of other kinds lie between. */
static void formats_have_a_singular(void **state)
{
	(void)state;
	assert_formatted(
		"1 span of 2 traces", "%zu {span|spans} of %u {trace|traces}", (size_t)1, 2U);
	assert_formatted(
		"2 spans of 1 trace", "%zu {span|spans} of %u {trace|traces}", (size_t)2, 1U);
	assert_formatted("0 spans", "%d {span|spans}", 0);
	assert_formatted("-1 spans", "%d {span|spans}", -1);
	assert_formatted("1,200 runs are, 1 run is",
		"%s {run|runs} {is|are}, %s {run|runs} {is|are}", "1,200", "1");
	assert_formatted("1 thread of x (0.5, c, 0x10, 7) waits",
		"%llu {thread|threads} of %s (%.1f, %c, %#x, %-*o) {waits|wait}", 1ULL, "x", 0.5,
		'c', 0x10, 1, 7);
	assert_formatted("1 host (1!)", "%.*s {host|hosts} (%hhu!)", 1, "12", (unsigned char)1);
	assert_formatted("100 % of    1 run", "%d %% of %4" PRIu64 " {run|runs}", 100, UINT64_C(1));
	assert_formatted("4294967297 runs", "%" PRIu64 " {run|runs}", (UINT64_C(1) << 32) + 1);
	/* JSON's brackets, and a name that looks like a noun, stay */
	assert_formatted("{\"a\":1|2}", "{\"a\":%d|%d}", 1, 2);
	assert_formatted("{a|b} of 1 run", "%s of %d {run|runs}", "{a|b}", 1);

	struct base_str s = {0};
	base_str_addf(&s, "%d {page|pages}", 1);
	assert_string_equal(base_str_text(&s), "1 page");
	base_str_fini(&s);
	struct base_err err = {0};
	assert_int_equal(base_fail(&err, BASE_ERR_LIMIT, "%d {node|nodes}", 1), BASE_ERR_LIMIT);
	assert_string_equal(err.cause[0], "1 node");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sentences_have_a_singular),
		cmocka_unit_test(formats_have_a_singular),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_lines.c - sentences in lines: where they are broken; functions that sentences name. */
#include "test.h"

#include "report/private.h"

static void a_number_keeps_its_unit(void **state)
{
	(void)state;
	struct base_str out = {0};
	struct report_style st = {.columns = 24};
	report_wrap(&out, &st, "TIME", 6, "of holds, nested 0 ns waited, 12 % of 3 streams");
	assert_string_equal(base_str_text(&out), "TIME  of holds, nested\n"
						 "      0 ns waited, 12 %\n"
						 "      of 3 streams\n");
	base_str_reset(&out);
	st.columns = 13;
	report_wrap(&out, &st, "TIME", 6, "took 12 % of 3 streams");
	assert_string_equal(base_str_text(&out), "TIME  took\n"
						 "      12 % of\n"
						 "      3\n"
						 "      streams\n");
	base_str_fini(&out);
}

/* Sentences go on under their beginning; rows of tables, labels and colours stay. */
static void sentences_are_folded_and_tables_are_not(void **state)
{
	(void)state;
	struct base_str s = {0};
	struct report_style st = {.columns = 24};
	base_str_add(&s, "One sentence that is wider than this.\n"
			 "  And one that is indented, and ends so.\n"
			 "CAVEAT  no word of it is lost here.\n"
			 "\n"
			 "name     a column    another column\n"
			 "\033[1mcolours are laid out already\033[0m\n"
			 "NEXT  longpole report --all of.lpt\n"
			 "fits, and has no end");
	report_fold(&s, &st);
	assert_string_equal(base_str_text(&s), "One sentence that is\n"
					       "wider than this.\n"
					       "  And one that is\n"
					       "  indented, and ends so.\n"
					       "CAVEAT  no word of it is\n"
					       "        lost here.\n"
					       "\n"
					       "name     a column    another column\n"
					       "\033[1mcolours are laid out already\033[0m\n"
					       "NEXT  longpole report --all of.lpt\n"
					       "fits, and has no end");
	base_str_fini(&s);
}

/* What libraries compute for one function of the program is that function's. */
static void libraries_compute_for_their_caller(void **state)
{
	(void)state;
	struct report_function f[] = {
		{.name = "sin",
			.said = "sin",
			.said_where = "a.c:8",
			.caller = "price",
			.caller_where = "a.c:8",
			.share = 0.5},
		{.name = "cos",
			.said = "cos",
			.said_where = "a.c:9",
			.caller = "price",
			.caller_where = "a.c:9",
			.share = 0.38},
		{.name = "price",
			.said = "price",
			.said_where = "a.c:7",
			.caller = "",
			.caller_where = "",
			.share = 0.04},
		{.name = "exp",
			.said = "exp",
			.said_where = "a.c:20",
			.caller = "rate",
			.caller_where = "a.c:20",
			.share = 0.08},
	};
	const struct report_main of_three = report_functions_main(f, BASE_COUNT(f), 0.9);
	assert_string_equal(of_three.name, "price");
	assert_string_equal(of_three.where, "a.c:8");
	assert_string_equal(of_three.sampled, "sin");
	assert_null(report_functions_main(f, BASE_COUNT(f), 0.93).name);
	assert_null(report_functions_main(f, 1, 0.9).name);
	assert_null(report_functions_main(f, 0, 0.9).name);
	f[0].caller = ""; /* called from many: each is its own */
	assert_string_equal(report_functions_main(f, BASE_COUNT(f), 0.5).name, "sin");
	f[0].said = ""; /* and without a name nothing is called after it */
	assert_null(report_functions_main(f, BASE_COUNT(f), 0.5).name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libraries_compute_for_their_caller),
		cmocka_unit_test(a_number_keeps_its_unit),
		cmocka_unit_test(sentences_are_folded_and_tables_are_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_diff.c - longpole diff: intervals that keep their promise, and nothing called a
 * change that is none. */
#include "report_fixture.h"

#include "report/diff.h"

/* A normal deviate, near enough: the sum of twelve uniforms. */
static double deviate(uint64_t *state)
{
	double sum = -6;
	for (int i = 0; i < 12; i++) {
		*state = base_hash_u64(*state + 0x9e3779b97f4a7c15u);
		sum += (double)(*state >> 11) / 9007199254740992.0;
	}
	return sum;
}

static void medians(void **state)
{
	(void)state;
	bool failed;
	const double odd[] = {5, 1, 3}, even[] = {4, 1, 2, 3}, one[] = {7};
	assert_near(report_bootstrap_median(odd, 3, 1, &failed).value, 3, 0);
	struct report_diff_interval i = report_bootstrap_median(even, 4, 1, &failed);
	assert_near(i.value, 2.5, 0);
	assert_true(i.low >= 1 && i.low < 2.5 && i.high <= 4 && i.high > 2.5);
	i = report_bootstrap_median(one, 1, 1, &failed);
	assert_true(i.low == 7 && i.high == 7); /* no interval of one run */
	assert_false(failed);
}

static void same_seed_same_interval(void **state)
{
	(void)state;
	bool failed;
	const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {2, 4, 6, 8, 10, 12};
	struct report_diff_interval x = report_bootstrap_ratio(a, 6, b, 6, 42, &failed);
	struct report_diff_interval y = report_bootstrap_ratio(a, 6, b, 6, 42, &failed);
	assert_memory_equal(&x, &y, sizeof x);
	assert_near(x.value, 2, 0);
	assert_true(x.low < 2 && x.high > 2);
}

/* Two versions that do not differ: the interval of the ratio leaves 1 out about as seldom as it
 * says. Two that differ by 30 % with 3 % noise: it says so nearly always. */
static void coverage(void **state)
{
	(void)state;
	enum { TRIALS = 400, RUNS = 8 };
	uint64_t random = 1;
	unsigned wrong = 0, found = 0;
	for (unsigned t = 0; t < TRIALS; t++) {
		double a[RUNS], b[RUNS], c[RUNS];
		bool failed;
		for (unsigned i = 0; i < RUNS; i++) {
			a[i] = 100 + 3 * deviate(&random);
			b[i] = 100 + 3 * deviate(&random);
			c[i] = 130 + 4 * deviate(&random);
		}
		struct report_diff_interval same =
			report_bootstrap_ratio(a, RUNS, b, RUNS, t, &failed);
		struct report_diff_interval more =
			report_bootstrap_ratio(a, RUNS, c, RUNS, t, &failed);
		wrong += same.low > 1 || same.high < 1;
		found += more.low > 1;
	}
	print_message("of %d: %u false, %u found\n", TRIALS, wrong, found);
	assert_true(wrong <= TRIALS * 8 / 100);
	assert_true(found == TRIALS);
}

/* Every way to deal the values out, one by one. */
static double brute(const double *all, size_t nr, size_t nr_a)
{
	double off[1 << 10], own = 0;
	size_t nr_ways = 0, apart = 0;
	for (unsigned set = 0; set < 1u << nr; set++) {
		double sum = 0;
		if ((size_t)__builtin_popcount(set) != nr_a)
			continue;
		for (size_t i = 0; i < nr; i++)
			for (size_t k = 0; set >> i & 1 && k < nr; k++)
				sum += all[k] < all[i] ? 1 : all[k] > all[i] ? -1 : 0;
		off[nr_ways++] = sum < 0 ? -sum : sum;
		own = set == (1u << nr_a) - 1 ? off[nr_ways - 1] : own;
	}
	for (size_t i = 0; i < nr_ways; i++)
		apart += off[i] >= own;
	return (double)apart / (double)nr_ways;
}

static void ranks_by_brute_force(void **state)
{
	(void)state;
	uint64_t random = 7;
	bool failed;
	const double low[] = {1, 2, 3, 4}, high[] = {5, 6, 7, 8}, same[] = {3, 3, 3, 3};
	assert_near(report_rank_test(low, 4, high, 4, &failed), 2 / 70.0, 1e-12);
	assert_near(report_rank_test(same, 4, same, 4, &failed), 1, 0);
	for (unsigned t = 0; t < 300; t++) {
		double all[10];
		size_t nr_a = 1 + t % 6, nr = nr_a + 1 + t / 6 % 4;
		for (size_t i = 0; i < nr; i++) /* few values: ties */
			all[i] = (double)((random = base_hash_u64(random + 1)) % (t % 2 ? 4 : 100));
		assert_near(report_rank_test(all, nr_a, all + nr_a, nr - nr_a, &failed),
			brute(all, nr, nr_a), 1e-9);
	}
	/* Beyond 64 values by the normal distribution: no step there. */
	double a[40], b[40];
	for (unsigned i = 0; i < 40; i++) {
		a[i] = deviate(&random);
		b[i] = deviate(&random) + 0.5;
	}
	double exact = report_rank_test(a, 32, b, 32, &failed);
	assert_near(report_rank_test(a, 32, b, 33, &failed), exact, 0.1);
}

/* Twenty quantities of runs of the same program: in one comparison of twenty one of them is called
 * moved, not in nearly all. One that doubled stands among them with eight runs. */
static void many_quantities(void **state)
{
	(void)state;
	enum { TRIALS = 40, RUNS = 8, QUANTITIES = 20 };
	uint64_t random = 3;
	unsigned wrong = 0, found = 0;
	for (unsigned t = 0; t < TRIALS; t++) {
		struct report_diff *d = report_diff_new();
		unsigned marks = 0;
		for (unsigned v = 0; v < 2; v++) {
			assert_int_equal(report_diff_version(d, "v", NULL), BASE_OK);
			for (unsigned r = 0; r < RUNS; r++)
				for (unsigned q = 0; q < QUANTITIES; q++) {
					char key[8];
					snprintf(key, sizeof key, "q%u", q);
					double x = 100 + 9 * deviate(&random);
					assert_int_equal(
						report_diff_add(d, key, key, REPORT_UNIT_ns, true,
							t % 2 && v && !q ? 2 * x : x, NULL),
						BASE_OK);
				}
		}
		assert_int_equal(report_diff_finish(d, NULL), BASE_OK);
		for (unsigned q = 0; q < QUANTITIES; q++)
			if (strcmp(d->quantity[q].key, "q0") != 0 || t % 2 == 0)
				marks += d->quantity[q].version[1].significant;
			else
				found += d->quantity[q].version[1].significant;
		wrong += t % 2 == 0 && marks;
		report_diff_free(d);
	}
	print_message("of %d without a change: %u with a mark; of as many with one: %u\n",
		TRIALS / 2, wrong, found);
	assert_true(wrong <= 3); /* 1 expected; one by one it would be 13 */
	assert_true(found == TRIALS / 2);
}

static void quantity(struct report_diff *d, const char *label, const double *run, size_t nr)
{
	assert_int_equal(report_diff_version(d, label, NULL), BASE_OK);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(report_diff_add(d, "elapsed", "length of the run", REPORT_UNIT_ns,
					 false, run[i], NULL),
			BASE_OK);
}

static bool broken(const struct report_diff *d, const char *budget)
{
	bool yes = false;
	assert_int_equal(report_diff_budget(d, budget, &yes, NULL), BASE_OK);
	return yes;
}

static void from_nothing(void **state)
{
	(void)state;
	const double none[] = {0, 0, 0, 0}, some[] = {5, 6, 7, 8};
	struct report_diff *d = report_diff_new();
	struct base_str text = {0};
	quantity(d, "a", none, 4);
	quantity(d, "b", some, 4);
	assert_int_equal(report_diff_finish(d, NULL), BASE_OK);
	assert_true(d->quantity[0].version[1].significant && !d->quantity[0].version[1].compared);
	assert_true(broken(d, "elapsed=+5%"));
	assert_false(broken(d, "elapsed=-5%"));
	report_diff_finding(&text, d);
	assert_non_null(strstr(base_str_text(&text), "rose: from 0 ns to "));
	base_str_fini(&text);
	report_diff_free(d);
}

static void budgets(void **state)
{
	(void)state;
	const double a[] = {100, 101, 99, 100}, b[] = {110, 111, 109, 110};
	struct report_diff *d = report_diff_new();
	bool yes;
	quantity(d, "a", a, 4);
	quantity(d, "b", b, 4);
	assert_int_equal(report_diff_finish(d, NULL), BASE_OK);
	assert_true(d->quantity[0].version[1].significant);
	assert_true(broken(d, "elapsed=+5%"));
	assert_false(broken(d, "elapsed=+15%"));
	assert_false(broken(d, "elapsed=-1%"));
	assert_int_equal(report_diff_budget(d, "elapsed", &yes, NULL), BASE_ERR_USAGE);
	assert_int_equal(report_diff_budget(d, "elapsed=5%", &yes, NULL), BASE_ERR_USAGE);
	assert_int_equal(report_diff_budget(d, "nosuch=+5%", &yes, NULL), BASE_ERR_NOTFOUND);
	report_diff_free(d);
	d = report_diff_new(); /* three runs are too few to be sure */
	quantity(d, "a", a, 3);
	quantity(d, "b", b, 3);
	assert_int_equal(report_diff_finish(d, NULL), BASE_OK);
	assert_false(d->quantity[0].version[1].significant);
	report_diff_free(d);
}

/* The first line is about the last version, as the table's changes are, and counts what moved
 * there; where that is as the first, about the last one that is not. */
static void three_versions(void **state)
{
	(void)state;
	const double run[][6] = {
		{100, 101, 102, 103, 104, 105}, {80, 81, 82, 83, 84, 85}, {60, 61, 62, 63, 64, 65}};
	static const char *const said[] = {"From a to c, length of the run fell: -39.0 %",
		"From a to b, length of the run fell: -19.5 %"};
	for (size_t back = 0; back < 2; back++) {
		struct report_diff *d = report_diff_new();
		struct base_str text = {0};
		quantity(d, "a", run[0], 6);
		quantity(d, "b", run[1], 6);
		quantity(d, "c", back ? run[0] : run[2], 6);
		assert_int_equal(report_diff_finish(d, NULL), BASE_OK);
		report_diff_finding(&text, d);
		assert_int_equal(strncmp(base_str_text(&text), said[back], strlen(said[back])), 0);
		assert_null(strstr(base_str_text(&text), "more change"));
		base_str_fini(&text);
		report_diff_free(d);
	}
}

/* A lock's name is at the end of what is said of it. */
static void headings_are_whole(void **state)
{
	(void)state;
	struct report_diff *d = report_diff_new();
	struct base_str svg = {0};
	assert_int_equal(report_diff_version(d, "a", NULL), BASE_OK);
	assert_int_equal(
		report_diff_add(d, "path:lock", "share of the critical path of mutex ladder_mutex",
			REPORT_UNIT_share, false, 0.5, NULL),
		BASE_OK);
	assert_int_equal(report_diff_finish(d, NULL), BASE_OK);
	report_diff_svg(&svg, d);
	assert_non_null(strstr(base_str_text(&svg), ">share of the critical path of mutex<"));
	assert_non_null(strstr(base_str_text(&svg), ">ladder_mutex<"));
	base_str_fini(&svg);
	report_diff_free(d);
}

/* What all versions' names begin with is said once, and the axes end at round numbers. */
static void names_and_axes(void **state)
{
	(void)state;
	struct bench b;
	struct base_str text = {0}, svg = {0};
	slow_and_fast(&b); /* 1.001 ms */
	struct report_run run = {.reader = b.reader, .trace_path = b.path};
	struct report_diff *d = report_diff_new();
	static const char *const label[] = {"our server 1.9", "our server 1.10"};
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(report_diff_version(d, label[i], &b.err), BASE_OK);
		assert_int_equal(report_diff_run(d, &run, &b.err), BASE_OK);
	}
	assert_int_equal(report_diff_finish(d, &b.err), BASE_OK);
	report_diff_text(&text, d, false, &(struct report_style){.columns = 100});
	report_diff_svg(&svg, d);
	assert_non_null(strstr(base_str_text(&text), "median of our server  "));
	assert_non_null(strstr(base_str_text(&svg), ">our server: median of"));
	assert_non_null(strstr(base_str_text(&svg), ">1.9<"));
	assert_non_null(strstr(base_str_text(&svg), ">1.10<"));
	assert_non_null(strstr(base_str_text(&svg), ">2.00 ms<"));
	assert_non_null(strstr(base_str_text(&svg), ">1.00 ms<"));
	base_str_fini(&text);
	base_str_fini(&svg);
	report_diff_free(d);
	finish(&b);
}

static void out_of_memory(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_run run = {.reader = b.reader, .trace_path = b.path};
	unsigned refused = 0;
	for (uint64_t n = 1; n < 250; n++) {
		struct base_str text = {0};
		base_alloc_fail_nth(n);
		struct report_diff *d = report_diff_new();
		enum base_status s = d ? report_diff_version(d, "a", NULL) : BASE_ERR_NOMEM;
		for (int i = 0; s == BASE_OK && i < 2; i++)
			s = report_diff_run(d, &run, NULL);
		if (s == BASE_OK)
			s = report_diff_version(d, "b", NULL);
		if (s == BASE_OK)
			s = report_diff_run(d, &run, NULL);
		if (s == BASE_OK)
			s = report_diff_finish(d, NULL);
		if (s == BASE_OK)
			report_diff_svg(&text, d);
		base_alloc_fail_nth(0);
		refused += s != BASE_OK || text.failed;
		assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
		base_str_fini(&text);
		report_diff_free(d);
	}
	assert_true(refused > 50);
	finish(&b);
}

/* One lock in two builds has one name; names that only look alike stay two. */
static void names_without_versions(void **state)
{
	static const char *const name[][2] = {
		{"mutex made by conn_new (conn.c:88) for main (main.c:9)",
			"mutex made by conn_new (conn.c) for main (main.c)"},
		{"mutex static_locks.77+0x28", "mutex static_locks+0x28"},
		{"holding mutex lock.0", "holding mutex lock"},
		{"fsync of file /d/binlog.000004", "fsync of file /d/binlog.000004"},
		{"tcp 127.0.0.1:80", "tcp 127.0.0.1:80"},
		{"mutex of f+0x1c", "mutex of f+0x1c"},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(name); i++) {
		struct base_str s = {0};
		report_diff_name(&s, name[i][0]);
		assert_string_equal(base_str_text(&s), name[i][1]);
		base_str_fini(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(medians),
		cmocka_unit_test(same_seed_same_interval),
		cmocka_unit_test(coverage),
		cmocka_unit_test(ranks_by_brute_force),
		cmocka_unit_test(many_quantities),
		cmocka_unit_test(from_nothing),
		cmocka_unit_test(budgets),
		cmocka_unit_test(three_versions),
		cmocka_unit_test(headings_are_whole),
		cmocka_unit_test(names_and_axes),
		cmocka_unit_test(names_without_versions),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

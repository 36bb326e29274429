/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_sort.c - sequences that are merged are what sorting makes of them. */
#include "base/sort.h"

#include "base/base.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { NR_MAX = 700 };
struct item {
	unsigned key, order;
};

static int by_key(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Runs of that length, keys with many equals. */
static void make(struct item *item, unsigned nr, unsigned run, unsigned seed)
{
	unsigned key = 0;
	for (unsigned i = 0; i < nr; i++) {
		seed = seed * 1103515245 + 12345;
		key = i % run ? key + (seed >> 16) % 3 : (seed >> 16) % 50;
		item[i] = (struct item){key, i};
	}
}

static void as_by_order(unsigned nr, unsigned run, unsigned seed)
{
	struct item is[NR_MAX], should_be[NR_MAX];
	make(is, nr, run, seed);
	memcpy(should_be, is, sizeof should_be);
	qsort(should_be, nr, sizeof *should_be, by_key);
	base_sort_runs(is, nr, sizeof *is, by_key);
	assert_memory_equal(is, should_be, nr * sizeof *is);
}

static void runs_of_any_number_and_length(void **state)
{
	static const unsigned run[] = {1, 2, 31, 64, 100, 233, 699, 700};
	(void)state;
	for (unsigned i = 0; i < BASE_COUNT(run); i++)
		for (unsigned nr = 0; nr <= NR_MAX; nr += nr < 5 ? 1 : 139)
			as_by_order(nr, run[i], nr + i);
	as_by_order(NR_MAX, 64, 9);
}

static void without_memory(void **state)
{
	(void)state;
	for (unsigned n = 1; n < 4; n++) {
		struct item is[NR_MAX], should_be[NR_MAX];
		make(is, NR_MAX, 100, n);
		memcpy(should_be, is, sizeof should_be);
		qsort(should_be, NR_MAX, sizeof *should_be, by_key);
		base_alloc_fail_nth(n);
		base_sort_runs(is, NR_MAX, sizeof *is, by_key);
		base_alloc_fail_nth(0);
		assert_memory_equal(is, should_be, sizeof is);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_of_any_number_and_length),
		cmocka_unit_test(without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

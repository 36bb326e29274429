/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_memory.c - what keeps things (arenas, strings, string tables, maps) against naive
 * references and a failing allocator. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* xorshift64*: tests need the same numbers on every machine. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void gate_fails_exactly_the_nth(void **state)
{
	(void)state;
	base_alloc_fail_nth(3);
	void *a = base_alloc(8), *b = base_alloc(8), *c = base_alloc(8), *d = base_alloc(8);
	assert_non_null(a);
	assert_non_null(b);
	assert_null(c);
	assert_non_null(d);
	base_alloc_fail_nth(1);
	assert_null(base_realloc(a, 8, 16));
	base_alloc_fail_nth(1);
	base_alloc_fail_nth(0);
	void *e = base_alloc(0);
	assert_non_null(e);
	base_free(a);
	base_free(b);
	base_free(d);
	base_free(e);
	base_free(NULL);
	assert_null(base_alloc(SIZE_MAX));
	assert_null(base_realloc(NULL, 0, SIZE_MAX));
}

static void realloc_zeroes_the_tail(void **state)
{
	(void)state;
	unsigned char *p = base_realloc(NULL, 0, 10);

	assert_non_null(p);
	memset(p, 0xff, 10);
	p = base_realloc(p, 10, 4000);
	assert_non_null(p);
	for (size_t i = 0; i < 4000; i++)
		assert_int_equal(p[i], i < 10 ? 0xff : 0);
	base_free(p);
}

static void grow_doubles_and_survives_failure(void **state)
{
	(void)state;
	uint32_t *v = NULL;
	size_t capacity = 0;

	assert_int_equal(base_grow(&v, &capacity, 0, sizeof *v), BASE_OK);
	assert_int_equal(capacity, 0);
	assert_int_equal(base_grow(&v, &capacity, 1, sizeof *v), BASE_OK);
	assert_int_equal(capacity, 16);
	for (uint32_t i = 0; i < 16; i++)
		v[i] = i;
	assert_int_equal(base_grow(&v, &capacity, 17, sizeof *v), BASE_OK);
	assert_int_equal(capacity, 32);
	assert_int_equal(base_grow(&v, &capacity, 1000, sizeof *v), BASE_OK);
	assert_int_equal(capacity, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(v[i], i < 16 ? i : 0);

	uint32_t *before = v;
	base_alloc_fail_nth(1);
	assert_int_equal(base_grow(&v, &capacity, 1001, sizeof *v), BASE_ERR_NOMEM);
	base_alloc_fail_nth(0);
	assert_ptr_equal(v, before);
	assert_int_equal(capacity, 1000);
	assert_int_equal(base_grow(&v, &capacity, SIZE_MAX / 2, sizeof *v), BASE_ERR_NOMEM);
	assert_int_equal(base_grow(&v, &capacity, SIZE_MAX, sizeof *v), BASE_ERR_NOMEM);
	assert_ptr_equal(v, before);
	assert_int_equal(capacity, 1000);
	base_free(v);
}

static void arena_is_aligned_zeroed_and_disjoint(void **state)
{
	(void)state;
	enum { NR = 3000 };
	unsigned char *p[NR];
	size_t size[NR];
	uint64_t seed = 42;

	for (int round = 0; round < 3; round++) {
		struct base_arena *a = base_arena_new(0);
		size_t sum_bytes = 0;
		assert_non_null(a);
		for (size_t i = 0; i < NR; i++) {
			uint64_t r = next_random(&seed);
			/* Mostly small; sometimes larger than the next block, seldom than any
			 * block. */
			size[i] = r % 256 == 0 ? r % 700000 : r % 32 == 0 ? r % 9000 : r % 100;
			p[i] = base_arena_alloc(a, size[i]);
			assert_non_null(p[i]);
			assert_int_equal((uintptr_t)p[i] % 16, 0);
			for (size_t j = 0; j < size[i]; j++)
				assert_int_equal(p[i][j], 0);
			memset(p[i], (int)(i % 255 + 1), size[i]);
			sum_bytes += size[i] ? (size[i] + 15) / 16 * 16 : 16;
			assert_int_equal(base_arena_used_bytes(a), sum_bytes);
		}
		/* Had any two overlapped, the later would have overwritten the earlier. */
		for (size_t i = 0; i < NR; i++) {
			for (size_t j = 0; j < size[i]; j++)
				assert_int_equal(p[i][j], i % 255 + 1);
		}
		assert_null(base_arena_free(a));
	}
	assert_null(base_arena_free(NULL));
}

static void arena_keeps_its_limit(void **state)
{
	(void)state;
	struct base_arena *a = base_arena_new(1000); /* 62 times 16, and 8 */

	assert_non_null(a);
	assert_null(base_arena_alloc(a, 1001));
	assert_null(base_arena_alloc(a, SIZE_MAX));
	assert_null(base_arena_strndup(a, "", SIZE_MAX));
	for (int i = 0; i < 62; i++)
		assert_non_null(base_arena_alloc(a, 1));
	assert_null(base_arena_alloc(a, 1));
	assert_int_equal(base_arena_used_bytes(a), 992);
	base_arena_free(a);
}

static void arena_copies_text(void **state)
{
	(void)state;
	struct base_arena *a = base_arena_new(0);
	char source[] = "abcdef";

	assert_non_null(a);
	char *copy = base_arena_strndup(a, source, 3), *empty = base_arena_strndup(a, NULL, 0);
	assert_non_null(copy);
	source[0] = 'x';
	assert_string_equal(copy, "abc");
	assert_string_equal(empty, "");
	base_arena_free(a);
}

/* ---- strings --------------------------------------------------------------------------------- */

static void str_equals_naive_concatenation(void **state)
{
	(void)state;
	static char expected[200000];
	size_t length = 0;
	struct base_str s = {0};
	uint64_t seed = 7;

	assert_string_equal(base_str_text(&s), "");
	for (int round = 0; round < 2; round++) {
		length = 0;
		for (int i = 0; i < 5000; i++) {
			uint64_t r = next_random(&seed);
			char piece[32];
			int n = snprintf(
				piece, sizeof piece, "%llx,", (unsigned long long)(r >> r % 64));
			memcpy(expected + length, piece, (size_t)n + 1);
			length += (size_t)n;
			if (i % 3 == 0)
				base_str_add(&s, piece);
			else if (i % 3 == 1)
				base_str_add_bytes(&s, piece, (size_t)n);
			else
				base_str_addf(&s, "%s", piece);
			assert_int_equal(s.length, length);
		}
		assert_false(s.failed);
		assert_string_equal(base_str_text(&s), expected);
		base_str_reset(&s);
		assert_string_equal(base_str_text(&s), "");
	}
	base_str_add_bytes(&s, "a\0b", 3);
	assert_int_equal(s.length, 3);
	assert_memory_equal(base_str_text(&s), "a\0b", 4);
	base_str_fini(&s);
	assert_null(s.buf);
	assert_string_equal(base_str_text(&s), "");
}

static void str_failure_keeps_text_and_sticks(void **state)
{
	(void)state;
	struct base_str s = {0};

	base_str_add(&s, "0123456789");
	base_alloc_fail_nth(1);
	base_str_addf(&s, "%040d", 1); /* its first try writes into the room that is left */
	assert_true(s.failed);
	assert_string_equal(base_str_text(&s), "0123456789");
	base_str_add(&s, "x");
	base_str_addf(&s, "x");
	assert_string_equal(base_str_text(&s), "0123456789");
	base_str_reset(&s);
	assert_false(s.failed);
	base_str_add(&s, "y");
	assert_string_equal(base_str_text(&s), "y");
	base_str_add_bytes(&s, "", BASE_STR_LIMIT_BYTES); /* refused before it is read */
	assert_true(s.failed);
	assert_string_equal(base_str_text(&s), "y");
	base_str_fini(&s);
}

static void assert_human(void (*add)(struct base_str *, uint64_t), uint64_t n, const char *expected)
{
	struct base_str s = {0};

	base_str_add(&s, "=");
	add(&s, n);
	assert_string_equal(base_str_text(&s) + 1, expected);
	base_str_fini(&s);
}

static void human_numbers_known_answers(void **state)
{
	(void)state;
	static const struct {
		void (*add)(struct base_str *, uint64_t);
		uint64_t n;
		const char *text;
	} known[] = {
		{base_str_add_ns, 0, "0 ns"},
		{base_str_add_ns, 999, "999 ns"},
		{base_str_add_ns, 1000, "1.00 us"},
		{base_str_add_ns, 1004, "1.00 us"},
		{base_str_add_ns, 1005, "1.01 us"},
		{base_str_add_ns, 9994, "9.99 us"},
		{base_str_add_ns, 9995, "10.0 us"},
		{base_str_add_ns, 99949, "99.9 us"},
		{base_str_add_ns, 99950, "100 us"},
		{base_str_add_ns, 999499, "999 us"},
		{base_str_add_ns, 999500, "1.00 ms"},
		{base_str_add_ns, 1230000, "1.23 ms"},
		{base_str_add_ns, 45600000, "45.6 ms"},
		{base_str_add_ns, 999499999, "999 ms"},
		{base_str_add_ns, 999500000, "1.00 s"},
		{base_str_add_ns, 12340000000, "12.3 s"},
		{base_str_add_ns, 999499999999, "999 s"},
		{base_str_add_ns, 999500000000, "1,000 s"},
		{base_str_add_ns, 86400000000000, "86,400 s"},
		{base_str_add_ns, UINT64_MAX, "18,446,744,074 s"},
		{base_str_add_size, 0, "0 B"},
		{base_str_add_size, 1023, "1023 B"},
		{base_str_add_size, 1024, "1.0 KiB"},
		{base_str_add_size, 1536, "1.5 KiB"},
		{base_str_add_size, 4299162, "4.1 MiB"},
		{base_str_add_size, 1048524, "1023.9 KiB"},
		{base_str_add_size, 1048525, "1.0 MiB"},
		{base_str_add_size, 1048576, "1.0 MiB"},
		{base_str_add_size, 1073741823, "1.0 GiB"},
		{base_str_add_size, UINT64_MAX, "16.0 EiB"},
		{base_str_add_count, 0, "0"},
		{base_str_add_count, 999, "999"},
		{base_str_add_count, 1000, "1,000"},
		{base_str_add_count, 12345, "12,345"},
		{base_str_add_count, 1234567, "1,234,567"},
		{base_str_add_count, UINT64_MAX, "18,446,744,073,709,551,615"},
	};

	for (size_t i = 0; i < BASE_COUNT(known); i++)
		assert_human(known[i].add, known[i].n, known[i].text);
}

/* ---- string table ---------------------------------------------------------------------------- */

static void strtab_gives_dense_lasting_ids(void **state)
{
	(void)state;
	enum { NR = 20000 };
	struct base_strtab *t = base_strtab_new();
	const char *early;
	uint32_t id;

	assert_non_null(t);
	assert_int_equal(base_strtab_count(t), 1);
	assert_int_equal(base_strtab_intern(t, "", 0, &id), BASE_OK);
	assert_int_equal(id, 0);
	assert_int_equal(base_strtab_intern(t, NULL, 0, &id), BASE_OK);
	assert_int_equal(id, 0);
	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t i = 1; i <= NR; i++) {
			char text[32];
			int n = snprintf(text, sizeof text, "text %u", i * 2654435761u);
			assert_int_equal(base_strtab_intern(t, text, (size_t)n, &id), BASE_OK);
			assert_int_equal(id, i);
			if (i == 1 && !pass)
				early = base_strtab_get(t, 1);
		}
		assert_int_equal(base_strtab_count(t), NR + 1);
	}
	assert_ptr_equal(base_strtab_get(t, 1), early);
	assert_string_equal(early, "text 2654435761");
	assert_string_equal(base_strtab_get(t, NR + 1), "");
	assert_string_equal(base_strtab_get(t, UINT32_MAX), "");
	assert_null(base_strtab_free(t));
	assert_null(base_strtab_free(NULL));
}

static void strtab_compares_bytes_and_length(void **state)
{
	(void)state;
	struct base_strtab *t = base_strtab_new();
	uint32_t id[4];

	assert_non_null(t);
	assert_int_equal(base_strtab_intern(t, "ab", 2, &id[0]), BASE_OK);
	assert_int_equal(base_strtab_intern(t, "ab\0", 3, &id[1]), BASE_OK);
	assert_int_equal(base_strtab_intern(t, "ab\0c", 4, &id[2]), BASE_OK);
	assert_int_equal(base_strtab_intern(t, "abc", 2, &id[3]), BASE_OK);
	assert_int_equal(id[0], 1);
	assert_int_equal(id[1], 2);
	assert_int_equal(id[2], 3);
	assert_int_equal(id[3], 1);
	assert_memory_equal(base_strtab_get(t, 3), "ab\0c", 5);
	base_strtab_free(t);
}

/* ---- map ------------------------------------------------------------------------------------- */

/* The reference: a small universe of keys, one cell each. */
enum { UNIVERSE = 2048 };
struct naive {
	uint64_t hi[UNIVERSE], lo[UNIVERSE], value[UNIVERSE];
	bool used[UNIVERSE], seen[UNIVERSE];
	size_t nr_used, nr_seen;
};

static bool compare_entry(void *ctx, uint64_t key_hi, uint64_t key_lo, uint64_t value)
{
	struct naive *n = ctx;
	size_t i = (size_t)(key_hi ^ key_lo) % UNIVERSE;

	assert_true(n->used[i] && n->hi[i] == key_hi && n->lo[i] == key_lo);
	assert_int_equal(n->value[i], value);
	assert_false(n->seen[i]);
	n->seen[i] = true;
	n->nr_seen++;
	return true;
}

static void compare_all(const struct base_map *m, struct naive *n)
{
	memset(n->seen, 0, sizeof n->seen);
	n->nr_seen = 0;
	base_map_each(m, compare_entry, n);
	assert_int_equal(n->nr_seen, n->nr_used);
	assert_int_equal(m->nr_used, n->nr_used);
}

static void map_equals_naive_reference(void **state)
{
	(void)state;
	static struct naive n;
	struct base_map m = {0};
	uint64_t seed = 99, value;

	/* Keys of each kind that occurs: counters, page addresses, random; (hi ^ lo) % UNIVERSE
	 * tells which one it is. */
	for (size_t i = 0; i < UNIVERSE; i++) {
		n.hi[i] = i % 3 == 0   ? 0
			  : i % 3 == 1 ? (uint64_t)UNIVERSE << 20
				       : next_random(&seed);
		n.lo[i] = i % 2 ? 0 : next_random(&seed) << 12;
		n.lo[i] = (n.lo[i] & ~(uint64_t)(UNIVERSE - 1)) | ((n.hi[i] ^ i) % UNIVERSE);
	}
	assert_false(base_map_get(&m, 0, 0, &value));
	assert_false(base_map_remove(&m, 0, 0));
	for (int op = 0; op < 100000; op++) {
		uint64_t r = next_random(&seed);
		size_t i = (size_t)(r >> 32) % UNIVERSE;
		/* Phases of growth and of shrinking, so that long probe chains form and dissolve.
		 */
		bool put = r % 100 < (op / 20000 % 2 ? 30u : 70u);

		if (put) {
			assert_int_equal(base_map_put(&m, n.hi[i], n.lo[i], r), BASE_OK);
			n.nr_used += !n.used[i];
			n.used[i] = true;
			n.value[i] = r;
		} else {
			assert_int_equal(base_map_remove(&m, n.hi[i], n.lo[i]), n.used[i]);
			n.nr_used -= n.used[i];
			n.used[i] = false;
		}
		size_t probe = (size_t)(r >> 16) % UNIVERSE;
		assert_int_equal(base_map_get(&m, n.hi[probe], n.lo[probe], &value), n.used[probe]);
		if (n.used[probe])
			assert_int_equal(value, n.value[probe]);
		if (op % 5000 == 0)
			compare_all(&m, &n);
	}
	compare_all(&m, &n);
	base_map_fini(&m);
	assert_false(base_map_get(&m, n.hi[0], n.lo[0], &value));
}

static bool stop_at_third(void *ctx, uint64_t key_hi, uint64_t key_lo, uint64_t value)
{
	(void)key_hi, (void)key_lo, (void)value;
	return ++*(int *)ctx < 3;
}

static void map_visit_stops(void **state)
{
	(void)state;
	struct base_map m = {0};
	int nr_visits = 0;

	base_map_each(&m, stop_at_third, &nr_visits);
	assert_int_equal(nr_visits, 0);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(base_map_put(&m, i, 0, i), BASE_OK);
	base_map_each(&m, stop_at_third, &nr_visits);
	assert_int_equal(nr_visits, 3);
	base_map_fini(&m);
}

/* ---- allocation failure sweep ---------------------------------------------------------------- */

/*
 * Each scenario builds, checks and frees one structure, and returns whether all allocations
 * succeeded. It is run with the first allocation failing, then the second, ... until one run needs
 * fewer. Leaks and stale pointers after a failure are for the sanitizer run to see.
 */
static bool scenario_grow(void)
{
	uint64_t *v = NULL;
	size_t capacity = 0, nr = 0;
	bool ok = true;

	for (; ok && nr < 500; nr++) {
		ok = base_grow(&v, &capacity, nr + 1, sizeof *v) == BASE_OK;
		if (ok)
			v[nr] = nr;
	}
	for (size_t i = 0; i + !ok < nr; i++)
		assert_int_equal(v[i], i);
	base_free(v);
	return ok;
}

static bool scenario_arena(void)
{
	struct base_arena *a = base_arena_new(0);
	bool ok = a;

	for (size_t i = 0; ok && i < 200; i++) {
		size_t used_bytes = base_arena_used_bytes(a);
		char *text = base_arena_strndup(a, "some text", 9);
		void *p = text ? base_arena_alloc(a, i * 4000) : NULL;
		ok = p;
		if (text)
			assert_string_equal(text, "some text");
		else
			assert_int_equal(base_arena_used_bytes(a), used_bytes);
	}
	base_arena_free(a);
	return ok;
}

static bool scenario_str(void)
{
	struct base_str s = {0};

	for (int i = 0; i < 300; i++) {
		base_str_add(&s, "abc");
		base_str_addf(&s, "%d", i % 10);
		base_str_add_count(&s, 1000);
	}
	assert_int_equal(strlen(base_str_text(&s)), s.length);
	if (!s.failed)
		assert_int_equal(s.length, 300 * (3 + 1 + 5));
	bool ok = !s.failed;
	base_str_fini(&s);
	return ok;
}

static bool scenario_strtab(void)
{
	struct base_strtab *t = base_strtab_new();
	bool ok = t;

	for (uint32_t i = 1; ok && i <= 1000; i++) {
		char text[16];
		int n = snprintf(text, sizeof text, "%u", i);
		uint32_t id, count = base_strtab_count(t);

		ok = base_strtab_intern(t, text, (size_t)n, &id) == BASE_OK;
		if (!ok) {
			/* Nothing half done: the same text gets the id it should have had. */
			assert_int_equal(base_strtab_count(t), count);
			assert_int_equal(base_strtab_intern(t, text, (size_t)n, &id), BASE_OK);
		}
		assert_int_equal(id, i);
		assert_string_equal(base_strtab_get(t, id), text);
	}
	base_strtab_free(t);
	return ok;
}

static bool scenario_map(void)
{
	struct base_map m = {0};
	bool ok = true;
	uint64_t value;

	for (uint64_t i = 0; ok && i < 1000; i++) {
		ok = base_map_put(&m, i, ~i, i) == BASE_OK;
		if (!ok) {
			assert_false(base_map_get(&m, i, ~i, &value));
			assert_int_equal(m.nr_used, i);
			assert_int_equal(base_map_put(&m, i, ~i, i), BASE_OK);
		}
		for (uint64_t j = 0; j <= i; j += 37) {
			assert_true(base_map_get(&m, j, ~j, &value));
			assert_int_equal(value, j);
		}
	}
	base_map_fini(&m);
	return ok;
}

static bool scenario_shown(void)
{
	struct base_str s = {0};
	for (int i = 0; i < 500; i++)
		base_str_add(&s, "a\xc2\x9b");
	base_str_make_shown(&s, BASE_SHOWN_JSON);
	bool ok = !s.failed;
	if (ok)
		assert_int_equal(s.length, 500 * strlen("a\\u009b"));
	base_str_fini(&s);
	return ok;
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool (*run)(void);
		unsigned nr_failures_min;
	} scenario[] = {
		{"grow", scenario_grow, 6},
		{"arena", scenario_arena, 10},
		{"str", scenario_str, 8},
		{"strtab", scenario_strtab, 10},
		{"map", scenario_map, 7},
		{"shown", scenario_shown, 7},
	};

	for (size_t i = 0; i < BASE_COUNT(scenario); i++) {
		unsigned nth = 1;
		for (;; nth++) {
			assert_true(nth < 10000);
			base_alloc_fail_nth(nth);
			bool ok = scenario[i].run();
			base_alloc_fail_nth(0);
			if (ok)
				break;
		}
		/* A sweep that hit nothing would prove nothing. */
		if (nth <= scenario[i].nr_failures_min)
			fail_msg("%s: only %u allocations failed", scenario[i].name, nth - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gate_fails_exactly_the_nth),
		cmocka_unit_test(realloc_zeroes_the_tail),
		cmocka_unit_test(grow_doubles_and_survives_failure),
		cmocka_unit_test(arena_is_aligned_zeroed_and_disjoint),
		cmocka_unit_test(arena_keeps_its_limit),
		cmocka_unit_test(arena_copies_text),
		cmocka_unit_test(str_equals_naive_concatenation),
		cmocka_unit_test(str_failure_keeps_text_and_sticks),
		cmocka_unit_test(human_numbers_known_answers),
		cmocka_unit_test(strtab_gives_dense_lasting_ids),
		cmocka_unit_test(strtab_compares_bytes_and_length),
		cmocka_unit_test(map_equals_naive_reference),
		cmocka_unit_test(map_visit_stops),
		cmocka_unit_test(every_allocation_may_fail),
	};
	return cmocka_run_group_tests_name("base_memory", tests, NULL, NULL);
}

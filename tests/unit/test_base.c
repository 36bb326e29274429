/* SPDX-License-Identifier: Apache-2.0 */
/* test_base.c - src/base against known answers, naive references and a failing allocator. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/heap.h"

/* xorshift64*: tests need the same numbers on every machine. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

/* ---- statuses and errors --------------------------------------------------------------------- */

static void status_table_is_complete(void **state)
{
	(void)state;
	static const struct {
		enum base_status status;
		int number;
		const char *name;
	} known[] = {{BASE_OK, 0, "OK"}, {BASE_END, 1, "END"}, {BASE_ERR_NOMEM, -1, "ERR_NOMEM"},
		{BASE_ERR_CORRUPT, -4, "ERR_CORRUPT"}, {BASE_ERR_NOTFOUND, -10, "ERR_NOTFOUND"}};

	for (size_t i = 0; i < BASE_COUNT(known); i++) {
		assert_int_equal(known[i].status, known[i].number);
		assert_string_equal(base_status_name(known[i].status), known[i].name);
		assert_true(strlen(base_status_line(known[i].status)) > 0);
	}
	assert_string_equal(base_status_line(BASE_ERR_CORRUPT), "the file's contents are damaged");
	assert_string_equal(base_status_advice(BASE_ERR_ENV), "run 'longpole doctor'");
	assert_string_equal(base_status_name((enum base_status)77), "UNKNOWN");
	assert_string_equal(base_status_advice((enum base_status)77), "");
}

static void fail_starts_over(void **state)
{
	(void)state;
	struct base_err err;

	memset(&err, 0xa5, sizeof err); /* an error needs no initialisation before it is failed */
	assert_int_equal(base_fail(&err, BASE_ERR_IO, "read %d of %s", 3, "x"), BASE_ERR_IO);
	assert_int_equal(err.nr_causes, 1);
	assert_int_equal(err.sys_errno, 0);
	assert_string_equal(err.cause[0], "read 3 of x");
	assert_int_equal(base_cause(&err, BASE_ERR_LIMIT, "opening it"), BASE_ERR_IO);
	assert_int_equal(err.nr_causes, 2);
	/* Its own cause as an argument. */
	assert_int_equal(base_fail(&err, BASE_ERR_CORRUPT, "<%s>", err.cause[1]), BASE_ERR_CORRUPT);
	assert_int_equal(err.status, BASE_ERR_CORRUPT);
	assert_int_equal(err.nr_causes, 1);
	assert_string_equal(err.cause[0], "<opening it>");
}

static void fail_without_error_keeps_status(void **state)
{
	(void)state;
	assert_int_equal(base_fail(NULL, BASE_ERR_IO, "x"), BASE_ERR_IO);
	assert_int_equal(base_cause(NULL, BASE_ERR_LIMIT, "x"), BASE_ERR_LIMIT);
	assert_int_equal(base_fail_errno(NULL, ENOENT, "x"), BASE_ERR_ENV);
}

static void cause_after_silent_callee_is_first(void **state)
{
	(void)state;
	struct base_err err = {0};

	assert_int_equal(base_cause(&err, BASE_ERR_NOMEM, "growing"), BASE_ERR_NOMEM);
	assert_int_equal(err.status, BASE_ERR_NOMEM);
	assert_int_equal(err.nr_causes, 1);
	assert_string_equal(err.cause[0], "growing");
}

static void errno_decides_status(void **state)
{
	(void)state;
	static const struct {
		int sys_errno;
		enum base_status status;
	} known[] = {{ENOMEM, BASE_ERR_NOMEM}, {EACCES, BASE_ERR_ENV}, {EPERM, BASE_ERR_ENV},
		{ENOENT, BASE_ERR_ENV}, {ENOSYS, BASE_ERR_ENV}, {ENOSPC, BASE_ERR_IO},
		{EMFILE, BASE_ERR_ENV}, {EIO, BASE_ERR_IO}};

	for (size_t i = 0; i < BASE_COUNT(known); i++) {
		struct base_err err;
		assert_int_equal(
			base_fail_errno(&err, known[i].sys_errno, "open"), known[i].status);
		assert_int_equal(err.status, known[i].status);
		assert_int_equal(err.sys_errno, known[i].sys_errno);
	}
	struct base_err err;
	assert_int_equal(base_fail_errno(&err, ENOENT, "open a.lpt"), BASE_ERR_ENV);
	assert_string_equal(err.cause[0], "open a.lpt: No such file or directory");
	assert_int_equal(base_refusal_of(ENOENT)->sys_errno, ENOENT);
	assert_null(base_refusal_of(0));
}

static void assert_cut(const char *text, size_t length)
{
	assert_int_equal(strlen(text), length);
	assert_string_equal(text + length - 3, "...");
}

static void long_text_is_cut(void **state)
{
	(void)state;
	enum { LONGEST = BASE_ERR_TEXT_MAX - 1 };
	struct base_err err;
	char text[2 * BASE_ERR_TEXT_MAX];

	memset(text, 'x', sizeof text);
	text[LONGEST] = '\0';
	assert_int_equal(base_fail(&err, BASE_ERR_IO, "%s", text), BASE_ERR_IO);
	assert_string_equal(err.cause[0], text); /* just fits */
	/* No room for the errno's text. */
	assert_int_equal(base_fail_errno(&err, EIO, "%s", text), BASE_ERR_IO);
	assert_cut(err.cause[0], LONGEST);

	text[LONGEST] = 'x';
	text[LONGEST + 1] = '\0';
	assert_int_equal(base_fail(&err, BASE_ERR_IO, "%s", text), BASE_ERR_IO);
	assert_cut(err.cause[0], LONGEST);
	assert_int_equal(base_fail_errno(&err, EIO, "%s", text), BASE_ERR_IO);
	assert_cut(err.cause[0], LONGEST);
}

static void causes_beyond_the_eighth_are_cut(void **state)
{
	(void)state;
	struct base_err err;

	assert_int_equal(base_fail(&err, BASE_ERR_IO, "cause 0"), BASE_ERR_IO);
	for (int i = 1; i < 20; i++)
		assert_int_equal(base_cause(&err, BASE_ERR_LIMIT, "cause %d", i), BASE_ERR_IO);
	assert_int_equal(err.nr_causes, BASE_ERR_CAUSES_MAX);
	assert_string_equal(err.cause[0], "cause 0");
	assert_string_equal(err.cause[6], "cause 6");
	assert_string_equal(err.cause[7], "cause 7..."); /* marked once */
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
	struct base_arena *a = base_arena_new(0);
	unsigned char *p[NR];
	size_t size[NR], sum_bytes = 0;
	uint64_t seed = 42;

	assert_non_null(a);
	for (int round = 0; round < 3; round++) {
		sum_bytes = 0;
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
		base_arena_reset(a);
		assert_int_equal(base_arena_used_bytes(a), 0);
	}
	assert_null(base_arena_free(a));
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
	base_arena_reset(a);
	assert_non_null(base_arena_alloc(a, 992));
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

/* ---- varints --------------------------------------------------------------------------------- */

static void assert_round_trip(uint64_t v)
{
	uint8_t buf[BASE_VARINT_MAX + 1] = {0};
	uint64_t got = ~v;
	const uint8_t *end = base_put_uvarint(buf, v);
	size_t length = (size_t)(end - buf), expected_length = 1;

	for (uint64_t rest = v >> 7; rest; rest >>= 7)
		expected_length++;
	assert_int_equal(length, expected_length);
	assert_ptr_equal(base_get_uvarint(buf, end, &got), end);
	assert_int_equal(got, v);
	/* What follows is not looked at. */
	buf[length] = 0xff;
	assert_ptr_equal(base_get_uvarint(buf, buf + sizeof buf, &got), end);
	assert_int_equal(got, v);
	/* Every truncation is refused. */
	for (size_t cut = 0; cut < length; cut++)
		assert_null(base_get_uvarint(buf, buf + cut, &got));
	/* Every overlong form of it is refused: more bytes that add nothing. */
	uint8_t overlong[BASE_VARINT_MAX + 2] = {0};
	for (size_t extra = 1; length + extra <= sizeof overlong; extra++) {
		memcpy(overlong, buf, length);
		overlong[length - 1] |= 0x80;
		memset(overlong + length, 0x80, extra);
		overlong[length + extra - 1] = 0;
		assert_null(base_get_uvarint(overlong, overlong + length + extra, &got));
	}
}

static void varint_round_trips_and_refuses_other_forms(void **state)
{
	(void)state;
	uint64_t seed = 5;

	assert_round_trip(0);
	assert_round_trip(UINT64_MAX);
	for (unsigned bit = 0; bit < 64; bit++) {
		assert_round_trip((uint64_t)1 << bit);
		assert_round_trip(((uint64_t)1 << bit) - 1);
		assert_round_trip(((uint64_t)1 << bit) + 1);
	}
	for (int i = 0; i < 20000; i++) {
		uint64_t r = next_random(&seed);
		assert_round_trip(r >> r % 64);
	}
}

static void varint_known_bytes(void **state)
{
	(void)state;
	static const uint8_t max[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
	uint8_t buf[BASE_VARINT_MAX];
	uint64_t v;

	assert_int_equal(base_put_uvarint(buf, 300) - buf, 2);
	assert_memory_equal(buf, "\xac\x02", 2);
	assert_int_equal(base_put_uvarint(buf, UINT64_MAX) - buf, sizeof max);
	assert_memory_equal(buf, max, sizeof max);
	/* The tenth byte may hold one bit only: each of the other 254 values is too big or too
	 * long. */
	for (unsigned last = 0; last < 256; last++) {
		buf[9] = (uint8_t)last;
		const uint8_t *end = base_get_uvarint(buf, buf + sizeof buf, &v);
		if (last == 1)
			assert_ptr_equal(end, buf + sizeof buf);
		else
			assert_null(end);
	}
}

/* Two-byte inputs are few enough to try all: what is read must be what is written. */
static void varint_is_canonical(void **state)
{
	(void)state;
	for (unsigned pair = 0; pair < 65536; pair++) {
		const uint8_t in[2] = {(uint8_t)pair, (uint8_t)(pair >> 8)};
		uint8_t out[BASE_VARINT_MAX];
		uint64_t v;
		const uint8_t *end = base_get_uvarint(in, in + 2, &v);

		if (!end)
			continue;
		assert_int_equal(base_put_uvarint(out, v) - out, end - in);
		assert_memory_equal(in, out, (size_t)(end - in));
	}
}

static void zigzag_known_answers_and_round_trip(void **state)
{
	(void)state;
	static const struct {
		int64_t v;
		uint64_t zigzag;
	} known[] = {{0, 0}, {-1, 1}, {1, 2}, {-2, 3}, {INT64_MAX, UINT64_MAX - 1},
		{INT64_MIN, UINT64_MAX}};
	uint64_t seed = 3;

	for (size_t i = 0; i < BASE_COUNT(known); i++) {
		assert_int_equal(base_zigzag(known[i].v), known[i].zigzag);
		assert_int_equal(base_unzigzag(known[i].zigzag), known[i].v);
	}
	for (int i = 0; i < 1000; i++) {
		uint64_t r = next_random(&seed);
		assert_int_equal(base_zigzag(base_unzigzag(r)), r);
	}
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
	if (a) {
		/* After a failure it works on, and starts over. */
		base_arena_reset(a);
		assert_int_equal(base_arena_used_bytes(a), 0);
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

/* ---- heaps ----------------------------------------------------------------------------------- */

/* What comes first, and second, is what a search through all finds; in whatever order they came. */
static void heap_equals_search(void **state)
{
	(void)state;
	enum { ITEMS_MAX = 40, STEPS = 20000, KEYS = 64 };
	uint64_t heap[ITEMS_MAX], random = 1;
	unsigned held[KEYS] = {0}; /* by key */
	uint32_t nr = 0;

	for (unsigned step = 0; step < STEPS; step++) {
		uint64_t key = next_random(&random) % KEYS;
		unsigned what = (unsigned)(next_random(&random) % 3);
		if (nr && what)
			held[heap[0]]--;
		if (!nr || (!what && nr < ITEMS_MAX)) {
			base_keys_put(heap, &nr, key);
			held[key]++;
		} else if (what == 1) {
			base_keys_replace(heap, nr, key);
			held[key]++;
		} else if (what) {
			base_keys_drop(heap, &nr);
		}
		uint64_t sorted[2] = {UINT64_MAX, UINT64_MAX};
		unsigned all = 0;
		for (uint64_t k = 0; k < KEYS; all += held[k++])
			for (unsigned i = all; i < all + held[k] && i < 2; i++)
				sorted[i] = k;
		assert_int_equal(all, nr);
		assert_true(!nr || heap[0] == sorted[0]);
		assert_true(base_keys_second(heap, nr) == sorted[1]);
	}
}

/* As a program's order of accesses does it: the least one goes and mostly comes back behind all
 * others, sometimes not at all, sometimes earlier; and now and then all change. */
static uint64_t later(void *by, uint64_t key)
{
	return key + *(uint64_t *)by * (key % 3);
}

static void turns_equal_search(void **state)
{
	(void)state;
	enum { ITEMS_MAX = 32, STEPS = 40000 };
	uint64_t queue[ITEMS_MAX], heap[ITEMS_MAX], held[ITEMS_MAX], random = 1;
	struct base_turns t = {.queue = queue, .heap = heap, .mask = ITEMS_MAX - 1};
	uint32_t nr = 0, in_heap = 0;

	for (unsigned step = 0; step < STEPS; step++) {
		unsigned what = (unsigned)(next_random(&random) % 16), least = 0;
		/* Long stretches of turns that come in order, and long ones that do not. */
		uint64_t by = step / 500 % 2 ? 1000 : next_random(&random) % 1000;
		for (unsigned i = 1; i < nr; i++)
			least = held[i] < held[least] ? i : least;
		assert_int_equal(base_turns_nr(&t), nr);
		assert_true(base_turns_least(&t) == (nr ? held[least] : UINT64_MAX));
		uint64_t now = nr ? held[least] : step;
		if (!nr || (what == 0 && nr < ITEMS_MAX)) {
			held[nr++] = now + by;
			base_turns_put(&t, now + by);
		} else if (what == 1) {
			held[least] = held[--nr];
			base_turns_drop(&t);
		} else if (what == 2) {
			for (unsigned i = 0; i < nr; i++)
				held[i] = later(&by, held[i]);
			base_turns_renew(&t, later, &by);
		} else {
			held[least] = now + by;
			base_turns_drop(&t);
			base_turns_put(&t, now + by);
		}
		uint64_t sum = 0, expected = 0;
		for (uint32_t i = 0; i < nr; i++) {
			sum += base_turns_at(&t, i);
			expected += held[i];
		}
		assert_true(sum == expected);
		in_heap += t.nr_heap != 0 && t.begin != t.end;
	}
	assert_true(in_heap > STEPS / 10); /* both have something */
}

/* ---- texts of others ------------------------------------------------------------------------- */

static void shown_texts(void **state)
{
	(void)state;
	static const struct {
		const char *text, *name, *lines, *json;
	} row[] = {
		{"plain", "plain", "plain", "plain"},
		{"a\n\tb", "a??b", "a\n\tb", "a\n\tb"},
		{"\r\x7f\x1f", "???", "???", "\\u000d\\u007f\\u001f"},
		{"\033[1;31mx\033[2J", "?[1;31mx?[2J", "\033[1;31mx?[2J",
			"\\u001b[1;31mx\\u001b[2J"},
		{"\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", "???\xc2\xa0", "???\xc2\xa0",
			"\\u0080\\u009b\\u009f\xc2\xa0"},
		{"\xd8\x9b\xd8\x9c\xd8\x9d", "\xd8\x9b?\xd8\x9d", "\xd8\x9b?\xd8\x9d",
			"\xd8\x9b\\u061c\xd8\x9d"},
		/* U+200D, E, F, 2010; 2027, 8, E, F; 2065, 6, F, 2070 */
		{"\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90", "\xe2\x80\x8d??\xe2\x80\x90",
			"\xe2\x80\x8d??\xe2\x80\x90", "\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90"},
		{"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf", "\xe2\x80\xa7??\xe2\x80\xaf",
			"\xe2\x80\xa7??\xe2\x80\xaf", "\xe2\x80\xa7\\u2028\\u202e\xe2\x80\xaf"},
		{"\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xaf\xe2\x81\xb0", "\xe2\x81\xa5??\xe2\x81\xb0",
			"\xe2\x81\xa5??\xe2\x81\xb0", "\xe2\x81\xa5\\u2066\\u206f\xe2\x81\xb0"},
		{"\xf3\xa0\x81\xbf\xf3\xa0\x82\x80", "?\xf3\xa0\x82\x80", "?\xf3\xa0\x82\x80",
			"\\udb40\\udc7f\xf3\xa0\x82\x80"},
		/* no UTF-8: a lone C1 byte, an overlong form, a surrogate, one cut short */
		{"a\x9b", "a\xef\xbf\xbd", "a\xef\xbf\xbd", "a\\udc9b"},
		{"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd",
			"\\udcc0\\udcaf"},
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
			"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "\\udced\\udca0\\udc80"},
		{"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd",
			"\\udce2\\udc82"},
	};
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		const char *const want[] = {[BASE_SHOWN_NAME] = row[i].name,
			[BASE_SHOWN_LINES] = row[i].lines,
			[BASE_SHOWN_JSON] = row[i].json};
		for (unsigned how = 0; how < BASE_COUNT(want); how++) {
			struct base_str s = {0};
			base_str_add(&s, row[i].text);
			base_str_make_shown(&s, (enum base_shown)how);
			assert_string_equal(base_str_text(&s), want[how]);
			assert_false(s.failed);
			base_str_fini(&s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shown_texts),
		cmocka_unit_test(status_table_is_complete),
		cmocka_unit_test(fail_starts_over),
		cmocka_unit_test(fail_without_error_keeps_status),
		cmocka_unit_test(cause_after_silent_callee_is_first),
		cmocka_unit_test(errno_decides_status),
		cmocka_unit_test(long_text_is_cut),
		cmocka_unit_test(causes_beyond_the_eighth_are_cut),
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
		cmocka_unit_test(heap_equals_search),
		cmocka_unit_test(turns_equal_search),
		cmocka_unit_test(varint_round_trips_and_refuses_other_forms),
		cmocka_unit_test(varint_known_bytes),
		cmocka_unit_test(varint_is_canonical),
		cmocka_unit_test(zigzag_known_answers_and_round_trip),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}

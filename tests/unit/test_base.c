/* SPDX-License-Identifier: Apache-2.0 */
/* test_base.c - src/base against known answers, naive references and a failing allocator. */
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/heap.h"
#include "base/names.h"

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

/* The names are those of this machine's libc, which has them. */
static void signals_have_libc_s_names(void **state)
{
	(void)state;
	for (int number = -2; number < SIGRTMIN; number++) {
		const char *ours = base_signal_name(number), *known = sigabbrev_np(number);
		assert_int_equal(!ours, !known);
		if (ours)
			assert_string_equal(ours, known);
	}
	assert_null(base_signal_name(64));
}

static void errors_have_libc_s_names(void **state)
{
	(void)state;
	for (int number = -2; number < 4096; number++) {
		const char *ours = base_errno_name(number), *known = strerrorname_np(number);
		assert_int_equal(!ours, !known);
		if (ours)
			assert_string_equal(ours, known);
	}
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
		cmocka_unit_test(signals_have_libc_s_names),
		cmocka_unit_test(errors_have_libc_s_names),
		cmocka_unit_test(long_text_is_cut),
		cmocka_unit_test(causes_beyond_the_eighth_are_cut),
		cmocka_unit_test(heap_equals_search),
		cmocka_unit_test(turns_equal_search),
		cmocka_unit_test(varint_round_trips_and_refuses_other_forms),
		cmocka_unit_test(varint_known_bytes),
		cmocka_unit_test(varint_is_canonical),
		cmocka_unit_test(zigzag_known_answers_and_round_trip),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_format_apart.c - readers in a child process: what they hand over, and how they die. */
#include "format/apart.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- readers --------------------------------------------------------------------------------- */

enum { EVENTS = 3 * FORMAT_SCHED_GIVEN + 5 };

static enum base_status add(struct format_sched *s, uint64_t time_ns, uint32_t from, uint32_t to,
	const char *name, struct base_err *err)
{
	struct format_sched_event e = {.time_ns = time_ns,
		.kind = FORMAT_SCHED_switch,
		.actor = from,
		.tid = to,
		.name = format_sched_name(s, name, strlen(name))};
	return format_sched_add(s, &e, err);
}

/* Names that are new late, and again. */
static enum base_status read_many(
	struct format_sched *s, const char *path, uint64_t count[static 4], struct base_err *err)
{
	enum base_status status = BASE_OK;
	for (unsigned i = 0; status == BASE_OK && i < EVENTS; i++) {
		char name[32];
		snprintf(name, sizeof name, "%s %u", path, i % 5000);
		status = add(s, i, i % 2 ? 7 : 0, i % 2 ? 0 : 7, name, err);
	}
	count[0] = 11;
	count[3] = UINT64_MAX;
	return status;
}

static enum base_status read_nothing(
	struct format_sched *s, const char *path, uint64_t count[static 4], struct base_err *err)
{
	(void)s, (void)count;
	base_fail(err, BASE_ERR_FOREIGN, "no events in %s\x1b[31m", path);
	return base_cause(err, BASE_ERR_FOREIGN, "outer cause");
}

static enum base_status read_and_abort(
	struct format_sched *s, const char *path, uint64_t count[static 4], struct base_err *err)
{
	(void)path, (void)count;
	assert_int_equal(add(s, 1, 0, 7, "a", err), BASE_OK);
	fprintf(stderr, "\n precondition\x1b not\nsatisfied\n");
	fflush(stderr);
	abort();
}

static enum base_status read_and_fault(
	struct format_sched *s, const char *path, uint64_t count[static 4], struct base_err *err)
{
	(void)s, (void)path, (void)count, (void)err;
	raise(SIGSEGV);
	return BASE_OK;
}

static enum base_status read_and_exit(
	struct format_sched *s, const char *path, uint64_t count[static 4], struct base_err *err)
{
	(void)s, (void)path, (void)count, (void)err;
	_exit(0);
}

/* ---- a whole reading ------------------------------------------------------------------------- */

static enum base_status read_by(enum base_status (*read)(struct format_sched *s, const char *path,
					uint64_t count[static 4], struct base_err *err),
	struct format_sched *to, uint64_t count[static 4], struct base_err *err)
{
	const struct format_apart a = {.library = "libtest", .path = "input", .read = read};
	return format_read_apart(&a, to, count, err);
}

struct taken {
	size_t nr;
	bool same;
};

/* The same events as read_many() makes, by another way: names by their texts. */
static enum base_status compare(void *ctx, const struct format_sched_event *e, size_t nr,
	const struct base_strtab *names, struct base_err *err)
{
	struct taken *t = ctx;
	(void)err;
	for (size_t i = 0; i < nr; i++, t->nr++) {
		char name[32];
		snprintf(name, sizeof name, "input %zu", t->nr % 5000);
		t->same &= e[i].time_ns == t->nr && e[i].tid == (t->nr % 2 ? 0 : 7) &&
			   !strcmp(base_strtab_get(names, e[i].name), name);
	}
	return BASE_OK;
}

static void test_all_is_handed_over(void **state)
{
	struct base_err err = {0};
	struct format_sched *to = format_sched_new();
	struct taken t = {.same = true};
	uint64_t count[FORMAT_APART_COUNTS] = {0};
	(void)state;
	format_sched_give_to(to, compare, &t);
	assert_int_equal(read_by(read_many, to, count, &err), BASE_OK);
	assert_int_equal(format_sched_give(to, &err), BASE_OK);
	assert_int_equal(t.nr, EVENTS);
	assert_true(t.same);
	assert_int_equal(count[0], 11);
	assert_true(count[3] == UINT64_MAX);
	format_sched_free(to);
}

static void expect_death(enum base_status (*read)(struct format_sched *s, const char *path,
				 uint64_t count[static 4], struct base_err *err),
	const char *what, const char *outer)
{
	struct base_err err = {0};
	struct format_sched *to = format_sched_new();
	uint64_t count[FORMAT_APART_COUNTS] = {0};
	assert_int_equal(read_by(read, to, count, &err), BASE_ERR_FOREIGN);
	assert_non_null(strstr(err.cause[0], what));
	assert_null(strchr(err.cause[0], 0x1b));
	if (outer)
		assert_string_equal(err.cause[1], outer);
	format_sched_free(to);
}

static void test_every_end_is_an_error(void **state)
{
	(void)state;
	expect_death(read_nothing, "no events in input", "outer cause");
	expect_death(read_and_abort, "libtest gave up on it (SIGABRT): precondition", NULL);
	expect_death(read_and_fault, "libtest gave up on it (SIGSEGV)", NULL);
	expect_death(read_and_exit, "libtest gave up on it (it ended)", NULL);
}

/* ---- messages -------------------------------------------------------------------------------- */

struct stream {
	uint8_t bytes[8192];
	size_t nr;
};

static void put(struct stream *s, uint32_t kind, const void *bytes, size_t nr)
{
	uint32_t head[2] = {kind, (uint32_t)nr};
	memcpy(s->bytes + s->nr, head, sizeof head);
	memcpy(s->bytes + s->nr + sizeof head, bytes, nr);
	s->nr += sizeof head + nr;
}

static void put_event(struct stream *s, uint8_t kind, uint8_t context, uint32_t name)
{
	struct format_sched_event e = {
		.kind = kind, .context = context, .name = name, .actor_name = name, .tid = 1};
	put(s, 1, &e, sizeof e);
}

static enum base_status take(const struct stream *s, size_t piece, struct format_sched *to)
{
	struct base_err err = {0};
	uint64_t count[FORMAT_APART_COUNTS] = {0};
	struct format_apart_taker t = {.to = to, .count = count};
	enum base_status status = BASE_OK;
	for (size_t at = 0; status == BASE_OK && at < s->nr; at += piece) {
		size_t nr = s->nr - at < piece ? s->nr - at : piece;
		uint8_t *own = malloc(nr);
		memcpy(own, s->bytes + at, nr);
		status = format_apart_take(&t, own, nr, &err);
		free(own);
	}
	format_apart_fini(&t);
	return status;
}

static enum base_status take_alone(const struct stream *s)
{
	struct format_sched *to = format_sched_new();
	enum base_status status = take(s, sizeof s->bytes, to);
	format_sched_free(to);
	return status;
}

static enum base_status see_names(void *ctx, const struct format_sched_event *e, size_t nr,
	const struct base_strtab *names, struct base_err *err)
{
	(void)err;
	for (size_t i = 0; i < nr; i++)
		snprintf((char *)ctx + strlen(ctx), 16, "%s;", base_strtab_get(names, e[i].name));
	return BASE_OK;
}

static void test_any_pieces(void **state)
{
	struct stream s = {.nr = 0};
	(void)state;
	put(&s, 0, "one", 3);
	put_event(&s, FORMAT_SCHED_switch, 0, 1);
	put(&s, 0, "two", 3);
	put_event(&s, FORMAT_SCHED_lost, TRACE_CONTEXT_NR - 1, 2);
	put_event(&s, FORMAT_SCHED_name, 0, 3); /* not told: no name */
	put_event(&s, FORMAT_SCHED_name, 0, 0);
	for (size_t piece = 1; piece <= s.nr; piece++) {
		char seen[64] = "";
		struct base_err err = {0};
		struct format_sched *to = format_sched_new();
		format_sched_give_to(to, see_names, seen);
		assert_int_equal(take(&s, piece, to), BASE_OK);
		assert_int_equal(format_sched_give(to, &err), BASE_OK);
		assert_string_equal(seen, "one;two;;;");
		format_sched_free(to);
	}
}

static void test_nonsense(void **state)
{
	(void)state;
	struct stream kind = {.nr = 0}, length = {.nr = 0}, event = {.nr = 0}, context = {.nr = 0},
		      part = {.nr = 0}, end = {.nr = 0};
	put(&kind, 3, "", 0);
	assert_int_equal(take_alone(&kind), BASE_ERR_FOREIGN);
	put(&length, 0, "", 0);
	memset(length.bytes + 4, 0xff, 4);
	assert_int_equal(take_alone(&length), BASE_ERR_FOREIGN);
	put_event(&event, FORMAT_SCHED_lost + 1, 0, 0);
	assert_int_equal(take_alone(&event), BASE_ERR_FOREIGN);
	put_event(&context, FORMAT_SCHED_switch, TRACE_CONTEXT_NR, 0);
	assert_int_equal(take_alone(&context), BASE_ERR_FOREIGN);
	struct stream boolean = {.nr = 0};
	put_event(&boolean, FORMAT_SCHED_switch, 0, 0);
	boolean.bytes[8 + offsetof(struct format_sched_event, runnable)] = 2;
	assert_int_equal(take_alone(&boolean), BASE_ERR_FOREIGN);
	put(&part, 1, "short", 5);
	assert_int_equal(take_alone(&part), BASE_ERR_FOREIGN);
	put(&end, 2, "short", 5);
	assert_int_equal(take_alone(&end), BASE_ERR_FOREIGN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_is_handed_over),
		cmocka_unit_test(test_every_end_is_an_error),
		cmocka_unit_test(test_any_pieces),
		cmocka_unit_test(test_nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

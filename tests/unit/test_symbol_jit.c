/* SPDX-License-Identifier: Apache-2.0 */
/* test_symbol_jit.c - names of code made at run time: perf-PID.map and jitdump, also damaged ones.
 */
#include "symbol/jit.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the map --------------------------------------------------------------------------------- */

static const char *named(const struct symbol_jit_place *p)
{
	static char text[4 * SYMBOL_JIT_NAME_BYTES_MAX];
	if (!p->function)
		return "";
	snprintf(text, sizeof text, "%.*s", (int)p->function_bytes, p->function);
	return text;
}

static bool read_map(const char *text, struct symbol_jit_place *place, size_t nr)
{
	struct symbol_jit_file f = {(uint8_t *)(uintptr_t)text, strlen(text)};
	return symbol_jit_read_map(&f, place, nr);
}

static void test_map_bounds(void **state)
{
	struct symbol_jit_place p[] = {{.address = 0xfff}, {.address = 0x1000}, {.address = 0x100f},
		{.address = 0x1010}, {.address = UINT64_MAX}};
	(void)state;
	assert_true(read_map("1000 10 first(int, char) [v1]\n"
			     "0xfffffffffffffff0 0xF last\r\n"
			     "ffffffffffffffff 1 end\n",
		p, BASE_COUNT(p)));
	assert_string_equal(named(&p[0]), "");
	assert_string_equal(named(&p[1]), "first(int, char) [v1]");
	assert_string_equal(named(&p[2]), "first(int, char) [v1]");
	assert_int_equal(p[2].start, 0x1000);
	assert_string_equal(named(&p[3]), "");
	assert_string_equal(named(&p[4]), "end");
}

static void test_map_last_counts(void **state)
{
	struct symbol_jit_place p[] = {{.address = 0x10}, {.address = 0x20}, {.address = 0x30}};
	(void)state;
	assert_true(read_map("10 40 old\n20 10 new\n", p, BASE_COUNT(p)));
	assert_string_equal(named(&p[0]), "old");
	assert_string_equal(named(&p[1]), "new");
	assert_string_equal(named(&p[2]), "old");
}

/* What a line does not say well it does not say at all; an unended one is being written. */
static void test_map_damaged(void **state)
{
	static const char *const bad[] = {"", "\n\n", "10 10\n", "10 10 \n", "x10 10 f\n",
		"10 g f\n", "10\n", " 10 10 f\n", "-10 10 f\n", "10 10 f", "0x 10 f\n",
		"00000000000000010 10 f\n", "10 00000000000000010 f\n", "10,10,f\n"};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(bad); i++) {
		struct symbol_jit_place p = {.address = 0x10};
		assert_true(read_map(bad[i], &p, 1));
		assert_null(p.function);
	}
	struct symbol_jit_place p = {.address = 0x10};
	struct symbol_jit_file nul = {(uint8_t *)(uintptr_t) "10 10 a\0b\n", 10};
	assert_true(symbol_jit_read_map(&nul, &p, 1));
	assert_null(p.function);
}

static void test_map_long_name(void **state)
{
	char *text = malloc(3 * SYMBOL_JIT_NAME_BYTES_MAX);
	struct symbol_jit_place p = {.address = 0x10};
	(void)state;
	strcpy(text, "10 1 ");
	memset(text + 5, 'n', 2 * SYMBOL_JIT_NAME_BYTES_MAX);
	strcpy(text + 5 + 2 * SYMBOL_JIT_NAME_BYTES_MAX, "\n");
	assert_true(read_map(text, &p, 1));
	assert_int_equal(p.function_bytes, SYMBOL_JIT_NAME_BYTES_MAX);
	free(text);
}

/* Many lines that each cover many places: an end, and no answer, not a wrong one. */
static void test_map_hostile(void **state)
{
	enum { PLACES = 1 << 14, LINES = 1 << 14 };
	struct symbol_jit_place *p = calloc(PLACES, sizeof *p);
	char *text = malloc(LINES * 16), *at = text;
	(void)state;
	for (size_t i = 0; i < PLACES; i++)
		p[i].address = i;
	for (size_t i = 0; i < LINES; i++)
		at += sprintf(at, "0 ffffffff f%zu\n", i % 10);
	assert_false(read_map(text, p, PLACES));
	for (size_t i = 0; i < PLACES; i++)
		assert_null(p[i].function);
	free(p);
	free(text);
}

/* ---- jitdump --------------------------------------------------------------------------------- */

struct dump {
	uint8_t bytes[4096];
	size_t nr;
};

static void add(struct dump *d, const void *bytes, size_t nr)
{
	assert_true(d->nr + nr <= sizeof d->bytes);
	memcpy(d->bytes + d->nr, bytes, nr);
	d->nr += nr;
}

static void add32(struct dump *d, uint32_t v)
{
	add(d, &v, sizeof v);
}

static void add64(struct dump *d, uint64_t v)
{
	add(d, &v, sizeof v);
}

static void add_header(struct dump *d, uint64_t flags)
{
	*d = (struct dump){0};
	add32(d, 0x4a695444);
	add32(d, 1);
	add32(d, 40);
	add32(d, 62);
	add32(d, 0);
	add32(d, 7);
	add64(d, 1);
	add64(d, flags);
}

static void add_load(struct dump *d, uint64_t time_ns, uint64_t start, uint64_t size,
	uint64_t index, const char *name)
{
	size_t nr_name = strlen(name) + 1;
	add32(d, 0);
	add32(d, (uint32_t)(16 + 40 + nr_name + size));
	add64(d, time_ns);
	add32(d, 7);
	add32(d, 7);
	add64(d, start);
	add64(d, start);
	add64(d, size);
	add64(d, index);
	add(d, name, nr_name);
	for (uint64_t i = 0; i < size; i++)
		add(d, "\x90", 1);
}

static void add_move(
	struct dump *d, uint64_t time_ns, uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	add32(d, 1);
	add32(d, 16 + 48);
	add64(d, time_ns);
	add32(d, 7);
	add32(d, 7);
	add64(d, to);
	add64(d, from);
	add64(d, to);
	add64(d, size);
	add64(d, index);
}

struct line {
	uint64_t address;
	uint32_t line;
	const char *file;
};

static void add_debug(struct dump *d, uint64_t start, const struct line *line, size_t nr)
{
	size_t bytes = 16 + 16;
	for (size_t i = 0; i < nr; i++)
		bytes += 16 + strlen(line[i].file) + 1;
	add32(d, 2);
	add32(d, (uint32_t)bytes);
	add64(d, 1);
	add64(d, start);
	add64(d, nr);
	for (size_t i = 0; i < nr; i++) {
		add64(d, line[i].address);
		add32(d, line[i].line);
		add32(d, 0);
		add(d, line[i].file, strlen(line[i].file) + 1);
	}
}

static bool read_dump(struct dump *d, struct symbol_jit_place *place, size_t nr)
{
	struct symbol_jit_file f = {d->bytes, d->nr};
	return symbol_jit_read_dump(&f, place, nr);
}

/* Code that is replaced: what ran at which time decides. */
static void test_dump_time(void **state)
{
	struct dump d;
	(void)state;
	struct symbol_jit_place p[] = {{.address = 0x1004, .seen_ns = 99},
		{.address = 0x1004, .seen_ns = 100}, {.address = 0x1004, .seen_ns = 199},
		{.address = 0x1004, .seen_ns = 200}, {.address = 0x1008, .seen_ns = 999}};
	add_header(&d, 0);
	add_load(&d, 200, 0x1000, 8, 2, "second"); /* not in the order of time */
	add_load(&d, 100, 0x1000, 16, 1, "first");
	assert_true(read_dump(&d, p, BASE_COUNT(p)));
	static const char *const want[] = {"", "first", "first", "second", "first"};
	for (size_t i = 0; i < BASE_COUNT(p); i++)
		assert_string_equal(named(&p[i]), want[i]);
}

/* Times of another clock say nothing: the last one counts. */
static void test_dump_other_clock(void **state)
{
	struct dump d;
	(void)state;
	struct symbol_jit_place p = {.address = 0x1004, .seen_ns = 5};
	add_header(&d, 1);
	add_load(&d, 200, 0x1000, 8, 1, "first");
	add_load(&d, 100, 0x1000, 8, 2, "second");
	assert_true(read_dump(&d, &p, 1));
	assert_string_equal(named(&p), "second");
}

static void test_dump_move(void **state)
{
	struct dump d;
	(void)state;
	struct symbol_jit_place p[] = {{.address = 0x1000, .seen_ns = 500},
		{.address = 0x2007, .seen_ns = 149}, {.address = 0x2007, .seen_ns = 150},
		{.address = 0x2008, .seen_ns = 150}};
	add_header(&d, 0);
	add_load(&d, 100, 0x1000, 8, 41, "moved");
	add_move(&d, 150, 0x1000, 0x2000, 8, 41);
	add_move(&d, 160, 0x1000, 0x2000, 8, 42); /* never loaded */
	assert_true(read_dump(&d, p, BASE_COUNT(p)));
	static const char *const want[] = {"moved", "", "moved", ""};
	for (size_t i = 0; i < BASE_COUNT(p); i++)
		assert_string_equal(named(&p[i]), want[i]);
}

static void expect_line(const struct symbol_jit_place *p, const char *file, unsigned line)
{
	assert_int_equal(p->line, line);
	assert_int_equal(p->file != NULL, *file != 0);
	if (p->file) {
		assert_int_equal(p->file_bytes, strlen(file));
		assert_memory_equal(p->file, file, p->file_bytes);
	}
}

static void test_dump_lines(void **state)
{
	static const unsigned before[] = {0, 64}; /* V8 counts from an ELF header */
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(before); i++) {
		struct dump d;
		unsigned b = before[i];
		struct symbol_jit_place p[] = {{.address = 0x1000}, {.address = 0x1001},
			{.address = 0x1007}, {.address = 0x1050}, {.address = 0x3000}};
		for (size_t k = 0; k < BASE_COUNT(p); k++)
			p[k].seen_ns = 1000;
		add_header(&d, 0);
		add_debug(&d, 0x1000,
			(struct line[]){{0x1001 + b, 10, "a.js"}, {0x1004 + b, 12, "\xff"},
				{0x1008 + b, 3, "b.js"}},
			3);
		add_load(&d, 100, 0x1000, 0x100, 1, "f");
		add_load(&d, 100, 0x3000, 0x10, 2, "without lines");
		assert_true(read_dump(&d, p, BASE_COUNT(p)));
		expect_line(&p[0], "", 0);
		expect_line(&p[1], "a.js", 10);
		expect_line(&p[2], "a.js", 12);
		expect_line(&p[3], "b.js", 3);
		expect_line(&p[4], "", 0);
	}
}

/* Every way to cut it, and every byte changed: an answer, and no byte read that is not there. */
static void test_dump_damaged(void **state)
{
	struct dump d;
	(void)state;
	add_header(&d, 0);
	add_debug(&d, 0x1000, (struct line[]){{0x1001, 10, "a.js"}, {0x1004, 12, "\xff"}}, 2);
	add_load(&d, 100, 0x1000, 8, 1, "f");
	add_move(&d, 150, 0x1000, 0x2000, 8, 1);
	for (size_t cut = 0; cut <= d.nr; cut++) {
		struct symbol_jit_place p[] = {
			{.address = 0x1001, .seen_ns = 200}, {.address = 0x2001, .seen_ns = 200}};
		uint8_t *own = malloc(cut + 1); /* exactly as much: valgrind and ASan see it */
		memcpy(own, d.bytes, cut);
		struct symbol_jit_file f = {own, cut};
		assert_int_equal(symbol_jit_read_dump(&f, p, 2), cut >= 40);
		assert_int_equal(p[1].function != NULL, cut == d.nr);
		free(own);
	}
	for (size_t at = 0; at < d.nr; at++) {
		struct dump changed = d;
		struct symbol_jit_place p = {.address = 0x1001, .seen_ns = 200};
		changed.bytes[at] ^= 0xff;
		(void)read_dump(&changed, &p, 1);
	}
	d.bytes[0] ^= 1;
	assert_false(read_dump(&d, &(struct symbol_jit_place){0}, 1));
}

/* What the jitdump has named the map does not name again. */
static void test_dump_before_map(void **state)
{
	struct dump d;
	(void)state;
	struct symbol_jit_place p[] = {
		{.address = 0x1000, .seen_ns = 100}, {.address = 0x1008, .seen_ns = 100}};
	add_header(&d, 0);
	add_load(&d, 100, 0x1000, 8, 1, "by dump");
	assert_true(read_dump(&d, p, 2));
	assert_true(read_map("1000 10 by map\n", p, 2));
	assert_string_equal(named(&p[0]), "by dump");
	assert_string_equal(named(&p[1]), "by map");
}

/* ---- whose file ------------------------------------------------------------------------------ */

enum { BORN_S = 1000000000 };

static int opens(int dir, const char *name, uid_t owner, const char **ret_why)
{
	const struct symbol_jit_writer writer = {.owner = owner, .born_s = BORN_S};
	int fd = symbol_jit_open(dir, name, &writer, ret_why);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void test_whose_file(void **state)
{
	char name[] = "/tmp/longpole-jit-XXXXXX";
	const char *why;
	(void)state;
	assert_non_null(mkdtemp(name));
	int dir = open(name, O_PATH | O_DIRECTORY);
	int fd = openat(dir, "map", O_CREAT | O_RDWR, 0600);
	assert_int_equal(write(fd, "10 10 f\n", 8), 8);
	assert_int_equal(symlinkat("map", dir, "link"), 0);
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_false(opens(dir, "none", geteuid(), &why));
	assert_null(why);
	assert_true(opens(dir, "map", geteuid(), &why));
	assert_false(opens(dir, "link", geteuid(), &why));
	assert_non_null(strstr(why, "symbolic link"));
	assert_false(opens(dir, "fifo", geteuid(), &why));
	assert_non_null(strstr(why, "regular"));
	if (!geteuid()) {
		assert_int_equal(fchown(fd, 12345, 12345), 0);
		assert_true(opens(dir, "map", 12345, &why));
		assert_false(opens(dir, "map", 0, &why));
		assert_non_null(strstr(why, "belongs"));
		assert_int_equal(fchown(fd, 0, 0), 0);
		assert_true(opens(dir, "map", 12345, &why)); /* root's */
	}
	struct timespec times[2] = {{.tv_sec = BORN_S - 1}, {.tv_sec = BORN_S - 1}};
	assert_int_equal(futimens(fd, times), 0);
	assert_false(opens(dir, "map", geteuid(), &why));
	assert_non_null(strstr(why, "older than the process"));
	times[1].tv_sec++;
	assert_int_equal(futimens(fd, times), 0);
	assert_true(opens(dir, "map", geteuid(), &why));
	assert_int_equal(ftruncate(fd, SYMBOL_JIT_FILE_BYTES_MAX + INT64_C(1)), 0);
	assert_false(opens(dir, "map", geteuid(), &why));
	assert_non_null(strstr(why, "256 MiB"));
	assert_int_equal(ftruncate(fd, 8), 0);
	struct symbol_jit_file f;
	assert_true(symbol_jit_load(&f, fd));
	assert_int_equal(f.nr_bytes, 8);
	struct symbol_jit_place p = {.address = 0x11};
	assert_true(symbol_jit_read_map(&f, &p, 1));
	assert_string_equal(named(&p), "f");
	symbol_jit_unload(&f);
	close(fd);
	unlinkat(dir, "map", 0);
	unlinkat(dir, "link", 0);
	unlinkat(dir, "fifo", 0);
	close(dir);
	rmdir(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map_bounds),
		cmocka_unit_test(test_map_last_counts),
		cmocka_unit_test(test_map_damaged),
		cmocka_unit_test(test_map_long_name),
		cmocka_unit_test(test_map_hostile),
		cmocka_unit_test(test_dump_time),
		cmocka_unit_test(test_dump_other_clock),
		cmocka_unit_test(test_dump_move),
		cmocka_unit_test(test_dump_lines),
		cmocka_unit_test(test_dump_damaged),
		cmocka_unit_test(test_dump_before_map),
		cmocka_unit_test(test_whose_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

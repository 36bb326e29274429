/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory_source.c - foreign traces, good and bad; the order of steps; the slice scheduler. */
#include "memory/stream/smait.h"
#include "memory/tdat.h"
#include "memory_fixture.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "test.h"

/* ---- files ----------------------------------------------------------------------------------- */

struct name {
	char text[64];
};

static struct name write_file(const void *bytes, size_t size_bytes)
{
	struct name n;
	temporary_file(n.text, bytes, size_bytes);
	return n;
}

/* Opens, reads all items of thread `thread` into one array, checks each batch. */
static size_t read_all(struct memory_source *s, int thread, struct memory_item *item, size_t max)
{
	size_t nr = 0;
	struct base_err err = {0};
	for (;;) {
		struct memory_batch b;
		enum base_status status = memory_source_next(s, thread, &b, &err);
		if (status == BASE_END)
			return nr;
		assert_int_equal(status, BASE_OK);
		if (memory_batch_check(&b, &err) != BASE_OK)
			fail_msg("%s", err.cause[0]);
		for (size_t i = 0; i < b.nr; i++, nr++)
			if (nr < max)
				item[nr] = b.item[i];
	}
}

static struct memory_source *open_file(const char *format, const struct name *n)
{
	struct memory_source *s;
	struct base_err err = {0};
	const char *path = n->text;
	if (memory_source_open(format, &path, 1, &s, &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
	unlink(path);
	return s;
}

/* ---- SMAIT ----------------------------------------------------------------------------------- */

struct simple {
	uint32_t a, b;
};

static struct name write_smait(const struct simple *r, size_t nr, bool big_endian, size_t cut)
{
	uint8_t bytes[4096];
	for (size_t i = 0; i < 2 * nr; i++) {
		uint32_t v = i % 2 ? r[i / 2].b : r[i / 2].a;
		for (unsigned k = 0; k < 4; k++)
			bytes[4 * i + k] = (uint8_t)(v >> 8 * (big_endian ? 3 - k : k));
	}
	return write_file(bytes, 8 * nr - cut);
}

/* The seed's own examples of records, both byte orders. */
static const struct simple seed_example[] = {
	{0x40000000, 0x4c00}, /* procedure at 4C00 */
	{0x00000040, 0x1000}, /* loads a word into a fixed-point register */
	{0x00000181, 0x2000}, /* stores a double-word from a floating-point register */
	{0x80004c18, 0x4d20}, /* branch taken at 4C14 to 4D20 */
	{0x00001010, 100}, {0x00001011, 110}, {0x00001012, 7}, {0x00001013, 4}, {0x00001014, 0},
	{0x00001015, 0},      /* spawn */
	{0xc000542c, 0x5630}, /* call: too far from 4D20 to be straight on? no: reachable */
};

static void test_smait(void **state)
{
	(void)state;
	for (unsigned big = 0; big < 2; big++) {
		struct name n = write_smait(seed_example, BASE_COUNT(seed_example), big, 0);
		struct memory_source *s = open_file(NULL, &n);
		struct memory_item t[32];
		assert_int_equal(read_all(s, 0, t, 32), 10);
		assert_int_equal(t[0].kind, MEMORY_PROC_START);
		assert_int_equal(t[1].kind, MEMORY_BLOCK);
		assert_int_equal(t[1].address, 0x4c00);
		assert_int_equal(t[2].kind, MEMORY_LOAD);
		assert_int_equal(t[2].size_bytes, 4);
		assert_int_equal(t[2].reg, MEMORY_REG_INTEGER);
		assert_int_equal(t[2].code, 0x4c00);
		assert_int_equal(t[4].kind, MEMORY_STORE);
		assert_int_equal(t[4].size_bytes, 8);
		assert_int_equal(t[4].reg, MEMORY_REG_FLOAT);
		assert_int_equal(
			t[5].kind, MEMORY_BLOCK); /* 4C08 .. 4C17, the delay slot's 4C14 too */
		assert_int_equal(t[5].address, 0x4c08);
		assert_int_equal(t[5].count, 4);
		assert_int_equal(t[6].kind, MEMORY_BRANCH);
		assert_int_equal(t[6].instructions, 4);
		assert_int_equal(t[7].kind, MEMORY_CALL);
		assert_int_equal(t[8].kind, MEMORY_BLOCK);
		assert_int_equal(t[8].address, 0x4d20);
		assert_int_equal(t[9].kind, MEMORY_PROC_CALL);
		assert_int_equal(t[9].address, 0x5630);
		assert_int_equal(
			s->info.flags & MEMORY_SOURCE_INSTRUCTIONS, MEMORY_SOURCE_INSTRUCTIONS);
		memory_source_close(s);
	}
}

static void test_smait_bad(void **state)
{
	(void)state;
	static const struct {
		struct simple record[8];
		size_t nr, cut;
		enum memory_diag diag;
		uint64_t at;
	} row[] = {
		{{{0x40, 1}, {0x41, 1}, {0x40, 2}}, 3, 3, MEMORY_DIAG_truncated, 3},
		{{{0x40, 1}, {0x00dead00, 1}, {0x40, 2}}, 3, 0, MEMORY_DIAG_bad_record, 2},
		{{{0x40, 1}, {0x1010, 5}, {0x1011, 6}, {0x40, 1}}, 4, 0, MEMORY_DIAG_cut_call, 3},
		{{{0x1030, 50}, {0x1031, 40}, {0x1032, 0}, {0x1033, 0}, {0x1034, 0}, {0x1035, 0}},
			6, 0, MEMORY_DIAG_negative_time, 6},
		{{{0x40000000, 0x9000}, {0x80001000, 0x2000}, {0x40, 2}}, 3, 0,
			MEMORY_DIAG_branch_gap, 2},
	};
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct name n = write_smait(row[i].record, row[i].nr, true, row[i].cut);
		struct memory_source *s = open_file("smait", &n);
		struct memory_item t[16];
		(void)read_all(s, 0, t, 16);
		assert_int_equal(s->diags.count[row[i].diag], 1);
		assert_int_equal(s->diags.first_record[row[i].diag], row[i].at);
		memory_source_close(s);
	}
	struct name n = write_file("this is not a trace of anything", 31);
	const char *path = n.text;
	struct memory_source *s;
	struct base_err err = {0};
	assert_int_equal(memory_source_open(NULL, &path, 1, &s, &err), BASE_ERR_FOREIGN);
	assert_int_equal(memory_source_open("smait", &path, 1, &s, &err), BASE_ERR_FOREIGN);
	unlink(path);
	assert_int_equal(memory_source_open(NULL, &path, 1, &s, &err), BASE_ERR_ENV);
	assert_int_equal(memory_source_open("ascii", &path, 1, &s, &err), BASE_ERR_USAGE);
}

/* Written and read again: the same accesses and calls. */
static void test_smait_round(void **state)
{
	(void)state;
	char stem[TEMPORARY_PATH];
	struct base_err err = {0};
	struct memory_smait_writer *w;
	struct memory_smait_loss loss;
	temporary_file(stem, NULL, 0);
	unlink(stem);
	assert_int_equal(memory_smait_writer_open(stem, 2, true, &w, &err), BASE_OK);
	struct memory_item item[] = {
		{.kind = MEMORY_REPEAT, .address = 1, .count = 3},
		{.kind = MEMORY_LOAD, .address = 0x1000, .stride_bytes = 8, .size_bytes = 8},
		{.kind = MEMORY_STORE,
			.address = 0x7fff00001234,
			.size_bytes = 16,
			.reg = MEMORY_REG_VECTOR},
		{.kind = MEMORY_CALL, .address = 0},
		{.kind = MEMORY_RANGE_LOAD, .address = 0x1000, .count = 100},
	};
	struct memory_call call = {.kind = MEMORY_CALL_barrier,
		.start_ns = 5000000000000,
		.end_ns = 5000000003000,
		.argument = {1, 2, 3, 4}};
	struct memory_batch b = {.item = item, .nr = 5, .call = &call, .nr_calls = 1, .thread = 1};
	assert_int_equal(memory_smait_writer_put(w, &b, &err), BASE_OK);
	assert_int_equal(memory_smait_writer_close(w, &loss, &err), BASE_OK);
	assert_int_equal(loss.moved_pages, 1);
	assert_int_equal(loss.ranges, 1);
	struct memory_source *s;
	const char *path = stem;
	assert_int_equal(memory_source_open("smait", &path, 1, &s, &err), BASE_OK);
	assert_int_equal(s->info.nr_threads, 2);
	struct memory_item t[16];
	assert_int_equal(read_all(s, 0, t, 16), 0);
	assert_int_equal(read_all(s, 1, t, 16), 6);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(t[i].kind, MEMORY_LOAD);
		assert_int_equal(t[i].address, 0x1000 + 8 * i);
	}
	assert_int_equal(t[3].kind, MEMORY_STORE);
	assert_int_equal(t[3].address & 0xfff, 0x234);
	assert_int_equal(t[4].address, t[3].address + 8);
	assert_int_equal(t[5].kind, MEMORY_CALL);
	memory_source_close(s);
	for (unsigned i = 0; i < 2; i++) {
		char name[TEMPORARY_PATH + 16];
		snprintf(name, sizeof name, "%s.%u", stem, i);
		unlink(name);
	}
}

static void put_calls(
	struct memory_smait_writer *w, uint32_t thread, const struct memory_call *call, size_t nr)
{
	struct memory_item item[8] = {{0}};
	struct base_err err = {0};
	for (size_t i = 0; i < nr; i++)
		item[i] = (struct memory_item){.kind = MEMORY_CALL, .address = i};
	struct memory_batch b = {
		.item = item, .nr = nr, .call = call, .nr_calls = nr, .thread = thread};
	assert_int_equal(memory_smait_writer_put(w, &b, &err), BASE_OK);
}

static void check_calls(struct memory_source *s, int thread, const unsigned *kind, size_t nr,
	const uint64_t (*argument)[2])
{
	struct base_err err = {0};
	struct memory_batch b;
	size_t at = 0;
	while (memory_source_next(s, thread, &b, &err) == BASE_OK)
		for (size_t i = 0; i < b.nr_calls; i++, at++) {
			assert_true(at < nr);
			assert_int_equal(b.call[i].kind, kind[at]);
			assert_int_equal(b.call[i].argument[0], argument[at][0]);
			assert_int_equal(b.call[i].argument[1], argument[at][1]);
		}
	assert_int_equal(at, nr);
}

/* Threads that come and go become regions with a spawn and a join, locks critical sections. */
static void test_smait_threads(void **state)
{
	(void)state;
	char stem[TEMPORARY_PATH];
	struct base_err err = {0};
	struct memory_smait_writer *w;
	struct memory_smait_loss loss;
	enum { CREATE = MEMORY_CALL_thread_create, JOIN = MEMORY_CALL_thread_join };
	temporary_file(stem, NULL, 0);
	unlink(stem);
	assert_int_equal(memory_smait_writer_open(stem, 4, true, &w, &err), BASE_OK);
	put_calls(w, 0,
		(struct memory_call[]){{.kind = CREATE, .argument = {1}},
			{.kind = CREATE, .argument = {2}}, {.kind = JOIN, .argument = {1}},
			{.kind = JOIN, .argument = {2}}, {.kind = CREATE, .argument = {3}},
			{.kind = JOIN, .argument = {3}}},
		6);
	put_calls(w, 1,
		(struct memory_call[]){{.kind = MEMORY_CALL_lock, .argument = {0x5000}},
			{.kind = MEMORY_CALL_unlock, .argument = {0x5000}},
			{.kind = MEMORY_CALL_lock, .argument = {0x6000, 1}}},
		3);
	put_calls(w, 2, (struct memory_call[]){{.kind = CREATE, .argument = {9}}}, 1);
	put_calls(
		w, 3, (struct memory_call[]){{.kind = MEMORY_CALL_barrier, .argument = {8, 1}}}, 1);
	assert_int_equal(memory_smait_writer_close(w, &loss, &err), BASE_OK);
	assert_int_equal(loss.nested_calls, 1);
	assert_int_equal(loss.shared_locks, 1);
	assert_int_equal(loss.other_calls, 0);
	struct memory_source *s;
	const char *path = stem;
	assert_int_equal(memory_source_open("smait", &path, 1, &s, &err), BASE_OK);
	check_calls(s, 0, (unsigned[]){1, 2, 1, 2}, 4,
		(const uint64_t[][2]){{1, 2}, {1, 0}, {2, 1}, {2, 0}});
	check_calls(s, 1, (unsigned[]){6, 7, 6}, 3,
		(const uint64_t[][2]){{0x5000, 0}, {0x5000, 0}, {0x6000, 0}});
	check_calls(s, 2, NULL, 0, NULL);
	check_calls(s, 3, (unsigned[]){2, 3}, 2, (const uint64_t[][2]){{1, 0}, {8, 1}});
	memory_source_close(s);
	for (unsigned i = 0; i < 4; i++) {
		char name[TEMPORARY_PATH + 16];
		snprintf(name, sizeof name, "%s.%u", stem, i);
		unlink(name);
	}
}

/* ---- text ------------------------------------------------------------------------------------ */

static void test_lackey(void **state)
{
	(void)state;
	static const char text[] = "==123== Lackey, an example Valgrind tool\n==123== more\n"
				   "I  0023c790,2\n L 1ffe7e774,8\nI  0023c792,4\n M 0025747c,4\n"
				   "I  0023c700,1\n S ffffffff1000,8\n S nonsense,8\n L 1000,0\n";
	struct name n = write_file(text, sizeof text - 1);
	struct memory_source *s = open_file(NULL, &n);
	struct memory_item t[16];
	assert_string_equal(s->info.format, "lackey");
	assert_int_equal(read_all(s, MEMORY_ANY_THREAD, t, 16), 7);
	assert_int_equal(t[0].kind, MEMORY_BLOCK);
	assert_int_equal(t[1].kind, MEMORY_LOAD);
	assert_int_equal(t[1].address, 0x1ffe7e774);
	assert_int_equal(t[1].code, 0x23c790);
	assert_int_equal(t[3].kind, MEMORY_LOAD); /* M: both */
	assert_int_equal(t[4].kind, MEMORY_STORE);
	assert_int_equal(t[5].kind, MEMORY_BRANCH);
	assert_int_equal(t[5].address, 0x23c700);
	assert_int_equal(s->diags.count[MEMORY_DIAG_bad_address], 1);
	assert_int_equal(s->diags.first_record[MEMORY_DIAG_bad_address], 8);
	assert_int_equal(s->diags.count[MEMORY_DIAG_bad_record], 1);
	assert_int_equal(s->diags.count[MEMORY_DIAG_bad_size], 1);
	memory_source_close(s);
}

static void test_din_and_drmemtrace(void **state)
{
	(void)state;
	static const char din[] = "2 400000\n0 1000\n1 1004 8\nr 2000 2\ni 400004 4\n";
	struct name n = write_file(din, sizeof din - 1);
	struct memory_source *s = open_file(NULL, &n);
	struct memory_item t[16];
	assert_string_equal(s->info.format, "din");
	assert_int_equal(read_all(s, MEMORY_ANY_THREAD, t, 16), 5);
	assert_int_equal(t[2].kind, MEMORY_STORE);
	assert_int_equal(t[2].size_bytes, 8);
	memory_source_close(s);

	static const char dr[] =
		"Output format:\n<--record#-> <--instr#->: <---tid---> <record details>\n"
		"------------------------------------------------------------\n"
		"           1           0:      296231 <marker: timestamp 13319413770947383>\n"
		"          87           1:      296231 ifetch       4 byte(s) @ 0x0000000000401026 "
		"0f 05 "
		"mov\n"
		"          88           1:      296231 write        8 byte(s) @ 0x00007ffe00001000 "
		"by PC "
		"0x0000000000401026\n"
		"          89           2:      296232 ifetch       2 byte(s) @ 0x0000000000401030 "
		"75 d9 "
		"jnz\n"
		"          90           2:      296232 read         4 byte(s) @ 0x00007ffe00001000 "
		"by PC "
		"0x0000000000401030\n"
		"View tool results:\n              2 : total instructions\n";
	n = write_file(dr, sizeof dr - 1);
	s = open_file(NULL, &n);
	assert_string_equal(s->info.format, "drmemtrace");
	assert_int_equal(s->info.nr_threads, 2);
	struct memory_batch b;
	struct base_err err = {0};
	assert_int_equal(memory_source_next(s, MEMORY_ANY_THREAD, &b, &err), BASE_OK);
	assert_int_equal(b.thread, 0);
	assert_int_equal(b.nr, 2);
	assert_int_equal(b.item[1].address, 0x7ffe00001000);
	assert_int_equal(memory_source_next(s, MEMORY_ANY_THREAD, &b, &err), BASE_OK);
	assert_int_equal(b.thread, 1);
	assert_int_equal(b.item[1].kind, MEMORY_LOAD);
	/* the view tool's own lines, and markers, are no records of an unknown kind */
	assert_int_equal(s->diags.count[MEMORY_DIAG_bad_record], 0);
	memory_source_close(s);
}

static void check_unknown_words(const char *records, uint64_t nr_unknown, uint64_t first)
{
	struct base_str text = {0};
	base_str_add(&text, "<--record#-> <--instr#->: <---tid---> <record details>\n");
	base_str_add(&text, records);
	struct name n = write_file(base_str_text(&text), text.length);
	struct memory_source *s = open_file(NULL, &n);
	struct memory_item t[16];
	assert_int_equal(read_all(s, MEMORY_ANY_THREAD, t, 16), 1);
	assert_int_equal(s->diags.count[MEMORY_DIAG_bad_record], nr_unknown);
	assert_int_equal(s->diags.first_record[MEMORY_DIAG_bad_record], first);
	memory_source_close(s);
	base_str_fini(&text);
}

/* What is left out of a drmemtrace is told; what is known to be no access is not. */
static void test_drmemtrace_words(void **state)
{
	(void)state;
	static const char good[] = "1 1: 7 read 8 byte(s) @ 0x1000 by PC 0x10\n";
	static const struct {
		const char *line;
		bool unknown;
	} word[] = {{"2 1: 7 <marker: timestamp 1>\n", false},
		{"2 1: 7 <thread 7 exited>\n", false},
		{"2 1: 7 pref-r-L1 64 byte(s) @ 0x1000 by PC 0x10\n", false},
		{"2 1: 7 gather 8 byte(s) @ 0x1000 by PC 0x10\n", true},
		{"2 1: 7 <entry type 99>\n", true}, {"2 1: seven read 8 byte(s) @ 0x1000\n", true},
		{"garbage that nobody knows\n", true}};
	for (size_t i = 0; i < BASE_COUNT(word); i++) {
		struct base_str text = {0};
		base_str_addf(&text, "%s%s", good, word[i].line);
		check_unknown_words(base_str_text(&text), word[i].unknown, word[i].unknown ? 3 : 0);
		base_str_fini(&text);
	}
}

/* ---- order ----------------------------------------------------------------------------------- */

struct seen {
	struct memory_step step[4096];
	size_t nr;
};

static void run_order(
	struct fixture *f, const struct memory_order_options *options, struct seen *ret)
{
	struct memory_order *o;
	struct base_err err = {0};
	ret->nr = 0;
	if (memory_order_new(&f->source, NULL, options, &o, &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
	for (;;) {
		struct memory_steps steps;
		enum base_status s = memory_order_next(o, &steps, &err);
		if (s == BASE_END)
			break;
		assert_int_equal(s, BASE_OK);
		for (size_t i = 0; i < steps.nr && ret->nr < BASE_COUNT(ret->step); i++)
			ret->step[ret->nr++] = steps.step[i];
	}
	assert_int_equal(ret->step[0].kind, MEMORY_STEP_PHASE_BEGIN);
	assert_int_equal(ret->step[ret->nr - 1].kind, MEMORY_STEP_PHASE_END);
	memory_order_free(o);
}

/* The accesses in their order, as "thread:address " each. */
static const char *accesses(const struct seen *s, struct base_str *out)
{
	base_str_reset(out);
	for (size_t i = 0; i < s->nr; i++)
		if (s->step[i].kind <= MEMORY_ATOMIC)
			base_str_addf(out, "%u:%llu ", s->step[i].thread,
				(unsigned long long)s->step[i].address);
	return base_str_text(out);
}

static void test_pseudo_clocks(void **state)
{
	(void)state;
	static struct seen s;
	struct base_str text = {0};
	struct memory_order_options o = {.disk_latency_ms = -1};
	/* Thread 1's second access comes 3 instructions after its first. */
	struct fixture *f = fixture_new(2, 0);
	f->batch_max = 2;
	for (unsigned i = 0; i < 5; i++)
		fixture_access(f, 0, MEMORY_LOAD, 10 + i, 1);
	for (unsigned i = 0; i < 3; i++)
		fixture_access(f, 1, MEMORY_LOAD, 20 + i, 1);
	f->thread[1].item[1].instructions = 3;
	run_order(f, &o, &s);
	assert_string_equal(accesses(&s, &text), "0:10 1:20 0:11 0:12 0:13 1:21 0:14 1:22 ");
	memory_source_close(&f->source);

	/* A barrier: 0 waits for 1, then both go on at the larger clock. */
	f = fixture_new(2, 0);
	fixture_access(f, 0, MEMORY_LOAD, 10, 1);
	fixture_call(f, 0, MEMORY_CALL_barrier, 0x99, 2);
	fixture_access(f, 0, MEMORY_LOAD, 11, 1);
	for (unsigned i = 0; i < 4; i++)
		fixture_access(f, 1, MEMORY_LOAD, 20 + i, 1);
	fixture_call(f, 1, MEMORY_CALL_barrier, 0x99, 2);
	fixture_access(f, 1, MEMORY_LOAD, 24, 1);
	run_order(f, &o, &s);
	assert_string_equal(accesses(&s, &text), "0:10 1:20 1:21 1:22 1:23 0:11 1:24 ");
	for (size_t i = 0; i < s.nr; i++)
		if (s.step[i].kind == MEMORY_LOAD && s.step[i].address == 11)
			assert_int_equal(s.step[i].clock, 4);
	memory_source_close(&f->source);

	/* Times: the piece that begins first goes first, whatever the clocks. */
	f = fixture_new(2, MEMORY_SOURCE_TIMES);
	for (unsigned t = 0; t < 2; t++)
		for (unsigned piece = 0; piece < 2; piece++) {
			fixture_put(f, t,
				(struct memory_item){.kind = MEMORY_STAMP,
					.address = 100 * piece + (t ? 10 : 50)});
			fixture_access(f, t, MEMORY_LOAD, t * 10 + piece, 1);
			fixture_access(f, t, MEMORY_LOAD, t * 10 + piece, 1);
		}
	o.mode = MEMORY_ORDER_TIME;
	run_order(f, &o, &s);
	assert_string_equal(accesses(&s, &text), "1:10 1:10 0:0 0:0 1:11 1:11 0:1 0:1 ");
	memory_source_close(&f->source);
	base_str_fini(&text);
}

/* What is wrong with threads is said, and nothing hangs. */
static void test_bad_threads(void **state)
{
	(void)state;
	static struct seen s;
	struct memory_order_options o = {.disk_latency_ms = -1};
	struct fixture *f = fixture_new(2, MEMORY_SOURCE_THREADS);
	fixture_call(f, 0, MEMORY_CALL_join, 0, 0);
	fixture_call(f, 0, MEMORY_CALL_spawn, 1, 2);
	fixture_access(f, 0, MEMORY_LOAD, 1, 1);
	fixture_call(f, 1, MEMORY_CALL_barrier, 0x99, 2);
	fixture_access(f, 1, MEMORY_LOAD, 2, 1);
	run_order(f, &o, &s);
	assert_int_equal(f->source.diags.count[MEMORY_DIAG_join_without_spawn], 1);
	assert_int_equal(f->source.diags.count[MEMORY_DIAG_spawn_without_join], 1);
	assert_int_equal(f->source.diags.count[MEMORY_DIAG_barrier_short], 1);
	memory_source_close(&f->source);

	f = fixture_new(2, MEMORY_SOURCE_THREADS); /* nobody spawned thread 1 */
	fixture_access(f, 0, MEMORY_LOAD, 1, 1);
	fixture_call(f, 0, MEMORY_CALL_thread_create, 9, 0);
	fixture_access(f, 1, MEMORY_LOAD, 2, 1);
	run_order(f, &o, &s);
	assert_int_equal(f->source.diags.count[MEMORY_DIAG_silent_thread], 1);
	assert_int_equal(f->source.diags.count[MEMORY_DIAG_bad_thread], 1);
	memory_source_close(&f->source);
}

/* Threads made one by one: parallel from the first creation to the last join. */
static void test_creation(void **state)
{
	(void)state;
	static struct seen s;
	struct base_str text = {0};
	struct memory_order_options o = {.disk_latency_ms = -1};
	struct fixture *f = fixture_new(3, MEMORY_SOURCE_THREADS);
	fixture_access(f, 0, MEMORY_LOAD, 1, 1);
	fixture_call(f, 0, MEMORY_CALL_thread_create, 2, 0);
	fixture_access(f, 0, MEMORY_LOAD, 2, 1);
	fixture_call(f, 0, MEMORY_CALL_thread_create, 1, 0);
	fixture_call(f, 0, MEMORY_CALL_thread_join, 1, 0);
	fixture_call(f, 0, MEMORY_CALL_thread_join, 2, 0);
	fixture_access(f, 0, MEMORY_LOAD, 3, 1);
	for (unsigned i = 0; i < 3; i++) {
		fixture_access(f, 1, MEMORY_LOAD, 10 + i, 1);
		fixture_access(f, 2, MEMORY_LOAD, 20 + i, 1);
	}
	run_order(f, &o, &s);
	assert_string_equal(accesses(&s, &text), "0:1 0:2 2:20 1:10 2:21 1:11 2:22 1:12 0:3 ");
	for (unsigned d = 0; d < MEMORY_DIAG_NR; d++)
		assert_int_equal(f->source.diags.count[d], 0);
	memory_source_close(&f->source);
	base_str_fini(&text);
}

/* One thread at a time, which nobody joins, the second on the first one's stack; thread 3 is beside
 * them. Thread 0 waits for each in a way that has no record. */
static struct fixture *detached(uint64_t stack)
{
	struct fixture *f = fixture_new(4, MEMORY_SOURCE_THREADS);
	f->thread[0].life = (struct memory_life){1, 100, 0x1000};
	f->thread[1].life = (struct memory_life){11, 20, 0x2000};
	f->thread[2].life = (struct memory_life){31, 40, stack};
	f->thread[3].life = (struct memory_life){6, 90, 0x4000};
	fixture_call_at(f, 0, MEMORY_CALL_thread_create, 3, 5, 5);
	fixture_call_at(f, 0, MEMORY_CALL_thread_create, 1, 10, 10);
	fixture_access(f, 0, MEMORY_LOAD, 1, 1);
	fixture_call_at(f, 0, MEMORY_CALL_thread_create, 2, 30, 30);
	fixture_access(f, 0, MEMORY_LOAD, 2, 1);
	for (unsigned i = 0; i < 3; i++)
		fixture_access(f, 1, MEMORY_LOAD, 10 + i, 1);
	for (unsigned i = 0; i < 2; i++)
		fixture_access(f, 2, MEMORY_LOAD, 20 + i, 1);
	for (unsigned i = 0; i < 5; i++)
		fixture_access(f, 3, MEMORY_LOAD, 30 + i, 1);
	return f;
}

static void test_detached(void **state)
{
	(void)state;
	static struct seen s;
	struct base_str text = {0};
	struct memory_order_options o = {.disk_latency_ms = -1};
	struct fixture *f = detached(0x2000);
	run_order(f, &o, &s);
	/* Thread 3 goes on beside them, and is not waited for. */
	assert_string_equal(
		accesses(&s, &text), "0:1 1:10 3:30 1:11 3:31 1:12 3:32 0:2 2:20 3:33 2:21 3:34 ");
	memory_source_close(&f->source);

	/* On another stack it may have been chance that the first had ended: side by side. */
	f = detached(0x3000);
	run_order(f, &o, &s);
	assert_string_equal(
		accesses(&s, &text), "0:1 1:10 3:30 0:2 1:11 2:20 3:31 1:12 2:21 3:32 3:33 3:34 ");
	memory_source_close(&f->source);

	/* A join says enough. */
	f = detached(0x2000);
	f->thread[0].nr = f->thread[0].nr_calls = 0;
	fixture_call_at(f, 0, MEMORY_CALL_thread_create, 3, 5, 5);
	fixture_call_at(f, 0, MEMORY_CALL_thread_create, 1, 10, 10);
	fixture_call_at(f, 0, MEMORY_CALL_thread_join, 1, 11, 29);
	fixture_call_at(f, 0, MEMORY_CALL_thread_create, 2, 30, 30);
	run_order(f, &o, &s);
	assert_string_equal(
		accesses(&s, &text), "1:10 3:30 1:11 3:31 1:12 3:32 2:20 3:33 2:21 3:34 ");
	memory_source_close(&f->source);
	base_str_fini(&text);
}

/* Thread 0 gives up a mutex, waits from 10 to 20; thread 1 signals after three accesses. */
static struct fixture *condition(unsigned before, uint64_t unlocked_ns, uint64_t signalled_ns)
{
	struct fixture *f = fixture_new(2, MEMORY_SOURCE_THREADS);
	fixture_call(f, 0, MEMORY_CALL_thread_create, 1, 0);
	for (unsigned i = 0; i < before; i++)
		fixture_access(f, 0, MEMORY_LOAD, 0, 1);
	fixture_call_at(f, 0, MEMORY_CALL_unlock, 0x50, unlocked_ns, unlocked_ns);
	fixture_call_at(f, 0, MEMORY_CALL_wait, 0x60, 10, 20);
	fixture_access(f, 0, MEMORY_LOAD, 1, 1);
	fixture_access(f, 0, MEMORY_LOAD, 2, 1);
	for (unsigned i = 0; i < 3; i++)
		fixture_access(f, 1, MEMORY_LOAD, 10 + i, 1);
	fixture_call_at(f, 1, MEMORY_CALL_signal, 0x60, signalled_ns, signalled_ns);
	for (unsigned i = 3; i < 5; i++)
		fixture_access(f, 1, MEMORY_LOAD, 10 + i, 1);
	fixture_call_at(f, 1, MEMORY_CALL_unlock, 0x50, 40, 40);
	fixture_access(f, 1, MEMORY_LOAD, 15, 1);
	return f;
}

static void test_condition(void **state)
{
	(void)state;
	static const struct {
		unsigned before;
		uint64_t unlocked_ns, signalled_ns;
		const char *order;
	} row[] = {
		{0, 10, 15, "1:10 1:11 1:12 0:1 1:13 0:2 1:14 1:15 "},
		/* The signal was another wait's: it went on when that was over, without one. */
		{0, 10, 30, "1:10 1:11 1:12 0:1 1:13 0:2 1:14 1:15 "},
		{0, 10, 5, "1:10 1:11 1:12 1:13 1:14 0:1 1:15 0:2 "},
		/* No mutex was given up for it: a semaphore. */
		{0, 9, 15, "0:1 1:10 0:2 1:11 1:12 1:13 1:14 1:15 "},
		/* Signalled before its turn to wait: it goes on at once. */
		{4, 10, 15, "0:0 1:10 0:0 1:11 0:0 1:12 0:0 1:13 0:1 1:14 0:2 1:15 "},
	};
	struct base_str text = {0};
	struct memory_order_options o = {.disk_latency_ms = -1};
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct fixture *f =
			condition(row[i].before, row[i].unlocked_ns, row[i].signalled_ns);
		static struct seen s;
		run_order(f, &o, &s);
		assert_string_equal(accesses(&s, &text), row[i].order);
		memory_source_close(&f->source);
	}
	base_str_fini(&text);
}

/* Threads 1, 2 and 3 had the same block one after another. */
static void test_recycled(void **state)
{
	(void)state;
	static const struct {
		uint64_t released_ns[2]; /* 0: nobody saw it */
		uint64_t second;         /* the address that thread 2 gets */
		const char *order;
	} row[] = {
		{{19, 29}, 0x70,
			"1:10 1:11 1:12 1:13 1:14 2:20 1:15 2:21 1:16 2:22 2:23 2:24 3:30 2:25 "
			"3:31 2:26 3:32 3:33 3:34 3:35 3:36 "},
		/* A thread with its own does not wait; the third one does, for the first. */
		{{19, 29}, 0x80,
			"1:10 2:20 1:11 2:21 1:12 2:22 1:13 2:23 1:14 2:24 3:30 1:15 2:25 3:31 "
			"1:16 2:26 3:32 3:33 3:34 3:35 3:36 "},
		/* Freed where nobody saw it: until those that had it have ended. */
		{{0, 0}, 0x70,
			"1:10 1:11 1:12 1:13 1:14 1:15 1:16 2:20 2:21 2:22 2:23 2:24 2:25 2:26 "
			"3:30 3:31 3:32 3:33 3:34 3:35 3:36 "},
	};
	struct base_str text = {0};
	struct memory_order_options o = {.disk_latency_ms = -1};
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct fixture *f = fixture_new(4, MEMORY_SOURCE_THREADS);
		for (uint32_t t = 1; t < 4; t++)
			fixture_call(f, 0, MEMORY_CALL_thread_create, t, 0);
		for (uint32_t t = 1; t < 4; t++) {
			uint64_t block = t == 2 ? row[i].second : 0x70;
			uint64_t released_ns = row[i].released_ns[t != 1];
			fixture_call_at(f, t, MEMORY_CALL_allocate, block, 10 * t, 10 * t);
			for (unsigned k = 0; k < 4; k++)
				fixture_access(f, t, MEMORY_LOAD, 10 * t + k, 1);
			if (released_ns)
				fixture_call_at(f, t, MEMORY_CALL_release, block,
					t == 3 ? 39 : released_ns, t == 3 ? 39 : released_ns);
			for (unsigned k = 4; k < 7; k++)
				fixture_access(f, t, MEMORY_LOAD, 10 * t + k, 1);
		}
		static struct seen s;
		run_order(f, &o, &s);
		assert_string_equal(accesses(&s, &text), row[i].order);
		memory_source_close(&f->source);
	}
	base_str_fini(&text);
}

/* ---- processes on processors ----------------------------------------------------------------- */

static struct fixture *processes(unsigned nr, unsigned nr_accesses)
{
	struct fixture *f = fixture_new(nr, 0);
	for (unsigned t = 0; t < nr; t++)
		for (unsigned i = 0; i < nr_accesses; i++)
			fixture_access(f, t, MEMORY_LOAD, t * 10000 + i, 1);
	return f;
}

static void test_slices(void **state)
{
	(void)state;
	static struct seen s;
	struct base_str text = {0};
	/* Three traces on two processors: the third waits until one is done. */
	struct memory_order_options o = {
		.mode = MEMORY_ORDER_SLICES, .nr_processors = 2, .disk_latency_ms = -1};
	struct fixture *f = processes(3, 2);
	run_order(f, &o, &s);
	assert_string_equal(accesses(&s, &text), "0:0 1:10000 0:1 1:10001 0:20000 0:20001 ");
	memory_source_close(&f->source);

	/* Slices of two instructions, in turns on one processor. */
	f = processes(2, 4);
	o = (struct memory_order_options){.mode = MEMORY_ORDER_ROUND_ROBIN,
		.nr_processors = 1,
		.slice_instructions = 2,
		.disk_latency_ms = -1};
	run_order(f, &o, &s);
	assert_string_equal(
		accesses(&s, &text), "0:0 0:1 0:10000 0:10001 0:2 0:3 0:10002 0:10003 ");
	memory_source_close(&f->source);

	/* The same by slices; -k keeps a long one. */
	for (unsigned keep = 0; keep < 2; keep++) {
		f = processes(2, 4);
		o.mode = MEMORY_ORDER_SLICES;
		o.keep_long_slices = keep;
		run_order(f, &o, &s);
		assert_string_equal(accesses(&s, &text),
			keep ? "0:0 0:1 0:2 0:3 0:10000 0:10001 0:10002 0:10003 "
			     : "0:0 0:1 0:10000 0:10001 0:2 0:3 0:10002 0:10003 ");
		memory_source_close(&f->source);
	}

	/* Recorded order: process 1's second slice began after process 0's semaphore call. */
	f = fixture_new(2, MEMORY_SOURCE_TIMES);
	fixture_access(f, 0, MEMORY_LOAD, 1, 1);
	fixture_access(f, 0, MEMORY_LOAD, 2, 1);
	fixture_call(f, 0, MEMORY_CALL_semop, 0, 0);
	f->thread[0].call[0].start_ns = 100;
	f->thread[0].call[0].end_ns = 110;
	fixture_access(f, 0, MEMORY_LOAD, 3, 1);
	fixture_call(f, 1, MEMORY_CALL_semop, 0, 0);
	f->thread[1].call[0].start_ns = 20;
	f->thread[1].call[0].end_ns = 105;
	fixture_access(f, 1, MEMORY_LOAD, 11, 1);
	o = (struct memory_order_options){
		.mode = MEMORY_ORDER_SLICES, .nr_processors = 2, .disk_latency_ms = -1};
	run_order(f, &o, &s);
	assert_string_equal(accesses(&s, &text), "0:1 0:2 0:11 1:3 ");
	memory_source_close(&f->source);
	base_str_fini(&text);
}

/* A disk read takes the process off until the data is there; asynchronous I/O does not. */
static void test_disk(void **state)
{
	(void)state;
	static struct seen s;
	for (unsigned asynch = 0; asynch < 2; asynch++) {
		struct fixture *f = fixture_new(2, 0);
		fixture_access(f, 0, MEMORY_LOAD, 1, 1);
		fixture_call(f, 0, MEMORY_CALL_read, 0x1000, 4096);
		fixture_access(f, 0, MEMORY_LOAD, 2, 1);
		for (unsigned i = 0; i < 5; i++)
			fixture_access(f, 1, MEMORY_LOAD, 10 + i, 1);
		struct memory_order_options o = {.mode = MEMORY_ORDER_SLICES,
			.nr_processors = 1,
			.handle_io = true,
			.asynch_io = asynch,
			.disk_latency_ms = 1,
			.dma_mb_per_s = 4.096,
			.ipc = 1,
			.processor_mhz = 1};
		run_order(f, &o, &s);
		uint64_t dma = 0, second = 0, last = 0;
		for (size_t i = 0; i < s.nr; i++) {
			dma += s.step[i].kind == MEMORY_STEP_DMA_IN && s.step[i].count == 4096;
			if (s.step[i].kind == MEMORY_LOAD && s.step[i].address == 2)
				second = s.step[i].clock;
			if (s.step[i].kind == MEMORY_LOAD)
				last = s.step[i].address;
		}
		assert_int_equal(dma, 1);
		/* 1 ms and 4096 bytes at 4.096 MB/s are 2 ms, at 1 MHz 2000 clocks; one had passed.
		 */
		assert_int_equal(second, asynch ? 1 : 2001);
		assert_int_equal(last, asynch ? 14 : 2);
		memory_source_close(&f->source);
	}
}

/* ---- tdat ------------------------------------------------------------------------------------ */

static void test_tdat(void **state)
{
	(void)state;
	/* Bins of 10: 3, 0, 1 events. */
	static const char *const line[] = {
		"# header", "1 1 0 0", "9 2 0 1", "5 1 1 0", "20 1 0 0", "", "bad", "-3 1"};
	struct memory_tdat_options o = {.bin_clocks = 10};
	const struct memory_tdat_result *r;
	struct memory_tdat *t;
	struct base_err err = {0};
	assert_int_equal(memory_tdat_new(&o, &t, &err), BASE_OK);
	for (size_t i = 0; i < BASE_COUNT(line); i++)
		assert_int_equal(memory_tdat_line(t, line[i], strlen(line[i]), &err), BASE_OK);
	assert_int_equal(memory_tdat_finish(t, &r, &err), BASE_OK);
	assert_int_equal(r->nr_events, 4);
	assert_int_equal(r->nr_bins, 3);
	assert_int_equal(r->bin[0], 3);
	assert_int_equal(r->least, 0);
	assert_int_equal(r->most, 3);
	assert_true(fabs(r->mean - 4.0 / 3) < 1e-12);
	assert_true(fabs(r->deviation - sqrt(14.0 / 9)) < 1e-12); /* (25 + 16 + 1) / 9 / 3 */
	assert_true(fabs(r->rate - 4.0 / 30) < 1e-12);
	assert_int_equal(r->nr_classes, 4);
	assert_true(fabs(r->class[0].density - 1.0 / 3) < 1e-12);
	assert_true(fabs(r->class[1].distribution - 2.0 / 3) < 1e-12);
	assert_true(fabs(r->class[3].distribution - 1) < 1e-12);
	assert_int_equal(r->bad_records, 2);
	assert_int_equal(r->first_bad_record, 7);
	memory_tdat_free(t);
	o = (struct memory_tdat_options){
		.bin_clocks = 10, .field = 2, .value = 1, .weight_field = 1};
	assert_int_equal(memory_tdat_new(&o, &t, &err), BASE_OK);
	for (size_t i = 0; i < BASE_COUNT(line); i++)
		assert_int_equal(memory_tdat_line(t, line[i], strlen(line[i]), &err), BASE_OK);
	assert_int_equal(memory_tdat_finish(t, &r, &err), BASE_OK);
	assert_int_equal(r->bin[0], 6);
	assert_int_equal(r->bin[2], 20);
	assert_int_equal(memory_tdat_line(t, "99999999999999 1", 16, &err), BASE_ERR_LIMIT);
	memory_tdat_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_smait),
		cmocka_unit_test(test_smait_bad),
		cmocka_unit_test(test_smait_round),
		cmocka_unit_test(test_lackey),
		cmocka_unit_test(test_din_and_drmemtrace),
		cmocka_unit_test(test_drmemtrace_words),
		cmocka_unit_test(test_smait_threads),
		cmocka_unit_test(test_pseudo_clocks),
		cmocka_unit_test(test_bad_threads),
		cmocka_unit_test(test_creation),
		cmocka_unit_test(test_detached),
		cmocka_unit_test(test_condition),
		cmocka_unit_test(test_recycled),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_disk),
		cmocka_unit_test(test_tdat),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

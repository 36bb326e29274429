/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_os_python.c - a Python's threads and frames read from outside: a process of a few structures
 * made by hand, as CPython 3.11 has them, with known answers; damaged ones end.
 */
#include "os/proc.h" /* (the reader is linked with it) */
#include "runtime/python/python_outside.h"
#include "test.h"

enum { AT = 0x10000, BYTES = 0x8000, RUNTIME = AT, THREAD = AT + 0x1000, CFRAME = AT + 0x1800 };
enum { INNER = AT + 0x2000, OUTER = AT + 0x2100, CODE = AT + 0x3000, CODE_OUTER = AT + 0x3400 };
enum { NAME = AT + 0x4000, FILE_NAME = AT + 0x4100, TABLE = AT + 0x4200 };

struct process {
	uint8_t memory[BYTES];
	uint64_t end; /* what is behind it cannot be read; 0: all can */
	unsigned nr_reads;
};

static bool process_read(void *ctx, uint64_t address, void *ret, size_t size_bytes)
{
	struct process *p = ctx;
	const uint64_t end = p->end ? p->end : AT + BYTES;
	p->nr_reads++;
	if (address < AT || address >= end || size_bytes > end - address)
		return false;
	memcpy(ret, p->memory + (address - AT), size_bytes);
	return true;
}

static void put(struct process *p, uint64_t address, uint64_t value)
{
	memcpy(p->memory + (address - AT), &value, sizeof value);
}

static void put_text(struct process *p, uint64_t at, const void *bytes, uint64_t length,
	unsigned kind, bool ascii, const struct python_layout *l)
{
	put(p, at + PYTHON_TEXT_LENGTH, length);
	put(p, at + PYTHON_TEXT_STATE, kind << 2 | 1u << 5 | (unsigned)ascii << 6);
	memcpy(p->memory + (at - AT) + (ascii ? l->ascii : l->compact), bytes, length * kind);
}

/* Two functions: the inner one is three code units in, on the line behind its first. */
static struct process *process_new(struct python_layout *l)
{
	struct process *p = base_alloc(sizeof *p);
	assert_non_null(p);
	assert_true(python_layout_of(0x030b, l));
	put(p, RUNTIME + l->gil + 8, THREAD);
	put(p, RUNTIME + l->gil + 16, 1);
	put(p, THREAD + l->frame, CFRAME);
	put(p, CFRAME + l->cframe, INNER);
	put(p, INNER + l->code, CODE);
	put(p, INNER + l->instruction, CODE + l->instructions + 6);
	put(p, INNER + l->previous, OUTER);
	put(p, OUTER + l->code, CODE_OUTER);
	put(p, OUTER + l->instruction, CODE_OUTER + l->instructions);
	for (uint64_t code = CODE; code <= CODE_OUTER; code += CODE_OUTER - CODE) {
		put(p, code + l->name, NAME);
		put(p, code + l->file, FILE_NAME);
		put(p, code + l->line_table, TABLE);
		put(p, code + l->first_line, 10);
	}
	put_text(p, NAME, "work", 4, 1, true, l);
	put_text(p, FILE_NAME, "a.py", 4, 1, true, l);
	put(p, TABLE + PYTHON_SIZE, 4);
	/* two units in line 10; then, one line on, two more: both without columns */
	memcpy(p->memory + (TABLE + PYTHON_BYTES - AT), "\xe9\x00\xe9\x02", 4);
	return p;
}

static void test_os_python_known(void **state)
{
	struct python_layout l;
	struct process *p = process_new(&l);
	const struct python_reader r = {process_read, p, &l};
	struct python_frame frame[4];
	struct python_code_words code;
	struct base_str text = {0};
	(void)state;
	const uint64_t thread = python_outside_running(&r, RUNTIME);
	assert_int_equal(thread, THREAD);
	assert_int_equal(python_outside_innermost(&r, thread), INNER);
	assert_int_equal(python_outside_frames(&r, INNER, frame, BASE_COUNT(frame)), 2);
	assert_int_equal(frame[0].code, CODE);
	assert_int_equal(frame[1].code, CODE_OUTER);
	assert_int_equal(python_outside_line(&r, &frame[0]), 11);
	assert_int_equal(python_outside_line(&r, &frame[1]), 10);
	assert_true(python_outside_code(&r, CODE, &code));
	assert_int_equal(code.line_table, TABLE);
	assert_true(python_outside_text(&r, code.name, &text));
	assert_string_equal(base_str_text(&text), "work");
	base_str_fini(&text);
	/* nobody has the lock */
	put(p, RUNTIME + l.gil + 16, 0);
	assert_int_equal(python_outside_running(&r, RUNTIME), 0);
	base_free(p);
}

static void test_os_python_texts(void **state)
{
	static const uint16_t wide[] = {'a', 0xe4, 0x20ac};
	static const uint32_t widest[] = {0x1f40d, 'b'};
	struct python_layout l;
	struct process *p = process_new(&l);
	const struct python_reader r = {process_read, p, &l};
	struct base_str text = {0};
	(void)state;
	put_text(p, NAME, wide, BASE_COUNT(wide), 2, false, &l);
	put_text(p, FILE_NAME, widest, BASE_COUNT(widest), 4, false, &l);
	assert_true(python_outside_text(&r, NAME, &text));
	assert_true(python_outside_text(&r, FILE_NAME, &text));
	assert_string_equal(base_str_text(&text), "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x8d"
						  "b");
	/* none, too long, not compact */
	put(p, NAME + PYTHON_TEXT_LENGTH, 0);
	assert_false(python_outside_text(&r, NAME, &text));
	put(p, NAME + PYTHON_TEXT_LENGTH, 1 << 20);
	assert_false(python_outside_text(&r, NAME, &text));
	put(p, FILE_NAME + PYTHON_TEXT_STATE, 4 << 2);
	assert_false(python_outside_text(&r, FILE_NAME, &text));
	assert_false(python_outside_text(&r, 0, &text));
	base_str_fini(&text);
	base_free(p);
}

/* A circle of frames, and memory that ends anywhere: an end, and no more frames than asked for. */
static void test_os_python_damaged(void **state)
{
	struct python_layout l;
	struct process *p = process_new(&l);
	const struct python_reader r = {process_read, p, &l};
	struct python_frame frame[8];
	(void)state;
	put(p, OUTER + l.previous, INNER);
	assert_int_equal(python_outside_frames(&r, INNER, frame, BASE_COUNT(frame)), 8);
	put(p, INNER + l.code, 0);
	put(p, OUTER + l.code, 0);
	p->nr_reads = 0;
	assert_int_equal(python_outside_frames(&r, INNER, frame, BASE_COUNT(frame)), 0);
	assert_in_range(p->nr_reads, 1, 4096);
	for (p->end = AT + 8; p->end < AT + BYTES; p->end += 8) {
		struct python_code_words code;
		struct base_str text = {0};
		const uint64_t thread = python_outside_running(&r, RUNTIME);
		(void)python_outside_frames(
			&r, python_outside_innermost(&r, thread), frame, BASE_COUNT(frame));
		if (!python_outside_code(&r, CODE, &code))
			assert_true(p->end < CODE + 256);
		(void)python_outside_text(&r, NAME, &text);
		(void)python_outside_line(&r, &(struct python_frame){CODE, CODE + 200});
		base_str_fini(&text);
	}
	base_free(p);
}

static void test_os_python_files(void **state)
{
	(void)state;
	assert_true(python_outside_is_library("/usr/lib/python3.11/json/decoder.py"));
	assert_true(python_outside_is_library("<frozen importlib._bootstrap>"));
	assert_false(python_outside_is_library("/usr/lib/python3/dist-packages/numpy/core.py"));
	assert_false(python_outside_is_library("app.py"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_os_python_known),
		cmocka_unit_test(test_os_python_texts),
		cmocka_unit_test(test_os_python_damaged),
		cmocka_unit_test(test_os_python_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

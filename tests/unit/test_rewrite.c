/* SPDX-License-Identifier: Apache-2.0 */
/* test_rewrite.c - known answers: statements, operands, and what one instruction accesses. */
#include "rewrite/att.h"
#include "rewrite/machine.h"
#include "rewrite/rewrite.h"
#include "test.h"

#include <string.h>

static struct att_text text(const char *s)
{
	return (struct att_text){s, strlen(s)};
}

static void test_statements(void **state)
{
	static const char source[] =
		"f:\t.cfi_startproc # begins; here\n\tlock; xaddl %eax, (%rdi)\n"
		"a: b:\tret\n\t.string \"x;#\\\"y\"\n#APP\n# 3 \"x.c\" 1\n\tnop\n"
		"#NO_APP\n\tx = 5\n";
	static const struct {
		enum att_kind kind;
		unsigned flags;
		const char *text;
	} want[] = {{ATT_LABEL, 0, "f"}, {ATT_DIRECTIVE, 0, ".cfi_startproc"},
		{ATT_INSTRUCTION, ATT_PREFIX_ONLY, "lock"},
		{ATT_INSTRUCTION, 0, "xaddl %eax, (%rdi)"}, {ATT_LABEL, 0, "a"},
		{ATT_LABEL, 0, "b"}, {ATT_INSTRUCTION, 0, "ret"},
		{ATT_DIRECTIVE, 0, ".string \"x;#\\\"y\""}, {ATT_INSTRUCTION, ATT_IN_APP, "nop"},
		{ATT_DIRECTIVE, 0, "x = 5"}};
	struct att_file f;
	(void)state;
	assert_int_equal(rewrite_att_split(source, sizeof source - 1, &f, NULL), BASE_OK);
	assert_int_equal(f.nr, BASE_COUNT(want));
	for (size_t i = 0; i < f.nr; i++) {
		assert_int_equal(f.statement[i].kind, want[i].kind);
		assert_int_equal(f.statement[i].flags, want[i].flags);
		assert_true(rewrite_att_is(f.statement[i].text, want[i].text));
	}
	rewrite_att_file_fini(&f);
}

static void test_operands(void **state)
{
	static const struct {
		const char *operand, *segment, *symbol, *inside;
		int64_t number;
	} want[] = {{"-8(%rbp)", "", "", "(%rbp)", -8}, {"x+16(%rip)", "", "x", "(%rip)", 16},
		{"%fs:x@tpoff(,%rdi,8)", "fs", "x@tpoff", "(,%rdi,8)", 0},
		{"%fs:0x28", "fs", "", "", 40}, {"*table(,%rax,8)", "", "table", "(,%rax,8)", 0},
		{"(%rax){1to8}", "", "", "(%rax)", 0}, {"a-b(%rcx)", "", "a-b", "(%rcx)", 0},
		{"f@GOTPCREL(%rip)", "", "f@GOTPCREL", "(%rip)", 0}};
	static const char *const none[] = {"$5", "%rax", "$x+4", "%xmm3", "%st(1)"};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(want); i++) {
		struct rewrite_att_memory m;
		assert_true(rewrite_att_memory(text(want[i].operand), &m));
		assert_true(rewrite_att_is(m.segment, want[i].segment));
		assert_true(rewrite_att_is(m.symbol, want[i].symbol));
		assert_true(rewrite_att_is(m.inside, want[i].inside));
		assert_int_equal(m.number, want[i].number);
	}
	for (size_t i = 0; i < BASE_COUNT(none); i++) {
		struct rewrite_att_memory m;
		assert_false(rewrite_att_memory(text(none[i]), &m));
	}
	struct att_text part[4];
	assert_int_equal(rewrite_att_parts(text("8(%rax,%rbx,4), {%k1}, %xmm0"), part, 4), 3);
	assert_true(rewrite_att_is(part[0], "8(%rax,%rbx,4)"));
	assert_int_equal(rewrite_att_parts(text(""), part, 4), 0);
}

/* Bytes as the assembler makes them. */
static void test_machine(void **state)
{
	static const struct {
		const char *bytes;
		unsigned length, nr, direction, size, reg, form, terminator;
	} want[] = {
		{"\x48\x8b\x47\x08", 4, 1, MEMORY_ACCESS_LOAD, 8, 1, MEMORY_FORM_SLOT,
			0}, /* mov 8(%rdi),%rax */
		{"\xf2\x0f\x11\x07", 4, 1, MEMORY_ACCESS_STORE, 8, 2, MEMORY_FORM_SLOT,
			0}, /* movsd %xmm0,(%rdi) */
		{"\x0f\x28\x07", 3, 1, MEMORY_ACCESS_LOAD, 16, 3, MEMORY_FORM_SLOT,
			0}, /* movaps (%rdi),%xmm0 */
		{"\xf0\x0f\xc1\x07", 4, 1, MEMORY_ACCESS_BOTH, 4, 1, MEMORY_FORM_SLOT,
			0}, /* lock xadd */
		{"\x01\x07", 2, 2, MEMORY_ACCESS_LOAD, 4, 1, MEMORY_FORM_SLOT,
			0},                                /* add %eax,(%rdi) */
		{"\x48\x8d\x47\x08", 4, 0, 0, 0, 0, 0, 0}, /* lea */
		{"\xc3", 1, 1, MEMORY_ACCESS_LOAD, 8, 1, MEMORY_FORM_SLOT, MEMORY_TERM_RETURN},
		{"\xf3\xa4", 2, 2, MEMORY_ACCESS_LOAD, 1, 1, MEMORY_FORM_STRING, 0}, /* rep movsb */
		{"\x0f\x1f\x40\x00", 4, 0, 0, 0, 0, 0, 0}, /* nop 0(%rax) */
		{"\x75\xfe", 2, 0, 0, 0, 0, 0, MEMORY_TERM_BRANCH},
		{"\xff\xe0", 2, 0, 0, 0, 0, 0, MEMORY_TERM_INDIRECT},
		{"\xe8\x00\x00\x00\x00", 5, 1, MEMORY_ACCESS_STORE, 8, 1, MEMORY_FORM_SLOT,
			MEMORY_TERM_CALL},
	};
	struct machine_instruction m;
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(want); i++) {
		assert_true(rewrite_decode((const uint8_t *)want[i].bytes, want[i].length, &m));
		assert_int_equal(m.length, want[i].length);
		assert_int_equal(m.nr_accesses, want[i].nr);
		assert_int_equal(m.terminator, want[i].terminator);
		if (!want[i].nr)
			continue;
		assert_int_equal(m.access[0].direction, want[i].direction);
		assert_int_equal(m.access[0].size, want[i].size);
		assert_int_equal(m.access[0].reg, want[i].reg);
		assert_int_equal(m.access[0].form, want[i].form);
	}
	assert_false(rewrite_decode((const uint8_t *)"\x06", 1, &m));
}

static const char compiled[] = "\t.file\t\"x.c\"\n\t.text\n\t.globl\tf\n\t.type\tf, @function\nf:\n"
			       "\tmovl\t(%rdi), %eax\n.L2:\n\taddl\t$1, %eax\n\tjne\t.L2\n\tret\n"
			       "\t.size\tf, .-f\n";

/* Each instruction of a function gets a label; what is no compiler's output is known. */
static void test_labels(void **state)
{
	struct rewrite_options o = {.size = sizeof o, .level = 3};
	struct rewrite *w;
	struct base_str out = {0};
	(void)state;
	assert_true(rewrite_is_compiled(compiled, sizeof compiled - 1));
	assert_false(rewrite_is_compiled("# 1 \"x.S\"\n\t.text\n", 18));
	assert_false(rewrite_is_compiled("\t.globl f\n", 10));
	assert_int_equal(rewrite_new(compiled, sizeof compiled - 1, &o, &w, NULL), BASE_OK);
	rewrite_labelled(w, &out);
	assert_non_null(strstr(base_str_text(&out), ".Llpi1:\tmovl\t(%rdi), %eax\n"));
	assert_non_null(strstr(base_str_text(&out), ".Llpi4:\tret\n"));
	assert_null(strstr(base_str_text(&out), ".Llpi5:"));
	assert_int_not_equal(rewrite_object(w, "no object", 9, NULL), BASE_OK);
	base_str_fini(&out);
	rewrite_free(w);
}

static void test_no_memory(void **state)
{
	struct rewrite_options o = {.size = sizeof o, .level = 3};
	unsigned failed = 0;
	(void)state;
	for (uint64_t n = 1; n < 200; n++) {
		struct rewrite *w;
		enum base_status s =
			WITHOUT_NTH(n, rewrite_new(compiled, sizeof compiled - 1, &o, &w, NULL));
		rewrite_free(w);
		if (s == BASE_OK)
			break;
		failed++;
	}
	assert_true(failed > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statements),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_machine),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_spin_loop.c - what is said of a loop's code, against what the processor does. */
#include "spin/loop.h"

#include "base/base.h"
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { FROM = 0x1000, PLACE = 32 };

struct expected {
	const char *name, *code;
	size_t size;
	enum spin_loop_kind kind;
	uint32_t nr_words;
};

#define CODE(text) text, sizeof text - 1

static const struct expected expected[] = {
	{"mov (%rdi),%eax; cmp %esi,%eax; jne", CODE("\x8b\x07\x39\xf0\x75\xfa"), SPIN_LOOP_WAITS,
		1},
	{"mov 16(%rip),%eax; test; je", CODE("\x8b\x05\x10\0\0\0\x85\xc0\x74\xf6"), SPIN_LOOP_WAITS,
		1},
	{"cmpl $0,8(%rdi,%rcx,4); pause; jne", CODE("\x83\x7c\x8f\x08\0\xf3\x90\x75\xf7"),
		SPIN_LOOP_WAITS, 1},
	{"mov %edx,%eax; xchg (%rdi),%eax; test; jne", CODE("\x89\xd0\x87\x07\x85\xc0\x75\xf8"),
		SPIN_LOOP_WAITS, 1},
	{"xor %eax,%eax; lock cmpxchg %edx,(%rdi); jne", CODE("\x31\xc0\xf0\x0f\xb1\x17\x75\xf8"),
		SPIN_LOOP_WAITS, 1},
	{"mov (%rdi),%rax; mov (%rax),%eax; test; je", CODE("\x48\x8b\x07\x8b\0\x85\xc0\x74\xf7"),
		SPIN_LOOP_WAITS, 0},
	{"mov (%rdi),%eax; test; je out; pause; jmp",
		CODE("\x8b\x07\x85\xc0\x74\x04\xf3\x90\xeb\xf6"), SPIN_LOOP_WAITS, 1},
	{"xchg (%rdi),%eax; test; jne", CODE("\x87\x07\x85\xc0\x75\xfa"), SPIN_LOOP_WORKS, 0},
	{"lock cmpxchg %edx,(%rdi); jne: eax is the last round's", CODE("\xf0\x0f\xb1\x17\x75\xfa"),
		SPIN_LOOP_WORKS, 0},
	{"add $1,%rdi; cmpb $0,(%rdi); jne", CODE("\x48\x83\xc7\x01\x80\x3f\0\x75\xf7"),
		SPIN_LOOP_WORKS, 0},
	{"mov (%rdi),%eax; inc %eax; xchg (%rdi),%eax; jmp",
		CODE("\x8b\x07\xff\xc0\x87\x07\xeb\xf8"), SPIN_LOOP_WORKS, 0},
	{"dec %ecx; je out; mov (%rdi),%eax; test; je",
		CODE("\xff\xc9\x74\x06\x8b\x07\x85\xc0\x74\xf6"), SPIN_LOOP_WORKS, 0},
	{"mov %esi,(%rdi); cmp (%rdx),%esi; jne", CODE("\x89\x37\x3b\x32\x75\xfa"), SPIN_LOOP_WORKS,
		0},
	{"jmp to itself", CODE("\xeb\xfe"), SPIN_LOOP_WORKS, 0},
	{"lock xadd %eax,(%rdi); jmp", CODE("\xf0\x0f\xc1\x07\xeb\xfa"), SPIN_LOOP_UNKNOWN, 0},
	{"rdtsc; cmp (%rdi),%eax; jb", CODE("\x0f\x31\x3b\x07\x72\xfa"), SPIN_LOOP_UNKNOWN, 0},
	{"call in it", CODE("\xe8\0\0\0\0\x8b\x07\x85\xc0\x75\xf5"), SPIN_LOOP_UNKNOWN, 0},
	{"two ways: cmp (%rdi),%esi; je 1f; pause; 1: cmp (%rdx),%esi; jne",
		CODE("\x3b\x37\x74\x02\xf3\x90\x3b\x32\x75\xf6"), SPIN_LOOP_UNKNOWN, 0},
	{"no loop", CODE("\x8b\x07\x85\xc0\xc3"), SPIN_LOOP_UNKNOWN, 0},
};

/* Between other code; met at each of its instructions' first bytes, of which the first will do. */
static struct spin_loop_code around(const char *code, size_t size)
{
	uint8_t text[PLACE * 4];
	memset(text, 0x90, sizeof text);
	memcpy(text + PLACE, code, size);
	text[PLACE + size] = 0xc3;
	return spin_loop_around(text, sizeof text, FROM, FROM + PLACE);
}

static void known_loops(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(expected); i++) {
		const struct expected *e = &expected[i];
		struct spin_loop_code l = around(e->code, e->size);
		if (l.kind != e->kind || l.nr_words != e->nr_words)
			fail_msg("%s: %d, %u words", e->name, (int)l.kind, l.nr_words);
		if (l.kind != SPIN_LOOP_UNKNOWN)
			assert_true(l.begins == FROM + PLACE && l.branch < FROM + PLACE + e->size);
		/* cut short, it is not a loop */
		for (size_t size = 0; size < e->size; size++) {
			l = spin_loop_around((const uint8_t *)e->code, size, FROM, FROM);
			assert_int_equal(l.kind, SPIN_LOOP_UNKNOWN);
		}
	}
	struct spin_loop_code l = around(expected[1].code, expected[1].size);
	assert_true(l.word[0].displacement == FROM + PLACE + 6 + 16 &&
		    l.word[0].base == SPIN_LOOP_NONE && l.word[0].size_bytes == 4);
	assert_true(l.again == l.begins); /* who leaves at once has been everywhere in it */
	/* 1: test (%rdi); je out; pause; jmp 1b: who leaves at once does not come to the end */
	l = around("\x8b\x07\x85\xc0\x74\x04\xf3\x90\xeb\xf6", 10);
	assert_true(l.kind == SPIN_LOOP_WAITS && l.again == FROM + PLACE + 8);
	l = around(expected[2].code, expected[2].size);
	assert_true(l.word[0].displacement == 8 && l.word[0].base == 7 && l.word[0].index == 1 &&
		    l.word[0].scale == 4);
}

/* ---- random loops, and what the processor makes of a round ----------------------------------- */

enum { ROUNDS = 20000, MEMORY_WORDS = 4, INSTRUCTIONS_MAX = 5 };

struct machine {
	uint64_t rax, rcx, rdx, rsi;
	uint32_t memory[MEMORY_WORDS];
};

static uint64_t next(uint64_t *seed)
{
	*seed = base_hash_u64(*seed + 0x9e3779b97f4a7c15u);
	return *seed >> 11;
}

/* One instruction on eax, ecx, edx, esi and memory at rdi. */
static size_t instruction(uint8_t *at, uint64_t *seed)
{
	static const uint8_t reg[] = {0, 1, 2, 6};
	uint8_t a = reg[next(seed) % 4], b = reg[next(seed) % 4];
	uint8_t both = (uint8_t)(0xc0 | a << 3 | b), memory = (uint8_t)(a << 3 | 7);
	const uint8_t form[][6] = {/* length, bytes */
		{2, 0x8b, memory}, {3, 0x8b, (uint8_t)(memory | 0x40), 8}, {2, 0x89, both},
		{2, 0x31, both}, {2, 0x01, both}, {2, 0x29, both}, {2, 0xff, (uint8_t)(0xc0 | a)},
		{2, 0x87, memory}, {2, 0x3b, memory}, {2, 0x85, both},
		{3, 0x8d, (uint8_t)(0x40 | a << 3 | b), 1}, {3, 0x0f, 0xb6, memory},
		{2, 0x8a, (uint8_t)((a & 3) << 3 | 7)}, {2, 0x89, memory}, {3, 0x0f, 0xb1, memory},
		{2, 0xd1, (uint8_t)(0xe0 | a)}, {2, 0xf7, (uint8_t)(0xd0 | a)},
		{5, (uint8_t)(0xb8 | a), 3, 0, 0, 0}, {2, 0x23, memory}};
	const uint8_t *f = form[next(seed) % BASE_COUNT(form)];
	memcpy(at, f + 1, f[0]);
	return f[0];
}

static void run_round(const uint8_t *code, struct machine *m)
{
	__asm__ volatile("sub $128, %%rsp\n\tcall *%[code]\n\tadd $128, %%rsp"
			 : "+a"(m->rax), "+c"(m->rcx), "+d"(m->rdx), "+S"(m->rsi)
			 : [code] "r"(code), "D"(m->memory)
			 : "memory", "cc", "r8", "r9", "r10", "r11");
}

static void waits_are_waits(void **state)
{
	(void)state;
	uint64_t seed = 7;
	unsigned nr_waits = 0;
	uint8_t *code = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		skip();
	for (unsigned round = 0; round < ROUNDS; round++) {
		size_t size = 0;
		for (uint64_t n = 1 + next(&seed) % INSTRUCTIONS_MAX; n; n--)
			size += instruction(code + size, &seed);
		code[size] = 0x75; /* jne to the first */
		code[size + 1] = (uint8_t)(256 - size - 2);
		struct spin_loop_code l = spin_loop_around(code, size + 2, FROM, FROM);
		if (l.kind != SPIN_LOOP_WAITS)
			continue;
		nr_waits++;
		code[size] = 0xc3;
		struct machine m = {next(&seed) % 5, next(&seed) % 5, next(&seed) % 5,
			next(&seed) % 5, {(uint32_t)next(&seed) % 5, 1, 2, 3}};
		run_round(code, &m);
		/* What it stores it stores in its first round, if at all; then nothing changes. */
		struct machine stored = m;
		run_round(code, &m);
		assert_memory_equal(m.memory, stored.memory, sizeof m.memory);
		struct machine settled = m;
		run_round(code, &m);
		assert_memory_equal(&m, &settled, sizeof m);
	}
	munmap(code, 4096);
	assert_true(nr_waits > ROUNDS / 100);
}

/* ---- guesses --------------------------------------------------------------------------------- */

static const struct {
	const char *name, *code;
	size_t size;
	bool waits;
} guessed[] = {
	{"call of a yield; mov (%rbx),%eax; test; jne",
		CODE("\xe8\0\0\0\0\x8b\x03\x85\xc0\x75\xf5"), true},
	{"call of something else", CODE("\xe8\1\0\0\0\x8b\x03\x85\xc0\x75\xf5"), false},
	{"two ways: cmp (%rdi),%esi; je 1f; pause; 1: cmp (%rdx),%esi; jne",
		CODE("\x3b\x37\x74\x02\xf3\x90\x3b\x32\x75\xf6"), true},
	{"cmp (%rdi),%esi; je 1f; mov (%rdx),%ecx; 1: test %ecx,%ecx; jne",
		CODE("\x3b\x37\x74\x02\x8b\x0a\x85\xc9\x75\xf6"), false},
	{"dec %ecx; je out; mov (%rdi),%eax; test; je",
		CODE("\xff\xc9\x74\x06\x8b\x07\x85\xc0\x74\xf6"), true},
	{"add $1,%rdi; cmpb $0,(%rdi); jne", CODE("\x48\x83\xc7\x01\x80\x3f\0\x75\xf7"), false},
	{"dec %ecx; je out; mov %ecx,%edx; mov (%rdi,%rdx,4),%eax; test; je",
		CODE("\xff\xc9\x74\x09\x89\xca\x8b\x04\x97\x85\xc0\x74\xf3"), false},
	{"imul $3,%ecx,%ecx; cmp (%rdi),%eax; jne", CODE("\x6b\xc9\x03\x3b\x07\x75\xf9"), false},
	{"mov (%rdi),%eax; mov %eax,-12(%rbp); mov -12(%rbp),%eax; cmp -20(%rbp),%eax; jl",
		CODE("\x8b\x07\x89\x45\xf4\x8b\x45\xf4\x3b\x45\xec\x7c\xf3"), true},
	{"mov -4(%rbp),%eax; add $1,%eax; mov %eax,-4(%rbp); cmp $256,%eax; jle",
		CODE("\x8b\x45\xfc\x83\xc0\x01\x89\x45\xfc\x3d\0\1\0\0\x7e\xf0"), false},
	{"movl $1,-12(%rbp); mov -12(%rbp),%eax; xchg (%rdi),%eax; test; jne",
		CODE("\xc7\x45\xf4\1\0\0\0\x8b\x45\xf4\x87\x07\x85\xc0\x75\xf0"), true},
	{"pause; dec %ecx; jne", CODE("\xf3\x90\xff\xc9\x75\xfa"), true},
	{"pause; mov %esi,(%rdi); dec %ecx; jne", CODE("\xf3\x90\x89\x37\xff\xc9\x75\xf8"), false},
	{"dec %ecx; jne", CODE("\xff\xc9\x75\xfc"), false},
};

static bool is_next_place(void *ctx, uint64_t target)
{
	(void)ctx;
	return target == FROM + PLACE + 5;
}

static void guesses(void **state)
{
	const struct spin_loop_calls calls = {is_next_place, NULL};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(guessed); i++) {
		uint8_t text[PLACE * 4];
		memset(text, 0x90, sizeof text);
		memcpy(text + PLACE, guessed[i].code, guessed[i].size);
		text[PLACE + guessed[i].size] = 0xc3;
		struct spin_loop_code l =
			spin_loop_guess(text, sizeof text, FROM, FROM + PLACE, &calls);
		if ((l.kind == SPIN_LOOP_WAITS) != guessed[i].waits)
			fail_msg("%s: %d", guessed[i].name, (int)l.kind);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_loops),
		cmocka_unit_test(waits_are_waits),
		cmocka_unit_test(guesses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

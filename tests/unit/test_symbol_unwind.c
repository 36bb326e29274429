/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_symbol_unwind.c - the callers of this very program's functions, from registers and a copy of
 * the stack: as gcc's own unwinder finds them.
 */
#include "symbol/symbol.h"
#include "symbol/unwind.h"
#include "test.h"

#include <execinfo.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#ifdef __x86_64__
enum { STACK_BYTES = 32768, FRAMES_MAX = 64, MODULES_MAX = 64, TAKEN_BYTES = 2048 };

/* What a sample would have: taken in a signal's handler, of the code that it interrupts. */
static struct taken {
	uint64_t value[SYMBOL_REGISTERS_NR];
	uint8_t stack[STACK_BYTES];
	size_t stack_bytes;
	void *reference[FRAMES_MAX]; /* begins with the handler */
	size_t nr_reference;
} taken;
extern void *__libc_stack_end; /* of glibc: where the program's first function began */

/* All that is there, the room between variables, too, which sanitizers watch. */
static __attribute__((no_sanitize("address", "undefined"), noinline)) void copy_stack(
	const volatile uint64_t *from, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		((volatile uint64_t *)(void *)taken.stack)[i] = from[i];
}

static void take(int number, siginfo_t *info, void *context)
{
	static const int of_dwarf[SYMBOL_REGISTERS_NR] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX,
		REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12,
		REG_R13, REG_R14, REG_R15, REG_RIP};
	const ucontext_t *u = context;
	(void)number;
	(void)info;
	for (size_t i = 0; i < SYMBOL_REGISTERS_NR; i++)
		taken.value[i] = (uint64_t)u->uc_mcontext.gregs[of_dwarf[i]];
	uint64_t from = taken.value[SYMBOL_REGISTER_RSP];
	uint64_t stack_end = (uint64_t)(uintptr_t)__libc_stack_end;
	taken.stack_bytes = stack_end - from < STACK_BYTES ? stack_end - from : STACK_BYTES;
	copy_stack((const volatile uint64_t *)(uintptr_t)from, // NOLINT
		taken.stack_bytes / sizeof(uint64_t));
	taken.nr_reference = (size_t)backtrace(taken.reference, FRAMES_MAX);
}

static __attribute__((noinline)) int innermost(int n)
{
	char room[TAKEN_BYTES];
	memset(room, n, sizeof room);
	raise(SIGUSR1);
	return room[n % TAKEN_BYTES];
}

/* NOLINTNEXTLINE(misc-no-recursion): frames to unwind, seven at most */
static __attribute__((noinline)) int middle(int n)
{
	return n > 0 ? middle(n - 1) + 1 : innermost(n) + 1;
}

static int compare(const void *a, const void *b)
{
	(void)b;
	return middle(*(const int *)a); /* called by libc's qsort(): two files */
}

/* ---- this program's files -------------------------------------------------------------------- */

static struct module {
	struct symbol_unwinder *unwinder;
	uint64_t bias, begin, end;
} module[MODULES_MAX];
static size_t nr_modules;

static int add_module(struct dl_phdr_info *info, size_t size, void *ignored)
{
	(void)size;
	(void)ignored;
	struct module m = {.bias = info->dlpi_addr, .begin = UINT64_MAX};
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD)
			continue;
		uint64_t at = info->dlpi_addr + p->p_vaddr;
		m.begin = at < m.begin ? at : m.begin;
		m.end = at + p->p_memsz;
	}
	m.unwinder = symbol_unwinder_open(*info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
	if (nr_modules < MODULES_MAX)
		module[nr_modules++] = m;
	return 0;
}

static void close_modules(void)
{
	while (nr_modules)
		symbol_unwinder_close(module[--nr_modules].unwinder);
}

static enum symbol_unwound one_step(struct symbol_frame_state *s)
{
	uint64_t pc = s->value[SYMBOL_REGISTER_RIP];
	for (size_t i = 0; i < nr_modules; i++)
		if (module[i].begin <= pc && pc < module[i].end && module[i].unwinder)
			return symbol_unwinder_step(module[i].unwinder, module[i].bias, s);
	return SYMBOL_UNWOUND_nothing;
}

static size_t unwind(size_t stack_bytes, uint64_t ret[FRAMES_MAX], enum symbol_unwound *ret_last)
{
	struct symbol_frame_state s = {.known = (1u << SYMBOL_REGISTERS_NR) - 1,
		.stack = taken.stack,
		.stack_begin = taken.value[SYMBOL_REGISTER_RSP],
		.stack_bytes = stack_bytes};
	memcpy(s.value, taken.value, sizeof s.value);
	size_t nr = 0;
	while (nr < FRAMES_MAX && (*ret_last = one_step(&s)) == SYMBOL_UNWOUND_caller)
		ret[nr++] = s.value[SYMBOL_REGISTER_RIP];
	return nr;
}

static void through_qsort(void)
{
	int value[2] = {5, 6};
	qsort(value, 2, sizeof *value, compare);
}

static void sample_in(void (*run)(void))
{
	struct sigaction act = {.sa_sigaction = take, .sa_flags = SA_SIGINFO}, before;
	assert_int_equal(sigaction(SIGUSR1, &act, &before), 0);
	run();
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	assert_true(taken.nr_reference > 10);
	dl_iterate_phdr(add_module, NULL);
}

static void sample_here(void)
{
	sample_in(through_qsort);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void callers_are_gccs_in(void (*run)(void))
{
	enum symbol_unwound last;
	uint64_t frame[FRAMES_MAX];
	sample_in(run);
	size_t nr = unwind(taken.stack_bytes, frame, &last);
	/* The reference has the handler, the trampoline and the instruction before them. */
	size_t first = 0;
	while (first < taken.nr_reference &&
		(uint64_t)(uintptr_t)taken.reference[first] != taken.value[SYMBOL_REGISTER_RIP])
		first++;
	assert_true(first > 0 && first < taken.nr_reference);
	assert_int_equal(nr, taken.nr_reference - first - 1);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(frame[i], (uintptr_t)taken.reference[first + 1 + i]);
	assert_int_equal(last, SYMBOL_UNWOUND_outermost);
	close_modules();
}

/* Without frame pointers (-O2), through two files, up to the program's start. */
static void callers_are_gccs(void **state)
{
	(void)state;
	callers_are_gccs_in(through_qsort);
}

static jmp_buf back;

static __attribute__((noinline, noreturn)) void leave(void)
{
	raise(SIGUSR1);
	longjmp(back, 1);
}

/* Its last instruction is a call: what that would return to is another function's. */
static __attribute__((noinline, noreturn)) void end_with_a_call(int n)
{
	char room[200];
	memset(room, n, sizeof room);
	__asm__ volatile("" : : "r"(room) : "memory");
	leave();
}

static void through_what_never_returns(void)
{
	if (!setjmp(back))
		end_with_a_call(7);
}

static void calls_that_never_return(void **state)
{
	(void)state;
	callers_are_gccs_in(through_what_never_returns);
}

static void handle(int number)
{
	(void)innermost(number);
}

/* What a handler interrupts is at an instruction, not behind a call. */
static void through_a_handler(void)
{
	void (*before)(int) = signal(SIGUSR2, handle);
	raise(SIGUSR2);
	signal(SIGUSR2, before);
}

static void handlers_are_passed(void **state)
{
	(void)state;
	callers_are_gccs_in(through_a_handler);
}

/* Of a piece of the stack all callers are found whose frames are in it, and no others. */
static void a_piece_gives_the_innermost(void **state)
{
	(void)state;
	enum symbol_unwound last;
	uint64_t whole[FRAMES_MAX], frame[FRAMES_MAX];
	sample_here();
	size_t nr = unwind(taken.stack_bytes, whole, &last), before = 0;
	assert_true(taken.stack_bytes > TAKEN_BYTES);
	for (size_t bytes = 0; bytes < taken.stack_bytes; bytes += 8) {
		size_t now = unwind(bytes, frame, &last);
		assert_true(before <= now && now <= nr);
		assert_memory_equal(frame, whole, now * sizeof *frame);
		assert_true(now == nr || last == SYMBOL_UNWOUND_nothing);
		before = now;
	}
	assert_true(before >= nr - 1);
	close_modules();
}

/* Whatever is on the stack, and in the registers: no fault, and an end. */
static void nonsense_has_an_end(void **state)
{
	(void)state;
	uint64_t frame[FRAMES_MAX], seed = 1;
	enum symbol_unwound last;
	sample_here();
	for (int round = 0; round < 2000; round++) {
		for (int k = 0; k < 20; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			memcpy(taken.stack + (seed >> 33) % (taken.stack_bytes - 8), &seed, 8);
		}
		if (round % 2)
			taken.value[seed % SYMBOL_REGISTERS_NR] = module[0].bias + (seed >> 40);
		(void)unwind(taken.stack_bytes, frame, &last);
	}
	close_modules();
}

static void by_frame_pointer(void **state)
{
	(void)state;
	const uint64_t stack[] = {1, 0x2030, 0x401000, 2, 3, 4, 0x2050, 0x402000, 5, 6, 0x2060, 0};
	struct symbol_frame_state s = {
		.known = 1u << SYMBOL_REGISTER_RBP | 1u << SYMBOL_REGISTER_RSP,
		.stack = (const uint8_t *)stack,
		.stack_begin = 0x2000,
		.stack_bytes = sizeof stack};
	s.value[SYMBOL_REGISTER_RSP] = 0x2000;
	s.value[SYMBOL_REGISTER_RBP] = 0x2008;
	assert_int_equal(symbol_unwind_by_pointer(&s), SYMBOL_UNWOUND_caller);
	assert_int_equal(s.value[SYMBOL_REGISTER_RIP], 0x401000);
	assert_int_equal(s.value[SYMBOL_REGISTER_RSP], 0x2018);
	assert_true(s.is_return);
	assert_int_equal(symbol_unwind_by_pointer(&s), SYMBOL_UNWOUND_caller);
	assert_int_equal(s.value[SYMBOL_REGISTER_RIP], 0x402000);
	assert_int_equal(symbol_unwind_by_pointer(&s), SYMBOL_UNWOUND_outermost);
	s.value[SYMBOL_REGISTER_RBP] = 0x2058; /* half of it is beyond the piece */
	assert_int_equal(symbol_unwind_by_pointer(&s), SYMBOL_UNWOUND_nothing);
	s.value[SYMBOL_REGISTER_RBP] = 0x2008; /* below */
	assert_int_equal(symbol_unwind_by_pointer(&s), SYMBOL_UNWOUND_nothing);
	s.value[SYMBOL_REGISTER_RBP] = 0x2041;
	assert_int_equal(symbol_unwind_by_pointer(&s), SYMBOL_UNWOUND_nothing);
}

static void survives_lack_of_memory(void **state)
{
	(void)state;
	uint64_t whole[FRAMES_MAX], frame[FRAMES_MAX];
	enum symbol_unwound last;
	sample_here();
	size_t nr = unwind(taken.stack_bytes, whole, &last), now = 0;
	close_modules();
	for (uint64_t n = 1; now < nr; n++) {
		base_alloc_fail_nth(n);
		dl_iterate_phdr(add_module, NULL);
		now = unwind(taken.stack_bytes, frame, &last);
		base_alloc_fail_nth(0);
		assert_true(now <= nr);
		close_modules();
	}
}

static void what_is_no_program_has_no_rules(void **state)
{
	(void)state;
	static const char *const path[] = {"/nonexistent", "/", "/dev/zero", "/proc/self/maps"};
	for (size_t i = 0; i < BASE_COUNT(path); i++)
		assert_null(symbol_unwinder_open(path[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_are_gccs),
		cmocka_unit_test(calls_that_never_return),
		cmocka_unit_test(handlers_are_passed),
		cmocka_unit_test(a_piece_gives_the_innermost),
		cmocka_unit_test(nonsense_has_an_end),
		cmocka_unit_test(by_frame_pointer),
		cmocka_unit_test(survives_lack_of_memory),
		cmocka_unit_test(what_is_no_program_has_no_rules),
	};
	return cmocka_run_group_tests_name("symbol_unwind", tests, NULL, NULL);
}
#else
int main(void)
{
	return 77;
}
#endif

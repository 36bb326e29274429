/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_futex.c - waiting for a word to change: futexes as programs call them, and so what
 * C++ 20 makes of them in its headers (latches, semaphores, atomics that are waited for).
 */
#include "target/target.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AT TARGET_STUB

/* What an operation does, beside what else it may do. */
static bool call_futex_waits(int operation)
{
	int of = operation & FUTEX_CMD_MASK;
	return of == FUTEX_WAIT || of == FUTEX_WAIT_BITSET;
}
static bool call_futex_wakes(int operation)
{
	int of = operation & FUTEX_CMD_MASK;
	return of == FUTEX_WAKE || of == FUTEX_WAKE_BITSET || of == FUTEX_WAKE_OP ||
	       of == FUTEX_REQUEUE || of == FUTEX_CMP_REQUEUE;
}

long longpole_at_futex(long number, uint32_t *word, long operation, long value, long timeout,
	long other, long mask) __attribute__((used, visibility("hidden"))) TARGET_BETWEEN;
long longpole_at_futex(long number, uint32_t *word, long operation, long value, long timeout,
	long other, long mask)
{
	TARGET_UNLESS_ATTACHED(syscall(number, word, operation, value, timeout, other, mask));
	if (call_futex_wakes((int)operation))
		(void)longpole_target_tells(word);
	if (!call_futex_waits((int)operation))
		return TARGET_CALL(syscall(number, word, operation, value, timeout, other, mask));
	longpole_target_let_see(true);
	uint64_t before = target_call_ticks();
	long result = TARGET_CALL(syscall(number, word, operation, value, timeout, other, mask));
	int saved = errno;
	if (!result || saved == EAGAIN) { /* it has changed already */
		longpole_target_call(
			CALL_wait, before, target_call_ticks(), (uint64_t)(uintptr_t)word, 0, 0, 0);
		longpole_target_told(word);
	}
	errno = saved;
	return result;
}

/* All others are the program's own business: they may return twice, or on another stack. */
_Static_assert(SYS_futex == 202, "the number below");
AT __attribute__((naked)) void longpole_at_syscall(void);
AT __attribute__((naked)) void longpole_at_syscall(void)
{
	__asm__("cmpq $202, %rdi\n\t"
		"je longpole_at_futex\n\t"
		"jmp *syscall@GOTPCREL(%rip)\n\t");
}

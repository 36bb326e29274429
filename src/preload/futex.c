/* SPDX-License-Identifier: Apache-2.0 */
/*
 * futex.c - futexes that the program uses by itself, through libc's syscall(): the locks,
 * condition variables and parking of Rust's library, std::atomic::wait, Abseil, oneTBB. A bare
 * futex word is recorded as a condition variable without a mutex: who sleeps on it, and who wakes
 * them. What the word means, and who holds the lock that it may be, only the program knows.
 *
 * libc's own futex calls, and those of runtimes that have the instruction themselves (libgomp, Go),
 * do not pass here.
 */
#include "preload/preload.h"
#include "preload/affinity.h"
#include "preload/real.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

/* Called by the assembly below only. */
long preload_futex(long number, long word, long op, long value, long limit, long word2, long value3)
	__attribute__((used, visibility("hidden")));
long preload_syscall_failed(long result) __attribute__((used, visibility("hidden")));

struct call {
	long argument[6];
};

static long futex_kernel(const struct call *c)
{
	const long *a = c->argument;
	long result = preload_syscall_of_program(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

static long sleep_on(const struct call *c, uint64_t object, uint64_t site)
{
	PRELOAD_RECORD_WAIT(cond_wait, site, object, 0);
	long result = futex_kernel(c);
	PRELOAD_RECORD(cond_wake, object, 0, site, result == 0 ? 0 : (uint64_t)errno);
	return result;
}

/* Called in the place of syscall(SYS_futex, ...), with its arguments. */
long preload_futex(long number, long word, long op, long value, long limit, long word2, long value3)
{
	const struct call c = {{word, op, value, limit, word2, value3}};
	(void)number;
	uint64_t object =
		preload_object((void *)word, TRACE_OBJECT_futex, !(op & FUTEX_PRIVATE_FLAG));
	if (!preload_on_for(PRELOAD_CALLER))
		return futex_kernel(&c);
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_LOCK_PI: /* somebody has it: who gives it up wakes one */
	case FUTEX_LOCK_PI2:
		return sleep_on(&c, object, PRELOAD_SITE);
	case FUTEX_UNLOCK_PI:
		PRELOAD_RECORD(cond_signal, object, PRELOAD_SITE);
		return futex_kernel(&c);
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
		if ((uint32_t)value == 1)
			PRELOAD_RECORD(cond_signal, object, PRELOAD_SITE);
		else
			PRELOAD_RECORD(cond_broadcast, object, PRELOAD_SITE);
		return futex_kernel(&c);
	default:
		return futex_kernel(&c);
	}
}

/* errno of a call that the kernel refused. */
long preload_syscall_failed(long result)
{
	errno = (int)-result;
	return -1;
}

/*
 * syscall(number, a, b, c, d, e, f), with libc's code for all but futex, and what limits the
 * process (preload/sandbox.c) or its processors (preload/affinity.c): some calls (vfork, clone)
 * return twice, so nothing of theirs may lie on our stack.
 */
_Static_assert(
	SYS_futex == 202 && SYS_seccomp == 317 && SYS_prctl == 157 && SYS_sched_setaffinity == 203,
	"the numbers below");
PRELOAD_EXPORT __attribute__((naked)) void preload_syscall_function(void) __asm__("syscall");
void preload_syscall_function(void)
{
	__asm__("cmp $202, %rdi\n\t"
		"je preload_futex\n\t"
		"cmp $317, %rdi\n\t"
		"je preload_limits_itself\n\t"
		"cmp $157, %rdi\n\t"
		"je preload_limits_itself\n\t"
		"cmp $203, %rdi\n\t"
		"je preload_affinity_call\n\t"
		"mov %rdi, %rax\n\t"
		"mov %rsi, %rdi\n\t"
		"mov %rdx, %rsi\n\t"
		"mov %rcx, %rdx\n\t"
		"mov %r8, %r10\n\t"
		"mov %r9, %r8\n\t"
		"mov 8(%rsp), %r9\n\t"
		"syscall\n\t"
		"cmp $-4095, %rax\n\t"
		"jae 1f\n\t"
		"ret\n"
		"1:\tmov %rax, %rdi\n\t"
		"jmp preload_syscall_failed\n\t");
}

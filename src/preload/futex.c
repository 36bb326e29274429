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
#include "preload/syscall.h"

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
	if (preload_is_java(PRELOAD_CALLER))
		object = preload_java_futex(object);
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_LOCK_PI: /* a thread has it: giving it up wakes one */
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

/* What limits the process or its processors is told, too (preload/sandbox.c, preload/affinity.c). */
PRELOAD_SYSCALL(preload_syscall,
	TRAMPOLINE_SYSCALL_IS(SYS_futex, "preload_futex")
		TRAMPOLINE_SYSCALL_IS(SYS_sched_setaffinity, "preload_affinity_call"));

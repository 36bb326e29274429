/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor.h - what the library has of each processor, besides counter.h's clock and thread
 * pointer. (ring/processor.h says the same for other rooms; this library stands alone.)
 */
#ifndef LONGPOLE_COUNTER_PROCESSOR_H
#define LONGPOLE_COUNTER_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)

#include <cpuid.h>

#define COUNTER_CLOCKSOURCE "tsc"
static inline bool counter_is_steady(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

/* *at becomes `now` if it is *was; *was becomes what it was. A handler does not split it. */
static inline void counter_replace(uint64_t *at, uint64_t *was, uint64_t now)
{
	__asm__ volatile("cmpxchgq %2, %1" : "+a"(*was), "+m"(*at) : "r"(now) : "cc", "memory");
}

/* An instruction that is a fault, and libc's signature before the abort of a restartable sequence:
 * ud1 with it as its operand. */
#define COUNTER_TRAP      "ud2"
#define COUNTER_SIGNATURE ".byte 0x0f, 0xb9, 0x3d\n	.long 0x53053053"

#elif defined(__aarch64__)

#define COUNTER_CLOCKSOURCE "arch_sys_counter"
static inline bool counter_is_steady(void)
{
	uint64_t rate_hz;
	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(rate_hz));
	return rate_hz != 0; /* the architecture says the rest */
}

/* (a handler between `ldxr` and `stxr` makes it go round again; no other thread writes there) */
static inline void counter_replace(uint64_t *at, uint64_t *was, uint64_t now)
{
	__atomic_compare_exchange_n(at, was, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#define COUNTER_TRAP        "udf #0"
#define COUNTER_SIGNATURE   ".inst 0xd428bc00" /* brk #0x45e0 */

#else
#error "processor.h has no part for this processor yet"
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor.h - what the recorder's outside has of each processor: its programs' machine, and what
 * makes its counter of ticks a clock. The counter itself is ring/processor.h's.
 */
#ifndef LONGPOLE_OS_PROCESSOR_H
#define LONGPOLE_OS_PROCESSOR_H

#include "ring/processor.h"

#include <elf.h>

#if defined(__x86_64__)

#include <cpuid.h>

#define OS_MACHINE        EM_X86_64
#define OS_PROCESSOR      "64-bit x86"
#define OS_COUNTER        "TSC"
#define OS_COUNTER_TITLE  "time stamp counter"
#define OS_COUNTER_SURE   "invariant TSC"
#define OS_COUNTER_ADVICE "boot with clocksource=tsc, or use another machine"
/* The kernel's name of the counter as its own clock. */
#define OS_CLOCKSOURCE "tsc"

/* Does the processor say that its counter is the same and steady everywhere? */
static inline bool os_processor_is_steady(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

#elif defined(__aarch64__)

#define OS_MACHINE        EM_AARCH64
#define OS_PROCESSOR      "64-bit ARM"
#define OS_COUNTER        "counter"
#define OS_COUNTER_TITLE  "virtual counter"
#define OS_COUNTER_SURE   "the generic timer's virtual counter (cntvct_el0)"
#define OS_COUNTER_ADVICE "use another machine"
#define OS_CLOCKSOURCE    "arch_sys_counter"

/* The architecture says so of every one whose firmware has set its rate. */
static inline bool os_processor_is_steady(void)
{
	uint64_t rate_hz;
	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(rate_hz));
	return rate_hz != 0;
}

#else
#error "processor.h has no part for this processor yet"
#endif

#endif

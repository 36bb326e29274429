/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall.h - syscall() as libc has it, but for numbers that are somebody else's: a library that
 * wraps it has one PRELOAD_SYSCALL. In assembly, for some calls return twice, and nothing of theirs
 * may lie on our stack.
 */
#ifndef LONGPOLE_PRELOAD_SYSCALL_H
#define LONGPOLE_PRELOAD_SYSCALL_H

#include "preload/preload.h"
#include "preload/processor.h"

#include <sys/syscall.h>

/* others: TRAMPOLINE_SYSCALL_IS(...) of further numbers, whose functions have syscall()'s parameters.
 */
#define PRELOAD_SYSCALL(name, others)                                                              \
	long name##_failed(long result) __attribute__((used, visibility("hidden")));               \
	long name##_failed(long result)                                                            \
	{                                                                                          \
		errno = (int)-result;                                                              \
		return -1;                                                                         \
	}                                                                                          \
	__asm__(TRAMPOLINE_BEGIN("syscall") others TRAMPOLINE_SYSCALL_IS(SYS_seccomp,              \
		"preload_limits_itself") TRAMPOLINE_SYSCALL_IS(SYS_prctl, "preload_limits_itself") \
			TRAMPOLINE_SYSCALL(#name "_failed") TRAMPOLINE_END("syscall"))

#endif

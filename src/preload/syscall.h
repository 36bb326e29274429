/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall.h - syscall() as libc has it, but for numbers that are somebody else's: a library that
 * wraps it has one PRELOAD_SYSCALL. In assembly, for some calls return twice, and nothing of theirs
 * may lie on our stack.
 */
#ifndef LONGPOLE_PRELOAD_SYSCALL_H
#define LONGPOLE_PRELOAD_SYSCALL_H

#include "preload/preload.h"

#include <sys/syscall.h>

_Static_assert(SYS_seccomp == 317 && SYS_prctl == 157, "the numbers below");

#define PRELOAD_SYSCALL_IS(number, function)                                                       \
	"cmp $" #number ", %rdi\n\t"                                                               \
	"je " #function "\n\t"

#define PRELOAD_SYSCALL_OURS                                                                       \
	PRELOAD_SYSCALL_IS(317, preload_limits_itself)                                             \
	PRELOAD_SYSCALL_IS(157, preload_limits_itself)
#define PRELOAD_SYSCALL_LIBCS                                                                      \
	"mov %rdi, %rax\n\t"                                                                       \
	"mov %rsi, %rdi\n\t"                                                                       \
	"mov %rdx, %rsi\n\t"                                                                       \
	"mov %rcx, %rdx\n\t"                                                                       \
	"mov %r8, %r10\n\t"                                                                        \
	"mov %r9, %r8\n\t"                                                                         \
	"mov 8(%rsp), %r9\n\t"                                                                     \
	"syscall\n\t"                                                                              \
	"cmp $-4095, %rax\n\t"                                                                     \
	"jae 1f\n\t"                                                                               \
	"ret\n"                                                                                    \
	"1:\tmov %rax, %rdi\n\t"

/* others: PRELOAD_SYSCALL_IS(...) of further numbers, whose functions have syscall()'s parameters.
 */
#define PRELOAD_SYSCALL(name, others)                                                              \
	long name##_failed(long result) __attribute__((used, visibility("hidden")));               \
	long name##_failed(long result)                                                            \
	{                                                                                          \
		errno = (int)-result;                                                              \
		return -1;                                                                         \
	}                                                                                          \
	PRELOAD_EXPORT __attribute__((naked)) void name##_function(void) __asm__("syscall");       \
	void name##_function(void)                                                                 \
	{                                                                                          \
		__asm__(others PRELOAD_SYSCALL_OURS PRELOAD_SYSCALL_LIBCS "jmp " #name             \
									  "_failed\n\t");          \
	}

#endif

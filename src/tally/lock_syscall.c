/* SPDX-License-Identifier: Apache-2.0 */
/* lock_syscall.c - syscall() as libc has it, but for what limits the process
 * (preload/sandbox.c). */
#include "preload/preload.h"

#include <errno.h>
#include <sys/syscall.h>

long tally_syscall_failed(long result) __attribute__((used, visibility("hidden")));

long tally_syscall_failed(long result)
{
	errno = (int)-result;
	return -1;
}

/* (some calls return twice: nothing of theirs may lie on our stack) */
_Static_assert(SYS_seccomp == 317 && SYS_prctl == 157, "the numbers below");
PRELOAD_EXPORT __attribute__((naked)) void tally_syscall_function(void) __asm__("syscall");
void tally_syscall_function(void)
{
	__asm__("cmp $317, %rdi\n\t"
		"je preload_limits_itself\n\t"
		"cmp $157, %rdi\n\t"
		"je preload_limits_itself\n\t"
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
		"jmp tally_syscall_failed\n\t");
}

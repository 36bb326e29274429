/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor.h - what the libraries inside programs have of each processor, besides ring/processor.h:
 * versions of libc's functions, and the few functions that cannot be C: trampolines, which go on to
 * another function with all arguments as they were, and nothing of ours on the stack.
 *
 * On ARM each begins with `bti c` (a hint: nothing, where branches are not guarded), so that a
 * program whose pages are guarded may call it. They sign no return address: they keep it in its
 * register, or on the stack over a call of ours only.
 */
#ifndef LONGPOLE_PRELOAD_PROCESSOR_H
#define LONGPOLE_PRELOAD_PROCESSOR_H

#define TRAMPOLINE_TEXT(x)  TRAMPOLINE_TEXT_(x)
#define TRAMPOLINE_TEXT_(x) #x

#define TRAMPOLINE_BEGIN(name)                                                                     \
	".pushsection .text\n"                                                                     \
	".globl " name "\n"                                                                        \
	".type " name ", @function\n"                                                              \
	".p2align 4\n" name ":\n"                                                                  \
	"	.cfi_startproc\n"
#define TRAMPOLINE_END(name)                                                                       \
	"	.cfi_endproc\n"                                                                          \
	".size " name ", . - " name "\n"                                                           \
	".popsection\n"

#if defined(__x86_64__)

/* Of its programs' files. */
#define PRELOAD_MACHINE EM_X86_64

/* What the loader has put an address for: a function's slot, a datum's, a word with an address. */
#define PRELOAD_RELOCATION_SLOT R_X86_64_JUMP_SLOT
#define PRELOAD_RELOCATION_DATA R_X86_64_GLOB_DAT
#define PRELOAD_RELOCATION_WORD R_X86_64_64

/* glibc has two implementations of condition variables; a program asks for one by its version. */
#define PRELOAD_VERSION_OLD "GLIBC_2.2.5"
#define PRELOAD_VERSION_NOW "GLIBC_2.3.2"
/* `name` of that version is `now`'s, the older one `old`'s (preload.map). */
#define PRELOAD_VERSION_IS_NOW(name, now)                                                          \
	__asm__(".symver " #now ", " #name "@@" PRELOAD_VERSION_NOW ", remove\n");
#define PRELOAD_VERSION_IS_OLD(name, old)                                                          \
	__asm__(".symver " #old ", " #name "@" PRELOAD_VERSION_OLD ", remove\n");

/* Calls void *before(a, b) with the first two arguments; jumps to what it returns, or, if that is
 * NULL, to `otherwise`. */
#define TRAMPOLINE_OF_TWO(name, before, otherwise)                                                 \
	__asm__(TRAMPOLINE_BEGIN(name) "	pushq %rdi\n"                                             \
				       "	.cfi_adjust_cfa_offset 8\n"                               \
				       "	pushq %rsi\n"                                             \
				       "	.cfi_adjust_cfa_offset 8\n"                               \
				       "	subq $8, %rsp\n"                                          \
				       "	.cfi_adjust_cfa_offset 8\n"                               \
				       "	call " before "\n"                                 \
				       "	addq $8, %rsp\n"                                          \
				       "	.cfi_adjust_cfa_offset -8\n"                              \
				       "	popq %rsi\n"                                              \
				       "	.cfi_adjust_cfa_offset -8\n"                              \
				       "	popq %rdi\n"                                              \
				       "	.cfi_adjust_cfa_offset -8\n"                              \
				       "	testq %rax, %rax\n"                                       \
				       "	jz " otherwise "\n"                                \
				       "	jmp *%rax\n" TRAMPOLINE_END(name))

/* Calls void *before(return address); jumps to what it returns. */
#define TRAMPOLINE_OF_SITE(name, before)                                                           \
	__asm__(TRAMPOLINE_BEGIN(name) "	movq (%rsp), %rdi\n"                                      \
				       "	subq $8, %rsp\n"                                          \
				       "	.cfi_adjust_cfa_offset 8\n"                               \
				       "	call " before "\n"                                 \
				       "	addq $8, %rsp\n"                                          \
				       "	.cfi_adjust_cfa_offset -8\n"                              \
				       "	jmp *%rax\n" TRAMPOLINE_END(name))

/* In long syscall(number, ...): if it is `number`, that function instead, with the same arguments.
 */
#define TRAMPOLINE_SYSCALL_IS(number, function)                                                    \
	"	cmp $" TRAMPOLINE_TEXT(number) ", %rdi\n"                                          \
					       "	je " function "\n"
/* What libc's does; long failed(long result) instead where the kernel refuses. */
#define TRAMPOLINE_SYSCALL(failed)                                                                 \
	"	mov %rdi, %rax\n"                                                                        \
	"	mov %rsi, %rdi\n"                                                                        \
	"	mov %rdx, %rsi\n"                                                                        \
	"	mov %rcx, %rdx\n"                                                                        \
	"	mov %r8, %r10\n"                                                                         \
	"	mov %r9, %r8\n"                                                                          \
	"	mov 8(%rsp), %r9\n"                                                                      \
	"	syscall\n"                                                                               \
	"	cmp $-4095, %rax\n"                                                                      \
	"	jae 1f\n"                                                                                \
	"	ret\n"                                                                                   \
	"1:	mov %rax, %rdi\n"                                                                      \
	"	jmp " failed "\n"
/* Not for that number: to TRAMPOLINE_SYSCALL() behind the label 9. */
#define TRAMPOLINE_SYSCALL_NOT(number)                                                             \
	"	cmp $" TRAMPOLINE_TEXT(number) ", %rdi\n"                                          \
					       "	je 9f\n"
#define TRAMPOLINE_GO(function) "	jmp " function "\n"

#elif defined(__aarch64__)

#define PRELOAD_MACHINE         EM_AARCH64

#define PRELOAD_RELOCATION_SLOT R_AARCH64_JUMP_SLOT
#define PRELOAD_RELOCATION_DATA R_AARCH64_GLOB_DAT
#define PRELOAD_RELOCATION_WORD R_AARCH64_ABS64

/* One implementation of everything, and its version is that of the first glibc for this processor:
 * ours have none, and answer any. */
#define PRELOAD_VERSION_OLD     "GLIBC_2.17"
#define PRELOAD_VERSION_NOW     "GLIBC_2.17"
#define PRELOAD_VERSION_IS_NOW(name, now)                                                          \
	__asm__(".globl " #name "\n.set " #name ", " #now "\n.type " #name ", @function\n");
#define PRELOAD_VERSION_IS_OLD(name, old)

#define TRAMPOLINE_ARM_SAVE                                                                        \
	"	hint #34\n" /* bti c */                                                            \
	"	stp x29, x30, [sp, #-32]!\n"                                                             \
	"	.cfi_def_cfa_offset 32\n"                                                                \
	"	.cfi_offset 29, -32\n"                                                                   \
	"	.cfi_offset 30, -24\n"                                                                   \
	"	mov x29, sp\n"                                                                           \
	"	stp x0, x1, [sp, #16]\n"
/* x16: from there a jump may go to any function, guarded or not. */
#define TRAMPOLINE_ARM_RESTORE                                                                     \
	"	mov x16, x0\n"                                                                           \
	"	ldp x0, x1, [sp, #16]\n"                                                                 \
	"	ldp x29, x30, [sp], #32\n"                                                               \
	"	.cfi_restore 29\n"                                                                       \
	"	.cfi_restore 30\n"                                                                       \
	"	.cfi_def_cfa_offset 0\n"

#define TRAMPOLINE_OF_TWO(name, before, otherwise)                                                 \
	__asm__(TRAMPOLINE_BEGIN(name) TRAMPOLINE_ARM_SAVE                                         \
		"	bl " before "\n" TRAMPOLINE_ARM_RESTORE "	cbz x16, 1f\n"                   \
		"	br x16\n"                                                                        \
		"1:	b " otherwise "\n" TRAMPOLINE_END(name))

#define TRAMPOLINE_OF_SITE(name, before)                                                           \
	__asm__(TRAMPOLINE_BEGIN(name) TRAMPOLINE_ARM_SAVE "	mov x0, x30\n"                        \
							   "	bl " before                        \
							   "\n" TRAMPOLINE_ARM_RESTORE             \
							   "	br x16\n" TRAMPOLINE_END(name))

/* (a conditional branch reaches a megabyte only) */
#define TRAMPOLINE_SYSCALL_IS(number, function)                                                    \
	"	cmp x0, #" TRAMPOLINE_TEXT(number) "\n"                                            \
						   "	b.ne 7f\n"                                    \
						   "	b " function "\n"                          \
						   "7:\n"
#define TRAMPOLINE_SYSCALL(failed)                                                                 \
	"	mov x8, x0\n"                                                                            \
	"	mov x0, x1\n"                                                                            \
	"	mov x1, x2\n"                                                                            \
	"	mov x2, x3\n"                                                                            \
	"	mov x3, x4\n"                                                                            \
	"	mov x4, x5\n"                                                                            \
	"	mov x5, x6\n"                                                                            \
	"	svc #0\n"                                                                                \
	"	cmn x0, #4095\n"                                                                         \
	"	b.hs 1f\n"                                                                               \
	"	ret\n"                                                                                   \
	"1:	b " failed "\n"
#define TRAMPOLINE_SYSCALL_NOT(number)                                                             \
	"	cmp x0, #" TRAMPOLINE_TEXT(number) "\n"                                            \
						   "	b.eq 9f\n"
#define TRAMPOLINE_GO(function) "	b " function "\n"

#else
#error "processor.h has no part for this processor yet"
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.c - what runs inside a Go program before runtime.casgstatus(): one record into the ring.
 *
 * As Go's ABIInternal has it (since 1.17): RAX is the goroutine, EBX and ECX are its statuses, R14 is the running one; R15, RSP and RBP have
 * to stay. All other registers and the flags are nobody's at a function's first instruction, so nothing is saved, and no stack is used,
 * of which some callers have next to none. Memory is read where the runtime itself reads it, and stacks within their bounds.
 */
#include "golive/private.h"

#include <string.h>

struct code_table { /* lies before the code */
	uint64_t ring;
	struct golive_layout layout;
	uint64_t receive, send; /* wait reasons */
};
enum { TABLE_BYTES = 192, TABLE_RECEIVE = 120, TABLE_SEND = 128 };
_Static_assert(sizeof(struct code_table) <= TABLE_BYTES &&
		       offsetof(struct code_table, receive) == TABLE_RECEIVE &&
		       offsetof(struct code_table, send) == TABLE_SEND,
	"as the code has it");

extern const uint8_t golive_code_begin[], golive_code_entry[], golive_code_end[];

/* (FIELD n of layout.def is at 8 + 8 * n of the table.) */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	"golive_code_begin:\n"
	"	.zero 192\n"
	"golive_code_entry:\n"
	"	cmpl $8, %ebx\n" /* its stack is copied: nobody waits for that */
	"	je 9f\n"
	"	cmpl $8, %ecx\n"
	"	je 9f\n"
	"	movq golive_code_begin(%rip), %rdi\n"
	"	movl $1, %esi\n"
	"	lock xaddq %rsi, (%rdi)\n"
	"	cmpq 8(%rdi), %rsi\n"
	"	jae 9f\n"
	"	shlq $8, %rsi\n"
	"	leaq 4096(%rdi,%rsi), %rdi\n"
	"	movq %rax, 8(%rdi)\n"
	"	movw %bx, 16(%rdi)\n"
	"	movw %cx, 18(%rdi)\n"
	"	movq golive_code_begin+8+8*4(%rip), %rdx\n" /* reason */
	"	movzbl (%rax,%rdx), %r11d\n"
	"	movw %r11w, 20(%rdi)\n"
	"	movq golive_code_begin+8+8*3(%rip), %rdx\n" /* goid */
	"	movq (%rax,%rdx), %rsi\n"
	"	movq %rsi, 24(%rdi)\n"
	"	movq golive_code_begin+8+8*1(%rip), %rdx\n" /* m */
	"	movq (%r14,%rdx), %r8\n"
	"	movq golive_code_begin+8+8*7(%rip), %rdx\n" /* p */
	"	movq (%r8,%rdx), %r9\n"
	"	movl $-1, %esi\n"
	"	testq %r9, %r9\n"
	"	jz 1f\n"
	"	movq golive_code_begin+8+8*8(%rip), %rdx\n" /* p_id */
	"	movl (%r9,%rdx), %esi\n"
	"1:	movw %si, 22(%rdi)\n"
	"	movq golive_code_begin+8+8*6(%rip), %rdx\n" /* current */
	"	movq (%r8,%rdx), %r10\n"
	"	movq %r10, 32(%rdi)\n"
	"	movq golive_code_begin+8+8*10(%rip), %rdx\n" /* tid */
	"	movl (%r8,%rdx), %esi\n"
	"	movl %esi, 48(%rdi)\n"
	"	movq golive_code_begin+8+8*5(%rip), %rdx\n" /* start */
	"	addq %rax, %rdx\n"
	"	movq golive_code_begin+8+8*11(%rip), %rsi\n" /* lock */
	"	addq %r8, %rsi\n"
	"	cmpl $4, %ecx\n"
	"	cmoveq %rsi, %rdx\n"
	"	movq (%rdx), %rsi\n"
	"	movq %rsi, 40(%rdi)\n"
	/* A goroutine that waits at a channel leaves its lock, which is in it. */
	"	movl $-1, %edx\n"
	"	cmpl $4, %ecx\n"
	"	jne 8f\n"
	"	testq %rsi, %rsi\n"
	"	jz 8f\n"
	"	cmpq %r11, golive_code_begin+120(%rip)\n"
	"	je 7f\n"
	"	cmpq %r11, golive_code_begin+128(%rip)\n"
	"	jne 8f\n"
	"7:	subq golive_code_begin+8+8*12(%rip), %rsi\n" /* channel_lock */
	"	addq golive_code_begin+8+8*13(%rip), %rsi\n" /* channel_room */
	"	movl (%rsi), %edx\n"
	"8:	movl %edx, 52(%rdi)\n"
	/* The stack: that of the goroutine that falls asleep, else of the one that does it. */
	"	cmpl $4, %ecx\n"
	"	cmoveq %rax, %r10\n"
	"	testq %r10, %r10\n"
	"	jz 4f\n"
	"	movq %rbp, %r12\n"
	"	cmpq %r10, %r14\n"
	"	je 2f\n"
	"	movq golive_code_begin+8+8*2(%rip), %rdx\n" /* sched */
	"	addq golive_code_begin+8+8*9(%rip), %rdx\n" /* bp */
	"	movq (%r10,%rdx), %r12\n"
	"2:	movq (%r10), %r8\n"
	"	movq 8(%r10), %r9\n"
	"	subq $16, %r9\n"
	"	xorl %esi, %esi\n"
	"3:	cmpq %r8, %r12\n"
	"	jb 4f\n"
	"	cmpq %r9, %r12\n"
	"	ja 4f\n"
	"	movq 8(%r12), %rdx\n"
	"	movq %rdx, 56(%rdi,%rsi,8)\n"
	"	incl %esi\n"
	"	cmpl $25, %esi\n"
	"	je 4f\n"
	"	movq (%r12), %rdx\n"
	"	cmpq %r12, %rdx\n"
	"	jbe 4f\n"
	"	movq %rdx, %r12\n"
	"	jmp 3b\n"
	"4:	movq %rax, %r8\n"
	"	rdtsc\n"
	"	shlq $32, %rdx\n"
	"	orq %rdx, %rax\n"
	"	movq %rax, (%rdi)\n"
	"	movq %r8, %rax\n"
	"9:\n"
	"golive_code_end:\n"
	".popsection\n");

size_t golive_code(uint8_t to[GOLIVE_CODE_BYTES], const struct golive_image *im,
	const struct golive_layout *l, uint64_t ring, uint64_t *ret_entry)
{
	const struct code_table table = {.ring = ring,
		.layout = *l,
		.receive = golive_image_reason_number(im, "chan receive"),
		.send = golive_image_reason_number(im, "chan send")};
	size_t bytes = (size_t)(golive_code_end - golive_code_begin);
	memcpy(to, golive_code_begin, bytes);
	memcpy(to, &table, sizeof table);
	*ret_entry = TABLE_BYTES;
	return bytes;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* dropped.c - loads whose value nobody uses. */
#include <stdio.h>

static long place[16];
volatile int looked_at;

/* Arguments that are popped from the stack, into whatever register. */
static long pops(long n)
{
	long r;
	__asm__ volatile(
		"sub $128, %%rsp\n\tpush %1\n\tpush %1\n\tpop %%rax\n\txor %%eax, %%eax\n\t"
		"pop %%rdx\n\tlea 1(%1), %%rdx\n\tadd $128, %%rsp\n\tmov %%rdx, %0"
		: "=r"(r)
		: "r"(n)
		: "rax", "rdx", "cc");
	return r;
}

/* Registers and flags that are written again. */
static long unused(const long *p)
{
	long r;
	__asm__ volatile("mov (%1), %%rax\n\tmov 8(%1,%2,8), %%eax\n\tmov $1, %%eax\n\t"
			 "cmp 16(%1), %%rax\n\ttest %%rax, %%rax\n\t"
			 "testb $3, 24(%1)\n\tmovsd 32(%1), %%xmm0\n\tmovapd %%xmm1, %%xmm0\n\t"
			 "imul $3, 40(%1), %%rdx\n\tbt $1, 48(%1)\n\txor %%edx, %%edx\n\t"
			 "mov 56(%1), %%r8b\n\tmov %%eax, %%r8d\n\tmov %%r8, %0"
			 : "=r"(r)
			 : "r"(p), "r"(1L)
			 : "rax", "rdx", "r8", "xmm0", "cc");
	return r;
}

int main(void)
{
	long sum = 0;
	for (long i = 0; i < 20; i++) {
		sum += pops(i) + unused(place);
		(void)looked_at;
		looked_at = 3;
	}
	printf("%ld\n", sum);
	return 0;
}

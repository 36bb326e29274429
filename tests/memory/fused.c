/* SPDX-License-Identifier: Apache-2.0 */
/* fused.c - what is one access, but not to Valgrind: fused multiplications and additions whose
 * operand is in memory, halves of a vector, a wide exchange. */
#include <stdio.h>

static _Alignas(32) double in[4] = {1, 2, 3, 4}, out[4];
static _Alignas(32) float singles[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static _Alignas(16) unsigned long long pair[2];

int main(void)
{
	for (int i = 0; i < 40; i++)
		__asm__ volatile(
			"vmovupd (%0), %%ymm1\n\tvmovupd %%ymm1, %%ymm0\n\t"
			"vfmadd213pd (%0), %%ymm1, %%ymm0\n\t"
			"vfmaddsub132pd (%0), %%xmm1, %%xmm0\n\t"
			"vfnmadd231sd 8(%0), %%xmm1, %%xmm0\n\tvmovupd %%ymm0, (%1)\n\t"
			"vfmsub213ps (%2), %%ymm1, %%ymm0\n\t"
			"vfmadd231ps 16(%2), %%xmm1, %%xmm0\n\t"
			"vfmadd231ss 4(%2), %%xmm1, %%xmm0\n\t"
			"vperm2f128 $0x30, (%0), %%ymm1, %%ymm2\n\t"
			"vperm2f128 $0x21, (%0), %%ymm2, %%ymm1\n\t"
			"vperm2f128 $0x32, (%0), %%ymm1, %%ymm0\n\tvmovupd %%ymm0, (%1)\n\t"
			"vzeroupper\n\t"
			"xor %%eax, %%eax\n\txor %%edx, %%edx\n\tmov $1, %%ebx\n\t"
			"xor %%ecx, %%ecx\n\tlock cmpxchg16b (%3)"
			:
			: "r"(in), "r"(out), "r"(singles), "r"(pair)
			: "xmm0", "xmm1", "rax", "rbx", "rcx", "rdx", "memory", "cc");
	/* (Valgrind 3.19 clears the upper half after the scalar one.) */
	printf("%g %llu\n", out[0], pair[0]);
	return 0;
}

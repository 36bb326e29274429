/* SPDX-License-Identifier: Apache-2.0 */
/* hard.c - what recording code must not break: strings, realigned frames, nested functions,
 * signals, longjmp, inline assembly. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <signal.h>
#include <alloca.h>
#include <math.h>
static volatile int hits;
static int table[256];
static jmp_buf jb;
long double ld = 1.5L;
float ff[40];
__attribute__((noinline)) static void handler(int s)
{
	for (int i = 0; i < 20; i++)
		table[i] += s;
	hits++;
}
__attribute__((noinline)) static long strings(char *a, char *b, long n)
{
	long r;
	__asm__ volatile("cld; rep movsb" : "+D"(a), "+S"(b), "+c"(n)::"memory");
	const char *p = "hello world";
	long c = -1;
	__asm__ volatile("repne scasb" : "+D"(p), "+c"(c) : "a"(0) : "memory", "cc");
	r = c;
	const char *x = "abcdefgh", *y = "abcdEfgh";
	long m = 8;
	__asm__ volatile("repe cmpsb" : "+D"(x), "+S"(y), "+c"(m)::"memory", "cc");
	return r + m;
}
__attribute__((noinline)) static int nest(int n)
{
	int acc = 0;
	int add(int k)
	{
		acc += k;
		return acc;
	}
	int (*f)(int) = add;
	for (int i = 0; i < n; i++)
		f(i);
	return acc;
}
__attribute__((noinline)) static double realign(int n)
{
	double v[4] __attribute__((aligned(64)));
	for (int i = 0; i < 4; i++)
		v[i] = n * i;
	char *p = alloca(n * 8);
	memset(p, 1, n * 8);
	return v[n & 3] + p[n];
}
__attribute__((noinline)) static int cmp3(long a, long b)
{
	if (a < b)
		return -1;
	if (a > b)
		return 1;
	return 0;
}
static int qcmp(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) static int jump(int n)
{
	if (n == 0)
		longjmp(jb, 7);
	table[n] = n;
	return jump(n - 1) + 1;
}
__attribute__((noinline)) static int loopasm(int n)
{
	int r = 0;
	__asm__ volatile("1: addl %1,%0; decl %1; jnz 1b" : "+r"(r), "+r"(n)::"cc");
	return r;
}
__attribute__((noinline)) static unsigned pushmem(unsigned long *p)
{
	unsigned long r;
	__asm__ volatile("lea -128(%%rsp),%%rsp; pushq (%1); popq %0; lea 128(%%rsp),%%rsp"
			 : "=r"(r)
			 : "r"(p)
			 : "memory");
	return r;
}
__attribute__((noinline)) static int bits(unsigned *p, int i)
{
	__asm__ volatile("btsl %1,%0" : "+m"(*p) : "ri"(i & 31) : "cc");
	return *p;
}
int main(void)
{
	char a[64] = {0}, b[64];
	for (int i = 0; i < 64; i++)
		b[i] = i;
	long z = strings(a, b, 33);
	z += nest(9);
	z += realign(7);
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	for (int i = 0; i < 5; i++)
		z += cmp3(i, 2);
	int q[20];
	for (int i = 0; i < 20; i++)
		q[i] = (i * 7919) % 31;
	int r = setjmp(jb);
	if (!r)
		z += jump(12);
	else
		z += r;
	z += loopasm(9);
	unsigned long pm = 77;
	z += pushmem(&pm);
	unsigned bb = 0;
	z += bits(&bb, 5);
	for (int i = 0; i < 40; i++)
		ff[i] = sqrtf(i);
	for (int i = 0; i < 10; i++)
		ld = ld * 1.25L + i;
	z += (long)ld + ff[9];
	printf("%ld %d %d\n", z, hits, (int)bb);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* basics.c - what compilers make of everyday C: recursion, structs by value, switches, varargs,
 * atomics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct n {
	struct n *l, *r;
	int k;
};
static struct n *ins(struct n *t, int k)
{
	if (!t) {
		t = calloc(1, sizeof *t);
		t->k = k;
		return t;
	}
	if (k < t->k)
		t->l = ins(t->l, k);
	else
		t->r = ins(t->r, k);
	return t;
}
static int sum(struct n *t)
{
	return t ? t->k + sum(t->l) + sum(t->r) : 0;
}
int g[100];
double d[64];
char buf[300];
static __thread int tl;
struct big {
	char c[200];
};
__attribute__((noinline)) struct big cp(struct big b)
{
	b.c[3]++;
	return b;
}
__attribute__((noinline)) int va(int n, ...)
{
	__builtin_va_list a;
	__builtin_va_start(a, n);
	int s = 0;
	while (n--)
		s += __builtin_va_arg(a, int);
	__builtin_va_end(a);
	return s;
}
/* Of a register, in one: no memory. */
__attribute__((noinline)) static int is_set(unsigned long of, unsigned long bit)
{
	unsigned char set;
	__asm__("btq %2, %1\n\tsetc %0" : "=r"(set) : "r"(of), "r"(bit) : "cc");
	return set;
}
int main(int c, char **v)
{
	struct n *t = 0;
	unsigned s = 7;
	for (int i = 0; i < 60; i++) {
		s = s * 1103515245 + 12345;
		t = ins(t, s >> 16 & 1023);
	}
	int z = sum(t);
	for (int i = 0; i < 100; i++)
		g[i] = i * i;
	for (int i = 0; i < 64; i++)
		d[i] = g[i] * 1.5;
	double x = 0;
	for (int i = 0; i < 64; i++)
		x += d[63 - i];
	struct big b = {{1, 2, 3}};
	b = cp(b);
	memcpy(buf, &b, sizeof b);
	memset(buf + 200, 1, 50);
	tl += z;
	__sync_fetch_and_add(&g[3], 5);
	int old = 5;
	__atomic_compare_exchange_n(&g[4], &old, 9, 0, 5, 5);
	switch (z % 7) {
	case 0:
		z += 1;
		break;
	case 1:
		z += 7;
		break;
	case 2:
		z *= 3;
		break;
	case 3:
		z -= 1;
		break;
	case 4:
		z ^= 5;
		break;
	case 5:
		z += 11;
		break;
	default:
		z += 2;
	}
	z += is_set(0x5a5a5a5a5a5a5a5a, z & 63);
	int vl[z % 5 + 3];
	for (int i = 0; i < z % 5 + 3; i++)
		vl[i] = i;
	z += vl[1] + va(4, 1, 2, 3, 4);
	printf("%d %f %d %d\n", z, x, buf[3], tl);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* vectors.c - masks, gathers, scatters. */
#include <stdio.h>
#include <immintrin.h>
#define N 37
float a[64], b[64], c[64];
double d[64];
int ix[64];
__attribute__((noinline)) void f1(int n)
{
	for (int i = 0; i < n; i++)
		c[i] = a[i] * 2 + b[i];
}
__attribute__((noinline)) void f2(int n)
{
	for (int i = 0; i < n; i++)
		c[i] += a[ix[i]];
}
__attribute__((noinline)) void f3(int n)
{
	for (int i = 0; i < n; i++)
		if (b[i] > 3)
			c[i] = a[i];
}
__attribute__((noinline)) void f4(int n)
{
	for (int i = 0; i < n; i++)
		d[ix[i]] = i;
}
#ifdef __AVX512F__
__attribute__((noinline)) int f5(void)
{
	__m512 x = _mm512_loadu_ps(a);
	__mmask16 k = _mm512_cmp_ps_mask(x, _mm512_set1_ps(9), _CMP_GT_OQ);
	_mm512_mask_compressstoreu_ps(c, k, x);
	_mm512_mask_storeu_ps(c + 16, k, x);
	__m512i v = _mm512_loadu_si512(ix);
	__m512 g = _mm512_mask_i32gather_ps(x, k, v, a, 4);
	_mm512_mask_i32scatter_ps(b, k, v, g, 4);
	__m512d q = _mm512_mask_i32gather_pd(
		_mm512_setzero_pd(), 0x35, _mm256_loadu_si256((void *)ix), d, 8);
	return (int)_mm512_reduce_add_pd(q);
}
#else
int f5(void)
{
	return 0;
}
#endif
#ifdef __AVX2__
__attribute__((noinline)) int f6(void)
{
	__m256i m = _mm256_setr_epi32(-1, 0, -1, -1, 0, 0, -1, 0);
	__m256 x = _mm256_maskload_ps(a, m);
	_mm256_maskstore_ps(b, m, x);
	__m256i i = _mm256_loadu_si256((void *)ix);
	__m256 g = _mm256_mask_i32gather_ps(x, a, i, _mm256_castsi256_ps(m), 4);
	return (int)g[0] + (int)x[2];
}
/* Addresses without anything in common. */
__attribute__((noinline)) int f7(void)
{
	__m256i at = _mm256_setr_epi64x((long long)&a[3], (long long)&b[4], (long long)&a[5], 8);
	__m128 mask = _mm_castsi128_ps(_mm_setr_epi32(-1, -1, -1, 0)), x = _mm_setzero_ps();
	__asm__ volatile("vgatherqps %1, 4(,%2,1), %0" : "+x"(x), "+x"(mask) : "x"(at) : "memory");
	return (int)(x[0] + x[1] * 10 + x[2] * 100 + x[3] * 1000);
}
#else
int f6(void)
{
	return 0;
}
int f7(void)
{
	return 0;
}
#endif
int main()
{
	for (int i = 0; i < 64; i++) {
		a[i] = i;
		b[i] = i % 7;
		ix[i] = (i * 5) % 31;
		d[i] = i;
	}
	f1(N);
	f2(N);
	f3(N);
	f4(N);
	int z = f5() + f6() + f7();
	float s = 0;
	for (int i = 0; i < 64; i++)
		s += c[i] + b[i] + d[i];
	printf("%f %d\n", s, z);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* radix.c [THREADS [KEYS]] - radix sort, 8 bits a pass: count, sum up, permute. */
#include "kernel.h"

enum { BITS = 8, DIGITS = 1 << BITS, PASSES = 3 };
static const long kernel_default_size = 1 << 15;
static unsigned *key[2];
static unsigned long before;
static long count[KERNEL_THREADS_MAX][DIGITS], start[KERNEL_THREADS_MAX][DIGITS];
static long total[DIGITS], base[DIGITS];

static void kernel_setup(void)
{
	unsigned seed = 99;
	key[0] = malloc((size_t)kernel_size * sizeof(unsigned));
	key[1] = malloc((size_t)kernel_size * sizeof(unsigned));
	if (!key[0] || !key[1])
		exit(1);
	for (long i = 0; i < kernel_size; i++) {
		key[0][i] = kernel_random(&seed) & ((1u << (BITS * PASSES)) - 1);
		before += key[0][i];
	}
}

static void kernel_work(int id)
{
	long from = kernel_from(id, kernel_size), to = kernel_from(id + 1, kernel_size);
	for (int pass = 0; pass < PASSES; pass++) {
		const unsigned *in = key[pass % 2];
		unsigned *out = key[(pass + 1) % 2];
		for (int d = 0; d < DIGITS; d++)
			count[id][d] = 0;
		for (long i = from; i < to; i++)
			count[id][in[i] >> pass * BITS & (DIGITS - 1)]++;
		kernel_barrier();
		for (long d = kernel_from(id, DIGITS); d < kernel_from(id + 1, DIGITS); d++) {
			total[d] = 0;
			for (int t = 0; t < kernel_threads; t++) {
				start[t][d] = total[d];
				total[d] += count[t][d];
			}
		}
		kernel_barrier();
		if (id == 0)
			for (int d = 1; d < DIGITS; d++)
				base[d] = base[d - 1] + total[d - 1];
		kernel_barrier();
		for (int d = 0; d < DIGITS; d++)
			start[id][d] += base[d];
		for (long i = from; i < to; i++)
			out[start[id][in[i] >> pass * BITS & (DIGITS - 1)]++] = in[i];
		kernel_barrier();
	}
}

static int kernel_check(void)
{
	const unsigned *k = key[PASSES % 2];
	unsigned long after = k[0];
	for (long i = 1; i < kernel_size; i++) {
		after += k[i];
		if (k[i - 1] > k[i])
			return 0;
	}
	return before == after;
}

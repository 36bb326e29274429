/* SPDX-License-Identifier: Apache-2.0 */
/* lu.c [THREADS [N]] - blocked LU factorization without pivoting; blocks are dealt out in two
 * dimensions. */
#include "kernel.h"

#include <math.h>

enum { B = 16 };
static const long kernel_default_size = 128;
static double *a, *original;
static long n, blocks;
static int rows_of_threads;

static double *at(long i, long j) /* block, contiguous */
{
	return a + (i * blocks + j) * B * B;
}

static void kernel_setup(void)
{
	unsigned seed = 5;
	blocks = (kernel_size + B - 1) / B;
	n = blocks * B;
	a = malloc((size_t)(n * n) * sizeof *a);
	original = malloc((size_t)(n * n) * sizeof *a);
	if (!a || !original)
		exit(1);
	for (long i = 0; i < n * n; i++)
		a[i] = (kernel_random(&seed) % 1000) / 1000.0;
	for (long i = 0; i < n; i++)
		at(i / B, i / B)[i % B * B + i % B] += (double)n;
	for (long i = 0; i < n * n; i++)
		original[i] = a[i];
	for (rows_of_threads = 1; rows_of_threads * rows_of_threads < kernel_threads;)
		rows_of_threads++;
	while (kernel_threads % rows_of_threads)
		rows_of_threads--;
}

static int owner(long i, long j)
{
	int columns = kernel_threads / rows_of_threads;
	return (int)(i % rows_of_threads * columns + j % columns);
}

static void factor(double *d)
{
	for (int k = 0; k < B; k++)
		for (int i = k + 1; i < B; i++) {
			double f = d[i * B + k] /= d[k * B + k];
			for (int j = k + 1; j < B; j++)
				d[i * B + j] -= f * d[k * B + j];
		}
}

static void solve_row(const double *d, double *x) /* x = L^-1 x */
{
	for (int k = 0; k < B; k++)
		for (int i = k + 1; i < B; i++)
			for (int j = 0; j < B; j++)
				x[i * B + j] -= d[i * B + k] * x[k * B + j];
}

static void solve_column(const double *d, double *x) /* x = x U^-1 */
{
	for (int k = 0; k < B; k++)
		for (int i = 0; i < B; i++) {
			double f = x[i * B + k] /= d[k * B + k];
			for (int j = k + 1; j < B; j++)
				x[i * B + j] -= f * d[k * B + j];
		}
}

static void subtract(const double *l, const double *u, double *x)
{
	for (int i = 0; i < B; i++)
		for (int k = 0; k < B; k++) {
			double f = l[i * B + k];
			for (int j = 0; j < B; j++)
				x[i * B + j] -= f * u[k * B + j];
		}
}

static void kernel_work(int id)
{
	for (long k = 0; k < blocks; k++) {
		if (owner(k, k) == id)
			factor(at(k, k));
		kernel_barrier();
		for (long i = k + 1; i < blocks; i++) {
			if (owner(k, i) == id)
				solve_row(at(k, k), at(k, i));
			if (owner(i, k) == id)
				solve_column(at(k, k), at(i, k));
		}
		kernel_barrier();
		for (long i = k + 1; i < blocks; i++)
			for (long j = k + 1; j < blocks; j++)
				if (owner(i, j) == id)
					subtract(at(i, k), at(k, j), at(i, j));
		kernel_barrier();
	}
}

static double element(const double *m, long i, long j)
{
	return m[((i / B) * blocks + j / B) * B * B + i % B * B + j % B];
}

/* L times U is the matrix; a sample of its elements. */
static int kernel_check(void)
{
	for (long i = 0; i < n; i += 7)
		for (long j = 0; j < n; j += 11) {
			double sum = 0;
			for (long k = 0; k <= i && k <= j; k++)
				sum += (k == i ? 1 : element(a, i, k)) * element(a, k, j);
			if (fabs(sum - element(original, i, j)) > 1e-8 * (double)n)
				return 0;
		}
	return 1;
}

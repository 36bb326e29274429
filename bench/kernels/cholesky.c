/* SPDX-License-Identifier: Apache-2.0 */
/* cholesky.c [THREADS [N]] - blocked Cholesky factorization of a banded matrix, fan-out: one
 * factors a block column, then its owner subtracts from each of the next what that column means to
 * it. (The columns of SPLASH-2's, which is sparse, are dealt out at run time; here in turn.) */
#include "kernel.h"

#include <math.h>

enum { B = 8, BAND = 20 /* blocks below the diagonal one */ };
static const long kernel_default_size = 256;
static double *a, *original;
static long blocks;

static double *at(long i, long j) /* block, contiguous; j <= i <= j + BAND */
{
	return a + (j * (BAND + 1) + (i - j)) * B * B;
}

static long last_of(long j)
{
	return j + BAND < blocks ? j + BAND : blocks - 1;
}

static void kernel_setup(void)
{
	unsigned seed = 9;
	blocks = (kernel_size + B - 1) / B;
	size_t nr = (size_t)(blocks * (BAND + 1) * B * B);
	a = malloc(nr * sizeof *a);
	original = malloc(nr * sizeof *a);
	if (!a || !original)
		exit(1);
	for (size_t i = 0; i < nr; i++)
		a[i] = (kernel_random(&seed) % 1000) / 1000.0;
	for (long j = 0; j < blocks; j++) {
		double *d = at(j, j);
		for (int r = 0; r < B; r++) {
			d[r * B + r] += 4 * B * (BAND + 1);
			for (int c = r + 1; c < B; c++)
				d[r * B + c] = d[c * B + r];
		}
	}
	for (size_t i = 0; i < nr; i++)
		original[i] = a[i];
}

static void factor(double *d)
{
	for (int k = 0; k < B; k++) {
		d[k * B + k] = sqrt(d[k * B + k]);
		for (int i = k + 1; i < B; i++)
			d[i * B + k] /= d[k * B + k];
		for (int i = k + 1; i < B; i++)
			for (int j = k + 1; j <= i; j++)
				d[i * B + j] -= d[i * B + k] * d[j * B + k];
	}
}

/* x = x L^-T */
static void solve(const double *d, double *x)
{
	for (int i = 0; i < B; i++)
		for (int k = 0; k < B; k++) {
			x[i * B + k] /= d[k * B + k];
			for (int j = k + 1; j < B; j++)
				x[i * B + j] -= x[i * B + k] * d[j * B + k];
		}
}

/* z -= x y^T */
static void subtract(const double *x, const double *y, double *z)
{
	for (int i = 0; i < B; i++)
		for (int j = 0; j < B; j++) {
			double sum = 0;
			for (int k = 0; k < B; k++)
				sum += x[i * B + k] * y[j * B + k];
			z[i * B + j] -= sum;
		}
}

static void factor_column(long j)
{
	factor(at(j, j));
	for (long i = j + 1; i <= last_of(j); i++)
		solve(at(j, j), at(i, j));
}

/* Takes column `done` from column j. */
static void update(long done, long j)
{
	for (long i = j; i <= last_of(done); i++)
		subtract(at(i, done), at(j, done), at(i, j));
}

static void kernel_work(int id)
{
	for (long j = 0; j < blocks; j++) {
		if (j % kernel_threads == id)
			factor_column(j);
		kernel_barrier();
		for (long k = j + 1; k <= last_of(j); k++)
			if (k % kernel_threads == id)
				update(j, k);
		kernel_barrier();
	}
}

/* L L^T is the matrix, in its first and last block columns. */
static int kernel_check(void)
{
	for (long j = 0; j < blocks; j += blocks - 1 ? blocks - 1 : 1) {
		double got[B * B] = {0}, worst = 0;
		for (long k = j > BAND ? j - BAND : 0; k <= j; k++) {
			double part[B * B] = {0}, x[B * B];
			for (int i = 0; i < B * B; i++)
				x[i] = k == j && i % B > i / B ? 0 : at(j, k)[i];
			subtract(x, x, part);
			for (int i = 0; i < B * B; i++)
				got[i] -= part[i];
		}
		const double *want = original + (at(j, j) - a);
		for (int i = 0; i < B * B; i++)
			worst = fmax(worst, fabs(got[i] - want[i]));
		if (!(worst < 1e-9 * 4 * B * (BAND + 1)))
			return 0;
	}
	return 1;
}

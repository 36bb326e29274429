/* SPDX-License-Identifier: Apache-2.0 */
/* fft.c [THREADS [LOG2]] - six-step FFT of 2^LOG2 points (LOG2 even): transpose, rows, twiddle,
 * transpose, rows, transpose. */
#include "kernel.h"

#include <math.h>

static const long kernel_default_size = 12;
struct point {
	double re, im;
};
static struct point *x, *y, *root;
static long n, side;
static double energy;

static void kernel_setup(void)
{
	unsigned seed = 17;
	if (kernel_size % 2 || kernel_size > 24)
		exit(2);
	n = 1L << kernel_size;
	side = 1L << kernel_size / 2;
	x = malloc((size_t)n * sizeof *x);
	y = malloc((size_t)n * sizeof *y);
	root = malloc((size_t)n * sizeof *root);
	if (!x || !y || !root)
		exit(1);
	for (long i = 0; i < n; i++) {
		double angle = -2 * 3.14159265358979323846 * (double)i / (double)n;
		root[i] = (struct point){cos(angle), sin(angle)};
		x[i].re = (kernel_random(&seed) % 2000) / 1000.0 - 1;
		x[i].im = 0;
		energy += x[i].re * x[i].re;
	}
}

static struct point times(struct point a, struct point b)
{
	return (struct point){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

enum { TILE = 8 };
static void transpose(int id, const struct point *from, struct point *to)
{
	long first = kernel_from(id, side), last = kernel_from(id + 1, side);
	for (long j0 = 0; j0 < side; j0 += TILE)
		for (long i = first; i < last; i++)
			for (long j = j0; j < j0 + TILE && j < side; j++)
				to[i * side + j] = from[j * side + i];
}

static void row(struct point *r)
{
	for (long i = 1, j = 0; i < side; i++) {
		long bit = side >> 1;
		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			struct point t = r[i];
			r[i] = r[j];
			r[j] = t;
		}
	}
	for (long length = 2; length <= side; length <<= 1)
		for (long i = 0; i < side; i += length)
			for (long k = 0; k < length / 2; k++) {
				struct point t =
					times(r[i + k + length / 2], root[k * (n / length)]);
				r[i + k + length / 2] =
					(struct point){r[i + k].re - t.re, r[i + k].im - t.im};
				r[i + k].re += t.re;
				r[i + k].im += t.im;
			}
}

static void kernel_work(int id)
{
	long first = kernel_from(id, side), last = kernel_from(id + 1, side);
	transpose(id, x, y);
	kernel_barrier();
	for (long i = first; i < last; i++) {
		row(y + i * side);
		for (long j = 0; j < side; j++)
			y[i * side + j] = times(y[i * side + j], root[i * j % n]);
	}
	kernel_barrier();
	transpose(id, y, x);
	kernel_barrier();
	for (long i = first; i < last; i++)
		row(x + i * side);
	kernel_barrier();
	transpose(id, x, y);
	kernel_barrier();
}

/* Parseval, and the conjugate symmetry of a real signal's spectrum. */
static int kernel_check(void)
{
	double sum = 0, uneven = 0;
	for (long i = 0; i < n; i++)
		sum += y[i].re * y[i].re + y[i].im * y[i].im;
	for (long i = 1; i < n; i++)
		uneven += fabs(y[i].re - y[n - i].re) + fabs(y[i].im + y[n - i].im);
	return fabs(sum / (double)n - energy) < 1e-6 * energy && uneven < 1e-6 * (double)n;
}

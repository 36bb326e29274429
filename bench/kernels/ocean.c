/* SPDX-License-Identifier: Apache-2.0 */
/* ocean.c [THREADS [SIDE]] - red-black relaxation of a grid, with a residual that all add to under
 * a lock. */
#include "kernel.h"

#include <math.h>

enum { SWEEPS = 12 };
static const long kernel_default_size = 130;
static double *grid, residual[2], history[SWEEPS];
static struct kernel_lock lock;

static void kernel_setup(void)
{
	grid = malloc((size_t)(kernel_size * kernel_size) * sizeof *grid);
	if (!grid || kernel_size < 4)
		exit(1);
	kernel_lock_init(&lock);
	for (long i = 0; i < kernel_size; i++)
		for (long j = 0; j < kernel_size; j++)
			grid[i * kernel_size + j] = i == 0 ? 1 : 0;
}

static double relax(long from, long to, long color)
{
	double sum = 0;
	for (long i = from; i < to; i++) {
		double *r = grid + i * kernel_size;
		for (long j = 1 + (i + color) % 2; j < kernel_size - 1; j += 2) {
			double next =
				(r[j - 1] + r[j + 1] + r[j - kernel_size] + r[j + kernel_size]) / 4;
			sum += (next - r[j]) * (next - r[j]);
			r[j] = next;
		}
	}
	return sum;
}

static void kernel_work(int id)
{
	long inner = kernel_size - 2, from = 1 + kernel_from(id, inner),
	     to = 1 + kernel_from(id + 1, inner);
	for (int sweep = 0; sweep < SWEEPS; sweep++) {
		double sum = relax(from, to, 0);
		kernel_barrier();
		sum += relax(from, to, 1);
		kernel_lock(&lock);
		residual[sweep % 2] += sum;
		kernel_unlock(&lock);
		kernel_barrier();
		if (id == 0) {
			history[sweep] = residual[sweep % 2];
			residual[(sweep + 1) % 2] = 0;
		}
		kernel_barrier();
	}
}

static int kernel_check(void)
{
	for (int i = 1; i < SWEEPS; i++)
		if (!(history[i] < history[i - 1]) || !(history[i] > 0))
			return 0;
	return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* regions.c [NUMBER] - OpenMP: two parallel regions, or so many, of three threads. CANCEL: they
 * might be cancelled, so that barriers are others. */
#include <stdio.h>
#include <omp.h>
#include <stdlib.h>
static double a[4096], b[4096];
int main(int argc, char **argv)
{
	double sum = 0;
	omp_set_num_threads(3);
	for (int r = 0; r < (argc > 1 ? atoi(argv[1]) : 2); r++) {
#pragma omp parallel
		{
#ifdef CANCEL
#pragma omp cancel parallel if (a[r] < 0)
#endif
#pragma omp for
			for (int i = 0; i < 4096; i++)
				a[i] = i + r;
#pragma omp barrier
#pragma omp for reduction(+ : sum)
			for (int i = 0; i < 4096; i++)
				sum += a[4095 - i];
#pragma omp critical
			b[r]++;
		}
		for (int i = 0; i < 100; i++)
			b[i] += sum;
	}
	printf("%g %g\n", sum, b[0] > 0 ? 1. : 0.);
	return 0;
}

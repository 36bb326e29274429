/* SPDX-License-Identifier: Apache-2.0 */
/* skew.c - loops whose last iterations take longest: those of the last thread, for which all others
 * wait. Sleeps in place of work: they take as long on a busy machine. */
#include <unistd.h>

enum { ROUNDS = 5, ITERATIONS = 8, SHORT_US = 1000, LONG_US = 6000 };

int main(void)
{
	for (int r = 0; r < ROUNDS; r++) {
#pragma omp parallel
		{
#pragma omp for schedule(static)
			for (int i = 0; i < ITERATIONS; i++)
				usleep(i < ITERATIONS - 2 ? SHORT_US : LONG_US);
#pragma omp for schedule(static) nowait
			for (int i = 0; i < ITERATIONS; i++)
				usleep(i < ITERATIONS - 2 ? SHORT_US : LONG_US);
		}
	}
	return 0;
}

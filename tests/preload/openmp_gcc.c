/* SPDX-License-Identifier: Apache-2.0 */
/* openmp_gcc.c - three regions of three threads: one that has nothing, one with three barriers, one
 * with four tasks. */
int main(void)
{
	int n = 0, nr_threads = 0;
#pragma omp parallel num_threads(3)
#pragma omp atomic
	nr_threads++;
#pragma omp parallel num_threads(3)
	{
#pragma omp barrier
#pragma omp barrier
#pragma omp barrier
	}
#pragma omp parallel num_threads(3)
	{
#pragma omp master
		for (int i = 0; i < 4; i++) {
#pragma omp task shared(n)
#pragma omp atomic
			n++;
		}
#pragma omp taskwait
	}
	return n != 4 || nr_threads != 3;
}

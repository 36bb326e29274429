/* SPDX-License-Identifier: Apache-2.0 */
/* depend.c - tasks that wait for each other: a chain of 20 and a diamond, all made before they
 * begin, and short ones that wait for nobody. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	volatile int all_made = 0;
	int chain = 0, left = 0, right = 0, other = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
	{
#pragma omp task depend(out : chain) shared(all_made)
		while (!all_made)
			usleep(100);
		for (int i = 0; i < 20; i++) {
#pragma omp task depend(inout : chain) shared(chain)
			{
				usleep(1000);
				chain++;
			}
#pragma omp task shared(other)
#pragma omp atomic
			other++;
		}
#pragma omp task depend(in : chain) depend(out : left) shared(left, chain)
		left = chain;
#pragma omp task depend(in : chain) depend(out : right) shared(right, chain)
		right = chain;
#pragma omp task depend(in : left, right) shared(left, right, other)
#pragma omp atomic
		other += left + right;
		all_made = 1;
#pragma omp taskwait depend(in : chain)
	}
	printf("%d %d\n", chain, other);
	return 0;
}

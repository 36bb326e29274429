/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regions_wait.c WAY - as waits.c of locks, by OpenMP; ordered sections in the order of the loop,
 * whose iterations threads have in turn: each adds to eight words that another thread had written.
 */
#include <omp.h>
#include <string.h>

enum { TIMES = 1000, THREADS = 4, WORDS = 8 };

static _Alignas(64) volatile long words[WORDS];

static void __attribute__((noinline)) work(int n)
{
	volatile int x = 0;
	for (int i = 0; i < n; i++)
		x += i;
}

static void add(void)
{
	for (int k = 0; k < WORDS; k++)
		words[k] = words[k] + 1;
}

#define BEFORE work(i * 7 % 60)

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	omp_lock_t lock;
	omp_init_lock(&lock);
	omp_set_num_threads(THREADS);
	if (!strcmp(way, "critical"))
#pragma omp parallel for schedule(static, 1)
		for (int i = 0; i < TIMES; i++) {
			BEFORE;
#pragma omp critical
			add();
		}
	if (!strcmp(way, "lock"))
#pragma omp parallel for schedule(static, 1)
		for (int i = 0; i < TIMES; i++) {
			BEFORE;
			omp_set_lock(&lock);
			add();
			omp_unset_lock(&lock);
		}
	if (!strcmp(way, "test"))
#pragma omp parallel for schedule(static, 1)
		for (int i = 0; i < TIMES; i++) {
			BEFORE;
			while (!omp_test_lock(&lock))
				work(5);
			add();
			omp_unset_lock(&lock);
		}
	if (!strcmp(way, "ordered"))
#pragma omp parallel for ordered schedule(static, 1)
		for (int i = 0; i < TIMES; i++) {
			BEFORE;
#pragma omp ordered
			add();
		}
	return words[0] != TIMES;
}

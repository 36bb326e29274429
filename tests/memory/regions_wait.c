/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regions_wait.c WAY - as waits.c of locks, by OpenMP; ordered sections in the order of the loop,
 * whose iterations threads have in turn: each adds to eight words that another thread had written.
 * By tasks: each reads a line that its maker had written, and writes one that is read when all are
 * done. Said is how many lines of each kind are another thread's: so many move.
 */
#include <omp.h>
#include <stdio.h>
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

/* ---- tasks ----------------------------------------------------------------------------------- */

static struct line {
	_Alignas(64) int value;
} question[TIMES], answer[TIMES];
static int asked_by[TIMES], answered_by[TIMES];
static int nr_asked_others, nr_answered_others;

struct large {
	int i, filler[100];
};

static int sum(const struct line *line)
{
	int n = 0;
	for (int i = 0; i < TIMES; i++)
		n += line[i].value;
	return n;
}

static void ask(int i)
{
	asked_by[i] = omp_get_thread_num();
	question[i].value = i;
}

static void reply(int i)
{
	work(i * 7 % 90);
	answered_by[i] = omp_get_thread_num();
#pragma omp atomic
	nr_asked_others += answered_by[i] != asked_by[i];
	answer[i].value = question[i].value + 1;
}

static int check(void)
{
	for (int i = 0; i < TIMES; i++)
		nr_answered_others += answered_by[i] != omp_get_thread_num();
	return sum(answer) == (TIMES + 1) * TIMES / 2 ? TIMES : 0;
}

static long by_tasks(const char *way)
{
	long n = 0;
#pragma omp parallel
	{
		if (sum(question) + sum(answer)) /* all have all lines */
			n = -1;
#pragma omp barrier
#pragma omp single nowait
		if (!strcmp(way, "task")) {
			for (int i = 0; i < TIMES; i++) {
				ask(i);
#pragma omp task firstprivate(i)
				reply(i);
			}
#pragma omp taskwait
			n = check();
		} else if (!strcmp(way, "untied")) {
			for (int i = 0; i < TIMES; i++) {
				ask(i);
#pragma omp task firstprivate(i) untied
				{
					work(20);
#pragma omp taskyield
					reply(i);
				}
			}
#pragma omp taskwait
			n = check();
		} else if (!strcmp(way, "group")) {
#pragma omp taskgroup
			for (int i = 0; i < TIMES / 10; i++) {
				struct large l = {.i = i};
				for (int k = 0; k < 10; k++)
					ask(i * 10 + k);
#pragma omp task firstprivate(l)
				for (int k = 0; k < 10; k++) {
#pragma omp task firstprivate(l, k)
					reply(l.i * 10 + k);
				}
			}
			n = check();
		} else if (!strcmp(way, "loop")) {
			for (int i = 0; i < TIMES; i++)
				ask(i);
#pragma omp taskloop grainsize(5)
			for (int i = 0; i < TIMES; i++)
				reply(i);
			n = check();
		} else { /* depend: who asks is a task, too, as is who sums up */
			for (int i = 0; i < TIMES; i++) {
#pragma omp task firstprivate(i) depend(out : question[i])
				ask(i);
#pragma omp task firstprivate(i) depend(in : question[i])
				reply(i);
			}
		}
	}
	n = n ? n : check();
	printf("%d %d\n", nr_asked_others, nr_answered_others);
	return n;
}

/* One thread's word that three read, each time. */
static long by_copies(void)
{
	long n = 0;
#pragma omp parallel reduction(+ : n)
	for (int i = 0; i < TIMES; i++) {
		volatile int own = 0;
		work(i * 7 % 60 * omp_get_thread_num());
#pragma omp single copyprivate(own)
		own = i;
		n += own == i;
	}
	return n == TIMES * THREADS ? TIMES : 0;
}

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
	if (!strcmp(way, "task") || !strcmp(way, "untied") || !strcmp(way, "group") ||
		!strcmp(way, "loop") || !strcmp(way, "depend"))
		words[0] = by_tasks(way);
	if (!strcmp(way, "copy"))
		words[0] = by_copies();
	return words[0] != TIMES;
}

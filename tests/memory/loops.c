/* SPDX-License-Identifier: Apache-2.0 */
/* loops.c - OpenMP: two threads add to the same word, in a loop of each SCHEDULE. */
#include <stdio.h>
#include <unistd.h>

static volatile long word;
static int nr_ready;

static void add(void)
{
	__atomic_add_fetch(&nr_ready, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&nr_ready, __ATOMIC_ACQUIRE) < 2)
		usleep(100); /* no instructions of its own, which are time to pseudo clocks */
	for (int i = 0; i < 20000; i++)
		word = word + 1;
}

int main(void)
{
#define PRAGMA_OF(text) _Pragma(#text)
#define PRAGMA(text)    PRAGMA_OF(text)
#ifdef SCHEDULE
	PRAGMA(omp parallel for schedule(SCHEDULE) num_threads(2))
	for (int i = 0; i < 2; i++)
		add();
#else
#pragma omp parallel sections num_threads(2)
	{
#pragma omp section
		add();
#pragma omp section
		add();
	}
#endif
	printf("%d\n", word > 0);
	return 0;
}

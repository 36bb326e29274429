/* SPDX-License-Identifier: Apache-2.0 */
/* tasks.c - tasks of all sorts; says how many were made. */
#include <omp.h>
#include <stdio.h>

static long made;

static void another(void)
{
#pragma omp atomic
	made++;
}

static long fib(int n)
{
	long a, b;
	if (n < 2)
		return n;
	another();
#pragma omp task shared(a)
	a = fib(n - 1);
	another();
#pragma omp task shared(b)
	b = fib(n - 2);
#pragma omp taskwait
	return a + b;
}

static long down(int n)
{
	long below = 0;
	if (n == 0)
		return 0;
	another();
#pragma omp task shared(below)
	below = down(n - 1);
#pragma omp taskwait
	return below + 1;
}

static void untied(void)
{
	another();
#pragma omp task untied
	{
#pragma omp taskyield
		another();
#pragma omp task
		{
		}
#pragma omp taskwait
	}
#pragma omp taskwait
}

static void detached(void)
{
	omp_event_handle_t event;
	another();
#pragma omp task detach(event)
	{
	}
	omp_fulfill_event(event);
#pragma omp taskwait
}

static void cancelled(void)
{
#pragma omp taskgroup
	for (int i = 0; i < 50; i++) {
		another();
#pragma omp task
		{
#pragma omp cancel taskgroup
		}
	}
}

int main(void)
{
	long wrong = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
	{
		wrong += fib(12) != 144;
		wrong += down(100) != 100;
		for (int i = 0; i < 20; i++) {
			untied();
			detached();
			cancelled();
		}
	}
	printf("%ld\n", made);
	return wrong != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a malloc of its own that locks, used before main as well. expect: lock_release
 * 1013 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(16) char heap[1 << 24];
static size_t used;
static int nr_calls, before_main;

void *malloc(size_t n)
{
	pthread_mutex_lock(&lock);
	void *p = heap + used;
	used += (n + 31) & ~(size_t)15;
	nr_calls++;
	pthread_mutex_unlock(&lock);
	return used > sizeof heap ? NULL : p;
}

void free(void *p)
{
	(void)p;
}

void *calloc(size_t n, size_t size)
{
	return malloc(n * size); /* never used before: zero */
}

void *realloc(void *p, size_t n)
{
	void *q = malloc(n);
	if (p && q)
		memmove(q, p, n);
	return q;
}

__attribute__((constructor)) static void early(void)
{
	for (int i = 0; i < 10; i++)
		malloc(10);
	before_main = nr_calls >= 10;
}

int main(void)
{
	int begin = nr_calls;
	errno = 77;
	for (int i = 0; i < 1000; i++)
		malloc(100);
	char line[64];
	int n = snprintf(line, sizeof line, "%d %d %d\n", before_main, nr_calls - begin, errno);
	write(1, line, (size_t)n);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - a shared library whose constructor and whose calls of the C library are recorded. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int counter;
int shared_data[100];
extern int callback(int);
int lib_sum(int n)
{
	int s = 0;
	char *block = malloc((size_t)n);
	pthread_mutex_lock(&lock);
	memset(block, 0, (size_t)n);
	for (int i = 0; i < n; i++) {
		shared_data[i % 100] += i;
		s += shared_data[i % 100];
		counter++;
	}
	s += block[n - 1];
	pthread_mutex_unlock(&lock);
	free(block);
	return s + counter + callback(n);
}
__attribute__((constructor)) static void early(void)
{
	for (int i = 0; i < 50; i++)
		shared_data[i] = i;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sum.c - two threads add up an array: something to record at every level. */
#include <pthread.h>
#include <stdio.h>

static int numbers[1000];
static long sums[2];

static void *add(void *which)
{
	const long half = (long)which;
	for (int i = 0; i < 500; i++)
		sums[half] += numbers[half * 500 + i];
	return NULL;
}

int main(void)
{
	pthread_t thread[2];
	for (int i = 0; i < 1000; i++)
		numbers[i] = i;
	for (long i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, add, (void *)i))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("%ld\n", sums[0] + sums[1]);
	return 0;
}

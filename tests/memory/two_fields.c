/* SPDX-License-Identifier: Apache-2.0 */
/* two_fields.c - two threads, each with a field of its own in the same line: not a byte is shared.
 */
#include <pthread.h>

static struct {
	volatile long hits, misses;
} counters;

static void *hit(void *arg)
{
	for (int i = 0; i < 2000; i++)
		counters.hits++;
	return arg;
}

static void *miss(void *arg)
{
	for (int i = 0; i < 2000; i++)
		counters.misses++;
	return arg;
}

int main(void)
{
	pthread_t t[2];
	pthread_create(&t[0], NULL, hit, NULL);
	pthread_create(&t[1], NULL, miss, NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	return counters.hits + counters.misses != 4000;
}

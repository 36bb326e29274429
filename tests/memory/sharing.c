/* SPDX-License-Identifier: Apache-2.0 */
/* sharing.c [apart] - two threads count in two fields of one allocated object; apart: in objects of
 * their own. */
#include <pthread.h>
#include <stdlib.h>

enum { ROUNDS = 20000, LINE_BYTES = 64 };

struct counters {
	volatile long hits, misses;
};
static struct counters *object[2];

static void *count_hits(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++)
		object[0]->hits++;
	return NULL;
}

static void *count_misses(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++)
		object[1]->misses++;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[2];
	(void)argv;
	object[0] = object[1] = aligned_alloc(LINE_BYTES, LINE_BYTES);
	if (argc > 1)
		object[1] = aligned_alloc(LINE_BYTES, LINE_BYTES);
	pthread_create(&thread[0], NULL, count_hits, NULL);
	pthread_create(&thread[1], NULL, count_misses, NULL);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	return 0;
}

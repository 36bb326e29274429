/* SPDX-License-Identifier: Apache-2.0 */
/* on_stack.c main|thread - two threads count in two fields of a struct on main's stack, or on the
 * stack of the first of them. */
#include <pthread.h>
#include <string.h>

enum { TIMES = 20000 };
struct job {
	volatile long hits, misses;
};

static void *count_misses(void *p)
{
	struct job *j = p;
	for (int i = 0; i < TIMES; i++)
		j->misses += i & 3;
	return NULL;
}

static void count_hits(struct job *j)
{
	pthread_t t;
	pthread_create(&t, NULL, count_misses, j);
	for (int i = 0; i < TIMES; i++)
		j->hits += i & 1;
	pthread_join(t, NULL);
}

static void *has_it(void *arg)
{
	_Alignas(64) struct job mine = {0};
	(void)arg;
	count_hits(&mine);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;
	if (argc < 2 || strcmp(argv[1], "thread") != 0)
		return has_it(NULL) != NULL;
	pthread_create(&t, NULL, has_it, NULL);
	pthread_join(t, NULL);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c - two threads count in two members of each of: a structure, neighbouring elements of an
 * array, a structure of a shared library (-DLIBRARY: that part). */
struct counters {
	long filler;
	struct {
		volatile long hits, misses;
	} count;
};
extern struct counters shared_counters;

#ifdef LIBRARY
_Alignas(64) struct counters shared_counters = {1, {0, 0}};
void shared_start(void);
void shared_start(void) /* a file without recorded code is not known */
{
	shared_counters.filler = 2;
}
#else
#include <pthread.h>

enum { ROUNDS = 2000 };
void shared_start(void);

static _Alignas(64) struct counters own_counters;
static _Alignas(64) struct row {
	short number;
	union {
		volatile long total;
		char bytes[8];
	};
} table[4];

static void *count_hits(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		own_counters.count.hits++;
		table[1].total++;
		shared_counters.count.hits++;
	}
	return arg;
}

static void *count_misses(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		own_counters.count.misses++;
		table[2].total++;
		shared_counters.count.misses++;
	}
	return arg;
}

int main(void)
{
	pthread_t thread[2];
	shared_start();
	pthread_create(&thread[0], 0, count_hits, 0);
	pthread_create(&thread[1], 0, count_misses, 0);
	pthread_join(thread[0], 0);
	pthread_join(thread[1], 0);
	return 0;
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_lock - locks in allocated memory, each of which only one function made. Known answers: the
 * locks' names, and how often each is taken (argument: rounds).
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS = 3, BUCKETS = 5000, BUCKET = 4321, JOBS = 8 };

struct session {
	char before[600];
	pthread_mutex_t lock;
};
struct cache {
	pthread_mutex_t lock;
	char after[200];
};
#define MAKER __attribute__((noinline)) static

static const pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;

/* Initialised by a call of its own function. */
MAKER struct session *session_new(void)
{
	struct session *s = malloc(sizeof *s);
	if (!s)
		abort();
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

/* Never initialised by a call: in a block of its own, and deep in a large one. */
MAKER struct cache *cache_new(void)
{
	struct cache *c = malloc(sizeof *c);
	if (!c)
		abort();
	memcpy(&c->lock, &plain, sizeof plain);
	return c;
}

MAKER struct cache *buckets_new(void)
{
	struct cache *all = calloc(BUCKETS, sizeof *all);
	if (!all)
		abort();
	return all;
}

/* One function initialises what another one allocated. */
MAKER void lock_setup(pthread_mutex_t *lock)
{
	if (pthread_mutex_init(lock, NULL))
		abort(); /* so that the call above is not a jump */
}

MAKER struct cache *table_new(void)
{
	struct cache *c = aligned_alloc(64, 320);
	if (!c)
		abort();
	lock_setup(&c->lock);
	return c;
}

/* One function makes all locks: they are its callers', though none of their calls are jumps. */
MAKER pthread_mutex_t *mutex_create(void)
{
	pthread_mutex_t *lock = malloc(sizeof *lock);
	if (!lock || pthread_mutex_init(lock, NULL))
		abort();
	return lock;
}

MAKER void queue_new(struct cache *c, pthread_mutex_t **ret)
{
	*ret = mutex_create();
	c->after[0] = 1;
}

MAKER void pool_new(struct cache *c, pthread_mutex_t **ret)
{
	*ret = mutex_create();
	c->after[1] = 1;
}

/* A block that has room for nothing else. */
MAKER pthread_spinlock_t *flag_new(void)
{
	pthread_spinlock_t *lock = malloc(sizeof *lock);
	if (!lock || pthread_spin_init(lock, PTHREAD_PROCESS_PRIVATE))
		abort();
	return lock;
}

static void take_flag(pthread_spinlock_t *lock, uint64_t times)
{
	while (times--) {
		pthread_spin_lock(lock);
		pthread_spin_unlock(lock);
	}
}

/* An allocator for everyone: its locks are called after who takes them, too. */
MAKER void *pool_alloc(size_t size)
{
	void *block = calloc(1, size);
	if (!block)
		abort();
	return block;
}

static void take(pthread_mutex_t *lock, uint64_t times)
{
	while (times--) {
		pthread_mutex_lock(lock);
		pthread_mutex_unlock(lock);
	}
}

/* Two kinds of objects in one place, one after the other. */
MAKER void first_life(void *place, uint64_t times)
{
	pthread_mutex_init(place, NULL);
	take(place, times);
}

MAKER void second_life(void *place, uint64_t times)
{
	pthread_mutex_init(place, NULL);
	take(place, times);
}

/* Threads, whose heaps are filled in the same way and lie at multiples of 64 MiB, all live when the
 * locks are taken. The condition variables are only signalled. */
struct job {
	pthread_mutex_t lock;
	pthread_cond_t done;
};
static pthread_barrier_t all_made;
static uint64_t job_rounds;

MAKER struct job *job_new(void)
{
	struct job *j = malloc(sizeof *j);
	if (!j || pthread_mutex_init(&j->lock, NULL) || pthread_cond_init(&j->done, NULL))
		abort();
	return j;
}

static void *do_job(void *unused)
{
	struct job *j = job_new();
	pthread_barrier_wait(&all_made);
	take(&j->lock, job_rounds);
	pthread_cond_broadcast(&j->done);
	pthread_barrier_wait(&all_made);
	free(j);
	return unused;
}

static void do_jobs(uint64_t rounds)
{
	pthread_t thread[JOBS];
	job_rounds = rounds;
	pthread_barrier_init(&all_made, NULL, JOBS);
	for (int i = 0; i < JOBS; i++)
		if (pthread_create(&thread[i], NULL, do_job, NULL))
			abort();
	for (int i = 0; i < JOBS; i++)
		pthread_join(thread[i], NULL);
}

static void *again(void *place)
{
	take(place, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	struct session *session[SESSIONS];
	struct cache *cache = cache_new(), *buckets = buckets_new(), *table = table_new();
	pthread_t thread;
	for (int i = 0; i < SESSIONS; i++)
		session[i] = session_new();
	for (int i = 0; i < SESSIONS; i++)
		take(&session[i]->lock, rounds);
	take(&cache->lock, 2 * rounds);
	take(&buckets[BUCKET].lock, 3 * rounds);
	take(&table->lock, 4 * rounds);
	void *place = malloc(sizeof(pthread_mutex_t));
	if (!place)
		abort();
	pthread_mutex_t *queue, *pool, *pooled = pool_alloc(sizeof *pooled);
	queue_new(cache, &queue);
	pool_new(cache, &pool);
	take(queue, 5 * rounds);
	take(pool, 6 * rounds);
	take(pooled, 7 * rounds);
	pthread_spinlock_t *flag = flag_new();
	take_flag(flag, 8 * rounds);
	free((void *)flag);
	free(queue);
	free(pool);
	free(pooled);
	do_jobs(rounds);
	first_life(place, rounds);
	second_life(place, rounds);
	if (pthread_create(&thread, NULL, again, place))
		abort();
	pthread_join(thread, NULL);
	free(place);
	for (int i = 0; i < SESSIONS; i++)
		free(session[i]);
	free(cache);
	free(buckets);
	free(table);
	printf("%llu\n",
		(unsigned long long)(SESSIONS + 2 + 3 + 4 + 5 + 6 + 7 + 8 + JOBS + 2) * rounds + 1);
	return 0;
}

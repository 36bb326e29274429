/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - programs that end, whose threads take locks in orders that could, or could not, hang.
 * Semaphores set the order of coming, so that none of them does. */
#include "hang.h"

#include <malloc.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER,
		       c = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER;
static sem_t turn[4];

static void nest(pthread_mutex_t *outer, pthread_mutex_t *inner)
{
	pthread_mutex_lock(outer);
	pthread_mutex_lock(inner);
	pthread_mutex_unlock(inner);
	pthread_mutex_unlock(outer);
}

static void *a_then_b(void *argument)
{
	sem_wait(&turn[0]);
	nest(&a, &b);
	sem_post(&turn[1]);
	return argument;
}

static void *b_then_a(void *argument)
{
	sem_wait(&turn[1]);
	nest(&b, &a);
	sem_post(&turn[2]);
	return argument;
}

static void *b_then_c(void *argument)
{
	sem_wait(&turn[1]);
	nest(&b, &c);
	sem_post(&turn[2]);
	return argument;
}

static void *c_then_a(void *argument)
{
	sem_wait(&turn[2]);
	nest(&c, &a);
	return argument;
}

static void run(void *(*const body[])(void *), int nr)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		sem_init(&turn[i], 0, i == 0);
	for (int i = 0; i < nr; i++)
		t[i] = start(body[i], i);
	for (int i = 0; i < nr; i++)
		pthread_join(t[i], NULL);
}

static void opposite(void)
{
	run((void *(*const[])(void *)){a_then_b, b_then_a}, 2);
}

static void three(void)
{
	run((void *(*const[])(void *)){a_then_b, b_then_c, c_then_a}, 3);
}

/* The first has ended before the second begins. */
static void joined(void)
{
	for (int i = 0; i < 3; i++)
		sem_init(&turn[i], 0, 0);
	sem_post(&turn[0]);
	pthread_join(start(a_then_b, 0), NULL);
	pthread_join(start(b_then_a, 0), NULL);
}

/* The main thread does its part before it creates the other. */
static void created(void)
{
	nest(&a, &b);
	sem_init(&turn[1], 0, 1);
	sem_init(&turn[2], 0, 0);
	pthread_join(start(b_then_a, 0), NULL);
}

static void alone(void)
{
	nest(&a, &b);
	nest(&b, &a);
}

static void *gated_ab(void *argument)
{
	pthread_mutex_lock(&gate);
	nest(argument ? &a : &b, argument ? &b : &a);
	pthread_mutex_unlock(&gate);
	return NULL;
}

static void gated(void)
{
	pthread_t t = start(gated_ab, 0), u = start(gated_ab, 1);
	pthread_join(t, NULL);
	pthread_join(u, NULL);
}

static void *read_then_lock(void *argument)
{
	sem_wait(&turn[0]);
	pthread_rwlock_rdlock(&r);
	pthread_mutex_lock(&a);
	pthread_mutex_unlock(&a);
	pthread_rwlock_unlock(&r);
	sem_post(&turn[1]);
	return argument;
}

static void *lock_then_read(void *argument)
{
	sem_wait(&turn[1]);
	pthread_mutex_lock(&a);
	pthread_rwlock_rdlock(&r);
	pthread_rwlock_unlock(&r);
	pthread_mutex_unlock(&a);
	return argument;
}

static void *lock_then_write(void *argument)
{
	sem_wait(&turn[1]);
	pthread_mutex_lock(&a);
	pthread_rwlock_wrlock(&r);
	pthread_rwlock_unlock(&r);
	pthread_mutex_unlock(&a);
	return argument;
}

/* Readers do not wait for readers. */
static void readers(void)
{
	run((void *(*const[])(void *)){read_then_lock, lock_then_read}, 2);
}

static void writer(void)
{
	run((void *(*const[])(void *)){read_then_lock, lock_then_write}, 2);
}

/* A thread that tries does not wait; one that has tried is waited for. */
static void *a_tries_b(void *argument)
{
	sem_wait(&turn[0]);
	pthread_mutex_lock(&a);
	if (!pthread_mutex_trylock(&b))
		pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	sem_post(&turn[1]);
	return argument;
}

static void *tried_a_then_b(void *argument)
{
	sem_wait(&turn[0]);
	if (!pthread_mutex_trylock(&a)) {
		pthread_mutex_lock(&b);
		pthread_mutex_unlock(&b);
		pthread_mutex_unlock(&a);
	}
	sem_post(&turn[1]);
	return argument;
}

static void *b_tries_to_read_then_a(void *argument)
{
	sem_wait(&turn[1]);
	if (!pthread_rwlock_tryrdlock(&r))
		nest(&b, &a);
	pthread_rwlock_unlock(&r);
	sem_post(&turn[2]);
	return argument;
}

static void *b_tries_to_write(void *argument)
{
	sem_wait(&turn[0]);
	pthread_mutex_lock(&b);
	if (!pthread_rwlock_trywrlock(&r))
		pthread_rwlock_unlock(&r);
	pthread_mutex_unlock(&b);
	sem_post(&turn[1]);
	return argument;
}

static void *write_then_b(void *argument)
{
	sem_wait(&turn[1]);
	pthread_rwlock_wrlock(&r);
	pthread_mutex_lock(&b);
	pthread_mutex_unlock(&b);
	pthread_rwlock_unlock(&r);
	return argument;
}

static void tries(void)
{
	run((void *(*const[])(void *)){a_tries_b, b_then_a}, 2);
}

static void tries_rwlock(void)
{
	run((void *(*const[])(void *)){b_tries_to_write, write_then_b}, 2);
}

static void tried_first(void)
{
	run((void *(*const[])(void *)){tried_a_then_b, b_tries_to_read_then_a}, 2);
}

/* A thread with a time limit waits, but not for ever; one that has got it is waited for. */
static void nest_timed(pthread_mutex_t *outer, pthread_mutex_t *inner)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 100;
	pthread_mutex_lock(outer);
	if (!pthread_mutex_clocklock(inner, CLOCK_MONOTONIC, &until))
		pthread_mutex_unlock(inner);
	pthread_mutex_unlock(outer);
}

static void *a_then_b_timed(void *argument)
{
	sem_wait(&turn[0]);
	nest_timed(&a, &b);
	sem_post(&turn[1]);
	return argument;
}

static struct timespec soon(void)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 100;
	return until;
}

static void *timed_a_then_b(void *argument)
{
	const struct timespec until = soon();
	sem_wait(&turn[0]);
	if (!pthread_mutex_timedlock(&a, &until)) {
		pthread_mutex_lock(&b);
		pthread_mutex_unlock(&b);
		pthread_mutex_unlock(&a);
	}
	sem_post(&turn[1]);
	return argument;
}

static void *b_then_write_timed(void *argument)
{
	const struct timespec until = soon();
	sem_wait(&turn[0]);
	pthread_mutex_lock(&b);
	if (!pthread_rwlock_timedwrlock(&r, &until))
		pthread_rwlock_unlock(&r);
	pthread_mutex_unlock(&b);
	sem_post(&turn[1]);
	return argument;
}

static void timed(void)
{
	run((void *(*const[])(void *)){a_then_b_timed, b_then_a}, 2);
}

static void timed_rwlock(void)
{
	run((void *(*const[])(void *)){b_then_write_timed, write_then_b}, 2);
}

static void timed_first(void)
{
	run((void *(*const[])(void *)){timed_a_then_b, b_then_a}, 2);
}

/* Two locks in memory that others were in before, by every way to end and to make one. */
static pthread_mutex_t *pair;
static void (*make)(void), (*end)(void);

static void *first_then_second(void *argument)
{
	sem_wait(&turn[0]);
	make();
	nest(&pair[0], &pair[1]);
	end();
	sem_post(&turn[1]);
	return argument;
}

static void *second_then_first(void *argument)
{
	sem_wait(&turn[1]);
	make();
	nest(&pair[1], &pair[0]);
	end();
	return argument;
}

static void in_place(void)
{
	static pthread_mutex_t place[2];
	pair = place;
}

static void initialise(void)
{
	in_place();
	pthread_mutex_init(&pair[0], NULL);
	pthread_mutex_init(&pair[1], NULL);
}

static void destroy(void)
{
	pthread_mutex_destroy(&pair[0]);
	pthread_mutex_destroy(&pair[1]);
}

static void assign(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	in_place();
	pair[0] = pair[1] = fresh;
}

static void leave(void)
{
}

/* (As a std::mutex in an object.) So large that no thread keeps it for itself. */
static void allocate(void)
{
	pair = calloc(100, sizeof *pair);
}

static void give_back(void)
{
	free(pair);
}

static void reuse(void (*made_by)(void), void (*ended_by)(void))
{
	make = made_by;
	end = ended_by;
	run((void *(*const[])(void *)){first_then_second, second_then_first}, 2);
}

static void initialised_again(void)
{
	reuse(initialise, leave);
}

static void destroyed(void)
{
	reuse(assign, destroy);
}

static void freed(void)
{
	mallopt(M_ARENA_MAX, 1);
	reuse(allocate, give_back);
}

/* The same pair all the time. */
static void kept(void)
{
	in_place();
	reuse(in_place, leave);
}

static const struct hang_case cases[] = {
	{"opposite", opposite},
	{"three", three},
	{"joined", joined},
	{"created", created},
	{"alone", alone},
	{"gated", gated},
	{"readers", readers},
	{"writer", writer},
	{"tries", tries},
	{"tries-rwlock", tries_rwlock},
	{"tried-first", tried_first},
	{"timed", timed},
	{"timed-rwlock", timed_rwlock},
	{"timed-first", timed_first},
	{"initialised-again", initialised_again},
	{"destroyed", destroyed},
	{"freed", freed},
	{"kept", kept},
};

int main(int argc, char **argv)
{
	return hang_main(argc, argv, cases, sizeof cases / sizeof *cases);
}

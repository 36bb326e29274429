/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - programs that end, whose threads take locks in orders that could, or could not, hang.
 * Who comes when is set by semaphores, so that none of them does. */
#include "hang.h"

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

static const struct hang_case cases[] = {
	{"opposite", opposite},
	{"three", three},
	{"joined", joined},
	{"created", created},
	{"alone", alone},
	{"gated", gated},
	{"readers", readers},
	{"writer", writer},
};

int main(int argc, char **argv)
{
	return hang_main(argc, argv, cases, sizeof cases / sizeof *cases);
}

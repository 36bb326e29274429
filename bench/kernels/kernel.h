/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h - what the kernels share: KERNEL [THREADS [SIZE [CHECK]]]. Thread 0 is the program's
 * first; all run kernel_work(), which meets at barriers. Prints "ok" when the kernel's own check
 * holds, else fails. Marker 1: the parallel part begins. With CHECK 0 there is no check, and the
 * program ends with its parallel part. With -DKERNEL_SPIN locks and barriers spin in the program's
 * own code (test and test-and-set, sense reversal), else they are pthread's.
 */
#ifndef LONGPOLE_BENCH_KERNEL_H
#define LONGPOLE_BENCH_KERNEL_H

#include <longpole/memory.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { KERNEL_THREADS_MAX = 64 };

static int kernel_threads = 4;
static long kernel_size;

/* To be written by the kernel. */
static const long kernel_default_size;
static void kernel_setup(void);
static void kernel_work(int id);
static int kernel_check(void); /* 1: the result is right */

#ifdef KERNEL_SPIN
struct kernel_lock {
	int held;
	char pad[60];
};
static inline void kernel_lock_init(struct kernel_lock *l)
{
	l->held = 0;
}
static inline void kernel_lock(struct kernel_lock *l)
{
	while (__atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&l->held, __ATOMIC_RELAXED))
			;
}
static inline void kernel_unlock(struct kernel_lock *l)
{
	__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
}
static struct {
	int arrived;
	char pad[60];
	int sense;
} kernel_meeting;
static _Thread_local int kernel_sense;
static inline void kernel_barrier(void)
{
	int sense = kernel_sense = !kernel_sense;
	if (__atomic_add_fetch(&kernel_meeting.arrived, 1, __ATOMIC_ACQ_REL) == kernel_threads) {
		kernel_meeting.arrived = 0;
		__atomic_store_n(&kernel_meeting.sense, sense, __ATOMIC_RELEASE);
		return;
	}
	while (__atomic_load_n(&kernel_meeting.sense, __ATOMIC_ACQUIRE) != sense)
		;
}
#else
struct kernel_lock {
	pthread_mutex_t mutex;
	char pad[24];
};
static pthread_barrier_t kernel_meeting;
static inline void kernel_lock_init(struct kernel_lock *l)
{
	pthread_mutex_init(&l->mutex, NULL);
}
static inline void kernel_lock(struct kernel_lock *l)
{
	pthread_mutex_lock(&l->mutex);
}
static inline void kernel_unlock(struct kernel_lock *l)
{
	pthread_mutex_unlock(&l->mutex);
}
static inline void kernel_barrier(void)
{
	pthread_barrier_wait(&kernel_meeting);
}
#endif

static inline unsigned kernel_random(unsigned *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 17;
	return *s ^= *s << 5;
}

/* Part `id` of [0, n). */
static inline long kernel_from(int id, long n)
{
	return n * id / kernel_threads;
}

static void *kernel_enter(void *arg)
{
	kernel_work((int)(long)arg);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[KERNEL_THREADS_MAX];
	kernel_threads = argc > 1 ? atoi(argv[1]) : 4;
	kernel_size = argc > 2 ? atol(argv[2]) : kernel_default_size;
	if (kernel_threads < 1 || kernel_threads > KERNEL_THREADS_MAX || kernel_size < 1)
		return 2;
#ifndef KERNEL_SPIN
	pthread_barrier_init(&kernel_meeting, NULL, (unsigned)kernel_threads);
#endif
	kernel_setup();
	longpole_memory_mark(LONGPOLE_MEMORY_NOTE, 1);
	for (long i = 1; i < kernel_threads; i++)
		if (pthread_create(&thread[i], NULL, kernel_enter, (void *)i))
			return 1;
	kernel_work(0);
	for (long i = 1; i < kernel_threads; i++)
		pthread_join(thread[i], NULL);
	if ((argc <= 3 || atoi(argv[3])) && !kernel_check()) {
		printf("wrong\n");
		return 1;
	}
	printf("ok\n");
	return 0;
}

#endif

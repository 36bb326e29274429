/* SPDX-License-Identifier: Apache-2.0 */
/* hang_spinning.c - threads that run and get nowhere: hang_spinning CASE; none: lists the cases. */
#include "hang.h"

#include <sched.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;

static pthread_spinlock_t spin_first, spin_second;

static void *spin_second_first(void *unused)
{
	pthread_spin_lock(&spin_second);
	pthread_barrier_wait(&together);
	pthread_spin_lock(&spin_first);
	pthread_spin_unlock(&spin_first);
	pthread_spin_unlock(&spin_second);
	return unused;
}

static void spinlocks(void)
{
	pthread_barrier_init(&together, NULL, 2);
	pthread_spin_init(&spin_first, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&spin_second, PTHREAD_PROCESS_PRIVATE);
	start(spin_second_first, 0);
	pthread_spin_lock(&spin_first);
	pthread_barrier_wait(&together);
	ready();
	pthread_spin_lock(&spin_second);
	pthread_spin_unlock(&spin_second);
	pthread_spin_unlock(&spin_first);
}

static int yield_first, yield_second;

static void take_yielding(int *lock)
{
	while (__sync_lock_test_and_set(lock, 1))
		sched_yield();
}

static void *yield_second_first(void *unused)
{
	take_yielding(&yield_second);
	pthread_barrier_wait(&together);
	take_yielding(&yield_first);
	__sync_lock_release(&yield_first);
	__sync_lock_release(&yield_second);
	return unused;
}

static void yielders(void)
{
	pthread_barrier_init(&together, NULL, 2);
	start(yield_second_first, 0);
	take_yielding(&yield_first);
	pthread_barrier_wait(&together);
	ready();
	take_yielding(&yield_second);
	__sync_lock_release(&yield_second);
	__sync_lock_release(&yield_first);
}

/* One sleeps for a mutex that the other has, who spins for a word that the first would write. */
static volatile int spun_word;

static void *sleeps_then_writes(void *unused)
{
	pthread_barrier_wait(&together);
	pthread_mutex_lock(&first);
	spun_word = 1;
	pthread_mutex_unlock(&first);
	return unused;
}

static void spin_with_lock(void)
{
	pthread_barrier_init(&together, NULL, 2);
	pthread_mutex_lock(&first);
	start(sleeps_then_writes, 0);
	pthread_barrier_wait(&together);
	ready();
	while (!spun_word)
		;
	pthread_mutex_unlock(&first);
}

/* Somebody spins for what nobody would write; the others wait for him. */
static void *spins(void *unused)
{
	while (!spun_word)
		;
	return unused;
}

static void spin_alone(void)
{
	pthread_t t = start(spins, 0);
	ready();
	pthread_join(t, NULL);
}

static const struct hang_case cases[] = {
	{"spin-alone", spin_alone},
	{"spinlocks", spinlocks},
	{"yielders", yielders},
	{"spin-with-lock", spin_with_lock},
};

int main(int argc, char **argv)
{
	return hang_main(argc, argv, cases, sizeof cases / sizeof *cases);
}

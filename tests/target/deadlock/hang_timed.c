/* SPDX-License-Identifier: Apache-2.0 */
/* hang_timed.c - threads that wait for each other until a time limit ends it. */
#include "hang.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t together;
static sem_t one_sem, other_sem;

static struct timespec in_seconds(clockid_t clock, long seconds)
{
	struct timespec until;
	clock_gettime(clock, &until);
	until.tv_sec += seconds;
	return until;
}

static void *take_first_timed(void *argument)
{
	const struct timespec until = in_seconds(CLOCK_REALTIME, 100);
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&together);
	if (pthread_mutex_timedlock(&first, &until) == 0)
		pthread_mutex_unlock(&first);
	pthread_mutex_unlock(&second);
	return argument;
}

static void timed_circle(const pthread_mutexattr_t *a)
{
	pthread_mutex_init(&first, a);
	pthread_mutex_init(&second, a);
	pthread_barrier_init(&together, NULL, 2);
	start(take_first_timed, 0);
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&together);
	ready();
	pthread_mutex_lock(&second);
}

static void timed_mutexes(void)
{
	timed_circle(NULL);
}

static void timed_pi_mutexes(void)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	timed_circle(&a);
}

static void *write_then_lock(void *argument)
{
	pthread_rwlock_wrlock(&rwlock);
	pthread_barrier_wait(&together);
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
	pthread_rwlock_unlock(&rwlock);
	return argument;
}

/* By the other clock, and of a lock of two kinds of takers. */
static void clocked_rwlock(void)
{
	const struct timespec until = in_seconds(CLOCK_MONOTONIC, 200);
	pthread_barrier_init(&together, NULL, 2);
	start(write_then_lock, 0);
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&together);
	ready();
	pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &until);
}

static void timed_self_lock(void)
{
	const struct timespec until = in_seconds(CLOCK_REALTIME, 100);
	pthread_mutex_lock(&first);
	ready();
	pthread_mutex_timedlock(&first, &until);
}

static void *one_for_other(void *argument)
{
	sem_wait(argument ? &one_sem : &other_sem);
	sem_post(argument ? &other_sem : &one_sem);
	return argument;
}

static long semaphore_seconds;

static void *one_for_other_timed(void *argument)
{
	sem_t *mine = argument ? &one_sem : &other_sem, *its = argument ? &other_sem : &one_sem;
	const struct timespec until = in_seconds(CLOCK_REALTIME, semaphore_seconds);
	if (sem_timedwait(mine, &until) == 0)
		sem_post(its);
	return argument;
}

static void semaphores_for(long seconds)
{
	semaphore_seconds = seconds;
	sem_init(&one_sem, 0, 0);
	sem_init(&other_sem, 0, 0);
	pthread_t t = start(one_for_other, 0), u = start(one_for_other_timed, 1);
	ready();
	pthread_join(t, NULL);
	pthread_join(u, NULL);
}

static void timed_semaphores(void)
{
	semaphores_for(300);
}

static void short_semaphores(void)
{
	semaphores_for(25);
}

static const struct hang_case cases[] = {
	{"timed-mutexes", timed_mutexes},
	{"timed-pi-mutexes", timed_pi_mutexes},
	{"clocked-rwlock", clocked_rwlock},
	{"timed-self-lock", timed_self_lock},
	{"timed-semaphores", timed_semaphores},
	{"short-semaphores", short_semaphores},
};

int main(int argc, char **argv)
{
	return hang_main(argc, argv, cases, sizeof cases / sizeof *cases);
}

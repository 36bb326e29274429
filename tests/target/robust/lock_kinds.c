/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of mutex, rwlock and spin lock answers as without us. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static void *die_holding(void *mutex)
{
	pthread_mutex_lock(mutex);
	return NULL;
}

static void *try_it(void *mutex)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	int tried = pthread_mutex_trylock(mutex);
	int timed = pthread_mutex_timedlock(mutex, &until);
	clock_gettime(CLOCK_MONOTONIC, &until);
	int clocked = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
	printf(" other thread: %d %d %d", tried, timed, clocked);
	if (!tried)
		pthread_mutex_unlock(mutex);
	if (!timed)
		pthread_mutex_unlock(mutex);
	if (!clocked)
		pthread_mutex_unlock(mutex);
	return NULL;
}

static void mutexes(void)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
		PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	for (int i = 0; i < 16; i++) {
		pthread_mutexattr_t attributes;
		pthread_mutex_t mutex;
		pthread_t t;
		int type = types[i % 4], pi = i / 4 % 2, shared = i / 8;
		pthread_mutexattr_init(&attributes);
		pthread_mutexattr_settype(&attributes, type);
		pthread_mutexattr_setprotocol(
			&attributes, pi ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
		pthread_mutexattr_setpshared(
			&attributes, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
		printf("type %d pi %d shared %d: %d", type, pi, shared,
			pthread_mutex_init(&mutex, &attributes));
		printf(" %d", pthread_mutex_lock(&mutex));
		if (type == PTHREAD_MUTEX_RECURSIVE)
			printf(" %d %d", pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex));
		if (type == PTHREAD_MUTEX_ERRORCHECK)
			printf(" %d", pthread_mutex_lock(&mutex));
		pthread_create(&t, NULL, try_it, &mutex);
		pthread_join(t, NULL);
		printf(" %d", pthread_mutex_unlock(&mutex));
		if (type == PTHREAD_MUTEX_ERRORCHECK)
			printf(" %d", pthread_mutex_unlock(&mutex));
		pthread_create(&t, NULL, try_it, &mutex);
		pthread_join(t, NULL);
		printf(" %d\n", pthread_mutex_destroy(&mutex));
	}
}

static void robust(void)
{
	pthread_mutexattr_t attributes;
	pthread_mutex_t mutex;
	pthread_t t;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&mutex, &attributes);
	for (int i = 0; i < 2; i++) {
		pthread_create(&t, NULL, die_holding, &mutex);
		pthread_join(t, NULL);
		int locked = i ? pthread_mutex_trylock(&mutex) : pthread_mutex_lock(&mutex);
		printf("robust %d %d", locked == EOWNERDEAD, pthread_mutex_consistent(&mutex));
		printf(" %d\n", pthread_mutex_unlock(&mutex));
	}
	pthread_create(&t, NULL, die_holding, &mutex);
	pthread_join(t, NULL);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex); /* not made consistent */
	printf("robust %d\n", pthread_mutex_lock(&mutex) == ENOTRECOVERABLE);
}

static void others(void)
{
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
	pthread_spinlock_t spin;
	struct timespec past = {0, 0};
	printf("rwlock %d %d", pthread_rwlock_rdlock(&rwlock), pthread_rwlock_rdlock(&rwlock));
	printf(" %d", pthread_rwlock_trywrlock(&rwlock));
	printf(" %d", pthread_rwlock_timedwrlock(&rwlock, &past));
	printf(" %d %d", pthread_rwlock_unlock(&rwlock), pthread_rwlock_unlock(&rwlock));
	printf(" %d", pthread_rwlock_wrlock(&rwlock));
	printf(" %d %d", pthread_rwlock_wrlock(&rwlock), pthread_rwlock_rdlock(&rwlock));
	printf(" %d", pthread_rwlock_tryrdlock(&rwlock));
	printf(" %d\n", pthread_rwlock_unlock(&rwlock));
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	printf("spin %d", pthread_spin_lock(&spin));
	printf(" %d", pthread_spin_trylock(&spin));
	printf(" %d\n", pthread_spin_unlock(&spin));
}

int main(void)
{
	mutexes();
	robust();
	others();
	return 0;
}

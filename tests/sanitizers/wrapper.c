/* SPDX-License-Identifier: Apache-2.0 */
/* wrapper.c - a library that a user preloads, or links with: it counts locks and signals of
 * condition variables, and says at the end how many there were. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static int nr_locks, nr_signals;

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*next)(pthread_mutex_t *);
	if (!next)
		next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	__atomic_fetch_add(&nr_locks, 1, __ATOMIC_RELAXED);
	return next(mutex);
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	static int (*next)(pthread_cond_t *);
	if (!next)
		next = (int (*)(pthread_cond_t *))dlvsym(
			RTLD_NEXT, "pthread_cond_signal", "GLIBC_2.3.2");
	__atomic_fetch_add(&nr_signals, 1, __ATOMIC_RELAXED);
	return next(cond);
}

__attribute__((destructor)) static void say(void)
{
	printf("%d signals, %d locks\n", nr_signals, nr_locks);
}

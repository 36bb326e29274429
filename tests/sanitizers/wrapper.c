/* SPDX-License-Identifier: Apache-2.0 */
/* wrapper.c - a library that a user preloads: it counts locks, and says at the end how many there
 * were. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static int nr_locks;

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*next)(pthread_mutex_t *);
	if (!next)
		next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	__atomic_fetch_add(&nr_locks, 1, __ATOMIC_RELAXED);
	return next(mutex);
}

__attribute__((destructor)) static void say(void)
{
	printf("%d locks\n", nr_locks);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_floor - to be preloaded: two bare time stamps a pair of lock and unlock, kept nowhere but in
 * a variable of the thread. The least that any tool pays which times holds, in the program itself,
 * where the clock, the wrapper and what it needs are not always in a cache.
 */
#include <pthread.h>
#include <stdint.h>

int __pthread_mutex_lock(pthread_mutex_t *mutex);
int __pthread_mutex_trylock(pthread_mutex_t *mutex);
int __pthread_mutex_unlock(pthread_mutex_t *mutex);

static __thread uint64_t since_tsc, until_tsc __attribute__((tls_model("initial-exec")));

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int result = __pthread_mutex_lock(mutex);
	since_tsc = __builtin_ia32_rdtsc();
	return result;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int result = __pthread_mutex_trylock(mutex);
	since_tsc = __builtin_ia32_rdtsc();
	return result;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	until_tsc = __builtin_ia32_rdtsc();
	return __pthread_mutex_unlock(mutex);
}

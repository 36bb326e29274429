/* SPDX-License-Identifier: Apache-2.0 */
/* own.c - a program with functions of its own that have glibc's inner names, and call the known
 * ones. Says 2000. */
#include <pthread.h>
#include <stdio.h>

int __pthread_mutex_lock(pthread_mutex_t *mutex);
int __pthread_mutex_trylock(pthread_mutex_t *mutex);
int __pthread_mutex_unlock(pthread_mutex_t *mutex);

int __pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return pthread_mutex_lock(mutex);
}
int __pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return pthread_mutex_trylock(mutex);
}
int __pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return pthread_mutex_unlock(mutex);
}

int main(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int sum = 0;
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		sum += 1 + !pthread_mutex_unlock(&lock);
	}
	printf("%d\n", sum);
	return 0;
}

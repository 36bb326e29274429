/* SPDX-License-Identifier: Apache-2.0 */
/* Threads cancelled in a condition variable, a semaphore, a read, a join. expect: cond_wake 1;
 * expect: thread_end 6 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t none;
static int fds[2];

static void unlock(void *mutex)
{
	printf("unlocked %d\n", pthread_mutex_unlock(mutex));
}

static void *in_cond(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(unlock, &lock);
	pthread_cond_wait(&never, &lock);
	pthread_cleanup_pop(1);
	return unused;
}

static void *in_sem(void *unused)
{
	sem_wait(&none);
	return unused;
}

static void *in_read(void *unused)
{
	char byte;
	read(fds[0], &byte, 1);
	return unused;
}

static void *in_join(void *thread)
{
	pthread_join(*(pthread_t *)thread, NULL);
	return NULL;
}

static void cancel(void *(*routine)(void *), void *argument)
{
	pthread_t t;
	void *value = NULL;
	pthread_create(&t, NULL, routine, argument);
	usleep(20000);
	pthread_cancel(t);
	pthread_join(t, &value);
	printf("%s\n", value == PTHREAD_CANCELED ? "cancelled" : "returned");
}

int main(void)
{
	pthread_t reader;
	sem_init(&none, 0, 0);
	pipe(fds);
	cancel(in_cond, NULL);
	cancel(in_sem, NULL);
	cancel(in_read, NULL);
	pthread_create(&reader, NULL, in_read, NULL);
	cancel(in_join, &reader);
	write(fds[1], "x", 1);
	pthread_join(reader, NULL);
	pthread_mutex_lock(&lock);
	return pthread_mutex_unlock(&lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detached.c - threads that nobody joins, each on the stack, the heap and the thread data of one
 * before it. WAIT says how main knows that one is done: 1 by a condition variable (it may still be
 * leaving then), 2 by asking the kernel until it is gone. 3: all of a round at a time, in each of
 * which they do share.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 12, WORDS = 1000, ROUNDS = 20, BESIDE = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t beside;
static __thread long own[64];
static int nr_done;
static int number[THREADS];
static long counter[BESIDE];

static void *work(void *argument)
{
	volatile long on_stack[WORDS], sum = 0;
	volatile long *block = malloc(WORDS * sizeof *block), *mine = argument;
	if (WAIT == 3)
		pthread_barrier_wait(&beside);
	for (int r = 0; r < ROUNDS; r++)
		for (int i = 0; i < WORDS; i++) {
			on_stack[i] = i + r;
			block[i] = sum;
			own[i % 64] += i;
			sum += on_stack[WORDS - 1 - i];
			if (WAIT == 3)
				++*mine;
		}
	free((void *)block);
	if (WAIT == 2) {
		__atomic_store_n((int *)argument, (int)gettid(), __ATOMIC_RELEASE);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	nr_done++;
	pthread_cond_signal(&done);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void wait_for(int nr)
{
	pthread_mutex_lock(&lock);
	while (nr_done < nr)
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
}

static void wait_until_gone(int i)
{
	int id;
	while (!(id = __atomic_load_n(&number[i], __ATOMIC_ACQUIRE)))
		usleep(1000);
	while (!syscall(SYS_tgkill, getpid(), id, 0) || errno != ESRCH)
		usleep(1000);
}

int main(void)
{
	pthread_attr_t detached;
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	pthread_barrier_init(&beside, NULL, BESIDE);
	for (int i = 0; i < THREADS; i++) {
		pthread_t t;
		void *argument = WAIT == 3 ? (void *)&counter[i % BESIDE] : (void *)&number[i];
		if (pthread_create(&t, &detached, work, argument))
			return 1;
		if (WAIT == 1)
			wait_for(i + 1);
		if (WAIT == 2)
			wait_until_gone(i);
		if (WAIT == 3 && i % BESIDE == BESIDE - 1)
			wait_for(i + 1);
	}
	return 0;
}

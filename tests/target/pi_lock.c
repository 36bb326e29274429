/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pi_lock - a lock of the program's own with priority inheritance: taken and given up in user space
 * when it is free, by FUTEX_LOCK_PI and FUTEX_UNLOCK_PI when it is not. Three threads sleep under
 * it in turns. Known answer: the path is their sleeps, one after another.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 3, TURNS = 10, SLEEP_US = 3000 };

static _Atomic unsigned word;

static void lock(void)
{
	unsigned none = 0, tid = (unsigned)syscall(SYS_gettid);
	if (!atomic_compare_exchange_strong(&word, &none, tid))
		syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
}

static void unlock(void)
{
	unsigned tid = (unsigned)syscall(SYS_gettid);
	if (!atomic_compare_exchange_strong(&word, &tid, 0))
		syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
}

static void *take_turns(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		lock();
		usleep(SLEEP_US);
		unlock();
	}
	return unused;
}

int main(void)
{
	pthread_t thread[THREADS];
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, take_turns, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starved - four threads, all on one processor, hand a token round: each takes it from a semaphore
 * of its own, works 1 ms with a mutex, gives it to the next, and works 3 ms for itself. The library
 * sees whom each waits for; the kernel sees that whoever got the token, or the mutex, has no
 * processor yet.
 * Known answer: the path is work and waiting for the processor that the others have; handing over
 * weighs nothing.
 */
#include <semaphore.h>

#include "roles.h"

enum { THREADS = 4 };
static sem_t turn[THREADS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t rounds;

static void work_alone(uint64_t us)
{
	target_must(!pthread_mutex_lock(&mutex), "pthread_mutex_lock");
	role_work(us);
	target_must(!pthread_mutex_unlock(&mutex), "pthread_mutex_unlock");
}

static void *run_worker(void *arg)
{
	sem_t *own = arg, *next = own == turn + THREADS - 1 ? turn : own + 1;
	role_is("worker");
	for (uint64_t i = 0; i < rounds; i++) {
		while (sem_wait(own))
			;
		work_alone(1000);
		target_must(!sem_post(next), "sem_post");
		role_work(3000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	target_check(argc, argv, "--rounds");
	rounds = target_number(argc, argv, "--rounds", 30);
	role_is("waiter");
	role_pin(0);
	for (int i = 0; i < THREADS; i++)
		target_must(!sem_init(&turn[i], 0, !i), "sem_init");
	for (int i = 0; i < THREADS; i++)
		target_must(
			!pthread_create(&thread[i], NULL, run_worker, &turn[i]), "pthread_create");
	for (int i = 0; i < THREADS; i++)
		target_must(!pthread_join(thread[i], NULL), "pthread_join");
	return 0;
}

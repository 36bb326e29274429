/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang_random.c SPEC... - a thread for each SPEC. Thread i has mutex i, rwlock i as its writer and
 * another one as a reader; then it waits as its SPEC says, and gives all that back and posts
 * semaphore i. All waits are known, so what hangs is: every thread that is led into a circle.
 *
 * m3: takes mutex 3; s3: waits for semaphore 3; r3, w3: reads, writes under rwlock 3; u3: writes
 * under the one that thread 3 reads; z: sleeps.
 */
#include "hang.h"

enum { THREADS_MAX = 9 };

static struct thread {
	const char *spec;
	pid_t tid;
	sem_t posted;
	pthread_mutex_t mutex;
	pthread_rwlock_t written, read;
} thread[THREADS_MAX];
static pthread_barrier_t together;
static int nr;

static void wait_as(const char *spec)
{
	struct thread *of = &thread[spec[1] ? (spec[1] - '0') % THREADS_MAX : 0];
	switch (*spec) {
	case 'm':
		pthread_mutex_lock(&of->mutex);
		pthread_mutex_unlock(&of->mutex);
		break;
	case 's':
		sem_wait(&of->posted);
		break;
	case 'r':
		pthread_rwlock_rdlock(&of->written);
		pthread_rwlock_unlock(&of->written);
		break;
	case 'w':
		pthread_rwlock_wrlock(&of->written);
		pthread_rwlock_unlock(&of->written);
		break;
	case 'u':
		pthread_rwlock_wrlock(&of->read);
		pthread_rwlock_unlock(&of->read);
		break;
	default:
		nap_ms(3600000);
	}
}

static void *body(void *argument)
{
	struct thread *t = argument;
	t->tid = (pid_t)syscall(SYS_gettid);
	pthread_mutex_lock(&t->mutex);
	pthread_rwlock_wrlock(&t->written);
	pthread_rwlock_rdlock(&t->read);
	pthread_barrier_wait(&together);
	wait_as(t->spec);
	for (int i = 0; i < nr; i++)
		sem_post(&t->posted);
	pthread_rwlock_unlock(&t->read);
	pthread_rwlock_unlock(&t->written);
	pthread_mutex_unlock(&t->mutex);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS_MAX];
	nr = argc - 1 < THREADS_MAX ? argc - 1 : THREADS_MAX;
	pthread_barrier_init(&together, NULL, (unsigned)nr + 1);
	for (int i = 0; i < nr; i++) {
		thread[i].spec = argv[1 + i];
		sem_init(&thread[i].posted, 0, 0);
		pthread_mutex_init(&thread[i].mutex, NULL);
		pthread_rwlock_init(&thread[i].written, NULL);
		pthread_rwlock_init(&thread[i].read, NULL);
	}
	for (int i = 0; i < nr; i++)
		t[i] = start(body, (intptr_t)&thread[i]);
	pthread_barrier_wait(&together);
	printf("TIDS");
	for (int i = 0; i < nr; i++)
		printf(" %d", (int)thread[i].tid);
	printf("\n");
	ready();
	for (int i = 0; i < nr; i++)
		pthread_join(t[i], NULL);
	return 0;
}

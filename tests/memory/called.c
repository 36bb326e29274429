/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of each family: whoever records them too is to say where in here they are. A comment at a
 * line's end is what run.sh looks for there. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct box {
	pthread_mutex_t lock;
	long content;
};

static struct box *box;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;
static int pipe_end[2], is_told;

static __attribute__((noinline)) struct box *new_box(void)
{
	static const pthread_mutex_t empty = PTHREAD_MUTEX_INITIALIZER;
	struct box *b = malloc(sizeof *b); /* allocates */
	memcpy(&b->lock, &empty, sizeof empty);
	b->content = 0;
	return b;
}

static __attribute__((noinline)) void fill(void)
{
	pthread_mutex_lock(&box->lock); /* waits */
	box->content++;
	pthread_mutex_unlock(&box->lock);
}

static void *worker(void *unused)
{
	char byte;
	fill();
	pthread_rwlock_wrlock(&rwlock); /* waits */
	pthread_rwlock_unlock(&rwlock);
	sem_wait(&semaphore); /* waits */
	pthread_mutex_lock(&mutex);
	while (!is_told)
		pthread_cond_wait(&cond, &mutex); /* waits */
	pthread_mutex_unlock(&mutex);
	if (read(pipe_end[0], &byte, 1) != 1) /* waits */
		abort();
	return unused;
}

int main(void)
{
	enum { PAUSE_US = 20000 };
	pthread_t thread;
	box = new_box();
	if (pipe(pipe_end) || sem_init(&semaphore, 0, 0))
		return 1;
	pthread_mutex_lock(&box->lock);
	pthread_rwlock_wrlock(&rwlock);
	pthread_create(&thread, NULL, worker, NULL);
	usleep(PAUSE_US);
	pthread_mutex_unlock(&box->lock);
	usleep(PAUSE_US);
	pthread_rwlock_unlock(&rwlock);
	usleep(PAUSE_US);
	sem_post(&semaphore);
	usleep(PAUSE_US);
	pthread_mutex_lock(&mutex);
	is_told = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	usleep(PAUSE_US);
	if (write(pipe_end[1], "", 1) != 1)
		return 1;
	pthread_join(thread, NULL); /* waits */
	return 0;
}

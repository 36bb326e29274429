/* SPDX-License-Identifier: Apache-2.0 */
/* Condition variables of before glibc 2.3.2 and of today in one program. expect: cond_signal 2 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

int old_wait(void *cond, pthread_mutex_t *mutex);
int old_timedwait(void *cond, pthread_mutex_t *mutex, const struct timespec *until);
int old_signal(void *cond);
__asm__(".symver old_wait, pthread_cond_wait@GLIBC_2.2.5\n"
	".symver old_timedwait, pthread_cond_timedwait@GLIBC_2.2.5\n"
	".symver old_signal, pthread_cond_signal@GLIBC_2.2.5\n");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t today = PTHREAD_COND_INITIALIZER;
static void *old_cond; /* it was a pointer */
static int state;

static void *other(void *unused)
{
	pthread_mutex_lock(&lock);
	state = 1;
	old_signal(&old_cond);
	while (state != 2)
		pthread_cond_wait(&today, &lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t t;
	struct timespec past = {1, 0};
	pthread_mutex_lock(&lock);
	printf("%d %d\n", old_timedwait(&old_cond, &lock, &past),
		pthread_cond_timedwait(&today, &lock, &past));
	pthread_create(&t, NULL, other, NULL);
	while (state != 1)
		old_wait(&old_cond, &lock);
	state = 2;
	pthread_cond_signal(&today);
	pthread_mutex_unlock(&lock);
	pthread_join(t, NULL);
	printf("%d\n", state);
	return 0;
}

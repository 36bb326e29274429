/* SPDX-License-Identifier: Apache-2.0 */
/* C11 threads. */
#include <stdio.h>
#include <threads.h>
#include <time.h>

static mtx_t lock;
static cnd_t ready;
static once_flag once = ONCE_FLAG_INIT;
static int state, nr_once;

static void count(void)
{
	nr_once++;
}

static int work(void *unused)
{
	(void)unused;
	call_once(&once, count);
	mtx_lock(&lock);
	state = 1;
	cnd_signal(&ready);
	mtx_unlock(&lock);
	return 42;
}

int main(void)
{
	thrd_t t;
	int result = 0;
	struct timespec past = {0, 0}, little = {0, 1000};
	mtx_init(&lock, mtx_timed);
	cnd_init(&ready);
	call_once(&once, count);
	mtx_lock(&lock);
	printf("%d %d %d\n", mtx_trylock(&lock) == thrd_busy,
		mtx_timedlock(&lock, &past) == thrd_timedout,
		cnd_timedwait(&ready, &lock, &past) == thrd_timedout);
	thrd_create(&t, work, NULL);
	while (!state)
		cnd_wait(&ready, &lock);
	mtx_unlock(&lock);
	thrd_join(t, &result);
	printf("%d %d %d\n", result, nr_once, thrd_sleep(&little, NULL));
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* 2,000 short threads, 16 at a time. expect: thread_begin 2001; expect: thread_end 2001; expect:
 * join_done 2000 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *work(void *unused)
{
	pthread_mutex_lock(&lock);
	count++;
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t t[16];
	for (int i = 0; i < 2000; i += 16) {
		for (int k = 0; k < 16; k++)
			pthread_create(&t[k], NULL, work, NULL);
		for (int k = 0; k < 16; k++)
			pthread_join(t[k], NULL);
	}
	printf("%d\n", count);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* _exit() from a thread that holds a lock, buffered output is dropped. expect: thread_end 1 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *leave(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	_exit(3);
}

int main(void)
{
	pthread_t t;
	setvbuf(stdout, NULL, _IOFBF, 4096);
	write(1, "written\n", 8);
	printf("never seen\n");
	pthread_create(&t, NULL, leave, NULL);
	pthread_join(t, NULL);
	return 0;
}

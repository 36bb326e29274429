/* SPDX-License-Identifier: Apache-2.0 */
/* pthread_exit() from main; the other thread ends the program. expect: thread_end 2 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_t main_thread;

static void *last(void *unused)
{
	pthread_join(main_thread, NULL);
	printf("main has left\n");
	exit(5);
	return unused;
}

int main(void)
{
	pthread_t t;
	main_thread = pthread_self();
	pthread_create(&t, NULL, last, NULL);
	pthread_exit(NULL);
}

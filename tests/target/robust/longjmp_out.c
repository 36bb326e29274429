/* SPDX-License-Identifier: Apache-2.0 */
/* A signal handler leaves by siglongjmp, out of whatever it interrupted. broken: allowed */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf back;
static pthread_mutex_t lock;
static int fds[2];

static void handler(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

int main(void)
{
	struct itimerval timer = {{0, 0}, {0, 500}};
	volatile int nr_jumps = 0;
	char byte;
	pipe(fds);
	signal(SIGALRM, handler);
	for (;;) {
		if (sigsetjmp(back, 1) && (nr_jumps += 1) == 400)
			break;
		pthread_mutex_init(&lock, NULL); /* it may have been left locked */
		setitimer(ITIMER_REAL, &timer, NULL);
		if (nr_jumps % 2)
			read(fds[0], &byte, 1);
		for (;;) {
			pthread_mutex_lock(&lock);
			pthread_mutex_unlock(&lock);
		}
	}
	printf("%d\n", nr_jumps);
	return 0;
}

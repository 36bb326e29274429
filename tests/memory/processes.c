/* SPDX-License-Identifier: Apache-2.0 */
/* processes.c - signals, fork, exec. */
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
#include <signal.h>
#include <sys/time.h>
#include <stdlib.h>
static volatile long ticks, work;
static void alrm(int s)
{
	for (int i = 0; i < 30; i++)
		ticks += i & 1;
	(void)s;
}
int main(int c, char **v)
{
	if (c > 1) {
		for (int i = 0; i < 1000; i++)
			work += i;
		printf("exec %ld\n", work);
		return 3;
	}
	struct sigaction a = {.sa_handler = alrm};
	sigaction(SIGALRM, &a, 0);
	struct itimerval it = {{0, 500}, {0, 500}};
	setitimer(ITIMER_REAL, &it, 0);
	for (long i = 0; i < 3000000; i++)
		work += i;
	it = (struct itimerval){0};
	setitimer(ITIMER_REAL, &it, 0);
	pid_t p = fork();
	if (!p) {
		for (int i = 0; i < 100000; i++)
			work++;
		_exit(work & 1);
	}
	int st;
	waitpid(p, &st, 0);
	p = fork();
	if (!p) {
		execl("/proc/self/exe", "fk", "x", (char *)0);
		_exit(9);
	}
	waitpid(p, &st, 0);
	printf("%ld %d %d\n", work, ticks > 0, WEXITSTATUS(st));
	return 0;
}

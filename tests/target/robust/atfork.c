/* SPDX-License-Identifier: Apache-2.0 */
/* Fork handlers that lock before and unlock after, in parent and child. expect: images 4 */
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before(void)
{
	pthread_mutex_lock(&lock);
}

static void after(void)
{
	pthread_mutex_unlock(&lock);
}

static int finish(pid_t pid)
{
	int status = 0;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	if (pid == 0)
		_exit(6);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

int main(void)
{
	pthread_atfork(before, after, after);
	printf("%d", finish(fork()));
	fflush(stdout);
	printf(" %d", finish(_Fork()));
	fflush(stdout);
	printf(" %d\n", finish((pid_t)syscall(SYS_fork)));
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Threads fork at the same time, others lock; children lock and fork once more. expect: images 41
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t locks[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static atomic_int stop, total;

static void *lock_often(void *argument)
{
	while (!stop) {
		pthread_mutex_lock(argument);
		pthread_mutex_unlock(argument);
	}
	return NULL;
}

static int child(void)
{
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	for (int i = 0; i < 3000; i++) {
		pthread_mutex_lock(&own);
		pthread_mutex_unlock(&own);
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(2);
	int status = 0;
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void *fork_often(void *unused)
{
	for (int i = 0; i < 5; i++) {
		int status = 0;
		pid_t pid = fork();
		if (pid == 0)
			_exit(child());
		waitpid(pid, &status, 0);
		total += WEXITSTATUS(status);
	}
	return unused;
}

int main(void)
{
	pthread_t lockers[2], forkers[4];
	for (int i = 0; i < 2; i++)
		pthread_create(&lockers[i], NULL, lock_often, &locks[i]);
	for (int i = 0; i < 4; i++)
		pthread_create(&forkers[i], NULL, fork_often, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(forkers[i], NULL);
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(lockers[i], NULL);
	printf("%d\n", total);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Becomes nobody in an empty root directory and goes on. needs: root; expect: images 2 */
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused)
{
	for (int i = 0; i < 20000; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(void)
{
	pthread_t t;
	int status = 0;
	int failed = chroot("/proc/self") | chdir("/") | setgroups(0, NULL) | setgid(65534) |
		     setuid(65534);
	pthread_create(&t, NULL, work, NULL);
	pthread_join(t, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		work(NULL);
		_exit(8);
	}
	waitpid(pid, &status, 0);
	printf("%d %d %d\n", failed, (int)getuid(), WEXITSTATUS(status));
	return 0;
}

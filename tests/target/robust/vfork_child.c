/* SPDX-License-Identifier: Apache-2.0 */
/* The child of vfork changes descriptors and memory before it executes or exits. expect: images 4
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
	volatile int shared = 0;
	int fds[2], status;
	char text[32] = "";
	for (int i = 0; i < 3; i++) {
		pipe(fds);
		write(fds[1], "from parent ", 12);
		pid_t pid = vfork();
		if (pid == 0) {
			shared++;
			dup2(fds[1], 1);
			close(fds[0]);
			close(fds[1]);
			execl("/bin/echo", "echo", "from child", (char *)NULL);
			_exit(9);
		}
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		waitpid(pid, &status, 0);
		ssize_t n = read(fds[0], text, sizeof text - 1);
		printf("%d %d %.*s", WEXITSTATUS(status), shared, (int)n, text);
		close(fds[0]);
		close(fds[1]);
	}
	pid_t pid = vfork();
	if (pid == 0)
		_exit(7);
	waitpid(pid, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}

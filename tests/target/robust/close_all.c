/* SPDX-License-Identifier: Apache-2.0 */
/* Closes every descriptor, several ways, and goes on. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int reopen(void)
{
	char text[8] = "";
	int fd = open("/proc/self/comm", O_RDONLY);
	ssize_t n = read(fd, text, 5);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	printf("%d %d %.5s\n", fd, (int)n, text);
	return fd;
}

int main(void)
{
	reopen();
	for (int fd = 3; fd < 70000; fd++)
		close(fd);
	reopen();
	close_range(3, ~0u, 0);
	reopen();
	closefrom(3);
	for (int i = 0; i < 20000; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	return reopen();
}

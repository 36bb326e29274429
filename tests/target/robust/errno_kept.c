/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that succeed leave errno alone; calls that fail say why. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <unistd.h>

#define SHOW(call)                                                                                 \
	do {                                                                                       \
		errno = 4711;                                                                      \
		long result = (long)(call);                                                        \
		int error = errno;                                                                 \
		printf("%s: %d %d\n", #call, result < 0 ? -1 : 0, error);                          \
	} while (0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;

int main(void)
{
	int fds[2], pair[2];
	char text[8];
	struct sembuf down = {0, -1, IPC_NOWAIT};
	struct pollfd p;
	sem_init(&semaphore, 0, 1);
	SHOW(pthread_mutex_lock(&lock));
	SHOW(pthread_mutex_trylock(&lock));
	SHOW(pthread_mutex_unlock(&lock));
	SHOW(sem_wait(&semaphore));
	SHOW(sem_trywait(&semaphore));
	SHOW(sem_timedwait(&semaphore, &(struct timespec){1, 0}));
	SHOW(pipe2(fds, O_NONBLOCK));
	SHOW(read(fds[0], text, 8));
	SHOW(write(fds[1], "x", 1));
	SHOW(read(fds[0], text, 8));
	SHOW(read(-1, text, 8));
	SHOW(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	SHOW(send(pair[0], "x", 1, 0));
	SHOW(recv(pair[1], text, 8, MSG_PEEK));
	SHOW(recv(pair[1], text, 8, 0));
	SHOW(recv(pair[1], text, 8, MSG_DONTWAIT));
	SHOW(connect(-1, NULL, 0));
	SHOW(semop(-1, &down, 1));
	p = (struct pollfd){fds[1], POLLOUT, 0};
	SHOW(poll(&p, 1, 0));
	SHOW(close(fds[0]));
	SHOW(close(fds[0]));
	SHOW(fsync(1000));
	SHOW(usleep(1));
	return 0;
}

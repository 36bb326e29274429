/* SPDX-License-Identifier: Apache-2.0 */
/* requests.c - a client of 5 ms and a server of 20 ms of processor time take turns over two pipes,
 * ten times. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static int request[2], reply[2];

static long long used_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void work(int ms)
{
	long long until = used_ns() + ms * 1000000LL;
	while (used_ns() < until)
		;
}

static void *serve(void *none)
{
	char c;
	while (read(request[0], &c, 1) == 1) {
		work(20);
		if (write(reply[1], &c, 1) != 1)
			break;
	}
	return none;
}

int main(void)
{
	pthread_t server;
	char c = 1;
	if (pipe(request) || pipe(reply) || pthread_create(&server, NULL, serve, NULL))
		return 1;
	for (int i = 0; i < 10; i++) {
		work(5);
		if (write(request[1], &c, 1) != 1 || read(reply[0], &c, 1) != 1)
			return 1;
	}
	close(request[1]);
	return pthread_join(server, NULL);
}

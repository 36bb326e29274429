/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_rr.c - requests and replies of 32 bytes over one connection. `tcp_rr serve ADDRESS` serves
 * one client; `tcp_rr ask ADDRESS SECONDS` prints round trips a second. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7779, BYTES = 32, BATCH = 64 };

static double now_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int serve(int fd, const struct sockaddr_in *a)
{
	char buf[BYTES];
	ssize_t n;
	if (bind(fd, (const struct sockaddr *)a, sizeof *a) || listen(fd, 1))
		return 1;
	int client = accept(fd, NULL, NULL);
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	while ((n = read(client, buf, sizeof buf)) > 0)
		if (write(client, buf, (size_t)n) != n)
			return 1;
	return 0;
}

static int ask(int fd, const struct sockaddr_in *a, double seconds)
{
	char buf[BYTES] = "";
	long n = 0;
	int tries = 100;
	while (connect(fd, (const struct sockaddr *)a, sizeof *a) && --tries)
		usleep(20000);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	double begin = now_s(), elapsed;
	do {
		for (int i = 0; i < BATCH; i++, n++)
			if (write(fd, buf, sizeof buf) != BYTES || read(fd, buf, sizeof buf) <= 0)
				return 1;
		elapsed = now_s() - begin;
	} while (elapsed < seconds);
	printf("%.0f\n", (double)n / elapsed);
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	if (argc < 3 || inet_pton(AF_INET, argv[2], &a.sin_addr) != 1)
		return 2;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	return strcmp(argv[1], "serve") == 0 ? serve(fd, &a)
					     : ask(fd, &a, argc > 3 ? atof(argv[3]) : 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer - a bulk TCP transfer whose every part can be the bottleneck.
 *
 *   transfer --as=receive --port=P --cost=U --buffer=BYTES
 *   transfer --as=send --host=ADDRESS --port=P --cost=U --buffer=BYTES --blocks=N
 *
 * The sender produces and writes N blocks, the receiver reads and digests each; a unit of cost is
 * about a microsecond of one processor a block. --buffer: SO_SNDBUF, SO_RCVBUF (0: the kernel's
 * own). The receiver prints bytes a second, from a quarter of the transfer on: without the slow
 * start.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../tests/target/target.h"

enum { BLOCK_BYTES = 16 * 1024 };

TARGET_FUNCTION uint64_t produce(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

TARGET_FUNCTION uint64_t digest(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int make_socket(int option, uint64_t buffer_bytes)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, bytes = (int)buffer_bytes;
	target_must(fd >= 0, "socket");
	target_must(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "SO_REUSEADDR");
	target_must(!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5), "cubic");
	if (bytes)
		target_must(!setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes), "buffer");
	return fd;
}

static bool take(int fd, char *block)
{
	for (size_t got = 0; got < BLOCK_BYTES;) {
		ssize_t n = read(fd, block + got, BLOCK_BYTES - got);
		target_must(n >= 0, "read");
		if (!n)
			return false;
		got += (size_t)n;
	}
	return true;
}

static uint64_t receive(int fd, uint16_t port, uint64_t cost, uint64_t blocks)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	static char block[BLOCK_BYTES];
	double begin = 0;
	uint64_t sum = 1, nr = 0;
	target_must(
		!bind(fd, (struct sockaddr *)&address, sizeof address) && !listen(fd, 1), "listen");
	fputs("ready\n", stderr);
	int from = accept(fd, NULL, NULL);
	target_must(from >= 0, "accept");
	for (; take(from, block); nr++) {
		if (nr == blocks / 4)
			begin = now_s();
		sum = digest(sum, cost);
	}
	printf("%.0f\n", (double)(nr - blocks / 4) * BLOCK_BYTES / (now_s() - begin));
	close(from);
	return sum;
}

/* The receiver may not listen yet. */
static void connect_to(int fd, const struct sockaddr_in *address)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	int tries = 0;
	while (connect(fd, (const struct sockaddr *)address, sizeof *address)) {
		target_must(errno == ECONNREFUSED && tries++ < 3000, "connect");
		nanosleep(&pause, NULL);
	}
}

static uint64_t send_all(int fd, const char *host, uint16_t port, uint64_t cost, uint64_t blocks)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	static char block[BLOCK_BYTES];
	uint64_t sum = 1;
	char rest;
	target_must(inet_pton(AF_INET, host, &address.sin_addr) == 1, host);
	connect_to(fd, &address);
	for (uint64_t i = 0; i < blocks; i++) {
		sum = produce(sum, cost);
		target_must(write(fd, block, sizeof block) == sizeof block, "write");
	}
	shutdown(fd, SHUT_WR);
	target_must(read(fd, &rest, 1) == 0, "the receiver's end"); /* until all is digested */
	return sum;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--as --host --port --cost --buffer --blocks");
	bool sends = !strcmp(target_text(argc, argv, "--as", "send"), "send");
	uint16_t port = (uint16_t)target_number(argc, argv, "--port", 7000);
	uint64_t cost = target_number(argc, argv, "--cost", 0),
		 blocks = target_number(argc, argv, "--blocks", 100);
	int fd = make_socket(
		sends ? SO_SNDBUF : SO_RCVBUF, target_number(argc, argv, "--buffer", 0));
	uint64_t sum = sends ? send_all(fd, target_text(argc, argv, "--host", "127.0.0.1"), port,
				       cost, blocks)
			     : receive(fd, port, cost, blocks);
	close(fd);
	return sum == 0;
}

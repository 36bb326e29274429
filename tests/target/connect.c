/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect - a client works, connects, and works again for the next connection; a server accepts
 * them, --by=accept, poll or epoll, and has little to do for each. No byte is sent. Known answer:
 * the server's wait for connections is the client's `prepare`.
 */
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

enum { CONNECTIONS = 60, PREPARE_UNITS = 5000, SERVE_UNITS = 300 };

static union {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_un local;
} address;
static socklen_t nr_bytes;
static const char *by;
static uint64_t percent;

TARGET_FUNCTION uint64_t prepare(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

TARGET_FUNCTION uint64_t serve(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static int listening(const char *family)
{
	bool local = !strcmp(family, "unix");
	if (local) {
		address.local.sun_family = AF_UNIX;
		snprintf(address.local.sun_path + 1, sizeof address.local.sun_path - 1,
			"longpole-target-%d", (int)getpid());
		nr_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				       strlen(address.local.sun_path + 1));
	} else {
		address.ipv4 = (struct sockaddr_in){.sin_family = AF_INET};
		if (strcmp(family, "tcp_any") != 0)
			address.ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		nr_bytes = sizeof address.ipv4;
	}
	int fd = socket(
		address.any.sa_family, SOCK_STREAM | (strcmp(by, "accept") ? SOCK_NONBLOCK : 0), 0);
	target_must(fd >= 0 && !bind(fd, &address.any, nr_bytes) && !listen(fd, 16), "listen");
	if (!local) {
		target_must(!getsockname(fd, &address.any, &nr_bytes), "getsockname");
		address.ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	return fd;
}

static uint64_t run_client(void)
{
	uint64_t sum = 1;
	for (uint64_t i = 0; i < CONNECTIONS; i++) {
		sum = prepare(sum, target_vary(1, i, PREPARE_UNITS) * percent / 100);
		int fd = socket(address.any.sa_family, SOCK_STREAM, 0);
		target_must(fd >= 0 && !connect(fd, &address.any, nr_bytes), "connect");
		close(fd);
	}
	return sum;
}

static void await(int fd, int epoll)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct epoll_event event;
	if (!strcmp(by, "poll"))
		target_must(poll(&p, 1, -1) == 1, "poll");
	else if (!strcmp(by, "epoll"))
		target_must(epoll_wait(epoll, &event, 1, -1) == 1, "epoll_wait");
}

static uint64_t run_server(int fd)
{
	uint64_t sum = 1;
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	int epoll = epoll_create1(0);
	target_must(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
	for (uint64_t i = 0; i < CONNECTIONS; i++) {
		await(fd, epoll);
		int served = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		target_must(served >= 0, "accept4");
		sum = serve(sum, target_vary(2, i, SERVE_UNITS));
		close(served);
	}
	return sum;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --family --by");
	by = target_text(argc, argv, "--by", "accept");
	percent = target_percent(argc, argv);
	int fd = listening(target_text(argc, argv, "--family", "unix"));
	pid_t child = fork();
	target_must(child >= 0, "fork");
	if (!child) {
		close(fd);
		_exit(run_client() == 0);
	}
	target_print(run_server(fd));
	target_must(waitpid(child, NULL, 0) == child, "waitpid");
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoll_same - a thread works and writes a byte into one of PIPES pipes, that main waits for by
 * epoll; main has said the same datum of all of them. With --pipes=reused others were watched so
 * before, and are closed; with --register=unseen libc is not called for it. Nothing comes from the
 * pipe that was watched last, but at the end. Known answer: main's wait is the thread's `make`.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target.h"

enum { PIPES = 3, BYTES = 60, MAKE_UNITS = 5000, USE_UNITS = 300 };

static int pipes[PIPES][2];
static uint64_t percent, made;
static bool is_unseen;

TARGET_FUNCTION uint64_t make(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

TARGET_FUNCTION uint64_t use(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static void *run_maker(void *unused)
{
	uint64_t sum = 1;
	for (uint64_t i = 0; i < BYTES; i++) {
		sum = make(sum, target_vary(1, i, MAKE_UNITS) * percent / 100);
		target_must(write(pipes[i % (PIPES - 1)][1], "", 1) == 1, "write");
	}
	target_must(write(pipes[PIPES - 1][1], "", 1) == 1, "write");
	made = sum;
	return unused;
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0};
	target_must(!(is_unseen ? syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, &event)
				: epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)),
		"epoll_ctl");
}

static void open_pipes(int epoll)
{
	for (int i = 0; i < PIPES; i++) {
		target_must(!pipe2(pipes[i], O_NONBLOCK), "pipe2");
		watch(epoll, pipes[i][0]);
	}
}

static uint64_t take(int epoll)
{
	struct epoll_event event;
	uint64_t sum = 1;
	for (int left = BYTES + 1; left;) {
		char byte;
		target_must(epoll_wait(epoll, &event, 1, -1) == 1, "epoll_wait");
		for (int i = 0; i < PIPES; i++)
			while (read(pipes[i][0], &byte, 1) == 1) {
				sum = use(sum, USE_UNITS);
				left--;
			}
	}
	return sum;
}

int main(int argc, char **argv)
{
	pthread_t maker;
	int epoll = epoll_create1(0);
	target_check(argc, argv, "--section-percent --pipes --register");
	is_unseen = !strcmp(target_text(argc, argv, "--register", "seen"), "unseen");
	percent = target_percent(argc, argv);
	if (!strcmp(target_text(argc, argv, "--pipes", "new"), "reused")) {
		open_pipes(epoll);
		for (int i = 0; i < PIPES; i++) {
			close(pipes[i][0]);
			close(pipes[i][1]);
		}
	}
	open_pipes(epoll);
	target_must(!pthread_create(&maker, NULL, run_maker, NULL), "pthread_create");
	uint64_t sum = take(epoll);
	target_must(!pthread_join(maker, NULL), "pthread_join");
	target_print(sum ^ made);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover - the waiter asks `worker`, another process, for 1 ms of work and waits until it is
 * told, 200 times, over --channel=
 *   futex    words in shared memory
 *   eventfd  two counters; raw reads and writes
 *   epoll    the same, and the waiter waits for readiness
 *   socket   a pair of stream sockets
 *   tcp      a connection over the loopback device: what wakes is a softirq, in the sender's name
 *   child    a new child process each time, whose end is waited for
 * Known answer: the path is the worker's work, whatever the channel; the waiter's waits weigh
 * nothing.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "roles.h"

static const char *channel;
static struct role_ask all;
static uint32_t *word;                            /* [0]: asked, [1]: told */
static int ask[2] = {-1, -1}, tell[2] = {-1, -1}; /* [0]: to read from, [1]: to write to */

static bool over(const char *name)
{
	return !strcmp(channel, name);
}

static void give(const int end[2], uint32_t i, unsigned which)
{
	if (over("futex"))
		role_futex_set(&word[which], i);
	else
		role_give(end[1]);
}

static void await(const int end[2], uint32_t i, unsigned which)
{
	if (over("futex"))
		role_futex_wait(&word[which], i - 1);
	else
		role_take(end[0]);
}

static void run_worker(void)
{
	for (uint32_t i = 1; i <= all.rounds; i++) {
		await(ask, i, 0);
		role_work(all.work_us);
		give(tell, i, 1);
	}
}

static void run_child(void)
{
	role_work(all.work_us);
}

static void make_channel(void)
{
	int pair[2];
	word = role_shared(2 * sizeof(*word));
	if (over("eventfd") || over("epoll")) {
		ask[0] = ask[1] = eventfd(0, 0);
		tell[0] = tell[1] = eventfd(0, 0);
	} else if (over("socket")) {
		target_must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
		ask[1] = tell[0] = pair[0];
		ask[0] = tell[1] = pair[1];
	} else if (over("tcp")) {
		role_tcp_pair(pair);
		ask[1] = tell[0] = pair[0];
		ask[0] = tell[1] = pair[1];
	}
}

static void wait_ready(int set)
{
	struct epoll_event e;
	target_must(syscall(SYS_epoll_pwait, set, &e, 1, -1, NULL, 0) == 1, "epoll_wait");
}

static void ask_worker(void)
{
	pid_t worker = role_process("worker", run_worker);
	int set = -1;
	if (over("epoll")) {
		struct epoll_event e = {.events = EPOLLIN};
		set = epoll_create1(0);
		target_must(!epoll_ctl(set, EPOLL_CTL_ADD, tell[0], &e), "epoll_ctl");
	}
	for (uint32_t i = 1; i <= all.rounds; i++) {
		give(ask, i, 0);
		if (set >= 0)
			wait_ready(set);
		await(tell, i, 1);
	}
	role_reap(worker);
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--channel --rounds --work-us");
	channel = target_text(argc, argv, "--channel", "futex");
	all = role_waiter(argc, argv);
	make_channel();
	if (!over("child")) {
		ask_worker();
		return 0;
	}
	for (uint64_t i = 0; i < all.rounds; i++)
		role_reap(role_process("worker", run_child));
	return 0;
}

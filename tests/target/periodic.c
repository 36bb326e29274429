/* SPDX-License-Identifier: Apache-2.0 */
/*
 * periodic.c [HOW [PART_MS]] - a control loop of PERIODS times 20 ms, in each of which 8 ms
 * (PART_MS) go by in part(). These are slept, not computed: a busy machine does not make them more.
 * Without them the loop takes as long as with them. HOW the end of a period is waited for:
 * `deadline` (default), `rest` (as C++'s sleep_until()), `read`, `poll`, `epoll` of a timerfd.
 */
#include "target.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { PERIODS = 40, PERIOD_NS = 20000000, PART_MS = 8, MS_NS = 1000000, SECOND_NS = 1000000000 };

TARGET_FUNCTION void part(long ms)
{
	if (ms)
		nanosleep(&(struct timespec){.tv_nsec = ms * MS_NS}, NULL);
	__asm__ volatile(""); /* no tail call: its caller is asked for */
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};
}

static void until(uint64_t next_ns)
{
	struct timespec t = time_of(next_ns);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void rest(uint64_t next_ns)
{
	uint64_t now = now_ns();
	struct timespec t = time_of(next_ns - now);
	if (now < next_ns)
		nanosleep(&t, NULL);
}

static int make_timer(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec every = {{0, PERIOD_NS}, {0, PERIOD_NS}};
	if (fd < 0 || timerfd_settime(fd, 0, &every, NULL) != 0) {
		perror("periodic: timerfd");
		exit(1);
	}
	return fd;
}

static void expiry(int timer, int epoll, const char *how)
{
	uint64_t nr;
	if (!strcmp(how, "poll"))
		poll(&(struct pollfd){.fd = timer, .events = POLLIN}, 1, -1);
	else if (!strcmp(how, "epoll"))
		epoll_wait(epoll, &(struct epoll_event){0}, 1, -1);
	if (read(timer, &nr, sizeof nr) != sizeof nr)
		exit(1);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "deadline";
	long part_ms = argc > 2 ? strtol(argv[2], NULL, 10) : PART_MS;
	bool by_deadline = !strcmp(how, "deadline"), by_rest = !strcmp(how, "rest");
	int timer = by_deadline || by_rest ? -1 : make_timer(), epoll = epoll_create1(0);
	if (timer >= 0)
		epoll_ctl(epoll, EPOLL_CTL_ADD, timer,
			&(struct epoll_event){.events = EPOLLIN, .data.fd = timer});
	uint64_t begin = now_ns();
	for (unsigned i = 1; i <= PERIODS; i++) {
		part(part_ms);
		if (by_deadline)
			until(begin + (uint64_t)i * PERIOD_NS);
		else if (by_rest)
			rest(begin + (uint64_t)i * PERIOD_NS);
		else
			expiry(timer, epoll, how);
	}
	return 0;
}

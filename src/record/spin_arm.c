/* SPDX-License-Identifier: Apache-2.0 */
/* spin_arm.c - a signal to a thread after so much of its own time. */
#include "record/spin_arm.h"

#include "record/spin_tasks.h"
#include "record/yield.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool blocks_signal(pid_t pid, pid_t tid)
{
	static const char key[] = "\nSigBlk:";
	char path[64], text[4096];
	snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	const char *line = strstr(text, key);
	/* (one that has ended cannot be armed, either) */
	return line && (strtoull(line + sizeof key - 1, NULL, 16) >> (YIELD_SIGNAL - 1) & 1);
}

static int open_clock(const struct record_spin_arms *a, pid_t tid)
{
	struct perf_event_attr attr = {.size = sizeof attr,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = a->period_ns,
		.wakeup_events = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = 1,
		.remove_on_exec = 1};
	long fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && (errno == EINVAL || errno == E2BIG)) { /* before Linux 5.13 */
		attr.remove_on_exec = 0;
		fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return (int)fd;
}

/* 0, or errno. */
static int arm(struct record_spin_arms *a, pid_t tid)
{
	int fd = open_clock(a, tid);
	const struct f_owner_ex owner = {F_OWNER_TID, tid};
	if (fd < 0)
		return errno;
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETOWN_EX, &owner) || fcntl(fd, F_SETSIG, YIELD_SIGNAL) ||
		fcntl(fd, F_SETFL, flags | O_ASYNC) ||
		(a->on && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))) {
		int why = errno;
		close(fd);
		return why;
	}
	a->thread[a->nr].tid = tid;
	a->thread[a->nr++].fd = fd;
	a->nr_most = a->nr > a->nr_most ? a->nr : a->nr_most;
	return 0;
}

static void forget_ended(struct record_spin_arms *a)
{
	for (size_t i = a->nr; i--;) {
		struct pollfd p = {.fd = a->thread[i].fd, .events = POLLIN};
		if (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLHUP | POLLERR)))
			continue;
		close(p.fd);
		a->thread[i] = a->thread[--a->nr];
	}
}

static bool is_armed(const struct record_spin_arms *a, pid_t tid)
{
	for (size_t i = 0; i < a->nr; i++)
		if (a->thread[i].tid == tid)
			return true;
	return false;
}

void record_spin_arms_scan(struct record_spin_arms *a, pid_t *task)
{
	forget_ended(a);
	size_t before = a->nr_blocked_now;
	a->nr_blocked_now = a->nr_refused = 0;
	size_t nr = record_spin_list_tasks(a->pid, task);
	for (size_t i = 0; i < nr; i++) {
		if (is_armed(a, task[i]))
			continue;
		if (blocks_signal(a->pid, task[i])) {
			a->nr_blocked_now++;
			continue;
		}
		int why = a->nr < RECORD_SPIN_ARMED_MAX ? arm(a, task[i]) : EMFILE;
		if (why && why != ESRCH) {
			a->nr_refused++;
			a->why = why;
		}
	}
	/* (threads that begin or end block all signals for a moment) */
	a->nr_blocked = a->nr_blocked_now < before ? a->nr_blocked_now : before;
}

void record_spin_arms_turn(struct record_spin_arms *a, bool on)
{
	if (a->on == on)
		return;
	a->on = on;
	for (size_t i = 0; i < a->nr; i++)
		ioctl(a->thread[i].fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

void record_spin_arms_set_period(struct record_spin_arms *a, uint64_t period_ns)
{
	if (a->period_ns == period_ns)
		return;
	a->period_ns = period_ns;
	for (size_t i = 0; i < a->nr; i++)
		ioctl(a->thread[i].fd, PERF_EVENT_IOC_PERIOD, &period_ns);
}

void record_spin_arms_close(struct record_spin_arms *a)
{
	while (a->nr)
		close(a->thread[--a->nr].fd);
}

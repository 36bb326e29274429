/* SPDX-License-Identifier: Apache-2.0 */
/* arm.c - a signal to a thread after so much of its own time, or at a place. */
#include "spin/arm.h"
#include "os/proc.h"

#include "spin/tasks.h"
#include "ring/yield.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool blocks_signal(pid_t pid, pid_t tid)
{
	char text[4096];
	uint64_t blocked;
	/* (one that has ended cannot be armed, either) */
	return os_proc_read_task(pid, tid, "status", text, sizeof text) > 0 &&
	       os_parse_field(text, "SigBlk", 16, &blocked) && (blocked >> (YIELD_SIGNAL - 1) & 1);
}

/* A descriptor, or -errno. */
static int arm(const struct spin_arms *a, pid_t tid, struct perf_event_attr attr)
{
	const struct f_owner_ex owner = {F_OWNER_TID, tid};
	attr.size = sizeof attr;
	attr.wakeup_events = 1;
	attr.exclude_kernel = attr.exclude_hv = attr.disabled = attr.remove_on_exec = 1;
	long got = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (got < 0 && (errno == EINVAL || errno == E2BIG)) { /* before Linux 5.13 */
		attr.remove_on_exec = 0;
		got = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (got < 0)
		return -errno;
	int fd = (int)got, flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && !fcntl(fd, F_SETOWN_EX, &owner) && !fcntl(fd, F_SETSIG, YIELD_SIGNAL) &&
		!fcntl(fd, F_SETFL, flags | O_ASYNC) &&
		(!a->on || !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)))
		return fd;
	int why = errno;
	close(fd);
	return -why;
}

static int arm_clock(const struct spin_arms *a, pid_t tid)
{
	return arm(a, tid,
		(struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_TASK_CLOCK,
			.sample_period = a->period_ns});
}

static int arm_place(const struct spin_arms *a, pid_t tid, uint64_t address)
{
	return arm(a, tid,
		(struct perf_event_attr){.type = PERF_TYPE_BREAKPOINT,
			.bp_type = HW_BREAKPOINT_X,
			.bp_addr = address,
			.bp_len = sizeof(long),
			.sample_period = SPIN_PLACE_TIMES});
}

/* 0, or errno. */
static int arm_thread(struct spin_arms *a, pid_t tid)
{
	int fd = arm_clock(a, tid);
	if (fd < 0)
		return -fd;
	a->thread[a->nr].tid = tid;
	a->thread[a->nr].fd = fd;
	for (size_t k = 0; k < SPIN_PLACES_MAX; k++) {
		uint64_t address = a->place[k].address;
		int place_fd = address ? arm_place(a, tid, address) : -1;
		a->nr_places_refused += address && place_fd < 0 && place_fd != -ESRCH;
		a->thread[a->nr].place_fd[k] = place_fd;
	}
	a->nr++;
	a->nr_most = a->nr > a->nr_most ? a->nr : a->nr_most;
	return 0;
}

static uint64_t times_of(int fd)
{
	uint64_t n = 0;
	return fd >= 0 && read(fd, &n, sizeof n) == sizeof n ? n : 0;
}

static void close_place(struct spin_arms *a, size_t thread, size_t place)
{
	int *fd = &a->thread[thread].place_fd[place];
	a->place[place].times += times_of(*fd);
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_thread(struct spin_arms *a, size_t thread)
{
	for (size_t k = 0; k < SPIN_PLACES_MAX; k++)
		close_place(a, thread, k);
	close(a->thread[thread].fd);
	a->thread[thread] = a->thread[--a->nr];
}

static bool is_armed(const struct spin_arms *a, pid_t tid)
{
	for (size_t i = 0; i < a->nr; i++)
		if (a->thread[i].tid == tid)
			return true;
	return false;
}

/* Events do not tell: those without a buffer are always said to have hung up. */
static void forget_ended(struct spin_arms *a, const pid_t *task, size_t nr)
{
	for (size_t i = a->nr; i--;) {
		size_t k = 0;
		while (k < nr && task[k] != a->thread[i].tid)
			k++;
		if (k == nr)
			close_thread(a, i);
	}
}

void spin_arms_scan(struct spin_arms *a, pid_t *task)
{
	size_t before = a->nr_blocked_now;
	a->nr_blocked_now = a->nr_refused = 0;
	size_t nr = spin_list_tasks(a->pid, task);
	forget_ended(a, task, nr);
	for (size_t i = 0; i < nr; i++) {
		if (is_armed(a, task[i]))
			continue;
		if (blocks_signal(a->pid, task[i])) {
			a->nr_blocked_now++;
			continue;
		}
		int why = a->nr < SPIN_ARMED_MAX ? arm_thread(a, task[i]) : EMFILE;
		if (why && why != ESRCH) {
			a->nr_refused++;
			a->why = why;
		}
	}
	/* (threads that begin or end block all signals for a moment) */
	a->nr_blocked = a->nr_blocked_now < before ? a->nr_blocked_now : before;
}

void spin_arms_turn(struct spin_arms *a, bool on)
{
	unsigned long order = on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	if (a->on == on)
		return;
	a->on = on;
	for (size_t i = 0; i < a->nr; i++) {
		ioctl(a->thread[i].fd, order, 0);
		for (size_t k = 0; k < SPIN_PLACES_MAX; k++)
			if (a->thread[i].place_fd[k] >= 0)
				ioctl(a->thread[i].place_fd[k], order, 0);
	}
}

void spin_arms_set_period(struct spin_arms *a, uint64_t period_ns)
{
	if (a->period_ns == period_ns)
		return;
	a->period_ns = period_ns;
	for (size_t i = 0; i < a->nr; i++)
		ioctl(a->thread[i].fd, PERF_EVENT_IOC_PERIOD, &period_ns);
}

int spin_arms_add_place(struct spin_arms *a, uint64_t address)
{
	unsigned place = 0;
	size_t nr = 0;
	while (place < SPIN_PLACES_MAX && a->place[place].address)
		place++;
	if (place == SPIN_PLACES_MAX)
		return -1;
	for (size_t i = 0; i < a->nr; i++) {
		int fd = arm_place(a, a->thread[i].tid, address);
		a->thread[i].place_fd[place] = fd;
		a->nr_places_refused += fd < 0 && fd != -ESRCH;
		nr += fd >= 0;
	}
	if (!nr)
		return -1;
	a->place[place].address = address;
	a->place[place].times = 0;
	return (int)place;
}

void spin_arms_drop_place(struct spin_arms *a, unsigned place)
{
	for (size_t i = 0; i < a->nr; i++)
		close_place(a, i, place);
	a->place[place].address = 0;
}

uint64_t spin_arms_times(const struct spin_arms *a, unsigned place)
{
	uint64_t times = a->place[place].times;
	for (size_t i = 0; i < a->nr; i++)
		times += times_of(a->thread[i].place_fd[place]);
	return times;
}

void spin_arms_close(struct spin_arms *a)
{
	while (a->nr)
		close_thread(a, a->nr - 1);
	for (size_t k = 0; k < SPIN_PLACES_MAX; k++)
		a->place[k].address = 0;
}

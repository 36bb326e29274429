/* SPDX-License-Identifier: Apache-2.0 */
/* cycles.c - cycles and instructions of a process. */
#include "spin/cycles.h"

#include "base/base.h"
#include "spin/tasks.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct spin_event spin_ipc_events[SPIN_EVENTS] = {
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
};

static int cycles_open_one(pid_t tid, const struct spin_event *event)
{
	struct perf_event_attr attr = {.size = sizeof attr,
		.type = event->type,
		.config = event->config,
		.inherit = 1,
		.exclude_kernel = event->type == PERF_TYPE_HARDWARE,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING};
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

bool spin_cycles_open(struct spin_cycles *c, pid_t pid, const struct spin_event event[SPIN_EVENTS])
{
	pid_t *task = base_alloc(SPIN_TASKS_MAX * sizeof *task);
	size_t nr = task ? spin_list_tasks(pid, task) : 0;
	c->nr = 0;
	for (size_t i = 0; i < nr && i < SPIN_EVENT_THREADS; i++) {
		bool good = true;
		for (size_t k = 0; k < SPIN_EVENTS; k++) {
			c->fd[c->nr][k] = cycles_open_one(task[i], &event[k]);
			good &= c->fd[c->nr][k] >= 0;
		}
		c->nr++;
		if (good)
			continue;
		spin_cycles_close(c);
		break;
	}
	base_free(task);
	return c->nr > 0;
}

bool spin_cycles_read(const struct spin_cycles *c, uint64_t ret[SPIN_EVENTS])
{
	bool good = c->nr > 0;
	for (size_t k = 0; k < SPIN_EVENTS; k++) {
		bool counted = false;
		ret[k] = 0;
		for (size_t i = 0; i < c->nr; i++) {
			uint64_t v[3]; /* value, enabled, running */
			if (read(c->fd[i][k], v, sizeof v) != (ssize_t)sizeof v || !v[2])
				continue; /* (a thread that did not run) */
			counted = true;
			ret[k] += v[1] > v[2]
					  ? (uint64_t)((double)v[0] * (double)v[1] / (double)v[2])
					  : v[0];
		}
		good &= counted;
	}
	return good;
}

void spin_cycles_close(struct spin_cycles *c)
{
	for (size_t i = 0; i < c->nr; i++)
		for (size_t k = 0; k < SPIN_EVENTS; k++)
			if (c->fd[i][k] >= 0)
				close(c->fd[i][k]);
	c->nr = 0;
}

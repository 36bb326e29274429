/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - events of the processor, for a thread that is stopped. */
#include "counter/counter_priv.h"
#include "stat/stat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int stat_event_open(uint32_t type, uint64_t config, pid_t tid, bool *ret_user_only)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof attr,
		.config = config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	long fd = counter_perf_event_open(&attr, tid);
	*ret_user_only = false;
	if (fd < 0 && (errno == EACCES || errno == EPERM)) {
		attr.exclude_kernel = 1;
		fd = counter_perf_event_open(&attr, tid);
		*ret_user_only = fd >= 0;
	}
	return (int)fd;
}

static void say_why(char why[STAT_WHY], int sys_errno)
{
	bool unknown = sys_errno == ENOENT || sys_errno == EOPNOTSUPP || sys_errno == EINVAL ||
		       sys_errno == ENODEV;
	snprintf(why, STAT_WHY, "perf_event_open: %s%s", strerror(sys_errno),
		unknown ? " (no PMU here, as in most virtual machines, or it has no such event)"
			: "");
}

void stat_events_open(const struct stat_options *options, struct stat_result *s, pid_t tid,
	int fd[STAT_EVENTS_MAX])
{
	for (size_t i = 0; i < STAT_EVENTS_MAX; i++)
		fd[i] = -1;
	for (size_t i = 0; i < options->nr_events; i++) {
		const struct counter_event *event =
			counter_event_of((enum longpole_event)options->event[i]);
		if (!event || *s->no_event_why[i])
			continue; /* refused once: for all */
		fd[i] = stat_event_open(event->type, event->config, tid, &s->event_user_only[i]);
		if (fd[i] < 0)
			say_why(s->no_event_why[i], errno);
	}
}

/* A share of the time is no count: it is left out. */
bool stat_event_read(int fd, uint64_t *ret)
{
	uint64_t got[3];
	if (read(fd, got, sizeof got) != (ssize_t)sizeof got || got[2] < got[1])
		return false;
	*ret = got[0];
	return true;
}

void stat_events_end(struct stat_thread *t, struct stat_counts *ret, int fd[STAT_EVENTS_MAX])
{
	for (size_t i = 0; i < STAT_EVENTS_MAX; i++) {
		if (fd[i] < 0)
			continue;
		if (stat_event_read(fd[i], &ret->event[i]))
			t->counted |= 1u << i;
		close(fd[i]);
		fd[i] = -1;
	}
}

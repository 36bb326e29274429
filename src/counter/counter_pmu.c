/* SPDX-License-Identifier: Apache-2.0 */
/* counter_pmu.c - the processor's event counters, through perf_event. */
#include "counter/counter_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, SHARE_SLACK = 1000 };

long counter_perf_event_open(const struct perf_event_attr *attr, int32_t pid)
{
	return syscall(SYS_perf_event_open, attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

const volatile struct perf_event_mmap_page *counter_page_map(int fd)
{
	void *page = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	return page == MAP_FAILED ? NULL : page;
}

void counter_page_unmap(const volatile struct perf_event_mmap_page *page)
{
	munmap((void *)(uintptr_t)page, PAGE_BYTES);
}

/* The perf type of one kind of core; 0: no such kind. */
static uint64_t core_type(const char *kind)
{
	char path[80], text[16];
	uint64_t type = 0;
	snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/type", kind);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		type = type * 10 + (uint64_t)(text[i] - '0');
	return type;
}

static int counter_pmu_open_event(struct longpole_counted *e, struct perf_event_attr *attr)
{
	long fd = counter_perf_event_open(attr, 0);
	if (fd < 0 && (errno == EACCES || errno == EPERM) && !attr->exclude_kernel &&
		!attr->exclude_user) {
		attr->exclude_kernel = 1;
		fd = counter_perf_event_open(attr, 0);
		e->user_only = fd >= 0;
	}
	return (int)fd;
}

static void counter_pmu_refuse(struct longpole_counted *e, enum longpole_backend backend,
	enum counter_reason reason, int sys_errno)
{
	e->refused[backend] = (uint8_t)reason;
	e->refused_errno[backend] = (int16_t)sys_errno;
}

/* A processor with two kinds of cores has two PMUs: an event on each, and their sum. */
static bool counter_pmu_open_events(struct longpole_counted *e, const struct counter_event *event,
	uint32_t flags, bool *ret_hybrid)
{
	struct perf_event_attr attr = {
		.type = event->type,
		.size = sizeof attr,
		.config = event->config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.pinned = !(flags & LONGPOLE_COUNTER_SCALE),
		.exclude_kernel = !!(flags & LONGPOLE_COUNTER_USER),
		.exclude_user = !!(flags & LONGPOLE_COUNTER_KERNEL),
	};
	const uint64_t type[2] = {core_type("cpu_core"), core_type("cpu_atom")};
	*ret_hybrid = type[0] && type[1];
	if (!*ret_hybrid) {
		e->fd[0] = counter_pmu_open_event(e, &attr);
		return e->fd[0] >= 0;
	}
	for (int i = 0; i < 2; i++) {
		attr.config = event->config | type[i] << 32;
		e->fd[i] = counter_pmu_open_event(e, &attr);
		if (e->fd[i] < 0)
			return false;
	}
	return true;
}

bool counter_pmu_open(struct longpole_counted *e, const struct counter_event *event,
	uint32_t backends, uint32_t flags)
{
	bool hybrid;
	e->fd[0] = e->fd[1] = -1;
	if (!counter_pmu_open_events(e, event, flags, &hybrid)) {
		int why = errno;
		enum counter_reason reason = why == EACCES || why == EPERM || why == EMFILE
						     ? COUNTER_REASON_perf
						     : COUNTER_REASON_no_pmu;
		counter_pmu_refuse(e, LONGPOLE_BACKEND_PMU, reason, why);
		counter_pmu_refuse(e, LONGPOLE_BACKEND_SYSCALL, reason, why);
		counter_pmu_close(e, false);
		return false;
	}
	if (hybrid) {
		counter_pmu_refuse(e, LONGPOLE_BACKEND_PMU, COUNTER_REASON_hybrid, 0);
	} else if (flags & LONGPOLE_COUNTER_SCALE) {
		counter_pmu_refuse(e, LONGPOLE_BACKEND_PMU, COUNTER_REASON_scale, 0);
	} else if (backends & 1u << LONGPOLE_BACKEND_PMU) {
		e->page = counter_page_map(e->fd[0]);
		if (LONGPOLE_HAS_RDPMC && e->page && e->page->cap_user_rdpmc && e->page->index) {
			e->backend = LONGPOLE_BACKEND_PMU;
			return true;
		}
		counter_pmu_refuse(e, LONGPOLE_BACKEND_PMU,
			e->page ? COUNTER_REASON_no_rdpmc : COUNTER_REASON_page_map,
			e->page ? 0 : errno);
		if (e->page)
			counter_page_unmap(e->page);
		e->page = NULL;
	}
	if (backends & 1u << LONGPOLE_BACKEND_SYSCALL) {
		e->backend = LONGPOLE_BACKEND_SYSCALL;
		return true;
	}
	counter_pmu_close(e, false);
	return false;
}

/* In a fork's child the page is not mapped, and something else may be there. */
void counter_pmu_close(struct longpole_counted *e, bool forked)
{
	if (e->page && !forked)
		counter_page_unmap(e->page);
	e->page = NULL;
	for (int i = 0; i < 2; i++) {
		if (e->fd[i] >= 0)
			close(e->fd[i]);
		e->fd[i] = -1;
	}
}

/* Not all the time on a counter: an error, unless estimates were asked for. A pinned event that
 * lost its counter reads as end of file. */
int counter_pmu_ask(struct longpole_counted *e, uint32_t flags, uint64_t *value)
{
	uint64_t count = 0, enabled = 0, running = 0;
	for (int i = 0; i < 2 && e->fd[i] >= 0; i++) {
		uint64_t got[3];
		long n = syscall(SYS_read, e->fd[i], got, sizeof got);
		if (n != (long)sizeof got)
			return n ? LONGPOLE_COUNTER_SYSTEM : LONGPOLE_COUNTER_MULTIPLEXED;
		count += got[0];
		enabled = got[1] > enabled ? got[1] : enabled;
		running += got[2];
	}
	/* two clocks for two kinds of cores: a thousandth is no loss */
	bool whole =
		e->fd[1] >= 0 ? running + enabled / SHARE_SLACK >= enabled : running >= enabled;
	if (!whole) {
		if (!(flags & LONGPOLE_COUNTER_SCALE) || !running)
			return LONGPOLE_COUNTER_MULTIPLEXED;
		count = (uint64_t)((unsigned __int128)count * enabled / running);
		e->scaled = 1;
	}
	*value = count;
	return LONGPOLE_COUNTER_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - what the kernel says under /proc, as numbers. The parsers trust no text. */
#include "deadlock/facts/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- threads --------------------------------------------------------------------------------- */

bool deadlock_parse_syscall(const char *text, struct deadlock_syscall *ret)
{
	const char *p = text;
	uint64_t n;
	*ret = (struct deadlock_syscall){.call = -1};
	if (!strncmp(text, "running", 7)) {
		ret->is_running = true;
		return true;
	}
	if (!os_take_number(&p, 10, &n))
		return false;
	if ((int64_t)n < 0) { /* "-1 sp pc" */
		ret->is_none = true;
		return os_take_number(&p, 16, &ret->sp) && os_take_number(&p, 16, &ret->pc);
	}
	ret->call = (int64_t)n;
	for (size_t i = 0; i < BASE_COUNT(ret->arg); i++) {
		if (!os_take_number(&p, 16, &ret->arg[i]))
			return false;
	}
	return os_take_number(&p, 16, &ret->sp) && os_take_number(&p, 16, &ret->pc);
}

/* "time-on-processor time-waiting times-put-on": the third never changes while a thread sleeps. */
bool deadlock_parse_schedstat(const char *text, uint64_t *ret_runs)
{
	uint64_t unused;
	bool has_times = os_take_number(&text, 10, &unused);
	has_times = has_times && os_take_number(&text, 10, &unused);
	return has_times && os_take_number(&text, 10, ret_runs);
}

bool deadlock_runs_of(pid_t pid, pid_t tid, uint64_t *ret_runs)
{
	char text[96];
	return os_proc_read_task(pid, tid, "schedstat", text, sizeof text) > 0 &&
	       deadlock_parse_schedstat(text, ret_runs);
}

bool deadlock_is_shown(pid_t pid, pid_t *ret)
{
	pid_t tid[8]; /* only a first thread stays in the list when it has ended */
	*ret = pid;
	if (deadlock_task_has_memory(pid))
		return true;
	const size_t nr = os_list_tasks(pid, tid, BASE_COUNT(tid));
	for (size_t i = 0; i < nr; i++)
		if (tid[i] != pid && deadlock_task_has_memory(tid[i])) {
			*ret = tid[i];
			return true;
		}
	return false;
}

pid_t deadlock_shown_as(pid_t pid)
{
	(void)deadlock_is_shown(pid, &pid);
	return pid;
}

pid_t deadlock_process_shown_as(const struct deadlock_process *p)
{
	return p->shown_as ? p->shown_as : p->pid;
}

/* ---- processes ------------------------------------------------------------------------------- */

bool deadlock_parse_status(const char *text, struct deadlock_status *ret)
{
	uint64_t tracer = 0, uid = 0, seccomp = 0;
	*ret = (struct deadlock_status){0};
	if (!os_parse_field(text, "Uid", 10, &uid) ||
		!os_parse_field(text, "SigCgt", 16, &ret->caught))
		return false;
	(void)os_parse_field(text, "TracerPid", 10, &tracer);
	(void)os_parse_field(text, "Seccomp", 10, &seccomp); /* kernels without it */
	ret->tracer = (pid_t)tracer;
	ret->uid = (uid_t)uid;
	ret->seccomp = (unsigned)seccomp;
	return true;
}

bool deadlock_parse_epoll(const char **text, struct deadlock_epoll_item *ret)
{
	const char *line;
	while (*(line = *text)) {
		*text = os_next_line(line);
		uint64_t fd, events, data;
		const char *p = line;
		if (strncmp(p, "tfd:", 4) != 0)
			continue;
		p += 4;
		if (!os_take_number(&p, 10, &fd) || fd > INT32_MAX)
			continue;
		p += strspn(p, " \t");
		if (strncmp(p, "events:", 7) != 0)
			continue;
		p += 7;
		if (!os_take_number(&p, 16, &events))
			continue;
		p += strspn(p, " \t");
		if (strncmp(p, "data:", 5) != 0)
			continue;
		p += 5;
		if (!os_take_number(&p, 16, &data))
			continue;
		*ret = (struct deadlock_epoll_item){
			.fd = (int)fd, .events = (uint32_t)events, .data = data};
		return true;
	}
	return false;
}

/* linux/fs.h of Linux 6.11 */
struct procmap_query {
	uint64_t size, flags, from;                               /* asked */
	uint64_t start, end, vma_flags, page_size, offset, inode; /* told */
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name, build_id;
};
#define PROCMAP_QUERY _IOWR('f', 17, struct procmap_query)
enum { VMA_READABLE = 1, VMA_WRITABLE = 2, VMA_EXECUTABLE = 4, VMA_SHARED = 8, OR_NEXT = 16 };

enum deadlock_shared deadlock_shared_region(int maps_fd, uint64_t from, struct os_region *ret)
{
	struct procmap_query q = {.size = sizeof q, .flags = VMA_SHARED | OR_NEXT, .from = from};
	*ret = (struct os_region){.path = ""};
	if (ioctl(maps_fd, PROCMAP_QUERY, &q) != 0)
		return errno == ENOENT || errno == ESRCH ? DEADLOCK_SHARED_NONE
							 : DEADLOCK_SHARED_REFUSED;
	*ret = (struct os_region){.start = q.start,
		.end = q.end,
		.offset = q.offset,
		.inode = q.inode,
		.device = os_device(q.major, q.minor),
		.readable = q.vma_flags & VMA_READABLE,
		.writable = q.vma_flags & VMA_WRITABLE,
		.executable = q.vma_flags & VMA_EXECUTABLE,
		.shared = q.vma_flags & VMA_SHARED,
		.path = ""};
	return DEADLOCK_SHARED_FOUND;
}

/* 1: [->] FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF */
static bool parse_file_lock(const char *p, struct deadlock_file_lock *l)
{
	uint64_t unused, major, minor;
	if (!os_take_number(&p, 10, &unused) || !os_take_char(&p, ':'))
		return false;
	p += strspn(p, " ");
	if (!strncmp(p, "->", 2)) {
		l->is_blocked = true;
		p += 2;
		p += strspn(p, " ");
	}
	l->is_flock = !strncmp(p, "FLOCK", 5);
	l->is_ofd = !strncmp(p, "OFDLCK", 6);
	if (!l->is_flock && !l->is_ofd && strncmp(p, "POSIX", 5) != 0)
		return false;
	for (int word = 0; word < 2; word++) { /* the kind; ADVISORY */
		p += strcspn(p, " \n");
		p += strspn(p, " ");
	}
	l->is_write = !strncmp(p, "WRITE", 5);
	p += strcspn(p, " \n");
	if (!os_take_pid(&p, &l->pid) || !os_take_number(&p, 16, &major) ||
		!os_take_char(&p, ':') || !os_take_number(&p, 16, &minor) ||
		!os_take_char(&p, ':') || !os_take_number(&p, 10, &l->inode) ||
		!os_take_number(&p, 10, &l->start))
		return false;
	l->device = os_device(major, minor);
	if (!os_take_number(&p, 10, &l->end))
		l->end = UINT64_MAX; /* EOF */
	return true;
}

bool deadlock_parse_file_lock(const char **text, struct deadlock_file_lock *ret)
{
	while (**text) {
		const char *line = *text;
		*text = os_next_line(line);
		*ret = (struct deadlock_file_lock){0};
		if (parse_file_lock(line, ret))
			return true;
	}
	return false;
}

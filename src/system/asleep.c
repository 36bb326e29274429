/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asleep.c - in which system call the threads sleep that slept before the recording began.
 *
 * Read once when it begins, from /proc; written as if the call had begun then when such a thread is
 * first heard of, which for most threads of a machine is never.
 */
#include "os/clock.h"
#include "system/convert.h"
#include "system/object.h"
#include "trace/enums.h"
#include "trace/syscalls.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { SLEEPERS_MAX = 1 << 14, ARGUMENTS = 6, LINE_BYTES = 256, FUTEX_NUMBER = 202 };

struct sleeper {
	uint32_t pid, tid;
	uint64_t number, argument[ARGUMENTS];
	uint64_t read_ns; /* CLOCK_MONOTONIC */
};

struct system_asleep {
	struct base_map of_tid; /* (0, tid) -> index */
	struct sleeper *sleeper;
	size_t nr, capacity;
};

/* "202 0x... (six arguments) 0x(stack) 0x(instruction)"; false: it runs, or is in no call. A thread
 * of the kernel's own has no stack. */
static bool read_call(const char *path, struct sleeper *s)
{
	char line[LINE_BYTES];
	uint64_t *a = s->argument, stack;
	int64_t number;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = 0;
	if (sscanf(line,
		    "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		    " %" SCNx64 " %" SCNx64,
		    &number, a, a + 1, a + 2, a + 3, a + 4, a + 5, &stack) != 8)
		return false;
	s->number = (uint64_t)number;
	return number >= 0 && number < TRACE_SYSCALLS_MAX && stack;
}

static void read_threads(struct system_asleep *a, uint32_t pid)
{
	char path[64];
	const struct dirent *e;
	snprintf(path, sizeof path, "/proc/%u/task", pid);
	DIR *dir = opendir(path);
	while (dir && (e = readdir(dir)) && a->nr < SLEEPERS_MAX) {
		struct sleeper s = {.pid = pid, .tid = (uint32_t)strtoul(e->d_name, NULL, 10)};
		if (!s.tid)
			continue;
		snprintf(path, sizeof path, "/proc/%u/task/%u/syscall", pid, s.tid);
		if (!read_call(path, &s))
			continue;
		s.read_ns = os_time_ns(CLOCK_MONOTONIC);
		if (base_grow(&a->sleeper, &a->capacity, a->nr + 1, sizeof s) != BASE_OK ||
			base_map_put(&a->of_tid, 0, s.tid, a->nr) != BASE_OK)
			break; /* what they slept in stays unknown */
		a->sleeper[a->nr++] = s;
	}
	if (dir)
		closedir(dir);
}

void system_asleep_read(struct system_kernel *k)
{
	const struct dirent *e;
	struct system_asleep *a = base_alloc(sizeof *a);
	DIR *dir = a ? opendir("/proc") : NULL;
	k->asleep = a;
	while (dir && (e = readdir(dir))) {
		uint32_t pid = isdigit((unsigned char)*e->d_name)
				       ? (uint32_t)strtoul(e->d_name, NULL, 10)
				       : 0;
		if (pid && pid != k->own_pid)
			read_threads(a, pid);
	}
	if (dir)
		closedir(dir);
}

void system_asleep_close(struct system_kernel *k)
{
	if (!k->asleep)
		return;
	base_map_fini(&k->asleep->of_tid);
	base_free(k->asleep->sleeper);
	base_free(k->asleep);
	k->asleep = NULL;
}

/* As the kernel's side says it. Anonymous inodes cannot be told apart from outside: 0. */
static uint64_t file_word(uint32_t pid, uint64_t fd)
{
	enum { SOCKET = S_IFSOCK >> 12, PIPE = S_IFIFO >> 12, MINOR_BITS = 20 };
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%u/fd/%" PRIu64, pid, fd);
	if (stat(path, &st))
		return 0;
	uint32_t type = (st.st_mode & S_IFMT) >> 12, device = 0;
	if (type != SOCKET && type != PIPE)
		device = major(st.st_dev) << MINOR_BITS | minor(st.st_dev);
	return type ? KERNEL_FILE(st.st_ino, type, device, fd) : 0;
}

static uint64_t argument(const struct sleeper *s, unsigned number)
{
	return number ? s->argument[number - 1] : 0;
}

static uint32_t object_of(struct system_kernel *k, struct system_kernel_task *t,
	const struct sleeper *s, const struct trace_syscall *call)
{
	enum { FUTEX_PRIVATE = 128 };
	uint64_t word = argument(s, call->object);
	if (call->flags & TRACE_SYSCALL_DESC)
		return system_kernel_file(k, t, file_word(s->pid, (uint32_t)word));
	if (call->flags & TRACE_SYSCALL_ADDR)
		return system_kernel_futex(k, t, word,
			s->number == FUTEX_NUMBER && !(argument(s, call->op) & FUTEX_PRIVATE));
	return 0;
}

void system_asleep_put(struct system_kernel *k, struct system_kernel_task *t)
{
	uint64_t at;
	if (!k->asleep || !base_map_get(&k->asleep->of_tid, 0, t->tid, &at))
		return;
	const struct sleeper *s = &k->asleep->sleeper[at];
	const struct trace_syscall *call = trace_syscall_find(s->number);
	/* Heard of before it was looked at: it may have slept in another call until then. */
	bool late = k->event_mono_ns < s->read_ns;
	base_map_remove(&k->asleep->of_tid, 0, t->tid);
	if (late || s->pid != t->pid || call->flags & TRACE_SYSCALL_SKIP)
		return;
	t->call = (struct system_kernel_call){
		.number = s->number, .object = object_of(k, t, s, call), .active = true};
	struct trace_record r = {.time_ns = k->start_ns,
		.kind = TRACE_call_begin,
		.stream = t->stream,
		.u.call_begin = {.number = s->number,
			.object = t->call.object,
			.op = argument(s, call->op) & 0xffff,
			.n = call->flags & TRACE_SYSCALL_TIME ? 0 : argument(s, call->n)}};
	record_sink_put(&k->converter->sink, &r);
	r = (struct trace_record){.time_ns = k->start_ns,
		.kind = TRACE_wait_at,
		.stream = t->stream,
		.u.wait_at.state = TRACE_SLEEP_interruptible};
	record_sink_put(&k->converter->sink, &r);
}

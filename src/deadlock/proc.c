/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - what the kernel says under /proc, as numbers. The parsers trust no text. */
#include "deadlock/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- files ----------------------------------------------------------------------------------- */

static ssize_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t n = 0;
	if (fd < 0)
		return -1;
	while (length < size - 1) {
		n = read(fd, buf + length, size - 1 - length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		length += (size_t)n;
	}
	close(fd);
	buf[length] = 0;
	return n < 0 && !length ? -1 : (ssize_t)length;
}

ssize_t deadlock_proc_read(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[96];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	return read_file(path, buf, size);
}

ssize_t deadlock_proc_read_task(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
	char path[96];
	snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	return read_file(path, buf, size);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* A number at *p, after blanks; moves *p behind it. */
static bool take(const char **p, int base, uint64_t *ret)
{
	char *end;
	while (**p == ' ' || **p == '\t')
		++*p;
	errno = 0;
	*ret = strtoull(*p, &end, base);
	if (end == *p || errno == ERANGE)
		return false;
	*p = end;
	return true;
}

static bool take_pid(const char **p, pid_t *ret)
{
	uint64_t n;
	if (!take(p, 10, &n) || (n > INT32_MAX && n != UINT64_MAX))
		return false;
	*ret = n == UINT64_MAX ? -1 : (pid_t)n; /* "-1" */
	return true;
}

static bool take_char(const char **p, char c)
{
	if (**p != c)
		return false;
	++*p;
	return true;
}

static const char *next_line(const char *p)
{
	p += strcspn(p, "\n");
	return *p ? p + 1 : p;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* pid (name) state parent ... flags is the 9th field, starttime the 22nd. A name may hold anything.
 */
bool deadlock_parse_stat(const char *text, struct deadlock_stat *ret)
{
	enum { FLAGS = 9, START = 22 };
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	*ret = (struct deadlock_stat){0};
	if (!open || !close || close < open || close[1] != ' ' || !close[2])
		return false;
	size_t length = (size_t)(close - open - 1);
	if (length >= sizeof ret->name)
		length = sizeof ret->name - 1;
	memcpy(ret->name, open + 1, length);
	ret->state = close[2];
	const char *p = close + 3;
	if (!take_pid(&p, &ret->parent))
		return false;
	for (int field = 5; field <= START; field++) {
		uint64_t n;
		if (!take(&p, 10, &n))
			return false;
		if (field == FLAGS)
			ret->flags = (unsigned)n;
		if (field == START)
			ret->start_ticks = n;
	}
	return true;
}

bool deadlock_parse_syscall(const char *text, struct deadlock_syscall *ret)
{
	const char *p = text;
	uint64_t n;
	*ret = (struct deadlock_syscall){.call = -1};
	if (!strncmp(text, "running", 7)) {
		ret->is_running = true;
		return true;
	}
	if (!take(&p, 10, &n))
		return false;
	if ((int64_t)n < 0) { /* "-1 sp pc" */
		ret->is_none = true;
		return take(&p, 16, &ret->sp) && take(&p, 16, &ret->pc);
	}
	ret->call = (int64_t)n;
	for (size_t i = 0; i < BASE_COUNT(ret->arg); i++) {
		if (!take(&p, 16, &ret->arg[i]))
			return false;
	}
	return take(&p, 16, &ret->sp) && take(&p, 16, &ret->pc);
}

/* "time-on-processor time-waiting times-put-on": the third never changes while a thread sleeps. */
bool deadlock_parse_schedstat(const char *text, uint64_t *ret_runs)
{
	uint64_t unused;
	bool has_times = take(&text, 10, &unused);
	has_times = has_times && take(&text, 10, &unused);
	return has_times && take(&text, 10, ret_runs);
}

bool deadlock_runs_of(pid_t pid, pid_t tid, uint64_t *ret_runs)
{
	char text[96];
	return deadlock_proc_read_task(pid, tid, "schedstat", text, sizeof text) > 0 &&
	       deadlock_parse_schedstat(text, ret_runs);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Behind "NAME:" at the beginning of a line; NULL: no such line. */
static const char *find_field(const char *text, const char *name)
{
	size_t length = strlen(name);
	for (; *text; text = next_line(text)) {
		if (!strncmp(text, name, length) && text[length] == ':')
			return text + length + 1;
	}
	return NULL;
}

bool deadlock_parse_fdinfo(const char *text, const char *name, int base, uint64_t *ret)
{
	const char *p = find_field(text, name);
	return p && take(&p, base, ret);
}

bool deadlock_parse_status(const char *text, struct deadlock_status *ret)
{
	uint64_t tracer = 0, uid = 0, seccomp = 0;
	*ret = (struct deadlock_status){0};
	if (!deadlock_parse_fdinfo(text, "Uid", 10, &uid) ||
		!deadlock_parse_fdinfo(text, "SigCgt", 16, &ret->caught))
		return false;
	(void)deadlock_parse_fdinfo(text, "TracerPid", 10, &tracer);
	(void)deadlock_parse_fdinfo(text, "Seccomp", 10, &seccomp); /* kernels without it */
	ret->tracer = (pid_t)tracer;
	ret->uid = (uid_t)uid;
	ret->seccomp = (unsigned)seccomp;
	return true;
}

bool deadlock_parse_epoll(const char **text, struct deadlock_epoll_item *ret)
{
	const char *line;
	while (*(line = *text)) {
		*text = next_line(line);
		uint64_t fd, events, data;
		const char *p = line;
		if (strncmp(p, "tfd:", 4) != 0)
			continue;
		p += 4;
		if (!take(&p, 10, &fd) || fd > INT32_MAX)
			continue;
		p += strspn(p, " \t");
		if (strncmp(p, "events:", 7) != 0)
			continue;
		p += 7;
		if (!take(&p, 16, &events))
			continue;
		p += strspn(p, " \t");
		if (strncmp(p, "data:", 5) != 0)
			continue;
		p += 5;
		if (!take(&p, 16, &data))
			continue;
		*ret = (struct deadlock_epoll_item){
			.fd = (int)fd, .events = (uint32_t)events, .data = data};
		return true;
	}
	return false;
}

static uint64_t device_of(uint64_t major, uint64_t minor)
{
	return major << 20 | (minor & 0xfffff);
}

/* start-end rwxp offset major:minor inode path */
static bool parse_region(const char *p, struct deadlock_region *r)
{
	uint64_t major, minor;
	if (!take(&p, 16, &r->start) || !take_char(&p, '-') || !take(&p, 16, &r->end) ||
		r->end <= r->start || !take_char(&p, ' ') || strcspn(p, " \n") != 4)
		return false;
	r->readable = p[0] == 'r';
	r->writable = p[1] == 'w';
	r->executable = p[2] == 'x';
	r->shared = p[3] == 's';
	p += 4;
	if (!take(&p, 16, &r->offset) || !take(&p, 16, &major) || !take_char(&p, ':') ||
		!take(&p, 16, &minor) || !take(&p, 10, &r->inode))
		return false;
	r->device = device_of(major, minor);
	p += strspn(p, " \t");
	r->path = p;
	r->path_length = strcspn(p, "\n");
	return true;
}

bool deadlock_parse_region(const char **text, struct deadlock_region *ret)
{
	*ret = (struct deadlock_region){.path = ""};
	if (!**text || !parse_region(*text, ret))
		return false;
	*text = next_line(*text);
	return true;
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

enum deadlock_shared deadlock_shared_region(int maps_fd, uint64_t from, struct deadlock_region *ret)
{
	struct procmap_query q = {.size = sizeof q, .flags = VMA_SHARED | OR_NEXT, .from = from};
	*ret = (struct deadlock_region){.path = ""};
	if (ioctl(maps_fd, PROCMAP_QUERY, &q) != 0)
		return errno == ENOENT || errno == ESRCH ? DEADLOCK_SHARED_NONE
							 : DEADLOCK_SHARED_REFUSED;
	*ret = (struct deadlock_region){.start = q.start,
		.end = q.end,
		.offset = q.offset,
		.inode = q.inode,
		.device = device_of(q.major, q.minor),
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
	if (!take(&p, 10, &unused) || !take_char(&p, ':'))
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
	if (!take_pid(&p, &l->pid) || !take(&p, 16, &major) || !take_char(&p, ':') ||
		!take(&p, 16, &minor) || !take_char(&p, ':') || !take(&p, 10, &l->inode) ||
		!take(&p, 10, &l->start))
		return false;
	l->device = device_of(major, minor);
	if (!take(&p, 10, &l->end))
		l->end = UINT64_MAX; /* EOF */
	return true;
}

bool deadlock_parse_file_lock(const char **text, struct deadlock_file_lock *ret)
{
	while (**text) {
		const char *line = *text;
		*text = next_line(line);
		*ret = (struct deadlock_file_lock){0};
		if (parse_file_lock(line, ret))
			return true;
	}
	return false;
}

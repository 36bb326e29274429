/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - what the kernel says under /proc, as numbers. */
#include "os/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- files ----------------------------------------------------------------------------------- */

ssize_t os_read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t n = 0;
	buf[0] = 0;
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

ssize_t os_proc_read(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[96];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	return os_read_file(path, buf, size);
}

ssize_t os_proc_read_task(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
	char path[96];
	snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	return os_read_file(path, buf, size);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* A number at *p, after blanks; moves *p behind it. */
bool os_take_number(const char **p, int base, uint64_t *ret)
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

bool os_take_pid(const char **p, pid_t *ret)
{
	uint64_t n;
	if (!os_take_number(p, 10, &n) || (n > INT32_MAX && n != UINT64_MAX))
		return false;
	*ret = n == UINT64_MAX ? -1 : (pid_t)n; /* "-1" */
	return true;
}

bool os_take_char(const char **p, char c)
{
	if (**p != c)
		return false;
	++*p;
	return true;
}

const char *os_next_line(const char *p)
{
	p += strcspn(p, "\n");
	return *p ? p + 1 : p;
}

/* pid (name) state parent ...: a name may hold anything. */
bool os_parse_stat(const char *text, struct os_task_stat *ret)
{
	static const struct {
		unsigned field;
		size_t offset;
	} wanted[] = {
		{9, offsetof(struct os_task_stat, flags)},
		{10, offsetof(struct os_task_stat, minor_faults)},
		{12, offsetof(struct os_task_stat, major_faults)},
		{14, offsetof(struct os_task_stat, user_ticks)},
		{15, offsetof(struct os_task_stat, kernel_ticks)},
		{22, offsetof(struct os_task_stat, start_ticks)},
	};
	size_t next = 0;
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	*ret = (struct os_task_stat){0};
	if (!open || !close || close < open || close[1] != ' ' || !close[2])
		return false;
	size_t length = (size_t)(close - open - 1);
	if (length >= sizeof ret->name)
		length = sizeof ret->name - 1;
	memcpy(ret->name, open + 1, length);
	ret->state = close[2];
	const char *p = close + 3;
	if (!os_take_pid(&p, &ret->parent))
		return false;
	for (unsigned field = 5; next < BASE_COUNT(wanted); field++) {
		uint64_t n;
		if (!os_take_number(&p, 10, &n))
			return false;
		if (field == wanted[next].field)
			memcpy((char *)ret + wanted[next++].offset, &n, sizeof n);
	}
	return true;
}

/* Behind "NAME:" at the beginning of a line; NULL: no such line. */
static const char *proc_find_field(const char *text, const char *name)
{
	size_t length = strlen(name);
	for (; *text; text = os_next_line(text)) {
		if (!strncmp(text, name, length) && text[length] == ':')
			return text + length + 1;
	}
	return NULL;
}

bool os_parse_field(const char *text, const char *name, int base, uint64_t *ret)
{
	const char *p = proc_find_field(text, name);
	return p && os_take_number(&p, base, ret);
}

uint64_t os_device(uint64_t major, uint64_t minor)
{
	return major << 20 | (minor & 0xfffff);
}

/* start-end rwxp offset major:minor inode path */
static bool proc_parse_region(const char *p, struct os_region *r)
{
	uint64_t major, minor;
	if (!os_take_number(&p, 16, &r->start) || !os_take_char(&p, '-') ||
		!os_take_number(&p, 16, &r->end) || r->end <= r->start || !os_take_char(&p, ' ') ||
		strcspn(p, " \n") != 4)
		return false;
	r->readable = p[0] == 'r';
	r->writable = p[1] == 'w';
	r->executable = p[2] == 'x';
	r->shared = p[3] == 's';
	p += 4;
	if (!os_take_number(&p, 16, &r->offset) || !os_take_number(&p, 16, &major) ||
		!os_take_char(&p, ':') || !os_take_number(&p, 16, &minor) ||
		!os_take_number(&p, 10, &r->inode))
		return false;
	r->device = os_device(major, minor);
	p += strspn(p, " \t");
	r->path = p;
	r->path_length = strcspn(p, "\n");
	return true;
}

bool os_parse_region(const char **text, struct os_region *ret)
{
	*ret = (struct os_region){.path = ""};
	if (!**text || !proc_parse_region(*text, ret))
		return false;
	*text = os_next_line(*text);
	return true;
}

/* Filters of system calls, as containers have them, refuse process_vm_readv() where the kernel itself
 * lets us read: /proc/PID/mem has the same bytes. */
static ssize_t proc_read_memory_file(pid_t pid, uint64_t address, void *buf, size_t size)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = pread(fd, buf, size, (off_t)address);
	(void)close(fd);
	return n;
}

ssize_t os_read_memory(pid_t pid, uint64_t address, void *buf, size_t size)
{
	struct iovec local = {buf, size}, remote = {(void *)(uintptr_t)address, size};
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	return n < 0 && (errno == EPERM || errno == ENOSYS)
		       ? proc_read_memory_file(pid, address, buf, size)
		       : n;
}

size_t os_list_tasks(pid_t pid, pid_t *tid, size_t max)
{
	char path[32];
	size_t nr = 0;
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	for (const struct dirent *e; dir && nr < max && (e = readdir(dir));)
		if (e->d_name[0] != '.')
			tid[nr++] = (pid_t)strtol(e->d_name, NULL, 10);
	if (dir)
		closedir(dir);
	return nr;
}

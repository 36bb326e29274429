/* SPDX-License-Identifier: Apache-2.0 */
/* proc.h - what the kernel says of processes and threads under /proc, as numbers. The parsers trust
 * no text. */
#ifndef LONGPOLE_OS_PROC_H
#define LONGPOLE_OS_PROC_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A small file, /proc/PID/NAME, or that of a task, as far as it fits, ended by a zero. Returns its
 * bytes; -1: it is not there, or may not be read (errno), and the text is "". */
ssize_t os_read_file(const char *path, char *buf, size_t size);
ssize_t os_proc_read(pid_t pid, const char *name, char *buf, size_t size);
ssize_t os_proc_read_task(pid_t pid, pid_t tid, const char *name, char *buf, size_t size);
/* Bytes of another process's memory from `address` on, with the right to ptrace it, and nothing that
 * it could notice; returns how many, which may be fewer than `size` where a mapping ends. -1: errno. */
ssize_t os_read_memory(pid_t pid, uint64_t address, void *buf, size_t size);
/* Of /proc/PID/task; returns how many. 0: the process is gone. */
size_t os_list_tasks(pid_t pid, pid_t *tid, size_t max);

/* A number at *p, after blanks, or a character: moves *p behind it. */
bool os_take_number(const char **p, int base, uint64_t *ret);
bool os_take_pid(const char **p, pid_t *ret); /* "-1", too */
bool os_take_char(const char **p, char c);
const char *os_next_line(const char *p); /* the text's end when there is none */
/* The number behind "NAME:" at the beginning of a line; false: no such line, or no number. */
bool os_parse_field(const char *text, const char *name, int base, uint64_t *ret);

struct os_task_stat { /* /proc/PID/stat, /proc/PID/task/TID/stat */
	pid_t parent;
	uint64_t flags, minor_faults, major_faults, user_ticks, kernel_ticks;
	uint64_t start_ticks; /* since boot */
	char state;
	char name[16]; /* cut where it is longer */
};
bool os_parse_stat(const char *text, struct os_task_stat *ret);

struct os_region { /* a line of /proc/PID/maps */
	uint64_t start, end, offset;
	uint64_t device, inode; /* device: major << 20 | minor, as in /proc/locks */
	bool readable, writable, executable, shared;
	const char *path; /* "" when it has none */
	size_t path_length;
};
/* Parses one line and moves *text on; false: no more, or not a line of maps. */
bool os_parse_region(const char **text, struct os_region *ret);
uint64_t os_device(uint64_t major, uint64_t minor);

#endif

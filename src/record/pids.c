/* SPDX-License-Identifier: Apache-2.0 */
/* pids.c - looks in /proc who has which number in which pid namespace. */
#include "record/pids.h"
#include "os/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The last of "NSpid:\t123\t7\t1": the number in the innermost namespace; 0: not known. */
static uint32_t innermost(int dir_fd, const char *task)
{
	char path[64], text[4096];
	int n = snprintf(path, sizeof path, "%s/status", task);
	int fd = n > 0 && (size_t)n < sizeof path ? openat(dir_fd, path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = 0;
	char *at = strstr(text, "\nNSpid:"), *end;
	unsigned long last = 0;
	for (at = at ? at + 7 : NULL; at; at = end) {
		unsigned long number = strtoul(at, &end, 10);
		if (end == at || number > UINT32_MAX)
			break;
		last = number;
		if (*end != '\t' && *end != ' ')
			break;
	}
	return (uint32_t)last;
}

static bool is_in_namespace(int dir_fd, const char *task, uint64_t ns)
{
	char path[64];
	struct stat st;
	int n = snprintf(path, sizeof path, "%s/ns/pid", task);
	return n > 0 && (size_t)n < sizeof path && !fstatat(dir_fd, path, &st, 0) &&
	       st.st_ino == ns;
}

/* In that directory of /proc, the process that is `number` in the namespace; 0: none that lives. */
static uint32_t look_in(const char *directory, uint64_t ns, uint32_t number)
{
	uint32_t found = 0;
	DIR *d = opendir(directory);
	for (struct dirent *e; d && !found && (e = readdir(d));) {
		char *end;
		unsigned long task = strtoul(e->d_name, &end, 10);
		if (task && task < RECORD_PIDS_NOBODY && !*end &&
			is_in_namespace(dirfd(d), e->d_name, ns) &&
			innermost(dirfd(d), e->d_name) == number)
			found = (uint32_t)task;
	}
	if (d)
		closedir(d);
	return found;
}

static uint32_t process_outside(struct record_pids *p, uint64_t ns, uint32_t pid)
{
	uint32_t known = record_pids_process(p, ns, pid);
	char path[32];
	if (known && known < RECORD_PIDS_NOBODY) {
		snprintf(path, sizeof path, "%u", known);
		int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		bool same = proc >= 0 && is_in_namespace(proc, path, ns) &&
			    innermost(proc, path) == pid;
		if (proc >= 0)
			close(proc);
		if (same)
			return known;
	}
	uint32_t found = look_in("/proc", ns, pid);
	return found ? found : RECORD_PIDS_NOBODY + ++p->nr_nobody;
}

static uint32_t thread_outside(struct record_pids *p, uint64_t ns, uint32_t pid, uint32_t tid)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/%u/task", pid);
	uint32_t found = pid < RECORD_PIDS_NOBODY ? look_in(path, ns, tid) : 0;
	return found ? found : RECORD_PIDS_NOBODY + ++p->nr_nobody;
}

void record_pids_find(
	struct record_pids *p, uint32_t image, struct ring_ids ids, uint32_t *pid, uint32_t *tid)
{
	uint64_t known;
	if (!ids.ns)
		return;
	if (!base_map_get(&p->threads, image, *tid, &known)) {
		bool told = ids.outer_pid && ids.outer_pid < RECORD_PIDS_NOBODY && ids.outer_tid &&
			    ids.outer_tid < RECORD_PIDS_NOBODY;
		uint32_t outside = told ? ids.outer_pid : process_outside(p, ids.ns, *pid);
		uint32_t thread = told           ? ids.outer_tid
				  : *tid == *pid ? outside
						 : thread_outside(p, ids.ns, outside, *tid);
		known = (uint64_t)outside << 32 | thread;
		/* (Without memory it is looked up again, and the session ends soon.) */
		if (base_map_put(&p->threads, image, *tid, known) != BASE_OK ||
			base_map_put(&p->processes, ids.ns, *pid, outside) != BASE_OK)
			p->nr_nobody++;
	}
	*pid = (uint32_t)(known >> 32);
	*tid = (uint32_t)known;
}

uint32_t record_pids_process(const struct record_pids *p, uint64_t ns, uint64_t pid)
{
	uint64_t known;
	return base_map_get(&p->processes, ns, pid, &known) ? (uint32_t)known : 0;
}

bool record_process_lives(uint32_t pid)
{
	char text[512];
	struct os_task_stat stat;
	if (kill((pid_t)pid, 0) && errno != EPERM)
		return false;
	return os_proc_read((pid_t)pid, "stat", text, sizeof text) <= 0 ||
	       !os_parse_stat(text, &stat) || (stat.state != 'Z' && stat.state != 'X');
}

void record_pids_fini(struct record_pids *p)
{
	base_map_fini(&p->threads);
	base_map_fini(&p->processes);
}

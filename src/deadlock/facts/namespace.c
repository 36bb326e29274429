/* SPDX-License-Identifier: Apache-2.0 */
/*
 * namespace.c - numbers of threads that a program itself wrote (owners in lock words, pids in the
 * arguments of its system calls) are those of its PID namespace; ours are those of /proc.
 */
#include "deadlock/facts/facts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Inode of the PID namespace; "self" is ours. 0: not known. */
static uint64_t namespace_of(const char *process)
{
	char path[64];
	struct stat s;
	snprintf(path, sizeof path, "/proc/%s/ns/pid", process);
	return stat(path, &s) == 0 ? s.st_ino : 0;
}

static uint64_t namespace_of_pid(pid_t pid)
{
	char name[16];
	snprintf(name, sizeof name, "%d", (int)deadlock_shown_as(pid));
	return namespace_of(name);
}

bool deadlock_parse_innermost_pid(const char *status, pid_t *ret)
{
	static const char field[] = "\nNSpid:";
	const char *p = strstr(status, field);
	long last = 0;
	if (!p)
		return false;
	p += sizeof field - 1;
	for (;;) {
		char *end;
		p += strspn(p, " \t");
		if (*p < '0' || *p > '9')
			break;
		last = strtol(p, &end, 10);
		p = end;
	}
	*ret = last > 0 && last <= INT32_MAX ? (pid_t)last : 0;
	return *ret != 0;
}

/* The thread of `pid` that is `inner` in its own namespace; 0: none. */
static pid_t thread_in(pid_t pid, pid_t inner)
{
	char path[48], text[4096];
	pid_t found = 0, innermost;
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	if (!dir)
		return 0;
	for (const struct dirent *e; !found && (e = readdir(dir));) {
		const pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
		if (tid > 0 && os_proc_read_task(pid, tid, "status", text, sizeof text) > 0 &&
			deadlock_parse_innermost_pid(text, &innermost) && innermost == inner)
			found = tid;
	}
	closedir(dir);
	return found;
}

bool deadlock_world_is_foreign(const struct deadlock_world *w, pid_t pid)
{
	if (deadlock_world_core(w))
		return false;
	const uint64_t own = namespace_of("self"), its = namespace_of_pid(pid);
	return own && its && own != its;
}

pid_t deadlock_world_thread_of(struct deadlock_world *w, pid_t pid, pid_t inner)
{
	size_t nr;
	if (inner <= 0 || !deadlock_world_is_foreign(w, pid))
		return inner > 0 ? inner : 0;
	pid_t found = thread_in(pid, inner);
	if (found)
		return found;
	const uint64_t its = namespace_of_pid(pid);
	const struct deadlock_listed *list = deadlock_world_list(w, &nr);
	for (size_t i = 0; !found && i < nr; i++) {
		if (list[i].pid != pid && namespace_of_pid(list[i].pid) == its)
			found = thread_in(list[i].pid, inner);
	}
	return found;
}

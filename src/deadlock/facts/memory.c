/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - processes that are one memory: made by clone(CLONE_VM) without CLONE_THREAD, as vfork()
 * does, they have numbers of their own, and each other's words. The kernel compares (kcmp), and
 * orders, so that all of a machine are sorted.
 */
#include "deadlock/facts/facts.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct memory_holder {
	pid_t pid, task; /* task: a thread of it that has the memory */
};

static long memory_compare(pid_t a, pid_t b)
{
	return syscall(SYS_kcmp, a, b, KCMP_VM, 0L, 0L);
}

static int by_memory(const void *a, const void *b)
{
	const struct memory_holder *x = a, *y = b;
	const long order = memory_compare(x->task, y->task); /* 1: below, 2: above */
	if (order == 1 || order == 2)
		return order == 1 ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

bool deadlock_task_has_memory(pid_t task)
{
	char path[48], unused[8];
	snprintf(path, sizeof path, "/proc/%d/exe", (int)task);
	return readlink(path, unused, sizeof unused) >= 0 || errno == EACCES || errno == EPERM;
}

pid_t deadlock_task_of_memory(pid_t pid)
{
	pid_t task;
	return deadlock_is_shown(pid, &task) ? task : 0;
}

bool deadlock_memory_is_told(pid_t task)
{
	return memory_compare(getpid(), task) >= 0 || errno == ESRCH;
}

enum base_status deadlock_memories_read(struct deadlock_world *w, struct base_map *first)
{
	size_t nr, kept = 0;
	enum base_status s = BASE_OK;
	const struct deadlock_listed *list = deadlock_world_list(w, &nr);
	struct memory_holder *of = base_alloc((nr + 1) * sizeof *of);
	if (!of)
		return BASE_ERR_NOMEM;
	for (size_t i = 0; i < nr; i++) {
		const pid_t task = deadlock_task_of_memory(list[i].pid);
		if (task && deadlock_memory_is_told(task))
			of[kept++] = (struct memory_holder){.pid = list[i].pid, .task = task};
	}
	if (kept)
		qsort(of, kept, sizeof *of, by_memory);
	for (size_t i = 1, begin = 0; s == BASE_OK && i < kept; i++) {
		if (memory_compare(of[i - 1].task, of[i].task) != 0)
			begin = i;
		else /* the smallest number names the memory */
			s = base_map_put(first, 0, (uint64_t)of[i].pid, (uint64_t)of[begin].pid);
	}
	base_free(of);
	return s;
}

/* What everybody may read of a process: how big its memory is, and its code. */
static bool memory_size_of(pid_t pid, uint64_t *ret_size, uint64_t *ret_text)
{
	char text[128];
	const char *at = text;
	uint64_t unused;
	return os_proc_read(pid, "statm", text, sizeof text) > 0 &&
	       os_take_number(&at, 10, ret_size) && os_take_number(&at, 10, &unused) &&
	       os_take_number(&at, 10, &unused) && os_take_number(&at, 10, ret_text);
}

bool deadlock_memory_may_be_shared(pid_t a, pid_t b)
{
	uint64_t before, size, after, text, other_text;
	if (a == b || memory_compare(a, b) >= 0)
		return false; /* that is known, see deadlock_memories_read() */
	if (!memory_size_of(a, &before, &text) || !memory_size_of(b, &size, &other_text) ||
		!memory_size_of(a, &after, &text))
		return false; /* one of them is gone */
	return text == other_text && (size == after || before != after);
}

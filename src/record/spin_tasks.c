/* SPDX-License-Identifier: Apache-2.0 */
/* spin_tasks.c - the threads of a process. */
#include "record/spin_tasks.h"

#include "record/spin_burst.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

size_t record_spin_list_tasks(pid_t pid, pid_t tid[RECORD_SPIN_TASKS_MAX])
{
	char path[32];
	size_t nr = 0;
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	if (!dir)
		return 0;
	for (const struct dirent *e; nr < RECORD_SPIN_TASKS_MAX && (e = readdir(dir));)
		if (e->d_name[0] != '.')
			tid[nr++] = (pid_t)strtol(e->d_name, NULL, 10);
	closedir(dir);
	return nr;
}

size_t record_spin_running_tasks(pid_t pid, pid_t tid[RECORD_SPIN_TASKS_MAX], size_t *ret_all)
{
	size_t all = record_spin_list_tasks(pid, tid), nr = 0;
	for (size_t i = 0; i < all; i++)
		if (record_spin_is_running(pid, tid[i]))
			tid[nr++] = tid[i];
	*ret_all = all;
	return nr;
}

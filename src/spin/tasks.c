/* SPDX-License-Identifier: Apache-2.0 */
/* tasks.c - the threads of a process. */
#include "spin/tasks.h"

#include "spin/burst.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

size_t spin_list_tasks(pid_t pid, pid_t tid[SPIN_TASKS_MAX])
{
	char path[32];
	size_t nr = 0;
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	if (!dir)
		return 0;
	for (const struct dirent *e; nr < SPIN_TASKS_MAX && (e = readdir(dir));)
		if (e->d_name[0] != '.')
			tid[nr++] = (pid_t)strtol(e->d_name, NULL, 10);
	closedir(dir);
	return nr;
}

size_t spin_running_tasks(pid_t pid, pid_t tid[SPIN_TASKS_MAX], size_t *ret_all)
{
	size_t all = spin_list_tasks(pid, tid), nr = 0;
	for (size_t i = 0; i < all; i++)
		if (spin_is_running(pid, tid[i]))
			tid[nr++] = tid[i];
	*ret_all = all;
	return nr;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tasks.c - the threads of a process. */
#include "spin/tasks.h"

#include "os/proc.h"
#include "spin/burst.h"

size_t spin_list_tasks(pid_t pid, pid_t tid[SPIN_TASKS_MAX])
{
	return os_list_tasks(pid, tid, SPIN_TASKS_MAX);
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

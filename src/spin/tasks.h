/* SPDX-License-Identifier: Apache-2.0 */
/* tasks.h - the threads of a process. */
#ifndef LONGPOLE_SPIN_TASKS_H
#define LONGPOLE_SPIN_TASKS_H

#include <stddef.h>
#include <sys/types.h>

enum { SPIN_TASKS_MAX = 4096 }; /* that are looked at */

size_t spin_list_tasks(pid_t pid, pid_t tid[SPIN_TASKS_MAX]);
/* Those that run or could, in front; *ret_all: how many there are. */
size_t spin_running_tasks(pid_t pid, pid_t tid[SPIN_TASKS_MAX], size_t *ret_all);

#endif

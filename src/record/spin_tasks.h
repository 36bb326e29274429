/* SPDX-License-Identifier: Apache-2.0 */
/* spin_tasks.h - the threads of a process. */
#ifndef LONGPOLE_RECORD_SPIN_TASKS_H
#define LONGPOLE_RECORD_SPIN_TASKS_H

#include <stddef.h>
#include <sys/types.h>

enum { RECORD_SPIN_TASKS_MAX = 4096 }; /* that are looked at */

size_t record_spin_list_tasks(pid_t pid, pid_t tid[RECORD_SPIN_TASKS_MAX]);
/* Those that run or could, in front; *ret_all: how many there are. */
size_t record_spin_running_tasks(pid_t pid, pid_t tid[RECORD_SPIN_TASKS_MAX], size_t *ret_all);

#endif

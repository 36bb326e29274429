/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spin_arm.h - signals to each thread of a process after so much of its own processor time in user
 * space: perf_event's task clock, from outside. Needs no privilege for one's own processes
 * (perf_event_paranoid up to 2).
 *
 * A signal comes only while the thread runs its own code, so no system call is cut short. Threads
 * that block the signal are left out. An exec or a thread's end takes the events away.
 */
#ifndef LONGPOLE_RECORD_SPIN_ARM_H
#define LONGPOLE_RECORD_SPIN_ARM_H

#include "base/base.h"

#include <sys/types.h>

enum { RECORD_SPIN_ARMED_MAX = 512 };

struct record_spin_arms {
	pid_t pid;
	uint64_t period_ns;
	bool on;
	size_t nr, nr_most;
	uint64_t nr_blocked, nr_refused; /* threads that are left out, when last looked */
	size_t nr_blocked_now;
	int why; /* errno of the last refusal; 0: none */
	struct {
		pid_t tid;
		int fd;
	} thread[RECORD_SPIN_ARMED_MAX];
};
/* Arms new threads, forgets those that ended. `task`: room for RECORD_SPIN_TASKS_MAX. */
void record_spin_arms_scan(struct record_spin_arms *a, pid_t *task);
void record_spin_arms_turn(struct record_spin_arms *a, bool on);
void record_spin_arms_set_period(struct record_spin_arms *a, uint64_t period_ns);
void record_spin_arms_close(struct record_spin_arms *a);

#endif

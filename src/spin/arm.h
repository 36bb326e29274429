/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm.h - signals to threads of a process, from outside, by perf_event. Needs no privilege for
 * one's own processes (perf_event_paranoid up to 2).
 *
 * Two reasons for a signal: so much of the thread's own processor time in user space has gone by
 * (task clock); or it was so often at a place in code (a breakpoint of the processor, of which each
 * thread has four). A place costs nothing where no thread comes by; each time one does costs some
 * microseconds, on a virtual machine ten and more.
 *
 * A signal comes only while the thread runs its own code, so no system call is cut short. Threads
 * that block the signal are left out. An exec or a thread's end takes the events away.
 */
#ifndef LONGPOLE_SPIN_ARM_H
#define LONGPOLE_SPIN_ARM_H

#include "base/base.h"

#include <sys/types.h>

enum { SPIN_ARMED_MAX = 512, SPIN_PLACES_MAX = 4 };

struct spin_arms {
	pid_t pid;
	uint64_t period_ns;
	bool on;
	size_t nr, nr_most;
	uint64_t nr_blocked, nr_refused; /* threads that are left out, when last looked */
	size_t nr_blocked_now;
	int why; /* errno of the last refusal; 0: none */
	struct {
		uint64_t address; /* 0: none */
		uint64_t times;   /* of threads that ended */
	} place[SPIN_PLACES_MAX];
	uint64_t nr_places_refused; /* of threads: they have no place there */
	struct {
		pid_t tid;
		int fd, place_fd[SPIN_PLACES_MAX]; /* < 0: none */
	} thread[SPIN_ARMED_MAX];
};
/* Arms new threads, forgets those that ended. `task`: room for SPIN_TASKS_MAX. */
void spin_arms_scan(struct spin_arms *a, pid_t *task);
void spin_arms_turn(struct spin_arms *a, bool on);
void spin_arms_set_period(struct spin_arms *a, uint64_t period_ns);
/* A signal to each thread that was there SPIN_PLACE_TIMES times more. < 0: none is free, or
 * no thread can have it; else its index. */
enum { SPIN_PLACE_TIMES = 8 };
int spin_arms_add_place(struct spin_arms *a, uint64_t address);
void spin_arms_drop_place(struct spin_arms *a, unsigned place);
/* How often threads were there. */
uint64_t spin_arms_times(const struct spin_arms *a, unsigned place);
/* With all places. */
void spin_arms_close(struct spin_arms *a);

#endif

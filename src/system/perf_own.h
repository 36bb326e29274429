/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_own.h - which of everybody's events are of the program that is recorded: of the child that
 * we started, from its exec on, and of all that descend from it.
 *
 * Events come in time order (system_perf_each), so a birth is seen before what the child does.
 */
#ifndef LONGPOLE_SYSTEM_PERF_OWN_H
#define LONGPOLE_SYSTEM_PERF_OWN_H

#include "system/perf.h"

struct system_perf_own {
	struct base_map tasks;  /* pid -> its tasks that have not ended */
	struct base_map ending; /* tid: has ended, and has still to leave its processor */
	uint32_t awaited;       /* the child, until it execs */
	struct base_map execed; /* tid: nothing of it came since its exec */
};

void system_perf_own_init(struct system_perf_own *own, uint32_t child);
void system_perf_own_fini(struct system_perf_own *own);
/* Is it ours? Births, ends and execs among them are remembered; a birth that there is no memory for
 * becomes a lost event. */
bool system_perf_own_takes(struct system_perf_own *own, struct system_perf_record *r);
/* To be asked of every event, whosever: is it the end of a task that goes on? An exec that makes a
 * program privileged, or takes privileges from it, ends what watched the task alone, and the kernel
 * tells everybody of that as of an end. It comes right after the exec, before the program is
 * mapped. */
bool system_perf_own_outlives(struct system_perf_own *own, const struct system_perf_record *r);

#endif

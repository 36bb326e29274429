/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_own.h - which of everybody's events are of the program that is recorded: of the child that
 * we started, from its exec on, and of all that descend from it.
 *
 * Events come in time order (record_perf_each), so a birth is seen before what the child does.
 */
#ifndef LONGPOLE_RECORD_PERF_OWN_H
#define LONGPOLE_RECORD_PERF_OWN_H

#include "record/perf.h"

struct record_perf_own {
	struct base_map tasks;  /* pid -> its tasks that have not ended */
	struct base_map ending; /* tid: has ended, and has still to leave its processor */
	uint32_t awaited;       /* the child, until it execs */
};

void record_perf_own_init(struct record_perf_own *own, uint32_t child);
void record_perf_own_fini(struct record_perf_own *own);
/* Is it ours? Births, ends and execs among them are remembered; a birth that there is no memory for
 * becomes a lost event. */
bool record_perf_own_takes(struct record_perf_own *own, struct record_perf_record *r);

#endif

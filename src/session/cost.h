/* SPDX-License-Identifier: Apache-2.0 */
/* cost.h - what recording took. */
#ifndef LONGPOLE_SESSION_COST_H
#define LONGPOLE_SESSION_COST_H

#include "system/perf.h"
#include "session/session.h"
#include "record/convert.h"
#include "ring/ring.h"
#include "session/probe.h"

/* Sets tsc_read_ns_x100 and session_write_ns_x100. Before the program runs. */
void session_cost_measure(const struct os_clock *clock, struct session_result *ret);
struct session_cost_events {            /* what perf is asked for */
	const struct system_perf *perf; /* NULL: nothing */
	uint64_t sample_hz;
	bool switches;
};
/* Sets wake_ns .. sample_ns: takes 10 ms. Before the program runs; events are enabled then. */
void session_cost_measure_wakes(const struct os_clock *clock, const struct session_cost_events *of,
	struct session_result *ret);
/* Everything is converted, target_cpu_ns and before_, beside_ and after_cpu_ns are set: puts the
 * trace's definitions of cost, sets ring_records, added_ns and overhead_share. head: of
 * the ring, NULL: there is none. It is that of `environment` (NULL: nothing can be run in it), and
 * all of it is read. */
void session_cost_write(struct record_converter *c, struct session_result *r,
	const struct ring_head *head, const struct os_child_environment *environment);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* session_cost.h - what recording took. */
#ifndef LONGPOLE_RECORD_SESSION_COST_H
#define LONGPOLE_RECORD_SESSION_COST_H

#include "record/perf.h"
#include "record/session.h"
#include "record/session_convert.h"
#include "record/session_probe.h"

/* Sets tsc_read_ns_x100 and record_write_ns_x100. Before the program runs. */
void record_cost_measure(const struct record_clock *clock, struct record_result *ret);
struct record_cost_events {             /* what perf is asked for */
	const struct record_perf *perf; /* NULL: nothing */
	uint64_t sample_hz;
	bool switches;
};
/* Sets wake_ns .. sample_ns: takes 10 ms. Before the program runs; events are enabled then. */
void record_cost_measure_wakes(const struct record_clock *clock,
	const struct record_cost_events *of, struct record_result *ret);
/* Everything is converted, target_cpu_ns and before_, beside_ and after_cpu_ns are set: puts the
 * trace's definitions of cost, sets ring_records, added_ns and overhead_share. nr_images: that
 * attached to the ring, which is that of `environment` (NULL: nothing can be run in it) and of
 * which all is read. */
void record_cost_write(struct record_converter *c, struct record_result *r, uint64_t nr_images,
	const struct record_child_environment *environment);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.h - what holds the steps of a program on accelerators back (`longpole gpu`): the critical path of each step in the
 * field's words, its kernels and operators, and what changes would buy. */
#ifndef LONGPOLE_REPORT_GPU_H
#define LONGPOLE_REPORT_GPU_H

#include "report/report.h"

struct report_gpu_step {
	const char *name;
	uint64_t rank, begin_ns, end_ns;
	uint32_t text;                 /* the name's id in the trace */
	double work_ns[TRACE_WORK_NR]; /* of the path, within the step */
	double unexplained_ns;         /* waits of the path that nothing explains */
};
struct report_gpu_row { /* one kernel, copy, call or operator, in one outermost operator */
	const char *name, *outer; /* outer: "" none */
	enum trace_work_type type;
	double path_ns, share;     /* of the path in the steps */
	uint64_t total_ns, visits; /* on the path or not */
};
struct report_gpu_change {
	const char *change;        /* "launches take no time" */
	double speedup, low, high; /* low == high: no interval */
	double length_ns;          /* of the steps then, by the longest path */
};
struct report_gpu_rank { /* of several: how they wait for each other at collective operations, in the steps */
	uint64_t rank, nr_meetings, nr_last;
	uint64_t waited_for_ns, waits_ns; /* all others for it; it for others */
};
struct report_gpu {
	struct base_arena *arena;
	struct report_trace trace;
	struct report_gpu_step *step;
	size_t nr_steps, step_capacity;
	struct report_gpu_step
		all; /* their sum, from the first one's begin to the last one's end */
	double least_ns, median_ns, most_ns; /* steps */
	struct report_gpu_row *row;
	size_t nr_rows;
	struct report_gpu_change *change;
	size_t nr_changes;
	double explained_share;
	struct report_gpu_rank *rank; /* most waited for first */
	size_t nr_ranks;
};
struct report_gpu_options {
	const char *step; /* steps with that in their name; NULL: all */
	size_t limit;     /* rows; 0: all */
	double links;     /* so many times as fast: predicted; 0: twice */
	uint64_t ranks;   /* so many instead: predicted; 0: not asked */
};
/* ERR_NOTFOUND: the trace is of no accelerator, or has no such step. */
enum base_status report_gpu_build(const struct report_run *run,
	const struct report_gpu_options *opts, struct report_gpu **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_gpu *report_gpu_free(struct report_gpu *g);
void report_gpu_text(struct base_str *out, const struct report_gpu *g,
	const struct report_gpu_options *opts, const struct report_style *style);
json_t *report_gpu_json(const struct report_gpu *g); /* NULL: no memory */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* html_private.h - shared by html*.c. */
#ifndef LONGPOLE_REPORT_HTML_PRIVATE_H
#define LONGPOLE_REPORT_HTML_PRIVATE_H

#include "report/page/html.h"
#include "report/page/html_time.h"
#include "report/locks/locks.h"
#include "report/private.h"

struct html_step { /* what the path is at: somebody in some state */
	uint32_t lane, state;
};
struct html_lane {
	uint32_t actor;
	const char *name, *group;
	uint64_t pid, tid, begin_ns, end_ns, active_ns, wait_ns;
	double path_ns;
	struct html_track track;
};
struct html_row { /* queues of one name */
	const char *name, *type;
	uint32_t name_text; /* the name's number in the model */
	bool waiters;       /* its track counts who waits; else the units in it */
	uint64_t greatest;
	struct html_track track;
};
struct html_state {
	enum model_state_kind kind;
	const char *name, *where;
	const char *queue; /* that it is about; "": none */
	uint32_t topic;    /* of its kind and name; 0 has most path time */
	double path_ns;
	uint64_t total_ns;
};
struct html_timeline {
	struct base_arena *arena;
	uint64_t start_ns, end_ns;
	double path_ns; /* == end_ns - start_ns */
	struct html_lane *lane;
	size_t nr_lanes;
	uint64_t nr_other_lanes;  /* left out */
	struct html_state *state; /* those that lanes use, most path time first */
	uint32_t nr_states;
	bool *waits;            /* by state */
	struct html_step *step; /* kinds of */
	size_t nr_steps;
	struct html_track path; /* values: steps */
	struct html_row *row;
	size_t nr_rows;
	uint64_t nr_slices;
};
/* Two passes. ERR_NOTFOUND: no path. ERR_LIMIT: too much to draw, with advice. */
enum base_status report_html_timeline_build(struct html_timeline *t, const struct report_run *run,
	struct base_err *err) BASE_MUST_CHECK;
void report_html_timeline_fini(struct html_timeline *t);
/* Its part of the document. */
enum base_status report_html_timeline_json(const struct html_timeline *t, size_t max_bytes,
	json_t **ret, struct base_err *err) BASE_MUST_CHECK;

/* Curves of the path's length against less time in each of the longest states; three passes. */
enum base_status report_html_curves_json(
	const struct report_run *run, json_t **ret, struct base_err *err) BASE_MUST_CHECK;
/* Where the processors' time went: of all threads by group, state, function. */
enum base_status report_html_flame_json(const struct report_run *run,
	const struct report_html_options *opts, json_t **ret, struct base_err *err) BASE_MUST_CHECK;

struct report_html {
	json_t *document;
	char *text; /* of the document */
	size_t length;
	struct report *report;      /* NULL: no path */
	struct report_locks *locks; /* NULL: none */
	struct report_queues *queues;
	struct html_timeline timeline;
	bool has_timeline;
	struct base_arena *arena;
	const char *name, *reason; /* reason: why there is no answer; "" */
};
/* Text of ours with numbers: microseconds as the page writes them, where a terminal's text has
 * "us". */
void report_html_units(struct base_str *out, const char *text, size_t length);
/* What is readable without JavaScript. */
void report_html_static(struct base_str *out, const struct report_html *h);
void report_html_static_timeline(struct base_str *out, const struct html_timeline *t);

#endif

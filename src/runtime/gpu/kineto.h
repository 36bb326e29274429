/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto.h - Trace Event JSON as PyTorch's profiler (Kineto) writes it, read event after event: no tree of the file is
 * made, and no more of it is kept than the event that is being read.
 *
 * What a strict parser refuses is read as it was meant: a comma before an end, NaN, text that is no UTF-8. Texts are
 * borrowed until the visitor returns. Times are decimal texts of microseconds, and become whole nanoseconds without a
 * detour by floating point, in which times since 1970 would be off by hundreds of nanoseconds.
 */
#ifndef LONGPOLE_GPU_KINETO_H
#define LONGPOLE_GPU_KINETO_H

#include "format/format.h"

enum { KINETO_EVENT_BYTES_MAX = 1 << 24 }; /* of one event: more is left out */

struct kineto_text {    /* a value as it stands there, without quotes */
	const char *at; /* NULL: there is none */
	size_t length;
	bool is_quoted;
};
struct kineto_event {
	struct kineto_text phase, category, name, pid, tid, time, duration, id, arguments;
};
struct kineto_visitor {
	void *ctx;
	/* What stands beside the list of events, and what it is called. */
	void (*header)(void *ctx, struct kineto_text key, struct kineto_text value);
	void (*event)(void *ctx, const struct kineto_event *e);
};
struct kineto_counts {
	uint64_t nr_events, nr_damaged, nr_too_long; /* damaged: no object */
	bool is_cut;                                 /* the file ends within the list */
};

/* ERR_FOREIGN: there is no list of events in it. */
enum base_status format_kineto_read(const struct format_source *from,
	const struct kineto_visitor *to, struct kineto_counts *ret,
	struct base_err *err) BASE_MUST_CHECK;

/* The next member of an object's text. False: there is none. */
bool format_kineto_member(
	struct kineto_text *rest, struct kineto_text *ret_key, struct kineto_text *ret_value);
bool format_kineto_is(struct kineto_text t, const char *word);
/* A number of microseconds as nanoseconds; false: it is none, or beyond what a trace can have. */
bool format_kineto_time(struct kineto_text t, int64_t *ret_ns);
/* A whole number, quoted or not, with a sign or without. */
bool format_kineto_number(struct kineto_text t, int64_t *ret);
/* With escapes resolved, made valid. */
void format_kineto_add_text(struct base_str *out, struct kineto_text t);

#endif

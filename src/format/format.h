/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - export: a trace and its critical path in another tool's format.
 *
 * Units: ns since the trace's origin. The model must have been run over the same reader with
 * keep_path.
 */
#ifndef LONGPOLE_FORMAT_H
#define LONGPOLE_FORMAT_H

#include "model/model.h"

enum { FORMAT_BINARY = 1, FORMAT_WEIGHTS = 2 /* has --weight */ };

struct format_sink { /* takes the bytes in order */
	enum base_status (*write)(
		void *ctx, const void *bytes, size_t length, struct base_err *err);
	void *ctx;
};

enum format_weight { FORMAT_WEIGHT_path, FORMAT_WEIGHT_wait };
struct format_options {
	size_t size;
	uint64_t from_ns, to_ns;  /* only what overlaps [from, to); to 0: end */
	uint64_t min_duration_ns; /* shorter slices are left out */
	uint64_t max_events;      /* 0: the format's own limit */
	const char *thread;       /* only threads with that in their name; NULL: all */
	enum format_weight weight;
};
struct format_input {
	struct trace_reader *reader; /* is rewound */
	struct model *model;
	const char *name; /* of the trace */
	const char *tool; /* "longpole 0.1.0" */
};

struct format_desc {
	const char *name, *suffix, *doc;
	uint64_t max_events;
	unsigned flags;
	enum base_status (*export)(const struct format_desc *f, const struct format_input *in,
		const struct format_options *opts, const struct format_sink *sink,
		struct base_err *err);
};
const struct format_desc *format_table(size_t *ret_nr);
const struct format_desc *format_find(const char *name); /* NULL: none */

/* ERR_LIMIT when there is more than max_events: its text has the flags to use. */
enum base_status format_export(const struct format_desc *f, const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink,
	struct base_err *err) BASE_MUST_CHECK;

#endif

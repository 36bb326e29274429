/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotate.h - which lines of a function the processor was at, by samples: at the line itself, or in
 * what it called; with the source text, where its file can be read here.
 *
 * A sample counts once for a line, however often the line is in its call path.
 */
#ifndef LONGPOLE_REPORT_ANNOTATE_H
#define LONGPOLE_REPORT_ANNOTATE_H

#include "report/report.h"

struct report_annotated_line {
	uint64_t line, nr_own, nr_all; /* samples: at it; at it or in what it calls */
};
/* What is known of one function in one file: what is inlined from headers has files of its own. */
struct report_annotated_file {
	const char *path;                      /* as recorded; "": not known */
	struct report_annotated_line *sampled; /* by line */
	size_t nr_sampled;
	/* Its text, line after line from 1 on, as far as the last sampled line and what is around
	 * it; NULL: it could not be read, and `why` says why. */
	const char **text;
	size_t nr_text;
	const char *why;
	bool newer; /* it was changed after the recording: lines may have moved */
};
/* An instruction of it that was sampled. */
struct report_annotated_place {
	const char *module, *build_id;            /* "": not known */
	uint64_t offset, function_offset, nr_own; /* bytes, as linked */
};
struct report_annotated {
	const char *function;
	uint64_t nr_own, nr_all;
	struct report_annotated_file *file; /* most samples first */
	size_t nr_files;
	struct report_annotated_place
		*place; /* by module and offset; of what is not inlined only */
	size_t nr_places;
};
struct report_annotation {
	struct base_arena *arena;
	struct report_trace trace;
	uint64_t nr_samples;               /* of the whole recording, or of its window */
	struct report_annotated *function; /* most samples first */
	size_t nr_functions;
};
struct report_annotate_options {
	const char *function; /* its name, its name without parameters, or a part; NULL: any */
	size_t nr_functions;  /* at most, those with most samples */
};
/* ERR_NOTFOUND: no sample is in such a function; the cause names those that have most. */
enum base_status report_annotate_build(const struct report_run *run,
	const struct report_annotate_options *opts, struct report_annotation **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_annotation *report_annotation_free(struct report_annotation *a);
void report_annotate_text(
	struct base_str *out, const struct report_annotation *a, const struct report_style *style);
json_t *report_annotate_json(const struct report_annotation *a);
/* `result` of it alone, for the page. */
json_t *report_annotate_result(const struct report_annotation *a);

#endif

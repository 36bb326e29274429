/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html.h - the page of `longpole report --html`: one file that needs nothing else.
 *
 * Everything is computed here, into one JSON document (doc/page.md says what is in it); the page's
 * own code (ui/) only draws it. The answer, the tables and a timeline are written as plain HTML and
 * SVG too, so that a reader without JavaScript, and paper, have them.
 *
 * The timeline is a pyramid of tiles. A tile has 1024 buckets of 2^k ns; each of its four children
 * has a quarter of its time in buckets of a quarter. A tile with few slices is a leaf: it keeps
 * them as they are, to the nanosecond. All tiles of a level are there until the page has enough
 * data; deeper ones then only around chosen moments.
 */
#ifndef LONGPOLE_REPORT_HTML_H
#define LONGPOLE_REPORT_HTML_H

#include "report/report.h"

enum {
	REPORT_HTML_DATA_MAX = 10000000, /* bytes of data in a page */
	REPORT_HTML_PAGE_MAX = 150000,   /* bytes of page besides the data */
	REPORT_HTML_LANES_MAX = 128,
	REPORT_HTML_QUEUES_MAX = 8,
	REPORT_HTML_BINS = 256, /* of the exact sums; fewer where they would be large */
	REPORT_HTML_BINS_MIN = 16,
};

struct report_html_options {
	size_t max_data_bytes; /* 0: REPORT_HTML_DATA_MAX */
	/* Puts lines "frame;frame weight_ns" of all waiting, outermost frame first, into ret (the
	 * layer above knows the format), of the run's model; NULL: none. */
	enum base_status (*waits_by_call_path)(const struct report_run *run, struct model *m,
		struct base_str *ret, struct base_err *err);
	/* Documents of other commands' --json ({"schema": "longpole/COMMAND/1", "result": ...}), to
	 * be shown in panels of their own; see report_html_attachable(). */
	json_t *const *attached;
	size_t nr_attached;
};
/* A document that the page has a panel for; *ret_name: "ciat". */
bool report_html_attachable(const json_t *document, const char **ret_name);
struct report_html;
/* Reads the trace some ten times. A trace without a path makes a page that says so. */
enum base_status report_html_build(const struct report_run *run,
	const struct report_html_options *opts, struct report_html **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_html *report_html_free(struct report_html *h);
/* The document; borrowed. */
const json_t *report_html_json(const struct report_html *h);
/* The whole file. */
void report_html_page(struct base_str *out, const struct report_html *h);
/* Bytes of the built page without any data. */
size_t report_html_template_bytes(void);

/* ---- also for other pages -------------------------------------------------------------------- */

/* A text in HTML, as element's content or in a double-quoted attribute. */
void report_html_text(struct base_str *out, const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top.h - `longpole top`: a window's answer as text or as one line of JSON; many hosts' lines as
 * one ranking.
 */
#ifndef LONGPOLE_REPORT_TOP_H
#define LONGPOLE_REPORT_TOP_H

#include "live/live.h"
#include "report/report.h"

struct report_top_head {
	const char *host;
	const char *what;        /* "trace x.lpt", "program redis-server", "the whole system" */
	uint64_t origin_unix_ns; /* wall time at 0; 0: not known */
	size_t limit;            /* rows of each table; 0: all */
};

void report_top_text(struct base_str *out, const struct live_window *w,
	const struct report_top_head *head, const struct report_style *style);
json_t *report_top_json(const struct live_window *w, const struct report_top_head *head); /* NULL:
	no memory */

/* ---- many hosts ------------------------------------------------------------------------------ */

struct report_merge;
struct report_merge *report_merge_new(void); /* NULL: no memory */
struct report_merge *report_merge_free(struct report_merge *m);
/* One line of `longpole top --json`. BASE_ERR_FORMAT: it is none. */
enum base_status report_merge_add(struct report_merge *m, const char *line, size_t length,
	struct base_err *err) BASE_MUST_CHECK;
void report_merge_text(struct base_str *out, struct report_merge *m, size_t limit,
	const struct report_style *style);
json_t *report_merge_json(struct report_merge *m, size_t limit); /* NULL: no memory */

#endif

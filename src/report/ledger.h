/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - predictions and what became of them: how far off was each method for each kind of
 * edit.
 *
 * A text file, one JSON object a line, that only ever grows:
 *   {"kind": "scale", "edits": ["scale 'f'=-50%"], "command": "./prog", "path": 1.7, "replay": 1.6,
 *    "best": 1.6, "measured": 1.58}
 * path, replay: predicted speed-ups (absent: not made); best: the one that was believed (absent, as
 * it once was: replay's, else the path's); measured: the one that came about.
 */
#ifndef LONGPOLE_REPORT_LEDGER_H
#define LONGPOLE_REPORT_LEDGER_H

#include "report/report.h"

struct report_history { /* of one kind of edit, or of several together ("scale+resize-queue") */
	const char *kind;
	uint64_t nr_path, nr_replay;
	double path_median, path_worst; /* |predicted / measured - 1| */
	double replay_median, replay_worst;
	/* Of nr_best outcomes: the next one is in nine cases of ten within a factor of that of what
	 * was believed, if it is one of their kind (split conformal prediction: Vovk et al. 2005,
	 * "Algorithmic learning in a random world"); 0: there are too few of them. */
	uint64_t nr_best;
	double best_factor;
};
struct report_ledger {
	struct base_arena *arena;
	struct report_history *history; /* by kind, most outcomes first */
	size_t nr;
	uint64_t nr_bad_lines; /* that are no entries */
};
/* The text of a ledger file. */
enum base_status report_ledger_read(
	struct report_ledger *l, const char *text, struct base_err *err) BASE_MUST_CHECK;
void report_ledger_fini(struct report_ledger *l);
/* What is known so of a prediction widens its interval; to be done before w is rendered. */
void report_ledger_widen(const struct report_ledger *l, struct report_whatif *w);
/* Lines for the kinds that the predictions are of; nothing when there are none. */
void report_ledger_text(struct base_str *out, const struct report_ledger *l,
	const struct report_whatif *w, const struct report_style *style);
/* A line for the file: the prediction (w has one), and the speed-up that was measured. */
enum base_status report_ledger_entry(struct base_str *out, const struct report_whatif *w,
	double measured_speedup, struct base_err *err) BASE_MUST_CHECK;

#endif

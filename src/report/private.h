/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - shared by the files of report/, not beyond. */
#ifndef LONGPOLE_REPORT_PRIVATE_H
#define LONGPOLE_REPORT_PRIVATE_H

#include "report/predict/predictor.h"
#include "report/report.h"

/* report_queues_build(), and the model that it asked. */
enum base_status report_queues_model(const struct report_run *run, const char *pattern,
	struct report_queues **ret, struct model **ret_model, struct base_err *err) BASE_MUST_CHECK;
/* parts.c: the parts of m's path, longest first, without predictions; of a trace they are the same
 * whoever asks. */
enum base_status report_fill_parts(struct report_parts *ret, struct base_arena *a,
	const struct report_run *run, struct model *m, const struct report_index *ix,
	struct base_err *err) BASE_MUST_CHECK;
/* What halving and removing the first of them would buy, as many and with as many intervals as opts
 * say: m is of the pass that the predictor began with. */
enum base_status report_predict_parts(struct report_parts *p, struct base_arena *a,
	struct report_predictor *predictor, struct model *m, const struct report_options *opts,
	struct base_err *err) BASE_MUST_CHECK;
/* All locks, on the path or not, by name, with the states that `locks` predicts by. */
enum base_status report_fill_lock_parts(struct report_parts *ret, struct base_arena *a,
	const struct report_run *run, struct base_err *err) BASE_MUST_CHECK;
/* "mutex m", "#2": which part is meant; NULL: none. */
const struct report_part *report_find_part(const struct report_parts *p, const char *name);
/* screen.c: in which place, doing what; after the rows. */
enum base_status report_describe_parts(struct report *r, struct model *m,
	const struct report_index *ix, struct base_err *err) BASE_MUST_CHECK;
/* After the finding. */
enum base_status report_fill_pole(struct report *r, struct base_err *err) BASE_MUST_CHECK;
void report_screen(struct base_str *out, const struct report *r, const struct report_style *style);
/* m is of the pass that the predictor learned from. */
enum base_status report_fill_opportunities(struct report *r, struct report_predictor *predictor,
	struct model *m, const struct report_index *ix, unsigned max,
	struct base_err *err) BASE_MUST_CHECK;
/* From this share of a row's samples on the row is called after the function alone. */
#define REPORT_FUNCTION_ALL 0.9
/* Nearly all of a row's running time is in it: what halving the row gains, halving it does, too.
 * NULL: there is none such. */
/* A row that holds a lock: did others wait for it long enough to matter? */
bool report_topic_is_waited_for(
	struct model *m, const struct report_index *ix, const struct report_row *row);
/* What the path is, in a topic: "computing in f() (a.c:7), thread w #2". */
void report_topic_text(struct base_str *out, const struct report *r, struct model *m,
	const struct report_index *ix, uint32_t topic);
enum base_status report_fill_finding(struct report *r, struct model *m,
	const struct report_index *ix, struct base_err *err) BASE_MUST_CHECK;

/* ---- crowd.c: all who had the processors that a path waited for ------------------------------ */

enum { REPORT_CROWD_MAX = 64 }; /* named apart; whoever comes later counts in the sum alone */
struct report_crowd {
	double path_ns; /* of all */
	struct report_holder {
		const char *name; /* the caller's */
		double path_ns;
	} had[REPORT_CROWD_MAX];
	size_t nr;
};
/* Counts what one of them had, by its name; NULL: nobody. */
void report_crowd_add(struct report_crowd *c, const char *had, double path_ns);
/* "waiting for a processor (this machine has 2): cc1 had it for 20 %, ld for 5 %, others for 9 %";
 * nr_processors 0: not known. Sorts. */
void report_crowd_text(
	struct base_str *out, struct report_crowd *c, double all_ns, uint64_t nr_processors);
#define REPORT_UNNAMED_FROM 0.05 /* of the path: code without names is said */
void report_unnamed_words(struct base_str *s, const struct report *r);
/* What to be careful about, a paragraph each; the first has the label CAVEATS. */
void report_text_caveats(
	struct base_str *out, const struct report *r, const struct report_style *st);
/* ---- balance.c: what ranks, or threads, spend unevenly ---------------------------------------- */

/* share: by state, how much of it is meant. *ret_factor: by state, what all of that becomes if each
 * rank (or thread) takes the mean. ERR_USAGE: a state of several of them. */
enum base_status report_balance(struct model *m, const double *share, uint32_t nr_states,
	double *ret_factor, struct report_balance *ret, struct base_err *err) BASE_MUST_CHECK;
enum base_status report_fill_imbalance(
	struct report *r, struct model *m, struct base_err *err) BASE_MUST_CHECK;
void report_imbalance_words(struct base_str *out, const struct report *r);
extern const struct base_table report_balance_table;

/* ---- functions.c: where the processor was in a state, by samples ----------------------------- */

/* Adds a state's share with a weight to `f`, {0} at first. */
enum base_status report_function_add(struct report_function *f, struct base_arena *a,
	struct model *m, const struct model_function_share *share, double weight) BASE_MUST_CHECK;
/* Sorts them, most first, and makes shares of what was added with this sum of weights. */
void report_functions_finish(struct report_function *f, size_t nr, double weight);
/* Of these, finished: the one that has that share of all, be it in libraries that it calls. Where the
 * program's own functions call the same library, each has what is its own. */
struct report_main report_functions_main(const struct report_function *f, size_t nr, double least);
void report_functions_text(struct base_str *out, const struct report_style *st,
	const struct report_function *f, size_t nr, size_t indent);
extern const struct base_table report_function_table;
json_t *report_functions_json(const struct report_function *f, size_t nr);

/* ---- top.c ----------------------------------------------------------------------------------- */

struct live_window;
void report_top_finding(struct base_str *out, const struct live_window *w);
void report_top_tables(struct base_str *out, const struct live_window *w, size_t limit,
	const struct report_style *st);
/* With `hosts` a row's where is the host that it weighs most on. */
void report_top_json_tables(json_t *to, const struct live_window *w, size_t limit, bool hosts);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h - several runs of several versions compared, quantity by quantity (seed 001, section 6).
 *
 * A quantity is a number that each run has: the run's length, how often locks are taken, the mean
 * hold of one lock, ... Whoever knows numbers of a run adds them; the comparison knows nothing of
 * what they mean. A version's value is the median of its runs, with a 95 % percentile bootstrap
 * interval; a change is the ratio to the first version's median, with the interval of that ratio.
 * Random numbers are seeded by the quantity's place: same runs, same bytes.
 *
 * Whether a change is one is told by ranks (Mann and Whitney's test, exact): how often the same
 * runs, dealt to the versions by chance, would be as far apart. The run's length is asked about
 * first, at 5 %. All other quantities are some dozens, of which one in twenty would look moved when
 * nothing did: so they are taken together, by Benjamini and Hochberg's procedure at 5 %: of two
 * sets of runs of the same program at most one in twenty has any of them called moved.
 */
#ifndef LONGPOLE_REPORT_DIFF_H
#define LONGPOLE_REPORT_DIFF_H

#include "report/report.h"

enum { REPORT_DIFF_VERSIONS_MAX = 64, REPORT_DIFF_RUNS_MAX = 256, REPORT_DIFF_RUNS_SURE = 4 };
#define REPORT_DIFF_LEVEL 0.05
enum report_unit { REPORT_UNIT_ns, REPORT_UNIT_count, REPORT_UNIT_share, REPORT_UNIT_rate };

struct report_diff_interval {
	double value, low, high; /* low == high == value: no interval, too few runs */
};
struct report_diff_point { /* a quantity in one version */
	double *run;       /* one value a run that has it */
	size_t nr_runs;
	struct report_diff_interval median;
	struct report_diff_interval ratio; /* to the first version */
	bool compared; /* ratio is meant: both have values and the first's is not 0 */
	bool tested;   /* p is meant: both have REPORT_DIFF_RUNS_SURE runs or more, not all alike */
	bool significant; /* ... and it stands among all that were tested; see above */
	double p;         /* that chance alone sets this quantity's runs so far apart, either way */
};
struct report_quantity {
	const char *key;  /* "hold_mean" */
	const char *name; /* "average hold of a lock" */
	enum report_unit unit;
	bool detail; /* of one lock: shown when it moved */
	struct report_diff_point *version;
};
struct report_diff {
	struct base_arena *arena;
	const char *label[REPORT_DIFF_VERSIONS_MAX];
	const char **path[REPORT_DIFF_VERSIONS_MAX];
	size_t nr_runs[REPORT_DIFF_VERSIONS_MAX], path_capacity[REPORT_DIFF_VERSIONS_MAX];
	size_t nr_versions;
	struct report_quantity *quantity;
	size_t nr_quantities, capacity;
	struct base_map by_name; /* hash of key and name -> quantity */
	size_t nr_tested;        /* changes that were judged together: all but the length's */
	const char *mode,
		*mode_path; /* how the first run's locks were recorded; NULL: no run yet */
	bool counted;       /* runs of counting recordings are among them */
};

struct report_diff *report_diff_new(void); /* NULL: no memory */
struct report_diff *report_diff_free(struct report_diff *d);
/* One more version; its label is copied. */
enum base_status report_diff_version(
	struct report_diff *d, const char *label, struct base_err *err) BASE_MUST_CHECK;
/* One more run of the last version: the numbers of its locks, and its length. */
enum base_status report_diff_run(
	struct report_diff *d, const struct report_run *run, struct base_err *err) BASE_MUST_CHECK;
/* A lock's or state's name without what an edit elsewhere or a compiler changes: the line in
 * "(conn.c:88)", the number of a function's static "lock.3". What is alike then is one. */
void report_diff_name(struct base_str *out, const char *name);
uint32_t report_diff_intern(struct base_strtab *names, const char *name); /* 0: no memory */
/* A number of the last run. */
enum base_status report_diff_add(struct report_diff *d, const char *key, const char *name,
	enum report_unit unit, bool detail, double value, struct base_err *err) BASE_MUST_CHECK;
/* Medians, intervals, changes; those of locks and states that moved most of the run first. */
enum base_status report_diff_finish(struct report_diff *d, struct base_err *err) BASE_MUST_CHECK;

/* "elapsed=+5%", "hold_mean=-10%": a change of the last version beyond that, in that direction,
 * that is significant (or of single runs). ERR_USAGE: not understood; ERR_NOTFOUND: no such
 * quantity. */
enum base_status report_diff_budget(const struct report_diff *d, const char *budget,
	bool *ret_broken, struct base_err *err) BASE_MUST_CHECK;

/* What the last run's critical path is made of (a quantity a state); nothing when it has none. */
enum base_status report_diff_path(
	struct report_diff *d, const struct report_run *run, struct base_err *err) BASE_MUST_CHECK;
#define REPORT_DIFF_STATE_KEY "state:" /* a run without such a quantity has 0 of it */

struct report_diff_gate { /* a budget, and what became of it */
	const char *budget;
	bool broken;
	bool unknown;      /* a trace was not whole: neither kept nor broken */
	const char *found; /* "length of the run: +12.1 % [+9.0, +15.2]" */
};
/* The sentence that says it all. */
void report_diff_finding(struct base_str *out, const struct report_diff *d);
/* What intervals and marks mean. */
void report_diff_known_by(struct base_str *out, const struct report_diff *d);
void report_diff_value(struct base_str *s, enum report_unit unit, double value);
void report_diff_change(struct base_str *s, const struct report_diff_point *p);
/* The last version's change of a budget's quantity, in words; "" when there is no such one. */
void report_diff_found(struct base_str *out, const struct report_diff *d, const char *budget);
/* For a pull request. */
void report_diff_markdown(struct base_str *out, const struct report_diff *d, bool all);
/* A page of its own, without a script. */
void report_diff_page(struct base_str *out, const struct report_diff *d,
	const struct report_diff_gate *gate, size_t nr_gates);
/* A test suite with a test for each budget. */
void report_diff_junit(struct base_str *out, const struct report_diff *d,
	const struct report_diff_gate *gate, size_t nr_gates);

void report_diff_text(struct base_str *out, const struct report_diff *d, bool all,
	const struct report_style *style);
json_t *report_diff_json(const struct report_diff *d);
/* A picture: one panel a quantity, one point a version. */
void report_diff_svg(struct base_str *out, const struct report_diff *d);

/* How far it moved, for sorting: the logarithm of the ratio, without sign; from or to 0 counts as
 * tenfold. */
double report_diff_moved(const struct report_diff_point *p, const struct report_diff_point *first);
/* Of two samples: the share of all ways to deal them out that are as far apart in their ranks,
 * either way. Ties have their mean rank. Exact up to 64 values, beyond by the normal distribution.
 */
double report_rank_test(
	const double *a, size_t nr_a, const double *b, size_t nr_b, bool *ret_failed);
/* For tests: percentile bootstrap of the median, and of the ratio b / a of medians. */
struct report_diff_interval report_bootstrap_median(
	const double *run, size_t nr, uint64_t seed, bool *ret_failed);
struct report_diff_interval report_bootstrap_ratio(const double *a, size_t nr_a, const double *b,
	size_t nr_b, uint64_t seed, bool *ret_failed);

#endif

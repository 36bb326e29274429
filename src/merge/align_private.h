/* SPDX-License-Identifier: Apache-2.0 */
/* align_private.h - what pair_set.c, polygon.c, align.c and bend.c share. Private to merge. */
#ifndef LONGPOLE_MERGE_ALIGN_PRIVATE_H
#define LONGPOLE_MERGE_ALIGN_PRIVATE_H

#include "merge/align.h"

/* Leave only the hulls' points. */
void merge_pair_set_settle(struct merge_pair_set *s);

/* One pair as a limit of what is to be added at time at_ns: not more (is_high), or not less. */
struct merge_limit {
	int64_t at_ns, add_ns;
	bool is_high;
};
struct merge_limits {
	struct merge_limit *limit; /* in the order of time */
	size_t nr;
	int64_t from_ns, to_ns; /* of the clock to be turned; to > from */
	int64_t base_ns;        /* near all add_ns: the rest is calculated relative to it */
};

/* ---- polygon.c: lines by their values p, q at two times, relative to base_ns ----------------- */

/* 62 bits of time need more than a double's 53. */
typedef long double merge_real;

struct merge_corner {
	merge_real p, q;
};
struct merge_polygon { /* convex; none left: empty */
	struct merge_corner *corner;
	size_t nr, capacity;
	struct merge_corner *spare; /* for clipping */
	size_t spare_capacity;
	int64_t from_ns;
	merge_real length_ns; /* p is the value at from_ns, q at from_ns + length_ns */
};

/* All lines with p in [low, high] and a drift that can be believed. */
enum base_status merge_polygon_start(struct merge_polygon *g, int64_t from_ns, merge_real length_ns,
	merge_real low, merge_real high) BASE_MUST_CHECK;
/* Takes away the lines that are above the limit at at_ns, or below it. */
enum base_status merge_polygon_clip(
	struct merge_polygon *g, int64_t at_ns, merge_real limit, bool is_high) BASE_MUST_CHECK;
/* Least and greatest value of any line at a time. */
void merge_polygon_range(
	const struct merge_polygon *g, int64_t at_ns, merge_real *ret_low, merge_real *ret_high);
/* A line well inside. */
struct merge_corner merge_polygon_middle(const struct merge_polygon *g);
/* Of the lines with the wanted value at at_ns, one well inside. */
struct merge_corner merge_polygon_through(
	const struct merge_polygon *g, int64_t at_ns, merge_real wanted);
merge_real merge_line_at(const struct merge_polygon *g, struct merge_corner line, int64_t at_ns);
void merge_polygon_fini(struct merge_polygon *g);

/* What two clocks may differ in that time. */
static inline merge_real merge_drift_ns(merge_real time_ns)
{
	return time_ns * MERGE_DRIFT_MAX_PPB / 1e9L;
}

static inline merge_real merge_limit_value(const struct merge_limits *all, struct merge_limit l)
{
	return (merge_real)(l.add_ns - all->base_ns) +
	       (l.is_high ? MERGE_ROUNDING_NS : -MERGE_ROUNDING_NS);
}

/* ---- bend.c ---------------------------------------------------------------------------------- */

/* A chain of lines within all limits; *ret_possible false: there is none. */
enum base_status merge_bend_fit(const struct merge_limits *all, struct merge_clock *ret,
	bool *ret_possible) BASE_MUST_CHECK;
/* Least and greatest value that the limits permit at from_ns, whatever the clocks do in between. */
void merge_bend_start(const struct merge_limits *all, merge_real *ret_low, merge_real *ret_high);

#endif

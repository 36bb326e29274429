/* SPDX-License-Identifier: Apache-2.0 */
/*
 * align.h - two clocks from what passed between their machines. Pure: numbers in, numbers out.
 *
 * What was sent at a by clock A and received at b by clock B says one thing for certain: it was
 * received after it was sent. So the function f that turns A's times into B's has f(a) <= b; what
 * went the other way says f(a) >= b. With clocks that run evenly, f is a line; the lines that
 * contradict no pair form a convex polygon, and only the pairs on two convex hulls matter:
 *
 *   L. Zhang, Z. Liu, C. H. Xia, Clock synchronization algorithms for network measurements,
 *   INFOCOM 2002 (convex hulls, offset and drift); S. Moon, P. Skelly, D. Towsley, Estimation and
 *   removal of clock skew from network delay measurements, INFOCOM 1999 (the linear program);
 *   A. Duda et al., Estimating global time in distributed systems, ICDCS 1987 (both directions).
 *
 * The bounds are those of the whole polygon, not of a best line: no probability is in them. They
 * are never closer than the smallest delays there and back permit. Where no line is left, the
 * clocks bend: f is then a chain of lines (J. O'Rourke, An on-line algorithm for fitting straight
 * lines between data ranges, CACM 1981), and the bounds assume nothing but that two clocks differ
 * by at most MERGE_DRIFT_MAX_PPB in rate.
 */
#ifndef LONGPOLE_MERGE_ALIGN_H
#define LONGPOLE_MERGE_ALIGN_H

#include "base/base.h"

enum {
	MERGE_DRIFT_MAX_PPB = 500 * 1000, /* as NTP has it: beyond it a clock is broken */
	MERGE_HULL_MAX = 1024, /* points kept of a hull; fewer are less exact, not wrong */
	MERGE_SLOTS = 4096,    /* periods of which the closest pairs are kept, for bends */
	MERGE_KNOTS_MAX = 4096,
	MERGE_ROUNDING_NS = 1, /* a time is a whole number: that much may be missing from it */
};
/* Times above are not believed. */
#define MERGE_TIME_MAX_NS (UINT64_C(1) << 61)

struct merge_point {
	uint64_t a_ns, b_ns; /* one event by clock A, another by clock B */
};
struct merge_slot { /* a period of clock A: the pair with the least b - a of those A -> B, ... */
	struct merge_point low, high;
	bool has_low, has_high;
};

/* struct merge_pair_set - what is known of two clocks. `{0}` is empty. Memory: at most 400 KiB. */
struct merge_pair_set {
	struct merge_point *there, *back; /* A -> B; B -> A */
	size_t nr_there, nr_back, there_capacity, back_capacity;
	uint64_t sent_there, sent_back; /* pairs in all */
	struct merge_slot *slot;
	uint64_t slot_ns; /* period of one slot */
};

/* Sent at sent_ns by A and received at received_ns by B; `back`: sent by B, received by A. */
enum base_status merge_pair_add(struct merge_pair_set *s, bool back, uint64_t sent_ns,
	uint64_t received_ns) BASE_MUST_CHECK;
void merge_pair_set_fini(struct merge_pair_set *s);

struct merge_knot {
	int64_t at_ns;  /* by the one clock */
	int64_t add_ns; /* to have the other's */
};
/* struct merge_clock - how to turn times of one clock into another's. `{0}`: nothing to add. */
struct merge_clock {
	struct merge_knot *knot; /* in the order of time; a line between two */
	size_t nr_knots;
	int64_t offset_ns, offset_low_ns, offset_high_ns; /* at from_ns, what is to be added */
	int64_t drift_ppb, drift_low_ppb, drift_high_ppb; /* of it, per time */
	uint64_t error_ns; /* no time in [from, to] is off by more; UINT64_MAX: not known */
	bool bends;        /* no single line: offset and drift are the first and the mean ones */
};

enum merge_fit {
	MERGE_FIT_ok,
	MERGE_FIT_none,          /* no pair */
	MERGE_FIT_there_only,    /* one-sided: offset_high_ns holds (pairs A -> B only) ... */
	MERGE_FIT_back_only,     /* ... or offset_low_ns does */
	MERGE_FIT_contradiction, /* something was received before it was sent, by any clock */
};
/* merge_clock_fit() - A's clock into B's, or with `inverse` B's into A's, for times from_ns to
 * to_ns of the clock that is turned. Bounds and error are for all of these times, be there pairs or
 * not. The caller frees ret with merge_clock_fini(). ERR_NOMEM is the only failure; *ret_fit says
 * what came of it. */
enum base_status merge_clock_fit(struct merge_pair_set *s, bool inverse, int64_t from_ns,
	int64_t to_ns, struct merge_clock *ret, enum merge_fit *ret_fit) BASE_MUST_CHECK;
void merge_clock_fini(struct merge_clock *c);
/* merge_clock_map() - t by the other clock; never decreases with t. Both may be negative. */
int64_t merge_clock_map(const struct merge_clock *c, int64_t t_ns);

#endif

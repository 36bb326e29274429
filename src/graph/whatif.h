/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif.h - the curve of a path's length L(r) when a state's time is reduced by the share r.
 *
 * L is the maximum over all paths of (length - r * the state's time on it): convex, piecewise
 * linear, never rising. A lane that scales the state by 1 - r gives one point of it and, by the
 * state's observed time on the lane's path, a line that touches it there. Where two such lines
 * meet, L is known exactly or a new line shows up, so few passes find every breakpoint: "up to 38 %
 * less helps, then something else is the longest". Pure arithmetic; no memory, no failure but a
 * full table. A group of states that are scaled together is the same, with the sum of their times.
 */
#ifndef LONGPOLE_GRAPH_WHATIF_H
#define LONGPOLE_GRAPH_WHATIF_H

#include "base/base.h"

enum { GRAPH_CURVE_POINTS_MAX = 128 };

struct graph_curve_point {
	double reduction; /* 0..1; the lane's factor was 1 - reduction */
	double length_ns; /* of that lane's path */
	double state_ns;  /* of it in the state, as observed: graph_path_state.observed_ns */
};

struct graph_curve { /* `{0}` is an empty one; caller's storage */
	struct graph_curve_point point[GRAPH_CURVE_POINTS_MAX]; /* ascending, distinct */
	unsigned nr_points;
};

/* One point more. A reduction that is there already is replaced. ERR_LIMIT: the table is full. */
enum base_status graph_curve_add(struct graph_curve *c, const struct graph_curve_point *p,
	struct base_err *err) BASE_MUST_CHECK;

/*
 * At most `max` (>= 2) reductions that are worth a lane in the next pass, the most useful first:
 * those which settle the first breakpoint, then the widest gap. An empty curve asks for 0, 1 and
 * even steps between. Returns how many; 0: all of the curve is known exactly.
 */
unsigned graph_curve_next(const struct graph_curve *c, double *ret_reductions, unsigned max);

/* The straight pieces from 0 to 1. An inexact one is the chord over a gap: the length is at most
 * that. */
struct graph_curve_piece {
	double begin, end;       /* reductions */
	double begin_ns, end_ns; /* lengths there */
	bool exact;
};
unsigned graph_curve_pieces(
	const struct graph_curve *c, struct graph_curve_piece ret[GRAPH_CURVE_POINTS_MAX]);

#endif

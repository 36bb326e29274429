/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/whatif.h"

#include <math.h>
#include <string.h>

/* Lengths are sums of products of doubles: equal up to this share of the unedited length. */
static const double tolerance = 1e-9;
/* Breakpoints closer than this share of the whole are one. */
static const double resolution = 1e-9;

/* What is known between two neighbouring points. */
struct gap {
	const struct graph_curve_point *left, *right;
	double meet;     /* where their lines meet */
	double meet_ns;  /* the lines there: the least that the length can be */
	double chord_ns; /* the straight connection there: the most */
	bool straight;
};

static double line_ns(const struct graph_curve_point *p, double reduction)
{
	return p->length_ns - (reduction - p->reduction) * p->state_ns;
}

static double chord_ns(
	const struct graph_curve_point *a, const struct graph_curve_point *b, double r)
{
	double share = (r - a->reduction) / (b->reduction - a->reduction);

	return a->length_ns + share * (b->length_ns - a->length_ns);
}

static bool same_length(const struct graph_curve *c, double a, double b)
{
	return fabs(a - b) <= tolerance * (1 + fabs(c->point[0].length_ns));
}

static struct gap whatif_look(const struct graph_curve *c, unsigned i)
{
	const struct graph_curve_point *a = &c->point[i], *b = &c->point[i + 1];
	struct gap g = {.left = a, .right = b, .meet = b->reduction, .meet_ns = b->length_ns};
	double slopes = a->state_ns - b->state_ns;

	g.chord_ns = g.meet_ns;
	/* When one point lies on the other's line, a convex curve is straight between. */
	if (same_length(c, line_ns(a, b->reduction), b->length_ns) ||
		same_length(c, line_ns(b, a->reduction), a->length_ns)) {
		g.straight = true;
		return g;
	}
	if (!(slopes > 0)) { /* not convex: more than rounding went wrong; the chord must do */
		g.straight = true;
		return g;
	}
	g.meet = a->reduction + (line_ns(a, a->reduction) - line_ns(b, a->reduction)) / slopes;
	if (!(g.meet - a->reduction > resolution && b->reduction - g.meet > resolution)) {
		g.straight = true;
		return g;
	}
	g.meet_ns = line_ns(a, g.meet);
	g.chord_ns = chord_ns(a, b, g.meet);
	return g;
}

enum base_status graph_curve_add(
	struct graph_curve *c, const struct graph_curve_point *p, struct base_err *err)
{
	unsigned i = 0;

	BASE_ASSERT(p->reduction >= 0 && p->reduction <= 1);
	while (i < c->nr_points && c->point[i].reduction < p->reduction)
		i++;
	if (i < c->nr_points && c->point[i].reduction == p->reduction) {
		c->point[i] = *p;
		return BASE_OK;
	}
	if (c->nr_points == GRAPH_CURVE_POINTS_MAX)
		return base_fail(err, BASE_ERR_LIMIT, "a gain curve has at most %d points",
			GRAPH_CURVE_POINTS_MAX);
	memmove(&c->point[i + 1], &c->point[i], (c->nr_points - i) * sizeof c->point[0]);
	c->point[i] = *p;
	c->nr_points++;
	return BASE_OK;
}

static unsigned first_asked(double *ret, unsigned max)
{
	ret[0] = 0;
	ret[1] = 1;
	for (unsigned i = 2; i < max; i++)
		ret[i] = (double)(i - 1) / (double)(max - 1);
	return max;
}

unsigned graph_curve_next(const struct graph_curve *c, double *ret_reductions, unsigned max)
{
	double width[GRAPH_CURVE_POINTS_MAX];
	unsigned nr = 0;

	BASE_ASSERT(max >= 2);
	if (c->nr_points == 0)
		return first_asked(ret_reductions, max);
	if (c->point[0].reduction > 0)
		ret_reductions[nr++] = 0;
	if (c->point[c->nr_points - 1].reduction < 1)
		ret_reductions[nr++] = 1;
	/* The first open gap holds the first breakpoint; the others follow by their width. */
	unsigned sorted_from = nr + 1;

	for (unsigned i = 0; i + 1 < c->nr_points; i++) {
		struct gap g = whatif_look(c, i);
		double w = g.chord_ns - g.meet_ns;
		unsigned k = nr < max ? nr : max;

		if (g.straight)
			continue;
		while (k > sorted_from && width[k - 1] < w)
			k--;
		if (k >= max)
			continue;
		if (nr < max)
			nr++;
		memmove(&ret_reductions[k + 1], &ret_reductions[k],
			(nr - 1 - k) * sizeof *ret_reductions);
		memmove(&width[k + 1], &width[k], (nr - 1 - k) * sizeof *width);
		ret_reductions[k] = g.meet;
		width[k] = w;
	}
	return nr;
}

/* Does the piece go straight on to that point? */
static bool whatif_goes_on(const struct graph_curve *c, const struct graph_curve_piece *p,
	const struct graph_curve_point *to)
{
	double slope = (p->end_ns - p->begin_ns) / (p->end - p->begin);

	return same_length(c, p->begin_ns + slope * (to->reduction - p->begin), to->length_ns);
}

unsigned graph_curve_pieces(
	const struct graph_curve *c, struct graph_curve_piece ret[GRAPH_CURVE_POINTS_MAX])
{
	unsigned nr = 0;

	for (unsigned i = 0; i + 1 < c->nr_points; i++) {
		struct gap g = whatif_look(c, i);

		if (nr && ret[nr - 1].exact && g.straight &&
			whatif_goes_on(c, &ret[nr - 1], g.right)) {
			ret[nr - 1].end = g.right->reduction;
			ret[nr - 1].end_ns = g.right->length_ns;
			continue;
		}
		ret[nr++] = (struct graph_curve_piece){
			.begin = g.left->reduction,
			.end = g.right->reduction,
			.begin_ns = g.left->length_ns,
			.end_ns = g.right->length_ns,
			.exact = g.straight,
		};
	}
	return nr;
}

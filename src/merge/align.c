/* SPDX-License-Identifier: Apache-2.0 */
/* align.c - from pairs to a clock: the line when there is one, else a chain of lines. */
#include "merge/align_private.h"

#include <stdlib.h>
#include <string.h>

/* Of what is calculated in fractions, whole ns on the safe side. */
static int64_t whole_down(merge_real v)
{
	int64_t n = (int64_t)v;
	return (merge_real)n > v ? n - 1 : n;
}

static int64_t whole_up(merge_real v)
{
	return -whole_down(-v);
}

static int64_t align_nearest(merge_real v)
{
	return whole_down(v + 0.5L);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static int align_by_time(const void *pa, const void *pb)
{
	const struct merge_limit *a = pa, *b = pb;
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	if (a->add_ns != b->add_ns)
		return a->add_ns < b->add_ns ? -1 : 1;
	return a->is_high - b->is_high;
}

static void align_put(struct merge_limits *all, struct merge_point p, bool back, bool inverse)
{
	int64_t at = (int64_t)(inverse ? p.b_ns : p.a_ns),
		by_other = (int64_t)(inverse ? p.a_ns : p.b_ns);
	all->limit[all->nr++] = (struct merge_limit){.at_ns = at,
		.add_ns = by_other - at,
		/* A's reading of what A received is not less than B's of its sending, ... */
		.is_high = back == inverse};
}

static void align_order(struct merge_limits *all)
{
	qsort(all->limit, all->nr, sizeof *all->limit, align_by_time);
	all->base_ns = all->nr ? all->limit[0].add_ns : 0;
}

static void take_hulls(struct merge_limits *all, const struct merge_pair_set *s, bool inverse)
{
	all->nr = 0;
	for (size_t i = 0; i < s->nr_there; i++)
		align_put(all, s->there[i], false, inverse);
	for (size_t i = 0; i < s->nr_back; i++)
		align_put(all, s->back[i], true, inverse);
	align_order(all);
}

static void take_slots(struct merge_limits *all, const struct merge_pair_set *s, bool inverse)
{
	all->nr = 0;
	for (size_t i = 0; i < MERGE_SLOTS; i++) {
		if (s->slot[i].has_high)
			align_put(all, s->slot[i].high, false, inverse);
		if (s->slot[i].has_low)
			align_put(all, s->slot[i].low, true, inverse);
	}
	align_order(all);
}

/* ---- one line -------------------------------------------------------------------------------- */

static enum base_status clip_all(struct merge_polygon *g, const struct merge_limits *all)
{
	merge_real low = 0, high = 0;
	merge_bend_start(all, &low, &high);
	enum base_status status = merge_polygon_start(
		g, all->from_ns, (merge_real)(all->to_ns - all->from_ns), low, high);
	for (size_t i = 0; status == BASE_OK && g->nr && i < all->nr; i++)
		status = merge_polygon_clip(g, all->limit[i].at_ns,
			merge_limit_value(all, all->limit[i]), all->limit[i].is_high);
	return status;
}

static merge_real farther(merge_real middle, merge_real low, merge_real high)
{
	return middle - low > high - middle ? middle - low : high - middle;
}

/* The widest places of a convex set's bounds are the ends. */
static enum base_status line_from(
	const struct merge_polygon *g, const struct merge_limits *all, struct merge_clock *ret)
{
	struct merge_corner line = merge_polygon_middle(g);
	merge_real low = 0, high = 0, low_end = 0, high_end = 0, least = 0, most = 0;
	size_t capacity = 0;
	enum base_status status = base_grow(&ret->knot, &capacity, 2, sizeof *ret->knot);
	if (status != BASE_OK)
		return status;
	ret->nr_knots = 2;
	ret->knot[0] = (struct merge_knot){all->from_ns, all->base_ns + align_nearest(line.p)};
	ret->knot[1] = (struct merge_knot){all->to_ns, all->base_ns + align_nearest(line.q)};
	merge_polygon_range(g, all->from_ns, &low, &high);
	merge_polygon_range(g, all->to_ns, &low_end, &high_end);
	for (size_t i = 0; i < g->nr; i++) {
		merge_real rise = g->corner[i].q - g->corner[i].p;
		least = !i || rise < least ? rise : least;
		most = !i || rise > most ? rise : most;
	}
	merge_real off = farther(line.p, low, high), off_end = farther(line.q, low_end, high_end);
	ret->offset_ns = ret->knot[0].add_ns;
	ret->offset_low_ns = all->base_ns + whole_down(low);
	ret->offset_high_ns = all->base_ns + whole_up(high);
	ret->drift_ppb = align_nearest((line.q - line.p) / g->length_ns * 1e9L);
	ret->drift_low_ppb = whole_down(least / g->length_ns * 1e9L);
	ret->drift_high_ppb = whole_up(most / g->length_ns * 1e9L);
	/* a knot is rounded, and so is what stands between two */
	ret->error_ns = (uint64_t)whole_up(off > off_end ? off : off_end) + 2;
	return BASE_OK;
}

/* ---- interface ------------------------------------------------------------------------------- */

static enum merge_fit one_sided(
	const struct merge_limits *all, struct merge_clock *ret, const struct merge_pair_set *s)
{
	merge_real best = 0;
	for (size_t i = 0; i < all->nr; i++) {
		struct merge_limit l = all->limit[i];
		__int128 away = (__int128)l.at_ns - (__int128)all->from_ns;
		merge_real drift = merge_drift_ns((merge_real)(away < 0 ? -away : away)),
			   v = merge_limit_value(all, l) + (l.is_high ? drift : -drift);
		if (!i || (l.is_high ? v < best : v > best))
			best = v;
	}
	bool is_high = all->nr && all->limit[0].is_high;
	ret->error_ns = UINT64_MAX;
	ret->offset_low_ns = is_high ? INT64_MIN : all->base_ns + whole_down(best);
	ret->offset_high_ns = is_high ? all->base_ns + whole_up(best) : INT64_MAX;
	ret->drift_low_ppb = -MERGE_DRIFT_MAX_PPB;
	ret->drift_high_ppb = MERGE_DRIFT_MAX_PPB;
	return s->nr_there ? MERGE_FIT_there_only : MERGE_FIT_back_only;
}

static enum base_status fit_bends(const struct merge_pair_set *s, bool inverse,
	struct merge_limits *all, struct merge_clock *ret, enum merge_fit *ret_fit)
{
	bool possible = false;
	take_slots(all, s, inverse);
	enum base_status status = merge_bend_fit(all, ret, &possible);
	*ret_fit = possible ? MERGE_FIT_ok : MERGE_FIT_contradiction;
	return status;
}

enum base_status merge_clock_fit(struct merge_pair_set *s, bool inverse, int64_t from_ns,
	int64_t to_ns, struct merge_clock *ret, enum merge_fit *ret_fit)
{
	struct merge_limits all = {
		.from_ns = from_ns, .to_ns = to_ns > from_ns ? to_ns : from_ns + 1};
	struct merge_polygon g = {0};
	enum base_status status;

	*ret = (struct merge_clock){.error_ns = UINT64_MAX};
	*ret_fit = MERGE_FIT_none;
	merge_pair_set_settle(s);
	size_t nr = s->nr_there + s->nr_back;
	if (!nr)
		return BASE_OK;
	all.limit = base_alloc((nr > 2 * MERGE_SLOTS ? nr : 2 * MERGE_SLOTS) * sizeof *all.limit);
	if (!all.limit)
		return BASE_ERR_NOMEM;
	take_hulls(&all, s, inverse);
	if (!s->nr_there || !s->nr_back) {
		*ret_fit = one_sided(&all, ret, s);
		base_free(all.limit);
		return BASE_OK;
	}
	status = clip_all(&g, &all);
	if (status == BASE_OK && g.nr) {
		*ret_fit = MERGE_FIT_ok;
		status = line_from(&g, &all, ret);
	} else if (status == BASE_OK) {
		status = fit_bends(s, inverse, &all, ret, ret_fit);
	}
	merge_polygon_fini(&g);
	base_free(all.limit);
	if (status != BASE_OK)
		merge_clock_fini(ret);
	return status;
}

void merge_clock_fini(struct merge_clock *c)
{
	base_free(c->knot);
	*c = (struct merge_clock){.error_ns = UINT64_MAX};
}

int64_t merge_clock_map(const struct merge_clock *c, int64_t t_ns)
{
	size_t low = 1, high = c->nr_knots - 1; /* the end of the line that holds t */
	__int128 add = 0;

	if (t_ns > (int64_t)MERGE_TIME_MAX_NS)
		t_ns = (int64_t)MERGE_TIME_MAX_NS; /* damaged */
	if (c->nr_knots == 1)
		add = c->knot[0].add_ns;
	if (c->nr_knots >= 2) {
		while (low < high) {
			size_t middle = low + (high - low) / 2;
			if (c->knot[middle].at_ns < t_ns)
				low = middle + 1;
			else
				high = middle;
		}
		struct merge_knot a = c->knot[low - 1], b = c->knot[low];
		__int128 rise = (__int128)b.add_ns - a.add_ns, span = (__int128)b.at_ns - a.at_ns,
			 product = rise * ((__int128)t_ns - a.at_ns), whole = product / span;
		/* down, also below zero: then the result never decreases */
		add = a.add_ns + whole - (product < whole * span);
	}
	__int128 sum = (__int128)t_ns + add;
	return sum > INT64_MAX ? INT64_MAX : sum < INT64_MIN ? INT64_MIN : (int64_t)sum;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bend.c - clocks that bend: a chain of lines, each as long as the limits let it be, and bounds
 * that hold for whatever the clocks did between two pairs.
 */
#include "merge/align_private.h"

#include <string.h>

/* ---- bounds without a line ------------------------------------------------------------------- */

static merge_real bend_between(int64_t a_ns, int64_t b_ns)
{
	return (merge_real)(a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns);
}

void merge_bend_start(const struct merge_limits *all, merge_real *ret_low, merge_real *ret_high)
{
	bool has_low = false, has_high = false;
	for (size_t i = 0; i < all->nr; i++) {
		struct merge_limit l = all->limit[i];
		merge_real drift = merge_drift_ns(bend_between(l.at_ns, all->from_ns)),
			   v = merge_limit_value(all, l);
		if (l.is_high && (!has_high || v + drift < *ret_high)) {
			*ret_high = v + drift;
			has_high = true;
		}
		if (!l.is_high && (!has_low || v - drift > *ret_low)) {
			*ret_low = v - drift;
			has_low = true;
		}
	}
}

struct bound { /* at one time, what all limits permit */
	int64_t at_ns;
	merge_real low, high;
	bool has_low, has_high;
};

static void spread(struct bound *to, const struct bound *from)
{
	merge_real drift = merge_drift_ns(bend_between(to->at_ns, from->at_ns));
	if (from->has_high && (!to->has_high || from->high + drift < to->high)) {
		to->high = from->high + drift;
		to->has_high = true;
	}
	if (from->has_low && (!to->has_low || from->low - drift > to->low)) {
		to->low = from->low - drift;
		to->has_low = true;
	}
}

/* By from_ns, by each limit, by to_ns. False: the limits contradict each other. */
static bool bounds_of(const struct merge_limits *all, struct bound *b, size_t nr)
{
	b[0] = (struct bound){.at_ns = all->from_ns};
	b[nr - 1] = (struct bound){.at_ns = all->to_ns};
	for (size_t i = 0; i < all->nr; i++) {
		struct merge_limit l = all->limit[i];
		merge_real v = merge_limit_value(all, l);
		b[i + 1] = (struct bound){.at_ns = l.at_ns,
			.low = v,
			.high = v,
			.has_low = !l.is_high,
			.has_high = l.is_high};
	}
	for (size_t i = 1; i < nr; i++)
		spread(&b[i], &b[i - 1]);
	for (size_t i = nr - 1; i--;)
		spread(&b[i], &b[i + 1]);
	for (size_t i = 0; i < nr; i++)
		if (b[i].low > b[i].high)
			return false;
	return true;
}

/* How far the chain may be off anywhere: between two neighbours the bounds have peaks. */
static merge_real worst_error(
	const struct bound *b, size_t nr, const struct merge_clock *c, int64_t base_ns)
{
	merge_real worst = 0;
	for (size_t i = 0; i + 1 < nr; i++) {
		merge_real drift = merge_drift_ns(bend_between(b[i].at_ns, b[i + 1].at_ns)),
			   high = (b[i].high + b[i + 1].high + drift) / 2,
			   low = (b[i].low + b[i + 1].low - drift) / 2,
			   v = (merge_real)(merge_clock_map(c, b[i].at_ns) - b[i].at_ns - base_ns),
			   w = (merge_real)(merge_clock_map(c, b[i + 1].at_ns) - b[i + 1].at_ns -
					    base_ns);
		merge_real above = high - (v < w ? v : w), below = (v < w ? w : v) - low;
		worst = above > worst ? above : worst;
		worst = below > worst ? below : worst;
	}
	return worst;
}

/* ---- the chain ------------------------------------------------------------------------------- */

struct chain {
	struct link { /* one line's possibilities, from one knot to the next */
		int64_t from_ns, to_ns;
		struct merge_polygon lines;
	} * link;
	size_t nr, capacity;
};

static enum base_status bend_add_link(struct chain *c, const struct merge_polygon *g, int64_t to_ns)
{
	enum base_status status = base_grow(&c->link, &c->capacity, c->nr + 1, sizeof *c->link);
	if (status != BASE_OK)
		return status;
	struct link *l = &c->link[c->nr];
	*l = (struct link){.from_ns = g->from_ns, .to_ns = to_ns};
	l->lines.from_ns = g->from_ns;
	l->lines.length_ns = g->length_ns;
	status = base_grow(&l->lines.corner, &l->lines.capacity, g->nr, sizeof *g->corner);
	if (status != BASE_OK)
		return status;
	memcpy(l->lines.corner, g->corner, g->nr * sizeof *g->corner);
	l->lines.nr = g->nr;
	c->nr++;
	return BASE_OK;
}

static void free_chain(struct chain *c)
{
	for (size_t i = 0; i < c->nr; i++)
		merge_polygon_fini(&c->link[i].lines);
	base_free(c->link);
}

/* What is left of `now` within the bounds goes to `next`; both keep their memory. */
static enum base_status try_bound(
	struct merge_polygon *next, const struct merge_polygon *now, const struct bound *b)
{
	enum base_status status =
		base_grow(&next->corner, &next->capacity, now->nr, sizeof *next->corner);
	if (status != BASE_OK)
		return status;
	memcpy(next->corner, now->corner, now->nr * sizeof *now->corner);
	next->nr = now->nr;
	next->from_ns = now->from_ns;
	next->length_ns = now->length_ns;
	status = merge_polygon_clip(next, b->at_ns, b->high, true);
	return status == BASE_OK ? merge_polygon_clip(next, b->at_ns, b->low, false) : status;
}

/*
 * A line goes on as long as it is within the bounds, which know what comes: so another can always
 * begin where it ends.
 */
static enum base_status make_chain(const struct merge_limits *all, const struct bound *b, size_t nr,
	struct chain *c, bool *ret_possible)
{
	struct merge_polygon now = {0}, next = {0};
	merge_real length_ns = (merge_real)(all->to_ns - all->from_ns);
	int64_t last_ns = all->from_ns;
	enum base_status status =
		merge_polygon_start(&now, all->from_ns, length_ns, b[0].low, b[0].high);
	*ret_possible = true;
	for (size_t i = 1; status == BASE_OK && *ret_possible && i < nr;) {
		status = try_bound(&next, &now, &b[i]);
		if (status != BASE_OK)
			break;
		if (next.nr) {
			struct merge_polygon swap = now;
			now = next;
			next = swap;
			last_ns = b[i].at_ns > last_ns ? b[i].at_ns : last_ns;
			i++;
			continue;
		}
		merge_real low = 0, high = 0;
		*ret_possible = last_ns > now.from_ns && c->nr < MERGE_KNOTS_MAX;
		if (!*ret_possible)
			break;
		status = bend_add_link(c, &now, last_ns);
		merge_polygon_range(&now, last_ns, &low, &high);
		if (status == BASE_OK)
			status = merge_polygon_start(&now, last_ns, length_ns, low, high);
	}
	if (status == BASE_OK && *ret_possible)
		status = bend_add_link(c, &now, last_ns > now.from_ns ? last_ns : last_ns + 1);
	merge_polygon_fini(&now);
	merge_polygon_fini(&next);
	return status;
}

static int64_t bend_nearest(merge_real v)
{
	return (int64_t)(v < 0 ? v - 0.5L : v + 0.5L);
}

/* From the end to the beginning: each line ends where the next one begins. */
static enum base_status knots_of(const struct chain *c, int64_t base_ns, struct merge_clock *ret)
{
	size_t capacity = 0;
	enum base_status status = base_grow(&ret->knot, &capacity, c->nr + 1, sizeof *ret->knot);
	if (status != BASE_OK)
		return status;
	ret->nr_knots = c->nr + 1;
	merge_real value = 0;
	for (size_t i = c->nr; i--;) {
		const struct link *l = &c->link[i];
		struct merge_corner line;
		if (i + 1 == c->nr) {
			line = merge_polygon_middle(&l->lines);
			value = merge_line_at(&l->lines, line, l->to_ns);
		} else {
			line = merge_polygon_through(&l->lines, l->to_ns, value);
		}
		ret->knot[i + 1] = (struct merge_knot){l->to_ns, base_ns + bend_nearest(value)};
		value = line.p;
	}
	ret->knot[0] = (struct merge_knot){c->link[0].from_ns, base_ns + bend_nearest(value)};
	return BASE_OK;
}

enum base_status merge_bend_fit(
	const struct merge_limits *all, struct merge_clock *ret, bool *ret_possible)
{
	struct chain c = {0};
	size_t nr = all->nr + 2;
	struct bound *b = base_alloc(nr * sizeof *b);
	enum base_status status = b ? BASE_OK : BASE_ERR_NOMEM;
	*ret_possible = b && bounds_of(all, b, nr);
	if (*ret_possible)
		status = make_chain(all, b, nr, &c, ret_possible);
	if (status == BASE_OK && *ret_possible)
		status = knots_of(&c, all->base_ns, ret);
	if (status == BASE_OK && *ret_possible) {
		struct merge_knot first = ret->knot[0], last = ret->knot[ret->nr_knots - 1];
		merge_real length = (merge_real)(last.at_ns - first.at_ns);
		ret->bends = true;
		ret->offset_ns = first.add_ns;
		ret->offset_low_ns = all->base_ns + bend_nearest(b[0].low) - 1;
		ret->offset_high_ns = all->base_ns + bend_nearest(b[0].high) + 1;
		ret->drift_ppb =
			bend_nearest((merge_real)(last.add_ns - first.add_ns) / length * 1e9L);
		ret->drift_low_ppb = -MERGE_DRIFT_MAX_PPB;
		ret->drift_high_ppb = MERGE_DRIFT_MAX_PPB;
		ret->error_ns = (uint64_t)bend_nearest(worst_error(b, nr, ret, all->base_ns)) + 3;
	}
	free_chain(&c);
	base_free(b);
	return status;
}

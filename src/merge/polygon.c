/* SPDX-License-Identifier: Apache-2.0 */
/* polygon.c - a convex set of lines, each a point (its values at two times). */
#include "merge/align_private.h"

#include <string.h>

static merge_real share_at(const struct merge_polygon *g, int64_t at_ns)
{
	__int128 since = (__int128)at_ns - (__int128)g->from_ns;
	return (merge_real)since / g->length_ns;
}

static merge_real polygon_value(struct merge_corner line, merge_real share)
{
	return line.p + (line.q - line.p) * share;
}

merge_real merge_line_at(const struct merge_polygon *g, struct merge_corner line, int64_t at_ns)
{
	return polygon_value(line, share_at(g, at_ns));
}

enum base_status merge_polygon_start(struct merge_polygon *g, int64_t from_ns, merge_real length_ns,
	merge_real low, merge_real high)
{
	merge_real drift = merge_drift_ns(length_ns) + MERGE_ROUNDING_NS;
	enum base_status status = base_grow(&g->corner, &g->capacity, 4, sizeof *g->corner);
	if (status != BASE_OK)
		return status;
	g->from_ns = from_ns;
	g->length_ns = length_ns;
	g->nr = 0;
	if (low > high)
		return BASE_OK;
	g->nr = 4;
	g->corner[0] = (struct merge_corner){low, low - drift};
	g->corner[1] = (struct merge_corner){high, high - drift};
	g->corner[2] = (struct merge_corner){high, high + drift};
	g->corner[3] = (struct merge_corner){low, low + drift};
	return BASE_OK;
}

/* Sutherland and Hodgman, of one edge. */
enum base_status merge_polygon_clip(
	struct merge_polygon *g, int64_t at_ns, merge_real limit, bool is_high)
{
	merge_real share = share_at(g, at_ns), sign = is_high ? 1 : -1;
	size_t n = 0;
	enum base_status status =
		base_grow(&g->spare, &g->spare_capacity, 2 * g->nr + 1, sizeof *g->spare);
	if (status != BASE_OK)
		return status;
	for (size_t i = 0; i < g->nr; i++) {
		struct merge_corner a = g->corner[i], b = g->corner[(i + 1) % g->nr];
		merge_real over_a = sign * (polygon_value(a, share) - limit),
			   over_b = sign * (polygon_value(b, share) - limit);
		if (over_a <= 0)
			g->spare[n++] = a;
		if ((over_a < 0 && over_b > 0) || (over_a > 0 && over_b < 0)) {
			merge_real t = over_a / (over_a - over_b);
			g->spare[n++] =
				(struct merge_corner){a.p + (b.p - a.p) * t, a.q + (b.q - a.q) * t};
		}
	}
	struct merge_corner *corner = g->corner;
	size_t capacity = g->capacity;
	g->corner = g->spare;
	g->capacity = g->spare_capacity;
	g->spare = corner;
	g->spare_capacity = capacity;
	g->nr = n;
	return BASE_OK;
}

void merge_polygon_range(
	const struct merge_polygon *g, int64_t at_ns, merge_real *ret_low, merge_real *ret_high)
{
	merge_real share = share_at(g, at_ns);
	for (size_t i = 0; i < g->nr; i++) {
		merge_real v = polygon_value(g->corner[i], share);
		if (!i || v < *ret_low)
			*ret_low = v;
		if (!i || v > *ret_high)
			*ret_high = v;
	}
}

struct merge_corner merge_polygon_middle(const struct merge_polygon *g)
{
	struct merge_corner mean = {0}, centre = {0};
	merge_real area = 0;
	for (size_t i = 0; i < g->nr; i++) {
		mean.p += g->corner[i].p / (merge_real)g->nr;
		mean.q += g->corner[i].q / (merge_real)g->nr;
	}
	/* the centroid, of triangles around the mean */
	for (size_t i = 0; i < g->nr; i++) {
		struct merge_corner a = g->corner[i], b = g->corner[(i + 1) % g->nr];
		merge_real twice =
			(a.p - mean.p) * (b.q - mean.q) - (b.p - mean.p) * (a.q - mean.q);
		area += twice;
		centre.p += twice * (a.p + b.p + mean.p) / 3;
		centre.q += twice * (a.q + b.q + mean.q) / 3;
	}
	if (area < 1e-6L && area > -1e-6L)
		return mean; /* hardly an area at all */
	return (struct merge_corner){centre.p / area, centre.q / area};
}

struct merge_corner merge_polygon_through(
	const struct merge_polygon *g, int64_t at_ns, merge_real wanted)
{
	merge_real share = share_at(g, at_ns), nearest = 0;
	struct merge_corner end[2], near = {0};
	size_t n = 0;
	for (size_t i = 0; i < g->nr; i++) {
		struct merge_corner a = g->corner[i], b = g->corner[(i + 1) % g->nr];
		merge_real over_a = polygon_value(a, share) - wanted,
			   over_b = polygon_value(b, share) - wanted;
		merge_real off = over_a < 0 ? -over_a : over_a;
		if (!i || off < nearest) {
			nearest = off;
			near = a;
		}
		if (((over_a <= 0 && over_b > 0) || (over_a > 0 && over_b <= 0)) && n < 2) {
			merge_real t = over_a / (over_a - over_b);
			end[n++] =
				(struct merge_corner){a.p + (b.p - a.p) * t, a.q + (b.q - a.q) * t};
		}
	}
	if (n < 2)
		return near; /* the value lies on the rim */
	return (struct merge_corner){(end[0].p + end[1].p) / 2, (end[0].q + end[1].q) / 2};
}

void merge_polygon_fini(struct merge_polygon *g)
{
	base_free(g->corner);
	base_free(g->spare);
	*g = (struct merge_polygon){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* pair_set.c - of any number of pairs, those that say something about two clocks. */
#include "merge/align_private.h"

#include <stdlib.h>
#include <string.h>

enum {
	POINTS_MAX = 2 * MERGE_HULL_MAX, /* gathered before the hull is taken */
	SLOT_FIRST_NS = 1 << 16,
	PPB = 1000 * 1000 * 1000,
};

static int64_t pair_set_ahead(struct merge_point p)
{
	return (int64_t)(p.b_ns - p.a_ns);
}

static int pair_set_by_time(const void *pa, const void *pb)
{
	const struct merge_point *a = pa, *b = pb;
	int64_t da = pair_set_ahead(*a), db = pair_set_ahead(*b);
	if (a->a_ns != b->a_ns)
		return a->a_ns < b->a_ns ? -1 : 1;
	return (da > db) - (da < db);
}

/* Is q not below the line from p to r? (`sign` -1: not above.) Exact: 62 bits times 63. */
static bool is_inside(struct merge_point p, struct merge_point q, struct merge_point r, int sign)
{
	__int128 left =
		(__int128)(int64_t)(q.a_ns - p.a_ns) * (pair_set_ahead(r) - pair_set_ahead(p));
	__int128 right =
		(__int128)(int64_t)(r.a_ns - p.a_ns) * (pair_set_ahead(q) - pair_set_ahead(p));
	return sign > 0 ? right >= left : right <= left;
}

/* Is the line from p to r steeper than any two clocks differ? (With room: by the other clock, too.)
 */
static bool is_too_steep(struct merge_point p, struct merge_point r, int direction)
{
	__int128 rise = (__int128)(pair_set_ahead(r) - pair_set_ahead(p)) * PPB * direction;
	return rise > (__int128)(int64_t)(r.a_ns - p.a_ns) * 2 * MERGE_DRIFT_MAX_PPB;
}

/* The lower (sign 1) or upper (-1) hull, in place; only the part that lines of believable drift
 * touch. */
static size_t hull(struct merge_point *p, size_t nr, int sign)
{
	size_t n = 0, first = 0;
	qsort(p, nr, sizeof *p, pair_set_by_time);
	for (size_t i = 0; i < nr; i++) {
		if (n && p[n - 1].a_ns == p[i].a_ns) {
			if (sign > 0)
				continue; /* the lower came first */
			n--;
		}
		while (n >= 2 && is_inside(p[n - 2], p[n - 1], p[i], sign))
			n--;
		p[n++] = p[i];
	}
	while (n - first >= 2 && is_too_steep(p[first], p[first + 1], -sign))
		first++;
	while (n - first >= 2 && is_too_steep(p[n - 2], p[n - 1], sign))
		n--;
	n -= first;
	memmove(p, p + first, n * sizeof *p);
	/* Every second one left out: the bounds become wider, not wrong. */
	while (n > MERGE_HULL_MAX) {
		for (size_t i = 1; 2 * i < n; i++)
			p[i] = p[2 * i];
		n = (n + 1) / 2;
	}
	return n;
}

void merge_pair_set_settle(struct merge_pair_set *s)
{
	if (s->nr_there)
		s->nr_there = hull(s->there, s->nr_there, 1);
	if (s->nr_back)
		s->nr_back = hull(s->back, s->nr_back, -1);
}

static void keep_in_slot(struct merge_slot *slot, bool back, struct merge_point p)
{
	if (!back && (!slot->has_high || pair_set_ahead(p) < pair_set_ahead(slot->high))) {
		slot->high = p;
		slot->has_high = true;
	}
	if (back && (!slot->has_low || pair_set_ahead(p) > pair_set_ahead(slot->low))) {
		slot->low = p;
		slot->has_low = true;
	}
}

static void double_slots(struct merge_pair_set *s)
{
	for (size_t i = 0; i < MERGE_SLOTS; i++) {
		struct merge_slot from = s->slot[i];
		s->slot[i] = (struct merge_slot){0};
		if (from.has_low)
			keep_in_slot(&s->slot[i / 2], true, from.low);
		if (from.has_high)
			keep_in_slot(&s->slot[i / 2], false, from.high);
	}
	s->slot_ns *= 2;
}

enum base_status merge_pair_add(
	struct merge_pair_set *s, bool back, uint64_t sent_ns, uint64_t received_ns)
{
	struct merge_point **list = back ? &s->back : &s->there;
	size_t *nr = back ? &s->nr_back : &s->nr_there,
	       *capacity = back ? &s->back_capacity : &s->there_capacity;
	struct merge_point p = back ? (struct merge_point){.a_ns = received_ns, .b_ns = sent_ns}
				    : (struct merge_point){.a_ns = sent_ns, .b_ns = received_ns};
	if (p.a_ns > MERGE_TIME_MAX_NS || p.b_ns > MERGE_TIME_MAX_NS)
		return BASE_OK;
	if (!s->slot) {
		s->slot = base_alloc(MERGE_SLOTS * sizeof *s->slot);
		if (!s->slot)
			return BASE_ERR_NOMEM;
		s->slot_ns = SLOT_FIRST_NS;
	}
	if (*nr == POINTS_MAX)
		*nr = hull(*list, *nr, back ? -1 : 1);
	enum base_status status = base_grow(list, capacity, *nr + 1, sizeof **list);
	if (status != BASE_OK)
		return status;
	(*list)[(*nr)++] = p;
	++*(back ? &s->sent_back : &s->sent_there);
	while (p.a_ns / s->slot_ns >= MERGE_SLOTS)
		double_slots(s);
	keep_in_slot(&s->slot[p.a_ns / s->slot_ns], back, p);
	return BASE_OK;
}

void merge_pair_set_fini(struct merge_pair_set *s)
{
	base_free(s->there);
	base_free(s->back);
	base_free(s->slot);
	*s = (struct merge_pair_set){0};
}

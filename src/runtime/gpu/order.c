/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - slices sorted into lanes; which call started what. */
#include "runtime/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

enum { OVERLAP_NS = 1000 }; /* what clocks of a microsecond make of neighbours */

static int gpu_by_time(const void *a, const void *b)
{
	const struct gpu_slice *x = a, *y = b;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	if (x->kind != y->kind) /* an operator is around the call that lasts as long */
		return x->kind < y->kind ? -1 : 1;
	if (x->correlation != y->correlation)
		return x->correlation < y->correlation ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static void gpu_sort_lane(struct gpu_slice *s, size_t nr)
{
	size_t i = 1;
	while (i < nr && gpu_by_time(&s[i - 1], &s[i]) <= 0)
		i++;
	if (i < nr) /* files are in order, mostly */
		qsort(s, nr, sizeof *s, gpu_by_time);
}

/* Lane after lane, each in order of time. */
static void gpu_find_lanes(struct gpu_trace *g)
{
	struct gpu_slice *sorted = base_alloc((g->nr + 1) * sizeof *sorted);
	size_t first = 0;
	if (!sorted) {
		g->failed = true;
		return;
	}
	for (size_t i = 0; i < g->nr; i++) {
		struct gpu_lane *l = &g->lane[g->slice[i].lane];
		l->nr++;
		l->has_collectives |=
			g->slice[i].kind == GPU_DEVICE && g->slice[i].what == GPU_COLLECTIVE;
	}
	for (size_t i = 0; i < g->nr_lanes; i++) {
		g->lane[i].first = first;
		first += g->lane[i].nr;
		g->lane[i].nr = 0;
	}
	for (size_t i = 0; i < g->nr; i++) {
		struct gpu_lane *l = &g->lane[g->slice[i].lane];
		sorted[l->first + l->nr++] = g->slice[i];
	}
	base_free(g->slice);
	g->slice = sorted;
	g->capacity = g->nr + 1;
	for (size_t i = 0; i < g->nr_lanes; i++)
		gpu_sort_lane(&g->slice[g->lane[i].first], g->lane[i].nr);
}

/* A stream does one thing after the other: what overlaps begins when the one before ends. */
static void gpu_separate(struct gpu_trace *g, const struct gpu_lane *l)
{
	int64_t end_ns = INT64_MIN;
	for (size_t i = l->first; i < l->first + l->nr; i++) {
		struct gpu_slice *s = &g->slice[i];
		g->counts.nr_overlap += end_ns != INT64_MIN && s->begin_ns + OVERLAP_NS < end_ns;
		if (s->begin_ns < end_ns)
			s->begin_ns = end_ns;
		if (s->end_ns < s->begin_ns)
			s->end_ns = s->begin_ns;
		end_ns = s->end_ns;
	}
}

/* Of calls within each other the innermost: it comes last. */
static void gpu_find_calls(struct gpu_trace *g)
{
	for (size_t i = 0; i < g->nr && !g->failed; i++) {
		const struct gpu_slice *s = &g->slice[i];
		uint32_t rank = g->lane[s->lane].rank;
		uint64_t known;
		if (s->kind != GPU_CALL || !s->correlation)
			continue;
		if (base_map_get(&g->calls, rank, (uint64_t)s->correlation, &known)) {
			const struct gpu_slice *other = &g->slice[known];
			g->counts.nr_duplicate +=
				other->lane != s->lane || other->end_ns < s->end_ns;
		}
		g->failed |= base_map_put(&g->calls, rank, (uint64_t)s->correlation, i) != BASE_OK;
	}
}

const struct gpu_slice *format_gpu_call(
	const struct gpu_trace *g, uint32_t rank, int64_t correlation)
{
	uint64_t ix;
	return correlation && base_map_get(&g->calls, rank, (uint64_t)correlation, &ix)
		       ? &g->slice[ix]
		       : NULL;
}

const struct gpu_more *format_gpu_said(
	const struct gpu_trace *g, uint32_t rank, int64_t correlation)
{
	uint64_t ix;
	return correlation && base_map_get(&g->syncs, rank, (uint64_t)correlation, &ix)
		       ? &g->more[ix]
		       : NULL;
}

static int gpu_by_duration(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* Of calls that had returned when their work began, the median: these waited for nothing. */
static void gpu_find_issue(struct gpu_trace *g)
{
	size_t nr = 0;
	int64_t *took_ns = base_alloc((g->nr + 1) * sizeof *took_ns);
	g->failed |= !took_ns;
	for (size_t i = 0; took_ns && i < g->nr; i++) {
		const struct gpu_slice *s = &g->slice[i];
		const struct gpu_slice *c =
			s->kind == GPU_DEVICE
				? format_gpu_call(g, g->lane[s->lane].rank, s->correlation)
				: NULL;
		if (c && c->end_ns <= s->begin_ns)
			took_ns[nr++] = c->end_ns - c->begin_ns;
	}
	if (took_ns && nr) {
		qsort(took_ns, nr, sizeof *took_ns, gpu_by_duration);
		g->issue_ns = took_ns[nr / 2];
	}
	base_free(took_ns);
}

int64_t format_gpu_issued(
	const struct gpu_trace *g, const struct gpu_slice *work, const struct gpu_slice *call)
{
	int64_t usual_ns = call->begin_ns + g->issue_ns;
	if (work->begin_ns >= call->end_ns)
		return call->end_ns;
	return usual_ns < work->begin_ns ? usual_ns : work->begin_ns;
}

/* When the call of each slice of a stream began: a stream works in the order of calls. */
static void gpu_find_launches(struct gpu_trace *g, struct gpu_lane *l)
{
	int64_t last_ns = INT64_MIN;
	l->launch_ns = base_alloc((l->nr + 1) * sizeof *l->launch_ns);
	if (!l->launch_ns) {
		g->failed = true;
		return;
	}
	for (size_t i = 0; i < l->nr; i++) {
		const struct gpu_slice *c =
			format_gpu_call(g, l->rank, g->slice[l->first + i].correlation);
		if (c && c->begin_ns > last_ns)
			last_ns = c->begin_ns;
		l->launch_ns[i] = last_ns;
	}
}

size_t format_gpu_last_launched(
	const struct gpu_trace *g, const struct gpu_lane *l, int64_t before_ns)
{
	(void)g;
	size_t n = l->launch_ns ? BASE_PARTITION(i, l->nr, l->launch_ns[i] < before_ns) : 0;
	return n ? l->first + n : 0;
}

/* The thread whose time is the program's: that with the steps, else that with most slices. */
static void gpu_find_main(struct gpu_trace *g)
{
	uint64_t *best = base_alloc((g->nr_ranks + 1) * sizeof *best);
	g->failed |= !best;
	for (uint32_t i = 0; best && i < g->nr_lanes; i++) {
		const struct gpu_lane *l = &g->lane[i];
		uint64_t score = l->nr;
		for (size_t k = l->first; !l->is_stream && k < l->first + l->nr; k++)
			if (g->slice[k].kind == GPU_NOTE && g->slice[k].what == GPU_NOTE_STEP)
				score += UINT32_MAX;
		if (l->is_stream || score <= best[l->rank])
			continue;
		best[l->rank] = score;
		g->rank[l->rank].main_lane = i;
	}
	base_free(best);
}

static void gpu_find_begin(struct gpu_trace *g)
{
	g->begin_ns = g->nr ? INT64_MAX : 0;
	for (size_t i = 0; i < g->nr; i++)
		if (g->slice[i].begin_ns < g->begin_ns)
			g->begin_ns = g->slice[i].begin_ns;
}

/* Of helpers' threads nothing is kept that comes later than all that matters. */
static void gpu_find_end(struct gpu_trace *g)
{
	g->end_ns = g->begin_ns;
	for (uint32_t i = 0; i < g->nr_lanes; i++) {
		const struct gpu_lane *l = &g->lane[i];
		if (!l->is_stream && i != g->rank[l->rank].main_lane)
			continue;
		for (size_t k = l->first; k < l->first + l->nr; k++)
			if (g->slice[k].end_ns > g->end_ns)
				g->end_ns = g->slice[k].end_ns;
	}
}

void format_gpu_order(struct gpu_trace *g)
{
	gpu_find_lanes(g);
	if (g->failed)
		return;
	for (size_t i = 0; i < g->nr_lanes; i++)
		if (g->lane[i].is_stream)
			gpu_separate(g, &g->lane[i]);
	gpu_find_calls(g);
	if (!g->failed)
		gpu_find_main(g);
	if (!g->failed)
		format_gpu_meet(g);
	if (g->failed || g->stranger)
		return;
	gpu_find_begin(g);
	gpu_find_issue(g);
	for (size_t i = 0; i < g->nr_lanes && !g->failed; i++)
		if (g->lane[i].is_stream)
			gpu_find_launches(g, &g->lane[i]);
	if (g->failed)
		return;
	gpu_find_end(g);
	format_gpu_order_threads(g);
	format_gpu_order_streams(g);
	if (!g->failed)
		format_gpu_add_meetings(g);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - what threads waited for: streams, in calls that synchronise and in copies that block; each other, when one
 * runs the backward pass for another.
 */
#include "runtime/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

enum {
	SKEW_NS =
		20000, /* so much later than its wait's end may a device's clock say that something ended */
	LONG_ISSUES =
		8, /* a call that takes so many times what launches usually take has waited, if */
	FULL_QUEUE =
		512, /* ... so many pieces of work are before its own: queues hold a thousand or so */
};

/* ---- calls that wait for streams -------------------------------------------------------------- */

struct gpu_sync {
	const struct gpu_slice *call;
	uint32_t stream;   /* only that lane; GPU_NONE: all */
	int64_t before_ns; /* what was launched before */
	bool only_last; /* which stream it is is not known: that whose work ended last within the call */
	bool is_inferred;
};

/* The stream's work that the call waited for: index + 1; 0: none. *ret_end: when it ended. */
static size_t gpu_awaited(
	const struct gpu_trace *g, const struct gpu_sync *y, uint32_t lane, int64_t *ret_end_ns)
{
	const struct gpu_lane *l = &g->lane[lane];
	size_t at = format_gpu_last_launched(g, l, y->before_ns);
	size_t ended = BASE_PARTITION(i, l->nr, g->slice[l->first + i].end_ns <= y->call->end_ns);
	if (y->only_last && at > l->first + ended)
		at = l->first + ended;
	if (at <= l->first)
		return 0;
	*ret_end_ns = g->slice[at - 1].end_ns;
	return at;
}

static void gpu_add_sync_edge(
	struct gpu_trace *g, const struct gpu_sync *y, uint32_t lane, int64_t end_ns, bool waited)
{
	/* with nothing to wait for, the call's own time comes after it has looked */
	bool was_over = end_ns <= y->call->begin_ns;
	int64_t to_ns = was_over ? y->call->begin_ns : y->call->end_ns;
	format_gpu_add_edge(g, (struct gpu_edge){.from = lane,
				       .to = y->call->lane,
				       .from_ns = end_ns > to_ns ? to_ns : end_ns,
				       .wait_ns = waited ? y->call->begin_ns : to_ns,
				       .to_ns = to_ns,
				       .way = GPU_WAY_SYNC});
}

static void gpu_sync(struct gpu_trace *g, const struct gpu_sync *y)
{
	uint32_t rank = g->lane[y->call->lane].rank, last = GPU_NONE;
	int64_t last_ns = INT64_MIN, end_ns = 0;
	for (uint32_t i = 0; i < g->nr_lanes; i++) {
		const struct gpu_lane *l = &g->lane[i];
		if (!l->is_stream || l->rank != rank || (y->stream != GPU_NONE && y->stream != i))
			continue;
		size_t at = gpu_awaited(g, y, i, &end_ns);
		if (at && end_ns > y->call->end_ns + SKEW_NS) {
			g->counts.nr_late_sync++;
			continue;
		}
		if (at && end_ns > last_ns) {
			last = i;
			last_ns = end_ns;
		}
	}
	g->counts.nr_inferred_sync += y->is_inferred && last_ns > y->call->begin_ns;
	if (last != GPU_NONE)
		gpu_add_sync_edge(g, y, last, last_ns, last_ns > y->call->begin_ns);
	for (uint32_t i = 0; i < g->nr_lanes && !y->only_last; i++) {
		struct gpu_lane *l = &g->lane[i];
		if (!l->is_stream || l->rank != rank || (y->stream != GPU_NONE && y->stream != i))
			continue;
		size_t at = gpu_awaited(g, y, i, &end_ns);
		bool is_new = at && l->synced != at && end_ns <= y->call->end_ns + SKEW_NS;
		if (is_new && i != last)
			gpu_add_sync_edge(g, y, i, end_ns, false);
		if (is_new)
			l->synced = (uint32_t)at;
	}
}

static void gpu_sync_call(struct gpu_trace *g, const struct gpu_slice *s)
{
	uint32_t rank = g->lane[s->lane].rank;
	const struct gpu_more *said = format_gpu_said(g, rank, s->correlation);
	struct gpu_sync y = {.call = s, .stream = GPU_NONE, .before_ns = s->begin_ns};
	bool is_said =
		said && (s->what == GPU_CALL_STREAM ? said->stream >= 0 : said->on_stream >= 0);
	if (s->what == GPU_CALL_STREAM && said && said->stream >= 0)
		y.stream = format_gpu_lane_find(g, true, rank, said->device, said->stream);
	else if (s->what == GPU_CALL_EVENT && said && said->on_stream >= 0) {
		const struct gpu_slice *record = format_gpu_call(g, rank, said->record);
		y.stream = format_gpu_lane_find(g, true, rank, said->device, said->on_stream);
		y.before_ns = record ? record->begin_ns : s->begin_ns;
	} else if (s->what != GPU_CALL_DEVICE) {
		y.only_last = y.is_inferred = true;
	}
	if (s->what != GPU_CALL_DEVICE && is_said && y.stream == GPU_NONE)
		return; /* that stream never had anything to do */
	gpu_sync(g, &y);
}

/* A copy that is over when its call returns: the call waited for it. */
static void gpu_block_copy(struct gpu_trace *g, const struct gpu_slice *s)
{
	const struct gpu_slice *call = format_gpu_call(g, g->lane[s->lane].rank, s->correlation);
	if (!call || s->begin_ns < call->begin_ns || s->end_ns > call->end_ns)
		return;
	format_gpu_add_edge(g, (struct gpu_edge){.from = s->lane,
				       .to = call->lane,
				       .from_ns = s->end_ns,
				       .wait_ns = format_gpu_issued(g, s, call),
				       .to_ns = call->end_ns,
				       .way = GPU_WAY_SYNC});
}

/* A call that launches takes long while its stream's queue is full: it waits for room, until the stream has ended something. */
static void gpu_wait_for_room(struct gpu_trace *g, size_t slice)
{
	const struct gpu_slice *s = &g->slice[slice];
	const struct gpu_lane *l = &g->lane[s->lane];
	const struct gpu_slice *call = format_gpu_call(g, l->rank, s->correlation);
	bool is_first = slice == l->first || s[-1].correlation != s->correlation;
	if (!call || !is_first || s->begin_ns < call->end_ns ||
		call->end_ns - call->begin_ns < LONG_ISSUES * g->issue_ns)
		return;
	size_t before = BASE_PARTITION(i, l->nr, g->slice[l->first + i].end_ns <= call->begin_ns);
	size_t ended = BASE_PARTITION(i, l->nr, g->slice[l->first + i].end_ns <= call->end_ns);
	if (slice - l->first < before + FULL_QUEUE || ended == before)
		return;
	g->counts.nr_rooms++;
	format_gpu_add_edge(g, (struct gpu_edge){.from = s->lane,
				       .to = call->lane,
				       .from_ns = g->slice[l->first + ended - 1].end_ns,
				       .wait_ns = call->begin_ns + g->issue_ns,
				       .to_ns = call->end_ns,
				       .way = GPU_WAY_ROOM});
}

/* ---- backward passes --------------------------------------------------------------------------- */

static bool gpu_is_busy(const struct gpu_slice *s)
{
	return s->kind == GPU_OP || s->kind == GPU_CALL;
}

struct gpu_hand { /* a thread that works while the main one has nothing open */
	struct gpu_trace *g;
	const struct gpu_lane *l; /* the helper's */
	uint32_t lane, main;
	size_t at;        /* its next slice */
	int64_t since_ns; /* it has done nothing since */
};

/* The main thread is in no operator and no call from from_ns to to_ns: what the helper does within is done for it. */
static void gpu_hand_over(struct gpu_hand *h, int64_t from_ns, int64_t to_ns)
{
	struct gpu_trace *g = h->g;
	size_t end = h->l->first + h->l->nr;
	int64_t first_ns = 0, last_ns = 0;
	bool any = false;
	while (h->at < end && g->slice[h->at].begin_ns < from_ns) {
		if (gpu_is_busy(&g->slice[h->at]) && g->slice[h->at].end_ns > h->since_ns)
			h->since_ns = g->slice[h->at].end_ns;
		h->at++;
	}
	for (; h->at < end && g->slice[h->at].begin_ns < to_ns; h->at++) {
		const struct gpu_slice *s = &g->slice[h->at];
		if (!gpu_is_busy(s) || s->end_ns > to_ns)
			continue;
		if (!any)
			first_ns = s->begin_ns;
		any = true;
		last_ns = s->end_ns > last_ns ? s->end_ns : last_ns;
	}
	if (!any || last_ns <= first_ns || h->since_ns > first_ns)
		return;
	g->counts.nr_hand_overs++;
	format_gpu_add_edge(g, (struct gpu_edge){.from = h->main,
				       .to = h->lane,
				       .from_ns = first_ns,
				       .wait_ns = h->since_ns,
				       .to_ns = first_ns,
				       .way = GPU_WAY_HAND});
	format_gpu_add_edge(g, (struct gpu_edge){.from = h->lane,
				       .to = h->main,
				       .from_ns = last_ns,
				       .wait_ns = first_ns,
				       .to_ns = last_ns,
				       .way = GPU_WAY_HAND});
	h->since_ns = last_ns;
}

static void gpu_hand_overs(struct gpu_trace *g, uint32_t lane)
{
	uint32_t main = g->rank[g->lane[lane].rank].main_lane;
	const struct gpu_lane *m = &g->lane[main];
	struct gpu_hand h = {.g = g,
		.l = &g->lane[lane],
		.lane = lane,
		.main = main,
		.at = g->lane[lane].first,
		.since_ns = g->begin_ns};
	int64_t free_ns = g->begin_ns;
	for (size_t i = m->first; i < m->first + m->nr; i++) {
		const struct gpu_slice *s = &g->slice[i];
		if (!gpu_is_busy(s))
			continue;
		if (s->begin_ns > free_ns)
			gpu_hand_over(&h, free_ns, s->begin_ns);
		free_ns = s->end_ns > free_ns ? s->end_ns : free_ns;
	}
	if (g->end_ns > free_ns)
		gpu_hand_over(&h, free_ns, g->end_ns);
}

/* Does the thread run backward operators? */
static bool gpu_is_backward(const struct gpu_trace *g, uint32_t lane)
{
	static const char engine[] = "autograd::engine";
	const struct gpu_lane *l = &g->lane[lane];
	for (size_t i = 0; i < g->nr_flows; i++)
		if (g->flow[i].is_end && g->flow[i].lane == lane)
			return true;
	for (size_t i = l->first; i < l->first + l->nr; i++)
		if (g->slice[i].kind == GPU_OP &&
			!strncmp(base_strtab_get(g->texts, g->slice[i].name), engine,
				sizeof engine - 1))
			return true;
	return false;
}

void format_gpu_order_threads(struct gpu_trace *g)
{
	for (size_t i = 0; i < g->nr && !g->failed; i++) {
		const struct gpu_slice *s = &g->slice[i];
		if (s->kind == GPU_CALL && s->what >= GPU_CALL_DEVICE && s->what <= GPU_CALL_EVENT)
			gpu_sync_call(g, s);
		else if (s->kind == GPU_DEVICE && s->what == GPU_COPY)
			gpu_block_copy(g, s);
		if (s->kind == GPU_DEVICE)
			gpu_wait_for_room(g, i);
	}
	for (uint32_t i = 0; i < g->nr_lanes && !g->failed; i++) {
		struct gpu_lane *l = &g->lane[i];
		l->is_backward =
			!l->is_stream && i != g->rank[l->rank].main_lane && gpu_is_backward(g, i);
		if (l->is_backward)
			gpu_hand_overs(g, i);
	}
}

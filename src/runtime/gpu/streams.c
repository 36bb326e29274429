/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams.c - what each piece of a stream's work waited for: its launch, the piece before it, and what other streams had
 * to do first. Where a file does not say which event a stream waited for, it is taken from the times: a stream that was
 * told to wait, and began only when another one ended something, waited for that.
 */
#include "runtime/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

enum {
	NEAR_NS =
		15000, /* ... nor is it told to wait, in the file: so soon after another one's end it does */
	INFERRED_GAP_NS = 2000, /* a stream goes on within that, when it has all that it needs */
	CALLS_BACK_MAX = 4096,  /* looked at for one that makes a stream wait */
};

/* ---- events ---------------------------------------------------------------------------------- */

/* What on_stream had to do before the record is to end before what is launched into `stream` after the call. */
static void gpu_need_event(
	struct gpu_trace *g, const struct gpu_slice *call, const struct gpu_more *said)
{
	uint32_t rank = g->lane[call->lane].rank;
	uint32_t from = format_gpu_lane_find(g, true, rank, said->device, said->on_stream);
	uint32_t to = format_gpu_lane_find(g, true, rank, said->device, said->stream);
	const struct gpu_slice *record = format_gpu_call(g, rank, said->record);
	if (from == GPU_NONE || to == GPU_NONE || !record)
		return;
	const struct gpu_lane *l = &g->lane[to];
	size_t source = format_gpu_last_launched(g, &g->lane[from], record->begin_ns);
	size_t n = BASE_PARTITION(i, l->nr, l->launch_ns[i] <= call->begin_ns);
	if (!source || n == l->nr)
		return;
	const struct gpu_slice *s = &g->slice[source - 1];
	if (s->end_ns > g->slice[l->first + n].begin_ns) {
		g->counts.nr_late_event++;
		return;
	}
	format_gpu_add_need(g, (struct gpu_need){.to = l->first + n,
				       .from = from,
				       .from_ns = s->end_ns,
				       .way = GPU_WAY_EVENT});
}

static void gpu_need_events(struct gpu_trace *g)
{
	for (size_t i = 0; i < g->nr; i++) {
		const struct gpu_slice *s = &g->slice[i];
		if (s->kind != GPU_CALL || s->what != GPU_CALL_STREAM_WAIT)
			continue;
		const struct gpu_more *said =
			format_gpu_said(g, g->lane[s->lane].rank, s->correlation);
		if (said && said->stream >= 0 && said->on_stream >= 0)
			gpu_need_event(g, s, said);
	}
}

/* Did the thread of this call tell any stream to wait since then? */
static bool gpu_told_to_wait(
	const struct gpu_trace *g, const struct gpu_slice *call, int64_t since_ns)
{
	const struct gpu_lane *l = &g->lane[call->lane];
	unsigned nr = 0;
	for (const struct gpu_slice *s = call; s > &g->slice[l->first]; s--)
		if (s[-1].begin_ns < since_ns || nr++ == CALLS_BACK_MAX)
			return false;
		else if (s[-1].kind == GPU_CALL && s[-1].what == GPU_CALL_STREAM_WAIT)
			return true;
	return false;
}

/* Of the other streams of its device, the one that ended something last within (from, to]. */
static void gpu_infer_event(struct gpu_trace *g, size_t slice, int64_t from_ns)
{
	const struct gpu_slice *s = &g->slice[slice];
	const struct gpu_lane *own = &g->lane[s->lane];
	uint32_t best = GPU_NONE;
	int64_t best_ns = from_ns;
	for (uint32_t i = 0; i < g->nr_lanes; i++) {
		const struct gpu_lane *l = &g->lane[i];
		if (!l->is_stream || i == s->lane || l->rank != own->rank || l->pid != own->pid)
			continue;
		size_t n = BASE_PARTITION(k, l->nr, g->slice[l->first + k].end_ns <= s->begin_ns);
		if (!n || g->slice[l->first + n - 1].end_ns <= best_ns)
			continue;
		best = i;
		best_ns = g->slice[l->first + n - 1].end_ns;
	}
	if (best == GPU_NONE)
		return;
	g->counts.nr_inferred_event++;
	format_gpu_add_need(
		g, (struct gpu_need){
			   .to = slice, .from = best, .from_ns = best_ns, .way = GPU_WAY_EVENT});
}

/* ---- one stream ------------------------------------------------------------------------------ */

static int gpu_by_target(const void *a, const void *b)
{
	const struct gpu_need *x = a, *y = b;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	if (x->from_ns != y->from_ns) /* what came last explains the wait */
		return x->from_ns > y->from_ns ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static void gpu_need_launch(struct gpu_trace *g, const struct gpu_lane *l, size_t slice)
{
	struct gpu_slice *s = &g->slice[slice];
	const struct gpu_slice *call = format_gpu_call(g, l->rank, s->correlation);
	if (!call) {
		g->counts.nr_unlaunched++;
		return;
	}
	g->counts.nr_early += s->begin_ns < call->begin_ns;
	int64_t put_ns = format_gpu_issued(g, s, call);
	format_gpu_add_need(g,
		(struct gpu_need){
			.to = slice, .from = call->lane, .from_ns = put_ns, .way = GPU_WAY_LAUNCH});
	if (g->knows_waits || slice == l->first)
		return;
	int64_t ready_ns = g->slice[slice - 1].end_ns;
	ready_ns = put_ns > ready_ns ? put_ns : ready_ns;
	const struct gpu_slice *before =
		format_gpu_call(g, l->rank, g->slice[slice - 1].correlation);
	int64_t since_ns = before && before->lane == call->lane ? before->end_ns : g->begin_ns;
	int64_t gap_ns = s->begin_ns - ready_ns;
	if (gap_ns > INFERRED_GAP_NS && gpu_told_to_wait(g, call, since_ns))
		gpu_infer_event(g, slice, ready_ns);
	else if (gap_ns > 2 * NEAR_NS)
		gpu_infer_event(g, slice, s->begin_ns - NEAR_NS);
}

/* Needs become dependences: a stream waits from the end of the piece before, for what came last. */
static void gpu_settle(struct gpu_trace *g)
{
	if (g->nr_needs)
		qsort(g->need, g->nr_needs, sizeof *g->need, gpu_by_target);
	for (size_t i = 0; i < g->nr_needs && !g->failed; i++) {
		const struct gpu_need *n = &g->need[i];
		const struct gpu_slice *s = &g->slice[n->to];
		bool is_first = n->to == g->lane[s->lane].first;
		int64_t since_ns = is_first ? g->begin_ns : s[-1].end_ns;
		bool is_last_to_come = !i || n[-1].to != n->to;
		bool waited = is_last_to_come && (n->from_ns > since_ns || is_first);
		format_gpu_add_edge(g, (struct gpu_edge){.from = n->from,
					       .to = s->lane,
					       .from_ns = n->from_ns,
					       .wait_ns = waited ? since_ns : s->begin_ns,
					       .to_ns = s->begin_ns,
					       .way = n->way});
	}
}

void format_gpu_order_streams(struct gpu_trace *g)
{
	gpu_need_events(g);
	for (size_t i = 0; i < g->nr_lanes && !g->failed; i++) {
		const struct gpu_lane *l = &g->lane[i];
		for (size_t k = l->first; l->is_stream && k < l->first + l->nr; k++)
			gpu_need_launch(g, l, k);
	}
	gpu_settle(g);
}

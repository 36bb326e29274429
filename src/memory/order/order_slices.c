/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_slices.c - T traces on p processors (seed 004, section 3).
 *
 * A slice is what a process does between two calls that imply synchronisation; it lasted from the
 * end of the first to the start of the second. Slices are sorted by their start. A free processor
 * takes the first one whose process is on no processor and does not wait for the disk, unless it
 * began after one that is running had ended: that one comes first, as it did when recorded. (The
 * seed prints this condition the other way round, which would let one slice run at a time.)
 */
#include "memory/order/order_private.h"

#include <stdlib.h>

struct slice {
	uint64_t start_ns, end_ns;
	uint32_t stream;
	bool done;
};

struct memory_scheduler {
	struct slice *slice;               /* by start */
	size_t nr_slices, capacity, first; /* all before `first` are done */
	uint32_t *current;                 /* per stream: which of its slices runs next, from 0 */
	uint32_t *rank;                    /* per slice: how many of its stream come before it */
	uint64_t *end_ns;                  /* per stream: of the slice that runs */
	uint32_t turn;                     /* ROUND_ROBIN: next stream */
	uint64_t now;                      /* clock of the latest event */
};

/* ---- cutting into slices --------------------------------------------------------------------- */

static bool cuts(const struct memory_call *call)
{
	enum memory_call_class class = memory_call_find(call->kind)->class;
	return class == MEMORY_CLASS_SYNC || class == MEMORY_CLASS_BARRIER ||
	       class == MEMORY_CLASS_SPAWN || class == MEMORY_CLASS_JOIN;
}

static enum base_status order_slices_add_slice(struct memory_scheduler *s, uint64_t start_ns,
	uint64_t end_ns, uint32_t stream, struct base_err *err)
{
	if (base_grow(&s->slice, &s->capacity, s->nr_slices + 1, sizeof *s->slice) != BASE_OK)
		return base_fail(
			err, BASE_ERR_NOMEM, "no memory for %zu {slice|slices}", s->nr_slices);
	s->slice[s->nr_slices++] = (struct slice){.start_ns = start_ns,
		.end_ns = end_ns > start_ns ? end_ns : start_ns,
		.stream = stream};
	return BASE_OK;
}

static enum base_status cut_stream(struct memory_order *o, uint32_t stream, struct base_err *err)
{
	struct memory_scheduler *s = o->scheduler;
	uint64_t start_ns = 0;
	for (;;) {
		struct memory_batch b;
		enum base_status status = memory_source_next(o->source, (int)stream, &b, err);
		if (status == BASE_END)
			return order_slices_add_slice(s, start_ns, UINT64_MAX, stream, err);
		if (status != BASE_OK)
			return status;
		for (size_t i = 0; i < b.nr_calls; i++) {
			if (!cuts(&b.call[i]))
				continue;
			status = order_slices_add_slice(
				s, start_ns, b.call[i].start_ns, stream, err);
			if (status != BASE_OK)
				return status;
			start_ns = b.call[i].end_ns > start_ns ? b.call[i].end_ns : start_ns;
		}
	}
}

static int order_slices_by_start(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static enum base_status cut_all(struct memory_order *o, struct base_err *err)
{
	struct memory_scheduler *s = o->scheduler;
	enum base_status status = BASE_OK;
	if (!o->source->ops->rewind)
		return base_fail(err, BASE_ERR_ENV,
			"slices need two passes over the traces; these can be read once only");
	for (uint32_t i = 0; i < o->nr_lanes && status == BASE_OK; i++)
		status = cut_stream(o, i, err);
	if (status == BASE_OK)
		status = o->source->ops->rewind(o->source, err);
	if (status != BASE_OK)
		return status;
	s->rank = base_alloc((s->nr_slices + 1) * sizeof *s->rank);
	if (!s->rank)
		return base_fail(
			err, BASE_ERR_NOMEM, "no memory for %zu {slice|slices}", s->nr_slices);
	qsort(s->slice, s->nr_slices, sizeof *s->slice, order_slices_by_start);
	uint32_t *seen = base_alloc((size_t)o->nr_lanes * sizeof *seen);
	if (!seen)
		return base_fail(
			err, BASE_ERR_NOMEM, "no memory for %u {stream|streams}", o->nr_lanes);
	for (size_t i = 0; i < s->nr_slices; i++)
		s->rank[i] = seen[s->slice[i].stream]++;
	base_free(seen);
	return BASE_OK;
}

enum base_status memory_scheduler_new(struct memory_order *o, struct base_err *err)
{
	struct memory_scheduler *s = base_alloc(sizeof *s);
	o->scheduler = s;
	if (s) {
		s->current = base_alloc((size_t)o->nr_lanes * sizeof *s->current);
		s->end_ns = base_alloc((size_t)o->nr_lanes * sizeof *s->end_ns);
	}
	if (!s || !s->current || !s->end_ns)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the scheduler");
	enum base_status status =
		o->options.mode == MEMORY_ORDER_SLICES ? cut_all(o, err) : BASE_OK;
	return status == BASE_OK ? memory_scheduler_fill(o, err) : status;
}

struct memory_scheduler *memory_scheduler_free(struct memory_scheduler *s)
{
	if (!s)
		return NULL;
	base_free(s->slice);
	base_free(s->current);
	base_free(s->end_ns);
	base_free(s->rank);
	base_free(s);
	return NULL;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static bool may_run(const struct memory_order *o, uint32_t stream, uint32_t cpu)
{
	const struct memory_lane *l = &o->lane[stream];
	if (l->state != LANE_WAITS || l->blocked_until > o->scheduler->now)
		return false;
	return !o->options.affinity || !l->has_run || l->processor == cpu;
}

/* The earliest recorded end of a slice that runs. */
static uint64_t first_end_ns(const struct memory_order *o)
{
	uint64_t end_ns = UINT64_MAX;
	for (uint32_t i = 0; i < o->nr_lanes; i++)
		if (o->lane[i].state == LANE_RUNS && o->scheduler->end_ns[i] < end_ns)
			end_ns = o->scheduler->end_ns[i];
	return end_ns;
}

/* The stream that cpu may take; nr_lanes: none. */
static uint32_t choose_slice(struct memory_order *o, uint32_t cpu)
{
	struct memory_scheduler *s = o->scheduler;
	while (s->first < s->nr_slices && s->slice[s->first].done)
		s->first++;
	uint64_t end_ns = first_end_ns(o);
	for (size_t i = s->first; i < s->nr_slices; i++) {
		const struct slice *sl = &s->slice[i];
		if (sl->start_ns > end_ns)
			continue;
		if (!sl->done && s->rank[i] == s->current[sl->stream] &&
			may_run(o, sl->stream, cpu)) {
			s->end_ns[sl->stream] = sl->end_ns;
			return sl->stream;
		}
	}
	return o->nr_lanes;
}

static uint32_t choose_turn(struct memory_order *o, uint32_t cpu)
{
	struct memory_scheduler *s = o->scheduler;
	for (uint32_t i = 0; i < o->nr_lanes; i++) {
		uint32_t stream = (s->turn + i) % o->nr_lanes;
		if (may_run(o, stream, cpu)) {
			s->turn = stream + 1;
			return stream;
		}
	}
	return o->nr_lanes;
}

static uint32_t order_slices_choose(struct memory_order *o, uint32_t cpu)
{
	return o->options.mode == MEMORY_ORDER_SLICES ? choose_slice(o, cpu) : choose_turn(o, cpu);
}

enum base_status memory_scheduler_fill(struct memory_order *o, struct base_err *err)
{
	for (uint32_t cpu = 0; cpu < o->nr_cpus; cpu++) {
		while (!o->cpu[cpu].lane) {
			uint32_t stream = order_slices_choose(o, cpu);
			if (stream == o->nr_lanes)
				break;
			enum base_status status =
				memory_order_start(o, stream, cpu, o->scheduler->now, err);
			if (status != BASE_OK)
				return status;
			o->lane[stream].has_run = true;
			if (o->lane[stream].state == LANE_ENDED) {
				o->cpu[cpu].lane = &o->lane[stream];
				memory_scheduler_ended(o, cpu);
			}
		}
	}
	return BASE_OK;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void slice_done(struct memory_order *o, uint32_t stream)
{
	struct memory_scheduler *s = o->scheduler;
	for (size_t i = s->first; i < s->nr_slices; i++)
		if (s->slice[i].stream == stream && s->rank[i] == s->current[stream]) {
			s->slice[i].done = true;
			break;
		}
	s->current[stream]++;
}

static void order_slices_leave(struct memory_order *o, uint32_t cpu, enum lane_state state)
{
	struct memory_cpu *c = &o->cpu[cpu];
	c->lane->state = state;
	c->lane->sliced = 0;
	c->lane = NULL;
	if (c->clock > o->scheduler->now)
		o->scheduler->now = c->clock;
}

void memory_scheduler_ended(struct memory_order *o, uint32_t cpu)
{
	struct memory_scheduler *s = o->scheduler;
	uint32_t stream = (uint32_t)(o->cpu[cpu].lane - o->lane);
	for (size_t i = s->first; i < s->nr_slices; i++)
		if (s->slice[i].stream == stream)
			s->slice[i].done = true;
	order_slices_leave(o, cpu, LANE_ENDED);
}

static uint64_t disk_clocks(const struct memory_order *o, uint64_t size_bytes)
{
	double transfer_ms = (double)size_bytes / (o->options.dma_mb_per_s * 1e3);
	return memory_order_clocks(o, o->options.disk_latency_ms + transfer_ms);
}

/* The rest of a slice goes behind those that wait. */
static void order_slices_move_back(struct memory_scheduler *s, uint32_t stream)
{
	size_t at = s->first;
	while (s->slice[at].stream != stream || s->rank[at] != s->current[stream])
		at++;
	struct slice rest = s->slice[at];
	for (; at + 1 < s->nr_slices && s->slice[at + 1].start_ns <= rest.end_ns &&
		s->slice[at + 1].stream != stream;
		at++) {
		s->slice[at] = s->slice[at + 1];
		s->rank[at] = s->rank[at + 1];
	}
	s->slice[at] = rest;
	s->rank[at] = s->current[stream];
}

bool memory_scheduler_after(struct memory_order *o, uint32_t cpu, const struct memory_call *call)
{
	struct memory_cpu *c = &o->cpu[cpu];
	struct memory_lane *l = c->lane;
	uint32_t stream = (uint32_t)(l - o->lane);
	bool slices = o->options.mode == MEMORY_ORDER_SLICES;
	if (c->clock > o->scheduler->now)
		o->scheduler->now = c->clock;
	if (call && slices && cuts(call)) {
		slice_done(o, stream);
		order_slices_leave(o, cpu, LANE_WAITS);
		return true;
	}
	if (call && !o->options.asynch_io &&
		(call->kind == MEMORY_CALL_read || call->kind == MEMORY_CALL_write)) {
		l->blocked_until = c->clock + disk_clocks(o, call->argument[1]);
		order_slices_leave(o, cpu, LANE_WAITS);
		return true;
	}
	if (l->sliced < o->options.slice_instructions || (slices && o->options.keep_long_slices))
		return false;
	l->sliced = 0;
	uint32_t turn = o->scheduler->turn;
	bool wanted = order_slices_choose(o, cpu) != o->nr_lanes;
	o->scheduler->turn = turn;
	if (!wanted)
		return false;
	if (slices)
		order_slices_move_back(o->scheduler, stream);
	order_slices_leave(o, cpu, LANE_WAITS);
	return true;
}

bool memory_scheduler_skip(struct memory_order *o)
{
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < o->nr_lanes; i++)
		if (o->lane[i].state == LANE_WAITS && o->lane[i].blocked_until < first)
			first = o->lane[i].blocked_until;
	if (first == UINT64_MAX || first <= o->scheduler->now)
		return false;
	o->scheduler->now = first;
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - life cycle and memory of the log; the sink's declarations. */
#include "graph/replay_priv.h"

#include <math.h>

#define DEFAULT_MAX_MEMORY ((size_t)2 << 30)

/* ---- memory ---------------------------------------------------------------------------------- */

enum base_status graph_replay_mem_resize(struct graph_replay *r, void *data, size_t *capacity,
	size_t want, size_t elem_size_bytes, struct base_err *err)
{
	size_t old_bytes = *capacity * elem_size_bytes, bytes;
	void *p;

	if (__builtin_mul_overflow(want, elem_size_bytes, &bytes) ||
		(bytes > old_bytes && bytes - old_bytes > r->max_memory_bytes - r->memory_bytes))
		return base_fail(err, BASE_ERR_LIMIT,
			"replay's log of %zu {verb|verbs} needs more than %zu MiB: analyse a "
			"window of "
			"the trace or raise the memory limit",
			r->nr_steps, r->max_memory_bytes >> 20);
	memcpy(&p, data, sizeof p);
	p = base_realloc(p, old_bytes, bytes);
	if (!p)
		return base_fail(err, BASE_ERR_NOMEM,
			"no memory for replay's log (%zu {byte|bytes})", bytes);
	memcpy(data, &p, sizeof p);
	r->memory_bytes = r->memory_bytes - old_bytes + bytes;
	*capacity = want;
	return BASE_OK;
}

enum base_status graph_replay_mem_need(struct graph_replay *r, void *data, size_t *capacity,
	size_t need, size_t elem_size_bytes, struct base_err *err)
{
	size_t want = *capacity ? *capacity : 8;

	if (BASE_LIKELY(need <= *capacity))
		return BASE_OK;
	while (want < need)
		want *= 2;
	/* Doubling must not be what hits the limit. */
	if ((want - *capacity) * elem_size_bytes > r->max_memory_bytes - r->memory_bytes)
		want = need;
	return graph_replay_mem_resize(r, data, capacity, want, elem_size_bytes, err);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static enum base_status replay_add_chunk(struct graph_replay *r, struct base_err *err)
{
	size_t nr = 0;
	enum base_status s = graph_replay_mem_need(r, &r->chunk, &r->chunk_capacity,
		r->nr_chunks + 1, sizeof(struct replay_step *), err);

	if (s)
		return s;
	if (r->nr_steps >= REPLAY_NONE - REPLAY_CHUNK)
		return base_fail(err, BASE_ERR_LIMIT,
			"replay takes at most 4 thousand million verbs: analyse a window");
	r->chunk[r->nr_chunks] = NULL;
	s = graph_replay_mem_resize(
		r, &r->chunk[r->nr_chunks], &nr, REPLAY_CHUNK, sizeof(struct replay_step), err);
	if (!s)
		r->nr_chunks++;
	return s;
}

/* Of nobody yet. */
enum base_status graph_replay_new_step(
	struct graph_replay *r, const struct replay_step *step, uint32_t *ret, struct base_err *err)
{
	if (BASE_UNLIKELY(r->nr_steps == r->nr_chunks << REPLAY_CHUNK_SHIFT)) {
		enum base_status s = replay_add_chunk(r, err);

		if (s)
			return s;
	}
	*ret = (uint32_t)r->nr_steps++;
	*replay_step(r, *ret) = *step;
	return BASE_OK;
}

/* ---- the sink -------------------------------------------------------------------------------- */

static enum base_status sink_state(void *ctx, uint32_t state, bool executes, struct base_err *err)
{
	struct graph_replay *r = ctx;
	enum base_status s = graph_replay_mem_need(
		r, &r->executes, &r->state_capacity, (size_t)state + 1, sizeof *r->executes, err);

	if (s)
		return r->failed = s;
	r->executes[state] = executes;
	if (state >= r->nr_states)
		r->nr_states = (size_t)state + 1;
	return BASE_OK;
}

static enum base_status sink_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	struct graph_replay *r = ctx;
	struct replay_memory m = {.used_bytes = &r->memory_bytes, .max_bytes = r->max_memory_bytes};
	struct replay_log_queue *q;
	enum base_status s;

	BASE_ASSERT(queue == r->nr_queues);
	s = graph_replay_mem_need(
		r, &r->queue, &r->queue_capacity, r->nr_queues + 1, sizeof *q, err);
	if (s)
		return r->failed = s;
	q = &r->queue[r->nr_queues++];
	*q = (struct replay_log_queue){.o = *o, .number = r->nr_numbered};
	r->nr_numbered += o->processor;
	if (o->initial && o->initial != GRAPH_UNLIMITED) {
		q->units = (int64_t)o->initial;
		q->max_units = o->initial;
		s = graph_replay_ring_push(m, &q->data,
			(struct replay_item){.time_ns = REPLAY_NOBODY, .nr_units = o->initial},
			err);
	}
	if (!s && o->capacity > q->max_units)
		s = graph_replay_ring_push(m, &q->space,
			(struct replay_item){
				.time_ns = REPLAY_NOBODY, .nr_units = o->capacity - q->max_units},
			err);
	return s ? (r->failed = s) : BASE_OK;
}

static enum base_status sink_verb(void *ctx, enum graph_verb_kind kind, const struct graph_verb *v,
	uint32_t from_actor, struct base_err *err)
{
	struct graph_replay *r = ctx;
	enum base_status s;

	if (BASE_UNLIKELY(r->failed))
		return base_fail(err, r->failed, "replay's log failed before");
	s = graph_replay_log_verb(r, kind, v, from_actor, err);
	return BASE_UNLIKELY(s) ? (r->failed = s) : BASE_OK;
}

/* The life of the actor that goes on; NULL: none does. */
static struct replay_log_actor *present_life(struct graph_replay *r, uint32_t actor)
{
	if (actor >= r->nr_lives || r->lives[actor].now == REPLAY_NONE)
		return NULL;
	return &r->actor[r->lives[actor].now];
}

static enum base_status sink_recording(void *ctx, uint32_t actor, uint64_t ns, struct base_err *err)
{
	struct graph_replay *r = ctx;
	struct replay_log_actor *a = present_life(r, actor);

	if (r->failed)
		return base_fail(err, r->failed, "replay's log failed before");
	if (a)
		a->recording_ns += ns;
	return BASE_OK;
}

static enum base_status sink_late(void *ctx, uint32_t actor, int64_t ns, struct base_err *err)
{
	struct graph_replay *r = ctx;
	struct replay_log_actor *a = present_life(r, actor);

	if (r->failed)
		return base_fail(err, r->failed, "replay's log failed before");
	if (a)
		a->late_ns = ns < -(int64_t)UINT32_MAX  ? -(int64_t)UINT32_MAX
			     : ns > (int64_t)UINT32_MAX ? (int64_t)UINT32_MAX
							: ns;
	return BASE_OK;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

enum base_status graph_replay_new(
	const struct graph_replay_options *opts, struct graph_replay **ret, struct base_err *err)
{
	struct graph_replay_options o = {0};
	struct graph_replay *r = base_alloc(sizeof *r);

	*ret = NULL;
	if (!r)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for replay");
	if (opts)
		memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	r->sink = (struct graph_sink){.ctx = r,
		.counts = true,
		.state = sink_state,
		.queue = sink_queue,
		.verb = sink_verb,
		.processor = graph_replay_processor,
		.processor_set = graph_replay_processor_set,
		.affinity = graph_replay_affinity,
		.recording = sink_recording,
		.late = sink_late};
	r->memory_bytes = sizeof *r;
	r->max_memory_bytes = o.max_memory_bytes ? o.max_memory_bytes : DEFAULT_MAX_MEMORY;
	if (r->max_memory_bytes < r->memory_bytes)
		r->max_memory_bytes = r->memory_bytes;
	r->nr_processors_told = o.nr_processors;
	r->quota.ns = o.quota_period_ns ? o.quota_ns : 0;
	r->quota.period_ns = o.quota_period_ns;
	r->end_actor = GRAPH_ANY_ACTOR;
	r->moment.first = REPLAY_NONE;
	*ret = r;
	return BASE_OK;
}

struct graph_replay *graph_replay_free(struct graph_replay *r)
{
	if (!r)
		return NULL;
	for (size_t i = 0; i < r->nr_chunks; i++)
		base_free(r->chunk[i]);
	for (size_t i = 0; i < r->nr_queues; i++) {
		graph_replay_ring_fini(&r->queue[i].data);
		graph_replay_ring_fini(&r->queue[i].space);
		base_free(r->queue[i].take);
	}
	for (size_t i = 0; i < r->latency_capacity; i++)
		base_free(r->latency[i]);
	for (size_t i = 0; i < r->nr_lives; i++)
		base_free(r->lives[i].recent);
	base_free(r->lives);
	base_free(r->chunk);
	base_free(r->wide);
	base_free(r->actor);
	base_free(r->queue);
	base_free(r->executes);
	base_free(r->latency);
	base_free(r->trend);
	base_map_fini(&r->trends);
	base_free(r->busy_ns);
	graph_replay_affinity_fini(r);
	base_free(r);
	return NULL;
}

const struct graph_sink *graph_replay_sink(struct graph_replay *r)
{
	return &r->sink;
}

void graph_replay_set_end(struct graph_replay *r, uint32_t end_actor)
{
	r->end_actor = end_actor;
}

uint32_t graph_replay_end_actor(const struct graph_replay *r)
{
	uint32_t end = r->end_actor;

	if (end >= r->nr_lives || r->lives[end].last == REPLAY_NONE)
		return end;
	return replay_told_as(r, r->lives[end].last);
}

uint64_t graph_replay_wake_ns(const struct graph_replay *r)
{
	return r->wake_ns;
}

uint64_t graph_replay_nr_verbs(const struct graph_replay *r)
{
	return r->nr_steps;
}

size_t graph_replay_memory_bytes(const struct graph_replay *r)
{
	return r->memory_bytes;
}

/* ---- what an edit takes away ----------------------------------------------------------------- */

/* Of each state, up to the last that there is. */
struct change_states {
	double *left; /* of its time; 1: all of it */
	bool *waits;
};

static bool change_init(struct change_states *c, const struct graph_replay *r,
	const struct graph_scenario *edits, const uint32_t *wait, size_t nr_waits)
{
	size_t nr = (size_t)r->last_state + 1;

	c->left = base_alloc(nr * sizeof *c->left);
	c->waits = base_alloc(nr * sizeof *c->waits);
	if (!c->left || !c->waits)
		return false;
	for (size_t i = 0; i < nr; i++)
		c->left[i] = 1;
	for (size_t i = 0; i < edits->nr_edits; i++)
		if (edits->edit[i].id < nr)
			c->left[edits->edit[i].id] *= edits->edit[i].factor;
	for (size_t i = 0; i < nr_waits; i++)
		if (wait[i] < nr)
			c->waits[wait[i]] = true;
	return true;
}

static bool only_scales(const struct graph_scenario *edits)
{
	for (size_t i = 0; i < edits->nr_edits; i++)
		if (edits->edit[i].kind != GRAPH_EDIT_SCALE_STATE)
			return false;
	return true;
}

/* Of one actor; does it ever wait? */
static bool change_of_actor(const struct graph_replay *r, const struct change_states *c,
	uint32_t head, struct graph_replay_change *ret)
{
	uint32_t state = 0;
	bool waits = false;

	*ret = (struct graph_replay_change){0};
	for (uint32_t i = head; i != REPLAY_NONE;) {
		const struct replay_step *step = replay_step(r, i);
		/* (who has less to do loses its processor to others as much less often) */
		uint32_t of = replay_is_preempted(step) && step->state <= r->last_state
				      ? step->state
				      : state;
		double gone = 1 - c->left[of];

		if (gone != 0 && replay_class(step) != REPLAY_ABSOLUTE &&
			replay_kind(step) != REPLAY_LINK_OUT)
			*(gone > 0 ? &ret->taken_ns : &ret->added_ns) +=
				(double)replay_own(r, step) * fabs(gone);
		state = step->state <= r->last_state ? step->state : 0;
		waits |= c->waits[state];
		i = replay_next(r, step);
	}
	return waits;
}

enum base_status graph_replay_change(const struct graph_replay *r,
	const struct graph_scenario *edits, const uint32_t *wait, size_t nr_waits,
	struct graph_replay_change *ret, struct base_err *err)
{
	struct change_states c = {0};
	struct graph_replay_change own, least = {INFINITY, INFINITY};

	*ret = (struct graph_replay_change){INFINITY, INFINITY};
	if (!only_scales(edits))
		return BASE_OK;
	if (!change_init(&c, r, edits, wait, nr_waits)) {
		base_free(c.left);
		base_free(c.waits);
		return base_fail(err, BASE_ERR_NOMEM, "no memory for a scenario");
	}
	*ret = (struct graph_replay_change){0};
	for (size_t k = 0; k < r->nr_actors; k++) {
		if (change_of_actor(r, &c, r->actor[k].head, &own)) {
			least.taken_ns = fmin(least.taken_ns, own.taken_ns);
			least.added_ns = fmin(least.added_ns, own.added_ns);
		}
		ret->taken_ns += own.taken_ns;
		ret->added_ns += own.added_ns;
	}
	if (least.taken_ns < INFINITY) {
		ret->taken_ns -= least.taken_ns;
		ret->added_ns -= least.added_ns;
	}
	base_free(c.left);
	base_free(c.waits);
	return BASE_OK;
}

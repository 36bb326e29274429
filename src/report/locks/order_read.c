/* SPDX-License-Identifier: Apache-2.0 */
/* order_read.c - one pass over the records: which lock was taken under which, by whom, and what
 * certainly came before what. */
#include "report/locks/order_private.h"

#include <string.h>

static bool order_read_no_memory(enum base_status s)
{
	return s != BASE_OK;
}

/* ---- segments -------------------------------------------------------------------------------- */

static uint32_t order_read_clock_of(const struct order_segment *s, uint32_t thread)
{
	return thread < s->nr_clock ? s->clock[thread] : 0;
}

bool report_order_concurrent(const struct order_graph *g, uint32_t a, uint32_t b)
{
	const struct order_segment *x = &g->segment[a], *y = &g->segment[b];
	return x->thread != y->thread && order_read_clock_of(y, x->thread) < x->number &&
	       order_read_clock_of(x, y->thread) < y->number;
}

/* A new segment of a thread that knows what segments a and b (UINT32_MAX: none) know, and that they
 * are over. */
static enum base_status order_read_add_segment(
	struct order_graph *g, uint32_t thread, uint32_t a, uint32_t b, uint32_t *ret)
{
	const uint32_t source[] = {a, b};
	enum base_status s = base_grow(
		&g->segment, &g->segment_capacity, g->nr_segments + 1, sizeof *g->segment);
	uint32_t nr = (uint32_t)g->nr_threads;
	uint32_t *clock =
		s == BASE_OK ? base_arena_alloc(g->arena, (nr + 1) * sizeof *clock) : NULL;
	if (!clock)
		return BASE_ERR_NOMEM;
	struct order_segment *n = &g->segment[g->nr_segments];
	*n = (struct order_segment){.thread = thread, .number = 1, .clock = clock, .nr_clock = nr};
	for (size_t i = 0; i < BASE_COUNT(source); i++) {
		if (source[i] == UINT32_MAX)
			continue;
		const struct order_segment *o = &g->segment[source[i]];
		for (uint32_t t = 0; t < o->nr_clock && t < nr; t++)
			clock[t] = o->clock[t] > clock[t] ? o->clock[t] : clock[t];
		if (o->thread < nr && clock[o->thread] < o->number)
			clock[o->thread] = o->number;
		if (o->thread == thread)
			n->number = o->number + 1;
	}
	*ret = (uint32_t)g->nr_segments++;
	return BASE_OK;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* NULL: no memory, or too many. */
static struct order_thread *order_read_thread_of(struct order_graph *g, uint32_t stream)
{
	uint64_t at;
	if (base_map_get(&g->thread_of, 0, stream, &at))
		return &g->thread[at];
	if (g->nr_threads == ORDER_THREADS_MAX) {
		g->nr_lost++;
		return NULL;
	}
	if (order_read_no_memory(base_grow(
		    &g->thread, &g->thread_capacity, g->nr_threads + 1, sizeof *g->thread)) ||
		order_read_no_memory(base_map_put(&g->thread_of, 0, stream, g->nr_threads)))
		return NULL;
	uint32_t index = (uint32_t)g->nr_threads++;
	g->thread[index] = (struct order_thread){.stream = stream};
	if (order_read_no_memory(order_read_add_segment(
		    g, index, UINT32_MAX, UINT32_MAX, &g->thread[index].segment))) {
		g->nr_threads--;
		(void)base_map_remove(&g->thread_of, 0, stream);
		return NULL;
	}
	return &g->thread[index];
}

static uint32_t order_read_index_of(const struct order_graph *g, const struct order_thread *t)
{
	return (uint32_t)(t - g->thread);
}

static uint32_t order_read_process_of(const struct trace_defs *d, uint32_t stream)
{
	return trace_def_stream(d, stream)->process;
}

/* The child knows what its creator knew; what the creator does next, the child does not wait for.
 */
static enum base_status order_read_create(
	struct order_graph *g, struct order_thread *t, uint64_t token)
{
	enum base_status s = base_map_put(&g->created, 0, token, t->segment);
	return s == BASE_OK ? order_read_add_segment(g, order_read_index_of(g, t), t->segment,
				      UINT32_MAX, &t->segment)
			    : s;
}

static enum base_status order_read_begin(struct order_graph *g, struct order_thread *t,
	const struct trace_defs *d, uint64_t token, uint64_t handle)
{
	uint64_t creator;
	enum base_status s = base_map_put(&g->handle_of, order_read_process_of(d, t->stream),
		handle, order_read_index_of(g, t));
	if (s != BASE_OK || !token || !base_map_get(&g->created, 0, token, &creator))
		return s;
	return order_read_add_segment(
		g, order_read_index_of(g, t), t->segment, (uint32_t)creator, &t->segment);
}

static enum base_status order_read_join(
	struct order_graph *g, struct order_thread *t, const struct trace_defs *d, uint64_t handle)
{
	uint64_t joined;
	if (!base_map_get(&g->handle_of, order_read_process_of(d, t->stream), handle, &joined))
		return BASE_OK;
	return order_read_add_segment(
		g, order_read_index_of(g, t), t->segment, g->thread[joined].segment, &t->segment);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static uint64_t order_read_hash_of(const struct order_thread *t, uint32_t to, bool shared)
{
	uint64_t h = base_hash_u64((uint64_t)to << 1 | shared);
	for (uint32_t i = 0; i < t->nr_held; i++)
		h = base_hash_u64(h ^ ((uint64_t)t->held[i].lock << 1 | t->held[i].shared));
	return base_hash_u64(h ^ t->segment);
}

static enum base_status order_read_add_edge(struct order_graph *g, struct order_thread *t,
	uint32_t i, uint32_t lock, uint32_t site, bool shared)
{
	uint64_t at, lo = (uint64_t)t->held[i].lock << 32 | lock;
	uint64_t hi = order_read_hash_of(t, lock, shared);
	if (base_map_get(&g->edge_of, hi, lo, &at)) {
		g->edge[at].times++;
		return BASE_OK;
	}
	if (g->nr_edges == ORDER_EDGES_MAX) {
		g->nr_lost++;
		return BASE_OK;
	}
	enum base_status s =
		base_grow(&g->edge, &g->edge_capacity, g->nr_edges + 1, sizeof *g->edge);
	if (s == BASE_OK)
		s = base_grow(&g->held_pool, &g->pool_capacity, g->nr_pool + t->nr_held,
			sizeof *g->held_pool);
	if (s == BASE_OK)
		s = base_map_put(&g->edge_of, hi, lo, g->nr_edges);
	if (s != BASE_OK)
		return s;
	memcpy(g->held_pool + g->nr_pool, t->held, t->nr_held * sizeof *t->held);
	g->edge[g->nr_edges++] = (struct order_edge){.from = t->held[i].lock,
		.to = lock,
		.thread = order_read_index_of(g, t),
		.segment = t->segment,
		.from_site = t->held[i].site,
		.to_site = site,
		.from_shared = t->held[i].shared,
		.to_shared = shared,
		.first_held = (uint32_t)g->nr_pool,
		.nr_held = t->nr_held,
		.times = 1};
	g->nr_pool += t->nr_held;
	return BASE_OK;
}

static bool order_read_has(const struct order_thread *t, uint32_t lock)
{
	for (uint32_t i = 0; i < t->nr_held; i++) {
		if (t->held[i].lock == lock)
			return true;
	}
	return false;
}

static enum base_status order_read_begin_lock(struct order_graph *g, uint32_t object)
{
	enum base_status s =
		base_grow(&g->object_of, &g->lock_capacity, g->nr_locks + 1, sizeof *g->object_of);
	if (s == BASE_OK)
		s = base_map_put(&g->lock_of, 0, object, g->nr_locks);
	if (s == BASE_OK)
		g->object_of[g->nr_locks++] = object;
	return s;
}

static enum base_status order_read_lock_of(struct order_graph *g, uint32_t object, uint32_t *ret)
{
	uint64_t lock = g->nr_locks;
	enum base_status s = BASE_OK;
	if (!base_map_get(&g->lock_of, 0, object, &lock))
		s = order_read_begin_lock(g, object);
	*ret = (uint32_t)lock;
	return s;
}

/* What is made at an object's address is another lock from now on. */
static enum base_status order_read_renew(struct order_graph *g, uint32_t object, uint64_t life)
{
	uint64_t known = 0, lock;
	(void)base_map_get(&g->life_of, 0, object, &known);
	if (life == known)
		return BASE_OK;
	enum base_status s = base_map_put(&g->life_of, 0, object, life);
	return s == BASE_OK && base_map_get(&g->lock_of, 0, object, &lock)
		       ? order_read_begin_lock(g, object)
		       : s;
}

/* A holder keeps its lock, whether or not it had to wait; but a thread that cannot wait for ever
 * does not hang: that makes no order. */
static enum base_status order_read_acquire(
	struct order_graph *g, struct order_thread *t, uint32_t object, uint32_t site, bool shared)
{
	uint32_t lock;
	bool waits = t->tries != object;
	enum base_status s = order_read_lock_of(g, object, &lock);
	g->nr_acquired++;
	g->nr_tried += !waits;
	t->tries = 0;
	for (uint32_t i = 0; s == BASE_OK && waits && !order_read_has(t, lock) && i < t->nr_held;
		i++)
		s = order_read_add_edge(g, t, i, lock, site, shared);
	if (t->nr_held == ORDER_HELD_MAX)
		g->nr_lost++;
	else
		t->held[t->nr_held++] = (struct order_held){
			.lock = lock, .object = object, .site = site, .shared = shared};
	return s;
}

static void order_read_release(struct order_thread *t, uint32_t object)
{
	for (uint32_t i = t->nr_held; i-- > 0;) {
		if (t->held[i].object != object)
			continue;
		memmove(&t->held[i], &t->held[i + 1], (t->nr_held - i - 1) * sizeof t->held[i]);
		t->nr_held--;
		return;
	}
}

/* ---- records --------------------------------------------------------------------------------- */

static enum base_status order_read_take(
	struct order_graph *g, const struct trace_defs *d, const struct trace_record *r)
{
	struct order_thread *t = order_read_thread_of(g, r->stream);
	if (!t)
		return g->nr_threads == ORDER_THREADS_MAX ? BASE_OK : BASE_ERR_NOMEM;
	switch (r->kind) {
	case TRACE_lock_acquire:
		/* (one thread's alone: nobody else waits for it with a lock) */
		if (trace_def_object(d, r->u.lock_acquire.object)->type == TRACE_OBJECT_event_loop)
			return BASE_OK;
		return order_read_acquire(
			g, t, r->u.lock_acquire.object, r->u.lock_acquire.site, false);
	case TRACE_shared_acquire:
		return order_read_acquire(
			g, t, r->u.shared_acquire.object, r->u.shared_acquire.site, true);
	case TRACE_lock_try:
		t->tries = r->u.lock_try.object;
		return BASE_OK;
	case TRACE_object_new:
		return order_read_renew(g, r->u.object_new.object, r->u.object_new.life);
	case TRACE_lock_release:
		order_read_release(t, r->u.lock_release.object);
		return BASE_OK;
	case TRACE_shared_release:
		order_read_release(t, r->u.shared_release.object);
		return BASE_OK;
	case TRACE_cond_wait: /* gives the mutex up, and takes it again when woken */
		order_read_release(t, r->u.cond_wait.mutex);
		return BASE_OK;
	case TRACE_cond_wake:
		return r->u.cond_wake.mutex ? order_read_acquire(g, t, r->u.cond_wake.mutex,
						      r->u.cond_wake.site, false)
					    : BASE_OK;
	case TRACE_thread_create:
		return order_read_create(g, t, r->u.thread_create.token);
	case TRACE_thread_begin:
		return order_read_begin(g, t, d, r->u.thread_begin.token, r->u.thread_begin.handle);
	case TRACE_join_done:
		return order_read_join(g, t, d, r->u.join_done.handle);
	default:
		return BASE_OK;
	}
}

static bool is_of_interest(uint16_t kind)
{
	switch (kind) {
	case TRACE_lock_acquire:
	case TRACE_shared_acquire:
	case TRACE_lock_try:
	case TRACE_object_new:
	case TRACE_lock_release:
	case TRACE_shared_release:
	case TRACE_cond_wait:
	case TRACE_cond_wake:
	case TRACE_thread_create:
	case TRACE_thread_begin:
	case TRACE_join_done:
		return true;
	default:
		return false;
	}
}

enum base_status report_order_read(
	struct order_graph *g, const struct report_run *run, struct base_err *err)
{
	struct trace_batch batch;
	enum base_status s = trace_reader_rewind(run->reader, err);
	const struct trace_defs *d = trace_reader_defs(run->reader);
	while (s == BASE_OK && (s = trace_reader_next(run->reader, &batch, err)) == BASE_OK) {
		for (size_t i = 0; s == BASE_OK && i < batch.nr; i++) {
			if (is_of_interest(batch.record[i].kind))
				s = order_read_take(g, d, &batch.record[i]);
		}
		if (s != BASE_OK)
			return report_no_memory(err);
	}
	return s == BASE_END ? BASE_OK : s;
}

void report_order_read_fini(struct order_graph *g)
{
	base_free(g->edge);
	base_free(g->held_pool);
	base_free(g->segment);
	base_free(g->thread);
	base_map_fini(&g->thread_of);
	base_map_fini(&g->edge_of);
	base_map_fini(&g->created);
	base_map_fini(&g->handle_of);
	base_map_fini(&g->lock_of);
	base_map_fini(&g->life_of);
	base_free(g->object_of);
}

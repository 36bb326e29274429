/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locks_count.c - one pass over the records: what each thread did with each lock, and where.
 *
 * Hold time is from the lock's stamp (taken after the real call) to the release's (before it). A
 * lock that is given up for a condition wait is held again from the wait's end. Of a lock taken
 * again by its owner only the outermost hold has a time.
 */
#include "report/locks/locks_private.h"

#include <errno.h>
#include <string.h>

/* ---- small things ---------------------------------------------------------------------------- */

unsigned report_lock_bin(uint64_t ns)
{
	unsigned bin = ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
	return bin < REPORT_LOCK_BINS ? bin : REPORT_LOCK_BINS - 1;
}

static void times_merge(struct report_times *to, const struct report_times *from)
{
	to->nr += from->nr;
	to->total_ns += from->total_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
}

static void times_add(struct report_times *t, uint64_t ns)
{
	times_merge(t, &(struct report_times){.nr = 1, .total_ns = ns, .max_ns = ns});
}

void report_lock_use_add(struct report_lock_use *to, const struct report_lock_use *from)
{
	to->acquired += from->acquired;
	to->shared += from->shared;
	to->retaken += from->retaken;
	to->nested += from->nested;
	to->contended += from->contended;
	to->failed += from->failed;
	to->held_ns += from->held_ns;
	to->nr_held += from->nr_held;
	to->hold_variance += from->hold_variance;
	times_merge(&to->wait, &from->wait);
	times_merge(&to->hold, &from->hold);
	times_merge(&to->lock_call, &from->lock_call);
	times_merge(&to->unlock_call, &from->unlock_call);
	for (unsigned mode = 0; mode < REPORT_LOCK_MODES; mode++)
		for (unsigned i = 0; i < REPORT_LOCK_EVENTS; i++) {
			struct report_lock_event *t = &to->event[mode][i];
			const struct report_lock_event *f = &from->event[mode][i];
			t->nr += f->nr;
			t->count += f->count;
			t->taking_nr += f->taking_nr;
			t->taking_count += f->taking_count;
		}
}

/* The part of an interval in the window. */
static uint64_t locks_count_cut(const struct lock_count *c, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t from = begin_ns > c->from_ns ? begin_ns : c->from_ns;
	uint64_t to = end_ns < c->to_ns ? end_ns : c->to_ns;
	return to > from ? to - from : 0;
}

/* Intervals are counted where they end. */
static bool locks_count_counts(const struct lock_count *c, uint64_t time_ns)
{
	return time_ns >= c->from_ns && time_ns <= c->to_ns;
}

/* ---- tables by key: the entry, made when it is new; NULL: no memory -------------------------- */

static void *entry(struct lock_count *c, struct base_map *map, void *array, size_t *capacity,
	size_t *nr, size_t size_bytes, uint64_t hi, uint64_t lo, bool *ret_new)
{
	uint64_t at;
	*ret_new = false;
	if (!base_map_get(map, hi, lo, &at)) {
		at = *nr;
		if (base_grow(array, capacity, *nr + 1, size_bytes) != BASE_OK ||
			base_map_put(map, hi, lo, at) != BASE_OK) {
			c->no_memory = true;
			return NULL;
		}
		++*nr; /* base_grow() zeroed it */
		*ret_new = true;
	}
	char *base;
	memcpy(&base, array, sizeof base); /* of whatever type the pointer is */
	return base + at * size_bytes;
}

static struct lock_cell *locks_count_cell_of(struct lock_count *c, uint32_t object, uint32_t site)
{
	bool is_new;
	struct lock_cell *x = entry(c, &c->cell_of, &c->cell, &c->cells_capacity, &c->nr_cells,
		sizeof *x, object, site, &is_new);
	if (x && is_new)
		*x = (struct lock_cell){.object = object, .site = site};
	return x;
}

static struct lock_object *locks_count_object_of(struct lock_count *c, uint32_t object)
{
	bool is_new;
	struct lock_object *x = entry(c, &c->object_of, &c->object, &c->objects_capacity,
		&c->nr_objects, sizeof *x, 0, object, &is_new);
	if (x && is_new)
		x->object = object;
	return x;
}

static struct lock_cond *cond_of(struct lock_count *c, uint32_t object)
{
	bool is_new;
	struct lock_cond *x = entry(c, &c->cond_of, &c->cond, &c->conds_capacity, &c->nr_conds,
		sizeof *x, 0, object, &is_new);
	if (x && is_new)
		x->object = object;
	return x;
}

static struct lock_thread *locks_count_thread_of(struct lock_count *c, uint32_t stream)
{
	bool is_new;
	struct lock_thread *x = entry(c, &c->thread_of, &c->thread, &c->threads_capacity,
		&c->nr_threads, sizeof *x, 0, stream, &is_new);
	if (x && is_new)
		x->stream = stream;
	return x;
}

/* A lock's first use by a thread. */
static void locks_count_meet(struct lock_count *c, struct lock_object *o, struct lock_thread *t)
{
	uint64_t seen;
	if (base_map_get(&c->pairs, t->stream, o->object, &seen))
		return;
	if (base_map_put(&c->pairs, t->stream, o->object, 1) != BASE_OK)
		c->no_memory = true;
	o->nr_threads++;
	t->sum.nr_static++;
}

static void into(struct lock_count *c, struct base_histogram *h, uint64_t ns)
{
	if (base_histogram_add(h, ns, 1) != BASE_OK)
		c->no_memory = true;
}

/* ---- holding --------------------------------------------------------------------------------- */

static void locks_count_hold(struct lock_count *c, struct lock_thread *t, uint32_t object,
	uint32_t site, bool shared, uint64_t time_ns)
{
	if (base_grow(&t->held, &t->held_capacity, t->nr_held + 1, sizeof *t->held) != BASE_OK) {
		c->no_memory = true;
		return;
	}
	if (!t->nr_held)
		t->held_since_ns = time_ns;
	t->held[t->nr_held++] = (struct lock_held){.object = object,
		.site = site,
		.shared = shared,
		.since_ns = time_ns,
		.told_ns = time_ns};
}

static void locks_count_tell_path(struct lock_count *c, const struct lock_thread *t,
	const struct lock_held *h, uint64_t time_ns)
{
	if (c->path &&
		!report_lock_path_hold(c->path, model_turn_actor(c->model, t->stream, t->task),
			h->object, h->told_ns, time_ns))
		c->no_memory = true;
}

/* From now on another actor holds what the thread holds. */
static void locks_count_turn(
	struct lock_count *c, struct lock_thread *t, uint64_t task, uint64_t time_ns)
{
	for (size_t i = 0; i < t->nr_held; i++) {
		locks_count_tell_path(c, t, &t->held[i], time_ns);
		t->held[i].told_ns = time_ns;
	}
	t->task = task;
}

static void locks_count_end_hold(struct lock_count *c, const struct lock_thread *t,
	const struct lock_held *h, uint64_t time_ns)
{
	struct lock_cell *cell = locks_count_cell_of(c, h->object, h->site);
	struct lock_object *o = locks_count_object_of(c, h->object);
	uint64_t ns = locks_count_cut(c, h->since_ns, time_ns);
	if (!cell || !o || !locks_count_counts(c, time_ns))
		return;
	times_add(&cell->use.hold, ns);
	locks_count_tell_path(c, t, h, time_ns);
	into(c, &o->hold, ns);
	c->dynamic.hold[report_lock_bin(ns)]++;
}

static void end_nested(struct lock_count *c, const struct lock_held *h, uint64_t time_ns)
{
	struct lock_cell *cell = locks_count_cell_of(c, h->object, h->site);
	if (cell && locks_count_counts(c, time_ns))
		cell->use.nested++;
}

/* The part of [since held, now] that began after the thread got its processor. */
static void locks_count_add_running(struct lock_count *c, struct lock_thread *t, uint64_t time_ns)
{
	uint64_t since =
		t->held_since_ns > t->processor_since_ns ? t->held_since_ns : t->processor_since_ns;
	if (t->on_processor)
		t->sum.held_running_ns += locks_count_cut(c, since, time_ns);
}

/* False: it was not seen taken. */
static bool unhold(struct lock_count *c, struct lock_thread *t, uint32_t object, uint64_t time_ns)
{
	size_t i = t->nr_held, levels = 0;
	for (size_t k = 0; k < t->nr_held; k++)
		levels += t->held[k].object == object;
	while (i-- > 0 && t->held[i].object != object)
		continue;
	if (!levels)
		return false;
	struct lock_held h = t->held[i];
	memmove(&t->held[i], &t->held[i + 1], (t->nr_held - i - 1) * sizeof h);
	t->nr_held--;
	if (levels == 1)
		locks_count_end_hold(c, t, &h, time_ns);
	else
		end_nested(c, &h, time_ns);
	if (!t->nr_held) {
		t->sum.held_ns += locks_count_cut(c, t->held_since_ns, time_ns);
		locks_count_add_running(c, t, time_ns);
	}
	return true;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void locks_count_begin_wait(
	struct lock_count *c, struct lock_thread *t, uint32_t object, uint64_t time_ns)
{
	struct lock_object *o = locks_count_object_of(c, object);
	if (!o)
		return;
	t->waits_object = object;
	t->wait_since_ns = time_ns;
	if (!o->nr_waiting++)
		o->waiting_since_ns = time_ns;
	if (o->nr_waiting > o->waiters_max && locks_count_counts(c, time_ns))
		o->waiters_max = o->nr_waiting;
}

/* Did it wait for that lock until now? Then how long. */
static bool locks_count_end_wait(struct lock_count *c, struct lock_thread *t, uint32_t object,
	uint64_t time_ns, uint64_t *ret_ns)
{
	struct lock_object *o = locks_count_object_of(c, object);
	if (!o || !t->waits_object || t->waits_object != object)
		return false;
	t->waits_object = 0;
	*ret_ns = locks_count_cut(c, t->wait_since_ns, time_ns);
	if (o->nr_waiting && !--o->nr_waiting)
		o->waited_by_any_ns += locks_count_cut(c, o->waiting_since_ns, time_ns);
	return true;
}

static void end_run(const struct lock_count *c, struct lock_object *o)
{
	if (o->run >= REPORT_CONVOY_MIN) {
		o->nr_convoys++;
		o->convoy_ns += locks_count_cut(c, o->run_since_ns, o->run_last_ns);
		if (o->run > o->convoy_longest)
			o->convoy_longest = o->run;
	}
	o->run = 0;
}

static void go_on_run(
	const struct lock_count *c, struct lock_object *o, bool waited, uint64_t time_ns)
{
	if (!waited) {
		end_run(c, o);
		return;
	}
	if (!o->run++)
		o->run_since_ns = time_ns;
	o->run_last_ns = time_ns;
}

/* ---- records of single operations ------------------------------------------------------------ */

static void locks_count_acquire(struct lock_count *c, struct lock_thread *t, uint32_t object,
	uint32_t site, bool shared, uint64_t time_ns)
{
	uint64_t wait_ns = 0;
	bool waited = locks_count_end_wait(c, t, object, time_ns, &wait_ns);
	struct lock_object *o = locks_count_object_of(c, object);
	struct lock_cell *cell = locks_count_cell_of(c, object, site);
	if (!o || !cell)
		return;
	locks_count_hold(c, t, object, site, shared, time_ns);
	if (!locks_count_counts(c, time_ns))
		return;
	c->has |= REPORT_LOCKS_events | REPORT_LOCKS_held;
	locks_count_meet(c, o, t);
	go_on_run(c, o, waited, time_ns);
	cell->use.acquired++;
	cell->use.shared += shared;
	cell->use.contended += waited;
	t->sum.acquired++;
	t->sum.contended += waited;
	if (waited) {
		times_add(&cell->use.wait, wait_ns);
		into(c, &o->wait, wait_ns);
		t->sum.wait_ns += wait_ns;
		c->dynamic.wait[report_lock_bin(wait_ns)]++;
	}
	if (t->calls_object == object) {
		uint64_t ns = locks_count_cut(c, t->call_since_ns, time_ns);
		c->has |= REPORT_LOCKS_calls;
		times_add(&cell->use.lock_call, ns);
		c->dynamic.lock_call[report_lock_bin(ns)]++;
	}
	t->calls_object = 0;
}

static void locks_count_release(struct lock_count *c, struct lock_thread *t, uint32_t object,
	uint32_t site, uint64_t time_ns)
{
	t->leaves_object = object;
	t->leave_since_ns = time_ns;
	t->leaves_site = site;
	for (size_t i = t->nr_held; i-- > 0;)
		if (t->held[i].object == object) {
			t->leaves_site =
				t->held[i].site; /* a site's row is of where it was taken */
			break;
		}
	(void)unhold(c, t, object, time_ns); /* what was never seen taken, model_health counts */
}

static void locks_count_fail(struct lock_count *c, struct lock_thread *t, uint32_t object,
	uint32_t site, uint64_t time_ns)
{
	uint64_t wait_ns;
	struct lock_cell *cell = locks_count_cell_of(c, object, site);
	bool waited = locks_count_end_wait(c, t, object, time_ns, &wait_ns);
	t->calls_object = 0;
	if (!cell || !locks_count_counts(c, time_ns))
		return;
	cell->use.failed++;
	if (waited) {
		times_add(&cell->use.wait, wait_ns);
		t->sum.wait_ns += wait_ns;
	}
}

static void locks_count_leave(
	struct lock_count *c, struct lock_thread *t, uint32_t object, uint64_t time_ns)
{
	if (t->leaves_object != object || !locks_count_counts(c, time_ns))
		return;
	uint64_t ns = locks_count_cut(c, t->leave_since_ns, time_ns);
	struct lock_cell *cell = locks_count_cell_of(c, object, t->leaves_site);
	t->leaves_object = 0;
	if (!cell)
		return;
	c->has |= REPORT_LOCKS_calls;
	times_add(&cell->use.unlock_call, ns);
	c->dynamic.unlock_call[report_lock_bin(ns)]++;
}

static void cond_wait(struct lock_count *c, struct lock_thread *t, const struct trace_cond_wait *w,
	uint64_t time_ns)
{
	struct lock_cond *x = cond_of(c, w->object);
	(void)unhold(c, t, w->mutex, time_ns);
	t->waits_cond = w->object;
	t->cond_since_ns = time_ns;
	if (x && locks_count_counts(c, time_ns))
		x->sum.waits++;
}

static void retake(struct lock_count *c, struct lock_thread *t, const struct trace_cond_wake *w,
	uint64_t time_ns)
{
	struct lock_cell *cell = locks_count_cell_of(c, w->mutex, w->site);
	struct lock_object *o = locks_count_object_of(c, w->mutex);
	if (!cell || !o)
		return;
	locks_count_hold(c, t, w->mutex, w->site, false, time_ns);
	if (locks_count_counts(c, time_ns)) {
		locks_count_meet(c, o, t);
		cell->use.retaken++;
	}
}

static void cond_wake(struct lock_count *c, struct lock_thread *t, const struct trace_cond_wake *w,
	uint64_t time_ns)
{
	struct lock_cond *x = cond_of(c, w->object);
	if (w->mutex) /* a futex word has none */
		retake(c, t, w, time_ns);
	if (x && locks_count_counts(c, time_ns)) {
		x->sum.timeouts += w->result == ETIMEDOUT;
		if (t->waits_cond == w->object)
			times_add(&x->sum.wait, locks_count_cut(c, t->cond_since_ns, time_ns));
	}
	t->waits_cond = 0;
}

/* Of semaphores what is of condition variables: waits for a token, and tokens given. But one that is
 * used as a lock is a lock. */
static void token_wait(
	struct lock_count *c, struct lock_thread *t, uint32_t object, uint64_t time_ns)
{
	if (model_is_used_as_lock(c->model, object)) {
		locks_count_begin_wait(c, t, object, time_ns);
		return;
	}
	struct lock_cond *x = cond_of(c, object);
	t->waits_cond = object;
	t->cond_since_ns = time_ns;
	if (x && locks_count_counts(c, time_ns))
		x->sum.waits++;
}

static void token_take(struct lock_count *c, struct lock_thread *t,
	const struct trace_token_take *k, uint64_t time_ns)
{
	const uint32_t object = k->object;
	const bool gave_up = !k->n;
	if (model_is_used_as_lock(c->model, object)) {
		if (gave_up)
			locks_count_fail(c, t, object, k->site, time_ns);
		else
			locks_count_acquire(c, t, object, k->site, false, time_ns);
		return;
	}
	struct lock_cond *x = t->waits_cond == object ? cond_of(c, object) : NULL;
	if (x && locks_count_counts(c, time_ns)) {
		times_add(&x->sum.wait, locks_count_cut(c, t->cond_since_ns, time_ns));
		x->sum.timeouts += gave_up;
	}
	if (t->waits_cond == object)
		t->waits_cond = 0;
}

static void cond_sent(struct lock_count *c, uint32_t object, bool all, uint64_t time_ns)
{
	struct lock_cond *x = locks_count_counts(c, time_ns) ? cond_of(c, object) : NULL;
	if (!x)
		return;
	x->sum.signals += !all;
	x->sum.broadcasts += all;
}

static void token_give(struct lock_count *c, struct lock_thread *t,
	const struct trace_token_give *g, uint64_t time_ns)
{
	if (model_is_used_as_lock(c->model, g->object))
		locks_count_release(c, t, g->object, g->site, time_ns);
	else
		cond_sent(c, g->object, false, time_ns);
}

/* ---- records of counts ----------------------------------------------------------------------- */

static void tally_count(
	struct lock_count *c, struct lock_thread *t, const struct trace_lock_count *r)
{
	struct lock_cell *cell = locks_count_cell_of(c, r->object, r->site);
	struct lock_object *o = locks_count_object_of(c, r->object);
	if (!cell || !o)
		return;
	c->has |= REPORT_LOCKS_tallies;
	locks_count_meet(c, o, t);
	cell->use.acquired += r->acquired;
	cell->use.shared += r->shared;
	cell->use.retaken += r->retaken;
	cell->use.contended += r->contended;
	cell->use.failed += r->failed;
	t->sum.acquired += r->acquired;
	t->sum.contended += r->contended;
}

static void tally_waits(
	struct lock_count *c, struct lock_thread *t, const struct trace_lock_waits *r)
{
	struct lock_cell *cell = locks_count_cell_of(c, r->object, r->site);
	if (!cell)
		return;
	times_merge(&cell->use.wait,
		&(struct report_times){.nr = r->nr, .total_ns = r->total_ns, .max_ns = r->max_ns});
	t->sum.wait_ns += r->total_ns;
}

/* hold_variance: here that of one hold times the sample's size; finished when all is known. */
static void tally_holds(struct lock_count *c, const struct trace_lock_holds *r)
{
	struct lock_cell *cell = locks_count_cell_of(c, r->object, r->site);
	if (!cell)
		return;
	times_merge(&cell->use.hold,
		&(struct report_times){.nr = r->nr, .total_ns = r->total_ns, .max_ns = r->max_ns});
	cell->use.hold_variance +=
		(double)r->nr * (double)r->deviation_ns * (double)r->deviation_ns;
}

static void tally_event(struct lock_count *c, const struct trace_lock_event *r)
{
	struct lock_cell *cell = locks_count_cell_of(c, r->object, r->site);
	const char *name = trace_text_of(c->defs, r->event);
	int at = report_event_place(c->event_name, c->nr_events, name);
	if (at < 0 && c->nr_events < REPORT_LOCK_EVENTS) {
		at = (int)c->nr_events;
		c->event_name[c->nr_events++] = name;
	}
	if (!cell || at < 0)
		return;
	struct report_lock_event *e = &cell->use.event[r->in_kernel != 0][at];
	*(r->taking ? &e->taking_nr : &e->nr) += r->nr;
	*(r->taking ? &e->taking_count : &e->count) += r->count;
}

static void tally_bin(struct lock_count *c, const struct trace_lock_bin *r)
{
	uint64_t *bins = r->what ? c->dynamic.hold : c->dynamic.wait;
	bins[r->bin < REPORT_LOCK_BINS ? r->bin : REPORT_LOCK_BINS - 1] += r->n;
}

static void cond_site(struct lock_count *c, const struct trace_cond_site *r)
{
	struct lock_cond *x = cond_of(c, r->object);
	if (x && (!x->site || r->site < x->site))
		x->site = r->site;
}

static void tally_cond(struct lock_count *c, const struct trace_cond_count *r)
{
	struct lock_cond *x = cond_of(c, r->object);
	if (!x)
		return;
	c->has |= REPORT_LOCKS_tallies;
	x->sum.waits += r->waits;
	x->sum.timeouts += r->timeouts;
	x->sum.signals += r->signals;
	x->sum.broadcasts += r->broadcasts;
	times_merge(&x->sum.wait, &(struct report_times){.nr = r->waits, .total_ns = r->wait_ns});
}

/* ---- all records ----------------------------------------------------------------------------- */

static void processor(struct lock_count *c, struct lock_thread *t, bool in, uint64_t time_ns)
{
	c->has |= REPORT_LOCKS_running;
	if (!in && t->on_processor)
		t->sum.running_ns += locks_count_cut(c, t->processor_since_ns, time_ns);
	if (!in && t->nr_held)
		locks_count_add_running(c, t, time_ns);
	t->on_processor = in;
	t->processor_since_ns = time_ns;
}

/* What the tally counted in the program, at its end: no event of its time. */
static void locks_count_take_tally(
	struct lock_count *c, struct lock_thread *t, const struct trace_record *r)
{
	switch (r->kind) {
	case TRACE_lock_count:
		tally_count(c, t, &r->u.lock_count);
		break;
	case TRACE_lock_waits:
		tally_waits(c, t, &r->u.lock_waits);
		break;
	case TRACE_lock_holds:
		tally_holds(c, &r->u.lock_holds);
		break;
	case TRACE_lock_event:
		tally_event(c, &r->u.lock_event);
		break;
	case TRACE_lock_bin:
		tally_bin(c, &r->u.lock_bin);
		break;
	case TRACE_cond_site:
		cond_site(c, &r->u.cond_site);
		break;
	case TRACE_cond_count:
		tally_cond(c, &r->u.cond_count);
		break;
	case TRACE_lock_held:
		c->has |= REPORT_LOCKS_held;
		t->sum.held_ns += r->u.lock_held.held_ns;
		break;
	case TRACE_lock_full:
		c->nr_full += r->u.lock_full.n;
		break;
	case TRACE_lock_floor:
		c->mode = r->u.lock_floor.mode;
		c->floor_bare_ps = r->u.lock_floor.bare_ps;
		c->floor_stamps_ps = r->u.lock_floor.stamps_ps;
		break;
	default:
		break;
	}
}

/* What its thread does meanwhile. */
static void locks_count_take_thread(
	struct lock_count *c, struct lock_thread *t, const struct trace_record *r)
{
	uint64_t now = r->time_ns;
	switch (r->kind) {
	case TRACE_thread_end:
		t->ended = true;
		break;
	case TRACE_turn_begin:
		locks_count_turn(c, t, r->u.turn_begin.task, now);
		break;
	case TRACE_turn_end:
		locks_count_turn(c, t, 0, now);
		break;
	case TRACE_cpu_in:
		processor(c, t, true, now);
		break;
	case TRACE_cpu_out:
		processor(c, t, false, now);
		break;
	default:
		locks_count_take_tally(c, t, r);
	}
}

/* Conditions and semaphores. */
static void locks_count_take_wake(
	struct lock_count *c, struct lock_thread *t, const struct trace_record *r)
{
	uint64_t now = r->time_ns;
	switch (r->kind) {
	case TRACE_cond_wait:
		cond_wait(c, t, &r->u.cond_wait, now);
		break;
	case TRACE_cond_wake:
		cond_wake(c, t, &r->u.cond_wake, now);
		break;
	case TRACE_token_wait:
		token_wait(c, t, r->u.token_wait.object, now);
		break;
	case TRACE_token_take:
		token_take(c, t, &r->u.token_take, now);
		break;
	case TRACE_token_give:
		token_give(c, t, &r->u.token_give, now);
		break;
	case TRACE_cond_signal:
		cond_sent(c, r->u.cond_signal.object, false, now);
		break;
	case TRACE_cond_broadcast:
		cond_sent(c, r->u.cond_broadcast.object, true, now);
		break;
	default:
		locks_count_take_thread(c, t, r);
	}
}

static void locks_count_take_record(struct lock_count *c, const struct trace_record *r)
{
	struct lock_thread *t = locks_count_thread_of(c, r->stream);
	uint64_t now = r->time_ns;
	if (!t)
		return;
	if (!t->began)
		t->begin_ns = now;
	t->began = true;
	t->last_ns = now;
	switch (r->kind) {
	case TRACE_lock_wait:
		locks_count_begin_wait(c, t, r->u.lock_wait.object, now);
		break;
	case TRACE_shared_wait:
		locks_count_begin_wait(c, t, r->u.shared_wait.object, now);
		break;
	case TRACE_lock_acquire:
		locks_count_acquire(
			c, t, r->u.lock_acquire.object, r->u.lock_acquire.site, false, now);
		break;
	case TRACE_shared_acquire:
		locks_count_acquire(
			c, t, r->u.shared_acquire.object, r->u.shared_acquire.site, true, now);
		break;
	case TRACE_lock_release:
		locks_count_release(c, t, r->u.lock_release.object, r->u.lock_release.site, now);
		break;
	case TRACE_shared_release:
		locks_count_release(
			c, t, r->u.shared_release.object, r->u.shared_release.site, now);
		break;
	case TRACE_lock_fail:
		locks_count_fail(c, t, r->u.lock_fail.object, r->u.lock_fail.site, now);
		break;
	case TRACE_lock_call:
		t->calls_object = r->u.lock_call.object;
		t->call_since_ns = now;
		break;
	case TRACE_lock_return:
		locks_count_leave(c, t, r->u.lock_return.object, now);
		break;
	default:
		locks_count_take_wake(c, t, r);
	}
}

static uint64_t locks_count_process_of(const struct trace_defs *d, const struct lock_thread *t)
{
	return trace_def_stream(d, t->stream)->process;
}

/* A thread whose end is not in the trace lived as long as its process. */
static void finish_lives(struct lock_count *c, const struct trace_defs *d)
{
	struct base_map last = {0}; /* (0, process) -> time */
	for (size_t i = 0; i < c->nr_threads && !c->no_memory; i++) {
		uint64_t of = locks_count_process_of(d, &c->thread[i]), known = 0;
		(void)base_map_get(&last, 0, of, &known);
		if (c->thread[i].last_ns >= known &&
			base_map_put(&last, 0, of, c->thread[i].last_ns) != BASE_OK)
			c->no_memory = true;
	}
	for (size_t i = 0; i < c->nr_threads; i++) {
		struct lock_thread *t = &c->thread[i];
		uint64_t of = locks_count_process_of(d, t), end = t->last_ns;
		if (!t->ended && of)
			(void)base_map_get(&last, 0, of, &end);
		t->sum.alive_ns = locks_count_cut(c, t->begin_ns, end);
	}
	base_map_fini(&last);
}

/* What lasts to the end: waits, convoys, and holds, which are that long at least. */
static void locks_count_finish(struct lock_count *c)
{
	for (size_t i = 0; i < c->nr_threads; i++) {
		struct lock_thread *t = &c->thread[i];
		if (t->on_processor)
			t->sum.running_ns += locks_count_cut(c, t->processor_since_ns, t->last_ns);
		while (t->nr_held)
			(void)unhold(c, t, t->held[t->nr_held - 1].object, t->last_ns);
	}
	for (size_t i = 0; i < c->nr_objects; i++)
		end_run(c, &c->object[i]);
}

/* The estimated sum of all holds, and from the sample's spread to its variance: n^2 s^2 / m, of
 * what was not measured. */
static void finish_holds(struct lock_count *c)
{
	for (size_t i = 0; i < c->nr_cells; i++) {
		struct report_lock_use *u = &c->cell[i].use;
		double m = (double)u->hold.nr, n = (double)report_lock_holds(u);
		double spread = m > 1 ? u->hold_variance / m * m / (m - 1) : 0;
		double unmeasured = n > m ? 1 - m / n : 0;
		u->hold_variance = m > 0 ? n * n * spread / m * unmeasured : 0;
		u->held_ns = m > 0 ? (double)u->hold.total_ns / m * n : 0;
		u->nr_held = m > 0 ? report_lock_holds(u) : 0;
	}
}

enum base_status report_locks_count(struct lock_count *c, const struct report_run *run,
	struct lock_path *path, const struct model *m, struct base_err *err)
{
	enum { SHOW_EVERY = 64 }; /* batches */
	struct trace_batch batch;
	uint64_t done = 0, all = trace_reader_record_count(run->reader), nr_batches = 0;
	*c = (struct lock_count){.from_ns = run->from_ns,
		.to_ns = run->to_ns ? run->to_ns : UINT64_MAX,
		.path = path,
		.defs = trace_reader_defs(run->reader),
		.model = m};
	enum base_status s = trace_reader_rewind(run->reader, err);
	while (s == BASE_OK && !c->no_memory) {
		s = trace_reader_next(run->reader, &batch, err);
		if (s != BASE_OK)
			break;
		for (size_t i = 0; i < batch.nr; i++)
			locks_count_take_record(c, &batch.record[i]);
		done += batch.nr;
		if (run->progress && nr_batches++ % SHOW_EVERY == 0)
			run->progress(
				run->progress_ctx, "counting what locks were used for", done, all);
	}
	if (s == BASE_END && !c->no_memory) {
		finish_lives(c, trace_reader_defs(run->reader));
		locks_count_finish(c);
		finish_holds(c);
	}
	if (c->no_memory)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for the locks");
	return s == BASE_END ? BASE_OK : s;
}

void report_locks_count_fini(struct lock_count *c)
{
	for (size_t i = 0; i < c->nr_objects; i++) {
		base_histogram_fini(&c->object[i].hold);
		base_histogram_fini(&c->object[i].wait);
	}
	for (size_t i = 0; i < c->nr_threads; i++)
		base_free(c->thread[i].held);
	base_free(c->cell);
	base_free(c->object);
	base_free(c->cond);
	base_free(c->thread);
	base_map_fini(&c->cell_of);
	base_map_fini(&c->object_of);
	base_map_fini(&c->cond_of);
	base_map_fini(&c->thread_of);
	base_map_fini(&c->pairs);
	*c = (struct lock_count){0};
}

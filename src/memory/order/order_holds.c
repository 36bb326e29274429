/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_holds.c - by pseudo clocks, what recorded times must say because no other record does.
 *
 * Threads that are joined need no times: how they would run side by side, ran they equally fast,
 * does not depend on how the recorded ones were scheduled. But of a detached one nothing says when
 * it is over, and its creator, which waited for that in a way that has no record, would run ahead;
 * then its successors would be beside it, on its stack and its heap. A thread on the stack of one
 * that nobody has joined proves that its creator had waited. There recorded times count: the
 * creator and the new thread go on when all have ended that had.
 *
 * A thread that waits on a condition variable goes on when another thread has come to a signal of
 * it that was recorded meanwhile; or when all others are past the recorded end of the wait, so that
 * none can come (it timed out).
 *
 * Heap blocks: threads that were scheduled one after another get the same memory; side by side they
 * would have got their own. A thread that is given a block that another thread has not yet come to
 * free, as it had by then, goes on when it is freed; or as above, when all others are past that
 * time.
 *
 * What is held is looked at when a thread makes a call or ends, never in between, so that loops
 * that are offered as a whole change nothing.
 */
#include "memory/order/order_private.h"

enum { SIGNALS_KEPT = 8 };

struct memory_signals { /* of one object: the last ones */
	uint64_t time_ns[SIGNALS_KEPT], clock[SIGNALS_KEPT];
	uint64_t nr;
};

static bool has_begun(const struct memory_lane *l)
{
	return l->state != LANE_WAITS;
}

/* ---- threads that nobody joined -------------------------------------------------------------- */

static const struct memory_life *order_holds_life_of(struct memory_order *o, uint32_t lane)
{
	struct memory_lane *l = &o->lane[lane];
	const struct memory_source_ops *ops = o->source->ops;
	if (!l->life.end_ns && !(ops->life && ops->life(o->source, lane, &l->life)))
		l->life = (struct memory_life){0};
	return &l->life;
}

/* Had it ended by then, or is it who had the stack before? */
static bool order_holds_is_before(
	struct memory_order *o, uint32_t lane, const struct memory_hold *held)
{
	const struct memory_life *a = order_holds_life_of(o, lane);
	return a->end_ns && (a->end_ns <= held->created_ns ||
				    (a->stack == held->stack && a->begin_ns < held->begin_ns));
}

/* Does somebody still hold it? *ret_clock: when those that did ended. */
static bool is_held(struct memory_order *o, uint32_t lane, uint64_t *ret_clock)
{
	const struct memory_lane *l = &o->lane[lane];
	*ret_clock = o->cpu[lane].clock;
	if (l->held.kind != HOLD_THREADS)
		return true;
	for (uint32_t i = 0; i < o->nr_lanes; i++) {
		const struct memory_lane *a = &o->lane[i];
		if (a == l || !has_begun(a) || !order_holds_is_before(o, i, &l->held))
			continue;
		if (a->state != LANE_ENDED)
			return true;
		if (o->cpu[i].clock > *ret_clock)
			*ret_clock = o->cpu[i].clock;
	}
	return false;
}

/* Is there a thread that had this one's stack before, and nobody has joined? */
static bool is_successor(struct memory_order *o, const struct memory_life *life)
{
	for (uint32_t i = 0; life->stack && i < o->nr_lanes; i++) {
		const struct memory_lane *a = &o->lane[i];
		if (has_begun(a) && !a->joined && order_holds_life_of(o, i)->stack == life->stack &&
			a->life.begin_ns < life->begin_ns)
			return true;
	}
	return false;
}

enum base_status memory_order_let_one_go(
	struct memory_order *o, uint32_t lane, uint64_t clock, struct base_err *err)
{
	o->nr_waits -= o->lane[lane].held.kind != HOLD_THREADS;
	o->lane[lane].held.kind = HOLD_THREADS;
	enum base_status s = memory_order_start(o, lane, lane, clock, err);
	return s == BASE_OK && o->lane[lane].state == LANE_ENDED ? memory_order_ended(o, lane, err)
								 : s;
}

enum base_status memory_order_let_go(struct memory_order *o, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < o->nr_lanes && s == BASE_OK; i++) {
		uint64_t clock;
		if (o->lane[i].state == LANE_HELD && !is_held(o, i, &clock))
			s = memory_order_let_one_go(o, i, clock, err);
	}
	return s;
}

enum base_status memory_order_hold(struct memory_order *o, uint32_t lane, uint32_t child,
	const struct memory_call *call, bool *ret, struct base_err *err)
{
	*ret = false;
	if (o->options.mode != MEMORY_ORDER_PSEUDO || !o->source->ops->life)
		return BASE_OK;
	/* Of a live source it is known when its first words have come. */
	const struct memory_item *t;
	enum base_status s =
		memory_cursor_peek(&o->lane[child].cursor, o->source, (int)child, &t, err);
	if (s != BASE_OK)
		return s == BASE_END ? BASE_OK : s;
	const struct memory_life *life = order_holds_life_of(o, child);
	if (!life->end_ns || !is_successor(o, life))
		return BASE_OK;
	uint64_t clock = o->cpu[lane].clock;
	const struct memory_hold held = {
		.created_ns = call->start_ns, .begin_ns = life->begin_ns, .stack = life->stack};
	o->lane[lane].held = o->lane[child].held = held;
	o->least.is_known = false;
	o->cpu[child].clock = clock > o->cpu[child].clock ? clock : o->cpu[child].clock;
	o->cpu[child].lane = &o->lane[child];
	o->lane[lane].state = o->lane[child].state = LANE_HELD;
	*ret = true;
	return memory_order_let_go(o, err);
}

/* ---- condition variables --------------------------------------------------------------------- */

static bool is_meanwhile(const struct memory_hold *h, uint64_t object, uint64_t time_ns)
{
	return h->object == object && time_ns >= h->from_ns && time_ns <= h->to_ns;
}

/* What was awaited of an object has come. */
static enum base_status let_waiting_go(struct memory_order *o, uint32_t lane, uint64_t object,
	uint64_t time_ns, struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint64_t clock = o->cpu[lane].clock;
	for (uint32_t i = 0; o->nr_waits && i < o->nr_lanes && s == BASE_OK; i++)
		if (o->lane[i].state == LANE_HELD && o->lane[i].held.kind == HOLD_SIGNAL &&
			is_meanwhile(&o->lane[i].held, object, time_ns))
			s = memory_order_let_one_go(o, i, clock, err);
	return s;
}

/* A thread has come to a signal: those that wait for it go on; one that is still to wait finds
 * it. */
static enum base_status order_holds_on_signal(
	struct memory_order *o, uint32_t lane, const struct memory_call *call, struct base_err *err)
{
	uint64_t at, object = call->argument[0];
	enum base_status s = BASE_OK;
	if (!base_map_get(&o->signal_of, 0, object, &at)) {
		at = o->nr_signals;
		s = base_grow(&o->signals, &o->signals_capacity, at + 1, sizeof *o->signals);
		if (s == BASE_OK)
			s = base_map_put(&o->signal_of, 0, object, at);
		if (s != BASE_OK)
			return base_fail(err, s, "no memory for %zu condition {variable|variables}",
				o->nr_signals);
		o->signals[o->nr_signals++] = (struct memory_signals){0};
	}
	struct memory_signals *g = &o->signals[at];
	g->time_ns[g->nr % SIGNALS_KEPT] = call->start_ns;
	g->clock[g->nr++ % SIGNALS_KEPT] = o->cpu[lane].clock;
	return let_waiting_go(o, lane, object, call->start_ns, err);
}

/* Has there been a signal for it? The clock is then that of the first. */
static bool was_signalled(struct memory_order *o, const struct memory_hold *h, uint64_t *ret_clock)
{
	uint64_t at;
	bool found = false;
	if (!base_map_get(&o->signal_of, 0, h->object, &at))
		return false;
	const struct memory_signals *g = &o->signals[at];
	for (uint64_t i = 0; i < SIGNALS_KEPT && i < g->nr; i++)
		if (is_meanwhile(h, h->object, g->time_ns[i]) &&
			(!found || g->clock[i] < *ret_clock)) {
			*ret_clock = g->clock[i];
			found = true;
		}
	return found;
}

/* ---- what does not come ---------------------------------------------------------------------- */

/* A thread that cannot go on before one that is held (it waits for a region's end) does not
 * count. */
static bool order_holds_counts(const struct memory_lane *l)
{
	return has_begun(l) && l->state != LANE_ENDED && l->state != LANE_JOINED;
}

static void look_for_least(struct memory_order *o)
{
	struct memory_least t = {UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX, true};
	for (uint32_t i = 0; i < o->nr_lanes; i++) {
		uint64_t ns = o->lane[i].cursor.time_ns;
		if (!order_holds_counts(&o->lane[i]))
			continue;
		if (ns < t.ns) {
			t = (struct memory_least){ns, t.ns, i, t.lane, true};
		} else if (ns < t.others_ns) {
			t.others_ns = ns;
			t.other = i;
		}
	}
	o->least = t;
}

/* Times only grow: as long as the two that are least have not changed, they are. */
static bool is_least(const struct memory_order *o, uint32_t lane, uint64_t ns)
{
	return lane == UINT32_MAX ||
	       (order_holds_counts(&o->lane[lane]) && o->lane[lane].cursor.time_ns == ns);
}

static bool is_late(const struct memory_order *o, uint32_t lane)
{
	const struct memory_lane *l = &o->lane[lane];
	const struct memory_least *t = &o->least;
	if (l->state != LANE_HELD || l->held.kind == HOLD_THREADS)
		return false;
	if (l->held.kind == HOLD_SIGNAL)
		return l->held.to_ns <= t->ns;
	return memory_order_unit_is_lost(o, lane, lane == t->lane ? t->others_ns : t->ns);
}

/* Threads that wait for what can no longer come: all others are past that time. */
enum base_status memory_order_let_late_go(
	struct memory_order *o, uint32_t lane, bool has_ended, struct base_err *err)
{
	enum base_status s = BASE_OK;
	const struct memory_least *t = &o->least;
	bool same = t->is_known && is_least(o, t->lane, t->ns) &&
		    is_least(o, t->other, t->others_ns) && !has_ended;
	if (!same)
		look_for_least(o);
	/* Else of all that are held only the one that has just made the call may be new. */
	uint32_t from = same ? lane : 0, to = same ? lane + 1 : o->nr_lanes;
	for (uint32_t i = from; i < to && s == BASE_OK; i++) {
		if (!is_late(o, i))
			continue;
		if (o->lane[i].held.kind == HOLD_UNIT)
			memory_order_unit_take(o, i);
		s = memory_order_let_one_go(o, i, o->cpu[lane].clock, err);
	}
	return s;
}

/* Units are given up last, and one by one: the first one to have had its unit needed no other that
 * waits. */
enum base_status memory_order_unblock(struct memory_order *o, struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint32_t first = UINT32_MAX;
	bool others = false;
	for (uint32_t i = 0; i < o->nr_lanes && s == BASE_OK; i++) {
		const struct memory_lane *l = &o->lane[i];
		if (l->state != LANE_HELD)
			continue;
		if (l->held.kind != HOLD_UNIT) {
			uint64_t clock;
			others = true;
			(void)is_held(o, i, &clock);
			s = memory_order_let_one_go(o, i, clock, err);
		} else if (first == UINT32_MAX || l->held.to_ns < o->lane[first].held.to_ns) {
			first = i;
		}
	}
	if (others || first == UINT32_MAX || s != BASE_OK)
		return s;
	memory_order_unit_take(o, first);
	return memory_order_let_one_go(o, first, o->cpu[first].clock, err);
}

/* ---- heap blocks ----------------------------------------------------------------------------- */

enum { BLOCK_LANE, BLOCK_TIME }; /* of block_of: who has what begins there, and since when */

/* Must the lane wait until another one frees it? From now on it is the lane's. */
static enum base_status on_allocate(struct memory_order *o, uint32_t lane,
	const struct memory_call *call, bool *ret, struct base_err *err)
{
	uint64_t owner = lane, since_ns = 0, address = call->argument[0];
	if (base_map_get(&o->block_of, BLOCK_TIME, address, &since_ns))
		(void)base_map_get(&o->block_of, BLOCK_LANE, address, &owner);
	if (since_ns > call->start_ns)
		return BASE_OK; /* it was the lane's before it was the owner's */
	*ret = owner != lane && o->lane[owner].state != LANE_ENDED;
	if (*ret)
		o->lane[lane].held = (struct memory_hold){.kind = HOLD_SIGNAL,
			.object = address,
			.from_ns = since_ns,
			.to_ns = call->start_ns};
	enum base_status s = base_map_put(&o->block_of, BLOCK_LANE, address, lane);
	if (s == BASE_OK)
		s = base_map_put(&o->block_of, BLOCK_TIME, address, call->start_ns);
	return s == BASE_OK ? s : base_fail(err, s, "no memory for the places of heap blocks");
}

static enum base_status on_release(
	struct memory_order *o, uint32_t lane, const struct memory_call *call, struct base_err *err)
{
	uint64_t since_ns, address = call->argument[0];
	if (base_map_get(&o->block_of, BLOCK_TIME, address, &since_ns) &&
		since_ns <= call->start_ns) {
		(void)base_map_remove(&o->block_of, BLOCK_TIME, address);
		(void)base_map_remove(&o->block_of, BLOCK_LANE, address);
	}
	return let_waiting_go(o, lane, address, call->start_ns, err);
}

static enum base_status on_heap(struct memory_order *o, uint32_t lane,
	const struct memory_call *call, bool *ret, struct base_err *err)
{
	if (o->nr_lanes < 2 || !call->argument[0])
		return BASE_OK;
	if (call->kind == MEMORY_CALL_release)
		return on_release(o, lane, call, err);
	return call->kind == MEMORY_CALL_allocate && call->argument[3] == MEMORY_ALLOCATION_HEAP
		       ? on_allocate(o, lane, call, ret, err)
		       : BASE_OK;
}

/* Has it been signalled already? Else the lane waits. */
static void on_condition(
	struct memory_order *o, uint32_t lane, const struct memory_call *call, bool *ret)
{
	struct memory_lane *l = &o->lane[lane];
	uint64_t clock = 0;
	l->held = (struct memory_hold){.kind = HOLD_SIGNAL,
		.object = call->argument[0],
		.from_ns = call->start_ns,
		.to_ns = call->end_ns};
	*ret = !was_signalled(o, &l->held, &clock);
	if (!*ret && clock > o->cpu[lane].clock)
		o->cpu[lane].clock = clock;
}

enum base_status memory_order_call(struct memory_order *o, uint32_t lane,
	const struct memory_call *call, bool *ret, struct base_err *err)
{
	struct memory_lane *l = &o->lane[lane];
	enum base_status s = BASE_OK;
	*ret = false;
	if (o->options.mode != MEMORY_ORDER_PSEUDO || !call->end_ns)
		return BASE_OK;
	if (call->kind == MEMORY_CALL_signal && call->argument[0])
		s = order_holds_on_signal(o, lane, call, err);
	bool waits = false;
	if (s == BASE_OK)
		s = on_heap(o, lane, call, &waits, err);
	/* (a semaphore has no mutex that is given up just then) */
	if (call->kind == MEMORY_CALL_wait && call->argument[0] && l->unlocked_ns == call->start_ns)
		on_condition(o, lane, call, &waits);
	else if (s == BASE_OK && !waits)
		s = memory_order_units(o, lane, call, &waits, err);
	if (call->kind == MEMORY_CALL_unlock)
		l->unlocked_ns = call->start_ns;
	*ret = waits;
	o->nr_waits += waits;
	if (waits)
		l->state = LANE_HELD;
	/* (this one, too, may go on at once) */
	return o->nr_waits && s == BASE_OK ? memory_order_let_late_go(o, lane, false, err) : s;
}

void memory_order_holds_fini(struct memory_order *o)
{
	base_map_fini(&o->signal_of);
	base_map_fini(&o->block_of);
	base_free(o->signals);
}

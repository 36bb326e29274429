/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_units.c - by pseudo clocks, what threads take from each other: locks and semaphores.
 *
 * A lock is one thread's at a time (or its readers'), a semaphore has as many units as were given.
 * A thread that finds none waits until one is given, and goes on at the giver's clock; of several,
 * the one with the smallest clock. The clocks say which comes first, not recorded times: those say
 * in which order the threads were scheduled, and the order of critical sections would be that
 * again.
 *
 * But what is behind a lock may say that a thread need not wait on a condition: a queue has
 * something, which another one must have put there. Where it is recorded how often the condition
 * had been signalled, it is signalled as often before.
 *
 * Semaphores count from where they were seen made. What is given by code that nobody sees shows by
 * recorded times: all others are past the end of a wait, and nobody has what it got. It goes on.
 */
#include "memory/order/order_private.h"
#include "memory/stream/stream.h"

#define NOBODY  UINT32_MAX
#define NOWHERE UINT64_MAX
/* Clocks of processors may be that far apart, or coarse: what is given seems to be later than
 * taken. */
enum { CLOCKS_DIFFER_NS = 1000 };
enum units_kind { OF_LOCK, OF_CRITICAL, OF_SEMAPHORE, OF_CONDITION, OF_ORDER };

struct memory_units {
	enum units_kind kind;
	uint64_t nr; /* that are free; of others: how often they came, which nobody takes */
	uint32_t holder, depth; /* of a lock; its holder may take it again */
	uint32_t nr_readers, nr_waiting;
	uint64_t taken_ns; /* when its holder got it, as recorded; the last of several */
};

static bool order_units_is_counted(const struct memory_units *u)
{
	return u->kind >= OF_SEMAPHORE;
}

/* *ret: its index; NOWHERE: there is none, and it is not to be made. */
static enum base_status order_units_find(struct memory_order *o, enum units_kind kind,
	uint64_t address, bool make, uint64_t *ret, struct base_err *err)
{
	*ret = NOWHERE;
	if (base_map_get(&o->units_of, kind, address, ret) || !make)
		return BASE_OK;
	size_t at = o->nr_units;
	enum base_status s = base_grow(&o->units, &o->units_capacity, at + 1, sizeof *o->units);
	if (s == BASE_OK)
		s = base_map_put(&o->units_of, kind, address, at);
	if (s != BASE_OK)
		return base_fail(err, s, "no memory for %zu {lock|locks} and semaphores", at);
	o->units[o->nr_units++] = (struct memory_units){.kind = kind, .holder = NOBODY};
	*ret = at;
	return BASE_OK;
}

static bool has_holder(const struct memory_order *o, const struct memory_units *u)
{
	return u->holder != NOBODY && o->lane[u->holder].state != LANE_ENDED;
}

static bool can_take(const struct memory_order *o, uint32_t lane)
{
	const struct memory_hold *h = &o->lane[lane].held;
	const struct memory_units *u = &o->units[h->object];
	if (order_units_is_counted(u))
		return u->nr >= h->nr;
	return u->holder == lane || (!has_holder(o, u) && (h->shares || !u->nr_readers));
}

static void order_units_take_lock(struct memory_units *u, uint32_t lane, bool shares)
{
	if (u->holder == lane) {
		u->depth++;
		return;
	}
	u->holder = shares ? NOBODY : lane;
	u->depth = 1;
	u->nr_readers = shares ? u->nr_readers + 1 : 0;
}

void memory_order_unit_take(struct memory_order *o, uint32_t lane)
{
	const struct memory_hold *h = &o->lane[lane].held;
	struct memory_units *u = &o->units[h->object];
	u->nr_waiting -= o->lane[lane].state == LANE_HELD;
	if (u->kind > OF_SEMAPHORE) { /* (where there are fewer, the others were lost) */
		u->nr = u->nr < h->nr ? h->nr : u->nr;
		return;
	}
	bool alone = !order_units_is_counted(u) && !h->shares;
	if (alone ? u->holder != lane : h->to_ns > u->taken_ns)
		u->taken_ns = h->to_ns;
	if (order_units_is_counted(u))
		u->nr -= u->nr < h->nr ? u->nr : h->nr;
	else
		order_units_take_lock(u, lane, h->shares);
}

bool memory_order_unit_is_lost(const struct memory_order *o, uint32_t lane, uint64_t others_ns)
{
	const struct memory_hold *h = &o->lane[lane].held;
	const struct memory_units *u = &o->units[h->object];
	bool has_had = u->kind <= OF_SEMAPHORE && u->taken_ns >= h->to_ns; /* another one, its */
	return can_take(o, lane) || /* (who had it has ended) */
	       (others_ns > h->to_ns && others_ns - h->to_ns > CLOCKS_DIFFER_NS && !has_had);
}

static void order_units_take(struct memory_order *o, uint32_t lane, uint64_t at, uint64_t nr,
	const struct memory_call *call, bool *ret)
{
	o->lane[lane].held = (struct memory_hold){.kind = HOLD_UNIT,
		.object = at,
		.to_ns = call->end_ns,
		.nr = nr,
		.shares = call->kind == MEMORY_CALL_lock && call->argument[1]};
	*ret = !can_take(o, lane);
	if (*ret)
		o->units[at].nr_waiting++;
	else
		memory_order_unit_take(o, lane);
}

/* The waiter that may have it, with the smallest clock. */
static uint32_t order_units_first_waiting(const struct memory_order *o, uint64_t at)
{
	uint32_t first = NOBODY;
	for (uint32_t i = 0; i < o->nr_lanes; i++) {
		const struct memory_lane *l = &o->lane[i];
		if (l->state == LANE_HELD && l->held.kind == HOLD_UNIT && l->held.object == at &&
			can_take(o, i) &&
			(first == NOBODY || o->cpu[i].clock < o->cpu[first].clock))
			first = i;
	}
	return first;
}

static enum base_status order_units_give(
	struct memory_order *o, uint32_t lane, uint64_t at, uint64_t nr, struct base_err *err)
{
	struct memory_units *u = &o->units[at];
	enum base_status s = BASE_OK;
	if (order_units_is_counted(u))
		u->nr += nr;
	else if (u->holder == lane)
		u->holder = --u->depth ? lane : NOBODY;
	else
		u->nr_readers -= u->nr_readers != 0;
	while (u->nr_waiting && s == BASE_OK) {
		uint32_t next = order_units_first_waiting(o, at);
		if (next == NOBODY)
			break;
		memory_order_unit_take(o, next);
		s = memory_order_let_one_go(o, next, o->cpu[lane].clock, err);
	}
	return s;
}

static enum base_status order_units_made(
	struct memory_order *o, const struct memory_call *call, struct base_err *err)
{
	uint64_t at;
	bool was_there = base_map_get(&o->units_of, OF_SEMAPHORE, call->argument[0], &at);
	enum base_status s = order_units_find(o, OF_SEMAPHORE, call->argument[0], true, &at, err);
	/* One with a name is made once, whoever opens it again. */
	if (s == BASE_OK && !(was_there && call->argument[2])) {
		o->units[at].nr = call->argument[1];
		o->units[at].taken_ns = 0;
	}
	return s;
}

/* What a call means here. */
struct meaning {
	enum { NOTHING, TAKES, GIVES } what;
	enum units_kind kind;
	uint64_t address, nr;
};

static struct meaning meaning_of_semop(const struct memory_call *call)
{
	int64_t change = (int64_t)call->argument[2];
	return (struct meaning){.what = change > 0 ? GIVES
					: change   ? TAKES
						   : NOTHING,
		.kind = OF_SEMAPHORE,
		.address = MEMORY_OBJECT_SYSTEM_V(call->argument[0], call->argument[1]),
		.nr = change > 0 ? (uint64_t)change : -(uint64_t)change};
}

static struct meaning meaning_of(const struct memory_order *o, const struct memory_call *call)
{
	uint64_t address = call->argument[0], nr = call->argument[1], at;
	switch (call->kind) {
	case MEMORY_CALL_lock:
		return (struct meaning){TAKES, OF_LOCK, address, 1};
	case MEMORY_CALL_unlock:
		return (struct meaning){GIVES, OF_LOCK, address, 1};
	case MEMORY_CALL_begin_critical:
		return (struct meaning){TAKES, OF_CRITICAL, address, 1};
	case MEMORY_CALL_end_critical:
		return (struct meaning){GIVES, OF_CRITICAL, address, 1};
	case MEMORY_CALL_wait:
		return (struct meaning){TAKES, OF_SEMAPHORE, address, 1};
	case MEMORY_CALL_signal:
		if (base_map_get(&o->units_of, OF_SEMAPHORE, address, &at))
			return (struct meaning){GIVES, OF_SEMAPHORE, address, 1};
		return (struct meaning){GIVES, OF_CONDITION, address, 1};
	case MEMORY_CALL_signalled:
		return (struct meaning){TAKES, OF_CONDITION, address, nr};
	case MEMORY_CALL_semop:
		return meaning_of_semop(call);
	case MEMORY_CALL_received:
		return (struct meaning){TAKES, OF_SEMAPHORE, address, nr};
	case MEMORY_CALL_sent:
		return (struct meaning){GIVES, OF_SEMAPHORE, address, nr};
	case MEMORY_CALL_begin_order:
		return (struct meaning){TAKES, OF_ORDER, address, nr};
	case MEMORY_CALL_end_order:
		return (struct meaning){GIVES, OF_ORDER, address, 1};
	default:
		return (struct meaning){0};
	}
}

enum base_status memory_order_units(struct memory_order *o, uint32_t lane,
	const struct memory_call *call, bool *ret, struct base_err *err)
{
	uint64_t at;
	if (o->nr_lanes < 2)
		return BASE_OK;
	if (call->kind == MEMORY_CALL_semaphore)
		return order_units_made(o, call, err);
	struct meaning m = meaning_of(o, call);
	if (m.what == NOTHING)
		return BASE_OK;
	if (call->kind == MEMORY_CALL_signalled) /* (there may have been a semaphore before) */
		(void)base_map_remove(&o->units_of, OF_SEMAPHORE, m.address);
	/* What was not seen made is left alone; nobody has a lock that nobody took. */
	bool makes = m.kind > OF_SEMAPHORE || (m.what == TAKES && m.kind != OF_SEMAPHORE) ||
		     memory_object_is_messages(m.address);
	enum base_status s = order_units_find(o, m.kind, m.address, makes, &at, err);
	if (s != BASE_OK || at == NOWHERE)
		return s;
	if (m.what == GIVES)
		return order_units_give(o, lane, at, m.nr, err);
	order_units_take(o, lane, at, m.nr, call, ret);
	return BASE_OK;
}

void memory_order_units_fini(struct memory_order *o)
{
	base_map_fini(&o->units_of);
	base_free(o->units);
}

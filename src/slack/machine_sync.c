/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_sync.c - locks, barriers, signals, threads: nobody goes on before the simulated machine
 * allows it.
 *
 * A lock is an atomic access to its first word, giving it back a store; waiters get it in the order
 * of coming. A barrier is an atomic access of each thread and, but for the last one, a load
 * afterwards. A condition lets go the threads that began to wait before it was signalled in the
 * recorded run; a semaphore counts, from an unknown value on: when all threads wait, it had one
 * more.
 */
#include "slack/machine_private.h"

#include <string.h>

static enum base_status machine_sync_no_memory(struct base_err *err)
{
	return base_fail(err, BASE_ERR_NOMEM, "no memory for an object of synchronisation");
}

/* NULL: no memory. */
static struct object *machine_sync_object_of(struct slack_machine *m, uint64_t address)
{
	uint64_t index;
	if (base_map_get(&m->objects, 0, address, &index))
		return m->object[index];
	if (base_grow(&m->object, &m->objects_capacity, m->nr_objects + 1, sizeof *m->object) !=
		BASE_OK)
		return NULL;
	struct object *o = base_alloc(sizeof *o);
	if (o)
		o->arrived = base_alloc((m->nr_lanes + 1) * sizeof *o->arrived);
	if (!o || !o->arrived || base_map_put(&m->objects, 0, address, m->nr_objects) != BASE_OK) {
		if (o)
			base_free(o->arrived);
		base_free(o);
		return NULL;
	}
	o->address = address;
	return m->object[m->nr_objects++] = o;
}

void slack_sync_fini(struct slack_machine *m)
{
	for (size_t i = 0; i < m->nr_objects; i++) {
		base_free(m->object[i]->arrived);
		base_free(m->object[i]);
	}
	base_free(m->object);
	base_map_fini(&m->objects);
}

/* ---- who waits ------------------------------------------------------------------------------- */

static void machine_sync_queue(struct object *o, struct lane *l, enum slack_kind pending)
{
	l->state = LANE_WAITS;
	l->pending = (uint8_t)pending;
	l->object = o;
	l->next = NULL;
	if (o->behind)
		o->behind->next = l;
	else
		o->first = l;
	o->behind = l;
	o->nr_waiting++;
}

static struct lane *machine_sync_take_first(struct object *o)
{
	struct lane *l = o->first;
	o->first = l->next;
	if (!o->first)
		o->behind = NULL;
	l->next = NULL;
	o->nr_waiting--;
	return l;
}

/* It goes on when what `by` did has arrived. */
static void machine_sync_wake(
	struct slack_machine *m, struct lane *l, const struct slack_producer *by)
{
	l->woken_by = *by;
	slack_machine_start(m, l, by->complete > l->issue ? by->complete : l->issue);
}

static void machine_sync_go_on(struct slack_machine *m, struct lane *l)
{
	slack_machine_start(m, l, l->issue);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static enum base_status sync_node(struct slack_machine *m, struct lane *l, enum slack_kind kind,
	uint64_t address, const struct slack_producer *extra, uint32_t nr_extra,
	struct slack_producer *ret, struct base_err *err)
{
	bool memory = address && address < MEMORY_ADDRESS_LIMIT - 4;
	struct slack_access a = {.address = address,
		.bytes = memory ? 4 : 0,
		.code = l->call_code,
		.kind = (uint8_t)kind,
		.loads = kind != SLACK_UNLOCK,
		.stores = kind != SLACK_LEAVE,
		.extra = extra,
		.nr_extra = nr_extra && extra->order ? nr_extra : 0};
	return slack_machine_node(m, l, &a, ret, err);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static enum base_status machine_sync_lock(
	struct slack_machine *m, struct lane *l, struct object *o, struct base_err *err)
{
	if (o->holder && o->holder != l) {
		machine_sync_queue(o, l, SLACK_LOCK);
		return BASE_OK;
	}
	o->holder = l;
	o->depth++;
	enum base_status s = sync_node(m, l, SLACK_LOCK, o->address, &o->giver, 1, NULL, err);
	machine_sync_go_on(m, l);
	return s;
}

static enum base_status machine_sync_unlock(struct slack_machine *m, struct lane *l,
	struct object *o, const struct memory_call *call, struct base_err *err)
{
	enum base_status s = sync_node(m, l, SLACK_UNLOCK, o->address, NULL, 0, &o->giver, err);
	l->last_unlock = true;
	l->unlock_ns = call->start_ns;
	if (o->holder != l)
		m->result.bad_calls += o->holder != NULL;
	else if (!--o->depth)
		o->holder = NULL;
	if (!o->holder && o->first) {
		struct lane *next = machine_sync_take_first(o);
		o->holder = next; /* nobody comes between */
		o->depth = 1;
		machine_sync_wake(m, next, &o->giver);
	}
	machine_sync_go_on(m, l);
	return s;
}

/* ---- barriers -------------------------------------------------------------------------------- */

static void machine_sync_open_barrier(struct slack_machine *m, struct object *o)
{
	o->nr_arrived = 0;
	while (o->first)
		machine_sync_wake(m, machine_sync_take_first(o), &o->giver);
}

static uint32_t running(const struct slack_machine *m)
{
	uint32_t nr = 0;
	for (uint32_t i = 0; i < m->nr_lanes; i++)
		nr += m->lane[i].state != LANE_ENDED && m->lane[i].state != LANE_UNBORN &&
		      m->lane[i].state != LANE_JOINS;
	return nr;
}

static enum base_status machine_sync_barrier(struct slack_machine *m, struct lane *l,
	struct object *o, const struct memory_call *call, struct base_err *err)
{
	/* The lane itself is off the heap but not waiting, so it counts as running. */
	uint64_t parties = call->argument[1] ? call->argument[1] : running(m);
	bool last = o->nr_arrived + 1u >= parties;
	struct slack_producer self;
	enum base_status s = sync_node(m, l, SLACK_BARRIER, o->address, last ? o->arrived : NULL,
		last ? o->nr_arrived : 0, &self, err);
	if (!last) {
		o->arrived[o->nr_arrived++] = self;
		machine_sync_queue(o, l, SLACK_LEAVE);
		return s;
	}
	o->giver = self;
	machine_sync_open_barrier(m, o);
	machine_sync_go_on(m, l);
	return s;
}

/* ---- conditions and semaphores --------------------------------------------------------------- */

static enum base_status machine_sync_pass(
	struct slack_machine *m, struct lane *l, struct object *o, struct base_err *err)
{
	enum base_status s = sync_node(m, l, SLACK_WAIT, o->address, &o->giver, 1, NULL, err);
	machine_sync_go_on(m, l);
	return s;
}

/* A wait that follows the release of a mutex in the same call is one for a condition. */
static enum base_status wait_signal(struct slack_machine *m, struct lane *l, struct object *o,
	const struct memory_call *call, bool condition, struct base_err *err)
{
	l->asked_ns = condition ? call->start_ns : UINT64_MAX;
	if (condition && o->signalled && o->signal_ns >= call->start_ns)
		return machine_sync_pass(m, l, o, err);
	if (!condition && o->tokens) {
		o->tokens--;
		return machine_sync_pass(m, l, o, err);
	}
	machine_sync_queue(o, l, SLACK_WAIT);
	return BASE_OK;
}

static enum base_status signal_all(struct slack_machine *m, struct lane *l, struct object *o,
	const struct memory_call *call, struct base_err *err)
{
	enum base_status s = sync_node(m, l, SLACK_SIGNAL, o->address, NULL, 0, &o->giver, err);
	struct lane *waits = o->first;
	bool token = true;
	o->signalled = true;
	o->signal_ns = call->start_ns > o->signal_ns ? call->start_ns : o->signal_ns;
	o->first = o->behind = NULL;
	o->nr_waiting = 0;
	while (waits) {
		struct lane *w = waits;
		waits = w->next;
		bool condition = w->asked_ns != UINT64_MAX;
		if (condition ? w->asked_ns <= o->signal_ns : token) {
			token = token && condition;
			machine_sync_wake(m, w, &o->giver);
		} else {
			machine_sync_queue(o, w, SLACK_WAIT);
		}
	}
	o->tokens += token;
	machine_sync_go_on(m, l);
	return s;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void begin_lane(struct slack_machine *m, struct lane *child, const struct slack_producer *by)
{
	child->time = child->issue = by->complete;
	child->pending = SLACK_BEGIN;
	machine_sync_wake(m, child, by);
}

static enum base_status machine_sync_create(struct slack_machine *m, struct lane *l,
	const struct memory_call *call, struct base_err *err)
{
	struct slack_producer self;
	enum base_status s = sync_node(m, l, SLACK_CREATE, 0, NULL, 0, &self, err);
	uint64_t child = call->argument[0];
	if (!m->result.parallel_from)
		m->result.parallel_from = self.complete;
	if (child < m->nr_lanes && m->lane[child].state == LANE_UNBORN)
		begin_lane(m, &m->lane[child], &self);
	else
		m->result.bad_calls++;
	machine_sync_go_on(m, l);
	return s;
}

static enum base_status machine_sync_join(struct slack_machine *m, struct lane *l,
	const struct memory_call *call, struct base_err *err)
{
	uint64_t child = call->argument[0];
	enum base_status s = BASE_OK;
	if (child >= m->nr_lanes || &m->lane[child] == l) {
		m->result.bad_calls++;
		machine_sync_go_on(m, l);
	} else if (m->lane[child].state == LANE_ENDED) {
		s = sync_node(m, l, SLACK_JOIN, 0, &m->lane[child].last, 1, NULL, err);
		machine_sync_go_on(m, l);
	} else {
		l->awaits = (uint32_t)child;
		l->state = LANE_JOINS;
		l->pending = SLACK_JOIN;
	}
	return s;
}

/* A parallel region: all threads that there are begin. */
static enum base_status spawn(struct slack_machine *m, struct lane *l, struct base_err *err)
{
	struct slack_producer self;
	if (l != m->lane || m->in_region) {
		machine_sync_go_on(m, l); /* the workers' own copies of the record */
		return BASE_OK;
	}
	enum base_status s = sync_node(m, l, SLACK_CREATE, 0, NULL, 0, &self, err);
	if (!m->result.parallel_from)
		m->result.parallel_from = self.complete;
	m->in_region = true;
	for (uint32_t i = 1; i < m->nr_lanes; i++) {
		struct lane *w = &m->lane[i];
		if (w->state == LANE_UNBORN)
			begin_lane(m, w, &self);
		else if (w->state == LANE_MEETS && w->pending)
			machine_sync_wake(m, w, &self);
	}
	machine_sync_go_on(m, l);
	return s;
}

/* Thread 0 waits for all that have records of the region's end of their own. */
static void maybe_meet(struct slack_machine *m)
{
	struct lane *zero = &m->lane[0];
	struct slack_producer latest = {0};
	if (zero->state != LANE_MEETS)
		return;
	for (uint32_t i = 1; i < m->nr_lanes; i++) {
		const struct lane *w = &m->lane[i];
		if (w->state != LANE_MEETS && w->state != LANE_ENDED && w->state != LANE_UNBORN)
			return;
		if (w->last.complete > latest.complete)
			latest = w->last;
	}
	m->in_region = false;
	m->has_region = true;
	machine_sync_wake(m, zero, &latest);
}

static enum base_status machine_sync_meet(
	struct slack_machine *m, struct lane *l, struct base_err *err)
{
	enum base_status s = BASE_OK;
	if (!strcmp(m->source->info.format, "lpt")) {
		m->result.omp_regions += l == m->lane;
		m->in_region = false;
		machine_sync_go_on(m, l);
		return s;
	}
	if (l != m->lane)
		s = sync_node(m, l, SLACK_SIGNAL, 0, NULL, 0, &l->last, err);
	l->state = LANE_MEETS;
	l->pending = SLACK_JOIN;
	maybe_meet(m);
	return s;
}

/* All that have come to the region's end have an edge to each thread that goes on. */
static enum base_status machine_sync_leave_region(
	struct slack_machine *m, struct lane *l, struct base_err *err)
{
	uint32_t nr = 0;
	struct slack_producer *p = base_alloc((m->nr_lanes + 1) * sizeof *p);
	if (!p)
		return machine_sync_no_memory(err);
	for (uint32_t i = 1; i < m->nr_lanes; i++)
		if (m->lane[i].last.order)
			p[nr++] = m->lane[i].last;
	enum base_status s = sync_node(m, l, SLACK_JOIN, 0, p, nr, NULL, err);
	base_free(p);
	return s;
}

static enum base_status machine_sync_mark(struct slack_machine *m, struct lane *l,
	const struct memory_call *call, struct base_err *err)
{
	struct slack_access a = {
		.kind = SLACK_MARK, .address = call->argument[1], .code = l->call_code};
	enum base_status s = slack_machine_node(m, l, &a, NULL, err);
	machine_sync_go_on(m, l);
	return s;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool is_of_an_object(unsigned kind)
{
	switch (kind) {
	case MEMORY_CALL_lock:
	case MEMORY_CALL_begin_critical:
	case MEMORY_CALL_unlock:
	case MEMORY_CALL_end_critical:
	case MEMORY_CALL_barrier:
	case MEMORY_CALL_wait:
	case MEMORY_CALL_signal:
		return true;
	default:
		return false;
	}
}

static enum base_status object_call(struct slack_machine *m, struct lane *l,
	const struct memory_call *call, bool condition, struct base_err *err)
{
	struct object *o = machine_sync_object_of(m, call->argument[0]);
	if (!o)
		return machine_sync_no_memory(err);
	switch ((enum memory_call_kind)call->kind) {
	case MEMORY_CALL_lock:
	case MEMORY_CALL_begin_critical:
		return machine_sync_lock(m, l, o, err);
	case MEMORY_CALL_barrier:
		return machine_sync_barrier(m, l, o, call, err);
	case MEMORY_CALL_wait:
		return wait_signal(m, l, o, call, condition, err);
	case MEMORY_CALL_signal:
		return signal_all(m, l, o, call, err);
	default:
		return machine_sync_unlock(m, l, o, call, err);
	}
}

enum base_status slack_sync_call(struct slack_machine *m, struct lane *l,
	const struct memory_call *call, struct base_err *err)
{
	bool condition = l->last_unlock && l->unlock_ns == call->start_ns;
	l->last_unlock = false;
	if (is_of_an_object(call->kind))
		return object_call(m, l, call, condition, err);
	switch ((enum memory_call_kind)call->kind) {
	case MEMORY_CALL_thread_create:
		return machine_sync_create(m, l, call, err);
	case MEMORY_CALL_thread_join:
		return machine_sync_join(m, l, call, err);
	case MEMORY_CALL_spawn:
		return spawn(m, l, err);
	case MEMORY_CALL_join:
		return machine_sync_meet(m, l, err);
	case MEMORY_CALL_marker:
	case MEMORY_CALL_phase:
		return machine_sync_mark(m, l, call, err);
	case MEMORY_CALL_allocate:
		machine_sync_go_on(m, l);
		return m->sink.allocated
			       ? m->sink.allocated(m->sink.ctx, call->argument[0],
					 call->argument[1],
					 call->argument[2] ? call->argument[2] : l->call_code, err)
			       : BASE_OK;
	default:
		machine_sync_go_on(m, l);
		return BASE_OK;
	}
}

enum base_status slack_sync_resume(struct slack_machine *m, struct lane *l, struct base_err *err)
{
	enum slack_kind kind = l->pending;
	enum base_status s;
	l->pending = 0;
	if (kind == SLACK_JOIN && l == m->lane && m->has_region)
		s = machine_sync_leave_region(m, l, err);
	else
		s = sync_node(m, l, kind,
			kind == SLACK_BEGIN || kind == SLACK_JOIN || !l->object
				? 0
				: l->object->address,
			&l->woken_by, 1, NULL, err);
	m->has_region = false;
	machine_sync_go_on(m, l);
	return s;
}

enum base_status slack_sync_ended(struct slack_machine *m, struct lane *l, struct base_err *err)
{
	(void)err;
	for (uint32_t i = 0; i < m->nr_lanes; i++)
		if (m->lane[i].state == LANE_JOINS && m->lane[i].awaits == (uint32_t)(l - m->lane))
			machine_sync_wake(m, &m->lane[i], &l->last);
	maybe_meet(m);
	return BASE_OK;
}

/* ---- nobody can go on ------------------------------------------------------------------------ */

static uint64_t now(const struct slack_machine *m)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < m->nr_lanes; i++)
		most = m->lane[i].time > most ? m->lane[i].time : most;
	return most;
}

/* The one that has waited longest, of those that wait for this. */
static struct lane *longest(struct slack_machine *m, enum slack_kind kind)
{
	struct lane *best = NULL;
	for (uint32_t i = 0; i < m->nr_lanes; i++) {
		struct lane *l = &m->lane[i];
		if ((l->state == LANE_WAITS || l->state == LANE_JOINS || l->state == LANE_MEETS) &&
			l->pending == kind && (!best || l->issue < best->issue))
			best = l;
	}
	return best;
}

static void unqueue(struct lane *l)
{
	struct object *o = l->object;
	struct lane **at = &o->first, *before = NULL;
	for (; *at && *at != l; at = &(*at)->next)
		before = *at;
	if (!*at)
		return;
	*at = l->next;
	if (o->behind == l)
		o->behind = before;
	o->nr_waiting--;
}

enum base_status slack_sync_stuck(struct slack_machine *m, bool *ret_freed, struct base_err *err)
{
	static const uint8_t turn[] = {SLACK_WAIT, SLACK_LEAVE, SLACK_LOCK, SLACK_JOIN};
	struct slack_producer nobody = {0};
	uint64_t at = now(m);
	(void)err;
	*ret_freed = false;
	for (uint32_t i = 0; i < m->nr_lanes; i++) { /* threads that nobody created */
		struct lane *l = &m->lane[i];
		if (l->state != LANE_UNBORN)
			continue;
		l->time = l->issue = at;
		slack_machine_start(m, l, at);
		*ret_freed = true;
	}
	for (size_t i = 0; i < BASE_COUNT(turn) && !*ret_freed; i++) {
		struct lane *l = longest(m, turn[i]);
		if (!l)
			continue;
		*ret_freed = true;
		m->result.forced++;
		if (turn[i] == SLACK_LEAVE) {
			l->object->giver = nobody;
			machine_sync_open_barrier(m, l->object);
			break;
		}
		if (turn[i] != SLACK_JOIN)
			unqueue(l);
		if (turn[i] == SLACK_LOCK) {
			l->object->holder = l;
			l->object->depth = 1;
		}
		machine_sync_wake(m, l, &nobody);
	}
	return BASE_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - streams into steps: pseudo clocks, phases, barriers. */
#include "memory/order/order_private.h"

#include <string.h>

enum {
	CALLS_MAX = MEMORY_STEPS_MAX,
	TURN_STEPS_MAX = 32, /* of a thread that is alone */
	TURN_LOOP_STEPS_MAX = 4,
	/* What one call may add: the end and beginning of phases, everybody's activity. */
	STEPS_SLACK = 2 * MEMORY_THREADS_MAX + 16
};

uint64_t memory_order_clocks(const struct memory_order *o, double ms)
{
	return (uint64_t)(ms * 1e3 * o->options.processor_mhz * o->options.ipc);
}

uint32_t memory_order_threads(const struct memory_order *o)
{
	return o->nr_cpus;
}

const char *memory_order_sentence(const struct memory_order *o)
{
	if (o->source->info.flags & MEMORY_SOURCE_TOTAL_ORDER)
		return "the order of accesses is the recorded one";
	if (o->nr_lanes == 1 && !o->scheduler)
		return "one thread: its own order";
	switch (o->options.mode) {
	case MEMORY_ORDER_TIME:
		if (o->source->info.flags & MEMORY_SOURCE_SERIAL)
			return "the order of accesses is the recorded one: one thread ran at a "
			       "time";
		return "threads were interleaved by recorded times; within a piece between two of "
		       "them the order of threads is assumed";
	case MEMORY_ORDER_SLICES:
		return "processes were interleaved slice by slice, by the scheduler's model";
	case MEMORY_ORDER_ROUND_ROBIN:
		return "processes were interleaved in turns";
	default:
		if (o->source->info.flags & MEMORY_SOURCE_SERIAL)
			return "threads were interleaved by pseudo clocks (an instruction is a "
			       "cycle), as if they ran side by side and equally fast. In fact one "
			       "ran at a time, and where they waited for each other is not known "
			       "before one is left alone";
		return "threads were interleaved by pseudo clocks (an instruction is a cycle), as "
		       "if "
		       "they ran equally fast";
	}
}

/* ---- steps ----------------------------------------------------------------------------------- */

static struct memory_step *order_add_step(struct memory_order *o, struct memory_step s)
{
	BASE_ASSUME(o->step);
	o->step[o->nr_steps] = s;
	return &o->step[o->nr_steps++];
}

static uint64_t largest_clock(const struct memory_order *o)
{
	uint64_t most = 0;
	BASE_ASSUME(o->cpu);
	for (uint32_t i = 0; i < o->nr_cpus; i++)
		most = o->cpu[i].clock > most ? o->cpu[i].clock : most;
	return most;
}

static void tell_active(struct memory_order *o, uint32_t cpu, bool active)
{
	if (o->cpu[cpu].active == active)
		return;
	o->cpu[cpu].active = active;
	order_add_step(o, (struct memory_step){
				  .kind = (uint8_t)(active ? MEMORY_STEP_ACTIVE : MEMORY_STEP_IDLE),
				  .thread = (uint16_t)cpu,
				  .clock = o->cpu[cpu].clock});
}

static void phase_step(struct memory_order *o, bool begins, enum memory_phase_kind kind)
{
	order_add_step(o, (struct memory_step){.kind = (uint8_t)(begins ? MEMORY_STEP_PHASE_BEGIN
									: MEMORY_STEP_PHASE_END),
				  .address = kind,
				  .count = o->region,
				  .clock = largest_clock(o)});
}

/* Phases are told late, so that one without a step is none. */
static void open_phase(struct memory_order *o)
{
	if (o->phase_open)
		return;
	o->phase_open = true;
	phase_step(o, true, o->user_open ? MEMORY_PHASE_USER : o->phase);
	for (uint32_t i = 0; i < o->nr_cpus; i++)
		if (o->cpu[i].lane && o->cpu[i].lane->state == LANE_RUNS)
			tell_active(o, i, true);
}

static void close_phase(struct memory_order *o)
{
	uint64_t most = largest_clock(o);
	for (uint32_t i = 0; i < o->nr_cpus; i++) {
		struct memory_cpu *c = &o->cpu[i];
		if (o->phase_open && (!c->lane || c->lane->state != LANE_RUNS))
			tell_active(o, i, false);
		c->clock = most;
	}
	if (o->phase_open)
		phase_step(o, false, o->user_open ? MEMORY_PHASE_USER : o->phase);
	o->phase_open = false;
}

/* ---- one lane -------------------------------------------------------------------------------- */

/* The lane's next item into *ret; BASE_END when there is none; NULL when there is none now. */
static inline enum base_status order_lane_peek(struct memory_order *o, struct memory_lane *l,
	const struct memory_item **ret, struct base_err *err)
{
	return memory_cursor_peek(&l->cursor, o->source, (int)(l - o->lane), ret, err);
}

static inline uint64_t order_item_due(const struct memory_cpu *c, const struct memory_item *t)
{
	return memory_item_due(t, c->clock + t->instructions);
}

uint64_t memory_order_lane_key(
	const struct memory_order *o, uint32_t cpu, const struct memory_item *t)
{
	const struct memory_cpu *c = &o->cpu[cpu];
	return memory_key(o->options.mode == MEMORY_ORDER_TIME ? c->lane->cursor.time_ns
							       : order_item_due(c, t),
		cpu);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The times of the same call in the call traces, when they have it. */
static enum base_status take_call_times(
	struct memory_order *o, uint32_t lane, struct memory_call *call, struct base_err *err)
{
	struct memory_lane *l = &o->lane[lane];
	if (!o->calls || lane >= o->calls->info.nr_threads)
		return BASE_OK;
	for (;;) {
		for (; l->calls_at < l->calls.nr; l->calls_at++) {
			const struct memory_item *t = &l->calls.item[l->calls_at];
			if (t->kind != MEMORY_CALL)
				continue;
			const struct memory_call *other = &l->calls.call[t->address];
			l->calls_at++;
			if (other->kind != call->kind)
				return base_fail(err, BASE_ERR_FOREIGN,
					"thread %u: the call traces are of another run: they have "
					"a "
					"call '%s' where the detailed trace has '%s'",
					lane, memory_call_find(other->kind)->name,
					memory_call_find(call->kind)->name);
			call->start_ns = other->start_ns;
			call->end_ns = other->end_ns;
			return BASE_OK;
		}
		l->calls_at = 0;
		enum base_status s = memory_source_next(o->calls, (int)lane, &l->calls, err);
		if (s != BASE_OK) {
			l->calls.nr = 0;
			return s == BASE_END ? BASE_OK : s;
		}
		if (!l->calls.nr)
			return BASE_OK;
	}
}

enum base_status memory_order_start(
	struct memory_order *o, uint32_t lane, uint32_t cpu, uint64_t clock, struct base_err *err)
{
	BASE_ASSUME(o->lane && o->cpu);
	struct memory_lane *l = &o->lane[lane];
	const struct memory_item *t;
	o->least.is_known &= l->state != LANE_WAITS;
	enum base_status s = order_lane_peek(o, l, &t, err);
	if (s == BASE_END)
		l->state = LANE_ENDED;
	if (s != BASE_OK)
		return s == BASE_END ? BASE_OK : s;
	struct memory_cpu *c = &o->cpu[cpu];
	c->lane = l;
	c->clock = clock > c->clock ? clock : c->clock;
	l->processor = cpu;
	if (!t) {
		l->state = LANE_IDLE;
		return BASE_OK;
	}
	l->state = LANE_RUNS;
	if (o->phase_open)
		tell_active(o, cpu, true);
	base_turns_put(&o->due, memory_order_lane_key(o, cpu, t));
	return BASE_OK;
}

/* Lets a thread run from `clock` on. */
static enum base_status start_lane(
	struct memory_order *o, uint32_t i, uint64_t clock, struct base_err *err)
{
	return memory_order_start(o, i, i, clock, err);
}

static enum base_status start_all(
	struct memory_order *o, enum lane_state from, struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint64_t clock = largest_clock(o);
	BASE_ASSUME(o->lane);
	for (uint32_t i = 0; i < o->nr_lanes && s == BASE_OK; i++)
		if (o->lane[i].state == from)
			s = start_lane(o, i, clock, err);
	return s;
}

static void order_begin_phase(struct memory_order *o, enum memory_phase_kind kind, uint64_t region)
{
	close_phase(o);
	o->user_open = false;
	o->phase = kind;
	o->region = region;
}

static void order_park(struct memory_order *o, uint32_t cpu, enum lane_state why)
{
	o->cpu[cpu].lane->state = why;
	tell_active(o, cpu, false);
}

static uint32_t lanes_in(const struct memory_order *o, enum lane_state state)
{
	uint32_t nr = 0;
	for (uint32_t i = 0; i < o->nr_lanes; i++)
		nr += o->lane[i].state == state;
	return nr;
}

static enum base_status release_barrier(
	struct memory_order *o, uint64_t address, bool all, struct base_err *err)
{
	uint64_t most = 0;
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < o->nr_lanes; i++)
		if (o->lane[i].state == LANE_BARRIER && (all || o->lane[i].barrier == address) &&
			o->cpu[i].clock > most)
			most = o->cpu[i].clock;
	for (uint32_t i = 0; i < o->nr_lanes && s == BASE_OK; i++)
		if (o->lane[i].state == LANE_BARRIER && (all || o->lane[i].barrier == address))
			s = start_lane(o, i, most, err);
	return s;
}

static enum base_status at_barrier(
	struct memory_order *o, uint32_t cpu, const struct memory_call *call, struct base_err *err)
{
	struct memory_lane *l = o->cpu[cpu].lane;
	uint64_t nr_waiting = 0;
	l->barrier = call->argument[0];
	l->barrier_parties = call->argument[1];
	if (!l->barrier_parties) /* not known: all that are in this phase */
		l->barrier_parties = lanes_in(o, LANE_RUNS) + lanes_in(o, LANE_BARRIER) +
				     lanes_in(o, LANE_IDLE) + lanes_in(o, LANE_HELD);
	order_park(o, cpu, LANE_BARRIER);
	for (uint32_t i = 0; i < o->nr_lanes; i++)
		nr_waiting += o->lane[i].state == LANE_BARRIER && o->lane[i].barrier == l->barrier;
	return nr_waiting >= l->barrier_parties ? release_barrier(o, l->barrier, false, err)
						: BASE_OK;
}

/* In a parallel phase: has everybody else joined or ended? Then thread 0 is alone again. */
static enum base_status maybe_join(struct memory_order *o, struct base_err *err)
{
	if (o->phase != MEMORY_PHASE_PARALLEL || lanes_in(o, LANE_RUNS) ||
		lanes_in(o, LANE_BARRIER) || lanes_in(o, LANE_IDLE) || lanes_in(o, LANE_JOINS) ||
		lanes_in(o, LANE_HELD) || !lanes_in(o, LANE_JOINED))
		return BASE_OK;
	order_begin_phase(o, MEMORY_PHASE_SERIAL, 0);
	bool zero_goes_on = o->lane[0].state == LANE_JOINED;
	for (uint32_t i = 0; i < o->nr_lanes; i++)
		if (o->lane[i].state == LANE_JOINED)
			o->lane[i].state = LANE_WAITS;
	return zero_goes_on ? start_lane(o, 0, largest_clock(o), err) : BASE_OK;
}

static enum base_status on_spawn(
	struct memory_order *o, uint32_t cpu, const struct memory_call *call, struct base_err *err)
{
	if (o->phase == MEMORY_PHASE_PARALLEL || o->cpu[cpu].lane != &o->lane[0])
		return start_lane(o, cpu, 0, err); /* the workers' own copies of the record */
	order_begin_phase(o, MEMORY_PHASE_PARALLEL, call->argument[0]);
	enum base_status s = start_lane(o, cpu, 0, err);
	return s == BASE_OK ? start_all(o, LANE_WAITS, err) : s;
}

static enum base_status on_create(
	struct memory_order *o, uint32_t cpu, const struct memory_call *call, struct base_err *err)
{
	uint64_t child = call->argument[0];
	enum base_status s;
	if (child == UINT64_MAX &&
		call->argument[1]) /* it has no stream: all of it is a library's */
		return start_lane(o, cpu, 0, err);
	if (child >= o->nr_lanes || o->lane[child].state != LANE_WAITS) {
		memory_diag_add(&o->source->diags, MEMORY_DIAG_bad_thread, cpu,
			o->cpu[cpu].lane->cursor.batch.first_record);
		return start_lane(o, cpu, 0, err);
	}
	if (o->phase == MEMORY_PHASE_SERIAL)
		order_begin_phase(o, MEMORY_PHASE_PARALLEL, 0);
	uint64_t clock = o->cpu[cpu].clock;
	bool held;
	s = memory_order_hold(o, cpu, (uint32_t)child, call, &held, err);
	if (s != BASE_OK || held) {
		if (o->lane[cpu].state == LANE_HELD)
			tell_active(o, cpu, false);
		return s;
	}
	s = start_lane(o, cpu, 0, err);
	return s == BASE_OK ? start_lane(o, (uint32_t)child, clock, err) : s;
}

/* Is thread 0 the only one left of a phase that thread creation began? */
static bool alone(const struct memory_order *o, uint32_t lane)
{
	for (uint32_t i = 0; i < o->nr_lanes; i++)
		if (i != lane && o->lane[i].state != LANE_ENDED && o->lane[i].state != LANE_WAITS)
			return false;
	return true;
}

static enum base_status after_thread_join(
	struct memory_order *o, uint32_t cpu, uint64_t child, struct base_err *err)
{
	if (o->phase == MEMORY_PHASE_PARALLEL && cpu == 0 && alone(o, 0))
		order_begin_phase(o, MEMORY_PHASE_SERIAL, 0);
	return start_lane(o, cpu, o->cpu[child].clock, err);
}

static enum base_status on_thread_join(
	struct memory_order *o, uint32_t cpu, const struct memory_call *call, struct base_err *err)
{
	uint64_t child = call->argument[0];
	if (child == UINT64_MAX)
		return start_lane(o, cpu, 0, err);
	if (child < o->nr_lanes)
		o->lane[child].joined = true;
	if (child >= o->nr_lanes || child == cpu || o->lane[child].state == LANE_WAITS) {
		memory_diag_add(&o->source->diags, MEMORY_DIAG_bad_thread, cpu,
			o->cpu[cpu].lane->cursor.batch.first_record);
		return start_lane(o, cpu, 0, err);
	}
	if (o->lane[child].state == LANE_ENDED)
		return after_thread_join(o, cpu, child, err);
	o->cpu[cpu].lane->awaits = (uint32_t)child;
	order_park(o, cpu, LANE_JOINS);
	return BASE_OK;
}

static enum base_status on_join(struct memory_order *o, uint32_t cpu, struct base_err *err)
{
	if (o->phase != MEMORY_PHASE_PARALLEL) {
		memory_diag_add(&o->source->diags, MEMORY_DIAG_join_without_spawn, cpu,
			o->cpu[cpu].lane->cursor.batch.first_record);
		return start_lane(o, cpu, 0, err);
	}
	order_park(o, cpu, LANE_JOINED);
	return maybe_join(o, err);
}

static void on_marker(struct memory_order *o, uint32_t cpu, const struct memory_call *call)
{
	bool command_free = call->kind == MEMORY_CALL_phase || !call->argument[0];
	if (cpu != 0 || !command_free)
		return;
	close_phase(o);
	o->user_open = true;
	o->region = call->argument[1];
}

/* The lane has stopped; what the call means to phases and clocks lets it go on, or not. */
static enum base_status order_obey_call(
	struct memory_order *o, uint32_t cpu, const struct memory_call *call, struct base_err *err)
{
	bool threads = o->source->info.flags & MEMORY_SOURCE_THREADS, waits;
	enum base_status s = memory_order_call(o, cpu, call, &waits, err);
	if (s != BASE_OK || waits) {
		if (o->lane[cpu].state == LANE_HELD)
			tell_active(o, cpu, false);
		return s;
	}
	if (call->kind == MEMORY_CALL_barrier)
		return at_barrier(o, cpu, call, err);
	if (call->kind == MEMORY_CALL_marker || call->kind == MEMORY_CALL_phase)
		on_marker(o, cpu, call);
	if (threads && !o->options.starts_parallel) {
		switch (call->kind) {
		case MEMORY_CALL_spawn:
			return on_spawn(o, cpu, call, err);
		case MEMORY_CALL_join:
			return on_join(o, cpu, err);
		case MEMORY_CALL_thread_create:
			return on_create(o, cpu, call, err);
		case MEMORY_CALL_thread_join:
			return on_thread_join(o, cpu, call, err);
		}
	}
	return start_lane(o, cpu, 0, err);
}

/* Data that a disk moves for a read or write (-handle_io). */
static void io_steps(
	struct memory_order *o, const struct memory_step *at, const struct memory_call *call)
{
	bool in = call->kind == MEMORY_CALL_read;
	struct memory_step s = {.thread = at->thread,
		.stream = at->stream,
		.clock = at->clock,
		.address = call->argument[0],
		.count = call->argument[1]};
	if (!s.count || s.count > MEMORY_ADDRESS_LIMIT ||
		s.address > MEMORY_ADDRESS_LIMIT - s.count)
		return;
	struct memory_step dma = s, copy_from = s, copy_to = s;
	dma.kind = in ? MEMORY_STEP_DMA_IN : MEMORY_STEP_DMA_OUT;
	if (!o->options.buffered_io) {
		order_add_step(o, dma);
		return;
	}
	uint64_t buffer = MEMORY_SYSTEM_BUFFERS + at->stream * MEMORY_SYSTEM_BUFFER_BYTES;
	if (s.count > MEMORY_SYSTEM_BUFFER_BYTES)
		s.count = MEMORY_SYSTEM_BUFFER_BYTES;
	dma.address = buffer;
	copy_from.kind = MEMORY_RANGE_LOAD;
	copy_to.kind = MEMORY_RANGE_STORE;
	*(in ? &copy_from.address : &copy_to.address) = buffer;
	dma.count = copy_from.count = copy_to.count = s.count;
	if (in)
		order_add_step(o, dma);
	order_add_step(o, copy_from);
	order_add_step(o, copy_to);
	if (!in)
		order_add_step(o, dma);
}

static enum base_status call_step(struct memory_order *o, struct memory_step *s,
	const struct memory_call *call, struct memory_call *ret, struct base_err *err)
{
	*ret = *call;
	enum base_status status = take_call_times(o, s->stream, ret, err);
	if (status != BASE_OK)
		return status;
	s->call = (uint32_t)o->nr_calls;
	o->call[o->nr_calls++] = *ret;
	if (o->options.handle_io &&
		(ret->kind == MEMORY_CALL_read || ret->kind == MEMORY_CALL_write))
		io_steps(o, s, ret);
	return BASE_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static enum base_status wake_joiners(struct memory_order *o, uint32_t lane, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < o->nr_lanes && s == BASE_OK; i++)
		if (o->lane[i].state == LANE_JOINS && o->lane[i].awaits == lane)
			s = after_thread_join(o, i, lane, err);
	return s;
}

enum base_status memory_order_ended(struct memory_order *o, uint32_t cpu, struct base_err *err)
{
	struct memory_lane *l = o->cpu[cpu].lane;
	order_park(o, cpu, LANE_ENDED);
	if (o->scheduler) {
		memory_scheduler_ended(o, cpu);
		return memory_scheduler_fill(o, err);
	}
	enum base_status s = wake_joiners(o, (uint32_t)(l - o->lane), err);
	if (s == BASE_OK)
		s = memory_order_let_go(o, err);
	if (s == BASE_OK && o->nr_waits)
		s = memory_order_let_late_go(o, cpu, true, err);
	return s == BASE_OK ? maybe_join(o, err) : s;
}

/* What a step has of its item is copied as it is. */
_Static_assert(offsetof(struct memory_step, clock) == sizeof(struct memory_item) &&
		       offsetof(struct memory_step, code) == offsetof(struct memory_item, code) &&
		       offsetof(struct memory_step, count) == offsetof(struct memory_item, count) &&
		       offsetof(struct memory_step, instructions) ==
			       offsetof(struct memory_item, instructions) &&
		       offsetof(struct memory_step, size_bytes) ==
			       offsetof(struct memory_item, size_bytes) &&
		       offsetof(struct memory_step, kind) == offsetof(struct memory_item, kind),
	"struct memory_step begins as struct memory_item");

static inline __attribute__((always_inline)) void order_make_step(struct memory_step *s,
	uint32_t cpu, uint32_t stream, const struct memory_cursor *c, const struct memory_item *t,
	uint64_t due)
{
	memcpy(s, t, sizeof *t);
	s->address = memory_cursor_address(c, t);
	s->clock = due;
	s->thread = (uint16_t)cpu;
	s->stream = (uint16_t)stream;
}

/* A call item of the processor whose turn it is. */
static enum base_status run_call(struct memory_order *o, uint32_t cpu, struct memory_lane *l,
	const struct memory_call *original, struct memory_step *s, struct base_err *err)
{
	struct memory_call call;
	memory_cursor_advance(&l->cursor);
	enum base_status status = call_step(o, s, original, &call, err);
	if (status != BASE_OK)
		return status;
	l->cursor.time_ns = call.end_ns > l->cursor.time_ns ? call.end_ns : l->cursor.time_ns;
	if (o->scheduler && memory_scheduler_after(o, cpu, &call))
		return memory_scheduler_fill(o, err);
	if (o->scheduler)
		status = memory_order_start(o, (uint32_t)(l - o->lane), cpu, 0, err);
	else
		status = order_obey_call(o, cpu, &call, err);
	if (status == BASE_OK && l->state == LANE_ENDED)
		status = memory_order_ended(o, cpu, err);
	return status;
}

/* The item at hand and those behind it, as long as they are of its batch, plain (no call, time or
 * loop) and due before `limit`: without looking at the cursor each time. */
static size_t order_run_plain(
	struct memory_order *o, uint32_t cpu, uint64_t limit, size_t nr, size_t most)
{
	const bool timed = o->options.mode == MEMORY_ORDER_TIME;
	struct memory_cpu *c = &o->cpu[cpu];
	struct memory_cursor *at = &c->lane->cursor;
	const uint32_t stream = (uint32_t)(c->lane - o->lane);
	const struct memory_item *t = &at->batch.item[at->at], *end = at->batch.item + at->batch.nr;
	uint64_t clock = c->clock, due = order_item_due(c, t);
	struct memory_step *s = o->step;
	do {
		memcpy(&s[nr], t, sizeof *t);
		s[nr].clock = due;
		s[nr].thread = (uint16_t)cpu;
		s[nr++].stream = (uint16_t)stream;
		clock += t->instructions;
		if (++t == end || t->kind >= MEMORY_CALL)
			break;
		due = memory_item_due(t, clock + t->instructions);
	} while (nr < most && (timed || memory_key(due, cpu) <= limit));
	c->clock = clock;
	at->at = (size_t)(t - at->batch.item);
	o->nr_steps = nr;
	return nr;
}

/* The processor that is due runs until another one is; then that one, and so on. */
static enum base_status run_turns(struct memory_order *o, struct base_err *err)
{
	const bool timed = o->options.mode == MEMORY_ORDER_TIME;
	open_phase(o);
	while (o->nr_steps < MEMORY_STEPS_MAX) {
		uint32_t cpu = memory_key_cpu(base_turns_least(&o->due));
		struct memory_cpu *c = &o->cpu[cpu];
		struct memory_lane *l = c->lane;
		struct memory_cursor *at = &l->cursor;
		if (BASE_UNLIKELY(at->nr_body) && !o->turns--) {
			o->turns = 0;
			return BASE_OK;
		}
		base_turns_drop(&o->due);
		const struct memory_item *t = memory_cursor_item(at);
		uint64_t limit = base_turns_least(&o->due), due = order_item_due(c, t), key;
		/* A thread that is alone is asked now and then, too, whether it is in a loop. */
		size_t nr = o->nr_steps;
		size_t most = nr + (at->nr_body ? TURN_LOOP_STEPS_MAX : TURN_STEPS_MAX);
		most = most < MEMORY_STEPS_MAX ? most : MEMORY_STEPS_MAX;
		do {
			const bool plain = !at->nr_body && t->kind < MEMORY_CALL && !o->scheduler;
			struct memory_step *s = &o->step[nr];
			if (plain) {
				nr = order_run_plain(o, cpu, limit, nr, most);
			} else {
				order_make_step(s, cpu, (uint32_t)(l - o->lane), at, t, due);
				o->nr_steps = ++nr;
				c->clock += t->instructions;
			}
			if (BASE_UNLIKELY(t->kind == MEMORY_CALL))
				return run_call(o, cpu, l, &at->batch.call[t->address], s, err);
			if (!plain)
				memory_cursor_advance(at);
			if (BASE_UNLIKELY(o->scheduler)) {
				l->sliced += t->instructions;
				if (memory_scheduler_after(o, cpu, NULL))
					return memory_scheduler_fill(o, err);
			}
			enum base_status status = order_lane_peek(o, l, &t, err);
			if (BASE_UNLIKELY(status == BASE_END))
				return memory_order_ended(o, cpu, err);
			if (BASE_UNLIKELY(status != BASE_OK))
				return status;
			if (BASE_UNLIKELY(!t)) {
				l->state = LANE_IDLE;
				return BASE_OK;
			}
			due = order_item_due(c, t);
			key = memory_key(timed ? at->time_ns : due, cpu);
		} while (key <= limit && nr < most);
		base_turns_put(&o->due, key);
	}
	return BASE_OK;
}

/* ---- nobody runs ----------------------------------------------------------------------------- */

/* Threads that no spawn began: all that is left of them is one parallel phase. */
static enum base_status start_silent(struct memory_order *o, struct base_err *err)
{
	order_begin_phase(o, MEMORY_PHASE_PARALLEL, 0);
	enum base_status s = start_all(o, LANE_WAITS, err);
	for (uint32_t i = 0; i < o->nr_lanes; i++)
		if (o->lane[i].state == LANE_RUNS)
			memory_diag_add(&o->source->diags, MEMORY_DIAG_silent_thread, i, 0);
	return s;
}

static void order_finish(struct memory_order *o)
{
	if (o->phase == MEMORY_PHASE_PARALLEL && o->phase_open && !o->options.starts_parallel &&
		(o->source->info.flags & MEMORY_SOURCE_THREADS) && !o->scheduler &&
		!o->source->diags.count[MEMORY_DIAG_silent_thread])
		memory_diag_add(&o->source->diags, MEMORY_DIAG_spawn_without_join, 0, 0);
	for (uint32_t i = 0; i < o->nr_cpus; i++)
		if (o->phase_open)
			tell_active(o, i, false);
	close_phase(o);
	o->ended = true;
}

static enum base_status unblock(struct memory_order *o, struct base_err *err)
{
	if (o->scheduler) {
		enum base_status s = memory_scheduler_fill(o, err);
		if (s == BASE_OK && !base_turns_nr(&o->due) && !memory_scheduler_skip(o))
			order_finish(o);
		return s;
	}
	if (lanes_in(o, LANE_HELD))
		return memory_order_unblock(o, err);
	if (lanes_in(o, LANE_BARRIER)) {
		memory_diag_add(&o->source->diags, MEMORY_DIAG_barrier_short, 0, 0);
		return release_barrier(o, 0, true, err);
	}
	if (lanes_in(o, LANE_JOINS))
		return start_all(o, LANE_JOINS, err);
	if (lanes_in(o, LANE_JOINED)) {
		enum base_status s = maybe_join(o, err);
		if (s != BASE_OK || base_turns_nr(&o->due))
			return s;
	}
	if (lanes_in(o, LANE_WAITS))
		return start_silent(o, err);
	order_finish(o);
	return BASE_OK;
}

/* Live lanes that had nothing. */
static enum base_status poll_idle(struct memory_order *o, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < o->nr_lanes && s == BASE_OK; i++) {
		if (o->lane[i].state != LANE_IDLE)
			continue;
		s = start_lane(o, i, 0, err);
		if (s == BASE_OK && o->lane[i].state == LANE_ENDED)
			s = memory_order_ended(o, i, err);
	}
	return s;
}

/* ---- sources in their own order -------------------------------------------------------------- */

static void total_phase(struct memory_order *o, uint32_t thread, const struct memory_call *call)
{
	if (call->kind == MEMORY_CALL_marker || call->kind == MEMORY_CALL_phase) {
		on_marker(o, thread, call);
	} else if (o->options.starts_parallel) {
		return;
	} else if ((call->kind == MEMORY_CALL_spawn || call->kind == MEMORY_CALL_thread_create) &&
		   o->phase == MEMORY_PHASE_SERIAL) {
		order_begin_phase(o, MEMORY_PHASE_PARALLEL, call->argument[0]);
	} else if (call->kind == MEMORY_CALL_join && o->phase == MEMORY_PHASE_PARALLEL &&
		   thread == 0) {
		order_begin_phase(o, MEMORY_PHASE_SERIAL, 0);
	}
	if (call->kind == MEMORY_CALL_thread_create)
		o->nr_created++;
	else if (call->kind == MEMORY_CALL_thread_join && o->nr_created && !--o->nr_created)
		order_begin_phase(o, MEMORY_PHASE_SERIAL, 0);
}

static enum base_status total_item(
	struct memory_order *o, uint32_t thread, const struct memory_item *t, struct base_err *err)
{
	struct memory_cpu *c = &o->cpu[thread];
	open_phase(o);
	tell_active(o, thread, true);
	struct memory_step *s = &o->step[o->nr_steps++];
	order_make_step(s, thread, thread, &o->total_lane.cursor, t, order_item_due(c, t));
	c->clock += t->instructions;
	if (t->kind != MEMORY_CALL)
		return BASE_OK;
	struct memory_call call;
	enum base_status status =
		call_step(o, s, &o->total_lane.cursor.batch.call[t->address], &call, err);
	if (status == BASE_OK)
		total_phase(o, thread, &call);
	return status;
}

static enum base_status total_next(struct memory_order *o, struct base_err *err)
{
	struct memory_lane *l = &o->total_lane;
	while (o->nr_steps < MEMORY_STEPS_MAX && o->nr_calls < CALLS_MAX) {
		const struct memory_item *t = NULL;
		enum base_status s =
			memory_cursor_peek(&l->cursor, o->source, MEMORY_ANY_THREAD, &t, err);
		if (s == BASE_END) {
			order_finish(o);
			return BASE_OK;
		}
		if (s != BASE_OK || !t)
			return s;
		uint32_t thread = l->cursor.batch.thread;
		if (thread >= o->nr_cpus)
			return base_fail(err, BASE_ERR_CORRUPT, "a batch of thread %u of %u",
				thread, o->nr_cpus);
		s = total_item(o, thread, t, err);
		if (s != BASE_OK)
			return s;
		memory_cursor_advance(&l->cursor);
	}
	return BASE_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

enum base_status memory_order_next(
	struct memory_order *o, struct memory_steps *ret, struct base_err *err)
{
	enum base_status s = BASE_OK;
	o->nr_steps = o->nr_calls = 0;
	*ret = (struct memory_steps){0};
	if (o->ended)
		return BASE_END;
	if (o->source->info.flags & MEMORY_SOURCE_TOTAL_ORDER) {
		s = total_next(o, err);
	} else {
		s = poll_idle(o, err);
		while (s == BASE_OK && !o->ended && o->nr_steps < MEMORY_STEPS_MAX &&
			o->nr_calls < CALLS_MAX) {
			if (base_turns_nr(&o->due) && !o->turns && memory_order_offer(o, ret))
				break;
			if (base_turns_nr(&o->due))
				s = run_turns(o, err);
			else if (lanes_in(o, LANE_IDLE))
				break;
			else
				s = unblock(o, err);
		}
	}
	ret->step = o->step;
	ret->nr = o->nr_steps;
	ret->call = o->call;
	ret->nr_calls = o->nr_calls;
	return s;
}

static enum base_status set_defaults(struct memory_order *o, struct base_err *err)
{
	struct memory_order_options *p = &o->options;
	bool scheduled = p->mode == MEMORY_ORDER_SLICES || p->mode == MEMORY_ORDER_ROUND_ROBIN;
	p->slice_instructions =
		p->slice_instructions ? p->slice_instructions : MEMORY_SLICE_INSTRUCTIONS;
	p->dma_mb_per_s = p->dma_mb_per_s > 0 ? p->dma_mb_per_s : MEMORY_DMA_MB_PER_S;
	p->disk_latency_ms = p->disk_latency_ms >= 0 ? p->disk_latency_ms : MEMORY_DISK_LATENCY_MS;
	p->ipc = p->ipc > 0 ? p->ipc : MEMORY_IPC;
	p->processor_mhz = p->processor_mhz > 0 ? p->processor_mhz : MEMORY_PROCESSOR_MHZ;
	if (scheduled && (!p->nr_processors || p->nr_processors > MEMORY_THREADS_MAX))
		return base_fail(err, BASE_ERR_USAGE,
			"traces are interleaved on 1 to %d processors", MEMORY_THREADS_MAX);
	if (scheduled && (o->source->info.flags & MEMORY_SOURCE_TOTAL_ORDER))
		return base_fail(err, BASE_ERR_USAGE,
			"a trace of format %s has its own order; slices are for one trace a "
			"process",
			o->source->info.format);
	if (p->mode == MEMORY_ORDER_PSEUDO && o->source->info.flags & MEMORY_SOURCE_TOTAL_ORDER)
		return base_fail(err, BASE_ERR_USAGE,
			"a trace of format %s is one sequence, in the order in which things "
			"happened: pseudo clocks cannot order it",
			o->source->info.format);
	if (p->mode == MEMORY_ORDER_DEFAULT)
		p->mode = o->source->info.flags & MEMORY_SOURCE_SERIAL ? MEMORY_ORDER_TIME
								       : MEMORY_ORDER_PSEUDO;
	o->nr_lanes = o->source->info.nr_threads;
	o->nr_cpus = scheduled ? p->nr_processors : o->nr_lanes;
	return BASE_OK;
}

static enum base_status order_start(struct memory_order *o, struct base_err *err)
{
	struct memory_order_options *p = &o->options;
	bool total = o->source->info.flags & MEMORY_SOURCE_TOTAL_ORDER;
	if (p->mode == MEMORY_ORDER_SLICES || p->mode == MEMORY_ORDER_ROUND_ROBIN) {
		o->phase = MEMORY_PHASE_PARALLEL;
		return memory_scheduler_new(o, err);
	}
	if (p->starts_parallel ||
		(!(o->source->info.flags & MEMORY_SOURCE_THREADS) && o->nr_lanes > 1))
		o->phase = MEMORY_PHASE_PARALLEL;
	if (total)
		return BASE_OK;
	return o->phase == MEMORY_PHASE_PARALLEL ? start_all(o, LANE_WAITS, err)
						 : start_lane(o, 0, 0, err);
}

static uint32_t order_power_of_two(uint32_t least)
{
	uint32_t p = 1;
	while (p < least)
		p *= 2;
	return p;
}

enum base_status memory_order_new(struct memory_source *source, struct memory_source *calls,
	const struct memory_order_options *options, struct memory_order **ret, struct base_err *err)
{
	*ret = NULL;
	struct memory_order *o = base_alloc(sizeof *o);
	if (!o)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to order streams");
	o->source = source;
	o->calls = calls;
	o->options = *options;
	o->turns = UINT64_MAX;
	enum base_status s = set_defaults(o, err);
	if (s == BASE_OK) {
		o->lane = base_alloc((size_t)o->nr_lanes * sizeof *o->lane);
		o->cpu = base_alloc((size_t)o->nr_cpus * sizeof *o->cpu);
		o->due.mask = order_power_of_two(o->nr_cpus) - 1;
		o->due.queue = base_alloc(((size_t)o->due.mask + 1) * sizeof *o->due.queue);
		o->due.heap = base_alloc((size_t)o->nr_cpus * sizeof *o->due.heap);
		o->step = base_alloc((MEMORY_STEPS_MAX + STEPS_SLACK) * sizeof *o->step);
		o->call = base_alloc((CALLS_MAX + 1) * sizeof *o->call);
		if (!o->lane || !o->cpu || !o->due.queue || !o->due.heap || !o->step || !o->call)
			s = base_fail(err, BASE_ERR_NOMEM, "no memory for %u {stream|streams}",
				o->nr_lanes);
	}
	if (s == BASE_OK)
		s = order_start(o, err);
	if (s != BASE_OK) {
		memory_order_free(o);
		return s;
	}
	*ret = o;
	return BASE_OK;
}

struct memory_order *memory_order_free(struct memory_order *o)
{
	if (!o)
		return NULL;
	memory_scheduler_free(o->scheduler);
	memory_order_holds_fini(o);
	memory_order_units_fini(o);
	base_free(o->runs);
	base_free(o->lane);
	base_free(o->cpu);
	base_free(o->due.queue);
	base_free(o->due.heap);
	base_free(o->step);
	base_free(o->call);
	base_free(o);
	return NULL;
}

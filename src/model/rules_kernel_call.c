/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_kernel_call.c - system calls as the kernel's records tell them: they name what a thread
 * does and waits for, and move bytes through pipes. Inside a call that the library recorded, under
 * a lock that it knows or in an annotated machine they only name the cause of a wait.
 */
#include "model/model_private.h"

#include <string.h>

/* ---- which calls move what ------------------------------------------------------------------- */

enum flow { FLOW_none, FLOW_takes, FLOW_puts };
enum { CALL_MAX = 512 };

/* Numbers of asm/unistd_64.h. */
static const uint8_t flow_of_call[CALL_MAX] = {
	[0] = FLOW_takes,   /* read */
	[19] = FLOW_takes,  /* readv */
	[45] = FLOW_takes,  /* recvfrom */
	[47] = FLOW_takes,  /* recvmsg */
	[299] = FLOW_takes, /* recvmmsg */
	[1] = FLOW_puts,    /* write */
	[20] = FLOW_puts,   /* writev */
	[44] = FLOW_puts,   /* sendto */
	[46] = FLOW_puts,   /* sendmsg */
	[307] = FLOW_puts,  /* sendmmsg */
};

/* Bytes in a pipe. (Those of sockets have records of their own: rules_kernel_net.c.) */
static bool rules_kernel_call_is_pipe(const struct model *m, uint32_t object)
{
	return object && object < m->nr_objects &&
	       m->defs->objects[object].type == TRACE_OBJECT_pipe;
}

static bool is_socket(const struct model *m, uint32_t object)
{
	return object && object < m->nr_objects &&
	       m->defs->objects[object].type == TRACE_OBJECT_socket;
}

/* Does the library, or an annotation, know better what the thread is doing? */
static bool is_known_better(const struct model *m, const struct thread *t)
{
	enum model_state_kind kind = t->graph_state < m->made.nr_states
					     ? m->made.state[t->graph_state].pub.kind
					     : MODEL_STATE_run;
	return t->io.active || t->nr_held || t->nr_machines || t->mode == MODE_WAITING ||
	       kind == MODEL_STATE_sleep || kind == MODEL_STATE_start ||
	       kind == MODEL_STATE_external;
}

static uint32_t call_state(struct model *m, const struct call *c)
{
	bool about = c->object && c->object < m->nr_objects;
	return model_make_state(m, MODEL_CAUSE_call, NONE,
		about ? model_class_of(m, c->object, 0) : NONE, 0,
		model_call_detail((uint32_t)c->number + 1, 0));
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static uint64_t room_in(const struct model *m, uint32_t queue)
{
	uint64_t capacity = queue < m->made.nr_queues ? m->made.queue[queue].pub.capacity : 0,
		 units = graph_queue_units(m->graph, queue);
	return !capacity ? UINT64_MAX : capacity > units ? capacity - units : 0;
}

/* What fits goes in at once: whoever reads it need not wait for the call's end. */
static void begin_put(struct model *m, struct thread *t, uint64_t time_ns)
{
	struct call *c = &t->k.call;
	uint64_t room = room_in(m, c->queue), n = c->n < room ? c->n : room;
	c->put_bytes = n;
	if (n && n <= INT64_MAX)
		model_verb(
			m, t, GRAPH_VERB_enqueue, time_ns, c->queue, (int64_t)n, t->graph_state, 0);
}

/* Taken so far of what the call will say that it took; the rest was put by nobody who is seen. */
static void rules_kernel_call_take(
	struct model *m, struct thread *t, uint64_t time_ns, uint64_t n, uint32_t state)
{
	struct call *c = &t->k.call;
	struct object *o = &m->object[c->object];
	uint64_t units = graph_queue_units(m->graph, c->queue), now = n < units ? n : units;
	o->bytes.debt_bytes += n - now;
	model_verb(m, t, now ? GRAPH_VERB_dequeue : GRAPH_VERB_state, time_ns, c->queue,
		(int64_t)now, state, 0);
	c->put_bytes += n;
}

static void end_take(
	struct model *m, struct thread *t, const struct trace_record *r, uint32_t state)
{
	struct call *c = &t->k.call;
	struct object *o = &m->object[c->object];
	int64_t result = r->u.call_end.result;
	uint64_t moved = result > 0 ? (uint64_t)result : 0;
	if (moved < c->put_bytes) /* more was taken ahead than it was */
		o->bytes.ahead_bytes += c->put_bytes - moved;
	uint64_t rest = moved > c->put_bytes ? moved - c->put_bytes : 0,
		 ahead = rest < o->bytes.ahead_bytes ? rest : o->bytes.ahead_bytes;
	o->bytes.ahead_bytes -= ahead;
	if (!result && c->number == 0 && o->queue2 != NONE &&
		graph_queue_units(m->graph, o->queue2))
		model_verb(m, t, GRAPH_VERB_peek, r->time_ns, o->queue2, 1, state,
			GRAPH_LAST | GRAPH_EXPLAINED); /* end of file: the last writer's */
	else
		rules_kernel_call_take(m, t, r->time_ns, rest - ahead, state);
}

static void end_put(struct model *m, struct thread *t, const struct trace_record *r, uint32_t state)
{
	struct call *c = &t->k.call;
	struct object *o = &m->object[c->object];
	int64_t result = r->u.call_end.result;
	uint64_t moved = result > 0 ? (uint64_t)result : 0;
	if (moved < c->put_bytes) { /* less than was announced */
		uint64_t units = graph_queue_units(m->graph, c->queue), back = c->put_bytes - moved;
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, c->queue,
			(int64_t)(back < units ? back : units), state,
			GRAPH_BACK | GRAPH_EXPLAINED);
		return;
	}
	uint64_t rest = moved - c->put_bytes,
		 paid = rest < o->bytes.debt_bytes ? rest : o->bytes.debt_bytes;
	o->bytes.debt_bytes -= paid;
	rest -= paid;
	model_verb(m, t, rest ? GRAPH_VERB_enqueue : GRAPH_VERB_state, r->time_ns, c->queue,
		(int64_t)rest, state, 0);
}

/* ---- io_uring ----------------------------------------------------------------------------------
 *
 * Two sorts of queues. A request is a unit from its submission to its completion, in one of three
 * queues: submitted (done at once, or the device's, or a timer's), handed to the ring's worker
 * threads, or waiting until its file is ready. A completion is a unit of the ring's own queue, from
 * what completes the request: a worker; or the submitter, which an interrupt or a writer to the
 * file has woken to do so, and which goes on from there.
 */

enum { SYS_io_uring_enter_number = 426, ENTER_GETEVENTS = 1, REQUESTS_MAX = 1 << 16 };

enum request { REQUEST_submitted, REQUEST_worker, REQUEST_armed, REQUEST_NR };

static uint32_t *request_queue_slot(struct object *o, enum request where)
{
	uint32_t *const slot[REQUEST_NR] = {&o->queue2, &o->queue3, &o->room};
	return slot[where];
}

static uint32_t request_queue(
	struct model *m, uint32_t object, struct object *o, enum request where)
{
	static const char *const what[REQUEST_NR] = {
		"submissions of ", "work for threads of ", "requests for ready files of "};
	uint32_t *queue = request_queue_slot(o, where);
	if (*queue == NONE) {
		*queue = model_make_part(m, object, MODEL_QUEUE_whole, TRACE_OBJECT_io_uring,
			model_class_of(m, object, 0));
		if (*queue < m->made.nr_queues)
			m->made.queue[*queue].what = what[where];
	}
	return *queue;
}

static void request_verb(struct model *m, struct thread *t, enum graph_verb_kind verb,
	uint64_t time_ns, uint32_t queue, uint64_t key)
{
	m->item_key = key;
	model_verb_of(m, model_acting(t), verb, time_ns, queue, 1, model_busy_state(t),
		verb == GRAPH_VERB_dequeue ? GRAPH_KEYED : 0);
	m->item_key = 0;
}

static struct object *ring_of(struct model *m, uint32_t *object)
{
	if (!model_object(m, *object))
		return NULL;
	*object = model_same_object(m, *object);
	return model_kernel_object(m, *object, TRACE_OBJECT_io_uring);
}

/* Out of the queue where it is; false: it was submitted before anybody looked. */
static bool take_request(
	struct model *m, struct thread *t, struct object *o, uint64_t time_ns, uint64_t key)
{
	for (unsigned i = 0; i < REQUEST_NR; i++) {
		uint32_t queue = *request_queue_slot(o, (enum request)i);
		if (queue == NONE || !graph_queue_has(m->graph, queue, key))
			continue;
		request_verb(m, t, GRAPH_VERB_dequeue, time_ns, queue, key);
		return true;
	}
	return false;
}

static void put_request(struct model *m, struct thread *t, uint32_t object, uint64_t key,
	uint64_t time_ns, enum request where)
{
	struct object *o = ring_of(m, &object);
	if (!o || !key || !model_is_credited(t) || !model_may_act(m, t, time_ns))
		return;
	bool known = take_request(m, t, o, time_ns, key);
	uint32_t queue = request_queue(m, object, o, where);
	if (!known && where != REQUEST_submitted)
		return;
	if (graph_queue_units(m->graph, queue) > REQUESTS_MAX) /* their ends are not shown */
		model_verb_of(m, model_acting(t), GRAPH_VERB_resize, time_ns, queue, 0,
			model_busy_state(t), 0);
	request_verb(m, t, GRAPH_VERB_enqueue, time_ns, queue, key);
}

void model_rule_ring_submit(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_ring_submit *s = &r->u.ring_submit;
	put_request(m, t, s->object, s->key, r->time_ns, REQUEST_submitted);
}

void model_rule_ring_async(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_ring_async *a = &r->u.ring_async;
	put_request(m, t, a->object, a->key, r->time_ns, REQUEST_worker);
}

void model_rule_ring_arm(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_ring_arm *a = &r->u.ring_arm;
	put_request(m, t, a->object, a->key, r->time_ns, REQUEST_armed);
}

/* Bytes that no system call moved, but a request: of a pipe. */
static void rules_kernel_call_move_bytes(
	struct model *m, struct thread *t, const struct trace_record *r)
{
	static const uint8_t flow[TRACE_RING_NR] = {
		[TRACE_RING_read] = FLOW_takes,
		[TRACE_RING_readv] = FLOW_takes,
		[TRACE_RING_read_fixed] = FLOW_takes,
		[TRACE_RING_read_multishot] = FLOW_takes,
		[TRACE_RING_readv_fixed] = FLOW_takes,
		[TRACE_RING_write] = FLOW_puts,
		[TRACE_RING_writev] = FLOW_puts,
		[TRACE_RING_write_fixed] = FLOW_puts,
		[TRACE_RING_writev_fixed] = FLOW_puts,
	};
	const struct trace_ring_complete *c = &r->u.ring_complete;
	enum flow way = c->op < TRACE_RING_NR ? (enum flow)flow[c->op] : FLOW_none;
	if (way == FLOW_none || c->result <= 0 || !c->file || !model_object(m, c->file))
		return;
	uint32_t object = model_same_object(m, c->file);
	if (!rules_kernel_call_is_pipe(m, object))
		return;
	struct object *o = &m->object[object];
	uint32_t queue = model_queue_of(m, object, o, 0, 0);
	uint64_t n = (uint64_t)c->result, units = graph_queue_units(m->graph, queue),
		 now = way == FLOW_takes ? (n < units ? n : units)
					 : n - (n < o->bytes.debt_bytes ? n : o->bytes.debt_bytes);
	if (way == FLOW_takes)
		o->bytes.debt_bytes += n - now;
	else
		o->bytes.debt_bytes -= n - now;
	if (now && now <= INT64_MAX)
		model_verb_of(m, model_acting(t),
			way == FLOW_takes ? GRAPH_VERB_dequeue : GRAPH_VERB_enqueue, r->time_ns,
			queue, (int64_t)now, model_busy_state(t), 0);
}

void model_rule_ring_complete(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_ring_complete *c = &r->u.ring_complete;
	uint32_t object = c->object;
	struct object *o = ring_of(m, &object);
	if (!o || !model_is_credited(t) || !model_may_act(m, t, r->time_ns))
		return;
	(void)take_request(m, t, o, r->time_ns, c->key);
	rules_kernel_call_move_bytes(m, t, r);
	uint32_t queue = model_queue_of(m, object, o, 0, 0);
	if (graph_queue_units(m->graph, queue) > REQUESTS_MAX) /* nobody asks the kernel */
		model_verb_of(m, model_acting(t), GRAPH_VERB_resize, r->time_ns, queue, 0,
			model_busy_state(t), 0);
	model_verb_of(m, model_acting(t), GRAPH_VERB_enqueue, r->time_ns, queue, 1,
		model_busy_state(t), 0);
}

static bool reaps(const struct model *m, const struct call *c)
{
	return c->number == SYS_io_uring_enter_number && c->op & ENTER_GETEVENTS && c->object &&
	       m->defs->objects[c->object].type == TRACE_OBJECT_io_uring;
}

/* Of which ring, where its call did not say (a registered ring has no descriptor); and for how
 * many. */
void model_rule_ring_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	struct call *c = &t->k.call;
	uint32_t object = r->u.ring_wait.object;
	struct object *o = ring_of(m, &object);
	if (!o || !c->active || !c->named || c->number != SYS_io_uring_enter_number ||
		model_is_context(t) || t->mode != MODE_RUNNING)
		return;
	c->n = r->u.ring_wait.n;
	if (c->reaps)
		return;
	c->reaps = true;
	c->object = object;
	c->queue = model_queue_of(m, object, o, 0, 0);
	model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, call_state(m, c), 0);
}

/* How many it takes in its own memory nobody sees: all that there are. */
static void end_reaping(struct model *m, struct thread *t, uint64_t time_ns, uint32_t state)
{
	bool any = graph_queue_units(m->graph, t->k.call.queue) != 0;
	model_verb(m, t, any ? GRAPH_VERB_dequeue : GRAPH_VERB_state, time_ns, t->k.call.queue,
		any ? GRAPH_ALL : 0, state, any ? GRAPH_LAST : 0);
}

/* ---- for threads that sleep in a call
 * ------------------------------------------------------------ */

/* The wait for bytes, or for room, that the thread's call is about; NONE: it is about neither. */
enum graph_verb_kind model_call_wait(struct model *m, struct thread *t, uint64_t time_ns)
{
	struct call *c = &t->k.call;
	if (c->active && c->writes_socket) {
		c->queue = model_tcp_room(m, t, c->object, time_ns);
		return c->queue == NONE ? GRAPH_VERB_wait : GRAPH_VERB_wait_empty;
	}
	if (!c->active || c->queue == NONE)
		return GRAPH_VERB_wait;
	if ((c->takes || c->reads_socket || c->sleeps || c->reads_timer) &&
		!graph_queue_units(m->graph, c->queue))
		return GRAPH_VERB_wait_empty;
	if (c->reaps && graph_queue_units(m->graph, c->queue) < c->n)
		return GRAPH_VERB_wait_empty;
	if (c->puts && !room_in(m, c->queue))
		return GRAPH_VERB_wait_full;
	return GRAPH_VERB_wait;
}

/* What it waited for is there; false: not that anybody saw. */
bool model_call_ready(const struct model *m, const struct thread *t, enum graph_verb_kind wait)
{
	const struct call *c = &t->k.call;
	if (c->queue == NONE)
		return false;
	if (wait == GRAPH_VERB_wait_empty)
		return graph_queue_units(m->graph, c->queue) >= (c->reaps && c->n ? c->n : 1);
	return wait == GRAPH_VERB_wait_full && room_in(m, c->queue);
}

void model_call_goes_on(struct model *m, struct thread *t, uint64_t time_ns, uint32_t state)
{
	struct call *c = &t->k.call;
	uint64_t room = room_in(m, c->queue), rest = c->n > c->put_bytes ? c->n - c->put_bytes : 0;
	uint64_t n = rest < room ? rest : room;
	if (t->k.asleep_on != GRAPH_VERB_wait_full) {
		/* a socket's writer is woken when there is room worth waking for: this much */
		uint64_t all =
			c->writes_socket || c->reaps ? graph_queue_units(m->graph, c->queue) : 1;
		model_verb(m, t, GRAPH_VERB_peek, time_ns, c->queue,
			all && all <= INT64_MAX ? (int64_t)all : 1, state, 0);
		return;
	}
	if (n > INT64_MAX)
		n = 0;
	model_verb(m, t, n ? GRAPH_VERB_enqueue : GRAPH_VERB_reserve, time_ns, c->queue,
		n ? (int64_t)n : 1, state, 0);
	c->put_bytes += n;
}

/*
 * Somebody is woken out of this call: a reader's has taken, by then, what its record will say
 * later. So what it asked for leaves the pipe now, and makes the room that the writer waited for.
 */
void model_call_passes(struct model *m, struct thread *t, uint64_t time_ns)
{
	struct call *c = &t->k.call;
	uint64_t units, n;
	if (!c->active || !c->takes || c->queue == NONE || t->mode != MODE_RUNNING)
		return;
	units = graph_queue_units(m->graph, c->queue);
	n = c->n > c->put_bytes ? c->n - c->put_bytes : 0;
	n = n < units ? n : units;
	if (n)
		rules_kernel_call_take(m, t, time_ns, n, t->graph_state);
}

/* ---- rules ----------------------------------------------------------------------------------- */

void model_rule_call_begin(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_call_begin *b = &r->u.call_begin;
	struct call *c = &t->k.call;
	if (!m->is_system || t->k.context != TRACE_CONTEXT_none)
		return;
	t->k.lock = 0; /* one that it waited for in an earlier one */
	*c = (struct call){.object = b->object && b->object < m->nr_objects
					     ? model_same_object(m, b->object)
					     : 0,
		.number = b->number,
		.op = b->op,
		.n = b->n,
		.queue = NONE,
		.active = true};
	bool moves = c->number < CALL_MAX && flow_of_call[c->number] != FLOW_none;
	if (moves && is_socket(m, c->object)) /* of the room in it the library knows nothing */
		c->writes_socket = flow_of_call[c->number] == FLOW_puts;
	if (is_known_better(m, t))
		return;
	c->named = true;
	if (moves && rules_kernel_call_is_pipe(m, c->object)) {
		c->queue = model_queue_of(m, c->object, &m->object[c->object], 0, 0);
		c->takes = flow_of_call[c->number] == FLOW_takes;
		c->puts = !c->takes;
		model_note_user(m, model_class_of(m, c->object, 0), t, c->takes, 0);
	} else if (reaps(m, c)) {
		c->reaps = true;
		c->queue = model_queue_of(m, c->object, &m->object[c->object], 0, 0);
	} else if (moves && is_socket(m, c->object) && !c->writes_socket) {
		c->reads_socket = true; /* (what it takes a record of its own says) */
		c->queue = model_queue_of(m, c->object, &m->object[c->object], 0, 0);
	}
	model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, call_state(m, c), 0);
	if (c->puts)
		begin_put(m, t, r->time_ns);
	model_call_sleeps(m, t, r->time_ns);
}

void model_rule_call_end(struct model *m, struct thread *t, const struct trace_record *r)
{
	struct call *c = &t->k.call;
	uint32_t state = model_current_state(t);
	if (!c->active || c->number != r->u.call_end.number)
		return;
	if (c->named) {
		if (c->takes)
			end_take(m, t, r, state);
		else if (c->puts)
			end_put(m, t, r, state);
		else if (c->reaps)
			end_reaping(m, t, r->time_ns, state);
		else if (!model_call_slept(m, t, r->time_ns, r->u.call_end.result))
			model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, state, 0);
	}
	*c = (struct call){.queue = NONE};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* rules_io.c - descriptors: pipes and connections as byte queues, files, readiness. */
#include "model/model_private.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum flow { FLOW_out, FLOW_in };

/* The listener that a socket listens at or calls, by the one object that stands for it; NULL: none
 * of those recorded. */
static struct object *listener_of(struct model *m, uint32_t object)
{
	uint32_t first = object && object < m->nr_objects ? m->listener[object] : 0;
	return first ? model_object(m, first) : NULL;
}

/* The byte queue behind a descriptor in one direction; NULL: none (file, terminal, peer that is not
 * recorded). */
static struct object *rules_io_flow_of(struct model *m, uint32_t object, enum flow flow)
{
	struct object *o = model_object(m, object);
	if (!o)
		return NULL;
	const struct trace_object *def = &m->defs->objects[object];
	switch (def->type) {
	case TRACE_OBJECT_pipe:
	case TRACE_OBJECT_eventfd:
		return o;
	case TRACE_OBJECT_socket:
		if (m->is_system) /* the waker is known, whatever has the other end */
			return NULL;
		if (!def->pair || def->pair >= m->nr_connections)
			return NULL;
		return &m->connection[def->pair]
				.side[flow == FLOW_out ? (def->side & 1) : !(def->side & 1)];
	case TRACE_OBJECT_listener: { /* connections that wait for accept() */
		struct object *first = listener_of(m, object);
		return first && first->bytes.called ? first : NULL;
	}
	default:
		return NULL;
	}
}

static uint32_t rules_io_queue_of(struct model *m, uint32_t object, struct object *f, uint32_t site)
{
	if (f->queue == NONE)
		f->queue = model_make_queue(m, 0, object,
			(enum trace_object_type)m->defs->objects[object].type,
			model_class_of(m, object, site), GRAPH_FIFO);
	return f->queue;
}

static uint32_t end_queue(struct model *m, uint32_t object, struct object *f, uint32_t site)
{
	if (f->queue2 == NONE)
		f->queue2 = model_make_part(m, object, MODEL_QUEUE_helper,
			(enum trace_object_type)m->defs->objects[object].type,
			model_class_of(m, object, site));
	return f->queue2;
}

/* Nobody's (0) for ids that the trace does not define. */
static const struct trace_object *rules_io_definition(const struct model *m, uint32_t object)
{
	return &m->defs->objects[object < m->nr_objects ? object : 0];
}

static bool rules_io_is_named(const struct model *m, uint32_t object, const char *name)
{
	const struct trace_object *o = rules_io_definition(m, object);
	return o->type == TRACE_OBJECT_other && !strcmp(trace_text_of(m->defs, o->name), name);
}

/* Signals of which the program knows by reading them. */
static bool is_signals(const struct model *m, uint32_t object)
{
	return rules_io_is_named(m, object, "anon_inode:[signalfd]");
}

/* What others do to files. */
static bool is_news_of_files(const struct model *m, uint32_t object)
{
	return rules_io_is_named(m, object, "anon_inode:inotify") ||
	       rules_io_is_named(m, object, "anon_inode:[fanotify]");
}

static bool is_timer(const struct model *m, uint32_t object)
{
	return rules_io_definition(m, object)->type == TRACE_OBJECT_timerfd;
}

static uint32_t io_state(struct model *m, uint32_t object, uint32_t site, uint64_t op)
{
	const struct trace_object *def = rules_io_definition(m, object);
	bool outside =
		op == TRACE_IO_accept || op == TRACE_IO_connect || op == TRACE_IO_lock ||
		op == TRACE_IO_drain || op == TRACE_IO_resolve ||
		(op == TRACE_IO_read &&
			(def->type == TRACE_OBJECT_socket || def->type == TRACE_OBJECT_terminal ||
				def->type == TRACE_OBJECT_timerfd ||
				def->type == TRACE_OBJECT_pipe || is_news_of_files(m, object)));
	bool about = object && object < m->nr_objects;
	enum model_cause cause = about     ? (outside ? MODEL_CAUSE_io_outside : MODEL_CAUSE_io)
				 : outside ? MODEL_CAUSE_call_of_nothing_outside
					   : MODEL_CAUSE_call_of_nothing;
	return model_make_state(
		m, cause, NONE, about ? model_class_of(m, object, site) : NONE, site, (uint32_t)op);
}

/* Somebody who is not recorded ended the wait; where the call failed (a signal, a time limit), it
 * was not what it waited for. */
static uint32_t unless_failed(int64_t result)
{
	return result < 0 ? MODEL_NOTHING_CAME : GRAPH_EXPLAINED;
}

static void begin_read(
	struct model *m, struct thread *t, const struct trace_record *r, struct object *f)
{
	uint32_t object = r->u.io_begin.object, site = r->u.io_begin.site;
	uint32_t queue = rules_io_queue_of(m, object, f, site),
		 class_ix = model_class_of(m, object, site);
	end_queue(m, object, f, site);
	model_note_user(m, class_ix, t, true, site);
	t->io.queue = queue;
	f->user = t->stream;
	if (graph_queue_units(m->graph, queue))
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0,
			model_make_state(m, MODEL_CAUSE_io, NONE, class_ix, site, TRACE_IO_read),
			0);
	else
		model_verb(m, t, GRAPH_VERB_wait_empty, r->time_ns, queue, 1,
			model_wait_state(m, class_ix, site, false), 0);
}

static void begin_write(
	struct model *m, struct thread *t, const struct trace_record *r, struct object *f)
{
	const struct trace_io_begin *b = &r->u.io_begin;
	uint32_t queue = rules_io_queue_of(m, b->object, f, b->site),
		 class_ix = model_class_of(m, b->object, b->site);
	bool event = m->defs->objects[b->object].type == TRACE_OBJECT_eventfd;
	uint64_t capacity = m->defs->objects[b->object].capacity,
		 units = graph_queue_units(m->graph, queue);
	uint64_t n = event ? 1 : b->n,
		 room = capacity && !event ? (capacity > units ? capacity - units : 0) : n;
	model_note_user(m, class_ix, t, false, b->site);
	if (m->defs->objects[b->object].type == TRACE_OBJECT_pipe)
		model_own(m, f, OWNED_written, t->process, r->time_ns);
	t->io.queue = queue;
	t->io.put_bytes = n < room ? n : room;
	if (t->io.put_bytes)
		model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, queue, (int64_t)t->io.put_bytes,
			model_make_state(
				m, MODEL_CAUSE_io, NONE, class_ix, b->site, TRACE_IO_write),
			0);
	if (t->io.put_bytes < n) {
		t->io.wants_space = f->bytes.tells_room = true;
		model_verb(m, t, GRAPH_VERB_wait_full, r->time_ns, queue, 1,
			model_wait_state(m, class_ix, b->site, true), 0);
	}
}

/* Connections that are made: of the caller each is a unit in the listener's queue, from when it
 * calls. */
static void begin_connect(
	struct model *m, struct thread *t, const struct trace_record *r, struct object *listener)
{
	const struct trace_io_begin *b = &r->u.io_begin;
	struct object *own = &m->object[b->object];
	uint32_t state = io_state(m, b->object, b->site, TRACE_IO_connect);
	t->io.queue = rules_io_queue_of(m, m->listener[b->object], listener, b->site);
	if (own->bytes.calls) /* asks again how the call went */
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, state, 0);
	else
		model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, t->io.queue, 1, state, 0);
	own->bytes.calls = true;
}

static void end_connect(struct model *m, struct thread *t, const struct trace_record *r)
{
	int64_t result = r->u.io_end.result;
	struct object *own = &m->object[t->io.object];
	bool stands = result >= 0 || result == -EINPROGRESS || result == -EINTR ||
		      result == -EALREADY || result == -EISCONN;
	if (stands || !graph_queue_units(m->graph, t->io.queue))
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t),
			GRAPH_EXPLAINED);
	else
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, t->io.queue, 1,
			model_current_state(t), GRAPH_BACK | GRAPH_EXPLAINED);
	own->bytes.calls = stands;
}

static void begin_accept(
	struct model *m, struct thread *t, const struct trace_record *r, struct object *listener)
{
	const struct trace_io_begin *b = &r->u.io_begin;
	uint32_t class_ix = model_class_of(m, m->listener[b->object], b->site);
	t->io.queue = rules_io_queue_of(m, m->listener[b->object], listener, b->site);
	if (graph_queue_units(m->graph, t->io.queue))
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0,
			model_make_state(
				m, MODEL_CAUSE_io, NONE, class_ix, b->site, TRACE_IO_accept),
			0);
	else
		model_verb(m, t, GRAPH_VERB_wait_empty, r->time_ns, t->io.queue, 1,
			model_wait_state(m, class_ix, b->site, false), 0);
}

static void end_accept(struct model *m, struct thread *t, const struct trace_record *r)
{
	/* no unit: somebody from outside */
	if (r->u.io_end.result >= 0 && graph_queue_units(m->graph, t->io.queue))
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, t->io.queue, 1,
			model_current_state(t), 0);
	else
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t),
			unless_failed(r->u.io_end.result));
}

/* ---- file locks: a token, the newest counts. Which part of the file is locked, and whether
 * shared, is not known: any that is given up may be the one that was waited for.
 */

static void rules_io_begin_lock(
	struct model *m, struct thread *t, const struct trace_record *r, struct object *o)
{
	const struct trace_io_begin *b = &r->u.io_begin;
	uint32_t state = io_state(m, b->object, b->site, TRACE_IO_lock);
	t->io.queue = rules_io_queue_of(m, b->object, o, b->site);
	if (o->owned[OWNED_locked].owner)
		model_verb(m, t, GRAPH_VERB_wait_empty, r->time_ns, t->io.queue, 1, state, 0);
	else
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, state, 0);
}

static void end_lock(
	struct model *m, struct thread *t, const struct trace_record *r, struct object *o)
{
	bool given = graph_queue_units(m->graph, t->io.queue) != 0;
	if (r->u.io_end.result < 0 || !given)
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t),
			unless_failed(r->u.io_end.result));
	else
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, t->io.queue, GRAPH_ALL,
			model_current_state(t), t->mode == MODE_WAITING ? GRAPH_LAST : GRAPH_BACK);
	if (r->u.io_end.result >= 0)
		model_own(m, o, OWNED_locked, model_pid_of(m, t), r->time_ns);
}

static void give_lock_up(struct model *m, struct thread *t, uint64_t time_ns, struct object *o)
{
	if (o->owned[OWNED_locked].owner == model_pid_of(m, t))
		model_own(m, o, OWNED_locked, 0, time_ns);
	if (o->queue == NONE) /* nobody was seen to take it */
		return;
	model_verb(m, t, GRAPH_VERB_resize, time_ns, o->queue, 0, t->graph_state, 0);
	model_verb(m, t, GRAPH_VERB_enqueue, time_ns, o->queue, 1, t->graph_state, 0);
}

/* The end of a process gives up what it has locked. */
void model_give_locks_up(struct model *m, struct thread *t, uint64_t time_ns)
{
	model_owned_begin(m);
	model_owned_add(m, OWNED_locked, model_pid_of(m, t), 0);
	size_t nr = model_owned_sort(m);
	for (size_t i = 0; i < nr; i++)
		give_lock_up(m, t, time_ns, &m->object[m->ending.object[i]]);
}

/* Does the call leave something in a file? A thread that does that after each nap has work to do,
 * and does not only look whether something has come. */
static bool rules_io_leaves_something(const struct model *m, const struct trace_io_begin *b)
{
	return rules_io_definition(m, b->object)->type == TRACE_OBJECT_file &&
	       (b->op == TRACE_IO_write || b->op == TRACE_IO_sync || b->op == TRACE_IO_msync);
}

void model_rule_io_begin(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_io_begin *b = &r->u.io_begin;
	model_handler_began(m, t, r->time_ns);
	t->io = (struct io){.object = b->object,
		.op = b->op,
		.n = b->n,
		.queue = NONE,
		.state = NONE,
		.begin_ns = r->time_ns,
		.active = true};
	/* (those of which only the long ones are recorded begin no part of the program) */
	if (!t->nr_held && b->op != TRACE_IO_open && b->op != TRACE_IO_look)
		t->run_state = model_run_state(m, t, b->site);
	struct object *f = NULL;
	if (b->op == TRACE_IO_read || b->op == TRACE_IO_accept)
		f = rules_io_flow_of(m, b->object, FLOW_in);
	else if (b->op == TRACE_IO_write)
		f = rules_io_flow_of(m, b->object, FLOW_out);
	else if (b->op == TRACE_IO_connect)
		f = listener_of(m, b->object);
	else if (b->op == TRACE_IO_lock || b->op == TRACE_IO_unlock)
		f = model_object(m, b->object);
	if (f && b->op == TRACE_IO_read)
		begin_read(m, t, r, f);
	else if (f && b->op == TRACE_IO_accept)
		begin_accept(m, t, r, f);
	else if (f && b->op == TRACE_IO_connect)
		begin_connect(m, t, r, f);
	else if (f && b->op == TRACE_IO_lock)
		rules_io_begin_lock(m, t, r, f);
	else if (f && b->op == TRACE_IO_write)
		begin_write(m, t, r, f);
	else if (b->op != TRACE_IO_read || !is_timer(m, b->object) ||
		 !model_timer_read_begins(m, t, b->object, r->time_ns)) {
		uint32_t state = io_state(m, b->object, b->site, b->op);
		bool signals = b->op == TRACE_IO_read && is_signals(m, b->object);
		t->io.state = signals ? NONE : state;
		model_verb(m, t, signals ? GRAPH_VERB_wait : GRAPH_VERB_state, r->time_ns, 0, 0,
			state, 0);
	}
	if (rules_io_leaves_something(m, b))
		t->naps.gave = true;
	if (f && b->op == TRACE_IO_unlock)
		give_lock_up(m, t, r->time_ns, f);
}

static void end_read(
	struct model *m, struct thread *t, const struct trace_record *r, struct object *f)
{
	int64_t result = r->u.io_end.result;
	uint64_t units = graph_queue_units(m->graph, t->io.queue), state = model_current_state(t);
	bool event = m->defs->objects[t->io.object].type == TRACE_OBJECT_eventfd;
	if (result == 0 && f->queue2 != NONE && graph_queue_units(m->graph, f->queue2)) {
		/* another process, which is not recorded, may have closed it since */
		model_own(m, f, OWNED_closed, 0, r->time_ns);
		model_verb(m, t, GRAPH_VERB_peek, r->time_ns, f->queue2, 1, (uint32_t)state,
			GRAPH_LAST | GRAPH_EXPLAINED);
		return;
	}
	uint64_t ahead = t->io.put_bytes, moved = result > 0 ? (uint64_t)result : 0;
	if (ahead && moved <= ahead) {
		f->bytes.ahead_bytes += ahead - moved;
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, (uint32_t)state, 0);
		return;
	}
	moved -= ahead;
	ahead = moved < f->bytes.ahead_bytes ? moved : f->bytes.ahead_bytes;
	f->bytes.ahead_bytes -= ahead;
	result -= (int64_t)(ahead + t->io.put_bytes);
	if (result <= 0 || !units) {
		/* nothing there, or brought by somebody who is not recorded */
		if (result > 0 && t->mode == MODE_WAITING)
			f->bytes.debt_bytes += (uint64_t)result;
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, (uint32_t)state,
			unless_failed(r->u.io_end.result));
		return;
	}
	uint64_t take = (uint64_t)result < units && !event ? (uint64_t)result : units;
	if (!event && (uint64_t)result > take)
		f->bytes.debt_bytes += (uint64_t)result - take;
	f->left_ns = r->time_ns;
	model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, t->io.queue, (int64_t)take,
		(uint32_t)state, 0);
}

/*
 * A writer that waited for room goes on before the reader that made it says so: its read has not
 * ended yet. What is there it has taken, unless somebody took some after since_ns.
 */
static void take_ahead(struct model *m, uint64_t since_ns, uint64_t time_ns, struct object *f)
{
	struct thread *reader = f->user < m->nr_threads ? &m->thread[f->user] : NULL;
	uint64_t units = graph_queue_units(m->graph, f->queue);
	if (!reader || !reader->io.active || reader->io.op != TRACE_IO_read ||
		reader->io.queue != f->queue || f->left_ns > since_ns)
		return;
	uint64_t wants =
		reader->io.n > reader->io.put_bytes ? reader->io.n - reader->io.put_bytes : 0;
	uint32_t state = reader->graph_state;
	if (!units || !wants)
		return;
	if (reader->mode == MODE_WAITING) /* it may want more, and sleep again */
		state = model_make_state(m, MODEL_CAUSE_io, NONE,
			model_class_of(m, reader->io.object, 0), m->made.state[state].pub.site,
			TRACE_IO_read);
	units = wants < units ? wants : units;
	reader->io.put_bytes += units;
	f->left_ns = time_ns;
	model_verb(m, reader, GRAPH_VERB_dequeue, time_ns, f->queue, (int64_t)units, state, 0);
}

/* A write of that size goes into a pipe or socket as a whole: of one that sleeps nothing is there.
 */
static bool rules_io_is_whole(const struct thread *t)
{
	return t->io.active && t->io.op == TRACE_IO_write && t->io.queue != NONE &&
	       t->io.n <= PIPE_BUF;
}

/* What it announced when the call began others cannot read yet. */
void model_rule_writer_sleeps(struct model *m, struct thread *t, uint64_t time_ns)
{
	uint64_t units = rules_io_is_whole(t) ? graph_queue_units(m->graph, t->io.queue) : 0;
	uint64_t back = t->io.put_bytes < units ? t->io.put_bytes : units;
	if (!back)
		return;
	model_verb_of(m, model_acting(t), GRAPH_VERB_dequeue, time_ns, t->io.queue, (int64_t)back,
		t->graph_state, GRAPH_BACK | GRAPH_ASIDE);
	t->io.put_bytes = 0;
}

/*
 * If somebody has read since it fell asleep, that was what it waited for; it may have to sleep
 * again, where others took the space. What it puts is read before its call is over.
 */
void model_rule_writer_wakes(struct model *m, struct thread *t, uint64_t time_ns)
{
	if (!t->io.active || t->io.op != TRACE_IO_write || !t->io.wants_space ||
		t->io.queue == NONE)
		return;
	struct object *f = rules_io_flow_of(m, t->io.object, FLOW_out);
	uint32_t state = t->graph_state;
	take_ahead(m, t->entered_ns, time_ns, f);
	bool has_space = f->left_ns > t->entered_ns;
	if (has_space) {
		state = model_make_state(m, MODEL_CAUSE_io, NONE,
			model_class_of(m, t->io.object, 0), m->made.state[state].pub.site,
			TRACE_IO_write);
		model_verb(m, t, GRAPH_VERB_reserve, time_ns, t->io.queue, 1, state, 0);
		t->io.wants_space = false;
	}
	if (!rules_io_is_whole(t) || t->io.put_bytes)
		return;
	model_verb_of(m, model_acting(t), GRAPH_VERB_enqueue, time_ns, t->io.queue,
		(int64_t)t->io.n, state, has_space ? 0 : GRAPH_ASIDE);
	t->io.put_bytes = t->io.n;
}

/* From now on it is known who read last: somebody looks for room without a wait in write(). */
static void ask_for_room(struct model *m, struct thread *t, uint64_t time_ns, struct object *f)
{
	if (f->bytes.tells_room || m->is_system)
		return;
	f->bytes.tells_room = true;
	model_verb(m, t, GRAPH_VERB_wait_full, time_ns, f->queue, 1, t->graph_state, 0);
}

static void end_write(
	struct model *m, struct thread *t, const struct trace_record *r, struct object *f)
{
	int64_t result = r->u.io_end.result;
	uint32_t state = model_current_state(t);
	uint64_t moved = result > 0 ? (uint64_t)result : 0, put = t->io.put_bytes;
	if (m->defs->objects[t->io.object].type == TRACE_OBJECT_eventfd)
		moved = result > 0;
	if (moved < put) { /* less than was announced */
		uint64_t units = graph_queue_units(m->graph, t->io.queue), back = put - moved;
		ask_for_room(m, t, r->time_ns, f);
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, t->io.queue,
			(int64_t)(back < units ? back : units), state,
			GRAPH_BACK | GRAPH_EXPLAINED);
		return;
	}
	if (t->io.wants_space && moved)
		take_ahead(m, t->io.begin_ns, r->time_ns, f);
	uint64_t rest = moved - put, paid = rest < f->bytes.debt_bytes ? rest : f->bytes.debt_bytes;
	f->bytes.debt_bytes -= paid;
	/* all of it may have been read before this call returned: then only the space was waited
	 * for */
	if (t->io.wants_space)
		model_verb(m, t, rest > paid ? GRAPH_VERB_enqueue : GRAPH_VERB_reserve, r->time_ns,
			t->io.queue, rest > paid ? (int64_t)(rest - paid) : 1, state, 0);
	else
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, state, 0);
}

/* It slept in the call, or did not: the state that says "fsync" does not tell. */
static void count_call(struct model *m, const struct thread *t, uint64_t time_ns)
{
	struct model_state *state = &m->made.state[t->graph_state].pub;
	if (state->kind != MODEL_STATE_io)
		return;
	state->call_ns += time_ns - t->io.begin_ns;
	state->away_ns += t->io.away_ns;
}

void model_rule_io_end(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_io_end *e = &r->u.io_end;
	struct object *f = NULL;
	if (!t->io.active && t->interrupted && t->signal.outer_io.active) {
		t->io = t->signal.outer_io; /* a handler interrupted this call, and is over */
		t->interrupted = false;
	}
	bool known = t->io.active && t->io.queue != NONE && t->io.object == e->object &&
		     t->io.op == e->op;
	if (known && e->op == TRACE_IO_lock)
		f = model_object(m, e->object);
	else if (known)
		f = rules_io_flow_of(m, e->object, e->op == TRACE_IO_write ? FLOW_out : FLOW_in);
	if (t->io.active && t->graph_state < m->made.nr_states)
		count_call(m, t, r->time_ns);
	if (t->io.active && e->op == TRACE_IO_read &&
		(e->result == -EINTR || (e->result > 0 && is_signals(m, e->object))))
		model_signal_came(m, t, r->time_ns, unless_failed(e->result));
	else if (t->io.active && e->op == TRACE_IO_read && e->result > 0 &&
		 is_timer(m, e->object) && model_timer_was_read(m, t, e->object, r->time_ns))
		; /* what ended it is told */
	else if (known && e->op == TRACE_IO_connect)
		end_connect(m, t, r);
	else if (f && e->op == TRACE_IO_accept)
		end_accept(m, t, r);
	else if (f && e->op == TRACE_IO_lock)
		end_lock(m, t, r, f);
	else if (f && t->io.op == TRACE_IO_read)
		end_read(m, t, r, f);
	else if (f)
		end_write(m, t, r, f);
	else
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t),
			GRAPH_EXPLAINED);
	t->io.active = false;
}

/*
 * The reader's end of file has waited for the closing of the last descriptor that could write: of
 * all that close one, the last before it. The process's own end closes what is still open
 * (rules_thread.c).
 */
void model_rule_io_close(struct model *m, struct thread *t, const struct trace_record *r)
{
	enum { WRITTEN = 2, LOCK = 4 };
	const struct trace_io_close *c = &r->u.io_close;
	struct object *locked = c->ends == LOCK ? model_object(m, c->object) : NULL;
	if (locked)
		give_lock_up(m, t, r->time_ns, locked);
	struct object *f = c->ends & WRITTEN ? rules_io_flow_of(m, c->object, FLOW_out) : NULL;
	if (!f)
		return;
	/* a shell closes all pipes of its programs at one place, which makes them none the liker */
	uint32_t queue = end_queue(m, c->object, f, 0);
	uint64_t eldest = f->owned[OWNED_closed].owner, pid = model_pid_of(m, t);
	if (!eldest || eldest == pid || !model_descends(m, t, eldest))
		model_own(m, f, OWNED_closed, pid, r->time_ns);
	model_verb(m, t, GRAPH_VERB_resize, r->time_ns, queue, 0, t->graph_state, 0);
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, queue, 1, t->graph_state, 0);
}

/* ---- readiness ------------------------------------------------------------------------------- */

void model_rule_poll_begin(struct model *m, struct thread *t, const struct trace_record *r)
{
	model_handler_began(m, t, r->time_ns);
	if (!t->nr_held)
		t->run_state = model_run_state(m, t, r->u.poll_begin.site);
	model_verb(m, t, GRAPH_VERB_wait, r->time_ns, r->u.poll_begin.site, 0,
		model_make_state(m,
			r->u.poll_begin.n ? MODEL_CAUSE_ready : MODEL_CAUSE_ready_nothing, NONE,
			NONE, r->u.poll_begin.site, 0),
		0);
}

/* Nothing had come when the time was over. (A thread that never left its processor only had a
 * look.) */
static void limit_ended(struct model *m, struct thread *t, uint64_t time_ns)
{
	uint32_t site =
		t->graph_state < m->made.nr_states ? m->made.state[t->graph_state].pub.site : 0;
	if (t->mode == MODE_WAITING && t->cpu.left_in_wait) {
		model_napped(t, t->entered_ns, time_ns);
		model_rename(m, t, time_ns,
			model_make_state(m, MODEL_CAUSE_sleep_limit, NONE, NONE, site, 0));
	}
	model_verb(
		m, t, GRAPH_VERB_state, time_ns, 0, 0, model_current_state(t), MODEL_NOTHING_CAME);
}

/* What its readiness comes from; NULL: somebody else. */
static struct object *rules_io_read_at(struct model *m, uint32_t object)
{
	return rules_io_definition(m, object)->type == TRACE_OBJECT_message_queue
		       ? model_object(m, object)
		       : rules_io_flow_of(m, object, FLOW_in);
}

/* There is room again: somebody has read, or reads, what it had put. */
static bool room_came(struct model *m, struct thread *t, uint32_t object, uint64_t time_ns)
{
	struct object *f = m->is_system ? NULL : rules_io_flow_of(m, object, FLOW_out);
	if (!f || f->queue == NONE || rules_io_definition(m, object)->type == TRACE_OBJECT_eventfd)
		return false;
	if (!f->bytes.tells_room) {
		model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0, model_current_state(t),
			GRAPH_EXPLAINED);
		ask_for_room(m, t, time_ns, f);
	}
	take_ahead(m, t->entered_ns, time_ns, f);
	if (f->left_ns <= t->entered_ns)
		return false;
	model_verb(m, t, GRAPH_VERB_reserve, time_ns, f->queue, 1, model_current_state(t), 0);
	return true;
}

void model_rule_poll_end(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_poll_end *e = &r->u.poll_end;
	uint32_t state = model_current_state(t);
	struct object *f =
		e->object && e->result > 0 && !e->writable ? rules_io_read_at(m, e->object) : NULL;
	if (e->result == -EINTR || (e->object && e->result > 0 && is_signals(m, e->object)))
		/* SIGCHLD, of all that are seen */
		model_signal_came(m, t, r->time_ns, unless_failed(e->result));
	else if (e->result > 0 && is_timer(m, e->object) &&
		 model_timer_is_ready(m, t, e->object, r->time_ns))
		; /* what ended it is told */
	else if (e->result == 0 && model_turn_time_came(m, t, r->time_ns))
		; /* so is whose time it was */
	else if (e->result == 0 || is_timer(m, e->object))
		limit_ended(m, t, r->time_ns);
	else if (e->object && e->result > 0 && e->writable &&
		 room_came(m, t, e->object, r->time_ns))
		; /* its maker is told */
	else if (f && f->queue != NONE && graph_queue_units(m->graph, f->queue))
		model_verb(m, t, GRAPH_VERB_peek, r->time_ns, f->queue, 1, state, 0);
	else if (f && f->queue2 != NONE && graph_queue_units(m->graph, f->queue2))
		model_verb(m, t, GRAPH_VERB_peek, r->time_ns, f->queue2, 1, state,
			GRAPH_LAST | GRAPH_EXPLAINED);
	else
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, state, GRAPH_EXPLAINED);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_message.c - message queues: bounded, of items with a key (POSIX: priority, System V: type).
 *
 * A message is in its queue from when its sender calls, unless there is no room: then it is outside
 * until the sender says that it was sent. The kernel puts it there as soon as there is room,
 * so it may be received before that: a debt, which the sender's record pays. What a receiver finds
 * is taken when it calls, for the sender that it makes room for may be back first.
 */
#include "model/model_private.h"

static enum trace_object_type rules_message_type_of(const struct model *m, uint32_t object)
{
	return (enum trace_object_type)m->defs->objects[object].type;
}

/* In a queue by priority the smallest key is taken first; its messages' priorities are the other
 * way round. */
static uint64_t rules_message_order_of(const struct model *m, uint32_t object, uint64_t key)
{
	enum { PRIORITIES = 1 << 15 };
	if (rules_message_type_of(m, object) != TRACE_OBJECT_message_queue)
		return key;
	return key < PRIORITIES ? PRIORITIES - key : 0;
}

static void rules_message_move(struct model *m, struct thread *t, uint64_t time_ns,
	enum graph_verb_kind verb, uint32_t queue, uint64_t n, uint64_t key, uint32_t flags)
{
	m->item_key = key;
	model_verb(m, t, verb, time_ns, queue, (int64_t)n, model_current_state(t), flags);
	m->item_key = 0;
}

/* The message that t is sending is not there after all. */
static void take_back(
	struct model *m, struct thread *t, uint64_t time_ns, struct object *o, uint32_t flags)
{
	rules_message_move(
		m, t, time_ns, GRAPH_VERB_dequeue, o->queue, t->message.n, 0, GRAPH_BACK | flags);
	t->message.moved = false;
	o->bytes.outside += t->message.n;
}

/* Messages that were there before anybody was seen to send one. */
void model_messages_found(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t object = r->u.token_set.object;
	struct object *o = model_object(m, object);
	if (o && o->queue == NONE && rules_message_type_of(m, object) == TRACE_OBJECT_message_queue)
		model_verb(m, t, GRAPH_VERB_resize, r->time_ns, model_queue_of(m, object, o, 0, 0),
			(int64_t)r->u.token_set.n, model_current_state(t), 0);
}

static bool rules_message_has_room(
	const struct model *m, uint32_t object, uint32_t queue, uint64_t n)
{
	uint64_t capacity = m->defs->objects[object].capacity,
		 units = graph_queue_units(m->graph, queue);
	return !capacity || (units < capacity && n <= capacity - units);
}

void model_rule_message_send(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_message_send *s = &r->u.message_send;
	struct object *o = model_object(m, s->object);
	if (!o)
		return;
	uint32_t queue = model_queue_of(m, s->object, o, 0, s->site);
	t->message = (struct message){.key = rules_message_order_of(m, s->object, s->key),
		.n = s->n,
		.object = s->object,
		.site = s->site,
		.sends = true,
		.moved = rules_message_has_room(m, s->object, queue, s->n)};
	if (t->message.moved)
		rules_message_move(
			m, t, r->time_ns, GRAPH_VERB_enqueue, queue, s->n, t->message.key, 0);
	else
		o->bytes.outside += s->n;
}

void model_rule_message_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_message_wait *w = &r->u.message_wait;
	struct object *o = model_object(m, w->object);
	if (!o)
		return;
	uint32_t queue = model_queue_of(m, w->object, o, 0, w->site);
	uint32_t state =
		model_wait_state(m, model_class_of(m, w->object, w->site), w->site, w->full != 0);
	if (w->full && t->message.sends && t->message.moved)
		take_back(m, t, r->time_ns, o, 0);
	model_verb(m, t, w->full ? GRAPH_VERB_wait_full : GRAPH_VERB_wait_empty, r->time_ns, queue,
		w->full && t->message.sends ? (int64_t)t->message.n : 1, state, 0);
}

/* Was it received already? */
static bool is_paid(struct object *o, uint64_t n)
{
	bool paid = o->bytes.debt_bytes >= n;
	o->bytes.debt_bytes -= paid ? n : 0;
	return paid;
}

void model_rule_message_sent(struct model *m, struct thread *t, const struct trace_record *r)
{
	struct object *o = model_object(m, r->u.message_sent.object);
	struct message *k = &t->message;
	bool given_up = !r->u.message_sent.n;
	if (!o || !k->sends || o->queue == NONE)
		return;
	if (!t->nr_held)
		t->run_state = model_run_state(m, t, k->site);
	if (given_up && k->moved)
		take_back(m, t, r->time_ns, o, GRAPH_EXPLAINED);
	else if (given_up || k->moved)
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t),
			given_up ? MODEL_NOTHING_CAME : 0);
	else
		rules_message_move(m, t, r->time_ns,
			is_paid(o, k->n) ? GRAPH_VERB_reserve : GRAPH_VERB_enqueue, o->queue, k->n,
			k->key, 0);
	if (!k->moved)
		o->bytes.outside -= o->bytes.outside < k->n ? o->bytes.outside : k->n;
	k->sends = false;
}

/* Takes the message that comes first, or first of those with that key, if there is one. */
static bool rules_message_take(struct model *m, struct thread *t, uint64_t time_ns, uint32_t queue,
	uint64_t key, uint32_t flags)
{
	struct graph_verb asked = {.queue = queue, .key = key, .flags = flags};
	uint64_t n;
	if (m->status != BASE_OK || !graph_queue_next(m->graph, &asked, &t->message.key, &n))
		return false;
	t->message.n = n;
	t->message.moved = true;
	rules_message_move(m, t, time_ns, GRAPH_VERB_dequeue, queue, n, key, flags);
	return true;
}

/* A receiver that asks for a type takes no other; one that does not takes what there is. */
void model_rule_message_receive(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_message_receive *v = &r->u.message_receive;
	struct object *o = model_object(m, v->object);
	if (!o)
		return;
	uint32_t queue = model_queue_of(m, v->object, o, 0, v->site);
	t->message = (struct message){.object = v->object, .site = v->site, .receives = true};
	if (v->key != UINT64_MAX)
		rules_message_take(m, t, r->time_ns, queue, v->key, v->key ? GRAPH_KEYED : 0);
}

void model_rule_message_received(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_message_received *v = &r->u.message_received;
	struct object *o = model_object(m, v->object);
	struct message *k = &t->message;
	if (!o || !k->receives || o->queue == NONE)
		return;
	bool early = k->moved;
	k->receives = false;
	if (!t->nr_held)
		t->run_state = model_run_state(m, t, k->site);
	if (early && !v->n) /* another got it */
		rules_message_move(
			m, t, r->time_ns, GRAPH_VERB_enqueue, o->queue, k->n, k->key, GRAPH_NOBODY);
	if (!early && v->n) {
		uint64_t key = rules_message_order_of(m, v->object, v->key);
		if (rules_message_take(m, t, r->time_ns, o->queue, key, GRAPH_KEYED) ||
			rules_message_take(
				m, t, r->time_ns, o->queue, 0, GRAPH_KEYED | GRAPH_EXPLAINED))
			return;
		/* its sender has yet to say so, or is not recorded */
		if (o->bytes.debt_bytes + v->n <= o->bytes.outside)
			o->bytes.debt_bytes += v->n;
	}
	model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t),
		v->n ? GRAPH_EXPLAINED : MODEL_NOTHING_CAME);
}

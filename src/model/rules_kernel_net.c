/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_kernel_net.c - packets and sockets. A packet is a unit on its flow (addresses and ports,
 * one direction): put by the thread that hands it to the device, taken by the softirq that hands it
 * up, on whatever host of this trace. A queueing discipline is an actor that sends one packet after
 * the other: as long as it has some, the time between two is its own, hence a rate limit is on the
 * path. So it is when it had none for a moment, but what came then had to wait for the rate all the
 * same: a token bucket fills whether there is a packet or not. A socket's received bytes are a
 * queue that its program takes from.
 */
#include "model/model_private.h"

enum {
	FLOW_MAX = 2048,     /* packets that nobody was seen to receive, of one flow */
	QDISC_MAX = 1 << 30, /* bytes in one discipline */
	PACKET_MAX = 1 << 24,
	AT_ONCE_NS = 10 * 1000, /* from coming to leaving, if nothing holds it back */
	RATE_FORGETS = 8,       /* so much of what it had sent counts still, one packet later */
	RATE_NUM = 5,
	RATE_DEN = 4, /* at most so much slower than it was */
};

/* The same at both ends. */
static uint64_t rules_kernel_net_key_of(const struct trace_packet_queue *p)
{
	uint64_t h = p->seq * UINT64_C(0x9e3779b97f4a7c15) ^ p->ack * UINT64_C(0xc2b2ae3d27d4eb4f);
	return h ^ p->payload << 1 ^ (h >> 29);
}

static void rules_kernel_net_act(struct model *m, uint32_t actor, enum graph_verb_kind verb,
	uint64_t time_ns, uint32_t queue, uint64_t key, uint32_t state, uint32_t flags)
{
	m->item_key = key;
	model_verb_of(m, actor, verb, time_ns, queue, 1, state, flags);
	m->item_key = 0;
}

/* Its bytes are under way in packets that were put together or cut otherwise: those that came whole
 * leave, of the others the last is looked at. */
static bool take_parts(struct model *m, uint32_t actor, uint64_t time_ns, struct object *o,
	const struct trace_packet_queue *p, uint32_t state)
{
	size_t nr;
	const struct packet *found = model_packets_covering(o->packets, p, &nr);
	for (size_t i = 0; i < nr; i++) {
		bool whole = (int32_t)((uint32_t)(p->seq + p->payload) - found[i].end) >= 0;
		if (!whole && i + 1 < nr)
			continue;
		rules_kernel_net_act(m, actor, whole ? GRAPH_VERB_dequeue : GRAPH_VERB_peek,
			time_ns, o->queue, found[i].key, state,
			GRAPH_KEYED | (i + 1 < nr ? GRAPH_MORE : 0));
		if (whole)
			model_packet_gone(o->packets, found[i].key);
	}
	return nr != 0;
}

/* Takes it, or what has its bytes, if that is there. */
static bool rules_kernel_net_take_packet(struct model *m, uint32_t actor, uint64_t time_ns,
	struct object *o, const struct trace_packet_queue *p, uint32_t state)
{
	uint64_t key = rules_kernel_net_key_of(p);
	if (o->queue == NONE || !graph_queue_units(m->graph, o->queue))
		return false;
	if (!graph_queue_has(m->graph, o->queue, key))
		return take_parts(m, actor, time_ns, o, p, state);
	rules_kernel_net_act(
		m, actor, GRAPH_VERB_dequeue, time_ns, o->queue, key, state, GRAPH_KEYED);
	model_packet_gone(o->packets, key);
	return true;
}

static void rules_kernel_net_put_packet(struct model *m, uint32_t actor, uint64_t time_ns,
	const struct trace_packet_queue *p, uint32_t state)
{
	struct object *o = model_kernel_object(m, p->flow, TRACE_OBJECT_flow);
	if (!o)
		return;
	uint32_t queue = model_queue_of(m, p->flow, o, 0, 0);
	if (graph_queue_units(m->graph, queue) >= FLOW_MAX) { /* they went to another host */
		model_verb_of(m, actor, GRAPH_VERB_resize, time_ns, queue, 0, state, 0);
		model_packets_gone(o->packets);
	}
	rules_kernel_net_act(
		m, actor, GRAPH_VERB_enqueue, time_ns, queue, rules_kernel_net_key_of(p), state, 0);
	model_packet_sent(m, &o->packets, p, rules_kernel_net_key_of(p));
}

/* Of the actor that put the thread's last packet: it, or a socket's sender. */
static uint32_t rules_kernel_net_state_of(struct model *m, const struct thread *t)
{
	return t->k.packet_by == model_acting(t) ? model_busy_state(t) : model_idle_state(m);
}

/* ---- devices --------------------------------------------------------------------------------- */

void model_rule_packet_queue(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_packet_queue *p = &r->u.packet_queue;
	t->k.packet_by = NONE;
	if (!m->is_system || !model_may_act(m, t, r->time_ns))
		return;
	model_take_raise(m, t, r->time_ns);
	uint32_t sender = model_tcp_sends(m, t, r);
	if (sender != NONE)
		t->k.packet_by = sender;
	else if (model_is_credited(t))
		t->k.packet_by = model_acting(t);
	if (t->k.packet_by == NONE)
		return;
	rules_kernel_net_put_packet(
		m, t->k.packet_by, r->time_ns, p, rules_kernel_net_state_of(m, t));
	t->k.packet = rules_kernel_net_key_of(p);
	t->k.packet_socket = p->socket;
	model_tcp_rests(m, t->k.packet_by, p->socket, r->time_ns);
}

void model_rule_packet_receive(struct model *m, struct thread *t, const struct trace_record *r)
{
	/* both of one shape */
	const struct trace_packet_queue *p = &r->u.packet_queue;
	struct object *o = model_kernel_object(m, p->flow, TRACE_OBJECT_flow);
	if (!o)
		return;
	if (model_is_context(t)) {
		if (rules_kernel_net_take_packet(m, t->actor, r->time_ns, o, p, t->run_state))
			model_credit(t);
		else if (t->k.credited) /* from outside: for no reason that is known */
			model_forget_context(m, t, r->time_ns);
	} else if (t->mode == MODE_RUNNING) { /* a relay that writes it into a tunnel */
		rules_kernel_net_take_packet(m, model_acting(t), r->time_ns, o, p, t->graph_state);
	}
	model_tcp_hears(m, t, r);
}

/* ---- queueing disciplines -------------------------------------------------------------------- */

/* The actor that sends what the discipline holds. */
static uint32_t rules_kernel_net_sender_of(
	struct model *m, struct object *o, uint32_t object, uint64_t time_ns)
{
	if (o->sending.sender != NONE)
		return o->sending.sender;
	o->sending.sender = model_make_actor(m, NONE, NONE);
	if (m->status != BASE_OK)
		return NONE;
	m->made.actor[o->sending.sender].kind = MODEL_ACTOR_device;
	m->made.actor[o->sending.sender].object = object;
	model_verb_of(m, o->sending.sender, GRAPH_VERB_wait_empty, time_ns,
		model_queue_of(m, object, o, 0, 0), 1, model_idle_state(m), 0);
	return o->sending.sender;
}

static uint32_t sending_state(struct model *m, uint32_t object)
{
	return model_make_state(
		m, MODEL_CAUSE_device_sends, NONE, model_class_of(m, object, 0), 0, 0);
}

/* Bytes, since a large packet may leave in several: of the program's, or of a packet without any.
 */
static uint64_t rules_kernel_net_bytes_of(const struct trace_packet_queue *p)
{
	uint64_t n = p->payload ? p->payload : p->n;
	return n < PACKET_MAX ? n : PACKET_MAX;
}

/* It goes on with what there is, or has nothing to send. */
static void send_next(struct model *m, struct object *o, uint32_t object, uint64_t time_ns)
{
	o->sending.sends = graph_queue_units(m->graph, o->queue) != 0;
	if (o->sending.sends)
		model_verb_of(m, o->sending.sender, GRAPH_VERB_peek, time_ns, o->queue, 1,
			sending_state(m, object), 0);
	else
		model_verb_of(m, o->sending.sender, GRAPH_VERB_wait_empty, time_ns, o->queue, 1,
			model_idle_state(m), 0);
}

/* No more time has passed since the last packet left than its rate takes for this one. */
static bool is_rate(const struct object *o, uint64_t bytes, uint64_t time_ns)
{
	double ns = (double)(time_ns - o->sending.rate.left_ns);
	return o->sending.rate.left_ns && o->sending.rate.busy_bytes &&
	       ns * RATE_DEN * (double)o->sending.rate.busy_bytes <=
		       (double)o->sending.rate.busy_ns * RATE_NUM * (double)bytes;
}

/*
 * What came into an empty one leaves. When it had to wait for the rate, the time since the last one
 * left was the rate's, whenever it came within that: its coming then orders only. Else its coming
 * is why it leaves now.
 */
static void end_pause(
	struct model *m, struct object *o, uint32_t object, uint64_t bytes, uint64_t time_ns)
{
	if (!o->sending.rate.came_ns) {
		if (o->sending.rate.left_ns) {
			o->sending.rate.busy_ns -= o->sending.rate.busy_ns / RATE_FORGETS;
			o->sending.rate.busy_bytes -= o->sending.rate.busy_bytes / RATE_FORGETS;
			o->sending.rate.busy_ns += time_ns - o->sending.rate.left_ns;
			o->sending.rate.busy_bytes += bytes;
		}
		return;
	}
	if (time_ns - o->sending.rate.came_ns > AT_ONCE_NS && is_rate(o, bytes, time_ns)) {
		model_verb_of(m, o->sending.sender, GRAPH_VERB_rename, time_ns, 0, 0,
			sending_state(m, object), 0);
		model_verb_of(m, o->sending.sender, GRAPH_VERB_state, time_ns, 0, 0,
			sending_state(m, object), GRAPH_EXPLAINED);
	}
	o->sending.rate.came_ns = 0;
}

/* It has something to send again: because of that, unless the rate says later that it was not. */
static void end_idleness(
	struct model *m, struct object *o, const struct trace_packet_queue *p, uint64_t time_ns)
{
	o->sending.sends = true;
	if (is_rate(o, rules_kernel_net_bytes_of(p), time_ns))
		o->sending.rate.came_ns = time_ns;
	else
		send_next(m, o, p->object, time_ns);
}

void model_rule_qdisc_enqueue(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_packet_queue *p = &r->u.packet_queue;
	struct object *o = model_kernel_object(m, p->object, TRACE_OBJECT_qdisc);
	struct object *flow = o ? model_kernel_object(m, p->flow, TRACE_OBJECT_flow) : NULL;
	bool same = t->k.packet_by != NONE && t->k.packet == rules_kernel_net_key_of(p);
	if (!flow || !model_may_act(m, t, r->time_ns) ||
		rules_kernel_net_sender_of(m, o, p->object, r->time_ns) == NONE)
		return;
	/* one that came for no known reason is the discipline's own: what leaves must have come */
	bool aside = !same && !model_is_credited(t);
	uint32_t by = same ? t->k.packet_by : aside ? o->sending.sender : model_acting(t);
	uint32_t state = same    ? rules_kernel_net_state_of(m, t)
			 : aside ? (o->sending.sends && !o->sending.rate.came_ns
						   ? sending_state(m, p->object)
						   : model_idle_state(m))
				 : model_busy_state(t);
	if (flow->queue != NONE &&
		graph_queue_has(m->graph, flow->queue, rules_kernel_net_key_of(p))) {
		/* not under way yet: it is the discipline's to send */
		rules_kernel_net_act(m, by, GRAPH_VERB_dequeue, r->time_ns, flow->queue,
			rules_kernel_net_key_of(p), state,
			GRAPH_KEYED | GRAPH_BACK | (aside ? GRAPH_ASIDE : GRAPH_EXPLAINED));
		model_packet_gone(flow->packets, rules_kernel_net_key_of(p));
	}
	if (graph_queue_units(m->graph, o->queue) >= QDISC_MAX)
		model_verb_of(m, by, GRAPH_VERB_resize, r->time_ns, o->queue, 0, state, 0);
	if (p->payload && !model_packet_sent(m, &flow->held, p, rules_kernel_net_key_of(p)))
		return;
	model_verb_of(m, by, GRAPH_VERB_enqueue, r->time_ns, o->queue,
		(int64_t)rules_kernel_net_bytes_of(p), state, aside ? GRAPH_ASIDE : 0);
	flow->sending.sender = p->object;
	if (!o->sending.sends)
		end_idleness(m, o, p, r->time_ns);
	if (same)
		model_tcp_rests(m, by, t->k.packet_socket, r->time_ns);
}

static void take_bytes(struct model *m, struct object *o, uint32_t object, uint64_t n,
	uint64_t time_ns, uint32_t flags)
{
	uint64_t units = graph_queue_units(m->graph, o->queue);
	model_verb_of(m, o->sending.sender, GRAPH_VERB_dequeue, time_ns, o->queue,
		(int64_t)(n < units ? n : units), sending_state(m, object), flags);
}

/* Of the discipline, with the packet: what its flow had put there before it has left, too, seen or
 * not. */
static uint64_t leaving_bytes(struct model *m, const struct trace_packet_queue *p)
{
	struct object *flow = model_kernel_object(m, p->flow, TRACE_OBJECT_flow);
	return p->payload && flow ? model_packets_leave(flow->held, p, rules_kernel_net_key_of(p))
				  : rules_kernel_net_bytes_of(p);
}

static void leave_discipline(
	struct model *m, const struct trace_packet_queue *p, uint32_t object, uint64_t time_ns)
{
	struct object *o = model_kernel_object(m, object, TRACE_OBJECT_qdisc);
	if (!o || o->sending.sender == NONE || !o->sending.sends)
		return;
	uint64_t n = leaving_bytes(m, p);
	end_pause(m, o, object, n ? n : rules_kernel_net_bytes_of(p), time_ns);
	o->sending.rate.left_ns = time_ns;
	take_bytes(m, o, object, n, time_ns, 0);
	rules_kernel_net_put_packet(m, o->sending.sender, time_ns, p, sending_state(m, object));
	model_tcp_left(
		m, o->sending.sender, sending_state(m, object), p->socket, p->payload, time_ns);
	send_next(m, o, object, time_ns);
}

void model_rule_qdisc_dequeue(struct model *m, struct thread *t, const struct trace_record *r)
{
	(void)t;
	leave_discipline(m, &r->u.packet_queue, r->u.qdisc_dequeue.object, r->time_ns);
}

/* Packets may leave a discipline several at once: only the first is said to. (What leaves in pieces
 * was said to, whole.) */
void model_rule_packet_transmit(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_packet_queue *p = &r->u.packet_queue;
	struct object *flow = model_kernel_object(m, p->flow, TRACE_OBJECT_flow);
	size_t nr;
	(void)t;
	if (!flow || flow->sending.sender == NONE || flow->queue == NONE ||
		graph_queue_has(m->graph, flow->queue, rules_kernel_net_key_of(p)))
		return;
	model_packets_covering(flow->packets, p, &nr);
	if (!nr)
		leave_discipline(m, p, flow->sending.sender, r->time_ns);
}

/* One that will not be sent. */
void model_rule_packet_drop(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_packet_queue *p = &r->u.packet_queue;
	struct object *o = model_kernel_object(m, p->object, TRACE_OBJECT_qdisc),
		      *flow = model_kernel_object(m, p->flow, TRACE_OBJECT_flow);
	(void)t;
	if (!o || o->sending.sender == NONE || !o->sending.sends ||
		(p->payload &&
			(!flow || !model_packet_gone(flow->held, rules_kernel_net_key_of(p)))))
		return;
	if (o->sending.rate.came_ns) /* it does something: its pause is over */
		send_next(m, o, p->object, r->time_ns);
	o->sending.rate.came_ns = 0;
	take_bytes(m, o, p->object, rules_kernel_net_bytes_of(p), r->time_ns,
		GRAPH_BACK | GRAPH_ASIDE);
	model_tcp_left(m, o->sending.sender, sending_state(m, p->object), p->socket, p->payload,
		r->time_ns);
}

/* ---- sockets --------------------------------------------------------------------------------- */

void model_rule_socket_ready(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_socket_ready *s = &r->u.socket_ready;
	struct object *o = model_kernel_object(m, s->object, TRACE_OBJECT_socket);
	if (!o || s->n > INT64_MAX || !model_may_act(m, t, r->time_ns))
		return;
	model_take_raise(m, t, r->time_ns);
	uint32_t queue = model_queue_of(m, s->object, o, 0, 0);
	if (model_is_credited(t) && s->n > graph_queue_units(m->graph, queue))
		model_verb_of(m, model_acting(t), GRAPH_VERB_resize, r->time_ns, queue,
			(int64_t)s->n, model_busy_state(t), 0);
}

void model_rule_socket_receive(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_socket_receive *s = &r->u.socket_receive;
	struct object *o = model_kernel_object(m, s->object, TRACE_OBJECT_socket);
	if (!o || o->queue == NONE || model_is_context(t) || t->mode != MODE_RUNNING)
		return;
	uint64_t units = graph_queue_units(m->graph, o->queue), n = s->n < units ? s->n : units;
	if (n)
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, o->queue, (int64_t)n,
			t->graph_state, 0);
}

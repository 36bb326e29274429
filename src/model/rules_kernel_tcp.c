/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_kernel_tcp.c - what a TCP socket may send, as credits (seed 000, section 4.2): bytes of the
 * window (congestion's or the peer's, whichever is less) that are not in flight, and room in the
 * send buffer. An acknowledgement gives credits; sending takes them. And as a socket may have so
 * many bytes only below itself (Linux: small queues), a packet that leaves the queueing discipline
 * gives credits, too. What is sent because either came is sent by an actor of its own, the socket's
 * sender: it depends on the bytes and on the credits, not on what else the softirq did. So an edit
 * of a window or a buffer means something: with k bytes more, each take is of the credits k bytes
 * before.
 */
#include "model/model_private.h"

static struct tcp *tcp_of(struct model *m, uint32_t object)
{
	struct object *o = model_kernel_object(m, object, TRACE_OBJECT_socket);
	if (!o || (o->tcp && !o->tcp->open))
		return NULL;
	if (o->tcp)
		return o->tcp;
	o->tcp = base_alloc(sizeof *o->tcp);
	if (!o->tcp) {
		m->status = base_fail(m->err, BASE_ERR_NOMEM, "out of memory for sockets");
		return NULL;
	}
	*o->tcp = (struct tcp){.sender = NONE,
		.window = NONE,
		.unsent = NONE,
		.room = NONE,
		.below = NONE,
		.open = true};
	return o->tcp;
}

static uint32_t rules_kernel_tcp_part_of(
	struct model *m, uint32_t *queue, uint32_t object, const char *what, bool tokens)
{
	if (*queue == NONE) {
		*queue = model_make_queue(m, 0, object, TRACE_OBJECT_socket,
			model_class_of(m, object, 0), GRAPH_FIFO);
		if (*queue < m->made.nr_queues) {
			m->made.queue[*queue].what = what;
			m->made.queue[*queue].pub.tokens = tokens;
			m->made.queue[*queue].anonymous = tokens;
		}
	}
	return *queue;
}

static uint32_t window_of(struct model *m, struct tcp *s, uint32_t object)
{
	return rules_kernel_tcp_part_of(m, &s->window, object, "window of ", true);
}

static uint32_t below_of(struct model *m, struct tcp *s, uint32_t object)
{
	return rules_kernel_tcp_part_of(m, &s->below, object, "small queue of ", true);
}

/* As many bytes of the queue as there are of n, by the present actor. */
static void take_some(struct model *m, uint32_t actor, uint64_t time_ns, uint32_t queue, uint64_t n,
	uint32_t state, uint32_t flags)
{
	uint64_t units = graph_queue_units(m->graph, queue);
	n = n < units ? n : units;
	if (n && n <= INT64_MAX)
		model_verb_of(
			m, actor, GRAPH_VERB_dequeue, time_ns, queue, (int64_t)n, state, flags);
}

/* Sent and not acknowledged, as far as was seen; sequence numbers begin anew at 2^32. */
static uint64_t in_flight(const struct tcp *s)
{
	uint32_t flying = (uint32_t)(s->sent - s->acknowledged);
	return s->known && s->heard && flying < INT32_MAX ? flying : 0;
}

/* ---- credits --------------------------------------------------------------------------------- */

/*
 * The peer's window holds the sender back; the congestion window only where it is full: one that is
 * not would have grown if there had been use for it (RFC 7661), and says nothing about another run.
 */
static uint64_t window_bytes(const struct tcp *s)
{
	enum { SEGMENT = 1500, SEGMENTS = 3 };
	bool full = in_flight(s) + (uint64_t)SEGMENT * SEGMENTS >= s->congestion_bytes;
	return full && s->congestion_bytes < s->peer_bytes ? s->congestion_bytes : s->peer_bytes;
}

/* As many as the windows leave; given by the bringer of the news. What is there beyond that was
 * used by packets that were not seen to take it: the oldest. */
static void set_credits(
	struct model *m, struct thread *t, struct tcp *s, uint32_t object, uint64_t time_ns)
{
	if (!s->peer_bytes || !s->congestion_bytes)
		return;
	uint64_t now = graph_queue_units(m->graph, window_of(m, s, object)), flying = in_flight(s),
		 bytes = window_bytes(s), want = bytes > flying ? bytes - flying : 0;
	uint32_t by = model_is_credited(t) && model_may_act(m, t, time_ns) ? model_acting(t) : NONE;
	if (by == NONE || now == want)
		return;
	if (now > want)
		take_some(m, by, time_ns, s->window, now - want, model_busy_state(t), 0);
	else
		model_verb_of(m, by, GRAPH_VERB_resize, time_ns, s->window,
			(int64_t)(want < INT64_MAX ? want : INT64_MAX), model_busy_state(t), 0);
}

/* What has come acknowledges the bytes up to here. */
static void rules_kernel_tcp_hear(struct model *m, struct thread *t, struct tcp *s, uint32_t object,
	uint64_t ack, uint64_t time_ns)
{
	int32_t acked = (int32_t)(uint32_t)(ack - s->acknowledged);
	bool first = !s->heard;
	s->heard = true;
	if (!first && acked <= 0)
		return;
	s->acknowledged = ack;
	if (first)
		return;
	s->room_bytes += (uint64_t)acked;
	if (s->room != NONE && model_is_credited(t) && model_may_act(m, t, time_ns)) {
		model_verb_of(m, model_acting(t), GRAPH_VERB_enqueue, time_ns, s->room,
			(int64_t)s->room_bytes, model_busy_state(t), 0);
		s->room_bytes = 0;
	}
	set_credits(m, t, s, object, time_ns);
}

/* The connection of the segment that the stream is handling, and what its windows were before
 * it. */
void model_rule_tcp_window(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_tcp_window *w = &r->u.tcp_window;
	struct tcp *s = tcp_of(m, w->object);
	uint64_t ack = t->k.ack;
	t->k.ack = 0;
	if (!s)
		return;
	s->peer_bytes = w->peer;
	s->congestion_bytes = w->congestion;
	if (ack)
		rules_kernel_tcp_hear(m, t, s, w->object, ack, r->time_ns);
	else
		set_credits(m, t, s, w->object, r->time_ns);
}

/* A segment has come. Which socket's it is, its own record says, or the next one. */
void model_tcp_hears(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_packet_queue *p = &r->u.packet_queue;
	struct tcp *s = p->ack && p->socket ? tcp_of(m, p->socket) : NULL;
	t->k.ack = s ? 0 : p->ack;
	if (s)
		rules_kernel_tcp_hear(m, t, s, p->socket, p->ack, r->time_ns);
}

/* ---- the sender ------------------------------------------------------------------------------ */

static uint32_t rules_kernel_tcp_sender_of(struct model *m, struct tcp *s, uint32_t object)
{
	if (s->sender == NONE) {
		s->sender = model_make_actor(m, NONE, NONE);
		if (m->status != BASE_OK)
			return NONE;
		m->made.actor[s->sender].kind = MODEL_ACTOR_device;
		m->made.actor[s->sender].object = object;
	}
	return s->sender;
}

/* A packet of the program's bytes: sent by the socket's sender (the actor) when what made it go was
 * an acknowledgement; NONE: by the running thread. */
uint32_t model_tcp_sends(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_packet_queue *p = &r->u.packet_queue;
	struct tcp *s = p->payload && p->socket ? tcp_of(m, p->socket) : NULL;
	uint64_t end = p->seq + p->payload;
	if (!s)
		return NONE;
	int64_t fresh = s->known ? (int32_t)(uint32_t)(end - s->sent) : (int64_t)p->payload;
	if (fresh <= 0 || fresh > INT32_MAX) /* once more */
		return NONE;
	s->known = true;
	s->sent = end;
	uint32_t window = window_of(m, s, p->socket), below = below_of(m, s, p->socket),
		 unsent = rules_kernel_tcp_part_of(
			 m, &s->unsent, p->socket, "unsent bytes of ", false);
	if (!model_is_context(t)) {
		s->sent_early += (uint64_t)fresh;
		if (t->mode == MODE_RUNNING)
			take_some(m, model_acting(t), r->time_ns, window, (uint64_t)fresh,
				t->graph_state, 0);
		return NONE;
	}
	const struct need {
		uint32_t queue;
		uint64_t n;
	} need[] = {
		{unsent, (uint64_t)fresh}, {window, (uint64_t)fresh},
		{below, INT64_MAX}, /* how many it may have changes: what left last let it go */
	};
	enum { NEEDS = sizeof need / sizeof *need };
	uint32_t last = NEEDS, by = s->sender;
	for (uint32_t i = 0; i < NEEDS; i++)
		if (graph_queue_units(m->graph, need[i].queue))
			last = i;
	if (by == NONE && last != NEEDS && (last || !model_is_credited(t)))
		by = rules_kernel_tcp_sender_of(m, s, p->socket);
	if (by == NONE)
		return NONE;
	for (uint32_t i = 0; i <= last && i < NEEDS; i++)
		take_some(m, by, r->time_ns, need[i].queue, need[i].n, model_idle_state(m),
			i < last ? GRAPH_MORE : 0);
	if (last == NEEDS) /* for a reason that was not seen */
		model_verb_of(m, by, GRAPH_VERB_state, r->time_ns, 0, 0, model_idle_state(m),
			GRAPH_EXPLAINED);
	return by;
}

/* So many bytes have left the queueing discipline below the socket. */
void model_tcp_left(struct model *m, uint32_t actor, uint32_t state, uint32_t object, uint64_t n,
	uint64_t time_ns)
{
	struct tcp *s = n && object ? tcp_of(m, object) : NULL;
	if (s && s->known && n <= INT64_MAX)
		model_verb_of(m, actor, GRAPH_VERB_enqueue, time_ns, below_of(m, s, object),
			(int64_t)n, state, 0);
}

/* It waits for what it lacks. */
void model_tcp_rests(struct model *m, uint32_t actor, uint32_t object, uint64_t time_ns)
{
	struct tcp *s = object ? tcp_of(m, object) : NULL;
	if (!s || actor != s->sender || actor == NONE)
		return;
	bool has_bytes = graph_queue_units(m->graph, s->unsent) != 0;
	uint32_t class_ix = model_class_of(m, object, 0);
	model_verb_of(m, actor, GRAPH_VERB_wait_empty, time_ns, has_bytes ? s->window : s->unsent,
		1, model_wait_state(m, class_ix, 0, has_bytes), 0);
}

/* ---- the program ----------------------------------------------------------------------------- */

void model_rule_socket_send(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_socket_send *d = &r->u.socket_send;
	struct object *o = model_kernel_object(m, d->object, TRACE_OBJECT_socket);
	struct tcp *s = o ? o->tcp : NULL; /* none: it never sent a TCP packet */
	if (!s || !model_is_credited(t) || d->n > INT64_MAX ||
		(!model_is_context(t) && t->mode != MODE_RUNNING))
		return;
	uint64_t early = s->sent_early < d->n ? s->sent_early : d->n;
	s->sent_early = 0;
	if (s->room != NONE)
		take_some(m, model_acting(t), r->time_ns, s->room, d->n, model_busy_state(t), 0);
	if (d->n > early)
		model_verb_of(m, model_acting(t), GRAPH_VERB_enqueue, r->time_ns,
			rules_kernel_tcp_part_of(
				m, &s->unsent, d->object, "unsent bytes of ", false),
			(int64_t)(d->n - early), model_busy_state(t), 0);
}

/* A program that is about to sleep in a call that writes to it finds no room: from now on room is
 * counted. NONE: it is no such socket. */
uint32_t model_tcp_room(struct model *m, struct thread *t, uint32_t object, uint64_t time_ns)
{
	struct object *o = object && object < m->nr_objects ? &m->object[object] : NULL;
	struct tcp *s = o ? o->tcp : NULL;
	if (!s || !s->known)
		return NONE;
	s->room_bytes = 0;
	uint32_t room = rules_kernel_tcp_part_of(m, &s->room, object, "send buffer of ", true);
	if (graph_queue_units(m->graph, room))
		model_verb(m, t, GRAPH_VERB_resize, time_ns, room, 0, t->graph_state, 0);
	return room;
}

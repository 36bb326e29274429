/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connections.c - one critical path per connection (seed 000 sections 4.3, 5.1.5).
 *
 * To the graph, an actor that serves several connections is several actors: (actor, connection).
 * Only one of them acts at a time; the others are parked in "serving other connections". Identity
 * flows with the units of a queue (their tag) and with links; a pool's tokens and an anonymous
 * queue's units carry none, and units of nobody leave the taker with the connection that it served.
 * So no path passes through work that was done for another connection, and the time that a shared
 * actor let a connection wait is that connection's: from available to taken, on the queue's
 * latency.
 */
#include "model/model_private.h"

static void connections_keep(struct model *m, enum base_status s)
{
	if (s != BASE_OK && m->status == BASE_OK)
		m->status = base_fail(m->err, s, "out of memory for connections");
}

/* Number 0: all those that are not followed (not asked for, or too many), together. */
enum { OTHERS };

static uint32_t add_followed(struct model *m, struct followed f)
{
	enum base_status s = base_grow(&m->follow.followed, &m->follow.followed_capacity,
		m->follow.nr_followed + 1, sizeof *m->follow.followed);

	connections_keep(m, s);
	if (s != BASE_OK)
		return NONE;
	m->follow.followed[m->follow.nr_followed] = f;
	return (uint32_t)m->follow.nr_followed++;
}

static uint32_t followed_of(struct model *m, uint64_t id, uint32_t home, uint64_t time_ns)
{
	uint64_t number;
	uint32_t added;

	if (!id)
		return NONE;
	if (!m->follow.nr_followed)
		add_followed(m, (struct followed){.home = NONE});
	if (m->opts->connection && id != m->opts->connection)
		return OTHERS;
	if (base_map_get(&m->follow.connection_ids, 0, id, &number))
		return (uint32_t)number;
	if (m->follow.nr_followed > MODEL_CONNECTIONS_MAX) {
		m->follow.nr_not_followed++;
		return OTHERS;
	}
	added = add_followed(m, (struct followed){
					.pub = {.id = id,
						.end = (uint32_t)m->follow.nr_followed - 1,
						.begin_ns = time_ns},
					.home = home,
					.at = home,
				});
	if (added != NONE)
		connections_keep(m, base_map_put(&m->follow.connection_ids, 0, id, added));
	return added;
}

static void note_served(struct model *m, uint32_t base, uint32_t connection)
{
	struct actor_info *a = &m->made.actor[base];
	size_t i = a->nr_served;
	enum base_status s =
		base_grow(&a->served, &a->served_capacity, a->nr_served + 1, sizeof *a->served);

	connections_keep(m, s);
	if (s != BASE_OK || connection == OTHERS)
		return;
	for (; i && a->served[i - 1] > connection - 1; i--)
		a->served[i] = a->served[i - 1];
	a->served[i] = connection - 1;
	a->nr_served++;
	m->follow.followed[connection].pub.nr_actors++;
}

/* The graph's actor for (base, connection). */
static uint32_t speaker_of(struct model *m, uint32_t base, uint32_t connection)
{
	uint64_t id;

	if (base_map_get(&m->follow.speakers, base, connection, &id))
		return (uint32_t)id;
	id = model_make_actor(m, NONE, NONE);
	if (m->status != BASE_OK)
		return base;
	const struct actor_info *b = &m->made.actor[base];
	struct actor_info *a = &m->made.actor[id];
	a->role = b->role;
	a->thread = b->thread;
	a->number = b->number;
	a->actor_def = b->actor_def;
	a->connection = connection + 1;
	a->pub.base = base;
	note_served(m, base, connection);
	connections_keep(m, base_map_put(&m->follow.speakers, base, connection, id));
	return (uint32_t)id;
}

/* Whoever it was is now busy elsewhere. */
static void connections_park(struct model *m, uint32_t speaker, uint64_t time_ns)
{
	struct graph_verb v = {
		.time_ns = time_ns,
		.actor = speaker,
		.state = model_make_state(m, MODEL_CAUSE_elsewhere, NONE, NONE, 0, 0),
		.flags = GRAPH_EXPLAINED,
	};
	m->made.actor[speaker].last_ns = time_ns;
	if (m->status == BASE_OK)
		m->status = graph_apply(m->graph, GRAPH_VERB_wait, &v, 0, m->err);
}

static void turn_to(struct model *m, uint32_t base, uint32_t connection, uint64_t time_ns)
{
	struct actor_info *b = &m->made.actor[base];
	uint32_t before = b->serves ? b->speaks_as : base, now = speaker_of(m, base, connection);

	if (m->status != BASE_OK)
		return;
	connections_park(m, before, time_ns);
	b = &m->made.actor[base];
	b->serves = connection + 1;
	b->speaks_as = now;
}

static bool carries_identity(const struct model *m, uint32_t queue)
{
	return queue < m->made.nr_queues && !m->made.queue[queue].anonymous;
}

void model_speak(struct model *m, enum graph_verb_kind kind, struct graph_verb *v, uint32_t *from)
{
	uint32_t base = v->actor, connection = 0;

	if (kind == GRAPH_VERB_link) {
		const struct actor_info *f = &m->made.actor[*from];
		connection = f->serves;
		if (f->serves)
			*from = f->speaks_as;
	} else if ((kind == GRAPH_VERB_dequeue || kind == GRAPH_VERB_peek) &&
		   !(v->flags & GRAPH_BACK) && carries_identity(m, v->queue)) {
		connection = graph_queue_tag(m->graph, v);
	}
	if (connection && connection != m->made.actor[base].serves)
		turn_to(m, base, connection - 1, v->time_ns);
	struct actor_info *b = &m->made.actor[base];
	v->tag = b->serves;
	if (!b->serves)
		return;
	v->actor = b->speaks_as;
	m->made.actor[b->speaks_as].last_ns = v->time_ns;
	struct followed *c = &m->follow.followed[b->serves - 1];
	if (c->at != base) {
		c->came_home = base == c->home;
		c->at = base;
	}
	if (!c->started && !m->opts->start && b->serves - 1 != OTHERS) {
		c->started = true;
		v->flags |= GRAPH_START;
	}
}

void model_serve(struct model *m, uint32_t actor, uint64_t id, uint64_t time_ns, uint32_t state)
{
	struct graph_verb v = {
		.time_ns = time_ns, .actor = actor, .state = state, .flags = GRAPH_EXPLAINED};
	uint32_t connection = followed_of(m, id, actor, time_ns), from = 0;
	struct actor_info *a = &m->made.actor[actor];

	if (m->status != BASE_OK || connection + 1 == a->serves) /* NONE + 1 is 0: nobody */
		return;
	if (connection != NONE) {
		turn_to(m, actor, connection, time_ns);
	} else {
		connections_park(m, a->speaks_as, time_ns);
		m->made.actor[actor].serves = 0;
	}
	if (m->status != BASE_OK)
		return;
	model_speak(m, GRAPH_VERB_state, &v, &from);
	m->status = graph_apply(m->graph, GRAPH_VERB_state, &v, 0, m->err);
}

/* Where the connection began, if control came back there last; else where it was seen last. */
static uint32_t last_speaker(const struct model *m, uint32_t connection)
{
	const struct followed *c = &m->follow.followed[connection];
	uint32_t best = NONE;
	uint64_t home;

	for (uint32_t i = 0; i < m->made.nr_actors; i++) {
		if (m->made.actor[i].connection == connection + 1 &&
			(best == NONE || m->made.actor[i].last_ns > m->made.actor[best].last_ns))
			best = i;
	}
	if (c->came_home && base_map_get(&m->follow.speakers, c->home, connection, &home))
		return (uint32_t)home;
	return best;
}

void model_end_connections(struct model *m)
{
	for (uint32_t i = OTHERS + 1; i < m->follow.nr_followed && m->status == BASE_OK; i++) {
		uint32_t actor = last_speaker(m, i);

		if (actor != NONE)
			m->status = graph_end(m->graph, m->follow.followed[i].pub.end, actor,
				m->made.actor[actor].last_ns, m->err);
	}
}

/* ---- queries --------------------------------------------------------------------------------- */

uint32_t model_nr_connections(const struct model *m)
{
	return m->follow.nr_followed ? (uint32_t)m->follow.nr_followed - 1 : 0;
}

const struct model_connection *model_connection(const struct model *m, uint32_t i)
{
	BASE_ASSERT(i < model_nr_connections(m));
	return &m->follow.followed[i + 1].pub;
}

uint64_t model_nr_connections_not_followed(const struct model *m)
{
	return m->follow.nr_not_followed;
}

const uint32_t *model_actor_connections(const struct model *m, uint32_t actor, size_t *ret_nr)
{
	*ret_nr = actor < m->made.nr_actors ? m->made.actor[actor].nr_served : 0;
	return *ret_nr ? m->made.actor[actor].served : NULL;
}

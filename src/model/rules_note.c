/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_note.c - annotations (include/longpole/annotate.h): state machines, states, queues, links,
 * connections. Seed 000 section 4.5.2. A machine is an actor of its own; while it is on top of a
 * thread's stack it acts for the thread. LONGPOLE_LINK carries control in and, at the end, back;
 * without it a machine has only the path that its queues give it.
 */
#include "model/model_private.h"

#define LONGPOLE_DISABLE /* for the flags only */
#include "longpole/annotate.h"

static uint32_t annotated_state(struct model *m, uint32_t actor_def, uint32_t state_def)
{
	uint32_t site = state_def < m->defs->nr_states ? m->defs->states[state_def].site : 0;
	uint32_t name = actor_def < m->defs->nr_actors ? m->defs->actors[actor_def].name : 0;
	uint32_t state_name = state_def < m->defs->nr_states ? m->defs->states[state_def].name : 0;
	return model_make_state(m,
		actor_def ? MODEL_CAUSE_annotated_machine : MODEL_CAUSE_annotated, name, NONE, site,
		state_name);
}

/* An end names its machine only: the instance is that of the begin. */
static bool same_machine(const struct trace_defs *d, uint32_t a, uint32_t b)
{
	return a == b ||
	       (a < d->nr_actors && b < d->nr_actors && d->actors[a].name == d->actors[b].name);
}

static struct standing *standing_of(struct model *m, uint32_t actor_def)
{
	if (!actor_def || actor_def >= m->annotated.nr_standings) {
		model_count(m, TRACE_DIAG_ids_unknown);
		return NULL;
	}
	return &m->annotated.standing[actor_def];
}

/* Where the machine stops being spoken for. */
static void keep_standing(struct model *m, struct thread *t)
{
	const struct machine *k = &t->machine[0];
	struct standing *st = standing_of(m, k->actor_def);
	if (st)
		*st = (struct standing){.known = true,
			.mode = t->mode,
			.state = k->state,
			.graph_state = t->graph_state};
}

/* A link wakes a machine that its stream will speak for later: it goes on where it was, and came
 * from the link, not from the stream. */
static uint32_t enter_standing(struct model *m, uint32_t actor_def, uint32_t first_state)
{
	struct standing *st = standing_of(m, actor_def);
	if (!st)
		return first_state;
	if (!st->known)
		*st = (struct standing){.known = true, .state = first_state};
	st->graph_state = st->state;
	st->mode = MODE_RUNNING;
	return st->state;
}

static struct machine *rules_note_top(struct thread *t)
{
	return t->nr_machines ? &t->machine[t->nr_machines - 1] : NULL;
}

static uint32_t machine_actor(struct model *m, uint32_t actor_def)
{
	uint64_t id;
	if (base_map_get(&m->annotated.machines, 0, actor_def, &id))
		return (uint32_t)id;
	id = model_make_actor(m, NONE, NONE);
	if (m->status == BASE_OK)
		m->made.actor[id].actor_def = actor_def;
	enum base_status s = base_map_put(&m->annotated.machines, 0, actor_def, id);
	if (s != BASE_OK)
		m->status = base_fail(m->err, s, "out of memory for annotated machines");
	return (uint32_t)id;
}

static void misnested(
	struct model *m, const struct thread *t, uint64_t time_ns, uint32_t actor_def, bool begins)
{
	model_check_nesting(m, t, time_ns, actor_def, begins);
	model_count(m, TRACE_DIAG_note_misnested);
}

static bool room_for_machine(struct model *m, struct thread *t)
{
	return model_grow(
		m, &t->machine, &t->machine_capacity, t->nr_machines + 1, sizeof *t->machine);
}

void model_rule_note_begin(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_note_begin *b = &r->u.note_begin;
	if (t->nr_machines == MODEL_MACHINES_MAX) {
		misnested(m, t, r->time_ns, b->actor, true);
		return;
	}
	if (!room_for_machine(m, t))
		return;
	uint32_t from = model_acting(t), actor = machine_actor(m, b->actor);
	uint32_t state = annotated_state(m, b->actor, 0);
	/* a thread itself is no annotated machine: control always passes from it to the first one,
	 * and back */
	bool first = !t->nr_machines;
	bool link = first || (b->flags & LONGPOLE_LINK) || t->link_next;
	bool back = first || (b->flags & LONGPOLE_LINK) || (t->link_next && t->link_back);
	t->link_next = false;
	/* the caller's clock is closed here; while the machine runs it is elsewhere */
	model_verb_of(m, from, GRAPH_VERB_state, r->time_ns, 0, 0, t->graph_state, 0);
	t->machine[t->nr_machines++] = (struct machine){.actor_def = b->actor,
		.actor = actor,
		.state = state,
		.linked = back,
		.begin_ns = r->time_ns,
		.below_state = t->graph_state};
	if (link)
		model_link(m, actor, r->time_ns, state, from);
	else
		model_verb_of(m, actor, GRAPH_VERB_state, r->time_ns, 0, 0, state, 0);
	t->graph_state = state;
	t->mode = MODE_RUNNING;
}

/* Ends the machine on top; the one below, or the thread, goes on. */
static void rules_note_end_machine(struct model *m, struct thread *t, uint64_t time_ns, bool waits)
{
	struct machine ended = t->machine[--t->nr_machines];
	uint32_t actor = model_acting(t), state = model_current_state(t);
	model_away(m, actor, ended.below_state, time_ns - ended.begin_ns);
	/* a thread that spoke for others in turn goes on where the last of them ended */
	bool returns = t->acts && !t->nr_machines;
	if (returns)
		t->acts = false;
	if (ended.linked || returns)
		model_link(m, actor, time_ns, state, ended.actor);
	else
		model_verb_of(m, actor, GRAPH_VERB_state, time_ns, 0, 0, state, 0);
	if (!waits) /* it is nowhere until it begins again */
		model_verb_of(m, ended.actor, GRAPH_VERB_wait, time_ns, 0, 0, model_idle_state(m),
			GRAPH_EXPLAINED);
	t->graph_state = state;
	t->mode = MODE_RUNNING;
}

void model_rule_note_end(struct model *m, struct thread *t, const struct trace_record *r)
{
	struct machine *k = rules_note_top(t);
	if (!k || (r->u.note_end.actor &&
			  !same_machine(m->defs, k->actor_def, r->u.note_end.actor))) {
		misnested(m, t, r->time_ns, r->u.note_end.actor, false);
		return;
	}
	model_check_end(m, t, r->time_ns);
	rules_note_end_machine(m, t, r->time_ns, false);
}

/* A thread of a language's runtime that has one task: whatever it calls meanwhile. */
static void keep_state(struct model *m, struct thread *t, const struct trace_record *r)
{
	const uint32_t named = r->u.note_state.state;
	t->note.kept_state = named ? annotated_state(m, 0, named) + 1 : 0;
	t->run_state = model_run_state(m, t, 0);
	model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t), 0);
}

void model_rule_note_state(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (r->u.note_state.flags & TRACE_NOTE_KEPT) {
		keep_state(m, t, r);
		return;
	}
	struct machine *k = rules_note_top(t);
	model_check_state(m, t, r->time_ns, r->u.note_state.state, r->u.note_state.flags);
	uint32_t state = annotated_state(m, k ? k->actor_def : 0, r->u.note_state.state);
	if (k)
		k->state = state;
	else
		t->run_state = state; /* a plain thread may name its states too */
	model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, state, 0);
}

/* What an annotated queue is, its first verb's flags say. */
static enum graph_discipline discipline_of(uint64_t flags)
{
	if (flags & LONGPOLE_POOL)
		return GRAPH_POOL;
	if (flags & LONGPOLE_PRIORITY)
		return GRAPH_PRIORITY;
	return flags & LONGPOLE_LIFO ? GRAPH_LIFO : GRAPH_FIFO;
}

static void rules_note_note_queue(struct model *m, struct thread *t, uint64_t time_ns,
	const struct note_queue *q, enum graph_verb_kind verb, uint32_t graph_flags)
{
	struct object *o = model_object(m, q->object);
	if (!o)
		return;
	if (o->queue == NONE)
		o->queue = model_make_queue(m, 0, q->object, TRACE_OBJECT_queue,
			model_class_of(m, q->object, q->site), discipline_of(q->flags));
	if (q->flags & (LONGPOLE_POOL | LONGPOLE_ANONYMOUS) && o->queue < m->made.nr_queues)
		m->made.queue[o->queue].anonymous = true;
	model_check_queue(m, t, time_ns, q, verb);
	if (model_announces_again(t, verb, o->queue))
		return;
	uint32_t state = model_current_state(t);
	int64_t n = q->n > INT64_MAX ? GRAPH_ALL : (int64_t)q->n;
	if (q->flags & LONGPOLE_RESET)
		model_verb(m, t, GRAPH_VERB_resize, time_ns, o->queue, 0, state, 0);
	/* what holds units that nobody has put there one by one: credits */
	if (verb == GRAPH_VERB_resize && q->n && o->queue < m->made.nr_queues &&
		!m->made.queue[o->queue].pub.capacity)
		m->made.queue[o->queue].pub.tokens = true;
	bool waits = verb == GRAPH_VERB_wait_empty || verb == GRAPH_VERB_wait_full;
	if (waits) /* the annotated state goes on, waiting */
		state = model_wait_state(m, model_class_of(m, q->object, q->site), q->site,
			verb == GRAPH_VERB_wait_full);
	if (m->status != BASE_OK)
		return;
	uint64_t units = graph_queue_units(m->graph, o->queue);
	uint64_t underflows = graph_queue_stats(m->graph, o->queue)->underflows;
	m->item_key = q->key;
	if (waits && !(q->flags & LONGPOLE_END))
		model_announce(m, t, verb, time_ns, o->queue, n, state);
	else if (t->announced.is_on)
		model_end_announced(m, t, verb, time_ns, o->queue, n, state, graph_flags);
	else
		model_verb(m, t, verb, time_ns, o->queue, n, state, graph_flags);
	m->item_key = 0;
	model_check_taken(m, t, time_ns, q, verb, units, underflows);
	if ((q->flags & LONGPOLE_END) && t->nr_machines)
		rules_note_end_machine(m, t, time_ns, waits);
	else if (q->flags & LONGPOLE_END)
		misnested(m, t, time_ns, 0, false);
}

#define NOTE_RULE(kind, verb)                                                                      \
	void model_rule_note_##kind(                                                               \
		struct model *m, struct thread *t, const struct trace_record *r)                   \
	{                                                                                          \
		const struct trace_note_enqueue *q = &r->u.note_enqueue; /* all of one shape */    \
		rules_note_note_queue(m, t, r->time_ns,                                            \
			&(struct note_queue){.object = q->object,                                  \
				.site = q->site,                                                   \
				.n = q->n,                                                         \
				.flags = q->flags},                                                \
			verb, 0);                                                                  \
	}
NOTE_RULE(enqueue, GRAPH_VERB_enqueue)
NOTE_RULE(dequeue, GRAPH_VERB_dequeue)
NOTE_RULE(peek, GRAPH_VERB_peek)
NOTE_RULE(reserve, GRAPH_VERB_reserve)
NOTE_RULE(resize, GRAPH_VERB_resize)
NOTE_RULE(wait_empty, GRAPH_VERB_wait_empty)
NOTE_RULE(wait_full, GRAPH_VERB_wait_full)

static void rules_note_note_item(struct model *m, struct thread *t, const struct trace_record *r,
	enum graph_verb_kind verb, uint32_t graph_flags)
{
	const struct trace_note_put_item *i = &r->u.note_put_item; /* both of one shape */
	rules_note_note_queue(m, t, r->time_ns,
		&(struct note_queue){.object = i->object,
			.site = i->site,
			.n = i->n,
			.key = i->key,
			.flags = i->flags},
		verb, graph_flags);
}

void model_rule_note_put_item(struct model *m, struct thread *t, const struct trace_record *r)
{
	rules_note_note_item(m, t, r, GRAPH_VERB_enqueue, 0);
}

void model_rule_note_take_item(struct model *m, struct thread *t, const struct trace_record *r)
{
	rules_note_note_item(m, t, r, GRAPH_VERB_dequeue, GRAPH_KEYED);
}

void model_rule_note_assert(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_note_assert *a = &r->u.note_assert;
	struct object *o = model_object(m, a->object);
	uint64_t units = o && o->queue != NONE ? graph_queue_units(m->graph, o->queue) : 0;
	if (!o)
		return;
	model_check_assert(m, t, r->time_ns,
		&(struct note_queue){.object = a->object, .site = a->site, .n = a->n}, units);
	if (units != a->n)
		model_count(m, TRACE_DIAG_note_assert_failed);
}

void model_rule_note_link(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_note_link *l = &r->u.note_link;
	if (!l->actor) { /* to whichever begins next here, and back when it ends */
		t->link_next = t->link_back = true;
		return;
	}
	uint32_t from = model_acting(t), target = machine_actor(m, l->actor);
	uint32_t state = annotated_state(m, l->actor, 0);
	if (t->acts)
		state = enter_standing(m, l->actor, state);
	model_verb_of(m, from, GRAPH_VERB_state, r->time_ns, 0, 0, t->graph_state, 0);
	model_link(m, target, r->time_ns, state, from);
	if ((l->flags & LONGPOLE_END) && t->nr_machines)
		rules_note_end_machine(m, t, r->time_ns, false);
}

void model_rule_note_identify(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (m->follow.by_connection)
		model_serve(m, model_acting(t), r->u.note_identify.connection, r->time_ns,
			t->graph_state);
	model_check_identify(m, t, r->time_ns, r->u.note_identify.connection);
}

/*
 * One stream that speaks for many machines in turn: a simulator, fibers, a foreign trace. The
 * machine goes on in the state (or the wait) that it was in. The thread itself is no actor then.
 */
void model_rule_note_act(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t def = r->u.note_act.actor;
	if (t->nr_machines == 1 && t->machine[0].actor_def == def)
		return;
	struct standing *st = standing_of(m, def);
	if (!st || !room_for_machine(m, t))
		return;
	if (t->nr_machines)
		keep_standing(m, t);
	else
		model_verb_of(m, t->actor, GRAPH_VERB_wait, r->time_ns, 0, 0, model_idle_state(m),
			GRAPH_EXPLAINED);
	t->nr_machines = 1;
	t->acts = true;
	bool first = !st->known;
	if (first) {
		*st = (struct standing){.known = true, .state = annotated_state(m, def, 0)};
		st->graph_state = st->state;
	}
	t->machine[0] = (struct machine){.actor_def = def,
		.actor = machine_actor(m, def),
		.state = st->state,
		.begin_ns = r->time_ns,
		.below_state = model_idle_state(m)};
	t->mode = st->mode;
	t->graph_state = st->graph_state;
	if (first)
		model_link(m, t->machine[0].actor, r->time_ns, st->state, t->actor);
}

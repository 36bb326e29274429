/* SPDX-License-Identifier: Apache-2.0 */
/* made.c - what all rules stand on: classes, states, actors and queues are made when they are first
 * needed, and found again by their keys. */
#include "model/model_private.h"

#include <string.h>

/* ---- failures: the first one ends the run; rules need not check ------------------------------ */

void model_keep(struct model *m, enum base_status s)
{
	if (BASE_UNLIKELY(s != BASE_OK) && m->status == BASE_OK) {
		m->status = s;
		m->looks_closer = true;
	}
}

void model_count(struct model *m, enum trace_diag d)
{
	m->seen.health.count[d]++;
}

bool model_grow(struct model *m, void *data, size_t *capacity, size_t need, size_t elem_size_bytes)
{
	if (need <= *capacity)
		return true;
	enum base_status s = base_grow(data, capacity, need, elem_size_bytes);
	if (s != BASE_OK)
		model_keep(m, base_fail(m->err, s, "out of memory for the model's tables"));
	return s == BASE_OK;
}

void model_put(struct model *m, struct base_map *map, uint64_t hi, uint64_t lo, uint64_t value)
{
	enum base_status s = base_map_put(map, hi, lo, value);
	if (s != BASE_OK)
		model_keep(m, base_fail(m->err, s, "out of memory for the model's maps"));
}

/* ---- roles, classes, states, actors, queues -------------------------------------------------- */

uint32_t model_class_of(struct model *m, uint32_t object, uint32_t site)
{
	struct object *o = model_object(m, object);
	if (o && o->class_ix)
		return o->class_ix - 1;
	const struct trace_object *def =
		object < m->defs->nr_objects ? &m->defs->objects[object] : NULL;
	uint32_t type = def ? (uint32_t)def->type : 0;
	uint32_t name = def ? def->name : 0;
	uint64_t hi = (uint64_t)type << 32 | (name ? 1u : 0u);
	uint64_t lo = name ? name : site;
	const char *text = NULL;
	if (m->is_system && def && !site) {
		model_kernel_class(m, object, &hi, &lo, &text);
	} else if (type == TRACE_OBJECT_socket && model_has_name(m, name)) {
		model_service_class(m, object, &hi, &lo, &text);
	} else if (def && def->pair) { /* both directions of a connection are one class */
		hi = (uint64_t)type << 32 | 2u;
		lo = def->pair;
	} else if (!name && !site && type == TRACE_OBJECT_pipe &&
		   m->naming.nr_named_classes < MODEL_NAMED_CLASSES_MAX) {
		hi = (uint64_t)type << 32 | 3u;
		lo = object;
		m->naming.nr_named_classes++;
	}
	uint64_t ix;
	if (!base_map_get(&m->made.classes, hi, lo, &ix)) {
		if (!model_grow(m, &m->made.class_, &m->made.class_capacity, m->made.nr_classes + 1,
			    sizeof *m->made.class_))
			return 0;
		ix = m->made.nr_classes++;
		m->made.class_[ix] = (struct lock_class){
			.type = type, .name = name, .site = site, .object = object, .text = text};
		model_put(m, &m->made.classes, hi, lo, ix);
	}
	if (o)
		o->class_ix = (uint32_t)ix + 1;
	return (uint32_t)ix;
}

void model_note_user(
	struct model *m, uint32_t class_ix, const struct thread *t, bool reads, uint32_t site)
{
	struct class_users *u =
		class_ix < m->made.nr_classes ? &m->made.class_[class_ix].users : NULL;
	if (!u)
		return;
	unsigned i = reads;
	if (m->made.class_[class_ix].type == TRACE_OBJECT_socket)
		i = u->role[0] && u->role[0] != t->role + 1;
	if (!u->role[i])
		u->site[i] = site;
	if (!u->role[i])
		u->role[i] = t->role + 1;
	u->more[i] |= u->role[i] != t->role + 1;
}

/* An interrupt's handler: on the processor of the thread that it interrupts. */
static bool is_handling(const struct model *m, uint32_t role)
{
	return role < m->made.nr_roles && m->made.role[role].context != TRACE_CONTEXT_none;
}

uint32_t model_make_state(struct model *m, enum model_cause cause, uint32_t role, uint32_t class_ix,
	uint32_t site, uint32_t detail)
{
	/* NONE + 1 wraps to 0 on purpose: "does not apply" */
	uint64_t hi = (uint64_t)cause << 56 | (uint64_t)detail << 24 | (role + 1);
	uint64_t lo = (uint64_t)(class_ix + 1) << 32 | site;
	uint64_t id;
	struct recent_state *recent = &m->recent[(lo ^ lo >> 32 ^ hi ^ hi >> 24) % RECENT_STATES];
	if (BASE_LIKELY(recent->hi == hi && recent->lo == lo && recent->known))
		return recent->id;
	if (base_map_get(&m->made.states, hi, lo, &id)) {
		*recent = (struct recent_state){
			.hi = hi, .lo = lo, .id = (uint32_t)id, .known = true};
		return (uint32_t)id;
	}
	if (m->status != BASE_OK) /* ids of the graph and ours no longer agree */
		return 0;
	uint32_t graph_id;
	enum base_status s = graph_add_state(m->graph, &graph_id, m->err);
	model_keep(m, s);
	if (s != BASE_OK || !model_grow(m, &m->made.state, &m->made.state_capacity,
				    m->made.nr_states + 1, sizeof *m->made.state))
		return 0;
	BASE_ASSERT(graph_id == m->made.nr_states);
	enum model_state_kind kind = model_cause_kind(cause);
	uint32_t object = class_ix != NONE && class_ix < m->made.nr_classes
				  ? m->made.class_[class_ix].object
				  : 0;
	m->made.state[m->made.nr_states++] = (struct state_info){
		.pub = {.kind = kind,
			.cause = cause,
			.object = object,
			.site = site,
			.is_recorders = cause == MODEL_CAUSE_start_recorder ||
					(kind != MODEL_STATE_annotated && role < m->made.nr_roles &&
						m->made.role[role].recorder)},
		.role = role,
		.class_ix = class_ix,
		.detail = detail,
	};
	model_put(m, &m->made.states, hi, lo, graph_id);
	if (m->sink && m->sink->state)
		model_keep(
			m, m->sink->state(m->sink->ctx, graph_id,
				   (kind == MODEL_STATE_run && !is_handling(m, role)) ||
					   kind == MODEL_STATE_hold ||
					   kind == MODEL_STATE_annotated || kind == MODEL_STATE_io,
				   m->err));
	return graph_id;
}

uint32_t model_runnable_state(struct model *m)
{
	/* of what is not the whole system, those of ours are followed: this is the rest */
	return model_make_state(m,
		m->is_system || m->seen.tasks ? MODEL_CAUSE_processor
					      : MODEL_CAUSE_processor_others,
		NONE, NONE, 0, 0);
}

uint32_t model_wait_state(struct model *m, uint32_t class_ix, uint32_t site, bool for_space)
{
	enum trace_object_type type =
		class_ix < m->made.nr_classes
			? (enum trace_object_type)m->made.class_[class_ix].type
			: TRACE_OBJECT_none;
	bool messages = model_object_is(type, MODEL_TRAIT_messages),
	     stores = messages || model_object_is(type, MODEL_TRAIT_stores);
	enum model_cause cause = !stores     ? MODEL_CAUSE_wait_object
				 : for_space ? MODEL_CAUSE_wait_space
				 : messages  ? MODEL_CAUSE_wait_message
					     : MODEL_CAUSE_wait_data;
	return model_make_state(m, cause, NONE, class_ix, site, 0);
}

uint32_t model_run_state(struct model *m, struct thread *t, uint32_t site)
{
	if (!BASE_LIKELY(!t->note.kept_state))
		return t->note.kept_state - 1;
	if (BASE_LIKELY(site < t->runs.capacity && t->runs.by_site[site]))
		return t->runs.by_site[site] - 1;
	if (site >= m->defs->nr_sites)
		site = 0;
	uint32_t s = model_make_state(m, MODEL_CAUSE_run, t->role, NONE, site, t->stream);
	if (model_grow(m, &t->runs.by_site, &t->runs.capacity, (size_t)site + 1,
		    sizeof *t->runs.by_site))
		t->runs.by_site[site] = s + 1;
	return s;
}

uint32_t model_idle_state(struct model *m)
{
	return model_make_state(m, MODEL_CAUSE_idle, NONE, NONE, 0, 0);
}

uint32_t model_make_actor(struct model *m, uint32_t role, uint32_t thread)
{
	uint32_t id;
	if (m->status != BASE_OK)
		return 0;
	enum base_status s = graph_add_actor(m->graph, &id, m->err);
	model_keep(m, s);
	if (s != BASE_OK || !model_grow(m, &m->made.actor, &m->made.actor_capacity,
				    m->made.nr_actors + 1, sizeof *m->made.actor))
		return 0;
	BASE_ASSERT(id == m->made.nr_actors);
	uint32_t number = role == NONE ? 0 : ++m->made.role[role].nr_actors;
	m->made.actor[m->made.nr_actors++] = (struct actor_info){.role = role,
		.thread = thread,
		.number = number,
		.actor_def = 0,
		.state = NONE,
		.pub = {.base = id}};
	return id;
}

static enum model_cause handover_cause(enum trace_object_type type, uint32_t latency_class)
{
	if (latency_class == NONE)
		return model_nameless(type)->handover;
	return model_object_is(type, MODEL_TRAIT_carries) ? MODEL_CAUSE_communication
							  : MODEL_CAUSE_handover;
}

static uint32_t make_queue(struct model *m, uint64_t initial, uint32_t object,
	enum trace_object_type type, uint32_t latency_class, enum graph_discipline discipline,
	enum model_queue_part part)
{
	struct graph_queue_options o = {
		.initial = initial,
		.latency_state = type == MODEL_TYPE_PROCESSOR
					 ? model_runnable_state(m)
					 : model_make_state(m, handover_cause(type, latency_class),
						   NONE, latency_class, 0,
						   latency_class == NONE ? (uint32_t)type : 0),
		.discipline = discipline,
		.exchangeable = model_object_is(type, MODEL_TRAIT_exchangeable),
		.processor = type == MODEL_TYPE_PROCESSOR,
		.hands_over = model_object_is(type, MODEL_TRAIT_bytes),
		.handed = model_object_is(type, MODEL_TRAIT_handed),
		.frees_locks = model_object_is(type, MODEL_TRAIT_frees_locks),
		.counts = model_object_is(type, MODEL_TRAIT_counts) &&
			  model_object(m, object)->queue == NONE,
		/* what an rwlock's readers left together: `room` says whether one is in; when an
		 * event loop was last given up: its token says whether somebody has it */
		.informs = (model_object_is(type, MODEL_TRAIT_handed) ||
				   type == TRACE_OBJECT_event_loop) &&
			   part == MODEL_QUEUE_helper && discipline == GRAPH_FIFO,
	};
	uint64_t capacity =
		object && object < m->defs->nr_objects ? m->defs->objects[object].capacity : 0;
	bool limited = model_object_is(type, MODEL_TRAIT_limited);
	if (model_object_is(type, MODEL_TRAIT_sized) ||
		(m->is_system && type == TRACE_OBJECT_pipe)) /* whose writers are seen to wait */
		o.capacity = capacity;
	else if (limited && part == MODEL_QUEUE_whole)
		o.limit = capacity;
	uint32_t id;
	if (m->status != BASE_OK)
		return 0;
	enum base_status s = graph_add_queue(m->graph, &o, &id, m->err);
	model_keep(m, s);
	if (s != BASE_OK || !model_grow(m, &m->made.queue, &m->made.queue_capacity,
				    m->made.nr_queues + 1, sizeof *m->made.queue))
		return 0;
	BASE_ASSERT(id == m->made.nr_queues);
	if (m->sink && m->sink->queue)
		model_keep(m, m->sink->queue(m->sink->ctx, id, &o, m->err));
	m->made.queue[m->made.nr_queues++] = (struct queue_info){
		.pub = {.object = object,
			.type = type > MODEL_TYPE_PUT_OFF ? TRACE_OBJECT_none : type,
			.part = part,
			.capacity = o.capacity,
			.limit = o.limit,
			.tokens = discipline == GRAPH_POOL ||
				  model_object_is(type, MODEL_TRAIT_tokens)},
		.latency_state = o.latency_state,
		.anonymous = !model_object_is(type, MODEL_TRAIT_tagged),
	};
	return id;
}

uint32_t model_make_queue(struct model *m, uint64_t initial, uint32_t object,
	enum trace_object_type type, uint32_t latency_class, enum graph_discipline discipline)
{
	return make_queue(m, initial, object, type, latency_class, discipline, MODEL_QUEUE_whole);
}

uint32_t model_make_part(struct model *m, uint32_t object, enum model_queue_part part,
	enum trace_object_type type, uint32_t latency_class)
{
	return make_queue(m, 0, object, type, latency_class, GRAPH_FIFO, part);
}

struct object *model_object(struct model *m, uint32_t id)
{
	if (BASE_UNLIKELY(!id || id >= m->nr_objects)) {
		model_count(m, TRACE_DIAG_ids_unknown);
		return NULL;
	}
	struct object *o = &m->object[id];
	return BASE_LIKELY(!o->same_as) ? o : &m->object[o->same_as];
}

uint32_t model_queue_of(
	struct model *m, uint32_t object, struct object *o, uint64_t initial, uint32_t site)
{
	if (BASE_UNLIKELY(o->queue == NONE)) {
		enum trace_object_type type = (enum trace_object_type)m->defs->objects[object].type;
		o->queue = model_make_queue(m, initial, object, type,
			model_class_of(m, object, site), model_object_discipline(type));
	}
	return o->queue;
}

uint32_t model_token_queue(
	struct model *m, enum token_kind what, uint64_t who, uint64_t key, bool make)
{
	uint64_t hi = (uint64_t)what << 48 | who, id;
	if (base_map_get(&m->known.tokens, hi, key, &id))
		return (uint32_t)id;
	if (!make)
		return NONE;
	static const enum trace_object_type type[] = {[TOKEN_thread] = MODEL_TYPE_THREAD,
		[TOKEN_fork] = MODEL_TYPE_PROCESS,
		[TOKEN_spawn] = MODEL_TYPE_PROCESS,
		[TOKEN_exec] = MODEL_TYPE_PROCESS,
		[TOKEN_exit] = TRACE_OBJECT_none,
		[TOKEN_last_thread] = TRACE_OBJECT_none,
		[TOKEN_child] = MODEL_TYPE_SIGNAL,
		[TOKEN_signal] = MODEL_TYPE_SIGNAL};
	/* of a process's spawns those that started nothing leave theirs */
	id = model_make_queue(
		m, 0, 0, type[what], NONE, what == TOKEN_spawn ? GRAPH_LIFO : GRAPH_FIFO);
	model_put(m, &m->known.tokens, hi, key, id);
	return (uint32_t)id;
}

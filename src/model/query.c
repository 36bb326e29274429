/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - what a model answers when it has been asked to: nothing here changes it. */
#include "model/model_private.h"

const char *model_state_kind_name(enum model_state_kind k)
{
	static const char *const name[] = {
#define X(n, waits, text) #n,
		MODEL_STATE_KINDS(X)
#undef X
	};
	return k < MODEL_STATE_NR ? name[k] : "?";
}

const char *model_state_kind_text(enum model_state_kind k)
{
	static const char *const text[] = {
#define X(n, waits, t) t,
		MODEL_STATE_KINDS(X)
#undef X
	};
	return k < MODEL_STATE_NR ? text[k] : "?";
}

bool model_state_kind_waits(enum model_state_kind k)
{
	static const bool waits[] = {
#define X(n, w, text) w,
		MODEL_STATE_KINDS(X)
#undef X
	};
	return k < MODEL_STATE_NR && waits[k];
}

uint32_t model_state_argument(const struct model_state *st, enum model_argument_type type)
{
	for (unsigned i = 0; i < st->nr_arguments; i++)
		if (st->argument[i].type == type)
			return st->argument[i].text;
	return 0;
}

const char *model_text(const struct model *m, uint32_t text)
{
	/* (a run without an end keeps none: model_add_state_argument()) */
	return m->naming.texts ? base_strtab_get(m->naming.texts, text) : "";
}

struct graph *model_graph(struct model *m)
{
	return m->graph;
}

double model_state_timed_share(const struct model *m, uint32_t state)
{
	const struct state_info *st = &m->made.state[state];
	if (st->pub.kind == MODEL_STATE_sleep && st->pub.broken_ns)
		return (double)st->pub.broken_ns / (double)st->pub.slept_ns;
	if (st->pub.kind == MODEL_STATE_sleep)
		return m->is_system || st->pub.cause == MODEL_CAUSE_sleep_limit;
	return st->pub.cause == MODEL_CAUSE_ready_nothing;
}

uint64_t model_nr_late_timer_reads(const struct model *m)
{
	return m->timing.nr_late_timer_reads;
}

const struct model_state *model_state(const struct model *m, uint32_t state)
{
	static const struct model_state unknown = {.kind = MODEL_STATE_idle,
		.cause = MODEL_CAUSE_idle,
		.name = "?",
		.what = "?",
		.where = ""};
	return state < m->made.nr_states ? &m->made.state[state].pub : &unknown;
}

const struct model_actor *model_actor(const struct model *m, uint32_t actor)
{
	static const struct model_actor unknown = {.name = "?", .group = "?"};
	return actor < m->made.nr_actors ? &m->made.actor[actor].pub : &unknown;
}

const struct model_queue *model_queue(const struct model *m, uint32_t queue)
{
	static const struct model_queue unknown = {.name = "?"};
	return queue < m->made.nr_queues ? &m->made.queue[queue].pub : &unknown;
}

uint64_t model_queue_size(const struct model *m, uint32_t queue, bool *ret_inferred)
{
	const struct model_queue *q = model_queue(m, queue);
	*ret_inferred = false;
	if (q->capacity || queue >= m->made.nr_queues)
		return q->capacity;
	const struct graph_queue_stats *st = graph_queue_stats(m->graph, queue);
	/* (a pipe whose size was changed later than it was recorded holds more than its limit) */
	if (q->limit && q->limit >= st->max_units)
		return q->limit;
	/* (a wait may be announced where there is room: that one says nothing) */
	*ret_inferred = st->nr_waits_room != 0;
	return st->nr_waits_room ? st->max_units : 0;
}

const struct model_function_share *model_functions(
	const struct model *m, uint32_t state, size_t *ret_nr)
{
	const struct function_list *l = model_function_list(m, state);
	*ret_nr = l ? l->nr : 0;
	return *ret_nr ? l->function : NULL;
}

uint64_t model_nr_records(const struct model *m)
{
	return m->seen.nr_records;
}

uint64_t model_last_ns(const struct model *m)
{
	return m->seen.last_ns;
}

uint32_t model_stream_actor(const struct model *m, uint32_t stream)
{
	return stream < m->nr_threads && m->thread[stream].actor < m->made.nr_actors
		       ? m->thread[stream].actor
		       : NONE;
}

uint32_t model_end_actor(const struct model *m)
{
	return m->part.path_end;
}

const struct trace_health *model_health(const struct model *m)
{
	return &m->seen.health;
}

uint64_t model_actor_group(const struct model *m, uint32_t actor)
{
	uint32_t role = actor < m->made.nr_actors ? m->made.actor[actor].role : NONE;
	return role != NONE ? role : (uint64_t)NONE + actor;
}

uint64_t model_actor_born_ns(const struct model *m, uint32_t actor)
{
	uint32_t stream = model_actor_stream(m, actor);
	return stream && stream < m->nr_threads ? m->thread[stream].life.born_ns : 0;
}

uint32_t model_actor_stream(const struct model *m, uint32_t actor)
{
	bool known = actor < m->made.nr_actors && m->made.actor[actor].role != NONE;
	return known ? m->made.actor[actor].thread : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - do annotations make sense? Looks at each before its rule acts (seed 000, section 5.1.3,
 * a to d; section 4.4) and tells findings.c. Changes nothing that the graph sees.
 */
#include "model/model_private.h"

#define LONGPOLE_DISABLE /* for the flags only */
#include "longpole/annotate.h"

/*
 * A program looks at its queue, then says that it waits: what another thread did in between it
 * cannot have seen (the seed's footnote: in flight). What one stream tells of several machines (a
 * simulator, fibers) is in order, however short its times are.
 */
enum { IN_FLIGHT_NS = 100 * 1000 };

static bool is_in_flight(const struct flight *f, const struct thread *t, uint64_t time_ns)
{
	return f->changed_ns && f->changed_by != t->stream &&
	       time_ns - f->changed_ns <= IN_FLIGHT_NS;
}

static void check_no_memory(struct model *m, enum base_status s)
{
	if (m->status == BASE_OK)
		m->status = base_fail(m->err, s, "out of memory for checks of annotations");
}

/* What is known of the actor; NULL: no memory. */
static struct noting *noting_of(struct model *m, uint32_t actor)
{
	if (actor >= m->annotated.nr_notings) {
		enum base_status s = base_grow(&m->annotated.noting, &m->annotated.noting_capacity,
			(size_t)actor + 1, sizeof *m->annotated.noting);
		if (s != BASE_OK) {
			check_no_memory(m, s);
			return NULL;
		}
		for (; m->annotated.nr_notings <= actor; m->annotated.nr_notings++)
			m->annotated.noting[m->annotated.nr_notings] = (struct noting){0};
	}
	return &m->annotated.noting[actor];
}

static struct flight *flight_of(struct model *m, uint32_t object)
{
	if (!m->annotated.flight &&
		base_grow(&m->annotated.flight, &m->annotated.flight_capacity,
			(size_t)m->nr_objects + 1, sizeof *m->annotated.flight) != BASE_OK)
		check_no_memory(m, BASE_ERR_NOMEM);
	return m->annotated.flight ? &m->annotated.flight[object] : NULL;
}

static void count_pass(struct model *m, uint32_t site)
{
	if (!m->annotated.passed) {
		m->annotated.passed =
			base_alloc(((size_t)m->defs->nr_sites + 1) * sizeof *m->annotated.passed);
		if (!m->annotated.passed) {
			check_no_memory(m, BASE_ERR_NOMEM);
			return;
		}
		m->annotated.nr_passed = m->defs->nr_sites;
	}
	if (site < m->annotated.nr_passed)
		m->annotated.passed[site]++;
}

static void found_at(struct model *m, const struct thread *t, uint64_t time_ns,
	const struct note_queue *q, enum model_check check, uint64_t a, uint64_t b)
{
	model_found(m, &(struct found){.check = check,
			       .site = q->site,
			       .object = q->object,
			       .actor = model_acting(t),
			       .first_ns = time_ns,
			       .a = a,
			       .b = b});
}

/* ---- a wait that an actor announced, and what became of it ----------------------------------- */

static uint64_t check_units_of(const struct model *m, uint32_t object)
{
	uint32_t queue = m->object[object].queue;
	return queue == NONE ? 0 : graph_queue_units(m->graph, queue);
}

static uint64_t capacity_of(const struct model *m, uint32_t object)
{
	return m->defs->objects[object].capacity;
}

static bool is_satisfied(const struct model *m, const struct noting *k)
{
	uint64_t units = check_units_of(m, k->object), capacity = capacity_of(m, k->object);
	if (k->waits == NOTING_DATA)
		return units >= k->n;
	return capacity ? units <= capacity && capacity - units >= k->n : !units;
}

/* It goes on, and not with what it waited for. */
static void leave_wait(struct model *m, uint32_t actor, uint64_t time_ns)
{
	struct noting *k = noting_of(m, actor);
	if (!k || k->waits == NOTING_NO)
		return;
	if (!k->several)
		model_found(
			m, &(struct found){.check = is_satisfied(m, k) ? MODEL_CHECK_wait_not_taken
								       : MODEL_CHECK_wait_gave_up,
				   .site = k->site,
				   .object = k->object,
				   .actor = actor,
				   .first_ns = time_ns});
	k->waits = NOTING_NO;
}

static void check_begin_wait(struct model *m, const struct thread *t, uint64_t time_ns,
	const struct note_queue *q, enum noting_wait waits)
{
	struct noting *k = noting_of(m, model_acting(t));
	const struct flight *f = flight_of(m, q->object);
	if (!k || !f)
		return;
	bool same = k->waits == waits && k->object == q->object;
	bool other = k->waits != NOTING_NO && !same;
	uint64_t units = check_units_of(m, q->object);
	if (same) {
		found_at(m, t, time_ns, q,
			is_satisfied(m, k) && !is_in_flight(f, t, time_ns)
				? MODEL_CHECK_wait_again_satisfied
				: MODEL_CHECK_wait_twice,
			0, 0);
		return;
	}
	*k = (struct noting){.waits = waits,
		.object = q->object,
		.site = q->site,
		.n = q->n,
		.nr_takes = k->nr_takes,
		.nr_waits = k->nr_waits + 1,
		.take_site = k->take_site,
		.take_ns = k->take_ns,
		.connection = k->connection,
		.several = other};
	if (is_satisfied(m, k) && !is_in_flight(f, t, time_ns))
		found_at(m, t, time_ns, q,
			waits == NOTING_DATA ? MODEL_CHECK_wait_has_units
					     : MODEL_CHECK_wait_has_space,
			q->n, units);
}

/* ---- queue verbs ----------------------------------------------------------------------------- */

static bool check_takes(enum graph_verb_kind verb)
{
	return verb == GRAPH_VERB_dequeue || verb == GRAPH_VERB_peek;
}

void model_check_queue(struct model *m, struct thread *t, uint64_t time_ns,
	const struct note_queue *q, enum graph_verb_kind verb)
{
	struct noting *k = noting_of(m, model_acting(t));
	if (!k)
		return;
	uint64_t units = check_units_of(m, q->object), capacity = capacity_of(m, q->object);
	t->note.site = q->site;
	count_pass(m, q->site);
	k->identified = false;
	if (verb == GRAPH_VERB_wait_empty || verb == GRAPH_VERB_wait_full) {
		check_begin_wait(m, t, time_ns, q,
			verb == GRAPH_VERB_wait_empty ? NOTING_DATA : NOTING_SPACE);
		return;
	}
	bool gets = k->object == q->object &&
		    (k->waits == NOTING_DATA
				    ? check_takes(verb)
				    : verb == GRAPH_VERB_enqueue || verb == GRAPH_VERB_reserve);
	if (gets)
		k->waits = NOTING_NO;
	else if (verb != GRAPH_VERB_resize)
		leave_wait(m, model_acting(t), time_ns);
	if (verb == GRAPH_VERB_enqueue && capacity && q->n <= capacity && units > capacity - q->n)
		found_at(m, t, time_ns, q, MODEL_CHECK_put_full, q->n, units);
	if (verb == GRAPH_VERB_dequeue && !k->nr_takes++) {
		k->take_site = q->site;
		k->take_ns = time_ns;
	}
}

/* The queue itself knows best whether what was taken was there. */
void model_check_taken(struct model *m, const struct thread *t, uint64_t time_ns,
	const struct note_queue *q, enum graph_verb_kind verb, uint64_t units_before,
	uint64_t underflows_before)
{
	uint32_t queue = m->object[q->object].queue;
	struct flight *f = flight_of(m, q->object);
	if (m->status != BASE_OK || queue == NONE || !f)
		return;
	if (graph_queue_units(m->graph, queue) != units_before)
		*f = (struct flight){.changed_ns = time_ns, .changed_by = t->stream};
	if (!check_takes(verb) ||
		graph_queue_stats(m->graph, queue)->underflows == underflows_before)
		return;
	found_at(m, t, time_ns, q,
		verb == GRAPH_VERB_peek ? MODEL_CHECK_peek_empty : MODEL_CHECK_take_empty, q->n,
		units_before);
}

void model_check_assert(struct model *m, struct thread *t, uint64_t time_ns,
	const struct note_queue *q, uint64_t units)
{
	t->note.site = q->site;
	count_pass(m, q->site);
	if (units != q->n)
		found_at(m, t, time_ns, q, MODEL_CHECK_assert_failed, q->n, units);
}

/* ---- machines and states --------------------------------------------------------------------- */

static uint32_t check_name_of(const struct model *m, uint32_t actor_def)
{
	return actor_def < m->defs->nr_actors ? m->defs->actors[actor_def].name : 0;
}

void model_check_nesting(
	struct model *m, const struct thread *t, uint64_t time_ns, uint32_t actor_def, bool begins)
{
	uint32_t top = t->nr_machines ? t->machine[t->nr_machines - 1].actor_def : 0;
	model_found(m, &(struct found){
			       .check = begins           ? MODEL_CHECK_begin_too_deep
					: t->nr_machines ? MODEL_CHECK_end_other
							 : MODEL_CHECK_end_without_begin,
			       .site = t->note.site,
			       .near_by = true,
			       .actor = model_acting(t),
			       .first_ns = time_ns,
			       .first = top ? check_name_of(m, top) : 0,
			       .second = check_name_of(m, actor_def),
		       });
}

void model_check_state(
	struct model *m, struct thread *t, uint64_t time_ns, uint32_t state_def, uint64_t flags)
{
	const struct trace_state *s =
		state_def < m->defs->nr_states ? &m->defs->states[state_def] : NULL;
	struct noting *k = noting_of(m, model_acting(t));
	leave_wait(m, model_acting(t), time_ns);
	if (k)
		k->identified = false;
	if (!s)
		return;
	t->note.site = s->site;
	count_pass(m, s->site);
	if (flags & LONGPOLE_SUSPECT)
		model_found(m, &(struct found){.check = MODEL_CHECK_suspect_state,
				       .site = s->site,
				       .actor = model_acting(t),
				       .first_ns = time_ns,
				       .first = s->name});
}

void model_check_end(struct model *m, const struct thread *t, uint64_t time_ns)
{
	leave_wait(m, model_acting(t), time_ns);
}

void model_check_identify(
	struct model *m, const struct thread *t, uint64_t time_ns, uint64_t connection)
{
	uint32_t actor = model_acting(t);
	struct noting *k = noting_of(m, actor);
	if (!k)
		return;
	bool changes = k->connection && connection && connection != k->connection;
	if (changes && (k->waits != NOTING_NO || k->identified))
		model_found(m, &(struct found){.check = k->waits != NOTING_NO
								? MODEL_CHECK_connection_changed
								: MODEL_CHECK_connection_unused,
				       .site = k->waits != NOTING_NO ? k->site : t->note.site,
				       .near_by = k->waits == NOTING_NO,
				       .object = k->waits != NOTING_NO ? k->object : 0,
				       .actor = actor,
				       .first_ns = time_ns,
				       .a = k->connection,
				       .b = connection});
	k->connection = connection;
	k->identified = true;
}

/* ---- at the end ------------------------------------------------------------------------------ */

/* A machine that takes what others give waits for it now and then. */
void model_check_all(struct model *m)
{
	enum { TAKES_MIN = 3 };
	for (uint32_t i = 0; i < m->annotated.nr_notings && i < m->made.nr_actors; i++) {
		const struct noting *k = &m->annotated.noting[i];
		if (m->made.actor[i].role != NONE || k->nr_waits || k->nr_takes < TAKES_MIN)
			continue;
		model_found(m, &(struct found){.check = MODEL_CHECK_never_waits,
				       .site = k->take_site,
				       .actor = i,
				       .first_ns = k->take_ns,
				       .first = check_name_of(m, m->made.actor[i].actor_def),
				       .a = k->nr_takes});
	}
}

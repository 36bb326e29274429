/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ends.c - what the end of a process does something to: pipes that it has written to or inherited
 * from a thread that closed them, files that it has locked. Found from the process, not among all
 * objects: a recording of many short processes has as many pipes.
 */
#include "model/model_private.h"

#include <stdlib.h>

static uint32_t newest(const struct model *m, enum owned_how how, uint64_t owner)
{
	uint64_t object;
	return base_map_get(&m->known.owners, how, owner, &object) ? (uint32_t)object : 0;
}

static void unlink_owned(struct model *m, uint32_t object, enum owned_how how)
{
	struct owned *own = &m->object[object].owned[how];
	if (!own->owner)
		return;
	if (own->prev)
		m->object[own->prev].owned[how].next = own->next;
	else if (own->next)
		model_put(m, &m->known.owners, how, own->owner, own->next);
	else
		(void)base_map_remove(&m->known.owners, how, own->owner);
	if (own->next)
		m->object[own->next].owned[how].prev = own->prev;
	*own = (struct owned){0};
}

void model_own(
	struct model *m, struct object *o, enum owned_how how, uint64_t owner, uint64_t time_ns)
{
	struct owned *own = &o->owned[how];
	if (o < m->object || o >= m->object + m->nr_objects) { /* a connection's: of no list */
		*own = (struct owned){.owner = owner, .since_ns = time_ns};
		return;
	}
	uint32_t object = (uint32_t)(o - m->object);
	if (own->owner == owner && (!owner || how != OWNED_closed))
		return;
	unlink_owned(m, object, how);
	if (!owner)
		return;
	uint32_t next = newest(m, how, owner);
	*own = (struct owned){.owner = owner, .since_ns = time_ns, .next = next};
	if (next)
		m->object[next].owned[how].prev = object;
	model_put(m, &m->known.owners, how, owner, object);
}

/* ---- finding --------------------------------------------------------------------------------- */

void model_owned_begin(struct model *m)
{
	m->ending.nr = 0;
}

void model_owned_add(struct model *m, enum owned_how how, uint64_t owner, uint64_t since_ns)
{
	struct ending *e = &m->ending;
	for (uint32_t i = newest(m, how, owner); i; i = m->object[i].owned[how].next) {
		if (m->object[i].owned[how].since_ns < since_ns)
			return;
		if (base_grow(&e->object, &e->capacity, e->nr + 1, sizeof *e->object) != BASE_OK) {
			m->status = base_fail(m->err, BASE_ERR_NOMEM, "no memory for pipes");
			return;
		}
		e->object[e->nr++] = i;
	}
}

static int ends_by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

size_t model_owned_sort(struct model *m)
{
	struct ending *e = &m->ending;
	size_t nr = 0;
	if (e->nr > 1)
		qsort(e->object, e->nr, sizeof *e->object, ends_by_number);
	for (size_t i = 0; i < e->nr; i++)
		if (!nr || e->object[nr - 1] != e->object[i])
			e->object[nr++] = e->object[i];
	return e->nr = nr;
}

/* ---- who has what from whom ------------------------------------------------------------------ */

void model_note_birth(struct model *m, const struct thread *t, uint64_t token)
{
	const struct trace_process *p = trace_def_process(m->defs, t->process);
	uint64_t forked_ns;
	if (!base_map_get(&m->known.handles, MODEL_FORKS | p->parent, token, &forked_ns))
		return; /* an exec, or nobody was seen to fork it */
	model_put(m, &m->known.handles, MODEL_BIRTHS | t->process, 0, forked_ns);
	if (token)
		(void)base_map_remove(&m->known.handles, MODEL_FORKS | p->parent, token);
}

/* A child has what was open when it was forked: of what its ancestors have closed that which they
 * closed later. */
void model_owned_add_inherited(struct model *m, const struct thread *t)
{
	enum { IMAGES_MAX = 256 };
	uint32_t image = t->process;
	uint64_t since_ns = 0;
	const struct trace_process *p = trace_def_process(m->defs, image);
	model_owned_add(m, OWNED_closed, model_pid_key(m, t->stream, p->pid), 0);
	for (int i = 1; i < IMAGES_MAX && p->parent; i++) {
		const struct trace_process *parent = trace_def_process(m->defs, p->parent);
		if (parent->pid != p->pid) {
			since_ns = 0;
			(void)base_map_get(&m->known.handles, MODEL_BIRTHS | image, 0, &since_ns);
			model_owned_add(m, OWNED_closed, model_pid_key(m, t->stream, parent->pid),
				since_ns);
		}
		image = p->parent;
		p = parent;
	}
}

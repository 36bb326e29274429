/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_kernel_disk.c - disks. A disk does several requests at once: each of its slots is an actor
 * that is busy from when a request goes to the disk until the disk has done it. What is told so (an
 * interrupt, as a rule) goes on from there; so a thread that waits for the data has waited for the
 * disk, and before that for the thread that asked.
 */
#include "model/model_private.h"

#include <string.h>

enum { SLOTS_MAX = 1024, REQUESTS_MAX = 1 << 16 };

static uint32_t busy_state(struct model *m, uint32_t object, uint64_t op)
{
	return model_make_state(m, MODEL_CAUSE_device_busy, NONE, model_class_of(m, object, 0), 0,
		op < TRACE_DISK_NR ? (uint32_t)op : TRACE_DISK_other);
}

static struct disk *disk_of(struct model *m, uint32_t object)
{
	struct object *o = model_kernel_object(m, object, TRACE_OBJECT_disk);
	if (!o)
		return NULL;
	if (!o->disk)
		o->disk = base_alloc(sizeof *o->disk);
	if (!o->disk)
		m->status = base_fail(m->err, BASE_ERR_NOMEM, "out of memory for a disk");
	return o->disk;
}

/* A slot that does nothing; NONE: all are busy, and there are many. */
static uint32_t rules_kernel_disk_free_slot(struct model *m, struct disk *d, uint32_t object)
{
	enum base_status s;
	for (uint32_t i = 0; i < d->nr_slots; i++)
		if (!d->slot[i].busy)
			return i;
	if (d->nr_slots >= SLOTS_MAX)
		return NONE;
	s = base_grow(&d->slot, &d->slot_capacity, d->nr_slots + 1, sizeof *d->slot);
	if (s != BASE_OK) {
		m->status = base_fail(m->err, s, "out of memory for a disk's requests");
		return NONE;
	}
	uint32_t actor = model_make_actor(m, NONE, NONE);
	if (m->status != BASE_OK)
		return NONE;
	m->made.actor[actor].kind = MODEL_ACTOR_device;
	m->made.actor[actor].object = object;
	m->made.actor[actor].number = d->nr_slots + 1;
	d->slot[d->nr_slots] = (struct disk_slot){.actor = actor};
	return d->nr_slots++;
}

static struct disk_slot *slot_with(struct disk *d, uint64_t key)
{
	for (uint32_t i = 0; i < d->nr_slots; i++)
		if (d->slot[i].busy && d->slot[i].key == key)
			return &d->slot[i];
	return NULL;
}

/* Its request came to nothing, or its end was not seen. */
static void leave_slot(struct model *m, struct disk_slot *s, uint64_t time_ns)
{
	s->busy = false;
	model_verb_of(m, s->actor, GRAPH_VERB_forget, time_ns, 0, 0, model_idle_state(m), 0);
}

void model_rule_disk_queue(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_disk_queue *q = &r->u.disk_queue;
	struct object *o = model_kernel_object(m, q->object, TRACE_OBJECT_disk);
	if (!o || !model_is_credited(t) || !model_may_act(m, t, r->time_ns))
		return;
	uint32_t queue = model_queue_of(m, q->object, o, 0, 0);
	if (graph_queue_units(m->graph, queue) > REQUESTS_MAX)
		model_verb_of(m, model_acting(t), GRAPH_VERB_resize, r->time_ns, queue, 0,
			model_busy_state(t), 0);
	m->item_key = q->key;
	model_verb_of(m, model_acting(t), GRAPH_VERB_enqueue, r->time_ns, queue, 1,
		model_busy_state(t), 0);
	m->item_key = 0;
}

/*
 * A flush is put off and goes to the disk when somebody sends requests there, a worker or the first
 * thread with one of its own. It is the doing of the thread that put it off.
 */
void model_rule_work_queue(struct model *m, struct thread *t, const struct trace_record *r)
{
	const char *function =
		trace_text_of(m->defs, trace_def_symbol(m->defs, r->u.work_queue.site)->function);
	if (!m->is_system || strcmp(function, "blk_mq_requeue_work") != 0 ||
		!model_is_credited(t) || !model_may_act(m, t, r->time_ns))
		return;
	if (!m->kernel.has_put_off)
		m->kernel.put_off = model_make_queue(m, 0, 0, MODEL_TYPE_PUT_OFF, NONE, GRAPH_FIFO);
	if (m->kernel.put_off >= m->made.nr_queues)
		return;
	m->kernel.has_put_off = true;
	if (graph_queue_units(m->graph, m->kernel.put_off))
		model_verb_of(m, model_acting(t), GRAPH_VERB_resize, r->time_ns, m->kernel.put_off,
			0, model_busy_state(t), 0);
	model_verb_of(m, model_acting(t), GRAPH_VERB_enqueue, r->time_ns, m->kernel.put_off, 1,
		model_busy_state(t), 0);
}

static bool was_put_off(const struct model *m, const struct trace_disk_begin *b)
{
	return b->op == TRACE_DISK_flush && m->kernel.has_put_off &&
	       graph_queue_units(m->graph, m->kernel.put_off);
}

void model_rule_disk_begin(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_disk_begin *b = &r->u.disk_begin;
	struct disk *d = disk_of(m, b->object);
	struct disk_slot *s = d ? slot_with(d, b->key) : NULL;
	struct object *o = d ? &m->object[b->object] : NULL;
	uint32_t i;
	if (!d)
		return;
	if (s)
		leave_slot(m, s, r->time_ns);
	i = rules_kernel_disk_free_slot(m, d, b->object);
	if (i == NONE)
		return;
	s = &d->slot[i];
	uint32_t state = busy_state(m, b->object, b->op);
	bool queued = false;
	if (o->queue != NONE)
		queued = graph_queue_has(m->graph, o->queue, b->key);
	if (queued) {
		m->item_key = b->key;
		model_verb_of(m, s->actor, GRAPH_VERB_dequeue, r->time_ns, o->queue, 1, state,
			GRAPH_KEYED);
		m->item_key = 0;
	} else if (was_put_off(m, b)) {
		model_verb_of(m, s->actor, GRAPH_VERB_dequeue, r->time_ns, m->kernel.put_off, 1,
			state, GRAPH_LAST);
	} else if (model_is_credited(t)) {
		model_link(m, s->actor, r->time_ns, state, model_acting(t));
	} else {
		return; /* for nobody who is known */
	}
	s->busy = true;
	s->key = b->key;
}

void model_rule_disk_end(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_disk_end *e = &r->u.disk_end;
	struct disk *d = disk_of(m, e->object);
	struct disk_slot *s = d ? slot_with(d, e->key) : NULL;
	if (!s)
		return;
	if (model_is_context(t)) {
		model_link(m, t->actor, r->time_ns, t->run_state, s->actor);
		model_credit(t);
	}
	leave_slot(m, s, r->time_ns);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - dependences between actors and the occupancy of queues, gathered while the model runs;
 * slices gathered and sorted. */
#include "format/private.h"

#include <stdlib.h>
#include <string.h>

/* ---- gathering ------------------------------------------------------------------------------- */

/* Of the dependences of a moment the one that ended the wait. */
static enum base_status hear_moment(
	void *ctx, const struct graph_moment *m, uint32_t *ret_mark, struct base_err *err)
{
	struct format_events *e = ctx;
	(void)ret_mark;
	if (!m->explained || !m->nr_deps)
		return BASE_OK;
	const struct graph_dependence *d = &m->dep[m->last];
	if (d->from_actor == m->actor || d->from_actor == UINT32_MAX)
		return BASE_OK;
	if (e->nr_dependences >= FORMAT_EVENTS_MAX) {
		e->nr_left_out++;
		return BASE_OK;
	}
	enum base_status s = base_grow(&e->dependence, &e->dependence_capacity,
		e->nr_dependences + 1, sizeof *e->dependence);
	if (s != BASE_OK)
		return base_fail(err, s, "out of memory for dependences");
	e->dependence[e->nr_dependences++] = (struct format_dependence){
		.available_ns = d->available_ns,
		.begin_ns = m->begin_ns,
		.end_ns = m->end_ns,
		.from_actor = d->from_actor,
		.to_actor = m->actor,
		.queue = d->queue,
		.space = d->space,
	};
	return BASE_OK;
}

static enum base_status events_hear_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	struct format_events *e = ctx;
	size_t nr = (size_t)queue + 1;
	enum base_status s = base_grow(&e->units, &e->units_capacity, nr, sizeof *e->units);
	if (s == BASE_OK)
		s = base_grow(&e->last, &e->last_capacity, nr, sizeof *e->last);
	if (s != BASE_OK)
		return base_fail(err, s, "out of memory for queues");
	e->units[queue] = o->initial == GRAPH_UNLIMITED ? 0 : o->initial;
	e->last[queue] = 0;
	e->nr_queues = nr > e->nr_queues ? nr : e->nr_queues;
	return BASE_OK;
}

static enum base_status add_level(
	struct format_events *e, uint32_t queue, uint64_t time_ns, struct base_err *err)
{
	if (e->last[queue] && e->level[e->last[queue] - 1].time_ns == time_ns) {
		e->level[e->last[queue] - 1].units = e->units[queue];
		return BASE_OK;
	}
	if (e->nr_levels >= FORMAT_EVENTS_MAX) {
		e->nr_left_out++;
		return BASE_OK;
	}
	enum base_status s =
		base_grow(&e->level, &e->level_capacity, e->nr_levels + 1, sizeof *e->level);
	if (s != BASE_OK)
		return base_fail(err, s, "out of memory for queues' levels");
	e->level[e->nr_levels++] =
		(struct format_level){.time_ns = time_ns, .units = e->units[queue], .queue = queue};
	e->last[queue] = e->nr_levels;
	return BASE_OK;
}

static enum base_status events_hear_verb(void *ctx, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from_actor, struct base_err *err)
{
	struct format_events *e = ctx;
	uint64_t n = v->n < 0 ? 0 : (uint64_t)v->n;
	(void)from_actor;
	if (kind != GRAPH_VERB_enqueue && kind != GRAPH_VERB_dequeue && kind != GRAPH_VERB_resize)
		return BASE_OK;
	if (v->queue >= e->nr_queues)
		return BASE_OK;
	uint64_t *units = &e->units[v->queue], before = *units;
	if (kind == GRAPH_VERB_enqueue)
		*units = n > UINT64_MAX - before ? UINT64_MAX : before + n;
	else if (kind == GRAPH_VERB_resize)
		*units = n;
	else
		*units = v->n == GRAPH_ALL || n > before ? 0 : before - n;
	return *units == before ? BASE_OK : add_level(e, v->queue, v->time_ns, err);
}

void format_events_init(struct format_events *e)
{
	*e = (struct format_events){
		.listener = {.ctx = e, .moment = hear_moment},
		.sink = {.ctx = e, .queue = events_hear_queue, .verb = events_hear_verb},
	};
}

void format_events_fini(struct format_events *e)
{
	base_free(e->dependence);
	base_free(e->level);
	base_free(e->units);
	base_free(e->last);
	*e = (struct format_events){0};
}

/* ---- choosing -------------------------------------------------------------------------------- */

bool format_dependence_wanted(const struct format_input *in, const struct format_options *opts,
	const struct format_dependence *d, uint32_t *ret_from, uint32_t *ret_to)
{
	if (d->end_ns <= opts->from_ns || (opts->to_ns && d->available_ns >= opts->to_ns) ||
		d->end_ns - d->begin_ns < opts->min_duration_ns)
		return false;
	*ret_from = model_actor_stream(in->model, d->from_actor);
	*ret_to = model_actor_stream(in->model, d->to_actor);
	return *ret_from && *ret_to && *ret_from != *ret_to;
}

void format_dependence_label(
	struct base_str *out, const struct format_input *in, const struct format_dependence *d)
{
	if (d->queue == UINT32_MAX) {
		base_str_add(out, "a link");
		return;
	}
	if (d->space)
		base_str_add(out, "room in ");
	format_clean_add(out, model_queue(in->model, d->queue)->name);
}

bool format_level_wanted(const struct format_input *in, const struct format_options *opts,
	const struct format_level *l)
{
	const struct model_queue *q = model_queue(in->model, l->queue);
	return l->time_ns >= opts->from_ns && (!opts->to_ns || l->time_ns < opts->to_ns) &&
	       !q->tokens && q->object && q->part == MODEL_QUEUE_whole;
}

void format_events_note(const struct format_input *in)
{
	if (in->events)
		format_note_count(in->notes, in->events->nr_left_out,
			"%s {dependence or queue level is|dependences or queue levels are} left "
			"out: there are too many");
}

/* ---- slices ---------------------------------------------------------------------------------- */

static enum base_status keep_slice(void *ctx, const struct format_slice *s, struct base_err *err)
{
	struct format_slices *l = ctx;
	enum base_status st = base_grow(&l->slice, &l->capacity, l->nr + 1, sizeof *l->slice);
	if (st != BASE_OK)
		return base_fail(err, st, "out of memory for %zu {slice|slices}", l->nr);
	l->slice[l->nr++] = *s;
	return BASE_OK;
}

static int events_by_stream(const void *a, const void *b)
{
	const struct format_slice *x = a, *y = b;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

enum base_status format_slices_init(struct format_slices *l, const struct format_input *in,
	const struct format_options *opts, struct base_err *err)
{
	*l = (struct format_slices){0};
	enum base_status s = format_timeline(in, opts, keep_slice, l, err);
	if (s == BASE_OK && l->nr)
		qsort(l->slice, l->nr, sizeof *l->slice, events_by_stream);
	if (s != BASE_OK)
		format_slices_fini(l);
	return s;
}

void format_slices_fini(struct format_slices *l)
{
	base_free(l->slice);
	*l = (struct format_slices){0};
}

const struct format_slice *format_slices_at(
	const struct format_slices *l, uint32_t stream, uint64_t time_ns)
{
	size_t low = BASE_PARTITION(i, l->nr, /* how many begin before the time */
		l->slice[i].stream < stream ||
			(l->slice[i].stream == stream && l->slice[i].begin_ns < time_ns));
	const struct format_slice *s = low ? &l->slice[low - 1] : NULL;
	return s && s->stream == stream && s->end_ns >= time_ns ? s : NULL;
}

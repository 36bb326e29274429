/* SPDX-License-Identifier: Apache-2.0 */
/* cursor.c - lanes of events, each in order by itself, become one list (README.md). */
#include "gotrace/private.h"

#include <stdlib.h>
#include <string.h>

const uint8_t *gotrace_number(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned shift = 0; p < end && shift < 70; shift += 7) {
		uint8_t b = *p++;
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = v;
			return p;
		}
	}
	return NULL;
}

void gotrace_merge_fini(struct gotrace_merge *m)
{
	base_free(m->batch);
	base_free(m->lane);
	base_free(m->order);
	base_free(m->sample);
	base_map_fini(&m->lanes);
	base_map_fini(&m->g);
	base_map_fini(&m->p);
	base_map_fini(&m->stacks);
	base_map_fini(&m->texts);
	base_map_fini(&m->frames);
	base_map_fini(&m->timers);
}

void gotrace_add_batch(struct gotrace_merge *m, const struct gotrace_batch *b)
{
	if (base_grow(&m->batch, &m->batch_capacity, m->nr_batches + 1, sizeof *m->batch) !=
		BASE_OK)
		gotrace_fail(m, BASE_ERR_NOMEM, "batches");
	else
		m->batch[m->nr_batches++] = *b;
}

struct gotrace_lane *gotrace_lane_of(struct gotrace_merge *m, uint64_t key)
{
	uint64_t known;
	if (base_map_get(&m->lanes, 0, key, &known))
		return &m->lane[known];
	if (m->nr_lanes >= GOTRACE_LANES_MAX) {
		gotrace_fail(m, BASE_ERR_LIMIT, "more than 65,536 threads or processors");
		return NULL;
	}
	if (base_grow(&m->lane, &m->lane_capacity, m->nr_lanes + 1, sizeof *m->lane) != BASE_OK ||
		base_map_put(&m->lanes, 0, key, m->nr_lanes) != BASE_OK) {
		gotrace_fail(m, BASE_ERR_NOMEM, "lanes");
		return NULL;
	}
	m->lane[m->nr_lanes] = (struct gotrace_lane){.key = key, .p = GOTRACE_NO_P};
	return &m->lane[m->nr_lanes++];
}

bool gotrace_standing(const struct base_map *map, uint64_t id, struct gotrace_standing *ret)
{
	uint64_t v;
	if (!base_map_get(map, 0, id, &v))
		return false;
	ret->sequence = v >> 3;
	ret->status = v & 7;
	return true;
}

void gotrace_set_standing(struct gotrace_merge *m, struct base_map *map, uint64_t id,
	uint64_t sequence, unsigned status)
{
	enum base_status s = base_map_put(map, 0, id, sequence << 3 | status);
	if (s != BASE_OK)
		gotrace_fail(m, s, "goroutines");
}

/* ---- the list -------------------------------------------------------------------------------- */

static uint64_t gotrace_ns(const struct gotrace_merge *m, uint64_t ticks)
{
	double ns =
		ticks > m->origin_ticks ? (double)(ticks - m->origin_ticks) * m->ns_per_tick : 0;
	return ns < 0x1p62 ? (uint64_t)ns : (uint64_t)0x1p62;
}

void gotrace_add(struct gotrace_merge *m, uint64_t ticks, struct gotrace_event e)
{
	struct gotrace *t = m->t;
	if (t->nr_events >= GOTRACE_EVENTS_MAX) {
		gotrace_fail(
			m, BASE_ERR_LIMIT, "more than 33,554,432 events: trace a shorter time");
		return;
	}
	if (base_grow(&t->event, &t->event_capacity, t->nr_events + 1, sizeof *t->event) !=
		BASE_OK) {
		gotrace_fail(m, BASE_ERR_NOMEM, "events");
		return;
	}
	e.time_ns = gotrace_ns(m, ticks);
	if (e.kind != GOTRACE_call_return) { /* that one may have been before: see by_time() */
		e.time_ns = e.time_ns > m->last_ns ? e.time_ns : m->last_ns;
		m->last_ns = e.time_ns;
	}
	if (e.kind == GOTRACE_procs && e.other > t->nr_processors)
		t->nr_processors = e.other < UINT32_MAX ? (uint32_t)e.other : UINT32_MAX;
	t->event[t->nr_events++] = e;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Its next event becomes its head, from the next batch where one is used up. */
static void gotrace_advance(struct gotrace_merge *m, struct gotrace_lane *l)
{
	l->has_head = false;
	while (!l->has_head) {
		if (l->at < l->end) {
			l->head = (struct gotrace_raw){0};
			l->has_head = m->format->decode(m, l, &l->at, l->end, &l->head);
			if (l->has_head)
				return;
			m->t->nr_damaged += l->at < l->end;
			l->at = l->end;
		}
		if (l->next == l->last)
			return;
		const struct gotrace_batch *b = &m->batch[m->order[l->next++]];
		l->at = b->p;
		l->end = b->end;
		l->ticks = b->ticks;
	}
}

/* Each lane's batches, in the file's order, stand together in m->order. */
static bool gotrace_lay_out(struct gotrace_merge *m)
{
	for (size_t i = 0; i < m->nr_batches; i++) {
		struct gotrace_lane *l = gotrace_lane_of(m, m->batch[i].lane);
		if (!l)
			return false;
		l->last++;
	}
	base_free(m->order);
	m->order = base_alloc((m->nr_batches + 1) * sizeof *m->order);
	if (!m->order) {
		gotrace_fail(m, BASE_ERR_NOMEM, "batches");
		return false;
	}
	size_t at = 0;
	for (size_t i = 0; i < m->nr_lanes; i++) {
		size_t nr = m->lane[i].last;
		m->lane[i].next = m->lane[i].last = at;
		at += nr;
	}
	for (size_t i = 0; i < m->nr_batches; i++) {
		struct gotrace_lane *l = gotrace_lane_of(m, m->batch[i].lane);
		m->order[l->last++] = i;
	}
	return true;
}

/* The earliest head that is ready; where none is, the earliest. SIZE_MAX: there is none. */
static size_t gotrace_next_lane(struct gotrace_merge *m)
{
	size_t ready = SIZE_MAX, any = SIZE_MAX;
	for (size_t i = 0; i < m->nr_lanes; i++) {
		const struct gotrace_lane *l = &m->lane[i];
		if (!l->has_head)
			continue;
		if (any == SIZE_MAX || l->head.ticks < m->lane[any].head.ticks)
			any = i;
		if ((ready == SIZE_MAX || l->head.ticks < m->lane[ready].head.ticks) &&
			m->format->is_ready(m, l, &l->head))
			ready = i;
	}
	if (ready == SIZE_MAX && any != SIZE_MAX)
		m->t->nr_disordered++;
	return ready == SIZE_MAX ? any : ready;
}

void gotrace_merge_batches(struct gotrace_merge *m)
{
	if (!gotrace_lay_out(m))
		return;
	for (size_t i = 0; i < m->nr_lanes; i++)
		gotrace_advance(m, &m->lane[i]);
	for (size_t i; m->status == BASE_OK && (i = gotrace_next_lane(m)) != SIZE_MAX;) {
		struct gotrace_raw r = m->lane[i].head;
		m->format->apply(m, &m->lane[i], &r);
		gotrace_advance(m, &m->lane[i]); /* (lanes may have moved) */
	}
	for (size_t i = 0; i < m->nr_lanes; i++) {
		m->lane[i].next = m->lane[i].last = 0;
		m->lane[i].at = m->lane[i].end = NULL;
	}
	m->nr_batches = 0;
}

/* ---- the order of time ----------------------------------------------------------------------- */

struct gotrace_place {
	uint64_t time_ns;
	size_t at;
};

static int gotrace_by_time(const void *a, const void *b)
{
	const struct gotrace_place *x = a, *y = b;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Samples have times of their own; and version 1 tells of a system call's end when its goroutine
 * has a P again. */
void gotrace_merge_samples(struct gotrace_merge *m)
{
	struct gotrace *t = m->t;
	m->last_ns = 0;
	for (size_t i = 0; i < m->nr_samples && m->status == BASE_OK; i++) {
		m->last_ns = 0;
		gotrace_add(m, m->sample[i].time_ns, m->sample[i]);
	}
	if (m->status != BASE_OK || !t->nr_events)
		return;
	struct gotrace_place *place = base_alloc(t->nr_events * sizeof *place);
	struct gotrace_event *sorted = base_alloc(t->nr_events * sizeof *sorted);
	if (!place || !sorted) {
		gotrace_fail(m, BASE_ERR_NOMEM, "events");
		base_free(place);
		base_free(sorted);
		return;
	}
	for (size_t i = 0; i < t->nr_events; i++)
		place[i] = (struct gotrace_place){.time_ns = t->event[i].time_ns, .at = i};
	qsort(place, t->nr_events, sizeof *place, gotrace_by_time);
	for (size_t i = 0; i < t->nr_events; i++)
		sorted[i] = t->event[place[i].at];
	base_free(place);
	base_free(t->event);
	t->event = sorted;
	t->event_capacity = t->nr_events;
}

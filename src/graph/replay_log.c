/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_log.c - verbs become steps. Follows the queues as they were in the run, to learn of each
 * wait what ended it and how long after, so that the simulation need not know the recorded times.
 */
#include "graph/replay_priv.h"

#include <stdlib.h>

static struct replay_memory memory_of(struct graph_replay *r)
{
	return (struct replay_memory){
		.used_bytes = &r->memory_bytes, .max_bytes = r->max_memory_bytes};
}

/* ---- steps ----------------------------------------------------------------------------------- */

static enum base_status replay_log_add_actor(
	struct graph_replay *r, uint32_t of, uint32_t *ret, struct base_err *err)
{
	enum base_status s = graph_replay_mem_need(
		r, &r->actor, &r->actor_capacity, r->nr_actors + 1, sizeof *r->actor, err);

	if (s)
		return s;
	if (r->nr_actors >= REPLAY_NONE)
		return base_fail(err, BASE_ERR_LIMIT,
			"replay takes at most 4 thousand million actors: analyse a window");
	*ret = (uint32_t)r->nr_actors;
	r->actor[r->nr_actors++] = (struct replay_log_actor){.head = REPLAY_NONE,
		.tail = REPLAY_NONE,
		.of = of,
		.lets = REPLAY_NONE,
		.wait_queue = REPLAY_NONE,
		.wait_row = REPLAY_NONE,
		.tick_row = REPLAY_NONE,
		.cut = REPLAY_NONE,
		.home = REPLAY_NONE,
		.gave = REPLAY_NONE};
	return BASE_OK;
}

static enum base_status begin_life(
	struct graph_replay *r, struct replay_lives *l, uint32_t of, struct base_err *err)
{
	uint32_t id = 0;
	size_t capacity = 0;
	enum base_status s = replay_log_add_actor(r, of, &id, err);

	if (!s && l->nr && !l->recent) {
		s = graph_replay_mem_resize(
			r, &l->recent, &capacity, REPLAY_LIVES, sizeof *l->recent, err);
		if (!s)
			l->recent[0] = l->last;
	}
	if (s)
		return s;
	if (l->recent) {
		uint32_t *slot = &l->recent[l->nr % REPLAY_LIVES];

		if (l->nr >= REPLAY_LIVES) {
			r->actor[*slot].lets = id;
			r->actor[id].waits_for_life = true;
		}
		*slot = id;
	}
	if (l->nr++)
		r->actor[id].nr = ++r->nr_later;
	l->now = l->last = id;
	return BASE_OK;
}

/* The present life of the graph's actor. */
static enum base_status replay_log_life_of(
	struct graph_replay *r, uint32_t actor, uint32_t *ret, struct base_err *err)
{
	enum base_status s;

	BASE_ASSERT(actor != REPLAY_NONE);
	if (BASE_UNLIKELY(actor >= r->nr_lives)) {
		s = graph_replay_mem_need(
			r, &r->lives, &r->lives_capacity, (size_t)actor + 1, sizeof *r->lives, err);
		if (s)
			return s;
		for (; r->nr_lives <= actor; r->nr_lives++)
			r->lives[r->nr_lives] =
				(struct replay_lives){.now = REPLAY_NONE, .last = REPLAY_NONE};
	}
	if (BASE_UNLIKELY(r->lives[actor].now == REPLAY_NONE)) {
		s = begin_life(r, &r->lives[actor], actor, err);
		if (s)
			return s;
	}
	*ret = r->lives[actor].now;
	return BASE_OK;
}

static enum base_status replay_log_add_step(struct graph_replay *r, uint32_t actor,
	const struct replay_step *step, uint32_t *ret, struct base_err *err)
{
	struct replay_log_actor *a = &r->actor[actor];
	uint32_t i;
	enum base_status s = graph_replay_new_step(r, step, &i, err);

	if (s)
		return s;
	if (a->tail == REPLAY_NONE)
		a->head = i;
	else
		replay_step(r, a->tail)->next = i;
	a->tail = i;
	*ret = i;
	return BASE_OK;
}

/* The step gets room for what does not fit. */
static enum base_status replay_log_widen(
	struct graph_replay *r, uint32_t i, struct replay_wide **ret, struct base_err *err)
{
	struct replay_step *step = replay_step(r, i);
	enum base_status s;

	if (step->bits & REPLAY_WIDE) {
		*ret = &r->wide[step->arg];
		return BASE_OK;
	}
	s = graph_replay_mem_need(
		r, &r->wide, &r->wide_capacity, r->nr_wide + 1, sizeof *r->wide, err);
	if (s)
		return s;
	*ret = &r->wide[r->nr_wide];
	**ret = (struct replay_wide){.own = step->own,
		.need = step->arg,
		.n = step->bits & REPLAY_ALL_UNITS ? GRAPH_ALL : (int64_t)step->arg};
	step->arg = (uint32_t)r->nr_wide++;
	step->bits |= REPLAY_WIDE;
	return BASE_OK;
}

enum base_status graph_replay_set_own(
	struct graph_replay *r, uint32_t i, uint64_t own, struct base_err *err)
{
	struct replay_step *step = replay_step(r, i);
	struct replay_wide *w;
	enum base_status s;

	if (BASE_LIKELY(own <= UINT32_MAX && !(step->bits & REPLAY_WIDE))) {
		step->own = (uint32_t)own;
		return BASE_OK;
	}
	s = replay_log_widen(r, i, &w, err);
	if (!s)
		w->own = own;
	return s;
}

/* ---- a moment's dependences ------------------------------------------------------------------ */

static void depends_on(struct graph_replay *r, uint32_t queue, const struct replay_item *on)
{
	struct replay_moment *m = &r->moment;
	const struct replay_log_actor *a = &r->actor[m->actor];

	if (on->time_ns == REPLAY_NOBODY)
		return;
	/* A moment names first what was waited for: the signal wakes, though the mutex comes later.
	 */
	if (a->waits && m->first == m->last && on->order > a->order_last && m->waker == REPLAY_NONE)
		m->waker = on->step;
	if (!m->depends || on->time_ns >= m->available_ns) {
		m->available_ns = on->time_ns;
		m->full_ns = on->full_ns;
		m->order = on->order;
		m->queue = queue;
		m->step = on->step;
		m->by = on->by;
		m->tick_ns = on->tick_ns;
	}
	m->depends = true;
}

/* ---- queues as they were --------------------------------------------------------------------- */

static enum base_status replay_log_put_units(struct graph_replay *r, struct replay_log_queue *q,
	uint64_t n, uint64_t key, struct base_err *err)
{
	uint64_t most = q->exclusive ? q->o.initial : INT64_MAX / 2;
	struct replay_item item = {.time_ns = r->now,
		.nr_units = n,
		.key = key,
		.full_ns = r->full_ns,
		.order = r->nr_steps,
		.step = r->moment.last,
		.by = r->moment.actor,
		.tick_ns = r->actor[r->moment.actor].tick_ns};

	q->nr_puts++;
	if (q->units > 0 && (uint64_t)q->units + n > most)
		graph_replay_ring_take_back(&q->data, (uint64_t)q->units + n - most);
	else if (q->units < 0) /* whoever took it before it was put has it */
		item.nr_units = n > (uint64_t)-q->units ? n - (uint64_t)-q->units : 0;
	q->units += (int64_t)(n < most ? n : most);
	if (q->units > (int64_t)most)
		q->units = (int64_t)most;
	if (q->units > (int64_t)q->max_units)
		q->max_units = (uint64_t)q->units;
	if (!item.nr_units)
		return BASE_OK;
	return graph_replay_ring_push(memory_of(r), &q->data, item, err);
}

static enum base_status free_space(
	struct graph_replay *r, struct replay_log_queue *q, uint64_t n, struct base_err *err)
{
	q->last_take_ns = r->now;
	q->last_take_full_ns = r->full_ns;
	q->last_take_step = r->moment.last;
	uint64_t paid = n < q->overfull ? n : q->overfull;
	q->overfull -= paid;
	n -= paid;
	if (!q->o.capacity || !n)
		return BASE_OK;
	return graph_replay_ring_push(memory_of(r), &q->space,
		(struct replay_item){.time_ns = r->now,
			.nr_units = n,
			.full_ns = r->full_ns,
			.order = r->nr_steps,
			.step = r->moment.last},
		err);
}

/* How often, since then, somebody else took; how soon one that had not waited; and what woke the
 * sleeper: the first to put something, though others took it (REPLAY_NONE: none of these). */
static uint64_t overtakings(const struct replay_log_queue *q, const struct replay_log_actor *a,
	uint64_t since, uint64_t *slow_ns, uint32_t *waker)
{
	uint64_t nr = 0;

	*slow_ns = 0;
	*waker = REPLAY_NONE;
	for (; q->take && nr < REPLAY_TAKES && nr < q->nr_takes; nr++) {
		const struct replay_past_take *take =
			&q->take[(q->nr_takes - 1 - nr) % REPLAY_TAKES];

		if (take->time_ns <= since)
			return nr;
		if (!take->waited && take->gap_ns > *slow_ns)
			*slow_ns = take->gap_ns;
		if (take->put_step != REPLAY_NONE && take->put_order > a->order_last)
			*waker = take->put_step;
	}
	/* More than are remembered: counted only where the wait was on this very queue. */
	if (a->wait_queue < REPLAY_NONE && a->takes_then + nr < q->nr_takes && since == a->t_last)
		nr = q->nr_takes - a->takes_then;
	return nr;
}

static enum base_status note_take(struct graph_replay *r, const struct graph_verb *v, uint32_t i,
	const struct replay_item *taken, struct base_err *err)
{
	const struct replay_log_actor *a = &r->actor[v->actor];
	struct replay_log_queue *q = &r->queue[v->queue];
	uint64_t since = a->t_last, slow_ns, nr = 0;
	bool by_nobody = taken->time_ns == REPLAY_NOBODY;
	enum base_status s = BASE_OK;
	struct replay_wide *w;
	size_t capacity = 0;
	uint32_t waker;

	if (a->waits) {
		if (a->wait_queue != v->queue && r->moment.depends &&
			r->moment.available_ns > since)
			since = r->moment.available_ns;
		nr = overtakings(q, a, since, &slow_ns, &waker);
		if (nr && r->moment.first == i)
			r->moment.waker = waker;
	}
	if (nr) {
		s = replay_log_widen(r, i, &w, err);
		if (s)
			return s;
		w->nr_overtaken = nr < UINT32_MAX ? (uint32_t)nr : UINT32_MAX;
		w->slow_ns = slow_ns;
	}
	if (!q->take && q->nr_takes) {
		s = graph_replay_mem_resize(
			r, &q->take, &capacity, REPLAY_TAKES, sizeof *q->take, err);
		if (s)
			return s;
	}
	if (q->take) /* (one take alone overtakes nobody) */
		q->take[q->nr_takes % REPLAY_TAKES] = (struct replay_past_take){.time_ns = r->now,
			.gap_ns = by_nobody ? 0 : r->now - taken->time_ns,
			.put_order = taken->order,
			.put_step = by_nobody ? REPLAY_NONE : taken->step,
			.waited = a->waits};
	q->nr_takes++;
	return BASE_OK;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static uint64_t replay_log_units_of(const struct graph_verb *v)
{
	if (v->n == GRAPH_ALL)
		return UINT64_MAX;
	return v->n < 0 ? 0 : (uint64_t)v->n;
}

/* What the step needs is not what the verb says. */
static enum base_status set_need(struct graph_replay *r, uint32_t i, const struct graph_verb *v,
	uint64_t need, struct base_err *err)
{
	struct replay_step *step = replay_step(r, i);
	struct replay_wide *w;
	enum base_status s;

	if (v->n == GRAPH_ALL)
		step->bits |= REPLAY_ALL_UNITS;
	if (need <= UINT32_MAX && (v->n == GRAPH_ALL || (uint64_t)v->n == need) && !v->key &&
		!v->tag && !(step->bits & REPLAY_WIDE)) {
		step->arg = (uint32_t)need;
		return BASE_OK;
	}
	s = replay_log_widen(r, i, &w, err);
	if (s)
		return s;
	w->need = need;
	w->n = v->n;
	w->key = v->key;
	w->tag = v->tag;
	return BASE_OK;
}

static enum base_status set_ordinal(
	struct graph_replay *r, uint32_t i, uint64_t ordinal, struct base_err *err)
{
	struct replay_wide *w;
	enum base_status s = replay_log_widen(r, i, &w, err);

	if (s)
		return s;
	replay_step(r, i)->bits |= REPLAY_COUNTED;
	w->ordinal = ordinal;
	return BASE_OK;
}

static struct replay_item replay_log_last_take(const struct replay_log_queue *q)
{
	return (struct replay_item){.time_ns = q->last_take_ns,
		.full_ns = q->last_take_full_ns,
		.step = q->last_take_step};
}

/* Space: the n units' own, or what a wait for it was ended by. */
static enum base_status log_space(struct graph_replay *r, const struct graph_verb *v, uint32_t i,
	bool keep, struct base_err *err)
{
	struct replay_log_queue *q = &r->queue[v->queue];
	const struct replay_log_actor *a = &r->actor[v->actor];
	struct replay_item available;
	uint64_t n = replay_log_units_of(v), got;
	bool waited = a->waits && (a->wait_queue == REPLAY_NONE ||
					  (a->waits_space && a->wait_queue == v->queue));
	bool taken_since = waited && q->nr_takes && q->last_take_ns > a->t_last;
	if (q->o.capacity) {
		struct replay_take take = {.n = n, .keep = keep};
		got = graph_replay_ring_take(&q->space, &take, &available);
		depends_on(r, v->queue, &available);
		if (got == n)
			return BASE_OK;
		if (!taken_since) {
			q->overfull += keep ? 0 : n - got;
			replay_step(r, i)->bits |= REPLAY_FREE;
			return BASE_OK;
		}
		/* It waited until there was room: the log lacks takes, nothing was overfull. */
		q->overfull = 0;
	} else if (!q->waits_space || !taken_since) {
		return BASE_OK;
	}
	available = replay_log_last_take(q);
	depends_on(r, v->queue, &available);
	return set_ordinal(r, i, q->nr_takes, err);
}

/* Tokens that come back from their takers can be lent: a processor's, a bus's; not a window's
 * credits. */
static void replay_log_follow_pool(struct graph_replay *r, const struct graph_verb *v, bool take)
{
	struct replay_log_queue *q = &r->queue[v->queue];
	struct replay_held *h;
	bool locks = take && v->n == GRAPH_ALL && v->flags & GRAPH_BACK;
	uint64_t n = locks ? 1 : v->n < 0 ? 0 : (uint64_t)v->n;

	if ((q->o.discipline != GRAPH_POOL && !q->exclusive) || q->handed_on || !n)
		return;
	h = replay_held(r->actor[v->actor].held, v->queue, take);
	if (!h || (!take && h->n < n))
		q->handed_on = true;
	else
		h->n += take ? n : -n;
}

static enum base_status log_enqueue(
	struct graph_replay *r, const struct graph_verb *v, uint32_t i, struct base_err *err)
{
	struct replay_log_queue *q = &r->queue[v->queue];
	uint64_t n = v->n < 0 ? 0 : (uint64_t)v->n;
	enum base_status s = set_need(r, i, v, n, err);

	if (!s && n)
		s = log_space(r, v, i, false, err);
	replay_log_follow_pool(r, v, false);
	return s || !n || q->o.counts ? s : replay_log_put_units(r, q, n, v->key, err);
}

/* A time limit ended the wait, and the lock was free: when that was given up is no reason. */
static bool is_by_the_way(const struct graph_verb *v)
{
	return v->flags & GRAPH_BACK && v->flags & GRAPH_TIMED_OUT;
}

static enum base_status log_take(struct graph_replay *r, const struct graph_verb *v, uint32_t i,
	bool keep, struct base_err *err)
{
	struct replay_log_queue *q = &r->queue[v->queue];
	bool pool = replay_is_pool(&q->o), keyed = v->flags & GRAPH_KEYED;
	struct replay_take take = {.discipline = q->o.discipline,
		.keyed = keyed,
		.key = v->key,
		.keep = keep,
		.n = replay_log_units_of(v)};
	struct replay_item available;
	uint64_t got, puts = q->nr_puts;
	enum base_status s;

	if (v->flags & GRAPH_BACK && v->n == GRAPH_ALL && pool) /* a lock that was free */
		q->exclusive = true;
	q->keyed |= keyed;
	if (!keep)
		replay_log_follow_pool(r, v, true);
	if (q->exclusive)
		take.n = 1;
	got = graph_replay_ring_take(&q->data, &take, &available);
	if (!keep) {
		uint64_t gone = pool && !keyed && take.n != UINT64_MAX ? take.n : got;

		q->units -= (int64_t)(gone < INT64_MAX / 4 ? gone : 0);
	}
	s = set_need(r, i, v, pool && take.n != UINT64_MAX ? take.n : got, err);
	/* Taken before it was put: their records crossed. */
	if (q->o.informs || (pool && got < take.n && take.n != UINT64_MAX))
		replay_step(r, i)->bits |= REPLAY_FREE;
	else if (!s && v->flags & GRAPH_LAST && !pool && got)
		s = set_ordinal(r, i, puts, err);
	if (!s)
		s = keep ? BASE_OK : note_take(r, v, i, &available, err);
	if (got && !(v->flags & GRAPH_OPTIONAL) && !is_by_the_way(v))
		depends_on(r, v->queue, &available);
	return s || keep ? s : free_space(r, q, got, err);
}

/* From the back, without needing anything. */
static enum base_status log_back(
	struct graph_replay *r, const struct graph_verb *v, uint32_t i, struct base_err *err)
{
	struct replay_log_queue *q = &r->queue[v->queue];
	uint64_t have = q->units > 0 ? (uint64_t)q->units : 0, n = replay_log_units_of(v);
	enum base_status s;

	if (n > have)
		n = have;
	s = set_need(r, i, v, n, err);
	replay_step(r, i)->bits |= REPLAY_FREE;
	graph_replay_ring_take_back(&q->data, n);
	q->units -= (int64_t)n;
	return s ? s : free_space(r, q, n, err);
}

static enum base_status log_resize(
	struct graph_replay *r, const struct graph_verb *v, uint32_t i, struct base_err *err)
{
	struct replay_log_queue *q = &r->queue[v->queue];
	uint64_t have = q->units > 0 ? (uint64_t)q->units : 0, n = v->n < 0 ? 0 : (uint64_t)v->n;
	struct replay_item ignored;
	enum base_status s = set_need(r, i, v, n < have ? have - n : n - have, err);

	if (s || n == have)
		return s;
	if (n > have) {
		graph_replay_ring_take(&q->space, &(struct replay_take){.n = n - have}, &ignored);
		return replay_log_put_units(r, q, n - have, 0, err);
	}
	replay_step(r, i)->bits |= REPLAY_SHRINKS;
	graph_replay_ring_take_back(&q->data, have - n);
	q->units -= (int64_t)(have - n);
	return free_space(r, q, have - n, err);
}

/* Where the link starts becomes a step of its source. */
static enum base_status log_link(struct graph_replay *r, const struct graph_verb *v,
	uint32_t from_actor, uint32_t i, struct base_err *err)
{
	uint32_t id = (uint32_t)r->nr_links, unused;
	struct replay_log_actor *from;
	struct replay_step out = {.next = REPLAY_NONE, .arg = id, .bits = REPLAY_LINK_OUT};
	enum base_status s;

	from = &r->actor[from_actor];
	replay_step(r, i)->queue = from_actor;
	if (!from->started || from_actor == r->moment.actor) {
		replay_step(r, i)->bits |= REPLAY_FREE; /* nothing is known of it: no link */
		return BASE_OK;
	}
	out.state = from->state;
	out.recording_ns = replay_recording(from);
	out.queue = r->moment.actor;
	replay_step(r, i)->arg = id;
	if (v->flags & GRAPH_CUTS)
		r->actor[r->moment.actor].cut = i;
	r->nr_links++;
	r->moment.links = true;
	s = replay_log_add_step(r, from_actor, &out, &unused, err);
	if (!s)
		s = graph_replay_set_own(
			r, unused, r->moment.t - from->t_last - from->hole_ns, err);
	return s;
}

static enum base_status log_kind(struct graph_replay *r, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from_actor, uint32_t i, struct base_err *err)
{
	switch (kind) {
	case GRAPH_VERB_enqueue:
		return log_enqueue(r, v, i, err);
	case GRAPH_VERB_dequeue:
		if (v->flags & GRAPH_BACK &&
			!(v->n == GRAPH_ALL && replay_is_pool(&r->queue[v->queue].o)))
			return log_back(r, v, i, err);
		return log_take(r, v, i, false, err);
	case GRAPH_VERB_peek:
		return log_take(r, v, i, true, err);
	case GRAPH_VERB_reserve: {
		enum base_status s = set_need(r, i, v, replay_log_units_of(v), err);

		return s ? s : log_space(r, v, i, true, err);
	}
	case GRAPH_VERB_resize:
		return log_resize(r, v, i, err);
	case GRAPH_VERB_wait_full:
		r->queue[v->queue].waits_space = true;
		return set_need(r, i, v, replay_log_units_of(v), err);
	case GRAPH_VERB_link:
		return log_link(r, v, from_actor, i, err);
	default:
		return set_need(r, i, v, v->n < 0 ? 0 : (uint64_t)v->n, err);
	}
}

static bool uses_queue(enum graph_verb_kind kind)
{
	return kind != GRAPH_VERB_state && kind != GRAPH_VERB_wait && kind != GRAPH_VERB_link &&
	       kind != GRAPH_VERB_rename && kind != GRAPH_VERB_forget;
}

static enum base_status log_step(struct graph_replay *r, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from_actor, struct base_err *err)
{
	struct replay_step step = {.next = REPLAY_NONE,
		.state = v->state,
		.queue = v->queue,
		.bits = (uint32_t)kind | (v->flags & 255) << REPLAY_FLAGS_SHIFT |
			REPLAY_FOLLOWS << REPLAY_CLASS_SHIFT};
	bool waits = kind == GRAPH_VERB_wait || kind == GRAPH_VERB_wait_empty ||
		     kind == GRAPH_VERB_wait_full;
	enum base_status s;
	uint32_t i;

	if ((kind == GRAPH_VERB_enqueue || kind == GRAPH_VERB_dequeue) &&
		graph_replay_are_all_busy(r))
		step.bits |= REPLAY_BUSY;
	if (waits)
		step.bits &= ~((uint32_t)GRAPH_MORE << REPLAY_FLAGS_SHIFT);
	s = replay_log_add_step(r, v->actor, &step, &i, err);
	if (s)
		return s;
	if (v->state > r->last_state)
		r->last_state = v->state;
	if (r->moment.first == REPLAY_NONE) {
		r->moment = (struct replay_moment){
			.actor = v->actor, .first = i, .t = r->now, .waker = REPLAY_NONE};
		replay_step(r, i)->recording_ns = replay_take_recording(&r->actor[v->actor]);
		replay_step(r, i)->late_ns = (uint32_t)llabs(r->actor[v->actor].late_ns);
		r->moment.early = r->actor[v->actor].late_ns < 0;
		r->actor[v->actor].late_ns = 0;
	}
	r->moment.last = i;
	if (BASE_UNLIKELY(v->came_ns))
		r->moment.came_ns = v->came_ns;
	r->moment.flags |= v->flags & (GRAPH_START | GRAPH_EXPLAINED | GRAPH_TIMED_OUT);
	s = log_kind(r, kind, v, from_actor, i, err);
	if (s || (v->flags & GRAPH_MORE && !waits))
		return s;
	return graph_replay_close_moment(r, err);
}

/*
 * A time limit ended the wait, and then it had to wait for a lock: at the latest when the one who
 * gave that up had taken it the sleep was over, as far as is known.
 */
static bool is_late_take(
	const struct graph_replay *r, enum graph_verb_kind kind, const struct graph_verb *v)
{
	return kind == GRAPH_VERB_dequeue && v->flags & GRAPH_TIMED_OUT &&
	       !(v->flags & GRAPH_BACK) && r->queue[v->queue].exclusive;
}

static enum base_status end_sleep(
	struct graph_replay *r, const struct graph_verb *v, struct base_err *err)
{
	const struct replay_log_queue *q = &r->queue[v->queue];
	const struct replay_log_actor *a = &r->actor[v->actor];
	struct graph_verb wait = {.actor = v->actor,
		.state = a->state,
		.queue = v->queue,
		.flags = GRAPH_EXPLAINED | GRAPH_TIMED_OUT,
		.n = v->n};
	uint64_t now = r->now;
	enum base_status s;

	if (!a->waits || !q->nr_takes || q->last_take_ns <= a->t_last)
		return BASE_OK;
	r->now = q->last_take_ns;
	s = log_step(r, GRAPH_VERB_wait_empty, &wait, 0, err);
	r->now = now;
	return s;
}

/* ---- the recorded run's processors: the simulation has its own ------------------------------- */

/* How long others of ours kept it from a processor: while they had all, or until the last one of
 * them left the one that it has now. (Of a single one it is known who had it all the time: where
 * ours take turns with other programs, each of ours waits for these, too.) And while none of ours
 * had one, where they have a quota: they had used it up. */
static uint64_t ours_in_hole(
	const struct graph_replay *r, const struct replay_log_actor *a, uint64_t left_ns)
{
	uint64_t full = r->full_ns - a->hole_full_ns;
	uint64_t had = left_ns > a->hole_begin_ns ? left_ns - a->hole_begin_ns : 0;

	if (r->quota.ns)
		full += r->none_ns - a->hole_none_ns;
	return had > full && replay_usable(r) != 1 ? had : full;
}

/*
 * It has a processor again. While ours had it the simulation will find out anew; the rest
 * of the time other programs had it, and will have it again: a wait that stays.
 */
static enum base_status end_hole(struct graph_replay *r, uint32_t actor, uint32_t state,
	uint32_t runnable, uint64_t left_ns, struct base_err *err)
{
	struct replay_log_actor *a = &r->actor[actor];
	uint64_t now = r->now, ours;
	struct graph_verb v = {.actor = actor,
		.state = a->hole_state != REPLAY_NONE ? a->hole_state : runnable,
		.flags = REPLAY_FOR_PROCESSOR >> REPLAY_FLAGS_SHIFT};
	enum base_status s;
	uint32_t before = a->state;
	bool executed = !a->waits && before < r->nr_states && r->executes[before];

	graph_replay_pass_time(r, now);
	ours = ours_in_hole(r, a, left_ns);
	if (ours >= now - a->hole_begin_ns || !a->started) {
		a->in_hole = false;
		a->hole_ns += now - a->hole_begin_ns;
		return graph_replay_count_busy(r, false, graph_replay_is_busy(r, a), now, err);
	}
	r->now = a->hole_begin_ns;
	s = log_step(r, GRAPH_VERB_wait, &v, 0, err);
	r->now = now;
	a = &r->actor[actor];
	a->in_hole = false;
	a->hole_ns = ours;
	v.state = state;
	v.flags = GRAPH_EXPLAINED;
	if (!s)
		s = log_step(r, GRAPH_VERB_state, &v, 0, err);
	if (!s && executed && v.state == before)
		replay_step(r, r->actor[actor].tail)->bits |= REPLAY_PREEMPTED;
	return s;
}

/* Of one value in more than half of all cases that one is left. */
static void note_home(struct replay_log_actor *a, uint32_t processor)
{
	if (!a->at_home)
		a->home = processor;
	if (a->home == processor)
		a->at_home++;
	else
		a->at_home--;
}

/* Verbs on a processor's queue; *ret_done: nothing of it is a step. */
static enum base_status log_processor(struct graph_replay *r, enum graph_verb_kind kind,
	const struct graph_verb *v, struct base_err *err)
{
	struct replay_log_actor *a = &r->actor[v->actor];
	struct replay_log_queue *q = &r->queue[v->queue];
	bool before = graph_replay_is_busy(r, a);
	enum base_status s = graph_replay_count_busy(r, before, before, r->now, err);

	if (s)
		return s;
	r->nr_processors += !q->used;
	q->used = true;
	if (kind == GRAPH_VERB_enqueue)
		note_home(a, q->number);
	if (kind == GRAPH_VERB_wait_empty) {
		graph_replay_pass_time(r, r->now);
		a->slept = false;
		a->in_hole = true;
		a->hole_state = REPLAY_NONE;
		a->hole_begin_ns = r->now;
		a->hole_full_ns = r->full_ns;
		a->hole_none_ns = r->none_ns;
		q->left_ready = true;
	} else if (kind == GRAPH_VERB_peek) {
		graph_replay_pass_time(r, r->now);
		a->switched = true;
		a->switch_from_ns = q->left_ns;
		a->preempting = q->left_ready;
	} else if (kind == GRAPH_VERB_enqueue && before) {
		a->slept = true;
		a->slept_ns = r->now;
	} else if (kind == GRAPH_VERB_enqueue && a->waits) {
		a->asleep = true;
	} else if (a->in_hole && !(v->flags & GRAPH_ASIDE)) {
		return end_hole(r, v->actor, v->state, q->o.latency_state, q->left_ns, err);
	}
	if (kind == GRAPH_VERB_enqueue) {
		q->left_ns = r->now;
		q->left_ready = false;
	}
	return graph_replay_count_busy(r, before, graph_replay_is_busy(r, a), r->now, err);
}

/* What the actor has been in since its last step, or while it had no processor. */
static enum base_status log_rename(
	struct graph_replay *r, const struct graph_verb *v, struct base_err *err)
{
	struct replay_log_actor *a = &r->actor[v->actor];
	enum base_status s =
		r->moment.first != REPLAY_NONE ? graph_replay_close_moment(r, err) : BASE_OK;
	bool before = graph_replay_is_busy(r, a);

	if (s)
		return s;
	if (v->state > r->last_state)
		r->last_state = v->state;
	if (a->in_hole) {
		a->hole_state = v->state;
		return BASE_OK;
	}
	a->state = v->state;
	if (a->tail != REPLAY_NONE)
		replay_step(r, a->tail)->state = v->state;
	return graph_replay_count_busy(r, before, graph_replay_is_busy(r, a), r->now, err);
}

static bool is_processor_verb(
	const struct graph_replay *r, enum graph_verb_kind kind, const struct graph_verb *v)
{
	if (v->queue >= r->nr_queues || !r->queue[v->queue].o.processor)
		return false;
	return uses_queue(kind) || (kind == GRAPH_VERB_state && r->actor[v->actor].in_hole);
}

/* The moment of a clock's tick was between its last one and now. */
static enum base_status log_dated(
	struct graph_replay *r, const struct graph_verb *v, struct base_err *err)
{
	const struct replay_log_actor *a = &r->actor[v->actor];
	uint64_t now = v->time_ns > r->now ? v->time_ns : r->now;
	enum base_status s =
		r->moment.first != REPLAY_NONE ? graph_replay_close_moment(r, err) : BASE_OK;

	if (s)
		return s;
	r->now = !a->started ? now : v->time_ns > a->t_last ? v->time_ns : a->t_last;
	s = log_step(r, GRAPH_VERB_enqueue, v, 0, err);
	r->now = now;
	return s;
}

static enum base_status log_verb(struct graph_replay *r, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from_actor, struct base_err *err)
{
	uint64_t t = v->time_ns < r->now ? r->now : v->time_ns;
	enum base_status s = BASE_OK;

	if (kind == GRAPH_VERB_enqueue && v->flags & GRAPH_DATED)
		return log_dated(r, v, err);
	if (r->moment.first != REPLAY_NONE &&
		(r->moment.actor != v->actor || r->moment.t != t || v->flags & GRAPH_ASIDE))
		s = graph_replay_close_moment(r, err);
	if (s)
		return s;
	BASE_ASSERT(v->queue < r->nr_queues || !uses_queue(kind));
	if (!r->nr_steps)
		r->start_ns = r->busy_since = t;
	r->now = t;
	if (kind == GRAPH_VERB_rename)
		return log_rename(r, v, err);
	if (is_processor_verb(r, kind, v))
		return log_processor(r, kind, v, err);
	if (BASE_UNLIKELY(r->actor[v->actor].in_hole))
		s = end_hole(r, v->actor, v->state, r->actor[v->actor].state, 0, err);
	if (!s && is_late_take(r, kind, v))
		s = end_sleep(r, v, err);
	return s ? s : log_step(r, kind, v, from_actor, err);
}

enum base_status graph_replay_log_verb(struct graph_replay *r, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from_actor, struct base_err *err)
{
	struct graph_verb mine = *v;
	uint32_t from = 0;
	enum base_status s = replay_log_life_of(r, v->actor, &mine.actor, err);

	if (!s && kind == GRAPH_VERB_link)
		s = replay_log_life_of(r, from_actor, &from, err);
	if (!s)
		s = log_verb(r, kind, &mine, from, err);
	if (!s && kind == GRAPH_VERB_forget)
		r->lives[v->actor].now = REPLAY_NONE;
	return s;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_run.c - one simulation: an event at a time, each actor one at most. Events of one time
 * come in the order of the log, so that an unedited replay is the run itself.
 */
#include "graph/replay_sim.h"

#include "base/heap.h"

#define MAX_FACTOR 1e12

/* ---- events: a heap, with a short cut for the actor that just moved -------------------------- */

static inline bool replay_run_is_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->t != b->t ? a->t < b->t : a->order < b->order;
}

void graph_sim_schedule(struct sim *s, uint32_t actor, uint64_t t)
{
	struct sim_event e = {.t = t, .order = s->actor[actor].cursor, .actor = actor};

	if (actor == s->current) {
		s->next = e;
		s->has_next = true;
	} else {
		BASE_HEAP_PUT(s->heap, s->nr_heap, e, replay_run_is_before);
	}
}

void graph_sim_unschedule(struct sim *s, uint32_t actor)
{
	size_t i = 0;
	struct sim_event last;

	while (i < s->nr_heap && s->heap[i].actor != actor)
		i++;
	if (i == s->nr_heap)
		return;
	last = s->heap[--s->nr_heap];
	if (i == s->nr_heap)
		return;
	/* The hole goes up to the root, where the last one sinks from. */
	for (; i; i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	BASE_HEAP_REPLACE(s->heap, s->nr_heap, last, replay_run_is_before);
}

static bool replay_run_next_event(struct sim *s, struct sim_event *ret)
{
	if (s->has_next) {
		s->has_next = false;
		if (!s->nr_heap || replay_run_is_before(&s->next, &s->heap[0])) {
			*ret = s->next;
			return true;
		}
		*ret = s->heap[0];
		BASE_HEAP_REPLACE(s->heap, s->nr_heap, s->next, replay_run_is_before);
		return true;
	}
	if (!s->nr_heap)
		return false;
	*ret = s->heap[0];
	BASE_HEAP_DROP(s->heap, s->nr_heap, replay_run_is_before);
	return true;
}

/* The next, and what becomes of a quota until then. */
static bool next_event_of_quota(struct sim *s, struct sim_event *ret)
{
	for (;; graph_sim_turn_quota(s)) {
		bool any = replay_run_next_event(s, ret);

		if (BASE_LIKELY(any && ret->t <= s->quota.next_ns))
			return true;
		if (any)
			BASE_HEAP_PUT(s->heap, s->nr_heap, *ret, replay_run_is_before);
		else if (!graph_sim_is_held_up(s))
			return false;
	}
}

/* ---- what others hear ------------------------------------------------------------------------ */

void graph_sim_emit(
	struct sim *s, enum graph_verb_kind kind, const struct graph_verb *v, uint32_t from)
{
	struct graph_verb told = *v;

	told.actor = replay_told_as(s->r, v->actor);
	if (kind == GRAPH_VERB_link)
		from = replay_told_as(s->r, from);
	if (!s->status)
		s->status = s->out->verb(s->out->ctx, kind, &told, from, s->err);
}

static void emit_step(struct sim *s, uint32_t actor, const struct replay_step *step)
{
	const struct replay_wide *w = replay_wide(s->r, step);
	unsigned kind = replay_kind(step);
	bool link = kind == GRAPH_VERB_link;
	struct graph_verb v = {.time_ns = s->now,
		.actor = actor,
		.state = step->state,
		.queue = link ? 0 : step->queue,
		.flags = replay_flags(step),
		.n = step->bits & REPLAY_ALL_UNITS ? GRAPH_ALL : (int64_t)step->arg};

	if (w) {
		v.n = w->n;
		v.key = w->key;
		v.tag = w->tag;
	}
	if (link)
		v.n = 0;
	graph_sim_emit(s, (enum graph_verb_kind)kind, &v, link ? step->queue : 0);
}

/* It had to wait for its processor before it could take: that counts when it came last. */
static void emit_processor(struct sim *s, const struct sim_actor *a, uint32_t actor)
{
	if (!s->out || !a->queued || a->processor == REPLAY_NONE || !s->left[a->processor])
		return;
	graph_sim_emit(s, GRAPH_VERB_peek,
		&(struct graph_verb){.time_ns = s->now,
			.actor = actor,
			.state = a->state,
			.queue = (uint32_t)s->r->nr_queues + a->processor,
			.flags = GRAPH_LAST | GRAPH_MORE | GRAPH_OPTIONAL,
			.n = 1},
		0);
}

/* ---- from moment to moment ------------------------------------------------------------------- */

/* When the last of the moment's links has come; REPLAY_NOBODY: not yet. */
static uint64_t links_ns(const struct sim *s, uint32_t i)
{
	uint64_t t = 0;

	do {
		const struct replay_step *step = replay_step(s->r, i);

		if (replay_kind(step) == GRAPH_VERB_link && !(step->bits & REPLAY_FREE)) {
			uint64_t at = s->link_ns[replay_need(s->r, step)];

			t = at > t ? at : t; /* (REPLAY_NOBODY is the largest) */
		}
		i = replay_next_of_moment(s->r, step);
	} while (i != REPLAY_NONE);
	return t;
}

/* After a link the actor goes on with its source, or later when it is not there yet itself. */
static void await_link(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint64_t t = links_ns(s, a->cursor);

	if (t == REPLAY_NOBODY) {
		a->phase = SIM_WAITS;
		return;
	}
	a->phase = SIM_TRIES;
	graph_sim_schedule(s, actor, t > s->now ? t : s->now);
}

/* The link ends whatever its target does: what that has not done by then it never does. */
static void replay_run_cut(struct sim *s, const struct replay_step *out)
{
	uint32_t actor = out->queue, at = s->r->actor[actor].cut;
	struct sim_actor *to = &s->actor[actor];

	if (replay_need(s->r, replay_step(s->r, at)) != replay_need(s->r, out) ||
		to->cursor >= at || to->phase == SIM_ENDED || to->phase == SIM_UNBORN)
		return;
	to->hurries_to = at;
	if (to->phase == SIM_TRIES && !to->left_ns && actor != s->current) {
		graph_sim_unschedule(s, actor);
		graph_sim_schedule(s, actor, s->now);
	}
}

/*
 * What recording took of a step that is something done. A record costs before and after its time
 * stamp: where that is longer than what lies between two of them (a lock that is held for a moment)
 * the rest is in what the actor does next.
 */
static uint64_t recording_of(
	const struct sim *s, const struct sim_actor *a, const struct replay_step *step)
{
	if (BASE_LIKELY(!s->assumed.unrecorded || (!step->recording_ns && !a->left.owed_ns)))
		return 0;
	return (uint64_t)((double)step->recording_ns * (1 + s->assumed.recording_more)) +
	       a->left.owed_ns;
}

/* Without that; of what it was too short for no more is left than what was its own. */
static uint64_t without_recording(
	const struct sim *s, struct sim_actor *a, const struct replay_step *step, uint64_t own)
{
	uint64_t ns = recording_of(s, a, step), most = ns - (ns ? a->left.owed_ns : 0);
	uint64_t left = ns > own ? ns - own : 0;
	a->left.owed_ns = left < most ? left : most;
	return own > ns ? own - ns : 0;
}

/* Some link starts here: its target may go on. */
static void start_link(struct sim *s, const struct sim_actor *a, const struct replay_step *step)
{
	const struct sim_actor *to = &s->actor[step->queue];
	uint64_t own = replay_own(s->r, step), ns = a->waits ? 0 : recording_of(s, a, step);

	own = own > ns ? own - ns : 0;
	s->link_ns[replay_need(s->r, step)] =
		a->t_last + (a->waits ? own : sim_scaled(s, a->state, own));
	if (BASE_UNLIKELY(s->r->actor[step->queue].cut != REPLAY_NONE))
		replay_run_cut(s, step);
	if (to->phase == SIM_WAITS && !to->listed && to->cursor != REPLAY_NONE &&
		replay_class(replay_step(s->r, to->cursor)) == REPLAY_LINK)
		await_link(s, step->queue);
}

/* A sleep that something ended before its time lasts until then, or for what is asked for now. */
static uint64_t broken_sleep(const struct sim *s, const struct sim_actor *a,
	const struct replay_step *step, uint64_t own)
{
	uint64_t asked = sim_scaled(s, a->state, own + step->late_ns);

	if (step->late_ns == UINT32_MAX && asked) /* or more */
		return own;
	return asked < own ? asked : own;
}

/* A sleep comes to its end as late as it did, however long it is, if it is still there. */
static uint64_t scaled_sleep(const struct sim *s, const struct sim_actor *a,
	const struct replay_step *step, uint64_t own)
{
	uint64_t late = step->late_ns < own ? step->late_ns : own;

	if (BASE_UNLIKELY(late && step->bits & REPLAY_EARLY))
		return broken_sleep(s, a, step, own);
	if (BASE_LIKELY(!late) || s->assumed.late_scales || !sim_scaled(s, a->state, UINT32_MAX))
		return sim_scaled(s, a->state, own);
	own = sim_scaled(s, a->state, own - late);
	return own + (uint64_t)((double)late * (1 + s->assumed.late_more) + 0.5);
}

static double replay_run_jitter(const struct sim *s, const struct sim_actor *a)
{
	return 1 + GRAPH_REPLAY_JITTER * (2 * sim_dice(s, a->cursor) - 1);
}

/*
 * Waking takes the waker's time, which no edit of its state changes: an actor that wakes more
 * sleepers than in the run takes longer, one that wakes fewer takes less.
 */
static uint64_t own_time(const struct sim *s, const struct sim_actor *a,
	const struct replay_step *step, uint64_t own)
{
	uint64_t then = a->left.woke_then_ns, now = a->left.wakes_ns;

	if (!sim_executes(s, a->state))
		return scaled_sleep(s, a, step, own);
	if (s->assumed.unrecorded)
		own = (uint64_t)((double)own * (1 - s->r->samples_share) + 0.5);
	if (BASE_UNLIKELY(s->assumed.jitter))
		own = (uint64_t)((double)own * replay_run_jitter(s, a) + 0.5);
	if (BASE_LIKELY(!now && !then))
		return sim_scaled(s, a->state, own);
	then = then < own ? then : own;
	now = now > a->left.woke_then_ns
		      ? then + (now - a->left.woke_then_ns)
		      : (uint64_t)((double)then * (double)now / (double)a->left.woke_then_ns);
	return sim_scaled(s, a->state, own - then) + now;
}

static void replay_run_begin_run(struct sim *s, uint32_t actor, uint64_t own)
{
	struct sim_actor *a = &s->actor[actor];

	const struct replay_step *step = replay_step(s->r, a->cursor);
	bool slept = step->bits & REPLAY_SLEPT;

	own = own_time(s, a, step, without_recording(s, a, step, own));
	if (own && s->nr_processors && !slept && sim_executes(s, a->state)) {
		a->left_ns = own;
		if (graph_sim_come_on(s, actor, SIM_QUEUES))
			graph_sim_run_on(s, actor);
		return;
	}
	if (own && a->processor != REPLAY_NONE)
		graph_sim_release_processor(s, actor);
	a->left_ns = 0;
	a->phase = SIM_TRIES;
	graph_sim_schedule(s, actor, s->now + own);
}

/* What it came for is not (or no longer) there. */
static void begin_waiting(struct sim *s, uint32_t actor, uint32_t queue, bool space)
{
	bool promised = graph_sim_end_promise(s, actor);

	s->actor[actor].queued = false;
	graph_sim_release_processor(s, actor);
	graph_sim_wait(s, actor, queue, space);
	if (replay_class(replay_step(s->r, s->actor[actor].cursor)) == REPLAY_RUN)
		graph_sim_lend(s, actor, s->r->queue[queue].o.frees_locks);
	if (promised)
		graph_sim_call_others(s, actor);
}

static bool place_actor(struct sim *s, uint32_t actor);

/* Another life of the same actor may begin, when there are more than may be at once. */
static void end_actor(struct sim *s, uint32_t actor)
{
	do {
		s->actor[actor].phase = SIM_ENDED;
		actor = s->r->actor[actor].lets;
	} while (actor != REPLAY_NONE && !place_actor(s, actor));
}

/* A time limit ends the wait, whoever has the lock meanwhile: only then it asks for that. */
static bool asks_at_its_end(const struct replay_step *step)
{
	return step->bits & REPLAY_POLLS && replay_flags(step) & GRAPH_BACK;
}

/* From its last moment towards the next. */
static void replay_run_advance(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	const struct replay_step *step = NULL;
	uint32_t queue;
	uint64_t own;
	bool space;

	for (;; a->cursor = replay_next(s->r, step)) {
		if (a->cursor == REPLAY_NONE) {
			graph_sim_release_processor(s, actor);
			end_actor(s, actor);
			return;
		}
		step = replay_step(s->r, a->cursor);
		if (BASE_LIKELY(replay_kind(step) != REPLAY_LINK_OUT))
			break;
		start_link(s, a, step);
	}
	replay_fetch(s->r, step->next);
	own = a->cursor < a->hurries_to ? 0 : replay_own(s->r, step);
	if (a->elides) {
		a->phase = SIM_TRIES;
		graph_sim_schedule(s, actor, s->now);
		return;
	}
	switch (replay_class(step)) {
	case REPLAY_LINK:
		graph_sim_release_processor(s, actor);
		await_link(s, actor);
		return;
	case REPLAY_EXPLAINED:
		if (step->bits & REPLAY_AT_ONCE && !graph_sim_is_met(s, actor, &queue, &space)) {
			begin_waiting(s, actor, queue, space);
			return;
		}
		a->phase = SIM_TRIES;
		graph_sim_schedule(s, actor, s->now);
		return;
	case REPLAY_UNEXPLAINED:
		if (a->wait_queue != REPLAY_NONE && s->queue[a->wait_queue].ignored)
			own = 0;
		own = scaled_sleep(s, a, step, own);
		if (step->bits & REPLAY_GIVEN && s->assumed.given_at_once)
			own = 0;
		if (replay_is_preempted(step) && !s->assumed.others_stay)
			own = sim_scaled(s, step->state, own); /* as often as it runs: less, too */
		if (own && step->bits & REPLAY_POLLS && graph_sim_poll(s, actor))
			own = 0;
		if (!asks_at_its_end(step) &&
			!graph_sim_promise(s, actor)) /* not there yet: its waiters get in line */
			own = 0;
		if (own)
			graph_sim_release_processor(s, actor);
		a->phase = SIM_TRIES;
		graph_sim_schedule(s, actor, s->now + own);
		return;
	default:
		replay_run_begin_run(s, actor, own);
	}
}

static void note_wait(struct sim_actor *a, const struct replay_step *step)
{
	unsigned kind = replay_kind(step);

	if (replay_flags(step) & GRAPH_ASIDE)
		return;
	a->waits = kind == GRAPH_VERB_wait || kind == GRAPH_VERB_wait_empty ||
		   kind == GRAPH_VERB_wait_full;
	a->wait_queue = a->waits && kind != GRAPH_VERB_wait ? step->queue : REPLAY_NONE;
	a->wait_row = replay_row(step);
	a->state = step->state;
}

/* Does the wait that begins here happen? An actor that never slept needs no other processor,
 * either. */
static void replay_run_end_elision(
	struct sim *s, struct sim_actor *a, const struct replay_step *last)
{
	bool processor = replay_kind(last) == GRAPH_VERB_wait && last->bits & REPLAY_FOR_PROCESSOR;
	bool before = a->elided;

	a->elided = a->elides;
	a->elides = a->waits && (sim_elides(s, a->state) || (processor && before));
}

/* It has looked at units that others wait to take. */
static bool is_keyed_look(const struct replay_step *step)
{
	return replay_kind(step) == GRAPH_VERB_peek && replay_flags(step) & GRAPH_KEYED;
}

static uint64_t replay_run_wake_cost(const struct sim *s, bool busy)
{
	return busy ? s->wake_busy_ns : s->wake_ns;
}

/* Then there is nothing to take. */
static bool takes_what_is_missing(
	const struct sim *s, uint32_t actor, const struct replay_step *step)
{
	return replay_kind(step) == GRAPH_VERB_dequeue && !graph_sim_is_step_met(s, step, actor);
}

static uint64_t wakes_cost(const struct sim *s, struct sim_woken woken)
{
	unsigned nr_idle = woken.nr_idle < REPLAY_WOKE_MAX ? woken.nr_idle : REPLAY_WOKE_MAX;
	unsigned rest = REPLAY_WOKE_MAX - nr_idle;
	unsigned nr_busy = woken.nr_busy < rest ? woken.nr_busy : rest;

	return nr_idle * replay_run_wake_cost(s, false) +
	       nr_busy * replay_run_wake_cost(s, !s->assumed.preempts);
}

/* The waiters for what the step put, or for the room that it made. */
static inline void call_after(
	struct sim *s, const struct replay_step *step, struct sim_woken *woken)
{
	unsigned kind = replay_kind(step);

	if (kind == GRAPH_VERB_enqueue || kind == GRAPH_VERB_resize || is_keyed_look(step)) {
		if (sim_is_awaited(s, step->queue, false))
			graph_sim_call(s, step->queue, false, woken);
	}
	if (kind == GRAPH_VERB_enqueue && s->queue[step->queue].pollers != REPLAY_NONE)
		graph_sim_call_pollers(s, step->queue);
	if ((kind == GRAPH_VERB_dequeue || kind == GRAPH_VERB_resize) &&
		sim_is_awaited(s, step->queue, true))
		graph_sim_call(s, step->queue, true, woken);
}

/* The moment happens now. */
static void replay_run_commit(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	const struct replay_step *step = NULL;
	uint32_t first = a->cursor, i = first;
	struct sim_woken woken = {0};
	uint64_t recorded_ns = 0;
	bool woke = false;

	a->t_last = s->now;
	emit_processor(s, a, actor);
	a->queued = false;
	if (BASE_UNLIKELY(a->lent))
		graph_sim_take_lent(s, actor);
	do {
		step = replay_step(s->r, i);
		if (!a->given || !takes_what_is_missing(s, actor, step))
			woke |= graph_sim_do_step(s, actor, step) || is_keyed_look(step);
		recorded_ns += replay_woke(step) * replay_run_wake_cost(s, replay_was_busy(step));
		if (s->out)
			emit_step(s, actor, step);
		s->res->nr_verbs++;
		note_wait(a, step);
		i = replay_next_of_moment(s->r, step);
	} while (i != REPLAY_NONE);
	a->cursor = replay_next(s->r, step);
	a->given = false;
	replay_run_end_elision(s, a, step);
	/* Only now, when all of the moment is done. */
	for (uint32_t k = first; woke && k != REPLAY_NONE;
		k = replay_next_of_moment(s->r, replay_step(s->r, k)))
		call_after(s, replay_step(s->r, k), &woken);
	a->left.wakes_ns = wakes_cost(s, woken);
	a->left.woke_then_ns = recorded_ns;
	replay_run_advance(s, actor);
}

static void try_moment(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	bool called = a->listed, space;
	enum replay_class class = replay_class(replay_step(s->r, a->cursor));
	uint32_t queue;

	if (!graph_sim_is_met(s, actor, &queue, &space)) {
		s->res->nr_waits_new += !called && class != REPLAY_EXPLAINED;
		begin_waiting(s, actor, queue, space);
		return;
	}
	if (a->promised)
		graph_sim_end_promise(s, actor);
	if (called) {
		graph_sim_stop_waiting(s, actor);
	} else if (class == REPLAY_EXPLAINED) {
		s->res->nr_waits_gone++;
	}
	replay_run_commit(s, actor);
}

/* An actor that takes and then executes needs a processor to take at all. */
static bool takes_on_processor(const struct sim *s, const struct sim_actor *a)
{
	return s->nr_processors && sim_executes(s, replay_step(s->r, a->cursor)->state);
}

static void handle(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint64_t t;

	if (BASE_UNLIKELY(a->polls != REPLAY_NONE))
		graph_sim_end_poll(s, actor);
	switch (a->phase) {
	case SIM_RUNS:
		if (!graph_sim_slice_ended(s, actor))
			try_moment(s, actor);
		return;
	case SIM_CALLED:
		if (graph_sim_is_early(s, actor, &t)) {
			graph_sim_schedule(s, actor, t);
			return;
		}
		if (takes_on_processor(s, a) && !graph_sim_come_on(s, actor, SIM_QUEUES_TAKE))
			return;
		if (a->switch_ns) {
			a->phase = SIM_TRIES;
			graph_sim_schedule(s, actor, s->now + a->switch_ns);
			return;
		}
		try_moment(s, actor);
		return;
	default:
		try_moment(s, actor);
	}
}

/* ---- before the first event ------------------------------------------------------------------ */

void *graph_sim_need(struct sim *s, size_t nr, size_t size)
{
	size_t bytes;
	void *p;

	if (s->status)
		return NULL;
	if (__builtin_mul_overflow(nr + 1, size, &bytes) ||
		bytes > s->r->max_memory_bytes - s->used_bytes) {
		s->status = base_fail(s->err, BASE_ERR_LIMIT,
			"replay needs more than %zu MiB to simulate %zu {actor|actors} and %zu "
			"{queue|queues}: "
			"analyse a window of the trace or raise the memory limit",
			s->r->max_memory_bytes >> 20, s->r->nr_actors, s->r->nr_queues);
		return NULL;
	}
	p = base_alloc(bytes);
	if (!p)
		s->status = base_fail(s->err, BASE_ERR_NOMEM, "no memory for a simulation");
	s->used_bytes += bytes;
	return p;
}

/* As many as were seen; more when more than that executed at once for a hundredth of the time. */
static uint32_t recorded_processors(const struct graph_replay *r)
{
	uint64_t all = 0, above = 0;
	uint32_t nr = 0;
	size_t k;

	for (size_t i = 0; i < r->nr_queues; i++)
		nr += r->queue[i].o.processor && r->queue[i].used;
	if (!nr)
		return 0;
	if (r->nr_usable)
		return r->nr_usable;
	if (r->nr_processors_told)
		return nr > r->nr_processors_told ? nr : r->nr_processors_told;
	for (k = 1; k < r->busy_capacity; k++)
		all += r->busy_ns[k];
	for (k = r->busy_capacity; k > 1 && above + r->busy_ns[k - 1] <= all / 100; k--)
		above += r->busy_ns[k - 1];
	return k > nr + 1 ? (uint32_t)k - 1 : nr;
}

/* Its size is known, or shown by waits for room: N more is room. Else it is N units. */
static bool is_bounded(const struct replay_log_queue *q)
{
	return q->o.capacity || (q->waits_space && q->max_units) ||
	       (q->o.limit && q->o.limit >= q->max_units);
}

static void apply_edit(struct sim *s, const struct graph_edit *e)
{
	struct sim_queue *q = e->id < s->r->nr_queues ? &s->queue[e->id] : NULL;

	if (e->kind == GRAPH_EDIT_SCALE_STATE) {
		if (!(e->factor >= 0 && e->factor <= MAX_FACTOR))
			s->status = base_fail(s->err, BASE_ERR_USAGE,
				"a factor must lie between 0 and %g", MAX_FACTOR);
		else if (e->id < s->nr_scales)
			s->scale[e->id] *= e->factor;
	} else if (e->kind == GRAPH_EDIT_ELIDE_STATE) {
		if (e->id < s->nr_scales) {
			s->scale[e->id] = 0;
			s->elides[e->id] = true;
		}
	} else if (e->kind == GRAPH_EDIT_PROCESSORS) {
		if (s->nr_processors) /* more than actors are never used */
			s->nr_processors += e->units < s->r->nr_actors ? (uint32_t)e->units
								       : (uint32_t)s->r->nr_actors;
	} else if (q) {
		const struct replay_log_queue *lq = &s->r->queue[e->id];

		q->edited = true;
		if (e->kind == GRAPH_EDIT_IGNORE_QUEUE)
			q->ignored = true;
		if (e->kind == GRAPH_EDIT_UNBOUND_QUEUE || e->units > INT64_MAX / 4)
			q->capacity = GRAPH_UNLIMITED;
		else if (e->kind == GRAPH_EDIT_RESIZE_QUEUE && q->capacity != GRAPH_UNLIMITED)
			q->capacity += e->units;
		if (e->kind == GRAPH_EDIT_RESIZE_QUEUE && e->units <= INT64_MAX / 4 &&
			(replay_is_pool(&lq->o) || !is_bounded(lq))) {
			q->units += (int64_t)e->units;
			q->most += e->units;
		}
	}
}

/* States up to the last that is edited. */
static size_t nr_scales(const struct graph_replay *r, const struct graph_scenario *edits)
{
	size_t nr = 0, most = r->nr_states > r->last_state ? r->nr_states : r->last_state;

	for (size_t i = 0; edits && i < edits->nr_edits; i++) {
		const struct graph_edit *e = &edits->edit[i];

		bool of_state =
			e->kind == GRAPH_EDIT_SCALE_STATE || e->kind == GRAPH_EDIT_ELIDE_STATE;

		if (of_state && e->id >= nr && e->id <= most)
			nr = (size_t)e->id + 1;
	}
	return nr;
}

static void init_queue(struct sim_queue *q, const struct replay_log_queue *lq)
{
	*q = (struct sim_queue){
		.capacity = lq->o.capacity ? lq->o.capacity : GRAPH_UNLIMITED,
		.units = (lq->o.initial == GRAPH_UNLIMITED ? 0 : (int64_t)lq->o.initial) +
			 (int64_t)lq->room,
		.ignored = lq->ignored,
		.most = lq->exclusive ? lq->o.initial : INT64_MAX / 2,
		.pollers = REPLAY_NONE,
		.waiters = {{REPLAY_NONE, REPLAY_NONE}, {REPLAY_NONE, REPLAY_NONE}},
	};
	if (!lq->o.capacity && lq->waits_space && lq->max_units)
		q->capacity = lq->max_units;
	else if (!lq->o.capacity && lq->o.limit >= lq->max_units && lq->o.limit)
		q->capacity = lq->o.limit;
}

/* A wait at the very beginning may as well have begun at the log's: a barrier's, a server's. */
static bool begins_with_wait(const struct sim *s, const struct replay_step *step)
{
	unsigned kind = replay_kind(step);
	const struct replay_step *next;

	if (kind != GRAPH_VERB_wait && kind != GRAPH_VERB_wait_empty)
		return false;
	if (replay_next(s->r, step) == REPLAY_NONE || replay_flags(step) & GRAPH_START)
		return false;
	next = replay_step(s->r, step->next);
	return replay_class(next) == REPLAY_EXPLAINED ||
	       (replay_class(next) == REPLAY_UNEXPLAINED && !replay_own(s->r, next) &&
		       replay_kind(next) == GRAPH_VERB_dequeue);
}

/* false: there is nothing that it does. */
static bool place_actor(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	const struct replay_step *step;
	uint64_t t = s->r->start_ns;

	*a = (struct sim_actor){.cursor = s->r->actor[actor].head,
		.set = graph_replay_set_of(s->r, s->r->actor[actor].of),
		.t_last = s->r->start_ns,
		.wait_queue = REPLAY_NONE,
		.processor = REPLAY_NONE,
		.home = REPLAY_NONE,
		.coming_to = REPLAY_NONE,
		.poll_target = REPLAY_NONE,
		.wait_row = REPLAY_NONE,
		.polls = REPLAY_NONE,
		.phase = SIM_TRIES};
	graph_sim_find_home(s, actor);
	if (a->cursor == s->r->moment.first)
		a->cursor = REPLAY_NONE;
	if (a->cursor == REPLAY_NONE)
		return false;
	step = replay_step(s->r, a->cursor);
	if (replay_class(step) == REPLAY_LINK) {
		await_link(s, actor);
		return true;
	}
	if (replay_class(step) == REPLAY_ABSOLUTE && !begins_with_wait(s, step)) {
		t = replay_own(s->r, step);
		s->res->nr_rootless += !(replay_flags(step) & GRAPH_START);
	}
	graph_sim_schedule(s, actor, t > s->now ? t : s->now);
	return true;
}

static bool has_elisions(const struct graph_scenario *edits)
{
	for (size_t i = 0; edits && i < edits->nr_edits; i++) {
		if (edits->edit[i].kind == GRAPH_EDIT_ELIDE_STATE)
			return true;
	}
	return false;
}

/* An actor that ever waits for something in a state that is elided never waits for it. */
static void find_needless(struct sim *s, uint32_t actor)
{
	for (uint32_t i = s->r->actor[actor].head; i != REPLAY_NONE && !s->status;) {
		const struct replay_step *step = replay_step(s->r, i);
		unsigned kind = replay_kind(step);
		uint64_t bits = 0;

		i = step->next;
		if ((kind != GRAPH_VERB_wait_empty && kind != GRAPH_VERB_wait_full) ||
			!sim_elides(s, step->state))
			continue;
		base_map_get(&s->needless, actor, step->queue, &bits);
		bits |= kind == GRAPH_VERB_wait_full ? 2 : 1;
		s->status = base_map_put(&s->needless, actor, step->queue, bits);
		if (s->status)
			s->status = base_fail(s->err, s->status, "no memory for a simulation");
	}
}

static void replay_run_init(struct sim *s, const struct graph_scenario *edits)
{
	const struct graph_replay *r = s->r;
	uint32_t nr_recorded = recorded_processors(r);

	s->used_bytes = r->memory_bytes;
	s->nr_processors = nr_recorded;
	s->places = r->learned && !s->assumed.any_processor;
	s->current = REPLAY_NONE;
	s->now = r->start_ns;
	s->nr_scales = nr_scales(r, edits);
	s->actor = graph_sim_need(s, r->nr_actors, sizeof *s->actor);
	s->queue = graph_sim_need(s, r->nr_queues, sizeof *s->queue);
	s->heap = graph_sim_need(s, r->nr_actors, sizeof *s->heap);
	s->link_ns = graph_sim_need(s, r->nr_links, sizeof *s->link_ns);
	s->scale = graph_sim_need(s, s->nr_scales, sizeof *s->scale);
	s->elides = graph_sim_need(s, s->nr_scales, sizeof *s->elides);
	if (s->status)
		return;
	for (size_t i = 0; i < r->nr_queues; i++)
		init_queue(&s->queue[i], &r->queue[i]);
	for (size_t i = 0; i < s->nr_scales; i++) {
		s->scale[i] = 1;
		s->elides[i] = false;
	}
	for (size_t i = 0; edits && i < edits->nr_edits && !s->status; i++)
		apply_edit(s, &edits->edit[i]);
	for (size_t i = 0; i < r->nr_links; i++)
		s->link_ns[i] = REPLAY_NOBODY;
	for (size_t i = 0; has_elisions(edits) && i < r->nr_actors; i++)
		find_needless(s, (uint32_t)i);
	graph_sim_init_processors(s, nr_recorded);
	graph_sim_init_quota(s);
	for (size_t i = 0; i < r->nr_actors && !s->status; i++) {
		s->actor[i] = (struct sim_actor){
			.cursor = REPLAY_NONE, .processor = REPLAY_NONE, .phase = SIM_UNBORN};
	}
	for (size_t i = 0; i < r->nr_actors && !s->status; i++) {
		if (!r->actor[i].waits_for_life && !place_actor(s, (uint32_t)i))
			end_actor(s, (uint32_t)i);
	}
}

static void declare(struct sim *s)
{
	struct graph_queue_options processor = {
		.latency_state = s->runnable_state, .processor = true};
	const struct graph_sink *out = s->out;

	for (size_t i = 0; out->state && i < s->r->nr_states && !s->status; i++)
		s->status = out->state(out->ctx, (uint32_t)i, s->r->executes[i], s->err);
	for (size_t i = 0; out->queue && i < s->r->nr_queues && !s->status; i++)
		s->status = out->queue(out->ctx, (uint32_t)i, &s->r->queue[i].o, s->err);
	for (uint32_t i = 0; out->queue && i < s->nr_processors && !s->status; i++)
		s->status = out->queue(out->ctx, (uint32_t)s->r->nr_queues + i, &processor, s->err);
}

/* ---- after the last -------------------------------------------------------------------------- */

/*
 * The first is the earliest that waits for what it had at once in the run: there the order of
 * things is another. Many others just have nothing to do any more.
 */
static void count_stuck(struct sim *s)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < s->r->nr_actors; i++) {
		const struct sim_actor *a = &s->actor[i];
		bool anew = a->listed && !a->waits;
		uint64_t rank = anew ? a->wait_begin_ns / 2 : UINT64_MAX / 2 + a->wait_begin_ns / 2;

		if (a->phase == SIM_ENDED || a->phase == SIM_UNBORN)
			continue;
		s->res->nr_stuck++;
		if (rank >= least)
			continue;
		least = rank;
		s->res->first_stuck = s->r->actor[i].of;
		s->res->first_stuck_queue = a->listed ? a->queue : REPLAY_NONE;
		s->res->first_stuck_ns = a->listed ? a->wait_begin_ns : 0;
		s->res->first_stuck_anew = anew;
	}
}

static void find_end(struct sim *s)
{
	uint32_t end = s->r->end_actor;

	for (size_t i = 0; i < s->r->nr_actors; i++) {
		if (end != GRAPH_ANY_ACTOR && end < s->r->nr_lives && end != s->r->actor[i].of)
			continue;
		if (s->actor[i].t_last > s->res->end_ns)
			s->res->end_ns = s->actor[i].t_last;
		if (s->r->actor[i].t_last > s->res->recorded_end_ns)
			s->res->recorded_end_ns = s->r->actor[i].t_last;
	}
}

static void replay_run_fini(struct sim *s)
{
	for (size_t i = 0; s->queue && i < s->r->nr_queues; i++) {
		graph_replay_ring_fini(&s->queue[i].keyed);
		graph_replay_ring_fini(&s->queue[i].owed);
	}
	base_free(s->actor);
	base_free(s->queue);
	base_free(s->heap);
	base_free(s->link_ns);
	base_free(s->scale);
	base_free(s->elides);
	base_map_fini(&s->needless);
	base_map_fini(&s->promised_keys);
	graph_sim_fini_processors(s);
	base_free(s->unended);
}

enum base_status graph_replay_run(const struct graph_replay *r, const struct graph_scenario *edits,
	const struct graph_sink *out, struct graph_replay_result *ret, struct base_err *err)
{
	static const struct graph_replay_assumed usual = {0};

	return graph_replay_run_as(r, edits, &usual, out, ret, err);
}

static enum base_status replay_run_run(const struct graph_replay *r,
	const struct graph_scenario *edits, const struct graph_replay_assumed *assumed,
	const struct graph_sink *out, bool gives, struct replay_given *given,
	struct graph_replay_result *ret, struct base_err *err)
{
	struct sim s = {.r = r,
		.out = out,
		.err = err,
		.res = ret,
		.assumed = *assumed,
		.gives = gives,
		.given = given};
	struct sim_event e;

	*ret = (struct graph_replay_result){.start_ns = r->start_ns,
		.first_stuck = GRAPH_ANY_ACTOR,
		.first_stuck_queue = REPLAY_NONE,
		.nr_unexplained = r->nr_unexplained,
		.unexplained_ns = r->unexplained_ns};
	if (r->failed)
		return base_fail(err, r->failed, "replay's log failed before");
	s.wake_ns = (uint64_t)((double)r->wake_ns * (1 + assumed->wake_more));
	s.wake_busy_ns = (uint64_t)((double)r->wake_busy_ns * (1 + assumed->wake_more));
	replay_run_init(&s, edits);
	if (!s.status && out)
		declare(&s);
	do {
		while (!s.status && next_event_of_quota(&s, &e)) {
			s.now = e.t;
			s.current = e.actor;
			handle(&s, e.actor);
		}
	} while (graph_sim_give(&s));
	if (!s.status) {
		count_stuck(&s);
		find_end(&s);
	}
	ret->nr_processors = s.nr_processors;
	replay_run_fini(&s);
	return s.status;
}

enum base_status graph_replay_run_as(const struct graph_replay *r,
	const struct graph_scenario *edits, const struct graph_replay_assumed *assumed,
	const struct graph_sink *out, struct graph_replay_result *ret, struct base_err *err)
{
	return replay_run_run(r, edits, assumed, out, r->nr_given, NULL, ret, err);
}

enum base_status graph_replay_run_giving(const struct graph_replay *r, struct replay_given *given,
	struct graph_replay_result *ret, struct base_err *err)
{
	static const struct graph_replay_assumed usual = {0};

	return replay_run_run(r, NULL, &usual, NULL, true, given, ret, err);
}

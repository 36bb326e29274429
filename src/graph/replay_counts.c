/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_counts.c - what condition variables count. A consumer that finds its ring filled does not
 * wait, and nothing in the log says that it needs what the producer put there before: data in plain
 * memory. But mostly a signal says that there is one more of something, and an actor that took the
 * lock at a place where somebody waited for that takes one. Such a number is followed through the
 * log: from the first wait on, when there was none. Where it explains the run (it was never above 0
 * when a wait began, and there always was one to take), each of these sections takes a unit in the
 * simulation, with the lock and whether it waited or not, and no signal is anybody's in particular.
 * Where it does not (a state, a barrier, a drained list), waits need the very signals of the run.
 *
 * An actor that takes such a unit and signals, each time, a condition variable that nobody waited
 * for, tells of room in what was never full. How much it holds nobody knows: at least what it held
 * in the run.
 */
#include "graph/replay_priv.h"

enum {
	SECTIONS = 4, /* locks that an actor has at once; more are not followed */
	/* So many may have been taken before they were signalled: that is done after unlocking. */
	EARLY = 8,
	BROADCAST = 1 << 30, /* to all: from then on there is enough */
	ROOMY = 2,           /* what was never full holds so many times what it held */
};

struct section {           /* between taking a lock and giving it back */
	uint32_t lock;     /* REPLAY_NONE: free row */
	uint32_t state;    /* says where it was taken */
	uint32_t step;     /* that took it */
	uint32_t variable; /* one of its units goes; REPLAY_NONE */
};

struct follow { /* of an actor */
	struct section section[SECTIONS];
	uint32_t last;     /* step that took the lock of its last section; REPLAY_NONE */
	uint32_t variable; /* that it waits for; REPLAY_NONE */
	uint32_t lock, state;
	bool signalled;
};

struct variable { /* by queue */
	uint32_t lock;
	int64_t units, most;
	uint64_t nr_takes, nr_single; /* ... before a broadcast */
	uint32_t since;               /* step: the first wait */
	uint32_t room, room_in;       /* which tells of room in it; or it in which; REPLAY_NONE */
	bool active, wrong;
	bool told_of;    /* a queue of signals: of which */
	uint32_t signal; /* ... of which variable */
};

struct counts {
	struct graph_replay *r;
	/* [step]: its actor; of a lock, the variable of which its section takes, of a signal, the
	 * step that took its section's lock, or of the one before */
	uint32_t *owner, *found;
	struct follow *follow;
	struct variable *variable;
	struct base_map places; /* state of a lock's holder -> variable */
	size_t nr_steps, nr_actors;
	size_t owner_capacity, found_capacity, follow_capacity, variable_capacity;
	enum base_status status;
	struct base_err *err;
};

static bool replay_counts_is_lock(const struct graph_replay *r, uint32_t queue)
{
	const struct graph_queue_options *o = &r->queue[queue].o;

	return o->initial == 1 && o->discipline != GRAPH_POOL && !o->processor;
}

static bool is_variable(const struct graph_replay *r, const struct replay_step *step)
{
	return replay_kind(step) == GRAPH_VERB_wait_empty && r->queue[step->queue].o.counts;
}

static struct section *section_of(struct follow *f, uint32_t lock)
{
	for (unsigned i = 0; i < SECTIONS; i++) {
		if (f->section[i].lock == lock)
			return &f->section[i];
	}
	return NULL;
}

/* The variable that one waits for at that place; REPLAY_NONE. */
static uint32_t awaited_at(const struct counts *c, uint32_t state)
{
	uint64_t variable = REPLAY_NONE;

	base_map_get(&c->places, 0, state, &variable);
	return (uint32_t)variable;
}

/* ---- the first time: where is waited for what ------------------------------------------------ */

static void note_place(struct counts *c, uint32_t state, uint32_t variable)
{
	uint32_t before = awaited_at(c, state);

	if (before == REPLAY_NONE)
		c->status = base_map_put(&c->places, 0, state, variable);
	else if (before != variable)
		c->variable[variable].wrong = true;
	if (c->status)
		c->status = base_fail(c->err, c->status, "no memory for replay's log");
}

static void take_lock(struct counts *c, struct follow *f, uint32_t i, bool first)
{
	const struct replay_step *step = replay_step(c->r, i);
	bool again = f->variable != REPLAY_NONE && f->lock == step->queue;
	struct section *s = section_of(f, step->queue);
	uint32_t of;

	s = s ? s : section_of(f, REPLAY_NONE);
	if (!s)
		return;
	*s = (struct section){.lock = step->queue,
		.state = again ? f->state : step->state,
		.step = i,
		.variable = REPLAY_NONE};
	of = awaited_at(c, s->state);
	if (!first && of != REPLAY_NONE && c->variable[of].active &&
		c->variable[of].lock == step->queue && (!again || f->signalled))
		s->variable = of;
	if (again)
		f->variable = REPLAY_NONE;
}

static void end_section(struct counts *c, struct follow *f, struct section *s)
{
	struct variable *v;

	if (s->variable != REPLAY_NONE) {
		v = &c->variable[s->variable];
		v->nr_takes++;
		v->nr_single += v->units < BROADCAST / 2;
		v->units--;
		v->wrong |= v->units < -EARLY;
		c->found[s->step] = s->variable;
	}
	f->last = s->step;
	s->lock = REPLAY_NONE;
}

/* It gives the lock back and waits: step i. */
static void replay_counts_begin_wait(struct counts *c, struct follow *f, uint32_t i, bool first)
{
	const struct replay_step *step = replay_step(c->r, i);
	uint32_t variable = replay_step(c->r, step->next)->queue;
	struct section *s = section_of(f, step->queue);
	struct variable *v = &c->variable[variable];

	if (!s) {
		v->wrong = true;
		return;
	}
	f->variable = variable;
	f->lock = step->queue;
	f->state = s->state;
	f->signalled = false;
	s->lock = REPLAY_NONE;
	if (first) {
		v->wrong |= v->lock != REPLAY_NONE && v->lock != f->lock;
		v->lock = f->lock;
		note_place(c, s->state, variable);
		return;
	}
	v->wrong |= v->active && v->units > 0;
	v->units = v->active ? v->units : 0;
	v->since = v->active ? v->since : i;
	v->active = true;
}

static void set_units(struct graph_replay *r, struct replay_step *step, uint32_t n)
{
	step->bits &= ~(uint32_t)REPLAY_ALL_UNITS;
	if (step->bits & REPLAY_WIDE) {
		r->wide[step->arg].need = n;
		r->wide[step->arg].n = n;
	} else {
		step->arg = n;
	}
}

/* The one that it is in, when it is in one only; else the last. */
static uint32_t section_now(const struct follow *f)
{
	uint32_t found = REPLAY_NONE;

	for (unsigned i = 0; i < SECTIONS; i++) {
		if (f->section[i].lock == REPLAY_NONE)
			continue;
		if (found != REPLAY_NONE)
			return REPLAY_NONE;
		found = f->section[i].step;
	}
	return found != REPLAY_NONE ? found : f->last;
}

/* Nobody needs what was signalled before somebody waited. */
static void signal(struct counts *c, const struct follow *f, uint32_t i, bool first)
{
	struct replay_step *step = replay_step(c->r, i);
	struct variable *v = &c->variable[step->queue];

	if (first)
		return;
	c->found[i] = section_now(f);
	if (step->bits & REPLAY_ALL_UNITS)
		set_units(c->r, step, BROADCAST);
	if (!v->active) {
		set_units(c->r, step, 0);
		return;
	}
	v->units += (int64_t)replay_need(c->r, step);
	v->most = v->units > v->most && v->units < BROADCAST ? v->units : v->most;
}

static void follow_step(struct counts *c, uint32_t i, bool first)
{
	const struct graph_replay *r = c->r;
	const struct replay_step *step = replay_step(r, i);
	struct follow *f = &c->follow[c->owner[i]];
	unsigned kind = replay_kind(step);
	uint32_t next = replay_next(r, step);
	struct section *s;

	if (kind == GRAPH_VERB_dequeue && replay_counts_is_lock(r, step->queue)) {
		take_lock(c, f, i, first);
	} else if (kind == GRAPH_VERB_dequeue && f->variable != REPLAY_NONE) {
		struct variable *v = &c->variable[step->queue];

		v->told_of = true;
		v->signal = f->variable;
		f->signalled = true;
	} else if (kind == GRAPH_VERB_enqueue && r->queue[step->queue].o.counts) {
		signal(c, f, i, first);
	} else if (kind == GRAPH_VERB_enqueue && replay_counts_is_lock(r, step->queue)) {
		s = section_of(f, step->queue);
		if (next != REPLAY_NONE && is_variable(r, replay_step(r, next)))
			replay_counts_begin_wait(c, f, i, first);
		else if (s)
			end_section(c, f, s);
	}
}

static void follow_all(struct counts *c, bool first)
{
	for (size_t i = 0; i < c->nr_actors; i++) {
		c->follow[i] = (struct follow){.variable = REPLAY_NONE, .last = REPLAY_NONE};
		for (unsigned k = 0; k < SECTIONS; k++)
			c->follow[i].section[k].lock = REPLAY_NONE;
	}
	for (size_t i = 0; i < c->nr_steps && !c->status; i++) {
		if (c->owner[i] != REPLAY_NONE)
			follow_step(c, (uint32_t)i, first);
	}
}

/* ---- what comes of it ------------------------------------------------------------------------ */

/* In what is simulated, no more may be taken than there ever is. */
static bool explains(const struct counts *c, uint32_t variable)
{
	const struct variable *v = &c->variable[variable];

	return v->active && !v->wrong && v->units >= 0 && v->nr_takes;
}

static bool is_signal(const struct counts *c, uint32_t i)
{
	const struct replay_step *step = replay_step(c->r, i);

	return c->owner[i] != REPLAY_NONE && replay_kind(step) == GRAPH_VERB_enqueue &&
	       c->r->queue[step->queue].o.counts;
}

/* Its signaller has just taken a unit of what another one counts. */
static void note_room(struct counts *c, uint32_t i)
{
	uint32_t section = c->found[i], variable = replay_step(c->r, i)->queue;
	uint32_t of = section != REPLAY_NONE ? c->found[section] : REPLAY_NONE;
	struct variable *v = &c->variable[variable];

	if (v->lock != REPLAY_NONE || of == REPLAY_NONE || !explains(c, of))
		return;
	v->wrong |= v->room_in != REPLAY_NONE && v->room_in != of;
	v->room_in = of;
	v->nr_takes++;
	set_units(c->r, replay_step(c->r, i), 1);
}

/* Each who takes one says so, once. */
static bool tells_of_room(const struct counts *c, const struct variable *v)
{
	const struct variable *in = &c->variable[v->room_in];

	return !v->wrong && v->nr_takes >= in->nr_single && v->nr_takes <= in->nr_takes;
}

/* The section that signals one more, and takes none, has filled room. */
static void fill_room(struct counts *c, uint32_t i)
{
	const struct replay_step *step = replay_step(c->r, i);
	const struct variable *v = &c->variable[step->queue];
	uint32_t section = c->found[i];

	if (v->room != REPLAY_NONE && v->since < i && replay_need(c->r, step) == 1 &&
		section != REPLAY_NONE && c->found[section] == REPLAY_NONE &&
		replay_step(c->r, section)->queue == v->lock)
		c->found[section] = v->room;
}

static void replay_counts_find_room(struct counts *c)
{
	struct graph_replay *r = c->r;

	for (uint32_t i = 0; i < c->nr_steps; i++) {
		if (is_signal(c, i))
			note_room(c, i);
	}
	for (uint32_t i = 0; i < r->nr_queues; i++) {
		struct variable *v = &c->variable[i];

		if (v->room_in == REPLAY_NONE)
			continue;
		v->active = tells_of_room(c, v);
		if (v->active) {
			c->variable[v->room_in].room = i;
			r->queue[i].room = ROOMY * (uint64_t)c->variable[v->room_in].most;
		}
	}
	for (uint32_t i = 0; i < c->nr_steps; i++) {
		if (is_signal(c, i))
			fill_room(c, i);
	}
}

/* The section's lock comes with a unit. */
static void take_unit(struct counts *c, uint32_t i)
{
	struct graph_replay *r = c->r;
	struct replay_step *lock = replay_step(r, i), take = {.next = lock->next,
							      .state = lock->state,
							      .queue = c->found[i],
							      .arg = 1};
	uint32_t more = (uint32_t)GRAPH_MORE << REPLAY_FLAGS_SHIFT, new;

	take.bits = GRAPH_VERB_dequeue | (lock->bits & more) |
		    (uint32_t)REPLAY_FOLLOWS << REPLAY_CLASS_SHIFT;
	c->status = graph_replay_new_step(r, &take, &new, c->err);
	if (c->status)
		return;
	lock = replay_step(r, i);
	lock->next = new;
	lock->bits |= more;
	if (r->actor[c->owner[i]].tail == i)
		r->actor[c->owner[i]].tail = new;
}

static void replay_counts_apply(struct counts *c)
{
	struct graph_replay *r = c->r;

	for (size_t i = 0; i < c->nr_steps && !c->status; i++) {
		struct replay_step *step = replay_step(r, (uint32_t)i);

		if (c->owner[i] == REPLAY_NONE)
			continue;
		if (is_signal(c, (uint32_t)i) && !explains(c, step->queue))
			set_units(r, step, 0);
		else if (!is_signal(c, (uint32_t)i) && c->found[i] != REPLAY_NONE &&
			 explains(c, c->found[i]))
			take_unit(c, (uint32_t)i);
	}
	for (size_t i = 0; i < r->nr_queues; i++) {
		const struct variable *v = &c->variable[i];

		if (!v->told_of || !explains(c, v->signal))
			continue;
		r->queue[i].ignored = true;
		r->queue[v->signal].nr_waits += r->queue[i].nr_waits;
		r->queue[v->signal].nr_asleep += r->queue[i].nr_asleep;
	}
}

static void find_owners(struct counts *c)
{
	const struct graph_replay *r = c->r;

	for (size_t i = 0; i < c->nr_steps; i++)
		c->owner[i] = c->found[i] = REPLAY_NONE;
	for (size_t a = 0; a < c->nr_actors; a++) {
		uint32_t i = r->actor[a].head;

		if (i == r->moment.first)
			continue;
		for (; i != REPLAY_NONE; i = replay_next(r, replay_step(r, i))) {
			if (replay_kind(replay_step(r, i)) != REPLAY_LINK_OUT)
				c->owner[i] = (uint32_t)a;
		}
	}
}

static enum base_status replay_counts_make(struct counts *c)
{
	struct graph_replay *r = c->r;
	enum base_status s = graph_replay_mem_resize(
		r, &c->owner, &c->owner_capacity, c->nr_steps + 1, sizeof *c->owner, c->err);

	if (!s)
		s = graph_replay_mem_resize(r, &c->found, &c->found_capacity, c->nr_steps + 1,
			sizeof *c->found, c->err);
	if (!s)
		s = graph_replay_mem_resize(r, &c->follow, &c->follow_capacity, c->nr_actors + 1,
			sizeof *c->follow, c->err);
	if (!s)
		s = graph_replay_mem_resize(r, &c->variable, &c->variable_capacity,
			r->nr_queues + 1, sizeof *c->variable, c->err);
	for (size_t i = 0; !s && i < r->nr_queues; i++)
		c->variable[i] = (struct variable){
			.lock = REPLAY_NONE, .room = REPLAY_NONE, .room_in = REPLAY_NONE};
	return s;
}

static void replay_counts_fini(struct counts *c)
{
	c->r->memory_bytes -=
		c->owner_capacity * sizeof *c->owner + c->found_capacity * sizeof *c->found +
		c->follow_capacity * sizeof *c->follow + c->variable_capacity * sizeof *c->variable;
	base_free(c->owner);
	base_free(c->found);
	base_free(c->follow);
	base_free(c->variable);
	base_map_fini(&c->places);
}

static bool has_variables(const struct graph_replay *r)
{
	for (size_t i = 0; i < r->nr_queues; i++) {
		if (r->queue[i].o.counts)
			return true;
	}
	return false;
}

enum base_status graph_replay_learn_counts(struct graph_replay *r, struct base_err *err)
{
	struct counts c = {.r = r, .nr_steps = r->nr_steps, .nr_actors = r->nr_actors, .err = err};

	if (r->counted || !has_variables(r))
		return BASE_OK;
	r->counted = true;
	c.status = replay_counts_make(&c);
	if (!c.status) {
		find_owners(&c);
		follow_all(&c, true);
		follow_all(&c, false);
		if (!c.status)
			replay_counts_find_room(&c);
		if (!c.status)
			replay_counts_apply(&c);
	}
	replay_counts_fini(&c);
	return c.status;
}

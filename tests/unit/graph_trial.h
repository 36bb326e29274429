/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_trial.h - random runs for tests of graph: chaos as in a broken trace, and simulated
 * programs whose times fit.
 */
#ifndef LONGPOLE_TESTS_GRAPH_TRIAL_H
#define LONGPOLE_TESTS_GRAPH_TRIAL_H

#include "graph/graph.h"
#include "graph/priv.h"
#include "graph_reference_solve.h"

#include <stdlib.h>

enum { EVENTS_MAX = 600, EDITS_MAX = 3 };

struct event {
	enum ref_verb verb;
	struct graph_verb v;
	uint32_t from; /* of a link */
};

/* One random run: what exists, what is asked, what happens. */
struct trial {
	uint32_t random;
	uint32_t nr_actors, nr_states, nr_queues;
	struct graph_queue_options queue[REF_QUEUES];
	struct graph_edit edit[REF_LANES][EDITS_MAX];
	struct graph_scenario scenario[REF_LANES];
	struct graph_options options;
	struct event event[EVENTS_MAX];
	int nr_events;
	bool one_start, has_optional, has_rename;
	uint32_t end_actor;
	uint64_t now_ns,
		path_ns[REF_ACTORS]; /* somebody has followed the actor's path up to then */
};

static inline uint32_t below(struct trial *t, uint32_t n)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 17;
	t->random ^= t->random << 5;
	return n ? (t->random >> 3) % n : 0;
}

/* ---- making up a run ------------------------------------------------------------------------- */

static inline void make_scenarios(struct trial *t)
{
	static const double factor[] = {0, 0.5, 0.25, 0.75, 2, 1.5};
	uint32_t nr = below(t, 3) ? below(t, 6) : below(t, GRAPH_LANES_MAX - 2);

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t nr_edits = below(t, EDITS_MAX + 1);

		for (uint32_t k = 0; k < nr_edits; k++) {
			bool scale = below(t, 2);

			t->edit[i][k] = (struct graph_edit){
				.kind = scale         ? (below(t, 4) ? GRAPH_EDIT_SCALE_STATE
								     : GRAPH_EDIT_ELIDE_STATE)
					: below(t, 2) ? GRAPH_EDIT_IGNORE_QUEUE
						      : GRAPH_EDIT_UNBOUND_QUEUE,
				.id = below(t, scale ? REF_STATES : REF_QUEUES),
				.factor = factor[below(t, BASE_COUNT(factor))],
			};
		}
		t->scenario[i] = (struct graph_scenario){t->edit[i], nr_edits};
	}
	t->options = (struct graph_options){
		.size = sizeof t->options,
		.scenario = t->scenario,
		.nr_scenarios = nr,
		.keep_path = below(t, 2),
		.runner_up = nr < 29 && below(t, 2),
		.max_queued = below(t, 4) ? 0 : 2 + below(t, 4),
	};
}

static inline void make_world(struct trial *t, uint32_t seed)
{
	memset(t, 0, sizeof *t);
	t->random = seed * 2654435761u + 1;
	for (int i = 0; i < 8; i++)
		below(t, 2);
	t->nr_actors = 1 + below(t, REF_ACTORS);
	t->nr_states = 3 + below(t, REF_STATES - 2);
	t->nr_queues = 1 + below(t, REF_QUEUES);
	t->one_start = true;
	t->has_rename = false;
	t->end_actor = below(t, 3) ? GRAPH_ANY_ACTOR : below(t, t->nr_actors);
	for (uint32_t q = 0; q < t->nr_queues; q++)
		t->queue[q] = (struct graph_queue_options){
			.capacity = below(t, 2) ? 1 + below(t, 6) : 0,
			.initial = below(t, 3)   ? 0
				   : below(t, 5) ? below(t, 5)
						 : GRAPH_UNLIMITED,
			.latency_state = below(t, t->nr_states),
			.discipline = below(t, 5) ? GRAPH_FIFO : GRAPH_LIFO,
			.processor = !below(t, 6),
		};
	make_scenarios(t);
}

static inline struct event *add_event(
	struct trial *t, enum ref_verb verb, uint64_t time, uint32_t actor)
{
	struct event *e;

	if (t->nr_events == EVENTS_MAX)
		t->nr_events--;
	e = &t->event[t->nr_events++];
	*e = (struct event){.verb = verb};
	e->v.time_ns = time;
	e->v.actor = actor;
	e->v.state = below(t, t->nr_states);
	return e;
}

static inline uint32_t random_flags(struct trial *t)
{
	uint32_t flags = 0;

	if (!below(t, 8))
		flags |= GRAPH_MORE;
	if (!below(t, 8))
		flags |= GRAPH_OPTIONAL;
	if (!below(t, 10))
		flags |= GRAPH_LAST;
	if (!below(t, 14))
		flags |= GRAPH_BACK;
	if (!below(t, 10))
		flags |= GRAPH_EXPLAINED | (below(t, 2) ? GRAPH_TIMED_OUT : 0);
	if (!below(t, 20))
		flags |= GRAPH_ASIDE;
	t->has_optional |= (flags & GRAPH_OPTIONAL) != 0;
	return flags;
}

/* A clock's tick, known of only now: not of a time up to which somebody followed the clock. */
static inline void date(struct trial *t, struct event *e)
{
	uint64_t now = e->v.time_ns > t->now_ns ? e->v.time_ns : t->now_ns;
	uint64_t since = now - t->path_ns[e->v.actor];

	t->now_ns = now;
	if (e->verb == REF_LINK)
		t->path_ns[e->from] = now;
	if (e->v.flags & GRAPH_ASIDE)
		t->path_ns[e->v.actor] = now;
	if (e->verb != REF_ENQUEUE || t->queue[e->v.queue].capacity || below(t, 4))
		return;
	e->v.flags = GRAPH_DATED;
	e->v.time_ns = now - below(t, 1 + (since < 20 ? (uint32_t)since : 20));
}

/* Anything by anybody: what a broken trace may look like. */
static inline void make_chaos(struct trial *t, int nr)
{
	uint64_t time = below(t, 5);

	add_event(t, REF_STATE, time, 0)->v.flags = GRAPH_START;
	for (int i = 1; i < nr; i++) {
		struct event *e;

		if (below(t, 3))
			time += below(t, 8);
		/* (one after the other: compilers take arguments in different orders) */
		uint32_t actor = below(t, t->nr_actors);
		e = add_event(t, (enum ref_verb)below(t, REF_VERBS), time, actor);
		if (!below(t, 30))
			e->v.time_ns = time - below(t, (uint32_t)time + 1);
		e->v.queue = below(t, t->nr_queues);
		t->has_rename |= e->verb == REF_RENAME;
		e->v.n = below(t, 12) ? (int64_t)below(t, 5) : GRAPH_ALL;
		e->v.flags = random_flags(t);
		e->from = below(t, t->nr_actors);
		date(t, e);
		if (!below(t, 60)) {
			e->v.flags |= GRAPH_START;
			t->one_start = false;
		}
	}
}

/* ---- a simulated program: its times fit ------------------------------------------------------ */

struct thread {
	uint64_t next;
	bool exists, blocked, has_op;
	enum ref_verb op;
	uint32_t queue;
	int64_t n;
	uint32_t flags;
};

struct program {
	struct thread thread[REF_ACTORS];
	int64_t units[REF_QUEUES];
};

static inline bool can(const struct trial *t, const struct program *p, const struct thread *th)
{
	int64_t capacity = (int64_t)t->queue[th->queue].capacity;

	if (th->op == REF_DEQUEUE || th->op == REF_PEEK)
		return p->units[th->queue] >= th->n;
	if (th->op == REF_ENQUEUE || th->op == REF_RESERVE)
		return !capacity || p->units[th->queue] + th->n <= capacity;
	return true;
}

static inline void perform(struct trial *t, struct program *p, uint32_t a, uint64_t now)
{
	struct thread *th = &p->thread[a];
	struct event *e = add_event(t, th->op, now, a);

	e->v.queue = th->queue;
	e->v.n = th->n;
	e->v.flags = th->flags;
	if (!below(t, 4))
		date(t, e);
	if (th->op == REF_ENQUEUE)
		p->units[th->queue] += th->n;
	else if (th->op == REF_DEQUEUE)
		p->units[th->queue] -= th->n;
	th->has_op = false;
	th->next = now + below(t, 10);
}

static inline void choose_op(struct trial *t, struct thread *th)
{
	static const enum ref_verb op[] = {REF_ENQUEUE, REF_ENQUEUE, REF_ENQUEUE, REF_DEQUEUE,
		REF_DEQUEUE, REF_DEQUEUE, REF_PEEK, REF_RESERVE, REF_STATE};

	th->has_op = true;
	th->op = op[below(t, BASE_COUNT(op))];
	th->queue = below(t, t->nr_queues);
	th->n = 1 + below(t, 2);
	th->flags = !below(t, 10) ? GRAPH_OPTIONAL : 0;
	t->has_optional |= th->flags != 0;
}

static inline void block(struct trial *t, struct thread *th, uint32_t a, uint64_t now)
{
	enum ref_verb wait =
		th->op == REF_DEQUEUE || th->op == REF_PEEK ? REF_WAIT_EMPTY : REF_WAIT_FULL;
	struct event *e = add_event(t, below(t, 4) ? wait : REF_WAIT, now, a);

	e->v.queue = th->queue;
	e->v.n = th->n;
	th->blocked = true;
}

static inline void wake(struct trial *t, struct program *p, uint64_t now)
{
	for (uint32_t a = 0; a < t->nr_actors; a++) {
		struct thread *th = &p->thread[a];

		if (th->blocked && can(t, p, th)) {
			th->blocked = false;
			th->next = now + below(t, 4);
		}
	}
}

static inline struct thread *runnable(struct trial *t, struct program *p)
{
	struct thread *best = NULL;

	for (uint32_t a = 0; a < t->nr_actors; a++) {
		struct thread *th = &p->thread[a];

		if (th->exists && !th->blocked && (!best || th->next < best->next))
			best = th;
	}
	return best;
}

static inline void run_thread(struct trial *t, struct program *p, uint32_t a, uint64_t now)
{
	struct thread *th = &p->thread[a];
	uint32_t child = below(t, t->nr_actors);
	bool woken = th->has_op;

	if (!woken && !p->thread[child].exists) {
		struct event *e = add_event(t, REF_LINK, now, child);

		e->from = a;
		date(t, e);
		p->thread[child] = (struct thread){.exists = true, .next = now + below(t, 5)};
		return;
	}
	if (!woken)
		choose_op(t, th);
	if (can(t, p, th)) {
		perform(t, p, a, now);
		wake(t, p, now);
	} else if (woken) {
		th->blocked = true; /* somebody else was faster */
	} else {
		block(t, th, a, now);
	}
}

static inline void make_program(struct trial *t, int nr)
{
	struct program p = {0};
	uint64_t now = below(t, 20);

	for (uint32_t q = 0; q < t->nr_queues; q++) {
		if (t->queue[q].initial == GRAPH_UNLIMITED)
			t->queue[q].initial = 0;
		p.units[q] = (int64_t)t->queue[q].initial;
	}
	add_event(t, REF_STATE, now, 0)->v.flags = GRAPH_START;
	p.thread[0] = (struct thread){.exists = true, .next = now + below(t, 5)};
	while (t->nr_events < nr) {
		struct thread *th = runnable(t, &p);

		if (!th) {
			/* All wait for ever: one gives up. */
			th = &p.thread[below(t, t->nr_actors)];
			if (!th->exists)
				continue;
			th->blocked = th->has_op = false;
			th->next = now + below(t, 9);
			add_event(t, REF_STATE, th->next, (uint32_t)(th - p.thread));
		}
		now = th->next > now ? th->next : now;
		run_thread(t, &p, (uint32_t)(th - p.thread), now);
	}
}

static inline void make_trial(struct trial *t, uint32_t seed)
{
	make_world(t, seed);
	if (seed % 3 == 0)
		make_chaos(t, 1 + (int)below(t, seed % 2 ? 20 : 200));
	else
		make_program(t, 1 + (int)below(t, seed % 2 ? 20 : 300));
}

/* ---- playing it ------------------------------------------------------------------------------ */

static inline enum base_status play_one(
	struct graph *g, const struct event *e, struct base_err *err)
{
	switch (e->verb) {
	case REF_ENQUEUE:
		return graph_enqueue(g, &e->v, err);
	case REF_DEQUEUE:
		return graph_dequeue(g, &e->v, err);
	case REF_PEEK:
		return graph_peek(g, &e->v, err);
	case REF_RESERVE:
		return graph_reserve(g, &e->v, err);
	case REF_RESIZE:
		return graph_resize(g, &e->v, err);
	case REF_WAIT_EMPTY:
		return graph_wait_empty(g, &e->v, err);
	case REF_WAIT_FULL:
		return graph_wait_full(g, &e->v, err);
	case REF_WAIT:
		return graph_wait(g, &e->v, err);
	case REF_LINK:
		return graph_link(g, &e->v, e->from, err);
	case REF_RENAME:
		return graph_rename(g, &e->v, err);
	case REF_FORGET:
		return graph_forget(g, &e->v, err);
	case REF_STATE:
	case REF_VERBS:
		break;
	}
	return graph_state(g, &e->v, err);
}

static inline int nr_trials(int usual)
{
	const char *text = getenv("GRAPH_TRIALS"); /* for a longer hunt by hand */

	return text ? atoi(text) : usual;
}

#endif

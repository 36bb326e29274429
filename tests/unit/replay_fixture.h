/* SPDX-License-Identifier: Apache-2.0 */
/* replay_fixture.h - what the tests of replay share: an ear that keeps verbs, and a way to say
 * some. */
#ifndef LONGPOLE_TESTS_REPLAY_FIXTURE_H
#define LONGPOLE_TESTS_REPLAY_FIXTURE_H

#include "graph/replay.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- verbs, kept ----------------------------------------------------------------------------- */

struct heard {
	enum graph_verb_kind kind;
	struct graph_verb v;
	uint32_t from;
};

struct ear {
	struct graph_sink sink;
	struct heard *heard;
	size_t nr, capacity;
	struct graph *graph; /* hears it too */
	uint32_t nr_actors;
};

static inline enum base_status ear_state(
	void *ctx, uint32_t state, bool executes, struct base_err *err)
{
	struct ear *e = ctx;
	uint32_t id;

	(void)state;
	(void)executes;
	return e->graph ? graph_add_state(e->graph, &id, err) : BASE_OK;
}

static inline enum base_status ear_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	struct ear *e = ctx;
	uint32_t id;

	(void)queue;
	return e->graph ? graph_add_queue(e->graph, o, &id, err) : BASE_OK;
}

static inline enum base_status ear_verb(void *ctx, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from, struct base_err *err)
{
	struct ear *e = ctx;
	uint32_t id;

	if (e->nr == e->capacity) {
		e->capacity = e->capacity ? 2 * e->capacity : 64;
		e->heard = realloc(e->heard, e->capacity * sizeof *e->heard);
		assert_non_null(e->heard);
	}
	e->heard[e->nr++] = (struct heard){.kind = kind, .v = *v, .from = from};
	if (!e->graph)
		return BASE_OK;
	while (e->nr_actors <= v->actor) {
		assert_int_equal(graph_add_actor(e->graph, &id, err), BASE_OK);
		e->nr_actors++;
	}
	return graph_apply(e->graph, kind, v, from, err);
}

static inline void ear_init(struct ear *e, struct graph *g)
{
	*e = (struct ear){.graph = g,
		.sink = {.ctx = e, .state = ear_state, .queue = ear_queue, .verb = ear_verb}};
}

static inline void ear_fini(struct ear *e)
{
	free(e->heard);
	*e = (struct ear){0};
}

static inline struct graph_replay *new_replay(void)
{
	struct graph_replay *r;

	assert_int_equal(graph_replay_new(NULL, &r, NULL), BASE_OK);
	return r;
}

/* ---- saying verbs ---------------------------------------------------------------------------- */

enum { RUN, HOLD, WAIT, LATENCY, IDLE, RUNNABLE, OTHER, NR_STATES };

static inline void declare(const struct graph_sink *s)
{
	for (uint32_t i = 0; i < NR_STATES; i++)
		assert_int_equal(
			s->state(s->ctx, i, i == RUN || i == HOLD || i == OTHER, NULL), BASE_OK);
}

/* A replay with those options, and its sink, to which the states are declared. */
static inline const struct graph_sink *begin_replay(
	const struct graph_replay_options *o, struct graph_replay **ret)
{
	assert_int_equal(graph_replay_new(o, ret, NULL), BASE_OK);
	const struct graph_sink *s = graph_replay_sink(*ret);
	declare(s);
	return s;
}

static inline void declare_queue(
	const struct graph_sink *s, uint32_t id, struct graph_queue_options o)
{
	o.latency_state = o.processor ? RUNNABLE : LATENCY;
	assert_int_equal(s->queue(s->ctx, id, &o, NULL), BASE_OK);
}

static inline void say(const struct graph_sink *s, enum graph_verb_kind kind, uint64_t t,
	uint32_t actor, uint32_t queue, int64_t n, uint32_t state, uint32_t flags)
{
	struct graph_verb v = {.time_ns = t,
		.actor = actor,
		.state = state,
		.queue = queue,
		.flags = flags,
		.n = n};

	assert_int_equal(s->verb(s->ctx, kind, &v, 0, NULL), BASE_OK);
}

static inline void say_link(const struct graph_sink *s, uint64_t t, uint32_t actor, uint32_t state)
{
	struct graph_verb v = {.time_ns = t, .actor = actor, .state = state};

	assert_int_equal(s->verb(s->ctx, GRAPH_VERB_link, &v, 0, NULL), BASE_OK);
}

static inline uint64_t replay_end(
	const struct graph_replay *r, struct graph_edit edit, struct graph_replay_result *res)
{
	struct graph_scenario sc = {.edit = &edit, .nr_edits = 1};

	assert_int_equal(graph_replay_run(r, &sc, NULL, res, NULL), BASE_OK);
	return res->end_ns;
}

static const struct graph_edit nothing = {GRAPH_EDIT_SCALE_STATE, IDLE, 1, 0};

#endif

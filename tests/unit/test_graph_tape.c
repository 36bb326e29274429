/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_tape.c - what was told to a tape is what it plays: lanes as of a graph that heard it
 * itself, on random runs; every field of a verb; a tape that is given up; no memory. */
#include "graph/tape.h"

#include "test.h"

#include <stdlib.h>

enum { ACTORS = 6, STATES = 5, QUEUES = 3, VERBS = 300, RUNS = 400, LANES = 2 };

struct told { /* a sink that remembers */
	struct graph_sink sink;
	struct graph_verb verb[VERBS];
	size_t nr, nr_states, nr_queues;
};

static enum base_status told_state(void *ctx, uint32_t state, bool executes, struct base_err *err)
{
	(void)state;
	(void)executes;
	(void)err;
	((struct told *)ctx)->nr_states++;
	return BASE_OK;
}

static enum base_status told_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	(void)queue;
	(void)o;
	(void)err;
	((struct told *)ctx)->nr_queues++;
	return BASE_OK;
}

static enum base_status told_verb(void *ctx, enum graph_verb_kind kind, const struct graph_verb *v,
	uint32_t from_actor, struct base_err *err)
{
	struct told *t = ctx;

	(void)kind;
	(void)from_actor;
	(void)err;
	assert_true(t->nr < VERBS);
	t->verb[t->nr++] = *v;
	return BASE_OK;
}

static void listen_to(struct told *t)
{
	*t = (struct told){
		.sink = {.ctx = t, .state = told_state, .queue = told_queue, .verb = told_verb}};
}

static const struct graph_edit half[] = {{.kind = GRAPH_EDIT_SCALE_STATE, .id = 1, .factor = 0.5}};
static const struct graph_edit without[] = {{.kind = GRAPH_EDIT_IGNORE_QUEUE, .id = 1}};
static const struct graph_scenario scenario[LANES] = {{half, 1}, {without, 1}};

static uint32_t draw(uint32_t *random, uint32_t below)
{
	*random = *random * 1664525 + 1013904223;
	return (*random >> 8) % below;
}

/* A run of some threads that hand units to each other, told to the graph and to the tape. */
static void tell(struct graph *g, const struct graph_sink *sink, uint32_t random)
{
	static const enum graph_verb_kind kinds[] = {GRAPH_VERB_state, GRAPH_VERB_enqueue,
		GRAPH_VERB_dequeue, GRAPH_VERB_peek, GRAPH_VERB_wait_empty, GRAPH_VERB_wait,
		GRAPH_VERB_link, GRAPH_VERB_rename, GRAPH_VERB_forget, GRAPH_VERB_resize};
	uint32_t id, nr_states = 0, nr_queues = 0;
	uint64_t now = draw(&random, 2) ? 5 : UINT64_C(1) << 50;

	for (int i = 0; i < ACTORS; i++)
		assert_int_equal(graph_add_actor(g, &id, NULL), BASE_OK);
	for (int i = 0; i < VERBS; i++) {
		if (nr_states < STATES && (i < 2 || !draw(&random, 20))) { /* some come late */
			assert_int_equal(graph_add_state(g, &id, NULL), BASE_OK);
			assert_int_equal(sink->state(sink->ctx, nr_states++, true, NULL), BASE_OK);
		}
		if (nr_queues < QUEUES && (!i || !draw(&random, 20))) {
			struct graph_queue_options o = {.latency_state = draw(&random, nr_states),
				.discipline = (enum graph_discipline)draw(&random, 4),
				.initial = draw(&random, 2),
				.exchangeable = draw(&random, 2)};

			assert_int_equal(graph_add_queue(g, &o, &id, NULL), BASE_OK);
			assert_int_equal(sink->queue(sink->ctx, nr_queues++, &o, NULL), BASE_OK);
		}
		struct graph_verb v = {.time_ns = now += draw(&random, 1000),
			.actor = draw(&random, ACTORS),
			.state = draw(&random, nr_states),
			.queue = draw(&random, nr_queues),
			.flags = !draw(&random, 30) ? GRAPH_EXPLAINED : 0,
			.n = 1 + draw(&random, 3),
			.key = draw(&random, 3)};
		enum graph_verb_kind kind =
			i ? kinds[draw(&random, BASE_COUNT(kinds))] : GRAPH_VERB_state;
		uint32_t from = kind == GRAPH_VERB_link ? draw(&random, ACTORS) : 0;

		if (!i)
			v.flags = GRAPH_START;
		if (kind == GRAPH_VERB_dequeue && !draw(&random, 4))
			v.n = GRAPH_ALL;
		if (kind == GRAPH_VERB_wait || kind == GRAPH_VERB_state)
			v.queue = 0;
		assert_int_equal(graph_apply(g, kind, &v, from, NULL), BASE_OK);
		assert_int_equal(sink->verb(sink->ctx, kind, &v, from, NULL), BASE_OK);
	}
}

static void assert_same_lane(struct graph *a, struct graph *b, unsigned lane)
{
	struct graph_lane_result x, y;

	assert_int_equal(graph_lane(a, lane, &x, NULL), BASE_OK);
	assert_int_equal(graph_lane(b, lane, &y, NULL), BASE_OK);
	assert_int_equal(x.found, y.found);
	assert_true(x.length_ns == y.length_ns);
	assert_int_equal(x.start_ns, y.start_ns);
	assert_int_equal(x.end_ns, y.end_ns);
	assert_int_equal(x.nr_states, y.nr_states);
	for (size_t i = 0; i < x.nr_states; i++) {
		assert_int_equal(x.state[i].actor, y.state[i].actor);
		assert_int_equal(x.state[i].state, y.state[i].state);
		assert_true(x.state[i].path_ns == y.state[i].path_ns);
		assert_true(x.state[i].observed_ns == y.state[i].observed_ns);
		assert_int_equal(x.state[i].visits, y.state[i].visits);
	}
}

static void plays_what_was_told(void **state)
{
	struct graph_options o = {.size = sizeof o, .scenario = scenario, .nr_scenarios = LANES};
	unsigned nr_found = 0;

	(void)state;
	for (uint32_t seed = 0; seed < RUNS; seed++) {
		struct graph *g, *played;
		struct graph_tape *t;
		uint32_t end = seed % 3 ? seed % ACTORS : GRAPH_ANY_ACTOR;
		struct graph_lane_result r;

		assert_int_equal(graph_tape_new(NULL, SIZE_MAX, &t, NULL), BASE_OK);
		assert_int_equal(graph_new(&o, &g, NULL), BASE_OK);
		tell(g, graph_tape_sink(t), seed);
		assert_int_equal(graph_finish(g, end, NULL), BASE_OK);
		for (int twice = 0; twice < 2; twice++) {
			assert_int_equal(graph_tape_play(t, &o, end, &played, NULL), BASE_OK);
			for (unsigned l = 0; l <= LANES; l++)
				assert_same_lane(g, played, l);
			graph_free(played);
		}
		assert_int_equal(graph_lane(g, 1, &r, NULL), BASE_OK);
		nr_found += r.found && r.length_ns > 0;
		graph_free(g);
		graph_tape_free(t);
	}
	assert_true(nr_found > RUNS / 4);
}

/* ---- each field ------------------------------------------------------------------------------ */

/* The listener hears moments; of a verb's fields these come through it. */
struct heard {
	struct graph_listener listener;
	uint64_t end_ns[4];
	uint32_t actor[4];
	size_t nr;
};

static enum base_status on_moment(
	void *ctx, const struct graph_moment *m, uint32_t *ret_mark, struct base_err *err)
{
	struct heard *h = ctx;

	(void)err;
	assert_true(h->nr < BASE_COUNT(h->end_ns));
	h->end_ns[h->nr] = m->end_ns;
	h->actor[h->nr++] = m->actor;
	*ret_mark = 0;
	return BASE_OK;
}

/* A unit with a large key and tag, told of a moment before the last verb (GRAPH_DATED). */
static void keeps_every_field(void **state)
{
	static const struct graph_queue_options pipe = {.discipline = GRAPH_FIFO};
	static const struct graph_verb verb[] = {
		{.time_ns = UINT64_C(1) << 62, .flags = GRAPH_START},
		{.time_ns = (UINT64_C(1) << 62) - 7,
			.actor = 3,
			.flags = GRAPH_DATED,
			.tag = UINT32_MAX,
			.n = 70000,
			.key = UINT64_MAX},
		{.time_ns = (UINT64_C(1) << 62) + 1, .actor = 3, .queue = UINT32_MAX}};
	static const enum graph_verb_kind kind[] = {
		GRAPH_VERB_state, GRAPH_VERB_enqueue, GRAPH_VERB_state};
	struct heard h = {.listener = {.ctx = &h, .moment = on_moment}},
		     direct = {.listener = {.ctx = &direct, .moment = on_moment}};
	struct graph_options o = {.size = sizeof o, .listener = &direct.listener};
	struct graph_verb look = {.n = GRAPH_ALL};
	struct graph_tape *t;
	struct graph *g;
	uint64_t key, units;
	uint32_t id;

	(void)state;
	assert_int_equal(graph_new(&o, &g, NULL), BASE_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(graph_add_actor(g, &id, NULL), BASE_OK);
	assert_int_equal(graph_add_state(g, &id, NULL), BASE_OK);
	assert_int_equal(graph_add_queue(g, &pipe, &id, NULL), BASE_OK);
	for (size_t i = 0; i < BASE_COUNT(verb); i++)
		assert_int_equal(graph_apply(g, kind[i], &verb[i], 0, NULL), BASE_OK);
	graph_free(g);
	o.listener = &h.listener;
	assert_int_equal(graph_tape_new(NULL, SIZE_MAX, &t, NULL), BASE_OK);
	const struct graph_sink *s = graph_tape_sink(t);

	assert_int_equal(s->state(s->ctx, 0, true, NULL), BASE_OK);
	assert_int_equal(s->queue(s->ctx, 0, &pipe, NULL), BASE_OK);
	for (size_t i = 0; i < BASE_COUNT(verb); i++)
		assert_int_equal(s->verb(s->ctx, kind[i], &verb[i], 0, NULL), BASE_OK);
	assert_int_equal(graph_tape_play(t, &o, 0, &g, NULL), BASE_OK);
	assert_int_equal(graph_nr_actors(g), 4);
	assert_int_equal(graph_queue_units(g, 0), 70000);
	assert_true(graph_queue_next(g, &look, &key, &units));
	assert_true(key == UINT64_MAX && units == 70000);
	assert_int_equal(graph_queue_tag(g, &look), UINT32_MAX);
	assert_int_equal(h.nr, 3);
	assert_int_equal(h.nr, direct.nr);
	assert_memory_equal(h.end_ns, direct.end_ns, sizeof h.end_ns);
	assert_memory_equal(h.actor, direct.actor, sizeof h.actor);
	graph_free(g);
	graph_tape_free(t);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void too_long_is_given_up(void **state)
{
	struct graph_options o = {.size = sizeof o};
	static struct told heard;
	struct graph_tape *t;
	struct graph *g;

	(void)state;
	listen_to(&heard);
	assert_int_equal(graph_tape_new(&heard.sink, 1000, &t, NULL), BASE_OK);
	assert_true(graph_tape_is_whole(t));
	assert_int_equal(graph_new(&o, &g, NULL), BASE_OK);
	tell(g, graph_tape_sink(t), 1);
	assert_false(graph_tape_is_whole(t));
	assert_int_equal(heard.nr, VERBS);
	assert_int_equal(heard.nr_states, graph_nr_states(g));
	assert_int_equal(heard.nr_queues, graph_nr_queues(g));
	graph_free(g);
	graph_tape_free(t);
}

/* Without memory for it the tape is given up, and whoever listens hears all the same. */
static void out_of_memory(void **state)
{
	static const struct graph_queue_options any = {0};
	struct graph_options o = {.size = sizeof o};
	struct graph_verb v = {.flags = GRAPH_START};
	static struct told heard;
	struct graph_tape *t = NULL;

	(void)state;
	assert_int_equal(WITHOUT_NTH(1, graph_tape_new(NULL, SIZE_MAX, &t, NULL)), BASE_ERR_NOMEM);
	for (int queue = 0; queue < 2; queue++) {
		listen_to(&heard);
		assert_int_equal(graph_tape_new(&heard.sink, SIZE_MAX, &t, NULL), BASE_OK);
		const struct graph_sink *s = graph_tape_sink(t);

		if (queue)
			assert_int_equal(WITHOUT_NTH(1, s->queue(s->ctx, 0, &any, NULL)), BASE_OK);
		else
			assert_int_equal(WITHOUT_NTH(1, s->state(s->ctx, 0, true, NULL)), BASE_OK);
		assert_int_equal(s->verb(s->ctx, GRAPH_VERB_state, &v, 0, NULL), BASE_OK);
		assert_false(graph_tape_is_whole(t));
		assert_int_equal(heard.nr_queues + heard.nr_states, 1);
		assert_int_equal(heard.nr, 1);
		graph_tape_free(t);
	}
	assert_int_equal(graph_tape_new(NULL, SIZE_MAX, &t, NULL), BASE_OK);
	const struct graph_sink *s = graph_tape_sink(t);

	assert_int_equal(s->state(s->ctx, 0, true, NULL), BASE_OK);
	assert_int_equal(s->queue(s->ctx, 0, &any, NULL), BASE_OK);
	assert_int_equal(s->verb(s->ctx, GRAPH_VERB_state, &v, 0, NULL), BASE_OK);
	struct graph *g = NULL;

	SWEEP_ALLOCATIONS(3, graph_tape_play(t, &o, GRAPH_ANY_ACTOR, &g, NULL));
	graph_free(g);
	graph_tape_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plays_what_was_told),
		cmocka_unit_test(keeps_every_field),
		cmocka_unit_test(too_long_is_given_up),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

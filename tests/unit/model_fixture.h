/* SPDX-License-Identifier: Apache-2.0 */
/* model_fixture.h - traces by hand: objects, threads, and the end of the run. */
#ifndef LONGPOLE_TESTS_MODEL_FIXTURE_H
#define LONGPOLE_TESTS_MODEL_FIXTURE_H

#include "model/model.h"
#include "trace_bench.h"

static inline uint32_t object(
	struct bench *b, enum trace_object_type type, const char *name, uint64_t capacity)
{
	uint32_t id = ++b->nr_objects, text = *name ? string(b, name) : 0;
	PUT(b, 0, 0, object, .object = id, .process = 1, .type = type, .address = id * 64,
		.capacity = capacity, .name = text);
	return id;
}

static inline void start(struct bench *b)
{
	struct trace_info info = {.size = sizeof info, .host = "h", .command = "c", .tool = "t"};
	bench_open(b, 1, &info);
}

/* Main (stream 1) begins at 0 and creates `n` threads at 10, 20, ...; each begins 5 later.
 * Streams 2.. */
static inline void spawn(struct bench *b, unsigned n, uint32_t where)
{
	uint32_t p = process_of(b, "prog", 0, 100);
	begin_threads(b, p, n + 1);
	for (unsigned i = 0; i < n; i++) {
		PUT(b, 10 * (i + 1), 1, thread_create, .token = i + 1, .site = where);
		PUT(b, 10 * (i + 1) + 5, 2 + i, thread_begin, .token = i + 1, .handle = 2000 + i,
			.site = where);
	}
}

static inline void end(struct bench *b, uint64_t at)
{
	PUT(b, at, 1, thread_end);
	PUT(b, at, 1, process_end, .status = 0);
	analyse(b);
	conserved(b, (double)at);
	repeats(b);
}

/* How long the whole takes when states whose name begins so take that part: by both methods. */
static inline void takes_then(
	struct bench *b, const char *state, double factor, double path_ns, uint64_t replay_ns)
{
	struct graph_edit edit[32];
	struct graph_scenario changed = {.edit = edit};
	struct model_options o = b->options;
	struct graph_replay *r;
	struct graph_replay_result res;
	struct model *again;
	for (uint32_t s = 0; s < graph_nr_states(model_graph(b->model)); s++)
		if (!strncmp(model_state(b->model, s)->name, state, strlen(state))) {
			assert_true(changed.nr_edits < BASE_COUNT(edit));
			edit[changed.nr_edits++] =
				(struct graph_edit){GRAPH_EDIT_SCALE_STATE, s, factor, 0};
		}
	assert_true(changed.nr_edits);
	assert_int_equal(graph_replay_new(NULL, &r, &b->err), BASE_OK);
	o.sink = graph_replay_sink(r);
	o.scenario = &changed;
	o.nr_scenarios = 1;
	assert_int_equal(trace_reader_rewind(b->reader, &b->err), BASE_OK);
	assert_int_equal(model_run(b->reader, &o, &again, &b->err), BASE_OK);
	struct graph_lane_result l;
	assert_int_equal(graph_lane(model_graph(again), 1, &l, &b->err), BASE_OK);
	assert_float_equal(l.length_ns, path_ns, 1e-6);
	graph_replay_set_end(r, model_end_actor(again));
	assert_int_equal(graph_replay_run(r, &changed, NULL, &res, &b->err), BASE_OK);
	assert_int_equal(res.nr_stuck, 0);
	assert_int_equal(res.end_ns, replay_ns);
	graph_replay_free(r);
	model_free(again);
}

#endif

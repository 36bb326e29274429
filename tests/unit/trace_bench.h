/* SPDX-License-Identifier: Apache-2.0 */
/* trace_bench.h - a trace by hand, record by record, and what the model makes of it. */
#ifndef LONGPOLE_TESTS_TRACE_BENCH_H
#define LONGPOLE_TESTS_TRACE_BENCH_H

#include "graph/replay.h"
#include "model/model.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bench {
	char path[TEMPORARY_PATH];
	uint64_t tick_ns; /* unit of the times that are put */
	struct trace_writer *w;
	uint32_t nr_strings, nr_sites, nr_objects, nr_streams, nr_processes;
	struct trace_reader *reader;
	struct model *model;
	struct model_options options;
	bool is_otherwise_in_replay; /* processors, ticks: simulated by rules of their own */
	struct base_err err;
};

static inline void bench_open(struct bench *b, uint64_t tick_ns, const struct trace_info *info)
{
	*b = (struct bench){.tick_ns = tick_ns, .options = {.size = sizeof b->options}};
	temporary_file(b->path, NULL, 0);
	assert_int_equal(trace_writer_open(b->path, info, &b->w, &b->err), BASE_OK);
}

static inline void put(struct bench *b, struct trace_record r)
{
	r.time_ns *= b->tick_ns;
	assert_int_equal(trace_writer_put(b->w, &r, &b->err), BASE_OK);
}

#define PUT(b, at, by, what, ...)                                                                  \
	put(b, (struct trace_record){.time_ns = (at),                                              \
		       .stream = (by),                                                             \
		       .kind = TRACE_##what,                                                       \
		       .u.what = {__VA_ARGS__}})

static inline uint32_t string(struct bench *b, const char *s)
{
	uint32_t id = ++b->nr_strings;
	PUT(b, 0, 0, string, .string = id, .text = {s, (uint32_t)strlen(s)});
	return id;
}

static inline uint32_t process_of(struct bench *b, const char *name, uint32_t parent, uint64_t pid)
{
	uint32_t id = ++b->nr_processes, text = string(b, name);
	PUT(b, 0, 0, process, .process = id, .parent = parent, .pid = pid, .name = text,
		.command = text);
	return id;
}

static inline uint32_t stream(struct bench *b, uint32_t of)
{
	uint32_t id = ++b->nr_streams;
	PUT(b, 0, 0, stream, .stream = id, .process = of, .tid = 100 + id);
	return id;
}

/* So many threads of a process, as streams 1, 2, ...; the first one is its main thread: it begins
 * at 0. */
static inline void begin_threads(struct bench *b, uint32_t process, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		stream(b, process);
	PUT(b, 0, 1, process_begin, .token = 0);
	PUT(b, 0, 1, thread_begin, .token = 0, .handle = 1000);
}

static inline uint32_t site(struct bench *b, const char *function)
{
	uint32_t id = ++b->nr_sites, text = string(b, function);
	PUT(b, 0, 0, site, .site = id, .offset = id * 16);
	PUT(b, 0, 0, symbol, .site = id, .function = text, .line = id);
	return id;
}

/* The trace is whole: it can be read. */
static inline void bench_read(struct bench *b)
{
	assert_int_equal(trace_writer_close(b->w, &b->err), BASE_OK);
	assert_int_equal(trace_reader_open(b->path, NULL, &b->reader, &b->err), BASE_OK);
}

static inline void analyse(struct bench *b)
{
	bench_read(b);
	enum base_status s = model_run(b->reader, &b->options, &b->model, &b->err);
	if (s != BASE_OK)
		print_message("%s\n", b->err.cause[0]);
	assert_int_equal(s, BASE_OK);
}

static inline void finish(struct bench *b)
{
	model_free(b->model);
	trace_reader_close(b->reader);
	unlink(b->path);
}

static inline struct graph_lane_result lane(struct bench *b, unsigned nr)
{
	struct graph_lane_result l;
	assert_int_equal(graph_lane(model_graph(b->model), nr, &l, &b->err), BASE_OK);
	assert_true(l.found);
	return l;
}

/* Path time in states whose name contains `part`, of actors whose group contains `who`. */
static inline double on_path_of(struct bench *b, const char *who, const char *part)
{
	struct graph_lane_result l = lane(b, 0);
	double sum = 0;
	for (size_t i = 0; i < l.nr_states; i++)
		if (strstr(model_state(b->model, l.state[i].state)->name, part) &&
			strstr(model_actor(b->model, l.state[i].actor)->group, who))
			sum += l.state[i].path_ns;
	return sum;
}

static inline double on_path(struct bench *b, const char *part)
{
	return on_path_of(b, "", part);
}

static inline double unexplained(struct bench *b)
{
	struct graph_lane_result l = lane(b, 0);
	double sum = 0;
	for (size_t i = 0; i < l.nr_states; i++)
		sum += l.state[i].unexplained_ns;
	return sum;
}

/* The path is as long as the time, and each piece of it is named. */
static inline void path_is_whole(struct bench *b, double elapsed_ns)
{
	struct graph_lane_result l = lane(b, 0);
	double sum = 0;
	for (size_t i = 0; i < l.nr_states; i++)
		sum += l.state[i].path_ns;
	assert_float_equal(l.length_ns, (double)(l.end_ns - l.start_ns), 1e-6);
	assert_float_equal(l.length_ns, elapsed_ns, 1e-6);
	assert_float_equal(sum, elapsed_ns, 1e-6);
}

/* Nothing was taken that had not come. */
static inline void in_order(struct bench *b)
{
	for (uint32_t q = 0; q < graph_nr_queues(model_graph(b->model)); q++) {
		const struct graph_queue_stats *st = graph_queue_stats(model_graph(b->model), q);
		if (st->underflows || st->overflows)
			fail_msg("%llu of %s were taken before they came",
				(unsigned long long)st->underflows, model_queue(b->model, q)->name);
	}
}

/* Simulated without an edit the run takes as long as it took: what the model said explains it. */
static inline void repeats(struct bench *b)
{
	struct model_options o = b->options;
	struct graph_replay *r;
	struct graph_replay_result res;
	struct model *again;
	if (o.sink || b->is_otherwise_in_replay)
		return;
	assert_int_equal(graph_replay_new(NULL, &r, &b->err), BASE_OK);
	o.sink = graph_replay_sink(r);
	assert_int_equal(trace_reader_rewind(b->reader, &b->err), BASE_OK);
	assert_int_equal(model_run(b->reader, &o, &again, &b->err), BASE_OK);
	graph_replay_set_end(r, model_end_actor(again));
	assert_int_equal(graph_replay_run(r, NULL, NULL, &res, &b->err), BASE_OK);
	assert_int_equal(res.nr_stuck, 0);
	assert_int_equal(res.end_ns, res.recorded_end_ns);
	graph_replay_free(r);
	model_free(again);
}

/* The same, of a trace that lacks nothing. */
static inline void conserved(struct bench *b, double elapsed_ns)
{
	path_is_whole(b, elapsed_ns);
	in_order(b);
}

/* For a test that goes wrong: the path's states. */
static inline void show(struct bench *b)
{
	struct graph_lane_result l = lane(b, 0);
	for (size_t i = 0; i < l.nr_states; i++)
		print_message("%8.0f %s: %s\n", l.state[i].path_ns,
			model_actor(b->model, l.state[i].actor)->name,
			model_state(b->model, l.state[i].state)->name);
}

#endif

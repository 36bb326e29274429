/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_fixture.h - Kineto's JSON made by hand, imported, and its path as a line of text. Times in us. */
#ifndef LONGPOLE_TESTS_GPU_FIXTURE_H
#define LONGPOLE_TESTS_GPU_FIXTURE_H

#include "format_memory.h"
#include "test.h"

#include "format/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAIN = 100, HELPER = 101 };

struct gpu_bench {
	struct base_str json, path, notes;
	int correlation;
	struct trace_reader *reader;
	struct model *model;
	enum base_status status; /* of the import */
	struct base_err err;
};

static inline void slice(struct gpu_bench *b, const char *category, const char *name, int pid,
	int tid, double begin, double end, const char *args)
{
	base_str_addf(&b->json,
		"%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
		"\"dur\":%.3f,\"args\":{%s}}",
		b->json.length ? ",\n" : "", category, name, pid, tid, begin, end - begin, args);
}

static inline void op(struct gpu_bench *b, int tid, const char *name, double begin, double end)
{
	slice(b, "cpu_op", name, 1, tid, begin, end, "\"External id\": 7");
}

static inline void note(struct gpu_bench *b, int tid, const char *name, double begin, double end)
{
	slice(b, "user_annotation", name, 1, tid, begin, end, "");
}

static inline void call_of(
	struct gpu_bench *b, int tid, const char *name, int correlation, double begin, double end)
{
	char args[64];
	snprintf(args, sizeof args, "\"correlation\": %d", correlation);
	slice(b, "cuda_runtime", name, 1, tid, begin, end, args);
}

static inline void device_of(struct gpu_bench *b, const char *category, const char *name,
	int correlation, int stream, double begin, double end)
{
	char args[96];
	snprintf(args, sizeof args, "\"device\": 0, \"stream\": %d, \"correlation\": %d", stream,
		correlation);
	slice(b, category, name, 0, stream, begin, end, args);
}

/* A call of main's from `begin` to `end`, and the kernel that it launches. */
static inline void launch(struct gpu_bench *b, const char *kernel, int stream, double begin,
	double end, double kernel_begin, double kernel_end)
{
	int c = ++b->correlation;
	call_of(b, MAIN, "cudaLaunchKernel", c, begin, end);
	device_of(b, "kernel", kernel, c, stream, kernel_begin, kernel_end);
}

/* What cuda_sync says of the call with this correlation. */
static inline void said(struct gpu_bench *b, const char *name, int correlation, int stream,
	int on_stream, int record)
{
	char args[200];
	snprintf(args, sizeof args,
		"\"device\": 0, \"stream\": %d, \"correlation\": %d, \"wait_on_stream\": %d, "
		"\"wait_on_cuda_event_record_corr_id\": %d",
		stream, correlation, on_stream, record);
	slice(b, "cuda_sync", name, 0, stream, 0, 1, args);
}

static inline enum base_status gpu_bench_import_from(
	struct gpu_bench *b, const char *format, const struct format_source *from, const char *path)
{
	struct trace_info info = {.size = sizeof info,
		.host = "",
		.command = "train",
		.tool = "t",
		.flags = TRACE_INFO_SYNTHETIC};
	struct format_started started = {0};
	struct format_import_options o = {.started = &started};
	struct trace_writer *w = NULL;
	assert_int_equal(trace_writer_open(path, &info, &w, NULL), BASE_OK);
	b->status = format_import(format_import_find(format), from, w, &o, &b->notes, &b->err);
	assert_int_equal(trace_writer_close(w, NULL), BASE_OK);
	return b->status;
}

static inline enum base_status gpu_bench_import_text(
	struct gpu_bench *b, const char *text, size_t length, const char *path)
{
	struct memory bytes = {(const uint8_t *)text, length};
	struct format_source from = memory_source(&bytes, "input");
	return gpu_bench_import_from(b, "pytorch", &from, path);
}

/* Whichever allocation fails: an error, until all succeed. */
static inline void gpu_bench_without_memory(const char *format, const struct format_source *from)
{
	bool done = false;
	for (unsigned nth = 1; !done; nth++) {
		char path[] = "/tmp/longpole-gpu-XXXXXX";
		struct trace_info info = {.size = sizeof info,
			.host = "",
			.command = "train",
			.tool = "t",
			.flags = TRACE_INFO_SYNTHETIC};
		struct format_import_options o = {0};
		struct base_str notes = {0};
		struct base_err err = {0};
		struct trace_writer *w = NULL;
		close(mkstemp(path));
		assert_int_equal(trace_writer_open(path, &info, &w, NULL), BASE_OK);
		base_alloc_fail_nth(nth);
		enum base_status s =
			format_import(format_import_find(format), from, w, &o, &notes, &err);
		base_alloc_fail_nth(0);
		done = s == BASE_OK && !notes.failed;
		assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
		assert_true(nth < 3000);
		(void)!trace_writer_close(w, NULL);
		base_str_fini(&notes);
		unlink(path);
	}
}

/* Reads the trace that was imported, with these scenarios. */
static inline void gpu_bench_model(
	struct gpu_bench *b, const char *path, const struct graph_scenario *scenario, unsigned nr)
{
	struct model_options mo = {
		.size = sizeof mo, .keep_path = true, .scenario = scenario, .nr_scenarios = nr};
	trace_reader_close(b->reader);
	model_free(b->model);
	b->model = NULL;
	assert_int_equal(trace_reader_open(path, NULL, &b->reader, &b->err), BASE_OK);
	assert_int_equal(model_run(b->reader, &mo, &b->model, &b->err), BASE_OK);
}

/* Imports, and runs the model with these scenarios. */
static inline void gpu_bench_run(
	struct gpu_bench *b, const struct graph_scenario *scenario, unsigned nr)
{
	char path[] = "/tmp/longpole-gpu-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	struct base_str whole = {0};
	base_str_addf(
		&whole, "{\"schemaVersion\": 1,\"traceEvents\": [%s]}", base_str_text(&b->json));
	base_str_reset(&b->notes);
	assert_int_equal(
		gpu_bench_import_text(b, base_str_text(&whole), whole.length, path), BASE_OK);
	base_str_fini(&whole);
	gpu_bench_model(b, path, scenario, nr);
	unlink(path);
}

static inline const char *state_text(struct model *m, uint32_t state)
{
	const struct model_state *st = model_state(m, state);
	return st->cause == MODEL_CAUSE_annotated_machine ? model_text(m, st->argument[1].text)
							  : st->name;
}

/* "launch 5 | ~launches for stream 7 3 | k 100": states of the path, merged, in us. */
static inline const char *gpu_bench_path(struct gpu_bench *b)
{
	const struct graph_path_edge *e;
	size_t nr;
	double sum = 0;
	assert_int_equal(graph_path(model_graph(b->model), &e, &nr, &b->err), BASE_OK);
	base_str_reset(&b->path);
	for (size_t i = 0; i < nr; i++) {
		sum += e[i].weight_ns;
		if (i + 1 < nr && e[i + 1].actor == e[i].actor && e[i + 1].state == e[i].state)
			continue;
		if (sum > 0)
			base_str_addf(&b->path, "%s%s %g", b->path.length ? " | " : "",
				state_text(b->model, e[i].state), sum / 1000);
		sum = 0;
	}
	return base_str_text(&b->path);
}

static inline double gpu_bench_length(struct gpu_bench *b, unsigned lane)
{
	struct graph_lane_result r;
	assert_int_equal(graph_lane(model_graph(b->model), lane, &r, &b->err), BASE_OK);
	assert_true(r.found);
	return r.length_ns / 1000;
}

enum { EDITS_MAX = 64 };
/* All states of this name (to its end, or to ", in") so long: how many. */
static inline size_t gpu_bench_edits(
	struct gpu_bench *b, const char *name, double factor, struct graph_edit edit[EDITS_MAX])
{
	size_t nr = 0, length = strlen(name);
	uint32_t states = graph_nr_states(model_graph(b->model));
	for (uint32_t i = 0; i < states; i++) {
		const char *text = state_text(b->model, i);
		if (!strncmp(text, name, length) && (!text[length] || text[length] == ',')) {
			assert_true(nr < EDITS_MAX);
			edit[nr++] = (struct graph_edit){
				.kind = GRAPH_EDIT_SCALE_STATE, .id = i, .factor = factor};
		}
	}
	assert_true(nr > 0);
	return nr;
}

/* The run's length in us with them. */
static inline double gpu_bench_scaled(struct gpu_bench *b, const char *name, double factor)
{
	struct graph_edit edit[EDITS_MAX];
	struct graph_scenario s = {edit, gpu_bench_edits(b, name, factor, edit)};
	gpu_bench_run(b, &s, 1);
	return gpu_bench_length(b, 1);
}

static inline void gpu_bench_fini(struct gpu_bench *b)
{
	base_str_fini(&b->json);
	base_str_fini(&b->path);
	base_str_fini(&b->notes);
	trace_reader_close(b->reader);
	model_free(b->model);
}

#endif

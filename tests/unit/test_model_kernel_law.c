/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_kernel_law.c - whatever the kernel's records say, in whatever order, with whatever is
 * missing: the model does not fall over, the path is as long as the time, and what is asked twice
 * is answered twice alike.
 */
#include "graph/replay.h"
#include "kernel_fixture.h"
#include "model/model.h"

#include <math.h>

enum { THREADS = 6, CONTEXTS = 5, OBJECTS = 10, RECORDS = 400, TRIALS = 400 };

struct dice {
	uint64_t state;
};

static uint32_t below(struct dice *d, uint32_t n)
{
	d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((d->state >> 33) % n);
}

/* A field gets what a field of that unit may hold, now and then nonsense. */
static uint64_t value_of(struct dice *d, const struct trace_field_desc *f)
{
	if (!below(d, 50))
		return f->type == TRACE_FIELD_ID ? below(d, 1000) : ~UINT64_C(0) >> below(d, 60);
	if (!strcmp(f->unit, "stream"))
		return below(d, THREADS + CONTEXTS + 1);
	if (!strcmp(f->unit, "object"))
		return below(d, OBJECTS + 1);
	if (!strcmp(f->name, "number") && f->type == TRACE_FIELD_U64)
		return (uint64_t[]){0, 1, 44, 45, 202, 232, 426}[below(d, 7)];
	if (!strcmp(f->name, "processor"))
		return below(d, 3);
	if (f->type == TRACE_FIELD_ID)
		return 0;
	return below(d, 5) ? below(d, 4) : below(d, 5000);
}

static void fill(struct dice *d, struct trace_record *r, const struct trace_kind_desc *k)
{
	for (unsigned i = 0; i < k->nr_fields; i++) {
		const struct trace_field_desc *f = &k->field[i];
		uint64_t v = value_of(d, f);
		uint32_t id = (uint32_t)v;
		char *at = (char *)r + f->offset;
		if (f->type == TRACE_FIELD_ID)
			memcpy(at, &id, sizeof id);
		else if (f->type != TRACE_FIELD_TEXT)
			memcpy(at, &v, sizeof v);
	}
}

static bool is_kernels(unsigned kind)
{
	return (kind >= TRACE_cpu_out && kind <= TRACE_context_end) || kind >= TRACE_context_raise;
}

/* Mostly the kernel's kinds; some of the library's among them. */
static void random_trace(struct bench *b, struct dice *d)
{
	static const enum trace_object_type types[OBJECTS] = {TRACE_OBJECT_pipe,
		TRACE_OBJECT_socket, TRACE_OBJECT_socket, TRACE_OBJECT_disk, TRACE_OBJECT_qdisc,
		TRACE_OBJECT_flow, TRACE_OBJECT_flow, TRACE_OBJECT_futex, TRACE_OBJECT_mutex,
		TRACE_OBJECT_io_uring};
	static const enum trace_context_type contexts[CONTEXTS] = {TRACE_CONTEXT_timer,
		TRACE_CONTEXT_softirq, TRACE_CONTEXT_ipi, TRACE_CONTEXT_idle, TRACE_CONTEXT_irq};
	unsigned nr;
	const struct trace_kind_desc *kind = trace_kind_table(&nr);
	uint64_t at = 0;
	start(b, "");
	for (unsigned i = 0; i < THREADS; i++)
		thread(b, i % 2 ? "even" : "odd");
	for (unsigned i = 0; i < CONTEXTS; i++)
		context(b, contexts[i], i % 2, i == 1 ? "NET_RX" : "x");
	for (unsigned i = 0; i < OBJECTS; i++)
		object(b, types[i], "", i == 0 ? 100 : 0);
	for (unsigned i = 0; i < RECORDS;) {
		const struct trace_kind_desc *k = &kind[below(d, nr)];
		struct trace_record r = {.time_ns = at, .kind = k->kind};
		if (k->kind < 32 || (!is_kernels(k->kind) && below(d, 12)))
			continue;
		r.stream = 1 + below(d, THREADS + CONTEXTS);
		fill(d, &r, k);
		if (trace_writer_put(b->w, &r, &b->err) == BASE_OK)
			i++;
		at += below(d, 3) ? below(d, 30) : 0;
	}
	assert_int_equal(trace_writer_close(b->w, &b->err), BASE_OK);
	assert_int_equal(trace_reader_open(b->path, NULL, &b->reader, &b->err), BASE_OK);
}

static void holds(struct bench *b)
{
	struct graph_lane_result l;
	double sum = 0;
	assert_int_equal(graph_lane(model_graph(b->model), 0, &l, &b->err), BASE_OK);
	if (!l.found)
		return;
	for (size_t i = 0; i < l.nr_states; i++) {
		assert_true(l.state[i].path_ns >= 0);
		assert_non_null(model_state(b->model, l.state[i].state)->name);
		sum += l.state[i].path_ns;
	}
	assert_float_equal(l.length_ns, (double)(l.end_ns - l.start_ns), 1e-6);
	assert_float_equal(sum, l.length_ns, 1e-6);
}

static void random_records(void **state)
{
	(void)state;
	const char *wanted = getenv("GRAPH_TRIALS"); /* for a longer hunt by hand */
	uint32_t nr = wanted ? (uint32_t)atoi(wanted) : TRIALS;
	for (uint32_t i = 0; i < nr; i++) {
		struct bench b;
		struct dice d = {.state = i * 7919 + 1};
		random_trace(&b, &d);
		assert_int_equal(model_run(b.reader, &b.options, &b.model, &b.err), BASE_OK);
		holds(&b);
		uint32_t nr_actors = graph_nr_actors(model_graph(b.model)),
			 nr_states = graph_nr_states(model_graph(b.model));
		double length = lane(&b, 0).length_ns;
		model_free(b.model);
		/* once more, with an edit beside: the same ids, the same path */
		struct graph_edit edit = {GRAPH_EDIT_SCALE_STATE, below(&d, nr_states), 0.5, 0};
		struct graph_scenario sc = {.edit = &edit, .nr_edits = 1};
		b.options.scenario = &sc;
		b.options.nr_scenarios = 1;
		b.options.keep_path = true;
		assert_int_equal(trace_reader_rewind(b.reader, &b.err), BASE_OK);
		assert_int_equal(model_run(b.reader, &b.options, &b.model, &b.err), BASE_OK);
		holds(&b);
		assert_int_equal(graph_nr_actors(model_graph(b.model)), nr_actors);
		assert_float_equal(lane(&b, 0).length_ns, length, 1e-6);
		finish(&b);
	}
}

/* ---- replay of what lacks records ------------------------------------------------------------ */

/* Simulated without an edit: it ends, whatever is missing. How far off it is; 0: nothing happened.
 */
static double replayed(struct bench *b, uint64_t *nr_given)
{
	struct graph_replay *r;
	struct graph_replay_result res;
	assert_int_equal(graph_replay_new(NULL, &r, &b->err), BASE_OK);
	b->options.sink = graph_replay_sink(r);
	assert_int_equal(trace_reader_rewind(b->reader, &b->err), BASE_OK);
	assert_int_equal(model_run(b->reader, &b->options, &b->model, &b->err), BASE_OK);
	assert_int_equal(graph_replay_mend(r, &b->err), BASE_OK);
	assert_int_equal(graph_replay_run(r, NULL, NULL, &res, &b->err), BASE_OK);
	assert_int_equal(res.nr_stuck, 0);
	*nr_given += graph_replay_nr_given(r);
	graph_replay_free(r);
	b->options.sink = NULL;
	double ran = (double)(res.recorded_end_ns - res.start_ns);
	return ran > 0 ? fabs((double)(res.end_ns - res.start_ns) / ran - 1) : 0;
}

#define MAYBE(...)                                                                                 \
	do {                                                                                       \
		if (below(d, 100) >= lost)                                                         \
			__VA_ARGS__;                                                               \
	} while (0)

/* A client asks through a pipe, a server answers through another; each sleeps meanwhile. */
static void some_of_a_dialogue(struct bench *b, struct dice *d, uint32_t lost)
{
	start(b, "");
	uint32_t client = thread(b, "client"), server = thread(b, "server");
	uint32_t ask = object(b, TRACE_OBJECT_pipe, "", 0),
		 tell = object(b, TRACE_OBJECT_pipe, "", 0);
	uint64_t t = 10;
	IN(b, 0, client, 0);
	IN(b, 0, server, 1);
	CALLS(b, 1, server, 0, .object = ask, .n = 8);
	SLEEPS(b, 2, server, 1);
	for (int i = 0; i < 60; i++, t += 20) {
		uint64_t work = 20 + below(d, 100);
		MAYBE(CALLS(b, t, client, 1, .object = ask, .n = 8));
		MAYBE(WAKES(b, t + 1, client, server));
		MAYBE(RETURNS(b, t + 2, client, 1, .object = ask, .result = 8));
		MAYBE(CALLS(b, t + 3, client, 0, .object = tell, .n = 8));
		MAYBE(IN(b, t + 4, server, 1));
		MAYBE(SLEEPS(b, t + 5, client, 0));
		MAYBE(RETURNS(b, t + 6, server, 0, .object = ask, .result = 8));
		t += work;
		MAYBE(CALLS(b, t + 7, server, 1, .object = tell, .n = 8));
		MAYBE(WAKES(b, t + 8, server, client));
		MAYBE(RETURNS(b, t + 9, server, 1, .object = tell, .result = 8));
		MAYBE(CALLS(b, t + 10, server, 0, .object = ask, .n = 8));
		MAYBE(IN(b, t + 11, client, 0));
		MAYBE(SLEEPS(b, t + 12, server, 1));
		MAYBE(RETURNS(b, t + 13, client, 0, .object = tell, .result = 8));
	}
	SLEEPS(b, t, client, 0);
	assert_int_equal(trace_writer_close(b->w, &b->err), BASE_OK);
	assert_int_equal(trace_reader_open(b->path, NULL, &b->reader, &b->err), BASE_OK);
}

#define SUBSET_ERROR_MAX 0.05 /* of the recorded length */

static void replay_of_any_subset_ends(void **state)
{
	static const uint32_t lost[] = {0, 2, 10, 40};
	uint64_t nr_given = 0;
	(void)state;
	for (uint32_t i = 0; i < TRIALS; i++) {
		struct bench b;
		struct dice d = {.state = i * 7919 + 1};
		uint32_t share = lost[i % BASE_COUNT(lost)];
		some_of_a_dialogue(&b, &d, share);
		double error = replayed(&b, &nr_given);
		assert_true(error < SUBSET_ERROR_MAX);
		finish(&b);
		random_trace(&b, &d); /* and of what no kernel would say */
		(void)replayed(&b, &nr_given);
		finish(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_records),
		cmocka_unit_test(replay_of_any_subset_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

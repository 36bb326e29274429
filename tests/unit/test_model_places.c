/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_places.c - places of the program: where a path begins and ends, what is called there,
 * and what is inlined. Known answers.
 */
#include "model/model.h"
#include "model_fixture.h"

/* ---- inlined functions ----------------------------------------------------------------------- */

struct inlining {
	struct bench b;
	uint32_t nr_inlined;
};

static void inlined(
	struct inlining *in, uint32_t at, const char *function, const char *file, uint32_t line)
{
	uint32_t name = string(&in->b, function), path = string(&in->b, file);
	PUT(&in->b, 0, 0, inlined, .inlined = ++in->nr_inlined, .site = at, .function = name,
		.file = path, .line = line);
}

static uint32_t site_in(struct bench *b, const char *function, const char *file, uint32_t line)
{
	uint32_t id = ++b->nr_sites, name = string(b, function), path = string(b, file);
	PUT(b, 0, 0, site, .site = id, .offset = id * 16);
	PUT(b, 0, 0, symbol, .site = id, .function = name, .file = path, .line = line);
	return id;
}

enum { PLAIN = 1, DEEP, DEEPER, SYSTEM, BARE, IN_MODULE, NAMELESS };

/* main() at a.cc:9 has inlined f() at a.cc:8, that g(), that h(), ... */
static void make_sites(struct inlining *in)
{
	struct bench *b = &in->b;
	start(b);
	assert_int_equal(site_in(b, "plain", "/src/a.cc", 9), PLAIN);
	assert_int_equal(site_in(b, "main", "/src/h.cc", 8), DEEP);
	inlined(in, DEEP, "h", "/src/g.cc", 7); /* innermost first: h is called in g.cc:7 */
	inlined(in, DEEP, "g", "/src/f.cc", 6);
	assert_int_equal(site_in(b, "main", "/src/k.cc", 5), DEEPER);
	inlined(in, DEEPER, "k", "/src/h.cc", 4);
	inlined(in, DEEPER, "h", "/src/g.cc", 3);
	inlined(in, DEEPER, "g", "/src/f.cc", 2);
	assert_int_equal(site_in(b, "main", "/usr/include/c++/mutex", 5), SYSTEM);
	inlined(in, SYSTEM, "std::mutex::lock", "/usr/lib/gcc/x.h", 4);
	inlined(in, SYSTEM, "guard", "/src/f.cc", 2);
	PUT(b, 0, 0, site, .site = BARE, .offset = 0x1a2b);
	PUT(b, 0, 0, module, .module = 1, .path = string(b, "/lib/libx.so"));
	PUT(b, 0, 0, site, .site = IN_MODULE, .module = 1, .offset = 0x30);
	b->nr_sites = NAMELESS;
	PUT(b, 0, 0, site, .site = NAMELESS, .offset = 64);
	PUT(b, 0, 0, symbol, .site = NAMELESS, .file = string(b, "/src/n.cc"), .line = 3);
}

static void inlined_functions(void **state)
{
	static const char *const text[] = {"", "plain (a.cc:9)", "h (h.cc:8), inlined in main",
		"k (k.cc:5), inlined in main", "main (f.cc:2)", "0x1a2b", "libx.so+0x30", "n.cc:3"};
	struct inlining in = {0};
	struct model_frame frame[MODEL_FRAMES_MAX], all[8];
	(void)state;
	make_sites(&in);
	PUT(&in.b, 0, 0, stack, .stack = 1, .site = PLAIN);
	PUT(&in.b, 0, 0, stack, .stack = 2, .parent = 1, .site = DEEP);
	PUT(&in.b, 0, 0, stack, .stack = 3, .parent = 2, .site = IN_MODULE);
	stream(&in.b, process_of(&in.b, "prog", 0, 100));
	PUT(&in.b, 0, 1, process_begin, .token = 0);
	end(&in.b, 10);
	for (uint32_t i = 1; i < BASE_COUNT(text); i++)
		assert_string_equal(model_site_text(in.b.model, i), text[i]);
	assert_string_equal(model_site_text(in.b.model, 99), "");
	assert_int_equal(model_site_frames(in.b.model, DEEP, frame), 3);
	assert_string_equal(frame[0].function, "main");
	assert_string_equal(frame[0].file, "/src/f.cc");
	assert_int_equal(frame[0].line, 6);
	assert_false(frame[0].inlined);
	assert_string_equal(frame[2].function, "h");
	assert_int_equal(frame[2].line, 8);
	assert_true(frame[1].inlined && frame[2].inlined);
	assert_int_equal(model_site_frames(in.b.model, BARE, frame), 0);
	assert_int_equal(model_stack_frames(in.b.model, 3, all, BASE_COUNT(all)), 5);
	static const char *const called[] = {"plain", "main", "g", "h", "libx.so+0x30"};
	for (size_t i = 0; i < BASE_COUNT(called); i++)
		assert_string_equal(all[i].function, called[i]);
	/* too many: the innermost ones */
	assert_int_equal(model_stack_frames(in.b.model, 3, all, 3), 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(all[i].function, called[2 + i]);
	assert_int_equal(model_stack_frames(in.b.model, 0, all, 3), 0);
	finish(&in.b);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* One stream that speaks for clients A and B and the server that they share. */
struct shared_server {
	struct bench b;
	uint32_t client_a, client_b, server, requests, replies_a, replies_b;
};

static uint32_t machine(struct bench *b, const char *name)
{
	uint32_t id = string(b, name); /* strings are numbered from 1, as actors may be */
	PUT(b, 0, 0, actor, .actor = id, .name = id);
	return id;
}

#define ACT(at, who)         PUT(&w.b, at, 1, note_act, .actor = w.who)
#define VERB(at, verb, what) PUT(&w.b, at, 1, note_##verb, .object = w.what, .n = 1)

static struct shared_server serve_two(void)
{
	struct shared_server w = {0};
	start(&w.b);
	w.client_a = machine(&w.b, "client A");
	w.client_b = machine(&w.b, "client B");
	w.server = machine(&w.b, "server");
	w.requests = object(&w.b, TRACE_OBJECT_queue, "requests", 0);
	w.replies_a = object(&w.b, TRACE_OBJECT_queue, "replies A", 0);
	w.replies_b = object(&w.b, TRACE_OBJECT_queue, "replies B", 0);
	stream(&w.b, process_of(&w.b, "prog", 0, 100));
	PUT(&w.b, 0, 1, process_begin, .token = 0);
	ACT(5, server);
	VERB(5, wait_empty, requests);
	ACT(10, client_a);
	PUT(&w.b, 10, 1, note_identify, .connection = 7);
	ACT(12, client_b);
	PUT(&w.b, 12, 1, note_identify, .connection = 9);
	ACT(20, client_a);
	VERB(20, enqueue, requests);
	VERB(20, wait_empty, replies_a);
	ACT(22, server);
	VERB(22, dequeue, requests);
	ACT(30, client_b);
	VERB(30, enqueue, requests);
	VERB(30, wait_empty, replies_b);
	ACT(50, server);
	VERB(50, enqueue, replies_a);
	VERB(50, dequeue, requests);
	ACT(53, client_a);
	VERB(53, dequeue, replies_a);
	PUT(&w.b, 60, 1, note_identify, .connection = 0);
	ACT(90, server);
	VERB(90, enqueue, replies_b);
	VERB(90, wait_empty, requests);
	ACT(91, client_b);
	VERB(91, dequeue, replies_b);
	PUT(&w.b, 95, 1, note_identify, .connection = 0);
	assert_int_equal(trace_writer_close(w.b.w, &w.b.err), BASE_OK);
	assert_int_equal(trace_reader_open(w.b.path, NULL, &w.b.reader, &w.b.err), BASE_OK);
	return w;
}

/* Path time of end `end` in states of (actor, state) names with these parts. */
static double of_path(struct bench *b, uint32_t end, const char *actor, const char *state)
{
	struct graph_lane_result l;
	double sum = 0;
	assert_int_equal(graph_lane_of(model_graph(b->model), end, 0, &l, &b->err), BASE_OK);
	assert_true(l.found);
	for (size_t i = 0; i < l.nr_states; i++)
		if (strstr(model_actor(b->model, l.state[i].actor)->name, actor) &&
			strstr(model_state(b->model, l.state[i].state)->name, state))
			sum += l.state[i].path_ns;
	return sum;
}

static void a_path_for_each_connection(void **state)
{
	(void)state;
	struct shared_server w = serve_two();
	struct model_options o = {.size = sizeof o, .connections = true};
	struct graph_lane_result l;
	size_t nr;
	assert_int_equal(model_run(w.b.reader, &o, &w.b.model, &w.b.err), BASE_OK);
	assert_int_equal(model_nr_connections(w.b.model), 2);
	assert_int_equal(model_connection(w.b.model, 0)->id, 7);
	assert_int_equal(model_connection(w.b.model, 1)->id, 9);

	assert_int_equal(graph_lane_of(model_graph(w.b.model), 0, 0, &l, &w.b.err), BASE_OK);
	assert_int_equal(l.start_ns, 10);
	assert_int_equal(l.end_ns, 60);
	assert_true(l.length_ns == 50);
	assert_true(of_path(&w.b, 0, "client A", "begun") == 10 + 7);
	assert_true(of_path(&w.b, 0, "server", "begun") == 28);
	assert_true(of_path(&w.b, 0, "", "hand-off") == 5);

	/* The server was busy with 7 from 30 to 50: that is connection 9's loss, on the queue. */
	assert_int_equal(graph_lane_of(model_graph(w.b.model), 1, 0, &l, &w.b.err), BASE_OK);
	assert_int_equal(l.start_ns, 12);
	assert_true(l.length_ns == 95 - 12);
	assert_true(of_path(&w.b, 1, "client B", "begun") == 18 + 4);
	assert_true(of_path(&w.b, 1, "server", "begun") == 40);
	assert_true(of_path(&w.b, 1, "server", "hand-off") == 20);
	assert_true(of_path(&w.b, 1, "client A", "") == 0);

	for (uint32_t i = 0; i < graph_nr_actors(model_graph(w.b.model)); i++) {
		const char *name = model_actor(w.b.model, i)->name;
		const uint32_t *served = model_actor_connections(w.b.model, i, &nr);
		if (!strcmp(name, "server") && model_actor(w.b.model, i)->base == i)
			assert_true(nr == 2 && served[0] == 0 && served[1] == 1);
		if (!strcmp(name, "client B") && model_actor(w.b.model, i)->base == i)
			assert_true(nr == 1 && served[0] == 1);
	}
	finish(&w.b);
}

static void one_connection_alone(void **state)
{
	(void)state;
	struct shared_server w = serve_two();
	struct model_options o = {.size = sizeof o, .connection = 9};
	assert_int_equal(model_run(w.b.reader, &o, &w.b.model, &w.b.err), BASE_OK);
	assert_int_equal(model_nr_connections(w.b.model), 1);
	assert_true(of_path(&w.b, 0, "server", "begun") == 40);
	assert_true(of_path(&w.b, 0, "server", "hand-off") == 20);
	finish(&w.b);
}

/* Marks all actors (states) whose names contain one of the two texts, and counts them. */
static uint32_t mark_actors(const struct bench *b, const char *name, bool *ret)
{
	uint32_t nr = graph_nr_actors(model_graph(b->model));
	for (uint32_t i = 0; i < nr; i++)
		ret[i] = strstr(model_actor(b->model, i)->name, name) != NULL;
	return nr;
}

static uint32_t mark_states(const struct bench *b, const char *name, bool *ret)
{
	uint32_t nr = graph_nr_states(model_graph(b->model));
	for (uint32_t i = 0; i < nr; i++)
		ret[i] = strstr(model_state(b->model, i)->name, name) != NULL;
	return nr;
}

static struct graph_lane_result path_of(
	struct bench *b, const struct model_options *o, uint32_t end)
{
	struct graph_lane_result l;
	b->model = model_free(b->model);
	trace_reader_close(b->reader);
	assert_int_equal(trace_reader_open(b->path, NULL, &b->reader, &b->err), BASE_OK);
	assert_int_equal(model_run(b->reader, o, &b->model, &b->err), BASE_OK);
	assert_int_equal(graph_lane_of(model_graph(b->model), end, 0, &l, &b->err), BASE_OK);
	return l;
}

/* From the first moment of one place to the last of another, of one connection or of each: those of
 * another connection are no end of its path. */
static void from_place_to_place(void **state)
{
	enum { IDS = 64, BOTH = 0 };
	static const struct {
		uint64_t connection;
		uint64_t start_ns[2], end_ns[2];
	} expected[] = {{7, {20}, {53}}, {9, {30}, {91}}, {BOTH, {20, 30}, {53, 91}}};
	bool client[IDS] = {false}, waits[IDS] = {false}, begun[IDS] = {false};
	(void)state;
	struct shared_server w = serve_two();
	for (size_t i = 0; i < BASE_COUNT(expected); i++) {
		struct model_options o = {.size = sizeof o,
			.connections = expected[i].connection == BOTH,
			.connection = expected[i].connection};
		struct model_place end = {.actor = client, .state = begun},
				   start = {.actor = client, .state = waits};
		struct graph_lane_result l = path_of(&w.b, &o, 0);
		assert_int_equal(l.end_ns, expected[i].connection == 9 ? 95 : 60);
		start.nr_actors = end.nr_actors = mark_actors(&w.b, "client", client);
		end.nr_states = mark_states(&w.b, "begun", begun);
		start.nr_states = mark_states(&w.b, "waiting for data in queue replies", waits);
		o.start = &start;
		o.end = &end;
		for (uint32_t k = 0; k < model_nr_connections(w.b.model); k++) {
			l = path_of(&w.b, &o, k);
			assert_int_equal(l.start_ns, expected[i].start_ns[k]);
			assert_int_equal(l.end_ns, expected[i].end_ns[k]);
			assert_true(l.length_ns == (double)(l.end_ns - l.start_ns));
		}
		/* no such place: no path; any place: the whole */
		end.state = NULL;
		end.nr_actors = start.nr_actors = 0;
		assert_false(path_of(&w.b, &o, 0).found);
		o.start = NULL;
		end.actor = NULL;
		assert_true(path_of(&w.b, &o, 0).found);
	}
	finish(&w.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_functions),
		cmocka_unit_test(a_path_for_each_connection),
		cmocka_unit_test(one_connection_alone),
		cmocka_unit_test(from_place_to_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_graph.c - known answers of the compact graph with names; DOT texts; failing. */
#include "report_fixture.h"

#include "report/graph/graph.h"
#include "report/report.h"

static struct report_run run_of(const struct bench *b)
{
	return (struct report_run){.reader = b->reader, .trace_path = "a.lpt"};
}

static struct report_graph *build(struct bench *b, struct report_graph_options o)
{
	struct report_run run = run_of(b);
	struct report_graph *g = NULL;
	enum base_status s = report_graph_build(&run, &o, &g, &b->err);
	if (s != BASE_OK)
		print_message("%s\n", b->err.cause[0]);
	assert_int_equal(s, BASE_OK);
	return g;
}
#define BUILD(b, ...) build(b, (struct report_graph_options){__VA_ARGS__})

static uint64_t path_of(const struct report_graph *g)
{
	uint64_t sum = g->unplaced_ns + g->pruned_path_ns;
	for (size_t i = 0; i < g->nr_edges; i++)
		sum += g->edge[i].path_ns;
	return sum;
}

static const struct report_graph_edge *edge_between(
	const struct report_graph *g, const char *from, const char *to)
{
	for (size_t i = 0; i < g->nr_edges; i++)
		if (strstr(g->node[g->edge[i].from].name, from) &&
			strstr(g->node[g->edge[i].to].name, to))
			return &g->edge[i];
	return NULL;
}

/* Two workers take turns in m, 8 times 100 us, with a hand-off of 1 us between. */
static void who_waits_on_whom(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_graph *g = BUILD(&b, .view = REPORT_GRAPH_interaction);
	const struct report_graph_edge *one = edge_between(g, "work #1", "mutex m");
	const struct report_graph_edge *two = edge_between(g, "work #2", "mutex m");
	assert_non_null(one);
	assert_non_null(two);
	assert_int_equal(one->kind, REPORT_EDGE_both);
	assert_int_equal(one->takes, 4);
	assert_int_equal(one->puts, 4);
	assert_int_equal(two->takes, 4);
	/* the first waits while the second holds, 3 times; the second 4 times; hand-offs too */
	assert_int_equal(one->waits, 3);
	assert_int_equal(one->waiting_ns, 3 * 102 * 1000);
	assert_int_equal(two->waits, 4);
	assert_int_equal(two->waiting_ns, (101 + 3 * 102) * 1000);
	/* the path changes hands 7 times, and each takes 1 us; who gives is on it, too */
	assert_int_equal(one->path_ns, 3 * 1000);
	assert_int_equal(two->path_ns, 4 * 1000);
	assert_int_equal(one->path_visits, 3 + 4);
	assert_int_equal(two->path_visits, 4 + 3);
	for (size_t i = 0; i < g->nr_nodes; i++) {
		const struct report_graph_node *n = &g->node[i];
		if (n->kind == REPORT_NODE_queue) {
			assert_string_equal(n->name, "mutex m");
			assert_string_equal(n->type, "mutex");
			assert_int_equal(n->path_ns, 7 * 1000);
		} else if (strstr(n->name, "work")) {
			assert_true(n->path_ns >= 400 * 1000 && n->path_ns <= 403 * 1000);
		}
	}
	/* main starts both and waits for both ends */
	assert_non_null(edge_between(g, "work #1", "prog"));
	assert_int_equal(edge_between(g, "work #1", "prog")->kind, REPORT_EDGE_cross);
	report_graph_free(g);
	finish(&b);
}

static void states_of_a_lock(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_graph *g = BUILD(&b, .view = REPORT_GRAPH_states);
	uint64_t holds = 0, hold_ns = 0, hold_path_ns = 0, handed = 0;
	assert_int_equal(path_of(g), (uint64_t)g->elapsed_ns);
	for (size_t i = 0; i < g->nr_edges; i++) {
		const struct report_graph_edge *e = &g->edge[i];
		if (e->kind == REPORT_EDGE_state && !strcmp(e->name, "holding mutex m")) {
			holds += e->visits;
			hold_ns += e->time_ns;
			hold_path_ns += e->path_ns;
		}
		if (e->kind == REPORT_EDGE_cross && !strcmp(e->name, "mutex m"))
			handed += e->waits;
	}
	/* the first hold followed no wait: it is inside a straight run */
	assert_int_equal(holds, 7);
	assert_int_equal(hold_ns, 700 * 1000);
	assert_int_equal(hold_path_ns, 700 * 1000);
	assert_int_equal(handed, 7);
	assert_string_equal(g->edge[0].name, "holding mutex m");
	report_graph_free(g);

	/* pruned to three nodes: the sums say what is gone */
	uint64_t visits = 0;
	g = BUILD(&b, .view = REPORT_GRAPH_states, .max_nodes = 3);
	assert_int_equal(g->nr_nodes, 3);
	assert_true(g->nr_pruned_nodes > 0);
	assert_int_equal(path_of(g), (uint64_t)g->elapsed_ns);
	for (size_t i = 0; i < g->nr_edges; i++)
		visits += g->edge[i].visits;
	assert_int_equal(visits + g->pruned_visits, g->all_visits);
	report_graph_free(g);
	finish(&b);
}

static void one_machine(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_graph *g = BUILD(&b, .view = REPORT_GRAPH_machine, .actor = "work #2");
	bool stub = false;
	for (size_t i = 0; i < g->nr_nodes; i++) {
		bool own = strstr(g->node[i].name, "work #2") != NULL;
		assert_int_equal(g->node[i].kind, own ? REPORT_NODE_transition : REPORT_NODE_stub);
		stub |= !own;
	}
	assert_true(stub);
	report_graph_free(g);
	struct report_run run = run_of(&b);
	struct report_graph_options o = {.view = REPORT_GRAPH_machine, .actor = "nobody"};
	g = NULL;
	assert_int_equal(report_graph_build(&run, &o, &g, &b.err), BASE_ERR_NOTFOUND);
	assert_null(g);
	assert_non_null(strstr(b.err.cause[0], "prog/work #1"));
	finish(&b);
}

/* Eight threads of one start routine are one node, unless each is wanted. */
static void groups_are_folded(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), work = site(&b, "work"), from = site(&b, "main");
	begin_threads(&b, p, 9);
	for (unsigned i = 0; i < 8; i++) {
		PUT(&b, 10 + i, 1, thread_create, .token = 1 + i, .site = from);
		PUT(&b, 10 + i, 2 + i, thread_begin, .token = 1 + i, .handle = 2000 + i,
			.site = work);
	}
	for (unsigned i = 0; i < 8; i++)
		PUT(&b, 100 + i, 2 + i, thread_end);
	PUT(&b, 110, 1, join_wait, .handle = 2000);
	PUT(&b, 110, 1, join_done, .handle = 2000);
	end(&b, 120);
	struct report_graph *g = BUILD(&b, .view = REPORT_GRAPH_interaction);
	assert_int_equal(g->nr_nodes, 2);
	assert_string_equal(g->node[1].name, "prog/work \xc3\x97"
					     "8");
	assert_int_equal(g->nr_folded_actors, 8);
	assert_int_equal(g->nr_folded_groups, 1);
	assert_int_equal(edge_between(g, "prog", "work")->passes, 8);
	report_graph_free(g);
	g = BUILD(&b, .view = REPORT_GRAPH_interaction, .each_actor = true);
	assert_int_equal(g->nr_nodes, 9);
	assert_int_equal(g->nr_folded_groups, 0);
	report_graph_free(g);
	finish(&b);
}

/* ---- DOT ------------------------------------------------------------------------------------- */

static void texts_are_escaped(void **state)
{
	static const struct {
		const char *text, *dot;
	} c[] = {
		{"", "\"\""},
		{"plain <b>", "\"plain <b>\""},
		{"say \"hi\"", "\"say \\\"hi\\\"\""},
		{"back\\slash\\N", "\"back\\\\slash\\\\N\""},
		{"a&amp;b & c", "\"a&amp;amp;b &amp; c\""},
		{"two\nlines\t", "\"two?lines?\""},
		{"\xc3\xa9\xe2\x86\x92", "\"\xc3\xa9\xe2\x86\x92\""},
		{"bad \xff utf", "\"bad \xef\xbf\xbd utf\""},
		{"ends in \\", "\"ends in \\\\\""},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(c); i++) {
		struct base_str s = {0};
		report_dot_quote(&s, c[i].text);
		assert_string_equal(base_str_text(&s), c[i].dot);
		base_str_fini(&s);
	}
}

/* Red is the share of the path, blue that of traversals: the heaviest line has all of its red. */
static void colours_of_lines(void **state)
{
	(void)state;
	struct bench b;
	slow_and_fast(&b);
	struct report_graph *g = BUILD(&b, .view = REPORT_GRAPH_states);
	struct base_str dot = {0};
	report_graph_dot(&dot, g);
	assert_false(dot.failed);
	assert_true(strncmp(base_str_text(&dot), "digraph longpole {\n", 19) == 0);
	const char *first = strstr(base_str_text(&dot), " -> ");
	assert_non_null(first);
	assert_non_null(strstr(g->edge[0].name, "slow"));
	assert_int_equal(g->edge[0].path_ns, 985 * 1000);
	assert_true(strncmp(strstr(first, ", color=\"#"), ", color=\"#ff00", 14) == 0);
	assert_non_null(strstr(first, "penwidth=4.80"));
	base_str_fini(&dot);
	report_graph_free(g);
	finish(&b);
}

static void same_bytes_each_time(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct base_str text[2] = {{0}, {0}};
	for (int i = 0; i < 2; i++) {
		struct report_graph *g = BUILD(&b, .view = REPORT_GRAPH_states);
		report_graph_dot(&text[i], g);
		json_t *json = report_graph_json(g);
		char *dump = json_dumps(json, 0);
		assert_non_null(dump);
		base_str_add(&text[i], dump);
		free(dump);
		json_decref(json);
		report_graph_free(g);
	}
	assert_string_equal(base_str_text(&text[0]), base_str_text(&text[1]));
	base_str_fini(&text[0]);
	base_str_fini(&text[1]);
	finish(&b);
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	for (int view = 0; view < 3; view++) {
		struct report_run run = run_of(&b);
		struct report_graph_options o = {
			.view = (enum report_graph_view)view, .actor = "work", .max_nodes = 4};
		enum base_status s = BASE_ERR_NOMEM;
		for (uint64_t n = 1; s != BASE_OK; n++) {
			struct report_graph *g = NULL;
			struct base_str dot = {0};
			base_alloc_fail_nth(n);
			s = report_graph_build(&run, &o, &g, &b.err);
			if (s == BASE_OK)
				report_graph_dot(&dot, g);
			base_alloc_fail_nth(0);
			if (s == BASE_OK && dot.failed)
				s = BASE_ERR_NOMEM;
			assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
			base_str_fini(&dot);
			report_graph_free(g);
		}
	}
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_on_whom),
		cmocka_unit_test(states_of_a_lock),
		cmocka_unit_test(one_machine),
		cmocka_unit_test(groups_are_folded),
		cmocka_unit_test(texts_are_escaped),
		cmocka_unit_test(colours_of_lines),
		cmocka_unit_test(same_bytes_each_time),
		cmocka_unit_test(every_allocation_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

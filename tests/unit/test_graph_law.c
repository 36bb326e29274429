/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_graph_law.c - laws of the graph engine on thousands of random runs: every lane as in a graph
 * that is really built, conservation, the collector changes nothing, memory stays bounded,
 * allocations may fail.
 */
#include "graph/graph.h"
#include "graph/priv.h"
#include "graph_trial.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- playing it ------------------------------------------------------------------------------ */

struct mode {                 /* what must not matter */
	uint32_t arena_nodes; /* 0: as usual */
	bool plain;           /* no vector instructions */
	int end_after;        /* so many events end 3 is that of end_actor; 0: never */
	uint32_t end_actor;
};

static enum base_status play(
	const struct trial *t, struct mode mode, struct graph **ret, struct base_err *err)
{
	enum base_status s = graph_new(&t->options, ret, err);
	uint32_t id;

	if (s)
		return s;
	if (mode.arena_nodes)
		graph_set_arena_nodes(*ret, mode.arena_nodes);
	if (mode.plain)
		graph_lanes_choose(*ret, false);
	for (uint32_t i = 0; i < t->nr_actors && !s; i++)
		s = graph_add_actor(*ret, &id, err);
	for (uint32_t i = 0; i < t->nr_states && !s; i++)
		s = graph_add_state(*ret, &id, err);
	for (uint32_t i = 0; i < t->nr_queues && !s; i++)
		s = graph_add_queue(*ret, &t->queue[i], &id, err);
	for (int i = 0; i < t->nr_events && !s; i++) {
		s = play_one(*ret, &t->event[i], err);
		if (!s && mode.end_after == i + 1)
			s = graph_end(*ret, 3, mode.end_actor, 0, err);
	}
	return s;
}

static void play_reference(const struct trial *t, struct ref *r, bool merge_producers)
{
	ref_init(r, &t->options, merge_producers);
	for (uint32_t i = 0; i < t->nr_queues; i++)
		ref_add_queue(r, &t->queue[i]);
	for (int i = 0; i < t->nr_events; i++)
		ref_play(r, t->event[i].verb, &t->event[i].v, (int)t->event[i].from);
	ref_flush(r);
	assert_false(r->overflow);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int reference_end(const struct trial *t, const struct ref *r)
{
	int best = -1;

	if (t->end_actor != GRAPH_ANY_ACTOR)
		return r->actor[t->end_actor].tip < 0 ? -1 : (int)t->end_actor;
	for (int a = 0; a < (int)t->nr_actors; a++) {
		const struct ref_actor *p = &r->actor[a];

		if (p->tip < 0)
			continue;
		if (best < 0 || p->t_last > r->actor[best].t_last ||
			(p->t_last == r->actor[best].t_last &&
				r->length[p->tip] > r->length[r->actor[best].tip]))
			best = a;
	}
	return best;
}

static void compare_sums(
	const struct graph_lane_result *got, const struct ref *r, unsigned l, int end)
{
	struct ref_sum sum[REF_ACTORS][REF_STATES];
	size_t nr = 0;

	ref_sums(r, l, end, sum);
	for (size_t i = 0; i < got->nr_states; i++) {
		const struct graph_path_state *s = &got->state[i];
		const struct ref_sum *want = &sum[s->actor][s->state];

		assert_true(s->path_ns == want->path);
		assert_true(s->unexplained_ns == want->unexplained);
		assert_true(s->latency_ns == want->latency);
		assert_int_equal(s->visits, want->visits);
		if (i)
			assert_true(got->state[i - 1].path_ns >= s->path_ns);
	}
	for (int a = 0; a < REF_ACTORS; a++) {
		for (int s = 0; s < REF_STATES; s++)
			nr += sum[a][s].visits != 0;
	}
	assert_int_equal(nr, got->nr_states);
}

static void compare_lane(struct graph *g, struct ref *r, unsigned l, int end)
{
	struct graph_lane_result got;

	assert_int_equal(graph_lane(g, l, &got, NULL), BASE_OK);
	ref_solve(r, l);
	if (end < 0 || r->length[r->actor[end].tip] == -INFINITY) {
		assert_false(got.found);
		return;
	}
	assert_true(got.found);
	assert_true(got.length_ns == r->length[r->actor[end].tip]);
	assert_int_equal(got.end_ns, r->actor[end].t_last);
	compare_sums(&got, r, l, r->actor[end].tip);
}

static void compare_path(struct graph *g, struct ref *r, int end)
{
	const struct graph_path_edge *path;
	size_t nr;

	assert_int_equal(graph_path(g, &path, &nr, NULL), BASE_OK);
	if (end < 0) {
		assert_int_equal(nr, 0);
		return;
	}
	ref_solve(r, 0);
	for (int i = r->actor[end].tip; r->best[i] >= 0; i = r->edge[r->best[i]].from) {
		const struct ref_edge *e = &r->edge[r->best[i]];
		const struct graph_path_edge *p;

		assert_true(nr > 0);
		p = &path[--nr];
		assert_int_equal(p->begin_ns, r->node[e->from].time);
		assert_int_equal(p->end_ns, r->node[i].time);
		assert_int_equal(p->actor, r->node[i].actor);
		assert_int_equal(p->from_actor, r->node[e->from].actor);
		assert_int_equal(p->queue, e->own || e->link ? UINT32_MAX : (uint32_t)e->queue);
		assert_true(p->weight_ns == (double)e->w);
		if (e->state >= 0)
			assert_int_equal(p->state, e->state);
	}
	assert_int_equal(nr, 0);
}

static void compare_runner_up(struct graph *g, struct ref *r, int end)
{
	struct graph_lane_result got;
	double two[2], sum = 0;

	assert_int_equal(graph_lane(g, GRAPH_RUNNER_UP, &got, NULL), BASE_OK);
	for (size_t i = 0; i < got.nr_states; i++)
		sum += got.state[i].path_ns;
	if (end < 0) {
		assert_false(got.found);
		return;
	}
	if (got.found)
		assert_true(sum == got.length_ns);
	ref_solve(r, 0);
	if (!ref_enumerate(r, 0, r->actor[end].tip, 20000, two))
		return;
	assert_true(two[0] == r->length[r->actor[end].tip]);
	assert_true(got.found == (two[1] != -INFINITY));
	if (got.found)
		assert_true(got.length_ns == two[1]);
}

static void compare_stats(const struct graph *g, const struct ref *r, const struct trial *t)
{
	for (uint32_t q = 0; q < t->nr_queues; q++) {
		const struct graph_queue_stats *got = graph_queue_stats(g, q);

		assert_int_equal(graph_queue_units(g, q), r->queue[q].data.nr);
		assert_memory_equal(got, &r->queue[q].st, sizeof *got);
	}
}

/* With one start every actor's path is as long as the time since. */
static void assert_conserved(const struct graph *g, const struct trial *t)
{
	if (!t->one_start)
		return;
	for (uint32_t a = 0; a < t->nr_actors; a++) {
		double length = g->length[(size_t)a * g->lanes.stride];

		if (length != NO_PATH)
			assert_true(length == (double)(g->actor[a].t_last - t->event[0].v.time_ns));
	}
}

static struct ref reference;

/*
 * A path that takes an older unit of the same producer is never longer: what the engine leaves out
 * does not matter. (Except for optional ones, of which the latest unit is defined to count alone.)
 */
static void compare_without_merging(struct graph *g, const struct trial *t, int end)
{
	if (t->has_optional || end < 0)
		return;
	play_reference(t, &reference, false);
	for (unsigned l = 0; l <= t->options.nr_scenarios; l++) {
		struct graph_lane_result got;

		assert_int_equal(graph_lane(g, l, &got, NULL), BASE_OK);
		ref_solve(&reference, l);
		if (got.found)
			assert_true(got.length_ns == reference.length[reference.actor[end].tip]);
	}
}

static void check_trial(const struct trial *t, struct mode mode)
{
	struct graph *g;
	int end;

	assert_int_equal(play(t, mode, &g, NULL), BASE_OK);
	if (g->moment.pending)
		assert_int_equal(graph_flush(g, NULL), BASE_OK);
	play_reference(t, &reference, true);
	assert_conserved(g, t);
	compare_stats(g, &reference, t);
	assert_int_equal(graph_finish(g, t->end_actor, NULL), BASE_OK);
	ref_solve(&reference, 0);
	end = reference_end(t, &reference);
	for (unsigned l = 0; l <= t->options.nr_scenarios; l++)
		compare_lane(g, &reference, l, end);
	if (t->options.keep_path)
		compare_path(g, &reference, end);
	if (t->options.runner_up)
		compare_runner_up(g, &reference, end);
	compare_without_merging(g, t, end);
	graph_free(g);
}

static void as_in_the_built_graph(void **unused)
{
	static const uint32_t arena[] = {0, 1, 2, 7, 40};
	static struct trial t;

	(void)unused;
	for (int i = 0; i < nr_trials(6000); i++) {
		make_trial(&t, (uint32_t)i);
		check_trial(&t, (struct mode){
					.arena_nodes = arena[i % (int)BASE_COUNT(arena)],
					.plain = i % 7 == 0,
				});
	}
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void compare_ends(struct graph *whole, struct graph *part, const struct trial *t)
{
	for (unsigned l = 0; l <= t->options.nr_scenarios; l++) {
		struct graph_lane_result a, b;

		assert_int_equal(graph_lane_of(whole, 3, l, &a, NULL), BASE_OK);
		assert_int_equal(graph_lane_of(part, 3, l, &b, NULL), BASE_OK);
		assert_int_equal(a.found, b.found);
		assert_int_equal(a.nr_states, b.nr_states);
		assert_true(a.length_ns == b.length_ns);
		assert_int_equal(a.start_ns, b.start_ns);
		assert_int_equal(a.end_ns, b.end_ns);
		if (a.nr_states)
			assert_memory_equal(a.state, b.state, a.nr_states * sizeof *a.state);
	}
	if (t->options.keep_path) {
		const struct graph_path_edge *a, *b;
		size_t nr_a, nr_b;

		assert_int_equal(graph_path_of(whole, 3, &a, &nr_a, NULL), BASE_OK);
		assert_int_equal(graph_path_of(part, 3, &b, &nr_b, NULL), BASE_OK);
		assert_int_equal(nr_a, nr_b);
		if (nr_a)
			assert_memory_equal(a, b, nr_a * sizeof *a);
	}
}

/* An end in the middle of a run is what the run had given had it stopped there. */
static void ends_know_nothing_of_the_future(void **unused)
{
	static struct trial t;

	(void)unused;
	for (int i = 0; i < nr_trials(1500); i++) {
		struct mode mode = {.arena_nodes = i % 2 ? 3 : 0};
		struct graph *whole, *part;

		make_trial(&t, (uint32_t)i);
		mode.end_after = 1 + (int)below(&t, (uint32_t)t.nr_events);
		mode.end_actor = below(&t, t.nr_actors);
		assert_int_equal(play(&t, mode, &whole, NULL), BASE_OK);
		assert_int_equal(graph_finish(whole, GRAPH_ANY_ACTOR, NULL), BASE_OK);
		t.nr_events = mode.end_after;
		assert_int_equal(play(&t, mode, &part, NULL), BASE_OK);
		assert_int_equal(graph_finish(part, GRAPH_ENDS, NULL), BASE_OK);
		compare_ends(whole, part, &t);
		graph_free(whole);
		graph_free(part);
	}
}

/* ---- failing, and memory --------------------------------------------------------------------- */

static enum base_status whole_run(const struct trial *t, struct base_err *err)
{
	const struct graph_state_totals *totals;
	const struct graph_path_edge *path;
	struct graph_lane_result lane;
	struct graph *g = NULL;
	enum base_status s = play(t, (struct mode){.arena_nodes = 5}, &g, err);
	size_t nr;

	if (!s)
		s = graph_finish(g, t->end_actor, err);
	for (unsigned l = 0; l <= t->options.nr_scenarios && !s; l++)
		s = graph_lane(g, l, &lane, err);
	if (!s && t->options.runner_up)
		s = graph_lane(g, GRAPH_RUNNER_UP, &lane, err);
	if (!s && t->options.keep_path)
		s = graph_path(g, &path, &nr, err);
	if (!s)
		s = graph_totals(g, &totals, &nr, err);
	graph_free(g);
	return s;
}

static void every_allocation_may_fail(void **unused)
{
	static struct trial t;

	(void)unused;
	for (uint32_t seed = 0; seed < 24; seed++) {
		enum base_status s = BASE_ERR_NOMEM;

		make_trial(&t, seed);
		t.options.keep_path = t.options.runner_up = t.options.nr_scenarios < 29;
		for (uint64_t n = 1; s; n++) {
			struct base_err err = {0};

			s = WITHOUT_NTH(n, whole_run(&t, &err));
			if (s) {
				assert_int_equal(err.status, BASE_ERR_NOMEM);
				assert_true(err.nr_causes > 0);
			}
		}
	}
}

static void must(enum base_status s)
{
	assert_int_equal(s, BASE_OK);
}

/* A pipeline of three with standing queues, seventeen lanes, for as long as one likes. */
static struct graph *pipeline(const struct graph_options *o, uint64_t nr_rounds)
{
	struct graph *g;
	uint32_t id;
	uint64_t time = 0;
	enum base_status s = BASE_OK;

	must(graph_new(o, &g, NULL));
	for (int i = 0; i < 3; i++)
		must(graph_add_actor(g, &id, NULL));
	for (int i = 0; i < 20; i++)
		must(graph_add_state(g, &id, NULL));
	for (uint32_t i = 0; i < 2; i++)
		must(graph_add_queue(g,
			&(struct graph_queue_options){.capacity = 100, .latency_state = 17 + i},
			&id, NULL));
	must(graph_state(g, &(struct graph_verb){.flags = GRAPH_START}, NULL));
	must(graph_link(g, &(struct graph_verb){.actor = 1}, 0, NULL));
	must(graph_link(g, &(struct graph_verb){.actor = 2}, 0, NULL));
	for (uint64_t i = 0; i < nr_rounds && !s; i++) {
		struct graph_verb v = {.time_ns = ++time, .state = (uint32_t)(i % 17), .n = 1};

		s = graph_enqueue(g, &v, NULL);
		v.actor = 1;
		v.time_ns = time += 1 + (i & 3);
		if (!s && i >= 50)
			s = graph_dequeue(g, &v, NULL);
		if (!s && i >= 50 && i % 3)
			s = graph_wait(g, &v, NULL);
		v.queue = 1;
		v.time_ns = time += 1;
		if (!s && i >= 50)
			s = graph_enqueue(g, &v, NULL);
		v.actor = 2;
		if (!s && i >= 90)
			s = graph_dequeue(g, &v, NULL);
	}
	assert_true(s == BASE_OK || s == BASE_ERR_LIMIT);
	return g;
}

static void memory_is_bounded(void **unused)
{
	struct graph_edit edit[16];
	struct graph_scenario sc[16];
	struct graph_lane_result r;
	struct graph_options o = {.size = sizeof o, .scenario = sc, .nr_scenarios = 16};
	struct graph *g;
	size_t early;

	(void)unused;
	for (uint32_t i = 0; i < 16; i++) {
		edit[i] = (struct graph_edit){GRAPH_EDIT_SCALE_STATE, i, 0.5, 0};
		sc[i] = (struct graph_scenario){&edit[i], 1};
	}
	g = pipeline(&o, 40000);
	early = graph_memory_bytes(g);
	graph_free(g);
	g = pipeline(&o, 4400000); /* 20 million verbs */
	assert_true(graph_memory_bytes(g) <= early);
	assert_true(graph_memory_bytes(g) < 8u << 20);
	must(graph_finish(g, GRAPH_ANY_ACTOR, NULL));
	must(graph_lane(g, 0, &r, NULL));
	assert_true(r.length_ns == (double)(r.end_ns - r.start_ns));
	graph_free(g);
}

static void limit_is_kept(void **unused)
{
	struct graph_options o = {
		.size = sizeof o, .keep_path = true, .max_memory_bytes = 3u << 20};
	struct graph *g = pipeline(&o, 400000);
	struct base_err err = {0};

	(void)unused;
	assert_true(graph_memory_bytes(g) <= o.max_memory_bytes);
	assert_int_equal(graph_finish(g, GRAPH_ANY_ACTOR, &err), BASE_ERR_LIMIT);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_in_the_built_graph),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(ends_know_nothing_of_the_future),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(limit_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

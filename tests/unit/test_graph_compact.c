/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_graph_compact.c - the invariants of the compact graph (seed 000, section 5.9.2) on random
 * runs; its sums are those of the engine and of the really built graph; shapes lose nothing that
 * they do not say.
 */
#include "graph/compact.h"
#include "graph_trial.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define NONE_ GRAPH_COMPACT_NONE

struct run {
	struct graph *first, *second; /* the path's pass, and the recorder's */
	struct graph_compact_recorder *recorder;
	struct graph_compact c;
	struct graph_lane_result lane;
};

static void run_fini(struct run *r)
{
	graph_compact_fini(&r->c);
	graph_compact_free(r->recorder);
	graph_free(r->first);
	graph_free(r->second);
}

static enum base_status declare(struct graph *g, const struct trial *t, struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint32_t id;

	for (uint32_t i = 0; i < t->nr_actors && !s; i++)
		s = graph_add_actor(g, &id, err);
	for (uint32_t i = 0; i < t->nr_states && !s; i++)
		s = graph_add_state(g, &id, err);
	for (uint32_t i = 0; i < t->nr_queues && !s; i++)
		s = graph_add_queue(g, &t->queue[i], &id, err);
	return s;
}

static enum base_status play(const struct trial *t, const struct graph_options *o,
	const struct graph_sink *sink, struct graph **ret, struct base_err *err)
{
	enum base_status s = graph_new(o, ret, err);

	if (!s)
		s = declare(*ret, t, err);
	for (int i = 0; i < t->nr_events && !s; i++) {
		const struct event *e = &t->event[i];

		s = play_one(*ret, e, err);
		if (!s && sink)
			s = sink->verb(
				sink->ctx, (enum graph_verb_kind)e->verb, &e->v, e->from, err);
	}
	return s ? s : graph_finish(*ret, t->end_actor, err);
}

/* Two passes over the same run: the path, then the compact graph with the path laid over it. */
static enum base_status record(const struct trial *t, struct run *r, struct base_err *err)
{
	struct graph_options o = {
		.size = sizeof o, .keep_path = true, .max_queued = t->options.max_queued};
	struct graph_compact_options co = {.size = sizeof co};
	enum base_status s = play(t, &o, NULL, &r->first, err);

	if (!s)
		s = graph_lane(r->first, 0, &r->lane, err);
	if (!s)
		s = graph_path(r->first, &co.path, &co.nr_path, err);
	if (!s)
		s = graph_compact_new(&co, &r->recorder, err);
	if (s)
		return s;
	o.keep_path = false;
	o.listener = graph_compact_listener(r->recorder);
	s = play(t, &o, graph_compact_sink(r->recorder), &r->second, err);
	return s ? s : graph_compact_finish(r->recorder, &r->c, err);
}

static void must_record(const struct trial *t, struct run *r)
{
	*r = (struct run){0};
	assert_int_equal(record(t, r, NULL), BASE_OK);
}

/* ---- the five invariants --------------------------------------------------------------------- */

enum { NODES_MAX = 4096 };

/* (1) As often in as out, but for `slack` first and last ones of each actor. */
static void assert_flow(const struct graph_compact *c, uint32_t nr_actors, uint64_t slack)
{
	static uint64_t in[NODES_MAX], out[NODES_MAX];
	uint64_t begins[REF_ACTORS] = {0}, ends[REF_ACTORS] = {0};

	assert_true(c->nr_nodes <= NODES_MAX);
	memset(in, 0, sizeof in);
	memset(out, 0, sizeof out);
	for (size_t i = 0; i < c->nr_edges; i++) {
		const struct graph_compact_edge *e = &c->edge[i];

		assert_int_equal(c->node[e->from].actor < nr_actors, 1);
		if (e->to == NONE_)
			continue; /* did not end in the window */
		out[e->from] += e->passes;
		in[e->to] += e->passes;
	}
	for (size_t i = 0; i < c->nr_nodes; i++) {
		const struct graph_compact_node *n = &c->node[i];

		assert_true(in[i] <= n->passes && out[i] <= n->passes);
		begins[n->actor] += n->passes - in[i];
		ends[n->actor] += n->passes - out[i];
		if (n->from == NONE_ && slack == 1)
			assert_int_equal(in[i], 0);
	}
	for (uint32_t a = 0; a < nr_actors; a++)
		assert_true(begins[a] <= slack && begins[a] == ends[a]);
}

/* (2) */
static void assert_path_within_time(const struct graph_compact *c)
{
	for (size_t i = 0; i < c->nr_edges; i++) {
		assert_true(c->edge[i].path_ns <= c->edge[i].time_ns);
		assert_true(c->edge[i].path_visits <= c->edge[i].visits);
		assert_true(c->edge[i].waiting_ns <= c->edge[i].time_ns);
	}
}

/* (3) and that edges join transitions that fit. */
static void assert_one_node_each(const struct graph_compact *c)
{
	for (size_t i = 0; i < c->nr_nodes; i++) {
		const struct graph_compact_node *a = &c->node[i];

		for (size_t k = 0; k < i; k++) {
			const struct graph_compact_node *b = &c->node[k];

			assert_false(a->actor == b->actor && a->from == b->from && a->to == b->to);
		}
	}
	for (size_t i = 0; i < c->nr_edges; i++) {
		const struct graph_compact_edge *e = &c->edge[i];

		assert_int_equal(c->node[e->from].to, e->state);
		if (e->to == NONE_)
			continue;
		assert_int_equal(c->node[e->to].from, e->state);
		assert_int_equal(c->node[e->to].actor, c->node[e->from].actor);
	}
}

/* (4) How many pairs of edges carry the same state of the same actor. */
static size_t shared_states(const struct graph_compact *c)
{
	size_t nr = 0;

	for (size_t i = 0; i < c->nr_edges; i++)
		for (size_t k = 0; k < i; k++)
			nr += c->edge[i].state == c->edge[k].state &&
			      c->node[c->edge[i].from].actor == c->node[c->edge[k].from].actor;
	return nr;
}

/* ---- against the engine's own sums ----------------------------------------------------------- */

struct sums {
	uint64_t visits, time_ns, waiting_ns, path_ns;
};

static void sum_by_state(
	const struct graph_compact *c, struct sums sum[REF_ACTORS][REF_STATES], bool open)
{
	memset(sum, 0, sizeof(struct sums) * REF_ACTORS * REF_STATES);
	for (size_t i = 0; i < c->nr_edges; i++) {
		const struct graph_compact_edge *e = &c->edge[i];
		struct sums *s = &sum[c->node[e->from].actor][e->state];

		s->path_ns += e->path_ns;
		if (e->to == NONE_ && !open)
			continue; /* the engine does not count what did not end */
		s->visits += e->visits;
		s->time_ns += e->time_ns;
		s->waiting_ns += e->waiting_ns;
	}
}

/* (5) All the time is on edges: crossings have none. */
static void assert_as_totals(const struct run *r)
{
	struct sums sum[REF_ACTORS][REF_STATES];
	const struct graph_state_totals *t;
	size_t nr, seen = 0;

	sum_by_state(&r->c, sum, false);
	assert_int_equal(graph_totals(r->second, &t, &nr, NULL), BASE_OK);
	for (size_t i = 0; i < nr; i++) {
		const struct sums *s = &sum[t[i].actor][t[i].state];

		assert_int_equal(s->visits, t[i].visits);
		assert_int_equal(s->time_ns, t[i].total_ns);
		assert_int_equal(s->waiting_ns, t[i].waiting_ns);
	}
	for (int a = 0; a < REF_ACTORS; a++)
		for (int s = 0; s < REF_STATES; s++)
			seen += sum[a][s].visits != 0;
	assert_int_equal(seen, nr);
}

static uint64_t path_of(const struct graph_compact *c)
{
	uint64_t sum = c->unplaced_ns + c->loss.path_ns;

	for (size_t i = 0; i < c->nr_edges; i++)
		sum += c->edge[i].path_ns;
	for (size_t i = 0; i < c->nr_crosses; i++)
		sum += c->cross[i].path_ns;
	return sum;
}

/* The path's sums by state are lane 0's, and its latencies are the crossings'. */
static void assert_as_path(const struct run *r, const struct trial *t)
{
	struct sums sum[REF_ACTORS][REF_STATES];

	if (!r->lane.found)
		return;
	assert_true((double)path_of(&r->c) == r->lane.length_ns);
	if (!t->one_start || (t->has_rename && r->c.unplaced_ns))
		return;
	assert_int_equal(r->c.unplaced_ns, 0);
	sum_by_state(&r->c, sum, true);
	for (size_t i = 0; i < r->c.nr_crosses; i++) {
		const struct graph_compact_cross *x = &r->c.cross[i];

		assert_true(x->path_ns <= x->latency_ns);
		if (x->queue != NONE_)
			sum[r->c.node[x->to].actor][t->queue[x->queue].latency_state].path_ns +=
				x->path_ns;
		else
			assert_int_equal(x->path_ns, 0);
	}
	for (size_t i = 0; i < r->lane.nr_states; i++) {
		const struct graph_path_state *p = &r->lane.state[i];

		assert_true((double)sum[p->actor][p->state].path_ns == p->path_ns);
		sum[p->actor][p->state].path_ns = 0;
	}
	for (int a = 0; a < REF_ACTORS; a++)
		for (int s = 0; s < REF_STATES; s++)
			assert_int_equal(sum[a][s].path_ns, 0);
}

/* ---- against the really built graph ---------------------------------------------------------- */

static struct ref reference;

static void assert_crosses(const struct run *r, const struct trial *t)
{
	static uint64_t want[REF_ACTORS][REF_ACTORS][REF_QUEUES + 1];
	struct graph_options o = {.max_queued = t->options.max_queued};

	memset(want, 0, sizeof want);
	ref_init(&reference, &o, true);
	for (uint32_t i = 0; i < t->nr_queues; i++)
		ref_add_queue(&reference, &t->queue[i]);
	for (int i = 0; i < t->nr_events; i++)
		ref_play(&reference, t->event[i].verb, &t->event[i].v, (int)t->event[i].from);
	ref_flush(&reference);
	for (int i = 0; i < reference.nr_edges; i++) {
		const struct ref_edge *e = &reference.edge[i];

		if (!e->own)
			want[reference.node[e->from].actor][reference.node[e->to].actor]
			    [e->link ? REF_QUEUES : e->queue]++;
	}
	for (size_t i = 0; i < r->c.nr_crosses; i++) {
		const struct graph_compact_cross *x = &r->c.cross[i];

		want[r->c.node[x->from].actor][r->c.node[x->to].actor]
		    [x->queue == NONE_ ? REF_QUEUES : x->queue] -= x->uses;
	}
	for (int a = 0; a < REF_ACTORS; a++)
		for (int b = 0; b < REF_ACTORS; b++)
			for (int q = 0; q <= REF_QUEUES; q++)
				assert_int_equal(want[a][b][q], 0);
}

static void invariants_hold(void **unused)
{
	static struct trial t;
	size_t shared = 0, crosses = 0;
	struct run r;

	(void)unused;
	for (int i = 0; i < nr_trials(3000); i++) {
		make_trial(&t, (uint32_t)i);
		must_record(&t, &r);
		assert_flow(&r.c, t.nr_actors, 1);
		if (t.one_start)
			assert_path_within_time(&r.c);
		assert_one_node_each(&r.c);
		assert_as_totals(&r);
		assert_as_path(&r, &t);
		assert_crosses(&r, &t);
		shared += shared_states(&r.c);
		crosses += r.c.nr_crosses;
		run_fini(&r);
	}
	assert_true(shared > 0 && crosses > 0);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static struct sums all_edges(const struct graph_compact *c)
{
	struct sums s = {c->loss.visits, c->loss.time_ns, 0, path_of(c)};

	for (size_t i = 0; i < c->nr_edges; i++) {
		s.visits += c->edge[i].visits;
		s.time_ns += c->edge[i].time_ns;
	}
	return s;
}

static uint64_t all_uses(const struct graph_compact *c)
{
	uint64_t sum = c->loss.uses;

	for (size_t i = 0; i < c->nr_crosses; i++)
		sum += c->cross[i].uses;
	return sum;
}

static void assert_same_sums(const struct graph_compact *a, const struct graph_compact *b)
{
	struct sums x = all_edges(a), y = all_edges(b);

	assert_int_equal(x.visits, y.visits);
	assert_int_equal(x.time_ns, y.time_ns);
	assert_int_equal(x.path_ns, y.path_ns);
	assert_int_equal(all_uses(a), all_uses(b));
}

static void assert_no_straight_run(const struct graph_compact *c)
{
	for (size_t n = 0; n < c->nr_nodes; n++) {
		uint64_t in = 0, out = 0, in_passes = 0, out_passes = 0;
		bool kept = false;

		for (size_t i = 0; i < c->nr_edges; i++) {
			const struct graph_compact_edge *e = &c->edge[i];

			kept |= e->from == n && (e->to == n || e->to == NONE_);
			in += e->to == n;
			out += e->from == n;
			in_passes += e->to == n ? e->passes : 0;
			out_passes += e->from == n ? e->passes : 0;
		}
		for (size_t i = 0; i < c->nr_crosses; i++)
			kept |= c->cross[i].from == n || c->cross[i].to == n;
		assert_true(kept || in != 1 || out != 1 || in_passes != out_passes);
	}
}

static void folding_keeps_the_invariants(void **unused)
{
	static struct trial t;
	struct run r;

	(void)unused;
	for (int i = 0; i < nr_trials(600); i++) {
		uint32_t actor[REF_ACTORS], state[REF_STATES], queue[REF_QUEUES];
		struct graph_compact_classes k = {actor, state, queue};
		struct graph_compact folded;

		make_trial(&t, (uint32_t)i);
		must_record(&t, &r);
		for (uint32_t a = 0; a < REF_ACTORS; a++)
			actor[a] = below(&t, 2);
		for (uint32_t s = 0; s < REF_STATES; s++)
			state[s] = below(&t, 4);
		for (uint32_t q = 0; q < REF_QUEUES; q++)
			queue[q] = below(&t, 2);
		if (i % 4 == 0)
			k.actor = NULL;
		assert_int_equal(graph_compact_fold(&r.c, &k, &folded, NULL), BASE_OK);
		assert_same_sums(&r.c, &folded);
		assert_flow(&folded, k.actor ? 2 : t.nr_actors, k.actor ? t.nr_actors : 1);
		assert_one_node_each(&folded);
		if (t.one_start)
			assert_path_within_time(&folded);
		assert_true(folded.nr_nodes <= r.c.nr_nodes && folded.nr_uses <= r.c.nr_uses);
		graph_compact_fini(&folded);
		run_fini(&r);
	}
}

static void merging_loses_nothing(void **unused)
{
	static const struct graph_compact_classes same = {0};
	static struct trial t;
	uint64_t merged_nodes = 0;
	struct run r;

	(void)unused;
	for (int i = 0; i < nr_trials(1200); i++) {
		struct graph_compact merged;

		make_trial(&t, (uint32_t)i);
		must_record(&t, &r);
		if (i % 2) /* programs cross everywhere: without that there are longer runs */
			r.c.nr_crosses = 0;
		assert_int_equal(graph_compact_fold(&r.c, &same, &merged, NULL), BASE_OK);
		assert_int_equal(graph_compact_merge(&merged, NULL), BASE_OK);
		assert_same_sums(&r.c, &merged);
		assert_flow(&merged, t.nr_actors, 1);
		assert_no_straight_run(&merged);
		assert_int_equal(merged.nr_nodes + merged.loss.nr_merged_nodes, r.c.nr_nodes);
		for (size_t k = 0; k < merged.nr_edges && !t.has_rename; k++)
			assert_int_equal(merged.edge[k].visits,
				merged.edge[k].passes * merged.edge[k].nr_states);
		merged_nodes += merged.loss.nr_merged_nodes;
		graph_compact_fini(&merged);
		run_fini(&r);
	}
	assert_true(merged_nodes > 0);
}

static void pruning_says_what_it_took(void **unused)
{
	static const struct graph_compact_classes same = {0};
	static struct trial t;
	struct run r;

	(void)unused;
	for (int i = 0; i < nr_trials(600); i++) {
		struct graph_compact pruned;
		size_t max;

		make_trial(&t, (uint32_t)i);
		must_record(&t, &r);
		max = below(&t, (uint32_t)r.c.nr_nodes + 3);
		assert_int_equal(graph_compact_fold(&r.c, &same, &pruned, NULL), BASE_OK);
		assert_int_equal(graph_compact_prune(&pruned, max, NULL), BASE_OK);
		assert_true(pruned.nr_nodes <= max);
		assert_same_sums(&r.c, &pruned);
		assert_int_equal(pruned.nr_nodes + pruned.loss.nr_pruned_nodes, r.c.nr_nodes);
		assert_int_equal(pruned.nr_edges + pruned.loss.nr_pruned_edges, r.c.nr_edges);
		assert_int_equal(pruned.nr_crosses + pruned.loss.nr_pruned_crosses, r.c.nr_crosses);
		assert_int_equal(graph_compact_merge(&pruned, NULL), BASE_OK);
		assert_same_sums(&r.c, &pruned);
		if (max >= r.c.nr_nodes)
			assert_int_equal(pruned.loss.nr_pruned_nodes, 0);
		graph_compact_fini(&pruned);
		run_fini(&r);
	}
}

/* One actor alone: all of its own, stubs of the others, and no crossing between two stubs. */
static void one_machine_alone(void **unused)
{
	static struct trial t;
	struct run r;

	(void)unused;
	for (int i = 0; i < nr_trials(600); i++) {
		bool keep[REF_ACTORS] = {false};
		struct graph_compact one;
		uint64_t own = 0, got = 0, uses = 0;
		uint32_t chosen;

		make_trial(&t, (uint32_t)i);
		must_record(&t, &r);
		chosen = below(&t, t.nr_actors);
		keep[chosen] = true;
		assert_int_equal(graph_compact_select(&r.c, keep, &one, NULL), BASE_OK);
		for (size_t k = 0; k < r.c.nr_edges; k++)
			own += r.c.node[r.c.edge[k].from].actor == chosen ? r.c.edge[k].time_ns : 0;
		for (size_t k = 0; k < r.c.nr_crosses; k++)
			uses += r.c.node[r.c.cross[k].from].actor == chosen ||
						r.c.node[r.c.cross[k].to].actor == chosen
					? r.c.cross[k].uses
					: 0;
		for (size_t k = 0; k < one.nr_edges; k++)
			got += one.edge[k].time_ns;
		assert_int_equal(own, got);
		assert_int_equal(uses, all_uses(&one));
		for (size_t k = 0; k < one.nr_nodes; k++)
			assert_int_equal(one.node[k].stub, one.node[k].actor != chosen);
		for (size_t k = 0; k < one.nr_crosses; k++)
			assert_false(
				one.node[one.cross[k].from].stub && one.node[one.cross[k].to].stub);
		graph_compact_fini(&one);
		run_fini(&r);
	}
}

/* ---- failing --------------------------------------------------------------------------------- */

static enum base_status everything(const struct trial *t, struct base_err *err)
{
	static const struct graph_compact_classes same = {0};
	bool keep[REF_ACTORS] = {true};
	struct graph_compact folded = {0}, one = {0};
	struct run r = {0};
	enum base_status s = record(t, &r, err);

	if (!s)
		s = graph_compact_fold(&r.c, &same, &folded, err);
	if (!s)
		s = graph_compact_select(&r.c, keep, &one, err);
	if (!s)
		s = graph_compact_merge(&folded, err);
	if (!s)
		s = graph_compact_prune(&folded, folded.nr_nodes / 2, err);
	graph_compact_fini(&one);
	graph_compact_fini(&folded);
	run_fini(&r);
	return s;
}

static void every_allocation_may_fail(void **unused)
{
	static struct trial t;

	(void)unused;
	for (uint32_t seed = 0; seed < 12; seed++) {
		enum base_status s = BASE_ERR_NOMEM;

		make_trial(&t, seed);
		for (uint64_t n = 1; s; n++) {
			struct base_err err = {0};

			s = WITHOUT_NTH(n, everything(&t, &err));
			if (s) {
				assert_int_equal(err.status, BASE_ERR_NOMEM);
				assert_true(err.nr_causes > 0);
			}
		}
	}
}

static void limit_is_kept(void **unused)
{
	struct graph_compact_options co = {.size = sizeof co, .limit = 3};
	struct graph_options o = {.size = sizeof o};
	struct graph_compact_recorder *r;
	struct base_err err = {0};
	static struct trial t;
	struct graph *g = NULL;

	(void)unused;
	make_trial(&t, 4);
	assert_int_equal(graph_compact_new(&co, &r, NULL), BASE_OK);
	o.listener = graph_compact_listener(r);
	assert_int_equal(play(&t, &o, graph_compact_sink(r), &g, &err), BASE_ERR_LIMIT);
	assert_non_null(strstr(err.cause[0], "more than 3 distinct"));
	graph_compact_free(r);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(invariants_hold),
		cmocka_unit_test(folding_keeps_the_invariants),
		cmocka_unit_test(merging_loses_nothing),
		cmocka_unit_test(pruning_says_what_it_took),
		cmocka_unit_test(one_machine_alone),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(limit_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_graph_window.c - a window of a run: known answers; and on random runs the laws that its path
 * is the whole run's, clipped, that time is conserved, that two windows make one, and that neither
 * the arena nor a missing allocation matters.
 */
#include "graph/graph.h"
#include "graph/part.h"
#include "graph/priv.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

enum { ACTORS = 5, STATES = 6, QUEUES = 3, EVENTS_MAX = 400, LANES = 3 };

struct event {
	enum graph_verb_kind kind;
	struct graph_verb v;
	uint32_t from;
};
struct run {
	struct graph_queue_options queue[QUEUES];
	struct event event[EVENTS_MAX];
	int nr;
	bool birth[EVENTS_MAX]; /* graph_birth() after it */
	uint32_t random, end_actor;
};
struct part {
	uint64_t from_ns, to_ns;
	bool restart, cut; /* whether to make the calls */
	uint32_t arena;
	bool keep_path, runner_up;
	bool alone; /* no scenarios */
};

static void must(enum base_status s)
{
	assert_int_equal(s, BASE_OK);
}

/* The last scenario changes nothing. */
static const struct graph_edit half[] = {{.kind = GRAPH_EDIT_SCALE_STATE, .id = 1, .factor = 0.5},
	{.kind = GRAPH_EDIT_SCALE_STATE, .id = 2, .factor = 0.5}};
static const struct graph_edit without[] = {{.kind = GRAPH_EDIT_IGNORE_QUEUE, .id = 1}};
static const struct graph_scenario scenario[LANES] = {{half, 2}, {without, 1}, {NULL, 0}};

static enum base_status play(
	const struct run *r, const struct part *w, struct graph **ret, struct base_err *err)
{
	struct graph_options o = {.size = sizeof o,
		.keep_path = w->keep_path,
		.runner_up = w->runner_up,
		.scenario = scenario,
		.nr_scenarios = w->alone ? 0 : LANES,
		.restarts = w->restart};
	bool restart = w->restart, cut = w->cut;
	uint32_t id;
	enum base_status s = graph_new(&o, ret, err);

	if (!s && w->arena)
		graph_set_arena_nodes(*ret, w->arena);
	for (int i = 0; i < ACTORS && !s; i++)
		s = graph_add_actor(*ret, &id, err);
	for (int i = 0; i < STATES && !s; i++)
		s = graph_add_state(*ret, &id, err);
	for (int i = 0; i < QUEUES && !s; i++)
		s = graph_add_queue(*ret, &r->queue[i], &id, err);
	for (int i = 0; i < r->nr && !s; i++) {
		const struct event *e = &r->event[i];

		if (restart && e->v.time_ns >= w->from_ns) {
			s = graph_restart(*ret, w->from_ns, err);
			restart = false;
		}
		if (!s && cut && !restart && e->v.time_ns > w->to_ns) {
			s = graph_cut(*ret, w->to_ns, err);
			cut = false;
		}
		if (!s)
			s = graph_apply(*ret, e->kind, &e->v, e->from, err);
	}
	return s ? s : graph_finish(*ret, r->end_actor, err);
}

static struct graph *played(const struct run *r, struct part w)
{
	struct graph *g;

	must(play(r, &w, &g, NULL));
	return g;
}

static struct graph_lane_result lane(struct graph *g, unsigned l)
{
	struct graph_lane_result r;

	must(graph_lane(g, l, &r, NULL));
	return r;
}

static double on_path(struct graph *g, unsigned l, uint32_t actor, uint32_t state)
{
	struct graph_lane_result r = lane(g, l);

	for (size_t i = 0; i < r.nr_states; i++) {
		if (r.state[i].actor == actor && r.state[i].state == state)
			return r.state[i].path_ns;
	}
	return 0;
}

/* Every lane is as long as the sum of its states. */
static void assert_sums(struct graph *g)
{
	for (unsigned l = 0; l <= LANES; l++) {
		struct graph_lane_result r = lane(g, l);
		double sum = 0;

		for (size_t i = 0; i < r.nr_states; i++)
			sum += r.state[i].path_ns;
		assert_true(sum == r.length_ns);
	}
	assert_true(lane(g, LANES).length_ns == lane(g, 0).length_ns);
}

/* ---- known answers --------------------------------------------------------------------------- */

static struct event *add(
	struct run *r, uint64_t time_ns, uint32_t actor, enum graph_verb_kind kind, uint32_t state)
{
	struct event *e = &r->event[r->nr++];

	assert_true(r->nr <= EVENTS_MAX);
	*e = (struct event){.kind = kind};
	e->v = (struct graph_verb){.time_ns = time_ns, .actor = actor, .state = state, .n = 1};
	return e;
}

/* 0 makes 1 at 10 and waits; 1 works in state 1 and puts at 100; 0 has it at 104 and works to 200.
 */
static void make_hand_over(struct run *r)
{
	*r = (struct run){.end_actor = 0};
	r->queue[0].latency_state = 4;
	add(r, 0, 0, GRAPH_VERB_state, 0)->v.flags = GRAPH_START;
	add(r, 10, 1, GRAPH_VERB_link, 1);
	add(r, 10, 0, GRAPH_VERB_wait_empty, 2);
	add(r, 100, 1, GRAPH_VERB_enqueue, 3);
	add(r, 104, 0, GRAPH_VERB_dequeue, 0);
	add(r, 200, 0, GRAPH_VERB_state, 0);
	add(r, 250, 1, GRAPH_VERB_state, 3);
}

static void known_windows(void **unused)
{
	static struct run r;
	static const struct {
		uint64_t from, to;
		double first_0, second_1, under_way, hand_over, first_2;
	} row[] = {
		{0, 250, 106, 90, 0, 4, 0},
		{50, 150, 46, 50, 0, 4, 0},
		{102, 150, 46, 0, 0, 2, 0}, /* put before the window, taken in it */
		{50, 80, 0, 30, 0, 0, 0},   /* 0 waits: for whom, the rest of the run says */
		{5, 80, 5, 70, 0, 0, 0},
		{50, 102, 0, 50, 2, 0, 0},  /* under way at the cut: charged to its producer */
		{150, 230, 50, 0, 0, 0, 0}, /* the end actor's last verb is in it */
		{104, 104, 0, 0, 0, 0, 0},
	};

	(void)unused;
	make_hand_over(&r);
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct part w = {row[i].from, row[i].to, true, true, 0, true, false, false};
		struct graph *g = played(&r, w);
		struct graph_lane_result l = lane(g, 0);

		assert_true(l.found);
		assert_int_equal(l.start_ns, row[i].from);
		assert_int_equal(l.end_ns, row[i].to < 200 ? row[i].to : 200);
		assert_true(l.length_ns == (double)(l.end_ns - l.start_ns));
		assert_true(on_path(g, 0, 0, 0) == row[i].first_0);
		assert_true(on_path(g, 0, 1, 1) == row[i].second_1);
		assert_true(on_path(g, 0, 1, 4) == row[i].under_way);
		assert_true(on_path(g, 0, 0, 4) == row[i].hand_over);
		assert_true(on_path(g, 0, 0, 2) == row[i].first_2);
		/* half of what 1 does in state 1; 0 waits meanwhile */
		assert_true(on_path(g, 1, 1, 1) == row[i].second_1 / 2);
		assert_sums(g);
		graph_free(g);
	}
}

static void statistics_are_the_windows(void **unused)
{
	static struct run r;
	struct graph *g;
	const struct graph_queue_stats *st;
	const struct graph_state_totals *tot;
	size_t nr;

	(void)unused;
	make_hand_over(&r);
	g = played(&r, (struct part){50, 150, true, true, 0, false, false, false});
	st = graph_queue_stats(g, 0);
	assert_int_equal(st->enqueued, 1);
	assert_int_equal(st->dequeued, 1);
	assert_int_equal(st->nr_waits_data, 1);
	assert_int_equal(st->wait_data_ns, 54);
	assert_int_equal(st->residence_ns, 4);
	assert_int_equal(st->units_time, 4);
	must(graph_totals(g, &tot, &nr, NULL));
	assert_int_equal(nr, 4);
	assert_true(tot[0].state == 0 && tot[0].total_ns == 46 && !tot[0].waiting_ns);
	assert_true(tot[1].state == 2 && tot[1].total_ns == 54 && tot[1].waiting_ns == 54);
	assert_true(tot[2].state == 1 && tot[2].total_ns == 50);
	assert_true(tot[3].state == 3 && tot[3].total_ns == 50);
	graph_free(g);
	g = played(&r, (struct part){102, 103, true, true, 0, false, false, false});
	st = graph_queue_stats(g, 0);
	assert_int_equal(st->enqueued, 0);
	assert_int_equal(st->max_units, 1);
	assert_int_equal(st->nr_waits_data, 1);
	assert_int_equal(st->wait_data_ns, 1);
	assert_int_equal(st->units_time, 1);
	graph_free(g);
}

/* An end that was reached before the window is none; one that starts after it is none either. */
static void ends_outside(void **unused)
{
	struct graph_options o = {.size = sizeof o, .keep_path = true, .restarts = true};
	const struct graph_path_edge *edge;
	struct graph_lane_result l;
	struct graph *g;
	uint32_t id;
	size_t nr;

	(void)unused;
	must(graph_new(&o, &g, NULL));
	must(graph_add_actor(g, &id, NULL));
	must(graph_add_actor(g, &id, NULL));
	must(graph_add_state(g, &id, NULL));
	must(graph_state(g, &(struct graph_verb){.flags = GRAPH_START}, NULL));
	must(graph_state(g, &(struct graph_verb){.time_ns = 5}, NULL));
	must(graph_end(g, 0, 0, 5, NULL));
	must(graph_restart(g, 10, NULL));
	must(graph_state(g, &(struct graph_verb){.time_ns = 15}, NULL));
	must(graph_end(g, 1, 0, 17, NULL));
	must(graph_cut(g, 20, NULL));
	must(graph_state(g, &(struct graph_verb){.time_ns = 25}, NULL));
	must(graph_end(g, 2, 0, 25, NULL));
	must(graph_state(
		g, &(struct graph_verb){.time_ns = 30, .actor = 1, .flags = GRAPH_START}, NULL));
	must(graph_end(g, 3, 1, 35, NULL));
	must(graph_finish(g, GRAPH_ENDS, NULL));
	static const struct {
		bool found;
		double length_ns;
	} end[] = {{false, 0}, {true, 7}, {true, 10}, {false, 0}};
	for (uint32_t i = 0; i < BASE_COUNT(end); i++) {
		must(graph_lane_of(g, i, 0, &l, NULL));
		assert_int_equal(l.found, end[i].found);
		assert_true(l.length_ns == end[i].length_ns);
		must(graph_path_of(g, i, &edge, &nr, NULL));
		assert_int_equal(nr > 0, end[i].found);
	}
	graph_free(g);
}

/* ---- random runs ----------------------------------------------------------------------------- */

static uint32_t below(struct run *r, uint32_t n)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 17;
	r->random ^= r->random << 5;
	return n ? (r->random >> 3) % n : 0;
}

/* Anybody does anything; one start, so that time is conserved. */
static void make_run(struct run *r, uint32_t seed)
{
	uint64_t time_ns;

	*r = (struct run){.random = seed * 2654435761u + 1};
	for (int i = 0; i < 8; i++)
		below(r, 2);
	for (int q = 0; q < QUEUES; q++)
		r->queue[q] = (struct graph_queue_options){
			.capacity = below(r, 2) ? 1 + below(r, 5) : 0,
			.initial = below(r, 3) ? 0 : below(r, 4),
			.latency_state = below(r, STATES),
			.discipline = (enum graph_discipline)below(r, 4),
		};
	r->end_actor = below(r, 3) ? GRAPH_ANY_ACTOR : below(r, ACTORS);
	time_ns = below(r, 20);
	add(r, time_ns, 0, GRAPH_VERB_state, 0)->v.flags = GRAPH_START;
	for (int nr = 2 + (int)below(r, EVENTS_MAX - 2); r->nr < nr;) {
		time_ns += below(r, 3) ? below(r, 12) : 0;
		struct event *e = add(r, time_ns, below(r, ACTORS),
			(enum graph_verb_kind)below(r, GRAPH_VERB_rename), below(r, STATES));

		e->from = below(r, ACTORS);
		e->v.queue = below(r, QUEUES);
		e->v.n = below(r, 12) ? (int64_t)below(r, 4) : GRAPH_ALL;
		e->v.key = below(r, 3);
		e->v.flags = (below(r, 8) ? 0 : GRAPH_MORE) | (below(r, 8) ? 0 : GRAPH_OPTIONAL) |
			     (below(r, 10) ? 0 : GRAPH_LAST) | (below(r, 14) ? 0 : GRAPH_BACK) |
			     (below(r, 10) ? 0 : GRAPH_EXPLAINED) |
			     (below(r, 20) ? 0 : GRAPH_ASIDE) | (below(r, 10) ? 0 : GRAPH_KEYED);
	}
}

struct piece { /* of a path, with extent */
	uint64_t begin_ns, end_ns;
	uint32_t actor, state;
};
struct pieces {
	struct piece piece[EVENTS_MAX * 2];
	size_t nr;
	bool under_way; /* the last piece is a hand-off that spans the cut: charged to its maker */
};

/* A path's edges between from and to; neighbours of one actor and state are one. */
static void take_pieces(struct graph *g, uint64_t from_ns, uint64_t to_ns, struct pieces *ret)
{
	const struct graph_path_edge *edge;
	size_t nr;

	*ret = (struct pieces){0};
	must(graph_path(g, &edge, &nr, NULL));
	for (size_t i = 0; i < nr; i++) {
		uint64_t b = edge[i].begin_ns, e = edge[i].end_ns;
		uint32_t actor = edge[i].actor;

		if (edge[i].queue != UINT32_MAX && b <= to_ns && e > to_ns) {
			ret->under_way = true;
			actor = edge[i].from_actor;
		}
		b = b > from_ns ? b : from_ns;
		e = e < to_ns ? e : to_ns;
		if (b >= e)
			continue;
		struct piece *last = ret->nr ? &ret->piece[ret->nr - 1] : NULL;
		if (last && last->end_ns == b && last->actor == actor &&
			last->state == edge[i].state)
			last->end_ns = e;
		else
			ret->piece[ret->nr++] = (struct piece){b, e, actor, edge[i].state};
	}
}

static void compare_paths(const struct pieces *want, const struct pieces *got)
{
	assert_int_equal(want->nr, got->nr);
	for (size_t i = 0; i < want->nr; i++) {
		const struct piece *w = &want->piece[i], *p = &got->piece[i];

		assert_int_equal(p->begin_ns, w->begin_ns);
		assert_int_equal(p->end_ns, w->end_ns);
		assert_int_equal(p->actor, w->actor);
		assert_int_equal(p->state, w->state);
	}
}

/* Each actor's states sum to the time in the window since it was first seen. */
static void assert_totals(struct graph *g, const struct run *r, uint64_t from_ns, uint64_t to_ns)
{
	const struct graph_state_totals *tot;
	uint64_t sum[ACTORS] = {0};
	bool seen[ACTORS] = {false};
	size_t nr;

	must(graph_totals(g, &tot, &nr, NULL));
	for (size_t i = 0; i < nr; i++) {
		sum[tot[i].actor] += tot[i].total_ns;
		assert_true(tot[i].waiting_ns <= tot[i].total_ns);
	}
	for (int i = 0; i < r->nr; i++) {
		const struct graph_verb *v = &r->event[i].v;
		bool aside =
			v->flags & GRAPH_ASIDE && (r->event[i].kind == GRAPH_VERB_enqueue ||
							  r->event[i].kind == GRAPH_VERB_dequeue);
		uint64_t first = v->time_ns > from_ns ? v->time_ns : from_ns;

		if (seen[v->actor] || aside)
			continue;
		seen[v->actor] = true;
		assert_int_equal(sum[v->actor], first < to_ns ? to_ns - first : 0);
	}
}

static uint64_t length_of(const struct pieces *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->nr; i++)
		sum += p->piece[i].end_ns - p->piece[i].begin_ns;
	return sum;
}

static void check_window(struct run *r, struct graph *whole, uint64_t from_ns, uint64_t to_ns)
{
	static const uint32_t arena[] = {0, 1, 3, 20};
	static struct pieces want, got;
	struct part w = {from_ns, to_ns, true, true, arena[below(r, 4)], true, below(r, 2), false};
	struct graph *g = played(r, w);
	struct graph_lane_result l = lane(g, 0);
	uint64_t last_ns = r->event[r->nr - 1].v.time_ns;

	take_pieces(whole, from_ns, to_ns, &want);
	take_pieces(g, 0, UINT64_MAX, &got);
	assert_int_equal(l.found, lane(whole, 0).found && to_ns >= r->event[0].v.time_ns);
	compare_paths(&want, &got);
	assert_true(l.length_ns == (double)length_of(&want));
	assert_true(l.length_ns == (double)length_of(&got));
	assert_sums(g);
	if (to_ns < last_ns)
		assert_totals(g, r, from_ns, to_ns);
	graph_free(g);
}

static int nr_trials(int usual)
{
	const char *text = getenv("GRAPH_TRIALS");

	return text ? atoi(text) : usual;
}

static void clipped(void **unused)
{
	static struct run r;

	(void)unused;
	for (int i = 0; i < nr_trials(4000); i++) {
		make_run(&r, (uint32_t)i);
		struct graph *whole = played(&r, (struct part){.keep_path = true});
		uint32_t last_ns = (uint32_t)r.event[r.nr - 1].v.time_ns;

		for (int k = 0; k < 4; k++) {
			uint64_t a = below(&r, last_ns + 1), b = below(&r, last_ns + 5);

			check_window(&r, whole,
				a < b         ? a
				: b < last_ns ? b
					      : last_ns,
				a < b ? b : a);
		}
		graph_free(whole);
	}
}

static void assert_same(struct graph *a, struct graph *b)
{
	const struct graph_path_edge *ea, *eb;
	const struct graph_state_totals *ta, *tb;
	size_t na, nb;

	for (unsigned l = 0; l <= LANES + 1; l++) {
		unsigned which = l > LANES ? GRAPH_RUNNER_UP : l;
		struct graph_lane_result x = lane(a, which), y = lane(b, which);

		assert_true(x.found == y.found && x.length_ns == y.length_ns);
		assert_true(x.start_ns == y.start_ns && x.end_ns == y.end_ns);
		assert_int_equal(x.nr_states, y.nr_states);
		if (x.nr_states)
			assert_memory_equal(x.state, y.state, x.nr_states * sizeof *x.state);
	}
	must(graph_path(a, &ea, &na, NULL));
	must(graph_path(b, &eb, &nb, NULL));
	assert_int_equal(na, nb);
	if (na)
		assert_memory_equal(ea, eb, na * sizeof *ea);
	must(graph_totals(a, &ta, &na, NULL));
	must(graph_totals(b, &tb, &nb, NULL));
	assert_int_equal(na, nb);
	assert_memory_equal(ta, tb, na * sizeof *ta);
	for (uint32_t q = 0; q < QUEUES; q++)
		assert_memory_equal(graph_queue_stats(a, q), graph_queue_stats(b, q),
			sizeof(struct graph_queue_stats));
}

/* From before the first verb to the last: not a bit differs. */
static void all_is_the_whole(void **unused)
{
	static struct run r;

	(void)unused;
	for (int i = 0; i < nr_trials(1500); i++) {
		make_run(&r, (uint32_t)i);
		struct part w = {.keep_path = true, .runner_up = true};
		struct graph *whole = played(&r, w);

		w.restart = w.cut = true;
		w.to_ns = i % 3 ? UINT64_MAX : r.event[r.nr - 1].v.time_ns;
		struct graph *g = played(&r, w);

		assert_same(whole, g);
		graph_free(g);
		graph_free(whole);
	}
}

/* The single lane of a graph without scenarios is lane 0 of one with them, in any window. */
static void alone_is_lane_0(void **unused)
{
	static const uint32_t arena[] = {0, 1, 4, 30};
	static struct run r;

	(void)unused;
	for (int i = 0; i < nr_trials(3000); i++) {
		make_run(&r, (uint32_t)i);
		uint32_t last_ns = (uint32_t)r.event[r.nr - 1].v.time_ns;
		uint64_t a = below(&r, last_ns + 1), b = a + below(&r, last_ns + 5);
		struct part w = {
			.from_ns = a, .to_ns = b, .restart = below(&r, 2), .cut = below(&r, 2)};
		struct graph *among = played(&r, w);

		w.alone = true;
		w.arena = arena[below(&r, 4)];
		struct graph *alone = played(&r, w);
		struct graph_lane_result x = lane(among, 0), y = lane(alone, 0);

		assert_true(x.found == y.found && x.length_ns == y.length_ns);
		assert_true(x.start_ns == y.start_ns && x.end_ns == y.end_ns);
		assert_int_equal(x.nr_states, y.nr_states);
		if (x.nr_states)
			assert_memory_equal(x.state, y.state, x.nr_states * sizeof *x.state);
		graph_free(alone);
		graph_free(among);
	}
}

/* ---- turns ----------------------------------------------------------------------------------- */

enum { TURNS_MAX = 8 };

struct turns {
	uint64_t at[TURNS_MAX + 1]; /* the last one: the run's end */
	struct graph_part *part[TURNS_MAX + 1];
	int nr;
};

static enum base_status play_turns(
	const struct run *r, struct turns *w, uint32_t arena, struct base_err *err)
{
	struct graph_options o = {.size = sizeof o};
	struct graph *g;
	uint32_t id;
	int next = 0;
	enum base_status s = graph_new(&o, &g, err);

	if (!s && arena)
		graph_set_arena_nodes(g, arena);
	for (int i = 0; i < ACTORS && !s; i++)
		s = graph_add_actor(g, &id, err);
	for (int i = 0; i < STATES && !s; i++)
		s = graph_add_state(g, &id, err);
	for (int i = 0; i < QUEUES && !s; i++)
		s = graph_add_queue(g, &r->queue[i], &id, err);
	for (int i = 0; i < r->nr && !s; i++) {
		const struct event *e = &r->event[i];

		for (; next < w->nr - 1 && e->v.time_ns > w->at[next] && !s; next++)
			s = graph_turn(g, w->at[next], false, &w->part[next], err);
		if (!s)
			s = graph_apply(g, e->kind, &e->v, e->from, err);
		if (!s && r->birth[i])
			s = graph_birth(g, e->v.actor, err);
	}
	for (; next < w->nr && !s; next++)
		s = graph_turn(g, w->at[next], false, &w->part[next], err);
	graph_free(g);
	return s;
}

static void free_turns(struct turns *w)
{
	for (int i = 0; i < w->nr; i++)
		w->part[i] = graph_part_free(w->part[i]);
}

/* The actor whose last verb ends the run: as graph_finish() chooses, with one start. */
static uint32_t end_actor_of(const struct run *r, const struct graph_part *last)
{
	uint32_t best = r->end_actor;
	uint64_t time_ns, best_ns = 0;

	for (uint32_t i = 0; r->end_actor == GRAPH_ANY_ACTOR && i < ACTORS; i++) {
		if (graph_part_last(last, i, &time_ns) == GRAPH_PART_NONE ||
			(best != GRAPH_ANY_ACTOR && time_ns <= best_ns))
			continue;
		best = i;
		best_ns = time_ns;
	}
	return best;
}

/* The part's path is the whole run's, clipped: state by state. */
/* What of it is after since_ns, when a run of the path begins there. */
static void compare_part_since(
	struct graph *whole, const struct graph_part *p, uint32_t anchor, uint64_t since_ns)
{
	static struct pieces want;
	struct graph_path_state *got;
	double want_ns[ACTORS][STATES] = {{0}}, length;
	uint64_t from_ns = graph_part_from_ns(p);
	size_t nr;

	take_pieces(whole, since_ns > from_ns ? since_ns : from_ns, graph_part_to_ns(p), &want);
	for (size_t i = 0; i < want.nr; i++)
		want_ns[want.piece[i].actor][want.piece[i].state] +=
			(double)(want.piece[i].end_ns - want.piece[i].begin_ns);
	must(graph_part_path(p, anchor, since_ns, &got, &nr, &length, NULL));
	assert_true(length == (double)length_of(&want));
	for (size_t i = 0; i < nr; i++) {
		assert_true(got[i].path_ns == want_ns[got[i].actor][got[i].state]);
		want_ns[got[i].actor][got[i].state] = 0;
	}
	for (int i = 0; i < ACTORS; i++)
		for (int k = 0; k < STATES; k++)
			assert_true(want_ns[i][k] == 0);
	base_free(got);
}

/* Whether the whole run's path goes through what the actor did then. */
static bool is_on_path(struct graph *whole, uint32_t actor, uint64_t time_ns)
{
	const struct graph_path_edge *edge;
	size_t nr;

	must(graph_path(whole, &edge, &nr, NULL));
	for (size_t i = 0; i < nr; i++)
		if (edge[i].actor == actor && edge[i].end_ns == time_ns)
			return true;
	return false;
}

/* All of it, and what of it is after each birth on it. */
static int compare_part(
	const struct run *r, struct graph *whole, const struct graph_part *p, uint32_t anchor)
{
	int nr_births = 0;

	compare_part_since(whole, p, anchor, 0);
	for (int i = 0; i < r->nr; i++) {
		uint64_t t = r->event[i].v.time_ns;

		if (!r->birth[i] || t <= graph_part_from_ns(p) || t > graph_part_to_ns(p) ||
			!is_on_path(whole, r->event[i].v.actor, t))
			continue;
		compare_part_since(whole, p, anchor, t);
		nr_births++;
	}
	return nr_births;
}

/* One in eight events is a birth; of those with which the actor does nothing else at that time. */
static void make_births(struct run *r)
{
	for (int i = 0; i < r->nr; i++) {
		bool alone = !below(r, 8);

		for (int k = 0; k < r->nr && alone; k++)
			alone = k == i || r->event[k].v.time_ns != r->event[i].v.time_ns ||
				(r->event[k].v.actor != r->event[i].v.actor &&
					r->event[k].from != r->event[i].v.actor &&
					!(r->event[k].v.flags & GRAPH_MORE));
		r->birth[i] = alone && !(r->event[i].v.flags & (GRAPH_MORE | GRAPH_ASIDE));
	}
}

static void make_turns(struct run *r, struct turns *w)
{
	uint64_t last_ns = r->event[r->nr - 1].v.time_ns;

	*w = (struct turns){.nr = 1 + (int)below(r, TURNS_MAX + 1)};
	for (int i = 0; i < w->nr - 1; i++)
		w->at[i] = below(r, (uint32_t)last_ns + 1);
	w->at[w->nr - 1] = last_ns;
	for (int i = 0; i < w->nr; i++)
		for (int k = i + 1; k < w->nr; k++)
			if (w->at[k] < w->at[i]) {
				uint64_t t = w->at[k];
				w->at[k] = w->at[i];
				w->at[i] = t;
			}
}

static void turns_are_the_run(void **unused)
{
	static struct run r;
	static const uint32_t arena[] = {0, 1, 3, 20};
	struct turns w;
	int compared = 0, nr_births = 0;

	(void)unused;
	for (int i = 0; i < nr_trials(4000); i++) {
		make_run(&r, (uint32_t)i);
		make_births(&r);
		struct graph *whole = played(&r, (struct part){.keep_path = true});
		uint64_t time_ns;

		make_turns(&r, &w);
		must(play_turns(&r, &w, arena[below(&r, 4)], NULL));
		int k = w.nr - 1;
		uint32_t end = end_actor_of(&r, w.part[k]);
		uint32_t anchor = graph_part_last(w.part[k], end, &time_ns);
		while (k > 0 && anchor != GRAPH_PART_NONE &&
			time_ns < graph_part_from_ns(w.part[k]))
			anchor = graph_part_last(w.part[--k], end, &time_ns);
		assert_int_equal(anchor != GRAPH_PART_NONE, lane(whole, 0).found);
		for (; anchor != GRAPH_PART_NONE; compared++) {
			nr_births += compare_part(&r, whole, w.part[k], anchor);
			anchor = graph_part_before(w.part[k], anchor);
			assert_true(anchor == GRAPH_PART_NONE || k > 0);
			k -= k > 0;
		}
		free_turns(&w);
		graph_free(whole);
	}
	assert_true(compared > nr_trials(4000));
	assert_true(nr_births > nr_trials(4000));
}

static void turns_without_memory(void **unused)
{
	static struct run r;
	struct base_err err = {0};
	struct turns w;

	(void)unused;
	make_run(&r, 7);
	for (uint64_t n = 1;; n++) {
		make_turns(&r, &w);
		enum base_status s = WITHOUT_NTH(n, play_turns(&r, &w, 3, &err));
		free_turns(&w);
		if (s == BASE_OK)
			break;
	}
}

/* [0, t] and [t, end] together are the whole run's sums, state by state. */
static void two_make_one(void **unused)
{
	static struct run r;
	static struct pieces want;
	int compared = 0;

	(void)unused;
	for (int i = 0; i < nr_trials(2000); i++) {
		make_run(&r, (uint32_t)i);
		uint64_t t = below(&r, (uint32_t)r.event[r.nr - 1].v.time_ns + 1);
		struct graph *whole = played(&r, (struct part){.keep_path = true});
		struct graph *first =
			played(&r, (struct part){.to_ns = t, .cut = true, .arena = 2});
		struct graph *second =
			played(&r, (struct part){.from_ns = t, .restart = true, .arena = 5});

		take_pieces(whole, 0, t, &want);
		for (uint32_t k = 0; k < ACTORS * STATES && !want.under_way; k++) {
			uint32_t a = k / STATES, s = k % STATES;

			assert_true(on_path(whole, 0, a, s) ==
				    on_path(first, 0, a, s) + on_path(second, 0, a, s));
			compared++;
		}
		graph_free(whole);
		graph_free(first);
		graph_free(second);
	}
	assert_true(compared > 1000);
}

static void every_allocation_may_fail(void **unused)
{
	static struct run r;

	(void)unused;
	for (uint32_t seed = 0; seed < 8; seed++) {
		enum base_status s = BASE_ERR_NOMEM;

		make_run(&r, seed);
		uint64_t last_ns = r.event[r.nr - 1].v.time_ns;
		struct part w = {last_ns / 4, last_ns / 2, true, true, 5, true, true, false};
		for (uint64_t n = 1; s; n++) {
			struct graph *g = NULL;
			struct base_err err = {0};

			s = WITHOUT_NTH(n, play(&r, &w, &g, &err));
			assert_true(!s || err.nr_causes > 0);
			graph_free(g);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_windows),
		cmocka_unit_test(statistics_are_the_windows),
		cmocka_unit_test(ends_outside),
		cmocka_unit_test(clipped),
		cmocka_unit_test(all_is_the_whole),
		cmocka_unit_test(alone_is_lane_0),
		cmocka_unit_test(turns_are_the_run),
		cmocka_unit_test(turns_without_memory),
		cmocka_unit_test(two_make_one),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * awake.c - waits with a time limit. An actor that waits for something, gives up at a time limit,
 * and waits for the same again until it comes, would have had it sooner had it come sooner: its
 * sleeps held nobody up. So beside such an actor's path goes another one, without the sleeps of the
 * row (what it did between them is in it); when the row ends with what was waited for, that one is
 * the actor's own path in the edited lanes. In the run itself what came last is the path in any
 * case. (replay_poll.c does the same for replay.)
 */
#include "graph/priv.h"

static bool in_row(const struct actor *a)
{
	return a->awake && a->awake->path.node != NONE;
}

void graph_awake_end(struct actor *a)
{
	if (a->awake)
		a->awake->path.node = NONE;
}

static enum base_status begin_row(struct graph *g, struct actor *a, struct base_err *err)
{
	size_t capacity = 0;

	if (!a->awake) {
		enum base_status s = graph_mem_resize(g, &a->awake, &capacity, 1,
			offsetof(struct awake, path) + g->item_size, err);

		if (s)
			return s;
	}
	*a->awake = (struct awake){.path = {.actor = a->id, .node = a->tip}};
	memcpy(a->awake->path.length, actor_length(g, a),
		g->lanes.stride * sizeof *a->awake->path.length);
	a->awake_row = a->wait_row;
	return BASE_OK;
}

static void begin_tick(struct awake *row, uint64_t t)
{
	row->tick_ns = t;
	row->nr_ticks++;
}

/*
 * The wait began when the other one was awake already: it did not wait for that one's sleep, but
 * met it, as at a lock. Where most ticks serve somebody, they may be what is waited for all the
 * same.
 */
bool graph_awake_met_tick(struct graph *g, const struct actor *a, const struct dep *dep)
{
	const struct actor *by = &g->actor[dep->actor];
	struct awake *row = by->awake;

	if (dep->link || !in_row(by))
		return false;
	if (row->served_tick_ns != row->tick_ns) {
		row->served_tick_ns = row->tick_ns;
		row->nr_served++;
	}
	return row->tick_ns <= a->t_last && row->nr_served * 2 < row->nr_ticks;
}

/* What it slept for has come: in the edited lanes its own path is the one without the sleeps. */
static void take_row(struct graph *g, struct actor *a)
{
	double *length = actor_length(g, a);
	uint32_t prev = a->tip;
	struct node *n = add_node(g, a, a->t_last, NONE, &a->tip);

	*n = (struct node){
		.prev = prev,
		.dep = a->awake->path.node,
		.took_dep = (UINT32_C(2) << (g->lanes.nr_lanes - 1)) - 2,
		.slot = a->slot,
		.dep_slot = NONE,
		.weight = node_weight(KIND_CHAIN, 0),
	};
	for (unsigned l = 1; l < g->lanes.nr_lanes; l++)
		length[l] = a->awake->path.length[l];
	a->epoch++; /* shorter than before */
}

enum base_status graph_awake(struct graph *g, struct actor *a, const struct graph_verb *v,
	uint64_t t, const struct dep *dep, size_t nr_deps, struct base_err *err)
{
	bool in_wait = a->wait && a->wait_row != NONE;
	bool same = in_wait && a->awake_row == a->wait_row;
	bool token = a->wait == WAIT_DATA &&
		     (g->queue[a->wait_queue].exchangeable || g->queue[a->wait_queue].processor);
	bool came = false, linked = false;
	enum base_status s;

	if (a->awake)
		a->awake->takes = false;
	if (actor_length(g, a)[0] == NO_PATH)
		return BASE_OK;
	if (v->flags & GRAPH_TIMED_OUT && in_wait && !nr_deps) {
		s = in_row(a) && same ? BASE_OK : begin_row(g, a, err);
		if (!s)
			begin_tick(a->awake, t);
		return s;
	}
	if (!in_row(a))
		return BASE_OK;
	for (size_t i = 0; i < nr_deps; i++) {
		came |= a->wait && dep[i].available_ns > a->t_last;
		linked |= dep[i].link;
	}
	if (came && !linked && same)
		take_row(g, a);
	if (linked || (came && same && !token))
		graph_awake_end(a);
	else if (came && !token)
		a->awake->takes = true;
	else if (!a->wait || (!nr_deps && !same))
		graph_own_edge(g, a, t, v->flags & GRAPH_EXPLAINED, a->awake->path.length,
			&a->awake->path.node);
	return BASE_OK;
}

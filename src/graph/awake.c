/* SPDX-License-Identifier: Apache-2.0 */
/*
 * awake.c - waits with a time limit. Who waits for something, gives up at a time limit, and waits
 * for the same again until it comes, would have had it sooner had it come sooner: its sleeps held
 * nobody up. So beside such an actor's path goes another one, without the sleeps of the row (what
 * it did between them is in it); when the row ends with what was waited for, that one is the
 * actor's own path in the edited lanes. In the run itself what came last is the path in any case.
 * (replay_poll.c does the same for replay.)
 */
#include "graph/priv.h"

static bool in_row(const struct actor *a)
{
	return a->awake && a->awake->node != NONE;
}

void graph_awake_end(struct actor *a)
{
	if (a->awake)
		a->awake->node = NONE;
}

static enum base_status begin_row(struct graph *g, struct actor *a, struct base_err *err)
{
	size_t capacity = 0;

	if (!a->awake) {
		enum base_status s =
			graph_mem_resize(g, &a->awake, &capacity, 1, g->item_size, err);

		if (s)
			return s;
	}
	*a->awake = (struct item){.actor = a->id, .node = a->tip};
	memcpy(a->awake->length, actor_length(g, a), g->stride * sizeof *a->awake->length);
	a->awake_row = a->wait_row;
	return BASE_OK;
}

/* It was up and about for w. */
static void lengthen_row(struct graph *g, const struct actor *a, uint64_t t, uint64_t w)
{
	uint32_t prev = a->awake->node;
	struct node *n = add_node(g, a, t, NONE, &a->awake->node);

	*n = (struct node){
		.prev = prev,
		.dep = NONE,
		.slot = a->slot,
		.dep_slot = NONE,
		.weight = node_weight(KIND_RUN, w),
	};
	g->lane_add(
		a->awake->length, g->scale + (size_t)a->state * g->stride, (double)w, g->stride);
}

/* What it slept for has come: in the edited lanes its own path is the one without the sleeps. */
static void take_row(struct graph *g, struct actor *a)
{
	double *length = actor_length(g, a);
	uint32_t prev = a->tip;
	struct node *n = add_node(g, a, a->t_last, NONE, &a->tip);

	*n = (struct node){
		.prev = prev,
		.dep = a->awake->node,
		.took_dep = (UINT32_C(2) << (g->nr_lanes - 1)) - 2,
		.slot = a->slot,
		.dep_slot = NONE,
		.weight = node_weight(KIND_CHAIN, 0),
	};
	for (unsigned l = 1; l < g->nr_lanes; l++)
		length[l] = a->awake->length[l];
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

	if (actor_length(g, a)[0] == NO_PATH)
		return BASE_OK;
	if (v->flags & GRAPH_TIMED_OUT && in_wait && !nr_deps)
		return in_row(a) && same ? BASE_OK : begin_row(g, a, err);
	if (!in_row(a))
		return BASE_OK;
	for (size_t i = 0; i < nr_deps; i++) {
		came |= a->wait && dep[i].available_ns > a->t_last;
		linked |= dep[i].link;
	}
	if (came && !linked && same)
		take_row(g, a);
	if (linked || (came && !token))
		graph_awake_end(a);
	else if (!a->wait)
		lengthen_row(g, a, t, since(g, t, a->t_last));
	return BASE_OK;
}

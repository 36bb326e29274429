/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_reference_solve.h - the longest paths of the graph that graph_reference.h has built, by
 * going over all of it.
 */
#ifndef LONGPOLE_TESTS_GRAPH_REFERENCE_SOLVE_H
#define LONGPOLE_TESTS_GRAPH_REFERENCE_SOLVE_H

#include "graph_reference.h"

/* Nothing came later than the actor in this lane: it did not sleep, and kept its processor. */
static inline bool ref_passes(const struct ref *r, const struct ref_edge *e, unsigned l)
{
	int best = e->after >= 0 && l ? r->best[e->after] : -1;

	return best >= 0 && r->edge[best].own;
}

static inline double ref_weight(const struct ref *r, const struct ref_edge *e, unsigned l)
{
	if (e->zero >> l & 1 || ref_passes(r, e, l))
		return 0;
	return (double)e->w * (e->state >= 0 ? r->scale[e->state][l] : 1);
}

/* Is the edge there in this lane? The own edge is not when the path must follow a link. */
static inline bool ref_open(const struct ref *r, const struct ref_edge *e, unsigned l)
{
	int forced = r->node[e->to].forced;

	if (e->dropped >> l & 1 || (!e->own && ref_passes(r, e, l)))
		return false;
	return !(e->own && forced >= 0 && !(r->edge[forced].dropped >> l & 1) &&
		 !ref_passes(r, e, l) && r->length[r->edge[forced].from] != -INFINITY);
}

/* Between edges of the same length: does b beat a? */
static inline bool ref_beats(
	const struct ref_node *n, const struct ref_edge *b, const struct ref_edge *a)
{
	if (a->own || b->own)
		return n->dep_wins_ties ? a->own : b->own;
	if (a->link != b->link)
		return b->link;
	if (a->available != b->available)
		return b->available > a->available;
	return b->order > a->order;
}

static inline void ref_cap(struct ref *r, unsigned l, int i)
{
	const struct ref_edge *e;
	double most;

	if (r->node[i].cap < 0)
		return;
	e = &r->edge[r->node[i].cap];
	if (!l || e->zero >> l & 1 || r->length[e->from] == -INFINITY)
		return;
	most = r->length[e->from] + ref_weight(r, e, l);
	if (r->length[i] > most) {
		r->length[i] = most;
		r->best[i] = r->node[i].cap;
	}
}

static inline void ref_solve(struct ref *r, unsigned l)
{
	for (int i = 0; i < r->nr_nodes; i++) {
		const struct ref_node *n = &r->node[i];

		r->length[i] = n->is_start ? 0 : -INFINITY;
		r->best[i] = -1;
		for (int k = n->first_edge; k < n->first_edge + n->nr_edges; k++) {
			const struct ref_edge *e = &r->edge[k];
			double length = r->length[e->from] + ref_weight(r, e, l);

			if (!ref_open(r, e, l) || r->length[e->from] == -INFINITY)
				continue;
			if (r->best[i] < 0 || length > r->length[i] ||
				(length == r->length[i] && ref_beats(n, e, &r->edge[r->best[i]]))) {
				r->length[i] = length;
				r->best[i] = k;
			}
		}
		ref_cap(r, l, i);
	}
}

static inline void ref_sums(
	const struct ref *r, unsigned l, int end, struct ref_sum sum[REF_ACTORS][REF_STATES])
{
	memset(sum, 0, sizeof(struct ref_sum) * REF_ACTORS * REF_STATES);
	for (int i = end; r->best[i] >= 0; i = r->edge[r->best[i]].from) {
		const struct ref_edge *e = &r->edge[r->best[i]];
		struct ref_sum *s;

		if (e->actor < 0)
			continue;
		s = &sum[e->actor][e->state];
		s->visits++;
		s->path += ref_weight(r, e, l);
		s->unexplained += e->unexplained ? ref_weight(r, e, l) : 0;
		s->latency += e->latency ? ref_weight(r, e, l) : 0;
	}
}

/* Every path into `end`, one by one: the longest and the second. Gives up (false) after `limit`
 * steps. */
static inline bool ref_enumerate(struct ref *r, unsigned l, int end, long limit, double two[2])
{
	static int stack[REF_NODES], edge_at[REF_NODES];
	static double down[REF_NODES];
	int depth = 0;
	long nr = 0;

	two[0] = two[1] = -INFINITY;
	stack[0] = end;
	edge_at[0] = 0;
	down[0] = 0;
	while (depth >= 0) {
		const struct ref_node *n = &r->node[stack[depth]];
		const struct ref_edge *e;

		if (++nr > limit)
			return false;
		if (n->is_start && !edge_at[depth]) {
			if (down[depth] > two[0]) {
				two[1] = two[0];
				two[0] = down[depth];
			} else if (down[depth] > two[1]) {
				two[1] = down[depth];
			}
		}
		if (edge_at[depth] == n->nr_edges) {
			depth--;
			continue;
		}
		e = &r->edge[n->first_edge + edge_at[depth]++];
		if (!ref_open(r, e, l))
			continue;
		stack[depth + 1] = e->from;
		edge_at[depth + 1] = 0;
		down[depth + 1] = down[depth] + ref_weight(r, e, l);
		depth++;
	}
	return true;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locks_path.c - what the critical path does while a lock is held.
 *
 * A thread that holds a lock may call the kernel or take another lock, and the path's state is that
 * call or that lock. So the path's pieces are laid beside the times in which their actors held each
 * lock: all that overlaps is the lock's. A lock inside another has its time twice, once in each.
 */
#include "report/locks/locks_private.h"

#include <stdlib.h>

static int by_actor_and_time(const void *a, const void *b)
{
	const struct lock_piece *x = a, *y = b;
	if (x->actor != y->actor)
		return x->actor < y->actor ? -1 : 1;
	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

/* The first piece of the actor that ends after time_ns. */
static size_t first_after(const struct lock_path *p, uint32_t actor, uint64_t time_ns)
{
	return BASE_PARTITION(i, p->nr_pieces,
		p->piece[i].actor < actor ||
			(p->piece[i].actor == actor && p->piece[i].end_ns <= time_ns));
}

enum base_status report_lock_path_init(struct lock_path *p, struct model *m, struct base_err *err)
{
	const struct graph_path_edge *edge = NULL;
	size_t nr = 0;
	*p = (struct lock_path){.nr_states = graph_nr_states(model_graph(m))};
	enum base_status s = graph_path(model_graph(m), &edge, &nr, err);
	if (s != BASE_OK)
		return s;
	p->piece = base_alloc((nr + 1) * sizeof *p->piece);
	p->state_ns = base_alloc(((size_t)p->nr_states + 1) * sizeof *p->state_ns);
	if (!p->piece || !p->state_ns)
		return report_no_memory(err);
	for (size_t i = 0; i < nr; i++) {
		const struct graph_path_edge *e = &edge[i];
		if (e->queue != UINT32_MAX || e->weight_ns <= 0 || e->end_ns <= e->begin_ns ||
			e->state >= p->nr_states)
			continue;
		p->piece[p->nr_pieces++] = (struct lock_piece){
			.actor = model_actor(m, e->actor)->base,
			.state = e->state,
			.begin_ns = e->begin_ns,
			.end_ns = e->end_ns,
			.weight = e->weight_ns / (double)(e->end_ns - e->begin_ns),
		};
		p->state_ns[e->state] += e->weight_ns;
	}
	if (p->nr_pieces)
		qsort(p->piece, p->nr_pieces, sizeof *p->piece, by_actor_and_time);
	return BASE_OK;
}

void report_lock_path_fini(struct lock_path *p)
{
	base_free(p->piece);
	base_free(p->state_ns);
	base_free(p->under);
	base_map_fini(&p->unders);
	*p = (struct lock_path){0};
}

static bool locks_path_add(struct lock_path *p, uint32_t object, uint32_t state, double ns)
{
	uint64_t at;
	if (!base_map_get(&p->unders, object, state, &at)) {
		at = p->nr_unders;
		if (base_grow(&p->under, &p->unders_capacity, at + 1, sizeof *p->under) !=
				BASE_OK ||
			base_map_put(&p->unders, object, state, at) != BASE_OK)
			return false;
		p->under[p->nr_unders++] = (struct lock_under){.object = object, .state = state};
	}
	p->under[at].ns += ns;
	return true;
}

bool report_lock_path_hold(
	struct lock_path *p, uint32_t actor, uint32_t object, uint64_t begin_ns, uint64_t end_ns)
{
	for (size_t i = first_after(p, actor, begin_ns); i < p->nr_pieces; i++) {
		const struct lock_piece *x = &p->piece[i];
		if (x->actor != actor || x->begin_ns >= end_ns)
			break;
		uint64_t from = x->begin_ns > begin_ns ? x->begin_ns : begin_ns;
		uint64_t to = x->end_ns < end_ns ? x->end_ns : end_ns;
		if (to > from &&
			!locks_path_add(p, object, x->state, x->weight * (double)(to - from)))
			return false;
	}
	return true;
}

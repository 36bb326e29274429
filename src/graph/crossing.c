/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crossing.c - which dependences a path crosses. A crossing is a slot of its own beside the one of
 * the (actor, state) that its latency is charged to, so the collector sums it like any other.
 */
#include "graph/priv.h"

#include <stdlib.h>

enum base_status graph_crossing_slot(struct graph *g, struct actor *a, uint32_t state,
	const struct dep *d, uint32_t *ret_slot, struct base_err *err)
{
	uint64_t hi = (uint64_t)a->id << 32 | d->actor;
	uint64_t lo =
		(uint64_t)(d->link ? 0 : d->queue + 1) << 33 | (uint64_t)d->space << 32 | state;
	uint64_t found;
	uint32_t base;
	enum base_status s;

	if (BASE_LIKELY(base_map_get(&g->collector.crossing_slots, hi, lo, &found))) {
		*ret_slot = (uint32_t)found;
		return BASE_OK;
	}
	s = actor_slot(g, a, state, &base, err);
	if (!s && base_map_put(&g->collector.crossing_slots, hi, lo, g->nr_slots))
		s = base_fail(err, BASE_ERR_NOMEM, "no memory for the graph's crossings");
	if (s)
		return s;
	return graph_slot_append(g, a, state,
		&(struct slot){
			.base = base,
			.from_actor = d->actor,
			.queue = d->link ? NONE : d->queue,
			.is_crossing = true,
			.space = d->space,
			.link = d->link,
		},
		ret_slot, err);
}

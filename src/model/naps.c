/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naps.c - polling: a thread that sleeps again and again at one place, or waits there until a time
 * limit ends it, and gives nobody anything in between, may look for what another thread does in
 * plain memory. No record says so, and the graph takes each nap for a floor. How many of them there
 * are depends on that other one all the same, so a prediction must know how much of a state's time
 * is such naps. (One sleep, sleeps with a lock or an event loop held, and those of a thread that
 * gives something after each or leaves it in a file, as a sender that keeps to a rate does, are
 * none.)
 */
#include "model/model_private.h"

enum { NAPS_A_ROW = 4 }; /* from so many on at one place it is polling */

/* The row of that place; the eldest of the others when there is none. */
static struct nap_row *naps_row_of(struct thread *t, uint32_t state)
{
	struct nap_row *eldest = &t->naps.row[0];
	for (unsigned i = 0; i < BASE_COUNT(t->naps.row); i++) {
		struct nap_row *row = &t->naps.row[i];
		if (row->nr && row->state == state)
			return row;
		if (!row->nr || (eldest->nr && row->end_ns < eldest->end_ns))
			eldest = row;
	}
	*eldest = (struct nap_row){.state = state};
	return eldest;
}

void model_nap_ends(struct model *m, struct thread *t, uint64_t begin_ns, uint64_t end_ns)
{
	bool gave = t->naps.gave;
	t->naps.gave = false;
	if (t->graph_state >= m->made.nr_states || begin_ns > end_ns)
		return;
	struct nap_row *row = naps_row_of(t, t->graph_state);
	row->end_ns = end_ns;
	/* (the first one that follows something given may be the way in which that is paced) */
	row->ns += gave && row->nr ? 0 : end_ns - begin_ns;
	if (!gave || !row->nr)
		row->nr++;
	if (row->nr < NAPS_A_ROW)
		return;
	m->made.state[row->state].pub.polled_ns += row->ns;
	row->ns = 0;
}

void model_nap_gives(const struct model *m, struct thread *t, uint32_t queue)
{
	if (queue < m->made.nr_queues &&
		!model_object_is(m->made.queue[queue].pub.type, MODEL_TRAIT_lock))
		t->naps.gave = true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_ticks.c - actors that look after something every so often, and that others then meet by
 * chance. (awake.c does the same for the path.)
 */
#include "graph/replay_priv.h"

/* A time limit ended the wait: from now on it does what it does every so often. */
void graph_replay_begin_tick(struct replay_log_actor *a, uint64_t t)
{
	if (a->tick_row != a->wait_row)
		a->nr_ticks = a->nr_served = 0;
	a->tick_row = a->wait_row;
	a->tick_ns = t;
	a->nr_ticks++;
}

/* What it waited for came. */
void graph_replay_end_ticks(struct replay_log_actor *a)
{
	if (a->wait_row != a->tick_row)
		return;
	a->tick_row = REPLAY_NONE;
	a->tick_ns = 0;
}

/*
 * The wait began when the actor that ended it was awake already, in a tick, and nobody waits for
 * most of its ticks: so it did not wait for that one's sleep, but met it by chance, as at a lock.
 * (A pool's tokens meet in the simulation, too.)
 */
static bool met_tick(
	struct graph_replay *r, const struct replay_log_actor *a, const struct replay_moment *m)
{
	struct replay_log_actor *by = &r->actor[m->by];

	if (!m->tick_ns || replay_is_pool(&r->queue[m->queue].o))
		return false;
	if (by->tick_ns == m->tick_ns && by->served_tick_ns != m->tick_ns) {
		by->served_tick_ns = m->tick_ns;
		by->nr_served++;
	}
	return a->started && m->tick_ns <= a->t_last && by->tick_ns == m->tick_ns &&
	       by->nr_served * 2 < by->nr_ticks;
}

/* The wait keeps its length: nobody gives what it takes. */
static bool part_from_tick(struct graph_replay *r, const struct replay_moment *m)
{
	struct replay_step *take = replay_step(r, m->first), *put = replay_step(r, m->step);

	if (m->first != m->last || replay_kind(take) != GRAPH_VERB_dequeue ||
		replay_kind(put) != GRAPH_VERB_enqueue || take->queue != put->queue ||
		(take->bits | put->bits) & REPLAY_WIDE || take->arg != put->arg)
		return false;
	take->arg = put->arg = 0;
	return true;
}

bool graph_replay_met_tick(
	struct graph_replay *r, const struct replay_log_actor *a, const struct replay_moment *m)
{
	return met_tick(r, a, m) && part_from_tick(r, m);
}

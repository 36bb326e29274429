/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_poll.c - waits with a time limit. Who waited for something, gave up at a time limit, and
 * waited for the same again until it came, would have had it at once if it had come earlier: so a
 * wait that its limit ended lasts at most until what the last one of the row took is there. What it
 * does between two of them it still does.
 */
#include "graph/replay_sim.h"

/* Where the row of waits that begins with the actor's present one ends: the step that takes. */
static uint32_t find_target(struct sim *s, struct sim_actor *a)
{
	uint32_t waits_for = a->wait_queue, i = a->cursor;

	for (; i != REPLAY_NONE; i = replay_next(s->r, replay_step(s->r, i))) {
		const struct replay_step *step = replay_step(s->r, i);
		unsigned kind = replay_kind(step);

		a->poll_searched = i;
		if (replay_flags(step) & GRAPH_ASIDE || kind == REPLAY_LINK_OUT)
			continue;
		if (replay_class(step) == REPLAY_EXPLAINED && waits_for == a->wait_queue &&
			kind == GRAPH_VERB_dequeue)
			return i;
		if (replay_class(step) == REPLAY_EXPLAINED && waits_for == a->wait_queue)
			return REPLAY_NONE;
		waits_for = kind == GRAPH_VERB_wait_empty ? step->queue : REPLAY_NONE;
	}
	return REPLAY_NONE;
}

static const struct replay_step *target_of(struct sim *s, struct sim_actor *a)
{
	/* (an actor's steps have rising numbers) */
	if (a->cursor >= a->poll_searched || a->wait_queue != a->poll_queue)
		a->poll_target = find_target(s, a);
	a->poll_queue = a->wait_queue;
	return a->poll_target == REPLAY_NONE ? NULL : replay_step(s->r, a->poll_target);
}

bool graph_sim_poll(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	const struct replay_step *target = target_of(s, a);

	if (!target)
		return false;
	if (graph_sim_is_step_met(s, target, actor))
		return true;
	a->polls = target->queue;
	a->next_poller = s->queue[a->polls].pollers;
	s->queue[a->polls].pollers = actor;
	return false;
}

void graph_sim_end_poll(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint32_t *at = &s->queue[a->polls].pollers;

	while (*at != actor)
		at = &s->actor[*at].next_poller;
	*at = a->next_poller;
	a->polls = REPLAY_NONE;
}

/* Something was put: who polls for it and can take it does not sleep to its time limit. */
void graph_sim_call_pollers(struct sim *s, uint32_t queue)
{
	uint32_t i = s->queue[queue].pollers, next;

	for (; BASE_UNLIKELY(i != REPLAY_NONE); i = next) {
		struct sim_actor *a = &s->actor[i];
		uint32_t state = s->r->queue[queue].o.latency_state;

		next = a->next_poller;
		if (!graph_sim_is_step_met(s, replay_step(s->r, a->poll_target), i))
			continue;
		graph_sim_end_poll(s, i);
		graph_sim_unschedule(s, i);
		graph_sim_schedule(
			s, i, s->now + graph_replay_latency_usual(s->r, state, s->now - a->t_last));
	}
}

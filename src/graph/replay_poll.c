/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_poll.c - waits with a time limit. An actor that waited for something, gave up at a time
 * limit, and waited for the same again until it came, would have had it at once if it had come
 * earlier: so a wait that its limit ended lasts at most until what the last one of the row took is
 * there. One that sleeps more in the row than it works merely ticks: ticks that do not happen take
 * no time. (Where neither is far longer, either may be; assumed.ticks_otherwise is the other
 * reading.)
 */
#include "graph/replay_sim.h"

enum { CLOSE = 8 }; /* not so many times as long */

/* What it does between two looks it does as often as it looks: from now on not at all, if the row
 * is a mere ticking. */
static void replay_poll_hurry(const struct sim *s, struct sim_actor *a, const struct sim_row *row)
{
	bool mere = row->mere != (row->close && s->assumed.ticks_otherwise);

	if (mere && row->target > a->hurries_to)
		a->hurries_to = row->target;
}

/* Is it what was waited for? A mutex that comes with a signal is not, nor is what needs nothing. */
static bool is_target(const struct sim *s, const struct replay_step *step, uint32_t row)
{
	unsigned kind = replay_kind(step);
	const struct replay_log_queue *q = &s->r->queue[step->queue];

	if ((kind != GRAPH_VERB_dequeue && kind != GRAPH_VERB_peek) || step->bits & REPLAY_FREE ||
		!replay_need(s->r, step) || q->o.processor || s->queue[step->queue].ignored)
		return false;
	return row & REPLAY_ROW_OF_PLACE || step->queue == row || !replay_is_pool(&q->o);
}

/* Of the moment's steps the one that is what was waited for. */
static uint32_t target_of_moment(const struct sim *s, uint32_t i, uint32_t row)
{
	do {
		const struct replay_step *step = replay_step(s->r, i);

		if (is_target(s, step, row))
			return i;
		i = replay_next_of_moment(s->r, step);
	} while (i != REPLAY_NONE);
	return REPLAY_NONE;
}

/* Where the row of waits that begins with the actor's present one ends: the step that takes. */
static void find_target(const struct sim *s, const struct sim_actor *a, struct sim_row *row)
{
	uint32_t waits_for = a->wait_row, i = a->cursor;
	uint64_t slept_ns = 0, busy_ns = 0;

	row->target = REPLAY_NONE;
	for (; i != REPLAY_NONE; i = replay_next(s->r, replay_step(s->r, i))) {
		const struct replay_step *step = replay_step(s->r, i);
		enum replay_class class = replay_class(step);

		row->searched = i;
		if (replay_flags(step) & GRAPH_ASIDE || replay_kind(step) == REPLAY_LINK_OUT ||
			class == REPLAY_FOLLOWS)
			continue;
		if (class == REPLAY_EXPLAINED && waits_for == row->of) {
			row->target = target_of_moment(s, i, row->of);
			row->mere = slept_ns >= busy_ns;
			row->close = slept_ns / CLOSE <= busy_ns && busy_ns / CLOSE <= slept_ns;
			return;
		}
		if (class == REPLAY_UNEXPLAINED && waits_for == row->of)
			slept_ns += replay_own(s->r, step);
		else if (class == REPLAY_RUN || class == REPLAY_UNEXPLAINED)
			busy_ns += replay_own(s->r, step);
		while (replay_next(s->r, step) != REPLAY_NONE &&
			replay_class(replay_step(s->r, step->next)) == REPLAY_FOLLOWS) {
			i = step->next;
			step = replay_step(s->r, i);
		}
		waits_for = replay_row(step);
	}
}

static struct sim_row *replay_poll_row_of(struct sim_actor *a)
{
	struct sim_row *free_row = &a->row[REPLAY_ROWS - 1];

	for (unsigned i = REPLAY_ROWS; i-- > 0;) {
		if (a->row[i].searched && a->row[i].of == a->wait_row)
			return &a->row[i];
		if (!a->row[i].searched)
			free_row = &a->row[i];
	}
	*free_row = (struct sim_row){.of = a->wait_row};
	return free_row;
}

bool graph_sim_poll(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	struct sim_row *row = replay_poll_row_of(a);
	const struct replay_step *target;

	/* (an actor's steps have rising numbers) */
	if (a->cursor >= row->searched)
		find_target(s, a, row);
	if (row->target == REPLAY_NONE)
		return false;
	a->poll_target = row->target;
	target = replay_step(s->r, row->target);
	if (graph_sim_is_step_met(s, target, actor)) {
		replay_poll_hurry(s, a, row);
		return true;
	}
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

/* Something was put: an actor that polls for it and can take it does not sleep to its time
 * limit. */
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
		replay_poll_hurry(s, a, replay_poll_row_of(a));
		graph_sim_unschedule(s, i);
		graph_sim_schedule(
			s, i, s->now + graph_replay_latency_usual(s->r, state, s->now - a->t_last));
	}
}

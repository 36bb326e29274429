/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_quota.c - a control group's quota: so much processor time a period for all actors
 * together. When it is used up nobody runs until the next period begins (Linux: CFS bandwidth).
 * When periods begin the log does not say: the first one does with the log.
 */
#include "graph/replay_sim.h"

void graph_sim_init_quota(struct sim *s)
{
	struct sim_quota *q = &s->quota;

	*q = (struct sim_quota){.next_ns = UINT64_MAX};
	if (!s->r->quota.ns || !s->r->quota.period_ns || !s->nr_processors)
		return;
	q->since_ns = s->now;
	q->left_ns = s->r->quota.ns;
	q->next_ns = q->period_end_ns = s->now + s->r->quota.period_ns;
}

static void use(struct sim *s)
{
	struct sim_quota *q = &s->quota;
	uint64_t used = (s->now - q->since_ns) * q->nr_running;

	q->left_ns -= used < q->left_ns ? used : q->left_ns;
	q->since_ns = s->now;
	q->next_ns = q->period_end_ns;
	if (q->nr_running && !q->is_used_up &&
		q->left_ns / q->nr_running < q->period_end_ns - s->now)
		q->next_ns = s->now + q->left_ns / q->nr_running;
}

void graph_sim_count_running(struct sim *s, bool runs)
{
	if (s->quota.next_ns == UINT64_MAX)
		return;
	use(s);
	if (runs)
		s->quota.nr_running++;
	else
		s->quota.nr_running--;
	use(s);
}

void graph_sim_turn_quota(struct sim *s)
{
	struct sim_quota *q = &s->quota;

	s->now = q->next_ns;
	s->current = REPLAY_NONE;
	use(s);
	if (s->now < q->period_end_ns) {
		q->is_used_up = true;
		q->next_ns = q->period_end_ns;
		graph_sim_stop_all(s);
		return;
	}
	q->period_end_ns += s->r->quota.period_ns;
	q->left_ns = s->r->quota.ns;
	q->is_used_up = false;
	use(s);
	graph_sim_start_all(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_place.c - the simulated processors: which of the recorded ones they are, and who may run
 * where.
 *
 * Where the recording says what actors may use, the processors are those that any of them may:
 * first those that were seen, in the order in which the log numbers them, then the others. An actor
 * that may run on all of them may run on those that an edit adds, too: a user who gives the program
 * more gives them to such threads. One that was tied to some of them stays there.
 */
#include "graph/replay_sim.h"

static void number_processors(struct sim *s)
{
	const struct graph_replay *r = s->r;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < s->nr_processors; i++)
		s->number[i] = UINT64_MAX;
	if (!r->nr_usable)
		return;
	for (size_t i = 0; i < r->nr_queues && nr < s->nr_recorded; i++) {
		if (r->queue[i].o.processor && r->queue[i].used &&
			graph_replay_is_usable(r, r->queue[i].kernel_number))
			s->number[nr++] = r->queue[i].kernel_number;
	}
	for (uint64_t n = 0, seen = nr; n < REPLAY_PROCESSORS_MAX && nr < s->nr_recorded; n++) {
		bool known = !graph_replay_is_usable(r, n);

		for (uint64_t i = 0; i < seen && !known; i++)
			known = s->number[i] == n;
		if (!known)
			s->number[nr++] = n;
	}
}

static void set_who_may(struct sim *s, uint32_t set)
{
	bool *may = &s->may[(size_t)set * s->nr_processors];
	bool all = true;

	for (uint32_t i = 0; i < s->nr_recorded; i++) {
		may[i] = graph_replay_may_use(s->r, set, s->number[i]);
		all = all && may[i];
	}
	for (uint32_t i = s->nr_recorded; i < s->nr_processors; i++)
		may[i] = all;
}

void graph_sim_init_processors(struct sim *s, uint32_t nr_recorded)
{
	s->nr_recorded = nr_recorded;
	s->number = graph_sim_need(s, s->nr_processors, sizeof *s->number);
	s->may = graph_sim_need(s, s->r->nr_sets * s->nr_processors, sizeof *s->may);
	s->idle = graph_sim_need(s, s->nr_processors, sizeof *s->idle);
	s->left = graph_sim_need(s, s->nr_processors, sizeof *s->left);
	s->user = graph_sim_need(s, s->nr_processors, sizeof *s->user);
	s->run = graph_sim_need(s, s->nr_processors, sizeof *s->run);
	s->coming = graph_sim_need(s, s->nr_processors, sizeof *s->coming);
	s->load = graph_sim_need(s, s->nr_processors, sizeof *s->load);
	if (s->status)
		return;
	number_processors(s);
	for (uint32_t i = 0; i < s->r->nr_sets; i++)
		set_who_may(s, i);
	for (uint32_t i = s->nr_processors; i-- > 0;) {
		s->user[i] = REPLAY_NONE;
		s->coming[i] = 0;
		s->load[i] = (struct sim_load){0};
		s->run[i] = (struct sim_list){REPLAY_NONE, REPLAY_NONE};
		s->idle[s->nr_idle++] = i;
	}
	for (size_t i = 0; i < s->r->nr_queues; i++) {
		if (s->r->queue[i].o.processor)
			s->runnable_state = s->r->queue[i].o.latency_state;
	}
}

void graph_sim_fini_processors(struct sim *s)
{
	base_free(s->number);
	base_free(s->may);
	base_free(s->idle);
	base_free(s->left);
	base_free(s->user);
	base_free(s->run);
	base_free(s->coming);
	base_free(s->load);
}

/* The log's number of a processor as the simulation's; REPLAY_NONE. */
static uint32_t processor_of(const struct sim *s, uint32_t logged)
{
	if (!s->r->nr_usable)
		return logged < s->nr_processors ? logged : REPLAY_NONE;
	for (size_t i = 0; i < s->r->nr_queues; i++) {
		const struct replay_log_queue *q = &s->r->queue[i];

		if (!q->o.processor || q->number != logged)
			continue;
		for (uint32_t p = 0; p < s->nr_recorded; p++) {
			if (s->number[p] == q->kernel_number)
				return p;
		}
	}
	return REPLAY_NONE;
}

void graph_sim_find_home(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint32_t logged = s->r->actor[actor].home;

	if (logged != REPLAY_NONE)
		a->home = processor_of(s, logged);
	if (a->home != REPLAY_NONE && !sim_may_use(s, actor, a->home))
		a->home = REPLAY_NONE;
}

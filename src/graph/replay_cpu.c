/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_cpu.c - simulated processors: first come, first served, with a time slice. The kernel's
 * own choice is not known; what matters is how many can run at once and that nobody starves.
 */
#include "graph/replay_sim.h"

enum { SLICE_NS = 3000000 };

static uint32_t queue_of(const struct sim *s, uint32_t processor)
{
	return (uint32_t)s->r->nr_queues + processor;
}

static void emit(struct sim *s, uint32_t actor, enum graph_verb_kind kind, uint32_t processor,
	int64_t n, uint32_t state, uint32_t flags)
{
	if (s->out)
		graph_sim_emit(s, kind,
			&(struct graph_verb){.time_ns = s->now,
				.actor = actor,
				.state = state,
				.queue = queue_of(s, processor),
				.flags = flags,
				.n = n},
			0);
}

/* Until the work is done or the slice is over. */
void graph_sim_run_on(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint64_t end = s->now + a->left_ns;

	a->since_ns = s->now;
	if (a->slice_end_ns <= s->now)
		a->slice_end_ns = s->now + SLICE_NS;
	a->phase = SIM_RUNS;
	graph_sim_schedule(s, actor, end < a->slice_end_ns ? end : a->slice_end_ns);
}

static void take_processor(struct sim *s, uint32_t actor, uint32_t processor)
{
	struct sim_actor *a = &s->actor[actor];

	a->processor = processor;
	a->slice_end_ns = s->now + SLICE_NS;
	s->user[processor] = actor;
}

/* The first in the run queue has it now. */
static void dispatch(struct sim *s, uint32_t processor)
{
	uint32_t actor = s->run[s->run_head];
	struct sim_actor *a = &s->actor[actor];

	s->run_head = s->run_head + 1 == s->r->nr_actors ? 0 : s->run_head + 1;
	s->nr_run--;
	s->res->nr_processor_waits++;
	s->res->processor_wait_ns += s->now - a->since_ns;
	take_processor(s, actor, processor);
	if (a->phase == SIM_QUEUES_TAKE) {
		a->phase = SIM_TRIES;
		a->queued = true;
		graph_sim_schedule(s, actor, s->now + a->switch_ns);
		return;
	}
	emit(s, actor, GRAPH_VERB_dequeue, processor, 1, a->state, GRAPH_LAST | GRAPH_EXPLAINED);
	graph_sim_run_on(s, actor);
}

static void queue_up(struct sim *s, uint32_t actor, enum sim_phase phase)
{
	struct sim_actor *a = &s->actor[actor];
	size_t at = s->run_head + s->nr_run++;

	s->run[at < s->r->nr_actors ? at : at - s->r->nr_actors] = actor;
	a->phase = (uint8_t)phase;
	a->since_ns = s->now;
	if (phase == SIM_QUEUES)
		emit(s, actor, GRAPH_VERB_wait_empty, 0, 1, s->runnable_state, 0);
}

bool graph_sim_get_processor(struct sim *s, uint32_t actor, enum sim_phase queued)
{
	if (s->actor[actor].processor != REPLAY_NONE)
		return true;
	if (s->nr_idle) {
		take_processor(s, actor, s->idle[--s->nr_idle]);
		return true;
	}
	queue_up(s, actor, queued);
	return false;
}

static void leave(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint32_t state = a->state;

	s->left[a->processor] = true;
	s->user[a->processor] = REPLAY_NONE;
	emit(s, actor, GRAPH_VERB_dequeue, a->processor, GRAPH_ALL, state,
		GRAPH_BACK | GRAPH_ASIDE);
	emit(s, actor, GRAPH_VERB_enqueue, a->processor, 1, state, GRAPH_ASIDE);
	a->processor = REPLAY_NONE;
}

void graph_sim_release_processor(struct sim *s, uint32_t actor)
{
	uint32_t processor = s->actor[actor].processor;

	if (processor == REPLAY_NONE)
		return;
	leave(s, actor);
	if (s->nr_run)
		dispatch(s, processor);
	else
		s->idle[s->nr_idle++] = processor;
}

/* Its event on a processor; true: its work is not done yet. */
bool graph_sim_slice_ended(struct sim *s, uint32_t actor)
{
	struct sim_actor *a = &s->actor[actor];
	uint64_t did = s->now - a->since_ns;
	uint32_t processor = a->processor;

	a->left_ns = a->left_ns > did ? a->left_ns - did : 0;
	if (!a->left_ns)
		return false;
	if (s->nr_run) {
		leave(s, actor);
		queue_up(s, actor, SIM_QUEUES);
		dispatch(s, processor);
	} else {
		graph_sim_run_on(s, actor);
	}
	return true;
}

/* Who has run longest at a stretch has to go, and is the next to have a processor again. */
bool graph_sim_preempt(struct sim *s, uint32_t actor)
{
	uint32_t victim = REPLAY_NONE, processor;
	struct sim_actor *v;

	if (s->actor[actor].processor != REPLAY_NONE || s->nr_idle)
		return graph_sim_get_processor(s, actor, SIM_QUEUES_TAKE);
	for (uint32_t i = 0; i < s->nr_processors; i++) {
		uint32_t user = s->user[i];

		if (user != REPLAY_NONE && s->actor[user].phase == SIM_RUNS &&
			(victim == REPLAY_NONE ||
				s->actor[user].slice_end_ns < s->actor[victim].slice_end_ns))
			victim = user;
	}
	if (victim == REPLAY_NONE)
		return false;
	v = &s->actor[victim];
	processor = v->processor;
	v->left_ns -= s->now - v->since_ns < v->left_ns ? s->now - v->since_ns : v->left_ns;
	graph_sim_unschedule(s, victim);
	leave(s, victim);
	s->run_head = s->run_head ? s->run_head - 1 : (size_t)s->r->nr_actors - 1;
	s->run[s->run_head] = victim;
	s->nr_run++;
	v->phase = SIM_QUEUES;
	v->since_ns = s->now;
	emit(s, victim, GRAPH_VERB_wait_empty, 0, 1, s->runnable_state, 0);
	take_processor(s, actor, processor);
	return true;
}

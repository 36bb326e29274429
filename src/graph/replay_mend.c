/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_mend.c - logs in which records are missing. What somebody waited for was put by a record
 * that nobody has (dropped, or hidden by the kernel): in the recorded order the log still makes
 * sense, in any other somebody may wait for ever. So when nothing can happen any more, the moment
 * that comes first in the log is given what it lacks: everything that the log has before it has
 * been done, so in the run it had it. graph_replay_mend() then makes of each such wait one that
 * keeps its length and takes nothing, so that it is not late in the next simulation.
 */
#include "graph/replay_sim.h"

enum { PASSES = 4 }; /* each finds what the ones before had hidden; what is left is given late */

/* ---- while it is simulated ------------------------------------------------------------------- */

/* Actors that have not ended; made when it is first asked for. */
static bool find_unended(struct sim *s)
{
	const struct graph_replay *r = s->r;

	if (s->unended)
		return true;
	for (size_t i = 0; i < r->nr_actors; i++)
		s->nr_unended += s->actor[i].phase != SIM_ENDED;
	s->unended = base_alloc((s->nr_unended + 1) * sizeof *s->unended);
	if (!s->unended) {
		s->status = base_fail(s->err, BASE_ERR_NOMEM, "no memory for a simulation");
		return false;
	}
	s->nr_unended = 0;
	for (size_t i = 0; i < r->nr_actors; i++) {
		if (s->actor[i].phase != SIM_ENDED)
			s->unended[s->nr_unended++] = (uint32_t)i;
	}
	return true;
}

/* The first in the log to wait for units or space; REPLAY_NONE: nobody. */
static uint32_t replay_mend_first_waiting(struct sim *s)
{
	uint32_t best = REPLAY_NONE;
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_unended; i++) {
		const struct sim_actor *a = &s->actor[s->unended[i]];

		if (a->phase == SIM_ENDED)
			continue;
		s->unended[nr++] = s->unended[i];
		if (a->phase == SIM_WAITS && a->listed &&
			(best == REPLAY_NONE || a->cursor < s->actor[best].cursor))
			best = s->unended[nr - 1];
	}
	s->nr_unended = nr;
	return best;
}

static void note_given(struct sim *s, uint32_t step, bool first)
{
	struct replay_given *g = s->given;

	if (!g || s->status)
		return;
	s->status = base_grow(&g->step, &g->capacity, g->nr + 1, sizeof *g->step);
	if (s->status) {
		s->status = base_fail(s->err, s->status, "no memory for a simulation");
		return;
	}
	g->step[g->nr++] = (struct replay_given_step){.step = step, .first = first};
}

bool graph_sim_give(struct sim *s)
{
	uint32_t actor, i;
	struct sim_actor *a;

	if (!s->gives || s->status || !find_unended(s))
		return false;
	actor = replay_mend_first_waiting(s);
	if (actor == REPLAY_NONE)
		return false;
	a = &s->actor[actor];
	i = a->cursor;
	note_given(s, i, true);
	do {
		const struct replay_step *step = replay_step(s->r, i);

		if (!graph_sim_is_step_met(s, step, actor))
			note_given(s, i, false);
		i = replay_next_of_moment(s->r, step);
	} while (i != REPLAY_NONE);
	s->res->nr_given++;
	graph_sim_stop_waiting(s, actor);
	a->given = true;
	a->phase = SIM_TRIES;
	s->current = REPLAY_NONE;
	graph_sim_schedule(s, actor, s->now);
	return true;
}

/* ---- for the next simulations ---------------------------------------------------------------- */

/* How long a wait of that class was: the middle of it. */
static uint64_t usual_length_ns(unsigned class)
{
	static const double middle[] = {1.1225, 1.4142, 1.7818}; /* 2^(1/6), 2^(3/6), 2^(5/6) */

	if (!class)
		return 0;
	class --;
	return (uint64_t)((double)(UINT64_C(1) << class / 3) * middle[class % 3]);
}

/* The moment's wait keeps its length, whatever ends it. */
static enum base_status keep_length(struct graph_replay *r, uint32_t i, struct base_err *err)
{
	struct replay_step *step = replay_step(r, i);
	const uint32_t waited = (uint32_t)-1 << REPLAY_WAITED_SHIFT;
	uint64_t ns;

	if (replay_class(step) != REPLAY_EXPLAINED)
		return BASE_OK;
	ns = usual_length_ns(step->bits >> REPLAY_WAITED_SHIFT);
	r->given_ns += ns;
	step->bits &=
		~(waited | REPLAY_POLLS | REPLAY_ON_PROCESSOR | (uint32_t)7 << REPLAY_CLASS_SHIFT);
	step->bits |= REPLAY_GIVEN | (uint32_t)REPLAY_UNEXPLAINED << REPLAY_CLASS_SHIFT;
	return graph_replay_set_own(r, i, replay_own(r, step) + ns, err);
}

/* It takes nothing: what it took in the run, the log does not have. */
static void need_nothing(struct graph_replay *r, struct replay_step *step)
{
	unsigned kind = replay_kind(step);

	if (kind != GRAPH_VERB_dequeue && kind != GRAPH_VERB_peek)
		step->bits |= REPLAY_FREE;
	else if (step->bits & REPLAY_WIDE)
		r->wide[step->arg].need = (uint64_t)(r->wide[step->arg].n = 0);
	else
		step->arg = 0;
	step->bits &= ~(uint32_t)REPLAY_ALL_UNITS;
}

static enum base_status replay_mend_mend(
	struct graph_replay *r, const struct replay_given *given, struct base_err *err)
{
	enum base_status s = BASE_OK;

	for (size_t i = 0; i < given->nr && !s; i++) {
		struct replay_step *step = replay_step(r, given->step[i].step);

		if (given->step[i].first) {
			r->nr_given++;
			s = keep_length(r, given->step[i].step, err);
		} else {
			need_nothing(r, step);
		}
	}
	return s;
}

enum base_status graph_replay_mend(struct graph_replay *r, struct base_err *err)
{
	enum base_status s = BASE_OK;

	for (int pass = 0; pass < PASSES && !s; pass++) {
		struct graph_replay_result res;
		struct replay_given given = {0};

		s = graph_replay_run_giving(r, &given, &res, err);
		if (!s)
			s = replay_mend_mend(r, &given, err);
		base_free(given.step);
		if (!given.nr)
			break;
	}
	return s;
}

uint64_t graph_replay_nr_given(const struct graph_replay *r)
{
	return r->nr_given;
}

uint64_t graph_replay_given_ns(const struct graph_replay *r)
{
	return r->given_ns;
}

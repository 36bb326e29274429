/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_learn.c - what a recording of threads teaches about its machine: hand-offs after waits of
 * any length, and what waking a sleeper costs the one who wakes it (a system call, an interrupt to
 * another processor), so that waits that an edit makes or ends have their price.
 */
#include "graph/replay_priv.h"

#include <math.h>

enum { CREDIBLE = 5 };
#define LEAST_ERROR_NS 50.0 /* of a median: no clock is better */
#define CERTAIN        3.0  /* standard errors */

/* What a state took after its actor had put something: [did that wake somebody] */
struct after_put {
	struct replay_samples took[2];
};

static bool is_executed(const struct graph_replay *r, uint32_t state)
{
	return state < r->nr_states && r->executes[state];
}

static void sample_actor(
	const struct graph_replay *r, const struct replay_log_actor *a, struct after_put *after)
{
	uint32_t state = REPLAY_NONE;
	unsigned woke = 0;
	bool put = false, busy = false;

	for (uint32_t i = a->head; i != REPLAY_NONE; i = replay_next(r, replay_step(r, i))) {
		const struct replay_step *step = replay_step(r, i);
		enum replay_class class = replay_class(step);

		if (replay_kind(step) == REPLAY_LINK_OUT)
			continue;
		if (class != REPLAY_FOLLOWS) {
			if (class == REPLAY_RUN && put && woke < 2 && !(woke && busy) &&
				is_executed(r, state) && !(step->bits & REPLAY_SLEPT))
				graph_replay_sample(&after[state].took[woke], replay_own(r, step));
			put = busy = false;
			woke = 0;
		}
		put |= replay_kind(step) == GRAPH_VERB_enqueue;
		busy |= replay_was_busy(step);
		woke += replay_woke(step);
		state = step->state;
	}
}

/* What hardly ever was says nothing: something else was unusual, too. */
static bool is_rare(const struct replay_samples *s, const struct replay_samples *others)
{
	return s->nr < CREDIBLE || s->nr < REPLAY_RARE * others->nr;
}

/* Every state's difference, weighted by how well it is known; 0: it may as well be chance.
 * *ret_error: its standard error; INFINITY: no state was seen after both. */
static double difference(const struct after_put *after, size_t nr, double *ret_error)
{
	double sum = 0, weight = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct replay_samples *took = after[i].took;
		double error[2], value[2], w;

		if (is_rare(&took[0], &took[1]) || is_rare(&took[1], &took[0]))
			continue;
		for (unsigned k = 0; k < 2; k++) {
			value[k] = graph_replay_median(&took[k], &error[k]);
			error[k] = error[k] > LEAST_ERROR_NS ? error[k] : LEAST_ERROR_NS;
		}
		w = 1 / (error[0] * error[0] + error[1] * error[1]);
		sum += w * (value[1] - value[0]);
		weight += w;
	}
	*ret_error = weight > 0 ? 1 / sqrt(weight) : INFINITY;
	return weight > 0 && sum > CERTAIN * sqrt(weight) ? sum / weight : 0;
}

/* A wake is part of what its waker took until it did something else: as a rule not more than that,
 * where most wakes were. */
static double replay_learn_at_most(const struct after_put *after, size_t nr)
{
	const struct replay_samples *most = NULL;
	double error;

	for (size_t i = 0; i < nr; i++) {
		const struct replay_samples *woke = &after[i].took[1];

		if (woke->nr >= CREDIBLE && (!most || woke->nr > most->nr))
			most = woke;
	}
	return most ? graph_replay_median(most, &error) : INFINITY;
}

/* The run's own answer where it is the better known one, else what was measured on its machine. */
static uint64_t replay_learn_wake_cost(
	const struct after_put *after, size_t nr, uint64_t measured_ns)
{
	double error, own = difference(after, nr, &error), measured = (double)measured_ns;

	if (!measured_ns || error * CERTAIN < measured)
		return (uint64_t)own;
	return (uint64_t)fmin(measured, replay_learn_at_most(after, nr));
}

enum base_status graph_replay_learn(
	struct graph_replay *r, const struct graph_replay_measured *measured, struct base_err *err)
{
	struct after_put *after;
	size_t nr = r->nr_states;
	enum base_status s;
	double error;

	if (r->failed)
		return base_fail(err, r->failed, "replay's log failed before");
	r->samples_share = measured->samples_share;
	s = graph_replay_learn_counts(r, err);
	if (s || !r->nr_processors)
		return s;
	graph_replay_latency_learn(r);
	r->switch_ns = (uint64_t)graph_replay_median(&r->switched, &error);
	r->learned = true;
	after = base_alloc((nr + 1) * sizeof *after);
	if (!after)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to learn from replay's log");
	for (size_t i = 0; i < r->nr_actors; i++)
		sample_actor(r, &r->actor[i], after);
	r->wake_ns = replay_learn_wake_cost(after, nr, measured->wake_ns);
	r->wake_busy_ns = r->wake_ns;
	if (measured->wake_busy_ns && measured->wake_busy_ns < r->wake_ns)
		r->wake_busy_ns = measured->wake_busy_ns;
	r->record_ns = measured->record_ns;
	base_free(after);
	return BASE_OK;
}

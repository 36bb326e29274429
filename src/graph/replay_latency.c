/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_latency.c - how long it takes from "it is there" to "it is used", by the length of the
 * wait before: an actor that slept for long sleeps deeply (its processor is in a deep idle state,
 * its caches are cold). Kept per latency state (one a class of queues), learned from this recording
 * alone.
 */
#include "graph/replay_priv.h"

#include <math.h>
#include <stdlib.h>

/* Fewer samples say nothing about a length of wait; nor do rare ones: what made that wait unusual
 * made it late. */
enum { CREDIBLE = 5 };
#define CERTAIN 3.0 /* standard errors: less may be chance */
#define UNUSUAL 4.0 /* times the mean: a longer latency counts as one of that length */

/* ---- samples --------------------------------------------------------------------------------- */

/* A reservoir: the k-th comes in with probability size / k; the hash is the dice. */
void graph_replay_sample(struct replay_samples *s, uint64_t value)
{
	uint32_t at = s->nr++;

	if (at >= REPLAY_SAMPLES)
		at = (uint32_t)(base_hash_u64(at) % s->nr);
	if (at < REPLAY_SAMPLES)
		s->sample[at] = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static int replay_latency_ascending(const void *pa, const void *pb)
{
	const uint32_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

/* *ret_error: the median's standard error, about. */
double graph_replay_median(const struct replay_samples *s, double *ret_error)
{
	uint32_t sorted[REPLAY_SAMPLES], nr = s->nr < REPLAY_SAMPLES ? s->nr : REPLAY_SAMPLES;
	size_t low = nr / 4, middle = nr ? (nr - 1) / 2 : 0, high = nr * 3 / 4;

	*ret_error = INFINITY;
	if (!nr)
		return 0;
	memcpy(sorted, s->sample, nr * sizeof *sorted);
	qsort(sorted, nr, sizeof *sorted, replay_latency_ascending);
	/* of a normal distribution, from its quartiles */
	*ret_error = 0.93 * (double)(sorted[high] - sorted[low]) / sqrt(nr);
	return sorted[middle];
}

static void replay_latency_add(struct replay_latency *l, uint64_t wait_ns, uint64_t latency_ns)
{
	unsigned b = replay_bucket(wait_ns);

	graph_replay_sample(&l->bucket[b], latency_ns);
	l->classes[b] += replay_length_class(wait_ns);
}

static void add_to_sums(struct replay_sums *t, double x, double y)
{
	double most = t->nr >= CREDIBLE ? UNUSUAL * t->y / t->nr : INFINITY;

	y = y < most ? y : most;
	t->nr++;
	t->x += x;
	t->y += y;
	t->xx += x * x;
	t->xy += x * y;
	t->yy += y * y;
}

static enum base_status follow_trend(
	struct graph_replay *r, const struct replay_handover *h, struct base_err *err)
{
	uint64_t i = r->nr_trends;
	enum base_status s = BASE_OK;

	if (!base_map_get(&r->trends, h->state, h->actor, &i)) {
		if (i >= REPLAY_TRENDS_MAX)
			return BASE_OK;
		s = graph_replay_mem_need(
			r, &r->trend, &r->trend_capacity, i + 1, sizeof *r->trend, err);
		if (s)
			return s;
		s = base_map_put(&r->trends, h->state, h->actor, i);
		if (s)
			return base_fail(err, s, "no memory for replay's log");
		r->trend[r->nr_trends++] = (struct replay_trend){0};
	}
	add_to_sums(&r->trend[i].bucket[replay_bucket(h->wait_ns)], replay_length_class(h->wait_ns),
		(double)h->latency_ns);
	return s;
}

enum base_status graph_replay_latency_add(
	struct graph_replay *r, const struct replay_handover *h, struct base_err *err)
{
	enum base_status s = graph_replay_mem_need(r, &r->latency, &r->latency_capacity,
		(size_t)h->state + 1, sizeof(struct replay_latency *), err);

	if (s)
		return s;
	if (!r->latency[h->state]) {
		size_t nr = 0;

		s = graph_replay_mem_resize(
			r, &r->latency[h->state], &nr, 1, sizeof(struct replay_latency), err);
		if (s)
			return s;
	}
	replay_latency_add(r->latency[h->state], h->wait_ns, h->latency_ns);
	r->latency[h->state]->not_only_woken |= !h->asleep;
	if (h->asleep)
		replay_latency_add(&r->woken, h->wait_ns, h->latency_ns);
	return follow_trend(r, h, err);
}

/* ---- what they come to ----------------------------------------------------------------------- */

static double nr_samples(const struct replay_latency *l)
{
	double nr = 0;

	for (unsigned b = 0; b < REPLAY_BUCKETS; b++)
		nr += l->bucket[b].nr;
	return nr;
}

static bool is_credible(double nr, double all)
{
	return nr >= CREDIBLE && nr >= REPLAY_RARE * all;
}

struct run_of { /* buckets whose medians are one: lengths of wait from..to, in classes */
	double from, to, value_ns, weight;
};

/*
 * After a longer sleep nobody comes sooner: the medians, made not decreasing (pool adjacent
 * violators). Of the buckets that are credible; returns how many runs they make.
 */
static unsigned not_decreasing(const struct replay_latency *l, struct run_of *run)
{
	unsigned nr = 0;
	double error, all = nr_samples(l);

	for (unsigned b = 0; b < REPLAY_BUCKETS; b++) {
		double weight = l->bucket[b].nr, at = (double)l->classes[b] / weight;

		if (!is_credible(weight, all))
			continue;
		run[nr++] = (struct run_of){.from = at,
			.to = at,
			.value_ns = graph_replay_median(&l->bucket[b], &error),
			.weight = weight};
		for (; nr > 1 && run[nr - 2].value_ns > run[nr - 1].value_ns; nr--) {
			struct run_of *x = &run[nr - 2], *y = &run[nr - 1];

			x->value_ns = x->value_ns * x->weight + y->value_ns * y->weight;
			x->weight += y->weight;
			x->value_ns /= x->weight;
			x->to = y->to;
		}
	}
	return nr;
}

/* Each actor's around its own mean; of lengths that are credible. */
static void add_trend(struct replay_latency *l, const struct replay_trend *t)
{
	struct replay_sums u = {0};
	double all = nr_samples(l);

	for (unsigned b = 0; b < REPLAY_BUCKETS; b++) {
		const struct replay_sums *of = &t->bucket[b];

		if (!is_credible(l->bucket[b].nr, all))
			continue;
		u.nr += of->nr;
		u.x += of->x;
		u.y += of->y;
		u.xx += of->xx;
		u.xy += of->xy;
		u.yy += of->yy;
	}
	if (u.nr < CREDIBLE)
		return;
	l->all.nr += u.nr - 1;
	l->all.xx += u.xx - u.x * u.x / u.nr;
	l->all.xy += u.xy - u.x * u.y / u.nr;
	l->all.yy += u.yy - u.y * u.y / u.nr;
}

/* ns a class, by least squares; 0: it may as well be none, or the shorter wait the later one. */
static double slope_of(const struct replay_sums *all)
{
	double slope, rest;

	if (all->nr < CREDIBLE || all->xx <= 0)
		return 0;
	slope = all->xy / all->xx;
	rest = fmax(0, all->yy - slope * all->xy) / all->nr;
	return slope > 0 && slope * slope > CERTAIN * CERTAIN * rest / all->xx ? slope : 0;
}

/*
 * The usual latency after any length of wait: between the medians a straight line in the logarithm
 * of the wait; beyond the longest its own; below the shortest the slope of one actor's goes on, at
 * most to half, since nothing of that kind was seen.
 */
static void replay_latency_learn(struct replay_latency *l)
{
	struct run_of run[REPLAY_BUCKETS];
	unsigned nr = not_decreasing(l, run), i = 0;
	double slope = slope_of(&l->all);

	l->learned = nr;
	l->slope_ns = slope;
	l->least_ns = nr ? run[0].value_ns / 2 : 0;
	for (unsigned class = 0; nr && class < REPLAY_CLASSES; class ++) {
		double ns = run[i].value_ns;

		while (i + 1 < nr && class >= run[i + 1].from)
			ns = run[++i].value_ns;
		if (class < run[0].from)
			ns -= fmin(slope * (run[0].from - class), ns / 2);
		else if (class > run[i].to && i + 1 < nr)
			ns += (run[i + 1].value_ns - ns) * (class - run[i].to) /
			      (run[i + 1].from - run[i].to);
		l->usual_ns[class] = (uint32_t)(ns + 0.5);
	}
}

static bool learn_trend(void *ctx, uint64_t state, uint64_t actor, uint64_t i)
{
	struct graph_replay *r = ctx;

	(void)actor;
	add_trend(r->latency[state], &r->trend[i]);
	if (!r->latency[state]->not_only_woken)
		add_trend(&r->woken, &r->trend[i]);
	return true;
}

static const struct replay_latency *latency_of(const struct graph_replay *r, uint32_t state)
{
	return state < r->latency_capacity ? r->latency[state] : NULL;
}

/* Its own; where too few were seen that of all sleepers, unless some came otherwise (a thread's
 * birth); NULL: nothing was learned. */
static const struct replay_latency *learned_of(const struct graph_replay *r, uint32_t state)
{
	const struct replay_latency *l = latency_of(r, state);

	if (l && (l->learned || l->not_only_woken))
		return l->learned ? l : NULL;
	return r->woken.learned ? &r->woken : NULL;
}

/* Of the nearest length of wait that was seen; the shorter of two as near. */
static uint64_t replay_latency_nearest(const struct replay_latency *l, unsigned b)
{
	double error;

	for (unsigned d = 0; d < REPLAY_BUCKETS; d++) {
		if (b >= d && l->bucket[b - d].nr)
			return (uint64_t)graph_replay_median(&l->bucket[b - d], &error);
		if (b + d < REPLAY_BUCKETS && l->bucket[b + d].nr)
			return (uint64_t)graph_replay_median(&l->bucket[b + d], &error);
	}
	return 0;
}

/* Each simulation asks for it again and again. */
static void replay_latency_keep_nearest(struct replay_latency *l)
{
	for (unsigned b = 0; b < REPLAY_BUCKETS; b++)
		l->nearest_ns[b] = (uint32_t)replay_latency_nearest(l, b);
	l->has_nearest = true;
}

void graph_replay_latency_learn(struct graph_replay *r)
{
	base_map_each(&r->trends, learn_trend, r);
	for (size_t i = 0; i < r->latency_capacity; i++) {
		if (!r->latency[i])
			continue;
		replay_latency_learn(r->latency[i]);
		replay_latency_keep_nearest(r->latency[i]);
	}
	replay_latency_learn(&r->woken);
}

/* What was learned, else the nearest. */
uint64_t graph_replay_latency_usual(const struct graph_replay *r, uint32_t state, uint64_t wait_ns)
{
	const struct replay_latency *l = learned_of(r, state);
	unsigned b = replay_bucket(wait_ns);

	if (l)
		return l->usual_ns[replay_length_class(wait_ns)];
	l = latency_of(r, state);
	if (!l)
		return 0;
	return l->has_nearest ? l->nearest_ns[b] : replay_latency_nearest(l, b);
}

uint64_t graph_replay_latency_moved(const struct graph_replay *r, uint32_t state,
	uint64_t latency_ns, unsigned recorded_class, uint64_t wait_ns)
{
	const struct replay_latency *l = learned_of(r, state);
	unsigned class = replay_length_class(wait_ns);
	double ns = (double)latency_ns, least;

	if (!l || class == recorded_class || l->slope_ns <= 0)
		return latency_ns;
	least = fmin(ns, l->least_ns);
	return (uint64_t)(fmax(ns + l->slope_ns * ((double)class - recorded_class), least) + 0.5);
}

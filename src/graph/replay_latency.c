/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_latency.c - how long it takes from "it is there" to "it is used", by the length of the
 * wait before: who slept for long sleeps deeply (its processor is in a deep idle state, its caches
 * are cold). Kept per latency state (one a class of queues), learned from this recording alone.
 */
#include "graph/replay_priv.h"

#include <math.h>
#include <stdlib.h>

/* Fewer samples say nothing about a length of wait; nor do rare ones: what made that wait unusual
 * made it late. */
enum { CREDIBLE = 5 };

/* ---- samples -------------------------------------------------------------------------------- */

/* A reservoir: the k-th comes in with probability size / k; the hash is the dice. */
void graph_replay_sample(struct replay_samples *s, uint64_t value)
{
	uint32_t at = s->nr++;

	if (at >= REPLAY_SAMPLES)
		at = (uint32_t)(base_hash_u64(at) % s->nr);
	if (at < REPLAY_SAMPLES)
		s->sample[at] = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static int ascending(const void *pa, const void *pb)
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
	qsort(sorted, nr, sizeof *sorted, ascending);
	/* of a normal distribution, from its quartiles */
	*ret_error = 0.93 * (double)(sorted[high] - sorted[low]) / sqrt(nr);
	return sorted[middle];
}

static void add(struct replay_latency *l, uint64_t wait_ns, uint64_t latency_ns)
{
	unsigned b = replay_bucket(wait_ns);

	graph_replay_sample(&l->bucket[b], latency_ns);
	l->classes[b] += replay_length_class(wait_ns);
}

enum base_status graph_replay_latency_add(struct graph_replay *r, uint32_t state, uint64_t wait_ns,
	uint64_t latency_ns, bool asleep, struct base_err *err)
{
	enum base_status s = graph_replay_mem_need(r, &r->latency, &r->latency_capacity,
		(size_t)state + 1, sizeof(struct replay_latency *), err);

	if (s)
		return s;
	if (!r->latency[state]) {
		size_t nr = 0;

		s = graph_replay_mem_resize(
			r, &r->latency[state], &nr, 1, sizeof(struct replay_latency), err);
		if (s)
			return s;
	}
	add(r->latency[state], wait_ns, latency_ns);
	r->latency[state]->not_only_woken |= !asleep;
	if (asleep)
		add(&r->woken, wait_ns, latency_ns);
	return BASE_OK;
}

/* ---- what they come to ---------------------------------------------------------------------- */

struct run_of { /* buckets whose medians are one: lengths of wait from..to, in classes */
	double from, to, value_ns, weight;
};

/*
 * Who slept longer does not come sooner: the medians, made not decreasing (pool adjacent
 * violators). Of the buckets that are credible; returns how many runs they make.
 */
static unsigned not_decreasing(const struct replay_latency *l, struct run_of *run)
{
	unsigned nr = 0;
	double error, all = 0;

	for (unsigned b = 0; b < REPLAY_BUCKETS; b++)
		all += l->bucket[b].nr;
	for (unsigned b = 0; b < REPLAY_BUCKETS; b++) {
		double weight = l->bucket[b].nr, at = (double)l->classes[b] / weight;

		if (weight < CREDIBLE || weight < REPLAY_RARE * all)
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

/* ns a class, by least squares over the runs' middles; 0: they say nothing. */
static double slope_of(const struct run_of *run, unsigned nr)
{
	double w = 0, x = 0, y = 0, xx = 0, xy = 0;

	for (unsigned i = 0; i < nr; i++) {
		double at = (run[i].from + run[i].to) / 2, weight = run[i].weight;

		w += weight;
		x += weight * at;
		y += weight * run[i].value_ns;
		xx += weight * at * at;
		xy += weight * at * run[i].value_ns;
	}
	xx = xx * w - x * x;
	return nr > 1 && xx > 0 ? (xy * w - x * y) / xx : 0;
}

/*
 * The usual latency after any length of wait: between the medians a straight line in the logarithm
 * of the wait; beyond the longest its own; below the shortest the slope of all goes on, at most to
 * half, since nothing of that kind was seen.
 */
void graph_replay_latency_learn(struct replay_latency *l)
{
	struct run_of run[REPLAY_BUCKETS];
	unsigned nr = not_decreasing(l, run), i = 0;
	double slope = slope_of(run, nr);

	l->learned = nr;
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

/* What was learned, else of the nearest length of wait that was seen; the shorter of two as near.
 */
uint64_t graph_replay_latency_usual(const struct graph_replay *r, uint32_t state, uint64_t wait_ns)
{
	const struct replay_latency *l = learned_of(r, state);
	unsigned b = replay_bucket(wait_ns);
	double error;

	if (l)
		return l->usual_ns[replay_length_class(wait_ns)];
	l = latency_of(r, state);
	for (unsigned d = 0; l && d < REPLAY_BUCKETS; d++) {
		if (b >= d && l->bucket[b - d].nr)
			return (uint64_t)graph_replay_median(&l->bucket[b - d], &error);
		if (b + d < REPLAY_BUCKETS && l->bucket[b + d].nr)
			return (uint64_t)graph_replay_median(&l->bucket[b + d], &error);
	}
	return 0;
}

uint64_t graph_replay_latency_moved(const struct graph_replay *r, uint32_t state,
	uint64_t latency_ns, unsigned recorded_class, uint64_t wait_ns)
{
	const struct replay_latency *l = learned_of(r, state);
	unsigned class = replay_length_class(wait_ns);
	uint32_t then, now;

	if (!l || class == recorded_class)
		return latency_ns;
	then = l->usual_ns[recorded_class];
	now = l->usual_ns[class];
	if (now >= then) /* an outlier grows by what the others grow by */
		return latency_ns + (now - then);
	return (uint64_t)((double)latency_ns * now / then + 0.5);
}

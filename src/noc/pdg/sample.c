/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - what is slow in which run. */
#include "noc/pdg/sample.h"

#include "noc/pdg/draw.h"

#include <stdlib.h>
#include <string.h>

const char *noc_design_name(enum noc_design d)
{
	static const char *const name[NOC_DESIGNS] = {"nodes", "links", "packets", "adaptive"};
	return d < NOC_DESIGNS ? name[d] : "";
}

/* ---- how slow -------------------------------------------------------------------------------- */

enum { SLOW_MIN = 1000, SPANS_MAX = 1 << 16 };

static int sample_compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static enum base_status choose_slowness(
	const struct noc_runs *r, const struct noc_index *x, uint32_t *ret, struct base_err *err)
{
	uint64_t *span = base_alloc(SPANS_MAX * sizeof *span), step = r->nr_packets / SPANS_MAX + 1;
	uint32_t nr = 0;
	if (!span)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to look at windows");
	for (uint64_t i = 0; i < r->nr_packets && nr < SPANS_MAX; i += step) {
		uint32_t before = x->previous[i];
		if (before != NOC_PDG_NONE)
			span[nr++] = r->transmit_cycle[i * r->stride] -
				     r->transmit_cycle[(size_t)before * r->stride];
	}
	uint64_t slow = SLOW_MIN;
	if (nr) {
		qsort(span, nr, sizeof *span, sample_compare_u64);
		slow = 4 * span[(uint64_t)nr * 99 / 100];
	}
	base_free(span);
	*ret = slow < SLOW_MIN ? SLOW_MIN : slow > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)slow;
	return BASE_OK;
}

/* ---- designs --------------------------------------------------------------------------------- */

struct sampling {
	const struct noc_pdg *graph;
	const struct noc_sample_options *options;
	const struct noc_index *index;
	struct noc_runs *runs;
	uint32_t slow_cycles;
	uint32_t *extra_cycles; /* by packet */
	uint32_t *set;          /* by node */
	struct noc_hold *hold;
	size_t nr_holds, holds_capacity;
	uint64_t *first_hold;
};

/* Which of the m runs has packet i slow. */
static uint32_t slow_run(const struct sampling *s, uint32_t i)
{
	const struct noc_pdg *g = s->graph;
	uint32_t m = s->options->nr_skewed;
	uint64_t seed = s->options->seed;
	switch (s->options->design) {
	case NOC_NODES:
		BASE_ASSUME(s->set);
		return s->set[g->source[i]];
	case NOC_LINKS:
		return (uint32_t)(noc_draw_hash(
					  seed, (uint64_t)g->source[i] << 32 | g->destination[i]) %
				  m);
	default:
		return (uint32_t)(noc_draw_hash(seed, i) % m);
	}
}

static void sample_slow_down(struct sampling *s, uint32_t skewed)
{
	for (uint32_t i = 0; i < s->graph->nr_packets; i++)
		s->extra_cycles[i] = slow_run(s, i) == skewed ? s->slow_cycles : 0;
}

/* Each packet a little, uniform from 0 to `most`. */
static void sample_jitter(struct sampling *s, uint32_t skewed, uint32_t most)
{
	for (uint32_t i = 0; i < s->graph->nr_packets; i++)
		s->extra_cycles[i] = (uint32_t)(noc_draw_hash(s->options->seed + skewed, i) %
						((uint64_t)most + 1));
}

static enum base_status sample_add_hold(
	struct sampling *s, uint32_t packet, uint32_t after, uint32_t cycles, struct base_err *err)
{
	enum base_status st =
		base_grow(&s->hold, &s->holds_capacity, s->nr_holds + 1, sizeof *s->hold);
	if (st != BASE_OK)
		return base_fail(err, st, "no memory for the plan of a run");
	s->hold[s->nr_holds++] = (struct noc_hold){packet, after, cycles};
	return BASE_OK;
}

/* Came since the previous transmit in the base run: nobody but i and later ones can wait for it. */
static bool in_last_window(const struct sampling *s, uint32_t i, uint32_t packet)
{
	uint32_t before = s->index->previous[i];
	const struct noc_runs *r = s->runs;
	return before == NOC_PDG_NONE || r->receive_cycle[(size_t)packet * r->stride] >=
						 r->transmit_cycle[(size_t)before * r->stride];
}

/* Candidates of transmit i that are not confirmed: each after the one before, the first after all
 * that are confirmed. Which comes first changes from run to run. */
static enum base_status plan_transmit(struct sampling *s, const struct noc_pdg *inferred,
	uint32_t i, uint32_t apart_cycles, uint32_t run, struct base_err *err)
{
	uint64_t from = inferred->first[i], nr = inferred->first[i + 1] - from;
	uint32_t last = NOC_PDG_NONE;
	enum base_status st = BASE_OK;
	if (nr < 2)
		return BASE_OK;
	uint64_t start = noc_draw_hash(run, i) % nr;
	for (uint64_t k = 0; k < nr && st == BASE_OK; k++) {
		uint64_t d = from + (start + k) % nr;
		uint32_t packet = inferred->dependency[d];
		if (inferred->certainty[d] == NOC_CONFIRMED || !in_last_window(s, i, packet))
			continue;
		if (last != NOC_PDG_NONE)
			st = sample_add_hold(s, packet, last, apart_cycles, err);
		for (uint64_t c = from; c < from + nr && last == NOC_PDG_NONE && st == BASE_OK; c++)
			if (inferred->certainty[c] == NOC_CONFIRMED)
				st = sample_add_hold(
					s, packet, inferred->dependency[c], apart_cycles, err);
		last = packet;
	}
	return st;
}

enum { APART_MIN = 20, JITTER_MIN = 10, JITTER_TOLERANCES = 16 };

/* How long one candidate is kept until after another: so that the inference, whose tolerance grows
 * with the number of runs and is not known at all before the second one, can still tell which of
 * them came last. */
static uint32_t apart_cycles(uint32_t tolerance_cycles)
{
	uint32_t wanted = 2 * tolerance_cycles + 2;
	return wanted < APART_MIN ? APART_MIN : wanted;
}

/* Infers from the runs so far, and plans the next. */
static enum base_status plan_next(
	struct sampling *s, uint32_t run, uint32_t *ret_tolerance, struct base_err *err)
{
	struct noc_infer_options o;
	struct noc_infer_result result;
	struct noc_pdg *inferred;
	noc_infer_robust(&o);
	o.reduce = false;
	o.nr_threads = s->options->nr_threads;
	enum base_status st = noc_infer(s->graph, s->runs, &o, &inferred, &result, err);
	if (st != BASE_OK)
		return st;
	s->nr_holds = 0;
	for (uint32_t i = 0; i < s->graph->nr_packets && st == BASE_OK; i++) {
		s->first_hold[i] = s->nr_holds;
		st = plan_transmit(s, inferred, i, apart_cycles(result.tolerance_cycles), run, err);
	}
	s->first_hold[s->graph->nr_packets] = s->nr_holds;
	*ret_tolerance = result.tolerance_cycles;
	noc_pdg_free(inferred);
	return st;
}

/* ---- all runs -------------------------------------------------------------------------------- */

static enum base_status skewed_run(struct sampling *s, uint32_t run, struct base_err *err)
{
	struct noc_plan plan = {.extra_cycles = s->extra_cycles,
		.noise_cycles = s->options->noise_cycles,
		.seed = s->options->seed};
	if (s->options->design != NOC_ADAPTIVE) {
		sample_slow_down(s, run - 1);
	} else {
		uint32_t tolerance = 0, most = s->options->slow_cycles;
		s->runs->nr_runs = run;
		enum base_status st = plan_next(s, run, &tolerance, err);
		s->runs->nr_runs = s->options->nr_skewed + 1;
		sample_jitter(s, run, most ? most : JITTER_MIN + JITTER_TOLERANCES * tolerance);
		if (st != BASE_OK)
			return st;
		plan.hold = s->hold;
		plan.first_hold = s->first_hold;
	}
	noc_ideal_replay(s->graph, s->index, &plan, s->runs, run);
	return BASE_OK;
}

static enum base_status sample_sample(struct sampling *s, struct base_err *err)
{
	const struct noc_pdg *g = s->graph;
	struct noc_plan plan = {.noise_cycles = s->options->noise_cycles, .seed = s->options->seed};
	enum base_status st = BASE_OK;
	noc_ideal_replay(g, s->index, &plan, s->runs, 0);
	s->slow_cycles = s->options->slow_cycles;
	if (!s->slow_cycles && s->options->design != NOC_ADAPTIVE)
		st = choose_slowness(s->runs, s->index, &s->slow_cycles, err);
	if (st == BASE_OK && s->options->design == NOC_NODES)
		st = noc_partition(g, s->options->nr_skewed, s->set, err);
	for (uint32_t run = 1; run <= s->options->nr_skewed && st == BASE_OK; run++)
		st = skewed_run(s, run, err);
	return st;
}

enum base_status noc_sample(const struct noc_pdg *g, const struct noc_sample_options *o,
	struct noc_runs *ret_runs, struct base_err *err)
{
	struct noc_index x = {0};
	struct sampling s = {.graph = g, .options = o, .index = &x, .runs = ret_runs};
	*ret_runs = (struct noc_runs){0};
	if (!o->nr_skewed || o->nr_skewed >= NOC_RUNS_MAX)
		return base_fail(err, BASE_ERR_USAGE, "1 to %d skewed runs", NOC_RUNS_MAX - 1);
	enum base_status st = noc_index_init(&x, g, g->receive_cycle, 1, err);
	if (st != BASE_OK)
		return st;
	st = noc_runs_init(ret_runs, o->nr_skewed + 1, g->nr_packets, err);
	s.extra_cycles = base_alloc(((size_t)g->nr_packets + 1) * sizeof *s.extra_cycles);
	s.first_hold = base_alloc(((size_t)g->nr_packets + 1) * sizeof *s.first_hold);
	s.set = base_alloc(g->nr_nodes * sizeof *s.set);
	if (st == BASE_OK && (!s.extra_cycles || !s.first_hold || !s.set))
		st = base_fail(err, BASE_ERR_NOMEM, "no memory to plan runs");
	if (st == BASE_OK)
		st = sample_sample(&s, err);
	base_free(s.extra_cycles);
	base_free(s.first_hold);
	base_free(s.set);
	base_free(s.hold);
	noc_index_fini(&x);
	if (st != BASE_OK)
		noc_runs_fini(ret_runs);
	return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_race.c - transmits that no set of receptions explains in all runs.
 *
 * Programs race: who gets a lock, whose copy of a line is taken away, differs from run to run, so
 * that in some of them a transmit waited for something else, or the message that was matched is
 * another one. What is looked for then is the set that explains the base run and most others; and
 * if there is none, what other messages of that type wait for, and for how long.
 */
#include "noc/pdg/infer_private.h"

enum {
	VIOLATED_ONE_IN = 4 /* of the runs: a candidate may be later than it could be in so many */
};

struct hypothesis {
	int64_t delay;
	uint32_t explained, contradicted; /* runs */
};

static int64_t slack_of(const struct noc_view *v, uint32_t candidate, uint32_t run)
{
	return v->slack[(size_t)candidate * v->runs->nr_runs + run];
}

/* With such a delay, can it be waited for in the base run, and in nearly all others? */
static bool is_possible(const struct noc_view *v, uint32_t c, int64_t delay)
{
	uint32_t violated = 0;
	if (slack_of(v, c, 0) < delay)
		return false;
	for (uint32_t r = 1; r < v->runs->nr_runs; r++)
		violated += v->usable[r] && slack_of(v, c, r) < delay - v->tolerance_cycles;
	return violated * VIOLATED_ONE_IN <= v->nr_usable;
}

static bool is_tight(const struct noc_view *v, uint32_t c, uint32_t run, int64_t delay)
{
	int64_t slack = slack_of(v, c, run);
	return slack >= delay - v->tolerance_cycles && slack <= delay + v->tolerance_cycles;
}

/* Sets keep[]: all that is possible. */
static void infer_race_judge(struct noc_view *v, struct hypothesis *h)
{
	h->explained = h->contradicted = 0;
	for (uint32_t c = 0; c < v->nr_candidates; c++)
		v->keep[c] = is_possible(v, c, h->delay);
	for (uint32_t r = 0; r < v->runs->nr_runs; r++) {
		bool tight = false, unknown = false;
		if (!v->usable[r])
			continue;
		for (uint32_t c = 0; c < v->nr_candidates && !tight; c++) {
			tight = v->keep[c] && is_tight(v, c, r, h->delay);
			unknown |= v->keep[c] && slack_of(v, c, r) == NOC_SLACK_UNKNOWN;
		}
		h->explained += tight;
		h->contradicted += !tight && !unknown;
	}
}

static bool infer_race_is_usual(
	const struct noc_view *v, uint32_t transmit, uint32_t candidate, int64_t delay)
{
	if (!v->semantics || candidate == NOC_PDG_NONE)
		return false;
	const struct noc_pair *p = noc_pair(v->semantics, v->packets, transmit, candidate);
	return noc_pair_has_delay(p) && p->delay_cycles == (uint64_t)delay;
}

static bool is_better(const struct hypothesis *a, const struct hypothesis *b)
{
	if (a->explained != b->explained)
		return a->explained > b->explained;
	if (a->contradicted != b->contradicted)
		return a->contradicted < b->contradicted;
	return a->delay < b->delay;
}

/* Of what is possible, what is tight in some run. */
static void keep_tight(struct noc_view *v, int64_t delay)
{
	for (uint32_t c = 0; c < v->nr_candidates; c++) {
		bool tight = false;
		for (uint32_t r = 0; r < v->runs->nr_runs && v->keep[c]; r++)
			tight |= v->usable[r] && is_tight(v, c, r, delay);
		v->keep[c] = tight;
	}
}

bool noc_view_explain_most(struct noc_view *v, uint32_t transmit, int64_t *ret_delay)
{
	struct hypothesis best = {0};
	(void)transmit;
	for (uint32_t c = 0; c < v->nr_candidates; c++) {
		struct hypothesis h = {.delay = slack_of(v, c, 0)};
		if (h.delay < (v->candidate[c] != NOC_PDG_NONE) || !is_possible(v, c, h.delay))
			continue;
		infer_race_judge(v, &h);
		if (is_better(&h, &best))
			best = h;
	}
	if (best.explained < 2 || best.explained <= best.contradicted)
		return false;
	infer_race_judge(v, &best);
	keep_tight(v, best.delay);
	*ret_delay = best.delay;
	return true;
}

bool noc_view_explain_usual(struct noc_view *v, uint32_t transmit, int64_t *ret_delay)
{
	uint32_t best = NOC_PDG_NONE, most = 0;
	for (uint32_t c = 0; c < v->nr_candidates; c++) {
		v->keep[c] = false;
		if (!infer_race_is_usual(v, transmit, v->candidate[c], slack_of(v, c, 0)))
			continue;
		uint32_t nr = noc_pair(v->semantics, v->packets, transmit, v->candidate[c])->nr;
		if (nr >= most) {
			most = nr;
			best = c;
		}
	}
	if (best == NOC_PDG_NONE)
		return false;
	v->keep[best] = true;
	*ret_delay = slack_of(v, best, 0);
	return true;
}

bool noc_view_explain_latest(struct noc_view *v, uint32_t transmit, int64_t *ret_delay)
{
	uint32_t best = NOC_PDG_NONE;
	(void)transmit;
	for (uint32_t c = 0; c < v->nr_candidates; c++) {
		v->keep[c] = false;
		if (v->candidate[c] != NOC_PDG_NONE && slack_of(v, c, 0) > 0 &&
			(best == NOC_PDG_NONE || slack_of(v, c, 0) <= slack_of(v, best, 0)))
			best = c;
	}
	if (best == NOC_PDG_NONE)
		return false;
	v->keep[best] = true;
	*ret_delay = slack_of(v, best, 0);
	return true;
}

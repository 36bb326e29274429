/* SPDX-License-Identifier: Apache-2.0 */
/* infer_transmit.c - one transmit: its windows, and what explains it. */
#include "noc/pdg/infer_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- windows --------------------------------------------------------------------------------- */

/* First reception of the node that came in the base run at `cycle` or later. Transmits are looked
 * at in their order, so it is near the one before: in steps that double from there. */
static uint32_t infer_transmit_first_from(struct noc_view *v, uint64_t cycle)
{
	uint32_t low = v->near_reception, high = low, step = 1;
	while (high < v->nr_receptions && noc_view_receive(v, v->reception[high], 0) < cycle) {
		low = high + 1;
		high = v->nr_receptions - high > step ? high + step : v->nr_receptions;
		step *= 2;
	}
	for (step = 1; low && noc_view_receive(v, v->reception[low - 1], 0) >= cycle; step *= 2) {
		high = low - 1;
		low = high > step ? high - step : 0;
	}
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (noc_view_receive(v, v->reception[middle], 0) < cycle)
			low = middle + 1;
		else
			high = middle;
	}
	v->near_reception = low;
	return low;
}

void noc_view_prefetch(const struct noc_view *v, uint32_t t)
{
	const size_t stride = v->runs->stride;
	uint32_t r = v->near_reception + NOC_PREFETCH;
	if (t < v->nr_transmits)
		__builtin_prefetch(v->runs->transmit_cycle + v->transmit[t] * stride);
	if (r < v->nr_receptions)
		__builtin_prefetch(v->runs->receive_cycle + v->reception[r] * stride);
}

static enum base_status infer_transmit_room(struct noc_view *v, size_t nr, struct base_err *err)
{
	if (nr <= v->capacity)
		return BASE_OK;
	size_t next = nr + nr / 2 + 16, runs = v->runs->nr_runs;
	uint32_t *candidate = base_alloc(next * sizeof *candidate);
	int64_t *slack = base_alloc(next * runs * sizeof *slack);
	struct noc_infer_sort *sort = base_alloc(next * sizeof *sort);
	bool *keep = base_alloc(next * sizeof *keep);
	uint8_t *certainty = base_alloc(next);
	base_free(v->candidate);
	base_free(v->slack);
	base_free(v->sort);
	base_free(v->keep);
	base_free(v->certainty);
	v->candidate = candidate;
	v->slack = slack;
	v->sort = sort;
	v->keep = keep;
	v->certainty = certainty;
	v->capacity = next;
	if (candidate && slack && sort && keep && certainty)
		return BASE_OK;
	v->capacity = 0;
	return base_fail(
		err, BASE_ERR_NOMEM, "no memory for a window of %zu {reception|receptions}", nr);
}

void noc_view_fini(struct noc_view *v)
{
	base_free(v->candidate);
	base_free(v->slack);
	base_free(v->sort);
	base_free(v->keep);
	base_free(v->certainty);
}

/* What was not seen in a run has no slack there. */
static void ignore_filled(struct noc_view *v, uint32_t transmit, uint32_t packet, int64_t *slack)
{
	for (uint32_t r = 0; r < v->runs->nr_runs; r++)
		if (noc_view_filled(v, packet, r) || noc_view_filled(v, transmit, r))
			slack[r] = NOC_SLACK_UNKNOWN;
}

/* One in so many transmits of its type waits for such a reception, whoever it is from. */
static bool is_plausible(const struct noc_view *v, uint32_t transmit, uint32_t reception)
{
	const struct noc_pdg *g = v->packets;
	bool same = g->address[transmit] == g->address[reception];
	const struct noc_pair *p = v->semantics->pair[g->type[transmit]][g->type[reception]];
	uint64_t nr = (uint64_t)p[same].nr + p[same | NOC_ANSWER].nr;
	return v->plausible_one_in * nr >= v->semantics->seen[g->type[transmit]];
}

/* The slacks of transmit t to receptions [from, to) of the node, and to its previous transmit. */
static enum base_status infer_transmit_fill(struct noc_view *v, uint32_t t, uint32_t from,
	uint32_t to, bool with_previous, struct base_err *err)
{
	enum base_status s = infer_transmit_room(v, (size_t)(to - from) + 1, err);
	if (s != BASE_OK)
		return s;
	const size_t nr_runs = v->runs->nr_runs, stride = v->runs->stride;
	const uint64_t *transmit = v->runs->transmit_cycle + v->transmit[t] * stride;
	uint32_t nr = 0;
	for (uint32_t k = from; k < to; k++) {
		const uint64_t *arrival = v->runs->receive_cycle + v->reception[k] * stride;
		int64_t *slack = v->slack + nr * nr_runs;
		if (v->reception[k] > v->transmit[t])
			continue; /* later by number: the base run is noisy */
		if (v->plausible_one_in && !is_plausible(v, v->transmit[t], v->reception[k]))
			continue;
		if (v->only_answers && v->packets->source[v->reception[k]] !=
					       v->packets->destination[v->transmit[t]])
			continue;
		v->candidate[nr++] = v->reception[k];
		for (size_t r = 0; r < nr_runs; r++)
			slack[r] = (int64_t)(transmit[r] - arrival[r]);
		if (v->runs->filled)
			ignore_filled(v, v->transmit[t], v->reception[k], slack);
	}
	if (with_previous) {
		const uint64_t *before = v->runs->transmit_cycle + v->transmit[t - 1] * stride;
		int64_t *slack = v->slack + nr * nr_runs;
		v->candidate[nr++] = NOC_PDG_NONE;
		for (size_t r = 0; r < nr_runs; r++)
			slack[r] = (int64_t)(transmit[r] - before[r]);
		if (v->runs->filled)
			ignore_filled(v, v->transmit[t], v->transmit[t - 1], slack);
	}
	v->nr_candidates = nr;
	return BASE_OK;
}

/* Receptions [*ret_from, *ret_to) since the k-th previous transmit. One in the cycle of that
 * transmit is inside, one in the cycle of t itself is not. */
static void infer_transmit_window(
	struct noc_view *v, uint32_t t, uint32_t k, uint32_t *ret_from, uint32_t *ret_to)
{
	*ret_to = infer_transmit_first_from(v, noc_view_transmit(v, v->transmit[t], 0));
	*ret_from =
		t >= k ? infer_transmit_first_from(v, noc_view_transmit(v, v->transmit[t - k], 0))
		       : 0;
	if (*ret_from > *ret_to)
		*ret_from = *ret_to; /* transmits of a node that is not ordered */
}

static void window_of_options(struct noc_view *v, uint32_t t, uint32_t *ret_from, uint32_t *ret_to)
{
	const struct noc_infer_options *o = v->options;
	infer_transmit_window(v, t, o->window_previous, ret_from, ret_to);
	if (o->window_receptions)
		*ret_from = *ret_to > o->window_receptions ? *ret_to - o->window_receptions : 0;
}

/* ---- which runs may be used ------------------------------------------------------------------ */

/* Sets usable[]; gives their number. */
static uint32_t find_usable(struct noc_view *v, uint32_t t)
{
	uint32_t nr = 0, runs = v->runs->nr_runs;
	v->nr_seen = 0;
	for (uint32_t r = 0; r < runs; r++) {
		v->usable[r] = !(v->options->ignore_blocked && v->ordered && t &&
				       noc_view_transmit(v, v->transmit[t], r) <=
					       noc_view_transmit(v, v->transmit[t - 1], r) + 1) &&
			       !noc_view_filled(v, v->transmit[t], r) &&
			       !(t && v->ordered && noc_view_filled(v, v->transmit[t - 1], r));
		nr += v->usable[r];
		v->nr_seen += !noc_view_filled(v, v->transmit[t], r);
	}
	v->counts.blocked += runs - nr;
	v->nr_usable = nr;
	return nr;
}

static int compare_slacks(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

/* Was one of what is kept not seen in the run? Then another may have been the last. */
static bool is_unknown(const struct noc_view *v, uint32_t run)
{
	for (uint32_t c = 0; c < v->nr_candidates && v->runs->filled; c++)
		if (v->keep[c] && v->slack[(size_t)c * v->runs->nr_runs + run] == NOC_SLACK_UNKNOWN)
			return true;
	return false;
}

/* The middle of the delays that the usable runs show, when candidates c with keep[c] are all there
 * is. */
static uint64_t median_delay(const struct noc_view *v)
{
	int64_t delay[NOC_RUNS_MAX];
	uint32_t nr = 0, runs = v->runs->nr_runs;
	for (uint32_t r = 0; r < runs; r++) {
		int64_t last = NOC_SLACK_UNKNOWN;
		for (uint32_t c = 0; c < v->nr_candidates && v->usable[r]; c++)
			if (v->keep[c] && v->slack[(size_t)c * runs + r] < last)
				last = v->slack[(size_t)c * runs + r];
		if (last != NOC_SLACK_UNKNOWN && !is_unknown(v, r))
			delay[nr++] = last;
	}
	if (!nr)
		return 1;
	qsort(delay, nr, sizeof *delay, compare_slacks);
	int64_t middle = nr % 2 ? delay[nr / 2] : (delay[nr / 2 - 1] + delay[nr / 2]) / 2;
	return middle > 0 ? (uint64_t)middle : 1;
}

/* ---- grades ---------------------------------------------------------------------------------- */

/* Of a run's kept candidates: the last arrival; *ret_alone: no other within the tolerance. */
static uint32_t last_arrival(const struct noc_view *v, uint32_t run, bool *ret_alone)
{
	uint32_t last = NOC_PDG_NONE, runs = v->runs->nr_runs;
	int64_t least = INT64_MAX, second = INT64_MAX;
	for (uint32_t c = 0; c < v->nr_candidates; c++) {
		int64_t slack = v->slack[(size_t)c * runs + run];
		if (!v->keep[c])
			continue;
		if (slack < least) {
			second = least;
			least = slack;
			last = c;
		} else if (slack < second) {
			second = slack;
		}
	}
	*ret_alone = last != NOC_PDG_NONE && second - least > (int64_t)v->tolerance_cycles;
	return last;
}

static void grade(struct noc_view *v)
{
	for (uint32_t c = 0; c < v->nr_candidates; c++)
		v->certainty[c] = NOC_CONSISTENT;
	for (uint32_t r = 0; r < v->runs->nr_runs; r++) {
		bool alone;
		uint32_t last = v->usable[r] && !is_unknown(v, r) ? last_arrival(v, r, &alone)
								  : NOC_PDG_NONE;
		if (last != NOC_PDG_NONE && alone)
			v->certainty[last] = NOC_CONFIRMED;
	}
}

/* Leaves out what no run needs: every usable run has one of the kept ones as its last arrival. */
static void reduce(struct noc_view *v)
{
	const uint32_t runs = v->runs->nr_runs;
	bool *needed = (bool *)v->sort; /* not used by now */
	_Static_assert(sizeof *v->sort >= sizeof *needed, "room for a flag each");
	for (uint32_t c = 0; c < v->nr_candidates; c++)
		needed[c] = v->keep[c] && v->certainty[c] == NOC_CONFIRMED;
	for (uint32_t r = 0; r < runs; r++) {
		bool alone, covered = false;
		uint32_t last = v->usable[r] && !is_unknown(v, r) ? last_arrival(v, r, &alone)
								  : NOC_PDG_NONE;
		if (last == NOC_PDG_NONE)
			continue;
		int64_t least = v->slack[(size_t)last * runs + r];
		for (uint32_t c = 0; c < v->nr_candidates && !covered; c++)
			covered = needed[c] && v->slack[(size_t)c * runs + r] - least <=
						       (int64_t)v->tolerance_cycles;
		if (!covered)
			needed[last] = true;
	}
	for (uint32_t c = 0; c < v->nr_candidates; c++)
		v->keep[c] = needed[c];
}

/* ---- explanations ---------------------------------------------------------------------------- */

/* So many runs must show it: where they differ, what few agree on may be chance. Of those in which
 * the transmit was held up none can be asked for. */
static uint32_t runs_to_agree(const struct noc_view *v)
{
	uint32_t wanted = (v->runs->nr_runs + 1) / 2;
	if (!v->runs->filled)
		return 1;
	wanted = wanted < NOC_LEARN_RUNS ? wanted : NOC_LEARN_RUNS;
	return v->nr_seen >= wanted && v->nr_usable < wanted ? v->nr_usable : wanted;
}

/* Is the time since the previous transmit (of the first: since the start) the same in all usable
 * runs? */
static bool only_previous(const struct noc_view *v, uint32_t t, uint64_t *ret_delay)
{
	int64_t least = INT64_MAX, most = INT64_MIN, gap[NOC_RUNS_MAX];
	uint32_t nr = 0;
	for (uint32_t r = 0; r < v->runs->nr_runs; r++) {
		uint64_t before = t ? noc_view_transmit(v, v->transmit[t - 1], r) : 0;
		if (noc_view_filled(v, v->transmit[t], r) ||
			(t && noc_view_filled(v, v->transmit[t - 1], r)))
			continue;
		int64_t g = (int64_t)(noc_view_transmit(v, v->transmit[t], r) - before);
		least = g < least ? g : least; /* too early is wrong in any run */
		if (!v->usable[r])
			continue;
		gap[nr++] = g;
		most = g > most ? g : most;
	}
	if (nr < runs_to_agree(v) || most - least > (int64_t)v->tolerance_cycles)
		return false;
	qsort(gap, nr, sizeof *gap, compare_slacks);
	*ret_delay = gap[nr / 2] > 0 ? (uint64_t)gap[nr / 2] : 0;
	return true;
}

/* The gate of candidates that are kept. */
static void infer_transmit_take(
	struct noc_view *v, int64_t delay, bool robust, struct noc_gate *ret)
{
	ret->delay_cycles = robust ? median_delay(v) : (uint64_t)delay;
	for (uint32_t c = 0; c < v->nr_candidates; c++)
		v->certainty[c] = v->keep[c] ? NOC_CONSISTENT : NOC_UNEXPLAINED;
	if (v->options->grade)
		grade(v);
	if (v->options->grade && v->options->reduce)
		reduce(v);
	for (uint32_t c = 0; c < v->nr_candidates; c++) {
		if (!v->keep[c])
			continue;
		if (v->candidate[c] == NOC_PDG_NONE) {
			ret->inputs |= NOC_PDG_PREVIOUS;
			v->keep[c] = false;
		} else {
			ret->nr++;
		}
	}
}

static void take_previous(struct noc_view *v, uint32_t t, uint64_t delay, struct noc_gate *ret)
{
	v->nr_candidates = 0;
	ret->inputs = t ? NOC_PDG_PREVIOUS : 0;
	ret->delay_cycles = delay;
}

static uint64_t base_gap(const struct noc_view *v, uint32_t t)
{
	uint64_t now = noc_view_transmit(v, v->transmit[t], 0);
	return t ? now - noc_view_transmit(v, v->transmit[t - 1], 0) : now;
}

static uint32_t next_window(uint32_t k)
{
	return k < 4 ? k + 1 : k % 3 ? k + k / 2 : k + k / 3;
}

/* Tries windows that grow. with_previous: the previous transmit is one more candidate. */
static enum base_status explain_windows(struct noc_view *v, uint32_t t, bool with_previous,
	struct noc_gate *ret, struct base_err *err)
{
	uint32_t last_from = UINT32_MAX;
	for (uint32_t k = 1; k <= v->options->window_previous_max; k = next_window(k)) {
		uint32_t from, to, explained;
		int64_t delay;
		infer_transmit_window(v, t, k, &from, &to);
		if (from == last_from && k > 1)
			continue; /* nothing new came in it */
		last_from = from;
		enum base_status s = infer_transmit_fill(v, t, from, to, with_previous, err);
		if (s != BASE_OK)
			return s;
		v->counts.candidates += v->nr_candidates;
		if (noc_infer_prune(v->slack, v->nr_candidates, v->runs->nr_runs, v->usable,
			    v->tolerance_cycles, v->sort, v->keep, &delay, &explained) &&
			explained >= runs_to_agree(v)) {
			infer_transmit_take(v, delay, true, ret);
			ret->explained = true;
			return BASE_OK;
		}
		if (!from)
			break;
	}
	return BASE_OK;
}

/* Receptions alone, the previous transmit alone, both. Where a node's transmits are ordered the
 * previous one comes first; else what goes out together would only seem to wait for each other. One
 * run can neither confirm nor refute that it is the previous one. */
static enum base_status infer_transmit_explain(
	struct noc_view *v, uint32_t t, struct noc_gate *ret, struct base_err *err)
{
	enum base_status s = BASE_OK;
	bool may_previous =
		v->runs->nr_runs > 1 && !v->only_answers && (v->nr_usable > 1 || v->ordered);
	for (unsigned step = 0; step < 2 && s == BASE_OK && !ret->explained; step++) {
		uint64_t delay;
		if ((step == 0) != v->ordered) {
			s = explain_windows(v, t, false, ret, err);
		} else if (may_previous && only_previous(v, t, &delay)) {
			take_previous(v, t, delay, ret);
			ret->explained = true;
		}
	}
	if (s == BASE_OK && !ret->explained && t)
		s = explain_windows(v, t, true, ret, err);
	return s;
}

enum { RACE_RECEPTIONS = 128 };

/* Nothing explains all runs; see infer_race.c. */
static enum base_status explain_race(struct noc_view *v, uint32_t t,
	bool (*how)(struct noc_view *, uint32_t, int64_t *), struct noc_gate *ret,
	struct base_err *err)
{
	uint32_t from, to;
	int64_t delay;
	infer_transmit_window(v, t, v->options->window_previous_max, &from, &to);
	from = to - from > RACE_RECEPTIONS ? to - RACE_RECEPTIONS : from;
	enum base_status s = infer_transmit_fill(v, t, from, to, t > 0, err);
	if (s != BASE_OK || !how(v, v->transmit[t], &delay))
		return s;
	ret->delay_cycles = (uint64_t)delay;
	ret->inputs = NOC_PDG_UNEXPLAINED;
	for (uint32_t c = 0; c < v->nr_candidates; c++) {
		v->certainty[c] = NOC_UNEXPLAINED;
		if (v->keep[c] && v->candidate[c] == NOC_PDG_NONE) {
			ret->inputs |= NOC_PDG_PREVIOUS;
			v->keep[c] = false;
		}
		ret->nr += v->keep[c];
	}
	return s;
}

static bool is_found(const struct noc_gate *g)
{
	return g->explained || g->nr || g->inputs;
}

/* Of a transmit that was held up in nearly all runs little is known but inequalities. Where others
 * of the node answer the asking node, so does it. */
static enum base_status explain_by_others(
	struct noc_view *v, uint32_t t, struct noc_gate *ret, struct base_err *err)
{
	enum base_status s = BASE_OK;
	v->only_answers = true;
	if (v->nr_usable) {
		s = infer_transmit_explain(v, t, ret, err);
		v->only_answers = false;
		return s;
	}
	uint32_t from, to, latest = NOC_PDG_NONE;
	int64_t room_cycles = 0;
	infer_transmit_window(v, t, v->options->window_previous_max, &from, &to);
	s = infer_transmit_fill(v, t, from, to, false, err);
	v->only_answers = false;
	/* the latest that is no later than the delay of others before the transmit in any run */
	for (uint32_t c = 0; c < v->nr_candidates && s == BASE_OK; c++) {
		int64_t least = INT64_MAX;
		for (uint32_t r = 0; r < v->runs->nr_runs; r++) {
			int64_t slack = v->slack[(size_t)c * v->runs->nr_runs + r];
			least = slack < least ? slack : least;
		}
		v->keep[c] = false;
		if (least > 0) {
			latest = c;
			room_cycles = least;
		}
	}
	if (s != BASE_OK || latest == NOC_PDG_NONE)
		return s;
	v->keep[latest] = true;
	v->certainty[latest] = NOC_CONSISTENT;
	ret->nr = 1;
	ret->explained = true;
	ret->delay_cycles = (uint64_t)room_cycles < v->learned.delay_cycles
				    ? (uint64_t)room_cycles
				    : v->learned.delay_cycles;
	return BASE_OK;
}

enum { SEEN_LEAST = 20 };

enum { PLAUSIBLE_ONE_IN = 50, POSSIBLE_ONE_IN = 500 };

/* What messages of its type wait for, where that is known. */
static enum base_status explain_by_type(
	struct noc_view *v, uint32_t t, struct noc_gate *ret, struct base_err *err)
{
	static const struct {
		bool (*how)(struct noc_view *, uint32_t, int64_t *);
		uint32_t one_in;
	} race[] = {{noc_view_explain_usual, PLAUSIBLE_ONE_IN},
		{noc_view_explain_most, PLAUSIBLE_ONE_IN},
		{noc_view_explain_latest, POSSIBLE_ONE_IN}};
	v->plausible_one_in = PLAUSIBLE_ONE_IN;
	enum base_status s = explain_windows(v, t, false, ret, err);
	for (size_t i = 0; i < BASE_COUNT(race) && s == BASE_OK && !is_found(ret); i++) {
		v->plausible_one_in = race[i].one_in;
		s = explain_race(v, t, race[i].how, ret, err);
	}
	v->plausible_one_in = 0;
	return s;
}

static enum base_status gate_adaptive(
	struct noc_view *v, uint32_t t, struct noc_gate *ret, struct base_err *err)
{
	enum base_status s = BASE_OK;
	find_usable(v, t);
	if (v->semantics && v->semantics->seen[v->packets->type[v->transmit[t]]] >= SEEN_LEAST) {
		s = explain_by_type(v, t, ret, err);
		if (s != BASE_OK || is_found(ret))
			return s;
	}
	if (v->nr_usable < NOC_LEARN_RUNS && v->learned.answers) {
		s = explain_by_others(v, t, ret, err);
		if (s != BASE_OK || is_found(ret))
			return s;
	}
	if (!v->nr_usable) {
		/* Held up by its predecessor in every run: that, one cycle later, is all that is
		 * known, and enough. */
		take_previous(v, t, 1, ret);
		ret->explained = true;
		return BASE_OK;
	}
	s = infer_transmit_explain(v, t, ret, err);
	if (s == BASE_OK && !is_found(ret))
		s = explain_race(v, t, noc_view_explain_most, ret, err);
	if (s != BASE_OK || is_found(ret))
		return s;
	take_previous(v, t, base_gap(v, t), ret);
	ret->inputs |= NOC_PDG_UNEXPLAINED;
	ret->empty = true;
	return BASE_OK;
}

static enum base_status gate_one_window(
	struct noc_view *v, uint32_t t, struct noc_gate *ret, struct base_err *err)
{
	uint32_t from, to;
	int64_t delay;
	uint32_t explained;
	window_of_options(v, t, &from, &to);
	uint32_t nr_usable = find_usable(v, t);
	enum base_status s = infer_transmit_fill(v, t, from, to, false, err);
	if (s != BASE_OK)
		return s;
	v->counts.candidates += v->nr_candidates;
	ret->explained = true;
	if (!nr_usable)
		take_previous(v, t, 1, ret);
	else if (noc_infer_prune(v->slack, v->nr_candidates, v->runs->nr_runs, v->usable,
			 v->tolerance_cycles, v->sort, v->keep, &delay, &explained)) {
		infer_transmit_take(v, delay, v->tolerance_cycles != 0, ret);
	} else {
		ret->empty = v->nr_candidates != 0;
		take_previous(v, t, base_gap(v, t), ret);
	}
	return BASE_OK;
}

/* The delay is what the base run shows (seed 002, section 4: D = T_i - T_j there), so that the
 * graph, replayed where the base run was, is that run. Other runs say which receptions are waited
 * for; how long, they say only where the transmit was held up in the base run: then it is at most
 * that. */
static void settle_delay(const struct noc_view *v, uint32_t t, struct noc_gate *ret)
{
	uint64_t now = noc_view_transmit(v, v->transmit[t], 0), last = 0;
	uint64_t before = t ? noc_view_transmit(v, v->transmit[t - 1], 0) : 0;
	if (before > now) /* a node that is not ordered: nobody waits for what comes later */
		ret->inputs &= (uint8_t)~NOC_PDG_PREVIOUS;
	if (ret->inputs & NOC_PDG_PREVIOUS)
		last = before;
	for (uint32_t c = 0; c < v->nr_candidates && ret->nr; c++) {
		if (!v->keep[c])
			continue;
		uint64_t arrival = noc_view_receive(v, v->candidate[c], 0);
		last = arrival > last ? arrival : last;
	}
	uint64_t most = now > last ? now - last : 0;
	if (v->usable[0] || ret->delay_cycles > most)
		ret->delay_cycles = most;
}

enum base_status noc_view_gate(
	struct noc_view *v, uint32_t t, struct noc_gate *ret, struct base_err *err)
{
	*ret = (struct noc_gate){0};
	enum base_status s = v->options->adaptive ? gate_adaptive(v, t, ret, err)
						  : gate_one_window(v, t, ret, err);
	if (s == BASE_OK)
		settle_delay(v, t, ret);
	return s;
}

/* ---- tolerance ------------------------------------------------------------------------------- */

/* Of what explains the transmit best alone (its previous one, or one reception): by how much its
 * slack differs between runs. UINT32_MAX: nothing to look at. */
uint32_t noc_view_spread(struct noc_view *v, uint32_t t, struct base_err *err)
{
	uint32_t from, to, runs = v->runs->nr_runs;
	uint64_t best = UINT32_MAX;
	uint32_t nr_usable = find_usable(v, t);
	infer_transmit_window(v, t, 1, &from, &to);
	if (nr_usable < runs || runs < 2 ||
		infer_transmit_fill(v, t, from, to, t > 0, err) != BASE_OK)
		return UINT32_MAX;
	for (uint32_t c = 0; c < v->nr_candidates; c++) {
		int64_t least = INT64_MAX, most = INT64_MIN;
		for (uint32_t r = 0; r < runs; r++) {
			int64_t slack = v->slack[(size_t)c * runs + r];
			if (!v->usable[r])
				continue;
			least = slack < least ? slack : least;
			most = slack > most ? slack : most;
		}
		if ((uint64_t)(most - least) < best)
			best = (uint64_t)(most - least);
	}
	return (uint32_t)best;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* infer_prune.c - steps 2 and 3 of PDG_GEN for one set of candidates. */
#include "noc/pdg/infer.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 24 };

static int infer_prune_compare(const void *a, const void *b)
{
	const struct noc_infer_sort *x = a, *y = b;
	if (x->least != y->least)
		return x->least < y->least ? -1 : 1;
	return x->candidate < y->candidate ? -1 : x->candidate > y->candidate;
}

static void infer_prune_sort(struct noc_infer_sort *s, uint32_t nr)
{
	if (nr > FEW) {
		qsort(s, nr, sizeof *s, infer_prune_compare);
		return;
	}
	for (uint32_t i = 1; i < nr; i++) {
		struct noc_infer_sort x = s[i];
		uint32_t k = i;
		for (; k && infer_prune_compare(&x, &s[k - 1]) < 0; k--)
			s[k] = s[k - 1];
		s[k] = x;
	}
}

/* Candidates that come before the transmit in every run, by least slack. */
static uint32_t causal(
	const int64_t *slack, uint32_t nr_candidates, uint32_t nr_runs, struct noc_infer_sort *to)
{
	uint32_t nr = 0;
	for (uint32_t c = 0; c < nr_candidates; c++) {
		const int64_t *own = slack + (size_t)c * nr_runs;
		int64_t least = own[0];
		for (uint32_t r = 1; r < nr_runs; r++)
			least = own[r] < least ? own[r] : least;
		if (least > 0)
			to[nr++] = (struct noc_infer_sort){least, c};
	}
	infer_prune_sort(to, nr);
	return nr;
}

/* Runs whose last arrival is no earlier than it may be; 0: there is one in which it is, though all
 * of the suffix were seen. */
static uint32_t count_explained(const int64_t *last, const bool *unknown, const bool *usable,
	uint32_t nr_runs, int64_t least)
{
	uint32_t nr = 0;
	for (uint32_t r = 0; r < nr_runs; r++) {
		if (usable && !usable[r])
			continue;
		if (!unknown[r] && last[r] < least)
			return 0;
		nr += !unknown[r];
	}
	return nr;
}

uint32_t noc_infer_prune(const int64_t *slack, uint32_t nr_candidates, uint32_t nr_runs,
	const bool *usable, uint32_t tolerance_cycles, struct noc_infer_sort *scratch, bool *keep,
	int64_t *ret_delay, uint32_t *ret_explained)
{
	uint32_t nr = causal(slack, nr_candidates, nr_runs, scratch), from = nr, explained = 0;
	int64_t last[NOC_RUNS_MAX], delay = 0;
	bool unknown[NOC_RUNS_MAX] = {0}; /* in that run one of the suffix was not seen */
	memset(keep, 0, nr_candidates * sizeof *keep);
	for (uint32_t r = 0; r < nr_runs; r++)
		last[r] = INT64_MAX;
	/* From the longest least slack down: last[] = slack of each run's last arrival in the
	 * suffix. The longest suffix that holds is the answer, so look at all of them. */
	for (uint32_t k = nr; k--;) {
		const int64_t *own = slack + (size_t)scratch[k].candidate * nr_runs;
		int64_t most = INT64_MIN;
		for (uint32_t r = 0; r < nr_runs; r++) {
			last[r] = own[r] < last[r] ? own[r] : last[r];
			unknown[r] |= own[r] == NOC_SLACK_UNKNOWN;
			if ((!usable || usable[r]) && !unknown[r])
				most = last[r] > most ? last[r] : most;
		}
		if (most != INT64_MIN && scratch[k].least + tolerance_cycles >= most) {
			from = k;
			delay = most;
			explained = count_explained(
				last, unknown, usable, nr_runs, most - tolerance_cycles);
		}
	}
	for (uint32_t k = from; k < nr; k++)
		keep[scratch[k].candidate] = true;
	*ret_delay = delay;
	*ret_explained = explained;
	return nr - from;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* infer_private.h - what infer.c (tasks, the result), infer_prune.c (one set of candidates) and
 * infer_transmit.c (one transmit) share. */
#ifndef LONGPOLE_NOC_INFER_PRIVATE_H
#define LONGPOLE_NOC_INFER_PRIVATE_H

#include "noc/infer.h"

/* What one transmit was found to wait for. */
struct noc_gate {
	uint64_t delay_cycles;
	uint8_t inputs;
	bool empty;     /* nothing was left of its candidates */
	bool explained; /* by all runs; always true for the literal algorithm */
	uint32_t nr;    /* of keep[] in the view: packets */
};

/* What the transmits of a node with many usable runs have in common; see the option `learn`. */
struct noc_learned {
	bool answers; /* they depend on a packet from the node that they go to */
	uint64_t delay_cycles; /* the middle of their delays */
};
enum { NOC_LEARN_RUNS = 3 /* usable runs that decide alone */ };

/* One thread's view of one node. */
struct noc_view {
	const struct noc_pdg *packets;
	const struct noc_runs *runs;
	const struct noc_index *index;
	const struct noc_infer_options *options;
	uint32_t tolerance_cycles;
	const uint32_t *transmit, *reception; /* of the node */
	uint32_t nr_transmits, nr_receptions;
	bool ordered;
	struct noc_learned learned;

	/* of the transmit that is looked at */
	uint32_t nr_candidates;
	uint32_t *candidate; /* packets; NOC_PDG_NONE: the previous transmit */
	int64_t *slack;      /* [candidate][run] */
	struct noc_infer_sort *sort;
	bool *keep;
	uint8_t *certainty; /* of the kept ones, in the order of candidate[] */
	size_t capacity;    /* of these five, in candidates */
	bool usable[NOC_RUNS_MAX];
	uint32_t nr_usable;
	bool only_answers; /* candidates are only what came from where the transmit goes to */

	struct noc_infer_result counts;
};

static inline uint64_t noc_view_transmit(const struct noc_view *v, uint32_t packet, uint32_t run)
{
	return v->runs->transmit_cycle[(size_t)packet * v->runs->stride + run];
}
static inline uint64_t noc_view_receive(const struct noc_view *v, uint32_t packet, uint32_t run)
{
	return v->runs->receive_cycle[(size_t)packet * v->runs->stride + run];
}

static inline bool noc_view_filled(const struct noc_view *v, uint32_t packet, uint32_t run)
{
	return v->runs->filled && v->runs->filled[(size_t)packet * v->runs->stride + run];
}

/* Transmit number t of the node. After it, keep[] and certainty[]
 * say which candidates stay. */
enum base_status noc_view_gate(
	struct noc_view *v, uint32_t t, struct noc_gate *ret, struct base_err *err) BASE_MUST_CHECK;
void noc_view_fini(struct noc_view *v);

/* Estimates how much slacks of one dependency differ between runs. */
uint32_t noc_view_spread(struct noc_view *v, uint32_t t, struct base_err *err);

#endif

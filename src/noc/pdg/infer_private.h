/* SPDX-License-Identifier: Apache-2.0 */
/* infer_private.h - what infer.c (tasks, the result), infer_prune.c (one set of candidates) and
 * infer_transmit.c (one transmit) share. */
#ifndef LONGPOLE_NOC_INFER_PRIVATE_H
#define LONGPOLE_NOC_INFER_PRIVATE_H

#include "noc/pdg/infer.h"

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
	bool answers;          /* they depend on a packet from the node that they go to */
	uint64_t delay_cycles; /* the middle of their delays */
};
enum { NOC_LEARN_RUNS = 3 /* usable runs that decide alone */ };

/* Which types of messages wait for which, and how long; learned from transmits with many usable
 * runs. */
enum {
	NOC_TYPES = 256,
	NOC_SAME_ADDRESS = 1,
	NOC_ANSWER = 2 /* to its sender */,
	NOC_RELATIONS = 4
};
struct noc_pair {
	uint32_t nr;
	uint32_t votes; /* that delay_cycles is ahead of all others together (Boyer and Moore 1991):
			   if more than half are equal, it is that */
	uint64_t delay_cycles;
};
struct noc_semantics {
	uint32_t seen[NOC_TYPES]; /* transmits of that type */
	struct noc_pair pair[NOC_TYPES][NOC_TYPES][NOC_RELATIONS];
};

/* One thread's view of one node. */
struct noc_view {
	const struct noc_pdg *packets;
	const struct noc_runs *runs;
	const struct noc_index *index;
	const struct noc_infer_options *options;
	uint32_t tolerance_cycles;
	const uint32_t *transmit, *reception; /* of the node */
	uint32_t nr_transmits, nr_receptions;
	uint32_t near_reception; /* where the last search of a window ended */
	bool ordered;
	struct noc_learned learned;
	struct noc_semantics *semantics; /* read only; NULL: not learned */

	/* of the transmit that is looked at */
	uint32_t nr_candidates;
	uint32_t *candidate; /* packets; NOC_PDG_NONE: the previous transmit */
	int64_t *slack;      /* [candidate][run] */
	struct noc_infer_sort *sort;
	bool *keep;
	uint8_t *certainty;          /* of the kept ones, in the order of candidate[] */
	size_t capacity;             /* of these five, in candidates */
	bool usable[NOC_RUNS_MAX];   /* runs in which the transmit was seen, and not held up */
	uint32_t nr_usable, nr_seen; /* nr_seen: held up or not */
	uint32_t plausible_one_in; /* candidates are only what so many of its type wait for; 0: all
				    */
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

static inline struct noc_pair *noc_pair(
	struct noc_semantics *m, const struct noc_pdg *g, uint32_t transmit, uint32_t reception)
{
	unsigned relation = (g->address[transmit] == g->address[reception] ? NOC_SAME_ADDRESS : 0) |
			    (g->destination[transmit] == g->source[reception] ? NOC_ANSWER : 0);
	return &m->pair[g->type[transmit]][g->type[reception]][relation];
}

/* Is it that for so many that others may be expected to have it? */
static inline bool noc_pair_has_delay(const struct noc_pair *p)
{
	return p->nr && 2 * (uint64_t)p->votes >= p->nr;
}

/* Of the transmit so far ahead, and of the receptions there, times are fetched: nodes' packets are
 * far from each other in memory. */
enum { NOC_PREFETCH = 8 };
void noc_view_prefetch(const struct noc_view *v, uint32_t t);
/* Transmit number t of the node. After it, keep[] and certainty[]
 * say which candidates stay. */
enum base_status noc_view_gate(
	struct noc_view *v, uint32_t t, struct noc_gate *ret, struct base_err *err) BASE_MUST_CHECK;
void noc_view_fini(struct noc_view *v);

/* infer_race.c: of the candidates at hand. The delay and set (keep[]) that the base run and most
 * others agree with; the one reception that other transmits of this type wait for, so long as here
 * in the base run; the latest one in the base run. false: there is none. */
bool noc_view_explain_most(struct noc_view *v, uint32_t transmit, int64_t *ret_delay);
bool noc_view_explain_usual(struct noc_view *v, uint32_t transmit, int64_t *ret_delay);
bool noc_view_explain_latest(struct noc_view *v, uint32_t transmit, int64_t *ret_delay);

/* Estimates how much slacks of one dependency differ between runs. */
uint32_t noc_view_spread(struct noc_view *v, uint32_t t, struct base_err *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer.h - dependencies from the times of several runs of the same packets.
 *
 * NOC_LITERAL is PDG_GEN (seed 002, section 4): candidates of a transmit are the receptions of its
 * node in a window of the base run (step 1); those that come after it in some run are dropped (step
 * 2); then Properties 1 and 2 are applied until nothing changes (step 3). With slack(j, r) =
 * transmit
 * - arrival of j in run r, the fixed point is: D(S) = max over runs of the least slack in S
 * (Property 2), every j of S has least slack over runs >= D(S) (Property 1). D(S) only grows while
 * S shrinks, so the order of removal does not matter: with candidates sorted by their least slack,
 * the answer is the first suffix that holds. Without any candidate left the transmit depends on the
 * node's previous one.
 *
 * NOC_ROBUST adds what the text leaves out, each part with a switch of its own so that it can be
 * measured alone (struct noc_infer_options):
 *
 * ignore_blocked: a run in which an ordered node's transmit came one cycle after the previous one
 * says nothing about its delay.
 *
 * tolerance: slacks that differ by no more are equal, for delays that vary from run to run; 0
 * exact; NOC_TOLERANCE_AUTO tests: the range of m + 1 slacks that noise alone exceeds once in 200
 * times, as estimated from the runs (infer.c, noise_range()).
 *
 * adaptive: the previous transmit alone, then windows of k = 1, 2, 3, 4, 6, 8, ... until a set
 * explains every run: in each its last arrival is D before the transmit.
 *
 * grade: a dependency is *confirmed* when in some run it alone was the last arrival, else
 * *consistent*.
 *
 * reduce: of those the ones that no run needs are left out, among them all that the order of the
 * node's transmits implies.
 *
 * learn: a transmit that was held up in nearly all runs depends on what its node's others do, where
 * four of five of those agree: on a packet from the node that it goes to (an answer). And where
 * messages have types and addresses, what a type waits for, and how long, is learned from the
 * transmits with many usable runs. Then only that is tried; and of a transmit that no set explains
 * in all runs, since programs race, one is taken that is as usual, or explains most, or came last
 * (infer_race.c), and marked unexplained.
 */
#ifndef LONGPOLE_NOC_INFER_H
#define LONGPOLE_NOC_INFER_H

#include "noc/pdg/replay_ideal.h"
#include "noc/pdg/pdg.h"

#define NOC_TOLERANCE_AUTO UINT32_MAX
enum { NOC_WINDOW_PREVIOUS_MAX = 4096, NOC_THREADS_MAX = 256 };

struct noc_infer_options {
	uint32_t window_previous;   /* k: receptions since the k-th previous transmit (dynamic) */
	uint32_t window_receptions; /* instead, when not 0: the last so many (static) */
	bool ignore_blocked, adaptive, grade, reduce, learn;
	uint32_t tolerance_cycles;
	uint32_t window_previous_max; /* adaptive: at most */
	uint32_t nr_threads;          /* 0: one a processor */
};
/* What their names say: every switch off, k=1; or all on, at most 64 previous transmits. */
void noc_infer_literal(struct noc_infer_options *o);
void noc_infer_robust(struct noc_infer_options *o);

struct noc_infer_result {
	uint64_t transmits, candidates, dependencies;
	uint64_t previous_only; /* transmits that depend on the previous one, or on the start, only
				 */
	uint64_t empty;         /* of them: because nothing was left */
	uint64_t unexplained;   /* adaptive: no set explains all runs */
	uint64_t blocked;       /* transmits x runs that were ignored */
	uint64_t certainty[NOC_CERTAINTIES];
	uint32_t tolerance_cycles; /* that was used */
	/* The graph replayed with the latencies of its own base run (noc_infer() only). 0 and the
	 * same end: it is that run. */
	struct noc_base_check {
		bool done;
		uint64_t moved;                     /* transmits at another cycle than in the run */
		uint64_t end_cycle, replayed_cycle; /* last reception */
	} base;
};
/* (replayed - end) / end; NAN: not checked, or no packet. */
double noc_base_error(const struct noc_base_check *b);

/* packets: who sends what to whom (only source, destination, ordered and which are copies are read,
 * and copied; types and addresses with has_addresses). Gives the graph with the base run's times.
 */
enum base_status noc_infer(const struct noc_pdg *packets, const struct noc_runs *runs,
	const struct noc_infer_options *o, struct noc_pdg **ret,
	struct noc_infer_result *ret_result, struct base_err *err) BASE_MUST_CHECK;

/* The kernel, for one transmit: slack[candidate * nr_runs + run], NOC_SLACK_UNKNOWN where the
 * candidate was not seen. Sets keep[] and *ret_delay; gives the number kept. usable NULL: all runs;
 * else a flag a run, which says whether Property 2 may use it. With tolerance: slacks may be that
 * much below D. *ret_explained: 0 when in some usable run the last arrival is not D (within
 * tolerance) before the transmit, else the number of runs in which it is. scratch: nr_candidates of
 * each. */
#define NOC_SLACK_UNKNOWN ((int64_t)1 << 62)
struct noc_infer_sort {
	int64_t least;
	uint32_t candidate;
};
uint32_t noc_infer_prune(const int64_t *slack, uint32_t nr_candidates, uint32_t nr_runs,
	const bool *usable, uint32_t tolerance_cycles, struct noc_infer_sort *scratch, bool *keep,
	int64_t *ret_delay, uint32_t *ret_explained);

/* ---- compare with what is known -------------------------------------------------------------- */

struct noc_match_counts {
	uint64_t reference; /* dependencies in the reference graph */
	uint64_t found, missed;
	uint64_t implied; /* of the found: by the order of transmits, not as a dependency */
	uint64_t quasi;   /* in the inferred graph only */
	uint64_t delays_right, exact_packets, packets; /* copies of multicasts not counted */
};
void noc_infer_compare(const struct noc_pdg *reference, const struct noc_pdg *inferred,
	const struct noc_index *x, struct noc_match_counts *ret);

#endif

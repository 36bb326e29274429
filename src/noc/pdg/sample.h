/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - the runs from which dependencies are inferred: the base run and m skewed ones (seed
 * 002, section 4). What is slow in a skewed run is a*design*:
 *
 * nodes: the seed's; nodes are partitioned into m sets so that those that talk most are in
 * different sets; everything that a set sends is slow in one run.
 *
 * links: each (source, destination) is slow in one run, chosen by hash.
 *
 * packets: each packet is slow in one run, chosen by hash.
 *
 * adaptive: after each run the dependencies are inferred from the runs so far. Receptions of one
 * window that are still candidates are kept at their receiver until after the confirmed ones, one
 * by one and at least 20 cycles apart: so that the next run either shows one of them to be the last
 * that the transmit waits for, or to be none, also with delays that vary. Each packet is slow by a
 * few cycles of its own, too, which shows dependencies from outside the window. All that stays near
 * the base run: what is far from it hides more than it shows, since an ordered node's transmits
 * then wait for each other. Needs a simulator that can keep a packet back until another has come.
 *
 * The seed does not say how slow; here, but for adaptive (up to 10 cycles, and 16 tolerances): 4
 * times the 99th percentile of the time between the transmit before last and a transmit, at least
 * 1000 cycles, unless given.
 */
#ifndef LONGPOLE_NOC_SAMPLE_H
#define LONGPOLE_NOC_SAMPLE_H

#include "noc/pdg/replay_ideal.h"
#include "noc/pdg/infer.h"

enum noc_design { NOC_NODES, NOC_LINKS, NOC_PACKETS, NOC_ADAPTIVE, NOC_DESIGNS };
const char *noc_design_name(enum noc_design d);

struct noc_sample_options {
	enum noc_design design;
	uint32_t nr_skewed;    /* m: 1 to NOC_RUNS_MAX - 1 */
	uint32_t slow_cycles;  /* 0: see above */
	uint32_t noise_cycles; /* see struct noc_plan */
	uint64_t seed;
	uint32_t nr_threads; /* of the inference in between; 0: one a processor */
};

/* Replays the graph m + 1 times. *ret_runs: noc_runs_fini() it. */
enum base_status noc_sample(const struct noc_pdg *g, const struct noc_sample_options *o,
	struct noc_runs *ret_runs, struct base_err *err) BASE_MUST_CHECK;

/* The partition heuristic: set[node] of nr_sets, from the packets' sources and destinations. Pairs
 * in order of decreasing traffic; each node goes into the set with which it has least traffic, of
 * at most ceil(nodes / sets); then one pass of swaps that lessen the traffic inside sets (Kernighan
 * and Lin). */
enum base_status noc_partition(const struct noc_pdg *g, uint32_t nr_sets, uint32_t *set,
	struct base_err *err) BASE_MUST_CHECK;

#endif

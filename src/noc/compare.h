/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - how well a graph, or a mere trace, predicts what the reference does on a network
 * (seed 002, figures 4 and 5): execution time, mean packet latency, and where the difference is.
 */
#ifndef LONGPOLE_NOC_COMPARE_H
#define LONGPOLE_NOC_COMPARE_H

#include "noc/replay.h"

enum { NOC_SLICES = 10 };

/* Of a replay against the reference's. Errors are relative: 0.01 is one per cent, with sign; NAN:
 * of no packet. */
struct noc_error {
	double execution, latency;
	double worst_node_latency;  /* largest |error| of one source's mean latency */
	double worst_slice_packets; /* largest |error| of how many packets have come by 10 %, 20 %,
				       ... of the reference's execution time, in packets of all */
};
enum base_status noc_compare(const struct noc_pdg *g, const struct noc_replay_result *reference,
	const struct noc_replay_result *other, struct noc_error *ret,
	struct base_err *err) BASE_MUST_CHECK;

/* Networks that a number of nodes can have, as settings for noc_config_set(): "mesh", "torus",
 * "ring", "fattree" (when the nodes are a power), "ideal". */
struct noc_standard {
	const char *name;
	char setting[3][32]; /* "" ends */
};
enum { NOC_STANDARDS_MAX = 5 };
size_t noc_standards(uint32_t nr_nodes, struct noc_standard *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - a graph's packets through a simulated network.
 *
 * NOC_REPLAY_GRAPH: a packet is sent when its gate fires (pdg.h). NOC_REPLAY_STRIPPED: at the time
 * stamp that it has in the graph, whatever has come (seed 002: "stripped").
 *
 * In a network of routers the first cycle in which a reception can lead to a transmit is the one
 * after it: a delay of 0 counts as 1. A graph that was recorded on topology=ideal and is replayed
 * there gives its own times exactly.
 */
#ifndef LONGPOLE_NOC_REPLAY_H
#define LONGPOLE_NOC_REPLAY_H

#include "noc/network/network.h"
#include "noc/pdg/pdg.h"

enum noc_replay_mode { NOC_REPLAY_GRAPH, NOC_REPLAY_STRIPPED };

struct noc_replay_result {
	uint64_t execution_cycles;        /* last reception */
	uint64_t packets, latency_cycles; /* sum over packets: from transmit, waiting at the source
					     included, to reception */
	uint64_t network_latency_cycles;  /* sum: since the head left the source's queue */
	uint64_t hops;
	uint32_t network_nodes;
	uint64_t *transmit_cycle, *receive_cycle; /* by packet */
};
/* The network has the graph's nodes or more, else ERR_USAGE. The result's arrays:
 * noc_replay_result_fini(). progress: NULL, or called now and then with the packets that have
 * arrived. */
enum base_status noc_replay(const struct noc_pdg *g, const struct noc_config *config,
	enum noc_replay_mode mode, void (*progress)(void *ctx, uint64_t done), void *ctx,
	struct noc_replay_result *ret, struct base_err *err) BASE_MUST_CHECK;
void noc_replay_result_fini(struct noc_replay_result *r);

/* NAN: no packet. */
double noc_replay_mean_latency(const struct noc_replay_result *r);

#endif

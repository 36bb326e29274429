/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - what the time of a graph's recorded run went into: the chain of packets, each of which
 * waited for the one before, that ends with the last reception. It is found backward: from a
 * reception to its transmit, from a transmit to the last of its gate's inputs (pdg.h). Every cycle
 * from 0 to the last reception is in one of the parts.
 */
#ifndef LONGPOLE_NOC_PATH_H
#define LONGPOLE_NOC_PATH_H

#include "noc/pdg/pdg.h"

enum noc_path_part {
	NOC_PATH_NETWORK, /* packets under way, their sources' queues included */
	NOC_PATH_NODE,    /* delays D of gates */
	NOC_PATH_TURN,    /* ready, but its node sends in order and sent the one before */
	NOC_PATH_STAMP,   /* ready, but not before its time stamp (NOC_PDG_NOT_BEFORE) */
	NOC_PATH_REST,    /* nothing in the graph says why it was sent that late */
	NOC_PATH_PARTS
};

struct noc_path {
	uint64_t execution_cycles; /* last reception: the sum of part_cycles[] */
	uint64_t part_cycles[NOC_PATH_PARTS];
	uint64_t *node_cycles; /* by node: all parts but the network's */
	uint32_t nr_packets;   /* whose way is on the path */
	uint32_t nr_late; /* of its transmits' inputs: that came after it in this run, and so were
			     passed over */
};

/* The graph has_graph. noc_path_fini(). */
enum base_status noc_path_find(
	const struct noc_pdg *g, struct noc_path *ret, struct base_err *err) BASE_MUST_CHECK;
void noc_path_fini(struct noc_path *p);

/* struct noc_load - what a recorded run's packets were, whatever waited for what. */
struct noc_load {
	uint64_t packets, flits, execution_cycles; /* copies of multicasts count as received */
	uint64_t *sent_flits, *received_flits;     /* by node */
	uint64_t latency_cycles, latency_max_cycles;
	uint64_t excess_cycles; /* sum over packets: beyond the shortest latency of the same nodes
				   and size */
	uint64_t *excess_at_cycles; /* by receiver */
};
enum base_status noc_load_count(
	const struct noc_pdg *g, struct noc_load *ret, struct base_err *err) BASE_MUST_CHECK;
void noc_load_fini(struct noc_load *l);

#endif

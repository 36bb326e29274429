/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traffic.h - synthetic traffic: who sends when, how much, to whom.
 *
 * Every node has random numbers of its own, so a configuration's packets are the same in every
 * network of as many nodes, whatever the network does. Patterns are those of Dally and Towles
 * (2004), section 3.2; neighbour and tornado use the places of a cube's routers (of a fat tree: the
 * digits of the node's number), others the node's number. NED: A.-M. Rahmani et al., VLSI Design
 * 2009: the probability of a destination falls exponentially with its distance.
 */
#ifndef LONGPOLE_NOC_TRAFFIC_H
#define LONGPOLE_NOC_TRAFFIC_H

#include "noc/network/network.h"

struct noc_traffic;
enum { NOC_HOTSPOTS_MAX = 64 };

/* For the network `n`, whose source it may become; `n` outlives it. BASE_ERR_USAGE: the pattern
 * does not go with the number of nodes, or the load is out of reach. */
enum base_status noc_traffic_open(struct noc_traffic **ret, const struct noc_network *n,
	const struct noc_config *config, struct base_err *err) BASE_MUST_CHECK;
void noc_traffic_close(struct noc_traffic *t);

/* For noc_network_set_source(): packets of class 0. Ids count from 0 on, node by node: id = nth *
 * nodes + node. */
struct noc_source noc_traffic_source(struct noc_traffic *t);
/* Nodes that may yet make a packet with a creation cycle before `cycle`. */
uint32_t noc_traffic_behind(const struct noc_traffic *t, uint64_t cycle);
/* Packets that were made from `begin` to before `end` are counted: how many were handed to the
 * network so far, and the sum of their creation cycles. */
void noc_traffic_window(struct noc_traffic *t, uint64_t begin, uint64_t end);
void noc_traffic_made(const struct noc_traffic *t, uint64_t *ret_nr, double *ret_sum_cycles);
/* Mean size of a packet. */
double noc_traffic_mean_flits(const struct noc_config *config);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - one simulation of a network under synthetic traffic: warm up, measure, drain; and the
 * search for saturation.
 *
 * Measured are all packets made in measure_cycles after warmup_cycles; the simulation goes on, with
 * traffic, until the last of them has arrived. A network counts as saturated when the mean latency
 * of those packets, the ages of the ones under way included, exceeds latency_limit_cycles: then
 * latencies say nothing and accepted flits are the answer. Intervals are 95 % intervals of batch
 * means: measure_cycles is cut into `batches` parts, whose means are taken as independent.
 */
#ifndef LONGPOLE_NOC_SIM_H
#define LONGPOLE_NOC_SIM_H

#include "base/histogram.h"
#include "noc/network/network.h"

enum { NOC_CLASSES_MAX = 8 };

struct noc_mean {
	double mean; /* NAN: of nothing */
	double half; /* half the width of the 95 % interval; < 0: unknown */
};
struct noc_result {
	struct noc_config config; /* what was simulated: routing resolved */
	uint32_t nodes, routers;
	bool saturated;
	uint64_t cycles, packets;       /* simulated; measured */
	struct noc_mean latency_cycles; /* from creation to arrival of the tail */
	struct noc_mean network_cycles; /* from leaving the queue */
	struct noc_mean class_cycles[NOC_CLASSES_MAX];
	double hops;                          /* mean; NAN: no packet was measured */
	double offered_flits, accepted_flits; /* a node a cycle, while measured; replies included */
	double least_accepted_flits;          /* of the worst node */
	struct base_histogram latencies;      /* in cycles */
	struct noc_link *link;                /* between routers; flits while measured */
	size_t nr_links;
	double link_busy_mean, link_busy_most; /* of links between routers: share of the cycles */
	uint32_t busiest_from, busiest_to;
	struct noc_counts counts; /* while measured */
	double energy_pj_flit;    /* a delivered flit; see energy.def; NAN: none was */
	double zero_load_cycles;  /* of the packets measured; < 0: unknown (valiant) */
};

/* Called now and then with simulated cycles and a guess of all; false ends the simulation with
 * BASE_END. */
typedef bool noc_progress(void *ctx, uint64_t done, uint64_t all);

/* BASE_OK also when saturated: the result says so. A deadlock is BASE_ERR_USAGE. noc_result_fini()
 * afterwards in any case. */
enum base_status noc_simulate(const struct noc_config *c, struct noc_result *ret,
	noc_progress *progress, void *ctx, struct base_err *err) BASE_MUST_CHECK;
void noc_result_fini(struct noc_result *r);
/* Share of the measured cycles, and of its lanes, in which a flit was on link i. */
double noc_link_busy(const struct noc_result *r, size_t i);

struct noc_saturation {
	double zero_load_cycles; /* mean latency at a load of 0.005 */
	double load; /* the largest, in steps of 0.01, with a mean latency of at most three times
			that */
	double latency_cycles;                       /* there */
	double accepted_flits, least_accepted_flits; /* when each node offers what its link carries,
							or a packet a cycle, when smaller */
	unsigned simulations;
};
/* ERR_USAGE where no packet was measured: a search needs latencies. */
enum base_status noc_saturation(const struct noc_config *c, struct noc_saturation *ret,
	noc_progress *progress, void *ctx, struct base_err *err) BASE_MUST_CHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - one simulated on-chip network: topology, routing, routers and its clock.
 *
 * Cycle accurate at the flit: input-buffered routers with virtual channels, credits and wormhole
 * switching. Timing is that of BookSim 2's `iq` router (Jiang et al., ISPASS 2013), which a test
 * compares: a flit that reaches a router in cycle t with the default pipeline is routed in t, gets
 * a virtual channel in t+1 and the crossbar in t+2, crosses it in t+3 while it leaves, and is on
 * the link for link_cycles + 1 cycles. So the latency of a packet of F flits over H routers without
 * contention is 2 (injection) + H * (routing + vc_alloc + sw_alloc - 1 + crossbar; vc_alloc is 0
 * when speculative) + sum of (link_cycles + 1) of the H - 1 links + 2 (ejection) + F - 1. Links
 * narrower than a flit and slower allocation spread the flits; noc_network_zero_load_cycles()
 * computes that, too.
 *
 * A link of w flits a cycle is w lanes: in each cycle the output port that sends on it, and the
 * input port that it feeds, may take part in w matches of the crossbar, found in w rounds of
 * switch allocation; flits of one packet may follow each other in one cycle. Where all links are of
 * width w, the last term is ceil(F / w) - 1. It is a link, not a larger flit: credits and buffers
 * count flits, so buffers have to hold w times as many to keep it busy.
 *
 * Work is done only where something can happen: an idle stretch costs nothing, however long it is.
 *
 * topology=ideal is the seed's speed-independent network (Nitta et al., NOCS 2011, section 4): a
 * packet of any size arrives ideal_cycles after it is sent; per-pair and per-packet additions make
 * the skewed runs.
 *
 * Memory: about 200 bytes a virtual channel and port, 64 bytes a packet that is queued or under
 * way. Nothing is allocated for a flit. One network is used by one thread at a time; networks share
 * nothing.
 */
#ifndef LONGPOLE_NOC_NETWORK_H
#define LONGPOLE_NOC_NETWORK_H

#include "noc/network/config.h"

struct noc_network;

enum {
	NOC_NODES_MAX = 65536,
	NOC_PORTS_MAX = 64, /* of a router, its nodes included */
	NOC_PACKET_FLITS_MAX = 65535,
	NOC_LATENCY_MAX = 60000,  /* cycles, of topology=ideal: latency and additions together */
	NOC_PACKETS_MAX = 1 << 28 /* queued and under way together */
};

struct noc_packet {
	uint64_t id; /* the caller's; comes back in the arrival; need not be unique */
	uint32_t source, destination;
	uint32_t size_flits;   /* 1..NOC_PACKET_FLITS_MAX; no meaning with topology=ideal */
	uint32_t class;        /* < config.classes */
	uint32_t extra_cycles; /* topology=ideal only: added to this packet's latency */
};

struct noc_arrival {
	uint64_t id;
	uint64_t created_cycle; /* joined the source's queue: the `now` of noc_network_send() */
	uint64_t sent_cycle;    /* its head flit left the source's queue; >= created_cycle */
	uint64_t arrival_cycle; /* its tail flit was ejected: packet latency = this - created_cycle
				 */
	uint32_t source, destination;
	uint32_t size_flits, class;
	uint32_t hops; /* routers passed; 0 with topology=ideal */
};

/* The configuration is copied. BASE_ERR_USAGE: parts that do not go together, or a graph's file is
 * wrong; BASE_ERR_LIMIT: too large. */
enum base_status noc_network_open(struct noc_network **ret, const struct noc_config *config,
	struct base_err *err) BASE_MUST_CHECK;
void noc_network_close(struct noc_network *n); /* NULL-safe */

uint32_t noc_network_nodes(const struct noc_network *n);
uint64_t noc_network_now_cycle(const struct noc_network *n); /* 0 at first */
/* What routing = auto became. */
enum noc_routing noc_network_routing(const struct noc_network *n);
/* Packets queued or under way. */
uint64_t noc_network_pending(const struct noc_network *n);

/*
 * The packet joins its source's queue (one queue a node and class, first come first served) at now;
 * its first flit may leave in this very cycle. BASE_ERR_USAGE: a field is out of range.
 */
enum base_status noc_network_send(
	struct noc_network *n, const struct noc_packet *p, struct base_err *err) BASE_MUST_CHECK;
/*
 * One transmit with several receivers: an arrival, with the same id, for each. In topology=ideal
 * all leave at once. In others the source's interface sends one copy after the other, in the order
 * given (no router replicates flits).
 */
enum base_status noc_network_send_multicast(struct noc_network *n, const struct noc_packet *p,
	const uint32_t *destination, size_t nr, struct base_err *err) BASE_MUST_CHECK;

/*
 * Simulates to the end of the first cycle in which packets arrive, or until now = until_cycle,
 * whichever is first. *ret has the arrivals of that cycle (all have the same arrival_cycle; in
 * topology=ideal in the order in which they were sent); it is valid until the next call. When it
 * returns with arrivals, now = arrival_cycle + 1 in a router network: what is sent then may leave
 * in the cycle after the arrival. (In topology=ideal now = arrival_cycle: a delay of zero is
 * possible there.) *ret_nr == 0 means now = until_cycle. Cycles in which nothing can happen are
 * skipped. BASE_ERR_USAGE: deadlock: packets are under way and nothing can ever move (the error
 * says how many).
 */
enum base_status noc_network_run(struct noc_network *n, uint64_t until_cycle,
	const struct noc_arrival **ret, size_t *ret_nr, struct base_err *err) BASE_MUST_CHECK;

/* topology=ideal: latency of all packets from source to destination, instead of ideal_cycles.
 * UINT32_MAX as one of them means every node. 1..NOC_LATENCY_MAX, else BASE_ERR_USAGE. */
enum base_status noc_network_set_latency(struct noc_network *n, uint32_t source,
	uint32_t destination, uint32_t cycles, struct base_err *err) BASE_MUST_CHECK;

/*
 * Where packets come from that nobody has sent: asked when a node's queue of `class` is empty, so
 * that no queue of endless length exists beyond saturation. next() fills the packet and the cycle
 * in which it was made, which may lie in the past (it is the arrival's created_cycle), or returns
 * false with the cycle in which to ask again (UINT64_MAX: never). A packet made in the future is a
 * "false" with its cycle. `source` and `class` are set already.
 */
struct noc_source {
	void *ctx;
	bool (*next)(void *ctx, uint32_t node, uint32_t class, uint64_t now_cycle,
		struct noc_packet *packet, uint64_t *ret_cycle);
};
/* Asks at now for every node and class in class_mask; NULL: no source any more. */
enum base_status noc_network_set_source(struct noc_network *n, const struct noc_source *source,
	uint32_t class_mask, struct base_err *err) BASE_MUST_CHECK;

/* Latency of a packet that meets no other: the formula above, over the routers of its way.
 * BASE_ERR_USAGE where the way is chosen by chance and its length with it (valiant). */
enum base_status noc_network_zero_load_cycles(const struct noc_network *n, uint32_t source,
	uint32_t destination, uint32_t size_flits, uint64_t *ret_cycles,
	struct base_err *err) BASE_MUST_CHECK;
/* Routers on a minimal way from node to node (1: the same router); 0 in topology=ideal. */
uint32_t noc_network_distance(const struct noc_network *n, uint32_t source, uint32_t destination);

/* ---- what was counted ------------------------------------------------------------------------ */

struct noc_link {
	uint32_t from_router, from_port;
	uint32_t to_router, to_port; /* to_router UINT32_MAX: ejection, to_port is the node */
	uint32_t latency_cycles, flit_cycles, flits_cycle; /* one of the last two is 1 */
	uint64_t flits; /* sent since the start or noc_network_count_reset() */
};
uint32_t noc_network_routers(const struct noc_network *n);
size_t noc_network_links(const struct noc_network *n); /* ejection links included */
/* Fills noc_network_links() entries, by router and port. */
void noc_network_each_link(const struct noc_network *n, struct noc_link *ret);
/* Flits that were written into buffers, crossed crossbars, crossed links between routers, left
 * sources, were ejected. */
struct noc_counts {
	uint64_t buffer_writes, crossbar, link, injected, ejected;
};
void noc_network_counts(const struct noc_network *n, struct noc_counts *ret);
void noc_network_count_reset(struct noc_network *n);
/*
 * The laws, checked over the whole state: no flit was lost or doubled (injected = ejected +
 * buffered + on links), and for every virtual channel credits + flits buffered downstream + flits
 * and credits on the way = buffer_flits. BASE_ERR_CORRUPT with the place otherwise. For tests:
 * takes time in proportion to the network.
 */
enum base_status noc_network_check(
	const struct noc_network *n, struct base_err *err) BASE_MUST_CHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* network_private.h - the parts of struct noc_network; for the files of the simulator only. */
#ifndef LONGPOLE_NOC_NETWORK_PRIVATE_H
#define LONGPOLE_NOC_NETWORK_PRIVATE_H

#include "noc/network/network.h"
#include "noc/network/random.h"
#include "noc/network/topology.h"

#define NOC_NONE UINT32_MAX

/* ---- packets --------------------------------------------------------------------------------- */

/* Queued or under way. Flits are numbers of packets with two flags. */
struct noc_live {
	/* what routers touch, in 16 bytes that no border of cache lines divides */
	uint32_t destination, middle; /* middle: of valiant, the router to go to first */
	uint16_t hops;
	uint8_t class, phase; /* phase: what a routing remembers from hop to hop */
	uint32_t left;        /* flits that have not left the source */
	uint64_t id, created, sent;
	uint32_t source, size, next, unused[3]; /* next: in a queue, or in the list of the free */
};
_Static_assert(sizeof(struct noc_live) == 64, "a line");
struct noc_pool {
	struct noc_live *packet;
	size_t capacity;
	uint32_t free, nr_used, nr_touched;
};
enum base_status noc_pool_take(struct noc_pool *p, uint32_t *ret) BASE_MUST_CHECK;
static inline void noc_pool_give(struct noc_pool *p, uint32_t i)
{
	p->packet[i].next = p->free;
	p->free = i;
	p->nr_used--;
}

struct noc_arrivals {
	struct noc_arrival *list;
	size_t nr, capacity;
};
/* The caller has made room. */
void noc_arrive(struct noc_arrivals *a, const struct noc_live *p, uint64_t cycle);

/* ---- topology=ideal -------------------------------------------------------------------------- */

enum {
	NOC_IDEAL_SLOTS = 1 << 16, /* > NOC_LATENCY_MAX */
	NOC_IDEAL_WORDS = NOC_IDEAL_SLOTS / 64,
	NOC_IDEAL_MATRIX_NODES_MAX = 8192,
};
struct noc_ideal {
	uint32_t head[NOC_IDEAL_SLOTS], tail[NOC_IDEAL_SLOTS]; /* by arrival cycle */
	uint64_t used[NOC_IDEAL_WORDS], used_words[NOC_IDEAL_WORDS / 64];
	uint32_t nodes, latency;
	uint16_t *latency_of; /* [source][destination]; NULL: all the same */
};
struct noc_network;
enum base_status noc_ideal_open(struct noc_network *n, struct base_err *err) BASE_MUST_CHECK;
void noc_ideal_close(struct noc_ideal *i);
enum base_status noc_ideal_send(struct noc_network *n, uint32_t packet, uint32_t extra,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status noc_ideal_run(
	struct noc_network *n, uint64_t until, struct base_err *err) BASE_MUST_CHECK;

/* ---- routers --------------------------------------------------------------------------------- */

/* Hot arrays have no elements of one byte: a store to a char may change anything, says C, and then
 * everything is loaded again. */

/* Numbers: an input VC is router * ports * vcs + port * vcs + vc, an output VC likewise; a node's
 * VCs of its injection link follow those of the routers: routers * ports * vcs + node * vcs + vc.
 */

/*
 * What a hop touches lies together: an input VC with its routes and flits (64 bytes with one route
 * and 8 flits), a port in both directions (64), a router's sets (64 with up to 64 input VCs).
 */
enum noc_vc_state { NOC_VC_IDLE, NOC_VC_ROUTING, NOC_VC_WAITING, NOC_VC_ACTIVE };
struct noc_input_vc {
	uint32_t out;          /* output VC; while ACTIVE */
	uint16_t first, count; /* ring of flits */
	uint16_t state, nr_routes;
	uint16_t out_port, out_vc;
	uint16_t ready;  /* low bits of the cycle in which what is under way is done */
	uint16_t result; /* of an allocation that is under way (delays above 1) */
	uint16_t vc_accept_next, unused; /* round robin: next output VC of the router */
	/* follow: route_max routes, then a ring of `buffer` flits */
};
struct noc_output_vc {
	uint16_t credit;
	uint16_t owner;         /* input VC of the same router; UINT16_MAX: nobody */
	uint16_t vc_grant_next; /* round robin: next input VC of the router */
	uint16_t unused;
};
struct noc_route {
	uint16_t port, vc_first, vc_last, priority;
};
/* A flit is its packet's number times 8 and flags: buffers are the largest part of what a cycle
 * touches. */
enum { NOC_FLIT_HEAD = 1, NOC_FLIT_TAIL = 2, NOC_FLIT_EJECT = 4, NOC_FLIT_SHIFT = 3 };
_Static_assert((uint64_t)NOC_PACKETS_MAX << NOC_FLIT_SHIFT <= UINT32_MAX, "packets fit into flits");
/* A flit reaches a router's input VC; or (NOC_FLIT_EJECT) a node, then `vc` is the output VC that
 * gets the credit. */
struct noc_flit_event {
	uint32_t vc, router, flit;
};
/* router >= nr_routers: that of a node. */
struct noc_credit_event {
	uint32_t vc, router;
};
struct noc_slot {
	uint32_t nr_flits, nr_credits;
	struct noc_flit_event *flit;
	struct noc_credit_event *credit;
};
/* What an output port leads to: an input VC of a router, or a node. */
struct noc_output {
	uint32_t vc,
		router; /* first input VC there; of an ejection: own first output VC, own router */
	uint32_t delay; /* from the crossbar's grant to the arrival */
	uint16_t busy_cycles; /* 0: wider than a flit */
	uint16_t flits;       /* a cycle */
	uint16_t eject;       /* NOC_FLIT_EJECT or 0 */
};
/* Where credits of an input port go. */
struct noc_back {
	uint32_t vc, router, delay;
	uint32_t flits; /* that the link brings in a cycle, and the port may send */
};
struct noc_port_state {
	struct noc_output output;
	struct noc_back back;
	uint16_t sw_grant_next, sw_accept_next, sw_vc_next, unused[3];
	uint64_t free_vcs; /* of the output: bits of VCs that no packet has */
	uint64_t sent_flits;
};
_Static_assert(sizeof(struct noc_port_state) == 64, "a line");
/* A router's sets of input VCs, `words` each; after them a set of output ports at which some wait.
 */
enum { NOC_TO_ROUTE, NOC_TO_VC, NOC_TO_SW, NOC_PENDING, NOC_SETS, NOC_LINE_BYTES = 64 };
/* A node's queue of one class. */
struct noc_queue {
	uint32_t first, last;
	uint8_t vc, last_vc; /* UINT8_MAX: none yet */
};
enum { NOC_ASK_SLOTS = 1024, NOC_LINK_FLITS_MAX = 16 };

struct noc_network {
	struct noc_config config;
	struct noc_pool pool;
	struct noc_arrivals arrivals;
	struct noc_random random;
	uint64_t now;
	struct noc_ideal *ideal; /* NULL: the rest is in use */

	struct noc_topology topology;
	uint32_t nr_routers, nr_nodes, ports, vcs, classes;
	uint32_t router_vcs; /* ports * vcs */
	uint32_t words;      /* of a set of a router's input VCs */
	uint32_t rounds;     /* of switch allocation in a cycle: flits of the widest link */
	uint32_t route_max, buffer;
	uint32_t class_first[8], class_last[8];    /* virtual channels of each class */
	bool lookahead, speculative, narrow, slow; /* slow: allocation delays above 1 */
	bool plain;                                /* router_plain.c does what there is to do */
	bool fixed;         /* a packet's way depends on neither chance nor time */
	const uint8_t *way; /* of dimension order: the topology's, or NULL */
	unsigned (*route)(struct noc_network *n, uint32_t router, uint32_t in_port, uint32_t in_vc,
		struct noc_live *p, struct noc_route *ret);

	/* one block, in lines; noc_input() and noc_sets() find the places */
	void *lines;
	bool far;           /* they are more than the nearest caches hold */
	uint32_t *to_visit; /* room for all routers, if so */
	unsigned char *input, *sets;
	size_t input_bytes, routes_bytes, sets_bytes;
	struct noc_port_state *port;  /* of each port of each router */
	struct noc_output_vc *out_vc; /* nodes' follow those of the routers */

	uint64_t *waiting; /* of an output port: input VCs that wait for a VC of it; `words` each */
	uint64_t *busy_until;                  /* of an output port */
	uint64_t *router_active, *node_active; /* bits */
	struct noc_scratch *scratch;
	uint16_t *port_of; /* of an input VC of a router */

	/* of nodes */
	struct noc_queue *queue; /* [node][class] */
	uint8_t *last_class;
	uint32_t *inject_vc, *inject_delay;
	uint64_t *node_free_vcs; /* of its injection link */

	struct noc_slot *slot;
	uint32_t slot_mask;
	uint64_t nr_events;                  /* in all slots */
	struct noc_counts counts, forgotten; /* since the start; before the last reset */
	uint64_t buffered;                   /* flits in buffers */

	/* asking the source: calendar of (node, class) */
	struct noc_source source;
	uint32_t source_classes; /* bits; 0: nobody is asked */
	uint32_t *ask_next, *ask_head;
	uint64_t *ask_cycle, ask_used[NOC_ASK_SLOTS / 64];
	uint64_t nr_asks;
};

static inline void noc_set_bit(uint64_t *set, uint32_t i)
{
	set[i >> 6] |= (uint64_t)1 << (i & 63);
}
static inline void noc_clear_bit(uint64_t *set, uint32_t i)
{
	set[i >> 6] &= ~((uint64_t)1 << (i & 63));
}
static inline bool noc_has_bit(const uint64_t *set, uint32_t i)
{
	return set[i >> 6] >> (i & 63) & 1;
}

static inline struct noc_input_vc *noc_input(const struct noc_network *n, uint32_t vc)
{
	return (struct noc_input_vc *)(void *)(n->input + vc * n->input_bytes);
}
static inline struct noc_route *noc_routes(struct noc_input_vc *in)
{
	return (struct noc_route *)(void *)(in + 1);
}
static inline uint32_t *noc_flits(const struct noc_network *n, struct noc_input_vc *in)
{
	return (uint32_t *)(void *)((unsigned char *)(in + 1) + n->routes_bytes);
}
static inline uint64_t *noc_sets(const struct noc_network *n, uint32_t router)
{
	return (uint64_t *)(void *)(n->sets + router * n->sets_bytes);
}
static inline uint64_t *noc_to_sw(const struct noc_network *n, uint32_t router)
{
	return noc_sets(n, router) + (size_t)NOC_TO_SW * n->words;
}

/* router.c: one cycle of a router; false: it has nothing to do until something arrives. */
bool noc_router_step(struct noc_network *n, uint32_t router);
/* Asks the memory for what noc_router_step() will need, a visit or two before; the nearer one uses
 * what the first has brought. */
void noc_router_fetch(const struct noc_network *n, uint32_t router);
void noc_router_fetch_near(const struct noc_network *n, uint32_t router);
/* The packet at the front of an idle input VC: routing begins, or is done already. */
void noc_router_begin(struct noc_network *n, uint32_t router, uint32_t vc_in_router);
struct noc_scratch *noc_scratch_new(const struct noc_network *n);

/* router_plain.c: the same for the routers that it applies to; all visits of a cycle; an arrival.
 */
bool noc_plain_applies(const struct noc_network *n);
bool noc_plain_step(struct noc_network *n, uint32_t router);
void noc_plain_cycle(struct noc_network *n);
void noc_plain_arrive(struct noc_network *n, const struct noc_flit_event *e);

/* routing.c */
enum base_status noc_routing_choose(struct noc_network *n, struct base_err *err) BASE_MUST_CHECK;

/* inject.c: queues of the nodes, and the sources that they ask */
void noc_inject(struct noc_network *n);
void noc_enqueue(struct noc_network *n, uint32_t packet);
enum base_status noc_ask_due(struct noc_network *n, struct base_err *err) BASE_MUST_CHECK;
uint64_t noc_ask_first(const struct noc_network *n); /* UINT64_MAX: never */

#endif

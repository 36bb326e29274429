/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pdg.h - packet dependency graphs (Nitta, Farrens, Macdonald, Akella: "Inferring Packet
 * Dependencies to Improve Trace Based Simulation of On-Chip Networks", NOCS 2011, section 4).
 *
 * A packet has a transmit event at its source and a receive event at its destination. The transmit
 * is a complex gate: when all of its inputs have happened, its intrinsic delay D passes, then it
 * fires. Inputs are receptions at the same node (dependencies) and, with NOC_PDG_PREVIOUS, the
 * node's previous transmit; a gate without any input fires at cycle D (start of the simulation). In
 * an ordered node a transmit never comes before, or in the cycle of, the previous one. So:
 *
 *     fire = max(inputs, 0) + D;   transmit = ordered ? max(fire, previous transmit + 1) : fire.
 *
 * Packets are numbered from 0 in the order of the base run (the one-cycle network on which the
 * graph was made or sampled), which is a topological order: a packet depends on lower numbers only.
 *
 * A transmit may have several receivers (multicast). Each has a number of its own, one after the
 * other in ascending order of receivers; the first is the transmit's, the others are *copies*
 * (NOC_PDG_COPY): same source, size, type and transmit cycle, no gate. So a number names one
 * receive event, and a packet that depends on a multicast depends on the number whose destination
 * is its own source.
 *
 * Times are cycles. Ownership: noc_pdg_free() frees all of it.
 */
#ifndef LONGPOLE_NOC_PDG_H
#define LONGPOLE_NOC_PDG_H

#include "base/base.h"

enum {
	NOC_PDG_NODES_MAX = 65535,
	NOC_PDG_ORIGIN_MAX = 1024, /* bytes of the text that says how it was made */
};
#define NOC_PDG_PACKETS_MAX ((uint64_t)UINT32_MAX - 1)
#define NOC_PDG_NONE        UINT32_MAX
#define NOC_PDG_CYCLE_MAX   ((uint64_t)1 << 60)

/* Bits of inputs[]. */
enum {
	NOC_PDG_PREVIOUS = 1,
	NOC_PDG_UNEXPLAINED = 2,
	NOC_PDG_NOT_BEFORE = 4, /* does not fire before its recorded transmit cycle (Netrace) */
	NOC_PDG_COPY = 8,       /* one more receiver of the packet before */
};

/* How sure a dependency is. The numbers are in files. */
enum noc_certainty {
	NOC_GIVEN,       /* by the maker of the graph */
	NOC_CONFIRMED,   /* some run had its transmit wait for it, and for nothing else */
	NOC_CONSISTENT,  /* no run speaks against it, none needs it */
	NOC_UNEXPLAINED, /* of a transmit that no set of receptions explains */
	NOC_CERTAINTIES
};

struct noc_pdg {
	uint32_t nr_nodes, nr_packets;
	size_t packets_capacity, dependencies_capacity; /* of the arrays below */
	/* by packet */
	uint32_t *source, *destination;
	uint32_t *size_flits;
	uint8_t *type;
	uint64_t *transmit_cycle, *receive_cycle; /* in the run that was recorded */
	uint64_t *delay_cycles;                   /* D; zero in a mere trace */
	uint8_t *inputs;
	uint64_t *first; /* nr_packets + 1: where its dependencies begin */
	uint64_t *address;
	uint8_t *units; /* of the sender << 4 | of the receiver, as Netrace numbers them */
	/* by dependency */
	uint32_t *dependency;
	uint8_t *certainty;
	/* by node */
	uint8_t *ordered;

	bool has_graph;     /* else a trace: times only */
	bool has_addresses; /* address, units, type mean something */
	uint32_t run;       /* 0: base */
	char origin[NOC_PDG_ORIGIN_MAX];
};

/* All nodes ordered. NULL: no memory. */
struct noc_pdg *noc_pdg_new(uint32_t nr_nodes);
struct noc_pdg *noc_pdg_free(struct noc_pdg *g);

struct noc_pdg_packet {
	uint32_t source, destination, size_flits;
	uint8_t type, inputs, units;
	uint64_t transmit_cycle, receive_cycle, delay_cycles, address;
};
/* Room for so many in all: faster, nothing else. */
enum base_status noc_pdg_reserve(
	struct noc_pdg *g, uint32_t nr_packets, struct base_err *err) BASE_MUST_CHECK;
/* What the arrays say of packet i. */
struct noc_pdg_packet noc_pdg_packet_at(const struct noc_pdg *g, uint32_t i);
/* Packet i becomes p; its dependencies stay. */
void noc_pdg_set(struct noc_pdg *g, uint32_t i, const struct noc_pdg_packet *p);
/* Appends a packet; its number is g->nr_packets before. ERR_LIMIT: too many. */
enum base_status noc_pdg_add(
	struct noc_pdg *g, const struct noc_pdg_packet *p, struct base_err *err) BASE_MUST_CHECK;
/* A dependency of the packet that was added last. */
enum base_status noc_pdg_add_dependency(
	struct noc_pdg *g, uint32_t on, enum noc_certainty c, struct base_err *err) BASE_MUST_CHECK;

static inline bool noc_pdg_is_copy(const struct noc_pdg *g, uint32_t i)
{
	return (g->inputs[i] & NOC_PDG_COPY) != 0;
}
/* The number after the last receiver of the transmit i. */
static inline uint32_t noc_pdg_receivers_end(const struct noc_pdg *g, uint32_t i)
{
	for (i++; i < g->nr_packets && noc_pdg_is_copy(g, i);)
		i++;
	return i;
}

uint32_t noc_pdg_nr_copies(const struct noc_pdg *g);

static inline uint64_t noc_pdg_nr_dependencies(const struct noc_pdg *g)
{
	return g->nr_packets ? g->first[g->nr_packets] : 0;
}

/* Packet i becomes packet number[i], of which dependencies speak already. ERR_CORRUPT: one is there
 * twice or not at all, or a promise is broken; g is then good for nothing but noc_pdg_free(). */
enum base_status noc_pdg_number(
	struct noc_pdg *g, const uint32_t *number, struct base_err *err) BASE_MUST_CHECK;

/* The packets without the graph, times included. NULL: no memory. */
struct noc_pdg *noc_pdg_copy(const struct noc_pdg *g);

/* ERR_CORRUPT when a promise above is broken: which packet, and why. */
enum base_status noc_pdg_check(const struct noc_pdg *g, struct base_err *err) BASE_MUST_CHECK;

/* struct noc_index - packets of each node, in order of number (transmits; copies are none) and in
 * order of reception in the base run (ties by number). */
struct noc_index {
	uint32_t *transmits, *receptions;           /* packets, node after node */
	uint32_t *first_transmit, *first_reception; /* nr_nodes + 1 */
	uint32_t *previous; /* by packet: transmit before it; NOC_PDG_NONE, also of copies */
};
/* receive_cycle: of the base run, nr_packets of them, `stride` apart. {0} first. */
enum base_status noc_index_init(struct noc_index *x, const struct noc_pdg *g,
	const uint64_t *receive_cycle, size_t stride, struct base_err *err) BASE_MUST_CHECK;
void noc_index_fini(struct noc_index *x);

/* ---- pdg_file.c: as a .lpt trace, a stream a node (records noc_*) ---------------------------- */

enum base_status noc_pdg_write(
	const struct noc_pdg *g, const char *path, struct base_err *err) BASE_MUST_CHECK;
/* ERR_NOTFOUND: a trace, but without packets. */
enum base_status noc_pdg_read(
	const char *path, struct noc_pdg **ret, struct base_err *err) BASE_MUST_CHECK;
/* From memory, which stays the caller's. */
enum base_status noc_pdg_read_memory(const void *bytes, size_t size_bytes, struct noc_pdg **ret,
	struct base_err *err) BASE_MUST_CHECK;

#endif

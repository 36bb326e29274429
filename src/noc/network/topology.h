/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.h - routers, ports, links and where nodes are. Built from a configuration; read-only
 * afterwards.
 *
 * One more: a row of noc_words.def, a function that fills the struct and a row of build[] in
 * topology.c.
 */
#ifndef LONGPOLE_NOC_TOPOLOGY_H
#define LONGPOLE_NOC_TOPOLOGY_H

#include "noc/network/config.h"

enum {
	NOC_DIMENSIONS_MAX = 16,
	NOC_ROUTERS_MAX = 65536,
	NOC_WAYS_MAX = 512 * 512,
	NOC_TABLE_ROUTERS_MAX = 4096, /* routers whose ways are in a table */
};

/* What an output port leads to. */
struct noc_port {
	uint32_t router, port; /* router UINT32_MAX: nothing; see node */
	uint32_t node;         /* UINT32_MAX: no node here */
	uint16_t latency;
	/* A flit keeps it busy for so many cycles, or so many flits cross in one: one is 1. */
	uint16_t flit_cycles, flits;
};

struct noc_topology {
	uint32_t nr_routers, nr_nodes;
	uint32_t ports;        /* the most that a router has */
	struct noc_port *port; /* [router][ports] */
	uint32_t *node_router; /* a node's router, and the port that it has there in both directions
				*/
	uint8_t *node_port;
	/* cubes: mesh, torus, cmesh, flatfly */
	uint32_t dimensions, radix[NOC_DIMENSIONS_MAX];
	uint16_t *place;    /* [router][dimensions] */
	bool wraps, direct; /* direct: flattened butterfly */
	uint32_t first_node_port, first_link_port;
	uint8_t *way; /* mesh, small: port of dimension order, [router][node]; else NULL */
	/* fat trees */
	uint32_t arity, levels, level_routers;
	/* graphs: the port of the next hop, [router][destination router]; UINT8_MAX: none */
	uint8_t *table;
};

enum base_status noc_topology_init(
	struct noc_topology *t, const struct noc_config *c, struct base_err *err) BASE_MUST_CHECK;
void noc_topology_fini(struct noc_topology *t);
/* Routers on a shortest way, both ends included. */
uint32_t noc_topology_distance(const struct noc_topology *t, uint32_t from_node, uint32_t to_node);

/* For builders. */
enum base_status noc_topology_alloc(struct noc_topology *t, uint64_t routers, uint64_t nodes,
	uint64_t ports, struct base_err *err) BASE_MUST_CHECK;
static inline struct noc_port *noc_topology_port(
	const struct noc_topology *t, uint32_t router, uint32_t port)
{
	return &t->port[(size_t)router * t->ports + port];
}
void noc_topology_link(struct noc_topology *t, uint32_t from, uint32_t from_port, uint32_t to,
	uint32_t to_port, uint64_t latency, uint64_t flit_cycles);
void noc_topology_node(struct noc_topology *t, uint32_t node, uint32_t router, uint32_t port);

enum base_status noc_topology_cube(
	struct noc_topology *t, const struct noc_config *c, struct base_err *err) BASE_MUST_CHECK;
enum base_status noc_topology_tree(
	struct noc_topology *t, const struct noc_config *c, struct base_err *err) BASE_MUST_CHECK;
enum base_status noc_topology_graph(
	struct noc_topology *t, const struct noc_config *c, struct base_err *err) BASE_MUST_CHECK;

/* The same of a text; c->graph is its name for messages. */
enum base_status noc_topology_graph_text(struct noc_topology *t, const struct noc_config *c,
	const char *text, struct base_err *err) BASE_MUST_CHECK;

#endif

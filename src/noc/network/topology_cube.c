/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology_cube.c - mesh, torus, concentrated mesh and flattened butterfly: routers at the points
 * of a grid.
 *
 * Ports of mesh, torus and cmesh: 2d leads up dimension d, 2d + 1 down it, and what comes from
 * above arrives at 2d; nodes follow. Of a flattened butterfly: nodes first; then for each dimension
 * a port for each place in it (the own one leads nowhere), at which arrives what comes from that
 * place.
 */
#include "noc/network/topology.h"

#include <stdlib.h>

static enum base_status parse_dims(
	struct noc_topology *t, const struct noc_config *c, struct base_err *err)
{
	if (!*c->dims) {
		t->dimensions = (uint32_t)c->n;
		for (uint32_t d = 0; d < t->dimensions; d++)
			t->radix[d] = (uint32_t)c->k;
		return BASE_OK;
	}
	for (const char *at = c->dims;; at++) {
		char *end;
		unsigned long radix = strtoul(at, &end, 10);
		if (end == at || !radix || radix > 4096 || t->dimensions == NOC_DIMENSIONS_MAX ||
			(*end && *end != 'x'))
			return base_fail(err, BASE_ERR_USAGE,
				"dims = %s: not at most %d numbers from 1 to 4096, as 8x8x4",
				c->dims, NOC_DIMENSIONS_MAX);
		t->radix[t->dimensions++] = (uint32_t)radix;
		at = end;
		if (!*at)
			return BASE_OK;
	}
}

static void set_place(struct noc_topology *t, uint32_t router)
{
	uint32_t rest = router;
	for (uint32_t d = 0; d < t->dimensions; d++) {
		t->place[(size_t)router * t->dimensions + d] = (uint16_t)(rest % t->radix[d]);
		rest /= t->radix[d];
	}
}

static void link_grid(struct noc_topology *t, const struct noc_config *c)
{
	uint64_t latency = c->link_cycles ? c->link_cycles : t->wraps ? 2 : 1;
	for (uint32_t r = 0; r < t->nr_routers; r++) {
		uint32_t stride = 1;
		for (uint32_t d = 0; d < t->dimensions; stride *= t->radix[d], d++) {
			uint32_t at = t->place[(size_t)r * t->dimensions + d], k = t->radix[d];
			if (k == 1)
				continue;
			uint32_t up = at + 1 < k ? r + stride : r - at * stride;
			uint32_t down = at ? r - stride : r + (k - 1) * stride;
			/* What goes up arrives at the port that leads down. */
			if (t->wraps || at + 1 < k)
				noc_topology_link(
					t, r, 2 * d, up, 2 * d + 1, latency, c->link_flit_cycles);
			if (t->wraps || at)
				noc_topology_link(
					t, r, 2 * d + 1, down, 2 * d, latency, c->link_flit_cycles);
		}
	}
}

static void link_all(struct noc_topology *t, const struct noc_config *c)
{
	uint64_t latency = c->link_cycles ? c->link_cycles : 1;
	for (uint32_t r = 0; r < t->nr_routers; r++) {
		uint32_t stride = 1, base = t->first_link_port;
		for (uint32_t d = 0; d < t->dimensions; d++) {
			uint32_t at = t->place[(size_t)r * t->dimensions + d];
			for (uint32_t x = 0; x < t->radix[d]; x++)
				if (x != at)
					noc_topology_link(t, r, base + x,
						r + x * stride - at * stride, base + at, latency,
						c->link_flit_cycles);
			base += t->radix[d];
			stride *= t->radix[d];
		}
	}
}

/* The port that dimension order takes from a router to a node. */
static uint8_t first_port(const struct noc_topology *t, uint32_t router, uint32_t node)
{
	const uint16_t *from = t->place + (size_t)router * t->dimensions;
	const uint16_t *to = t->place + (size_t)t->node_router[node] * t->dimensions;
	for (uint32_t d = 0; d < t->dimensions; d++)
		if (from[d] != to[d])
			return (uint8_t)(2 * d + (from[d] > to[d]));
	return t->node_port[node];
}

/* Looked up instead of computed: routers ask for each packet and hop. */
static enum base_status fill_ways(struct noc_topology *t, struct base_err *err)
{
	uint64_t nr = (uint64_t)t->nr_routers * t->nr_nodes;
	if (t->wraps || t->direct || nr > NOC_WAYS_MAX)
		return BASE_OK;
	t->way = base_alloc(nr);
	if (!t->way)
		return base_fail(
			err, BASE_ERR_NOMEM, "ways between %u {router|routers}", t->nr_routers);
	for (uint32_t a = 0; a < t->nr_routers; a++)
		for (uint32_t b = 0; b < t->nr_nodes; b++)
			t->way[(size_t)a * t->nr_nodes + b] = first_port(t, a, b);
	return BASE_OK;
}

enum base_status noc_topology_cube(
	struct noc_topology *t, const struct noc_config *c, struct base_err *err)
{
	enum base_status s = parse_dims(t, c, err);
	if (s != BASE_OK)
		return s;
	bool direct = c->topology == NOC_TOPOLOGY_FLATFLY;
	bool shared = direct || c->topology == NOC_TOPOLOGY_CMESH;
	uint64_t routers = 1, nodes_each = shared ? c->concentration : 1, ports = nodes_each;
	for (uint32_t d = 0; d < t->dimensions; d++) {
		routers *= t->radix[d];
		ports += direct ? t->radix[d] : 2;
		if (routers > NOC_ROUTERS_MAX)
			break; /* the next function says so */
	}
	s = noc_topology_alloc(t, routers, routers * nodes_each, ports, err);
	if (s != BASE_OK)
		return s;
	t->wraps = c->topology == NOC_TOPOLOGY_TORUS;
	t->direct = direct;
	t->first_link_port = direct ? (uint32_t)c->concentration : 0;
	t->first_node_port = direct ? 0 : 2 * t->dimensions;
	for (uint32_t r = 0; r < t->nr_routers; r++) {
		set_place(t, r);
		for (uint32_t i = 0; i < nodes_each; i++)
			noc_topology_node(
				t, (uint32_t)(r * nodes_each + i), r, t->first_node_port + i);
	}
	if (direct)
		link_all(t, c);
	else
		link_grid(t, c);
	return fill_ways(t, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c - building a topology, and distances in it. */
#include "noc/network/topology.h"

#include "noc/network/network.h"

#include <string.h>

enum base_status noc_topology_alloc(struct noc_topology *t, uint64_t routers, uint64_t nodes,
	uint64_t ports, struct base_err *err)
{
	if (routers > NOC_ROUTERS_MAX || nodes > NOC_NODES_MAX)
		return base_fail(err, BASE_ERR_LIMIT,
			"%llu {router|routers} and %llu {node|nodes}: the most is %d",
			(unsigned long long)routers, (unsigned long long)nodes, NOC_ROUTERS_MAX);
	if (ports > NOC_PORTS_MAX)
		return base_fail(err, BASE_ERR_LIMIT,
			"routers of %llu {port|ports}: the most is %d", (unsigned long long)ports,
			NOC_PORTS_MAX);
	t->nr_routers = (uint32_t)routers;
	t->nr_nodes = (uint32_t)nodes;
	t->ports = (uint32_t)ports;
	size_t nr = (size_t)routers * ports;
	t->port = base_alloc((nr + 1) * sizeof *t->port);
	t->node_router = base_alloc((nodes + 1) * sizeof *t->node_router);
	t->node_port = base_alloc(nodes + 1);
	t->place = base_alloc(((size_t)routers * t->dimensions + 1) * sizeof *t->place);
	if (!t->port || !t->node_router || !t->node_port || !t->place)
		return base_fail(err, BASE_ERR_NOMEM, "%u {router|routers}", t->nr_routers);
	for (size_t i = 0; i < nr; i++)
		t->port[i] = (struct noc_port){.router = UINT32_MAX, .node = UINT32_MAX};
	return BASE_OK;
}

void noc_topology_fini(struct noc_topology *t)
{
	base_free(t->port);
	base_free(t->node_router);
	base_free(t->node_port);
	base_free(t->place);
	base_free(t->table);
	base_free(t->way);
	*t = (struct noc_topology){0};
}

void noc_topology_link(struct noc_topology *t, uint32_t from, uint32_t from_port, uint32_t to,
	uint32_t to_port, uint64_t latency, uint64_t flit_cycles)
{
	*noc_topology_port(t, from, from_port) = (struct noc_port){.router = to,
		.port = to_port,
		.node = UINT32_MAX,
		.latency = (uint16_t)latency,
		.flit_cycles = (uint16_t)flit_cycles};
}

void noc_topology_node(struct noc_topology *t, uint32_t node, uint32_t router, uint32_t port)
{
	*noc_topology_port(t, router, port) = (struct noc_port){
		.router = UINT32_MAX, .node = node, .latency = 1, .flit_cycles = 1};
	t->node_router[node] = router;
	t->node_port[node] = (uint8_t)port;
}

/* Of what the builder has not given a width. */
static enum base_status set_widths(
	struct noc_topology *t, const struct noc_config *c, struct base_err *err)
{
	for (size_t i = 0; i < (size_t)t->nr_routers * t->ports; i++) {
		struct noc_port *p = &t->port[i];
		if (!p->flits)
			p->flits =
				(uint16_t)(p->router == UINT32_MAX ? c->node_flits : c->link_flits);
		if (p->flits > 1 && p->flit_cycles > 1)
			return base_fail(err, BASE_ERR_USAGE,
				"link_flit_cycles and link_flits: a link is narrower or wider than "
				"a flit, not both");
	}
	return BASE_OK;
}

enum base_status noc_topology_init(
	struct noc_topology *t, const struct noc_config *c, struct base_err *err)
{
	static enum base_status (*const build[NOC_TOPOLOGY_NR])(
		struct noc_topology *, const struct noc_config *, struct base_err *) = {
		[NOC_TOPOLOGY_MESH] = noc_topology_cube,
		[NOC_TOPOLOGY_TORUS] = noc_topology_cube,
		[NOC_TOPOLOGY_CMESH] = noc_topology_cube,
		[NOC_TOPOLOGY_FLATFLY] = noc_topology_cube,
		[NOC_TOPOLOGY_FATTREE] = noc_topology_tree,
		[NOC_TOPOLOGY_GRAPH] = noc_topology_graph,
	};
	*t = (struct noc_topology){0};
	enum base_status s = build[c->topology](t, c, err);
	return s == BASE_OK ? set_widths(t, c, err) : s;
}

/* ---- distances ------------------------------------------------------------------------------- */

static uint32_t cube_distance(const struct noc_topology *t, uint32_t a, uint32_t b)
{
	const uint16_t *pa = t->place + (size_t)a * t->dimensions;
	const uint16_t *pb = t->place + (size_t)b * t->dimensions;
	uint32_t sum = 1;
	for (uint32_t d = 0; d < t->dimensions; d++) {
		uint32_t steps = pa[d] > pb[d] ? pa[d] - (uint32_t)pb[d] : pb[d] - (uint32_t)pa[d];
		if (t->wraps && steps > t->radix[d] - steps)
			steps = t->radix[d] - steps;
		sum += t->direct && steps ? 1 : steps;
	}
	return sum;
}

static uint32_t tree_distance(const struct noc_topology *t, uint32_t a, uint32_t b)
{
	uint32_t up = 1;
	for (a /= t->arity, b /= t->arity; a != b; a /= t->arity, b /= t->arity)
		up++;
	return 2 * up - 1;
}

static uint32_t table_distance(const struct noc_topology *t, uint32_t a, uint32_t b)
{
	uint32_t hops = 1;
	for (; a != b; hops++)
		a = noc_topology_port(t, a, t->table[(size_t)a * t->nr_routers + b])->router;
	return hops;
}

uint32_t noc_topology_distance(const struct noc_topology *t, uint32_t from_node, uint32_t to_node)
{
	if (t->levels)
		return tree_distance(t, from_node, to_node);
	uint32_t a = t->node_router[from_node], b = t->node_router[to_node];
	return t->table ? table_distance(t, a, b) : cube_distance(t, a, b);
}

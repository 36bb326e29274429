/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routing.c - which outputs and virtual channels a packet may take from here.
 *
 * Why none of them deadlocks: W. Dally and B. Towles, Principles and Practices of Interconnection
 * Networks (2004), chapters 13 and 14. Dimension order in a mesh is acyclic. In a torus, a packet
 * that crosses the wrap-around link of a dimension has the upper half of the virtual channels for
 * the whole dimension, others the lower half; minimal ways of one half never close the ring. O1TURN
 * and Valiant give each of their two orders or phases a half of its own. Adaptive: one escape
 * channel (two in a torus) in dimension order, which is never left once entered (Duato).
 *
 * One more: a row of noc_words.def, a function here, and a row of table[].
 */
#include "noc/network/network_private.h"

static unsigned routing_one(struct noc_route *ret, uint32_t port, uint32_t first, uint32_t last)
{
	*ret = (struct noc_route){
		.port = (uint16_t)port, .vc_first = (uint16_t)first, .vc_last = (uint16_t)last};
	return 1;
}

/* Port of dimension d towards place `to`; of a torus also the half of the virtual channels. */
static uint32_t towards(
	struct noc_network *n, uint32_t d, uint32_t at, uint32_t to, uint32_t base, uint8_t *half)
{
	const struct noc_topology *t = &n->topology;
	if (t->direct)
		return base + to;
	if (!t->wraps)
		return 2 * d + (at > to);
	uint32_t k = t->radix[d], up = to > at ? to - at : to + k - at;
	bool rises = 2 * up < k || (2 * up == k && noc_random_u64(&n->random) >> 63);
	*half = rises ? at > to : to > at;
	return 2 * d + !rises;
}

/*
 * Next port in dimension order towards another router. `phase` is the torus' half, which is decided
 * where a dimension begins and kept until it ends.
 */
static uint32_t dimension_order(struct noc_network *n, uint32_t router, uint32_t to,
	uint32_t in_port, bool descending, uint8_t *half)
{
	const struct noc_topology *t = &n->topology;
	const uint16_t *a = t->place + (size_t)router * t->dimensions;
	const uint16_t *b = t->place + (size_t)to * t->dimensions;
	uint32_t d = 0, base = t->first_link_port;
	if (descending) {
		for (d = t->dimensions - 1; a[d] == b[d]; d--) {
		}
		for (uint32_t i = 0; i < d; i++)
			base += t->radix[i];
	} else {
		for (; a[d] == b[d]; d++)
			base += t->radix[d];
	}
	if (t->wraps && in_port / 2 == d)
		return in_port ^ 1; /* straight on */
	return towards(n, d, a[d], b[d], base, half);
}

static void halve(uint32_t *first, uint32_t *last, bool upper)
{
	uint32_t nr = (*last - *first + 1) / 2;
	if (upper)
		*first += nr;
	else
		*last = *first + nr - 1;
}

static unsigned route_dor(struct noc_network *n, uint32_t router, uint32_t in_port, uint32_t in_vc,
	struct noc_live *p, struct noc_route *ret)
{
	uint32_t to = n->topology.node_router[p->destination], first, last;
	(void)in_vc;
	first = n->class_first[p->class];
	last = n->class_last[p->class];
	if (n->topology.way)
		return routing_one(ret,
			n->topology.way[(size_t)router * n->nr_nodes + p->destination], first,
			last);
	if (to == router)
		return routing_one(ret, n->topology.node_port[p->destination], first, last);
	uint32_t port = dimension_order(n, router, to, in_port, false, &p->phase);
	if (n->topology.wraps)
		halve(&first, &last, p->phase);
	return routing_one(ret, port, first, last);
}

static bool from_node(const struct noc_network *n, uint32_t router, uint32_t in_port)
{
	return noc_topology_port(&n->topology, router, in_port)->node != UINT32_MAX;
}

static unsigned route_o1turn(struct noc_network *n, uint32_t router, uint32_t in_port,
	uint32_t in_vc, struct noc_live *p, struct noc_route *ret)
{
	uint32_t to = n->topology.node_router[p->destination], first, last;
	uint8_t half = 0;
	(void)in_vc;
	first = n->class_first[p->class];
	last = n->class_last[p->class];
	if (to == router)
		return routing_one(ret, n->topology.node_port[p->destination], first, last);
	if (from_node(n, router, in_port))
		p->phase = (uint8_t)(noc_random_u64(&n->random) >> 63);
	uint32_t port = dimension_order(n, router, to, in_port, p->phase, &half);
	halve(&first, &last, p->phase);
	return routing_one(ret, port, first, last);
}

/* Bit 0 of the phase is the torus' half, bit 1 says that the middle was passed. */
static unsigned route_valiant(struct noc_network *n, uint32_t router, uint32_t in_port,
	uint32_t in_vc, struct noc_live *p, struct noc_route *ret)
{
	uint32_t to = n->topology.node_router[p->destination], first, last;
	(void)in_vc;
	first = n->class_first[p->class];
	last = n->class_last[p->class];
	if (from_node(n, router, in_port)) {
		p->phase = 0;
		p->middle = noc_random_below(&n->random, n->nr_routers);
	}
	if (!(p->phase & 2) && router == p->middle) {
		p->phase = 2;
		in_port = n->topology.first_node_port; /* a new beginning */
	}
	if (p->phase & 2 && router == to)
		return routing_one(ret, n->topology.node_port[p->destination], first, last);
	uint8_t half = p->phase & 1;
	uint32_t port =
		dimension_order(n, router, p->phase & 2 ? to : p->middle, in_port, false, &half);
	p->phase = (uint8_t)((p->phase & 2) | half);
	if (n->topology.wraps)
		halve(&first, &last, half);
	halve(&first, &last, p->phase & 2);
	return routing_one(ret, port, first, last);
}

static unsigned add_adaptive(const struct noc_topology *t, uint32_t router, uint32_t to,
	uint32_t first, uint32_t last, struct noc_route *ret)
{
	const uint16_t *a = t->place + (size_t)router * t->dimensions;
	const uint16_t *b = t->place + (size_t)to * t->dimensions;
	unsigned nr = 0;
	uint32_t base = t->first_link_port;
	for (uint32_t d = 0; d < t->dimensions; d++) {
		uint32_t k = t->radix[d], up = (b[d] + k - a[d]) % k;
		bool rises = t->wraps ? 2 * up <= k : b[d] > a[d];
		bool falls = t->wraps ? 2 * up >= k : b[d] < a[d];
		if (a[d] != b[d] && t->direct)
			nr += routing_one(ret + nr, base + b[d], first, last);
		if (a[d] != b[d] && !t->direct && rises)
			nr += routing_one(ret + nr, 2 * d, first, last);
		if (a[d] != b[d] && !t->direct && falls)
			nr += routing_one(ret + nr, 2 * d + 1, first, last);
		base += k;
	}
	for (unsigned i = 0; i < nr; i++)
		ret[i].priority = 1;
	return nr;
}

static unsigned route_adaptive(struct noc_network *n, uint32_t router, uint32_t in_port,
	uint32_t in_vc, struct noc_live *p, struct noc_route *ret)
{
	const struct noc_topology *t = &n->topology;
	uint32_t to = t->node_router[p->destination], first, last, nr_escapes = t->wraps ? 2 : 1;
	first = n->class_first[p->class];
	last = n->class_last[p->class];
	if (to == router)
		return routing_one(ret, t->node_port[p->destination], first, last);
	bool begins = from_node(n, router, in_port),
	     escaped = !begins && in_vc < first + nr_escapes;
	unsigned nr = 0;
	if (!escaped) {
		nr = add_adaptive(t, router, to, first + nr_escapes, last, ret);
		in_port = t->first_node_port; /* the escape way begins here */
	}
	uint32_t port = dimension_order(n, router, to, in_port, false, &p->phase);
	uint32_t escape = first + (t->wraps ? p->phase : 0);
	return nr + routing_one(ret + nr, port, escape, escape);
}

static unsigned route_nca(struct noc_network *n, uint32_t router, uint32_t in_port, uint32_t in_vc,
	struct noc_live *p, struct noc_route *ret)
{
	const struct noc_topology *t = &n->topology;
	uint32_t first, last, level = router / t->level_routers, pos = router % t->level_routers;
	(void)in_port;
	(void)in_vc;
	first = n->class_first[p->class];
	last = n->class_last[p->class];
	/* Nodes under one port down of this level, and under the router. */
	uint32_t branch = 1;
	for (uint32_t l = level + 1; l < t->levels; l++)
		branch *= t->arity;
	if (p->destination / (branch * t->arity) == pos / branch)
		return routing_one(ret, p->destination / branch % t->arity, first, last);
	return routing_one(ret, t->arity + noc_random_below(&n->random, t->arity), first, last);
}

static unsigned route_table(struct noc_network *n, uint32_t router, uint32_t in_port,
	uint32_t in_vc, struct noc_live *p, struct noc_route *ret)
{
	const struct noc_topology *t = &n->topology;
	uint32_t to = t->node_router[p->destination], first, last;
	(void)in_port;
	(void)in_vc;
	first = n->class_first[p->class];
	last = n->class_last[p->class];
	return routing_one(ret,
		to == router ? t->node_port[p->destination]
			     : t->table[(size_t)router * t->nr_routers + to],
		first, last);
}

/* ---- which goes with what -------------------------------------------------------------------- */

enum { CUBES = 1, TREES = 2, GRAPHS = 4, NO_RINGS = 8 };
static const struct {
	unsigned (*route)(struct noc_network *n, uint32_t router, uint32_t in_port, uint32_t in_vc,
		struct noc_live *p, struct noc_route *ret);
	unsigned where, vcs, ring_vcs; /* virtual channels a class needs, in a torus */
} table[NOC_ROUTING_NR] = {
	[NOC_ROUTING_DOR] = {route_dor, CUBES, 1, 2},
	[NOC_ROUTING_ADAPTIVE] = {route_adaptive, CUBES, 2, 3},
	[NOC_ROUTING_VALIANT] = {route_valiant, CUBES, 2, 4},
	[NOC_ROUTING_O1TURN] = {route_o1turn, CUBES | NO_RINGS, 2, 0},
	[NOC_ROUTING_NCA] = {route_nca, TREES, 1, 1},
	[NOC_ROUTING_TABLE] = {route_table, GRAPHS, 1, 1},
};

static bool goes(uint64_t routing, unsigned kind, bool ring)
{
	return table[routing].where & kind && !(table[routing].where & NO_RINGS && ring);
}

static enum base_status routing_refuse(
	const struct noc_network *n, unsigned kind, struct base_err *err)
{
	struct base_str list = {0};
	for (uint64_t r = 0; r < NOC_ROUTING_NR; r++)
		if (goes(r, kind, n->topology.wraps))
			base_str_addf(
				&list, "%s%s", list.length ? ", " : "", noc_routing_words[r].name);
	enum base_status s = base_fail(err, BASE_ERR_USAGE,
		"routing = %s does not go with topology = %s, but these do: %s",
		noc_routing_words[n->config.routing].name,
		noc_topology_words[n->config.topology].name, base_str_text(&list));
	base_str_fini(&list);
	return s;
}

enum base_status noc_routing_choose(struct noc_network *n, struct base_err *err)
{
	const struct noc_topology *t = &n->topology;
	unsigned kind = t->levels ? TREES : t->table ? GRAPHS : CUBES;
	uint64_t r = n->config.routing;
	if (r == NOC_ROUTING_AUTO)
		r = kind == TREES    ? NOC_ROUTING_NCA
		    : kind == GRAPHS ? NOC_ROUTING_TABLE
				     : NOC_ROUTING_DOR;
	if (!goes(r, kind, t->wraps))
		return routing_refuse(n, kind, err);
	unsigned need = t->wraps ? table[r].ring_vcs : table[r].vcs;
	if (n->vcs / n->classes < need)
		return base_fail(err, BASE_ERR_USAGE,
			"routing = %s in topology = %s needs %u virtual {channel|channels} a "
			"class: vcs = %u "
			"or more",
			noc_routing_words[r].name, noc_topology_words[n->config.topology].name,
			need, need * n->classes);
	n->route = table[r].route;
	n->route_max = r == NOC_ROUTING_ADAPTIVE ? 2 * t->dimensions + 1 : 1;
	n->config.routing = r;
	n->way = r == NOC_ROUTING_DOR ? t->way : NULL;
	n->fixed = r == NOC_ROUTING_TABLE || (r == NOC_ROUTING_DOR && !t->wraps);
	return BASE_OK;
}

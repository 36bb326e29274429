/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology_tree.c - k-ary n-tree (Petrini and Vanneschi, 1997): k^n nodes, n levels of k^(n-1)
 * routers.
 *
 * Level 0 is the top. Ports 0..k-1 lead down, k..2k-1 up; a lowest router's ports down lead to
 * nodes. Two routers of neighbouring levels are linked when their positions agree in all digits
 * (base k) but one: that of their level.
 */
#include "noc/network/topology.h"

enum base_status noc_topology_tree(
	struct noc_topology *t, const struct noc_config *c, struct base_err *err)
{
	uint64_t k = c->k, n = c->n, each = 1;
	if (k < 2)
		return base_fail(err, BASE_ERR_USAGE, "a fat tree needs k of 2 or more");
	for (uint64_t l = 1; l < n && each <= NOC_ROUTERS_MAX; l++)
		each *= k;
	enum base_status s = noc_topology_alloc(t, each * n, each * k, n > 1 ? 2 * k : k, err);
	if (s != BASE_OK)
		return s;
	t->arity = (uint32_t)k;
	t->levels = (uint32_t)n;
	t->level_routers = (uint32_t)each;
	uint32_t lowest = (uint32_t)((n - 1) * each);
	for (uint32_t i = 0; i < each * k; i++)
		noc_topology_node(t, i, lowest + i / t->arity, i % t->arity);
	uint64_t latency = c->link_cycles ? c->link_cycles : 1;
	uint32_t below =
		t->level_routers; /* routers of the next level under one port of a router */
	for (uint32_t level = 0; level + 1 < n; level++) {
		below /= t->arity;
		for (uint32_t pos = 0; pos < each; pos++) {
			uint32_t region = pos - pos % (below * t->arity);
			uint32_t up = pos / below % t->arity; /* the children's port to here */
			for (uint32_t p = 0; p < k; p++) {
				uint32_t from = level * t->level_routers + pos;
				uint32_t to = (level + 1) * t->level_routers + region + p * below +
					      pos % below;
				noc_topology_link(t, from, p, to, t->arity + up, latency,
					c->link_flit_cycles);
				noc_topology_link(t, to, t->arity + up, from, p, latency,
					c->link_flit_cycles);
			}
		}
	}
	return BASE_OK;
}

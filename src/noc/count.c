/* SPDX-License-Identifier: Apache-2.0 */
/* count.c - what a network counted, what it should need, and whether its books are straight. */
#include "noc/network_private.h"

uint32_t noc_network_routers(const struct noc_network *n)
{
	return n->nr_routers;
}

static const struct noc_port *port_at(const struct noc_network *n, size_t i)
{
	return &n->topology.port[i];
}

static bool is_link(const struct noc_port *p)
{
	return p->router != UINT32_MAX || p->node != UINT32_MAX;
}

size_t noc_network_links(const struct noc_network *n)
{
	size_t nr = 0;
	for (size_t i = 0; i < (size_t)n->nr_routers * n->ports; i++)
		nr += is_link(port_at(n, i));
	return nr;
}

void noc_network_each_link(const struct noc_network *n, struct noc_link *ret)
{
	for (size_t at = 0; at < (size_t)n->nr_routers * n->ports; at++) {
		const struct noc_port *p = port_at(n, at);
		if (!is_link(p))
			continue;
		*ret++ = (struct noc_link){.from_router = (uint32_t)(at / n->ports),
			.from_port = (uint32_t)(at % n->ports),
			.to_router = p->router,
			.to_port = p->router == UINT32_MAX ? p->node : p->port,
			.latency_cycles = p->latency,
			.flit_cycles = p->flit_cycles,
			.flits = n->sent_flits[at]};
	}
}

void noc_network_counts(const struct noc_network *n, struct noc_counts *ret)
{
	*ret = (struct noc_counts){
		.buffer_writes = n->counts.buffer_writes - n->forgotten.buffer_writes,
		.injected = n->counts.injected - n->forgotten.injected,
		.ejected = n->counts.ejected - n->forgotten.ejected};
	for (size_t i = 0; i < (size_t)n->nr_routers * n->ports; i++) {
		ret->crossbar += n->sent_flits[i];
		ret->link += port_at(n, i)->router != UINT32_MAX ? n->sent_flits[i] : 0;
	}
}

void noc_network_count_reset(struct noc_network *n)
{
	n->forgotten = n->counts;
	for (size_t i = 0; i < (size_t)n->nr_routers * n->ports; i++)
		n->sent_flits[i] = 0;
}

uint32_t noc_network_distance(const struct noc_network *n, uint32_t source, uint32_t destination)
{
	return n->ideal ? 0 : noc_topology_distance(&n->topology, source, destination);
}

/* ---- zero load ------------------------------------------------------------------------------ */

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * When a packet's head, second flit and tail reach the next router. In each router the head takes
 * time that those behind it do not; flits leave `gap` cycles apart at least. Times are convex in
 * the number of the flit, so these three are enough.
 */
struct train {
	uint64_t head, second, tail;
};
static void pass_router(
	struct train *t, uint64_t flits, uint64_t wait, uint64_t gap, uint64_t delay)
{
	uint64_t head = t->head + wait, second = max(t->second, head + gap);
	uint64_t tail = max(t->tail, second + (flits > 2 ? flits - 2 : 0) * gap);
	*t = (struct train){head + delay, second + delay, tail + delay};
}

enum base_status noc_network_zero_load_cycles(const struct noc_network *n, uint32_t source,
	uint32_t destination, uint32_t size_flits, uint64_t *ret_cycles, struct base_err *err)
{
	const struct noc_config *c = &n->config;
	const struct noc_topology *topology = &n->topology;
	if (n->ideal) {
		*ret_cycles =
			n->ideal->latency_of
				? n->ideal->latency_of[(size_t)source * n->nr_nodes + destination]
				: n->ideal->latency;
		return BASE_OK;
	}
	if (c->routing == NOC_ROUTING_VALIANT)
		return base_fail(
			err, BASE_ERR_USAGE, "with routing = valiant ways are chosen by chance");
	uint32_t hops = noc_network_distance(n, source, destination);
	uint64_t latency = c->link_cycles ? c->link_cycles : topology->wraps ? 2 : 1;
	uint64_t wait = c->routing_delay + (c->speculative ? 0 : c->vc_alloc_delay);
	struct train t = {.head = 2, .second = 3, .tail = 1 + size_flits};
	uint32_t at = topology->node_router[source], to = topology->node_router[destination];
	for (uint32_t i = 1; i <= hops; i++) {
		uint64_t link = i < hops ? latency : 1, busy = i < hops ? c->link_flit_cycles : 1;
		if (topology->table && i < hops) {
			const struct noc_port *p = noc_topology_port(topology, at,
				topology->table[(size_t)at * topology->nr_routers + to]);
			link = p->latency;
			busy = p->flit_cycles;
			at = p->router;
		}
		pass_router(&t, size_flits, wait, max(busy, c->sw_alloc_delay),
			c->sw_alloc_delay + c->crossbar_delay + link);
	}
	*ret_cycles = size_flits > 1 ? t.tail : t.head;
	return BASE_OK;
}

/* ---- laws ----------------------------------------------------------------------------------- */

static uint64_t flits_under_way(const struct noc_network *n)
{
	uint64_t nr = 0;
	for (uint32_t s = 0; s <= n->slot_mask; s++)
		nr += n->slot[s].nr_flits;
	return nr;
}

/* For each output VC: flits and credits on the way to it or from it, and flits in the buffer behind
 * it. */
static void add_missing(const struct noc_network *n, uint32_t *missing)
{
	uint32_t routers_vcs = n->nr_routers * n->router_vcs;
	for (uint32_t s = 0; s <= n->slot_mask; s++) {
		const struct noc_slot *slot = &n->slot[s];
		for (uint32_t i = 0; i < slot->nr_credits; i++)
			missing[slot->credit[i].vc]++;
		for (uint32_t i = 0; i < slot->nr_flits; i++) {
			const struct noc_flit_event *e = &slot->flit[i];
			uint32_t port = e->vc / n->vcs;
			missing[e->flit & NOC_FLIT_EJECT ? e->vc
							 : n->back[port].vc + e->vc % n->vcs]++;
		}
	}
	for (uint32_t v = 0; v < routers_vcs; v++)
		if (n->input[v].count)
			missing[n->back[v / n->vcs].vc + v % n->vcs] += n->input[v].count;
}

enum base_status noc_network_check(const struct noc_network *n, struct base_err *err)
{
	if (n->ideal)
		return BASE_OK;
	uint64_t inside = flits_under_way(n) + n->buffered;
	size_t nr = (size_t)n->nr_routers * n->router_vcs + (size_t)n->nr_nodes * n->vcs;
	uint64_t buffered = 0;
	for (size_t v = 0; v < (size_t)n->nr_routers * n->router_vcs; v++)
		buffered += n->input[v].count;
	if (n->counts.injected != n->counts.ejected + inside || buffered != n->buffered)
		return base_fail(err, BASE_ERR_CORRUPT,
			"%llu flits injected, %llu ejected, %llu inside",
			(unsigned long long)n->counts.injected,
			(unsigned long long)n->counts.ejected, (unsigned long long)inside);
	uint32_t *missing = base_alloc(nr * sizeof *missing);
	if (!missing)
		return base_fail(err, BASE_ERR_NOMEM, "%zu virtual channels", nr);
	add_missing(n, missing);
	enum base_status s = BASE_OK;
	for (size_t v = 0; s == BASE_OK && v < nr; v++)
		if (n->credit[v] + missing[v] != n->buffer)
			s = base_fail(err, BASE_ERR_CORRUPT,
				"output virtual channel %zu: %u credits and %u under way of %u", v,
				n->credit[v], missing[v], n->buffer);
	base_free(missing);
	return s;
}

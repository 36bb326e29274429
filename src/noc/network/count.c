/* SPDX-License-Identifier: Apache-2.0 */
/* count.c - what a network counted, what it should need, and whether its books are straight. */
#include "noc/network/network_private.h"

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
			.flits_cycle = p->flits,
			.flits = n->port[at].sent_flits};
	}
}

void noc_network_counts(const struct noc_network *n, struct noc_counts *ret)
{
	*ret = (struct noc_counts){
		.buffer_writes = n->counts.buffer_writes - n->forgotten.buffer_writes,
		.injected = n->counts.injected - n->forgotten.injected,
		.ejected = n->counts.ejected - n->forgotten.ejected};
	for (size_t i = 0; i < (size_t)n->nr_routers * n->ports; i++) {
		ret->crossbar += n->port[i].sent_flits;
		ret->link += port_at(n, i)->router != UINT32_MAX ? n->port[i].sent_flits : 0;
	}
}

void noc_network_count_reset(struct noc_network *n)
{
	n->forgotten = n->counts;
	for (size_t i = 0; i < (size_t)n->nr_routers * n->ports; i++)
		n->port[i].sent_flits = 0;
}

uint32_t noc_network_distance(const struct noc_network *n, uint32_t source, uint32_t destination)
{
	return n->ideal ? 0 : noc_topology_distance(&n->topology, source, destination);
}

/* ---- zero load ------------------------------------------------------------------------------- */

static uint64_t count_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What a packet meets in a router. */
struct stage {
	uint64_t wait;      /* of the head: until it may ask for the crossbar */
	uint64_t gap;       /* between flits, at least; 0: several in one cycle */
	uint64_t in, out;   /* flits a cycle, of the link that it comes from and of the next */
	uint64_t delay;     /* from the crossbar's grant to the arrival at the next router */
	bool head_is_alone; /* speculative: nothing follows it in the same cycle */
};

/* Cycles in which flits arrive become those of the next router. */
static void pass_router(uint64_t *flit, uint64_t nr, const struct stage *s)
{
	uint64_t lanes = s->in < s->out ? s->in : s->out, sent[NOC_LINK_FLITS_MAX] = {0};
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t t =
			i ? count_max(flit[i], sent[(i - 1) % lanes] + s->gap) : flit[i] + s->wait;
		if (i >= lanes)
			t = count_max(t, sent[i % lanes] + 1);
		if (i == 1 && s->head_is_alone)
			t = count_max(t, sent[0] + 1);
		sent[i % lanes] = t;
		flit[i] = t + s->delay;
	}
}

static uint64_t own_latency(const struct noc_network *n)
{
	return n->config.link_cycles ? n->config.link_cycles : n->topology.wraps ? 2 : 1;
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
	uint64_t *flit = base_alloc(size_flits * sizeof *flit), in = c->node_flits;
	uint32_t at = topology->node_router[source], to = topology->node_router[destination];
	if (!flit)
		return base_fail(err, BASE_ERR_NOMEM, "a packet of %u {flit|flits}", size_flits);
	for (uint32_t i = 0; i < size_flits; i++)
		flit[i] = 2 + i / c->node_flits;
	for (uint32_t i = 1; i <= hops; i++) {
		struct noc_port p = {
			.latency = 1, .flit_cycles = 1, .flits = (uint16_t)c->node_flits};
		if (i < hops && topology->table)
			p = *noc_topology_port(topology, at,
				topology->table[(size_t)at * topology->nr_routers + to]);
		else if (i < hops)
			p = (struct noc_port){.latency = (uint16_t)own_latency(n),
				.flit_cycles = (uint16_t)c->link_flit_cycles,
				.flits = (uint16_t)c->link_flits};
		pass_router(flit, size_flits,
			&(struct stage){
				.wait = c->routing_delay + (c->speculative ? 0 : c->vc_alloc_delay),
				.gap = p.flits > 1 ? 0
						   : count_max(p.flit_cycles, c->sw_alloc_delay),
				.in = in,
				.out = p.flits,
				.delay = c->sw_alloc_delay + c->crossbar_delay + p.latency,
				.head_is_alone = c->speculative});
		at = p.router;
		in = p.flits;
	}
	*ret_cycles = flit[size_flits - 1];
	base_free(flit);
	return BASE_OK;
}

/* ---- laws ------------------------------------------------------------------------------------ */

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
			missing[e->flit & NOC_FLIT_EJECT
					? e->vc
					: n->port[port].back.vc + e->vc % n->vcs]++;
		}
	}
	for (uint32_t v = 0; v < routers_vcs; v++)
		if (noc_input(n, (uint32_t)v)->count)
			missing[n->port[v / n->vcs].back.vc + v % n->vcs] +=
				noc_input(n, (uint32_t)v)->count;
}

enum base_status noc_network_check(const struct noc_network *n, struct base_err *err)
{
	if (n->ideal)
		return BASE_OK;
	uint64_t inside = flits_under_way(n) + n->buffered;
	size_t nr = (size_t)n->nr_routers * n->router_vcs + (size_t)n->nr_nodes * n->vcs;
	uint64_t buffered = 0;
	for (size_t v = 0; v < (size_t)n->nr_routers * n->router_vcs; v++)
		buffered += noc_input(n, (uint32_t)v)->count;
	if (n->counts.injected != n->counts.ejected + inside || buffered != n->buffered)
		return base_fail(err, BASE_ERR_CORRUPT,
			"%llu {flit|flits} injected, %llu ejected, %llu inside",
			(unsigned long long)n->counts.injected,
			(unsigned long long)n->counts.ejected, (unsigned long long)inside);
	uint32_t *missing = base_alloc(nr * sizeof *missing);
	if (!missing)
		return base_fail(err, BASE_ERR_NOMEM, "%zu virtual {channel|channels}", nr);
	add_missing(n, missing);
	enum base_status s = BASE_OK;
	for (size_t v = 0; s == BASE_OK && v < nr; v++)
		if (n->out_vc[v].credit + missing[v] != n->buffer)
			s = base_fail(err, BASE_ERR_CORRUPT,
				"output virtual channel %zu: %u {credit|credits} and %u under way "
				"of %u",
				v, n->out_vc[v].credit, missing[v], n->buffer);
	base_free(missing);
	return s;
}

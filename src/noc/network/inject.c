/* SPDX-License-Identifier: Apache-2.0 */
/* inject.c - the nodes' queues: node_flits a cycle and node into the network, and the sources to
 * ask for more. */
#include "noc/network/network_private.h"

/* ---- the calendar of sources to ask ---------------------------------------------------------- */

static void ask_at(struct noc_network *n, uint32_t asked, uint64_t cycle)
{
	n->ask_cycle[asked] = cycle;
	uint64_t visit = cycle - n->now < NOC_ASK_SLOTS ? cycle : n->now + NOC_ASK_SLOTS - 1;
	uint32_t s = (uint32_t)(visit % NOC_ASK_SLOTS);
	n->ask_next[asked] = n->ask_head[s];
	n->ask_head[s] = asked;
	noc_set_bit(n->ask_used, s);
	n->nr_asks++;
}

uint64_t noc_ask_first(const struct noc_network *n)
{
	uint32_t from = (uint32_t)(n->now % NOC_ASK_SLOTS);
	for (uint32_t i = 0; i <= NOC_ASK_SLOTS / 64; i++) {
		uint32_t w = (from / 64 + i) % (NOC_ASK_SLOTS / 64);
		uint64_t bits = n->ask_used[w];
		if (!i)
			bits &= ~(uint64_t)0 << (from & 63);
		if (bits) {
			uint32_t s = w * 64 + (uint32_t)__builtin_ctzll(bits);
			return n->now + (s - from) % NOC_ASK_SLOTS;
		}
	}
	return UINT64_MAX;
}

static enum base_status inject_ask(struct noc_network *n, uint32_t asked, struct base_err *err)
{
	uint32_t node = asked / n->classes, class = asked % n->classes, i;
	struct noc_packet packet = {.source = node, .class = class, .size_flits = 1};
	uint64_t cycle = UINT64_MAX;
	if (n->queue[asked].first != NOC_NONE || !(n->source_classes >> class & 1))
		return BASE_OK; /* its tail's departure asks again */
	if (!n->source.next(n->source.ctx, node, class, n->now, &packet, &cycle)) {
		if (cycle != UINT64_MAX)
			ask_at(n, asked, cycle > n->now ? cycle : n->now + 1);
		return BASE_OK;
	}
	if (packet.destination >= n->nr_nodes || !packet.size_flits ||
		packet.size_flits > NOC_PACKET_FLITS_MAX)
		return base_fail(err, BASE_ERR_USAGE, "a packet of %u {flit|flits} from %u to %u",
			packet.size_flits, node, packet.destination);
	enum base_status s = noc_pool_take(&n->pool, &i);
	if (s != BASE_OK)
		return base_fail(
			err, s, "%u {packet is|packets are} queued or under way", n->pool.nr_used);
	n->pool.packet[i] = (struct noc_live){.id = packet.id,
		.created = cycle,
		.source = node,
		.destination = packet.destination,
		.size = packet.size_flits,
		.left = packet.size_flits,
		.class = (uint8_t) class};
	noc_enqueue(n, i);
	return BASE_OK;
}

enum base_status noc_ask_due(struct noc_network *n, struct base_err *err)
{
	uint32_t s = (uint32_t)(n->now % NOC_ASK_SLOTS), asked = n->ask_head[s];
	n->ask_head[s] = NOC_NONE;
	noc_clear_bit(n->ask_used, s);
	enum base_status status = BASE_OK;
	for (uint32_t next; asked != NOC_NONE; asked = next) {
		next = n->ask_next[asked];
		n->nr_asks--;
		if (n->ask_cycle[asked] > n->now)
			ask_at(n, asked, n->ask_cycle[asked]);
		else if (status == BASE_OK)
			status = inject_ask(n, asked, err);
	}
	return status;
}

enum base_status noc_network_set_source(struct noc_network *n, const struct noc_source *source,
	uint32_t class_mask, struct base_err *err)
{
	if (n->ideal)
		return base_fail(err, BASE_ERR_USAGE, "topology=ideal has no source: send packets");
	n->source_classes = source ? class_mask : 0;
	if (!source)
		return BASE_OK;
	n->source = *source;
	for (uint32_t i = 0; i < n->nr_nodes * n->classes; i++)
		if (class_mask >> (i % n->classes) & 1)
			ask_at(n, i, n->now);
	return BASE_OK;
}

/* ---- queues ---------------------------------------------------------------------------------- */

void noc_enqueue(struct noc_network *n, uint32_t packet)
{
	struct noc_live *p = &n->pool.packet[packet];
	struct noc_queue *q = &n->queue[p->source * n->classes + p->class];
	p->next = NOC_NONE;
	if (q->first == NOC_NONE)
		q->first = packet;
	else
		n->pool.packet[q->last].next = packet;
	q->last = packet;
	noc_set_bit(n->node_active, p->source);
}

/* The first free VC with room, beginning after the last one used. */
static uint8_t find_vc(
	const struct noc_network *n, uint32_t node, uint32_t class, const struct noc_queue *q)
{
	uint32_t base = n->nr_routers * n->router_vcs + node * n->vcs;
	uint32_t first = n->class_first[class], nr = n->class_last[class] - first + 1;
	uint64_t free = n->node_free_vcs[node];
	for (uint32_t i = 1; i <= nr; i++) {
		uint32_t vc = q->last_vc == UINT8_MAX ? first + i - 1
						      : first + (q->last_vc - first + i) % nr;
		if (free >> vc & 1 && n->out_vc[base + vc].credit)
			return (uint8_t)vc;
	}
	return UINT8_MAX;
}

static void inject_send_flit(
	struct noc_network *n, uint32_t node, uint32_t class, struct noc_queue *q)
{
	uint32_t packet = q->first, vc = q->vc;
	struct noc_live *p = &n->pool.packet[packet];
	uint64_t *free = &n->node_free_vcs[node];
	uint32_t flags = 0;
	n->out_vc[n->nr_routers * n->router_vcs + node * n->vcs + vc].credit--;
	if (p->left == p->size) {
		flags |= NOC_FLIT_HEAD;
		p->sent = n->now;
		q->last_vc = q->vc;
		*free &= ~((uint64_t)1 << vc);
	}
	if (!--p->left) {
		flags |= NOC_FLIT_TAIL;
		*free |= (uint64_t)1 << vc;
		q->first = p->next;
		q->vc = UINT8_MAX;
		if (q->first == NOC_NONE && n->source_classes >> class & 1)
			ask_at(n, node * n->classes + class, n->now + 1);
	}
	struct noc_slot *s = &n->slot[(n->now + n->inject_delay[node]) & n->slot_mask];
	uint32_t to = n->inject_vc[node] + vc;
	s->flit[s->nr_flits++] = (struct noc_flit_event){.vc = to,
		.router = n->topology.node_router[node],
		.flit = packet << NOC_FLIT_SHIFT | flags};
	n->nr_events++;
	n->counts.injected++;
}

/* False: it can send nothing until a credit or a packet comes. */
static bool inject(struct noc_network *n, uint32_t node)
{
	uint32_t base = n->nr_routers * n->router_vcs + node * n->vcs;
	for (uint32_t i = 1; i <= n->classes; i++) {
		uint32_t class = (n->last_class[node] + i) % n->classes;
		struct noc_queue *q = &n->queue[node * n->classes + class];
		if (q->first == NOC_NONE)
			continue;
		if (q->vc == UINT8_MAX)
			q->vc = find_vc(n, node, class, q);
		if (q->vc == UINT8_MAX || !n->out_vc[base + q->vc].credit)
			continue;
		n->last_class[node] = (uint8_t) class;
		inject_send_flit(n, node, class, q);
		if (n->classes > 1)
			return true;
		return q->first != NOC_NONE;
	}
	return false;
}

void noc_inject(struct noc_network *n)
{
	for (uint32_t w = 0; w <= n->nr_nodes / 64; w++) {
		for (uint64_t bits = n->node_active[w]; bits; bits &= bits - 1) {
			uint32_t b = (uint32_t)__builtin_ctzll(bits);
			bool more = true;
			for (uint64_t k = 0; k < n->config.node_flits && more; k++)
				more = inject(n, w * 64 + b);
			if (!more)
				n->node_active[w] &= ~((uint64_t)1 << b);
		}
	}
}

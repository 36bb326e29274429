/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - a network's life: what it is made of, packets in and out, and its clock. */
#include "noc/network/network_private.h"

#include <sys/mman.h>

enum { LARGE_PAGE_BYTES = 2 << 20, FAR_BYTES = 1 << 19, AHEAD = 6 /* events */ };

/* ---- packets --------------------------------------------------------------------------------- */

enum base_status noc_pool_take(struct noc_pool *p, uint32_t *ret)
{
	if (p->free != NOC_NONE) {
		*ret = p->free;
		p->free = p->packet[p->free].next;
	} else {
		if (p->nr_touched >= NOC_PACKETS_MAX)
			return BASE_ERR_LIMIT;
		enum base_status s = base_grow(
			&p->packet, &p->capacity, (size_t)p->nr_touched + 1, sizeof *p->packet);
		if (s != BASE_OK)
			return s;
		*ret = p->nr_touched++;
	}
	p->nr_used++;
	return BASE_OK;
}

void noc_arrive(struct noc_arrivals *a, const struct noc_live *p, uint64_t cycle)
{
	a->list[a->nr++] = (struct noc_arrival){
		.id = p->id,
		.created_cycle = p->created,
		.sent_cycle = p->sent,
		.arrival_cycle = cycle,
		.source = p->source,
		.destination = p->destination,
		.size_flits = p->size,
		.class = p->class,
		.hops = p->hops,
	};
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool network_make(void *ret, size_t nr, size_t size)
{
	void **p = ret;
	*p = base_alloc(nr && size ? nr * size : 1);
	return *p != NULL;
}

static size_t in_lines(size_t bytes)
{
	return (bytes + NOC_LINE_BYTES - 1) / NOC_LINE_BYTES * NOC_LINE_BYTES;
}

/*
 * What hops touch, in one block that begins where a line does. In a large network nearly every
 * access is to another page: few large pages cost less, where the kernel has them.
 */
static bool make_lines(struct noc_network *n, size_t vcs, size_t all_vcs, size_t ports)
{
	size_t sets = (NOC_SETS * (size_t)n->words + 1) * sizeof(uint64_t);
	n->routes_bytes = n->route_max * sizeof(struct noc_route);
	n->input_bytes =
		(sizeof(struct noc_input_vc) + n->routes_bytes + n->buffer * sizeof(uint32_t) + 7) /
		8 * 8;
	n->sets_bytes = in_lines(sets);
	size_t input = in_lines(vcs * n->input_bytes), all = n->nr_routers * n->sets_bytes;
	size_t port = ports * sizeof *n->port, out = all_vcs * sizeof *n->out_vc;
	size_t size = input + all + port + out;
	uintptr_t to = size < (size_t)LARGE_PAGE_BYTES ? NOC_LINE_BYTES : LARGE_PAGE_BYTES;
	n->far = size > FAR_BYTES;
	size += to;
	if (!network_make(&n->lines, size, 1))
		return false;
	uintptr_t skip = (to - (uintptr_t)n->lines % to) % to;
	n->sets = (unsigned char *)n->lines + skip;
	n->input = n->sets + all;
	n->port = (struct noc_port_state *)(void *)(n->input + input);
	n->out_vc = (struct noc_output_vc *)(void *)(n->port + ports);
	if (to == LARGE_PAGE_BYTES)
		(void)madvise(
			n->sets, (size - skip) / to * to, MADV_HUGEPAGE); /* else small ones */
	return true;
}

static bool make_state(struct noc_network *n)
{
	size_t vcs = (size_t)n->nr_routers * n->router_vcs;
	size_t all_vcs = vcs + (size_t)n->nr_nodes * n->vcs;
	size_t ports = (size_t)n->nr_routers * n->ports;
	size_t queues = (size_t)n->nr_nodes * n->classes;
	return make_lines(n, vcs, all_vcs, ports) &&
	       network_make(&n->to_visit, n->far ? n->nr_routers : 0, sizeof *n->to_visit) &&
	       network_make(&n->waiting, ports * n->words, sizeof *n->waiting) &&
	       network_make(&n->busy_until, ports, sizeof *n->busy_until) &&
	       network_make(&n->router_active, n->nr_routers / 64 + 1, 8) &&
	       network_make(&n->node_active, n->nr_nodes / 64 + 1, 8) &&
	       network_make(&n->port_of, n->router_vcs, 2) &&
	       network_make(&n->queue, queues, sizeof *n->queue) &&
	       network_make(&n->last_class, n->nr_nodes, 1) &&
	       network_make(&n->inject_vc, n->nr_nodes, sizeof *n->inject_vc) &&
	       network_make(&n->inject_delay, n->nr_nodes, sizeof *n->inject_delay) &&
	       network_make(&n->node_free_vcs, n->nr_nodes, sizeof *n->node_free_vcs) &&
	       network_make(&n->ask_next, queues, sizeof *n->ask_next) &&
	       network_make(&n->ask_cycle, queues, sizeof *n->ask_cycle) &&
	       network_make(&n->ask_head, NOC_ASK_SLOTS, sizeof *n->ask_head) &&
	       (n->scratch = noc_scratch_new(n)) != NULL;
}

static enum base_status make_slots(
	struct noc_network *n, uint32_t longest, size_t links, struct base_err *err)
{
	uint32_t nr = 2;
	while (nr <= longest)
		nr *= 2;
	if ((uint64_t)nr * links > (uint64_t)1 << 27)
		return base_fail(err, BASE_ERR_LIMIT,
			"%zu {link|links} of up to %u {cycle|cycles}: together more than 2^27",
			links, longest);
	n->slot_mask = nr - 1;
	if (!network_make(&n->slot, nr, sizeof *n->slot))
		return base_fail(err, BASE_ERR_NOMEM, "a network");
	for (uint32_t i = 0; i < nr; i++)
		if (!network_make(&n->slot[i].flit, links, sizeof *n->slot[i].flit) ||
			!network_make(&n->slot[i].credit, links, sizeof *n->slot[i].credit))
			return base_fail(
				err, BASE_ERR_NOMEM, "a network of %zu {link|links}", links);
	return BASE_OK;
}

void noc_network_close(struct noc_network *n)
{
	if (!n)
		return;
	void *part[] = {n->pool.packet, n->arrivals.list, n->lines, n->to_visit, n->waiting,
		n->busy_until, n->router_active, n->node_active, n->port_of, n->queue,
		n->last_class, n->inject_vc, n->inject_delay, n->node_free_vcs, n->ask_next,
		n->ask_cycle, n->ask_head, n->scratch};
	for (size_t i = 0; i < BASE_COUNT(part); i++)
		base_free(part[i]);
	for (uint32_t i = 0; n->slot && i <= n->slot_mask; i++) {
		base_free(n->slot[i].flit);
		base_free(n->slot[i].credit);
	}
	base_free(n->slot);
	noc_ideal_close(n->ideal);
	noc_topology_fini(&n->topology);
	base_free(n);
}

/* ---- wiring ---------------------------------------------------------------------------------- */

static uint32_t network_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* What every port leads to and where its credits go; the longest delay, and how many links. */
static void wire(struct noc_network *n, uint32_t *ret_longest, size_t *ret_links)
{
	const struct noc_topology *t = &n->topology;
	const struct noc_config *c = &n->config;
	uint32_t crossbar = (uint32_t)c->crossbar_delay, credit = (uint32_t)c->credit_delay;
	uint32_t longest = 0, nodes_base = n->nr_routers * n->router_vcs;
	size_t links = n->nr_nodes * c->node_flits; /* flits that can be sent in one cycle */
	n->rounds = 1;
	for (uint32_t r = 0; r < n->nr_routers; r++) {
		for (uint32_t p = 0; p < n->ports; p++) {
			const struct noc_port *port = noc_topology_port(t, r, p);
			uint32_t own = r * n->ports + p;
			struct noc_output *out = &n->port[own].output;
			if (port->router != UINT32_MAX) {
				*out = (struct noc_output){
					.vc = port->router * n->router_vcs + port->port * n->vcs,
					.router = port->router,
					.delay = crossbar + port->latency + 1,
					.busy_cycles = port->flits > 1 ? 0 : port->flit_cycles,
					.flits = port->flits};
				n->port[port->router * n->ports + port->port].back =
					(struct noc_back){.vc = own * n->vcs,
						.router = r,
						.delay = port->latency + 1u + credit,
						.flits = port->flits};
			} else if (port->node != UINT32_MAX) {
				*out = (struct noc_output){.vc = own * n->vcs,
					.router = r,
					.delay = crossbar + 2,
					.busy_cycles = port->flits == 1,
					.flits = port->flits,
					.eject = NOC_FLIT_EJECT};
				/* The injection link is as long as the ejection link. */
				n->inject_vc[port->node] = own * n->vcs;
				n->inject_delay[port->node] = 2;
				n->port[own].back =
					(struct noc_back){.vc = nodes_base + port->node * n->vcs,
						.router = n->nr_routers + port->node,
						.delay = 2 + credit,
						.flits = port->flits};
			} else {
				continue;
			}
			links += out->flits;
			n->rounds = network_max(n->rounds, out->flits);
			n->narrow |= out->busy_cycles > 1;
			longest = network_max(
				longest, network_max(out->delay, port->latency + 2u + credit));
		}
	}
	*ret_longest = longest + 2;
	*ret_links = links;
}

static void network_fill(struct noc_network *n)
{
	size_t vcs = (size_t)n->nr_routers * n->router_vcs;
	size_t all_vcs = vcs + (size_t)n->nr_nodes * n->vcs;
	for (size_t i = 0; i < all_vcs; i++) {
		n->out_vc[i].credit = (uint16_t)n->buffer;
		n->out_vc[i].owner = UINT16_MAX;
	}
	uint64_t all = n->vcs == 64 ? ~(uint64_t)0 : ((uint64_t)1 << n->vcs) - 1;
	for (size_t i = 0; i < (size_t)n->nr_routers * n->ports; i++)
		n->port[i].free_vcs = all;
	for (size_t i = 0; i < n->nr_nodes; i++)
		n->node_free_vcs[i] = all;
	for (uint32_t i = 0; i < n->router_vcs; i++)
		n->port_of[i] = (uint16_t)(i / n->vcs);
	for (size_t i = 0; i < (size_t)n->nr_nodes * n->classes; i++)
		n->queue[i] = (struct noc_queue){
			.first = NOC_NONE, .last = NOC_NONE, .vc = UINT8_MAX, .last_vc = UINT8_MAX};
	for (size_t i = 0; i < NOC_ASK_SLOTS; i++)
		n->ask_head[i] = NOC_NONE;
}

static enum base_status open_routers(struct noc_network *n, struct base_err *err)
{
	const struct noc_config *c = &n->config;
	enum base_status s = noc_topology_init(&n->topology, c, err);
	if (s != BASE_OK)
		return s;
	n->nr_routers = n->topology.nr_routers;
	n->nr_nodes = n->topology.nr_nodes;
	n->ports = n->topology.ports;
	n->vcs = (uint32_t)c->vcs;
	n->classes = (uint32_t)c->classes;
	n->buffer = (uint32_t)c->buffer_flits;
	n->router_vcs = n->ports * n->vcs;
	n->words = (n->router_vcs + 63) / 64;
	n->lookahead = !c->routing_delay;
	n->speculative = c->speculative;
	n->slow = c->vc_alloc_delay > 1 || c->sw_alloc_delay > 1 || c->routing_delay > 1;
	if (n->speculative && n->slow)
		return base_fail(err, BASE_ERR_USAGE,
			"speculative = 1 needs delays of one cycle: vc_alloc_delay, "
			"sw_alloc_delay; routing_delay 0 or 1");
	if (n->classes > n->vcs)
		return base_fail(err, BASE_ERR_USAGE, "classes = %u: more than vcs = %u",
			n->classes, n->vcs);
	if (((uint64_t)n->nr_routers * n->router_vcs + (uint64_t)n->nr_nodes * n->vcs) *
			(n->buffer + 8) >
		(uint64_t)1 << 30)
		return base_fail(err, BASE_ERR_LIMIT,
			"%u {router|routers} of %u {port|ports} with %u virtual {channel|channels} "
			"of %u {flit|flits}: too large",
			n->nr_routers, n->ports, n->vcs, n->buffer);
	for (uint32_t i = 0; i < n->classes; i++) {
		n->class_first[i] = i * n->vcs / n->classes;
		n->class_last[i] = (i + 1) * n->vcs / n->classes - 1;
	}
	s = noc_routing_choose(n, err);
	if (s != BASE_OK)
		return s;
	if (!make_state(n))
		return base_fail(
			err, BASE_ERR_NOMEM, "a network of %u {router|routers}", n->nr_routers);
	network_fill(n);
	uint32_t longest;
	size_t links;
	wire(n, &longest, &links);
	if (n->rounds > 1 && n->slow)
		return base_fail(err, BASE_ERR_USAGE,
			"links wider than a flit need delays of one cycle: vc_alloc_delay, "
			"sw_alloc_delay; routing_delay 0 or 1");
	n->plain = noc_plain_applies(n);
	return make_slots(n, longest, links, err);
}

enum base_status noc_network_open(
	struct noc_network **ret, const struct noc_config *config, struct base_err *err)
{
	struct noc_network *n = base_alloc(sizeof *n);
	if (!n)
		return base_fail(err, BASE_ERR_NOMEM, "a network");
	n->config = *config;
	n->pool.free = NOC_NONE;
	n->classes = (uint32_t)config->classes;
	noc_random_init(&n->random, config->seed);
	enum base_status s = config->topology == NOC_TOPOLOGY_IDEAL ? noc_ideal_open(n, err)
								    : open_routers(n, err);
	if (s != BASE_OK) {
		noc_network_close(n);
		return s;
	}
	*ret = n;
	return BASE_OK;
}

/* ---- packets in ------------------------------------------------------------------------------ */

static enum base_status network_add_packet(
	struct noc_network *n, const struct noc_packet *p, struct base_err *err)
{
	if (p->source >= n->nr_nodes || p->destination >= n->nr_nodes || !p->size_flits ||
		p->size_flits > NOC_PACKET_FLITS_MAX || p->class >= n->classes)
		return base_fail(err, BASE_ERR_USAGE,
			"a packet of %u {flit|flits} and class %u from %u to %u: %u {node|nodes}, "
			"%u {class|classes}",
			p->size_flits, p->class, p->source, p->destination, n->nr_nodes,
			n->classes);
	uint32_t i;
	enum base_status s = noc_pool_take(&n->pool, &i);
	if (s != BASE_OK)
		return base_fail(
			err, s, "%u {packet is|packets are} queued or under way", n->pool.nr_used);
	n->pool.packet[i] = (struct noc_live){.id = p->id,
		.created = n->now,
		.source = p->source,
		.destination = p->destination,
		.size = p->size_flits,
		.left = p->size_flits,
		.class = (uint8_t)p->class};
	if (!n->ideal) {
		noc_enqueue(n, i);
		return BASE_OK;
	}
	s = noc_ideal_send(n, i, p->extra_cycles, err);
	if (s != BASE_OK)
		noc_pool_give(&n->pool, i);
	return s;
}

enum base_status noc_network_send(
	struct noc_network *n, const struct noc_packet *p, struct base_err *err)
{
	return network_add_packet(n, p, err);
}

enum base_status noc_network_send_multicast(struct noc_network *n, const struct noc_packet *p,
	const uint32_t *destination, size_t nr, struct base_err *err)
{
	struct noc_packet copy = *p;
	for (size_t i = 0; i < nr; i++) {
		copy.destination = destination[i];
		enum base_status s = network_add_packet(n, &copy, err);
		if (s != BASE_OK)
			return s;
	}
	return BASE_OK;
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void eject(struct noc_network *n, const struct noc_flit_event *e)
{
	struct noc_live *p = &n->pool.packet[e->flit >> NOC_FLIT_SHIFT];
	struct noc_slot *s = &n->slot[(n->now + 2 + n->config.credit_delay) & n->slot_mask];
	s->credit[s->nr_credits++] = (struct noc_credit_event){.vc = e->vc, .router = e->router};
	if (e->flit & NOC_FLIT_TAIL) {
		noc_arrive(&n->arrivals, p, n->now);
		noc_pool_give(&n->pool, e->flit >> NOC_FLIT_SHIFT);
	}
}

static void network_arrive(struct noc_network *n, const struct noc_flit_event *e)
{
	struct noc_input_vc *in = noc_input(n, e->vc);
	uint32_t at = (uint32_t)in->first + in->count;
	at -= at >= n->buffer ? n->buffer : 0;
	noc_flits(n, in)[at] = e->flit;
	in->count++;
	uint32_t own = e->vc - e->router * n->router_vcs;
	if (in->state == NOC_VC_IDLE)
		noc_router_begin(n, e->router, own);
	else if (in->state == NOC_VC_ACTIVE && in->count == 1 && n->out_vc[in->out].credit)
		noc_set_bit(noc_to_sw(n, e->router), own);
	else
		return;
	noc_set_bit(n->router_active, e->router);
}

/* A large network is not in the nearest cache: what arrives next is asked for while others are
 * handled. */
static inline void fetch_flit(const struct noc_network *n, const struct noc_flit_event *e)
{
	__builtin_prefetch(&n->pool.packet[e->flit >> NOC_FLIT_SHIFT], 1);
	if (e->flit & NOC_FLIT_EJECT)
		return;
	__builtin_prefetch(noc_input(n, e->vc), 1);
	__builtin_prefetch(noc_sets(n, e->router), 1);
}

static void take_credit(struct noc_network *n, const struct noc_credit_event *e)
{
	if (n->out_vc[e->vc].credit++)
		return; /* had some already: whoever could use it is asking */
	if (e->router >= n->nr_routers) {
		noc_set_bit(n->node_active, e->router - n->nr_routers);
		return;
	}
	uint32_t owner = n->out_vc[e->vc].owner;
	if (owner == UINT16_MAX)
		return;
	struct noc_input_vc *in = noc_input(n, e->router * n->router_vcs + owner);
	if (!in->count)
		return;
	noc_set_bit(noc_to_sw(n, e->router), owner);
	noc_set_bit(n->router_active, e->router);
}

/* The same, where each is asked for before it is visited. */
static void step_far_routers(struct noc_network *n)
{
	enum { FIRST = 18, SECOND = 12, THIRD = 5 };
	uint32_t nr = 0;
	for (uint32_t w = 0; w <= n->nr_routers / 64; w++)
		for (uint64_t bits = n->router_active[w]; bits; bits &= bits - 1)
			n->to_visit[nr++] = w * 64 + (uint32_t)__builtin_ctzll(bits);
	for (uint32_t i = 0; i < nr; i++) {
		if (i + FIRST < nr)
			__builtin_prefetch(noc_sets(n, n->to_visit[i + FIRST]), 1);
		if (i + SECOND < nr)
			noc_router_fetch(n, n->to_visit[i + SECOND]);
		if (i + THIRD < nr)
			noc_router_fetch_near(n, n->to_visit[i + THIRD]);
		bool more = n->plain ? noc_plain_step(n, n->to_visit[i])
				     : noc_router_step(n, n->to_visit[i]);
		if (!more)
			noc_clear_bit(n->router_active, n->to_visit[i]);
	}
}

static void step_routers(struct noc_network *n)
{
	for (uint32_t w = 0; w <= n->nr_routers / 64; w++) {
		for (uint64_t bits = n->router_active[w]; bits; bits &= bits - 1) {
			uint32_t b = (uint32_t)__builtin_ctzll(bits);
			if (!noc_router_step(n, w * 64 + b))
				n->router_active[w] &= ~((uint64_t)1 << b);
		}
	}
}

static void take_flits(struct noc_network *n, const struct noc_slot *s)
{
	uint32_t ejected = 0;
	for (uint32_t i = 0; i < s->nr_flits; i++) {
		if (n->far && i + AHEAD < s->nr_flits)
			fetch_flit(n, &s->flit[i + AHEAD]);
		if (s->flit[i].flit & NOC_FLIT_EJECT) {
			eject(n, &s->flit[i]);
			ejected++;
		} else if (n->plain) {
			noc_plain_arrive(n, &s->flit[i]);
		} else {
			network_arrive(n, &s->flit[i]);
		}
	}
	n->nr_events += ejected; /* their credits */
	n->counts.ejected += ejected;
	n->counts.buffer_writes += s->nr_flits - ejected;
	n->buffered += s->nr_flits - ejected;
}

static enum base_status network_step(struct noc_network *n, struct base_err *err)
{
	struct noc_slot *s = &n->slot[n->now & n->slot_mask];
	if (base_grow(&n->arrivals.list, &n->arrivals.capacity, s->nr_flits,
		    sizeof *n->arrivals.list) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "arrivals of a cycle");
	take_flits(n, s);
	for (uint32_t i = 0; i < s->nr_credits; i++) {
		if (n->far && i + AHEAD < s->nr_credits)
			__builtin_prefetch(&n->out_vc[s->credit[i + AHEAD].vc], 1);
		take_credit(n, &s->credit[i]);
	}
	n->nr_events -= s->nr_flits + s->nr_credits;
	s->nr_flits = s->nr_credits = 0;
	if (n->nr_asks) {
		enum base_status status = noc_ask_due(n, err);
		if (status != BASE_OK)
			return status;
	}
	noc_inject(n);
	if (n->far)
		step_far_routers(n);
	else if (n->plain)
		noc_plain_cycle(n);
	else
		step_routers(n);
	n->now++;
	return BASE_OK;
}

static bool is_active(const struct noc_network *n)
{
	for (uint32_t w = 0; w <= n->nr_routers / 64; w++)
		if (n->router_active[w])
			return true;
	for (uint32_t w = 0; w <= n->nr_nodes / 64; w++)
		if (n->node_active[w])
			return true;
	return false;
}

/* The next cycle in which something happens, from now on. */
static uint64_t next_cycle(const struct noc_network *n)
{
	if (is_active(n))
		return n->now;
	uint64_t next = n->nr_asks ? noc_ask_first(n) : UINT64_MAX;
	for (uint64_t c = n->now; n->nr_events && c <= n->now + n->slot_mask && c < next; c++) {
		const struct noc_slot *s = &n->slot[c & n->slot_mask];
		if (s->nr_flits || s->nr_credits)
			return c;
	}
	return next;
}

static enum base_status run_routers(struct noc_network *n, uint64_t until, struct base_err *err)
{
	while (n->now < until && !n->arrivals.nr) {
		uint64_t next = next_cycle(n);
		if (next == UINT64_MAX && n->pool.nr_used)
			return base_fail(err, BASE_ERR_USAGE,
				"deadlock in cycle %llu: %u {packet|packets} can never move again",
				(unsigned long long)n->now, n->pool.nr_used);
		n->now = next < until ? next : until;
		if (n->now == until)
			break;
		enum base_status s = network_step(n, err);
		if (s != BASE_OK)
			return s;
	}
	return BASE_OK;
}

enum base_status noc_network_run(struct noc_network *n, uint64_t until_cycle,
	const struct noc_arrival **ret, size_t *ret_nr, struct base_err *err)
{
	n->arrivals.nr = 0;
	enum base_status s =
		n->ideal ? noc_ideal_run(n, until_cycle, err) : run_routers(n, until_cycle, err);
	*ret = n->arrivals.list;
	*ret_nr = s == BASE_OK ? n->arrivals.nr : 0;
	return s;
}

uint32_t noc_network_nodes(const struct noc_network *n)
{
	return n->nr_nodes;
}

uint64_t noc_network_now_cycle(const struct noc_network *n)
{
	return n->now;
}

uint64_t noc_network_pending(const struct noc_network *n)
{
	return n->pool.nr_used;
}

enum noc_routing noc_network_routing(const struct noc_network *n)
{
	return (enum noc_routing)n->config.routing;
}

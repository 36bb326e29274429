/* SPDX-License-Identifier: Apache-2.0 */
/*
 * router_plain.c - a cycle of the usual router: delays of one cycle, iSLIP once, one way for each
 * packet, links of a flit a cycle, at most 64 input VCs. It decides what router.c decides, in the
 * same order, without what that needs for the others; a test compares the two. Sets of input VCs,
 * of output VCs and of ports are words of bits.
 *
 * Where a way depends on the packet alone (n->fixed), it is found when the packet comes to the
 * front of its VC: in the cycle in which it would be otherwise, but the packet is at hand then.
 */
#include "noc/network/network_private.h"

enum { SET_MAX = 64 };

struct here {
	struct noc_network *n;
	uint64_t *sets;
	unsigned char *input;
	struct noc_port_state *port;
	struct noc_output_vc *out_vc;
	uint32_t router, vcs;
	uint64_t to_sw; /* in the next cycle */
	uint64_t woken; /* input VCs that get to_vc */
};
struct match {
	uint32_t in, out, vc; /* ports; input VC */
};

#define EACH_BIT(set, i)                                                                           \
	for (uint64_t bits_ = (set), i; bits_ && ((i = (uint64_t)__builtin_ctzll(bits_)), true);   \
		bits_ &= bits_ - 1)

bool noc_plain_applies(const struct noc_network *n)
{
	const struct noc_config *c = &n->config;
	return n->words == 1 && n->route_max == 1 && !n->slow && !n->speculative && !n->narrow &&
	       n->rounds == 1 && c->iterations == 1 && c->vc_allocator == NOC_ALLOCATOR_ISLIP &&
	       c->sw_allocator == NOC_ALLOCATOR_ISLIP;
}

static inline uint64_t bit(uint64_t i)
{
	return (uint64_t)1 << i;
}

/* The first member at or after `from`, else the first at all; the set is not empty. */
static inline uint32_t router_plain_first_from(uint64_t set, uint32_t from)
{
	uint64_t later = set & (~(uint64_t)0 << from);
	return (uint32_t)__builtin_ctzll(later ? later : set);
}

static inline uint16_t router_plain_after(uint32_t i, uint32_t nr)
{
	return (uint16_t)(i + 1 == nr ? 0 : i + 1);
}

static inline struct noc_input_vc *router_plain_input_at(const struct here *h, uint64_t vc)
{
	return (struct noc_input_vc *)(void *)(h->input + vc * h->n->input_bytes);
}

/* ---- routing --------------------------------------------------------------------------------- */

static inline void route(
	struct noc_network *n, uint32_t router, uint32_t vc, struct noc_input_vc *in, uint32_t flit)
{
	struct noc_live *p = &n->pool.packet[flit >> NOC_FLIT_SHIFT];
	p->hops++;
	in->state = NOC_VC_WAITING;
	if (n->way) {
		*noc_routes(in) = (struct noc_route){
			.port = n->way[(size_t)router * n->nr_nodes + p->destination],
			.vc_first = (uint16_t)n->class_first[p->class],
			.vc_last = (uint16_t)n->class_last[p->class]};
		return;
	}
	uint32_t port = n->port_of[vc];
	(void)n->route(n, router, port, vc - port * n->vcs, p, noc_routes(in));
}

/* A packet's head is at the front of an input VC. */
static inline void router_plain_begin(struct noc_network *n, uint64_t *sets, uint32_t router,
	uint32_t vc, struct noc_input_vc *in, uint32_t flit)
{
	in->state = NOC_VC_ROUTING;
	if (n->fixed || n->lookahead)
		route(n, router, vc, in, flit);
	sets[n->lookahead ? NOC_TO_VC : NOC_TO_ROUTE] |= bit(vc);
}

static inline void route_others(struct here *h, uint64_t to_route)
{
	if (h->n->fixed)
		return;
	EACH_BIT(to_route, vc)
	{
		struct noc_input_vc *in = router_plain_input_at(h, vc);
		route(h->n, h->router, (uint32_t)vc, in, noc_flits(h->n, in)[in->first]);
	}
}

/* ---- virtual channels ------------------------------------------------------------------------ */

static void router_plain_wait_for_vc(struct here *h, uint32_t vc, uint32_t port)
{
	h->n->waiting[(size_t)h->router * h->n->ports + port] |= bit(vc);
	h->sets[NOC_SETS] |= bit(port);
}

/* Output VCs that several want: each grants one of them, the others want it no longer. */
static __attribute__((noinline)) void grant_shared(
	const struct here *h, uint64_t asking, uint64_t shared, uint64_t *want)
{
	EACH_BIT(shared, out)
	{
		uint64_t by = 0;
		for (uint64_t a = asking; a; a &= a - 1)
			by |= (want[__builtin_ctzll(a)] >> out & 1) << __builtin_ctzll(a);
		uint32_t in = router_plain_first_from(by, h->out_vc[out].vc_grant_next);
		for (by &= ~bit(in); by; by &= by - 1)
			want[__builtin_ctzll(by)] &= ~bit(out);
	}
}

static inline void router_plain_take_vc(struct here *h, uint32_t vc, uint32_t out)
{
	struct noc_network *n = h->n;
	struct noc_input_vc *in = router_plain_input_at(h, vc);
	struct noc_output_vc *own = &h->out_vc[out];
	uint32_t port = noc_routes(in)->port, out_vc = out - port * h->vcs;
	h->port[port].free_vcs &= ~bit(out_vc);
	own->owner = (uint16_t)vc;
	own->vc_grant_next = router_plain_after(vc, n->router_vcs);
	in->vc_accept_next = router_plain_after(out, n->router_vcs);
	in->state = NOC_VC_ACTIVE;
	in->out = h->router * n->router_vcs + out;
	in->out_port = (uint16_t)port;
	in->out_vc = (uint16_t)out_vc;
	h->to_sw |= (uint64_t)(own->credit != 0) << vc;
}

/* Returns the inputs that ask again. */
static inline uint64_t router_plain_allocate_vcs(struct here *h, uint64_t to_vc)
{
	uint64_t want[SET_MAX], once = 0, twice = 0, asking = 0, left = 0;
	EACH_BIT(to_vc, vc)
	{
		const struct noc_route *r = noc_routes(router_plain_input_at(h, vc));
		uint64_t free = h->port[r->port].free_vcs & (~(uint64_t)0 >> (63 - r->vc_last)) &
				(~(uint64_t)0 << r->vc_first);
		if (!free) {
			router_plain_wait_for_vc(h, (uint32_t)vc, r->port);
			continue;
		}
		free <<= r->port * h->vcs;
		want[vc] = free;
		asking |= bit(vc);
		twice |= once & free;
		once |= free;
	}
	if (twice)
		grant_shared(h, asking, twice, want);
	EACH_BIT(asking, vc)
	{
		if (want[vc])
			router_plain_take_vc(h, (uint32_t)vc,
				router_plain_first_from(
					want[vc], router_plain_input_at(h, vc)->vc_accept_next));
		else
			left |= bit(vc);
	}
	return left;
}

/* ---- the crossbar ---------------------------------------------------------------------------- */

/* Ports that several ask for: each output grants an input, each input accepts an output. */
static __attribute__((noinline)) uint32_t match_shared(
	const struct here *h, struct match *match, uint32_t nr, uint64_t outs)
{
	uint64_t vcs_of[NOC_PORTS_MAX], ins_of[NOC_PORTS_MAX], offers[NOC_PORTS_MAX], seen = 0;
	uint64_t offered = 0, all = bit(h->vcs - 1) * 2 - 1;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t out = match[i].out;
		if (!(seen >> out & 1))
			vcs_of[out] = ins_of[out] = 0;
		seen |= bit(out);
		vcs_of[out] |= bit(match[i].vc);
		ins_of[out] |= bit(match[i].in);
		offers[match[i].in] = 0;
	}
	EACH_BIT(outs, out)
	{
		uint32_t in = router_plain_first_from(ins_of[out], h->port[out].sw_grant_next);
		offers[in] |= bit(out);
		offered |= bit(in);
	}
	nr = 0;
	EACH_BIT(offered, in)
	{
		uint32_t out = router_plain_first_from(offers[in], h->port[in].sw_accept_next);
		uint64_t own = vcs_of[out] >> (in * h->vcs) & all;
		match[nr++] = (struct match){.in = (uint32_t)in,
			.out = out,
			.vc = (uint32_t)in * h->vcs +
			      router_plain_first_from(own, h->port[in].sw_vc_next)};
	}
	return nr;
}

static inline uint32_t router_plain_allocate_switch(
	const struct here *h, uint64_t to_sw, struct match *match)
{
	uint64_t ins = 0, outs = 0, twice = 0;
	uint32_t nr = 0;
	EACH_BIT(to_sw, vc)
	{
		uint32_t in = h->n->port_of[vc], out = router_plain_input_at(h, vc)->out_port;
		twice |= (ins & bit(in)) | (outs & bit(out));
		ins |= bit(in);
		outs |= bit(out);
		match[nr++] = (struct match){.in = in, .out = out, .vc = (uint32_t)vc};
	}
	return twice ? match_shared(h, match, nr, outs) : nr;
}

static inline void router_plain_release_vc(struct here *h, const struct noc_input_vc *in)
{
	h->port[in->out_port].free_vcs |= bit(in->out_vc);
	h->n->out_vc[in->out].owner = UINT16_MAX;
	if (!(h->sets[NOC_SETS] >> in->out_port & 1))
		return;
	h->sets[NOC_SETS] &= ~bit(in->out_port);
	uint64_t *waiting = &h->n->waiting[(size_t)h->router * h->n->ports + in->out_port];
	h->woken |= *waiting;
	*waiting = 0;
}

/* The front flit of an input VC crosses to its output. */
static inline void router_plain_send_flit(struct here *h, const struct match *m)
{
	struct noc_network *n = h->n;
	struct noc_input_vc *in = router_plain_input_at(h, m->vc);
	uint32_t *flits = noc_flits(n, in), flit = flits[in->first];
	struct noc_port_state *to = &h->port[m->out], *from = &h->port[m->in];
	in->first = router_plain_after(in->first, n->buffer);
	in->count--;
	to->sent_flits++;
	to->sw_grant_next = router_plain_after(m->in, n->ports);
	from->sw_accept_next = router_plain_after(m->out, n->ports);
	from->sw_vc_next = router_plain_after(m->vc - m->in * h->vcs, h->vcs);
	uint16_t credit = --n->out_vc[in->out].credit;
	struct noc_slot *s = &n->slot[(n->now + to->output.delay) & n->slot_mask];
	s->flit[s->nr_flits++] = (struct noc_flit_event){.vc = to->output.vc + in->out_vc,
		.router = to->output.router,
		.flit = flit | to->output.eject};
	s = &n->slot[(n->now + from->back.delay) & n->slot_mask];
	s->credit[s->nr_credits++] = (struct noc_credit_event){
		.vc = from->back.vc + (m->vc - m->in * h->vcs), .router = from->back.router};
	if (flit & NOC_FLIT_TAIL) {
		h->to_sw &= ~bit(m->vc);
		router_plain_release_vc(h, in);
		if (in->count)
			router_plain_begin(n, h->sets, h->router, m->vc, in, flits[in->first]);
		else
			in->state = NOC_VC_IDLE;
	} else if (!in->count || !credit) {
		h->to_sw &= ~bit(m->vc);
	}
}

/* ---- a cycle --------------------------------------------------------------------------------- */

static inline bool router_plain_step(struct noc_network *n, uint32_t router)
{
	struct match match[SET_MAX];
	struct here h = {.n = n,
		.sets = noc_sets(n, router),
		.input = n->input + (size_t)router * n->router_vcs * n->input_bytes,
		.port = n->port + (size_t)router * n->ports,
		.out_vc = n->out_vc + (size_t)router * n->router_vcs,
		.router = router,
		.vcs = n->vcs};
	uint64_t to_route = h.sets[NOC_TO_ROUTE], to_vc = h.sets[NOC_TO_VC];
	uint64_t to_sw = h.sets[NOC_TO_SW];
	h.sets[NOC_TO_ROUTE] = h.sets[NOC_TO_VC] = 0;
	h.to_sw = to_sw;
	uint64_t left = router_plain_allocate_vcs(&h, to_vc);
	uint32_t nr = router_plain_allocate_switch(&h, to_sw, match);
	route_others(&h, to_route);
	for (uint32_t i = 0; i < nr; i++)
		router_plain_send_flit(&h, &match[i]);
	n->nr_events += 2 * nr;
	n->buffered -= nr;
	h.sets[NOC_TO_VC] |= left | to_route | h.woken;
	h.sets[NOC_TO_SW] = h.to_sw;
	return h.sets[NOC_TO_VC] | h.sets[NOC_TO_SW] | h.sets[NOC_TO_ROUTE];
}

bool noc_plain_step(struct noc_network *n, uint32_t router)
{
	return router_plain_step(n, router);
}

void noc_plain_arrive(struct noc_network *n, const struct noc_flit_event *e)
{
	struct noc_input_vc *in = noc_input(n, e->vc);
	uint64_t *sets = noc_sets(n, e->router);
	uint32_t at = (uint32_t)in->first + in->count, own = e->vc - e->router * n->router_vcs;
	at -= at >= n->buffer ? n->buffer : 0;
	noc_flits(n, in)[at] = e->flit;
	in->count++;
	if (in->state == NOC_VC_IDLE)
		router_plain_begin(n, sets, e->router, own, in, e->flit);
	else if (in->state == NOC_VC_ACTIVE && in->count == 1 && n->out_vc[in->out].credit)
		sets[NOC_TO_SW] |= bit(own);
	else
		return;
	noc_set_bit(n->router_active, e->router);
}

void noc_plain_cycle(struct noc_network *n)
{
	for (uint32_t w = 0; w <= n->nr_routers / 64; w++) {
		uint64_t idle = 0;
		for (uint64_t bits = n->router_active[w]; bits; bits &= bits - 1) {
			uint32_t b = (uint32_t)__builtin_ctzll(bits);
			idle |= (uint64_t)!router_plain_step(n, w * 64 + b) << b;
		}
		n->router_active[w] &= ~idle;
	}
}

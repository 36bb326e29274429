/* SPDX-License-Identifier: Apache-2.0 */
/*
 * router.c - one cycle of a router: virtual channel allocation, switch allocation, routing; then
 * what they decided.
 *
 * A router's input VCs are members of sets of bits: to_route, to_vc (want an output VC), to_sw
 * (have an output VC, a flit and a credit) and, with delays above one cycle, pending. A packet that
 * finds all its output VCs taken leaves to_vc and waits at the output port until a tail frees one.
 * So a router where nothing can move has empty sets and is not visited. The allocators are those of
 * N. McKeown, "The iSLIP scheduling algorithm" (1999).
 */
#include "noc/network/network_private.h"

#include <string.h>

#define SPECULATIVE 128u /* of a label: asked without having an output VC */

struct noc_scratch {
	uint64_t *vc_request;             /* [output VC]: input VCs; `words` each */
	uint16_t *vc_touched, *vc_asking; /* output VCs with requests; input VCs that request */
	uint16_t *vc_grant;               /* [input VC]: output VC */
	uint16_t *vc_offer;   /* [input VC]: the best output VC that was granted to it */
	uint16_t *vc_offered; /* input VCs */
	uint64_t sw_request[NOC_PORTS_MAX], sw_wanted[NOC_PORTS_MAX]; /* of outputs; of inputs */
	uint16_t label[NOC_PORTS_MAX][NOC_PORTS_MAX];                 /* [input][output] */
	uint16_t sw_offer[NOC_PORTS_MAX];
	uint64_t asked[NOC_PORTS_MAX]; /* input VCs in the first round, with links wider than a flit
					*/
	struct {
		uint16_t in, out, label;
	} match[NOC_PORTS_MAX];
};

struct noc_scratch *noc_scratch_new(const struct noc_network *n)
{
	size_t vcs = n->router_vcs, words = vcs * n->words;
	size_t size = sizeof(struct noc_scratch) + words * 8 + 5 * vcs * sizeof(uint16_t);
	struct noc_scratch *s = base_alloc(size);
	if (!s)
		return NULL;
	s->vc_request = (uint64_t *)(void *)(s + 1);
	s->vc_touched = (uint16_t *)(void *)(s->vc_request + words);
	s->vc_asking = s->vc_touched + vcs;
	s->vc_grant = s->vc_asking + vcs;
	s->vc_offer = s->vc_grant + vcs;
	s->vc_offered = s->vc_offer + vcs;
	return s;
}

/* What a step works on. `words` is a constant where it is inlined. */
struct here {
	struct noc_network *n;
	struct noc_scratch *s;
	uint32_t router, first_vc, first_port;
	uint64_t *to_route, *to_vc, *to_sw, *pending, *awaited;
	unsigned char *input;
	struct noc_port_state *port;
	struct noc_output_vc *out_vc;
};

static inline struct noc_input_vc *router_input_at(const struct here *h, uint64_t vc)
{
	return (struct noc_input_vc *)(void *)(h->input + vc * h->n->input_bytes);
}

#define EACH_BIT(set, words, i)                                                                    \
	for (uint32_t w_ = 0; w_ < (words); w_++)                                                  \
		for (uint64_t bits_ = (set)[w_], i;                                                \
			bits_ && ((i = w_ * 64 + (uint64_t)__builtin_ctzll(bits_)), true);         \
			bits_ &= bits_ - 1)

/* The first member at or after `from`, else the first at all; the set is not empty. */
static inline uint32_t round_robin(const uint64_t *set, uint32_t words, uint32_t from)
{
	uint32_t w = words == 1 ? 0 : from >> 6;
	uint64_t bits = set[w] & (~(uint64_t)0 << (from & 63));
	while (!bits) {
		w = w + 1 == words ? 0 : w + 1;
		bits = set[w];
	}
	return w * 64 + (uint32_t)__builtin_ctzll(bits);
}

static inline uint32_t router_ahead(uint32_t i, uint32_t from, uint32_t nr)
{
	return i >= from ? i - from : i + nr - from;
}

static inline uint64_t vc_range(const struct noc_route *r)
{
	return (~(uint64_t)0 >> (63 - r->vc_last)) & (~(uint64_t)0 << r->vc_first);
}

static inline uint64_t free_of(const struct here *h, const struct noc_route *r)
{
	return h->port[r->port].free_vcs & vc_range(r);
}

static inline uint64_t router_made(const struct here *h, uint32_t vc)
{
	struct noc_input_vc *in = router_input_at(h, vc);
	uint32_t flit = noc_flits(h->n, in)[in->first];
	return h->n->pool.packet[flit >> NOC_FLIT_SHIFT].created;
}

/* ---- virtual channel allocation -------------------------------------------------------------- */

static inline void router_wait_for_vc(struct here *h, uint32_t vc, uint32_t words)
{
	const struct noc_network *n = h->n;
	const struct noc_route *r = noc_routes(router_input_at(h, vc));
	noc_clear_bit(h->to_vc, vc);
	for (unsigned i = 0; i < router_input_at(h, vc)->nr_routes; i++) {
		noc_set_bit(n->waiting + (size_t)(h->first_port + r[i].port) * words, vc);
		noc_set_bit(h->awaited, r[i].port);
	}
}

/* What was decided now takes effect at the end of the delay's last cycle (delays above one cycle).
 */
static void put_off(struct here *h, uint32_t vc, uint32_t result, uint64_t delay)
{
	router_input_at(h, vc)->result = (uint16_t)result;
	router_input_at(h, vc)->ready = (uint16_t)(h->n->now + delay - 1);
	noc_set_bit(h->pending, vc);
}

/* Requests of all who want an output VC; returns how many output VCs are wanted. */
static inline uint32_t vc_requests(struct here *h, uint32_t words, uint32_t *ret_asking)
{
	const struct noc_network *n = h->n;
	struct noc_scratch *s = h->s;
	uint64_t touched[NOC_PORTS_MAX];
	uint32_t nr = 0, asking = 0;
	for (uint32_t w = 0; w < words; w++)
		touched[w] = 0;
	EACH_BIT(h->to_vc, words, vc)
	{
		const struct noc_route *r = noc_routes(router_input_at(h, vc));
		bool any = false;
		for (unsigned i = 0; i < router_input_at(h, vc)->nr_routes; i++) {
			for (uint64_t f = free_of(h, &r[i]); f; f &= f - 1) {
				uint32_t o = (uint32_t)__builtin_ctzll(f);
				uint32_t out = r[i].port * n->vcs + o;
				uint64_t *set = s->vc_request + (size_t)out * words;
				if (!noc_has_bit(touched, out)) {
					noc_set_bit(touched, out);
					s->vc_touched[nr++] = (uint16_t)out;
					memset(set, 0, words * sizeof *set);
				}
				noc_set_bit(set, (uint32_t)vc);
				any = true;
			}
		}
		if (any) {
			s->vc_asking[asking++] = (uint16_t)vc;
			s->vc_grant[vc] = UINT16_MAX;
		} else if (n->slow) {
			put_off(h, (uint32_t)vc, UINT16_MAX, n->config.vc_alloc_delay);
			noc_clear_bit(h->to_vc, (uint32_t)vc);
		} else {
			router_wait_for_vc(h, (uint32_t)vc, words);
		}
	}
	*ret_asking = asking;
	return nr;
}

static void vc_match(struct here *h, uint32_t in, uint32_t out, uint32_t nr_vcs, bool move)
{
	h->s->vc_grant[in] = (uint16_t)out;
	if (!move)
		return;
	h->out_vc[out].vc_grant_next = (uint16_t)(in + 1 == nr_vcs ? 0 : in + 1);
	router_input_at(h, in)->vc_accept_next = (uint16_t)(out + 1 == nr_vcs ? 0 : out + 1);
}

/* One input VC alone: every output VC it asks for is granted. Most cycles of most routers are this.
 */
static inline void vc_alone(struct here *h, uint32_t in, uint32_t nr)
{
	const struct noc_network *n = h->n;
	uint32_t from = router_input_at(h, in)->vc_accept_next, best = h->s->vc_touched[0];
	for (uint32_t i = 1; i < nr; i++) {
		uint32_t out = h->s->vc_touched[i];
		if (router_ahead(out, from, n->router_vcs) <
			router_ahead(best, from, n->router_vcs))
			best = out;
	}
	vc_match(h, in, best, n->router_vcs, true);
}

static inline void vc_islip(struct here *h, uint32_t nr, uint32_t words)
{
	const struct noc_network *n = h->n;
	struct noc_scratch *s = h->s;
	for (uint32_t iteration = 0; iteration < n->config.iterations; iteration++) {
		uint32_t nr_offered = 0;
		for (uint32_t i = 0; i < nr; i++) {
			uint32_t out = s->vc_touched[i];
			const uint64_t *set = s->vc_request + (size_t)out * words;
			uint64_t any = 0;
			for (uint32_t w = 0; w < words; w++)
				any |= set[w];
			if (!any)
				continue;
			uint32_t in = round_robin(set, words, h->out_vc[out].vc_grant_next);
			uint32_t from = router_input_at(h, in)->vc_accept_next;
			/* An offer is marked by not being in the list before: vc_grant tells. */
			if (s->vc_grant[in] == UINT16_MAX) {
				s->vc_grant[in] = UINT16_MAX - 1;
				s->vc_offered[nr_offered++] = (uint16_t)in;
				s->vc_offer[in] = (uint16_t)out;
			} else if (router_ahead(out, from, n->router_vcs) <
				   router_ahead(s->vc_offer[in], from, n->router_vcs)) {
				s->vc_offer[in] = (uint16_t)out;
			}
		}
		for (uint32_t i = 0; i < nr_offered; i++)
			vc_match(h, s->vc_offered[i], s->vc_offer[s->vc_offered[i]], n->router_vcs,
				!iteration);
		if (!nr_offered || iteration + 1 == n->config.iterations)
			return;
		/* An input that has one neither asks nor is asked again. */
		for (uint32_t i = 0; i < nr; i++) {
			uint64_t *set = s->vc_request + (size_t)s->vc_touched[i] * words;
			for (uint32_t o = 0; o < nr_offered; o++) {
				uint32_t in = s->vc_offered[o];
				if (s->vc_grant[in] == s->vc_touched[i])
					memset(set, 0, words * sizeof *set);
				noc_clear_bit(set, in);
			}
		}
	}
}

/* Input first: each input VC chooses one of its output VCs, then each output VC one of those. */
static void vc_separable(
	struct here *h, uint32_t nr, uint32_t nr_asking, uint32_t words, bool by_age)
{
	const struct noc_network *n = h->n;
	struct noc_scratch *s = h->s;
	for (uint32_t a = 0; a < nr_asking; a++) {
		uint32_t in = s->vc_asking[a], from = router_input_at(h, in)->vc_accept_next;
		uint32_t best = UINT32_MAX;
		for (uint32_t i = 0; i < nr; i++) {
			uint32_t out = s->vc_touched[i];
			if (noc_has_bit(s->vc_request + (size_t)out * words, in) &&
				(best == UINT32_MAX ||
					router_ahead(out, from, n->router_vcs) <
						router_ahead(best, from, n->router_vcs)))
				best = out;
		}
		s->vc_offer[in] = (uint16_t)best;
	}
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t out = s->vc_touched[i], from = h->out_vc[out].vc_grant_next;
		uint32_t best = UINT32_MAX;
		for (uint32_t a = 0; a < nr_asking; a++) {
			uint32_t in = s->vc_asking[a];
			if (s->vc_offer[in] != out)
				continue;
			bool nearer = best == UINT32_MAX ||
				      router_ahead(in, from, n->router_vcs) <
					      router_ahead(best, from, n->router_vcs);
			if (by_age && best != UINT32_MAX &&
				router_made(h, in) != router_made(h, best))
				nearer = router_made(h, in) < router_made(h, best);
			if (nearer)
				best = in;
		}
		if (best != UINT32_MAX)
			vc_match(h, best, out, n->router_vcs, true);
	}
}

/*
 * Where no two ask at one port, each gets the free VC that its pointer comes to first: what iSLIP
 * and the separable allocator would do, too. UINT32_MAX: two do.
 */
static inline uint32_t vcs_apart(struct here *h)
{
	const struct noc_network *n = h->n;
	struct noc_scratch *s = h->s;
	uint64_t ports = 0;
	uint32_t asking = 0;
	EACH_BIT(h->to_vc, 1, vc)
	{
		const struct noc_route *r = noc_routes(router_input_at(h, vc));
		uint64_t free = free_of(h, r), port = (uint64_t)1 << r->port;
		if (!free) {
			router_wait_for_vc(h, (uint32_t)vc, 1);
			continue;
		}
		if (ports & port)
			return UINT32_MAX;
		ports |= port;
		free <<= r->port * n->vcs;
		s->vc_grant[vc] =
			(uint16_t)round_robin(&free, 1, router_input_at(h, vc)->vc_accept_next);
		s->vc_asking[asking++] = (uint16_t)vc;
	}
	for (uint32_t i = 0; i < asking; i++)
		vc_match(h, s->vc_asking[i], s->vc_grant[s->vc_asking[i]], n->router_vcs, true);
	return asking;
}

/* Fills vc_grant[] of the input VCs in vc_asking[]; returns how many those are. */
static inline uint32_t router_allocate_vcs(struct here *h, uint32_t words)
{
	uint32_t nr_asking;
	if (words == 1 && h->n->route_max == 1 && !h->n->slow) {
		nr_asking = vcs_apart(h);
		if (nr_asking != UINT32_MAX)
			return nr_asking;
	}
	uint32_t nr = vc_requests(h, words, &nr_asking);
	uint64_t kind = h->n->config.vc_allocator;
	if (!nr)
		return 0;
	if (nr_asking == 1)
		vc_alone(h, h->s->vc_asking[0], nr);
	else if (kind == NOC_ALLOCATOR_ISLIP)
		vc_islip(h, nr, words);
	else
		vc_separable(h, nr, nr_asking, words, kind == NOC_ALLOCATOR_AGE);
	return nr_asking;
}

static inline void router_take_vc(struct here *h, uint32_t vc, uint32_t out, uint32_t words)
{
	struct noc_network *n = h->n;
	struct noc_input_vc *in = router_input_at(h, vc);
	uint32_t port = n->port_of[out], out_vc = out - port * n->vcs;
	(void)words;
	h->port[port].free_vcs &= ~((uint64_t)1 << out_vc);
	h->out_vc[out].owner = (uint16_t)vc;
	in->state = NOC_VC_ACTIVE;
	in->out = h->first_vc + out;
	in->out_port = (uint16_t)port;
	in->out_vc = (uint16_t)out_vc;
	noc_clear_bit(h->to_vc, vc);
	if (n->out_vc[in->out].credit)
		noc_set_bit(h->to_sw, vc);
}

/* ---- switch allocation ----------------------------------------------------------------------- */

struct switch_sets {
	uint64_t inputs, outputs; /* ports with requests */
};

static inline void sw_request(
	struct here *h, uint32_t vc, uint32_t out, uint32_t mark, struct switch_sets *sets)
{
	const struct noc_network *n = h->n;
	struct noc_scratch *s = h->s;
	uint32_t in = n->port_of[vc], own = vc - in * n->vcs;
	uint64_t out_bit = (uint64_t)1 << out, in_bit = (uint64_t)1 << in;
	if (n->narrow && n->busy_until[h->first_port + out] > n->now)
		return;
	if (!(sets->inputs & in_bit)) {
		sets->inputs |= in_bit;
		s->sw_wanted[in] = 0;
	}
	if (!(sets->outputs & out_bit)) {
		sets->outputs |= out_bit;
		s->sw_request[out] = 0;
	}
	if (s->sw_wanted[in] & out_bit) {
		uint32_t other = s->label[in][out], other_vc = other & ~SPECULATIVE;
		uint32_t from = h->port[in].sw_vc_next;
		bool better =
			router_ahead(own, from, n->vcs) < router_ahead(other_vc, from, n->vcs);
		if (n->config.sw_allocator == NOC_ALLOCATOR_AGE && !mark &&
			!(other & SPECULATIVE)) {
			uint64_t a = router_made(h, vc), b = router_made(h, in * n->vcs + other_vc);
			better = a < b || (a == b && better);
		}
		if ((other & SPECULATIVE) != mark)
			better = !mark;
		if (!better)
			return;
	}
	s->sw_wanted[in] |= out_bit;
	s->sw_request[out] |= in_bit;
	s->label[in][out] = (uint16_t)(own | mark);
}

/* An input that asks for a VC asks for the crossbar, too, where a free VC of the output has
 * room. */
static inline void sw_speculate(struct here *h, uint32_t words, struct switch_sets *sets)
{
	const struct noc_network *n = h->n;
	EACH_BIT(h->to_vc, words, vc)
	{
		const struct noc_route *r = noc_routes(router_input_at(h, vc));
		for (unsigned i = 0; i < router_input_at(h, vc)->nr_routes; i++) {
			const struct noc_output_vc *out = h->out_vc + (size_t)r[i].port * n->vcs;
			for (uint64_t f = free_of(h, &r[i]); f; f &= f - 1) {
				if (!out[__builtin_ctzll(f)].credit)
					continue;
				sw_request(h, (uint32_t)vc, r[i].port, SPECULATIVE, sets);
				break;
			}
		}
	}
}

static inline void sw_match(struct here *h, uint32_t *nr, uint32_t in, uint32_t out, bool move)
{
	struct noc_network *n = h->n;
	h->s->match[*nr].in = (uint16_t)in;
	h->s->match[*nr].out = (uint16_t)out;
	h->s->match[(*nr)++].label = h->s->label[in][out];
	if (!move)
		return;
	h->port[out].sw_grant_next = (uint16_t)(in + 1 == n->ports ? 0 : in + 1);
	h->port[in].sw_accept_next = (uint16_t)(out + 1 == n->ports ? 0 : out + 1);
}

static inline uint32_t sw_islip(struct here *h, struct switch_sets sets)
{
	const struct noc_network *n = h->n;
	struct noc_scratch *s = h->s;
	uint64_t inputs = sets.inputs, outputs = sets.outputs; /* not matched yet */
	uint32_t nr = 0;
	for (uint32_t iteration = 0; iteration < n->config.iterations && inputs; iteration++) {
		uint64_t offered = 0;
		uint32_t begin = nr;
		for (uint64_t bits = outputs; bits; bits &= bits - 1) {
			uint32_t out = (uint32_t)__builtin_ctzll(bits);
			uint64_t set = s->sw_request[out] & inputs;
			if (!set)
				continue;
			uint32_t in = round_robin(&set, 1, h->port[out].sw_grant_next);
			uint32_t from = h->port[in].sw_accept_next;
			if (!(offered >> in & 1) ||
				router_ahead(out, from, n->ports) <
					router_ahead(s->sw_offer[in], from, n->ports))
				s->sw_offer[in] = (uint16_t)out;
			offered |= (uint64_t)1 << in;
		}
		for (uint64_t bits = offered; bits; bits &= bits - 1) {
			uint32_t in = (uint32_t)__builtin_ctzll(bits);
			sw_match(h, &nr, in, s->sw_offer[in], !iteration);
			outputs &= ~((uint64_t)1 << s->sw_offer[in]);
		}
		inputs &= ~offered;
		if (nr == begin)
			break;
	}
	return nr;
}

static uint64_t sw_made(const struct here *h, uint32_t in, uint32_t out)
{
	uint32_t label = h->s->label[in][out];
	return label & SPECULATIVE ? UINT64_MAX : router_made(h, in * h->n->vcs + label);
}

static uint32_t sw_separable(struct here *h, struct switch_sets sets, bool by_age)
{
	struct noc_scratch *s = h->s;
	uint64_t chosen[NOC_PORTS_MAX] = {0};
	uint32_t nr = 0;
	for (uint64_t bits = sets.inputs; bits; bits &= bits - 1) {
		uint32_t in = (uint32_t)__builtin_ctzll(bits);
		uint32_t out = round_robin(&s->sw_wanted[in], 1, h->port[in].sw_accept_next);
		for (uint64_t o = by_age ? s->sw_wanted[in] : 0; o; o &= o - 1) {
			uint32_t other = (uint32_t)__builtin_ctzll(o);
			if (sw_made(h, in, other) < sw_made(h, in, out))
				out = other;
		}
		chosen[out] |= (uint64_t)1 << in;
	}
	for (uint64_t bits = sets.outputs; bits; bits &= bits - 1) {
		uint32_t out = (uint32_t)__builtin_ctzll(bits);
		if (!chosen[out])
			continue;
		uint32_t in = round_robin(&chosen[out], 1, h->port[out].sw_grant_next);
		for (uint64_t i = by_age ? chosen[out] : 0; i; i &= i - 1) {
			uint32_t other = (uint32_t)__builtin_ctzll(i);
			if (sw_made(h, other, out) < sw_made(h, in, out))
				in = other;
		}
		sw_match(h, &nr, in, out, true);
	}
	return nr;
}

/* Where no two ask for one port, all get what they ask for. UINT32_MAX: two do. */
static inline uint32_t switch_apart(struct here *h)
{
	struct noc_network *n = h->n;
	uint64_t inputs = 0, outputs = 0;
	uint32_t nr = 0;
	EACH_BIT(h->to_sw, 1, vc)
	{
		uint32_t in = n->port_of[vc], out = router_input_at(h, vc)->out_port;
		uint64_t in_bit = (uint64_t)1 << in, out_bit = (uint64_t)1 << out;
		if ((inputs & in_bit) | (outputs & out_bit))
			return UINT32_MAX;
		inputs |= in_bit;
		outputs |= out_bit;
		h->s->match[nr].in = (uint16_t)in;
		h->s->match[nr].out = (uint16_t)out;
		h->s->match[nr++].label = (uint16_t)(vc - in * n->vcs);
	}
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t in = h->s->match[i].in, out = h->s->match[i].out;
		h->port[out].sw_grant_next = (uint16_t)(in + 1 == n->ports ? 0 : in + 1);
		h->port[in].sw_accept_next = (uint16_t)(out + 1 == n->ports ? 0 : out + 1);
	}
	return nr;
}

/* Fills match[]; returns how many. */
static inline uint32_t router_allocate_switch(struct here *h, uint32_t words, bool speculative)
{
	if (words == 1 && !speculative && !h->n->narrow) {
		uint32_t nr = switch_apart(h);
		if (nr != UINT32_MAX)
			return nr;
	}
	struct switch_sets sets = {0};
	uint64_t kind = h->n->config.sw_allocator;
	EACH_BIT(h->to_sw, words, vc)
	sw_request(h, (uint32_t)vc, router_input_at(h, vc)->out_port, 0, &sets);
	if (speculative)
		sw_speculate(h, words, &sets);
	if (!sets.inputs)
		return 0;
	return kind == NOC_ALLOCATOR_ISLIP ? sw_islip(h, sets)
					   : sw_separable(h, sets, kind == NOC_ALLOCATOR_AGE);
}

/* ---- what was decided ------------------------------------------------------------------------ */

/* Routing begins in `cycle`; with look-ahead it is done. */
static inline void begin_packet(struct here *h, uint32_t vc, uint64_t cycle)
{
	struct noc_network *n = h->n;
	struct noc_input_vc *in = router_input_at(h, vc);
	if (!n->lookahead) {
		in->state = NOC_VC_ROUTING;
		in->ready = (uint16_t)(cycle + n->config.routing_delay - 1);
		noc_set_bit(h->to_route, vc);
		return;
	}
	uint32_t flit = noc_flits(n, in)[in->first];
	uint32_t port = n->port_of[vc];
	in->state = NOC_VC_WAITING;
	in->nr_routes = (uint16_t)n->route(n, h->router, port, vc - port * n->vcs,
		&n->pool.packet[flit >> NOC_FLIT_SHIFT], noc_routes(in));
	noc_set_bit(h->to_vc, vc);
}

/* `ready` has 16 bits; what is under way takes less. */
static inline bool router_is_due(const struct noc_network *n, const struct noc_input_vc *in)
{
	return (uint16_t)(n->now - in->ready) < 0x8000;
}

static inline void compute_routes(struct here *h, uint32_t words)
{
	struct noc_network *n = h->n;
	EACH_BIT(h->to_route, words, vc)
	{
		struct noc_input_vc *in = router_input_at(h, vc);
		if (n->slow && !router_is_due(n, in))
			continue;
		uint32_t port = n->port_of[vc];
		uint32_t flit = noc_flits(n, in)[in->first];
		in->state = NOC_VC_WAITING;
		in->nr_routes = (uint16_t)n->route(n, h->router, port, (uint32_t)vc - port * n->vcs,
			&n->pool.packet[flit >> NOC_FLIT_SHIFT], noc_routes(in));
		noc_clear_bit(h->to_route, (uint32_t)vc);
		noc_set_bit(h->to_vc, (uint32_t)vc);
	}
}

static inline void router_release_vc(struct here *h, const struct noc_input_vc *in, uint32_t words)
{
	struct noc_network *n = h->n;
	h->port[in->out_port].free_vcs |= (uint64_t)1 << in->out_vc;
	n->out_vc[in->out].owner = UINT16_MAX;
	if (!noc_has_bit(h->awaited, in->out_port))
		return;
	noc_clear_bit(h->awaited, in->out_port);
	uint64_t *waiting = n->waiting + (size_t)(h->first_port + in->out_port) * words;
	for (uint32_t w = 0; w < words; w++) {
		for (uint64_t bits = waiting[w]; bits; bits &= bits - 1) {
			uint32_t vc = w * 64 + (uint32_t)__builtin_ctzll(bits);
			/* It may wait at several outputs, and have had its VC at another. */
			if (router_input_at(h, vc)->state == NOC_VC_WAITING)
				noc_set_bit(h->to_vc, vc);
		}
		waiting[w] = 0;
	}
}

/* The front flit of an input VC crosses to its output. */
static inline void router_send_flit(struct here *h, uint32_t vc, uint32_t words)
{
	struct noc_network *n = h->n;
	struct noc_input_vc *in = router_input_at(h, vc);
	uint32_t port = h->first_port + in->out_port;
	uint32_t flit = noc_flits(n, in)[in->first];
	const struct noc_output *out = &h->port[in->out_port].output;
	const struct noc_back *back = &h->port[n->port_of[vc]].back;
	uint32_t next = in->first + 1u;
	in->first = (uint16_t)(next == n->buffer ? 0 : next);
	in->count--;
	n->buffered--;
	h->port[in->out_port].sent_flits++;
	uint16_t credit = --n->out_vc[in->out].credit;
	struct noc_slot *s = &n->slot[(n->now + out->delay) & n->slot_mask];
	s->flit[s->nr_flits++] = (struct noc_flit_event){
		.vc = out->vc + in->out_vc, .router = out->router, .flit = flit | out->eject};
	s = &n->slot[(n->now + back->delay) & n->slot_mask];
	s->credit[s->nr_credits++] = (struct noc_credit_event){
		.vc = back->vc + (vc - n->port_of[vc] * n->vcs), .router = back->router};
	n->nr_events += 2;
	if (n->narrow)
		n->busy_until[port] = n->now + out->busy_cycles;
	if (flit & NOC_FLIT_HEAD)
		n->pool.packet[flit >> NOC_FLIT_SHIFT].hops++;
	if (flit & NOC_FLIT_TAIL) {
		noc_clear_bit(h->to_sw, vc);
		router_release_vc(h, in, words);
		if (in->count)
			begin_packet(h, vc, n->now + 1);
		else
			in->state = NOC_VC_IDLE;
	} else if (!in->count || !credit) {
		noc_clear_bit(h->to_sw, vc);
	}
}

/* False: a speculative request that came to nothing. */
static inline bool use_match(struct here *h, uint32_t i, uint32_t words)
{
	struct noc_network *n = h->n;
	uint32_t in = h->s->match[i].in, label = h->s->match[i].label;
	uint32_t own = label & ~SPECULATIVE, vc = in * n->vcs + own;
	h->port[in].sw_vc_next = (uint16_t)(own + 1 == n->vcs ? 0 : own + 1);
	if (label & SPECULATIVE) {
		/* Was the VC got, at that output, and is there room? */
		const struct noc_input_vc *v = router_input_at(h, vc);
		if (v->state != NOC_VC_ACTIVE || v->out_port != h->s->match[i].out ||
			!n->out_vc[v->out].credit)
			return false;
	}
	router_send_flit(h, vc, words);
	return true;
}

/*
 * Links wider than a flit: an input that asked in the first round and has more to send asks again,
 * where its own port and the output have lanes left. The crossbar has a port for each lane, so that
 * a match takes one of the input's and one of the output's.
 */
static __attribute__((noinline)) void more_rounds(
	struct here *h, uint8_t *in_sent, uint8_t *out_sent, uint32_t words)
{
	const struct noc_network *n = h->n;
	uint64_t kind = n->config.sw_allocator;
	for (uint32_t round = 1; round < n->rounds; round++) {
		struct switch_sets sets = {0};
		EACH_BIT(h->s->asked, words, vc)
		{
			uint32_t in = n->port_of[vc], out = router_input_at(h, vc)->out_port;
			if (noc_has_bit(h->to_sw, (uint32_t)vc) &&
				in_sent[in] < h->port[in].back.flits &&
				out_sent[out] < h->port[out].output.flits)
				sw_request(h, (uint32_t)vc, out, 0, &sets);
		}
		if (!sets.inputs)
			return;
		uint32_t nr = kind == NOC_ALLOCATOR_ISLIP
				      ? sw_islip(h, sets)
				      : sw_separable(h, sets, kind == NOC_ALLOCATOR_AGE);
		for (uint32_t i = 0; i < nr; i++) {
			in_sent[h->s->match[i].in]++;
			out_sent[h->s->match[i].out]++;
			use_match(h, i, words);
		}
	}
}

/* The first round was allocated before VCs were taken: only inputs that had one by then ask in the
 * others.
 */
static __attribute__((noinline)) void use_matches_wide(
	struct here *h, uint32_t nr_matches, uint32_t words)
{
	uint8_t in_sent[NOC_PORTS_MAX] = {0}, out_sent[NOC_PORTS_MAX] = {0};
	for (uint32_t i = 0; i < nr_matches; i++)
		if (use_match(h, i, words)) {
			in_sent[h->s->match[i].in]++;
			out_sent[h->s->match[i].out]++;
		}
	more_rounds(h, in_sent, out_sent, words);
}

/* ---- a cycle --------------------------------------------------------------------------------- */

static BASE_INLINE bool router_step(struct here *h, uint32_t words, bool speculative)
{
	struct noc_scratch *s = h->s;
	uint64_t any_vc = 0, any_sw = 0, any_route = 0;
	for (uint32_t w = 0; w < words; w++) {
		any_vc |= h->to_vc[w];
		any_sw |= h->to_sw[w];
		any_route |= h->to_route[w];
	}
	uint32_t nr_asking = any_vc ? router_allocate_vcs(h, words) : 0;
	uint32_t nr_matches = any_sw || (speculative && any_vc)
				      ? router_allocate_switch(h, words, speculative)
				      : 0;
	bool wide = h->n->rounds > 1;
	for (uint32_t w = 0; wide && w < words; w++)
		s->asked[w] = h->to_sw[w];
	if (any_route)
		compute_routes(h, words);
	for (uint32_t i = 0; i < nr_asking; i++) {
		uint32_t vc = s->vc_asking[i];
		if (s->vc_grant[vc] != UINT16_MAX)
			router_take_vc(h, vc, s->vc_grant[vc], words);
	}
	if (wide)
		use_matches_wide(h, nr_matches, words);
	for (uint32_t i = 0; !wide && i < nr_matches; i++)
		use_match(h, i, words);
	uint64_t rest = 0;
	for (uint32_t w = 0; w < words; w++)
		rest |= h->to_vc[w] | h->to_sw[w] | h->to_route[w];
	return rest;
}

/* What was put off until this cycle. A VC may have gone to somebody else meanwhile. */
static void complete(struct here *h, uint32_t words)
{
	struct noc_network *n = h->n;
	EACH_BIT(h->pending, words, vc)
	{
		struct noc_input_vc *in = router_input_at(h, vc);
		if (!router_is_due(n, in))
			continue;
		uint32_t result = in->result;
		noc_clear_bit(h->pending, (uint32_t)vc);
		if (in->state == NOC_VC_WAITING) {
			uint32_t port = result == UINT16_MAX ? 0 : n->port_of[result];
			if (result != UINT16_MAX &&
				h->port[port].free_vcs >> (result - port * n->vcs) & 1)
				router_take_vc(h, (uint32_t)vc, result, words);
			else
				noc_set_bit(h->to_vc, (uint32_t)vc);
		} else {
			noc_set_bit(h->to_sw, (uint32_t)vc);
			if (result != UINT16_MAX)
				router_send_flit(h, (uint32_t)vc, words);
		}
	}
}

/* The same with delays above one cycle, where a decision is not yet an effect. Not speculative. */
static bool step_slow(struct here *h, uint32_t words)
{
	struct noc_network *n = h->n;
	struct noc_scratch *s = h->s;
	uint32_t nr_asking = router_allocate_vcs(h, words);
	for (uint32_t i = 0; i < nr_asking; i++) {
		uint32_t vc = s->vc_asking[i];
		put_off(h, vc, s->vc_grant[vc], n->config.vc_alloc_delay);
		noc_clear_bit(h->to_vc, vc);
	}
	uint32_t nr_matches = router_allocate_switch(h, words, false);
	EACH_BIT(h->to_sw, words, vc)
	{
		put_off(h, (uint32_t)vc, UINT16_MAX, n->config.sw_alloc_delay);
		noc_clear_bit(h->to_sw, (uint32_t)vc);
	}
	for (uint32_t i = 0; i < nr_matches; i++) {
		uint32_t in = s->match[i].in, vc = in * n->vcs + s->match[i].label;
		h->port[in].sw_vc_next =
			(uint16_t)(s->match[i].label + 1u == n->vcs ? 0 : s->match[i].label + 1u);
		router_input_at(h, vc)->result = s->match[i].out;
	}
	compute_routes(h, words);
	complete(h, words);
	uint64_t rest = 0;
	for (uint32_t w = 0; w < words; w++)
		rest |= h->to_vc[w] | h->to_sw[w] | h->to_route[w] | h->pending[w];
	return rest;
}

static struct here make_here(struct noc_network *n, uint32_t router)
{
	uint64_t *sets = noc_sets(n, router);
	size_t words = n->words;
	return (struct here){.n = n,
		.s = n->scratch,
		.router = router,
		.first_vc = router * n->router_vcs,
		.first_port = router * n->ports,
		.to_route = sets + NOC_TO_ROUTE * words,
		.to_vc = sets + NOC_TO_VC * words,
		.to_sw = sets + NOC_TO_SW * words,
		.pending = sets + NOC_PENDING * words,
		.awaited = sets + NOC_SETS * words,
		.input = n->input + router * n->router_vcs * n->input_bytes,
		.port = n->port + (size_t)router * n->ports,
		.out_vc = n->out_vc + (size_t)router * n->router_vcs};
}

void noc_router_begin(struct noc_network *n, uint32_t router, uint32_t vc_in_router)
{
	struct here h = make_here(n, router);
	begin_packet(&h, vc_in_router, n->now);
}

bool noc_router_step(struct noc_network *n, uint32_t router)
{
	struct here h = make_here(n, router);
	if (n->slow)
		return step_slow(&h, n->words);
	if (n->words == 1)
		return n->speculative ? router_step(&h, 1, true) : router_step(&h, 1, false);
	return n->speculative ? router_step(&h, n->words, true) : router_step(&h, n->words, false);
}

/* ---- asking the memory beforehand ------------------------------------------------------------ */

/* The first and the last of a word's input VCs: mostly there are no more, and no branch depends on
 * how many there are. */
static inline uint64_t router_wanted(const struct noc_network *n, const uint64_t *sets, uint32_t w)
{
	return sets[w] | sets[n->words + w] | sets[2 * (size_t)n->words + w];
}
static inline uint32_t last(uint64_t bits)
{
	return 63 - (uint32_t)__builtin_clzll(bits);
}

static inline void fetch(const struct noc_network *n, uint32_t router, uint32_t vc)
{
	__builtin_prefetch(noc_input(n, router * n->router_vcs + vc), 1);
	__builtin_prefetch(&n->port[(size_t)router * n->ports + n->port_of[vc]], 1);
}

void noc_router_fetch(const struct noc_network *n, uint32_t router)
{
	const uint64_t *sets = noc_sets(n, router);
	for (uint32_t w = 0; w < n->words; w++) {
		uint64_t bits = router_wanted(n, sets, w);
		if (!bits)
			continue;
		fetch(n, router, w * 64 + (uint32_t)__builtin_ctzll(bits));
		fetch(n, router, w * 64 + last(bits));
	}
}

static inline void fetch_near(const struct noc_network *n, uint32_t router, uint32_t vc)
{
	struct noc_input_vc *in = noc_input(n, router * n->router_vcs + vc);
	uint32_t flit = noc_flits(n, in)[in->first], own = in->out_port,
		 next = noc_routes(in)->port;
	uint32_t out = in->state == NOC_VC_ACTIVE ? own : next;
	if (!n->plain || !n->fixed)
		__builtin_prefetch(&n->pool.packet[flit >> NOC_FLIT_SHIFT], 1);
	__builtin_prefetch(&n->port[(size_t)router * n->ports + out], 1);
	__builtin_prefetch(&n->out_vc[(size_t)router * n->router_vcs + (size_t)out * n->vcs], 1);
}

void noc_router_fetch_near(const struct noc_network *n, uint32_t router)
{
	const uint64_t *sets = noc_sets(n, router);
	for (uint32_t w = 0; w < n->words; w++) {
		uint64_t bits = router_wanted(n, sets, w);
		if (!bits)
			continue;
		fetch_near(n, router, w * 64 + (uint32_t)__builtin_ctzll(bits));
		fetch_near(n, router, w * 64 + last(bits));
	}
}

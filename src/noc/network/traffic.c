/* SPDX-License-Identifier: Apache-2.0 */
/* traffic.c - synthetic traffic. */
#include "noc/network/traffic.h"

#include "noc/network/network_private.h"

#include <math.h>
#include <stdlib.h>

struct sender {
	struct noc_random random;
	uint64_t next; /* the cycle in which its next packet is made */
	uint64_t nth;
	uint32_t copies; /* of a multicast: receivers still to come */
	uint32_t size;
	bool on;
};
struct noc_traffic {
	const struct noc_network *network;
	struct noc_config config;
	uint32_t nodes;
	double rate, log_rest; /* packets a node and cycle; log(1 - rate) */
	double burst_rate;     /* packets a cycle while a burst lasts */
	unsigned bits;         /* nodes = 2^bits, or 0 */
	uint32_t hotspot[NOC_HOTSPOTS_MAX];
	size_t nr_hotspots;
	uint32_t (*pattern)(struct noc_traffic *t, uint32_t node, struct noc_random *r);
	struct sender *sender;
	uint64_t begin, end, nr_made;
	double sum_made;
};

/* ---- patterns -------------------------------------------------------------------------------- */

static uint32_t to_uniform(struct noc_traffic *t, uint32_t node, struct noc_random *r)
{
	(void)node;
	return noc_random_below(r, t->nodes);
}

/* Each digit of the place moves by `step` of its radix. */
static uint32_t shift(const struct noc_traffic *t, uint32_t node, bool half)
{
	const struct noc_topology *topology = &t->network->topology;
	uint32_t each = 1, dimensions = 1, offset = 1, result = 0;
	if (topology->levels)
		dimensions = topology->levels;
	else if (topology->dimensions) {
		dimensions = topology->dimensions;
		each = topology->nr_nodes / topology->nr_routers;
	}
	uint32_t rest = node / each;
	for (uint32_t d = 0; d < dimensions; d++) {
		uint32_t k = topology->levels       ? topology->arity
			     : topology->dimensions ? topology->radix[d]
						    : t->nodes;
		uint32_t step = half ? (k + 1) / 2 - 1 : 1;
		result += offset * ((rest % k + step) % k);
		rest /= k;
		offset *= k;
	}
	return result * each + node % each;
}

static uint32_t to_neighbour(struct noc_traffic *t, uint32_t node, struct noc_random *r)
{
	(void)r;
	return shift(t, node, false);
}

static uint32_t to_tornado(struct noc_traffic *t, uint32_t node, struct noc_random *r)
{
	(void)r;
	return shift(t, node, true);
}

static uint32_t to_transpose(struct noc_traffic *t, uint32_t node, struct noc_random *r)
{
	unsigned half = t->bits / 2;
	(void)r;
	return (node >> half) | ((node & ((1u << half) - 1)) << half);
}

static uint32_t to_bitinv(struct noc_traffic *t, uint32_t node, struct noc_random *r)
{
	uint32_t result = 0;
	(void)r;
	for (unsigned b = 0; b < t->bits; b++)
		result |= (node >> b & 1) << (t->bits - 1 - b);
	return result;
}

static uint32_t to_bitcomp(struct noc_traffic *t, uint32_t node, struct noc_random *r)
{
	(void)r;
	return ~node & (t->nodes - 1);
}

static uint32_t to_shuffle(struct noc_traffic *t, uint32_t node, struct noc_random *r)
{
	(void)r;
	return (node << 1 & (t->nodes - 1)) | (t->bits ? node >> (t->bits - 1) : 0);
}

static uint32_t to_hotspot(struct noc_traffic *t, uint32_t node, struct noc_random *r)
{
	(void)node;
	if (noc_random_unit(r) < t->config.hotspot_share)
		return t->hotspot[noc_random_below(r, (uint32_t)t->nr_hotspots)];
	return noc_random_below(r, t->nodes);
}

/* Any other node, accepted with a probability that falls with its distance. */
static uint32_t to_ned(struct noc_traffic *t, uint32_t node, struct noc_random *r)
{
	while (t->nodes > 1) {
		uint32_t to = noc_random_below(r, t->nodes);
		if (to == node)
			continue;
		double hops = noc_network_distance(t->network, node, to);
		if (noc_random_unit(r) < exp((1 - hops) / t->config.ned_hops))
			return to;
	}
	return node;
}

enum { ANY, POWER_OF_TWO, POWER_OF_FOUR };
static const struct {
	uint32_t (*to)(struct noc_traffic *t, uint32_t node, struct noc_random *r);
	unsigned nodes;
} pattern_table[NOC_PATTERN_NR] = {
	[NOC_PATTERN_UNIFORM] = {to_uniform, ANY},
	[NOC_PATTERN_NEIGHBOUR] = {to_neighbour, ANY},
	[NOC_PATTERN_TORNADO] = {to_tornado, ANY},
	[NOC_PATTERN_TRANSPOSE] = {to_transpose, POWER_OF_FOUR},
	[NOC_PATTERN_BITINV] = {to_bitinv, POWER_OF_TWO},
	[NOC_PATTERN_BITCOMP] = {to_bitcomp, POWER_OF_TWO},
	[NOC_PATTERN_SHUFFLE] = {to_shuffle, POWER_OF_TWO},
	[NOC_PATTERN_HOTSPOT] = {to_hotspot, ANY},
	[NOC_PATTERN_NED] = {to_ned, ANY},
};

/* ---- when ------------------------------------------------------------------------------------ */

/* Cycles until a thing of that probability happens, 0: in this one. */
static uint64_t geometric(struct noc_random *r, double log_rest)
{
	double u = 1 - noc_random_unit(r); /* 0 < u <= 1 */
	double cycles = log(u) / log_rest;
	return cycles < 1e18 ? (uint64_t)cycles : (uint64_t)1e18;
}

static uint64_t next_of_burst(const struct noc_traffic *t, struct sender *s, uint64_t from)
{
	for (;; from++) {
		/* First the state advances, then a packet is made or not: as BookSim's on_off. */
		if (!s->on) {
			double rest = log1p(-t->config.burst_on);
			from += t->config.burst_on < 1 ? geometric(&s->random, rest) : 0;
			s->on = true;
		} else {
			s->on = noc_random_unit(&s->random) >= t->config.burst_off;
		}
		if (s->on && noc_random_unit(&s->random) < t->burst_rate)
			return from;
	}
}

/* The first cycle at or after `from` in which the node makes a packet. */
static uint64_t next_packet(const struct noc_traffic *t, struct sender *s, uint64_t from)
{
	if (!(t->rate > 0))
		return UINT64_MAX;
	if (t->config.injection == NOC_INJECTION_BURSTY)
		return next_of_burst(t, s, from);
	return t->rate < 1 ? from + geometric(&s->random, t->log_rest) : from;
}

static bool next(void *ctx, uint32_t node, uint32_t class, uint64_t now_cycle,
	struct noc_packet *packet, uint64_t *ret_cycle)
{
	struct noc_traffic *t = ctx;
	struct sender *s = &t->sender[node];
	(void)class;
	*ret_cycle = s->next;
	if (s->next > now_cycle)
		return false;
	const struct noc_config *c = &t->config;
	if (!s->copies) {
		s->copies = (uint32_t)c->receivers;
		s->size = (uint32_t)c->packet_flits;
		if (c->long_flits && noc_random_unit(&s->random) < c->long_share)
			s->size = (uint32_t)c->long_flits;
	}
	packet->id = s->nth * t->nodes + node;
	packet->size_flits = s->size;
	packet->destination = t->pattern(t, node, &s->random);
	if (s->next >= t->begin && s->next < t->end) {
		t->nr_made++;
		t->sum_made += (double)s->next;
	}
	if (!--s->copies) {
		s->nth++;
		s->next = next_packet(t, s, s->next + 1);
	}
	return true;
}

struct noc_source noc_traffic_source(struct noc_traffic *t)
{
	return (struct noc_source){.ctx = t, .next = next};
}

uint32_t noc_traffic_behind(const struct noc_traffic *t, uint64_t cycle)
{
	uint32_t nr = 0;
	for (uint32_t i = 0; i < t->nodes; i++)
		nr += t->sender[i].next < cycle;
	return nr;
}

void noc_traffic_window(struct noc_traffic *t, uint64_t begin, uint64_t end)
{
	t->begin = begin;
	t->end = end;
}

void noc_traffic_made(const struct noc_traffic *t, uint64_t *ret_nr, double *ret_sum_cycles)
{
	*ret_nr = t->nr_made;
	*ret_sum_cycles = t->sum_made;
}

/* ---- life ------------------------------------------------------------------------------------ */

double noc_traffic_mean_flits(const struct noc_config *c)
{
	double size = (double)c->packet_flits;
	return c->long_flits ? size + c->long_share * ((double)c->long_flits - size) : size;
}

static enum base_status parse_hotspots(struct noc_traffic *t, struct base_err *err)
{
	for (const char *at = t->config.hotspots;; at++) {
		char *end;
		unsigned long node = strtoul(at, &end, 10);
		if (end == at || (*end && *end != ',') || node >= t->nodes ||
			t->nr_hotspots == NOC_HOTSPOTS_MAX)
			return base_fail(err, BASE_ERR_USAGE,
				"hotspots = %s: at most %d of the %u {node|nodes}, as 0,9",
				t->config.hotspots, NOC_HOTSPOTS_MAX, t->nodes);
		t->hotspot[t->nr_hotspots++] = (uint32_t)node;
		at = end;
		if (!*at)
			return BASE_OK;
	}
}

static enum base_status set_pattern(struct noc_traffic *t, struct base_err *err)
{
	uint64_t p = t->config.traffic;
	while (t->bits < 31 && (1u << t->bits) < t->nodes)
		t->bits++;
	bool power = 1u << t->bits == t->nodes;
	if ((pattern_table[p].nodes != ANY && !power) ||
		(pattern_table[p].nodes == POWER_OF_FOUR && t->bits % 2))
		return base_fail(err, BASE_ERR_USAGE,
			"traffic = %s needs a power of %s nodes, not %u", noc_pattern_words[p].name,
			pattern_table[p].nodes == POWER_OF_FOUR ? "four" : "two", t->nodes);
	t->pattern = pattern_table[p].to;
	return p == NOC_PATTERN_HOTSPOT ? parse_hotspots(t, err) : BASE_OK;
}

static enum base_status set_rate(struct noc_traffic *t, struct base_err *err)
{
	const struct noc_config *c = &t->config;
	t->rate = c->load / noc_traffic_mean_flits(c);
	if (t->rate > 1)
		return base_fail(err, BASE_ERR_USAGE,
			"load = %g is more than a packet a node and cycle; the most is %g", c->load,
			noc_traffic_mean_flits(c));
	t->log_rest = t->rate < 1 ? log1p(-t->rate) : 0;
	t->burst_rate = t->rate * (c->burst_on + c->burst_off) / c->burst_on;
	if (c->injection == NOC_INJECTION_BURSTY && t->burst_rate > 1)
		return base_fail(err, BASE_ERR_USAGE,
			"load = %g: bursts would need more than a packet a cycle; with these "
			"burst_on and burst_off the most is %g",
			c->load,
			noc_traffic_mean_flits(c) * c->burst_on / (c->burst_on + c->burst_off));
	return BASE_OK;
}

enum base_status noc_traffic_open(struct noc_traffic **ret, const struct noc_network *n,
	const struct noc_config *config, struct base_err *err)
{
	struct noc_traffic *t = base_alloc(sizeof *t);
	uint32_t nodes = noc_network_nodes(n);
	if (t)
		t->sender = base_alloc((size_t)nodes * sizeof *t->sender);
	if (!t || !t->sender) {
		noc_traffic_close(t);
		return base_fail(err, BASE_ERR_NOMEM, "traffic of %u {node|nodes}", nodes);
	}
	t->network = n;
	t->config = *config;
	t->nodes = nodes;
	enum base_status s = set_pattern(t, err);
	if (s == BASE_OK)
		s = set_rate(t, err);
	if (s != BASE_OK) {
		noc_traffic_close(t);
		return s;
	}
	for (uint32_t i = 0; i < nodes; i++) {
		struct sender *sender = &t->sender[i];
		noc_random_init(&sender->random,
			config->seed ^ base_hash_u64(((uint64_t)i + 1) * 0x9e3779b97f4a7c15u));
		sender->on = noc_random_u64(&sender->random) >> 63;
		sender->next = next_packet(t, sender, 0);
	}
	*ret = t;
	return BASE_OK;
}

void noc_traffic_close(struct noc_traffic *t)
{
	if (t)
		base_free(t->sender);
	base_free(t);
}

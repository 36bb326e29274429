/* SPDX-License-Identifier: Apache-2.0 */
/* ideal.c - topology=ideal: every packet arrives a fixed time after it was sent. */
#include "noc/network/network_private.h"

enum base_status noc_ideal_open(struct noc_network *n, struct base_err *err)
{
	struct noc_ideal *i = base_alloc(sizeof *i);
	if (!i)
		return base_fail(err, BASE_ERR_NOMEM, "an ideal network");
	for (size_t s = 0; s < NOC_IDEAL_SLOTS; s++)
		i->head[s] = NOC_NONE;
	i->nodes = (uint32_t)n->config.nodes;
	i->latency = (uint32_t)n->config.ideal_cycles;
	n->ideal = i;
	n->nr_nodes = i->nodes;
	return BASE_OK;
}

void noc_ideal_close(struct noc_ideal *i)
{
	if (i)
		base_free(i->latency_of);
	base_free(i);
}

static enum base_status make_matrix(struct noc_ideal *i, struct base_err *err)
{
	if (i->latency_of)
		return BASE_OK;
	if (i->nodes > NOC_IDEAL_MATRIX_NODES_MAX)
		return base_fail(err, BASE_ERR_LIMIT, "latencies of pairs: more than %d nodes",
			NOC_IDEAL_MATRIX_NODES_MAX);
	size_t nr = (size_t)i->nodes * i->nodes;
	i->latency_of = base_alloc(nr * sizeof *i->latency_of);
	if (!i->latency_of)
		return base_fail(err, BASE_ERR_NOMEM, "latencies of %zu {pair|pairs}", nr);
	for (size_t p = 0; p < nr; p++)
		i->latency_of[p] = (uint16_t)i->latency;
	return BASE_OK;
}

enum base_status noc_network_set_latency(struct noc_network *n, uint32_t source,
	uint32_t destination, uint32_t cycles, struct base_err *err)
{
	struct noc_ideal *i = n->ideal;
	if (!i)
		return base_fail(err, BASE_ERR_USAGE, "latencies of pairs need topology=ideal");
	if (!cycles || cycles > NOC_LATENCY_MAX || (source >= i->nodes && source != UINT32_MAX) ||
		(destination >= i->nodes && destination != UINT32_MAX))
		return base_fail(err, BASE_ERR_USAGE, "latency of %u {cycle|cycles} from %u to %u",
			cycles, source, destination);
	enum base_status s = make_matrix(i, err);
	if (s != BASE_OK)
		return s;
	uint32_t a = source == UINT32_MAX ? 0 : source;
	uint32_t a_end = source == UINT32_MAX ? i->nodes : source + 1;
	uint32_t b = destination == UINT32_MAX ? 0 : destination;
	uint32_t b_end = destination == UINT32_MAX ? i->nodes : destination + 1;
	for (; a < a_end; a++)
		for (uint32_t d = b; d < b_end; d++)
			i->latency_of[(size_t)a * i->nodes + d] = (uint16_t)cycles;
	return BASE_OK;
}

enum base_status noc_ideal_send(
	struct noc_network *n, uint32_t packet, uint32_t extra, struct base_err *err)
{
	struct noc_ideal *i = n->ideal;
	struct noc_live *p = &n->pool.packet[packet];
	uint32_t latency = i->latency_of
				   ? i->latency_of[(size_t)p->source * i->nodes + p->destination]
				   : i->latency;
	uint64_t sum = (uint64_t)latency + extra;
	if (sum > NOC_LATENCY_MAX)
		return base_fail(err, BASE_ERR_USAGE,
			"a latency of %llu {cycle|cycles}: the most is %d", (unsigned long long)sum,
			NOC_LATENCY_MAX);
	uint32_t s = (uint32_t)((n->now + sum) % NOC_IDEAL_SLOTS);
	p->sent = n->now;
	p->next = NOC_NONE;
	if (i->head[s] == NOC_NONE) {
		i->head[s] = packet;
		i->used[s >> 6] |= (uint64_t)1 << (s & 63);
		i->used_words[s >> 12] |= (uint64_t)1 << (s >> 6 & 63);
	} else {
		n->pool.packet[i->tail[s]].next = packet;
	}
	i->tail[s] = packet;
	return BASE_OK;
}

/* Distance from slot `from` to the next one in use, from itself on; something is in use. */
static uint32_t to_next(const struct noc_ideal *i, uint32_t from)
{
	uint32_t w = from >> 6;
	uint64_t bits = i->used[w] & (~(uint64_t)0 << (from & 63));
	if (!bits) {
		/* Whole words from w + 1 on; the summary says which are not empty. */
		uint32_t v = (w + 1) % NOC_IDEAL_WORDS;
		uint64_t words = i->used_words[v >> 6] & (~(uint64_t)0 << (v & 63));
		for (uint32_t u = v >> 6; !words;) {
			u = (u + 1) % (NOC_IDEAL_WORDS / 64);
			words = i->used_words[u];
			v = u << 6;
		}
		w = (v & ~63u) + (uint32_t)__builtin_ctzll(words);
		bits = i->used[w];
	}
	uint32_t slot = (w << 6) + (uint32_t)__builtin_ctzll(bits);
	return (slot - from) % NOC_IDEAL_SLOTS;
}

enum base_status noc_ideal_run(struct noc_network *n, uint64_t until, struct base_err *err)
{
	struct noc_ideal *i = n->ideal;
	if (!n->pool.nr_used) {
		n->now = until;
		return BASE_OK;
	}
	uint64_t next = n->now + to_next(i, (uint32_t)(n->now % NOC_IDEAL_SLOTS));
	if (next > until) {
		n->now = until;
		return BASE_OK;
	}
	n->now = next;
	uint32_t s = (uint32_t)(next % NOC_IDEAL_SLOTS);
	for (uint32_t p = i->head[s], following; p != NOC_NONE; p = following) {
		following = n->pool.packet[p].next;
		if (base_grow(&n->arrivals.list, &n->arrivals.capacity, n->arrivals.nr + 1,
			    sizeof *n->arrivals.list) != BASE_OK)
			return base_fail(err, BASE_ERR_NOMEM, "arrivals of a cycle");
		noc_arrive(&n->arrivals, &n->pool.packet[p], next);
		noc_pool_give(&n->pool, p);
	}
	i->head[s] = NOC_NONE;
	i->used[s >> 6] &= ~((uint64_t)1 << (s & 63));
	if (!i->used[s >> 6])
		i->used_words[s >> 12] &= ~((uint64_t)1 << (s >> 6 & 63));
	return BASE_OK;
}

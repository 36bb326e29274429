/* SPDX-License-Identifier: Apache-2.0 */
/* gen_closed.c - reference graphs in which every transmit is the consequence of receptions. */
#include "noc/gen_private.h"

#include <string.h>

enum { FAN_IN_MAX = 16 };

/* A transmit to come. When its turn is there but its node has just transmitted, it waits. */
struct intent {
	uint64_t fire_cycle, cycle; /* cycle: when it is looked at next */
	uint64_t sequence;          /* among those of one cycle: first planned, first served */
	uint32_t source, destination;
	uint64_t delay_cycles;
	uint32_t nr_dependencies;
	uint32_t dependency[FAN_IN_MAX];
	uint8_t type;
	bool after_previous; /* its only input is the node's previous transmit */
};

struct closed {
	struct noc_gen_state *g;
	struct intent *heap;
	size_t nr, capacity;
	uint64_t sequence;
	uint64_t *last_cycle; /* by node: its last transmit; 0: none */
};

static bool before(const struct intent *a, const struct intent *b)
{
	return a->cycle != b->cycle ? a->cycle < b->cycle : a->sequence < b->sequence;
}

static enum base_status push(struct closed *c, struct intent in, struct base_err *err)
{
	enum base_status s = base_grow(&c->heap, &c->capacity, c->nr + 1, sizeof *c->heap);
	if (s != BASE_OK)
		return base_fail(err, s, "no memory for transmits to come");
	in.sequence = c->sequence++;
	size_t i = c->nr++;
	for (; i && before(&in, &c->heap[(i - 1) / 2]); i = (i - 1) / 2)
		c->heap[i] = c->heap[(i - 1) / 2];
	c->heap[i] = in;
	return BASE_OK;
}

static struct intent pop(struct closed *c)
{
	BASE_ASSUME(c->heap);
	struct intent top = c->heap[0], last = c->heap[--c->nr];
	size_t i = 0;
	for (size_t k = 1; k < c->nr; i = k, k = 2 * i + 1) {
		if (k + 1 < c->nr && before(&c->heap[k + 1], &c->heap[k]))
			k++;
		if (!before(&c->heap[k], &last))
			break;
		c->heap[i] = c->heap[k];
	}
	c->heap[i] = last;
	return top;
}

static enum base_status init(struct closed *c, struct noc_gen_state *g, struct base_err *err)
{
	*c = (struct closed){.g = g};
	c->last_cycle = base_alloc(g->nr_nodes * sizeof *c->last_cycle);
	return c->last_cycle
		       ? BASE_OK
		       : base_fail(err, BASE_ERR_NOMEM, "no memory for %u nodes", g->nr_nodes);
}

static void fini(struct closed *c)
{
	base_free(c->heap);
	base_free(c->last_cycle);
}

/* Plans a transmit `delay` cycles after `from_cycle`. */
static enum base_status plan(struct closed *c, uint32_t source, uint32_t destination,
	uint64_t from_cycle, uint64_t delay, const uint32_t *dependency, uint32_t nr, uint8_t type,
	struct base_err *err)
{
	struct intent in = {.fire_cycle = from_cycle + delay,
		.cycle = from_cycle + delay,
		.source = source,
		.destination = destination,
		.delay_cycles = delay,
		.nr_dependencies = nr,
		.type = type};
	if (nr)
		memcpy(in.dependency, dependency, nr * sizeof *dependency);
	return push(c, in, err);
}

/* Takes the next transmit and makes a packet of it. *ret: its number. */
static enum base_status next(struct closed *c, uint32_t *ret, struct base_err *err)
{
	struct noc_pdg *pdg = c->g->pdg;
	for (;;) {
		struct intent in = pop(c);
		uint64_t last = c->last_cycle[in.source];
		if (last >= in.cycle) {
			in.cycle = last + 1;
			enum base_status s = push(c, in, err);
			if (s != BASE_OK)
				return s;
			continue;
		}
		if (in.after_previous)
			in.delay_cycles = in.cycle - last;
		*ret = pdg->nr_packets;
		c->last_cycle[in.source] = in.cycle;
		enum base_status s = noc_pdg_add(pdg,
			&(struct noc_pdg_packet){.source = in.source,
				.destination = in.destination,
				.size_flits = noc_gen_flits(c->g),
				.type = in.type,
				.inputs = in.after_previous && last ? NOC_PDG_PREVIOUS : 0,
				.transmit_cycle = in.cycle,
				.receive_cycle = in.cycle + 1,
				.delay_cycles = in.delay_cycles},
			err);
		for (uint32_t k = 0; k < in.nr_dependencies && s == BASE_OK; k++)
			s = noc_pdg_add_dependency(pdg, in.dependency[k], NOC_GIVEN, err);
		return s;
	}
}

static uint64_t service(struct noc_gen_state *g)
{
	const struct noc_gen_config *c = g->config;
	return (uint64_t)c->service + noc_draw_below(&g->draw, (uint32_t)c->service_spread + 1);
}

static uint64_t think(struct noc_gen_state *g)
{
	return 1 + (uint64_t)noc_gen_exponential(g, g->config->think);
}

/* ---- ball -------------------------------------------------------------------------------------
 */

enum base_status noc_gen_ball(struct noc_gen_state *g, struct base_err *err)
{
	struct closed c;
	enum base_status s = init(&c, g, err);
	for (uint32_t t = 0; t < (uint32_t)g->config->tokens && s == BASE_OK; t++) {
		uint32_t from = noc_draw_below(&g->draw, g->nr_nodes);
		s = plan(&c, from, noc_gen_to_near(g, from), 0, 1 + noc_draw_below(&g->draw, 100),
			NULL, 0, 0, err);
	}
	while (s == BASE_OK && g->pdg->nr_packets < (uint32_t)g->config->packets) {
		uint32_t p, at;
		s = next(&c, &p, err);
		if (s != BASE_OK)
			break;
		at = g->pdg->destination[p];
		s = plan(&c, at, noc_gen_to_near(g, at), g->pdg->receive_cycle[p], service(g), &p,
			1, 0, err);
	}
	fini(&c);
	return s;
}

/* ---- central ----------------------------------------------------------------------------------
 */

enum { TYPE_REQUEST = 1, TYPE_REPLY = 2, TYPE_ARRIVE = 3, TYPE_RELEASE = 4 };

/* The server answers each request after a time of its own: it is a pipeline, not a queue. */
enum base_status noc_gen_central(struct noc_gen_state *g, struct base_err *err)
{
	struct closed c;
	uint32_t server = (uint32_t)g->config->hot_node % g->nr_nodes;
	enum base_status s = init(&c, g, err);
	for (uint32_t n = 0; n < g->nr_nodes && s == BASE_OK; n++)
		if (n != server)
			s = plan(&c, n, server, 0, think(g), NULL, 0, TYPE_REQUEST, err);
	while (s == BASE_OK && g->pdg->nr_packets < (uint32_t)g->config->packets) {
		uint32_t p;
		s = next(&c, &p, err);
		if (s != BASE_OK)
			break;
		uint64_t now = g->pdg->receive_cycle[p];
		s = g->pdg->type[p] == TYPE_REQUEST ? plan(&c, server, g->pdg->source[p], now,
							      service(g), &p, 1, TYPE_REPLY, err)
						    : plan(&c, g->pdg->destination[p], server, now,
							      think(g), &p, 1, TYPE_REQUEST, err);
	}
	fini(&c);
	return s;
}

/* ---- tree -------------------------------------------------------------------------------------
 */

struct tree_node {
	uint32_t arrived[FAN_IN_MAX], nr_arrived;
};

static uint32_t nr_children(const struct noc_gen_state *g, uint32_t n)
{
	uint64_t arity = (uint64_t)g->config->arity, first = n * arity + 1;
	if (first >= g->nr_nodes)
		return 0;
	return (uint32_t)(g->nr_nodes - first < arity ? g->nr_nodes - first : arity);
}

/* Releases to all children: the first waits for receptions, each other one for the one before. */
static enum base_status release(struct closed *c, uint32_t n, uint64_t from_cycle,
	const uint32_t *dependency, uint32_t nr, struct base_err *err)
{
	struct noc_gen_state *g = c->g;
	uint32_t first = n * (uint32_t)g->config->arity + 1;
	uint64_t delay = (uint64_t)g->config->service;
	enum base_status s =
		plan(c, n, first, from_cycle, delay, dependency, nr, TYPE_RELEASE, err);
	for (uint32_t k = 1; k < nr_children(g, n) && s == BASE_OK; k++)
		s = push(c,
			(struct intent){.cycle = from_cycle + delay,
				.source = n,
				.destination = first + k,
				.type = TYPE_RELEASE,
				.after_previous = true},
			err);
	return s;
}

static enum base_status arrive(
	struct closed *c, struct tree_node *node, uint32_t p, struct base_err *err)
{
	struct noc_gen_state *g = c->g;
	uint32_t n = g->pdg->destination[p], arity = (uint32_t)g->config->arity;
	BASE_ASSUME(node);
	struct tree_node *t = &node[n];
	uint64_t now = g->pdg->receive_cycle[p];
	t->arrived[t->nr_arrived++] = p;
	if (t->nr_arrived < nr_children(g, n))
		return BASE_OK;
	t->nr_arrived = 0;
	uint32_t nr = nr_children(g, n);
	if (!n)
		return release(c, n, now, t->arrived, nr, err);
	return plan(c, n, (n - 1) / arity, now, (uint64_t)g->config->service, t->arrived, nr,
		TYPE_ARRIVE, err);
}

enum base_status noc_gen_tree(struct noc_gen_state *g, struct base_err *err)
{
	struct closed c;
	uint32_t arity = (uint32_t)g->config->arity;
	struct tree_node *node = base_alloc(g->nr_nodes * sizeof *node);
	enum base_status s = init(&c, g, err);
	if (!node && s == BASE_OK)
		s = base_fail(err, BASE_ERR_NOMEM, "no memory for %u nodes", g->nr_nodes);
	for (uint32_t n = 1; n < g->nr_nodes && s == BASE_OK; n++)
		if (!nr_children(g, n))
			s = plan(&c, n, (n - 1) / arity, 0, think(g), NULL, 0, TYPE_ARRIVE, err);
	while (s == BASE_OK && g->pdg->nr_packets < (uint32_t)g->config->packets) {
		uint32_t p;
		s = next(&c, &p, err);
		if (s != BASE_OK)
			break;
		uint32_t at = g->pdg->destination[p];
		uint64_t now = g->pdg->receive_cycle[p];
		if (g->pdg->type[p] == TYPE_ARRIVE)
			s = arrive(&c, node, p, err);
		else if (nr_children(g, at))
			s = release(&c, at, now, &p, 1, err);
		else
			s = plan(&c, at, (at - 1) / arity, now, think(g), &p, 1, TYPE_ARRIVE, err);
	}
	base_free(node);
	fini(&c);
	return s;
}

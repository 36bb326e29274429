/* SPDX-License-Identifier: Apache-2.0 */
/* gen_closed.c - reference graphs in which every transmit is the consequence of receptions. */
#include "noc/pdg/gen_private.h"

#include "base/heap.h"

#include <string.h>

enum { FAN_IN_MAX = NOC_GEN_RECEIVERS_MAX };

/* A transmit to come. When its turn is there but its node has just transmitted, it waits. */
struct intent {
	uint64_t cycle;    /* when it is looked at next */
	uint64_t sequence; /* among those of one cycle: first planned, first served */
	uint32_t source, destination;
	uint64_t delay_cycles;
	uint32_t nr_dependencies;
	uint32_t dependency[FAN_IN_MAX];
	uint8_t type;
	bool after_previous;           /* its only input is the node's previous transmit */
	uint32_t nr_receivers, except; /* 0 is 1; `except`: none of them */
	uint64_t address;
};

struct closed {
	struct noc_gen_state *g;
	struct intent *heap;
	size_t nr, capacity;
	uint64_t sequence;
	uint64_t *last_cycle; /* by node: its last transmit; 0: none */
};

static bool gen_closed_before(const struct intent *a, const struct intent *b)
{
	return a->cycle != b->cycle ? a->cycle < b->cycle : a->sequence < b->sequence;
}

static enum base_status gen_closed_push(struct closed *c, struct intent in, struct base_err *err)
{
	enum base_status s = base_grow(&c->heap, &c->capacity, c->nr + 1, sizeof *c->heap);
	if (s != BASE_OK)
		return base_fail(err, s, "no memory for transmits to come");
	in.sequence = c->sequence++;
	BASE_HEAP_PUT(c->heap, c->nr, in, gen_closed_before);
	return BASE_OK;
}

static struct intent gen_closed_pop(struct closed *c)
{
	BASE_ASSUME(c->heap);
	struct intent top = c->heap[0];
	BASE_HEAP_DROP(c->heap, c->nr, gen_closed_before);
	return top;
}

static enum base_status gen_closed_init(
	struct closed *c, struct noc_gen_state *g, struct base_err *err)
{
	*c = (struct closed){.g = g};
	c->last_cycle = base_alloc(g->nr_nodes * sizeof *c->last_cycle);
	return c->last_cycle ? BASE_OK
			     : base_fail(err, BASE_ERR_NOMEM, "no memory for %u {node|nodes}",
				       g->nr_nodes);
}

static void gen_closed_fini(struct closed *c)
{
	base_free(c->heap);
	base_free(c->last_cycle);
}

/* Plans a transmit `delay` cycles after `from_cycle`. */
static enum base_status plan(struct closed *c, uint32_t source, uint32_t destination,
	uint64_t from_cycle, uint64_t delay, const uint32_t *dependency, uint32_t nr, uint8_t type,
	struct base_err *err)
{
	struct intent in = {.cycle = from_cycle + delay,
		.source = source,
		.destination = destination,
		.delay_cycles = delay,
		.nr_dependencies = nr,
		.type = type};
	if (nr)
		memcpy(in.dependency, dependency, nr * sizeof *dependency);
	return gen_closed_push(c, in, err);
}

/* Of inval: Netrace's numbers, so that its traces have them, too. */
enum {
	TYPE_WRITE = 15 /* ReadExReq */,
	TYPE_DATA = 16 /* ReadExResp */,
	TYPE_INVALIDATE = 27,
	TYPE_ACKNOWLEDGE = 28
};

static uint32_t flits_of(struct noc_gen_state *g, uint8_t type)
{
	if (type == TYPE_DATA)
		return (uint32_t)g->config->long_flits;
	return type >= TYPE_WRITE ? (uint32_t)g->config->flits : noc_gen_flits(g);
}

/* Takes the next transmit and makes a packet of it. *ret: its number. */
static enum base_status gen_closed_next(struct closed *c, uint32_t *ret, struct base_err *err)
{
	struct noc_pdg *pdg = c->g->pdg;
	uint32_t room = (uint32_t)c->g->config->packets - pdg->nr_packets;
	for (;;) {
		struct intent in = gen_closed_pop(c);
		uint64_t last = c->last_cycle[in.source];
		if (last >= in.cycle) {
			in.cycle = last + 1;
			enum base_status s = gen_closed_push(c, in, err);
			if (s != BASE_OK)
				return s;
			continue;
		}
		if (in.after_previous)
			in.delay_cycles = in.cycle - last;
		*ret = pdg->nr_packets;
		c->last_cycle[in.source] = in.cycle;
		return noc_gen_add(c->g,
			(struct noc_pdg_packet){.source = in.source,
				.destination = in.destination,
				.size_flits = flits_of(c->g, in.type),
				.type = in.type,
				.inputs = in.after_previous && last ? NOC_PDG_PREVIOUS : 0,
				.transmit_cycle = in.cycle,
				.receive_cycle = in.cycle + 1,
				.delay_cycles = in.delay_cycles,
				.address = in.address},
			in.nr_receivers < room ? in.nr_receivers : room, in.except, in.dependency,
			in.nr_dependencies, err);
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

/* ---- ball ------------------------------------------------------------------------------------ */

enum base_status noc_gen_ball(struct noc_gen_state *g, struct base_err *err)
{
	struct closed c;
	enum base_status s = gen_closed_init(&c, g, err);
	for (uint32_t t = 0; t < (uint32_t)g->config->tokens && s == BASE_OK; t++) {
		uint32_t from = noc_draw_below(&g->draw, g->nr_nodes);
		s = plan(&c, from, noc_gen_to_near(g, from), 0, 1 + noc_draw_below(&g->draw, 100),
			NULL, 0, 0, err);
	}
	while (s == BASE_OK && g->pdg->nr_packets < (uint32_t)g->config->packets) {
		uint32_t p, at;
		s = gen_closed_next(&c, &p, err);
		if (s != BASE_OK)
			break;
		at = g->pdg->destination[p];
		s = plan(&c, at, noc_gen_to_near(g, at), g->pdg->receive_cycle[p], service(g), &p,
			1, 0, err);
	}
	gen_closed_fini(&c);
	return s;
}

/* ---- central --------------------------------------------------------------------------------- */

enum { TYPE_REQUEST = 1, TYPE_REPLY = 2, TYPE_ARRIVE = 3, TYPE_RELEASE = 4 };

/* The server answers each request after a time of its own: it is a pipeline, not a queue. */
enum base_status noc_gen_central(struct noc_gen_state *g, struct base_err *err)
{
	struct closed c;
	uint32_t server = (uint32_t)g->config->hot_node % g->nr_nodes;
	enum base_status s = gen_closed_init(&c, g, err);
	for (uint32_t n = 0; n < g->nr_nodes && s == BASE_OK; n++)
		if (n != server)
			s = plan(&c, n, server, 0, think(g), NULL, 0, TYPE_REQUEST, err);
	while (s == BASE_OK && g->pdg->nr_packets < (uint32_t)g->config->packets) {
		uint32_t p;
		s = gen_closed_next(&c, &p, err);
		if (s != BASE_OK)
			break;
		uint64_t now = g->pdg->receive_cycle[p];
		s = g->pdg->type[p] == TYPE_REQUEST ? plan(&c, server, g->pdg->source[p], now,
							      service(g), &p, 1, TYPE_REPLY, err)
						    : plan(&c, g->pdg->destination[p], server, now,
							      think(g), &p, 1, TYPE_REQUEST, err);
	}
	gen_closed_fini(&c);
	return s;
}

/* ---- tree ------------------------------------------------------------------------------------ */

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
static enum base_status gen_closed_release(struct closed *c, uint32_t n, uint64_t from_cycle,
	const uint32_t *dependency, uint32_t nr, struct base_err *err)
{
	struct noc_gen_state *g = c->g;
	uint32_t first = n * (uint32_t)g->config->arity + 1;
	uint64_t delay = (uint64_t)g->config->service;
	enum base_status s =
		plan(c, n, first, from_cycle, delay, dependency, nr, TYPE_RELEASE, err);
	for (uint32_t k = 1; k < nr_children(g, n) && s == BASE_OK; k++)
		s = gen_closed_push(c,
			(struct intent){.cycle = from_cycle + delay,
				.source = n,
				.destination = first + k,
				.type = TYPE_RELEASE,
				.after_previous = true},
			err);
	return s;
}

static enum base_status gen_closed_arrive(
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
		return gen_closed_release(c, n, now, t->arrived, nr, err);
	return plan(c, n, (n - 1) / arity, now, (uint64_t)g->config->service, t->arrived, nr,
		TYPE_ARRIVE, err);
}

enum base_status noc_gen_tree(struct noc_gen_state *g, struct base_err *err)
{
	struct closed c;
	uint32_t arity = (uint32_t)g->config->arity;
	struct tree_node *node = base_alloc(g->nr_nodes * sizeof *node);
	enum base_status s = gen_closed_init(&c, g, err);
	if (!node && s == BASE_OK)
		s = base_fail(err, BASE_ERR_NOMEM, "no memory for %u {node|nodes}", g->nr_nodes);
	for (uint32_t n = 1; n < g->nr_nodes && s == BASE_OK; n++)
		if (!nr_children(g, n))
			s = plan(&c, n, (n - 1) / arity, 0, think(g), NULL, 0, TYPE_ARRIVE, err);
	while (s == BASE_OK && g->pdg->nr_packets < (uint32_t)g->config->packets) {
		uint32_t p;
		s = gen_closed_next(&c, &p, err);
		if (s != BASE_OK)
			break;
		uint32_t at = g->pdg->destination[p];
		uint64_t now = g->pdg->receive_cycle[p];
		if (g->pdg->type[p] == TYPE_ARRIVE)
			s = gen_closed_arrive(&c, node, p, err);
		else if (nr_children(g, at))
			s = gen_closed_release(&c, at, now, &p, 1, err);
		else
			s = plan(&c, at, (at - 1) / arity, now, think(g), &p, 1, TYPE_ARRIVE, err);
	}
	base_free(node);
	gen_closed_fini(&c);
	return s;
}

/* ---- inval ----------------------------------------------------------------------------------- */

/* A node's write, of which each has one under way: its acknowledgements so far. */
struct write {
	uint32_t acknowledged[FAN_IN_MAX], nr;
};

/* What packet p, of the write of node `writer`, leads to. */
static enum base_status after_inval(
	struct closed *c, struct write *write, uint32_t nr_copies, uint32_t p, struct base_err *err)
{
	struct noc_gen_state *g = c->g;
	const struct noc_pdg *pdg = g->pdg;
	uint32_t at = pdg->destination[p], writer = (uint32_t)pdg->address[p];
	struct intent in = {.source = at,
		.dependency = {p},
		.nr_dependencies = 1,
		.address = writer,
		.except = NOC_PDG_NONE,
		.delay_cycles = pdg->type[p] == TYPE_DATA ? think(g) : service(g)};
	struct write *w = &write[writer];
	switch (pdg->type[p]) {
	case TYPE_WRITE:
		in.type = TYPE_INVALIDATE;
		in.nr_receivers = nr_copies;
		in.except = writer;
		do
			in.destination = noc_gen_other_node(g, at);
		while (in.destination == writer);
		break;
	case TYPE_INVALIDATE:
		in.type = TYPE_ACKNOWLEDGE;
		in.destination = pdg->source[p];
		break;
	case TYPE_ACKNOWLEDGE:
		w->acknowledged[w->nr++] = p;
		if (w->nr < nr_copies)
			return BASE_OK;
		memcpy(in.dependency, w->acknowledged, sizeof in.dependency);
		in.nr_dependencies = w->nr;
		w->nr = 0;
		in.type = TYPE_DATA;
		in.destination = writer;
		break;
	default:
		in.type = TYPE_WRITE;
		in.destination = noc_gen_other_node(g, at);
	}
	in.cycle = pdg->receive_cycle[p] + in.delay_cycles;
	return gen_closed_push(c, in, err);
}

enum base_status noc_gen_inval(struct noc_gen_state *g, struct base_err *err)
{
	struct closed c;
	uint32_t nr_copies = (uint32_t)g->config->receivers, wanted = (uint32_t)g->config->packets;
	if (g->nr_nodes < 3)
		return base_fail(err, BASE_ERR_USAGE, "pattern = inval wants 3 nodes or more");
	nr_copies = nr_copies < g->nr_nodes - 1 ? nr_copies : g->nr_nodes - 2;
	struct write *write = base_alloc(g->nr_nodes * sizeof *write);
	enum base_status s = gen_closed_init(&c, g, err);
	if (!write && s == BASE_OK)
		s = base_fail(err, BASE_ERR_NOMEM, "no memory for %u {node|nodes}", g->nr_nodes);
	g->pdg->has_addresses = true;
	for (uint32_t n = 0; n < g->nr_nodes && s == BASE_OK; n++) {
		uint64_t first = think(g);
		s = gen_closed_push(&c,
			(struct intent){.cycle = first,
				.source = n,
				.destination = noc_gen_other_node(g, n),
				.delay_cycles = first,
				.type = TYPE_WRITE,
				.address = n,
				.except = NOC_PDG_NONE},
			err);
	}
	while (s == BASE_OK && g->pdg->nr_packets < wanted) {
		uint32_t p;
		s = gen_closed_next(&c, &p, err);
		for (; s == BASE_OK && p < g->pdg->nr_packets; p++)
			s = after_inval(&c, write, nr_copies, p, err);
	}
	base_free(write);
	gen_closed_fini(&c);
	return s;
}

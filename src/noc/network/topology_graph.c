/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology_graph.c - routers and links from a text; shortest ways in a table; proof that they
 * cannot deadlock.
 *
 * Lines as of BookSim's `anynet`, numbers from 0 on:
 *	router 0 node 0 node 1 router 1 10 router 2
 * is router 0 with two nodes, a link to router 1 that takes 10 cycles, one to router 2 of one
 * cycle. The other direction is the same unless router 1's own line gives it. A second number after
 * the latency: cycles that a flit keeps the link busy; 1/4: four flits cross it in a cycle. `#` and
 * `//` begin a comment.
 *
 * A way is shortest in cycles, ties go to the lower port. All packets use all virtual channels; so
 * the links that ways take one after the other must not form a ring (Dally and Seitz, 1987), and
 * where they do, up*-down* ways (Schroeder et al., 1991) are taken instead: links have a direction
 * by a breadth-first tree, and no way goes up after it went down.
 */
#include "noc/network/topology.h"

#include "noc/network/network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	GRAPH_BYTES_MAX = 1 << 24,
	LATENCY_MAX = 4096,
	BUSY_MAX = 64,
	FLITS_MAX = 16,
	NUMBER_MAX = 1 << 20
};

struct graph_link {
	uint32_t from, to, latency;
	uint32_t busy, flits; /* cycles a flit, flits a cycle; flits 0: as the configuration says */
	bool given;           /* by a line of `from` */
};
struct graph {
	const struct noc_config *config;
	struct graph_link *link;
	size_t nr_links, link_capacity;
	uint32_t *router_of; /* of nodes */
	size_t nr_nodes, node_capacity;
	uint32_t nr_routers;
	struct base_map link_of; /* (from, to) -> index */
};

/* ---- the text -------------------------------------------------------------------------------- */

static enum base_status read_text(const char *path, struct base_str *ret, struct base_err *err)
{
	FILE *f = fopen(path, "r");
	if (!f)
		return base_fail(err, BASE_ERR_IO, "graph = %s: %s", path, strerror(errno));
	char part[4096];
	size_t nr;
	while ((nr = fread(part, 1, sizeof part, f)) > 0 && ret->length < GRAPH_BYTES_MAX)
		base_str_add_bytes(ret, part, nr);
	bool bad = ferror(f);
	fclose(f);
	if (bad)
		return base_fail(err, BASE_ERR_IO, "graph = %s: cannot be read", path);
	if (ret->length >= GRAPH_BYTES_MAX)
		return base_fail(err, BASE_ERR_LIMIT, "graph = %s: more than %d bytes", path,
			GRAPH_BYTES_MAX);
	return ret->failed ? base_fail(err, BASE_ERR_NOMEM, "graph = %s", path) : BASE_OK;
}

static enum base_status topology_graph_add_link(
	struct graph *g, struct graph_link link, struct base_err *err)
{
	uint32_t from = link.from, to = link.to;
	bool given = link.given;
	uint64_t i;
	if (base_map_get(&g->link_of, from, to, &i)) {
		BASE_ASSUME(g->link);
		if (given && g->link[i].given)
			return base_fail(
				err, BASE_ERR_USAGE, "two links from router %u to %u", from, to);
		if (given)
			g->link[i] = link;
		return BASE_OK;
	}
	enum base_status s =
		base_grow(&g->link, &g->link_capacity, g->nr_links + 1, sizeof *g->link);
	if (s == BASE_OK)
		s = base_map_put(&g->link_of, from, to, g->nr_links);
	if (s != BASE_OK)
		return base_fail(err, s, "%zu {link|links}", g->nr_links);
	g->link[g->nr_links++] = link;
	return BASE_OK;
}

static enum base_status topology_graph_add_node(
	struct graph *g, uint32_t router, uint32_t node, struct base_err *err)
{
	size_t old = g->nr_nodes;
	enum base_status s =
		base_grow(&g->router_of, &g->node_capacity, (size_t)node + 1, sizeof *g->router_of);
	if (s != BASE_OK)
		return base_fail(err, s, "%u {node|nodes}", node);
	for (size_t i = old; i <= node; i++)
		g->router_of[i] = UINT32_MAX;
	if (node >= g->nr_nodes)
		g->nr_nodes = (size_t)node + 1;
	if (g->router_of[node] != UINT32_MAX)
		return base_fail(err, BASE_ERR_USAGE, "node %u is at two routers", node);
	g->router_of[node] = router;
	return BASE_OK;
}

static bool topology_graph_next_number(
	const char **at, const char *end, uint32_t most, uint32_t *ret)
{
	const char *p = *at;
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if (p == end || *p < '0' || *p > '9')
		return false;
	uint32_t v = 0;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		v = v < NUMBER_MAX ? v * 10 + (uint32_t)(*p - '0') : v;
	*at = p;
	*ret = v;
	return v <= most;
}

static bool topology_graph_next_word(const char **at, const char *end, const char *word)
{
	const char *p = *at;
	size_t length = strlen(word);
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
		p++;
	if ((size_t)(end - p) < length || memcmp(p, word, length) != 0)
		return false;
	*at = p + length;
	return true;
}

/* After 'router NUMBER': latency, cycles a flit (or 1/flits a cycle), as far as they are there. */
static enum base_status parse_link(
	const char **at, const char *end, struct graph_link *l, struct base_err *err)
{
	if (topology_graph_next_number(at, end, LATENCY_MAX, &l->latency) &&
		topology_graph_next_number(at, end, BUSY_MAX, &l->busy)) {
		l->flits = 1;
		if (*at < end && **at == '/') {
			(*at)++;
			if (!topology_graph_next_number(at, end, FLITS_MAX, &l->flits) ||
				l->busy != 1)
				l->flits = 0;
		}
		if (!l->flits)
			return base_fail(err, BASE_ERR_USAGE,
				"flits that cross a link in a cycle are 1/1 to 1/%d", FLITS_MAX);
	}
	if (!l->latency || l->latency > LATENCY_MAX || !l->busy || l->busy > BUSY_MAX)
		return base_fail(err, BASE_ERR_USAGE,
			"latency is 1 to %d cycles, a flit takes 1 to %d", LATENCY_MAX, BUSY_MAX);
	return BASE_OK;
}

static enum base_status topology_graph_parse_line(
	struct graph *g, const char *at, const char *end, struct base_err *err)
{
	uint32_t own = UINT32_MAX, other;
	if (topology_graph_next_word(&at, end, "") && at == end)
		return BASE_OK;
	if (!topology_graph_next_word(&at, end, "router") ||
		!topology_graph_next_number(&at, end, NOC_ROUTERS_MAX - 1, &own))
		return base_fail(err, BASE_ERR_USAGE, "does not begin with 'router NUMBER'");
	g->nr_routers = own >= g->nr_routers ? own + 1 : g->nr_routers;
	for (;;) {
		if (topology_graph_next_word(&at, end, "router")) {
			struct graph_link link = {.from = own,
				.latency = g->config->link_cycles ? (uint32_t)g->config->link_cycles
								  : 1,
				.busy = (uint32_t)g->config->link_flit_cycles,
				.given = true};
			if (!topology_graph_next_number(&at, end, NOC_ROUTERS_MAX - 1, &other) ||
				other == own)
				return base_fail(err, BASE_ERR_USAGE,
					"'router' without another one's number");
			g->nr_routers = other >= g->nr_routers ? other + 1 : g->nr_routers;
			link.to = other;
			enum base_status s = parse_link(&at, end, &link, err);
			if (s == BASE_OK)
				s = topology_graph_add_link(g, link, err);
			link.from = other;
			link.to = own;
			link.given = false;
			if (s == BASE_OK)
				s = topology_graph_add_link(g, link, err);
			if (s != BASE_OK)
				return s;
		} else if (topology_graph_next_word(&at, end, "node")) {
			if (!topology_graph_next_number(&at, end, NOC_NODES_MAX - 1, &other))
				return base_fail(err, BASE_ERR_USAGE, "'node' without a number");
			enum base_status s = topology_graph_add_node(g, own, other, err);
			if (s != BASE_OK)
				return s;
		} else {
			break;
		}
	}
	(void)topology_graph_next_word(&at, end, "");
	return at == end || strspn(at, " \t\r") >= (size_t)(end - at)
		       ? BASE_OK
		       : base_fail(err, BASE_ERR_USAGE, "'%.*s' is neither 'node' nor 'router'",
				 (int)(end - at < 20 ? end - at : 20), at);
}

static const char *comment(const char *at, const char *end)
{
	for (; at < end; at++)
		if (*at == '#' || (*at == '/' && at + 1 < end && at[1] == '/'))
			return at;
	return end;
}

static enum base_status topology_graph_parse(
	struct graph *g, const char *text, struct base_err *err)
{
	unsigned number = 1;
	for (const char *at = text; *at; number++) {
		const char *end = strchrnul(at, '\n');
		enum base_status s = topology_graph_parse_line(g, at, comment(at, end), err);
		if (s != BASE_OK)
			return base_cause(err, s, "graph = %s, line %u", g->config->graph, number);
		at = *end ? end + 1 : end;
	}
	if (!g->nr_nodes)
		return base_fail(err, BASE_ERR_USAGE, "graph = %s: no node", g->config->graph);
	for (size_t i = 0; i < g->nr_nodes; i++)
		if (g->router_of[i] == UINT32_MAX)
			return base_fail(err, BASE_ERR_USAGE,
				"graph = %s: node %zu is at no router", g->config->graph, i);
	return BASE_OK;
}

/* ---- ports ----------------------------------------------------------------------------------- */

static enum base_status topology_graph_connect(
	struct noc_topology *t, const struct graph *g, struct base_err *err)
{
	/* Ports are pairs: what goes out of one comes back into the same. Nodes are first. */
	uint32_t *degree = base_alloc(((size_t)g->nr_routers + 1) * sizeof *degree), most = 1;
	if (!degree)
		return base_fail(err, BASE_ERR_NOMEM, "%u {router|routers}", g->nr_routers);
	for (size_t i = 0; i < g->nr_nodes; i++)
		degree[g->router_of[i]]++;
	for (size_t i = 0; i < g->nr_links; i++)
		degree[g->link[i].from]++;
	for (uint32_t r = 0; r < g->nr_routers; r++) {
		most = degree[r] > most ? degree[r] : most;
		degree[r] = 0;
	}
	enum base_status s = noc_topology_alloc(t, g->nr_routers, g->nr_nodes, most, err);
	for (size_t i = 0; s == BASE_OK && i < g->nr_nodes; i++)
		noc_topology_node(t, (uint32_t)i, g->router_of[i], degree[g->router_of[i]]++);
	for (size_t i = 0; s == BASE_OK && i < g->nr_links; i++) {
		const struct graph_link *a = &g->link[i];
		if (a->from > a->to)
			continue;
		uint64_t back = 0;
		bool found = base_map_get(&g->link_of, a->to, a->from, &back);
		BASE_ASSERT(found);
		const struct graph_link *b = &g->link[back];
		uint32_t pa = degree[a->from]++, pb = degree[a->to]++;
		noc_topology_link(t, a->from, pa, a->to, pb, a->latency, a->busy);
		noc_topology_link(t, a->to, pb, a->from, pa, b->latency, b->busy);
		noc_topology_port(t, a->from, pa)->flits = (uint16_t)a->flits;
		noc_topology_port(t, a->to, pb)->flits = (uint16_t)b->flits;
	}
	base_free(degree);
	return s;
}

/* ---- ways ------------------------------------------------------------------------------------ */

enum {
	ROUTER_COST = 4
}; /* cycles: about what a router takes, so that few hops are worth some cycles of link */

/* For the ways to one router. */
struct ways {
	uint64_t *down,
		*any;    /* cost in cycles of the best way so far: that only goes down; at all */
	uint32_t *level; /* of up*-down*; NULL: every link is allowed, `any` is in use */
	uint32_t *queue; /* ring of routers whose cost fell */
	uint8_t *port, *queued;
};

static bool is_up(const struct ways *w, uint32_t from, uint32_t to)
{
	return w->level[to] < w->level[from] || (w->level[to] == w->level[from] && to < from);
}

/* Best ways from every router, where those in the queue are done; over links that go up, down, or
 * both (no levels). */
static void topology_graph_relax(
	const struct noc_topology *t, struct ways *w, uint64_t *cost, size_t nr_queued, bool up)
{
	for (size_t first = 0; nr_queued; nr_queued--) {
		uint32_t r = w->queue[first];
		first = first + 1 == t->nr_routers ? 0 : first + 1;
		w->queued[r] = 0;
		for (uint32_t p = 0; p < t->ports; p++) {
			/* Ports are pairs: the link from there comes in where the link to there
			 * goes out. */
			uint32_t from = noc_topology_port(t, r, p)->router;
			if (from == UINT32_MAX || (w->level && is_up(w, from, r) != up))
				continue;
			if (w->level && up && w->down[from] != UINT64_MAX)
				continue; /* goes down from there on */
			uint32_t out = noc_topology_port(t, r, p)->port;
			uint64_t sum =
				cost[r] + noc_topology_port(t, from, out)->latency + ROUTER_COST;
			if (sum > cost[from] || (sum == cost[from] && out >= w->port[from]))
				continue;
			w->port[from] = (uint8_t)out;
			if (sum == cost[from] || w->queued[from]) {
				cost[from] = sum;
				continue;
			}
			cost[from] = sum;
			w->queued[from] = 1;
			w->queue[(first + nr_queued - 1) % t->nr_routers] = from;
			nr_queued++;
		}
	}
}

/*
 * Shortest ways to `to`. With up*-down* a way is a part upwards, then a part downwards; to keep the
 * table one port a router, a router that reaches `to` by going down only does so.
 */
static void topology_graph_find_ways(const struct noc_topology *t, struct ways *w, uint32_t to)
{
	for (uint32_t r = 0; r < t->nr_routers; r++) {
		w->down[r] = w->any[r] = r == to ? 0 : UINT64_MAX;
		w->port[r] = UINT8_MAX;
	}
	w->queue[0] = to;
	w->queued[to] = 1;
	topology_graph_relax(t, w, w->level ? w->down : w->any, 1, false);
	if (!w->level)
		return;
	size_t nr = 0;
	for (uint32_t r = 0; r < t->nr_routers; r++) {
		w->any[r] = w->down[r];
		if (w->any[r] != UINT64_MAX) {
			w->queue[nr++] = r;
			w->queued[r] = 1;
		}
	}
	topology_graph_relax(t, w, w->any, nr, true);
}

static enum base_status fill_table(struct noc_topology *t, struct ways *w, struct base_err *err)
{
	for (uint32_t to = 0; to < t->nr_routers; to++) {
		topology_graph_find_ways(t, w, to);
		for (uint32_t r = 0; r < t->nr_routers; r++) {
			if (r != to && w->port[r] == UINT8_MAX)
				return base_fail(err, BASE_ERR_USAGE,
					"no way from router %u to router %u", r, to);
			t->table[(size_t)r * t->nr_routers + to] = w->port[r];
		}
	}
	return BASE_OK;
}

/* Levels of a breadth-first tree from router 0. */
static void set_levels(const struct noc_topology *t, uint32_t *level)
{
	for (uint32_t r = 0; r < t->nr_routers; r++)
		level[r] = r ? UINT32_MAX : 0;
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t r = 0; r < t->nr_routers; r++) {
			for (uint32_t p = 0; p < t->ports && level[r] != UINT32_MAX; p++) {
				uint32_t to = noc_topology_port(t, r, p)->router;
				if (to != UINT32_MAX && level[to] > level[r] + 1) {
					level[to] = level[r] + 1;
					changed = true;
				}
			}
		}
	}
}

/*
 * Which links follow which on any way between nodes, and whether they form a ring: links without
 * followers are taken away until none is left, or none can be.
 */
static enum base_status has_ring(const struct noc_topology *t, bool *ret, struct base_err *err)
{
	size_t links = (size_t)t->nr_routers * t->ports, gone = 0;
	uint64_t *follows = base_alloc(links * sizeof *follows);
	uint8_t *removed = base_alloc(links);
	enum base_status s = BASE_OK;
	if (!follows || !removed)
		s = base_fail(err, BASE_ERR_NOMEM, "%zu {link|links}", links);
	for (uint32_t i = 0; s == BASE_OK && i < t->nr_nodes; i++) {
		uint32_t to = t->node_router[i];
		BASE_ASSUME(t->table && follows);
		for (uint32_t r = 0; r < t->nr_routers; r++) {
			if (r == to)
				continue;
			/* Every router may be on a way to `to`, so each pair of its own link and
			 * the next one counts. */
			uint32_t p = t->table[(size_t)r * t->nr_routers + to];
			uint32_t next = noc_topology_port(t, r, p)->router;
			if (next != to)
				follows[(size_t)r * t->ports + p] |=
					(uint64_t)1 << t->table[(size_t)next * t->nr_routers + to];
		}
	}
	for (bool changed = true; s == BASE_OK && changed;) {
		changed = false;
		for (size_t l = 0; l < links; l++) {
			BASE_ASSUME(follows && removed);
			if (removed[l])
				continue;
			uint32_t next = t->port[l].router;
			bool stays = false;
			for (uint64_t bits = next == UINT32_MAX ? 0 : follows[l]; bits;
				bits &= bits - 1)
				stays |= !removed[(size_t)next * t->ports +
						  (uint32_t)__builtin_ctzll(bits)];
			if (stays)
				continue;
			removed[l] = 1;
			gone++;
			changed = true;
		}
	}
	*ret = gone < links;
	base_free(follows);
	base_free(removed);
	return s;
}

static enum base_status make_ways(struct noc_topology *t, struct base_err *err)
{
	if (t->nr_routers > NOC_TABLE_ROUTERS_MAX)
		return base_fail(err, BASE_ERR_LIMIT,
			"a graph of %u {router|routers}: the most is %d", t->nr_routers,
			NOC_TABLE_ROUTERS_MAX);
	size_t nr = t->nr_routers;
	bool ring = false;
	uint32_t *level = base_alloc(nr * sizeof *level);
	struct ways w = {.down = base_alloc(nr * sizeof *w.down),
		.any = base_alloc(nr * sizeof *w.any),
		.queue = base_alloc(nr * sizeof *w.queue),
		.port = base_alloc(nr),
		.queued = base_alloc(nr)};
	t->table = base_alloc(nr * nr);
	enum base_status s = BASE_OK;
	if (!level || !w.down || !w.any || !w.queue || !w.port || !w.queued || !t->table)
		s = base_fail(err, BASE_ERR_NOMEM, "ways between %zu {router|routers}", nr);
	else
		s = fill_table(t, &w, err);
	if (s == BASE_OK)
		s = has_ring(t, &ring, err);
	if (s == BASE_OK && ring) {
		set_levels(t, level);
		w.level = level;
		s = fill_table(t, &w, err);
		if (s == BASE_OK)
			s = has_ring(t, &ring, err);
		BASE_ASSERT(s != BASE_OK || !ring);
	}
	base_free(level);
	base_free(w.down);
	base_free(w.any);
	base_free(w.queue);
	base_free(w.port);
	base_free(w.queued);
	return s;
}

enum base_status noc_topology_graph_text(
	struct noc_topology *t, const struct noc_config *c, const char *text, struct base_err *err)
{
	struct graph g = {.config = c};
	enum base_status s = topology_graph_parse(&g, text, err);
	if (s == BASE_OK)
		s = topology_graph_connect(t, &g, err);
	if (s == BASE_OK) {
		s = make_ways(t, err);
		if (s != BASE_OK)
			s = base_cause(err, s, "graph = %s", c->graph);
	}
	base_free(g.link);
	base_free(g.router_of);
	base_map_fini(&g.link_of);
	return s;
}

enum base_status noc_topology_graph(
	struct noc_topology *t, const struct noc_config *c, struct base_err *err)
{
	struct base_str text = {0};
	if (!*c->graph)
		return base_fail(err, BASE_ERR_USAGE, "topology = graph needs graph = FILE");
	enum base_status s = read_text(c->graph, &text, err);
	if (s == BASE_OK)
		s = noc_topology_graph_text(t, c, base_str_text(&text), err);
	base_str_fini(&text);
	return s;
}

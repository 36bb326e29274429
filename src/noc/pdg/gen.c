/* SPDX-License-Identifier: Apache-2.0 */
/* gen.c - reference graphs: the table, parameters, and the open patterns. */
#include "noc/pdg/gen_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ------------------------------------------------------------------------------ */

static const struct base_parameter parameter_table[] = {
#define PARAM(key, preset, least, most, unit, sentence)                                            \
	{BASE_NUMBER(BASE_REAL, struct noc_gen_config, key, preset, least, most, unit, sentence)},
#include "noc/pdg/gen_parameters.def"
};

struct base_parameters noc_gen_parameters(void)
{
	return (struct base_parameters){parameter_table, BASE_COUNT(parameter_table)};
}

void noc_gen_config_init(struct noc_gen_config *c)
{
	*c = (struct noc_gen_config){0};
	base_parameters_preset(noc_gen_parameters(), NULL, c);
}

static enum base_status gen_set_pattern(
	struct noc_gen_config *c, const char *name, struct base_err *err)
{
	size_t nr;
	const struct noc_gen_pattern *p = noc_gen_patterns(&nr);
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(p[i].name, name)) {
			c->pattern = (unsigned)i;
			return BASE_OK;
		}
	struct base_str list = {0};
	for (size_t i = 0; i < nr; i++)
		base_str_addf(&list, "%s%s", i ? ", " : "", p[i].name);
	enum base_status s = base_fail(
		err, BASE_ERR_USAGE, "pattern = %s: it is one of %s", name, base_str_text(&list));
	base_str_fini(&list);
	return s;
}

enum base_status noc_gen_config_set(
	struct noc_gen_config *c, const char *assignment, struct base_err *err)
{
	struct base_assignment a;
	enum base_status s = base_assignment_split(&a, assignment, err);
	if (s != BASE_OK)
		return s;
	if (!strcmp(a.key, "pattern"))
		return gen_set_pattern(c, a.value, err);
	const struct base_parameter *p =
		base_parameter_find(noc_gen_parameters(), NULL, a.key, err);
	return p ? base_parameter_set(p, c, a.value, err) : BASE_ERR_USAGE;
}

/* ---- where packets go ------------------------------------------------------------------------ */

double noc_gen_exponential(struct noc_gen_state *g, double mean)
{
	return -log(1 - noc_draw_share(&g->draw)) * mean;
}

uint32_t noc_gen_other_node(struct noc_gen_state *g, uint32_t from)
{
	uint32_t n = noc_draw_below(&g->draw, g->nr_nodes - 1);
	return n + (n >= from);
}

static uint32_t gen_at(const struct noc_gen_state *g, uint32_t x, uint32_t y)
{
	return y % g->height * g->width + x % g->width;
}

static uint32_t gen_to_uniform(struct noc_gen_state *g, uint32_t from)
{
	return noc_gen_other_node(g, from);
}

static uint32_t gen_to_neighbour(struct noc_gen_state *g, uint32_t from)
{
	uint32_t x = from % g->width, y = from / g->width, k = noc_draw_below(&g->draw, 4);
	uint32_t to = k < 2 ? gen_at(g, x + (k ? 1 : g->width - 1), y)
			    : gen_at(g, x, y + (k == 2 ? 1 : g->height - 1));
	return to == from ? noc_gen_other_node(g, from) : to;
}

/* ceil(k/2) - 1 on, in each dimension (Dally and Towles, table 3.1). */
static uint32_t gen_to_tornado(struct noc_gen_state *g, uint32_t from)
{
	uint32_t x = from % g->width, y = from / g->width;
	uint32_t to = gen_at(g, x + (g->width + 1) / 2 - 1, y + (g->height + 1) / 2 - 1);
	return to == from ? noc_gen_other_node(g, from) : to;
}

static uint32_t to_transposed(struct noc_gen_state *g, uint32_t from)
{
	uint32_t to = from % g->width * g->height + from / g->width;
	return to == from ? (from + 1) % g->nr_nodes : to;
}

/* Every bit of the number inverted; of a number of nodes that is no power of two: mirrored. */
static uint32_t to_inverse(struct noc_gen_state *g, uint32_t from)
{
	uint32_t to = g->nr_nodes - 1 - from;
	return to == from ? noc_gen_other_node(g, from) : to;
}

static uint32_t to_hot(struct noc_gen_state *g, uint32_t from)
{
	uint32_t hot = (uint32_t)g->config->hot_node % g->nr_nodes;
	if (from != hot && noc_draw_share(&g->draw) < g->config->hot_share)
		return hot;
	return noc_gen_other_node(g, from);
}

uint32_t noc_gen_to_near(struct noc_gen_state *g, uint32_t from)
{
	int32_t width = (int32_t)g->width, height = (int32_t)g->height;
	int32_t x = (int32_t)(from % g->width), y = (int32_t)(from / g->width);
	for (unsigned tries = 0; tries < 1000; tries++) {
		double far = noc_gen_exponential(g, g->config->ned_hops);
		int32_t hops = far > width + height ? width + height : 1 + (int32_t)far;
		int32_t dx = (int32_t)noc_draw_below(&g->draw, (uint32_t)(2 * hops + 1)) - hops;
		int32_t dy = hops - abs(dx);
		if (noc_draw_below(&g->draw, 2))
			dy = -dy;
		if (x + dx < 0 || x + dx >= width || y + dy < 0 || y + dy >= height)
			continue;
		return (uint32_t)((y + dy) * width + x + dx);
	}
	return noc_gen_other_node(g, from);
}

/* ---- the patterns ---------------------------------------------------------------------------- */

static const struct noc_gen_pattern pattern[] = {
	{"rand", "uniform random destinations"},
	{"nn", "nearest neighbours on the grid, with wrap-around"},
	{"tor", "tornado: half way round each dimension"},
	{"trans", "transpose: from (x, y) to (y, x)"},
	{"inv", "bit inverse: to the node with all bits of the number inverted"},
	{"hot", "hotspot: a share of all packets goes to one node"},
	{"ned", "negative exponential distribution of distances (Rahmani and others 2009)"},
	{"ball", "tokens that are thrown on and on, as a ball over a crowd"},
	{"central", "requests to one node, which answers each"},
	{"tree", "barriers: arrivals up a tree, releases down"},
	{"inval", "writes: the line's home invalidates all copies (multicast), and answers when "
		  "all have said so"},
};

static const struct {
	uint32_t (*to)(struct noc_gen_state *g, uint32_t from);                 /* open */
	enum base_status (*run)(struct noc_gen_state *g, struct base_err *err); /* closed */
} behaviour[] = {
	{gen_to_uniform, NULL},
	{gen_to_neighbour, NULL},
	{gen_to_tornado, NULL},
	{to_transposed, NULL},
	{to_inverse, NULL},
	{to_hot, NULL},
	{noc_gen_to_near, NULL},
	{NULL, noc_gen_ball},
	{NULL, noc_gen_central},
	{NULL, noc_gen_tree},
	{NULL, noc_gen_inval},
};
_Static_assert(BASE_COUNT(pattern) == BASE_COUNT(behaviour), "a behaviour each");

const struct noc_gen_pattern *noc_gen_patterns(size_t *ret_nr)
{
	*ret_nr = BASE_COUNT(pattern);
	return pattern;
}

uint32_t noc_gen_flits(struct noc_gen_state *g)
{
	const struct noc_gen_config *c = g->config;
	bool is_long = c->long_share > 0 && noc_draw_share(&g->draw) < c->long_share;
	return (uint32_t)(is_long ? c->long_flits : c->flits);
}

/* Different nodes in ascending order; one is there already. */
static void draw_receivers(
	struct noc_gen_state *g, uint32_t source, uint32_t except, uint32_t *ret, uint32_t nr)
{
	for (uint32_t k = 1; k < nr;) {
		uint32_t i = k, node = noc_gen_other_node(g, source);
		if (node == except)
			continue;
		while (i && ret[i - 1] > node)
			i--;
		if (i && ret[i - 1] == node)
			continue;
		memmove(ret + i + 1, ret + i, (k - i) * sizeof *ret);
		ret[i] = node;
		k++;
	}
}

enum base_status noc_gen_add(struct noc_gen_state *g, struct noc_pdg_packet p,
	uint32_t nr_receivers, uint32_t except, const uint32_t *dependency,
	uint32_t nr_dependencies, struct base_err *err)
{
	uint32_t receiver[NOC_GEN_RECEIVERS_MAX + 1] = {p.destination};
	draw_receivers(g, p.source, except, receiver, nr_receivers);
	p.destination = receiver[0];
	enum base_status s = noc_pdg_add(g->pdg, &p, err);
	for (uint32_t k = 0; k < nr_dependencies && s == BASE_OK; k++)
		s = noc_pdg_add_dependency(g->pdg, dependency[k], NOC_GIVEN, err);
	p.inputs = NOC_PDG_COPY;
	p.delay_cycles = 0;
	for (uint32_t k = 1; k < nr_receivers && s == BASE_OK; k++) {
		p.destination = receiver[k];
		s = noc_pdg_add(g->pdg, &p, err);
	}
	return s;
}

/* ---- open patterns --------------------------------------------------------------------------- */

enum { REACH_MAX = 64 };

struct open_node {
	uint32_t last[REACH_MAX]; /* receptions, a ring */
	uint32_t nr_received;
	uint64_t next_cycle, transmit_cycle; /* the next one and the one before; 0: none */
};

/* Draws dependencies among the node's last receptions into d[]; their number. */
static uint32_t draw_dependencies(
	struct noc_gen_state *g, const struct open_node *n, uint64_t now, uint32_t *d)
{
	const struct noc_gen_config *c = g->config;
	uint32_t reach = (uint32_t)c->reach, nr = 0, candidate[REACH_MAX], nr_candidates = 0;
	for (uint32_t k = 0; k < reach && k < n->nr_received; k++) {
		uint32_t p = n->last[(n->nr_received - 1 - k) % REACH_MAX];
		uint64_t arrival = g->pdg->receive_cycle[p];
		if (arrival < now && !(c->inside > 0 && arrival < n->transmit_cycle))
			candidate[nr_candidates++] = p;
	}
	if (!nr_candidates || noc_draw_share(&g->draw) < c->roots)
		return 0;
	uint32_t want = 1 + noc_draw_below(&g->draw, (uint32_t)c->fan_in);
	while (nr < want && nr_candidates) {
		uint32_t k = noc_draw_below(&g->draw, nr_candidates);
		d[nr++] = candidate[k];
		candidate[k] = candidate[--nr_candidates];
	}
	return nr;
}

static uint32_t draw_nr_receivers(struct noc_gen_state *g)
{
	const struct noc_gen_config *c = g->config;
	uint32_t room = (uint32_t)c->packets - g->pdg->nr_packets, nr = (uint32_t)c->receivers;
	if (c->multicast <= 0 || noc_draw_share(&g->draw) >= c->multicast)
		return 1;
	nr = nr < g->nr_nodes ? nr : g->nr_nodes - 1;
	return nr < room ? nr : room;
}

static enum base_status transmit_open(struct noc_gen_state *g, struct open_node *n, uint32_t from,
	uint64_t now, struct base_err *err)
{
	uint32_t dependency[REACH_MAX], nr = draw_dependencies(g, n, now, dependency);
	uint64_t input = nr ? 0 : n->transmit_cycle;
	for (uint32_t k = 0; k < nr; k++)
		if (g->pdg->receive_cycle[dependency[k]] > input)
			input = g->pdg->receive_cycle[dependency[k]];
	struct noc_pdg_packet p = {.source = from,
		.destination = behaviour[g->config->pattern].to(g, from),
		.size_flits = noc_gen_flits(g),
		.inputs = !nr && n->transmit_cycle ? NOC_PDG_PREVIOUS : 0,
		.transmit_cycle = now,
		.receive_cycle = now + 1,
		.delay_cycles = now - input};
	n->transmit_cycle = now;
	return noc_gen_add(g, p, draw_nr_receivers(g), NOC_PDG_NONE, dependency, nr, err);
}

static uint64_t draw_gap(struct noc_gen_state *g)
{
	return 1 + (uint64_t)noc_gen_exponential(g, g->config->gap - 1);
}

/* Going cycle by cycle over a wheel of transmits would be faster for few nodes and long gaps;
 * a look at all nodes is simple, and skips to the next transmit of any. */
static enum base_status run_open(struct noc_gen_state *g, struct base_err *err)
{
	struct noc_pdg *pdg = g->pdg;
	uint32_t wanted = (uint32_t)g->config->packets, delivered = 0;
	struct open_node *node = base_alloc(g->nr_nodes * sizeof *node);
	enum base_status s = BASE_OK;
	if (!node)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %u {node|nodes}", g->nr_nodes);
	for (uint32_t n = 0; n < g->nr_nodes; n++)
		node[n].next_cycle = draw_gap(g);
	while (pdg->nr_packets < wanted && s == BASE_OK) {
		uint64_t now = UINT64_MAX;
		for (uint32_t n = 0; n < g->nr_nodes; n++)
			now = node[n].next_cycle < now ? node[n].next_cycle : now;
		for (; delivered < pdg->nr_packets && pdg->receive_cycle[delivered] <= now;
			delivered++) {
			struct open_node *to = &node[pdg->destination[delivered]];
			to->last[to->nr_received++ % REACH_MAX] = delivered;
		}
		for (uint32_t n = 0; n < g->nr_nodes && pdg->nr_packets < wanted && s == BASE_OK;
			n++)
			if (node[n].next_cycle == now) {
				s = transmit_open(g, &node[n], n, now, err);
				node[n].next_cycle = now + draw_gap(g);
			}
	}
	base_free(node);
	return s;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void gen_describe(const struct noc_gen_config *c, struct noc_pdg *g)
{
	struct base_str text = {0};
	base_str_addf(&text, "gen pattern=%s", pattern[c->pattern].name);
	for (size_t i = 0; i < BASE_COUNT(parameter_table); i++) {
		base_str_addf(&text, " %s=", parameter_table[i].key);
		base_parameter_add_value(&text, &parameter_table[i], c);
	}
	size_t length = strnlen(base_str_text(&text), sizeof g->origin - 1);
	memcpy(g->origin, base_str_text(&text), length);
	base_str_fini(&text);
}

enum base_status noc_gen(const struct noc_gen_config *c, struct noc_pdg **ret, struct base_err *err)
{
	struct noc_gen_state g = {.config = c, .nr_nodes = (uint32_t)c->nodes};
	*ret = NULL;
	for (g.height = (uint32_t)sqrt((double)g.nr_nodes); g.nr_nodes % g.height;)
		g.height--;
	g.width = g.nr_nodes / g.height;
	noc_draw_init(&g.draw, (uint64_t)c->seed);
	g.pdg = noc_pdg_new(g.nr_nodes);
	if (!g.pdg)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for a graph");
	enum base_status s =
		behaviour[c->pattern].to ? run_open(&g, err) : behaviour[c->pattern].run(&g, err);
	if (s != BASE_OK) {
		noc_pdg_free(g.pdg);
		return s;
	}
	g.pdg->has_graph = true;
	gen_describe(c, g.pdg);
	*ret = g.pdg;
	return BASE_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* path.c - backward from the last reception; and what was sent, whatever waited for what. */
#include "noc/pdg/path.h"

/* Which event is looked at: the transmit of a packet, which happened at transmit_cycle. */
struct step {
	uint32_t packet;   /* the input's; NOC_PDG_NONE: the start */
	bool is_reception; /* else its transmit */
	uint64_t cycle;
};

static void consider(struct noc_path *p, struct step *last, struct step s, uint64_t until_cycle)
{
	if (s.cycle > until_cycle)
		p->nr_late++;
	else if (last->packet == NOC_PDG_NONE || s.cycle >= last->cycle)
		*last = s;
}

/* The last input of a transmit's gate that came before it. */
static struct step last_input(
	const struct noc_pdg *g, uint32_t i, uint32_t before, struct noc_path *p)
{
	struct step last = {.packet = NOC_PDG_NONE};
	if (g->inputs[i] & NOC_PDG_PREVIOUS && before != NOC_PDG_NONE)
		consider(p, &last, (struct step){before, false, g->transmit_cycle[before]},
			g->transmit_cycle[i]);
	for (uint64_t d = g->first[i]; d < g->first[i + 1]; d++) {
		uint32_t on = g->dependency[d];
		consider(p, &last, (struct step){on, true, g->receive_cycle[on]},
			g->transmit_cycle[i]);
	}
	return last;
}

static void path_add(struct noc_path *p, enum noc_path_part part, uint32_t node, uint64_t cycles)
{
	p->part_cycles[part] += cycles;
	p->node_cycles[node] += cycles;
}

/* From a transmit to what it waited for. */
static struct step before_transmit(
	const struct noc_pdg *g, uint32_t i, uint32_t before, struct noc_path *p)
{
	uint64_t now = g->transmit_cycle[i];
	uint32_t node = g->source[i];
	struct step last = last_input(g, i, before, p);
	uint64_t gap = now - last.cycle, delay = g->delay_cycles[i] ? g->delay_cycles[i] : 1;
	if (gap > delay && g->ordered[node] && before != NOC_PDG_NONE &&
		g->transmit_cycle[before] + 1 == now) {
		path_add(p, NOC_PATH_TURN, node, 1);
		return (struct step){before, false, g->transmit_cycle[before]};
	}
	path_add(p, NOC_PATH_NODE, node, gap < delay ? gap : delay);
	if (gap > delay)
		path_add(p, g->inputs[i] & NOC_PDG_NOT_BEFORE ? NOC_PATH_STAMP : NOC_PATH_REST,
			node, gap - delay);
	return last;
}

static uint32_t last_received(const struct noc_pdg *g)
{
	uint32_t last = 0;
	for (uint32_t i = 1; i < g->nr_packets; i++)
		if (g->receive_cycle[i] > g->receive_cycle[last])
			last = i;
	return last;
}

enum base_status noc_path_find(const struct noc_pdg *g, struct noc_path *ret, struct base_err *err)
{
	struct noc_index x = {0};
	*ret = (struct noc_path){.node_cycles = base_alloc(g->nr_nodes * sizeof *ret->node_cycles)};
	if (!ret->node_cycles)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %u {node|nodes}", g->nr_nodes);
	enum base_status s = noc_index_init(&x, g, g->receive_cycle, 1, err);
	struct step at = {.packet = NOC_PDG_NONE};
	if (s == BASE_OK && g->nr_packets) {
		uint32_t last = last_received(g);
		at = (struct step){last, true, g->receive_cycle[last]};
	}
	ret->execution_cycles = at.cycle;
	while (at.packet != NOC_PDG_NONE) {
		uint32_t i = at.packet;
		if (at.is_reception) {
			ret->part_cycles[NOC_PATH_NETWORK] += at.cycle - g->transmit_cycle[i];
			ret->nr_packets++;
		}
		while (noc_pdg_is_copy(g, i)) /* the gate is the transmit's */
			i--;
		at = before_transmit(g, i, x.previous[i], ret);
	}
	noc_index_fini(&x);
	if (s != BASE_OK)
		noc_path_fini(ret);
	return s;
}

void noc_path_fini(struct noc_path *p)
{
	base_free(p->node_cycles);
	*p = (struct noc_path){0};
}

/* ---- load ------------------------------------------------------------------------------------ */

/* Packets between the same nodes of the same size have the same key. */
static uint64_t path_key_of(const struct noc_pdg *g, uint32_t i)
{
	return (uint64_t)g->source[i] << 32 | g->destination[i];
}

static enum base_status add_excess(const struct noc_pdg *g, struct base_map *shortest,
	struct noc_load *l, struct base_err *err)
{
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		uint64_t latency = g->receive_cycle[i] - g->transmit_cycle[i], least;
		if (base_map_get(shortest, g->size_flits[i], path_key_of(g, i), &least) &&
			least <= latency)
			continue;
		enum base_status s =
			base_map_put(shortest, g->size_flits[i], path_key_of(g, i), latency);
		if (s != BASE_OK)
			return base_fail(err, s, "no memory for pairs of nodes");
	}
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		uint64_t excess = g->receive_cycle[i] - g->transmit_cycle[i], least;
		if (base_map_get(shortest, g->size_flits[i], path_key_of(g, i), &least))
			excess -= least;
		l->excess_cycles += excess;
		l->excess_at_cycles[g->destination[i]] += excess;
	}
	return BASE_OK;
}

enum base_status noc_load_count(const struct noc_pdg *g, struct noc_load *ret, struct base_err *err)
{
	struct base_map shortest = {0};
	*ret = (struct noc_load){
		.packets = g->nr_packets,
		.sent_flits = base_alloc(g->nr_nodes * sizeof *ret->sent_flits),
		.received_flits = base_alloc(g->nr_nodes * sizeof *ret->received_flits),
		.excess_at_cycles = base_alloc(g->nr_nodes * sizeof *ret->excess_at_cycles),
	};
	if (!ret->sent_flits || !ret->received_flits || !ret->excess_at_cycles) {
		noc_load_fini(ret);
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %u {node|nodes}", g->nr_nodes);
	}
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		uint64_t latency = g->receive_cycle[i] - g->transmit_cycle[i];
		if (!noc_pdg_is_copy(g, i))
			ret->sent_flits[g->source[i]] += g->size_flits[i];
		ret->flits += g->size_flits[i];
		ret->received_flits[g->destination[i]] += g->size_flits[i];
		ret->latency_cycles += latency;
		if (latency > ret->latency_max_cycles)
			ret->latency_max_cycles = latency;
		if (g->receive_cycle[i] > ret->execution_cycles)
			ret->execution_cycles = g->receive_cycle[i];
	}
	enum base_status s = add_excess(g, &shortest, ret, err);
	base_map_fini(&shortest);
	if (s != BASE_OK)
		noc_load_fini(ret);
	return s;
}

void noc_load_fini(struct noc_load *l)
{
	base_free(l->sent_flits);
	base_free(l->received_flits);
	base_free(l->excess_at_cycles);
	*l = (struct noc_load){0};
}

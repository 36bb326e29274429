/* SPDX-License-Identifier: Apache-2.0 */
/* pdg.c - packets and dependencies in memory. */
#include "noc/pdg/pdg.h"

#include <stdlib.h>
#include <string.h>

/* What there is one of for each packet, named as in struct noc_pdg_packet. */
#define PACKET_ARRAYS(A)                                                                           \
	A(source)                                                                                  \
	A(destination)                                                                             \
	A(size_flits)                                                                              \
	A(type) A(inputs) A(units) A(transmit_cycle) A(receive_cycle) A(delay_cycles) A(address)

struct noc_pdg *noc_pdg_new(uint32_t nr_nodes)
{
	struct noc_pdg *g = base_alloc(sizeof *g);
	if (!g || !nr_nodes || nr_nodes > NOC_PDG_NODES_MAX)
		return noc_pdg_free(g);
	g->nr_nodes = nr_nodes;
	g->ordered = base_alloc(nr_nodes);
	if (!g->ordered)
		return noc_pdg_free(g);
	memset(g->ordered, 1, nr_nodes);
	return g;
}

struct noc_pdg *noc_pdg_free(struct noc_pdg *g)
{
	if (!g)
		return NULL;
#define A(name) base_free(g->name);
	PACKET_ARRAYS(A)
#undef A
	base_free(g->first);
	base_free(g->dependency);
	base_free(g->certainty);
	base_free(g->ordered);
	base_free(g);
	return NULL;
}

/* One array of many that grow together; `capacity` is changed by the caller when all have. */
static bool grow_one(void *data, size_t elem_bytes, size_t capacity, size_t next)
{
	void **p = data;
	void *grown = base_realloc(*p, capacity * elem_bytes, next * elem_bytes);
	if (grown)
		*p = grown;
	return grown != NULL;
}

static enum base_status grow_packets(struct noc_pdg *g, size_t next, struct base_err *err)
{
	size_t capacity = g->packets_capacity;
	/* first[] has one more than the others; an array that has grown alone is merely larger */
	bool ok = grow_one(&g->first, sizeof *g->first, capacity ? capacity + 1 : 0, next + 1);
#define A(name) ok = ok && grow_one(&g->name, sizeof *g->name, capacity, next);
	PACKET_ARRAYS(A)
#undef A
	if (!ok)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %zu {packet|packets}", next);
	g->packets_capacity = next;
	return BASE_OK;
}

enum base_status noc_pdg_reserve(struct noc_pdg *g, uint32_t nr_packets, struct base_err *err)
{
	return nr_packets > g->packets_capacity ? grow_packets(g, nr_packets, err) : BASE_OK;
}

struct noc_pdg_packet noc_pdg_packet_at(const struct noc_pdg *g, uint32_t i)
{
	return (struct noc_pdg_packet){
#define A(name) .name = g->name[i],
		PACKET_ARRAYS(A)
#undef A
	};
}

void noc_pdg_set(struct noc_pdg *g, uint32_t i, const struct noc_pdg_packet *p)
{
#define A(name) g->name[i] = p->name;
	PACKET_ARRAYS(A)
#undef A
}

enum base_status noc_pdg_add(
	struct noc_pdg *g, const struct noc_pdg_packet *p, struct base_err *err)
{
	uint32_t i = g->nr_packets;
	if (i >= NOC_PDG_PACKETS_MAX)
		return base_fail(err, BASE_ERR_LIMIT, "more than %llu packets",
			(unsigned long long)NOC_PDG_PACKETS_MAX);
	if (i == g->packets_capacity) {
		enum base_status s = grow_packets(g, i ? (size_t)i * 2 : 64, err);
		if (s != BASE_OK)
			return s;
	}
	noc_pdg_set(g, i, p);
	if (!i)
		g->first[0] = 0;
	g->first[i + 1] = g->first[i];
	g->nr_packets++;
	return BASE_OK;
}

enum base_status noc_pdg_add_dependency(
	struct noc_pdg *g, uint32_t on, enum noc_certainty c, struct base_err *err)
{
	uint64_t nr = noc_pdg_nr_dependencies(g);
	if (nr == g->dependencies_capacity) {
		size_t capacity = g->dependencies_capacity, next = capacity ? capacity * 2 : 64;
		if (!grow_one(&g->dependency, sizeof *g->dependency, capacity, next) ||
			!grow_one(&g->certainty, sizeof *g->certainty, capacity, next))
			return base_fail(err, BASE_ERR_NOMEM,
				"no memory for %zu {dependency|dependencies}", next);
		g->dependencies_capacity = next;
	}
	g->dependency[nr] = on;
	g->certainty[nr] = (uint8_t)c;
	g->first[g->nr_packets] = nr + 1;
	return BASE_OK;
}

uint32_t noc_pdg_nr_copies(const struct noc_pdg *g)
{
	uint32_t nr = 0;
	for (uint32_t i = 0; i < g->nr_packets; i++)
		nr += noc_pdg_is_copy(g, i);
	return nr;
}

struct noc_pdg *noc_pdg_copy(const struct noc_pdg *g)
{
	struct noc_pdg *c = noc_pdg_new(g->nr_nodes);
	if (!c || noc_pdg_reserve(c, g->nr_packets, NULL) != BASE_OK)
		return noc_pdg_free(c);
	size_t nr = c->nr_packets = g->nr_packets;
#define A(name)                                                                                    \
	if (nr)                                                                                    \
		memcpy(c->name, g->name, nr * sizeof *c->name);
	PACKET_ARRAYS(A)
#undef A
	for (size_t i = 0; i < nr; i++) {
		c->inputs[i] &= NOC_PDG_COPY;
		c->delay_cycles[i] = 0;
	}
	memcpy(c->ordered, g->ordered, g->nr_nodes);
	memcpy(c->origin, g->origin, sizeof c->origin);
	c->has_addresses = g->has_addresses;
	c->run = g->run;
	return c;
}

/* NULL: it is one. */
static const char *no_copy(const struct noc_pdg *g, uint32_t i)
{
	uint32_t before = i - 1;
	if (!i || g->source[i] != g->source[before] || g->size_flits[i] != g->size_flits[before] ||
		g->type[i] != g->type[before] || g->address[i] != g->address[before] ||
		g->transmit_cycle[i] != g->transmit_cycle[before])
		return "is called a copy of one that it differs from";
	if (g->destination[i] <= g->destination[before])
		return "is of a multicast whose receivers do not ascend";
	if (g->first[i] != g->first[i + 1] || g->delay_cycles[i] || g->inputs[i] != NOC_PDG_COPY)
		return "is a copy, but has a gate";
	return NULL;
}

static enum base_status check_packet(const struct noc_pdg *g, uint32_t i, struct base_err *err)
{
	const char *why = NULL;
	if (g->source[i] >= g->nr_nodes || g->destination[i] >= g->nr_nodes)
		why = "is of a node that is not there";
	else if (!g->size_flits[i])
		why = "has no flits";
	else if (g->receive_cycle[i] < g->transmit_cycle[i])
		why = "is received before it is sent";
	else if (g->receive_cycle[i] > NOC_PDG_CYCLE_MAX || g->delay_cycles[i] > NOC_PDG_CYCLE_MAX)
		why = "has a time beyond all limits";
	else if (noc_pdg_is_copy(g, i))
		why = no_copy(g, i);
	for (uint64_t d = g->first[i]; !why && d < g->first[i + 1]; d++)
		if (g->dependency[d] >= i)
			why = "depends on itself or on a later packet";
		else if (g->destination[g->dependency[d]] != g->source[i])
			why = "depends on a packet that its node does not receive";
	if (why)
		return base_fail(err, BASE_ERR_CORRUPT, "packet %u %s", i, why);
	return BASE_OK;
}

enum base_status noc_pdg_check(const struct noc_pdg *g, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < g->nr_packets && s == BASE_OK; i++)
		s = check_packet(g, i, err);
	return s;
}

/* Of all packets: where each number is, so that packet place[n] becomes packet n. */
static enum base_status find_places(
	const struct noc_pdg *g, const uint32_t *number, uint32_t *place, struct base_err *err)
{
	uint32_t nr = g->nr_packets;
	for (uint32_t n = 0; n < nr; n++)
		place[n] = NOC_PDG_NONE;
	for (uint32_t i = 0; i < nr; i++) {
		if (number[i] >= nr || place[number[i]] != NOC_PDG_NONE)
			return base_fail(err, BASE_ERR_CORRUPT,
				"a packet's number is there twice, or one is missing");
		place[number[i]] = i;
	}
	return BASE_OK;
}

static void place_packets(struct noc_pdg *g, const uint32_t *place, void *scratch)
{
	uint32_t nr = g->nr_packets;
#define A(name)                                                                                    \
	{                                                                                          \
		__typeof__(*g->name) *to = scratch;                                                \
		for (uint32_t n = 0; n < nr; n++)                                                  \
			to[n] = g->name[place[n]];                                                 \
		memcpy(g->name, to, nr * sizeof *to);                                              \
	}
	PACKET_ARRAYS(A)
#undef A
}

static enum base_status place_dependencies(
	struct noc_pdg *g, const uint32_t *place, struct base_err *err)
{
	uint32_t nr = g->nr_packets;
	uint64_t nr_placed = 0;
	size_t nr_dependencies = (size_t)noc_pdg_nr_dependencies(g);
	if (!nr_dependencies)
		return BASE_OK;
	uint64_t *first = base_alloc((g->packets_capacity + 1) * sizeof *first);
	uint32_t *dependency = base_alloc(nr_dependencies * sizeof *dependency);
	uint8_t *certainty = base_alloc(nr_dependencies);
	if (!first || !dependency || !certainty) {
		base_free(first);
		base_free(dependency);
		base_free(certainty);
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %zu {dependency|dependencies}",
			nr_dependencies);
	}
	for (uint32_t n = 0; n < nr; n++) {
		uint64_t from = g->first[place[n]], count = g->first[place[n] + 1] - from;
		memcpy(dependency + nr_placed, g->dependency + from, count * sizeof *dependency);
		memcpy(certainty + nr_placed, g->certainty + from, count);
		nr_placed += count;
		first[n + 1] = nr_placed;
	}
	base_free(g->first);
	base_free(g->dependency);
	base_free(g->certainty);
	g->first = first;
	g->dependency = dependency;
	g->certainty = certainty;
	g->dependencies_capacity = nr_dependencies;
	return BASE_OK;
}

enum base_status noc_pdg_number(struct noc_pdg *g, const uint32_t *number, struct base_err *err)
{
	size_t nr = g->nr_packets;
	if (!nr)
		return BASE_OK;
	uint32_t *place = base_alloc(nr * sizeof *place);
	uint64_t *scratch = base_alloc(nr * sizeof *scratch); /* the widest of the arrays' items */
	if (!place || !scratch) {
		base_free(scratch);
		base_free(place);
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %zu {packet|packets}", nr);
	}
	enum base_status s = find_places(g, number, place, err);
	if (s == BASE_OK)
		s = place_dependencies(g, place, err);
	if (s == BASE_OK) {
		place_packets(g, place, scratch);
		s = noc_pdg_check(g, err);
	}
	base_free(scratch);
	base_free(place);
	return s;
}

/* ---- index ----------------------------------------------------------------------------------- */

/* Counting sort of packets by node; without those with an input of `except`. */
static void sort_by_node(const struct noc_pdg *g, const uint32_t *node, unsigned except,
	uint32_t *first, uint32_t *order)
{
	memset(first, 0, ((size_t)g->nr_nodes + 1) * sizeof *first);
	for (uint32_t i = 0; i < g->nr_packets; i++)
		first[node[i] + 1] += !(g->inputs[i] & except);
	for (uint32_t n = 0; n < g->nr_nodes; n++)
		first[n + 1] += first[n];
	for (uint32_t i = 0; i < g->nr_packets; i++)
		if (!(g->inputs[i] & except))
			order[first[node[i]]++] = i;
	memmove(first + 1, first, (size_t)g->nr_nodes * sizeof *first);
	first[0] = 0;
}

struct arrival {
	uint64_t cycle;
	uint32_t packet;
};

static int compare_arrivals(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;
	if (x->cycle != y->cycle)
		return x->cycle < y->cycle ? -1 : 1;
	return x->packet < y->packet ? -1 : x->packet > y->packet;
}

/* Sorts one node's receptions by time; on a one-cycle network they are in order already. */
static bool sort_receptions(
	uint32_t *packet, size_t nr, const uint64_t *receive_cycle, size_t stride)
{
	bool sorted = true;
	for (size_t i = 1; i < nr && sorted; i++)
		sorted = receive_cycle[packet[i - 1] * stride] <= receive_cycle[packet[i] * stride];
	if (sorted)
		return true;
	struct arrival *a = base_alloc(nr * sizeof *a);
	if (!a)
		return false;
	for (size_t i = 0; i < nr; i++)
		a[i] = (struct arrival){receive_cycle[packet[i] * stride], packet[i]};
	qsort(a, nr, sizeof *a, compare_arrivals);
	for (size_t i = 0; i < nr; i++)
		packet[i] = a[i].packet;
	base_free(a);
	return true;
}

enum base_status noc_index_init(struct noc_index *x, const struct noc_pdg *g,
	const uint64_t *receive_cycle, size_t stride, struct base_err *err)
{
	size_t nr = g->nr_packets ? g->nr_packets : 1, nodes = (size_t)g->nr_nodes + 1;
	x->transmits = base_alloc(nr * sizeof *x->transmits);
	x->receptions = base_alloc(nr * sizeof *x->receptions);
	x->previous = base_alloc(nr * sizeof *x->previous);
	x->first_transmit = base_alloc(nodes * sizeof *x->first_transmit);
	x->first_reception = base_alloc(nodes * sizeof *x->first_reception);
	bool ok = x->transmits && x->receptions && x->previous && x->first_transmit &&
		  x->first_reception;
	if (ok) {
		sort_by_node(g, g->source, NOC_PDG_COPY, x->first_transmit, x->transmits);
		sort_by_node(g, g->destination, 0, x->first_reception, x->receptions);
		for (uint32_t i = 0; i < g->nr_packets; i++)
			x->previous[i] = NOC_PDG_NONE;
		for (uint32_t n = 0; n < g->nr_nodes; n++)
			for (uint32_t t = x->first_transmit[n]; t < x->first_transmit[n + 1]; t++)
				if (t > x->first_transmit[n])
					x->previous[x->transmits[t]] = x->transmits[t - 1];
	}
	for (uint32_t n = 0; n < g->nr_nodes && ok; n++)
		ok = sort_receptions(x->receptions + x->first_reception[n],
			x->first_reception[n + 1] - x->first_reception[n], receive_cycle, stride);
	if (ok)
		return BASE_OK;
	noc_index_fini(x);
	return base_fail(
		err, BASE_ERR_NOMEM, "no memory to sort %u {packet|packets}", g->nr_packets);
}

void noc_index_fini(struct noc_index *x)
{
	base_free(x->transmits);
	base_free(x->receptions);
	base_free(x->previous);
	base_free(x->first_transmit);
	base_free(x->first_reception);
	*x = (struct noc_index){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c - nodes into sets, so that those that talk most are in different ones. */
#include "noc/pdg/sample.h"

#include <stdlib.h>
#include <string.h>

struct pair {
	uint64_t packets;
	uint32_t a, b; /* a < b */
};

static int by_traffic(const void *x, const void *y)
{
	const struct pair *p = x, *q = y;
	if (p->packets != q->packets)
		return p->packets > q->packets ? -1 : 1;
	if (p->a != q->a)
		return p->a < q->a ? -1 : 1;
	return p->b < q->b ? -1 : p->b > q->b;
}

/* Pairs that talk, with both directions together, by nodes. */
static enum base_status count_pairs(
	const struct noc_pdg *g, struct pair **ret, size_t *ret_nr, struct base_err *err)
{
	struct base_map map = {0};
	struct pair *pair = NULL;
	size_t nr = 0, capacity = 0;
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < g->nr_packets && s == BASE_OK; i++) {
		uint32_t a = g->source[i], b = g->destination[i];
		uint64_t at;
		if (a == b)
			continue;
		if (a > b) {
			a = g->destination[i];
			b = g->source[i];
		}
		if (base_map_get(&map, a, b, &at)) {
			BASE_ASSUME(pair);
			pair[at].packets++;
			continue;
		}
		s = base_grow(&pair, &capacity, nr + 1, sizeof *pair);
		if (s == BASE_OK)
			s = base_map_put(&map, a, b, nr);
		if (s == BASE_OK)
			pair[nr++] = (struct pair){1, a, b};
	}
	base_map_fini(&map);
	if (s != BASE_OK) {
		base_free(pair);
		return base_fail(err, s, "no memory to count who talks to whom");
	}
	*ret = pair;
	*ret_nr = nr;
	return BASE_OK;
}

struct partition {
	uint32_t nr_nodes, nr_sets, most; /* nodes in a set */
	uint32_t *set, *size;
	uint64_t *inside; /* [node * nr_sets + set]: traffic of the node with that set */
	const struct pair *pair;
	size_t nr_pairs;
};

static const uint32_t no_set = UINT32_MAX;

/* Traffic of every node with every set, from the pairs whose other end is placed. */
static void count_inside(struct partition *p)
{
	memset(p->inside, 0, (size_t)p->nr_nodes * p->nr_sets * sizeof *p->inside);
	for (size_t k = 0; k < p->nr_pairs; k++) {
		const struct pair *q = &p->pair[k];
		if (p->set[q->b] != no_set)
			p->inside[(size_t)q->a * p->nr_sets + p->set[q->b]] += q->packets;
		if (p->set[q->a] != no_set)
			p->inside[(size_t)q->b * p->nr_sets + p->set[q->a]] += q->packets;
	}
}

/* Of the sets that have room: the one with least traffic, then the one with fewest nodes. */
static void partition_place(struct partition *p, uint32_t node)
{
	const uint64_t *inside = p->inside + (size_t)node * p->nr_sets;
	uint32_t best = no_set;
	for (uint32_t s = 0; s < p->nr_sets; s++) {
		if (p->size[s] >= p->most)
			continue;
		if (best == no_set || inside[s] < inside[best] ||
			(inside[s] == inside[best] && p->size[s] < p->size[best]))
			best = s;
	}
	p->set[node] = best;
	p->size[best]++;
	for (size_t k = 0; k < p->nr_pairs; k++) {
		const struct pair *q = &p->pair[k];
		if (q->a == node)
			p->inside[(size_t)q->b * p->nr_sets + best] += q->packets;
		else if (q->b == node)
			p->inside[(size_t)q->a * p->nr_sets + best] += q->packets;
	}
}

/* Nodes of different sets change places where that leaves less traffic inside. */
static void swap_pass(struct partition *p)
{
	for (uint32_t a = 0; a < p->nr_nodes; a++)
		for (uint32_t b = a + 1; b < p->nr_nodes; b++) {
			uint32_t sa = p->set[a], sb = p->set[b];
			const uint64_t *ia = p->inside + (size_t)a * p->nr_sets;
			const uint64_t *ib = p->inside + (size_t)b * p->nr_sets;
			/* Their own traffic with each other would count twice, but stays
			 * outside: a swap that only seems to lose it is not made. */
			if (sa == sb || ia[sb] + ib[sa] >= ia[sa] + ib[sb])
				continue;
			p->set[a] = sb;
			p->set[b] = sa;
			count_inside(p);
		}
}

enum base_status noc_partition(
	const struct noc_pdg *g, uint32_t nr_sets, uint32_t *set, struct base_err *err)
{
	struct pair *pair = NULL;
	size_t nr = 0;
	enum base_status s = count_pairs(g, &pair, &nr, err);
	if (s != BASE_OK)
		return s;
	struct partition p = {.nr_nodes = g->nr_nodes,
		.nr_sets = nr_sets,
		.most = (g->nr_nodes + nr_sets - 1) / nr_sets,
		.set = set,
		.pair = pair,
		.nr_pairs = nr};
	p.size = base_alloc(nr_sets * sizeof *p.size);
	p.inside = base_alloc((size_t)g->nr_nodes * nr_sets * sizeof *p.inside);
	if (p.size && p.inside) {
		for (uint32_t n = 0; n < g->nr_nodes; n++)
			set[n] = no_set;
		if (nr)
			qsort(pair, nr, sizeof *pair, by_traffic);
		for (size_t k = 0; k < nr; k++) {
			if (set[pair[k].a] == no_set)
				partition_place(&p, pair[k].a);
			if (set[pair[k].b] == no_set)
				partition_place(&p, pair[k].b);
		}
		for (uint32_t n = 0; n < g->nr_nodes; n++)
			if (set[n] == no_set)
				partition_place(&p, n);
		count_inside(&p);
		if (g->nr_nodes <=
			256) /* the pass is quadratic, a swap costs a look at all pairs */
			swap_pass(&p);
	} else {
		s = base_fail(err, BASE_ERR_NOMEM, "no memory to partition nodes");
	}
	base_free(p.size);
	base_free(p.inside);
	base_free(pair);
	return s;
}

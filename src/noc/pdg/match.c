/* SPDX-License-Identifier: Apache-2.0 */
/* match.c - messages of two runs. */
#include "noc/pdg/match.h"

#include <stdlib.h>
#include <string.h>

/* What is aligned: the sequences of a node or of a pair. A node's transmits to all others tell more
 * about which of several alike is missing than those to one other; where the order of answers to
 * several others differs between runs, that of each of them may still be the same. */
enum scope { OF_SOURCE, OF_PAIR, SCOPES };

/* A packet with what it is compared by. Order: pair, then kind, then number: the n-th of a kind. */
struct item {
	uint64_t pair; /* source << 32 | destination */
	uint64_t address;
	uint32_t type;
	uint32_t packet;
	uint32_t place[SCOPES]; /* in the sequence of its source, and of its pair */
};

static int compare_kind(const struct item *x, const struct item *y)
{
	if (x->pair != y->pair)
		return x->pair < y->pair ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->type < y->type ? -1 : x->type > y->type;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int kind = compare_kind(x, y);
	return kind ? kind : x->packet < y->packet ? -1 : x->packet > y->packet;
}

static uint64_t match_group_of(const struct item *i, enum scope scope)
{
	return scope == OF_SOURCE ? i->pair >> 32 : i->pair;
}

static int compare_in_group(const struct item *x, const struct item *y, enum scope scope)
{
	uint64_t a = match_group_of(x, scope), b = match_group_of(y, scope);
	if (a != b)
		return a < b ? -1 : 1;
	return x->packet < y->packet ? -1 : x->packet > y->packet;
}

static int compare_in_source(const void *a, const void *b)
{
	return compare_in_group(a, b, OF_SOURCE);
}

static int compare_in_pair(const void *a, const void *b)
{
	return compare_in_group(a, b, OF_PAIR);
}

static void number_places(struct item *item, uint32_t nr, enum scope scope)
{
	qsort(item, nr, sizeof *item, scope == OF_SOURCE ? compare_in_source : compare_in_pair);
	for (uint32_t i = 0, start = 0; i < nr; i++) {
		if (match_group_of(&item[i], scope) != match_group_of(&item[start], scope))
			start = i;
		item[i].place[scope] = i - start;
	}
}

/* Items by kind. A packet's number stands for its time: numbers of a node ascend with it. */
static struct item *make_items(const struct noc_pdg *g)
{
	struct item *item = base_alloc(((size_t)g->nr_packets + 1) * sizeof *item);
	if (!item)
		return NULL;
	for (uint32_t i = 0; i < g->nr_packets; i++)
		item[i] = (struct item){.pair = (uint64_t)g->source[i] << 32 | g->destination[i],
			.address = g->address[i],
			.type = g->type[i],
			.packet = i};
	number_places(item, g->nr_packets, OF_SOURCE);
	number_places(item, g->nr_packets, OF_PAIR);
	qsort(item, g->nr_packets, sizeof *item, compare_items);
	return item;
}

/* ---- two lists of one kind ------------------------------------------------------------------- */

struct kind {
	uint32_t base, nr_base, other, nr_other; /* items */
};

struct matching {
	const struct noc_pdg *base, *other;
	struct item *base_item, *other_item;
	struct kind *kind;
	size_t nr_kinds, kinds_capacity;
	uint32_t displacement;
	bool *taken; /* by packet of the other run */
	struct noc_match *result;
};

static void match_pair_up(struct matching *m, const struct item *b, const struct item *o)
{
	m->result->other[b->packet] = o->packet;
	m->taken[o->packet] = true;
}

/* Kinds that both runs have, in the order of their pairs. */
static enum base_status find_kinds(struct matching *m, struct base_err *err)
{
	uint32_t b = 0, o = 0;
	while (b < m->base->nr_packets && o < m->other->nr_packets) {
		int side = compare_kind(&m->base_item[b], &m->other_item[o]);
		if (side) {
			b += side < 0;
			o += side > 0;
			continue;
		}
		struct kind k = {.base = b, .other = o};
		while (b < m->base->nr_packets &&
			!compare_kind(&m->base_item[b], &m->base_item[k.base]))
			b++;
		while (o < m->other->nr_packets &&
			!compare_kind(&m->other_item[o], &m->other_item[k.other]))
			o++;
		k.nr_base = b - k.base;
		k.nr_other = o - k.other;
		enum base_status s =
			base_grow(&m->kind, &m->kinds_capacity, m->nr_kinds + 1, sizeof *m->kind);
		if (s != BASE_OK)
			return base_fail(err, s, "no memory for kinds of messages");
		m->kind[m->nr_kinds++] = k;
	}
	return BASE_OK;
}

/* What is left of a kind, first to first, if near enough. */
static uint64_t match_count_kind(struct matching *m, const struct kind *k, bool any_distance)
{
	uint64_t nr = 0;
	uint32_t o = 0;
	for (uint32_t b = 0; b < k->nr_base; b++) {
		const struct item *item = &m->base_item[k->base + b];
		if (m->result->other[item->packet] != NOC_PDG_NONE)
			continue;
		while (o < k->nr_other && (m->taken[m->other_item[k->other + o].packet] ||
						  (!any_distance && o + m->displacement < b)))
			o++;
		if (o == k->nr_other)
			break;
		if (!any_distance && o > b + m->displacement)
			continue;
		match_pair_up(m, item, &m->other_item[k->other + o++]);
		nr++;
	}
	return nr;
}

/* ---- the longest common sequence of a source, or of a pair ----------------------------------- */

/* A possible match. */
struct link {
	uint32_t base, other;             /* items */
	uint32_t base_place, other_place; /* in the scope */
	uint32_t before; /* link that precedes it in the longest sequence that ends here */
};

struct chain {
	struct link *link;
	size_t nr, capacity;
	uint32_t *tail; /* of the sequences of length 1, 2, ...: link with the lowest other_place */
	size_t nr_tails, tails_capacity;
};

static int compare_links(const void *a, const void *b)
{
	const struct link *x = a, *y = b;
	if (x->base_place != y->base_place)
		return x->base_place < y->base_place ? -1 : 1;
	/* descending: one of a base message's matches is in a sequence at most */
	return x->other_place > y->other_place ? -1 : x->other_place < y->other_place;
}

static enum base_status match_add_links(const struct matching *m, const struct kind *k,
	enum scope scope, struct chain *c, struct base_err *err)
{
	for (uint32_t b = 0; b < k->nr_base; b++) {
		uint32_t from = b > m->displacement ? b - m->displacement : 0;
		if (m->result->other[m->base_item[k->base + b].packet] != NOC_PDG_NONE)
			continue;
		for (uint32_t o = from; o < k->nr_other && o <= b + m->displacement; o++) {
			if (m->taken[m->other_item[k->other + o].packet])
				continue;
			enum base_status s =
				base_grow(&c->link, &c->capacity, c->nr + 1, sizeof *c->link);
			if (s != BASE_OK)
				return base_fail(err, s, "no memory to align messages");
			c->link[c->nr++] = (struct link){.base = k->base + b,
				.other = k->other + o,
				.base_place = m->base_item[k->base + b].place[scope],
				.other_place = m->other_item[k->other + o].place[scope]};
		}
	}
	return BASE_OK;
}

/* Takes the longest sequence of links in which both places ascend. */
static enum base_status take_longest(struct matching *m, struct chain *c, struct base_err *err)
{
	c->nr_tails = 0;
	if (c->nr)
		qsort(c->link, c->nr, sizeof *c->link, compare_links);
	for (size_t l = 0; l < c->nr; l++) {
		size_t low = BASE_PARTITION(
			i, c->nr_tails, c->link[c->tail[i]].other_place < c->link[l].other_place);
		if (low == c->nr_tails) {
			enum base_status s = base_grow(
				&c->tail, &c->tails_capacity, c->nr_tails + 1, sizeof *c->tail);
			if (s != BASE_OK)
				return base_fail(err, s, "no memory to align messages");
			c->nr_tails++;
		}
		c->link[l].before = low ? c->tail[low - 1] : UINT32_MAX;
		c->tail[low] = (uint32_t)l;
	}
	uint32_t l = c->nr_tails ? c->tail[c->nr_tails - 1] : UINT32_MAX;
	for (; l != UINT32_MAX; l = c->link[l].before)
		match_pair_up(m, &m->base_item[c->link[l].base], &m->other_item[c->link[l].other]);
	m->result->in_order += c->nr_tails;
	return BASE_OK;
}

static enum base_status align(struct matching *m, enum scope scope, struct base_err *err)
{
	struct chain c = {0};
	enum base_status s = BASE_OK;
	for (size_t k = 0; k < m->nr_kinds && s == BASE_OK;) {
		uint64_t group = match_group_of(&m->base_item[m->kind[k].base], scope);
		c.nr = 0;
		for (; k < m->nr_kinds && s == BASE_OK &&
			match_group_of(&m->base_item[m->kind[k].base], scope) == group;
			k++)
			s = match_add_links(m, &m->kind[k], scope, &c, err);
		if (s == BASE_OK && c.nr >= UINT32_MAX)
			s = base_fail(err, BASE_ERR_LIMIT, "too many messages of one kind");
		if (s == BASE_OK)
			s = take_longest(m, &c, err);
	}
	base_free(c.link);
	base_free(c.tail);
	return s;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum base_status match_run(
	struct matching *m, enum noc_match_method method, struct base_err *err)
{
	enum base_status s = find_kinds(m, err);
	if (s == BASE_OK && method == NOC_MATCH_ALIGN)
		s = align(m, OF_SOURCE, err);
	if (s == BASE_OK && method == NOC_MATCH_ALIGN)
		s = align(m, OF_PAIR, err);
	for (size_t k = 0; k < m->nr_kinds && s == BASE_OK; k++) {
		uint64_t nr = match_count_kind(m, &m->kind[k], method == NOC_MATCH_COUNT);
		if (method == NOC_MATCH_COUNT)
			m->result->in_order += nr;
		else
			m->result->moved += nr;
	}
	return s;
}

enum base_status noc_match(const struct noc_pdg *base, const struct noc_pdg *other,
	enum noc_match_method method, uint32_t displacement, struct noc_match *ret,
	struct base_err *err)
{
	struct matching m = {
		.base = base, .other = other, .displacement = displacement, .result = ret};
	*ret = (struct noc_match){0};
	m.base_item = make_items(base);
	m.other_item = make_items(other);
	m.taken = base_alloc(((size_t)other->nr_packets + 1) * sizeof *m.taken);
	ret->other = base_alloc(((size_t)base->nr_packets + 1) * sizeof *ret->other);
	enum base_status s = BASE_OK;
	if (!m.base_item || !m.other_item || !m.taken || !ret->other)
		s = base_fail(err, BASE_ERR_NOMEM, "no memory to match messages");
	if (s == BASE_OK) {
		BASE_ASSUME(ret->other);
		for (uint32_t i = 0; i < base->nr_packets; i++)
			ret->other[i] = NOC_PDG_NONE;
		s = match_run(&m, method, err);
	}
	base_free(m.base_item);
	base_free(m.other_item);
	base_free(m.taken);
	base_free(m.kind);
	if (s != BASE_OK) {
		noc_match_fini(ret);
		return s;
	}
	ret->base_only = base->nr_packets - ret->in_order - ret->moved;
	ret->other_only = other->nr_packets - ret->in_order - ret->moved;
	return BASE_OK;
}

void noc_match_fini(struct noc_match *m)
{
	base_free(m->other);
	*m = (struct noc_match){0};
}

/* ---- filling out ----------------------------------------------------------------------------- */

enum base_status noc_fill_out(const struct noc_pdg *base, const struct noc_pdg *other,
	const struct noc_match *m, struct noc_runs *runs, uint32_t r, struct base_err *err)
{
	uint32_t *last = base_alloc(base->nr_nodes * sizeof *last); /* matched transmit; + 1 */
	if (!last)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to fill out a run");
	if (!runs->filled) {
		runs->filled = base_alloc((size_t)runs->stride * runs->nr_packets + 1);
		if (!runs->filled) {
			base_free(last);
			return base_fail(err, BASE_ERR_NOMEM, "no memory to fill out a run");
		}
	}
	for (uint32_t i = 0; i < base->nr_packets; i++) {
		size_t at = (size_t)i * runs->stride + r;
		uint32_t o = m->other[i], *known = &last[base->source[i]];
		if (o != NOC_PDG_NONE) {
			runs->transmit_cycle[at] = other->transmit_cycle[o];
			runs->receive_cycle[at] = other->receive_cycle[o];
			*known = i + 1;
			continue;
		}
		uint64_t from =
			*known ? runs->transmit_cycle[(size_t)(*known - 1) * runs->stride + r] : 0;
		uint64_t from_base = *known ? base->transmit_cycle[*known - 1] : 0;
		runs->filled[at] = 1;
		runs->transmit_cycle[at] = from + (base->transmit_cycle[i] - from_base);
		runs->receive_cycle[at] = runs->transmit_cycle[at] +
					  (base->receive_cycle[i] - base->transmit_cycle[i]);
	}
	base_free(last);
	return BASE_OK;
}

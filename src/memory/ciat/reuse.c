/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reuse.c - reuse distances: how many other lines were accessed since a line was accessed last. A
 * fully associative LRU cache of n lines hits when the distance is below n (Mattson et al. 1970).
 *
 * Exact: F. Olken, "Efficient methods for calculating the success function of fixed space
 * replacement policies", 1981, with a Fenwick tree over access times; times are renumbered when the
 * tree is full, so that memory grows with lines, not accesses. Sampled: C. Waldspurger et al.,
 * "Efficient MRC construction with SHARDS", FAST 2015, fixed rate: lines whose hash is below the
 * share are looked at, and distances and counts divided by it.
 */
#include "memory/ciat/ciat_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_TIMES = 1 << 12 };

struct memory_reuse {
	struct memory_reuse_curve curve;
	uint64_t threshold;   /* of the hash; UINT64_MAX: all */
	double scale;         /* 1 / share */
	struct base_map last; /* line -> time of its last access */
	uint32_t *tree;       /* Fenwick, 1-based: 1 at each line's last access */
	uint64_t *line_at;    /* which line, by time; UINT64_MAX: none any more */
	uint64_t capacity, now;
	uint64_t newest; /* line accessed last */
};

struct memory_reuse *memory_reuse_new(double share)
{
	struct memory_reuse *r = base_alloc(sizeof *r);
	if (!r)
		return NULL;
	bool all = !(share > 0 && share < 1);
	r->threshold = all ? UINT64_MAX : (uint64_t)(share * 0x1p64);
	r->scale = all ? 1 : 1 / share;
	r->curve.sampled_share = all ? 1 : share;
	r->newest = UINT64_MAX;
	r->capacity = FIRST_TIMES;
	r->tree = base_alloc((r->capacity + 1) * sizeof *r->tree);
	r->line_at = base_alloc((r->capacity + 1) * sizeof *r->line_at);
	return r->tree && r->line_at ? r : memory_reuse_free(r);
}

struct memory_reuse *memory_reuse_free(struct memory_reuse *r)
{
	if (!r)
		return NULL;
	base_map_fini(&r->last);
	base_free(r->tree);
	base_free(r->line_at);
	base_free(r);
	return NULL;
}

uint64_t memory_reuse_bytes(const struct memory_reuse *r)
{
	return r->last.capacity * sizeof(struct base_map_slot) +
	       r->capacity * (sizeof *r->tree + sizeof *r->line_at);
}

static void tree_add(struct memory_reuse *r, uint64_t at, uint32_t by)
{
	for (; at <= r->capacity; at += at & -at)
		r->tree[at] += by;
}

static uint64_t tree_sum(const struct memory_reuse *r, uint64_t at)
{
	uint64_t sum = 0;
	for (; at; at -= at & -at)
		sum += r->tree[at];
	return sum;
}

/* The times that still count become 1, 2, 3 ...; twice as much room if they are many. */
static enum base_status reuse_renumber(struct memory_reuse *r)
{
	uint64_t nr = r->last.nr_used, capacity = r->capacity;
	while (capacity < 2 * nr)
		capacity *= 2;
	uint32_t *tree = base_alloc((capacity + 1) * sizeof *tree);
	uint64_t *line_at = base_alloc((capacity + 1) * sizeof *line_at);
	if (!tree || !line_at) {
		base_free(tree);
		base_free(line_at);
		return BASE_ERR_NOMEM;
	}
	uint64_t to = 0;
	for (uint64_t at = 1; at <= r->now; at++)
		if (r->line_at[at] != UINT64_MAX)
			line_at[++to] = r->line_at[at];
	base_free(r->tree);
	base_free(r->line_at);
	r->tree = tree;
	r->line_at = line_at;
	r->capacity = capacity;
	r->now = to;
	for (uint64_t at = 1; at <= to; at++) { /* a tree of ones, in linear time */
		tree[at]++;
		if (at + (at & -at) <= capacity)
			tree[at + (at & -at)] += tree[at];
		enum base_status s = base_map_put(&r->last, 0, line_at[at], at);
		if (s != BASE_OK)
			return s;
	}
	for (uint64_t at = to + 1; at <= capacity; at++)
		if (at + (at & -at) <= capacity)
			tree[at + (at & -at)] += tree[at];
	return BASE_OK;
}

static unsigned bucket_of(double distance)
{
	if (distance < 1)
		return 0;
	unsigned b = 1 + (unsigned)ilogb(distance);
	return b < MEMORY_REUSE_BUCKETS ? b : MEMORY_REUSE_BUCKETS - 1;
}

enum base_status memory_reuse_access(struct memory_reuse *r, uint64_t line)
{
	r->curve.accesses++;
	if (r->threshold != UINT64_MAX && base_hash_u64(line + 1) >= r->threshold)
		return BASE_OK;
	if (line == r->newest) {
		r->curve.count[0] += r->scale;
		return BASE_OK;
	}
	r->newest = line;
	if (r->now == r->capacity) {
		enum base_status s = reuse_renumber(r);
		if (s != BASE_OK)
			return s;
	}
	uint64_t before, at = ++r->now;
	if (base_map_get(&r->last, 0, line, &before)) {
		uint64_t distance = r->last.nr_used - tree_sum(r, before);
		r->curve.count[bucket_of((double)distance * r->scale)] += r->scale;
		tree_add(r, before, (uint32_t)-1);
		r->line_at[before] = UINT64_MAX;
	} else {
		r->curve.cold++;
	}
	r->line_at[at] = line;
	tree_add(r, at, 1);
	return base_map_put(&r->last, 0, line, at);
}

/* SHARDS-adj: what sampling missed or had too much of belongs to the shortest distances. */
const struct memory_reuse_curve *memory_reuse_curve_of(struct memory_reuse *r)
{
	struct memory_reuse_curve *c = &r->curve;
	c->sampled_lines = r->last.nr_used;
	if (r->threshold == UINT64_MAX || !c->accesses)
		return c;
	double sum = (double)c->cold * r->scale;
	c->cold = (uint64_t)sum;
	for (unsigned i = 0; i < MEMORY_REUSE_BUCKETS; i++)
		sum += c->count[i];
	c->count[0] += (double)c->accesses - sum;
	if (c->count[0] < 0)
		c->count[0] = 0;
	r->threshold = UINT64_MAX; /* once */
	return c;
}

unsigned memory_reuse_least(const struct memory_reuse_curve *c)
{
	return c->sampled_share < 1 ? (unsigned)ceil(log2(1 / c->sampled_share)) : 0;
}

double memory_reuse_miss_ratio(const struct memory_reuse_curve *c, unsigned log2_lines)
{
	double misses = (double)c->cold;
	for (unsigned i = log2_lines + 1; i < MEMORY_REUSE_BUCKETS; i++)
		misses += c->count[i];
	return c->accesses ? misses / (double)c->accesses : 0;
}

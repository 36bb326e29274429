/* SPDX-License-Identifier: Apache-2.0 */
/* draw.h - random numbers of the graph generator and of sampling: xorshift64*, seeded; and a hash
 * for draws that must not depend on the order in which they are made. */
#ifndef LONGPOLE_NOC_DRAW_H
#define LONGPOLE_NOC_DRAW_H

#include "base/base.h"

struct noc_draw {
	uint64_t state; /* not zero */
};

static inline uint64_t noc_draw_hash(uint64_t a, uint64_t b)
{
	return base_hash_u64(a * 0x9e3779b97f4a7c15u + base_hash_u64(b + 0x632be59bd9b4e019u));
}

static inline void noc_draw_init(struct noc_draw *d, uint64_t seed)
{
	d->state = noc_draw_hash(seed, 1) | 1;
}

static inline uint64_t noc_draw_u64(struct noc_draw *d)
{
	d->state ^= d->state >> 12;
	d->state ^= d->state << 25;
	d->state ^= d->state >> 27;
	return d->state * 2685821657736338717u;
}

/* Uniform in [0, n), n at least 1. */
static inline uint32_t noc_draw_below(struct noc_draw *d, uint32_t n)
{
	return (uint32_t)(((noc_draw_u64(d) >> 32) * n) >> 32);
}

/* Uniform in [0, 1). */
static inline double noc_draw_share(struct noc_draw *d)
{
	return (double)(noc_draw_u64(d) >> 11) * 0x1p-53;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64. Streams are small
 * structs. */
#ifndef LONGPOLE_NOC_RANDOM_H
#define LONGPOLE_NOC_RANDOM_H

#include <stdint.h>

struct noc_random {
	uint64_t s[4];
};

static inline void noc_random_init(struct noc_random *r, uint64_t seed)
{
	for (unsigned i = 0; i < 4; i++) {
		seed += 0x9e3779b97f4a7c15u;
		uint64_t z = seed;
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		r->s[i] = z ^ (z >> 31);
	}
}

static inline uint64_t noc_random_u64(struct noc_random *r)
{
	uint64_t x = r->s[1] * 5, t = r->s[1] << 17;
	x = ((x << 7) | (x >> 57)) * 9;
	r->s[2] ^= r->s[0];
	r->s[3] ^= r->s[1];
	r->s[1] ^= r->s[2];
	r->s[0] ^= r->s[3];
	r->s[2] ^= t;
	r->s[3] = (r->s[3] << 45) | (r->s[3] >> 19);
	return x;
}

/* 0 <= result < n; n > 0. The bias is below 2^-32 for n < 2^32. */
static inline uint32_t noc_random_below(struct noc_random *r, uint32_t n)
{
	return (uint32_t)(((noc_random_u64(r) >> 32) * n) >> 32);
}

/* 0 <= result < 1. */
static inline double noc_random_unit(struct noc_random *r)
{
	return (double)(noc_random_u64(r) >> 11) * 0x1p-53;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* sets.c - interned bit maps, for more than 32 members. */
#include "memory/sets.h"

#include <string.h>

void memory_sets_init(struct memory_sets *s, uint32_t nr_members)
{
	*s = (struct memory_sets){.nr_members = nr_members,
		.wide = nr_members > MEMORY_SETS_MASK_MAX,
		.words = (nr_members + 63) / 64,
		.nr_sets = 1};
}

void memory_sets_fini(struct memory_sets *s)
{
	base_free(s->bits);
	base_free(s->size);
	base_free(s->same_hash);
	base_map_fini(&s->by_hash);
	base_map_fini(&s->with);
	base_map_fini(&s->without);
	*s = (struct memory_sets){0};
}

uint64_t memory_sets_bytes(const struct memory_sets *s)
{
	return s->bits_capacity * sizeof *s->bits + (s->capacity + s->same_capacity) * 4 +
	       (s->with.capacity + s->without.capacity + s->by_hash.capacity) *
		       sizeof(struct base_map_slot);
}

#define INTERNED (UINT32_C(1) << MEMORY_SETS_INTERNED_SHIFT)

static const uint64_t *bits_of(const struct memory_sets *s, uint32_t number)
{
	return s->bits + (size_t)number * s->words;
}

/* (A mask: no member is that large.) */
bool memory_sets_wide_has(const struct memory_sets *s, uint32_t set, uint32_t member)
{
	return set & INTERNED && (bits_of(s, set & ~INTERNED)[member / 64] >> member % 64 & 1);
}

uint32_t memory_sets_wide_size(const struct memory_sets *s, uint32_t set)
{
	return s->size[set & ~INTERNED];
}

static enum base_status sets_grow(struct memory_sets *s)
{
	size_t nr = s->nr_sets + 1;
	if (nr > INTERNED)
		return BASE_ERR_LIMIT;
	enum base_status status =
		base_grow(&s->bits, &s->bits_capacity, nr * s->words, sizeof *s->bits);
	if (status == BASE_OK)
		status = base_grow(&s->size, &s->capacity, nr, sizeof *s->size);
	if (status == BASE_OK)
		status = base_grow(&s->same_hash, &s->same_capacity, nr, sizeof *s->same_hash);
	return status;
}

static uint64_t sets_hash_of(const uint64_t *bits, uint32_t words)
{
	uint64_t h = 0;
	for (uint32_t i = 0; i < words; i++)
		h = base_hash_u64(h ^ bits[i]) + i;
	return h;
}

/* The set whose bits stand behind the last one. */
static enum base_status sets_intern(struct memory_sets *s, uint32_t *ret)
{
	uint64_t *bits = s->bits + s->nr_sets * s->words, first = 0;
	uint64_t hash = sets_hash_of(bits, s->words);
	uint32_t size = 0;
	for (uint32_t i = 0; i < s->words; i++)
		size += (uint32_t)__builtin_popcountll(bits[i]);
	uint64_t rest = bits[0] & ~(uint64_t)(INTERNED - 1);
	for (uint32_t i = 1; i < s->words; i++)
		rest |= bits[i];
	*ret = (uint32_t)bits[0];
	if (!rest)
		return BASE_OK;
	if (base_map_get(&s->by_hash, 0, hash, &first))
		for (uint32_t i = (uint32_t)first; i; i = s->same_hash[i])
			if (!memcmp(bits, bits_of(s, i), s->words * sizeof *bits)) {
				*ret = i | INTERNED;
				return BASE_OK;
			}
	enum base_status status = base_map_put(&s->by_hash, 0, hash, s->nr_sets);
	if (status != BASE_OK)
		return status;
	s->size[s->nr_sets] = size;
	s->same_hash[s->nr_sets] = (uint32_t)first;
	*ret = (uint32_t)s->nr_sets++ | INTERNED;
	return BASE_OK;
}

enum base_status memory_sets_wide_change(
	struct memory_sets *s, uint32_t *set, uint32_t member, bool in)
{
	struct base_map *memo = in ? &s->with : &s->without;
	uint64_t known;
	if (memory_sets_has(s, *set, member) == in)
		return BASE_OK;
	if (base_map_get(memo, *set, member, &known)) {
		*set = (uint32_t)known;
		return BASE_OK;
	}
	enum base_status status = sets_grow(s);
	if (status != BASE_OK)
		return status;
	uint64_t *bits = s->bits + s->nr_sets * s->words;
	uint32_t result;
	memset(bits, 0, s->words * sizeof *bits);
	if (*set & INTERNED)
		memcpy(bits, bits_of(s, *set & ~INTERNED), s->words * sizeof *bits);
	else
		bits[0] = *set;
	bits[member / 64] ^= UINT64_C(1) << member % 64;
	status = sets_intern(s, &result);
	if (status == BASE_OK)
		status = base_map_put(memo, *set, member, result);
	if (status == BASE_OK)
		*set = result;
	return status;
}

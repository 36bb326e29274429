/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - (u64, u64) -> u64 by linear probing. */
#include "base/base.h"

/* Removal shifts the followers back instead of leaving tombstones, so that a map that lives long
 * with few entries (locks held, requests in flight) stays as fast as on its first day. */

enum { MAP_MIN_SLOTS = 16 };

static size_t home_of(uint64_t key_hi, uint64_t key_lo, size_t capacity)
{
	uint64_t h = base_hash_u64(key_lo ^ base_hash_u64(key_hi));

	return (size_t)(h ^ h >> 32) & (capacity - 1);
}

/* The slot of that key, or the free one where it belongs. There is always a free one. */
static struct base_map_slot *find_slot(const struct base_map *m, uint64_t key_hi, uint64_t key_lo)
{
	size_t i = home_of(key_hi, key_lo, m->capacity);

	while (m->slot[i].used && (m->slot[i].key_lo != key_lo || m->slot[i].key_hi != key_hi))
		i = (i + 1) & (m->capacity - 1);
	return &m->slot[i];
}

void base_map_fini(struct base_map *m)
{
	base_free(m->slot);
	*m = (struct base_map){0};
}

bool base_map_get(const struct base_map *m, uint64_t key_hi, uint64_t key_lo, uint64_t *ret_value)
{
	if (!m->nr_used)
		return false;
	const struct base_map_slot *slot = find_slot(m, key_hi, key_lo);
	if (!slot->used)
		return false;
	*ret_value = slot->value;
	return true;
}

static enum base_status map_grow(struct base_map *m)
{
	if (m->nr_used >= BASE_MAP_LIMIT_ENTRIES)
		return BASE_ERR_LIMIT;
	struct base_map grown = {.capacity = m->capacity ? m->capacity * 2 : MAP_MIN_SLOTS};
	grown.slot = base_alloc(grown.capacity * sizeof *grown.slot);
	if (!grown.slot)
		return BASE_ERR_NOMEM;
	for (size_t i = 0; i < m->capacity; i++) {
		if (m->slot[i].used)
			*find_slot(&grown, m->slot[i].key_hi, m->slot[i].key_lo) = m->slot[i];
	}
	grown.nr_used = m->nr_used;
	base_free(m->slot);
	*m = grown;
	return BASE_OK;
}

enum base_status base_map_put(struct base_map *m, uint64_t key_hi, uint64_t key_lo, uint64_t value)
{
	struct base_map_slot *slot = m->capacity ? find_slot(m, key_hi, key_lo) : NULL;

	if (slot && slot->used) {
		slot->value = value;
		return BASE_OK;
	}
	if (!slot || m->nr_used + 1 > m->capacity / 4 * 3) {
		enum base_status status = map_grow(m);
		if (status != BASE_OK)
			return status;
		slot = find_slot(m, key_hi, key_lo);
	}
	*slot = (struct base_map_slot){
		.key_hi = key_hi, .key_lo = key_lo, .value = value, .used = true};
	m->nr_used++;
	return BASE_OK;
}

bool base_map_remove(struct base_map *m, uint64_t key_hi, uint64_t key_lo)
{
	if (!m->nr_used)
		return false;
	struct base_map_slot *hole = find_slot(m, key_hi, key_lo);
	if (!hole->used)
		return false;

	size_t mask = m->capacity - 1, at = (size_t)(hole - m->slot);
	for (size_t i = (at + 1) & mask; m->slot[i].used; i = (i + 1) & mask) {
		size_t home = home_of(m->slot[i].key_hi, m->slot[i].key_lo, m->capacity);
		/* It may move into the hole unless its home lies behind the hole. */
		if (((i - home) & mask) >= ((i - at) & mask)) {
			m->slot[at] = m->slot[i];
			at = i;
		}
	}
	m->slot[at] = (struct base_map_slot){0};
	m->nr_used--;
	return true;
}

void base_map_each(const struct base_map *m,
	bool (*visit)(void *ctx, uint64_t key_hi, uint64_t key_lo, uint64_t value), void *ctx)
{
	for (size_t i = 0; i < m->capacity; i++) {
		const struct base_map_slot *slot = &m->slot[i];
		if (slot->used && !visit(ctx, slot->key_hi, slot->key_lo, slot->value))
			return;
	}
}

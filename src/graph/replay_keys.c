/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_keys.c - an index of a ring's units by key, for queues in which many lie that are taken by
 * key or by priority. Items have a list in the order in which they were put, and each key has one of
 * its own in the same order: a take by key costs a look at a table, one by priority that of a heap,
 * and units taken from either end of the queue leave both lists at once.
 */
#include "graph/replay_priv.h"

#include "base/heap.h"

/* From so many items on; fewer are looked through as quickly. */
enum { INDEX_FROM = 64, HEAP_SPARE = 64, GROWS_TO = 16 };

struct key_links { /* of an item: in the queue, and among those of its key; REPLAY_NONE: the end */
	uint32_t next, before, next_of_key, before_of_key;
	uint32_t row;
};
struct key_row { /* of a key that some item has */
	uint64_t key, nr_units;
	uint32_t head, tail; /* head: of a free row the next free one */
};
struct replay_keys {
	struct key_links *link; /* [slot], as the ring's items */
	size_t link_capacity;
	uint32_t head, tail, free_slot, nr_slots;
	struct base_map row_of; /* (0, key) -> row */
	struct key_row *row;
	size_t row_capacity;
	uint32_t free_row, nr_rows, nr_used_rows;
	uint64_t *heap; /* keys, the least first; also some of those that no item has any more */
	size_t heap_capacity;
	uint32_t nr_heap;
};

static enum base_status keys_grow(
	struct replay_memory m, void *array, size_t *capacity, size_t nr, size_t size)
{
	size_t old = *capacity, most = nr > 2 * old ? nr : 2 * old; /* (as base_grow() does) */
	most = most < GROWS_TO ? GROWS_TO : most;
	if (nr <= old)
		return BASE_OK;
	if ((most - old) * size > m.max_bytes - *m.used_bytes)
		return BASE_ERR_LIMIT;
	enum base_status s = base_grow(array, capacity, nr, size);
	*m.used_bytes += s == BASE_OK ? (*capacity - old) * size : 0;
	return s;
}

static bool keys_find(const struct replay_keys *k, uint64_t key, uint32_t *ret_row)
{
	uint64_t row;
	bool found = base_map_get(&k->row_of, 0, key, &row);
	*ret_row = found ? (uint32_t)row : REPLAY_NONE;
	return found;
}

/* Only keys that some item has, once each. */
static void keys_clean_heap(struct replay_keys *k)
{
	k->nr_heap = 0;
	for (uint32_t i = 0; i < k->nr_rows; i++)
		if (k->row[i].nr_units)
			base_keys_put(k->heap, &k->nr_heap, k->row[i].key);
}

static enum base_status keys_add_row(
	struct replay_memory m, struct replay_keys *k, uint64_t key, uint32_t *ret)
{
	if (k->nr_heap >= 2 * k->nr_used_rows + HEAP_SPARE)
		keys_clean_heap(k);
	enum base_status s =
		keys_grow(m, &k->heap, &k->heap_capacity, (size_t)k->nr_heap + 1, sizeof *k->heap);
	if (s == BASE_OK && k->free_row == REPLAY_NONE)
		s = keys_grow(m, &k->row, &k->row_capacity, (size_t)k->nr_rows + 1, sizeof *k->row);
	uint32_t row = k->free_row == REPLAY_NONE ? k->nr_rows : k->free_row;
	if (s == BASE_OK)
		s = base_map_put(&k->row_of, 0, key, row);
	if (s != BASE_OK)
		return s;
	if (row == k->nr_rows)
		k->nr_rows++;
	else
		k->free_row = k->row[row].head;
	k->row[row] = (struct key_row){.key = key, .head = REPLAY_NONE, .tail = REPLAY_NONE};
	k->nr_used_rows++;
	base_keys_put(k->heap, &k->nr_heap, key);
	*ret = row;
	return BASE_OK;
}

static void keys_link(
	struct replay_keys *k, const struct replay_item *item, uint32_t slot, uint32_t row)
{
	struct key_row *of = &k->row[row];
	k->link[slot] = (struct key_links){.next = REPLAY_NONE,
		.before = k->tail,
		.next_of_key = REPLAY_NONE,
		.before_of_key = of->tail,
		.row = row};
	*(k->tail == REPLAY_NONE ? &k->head : &k->link[k->tail].next) = slot;
	*(of->tail == REPLAY_NONE ? &of->head : &k->link[of->tail].next_of_key) = slot;
	k->tail = of->tail = slot;
	of->nr_units += item->nr_units;
}

static enum base_status keys_add_slot(
	struct replay_memory m, struct replay_ring *ring, uint32_t *ret)
{
	struct replay_keys *k = ring->keys;
	BASE_ASSERT(k);
	*ret = k->free_slot;
	if (*ret != REPLAY_NONE) {
		k->free_slot = k->link[*ret].next;
		return BASE_OK;
	}
	enum base_status s = keys_grow(
		m, &ring->item, &ring->capacity, (size_t)k->nr_slots + 1, sizeof *ring->item);
	if (s == BASE_OK)
		s = keys_grow(
			m, &k->link, &k->link_capacity, (size_t)k->nr_slots + 1, sizeof *k->link);
	*ret = k->nr_slots;
	k->nr_slots += s == BASE_OK;
	return s;
}

static enum base_status keys_put(
	struct replay_memory m, struct replay_ring *ring, const struct replay_item *item)
{
	struct replay_keys *k = ring->keys;
	uint32_t slot, row;
	enum base_status s = BASE_OK;
	BASE_ASSERT(k);
	if (!keys_find(k, item->key, &row))
		s = keys_add_row(m, k, item->key, &row);
	if (s == BASE_OK)
		s = keys_add_slot(m, ring, &slot);
	if (s != BASE_OK)
		return s;
	ring->item[slot] = *item;
	keys_link(k, item, slot, row);
	ring->nr++;
	return BASE_OK;
}

static void keys_free_row(struct replay_keys *k, uint32_t row)
{
	struct key_row *of = &k->row[row];
	base_map_remove(&k->row_of, 0, of->key);
	of->nr_units = 0;
	of->head = k->free_row;
	k->free_row = row;
	k->nr_used_rows--;
}

/* The item goes; the others keep their order. */
static void keys_remove(struct replay_ring *ring, uint32_t slot)
{
	struct replay_keys *k = ring->keys;
	struct key_links *link = &k->link[slot];
	struct key_row *of = &k->row[link->row];
	*(link->before == REPLAY_NONE ? &k->head : &k->link[link->before].next) = link->next;
	*(link->next == REPLAY_NONE ? &k->tail : &k->link[link->next].before) = link->before;
	*(link->before_of_key == REPLAY_NONE ? &of->head
					     : &k->link[link->before_of_key].next_of_key) =
		link->next_of_key;
	*(link->next_of_key == REPLAY_NONE ? &of->tail
					   : &k->link[link->next_of_key].before_of_key) =
		link->before_of_key;
	if (of->head == REPLAY_NONE)
		keys_free_row(k, link->row);
	link->next = k->free_slot;
	k->free_slot = slot;
	ring->nr--;
}

/* The first item of those with the least key; REPLAY_NONE: there is none. */
static uint32_t keys_least(struct replay_keys *k)
{
	uint32_t row;
	while (k->nr_heap) {
		if (keys_find(k, k->heap[0], &row))
			return k->row[row].head;
		BASE_HEAP_DROP(k->heap, k->nr_heap, base_key_is_less);
	}
	return REPLAY_NONE;
}

static uint32_t keys_first(struct replay_keys *k, const struct replay_take *take)
{
	uint32_t row;
	if (take->keyed)
		return keys_find(k, take->key, &row) ? k->row[row].head : REPLAY_NONE;
	if (take->discipline == GRAPH_PRIORITY)
		return keys_least(k);
	return take->discipline == GRAPH_LIFO ? k->tail : k->head;
}

/* Of what is only looked at: by priority no more than the first. */
static uint32_t keys_next(
	const struct replay_keys *k, const struct replay_take *take, uint32_t slot)
{
	if (take->keyed)
		return k->link[slot].next_of_key;
	if (take->discipline == GRAPH_PRIORITY)
		return REPLAY_NONE;
	return take->discipline == GRAPH_LIFO ? k->link[slot].before : k->link[slot].next;
}

/* That many of an item's units; it goes with the last one. */
static void keys_take_of(struct replay_ring *ring, uint32_t slot, uint64_t n)
{
	ring->item[slot].nr_units -= n;
	ring->keys->row[ring->keys->link[slot].row].nr_units -= n;
	if (!ring->item[slot].nr_units)
		keys_remove(ring, slot);
}

uint64_t graph_replay_keys_take(
	struct replay_ring *ring, const struct replay_take *take, struct replay_item *latest)
{
	uint64_t left = take->n;
	uint32_t slot = keys_first(ring->keys, take);
	while (left && slot != REPLAY_NONE) {
		const struct replay_item *it = &ring->item[slot];
		uint64_t n = left < it->nr_units ? left : it->nr_units;
		left -= n;
		graph_replay_item_counts(latest, it);
		if (take->keep) {
			slot = keys_next(ring->keys, take, slot);
			continue;
		}
		keys_take_of(ring, slot, n);
		slot = keys_first(ring->keys, take);
	}
	return take->n - left;
}

void graph_replay_keys_take_back(struct replay_ring *ring, uint64_t n)
{
	while (n && ring->nr) {
		uint32_t slot = ring->keys->tail;
		uint64_t of = ring->item[slot].nr_units;
		uint64_t taken = n < of ? n : of;
		n -= taken;
		keys_take_of(ring, slot, taken);
	}
}

uint64_t graph_replay_keys_units(const struct replay_ring *ring, uint64_t key)
{
	uint32_t row;
	return keys_find(ring->keys, key, &row) ? ring->keys->row[row].nr_units : 0;
}

void graph_replay_keys_fini(struct replay_ring *ring)
{
	struct replay_keys *k = ring->keys;
	if (!k)
		return;
	base_map_fini(&k->row_of);
	base_free(k->link);
	base_free(k->row);
	base_free(k->heap);
	base_free(k);
	ring->keys = NULL;
}

bool graph_replay_keys_wanted(const struct replay_ring *ring)
{
	return ring->keys || (ring->by_key && ring->nr >= INDEX_FROM);
}

/* What the ring has, in its order. */
static enum base_status keys_begin(struct replay_memory m, struct replay_ring *ring)
{
	struct replay_ring old = *ring;
	enum base_status s = BASE_OK;
	struct replay_keys *k = base_alloc(sizeof *k);
	if (!k)
		return BASE_ERR_NOMEM;
	*k = (struct replay_keys){.head = REPLAY_NONE,
		.tail = REPLAY_NONE,
		.free_slot = REPLAY_NONE,
		.free_row = REPLAY_NONE};
	*ring = (struct replay_ring){.by_key = true, .keys = k};
	for (size_t i = 0; s == BASE_OK && i < old.nr; i++)
		s = keys_put(m, ring, &old.item[(old.head + i) & (old.capacity - 1)]);
	*m.used_bytes -= s == BASE_OK ? old.capacity * sizeof *old.item : 0;
	if (s == BASE_OK) {
		base_free(old.item);
		return BASE_OK;
	}
	graph_replay_keys_fini(ring);
	base_free(ring->item);
	*ring = old;
	return s;
}

enum base_status graph_replay_keys_push(struct replay_memory m, struct replay_ring *ring,
	const struct replay_item *item, struct base_err *err)
{
	enum base_status s = ring->keys ? BASE_OK : keys_begin(m, ring);
	if (s == BASE_OK)
		s = keys_put(m, ring, item);
	if (s == BASE_ERR_LIMIT)
		return graph_replay_items_limit(m, err);
	return s == BASE_OK ? s : base_fail(err, BASE_ERR_NOMEM, "no memory for units in queues");
}

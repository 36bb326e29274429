/* SPDX-License-Identifier: Apache-2.0 */
/* replay_items.c - units in a queue with the times at which they were put. */
#include "graph/replay_priv.h"

static struct replay_item *item_at(const struct replay_ring *ring, size_t i)
{
	return &ring->item[(ring->head + i) & (ring->capacity - 1)];
}

enum base_status graph_replay_items_limit(struct replay_memory m, struct base_err *err)
{
	return base_fail(err, BASE_ERR_LIMIT,
		"replay needs more than %zu MiB for units in queues: analyse a window of the trace "
		"or raise the memory limit",
		m.max_bytes >> 20);
}

static enum base_status replay_items_grow(
	struct replay_memory m, struct replay_ring *ring, struct base_err *err)
{
	size_t old = ring->capacity, capacity = old ? 2 * old : 4;
	size_t size = sizeof *ring->item;
	struct replay_item *p;

	if ((capacity - old) * size > m.max_bytes - *m.used_bytes)
		return graph_replay_items_limit(m, err);
	p = base_realloc(ring->item, old * size, capacity * size);
	if (!p)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for units in queues");
	*m.used_bytes += (capacity - old) * size;
	/* What had wrapped round now follows the old end. */
	memcpy(p + old, p, ring->head * size);
	ring->item = p;
	ring->capacity = capacity;
	return BASE_OK;
}

enum base_status graph_replay_ring_push(struct replay_memory m, struct replay_ring *ring,
	struct replay_item item, struct base_err *err)
{
	if (BASE_UNLIKELY(graph_replay_keys_wanted(ring)))
		return graph_replay_keys_push(m, ring, &item, err);
	if (ring->nr == ring->capacity) {
		enum base_status s = replay_items_grow(m, ring, err);

		if (s)
			return s;
	}
	*item_at(ring, ring->nr++) = item;
	return BASE_OK;
}

static void pop_front(struct replay_ring *ring)
{
	ring->head = (ring->head + 1) & (ring->capacity - 1);
	ring->nr--;
}

/* Item i goes; those before it keep their order. */
static void remove_item(struct replay_ring *ring, size_t i)
{
	if (i == ring->nr - 1) {
		ring->nr--;
		return;
	}
	for (; i; i--)
		*item_at(ring, i) = *item_at(ring, i - 1);
	pop_front(ring);
}

/* The next one to take, past the `seen` that were only looked at; ring->nr: none. */
static size_t replay_items_next_item(
	const struct replay_ring *ring, const struct replay_take *take, size_t seen)
{
	size_t best = seen;

	if (take->keyed) {
		while (best < ring->nr && item_at(ring, best)->key != take->key)
			best++;
		return best;
	}
	if (take->discipline == GRAPH_LIFO)
		return ring->nr - 1 - seen;
	if (take->discipline != GRAPH_PRIORITY)
		return seen;
	for (size_t i = seen + 1; i < ring->nr; i++) {
		if (item_at(ring, i)->key < item_at(ring, best)->key)
			best = i;
	}
	return best;
}

void graph_replay_item_counts(struct replay_item *latest, const struct replay_item *it)
{
	if (it->time_ns != REPLAY_NOBODY &&
		(latest->time_ns == REPLAY_NOBODY || it->time_ns >= latest->time_ns))
		*latest = *it;
}

uint64_t graph_replay_ring_take(
	struct replay_ring *ring, const struct replay_take *take, struct replay_item *latest)
{
	uint64_t left = take->n;
	size_t seen = 0, i;

	*latest = (struct replay_item){.time_ns = REPLAY_NOBODY};
	ring->by_key |= take->keyed || take->discipline == GRAPH_PRIORITY;
	if (BASE_UNLIKELY(ring->keys))
		return graph_replay_keys_take(ring, take, latest);
	while (left && seen < ring->nr &&
		(i = replay_items_next_item(ring, take, seen)) < ring->nr) {
		struct replay_item *it = item_at(ring, i);
		uint64_t k = left < it->nr_units ? left : it->nr_units;

		left -= k;
		graph_replay_item_counts(latest, it);
		if (take->keep) {
			if (take->discipline == GRAPH_PRIORITY && !take->keyed)
				break;
			seen = take->keyed ? i + 1 : seen + 1;
			continue;
		}
		it->nr_units -= k;
		if (it->nr_units)
			break;
		remove_item(ring, i);
	}
	return take->n - left;
}

void graph_replay_ring_take_back(struct replay_ring *ring, uint64_t n)
{
	if (BASE_UNLIKELY(ring->keys)) {
		graph_replay_keys_take_back(ring, n);
		return;
	}
	while (n && ring->nr) {
		struct replay_item *it = item_at(ring, ring->nr - 1);
		uint64_t k = n < it->nr_units ? n : it->nr_units;

		n -= k;
		it->nr_units -= k;
		if (!it->nr_units)
			ring->nr--;
	}
}

uint64_t graph_replay_ring_units(const struct replay_ring *ring, uint64_t key)
{
	uint64_t n = 0;

	if (BASE_UNLIKELY(ring->keys))
		return graph_replay_keys_units(ring, key);
	for (size_t i = 0; i < ring->nr; i++)
		n += item_at(ring, i)->key == key ? item_at(ring, i)->nr_units : 0;
	return n;
}

void graph_replay_ring_fini(struct replay_ring *ring)
{
	graph_replay_keys_fini(ring);
	base_free(ring->item);
	*ring = (struct replay_ring){0};
}

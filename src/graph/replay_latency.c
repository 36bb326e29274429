/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_latency.c - how long it usually takes from "it is there" to "it is used", by the length of
 * the wait before: who slept for long sleeps deeply. Kept per latency state (one a class of
 * queues).
 */
#include "graph/replay_priv.h"

#include <stdlib.h>

enum base_status graph_replay_latency_add(struct graph_replay *r, uint32_t state, uint64_t wait_ns,
	uint64_t latency_ns, struct base_err *err)
{
	unsigned b = replay_bucket(wait_ns);
	uint32_t value = latency_ns < UINT32_MAX ? (uint32_t)latency_ns : UINT32_MAX, at;
	enum base_status s = graph_replay_mem_need(r, &r->latency, &r->latency_capacity,
		(size_t)state + 1, sizeof(struct replay_latency *), err);

	if (s)
		return s;
	if (!r->latency[state]) {
		size_t nr = 0;

		s = graph_replay_mem_resize(
			r, &r->latency[state], &nr, 1, sizeof(struct replay_latency), err);
		if (s)
			return s;
	}
	struct replay_latency *l = r->latency[state];

	/* A reservoir: the k-th comes in with probability size / k; the hash is the dice. */
	at = l->bucket[b].nr++;
	if (at >= REPLAY_SAMPLES)
		at = (uint32_t)(base_hash_u64((uint64_t)b << 32 | at) % l->bucket[b].nr);
	if (at < REPLAY_SAMPLES)
		l->bucket[b].sample[at] = value;
	return BASE_OK;
}

static int ascending(const void *pa, const void *pb)
{
	const uint32_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

static uint64_t median(const uint32_t *sample, uint32_t nr)
{
	uint32_t sorted[REPLAY_SAMPLES];

	if (nr > REPLAY_SAMPLES)
		nr = REPLAY_SAMPLES;
	memcpy(sorted, sample, nr * sizeof *sorted);
	qsort(sorted, nr, sizeof *sorted, ascending);
	return sorted[(nr - 1) / 2];
}

/* Of the nearest length of wait that was seen; the shorter of two as near. */
uint64_t graph_replay_latency_usual(const struct graph_replay *r, uint32_t state, uint64_t wait_ns)
{
	const struct replay_latency *l = state < r->latency_capacity ? r->latency[state] : NULL;
	unsigned b = replay_bucket(wait_ns);

	for (unsigned d = 0; l && d < REPLAY_BUCKETS; d++) {
		if (b >= d && l->bucket[b - d].nr)
			return median(l->bucket[b - d].sample, l->bucket[b - d].nr);
		if (b + d < REPLAY_BUCKETS && l->bucket[b + d].nr)
			return median(l->bucket[b + d].sample, l->bucket[b + d].nr);
	}
	return 0;
}

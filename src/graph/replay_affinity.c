/* SPDX-License-Identifier: Apache-2.0 */
/* replay_affinity.c - which processors actors may run on: in the log, by the kernel's numbers. */
#include "graph/replay_priv.h"

#include <string.h>

static bool set_has(const struct replay_set *set, uint64_t number)
{
	return number / 64 < set->nr_words && set->bits[number / 64] >> number % 64 & 1;
}

/* A mask may name processors that the machine does not have. */
static bool replay_affinity_is_there(const struct graph_replay *r, uint64_t number)
{
	if (!r->nr_processors_told || number < r->nr_processors_told)
		return true;
	for (size_t i = 0; i < r->nr_queues; i++) {
		if (r->queue[i].o.processor && r->queue[i].kernel_number == number)
			return true;
	}
	return false;
}

bool graph_replay_is_usable(const struct graph_replay *r, uint64_t number)
{
	for (size_t i = 0; i < r->nr_sets; i++) {
		if (r->set[i].nr_actors && set_has(&r->set[i], number))
			return replay_affinity_is_there(r, number);
	}
	return false;
}

bool graph_replay_may_use(const struct graph_replay *r, uint32_t set, uint64_t number)
{
	return set >= r->nr_sets || set_has(&r->set[set], number);
}

uint32_t graph_replay_set_of(const struct graph_replay *r, uint32_t actor)
{
	return actor < r->nr_set_of ? r->set_of[actor] : REPLAY_NONE;
}

static void count_usable(struct graph_replay *r)
{
	r->nr_usable = 0;
	for (uint32_t i = 0; i < REPLAY_PROCESSORS_MAX; i++)
		r->nr_usable += graph_replay_is_usable(r, i);
}

enum base_status graph_replay_processor(
	void *ctx, uint32_t queue, uint64_t number, struct base_err *err)
{
	struct graph_replay *r = ctx;

	(void)err;
	if (queue < r->nr_queues)
		r->queue[queue].kernel_number = number;
	return BASE_OK;
}

enum base_status graph_replay_processor_set(
	void *ctx, uint32_t set, const uint64_t *bits, size_t nr_words, struct base_err *err)
{
	struct graph_replay *r = ctx;
	struct replay_set *new;
	size_t capacity = 0;
	enum base_status s;

	BASE_ASSERT(set == r->nr_sets);
	s = graph_replay_mem_need(
		r, &r->set, &r->set_capacity, r->nr_sets + 1, sizeof *r->set, err);
	if (s)
		return r->failed = s;
	new = &r->set[r->nr_sets];
	*new = (struct replay_set){.nr_words = nr_words};
	s = graph_replay_mem_need(r, &new->bits, &capacity, nr_words + 1, sizeof *bits, err);
	if (s)
		return r->failed = s;
	memcpy(new->bits, bits, nr_words * sizeof *bits);
	r->nr_sets++;
	return BASE_OK;
}

enum base_status graph_replay_affinity(
	void *ctx, uint32_t actor, uint32_t set, struct base_err *err)
{
	struct graph_replay *r = ctx;
	uint32_t before = graph_replay_set_of(r, actor);
	enum base_status s = graph_replay_mem_need(
		r, &r->set_of, &r->set_of_capacity, (size_t)actor + 1, sizeof *r->set_of, err);

	if (s)
		return r->failed = s;
	while (r->nr_set_of <= actor)
		r->set_of[r->nr_set_of++] = REPLAY_NONE;
	r->set_of[actor] = set;
	if (before == set)
		return BASE_OK;
	if (before < r->nr_sets)
		r->set[before].nr_actors--;
	if (set < r->nr_sets)
		r->set[set].nr_actors++;
	if ((before < r->nr_sets && !r->set[before].nr_actors) ||
		(set < r->nr_sets && r->set[set].nr_actors == 1))
		count_usable(r);
	return BASE_OK;
}

void graph_replay_affinity_fini(struct graph_replay *r)
{
	for (size_t i = 0; i < r->nr_sets; i++)
		base_free(r->set[i].bits);
	base_free(r->set);
	base_free(r->set_of);
}

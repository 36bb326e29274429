/* SPDX-License-Identifier: Apache-2.0 */
/* free.c - a model's end. */
#include "model/model_private.h"

static void free_object(struct object *o)
{
	base_free(o->signals);
	if (o->disk)
		base_free(o->disk->slot);
	base_free(o->disk);
	base_free(o->tcp);
	model_packets_free(o->packets);
	model_packets_free(o->held);
}

struct model *model_free(struct model *m)
{
	if (!m)
		return NULL;
	graph_free(m->graph);
	for (size_t i = 0; i < m->nr_actors; i++)
		base_free(m->actor[i].served);
	for (size_t i = 0; i < m->nr_states; i++)
		model_empty_list(&m->state[i].own);
	for (size_t i = 0; i < m->nr_pools; i++)
		model_empty_list(&m->pool[i]);
	for (uint32_t i = 0; m->thread && i < m->nr_threads; i++)
		model_free_thread(&m->thread[i]);
	for (uint32_t i = 0; m->object && i < m->nr_objects; i++)
		free_object(&m->object[i]);
	void *owned[] = {m->cause, m->run_time, m->thread, m->standing, m->followed, m->listener,
		m->object, m->connection, m->processor, m->role, m->class_, m->state, m->actor,
		m->queue, m->site_text, m->pool, m->noting, m->flight, m->passed, m->chain,
		m->clock, m->timer, m->ending.object};
	for (size_t i = 0; i < BASE_COUNT(owned); i++)
		base_free(owned[i]);
	struct base_map *maps[] = {&m->killers, &m->pipes, &m->by_tid, &m->connection_ids,
		&m->speakers, &m->roles, &m->classes, &m->states, &m->tokens, &m->handles,
		&m->processor_sets, &m->spins, &m->machines, &m->samples, &m->pools, &m->files,
		&m->alike, &m->inlined_at, &m->chains, &m->clocks, &m->owners};
	for (size_t i = 0; i < BASE_COUNT(maps); i++)
		base_map_fini(maps[i]);
	model_free_findings(m);
	model_free_processors(m);
	base_arena_free(m->arena);
	base_free(m);
	return NULL;
}

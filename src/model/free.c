/* SPDX-License-Identifier: Apache-2.0 */
/* free.c - a model's end. */
#include "model/model_private.h"

static void free_object(struct object *o)
{
	base_free(o->lock.signals);
	if (o->disk)
		base_free(o->disk->slot);
	base_free(o->disk);
	base_free(o->tcp);
	model_packets_free(o->packets);
	model_packets_free(o->held);
}

struct model *model_share(struct model *m)
{
	m->nr_more_owners++;
	return m;
}

struct model *model_free(struct model *m)
{
	if (!m || m->nr_more_owners) {
		if (m)
			m->nr_more_owners--;
		return NULL;
	}
	graph_free(m->graph);
	for (size_t i = 0; i < m->made.nr_actors; i++)
		base_free(m->made.actor[i].served);
	for (size_t i = 0; i < m->made.nr_states; i++)
		model_empty_list(&m->made.state[i].own);
	for (size_t i = 0; i < m->sampled.nr_pools; i++)
		model_empty_list(&m->sampled.pool[i]);
	for (uint32_t i = 0; m->thread && i < m->nr_threads; i++)
		model_free_thread(&m->thread[i]);
	for (uint32_t i = 0; m->object && i < m->nr_objects; i++)
		free_object(&m->object[i]);
	model_free_turns(m);
	void *owned[] = {m->kernel.waker, m->kernel.run_time, m->thread, m->annotated.standing,
		m->follow.followed, m->listener, m->object, m->connection, m->processors.processor,
		m->made.role, m->made.class_, m->made.state, m->made.actor, m->made.queue,
		m->naming.site_text, m->sampled.pool, m->annotated.noting, m->annotated.flight,
		m->annotated.passed, m->sampled.chain, m->sampled.point, m->sampled.inside,
		m->sampled.line, m->timing.clock, m->timing.timer, m->timing.box_timer,
		m->ending.object};
	for (size_t i = 0; i < BASE_COUNT(owned); i++)
		base_free(owned[i]);
	struct base_map *maps[] = {&m->timing.killers, &m->known.pipes, &m->known.by_tid,
		&m->follow.connection_ids, &m->follow.speakers, &m->made.roles, &m->made.classes,
		&m->made.states, &m->known.tokens, &m->known.handles, &m->processors.processor_sets,
		&m->sampled.spins, &m->annotated.machines, &m->sampled.samples, &m->sampled.pools,
		&m->naming.files, &m->naming.own, &m->naming.alike, &m->naming.equal,
		&m->sampled.inlined_at, &m->sampled.lines, &m->sampled.chains, &m->sampled.points,
		&m->sampled.insides, &m->timing.clocks, &m->timing.turns.tasks, &m->known.owners,
		&m->known.channels, &m->naming.identities};
	for (size_t i = 0; i < BASE_COUNT(maps); i++)
		base_map_fini(maps[i]);
	base_strtab_free(m->naming.texts);
	model_free_findings(m);
	model_free_processors(m);
	model_free_mpi(m);
	base_arena_free(m->arena);
	base_free(m);
	return NULL;
}

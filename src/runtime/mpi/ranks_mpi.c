/* SPDX-License-Identifier: Apache-2.0 */
/* ranks_mpi.c - the ranks of each world: which of them were recorded, and how they ended. */
#include "runtime/mpi/rules_mpi.h"

void model_mpi_in_world(struct model *m, const struct trace_mpi_comm *c)
{
	struct model_mpi *x = m->known.mpi;
	size_t i = 0;
	while (i < x->nr_worlds && x->world[i].object != c->object)
		i++;
	if (i == x->nr_worlds) {
		if (!model_grow(m, &x->world, &x->world_capacity, i + 1, sizeof *x->world))
			return;
		x->world[x->nr_worlds++] = (struct model_mpi_world){
			.object = c->object, .nr_ranks = (uint32_t)c->size};
	}
	x->world[i].nr_recorded++;
}

struct mpi_ending *model_mpi_ending_of(struct model *m, uint32_t process)
{
	struct model_mpi *x = m->known.mpi;
	uint64_t i;
	if (base_map_get(&x->endings, process, 0, &i))
		return &x->ending[i];
	if (!model_grow(m, &x->ending, &x->ending_capacity, x->nr_endings + 1, sizeof *x->ending))
		return NULL;
	x->ending[x->nr_endings] = (struct mpi_ending){.status = -1, .abort_site = NONE};
	model_put(m, &x->endings, process, 0, x->nr_endings);
	return &x->ending[x->nr_endings++];
}

void model_mpi_process_ends(
	struct model *m, const struct thread *t, int64_t status, uint64_t time_ns)
{
	struct mpi_ending *e =
		model_mpi_rank(m, t->process) < 0 ? NULL : model_mpi_ending_of(m, t->process);
	if (!e)
		return;
	e->ended = true;
	e->status = status;
	e->time_ns = time_ns;
}

/* ---- what others ask ------------------------------------------------------------------------- */

static bool mpi_is_world(const struct model_mpi *x, uint32_t object)
{
	for (size_t i = 0; i < x->nr_worlds; i++)
		if (x->world[i].object == object)
			return true;
	return false;
}

static int64_t mpi_world_rank(const struct model *m, uint32_t object, uint32_t rank)
{
	uint64_t process;
	if (mpi_is_world(m->known.mpi, object))
		return rank;
	return base_map_get(&m->known.mpi->present, object, rank, &process)
		       ? model_mpi_rank(m, (uint32_t)process)
		       : -1;
}

bool model_mpi_way(const struct model *m, size_t i, int64_t *ret_from, int64_t *ret_to,
	struct model_mpi_traffic *ret)
{
	const struct model_mpi *x = m->known.mpi;
	if (!x || i >= x->nr_pairs)
		return false;
	*ret_from = mpi_world_rank(m, x->pair[i].object, x->pair[i].source);
	*ret_to = mpi_world_rank(m, x->pair[i].object, x->pair[i].destination);
	*ret = x->pair[i].traffic;
	return true;
}

uint32_t model_rank_process(const struct model *m, uint32_t actor)
{
	uint32_t thread = actor < m->made.nr_actors ? m->made.actor[actor].thread : NONE;
	uint32_t process = thread < m->nr_threads ? m->thread[thread].process : 0;
	return model_mpi_rank(m, process) < 0 ? 0 : process;
}

const struct model_mpi_world *model_mpi_worlds(const struct model *m, size_t *ret_nr)
{
	*ret_nr = m->known.mpi ? m->known.mpi->nr_worlds : 0;
	return *ret_nr ? m->known.mpi->world : NULL;
}

struct model_mpi_rank model_mpi_rank_of(
	const struct model *m, const struct model_mpi_world *w, uint32_t rank)
{
	const struct model_mpi *x = m->known.mpi;
	struct model_mpi_rank ret = {.status = -1};
	uint64_t process, i;
	if (!base_map_get(&x->present, w->object, rank, &process))
		return ret;
	ret.recorded = true;
	ret.process = (uint32_t)process;
	if (!base_map_get(&x->endings, process, 0, &i))
		return ret;
	const struct mpi_ending *e = &x->ending[i];
	ret.ended = e->ended;
	ret.finalized = e->finalized;
	ret.end_ns = e->time_ns;
	ret.status = e->status;
	ret.aborted = e->abort_site != NONE;
	ret.abort_site = ret.aborted ? e->abort_site : 0;
	return ret;
}

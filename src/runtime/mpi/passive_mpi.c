/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passive_mpi.c - calls about a window's memory at a rank which itself calls nothing for it
 * (MPI 3.1, 11.5.3): locks, unlocks and flushes.
 *
 * When a lock is really taken is the library's business: in MPI_Win_lock, in the first transfer, or
 * in MPI_Win_unlock. So none is kept here. A call that goes on while another rank unlocks the same
 * memory has waited for that. One that goes on while its target, which was outside of MPI, comes to a
 * call of its own has waited for that, if what was left to do took less time than what was before:
 * where the library needs the target's processor, nothing goes on without it.
 */
#include "runtime/mpi/rules_mpi.h"

bool model_mpi_is_passive(uint64_t op)
{
	return op >= TRACE_MPI_Win_lock && op <= TRACE_MPI_Win_flush_local_all;
}

static uint32_t passive_queue(struct model *m, uint32_t object)
{
	enum { QUEUE = 1 };
	struct model_mpi *x = m->known.mpi;
	uint64_t queue;
	if (!base_map_get(&x->queues, object, QUEUE, &queue)) {
		queue = model_mpi_make_queue(m, object);
		model_put(m, &x->queues, object, QUEUE, queue);
	}
	return (uint32_t)queue;
}

static void passive_give(
	struct model *m, struct thread *t, uint64_t time_ns, struct mpi_passive *p, uint32_t rank)
{
	p->needed = (struct mpi_needed){.queue = passive_queue(m, p->object),
		.key = ++m->known.mpi->passive.nr_given,
		.available_ns = time_ns,
		.peer = rank + 1};
	model_mpi_put(m, t, time_ns, p->needed.queue, p->needed.key, 1);
}

void model_mpi_target_enters(struct model *m, struct thread *t, uint64_t time_ns)
{
	struct model_mpi *x = m->known.mpi;
	for (size_t i = 0; i < x->passive.nr; i++) {
		struct mpi_passive *p = &x->passive.call[i];
		uint64_t process;
		if (!p->is_outside || !base_map_get(&x->present, p->object, p->target, &process) ||
			process != t->process)
			continue;
		p->is_outside = false;
		passive_give(m, t, time_ns, p, p->target);
	}
}

/* Is a thread of that process in MPI? */
static bool passive_is_inside(const struct model *m, uint32_t object, uint32_t rank)
{
	const struct model_mpi *x = m->known.mpi;
	uint64_t process;
	if (!base_map_get(&x->present, object, rank, &process))
		return true; /* (not recorded: nothing is known of it) */
	for (uint32_t i = 0; i < m->nr_threads; i++)
		if (m->thread[i].process == process && m->thread[i].stream < x->nr_threads &&
			x->thread[m->thread[i].stream].is_in_call)
			return true;
	return false;
}

static void passive_unlocks(struct model *m, struct thread *t, uint64_t time_ns,
	const struct mpi_passive *by, uint32_t rank)
{
	struct model_mpi *x = m->known.mpi;
	for (size_t i = 0; i < x->passive.nr; i++) {
		struct mpi_passive *p = &x->passive.call[i];
		if (p->object != by->object || p->target != by->target || p->stream == by->stream)
			continue;
		p->is_given = true;
		p->is_outside = false;
		passive_give(m, t, time_ns, p, rank);
	}
}

void model_mpi_passive_begins(struct model *m, struct thread *t, struct mpi_thread *k,
	uint64_t time_ns, uint32_t rank, int64_t target)
{
	struct model_mpi *x = m->known.mpi;
	static const struct mpi_needed unknown = {.queue = NONE};
	bool has_target = target >= 0 && target < UINT32_MAX;
	if (has_target && model_grow(m, &x->passive.call, &x->passive.capacity, x->passive.nr + 1,
				  sizeof *x->passive.call)) {
		struct mpi_passive *p = &x->passive.call[x->passive.nr++];
		*p = (struct mpi_passive){
			.stream = t->stream, .object = k->object, .target = (uint32_t)target};
		p->is_outside = rank != target && !passive_is_inside(m, k->object, p->target);
		if (k->op == TRACE_MPI_Win_unlock)
			passive_unlocks(m, t, time_ns, p, rank);
	}
	model_mpi_call_begins(m, t, k, time_ns, has_target, &unknown);
}

void model_mpi_passive_ends(
	struct model *m, const struct thread *t, struct mpi_thread *k, uint64_t time_ns)
{
	struct model_mpi *x = m->known.mpi;
	for (size_t i = 0; i < x->passive.nr; i++) {
		const struct mpi_passive *p = &x->passive.call[i];
		if (p->stream != t->stream)
			continue;
		bool is_why = p->is_given || time_ns - p->needed.available_ns <
						     p->needed.available_ns - k->begin_ns;
		if (p->needed.peer && is_why)
			model_mpi_need(m, k, p->needed);
		x->passive.call[i] = x->passive.call[--x->passive.nr];
		return;
	}
}

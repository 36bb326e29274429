/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meetings_mpi.c - collective operations: one meeting of a communicator, the n-th of each rank's. It
 * ends for a rank when all have come whom this one needs: everybody, the root, or, of MPI_Scan and
 * MPI_Exscan, the ranks below it (MPI 3.1, 5.11).
 */
#include "runtime/mpi/rules_mpi.h"

static enum mpi_needs meeting_needs_of(uint64_t op)
{
	static const uint8_t needs[TRACE_MPI_NR] = {
		[TRACE_MPI_Bcast] = MPI_NEEDS_rest,
		[TRACE_MPI_Ibcast] = MPI_NEEDS_rest,
		[TRACE_MPI_Scatter] = MPI_NEEDS_rest,
		[TRACE_MPI_Scatterv] = MPI_NEEDS_rest,
		[TRACE_MPI_Iscatter] = MPI_NEEDS_rest,
		[TRACE_MPI_Reduce] = MPI_NEEDS_root,
		[TRACE_MPI_Ireduce] = MPI_NEEDS_root,
		[TRACE_MPI_Gather] = MPI_NEEDS_root,
		[TRACE_MPI_Gatherv] = MPI_NEEDS_root,
		[TRACE_MPI_Igather] = MPI_NEEDS_root,
		[TRACE_MPI_Iscatterv] = MPI_NEEDS_rest,
		[TRACE_MPI_Igatherv] = MPI_NEEDS_root,
		[TRACE_MPI_Scan] = MPI_NEEDS_lower,
		[TRACE_MPI_Exscan] = MPI_NEEDS_lower,
		[TRACE_MPI_Iscan] = MPI_NEEDS_lower,
		[TRACE_MPI_Iexscan] = MPI_NEEDS_lower,
	};
	return op < TRACE_MPI_NR ? (enum mpi_needs)needs[op] : MPI_NEEDS_all;
}

static uint32_t meeting_of(struct model *m, uint32_t object, uint64_t number, uint32_t size)
{
	struct model_mpi *x = m->known.mpi;
	uint64_t i, queue;
	if (base_map_get(&x->meetings, object, number, &i))
		return (uint32_t)i;
	if (!base_map_get(&x->queues, object, 0, &queue)) {
		queue = model_mpi_make_queue(m, object);
		model_put(m, &x->queues, object, 0, queue);
	}
	if (x->free_meeting) {
		i = x->free_meeting - 1;
		x->free_meeting = x->meeting[i].size;
	} else if (model_grow(m, &x->meeting, &x->meeting_capacity, x->nr_meetings + 1,
			   sizeof *x->meeting)) {
		i = x->nr_meetings++;
	} else {
		return NONE;
	}
	x->meeting[i] =
		(struct mpi_meeting){.number = number, .size = size, .queue = (uint32_t)queue};
	model_put(m, &x->meetings, object, number, i);
	return (uint32_t)i;
}

/* ---- ranks that need those below them -------------------------------------------------------- */

/* Item of rank `last` for one above it. */
static uint64_t meeting_key_of(const struct mpi_meeting *g, uint32_t last)
{
	return g->number << 32 | (last + UINT64_C(1));
}

static void meeting_come_in_order(
	struct model *m, struct thread *t, uint64_t time_ns, struct mpi_request *q)
{
	struct mpi_meeting *g = &m->known.mpi->meeting[q->meeting];
	if (!g->come)
		g->come = base_alloc(2 * (size_t)g->size * sizeof *g->come);
	if (!g->come && m->status == BASE_OK)
		m->status = base_fail(m->err, BASE_ERR_NOMEM, "out of memory for MPI");
	if (!g->come || q->rank >= g->size) { /* (ranks that do not agree how many they are) */
		q->is_last = true;
		return;
	}
	uint64_t *last_of = g->come + g->size;
	g->come[q->rank] = time_ns + 1;
	for (; g->prefix < g->size && g->come[g->prefix]; g->prefix++) {
		uint32_t n = g->prefix;
		bool is_later = !n || g->come[n] > g->come[last_of[n - 1]];
		last_of[n] = is_later ? n : last_of[n - 1];
	}
	q->is_last = g->prefix >= q->rank;
	if (q->rank + 1 < g->size)
		model_mpi_put(
			m, t, time_ns, g->queue, meeting_key_of(g, q->rank), g->size - 1 - q->rank);
}

bool model_mpi_has_met(const struct model *m, const struct mpi_request *q)
{
	const struct mpi_meeting *g = &m->known.mpi->meeting[q->meeting];
	bool in_order = meeting_needs_of(q->op) == MPI_NEEDS_lower;
	return q->is_last || (in_order ? g->come && g->prefix >= q->rank : g->complete);
}

/* The rank that one that has met others has waited for: *ret. False: none. */
static bool meeting_last_of(
	const struct mpi_meeting *g, const struct mpi_request *q, struct mpi_needed *ret)
{
	bool in_order = meeting_needs_of(q->op) == MPI_NEEDS_lower;
	if (q->is_last)
		return false;
	uint32_t last = in_order ? (uint32_t)g->come[g->size + q->rank - 1] : g->last;
	*ret = (struct mpi_needed){.queue = g->queue,
		.key = in_order ? meeting_key_of(g, last) : g->number,
		.available_ns = in_order ? g->come[last] - 1 : g->complete_ns,
		.nr_bytes = q->n,
		.nr_alike = g->size,
		.peer = last + 1};
	return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* One of those that the others, or the root, wait for. */
static bool meeting_is_awaited(enum mpi_needs needs, bool is_root)
{
	return needs == MPI_NEEDS_all || (needs == MPI_NEEDS_rest && is_root) ||
	       (needs == MPI_NEEDS_root && !is_root);
}

static bool meeting_awaits(enum mpi_needs needs, bool is_root)
{
	return needs == MPI_NEEDS_all || (needs == MPI_NEEDS_rest && !is_root) ||
	       (needs == MPI_NEEDS_root && is_root);
}

static void meeting_come(struct model *m, struct thread *t, uint64_t time_ns, struct mpi_request *q)
{
	struct mpi_meeting *g = &m->known.mpi->meeting[q->meeting];
	enum mpi_needs needs = meeting_needs_of(q->op);
	bool is_root = q->peer == (int64_t)q->rank;
	uint32_t nr_awaited = needs == MPI_NEEDS_all    ? g->size
			      : needs == MPI_NEEDS_root ? g->size - 1
							: 1;
	uint32_t nr_takers = needs == MPI_NEEDS_root ? 1 : g->size - 1;
	q->is_active = true;
	if (needs == MPI_NEEDS_lower) {
		meeting_come_in_order(m, t, time_ns, q);
		return;
	}
	q->is_last = !meeting_awaits(needs, is_root);
	if (!meeting_is_awaited(needs, is_root) || ++g->arrived < nr_awaited)
		return;
	g->complete = true;
	g->complete_ns = time_ns;
	g->last = q->rank;
	q->is_last = true;
	if (nr_takers)
		model_mpi_put(m, t, time_ns, g->queue, g->number, nr_takers);
}

/* Once everybody has left its place may be another's. */
void model_mpi_leave_meeting(struct model *m, struct mpi_thread *k, const struct mpi_request *q)
{
	struct model_mpi *x = m->known.mpi;
	struct mpi_meeting *g = &x->meeting[q->meeting];
	struct mpi_needed last;
	bool has_met = model_mpi_has_met(m, q);
	if (k)
		k->lacks |= !has_met;
	if (has_met && meeting_last_of(g, q, &last))
		model_mpi_need(m, k, last);
	if (++g->left < g->size)
		return;
	base_free(g->come);
	g->come = NULL;
	base_map_remove(&x->meetings, q->object, g->number);
	g->size = x->free_meeting;
	x->free_meeting = q->meeting + 1;
}

void model_rule_mpi_collective(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_mpi_collective *c = &r->u.mpi_collective;
	struct mpi_member *member = model_mpi_member_of(m, t, c->object);
	struct mpi_thread *k = model_mpi_thread_of(m, t);
	if (!member || !k)
		return;
	if (model_mpi_is_passive(c->op)) {
		model_mpi_begin(m, t, k, r->time_ns, c->object, c->site, c->op);
		model_mpi_passive_begins(m, t, k, r->time_ns, member->rank, c->root);
		return;
	}
	struct mpi_request asked = {.kind = MPI_REQUEST_meeting,
		.object = c->object,
		.site = c->site,
		.op = (uint32_t)c->op,
		.rank = member->rank,
		.peer = c->root,
		.n = c->n};
	asked.meeting = meeting_of(m, c->object, ++member->nr_meetings, member->size);
	struct mpi_request *q = &k->own;
	if (asked.meeting == NONE)
		return;
	if (c->request)
		q = model_mpi_request_new(m, t, c->request, &asked);
	else
		model_mpi_begin(m, t, k, r->time_ns, c->object, c->site, c->op);
	if (!q)
		return;
	*q = asked;
	meeting_come(m, t, r->time_ns, q);
	if (!c->request)
		model_mpi_own_call_begins(m, t, k, r->time_ns);
}

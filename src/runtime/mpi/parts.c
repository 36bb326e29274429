/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.c - calls that are several messages: a neighbourhood collective is one from each neighbour
 * and one to each; MPI_Win_post tells each rank of its group that it may come, which
 * MPI_Win_start (or, where that does not wait, MPI_Win_complete) waits for, and MPI_Win_complete
 * tells each that it is through, which MPI_Win_wait waits for (MPI 3.1, 7.6 and 11.5.2).
 *
 * Each message is a part of one request (TRACE_REQUEST_PART): of the call's, or of the window's.
 */
#include "runtime/mpi/mpi_call.h"

#ifndef PRELOAD_STATIC

enum parts_of_window { PARTS_posted = 1, PARTS_access, PARTS_exposure, PARTS_through };
enum { PARTS_NEIGHBOR_TAG = TRACE_MPI_TAG_OWN, PARTS_POST_TAG, PARTS_THROUGH_TAG };

/* Of a window, that has no handle. */
static uint64_t parts_request(const struct mpi_call *c, enum parts_of_window which)
{
	return mpi_handle(c->a[c->row->comm]) | (uint64_t)which << TRACE_REQUEST_KIND_SHIFT;
}

/* The number of the part, or of the one before where there is nobody. */
static int parts_tell(const struct mpi_call *c, bool sends, unsigned op, uint64_t request, int part,
	int peer, int tag)
{
	if (mpi_is_nobody(peer))
		return part;
	const uint64_t name = TRACE_REQUEST_PART(request, (unsigned)part + 1),
		       word[] = {c->comm->object, c->site, (uint64_t)(int64_t)peer,
			       (uint64_t)(int64_t)tag, mpi_bytes_of(c), name, op};
	preload_record_at(c->begin_tsc, sends ? PRELOAD_mpi_send : PRELOAD_mpi_receive, word,
		PRELOAD_COUNT(word));
	return part + 1;
}

/* ---- neighbours ------------------------------------------------------------------------------ */

struct parts_neighbors {
	int nr_from, nr_to;
	int from[REQUESTS_MAX], to[REQUESTS_MAX];
};

static void parts_of_grid(long comm, struct parts_neighbors *ret)
{
	const struct mpi_library *l = &mpi_library;
	int nr = 0;
	l->ask_Cartdim_get(comm, (long)&nr, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	for (int i = 0; i < nr && 2 * i + 1 < REQUESTS_MAX; i++) {
		int low = (int)l->abi.proc_null, high = low;
		l->ask_Cart_shift(comm, i, 1, (long)&low, (long)&high, 0, 0, 0, 0, 0, 0, 0);
		ret->from[2 * i] = ret->to[2 * i] = low;
		ret->from[2 * i + 1] = ret->to[2 * i + 1] = high;
		ret->nr_from = ret->nr_to = 2 * i + 2;
	}
}

static void parts_of_graph(long comm, int rank, struct parts_neighbors *ret)
{
	const struct mpi_library *l = &mpi_library;
	int nr = 0;
	l->ask_Graph_neighbors_count(comm, rank, (long)&nr, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	if (nr <= 0 || nr > REQUESTS_MAX)
		return;
	l->ask_Graph_neighbors(comm, rank, nr, (long)ret->from, 0, 0, 0, 0, 0, 0, 0, 0);
	for (int i = 0; i < nr; i++)
		ret->to[i] = ret->from[i];
	ret->nr_from = ret->nr_to = nr;
}

static void parts_of_edges(long comm, struct parts_neighbors *ret)
{
	const struct mpi_library *l = &mpi_library;
	int in = 0, out = 0, weighted, weight[2][REQUESTS_MAX];
	l->ask_Dist_graph_neighbors_count(
		comm, (long)&in, (long)&out, (long)&weighted, 0, 0, 0, 0, 0, 0, 0, 0);
	if (in < 0 || in > REQUESTS_MAX || out < 0 || out > REQUESTS_MAX)
		return;
	l->ask_Dist_graph_neighbors(comm, in, (long)ret->from, (long)weight[0], out, (long)ret->to,
		(long)weight[1], 0, 0, 0, 0, 0);
	ret->nr_from = in;
	ret->nr_to = out;
}

static void parts_ask_neighbors(const struct mpi_call *c, struct parts_neighbors *ret)
{
	const struct mpi_abi *abi = &mpi_library.abi;
	long comm = c->a[c->row->comm];
	int kind = 0;
	ret->nr_from = ret->nr_to = 0;
	mpi_library.ask_Topo_test(comm, (long)&kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	if (kind == abi->cart)
		parts_of_grid(comm, ret);
	else if (kind == abi->graph)
		parts_of_graph(comm, (int)c->comm->rank, ret);
	else if (kind == abi->dist_graph)
		parts_of_edges(comm, ret);
}

static void parts_tell_neighbors(const struct mpi_call *c, uint64_t request)
{
	struct parts_neighbors near;
	int part = 0;
	parts_ask_neighbors(c, &near);
	for (int i = 0; i < near.nr_to; i++)
		part = parts_tell(c, true, c->op, request, part, near.to[i], PARTS_NEIGHBOR_TAG);
	for (int i = 0; i < near.nr_from; i++)
		part = parts_tell(c, false, c->op, request, part, near.from[i], PARTS_NEIGHBOR_TAG);
}

int mpi_do_neighbor(struct mpi_call *c)
{
	uint64_t request = mpi_own_request(3);
	if (c->row->request == NO) {
		parts_tell_neighbors(c, request);
		PRELOAD_RECORD_AT(c->begin_tsc, mpi_wait, c->op, request, 0, c->site);
		int result = mpi_pass(c);
		mpi_done(preload_now(), request, NULL);
		mpi_return(c);
		return result;
	}
	int result = mpi_pass(c);
	if (!result)
		parts_tell_neighbors(c, mpi_handle_at(c->a[c->row->request], 0));
	return result;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* The ranks of that group in the window; their number. */
static int parts_of_group(const struct mpi_call *c, int peer[REQUESTS_MAX])
{
	const struct mpi_library *l = &mpi_library;
	long group = c->a[0], window = c->a[c->row->comm];
	uint64_t all = 0;
	int nr = 0, index[REQUESTS_MAX];
	l->ask_Group_size(group, (long)&nr, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	nr = nr < 0 ? 0 : nr < REQUESTS_MAX ? nr : REQUESTS_MAX;
	for (int i = 0; i < nr; i++)
		index[i] = i;
	if (!nr || l->ask_Win_get_group(window, (long)&all, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
		return 0;
	l->ask_Group_translate_ranks(
		group, nr, (long)index, (long)all, (long)peer, 0, 0, 0, 0, 0, 0, 0);
	l->ask_Group_free((long)&all, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	return nr;
}

int mpi_do_expose(struct mpi_call *c)
{
	int peer[REQUESTS_MAX], nr = parts_of_group(c, peer);
	uint64_t posted = parts_request(c, PARTS_posted),
		 exposure = parts_request(c, PARTS_exposure);
	for (int i = 0; i < nr; i++) {
		parts_tell(c, true, c->op, posted, i, peer[i], PARTS_POST_TAG);
		parts_tell(c, false, TRACE_MPI_Win_wait, exposure, i, peer[i], PARTS_THROUGH_TAG);
	}
	return mpi_pass(c);
}

int mpi_do_access(struct mpi_call *c)
{
	int peer[REQUESTS_MAX], nr = parts_of_group(c, peer);
	uint64_t access = parts_request(c, PARTS_access), through = parts_request(c, PARTS_through);
	for (int i = 0; i < nr; i++) {
		parts_tell(c, false, c->op, access, i, peer[i], PARTS_POST_TAG);
		parts_tell(c, true, TRACE_MPI_Win_complete, through, i, peer[i], PARTS_THROUGH_TAG);
	}
	PRELOAD_RECORD_AT(c->begin_tsc, mpi_wait, c->op, access, 0, c->site);
	int result = mpi_pass(c);
	mpi_return(c);
	return result;
}

int mpi_do_epoch(struct mpi_call *c)
{
	enum { FLAG = 1 };
	bool tests = c->op == TRACE_MPI_Win_test, ends = c->op == TRACE_MPI_Win_complete;
	uint64_t request = parts_request(c, ends ? PARTS_access : PARTS_exposure);
	if (ends)
		PRELOAD_RECORD_AT(
			c->begin_tsc, mpi_start, parts_request(c, PARTS_through), c->site);
	if (!tests)
		PRELOAD_RECORD_AT(c->begin_tsc, mpi_wait, c->op, request, 0, c->site);
	int result = mpi_pass(c);
	if (tests && (result || !*(const int *)c->a[FLAG])) {
		mpi_poll_failed(c, request);
		return result;
	}
	if (tests)
		mpi_poll_found(c);
	mpi_done(preload_now(), request, NULL);
	mpi_return(c);
	return result;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi.c - MPI's functions, as the program calls them: what it gives and asks for, and when
 * a call that may have waited returns.
 *
 * All go one way: a function's row (mpi.def) says where its arguments are, and each class of
 * functions has one routine. All arguments are words; those that a function does not have are
 * passed on, too, and it does not look at them.
 *
 * While MPI is at work nothing else is recorded of the thread: it polls sockets and takes locks of
 * its own, thousands of times a wait.
 */
#include "runtime/mpi/mpi_call.h"

#ifndef PRELOAD_STATIC

#include <string.h>

enum {
	LASTED_TICKS = 50000, /* about 20 us: then a call path is worth its price */
};

struct mpi_library mpi_library;
/* A receive from any sender was asked for without waiting, or a request was cancelled: statuses say
 * who it was, and whether. */
static bool mpi_needs_statuses, mpi_has_cancelled;

#define MPI(name, class_, comm, peer, count, type, tag, request)                                   \
	[TRACE_MPI_##name] = {                                                                     \
		"PMPI_" #name, MPI_CLASS_##class_, comm, peer, count, type, tag, request},
const struct mpi_row mpi_rows[TRACE_MPI_NR] = {
#include "runtime/mpi/mpi.def"
};

/* ---- what calls have in common --------------------------------------------------------------- */

/* The library's own doing is not recorded. (A fork's child that comes back here has a place of its
 * own, or none.) */
int mpi_pass(const struct mpi_call *c)
{
	struct preload_thread *self = preload_own();
	const long *a = c->a;
	preload_self = &preload_ended;
	PRELOAD_BARRIER();
	int result =
		c->real(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
	PRELOAD_BARRIER();
	if (PRELOAD_LIKELY(preload_self == &preload_ended))
		preload_self = self;
	return result;
}

void mpi_return(const struct mpi_call *c)
{
	uint64_t tsc = preload_now();
	struct preload_stack stack;
	stack.nr_frames = 0;
	if (tsc - c->begin_tsc > LASTED_TICKS)
		preload_stack_take(&stack, c->site);
	preload_record_stack_at(
		tsc, PRELOAD_mpi_return, (const uint64_t[]){c->op, c->site, 0}, 3, 3, &stack);
}

static uint64_t mpi_bytes(long count, long type)
{
	int size = 0;
	if (mpi_handle(type) == mpi_library.abi.datatype_null || /* an error, but not ours */
		mpi_library.ask_Type_size(type, (long)&size, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) ||
		size < 0 || (int)count < 0)
		return 0;
	return (uint64_t)(unsigned)size * (uint64_t)(unsigned)(int)count;
}

uint64_t mpi_bytes_of(const struct mpi_call *c)
{
	const struct mpi_row *row = c->row;
	return row->type == NO ? 0 : mpi_bytes(c->a[row->count], c->a[row->type]);
}

int mpi_status_number(const char *status, unsigned at)
{
	int n;
	memcpy(&n, status + at, sizeof n);
	return n;
}

static uint64_t mpi_status_bytes(const char *status)
{
	const struct mpi_abi *abi = &mpi_library.abi;
	uint64_t n = 0;
	memcpy(&n, status + abi->bytes_at, abi->status_count_is_wide ? 8 : 4);
	return n;
}

static bool mpi_was_cancelled(const char *status)
{
	int is = 0;
	if (PRELOAD_LIKELY(!__atomic_load_n(&mpi_has_cancelled, __ATOMIC_RELAXED)))
		return false;
	mpi_library.ask_Test_cancelled((long)status, (long)&is, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	return is;
}

void mpi_done(uint64_t tsc, uint64_t request, const char *status)
{
	const struct mpi_abi *abi = &mpi_library.abi;
	if (!status)
		PRELOAD_RECORD_AT(tsc, mpi_done, request, (uint64_t)-1, (uint64_t)-1, 0);
	else if (mpi_was_cancelled(status))
		PRELOAD_RECORD_AT(
			tsc, mpi_done, request, (uint64_t)TRACE_MPI_CANCELLED, (uint64_t)-1, 0);
	else
		PRELOAD_RECORD_AT(tsc, mpi_done, request,
			(uint64_t)(int64_t)mpi_status_number(status, abi->source_at),
			(uint64_t)(int64_t)mpi_status_number(status, abi->tag_at),
			mpi_status_bytes(status));
}

/* ---- the environment ------------------------------------------------------------------------- */

static int mpi_do_environment(struct mpi_call *c)
{
	PRELOAD_RECORD_AT(c->begin_tsc, mpi_wait, c->op, 0, 0, c->site);
	bool ends = c->op == TRACE_MPI_Finalize, begins = c->op <= TRACE_MPI_Init_thread;
	struct mpi_comm *world = ends ? mpi_comm_of(mpi_library.abi.world) : NULL;
	if (world)
		PRELOAD_RECORD(mpi_collective, world->object, c->site, c->op, (uint64_t)-1, 0, 0);
	int result = mpi_pass(c);
	mpi_return(c);
	if (!result && begins)
		mpi_comm_of(mpi_library.abi.world);
	return result;
}

/* ---- messages -------------------------------------------------------------------------------- */

static int mpi_do_send(struct mpi_call *c)
{
	const struct mpi_row *row = c->row;
	long peer = c->a[row->peer], tag = c->a[row->tag];
	if (mpi_is_nobody(peer))
		return mpi_pass(c);
	uint64_t n = mpi_bytes_of(c);
	if (row->request == NO) {
		MPI_RECORD_MESSAGE(mpi_send, c->begin_tsc, c, peer, tag, n, 0);
		int result = mpi_pass(c);
		mpi_return(c);
		return result;
	}
	int result = mpi_pass(c);
	if (!result)
		MPI_RECORD_MESSAGE(mpi_send, c->begin_tsc, c, peer, tag, n,
			mpi_handle_at(c->a[row->request], 0));
	return result;
}

static int mpi_do_receive(struct mpi_call *c)
{
	enum { STATUS = 6 };
	const struct mpi_row *row = c->row;
	long peer = c->a[row->peer], tag = c->a[row->tag];
	char status[STATUS_BYTES_MAX];
	if (mpi_is_nobody(peer))
		return mpi_pass(c);
	uint64_t n = mpi_bytes_of(c);
	bool is_wild = mpi_peer(peer) < 0 || mpi_tag(tag) < 0;
	if (row->request != NO) {
		int result = mpi_pass(c);
		if (is_wild)
			__atomic_store_n(&mpi_needs_statuses, true, __ATOMIC_RELAXED);
		if (!result)
			MPI_RECORD_MESSAGE(mpi_receive, c->begin_tsc, c, peer, tag, n,
				mpi_handle_at(c->a[row->request], 0));
		return result;
	}
	if (is_wild && c->a[STATUS] == mpi_library.abi.status_ignore)
		c->a[STATUS] = (long)status;
	MPI_RECORD_MESSAGE(mpi_receive, c->begin_tsc, c, peer, tag, n, 0);
	int result = mpi_pass(c);
	if (is_wild)
		mpi_done(preload_now(), 0, result ? NULL : (const char *)c->a[STATUS]);
	mpi_return(c);
	return result;
}

/* A send and a receive, neither of which waits for the other. */
static int mpi_do_exchange(struct mpi_call *c)
{
	const uint64_t sent = mpi_own_request(1), received = mpi_own_request(2);
	bool replaces = c->op == TRACE_MPI_Sendrecv_replace;
	const struct mpi_row *row = c->row;
	const long *a = c->a;
	long to = a[row->peer], from = a[replaces ? 5 : 8], tag = a[replaces ? 6 : 9];
	unsigned at = replaces ? 8 : 11;
	char status[STATUS_BYTES_MAX];
	bool sends = !mpi_is_nobody(to), receives = !mpi_is_nobody(from);
	if (c->a[at] == mpi_library.abi.status_ignore)
		c->a[at] = (long)status;
	uint64_t n = mpi_bytes_of(c), asked = replaces ? n : mpi_bytes(a[6], a[7]);
	if (sends)
		MPI_RECORD_MESSAGE(mpi_send, c->begin_tsc, c, to, a[row->tag], n, sent);
	if (receives)
		MPI_RECORD_MESSAGE(mpi_receive, c->begin_tsc, c, from, tag, asked, received);
	if (receives)
		PRELOAD_RECORD_AT(c->begin_tsc, mpi_wait, c->op, received, sends, c->site);
	if (sends)
		PRELOAD_RECORD_AT(c->begin_tsc, mpi_wait, c->op, sent, 0, c->site);
	int result = mpi_pass(c);
	uint64_t tsc = preload_now();
	if (receives)
		mpi_done(tsc, received, result ? NULL : (const char *)c->a[at]);
	if (sends)
		mpi_done(tsc, sent, NULL);
	if (sends || receives)
		mpi_return(c);
	return result;
}

/* ---- requests -------------------------------------------------------------------------------- */

static long mpi_nr_requests(const struct mpi_call *c)
{
	int nr = c->row->count == NO ? 1 : (int)c->a[c->row->count];
	return nr < 0 ? 0 : nr < REQUESTS_MAX ? nr : REQUESTS_MAX;
}

static int mpi_do_start(struct mpi_call *c)
{
	long nr = mpi_nr_requests(c);
	for (long i = 0; i < nr; i++)
		PRELOAD_RECORD(mpi_start, mpi_handle_at(c->a[c->row->request], i), c->site);
	return mpi_pass(c);
}

/* Where a function of this family has what, and what it says when it is back. */
struct mpi_wait_row {
	bool tests;                 /* does not wait */
	int8_t flag, index, status; /* arguments; NO */
	bool all;                   /* of them, when it has waited or the flag is set */
};
static const struct mpi_wait_row mpi_waits[TRACE_MPI_NR] = {
	[TRACE_MPI_Wait] = {false, NO, NO, 1, true},
	[TRACE_MPI_Waitall] = {false, NO, NO, 2, true},
	[TRACE_MPI_Waitany] = {false, NO, 2, 3, false},
	[TRACE_MPI_Waitsome] = {false, 2, 3, 4, false},
	[TRACE_MPI_Test] = {true, 1, NO, 2, true},
	[TRACE_MPI_Testall] = {true, 2, NO, 3, true},
	[TRACE_MPI_Testany] = {true, 3, 2, 4, false},
	[TRACE_MPI_Testsome] = {true, 2, 3, 4, false},
	[TRACE_MPI_Request_get_status] = {true, 1, NO, 2, true},
};

/* Those that the call has completed, by their indices; their number. */
static long mpi_completed(
	const struct mpi_call *c, const struct mpi_wait_row *w, long nr, int index[REQUESTS_MAX])
{
	bool some = c->op == TRACE_MPI_Waitsome || c->op == TRACE_MPI_Testsome;
	int flag = w->flag == NO ? 1 : *(const int *)c->a[w->flag];
	long n = 0;
	if (!flag || (some && flag < 0))
		return 0;
	if (w->all)
		for (n = 0; n < nr; n++)
			index[n] = (int)n;
	else if (some)
		for (n = 0; n < flag && n < nr; n++)
			index[n] = ((const int *)c->a[w->index])[n];
	else
		index[n++] = *(const int *)c->a[w->index];
	return n;
}

static void mpi_tell_waits(const struct mpi_call *c, const uint64_t *handle, long nr)
{
	uint64_t last = 0;
	for (long i = 0; i < nr; i++) {
		if (handle[i] == mpi_library.abi.request_null)
			continue;
		if (last)
			PRELOAD_RECORD_AT(c->begin_tsc, mpi_wait, c->op, last, 1, c->site);
		last = handle[i];
	}
	PRELOAD_RECORD_AT(c->begin_tsc, mpi_wait, c->op, last, 0, c->site);
}

static void mpi_take_handles(const struct mpi_call *c, long nr, uint64_t handle[REQUESTS_MAX])
{
	long at = c->a[c->row->request];
	for (long i = 0; i < nr; i++)
		handle[i] =
			mpi_handle_at(c->op == TRACE_MPI_Request_get_status ? (long)&at : at, i);
}

/* That is one; 0: none is. */
static uint64_t mpi_first_of(const uint64_t *handle, long nr)
{
	for (long i = 0; i < nr; i++)
		if (handle[i] != mpi_library.abi.request_null)
			return handle[i];
	return 0;
}

static int mpi_do_wait(struct mpi_call *c)
{
	const struct mpi_abi *abi = &mpi_library.abi;
	const struct mpi_wait_row *w = &mpi_waits[c->op];
	uint64_t handle[REQUESTS_MAX];
	int index[REQUESTS_MAX];
	char statuses[STATUSES_MAX * STATUS_BYTES_MAX];
	long nr = mpi_nr_requests(c);
	mpi_take_handles(c, nr, handle);
	if (!w->tests)
		mpi_tell_waits(c, handle, nr);
	if (c->a[w->status] == abi->status_ignore && nr <= STATUSES_MAX &&
		__atomic_load_n(&mpi_needs_statuses, __ATOMIC_RELAXED))
		c->a[w->status] = (long)statuses;
	int result = mpi_pass(c);
	long nr_done = result ? 0 : mpi_completed(c, w, nr, index);
	if (w->tests && !*(const int *)c->a[w->flag]) {
		mpi_poll_failed(c, mpi_first_of(handle, nr));
		return result;
	}
	if (w->tests)
		mpi_poll_found(c);
	uint64_t tsc = preload_now();
	bool knows = c->a[w->status] != abi->status_ignore;
	for (long i = 0; i < nr_done; i++) {
		if (index[i] < 0 || index[i] >= nr || handle[index[i]] == abi->request_null)
			continue;
		const char *status = (const char *)c->a[w->status];
		mpi_done(tsc, handle[index[i]], knows ? status + i * abi->status_bytes : NULL);
	}
	if (!w->tests || nr_done)
		mpi_return(c);
	return result;
}

/* What was asked for may never come; the request is complete all the same. */
static int mpi_do_cancel(struct mpi_call *c)
{
	__atomic_store_n(&mpi_needs_statuses, true, __ATOMIC_RELAXED);
	__atomic_store_n(&mpi_has_cancelled, true, __ATOMIC_RELAXED);
	return mpi_pass(c);
}

/* ---- all together ---------------------------------------------------------------------------- */

static int mpi_do_collective(struct mpi_call *c)
{
	const struct mpi_row *row = c->row;
	int64_t root = row->peer == NO ? -1 : (int)c->a[row->peer];
	uint64_t n = mpi_bytes_of(c);
	if (row->request == NO) {
		PRELOAD_RECORD_AT(c->begin_tsc, mpi_collective, c->comm->object, c->site, c->op,
			(uint64_t)root, n, 0);
		int result = mpi_pass(c);
		mpi_return(c);
		return result;
	}
	int result = mpi_pass(c);
	if (!result)
		PRELOAD_RECORD_AT(c->begin_tsc, mpi_collective, c->comm->object, c->site, c->op,
			(uint64_t)root, n, mpi_handle_at(c->a[row->request], 0));
	return result;
}

static int mpi_do_made(struct mpi_call *c, void made(struct mpi_comm *parent, uint64_t handle))
{
	PRELOAD_RECORD_AT(
		c->begin_tsc, mpi_collective, c->comm->object, c->site, c->op, (uint64_t)-1, 0, 0);
	int result = mpi_pass(c);
	mpi_return(c);
	if (!result)
		made(c->comm, mpi_handle_at(c->a[c->row->request], 0));
	return result;
}

static int mpi_do_make(struct mpi_call *c)
{
	return mpi_do_made(c, mpi_comm_made);
}
static int mpi_do_window(struct mpi_call *c)
{
	return mpi_do_made(c, mpi_window_made);
}
static int mpi_do_file(struct mpi_call *c)
{
	return mpi_do_made(c, mpi_file_made);
}

/* (Of windows and files all ranks meet once more; communicators are only marked.) */
static int mpi_do_unmake(struct mpi_call *c)
{
	uint64_t handle = mpi_handle_at(c->a[0], 0);
	const struct mpi_comm *window = c->op == TRACE_MPI_Comm_free ? NULL : mpi_comm_of(handle);
	if (window)
		PRELOAD_RECORD_AT(c->begin_tsc, mpi_collective, window->object, c->site, c->op,
			(uint64_t)-1, 0, 0);
	int result = mpi_pass(c);
	if (window)
		mpi_return(c);
	if (!result)
		mpi_comm_freed(handle);
	return result;
}

/* ---- the way in ------------------------------------------------------------------------------ */

/* The caller of the Fortran library, where that library called us. */
static PRELOAD_COLD uint64_t mpi_site_above(uintptr_t caller)
{
	struct preload_stack stack;
	preload_stack_walk(&stack, caller, 2);
	return stack.nr_frames == 2 ? stack.frame[1] : caller;
}

static int mpi_enter(unsigned op, bool profiled, long *a, uintptr_t caller)
{
	static int (*const act[MPI_CLASS_NR])(struct mpi_call *) = {
		[MPI_CLASS_environment] = mpi_do_environment,
		[MPI_CLASS_send] = mpi_do_send,
		[MPI_CLASS_receive] = mpi_do_receive,
		[MPI_CLASS_exchange] = mpi_do_exchange,
		[MPI_CLASS_start] = mpi_do_start,
		[MPI_CLASS_wait] = mpi_do_wait,
		[MPI_CLASS_cancel] = mpi_do_cancel,
		[MPI_CLASS_probe] = mpi_do_probe,
		[MPI_CLASS_matched] = mpi_do_matched,
		[MPI_CLASS_collective] = mpi_do_collective,
		[MPI_CLASS_neighbor] = mpi_do_neighbor,
		[MPI_CLASS_make] = mpi_do_make,
		[MPI_CLASS_window] = mpi_do_window,
		[MPI_CLASS_expose] = mpi_do_expose,
		[MPI_CLASS_access] = mpi_do_access,
		[MPI_CLASS_epoch] = mpi_do_epoch,
		[MPI_CLASS_file] = mpi_do_file,
		[MPI_CLASS_unmake] = mpi_do_unmake,
	};
	const struct mpi_row *row = &mpi_rows[op];
	mpi_function *real = (profiled ? mpi_library.profiled : mpi_library.plain)[op];
	struct mpi_call c = {.row = row, .real = real, .a = a, .op = op};
	if (PRELOAD_RARE(preload_self == &preload_ended) || !preload_active())
		return real(
			a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
	preload_thread_begin();
	if (row->comm != NO) {
		c.comm = mpi_comm_of(mpi_handle(a[row->comm]));
		if (!c.comm)
			return mpi_pass(&c);
	}
	c.site = mpi_is_fortran(caller) ? mpi_site_above(caller) : preload_site(caller);
	c.begin_tsc = preload_now();
	return act[row->class_](&c);
}

/* (Words that were not passed are read from the caller's frame, and looked at by nobody.) */
#define MPI_WRAPPER(function, op, profiled)                                                        \
	static int function(long a0, long a1, long a2, long a3, long a4, long a5, long a6,         \
		long a7, long a8, long a9, long a10, long a11)                                     \
	{                                                                                          \
		long a[MPI_ARGUMENTS] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11};        \
		return mpi_enter(op, profiled, a, PRELOAD_CALLER);                                 \
	}
#define MPI(name, ...)                                                                             \
	MPI_WRAPPER(mpi_wrap_##name, TRACE_MPI_##name, false)                                      \
	MPI_WRAPPER(mpi_wrap_profiled_##name, TRACE_MPI_##name, true)
#include "runtime/mpi/mpi.def"

#define MPI(name, ...) [TRACE_MPI_##name] = {mpi_wrap_##name, mpi_wrap_profiled_##name},
mpi_function *const mpi_wrapper[TRACE_MPI_NR][2] = {
#include "runtime/mpi/mpi.def"
};

#endif

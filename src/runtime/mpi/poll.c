/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poll.c - calls that ask whether something is there (MPI_Test and its kin, MPI_Iprobe), and those
 * that look at a message before they receive it.
 *
 * A loop of calls that find nothing is a wait. Of it two records are made however long it lasts: when
 * the first of the calls began, and when the last one was over. The second is told by whatever
 * record the thread makes next (preload_poll_open()), so that the calls between cost two readings of
 * the clock each. A program that works between two of them does not wait: then what is between is
 * longer than a loop's branch, and than the call itself. An interrupt is longer, too: one is taken for
 * that where the calls before it followed each other at once for longer than it lasts.
 */
#include "runtime/mpi/mpi_call.h"

#ifndef PRELOAD_STATIC

enum {
	POLL_GAP_TICKS = 2500, /* about 1 us: a loop's own instructions, also in Python */
	POLL_INTERRUPT_TICKS = 100 * POLL_GAP_TICKS,
	MATCHED_MAX = 64, /* messages of a process that were matched and not received yet */
};

static bool poll_is_next(struct preload_thread *self, uint64_t begin_tsc, uint64_t end_tsc)
{
	uint64_t between = begin_tsc - self->poll.last_tsc, inside = end_tsc - begin_tsc;
	if (!self->poll.last_tsc || (!self->poll.is_open && self->poll.cursor != self->cursor))
		return false;
	if (between <= POLL_GAP_TICKS || between <= inside)
		return true;
	bool is_interrupt = between <= POLL_INTERRUPT_TICKS &&
			    between <= self->poll.last_tsc - self->poll.steady_tsc;
	self->poll.steady_tsc = begin_tsc;
	return is_interrupt;
}

void mpi_poll_failed(const struct mpi_call *c, uint64_t request)
{
	struct preload_thread *self = preload_own();
	uint64_t end_tsc = preload_now();
	if (!self->block)
		return;
	if (!poll_is_next(self, c->begin_tsc, end_tsc)) {
		if (self->poll.is_open)
			preload_poll_say_end(self);
		self->poll.first_tsc = self->poll.steady_tsc = c->begin_tsc;
		self->poll.cursor = self->cursor;
	} else if (!self->poll.is_open) {
		PRELOAD_RECORD_AT(self->poll.first_tsc, mpi_wait, c->op, request, 0, c->site);
		preload_poll_open(self);
	}
	self->poll.op = (uint8_t)c->op;
	self->poll.site = c->site;
	self->poll.last_tsc = end_tsc;
}

void mpi_poll_found(const struct mpi_call *c)
{
	struct preload_thread *self = preload_own();
	if (self->poll.is_open && poll_is_next(self, c->begin_tsc, preload_now()))
		preload_poll_close(self);
	else if (!self->poll.is_open)
		self->poll.last_tsc = 0;
}

/* ---- messages that were looked at ------------------------------------------------------------ */

/* The communicators of messages: MPI_Mrecv is told the message and nothing else. */
static struct {
	uint64_t message; /* 0: free; 1: being written */
	struct mpi_comm *comm;
	int source, tag;
} matched[MATCHED_MAX];

static void matched_add(uint64_t message, struct mpi_comm *comm, int source, int tag)
{
	for (size_t i = 0; i < MATCHED_MAX; i++) {
		uint64_t is = 0;
		if (!__atomic_compare_exchange_n(
			    &matched[i].message, &is, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		matched[i].comm = comm;
		matched[i].source = source;
		matched[i].tag = tag;
		__atomic_store_n(&matched[i].message, message, __ATOMIC_RELEASE);
		return;
	}
}

static bool matched_take(uint64_t message, struct mpi_call *c, int *ret_source, int *ret_tag)
{
	for (size_t i = 0; i < MATCHED_MAX; i++) {
		if (__atomic_load_n(&matched[i].message, __ATOMIC_ACQUIRE) != message)
			continue;
		c->comm = matched[i].comm;
		*ret_source = matched[i].source;
		*ret_tag = matched[i].tag;
		__atomic_store_n(&matched[i].message, 0, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

struct probe_row { /* arguments; NO */
	int8_t flag, message, status;
};
static const struct probe_row probe_rows[TRACE_MPI_NR] = {
	[TRACE_MPI_Probe] = {NO, NO, 3},
	[TRACE_MPI_Iprobe] = {3, NO, 4},
	[TRACE_MPI_Mprobe] = {NO, 3, 4},
	[TRACE_MPI_Improbe] = {3, 4, 5},
};

int mpi_do_probe(struct mpi_call *c)
{
	const struct mpi_abi *abi = &mpi_library.abi;
	const struct probe_row *w = &probe_rows[c->op];
	long peer = c->a[c->row->peer], tag = c->a[c->row->tag];
	bool tests = w->flag != NO;
	char own[STATUS_BYTES_MAX];
	if (mpi_is_nobody(peer))
		return mpi_pass(c);
	if (c->a[w->status] == abi->status_ignore)
		c->a[w->status] = (long)own;
	if (!tests)
		MPI_RECORD_MESSAGE(mpi_receive, c->begin_tsc, c, peer, tag, 0, 0);
	int result = mpi_pass(c);
	const char *status = result ? NULL : (const char *)c->a[w->status];
	if (tests && (result || !*(const int *)c->a[w->flag])) {
		mpi_poll_failed(c, 0);
		return result;
	}
	if (tests) {
		mpi_poll_found(c);
		MPI_RECORD_MESSAGE(mpi_receive, c->begin_tsc, c, peer, tag, 0, 0);
	}
	mpi_done(preload_now(), 0, status);
	mpi_return(c);
	if (status && w->message != NO)
		matched_add(mpi_handle_at(c->a[w->message], 0), c->comm,
			mpi_status_number(status, abi->source_at),
			mpi_status_number(status, abi->tag_at));
	return result;
}

int mpi_do_matched(struct mpi_call *c)
{
	enum { MESSAGE = 3 };
	int source, tag;
	uint64_t message = mpi_handle_at(c->a[MESSAGE], 0);
	if (!matched_take(message, c, &source, &tag))
		return mpi_pass(c);
	uint64_t n = mpi_bytes_of(c);
	if (c->row->request == NO) {
		MPI_RECORD_MESSAGE(mpi_receive, c->begin_tsc, c, source, tag, n, 0);
		int result = mpi_pass(c);
		mpi_return(c);
		return result;
	}
	int result = mpi_pass(c);
	if (!result)
		MPI_RECORD_MESSAGE(mpi_receive, c->begin_tsc, c, source, tag, n,
			mpi_handle_at(c->a[c->row->request], 0));
	return result;
}

#endif

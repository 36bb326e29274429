/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_call.h - what the classes of wrappers share (mpi.c, poll.c, parts.c). */
#ifndef LONGPOLE_RUNTIME_MPI_MPI_CALL_H
#define LONGPOLE_RUNTIME_MPI_MPI_CALL_H

#include "runtime/mpi/mpi.h"

enum {
	REQUESTS_MAX = 256, /* of one call; those beyond are not told */
	STATUSES_MAX = 64,  /* of one call, where the program does not want to know */
	STATUS_BYTES_MAX = 32,
};

struct mpi_call {
	const struct mpi_row *row;
	mpi_function *real;
	long *a;
	uint64_t site, begin_tsc;
	unsigned op;
	struct mpi_comm *comm;
};

/* The real function; what it does itself is not recorded. */
int mpi_pass(const struct mpi_call *c);
/* The call's end, with its call path where it lasted. */
void mpi_return(const struct mpi_call *c);
/* Bytes of count and datatype as the row has them; 0: it has none. */
uint64_t mpi_bytes_of(const struct mpi_call *c);
/* Is complete; status NULL: not known. */
void mpi_done(uint64_t tsc, uint64_t request, const char *status);
int mpi_status_number(const char *status, unsigned at);

PRELOAD_INLINE int64_t mpi_peer(long peer)
{
	return (int)peer == mpi_library.abi.any_source ? -1 : (int)peer;
}

PRELOAD_INLINE int64_t mpi_tag(long tag)
{
	return (int)tag == mpi_library.abi.any_tag ? -1 : (int)tag;
}

PRELOAD_INLINE bool mpi_is_nobody(long peer)
{
	return (int)peer == mpi_library.abi.proc_null;
}

#define MPI_RECORD_MESSAGE(kind, tsc, c, peer, tag, n, request)                                    \
	PRELOAD_RECORD_AT(tsc, kind, (c)->comm->object, (c)->site, (uint64_t)mpi_peer(peer),       \
		(uint64_t)mpi_tag(tag), n, request, (c)->op)

/* A request of this thread's, for a call that is more than one and has no handle: no library's
 * handle is so low. `which`: 0 to 3. */
PRELOAD_INLINE uint64_t mpi_own_request(unsigned which)
{
	return preload_own()->number << 2 | which;
}

/* ---- calls that look, and find nothing (poll.c) ---------------------------------------------- */

/* This one has: it was for that request; 0: for none. */
void mpi_poll_failed(const struct mpi_call *c, uint64_t request);
/* This one has found something: what it waited for since the first of them. */
void mpi_poll_found(const struct mpi_call *c);
int mpi_do_probe(struct mpi_call *c);
int mpi_do_matched(struct mpi_call *c);

/* ---- calls that are several messages (parts.c) ----------------------------------------------- */

int mpi_do_neighbor(struct mpi_call *c);
int mpi_do_expose(struct mpi_call *c);
int mpi_do_access(struct mpi_call *c);
int mpi_do_epoch(struct mpi_call *c);

#endif

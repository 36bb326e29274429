/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi.h - an MPI library, as the program that was linked with it calls it.
 *
 * No library's mpi.h is used: what differs between them is a row of struct mpi_abi, and a handle, a
 * pointer or a number is a word of the machine's: all of MPI's arguments are.
 */
#ifndef LONGPOLE_RUNTIME_MPI_MPI_H
#define LONGPOLE_RUNTIME_MPI_MPI_H

#include "preload/preload.h"

enum { MPI_ARGUMENTS = 12, NO = -1 }; /* NO: a function does not have that argument */

/* What differs. Handles are as wide as they are passed; those of Open MPI that are addresses of
 * its symbols are found when it is. */
struct mpi_abi {
	char symbol[24]; /* that only this library has; empty: the last row, any other */
	uint8_t handle_bytes;
	uint8_t status_bytes, source_at, tag_at, bytes_at; /* of a status */
	uint8_t status_count_is_wide;                      /* bytes_at: 8 bytes, else 4 */
	int8_t any_source, any_tag, proc_null;
	uint8_t status_ignore;           /* address */
	uint8_t cart, graph, dist_graph; /* kinds of topologies */
	uint64_t world, comm_null, request_null, datatype_null;
};

typedef int mpi_function(long, long, long, long, long, long, long, long, long, long, long, long);

enum mpi_class {
	MPI_CLASS_environment,
	MPI_CLASS_send,
	MPI_CLASS_receive,
	MPI_CLASS_exchange,
	MPI_CLASS_start,
	MPI_CLASS_wait,
	MPI_CLASS_cancel,
	MPI_CLASS_probe,
	MPI_CLASS_matched,
	MPI_CLASS_collective,
	MPI_CLASS_neighbor,
	MPI_CLASS_make,
	MPI_CLASS_window,
	MPI_CLASS_expose,
	MPI_CLASS_access,
	MPI_CLASS_epoch,
	MPI_CLASS_file,
	MPI_CLASS_unmake,
	MPI_CLASS_NR
};

struct mpi_row {
	char name[PRELOAD_NAME_BYTES]; /* with the P before it, which not everybody looks at */
	uint8_t class_;
	int8_t comm, peer, count, type, tag, request; /* arguments; NO */
};

/* What of MPI we ask ourselves. */
#define MPI_ASKED(X)                                                                               \
	X(Comm_rank)                                                                               \
	X(Comm_size)                                                                               \
	X(Comm_group)                                                                              \
	X(Group_translate_ranks)                                                                   \
	X(Group_free)                                                                              \
	X(Group_size)                                                                              \
	X(Win_get_group)                                                                           \
	X(Topo_test)                                                                               \
	X(Cartdim_get)                                                                             \
	X(Cart_shift)                                                                              \
	X(Graph_neighbors_count)                                                                   \
	X(Graph_neighbors)                                                                         \
	X(Dist_graph_neighbors_count)                                                              \
	X(Dist_graph_neighbors)                                                                    \
	X(Test_cancelled)                                                                          \
	X(Type_size)                                                                               \
	X(Comm_test_inter)

/* The library; one a process. Filled before the first wrapper can be reached. */
struct mpi_library {
	struct mpi_abi abi;
	/* of each function what its callers would have reached: by its name (perhaps a tool's), and
	 * by the profiling one */
	mpi_function *plain[TRACE_MPI_NR], *profiled[TRACE_MPI_NR];
#define X(name) mpi_function *ask_##name;
	MPI_ASKED(X)
#undef X
};
extern struct mpi_library mpi_library;
extern const struct mpi_row mpi_rows[TRACE_MPI_NR];

/* The wrappers: of MPI_NAME and of PMPI_NAME. */
extern mpi_function *const mpi_wrapper[TRACE_MPI_NR][2];

/* Was that address in a library that only passes Fortran's calls on? */
bool mpi_is_fortran(uintptr_t code);

/* ---- communicators (comm.c) ------------------------------------------------------------------ */

struct mpi_comm {
	uint64_t handle; /* last written; 0: free, 1: was used */
	uint64_t object; /* word of the ring: all its ranks have the same */
	uint32_t rank, size;
	uint32_t nr_children; /* that were made of it */
	uint32_t image;       /* that it was told in */
};

/* NULL: not known, or not to be recorded (between two groups). */
struct mpi_comm *mpi_comm_of(uint64_t handle);
/* `handle` is made of `parent` by a call that all ranks of the parent made. */
void mpi_comm_made(struct mpi_comm *parent, uint64_t handle);
/* A window of all ranks of `parent`, which is told as a communicator. */
void mpi_window_made(struct mpi_comm *parent, uint64_t handle);
void mpi_file_made(struct mpi_comm *parent, uint64_t handle);
void mpi_comm_freed(uint64_t handle);

/* A handle as an argument, or in memory. */
PRELOAD_INLINE uint64_t mpi_handle(long argument)
{
	return mpi_library.abi.handle_bytes == 4 ? (uint32_t)argument : (uint64_t)argument;
}

PRELOAD_INLINE uint64_t mpi_handle_at(long address, long index)
{
	const uint32_t *narrow = (const uint32_t *)address;
	const uint64_t *wide = (const uint64_t *)address;
	return mpi_library.abi.handle_bytes == 4 ? narrow[index] : wide[index];
}

#endif

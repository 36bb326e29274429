/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - liblongpole-mpi.so: see module.h. */
#include "cmd/sweep/mpi/module.h"

#include <limits.h>
#include <mpi.h>

static bool module_start(void)
{
	return MPI_Init(NULL, NULL) == MPI_SUCCESS;
}

static int module_rank(void)
{
	int n = -1;
	MPI_Comm_rank(MPI_COMM_WORLD, &n);
	return n;
}

static int size(void)
{
	int n = 0;
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	return n;
}

static bool module_put(int to, const void *p, size_t size_bytes)
{
	return size_bytes <= INT_MAX &&
	       MPI_Send(p, (int)size_bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
}

static bool module_get(int from, void *p, size_t size_bytes, int *ret_from)
{
	MPI_Status status;
	if (size_bytes > INT_MAX ||
		MPI_Recv(p, (int)size_bytes, MPI_BYTE, from < 0 ? MPI_ANY_SOURCE : from, 0,
			MPI_COMM_WORLD, &status) != MPI_SUCCESS)
		return false;
	*ret_from = status.MPI_SOURCE;
	return true;
}

static void module_finish(void)
{
	MPI_Finalize();
}

extern const struct longpole_mpi longpole_mpi;
const struct longpole_mpi longpole_mpi = {
	module_start, module_rank, size, module_put, module_get, module_finish};

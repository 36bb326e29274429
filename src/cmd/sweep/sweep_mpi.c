/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_mpi.c - simulations in the ranks of an MPI job; rank 0 gives out points and takes answers.
 */
#include "cmd/sweep/sweep.h"

#include "base/installed.h"
#include "cmd/sweep/mpi/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

struct sweep_mpi {
	void *library;
	const struct longpole_mpi *call;
	int rank, size;
	bool told; /* the others know that it is over */
};

static const uint32_t over = UINT32_MAX;

enum base_status sweep_mpi_open(struct sweep_mpi **ret, struct base_err *err)
{
	char path[PATH_MAX];
	if (!base_installed_file("src/cmd", "liblongpole-mpi.so", path))
		return base_fail(err, BASE_ERR_ENV,
			"there is no liblongpole-mpi.so: this longpole was built without MPI "
			"(Debian package libopenmpi-dev)");
	struct sweep_mpi *m = base_alloc(sizeof *m);
	if (!m)
		return base_fail(err, BASE_ERR_NOMEM, "MPI");
	/* Open MPI's own plug-ins look for its symbols in the whole process. */
	m->library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (m->library)
		m->call = dlsym(m->library, LONGPOLE_MPI_SYMBOL);
	if (!m->call || !m->call->init()) {
		const char *why = m->call ? "MPI does not start" : dlerror();
		enum base_status s = base_fail(err, BASE_ERR_ENV, "%s: %s", path, why ? why : "?");
		base_free(m); /* a library that may have threads stays loaded */
		return s;
	}
	m->rank = m->call->rank();
	m->size = m->call->size();
	if (m->size >= 2) {
		*ret = m;
		return BASE_OK;
	}
	sweep_mpi_close(m);
	return base_fail(err, BASE_ERR_USAGE,
		"one MPI rank gives out work and the others do it: start two or more, as "
		"mpirun -n 9 longpole sweep --mpi SPEC");
}

static bool sweep_mpi_tell(struct sweep_mpi *m)
{
	bool good = true;
	for (int r = 1; good && !m->rank && !m->told && r < m->size; r++)
		good = m->call->send(r, &over, sizeof over);
	m->told = true;
	return good;
}

void sweep_mpi_close(struct sweep_mpi *m)
{
	if (!m)
		return;
	(void)sweep_mpi_tell(m); /* also when rank 0 had nothing to do, or failed: they wait */
	m->call->finalize();
	base_free(m);
}

bool sweep_mpi_leads(const struct sweep_mpi *m)
{
	return !m->rank;
}

enum base_status sweep_mpi_run(struct sweep_mpi *m, const uint32_t *todo, size_t nr,
	sweep_take *take, void *ctx, struct base_err *err)
{
	size_t given = 0, taken = 0;
	bool good = true, stopped = false;
	for (int r = 1; good && r < m->size && given < nr; r++)
		good = m->call->send(r, &todo[given++], sizeof *todo);
	while (good && taken < given) {
		struct sweep_answer a;
		int from;
		good = m->call->receive(-1, &a, sizeof a, &from);
		if (!good)
			break;
		taken++;
		stopped = stopped || !take(ctx, &a);
		if (!stopped && given < nr)
			good = m->call->send(from, &todo[given++], sizeof *todo);
	}
	good = good && sweep_mpi_tell(m);
	if (!good)
		return base_fail(err, BASE_ERR_ENV, "MPI: sending or receiving failed");
	return stopped ? BASE_END : BASE_OK;
}

void sweep_mpi_serve(struct sweep_mpi *m, const struct sweep_spec *s)
{
	uint32_t point;
	int from;
	struct sweep_answer a;
	while (m->call->receive(0, &point, sizeof point, &from) && point != over) {
		sweep_simulate(s, point, &a);
		if (!m->call->send(0, &a, sizeof a))
			return;
	}
}

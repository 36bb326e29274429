/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c - ranks of a job that are recorded each for itself: `mpirun -n 4 longpole record ./app`. */
#include "cmd/record/rank.h"

#include "base/base.h"

#include <stdlib.h>

/* What launchers put into the environment: Open MPI's, MPICH's Hydra and its kin, Cray's, Slurm's.
 * (A shell that Slurm started alone is rank 0 of 1, which is no job.) */
static const struct {
	const char *rank, *size;
} rank_variables[] = {
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
	{"PMI_RANK", "PMI_SIZE"},
	{"PALS_RANKID", "PALS_SIZE"},
	{"SLURM_PROCID", "SLURM_NTASKS"},
};

static bool rank_number(const char *name, uint32_t *ret)
{
	const char *text = getenv(name);
	char *end;
	if (!text || *text < '0' || *text > '9')
		return false;
	unsigned long n = strtoul(text, &end, 10);
	*ret = (uint32_t)n;
	return !*end && n <= INT32_MAX;
}

bool cmd_job_rank(uint32_t *ret)
{
	uint32_t size;
	for (size_t i = 0; i < BASE_COUNT(rank_variables); i++)
		if (rank_number(rank_variables[i].rank, ret) &&
			rank_number(rank_variables[i].size, &size) && size > 1)
			return true;
	return false;
}

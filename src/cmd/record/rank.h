/* SPDX-License-Identifier: Apache-2.0 */
/* rank.h - which rank of an MPI job we were started as, by what launchers tell their ranks. */
#ifndef LONGPOLE_CMD_RANK_H
#define LONGPOLE_CMD_RANK_H

#include <stdbool.h>
#include <stdint.h>

/* The rank, of a job of several; false: we are none. */
bool cmd_job_rank(uint32_t *ret);

#endif

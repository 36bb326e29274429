/* SPDX-License-Identifier: Apache-2.0 */
/* cdat_lpt.h - cdat's traces as records of a .lpt file: memory_request, memory_transaction. */
#ifndef LONGPOLE_MEMORY_CDAT_LPT_H
#define LONGPOLE_MEMORY_CDAT_LPT_H

#include "memory/cdat/cdat.h"

/* A stream for each processor (its number + 1), then one for each I/O processor; times are clocks.
 * What a request causes stands in its requester's stream, in order. */
struct memory_cdat_lpt;
enum base_status memory_cdat_lpt_open(const char *path, const char *command, uint32_t nr_processors,
	uint32_t nr_nodes, struct memory_cdat_lpt **ret, struct base_err *err) BASE_MUST_CHECK;
/* Errors are kept for close(). */
void memory_cdat_lpt_general(struct memory_cdat_lpt *l, const struct memory_cdat_transaction *t);
void memory_cdat_lpt_detailed(struct memory_cdat_lpt *l, const struct memory_cdat_transaction *t);
/* Always frees l. */
enum base_status memory_cdat_lpt_close(
	struct memory_cdat_lpt *l, struct base_err *err) BASE_MUST_CHECK;

#endif

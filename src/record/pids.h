/* SPDX-License-Identifier: Apache-2.0 */
/* pids.h - processes of other pid namespaces by the numbers that we know them by. */
#ifndef LONGPOLE_RECORD_PIDS_H
#define LONGPOLE_RECORD_PIDS_H

#include "base/base.h"
#include "ring/ring.h"

/* From here on numbers are nobody's: of processes that were gone before we looked. (Linux has up to
 * 1 << 22.)
 */
enum { RECORD_PIDS_NOBODY = 1 << 30 };

struct record_pids {
	struct base_map threads;   /* (image, tid there) -> pid << 32 | tid */
	struct base_map processes; /* (namespace, pid there) -> pid; the last one counts */
	uint32_t nr_nobody;
};

/* What a ring says of a thread in, ours out. ids->ns 0: it is in our namespace. */
void record_pids_find(
	struct record_pids *p, uint32_t image, struct ring_ids ids, uint32_t *pid, uint32_t *tid);
/* The process that had that number last in that namespace; 0: not known. */
uint32_t record_pids_process(const struct record_pids *p, uint64_t ns, uint64_t pid);
/* A zombie does not: in a container nobody may ever reap it. */
bool record_process_lives(uint32_t pid);
void record_pids_fini(struct record_pids *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* affinity.h - which processors a thread may run on, read from outside. */
#ifndef LONGPOLE_RECORD_AFFINITY_H
#define LONGPOLE_RECORD_AFFINITY_H

#include "ring/ring.h"

#include <stddef.h>

/* Bytes of the kernel's list ("0-3,8") of that thread, without a zero behind; 0: not to be had (it
 * has ended, or the list is longer than that). */
size_t record_affinity_of(uint32_t pid, uint32_t tid, char ret[RING_AFFINITY_MAX]);

/* How much of a mask the kernel looks at; 0: not to be had. */
size_t record_affinity_bytes(void);

#endif

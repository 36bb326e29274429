/* SPDX-License-Identifier: Apache-2.0 */
/* hardware.h - which events a recording counts with the program's calls, and whether it may. */
#ifndef LONGPOLE_SYSTEM_HARDWARE_H
#define LONGPOLE_SYSTEM_HARDWARE_H

#include "base/base.h"
#include "ring/ring.h"

struct system_hardware_event {
	const char *name; /* as perf says it: "cache-misses" */
	uint32_t type;    /* perf_event_open's */
	uint64_t config;
};
/* The i-th there is; NULL: no more. */
const struct system_hardware_event *system_hardware_at(unsigned i);
/* NULL: there is none of that name, or of these numbers. */
const struct system_hardware_event *system_hardware_find(const char *name);
const struct system_hardware_event *system_hardware_of(uint32_t type, uint64_t config);

/* The events of seed 001's section 5, by commas. */
#define SYSTEM_HARDWARE_STUDY "cycles,instructions,cache-misses,L1-icache-load-misses"

struct system_hardware {
	const struct system_hardware_event *event[RING_EVENTS];
	unsigned nr;
	bool has_kernel;   /* what the kernel does for the program is counted, too */
	bool has_two_pmus; /* two kinds of cores: no rdpmc */
};

/* Events by commas; no name: those of the study. False: `ret_bad` (a name or NULL, for too many)
 * says which it is not. */
bool system_hardware_parse(const char *list, struct system_hardware *ret, char ret_bad[64]);
/* Does this machine count them? Opens them for the calling thread, and sets what is known then.
 * `why_no_kernel` (SESSION_REASON_BYTES): "" or why only user space is counted. BASE_ERR_ENV: none
 * of it, and why. */
enum base_status system_hardware_try(struct system_hardware *h, char *why_no_kernel, size_t size,
	struct base_err *err) BASE_MUST_CHECK;

#endif

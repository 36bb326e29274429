/* SPDX-License-Identifier: Apache-2.0 */
/* spin_cycles.h - two events of all threads of a process, by perf_event: cycles and instructions.
 */
#ifndef LONGPOLE_RECORD_SPIN_CYCLES_H
#define LONGPOLE_RECORD_SPIN_CYCLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { RECORD_SPIN_EVENTS = 2, RECORD_SPIN_EVENT_THREADS = 512 };

struct record_spin_event {
	uint32_t type;
	uint64_t config;
};
extern const struct record_spin_event
	record_spin_ipc_events[RECORD_SPIN_EVENTS]; /* cycles, instructions */

struct record_spin_cycles {
	int fd[RECORD_SPIN_EVENT_THREADS][RECORD_SPIN_EVENTS];
	size_t nr;
};
/* Counts in user space from now on, in the threads that there are (up to EVENT_THREADS) and those
 * that they create. False: not here; nothing is open. */
bool record_spin_cycles_open(struct record_spin_cycles *c, pid_t pid,
	const struct record_spin_event event[RECORD_SPIN_EVENTS]);
/* The sums so far; where counters were shared, scaled up. False: one was never counted. */
bool record_spin_cycles_read(const struct record_spin_cycles *c, uint64_t ret[RECORD_SPIN_EVENTS]);
void record_spin_cycles_close(struct record_spin_cycles *c);

#endif

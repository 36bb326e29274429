/* SPDX-License-Identifier: Apache-2.0 */
/* cycles.h - two events of all threads of a process, by perf_event: cycles and instructions.
 */
#ifndef LONGPOLE_SPIN_CYCLES_H
#define LONGPOLE_SPIN_CYCLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SPIN_EVENTS = 2, SPIN_EVENT_THREADS = 512 };

struct spin_event {
	uint32_t type;
	uint64_t config;
};
extern const struct spin_event spin_ipc_events[SPIN_EVENTS]; /* cycles, instructions */

struct spin_cycles {
	int fd[SPIN_EVENT_THREADS][SPIN_EVENTS];
	size_t nr;
};
/* Counts in user space from now on, in the threads that there are (up to EVENT_THREADS) and those
 * that they create. False: not here; nothing is open. */
bool spin_cycles_open(struct spin_cycles *c, pid_t pid, const struct spin_event event[SPIN_EVENTS]);
/* The sums so far; where counters were shared, scaled up. False: one was never counted. */
bool spin_cycles_read(const struct spin_cycles *c, uint64_t ret[SPIN_EVENTS]);
void spin_cycles_close(struct spin_cycles *c);

#endif

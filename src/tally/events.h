/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - what the processor, or the kernel, counts of the calling thread, read where a
 * counted call begins and ends (seed 001, section 5): user space and kernel apart.
 *
 * Each thread has a group of perf events for user space and one for the kernel, whose members are
 * counted all at once or not at all. Read by rdpmc through their mapped pages where the machine
 * allows it, else by one system call a group. Groups may share the processor's counters: a call
 * counts only where its group had them from the call's begin to its end.
 */
#ifndef LONGPOLE_TALLY_EVENTS_H
#define LONGPOLE_TALLY_EVENTS_H

#include "tally/count.h"

struct tally_event_reading {
	uint64_t count[TALLY_MODES][RING_EVENTS];
	uint64_t enabled_ns[TALLY_MODES], lag_ns[TALLY_MODES]; /* lag: without counters */
	uint32_t modes; /* bits: those groups are counted right now */
	uint32_t set;   /* which opening of the thread's events that is of */
};

/* Opens this thread's events where it has none. False: there is nothing to compare with. */
bool tally_events_read(struct tally_event_reading *ret);
/* What there was since then: for an entry, `weight` times, and for the whole thread. */
void tally_events_add(const struct tally_event_reading *since,
	const struct tally_event_reading *now, uint64_t weight, struct tally_event_sums *to);
/* What two readings, and what a call has between them, count themselves. */
void tally_events_measure(void (*between)(void));
/* The thread counts no more; its tables have the last word. */
void tally_events_leave(void);

/* NULL: no events are counted. */
PRELOAD_INLINE struct tally_events *tally_events_of(const struct tally_entry *e)
{
	if (PRELOAD_LIKELY(!preload_self->tally_events))
		return NULL;
	return (struct tally_events *)((uintptr_t)e / sizeof(struct tally_entry) *
					       sizeof(struct tally_events) +
				       preload_self->tally_events);
}

#endif

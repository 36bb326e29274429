/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - the heap of events. Events of equal time come out in the order in which they went in,
 * so that a run is the same every time.
 */
#ifndef LONGPOLE_PLATFORM_EVENT_H
#define LONGPOLE_PLATFORM_EVENT_H

#include "base/base.h"

struct platform_machine;

struct platform_event {
	uint64_t time_ns, order;
	struct platform_machine *machine; /* the machine that it wakes */
	uint64_t turn;                    /* of the machine: an older one is void */
};
struct platform_events { /* {0} is empty */
	struct platform_event *heap;
	size_t nr, capacity;
	uint64_t nr_pushed;
};

void platform_events_fini(struct platform_events *e);
/* Sets the event's order. BASE_ERR_NOMEM. */
enum base_status platform_events_push(
	struct platform_events *e, struct platform_event event) BASE_MUST_CHECK;
/* The earliest one; false: there is none. */
bool platform_events_pop(struct platform_events *e, struct platform_event *ret);

#endif

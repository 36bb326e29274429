/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pin.h - the calling thread and the children that it makes stay on one processor.
 *
 * A tracer and what it traces run in turn, never together. On two processors each turn wakes a
 * processor that sleeps, which takes longer than what is done there (a run ahead takes twice to
 * three times as long). Where others wait for processors it is left to the kernel.
 */
#ifndef LONGPOLE_DEADLOCK_PIN_H
#define LONGPOLE_DEADLOCK_PIN_H

#include <sched.h>
#include <stdbool.h>

struct deadlock_pin {
	bool is_set;
	cpu_set_t before;
};

void deadlock_pin_set(struct deadlock_pin *p);
void deadlock_pin_end(struct deadlock_pin *p); /* as it was; {0} is none */

/* May this thread keep a processor for itself? `loadavg`: the text of /proc/loadavg. */
bool deadlock_pin_has_room(const char *loadavg, long nr_processors);

#endif

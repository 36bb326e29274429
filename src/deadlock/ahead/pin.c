/* SPDX-License-Identifier: Apache-2.0 */
/* pin.c - one processor for a tracer and what it traces. */
#include "deadlock/ahead/pin.h"

#include "deadlock/ahead/ahead.h"

#include <stdio.h>
#include <unistd.h>

bool deadlock_pin_has_room(const char *loadavg, long nr_processors)
{
	long nr_running; /* with us */
	return sscanf(loadavg, "%*s %*s %*s %ld/", &nr_running) == 1 && nr_running <= nr_processors;
}

void deadlock_pin_set(struct deadlock_pin *p)
{
	char text[96];
	cpu_set_t one;
	const int at = sched_getcpu();
	*p = (struct deadlock_pin){0};
	if (at < 0 || at >= CPU_SETSIZE || sched_getaffinity(0, sizeof p->before, &p->before) ||
		os_proc_read(getpid(), "../loadavg", text, sizeof text) <= 0 ||
		!deadlock_pin_has_room(text, CPU_COUNT(&p->before)))
		return;
	CPU_ZERO(&one);
	CPU_SET((unsigned)at, &one);
	p->is_set = sched_setaffinity(0, sizeof one, &one) == 0;
}

void deadlock_pin_end(struct deadlock_pin *p)
{
	if (p->is_set)
		(void)sched_setaffinity(0, sizeof p->before, &p->before);
	p->is_set = false;
}

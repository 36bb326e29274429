/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_own.c - what the VM itself does: it stops its threads, collects garbage and compiles.
 *
 * Those of its threads that have a part of their own there say what they do, as a program's
 * annotations would (longpole/annotate.h), and keep to it.
 */
#include "preload/place.h"
#include "runtime/java/java.h"

#include <string.h>

#ifndef PRELOAD_STATIC

/* The VM's own threads by how their names begin, and what each does whenever it runs. */
enum { JAVA_STOPS = 0 };
static const struct {
	char begins[12], state[40];
} java_roles[] = {
	{"", "collecting garbage"}, /* JAVA_STOPS: the one that stops the others, meanwhile */
	{"GC Thread", "collecting garbage"},
	{"ParGC", "collecting garbage"},
	{"ZWorker", "collecting garbage"},
	{"Shenandoah", "collecting garbage"},
	{"G1 ", "collecting garbage beside the program"},
	{"C1 Comp", "compiling Java"},
	{"C2 Comp", "compiling Java"},
};
static uint64_t java_states[PRELOAD_COUNT(java_roles)];

static void java_acts(size_t role)
{
	preload_keep_to_state(preload_state_named(&java_states[role], java_roles[role].state));
}

void preload_java_named(const char *name)
{
	for (size_t i = JAVA_STOPS + 1; i < PRELOAD_COUNT(java_roles); i++)
		if (strncmp(name, java_roles[i].begins, strlen(java_roles[i].begins)) == 0) {
			java_acts(i);
			return;
		}
}

/* Called by the thread that has stopped the others. */
void java_gc_begins(java_env tool)
{
	(void)tool;
	if (preload_active())
		java_acts(JAVA_STOPS);
}

void java_gc_ends(java_env tool)
{
	(void)tool;
	if (preload_active())
		preload_keep_to_state(0);
}

/* The word on which threads sleep while the VM stops the world. */
uint64_t preload_java_futex(uint64_t object)
{
	static uint32_t named_in; /* image */
	const uint64_t safepoint = (object & ~((uint64_t)0xff << RING_OBJECT_TYPE_SHIFT)) |
				   (uint64_t)TRACE_OBJECT_safepoint << RING_OBJECT_TYPE_SHIFT;
	if (__atomic_exchange_n(&named_in, preload_fresh.image, __ATOMIC_RELAXED) !=
		preload_fresh.image)
		java_name_object(safepoint, "of the Java VM", "");
	return safepoint;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* node_own.c - what V8 does itself, on the thread of an isolate: it collects garbage. */
#include "preload/place.h"
#include "runtime/node/node.h"

#ifndef PRELOAD_STATIC

static uint64_t node_gc_state;

void node_gc_begins(void *isolate, int type, int flags, void *data)
{
	(void)isolate, (void)type, (void)flags, (void)data;
	if (preload_active())
		preload_keep_to_state(preload_state_named(&node_gc_state, "collecting garbage"));
}

void node_gc_ends(void *isolate, int type, int flags, void *data)
{
	(void)isolate, (void)type, (void)flags, (void)data;
	if (preload_active())
		preload_keep_to_state(0);
}

#endif

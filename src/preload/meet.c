/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c - the runtime library of `longpole cc` in the same program (meet.h). */
#include "preload/preload.h"
#include "preload/heap.h"

static struct record_lock_stamps *lock_stamps(void)
{
	return &preload_own()->lock;
}

PRELOAD_EXPORT record_meet_fn longpole_meet;
const struct record_preload_side *longpole_meet(const struct record_target_side *target)
{
	static struct record_preload_side own;
	own = (struct record_preload_side){lock_stamps, longpole_heap_allocated};
	preload_met = *target;
	preload_be_indirect();
	return &own;
}

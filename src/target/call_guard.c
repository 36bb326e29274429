/* SPDX-License-Identifier: Apache-2.0 */
/* call_guard.c - C++'s static variables of functions: the first one makes them. (A thread that
 * finds them made, by looking at the guard, makes no call.) */
#include "target/target.h"

#define AT TARGET_STUB

int __cxa_guard_acquire(uint64_t *guard);
void __cxa_guard_release(uint64_t *guard);

int longpole_at___cxa_guard_acquire(uint64_t *guard);
AT int longpole_at___cxa_guard_acquire(uint64_t *guard)
{
	TARGET_UNLESS_ATTACHED(__cxa_guard_acquire(guard));
	longpole_target_let_see(true);
	int makes = __cxa_guard_acquire(guard);
	if (!makes)
		longpole_target_told(guard);
	return makes;
}

void longpole_at___cxa_guard_release(uint64_t *guard);
AT void longpole_at___cxa_guard_release(uint64_t *guard)
{
	(void)longpole_target_tells(guard);
	__cxa_guard_release(guard);
}

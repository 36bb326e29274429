/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.h - inside a program that both record: what the preload library and the runtime library of
 * `longpole cc` tell each other, once, before the program's first constructor.
 *
 * A call that the runtime library records goes through a stub of it, which calls the real function:
 * for the preload library, what called the stub is the call's place in the program. Threads that
 * libraries begin and join that were not rewritten (Boost, GLib, TBB), or through a pointer to the
 * function, only the preload library sees. A lock operation's times are taken once, by the preload
 * library: reading the clock can take longer than the operation.
 */
#ifndef LONGPOLE_RING_MEET_H
#define LONGPOLE_RING_MEET_H

#include <stdbool.h>
#include <stdint.h>

#define RECORD_MEET "longpole_meet"

/* Of a thread's last mutex operation that was recorded, in TSC ticks: when it began to wait, and
 * when it had the lock; both the same when the lock was free, or is given up. */
struct record_lock_stamps {
	uint64_t before, after;
};

/* The runtime library's side. */
struct record_target_side {
	/* Does the code belong to a stub? What called the one that the calling thread is in. */
	bool (*is_stub)(uintptr_t code);
	uintptr_t (*caller)(void);
	/* Called when it is done, by the thread that did it; ticks are of the TSC. */
	void (*created)(uint64_t handle, uint64_t before_ticks, uint64_t site);
	void (*joined)(uint64_t handle, uint64_t before_ticks, uint64_t after_ticks);
};

/* What a thread that begins in a stub gets as its argument: what the program had it begin with. */
struct record_birth {
	void *(*function)(void *);
	void *argument;
};

/* The preload library's. */
struct record_preload_side {
	/* The calling thread's; they live as long as the thread. */
	struct record_lock_stamps *(*lock_stamps)(void);
	/* A block that a stub has just allocated was asked for at `site`; NULL: nobody wants to
	 * know. */
	void (*allocated)(uint64_t address, uint64_t site);
};

/* Both last as long as the program. */
typedef const struct record_preload_side *record_meet_fn(const struct record_target_side *target);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_stamps.h - inside a program that both record, the preload library and the runtime library
 * of `longpole cc`: a lock operation's times are taken once, by the former. Reading the clock can
 * take longer than the operation.
 */
#ifndef LONGPOLE_RECORD_LOCK_STAMPS_H
#define LONGPOLE_RECORD_LOCK_STAMPS_H

#include <stdint.h>

#define RECORD_LOCK_STAMPS "longpole_lock_stamps"

/* Of a thread's last mutex operation that was recorded, in TSC ticks: when it began to wait, and
 * when it had the lock; both the same when the lock was free, or is given up. */
struct record_lock_stamps {
	uint64_t before, after;
};
/* The calling thread's; it lives as long as the thread. */
typedef struct record_lock_stamps *record_lock_stamps_fn(void);

#endif

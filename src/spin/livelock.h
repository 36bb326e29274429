/* SPDX-License-Identifier: Apache-2.0 */
/*
 * livelock.h - do all threads of a group spin at the same time? (Li 2005, section 3.5.3)
 *
 * Logical time is a count that grows with each change of memory that threads of the group can see:
 * the text's invalidations, of which those of silent stores need not count. For each thread the
 * last interval in which it spun is kept (spin_verdict's since and until). When all intervals have
 * a time in common, the group is livelocked: each thread has gone through a whole iteration after
 * that time and found nothing to leave it for, so none is the first to change something.
 *
 * That holds for a closed group: nobody outside of it, no device and no signal handler writes what
 * its threads wait for. To see to that is the caller's part. There may be more threads than
 * processors: a thread's detector is kept while it is switched out, and its interval goes on.
 */
#ifndef LONGPOLE_SPIN_LIVELOCK_H
#define LONGPOLE_SPIN_LIVELOCK_H

#include <stdbool.h>
#include <stdint.h>

struct spin_interval {
	uint64_t since, until;
	bool known; /* false: the thread has not spun yet */
};

struct spin_livelock {
	struct spin_interval *thread; /* nr_threads of them, the caller's */
	uint32_t nr_threads;
};

void spin_livelock_init(struct spin_livelock *l, struct spin_interval *thread, uint32_t nr_threads);
/* The thread has spun from `since` to `until`, which takes the place of what was known. */
void spin_livelock_spun(struct spin_livelock *l, uint32_t thread, uint64_t since, uint64_t until);
/* Do all intervals intersect? *ret_time: the first time at which all threads spin. No threads: no.
 */
bool spin_livelock_found(const struct spin_livelock *l, uint64_t *ret_time);
/* How many threads spin at `time`, as far as is known: figure 3-16's curve. */
uint32_t spin_livelock_spinning_at(const struct spin_livelock *l, uint64_t time);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* ahead.h - what would be: a copy of a thread goes on as if its wait had ended. */
#ifndef LONGPOLE_DEADLOCK_AHEAD_H
#define LONGPOLE_DEADLOCK_AHEAD_H

#include "deadlock/facts/facts.h"

/* ---- running ahead (ahead.c) ----------------------------------------------------------------- */

/*
 * A runner serves one look: it may cache what it reads of `w`, which must outlive it.
 * deadlock_ahead_run() lets a copy of one waiting thread go on as if its wait had been satisfied,
 * and reports which events it would produce for others. Nothing leaves the copy. A run that could
 * not be made is not an error: it has the end REFUSED, FAILED or MOVED, and `why`. An error is our
 * own lack of memory.
 */
struct deadlock_ahead;
enum base_status deadlock_ahead_open(struct deadlock_world *w, struct deadlock_ahead **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct deadlock_ahead *deadlock_ahead_close(struct deadlock_ahead *a);
enum base_status deadlock_ahead_run(struct deadlock_ahead *a, const struct deadlock_wait *wait,
	const struct deadlock_ahead_options *options, struct deadlock_run *ret,
	struct base_err *err) BASE_MUST_CHECK;

/*
 * Spinners (seed 3.3 and 4.2.5). Does a thread that runs go round a loop that changes nothing? Its
 * registers are read by ptrace (it is stopped for tens of microseconds, which nothing can see: it
 * is in no system call that waits), and a copy of it goes on by single steps. If all registers come
 * back and nothing that the loop writes has changed, it is proven: nothing but another thread's
 * write can end it. Then ret->kind is SPIN, with a key SPIN for each word that the loop reads;
 * deadlock_ahead_run(ret) tries values of those words until the copy gets out. Otherwise ret->kind
 * is RUNNING and `why` says why not.
 */
enum { DEADLOCK_SPIN_WHY_MAX = 96 };
enum base_status deadlock_ahead_spin(struct deadlock_ahead *a, const struct deadlock_thread *thread,
	struct deadlock_wait *ret, char why[DEADLOCK_SPIN_WHY_MAX],
	struct base_err *err) BASE_MUST_CHECK;
/* Keys SPIN of others: runs from now on have an event when they write such a word. The first four
 * of the copy's process count (there are four debug registers). `key` must live as long as `a`. */
/* The longest stop of a thread by deadlock_ahead_spin(), so far. */
uint64_t deadlock_ahead_stopped_ns(const struct deadlock_ahead *a);
void deadlock_ahead_watch(struct deadlock_ahead *a, const struct deadlock_key *key, size_t nr_keys);

#endif

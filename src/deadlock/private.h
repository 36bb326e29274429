/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - who could end a wait, and what follows: shared by what judges and what says it. */
#ifndef LONGPOLE_DEADLOCK_PRIVATE_H
#define LONGPOLE_DEADLOCK_PRIVATE_H

#include "deadlock/ahead/ahead.h"
#include "deadlock/deadlock.h"

/* ---- who may produce an event (access.c) ----------------------------------------------------- */

/* The processes with access to a key: those that could produce it. */
struct deadlock_access {
	struct deadlock_key key;
	const pid_t *pid; /* sorted */
	size_t nr_pids;
	bool is_known;  /* from an earlier search */
	bool is_unsure; /* so may one that could not be looked into, or receives descriptors */
};
struct deadlock_accesses {
	struct deadlock_access *access; /* sorted by key */
	size_t nr;
	size_t nr_blind; /* processes because of which keys are unsure */
};
/* Of all keys of `wait` for which that matters (deadlock_wait_is_open()); one pass over the
 * machine's processes where that is needed. What `accesses` has already is not searched again;
 * begin with {0}. */
enum base_status deadlock_accesses_find(struct deadlock_world *w, const struct deadlock_wait *wait,
	size_t nr_waits, struct deadlock_accesses *accesses, struct base_err *err) BASE_MUST_CHECK;
/* May somebody who could not be looked into end this wait, too? */
bool deadlock_accesses_are_unsure(const struct deadlock_accesses *a, const struct deadlock_wait *w);
/* A lock on a file that one process alone has is owned by it. */
void deadlock_accesses_own(const struct deadlock_accesses *a, struct deadlock_wait *w);
const struct deadlock_access *deadlock_accesses_get(
	const struct deadlock_accesses *a, const struct deadlock_key *key);

/* ---- the verdict (verdict.c) ----------------------------------------------------------------- */

/* Sets a->hope: tier 2, a closed world. */
enum base_status deadlock_close_world(struct deadlock_answer *a,
	const struct deadlock_accesses *accesses, struct base_err *err) BASE_MUST_CHECK;
/* Edges and findings, from waits, hope and runs. */
enum base_status deadlock_judge(struct deadlock_answer *a, const struct deadlock_accesses *accesses,
	struct base_err *err) BASE_MUST_CHECK;
/* Runs those ahead that are wanted (NULL: those that a->hope leaves without hope), and were not yet
 * (foresee.c): tier 3. Allocates a->run. ahead NULL: one of its own. */
enum base_status deadlock_foresee(struct deadlock_answer *a, const bool *wanted,
	struct deadlock_ahead *ahead, const struct deadlock_ahead_options *options,
	struct base_err *err) BASE_MUST_CHECK;
/* Run ahead, would the i-th thread give what is awaited? */
bool deadlock_run_gives(
	const struct deadlock_answer *a, size_t i, const struct deadlock_key *awaited);
/* Beside what is certain or probable: circles that somebody alive may still break (suspect.c). */
enum base_status deadlock_suspect(struct deadlock_answer *a,
	const struct deadlock_accesses *accesses, struct deadlock_ahead *ahead,
	const struct deadlock_look_options *options, struct base_err *err) BASE_MUST_CHECK;
/* Threads that run and are proven to spin become waits of kind SPIN (spinners.c). *ret_key: all
 * words that they poll, for deadlock_ahead_watch(); the caller frees. */
enum base_status deadlock_find_spinners(struct deadlock_answer *a, struct deadlock_ahead *ahead,
	struct deadlock_key **ret_key, size_t *ret_nr, struct base_err *err) BASE_MUST_CHECK;
bool deadlock_wait_is_blocked(const struct deadlock_wait *w);
/* It ends by itself, but only after a minute, or in spite of the lock's owner. */
bool deadlock_wait_is_patient(const struct deadlock_wait *w);
/* Could a signal handler, the kernel by itself, or a process that was not seen end it? */
bool deadlock_wait_may_be_helped(struct deadlock_world *world, const struct deadlock_wait *w);
/* The same, but for processes that can be reached by a name. */
bool deadlock_wait_goes_on(const struct deadlock_wait *w);
/* It may go on whatever the others do: it runs, has a time limit, is served from outside, or is not
 * understood. */
bool deadlock_wait_is_open(const struct deadlock_wait *w);
/* Does the thread that has the lock not exist any more, or not in this process? */
bool deadlock_owner_is_gone(const struct deadlock_answer *a, const struct deadlock_wait *w);
/* Index of the thread that owns what w waits for, SIZE_MAX: it is not there. */
size_t deadlock_answer_owner(const struct deadlock_answer *a, const struct deadlock_wait *w);
/* Index of a thread, SIZE_MAX: not looked at. */
size_t deadlock_answer_find(const struct deadlock_answer *a, pid_t tid);

#endif

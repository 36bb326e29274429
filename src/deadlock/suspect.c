/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspect.c - circles in an open world. Threads that wait for each other may still be woken by
 * somebody alive, who is not known to: those are run ahead as well. Who is seen to give what is
 * awaited breaks the circle. If nobody is, the circle is told as unknown, never as a deadlock:
 * those who run cannot be run ahead, and what comes from outside may lead another way.
 */
#include "deadlock/private.h"

#include <string.h>

enum { SUSPECTS_MAX = 256 };

/* Waits for something that only other threads give, and not for one known thread. */
static bool is_suspect(const struct deadlock_answer *a, size_t i)
{
	const struct deadlock_wait *w = &a->wait[i];
	return a->hope[i] == DEADLOCK_LIVE && !deadlock_wait_is_open(w) && w->nr_keys;
}

/* Marks all who are alive and could give what the members of a finding wait for. */
static void mark_rescuers(const struct deadlock_answer *a, const struct deadlock_accesses *accesses,
	const struct deadlock_finding *f, bool *rescuer)
{
	for (uint32_t m = 0; m < f->nr_members; m++) {
		const struct deadlock_wait *w = &a->wait[f->member[m]];
		for (size_t k = 0; !w->owner_is_exact && k < w->nr_keys; k++) {
			const struct deadlock_access *x =
				deadlock_accesses_get(accesses, &w->key[k]);
			for (size_t p = 0; x && p < x->nr_pids; p++) {
				for (size_t i = 0; i < a->nr_waits; i++)
					rescuer[i] |= a->wait[i].thread.pid == x->pid[p] &&
						      a->hope[i] == DEADLOCK_LIVE;
			}
		}
	}
}

static bool is_rescued(
	const struct deadlock_answer *a, const struct deadlock_finding *f, const bool *rescuer)
{
	for (size_t i = 0; i < a->nr_waits; i++) {
		for (uint32_t m = 0; rescuer[i] && m < f->nr_members; m++) {
			const struct deadlock_wait *w = &a->wait[f->member[m]];
			for (size_t k = 0; k < w->nr_keys; k++) {
				if (deadlock_run_gives(a, i, &w->key[k]))
					return true;
			}
		}
	}
	return false;
}

/* Those that nobody was seen to break. */
static enum base_status keep_unbroken(struct deadlock_answer *a,
	const struct deadlock_accesses *accesses, struct deadlock_ahead *ahead,
	const struct deadlock_ahead_options *options, struct base_err *err)
{
	bool *rescuer = base_alloc(a->nr_waits + 1);
	enum base_status s = BASE_OK;
	size_t kept = 0;
	if (!rescuer)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for rescuers");
	for (size_t i = 0; s == BASE_OK && i < a->nr_findings; i++) {
		struct deadlock_finding f = a->finding[i];
		memset(rescuer, 0, a->nr_waits + 1);
		mark_rescuers(a, accesses, &f, rescuer);
		s = deadlock_foresee(a, rescuer, ahead, options, err);
		if (s == BASE_OK && f.sure == DEADLOCK_UNKNOWN_OUTCOME &&
			!is_rescued(a, &f, rescuer))
			a->finding[kept++] = f;
	}
	a->nr_findings = kept;
	base_free(rescuer);
	return s;
}

enum base_status deadlock_suspect(struct deadlock_answer *a,
	const struct deadlock_accesses *accesses, struct deadlock_ahead *ahead,
	const struct deadlock_ahead_options *options, struct base_err *err)
{
	size_t nr = 0;
	for (size_t i = 0; i < a->nr_waits; i++)
		nr += is_suspect(a, i);
	if (a->nr_findings || nr < 2 || nr > SUSPECTS_MAX)
		return BASE_OK;
	for (size_t i = 0; i < a->nr_waits; i++) {
		if (is_suspect(a, i))
			a->hope[i] = DEADLOCK_DOUBTFUL;
	}
	enum base_status s = deadlock_foresee(a, NULL, ahead, options, err);
	if (s == BASE_OK)
		s = deadlock_judge(a, accesses, err);
	if (s == BASE_OK)
		s = keep_unbroken(a, accesses, ahead, options, err);
	return s;
}

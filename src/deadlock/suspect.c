/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspect.c - circles in an open world. Threads that wait for each other may still be woken by live
 * threads that are not known to do so: those are run ahead as well. One that is seen to give what
 * is awaited breaks the circle. If none is, and all of them merely sleep for a time, the circle is
 * probable, and they are named. Else it is told as unknown, never as a deadlock: those who run
 * cannot be run ahead, and what comes from outside may lead another way.
 */
#include "deadlock/private.h"

#include <string.h>

enum { SUSPECTS_MAX = 256 };

/* Its time limit ends it soon. */
static bool is_short(const struct deadlock_wait *w)
{
	return w->is_timed && !deadlock_wait_is_patient(w);
}

/* Waits for something that only other threads give, and not for one known thread. Those that a time
 * limit wakes soon count only where anything suspicious is asked for. */
static bool is_suspect(const struct deadlock_answer *a, size_t i, bool is_suspicious)
{
	const struct deadlock_wait *w = &a->wait[i];
	if (a->hope[i] != DEADLOCK_LIVE || !w->nr_keys)
		return false;
	if (is_short(w))
		return is_suspicious && deadlock_wait_is_blocked(w) && !w->is_external &&
		       !w->keys_cut;
	return !deadlock_wait_goes_on(w);
}

/* What is done once is ended only by the thread that is doing it, and that one was seen. */
static bool is_done_once(const struct deadlock_wait *w)
{
	return w->kind == DEADLOCK_ONCE || w->kind == DEADLOCK_GUARD;
}

/* Alive, or will be for a moment, when its time is up. */
static bool is_rescuer(const struct deadlock_answer *a, size_t i)
{
	return a->hope[i] == DEADLOCK_LIVE ||
	       (a->hope[i] == DEADLOCK_DOUBTFUL && a->wait[i].is_timed);
}

/* Marks all threads of a process that are alive; false: it was not looked at. */
static bool mark_process(const struct deadlock_answer *a, pid_t pid, bool *rescuer)
{
	bool is_known = false;
	for (size_t i = 0; i < a->nr_waits; i++) {
		if (a->wait[i].thread.pid != pid)
			continue;
		is_known = true;
		rescuer[i] |= is_rescuer(a, i);
	}
	return is_known;
}

/* Marks all other live threads that could give what the members of a finding wait for. False: there
 * are more, which were not looked at. */
static bool mark_rescuers(const struct deadlock_answer *a, const struct deadlock_accesses *accesses,
	const struct deadlock_finding *f, bool *rescuer)
{
	bool are_all = true;
	for (uint32_t m = 0; m < f->nr_members; m++) {
		const struct deadlock_wait *w = &a->wait[f->member[m]];
		const bool is_closed = w->owner_is_exact || is_done_once(w);
		for (size_t i = 0; w->is_by_name && i < a->nr_waits; i++)
			rescuer[i] |= is_rescuer(a, i);
		for (size_t k = 0; !is_closed && k < w->nr_keys; k++) {
			const struct deadlock_access *x =
				deadlock_accesses_get(accesses, &w->key[k]);
			for (size_t p = 0; x && p < x->nr_pids; p++)
				are_all &= mark_process(a, x->pid[p], rescuer);
		}
	}
	for (uint32_t m = 0; m < f->nr_members; m++)
		rescuer[f->member[m]] = false;
	return are_all;
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

/* Nothing comes to it that nobody knows of: it sleeps for a time, or until a signal, and a copy of
 * it did what it will do. */
static bool is_foreseen(const struct deadlock_answer *a, size_t i)
{
	const struct deadlock_wait *w = &a->wait[i];
	return deadlock_wait_is_blocked(w) && w->kind != DEADLOCK_UNKNOWN && !w->keys_cut &&
	       (w->is_timed ? !w->is_external : w->kind == DEADLOCK_SIGNAL) && a->run &&
	       deadlock_end_is_proper(a->run[i].end);
}

/* Do all wait for the same, as the idle of a pool do? Each of them may give it to the next one, and
 * nobody needs another. (A rwlock they hold, and are in each other's way.) */
static bool is_one_event(const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	for (uint32_t e = 1; e < f->nr_edges; e++) {
		const struct deadlock_edge *x = &a->edge[f->edge[0]], *y = &a->edge[f->edge[e]];
		if (!deadlock_key_equal(
			    &a->wait[x->waiter].key[x->key], &a->wait[y->waiter].key[y->key]))
			return false;
	}
	const enum deadlock_kind kind = a->wait[f->member[0]].kind;
	return f->nr_members > 1 && kind != DEADLOCK_RWLOCK_READ && kind != DEADLOCK_RWLOCK_WRITE;
}

/* The threads that could end it, and what comes of that. */
static enum base_status suspect_weigh(struct deadlock_answer *a, struct deadlock_finding *f,
	const bool *rescuer, bool are_all, struct base_err *err)
{
	bool is_probable = are_all && f->is_knot && !is_one_event(a, f);
	for (uint32_t m = 0; m < f->nr_members; m++)
		is_probable &= !is_short(&a->wait[f->member[m]]);
	uint32_t *breaker = base_arena_alloc(
		deadlock_world_arena(a->world), (a->nr_waits + 1) * sizeof *breaker);
	if (!breaker)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for rescuers");
	f->breaker = breaker;
	for (uint32_t i = 0; i < a->nr_waits; i++) {
		if (rescuer[i])
			breaker[f->nr_breakers++] = i;
		is_probable &= !rescuer[i] || is_foreseen(a, i);
	}
	if (is_probable)
		f->sure = DEADLOCK_PROBABLE;
	return BASE_OK;
}

/* Of the circles in the open world those that nobody was seen to break. */
static enum base_status keep_unbroken(struct deadlock_answer *a,
	const struct deadlock_accesses *accesses, struct deadlock_ahead *ahead,
	const struct deadlock_look_options *o, struct base_err *err)
{
	bool *rescuer = base_alloc(a->nr_waits + 1);
	enum base_status s = BASE_OK;
	size_t kept = 0;
	if (!rescuer)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for rescuers");
	for (size_t i = 0; s == BASE_OK && i < a->nr_findings; i++) {
		struct deadlock_finding f = a->finding[i];
		if (f.sure != DEADLOCK_UNKNOWN_OUTCOME) { /* known before */
			a->finding[kept++] = f;
			continue;
		}
		memset(rescuer, 0, a->nr_waits + 1);
		const bool are_all = mark_rescuers(a, accesses, &f, rescuer);
		s = deadlock_foresee(a, rescuer, ahead, &o->ahead, err);
		if (s != BASE_OK || is_rescued(a, &f, rescuer))
			continue;
		s = suspect_weigh(a, &f, rescuer, are_all, err);
		if (f.sure == DEADLOCK_PROBABLE || o->is_suspicious)
			a->finding[kept++] = f;
	}
	a->nr_findings = kept;
	base_free(rescuer);
	return s;
}

enum base_status deadlock_suspect(struct deadlock_answer *a,
	const struct deadlock_accesses *accesses, struct deadlock_ahead *ahead,
	const struct deadlock_look_options *options, struct base_err *err)
{
	size_t nr = 0;
	for (size_t i = 0; i < a->nr_waits; i++)
		nr += is_suspect(a, i, options->is_suspicious);
	if (nr < 1 || nr > SUSPECTS_MAX)
		return BASE_OK;
	for (size_t i = 0; i < a->nr_waits; i++) {
		if (is_suspect(a, i, options->is_suspicious))
			a->hope[i] = DEADLOCK_DOUBTFUL;
	}
	enum base_status s = deadlock_foresee(a, NULL, ahead, &options->ahead, err);
	if (s == BASE_OK)
		s = deadlock_judge(a, accesses, err);
	if (s == BASE_OK)
		s = keep_unbroken(a, accesses, ahead, options, err);
	return s;
}

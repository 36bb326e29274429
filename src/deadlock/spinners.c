/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spinners.c - threads that run and get nowhere become nodes like those that sleep (seed 4.2.5).
 *
 * A process of which one thread does something else than spin is alive: that one may write what the
 * others poll. So a process counts only if each thread of it that runs is proven to spin, three
 * times over, always in the same loop for the same words.
 */
#include "deadlock/private.h"

#include <time.h>

enum { PROOFS = 3, SPINNERS_MAX = 32, BETWEEN_PROOFS_NS = 1000000 };

static bool spinners_runs(const struct deadlock_wait *w)
{
	return w->kind == DEADLOCK_RUNNING && w->thread.state == 'R';
}

static bool same_loop(const struct deadlock_wait *a, const struct deadlock_wait *b)
{
	bool same = b->kind == DEADLOCK_SPIN && a->nr_keys == b->nr_keys && !b->keys_cut;
	for (size_t i = 0; same && i < a->nr_keys; i++) {
		bool found = false;
		for (size_t n = 0; n < b->nr_keys; n++)
			found = found || deadlock_key_equal(&a->key[i], &b->key[n]);
		same = found;
	}
	return same;
}

static enum base_status prove(struct deadlock_ahead *ahead, struct deadlock_wait *w, bool is_first,
	bool *ret_proven, struct base_err *err)
{
	struct deadlock_wait now;
	char why[DEADLOCK_SPIN_WHY_MAX];
	const enum base_status s = deadlock_ahead_spin(ahead, &w->thread, &now, why, err);
	*ret_proven = s == BASE_OK && now.kind == DEADLOCK_SPIN && (is_first || same_loop(w, &now));
	if (*ret_proven) {
		now.blocked_since_ns = w->blocked_since_ns;
		*w = now;
	}
	return s;
}

static void spinners_give_up(struct deadlock_answer *a, pid_t pid)
{
	for (size_t i = 0; i < a->nr_waits; i++) {
		struct deadlock_wait *w = &a->wait[i];
		if (w->thread.pid == pid && w->kind == DEADLOCK_SPIN) {
			w->kind = DEADLOCK_RUNNING;
			w->nr_keys = 0;
		}
	}
}

/* All threads that run, once more; what does not spin makes its process alive. */
static enum base_status round_of(struct deadlock_answer *a, struct deadlock_ahead *ahead,
	bool is_first, struct base_map *alive, struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint64_t unused;
	unsigned nr = 0;
	for (size_t i = 0; s == BASE_OK && i < a->nr_waits; i++) {
		struct deadlock_wait *w = &a->wait[i];
		bool proven = false;
		if (is_first ? !spinners_runs(w) : w->kind != DEADLOCK_SPIN)
			continue;
		if (base_map_get(alive, 0, (uint64_t)w->thread.pid, &unused))
			continue;
		if (nr++ < SPINNERS_MAX)
			s = prove(ahead, w, is_first, &proven, err);
		if (s == BASE_OK && !proven) {
			spinners_give_up(a, w->thread.pid);
			s = base_map_put(alive, 0, (uint64_t)w->thread.pid, 1);
			if (s != BASE_OK)
				s = base_fail(err, s, "out of memory for threads that spin");
		}
	}
	return s;
}

enum base_status deadlock_find_spinners(struct deadlock_answer *a, struct deadlock_ahead *ahead,
	struct deadlock_key **ret_key, size_t *ret_nr, struct base_err *err)
{
	struct base_map alive = {0};
	enum base_status s = BASE_OK;
	size_t nr = 0;
	*ret_key = NULL;
	*ret_nr = 0;
	for (int proof = 0; s == BASE_OK && proof < PROOFS; proof++) {
		const struct timespec pause = {.tv_nsec = BETWEEN_PROOFS_NS};
		if (proof)
			(void)nanosleep(&pause, NULL);
		s = round_of(a, ahead, proof == 0, &alive, err);
	}
	base_map_fini(&alive);
	for (size_t i = 0; i < a->nr_waits; i++)
		nr += a->wait[i].kind == DEADLOCK_SPIN ? a->wait[i].nr_keys : 0;
	if (s != BASE_OK || !nr)
		return s;
	*ret_key = base_alloc(nr * sizeof **ret_key);
	if (!*ret_key)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for threads that spin");
	for (size_t i = 0; i < a->nr_waits; i++)
		for (size_t k = 0; a->wait[i].kind == DEADLOCK_SPIN && k < a->wait[i].nr_keys; k++)
			(*ret_key)[(*ret_nr)++] = a->wait[i].key[k];
	return BASE_OK;
}

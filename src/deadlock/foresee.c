/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foresee.c - whom to run ahead: those that the closed world leaves stuck, each for itself. What
 * stands at the same place and waits for the same thing may do another: its data are its own.
 */
#include "deadlock/private.h"

#include <string.h>
#include <time.h>

/* All together: a look must end, too. */
enum { RUNS_MAX = 4096 };
#define ALL_RUNS_NS UINT64_C(10000000000)

struct foresight {
	struct deadlock_answer *a;
	struct deadlock_ahead *ahead;
	const struct deadlock_ahead_options *options;
	uint64_t began_ns;
	size_t nr_runs;
};

static bool may_be_run(const struct deadlock_wait *w)
{
	return deadlock_wait_is_blocked(w) && w->kind != DEADLOCK_UNKNOWN &&
	       (w->call >= 0 || w->kind == DEADLOCK_SPIN);
}

/* A stop of ours puts the thread on a processor: that is not its own doing, and it has slept on. */
static enum base_status foresee_run_copy(struct foresight *f, size_t i,
	const struct deadlock_ahead_options *options, struct deadlock_run *ret,
	struct base_err *err)
{
	struct deadlock_thread *t = &f->a->wait[i].thread;
	const enum base_status s = deadlock_ahead_run(f->ahead, &f->a->wait[i], options, ret, err);
	if (s == BASE_OK && ret->runs)
		t->runs = ret->runs;
	return s;
}

static bool has_slept_on(const struct deadlock_thread *t)
{
	uint64_t runs;
	return deadlock_runs_of(t->pid, t->tid, &runs) && runs == t->runs;
}

/* Woken, it looks at something and waits again: what would it do if it had found it? The other side
 * of the first conditional jumps after the wait. */
static enum base_status force(struct foresight *f, size_t i, struct base_err *err)
{
	enum { BRANCHES = 3 };
	struct deadlock_run *r = &f->a->run[i], forced;
	bool goes_back = r->again_is_same || r->end == DEADLOCK_END_LOOPS;
	enum base_status s = BASE_OK;
	if (f->a->wait[i].kind != DEADLOCK_CONDITION || f->a->hope[i] != DEADLOCK_STUCK ||
		!goes_back)
		return BASE_OK;
	for (uint32_t k = 1; s == BASE_OK && k <= BRANCHES; k++) {
		struct deadlock_ahead_options o = *f->options;
		o.force_branch = k;
		s = foresee_run_copy(f, i, &o, &forced, err);
		if (s != BASE_OK || !deadlock_end_is_proper(forced.end) || forced.again_is_same ||
			forced.end == DEADLOCK_END_LOOPS)
			continue;
		forced.is_forced = true;
		*r = forced;
		break;
	}
	return s;
}

static enum base_status run_one(struct foresight *f, size_t i, struct base_err *err)
{
	struct deadlock_answer *a = f->a;
	struct deadlock_wait *w = &a->wait[i];
	struct deadlock_process *p = deadlock_world_process(a->world, w->thread.pid);
	if (p && !w->nr_frames)
		deadlock_frames_of(a->world, p, w);
	if (f->nr_runs == RUNS_MAX || os_time_ns(CLOCK_MONOTONIC) - f->began_ns > ALL_RUNS_NS) {
		a->run[i].end = DEADLOCK_END_BUDGET;
		a->nr_not_run++;
		return BASE_OK;
	}
	if (w->kind != DEADLOCK_SPIN && !has_slept_on(&w->thread)) {
		a->run[i].end = DEADLOCK_END_MOVED;
		w->kind = DEADLOCK_RUNNING;
		return BASE_OK;
	}
	f->nr_runs++;
	enum base_status s = foresee_run_copy(f, i, f->options, &a->run[i], err);
	if (s != BASE_OK)
		return s;
	const struct deadlock_run *r = &a->run[i];
	if (r->stopped_ns > a->stopped_ns)
		a->stopped_ns = r->stopped_ns;
	if (r->end == DEADLOCK_END_MOVED) {
		w->kind = DEADLOCK_RUNNING;
		return BASE_OK;
	}
	if (r->end == DEADLOCK_END_REFUSED || r->end == DEADLOCK_END_FAILED)
		a->nr_not_run++;
	else
		a->nr_run++;
	return force(f, i, err);
}

bool deadlock_run_gives(
	const struct deadlock_answer *a, size_t i, const struct deadlock_key *awaited)
{
	for (size_t e = 0; a->run && e < a->run[i].nr_events; e++) {
		if (deadlock_key_matches(awaited, &a->run[i].event[e].key))
			return true;
	}
	return false;
}

static bool foresee_is_wanted(const struct deadlock_answer *a, const bool *wanted, size_t i)
{
	return (wanted ? wanted[i] : a->hope[i] != DEADLOCK_LIVE) && may_be_run(&a->wait[i]) &&
	       !(a->run && a->run[i].end != DEADLOCK_END_NONE);
}

/* What is known without it is still true. */
static enum base_status do_without(struct deadlock_answer *a, size_t nr, struct base_err *err)
{
	const char *why = err ? err->cause[0] : "";
	a->without_ahead = base_arena_strndup(deadlock_world_arena(a->world), why, strlen(why));
	a->nr_not_run += nr;
	return a->without_ahead ? BASE_OK
				: base_fail(err, BASE_ERR_NOMEM, "out of memory for runs ahead");
}

enum base_status deadlock_foresee(struct deadlock_answer *a, const bool *wanted,
	struct deadlock_ahead *ahead, const struct deadlock_ahead_options *options,
	struct base_err *err)
{
	struct deadlock_ahead_options chosen = *options;
	struct foresight f = {.a = a,
		.ahead = ahead,
		.options = &chosen,
		.began_ns = os_time_ns(CLOCK_MONOTONIC)};
	size_t nr = 0;
	if (chosen.snapshot == DEADLOCK_SNAPSHOT_AUTO && !a->without_bpf)
		chosen.snapshot =
			DEADLOCK_SNAPSHOT_BPF; /* a thread that BPF missed has moved on: do not stop it */
	for (size_t i = 0; i < a->nr_waits; i++)
		nr += foresee_is_wanted(a, wanted, i);
	if (!nr || a->without_ahead)
		return BASE_OK;
	enum base_status s = ahead ? BASE_OK : deadlock_ahead_open(a->world, &f.ahead, err);
	if (s == BASE_ERR_ENV || s == BASE_ERR_IO)
		return do_without(a, nr, err);
	if (s == BASE_OK && !a->run) {
		a->run = base_alloc((a->nr_waits + 1) * sizeof *a->run);
		if (!a->run)
			s = base_fail(err, BASE_ERR_NOMEM, "out of memory for runs ahead");
	}
	for (size_t i = 0; s == BASE_OK && i < a->nr_waits; i++) {
		if (foresee_is_wanted(a, wanted, i))
			s = run_one(&f, i, err);
	}
	if (!ahead)
		deadlock_ahead_close(f.ahead);
	return s;
}

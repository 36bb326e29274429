/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closed.c - the closed world: whoever could still be woken by somebody who runs is alive; those
 * that are left are stuck, whatever the program does. Owners of locks are believed; where there is
 * no owner, everybody with access counts.
 */
#include "deadlock/private.h"

#include <signal.h>

/* Signals whose handlers nobody waits for: faults, and those that glibc keeps for itself. */
static const int no_help[] = {
	SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGPIPE, 32, 33};

/* A limit that is there in case that the other one has died: no plan to go on without him. Of an
 * absolute one half is left on average. */
#define PATIENT_NS      UINT64_C(60000000000)
#define PATIENT_LEFT_NS (PATIENT_NS / 2)

enum closing_helped { HELPED_NOT_ASKED, HELPED_NOT, HELPED_MAYBE };
struct closing {
	struct deadlock_answer *a;
	const struct deadlock_accesses *accesses;
	struct base_map nr_live, nr_threads; /* of each pid */
	bool *live;
	enum closing_helped *helped; /* of each wait: is asked once */
	bool strict;                 /* handlers and the kernel count as helpers */
};

static uint64_t count_of(const struct base_map *m, pid_t pid)
{
	uint64_t n = 0;
	return base_map_get(m, 0, (uint64_t)pid, &n) ? n : 0;
}

static enum base_status count_one(struct base_map *m, pid_t pid)
{
	return base_map_put(m, 0, (uint64_t)pid, count_of(m, pid) + 1);
}

static bool is_gone(const struct deadlock_wait *w)
{
	return w->thread.state == 'Z' || w->thread.state == 'X';
}

bool deadlock_wait_is_blocked(const struct deadlock_wait *w)
{
	return w->kind != DEADLOCK_RUNNING && w->kind != DEADLOCK_DISK && !is_gone(w);
}

/* A thread that waits for a lock's owner needs it, however short its limit is: else it would try. */
bool deadlock_wait_is_patient(const struct deadlock_wait *w)
{
	const uint64_t patient_ns = w->limit_is_left ? PATIENT_LEFT_NS : PATIENT_NS;
	return w->is_timed && (w->owner_is_exact || w->limit_ns >= patient_ns);
}

bool deadlock_wait_is_open(const struct deadlock_wait *w)
{
	return w->is_by_name || deadlock_wait_goes_on(w);
}

bool deadlock_wait_goes_on(const struct deadlock_wait *w)
{
	return !deadlock_wait_is_blocked(w) || (w->is_timed && !deadlock_wait_is_patient(w)) ||
	       w->is_external || w->keys_cut || w->kind == DEADLOCK_UNKNOWN;
}

/* Signals that the thread does not take while it waits; not known: none. */
static uint64_t blocked_signals(const struct deadlock_thread *t)
{
	char text[4096];
	uint64_t blocked = 0;
	if (os_proc_read_task(t->pid, t->tid, "status", text, sizeof text) <= 0 ||
		!os_parse_field(text, "SigBlk", 16, &blocked))
		return 0;
	return blocked;
}

/* May a signal's handler run in this thread while it waits? Whoever may send it: a timer, another
 * process, a user. */
static bool may_handle(const struct deadlock_process *p, const struct deadlock_thread *t)
{
	uint64_t caught = p->status.caught;
	for (size_t i = 0; i < BASE_COUNT(no_help); i++)
		caught &= ~(UINT64_C(1) << (no_help[i] - 1));
	return caught && caught & ~blocked_signals(t);
}

/* A handler may give what others wait for, whatever it interrupts, and may jump out of any wait,
 * also out of one for a lock. What another thread's handler gives, that thread's own wait tells. A
 * dumped process takes no signal any more, but of its locks it is only known that they are held. */
static bool closed_has_handlers(struct deadlock_world *world, const struct deadlock_wait *w)
{
	const struct deadlock_process *p = deadlock_world_process(world, w->thread.pid);
	if (deadlock_world_core(world))
		return !w->owner_is_exact;
	return !p || (p->has_timers && !w->owner_is_exact) || may_handle(p, &w->thread);
}

bool deadlock_wait_may_be_helped(struct deadlock_world *world, const struct deadlock_wait *w)
{
	for (size_t i = 0; i < w->nr_keys && !w->owner_is_exact; i++) {
		if (deadlock_key_met_by_name(&w->key[i]))
			return true; /* by a process that is not seen, or does not run yet */
		switch (w->key[i].kind) {
		case DEADLOCK_KEY_EVENTFD_DATA:
		case DEADLOCK_KEY_EVENTFD_ROOM:
		case DEADLOCK_KEY_SYSV_SEM:
		case DEADLOCK_KEY_SYSV_QUEUE:
			return true;
		default:
			break;
		}
	}
	return closed_has_handlers(world, w);
}

/* Nobody that we see has access, or (of some kinds) anybody has: is there somebody else? The kernel
 * may hold the other end, or it is on its way in a message. */
static bool unseen_may_help(const struct deadlock_key *k)
{
	static const enum deadlock_key_kind without[] = {DEADLOCK_KEY_SYSV_SEM,
		DEADLOCK_KEY_SYSV_QUEUE, DEADLOCK_KEY_FIFO_READER, DEADLOCK_KEY_FIFO_WRITER};
	for (size_t i = 0; i < BASE_COUNT(without); i++) {
		if (k->kind == without[i])
			return false;
	}
	return true;
}

static bool owner_lives(struct closing *c, const struct deadlock_wait *w)
{
	if (w->owner_is_process)
		return count_of(&c->nr_live, w->owner) || !count_of(&c->nr_threads, w->owner);
	size_t at = deadlock_answer_owner(c->a, w);
	if (at == SIZE_MAX)
		return w->kind == DEADLOCK_JOIN || !deadlock_owner_is_gone(c->a, w);
	return c->live[at];
}

static bool key_may_come(struct closing *c, const struct deadlock_key *k)
{
	const struct deadlock_access *access = deadlock_accesses_get(c->accesses, k);
	if (!access || !access->nr_pids)
		return unseen_may_help(k);
	for (size_t i = 0; i < access->nr_pids; i++) {
		if (count_of(&c->nr_live, access->pid[i]) ||
			!count_of(&c->nr_threads, access->pid[i]))
			return true; /* a process that was not looked at counts as alive */
	}
	return false;
}

static bool closing_may_be_helped(struct closing *c, const struct deadlock_wait *w)
{
	enum closing_helped *helped = &c->helped[w - c->a->wait];
	if (*helped == HELPED_NOT_ASKED)
		*helped = deadlock_wait_may_be_helped(c->a->world, w) ? HELPED_MAYBE : HELPED_NOT;
	return *helped == HELPED_MAYBE;
}

static bool may_wake(struct closing *c, const struct deadlock_wait *w)
{
	if (is_gone(w))
		return false;
	if (deadlock_wait_is_open(w))
		return true;
	if (c->strict && (deadlock_wait_is_patient(w) || closing_may_be_helped(c, w) ||
				 deadlock_accesses_are_unsure(c->accesses, w)))
		return true; /* if only by its time limit */
	if (w->owner_is_exact)
		return owner_lives(c, w);
	if (!w->nr_keys)
		return true;
	for (size_t i = 0; i < w->nr_keys; i++) {
		if (key_may_come(c, &w->key[i]))
			return true;
	}
	return false;
}

static enum base_status close_world(struct closing *c)
{
	bool changed = true;
	enum base_status s = BASE_OK;
	while (changed && s == BASE_OK) {
		changed = false;
		for (size_t i = 0; s == BASE_OK && i < c->a->nr_waits; i++) {
			const struct deadlock_wait *w = &c->a->wait[i];
			if (c->live[i] || !may_wake(c, w))
				continue;
			c->live[i] = changed = true;
			s = count_one(&c->nr_live, w->thread.pid);
		}
	}
	return s;
}

enum base_status deadlock_close_world(
	struct deadlock_answer *a, const struct deadlock_accesses *accesses, struct base_err *err)
{
	struct closing c = {.a = a, .accesses = accesses};
	enum base_status s = BASE_OK;
	c.live = base_alloc(a->nr_waits + 1);
	c.helped = base_alloc((a->nr_waits + 1) * sizeof *c.helped);
	if (!c.live || !c.helped)
		s = BASE_ERR_NOMEM;
	for (size_t i = 0; s == BASE_OK && i < a->nr_waits; i++) {
		a->hope[i] = DEADLOCK_STUCK;
		if (!is_gone(&a->wait[i]))
			s = count_one(&c.nr_threads, a->wait[i].thread.pid);
	}
	/* without helpers first: what lives then lives with them as well */
	for (int strict = 0; s == BASE_OK && strict <= 1; strict++) {
		c.strict = strict;
		s = close_world(&c);
		for (size_t i = 0; s == BASE_OK && i < a->nr_waits; i++) {
			if (c.live[i] && a->hope[i] == DEADLOCK_STUCK)
				a->hope[i] = strict ? DEADLOCK_HELPABLE : DEADLOCK_LIVE;
			if (is_gone(&a->wait[i]))
				a->hope[i] = DEADLOCK_LIVE;
		}
	}
	base_map_fini(&c.nr_live);
	base_map_fini(&c.nr_threads);
	base_free(c.live);
	base_free(c.helped);
	return s == BASE_OK ? s : base_fail(err, s, "out of memory for who may wake whom");
}

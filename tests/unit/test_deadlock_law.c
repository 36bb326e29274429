/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_deadlock_law.c - who is without hope, who waits for whom, and what is found, in thousands of
 * random small worlds, against their definitions: hope by trying each set of threads, ways by
 * closing over all edges.
 */
#include "deadlock/private.h"
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
	PID = 1 << 29, /* no such process */
	PROCESSES = 4, /* one more has access, and was not looked at */
	THREADS = 7,
	FILES = 4,
	ACCESSES = 64,
	TRIALS = 10000,
};

struct random_world {
	uint64_t seed;
	struct deadlock_answer a;
	struct deadlock_wait wait[THREADS];
	enum deadlock_hope hope[THREADS];
	struct deadlock_run run[THREADS];
	struct deadlock_accesses accesses;
	struct deadlock_access access[ACCESSES];
	pid_t pid[ACCESSES][PROCESSES + 1];
	bool has_handlers[PROCESSES], has_timers[PROCESSES];
	bool is_calm; /* all is known of everybody, and some sleep for a time */
};

static uint32_t below(struct random_world *w, uint32_t n)
{
	w->seed = base_hash_u64(w->seed + 1);
	return (uint32_t)(w->seed >> 32) % n;
}

/* ---- making one ------------------------------------------------------------------------------ */

static struct deadlock_key file_key(struct random_world *w)
{
	static const enum deadlock_key_kind kind[] = {DEADLOCK_KEY_PIPE_DATA,
		DEADLOCK_KEY_PIPE_DATA, DEADLOCK_KEY_PIPE_ROOM, DEADLOCK_KEY_SYSV_SEM,
		DEADLOCK_KEY_FIFO_READER, DEADLOCK_KEY_EVENTFD_DATA};
	return (struct deadlock_key){.kind = kind[below(w, BASE_COUNT(kind))],
		.id = 1 + below(w, FILES),
		.is_named = below(w, 12) == 0};
}

static struct deadlock_key futex_key(struct random_world *w, pid_t pid)
{
	return (struct deadlock_key){.kind = DEADLOCK_KEY_FUTEX,
		.space = (uint64_t)pid,
		.at = 0x1000 * (1 + below(w, 3)),
		.bytes = below(w, 2) ? 48 : 0};
}

static pid_t any_thread(struct random_world *w)
{
	return PID + 100 + (pid_t)below(w, (uint32_t)w->a.nr_waits + 1); /* the last is gone */
}

static void make_owned(struct random_world *w, struct deadlock_wait *t)
{
	const uint32_t dice = below(w, 6);
	t->owner_is_exact = true;
	t->nr_keys = 1;
	t->owner = any_thread(w);
	if (dice == 0) { /* another process's, or one that was not looked at */
		t->kind = DEADLOCK_FILE_LOCK;
		t->owner_is_process = true;
		t->owner = PID + (pid_t)below(w, PROCESSES + 1);
		t->key[0] = (struct deadlock_key){.kind = DEADLOCK_KEY_FILE_LOCK, .id = 77};
	} else if (dice == 1) {
		t->kind = DEADLOCK_JOIN;
		t->key[0] = (struct deadlock_key){.kind = DEADLOCK_KEY_THREAD_EXIT,
			.space = (uint64_t)t->thread.pid,
			.id = (uint64_t)t->owner};
	} else {
		t->kind = DEADLOCK_MUTEX;
		t->key[0] = futex_key(w, t->thread.pid);
		if (dice == 2)
			t->key[0].kind = DEADLOCK_KEY_FUTEX_SHARED;
	}
}

static void make_wait(struct random_world *w, struct deadlock_wait *t)
{
	const uint32_t dice = w->is_calm ? 9 + below(w, 11) : below(w, 20);
	t->kind = DEADLOCK_POLL;
	if (dice == 0) {
		t->kind = DEADLOCK_RUNNING;
	} else if (dice == 1) {
		t->thread.state = 'Z';
	} else if (dice < 9) {
		make_owned(w, t);
	} else if (dice < 14) {
		static const enum deadlock_kind kind[] = {DEADLOCK_CONDITION, DEADLOCK_SEMAPHORE,
			DEADLOCK_FUTEX, DEADLOCK_ONCE, DEADLOCK_SPIN};
		t->kind = kind[below(w, BASE_COUNT(kind))];
		t->key[0] = futex_key(w, t->thread.pid);
		t->nr_keys = 1;
	} else if (dice == 14) {
		t->kind = DEADLOCK_WAIT_CHILD;
		t->nr_keys = 1;
		t->key[0] = (struct deadlock_key){.kind = DEADLOCK_KEY_PROCESS_EXIT,
			.id = (uint64_t)PID + below(w, PROCESSES)};
	} else {
		t->nr_keys = 1 + below(w, 2);
		for (size_t k = 0; k < t->nr_keys; k++)
			t->key[k] = file_key(w);
	}
	switch (w->is_calm ? below(w, 4) ? 9 : 0 : below(w, 40)) {
	case 0:
	case 7:
	case 8:
		t->is_timed = true;
		t->limit_ns = UINT64_C(59999999999);
		t->is_external = below(w, 4) == 0;
		break;
	case 1:
		t->is_timed = true;
		t->limit_ns = UINT64_C(60000000000);
		break;
	case 2:
		t->is_external = true;
		break;
	case 3:
		t->is_by_name = true;
		break;
	case 4:
		t->keys_cut = true;
		break;
	case 5:
		t->kind = DEADLOCK_UNKNOWN;
		break;
	case 6:
		t->kind = DEADLOCK_DISK;
		break;
	default:
		break;
	}
}

static bool identical(const struct deadlock_key *a, const struct deadlock_key *b)
{
	return a->kind == b->kind && a->space == b->space && a->id == b->id && a->at == b->at;
}

/* The processes with access to a key that is not there yet. Sorted, as deadlock_accesses_get()
 * wants it. */
static void make_access(struct random_world *w, const struct deadlock_key *key)
{
	struct deadlock_access *x = &w->access[w->accesses.nr];
	pid_t *pid = w->pid[w->accesses.nr];
	for (size_t i = 0; i < w->accesses.nr; i++) {
		if (identical(&w->access[i].key, key))
			return;
	}
	*x = (struct deadlock_access){.key = *key, .pid = pid};
	for (int p = 0; p <= PROCESSES; p++) {
		const bool has = key->kind == DEADLOCK_KEY_FUTEX
					 ? (uint64_t)PID + (uint64_t)p == key->space
				 : key->kind == DEADLOCK_KEY_PROCESS_EXIT
					 ? (uint64_t)PID + (uint64_t)p == key->id
					 : below(w, p < PROCESSES ? 3 : 12) == 0 &&
						   !(w->is_calm && p == PROCESSES);
		if (has)
			pid[x->nr_pids++] = PID + p;
	}
	w->accesses.nr++;
}

static int by_key(const void *a, const void *b)
{
	const struct deadlock_key *x = &((const struct deadlock_access *)a)->key;
	const struct deadlock_key *y = &((const struct deadlock_access *)b)->key;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static void make_run(struct random_world *w, struct deadlock_run *run)
{
	static const enum deadlock_end end[] = {DEADLOCK_END_NONE, DEADLOCK_END_EXITED,
		DEADLOCK_END_BLOCKED, DEADLOCK_END_LOOPS, DEADLOCK_END_BUDGET,
		DEADLOCK_END_CRASHED};
	run->end = end[w->is_calm ? 1 + below(w, 3) : below(w, BASE_COUNT(end))];
	run->again_is_same = below(w, 6) == 0;
	for (uint32_t left = run->end != DEADLOCK_END_NONE ? below(w, 3) : 0; left; left--) {
		const struct deadlock_wait *t = &w->wait[below(w, (uint32_t)w->a.nr_waits)];
		if (!t->nr_keys)
			continue;
		struct deadlock_key key = t->key[below(w, (uint32_t)t->nr_keys)];
		key.at += below(w, 4) ? 0 : 4; /* another word of it, or of another object */
		run->event[run->nr_events++] = (struct deadlock_event){.key = key, .count = 1};
	}
}

static void make_world(struct random_world *w, uint64_t seed, bool is_calm)
{
	struct base_err err;
	memset(w, 0, sizeof *w);
	w->seed = seed;
	w->is_calm = is_calm;
	assert_int_equal(deadlock_world_open(&w->a.world, &err), BASE_OK);
	w->a.wait = w->wait;
	w->a.hope = w->hope;
	w->a.nr_waits = 1 + below(w, THREADS);
	for (int p = 0; p < PROCESSES; p++) {
		struct deadlock_process *of = deadlock_world_process(w->a.world, PID + p);
		assert_non_null(of);
		/* (a fault's handler brings nobody anything) */
		of->status.caught = UINT64_C(1) << (SIGSEGV - 1);
		switch (below(w, 8)) {
		case 0:
			of->has_timers = w->has_timers[p] = true;
			break;
		case 1:
			of->status.caught |= UINT64_C(1) << (SIGUSR1 - 1);
			w->has_handlers[p] = true;
			break;
		default:
			break;
		}
	}
	for (size_t i = 0; i < w->a.nr_waits; i++) {
		struct deadlock_wait *t = &w->wait[i];
		t->thread = (struct deadlock_thread){.pid = PID + (pid_t)below(w, PROCESSES),
			.tid = PID + 100 + (pid_t)i,
			.state = 'S'};
		make_wait(w, t);
	}
	for (size_t i = 0; i < w->a.nr_waits; i++) {
		for (size_t k = 0; k < w->wait[i].nr_keys; k++)
			make_access(w, &w->wait[i].key[k]);
	}
	qsort(w->access, w->accesses.nr, sizeof *w->access, by_key);
	w->accesses.access = w->access;
	if (w->is_calm || below(w, 2)) {
		w->a.run = w->run;
		for (size_t i = 0; i < w->a.nr_waits; i++)
			make_run(w, &w->run[i]);
	}
}

static void free_world(struct random_world *w)
{
	base_free(w->a.edge);
	base_free(w->a.finding);
	deadlock_world_close(w->a.world);
}

/* ---- hope, by trying each set ---------------------------------------------------------------- */

static bool ended(const struct deadlock_wait *t)
{
	return t->thread.state == 'Z';
}

/* Its limit is long, or it waits for one thread, whom it needs however short its limit is. */
static bool is_patient(const struct deadlock_wait *t)
{
	return t->is_timed && (t->owner_is_exact || t->limit_ns >= UINT64_C(60000000000));
}

static bool is_short(const struct deadlock_wait *t)
{
	return t->is_timed && !is_patient(t);
}

static bool goes_on_by_itself(const struct deadlock_wait *t)
{
	return t->kind == DEADLOCK_RUNNING || t->kind == DEADLOCK_DISK ||
	       t->kind == DEADLOCK_UNKNOWN || t->is_external || t->is_by_name || t->keys_cut ||
	       is_short(t);
}

static bool helped(const struct random_world *w, const struct deadlock_wait *t)
{
	const size_t process = (size_t)(t->thread.pid - PID);
	if (t->is_timed || w->has_handlers[process])
		return true;
	if (t->owner_is_exact)
		return false;
	for (size_t k = 0; k < t->nr_keys; k++) {
		const struct deadlock_key *key = &t->key[k];
		if (key->kind == DEADLOCK_KEY_EVENTFD_DATA || key->kind == DEADLOCK_KEY_SYSV_SEM ||
			(key->is_named && key->kind != DEADLOCK_KEY_EVENTFD_DATA))
			return true;
	}
	return w->has_timers[process];
}

/* Of a process that was looked at, all are in the set. */
static bool process_is_in(const struct random_world *w, pid_t pid, uint32_t set)
{
	bool any = false;
	for (size_t i = 0; i < w->a.nr_waits; i++) {
		if (w->wait[i].thread.pid != pid || ended(&w->wait[i]))
			continue;
		any = true;
		if (!(set >> i & 1))
			return false;
	}
	return any;
}

static bool owner_is_in(const struct random_world *w, const struct deadlock_wait *t, uint32_t set)
{
	const size_t at = (size_t)(t->owner - PID - 100);
	if (t->owner_is_process)
		return process_is_in(w, t->owner, set);
	/* nobody with that number; or in another process, where a lock of one process's own has no
	 * owners */
	if (at >= w->a.nr_waits || (w->wait[at].thread.pid != t->thread.pid &&
					   t->key[0].kind != DEADLOCK_KEY_FUTEX_SHARED))
		return t->kind != DEADLOCK_JOIN;
	return ended(&w->wait[at]) || set >> at & 1;
}

static bool key_is_in(const struct random_world *w, const struct deadlock_key *key, uint32_t set)
{
	for (size_t i = 0; i < w->accesses.nr; i++) {
		const struct deadlock_access *x = &w->access[i];
		if (!identical(&x->key, key) || !x->nr_pids)
			continue;
		for (size_t p = 0; p < x->nr_pids; p++) {
			if (!process_is_in(w, x->pid[p], set))
				return false;
		}
		return true;
	}
	/* nobody has access: of a pipe somebody unseen may */
	return key->kind == DEADLOCK_KEY_SYSV_SEM || key->kind == DEADLOCK_KEY_FIFO_READER;
}

/* Does each of the set wait for others of the set alone? */
static bool supports_itself(const struct random_world *w, uint32_t set, bool strict)
{
	for (size_t i = 0; i < w->a.nr_waits; i++) {
		const struct deadlock_wait *t = &w->wait[i];
		bool in = t->nr_keys > 0;
		if (!(set >> i & 1))
			continue;
		if (ended(t) || goes_on_by_itself(t) || (strict && helped(w, t)))
			return false;
		if (t->owner_is_exact)
			in = owner_is_in(w, t, set);
		for (size_t k = 0; k < t->nr_keys && !t->owner_is_exact; k++)
			in &= key_is_in(w, &t->key[k], set);
		if (!in)
			return false;
	}
	return true;
}

static uint32_t without_hope(const struct random_world *w, bool strict)
{
	uint32_t all = 0;
	for (uint32_t set = 0; set < UINT32_C(1) << w->a.nr_waits; set++)
		all |= supports_itself(w, set, strict) ? set : 0;
	return all;
}

static void check_hope(const struct random_world *w)
{
	const uint32_t unless_helped = without_hope(w, false), stuck = without_hope(w, true);
	for (size_t i = 0; i < w->a.nr_waits; i++)
		assert_int_equal(w->hope[i], stuck >> i & 1           ? DEADLOCK_STUCK
					     : unless_helped >> i & 1 ? DEADLOCK_HELPABLE
								      : DEADLOCK_LIVE);
}

/* ---- edges ----------------------------------------------------------------------------------- */

enum { NO_EDGE = -1 };

static bool produces(const struct random_world *w, size_t p, const struct deadlock_key *key)
{
	if (!w->a.run || w->run[p].end == DEADLOCK_END_NONE)
		return false;
	for (size_t e = 0; e < w->run[p].nr_events; e++) {
		const struct deadlock_key *got = &w->run[p].event[e].key;
		if (got->kind == key->kind && got->space == key->space && got->id == key->id &&
			got->at >= key->at && got->at < key->at + (key->bytes ? key->bytes : 1))
			return true;
	}
	return false;
}

static size_t nr_threads(const struct random_world *w, pid_t pid)
{
	size_t nr = 0;
	for (size_t i = 0; i < w->a.nr_waits; i++)
		nr += w->wait[i].thread.pid == pid;
	return nr;
}

/* Why i waits for p, a thread of a process that could give the key. */
static int why_of(const struct random_world *w, size_t i, size_t p, const struct deadlock_key *key)
{
	const enum deadlock_end end = w->a.run ? w->run[p].end : DEADLOCK_END_NONE;
	const bool is_exit = key->kind == DEADLOCK_KEY_PROCESS_EXIT;
	if (p == i && (w->wait[i].kind != DEADLOCK_ONCE || !produces(w, p, key)))
		return NO_EDGE;
	if (produces(w, p, key))
		return DEADLOCK_EDGE_WOULD;
	if (is_exit && nr_threads(w, w->wait[p].thread.pid) == 1)
		return DEADLOCK_EDGE_EXITS;
	/* run to a proper end it did not give it */
	if (!is_exit && (end == DEADLOCK_END_EXITED || end == DEADLOCK_END_BLOCKED ||
				end == DEADLOCK_END_LOOPS))
		return NO_EDGE;
	return DEADLOCK_EDGE_MAY;
}

static int owner_edge(const struct random_world *w, size_t i, size_t p)
{
	const struct deadlock_wait *t = &w->wait[i];
	const pid_t pid = w->wait[p].thread.pid;
	if (t->owner_is_process) {
		if (pid != t->owner)
			return NO_EDGE;
		return nr_threads(w, pid) == 1 ? DEADLOCK_EDGE_OWNS : why_of(w, i, p, &t->key[0]);
	}
	if (w->wait[p].thread.tid != t->owner ||
		(pid != t->thread.pid && t->key[0].kind != DEADLOCK_KEY_FUTEX_SHARED))
		return NO_EDGE;
	return t->kind == DEADLOCK_JOIN ? DEADLOCK_EDGE_EXITS : DEADLOCK_EDGE_OWNS;
}

static int expected_edge(const struct random_world *w, size_t i, size_t k, size_t p)
{
	const struct deadlock_wait *t = &w->wait[i];
	if (w->hope[i] == DEADLOCK_LIVE || w->hope[p] == DEADLOCK_LIVE)
		return NO_EDGE;
	if (t->owner_is_exact)
		return owner_edge(w, i, p);
	for (size_t x = 0; x < w->accesses.nr; x++) {
		if (!identical(&w->access[x].key, &t->key[k]) || !w->access[x].nr_pids)
			continue;
		for (size_t n = 0; n < w->access[x].nr_pids; n++) {
			if (w->access[x].pid[n] == w->wait[p].thread.pid)
				return why_of(w, i, p, &t->key[k]);
		}
		return NO_EDGE;
	}
	return p != i && produces(w, p, &t->key[k]) ? DEADLOCK_EDGE_WOULD : NO_EDGE;
}

static int edge_of(const struct random_world *w, size_t i, size_t k, size_t p)
{
	int found = NO_EDGE;
	for (size_t e = 0; e < w->a.nr_edges; e++) {
		const struct deadlock_edge *x = &w->a.edge[e];
		if (x->waiter != i || x->key != k || x->producer != p)
			continue;
		assert_int_equal(found, NO_EDGE);
		found = (int)x->why;
	}
	return found;
}

static bool is_found(const struct random_world *w, size_t i)
{
	for (size_t f = 0; f < w->a.nr_findings; f++) {
		for (uint32_t m = 0; m < w->a.finding[f].nr_members; m++) {
			if (w->a.finding[f].member[m] == i)
				return true;
		}
	}
	return false;
}

static void check_edges(const struct random_world *w)
{
	bool has_any[THREADS] = {false};
	for (size_t i = 0; i < w->a.nr_waits; i++) {
		for (size_t k = 0; k < w->wait[i].nr_keys; k++) {
			for (size_t p = 0; p < w->a.nr_waits; p++)
				has_any[i] |= expected_edge(w, i, k, p) != NO_EDGE;
		}
	}
	for (size_t i = 0; i < w->a.nr_waits; i++) {
		for (size_t k = 0; k < w->wait[i].nr_keys; k++) {
			for (size_t p = 0; p < w->a.nr_waits; p++) {
				const int got = edge_of(w, i, k, p);
				if (got == expected_edge(w, i, k, p))
					continue;
				/* one that has none at all may hope for one in a finding */
				assert_false(has_any[i]);
				assert_int_equal(got, DEADLOCK_EDGE_MAY);
				assert_int_equal(w->hope[i], DEADLOCK_STUCK);
				assert_true(is_found(w, p));
				assert_false(w->a.run && w->run[p].end == DEADLOCK_END_EXITED);
			}
		}
	}
}

/* ---- findings -------------------------------------------------------------------------------- */

struct ways {
	bool all[THREADS][THREADS], seen[THREADS][THREADS]; /* seen: not by what merely may be */
};

static void close_over(bool way[THREADS][THREADS])
{
	for (int k = 0; k < THREADS; k++) {
		for (int i = 0; i < THREADS; i++) {
			for (int j = 0; j < THREADS; j++)
				way[i][j] |= way[i][k] && way[k][j];
		}
	}
}

static void find_ways(const struct random_world *w, struct ways *ret)
{
	memset(ret, 0, sizeof *ret);
	for (size_t e = 0; e < w->a.nr_edges; e++) {
		const struct deadlock_edge *x = &w->a.edge[e];
		ret->all[x->waiter][x->producer] = true;
		ret->seen[x->waiter][x->producer] |= x->why != DEADLOCK_EDGE_MAY;
	}
	close_over(ret->all);
	close_over(ret->seen);
}

static uint32_t members_of(const struct deadlock_finding *f)
{
	uint32_t set = 0;
	for (uint32_t m = 0; m < f->nr_members; m++)
		set |= UINT32_C(1) << f->member[m];
	return set;
}

static void check_shape(
	const struct random_world *w, const struct deadlock_finding *f, const struct ways *ways)
{
	const uint32_t set = members_of(f);
	uint32_t next[THREADS] = {0}, nr_behind = 0;
	bool is_knot = true, is_simple = true;
	for (size_t e = 0; e < w->a.nr_edges; e++) {
		const struct deadlock_edge *x = &w->a.edge[e];
		is_knot &= !(set >> x->waiter & 1) || set >> x->producer & 1;
	}
	for (uint32_t e = 0; e < f->nr_edges; e++) {
		const struct deadlock_edge *x = &w->a.edge[f->edge[e]];
		assert_true(set >> x->waiter & 1 && set >> x->producer & 1);
		next[x->waiter] |= UINT32_C(1) << x->producer;
	}
	for (size_t i = 0; i < w->a.nr_waits; i++) {
		bool leads = false;
		for (uint32_t m = 0; m < f->nr_members; m++)
			leads |= ways->all[i][f->member[m]];
		nr_behind += leads && !(set >> i & 1);
		is_simple &= !(next[i] & (next[i] - 1));
	}
	assert_int_equal(f->nr_behind, nr_behind);
	if (f->kind != DEADLOCK_FINDING_CYCLE && f->kind != DEADLOCK_FINDING_SELF)
		return;
	assert_int_equal(f->is_knot, is_knot);
	assert_int_equal(f->is_simple, is_simple);
	for (uint32_t m = 0; f->is_simple && m < f->nr_members; m++)
		assert_int_equal(
			next[f->member[m]], UINT32_C(1) << f->member[(m + 1) % f->nr_members]);
}

/* Certain: none of them has even a helper; and of loops that were seen now only what locks say. */
static void check_sureness(const struct random_world *w, const struct deadlock_finding *f)
{
	bool all_stuck = true, spins = false, owned = f->nr_edges > 0;
	for (uint32_t m = 0; m < f->nr_members; m++) {
		assert_int_not_equal(w->hope[f->member[m]], DEADLOCK_LIVE);
		all_stuck &= w->hope[f->member[m]] == DEADLOCK_STUCK;
		owned &= w->wait[f->member[m]].kind != DEADLOCK_SPIN;
	}
	for (uint32_t e = 0; e < f->nr_edges; e++)
		owned &= w->a.edge[f->edge[e]].why == DEADLOCK_EDGE_OWNS ||
			 w->a.edge[f->edge[e]].why == DEADLOCK_EDGE_EXITS;
	for (size_t i = 0; i < w->a.nr_waits; i++)
		spins |= w->wait[i].kind == DEADLOCK_SPIN && w->hope[i] != DEADLOCK_LIVE;
	if (f->kind == DEADLOCK_FINDING_ORPHANED)
		return; /* known from the lock alone */
	assert_int_equal(
		f->sure, all_stuck && (!spins || owned) ? DEADLOCK_CERTAIN : DEADLOCK_PROBABLE);
}

/* Threads that were seen to wait for each other are one finding; a gone owner's victim is one. */
static void check_found(const struct random_world *w, const struct ways *ways)
{
	for (size_t i = 0; i < w->a.nr_waits; i++) {
		bool explained = w->hope[i] != DEADLOCK_STUCK || is_found(w, i);
		uint32_t circle = 0, nr = 0;
		for (size_t j = 0; j < w->a.nr_waits; j++) {
			circle |= (uint32_t)(ways->seen[i][j] && ways->seen[j][i]) << j;
			/* (whoever may be helped explains nothing) */
			explained |=
				ways->all[i][j] && (is_found(w, j) || w->hope[j] != DEADLOCK_STUCK);
		}
		assert_true(explained);
		for (size_t f = 0; circle && f < w->a.nr_findings; f++)
			nr += members_of(&w->a.finding[f]) == circle &&
			      w->a.finding[f].kind == (circle & (circle - 1)
								      ? DEADLOCK_FINDING_CYCLE
								      : DEADLOCK_FINDING_SELF);
		assert_int_equal(nr, circle != 0);
	}
}

static void check_findings(const struct random_world *w)
{
	struct ways ways;
	find_ways(w, &ways);
	check_found(w, &ways);
	for (size_t i = 0; i < w->a.nr_findings; i++) {
		const struct deadlock_finding *f = &w->a.finding[i];
		assert_true(f->nr_members > 0);
		check_shape(w, f, &ways);
		check_sureness(w, f);
		if (i)
			assert_true(f[-1].sure <= f->sure);
		if (f->kind == DEADLOCK_FINDING_ORPHANED) {
			const struct deadlock_wait *t = &w->wait[f->member[0]];
			assert_true(t->owner_is_exact && f->nr_members == 1);
		}
	}
}

static void test_random_worlds(void **state)
{
	static struct random_world w;
	size_t nr[DEADLOCK_FINDING_STUCK + 1] = {0}, nr_lost = 0, nr_certain = 0, nr_all = 0;
	(void)state;
	for (uint64_t trial = 0; trial < TRIALS; trial++) {
		struct base_err err;
		make_world(&w, base_hash_u64(trial), false);
		assert_int_equal(deadlock_close_world(&w.a, &w.accesses, &err), BASE_OK);
		check_hope(&w);
		assert_int_equal(deadlock_judge(&w.a, &w.accesses, &err), BASE_OK);
		check_edges(&w);
		check_findings(&w);
		for (size_t i = 0; i < w.a.nr_findings; i++) {
			nr[w.a.finding[i].kind]++;
			nr_lost += w.a.finding[i].is_lost_wakeup;
			nr_certain += w.a.finding[i].sure == DEADLOCK_CERTAIN;
			nr_all++;
		}
		free_world(&w);
	}
	/* the dice throw all kinds (nobody's parent has an owner here: none is inherited) */
	for (int i = 0; i <= DEADLOCK_FINDING_STUCK; i++)
		assert_true(i == DEADLOCK_FINDING_INHERITED || nr[i] > 20);
	assert_true(nr_lost > 20 && nr_certain > 20 && nr_all - nr_certain > 20);
}

/* ---- circles that somebody alive may break --------------------------------------------------- */

/* Those alive who could give what one of the set waits for; *ret_all: and nobody who was not looked
 * at. */
static uint32_t rescuers_of(const struct random_world *w, uint32_t set, bool *ret_all)
{
	uint32_t alive = 0, by_process[PROCESSES + 1] = {0}, rescuers = 0;
	*ret_all = true;
	for (size_t i = 0; i < w->a.nr_waits; i++) {
		const uint32_t bit = UINT32_C(1) << i;
		/* (whom a time limit wakes is, for a moment) */
		alive |= w->hope[i] == DEADLOCK_LIVE ||
					 (w->hope[i] == DEADLOCK_DOUBTFUL && w->wait[i].is_timed)
				 ? bit
				 : 0;
		by_process[w->wait[i].thread.pid - PID] |= bit;
	}
	for (size_t m = 0; m < w->a.nr_waits; m++) {
		const struct deadlock_wait *t = &w->wait[m];
		if (!(set >> m & 1))
			continue;
		rescuers |= t->is_by_name ? alive : 0;
		for (size_t x = 0; x < w->accesses.nr; x++) {
			const struct deadlock_access *access = &w->access[x];
			bool is_awaited = false;
			for (size_t k = 0; k < t->nr_keys; k++)
				is_awaited |= !t->owner_is_exact && t->kind != DEADLOCK_ONCE &&
					      identical(&access->key, &t->key[k]);
			for (size_t p = 0; is_awaited && p < access->nr_pids; p++) {
				rescuers |= by_process[access->pid[p] - PID] & alive;
				*ret_all &= by_process[access->pid[p] - PID] != 0;
			}
		}
	}
	return rescuers & ~set;
}

static bool is_rescued(const struct random_world *w, uint32_t set, uint32_t rescuers)
{
	bool is = false;
	for (size_t m = 0; m < w->a.nr_waits; m++) {
		for (size_t r = 0; r < w->a.nr_waits; r++) {
			for (size_t k = 0; k < w->wait[m].nr_keys; k++)
				is |= set >> m & 1 && rescuers >> r & 1 &&
				      produces(w, r, &w->wait[m].key[k]);
		}
	}
	return is;
}

/* Each rescuer merely sleeps for a time, and was seen to do something else then. */
static bool all_are_foreseen(const struct random_world *w, uint32_t rescuers)
{
	bool all = true;
	for (size_t r = 0; r < w->a.nr_waits; r++) {
		const struct deadlock_wait *t = &w->wait[r];
		const enum deadlock_end end = w->a.run ? w->run[r].end : DEADLOCK_END_NONE;
		all &= !(rescuers >> r & 1) ||
		       (t->is_timed && !t->is_external && !t->keys_cut && !ended(t) &&
			       t->kind != DEADLOCK_RUNNING && t->kind != DEADLOCK_DISK &&
			       t->kind != DEADLOCK_UNKNOWN &&
			       (end == DEADLOCK_END_EXITED || end == DEADLOCK_END_BLOCKED ||
				       end == DEADLOCK_END_LOOPS));
	}
	return all;
}

/* Do they, several, wait for one and the same thing? */
static bool is_one_event(const struct random_world *w, const struct deadlock_finding *f)
{
	for (uint32_t e = 0; e < f->nr_edges; e++) {
		const struct deadlock_edge *x = &w->a.edge[f->edge[e]];
		const struct deadlock_edge *y = &w->a.edge[f->edge[0]];
		if (!identical(&w->wait[x->waiter].key[x->key], &w->wait[y->waiter].key[y->key]))
			return false;
	}
	return f->nr_members > 1;
}

static const struct deadlock_finding *finding_of(const struct random_world *w, uint32_t set)
{
	for (size_t i = 0; i < w->a.nr_findings; i++) {
		if (members_of(&w->a.finding[i]) == set)
			return &w->a.finding[i];
	}
	return NULL;
}

/* 1: it was told, 2: as probable, with the threads that could still end it. */
static int check_open_circle(
	const struct random_world *w, uint32_t circle, bool is_suspicious, const struct ways *ways)
{
	bool are_all;
	const uint32_t rescuers = rescuers_of(w, circle, &are_all);
	const struct deadlock_finding *f = finding_of(w, circle);
	if (is_rescued(w, circle, rescuers)) {
		assert_null(f);
		return 0;
	}
	if (!f) {
		assert_false(is_suspicious);
		return 0;
	}
	bool is_probable =
		are_all && f->is_knot && !is_one_event(w, f) && all_are_foreseen(w, rescuers);
	for (uint32_t m = 0; m < f->nr_members; m++)
		is_probable &= !is_short(&w->wait[f->member[m]]);
	uint32_t breakers = 0;
	for (uint32_t b = 0; b < f->nr_breakers; b++)
		breakers |= UINT32_C(1) << f->breaker[b];
	assert_int_equal(breakers, rescuers);
	assert_int_equal(f->sure, is_probable ? DEADLOCK_PROBABLE : DEADLOCK_UNKNOWN_OUTCOME);
	assert_true(is_probable || is_suspicious);
	check_shape(w, f, ways);
	return is_probable && breakers ? 2 : 1;
}

static void check_suspects(const struct random_world *w, const enum deadlock_hope *before,
	bool is_suspicious, size_t nr[3])
{
	struct ways ways;
	find_ways(w, &ways);
	for (size_t i = 0; i < w->a.nr_waits; i++) {
		const struct deadlock_wait *t = &w->wait[i];
		struct deadlock_wait alone = *t;
		uint32_t circle = 0;
		bool is_open = false;
		alone.is_by_name = false; /* that is in question now */
		if (is_short(t))          /* and this, where anything suspicious is asked for */
			alone.is_timed = !is_suspicious;
		const bool is_suspect = before[i] == DEADLOCK_LIVE && !ended(t) &&
					!goes_on_by_itself(&alone) && t->nr_keys;
		assert_int_equal(w->hope[i], is_suspect ? DEADLOCK_DOUBTFUL : before[i]);
		for (size_t j = 0; j < w->a.nr_waits; j++) {
			if (!ways.seen[i][j] || !ways.seen[j][i])
				continue;
			circle |= UINT32_C(1) << j;
			is_open |= before[j] == DEADLOCK_LIVE;
		}
		if (is_open)
			nr[check_open_circle(w, circle, is_suspicious, &ways)]++;
		else
			assert_true(!circle || finding_of(w, circle));
	}
}

static void test_suspects(void **state)
{
	static struct random_world w;
	size_t nr[3] = {0};
	(void)state;
	for (uint64_t trial = 0; trial < TRIALS; trial++) {
		struct base_err err;
		enum deadlock_hope before[THREADS];
		const struct deadlock_look_options o = {.is_suspicious = trial % 2};
		make_world(&w, base_hash_u64(trial + TRIALS), trial % 4 < 2);
		w.a.without_ahead = "what they would do is known already";
		assert_int_equal(deadlock_close_world(&w.a, &w.accesses, &err), BASE_OK);
		assert_int_equal(deadlock_judge(&w.a, &w.accesses, &err), BASE_OK);
		memcpy(before, w.hope, sizeof before);
		assert_int_equal(deadlock_suspect(&w.a, &w.accesses, NULL, &o, &err), BASE_OK);
		check_suspects(&w, before, o.is_suspicious, nr);
		free_world(&w);
	}
	assert_true(nr[0] > 20 && nr[1] > 20 && nr[2] > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_worlds),
		cmocka_unit_test(test_suspects),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

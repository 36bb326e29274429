/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - one look: who waits, for what, who could end it; and the verdict. */
#include "deadlock/private.h"

#include "deadlock/facts/core.h"
#include "deadlock/facts/python.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 8 };

struct look {
	struct deadlock_monitor *monitor;
	const struct deadlock_look_options *o;
	struct deadlock_answer *a;
	struct base_map scope; /* pid -> 1: looked at, 2: left out as idle */
	struct deadlock_accesses accesses;
	size_t capacity; /* of a->wait */
	struct base_err *err;
};

static enum base_status look_no_memory(struct look *l)
{
	return base_fail(l->err, BASE_ERR_NOMEM, "out of memory for a look at who waits");
}

/* ---- which processes ------------------------------------------------------------------------- */

static bool is_idle(const struct look *l, const char *name)
{
	for (size_t i = 0; i < l->o->nr_idle; i++) {
		if (!fnmatch(l->o->idle[i], name, 0))
			return true;
	}
	return false;
}

static bool in_scope(const struct look *l, pid_t pid)
{
	uint64_t value;
	return base_map_get(&l->scope, 0, (uint64_t)pid, &value);
}

/* Those that were asked for, and their descendants; or all. */
static enum base_status look_choose(struct look *l, struct base_map *chosen)
{
	size_t nr = 0;
	bool changed = !l->o->is_alone;
	enum base_status s = BASE_OK;
	const struct deadlock_listed *list =
		l->o->nr_pids && l->o->is_alone ? NULL : deadlock_world_list(l->a->world, &nr);
	for (size_t i = 0; s == BASE_OK && i < l->o->nr_pids; i++)
		s = base_map_put(chosen, 0, (uint64_t)l->o->pid[i], 1);
	for (size_t i = 0; s == BASE_OK && !l->o->nr_pids && i < nr; i++) {
		if (list[i].pid != getpid())
			s = base_map_put(chosen, 0, (uint64_t)list[i].pid, 1);
	}
	while (s == BASE_OK && l->o->nr_pids && changed) {
		changed = false;
		for (size_t i = 0; s == BASE_OK && i < nr; i++) {
			uint64_t unused;
			if (base_map_get(chosen, 0, (uint64_t)list[i].pid, &unused) ||
				!base_map_get(chosen, 0, (uint64_t)list[i].parent, &unused) ||
				list[i].pid == getpid())
				continue;
			s = base_map_put(chosen, 0, (uint64_t)list[i].pid, 1);
			changed = true;
		}
	}
	return s;
}

/* The threads that could wake those that we look at are looked at, too. */
static enum base_status choose_helpers(struct look *l, struct base_map *chosen)
{
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < l->accesses.nr; i++) {
		const struct deadlock_access *a = &l->accesses.access[i];
		for (size_t p = 0; s == BASE_OK && p < a->nr_pids; p++) {
			if (!in_scope(l, a->pid[p]) && a->pid[p] != getpid())
				s = base_map_put(chosen, 0, (uint64_t)a->pid[p], 1);
		}
	}
	for (size_t i = 0; s == BASE_OK && i < l->a->nr_waits; i++) {
		const struct deadlock_wait *w = &l->a->wait[i];
		if (w->owner_is_process && !in_scope(l, w->owner))
			s = base_map_put(chosen, 0, (uint64_t)w->owner, 1);
	}
	return s;
}

/* ---- their threads --------------------------------------------------------------------------- */

static enum base_status look_add_thread(struct look *l, const struct deadlock_sleeper *sleeper)
{
	struct deadlock_answer *a = l->a;
	enum base_status s = base_grow(&a->wait, &l->capacity, a->nr_waits + 1, sizeof *a->wait);
	if (s != BASE_OK)
		return s;
	struct deadlock_wait *w = &a->wait[a->nr_waits++];
	*w = (struct deadlock_wait){.thread = sleeper->thread,
		.call = -1,
		.blocked_since_ns = sleeper->since_ns,
		.kind = DEADLOCK_RUNNING};
	bool is_long = sleeper->nr_looks && l->o->now_ns >= sleeper->since_ns &&
		       l->o->now_ns - sleeper->since_ns >= l->o->threshold_ns;
	if (is_long)
		deadlock_wait_read(w);
	a->nr_long += is_long && deadlock_wait_is_blocked(w);
	return BASE_OK;
}

static enum base_status look_decode(struct look *l, size_t first)
{
	struct deadlock_tasks *tasks = deadlock_monitor_tasks(l->monitor);
	struct deadlock_answer *a = l->a;
	enum base_status s = BASE_OK;
	if (tasks && first < a->nr_waits)
		s = deadlock_tasks_registers(tasks, a->wait + first, a->nr_waits - first, l->err);
	for (size_t i = first; s == BASE_OK && i < a->nr_waits; i++) {
		struct deadlock_wait *w = &a->wait[i];
		if (w->kind == DEADLOCK_UNKNOWN && w->call >= 0)
			deadlock_wait_decode(a->world, w);
		a->nr_blocked += deadlock_wait_is_blocked(w);
	}
	return s;
}

static int look_by_tid(const void *a, const void *b)
{
	const struct deadlock_wait *x = a, *y = b;
	return (x->thread.tid > y->thread.tid) - (x->thread.tid < y->thread.tid);
}

/* Adds the threads of `chosen` to the answer, and `chosen` to the scope. */
static enum base_status look_add_threads(struct look *l, const struct base_map *chosen)
{
	size_t nr, first = l->a->nr_waits;
	const struct deadlock_sleeper *sleeper = deadlock_monitor_threads(l->monitor, &nr);
	enum base_status s = BASE_OK;
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		uint64_t value = 0;
		uint64_t pid = (uint64_t)sleeper[i].thread.pid;
		if (!base_map_get(chosen, 0, pid, &value))
			continue;
		if (!base_map_get(&l->scope, 0, pid, &value)) {
			/* the main thread's tid is the smallest: it comes first, and names the
			 * process */
			value = is_idle(l, sleeper[i].thread.name) ? 2 : 1;
			s = base_map_put(&l->scope, 0, pid, value);
			l->a->nr_processes += value == 1;
		}
		if (s == BASE_OK && value == 1)
			s = look_add_thread(l, &sleeper[i]);
	}
	if (s != BASE_OK)
		return look_no_memory(l);
	s = look_decode(l, first);
	if (l->a->nr_waits)
		qsort(l->a->wait, l->a->nr_waits, sizeof *l->a->wait, look_by_tid);
	return s;
}

static enum base_status look_collect(struct look *l)
{
	struct base_map chosen = {0};
	enum base_status s = look_choose(l, &chosen);
	if (s != BASE_OK)
		s = look_no_memory(l);
	for (int round = 0; s == BASE_OK && chosen.nr_used && round < ROUNDS_MAX; round++) {
		s = look_add_threads(l, &chosen);
		base_map_fini(&chosen);
		if (s == BASE_OK)
			s = deadlock_accesses_find(
				l->a->world, l->a->wait, l->a->nr_waits, &l->accesses, l->err);
		for (size_t i = 0; s == BASE_OK && i < l->a->nr_waits; i++)
			deadlock_accesses_own(&l->accesses, &l->a->wait[i]);
		if (s == BASE_OK && (s = choose_helpers(l, &chosen)) != BASE_OK)
			s = look_no_memory(l);
	}
	base_map_fini(&chosen);
	l->a->nr_blind = l->accesses.nr_blind;
	return s;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

/* Whoever was put on a processor since the monitor saw it asleep is awake. */
static bool drop_moved(struct look *l)
{
	bool dropped = false;
	for (size_t i = 0; i < l->a->nr_waits; i++) {
		struct deadlock_wait *w = &l->a->wait[i];
		uint64_t runs;
		if (l->a->hope[i] == DEADLOCK_LIVE || w->kind == DEADLOCK_SPIN)
			continue;
		if (!deadlock_runs_of(w->thread.pid, w->thread.tid, &runs) ||
			runs != w->thread.runs) {
			w->kind = DEADLOCK_RUNNING;
			dropped = true;
		}
	}
	return dropped;
}

/* Those that run and get nowhere. Where no copies can be made there are none to be found. */
static enum base_status add_spinners(
	struct look *l, struct deadlock_ahead **ahead, struct deadlock_key **word)
{
	struct deadlock_answer *a = l->a;
	size_t nr = 0, nr_words = 0;
	for (size_t i = 0; i < a->nr_waits; i++)
		nr += a->wait[i].kind == DEADLOCK_RUNNING && a->wait[i].thread.state == 'R';
	if (!l->o->finds_spinners || l->o->is_static || !nr)
		return BASE_OK;
	enum base_status s = deadlock_ahead_open(a->world, ahead, l->err);
	if (s != BASE_OK)
		return s == BASE_ERR_NOMEM ? s : BASE_OK;
	s = deadlock_find_spinners(a, *ahead, word, &nr_words, l->err);
	a->stopped_ns = deadlock_ahead_stopped_ns(*ahead);
	deadlock_ahead_watch(*ahead, *word, nr_words);
	if (s == BASE_OK && nr_words)
		s = deadlock_accesses_find(a->world, a->wait, a->nr_waits, &l->accesses, l->err);
	return s;
}

static enum base_status look_judge(struct look *l)
{
	struct deadlock_answer *a = l->a;
	struct deadlock_ahead *ahead = NULL;
	struct deadlock_key *word = NULL;
	a->hope = base_alloc((a->nr_waits + 1) * sizeof *a->hope);
	if (!a->hope)
		return look_no_memory(l);
	enum base_status s = add_spinners(l, &ahead, &word);
	if (s == BASE_OK)
		s = deadlock_close_world(a, &l->accesses, l->err);
	if (s == BASE_OK && drop_moved(l))
		s = deadlock_close_world(a, &l->accesses, l->err);
	if (s == BASE_OK && !l->o->is_static) {
		s = deadlock_foresee(a, NULL, ahead, &l->o->ahead, l->err);
		if (s == BASE_OK && a->run) /* some may have moved on meanwhile */
			s = deadlock_close_world(a, &l->accesses, l->err);
	}
	if (s == BASE_OK)
		s = deadlock_judge(a, &l->accesses, l->err);
	if (s == BASE_OK && (l->o->is_suspicious || l->o->nr_pids) && !l->o->is_static)
		s = deadlock_suspect(a, &l->accesses, ahead, l->o, l->err);
	deadlock_ahead_close(ahead);
	base_free(word);
	return s;
}

/* A thread that we stopped counts as having slept on; else one that is looked at would never be
 * old. */
static void forgive_stopped(struct look *l)
{
	for (size_t i = 0; l->a->run && i < l->a->nr_waits; i++) {
		if (l->a->run[i].runs)
			deadlock_monitor_forgive(l->monitor, &l->a->wait[i].thread);
	}
}

/* Stacks of all who are part of a finding. */
static void name_frames(struct deadlock_answer *a)
{
	for (size_t f = 0; f < a->nr_findings; f++) {
		for (uint32_t m = 0; m < a->finding[f].nr_members; m++) {
			struct deadlock_wait *w = &a->wait[a->finding[f].member[m]];
			struct deadlock_process *p =
				deadlock_world_process(a->world, w->thread.pid);
			if (p && !w->nr_frames)
				deadlock_frames_of(a->world, p, w);
			if (p)
				deadlock_python_frames(a->world, p, w);
		}
	}
}

/* (A monitor's owner is in the VM's own structures, where only its agents and jstack find it.) */
static pid_t look_find_java(struct deadlock_answer *a)
{
	pid_t last = 0;
	for (size_t i = 0; i < a->nr_waits; i++) {
		const pid_t pid = a->wait[i].thread.pid;
		struct deadlock_process *p =
			pid != last ? deadlock_world_process(a->world, pid) : NULL;
		last = pid;
		if (p)
			deadlock_process_regions(a->world, p);
		for (size_t r = 0; p && r < p->nr_regions; r++)
			if (strstr(p->region[r].path, "/libjvm.so"))
				return pid;
	}
	return 0;
}

/* The end of looking: what came of it, or nothing. */
static enum base_status answered(
	struct look *l, enum base_status s, uint64_t began_ns, struct deadlock_answer **ret)
{
	if (s != BASE_OK) {
		deadlock_answer_free(l->a);
		return s;
	}
	name_frames(l->a);
	l->a->java = look_find_java(l->a);
	l->a->elapsed_ns = os_time_ns(CLOCK_MONOTONIC) - began_ns;
	*ret = l->a;
	return BASE_OK;
}

enum base_status deadlock_look(struct deadlock_monitor *m, const struct deadlock_look_options *o,
	struct deadlock_answer **ret, struct base_err *err)
{
	uint64_t began_ns = os_time_ns(CLOCK_MONOTONIC);
	struct look l = {.monitor = m, .o = o, .err = err};
	*ret = NULL;
	l.a = base_alloc(sizeof *l.a);
	if (!l.a)
		return look_no_memory(&l);
	l.a->now_ns = o->now_ns;
	l.a->finds_spinners = o->finds_spinners;
	l.a->without_bpf = deadlock_monitor_without_bpf(m);
	enum base_status s = deadlock_world_open(&l.a->world, err);
	if (s == BASE_OK && deadlock_monitor_tasks(m)) {
		size_t nr;
		const struct deadlock_sleeper *thread = deadlock_monitor_threads(m, &nr);
		deadlock_world_use_tasks(l.a->world, deadlock_monitor_tasks(m), thread, nr);
	}
	if (s == BASE_OK)
		s = look_collect(&l);
	if (s == BASE_OK)
		s = look_judge(&l);
	forgive_stopped(&l);
	base_map_fini(&l.scope);
	return answered(&l, s, began_ns, ret);
}

/* ---- a core file ----------------------------------------------------------------------------- */

/* Only who owns what: files and other processes are not in it, and nothing can be run ahead. */
static enum base_status look_at_core(struct look *l)
{
	struct deadlock_answer *a = l->a;
	size_t nr;
	const struct deadlock_wait *w = deadlock_core_waits(a->core, &nr);
	enum base_status s = base_grow(&a->wait, &l->capacity, nr, sizeof *a->wait);
	if (s != BASE_OK)
		return look_no_memory(l);
	memcpy(a->wait, w, nr * sizeof *w);
	a->nr_waits = nr;
	a->nr_processes = 1;
	for (size_t i = 0; i < nr; i++) {
		if (a->wait[i].call >= 0)
			deadlock_wait_decode(a->world, &a->wait[i]);
		a->nr_blocked += deadlock_wait_is_blocked(&a->wait[i]);
	}
	a->nr_long = a->nr_blocked;
	s = deadlock_accesses_find(a->world, a->wait, nr, &l->accesses, l->err);
	a->hope = s == BASE_OK ? base_alloc((nr + 1) * sizeof *a->hope) : NULL;
	if (s == BASE_OK && !a->hope)
		return look_no_memory(l);
	if (s == BASE_OK)
		s = deadlock_close_world(a, &l->accesses, l->err);
	if (s == BASE_OK)
		s = deadlock_judge(a, &l->accesses, l->err);
	return s;
}

enum base_status deadlock_look_core(
	const char *path, struct deadlock_answer **ret, struct base_err *err)
{
	uint64_t began_ns = os_time_ns(CLOCK_MONOTONIC);
	struct look l = {.err = err};
	*ret = NULL;
	l.a = base_alloc(sizeof *l.a);
	if (!l.a)
		return look_no_memory(&l);
	enum base_status s = deadlock_core_open(path, &l.a->core, err);
	if (s == BASE_OK)
		s = deadlock_world_open_core(l.a->core, &l.a->world, err);
	if (s == BASE_OK)
		s = look_at_core(&l);
	return answered(&l, s, began_ns, ret);
}

struct deadlock_answer *deadlock_answer_free(struct deadlock_answer *a)
{
	if (!a)
		return NULL;
	base_free(a->wait);
	base_free(a->hope);
	base_free(a->run);
	base_free(a->edge);
	base_free(a->finding);
	deadlock_world_close(a->world);
	deadlock_core_close(a->core);
	base_free(a);
	return NULL;
}

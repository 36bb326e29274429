/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - the general resource graph of those who are stuck, and what its parts mean. */
#include "deadlock/private.h"

#include "deadlock/components.h"

#include <stdlib.h>
#include <string.h>

enum { MAY_EDGES_A_KEY = 64 };

struct judging {
	struct deadlock_answer *a;
	const struct deadlock_accesses *accesses;
	struct base_arena *arena;
	struct deadlock_edge *edge;
	size_t edge_capacity, nr_edges;
	struct deadlock_finding *finding;
	size_t finding_capacity, nr_findings;
	uint32_t *by_pid; /* indices of waits, sorted by pid */
	bool *found;      /* waits that are in a finding */
	bool has_spinner; /* some of those without hope spin: that is seen now, and not for ever */
};

static bool is_stuck(const struct judging *j, size_t i)
{
	return j->a->hope[i] != DEADLOCK_LIVE;
}

size_t deadlock_answer_find(const struct deadlock_answer *a, pid_t tid)
{
	size_t low = BASE_PARTITION(i, a->nr_waits, a->wait[i].thread.tid < tid);
	return low < a->nr_waits && a->wait[low].thread.tid == tid ? low : SIZE_MAX;
}

/* ---- owners that are gone -------------------------------------------------------------------- */

/* The process of a thread anywhere on this machine; 0: there is none. */
static pid_t verdict_process_of(pid_t tid)
{
	char text[4096];
	uint64_t pid = 0;
	if (os_proc_read(tid, "status", text, sizeof text) <= 0 ||
		!os_parse_field(text, "Tgid", 10, &pid))
		return 0;
	return (pid_t)pid;
}

static bool is_one_memory(const struct deadlock_answer *a, pid_t x, pid_t y)
{
	return x == y || (a->world && deadlock_world_memory_of(a->world, x) ==
					      deadlock_world_memory_of(a->world, y));
}

bool deadlock_owner_is_gone(const struct deadlock_answer *a, const struct deadlock_wait *w)
{
	pid_t pid;
	if (w->kind == DEADLOCK_JOIN || !w->owner || w->owner_is_process)
		return false;
	if (deadlock_world_core(a->world))
		return !deadlock_world_has_thread(a->world, w->thread.pid, w->owner);
	pid = verdict_process_of(w->owner);
	return !pid || (w->nr_keys && w->key[0].kind == DEADLOCK_KEY_FUTEX &&
			       !is_one_memory(a, pid, w->thread.pid));
}

/* Locks that are private to a process are its own threads'. */
size_t deadlock_answer_owner(const struct deadlock_answer *a, const struct deadlock_wait *w)
{
	size_t i = deadlock_answer_find(a, w->owner);
	bool is_private = w->nr_keys && (w->key[0].kind == DEADLOCK_KEY_FUTEX ||
						w->key[0].kind == DEADLOCK_KEY_THREAD_EXIT);
	return i != SIZE_MAX && is_private &&
			       !is_one_memory(a, a->wait[i].thread.pid, w->thread.pid)
		       ? SIZE_MAX
		       : i;
}

/* Was the lock copied by a fork while a thread of the parent, or of its parent, had it? */
static bool is_inherited(const struct deadlock_answer *a, const struct deadlock_wait *w)
{
	enum { GENERATIONS = 8 };
	pid_t of = deadlock_world_core(a->world) ? 0 : verdict_process_of(w->owner);
	pid_t pid = w->thread.pid;
	for (int i = 0; of && i < GENERATIONS && pid > 1; i++) {
		const struct deadlock_process *p = deadlock_world_process(a->world, pid);
		if (!p || p->is_gone)
			return false;
		pid = p->parent;
		if (pid == of)
			return true;
	}
	return false;
}

/* ---- edges ----------------------------------------------------------------------------------- */

static enum base_status verdict_add_edge(
	struct judging *j, size_t waiter, size_t producer, size_t key, enum deadlock_edge_why why)
{
	enum base_status s =
		base_grow(&j->edge, &j->edge_capacity, j->nr_edges + 1, sizeof *j->edge);
	if (s == BASE_OK)
		j->edge[j->nr_edges++] = (struct deadlock_edge){.waiter = (uint32_t)waiter,
			.producer = (uint32_t)producer,
			.key = (uint32_t)key,
			.why = why};
	return s;
}

static bool was_run(const struct judging *j, size_t i)
{
	return j->a->run && j->a->run[i].end != DEADLOCK_END_NONE;
}

static bool would(const struct judging *j, size_t i, const struct deadlock_key *key)
{
	for (size_t e = 0; was_run(j, i) && e < j->a->run[i].nr_events; e++) {
		if (deadlock_key_matches(key, &j->a->run[i].event[e].key))
			return true;
	}
	return false;
}

/* The first thread of a process in by_pid. */
static size_t verdict_first_of(const struct judging *j, pid_t pid)
{
	return BASE_PARTITION(i, j->a->nr_waits, j->a->wait[j->by_pid[i]].thread.pid < pid);
}

static size_t nr_threads_of(const struct judging *j, size_t first, pid_t pid)
{
	size_t n = 0;
	while (first + n < j->a->nr_waits && j->a->wait[j->by_pid[first + n]].thread.pid == pid)
		n++;
	return n;
}

/* Imagined to be done, what is done once is not done again: only who is at it can end it. And who
 * connects to his own listener would accept, had he connected. */
static bool may_wait_for_itself(const struct deadlock_wait *w)
{
	return w->kind == DEADLOCK_ONCE || w->kind == DEADLOCK_GUARD || w->kind == DEADLOCK_CONNECT;
}

/* From a wait to the threads of one process with access to its key. */
static enum base_status add_process_edges(struct judging *j, size_t i, size_t k, pid_t pid)
{
	const struct deadlock_wait *w = &j->a->wait[i];
	const struct deadlock_key *key = &w->key[k];
	size_t first = verdict_first_of(j, pid), nr = nr_threads_of(j, first, pid);
	bool is_exit = key->kind == DEADLOCK_KEY_PROCESS_EXIT;
	enum base_status s = BASE_OK;
	for (size_t t = 0; s == BASE_OK && t < nr; t++) {
		size_t p = j->by_pid[first + t];
		if (!is_stuck(j, p) || (p == i && !(may_wait_for_itself(w) && would(j, p, key))))
			continue;
		if (would(j, p, key))
			s = verdict_add_edge(j, i, p, k, DEADLOCK_EDGE_WOULD);
		else if (is_exit && nr == 1)
			s = verdict_add_edge(j, i, p, k, DEADLOCK_EDGE_EXITS);
		else if (nr <= MAY_EDGES_A_KEY &&
			 !(was_run(j, p) && deadlock_end_is_proper(j->a->run[p].end) && !is_exit))
			s = verdict_add_edge(j, i, p, k, DEADLOCK_EDGE_MAY);
	}
	return s;
}

/* Keys without a list of processes with access: all that were seen to produce them. */
static enum base_status add_seen_edges(struct judging *j, size_t i, size_t k)
{
	enum base_status s = BASE_OK;
	for (size_t p = 0; s == BASE_OK && j->a->run && p < j->a->nr_waits; p++) {
		if (p != i && is_stuck(j, p) && would(j, p, &j->a->wait[i].key[k]))
			s = verdict_add_edge(j, i, p, k, DEADLOCK_EDGE_WOULD);
	}
	return s;
}

static enum base_status add_owner_edges(struct judging *j, size_t i)
{
	const struct deadlock_wait *w = &j->a->wait[i];
	enum base_status s = BASE_OK;
	if (w->owner_is_process) {
		size_t first = verdict_first_of(j, w->owner),
		       nr = nr_threads_of(j, first, w->owner);
		if (nr != 1) /* which of its threads? */
			return add_process_edges(j, i, 0, w->owner);
		return is_stuck(j, j->by_pid[first])
			       ? verdict_add_edge(j, i, j->by_pid[first], 0, DEADLOCK_EDGE_OWNS)
			       : BASE_OK;
	}
	size_t p = deadlock_answer_owner(j->a, w);
	if (p != SIZE_MAX && is_stuck(j, p))
		s = verdict_add_edge(j, i, p, 0,
			w->kind == DEADLOCK_JOIN ? DEADLOCK_EDGE_EXITS : DEADLOCK_EDGE_OWNS);
	return s;
}

static enum base_status verdict_add_edges(struct judging *j, size_t i)
{
	const struct deadlock_wait *w = &j->a->wait[i];
	enum base_status s = BASE_OK;
	if (!is_stuck(j, i))
		return BASE_OK;
	if (w->owner_is_exact)
		return add_owner_edges(j, i);
	for (size_t k = 0; s == BASE_OK && k < w->nr_keys; k++) {
		const struct deadlock_access *access =
			deadlock_accesses_get(j->accesses, &w->key[k]);
		for (size_t n = 0; s == BASE_OK && access && n < access->nr_pids; n++)
			s = add_process_edges(j, i, k, access->pid[n]);
		if (s == BASE_OK && (!access || !access->nr_pids))
			s = add_seen_edges(j, i, k);
	}
	return s;
}

/* ---- findings -------------------------------------------------------------------------------- */

static enum base_status verdict_add_finding(struct judging *j, const struct deadlock_finding *f)
{
	enum base_status s = base_grow(
		&j->finding, &j->finding_capacity, j->nr_findings + 1, sizeof *j->finding);
	if (s == BASE_OK)
		j->finding[j->nr_findings++] = *f;
	for (uint32_t i = 0; s == BASE_OK && i < f->nr_members; i++)
		j->found[f->member[i]] = true;
	return s;
}

static bool is_member(const struct deadlock_finding *f, uint32_t i)
{
	for (uint32_t m = 0; m < f->nr_members; m++) {
		if (f->member[m] == i)
			return true;
	}
	return false;
}

/* A loop was seen now and then, not all the time: what is sure only if it goes on for ever is
 * probable. Locks' owners are recorded: whether they spin is no matter where they wait as well. */
static void doubt_spinners(const struct judging *j, struct deadlock_finding *f)
{
	bool is_owned = f->nr_edges > 0;
	for (uint32_t e = 0; e < f->nr_edges; e++) {
		const enum deadlock_edge_why why = j->edge[f->edge[e]].why;
		is_owned &= why == DEADLOCK_EDGE_OWNS || why == DEADLOCK_EDGE_EXITS;
	}
	for (uint32_t m = 0; m < f->nr_members; m++)
		is_owned &= j->a->wait[f->member[m]].kind != DEADLOCK_SPIN;
	if (j->has_spinner && !is_owned && f->sure == DEADLOCK_CERTAIN)
		f->sure = DEADLOCK_PROBABLE;
}

/* Its edges, whether another leaves it, and its members' order where each waits for one other. */
static enum base_status verdict_describe(
	struct judging *j, struct deadlock_finding *f, bool with_may)
{
	uint32_t *member = base_arena_alloc(j->arena, (f->nr_members + 1) * sizeof *member);
	uint32_t *edge = base_arena_alloc(j->arena, (j->nr_edges + 1) * sizeof *edge);
	uint32_t *next = base_alloc((j->a->nr_waits + 1) * sizeof *next);
	if (!member || !edge || !next) {
		base_free(next);
		return BASE_ERR_NOMEM;
	}
	memcpy(member, f->member, f->nr_members * sizeof *member);
	f->is_knot = f->is_simple = true;
	f->sure = DEADLOCK_CERTAIN;
	for (size_t e = 0; e < j->nr_edges; e++) {
		const struct deadlock_edge *x = &j->edge[e];
		if (!is_member(f, x->waiter))
			continue;
		if (!is_member(f, x->producer)) {
			f->is_knot = false;
		} else if (x->why != DEADLOCK_EDGE_MAY || with_may) {
			edge[f->nr_edges++] = (uint32_t)e;
			f->is_simple &= !next[x->waiter] || next[x->waiter] == x->producer + 1;
			next[x->waiter] = x->producer + 1;
		}
	}
	for (uint32_t m = 0; m < f->nr_members; m++) {
		if (j->a->hope[member[m]] == DEADLOCK_DOUBTFUL)
			f->sure = DEADLOCK_UNKNOWN_OUTCOME;
		else if (j->a->hope[member[m]] != DEADLOCK_STUCK && f->sure == DEADLOCK_CERTAIN)
			f->sure = DEADLOCK_PROBABLE;
	}
	if (f->is_simple && f->nr_edges) { /* round the cycle, from its smallest tid */
		uint32_t at = member[0];
		for (uint32_t m = 0; m < f->nr_members && next[at]; m++) {
			member[m] = at;
			at = next[at] - 1;
		}
	}
	f->member = member;
	f->edge = edge;
	base_free(next);
	return BASE_OK;
}

static enum base_status add_gone_owners(struct judging *j)
{
	enum base_status s = BASE_OK;
	for (size_t i = 0; s == BASE_OK && i < j->a->nr_waits; i++) {
		const struct deadlock_wait *w = &j->a->wait[i];
		if (!is_stuck(j, i) || !w->owner_is_exact ||
			deadlock_answer_owner(j->a, w) != SIZE_MAX ||
			!deadlock_owner_is_gone(j->a, w))
			continue;
		uint32_t *member = base_arena_alloc(j->arena, sizeof *member);
		if (!member)
			return BASE_ERR_NOMEM;
		*member = (uint32_t)i;
		struct deadlock_finding f = {.kind = is_inherited(j->a, w)
							     ? DEADLOCK_FINDING_INHERITED
							     : DEADLOCK_FINDING_ORPHANED,
			.member = member,
			.nr_members = 1,
			.is_knot = true};
		if (j->a->hope[i] != DEADLOCK_STUCK) /* a time limit ends it */
			f.sure = DEADLOCK_PROBABLE;
		s = verdict_add_finding(j, &f);
	}
	return s;
}

/* Is every key of every member something that only those who have it open, or its own end, can
 * produce? Then a cycle of "may" is a cycle: nobody else can. */
static bool is_closed_by_files(const struct judging *j, const struct deadlock_finding *f)
{
	for (uint32_t m = 0; m < f->nr_members; m++) {
		const struct deadlock_wait *w = &j->a->wait[f->member[m]];
		for (size_t k = 0; k < w->nr_keys; k++) {
			switch (w->key[k].kind) {
			case DEADLOCK_KEY_FUTEX:
			case DEADLOCK_KEY_FUTEX_SHARED:
				if (!w->owner_is_exact)
					return false;
				break;
			default:
				break;
			}
		}
	}
	return true;
}

/* Signals to condition variables or semaphores that those who could give them do not give: they
 * were run ahead to their ends. */
static bool is_lost_wakeup(const struct judging *j, const struct deadlock_finding *f)
{
	for (uint32_t m = 0; m < f->nr_members; m++) {
		enum deadlock_kind kind = j->a->wait[f->member[m]].kind;
		if (kind != DEADLOCK_CONDITION && kind != DEADLOCK_SEMAPHORE &&
			kind != DEADLOCK_FUTEX)
			return false;
		/* woken, it would wait again: it is what it looks at that is missing */
		if (!was_run(j, f->member[m]) || j->a->run[f->member[m]].again_is_same ||
			j->a->run[f->member[m]].end == DEADLOCK_END_LOOPS ||
			!deadlock_end_is_proper(j->a->run[f->member[m]].end))
			return false;
	}
	return f->nr_members > 0;
}

/* Proved but for a time limit: whoever could give what one of them waits for is one of them. */
static bool only_time_helps(const struct judging *j, const struct deadlock_finding *f)
{
	bool has_limit = false;
	for (uint32_t m = 0; m < f->nr_members; m++) {
		const struct deadlock_wait *w = &j->a->wait[f->member[m]];
		if (deadlock_wait_may_be_helped(j->a->world, w) ||
			deadlock_accesses_are_unsure(j->accesses, w))
			return false;
		has_limit |= w->is_timed;
	}
	return has_limit && f->is_knot && f->sure == DEADLOCK_PROBABLE &&
	       f->kind != DEADLOCK_FINDING_STUCK;
}

static enum base_status add_component(
	struct judging *j, const uint32_t *member, uint32_t nr, bool weak)
{
	struct deadlock_finding f = {
		.kind = DEADLOCK_FINDING_CYCLE, .member = member, .nr_members = nr};
	enum base_status s = verdict_describe(j, &f, weak);
	if (s != BASE_OK)
		return s;
	if (nr == 1)
		f.kind = DEADLOCK_FINDING_SELF;
	if (weak && !is_closed_by_files(j, &f))
		f.kind = DEADLOCK_FINDING_STUCK;
	if (weak && f.sure != DEADLOCK_CERTAIN && !only_time_helps(j, &f))
		return BASE_OK; /* no cycle that was seen, and somebody may still help */
	doubt_spinners(j, &f);
	return verdict_add_finding(j, &f);
}

/* Threads from which a member of a finding is reached: they wait behind it. */
static enum base_status mark_behind(struct judging *j, bool *behind)
{
	bool changed = true;
	memcpy(behind, j->found, j->a->nr_waits);
	while (changed) {
		changed = false;
		for (size_t e = 0; e < j->nr_edges; e++) {
			const struct deadlock_edge *x = &j->edge[e];
			if (behind[x->producer] && !behind[x->waiter])
				behind[x->waiter] = changed = true;
		}
	}
	return BASE_OK;
}

/* Strongly connected parts of the graph of seen edges; of all edges among those that no finding
 * explains yet. */
static enum base_status add_components(struct judging *j, bool weak)
{
	struct deadlock_components c = {0};
	size_t n = j->a->nr_waits, nr = 0;
	bool *behind = base_alloc(n + 1);
	struct deadlock_arc *arc = base_alloc((j->nr_edges + 1) * sizeof *arc);
	enum base_status s = behind && arc ? mark_behind(j, behind) : BASE_ERR_NOMEM;
	for (size_t e = 0; s == BASE_OK && e < j->nr_edges; e++) {
		const struct deadlock_edge *x = &j->edge[e];
		if (weak ? !behind[x->waiter] && !behind[x->producer] : x->why != DEADLOCK_EDGE_MAY)
			arc[nr++] = (struct deadlock_arc){x->waiter, x->producer};
	}
	if (s == BASE_OK)
		s = deadlock_components_find(n, arc, nr, &c);
	for (size_t i = 0; s == BASE_OK && i < c.nr; i++) {
		const uint32_t *member = &c.member[c.first[i]];
		uint32_t size = c.first[i + 1] - c.first[i];
		if (size > 1 || c.has_loop[i])
			s = add_component(j, member, size, weak);
	}
	deadlock_components_fini(&c);
	base_free(behind);
	base_free(arc);
	return s;
}

/* Is somebody of a finding there who could, once it goes on, wake it in another turn than the one
 * that was seen? Then it waits behind them. */
static enum base_status add_hopes(struct judging *j, uint32_t i, bool *has_edge)
{
	const struct deadlock_wait *w = &j->a->wait[i];
	enum base_status s = BASE_OK;
	for (size_t k = 0; k < w->nr_keys; k++) {
		const struct deadlock_access *access =
			deadlock_accesses_get(j->accesses, &w->key[k]);
		for (size_t n = 0; access && n < access->nr_pids; n++) {
			size_t first = verdict_first_of(j, access->pid[n]);
			size_t nr = nr_threads_of(j, first, access->pid[n]);
			for (size_t t = 0; s == BASE_OK && t < nr; t++) {
				uint32_t p = j->by_pid[first + t];
				if (p == i || !j->found[p] ||
					(was_run(j, p) && j->a->run[p].end == DEADLOCK_END_EXITED))
					continue;
				s = verdict_add_edge(j, i, p, k, DEADLOCK_EDGE_MAY);
				has_edge[i] = true;
			}
		}
	}
	return s;
}

/* Those whom nobody would wake: everybody who could was run ahead, and did not. By process. */
static enum base_status add_sinks(struct judging *j)
{
	size_t n = j->a->nr_waits;
	bool *has_edge = base_alloc(n + 1);
	enum base_status s = has_edge ? BASE_OK : BASE_ERR_NOMEM;
	for (size_t e = 0; s == BASE_OK && e < j->nr_edges; e++)
		has_edge[j->edge[e].waiter] = true;
	for (uint32_t i = 0; s == BASE_OK && i < n; i++) {
		if (j->a->hope[i] == DEADLOCK_STUCK && !has_edge[i] && !j->found[i])
			s = add_hopes(j, i, has_edge);
	}
	for (size_t i = 0; s == BASE_OK && i < n;) {
		pid_t pid = j->a->wait[j->by_pid[i]].thread.pid;
		uint32_t *member = base_arena_alloc(j->arena, (n - i) * sizeof *member);
		struct deadlock_finding f = {
			.kind = DEADLOCK_FINDING_STUCK, .member = member, .is_knot = true};
		for (; member && i < n && j->a->wait[j->by_pid[i]].thread.pid == pid; i++) {
			uint32_t w = j->by_pid[i];
			if (j->a->hope[w] == DEADLOCK_STUCK && !has_edge[w] && !j->found[w])
				member[f.nr_members++] = w;
		}
		f.is_lost_wakeup = is_lost_wakeup(j, &f);
		doubt_spinners(j, &f);
		s = !member ? BASE_ERR_NOMEM : f.nr_members ? verdict_add_finding(j, &f) : BASE_OK;
	}
	base_free(has_edge);
	return s;
}

static void count_behind(struct judging *j, struct deadlock_finding *f, bool *behind)
{
	bool changed = true;
	memset(behind, 0, j->a->nr_waits);
	for (uint32_t m = 0; m < f->nr_members; m++)
		behind[f->member[m]] = true;
	while (changed) {
		changed = false;
		for (size_t e = 0; e < j->nr_edges; e++) {
			const struct deadlock_edge *x = &j->edge[e];
			if (behind[x->producer] && !behind[x->waiter]) {
				behind[x->waiter] = changed = true;
				f->nr_behind++;
			}
		}
	}
}

static int by_sureness(const void *a, const void *b)
{
	const struct deadlock_finding *x = a, *y = b;
	if (x->sure != y->sure)
		return x->sure < y->sure ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->member[0] > y->member[0]) - (x->member[0] < y->member[0]);
}

bool deadlock_finding_left_ns(
	const struct deadlock_answer *a, const struct deadlock_finding *f, uint64_t *ret_ns)
{
	bool has_limit = false;
	*ret_ns = UINT64_MAX;
	for (uint32_t m = 0; m < f->nr_members; m++) {
		const struct deadlock_wait *w = &a->wait[f->member[m]];
		if (!w->is_timed)
			continue;
		has_limit = true;
		if (!w->limit_ns)
			continue; /* nobody knows how long */
		uint64_t slept_ns = w->limit_is_left || a->now_ns < w->blocked_since_ns
					    ? 0
					    : a->now_ns - w->blocked_since_ns;
		const uint64_t left_ns = w->limit_ns > slept_ns ? w->limit_ns - slept_ns : 0;
		*ret_ns = left_ns < *ret_ns ? left_ns : *ret_ns;
	}
	return has_limit;
}

/* A thread that spins runs all the time: the time since it last ran tells nothing. */
uint64_t deadlock_finding_print(const struct deadlock_answer *a, const struct deadlock_finding *f)
{
	uint64_t all = 0;
	for (uint32_t m = 0; m < f->nr_members; m++) {
		const struct deadlock_wait *w = &a->wait[f->member[m]];
		const uint64_t since_ns = w->kind == DEADLOCK_SPIN ? 0 : w->blocked_since_ns;
		uint64_t h = base_hash_u64((uint64_t)w->thread.tid);
		h = base_hash_u64(h ^ w->thread.start_ticks);
		all += base_hash_u64(h ^ since_ns); /* in any order */
	}
	return all;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum base_status sort_by_pid(struct judging *j)
{
	size_t n = j->a->nr_waits;
	uint64_t *order = base_alloc((n + 1) * sizeof *order);
	j->by_pid = base_alloc((n + 1) * sizeof *j->by_pid);
	if (!order || !j->by_pid) {
		base_free(order);
		return BASE_ERR_NOMEM;
	}
	for (size_t i = 0; i < n; i++)
		order[i] = (uint64_t)j->a->wait[i].thread.pid << 32 | i;
	if (n)
		qsort(order, n, sizeof *order, deadlock_by_u64);
	for (size_t i = 0; i < n; i++)
		j->by_pid[i] = (uint32_t)order[i];
	base_free(order);
	return BASE_OK;
}

enum base_status deadlock_judge(
	struct deadlock_answer *a, const struct deadlock_accesses *accesses, struct base_err *err)
{
	struct judging j = {.a = a, .accesses = accesses, .arena = deadlock_world_arena(a->world)};
	enum base_status s = sort_by_pid(&j);
	j.found = base_alloc(a->nr_waits + 1);
	if (!j.found)
		s = BASE_ERR_NOMEM;
	for (size_t i = 0; s == BASE_OK && i < a->nr_waits; i++)
		s = verdict_add_edges(&j, i);
	for (size_t i = 0; i < a->nr_waits; i++)
		j.has_spinner |= a->wait[i].kind == DEADLOCK_SPIN && is_stuck(&j, i);
	if (s == BASE_OK)
		s = add_gone_owners(&j);
	if (s == BASE_OK)
		s = add_components(&j, false);
	if (s == BASE_OK)
		s = add_sinks(&j);
	if (s == BASE_OK)
		s = add_components(&j, true);
	for (size_t i = 0; s == BASE_OK && i < j.nr_findings; i++)
		count_behind(&j, &j.finding[i], j.found);
	if (s == BASE_OK && j.nr_findings)
		qsort(j.finding, j.nr_findings, sizeof *j.finding, by_sureness);
	base_free(j.by_pid);
	base_free(j.found);
	base_free(a->edge);
	base_free(a->finding);
	a->edge = j.edge;
	a->nr_edges = j.nr_edges;
	a->finding = j.finding;
	a->nr_findings = j.nr_findings;
	return s == BASE_OK ? s : base_fail(err, s, "out of memory for the graph of who waits");
}

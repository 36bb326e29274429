/* SPDX-License-Identifier: Apache-2.0 */
/*
 * omp.c - OpenMP, as gcc calls libgomp: parallel regions, barriers, critical sections,
 * tasks.
 *
 * Its threads wait in libgomp with instructions of its own, spinning or in the kernel; without this
 * they would seem to compute. What is told of it is in runtime/openmp/team.h; critical sections are
 * locks. LLVM's runtime has libgomp's functions, too, and tells of regions and tasks by itself
 * (runtime/openmp/ompt.c): only its locks are told here.
 */
#include "preload/lock.h"
#include "runtime/openmp/omp.h"
#include "runtime/openmp/team.h"

#include <string.h>

#ifndef PRELOAD_STATIC

/* of the flags of tasks (gcc's gomp-constants.h) */
enum { TASK_NO_GROUP = 0x800, TASK_REDUCTION = 0x1000, TASK_DETACH = 0x2000 };

/* ---- parallel regions ------------------------------------------------------------------------ */

struct region {
	uintptr_t *reductions; /* first word of the data, where libgomp looks for them */
	void (*f)(void *);
	void *data;
	struct team *team; /* NULL: with one thread, or too deep */
	const struct team_thread *master;
	const struct preload_omp *omp;
	uint64_t site;
};

static void omp_work(struct region *r)
{
	bool is_master = r->master == team_self();
	struct team *team = r->team;
	uint64_t site = r->site;
	if (is_master) {
		team = team_master_begin(team,
			r->omp->omp_get_num_threads ? (uint32_t)r->omp->omp_get_num_threads() : 0);
		team_self()->team = team;
	} else {
		__atomic_fetch_add(&team->nr_workers, 1, __ATOMIC_RELAXED);
		team_self()->wait.what = TEAM_NOT;
		PRELOAD_RECORD(token_take, team_object(&team->begin), 1, site);
	}
	r->f(r->data);
	if (!team)
		return;
	if (is_master) {
		team_wait_for(&team->end, site);
	} else { /* the region is not over before this returns */
		team_give(&team->end, 1, site);
		team_wait_begin(TEAM_FOR_BEGIN, team_object(&team->begin), site);
	}
}

static void run_region(void *argument)
{
	struct region *r = argument;
	struct team *outer_team = team_self()->team;
	struct tokens *outer_group = team_self()->group;
	team_self()->team = r->team;
	team_self()->group = NULL;
	team_self()->depth++;
	if (r->team)
		omp_work(r);
	else
		r->f(r->data);
	team_self()->depth--;
	team_self()->group = outer_group;
	/* what a pool's worker does until the next region, tasks, is still of this one */
	team_self()->team = r->master == team_self() ? outer_team : r->team;
}

static void region_begin(struct region *r, unsigned nr_threads)
{
	uint32_t nr = nr_threads                    ? nr_threads
		      : r->omp->omp_get_max_threads ? (uint32_t)r->omp->omp_get_max_threads()
						    : 1;
	r->master = team_self();
	r->team = team_region_begin(nr, r->site);
}

static void region_end(struct region *r)
{
	struct team *team = r->team;
	team_self()->nr_levels--;
	if (!team)
		return;
	if (team_self()->wait.what != TEAM_NOT)
		team_wait_end(&team->end, r->site);
	if (team->begin.due > team->nr_workers) /* fewer came than were asked for */
		PRELOAD_RECORD(token_take, team_object(&team->begin),
			team->begin.due - team->nr_workers, r->site);
}

/* REGION(result, name, parameters, arguments, what to do with the result) */
#define REGION(type, name, parameters, arguments, keep, give_back)                                 \
	PRELOAD_EXPORT type name parameters;                                                       \
	PRELOAD_EXPORT type name parameters                                                        \
	{                                                                                          \
		const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);                    \
		struct region region = {.f = f, .data = data, .omp = omp, .site = PRELOAD_SITE};   \
		const void *reductions = data;                                                     \
		bool on = preload_active() && !omp->tells;                                         \
		team_self()->site = region.site;                                                   \
		(void)reductions;                                                                  \
		if (on) {                                                                          \
			f = run_region, data = &region;                                            \
			region_begin(&region, nr_threads);                                         \
		}                                                                                  \
		keep omp->name arguments;                                                          \
		if (on)                                                                            \
			region_end(&region);                                                       \
		give_back;                                                                         \
	}
#define FORK void (*f)(void *), void *data, unsigned nr_threads
#define NOTHING_KEPT
#define NOTHING_BACK
#define FORKED(name, parameters, arguments)                                                        \
	REGION(void, name, parameters, arguments, NOTHING_KEPT, NOTHING_BACK)
#define LOOP_REGION(name)                                                                          \
	FORKED(name, (FORK, long from, long to, long by, long chunk, unsigned flags),              \
		(f, data, nr_threads, from, to, by, chunk, flags))
#define RUNTIME_REGION(name)                                                                       \
	FORKED(name, (FORK, long from, long to, long by, unsigned flags),                          \
		(f, data, nr_threads, from, to, by, flags))
FORKED(GOMP_parallel, (FORK, unsigned flags), (f, data, nr_threads, flags))
REGION(unsigned, GOMP_parallel_reductions, (FORK, unsigned flags), (f, data, nr_threads, flags),
	memcpy(&region.reductions, reductions, sizeof region.reductions);
	unsigned result =, return result)
FORKED(GOMP_parallel_sections, (FORK, unsigned count, unsigned flags),
	(f, data, nr_threads, count, flags))
LOOP_REGION(GOMP_parallel_loop_static)
LOOP_REGION(GOMP_parallel_loop_dynamic)
LOOP_REGION(GOMP_parallel_loop_guided)
LOOP_REGION(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP_REGION(GOMP_parallel_loop_nonmonotonic_guided)
RUNTIME_REGION(GOMP_parallel_loop_runtime)
RUNTIME_REGION(GOMP_parallel_loop_nonmonotonic_runtime)
RUNTIME_REGION(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/* ---- barriers -------------------------------------------------------------------------------- */

#define BARRIER(type, name, parameters, arguments, keep, give_back)                                \
	PRELOAD_EXPORT type name parameters;                                                       \
	PRELOAD_EXPORT type name parameters                                                        \
	{                                                                                          \
		const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);                    \
		uint64_t site = PRELOAD_SITE;                                                      \
		team_self()->site = site;                                                          \
		if (!omp->tells)                                                                   \
			team_barrier_begin(site);                                                  \
		keep omp->name arguments;                                                          \
		if (!omp->tells)                                                                   \
			team_barrier_end(site);                                                    \
		give_back;                                                                         \
	}
#define PLAIN_BARRIER(name) BARRIER(void, name, (void), (), NOTHING_KEPT, NOTHING_BACK)
#define CANCELLED(name)     BARRIER(bool, name, (void), (), bool result =, return result)
PLAIN_BARRIER(GOMP_barrier)
PLAIN_BARRIER(GOMP_loop_end)
PLAIN_BARRIER(GOMP_sections_end)
CANCELLED(GOMP_barrier_cancel)
CANCELLED(GOMP_loop_end_cancel)
CANCELLED(GOMP_sections_end_cancel)
BARRIER(void, GOMP_workshare_task_reduction_unregister, (bool cancelled), (cancelled), NOTHING_KEPT,
	NOTHING_BACK)

/* The thread that does it learns so from the result; the others have waited for its data. */
PRELOAD_EXPORT void *GOMP_single_copy_start(void);
PRELOAD_EXPORT void *GOMP_single_copy_start(void)
{
	const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);
	struct team *team = preload_active() && !omp->tells ? team_self()->team : NULL;
	uint64_t site = team_self()->site = PRELOAD_SITE;
	if (!team)
		return omp->GOMP_single_copy_start();
	team_wait_for(&team->copy, site);
	void *data = omp->GOMP_single_copy_start();
	team_self()->wait.what = TEAM_NOT;
	PRELOAD_RECORD(token_take, team_object(&team->copy), data ? 1 : 0, site);
	return data;
}

PRELOAD_EXPORT void GOMP_single_copy_end(void *data);
PRELOAD_EXPORT void GOMP_single_copy_end(void *data)
{
	const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);
	team_self()->site = PRELOAD_SITE;
	if (team_self()->team && preload_active() && !omp->tells && omp->omp_get_num_threads)
		PRELOAD_RECORD(token_give, team_object(&team_self()->team->copy),
			(uint64_t)omp->omp_get_num_threads() - 1, PRELOAD_SITE);
	omp->GOMP_single_copy_end(data);
}

/* The turn goes from iteration to iteration: a thread that has had it gives it on. */
#define ORDERED(begin, end, parameters, arguments, library)                                        \
	PRELOAD_EXPORT void begin parameters;                                                      \
	PRELOAD_EXPORT void begin parameters                                                       \
	{                                                                                          \
		const struct preload_omp *omp = library(PRELOAD_CALLER);                           \
		struct team *team = preload_active() ? team_self()->team : NULL;                   \
		uint64_t site = PRELOAD_SITE;                                                      \
		if (team)                                                                          \
			team_wait_for(&team->ordered, site);                                       \
		omp->begin arguments;                                                              \
		if (team) {                                                                        \
			team_self()->wait.what = TEAM_NOT;                                         \
			PRELOAD_RECORD(token_take, team_object(&team->ordered), 1, site);          \
		}                                                                                  \
	}                                                                                          \
	PRELOAD_EXPORT void end parameters;                                                        \
	PRELOAD_EXPORT void end parameters                                                         \
	{                                                                                          \
		if (team_self()->team && preload_active())                                         \
			PRELOAD_RECORD(token_give, team_object(&team_self()->team->ordered), 1,    \
				PRELOAD_SITE);                                                     \
		library(PRELOAD_CALLER)->end arguments;                                            \
	}
ORDERED(GOMP_ordered_start, GOMP_ordered_end, (void), (), preload_omp_of)
ORDERED(__kmpc_ordered, __kmpc_end_ordered, (void *place, int32_t thread), (place, thread),
	preload_kmp_of)

/* ---- locks ----------------------------------------------------------------------------------- */

/* The threads in unnamed critical sections, or before them. */
static uint32_t unnamed_critical_section, unnamed_atomic_section;

PRELOAD_INLINE uint64_t lock_of(const volatile void *address)
{
	return preload_object(address, TRACE_OBJECT_mutex, false);
}

#define LOCK(name, parameters, arguments, object, is_taken)                                        \
	PRELOAD_EXPORT void name parameters;                                                       \
	PRELOAD_EXPORT void name parameters                                                        \
	{                                                                                          \
		const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);                    \
		uint64_t site = PRELOAD_SITE;                                                      \
		bool taken = is_taken, on = preload_active();                                      \
		if (on && taken)                                                                   \
			PRELOAD_RECORD_WAIT(lock_wait, site, lock_of(object));                     \
		omp->name arguments;                                                               \
		if (on)                                                                            \
			PRELOAD_RECORD(lock_acquire, lock_of(object), site);                       \
	}
#define UNLOCK(name, parameters, arguments, object, before)                                        \
	PRELOAD_EXPORT void name parameters;                                                       \
	PRELOAD_EXPORT void name parameters                                                        \
	{                                                                                          \
		const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);                    \
		before;                                                                            \
		if (preload_active())                                                              \
			PRELOAD_RECORD(lock_release, lock_of(object), PRELOAD_SITE);               \
		omp->name arguments;                                                               \
	}
#define ENTER(n) (__atomic_fetch_add(&(n), 1, __ATOMIC_RELAXED) != 0)
#define LEAVE(n) __atomic_fetch_sub(&(n), 1, __ATOMIC_RELAXED)
LOCK(GOMP_critical_start, (void), (), &unnamed_critical_section, ENTER(unnamed_critical_section))
UNLOCK(GOMP_critical_end, (void), (), &unnamed_critical_section, LEAVE(unnamed_critical_section))
LOCK(GOMP_atomic_start, (void), (), &unnamed_atomic_section, ENTER(unnamed_atomic_section))
UNLOCK(GOMP_atomic_end, (void), (), &unnamed_atomic_section, LEAVE(unnamed_atomic_section))
LOCK(GOMP_critical_name_start, (void **lock), (lock), lock, preload_omp_enter_named(omp, lock))
UNLOCK(GOMP_critical_name_end, (void **lock), (lock), lock, preload_omp_leave_named(omp, lock))

/* As clang and Intel's compilers call them; the runtime's own word of a release (OMPT's
 * mutex_released) comes when others may have the lock already. */
#define KMP_LOCK(name, parameters, arguments)                                                      \
	PRELOAD_EXPORT void name parameters;                                                       \
	PRELOAD_EXPORT void name parameters                                                        \
	{                                                                                          \
		const struct preload_omp *omp = preload_kmp_of(PRELOAD_CALLER);                    \
		uint64_t site = PRELOAD_SITE;                                                      \
		bool taken = preload_omp_enter(lock), on = preload_active();                       \
		if (on && taken)                                                                   \
			PRELOAD_RECORD_WAIT(lock_wait, site, lock_of(lock));                       \
		omp->name arguments;                                                               \
		if (on)                                                                            \
			PRELOAD_RECORD(lock_acquire, lock_of(lock), site);                         \
	}
KMP_LOCK(__kmpc_critical, (void *place, int32_t thread, void *lock), (place, thread, lock))
KMP_LOCK(__kmpc_critical_with_hint, (void *place, int32_t thread, void *lock, uint32_t hint),
	(place, thread, lock, hint))

PRELOAD_EXPORT void __kmpc_end_critical(void *place, int32_t thread, void *lock);
PRELOAD_EXPORT void __kmpc_end_critical(void *place, int32_t thread, void *lock)
{
	preload_omp_leave(lock);
	if (preload_active())
		PRELOAD_RECORD(lock_release, lock_of(lock), PRELOAD_SITE);
	preload_kmp_of(PRELOAD_CALLER)->__kmpc_end_critical(place, thread, lock);
}

/* omp_set_lock() and omp_set_nest_lock(), of what tries it. */
#define SET_LOCK(name, test)                                                                       \
	PRELOAD_EXPORT void name(void *lock);                                                      \
	PRELOAD_EXPORT void name(void *lock)                                                       \
	{                                                                                          \
		const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);                    \
		uint64_t site = PRELOAD_SITE;                                                      \
		if (!preload_active()) {                                                           \
			omp->name(lock);                                                           \
			return;                                                                    \
		}                                                                                  \
		if (!omp->test(lock)) {                                                            \
			PRELOAD_RECORD_WAIT(lock_wait, site, lock_of(lock));                       \
			omp->name(lock);                                                           \
		}                                                                                  \
		PRELOAD_RECORD(lock_acquire, lock_of(lock), site);                                 \
	}
#define TEST_LOCK(name)                                                                            \
	PRELOAD_EXPORT int name(void *lock);                                                       \
	PRELOAD_EXPORT int name(void *lock)                                                        \
	{                                                                                          \
		int result = preload_omp_of(PRELOAD_CALLER)->name(lock);                           \
		if (preload_active()) {                                                            \
			if (!result) {                                                             \
				PRELOAD_RECORD(lock_fail, lock_of(lock), PRELOAD_SITE);            \
				return result;                                                     \
			}                                                                          \
			PRELOAD_RECORD(lock_try, lock_of(lock), PRELOAD_SITE);                     \
			PRELOAD_RECORD(lock_acquire, lock_of(lock), PRELOAD_SITE);                 \
		}                                                                                  \
		return result;                                                                     \
	}
SET_LOCK(omp_set_lock, omp_test_lock)
SET_LOCK(omp_set_nest_lock, omp_test_nest_lock)
TEST_LOCK(omp_test_lock)
TEST_LOCK(omp_test_nest_lock)
UNLOCK(omp_unset_lock, (void *lock), (lock), lock, NOTHING_BACK)
UNLOCK(omp_unset_nest_lock, (void *lock), (lock), lock, NOTHING_BACK)
SET_LOCK(omp_set_lock_, omp_test_lock_)
SET_LOCK(omp_set_nest_lock_, omp_test_nest_lock_)
TEST_LOCK(omp_test_lock_)
TEST_LOCK(omp_test_nest_lock_)
UNLOCK(omp_unset_lock_, (void *lock), (lock), lock, NOTHING_BACK)
UNLOCK(omp_unset_nest_lock_, (void *lock), (lock), lock, NOTHING_BACK)

/* ---- tasks ----------------------------------------------------------------------------------- */

/* What libgomp is given as a task's data, and what it copies it to, the data behind. */
struct task {
	/* of a loop's: where libgomp puts the iterations, and finds the reductions */
	unsigned long long from, to;
	uintptr_t *reductions;
	void (*f)(void *);
	void (*copy)(void *, void *); /* NULL: bytes */
	void *data;                   /* whose it is copied from */
	size_t nr_bytes, data_at;
	struct team *team;
	struct tokens *parent, *group; /* what waits for it */
	uint64_t site;
	bool is_of_loop;
};

static void omp_task_over(const struct task *k)
{
	team_give(k->parent, 1, k->site);
	if (k->group)
		team_give(k->group, 1, k->site);
}

static void run_task(void *argument)
{
	struct task *k = argument;
	struct team_wait waited = team_self()->wait;
	struct team *outer_team = team_self()->team;
	struct tokens *outer_group = team_self()->group;
	void *data = (char *)argument + k->data_at;
	if (k->is_of_loop)
		memcpy(data, argument, 2 * sizeof k->from);
	const struct task own = *k; /* libgomp may give it back before it is over */
	team_self()->wait.what = TEAM_NOT;
	team_self()->team = own.team;
	team_self()->group = own.group;
	team_self()->depth++;
	PRELOAD_RECORD(token_take, team_object(&own.team->tasks), 1, own.site);
	own.f(data);
	team_self()->depth--;
	team_self()->group = outer_group;
	team_self()->team = outer_team;
	omp_task_over(&own);
	if (waited.what == TEAM_FOR_BEGIN) /* it had left the region already */
		team_give(&own.team->end, 1, own.site);
	team_wait_begin(waited.what, waited.object, waited.site);
}

/* A task is made: libgomp copies its data. */
static void copy_task(void *to, void *from)
{
	struct task *k = to;
	struct team_wait waited = team_self()->wait;
	memcpy(k, from, sizeof *k);
	if (k->copy)
		k->copy((char *)to + k->data_at, k->data);
	else if (k->nr_bytes)
		memcpy((char *)to + k->data_at, k->data, k->nr_bytes);
	__atomic_fetch_add(&k->parent->due, 1, __ATOMIC_RELAXED);
	if (k->group)
		__atomic_fetch_add(&k->group->due, 1, __ATOMIC_RELAXED);
	if (waited.what != TEAM_NOT) /* in the call of a loop of tasks */
		PRELOAD_RECORD(token_take, waited.object, 0, waited.site);
	PRELOAD_RECORD(token_give, team_object(&k->team->tasks), 1, k->site);
	team_wait_begin(waited.what, waited.object, waited.site);
}

static struct task make_task(void (*f)(void *), void *data, void (*copy)(void *, void *),
	long *nr_bytes, long *align, uint64_t site)
{
	if (*align < (long)_Alignof(struct task))
		*align = (long)_Alignof(struct task);
	struct task k = {.f = f,
		.copy = copy,
		.data = data,
		.nr_bytes = (size_t)*nr_bytes,
		.data_at = (sizeof k + (size_t)*align - 1) / (size_t)*align * (size_t)*align,
		.team = team_self()->team,
		.parent = team_innermost(team_self()->children),
		.group = team_self()->group,
		.site = site};
	*nr_bytes += (long)k.data_at;
	team_name_tokens(k.parent, "child tasks");
	team_gets_task(k.team);
	return k;
}

PRELOAD_EXPORT void GOMP_task(void (*f)(void *), void *data, void (*copy)(void *, void *),
	long nr_bytes, long align, bool is_deferred, unsigned flags, void **depend, int priority,
	void *detach);
PRELOAD_EXPORT void GOMP_task(void (*f)(void *), void *data, void (*copy)(void *, void *),
	long nr_bytes, long align, bool is_deferred, unsigned flags, void **depend, int priority,
	void *detach)
{
	const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);
	team_self()->site = PRELOAD_SITE;
	if (!preload_active() || omp->tells || !team_self()->team || flags & TASK_DETACH) {
		omp->GOMP_task(f, data, copy, nr_bytes, align, is_deferred, flags, depend, priority,
			detach);
		return;
	}
	struct task task = make_task(f, data, copy, &nr_bytes, &align, PRELOAD_SITE);
	omp->GOMP_task(run_task, &task, copy_task, nr_bytes, align, is_deferred, flags, depend,
		priority, detach);
}

/* Waits for all of its tasks, unless it is said not to. */
#define TASK_LOOP(name, type)                                                                      \
	PRELOAD_EXPORT void name(void (*f)(void *), void *data, void (*copy)(void *, void *),      \
		long nr_bytes, long align, unsigned flags, unsigned long nr_tasks, int priority,   \
		type from, type to, type by);                                                      \
	PRELOAD_EXPORT void name(void (*f)(void *), void *data, void (*copy)(void *, void *),      \
		long nr_bytes, long align, unsigned flags, unsigned long nr_tasks, int priority,   \
		type from, type to, type by)                                                       \
	{                                                                                          \
		const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);                    \
		uint64_t site = team_self()->site = PRELOAD_SITE;                                  \
		if (!preload_active() || omp->tells || !team_self()->team) {                       \
			omp->name(f, data, copy, nr_bytes, align, flags, nr_tasks, priority, from, \
				to, by);                                                           \
			return;                                                                    \
		}                                                                                  \
		struct tokens *outer = team_self()->group,                                         \
			      *group = team_innermost(team_self()->groups);                        \
		if (!(flags & TASK_NO_GROUP)) {                                                    \
			team_self()->group = group;                                                \
			team_name_tokens(group, "task group");                                     \
		}                                                                                  \
		struct task task = make_task(f, data, copy, &nr_bytes, &align, site);              \
		task.is_of_loop = true;                                                            \
		if (flags & TASK_REDUCTION)                                                        \
			memcpy(&task.reductions, (char *)data + 2 * sizeof from,                   \
				sizeof task.reductions);                                           \
		if (team_self()->group == group)                                                   \
			team_wait_for(group, site);                                                \
		omp->name(run_task, &task, copy_task, nr_bytes, align, flags, nr_tasks, priority,  \
			from, to, by);                                                             \
		if (team_self()->group == group)                                                   \
			team_wait_end(group, site);                                                \
		team_self()->group = outer;                                                        \
	}
TASK_LOOP(GOMP_taskloop, long)
TASK_LOOP(GOMP_taskloop_ull, unsigned long long)

#define TASKS_WAIT(name, parameters, arguments, whose)                                             \
	PRELOAD_EXPORT void name parameters;                                                       \
	PRELOAD_EXPORT void name parameters                                                        \
	{                                                                                          \
		const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);                    \
		uint64_t site = team_self()->site = PRELOAD_SITE;                                  \
		struct tokens *of = omp->tells ? NULL : team_await(whose, site);                   \
		omp->name arguments;                                                               \
		if (of)                                                                            \
			team_wait_end(of, site);                                                   \
	}
TASKS_WAIT(GOMP_taskwait, (void), (), team_innermost(team_self()->children))
TASKS_WAIT(GOMP_taskwait_depend, (void **depend), (depend), team_innermost(team_self()->children))

PRELOAD_EXPORT void GOMP_taskgroup_start(void);
PRELOAD_EXPORT void GOMP_taskgroup_start(void)
{
	const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);
	team_self()->site = PRELOAD_SITE;
	if (!omp->tells)
		team_group_begin(team_self()->site);
	omp->GOMP_taskgroup_start();
}

PRELOAD_EXPORT void GOMP_taskgroup_end(void);
PRELOAD_EXPORT void GOMP_taskgroup_end(void)
{
	const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);
	uint64_t site = team_self()->site = PRELOAD_SITE;
	struct tokens *group = omp->tells ? NULL : team_self()->group;
	struct tokens *of = group ? team_await(group, site) : NULL;
	omp->GOMP_taskgroup_end();
	if (of)
		team_wait_end(of, site);
	if (!omp->tells)
		team_group_end();
}

#endif

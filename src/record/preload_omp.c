/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload_omp.c - OpenMP, as gcc calls libgomp: parallel regions, barriers, critical sections,
 * tasks.
 *
 * Its threads wait in libgomp with instructions of its own, spinning or in the kernel; without this
 * they would seem to compute. Everything is told in words that exist: a region's begin gives a
 * token to each worker, its end takes one of each; barriers are barriers, critical sections locks;
 * a task is a token from who made it to who runs it, its end one for who waits for it.
 *
 * Threads that wait run tasks meanwhile: then the wait ends with the task's token and begins anew
 * after it. What waits for all tasks (a barrier, a region's end) hears once more of a thread that
 * ran one after it had arrived.
 */
#include "record/preload_lock.h"
#include "record/preload_omp.h"

#include <string.h>

#ifndef PRELOAD_STATIC

enum { LEVELS = 4, DEPTHS = 8 };

/* of the flags of tasks (gcc's gomp-constants.h) */
enum { TASK_NO_GROUP = 0x800, TASK_REDUCTION = 0x1000, TASK_DETACH = 0x2000 };

/* Tokens of an object, which its address is. */
struct tokens {
	uint32_t due;   /* to be given: by tasks that were made */
	uint32_t given; /* after the record of it */
	uint32_t taken; /* by the thread whose it is */
	uint32_t image; /* that it was named in, and 1 */
};

/* What the threads of a region share; of the thread that begins it, so it outlives the region. */
struct team {
	struct tokens begin, end, tasks, copy, ordered;
	char barrier;
	uint32_t parties;    /* of the barrier, as recorded; 0: who leaves first opens it */
	uint32_t nr_workers; /* that came, in this region */
	uint32_t has_tasks;
};

enum waiting { NOT, FOR_TOKENS, FOR_BEGIN, FOR_BARRIER };
struct wait {
	enum waiting what;
	uint64_t object, site;
};

static __thread struct omp_thread {
	struct team own[LEVELS]; /* of the regions that this thread begins in one another */
	uint32_t nr_levels, depth;
	struct team *team;    /* that it works in; NULL: none that is recorded */
	struct tokens *group; /* innermost taskgroup */
	struct wait wait;     /* what it waits for in the runtime */
	struct tokens children[DEPTHS], groups[DEPTHS];
} self;

/* ---- objects and tokens -----------------------------------------------------------------------
 */

PRELOAD_INLINE uint64_t object_of(const struct tokens *tokens)
{
	return preload_object(tokens, TRACE_OBJECT_team, false);
}

PRELOAD_INLINE uint64_t barrier_of(const struct team *team)
{
	return preload_object(&team->barrier, TRACE_OBJECT_barrier, false);
}

static void name(uint64_t object, const char *text)
{
	size_t nr_bytes = strlen(text);
	preload_record_text(RING_name, (const uint64_t[]){object, RING_NAME_object, 0, nr_bytes}, 4,
		text, nr_bytes);
}

/* Before their first use in this image. True: they were without. */
static bool name_tokens(struct tokens *tokens, const char *text)
{
	preload_thread_begin();
	if (PRELOAD_LIKELY(tokens->image == preload_self.image + 1))
		return false;
	*tokens = (struct tokens){.image = preload_self.image + 1};
	name(object_of(tokens), text);
	return true;
}

static void name_team(struct team *team)
{
	if (!name_tokens(&team->begin, "region begin"))
		return;
	name_tokens(&team->end, "region end");
	name_tokens(&team->tasks, "tasks");
	name_tokens(&team->copy, "copyprivate");
	if (name_tokens(&team->ordered, "ordered section"))
		PRELOAD_RECORD(token_set, object_of(&team->ordered), 1);
	name(barrier_of(team), "of OpenMP");
	PRELOAD_RECORD(token_set, barrier_of(team), 0);
	team->parties = 0;
}

static void give(struct tokens *tokens, uint64_t n, uint64_t site)
{
	PRELOAD_RECORD(token_give, object_of(tokens), n, site);
	__atomic_fetch_add(&tokens->given, (uint32_t)n, __ATOMIC_RELEASE);
}

static void take_given(struct tokens *tokens, uint64_t site)
{
	uint32_t n = __atomic_load_n(&tokens->given, __ATOMIC_ACQUIRE) - tokens->taken;
	tokens->taken += n;
	PRELOAD_RECORD(token_take, object_of(tokens), n, site);
}

/* ---- waits that tasks interrupt ----------------------------------------------------------------
 */

static void wait_begin(enum waiting what, uint64_t object, uint64_t site)
{
	self.wait = (struct wait){what, object, site};
	if (what == FOR_BARRIER)
		PRELOAD_RECORD_WAIT(barrier_arrive, site, object);
	else if (what != NOT)
		PRELOAD_RECORD_WAIT(token_wait, site, object, 1);
}

static void wait_for(struct tokens *tokens, uint64_t site)
{
	wait_begin(FOR_TOKENS, object_of(tokens), site);
}

static void wait_end(struct tokens *tokens, uint64_t site)
{
	self.wait.what = NOT;
	take_given(tokens, site);
}

/* ---- parallel regions -------------------------------------------------------------------------
 */

struct region {
	uintptr_t *reductions; /* first word of the data, where libgomp looks for them */
	void (*f)(void *);
	void *data;
	struct team *team; /* NULL: with one thread, or too deep */
	const struct omp_thread *master;
	const struct preload_omp *omp;
	uint64_t site;
};

/* Which other threads were in the last region is not known before they come: a number of parties
 * that may be another one now would open the barrier too early. */
static void set_parties(struct team *team, uint32_t n)
{
	if (team->parties != n)
		PRELOAD_RECORD(token_set, barrier_of(team), n);
	team->parties = n;
}

static void work(struct region *r)
{
	bool is_master = r->master == &self;
	preload_self.region = 0;
	struct team *team = r->team;
	uint64_t site = r->site;
	if (is_master) {
		uint32_t nr =
			r->omp->omp_get_num_threads ? (uint32_t)r->omp->omp_get_num_threads() : 0;
		if (nr == 1)
			team = NULL; /* it is one thread after all */
		else if (!__atomic_load_n(&team->has_tasks, __ATOMIC_RELAXED))
			set_parties(team, nr);
		/* (a worker may have made the first one meanwhile) */
		if (team && __atomic_load_n(&team->has_tasks, __ATOMIC_RELAXED))
			set_parties(team, 0);
		self.team = team;
	} else {
		__atomic_fetch_add(&team->nr_workers, 1, __ATOMIC_RELAXED);
		self.wait.what = NOT;
		PRELOAD_RECORD(token_take, object_of(&team->begin), 1, site);
	}
	r->f(r->data);
	if (!team)
		return;
	if (is_master) {
		wait_for(&team->end, site);
	} else { /* the region is not over before this returns */
		give(&team->end, 1, site);
		wait_begin(FOR_BEGIN, object_of(&team->begin), site);
	}
}

static void run_region(void *argument)
{
	struct region *r = argument;
	struct team *outer_team = self.team;
	struct tokens *outer_group = self.group;
	self.team = r->team;
	self.group = NULL;
	self.depth++;
	if (r->team)
		work(r);
	else
		r->f(r->data);
	self.depth--;
	self.group = outer_group;
	/* what a pool's worker does until the next region, tasks, is still of this one */
	self.team = r->master == &self ? outer_team : r->team;
}

static void region_begin(struct region *r, unsigned nr_threads)
{
	uint32_t nr = nr_threads                    ? nr_threads
		      : r->omp->omp_get_max_threads ? (uint32_t)r->omp->omp_get_max_threads()
						    : 1;
	uint32_t level = self.nr_levels++;
	r->master = &self;
	if (nr < 2 || level >= LEVELS)
		return;
	struct team *team = r->team = &self.own[level];
	name_team(team);
	team->nr_workers = 0;
	if (nr != team->parties)
		set_parties(team, 0);
	PRELOAD_RECORD(token_give, object_of(&team->begin), nr - 1, r->site);
	team->begin.due = nr - 1;
	preload_self.region = object_of(&team->begin);
}

static void region_end(struct region *r)
{
	struct team *team = r->team;
	self.nr_levels--;
	if (!team)
		return;
	if (self.wait.what != NOT)
		wait_end(&team->end, r->site);
	if (team->begin.due > team->nr_workers) /* fewer came than were asked for */
		PRELOAD_RECORD(token_take, object_of(&team->begin),
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
		bool on = preload_active();                                                        \
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

/* ---- barriers ---------------------------------------------------------------------------------
 */

static void barrier_begin(uint64_t site)
{
	if (self.team && preload_active())
		wait_begin(FOR_BARRIER, barrier_of(self.team), site);
}

static void barrier_end(uint64_t site)
{
	if (self.wait.what != FOR_BARRIER)
		return;
	self.wait.what = NOT;
	PRELOAD_RECORD(barrier_leave, barrier_of(self.team), site);
}

#define BARRIER(type, name, parameters, arguments, keep, give_back)                                \
	PRELOAD_EXPORT type name parameters;                                                       \
	PRELOAD_EXPORT type name parameters                                                        \
	{                                                                                          \
		uint64_t site = PRELOAD_SITE;                                                      \
		barrier_begin(site);                                                               \
		keep preload_omp_of(PRELOAD_CALLER)->name arguments;                               \
		barrier_end(site);                                                                 \
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

/* Who is the one that does it learns it from the result; the others have waited for its data. */
PRELOAD_EXPORT void *GOMP_single_copy_start(void);
PRELOAD_EXPORT void *GOMP_single_copy_start(void)
{
	const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);
	struct team *team = preload_active() ? self.team : NULL;
	uint64_t site = PRELOAD_SITE;
	if (!team)
		return omp->GOMP_single_copy_start();
	wait_for(&team->copy, site);
	void *data = omp->GOMP_single_copy_start();
	self.wait.what = NOT;
	PRELOAD_RECORD(token_take, object_of(&team->copy), data ? 1 : 0, site);
	return data;
}

PRELOAD_EXPORT void GOMP_single_copy_end(void *data);
PRELOAD_EXPORT void GOMP_single_copy_end(void *data)
{
	const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);
	if (self.team && preload_active() && omp->omp_get_num_threads)
		PRELOAD_RECORD(token_give, object_of(&self.team->copy),
			(uint64_t)omp->omp_get_num_threads() - 1, PRELOAD_SITE);
	omp->GOMP_single_copy_end(data);
}

/* The turn goes from iteration to iteration: who has had it gives it on. */
PRELOAD_EXPORT void GOMP_ordered_start(void);
PRELOAD_EXPORT void GOMP_ordered_start(void)
{
	const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);
	struct team *team = preload_active() ? self.team : NULL;
	uint64_t site = PRELOAD_SITE;
	if (team)
		wait_for(&team->ordered, site);
	omp->GOMP_ordered_start();
	if (team) {
		self.wait.what = NOT;
		PRELOAD_RECORD(token_take, object_of(&team->ordered), 1, site);
	}
}

PRELOAD_EXPORT void GOMP_ordered_end(void);
PRELOAD_EXPORT void GOMP_ordered_end(void)
{
	if (self.team && preload_active())
		PRELOAD_RECORD(token_give, object_of(&self.team->ordered), 1, PRELOAD_SITE);
	preload_omp_of(PRELOAD_CALLER)->GOMP_ordered_end();
}

/* ---- locks ------------------------------------------------------------------------------------
 */

/* Who are in unnamed critical sections, or before them. A named one's word is libgomp's lock itself
 * (critical.c there): not 0 when it is taken. */
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
		before;                                                                            \
		if (preload_active())                                                              \
			PRELOAD_RECORD(lock_release, lock_of(object), PRELOAD_SITE);               \
		preload_omp_of(PRELOAD_CALLER)->name arguments;                                    \
	}
#define ENTER(n) (__atomic_fetch_add(&(n), 1, __ATOMIC_RELAXED) != 0)
#define LEAVE(n) __atomic_fetch_sub(&(n), 1, __ATOMIC_RELAXED)
LOCK(GOMP_critical_start, (void), (), &unnamed_critical_section, ENTER(unnamed_critical_section))
UNLOCK(GOMP_critical_end, (void), (), &unnamed_critical_section, LEAVE(unnamed_critical_section))
LOCK(GOMP_atomic_start, (void), (), &unnamed_atomic_section, ENTER(unnamed_atomic_section))
UNLOCK(GOMP_atomic_end, (void), (), &unnamed_atomic_section, LEAVE(unnamed_atomic_section))
LOCK(GOMP_critical_name_start, (void **lock), (lock), lock,
	__atomic_load_n((const uint32_t *)lock, __ATOMIC_RELAXED) != 0)
UNLOCK(GOMP_critical_name_end, (void **lock), (lock), lock, NOTHING_BACK)

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
			if (result)                                                                \
				PRELOAD_RECORD(lock_acquire, lock_of(lock), PRELOAD_SITE);         \
			else                                                                       \
				PRELOAD_RECORD(lock_fail, lock_of(lock), PRELOAD_SITE);            \
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

/* ---- tasks ------------------------------------------------------------------------------------
 */

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
	struct tokens *parent, *group; /* who waits for it */
	uint64_t site;
	bool is_of_loop;
};

PRELOAD_INLINE struct tokens *innermost(struct tokens *of)
{
	return &of[self.depth < DEPTHS ? self.depth : DEPTHS - 1];
}

static void task_over(const struct task *k)
{
	give(k->parent, 1, k->site);
	if (k->group)
		give(k->group, 1, k->site);
}

static void run_task(void *argument)
{
	struct task *k = argument;
	struct wait waited = self.wait;
	struct team *outer_team = self.team;
	struct tokens *outer_group = self.group;
	void *data = (char *)argument + k->data_at;
	if (k->is_of_loop)
		memcpy(data, argument, 2 * sizeof k->from);
	const struct task own = *k; /* libgomp may give it back before it is over */
	self.wait.what = NOT;
	self.team = own.team;
	self.group = own.group;
	self.depth++;
	PRELOAD_RECORD(token_take, object_of(&own.team->tasks), 1, own.site);
	own.f(data);
	self.depth--;
	self.group = outer_group;
	self.team = outer_team;
	task_over(&own);
	if (waited.what == FOR_BEGIN) /* it had left the region already */
		give(&own.team->end, 1, own.site);
	wait_begin(waited.what, waited.object, waited.site);
}

/* A task is made: libgomp copies its data. */
static void copy_task(void *to, void *from)
{
	struct task *k = to;
	struct wait waited = self.wait;
	memcpy(k, from, sizeof *k);
	if (k->copy)
		k->copy((char *)to + k->data_at, k->data);
	else if (k->nr_bytes)
		memcpy((char *)to + k->data_at, k->data, k->nr_bytes);
	__atomic_fetch_add(&k->parent->due, 1, __ATOMIC_RELAXED);
	if (k->group)
		__atomic_fetch_add(&k->group->due, 1, __ATOMIC_RELAXED);
	if (waited.what != NOT) /* in the call of a loop of tasks */
		PRELOAD_RECORD(token_take, waited.object, 0, waited.site);
	PRELOAD_RECORD(token_give, object_of(&k->team->tasks), 1, k->site);
	wait_begin(waited.what, waited.object, waited.site);
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
		.team = self.team,
		.parent = innermost(self.children),
		.group = self.group,
		.site = site};
	*nr_bytes += (long)k.data_at;
	name_tokens(k.parent, "child tasks");
	/* Who has come to a barrier may have to come again: its parties are not to be counted. */
	if (!__atomic_load_n(&k.team->has_tasks, __ATOMIC_RELAXED)) {
		__atomic_store_n(&k.team->has_tasks, 1, __ATOMIC_RELAXED);
		set_parties(k.team, 0);
	}
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
	if (!preload_active() || !self.team || flags & TASK_DETACH) {
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
		uint64_t site = PRELOAD_SITE;                                                      \
		if (!preload_active() || !self.team) {                                             \
			omp->name(f, data, copy, nr_bytes, align, flags, nr_tasks, priority, from, \
				to, by);                                                           \
			return;                                                                    \
		}                                                                                  \
		struct tokens *outer = self.group, *group = innermost(self.groups);                \
		if (!(flags & TASK_NO_GROUP)) {                                                    \
			self.group = group;                                                        \
			name_tokens(group, "task group");                                          \
		}                                                                                  \
		struct task task = make_task(f, data, copy, &nr_bytes, &align, site);              \
		task.is_of_loop = true;                                                            \
		if (flags & TASK_REDUCTION)                                                        \
			memcpy(&task.reductions, (char *)data + 2 * sizeof from,                   \
				sizeof task.reductions);                                           \
		if (self.group == group)                                                           \
			wait_for(group, site);                                                     \
		omp->name(run_task, &task, copy_task, nr_bytes, align, flags, nr_tasks, priority,  \
			from, to, by);                                                             \
		if (self.group == group)                                                           \
			wait_end(group, site);                                                     \
		self.group = outer;                                                                \
	}
TASK_LOOP(GOMP_taskloop, long)
TASK_LOOP(GOMP_taskloop_ull, unsigned long long)

/* Of tasks that are all over nobody waits. */
static struct tokens *await(struct tokens *tokens, uint64_t site)
{
	if (!self.team || !preload_active() ||
		__atomic_load_n(&tokens->due, __ATOMIC_RELAXED) == tokens->taken)
		return NULL;
	wait_for(tokens, site);
	return tokens;
}

#define TASKS_WAIT(name, parameters, arguments, whose)                                             \
	PRELOAD_EXPORT void name parameters;                                                       \
	PRELOAD_EXPORT void name parameters                                                        \
	{                                                                                          \
		uint64_t site = PRELOAD_SITE;                                                      \
		struct tokens *of = await(whose, site);                                            \
		preload_omp_of(PRELOAD_CALLER)->name arguments;                                    \
		if (of)                                                                            \
			wait_end(of, site);                                                        \
	}
TASKS_WAIT(GOMP_taskwait, (void), (), innermost(self.children))
TASKS_WAIT(GOMP_taskwait_depend, (void **depend), (depend), innermost(self.children))

/* The outer group comes back with the end: groups of one thread lie in one another. */
enum { GROUPS = 16 };
static __thread struct {
	struct tokens *outer[GROUPS];
	uint32_t nr;
} groups;

PRELOAD_EXPORT void GOMP_taskgroup_start(void);
PRELOAD_EXPORT void GOMP_taskgroup_start(void)
{
	if (groups.nr < GROUPS)
		groups.outer[groups.nr] = self.group;
	groups.nr++;
	self.group = innermost(self.groups);
	if (self.team && preload_active())
		name_tokens(self.group, "task group");
	preload_omp_of(PRELOAD_CALLER)->GOMP_taskgroup_start();
}

PRELOAD_EXPORT void GOMP_taskgroup_end(void);
PRELOAD_EXPORT void GOMP_taskgroup_end(void)
{
	uint64_t site = PRELOAD_SITE;
	struct tokens *of = self.group ? await(self.group, site) : NULL;
	preload_omp_of(PRELOAD_CALLER)->GOMP_taskgroup_end();
	if (of)
		wait_end(of, site);
	groups.nr--;
	self.group = groups.nr < GROUPS ? groups.outer[groups.nr] : NULL;
}

#endif

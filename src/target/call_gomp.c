/* SPDX-License-Identifier: Apache-2.0 */
/* call_gomp.c - OpenMP, as gcc calls libgomp and clang libomp: a parallel region is a spawn
 * and a join. */
#include "target/target.h"

#include <stdarg.h>

#define AT   TARGET_STUB
#define WEAK __attribute__((weak))

int omp_get_max_threads(void) WEAK;
int omp_get_num_threads(void) WEAK;
int omp_get_level(void) WEAK;
int omp_get_thread_num(void) WEAK;

struct region {
	void (*f)(void *);
	void *data;
	uint64_t number, nr;
	uint64_t arrived; /* atomic: at its barriers, all threads */
};

/* Where a thread is in the outermost region that it works in. */
static __thread struct {
	struct region *region; /* NULL: in none */
	uint64_t nr_barriers;  /* that it has come to */
	uint64_t parties, before;
	bool waits;   /* at one that is not recorded yet */
	bool reduces; /* as in a critical section */
} at __attribute__((tls_model("initial-exec")));

static void enter_region(struct region *r)
{
	at.region = r;
	at.nr_barriers = 0;
}

/* Its workers come to the join as well: what they do afterwards is of another region. */
static void call_gomp_leave_region(uint64_t number)
{
	if (!omp_get_thread_num || !omp_get_thread_num())
		return;
	longpole_target_call(CALL_join, target_call_ticks(), target_call_ticks(), number, 0, 0, 0);
	longpole_target_let_see(true);
}

/* A region's tasks are done before its end, but maybe by threads that have left it: they wait here,
 * all of them, where the program has tasks. (A region that may be cancelled may have no barrier
 * then.) */
int omp_get_cancellation(void) WEAK;
static bool call_gomp_can_wait(void)
{
	return omp_get_cancellation && !omp_get_cancellation();
}
void GOMP_barrier(void) WEAK;
void longpole_at_GOMP_task(void) WEAK;
void __kmpc_barrier(void *place, int thread) WEAK;
void longpole_at___kmpc_omp_task(void) WEAK;

static TARGET_BETWEEN void call_gomp_work(void *argument)
{
	struct region *r = argument;
	uint64_t number = r->number; /* the join may be over before we are */
	enter_region(r);
	r->f(r->data);
	if (longpole_at_GOMP_task && GOMP_barrier && call_gomp_can_wait())
		GOMP_barrier();
	enter_region(NULL);
	call_gomp_leave_region(number);
}

/* Is it none that is inside of another? */
static bool begin_region(struct region *r, void (*f)(void *), void *data, unsigned nr_threads)
{
	uint64_t now = target_call_ticks(), region = (uint64_t)(uintptr_t)f;
	uint64_t nr = nr_threads            ? nr_threads
		      : omp_get_max_threads ? (uint64_t)omp_get_max_threads()
					    : 0;
	if (omp_get_level && omp_get_level() > 0)
		return false;
	*r = (struct region){.f = f, .data = data, .number = region, .nr = nr};
	longpole_target_call(CALL_spawn, now, now, region, nr, 0, 0);
	longpole_target_let_see(false);
	return true;
}

static void end_region(const struct region *r)
{
	uint64_t now = target_call_ticks();
	longpole_target_call(CALL_join, now, now, r->number, r->nr, 0, 0);
}

/* gcc's parallel regions, alone and as one with the loop or the sections in them. */
#define REGION(name, parameters, arguments)                                                        \
	void name parameters WEAK;                                                                 \
	void longpole_at_##name parameters;                                                        \
	AT void longpole_at_##name parameters                                                      \
	{                                                                                          \
		struct region own;                                                                 \
		bool outer = begin_region(&own, f, data, nr_threads);                              \
		if (outer) {                                                                       \
			f = call_gomp_work;                                                        \
			data = &own;                                                               \
		}                                                                                  \
		name arguments;                                                                    \
		if (outer)                                                                         \
			end_region(&own);                                                          \
	}
#define LOOP_REGION(name)                                                                          \
	REGION(name,                                                                               \
		(void (*f)(void *), void *data, unsigned nr_threads, long from, long to, long by,  \
			long chunk, unsigned flags),                                               \
		(f, data, nr_threads, from, to, by, chunk, flags))
#define RUNTIME_REGION(name)                                                                       \
	REGION(name,                                                                               \
		(void (*f)(void *), void *data, unsigned nr_threads, long from, long to, long by,  \
			unsigned flags),                                                           \
		(f, data, nr_threads, from, to, by, flags))
REGION(GOMP_parallel, (void (*f)(void *), void *data, unsigned nr_threads, unsigned flags),
	(f, data, nr_threads, flags))
REGION(GOMP_parallel_sections,
	(void (*f)(void *), void *data, unsigned nr_threads, unsigned count, unsigned flags),
	(f, data, nr_threads, count, flags))
LOOP_REGION(GOMP_parallel_loop_static)
LOOP_REGION(GOMP_parallel_loop_dynamic)
LOOP_REGION(GOMP_parallel_loop_guided)
LOOP_REGION(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP_REGION(GOMP_parallel_loop_nonmonotonic_guided)
RUNTIME_REGION(GOMP_parallel_loop_runtime)
RUNTIME_REGION(GOMP_parallel_loop_nonmonotonic_runtime)
RUNTIME_REGION(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/* Where all threads of a region wait for each other; some do so at the end of a loop. */
static void come_to_barrier(void)
{
	longpole_target_let_see(true);
	at.waits = true;
	at.parties = omp_get_num_threads ? (uint64_t)omp_get_num_threads() : 0;
	at.before = target_call_ticks();
	if (at.region && omp_get_level && omp_get_level() == 1) {
		at.nr_barriers++;
		__atomic_fetch_add(&at.region->arrived, 1, __ATOMIC_ACQ_REL);
	}
}

static void leave_barrier(void)
{
	if (at.waits)
		longpole_target_call(
			CALL_barrier, at.before, target_call_ticks(), 0, at.parties, 0, 0);
	at.waits = false;
}

/* A thread that waits at a barrier does tasks meanwhile, and goes on with it if others that have
 * left it already make more: those come after it. */
void longpole_target_task_begins(void)
{
	if (at.waits && at.region && omp_get_level() == 1 &&
		__atomic_load_n(&at.region->arrived, __ATOMIC_ACQUIRE) >=
			at.nr_barriers * at.parties)
		leave_barrier();
}

#define BARRIER(name, parameters, arguments)                                                       \
	TARGET_AROUND(name, parameters, arguments, come_to_barrier(), leave_barrier())
BARRIER(GOMP_barrier, (void), ())
BARRIER(GOMP_loop_end, (void), ())
BARRIER(GOMP_sections_end, (void), ())
BARRIER(__kmpc_barrier, (void *place, int thread), (place, thread))

/* One that may be cancelled: whose result is not 0 has not waited for all. */
#define CANCEL(name, type, parameters, arguments)                                                  \
	TARGET_AROUND_RESULT(type, name, parameters, arguments, come_to_barrier(), {               \
		at.waits = at.waits && !result;                                                    \
		leave_barrier();                                                                   \
	})
CANCEL(GOMP_barrier_cancel, bool, (void), ())
CANCEL(GOMP_loop_end_cancel, bool, (void), ())
CANCEL(GOMP_sections_end_cancel, bool, (void), ())
CANCEL(__kmpc_cancel_barrier, int, (void *place, int thread), (place, thread))

/* What one thread has in `single`, all get from it: it waits for them at the end, they at the
 * beginning, of which the result says whose it is. */
static void barrier_since(uint64_t before)
{
	longpole_target_call(CALL_barrier, before, target_call_ticks(), 0,
		omp_get_num_threads ? (uint64_t)omp_get_num_threads() : 0, 0, 0);
}

static uint64_t waits_from(void)
{
	longpole_target_let_see(true);
	return target_call_ticks();
}
TARGET_AROUND_RESULT(void *, GOMP_single_copy_start, (void), (), uint64_t before = waits_from(),
	if (result) barrier_since(before))
TARGET_AROUND(GOMP_single_copy_end, (void *own), (own), uint64_t before = waits_from(),
	barrier_since(before))

/* clang's waits for all, copies, and waits again. */
TARGET_AROUND(__kmpc_copyprivate,
	(void *place, int thread, size_t bytes, void *list, void (*copy)(void *, void *), int did),
	(place, thread, bytes, list, copy, did), barrier_since(waits_from()),
	barrier_since(target_call_ticks()))

static void says(unsigned kind, const void *object, uint64_t before, uint64_t after)
{
	longpole_target_call(kind, before, after, (uint64_t)(uintptr_t)object, 0, 0, 0);
}
static void says_now(unsigned kind, const void *object)
{
	uint64_t now = target_call_ticks();
	says(kind, object, now, now);
}
#define BEGIN(name, kind, parameters, arguments, object)                                           \
	TARGET_AROUND(name, parameters, arguments, uint64_t before = target_call_ticks(),          \
		says(kind, object, before, target_call_ticks()))
#define END(name, kind, parameters, arguments, object)                                             \
	TARGET_AROUND(name, parameters, arguments, says_now(kind, object), (void)0)
BEGIN(GOMP_critical_start, CALL_begin_critical, (void), (), 0)
END(GOMP_critical_end, CALL_end_critical, (void), (), 0)
BEGIN(GOMP_critical_name_start, CALL_begin_critical, (void **name), (name), name)
END(GOMP_critical_name_end, CALL_end_critical, (void **name), (name), name)
BEGIN(GOMP_atomic_start, CALL_begin_critical, (void), (), 0)
END(GOMP_atomic_end, CALL_end_critical, (void), (), 0)
BEGIN(omp_set_lock, CALL_lock, (void *lock), (lock), lock)
END(omp_unset_lock, CALL_unlock, (void *lock), (lock), lock)
BEGIN(omp_set_nest_lock, CALL_lock, (void *lock), (lock), lock)
END(omp_unset_nest_lock, CALL_unlock, (void *lock), (lock), lock)
BEGIN(__kmpc_critical, CALL_begin_critical, (void *place, int thread, void *name),
	(place, thread, name), name)
END(__kmpc_end_critical, CALL_end_critical, (void *place, int thread, void *name),
	(place, thread, name), name)

/* A reduction, of which the result says how it is done: 1 as in a critical section. */
#define REDUCE(name)                                                                               \
	TARGET_AROUND_RESULT(int, name,                                                            \
		(void *place, int thread, int nr, size_t bytes, void *data,                        \
			void (*add)(void *, void *), void *lock),                                  \
		(place, thread, nr, bytes, data, add, lock),                                       \
		uint64_t before = target_call_ticks(), {                                           \
			at.reduces = result == 1;                                                  \
			if (at.reduces)                                                            \
				says(CALL_begin_critical, lock, before, target_call_ticks());      \
		})
REDUCE(__kmpc_reduce)
REDUCE(__kmpc_reduce_nowait)
#define END_REDUCE(name)                                                                           \
	TARGET_AROUND(                                                                             \
		name, (void *place, int thread, void *lock), (place, thread, lock),                \
		{                                                                                  \
			if (at.reduces)                                                            \
				says_now(CALL_end_critical, lock);                                 \
			at.reduces = false;                                                        \
		},                                                                                 \
		(void)0)
END_REDUCE(__kmpc_end_reduce)
END_REDUCE(__kmpc_end_reduce_nowait)

/* Not zero: it is taken (so often). */
#define TEST(name)                                                                                 \
	TARGET_AROUND_RESULT(int, name, (void *lock), (lock),                                      \
		uint64_t before = target_call_ticks(),                                             \
		if (result) says(CALL_lock, lock, before, target_call_ticks()))
TEST(omp_test_lock)
TEST(omp_test_nest_lock)

/* Ordered sections come one after the other; each is recorded with how many there were before. */
#define BEGIN_ORDER(name, parameters, arguments)                                                   \
	void name parameters WEAK;                                                                 \
	void longpole_at_##name parameters;                                                        \
	AT void longpole_at_##name parameters                                                      \
	{                                                                                          \
		uint64_t before = target_call_ticks();                                             \
		name arguments;                                                                    \
		longpole_target_call(CALL_begin_order, before, target_call_ticks(), 0,             \
			longpole_target_ordered(false), 0, 0);                                     \
	}
#define END_ORDER(name, parameters, arguments)                                                     \
	void name parameters WEAK;                                                                 \
	void longpole_at_##name parameters;                                                        \
	AT void longpole_at_##name parameters                                                      \
	{                                                                                          \
		uint64_t now = target_call_ticks();                                                \
		(void)longpole_target_ordered(true);                                               \
		longpole_target_call(CALL_end_order, now, now, 0, 0, 0, 0);                        \
		name arguments;                                                                    \
	}
BEGIN_ORDER(GOMP_ordered_start, (void), ())
END_ORDER(GOMP_ordered_end, (void), ())
BEGIN_ORDER(__kmpc_ordered, (void *place, int thread), (place, thread))
END_ORDER(__kmpc_end_ordered, (void *place, int thread), (place, thread))

/* ---- clang's regions ------------------------------------------------------------------------- */

enum { MICROTASK_ARGUMENTS = 32 };
typedef void microtask(int *thread, int *bound, ...);

struct fork { /* one region, on its caller's stack */
	struct region region;
	microtask *f;
	void *argument[MICROTASK_ARGUMENTS];
};

void __kmpc_fork_call(void *place, int nr, microtask *f, ...) WEAK;
void longpole_at_kmpc_fork(void *place, int nr, microtask *f, ...)
	__attribute__((used, visibility("hidden")));

/* libomp's ident_t. */
static struct {
	int reserved, flags, more[2];
	const char *source;
} nowhere = {0, 2, {0, 0}, ";unknown;unknown;0;0;;"};

static TARGET_BETWEEN void work_microtask(int *thread, int *bound, struct fork *k)
{
	void **a = k->argument;
	uint64_t number = k->region.number; /* the join may be over before we are */
	/* arguments that it does not have are no matter: the caller cleans up */
	if (number)
		enter_region(&k->region);
	k->f(thread, bound, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
		a[11], a[12], a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22],
		a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31]);
	if (!number)
		return;
	if (longpole_at___kmpc_omp_task && __kmpc_barrier && call_gomp_can_wait())
		__kmpc_barrier(&nowhere, *thread);
	enter_region(NULL);
	call_gomp_leave_region(number);
}

void longpole_at_kmpc_fork(void *place, int nr, microtask *f, ...)
{
	struct fork own = {.f = f};
	va_list list;
	va_start(list, f);
	for (int i = 0; i < nr; i++)
		own.argument[i] = va_arg(list, void *);
	va_end(list);
	bool outer = begin_region(&own.region, (void (*)(void *))(uintptr_t)f, NULL, 0);
	if (!outer)
		own.region.number = 0;
	__kmpc_fork_call(place, 1, (microtask *)(uintptr_t)work_microtask, &own);
	if (outer)
		end_region(&own.region);
}

/* One with more arguments than we can hand on is not seen. */
_Static_assert(MICROTASK_ARGUMENTS == 32, "the number below");
AT __attribute__((naked)) void longpole_at___kmpc_fork_call(void);
AT __attribute__((naked)) void longpole_at___kmpc_fork_call(void)
{
	__asm__("cmpl $32, %esi\n\t"
		"jbe longpole_at_kmpc_fork\n\t"
		"jmp *__kmpc_fork_call@GOTPCREL(%rip)\n\t");
}

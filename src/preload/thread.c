/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - beginning and end of threads, and waiting for the end. */
#include "ring/calls.h"
#include "preload/preload.h"
#include "preload/affinity.h"
#include "preload/real.h"

#include <string.h>

static void tell_created(uint64_t handle, uint64_t before_tsc, uintptr_t site)
{
	if (preload_met.created)
		preload_met.created(handle, before_tsc, site);
}

/* ---- creation -------------------------------------------------------------------------------- */

/*
 * What a new thread's trampoline needs to know. A pool without locks and heap: a stack of indices,
 * 0 is none, tagged against reuse between load and exchange. The pages of the array are only
 * touched as far as creations overlap.
 */
enum { STARTS_MAX = 1 << 16 };
struct start {
	union {
		void *(*posix)(void *);
		thrd_start_t c11;
	} routine;
	void *argument;
	uintptr_t site; /* what it is named by */
	uint64_t token;
	uint64_t awaits; /* object that it waits for first; 0: none */
	uint32_t next;
};
static struct start starts[STARTS_MAX];
static uint64_t free_starts;   /* tag << 32 | index of the first free one */
static uint32_t nr_starts = 1; /* used at least once; 0 is none */

static struct start *start_take(void)
{
	uint64_t head = __atomic_load_n(&free_starts, __ATOMIC_ACQUIRE);
	while ((uint32_t)head) {
		struct start *start = &starts[(uint32_t)head];
		uint64_t next =
			((head >> 32) + 1) << 32 | __atomic_load_n(&start->next, __ATOMIC_RELAXED);
		if (__atomic_compare_exchange_n(
			    &free_starts, &head, next, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return start;
	}
	if (__atomic_load_n(&nr_starts, __ATOMIC_RELAXED) >= STARTS_MAX)
		return NULL;
	uint32_t index = __atomic_fetch_add(&nr_starts, 1, __ATOMIC_RELAXED);
	return index < STARTS_MAX ? &starts[index] : NULL;
}

static void start_give(struct start *start)
{
	uint64_t head = __atomic_load_n(&free_starts, __ATOMIC_RELAXED), next;
	do {
		__atomic_store_n(&start->next, (uint32_t)head, __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | (uint64_t)(start - starts);
	} while (!__atomic_compare_exchange_n(
		&free_starts, &head, next, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static struct start thread_begin_thread(struct start *pooled)
{
	struct start start = *pooled;
	start_give(pooled);
	struct preload_thread *self = preload_own();
	self->token = start.token;
	self->start_site = start.site;
	preload_thread_begin();
	if (start.awaits)
		PRELOAD_RECORD_WAIT(token_wait, start.site, start.awaits, 1);
	return start;
}

/* The end is recorded by the key's destructor, which also sees pthread_exit() and cancellation. */
static void *run_posix(void *argument)
{
	struct start start = thread_begin_thread(argument);
	return start.routine.posix(start.argument);
}

static int run_c11(void *argument)
{
	struct start start = thread_begin_thread(argument);
	return start.routine.c11(start.argument);
}

static struct start *prepare_start(void *argument, uintptr_t site)
{
	struct start *start = preload_active() ? start_take() : NULL;
	if (!start)
		return NULL;
	start->argument = argument;
	start->token = preload_token();
	start->awaits = preload_self->region;
	PRELOAD_RECORD(thread_create, start->token, site);
	return start;
}

/* What a new thread is named by. */
static uintptr_t thread_site_of(void *(*routine)(void *), const void *argument)
{
	if (preload_is_stub((uintptr_t)routine)) {
		const struct record_birth *birth = argument;
		routine = birth->function;
		argument = birth->argument;
	}
	return preload_cxx_routine((uintptr_t)routine, argument);
}

PRELOAD_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
	void *(*routine)(void *), void *argument)
{
	uintptr_t site = PRELOAD_SITE;
	preload_machine_calls(PRELOAD_CALLER);
	struct start *start = prepare_start(argument, site);
	struct preload_counted counted;
	if (!start)
		return PRELOAD_REAL(pthread_create)(thread, attributes, routine, argument);
	preload_affinity_of_new(attributes, start->token);
	start->routine.posix = routine;
	start->site = preload_has_java() ? preload_java_start(PRELOAD_CALLER) : 0;
	if (!start->site)
		start->site = thread_site_of(routine, argument);
	uint64_t before_tsc = preload_now();
	preload_count_begin(&counted, CALLS_pthread_create, site);
	int result = PRELOAD_REAL(pthread_create)(thread, attributes, run_posix, start);
	preload_count_end(&counted, result);
	if (result != 0)
		start_give(start);
	else
		tell_created((uint64_t)*thread, before_tsc, site);
	return result;
}

PRELOAD_EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument)
{
	uintptr_t site = PRELOAD_SITE;
	struct start *start = prepare_start(argument, site);
	if (!start)
		return PRELOAD_REAL(thrd_create)(thread, routine, argument);
	struct preload_counted counted;
	start->routine.c11 = routine;
	start->site = (uintptr_t)routine;
	uint64_t before_tsc = preload_now();
	preload_count_begin(&counted, CALLS_thrd_create, site);
	int result = PRELOAD_REAL(thrd_create)(thread, run_c11, start);
	preload_count_end(&counted, result == thrd_success ? 0 : -1);
	if (result != thrd_success)
		start_give(start);
	else
		tell_created((uint64_t)*thread, before_tsc, site);
	return result;
}

/* ---- join ------------------------------------------------------------------------------------ */

struct join {
	struct preload_counted counted;
	uint64_t handle, before_tsc;
	bool open;
};

static void join_begin(struct join *join, unsigned function, uint64_t handle, uintptr_t site)
{
	join->open = preload_active();
	join->handle = handle;
	join->before_tsc = preload_now_if(join->open);
	if (join->open)
		PRELOAD_RECORD_WAIT(join_wait, site, handle);
	preload_count_begin(&join->counted, function, site);
}

static void join_end(struct join *join, int error)
{
	bool joined = error == 0;
	preload_count_end(&join->counted, error);
	if (joined && join->open && preload_met.joined)
		preload_met.joined(join->handle, join->before_tsc, preload_now());
	if (join->open)
		PRELOAD_RECORD(join_done, joined ? join->handle : 0);
	join->open = false;
}

#define JOIN(name, result_type, handle_type, more_parameters, more_arguments)                      \
	PRELOAD_EXPORT result_type name(handle_type thread, more_parameters)                       \
	{                                                                                          \
		struct join join;                                                                  \
		join_begin(&join, CALLS_##name, (uint64_t)thread, PRELOAD_SITE);                   \
		result_type result = PRELOAD_REAL(name)(thread, more_arguments);                   \
		join_end(&join, (int)result);                                                      \
		return result;                                                                     \
	}
#define LIST(...) __VA_ARGS__
JOIN(pthread_join, int, pthread_t, void **value, value)
JOIN(pthread_tryjoin_np, int, pthread_t, void **value, value)
JOIN(pthread_timedjoin_np, int, pthread_t, LIST(void **value, const struct timespec *until),
	LIST(value, until))
JOIN(pthread_clockjoin_np, int, pthread_t,
	LIST(void **value, clockid_t clock, const struct timespec *until),
	LIST(value, clock, until))
JOIN(thrd_join, int, thrd_t, int *value, value)

/* ---- names ----------------------------------------------------------------------------------- */

PRELOAD_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	int result = PRELOAD_REAL(pthread_setname_np)(thread, name);
	/* another thread's name has no place in this one's records */
	if (result == 0 && preload_active() && pthread_equal(thread, pthread_self())) {
		size_t length = strlen(name);
		preload_record_text(RING_thread_name, (const uint64_t[]){length}, 1, name, length);
		if (preload_is_java(PRELOAD_CALLER))
			preload_java_named(name);
	}
	return result;
}

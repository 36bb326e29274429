/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.c - mutex, spin lock, rwlock, once.
 *
 * A lock that is free is taken by the real trylock: then one record says so. A trylock that finds
 * it taken means waiting, or an error that the real lock function is asked for (EDEADLK). The stamp
 * of an acquire is taken after, that of a release before the real call: what others can see of the
 * lock lies between them.
 */
#include "preload/lock.h"

/* ---- mutex ----------------------------------------------------------------------------------- */

/* The outer two of four stamps (seed 001, section 4): around the real function. */
static void record_call(uint64_t object, uint64_t site)
{
	if (preload_full())
		preload_record_at(preload_now(), RING_lock_call, PRELOAD_WORDS(object, site));
}

static void record_return(uint64_t object, uint64_t site)
{
	if (preload_full())
		preload_record_at(preload_now(), RING_lock_return, PRELOAD_WORDS(object, site));
}

/* Returns when. */
static uint64_t record_outcome(unsigned acquired_kind, int result, uint64_t object, uint64_t site)
{
	preload_made(object, site);
	uint64_t now = preload_now();
	preload_record_at(now, preload_is_acquired(result) ? acquired_kind : PRELOAD_lock_fail,
		PRELOAD_WORDS(object, site));
	return now;
}

/* Of a call that does not wait, or not for ever, which a record before the acquire says. */
static void record_tried(unsigned acquired_kind, int result, uint64_t object, uint64_t site)
{
	if (preload_is_acquired(result))
		PRELOAD_RECORD(lock_try, object, site);
	record_outcome(acquired_kind, result, object, site);
}

static PRELOAD_COLD int mutex_lock_contended(pthread_mutex_t *mutex, int result, uintptr_t site)
{
	uint64_t object = preload_mutex(mutex), before = 0;
	if (result == EBUSY) {
		before = preload_now();
		PRELOAD_RECORD_WAIT(lock_wait, site, object);
		result = preload_real_mutex_lock(mutex);
	}
	uint64_t after = record_outcome(PRELOAD_lock_acquire, result, object, site);
	preload_own()->lock = (struct record_lock_stamps){before ? before : after, after};
	return result;
}

/* Somebody else's function is next: a sanitizer's, a library's that was preloaded, too. It gets
 * each lock, as it does without us; whether it waits the lock's own word says. */
static PRELOAD_COLD int mutex_lock_wrapped(pthread_mutex_t *mutex, uintptr_t site)
{
	uint64_t object = preload_mutex(mutex), before = 0;
	if (__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED)) {
		before = preload_now();
		PRELOAD_RECORD_WAIT(lock_wait, site, object);
	}
	int result = preload_real_mutex_lock(mutex);
	uint64_t after = record_outcome(PRELOAD_lock_acquire, result, object, site);
	preload_own()->lock = (struct record_lock_stamps){before ? before : after, after};
	return result;
}

/* What the hot functions leave to others, so that they themselves need neither stack nor saved
 * registers. */
PRELOAD_INLINE bool is_runtimes_mutex(const pthread_mutex_t *mutex, uintptr_t caller)
{
	return (preload_has_python() && preload_gil_is_mutex(mutex)) || preload_is_machine(caller);
}

static PRELOAD_COLD int mutex_lock_first(pthread_mutex_t *mutex, uintptr_t caller)
{
	if (is_runtimes_mutex(mutex, caller))
		return preload_real_mutex_lock(mutex);
	uintptr_t site = preload_site(caller);
	if (!preload_on_for(site) || (PRELOAD_IS_STATIC && preload_self->busy)) /* our own unwinding
										 */
		return preload_real_mutex_lock(mutex);
	record_call(preload_mutex(mutex), site);
	if (preload_mutex_is_wrapped)
		return mutex_lock_wrapped(mutex, site);
	return mutex_lock_contended(mutex, preload_real_mutex_trylock(mutex), site);
}

static PRELOAD_COLD int mutex_locked(pthread_mutex_t *mutex, uintptr_t site)
{
	uint64_t now = record_outcome(PRELOAD_lock_acquire, 0, preload_mutex(mutex), site);
	preload_own()->lock = (struct record_lock_stamps){now, now};
	return 0;
}

static PRELOAD_COLD int mutex_unlock_slow(pthread_mutex_t *mutex, uintptr_t caller)
{
	if (is_runtimes_mutex(mutex, caller))
		return preload_real_mutex_unlock(mutex);
	uintptr_t site = preload_site(caller);
	if (!preload_on_for(site) || (PRELOAD_IS_STATIC && preload_self->busy))
		return preload_real_mutex_unlock(mutex);
	uint64_t object = preload_mutex(mutex); /* it may be gone as soon as it is free */
	uint64_t now = preload_now();
	PRELOAD_RECORD_AT(now, lock_release, object, site);
	preload_own()->lock = (struct record_lock_stamps){now, now};
	int result = preload_real_mutex_unlock(mutex);
	record_return(object, site);
	return result;
}

PRELOAD_INLINE int mutex_lock(pthread_mutex_t *mutex, uintptr_t site)
{
	if (PRELOAD_RARE(!preload_surely_on()) || (PRELOAD_IS_STATIC && preload_self->busy))
		return mutex_lock_first(mutex, site);
	int result = preload_real_mutex_trylock(mutex);
	if (PRELOAD_RARE(result != 0))
		return mutex_lock_contended(mutex, result, site);
	if (PRELOAD_RARE(!preload_made_known(preload_mutex(mutex)) ||
			 !preload_try_record(PRELOAD_lock_acquire, preload_mutex(mutex), site)))
		return mutex_locked(mutex, site);
	return 0;
}

PRELOAD_INLINE int mutex_unlock(pthread_mutex_t *mutex, uintptr_t site)
{
	if (PRELOAD_LIKELY(preload_surely_on()) && !(PRELOAD_IS_STATIC && preload_self->busy) &&
		preload_try_record(PRELOAD_lock_release, preload_mutex(mutex), site))
		return preload_real_mutex_unlock(mutex);
	return mutex_unlock_slow(mutex, site);
}

PRELOAD_INLINE int mutex_trylock(pthread_mutex_t *mutex, uintptr_t site)
{
	int result = preload_real_mutex_trylock(mutex);
	if (preload_on_for(site) && !preload_is_machine(site) &&
		(preload_is_acquired(result) || result == EBUSY))
		record_tried(PRELOAD_lock_acquire, result, preload_mutex(mutex), site);
	return result;
}

PRELOAD_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return mutex_lock(mutex, PRELOAD_CALLER);
}

PRELOAD_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return mutex_trylock(mutex, PRELOAD_SITE);
}

PRELOAD_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return mutex_unlock(mutex, PRELOAD_CALLER);
}

PRELOAD_EXPORT int mtx_lock(mtx_t *mutex)
{
	return preload_c11_result(mutex_lock((pthread_mutex_t *)mutex, PRELOAD_CALLER));
}

PRELOAD_EXPORT int mtx_trylock(mtx_t *mutex)
{
	return preload_c11_result(mutex_trylock((pthread_mutex_t *)mutex, PRELOAD_SITE));
}

PRELOAD_EXPORT int mtx_unlock(mtx_t *mutex)
{
	return preload_c11_result(mutex_unlock((pthread_mutex_t *)mutex, PRELOAD_CALLER));
}

/* ---- all other ways to wait for a lock ------------------------------------------------------- */

/*
 * WAITING_LOCK: a function that waits for a lock, made of the one that does not wait and itself.
 * `busy` is what the former returns when the lock is taken; record: what says what came of it. A
 * lock that is free is not refused for its time limit having passed (POSIX).
 */
#define WAITING_LOCK(name, type, parameters, arguments, limit, try_lock, busy, object_of,          \
	wait_kind, acquired_kind, record)                                                          \
	PRELOAD_EXPORT int name(type *lock parameters)                                             \
	{                                                                                          \
		if (!preload_on() || preload_is_machine(PRELOAD_CALLER))                           \
			return PRELOAD_REAL(name)(lock arguments);                                 \
		uint64_t object = object_of(lock), site = PRELOAD_SITE;                            \
		record_call(object, site);                                                         \
		int result = limit ? try_lock(lock) : PRELOAD_REAL(name)(lock arguments);          \
		if (limit && result == (busy)) {                                                   \
			PRELOAD_RECORD_WAIT(wait_kind, site, object);                              \
			result = PRELOAD_REAL(name)(lock arguments);                               \
		}                                                                                  \
		record(PRELOAD_##acquired_kind, result, object, site);                             \
		return result;                                                                     \
	}

/* TRY_LOCK: one that does not wait. */
#define TRY_LOCK(name, type, object_of, acquired_kind)                                             \
	PRELOAD_EXPORT int name(type *lock)                                                        \
	{                                                                                          \
		int result = PRELOAD_REAL(name)(lock);                                             \
		if (preload_on() && !preload_is_machine(PRELOAD_CALLER) &&                         \
			(preload_is_acquired(result) || result == EBUSY))                          \
			record_tried(                                                              \
				PRELOAD_##acquired_kind, result, object_of(lock), PRELOAD_SITE);   \
		return result;                                                                     \
	}

#define ANY_TIME true

WAITING_LOCK(pthread_mutex_timedlock, pthread_mutex_t, UNTIL, A_UNTIL, IN_UNTIL,
	preload_real_mutex_trylock, EBUSY, preload_mutex, lock_wait, lock_acquire, record_tried)
WAITING_LOCK(pthread_mutex_clocklock, pthread_mutex_t, CLOCKED, A_CLOCKED, IN_CLOCK,
	preload_real_mutex_trylock, EBUSY, preload_mutex, lock_wait, lock_acquire, record_tried)

PRELOAD_EXPORT int mtx_timedlock(mtx_t *mutex, const struct timespec *until)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)mutex;
	if (!preload_on())
		return PRELOAD_REAL(mtx_timedlock)(mutex, until);
	int result = preload_real_mutex_trylock(lock);
	if (result == EBUSY) {
		PRELOAD_RECORD_WAIT(lock_wait, PRELOAD_SITE, preload_mutex(lock));
		result = PRELOAD_REAL(pthread_mutex_timedlock)(lock, until);
	}
	record_tried(PRELOAD_lock_acquire, result, preload_mutex(lock), PRELOAD_SITE);
	return preload_c11_result(result);
}

/* ---- spin locks ------------------------------------------------------------------------------ */

WAITING_LOCK(pthread_spin_lock, pthread_spinlock_t, NOTHING, NOTHING, ANY_TIME,
	PRELOAD_REAL(pthread_spin_trylock), EBUSY, preload_spin, lock_wait, lock_acquire,
	record_outcome)
TRY_LOCK(pthread_spin_trylock, pthread_spinlock_t, preload_spin, lock_acquire)

PRELOAD_EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	if (!preload_on() || preload_is_machine(PRELOAD_CALLER))
		return PRELOAD_REAL(pthread_spin_unlock)(lock);
	PRELOAD_RECORD(lock_release, preload_spin(lock), PRELOAD_SITE);
	int result = PRELOAD_REAL(pthread_spin_unlock)(lock);
	record_return(preload_spin(lock), PRELOAD_SITE);
	return result;
}

/* ---- rwlocks --------------------------------------------------------------------------------- */

/* Of a reader, or a writer. */
#define RWLOCK(lock, wait, acquire)                                                                \
	WAITING_LOCK(pthread_rwlock_##lock, pthread_rwlock_t, NOTHING, NOTHING, ANY_TIME,          \
		PRELOAD_REAL(pthread_rwlock_try##lock), EBUSY, preload_rwlock, wait, acquire,      \
		record_outcome)                                                                    \
	WAITING_LOCK(pthread_rwlock_timed##lock, pthread_rwlock_t, UNTIL, A_UNTIL, IN_UNTIL,       \
		PRELOAD_REAL(pthread_rwlock_try##lock), EBUSY, preload_rwlock, wait, acquire,      \
		record_tried)                                                                      \
	WAITING_LOCK(pthread_rwlock_clock##lock, pthread_rwlock_t, CLOCKED, A_CLOCKED, IN_CLOCK,   \
		PRELOAD_REAL(pthread_rwlock_try##lock), EBUSY, preload_rwlock, wait, acquire,      \
		record_tried)                                                                      \
	TRY_LOCK(pthread_rwlock_try##lock, pthread_rwlock_t, preload_rwlock, acquire)
RWLOCK(rdlock, shared_wait, shared_acquire)
RWLOCK(wrlock, lock_wait, lock_acquire)

/* Only the lock knows whose unlock this is: glibc keeps the writer's thread id in it. */
PRELOAD_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	if (!preload_on() || preload_is_machine(PRELOAD_CALLER))
		return PRELOAD_REAL(pthread_rwlock_unlock)(lock);
	uint64_t object = preload_rwlock(lock);
	unsigned kind = __atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED)
				? PRELOAD_lock_release
				: PRELOAD_shared_release;
	preload_record_at(preload_now(), kind, PRELOAD_WORDS(object, PRELOAD_SITE));
	int result = PRELOAD_REAL(pthread_rwlock_unlock)(lock);
	record_return(object, PRELOAD_SITE);
	return result;
}

/* ---- once ------------------------------------------------------------------------------------ */

enum { ONCE_DONE = 2 }; /* glibc's bit */

/* The call of pthread_once() that this thread is in; others may be nested in its routine. */
struct once_call {
	void (*routine)(void);
	uint64_t object, site;
	struct once_call *outer;
	bool ran;
};
static __thread struct once_call *once_now;

static void once_release(void *call)
{
	const struct once_call *of = call;
	PRELOAD_RECORD(lock_release, of->object, of->site);
}

/* An exception that leaves the routine takes no notice of us: then the release is missing. */
static void once_routine(void)
{
	struct once_call *call = once_now;
	call->ran = true;
	PRELOAD_RECORD(lock_acquire, call->object, call->site);
	pthread_cleanup_push(once_release, call);
	call->routine();
	pthread_cleanup_pop(1);
}

/* Held by the thread that runs the routine; no other records more than having waited for it. */
PRELOAD_INLINE int once(pthread_once_t *control, void (*routine)(void), uintptr_t site)
{
	bool done = __atomic_load_n(control, __ATOMIC_ACQUIRE) & ONCE_DONE;
	if (done || preload_self->busy || !preload_active() || preload_is_machine(site))
		return PRELOAD_REAL(pthread_once)(control, routine);
	struct once_call call = {.routine = routine,
		.object = preload_object(control, TRACE_OBJECT_once, false),
		.site = site,
		.outer = once_now};
	once_now = &call;
	if (__atomic_load_n(control, __ATOMIC_RELAXED))
		PRELOAD_RECORD_WAIT(lock_wait, site, call.object);
	int result = PRELOAD_REAL(pthread_once)(control, once_routine);
	once_now = call.outer;
	if (!call.ran) {
		PRELOAD_RECORD(lock_acquire, call.object, site);
		PRELOAD_RECORD(lock_release, call.object, site);
	}
	return result;
}

PRELOAD_EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void))
{
	return once(control, routine, PRELOAD_SITE);
}

PRELOAD_EXPORT void call_once(once_flag *control, void (*routine)(void))
{
	once((pthread_once_t *)control, routine, PRELOAD_SITE);
}

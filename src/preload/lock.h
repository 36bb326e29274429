/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h - what the wrappers of locks share, those that record (preload_*.c) and those that
 * count (tally/lock.c). */
#ifndef LONGPOLE_PRELOAD_LOCK_H
#define LONGPOLE_PRELOAD_LOCK_H

#include "preload/preload.h"
#include "preload/processor.h"
#include "preload/real.h"

#include <string.h>

/* ---- which object ---------------------------------------------------------------------------- */

/* PTHREAD_MUTEX_PSHARED_BIT of the kind is bit 7: moved to RING_OBJECT_SHARED. */
PRELOAD_INLINE uint64_t preload_mutex(const pthread_mutex_t *mutex)
{
	return (uintptr_t)mutex | (uint64_t)TRACE_OBJECT_mutex << RING_OBJECT_TYPE_SHIFT |
	       (uint64_t)((unsigned)mutex->__data.__kind & 0x80u) << 56;
}

PRELOAD_INLINE uint64_t preload_spin(const volatile pthread_spinlock_t *lock)
{
	return preload_object(lock, TRACE_OBJECT_spin, false);
}

PRELOAD_INLINE uint64_t preload_rwlock(const pthread_rwlock_t *lock)
{
	return preload_object(lock, TRACE_OBJECT_rwlock, lock->__data.__shared != 0);
}

PRELOAD_INLINE uint64_t preload_cond(const pthread_cond_t *cond)
{
	return preload_object(cond, TRACE_OBJECT_cond, (cond->__data.__wrefs & 1) != 0);
}

PRELOAD_INLINE uint64_t preload_semaphore(const sem_t *semaphore)
{
	struct { /* glibc's, as far as we look into it */
		uint64_t value_and_waiters;
		int shared;
	} inside;
	memcpy(&inside, semaphore, sizeof inside);
	return preload_object(semaphore, TRACE_OBJECT_semaphore, inside.shared != 0) |
	       (preload_has_python() ? preload_python_life(semaphore) : 0);
}

/* Before glibc 2.3.2 it was no more than a pointer. (Where somebody else's functions come next they
 * are the same ones for both.) */
PRELOAD_INLINE uint64_t preload_old_cond(const pthread_cond_t *cond)
{
	bool is_old = preload_real.old_cond_wait != preload_real.pthread_cond_wait;
	return is_old ? preload_object(cond, TRACE_OBJECT_cond, false) : preload_cond(cond);
}

/* ---- results and limits ---------------------------------------------------------------------- */

/* A robust mutex whose owner died is owned now: the caller has to make it consistent. */
PRELOAD_INLINE bool preload_is_acquired(int result)
{
	return result == 0 || result == EOWNERDEAD;
}

/* A limit that is no time, or of a clock that is none, is for the real function to refuse: some do
 * when the lock is free, too. */
PRELOAD_INLINE bool preload_has_time(clockid_t clock, const struct timespec *until)
{
	return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) &&
	       (!until || (uint64_t)until->tv_nsec < 1000000000u);
}

/* A C11 mutex is a pthread_mutex_t in glibc; only the results differ. */
PRELOAD_INLINE int preload_c11_result(int result)
{
	switch (result) {
	case 0:
		return thrd_success;
	case ENOMEM:
		return thrd_nomem;
	case ETIMEDOUT:
		return thrd_timedout;
	case EBUSY:
		return thrd_busy;
	default:
		return thrd_error;
	}
}

#define PRELOAD_LIST(...) __VA_ARGS__
#define NOTHING           PRELOAD_LIST()
#define UNTIL             PRELOAD_LIST(, const struct timespec *until)
#define CLOCKED           PRELOAD_LIST(, clockid_t clock, const struct timespec *until)
#define A_UNTIL           PRELOAD_LIST(, until)
#define A_CLOCKED         PRELOAD_LIST(, clock, until)
#define IN_UNTIL          preload_has_time(CLOCK_REALTIME, until)
#define IN_CLOCK          preload_has_time(clock, until)

/* ---- condition variables --------------------------------------------------------------------- */

/*
 * Every function of condition variables: WAIT(name, real, object_of, condition type, mutex type,
 * parameters, arguments, what the result of a wait that timed out is), WAKE(name, real, object_of,
 * condition type, signal or broadcast). glibc has two implementations of those with a version
 * (preload/preload.map); exactly one file of a library makes wrappers of this list.
 */
#define PRELOAD_CONDS(WAIT, WAKE)                                                                  \
	WAIT(preload_new_cond_wait, pthread_cond_wait, preload_cond, pthread_cond_t,               \
		pthread_mutex_t, NOTHING, NOTHING, ETIMEDOUT)                                      \
	WAIT(preload_new_cond_timedwait, pthread_cond_timedwait, preload_cond, pthread_cond_t,     \
		pthread_mutex_t, UNTIL, A_UNTIL, ETIMEDOUT)                                        \
	WAKE(preload_new_cond_signal, pthread_cond_signal, preload_cond, pthread_cond_t, signal)   \
	WAKE(preload_new_cond_broadcast, pthread_cond_broadcast, preload_cond, pthread_cond_t,     \
		broadcast)                                                                         \
	WAIT(preload_old_cond_wait, old_cond_wait, preload_old_cond, pthread_cond_t,               \
		pthread_mutex_t, NOTHING, NOTHING, ETIMEDOUT)                                      \
	WAIT(preload_old_cond_timedwait, old_cond_timedwait, preload_old_cond, pthread_cond_t,     \
		pthread_mutex_t, UNTIL, A_UNTIL, ETIMEDOUT)                                        \
	WAKE(preload_old_cond_signal, old_cond_signal, preload_old_cond, pthread_cond_t, signal)   \
	WAKE(preload_old_cond_broadcast, old_cond_broadcast, preload_old_cond, pthread_cond_t,     \
		broadcast)                                                                         \
	WAIT(pthread_cond_clockwait, pthread_cond_clockwait, preload_cond, pthread_cond_t,         \
		pthread_mutex_t, CLOCKED, A_CLOCKED, ETIMEDOUT)                                    \
	WAIT(cnd_wait, cnd_wait, preload_cond, cnd_t, mtx_t, NOTHING, NOTHING, thrd_timedout)      \
	WAIT(cnd_timedwait, cnd_timedwait, preload_cond, cnd_t, mtx_t, UNTIL, A_UNTIL,             \
		thrd_timedout)                                                                     \
	WAKE(cnd_signal, cnd_signal, preload_cond, cnd_t, signal)                                  \
	WAKE(cnd_broadcast, cnd_broadcast, preload_cond, cnd_t, broadcast)
#define PRELOAD_COND_VERSIONS                                                                      \
	PRELOAD_COND_VERSION(cond_wait)                                                            \
	PRELOAD_COND_VERSION(cond_timedwait)                                                       \
	PRELOAD_COND_VERSION(cond_signal)                                                          \
	PRELOAD_COND_VERSION(cond_broadcast)
#ifdef PRELOAD_STATIC /* libc.a has no versions, and no old ones */
#define PRELOAD_COND_VERSION(name) PRELOAD_ALIAS(pthread_##name, preload_new_##name)
#else
#define PRELOAD_COND_VERSION(name)                                                                 \
	PRELOAD_VERSION_IS_NOW(pthread_##name, preload_new_##name)                                 \
	PRELOAD_VERSION_IS_OLD(pthread_##name, preload_old_##name)
#endif

/* ---- who made it (preload/made.c) ------------------------------------------------------------ */

/* A lock, or the like, was initialised at `address`, by a call at `site`. */
void preload_made_note(const volatile void *address, uint64_t site);
PRELOAD_COLD void preload_made_slow(uint64_t object, uint64_t site);

PRELOAD_INLINE bool preload_made_known(uint64_t object)
{
	return preload_fresh.known[PRELOAD_KNOWN_SLOT(object)] == object;
}

/* Before an object's first use, at `site`, and now and then again: says who made it, if that is
 * known. */
PRELOAD_INLINE void preload_made(uint64_t object, uint64_t site)
{
	if (PRELOAD_RARE(!preload_made_known(object)))
		preload_made_slow(object, site);
}

#endif

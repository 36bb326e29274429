/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload_lock.c - mutex, spin lock, rwlock, once.
 *
 * A lock that is free is taken by the real trylock: then one record says so. A trylock that finds
 * it taken means waiting, or an error that the real lock function is asked for (EDEADLK). The stamp
 * of an acquire is taken after, that of a release before the real call: what others can see of the
 * lock lies between them.
 */
#include "record/preload.h"
#include "record/preload_real.h"

/* ---- mutex ---------------------------------------------------------------------------------- */

/* PTHREAD_MUTEX_PSHARED_BIT of the kind is bit 7: moved to RING_OBJECT_SHARED. */
PRELOAD_INLINE uint64_t mutex_object(const pthread_mutex_t *mutex)
{
	return (uintptr_t)mutex | (uint64_t)TRACE_OBJECT_mutex << RING_OBJECT_TYPE_SHIFT |
	       (uint64_t)((unsigned)mutex->__data.__kind & 0x80u) << 56;
}

/* A robust mutex whose owner died is owned now: the caller has to make it consistent. */
PRELOAD_INLINE bool is_acquired(int result)
{
	return result == 0 || result == EOWNERDEAD;
}

static void record_outcome(unsigned acquired_kind, int result, uint64_t object, uint64_t site)
{
	if (is_acquired(result))
		preload_record_at(preload_now(), acquired_kind, PRELOAD_WORDS(object, site));
	else
		PRELOAD_RECORD(lock_fail, object, site);
}

static PRELOAD_COLD int mutex_lock_contended(pthread_mutex_t *mutex, int result, uintptr_t site)
{
	uint64_t object = mutex_object(mutex);
	if (result == EBUSY) {
		PRELOAD_RECORD_WAIT(lock_wait, site, object);
		result = preload_real_mutex_lock(mutex);
	}
	record_outcome(PRELOAD_lock_acquire, result, object, site);
	return result;
}

PRELOAD_INLINE int mutex_lock(pthread_mutex_t *mutex, uintptr_t site)
{
	if (!preload_on())
		return preload_real_mutex_lock(mutex);
	int result = preload_real_mutex_trylock(mutex);
	if (PRELOAD_RARE(result != 0))
		return mutex_lock_contended(mutex, result, site);
	PRELOAD_RECORD(lock_acquire, mutex_object(mutex), site);
	return 0;
}

PRELOAD_INLINE int mutex_trylock(pthread_mutex_t *mutex, uintptr_t site)
{
	int result = preload_real_mutex_trylock(mutex);
	if (preload_on() && (is_acquired(result) || result == EBUSY))
		record_outcome(PRELOAD_lock_acquire, result, mutex_object(mutex), site);
	return result;
}

PRELOAD_INLINE int mutex_unlock(pthread_mutex_t *mutex, uintptr_t site)
{
	if (preload_on())
		PRELOAD_RECORD(lock_release, mutex_object(mutex), site);
	return preload_real_mutex_unlock(mutex);
}

PRELOAD_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return mutex_lock(mutex, PRELOAD_SITE);
}

PRELOAD_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return mutex_trylock(mutex, PRELOAD_SITE);
}

PRELOAD_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return mutex_unlock(mutex, PRELOAD_SITE);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* call_thread.c - threads and what they wait for: call records with times. */
#include "target/target.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <threads.h>

#define AT      TARGET_STUB
#define WORD(p) ((uint64_t)(uintptr_t)(p))

static void took(unsigned kind, const volatile void *object, uint64_t before, uint64_t after,
	uint64_t shares)
{
	if (kind == CALL_lock)
		longpole_target_took((const void *)object, after);
	longpole_target_call(kind, before, after, WORD(object), shares, 0, 0);
}

/* What takes, an int: recorded from before to after the call, when it succeeds. */
#define TAKE(name, kind, shares, before_it, parameters, arguments)                                 \
	int longpole_at_##name parameters;                                                         \
	AT int longpole_at_##name parameters                                                       \
	{                                                                                          \
		TARGET_UNLESS_ATTACHED(name arguments);                                            \
		before_it;                                                                         \
		uint64_t before = target_call_ticks();                                             \
		int result = TARGET_CALL(name arguments);                                          \
		if (!result)                                                                       \
			took(kind, object, before, target_call_ticks(), shares);                   \
		return result;                                                                     \
	}
#define SYNC(name, kind, type)                                                                     \
	TAKE(name, kind, 0, longpole_target_let_go(), (type * object), (object))
/* What may last. */
#define WAIT(name, kind, parameters, arguments)                                                    \
	TAKE(name, kind, 0, longpole_target_let_see(true), parameters, arguments)
/* Readers' locks. */
#define SHARE(name, parameters, arguments)                                                         \
	TAKE(name, CALL_lock, 1, longpole_target_let_go(), parameters, arguments)
/* What gives: recorded before the call, lest the taker be recorded earlier. */
#define GIVE(name, kind, type)                                                                     \
	int longpole_at_##name(type *object);                                                      \
	AT int longpole_at_##name(type *object)                                                    \
	{                                                                                          \
		uint64_t now = target_call_ticks();                                                \
		longpole_target_call(kind, now, now, WORD(object), 0, 0, 0);                       \
		return name(object);                                                               \
	}

static void call_thread_take(const void *object, uint64_t before, uint64_t after)
{
	longpole_target_took(object, after);
	if (before == after)
		longpole_target_mark(MEMORY_MARK_take, (const uint64_t[]){WORD(object), after});
	else
		longpole_target_call(CALL_lock, before, after, WORD(object), 0, 0, 0);
}

static void call_thread_give(const void *object, uint64_t now)
{
	longpole_target_mark(MEMORY_MARK_give, (const uint64_t[]){WORD(object), now});
}

/* Mutexes are the cheapest to take. Where the preload library reads the clock for them, its times
 * count; when it no longer does, ours do. */
int longpole_at_pthread_mutex_lock(pthread_mutex_t *object);
AT int longpole_at_pthread_mutex_lock(pthread_mutex_t *object)
{
	struct record_lock_stamps *s = longpole_memory.stamps;
	TARGET_UNLESS_ATTACHED(pthread_mutex_lock(object));
	longpole_target_let_go();
	uint64_t last = s ? s->after : target_call_ticks();
	int result = TARGET_CALL(pthread_mutex_lock(object));
	if (result)
		return result;
	if (!s) {
		call_thread_take(object, last, target_call_ticks());
		return 0;
	}
	if (s->after == last) {
		s->before = s->after = target_call_ticks();
		longpole_memory.stamps = NULL;
	}
	call_thread_take(object, s->before, s->after);
	return 0;
}

/* Its time is from before the call, after which the lock may be another's already. */
int longpole_at_pthread_mutex_unlock(pthread_mutex_t *object);
AT int longpole_at_pthread_mutex_unlock(pthread_mutex_t *object)
{
	struct record_lock_stamps *s = longpole_memory.stamps;
	TARGET_UNLESS_ATTACHED(pthread_mutex_unlock(object));
	if (!s) {
		call_thread_give(object, target_call_ticks());
		return pthread_mutex_unlock(object);
	}
	int result = TARGET_CALL(pthread_mutex_unlock(object));
	call_thread_give(object, s->after); /* (at worst that of taking it) */
	return result;
}

SYNC(pthread_mutex_trylock, CALL_lock, pthread_mutex_t)
WAIT(pthread_mutex_timedlock, CALL_lock, (pthread_mutex_t * object, const struct timespec *until),
	(object, until))
WAIT(pthread_mutex_clocklock, CALL_lock,
	(pthread_mutex_t * object, clockid_t clock, const struct timespec *until),
	(object, clock, until))
SYNC(mtx_lock, CALL_lock, mtx_t)
SYNC(mtx_trylock, CALL_lock, mtx_t)
WAIT(mtx_timedlock, CALL_lock, (mtx_t * object, const struct timespec *until), (object, until))
SHARE(pthread_rwlock_rdlock, (pthread_rwlock_t * object), (object))
SHARE(pthread_rwlock_tryrdlock, (pthread_rwlock_t * object), (object))
SHARE(pthread_rwlock_timedrdlock, (pthread_rwlock_t * object, const struct timespec *until),
	(object, until))
SYNC(pthread_rwlock_wrlock, CALL_lock, pthread_rwlock_t)
SYNC(pthread_rwlock_trywrlock, CALL_lock, pthread_rwlock_t)
WAIT(pthread_rwlock_timedwrlock, CALL_lock,
	(pthread_rwlock_t * object, const struct timespec *until), (object, until))
GIVE(pthread_rwlock_unlock, CALL_unlock, pthread_rwlock_t)
WAIT(sem_wait, CALL_wait, (sem_t * object), (object))
WAIT(sem_timedwait, CALL_wait, (sem_t * object, const struct timespec *until), (object, until))
WAIT(sem_clockwait, CALL_wait, (sem_t * object, clockid_t clock, const struct timespec *until),
	(object, clock, until))
SYNC(sem_trywait, CALL_wait, sem_t)
GIVE(sem_post, CALL_signal, sem_t)
GIVE(mtx_unlock, CALL_unlock, mtx_t)

#define SIGNAL(name, type)                                                                         \
	int longpole_at_##name(type *cond);                                                        \
	AT int longpole_at_##name(type *cond)                                                      \
	{                                                                                          \
		uint64_t now = target_call_ticks();                                                \
		longpole_target_signals(cond);                                                     \
		longpole_target_call(CALL_signal, now, now, WORD(cond), 0, 0, 0);                  \
		return name(cond);                                                                 \
	}
SIGNAL(pthread_cond_signal, pthread_cond_t)
SIGNAL(pthread_cond_broadcast, pthread_cond_t)
SIGNAL(cnd_signal, cnd_t)
SIGNAL(cnd_broadcast, cnd_t)

/* How many units there are to take; other processes' are not known. */
int longpole_at_sem_init(sem_t *object, int is_shared, unsigned value);
AT int longpole_at_sem_init(sem_t *object, int is_shared, unsigned value)
{
	int result = sem_init(object, is_shared, value);
	uint64_t now = target_call_ticks();
	if (!result && !is_shared)
		longpole_target_call(CALL_semaphore, now, now, WORD(object), value, 0, 0);
	return result;
}

/* (The last two are there only where it is made.) */
sem_t *longpole_at_sem_open(const char *name, int flags, mode_t mode, unsigned value);
AT sem_t *longpole_at_sem_open(const char *name, int flags, mode_t mode, unsigned value)
{
	sem_t *object = sem_open(name, flags, mode, value);
	uint64_t now = target_call_ticks();
	int units;
	if (object != SEM_FAILED && !sem_getvalue(object, &units))
		longpole_target_call(CALL_semaphore, now, now, WORD(object), (uint64_t)units, 1, 0);
	return object;
}

/* spin locks are volatile */
int longpole_at_pthread_spin_lock(pthread_spinlock_t *lock);
AT int longpole_at_pthread_spin_lock(pthread_spinlock_t *lock)
{
	TARGET_UNLESS_ATTACHED(pthread_spin_lock(lock));
	uint64_t before = target_call_ticks();
	int result = TARGET_CALL(pthread_spin_lock(lock));
	longpole_target_call(CALL_lock, before, target_call_ticks(), WORD(lock), 0, 0, 0);
	return result;
}

int longpole_at_pthread_spin_unlock(pthread_spinlock_t *lock);
AT int longpole_at_pthread_spin_unlock(pthread_spinlock_t *lock)
{
	uint64_t now = target_call_ticks();
	longpole_target_call(CALL_unlock, now, now, WORD(lock), 0, 0, 0);
	return pthread_spin_unlock(lock);
}

#define COND_WAIT(name, parameters, arguments)                                                     \
	int longpole_at_##name parameters;                                                         \
	AT int longpole_at_##name parameters                                                       \
	{                                                                                          \
		TARGET_UNLESS_ATTACHED(name arguments);                                            \
		uint64_t before = target_call_ticks();                                             \
		longpole_target_awaits(cond, mutex);                                               \
		longpole_target_call(CALL_unlock, before, before, WORD(mutex), 0, 0, 0);           \
		longpole_target_let_see(true);                                                     \
		int result = TARGET_CALL(name arguments);                                          \
		longpole_target_call(CALL_wait, before, target_call_ticks(), WORD(cond), 0, 0, 0); \
		took(CALL_lock, mutex, before, target_call_ticks(), 0);                            \
		return result;                                                                     \
	}
/* NOLINTBEGIN(bugprone-spuriously-wake-up-functions): the caller asks again */
COND_WAIT(cnd_wait, (cnd_t * cond, mtx_t *mutex), (cond, mutex))
COND_WAIT(cnd_timedwait, (cnd_t * cond, mtx_t *mutex, const struct timespec *until),
	(cond, mutex, until))
/* NOLINTEND(bugprone-spuriously-wake-up-functions) */
COND_WAIT(pthread_cond_wait, (pthread_cond_t * cond, pthread_mutex_t *mutex), (cond, mutex))
COND_WAIT(pthread_cond_timedwait,
	(pthread_cond_t * cond, pthread_mutex_t *mutex, const struct timespec *until),
	(cond, mutex, until))
COND_WAIT(pthread_cond_clockwait,
	(pthread_cond_t * cond, pthread_mutex_t *mutex, clockid_t clock,
		const struct timespec *until),
	(cond, mutex, clock, until))

int longpole_at_pthread_barrier_wait(pthread_barrier_t *barrier);
AT int longpole_at_pthread_barrier_wait(pthread_barrier_t *barrier)
{
	TARGET_UNLESS_ATTACHED(pthread_barrier_wait(barrier));
	/* glibc's struct: the count is its third word */
	uint64_t parties = ((const uint32_t *)(const void *)barrier)[2];
	longpole_target_let_see(true);
	uint64_t before = target_call_ticks();
	int result = TARGET_CALL(pthread_barrier_wait(barrier));
	longpole_target_call(
		CALL_barrier, before, target_call_ticks(), WORD(barrier), parties, 0, 0);
	return result;
}

/* ---- threads --------------------------------------------------------------------------------- */

struct birth {
	struct record_birth of;
	uint64_t token;
};

/* Also when it is cancelled or calls pthread_exit. */
static void call_thread_leaves(void *token)
{
	uint64_t now = target_call_ticks();
	longpole_target_call(CALL_thread_end, now, now, WORD(token), 0, 0, 0);
}

static TARGET_BETWEEN void *call_thread_begins(void *argument)
{
	struct birth b = *(struct birth *)argument;
	void *result;
	uint64_t now = target_call_ticks();
	free(argument); /* allowed: of the call below */
	longpole_target_call(CALL_thread_begin, now, now, b.token, 0, 0, 0);
	pthread_cleanup_push(call_thread_leaves, (void *)(uintptr_t)b.token);
	result = b.of.function(b.of.argument);
	pthread_cleanup_pop(1);
	return result;
}

int longpole_at_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
	void *(*function)(void *), void *argument);
AT int longpole_at_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
	void *(*function)(void *), void *argument)
{
	TARGET_UNLESS_ATTACHED(pthread_create(thread, attributes, function, argument));
	struct birth *b = malloc(sizeof *b); /* allowed: the thread outlives our stack */
	if (!b)
		return EAGAIN;
	uint64_t before = target_call_ticks();
	*b = (struct birth){{function, argument}, WORD(b) ^ before << 20};
	uint64_t token = b->token;
	longpole_target_call(CALL_thread_create, before, before, token, 0, 0, 0);
	longpole_target_let_see(false);
	longpole_memory.nr_told++;
	int result = TARGET_CALL(pthread_create(thread, attributes, call_thread_begins, b));
	longpole_memory.nr_told--;
	if (result)
		free(b); /* allowed: see above */
	return result;
}

#define THREAD_JOIN(name, parameters, arguments)                                                   \
	int longpole_at_##name parameters;                                                         \
	AT int longpole_at_##name parameters                                                       \
	{                                                                                          \
		TARGET_UNLESS_ATTACHED(name arguments);                                            \
		longpole_target_let_see(true);                                                     \
		uint64_t before = target_call_ticks();                                             \
		longpole_memory.nr_told++;                                                         \
		int result = TARGET_CALL(name arguments);                                          \
		longpole_memory.nr_told--;                                                         \
		if (!result)                                                                       \
			longpole_target_call(CALL_thread_join, before, target_call_ticks(),        \
				(uint64_t)thread, 0, 0, 0);                                        \
		return result;                                                                     \
	}
THREAD_JOIN(pthread_join, (pthread_t thread, void **value), (thread, value))
THREAD_JOIN(pthread_tryjoin_np, (pthread_t thread, void **value), (thread, value))
THREAD_JOIN(pthread_timedjoin_np, (pthread_t thread, void **value, const struct timespec *until),
	(thread, value, until))
THREAD_JOIN(pthread_clockjoin_np,
	(pthread_t thread, void **value, clockid_t clock, const struct timespec *until),
	(thread, value, clock, until))
THREAD_JOIN(thrd_join, (thrd_t thread, int *value), (thread, value))

/* The thread that begins is known by its handle, afterwards (memory/stream/source.h). */
int longpole_at_thrd_create(thrd_t *thread, thrd_start_t function, void *argument);
AT int longpole_at_thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
	TARGET_UNLESS_ATTACHED(thrd_create(thread, function, argument));
	uint64_t before = target_call_ticks();
	longpole_memory.nr_told++;
	int result = TARGET_CALL(thrd_create(thread, function, argument));
	longpole_memory.nr_told--;
	if (result == thrd_success)
		longpole_target_call(
			CALL_thread_create, before, before, 0, (uint64_t)*thread, 0, 0);
	longpole_target_let_see(false);
	return result;
}

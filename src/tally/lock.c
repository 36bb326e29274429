/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.c - locks counted where they are taken: exactly, with a sample of the holds timed.
 *
 * A lock that looks taken when it is asked for counts as contended, and its wait is timed. Of the
 * holds of a lock at a place the first is timed, then one in eight, by chance: each pair of lock
 * and place has its own turn, so that a program's rhythm cannot hide one from the sample. Of those
 * that are taken often, and of a thread that has timed many, fewer are timed, and each counts more.
 * With TALLY_ALL each hold is timed: two readings of the clock a pair, and what they say is added
 * where the lock was counted, in the same line of the cache.
 */
#include "preload/env.h"
#include "preload/lock.h"
#include "runtime/openmp/omp.h"
#include "tally/count.h"
#include "tally/events.h"

/* ---- timed holds ----------------------------------------------------------------------------- */

enum { TIMED_MAX = 32, MANY = 4096, NEVER_SOON = 1 << 30 };
enum { HOLE, FILLING }; /* no locks' addresses */
/* Holds that are being timed, the last one on top; where there are more, the oldest are forgotten.
 * One that does not end first leaves a hole, which goes with what is on top of it. Signal handlers
 * push and pop in between: a push takes its place before it fills it. */
struct holds {
	struct timed {
		uintptr_t lock;
		uint64_t since_tsc, weight;
		struct tally_tag *at;
	} timed[TIMED_MAX];
	uint64_t held_since_tsc; /* by the first of those that are timed */
	uint32_t nr_begun, chance;
};
_Static_assert(sizeof(struct holds) <= PRELOAD_MORE_WORDS * sizeof(uint64_t), "has room");

/* (who asks has counted: the place is this thread's own) */
PRELOAD_INLINE struct holds *mine(void)
{
	return (struct holds *)(void *)preload_self->more;
}

PRELOAD_INLINE struct timed *timed_at(uint32_t i)
{
	return &mine()->timed[i % TIMED_MAX];
}

/* Of how many holds that are timed the lock is in this slot: one that is held for very long, as an
 * interpreter's is, must not make the releases of all others look for theirs. */
PRELOAD_INLINE uint8_t *timed_in(uintptr_t lock)
{
	return &preload_self->timed_in[lock / 16 % PRELOAD_TIMED_SLOTS];
}

PRELOAD_INLINE void forget_one(struct timed *t)
{
	uint8_t *n = timed_in(t->lock);
	if (t->lock > FILLING && *n)
		TALLY_DEC8(*n);
	t->lock = HOLE;
}

/* What is timed next of a lock at a place, by what its timed holds count until now: one in `every`,
 * which counts `weight` times as much as one in eight. */
static const struct rate {
	uint64_t until;
	uint32_t every, weight;
} rates[] = {{128, 8, 1}, {2048, 64, 8}, {UINT64_MAX, 256, 32}};

static const struct rate *rate_of(const struct tally_entry *e)
{
	const struct rate *rate = rates + (mine()->nr_begun > MANY);
	while (e->n[TALLY_hold_nr] >= rate->until)
		rate++;
	return rate;
}

/* Of `every` holds one on average, whatever the program's rhythm. */
static uint32_t lock_draw(uint32_t every)
{
	uint32_t chance = mine()->chance = mine()->chance * 1103515245u + 12345u;
	return 1 + (uint32_t)((chance >> 16) * (uint64_t)(2 * every - 1) >> 16);
}

/* The next turn is after `holds`; says how many there were. A signal handler may count meanwhile.
 */
static uint64_t next_turn(struct tally_tag *t, uint64_t before, uint32_t holds)
{
	uint64_t turn = t->turn, next;
	do {
		uint32_t now = (uint32_t)(turn >> 32) - (uint32_t)turn;
		next = (uint64_t)(now + holds) << 32 | holds;
	} while (!TALLY_REPLACE(t->turn, turn, next));
	return tally_acquired(before, turn);
}

/* now_tsc 0: not looked at yet. */
PRELOAD_INLINE void begin_hold(
	uintptr_t lock, struct tally_tag *at, uint32_t weight, uint64_t now_tsc)
{
	struct timed *t = timed_at(preload_self->nr_timed);
	if (PRELOAD_RARE(t->lock))
		forget_one(t);
	t->lock = FILLING;
	PRELOAD_BARRIER();
	TALLY_INC32(preload_self->nr_timed);
	t->at = at;
	t->weight = weight;
	TALLY_INC8(*timed_in(lock));
	t->lock = lock;
	/* last: what comes after it is in the hold */
	t->since_tsc = now_tsc ? now_tsc : preload_now();
	if (preload_self->nr_timed == 1)
		mine()->held_since_tsc = t->since_tsc;
}

static void lock_add_hold(struct tally_entry *e, uint64_t weight, uint64_t ticks)
{
	uint64_t ns = tally_ns(ticks);
	TALLY_ADD(e->n[TALLY_hold_nr], weight);
	TALLY_ADD(e->n[TALLY_hold_ns], weight * ns);
	TALLY_ADD(e->weight_squares, weight * weight);
	tally_max(&e->n[TALLY_hold_max_ns], ns);
	e->squares += (double)weight * (double)ns * (double)ns;
	struct tally_table *t = preload_self->tally;
	if (t)
		TALLY_ADD(t->hold_bin[tally_bin(ns)], weight);
}

PRELOAD_INLINE uint64_t without_stamps(uint64_t ticks)
{
	uint64_t least = preload_fresh.head->stamp_ticks;
	return ticks > least ? ticks - least : 0;
}

/* Each hold is timed. */
PRELOAD_INLINE void add_each(struct tally_tag *t, uint64_t ended_after, uint64_t now_tsc)
{
	struct tally_held *held = tally_held_of(t);
	uint64_t ticks = without_stamps(ended_after);
	struct tally_table *table = preload_self->tally;
	if (PRELOAD_RARE(ticks > UINT32_MAX || held->nr == UINT32_MAX)) {
		lock_add_hold(tally_entry_of(t), 1, ended_after);
	} else {
		TALLY_ADD(held->ticks, ticks);
		TALLY_INC32(held->nr);
		if (ticks > held->max_ticks)
			held->max_ticks = (uint32_t)ticks;
		if (table) /* (a tick is less than a nanosecond: no overflow) */
			TALLY_INC(table->hold_bin[tally_bin(
				ticks * preload_fresh.head->ns_per_tick_32 >> 32)]);
	}
	if (!preload_self->nr_timed && table)
		TALLY_ADD(table->held_ticks, without_stamps(now_tsc - mine()->held_since_tsc));
}

/* ---- events (tally/events.h) of sampled mutexes: while they are taken, if they are free, and
 * held. Of the innermost holds that are timed there is room for some.
 * ---------------------------------- */

enum { EVENT_HOLDS = 8, EVENT_HOLDS_WORD = 160 };
struct event_hold {
	uintptr_t lock; /* of `since`; 0: none */
	struct tally_event_reading since;
};
_Static_assert(sizeof(struct holds) <= EVENT_HOLDS_WORD * sizeof(uint64_t) &&
		       EVENT_HOLDS_WORD + sizeof(struct event_hold) / 8 * EVENT_HOLDS <=
			       PRELOAD_MORE_WORDS - 32,
	"between the holds and the events");

static struct event_hold *event_hold_at(uint32_t i)
{
	return (struct event_hold *)(void *)(preload_self->more + EVENT_HOLDS_WORD) +
	       i % EVENT_HOLDS;
}

PRELOAD_INLINE bool has_events(void)
{
	return PRELOAD_RARE(preload_self->tally_events) && preload_self->tally_mask == TALLY_EIGHTH;
}

/* The next hold that is timed begins, of this lock. */
static PRELOAD_COLD void begin_events(uintptr_t lock)
{
	struct event_hold *h = event_hold_at(preload_self->nr_timed);
	h->lock = 0;
	if (tally_events_read(&h->since))
		h->lock = lock;
}

/* Before the lock is given up: is it the last that was timed, and *ret what there is now? */
static PRELOAD_COLD bool end_events(uintptr_t lock, struct tally_event_reading *ret)
{
	uint32_t nr = preload_self->nr_timed;
	return nr && timed_at(nr - 1)->lock == lock && event_hold_at(nr - 1)->lock == lock &&
	       tally_events_read(ret);
}

/* After it was, and before the hold is forgotten. */
static PRELOAD_COLD void add_held_events(const struct tally_event_reading *now)
{
	uint32_t at = preload_self->nr_timed - 1;
	const struct timed *t = timed_at(at);
	struct tally_events *to =
		preload_fresh.head ? tally_events_of(tally_entry_of(t->at)) : NULL;
	if (to)
		tally_events_add(&event_hold_at(at)->since, now, t->weight, &to->sampled);
	event_hold_at(at)->lock = 0;
}

static PRELOAD_COLD void add_taken_events(
	const struct tally_tag *t, const struct tally_event_reading *since)
{
	struct tally_event_reading now;
	struct tally_events *to = tally_events_of(tally_entry_of(t));
	if (tally_events_read(&now) && to)
		tally_events_add(since, &now, 1, &to->special);
}

static void two_stamps(void)
{
	volatile uint64_t stamp[2];
	stamp[0] = preload_now();
	stamp[1] = preload_now();
	(void)stamp;
}

__attribute__((constructor)) static void measure_events(void)
{
	if (preload_on() && preload_ring.nr_events)
		tally_events_measure(two_stamps);
}

/* It is the turn of a hold. */
static __attribute__((noinline)) void take_turn(
	uintptr_t lock, struct tally_tag *t, uint64_t now_tsc)
{
	struct tally_entry *e = tally_entry_of(t);
	bool is_timed = preload_self->tally_mask == TALLY_EIGHTH, is_first = !e->n[TALLY_acquired];
	const struct rate *rate = rate_of(e);
	e->n[TALLY_acquired] =
		next_turn(t, e->n[TALLY_acquired], is_timed ? lock_draw(rate->every) : NEVER_SOON);
	mine()->nr_begun += is_timed && mine()->nr_begun <= MANY;
	if (has_events())
		begin_events(lock);
	if (preload_self->tally_mask != TALLY_NEVER)
		begin_hold(lock, t, is_first ? 1 : rate->weight, now_tsc);
}

static PRELOAD_COLD void forget_timed(void)
{
	preload_self->nr_timed = 0;
	for (unsigned i = 0; i < PRELOAD_TIMED_SLOTS; i++)
		preload_self->timed_in[i] = 0;
}

/* Of those that are timed, the last one of that lock, which its owner may have taken again. */
static struct timed *find_timed(uintptr_t lock)
{
	uint32_t nr = preload_self->nr_timed, end = nr < TIMED_MAX ? 0 : nr - TIMED_MAX;
	for (; nr > end; nr--)
		if (timed_at(nr - 1)->lock == lock)
			return timed_at(nr - 1);
	return NULL;
}

static PRELOAD_COLD void forget_holes(uint32_t nr)
{
	while (nr && timed_at(nr - 1)->lock == HOLE)
		nr--;
	preload_self->nr_timed = nr;
}

PRELOAD_INLINE void end_hold(uintptr_t lock, uint64_t now_tsc)
{
	if (PRELOAD_RARE(!preload_fresh.head)) { /* a fork's child: the tables are the parent's */
		forget_timed();
		return;
	}
	uint32_t nr = preload_self->nr_timed;
	struct timed *t = timed_at(nr - 1);
	if (PRELOAD_RARE(!nr || t->lock != lock) && !(t = find_timed(lock)))
		return;
	struct timed was = *t;
	forget_one(t);
	if (PRELOAD_LIKELY(t == timed_at(nr - 1)))
		preload_self->nr_timed = --nr;
	if (PRELOAD_RARE(nr && timed_at(nr - 1)->lock == HOLE))
		forget_holes(nr);
	if (preload_self->tally_mask == TALLY_ALL)
		add_each(was.at, now_tsc - was.since_tsc, now_tsc);
	else
		lock_add_hold(tally_entry_of(was.at), was.weight, now_tsc - was.since_tsc);
}

/* When `lock` is given up, if anybody wants to know; what is made of it comes after the release:
 * it is no part of the hold, and nobody waits for it. */
PRELOAD_INLINE uint64_t release_tsc(const volatile void *lock)
{
	return PRELOAD_RARE(*timed_in((uintptr_t)lock)) ? preload_now() : 0;
}

static __attribute__((noinline)) void released(uintptr_t lock, uint64_t now_tsc)
{
	end_hold(lock, now_tsc);
}

/* ---- outcomes -------------------------------------------------------------------------------- */

/* One more; true: it is this one's turn. One instruction, as all that counts. */
PRELOAD_INLINE bool count(struct tally_tag *t)
{
	return PRELOAD_RARE(PROCESSOR_DEC32_IS_0(t->left));
}

/* The lock is held from now on, or from now_tsc. */
PRELOAD_INLINE void held(uintptr_t lock, struct tally_tag *t, uint64_t now_tsc)
{
	if (count(t))
		take_turn(lock, t, now_tsc);
	else if (preload_self->tally_mask == TALLY_ALL)
		begin_hold(lock, t, 1, now_tsc);
}

static void lock_add_wait(struct tally_entry *e, uint64_t ticks)
{
	uint64_t ns = tally_ns(ticks);
	TALLY_INC(e->n[TALLY_wait_nr]);
	TALLY_ADD(e->n[TALLY_wait_ns], ns);
	tally_max(&e->n[TALLY_wait_max_ns], ns);
	struct tally_table *t = preload_self->tally;
	if (t)
		TALLY_INC(t->wait_bin[tally_bin(ns)]);
}

/* The usual outcome: it was free. */
PRELOAD_INLINE void acquired(struct tally_tag *t, uintptr_t lock, bool shared)
{
	if (shared)
		TALLY_INC(tally_entry_of(t)->n[TALLY_shared]);
	held(lock, t, 0);
}

static PRELOAD_COLD void outcome(struct tally_tag *t, uintptr_t lock, int result, bool shared,
	bool waited, uint64_t asked_tsc)
{
	struct tally_entry *e = tally_entry_of(t);
	if (!preload_is_acquired(result) && result != EBUSY && result != ETIMEDOUT)
		return; /* not a matter of locks: EDEADLK, EINVAL ... */
	uint64_t now_tsc = waited ? preload_now() : 0;
	if (waited)
		lock_add_wait(e, now_tsc - asked_tsc);
	if (!preload_is_acquired(result)) {
		TALLY_INC(e->n[TALLY_failed]);
		return;
	}
	if (shared)
		TALLY_INC(e->n[TALLY_shared]);
	if (waited)
		TALLY_INC(e->n[TALLY_contended]);
	held(lock, t, now_tsc);
}

/* ---- mutex ----------------------------------------------------------------------------------- */

/* By another, that is: a recursive one may be ours. */
static PRELOAD_COLD int mutex_lock_taken(pthread_mutex_t *mutex, struct tally_tag *t)
{
	bool ours = (uint32_t)__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) ==
		    preload_self->tid;
	uint64_t asked_tsc = preload_now();
	int result = preload_real_mutex_lock(mutex);
	outcome(t, (uintptr_t)mutex, result, false, !ours, asked_tsc);
	return result;
}

/* In glibc's kinds: robust, priority inheritance, priority ceiling. Others that are free are
 * acquired: they are counted before, and the real function is jumped to. */
enum { MAY_FAIL = 0x10 | 0x20 | 0x40 };

static __attribute__((noinline)) int mutex_lock_checked(pthread_mutex_t *mutex, struct tally_tag *t)
{
	int result = preload_real_mutex_lock(mutex);
	outcome(t, (uintptr_t)mutex, result, false, false, 0);
	return result;
}

static __attribute__((noinline)) int mutex_lock_timed(pthread_mutex_t *mutex, struct tally_tag *t)
{
	struct tally_event_reading since;
	bool has = has_events() && tally_events_read(&since);
	int result = preload_real_mutex_lock(mutex);
	if (PRELOAD_RARE(has))
		add_taken_events(t, &since);
	take_turn((uintptr_t)mutex, t, 0);
	return result;
}

static __attribute__((noinline)) int mutex_lock_each(pthread_mutex_t *mutex, struct tally_tag *t)
{
	int result = preload_real_mutex_lock(mutex);
	begin_hold((uintptr_t)mutex, t, 1, 0);
	return result;
}

PRELOAD_INLINE int mutex_lock_counted(pthread_mutex_t *mutex, struct tally_tag *t)
{
	if (PRELOAD_RARE(__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED)))
		return mutex_lock_taken(mutex, t);
	if (PRELOAD_RARE(mutex->__data.__kind & MAY_FAIL))
		return mutex_lock_checked(mutex, t);
	if (count(t))
		return mutex_lock_timed(mutex, t);
	if (PRELOAD_RARE(preload_self->tally_mask == TALLY_ALL))
		return mutex_lock_each(mutex, t);
	return preload_real_mutex_lock(mutex);
}

static __attribute__((noinline)) int mutex_lock_elsewhere(pthread_mutex_t *mutex, uintptr_t site)
{
	struct tally_tag *t = tally_find(preload_mutex(mutex), site);
	return t ? mutex_lock_counted(mutex, t) : preload_real_mutex_lock(mutex);
}

/* What is not usual is jumped to, not called: nothing has to be kept on the stack for it. */
PRELOAD_INLINE int mutex_lock(pthread_mutex_t *mutex, uintptr_t site)
{
	uint64_t name = (uintptr_t)mutex | (uint64_t)TRACE_OBJECT_mutex << RING_OBJECT_TYPE_SHIFT;
	struct tally_tag *t = tally_here(name, site);
	return PRELOAD_LIKELY(t) ? mutex_lock_counted(mutex, t) : mutex_lock_elsewhere(mutex, site);
}

/* A try's result, and it did not wait. */
PRELOAD_INLINE int tried(uintptr_t lock, uint64_t key, uint64_t site, int result, bool shared)
{
	struct tally_tag *t = tally_find(key, site);
	if (t && PRELOAD_LIKELY(!result))
		acquired(t, lock, shared);
	else if (t)
		outcome(t, lock, result, shared, false, 0);
	return result;
}

static __attribute__((noinline)) int mutex_unlock_timed(pthread_mutex_t *mutex)
{
	struct tally_event_reading now;
	uint64_t now_tsc = preload_now();
	bool has = has_events() && end_events((uintptr_t)mutex, &now);
	int result = preload_real_mutex_unlock(mutex);
	if (PRELOAD_RARE(has))
		add_held_events(&now);
	end_hold((uintptr_t)mutex, now_tsc);
	return result;
}

PRELOAD_INLINE int mutex_unlock(pthread_mutex_t *mutex)
{
	if (PRELOAD_RARE(*timed_in((uintptr_t)mutex)))
		return mutex_unlock_timed(mutex);
	return preload_real_mutex_unlock(mutex);
}

PRELOAD_INLINE int mutex_trylock(pthread_mutex_t *mutex, uintptr_t site)
{
	int result = preload_real_mutex_trylock(mutex);
	return tried((uintptr_t)mutex, preload_mutex(mutex), site, result, false);
}

PRELOAD_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return mutex_lock(mutex, PRELOAD_CALLER);
}

PRELOAD_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return mutex_trylock(mutex, PRELOAD_CALLER);
}

PRELOAD_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return mutex_unlock(mutex);
}

PRELOAD_EXPORT int mtx_lock(mtx_t *mutex)
{
	return preload_c11_result(mutex_lock((pthread_mutex_t *)mutex, PRELOAD_CALLER));
}

PRELOAD_EXPORT int mtx_trylock(mtx_t *mutex)
{
	return preload_c11_result(mutex_trylock((pthread_mutex_t *)mutex, PRELOAD_CALLER));
}

PRELOAD_EXPORT int mtx_unlock(mtx_t *mutex)
{
	return preload_c11_result(mutex_unlock((pthread_mutex_t *)mutex));
}

/* ---- other locks: the one that does not wait is tried first ---------------------------------- */

#define WAITING_LOCK(name, type, parameters, arguments, limit, try_lock, key_of, shared)           \
	PRELOAD_EXPORT int name(type *lock parameters)                                             \
	{                                                                                          \
		uint64_t key = key_of(lock), asked_tsc = 0;                                        \
		struct tally_tag *t = tally_find(key, PRELOAD_CALLER);                             \
		if (!t)                                                                            \
			return PRELOAD_REAL(name)(lock arguments);                                 \
		int result = (limit) ? try_lock(lock) : PRELOAD_REAL(name)(lock arguments);        \
		bool waits = (limit) && result == EBUSY;                                           \
		if (waits) {                                                                       \
			asked_tsc = preload_now();                                                 \
			result = PRELOAD_REAL(name)(lock arguments);                               \
		}                                                                                  \
		if (PRELOAD_LIKELY(!result && !waits))                                             \
			acquired(t, (uintptr_t)lock, shared);                                      \
		else                                                                               \
			outcome(t, (uintptr_t)lock, result, shared, waits, asked_tsc);             \
		return result;                                                                     \
	}
#define TRY_LOCK(name, type, key_of, shared)                                                       \
	PRELOAD_EXPORT int name(type *lock)                                                        \
	{                                                                                          \
		int result = PRELOAD_REAL(name)(lock);                                             \
		return tried((uintptr_t)lock, key_of(lock), PRELOAD_CALLER, result, shared);       \
	}

WAITING_LOCK(pthread_mutex_timedlock, pthread_mutex_t, UNTIL, A_UNTIL, IN_UNTIL,
	preload_real_mutex_trylock, preload_mutex, false)
WAITING_LOCK(pthread_mutex_clocklock, pthread_mutex_t, CLOCKED, A_CLOCKED, IN_CLOCK,
	preload_real_mutex_trylock, preload_mutex, false)

PRELOAD_EXPORT int mtx_timedlock(mtx_t *mutex, const struct timespec *until)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)mutex;
	uint64_t key = preload_mutex(lock);
	struct tally_tag *t = tally_find(key, PRELOAD_CALLER);
	if (!t)
		return PRELOAD_REAL(mtx_timedlock)(mutex, until);
	int result = preload_real_mutex_trylock(lock);
	bool waits = result == EBUSY;
	uint64_t asked_tsc = waits ? preload_now() : 0;
	if (waits)
		result = PRELOAD_REAL(pthread_mutex_timedlock)(lock, until);
	outcome(t, (uintptr_t)lock, result, false, waits, asked_tsc);
	return preload_c11_result(result);
}

WAITING_LOCK(pthread_spin_lock, pthread_spinlock_t, NOTHING, NOTHING, true,
	PRELOAD_REAL(pthread_spin_trylock), preload_spin, false)
TRY_LOCK(pthread_spin_trylock, pthread_spinlock_t, preload_spin, false)

PRELOAD_EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	uint64_t now_tsc = release_tsc(lock);
	int result = PRELOAD_REAL(pthread_spin_unlock)(lock);
	if (PRELOAD_RARE(now_tsc))
		released((uintptr_t)lock, now_tsc);
	return result;
}

WAITING_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t, NOTHING, NOTHING, true,
	PRELOAD_REAL(pthread_rwlock_tryrdlock), preload_rwlock, true)
WAITING_LOCK(pthread_rwlock_timedrdlock, pthread_rwlock_t, UNTIL, A_UNTIL, IN_UNTIL,
	PRELOAD_REAL(pthread_rwlock_tryrdlock), preload_rwlock, true)
WAITING_LOCK(pthread_rwlock_clockrdlock, pthread_rwlock_t, CLOCKED, A_CLOCKED, IN_CLOCK,
	PRELOAD_REAL(pthread_rwlock_tryrdlock), preload_rwlock, true)
WAITING_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t, NOTHING, NOTHING, true,
	PRELOAD_REAL(pthread_rwlock_trywrlock), preload_rwlock, false)
WAITING_LOCK(pthread_rwlock_timedwrlock, pthread_rwlock_t, UNTIL, A_UNTIL, IN_UNTIL,
	PRELOAD_REAL(pthread_rwlock_trywrlock), preload_rwlock, false)
WAITING_LOCK(pthread_rwlock_clockwrlock, pthread_rwlock_t, CLOCKED, A_CLOCKED, IN_CLOCK,
	PRELOAD_REAL(pthread_rwlock_trywrlock), preload_rwlock, false)
TRY_LOCK(pthread_rwlock_tryrdlock, pthread_rwlock_t, preload_rwlock, true)
TRY_LOCK(pthread_rwlock_trywrlock, pthread_rwlock_t, preload_rwlock, false)

PRELOAD_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	uint64_t now_tsc = release_tsc(lock);
	int result = PRELOAD_REAL(pthread_rwlock_unlock)(lock);
	if (PRELOAD_RARE(now_tsc))
		released((uintptr_t)lock, now_tsc);
	return result;
}

void tally_left(void)
{
	tally_events_leave();
}

/* A lock's first count at a place. */
void tally_entered(uint64_t key, uint64_t site)
{
	preload_made(key, site);
}

/* ---- locks of OpenMP ------------------------------------------------------------------------- */

#ifndef PRELOAD_STATIC

/* As runtime/openmp/omp.c: of unnamed sections we count who are in them or before them. */
static uint32_t unnamed_critical_section, unnamed_atomic_section;
#define ENTER(n) (__atomic_fetch_add(&(n), 1, __ATOMIC_RELAXED) != 0)
#define LEAVE(n) __atomic_fetch_sub(&(n), 1, __ATOMIC_RELAXED)

#define OMP_LOCK(name, library, parameters, arguments, lock, is_taken)                             \
	PRELOAD_EXPORT void name parameters;                                                       \
	PRELOAD_EXPORT void name parameters                                                        \
	{                                                                                          \
		const struct preload_omp *omp = library(PRELOAD_CALLER);                           \
		struct tally_tag *t = tally_find(                                                  \
			preload_object(lock, TRACE_OBJECT_mutex, false), PRELOAD_CALLER);          \
		bool waits = is_taken;                                                             \
		uint64_t asked_tsc = preload_now_if(waits && t);                                   \
		omp->name arguments;                                                               \
		if (t)                                                                             \
			outcome(t, (uintptr_t)(lock), 0, false, waits, asked_tsc);                 \
	}
#define OMP_UNLOCK(name, library, parameters, arguments, lock, before)                             \
	PRELOAD_EXPORT void name parameters;                                                       \
	PRELOAD_EXPORT void name parameters                                                        \
	{                                                                                          \
		const struct preload_omp *omp = library(PRELOAD_CALLER);                           \
		uint64_t now_tsc = release_tsc(lock);                                              \
		before;                                                                            \
		omp->name arguments;                                                               \
		if (PRELOAD_RARE(now_tsc))                                                         \
			released((uintptr_t)(lock), now_tsc);                                      \
	}
OMP_LOCK(GOMP_critical_start, preload_omp_of, (void), (), &unnamed_critical_section,
	ENTER(unnamed_critical_section))
OMP_UNLOCK(GOMP_critical_end, preload_omp_of, (void), (), &unnamed_critical_section,
	LEAVE(unnamed_critical_section))
OMP_LOCK(GOMP_atomic_start, preload_omp_of, (void), (), &unnamed_atomic_section,
	ENTER(unnamed_atomic_section))
OMP_UNLOCK(GOMP_atomic_end, preload_omp_of, (void), (), &unnamed_atomic_section,
	LEAVE(unnamed_atomic_section))
OMP_LOCK(GOMP_critical_name_start, preload_omp_of, (void **lock), (lock), lock,
	preload_omp_enter_named(omp, lock))
OMP_UNLOCK(GOMP_critical_name_end, preload_omp_of, (void **lock), (lock), lock,
	preload_omp_leave_named(omp, lock))
OMP_LOCK(__kmpc_critical, preload_kmp_of, (void *place, int32_t thread, void *lock),
	(place, thread, lock), lock, preload_omp_enter(lock))
OMP_LOCK(__kmpc_critical_with_hint, preload_kmp_of,
	(void *place, int32_t thread, void *lock, uint32_t hint), (place, thread, lock, hint), lock,
	preload_omp_enter(lock))
OMP_UNLOCK(__kmpc_end_critical, preload_kmp_of, (void *place, int32_t thread, void *lock),
	(place, thread, lock), lock, preload_omp_leave(lock))

/* omp_set_lock() and its kin; tests say true where they took it. */
#define OMP_LOCKS(set, test, unset)                                                                \
	PRELOAD_EXPORT void set(void *lock);                                                       \
	PRELOAD_EXPORT void set(void *lock)                                                        \
	{                                                                                          \
		const struct preload_omp *omp = preload_omp_of(PRELOAD_CALLER);                    \
		struct tally_tag *t = tally_find(                                                  \
			preload_object(lock, TRACE_OBJECT_mutex, false), PRELOAD_CALLER);          \
		bool waits = !omp->test(lock);                                                     \
		uint64_t asked_tsc = preload_now_if(waits && t);                                   \
		if (waits)                                                                         \
			omp->set(lock);                                                            \
		if (t)                                                                             \
			outcome(t, (uintptr_t)lock, 0, false, waits, asked_tsc);                   \
	}                                                                                          \
	PRELOAD_EXPORT int test(void *lock);                                                       \
	PRELOAD_EXPORT int test(void *lock)                                                        \
	{                                                                                          \
		int taken = preload_omp_of(PRELOAD_CALLER)->test(lock);                            \
		tried((uintptr_t)lock, preload_object(lock, TRACE_OBJECT_mutex, false),            \
			PRELOAD_CALLER, taken ? 0 : EBUSY, false);                                 \
		return taken;                                                                      \
	}                                                                                          \
	OMP_UNLOCK(unset, preload_omp_of, (void *lock), (lock), lock, (void)0)
OMP_LOCKS(omp_set_lock, omp_test_lock, omp_unset_lock)
OMP_LOCKS(omp_set_nest_lock, omp_test_nest_lock, omp_unset_nest_lock)
OMP_LOCKS(omp_set_lock_, omp_test_lock_, omp_unset_lock_)
OMP_LOCKS(omp_set_nest_lock_, omp_test_nest_lock_, omp_unset_nest_lock_)

#endif

/* ---- condition variables --------------------------------------------------------------------- */

struct cond_call {
	struct tally_entry *cond;
	struct tally_tag *mutex_at; /* of the place that waits */
	uintptr_t mutex;
	uint64_t asked_tsc;
};

/* One that nothing else names is called after who waits for it. */
static void note_waiter(struct tally_entry *e, uint64_t site)
{
	if (e && !e->site)
		e->site = site;
}

static void lock_cond_begin(
	struct cond_call *call, uint64_t key, pthread_mutex_t *mutex, uint64_t site)
{
	call->mutex = (uintptr_t)mutex;
	call->cond = tally_entry(key, 0);
	note_waiter(call->cond, site);
	call->mutex_at = tally_find(preload_mutex(mutex), site);
	call->asked_tsc = preload_now_if(preload_on());
	if (*timed_in(call->mutex))
		released(call->mutex, call->asked_tsc);
}

static void lock_cond_end(const struct cond_call *call, bool timed_out)
{
	uint64_t now_tsc = preload_now_if(call->asked_tsc);
	if (call->cond) {
		TALLY_INC(call->cond->n[TALLY_waits]);
		TALLY_ADD(call->cond->n[TALLY_cond_wait_ns], tally_ns(now_tsc - call->asked_tsc));
		if (timed_out)
			TALLY_INC(call->cond->n[TALLY_timeouts]);
	}
	if (!call->mutex_at)
		return;
	uint64_t *retaken = &tally_entry_of(call->mutex_at)->n[TALLY_retaken];
	TALLY_INC(*retaken);
	if (preload_self->tally_mask == TALLY_ALL || (*retaken & preload_self->tally_mask) == 1)
		begin_hold(call->mutex, call->mutex_at, 1, now_tsc);
}

/* As in preload/wait.c: a cancelled thread holds the mutex again as its cleanup handlers run. */
static void lock_cond_unwind(void *call)
{
	lock_cond_end(call, false);
}

#define COND_WAIT(name, real, key_of, cond_type, mutex_type, parameters, arguments, late)          \
	PRELOAD_EXPORT int name(cond_type *cond, mutex_type *mutex parameters);                    \
	int name(cond_type *cond, mutex_type *mutex parameters)                                    \
	{                                                                                          \
		struct cond_call call;                                                             \
		int result;                                                                        \
		lock_cond_begin(&call, key_of((pthread_cond_t *)cond), (pthread_mutex_t *)mutex,   \
			PRELOAD_CALLER);                                                           \
		pthread_cleanup_push(lock_cond_unwind, &call);                                     \
		result = PRELOAD_REAL(real)(cond, mutex arguments);                                \
		pthread_cleanup_pop(0);                                                            \
		lock_cond_end(&call, result == (late));                                            \
		return result;                                                                     \
	}
#define COND_WAKE(name, real, key_of, cond_type, verb)                                             \
	PRELOAD_EXPORT int name(cond_type *cond);                                                  \
	int name(cond_type *cond)                                                                  \
	{                                                                                          \
		struct tally_entry *e = tally_entry(key_of((pthread_cond_t *)cond), 0);            \
		if (e)                                                                             \
			TALLY_INC(e->n[TALLY_##verb##s]);                                          \
		return PRELOAD_REAL(real)(cond);                                                   \
	}

PRELOAD_CONDS(COND_WAIT, COND_WAKE)
PRELOAD_COND_VERSIONS

/* ---- semaphores: it is not known which thread will give a token back, so there are no holds; what
 * is counted is what is of a condition variable: waits, and tokens given ---------- */

PRELOAD_EXPORT int sem_init(sem_t *semaphore, int shared, unsigned value)
{
	int result = PRELOAD_REAL(sem_init)(semaphore, shared, value);
	if (result == 0)
		preload_made_note(semaphore, PRELOAD_CALLER);
	return result;
}

static PRELOAD_COLD void semaphore_waited(
	uint64_t key, uint64_t site, uint64_t asked_tsc, bool timed_out)
{
	uint64_t now_tsc = preload_now_if(asked_tsc);
	struct tally_entry *e = asked_tsc ? tally_entry(key, 0) : NULL;
	if (!e)
		return;
	note_waiter(e, site);
	TALLY_INC(e->n[TALLY_waits]);
	TALLY_ADD(e->n[TALLY_cond_wait_ns], tally_ns(now_tsc - asked_tsc));
	if (timed_out)
		TALLY_INC(e->n[TALLY_timeouts]);
}

/* errno is the real call's on every way out. */
#define SEM_WAIT(name, parameters, arguments, limit)                                               \
	PRELOAD_EXPORT int name(sem_t *semaphore parameters)                                       \
	{                                                                                          \
		int saved_errno = errno;                                                           \
		if (!(limit))                                                                      \
			return PRELOAD_REAL(name)(semaphore arguments);                            \
		if (PRELOAD_REAL(sem_trywait)(semaphore) == 0)                                     \
			return 0;                                                                  \
		errno = saved_errno;                                                               \
		uint64_t key = preload_semaphore(semaphore);                                       \
		uint64_t asked_tsc = preload_now_if(preload_on());                                 \
		int result = PRELOAD_REAL(name)(semaphore arguments);                              \
		semaphore_waited(                                                                  \
			key, PRELOAD_CALLER, asked_tsc, result != 0 && errno == ETIMEDOUT);        \
		return result;                                                                     \
	}
SEM_WAIT(sem_wait, NOTHING, NOTHING, true)
SEM_WAIT(sem_timedwait, UNTIL, A_UNTIL, IN_UNTIL)
SEM_WAIT(sem_clockwait, CLOCKED, A_CLOCKED, IN_CLOCK)

PRELOAD_EXPORT int sem_post(sem_t *semaphore)
{
	struct tally_entry *e = tally_entry(preload_semaphore(semaphore), 0);
	if (e)
		TALLY_INC(e->n[TALLY_signals]);
	return PRELOAD_REAL(sem_post)(semaphore);
}

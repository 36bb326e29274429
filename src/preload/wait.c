/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - condition variables, barriers, semaphores. */
#include "preload/lock.h"

#include <fcntl.h>
#include <string.h>

/* ---- condition variables --------------------------------------------------------------------- */

struct cond_call {
	uint64_t object, mutex, site;
};

static void wait_cond_begin(struct cond_call *call, uint64_t object, pthread_mutex_t *mutex,
	uint64_t site, bool of_machine)
{
	preload_made(object, site);
	*call = (struct cond_call){object, preload_mutex(mutex), site};
	if ((preload_has_python() && preload_gil_is_mutex(mutex)) || of_machine)
		call->mutex = 0;
	PRELOAD_RECORD_WAIT(cond_wait, site, object, call->mutex);
}

static void wait_cond_end(const struct cond_call *call, int result)
{
	PRELOAD_RECORD(cond_wake, call->object, call->mutex, call->site, (uint64_t)result);
}

/*
 * A cancelled thread holds the mutex again as its cleanup handlers run. No landing pads
 * (-fexceptions): they would make our copy of the unwinder read what the program's copy wrote. This
 * way the wrapper is an ordinary user of pthread_cleanup_push().
 */
static void wait_cond_unwind(void *call)
{
	wait_cond_end(call, ECANCELED);
}

/* Of Python's global lock, and told. */
PRELOAD_INLINE bool wait_is_gil(const volatile void *cond, uintptr_t caller)
{
	return preload_has_python() && preload_gil_waits(cond, caller);
}

PRELOAD_INLINE bool wakes_runtime(const volatile void *cond, uintptr_t caller)
{
	return (preload_has_python() && preload_gil_signals(cond, caller)) ||
	       (preload_has_java() && preload_java_signals(cond, caller));
}

/* Of what a thread of Java's waits for. */
PRELOAD_INLINE bool wait_is_java(const volatile void *cond, uintptr_t caller)
{
	return preload_has_java() && preload_java_waits(cond, caller);
}

#define COND_WAIT(name, real, object_of, cond_type, mutex_type, parameters, arguments, timed_out)  \
	PRELOAD_EXPORT int name(cond_type *cond, mutex_type *mutex parameters);                    \
	int name(cond_type *cond, mutex_type *mutex parameters)                                    \
	{                                                                                          \
		struct cond_call call;                                                             \
		int result;                                                                        \
		if (!preload_on_for(PRELOAD_CALLER) || wait_is_gil(cond, PRELOAD_CALLER))          \
			return PRELOAD_REAL(real)(cond, mutex arguments);                          \
		if (wait_is_java(cond, PRELOAD_CALLER)) {                                          \
			result = PRELOAD_REAL(real)(cond, mutex arguments);                        \
			preload_java_waited(cond, result == (timed_out) ? ETIMEDOUT : result);     \
			return result;                                                             \
		}                                                                                  \
		wait_cond_begin(&call, object_of((pthread_cond_t *)cond),                          \
			(pthread_mutex_t *)mutex, PRELOAD_SITE,                                    \
			preload_is_machine(PRELOAD_CALLER));                                       \
		pthread_cleanup_push(wait_cond_unwind, &call);                                     \
		result = PRELOAD_REAL(real)(cond, mutex arguments);                                \
		pthread_cleanup_pop(0);                                                            \
		wait_cond_end(&call, result == (timed_out) ? ETIMEDOUT : result);                  \
		if (preload_has_python())                                                          \
			preload_gil_waited(cond);                                                  \
		return result;                                                                     \
	}
#define COND_WAKE(name, real, object_of, cond_type, verb)                                          \
	PRELOAD_EXPORT int name(cond_type *cond);                                                  \
	int name(cond_type *cond)                                                                  \
	{                                                                                          \
		if (preload_on_for(PRELOAD_CALLER) && !wakes_runtime(cond, PRELOAD_CALLER)) {      \
			uint64_t object = object_of((pthread_cond_t *)cond);                       \
			preload_made(object, PRELOAD_SITE);                                        \
			PRELOAD_RECORD(cond_##verb, object, PRELOAD_SITE);                         \
		}                                                                                  \
		return PRELOAD_REAL(real)(cond);                                                   \
	}
PRELOAD_CONDS(COND_WAIT, COND_WAKE)
PRELOAD_COND_VERSIONS

/* ---- barriers -------------------------------------------------------------------------------- */

struct barrier { /* glibc's, as far as we look into it */
	unsigned in, round, count;
	int shared;
};

PRELOAD_INLINE uint64_t barrier_object(const pthread_barrier_t *barrier)
{
	struct barrier inside;
	memcpy(&inside, barrier, sizeof inside);
	return preload_object(barrier, TRACE_OBJECT_barrier, inside.shared != 0);
}

PRELOAD_EXPORT int pthread_barrier_init(
	pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes, unsigned nr_parties)
{
	int result = PRELOAD_REAL(pthread_barrier_init)(barrier, attributes, nr_parties);
	if (result == 0 && preload_on())
		PRELOAD_RECORD(token_set, barrier_object(barrier), nr_parties);
	return result;
}

PRELOAD_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	if (!preload_on())
		return PRELOAD_REAL(pthread_barrier_wait)(barrier);
	/* when it returns, another thread may have destroyed the barrier */
	uint64_t object = barrier_object(barrier), site = PRELOAD_SITE;
	PRELOAD_RECORD_WAIT(barrier_arrive, site, object);
	int result = PRELOAD_REAL(pthread_barrier_wait)(barrier);
	PRELOAD_RECORD(barrier_leave, object, site);
	return result;
}

/* ---- semaphores ------------------------------------------------------------------------------ */

PRELOAD_EXPORT int sem_init(sem_t *semaphore, int shared, unsigned value)
{
	int result = PRELOAD_REAL(sem_init)(semaphore, shared, value);
	if (result == 0 && preload_has_python())
		preload_python_made(semaphore, PRELOAD_CALLER);
	if (result == 0)
		preload_made_note(
			(void *)(uintptr_t)(preload_semaphore(semaphore) & RING_OBJECT_ADDRESS),
			PRELOAD_SITE);
	if (result == 0 && preload_on())
		PRELOAD_RECORD(token_set, preload_semaphore(semaphore), value);
	return result;
}

PRELOAD_EXPORT sem_t *sem_open(const char *name, int flags, ...)
{
	va_list list;
	va_start(list, flags);
	mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	unsigned value = flags & O_CREAT ? va_arg(list, unsigned) : 0;
	va_end(list);
	sem_t *semaphore = PRELOAD_REAL(sem_open)(name, flags, mode, value);
	if (semaphore != SEM_FAILED && preload_active()) {
		uint64_t object = preload_semaphore(semaphore);
		size_t nr_bytes = strnlen(name, RING_TEXT_MAX);
		int now = 0;
		preload_record_text(RING_name,
			(const uint64_t[]){object, RING_NAME_object, PRELOAD_SITE, nr_bytes}, 4,
			name, nr_bytes);
		if ((flags & O_CREAT) && sem_getvalue(semaphore, &now) == 0)
			PRELOAD_RECORD(token_set, object, (uint64_t)now);
	}
	return semaphore;
}

struct token_call {
	uint64_t object, n, site;
	bool open;
};

static void token_end(struct token_call *call, bool taken)
{
	if (call->open)
		PRELOAD_RECORD(token_take, call->object, taken ? call->n : 0, call->site);
	call->open = false;
}

/* A limit that is no time is refused by the real function, whatever the semaphore's value. */
/* errno is the real call's on every way out: recording does not touch it. */
#define SEM_WAIT(name, parameters, arguments, limit)                                               \
	PRELOAD_EXPORT int name(sem_t *semaphore parameters)                                       \
	{                                                                                          \
		if (!preload_on() || !(limit))                                                     \
			return PRELOAD_REAL(name)(semaphore arguments);                            \
		struct token_call call = {preload_semaphore(semaphore), 1, PRELOAD_SITE, true};    \
		int saved_errno = errno;                                                           \
		int result = PRELOAD_REAL(sem_trywait)(semaphore);                                 \
		if (result != 0) {                                                                 \
			errno = saved_errno;                                                       \
			preload_made(call.object, call.site);                                      \
			PRELOAD_RECORD_WAIT(token_wait, call.site, call.object, 1);                \
			result = PRELOAD_REAL(name)(semaphore arguments);                          \
		}                                                                                  \
		token_end(&call, result == 0);                                                     \
		return result;                                                                     \
	}
SEM_WAIT(sem_wait, NOTHING, NOTHING, true)
SEM_WAIT(sem_timedwait, UNTIL, A_UNTIL, IN_UNTIL)
SEM_WAIT(sem_clockwait, CLOCKED, A_CLOCKED, IN_CLOCK)

PRELOAD_EXPORT int sem_trywait(sem_t *semaphore)
{
	int result = PRELOAD_REAL(sem_trywait)(semaphore);
	/* (Python asks so whether it has a lock itself, as often as it takes one.) */
	if (preload_on() && (result == 0 || !preload_has_python()))
		PRELOAD_RECORD(token_take, preload_semaphore(semaphore), result == 0, PRELOAD_SITE);
	return result;
}

PRELOAD_EXPORT int sem_post(sem_t *semaphore)
{
	if (preload_on()) {
		preload_made(preload_semaphore(semaphore), PRELOAD_SITE);
		PRELOAD_RECORD(token_give, preload_semaphore(semaphore), 1, PRELOAD_SITE);
	}
	return PRELOAD_REAL(sem_post)(semaphore);
}

/* ---- System V semaphores --------------------------------------------------------------------- */

enum {
	SEM_OPS_TRIED = 64,
	SEM_OPS_MAX = 500, /* the kernel's; a caller that names more of them may not have them */
};

static uint64_t wait_sysv_object(int id, const struct sembuf *op)
{
	return (((uint64_t)(uint32_t)id << 16 | op->sem_num) & RING_OBJECT_ADDRESS) |
	       (uint64_t)TRACE_OBJECT_sysv_semaphore << RING_OBJECT_TYPE_SHIFT | RING_OBJECT_SHARED;
}

static void record_sysv_waits(int id, const struct sembuf *ops, size_t nr_ops, uint64_t site)
{
	for (size_t i = 0; i < nr_ops; i++)
		if (ops[i].sem_op <= 0)
			PRELOAD_RECORD_WAIT(token_wait, site, wait_sysv_object(id, &ops[i]),
				(uint64_t)-ops[i].sem_op);
}

/* A give is stamped before the call, for others may see it during the call; a take is stamped
 * after. */
static void record_sysv_gives(int id, const struct sembuf *ops, size_t nr_ops, uint64_t site)
{
	for (size_t i = 0; i < nr_ops; i++)
		if (ops[i].sem_op > 0)
			PRELOAD_RECORD(token_give, wait_sysv_object(id, &ops[i]),
				(uint64_t)ops[i].sem_op, site);
}

static void record_sysv_takes(
	int id, const struct sembuf *ops, size_t nr_ops, bool taken, uint64_t site)
{
	for (size_t i = 0; i < nr_ops; i++)
		if (ops[i].sem_op <= 0)
			PRELOAD_RECORD(token_take, wait_sysv_object(id, &ops[i]),
				taken ? (uint64_t)-ops[i].sem_op : 0, site);
}

/* Tried without waiting first, to know whether there is a wait; with the limit, because one that is
 * no time is refused even then. */
static bool sysv_must_wait(int id, const struct sembuf *ops, size_t nr_ops,
	const struct timespec *limit, int *ret_result)
{
	struct sembuf tried[SEM_OPS_TRIED];
	if (nr_ops > SEM_OPS_TRIED)
		return true;
	for (size_t i = 0; i < nr_ops; i++) {
		tried[i] = ops[i];
		tried[i].sem_flg |= IPC_NOWAIT;
	}
	*ret_result = PRELOAD_REAL(semtimedop)(id, tried, nr_ops, limit);
	return *ret_result < 0 && errno == EAGAIN;
}

static int sysv_call(
	int id, struct sembuf *ops, size_t nr_ops, const struct timespec *limit, uint64_t site)
{
	int saved_errno = errno, result = -1;
	record_sysv_gives(id, ops, nr_ops, site);
	if (sysv_must_wait(id, ops, nr_ops, limit, &result)) {
		errno = saved_errno;
		record_sysv_waits(id, ops, nr_ops, site);
		result = PRELOAD_REAL(semtimedop)(id, ops, nr_ops, limit);
	}
	record_sysv_takes(id, ops, nr_ops, result == 0, site);
	return result;
}

PRELOAD_EXPORT int semop(int id, struct sembuf *ops, size_t nr_ops)
{
	if (!preload_is_address(ops) || nr_ops > SEM_OPS_MAX || !preload_on())
		return PRELOAD_REAL(semop)(id, ops, nr_ops);
	return sysv_call(id, ops, nr_ops, NULL, PRELOAD_SITE);
}

PRELOAD_EXPORT int semtimedop(
	int id, struct sembuf *ops, size_t nr_ops, const struct timespec *limit)
{
	if (!preload_is_address(ops) || nr_ops > SEM_OPS_MAX || !preload_on())
		return PRELOAD_REAL(semtimedop)(id, ops, nr_ops, limit);
	return sysv_call(id, ops, nr_ops, limit, PRELOAD_SITE);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * futex.c - what a wait on a futex is: which kind of object, where it begins, who owns it. By the
 * function of the C library that it is in, and where there is no name by operation and value; a
 * futex of nobody's that we know is a bare one.
 *
 * Layouts are glibc's since 2.25, on x86-64; of a condition variable that of 2.25 to 2.40.
 */
#include "deadlock/facts/facts.h"

#include <linux/futex.h>
#include <string.h>

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

enum {
	TID_BITS = 0x3fffffff,
	CONTENDED = 2, /* a mutex's word when somebody waits */
	MUTEX_OWNER = 2,
	MUTEX_KIND = 4,
	MUTEX_WORDS = 5,
	MUTEX_ROBUST = 16,
	MUTEX_PRIO_INHERIT = 32,
	MUTEX_BYTES = 40,
	CONDITION_BYTES = 48,
	RWLOCK_BYTES = 56,
	BARRIER_BYTES = 32,
	SEMAPHORE_BYTES = 32,
	GUARD_BYTES = 8,
	RWLOCK_WRITER = 24,  /* tid of the writer */
	RWLOCK_PHASE = 8,    /* word at which most wait for their turn */
	RWLOCK_WRITERS = 12, /* at which a writer waits behind another */
	RWLOCK_PHASE_MAX = 3,
	PTHREAD_TID = 0x2d0, /* in struct pthread */
	PARKED_REACH = 512,
};

struct named {
	const char *prefix;
	enum deadlock_kind kind;
};
/* In this order: the first that fits. Leading underscores are left out. */
static const struct named names[] = {
	{"pthread_mutex", DEADLOCK_MUTEX},
	{"mtx_", DEADLOCK_MUTEX},
	{"pthread_cond", DEADLOCK_CONDITION},
	{"cnd_", DEADLOCK_CONDITION},
	{"sem_", DEADLOCK_SEMAPHORE},
	{"new_sem_", DEADLOCK_SEMAPHORE},
	{"pthread_rwlock_rd", DEADLOCK_RWLOCK_READ},
	{"pthread_rwlock_timedrd", DEADLOCK_RWLOCK_READ},
	{"pthread_rwlock_clockrd", DEADLOCK_RWLOCK_READ},
	{"pthread_rwlock", DEADLOCK_RWLOCK_WRITE},
	{"pthread_barrier", DEADLOCK_BARRIER},
	{"pthread_join", DEADLOCK_JOIN},
	{"pthread_timedjoin", DEADLOCK_JOIN},
	{"pthread_clockjoin", DEADLOCK_JOIN},
	{"thrd_join", DEADLOCK_JOIN},
	{"pthread_once", DEADLOCK_ONCE},
	{"call_once", DEADLOCK_ONCE},
	{"cxa_guard_acquire", DEADLOCK_GUARD},
};

static enum deadlock_kind kind_by_name(const struct deadlock_wait *w)
{
	for (size_t i = 0; i < w->nr_frames; i++) {
		const char *name = w->frame[i].function;
		name += strspn(name, "_");
		if (!strncmp(name, "GI_", 3))
			name += 3 + strspn(name + 3, "_");
		for (size_t k = 0; k < BASE_COUNT(names); k++) {
			if (!strncmp(name, names[k].prefix, strlen(names[k].prefix)))
				return names[k].kind;
		}
		if (*w->frame[i].module && !w->frame[i].is_runtime)
			break;
	}
	return DEADLOCK_UNKNOWN;
}

/* libc++ has one condition variable for all static objects. */
static bool is_in_guard(const struct deadlock_wait *w)
{
	for (size_t i = 0; i < w->nr_frames; i++) {
		if (!strcmp(w->frame[i].function, "__cxa_guard_acquire"))
			return true;
		if (!w->frame[i].is_runtime)
			return false;
	}
	return false;
}

static bool futex_is_thread(
	struct deadlock_world *world, const struct deadlock_wait *w, uint32_t tid)
{
	const pid_t ours = deadlock_world_thread_of(world, w->thread.pid, (pid_t)tid);
	return deadlock_world_has_thread(world, w->thread.pid, ours);
}

static bool futex_read_at(struct deadlock_world *world, const struct deadlock_wait *w, uint64_t at,
	void *buf, size_t size)
{
	return deadlock_world_read(world, w->thread.pid, at, buf, size);
}

static bool futex_read_words(struct deadlock_world *world, const struct deadlock_wait *w,
	uint64_t at, uint32_t *word, size_t nr)
{
	return futex_read_at(world, w, at, word, nr * sizeof *word);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static enum deadlock_kind futex_kind_of(
	struct deadlock_world *world, const struct deadlock_wait *w, unsigned op)
{
	enum deadlock_kind kind = kind_by_name(w);
	bool in_runtime = !w->nr_frames || w->frame[0].is_runtime || !*w->frame[0].module;
	uint32_t mutex[MUTEX_WORDS];
	if (op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2)
		return DEADLOCK_MUTEX_PI;
	if (op == FUTEX_WAIT_REQUEUE_PI)
		return DEADLOCK_CONDITION;
	if (kind == DEADLOCK_MUTEX || kind == DEADLOCK_CONDITION) {
		/* the condition variable's mutex is taken again inside of its wait */
		if (op == FUTEX_WAIT && w->expected & FUTEX_WAITERS)
			return DEADLOCK_MUTEX_ROBUST;
		if (op == FUTEX_WAIT && w->expected == CONTENDED)
			return DEADLOCK_MUTEX;
		if (kind == DEADLOCK_MUTEX && !w->expected && w->word >= w->sp &&
			w->word < w->sp + PARKED_REACH)
			return DEADLOCK_MUTEX_PARKED;
		return kind == DEADLOCK_CONDITION && is_in_guard(w) ? DEADLOCK_GUARD : kind;
	}
	if (kind != DEADLOCK_UNKNOWN)
		return kind;
	if (!in_runtime)
		return DEADLOCK_FUTEX;
	if (op == FUTEX_WAIT_BITSET && w->expected &&
		futex_is_thread(world, w, (uint32_t)w->expected))
		return DEADLOCK_JOIN;
	if (op == FUTEX_WAIT && w->expected & FUTEX_WAITERS && w->expected & TID_BITS)
		return DEADLOCK_MUTEX_ROBUST;
	if (op == FUTEX_WAIT && w->expected == CONTENDED)
		return futex_read_words(world, w, w->word, mutex, MUTEX_WORDS) &&
				       futex_is_thread(world, w, (uint32_t)mutex[MUTEX_OWNER])
			       ? DEADLOCK_MUTEX
			       : DEADLOCK_LOCK;
	return DEADLOCK_FUTEX;
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* A number of the process's own PID namespace that is nobody's we see: it may be somebody's. */
static void futex_set_owner(struct deadlock_world *world, struct deadlock_wait *w, uint32_t tid)
{
	w->owner_word = (pid_t)(tid & TID_BITS);
	w->owner = deadlock_world_thread_of(world, w->thread.pid, w->owner_word);
	w->owner_is_exact = w->owner != 0;
	w->is_external |= w->owner_word && !w->owner;
}

/* stdio's locks are {word, count, struct pthread *owner}. */
static void futex_find_lock_owner(struct deadlock_world *world, struct deadlock_wait *w)
{
	uint64_t owner;
	uint32_t tid;
	if (futex_read_at(world, w, w->word + 8, &owner, sizeof owner) && owner && !(owner & 15) &&
		futex_read_at(world, w, owner + PTHREAD_TID, &tid, sizeof tid) &&
		futex_is_thread(world, w, (uint32_t)tid))
		futex_set_owner(world, w, tid);
}

static bool is_pi_mutex(struct deadlock_world *world, const struct deadlock_wait *w, uint64_t at,
	uint32_t *ret_owner)
{
	uint32_t word[MUTEX_WORDS];
	if (!at || at & 7 || !futex_read_words(world, w, at, word, MUTEX_WORDS))
		return false;
	*ret_owner = word[0] & TID_BITS;
	return (word[MUTEX_KIND] & ~0x9fu) == MUTEX_PRIO_INHERIT &&
	       futex_is_thread(world, w, (uint32_t)*ret_owner);
}

typedef bool candidate_fn(struct deadlock_world *world, const struct deadlock_wait *w, uint64_t at,
	uint32_t *ret_owner);

/* The object that a library's function waits for, when it waits at a word that is not in it: its
 * address is in a register that calls preserve, or on the stack. */
static bool futex_find_object(
	struct deadlock_world *world, struct deadlock_wait *w, candidate_fn *is_object)
{
	bool found = false;
	uint64_t candidate[6 + PARKED_REACH / 8] = {w->registers.rbx, w->registers.rbp,
		w->registers.r12, w->registers.r13, w->registers.r14, w->registers.r15};
	uint32_t owner;
	size_t nr = 6;
	if (futex_read_at(world, w, w->sp, candidate + 6, PARKED_REACH))
		nr = BASE_COUNT(candidate);
	for (size_t i = 0; i < nr; i++) {
		if (!is_object(world, w, candidate[i], &owner))
			continue;
		w->object = candidate[i];
		futex_set_owner(world, w, owner);
		found = true;
		if (w->owner != w->thread.tid) /* else it may be one that it merely has */
			break;
	}
	return found;
}

/* libc++'s: constructed, its state, the thread that is at it. */
static bool is_guard(struct deadlock_world *world, const struct deadlock_wait *w, uint64_t at,
	uint32_t *ret_owner)
{
	enum { AWAITED = 2 | 4 }; /* somebody is at it, somebody waits */
	struct {
		uint8_t is_constructed, state;
		uint16_t unused;
		uint32_t owner;
	} guard;
	if (!at || at & 7 || !futex_read_at(world, w, at, &guard, sizeof guard))
		return false;
	*ret_owner = guard.owner;
	return !guard.is_constructed && guard.state == AWAITED && !guard.unused &&
	       futex_is_thread(world, w, guard.owner);
}

/* Of an object that begins `before` bytes before the word. */
static void set_object(struct deadlock_wait *w, uint64_t before, uint32_t bytes)
{
	w->object = w->word - before;
	w->object_bytes = bytes;
}

/* Readers that let writers go first wait at the first word: the number of readers and three bits,
 * one of which says that they wait. */
static uint64_t offset_in_rwlock(const struct deadlock_wait *w)
{
	if (w->word & 4)
		return RWLOCK_WRITERS;
	return w->expected > RWLOCK_PHASE_MAX ? 0 : RWLOCK_PHASE;
}

static void locate(struct deadlock_world *world, struct deadlock_wait *w)
{
	uint32_t word[MUTEX_WORDS] = {0};
	bool is_odd = w->word & 4; /* the second word of eight bytes */
	set_object(w, 0, 4);
	switch (w->kind) {
	case DEADLOCK_MUTEX:
		if (futex_read_words(world, w, w->word, word, MUTEX_WORDS))
			futex_set_owner(world, w, word[MUTEX_OWNER]);
		set_object(w, 0, MUTEX_BYTES);
		break;
	case DEADLOCK_MUTEX_PI:
	case DEADLOCK_MUTEX_ROBUST:
		if (futex_read_words(world, w, w->word, word, 1))
			futex_set_owner(world, w, word[0]);
		set_object(w, 0, MUTEX_BYTES);
		break;
	case DEADLOCK_MUTEX_PARKED:
		/* the kernel refused to let it wait (EDEADLK), and glibc parks it on a word of its
		 * own stack */
		(void)futex_find_object(world, w, is_pi_mutex);
		w->object_bytes = MUTEX_BYTES;
		break;
	case DEADLOCK_LOCK:
		futex_find_lock_owner(world, w);
		break;
	case DEADLOCK_RWLOCK_READ:
	case DEADLOCK_RWLOCK_WRITE:
		set_object(w, offset_in_rwlock(w), RWLOCK_BYTES);
		if (futex_read_words(world, w, w->object + RWLOCK_WRITER, word, 1) && word[0])
			futex_set_owner(world, w, word[0]);
		break;
	case DEADLOCK_CONDITION:
		set_object(w, is_odd ? 44 : 40, CONDITION_BYTES);
		break;
	case DEADLOCK_BARRIER:
		set_object(w, 4, BARRIER_BYTES);
		break;
	case DEADLOCK_GUARD:
		set_object(w, 0, GUARD_BYTES);
		break;
	case DEADLOCK_SEMAPHORE:
		set_object(w, 0, SEMAPHORE_BYTES);
		break;
	case DEADLOCK_JOIN:
		futex_set_owner(world, w, w->expected);
		break;
	default:
		break;
	}
}

/* Where it waits at a condition variable, that one is not the guard. */
static void find_guard(struct deadlock_world *world, struct deadlock_wait *w)
{
	if (w->kind != DEADLOCK_GUARD || kind_by_name(w) != DEADLOCK_CONDITION ||
		futex_find_object(world, w, is_guard))
		return;
	w->kind = DEADLOCK_CONDITION;
	locate(world, w);
}

/* Without its stack, where operation and value leave no doubt. */
static bool futex_is_plain(struct deadlock_world *world, const struct deadlock_wait *w, unsigned op)
{
	uint32_t mutex[MUTEX_WORDS];
	if (op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2)
		return true;
	return op == FUTEX_WAIT && w->expected == CONTENDED &&
	       futex_read_words(world, w, w->word, mutex, MUTEX_WORDS) && mutex[0] == CONTENDED &&
	       futex_is_thread(world, w, (uint32_t)mutex[MUTEX_OWNER]);
}

void deadlock_wait_decode_futex(
	struct deadlock_world *world, struct deadlock_process *p, struct deadlock_wait *w)
{
	unsigned op = (unsigned)w->arg[1] & (unsigned)FUTEX_CMD_MASK;
	bool is_private = w->arg[1] & FUTEX_PRIVATE_FLAG;
	struct deadlock_key key;
	w->word = w->arg[0];
	w->expected = (uint32_t)w->arg[2];
	if (!w->nr_frames && !futex_is_plain(world, w, op))
		deadlock_frames_of(world, p, w);
	w->kind = futex_kind_of(world, w, op);
	locate(world, w);
	find_guard(world, w);
	if (w->kind == DEADLOCK_JOIN) {
		key = (struct deadlock_key){.kind = DEADLOCK_KEY_THREAD_EXIT,
			.space = (uint64_t)p->pid,
			.id = (uint64_t)w->owner};
	} else {
		uint64_t at = w->object ? w->object : w->word;
		deadlock_key_of_futex(world, p, at, is_private, &key);
		key.bytes = w->object_bytes;
	}
	deadlock_wait_add_key(w, &key);
}

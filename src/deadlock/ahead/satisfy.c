/* SPDX-License-Identifier: Apache-2.0 */
/*
 * satisfy.c - how a wake-up is faked, for each kind of object.
 *
 * A futex wait ends when a word changes; which change the waiter would accept only its library
 * knows. So there are ways (hypotheses), tried in place: a copy that waits again on the same
 * object gets the next one. Layouts are those of glibc 2.25 and later. What is changed is the
 * copy's own memory.
 */
#include "deadlock/ahead/emulate.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

typedef bool way_fn(struct deadlock_copy *c, uint64_t word, uint32_t expected, unsigned way);

/* pthread_mutex_t: lock, count, owner, nusers. The unlocker clears the owner before the lock word,
 * and a locker asserts that. A robust one holds its owner's id in the lock word. */
static bool as_mutex(struct deadlock_copy *c, uint64_t word, uint32_t expected, unsigned way)
{
	uint32_t field[4];
	(void)expected;
	if (way || !deadlock_copy_peek(c, word, field, sizeof field))
		return false;
	if (!c->wait->owner || field[2] != (uint32_t)c->wait->owner_word)
		return deadlock_copy_poke32(c, word, 0);
	field[0] = field[1] = field[2] = 0;
	if (field[3])
		field[3]--;
	return deadlock_copy_poke(c, word, field, sizeof field);
}

static bool as_lock(struct deadlock_copy *c, uint64_t word, uint32_t expected, unsigned way)
{
	(void)expected;
	return way == 0 && deadlock_copy_poke32(c, word, 0);
}

/* The kernel hands it over: the word becomes the waiter's id. */
static bool as_mutex_pi(struct deadlock_copy *c, uint64_t word, uint32_t expected, unsigned way)
{
	(void)expected;
	return way == 0 && deadlock_copy_poke32(c, word, (uint32_t)c->wait->thread.tid);
}

static bool satisfy_add(struct deadlock_copy *c, uint64_t word, uint32_t n)
{
	uint32_t now = 0;
	return deadlock_copy_peek(c, word, &now, sizeof now) &&
	       deadlock_copy_poke32(c, word, now + n);
}

static bool as_semaphore(struct deadlock_copy *c, uint64_t word, uint32_t expected, unsigned way)
{
	(void)expected;
	return way < 2 && satisfy_add(c, word, 1);
}

/* A group's signals: those available, times two; bit 0: closed. */
static bool as_condition(struct deadlock_copy *c, uint64_t word, uint32_t expected, unsigned way)
{
	(void)expected;
	if (way == 1)
		return deadlock_copy_poke32(c, word, 1);
	return way < 3 && satisfy_add(c, word, way ? 3 : 2);
}

/* in, current_round, count: the round is over when current_round has grown by count. */
static bool as_barrier(struct deadlock_copy *c, uint64_t word, uint32_t expected, unsigned way)
{
	uint32_t count = 0;
	if (way > 1)
		return false;
	if (way || !deadlock_copy_peek(c, word + 4, &count, sizeof count) || !count)
		count = 1;
	return deadlock_copy_poke32(c, word, expected + count);
}

enum {
	RWLOCK_WRITE_PHASE = 1,
	RWLOCK_WRITER_IN = 2,
	RWLOCK_READERS_WAIT = 4,
	RWLOCK_FLAGS = 7,
	RWLOCK_ONE_READER = 8
};

/*
 * readers, writers, wrphase_futex, writers_futex. A thread at wrphase_futex waits for the phase to
 * change hands; one at writers_futex is a writer behind another writer; one at readers is a reader
 * behind a writer that comes first.
 */
static bool as_rwlock(struct deadlock_copy *c, uint64_t word, uint32_t expected, unsigned way)
{
	uint32_t field[4];
	const uint64_t object = c->wait->object;
	(void)expected;
	if (way > 2 || !deadlock_copy_peek(c, object, field, sizeof field))
		return false;
	if (way)
		return deadlock_copy_poke32(c, word, way - 1);
	if (word == object + 8) {
		const bool is_writer = c->wait->kind == DEADLOCK_RWLOCK_WRITE;
		/* readers that waited behind it count as soon as it is in: it hands over to them */
		const bool hands_over = is_writer && field[0] & RWLOCK_READERS_WAIT;
		field[0] = is_writer ? (field[0] & (RWLOCK_FLAGS & ~RWLOCK_READERS_WAIT)) |
					       RWLOCK_WRITE_PHASE
				     : field[0] & ~(unsigned)RWLOCK_WRITE_PHASE;
		field[0] += hands_over ? RWLOCK_ONE_READER : 0;
		field[2] = hands_over ? 3 : is_writer; /* 3: and somebody waits for its end */
	} else if (word == object) {
		field[0] &= ~(unsigned)(RWLOCK_WRITER_IN | RWLOCK_READERS_WAIT);
		c->readers = field[0] / RWLOCK_ONE_READER;
	} else {
		field[0] &= ~(unsigned)RWLOCK_WRITER_IN;
		field[3] = 0;
	}
	return deadlock_copy_poke(c, object, field, sizeof field);
}

/* The routine has been run by another; glibc has bit 1 for that. */
static bool as_once(struct deadlock_copy *c, uint64_t word, uint32_t expected, unsigned way)
{
	(void)expected;
	return way == 0 && deadlock_copy_poke32(c, word, 2);
}

/* The object was constructed by another: the first bit, in the ABI of C++. libc++ has its state in
 * the second byte, and one condition variable for all objects. */
static bool as_guard(struct deadlock_copy *c, uint64_t word, uint32_t expected, unsigned way)
{
	static const uint8_t constructed[2] = {1, 1};
	if (c->wait->object == word)
		return way == 0 && deadlock_copy_poke32(c, word, 1);
	return deadlock_copy_poke(c, c->wait->object, constructed, sizeof constructed) &&
	       as_condition(c, word, expected, way);
}

/* Any word of anybody's runtime: unchanged, 0, one more, two more, one less. */
static bool as_word(struct deadlock_copy *c, uint64_t word, uint32_t expected, unsigned way)
{
	const uint32_t value[] = {expected, 0, expected + 1, expected + 2, expected - 1};
	if (way >= BASE_COUNT(value))
		return false;
	return way == 0 || deadlock_copy_poke32(c, word, value[way]);
}

static const struct {
	enum deadlock_kind kind;
	way_fn *fake;
} ways[] = {
	{DEADLOCK_MUTEX, as_mutex},
	{DEADLOCK_MUTEX_ROBUST, as_mutex},
	{DEADLOCK_MUTEX_PI, as_mutex_pi},
	{DEADLOCK_LOCK, as_lock},
	{DEADLOCK_RWLOCK_READ, as_rwlock},
	{DEADLOCK_RWLOCK_WRITE, as_rwlock},
	{DEADLOCK_CONDITION, as_condition},
	{DEADLOCK_SEMAPHORE, as_semaphore},
	{DEADLOCK_BARRIER, as_barrier},
	{DEADLOCK_JOIN, as_lock}, /* the kernel clears a thread's id when it is gone */
	{DEADLOCK_ONCE, as_once},
	{DEADLOCK_GUARD, as_guard},
	{DEADLOCK_FUTEX, as_word},
};

static way_fn *way_of(enum deadlock_kind kind)
{
	for (size_t i = 0; i < BASE_COUNT(ways); i++)
		if (ways[i].kind == kind)
			return ways[i].fake;
	return NULL;
}

/* pthread_cond_t begins with the number of waits for it, so far. */
static uint64_t sequence_of(struct deadlock_copy *c)
{
	uint64_t n = 0;
	if (c->wait->kind == DEADLOCK_CONDITION && c->wait->object)
		(void)deadlock_copy_peek(c, c->wait->object, &n, sizeof n);
	return n;
}

bool deadlock_satisfy_again(struct deadlock_copy *c, uint64_t word, uint32_t expected)
{
	way_fn *fake = way_of(c->wait->kind);
	if (!fake || c->no_more_hypotheses)
		return false;
	/* it believed the signal, looked, and waits anew: its predicate is false */
	if (sequence_of(c) != c->sequence)
		return false;
	/* another word of the same object: the first way, once more or twice */
	if (word != c->wait->word && c->nr_satisfied < 2 && fake(c, word, expected, 0)) {
		c->nr_satisfied++;
		return true;
	}
	if (!fake(c, word, expected, c->hypothesis + 1))
		return false;
	c->hypothesis++;
	return true;
}

/* The writer that the copy waited behind is imagined to be gone: what the copy gives up of the lock
 * is seen by nobody, unless it had it before. */
void deadlock_satisfy_look(struct deadlock_copy *c)
{
	uint32_t now = 0;
	if (c->readers && deadlock_copy_peek(c, c->wait->object, &now, sizeof now) &&
		now / RWLOCK_ONE_READER < c->readers) {
		c->readers = 0;
		deadlock_copy_event(c, &c->wait->key[0]);
	}
}

static int64_t satisfy_futex(struct deadlock_copy *c)
{
	way_fn *fake = way_of(c->wait->kind);
	c->sequence = sequence_of(c);
	if (c->wait->kind == DEADLOCK_MUTEX_PARKED)
		deadlock_copy_end(c, DEADLOCK_END_BLOCKED, "parked for ever by the C library");
	else if (!fake)
		deadlock_copy_end(c, DEADLOCK_END_FAILED, "no way to fake what it waits for");
	else if (!fake(c, c->wait->word, c->wait->expected, 0))
		deadlock_copy_end(c, DEADLOCK_END_FAILED, "its word of memory cannot be read");
	return 0;
}

/* The call succeeds at once, as if what it waits for had come. */
static bool satisfy_simply(struct deadlock_copy *c, int64_t *ret)
{
	const uint64_t *arg = c->wait->arg;
	switch (c->wait->call) {
	case SYS_flock:
	case SYS_fcntl:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgsnd:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		*ret = 0;
		return true;
	case SYS_pause:
	case SYS_rt_sigsuspend:
		*ret = -EINTR;
		return true;
	case SYS_rt_sigtimedwait: {
		uint64_t set = 0;
		if (!deadlock_copy_peek(c, arg[0], &set, sizeof set) || !set)
			return false;
		*ret = __builtin_ctzll(set) + 1;
		return true;
	}
	default:
		return false;
	}
}

int64_t deadlock_satisfy(struct deadlock_copy *c)
{
	int64_t result = 0;
	const uint64_t call = (uint64_t)c->wait->call;
	if (c->wait->call == SYS_futex || c->wait->kind == DEADLOCK_MUTEX_PARKED)
		return satisfy_futex(c);
	if (satisfy_simply(c, &result))
		return result;
	if (c->wait->call < 0 || !deadlock_emulate_knows(call)) {
		deadlock_copy_end(c, DEADLOCK_END_FAILED,
			"no way to fake the end of system call %lld", (long long)c->wait->call);
		return 0;
	}
	c->is_first = true;
	result = deadlock_emulate(c, call, c->wait->arg);
	c->is_first = false;
	return result;
}

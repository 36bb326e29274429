/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self.c - where a thread's own data lie: in places that are taken at its first record and
 * given back at its end. TLS has a pointer only: a library that is loaded late (by dlopen(), by
 * LD_AUDIT's ways) finds next to no room there.
 *
 * Places are never unmapped: threads may look at what others began. Signal handlers take some too.
 */
#include "preload/next.h"
#include "preload/preload.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct preload_thread preload_nobody, preload_ended = {.ended = 1};
__thread struct preload_thread *preload_self = &preload_nobody;

/* The first places are part of the library; then as many again as there are, in one mapping. */
static struct preload_thread places[PRELOAD_PLACES_FIRST];
static struct preload_thread *more[PRELOAD_PLACES_GROWN]; /* NULL: not yet; survives fork */

static uint32_t nr_places(void)
{
	uint32_t nr = PRELOAD_PLACES_FIRST;
	for (unsigned i = 0; i < PRELOAD_PLACES_GROWN; i++)
		nr += __atomic_load_n(&more[i], __ATOMIC_ACQUIRE)
			      ? (uint32_t)PRELOAD_PLACES_FIRST << i
			      : 0;
	return nr;
}

/* `number` from 0. */
static struct preload_thread *place_at(uint32_t number)
{
	if (number < PRELOAD_PLACES_FIRST)
		return &places[number];
	unsigned log2 = 31u - (unsigned)__builtin_clz(number / PRELOAD_PLACES_FIRST);
	uint32_t before = (uint32_t)PRELOAD_PLACES_FIRST << log2;
	return __atomic_load_n(&more[log2], __ATOMIC_ACQUIRE) + (number - before);
}

static void place_set_taken(uint32_t number, bool taken)
{
	uint64_t *word = &preload_fresh.taken[number / 64], bit = 1ull << number % 64;
	if (taken)
		__atomic_fetch_or(word, bit, __ATOMIC_ACQUIRE);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_RELEASE);
}

/* Those of threads that ended unseen (SYS_exit; a program that has used up the keys). True: there
 * are so many that it was worth it. */
static bool places_reclaim(uint32_t nr)
{
	uint32_t nr_found = 0;
	for (uint32_t i = 0; i < nr; i++) {
		struct preload_thread *place = place_at(i);
		uint64_t word = __atomic_load_n(&preload_fresh.taken[i / 64], __ATOMIC_ACQUIRE);
		uint32_t tid = __atomic_load_n(&place->tid, __ATOMIC_ACQUIRE);
		if (!(word >> i % 64 & 1) || !tid ||
			preload_syscall(SYS_tgkill, place->pid, tid, 0, 0, 0, 0) != -ESRCH)
			continue;
		/* (another thread may have found it first, and a third one be in it) */
		if (!__atomic_compare_exchange_n(
			    &place->tid, &tid, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		preload_block_finish(place);
		place_set_taken(i, false);
		nr_found++;
	}
	return nr_found > nr / 4;
}

static bool places_grow(uint32_t nr)
{
	unsigned i = 31u - (unsigned)__builtin_clz(nr / PRELOAD_PLACES_FIRST);
	struct preload_thread *none = NULL;
	if (places_reclaim(nr))
		return true;
	if (i >= PRELOAD_PLACES_GROWN)
		return false;
	const long nr_bytes = (long)nr * (long)sizeof *none;
	long address = preload_syscall(
		SYS_mmap, 0, nr_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (address < 0 && address >= -PRELOAD_PAGE)
		return false;
	if (!__atomic_compare_exchange_n(&more[i], &none, (struct preload_thread *)address, false,
		    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		preload_syscall(SYS_munmap, address, nr_bytes, 0, 0, 0, 0);
	return true;
}

/* Always the lowest that is free: few pages. NULL: there is none. */
static struct preload_thread *place_take(uint32_t *ret_number)
{
	for (;;) {
		uint32_t nr = nr_places();
		for (uint32_t i = 0; i < nr; i += 64) {
			uint64_t *word = &preload_fresh.taken[i / 64];
			uint64_t taken = __atomic_load_n(word, __ATOMIC_RELAXED);
			while (~taken) {
				unsigned bit = (unsigned)__builtin_ctzll(~taken);
				if (!__atomic_compare_exchange_n(word, &taken, taken | 1ull << bit,
					    false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
					continue;
				*ret_number = i + bit;
				return place_at(i + bit);
			}
		}
		if (!places_grow(nr))
			return NULL;
	}
}

static void place_name(struct preload_thread *self, uint32_t number)
{
	uint32_t tid;
	self->place = number + 1;
	preload_sandbox_ids(&self->pid, &tid);
	__atomic_store_n(&self->tid, tid, __ATOMIC_RELEASE);
}

/* ---- a process that ran already -------------------------------------------------------------- */

static struct preload_thread *place_of(uint32_t tid)
{
	uint32_t nr = nr_places();
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t word = __atomic_load_n(&preload_fresh.taken[i / 64], __ATOMIC_ACQUIRE);
		if (word >> i % 64 & 1 &&
			__atomic_load_n(&place_at(i)->tid, __ATOMIC_ACQUIRE) == tid)
			return place_at(i);
	}
	return NULL;
}

struct preload_thread *preload_self_reserve(uint32_t tid)
{
	uint32_t number, own_tid;
	struct preload_thread *self = place_of(tid); /* from an earlier recording */
	if (self)
		return self;
	self = place_take(&number);
	if (!self)
		return NULL;
	memset(self, 0, sizeof *self);
	self->ended = self->is_reserved = 1;
	self->place = number + 1;
	preload_sandbox_ids(&self->pid, &own_tid);
	__atomic_store_n(&self->tid, tid, __ATOMIC_RELEASE);
	return self;
}

void preload_self_begin(struct preload_thread *place, const struct preload_thread *as)
{
	place->end = place->kept_end = NULL;
	place->block = NULL;
	place->cursor = NULL;
	place->number = as->number;
	place->image = as->image;
	place->sequence = as->sequence;
	place->ids = as->ids;
	place->token = place->lost = place->retry_tsc = place->region = 0;
	place->busy = 0;
	place->poll.is_open = 0;
	place->poll.last_tsc = 0;
	__atomic_store_n(&place->ended, 0, __ATOMIC_RELEASE);
}

/* The semaphore at that address, of which somebody has said so since the recording began
 * (preload/made.c); 0: none, or it was forgotten. Nothing is read there: it may be gone. */
static uint64_t self_semaphore_at(uint64_t address)
{
	const uint64_t object = address | (uint64_t)TRACE_OBJECT_semaphore
						  << RING_OBJECT_TYPE_SHIFT;
	for (unsigned way = 0; address && way < 2; way++) {
		uint64_t known = preload_fresh.known[PRELOAD_KNOWN_SLOT(address) ^ way];
		if ((known & ~RING_OBJECT_SHARED) == object)
			return known;
	}
	return 0;
}

/* Whoever read from a pipe has got what there was. */
void preload_self_say_end(struct preload_thread *self)
{
	uint64_t object = self->before.object;
	bool slept = self->before.sleeps;
	uint64_t semaphore = self_semaphore_at(self->before.futex);
	self->before.is_open = 0;
	self->before.object = self->before.futex = 0;
	self->before.sleeps = 0;
	if (slept)
		preload_record_at(preload_now(), PRELOAD_sleep_end, NULL, 0);
	if (semaphore)
		PRELOAD_RECORD(token_take, semaphore, 1, 0);
	if (object)
		PRELOAD_RECORD(io_end, object, self->before.op, self->before.bytes, 0);
}

/* (A thread in the middle of a record goes on writing: a block stays memory.) */
void preload_self_leave_all(void)
{
	uint32_t nr = nr_places();
	for (uint32_t i = 0; i < nr; i++) {
		struct preload_thread *place = place_at(i);
		__atomic_store_n(&place->ended, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&place->end, NULL, __ATOMIC_RELEASE);
		__atomic_store_n(&place->kept_end, NULL, __ATOMIC_RELEASE);
	}
}

/* The thread's own, reserved before it ever called us. */
static struct preload_thread *place_reserved(uint32_t *ret_number)
{
	uint32_t pid, tid;
	preload_sandbox_ids(&pid, &tid);
	struct preload_thread *self = place_of(tid);
	if (!self || self->pid != pid || !self->is_reserved)
		return NULL;
	self->is_reserved = 0;
	*ret_number = self->place - 1;
	return self;
}

PRELOAD_COLD struct preload_thread *preload_self_take(void)
{
	struct preload_thread *nobody = &preload_nobody;
	uint32_t number = 0;
	if (!preload_on())
		return &preload_ended;
	struct preload_thread *self = preload_next_is_late() ? place_reserved(&number) : NULL;
	bool was_reserved = self != NULL;
	if (!self)
		self = place_take(&number);
	if (self && !was_reserved) {
		memset(self, 0, sizeof *self);
		place_name(self, number);
	} else if (!self) {
		__atomic_fetch_add(&preload_fresh.head->lost_records, 1, __ATOMIC_RELAXED);
		self = &preload_ended;
	}
	if (__atomic_compare_exchange_n(
		    &preload_self, &nobody, self, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		if (self->place)
			preload_thread_watch(self);
	} else if (self->place) { /* a signal handler was faster */
		place_set_taken(number, false);
	}
	return preload_self;
}

void preload_self_give(void)
{
	struct preload_thread *self = preload_self;
	uint32_t place = self->place;
	preload_self = &preload_ended;
	PRELOAD_BARRIER();
	if (!place)
		return;
	__atomic_store_n(&self->tid, 0, __ATOMIC_RELEASE);
	place_set_taken(place - 1, false);
}

void preload_self_renew(void)
{
	struct preload_thread *self = preload_self;
	uint32_t place = self->place;
	uint64_t token = self->token;
	if (!place) {
		preload_self = &preload_nobody; /* one that had ended begins anew */
		return;
	}
	place_set_taken(place - 1, true);
	memset(self, 0, offsetof(struct preload_thread, more));
	self->token = token;
	place_name(self, place - 1);
}

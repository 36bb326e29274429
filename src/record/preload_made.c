/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload_made.c - who made a lock: the call that initialised it, and the one that allocated the
 * memory that it lies in.
 *
 * An initialisation is a note in a table of this process, nothing more: programs make many locks
 * that are never used. A lock's first use looks for its note and, where liblongpole-heap.so is
 * loaded too (preload_heap.c), for its memory, and writes RING_made. A note that another one
 * displaced, or whose memory is another's by now, says nothing.
 */
#include "record/preload_heap.h"
#include "record/preload_lock.h"

enum { NOTES = 1 << 14, TAG_SHIFT = 48 };
#define SITE_MASK ((1ull << TAG_SHIFT) - 1)

/* The upper bits of `site` belong to the address: a slot that two threads wrote at once is none. */
static struct note {
	uint64_t address, site, heap_site;
} notes[NOTES];

static uint64_t tagged(uint64_t address, uint64_t site)
{
	return (address * 0x9e3779b97f4a7c15u & ~SITE_MASK) | (site & SITE_MASK);
}

static struct note *note_of(uint64_t address)
{
	return &notes[(address >> 4 ^ address >> 18) % NOTES];
}

static uint64_t heap_site(uint64_t address)
{
	return longpole_heap_site ? longpole_heap_site(address) : 0;
}

static void forget(uint64_t address)
{
	uint64_t *known = &preload_fresh.known[PRELOAD_KNOWN_SLOT(address)];
	if ((*known & RING_OBJECT_ADDRESS) == address)
		*known = 0;
}

/* Memory that we were asked about has come to its end. */
static void freed(uint64_t address, uint64_t size_bytes)
{
	if (size_bytes <= PRELOAD_KNOWN * sizeof(uint32_t)) {
		for (uint64_t at = address; at < address + size_bytes; at += sizeof(uint32_t))
			forget(at);
		return;
	}
	for (unsigned i = 0; i < PRELOAD_KNOWN; i++)
		if ((preload_fresh.known[i] & RING_OBJECT_ADDRESS) - address < size_bytes)
			preload_fresh.known[i] = 0;
}

__attribute__((constructor)) static void listen_to_heap(void)
{
	if (&longpole_heap_freed)
		longpole_heap_freed = freed;
}

void preload_made_note(const volatile void *address, uint64_t site)
{
	struct note *n = note_of((uintptr_t)address);
	n->address = 0;
	PRELOAD_BARRIER();
	n->site = tagged((uintptr_t)address, site);
	n->heap_site = heap_site((uintptr_t)address);
	PRELOAD_BARRIER();
	n->address = (uintptr_t)address;
	forget((uintptr_t)address);
}

PRELOAD_COLD void preload_made_slow(uint64_t object)
{
	uint64_t address = object & RING_OBJECT_ADDRESS, heap = heap_site(address), site = 0;
	struct note n = *note_of(address);
	if (n.address == address && n.heap_site == heap &&
		n.site == tagged(address, n.site & SITE_MASK))
		site = n.site & SITE_MASK;
	preload_fresh.known[PRELOAD_KNOWN_SLOT(object)] = object;
	if (site || heap)
		preload_record_at(preload_now(), RING_made, PRELOAD_WORDS(object, site, heap));
}

/* ---- initialisation ------------------------------------------------------------------------- */

#define INIT(name, real, type, parameters, arguments, done)                                        \
	PRELOAD_EXPORT int name(type *object parameters);                                          \
	int name(type *object parameters)                                                          \
	{                                                                                          \
		int result = PRELOAD_REAL(real)(object arguments);                                 \
		if (result == (done))                                                              \
			preload_made_note(object, PRELOAD_SITE);                                   \
		return result;                                                                     \
	}
INIT(pthread_mutex_init, pthread_mutex_init, pthread_mutex_t,
	PRELOAD_LIST(, const pthread_mutexattr_t *how), PRELOAD_LIST(, how), 0)
INIT(pthread_rwlock_init, pthread_rwlock_init, pthread_rwlock_t,
	PRELOAD_LIST(, const pthread_rwlockattr_t *how), PRELOAD_LIST(, how), 0)
INIT(mtx_init, mtx_init, mtx_t, PRELOAD_LIST(, int how), PRELOAD_LIST(, how), thrd_success)
INIT(cnd_init, cnd_init, cnd_t, NOTHING, NOTHING, thrd_success)
INIT(preload_new_cond_init, pthread_cond_init, pthread_cond_t,
	PRELOAD_LIST(, const pthread_condattr_t *how), PRELOAD_LIST(, how), 0)
INIT(preload_old_cond_init, old_cond_init, pthread_cond_t,
	PRELOAD_LIST(, const pthread_condattr_t *how), PRELOAD_LIST(, how), 0)
PRELOAD_COND_VERSION(cond_init)

PRELOAD_EXPORT int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
	int result = PRELOAD_REAL(pthread_spin_init)(lock, shared);
	if (result == 0)
		preload_made_note(lock, PRELOAD_SITE);
	return result;
}

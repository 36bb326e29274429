/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made.c - who made a lock: the call that initialised it, and the one that allocated the
 * memory that it lies in.
 *
 * An initialisation is a note in a table of this process, with its call path, nothing more:
 * programs make many locks that are never used, and many by functions that make all of them. A
 * lock's first use looks for its note and, where liblongpole-heap.so is loaded too
 * (preload/heap.c), for its memory, and writes RING_made. A note that another one displaced, or
 * whose memory is another's by now, says nothing. The end of a lock, and of memory that one lay in,
 * is a note, too: what is used there next is another lock.
 */
#include "preload/heap.h"
#include "preload/lock.h"

enum {
	NOTES = 1 << 14,
	TAG_SHIFT = 48,
	PATH = 8,
	WALKS_MAX = NOTES, /* of the stack; a lock that is made later has its site alone */
};
#define SITE_MASK ((1ull << TAG_SHIFT) - 1)

/* The upper bits of `site`, `life` and `path` belong to the address: a slot that two threads wrote
 * at once is none. Nothing else orders a note's words for others: a user of a lock has got it from
 * its maker, after that, and whatever order the program made for that holds for the note, too, also
 * where the processor reorders stores. */
static struct note {
	uint64_t address, site, heap_site;
	uint64_t life;       /* no two notes have the same */
	uint64_t path[PATH]; /* of calls, from `site` outwards; 0: no more */
} notes[NOTES];
static uint32_t nr_walks;
static uint64_t nr_lives;

static uint64_t made_tagged(uint64_t address, uint64_t site)
{
	return (address * 0x9e3779b97f4a7c15u & ~SITE_MASK) | (site & SITE_MASK);
}

static struct note *note_of(uint64_t address)
{
	_Static_assert(NOTES == 1 << 14 && PRELOAD_KNOWN == 1 << 14, "bits of the hashes");
	return &notes[(uint32_t)(address >> 3) * 0x9e3779b1u >> (32 - 14)];
}

static uint64_t heap_site(uint64_t address)
{
	return longpole_heap_site ? longpole_heap_site(address) : 0;
}

/* True: it was used. */
static bool made_forget(uint64_t address)
{
	bool known = false;
	for (unsigned way = 0; way < 2; way++) {
		uint64_t *slot = &preload_fresh.known[PRELOAD_KNOWN_SLOT(address) ^ way];
		if ((*slot & RING_OBJECT_ADDRESS) == address) {
			*slot = 0;
			known = true;
		}
	}
	return known;
}

/* True: it was already. Else what was there moves to the second slot. Threads may do so at once:
 * then something is said again. */
static bool made_remember(uint64_t object)
{
	uint64_t *first = &preload_fresh.known[PRELOAD_KNOWN_SLOT(object)],
		 *second = &preload_fresh.known[PRELOAD_KNOWN_SLOT(object) ^ 1];
	bool known = *second == object;
	*second = *first;
	*first = object;
	return known;
}

static void write_note(uint64_t address, uint64_t site, const struct preload_stack *stack)
{
	struct note *n = note_of(address);
	n->address = 0;
	PRELOAD_BARRIER();
	n->site = made_tagged(address, site);
	n->heap_site = heap_site(address);
	n->life = made_tagged(address, __atomic_add_fetch(&nr_lives, 1, __ATOMIC_RELAXED));
	for (unsigned i = 0; i < PATH; i++)
		n->path[i] = i < stack->nr_frames ? made_tagged(address, stack->frame[i]) : 0;
	PRELOAD_BARRIER();
	n->address = address;
}

static void made_end(uint64_t address)
{
	static const struct preload_stack nowhere;
	if (made_forget(address))
		write_note(address, 0, &nowhere);
}

/* Memory that we were asked about has come to its end. */
static void freed(uint64_t address, uint64_t size_bytes)
{
	if (size_bytes <= PRELOAD_KNOWN * sizeof(uint32_t)) {
		for (uint64_t at = address; at < address + size_bytes; at += sizeof(uint32_t))
			made_end(at);
		return;
	}
	for (unsigned i = 0; i < PRELOAD_KNOWN; i++) {
		uint64_t at = preload_fresh.known[i] & RING_OBJECT_ADDRESS;
		if (at - address < size_bytes)
			made_end(at);
	}
}

__attribute__((constructor)) static void listen_to_heap(void)
{
	if (&longpole_heap_freed)
		longpole_heap_freed = freed;
}

/* What a language's library does to make a lock for its caller is nobody's making. */
static void made_from_site(struct preload_stack *stack, uint64_t site)
{
	uint64_t i = 0;
	if (!RING_IS_PLACE(site))
		return;
	while (i < stack->nr_frames && stack->frame[i] != site)
		i++;
	stack->nr_frames -= i;
	memmove(stack->frame, stack->frame + i, stack->nr_frames * sizeof *stack->frame);
}

static void made_walk(struct preload_stack *stack, uint64_t site)
{
	stack->nr_frames = 0;
	if (preload_on() && __atomic_load_n(&nr_walks, __ATOMIC_RELAXED) < WALKS_MAX) {
		__atomic_fetch_add(&nr_walks, 1, __ATOMIC_RELAXED);
		preload_stack_walk(stack, site, PATH);
		made_from_site(stack, site);
	}
}

void preload_made_note(const volatile void *at, uint64_t site)
{
	uint64_t address = (uintptr_t)at;
	struct preload_stack stack;
	made_walk(&stack, site);
	write_note(address, site, &stack);
	made_forget(address);
}

static void made_path_of(const struct note *n, struct preload_stack *stack)
{
	stack->nr_frames = 0;
	for (unsigned i = 0; i < PATH && n->path[i]; i++) {
		uint64_t frame = n->path[i] & SITE_MASK;
		if (n->path[i] != made_tagged(n->address, frame))
			return;
		stack->frame[stack->nr_frames++] = frame;
	}
}

PRELOAD_COLD void preload_made_slow(uint64_t object, uint64_t used_site)
{
	if (made_remember(object))
		return;
	uint64_t address = object & RING_OBJECT_ADDRESS, heap = heap_site(address), site = 0,
		 life = 0;
	struct note n = *note_of(address);
	struct preload_stack stack = {0};
	if (n.address == address && n.life == made_tagged(address, n.life & SITE_MASK))
		life = n.life & SITE_MASK;
	if (n.address == address && n.heap_site == heap &&
		n.site == made_tagged(address, n.site & SITE_MASK))
		site = n.site & SITE_MASK;
	if (site)
		made_path_of(&n, &stack);
	else if (heap)
		made_walk(&stack, used_site);
	if (site || heap || life)
		preload_record_stack_at(preload_now(), RING_made,
			PRELOAD_WORDS(object, site, heap, 0, life), 4, &stack);
}

/* ---- initialisation -------------------------------------------------------------------------- */

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

/* ---- the end --------------------------------------------------------------------------------- */

#define END(name, type, done)                                                                      \
	PRELOAD_EXPORT int name(type *object);                                                     \
	int name(type *object)                                                                     \
	{                                                                                          \
		int result = PRELOAD_REAL(name)(object);                                           \
		if (result == (done))                                                              \
			made_end((uintptr_t)object);                                               \
		return result;                                                                     \
	}
END(pthread_mutex_destroy, pthread_mutex_t, 0)
END(pthread_rwlock_destroy, pthread_rwlock_t, 0)
END(pthread_spin_destroy, pthread_spinlock_t, 0)

/* (It has no result.) */
PRELOAD_EXPORT void mtx_destroy(mtx_t *mutex)
{
	PRELOAD_REAL(mtx_destroy)(mutex);
	made_end((uintptr_t)mutex);
}

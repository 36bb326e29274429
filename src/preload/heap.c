/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c - liblongpole-heap.so: who allocated the memory at an address. Loaded beside the
 * libraries that record or count when that is asked for; by itself of no effect.
 *
 * A block is an entry in a table, at a place that its address alone chooses: neighbours in memory
 * are neighbours in the table, and an allocation costs two stores. Nobody locks. What the table
 * says is right or absent: an entry that another block took, or that two threads wrote at once, is
 * none, and a block leaves the table when it is freed. What lies inside a block is found by going
 * back to its begin, LOOK_BACK_BYTES at most; larger blocks are in a list of their own as well.
 * Blocks of less than SMALL_BYTES, the most of many programs, have room for no lock but a spin
 * lock, which is always initialised by a call that says where it was made: they are not noted.
 *
 * malloc() and free() of every block go through here: their paths are counted in instructions.
 */
#include "preload/heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT  __attribute__((visibility("default")))
#define COLD    __attribute__((noinline, cold))
#define SITE    ((uintptr_t)__builtin_return_address(0))
#define RARE(x) __builtin_expect(!!(x), 0)

enum {
	STEP_BYTES = 32, /* no two blocks of malloc begin nearer to each other */
	ENTRIES = 1 << 19,
	SPREAD_BITS = 9,
	UNIT_BYTES = 16, /* of size, and every block's alignment */
	BIGS = 1024,
	BIG_PROBES = 16,
	EARLY_BYTES = 4096,
};
#define ADDRESS_BITS    48
#define LOW_MASK        ((1ull << ADDRESS_BITS) - 1)
#define LOOK_BACK_BYTES 16384u
#define SMALL_BYTES     sizeof(sem_t)
#define ASKED           1ull /* in an address: somebody wanted to know */
#define BIG             2ull /* ... its size is in `bigs` */
#define ADDRESS_MASK    (LOW_MASK & ~(uint64_t)(UNIT_BYTES - 1))

static struct entry {
	uint64_t block; /* size in units << 48 | address | ASKED | BIG; 0: none */
	uint64_t site;  /* a tag of the address << 48 | caller */
} table[ENTRIES];
static struct big {
	uint64_t address, size_bytes, site; /* address 0: free */
} bigs[BIGS];

EXPORT void (*longpole_heap_freed)(uint64_t address, uint64_t size_bytes);

/* The bits of the address that its place does not tell; code is below 1 << ADDRESS_BITS. */
static uint64_t heap_tagged(uint64_t address, uint64_t site)
{
	return address / (STEP_BYTES * ENTRIES) << ADDRESS_BITS | site;
}

/* Each thread's heap begins at a multiple of 64 MiB and is filled as the others are: without its
 * upper bits they would all have the same places. */
static struct entry *heap_entry_of(uint64_t address)
{
	return &table[(address ^ address >> SPREAD_BITS) / STEP_BYTES % ENTRIES];
}

/* ---- large blocks: few, and slow anyway ------------------------------------------------------ */

static struct big *big_at(uint64_t address, unsigned probe)
{
	uint64_t first = address / UNIT_BYTES * 0x9e3779b97f4a7c15u >> 54;
	return &bigs[(first + probe) % BIGS];
}

/* Another block took its entry: nobody will ask for this one, or see its end. */
static bool heap_is_left(uint64_t address)
{
	uint64_t is = __atomic_load_n(&heap_entry_of(address)->block, __ATOMIC_RELAXED);
	return !(is & BIG) || (is & ADDRESS_MASK) != address;
}

static COLD void put_big(uint64_t address, uint64_t n, uint64_t site)
{
	for (unsigned i = 0; i < BIG_PROBES; i++) {
		struct big *b = big_at(address, i);
		uint64_t was = __atomic_load_n(&b->address, __ATOMIC_RELAXED);
		/* 1: ours, not yet complete */
		if (was == 1 || (was && was != address && !heap_is_left(was)) ||
			!__atomic_compare_exchange_n(
				&b->address, &was, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		b->size_bytes = n;
		b->site = site;
		__atomic_store_n(&b->address, address, __ATOMIC_RELEASE);
		return;
	}
}

/* Returns its size, 0: it was not there. */
static COLD uint64_t drop_big(uint64_t address)
{
	for (unsigned i = 0; i < BIG_PROBES; i++) {
		struct big *b = big_at(address, i);
		if (b->address == address) {
			uint64_t n = b->size_bytes;
			__atomic_store_n(&b->address, 0, __ATOMIC_RELEASE);
			return n;
		}
	}
	return 0;
}

/* ---- all blocks ------------------------------------------------------------------------------ */

static inline void put_entry(uint64_t block, uint64_t caller)
{
	struct entry *e = heap_entry_of(block);
	e->site = heap_tagged(block & ADDRESS_MASK, caller);
	__atomic_store_n(&e->block, block, __ATOMIC_RELEASE);
}

static COLD void *put_odd(void *block, uint64_t n, uint64_t caller)
{
	if (block && n > LOOK_BACK_BYTES) {
		put_big((uintptr_t)block, n, caller);
		put_entry((uintptr_t)block | BIG, caller);
	}
	return block;
}

/* Returns `block`. */
static inline void *heap_put(void *block, uint64_t n, uint64_t caller)
{
	if (RARE(!block || n - SMALL_BYTES > LOOK_BACK_BYTES - SMALL_BYTES))
		return put_odd(block, n, caller);
	uint64_t units = (n + UNIT_BYTES - 1) / UNIT_BYTES;
	put_entry(units << ADDRESS_BITS | (uintptr_t)block, caller);
	return block;
}

static COLD void drop_noted(struct entry *e)
{
	uint64_t was = e->block, address = was & ADDRESS_MASK;
	uint64_t n = (was >> ADDRESS_BITS) * UNIT_BYTES;
	e->block = 0;
	if (was & BIG)
		n = drop_big(address);
	if (was & ASKED && longpole_heap_freed)
		longpole_heap_freed(address, n);
}

/* Before it is freed: afterwards it may be another's. NULL is like a block that is in no entry.
 * False: there is more to do, drop_noted(). */
static inline bool drop_plain(const void *block)
{
	struct entry *e = heap_entry_of((uintptr_t)block);
	uint64_t is = __atomic_load_n(&e->block, __ATOMIC_RELAXED);
	if ((is ^ (uintptr_t)block) & ADDRESS_MASK)
		return true;
	if (RARE(is & (ASKED | BIG)))
		return false;
	e->block = 0;
	return true;
}

static void heap_drop(const void *block)
{
	if (!drop_plain(block))
		drop_noted(heap_entry_of((uintptr_t)block));
}

static uint64_t heap_ask(struct entry *e)
{
	__atomic_fetch_or(&e->block, ASKED, __ATOMIC_RELAXED);
	return e->site & LOW_MASK;
}

EXPORT uint64_t longpole_heap_site(uint64_t address)
{
	uint64_t begin = address & ADDRESS_MASK;
	for (unsigned back = 0; back < LOOK_BACK_BYTES && begin; back += UNIT_BYTES) {
		struct entry *e = heap_entry_of(begin);
		uint64_t is = __atomic_load_n(&e->block, __ATOMIC_ACQUIRE);
		uint64_t units = is >> ADDRESS_BITS;
		if ((is & ADDRESS_MASK) == begin &&
			e->site == heap_tagged(begin, e->site & LOW_MASK) &&
			(is & BIG || address - begin < units * UNIT_BYTES))
			return heap_ask(e);
		begin -= UNIT_BYTES;
	}
	for (unsigned i = 0; i < BIGS; i++) {
		uint64_t at = __atomic_load_n(&bigs[i].address, __ATOMIC_ACQUIRE);
		struct entry *e = heap_entry_of(at);
		if (at > 1 && address - at < bigs[i].size_bytes && !heap_is_left(at))
			return heap_ask(e);
	}
	return 0;
}

EXPORT void longpole_heap_allocated(uint64_t address, uint64_t site)
{
	struct entry *e = heap_entry_of(address);
	if ((__atomic_load_n(&e->block, __ATOMIC_RELAXED) & ADDRESS_MASK) == address)
		e->site = heap_tagged(address, site);
}

/* ---- the real ones --------------------------------------------------------------------------- */

#define FUNCTIONS(X)                                                                               \
	X(malloc, void *, (size_t n))                                                              \
	X(calloc, void *, (size_t nr, size_t n))                                                   \
	X(realloc, void *, (void *old, size_t n))                                                  \
	X(reallocarray, void *, (void *old, size_t nr, size_t n))                                  \
	X(free, void, (void *block))                                                               \
	X(posix_memalign, int, (void **ret, size_t align, size_t n))                               \
	X(aligned_alloc, void *, (size_t align, size_t n))                                         \
	X(memalign, void *, (size_t align, size_t n))                                              \
	X(_Znwm, void *, (size_t n))                                                               \
	X(_Znam, void *, (size_t n))                                                               \
	X(_ZnwmRKSt9nothrow_t, void *, (size_t n, const void *tag))                                \
	X(_ZnamRKSt9nothrow_t, void *, (size_t n, const void *tag))                                \
	X(_ZnwmSt11align_val_t, void *, (size_t n, size_t align))                                  \
	X(_ZnamSt11align_val_t, void *, (size_t n, size_t align))
static struct {
#define X(name, result, parameters) result(*name) parameters;
	FUNCTIONS(X)
#undef X
} real;

/* What dlsym itself allocates while it looks for the allocator. Never given back. */
static _Alignas(UNIT_BYTES) char early[EARLY_BYTES];
static size_t early_used;
static __thread bool looking;

static void *early_malloc(size_t n)
{
	size_t units = (n + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
	size_t at = __atomic_fetch_add(&early_used, units, __ATOMIC_RELAXED);
	return n > EARLY_BYTES || at + units > EARLY_BYTES ? NULL : early + at;
}

static bool heap_is_early(const void *block)
{
	return (uintptr_t)block - (uintptr_t)early < EARLY_BYTES;
}

/* operator new is libstdc++'s: found where a program has one. */
static COLD bool heap_find_all(void)
{
	if (looking)
		return false;
	looking = true;
#define X(name, result, parameters)                                                                \
	if (!real.name)                                                                            \
		real.name = (__typeof__(real.name))dlsym(RTLD_NEXT, #name);
	FUNCTIONS(X)
#undef X
	looking = false;
	return real.malloc && real.free;
}
#define READY(name) (!RARE(!real.name) || (heap_find_all() && real.name))

__attribute__((constructor)) static void start(void)
{
	heap_find_all();
}

/* Not inlined: malloc() of a small block is to save no registers. */
static __attribute__((noinline)) void *noted_malloc(size_t n, uint64_t caller)
{
	return heap_put(real.malloc(n), n, caller);
}

static COLD void *first_malloc(size_t n, uint64_t caller)
{
	return heap_find_all() ? noted_malloc(n, caller) : early_malloc(n);
}

EXPORT void *malloc(size_t n)
{
	if (RARE(!real.malloc))
		return first_malloc(n, SITE);
	return n < SMALL_BYTES ? real.malloc(n) : noted_malloc(n, SITE);
}

EXPORT void *calloc(size_t nr, size_t n)
{
	if (!READY(calloc))
		return n && nr > EARLY_BYTES / n ? NULL : early_malloc(nr * n);
	return heap_put(real.calloc(nr, n), nr * n, SITE);
}

static COLD void odd_free(void *block)
{
	if (heap_is_early(block) || !READY(free))
		return;
	heap_drop(block);
	real.free(block);
}

EXPORT void free(void *block)
{
	if (RARE(heap_is_early(block) || !real.free || !drop_plain(block)))
		odd_free(block);
	else
		real.free(block);
}

/* The old block ends when the new one is there: of a failure nothing may be forgotten. What was
 * known of it may go all the same. */
static void *grown(void *old, size_t n, uint64_t caller)
{
	if (RARE(heap_is_early(old))) {
		void *block = real.malloc(n);
		size_t left = (size_t)(early + EARLY_BYTES - (char *)old);
		if (block)
			memcpy(block, old, n < left ? n : left);
		return heap_put(block, n, caller);
	}
	heap_drop(old);
	return heap_put(real.realloc(old, n), n, caller);
}

EXPORT void *realloc(void *old, size_t n)
{
	return READY(realloc) ? grown(old, n, SITE) : early_malloc(n);
}

EXPORT void *reallocarray(void *old, size_t nr, size_t n)
{
	if (n && nr > SIZE_MAX / n) {
		errno = ENOMEM;
		return NULL;
	}
	return READY(realloc) ? grown(old, nr * n, SITE) : early_malloc(nr * n);
}

EXPORT int posix_memalign(void **ret, size_t align, size_t n)
{
	if (!READY(posix_memalign))
		return ENOMEM;
	int result = real.posix_memalign(ret, align, n);
	if (!result)
		heap_put(*ret, n, SITE);
	return result;
}

#define ALLOCATOR(name, parameters, arguments)                                                     \
	EXPORT void *name parameters;                                                              \
	void *name parameters                                                                      \
	{                                                                                          \
		return heap_put(READY(name) ? real.name arguments : NULL, n, SITE);                \
	}
ALLOCATOR(aligned_alloc, (size_t align, size_t n), (align, n))
ALLOCATOR(memalign, (size_t align, size_t n), (align, n))
ALLOCATOR(_Znwm, (size_t n), (n))
ALLOCATOR(_Znam, (size_t n), (n))
ALLOCATOR(_ZnwmRKSt9nothrow_t, (size_t n, const void *tag), (n, tag))
ALLOCATOR(_ZnamRKSt9nothrow_t, (size_t n, const void *tag), (n, tag))
ALLOCATOR(_ZnwmSt11align_val_t, (size_t n, size_t align), (n, align))
ALLOCATOR(_ZnamSt11align_val_t, (size_t n, size_t align), (n, align))

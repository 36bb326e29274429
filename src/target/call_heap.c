/* SPDX-License-Identifier: Apache-2.0 */
/* call_heap.c - allocation in C, and mappings: where data objects are, and who made them. */
#include "target/heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* void *f(...) that allocates `bytes`; results and errno are libc's. */
#define ALLOCATE(name, bytes, parameters, arguments)                                               \
	void *longpole_at_##name parameters;                                                       \
	AT void *longpole_at_##name parameters                                                     \
	{                                                                                          \
		TARGET_UNLESS_ATTACHED(name arguments);                                            \
		uint64_t before = target_call_ticks();                                             \
		void *p = name arguments; /* allowed: the program's own call */                    \
		target_allocated(p, bytes, TARGET_SITE, ALLOCATION_HEAP, before);                  \
		return p;                                                                          \
	}
ALLOCATE(malloc, n, (size_t n), (n))
ALLOCATE(memalign, n, (size_t alignment, size_t n), (alignment, n))
ALLOCATE(aligned_alloc, n, (size_t alignment, size_t n), (alignment, n))
ALLOCATE(valloc, n, (size_t n), (n))

/* What is allocated is written, too. */
void *longpole_at_calloc(size_t nr, size_t n);
AT void *longpole_at_calloc(size_t nr, size_t n)
{
	TARGET_UNLESS_ATTACHED(calloc(nr, n)); /* allowed: the program's own call */
	uint64_t before = target_call_ticks();
	void *p = calloc(nr, n); /* allowed: the program's own call */
	target_allocated(p, nr * n, TARGET_SITE, ALLOCATION_HEAP, before);
	if (p)
		longpole_target_range(true, p, nr * n);
	return p;
}

#define COPY(name, bytes, parameters, arguments)                                                   \
	char *longpole_at_##name parameters;                                                       \
	AT char *longpole_at_##name parameters                                                     \
	{                                                                                          \
		TARGET_UNLESS_ATTACHED(name arguments);                                            \
		uint64_t before = target_call_ticks();                                             \
		size_t nr = (bytes) + 1;                                                           \
		char *p = name arguments; /* allowed: the program's own call */                    \
		target_allocated(p, nr, TARGET_SITE, ALLOCATION_HEAP, before);                     \
		longpole_target_range(false, s, nr);                                               \
		if (p)                                                                             \
			longpole_target_range(true, p, nr);                                        \
		return p;                                                                          \
	}
COPY(strdup, strlen(s), (const char *s), (s))
COPY(strndup, strnlen(s, n), (const char *s, size_t n), (s, n))

int longpole_at_posix_memalign(void **ret, size_t alignment, size_t n);
AT int longpole_at_posix_memalign(void **ret, size_t alignment, size_t n)
{
	TARGET_UNLESS_ATTACHED(
		posix_memalign(ret, alignment, n)); /* allowed: the program's own call */
	uint64_t before = target_call_ticks();
	int result = posix_memalign(ret, alignment, n); /* allowed: the program's own call */
	if (!result)
		target_allocated(*ret, n, TARGET_SITE, ALLOCATION_HEAP, before);
	return result;
}

/* A block that could not be made another is what it was. */
#define REALLOCATE(name, bytes, parameters, arguments)                                             \
	void *longpole_at_##name parameters;                                                       \
	AT void *longpole_at_##name parameters                                                     \
	{                                                                                          \
		TARGET_UNLESS_ATTACHED(name arguments);                                            \
		uint64_t before = target_call_ticks();                                             \
		size_t had = malloc_usable_size(old);                                              \
		const void *volatile was = old;                                                    \
		target_released(old, 0);                                                           \
		void *p = name arguments; /* allowed: the program's own call */                    \
		if (!p && (bytes) != 0)                                                            \
			target_allocated(was, had, TARGET_SITE, ALLOCATION_HEAP, before);          \
		target_allocated(p, bytes, TARGET_SITE, ALLOCATION_HEAP, before);                  \
		return p;                                                                          \
	}
REALLOCATE(realloc, n, (void *old, size_t n), (old, n))
REALLOCATE(reallocarray, nr *n, (void *old, size_t nr, size_t n), (old, nr, n))

void longpole_at_free(void *p);
AT void longpole_at_free(void *p)
{
	target_released(p, 0);
	free(p); /* allowed: the program's own call */
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* Which memory other processes may have, too: a file's, or what a fork's children inherit. before 0:
 * nobody records. */
static void tell_shared(const void *p, size_t n, int flags, int file, off_t offset, uint64_t before)
{
	enum { PAGE = 4096 };
	struct stat s = {.st_ino = 0};
	bool has_file = !(flags & MAP_ANONYMOUS);
	if (!before || !(flags & MAP_SHARED) ||
		(has_file && longpole_target_syscall(SYS_fstat, file, (long)&s, 0, 0, 0, 0)))
		return;
	uint64_t pid = (uint64_t)longpole_target_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	uint64_t what = has_file ? s.st_dev * UINT64_C(0x9e3779b97f4a7c15) + s.st_ino
				 : before * UINT64_C(0x9e3779b97f4a7c15) + pid;
	longpole_target_call(CALL_shared, before, target_call_ticks(), (uint64_t)(uintptr_t)p,
		(n + PAGE - 1) / PAGE * PAGE, what, has_file ? (uint64_t)offset : 0);
}

#define MAP(name)                                                                                  \
	void *longpole_at_##name(                                                                  \
		void *at, size_t n, int protection, int flags, int file, off_t offset);            \
	AT void *longpole_at_##name(                                                               \
		void *at, size_t n, int protection, int flags, int file, off_t offset)             \
	{                                                                                          \
		uint64_t before = target_call_ticks();                                             \
		void *p = name(at, n, protection, flags, file, offset);                            \
		if (p != MAP_FAILED) {                                                             \
			tell_shared(p, n, flags, file, offset, before);                            \
			target_allocated(p, n, TARGET_SITE, ALLOCATION_MAPPING, before);           \
		}                                                                                  \
		return p;                                                                          \
	}
MAP(mmap)
MAP(mmap64)

int longpole_at_munmap(void *p, size_t n);
AT int longpole_at_munmap(void *p, size_t n)
{
	target_released(p, n);
	return munmap(p, n);
}

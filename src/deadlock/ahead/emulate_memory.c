/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_memory.c - the copy's own memory: private and anonymous, whatever it asks for. */
#include "deadlock/ahead/emulate.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES ((uint64_t)DEADLOCK_GHOST_PAGE_BYTES)

static bool may_map(struct deadlock_copy *c, uint64_t size)
{
	if (size > DEADLOCK_COPY_MAPPED_MAX || c->mapped_bytes + size > DEADLOCK_COPY_MAPPED_MAX)
		return false;
	c->mapped_bytes += size;
	return true;
}

int64_t deadlock_emulate_mmap(struct deadlock_copy *c, const uint64_t *arg)
{
	const bool is_fixed = arg[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	if (!(arg[3] & MAP_ANONYMOUS) || (arg[3] & MAP_TYPE) != MAP_PRIVATE) {
		deadlock_copy_end(c, DEADLOCK_END_CALL, "it would map %s",
			arg[3] & MAP_ANONYMOUS ? "shared memory" : "a file");
		return 0;
	}
	if (arg[0] % PAGE_BYTES || !may_map(c, arg[1]))
		return -ENOMEM;
	return deadlock_ghost_map(c->ghost, is_fixed ? arg[0] : 0, arg[1],
		(int)arg[2] & (PROT_READ | PROT_WRITE | PROT_EXEC));
}

int64_t deadlock_emulate_munmap(struct deadlock_copy *c, const uint64_t *arg)
{
	return deadlock_ghost_unmap(c->ghost, arg[0], arg[1]);
}

int64_t deadlock_emulate_mprotect(struct deadlock_copy *c, const uint64_t *arg)
{
	const int prot = (int)arg[2] & (PROT_READ | PROT_WRITE | PROT_EXEC);
	if (arg[0] % PAGE_BYTES)
		return -EINVAL;
	return deadlock_ghost_protect(c->ghost, arg[0], arg[1], prot);
}

/* Only one advice changes what is read later: private memory that is given up comes back as zero.
 */
int64_t deadlock_emulate_madvise(struct deadlock_copy *c, const uint64_t *arg)
{
	const struct os_region *r = deadlock_process_region(c->world, c->process, arg[0]);
	if (arg[2] != MADV_DONTNEED || arg[0] % PAGE_BYTES || !r || r->inode || r->shared ||
		arg[0] + arg[1] > r->end)
		return 0;
	const int prot = (r->readable ? PROT_READ : 0) | (r->writable ? PROT_WRITE : 0);
	const int64_t result = deadlock_ghost_map(c->ghost, arg[0], arg[1], prot);
	return result < 0 ? result : 0;
}

/* Where the heap ends, from where the process has it. */
static uint64_t heap_end(struct deadlock_copy *c)
{
	static const char name[] = "[heap]";
	if (c->heap_end)
		return c->heap_end;
	for (size_t i = 0; i < c->process->nr_regions; i++) {
		const struct os_region *r = &c->process->region[i];
		if (r->path_length == sizeof name - 1 &&
			memcmp(r->path, name, sizeof name - 1) == 0)
			c->heap_end = r->end;
	}
	return c->heap_end;
}

/* Grows only while nothing is in its way; a program that is refused maps memory instead. */
int64_t deadlock_emulate_brk(struct deadlock_copy *c, const uint64_t *arg)
{
	const uint64_t now = heap_end(c),
		       wanted = (arg[0] + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	if (!now || arg[0] <= now || !may_map(c, wanted - now))
		return (int64_t)now;
	for (size_t i = 0; i < c->process->nr_regions; i++)
		if (c->process->region[i].start < wanted && c->process->region[i].end > now)
			return (int64_t)now;
	if (deadlock_ghost_map(c->ghost, now, wanted - now, PROT_READ | PROT_WRITE) < 0)
		return (int64_t)now;
	c->heap_end = wanted;
	return (int64_t)arg[0];
}

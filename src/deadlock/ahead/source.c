/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - /proc/PID/pagemap says what a process has; /proc/PID/map_files opens what it mapped.
 */
#include "deadlock/ahead/source.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define PAGE_BYTES ((uint64_t)DEADLOCK_SOURCE_PAGE_BYTES)

void deadlock_source_open(struct deadlock_source *s, pid_t pid)
{
	char path[40];
	pid = deadlock_shown_as(pid);
	*s = (struct deadlock_source){.pid = pid};
	(void)snprintf(path, sizeof path, "/proc/%d/pagemap", (int)pid);
	s->pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
}

void deadlock_source_close(struct deadlock_source *s)
{
	for (unsigned i = 0; i < DEADLOCK_SOURCE_FILES; i++)
		if (s->file[i].start && s->file[i].fd >= 0)
			(void)close(s->file[i].fd);
	if (s->pagemap_fd >= 0)
		(void)close(s->pagemap_fd);
	*s = (struct deadlock_source){.pagemap_fd = -1};
}

/* The file behind a region; -1: only its memory is there. */
static int source_file_of(struct deadlock_source *s, const struct os_region *r)
{
	char path[80];
	for (unsigned i = 0; i < DEADLOCK_SOURCE_FILES; i++)
		if (s->file[i].start == r->start)
			return s->file[i].fd;
	const unsigned at = s->next++ % DEADLOCK_SOURCE_FILES;
	if (s->file[at].start && s->file[at].fd >= 0)
		(void)close(s->file[at].fd);
	(void)snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)s->pid,
		r->start, r->end);
	const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	s->file[at].start = r->start;
	s->file[at].fd = open(path, flags | O_NOATIME);
	if (s->file[at].fd < 0)
		s->file[at].fd = open(path, flags);
	return s->file[at].fd;
}

/* Bits of an entry of pagemap. */
enum { PRESENT = 63, SWAPPED = 62, OF_FILE = 61 };

/* Bits of pages that the process has, in memory or swapped out. */
static uint32_t own_pages(const struct deadlock_source *s, uint64_t lo, unsigned nr_pages)
{
	uint64_t entry[DEADLOCK_SOURCE_PAGES_MAX];
	const ssize_t size = (ssize_t)(nr_pages * sizeof *entry);
	uint32_t own = 0;
	if (s->pagemap_fd < 0 || pread(s->pagemap_fd, entry, (size_t)size,
					 (off_t)(lo / PAGE_BYTES * sizeof *entry)) != size)
		return (1u << nr_pages) - 1;
	for (unsigned i = 0; i < nr_pages; i++)
		if (entry[i] >> SWAPPED)
			own |= 1u << i;
	return own;
}

bool deadlock_source_is_file(const struct deadlock_source *s, uint64_t lo, uint64_t hi)
{
	uint64_t entry[DEADLOCK_SOURCE_PAGES_MAX];
	for (uint64_t at = lo; at < hi; at += BASE_COUNT(entry) * PAGE_BYTES) {
		const uint64_t rest = (hi - at + PAGE_BYTES - 1) / PAGE_BYTES;
		const size_t nr = rest < BASE_COUNT(entry) ? (size_t)rest : BASE_COUNT(entry);
		const ssize_t size = (ssize_t)(nr * sizeof *entry);
		if (s->pagemap_fd < 0 || pread(s->pagemap_fd, entry, (size_t)size,
						 (off_t)(at / PAGE_BYTES * sizeof *entry)) != size)
			return false;
		for (size_t i = 0; i < nr; i++)
			if (entry[i] >> SWAPPED & 1 ||
				(entry[i] >> PRESENT & 1 && !(entry[i] >> OF_FILE & 1)))
				return false;
	}
	return true;
}

static bool read_file(
	struct deadlock_source *s, const struct os_region *r, uint64_t address, uint8_t *buf)
{
	const int fd = source_file_of(s, r);
	const ssize_t got =
		fd < 0 ? -1 : pread(fd, buf, PAGE_BYTES, (off_t)(address - r->start + r->offset));
	if (fd < 0)
		return deadlock_read(s->pid, address, buf, PAGE_BYTES);
	for (ssize_t i = got; got > 0 && i < (ssize_t)PAGE_BYTES; i++)
		buf[i] = 0; /* behind the file's end, in its last page */
	return got > 0;
}

/* As many pages at once as can be. */
static void source_read_memory(struct deadlock_source *s, uint64_t lo, uint32_t pages, uint8_t *buf,
	uint32_t *ret_filled, uint32_t *ret_bad)
{
	for (unsigned i = 0; pages >> i;) {
		unsigned n = 0;
		while (pages >> (i + n) & 1)
			n++;
		if (!n) {
			i++;
			continue;
		}
		const uint32_t bits = ((1u << n) - 1) << i;
		if (deadlock_read(
			    s->pid, lo + i * PAGE_BYTES, buf + i * PAGE_BYTES, n * PAGE_BYTES)) {
			*ret_filled |= bits;
		} else {
			for (unsigned k = i; k < i + n; k++) {
				const bool good = deadlock_read(s->pid, lo + k * PAGE_BYTES,
					buf + k * PAGE_BYTES, PAGE_BYTES);
				*(good ? ret_filled : ret_bad) |= 1u << k;
			}
		}
		i += n;
	}
}

void deadlock_source_read(struct deadlock_source *s, const struct os_region *r, uint64_t lo,
	unsigned nr_pages, uint8_t *buf, uint32_t *ret_filled, uint32_t *ret_bad)
{
	const uint32_t all = (1u << nr_pages) - 1;
	*ret_filled = *ret_bad = 0;
	if (!r->readable) /* reserved, so zero once it is made readable */
		return;
	const uint32_t own = own_pages(s, lo, nr_pages);
	source_read_memory(s, lo, own, buf, ret_filled, ret_bad);
	if (!r->shared && !r->inode)
		return;
	for (unsigned i = 0; i < nr_pages; i++)
		if ((all & ~own) >> i & 1)
			*(read_file(s, r, lo + i * PAGE_BYTES, buf + i * PAGE_BYTES) ? ret_filled
										     : ret_bad) |=
				1u << i;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - reads memory of a live process so that the process does not notice.
 *
 * Reading a page that the process never touched would make the kernel map one for it (or block,
 * where user space serves its faults). So only pages that it has are read from its memory; private
 * memory that it never touched is zero; and pages of files that it has not touched are read from
 * the file.
 */
#ifndef LONGPOLE_DEADLOCK_SOURCE_H
#define LONGPOLE_DEADLOCK_SOURCE_H

#include "deadlock/ahead/ahead.h"

enum {
	DEADLOCK_SOURCE_PAGE_BYTES = 4096,
	DEADLOCK_SOURCE_PAGES_MAX = 16,
	DEADLOCK_SOURCE_FILES = 8
};

struct deadlock_source {
	pid_t pid;
	int pagemap_fd; /* -1: not ours to see; then all pages are read from its memory */
	struct {
		uint64_t start; /* of the region; 0: none */
		int fd;         /* -1: its file cannot be opened */
	} file[DEADLOCK_SOURCE_FILES];
	unsigned next;
};

/* `{.pagemap_fd = -1}` is a closed one. */
void deadlock_source_open(struct deadlock_source *s, pid_t pid);
void deadlock_source_close(struct deadlock_source *s);
/* All pages of [lo, hi), which is of a private mapping of a file, are the file's: none was written
 * to. False, too, where that is not ours to see. */
bool deadlock_source_is_file(const struct deadlock_source *s, uint64_t lo, uint64_t hi);
/* `nr_pages` pages of region `r` from address `lo` on. Bits of pages: *ret_filled are in `buf`, at
 * their place; *ret_bad cannot be read; the others are zero. */
void deadlock_source_read(struct deadlock_source *s, const struct os_region *r, uint64_t lo,
	unsigned nr_pages, uint8_t *buf, uint32_t *ret_filled, uint32_t *ret_bad);

#endif

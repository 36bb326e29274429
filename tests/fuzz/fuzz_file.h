/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_file.h - bytes as a file, for code that opens one by its name: in memory, made once. */
#ifndef LONGPOLE_FUZZ_FILE_H
#define LONGPOLE_FUZZ_FILE_H

#include "base/base.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct fuzz_file {
	int fd;
	char path[40];
};

/* False: no such file can be made here. `f` is {.fd = -1} at first, and kept. */
static inline bool fuzz_file_put(struct fuzz_file *f, const uint8_t *bytes, size_t nr)
{
	if (f->fd < 0)
		f->fd = memfd_create("longpole-fuzz", MFD_CLOEXEC);
	snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
	return f->fd >= 0 && !ftruncate(f->fd, 0) &&
	       (!nr || pwrite(f->fd, bytes, nr, 0) == (ssize_t)nr);
}

#endif

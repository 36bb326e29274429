/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fifo.c - which FIFO a process means by a name.
 *
 * Names are looked up only as far as the kernel has them in its cache (openat2, RESOLVE_CACHED): a
 * file system's server may be who is stuck, and we must not wait for it. Who waits in the opening
 * of a FIFO has just looked its name up.
 */
#include "deadlock/private.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20 /* Linux 5.12; before, the call is refused */
#endif

/* Where the process's name begins: its root, its working directory, or one of its descriptors. */
static int open_begin(pid_t pid, int directory_fd, bool is_absolute)
{
	char link[48];
	if (is_absolute)
		(void)snprintf(link, sizeof link, "/proc/%d/root", (int)pid);
	else if (directory_fd == AT_FDCWD)
		(void)snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
	else
		(void)snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, directory_fd);
	return open(link, O_PATH | O_CLOEXEC);
}

bool deadlock_fifo_named(pid_t pid, int directory_fd, const char *name, struct deadlock_file *ret)
{
	struct stat st;
	const bool is_absolute = *name == '/';
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_CACHED | (is_absolute ? RESOLVE_IN_ROOT : 0)};
	const int begin = open_begin(pid, directory_fd, is_absolute);
	if (begin < 0)
		return false;
	const int fd = (int)syscall(SYS_openat2, begin, name, &how, sizeof how);
	const bool is_fifo = fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
	if (is_fifo)
		*ret = (struct deadlock_file){.kind = DEADLOCK_FILE_PIPE,
			.device = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev),
			.inode = st.st_ino};
	if (fd >= 0)
		(void)close(fd);
	(void)close(begin);
	return is_fifo;
}

/* Up to the end of a page at a time: what follows may not be there. */
bool deadlock_read_text(
	deadlock_memory_fn *read_memory, void *ctx, uint64_t address, char *text, size_t size)
{
	enum { PAGE = 4096 };
	for (size_t done = 0; done < size;) {
		const size_t to_end = PAGE - (size_t)((address + done) % PAGE);
		const size_t n = to_end < size - done ? to_end : size - done;
		if (!read_memory(ctx, address + done, text + done, n))
			return false;
		for (const size_t end = done + n; done < end; done++)
			if (!text[done])
				return true;
	}
	return false;
}

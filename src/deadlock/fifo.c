/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fifo.c - which FIFO, or socket, a process means by a name.
 *
 * Names are looked up only as far as the kernel has them in its cache (openat2, RESOLVE_CACHED): a
 * file system's server may be who is stuck, and we must not wait for it. Who waits in the opening
 * of a FIFO has just looked its name up.
 */
#include "deadlock/private.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
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

uint64_t deadlock_socket_named(struct deadlock_world *w, deadlock_memory_fn *read_memory, void *ctx,
	uint64_t address, uint64_t bytes)
{
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} name = {0};
	const struct deadlock_peers *peers = deadlock_world_peers(w);
	const size_t before = offsetof(struct sockaddr_un, sun_path);
	if (!address || bytes <= before || bytes > sizeof name ||
		!read_memory(ctx, address, &name, (size_t)bytes))
		return 0;
	return name.any.sa_family == AF_UNIX
		       ? deadlock_peers_named(peers, name.un.sun_path, (size_t)bytes - before)
		       : deadlock_peers_full(peers, &name.any);
}

/* For a moment the socket is ours, too. */
uint64_t deadlock_socket_limit_ns(pid_t pid, int fd, bool reads)
{
	struct timeval limit = {0};
	socklen_t bytes = sizeof limit;
	const int process = (int)syscall(SYS_pidfd_open, pid, 0);
	const int ours = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, fd, 0) : -1;
	if (ours >= 0) {
		(void)getsockopt(
			ours, SOL_SOCKET, reads ? SO_RCVTIMEO : SO_SNDTIMEO, &limit, &bytes);
		(void)close(ours);
	}
	if (process >= 0)
		(void)close(process);
	return (uint64_t)limit.tv_sec * 1000000000 + (uint64_t)limit.tv_usec * 1000;
}

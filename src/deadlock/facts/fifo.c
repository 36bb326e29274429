/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fifo.c - which FIFO, or socket, a process means by a name.
 *
 * Names are looked up only as far as the kernel has them in its cache (openat2, RESOLVE_CACHED): a
 * file system's server may be what is stuck, and we must not wait for it. A thread that waits in
 * the opening of a FIFO has just looked its name up.
 */
#include "deadlock/facts/facts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
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
	pid = deadlock_shown_as(pid);
	if (is_absolute)
		(void)snprintf(link, sizeof link, "/proc/%d/root", (int)pid);
	else if (directory_fd == AT_FDCWD)
		(void)snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
	else
		(void)snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, directory_fd);
	return open(link, O_PATH | O_CLOEXEC);
}

/* What kind (S_IFMT) of file it is, on which device and of which number. False: not known. */
static bool fifo_is_named(pid_t pid, int directory_fd, const char *name, mode_t kind,
	uint64_t *device, uint64_t *inode)
{
	struct stat st;
	const bool is_absolute = *name == '/';
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_CACHED | (is_absolute ? RESOLVE_IN_ROOT : 0)};
	const int begin = open_begin(pid, directory_fd, is_absolute);
	if (begin < 0)
		return false;
	const int fd = (int)syscall(__NR_openat2, begin, name, &how, sizeof how);
	const bool is_it = fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind;
	if (is_it) {
		*device = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev);
		*inode = st.st_ino;
	}
	if (fd >= 0)
		(void)close(fd);
	(void)close(begin);
	return is_it;
}

bool deadlock_fifo_named(pid_t pid, int directory_fd, const char *name, struct deadlock_file *ret)
{
	uint64_t device, inode;
	if (!fifo_is_named(pid, directory_fd, name, S_IFIFO, &device, &inode))
		return false;
	*ret = (struct deadlock_file){.kind = DEADLOCK_FILE_PIPE, .device = device, .inode = inode};
	return true;
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

/* A path may be written in another way than where it was bound: then the file tells. */
static uint64_t unix_socket_named(
	const struct deadlock_peers *peers, pid_t pid, const struct sockaddr_un *name, size_t bytes)
{
	char path[sizeof name->sun_path + 1] = "";
	uint64_t device, file;
	const uint64_t inode = deadlock_peers_named(peers, name->sun_path, bytes);
	memcpy(path, name->sun_path, bytes);
	if (inode || !*path || !fifo_is_named(pid, AT_FDCWD, path, S_IFSOCK, &device, &file))
		return inode;
	return deadlock_peers_at(peers, device, file);
}

uint64_t deadlock_socket_named(struct deadlock_world *w, pid_t pid, deadlock_memory_fn *read_memory,
	void *ctx, uint64_t address, uint64_t bytes)
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
		       ? unix_socket_named(peers, pid, &name.un, (size_t)bytes - before)
		       : deadlock_peers_full(peers, &name.any);
}

/* For a moment the socket is ours, too. */
uint64_t deadlock_socket_limit_ns(pid_t pid, int fd, bool reads)
{
	struct timeval limit = {0};
	socklen_t bytes = sizeof limit;
	const int process = (int)syscall(SYS_pidfd_open, pid, 0);
	const int ours = process >= 0 ? (int)syscall(__NR_pidfd_getfd, process, fd, 0) : -1;
	if (ours >= 0) {
		(void)getsockopt(
			ours, SOL_SOCKET, reads ? SO_RCVTIMEO : SO_SNDTIMEO, &limit, &bytes);
		(void)close(ours);
	}
	if (process >= 0)
		(void)close(process);
	return (uint64_t)limit.tv_sec * 1000000000 + (uint64_t)limit.tv_usec * 1000;
}

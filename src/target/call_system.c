/* SPDX-License-Identifier: Apache-2.0 */
/* call_system.c - reads, writes, and calls after which this image is no more. */
#include "target/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT      TARGET_STUB
#define WORD(p) ((uint64_t)(uintptr_t)(p))

static void call_system_moved(
	bool into_memory, const void *p, size_t bytes, uint64_t file, uint64_t before)
{
	int saved = errno;
	longpole_target_call(into_memory ? CALL_read : CALL_write, before, target_call_ticks(),
		WORD(p), bytes, file, 0);
	longpole_target_range(into_memory, p, bytes);
	errno = saved;
}

static uint64_t call_system_units(const struct target_channel *c, const void *p, size_t bytes)
{
	uint64_t value = bytes;
	if (c->counts && bytes == sizeof value)
		memcpy(&value, p, sizeof value);
	return value;
}

static size_t piece_bytes(const struct iovec *piece, size_t left)
{
	return left < piece->iov_len ? left : piece->iov_len;
}

static void ranges(bool into_memory, const struct iovec *piece, size_t nr, size_t left)
{
	for (; left && nr; nr--, piece++) {
		size_t bytes = piece_bytes(piece, left);
		longpole_target_range(into_memory, piece->iov_base, bytes);
		left -= bytes;
	}
}

/* r bytes, in pieces of which the first is the record's. The reader has waited until it was there
 * (take: and takes it), and writes to its memory then. */
static void received_pieces(
	int fd, bool take, const struct iovec *piece, size_t nr, ssize_t r, uint64_t before)
{
	int saved = errno;
	struct target_channel c;
	if (r <= 0 || !nr)
		return;
	if (take && longpole_target_channel(fd, &c) && c.takes)
		longpole_target_call(CALL_received, before, target_call_ticks(), c.takes,
			call_system_units(&c, piece->iov_base, (size_t)r), 0, 0);
	longpole_target_call(CALL_read, before, target_call_ticks(), WORD(piece->iov_base),
		(uint64_t)r, (uint64_t)fd, 0);
	ranges(true, piece, nr, (size_t)r);
	errno = saved;
}

/* What was written could be read as soon as the call had begun; after it nobody waits for it. */
static void sent_pieces(int fd, const struct iovec *piece, size_t nr, ssize_t r, uint64_t before)
{
	int saved = errno;
	struct target_channel c;
	if (r <= 0 || !nr)
		return;
	ranges(false, piece, nr, (size_t)r);
	if (longpole_target_channel(fd, &c) && c.gives)
		longpole_target_call(CALL_sent, before, before, c.gives,
			call_system_units(&c, piece->iov_base, (size_t)r), 0, 0);
	longpole_target_call(CALL_write, before, target_call_ticks(), WORD(piece->iov_base),
		(uint64_t)r, (uint64_t)fd, 0);
	errno = saved;
}

static void call_system_received(int fd, bool take, void *p, ssize_t r, uint64_t before)
{
	received_pieces(fd, take, &(struct iovec){p, (size_t)r}, 1, r, before);
}

static void call_system_sent(int fd, const void *p, ssize_t r, uint64_t before)
{
	sent_pieces(fd, &(struct iovec){(void *)(uintptr_t)p, (size_t)r}, 1, r, before);
}

/* What was cut off is not in memory. */
static ssize_t call_system_at_most(ssize_t r, size_t room)
{
	return r > 0 && (size_t)r > room ? (ssize_t)room : r;
}

/* What is only looked at is still to be received. */
static bool call_system_takes(int flags)
{
	return !(flags & MSG_PEEK);
}

#define MOVE(name, parameters, arguments, then)                                                    \
	TARGET_AFTER(ssize_t, name, parameters, arguments, then)
ssize_t __read_chk(int fd, void *p, size_t n, size_t room);
ssize_t __recv_chk(int fd, void *p, size_t n, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *p, size_t n, size_t room, int flags, struct sockaddr *from,
	socklen_t *length);
ssize_t __pread_chk(int fd, void *p, size_t n, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *p, size_t n, off_t at, size_t room);
MOVE(read, (int fd, void *p, size_t n), (fd, p, n),
	call_system_received(fd, true, p, result, before))
MOVE(__read_chk, (int fd, void *p, size_t n, size_t room), (fd, p, n, room),
	call_system_received(fd, true, p, result, before))
MOVE(recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags),
	call_system_received(
		fd, call_system_takes(flags), p, call_system_at_most(result, n), before))
MOVE(__recv_chk, (int fd, void *p, size_t n, size_t room, int flags), (fd, p, n, room, flags),
	call_system_received(
		fd, call_system_takes(flags), p, call_system_at_most(result, n), before))
MOVE(recvfrom, (int fd, void *p, size_t n, int flags, struct sockaddr *from, socklen_t *length),
	(fd, p, n, flags, from, length),
	call_system_received(
		fd, call_system_takes(flags), p, call_system_at_most(result, n), before))
MOVE(__recvfrom_chk,
	(int fd, void *p, size_t n, size_t room, int flags, struct sockaddr *from,
		socklen_t *length),
	(fd, p, n, room, flags, from, length),
	call_system_received(
		fd, call_system_takes(flags), p, call_system_at_most(result, n), before))
MOVE(readv, (int fd, const struct iovec *piece, int nr), (fd, piece, nr),
	received_pieces(fd, true, piece, (size_t)nr, result, before))
MOVE(recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags),
	received_pieces(fd, call_system_takes(flags), m->msg_iov, m->msg_iovlen, result, before))
MOVE(write, (int fd, const void *p, size_t n), (fd, p, n), call_system_sent(fd, p, result, before))
MOVE(send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags),
	call_system_sent(fd, p, result, before))
MOVE(sendto,
	(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t length),
	(fd, p, n, flags, to, length), call_system_sent(fd, p, result, before))
MOVE(writev, (int fd, const struct iovec *piece, int nr), (fd, piece, nr),
	sent_pieces(fd, piece, (size_t)nr, result, before))
MOVE(sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags),
	sent_pieces(fd, m->msg_iov, m->msg_iovlen, result, before))

/* Of files, which nobody waits for. */
#define PREAD(name, parameters, arguments)                                                         \
	MOVE(name, parameters, arguments,                                                          \
		if (result > 0) call_system_moved(true, p, (size_t)result, (uint64_t)fd, before))
#define PWRITE(name, parameters, arguments)                                                        \
	MOVE(name, parameters, arguments,                                                          \
		if (result > 0) call_system_moved(false, p, (size_t)result, (uint64_t)fd, before))
PREAD(pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
PREAD(pread64, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
PREAD(__pread_chk, (int fd, void *p, size_t n, off_t at, size_t room), (fd, p, n, at, room))
PREAD(__pread64_chk, (int fd, void *p, size_t n, off_t at, size_t room), (fd, p, n, at, room))
PWRITE(pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
PWRITE(pwrite64, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))

size_t longpole_at_fread(void *p, size_t size, size_t nr, FILE *f);
AT size_t longpole_at_fread(void *p, size_t size, size_t nr, FILE *f)
{
	TARGET_UNLESS_ATTACHED(fread(p, size, nr, f)); /* allowed: the program's call */
	uint64_t before = target_call_ticks();
	size_t r = TARGET_CALL(fread(p, size, nr, f)); /* allowed: the program's call */
	if (r)
		call_system_moved(true, p, r * size, WORD(f), before);
	return r;
}

size_t longpole_at_fwrite(const void *p, size_t size, size_t nr, FILE *f);
AT size_t longpole_at_fwrite(const void *p, size_t size, size_t nr, FILE *f)
{
	TARGET_UNLESS_ATTACHED(fwrite(p, size, nr, f)); /* allowed: the program's call */
	uint64_t before = target_call_ticks();
	size_t r = TARGET_CALL(fwrite(p, size, nr, f)); /* allowed: the program's call */
	if (r)
		call_system_moved(false, p, r * size, WORD(f), before);
	return r;
}

/* ---- the image's end ------------------------------------------------------------------------- */

_Noreturn void longpole_at__exit(int status);
AT _Noreturn void longpole_at__exit(int status)
{
	longpole_target_flush_all();
	_exit(status); /* allowed: the program's own call */
}

_Noreturn void longpole_at__Exit(int status);
AT _Noreturn void longpole_at__Exit(int status)
{
	longpole_target_flush_all();
	_exit(status); /* allowed: the program's own call */
}

_Noreturn void longpole_at_abort(void);
AT _Noreturn void longpole_at_abort(void)
{
	longpole_target_flush_all();
	abort(); /* allowed: the program's own call */
}

int longpole_at_execve(const char *path, char *const *argv, char *const *envp);
AT int longpole_at_execve(const char *path, char *const *argv, char *const *envp)
{
	longpole_target_flush_all();
	return execve(path, argv, envp);
}

int longpole_at_execv(const char *path, char *const *argv);
AT int longpole_at_execv(const char *path, char *const *argv)
{
	longpole_target_flush_all();
	return execv(path, argv);
}

int longpole_at_execvp(const char *file, char *const *argv);
AT int longpole_at_execvp(const char *file, char *const *argv)
{
	longpole_target_flush_all();
	return execvp(file, argv);
}

/* ---- processes: what orders them (memory/stream/processes.c) ---------------------------------------- */

/* (In the child nothing: its stream is another one.) */
static void process_made(pid_t child, uint64_t before)
{
	int saved = errno;
	if (child > 0)
		longpole_target_call(CALL_process_create, before, before, (uint64_t)child, 0, 0, 0);
	errno = saved;
}

static void process_ended(pid_t child, const int *status, uint64_t before)
{
	int saved = errno;
	if (child > 0 && (!status || WIFEXITED(*status) || WIFSIGNALED(*status)))
		longpole_target_call(
			CALL_process_wait, before, target_call_ticks(), (uint64_t)child, 0, 0, 0);
	errno = saved;
}

TARGET_AFTER(pid_t, fork, (void), (), process_made(result, before))
TARGET_AFTER(pid_t, wait, (int *status), (status), process_ended(result, status, before))
TARGET_AFTER(pid_t, waitpid, (pid_t which, int *status, int options), (which, status, options),
	process_ended(result, status, before))

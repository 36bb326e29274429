/* SPDX-License-Identifier: Apache-2.0 */
/* io.c - calls of the kernel about one descriptor. */
#include "preload/preload.h"
#include "preload/real.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <termios.h>

enum { LASTED_TICKS = 50000 }; /* about 20 us: then a call path is worth its price */

/* ---- the two records ------------------------------------------------------------------------- */

void preload_io_begin_on(
	struct preload_io *io, unsigned op, uint64_t object, uint64_t nr_bytes, uint64_t site)
{
	*io = (struct preload_io){
		.object = object, .op = op, .site = site, .open = true, .begin_tsc = preload_now()};
	PRELOAD_RECORD_AT(io->begin_tsc, io_begin, object, op, nr_bytes, site);
}

void preload_io_begin(struct preload_io *io, unsigned op, int fd, uint64_t nr_bytes, uint64_t site)
{
	uint64_t object = preload_fd_object(fd);
	io->open = false;
	if (object)
		preload_io_begin_on(io, op, object, nr_bytes, site);
}

void preload_io_end(struct preload_io *io, int64_t result)
{
	struct preload_stack stack; /* not all of it set to 0 for every call */
	if (!io->open)
		return;
	uint64_t tsc = preload_now();
	stack.nr_frames = 0;
	io->open = false;
	int saved_errno = errno;
	if (result < 0)
		result = -saved_errno;
	if (tsc - io->begin_tsc > LASTED_TICKS)
		preload_stack_take(&stack, io->site);
	preload_record_stack_at(tsc, PRELOAD_io_end,
		PRELOAD_WORDS(io->object, io->op, (uint64_t)result, 0), 4, &stack);
	errno = saved_errno;
}

void preload_io_past(unsigned op, uint64_t object, uint64_t nr_bytes, uint64_t site,
	uint64_t begin_tsc, int64_t result)
{
	struct preload_io io = {.object = object,
		.begin_tsc = begin_tsc,
		.site = site,
		.op = op,
		.open = object != 0};
	if (io.open)
		PRELOAD_RECORD_AT(begin_tsc, io_begin, io.object, op, nr_bytes, site);
	preload_io_end(&io, result);
}

void preload_io_lasted(unsigned op, uint64_t site, uint64_t begin_tsc, int64_t result)
{
	if (preload_now() - begin_tsc <= LASTED_TICKS)
		return;
	struct preload_io io = {.begin_tsc = begin_tsc, .site = site, .op = op, .open = true};
	PRELOAD_RECORD_AT(begin_tsc, io_begin, 0, op, 0, site);
	preload_io_end(&io, result);
}

/* ---- plain calls ----------------------------------------------------------------------------- */

/* IO: name, op, expression for bytes asked for, result type, parameters (fd among them), arguments.
 */
#define IO(name, op, nr_bytes, result_type, parameters, arguments)                                 \
	PRELOAD_EXPORT result_type name parameters                                                 \
	{                                                                                          \
		if (!preload_active())                                                             \
			return PRELOAD_REAL(name) arguments;                                       \
		struct preload_io io;                                                              \
		preload_io_begin(&io, TRACE_IO_##op, fd, (uint64_t)(nr_bytes), PRELOAD_SITE);      \
		result_type result = PRELOAD_REAL(name) arguments;                                 \
		preload_io_end(&io, result);                                                       \
		return result;                                                                     \
	}

/* The kernel looks at no more pieces than IOV_MAX: a caller that names more of them may not have
 * them. */
static uint64_t io_sum(const struct iovec *vector, size_t n)
{
	uint64_t nr_bytes = 0;
	if (!preload_is_address(vector) || n > IOV_MAX)
		return 0;
	for (size_t i = 0; i < n; i++)
		nr_bytes += vector[i].iov_len;
	return nr_bytes;
}

static uint64_t sum_message(const struct msghdr *message)
{
	return preload_is_address(message) ? io_sum(message->msg_iov, message->msg_iovlen) : 0;
}

IO(read, read, n, ssize_t, (int fd, void *buffer, size_t n), (fd, buffer, n))
IO(write, write, n, ssize_t, (int fd, const void *buffer, size_t n), (fd, buffer, n))
IO(pread, read, n, ssize_t, (int fd, void *buffer, size_t n, off_t at), (fd, buffer, n, at))
IO(pwrite, write, n, ssize_t, (int fd, const void *buffer, size_t n, off_t at), (fd, buffer, n, at))
IO(readv, read, io_sum(vector, (size_t)n), ssize_t, (int fd, const struct iovec *vector, int n),
	(fd, vector, n))
IO(writev, write, io_sum(vector, (size_t)n), ssize_t, (int fd, const struct iovec *vector, int n),
	(fd, vector, n))
IO(preadv, read, io_sum(vector, (size_t)n), ssize_t,
	(int fd, const struct iovec *vector, int n, off_t at), (fd, vector, n, at))
IO(pwritev, write, io_sum(vector, (size_t)n), ssize_t,
	(int fd, const struct iovec *vector, int n, off_t at), (fd, vector, n, at))
IO(preadv2, read, io_sum(vector, (size_t)n), ssize_t,
	(int fd, const struct iovec *vector, int n, off_t at, int flags),
	(fd, vector, n, at, flags))
IO(pwritev2, write, io_sum(vector, (size_t)n), ssize_t,
	(int fd, const struct iovec *vector, int n, off_t at, int flags),
	(fd, vector, n, at, flags))
IO(send, write, n, ssize_t, (int fd, const void *buffer, size_t n, int flags),
	(fd, buffer, n, flags))
IO(sendto, write, n, ssize_t,
	(int fd, const void *buffer, size_t n, int flags, const struct sockaddr *to,
		socklen_t length),
	(fd, buffer, n, flags, to, length))
IO(sendmsg, write, sum_message(message), ssize_t, (int fd, const struct msghdr *message, int flags),
	(fd, message, flags))
IO(vmsplice, write, io_sum(vector, n), ssize_t,
	(int fd, const struct iovec *vector, size_t n, unsigned flags), (fd, vector, n, flags))
IO(fsync, sync, 0, int, (int fd), (fd))
IO(fdatasync, sync, 0, int, (int fd), (fd))
IO(syncfs, sync, 0, int, (int fd), (fd))
IO(sync_file_range, sync, n, int, (int fd, off_t at, off_t n, unsigned flags), (fd, at, n, flags))
IO(tcdrain, drain, 0, int, (int fd), (fd))
IO(ftruncate, truncate, n, int, (int fd, off_t n), (fd, n))
IO(fallocate, allocate, n, int, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))

PRELOAD_ALIAS(__read, read)
PRELOAD_ALIAS(__write, write)
PRELOAD_ALIAS(pread64, pread)
PRELOAD_ALIAS(__pread64, pread)
PRELOAD_ALIAS(pwrite64, pwrite)
PRELOAD_ALIAS(__pwrite64, pwrite)
PRELOAD_ALIAS(preadv64, preadv)
PRELOAD_ALIAS(pwritev64, pwritev)
PRELOAD_ALIAS(preadv64v2, preadv2)
PRELOAD_ALIAS(pwritev64v2, pwritev2)
PRELOAD_ALIAS(__send, send)
PRELOAD_ALIAS(ftruncate64, ftruncate)
PRELOAD_ALIAS(fallocate64, fallocate)

/* It says by its result, and not by errno, what went wrong. */
PRELOAD_EXPORT int posix_fallocate(int fd, off_t at, off_t n)
{
	if (!preload_active())
		return PRELOAD_REAL(posix_fallocate)(fd, at, n);
	struct preload_io io;
	preload_io_begin(&io, TRACE_IO_allocate, fd, (uint64_t)n, PRELOAD_SITE);
	int result = PRELOAD_REAL(posix_fallocate)(fd, at, n);
	int saved_errno = errno;
	errno = result;
	preload_io_end(&io, result ? -1 : 0);
	errno = saved_errno;
	return result;
}
PRELOAD_ALIAS(posix_fallocate64, posix_fallocate)

/* Fortified: abort when the buffer is too small for n. */
ssize_t __read_chk(int fd, void *buffer, size_t n, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t n, off_t at, size_t room);
IO(__read_chk, read, n, ssize_t, (int fd, void *buffer, size_t n, size_t room),
	(fd, buffer, n, room))
IO(__pread_chk, read, n, ssize_t, (int fd, void *buffer, size_t n, off_t at, size_t room),
	(fd, buffer, n, at, room))
PRELOAD_ALIAS(__pread64_chk, __pread_chk)

/* ---- receiving: what is only looked at stays where it is ------------------------------------- */

static void peek_begin(struct preload_io *io, int fd, uint64_t site)
{
	io->object = preload_fd_object(fd);
	io->open = io->object != 0;
	if (io->open)
		PRELOAD_RECORD(poll_begin, 1, site);
}

static void peek_end(struct preload_io *io, int64_t result)
{
	int saved_errno = errno;
	if (io->open)
		PRELOAD_RECORD(poll_end, result < 0 ? 0 : io->object, 0,
			(uint64_t)(result < 0 ? -saved_errno : 1), 0);
	io->open = false;
	errno = saved_errno;
}

static void receive_begin(
	struct preload_io *io, int fd, uint64_t nr_bytes, int flags, uint64_t site)
{
	if (flags & MSG_PEEK)
		peek_begin(io, fd, site);
	else
		preload_io_begin(io, TRACE_IO_read, fd, nr_bytes, site);
	io->peeks = flags & MSG_PEEK;
}

static void receive_end(struct preload_io *io, int64_t result)
{
	if (io->peeks)
		peek_end(io, result);
	else
		preload_io_end(io, result);
}

#define RECEIVE(name, nr_bytes, parameters, arguments)                                             \
	PRELOAD_EXPORT ssize_t name parameters                                                     \
	{                                                                                          \
		if (!preload_active())                                                             \
			return PRELOAD_REAL(name) arguments;                                       \
		struct preload_io io;                                                              \
		receive_begin(&io, fd, nr_bytes, flags, PRELOAD_SITE);                             \
		ssize_t result = PRELOAD_REAL(name) arguments;                                     \
		receive_end(&io, result);                                                          \
		return result;                                                                     \
	}
ssize_t __recv_chk(int fd, void *buffer, size_t n, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buffer, size_t n, size_t room, int flags,
	struct sockaddr *from, socklen_t *length);
RECEIVE(recv, n, (int fd, void *buffer, size_t n, int flags), (fd, buffer, n, flags))
RECEIVE(recvfrom, n,
	(int fd, void *buffer, size_t n, int flags, struct sockaddr *from, socklen_t *length),
	(fd, buffer, n, flags, from, length))
RECEIVE(recvmsg, sum_message(message), (int fd, struct msghdr *message, int flags),
	(fd, message, flags))
RECEIVE(__recv_chk, n, (int fd, void *buffer, size_t n, size_t room, int flags),
	(fd, buffer, n, room, flags))
RECEIVE(__recvfrom_chk, n,
	(int fd, void *buffer, size_t n, size_t room, int flags, struct sockaddr *from,
		socklen_t *length),
	(fd, buffer, n, room, flags, from, length))

/* Several messages: their number is returned, their bytes are in the headers. */
static uint64_t sum_messages(const struct mmsghdr *messages, unsigned n, bool moved)
{
	uint64_t nr_bytes = 0;
	if (!preload_is_address(messages))
		return 0;
	for (unsigned i = 0; i < n && i < IOV_MAX; i++) /* the kernel stops there, too */
		nr_bytes += moved ? messages[i].msg_len : sum_message(&messages[i].msg_hdr);
	return nr_bytes;
}

#define MESSAGES(name, op, parameters, arguments)                                                  \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		if (!preload_active())                                                             \
			return PRELOAD_REAL(name) arguments;                                       \
		struct preload_io io;                                                              \
		preload_io_begin(                                                                  \
			&io, TRACE_IO_##op, fd, sum_messages(messages, n, false), PRELOAD_SITE);   \
		int result = PRELOAD_REAL(name) arguments;                                         \
		preload_io_end(&io,                                                                \
			result < 0 ? -1                                                            \
				   : (int64_t)sum_messages(messages, (unsigned)result, true));     \
		return result;                                                                     \
	}
MESSAGES(recvmmsg, read,
	(int fd, struct mmsghdr *messages, unsigned n, int flags, struct timespec *limit),
	(fd, messages, n, flags, limit))
MESSAGES(sendmmsg, write, (int fd, struct mmsghdr *messages, unsigned n, int flags),
	(fd, messages, n, flags))

/* ---- from one descriptor to another ---------------------------------------------------------- */

/*
 * One call, two descriptors; the graph wants one after the other. The call's time is given to the
 * side that can make it wait: the source, unless that is a file.
 */
struct transfer {
	struct preload_io io;
	int from, to;
	uint64_t nr_bytes, site;
	bool source_waits;
};

static void transfer_begin(struct transfer *t, int from, int to, uint64_t nr_bytes, uint64_t site)
{
	*t = (struct transfer){.from = from, .to = to, .nr_bytes = nr_bytes, .site = site};
	t->source_waits = preload_object_type(preload_fd_object(from)) != TRACE_OBJECT_file;
	preload_io_begin(&t->io, t->source_waits ? TRACE_IO_read : TRACE_IO_write,
		t->source_waits ? from : to, nr_bytes, site);
}

static void transfer_end(struct transfer *t, int64_t result)
{
	preload_io_end(&t->io, result);
	if (result > 0)
		preload_io_past(t->source_waits ? TRACE_IO_write : TRACE_IO_read,
			preload_fd_object(t->source_waits ? t->to : t->from), (uint64_t)result,
			t->site, preload_now(), result);
}

#define TRANSFER(name, parameters, arguments)                                                      \
	PRELOAD_EXPORT ssize_t name parameters                                                     \
	{                                                                                          \
		if (!preload_active())                                                             \
			return PRELOAD_REAL(name) arguments;                                       \
		struct transfer t;                                                                 \
		transfer_begin(&t, from, to, n, PRELOAD_SITE);                                     \
		ssize_t result = PRELOAD_REAL(name) arguments;                                     \
		transfer_end(&t, result);                                                          \
		return result;                                                                     \
	}
TRANSFER(sendfile, (int to, int from, off_t *at, size_t n), (to, from, at, n))
PRELOAD_ALIAS(sendfile64, sendfile)
TRANSFER(splice, (int from, off_t *from_at, int to, off_t *to_at, size_t n, unsigned flags),
	(from, from_at, to, to_at, n, flags))
TRANSFER(copy_file_range,
	(int from, off_t *from_at, int to, off_t *to_at, size_t n, unsigned flags),
	(from, from_at, to, to_at, n, flags))

/* tee() leaves the data in the source. */
IO(tee, write, n, ssize_t, (int from, int fd, size_t n, unsigned flags), (from, fd, n, flags))

/* ---- connections ----------------------------------------------------------------------------- */

#define ACCEPT(name, parameters, arguments)                                                        \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		if (!preload_active())                                                             \
			return PRELOAD_REAL(name) arguments;                                       \
		struct preload_io io;                                                              \
		preload_io_begin(&io, TRACE_IO_accept, fd, 0, PRELOAD_SITE);                       \
		int result = PRELOAD_REAL(name) arguments;                                         \
		preload_io_end(&io, result < 0 ? -1 : 0);                                          \
		preload_fd_forget(result);                                                         \
		return result;                                                                     \
	}
ACCEPT(accept, (int fd, struct sockaddr *from, socklen_t *length), (fd, from, length))
ACCEPT(accept4, (int fd, struct sockaddr *from, socklen_t *length, int flags),
	(fd, from, length, flags))

/* Described again as soon as it has got its peer, so that its listener is known. */
PRELOAD_EXPORT int connect(int fd, const struct sockaddr *to, socklen_t length)
{
	if (!preload_active())
		return PRELOAD_REAL(connect)(fd, to, length);
	struct preload_io io;
	preload_io_begin(&io, TRACE_IO_connect, fd, 0, PRELOAD_SITE);
	int result = PRELOAD_REAL(connect)(fd, to, length);
	preload_io_end(&io, result);
	if (result == 0)
		preload_fd_object(fd);
	return result;
}
PRELOAD_ALIAS(__connect, connect)

/* ---- file locks ------------------------------------------------------------------------------ */

static void lock_end(struct preload_io *io, int fd, int result)
{
	unsigned op = io->op;
	bool known = io->open;
	preload_io_end(io, result);
	if (known && result == 0)
		preload_fd_lock(fd, op == TRACE_IO_lock);
}

#define FILE_LOCK(name, asks, gives_up, parameters, arguments)                                     \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		if ((asks) || !preload_active())                                                   \
			return PRELOAD_REAL(name) arguments;                                       \
		struct preload_io io;                                                              \
		preload_io_begin(                                                                  \
			&io, (gives_up) ? TRACE_IO_unlock : TRACE_IO_lock, fd, 0, PRELOAD_SITE);   \
		int result = PRELOAD_REAL(name) arguments;                                         \
		lock_end(&io, fd, result);                                                         \
		return result;                                                                     \
	}
FILE_LOCK(flock, false, operation &LOCK_UN, (int fd, int operation), (fd, operation))
FILE_LOCK(lockf, command == F_TEST, command == F_ULOCK, (int fd, int command, off_t n),
	(fd, command, n))
PRELOAD_ALIAS(lockf64, lockf)

/* Which of the two it was the program's memory says, which is there if the call succeeded. */
static void past_lock(int fd, const struct flock *lock, uint64_t begin_tsc, uint64_t site)
{
	bool gives_up = lock->l_type == F_UNLCK;
	preload_io_past(gives_up ? TRACE_IO_unlock : TRACE_IO_lock, preload_fd_object(fd), 0, site,
		begin_tsc, 0);
	preload_fd_lock(fd, !gives_up);
}

/* ---- fcntl ----------------------------------------------------------------------------------- */

PRELOAD_EXPORT int fcntl(int fd, int command, ...)
{
	va_list list;
	va_start(list, command);
	void *argument = va_arg(list, void *);
	va_end(list);
	if (command == F_SETLKW || command == F_OFD_SETLKW) {
		struct preload_io io = {.open = false};
		if (preload_active())
			preload_io_begin(&io, TRACE_IO_lock, fd, 0, PRELOAD_SITE);
		int result = PRELOAD_REAL(fcntl)(fd, command, argument);
		lock_end(&io, fd, result);
		if (result == 0 && ((const struct flock *)argument)->l_type == F_UNLCK &&
			preload_active())
			past_lock(fd, argument, io.begin_tsc, PRELOAD_SITE);
		return result;
	}
	uint64_t begin_tsc = preload_now_if(preload_active());
	int result = PRELOAD_REAL(fcntl)(fd, command, argument);
	if ((command == F_SETLK || command == F_OFD_SETLK) && result == 0 && preload_active())
		past_lock(fd, argument, begin_tsc, PRELOAD_SITE);
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		preload_fd_made_like(result, fd);
	return result;
}
PRELOAD_ALIAS(fcntl64, fcntl)
PRELOAD_ALIAS(__fcntl, fcntl)

/* ---- eventfd --------------------------------------------------------------------------------- */

#define EVENT(name, op, parameters, arguments)                                                     \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		if (!preload_active())                                                             \
			return PRELOAD_REAL(name) arguments;                                       \
		struct preload_io io;                                                              \
		preload_io_begin(&io, TRACE_IO_##op, fd, sizeof(eventfd_t), PRELOAD_SITE);         \
		int result = PRELOAD_REAL(name) arguments;                                         \
		preload_io_end(&io, result < 0 ? -1 : (int64_t)sizeof(eventfd_t));                 \
		return result;                                                                     \
	}
EVENT(eventfd_read, read, (int fd, eventfd_t *value), (fd, value))
EVENT(eventfd_write, write, (int fd, eventfd_t value), (fd, value))

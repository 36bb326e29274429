/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd.c - what a descriptor is: looked up once in its life, then remembered in a table.
 *
 * An entry is 0 or an object word (incarnation | type << 48). It is dropped by whatever closes or
 * makes a descriptor through a name that we wrap; what is made says how little must be asked at its
 * end, should it never be used. Descriptors beyond the table are looked up at every use.
 */
#include "preload/preload.h"
#include "preload/real.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <termios.h>

#define UNCONNECTED (1ull << 62) /* in an entry: a stream socket without a peer yet */
#define LOCKED      (1ull << 61) /* ... : a file that is locked by this descriptor */
/* These also without an object, of what was not looked at yet: */
#define ENDLESS     (1ull << 60) /* nobody waits for its end */
#define NO_SOCKET   (1ull << 59) /* it was opened by a name */
#define ENTRY_FLAGS (UNCONNECTED | LOCKED | ENDLESS | NO_SOCKET)

enum { NAME_MAX_BYTES = 512, EVENTFD_INFO_BYTES = 256 };
enum { MQUEUE_FILE_SYSTEM = 0x19800202 }; /* the kernel's MQUEUE_MAGIC */

struct description {
	struct ring_descriptor words;
	char name[NAME_MAX_BYTES];
	bool unconnected;
};

/* ---- text without stdio ---------------------------------------------------------------------- */

struct text {
	char *at, *end;
};

static void fd_add_text(struct text *text, const char *s, size_t n)
{
	for (size_t i = 0; i < n && text->at < text->end; i++)
		*text->at++ = s[i];
}

static void fd_add_string(struct text *text, const char *s)
{
	fd_add_text(text, s, strlen(s));
}

static void fd_add_number(struct text *text, uint64_t n, unsigned base)
{
	char digits[24];
	size_t i = sizeof digits;
	do
		digits[--i] = "0123456789abcdef"[n % base];
	while (n /= base);
	fd_add_text(text, digits + i, sizeof digits - i);
}

static void add_ipv4(struct text *text, const unsigned char *address)
{
	for (int i = 0; i < 4; i++) {
		if (i)
			fd_add_string(text, ".");
		fd_add_number(text, address[i], 10);
	}
}

/* Not shortened, but mapped IPv4 as IPv4: so the two ends of a connection say the same. */
static void add_ipv6(struct text *text, const struct in6_addr *address)
{
	if (IN6_IS_ADDR_V4MAPPED(address)) {
		add_ipv4(text, address->s6_addr + 12);
		return;
	}
	fd_add_string(text, "[");
	for (int i = 0; i < 16; i += 2) {
		if (i)
			fd_add_string(text, ":");
		fd_add_number(
			text, (unsigned)address->s6_addr[i] << 8 | address->s6_addr[i + 1], 16);
	}
	fd_add_string(text, "]");
}

/* As /proc/net/unix and ss show it, but without the zeros that fill it up: a name is a text. */
static void add_abstract(struct text *text, const char *name, size_t n)
{
	while (n > 1 && !name[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		fd_add_text(text, name[i] ? name + i : "@", 1);
}

union address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
	struct sockaddr_un local;
};

static void fd_add_address(struct text *text, const union address *address, socklen_t nr_bytes)
{
	fd_add_string(text, " ");
	if (nr_bytes >= sizeof address->ipv4 && address->any.sa_family == AF_INET) {
		add_ipv4(text, (const unsigned char *)&address->ipv4.sin_addr);
		fd_add_string(text, ":");
		fd_add_number(text, ntohs(address->ipv4.sin_port), 10);
	} else if (nr_bytes >= sizeof address->ipv6 && address->any.sa_family == AF_INET6) {
		add_ipv6(text, &address->ipv6.sin6_addr);
		fd_add_string(text, ":");
		fd_add_number(text, ntohs(address->ipv6.sin6_port), 10);
	} else if (nr_bytes > sizeof(sa_family_t) && address->any.sa_family == AF_UNIX) {
		size_t n = nr_bytes - offsetof(struct sockaddr_un, sun_path);
		const char *path = address->local.sun_path;
		if (path[0])
			fd_add_text(text, path, strnlen(path, n));
		else
			add_abstract(text, path, n);
	} else {
		fd_add_string(text, "-");
	}
}

/* ---- looking --------------------------------------------------------------------------------- */

static bool socket_address(long call, int fd, union address *address, socklen_t *nr_bytes)
{
	*nr_bytes = sizeof *address;
	memset(address, 0, sizeof *address);
	return preload_syscall(call, fd, (long)address, (long)nr_bytes, 0, 0, 0) == 0;
}

static int fd_socket_option(int fd, int option)
{
	int value = 0;
	socklen_t nr_bytes = sizeof value;
	if (preload_syscall(
		    SYS_getsockopt, fd, SOL_SOCKET, option, (long)&value, (long)&nr_bytes, 0) != 0)
		return 0;
	return value;
}

static void fd_describe_socket(struct description *d, int fd)
{
	struct text text = {d->name, d->name + sizeof d->name};
	union address own, peer;
	socklen_t own_bytes, peer_bytes;
	bool stream = fd_socket_option(fd, SO_TYPE) == SOCK_STREAM;
	bool listens = fd_socket_option(fd, SO_ACCEPTCONN) != 0;
	int family = fd_socket_option(fd, SO_DOMAIN);
	d->words.type = listens ? TRACE_OBJECT_listener : TRACE_OBJECT_socket;
	d->words.capacity_bytes = (uint64_t)fd_socket_option(fd, SO_SNDBUF);
	fd_add_string(&text, family == AF_UNIX    ? "unix"
			     : stream             ? "tcp"
			     : family == AF_INET  ? "udp"
			     : family == AF_INET6 ? "udp"
						  : "socket");
	if (!socket_address(SYS_getsockname, fd, &own, &own_bytes))
		own_bytes = 0;
	if (!socket_address(SYS_getpeername, fd, &peer, &peer_bytes)) {
		peer_bytes = 0;
		d->unconnected = stream && !listens;
	}
	fd_add_address(&text, &own, own_bytes);
	fd_add_address(&text, &peer, peer_bytes);
	d->words.name_bytes = (uint64_t)(text.at - d->name);
}

int preload_fd_info(int fd)
{
	char path[40];
	struct text text = {path, path + sizeof path - 1};
	fd_add_string(&text, "/proc/self/fdinfo/");
	fd_add_number(&text, (uint64_t)fd, 10);
	*text.at = '\0';
	return (int)preload_syscall(
		SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

/* All eventfds share one inode; the kernel's own number for them is in fdinfo. */
static uint64_t eventfd_number(int fd)
{
	static const char label[] = "eventfd-id:";
	char info[EVENTFD_INFO_BYTES + 1];
	uint64_t number = 0;
	const int file = preload_fd_info(fd);
	if (file < 0)
		return 0;
	long n = preload_syscall(SYS_read, file, (long)info, EVENTFD_INFO_BYTES, 0, 0, 0);
	preload_syscall(SYS_close, file, 0, 0, 0, 0, 0);
	info[n > 0 ? n : 0] = '\0';
	const char *at = strstr(info, label);
	if (!at)
		return 0;
	for (at += strlen(label); *at == ' ' || *at == '\t';)
		at++;
	for (; *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	return number;
}

static void read_link(struct description *d, int fd)
{
	char path[40];
	struct text text = {path, path + sizeof path - 1};
	fd_add_string(&text, "/proc/self/fd/");
	fd_add_number(&text, (uint64_t)fd, 10);
	*text.at = '\0';
	long n = preload_syscall(
		SYS_readlinkat, AT_FDCWD, (long)path, (long)d->name, sizeof d->name - 1, 0, 0);
	d->words.name_bytes = n > 0 ? (uint64_t)n : 0;
	d->name[d->words.name_bytes] = '\0';
}

static void describe_anonymous(struct description *d, int fd)
{
	static const struct {
		const char *name;
		unsigned type;
	} types[] = {
		{"anon_inode:[eventfd]", TRACE_OBJECT_eventfd},
		{"anon_inode:[eventpoll]", TRACE_OBJECT_epoll},
		{"anon_inode:[timerfd]", TRACE_OBJECT_timerfd},
	};
	d->words.type = TRACE_OBJECT_other;
	read_link(d, fd);
	for (size_t i = 0; i < PRELOAD_COUNT(types); i++)
		if (strcmp(d->name, types[i].name) == 0)
			d->words.type = types[i].type;
	if (d->words.type == TRACE_OBJECT_eventfd)
		d->words.ino = eventfd_number(fd);
}

/* A file of its own file system, called as its queue is. (All of them say that they have that many
 * bytes: no other file is asked.) */
static void describe_message_queue(struct description *d, int fd, off_t nr_bytes)
{
	enum { FILE_BYTES = 80 };
	static const char removed[] = " (deleted)";
	const size_t nr_removed = sizeof removed - 1;
	struct statfs system;
	struct mq_attr queue;
	if (nr_bytes != FILE_BYTES ||
		preload_syscall(SYS_fstatfs, fd, (long)&system, 0, 0, 0, 0) != 0 ||
		system.f_type != MQUEUE_FILE_SYSTEM ||
		preload_syscall(SYS_mq_getsetattr, fd, 0, (long)&queue, 0, 0, 0) != 0)
		return;
	size_t n = d->words.name_bytes;
	if (n > nr_removed && memcmp(d->name + n - nr_removed, removed, nr_removed) == 0)
		d->words.name_bytes = n - nr_removed;
	d->words.type = TRACE_OBJECT_message_queue;
	d->words.capacity_bytes = (uint64_t)queue.mq_maxmsg;
}

static bool fd_describe(struct description *d, int fd)
{
	struct stat file;
	struct termios terminal;
	memset(d, 0, sizeof *d);
	if (preload_syscall(SYS_fstat, fd, (long)&file, 0, 0, 0, 0) != 0)
		return false;
	d->words.fd = (uint64_t)fd;
	d->words.dev = file.st_dev;
	d->words.ino = file.st_ino;
	switch (file.st_mode & S_IFMT) {
	case S_IFIFO: {
		long size = preload_syscall(SYS_fcntl, fd, F_GETPIPE_SZ, 0, 0, 0, 0);
		d->words.type = TRACE_OBJECT_pipe;
		d->words.capacity_bytes = size > 0 ? (uint64_t)size : 0;
		break;
	}
	case S_IFSOCK:
		fd_describe_socket(d, fd);
		break;
	case S_IFCHR:
		read_link(d, fd);
		d->words.type =
			preload_syscall(SYS_ioctl, fd, TCGETS, (long)&terminal, 0, 0, 0) == 0
				? TRACE_OBJECT_terminal
				: TRACE_OBJECT_other;
		break;
	case 0:
		describe_anonymous(d, fd);
		break;
	default:
		read_link(d, fd);
		d->words.type = TRACE_OBJECT_file;
		describe_message_queue(d, fd, file.st_size);
	}
	return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

static uint64_t record_description(struct description *d)
{
	preload_record_text(RING_descriptor, (const uint64_t *)&d->words,
		sizeof d->words / sizeof(uint64_t), d->name, d->words.name_bytes);
	return d->words.incarnation | d->words.type << RING_OBJECT_TYPE_SHIFT |
	       (d->unconnected ? UNCONNECTED : 0);
}

static uint64_t next_incarnation(void)
{
	return __atomic_add_fetch(&preload_fresh.next_incarnation, 1, __ATOMIC_RELAXED) &
	       RING_OBJECT_ADDRESS;
}

/* The table reaches beyond that one. */
static void extend_table(int fd)
{
	uint32_t end = __atomic_load_n(&preload_fresh.fd_end, __ATOMIC_RELAXED);
	while (end <= (uint32_t)fd &&
		!__atomic_compare_exchange_n(&preload_fresh.fd_end, &end, (uint32_t)fd + 1, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
}

static PRELOAD_COLD uint64_t fd_look(int fd, uint64_t known, uint64_t pair_ino)
{
	struct description d;
	uint64_t *entry = fd < PRELOAD_FDS ? &preload_fresh.fd[fd] : NULL;
	uint64_t incarnation = known & RING_OBJECT_ADDRESS;
	if (!fd_describe(&d, fd))
		return 0;
	d.words.pair_ino = pair_ino;
	d.words.incarnation = incarnation ? incarnation : next_incarnation();
	/* introduced before others can find it; two threads may do so, then one incarnation stays
	 * unused */
	uint64_t object = record_description(&d), expected = known;
	if (entry)
		extend_table(fd);
	if (entry &&
		!__atomic_compare_exchange_n(
			entry, &expected, object, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED) &&
		expected & RING_OBJECT_ADDRESS)
		object = expected;
	return object & ~ENTRY_FLAGS;
}

uint64_t preload_fd_object(int fd)
{
	union address peer;
	socklen_t peer_bytes;
	if (fd < 0)
		return 0;
	if (fd >= PRELOAD_FDS)
		return fd_look(fd, 0, 0);
	uint64_t object = __atomic_load_n(&preload_fresh.fd[fd], __ATOMIC_ACQUIRE);
	if (PRELOAD_RARE(!(object & RING_OBJECT_ADDRESS)))
		return fd_look(fd, object, 0);
	if (PRELOAD_RARE(object & UNCONNECTED) &&
		socket_address(SYS_getpeername, fd, &peer, &peer_bytes))
		return fd_look(fd, object, 0);
	return object & ~ENTRY_FLAGS;
}

/* Of each name the last is remembered: the hash above, the incarnation below. */
uint64_t preload_path_object(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
	size_t n = 0;
	for (; path[n]; n++)
		hash = (hash ^ (unsigned char)path[n]) * 0x100000001b3u;
	uint64_t *entry = &preload_fresh.path[hash % PRELOAD_PATHS];
	uint64_t known = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
	if (known && known >> 32 == hash >> 32)
		return (known & UINT32_MAX) | (uint64_t)TRACE_OBJECT_file << RING_OBJECT_TYPE_SHIFT;
	struct description d = {
		.words = {.type = TRACE_OBJECT_file, .incarnation = next_incarnation()}};
	struct text text = {d.name, d.name + sizeof d.name};
	fd_add_text(&text, path, n);
	d.words.name_bytes = (uint64_t)(text.at - d.name);
	uint64_t object = record_description(&d);
	if (d.words.incarnation <= UINT32_MAX)
		__atomic_store_n(entry, hash >> 32 << 32 | d.words.incarnation, __ATOMIC_RELEASE);
	return object;
}

void preload_fd_forget(int fd)
{
	if (fd >= 0 && fd < PRELOAD_FDS && preload_fresh.fd[fd] && preload_active())
		__atomic_store_n(&preload_fresh.fd[fd], 0, __ATOMIC_RELEASE);
}

static bool has_other_end(uint64_t object)
{
	unsigned type = preload_object_type(object);
	return type == TRACE_OBJECT_pipe || type == TRACE_OBJECT_socket;
}

/* fd was just made: flags of its entry, 0: nothing is known of it. */
static void begin_entry(int fd, uint64_t flags)
{
	if (fd < 0 || fd >= PRELOAD_FDS || !preload_active())
		return;
	if (flags)
		extend_table(fd);
	if (preload_fresh.fd[fd] != flags)
		__atomic_store_n(&preload_fresh.fd[fd], flags, __ATOMIC_RELEASE);
}

void preload_fd_made_like(int fd, int from)
{
	uint64_t entry = from >= 0 && from < PRELOAD_FDS ? preload_fresh.fd[from] : 0;
	uint64_t flags = entry & (ENDLESS | NO_SOCKET);
	if (entry & RING_OBJECT_ADDRESS)
		flags = has_other_end(entry) ? 0 : ENDLESS;
	begin_entry(fd, flags);
}

/* Its end gives the lock up, if nothing does before. (A dup of it may keep it: not known here.) */
void preload_fd_lock(int fd, bool locked)
{
	uint64_t *entry = fd >= 0 && fd < PRELOAD_FDS ? &preload_fresh.fd[fd] : NULL;
	if (!entry || !__atomic_load_n(entry, __ATOMIC_RELAXED))
		return;
	if (locked)
		__atomic_fetch_or(entry, LOCKED, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(entry, ~LOCKED, __ATOMIC_RELAXED);
}

static void introduce_pair(const int fds[2])
{
	struct stat file[2];
	for (int i = 0; i < 2; i++)
		if (preload_syscall(SYS_fstat, fds[i], (long)&file[i], 0, 0, 0, 0) != 0)
			return;
	for (int i = 0; i < 2; i++)
		fd_look(fds[i], 0, file[1 - i].st_ino);
}

/* ---- functions that end a descriptor --------------------------------------------------------- */

enum { END_READ = 1, END_WRITTEN = 2, END_LOCK = 4 }; /* io_close.ends */

/* Asks the kernel what somebody may wait for the end of: a pipe or socket. */
static bool ask_other_end(int fd, uint64_t entry)
{
	struct stat file = {0};
	struct ring_head *head = preload_fresh.head;
	if (head)
		__atomic_fetch_add(&head->nr_ends_asked, 1, __ATOMIC_RELAXED);
	if (entry & NO_SOCKET) /* (less than half the price) */
		return preload_syscall(SYS_fcntl, fd, F_GETPIPE_SZ, 0, 0, 0, 0) > 0;
	return preload_syscall(SYS_fstat, fd, (long)&file, 0, 0, 0, 0) == 0 &&
	       (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
}

/* A descriptor that was never used here, as a fork's child has them, may still be the last one that
 * could write. */
struct preload_close preload_fd_look_at_end(int fd)
{
	struct preload_close end = {0};
	if (fd < 0 || !preload_active())
		return end;
	uint64_t entry = fd < PRELOAD_FDS ? preload_fresh.fd[fd] : 0;
	uint64_t object = entry & ~ENTRY_FLAGS;
	if (entry & LOCKED)
		return (struct preload_close){.object = object, .ends = END_LOCK};
	if (object ? !has_other_end(object) : entry & ENDLESS)
		return end;
	if (!object) {
		if (!ask_other_end(fd, entry))
			return end;
		object = preload_fd_object(fd);
		if (!has_other_end(object)) /* a listener */
			return end;
	}
	end.object = object;
	end.ends = END_READ | END_WRITTEN;
	if (preload_object_type(object) == TRACE_OBJECT_pipe) {
		long mode = preload_syscall(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0) & O_ACCMODE;
		end.ends = mode == O_RDONLY   ? END_READ
			   : mode == O_WRONLY ? END_WRITTEN
					      : END_READ | END_WRITTEN;
	}
	return end;
}

void preload_record_close(const struct preload_close *end, uint64_t tsc, uint64_t site)
{
	if (end->object)
		PRELOAD_RECORD_AT(tsc, io_close, end->object, end->ends, site);
}

void preload_fd_close(int fd, uint64_t site)
{
	struct preload_close end = preload_fd_look_at_end(fd);
	if (end.object)
		preload_record_close(&end, preload_now(), site);
	preload_fd_forget(fd);
}

/* Those that we know: of 65536 possible ones we do not ask the kernel. */
static void close_known(unsigned first, unsigned last, uint64_t site)
{
	unsigned end = __atomic_load_n(&preload_fresh.fd_end, __ATOMIC_RELAXED);
	for (unsigned fd = first; fd <= last && fd < end; fd++)
		if (preload_fresh.fd[fd])
			preload_fd_close((int)fd, site);
}

/* If the exec fails, they are open still: then there is one more descriptor that was closed than
 * there is in truth, as if it had been another of the same pipe. */
void preload_fd_close_on_exec(uint64_t site)
{
	unsigned end = __atomic_load_n(&preload_fresh.fd_end, __ATOMIC_RELAXED);
	for (unsigned fd = 0; fd < end && fd < PRELOAD_FDS; fd++) {
		if (!has_other_end(preload_fresh.fd[fd]) ||
			!(preload_syscall(SYS_fcntl, fd, F_GETFD, 0, 0, 0, 0) & FD_CLOEXEC))
			continue;
		struct preload_close closed = preload_fd_look_at_end((int)fd);
		preload_record_close(&closed, preload_now(), site);
	}
}

/* Before the call: as soon as it is closed another thread may get the number. */
PRELOAD_EXPORT int close(int fd)
{
	preload_fd_close(fd, PRELOAD_SITE);
	return PRELOAD_REAL(close)(fd);
}
PRELOAD_ALIAS(__close, close)

PRELOAD_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	if (!((unsigned)flags & CLOSE_RANGE_CLOEXEC))
		close_known(first, last, PRELOAD_SITE);
	return PRELOAD_REAL(close_range)(first, last, flags);
}

PRELOAD_EXPORT void closefrom(int first)
{
	close_known(first > 0 ? (unsigned)first : 0, UINT_MAX, PRELOAD_SITE);
	PRELOAD_REAL(closefrom)(first);
}

PRELOAD_EXPORT int shutdown(int fd, int how)
{
	struct preload_close end = preload_fd_look_at_end(fd);
	if (how == SHUT_RD || how == SHUT_WR)
		end.ends = how == SHUT_RD ? END_READ : END_WRITTEN;
	preload_record_close(&end, preload_now(), PRELOAD_SITE);
	return PRELOAD_REAL(shutdown)(fd, how);
}

/* ---- functions that make one: it may have been closed behind our back ------------------------ */

static int fd_made(int fd, uint64_t flags)
{
	begin_entry(fd, flags);
	return fd;
}

static int made_like(int fd, int from)
{
	preload_fd_made_like(fd, from);
	return fd;
}

void preload_fd_opened(int fd)
{
	begin_entry(fd, NO_SOCKET);
}

#define MAKES_FD(name, flags_of_entry, parameters, arguments)                                      \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		return fd_made(PRELOAD_REAL(name) arguments, flags_of_entry);                      \
	}
/* Opening may wait: for a disk, for the other end of a FIFO. */
#define OPENED(name, arguments)                                                                    \
	({                                                                                         \
		uint64_t begin_tsc_ = preload_now_if(preload_active());                            \
		int fd_ = fd_made(PRELOAD_REAL(name) arguments, NO_SOCKET);                        \
		if (begin_tsc_)                                                                    \
			preload_io_lasted(TRACE_IO_open, PRELOAD_SITE, begin_tsc_, fd_);           \
		fd_;                                                                               \
	})
#define OPENS_FD(name, parameters, arguments)                                                      \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		return OPENED(name, arguments);                                                    \
	}
#define MODE_OF(flags)                                                                             \
	({                                                                                         \
		mode_t mode_ = 0;                                                                  \
		if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) {                         \
			va_list list;                                                              \
			va_start(list, flags);                                                     \
			mode_ = va_arg(list, mode_t);                                              \
			va_end(list);                                                              \
		}                                                                                  \
		mode_;                                                                             \
	})

PRELOAD_EXPORT int open(const char *path, int flags, ...)
{
	preload_machine_calls(PRELOAD_CALLER);
	return OPENED(open, (path, flags, MODE_OF(flags)));
}

PRELOAD_EXPORT int openat(int dir, const char *path, int flags, ...)
{
	return OPENED(openat, (dir, path, flags, MODE_OF(flags)));
}
PRELOAD_ALIAS(open64, open)
PRELOAD_ALIAS(__open, open)
PRELOAD_ALIAS(__open64, open)
PRELOAD_ALIAS(openat64, openat)

int __open_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
OPENS_FD(__open_2, (const char *path, int flags), (path, flags))
OPENS_FD(__openat_2, (int dir, const char *path, int flags), (dir, path, flags))
PRELOAD_ALIAS(__open64_2, __open_2)
PRELOAD_ALIAS(__openat64_2, __openat_2)

OPENS_FD(creat, (const char *path, mode_t mode), (path, mode))
PRELOAD_ALIAS(creat64, creat)
MAKES_FD(socket, 0, (int family, int type, int protocol), (family, type, protocol))
MAKES_FD(timerfd_create, ENDLESS, (int clock, int flags), (clock, flags))
MAKES_FD(signalfd, ENDLESS, (int fd, const sigset_t *mask, int flags), (fd, mask, flags))
MAKES_FD(memfd_create, ENDLESS, (const char *name, unsigned flags), (name, flags))
MAKES_FD(epoll_create, ENDLESS, (int size), (size))
MAKES_FD(epoll_create1, ENDLESS, (int flags), (flags))

PRELOAD_EXPORT int dup(int from)
{
	return made_like(PRELOAD_REAL(dup)(from), from);
}

/* The number that dup2 replaces may be in use by others until the call is over: dropped before and
 * after. */
PRELOAD_EXPORT int dup2(int from, int to)
{
	if (from != to)
		preload_fd_close(to, PRELOAD_SITE);
	int fd = PRELOAD_REAL(dup2)(from, to);
	return from != to ? made_like(fd, from) : fd;
}
PRELOAD_ALIAS(__dup2, dup2)

PRELOAD_EXPORT int dup3(int from, int to, int flags)
{
	if (from != to)
		preload_fd_close(to, PRELOAD_SITE);
	return made_like(PRELOAD_REAL(dup3)(from, to, flags), from);
}

#define MAKES_PAIR(name, parameters, arguments, introduce)                                         \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		int result = PRELOAD_REAL(name) arguments;                                         \
		if (result == 0 && preload_active()) {                                             \
			fd_made(fds[0], 0);                                                        \
			fd_made(fds[1], 0);                                                        \
			introduce;                                                                 \
		}                                                                                  \
		return result;                                                                     \
	}
MAKES_PAIR(pipe, (int fds[2]), (fds), (void)0)
MAKES_PAIR(pipe2, (int fds[2], int flags), (fds, flags), (void)0)
MAKES_PAIR(socketpair, (int family, int type, int protocol, int fds[2]),
	(family, type, protocol, fds), introduce_pair(fds))
PRELOAD_ALIAS(__pipe, pipe)

PRELOAD_EXPORT int eventfd(unsigned value, int flags)
{
	int fd = fd_made(PRELOAD_REAL(eventfd)(value, flags), ENDLESS);
	if (fd >= 0 && value && preload_active())
		PRELOAD_RECORD(token_set, preload_fd_object(fd), value);
	return fd;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate_file.c - files, pipes and sockets. What a pipe really holds is read without taking it
 * (tee); a regular file is read at its position, which stays; anything else gives one made-up byte,
 * then its end. What would be written is kept as text and as an event, and never written.
 */
#include "deadlock/ahead/emulate.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- which file a descriptor of the copy is -------------------------------------------------- */

static struct deadlock_copy_file *emulate_file_own_file(struct deadlock_copy *c, int fd)
{
	for (size_t i = 0; i < c->nr_files; i++)
		if (c->file[i].fd == fd)
			return &c->file[i];
	return NULL;
}

/* NULL: too many. */
static struct deadlock_copy_file *make_file(struct deadlock_copy *c, int fd)
{
	struct deadlock_copy_file *f = emulate_file_own_file(c, fd);
	if (f)
		return f;
	if (c->nr_files == DEADLOCK_COPY_FILES_MAX) {
		deadlock_copy_end(c, DEADLOCK_END_LOOPS, "over %d files", DEADLOCK_COPY_FILES_MAX);
		return NULL;
	}
	f = &c->file[c->nr_files++];
	*f = (struct deadlock_copy_file){
		.fd = fd, .original = fd < DEADLOCK_COPY_FAKE_FD ? fd : -1};
	return f;
}

/* The descriptor of the process that it stands for; -1: closed, or the copy's own invention. */
static int emulate_file_original_of(struct deadlock_copy *c, int fd)
{
	const struct deadlock_copy_file *f = emulate_file_own_file(c, fd);
	if (!f)
		return fd < DEADLOCK_COPY_FAKE_FD ? fd : -1;
	return f->is_closed ? -1 : f->original;
}

static bool is_open(struct deadlock_copy *c, int fd, struct deadlock_file *ret)
{
	const struct deadlock_copy_file *own = emulate_file_own_file(c, fd);
	const int original = emulate_file_original_of(c, fd);
	*ret = own && !own->is_closed ? own->like : (struct deadlock_file){0};
	if (original >= 0 && ret->kind == DEADLOCK_FILE_NONE)
		deadlock_file_of(c->world, c->process, original, ret);
	return ret->kind != DEADLOCK_FILE_NONE || (own && !own->is_closed && original < 0);
}

static int reopen(const struct deadlock_copy *c, int original)
{
	char path[48];
	(void)snprintf(path, sizeof path, "/proc/%d/fd/%d",
		(int)deadlock_process_shown_as(c->process), original);
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Up to `size` bytes of what the pipe holds behind the first `skip`; nothing is taken out. */
static int64_t peek_pipe(struct deadlock_copy *c, int original, uint64_t skip, size_t size)
{
	int ours[2];
	int64_t got = 0;
	const int fd = reopen(c, original);
	if (fd < 0)
		return 0;
	if (pipe2(ours, O_NONBLOCK | O_CLOEXEC) == 0) {
		const ssize_t teed = tee(fd, ours[1], DEADLOCK_COPY_IO_MAX, SPLICE_F_NONBLOCK);
		const ssize_t all = teed > 0 ? read(ours[0], c->io, DEADLOCK_COPY_IO_MAX) : 0;
		if (all > 0 && (uint64_t)all > skip) {
			got = all - (int64_t)skip;
			got = (uint64_t)got > size ? (int64_t)size : got;
			memmove(c->io, c->io + skip, (size_t)got);
		}
		(void)close(ours[0]);
		(void)close(ours[1]);
	}
	(void)close(fd);
	return got;
}

static uint64_t position_of(struct deadlock_copy *c, int original)
{
	char text[512], name[32];
	uint64_t position = 0;
	(void)snprintf(name, sizeof name, "fdinfo/%d", original);
	if (os_proc_read(deadlock_process_shown_as(c->process), name, text, sizeof text) > 0)
		(void)os_parse_field(text, "pos", 10, &position);
	return position;
}

static int64_t read_regular(struct deadlock_copy *c, int original, uint64_t position, size_t size)
{
	const int fd = reopen(c, original);
	if (fd < 0)
		return -EIO;
	const ssize_t got = pread(fd, c->io, size, (off_t)position);
	(void)close(fd);
	return got < 0 ? -EIO : got;
}

/* A byte for a thread that waits for one, then the end of the file. */
static int64_t invent(struct deadlock_copy *c, struct deadlock_copy_file *f,
	enum deadlock_file_kind kind, size_t size)
{
	const uint64_t one = 1;
	if (kind == DEADLOCK_FILE_EVENTFD && size >= sizeof one) {
		memcpy(c->io, &one, sizeof one);
		return sizeof one;
	}
	if (f->was_fed)
		return 0;
	f->was_fed = true;
	c->io[0] = '\n';
	return 1;
}

/* What reading would give, in c->io; and its event: room for the writer. */
static int64_t provide(struct deadlock_copy *c, int fd, uint64_t size)
{
	struct deadlock_file file;
	struct deadlock_key key;
	struct deadlock_copy_file *f;
	if (!is_open(c, fd, &file))
		return -EBADF;
	if (!(f = make_file(c, fd)))
		return 0;
	if (deadlock_key_of_reading(&file, &key))
		deadlock_copy_event(c, &key);
	size = size < DEADLOCK_COPY_IO_MAX ? size : DEADLOCK_COPY_IO_MAX;
	if (!size)
		return 0;
	int64_t got = 0;
	if (file.kind == DEADLOCK_FILE_REGULAR) {
		if (!f->has_position)
			f->position = position_of(c, f->original);
		f->has_position = true;
		got = read_regular(c, f->original, f->position, (size_t)size);
	} else if (file.kind == DEADLOCK_FILE_PIPE) {
		got = peek_pipe(c, f->original, f->position, (size_t)size);
	}
	if (got > 0)
		f->position += (uint64_t)got;
	if (got || file.kind == DEADLOCK_FILE_REGULAR)
		return got;
	return invent(c, f, file.kind, (size_t)size);
}

int64_t deadlock_emulate_read(struct deadlock_copy *c, const uint64_t *arg)
{
	const int64_t got = provide(c, (int)arg[0], arg[2]);
	return got > 0 && !deadlock_copy_poke(c, arg[1], c->io, (size_t)got) ? -EFAULT : got;
}

int64_t deadlock_emulate_pread(struct deadlock_copy *c, const uint64_t *arg)
{
	struct deadlock_file file;
	const uint64_t size = arg[2] < DEADLOCK_COPY_IO_MAX ? arg[2] : DEADLOCK_COPY_IO_MAX;
	if (!is_open(c, (int)arg[0], &file))
		return -EBADF;
	if (file.kind != DEADLOCK_FILE_REGULAR)
		return -ESPIPE;
	const int64_t got =
		read_regular(c, emulate_file_original_of(c, (int)arg[0]), arg[3], (size_t)size);
	return got > 0 && !deadlock_copy_poke(c, arg[1], c->io, (size_t)got) ? -EFAULT : got;
}

/* The pieces' sizes together, of which the kernel moves at most this much; -EFAULT, -EINVAL. */
static int64_t vector(
	struct deadlock_copy *c, uint64_t address, uint64_t nr, struct iovec *ret, size_t *ret_nr)
{
	enum { MOVED_MAX = 0x7ffff000 };
	int64_t size = 0;
	*ret_nr = nr < DEADLOCK_COPY_VECTOR_MAX ? (size_t)nr : DEADLOCK_COPY_VECTOR_MAX;
	if (!deadlock_copy_peek(c, address, ret, *ret_nr * sizeof *ret))
		return -EFAULT;
	for (size_t i = 0; i < *ret_nr; i++) {
		const size_t left = (size_t)(MOVED_MAX - size);
		if (ret[i].iov_len > SSIZE_MAX)
			return -EINVAL;
		ret[i].iov_len = ret[i].iov_len < left ? ret[i].iov_len : left;
		size += (int64_t)ret[i].iov_len;
	}
	return size;
}

static int64_t emulate_file_scatter(
	struct deadlock_copy *c, const struct iovec *piece, size_t nr, int64_t got)
{
	int64_t done = 0;
	for (size_t i = 0; i < nr && done < got; i++) {
		const int64_t left = got - done;
		const size_t n = piece[i].iov_len < (size_t)left ? piece[i].iov_len : (size_t)left;
		if (!deadlock_copy_poke(c, (uint64_t)(uintptr_t)piece[i].iov_base, c->io + done, n))
			return -EFAULT;
		done += (int64_t)n;
	}
	return got;
}

int64_t deadlock_emulate_readv(struct deadlock_copy *c, const uint64_t *arg)
{
	struct iovec piece[DEADLOCK_COPY_VECTOR_MAX];
	size_t nr;
	const int64_t size = vector(c, arg[1], arg[2], piece, &nr);
	const int64_t got = size < 0 ? size : provide(c, (int)arg[0], (uint64_t)size);
	return got > 0 ? emulate_file_scatter(c, piece, nr, got) : got;
}

int64_t deadlock_emulate_recvmsg(struct deadlock_copy *c, const uint64_t *arg)
{
	struct iovec piece[DEADLOCK_COPY_VECTOR_MAX];
	struct msghdr message;
	size_t nr;
	if (!deadlock_copy_peek(c, arg[1], &message, sizeof message))
		return -EFAULT;
	const int64_t size =
		vector(c, (uint64_t)(uintptr_t)message.msg_iov, message.msg_iovlen, piece, &nr);
	const int64_t got = size < 0 ? size : provide(c, (int)arg[0], (uint64_t)size);
	message.msg_controllen = 0;
	message.msg_namelen = 0;
	message.msg_flags = 0;
	if (got >= 0 && !deadlock_copy_poke(c, arg[1], &message, sizeof message))
		return -EFAULT;
	return got > 0 ? emulate_file_scatter(c, piece, nr, got) : got;
}

/* Messages of one byte: what is in a queue cannot be seen without taking it. */
int64_t deadlock_emulate_mq_receive(struct deadlock_copy *c, const uint64_t *arg)
{
	const int64_t got = deadlock_emulate_read(c, arg);
	if (got > 0 && arg[3] && !deadlock_copy_poke32(c, arg[3], 0))
		return -EFAULT;
	if (got || arg[4])
		return got ? got : -ETIMEDOUT;
	return deadlock_copy_block(c, NULL, "mq_timedreceive");
}

int64_t deadlock_emulate_mq_send(struct deadlock_copy *c, const uint64_t *arg)
{
	const int64_t done = deadlock_emulate_write(c, arg);
	return done < 0 ? done : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void keep_text(struct deadlock_copy *c, int fd, uint64_t address, uint64_t size)
{
	struct deadlock_run *run = c->run;
	char text[DEADLOCK_WOULD_MAX];
	const size_t n = size < sizeof text - 1 ? (size_t)size : sizeof text - 1;
	if (run->would_write[0] || !n || !deadlock_copy_peek(c, address, text, n))
		return;
	for (size_t i = 0; i < n; i++)
		run->would_write[i] =
			isprint((unsigned char)text[i]) || text[i] == '\n' ? text[i] : '.';
	run->would_write[n] = '\0';
	run->would_write_fd = fd;
}

static int64_t would_write(
	struct deadlock_copy *c, int fd, uint64_t address, uint64_t first, int64_t all)
{
	struct deadlock_file file;
	struct deadlock_key key;
	if (!is_open(c, fd, &file))
		return -EBADF;
	keep_text(c, fd, address, first);
	if (deadlock_key_of_writing(&file, &key))
		deadlock_copy_event(c, &key);
	return all;
}

int64_t deadlock_emulate_write(struct deadlock_copy *c, const uint64_t *arg)
{
	return would_write(c, (int)arg[0], arg[1], arg[2], (int64_t)arg[2]);
}

int64_t deadlock_emulate_writev(struct deadlock_copy *c, const uint64_t *arg)
{
	struct iovec piece[DEADLOCK_COPY_VECTOR_MAX];
	size_t nr;
	const int64_t size = vector(c, arg[1], arg[2], piece, &nr);
	if (size <= 0)
		return size;
	size_t first = 0; /* C libraries put an empty piece before */
	while (first + 1 < nr && !piece[first].iov_len)
		first++;
	return would_write(c, (int)arg[0], (uint64_t)(uintptr_t)piece[first].iov_base,
		piece[first].iov_len, size);
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* Another descriptor of the process for the same end of the same pipe or socket is still open. */
static bool has_twin(struct deadlock_copy *c, int fd, const struct deadlock_file *file)
{
	if (c->is_exiting) /* they are closed, too */
		return false;
	deadlock_process_files(c->world, c->process);
	for (size_t i = 0; i < c->process->nr_files; i++) {
		const struct deadlock_file *other = &c->process->file[i].file;
		const int other_fd = c->process->file[i].fd;
		if (other_fd != fd && emulate_file_original_of(c, other_fd) == other_fd &&
			other->kind == file->kind && other->inode == file->inode &&
			other->device == file->device && other->can_write == file->can_write)
			return true;
	}
	return false;
}

/* Another process holds a lock on that file. */
static bool is_locked_by_others(const struct deadlock_copy *c, const struct deadlock_file *file)
{
	const char *rest = deadlock_world_locks(c->world);
	struct deadlock_file_lock lock;
	while (deadlock_parse_file_lock(&rest, &lock))
		if (!lock.is_blocked && lock.inode == file->inode && lock.device == file->device &&
			lock.pid != c->process->pid)
			return true;
	return false;
}

/* Does closing `fd` give a lock on the file back? POSIX: by whichever of the process's descriptors
 * it was taken; else by the last one that the process has of that open file. (/proc/locks says who
 * has locks, too, but is slow to read.) */
static bool gives_lock(struct deadlock_copy *c, int original, const struct deadlock_file *file)
{
	bool gives = file->has_lock;
	deadlock_process_files(c->world, c->process);
	for (size_t i = 0; i < c->process->nr_files; i++) {
		const struct deadlock_open_file *other = &c->process->file[i];
		if (other->file.kind != file->kind || other->file.inode != file->inode ||
			other->file.device != file->device)
			continue;
		if (other->file.has_process_lock)
			return true;
		if (other->fd != original && other->file.has_lock && !c->is_exiting &&
			emulate_file_original_of(c, other->fd) == other->fd)
			gives = false;
	}
	return gives;
}

static struct deadlock_key lock_key(const struct deadlock_file *file)
{
	return (struct deadlock_key){
		.kind = DEADLOCK_KEY_FILE_LOCK, .space = file->device, .id = file->inode};
}

static void mark_share(struct deadlock_copy *c, const struct deadlock_key *key, bool is_share)
{
	for (size_t i = 0; i < c->run->nr_events; i++)
		if (deadlock_key_equal(&c->run->event[i].key, key))
			c->run->event[i].is_share |= is_share;
}

/* (For another socket nobody waits so.) */
static void give_backlog(struct deadlock_copy *c, const struct deadlock_file *file)
{
	const struct deadlock_key key = {.kind = DEADLOCK_KEY_SOCKET_BACKLOG, .id = file->inode};
	const struct deadlock_peers *peers = deadlock_world_peers(c->world);
	if (deadlock_peers_role(peers, file->inode) == DEADLOCK_SOCKET_LISTENS ||
		deadlock_peers_is_full(peers, file->inode))
		deadlock_copy_event(c, &key);
}

void deadlock_copy_closing(struct deadlock_copy *c, int fd)
{
	struct deadlock_file file;
	struct deadlock_key key;
	const int original = emulate_file_original_of(c, fd);
	if (original < 0 || !is_open(c, fd, &file))
		return;
	if (file.kind == DEADLOCK_FILE_REGULAR && gives_lock(c, original, &file)) {
		key = lock_key(&file);
		deadlock_copy_event(c, &key);
		mark_share(c, &key, file.lock_is_inherited && !file.has_process_lock);
	}
	if (file.kind != DEADLOCK_FILE_PIPE && file.kind != DEADLOCK_FILE_SOCKET)
		return;
	if (has_twin(c, fd, &file))
		return;
	if (file.kind == DEADLOCK_FILE_SOCKET) /* those that wait in its queue are refused */
		give_backlog(c, &file);
	/* the end of the data for readers, an error for writers */
	if (file.can_write && deadlock_key_of_writing(&file, &key))
		deadlock_copy_event(c, &key);
	if (file.can_read && deadlock_key_of_reading(&file, &key))
		deadlock_copy_event(c, &key);
}

int64_t deadlock_emulate_close(struct deadlock_copy *c, const uint64_t *arg)
{
	struct deadlock_file file;
	struct deadlock_copy_file *f;
	if (!is_open(c, (int)arg[0], &file))
		return -EBADF;
	deadlock_copy_closing(c, (int)arg[0]);
	if ((f = make_file(c, (int)arg[0])))
		f->is_closed = true;
	return 0;
}

int64_t deadlock_emulate_close_range(struct deadlock_copy *c, const uint64_t *arg)
{
	deadlock_process_files(c->world, c->process);
	for (size_t i = 0; i < c->process->nr_files && !c->is_done; i++) {
		const int fd = c->process->file[i].fd;
		if ((uint64_t)fd >= arg[0] && (uint64_t)fd <= arg[1])
			(void)deadlock_emulate_close(c, (uint64_t[6]){(uint64_t)fd});
	}
	return 0;
}

int64_t deadlock_emulate_shutdown(struct deadlock_copy *c, const uint64_t *arg)
{
	struct deadlock_file file;
	struct deadlock_key key;
	if (!is_open(c, (int)arg[0], &file))
		return -EBADF;
	if (arg[1] != SHUT_RD && deadlock_key_of_writing(&file, &key))
		deadlock_copy_event(c, &key);
	if (arg[1] != SHUT_WR && deadlock_key_of_reading(&file, &key))
		deadlock_copy_event(c, &key);
	return 0;
}

static int64_t stand_for(struct deadlock_copy *c, int fd, int original)
{
	struct deadlock_copy_file *f = make_file(c, fd);
	if (!f)
		return -EMFILE;
	*f = (struct deadlock_copy_file){.fd = fd, .original = original};
	return fd;
}

static int new_fd(struct deadlock_copy *c)
{
	return DEADLOCK_COPY_FAKE_FD + (int)c->nr_files;
}

int64_t deadlock_emulate_dup(struct deadlock_copy *c, const uint64_t *arg)
{
	struct deadlock_file file;
	if (!is_open(c, (int)arg[0], &file))
		return -EBADF;
	return stand_for(c, new_fd(c), emulate_file_original_of(c, (int)arg[0]));
}

int64_t deadlock_emulate_dup2(struct deadlock_copy *c, const uint64_t *arg)
{
	struct deadlock_file file;
	const int from = (int)arg[0], to = (int)arg[1];
	if (!is_open(c, from, &file))
		return -EBADF;
	if (from == to)
		return to;
	const int original = emulate_file_original_of(c, from);
	deadlock_copy_closing(c, to);
	return stand_for(c, to, original);
}

static bool emulate_file_read_copy(void *ctx, uint64_t address, void *buf, size_t size)
{
	return deadlock_copy_peek(ctx, address, buf, size);
}

bool deadlock_copy_file(struct deadlock_copy *c, int fd, struct deadlock_file *ret)
{
	return is_open(c, fd, ret);
}

void deadlock_copy_liken(struct deadlock_copy *c, int fd, const struct deadlock_file *like)
{
	struct deadlock_copy_file *f = make_file(c, fd);
	if (f)
		f->like = *like;
}

int64_t deadlock_copy_invent(struct deadlock_copy *c, const struct deadlock_file *like)
{
	const int64_t fd = stand_for(c, new_fd(c), -1);
	if (fd >= 0)
		deadlock_copy_liken(c, (int)fd, like);
	return fd;
}

/* A thread that waits in opening its other end goes on. */
static int64_t open_fifo(struct deadlock_copy *c, const struct deadlock_file *fifo, uint64_t flags)
{
	struct deadlock_key key[2];
	const size_t nr = deadlock_keys_of_opening(fifo, flags, key);
	for (size_t i = 0; i < nr; i++)
		deadlock_copy_event(c, &key[i]);
	struct deadlock_file like = *fifo;
	like.can_read = (flags & O_ACCMODE) != O_WRONLY;
	like.can_write = (flags & O_ACCMODE) != O_RDONLY;
	return deadlock_copy_invent(c, &like);
}

/* Files that the copy opens are its own invention: empty to read, and what is written is gone. */
int64_t deadlock_emulate_open(struct deadlock_copy *c, const uint64_t *arg)
{
	const bool at = (c->is_first ? (uint64_t)c->wait->call : c->last.number) == SYS_openat;
	const uint64_t flags = arg[at ? 2 : 1];
	struct deadlock_file fifo;
	char name[PATH_MAX];
	if (deadlock_read_text(emulate_file_read_copy, c, arg[at ? 1 : 0], name, sizeof name) &&
		deadlock_fifo_named(c->process->pid, at ? (int)arg[0] : AT_FDCWD, name, &fifo))
		return open_fifo(c, &fifo, flags);
	if ((flags & O_ACCMODE) == O_RDONLY)
		deadlock_copy_taint(c, "it opened a file, which a copy may not read");
	const int64_t fd = stand_for(c, new_fd(c), -1);
	if (fd >= 0)
		emulate_file_own_file(c, (int)fd)->was_fed = true; /* empty */
	return fd;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static int64_t file_lock(struct deadlock_copy *c, int fd, bool unlocks, bool waits)
{
	struct deadlock_file file;
	if (!is_open(c, fd, &file))
		return -EBADF;
	const struct deadlock_key key = lock_key(&file);
	if (unlocks) {
		deadlock_copy_event(c, &key);
		return 0;
	}
	if (c->is_first || !is_locked_by_others(c, &file))
		return 0;
	return waits ? deadlock_copy_block(c, &key, "a lock of a file") : -EAGAIN;
}

int64_t deadlock_emulate_flock(struct deadlock_copy *c, const uint64_t *arg)
{
	return file_lock(c, (int)arg[0], arg[1] & LOCK_UN, !(arg[1] & LOCK_NB));
}

int64_t deadlock_emulate_fcntl(struct deadlock_copy *c, const uint64_t *arg)
{
	struct deadlock_file file;
	struct flock lock;
	switch (arg[1]) {
	case F_GETFL:
		if (!is_open(c, (int)arg[0], &file))
			return -EBADF;
		return file.can_read && file.can_write ? O_RDWR
		       : file.can_write                ? O_WRONLY
						       : O_RDONLY;
	case F_GETFD:
	case F_SETFD:
	case F_SETFL:
		return is_open(c, (int)arg[0], &file) ? 0 : -EBADF;
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return deadlock_emulate_dup(c, arg);
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		if (!deadlock_copy_peek(c, arg[2], &lock, sizeof lock))
			return -EFAULT;
		return file_lock(c, (int)arg[0], lock.l_type == F_UNLCK,
			arg[1] == F_SETLKW || arg[1] == F_OFD_SETLKW);
	default:
		deadlock_copy_end(c, DEADLOCK_END_CALL, "fcntl %llu", (unsigned long long)arg[1]);
		return 0;
	}
}

int64_t deadlock_emulate_lseek(struct deadlock_copy *c, const uint64_t *arg)
{
	struct deadlock_file file;
	struct deadlock_copy_file *f;
	if (!is_open(c, (int)arg[0], &file))
		return -EBADF;
	if (file.kind != DEADLOCK_FILE_REGULAR)
		return -ESPIPE;
	if (!(f = make_file(c, (int)arg[0])))
		return 0;
	if (!f->has_position)
		f->position = position_of(c, f->original);
	f->has_position = true;
	if (arg[2] == SEEK_SET)
		f->position = arg[1];
	else if (arg[2] == SEEK_CUR)
		f->position += arg[1];
	else
		deadlock_copy_taint(c, "it asked for the end of a file");
	return (int64_t)f->position;
}

/* What is known of the file without asking its file system, which could wait. */
static bool stat_original(const struct deadlock_copy *c, int original, struct stat *ret)
{
	char path[48];
	struct statx x;
	(void)snprintf(path, sizeof path, "/proc/%d/fd/%d",
		(int)deadlock_process_shown_as(c->process), original);
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &x))
		return false;
	ret->st_dev = makedev(x.stx_dev_major, x.stx_dev_minor);
	ret->st_rdev = makedev(x.stx_rdev_major, x.stx_rdev_minor);
	ret->st_ino = x.stx_ino;
	ret->st_mode = x.stx_mode;
	ret->st_nlink = x.stx_nlink;
	ret->st_uid = x.stx_uid;
	ret->st_gid = x.stx_gid;
	ret->st_size = (off_t)x.stx_size;
	ret->st_blksize = (blksize_t)x.stx_blksize;
	ret->st_blocks = (blkcnt_t)x.stx_blocks;
	ret->st_mtim = (struct timespec){x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec};
	return true;
}

static int64_t stat_of(struct deadlock_copy *c, int fd, uint64_t address)
{
	struct stat s;
	struct deadlock_file file;
	const int original = emulate_file_original_of(c, fd);
	if (!is_open(c, fd, &file))
		return -EBADF;
	memset(&s, 0, sizeof s);
	s.st_mode = S_IFREG | 0600; /* a file that the copy invented */
	s.st_blksize = 4096;
	if (original >= 0 && !stat_original(c, original, &s))
		return -EBADF;
	return deadlock_copy_poke(c, address, &s, sizeof s) ? 0 : -EFAULT;
}

int64_t deadlock_emulate_fstat(struct deadlock_copy *c, const uint64_t *arg)
{
	return stat_of(c, (int)arg[0], arg[1]);
}

/* Names are not looked up: a file system's server may be who is stuck. */
int64_t deadlock_emulate_no_file(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	deadlock_copy_taint(c, "it asked for a file by name");
	return -ENOENT;
}

int64_t deadlock_emulate_fstatat(struct deadlock_copy *c, const uint64_t *arg)
{
	char first = 1;
	if (arg[3] & AT_EMPTY_PATH && deadlock_copy_peek(c, arg[1], &first, 1) && !first)
		return stat_of(c, (int)arg[0], arg[2]);
	return deadlock_emulate_no_file(c, arg);
}

int64_t deadlock_emulate_new_file(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	return stand_for(c, new_fd(c), -1);
}

static int64_t new_pair(struct deadlock_copy *c, uint64_t address)
{
	const int32_t first = (int32_t)stand_for(c, new_fd(c), -1);
	const int32_t fd[2] = {first, (int32_t)stand_for(c, new_fd(c), -1)};
	return deadlock_copy_poke(c, address, fd, sizeof fd) ? 0 : -EFAULT;
}

int64_t deadlock_emulate_pipe(struct deadlock_copy *c, const uint64_t *arg)
{
	return new_pair(c, arg[0]);
}

int64_t deadlock_emulate_socketpair(struct deadlock_copy *c, const uint64_t *arg)
{
	return new_pair(c, arg[3]);
}

int64_t deadlock_emulate_sendfile(struct deadlock_copy *c, const uint64_t *arg)
{
	struct deadlock_file from;
	struct deadlock_key key;
	if (!is_open(c, (int)arg[1], &from))
		return -EBADF;
	if (deadlock_key_of_reading(&from, &key))
		deadlock_copy_event(c, &key);
	return would_write(c, (int)arg[0], 0, 0, (int64_t)arg[3]);
}

int64_t deadlock_emulate_getcwd(struct deadlock_copy *c, const uint64_t *arg)
{
	char path[32], text[4096];
	(void)snprintf(
		path, sizeof path, "/proc/%d/cwd", (int)deadlock_process_shown_as(c->process));
	const ssize_t size = readlink(path, text, sizeof text - 1);
	if (size < 0)
		return -ENOENT;
	text[size] = '\0';
	if (arg[1] <= (uint64_t)size)
		return -ERANGE;
	return deadlock_copy_poke(c, arg[0], text, (size_t)size + 1) ? size + 1 : -EFAULT;
}

int64_t deadlock_emulate_ioctl(struct deadlock_copy *c, const uint64_t *arg)
{
	if (arg[1] == FIONBIO)
		return 0;
	if (arg[1] != TCGETS) /* "is it a terminal?" has a harmless answer */
		deadlock_copy_taint(c, "it asked a device");
	return -ENOTTY;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - what a thread waits for: the decode table of waits.def. Futexes: futex.c. */
#include "deadlock/facts/facts.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#ifndef __NR_futex_waitv
#define __NR_futex_waitv 449
#endif
enum { WAITS_FOR_PIDFD = 3 }; /* waitid()'s P_PIDFD, which glibc has from 2.36 on */

enum { POLL_FILES_MAX = 1024, SELECT_FILES_MAX = 1024, SEMBUF_MAX = 64, EPOLLS_MAX = 16 };

/* 1 + 2 + 4 + ... + 64 s: Linux's six tries. */
#define TCP_TRIES_NS UINT64_C(127000000000)

struct call { /* one decoding */
	struct deadlock_world *world;
	struct deadlock_process *process;
	struct deadlock_wait *wait;
	int fd;                /* -1: none */
	int epoll[EPOLLS_MAX]; /* sets that are waited for, also inside of others */
	size_t nr_epolls, nr_epolls_read;
};

void deadlock_wait_add_key(struct deadlock_wait *w, const struct deadlock_key *key)
{
	for (size_t i = 0; i < w->nr_keys; i++) {
		if (deadlock_key_equal(&w->key[i], key))
			return;
	}
	if (w->nr_keys < DEADLOCK_KEYS_MAX)
		w->key[w->nr_keys++] = *key;
	else
		w->keys_cut = true;
}

static void wait_add(
	const struct call *c, enum deadlock_key_kind kind, uint64_t space, uint64_t id, uint64_t at)
{
	struct deadlock_key key = {.kind = kind, .space = space, .id = id, .at = at};
	if (kind == DEADLOCK_KEY_PIPE_DATA || kind == DEADLOCK_KEY_PIPE_ROOM)
		key.is_named = space != 0; /* a FIFO */
	else
		key.is_named = kind == DEADLOCK_KEY_SYSV_SEM || kind == DEADLOCK_KEY_SYSV_QUEUE;
	deadlock_wait_add_key(c->wait, &key);
}

/* It ends by itself, nobody asks when. */
static void set_unknown_limit(struct deadlock_wait *w)
{
	w->is_timed = true;
	w->limit_ns = 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Is read later: sets may be in sets. */
static void queue_epoll(struct call *c, int fd)
{
	for (size_t i = 0; i < c->nr_epolls; i++) {
		if (c->epoll[i] == fd)
			return;
	}
	if (c->nr_epolls < EPOLLS_MAX)
		c->epoll[c->nr_epolls++] = fd;
	else
		c->wait->is_external = true;
}

static void add_mqueue(struct call *c, const struct deadlock_file *f, bool reads, bool writes)
{
	struct deadlock_key key = {.space = f->device, .id = f->inode, .is_named = f->is_named};
	key.kind = DEADLOCK_KEY_MQUEUE_DATA;
	if (reads)
		deadlock_wait_add_key(c->wait, &key);
	key.kind = DEADLOCK_KEY_MQUEUE_ROOM;
	if (writes)
		deadlock_wait_add_key(c->wait, &key);
}

/* A socket that can be reached by its name waits for anybody. False: it has none. */
static bool add_named_socket(struct call *c, uint64_t inode, bool reads)
{
	const enum deadlock_socket_role role =
		deadlock_peers_role(deadlock_world_peers(c->world), inode);
	struct deadlock_key key = {.kind = role == DEADLOCK_SOCKET_LISTENS
						   ? DEADLOCK_KEY_SOCKET_PEER
						   : DEADLOCK_KEY_SOCKET_DATA,
		.is_named = true,
		.id = inode};
	if (role == DEADLOCK_SOCKET_NAMELESS || !reads)
		return false;
	c->wait->is_by_name = true;
	deadlock_wait_add_key(c->wait, &key);
	return true;
}

/* Of a call on the socket itself. */
static void read_option_limit(struct call *c, bool reads)
{
	const uint64_t limit_ns = deadlock_socket_limit_ns(c->process->pid, c->fd, reads);
	if (!limit_ns)
		return;
	c->wait->is_timed = true;
	c->wait->limit_ns = limit_ns;
}

/* Waits until fd is readable, or writable. */
static void wait_add_file(struct call *c, int fd, bool reads, bool writes)
{
	struct deadlock_file f;
	deadlock_file_of(c->world, c->process, fd, &f);
	switch (f.kind) {
	case DEADLOCK_FILE_PIPE:
		if (reads)
			wait_add(c, DEADLOCK_KEY_PIPE_DATA, f.device, f.inode, 0);
		if (writes)
			wait_add(c, DEADLOCK_KEY_PIPE_ROOM, f.device, f.inode, 0);
		break;
	case DEADLOCK_FILE_SOCKET:
		if (c->fd == fd)
			read_option_limit(c, reads);
		if (add_named_socket(c, f.inode, reads))
			break;
		if (!f.peer)
			c->wait->is_external = true;
		if (reads)
			wait_add(c, DEADLOCK_KEY_SOCKET_DATA, 0, f.inode, 0);
		if (writes)
			wait_add(c, DEADLOCK_KEY_SOCKET_ROOM, 0, f.inode, 0);
		break;
	case DEADLOCK_FILE_EVENTFD:
		if (reads)
			wait_add(c, DEADLOCK_KEY_EVENTFD_DATA, 0, f.inode, 0);
		if (writes)
			wait_add(c, DEADLOCK_KEY_EVENTFD_ROOM, 0, f.inode, 0);
		break;
	case DEADLOCK_FILE_MQUEUE:
		add_mqueue(c, &f, reads, writes);
		break;
	case DEADLOCK_FILE_EPOLL:
		queue_epoll(c, fd);
		break;
	case DEADLOCK_FILE_NONE: /* closed while it waits: whatever it was may still come */
	case DEADLOCK_FILE_REGULAR:
	case DEADLOCK_FILE_OTHER:
		if (f.is_timer)
			set_unknown_limit(c->wait);
		else
			c->wait->is_external = true;
		break;
	}
}

static void read_epoll(struct call *c, int fd)
{
	char name[48], text[PROC_TEXT_MAX];
	struct deadlock_epoll_item item;
	struct base_str s = {0};
	base_str_addf(&s, "fdinfo/%d", fd);
	if (s.failed || s.length >= sizeof name) {
		base_str_fini(&s);
		c->wait->is_external = true;
		return;
	}
	memcpy(name, s.buf, s.length + 1);
	base_str_fini(&s);
	ssize_t n = os_proc_read(deadlock_process_shown_as(c->process), name, text, sizeof text);
	const char *at = n > 0 ? text : "";
	if (n <= 0 || (size_t)n == sizeof text - 1)
		c->wait->is_external = true; /* not all of it was seen */
	while (deadlock_parse_epoll(&at, &item))
		wait_add_file(c, item.fd,
			item.events & (EPOLLIN | EPOLLRDNORM | EPOLLPRI | EPOLLRDHUP),
			item.events & (EPOLLOUT | EPOLLWRNORM));
}

static void decode_read(struct call *c)
{
	c->wait->kind = DEADLOCK_READ;
	wait_add_file(c, c->fd, true, false);
}

static void decode_write(struct call *c)
{
	c->wait->kind = DEADLOCK_WRITE;
	wait_add_file(c, c->fd, false, true);
}

static bool wait_read_memory(void *ctx, uint64_t address, void *buf, size_t size)
{
	const struct call *c = ctx;
	return deadlock_world_read(c->world, c->wait->thread.pid, address, buf, size);
}

/* For who opens the other end. Anything else that an opening may wait for is not known. */
static void decode_open(struct call *c)
{
	struct deadlock_wait *w = c->wait;
	struct deadlock_file f;
	char name[PATH_MAX];
	const bool at = w->call == SYS_openat;
	const uint64_t access = w->arg[at ? 2 : 1] & O_ACCMODE;
	w->is_external = true;
	if (access == O_RDWR || deadlock_world_core(c->world) ||
		!deadlock_read_text(wait_read_memory, c, w->arg[at ? 1 : 0], name, sizeof name) ||
		!deadlock_fifo_named(c->process->pid, at ? (int)w->arg[0] : AT_FDCWD, name, &f))
		return;
	w->kind = DEADLOCK_OPEN;
	w->is_external = false;
	struct deadlock_key key = {
		.kind = access == O_WRONLY ? DEADLOCK_KEY_FIFO_READER : DEADLOCK_KEY_FIFO_WRITER,
		.is_named = true,
		.space = f.device,
		.id = f.inode};
	deadlock_wait_add_key(w, &key);
}

/* From one file to another: either may be what it waits for. */
static void decode_splice(struct call *c)
{
	bool is_tee = c->wait->call == SYS_tee;
	c->wait->kind = DEADLOCK_READ;
	wait_add_file(c, c->fd, true, false);
	wait_add_file(c, (int)c->wait->arg[is_tee ? 1 : 2], false, true);
}

static void decode_poll(struct call *c)
{
	struct pollfd set[POLL_FILES_MAX];
	struct deadlock_wait *w = c->wait;
	size_t nr = w->arg[1];
	w->kind = DEADLOCK_POLL;
	if (!nr || nr > POLL_FILES_MAX ||
		!deadlock_world_read(c->world, w->thread.pid, w->arg[0], set, nr * sizeof *set)) {
		w->is_external = true;
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		if (set[i].fd >= 0)
			wait_add_file(c, set[i].fd, set[i].events & (POLLIN | POLLRDNORM | POLLPRI),
				set[i].events & (POLLOUT | POLLWRNORM));
	}
	if (!w->nr_keys && !c->nr_epolls)
		w->is_external = true; /* a way to sleep until a signal */
}

static bool in_set(const uint8_t *set, size_t i)
{
	return set[i / 8] >> (i % 8) & 1;
}

/* The kernel overwrites the sets only when it returns. */
static void decode_select(struct call *c)
{
	struct deadlock_wait *w = c->wait;
	uint8_t set[3][SELECT_FILES_MAX / 8] = {{0}};
	size_t nr = w->arg[0], bytes = (nr + 63) / 64 * 8;
	w->kind = DEADLOCK_POLL;
	if (!nr || nr > SELECT_FILES_MAX) {
		w->is_external = true;
		return;
	}
	for (int i = 0; i < 3; i++) {
		if (w->arg[1 + i] &&
			!deadlock_world_read(c->world, w->thread.pid, w->arg[1 + i], set[i], bytes))
			w->is_external = true;
	}
	for (size_t i = 0; i < nr; i++) {
		bool reads = in_set(set[0], i) || in_set(set[2], i), writes = in_set(set[1], i);
		if (reads || writes)
			wait_add_file(c, (int)i, reads, writes);
	}
	if (!w->nr_keys && !c->nr_epolls)
		w->is_external = true;
}

static void decode_epoll(struct call *c)
{
	c->wait->kind = DEADLOCK_EPOLL;
	queue_epoll(c, c->fd);
}

static void decode_accept(struct call *c)
{
	struct deadlock_file f;
	deadlock_file_of(c->world, c->process, c->fd, &f);
	c->wait->kind = DEADLOCK_ACCEPT;
	read_option_limit(c, true);
	if (f.kind == DEADLOCK_FILE_SOCKET && add_named_socket(c, f.inode, true))
		return;
	c->wait->is_external = true; /* anybody may connect */
	if (f.kind == DEADLOCK_FILE_SOCKET)
		wait_add(c, DEADLOCK_KEY_SOCKET_PEER, 0, f.inode, 0);
}

/* For room in the queue of a listener of this machine; else for somebody outside. TCP asks again
 * and again, and gives up after its usual number of tries. */
static void decode_connect(struct call *c)
{
	struct deadlock_wait *w = c->wait;
	uint16_t family = AF_UNSPEC;
	const uint64_t inode = deadlock_socket_named(
		c->world, c->process->pid, wait_read_memory, c, w->arg[1], w->arg[2]);
	w->kind = DEADLOCK_CONNECT;
	if (!inode || !wait_read_memory(c, w->arg[1], &family, sizeof family)) {
		w->is_external = true;
		return;
	}
	wait_add(c, DEADLOCK_KEY_SOCKET_BACKLOG, 0, inode, 0);
	read_option_limit(c, false);
	if (family != AF_UNIX && !w->is_timed) {
		w->is_timed = true;
		w->limit_ns = TCP_TRIES_NS;
	}
}

/* ---- processes ------------------------------------------------------------------------------- */

static void wait_add_children(struct call *c)
{
	size_t nr;
	const struct deadlock_listed *list = deadlock_world_list(c->world, &nr);
	for (size_t i = 0; i < nr; i++) {
		if (list[i].parent == c->process->pid)
			wait_add(c, DEADLOCK_KEY_PROCESS_EXIT, 0, (uint64_t)list[i].pid, 0);
	}
	if (!c->wait->nr_keys)
		c->wait->is_external =
			true; /* children of another namespace, or of a thread we do not see */
}

/* Its number is one of the caller's PID namespace. */
static void add_child(struct call *c, pid_t inner)
{
	const pid_t pid = deadlock_world_thread_of(c->world, c->process->pid, inner);
	if (pid)
		wait_add(c, DEADLOCK_KEY_PROCESS_EXIT, 0, (uint64_t)pid, 0);
	else
		c->wait->is_external = true;
}

static void decode_wait4(struct call *c)
{
	pid_t pid = (pid_t)c->wait->arg[0];
	c->wait->kind = DEADLOCK_WAIT_CHILD;
	if (pid > 0)
		add_child(c, pid);
	else
		wait_add_children(c);
}

static void decode_waitid(struct call *c)
{
	uint64_t type = c->wait->arg[0], id = c->wait->arg[1];
	char name[48], text[4096];
	c->wait->kind = DEADLOCK_WAIT_CHILD;
	if (type == P_PID) {
		add_child(c, (pid_t)id);
	} else if (type == WAITS_FOR_PIDFD) {
		struct base_str s = {0};
		uint64_t pid = 0;
		base_str_addf(&s, "fdinfo/%d", (int)id);
		if (!s.failed && s.length < sizeof name) {
			memcpy(name, s.buf, s.length + 1);
			if (os_proc_read(deadlock_process_shown_as(c->process), name, text,
				    sizeof text) > 0)
				(void)os_parse_field(text, "Pid", 10, &pid);
		}
		base_str_fini(&s);
		if (pid && pid <= INT32_MAX)
			wait_add(c, DEADLOCK_KEY_PROCESS_EXIT, 0, pid, 0);
		else
			c->wait->is_external = true;
	} else {
		wait_add_children(c);
	}
}

/* ---- locks on files, System V ---------------------------------------------------------------- */

/* In /proc/locks the waiters for a lock follow it, with an arrow. Only a POSIX lock has its owner
 * there: an open file has its lock in all processes that have it open, and the one that took it may
 * be gone ("flock 9" in a shell). The search for access finds these processes. And of several that
 * share a lock for reading one stands there. */
static void wait_find_lock_owner(struct call *c, uint64_t inode)
{
	struct deadlock_wait *w = c->wait;
	struct deadlock_file_lock l, held = {0};
	const char *at = deadlock_world_locks(c->world);
	while (deadlock_parse_file_lock(&at, &l)) {
		if (!l.is_blocked) {
			held = l;
		} else if (l.pid == w->thread.pid && l.inode == inode && held.pid > 0 &&
			   !held.is_flock && !held.is_ofd && held.is_write) {
			w->owner = held.pid;
			w->owner_is_exact = w->owner_is_process = true;
			return;
		}
	}
}

static void decode_file_lock(struct call *c)
{
	struct deadlock_wait *w = c->wait;
	struct deadlock_file f;
	uint64_t command = w->arg[1];
	if (w->call == SYS_fcntl && command != F_SETLKW && command != 38 /* F_OFD_SETLKW */) {
		w->is_external = true;
		return;
	}
	deadlock_file_of(c->world, c->process, c->fd, &f);
	w->kind = DEADLOCK_FILE_LOCK;
	wait_add(c, DEADLOCK_KEY_FILE_LOCK, f.device, f.inode, 0);
	wait_find_lock_owner(c, f.inode);
}

static void decode_semop(struct call *c)
{
	struct deadlock_wait *w = c->wait;
	struct sembuf op[SEMBUF_MAX];
	size_t nr = w->arg[2];
	w->kind = DEADLOCK_SYSV_SEM;
	if (!nr || nr > SEMBUF_MAX ||
		!deadlock_world_read(c->world, w->thread.pid, w->arg[1], op, nr * sizeof *op)) {
		w->is_external = true;
		return;
	}
	deadlock_world_note_undo(c->world, (int)w->arg[0], op, nr);
	for (size_t i = 0; i < nr; i++) {
		if (op[i].sem_op <= 0)
			wait_add(c, DEADLOCK_KEY_SYSV_SEM, 0, w->arg[0], op[i].sem_num);
	}
}

static void decode_msg(struct call *c)
{
	c->wait->kind = DEADLOCK_SYSV_QUEUE;
	wait_add(c, DEADLOCK_KEY_SYSV_QUEUE, 0, c->wait->arg[0], 0);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void decode_signal(struct call *c)
{
	c->wait->kind = DEADLOCK_SIGNAL;
	c->wait->is_external = true;
	wait_add(c, DEADLOCK_KEY_SIGNAL, (uint64_t)c->process->pid, 0, 0);
}

static void decode_sleep(struct call *c)
{
	c->wait->kind = DEADLOCK_SLEEP;
	set_unknown_limit(c->wait);
}

static void decode_futex(struct call *c)
{
	deadlock_wait_decode_futex(c->world, c->process, c->wait);
}

static void decode_futex_vector(struct call *c)
{
	struct deadlock_wait *w = c->wait;
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} item[DEADLOCK_KEYS_MAX];
	enum { FLAG_PRIVATE = 128 };
	size_t nr = w->arg[1];
	w->kind = DEADLOCK_FUTEX;
	if (!nr || nr > BASE_COUNT(item) ||
		!deadlock_world_read(c->world, w->thread.pid, w->arg[0], item, nr * sizeof *item)) {
		w->is_external = true;
		return;
	}
	w->word = item[0].address;
	w->expected = (uint32_t)item[0].value;
	for (size_t i = 0; i < nr; i++) {
		struct deadlock_key key;
		deadlock_key_of_futex(
			c->world, c->process, item[i].address, item[i].flags & FLAG_PRIVATE, &key);
		key.bytes = 4;
		deadlock_wait_add_key(w, &key);
	}
}

/* The number that the code before a system call instruction loads, of those that the kernel goes on
 * with by restart_syscall. -1: none of them. */
static int64_t number_in_code(struct call *c)
{
	static const int64_t restarted[] = {
		SYS_futex, SYS_poll, SYS_nanosleep, SYS_clock_nanosleep};
	enum { REACH = 40, MOV_EAX = 0xb8, BYTES = 5 };
	uint8_t code[REACH];
	int32_t number;
	if (!wait_read_memory(c, c->wait->pc - REACH, code, sizeof code))
		return -1;
	for (size_t at = REACH - BYTES + 1; at-- > 0;) {
		memcpy(&number, code + at + 1, sizeof number);
		for (size_t i = 0; code[at] == MOV_EAX && i < BASE_COUNT(restarted); i++) {
			if (number == restarted[i])
				return number;
		}
	}
	return -1;
}

/* Or by where it sleeps in the kernel, where that tells. */
static int64_t number_by_place(const struct deadlock_wait *w)
{
	static const struct {
		const char *where;
		int64_t call;
	} row[] = {{"futex_", SYS_futex}, {"poll_", SYS_poll}, {"do_sys_poll", SYS_poll},
		{"hrtimer_nanosleep", SYS_nanosleep}, {"do_nanosleep", SYS_nanosleep}};
	char text[96];
	if (os_proc_read_task(w->thread.pid, w->thread.tid, "wchan", text, sizeof text) <= 0)
		return -1;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		if (!strncmp(text, row[i].where, strlen(row[i].where)))
			return row[i].call;
	}
	return -1;
}

/* Somebody stopped it once, and the kernel restarted it: the arguments are as they were, the number
 * is not. */
static void decode_restart(struct call *c)
{
	struct deadlock_wait *w = c->wait;
	int64_t call = number_in_code(c);
	if (call < 0)
		call = number_by_place(w);
	if (call >= 0) {
		w->call = call;
		w->is_timed = false;
		deadlock_wait_decode(c->world, w);
		return;
	}
	w->kind = DEADLOCK_SLEEP;
	set_unknown_limit(w);
}

enum { FROM_BEGINNING = -1, OF_FUTEX = -2, OF_VECTOR = -3 }; /* no clock has such a number */

struct row {
	void (*decode)(struct call *c);
	int64_t call;
	int file, time, time_ms, clock;
};
static const struct row rows[] = {
#define CALL(name, function, file, time, time_ms, clock)                                           \
	{function, __NR_##name, file, time, time_ms, clock},
#include "deadlock/facts/waits.def"
};

static int wait_clock_of(const struct deadlock_wait *w, const struct row *row)
{
	const uint64_t op = w->arg[1];
	if (row->clock == OF_VECTOR)
		return (int)w->arg[4];
	if (row->clock != OF_FUTEX)
		return row->clock;
	if ((op & (unsigned)FUTEX_CMD_MASK) == FUTEX_WAIT)
		return FROM_BEGINNING;
	return (op & (unsigned)FUTEX_CMD_MASK) == FUTEX_LOCK_PI || op & FUTEX_CLOCK_REALTIME
		       ? CLOCK_REALTIME
		       : CLOCK_MONOTONIC;
}

/* A timespec's nanoseconds, as far as they fit. (A timeval's: to the second.) */
static int64_t wait_ns_of(int64_t seconds, int64_t part)
{
	const int64_t most = INT64_MAX / 1000000000 - 1;
	return (seconds < 0             ? 0
		       : seconds > most ? most
					: seconds) *
		       1000000000 +
	       (part > 0 && part < 1000000000 ? part : 0);
}

static void read_limit(struct call *c, const struct row *row)
{
	struct deadlock_wait *w = c->wait;
	struct timespec limit = {0}, now = {0};
	if (row->time_ms >= 0) {
		w->limit_ns = (uint64_t)(uint32_t)w->arg[row->time_ms] * 1000000;
		return;
	}
	if (!wait_read_memory(c, w->arg[row->time], &limit, sizeof limit))
		return;
	const int clock = wait_clock_of(w, row);
	w->limit_is_left = clock != FROM_BEGINNING;
	if (w->limit_is_left && clock_gettime(clock, &now) != 0)
		return;
	const int64_t left_ns =
		wait_ns_of(limit.tv_sec, limit.tv_nsec) - wait_ns_of(now.tv_sec, now.tv_nsec);
	w->limit_ns = left_ns > 0 ? (uint64_t)left_ns : 0;
}

void deadlock_wait_decode(struct deadlock_world *world, struct deadlock_wait *w)
{
	const struct row *row = NULL;
	struct call c = {.world = world,
		.process = deadlock_world_process(world, w->thread.pid),
		.wait = w,
		.fd = -1};
	w->kind = DEADLOCK_UNKNOWN;
	for (size_t i = 0; i < BASE_COUNT(rows) && !row; i++) {
		if (rows[i].call == w->call)
			row = &rows[i];
	}
	if (!row || !c.process) {
		w->is_external = true;
		return;
	}
	if (row->file >= 0)
		c.fd = (int)w->arg[row->file];
	w->limit_ns = 0;
	w->limit_is_left = false;
	if (row->time >= 0)
		w->is_timed = w->arg[row->time] != 0;
	if (row->time_ms >= 0)
		w->is_timed = (int)w->arg[row->time_ms] >= 0;
	if (w->is_timed)
		read_limit(&c, row);
	row->decode(&c);
	while (c.nr_epolls_read < c.nr_epolls)
		read_epoll(&c, c.epoll[c.nr_epolls_read++]);
	if (c.nr_epolls && !w->nr_keys && !w->is_timed)
		w->is_external = true; /* files may be added at any time */
}

void deadlock_wait_read(struct deadlock_wait *w)
{
	struct deadlock_syscall call;
	char text[256];
	const struct deadlock_thread *t = &w->thread;
	w->kind = DEADLOCK_RUNNING;
	if (t->state == 'D') {
		w->kind = DEADLOCK_DISK;
		return;
	}
	if (t->state != 'S' ||
		os_proc_read_task(t->pid, t->tid, "syscall", text, sizeof text) <= 0 ||
		!deadlock_parse_syscall(text, &call) || call.is_running)
		return;
	w->sp = call.sp;
	w->pc = call.pc;
	w->call = call.call;
	memcpy(w->arg, call.arg, sizeof w->arg);
	w->kind = DEADLOCK_UNKNOWN; /* until deadlock_wait_decode() */
	w->is_external = call.is_none;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.c - who could produce an event: processes that map the memory, hold the other end of the
 * pipe, are the child. Too many rather than too few: a deadlock is certain only if none of them
 * can. Where somebody who could not be looked into might be one of them, the key is unsure.
 */
#include "deadlock/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct pair {
	uint32_t key; /* index of accesses->access */
	pid_t pid;
};
struct blind { /* a process that could not be looked into */
	pid_t pid;
	bool in_memory, in_files; /* what could not be seen */
};
struct search {
	struct deadlock_world *world;
	const struct deadlock_accesses *before;
	struct deadlock_accesses *to;
	struct pair *pair;
	size_t capacity, nr;
	bool wants_memory, wants_files;
	bool wants_paths; /* of files that have a name */
	struct blind *blind;
	size_t blind_capacity, nr_blind;
	pid_t doubted; /* the last process because of which a key is unsure */
	pid_t task;    /* what is read: the process, or a thread of it, if the first has ended */
	pid_t told;    /* whose task that is, of files that BPF tells */
	char *buf;     /* BUF_BYTES, for maps */
};

enum { BUF_BYTES = 1 << 22 };

static int access_by_key(const void *a, const void *b)
{
	const struct deadlock_access *x = a, *y = b;
	const uint64_t m[4] = {x->key.kind, x->key.space, x->key.id, x->key.at};
	const uint64_t n[4] = {y->key.kind, y->key.space, y->key.id, y->key.at};
	for (int i = 0; i < 4; i++) {
		if (m[i] != n[i])
			return m[i] < n[i] ? -1 : 1;
	}
	return 0;
}

static int by_pair(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

const struct deadlock_access *deadlock_accesses_get(
	const struct deadlock_accesses *a, const struct deadlock_key *key)
{
	const struct deadlock_access wanted = {.key = *key};
	return a->nr ? bsearch(&wanted, a->access, a->nr, sizeof *a->access, access_by_key) : NULL;
}

/* Each process counts once, however much of it cannot be read. (All of it is read in a row.) */
static void doubt(struct search *s, size_t key, pid_t pid)
{
	s->to->access[key].is_unsure = true;
	s->to->nr_blind += s->doubted != pid;
	s->doubted = pid;
}

static enum base_status add_blind(struct search *s, pid_t pid, bool in_memory)
{
	const bool is_same = s->nr_blind && s->blind[s->nr_blind - 1].pid == pid;
	const enum base_status status =
		base_grow(&s->blind, &s->blind_capacity, s->nr_blind + 1, sizeof *s->blind);
	if (status != BASE_OK)
		return status;
	s->nr_blind += !is_same;
	struct blind *b = &s->blind[s->nr_blind - 1];
	*b = (struct blind){.pid = pid,
		.in_memory = in_memory || (is_same && b->in_memory),
		.in_files = !in_memory || (is_same && b->in_files)};
	return BASE_OK;
}

static bool is_forbidden(int error)
{
	return error == EACCES || error == EPERM;
}

static enum base_status access_add(struct search *s, size_t key, pid_t pid)
{
	enum base_status status = base_grow(&s->pair, &s->capacity, s->nr + 1, sizeof *s->pair);
	if (status == BASE_OK)
		s->pair[s->nr++] = (struct pair){.key = (uint32_t)key, .pid = pid};
	return status;
}

/* ---- keys whose process is in the key -------------------------------------------------------- */

struct sharers {
	struct search *s;
	size_t key;
	pid_t memory;
	enum base_status status;
};

static bool add_memory_sharer(void *ctx, uint64_t unused, uint64_t pid, uint64_t first)
{
	struct sharers *of = ctx;
	(void)unused;
	if (first == (uint64_t)of->memory)
		of->status = access_add(of->s, of->key, (pid_t)pid);
	return of->status == BASE_OK;
}

static enum base_status add_memory_sharers(struct search *s, size_t key, pid_t pid)
{
	struct sharers of = {.s = s, .key = key, .memory = deadlock_world_memory_of(s->world, pid)};
	of.status = access_add(s, key, of.memory);
	if (of.status == BASE_OK && pid != of.memory)
		of.status = access_add(s, key, pid);
	if (of.status == BASE_OK)
		base_map_each(deadlock_world_memories(s->world), add_memory_sharer, &of);
	return of.status;
}

static enum base_status add_obvious(struct search *s)
{
	enum base_status status = BASE_OK;
	for (size_t i = 0; status == BASE_OK && i < s->to->nr; i++) {
		const struct deadlock_key *k = &s->to->access[i].key;
		if (s->to->access[i].is_known)
			continue;
		switch (k->kind) {
		case DEADLOCK_KEY_FUTEX:
		case DEADLOCK_KEY_SPIN:
			status = add_memory_sharers(s, i, (pid_t)k->space);
			break;
		case DEADLOCK_KEY_THREAD_EXIT:
			status = access_add(s, i, (pid_t)k->space);
			break;
		case DEADLOCK_KEY_PROCESS_EXIT:
			status = access_add(s, i, (pid_t)k->id);
			break;
		case DEADLOCK_KEY_FUTEX_SHARED: /* whoever has the file open may map it */
			s->wants_memory = s->wants_paths = s->wants_files = true;
			break;
		case DEADLOCK_KEY_SIGNAL:
		case DEADLOCK_KEY_SYSV_SEM:
		case DEADLOCK_KEY_SYSV_QUEUE:
		case DEADLOCK_KEY_FIFO_READER:
		case DEADLOCK_KEY_FIFO_WRITER:
			break;
		case DEADLOCK_KEY_MQUEUE_DATA:
		case DEADLOCK_KEY_MQUEUE_ROOM:
		case DEADLOCK_KEY_FILE_LOCK:
			s->wants_paths = s->wants_files = true;
			break;
		case DEADLOCK_KEY_PIPE_DATA:
		case DEADLOCK_KEY_PIPE_ROOM:
			s->wants_paths |= k->space != 0;
			s->wants_files = true;
			break;
		default:
			s->wants_files = true;
			break;
		}
	}
	return status;
}

/* 0: not a number. */
static pid_t access_number_of(const char *name)
{
	char *end;
	const long n = strtol(name, &end, 10);
	return end != name && !*end && n > 0 && n <= INT32_MAX ? (pid_t)n : 0;
}

/* ---- shared memory --------------------------------------------------------------------------- */

static bool needs(const struct search *s, size_t k)
{
	return !s->to->access[k].is_known;
}

static enum base_status add_region(struct search *s, pid_t pid, const struct os_region *r)
{
	enum base_status status = BASE_OK;
	for (size_t k = 0; status == BASE_OK && r->shared && r->inode && k < s->to->nr; k++) {
		const struct deadlock_key *key = &s->to->access[k].key;
		if (key->kind == DEADLOCK_KEY_FUTEX_SHARED && key->space == r->device &&
			key->id == r->inode && needs(s, k))
			status = access_add(s, k, pid);
	}
	return status;
}

static enum base_status add_memory_by_text(struct search *s, pid_t pid)
{
	struct os_region r;
	enum base_status status = BASE_OK;
	ssize_t n = os_proc_read(s->task, "maps", s->buf, BUF_BYTES);
	const char *at = n > 0 ? s->buf : "";
	if ((n < 0 || n == BUF_BYTES - 1) && deadlock_task_has_memory(pid))
		status = add_blind(s, pid, true);
	while (status == BASE_OK && os_parse_region(&at, &r))
		status = add_region(s, pid, &r);
	return status;
}

/* Processes are many, and most share nothing with anybody: Linux 6.11 tells what they share without
 * writing a text of all that they map, which takes thirty times as long. */
static enum base_status access_add_memory(struct search *s, pid_t pid)
{
	struct os_region r;
	enum base_status status = BASE_OK;
	char path[48];
	snprintf(path, sizeof path, "/proc/%d/maps", (int)s->task);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum deadlock_shared shared = DEADLOCK_SHARED_REFUSED;
	for (uint64_t from = 0; fd >= 0 && status == BASE_OK; from = r.end) {
		shared = deadlock_shared_region(fd, from, &r);
		if (shared != DEADLOCK_SHARED_FOUND)
			break;
		status = add_region(s, pid, &r);
	}
	if (fd >= 0)
		(void)close(fd);
	return shared == DEADLOCK_SHARED_REFUSED ? add_memory_by_text(s, pid) : status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool access_is_pipe(const struct deadlock_file *f, const struct deadlock_key *k)
{
	return f->kind == DEADLOCK_FILE_PIPE && f->inode == k->id && f->device == k->space;
}

/* Its peer, or what stands for it: the listening socket at which it waits to be accepted. */
static bool is_peer(
	const struct search *s, const struct deadlock_file *f, const struct deadlock_key *k)
{
	return f->kind == DEADLOCK_FILE_SOCKET &&
	       (f->peer == k->id ||
		       deadlock_peers_get(deadlock_world_peers(s->world), k->id) == f->inode);
}

/* Whoever has it open may accept. */
static bool is_listener(const struct deadlock_file *f, const struct deadlock_key *k)
{
	return f->kind == DEADLOCK_FILE_SOCKET && f->inode == k->id;
}

static bool is_file_of_key(const struct deadlock_file *f, const struct deadlock_key *k)
{
	return f->kind == DEADLOCK_FILE_REGULAR && f->inode == k->id && f->device == k->space;
}

static bool is_mqueue(const struct deadlock_file *f, const struct deadlock_key *k)
{
	return f->kind == DEADLOCK_FILE_MQUEUE && f->inode == k->id && f->device == k->space;
}

/* By its kind and inode alone, which cost one call: may it be a file that the key is about? Of an
 * eventfd these do not tell. */
static bool is_candidate(
	const struct search *s, const struct deadlock_file *f, const struct deadlock_key *k)
{
	switch (k->kind) {
	case DEADLOCK_KEY_PIPE_DATA:
	case DEADLOCK_KEY_PIPE_ROOM:
		return access_is_pipe(f, k);
	case DEADLOCK_KEY_SOCKET_DATA:
	case DEADLOCK_KEY_SOCKET_ROOM:
		return is_peer(s, f, k);
	case DEADLOCK_KEY_SOCKET_BACKLOG:
		return is_listener(f, k);
	case DEADLOCK_KEY_EVENTFD_DATA:
	case DEADLOCK_KEY_EVENTFD_ROOM:
		return f->kind == DEADLOCK_FILE_EVENTFD;
	case DEADLOCK_KEY_MQUEUE_DATA:
	case DEADLOCK_KEY_MQUEUE_ROOM:
		return is_mqueue(f, k);
	case DEADLOCK_KEY_FILE_LOCK:
	case DEADLOCK_KEY_FUTEX_SHARED:
		return is_file_of_key(f, k);
	default:
		return false;
	}
}

/* Could this open file produce the key? */
static bool serves(
	const struct search *s, const struct deadlock_file *f, const struct deadlock_key *k)
{
	if (!is_candidate(s, f, k))
		return false;
	switch (k->kind) {
	case DEADLOCK_KEY_PIPE_DATA:
	case DEADLOCK_KEY_MQUEUE_DATA:
		return f->can_write;
	case DEADLOCK_KEY_PIPE_ROOM:
	case DEADLOCK_KEY_MQUEUE_ROOM:
		return f->can_read;
	case DEADLOCK_KEY_EVENTFD_DATA:
	case DEADLOCK_KEY_EVENTFD_ROOM:
		return f->inode == k->id;
	case DEADLOCK_KEY_FILE_LOCK: /* whoever took it, or inherited the open file */
		return f->has_lock || f->has_process_lock;
	default:
		return true;
	}
}

/* Is it an event of something that descriptors stand for? */
static bool is_event_of_file(const struct deadlock_key *k)
{
	static const enum deadlock_key_kind other[] = {DEADLOCK_KEY_FUTEX, DEADLOCK_KEY_THREAD_EXIT,
		DEADLOCK_KEY_SPIN, DEADLOCK_KEY_PROCESS_EXIT, DEADLOCK_KEY_SIGNAL,
		DEADLOCK_KEY_SYSV_SEM, DEADLOCK_KEY_SYSV_QUEUE};
	for (size_t i = 0; i < BASE_COUNT(other); i++) {
		if (k->kind == other[i])
			return false;
	}
	return true;
}

/* Descriptors are on their way in messages that any process with this socket may receive: the
 * kernel does not tell which ones. */
static bool is_carrier(pid_t pid, int fd, const struct deadlock_file *f)
{
	return f->kind == DEADLOCK_FILE_SOCKET && deadlock_socket_has_descriptors(pid, fd);
}

static void doubt_all_files(struct search *s, pid_t pid)
{
	for (size_t k = 0; k < s->to->nr; k++) {
		if (needs(s, k) && is_event_of_file(&s->to->access[k].key))
			doubt(s, k, pid);
	}
}

/* *ret_forbidden: it is not ours to see. */
static enum base_status access_add_file(struct search *s, pid_t pid, int fd, bool *ret_forbidden)
{
	struct deadlock_process p = {.pid = s->task};
	struct deadlock_file f;
	enum base_status status = BASE_OK;
	bool wanted = false;
	errno = 0;
	deadlock_file_kind_of(s->world, &p, fd, s->wants_paths, &f);
	*ret_forbidden = f.kind == DEADLOCK_FILE_NONE && is_forbidden(errno);
	if (is_carrier(s->task, fd, &f))
		doubt_all_files(s, pid);
	for (size_t k = 0; k < s->to->nr && !wanted; k++)
		wanted = needs(s, k) && is_candidate(s, &f, &s->to->access[k].key);
	if (!wanted)
		return BASE_OK;
	deadlock_file_of(s->world, &p, fd, &f);
	for (size_t k = 0; status == BASE_OK && k < s->to->nr; k++) {
		if (needs(s, k) && serves(s, &f, &s->to->access[k].key))
			status = access_add(s, k, pid);
	}
	return status;
}

static enum base_status add_files(struct search *s, pid_t pid)
{
	char path[48];
	enum base_status status = BASE_OK;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)s->task);
	DIR *dir = opendir(path);
	if (!dir)
		return is_forbidden(errno) ? add_blind(s, pid, false) : BASE_OK;
	for (const struct dirent *e; status == BASE_OK && (e = readdir(dir));) {
		char *end;
		bool is_hidden = false;
		long fd = strtol(e->d_name, &end, 10);
		if (!*end && end != e->d_name && fd >= 0 && fd <= INT32_MAX)
			status = access_add_file(s, pid, (int)fd, &is_hidden);
		if (status == BASE_OK && is_hidden)
			status = add_blind(s, pid, false);
	}
	closedir(dir);
	return status;
}

/* By what BPF tells: may it be a file that the key is about? Of a file with a name the kernel's own
 * number may be another than the one in the key. */
static bool may_be(struct search *s, mode_t mode, uint64_t inode, const struct deadlock_key *k)
{
	const struct deadlock_file socket = {.kind = DEADLOCK_FILE_SOCKET,
		.inode = inode,
		.peer = S_ISSOCK(mode) ? deadlock_peers_get(deadlock_world_peers(s->world), inode)
				       : 0};
	switch (k->kind) {
	case DEADLOCK_KEY_PIPE_DATA:
	case DEADLOCK_KEY_PIPE_ROOM:
		return S_ISFIFO(mode) && (inode == k->id || k->space != 0);
	case DEADLOCK_KEY_SOCKET_DATA:
	case DEADLOCK_KEY_SOCKET_ROOM:
		return S_ISSOCK(mode) && is_peer(s, &socket, k);
	case DEADLOCK_KEY_SOCKET_BACKLOG:
		return S_ISSOCK(mode) && is_listener(&socket, k);
	case DEADLOCK_KEY_MQUEUE_DATA:
	case DEADLOCK_KEY_MQUEUE_ROOM:
	case DEADLOCK_KEY_FILE_LOCK:
	case DEADLOCK_KEY_FUTEX_SHARED:
		return S_ISREG(mode) || S_ISDIR(mode);
	case DEADLOCK_KEY_EVENTFD_DATA:
	case DEADLOCK_KEY_EVENTFD_ROOM: /* from Linux 6.16 on they have the type of a file */
		return !(mode & S_IFMT) || S_ISREG(mode);
	default:
		return false;
	}
}

static enum base_status add_told_file(void *ctx, pid_t pid, int fd, mode_t mode, uint64_t inode)
{
	struct search *s = ctx;
	bool wanted = S_ISSOCK(mode), is_hidden = false;
	for (size_t k = 0; k < s->to->nr && !wanted; k++)
		wanted = needs(s, k) && may_be(s, mode, inode, &s->to->access[k].key);
	if (wanted && s->told != pid)
		s->task = deadlock_task_of_memory(pid);
	s->told = wanted ? pid : s->told;
	const enum base_status status =
		wanted && s->task ? access_add_file(s, pid, fd, &is_hidden) : BASE_OK;
	for (size_t k = 0; k < s->to->nr && is_hidden; k++) {
		const struct deadlock_key *key = &s->to->access[k].key;
		const bool is_other = S_ISREG(mode) && inode != key->id;
		if (needs(s, k) && may_be(s, mode, inode, key) && !is_other)
			doubt(s, k, pid);
	}
	return status;
}

/* ---- who could not be looked into ------------------------------------------------------------ */

static bool has_access(const struct deadlock_access *a, pid_t pid)
{
	for (size_t i = 0; i < a->nr_pids; i++) {
		if (a->pid[i] == pid)
			return true;
	}
	return false;
}

static bool is_of_session(const struct deadlock_access *a, pid_t session)
{
	for (size_t i = 0; i < a->nr_pids && session > 0; i++) {
		if (getsid(a->pid[i]) == session)
			return true;
	}
	return false;
}

/* What has no name is inherited: by descendants of the processes that have it, and by those of
 * their session, whose ancestors may have had it. */
static bool may_have_inherited(struct search *s, const struct deadlock_access *a, pid_t pid)
{
	enum { GENERATIONS = 64 };
	for (int i = 0; pid > 1 && i < GENERATIONS; i++) {
		const struct deadlock_process *p = deadlock_world_process(s->world, pid);
		if (!p || has_access(a, pid) || is_of_session(a, getsid(pid)))
			return true;
		pid = p->is_gone ? 0 : p->parent;
	}
	return false;
}

/* May the process share all of its memory? The kernel does not tell of another user's. */
static void doubt_memories(struct search *s)
{
	size_t nr;
	const struct deadlock_listed *list = deadlock_world_list(s->world, &nr);
	for (size_t i = 0; i < nr; i++) {
		if (deadlock_memory_is_told(list[i].pid))
			continue;
		for (size_t k = 0; k < s->to->nr; k++) {
			const struct deadlock_access *a = &s->to->access[k];
			if (a->key.kind == DEADLOCK_KEY_FUTEX && needs(s, k) &&
				may_have_inherited(s, a, list[i].pid) &&
				deadlock_memory_may_be_shared((pid_t)a->key.space, list[i].pid))
				doubt(s, k, list[i].pid);
		}
	}
}

static void doubt_blind(struct search *s)
{
	for (size_t b = 0; b < s->nr_blind; b++) {
		const struct blind *of = &s->blind[b];
		for (size_t k = 0; k < s->to->nr; k++) {
			const struct deadlock_access *a = &s->to->access[k];
			const bool is_memory = a->key.kind == DEADLOCK_KEY_FUTEX_SHARED;
			if (needs(s, k) && is_event_of_file(&a->key) &&
				(of->in_files || (of->in_memory && is_memory)) &&
				may_have_inherited(s, a, of->pid))
				doubt(s, k, of->pid);
		}
	}
}

/* ---- all of them ----------------------------------------------------------------------------- */

static enum base_status collect_keys(
	struct search *s, const struct deadlock_wait *wait, size_t nr_waits)
{
	size_t nr = 0, kept = 0;
	for (size_t i = 0; i < nr_waits; i++)
		nr += deadlock_wait_is_open(&wait[i]) ? 0 : wait[i].nr_keys;
	struct deadlock_access *a =
		base_arena_alloc(deadlock_world_arena(s->world), (nr + 1) * sizeof *a);
	if (!a)
		return BASE_ERR_NOMEM;
	nr = 0;
	for (size_t i = 0; i < nr_waits; i++) {
		for (size_t k = 0; k < wait[i].nr_keys && !deadlock_wait_is_open(&wait[i]); k++)
			a[nr++].key = wait[i].key[k];
	}
	if (nr)
		qsort(a, nr, sizeof *a, access_by_key);
	for (size_t i = 0; i < nr; i++) {
		if (!kept || access_by_key(&a[kept - 1], &a[i]) != 0)
			a[kept++] = a[i];
	}
	s->to->access = a;
	s->to->nr = kept;
	for (size_t i = 0; i < kept; i++) {
		const struct deadlock_access *old = deadlock_accesses_get(s->before, &a[i].key);
		if (old)
			a[i] = *old;
		a[i].is_known = old != NULL;
	}
	return BASE_OK;
}

static enum base_status access_distribute(struct search *s)
{
	size_t kept = 0;
	if (!s->nr)
		return BASE_OK;
	qsort(s->pair, s->nr, sizeof *s->pair, by_pair);
	pid_t *pid = base_arena_alloc(deadlock_world_arena(s->world), s->nr * sizeof *pid);
	if (!pid)
		return BASE_ERR_NOMEM;
	for (size_t i = 0; i < s->nr; i++) {
		struct deadlock_access *a = &s->to->access[s->pair[i].key];
		if (a->nr_pids && a->pid[a->nr_pids - 1] == s->pair[i].pid)
			continue;
		pid[kept] = s->pair[i].pid;
		if (!a->nr_pids)
			a->pid = &pid[kept];
		a->nr_pids++;
		kept++;
	}
	return BASE_OK;
}

static enum base_status search_proc(struct search *s)
{
	enum base_status status = BASE_OK;
	DIR *dir = opendir("/proc");
	s->buf = s->wants_memory ? base_alloc(BUF_BYTES) : NULL;
	if (s->wants_memory && !s->buf)
		status = BASE_ERR_NOMEM;
	for (const struct dirent *e; status == BASE_OK && dir && (e = readdir(dir));) {
		const pid_t pid = access_number_of(e->d_name);
		s->task = pid ? deadlock_task_of_memory(pid) : 0;
		if (!s->task)
			continue;
		if (s->wants_memory)
			status = access_add_memory(s, pid);
		if (status == BASE_OK && s->wants_files)
			status = add_files(s, pid);
	}
	if (dir)
		closedir(dir);
	base_free(s->buf);
	return status;
}

static enum base_status access_search_all(struct search *s)
{
	struct deadlock_tasks *tasks = deadlock_world_tasks(s->world);
	if (deadlock_world_core(s->world))
		return BASE_OK;
	if (s->wants_files && tasks) {
		struct base_err refused = {0}; /* then /proc tells */
		const size_t nr = s->nr;
		const enum base_status status =
			deadlock_tasks_files(tasks, add_told_file, s, &refused);
		if (status == BASE_ERR_NOMEM)
			return status;
		s->wants_files = status != BASE_OK;
		s->nr = status == BASE_OK ? s->nr : nr;
	}
	return s->wants_memory || s->wants_files ? search_proc(s) : BASE_OK;
}

bool deadlock_accesses_are_unsure(const struct deadlock_accesses *a, const struct deadlock_wait *w)
{
	for (size_t i = 0; i < w->nr_keys && !w->owner_is_exact; i++) {
		const struct deadlock_access *of = deadlock_accesses_get(a, &w->key[i]);
		if (of && of->is_unsure)
			return true;
	}
	return false;
}

void deadlock_accesses_own(const struct deadlock_accesses *a, struct deadlock_wait *w)
{
	if (w->kind != DEADLOCK_FILE_LOCK || w->owner || !w->nr_keys)
		return;
	const struct deadlock_access *holders = deadlock_accesses_get(a, &w->key[0]);
	if (!holders || holders->nr_pids != 1 || holders->is_unsure)
		return;
	w->owner = holders->pid[0];
	w->owner_is_exact = w->owner_is_process = true;
}

enum base_status deadlock_accesses_find(struct deadlock_world *w, const struct deadlock_wait *wait,
	size_t nr_waits, struct deadlock_accesses *accesses, struct base_err *err)
{
	const struct deadlock_accesses before = *accesses;
	struct search s = {.world = w, .before = &before, .to = accesses};
	*accesses = (struct deadlock_accesses){0};
	enum base_status status = collect_keys(&s, wait, nr_waits);
	if (status == BASE_OK)
		status = add_obvious(&s);
	if (status == BASE_OK)
		status = access_search_all(&s);
	if (before.nr_blind > accesses->nr_blind)
		accesses->nr_blind = before.nr_blind;
	if (status == BASE_OK)
		status = access_distribute(&s);
	if (status == BASE_OK)
		doubt_blind(&s);
	if (status == BASE_OK && !deadlock_world_core(w))
		doubt_memories(&s);
	if (!deadlock_world_has_memories(w))
		status = BASE_ERR_NOMEM;
	base_free(s.pair);
	base_free(s.blind);
	if (status != BASE_OK)
		return base_fail(err, status, "out of memory for who may wake whom");
	return BASE_OK;
}

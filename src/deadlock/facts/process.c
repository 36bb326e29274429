/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - processes as they were when they were first asked for: memory map, open files, keys.
 */
#include "deadlock/facts/facts.h"

#include "deadlock/facts/core.h"
#include "deadlock/facts/peers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* PF_KTHREAD */
enum { KERNEL_THREAD = 0x00200000, MQUEUE_MAGIC = 0x19800202 };
enum { TEXT_CHUNK = 1 << 16, TEXT_MAX = 1 << 24, ARENA_LIMIT = 1 << 30 };

struct deadlock_world {
	struct base_arena *arena;
	struct base_map process; /* pid -> struct deadlock_process * */
	struct base_map places;  /* of code, that have names: frames.c */
	struct base_map layouts; /* hash -> a process whose code is there: frames.c */
	struct deadlock_peers peers;
	const struct deadlock_core *core; /* NULL: live */
	struct deadlock_tasks *tasks;     /* NULL: /proc is read */
	bool has_peers, has_list, has_memories, memories_failed;
	struct base_map memories; /* pid -> the smallest of those that are one memory with it */
	struct deadlock_listed *list;
	size_t list_capacity, nr_listed;
	const char *locks; /* NULL: not read yet */
	int undo_set[DEADLOCK_UNDO_SETS_MAX];
	size_t nr_undo_sets;
};

/* ---- the world ------------------------------------------------------------------------------- */

enum base_status deadlock_world_open(struct deadlock_world **ret, struct base_err *err)
{
	struct deadlock_world *w = base_alloc(sizeof *w);
	*ret = NULL;
	if (w)
		w->arena = base_arena_new(ARENA_LIMIT);
	if (!w || !w->arena) {
		base_free(w);
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for a look at processes");
	}
	*ret = w;
	return BASE_OK;
}

enum base_status deadlock_world_open_core(
	const struct deadlock_core *core, struct deadlock_world **ret, struct base_err *err)
{
	enum base_status s = deadlock_world_open(ret, err);
	if (s == BASE_OK && *ret)
		(*ret)->core = core;
	return s;
}

const struct deadlock_core *deadlock_world_core(const struct deadlock_world *w)
{
	return w->core;
}

bool deadlock_world_read(
	const struct deadlock_world *w, pid_t pid, uint64_t address, void *buf, size_t size)
{
	return w->core ? deadlock_core_read(w->core, address, buf, size)
		       : deadlock_read(pid, address, buf, size);
}

bool deadlock_world_has_thread(const struct deadlock_world *w, pid_t pid, pid_t tid)
{
	uint64_t runs;
	if (tid <= 0)
		return false;
	return w->core ? deadlock_core_has_thread(w->core, tid) : deadlock_runs_of(pid, tid, &runs);
}

static bool close_process(void *ctx, uint64_t hi, uint64_t lo, uint64_t value)
{
	struct deadlock_process *p = (struct deadlock_process *)(uintptr_t)value;
	(void)ctx, (void)hi, (void)lo;
	if (p->unwinder && p->close_unwinder)
		p->close_unwinder(p->unwinder);
	p->unwinder = NULL;
	return true;
}

struct deadlock_world *deadlock_world_close(struct deadlock_world *w)
{
	if (!w)
		return NULL;
	base_map_each(&w->process, close_process, NULL);
	base_map_fini(&w->process);
	base_map_fini(&w->places);
	base_map_fini(&w->layouts);
	base_map_fini(&w->memories);
	base_free(w->list);
	deadlock_peers_fini(&w->peers);
	base_arena_free(w->arena);
	base_free(w);
	return NULL;
}

/* ---- System V semaphores that are given back at a process's end ------------------------------ */

void deadlock_world_note_undo(struct deadlock_world *w, int set, const struct sembuf *op, size_t nr)
{
	bool is_news = false;
	for (size_t i = 0; i < nr; i++)
		is_news |= (op[i].sem_flg & SEM_UNDO) != 0;
	for (size_t i = 0; i < w->nr_undo_sets; i++)
		is_news &= w->undo_set[i] != set;
	if (is_news && w->nr_undo_sets < DEADLOCK_UNDO_SETS_MAX)
		w->undo_set[w->nr_undo_sets++] = set;
}

const int *deadlock_world_undo_sets(const struct deadlock_world *w, size_t *ret_nr)
{
	*ret_nr = w->nr_undo_sets;
	return w->undo_set;
}

struct base_arena *deadlock_world_arena(struct deadlock_world *w)
{
	return w->arena;
}

struct base_map *deadlock_world_places(struct deadlock_world *w)
{
	return &w->places;
}

struct base_map *deadlock_world_layouts(struct deadlock_world *w)
{
	return &w->layouts;
}

static void process_read_process(struct deadlock_process *p)
{
	char text[4096];
	struct os_task_stat stat;
	p->is_gone = true;
	if (os_proc_read(p->pid, "stat", text, sizeof text) <= 0 || !os_parse_stat(text, &stat))
		return;
	p->parent = stat.parent;
	p->start_ticks = stat.start_ticks;
	if (os_proc_read(p->pid, "status", text, sizeof text) <= 0 ||
		!deadlock_parse_status(text, &p->status))
		return;
	p->shown_as = deadlock_shown_as(p->pid);
	p->has_timers = os_proc_read(p->pid, "timers", text, sizeof text) > 0;
	p->is_gone = false;
}

struct deadlock_process *deadlock_world_process(struct deadlock_world *w, pid_t pid)
{
	uint64_t value;
	if (base_map_get(&w->process, 0, (uint64_t)pid, &value))
		return (struct deadlock_process *)(uintptr_t)value;
	struct deadlock_process *p = base_arena_alloc(w->arena, sizeof *p);
	if (!p || base_map_put(&w->process, 0, (uint64_t)pid, (uintptr_t)p) != BASE_OK)
		return NULL;
	p->pid = pid;
	if (w->core) /* of its signal handlers nothing is known: there may be some */
		*p = (struct deadlock_process){.pid = pid,
			.status.caught = UINT64_MAX,
			.has_regions = true,
			.has_files = true};
	else
		process_read_process(p);
	return p;
}

static int by_pid(const void *a, const void *b)
{
	const struct deadlock_listed *x = a, *y = b;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool add_listed(struct deadlock_world *w, pid_t pid, pid_t parent)
{
	if (base_grow(&w->list, &w->list_capacity, w->nr_listed + 1, sizeof *w->list) != BASE_OK)
		return false;
	w->list[w->nr_listed++] = (struct deadlock_listed){.pid = pid, .parent = parent};
	return true;
}

void deadlock_world_use_tasks(struct deadlock_world *w, struct deadlock_tasks *tasks,
	const struct deadlock_sleeper *s, size_t nr)
{
	w->tasks = tasks;
	w->has_list = true;
	for (size_t i = 0; w->has_list && i < nr; i++)
		if (s[i].thread.tid == s[i].thread.pid)
			w->has_list = add_listed(w, s[i].thread.pid, s[i].thread.parent);
	if (!w->has_list) /* no memory: from /proc, when it is asked for */
		w->nr_listed = 0;
}

struct deadlock_tasks *deadlock_world_tasks(const struct deadlock_world *w)
{
	return w->tasks;
}

static void process_read_list(struct deadlock_world *w)
{
	DIR *dir = w->core ? NULL : opendir("/proc");
	for (const struct dirent *e; dir && (e = readdir(dir));) {
		char text[1024], *end;
		struct os_task_stat stat;
		long pid = strtol(e->d_name, &end, 10);
		if (*end || pid <= 0 || pid > INT32_MAX ||
			os_proc_read((pid_t)pid, "stat", text, sizeof text) <= 0 ||
			!os_parse_stat(text, &stat) || stat.flags & KERNEL_THREAD)
			continue;
		if (!add_listed(w, (pid_t)pid, stat.parent))
			break;
	}
	if (dir)
		closedir(dir);
	if (w->nr_listed)
		qsort(w->list, w->nr_listed, sizeof *w->list, by_pid);
}

const struct deadlock_listed *deadlock_world_list(struct deadlock_world *w, size_t *ret_nr)
{
	if (!w->has_list)
		process_read_list(w);
	w->has_list = true;
	*ret_nr = w->nr_listed;
	return w->list;
}

const struct base_map *deadlock_world_memories(struct deadlock_world *w)
{
	if (!w->has_memories && !w->core)
		w->memories_failed = deadlock_memories_read(w, &w->memories) != BASE_OK;
	w->has_memories = true;
	return &w->memories;
}

bool deadlock_world_has_memories(const struct deadlock_world *w)
{
	return !w->memories_failed;
}

pid_t deadlock_world_memory_of(struct deadlock_world *w, pid_t pid)
{
	uint64_t first = 0;
	return base_map_get(deadlock_world_memories(w), 0, (uint64_t)pid, &first) ? (pid_t)first
										  : pid;
}

/* ---- memory ---------------------------------------------------------------------------------- */

bool deadlock_read(pid_t pid, uint64_t address, void *buf, size_t size)
{
	ssize_t n = size ? os_read_memory(pid, address, buf, size) : -1;
	if (n < 0 && errno == ESRCH && deadlock_is_shown(pid, &pid))
		n = os_read_memory(pid, address, buf, size);
	return n > 0 && (size_t)n == size;
}

/* The whole of /proc/PID/NAME in the arena. NULL: unreadable, or too big. */
static char *read_whole(struct deadlock_world *w, pid_t pid, const char *name)
{
	for (size_t size = TEXT_CHUNK; size <= TEXT_MAX; size *= 4) {
		char *text = base_alloc(size), *copy = NULL;
		ssize_t n = text ? os_proc_read(pid, name, text, size) : -1;
		const bool is_whole = n < 0 || (size_t)n < size - 1;
		if (n >= 0 && is_whole)
			copy = base_arena_strndup(w->arena, text, (size_t)n);
		base_free(text);
		if (is_whole)
			return copy;
	}
	return NULL;
}

const char *deadlock_world_locks(struct deadlock_world *w)
{
	if (!w->locks)
		w->locks = w->core ? NULL : read_whole(w, getpid(), "../locks");
	if (!w->locks)
		w->locks = "";
	return w->locks;
}

void deadlock_process_regions(struct deadlock_world *w, struct deadlock_process *p)
{
	if (p->has_regions)
		return;
	p->has_regions = true;
	char *text = read_whole(w, deadlock_process_shown_as(p), "maps");
	const char *at = text ? text : "";
	struct os_region r;
	size_t nr = 0;
	while (os_parse_region(&at, &r))
		nr++;
	struct os_region *region = base_arena_alloc(w->arena, (nr + 1) * sizeof *region);
	if (!region)
		return;
	at = text ? text : "";
	for (size_t i = 0; i < nr && os_parse_region(&at, &region[i]); i++)
		;
	for (size_t i = 0; i < nr; i++) /* only now: a path ends where a line did */
		((char *)(uintptr_t)region[i].path)[region[i].path_length] = 0;
	p->region = region;
	p->nr_regions = nr;
}

const struct os_region *deadlock_region_at(const struct deadlock_process *p, uint64_t address)
{
	size_t low = BASE_PARTITION(i, p->nr_regions, p->region[i].end <= address);
	return low < p->nr_regions && address >= p->region[low].start ? &p->region[low] : NULL;
}

const struct os_region *deadlock_process_region(
	struct deadlock_world *w, struct deadlock_process *p, uint64_t address)
{
	deadlock_process_regions(w, p);
	return deadlock_region_at(p, address);
}

/* Anonymous shared memory is "/dev/zero (deleted)"; a memfd has no name, but any process that has
 * it open may map it. A segment of System V, /SYSV0000002a (deleted), is reached by its number, if
 * it has no key. Of a file the links count, not the text: sem_open() removes the name under which
 * it mapped the file and leaves another. Not known, or numbered otherwise where it is open: it has
 * one. */
static bool has_name(pid_t pid, const struct os_region *r)
{
	static const char deleted[] = " (deleted)";
	static const char *const nameless[] = {"/dev/zero", "/memfd:"};
	const size_t cut = sizeof deleted - 1;
	const bool is_deleted =
		r->path_length >= cut && !memcmp(r->path + r->path_length - cut, deleted, cut);
	char path[80];
	struct stat file;
	for (size_t i = 0; i < BASE_COUNT(nameless); i++) {
		const size_t length = strlen(nameless[i]);
		if (is_deleted && r->path_length >= length && !memcmp(r->path, nameless[i], length))
			return false;
	}
	if (!r->path_length || !memcmp(r->path, "/SYSV", r->path_length < 5 ? r->path_length : 5))
		return r->path_length != 0;
	snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", (int)pid,
		(unsigned long long)r->start, (unsigned long long)r->end);
	return stat(path, &file) != 0 || file.st_nlink != 0 || file.st_ino != r->inode ||
	       os_device(major(file.st_dev), minor(file.st_dev)) != r->device;
}

void deadlock_key_of_futex(struct deadlock_world *w, struct deadlock_process *p, uint64_t address,
	bool is_private, struct deadlock_key *ret)
{
	*ret = (struct deadlock_key){.kind = DEADLOCK_KEY_FUTEX,
		.space = (uint64_t)deadlock_world_memory_of(w, p->pid),
		.at = address};
	const struct os_region *r = is_private ? NULL : deadlock_process_region(w, p, address);
	if (r && r->shared) /* else: shared in name only */
		*ret = (struct deadlock_key){.kind = DEADLOCK_KEY_FUTEX_SHARED,
			.space = r->device,
			.id = r->inode,
			.at = address - r->start + r->offset,
			.is_named = has_name(deadlock_process_shown_as(p), r)};
}

/* ---- files ----------------------------------------------------------------------------------- */

/* "NAME:[123]" */
static bool inode_in(const char *link, const char *name, uint64_t *ret)
{
	size_t length = strlen(name);
	if (strncmp(link, name, length) != 0 || strncmp(link + length, ":[", 2) != 0)
		return false;
	*ret = strtoull(link + length + 2, NULL, 10);
	return true;
}

/* "lock:\t1: FLOCK ..." */
static void read_locks(pid_t pid, const char *text, struct deadlock_file *f)
{
	static const char before[] = "\nlock:\t";
	struct deadlock_file_lock lock;
	for (const char *at = text; (at = strstr(at, before));) {
		at += sizeof before - 1;
		const char *line = at;
		if (!deadlock_parse_file_lock(&line, &lock))
			continue;
		f->has_lock |= lock.is_flock || lock.is_ofd;
		f->has_process_lock |= !lock.is_flock && !lock.is_ofd;
		f->lock_is_inherited |= lock.is_flock && lock.pid != pid;
	}
}

static void process_read_info(const struct deadlock_process *p, int fd, struct deadlock_file *f)
{
	char name[48], text[4096];
	uint64_t flags = 0;
	snprintf(name, sizeof name, "fdinfo/%d", fd);
	if (os_proc_read(deadlock_process_shown_as(p), name, text, sizeof text) <= 0)
		return;
	if (f->kind == DEADLOCK_FILE_EVENTFD)
		(void)os_parse_field(text, "eventfd-id", 10, &f->inode);
	if (os_parse_field(text, "flags", 8, &flags)) {
		f->can_read = (flags & 3) != 1; /* O_WRONLY */
		f->can_write = (flags & 3) != 0;
	}
	if (f->kind == DEADLOCK_FILE_REGULAR)
		read_locks(p->pid, text, f);
}

bool deadlock_socket_has_descriptors(pid_t pid, int fd)
{
	char name[48], text[1024];
	uint64_t nr = 0;
	snprintf(name, sizeof name, "fdinfo/%d", fd);
	return os_proc_read(pid, name, text, sizeof text) > 0 &&
	       os_parse_field(text, "scm_fds", 10, &nr) && nr;
}

const struct deadlock_peers *deadlock_world_peers(struct deadlock_world *w)
{
	if (!w->has_peers)
		deadlock_peers_read(&w->peers);
	w->has_peers = true;
	return &w->peers;
}

static void read_stat(const char *path, struct deadlock_file *f)
{
	struct stat st;
	struct statfs fs;
	f->kind = DEADLOCK_FILE_OTHER;
	if (stat(path, &st) != 0)
		return;
	f->device = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev);
	f->inode = st.st_ino;
	f->is_named = st.st_nlink != 0;
	if (S_ISFIFO(st.st_mode))
		f->kind = DEADLOCK_FILE_PIPE;
	else if (S_ISREG(st.st_mode) && !major(st.st_dev) && statfs(path, &fs) == 0 &&
		 fs.f_type == MQUEUE_MAGIC)
		f->kind = DEADLOCK_FILE_MQUEUE;
	else if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		f->kind = DEADLOCK_FILE_REGULAR;
}

void deadlock_file_kind_of(struct deadlock_world *w, struct deadlock_process *p, int fd,
	bool with_paths, struct deadlock_file *ret)
{
	char path[64], link[160];
	*ret = (struct deadlock_file){0};
	if (w->core)
		return;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)deadlock_process_shown_as(p), fd);
	ssize_t n = readlink(path, link, sizeof link - 1);
	if (n < 0)
		return;
	link[n] = 0;
	if (inode_in(link, "pipe", &ret->inode)) {
		ret->kind = DEADLOCK_FILE_PIPE;
	} else if (inode_in(link, "socket", &ret->inode)) {
		ret->kind = DEADLOCK_FILE_SOCKET;
		ret->peer = deadlock_peers_get(deadlock_world_peers(w), ret->inode);
	} else if (!strcmp(link, "anon_inode:[eventfd]")) {
		ret->kind = DEADLOCK_FILE_EVENTFD;
	} else if (!strcmp(link, "anon_inode:[eventpoll]")) {
		ret->kind = DEADLOCK_FILE_EPOLL;
	} else if (*link == '/' && !with_paths) {
		ret->kind = DEADLOCK_FILE_OTHER;
	} else {
		read_stat(path, ret);
		ret->is_timer = !strcmp(link, "anon_inode:[timerfd]");
	}
}

void deadlock_file_of(
	struct deadlock_world *w, struct deadlock_process *p, int fd, struct deadlock_file *ret)
{
	deadlock_file_kind_of(w, p, fd, true, ret);
	if (ret->kind != DEADLOCK_FILE_NONE)
		process_read_info(p, fd, ret);
}

static int by_fd(const void *a, const void *b)
{
	const struct deadlock_open_file *x = a, *y = b;
	return (x->fd > y->fd) - (x->fd < y->fd);
}

void deadlock_process_files(struct deadlock_world *w, struct deadlock_process *p)
{
	char path[48];
	if (p->has_files)
		return;
	p->has_files = true;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)deadlock_process_shown_as(p));
	DIR *dir = opendir(path);
	struct deadlock_open_file *file = NULL;
	size_t capacity = 0, nr = 0;
	if (!dir) /* not ours to see */
		return;
	for (const struct dirent *e; (e = readdir(dir));) {
		char *end;
		long fd = strtol(e->d_name, &end, 10);
		if (*end || end == e->d_name || fd < 0 || fd > INT32_MAX)
			continue;
		if (base_grow(&file, &capacity, nr + 1, sizeof *file) != BASE_OK)
			break;
		file[nr].fd = (int)fd;
		deadlock_file_of(w, p, (int)fd, &file[nr].file);
		nr++;
	}
	closedir(dir);
	if (nr)
		qsort(file, nr, sizeof *file, by_fd);
	p->file = nr ? base_arena_alloc(w->arena, nr * sizeof *file) : NULL;
	if (p->file) {
		memcpy(p->file, file, nr * sizeof *file);
		p->nr_files = nr;
	}
	base_free(file);
}

/* Whoever reads makes room, whoever writes brings data: of a socket, at the other end. */
static bool key_of_use(const struct deadlock_file *f, bool writes, struct deadlock_key *ret)
{
	static const struct {
		enum deadlock_file_kind file;
		enum deadlock_key_kind room, data;
	} use[] = {{DEADLOCK_FILE_PIPE, DEADLOCK_KEY_PIPE_ROOM, DEADLOCK_KEY_PIPE_DATA},
		{DEADLOCK_FILE_SOCKET, DEADLOCK_KEY_SOCKET_ROOM, DEADLOCK_KEY_SOCKET_DATA},
		{DEADLOCK_FILE_MQUEUE, DEADLOCK_KEY_MQUEUE_ROOM, DEADLOCK_KEY_MQUEUE_DATA},
		{DEADLOCK_FILE_EVENTFD, DEADLOCK_KEY_EVENTFD_ROOM, DEADLOCK_KEY_EVENTFD_DATA}};
	bool is_socket = f->kind == DEADLOCK_FILE_SOCKET;
	bool has_device = f->kind == DEADLOCK_FILE_PIPE || f->kind == DEADLOCK_FILE_MQUEUE;
	*ret = (struct deadlock_key){
		.id = is_socket ? f->peer : f->inode, .space = has_device ? f->device : 0};
	for (size_t i = 0; i < BASE_COUNT(use); i++) {
		if (f->kind != use[i].file)
			continue;
		ret->kind = writes ? use[i].data : use[i].room;
		return !is_socket || f->peer;
	}
	return false;
}

bool deadlock_key_of_reading(const struct deadlock_file *f, struct deadlock_key *ret)
{
	return key_of_use(f, false, ret);
}

bool deadlock_key_of_writing(const struct deadlock_file *f, struct deadlock_key *ret)
{
	return key_of_use(f, true, ret);
}

size_t deadlock_keys_of_opening(
	const struct deadlock_file *f, uint64_t flags, struct deadlock_key ret[2])
{
	size_t nr = 0;
	const struct deadlock_key key = {.space = f->device, .id = f->inode};
	if ((flags & O_ACCMODE) != O_WRONLY) {
		ret[nr] = key;
		ret[nr++].kind = DEADLOCK_KEY_FIFO_READER;
	}
	if ((flags & O_ACCMODE) != O_RDONLY) {
		ret[nr] = key;
		ret[nr++].kind = DEADLOCK_KEY_FIFO_WRITER;
	}
	return nr;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tasks.c - the loader of bpf/deadlock.bpf.c. Without libbpf or clang it only says so. */
#include "deadlock/facts/facts.h"

#include "config.h"

#include <stdio.h>

#if !LONGPOLE_BPF

void deadlock_tasks_forget_walk(struct deadlock_tasks *t)
{
	(void)t;
}

struct deadlock_tasks *deadlock_tasks_open(char why[DEADLOCK_WHY_MAX])
{
	snprintf(why, DEADLOCK_WHY_MAX,
		"longpole was built without BPF (libbpf-dev and clang were missing)");
	return NULL;
}

struct deadlock_tasks *deadlock_tasks_close(struct deadlock_tasks *t)
{
	return t;
}

enum base_status deadlock_tasks_registers(
	struct deadlock_tasks *t, struct deadlock_wait *wait, size_t nr_waits, struct base_err *err)
{
	(void)t, (void)wait, (void)nr_waits;
	return base_fail(err, BASE_ERR_ENV, "built without BPF");
}

enum base_status deadlock_tasks_threads(struct deadlock_tasks *t, struct deadlock_thread **thread,
	size_t *capacity, size_t *nr, struct base_err *err)
{
	(void)t, (void)thread, (void)capacity, (void)nr;
	return base_fail(err, BASE_ERR_ENV, "built without BPF");
}

enum base_status deadlock_tasks_files(
	struct deadlock_tasks *t, deadlock_file_fn *each, void *ctx, struct base_err *err)
{
	(void)t, (void)each, (void)ctx;
	return base_fail(err, BASE_ERR_ENV, "built without BPF");
}

#else

#include <linux/types.h>

#include "deadlock/facts/task_abi.h"
#include "deadlock_bpf_code.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A machine has no more threads than that (PID_MAX_LIMIT). */
enum { BUFFER_FIRST = 1 << 18, BUFFER_MAX = 1 << 30 };
/* The inode of /proc/self/ns/pid where pids are the machine's own. */
#define FIRST_PID_NAMESPACE 0xeffffffcu

/* Of so few an iterator each costs less than one of all threads. */
enum { PROCESSES_MAX = 16 };

enum { ITERATOR_THREADS, ITERATOR_REGISTERS, ITERATOR_FILES, ITERATOR_NR };

struct deadlock_tasks {
	struct bpf_object *object;
	struct bpf_link *link[ITERATOR_NR];
	struct bpf_program *registers;
	int walk_fd;                           /* -1: the iterator is used */
	const struct deadlock_task_list *list; /* of `walk`; the kernel writes it */
	char *buf;
	size_t capacity;
};

static bool tasks_refuse(char why[DEADLOCK_WHY_MAX], const char *what, int error)
{
	error = error < 0 ? -error : error;
	snprintf(why, DEADLOCK_WHY_MAX, "%s: %s%s", what, strerror(error),
		error == EPERM ? " (needs root)" : "");
	return false;
}

/* Before Linux 6.7 `walk` cannot be loaded; the rest can. */
static int load_object(struct deadlock_tasks *t, bool has_walk)
{
	struct bpf_object_open_opts opts = {.sz = sizeof opts, .object_name = "longpole_tasks"};
	bpf_object__close(t->object);
	t->object = bpf_object__open_mem(deadlock_bpf_code, sizeof deadlock_bpf_code, &opts);
	struct bpf_program *tasks_walk =
		t->object ? bpf_object__find_program_by_name(t->object, "walk") : NULL;
	if (!tasks_walk)
		return t->object ? -ENOENT : -errno;
	(void)bpf_program__set_autoload(tasks_walk, has_walk);
	const int error = bpf_object__load(t->object);
	t->walk_fd = has_walk && !error ? bpf_program__fd(tasks_walk) : -1;
	return error;
}

static void map_list(struct deadlock_tasks *t)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(t->object, "tasks");
	void *list = t->walk_fd >= 0 && map ? mmap(NULL, sizeof *t->list, PROT_READ, MAP_SHARED,
						      bpf_map__fd(map), 0)
					    : MAP_FAILED;
	if (list == MAP_FAILED)
		t->walk_fd = -1;
	else
		t->list = list;
}

static bool tasks_load(struct deadlock_tasks *t, char why[DEADLOCK_WHY_MAX])
{
	static const char *const name[ITERATOR_NR] = {"threads", "registers", "files"};
	struct stat namespace;
	if (stat("/proc/self/ns/pid", &namespace) != 0 || namespace.st_ino != FIRST_PID_NAMESPACE) {
		snprintf(why, DEADLOCK_WHY_MAX,
			"BPF knows threads by the machine's pids, not by this container's");
		return false;
	}
	int error = load_object(t, true);
	if (error)
		error = load_object(t, false);
	if (error)
		return tasks_refuse(why, "loading BPF programs", error);
	map_list(t);
	t->registers = bpf_object__find_program_by_name(t->object, "registers");
	for (int i = 0; i < ITERATOR_NR; i++) {
		const struct bpf_program *p = bpf_object__find_program_by_name(t->object, name[i]);
		t->link[i] = p ? bpf_program__attach_iter(p, NULL) : NULL;
		if (!t->link[i])
			return tasks_refuse(why, "a task iterator", errno);
	}
	return true;
}

struct deadlock_tasks *deadlock_tasks_open(char why[DEADLOCK_WHY_MAX])
{
	struct deadlock_tasks *t = base_alloc(sizeof *t);
	if (!t) {
		snprintf(why, DEADLOCK_WHY_MAX, "no memory");
		return NULL;
	}
	libbpf_set_print(NULL); /* libraries do not print */
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	if (tasks_load(t, why))
		return t;
	return deadlock_tasks_close(t);
}

struct deadlock_tasks *deadlock_tasks_close(struct deadlock_tasks *t)
{
	if (!t)
		return NULL;
	for (int i = 0; i < ITERATOR_NR; i++)
		bpf_link__destroy(t->link[i]);
	if (t->list)
		(void)munmap((void *)(uintptr_t)t->list, sizeof *t->list);
	bpf_object__close(t->object);
	base_free(t->buf);
	base_free(t);
	return NULL;
}

static enum base_status tasks_make_room(struct deadlock_tasks *t, struct base_err *err)
{
	size_t capacity = t->capacity ? t->capacity * 2 : BUFFER_FIRST;
	char *buf = capacity <= BUFFER_MAX ? base_realloc(t->buf, t->capacity, capacity) : NULL;
	if (!buf)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for the list of threads");
	t->buf = buf;
	t->capacity = capacity;
	return BASE_OK;
}

/* One pass over the iterator's threads into t->buf. */
static enum base_status tasks_pass(struct deadlock_tasks *t, const struct bpf_link *link,
	size_t *ret_length, struct base_err *err)
{
	size_t length = 0;
	ssize_t n;
	enum base_status s = BASE_OK;
	int fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		return base_fail_errno(err, errno, "creating a task iterator");
	for (;;) {
		if (length == t->capacity && (s = tasks_make_room(t, err)) != BASE_OK)
			break;
		n = read(fd, t->buf + length, t->capacity - length);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			s = base_fail_errno(err, errno, "reading a task iterator");
		if (n <= 0)
			break;
		length += (size_t)n;
	}
	close(fd);
	*ret_length = length;
	return s;
}

static char tasks_state_of(const struct deadlock_task *t)
{
	enum { INTERRUPTIBLE = 1, UNINTERRUPTIBLE = 2, STOPPED = 4, TRACED = 8 };
	if (t->state & DEADLOCK_TASK_DEAD)
		return 'Z';
	return t->state & TRACED            ? 't'
	       : t->state & STOPPED         ? 'T'
	       : t->state & INTERRUPTIBLE   ? 'S'
	       : t->state & UNINTERRUPTIBLE ? 'D'
					    : 'R';
}

void deadlock_tasks_forget_walk(struct deadlock_tasks *t)
{
	t->walk_fd = -1;
}

/* All threads, by `walk`. False: by the iterator, please. */
static bool tasks_walk(const struct deadlock_tasks *t)
{
	struct bpf_test_run_opts opts = {.sz = sizeof opts};
	return t->walk_fd >= 0 && bpf_prog_test_run_opts(t->walk_fd, &opts) == 0 &&
	       !t->list->is_cut;
}

static int tasks_by_tid(const void *a, const void *b)
{
	const struct deadlock_thread *x = a, *y = b;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static enum base_status copy_threads(const void *tasks, size_t nr, struct deadlock_thread **thread,
	size_t *capacity, struct base_err *err)
{
	struct deadlock_task task;
	const uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
	bool is_sorted = true; /* mostly: a process that is older than another may have newer
				  threads */
	enum base_status s = base_grow(thread, capacity, nr + 1, sizeof **thread);
	if (s != BASE_OK)
		return base_fail(err, s, "out of memory for the list of threads");
	for (size_t i = 0; i < nr; i++) {
		memcpy(&task, (const char *)tasks + i * sizeof task, sizeof task);
		struct deadlock_thread *out = &(*thread)[i];
		*out = (struct deadlock_thread){.pid = (pid_t)task.pid,
			.tid = (pid_t)task.tid,
			.parent = (pid_t)task.parent,
			.start_ticks = task.start_ns / tick_ns,
			.runs = task.runs,
			.state = tasks_state_of(&task)};
		memcpy(out->name, task.name, sizeof out->name);
		out->name[sizeof out->name - 1] = 0;
		is_sorted = is_sorted && (!i || out[-1].tid < out->tid);
	}
	if (!is_sorted)
		qsort(*thread, nr, sizeof **thread, tasks_by_tid);
	return BASE_OK;
}

enum base_status deadlock_tasks_threads(struct deadlock_tasks *t, struct deadlock_thread **thread,
	size_t *capacity, size_t *nr, struct base_err *err)
{
	size_t length = 0;
	enum base_status s = BASE_OK;
	const bool walked = tasks_walk(t);
	*nr = 0;
	if (!walked)
		s = tasks_pass(t, t->link[ITERATOR_THREADS], &length, err);
	if (s != BASE_OK)
		return s;
	const size_t found = walked ? t->list->nr : length / sizeof(struct deadlock_task);
	s = copy_threads(
		walked ? (const void *)t->list->task : t->buf, found, thread, capacity, err);
	*nr = s == BASE_OK ? found : 0;
	return s;
}

enum base_status deadlock_tasks_files(
	struct deadlock_tasks *t, deadlock_file_fn *each, void *ctx, struct base_err *err)
{
	struct deadlock_task_file f;
	size_t length = 0;
	enum base_status s = tasks_pass(t, t->link[ITERATOR_FILES], &length, err);
	for (size_t i = 0; s == BASE_OK && i + sizeof f <= length; i += sizeof f) {
		memcpy(&f, t->buf + i, sizeof f);
		s = each(ctx, (pid_t)f.pid, (int)f.fd, (mode_t)f.mode, f.inode);
	}
	return s;
}

static void copy_registers(struct deadlock_wait *w, const struct deadlock_task_registers *t)
{
	const __u64 *v = t->value;
	if (v[DEADLOCK_SP] != w->sp || v[DEADLOCK_IP] != w->pc || t->runs != w->thread.runs)
		return;
	w->registers = (struct user_regs_struct){.r15 = v[DEADLOCK_R15],
		.r14 = v[DEADLOCK_R14],
		.r13 = v[DEADLOCK_R13],
		.r12 = v[DEADLOCK_R12],
		.rbp = v[DEADLOCK_BP],
		.rbx = v[DEADLOCK_BX],
		.r11 = v[DEADLOCK_R11],
		.r10 = v[DEADLOCK_R10],
		.r9 = v[DEADLOCK_R9],
		.r8 = v[DEADLOCK_R8],
		.rax = v[DEADLOCK_AX],
		.rcx = v[DEADLOCK_CX],
		.rdx = v[DEADLOCK_DX],
		.rsi = v[DEADLOCK_SI],
		.rdi = v[DEADLOCK_DI],
		.orig_rax = v[DEADLOCK_ORIG_AX],
		.rip = v[DEADLOCK_IP],
		.cs = v[DEADLOCK_CS],
		.eflags = v[DEADLOCK_FLAGS],
		.rsp = v[DEADLOCK_SP],
		.ss = v[DEADLOCK_SS],
		.fs_base = t->fs_base,
		.gs_base = t->gs_base};
	w->registers_source = DEADLOCK_REGISTERS_BPF;
}

/* What a pass of `registers` found, for those that wait. */
static enum base_status tasks_take_registers(struct deadlock_tasks *t, const struct bpf_link *link,
	const struct base_map *index, struct deadlock_wait *wait, struct base_err *err)
{
	struct deadlock_task_registers r;
	size_t length = 0;
	const enum base_status s = tasks_pass(t, link, &length, err);
	for (size_t i = 0; s == BASE_OK && i + sizeof r <= length; i += sizeof r) {
		uint64_t at;
		memcpy(&r, t->buf + i, sizeof r);
		if (base_map_get(index, 0, r.tid, &at))
			copy_registers(&wait[at], &r);
	}
	return s;
}

/* The same of one process. Kernels before 6.1 look at all. */
static enum base_status take_registers_of(struct deadlock_tasks *t, pid_t pid,
	const struct base_map *index, struct deadlock_wait *wait, struct base_err *err)
{
	union bpf_iter_link_info info = {.task.pid = (__u32)pid};
	struct bpf_iter_attach_opts opts;
	memset(&opts, 0, sizeof opts); /* libbpf looks at the padding, too */
	opts.sz = sizeof opts;
	opts.link_info = &info;
	opts.link_info_len = sizeof info;
	struct bpf_link *link = bpf_program__attach_iter(t->registers, &opts);
	if (!link && errno == ESRCH) /* it is gone */
		return BASE_OK;
	if (!link)
		return base_fail_errno(err, errno, "an iterator of one process's threads");
	const enum base_status s = tasks_take_registers(t, link, index, wait, err);
	bpf_link__destroy(link);
	return s;
}

/* The processes of all waits; 0: they are more than PROCESSES_MAX. */
static size_t processes_of(const struct deadlock_wait *wait, size_t nr_waits, pid_t *pid)
{
	size_t nr = 0;
	for (size_t i = 0; i < nr_waits; i++) {
		size_t k = nr;
		while (k && pid[k - 1] != wait[i].thread.pid)
			k--;
		if (!k && nr == PROCESSES_MAX)
			return 0;
		if (!k)
			pid[nr++] = wait[i].thread.pid;
	}
	return nr;
}

enum base_status deadlock_tasks_registers(
	struct deadlock_tasks *t, struct deadlock_wait *wait, size_t nr_waits, struct base_err *err)
{
	struct base_map index = {0};
	enum base_status s = BASE_OK;
	pid_t pid[PROCESSES_MAX];
	const size_t nr = processes_of(wait, nr_waits, pid);
	for (size_t i = 0; s == BASE_OK && i < nr_waits; i++) {
		s = base_map_put(&index, 0, (uint64_t)wait[i].thread.tid, i);
		if (s != BASE_OK)
			(void)base_fail(err, s, "out of memory for registers");
	}
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		s = take_registers_of(t, pid[i], &index, wait, err);
	if (s == BASE_OK && !nr && nr_waits)
		s = tasks_take_registers(t, t->link[ITERATOR_REGISTERS], &index, wait, err);
	base_map_fini(&index);
	return s;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor.c - threads that have not run between two looks, and since when. The source's
 * was_asleep flag, without a kernel of our own: a thread that was never put on a processor since
 * then has slept. The table is ours: being looked at must not change anybody's age.
 */
#include "deadlock/facts/facts.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

struct deadlock_monitor {
	struct deadlock_tasks *tasks; /* NULL: /proc */
	char why[DEADLOCK_WHY_MAX];
	struct deadlock_thread *thread; /* of this pass */
	size_t thread_capacity, nr_threads;
	struct deadlock_sleeper *now, *before; /* sorted by tid */
	size_t now_capacity, nr_now, before_capacity, nr_before;
	uint64_t nr_passes;
};

enum base_status deadlock_monitor_open(
	bool use_bpf, struct deadlock_monitor **ret, struct base_err *err)
{
	struct deadlock_monitor *m = base_alloc(sizeof *m);
	*ret = m;
	if (!m)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for a monitor");
	if (use_bpf)
		m->tasks = deadlock_tasks_open(m->why);
	else
		memcpy(m->why, "not asked for", sizeof "not asked for");
	return BASE_OK;
}

struct deadlock_monitor *deadlock_monitor_close(struct deadlock_monitor *m)
{
	if (!m)
		return NULL;
	deadlock_tasks_close(m->tasks);
	base_free(m->thread);
	base_free(m->now);
	base_free(m->before);
	base_free(m);
	return NULL;
}

const char *deadlock_monitor_without_bpf(const struct deadlock_monitor *m)
{
	return m->tasks ? NULL : m->why;
}

struct deadlock_tasks *deadlock_monitor_tasks(const struct deadlock_monitor *m)
{
	return m->tasks;
}

const struct deadlock_sleeper *deadlock_monitor_threads(
	const struct deadlock_monitor *m, size_t *ret_nr)
{
	*ret_nr = m->nr_now;
	return m->now;
}

static bool monitor_is_same(const struct deadlock_thread *a, const struct deadlock_thread *b)
{
	return a->tid == b->tid && a->pid == b->pid && a->start_ticks == b->start_ticks;
}

void deadlock_monitor_forgive(struct deadlock_monitor *m, const struct deadlock_thread *t)
{
	const size_t low = BASE_PARTITION(i, m->nr_now, m->now[i].thread.tid < t->tid);
	if (low < m->nr_now && monitor_is_same(&m->now[low].thread, t))
		m->now[low].thread.runs = t->runs;
}

/* ---- from /proc ------------------------------------------------------------------------------ */

static const struct deadlock_sleeper *monitor_find(const struct deadlock_monitor *m, pid_t tid)
{
	size_t low = BASE_PARTITION(i, m->nr_before, m->before[i].thread.tid < tid);
	return low < m->nr_before && m->before[low].thread.tid == tid ? &m->before[low] : NULL;
}

enum { KERNEL_THREAD = 0x00200000 };

/* One file of three numbers if it has not run since, else two. */
static bool monitor_read_thread(
	const struct deadlock_monitor *m, pid_t pid, pid_t tid, struct deadlock_thread *ret)
{
	struct os_task_stat stat;
	char text[1024];
	uint64_t runs;
	const struct deadlock_sleeper *old = monitor_find(m, tid);
	if (!deadlock_runs_of(pid, tid, &runs))
		return false;
	if (old && old->thread.pid == pid && old->thread.runs == runs) {
		*ret = old->thread;
		return true;
	}
	if (os_proc_read_task(pid, tid, "stat", text, sizeof text) <= 0 ||
		!os_parse_stat(text, &stat) || stat.flags & KERNEL_THREAD)
		return false;
	*ret = (struct deadlock_thread){.pid = pid,
		.tid = tid,
		.start_ticks = stat.start_ticks,
		.runs = runs,
		.state = stat.state};
	memcpy(ret->name, stat.name, sizeof ret->name);
	return true;
}

static pid_t monitor_number_of(const char *name)
{
	char *end;
	long n = isdigit((unsigned char)*name) ? strtol(name, &end, 10) : 0;
	return n > 0 && n <= INT32_MAX && !*end ? (pid_t)n : 0;
}

static enum base_status monitor_read_process(
	struct deadlock_monitor *m, pid_t pid, struct base_err *err)
{
	char path[64] = "/proc/";
	struct base_str s = {0};
	base_str_addf(&s, "/proc/%d/task", (int)pid);
	if (s.failed || s.length >= sizeof path) {
		base_str_fini(&s);
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for a path");
	}
	memcpy(path, s.buf, s.length + 1);
	base_str_fini(&s);
	DIR *dir = opendir(path);
	enum base_status status = BASE_OK;
	if (!dir)
		return BASE_OK; /* it ended */
	for (const struct dirent *e; status == BASE_OK && (e = readdir(dir));) {
		pid_t tid = monitor_number_of(e->d_name);
		if (!tid)
			continue;
		status = base_grow(
			&m->thread, &m->thread_capacity, m->nr_threads + 1, sizeof *m->thread);
		if (status != BASE_OK)
			(void)base_fail(err, status, "out of memory for the list of threads");
		else if (monitor_read_thread(m, pid, tid, &m->thread[m->nr_threads]))
			m->nr_threads++;
	}
	closedir(dir);
	return status;
}

static int monitor_by_tid(const void *a, const void *b)
{
	const struct deadlock_thread *x = a, *y = b;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static enum base_status monitor_read_threads(struct deadlock_monitor *m, struct base_err *err)
{
	DIR *dir = opendir("/proc");
	enum base_status s = BASE_OK;
	m->nr_threads = 0;
	if (!dir)
		return base_fail(err, BASE_ERR_ENV, "/proc cannot be read: is it mounted?");
	for (const struct dirent *e; s == BASE_OK && (e = readdir(dir));) {
		pid_t pid = monitor_number_of(e->d_name);
		if (pid)
			s = monitor_read_process(m, pid, err);
	}
	closedir(dir);
	if (m->nr_threads)
		qsort(m->thread, m->nr_threads, sizeof *m->thread, monitor_by_tid);
	return s;
}

/* ---- a pass ---------------------------------------------------------------------------------- */

/* Both tables are sorted by tid. */
static void monitor_compare(struct deadlock_monitor *m, uint64_t now_ns)
{
	size_t old = 0;
	for (size_t i = 0; i < m->nr_threads; i++) {
		struct deadlock_sleeper *s = &m->now[i];
		const struct deadlock_thread *t = &m->thread[i];
		while (old < m->nr_before && m->before[old].thread.tid < t->tid)
			old++;
		const struct deadlock_sleeper *b = old < m->nr_before ? &m->before[old] : NULL;
		*s = (struct deadlock_sleeper){.thread = *t, .since_ns = now_ns};
		if (b && monitor_is_same(&b->thread, t) && b->thread.runs == t->runs) {
			s->since_ns = b->since_ns;
			s->nr_looks = b->nr_looks + 1;
		}
	}
	m->nr_now = m->nr_threads;
}

enum base_status deadlock_monitor_pass(
	struct deadlock_monitor *m, uint64_t now_ns, struct base_err *err)
{
	struct deadlock_sleeper *table = m->before;
	size_t capacity = m->before_capacity;
	m->before = m->now;
	m->before_capacity = m->now_capacity;
	m->nr_before = m->nr_now;
	m->now = table;
	m->now_capacity = capacity;
	m->nr_now = 0;
	enum base_status s = m->tasks ? deadlock_tasks_threads(m->tasks, &m->thread,
						&m->thread_capacity, &m->nr_threads, err)
				      : monitor_read_threads(m, err);
	if (s != BASE_OK)
		return s;
	s = base_grow(&m->now, &m->now_capacity, m->nr_threads + 1, sizeof *m->now);
	if (s != BASE_OK)
		return base_fail(err, s, "out of memory for the table of threads");
	monitor_compare(m, now_ns);
	m->nr_passes++;
	return BASE_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - events of a kernel trace, sorted and written as records of a whole system.
 *
 * The process and the name of a thread are often said after its first event, so a first
 * pass learns that. A thread that is born with a number that was in use, or has a new image, is a
 * new stream.
 */
#include "format/kernel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CPUS_MAX = 1 << 12, NESTED_MAX = 8, COMM_MAX = 15 };

struct task {
	uint32_t tid, pid, name, stream, process;
	bool on, dying;
	uint64_t last_ns; /* where only locks are known */
};
struct lock {
	uint32_t object, holder, depth; /* holder 0: free */
};
struct cpu {
	uint32_t tid;
	bool known;
	unsigned nr_contexts;
	struct {
		uint8_t type;
		uint16_t number;
		uint32_t name;
	} context[NESTED_MAX];
};
struct format_sched {
	struct format_sched_event *event;
	size_t nr, capacity;
	struct base_strtab *names;       /* ids are the trace's strings */
	struct base_map pid_of, name_of; /* tid -> process, first name */
	bool failed;
	const struct format_started *started; /* NULL: not known */
	uint32_t started_command;             /* its line, as a name */
	format_sched_taker take;              /* NULL: they are kept */
	void *take_ctx;
	/* while writing */
	struct trace_writer *to;
	struct base_err *err;
	enum base_status status;
	uint64_t origin_ns, nr_lost, nr_guessed, nr_switches;
	uint64_t nr_locks_used;
	uint32_t nr_strings, nr_streams, nr_processes, next_token;
	bool has_waking;
	struct task *task;
	size_t nr_tasks, task_capacity;
	struct base_map by_tid;     /* -> index + 1 of task */
	struct base_map processes;  /* pid -> definition of its present image */
	struct base_map contexts;   /* (type, number), (cpu, name) -> stream */
	struct base_map by_address; /* (pid, address) -> index of lock */
	struct lock *lock;
	size_t nr_locks, lock_capacity;
	struct cpu *cpu;
	size_t nr_cpus, cpu_capacity;
};

/* ---- gathering ------------------------------------------------------------------------------- */

struct format_sched *format_sched_new(void)
{
	struct format_sched *s = base_alloc(sizeof *s);
	if (s)
		s->names = base_strtab_new();
	return s && !s->names ? format_sched_free(s) : s;
}

void format_sched_started(struct format_sched *s, const struct format_started *started)
{
	if (!started || !started->pid)
		return;
	s->started = started;
	s->started_command =
		format_sched_name(s, base_str_text(&started->command), started->command.length);
}

/* Does this image of the process have the program's name (the kernel keeps 15 characters of it)? */
static bool kernel_is_started(const struct format_sched *s, uint32_t pid, const char *name)
{
	const char *line = s->started ? base_str_text(&s->started->command) : "";
	size_t length = strcspn(line, " "), nr = strlen(name);
	for (size_t i = length; i-- > 0;)
		if (line[i] == '/') {
			line += i + 1;
			length -= i + 1;
			break;
		}
	return s->started && pid == s->started->pid && nr &&
	       (nr == length || (nr == COMM_MAX && nr < length)) && !strncmp(line, name, nr);
}

struct format_sched *format_sched_free(struct format_sched *s)
{
	if (!s)
		return NULL;
	base_free(s->event);
	base_free(s->task);
	base_free(s->cpu);
	base_free(s->lock);
	base_strtab_free(s->names);
	struct base_map *maps[] = {
		&s->pid_of, &s->name_of, &s->by_tid, &s->processes, &s->contexts, &s->by_address};
	for (size_t i = 0; i < BASE_COUNT(maps); i++)
		base_map_fini(maps[i]);
	base_free(s);
	return NULL;
}

uint32_t format_sched_name(struct format_sched *s, const char *text, size_t length)
{
	struct base_str raw = {0}, clean = {0};
	uint32_t id = 0;
	base_str_add_bytes(&raw, text, strnlen(text, length));
	format_clean_add(&clean, base_str_text(&raw));
	s->failed |=
		raw.failed || clean.failed ||
		base_strtab_intern(s->names, base_str_text(&clean), clean.length, &id) != BASE_OK;
	base_str_fini(&raw);
	base_str_fini(&clean);
	return id;
}

void format_sched_give_to(struct format_sched *s, format_sched_taker take, void *ctx)
{
	s->take = take;
	s->take_ctx = ctx;
}

enum base_status format_sched_give(struct format_sched *s, struct base_err *err)
{
	size_t nr = s->nr;
	s->nr = 0;
	if (s->failed)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for names");
	return s->take(s->take_ctx, s->event, nr, s->names, err);
}

enum base_status format_sched_add(
	struct format_sched *s, const struct format_sched_event *e, struct base_err *err)
{
	enum base_status given = BASE_OK;
	if (s->take && s->nr == FORMAT_SCHED_GIVEN)
		given = format_sched_give(s, err);
	if (given != BASE_OK)
		return given;
	if (s->nr >= FORMAT_SCHED_EVENTS_MAX)
		return base_fail(err, BASE_ERR_LIMIT,
			"more than %d events: import a shorter part of the recording",
			FORMAT_SCHED_EVENTS_MAX);
	enum base_status st = base_grow(&s->event, &s->capacity, s->nr + 1, sizeof *s->event);
	if (st != BASE_OK || s->failed)
		return base_fail(
			err, BASE_ERR_NOMEM, "out of memory for %zu {event|events}", s->nr);
	s->event[s->nr] = *e;
	s->event[s->nr].order = (uint32_t)s->nr;
	s->nr++;
	return BASE_OK;
}

static int kernel_by_time(const void *a, const void *b)
{
	const struct format_sched_event *x = a, *y = b;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* ---- records --------------------------------------------------------------------------------- */

static void put(struct format_sched *s, struct trace_record r)
{
	if (s->status == BASE_OK)
		s->status = trace_writer_put(s->to, &r, s->err);
}

#define PUT(s, at, by, what, ...)                                                                  \
	put(s, (struct trace_record){.time_ns = (at),                                              \
		       .stream = (by),                                                             \
		       .kind = TRACE_##what,                                                       \
		       .u.what = {__VA_ARGS__}})

static void kernel_keep(struct format_sched *s, enum base_status status)
{
	if (status != BASE_OK && s->status == BASE_OK)
		s->status = base_fail(s->err, status, "out of memory for threads");
}

/* Texts become definitions when they are first used. */
static void define_strings(struct format_sched *s)
{
	for (; s->nr_strings + 1 < base_strtab_count(s->names); s->nr_strings++) {
		const char *text = base_strtab_get(s->names, s->nr_strings + 1);
		PUT(s, 0, 0, string, .string = s->nr_strings + 1,
			.text = {text, (uint32_t)strlen(text)});
	}
}

static uint32_t kernel_named(struct format_sched *s, const char *fmt, const char *a, unsigned b)
{
	struct base_str text = {0};
	base_str_addf(&text, "%s", a);
	base_str_addf(&text, "%s%u", fmt, b);
	uint32_t id = format_sched_name(s, base_str_text(&text), text.length);
	base_str_fini(&text);
	define_strings(s);
	return id;
}

/* ---- threads --------------------------------------------------------------------------------- */

static uint32_t pid_of(const struct format_sched *s, uint32_t tid)
{
	uint64_t pid;
	return base_map_get(&s->pid_of, 0, tid, &pid) && pid ? (uint32_t)pid : tid;
}

/* Threads of the kernel are told by their names: no format says it otherwise. */
static bool is_kernel_thread(const char *name)
{
	static const char *const prefix[] = {"kworker/", "ksoftirqd/", "migration/", "rcu_", "rcuo",
		"rcub/", "rcuc/", "cpuhp/", "kthreadd", "kswapd", "kcompactd", "khugepaged",
		"khungtaskd", "kdevtmpfs", "kauditd", "oom_reaper", "writeback", "irq/", "jbd2/",
		"idle_inject/", "watchdogd", "kblockd", "scsi_", "ksmd"};
	for (size_t i = 0; i < BASE_COUNT(prefix); i++)
		if (!strncmp(name, prefix[i], strlen(prefix[i])))
			return true;
	return false;
}

static uint32_t new_process(struct format_sched *s, uint32_t pid, uint32_t name, uint32_t parent)
{
	uint32_t id = ++s->nr_processes;
	const char *text = base_strtab_get(s->names, name);
	bool kernel = is_kernel_thread(text);
	uint32_t command = kernel_is_started(s, pid, text) ? s->started_command : name;
	PUT(s, 0, 0, process, .process = id, .parent = kernel ? 0 : parent, .pid = pid,
		.name = name, .command = kernel ? 0 : command);
	kernel_keep(s, base_map_put(&s->processes, 0, pid, id));
	return id;
}

static void new_stream(struct format_sched *s, struct task *t)
{
	uint64_t process;
	if (!base_map_get(&s->processes, 0, t->pid, &process)) {
		uint64_t leader = t->name, first;
		if (t->pid != t->tid && base_map_get(&s->name_of, 0, t->pid, &first))
			leader = first;
		process = new_process(s, t->pid, (uint32_t)leader, 0);
	}
	t->process = (uint32_t)process;
	t->stream = ++s->nr_streams;
	PUT(s, 0, 0, stream, .stream = t->stream, .process = t->process, .tid = t->tid,
		.name = t->name);
}

/* Whatever had the number before, it is another one now. */
static struct task *new_task(struct format_sched *s, uint32_t tid, uint32_t pid, uint32_t name)
{
	if (s->nr_tasks >= FORMAT_SCHED_TASKS_MAX) {
		kernel_keep(s, BASE_ERR_LIMIT);
		return NULL;
	}
	kernel_keep(s, base_grow(&s->task, &s->task_capacity, s->nr_tasks + 1, sizeof *s->task));
	kernel_keep(s, base_map_put(&s->by_tid, 0, tid, s->nr_tasks + 1));
	if (s->status != BASE_OK)
		return NULL;
	struct task *t = &s->task[s->nr_tasks++];
	*t = (struct task){.tid = tid, .pid = pid, .name = name};
	new_stream(s, t);
	return t;
}

/* NULL: the idle task, nobody known, or no memory. Valid until the next new task. */
static struct task *task_of(struct format_sched *s, uint32_t tid)
{
	uint64_t found, name = 0;
	if (!tid || tid == FORMAT_SCHED_UNKNOWN || s->status != BASE_OK)
		return NULL;
	if (base_map_get(&s->by_tid, 0, tid, &found))
		return &s->task[found - 1];
	if (!base_map_get(&s->name_of, 0, tid, &name) || !name)
		name = kernel_named(s, " ", "thread", tid);
	return new_task(s, tid, pid_of(s, tid), (uint32_t)name);
}

static struct cpu *kernel_cpu_of(struct format_sched *s, uint32_t number)
{
	if (number >= CPUS_MAX)
		return NULL;
	if (number >= s->nr_cpus) {
		kernel_keep(s,
			base_grow(&s->cpu, &s->cpu_capacity, (size_t)number + 1, sizeof *s->cpu));
		if (s->status != BASE_OK)
			return NULL;
		s->nr_cpus = (size_t)number + 1;
	}
	return &s->cpu[number];
}

static uint32_t context_stream(
	struct format_sched *s, uint32_t cpu, unsigned type, unsigned number, uint32_t name)
{
	static const char *const softirq[] = {"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK",
		"IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"};
	static const char *const kind[] = {
#define X(n, text) text,
		TRACE_CONTEXTS(X)
#undef X
	};
	uint64_t hi = (uint64_t)type << 32 | number, lo = (uint64_t)cpu << 32 | name, found;
	if (base_map_get(&s->contexts, hi, lo, &found))
		return (uint32_t)found;
	const char *text = kind[type < TRACE_CONTEXT_NR ? type : 0];
	if (!name && type == TRACE_CONTEXT_softirq && number < BASE_COUNT(softirq))
		text = softirq[number];
	uint32_t own = name ? name : format_sched_name(s, text, strlen(text));
	uint32_t title = kernel_named(s, " on processor ", base_strtab_get(s->names, own), cpu);
	uint32_t stream = ++s->nr_streams;
	PUT(s, 0, 0, stream, .stream = stream, .name = title);
	PUT(s, 0, 0, context, .stream = stream, .type = type, .number = number, .processor = cpu,
		.name = own);
	kernel_keep(s, base_map_put(&s->contexts, hi, lo, stream));
	return stream;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void kernel_leave(struct format_sched *s, uint32_t tid, const struct format_sched_event *e,
	uint64_t at, bool runnable)
{
	struct task *t = task_of(s, tid);
	if (!t)
		return;
	PUT(s, at, t->stream, cpu_out, .processor = e->cpu, .preempted = runnable);
	t->on = false;
	if (!t->dying || runnable)
		return;
	if (t->tid == t->pid)
		PUT(s, at, t->stream, process_end, .status = -1);
	else
		PUT(s, at, t->stream, thread_end);
	base_map_remove(&s->by_tid, 0, t->tid);
}

static void kernel_on_switch(
	struct format_sched *s, const struct format_sched_event *e, uint64_t at)
{
	struct cpu *c = kernel_cpu_of(s, e->cpu);
	if (!c)
		return;
	if (c->known && e->actor != FORMAT_SCHED_UNKNOWN && c->tid != e->actor) {
		/* a switch was not shown: now, so that each is on one processor at most */
		s->nr_guessed++;
		kernel_leave(s, c->tid, e, at, false);
		struct task *t = task_of(s, e->actor);
		if (t)
			PUT(s, at, t->stream, cpu_in, .processor = e->cpu);
	}
	kernel_leave(s, e->actor == FORMAT_SCHED_UNKNOWN && c->known ? c->tid : e->actor, e, at,
		e->runnable);
	c->tid = e->tid;
	c->known = true;
	struct task *next = task_of(s, e->tid);
	if (!next)
		return;
	next->on = true;
	PUT(s, at, next->stream, cpu_in, .processor = e->cpu);
}

/* The stream of whose doing it is: an interrupt's, else the thread's, else the idle processor's. */
static uint32_t doer(struct format_sched *s, const struct format_sched_event *e)
{
	struct cpu *c = kernel_cpu_of(s, e->cpu);
	if (c && c->nr_contexts) {
		unsigned i = (c->nr_contexts < NESTED_MAX ? c->nr_contexts : NESTED_MAX) - 1;
		return context_stream(
			s, e->cpu, c->context[i].type, c->context[i].number, c->context[i].name);
	}
	if (e->context)
		return context_stream(s, e->cpu, e->context, 0, 0);
	uint32_t tid = e->actor == FORMAT_SCHED_UNKNOWN && c && c->known ? c->tid : e->actor;
	struct task *t = task_of(s, tid);
	return t ? t->stream : context_stream(s, e->cpu, TRACE_CONTEXT_idle, 0, 0);
}

static void kernel_on_wake(struct format_sched *s, const struct format_sched_event *e, uint64_t at)
{
	uint32_t by = doer(s, e);
	struct task *woken = task_of(s, e->tid);
	if (woken && by != woken->stream)
		PUT(s, at, by, wake, .woken = woken->stream);
}

static void kernel_on_fork(struct format_sched *s, const struct format_sched_event *e, uint64_t at)
{
	struct cpu *c = kernel_cpu_of(s, e->cpu);
	uint32_t parent_tid = e->actor == FORMAT_SCHED_UNKNOWN && c && c->known ? c->tid : e->actor;
	struct task *parent = task_of(s, parent_tid);
	if (!e->tid || e->tid == FORMAT_SCHED_UNKNOWN || s->status != BASE_OK)
		return;
	uint32_t by = parent ? parent->stream : 0, process = parent ? parent->process : 0;
	uint32_t parent_name = parent ? parent->name : 0;
	uint32_t pid = e->pid ? e->pid : pid_of(s, e->tid), token = ++s->next_token;
	uint32_t name = e->name ? e->name : parent_name;
	if (pid == e->tid) { /* a process of its own, whatever had that number before */
		new_process(s, pid, name, process);
		if (by)
			PUT(s, at, by, process_fork, .token = token);
	} else if (by) {
		PUT(s, at, by, thread_create, .token = token);
	}
	struct task *child = new_task(s, e->tid, pid, name);
	if (!child)
		return;
	if (pid == e->tid)
		PUT(s, at, child->stream, process_begin, .token = by ? token : 0);
	else
		PUT(s, at, child->stream, thread_begin, .token = by ? token : 0);
}

static void kernel_on_exec(struct format_sched *s, const struct format_sched_event *e, uint64_t at)
{
	struct cpu *c = kernel_cpu_of(s, e->cpu);
	struct task *t =
		task_of(s, e->actor == FORMAT_SCHED_UNKNOWN && c && c->known ? c->tid : e->actor);
	if (!t)
		return;
	const char *path = base_strtab_get(s->names, e->name), *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	uint32_t name = *base ? format_sched_name(s, base, strlen(base)) : t->name;
	define_strings(s);
	uint32_t before = t->process, tid = t->tid, pid = t->pid;
	bool on = t->on;
	PUT(s, at, t->stream, process_exec, .site = 0);
	new_process(s, pid, name, before);
	t = new_task(s, tid, pid, name);
	if (!t)
		return;
	t->on = on;
	PUT(s, at, t->stream, process_begin, .token = 0);
}

static void on_context(struct format_sched *s, const struct format_sched_event *e)
{
	struct cpu *c = kernel_cpu_of(s, e->cpu);
	if (!c)
		return;
	if (e->kind == FORMAT_SCHED_context_end) {
		c->nr_contexts -= c->nr_contexts > 0;
		return;
	}
	if (c->nr_contexts < NESTED_MAX) {
		c->context[c->nr_contexts].type = e->context;
		c->context[c->nr_contexts].number = e->number;
		c->context[c->nr_contexts].name = e->name;
	}
	c->nr_contexts++;
}

static void on_call(struct format_sched *s, const struct format_sched_event *e, uint64_t at)
{
	struct cpu *c = kernel_cpu_of(s, e->cpu);
	struct task *t =
		task_of(s, e->actor == FORMAT_SCHED_UNKNOWN && c && c->known ? c->tid : e->actor);
	if (!t)
		return;
	if (e->kind == FORMAT_SCHED_call_begin)
		PUT(s, at, t->stream, call_begin, .number = e->number);
	else
		PUT(s, at, t->stream, call_end, .number = e->number, .result = (int64_t)e->value);
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* NULL: no memory. */
static struct lock *kernel_lock_at(struct format_sched *s, const struct task *t, uint64_t address)
{
	uint64_t found;
	if (base_map_get(&s->by_address, t->pid, address, &found))
		return &s->lock[found];
	kernel_keep(s, base_grow(&s->lock, &s->lock_capacity, s->nr_locks + 1, sizeof *s->lock));
	kernel_keep(s, base_map_put(&s->by_address, t->pid, address, s->nr_locks));
	if (s->status != BASE_OK)
		return NULL;
	struct lock *l = &s->lock[s->nr_locks++];
	*l = (struct lock){.object = (uint32_t)s->nr_locks};
	struct base_str name = {0};
	base_str_addf(&name, "0x%" PRIx64, address); /* where it was made is not known */
	uint32_t name_id = format_sched_name(s, base_str_text(&name), name.length);
	base_str_fini(&name);
	define_strings(s);
	PUT(s, 0, 0, object, .object = l->object, .process = t->process, .type = TRACE_OBJECT_mutex,
		.address = address, .name = name_id);
	return l;
}

/* A thread of which only the locks are known begins with its first and ends with its last. */
static void kernel_seen_at(struct format_sched *s, struct task *t, uint64_t at)
{
	if (!s->nr_switches && !t->on) {
		if (t->tid == t->pid)
			PUT(s, at, t->stream, process_begin, .token = 0);
		PUT(s, at, t->stream, thread_begin, .token = 0);
	}
	t->on |= !s->nr_switches;
	t->last_ns = at;
}

/* An unlock is told after it was done, so another thread may have the lock before: what it takes
 * has been given back. (So is a mutex that its thread waits without, for a condition.) */
static void kernel_take_lock(struct format_sched *s, struct lock *l, struct task *t, uint64_t at)
{
	uint64_t holder;
	if (l->holder == t->tid) {
		l->depth++;
		return;
	}
	if (l->holder && base_map_get(&s->by_tid, 0, l->holder, &holder)) {
		struct task *before = &s->task[holder - 1];
		before->last_ns = before->last_ns + 1 < at ? at - 1 : before->last_ns;
		PUT(s, before->last_ns, before->stream, lock_release, .object = l->object);
	}
	PUT(s, at, t->stream, lock_acquire, .object = l->object);
	l->holder = t->tid;
	l->depth = 1;
}

static void kernel_on_lock(struct format_sched *s, const struct format_sched_event *e, uint64_t at)
{
	struct task *t = task_of(s, e->actor);
	struct lock *l = t ? kernel_lock_at(s, t, e->value) : NULL;
	if (!l)
		return;
	kernel_seen_at(s, t, at);
	if (e->kind == FORMAT_SCHED_lock_taken)
		kernel_take_lock(s, l, t, at);
	else if (e->kind == FORMAT_SCHED_lock_failed)
		PUT(s, at, t->stream, lock_fail, .object = l->object);
	else if (e->kind == FORMAT_SCHED_lock_wanted && l->holder && l->holder != t->tid)
		PUT(s, at, t->stream, lock_wait, .object = l->object);
	else if (e->kind == FORMAT_SCHED_lock_released && l->holder == t->tid && !--l->depth) {
		PUT(s, at, t->stream, lock_release, .object = l->object);
		l->holder = 0;
	}
}

static void kernel_end_threads(struct format_sched *s)
{
	for (size_t i = 0; i < s->nr_tasks && !s->nr_switches; i++) {
		const struct task *t = &s->task[i];
		PUT(s, t->last_ns, t->stream, thread_end);
	}
}

static void write_event(struct format_sched *s, const struct format_sched_event *e)
{
	uint64_t at = e->time_ns - s->origin_ns;
	struct task *t;
	switch ((enum format_sched_kind)e->kind) {
	case FORMAT_SCHED_switch:
		kernel_on_switch(s, e, at);
		break;
	case FORMAT_SCHED_wakeup:
		if (s->has_waking)
			break;
		/* fall through */
	case FORMAT_SCHED_waking:
	case FORMAT_SCHED_wake_new:
		kernel_on_wake(s, e, at);
		break;
	case FORMAT_SCHED_fork:
		kernel_on_fork(s, e, at);
		break;
	case FORMAT_SCHED_exec:
		kernel_on_exec(s, e, at);
		break;
	case FORMAT_SCHED_exit:
		t = task_of(s, e->actor);
		if (t)
			t->dying = true;
		break;
	case FORMAT_SCHED_context_begin:
	case FORMAT_SCHED_context_end:
		on_context(s, e);
		break;
	case FORMAT_SCHED_call_begin:
	case FORMAT_SCHED_call_end:
		on_call(s, e, at);
		break;
	case FORMAT_SCHED_lock_wanted:
	case FORMAT_SCHED_lock_taken:
	case FORMAT_SCHED_lock_failed:
	case FORMAT_SCHED_lock_released:
		kernel_on_lock(s, e, at);
		break;
	case FORMAT_SCHED_lost:
		s->nr_lost += e->value;
		break;
	case FORMAT_SCHED_name:
		break; /* the first pass has seen it */
	}
}

/* ---- both passes ----------------------------------------------------------------------------- */

static void learn_name(struct format_sched *s, uint32_t tid, uint32_t name)
{
	uint64_t known;
	if (tid && tid != FORMAT_SCHED_UNKNOWN && name &&
		!base_map_get(&s->name_of, 0, tid, &known))
		kernel_keep(s, base_map_put(&s->name_of, 0, tid, name));
}

static void kernel_learn(struct format_sched *s, const struct format_sched_event *e)
{
	s->has_waking |= e->kind == FORMAT_SCHED_waking;
	s->nr_switches += e->kind == FORMAT_SCHED_switch;
	s->nr_locks_used += e->kind == FORMAT_SCHED_lock_taken;
	if (e->kind == FORMAT_SCHED_context_begin || e->kind == FORMAT_SCHED_context_end)
		return;
	if (e->kind != FORMAT_SCHED_exec && e->kind != FORMAT_SCHED_fork)
		learn_name(s, e->tid, e->name);
	learn_name(s, e->actor, e->actor_name);
	if (e->pid && e->tid && e->tid != FORMAT_SCHED_UNKNOWN)
		kernel_keep(s, base_map_put(&s->pid_of, 0, e->tid, e->pid));
}

static void kernel_note(struct format_sched *s, struct base_str *notes)
{
	struct base_str events = {0};
	base_str_add_count(&events, s->nr);
	base_str_addf(notes, "%s {event|events} of %u {thread|threads}\n", base_str_text(&events),
		s->nr_streams);
	base_str_fini(&events);
	if (!s->nr_switches)
		base_str_add(notes, "there are locks in it and no switches: how a thread waits for "
				    "anything else is not known\n");
	else if (!s->has_waking)
		base_str_add(notes, "there is no sched_waking: wakers are taken from sched_wakeup, "
				    "which some kernels run on the woken thread's processor\n");
	format_note_count(notes, s->nr_lost, "the recorder lost %s {event|events}");
	format_note_count(notes, s->nr_guessed, "%s {switch is|switches are} missing: guessed");
	trace_writer_count(s->to, TRACE_DIAG_perf_lost, s->nr_lost);
	trace_writer_count(s->to, TRACE_DIAG_switches_lost, s->nr_guessed);
}

enum base_status format_sched_write(struct format_sched *s, struct trace_writer *to,
	struct base_str *notes, struct base_err *err)
{
	s->to = to;
	s->err = err;
	if (s->nr)
		qsort(s->event, s->nr, sizeof *s->event, kernel_by_time);
	for (size_t i = 0; i < s->nr && s->status == BASE_OK; i++)
		kernel_learn(s, &s->event[i]);
	if (s->status == BASE_OK && !s->nr_switches && !s->nr_locks_used)
		return base_fail(err, BASE_ERR_FOREIGN,
			"there is no sched_switch in it: without, nobody can say who waited "
			"(record sched:sched_switch and sched:sched_waking)");
	s->origin_ns = s->nr ? s->event[0].time_ns : 0;
	define_strings(s);
	for (size_t i = 0; i < s->nr && s->status == BASE_OK; i++)
		write_event(s, &s->event[i]);
	kernel_end_threads(s);
	if (s->failed)
		kernel_keep(s, BASE_ERR_NOMEM);
	if (s->status == BASE_OK)
		kernel_note(s, notes);
	return s->status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - the kernel's events of each task, put in order with the ring's records.
 *
 * A tid is used again, by an exec and by later threads: fork and exec events are marks in its
 * queue. What lies behind the last mark belongs to the ring thread that begins there, or, when none
 * does in time, to a stream made for it.
 */
#include "record/convert.h"
#include "record/jit.h"
#include "symbol/symbol.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	HOLD_NS = 2000000000,  /* a stdio call's beginning is in the ring only when it has ended */
	ATTACH_NS = 200000000, /* how long a new image may take to attach */
	/* a thread that did not attach, lived no longer and was mentioned by nobody gets no
	 * stream */
	SHORT_LIFE_NS = 20000000,
	FAULT_RUN_NS = 100000,   /* of the processor's time, in a fault, between sleeps */
	UNATTACHED_NS = 5000000, /* ... and is not even counted as not recorded */
	EVENT_COMMAND_MAX = 4096,
};

struct record_task *record_converter_task(struct record_converter *c, uint32_t tid, uint32_t pid)
{
	uint64_t known;
	if (base_map_get(&c->tasks, 0, tid, &known))
		return c->task[known];
	struct record_task *task = base_alloc(sizeof *task);
	if (!task ||
		base_grow(&c->task, &c->task_capacity, c->nr_tasks + 1, sizeof(void *)) !=
			BASE_OK ||
		base_map_put(&c->tasks, 0, tid, c->nr_tasks) != BASE_OK) {
		base_free(task);
		record_sink_fail(&c->sink, BASE_ERR_NOMEM, "no memory for one more task");
		return NULL;
	}
	c->task[c->nr_tasks++] = task;
	task->tid = tid;
	task->pid = pid;
	return task;
}

void record_task_set_live(struct record_converter *c, struct record_task *leader, uint64_t live)
{
	c->nr_live = c->nr_live + (live > 0) - (leader->live > 0);
	leader->live = live;
}

/* (each task is pointed to by its present owner alone) */
static void event_set_owner(struct record_task *task, struct record_thread *owner)
{
	if (task->owner && task->owner != owner)
		task->owner->task = NULL;
	task->owner = owner;
}

static void set_exit(struct record_converter *c, struct record_task *task, uint64_t exit_ns)
{
	c->nr_exited = c->nr_exited + (exit_ns > 0) - (task->exit_ns > 0);
	task->exit_ns = exit_ns;
}

/* ---- queues ---------------------------------------------------------------------------------- */

static bool event_is_mark(enum record_event_kind kind)
{
	return kind == RECORD_EVENT_fork || kind == RECORD_EVENT_exec;
}

static bool event_is_switch(enum record_event_kind kind)
{
	return kind >= RECORD_EVENT_out && kind <= RECORD_EVENT_in;
}

static bool ends_life(enum record_event_kind kind)
{
	return event_is_mark(kind) || kind == RECORD_EVENT_exit || kind == RECORD_EVENT_process_end;
}

static void queue_event(
	struct record_converter *c, struct record_task *task, const struct record_event *e)
{
	if (task->first && task->first * 2 >= task->nr) {
		task->nr -= task->first;
		memmove(task->event, task->event + task->first, task->nr * sizeof *task->event);
		task->first = 0;
	}
	if (base_grow(&task->event, &task->capacity, task->nr + 1, sizeof *e) != BASE_OK) {
		base_free(e->frame);
		record_sink_fail(&c->sink, BASE_ERR_NOMEM, "no memory for one more kernel event");
		return;
	}
	if (c->python.switched && event_is_switch(e->kind))
		c->python.switched(
			c->python.ctx, task->tid, e->time_ns, e->kind == RECORD_EVENT_in);
	size_t at = task->nr++;
	for (; at > task->first && task->event[at - 1].time_ns > e->time_ns; at--)
		task->event[at] = task->event[at - 1];
	task->event[at] = *e;
	task->nr_marks += event_is_mark(e->kind);
	task->nr_ends += ends_life(e->kind);
	c->nr_waiting++;
}

/*
 * The kernel tells of a fault when it is over: whoever slept and has done nothing since slept in
 * it. It may have slept several times, for the memory map's lock or a page that another reads.
 */
static void queue_fault(struct record_task *task, uint64_t time_ns)
{
	size_t at = task->nr;
	while (at > task->first && task->event[at - 1].time_ns > time_ns)
		at--;
	for (uint64_t after_ns = time_ns; at > task->first; at--) {
		struct record_event *e = &task->event[at - 1];
		if (e->kind == RECORD_EVENT_in) {
			if (after_ns - e->time_ns > FAULT_RUN_NS)
				break;
		} else if (e->kind == RECORD_EVENT_out) {
			e->kind = RECORD_EVENT_out_fault;
		} else if (e->kind != RECORD_EVENT_preempted) {
			break;
		}
		after_ns = e->time_ns;
	}
}

static struct record_event event_next_event(struct record_converter *c, struct record_task *task)
{
	c->nr_waiting--;
	task->nr_marks -= event_is_mark(task->event[task->first].kind);
	task->nr_ends -= ends_life(task->event[task->first].kind);
	return task->event[task->first++];
}

/* ---- processes that did not attach ----------------------------------------------------------- */

static void add_map(struct record_converter *c, struct record_task *leader, struct record_map map)
{
	if (leader->nr_maps >= RECORD_MAPS_MAX) {
		leader->has_all_code = false;
		return;
	}
	if (base_grow(&leader->map, &leader->map_capacity, leader->nr_maps + 1, sizeof map) !=
		BASE_OK)
		record_sink_fail(&c->sink, BASE_ERR_NOMEM, "no memory for one more mapping");
	else
		leader->map[leader->nr_maps++] = map;
}

static void inherit_maps(
	struct record_converter *c, struct record_task *child, const struct record_task *parent)
{
	child->nr_maps = 0;
	child->nr_execs++;
	child->has_all_code = parent->has_all_code;
	for (size_t i = 0; i < parent->nr_maps; i++)
		add_map(c, child, parent->map[i]);
}

/* It is gone already: what was started is known all the same, but not what that has become since.
 */
static void use_started(struct record_converter *c, struct record_image *image)
{
	struct base_str command = {0};
	if (image->pid != c->main_pid || !c->main_argv)
		return;
	base_str_add_command(&command, c->main_argv);
	image->command = record_sink_text(&c->sink, base_str_text(&command), command.length);
	base_str_fini(&command);
}

static void read_command(
	struct record_converter *c, struct record_image *image, const struct record_task *leader)
{
	char path[40], text[EVENT_COMMAND_MAX];
	snprintf(path, sizeof path, "/proc/%u/cmdline", image->pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
	if (fd >= 0)
		close(fd);
	if (n > 1)
		record_image_describe(&c->world, image, text, (size_t)n - 1);
	else {
		use_started(c, image);
		record_image_rename(
			&c->world, image, leader->comm, strnlen(leader->comm, sizeof leader->comm));
	}
	if (image->pid == c->main_pid && leader->since_exec)
		c->main_argv = NULL;
}

/* A fork's child is what its parent is, until an exec. */
static bool name_as_parent(
	struct record_converter *c, const struct record_task *leader, struct record_image *image)
{
	const struct record_image *parent =
		record_world_find(&c->world, record_world_pid(&c->world, leader->parent));
	if (!leader->parent || !parent || parent == image)
		return false;
	const char *name = base_strtab_get(c->sink.strings, parent->name);
	image->command = parent->command;
	record_image_rename(&c->world, image, name, strlen(name));
	return true;
}

/* What was mapped since the last time and the image has not said itself; of an image that was
 * before the process's last exec nothing is known any more. */
static bool introduce_maps(
	struct record_converter *c, const struct record_task *leader, struct record_image *image)
{
	if (!image->nr_introduced)
		image->nr_execs = leader->nr_execs;
	bool any = image->nr_execs == leader->nr_execs && image->nr_introduced < leader->nr_maps;
	for (; any && image->nr_introduced < leader->nr_maps; image->nr_introduced++) {
		const struct record_map *m = &leader->map[image->nr_introduced];
		if (!record_image_range(image, m->start))
			record_image_file(&c->world, image,
				base_strtab_get(c->sink.strings, m->path), m->start, m->end,
				m->file_offset);
	}
	return any;
}

bool record_converter_introduce_maps(void *ctx, struct record_image *image)
{
	struct record_converter *c = ctx;
	uint64_t known;
	return base_map_get(&c->tasks, 0, image->pid, &known) &&
	       introduce_maps(c, c->task[known], image);
}

static struct record_image *unattached_image(struct record_converter *c, struct record_task *leader)
{
	uint32_t before = record_world_pid(&c->world, leader->pid);
	struct record_image *image = record_world_extra(&c->world, leader->pid);
	if (!image)
		return NULL;
	image->parent = before ? before : record_world_pid(&c->world, leader->parent);
	introduce_maps(c, leader, image);
	if (leader->since_exec || !name_as_parent(c, leader, image))
		read_command(c, image, leader);
	return image;
}

/* The stream that records mentioned already, else a new one. */
static uint32_t event_take_stream(
	struct record_converter *c, struct record_task *task, const struct record_thread *t)
{
	uint32_t stream = task->reserved;
	task->reserved = 0;
	if (!stream)
		return record_sink_stream(&c->sink, t->image->process, t->tid, t->name);
	record_sink_stream_again(&c->sink, stream, t->image->process, t->tid, t->name);
	return stream;
}

uint32_t record_converter_stream(struct record_converter *c, uint32_t tid)
{
	struct record_task *task = record_converter_task(c, tid, tid);
	if (!task)
		return 0;
	if (task->owner && !task->nr_marks)
		return task->owner->stream;
	if (!task->reserved)
		task->reserved = record_sink_stream(&c->sink, 0, tid, 0);
	return task->reserved;
}

void record_converter_kernel(struct record_converter *c, uint32_t tid, const struct trace_record *r)
{
	struct record_task *task = record_converter_task(c, tid, tid);
	struct record_event e = {.time_ns = r->time_ns, .tid = tid, .kind = RECORD_EVENT_kernel};
	_Static_assert(sizeof e.word >= sizeof r->u, "any record fits");
	if (!task)
		return;
	e.pid = task->pid;
	/* those that say whether it sleeps */
	if (r->kind == TRACE_cpu_in) {
		e.kind = RECORD_EVENT_in;
		e.cpu = (uint32_t)r->u.cpu_in.processor;
	} else if (r->kind == TRACE_cpu_out && r->u.cpu_out.preempted <= TRACE_LEFT_runnable) {
		e.kind = r->u.cpu_out.preempted ? RECORD_EVENT_preempted : RECORD_EVENT_out;
		e.cpu = (uint32_t)r->u.cpu_out.processor;
	} else {
		e.record_kind = r->kind;
		memcpy(e.word, &r->u, sizeof r->u);
	}
	queue_event(c, task, &e);
}

/* A stream for a task that has no ring records. */
static struct record_thread *own_stream(
	struct record_converter *c, struct record_task *task, uint64_t time_ns)
{
	struct record_task *leader =
		task->tid == task->pid ? task : record_converter_task(c, task->pid, task->pid);
	uint32_t number = record_world_pid(&c->world, task->pid);
	struct record_image *image = record_world_find(&c->world, number);
	/* A leader that begins anew is a new image; other threads belong to the one there is. */
	if (leader && (!image || task == leader))
		image = unattached_image(c, leader);
	struct record_thread *t = image ? base_alloc(sizeof *t) : NULL;
	if (!t || base_grow(&c->thread, &c->thread_capacity, c->nr_threads + 1, sizeof(void *)) !=
			  BASE_OK) {
		base_free(t);
		record_sink_fail(&c->sink, BASE_ERR_NOMEM, "no memory for one more thread");
		return NULL;
	}
	c->thread[c->nr_threads++] = t;
	*t = (struct record_thread){
		.image = image, .pid = task->pid, .tid = task->tid, .task = task, .started = true};
	if (task != leader)
		t->name = record_sink_text(
			&c->sink, task->comm, strnlen(task->comm, sizeof task->comm));
	t->stream = event_take_stream(c, task, t);
	event_set_owner(task, t);
	if (!image->begun && task == leader) {
		image->begun = true;
		struct trace_record r = {.time_ns = time_ns, .kind = TRACE_process_begin};
		record_thread_put(c, t, &r);
	}
	return t;
}

/* ---- one event ------------------------------------------------------------------------------- */

static void put_process_end(
	struct record_converter *c, struct record_thread *t, uint64_t time_ns, int64_t status)
{
	if (t->image->ended)
		return;
	t->image->ended = true;
	struct trace_record r = {.time_ns = time_ns, .kind = TRACE_process_end};
	bool said = status < 0 && t->image->exits; /* else only its parent would know */
	r.u.process_end.status = said ? (int64_t)t->image->exit_status : status;
	record_thread_put(c, t, &r);
	(void)record_jit_name(&c->world, t->image); /* its files may end with it */
}

/* Places that were seen from outside get their names when they are met. */
static void event_name_places(
	struct record_converter *c, struct record_thread *t, const uint64_t *place, size_t nr)
{
	const char *function, *file;
	uint32_t line;
	for (size_t i = 0; i < nr; i++)
		if (RING_IS_PLACE(place[i]) &&
			c->python.named(c->python.ctx, place[i], &function, &file, &line))
			record_image_place(&c->world, t->image, place[i], function,
				strlen(function), file, strlen(file), line);
}

static void put_sample(
	struct record_converter *c, struct record_thread *t, const struct record_event *e)
{
	struct trace_record r = {.time_ns = e->time_ns, .kind = TRACE_sample};
	c->world.now_ns = e->time_ns;
	if (c->python.named) {
		event_name_places(c, t, &e->ip, 1);
		event_name_places(c, t, e->frame, e->nr_frames);
	}
	r.u.sample.site = record_image_site(&c->world, t->image, e->ip);
	record_sink_site_is_exact(&c->sink, r.u.sample.site);
	if (e->nr_frames)
		r.u.sample.stack =
			record_image_stack(&c->world, t->image, e->frame, e->nr_frames, true);
	record_thread_put(c, t, &r);
}

/* See RECORD_CALL_FUTEX. */
static void resolve_call(
	struct record_converter *c, struct record_thread *t, struct trace_record *r)
{
	if (r->kind == TRACE_call_begin && r->u.call_begin.number & RECORD_CALL_FUTEX) {
		uint64_t number = r->u.call_begin.number, address = r->u.call_begin.op;
		t->call_object = record_image_object(&c->world, t->image,
			(address & RING_OBJECT_ADDRESS) |
				(uint64_t)TRACE_OBJECT_futex << RING_OBJECT_TYPE_SHIFT |
				(number & RECORD_CALL_SHARED ? RING_OBJECT_SHARED : 0));
		r->u.call_begin.number = number & ((1u << RECORD_CALL_OP_SHIFT) - 1);
		r->u.call_begin.op = (uint32_t)number >> RECORD_CALL_OP_SHIFT;
		r->u.call_begin.object = t->call_object;
	} else if (r->kind == TRACE_call_end && r->u.call_end.number & RECORD_CALL_FUTEX) {
		r->u.call_end.number &= ~RECORD_CALL_FUTEX;
		r->u.call_end.object = t->call_object;
	}
}

static void put_event(
	struct record_converter *c, struct record_thread *t, const struct record_event *e)
{
	static const uint8_t left[] = {[RECORD_EVENT_preempted] = TRACE_LEFT_runnable,
		[RECORD_EVENT_out_fault] = TRACE_LEFT_in_fault,
		[RECORD_EVENT_out_load] = TRACE_LEFT_in_loader};
	struct trace_record r = {.time_ns = e->time_ns};
	c->world.now_ns = e->time_ns;
	switch (e->kind) {
	case RECORD_EVENT_sample:
		put_sample(c, t, e);
		break;
	case RECORD_EVENT_out:
	case RECORD_EVENT_preempted:
	case RECORD_EVENT_out_fault:
	case RECORD_EVENT_out_load:
		r.kind = TRACE_cpu_out;
		r.u.cpu_out.processor = e->cpu;
		r.u.cpu_out.preempted = left[e->kind];
		record_thread_put(c, t, &r);
		break;
	case RECORD_EVENT_in:
		r.kind = TRACE_cpu_in;
		r.u.cpu_in.processor = e->cpu;
		record_thread_put(c, t, &r);
		break;
	case RECORD_EVENT_kernel:
		r.kind = e->record_kind;
		memcpy(&r.u, e->word, sizeof r.u);
		resolve_call(c, t, &r);
		record_thread_put(c, t, &r);
		break;
	default:
		break;
	}
}

static void await_owner(
	struct record_converter *c, struct record_task *task, const struct record_event *e)
{
	event_set_owner(task, NULL);
	set_exit(c, task, 0);
	task->by_exec = task->since_exec = e->kind == RECORD_EVENT_exec;
	task->counted = false;
	task->await_ns = e->time_ns;
	task->pid = e->pid;
}

/* The image that was awaited since an exec did not come. */
static void count_unattached(struct record_converter *c, struct record_task *task, uint64_t end_ns)
{
	if (task->by_exec && !task->owner && task->tid == task->pid &&
		end_ns > task->await_ns + UNATTACHED_NS) {
		c->nr_unattached++;
		task->counted = true;
	}
	task->by_exec = false;
}

/* Write the first waiting event, to its owner if there is one. */
static void event_write_event(struct record_converter *c, struct record_task *task)
{
	struct record_event e = event_next_event(c, task);
	if (event_is_mark(e.kind)) {
		count_unattached(c, task, e.time_ns);
		await_owner(c, task, &e);
	} else if (e.kind == RECORD_EVENT_process_end) {
		count_unattached(c, task, e.time_ns);
		if (task->owner)
			put_process_end(c, task->owner, e.time_ns, -1);
	} else if (task->owner) {
		if (e.kind == RECORD_EVENT_sample)
			record_unwind_interpret(&c->world, task->owner->image, &e);
		if (e.kind == RECORD_EVENT_sample && c->python.sampled)
			c->python.sampled(c->python.ctx, &e);
		put_event(c, task->owner, &e);
	}
	if (e.kind == RECORD_EVENT_exit)
		set_exit(c, task, e.time_ns + 1);
	base_free(e.frame);
}

/* Does the life that begins here wake anybody? A fork's child does, at its exec: a vfork waits for
 * that. */
static bool life_wakes(const struct record_task *task)
{
	for (size_t i = task->first; i < task->nr && !ends_life(task->event[i].kind); i++)
		if (task->event[i].kind == RECORD_EVENT_kernel &&
			task->event[i].record_kind == TRACE_wake)
			return true;
	return false;
}

/* Lives that ended before this one attached: those that woke somebody get a stream. */
static void write_lives_before(struct record_converter *c, struct record_task *task, size_t nr)
{
	bool begins = true;
	for (size_t i = 0; i < nr; i++) {
		const struct record_event *e = &task->event[task->first];
		if (begins && !task->owner && !ends_life(e->kind) && life_wakes(task))
			(void)own_stream(c, task, e->time_ns);
		begins = event_is_mark(e->kind);
		event_write_event(c, task);
	}
}

void record_thread_events(struct record_converter *c, struct record_thread *t, uint64_t time_ns)
{
	struct record_task *task = t->task;
	while (task->owner == t && task->first < task->nr &&
		task->event[task->first].time_ns <= time_ns)
		event_write_event(c, task);
}

/* Whoever executes a program calls nothing that we see before its own first instructions: it slept
 * in exec or in the dynamic loader. */
static void name_loading(const struct record_task *task, uint64_t time_ns)
{
	if (!task->since_exec || (task->owner && task->owner->number))
		return;
	for (size_t i = task->first; i < task->nr && task->event[i].time_ns <= time_ns; i++)
		if (task->event[i].kind == RECORD_EVENT_out)
			task->event[i].kind = RECORD_EVENT_out_load;
}

void record_thread_start(struct record_converter *c, struct record_thread *t, uint64_t time_ns)
{
	t->started = true;
	struct record_task *task = record_converter_task(c, t->tid, t->pid);
	t->task = task;
	if (!task)
		return;
	size_t nr_before = 0;
	for (size_t i = task->first; i < task->nr && task->event[i].time_ns <= time_ns; i++)
		if (event_is_mark(task->event[i].kind))
			nr_before = i - task->first + 1;
	write_lives_before(c, task, nr_before);
	name_loading(task, time_ns);
	struct record_thread *before = task->owner;
	if (before && !before->number && before->tid == t->tid && before->pid == t->pid) {
		/* It has attached late, as on a busy machine: go on in the stream that it has got
		 * already. */
		c->nr_unattached -= task->counted;
		task->counted = false;
		t->stream = before->stream;
		t->last_ns = before->last_ns;
		before->image->ended = true;
		record_sink_stream_again(&c->sink, t->stream, t->image->process, t->tid, t->name);
	} else {
		t->stream = event_take_stream(c, task, t);
	}
	event_set_owner(task, t);
	set_exit(c, task, 0);
	task->pid = t->pid;
	task->by_exec = false;
	RECORD_JOURNAL_ADD(c->sink.journal, thread, t->image->number, t->number, t->pid, t->tid,
		t->own_pid, t->own_tid, t->stream, t->image->pid_ns);
}

/* ---- arrival --------------------------------------------------------------------------------- */

static void event_comm(struct record_converter *c, struct record_task *task, const char *text)
{
	size_t length = strnlen(text, sizeof task->comm - 1);
	memcpy(task->comm, text, length);
	task->comm[length] = 0;
	struct record_thread *t = task->owner;
	if (!t || t->name || t->tid == t->pid)
		return;
	t->name = record_sink_text(&c->sink, text, length);
	if (t->name != t->image->name)
		record_sink_stream_again(&c->sink, t->stream, t->image->process, t->tid, t->name);
}

static void event_map(
	struct record_converter *c, struct record_task *leader, const struct record_map_event *map)
{
	if (!map->path_bytes) {
		leader->has_all_code = false;
		return;
	}
	struct record_map m = {.start = map->start,
		.end = map->end,
		.file_offset = map->file_offset,
		.path = record_sink_text(&c->sink, map->path, map->path_bytes)};
	add_map(c, leader, m);
	const char *path = base_strtab_get(c->sink.strings, m.path);
	record_jit_mapped(&c->world, leader->pid, path);
	if (c->python.mapped)
		c->python.mapped(c->python.ctx, leader->pid, path, m.start, m.file_offset);
}

/* Code of no file is looked into at once: its process may soon be gone. */
static void event_sample(
	struct record_converter *c, const struct record_task *leader, const struct record_event *e)
{
	bool in_file = e->ip >> 63 || RING_IS_PLACE(e->ip);
	for (size_t i = 0; i < leader->nr_maps && !in_file; i++)
		in_file = leader->map[i].start <= e->ip && e->ip < leader->map[i].end;
	if (!in_file)
		record_jit_sampled(&c->world, leader->pid, e->ip);
}

static void event_exit(
	struct record_converter *c, struct record_task *leader, const struct record_event *e)
{
	if (leader->live)
		record_task_set_live(c, leader, leader->live - 1);
	if (leader->live)
		return;
	if (e->pid == c->main_pid) {
		c->main_exit_ns = e->time_ns;
		return;
	}
	struct record_event end = {.time_ns = e->time_ns,
		.kind = RECORD_EVENT_process_end,
		.pid = e->pid,
		.tid = e->pid};
	queue_event(c, leader, &end);
}

static void event_fork(struct record_converter *c, struct record_task *task,
	struct record_task *leader, const struct record_event *e)
{
	record_task_set_live(c, leader, leader->live + 1);
	if (task != leader)
		return;
	record_task_set_live(c, leader, 1);
	record_jit_forget(&c->world, leader->pid);
	task->parent = e->other;
	if (c->python.forked)
		c->python.forked(c->python.ctx, leader->pid, e->other);
	const struct record_task *parent = record_converter_task(c, e->other, e->other);
	if (parent && parent != task)
		inherit_maps(c, task, parent);
}

void record_converter_event(struct record_converter *c, const struct record_event *e,
	const struct record_map_event *map, const char *text)
{
	if (e->kind == RECORD_EVENT_lost) {
		c->perf_lost += e->ip;
		return;
	}
	if (c->recorder_tid && e->tid == c->recorder_tid) { /* it is not the program's */
		base_free(e->frame);
		return;
	}
	c->nr_samples += e->kind == RECORD_EVENT_sample;
	c->nr_switches += e->kind == RECORD_EVENT_in;
	struct record_task *task = record_converter_task(c, e->tid, e->pid);
	struct record_task *leader =
		e->tid == e->pid ? task : record_converter_task(c, e->pid, e->pid);
	if (!task || !leader) {
		base_free(e->frame);
		return;
	}
	switch (e->kind) {
	case RECORD_EVENT_map:
		event_map(c, leader, map);
		return;
	case RECORD_EVENT_comm:
		event_comm(c, task, text);
		return;
	case RECORD_EVENT_sample:
		event_sample(c, leader, e);
		break;
	case RECORD_EVENT_exec:
		event_comm(c, task, text);
		record_jit_forget(&c->world, leader->pid);
		leader->nr_maps = 0;
		leader->nr_execs++;
		leader->has_all_code = true;
		record_task_set_live(c, leader, 1);
		break;
	case RECORD_EVENT_fork:
		event_fork(c, task, leader, e);
		break;
	case RECORD_EVENT_fault:
		queue_fault(task, e->time_ns);
		base_free(e->frame);
		return;
	default:
		break;
	}
	queue_event(c, task, e);
	if (e->kind == RECORD_EVENT_exit)
		event_exit(c, leader, e);
}

/* ---- release --------------------------------------------------------------------------------- */

/* When the present life of the task ends: its next mark or its exit; UINT64_MAX: not yet. */
static uint64_t life_end(const struct record_task *task)
{
	if (task->exit_ns) /* it is over: its last switch is told after that */
		return task->exit_ns;
	for (size_t i = task->first; task->nr_ends && i < task->nr; i++)
		if (ends_life(task->event[i].kind))
			return task->event[i].time_ns;
	return UINT64_MAX;
}

/* Nobody has claimed the task's events: give them a stream when they are worth it. False: wait. */
static bool settle_owner(struct record_converter *c, struct record_task *task, uint64_t horizon_ns)
{
	uint64_t end_ns = life_end(task), first_ns = task->event[task->first].time_ns;
	uint64_t begin_ns = task->await_ns ? task->await_ns : first_ns;
	if (ends_life(task->event[task->first].kind))
		return true; /* nothing of it is written */
	if (end_ns <= horizon_ns) {
		if (end_ns < begin_ns + SHORT_LIFE_NS && !task->reserved && !life_wakes(task))
			return true;
		count_unattached(c, task, end_ns);
		return own_stream(c, task, first_ns);
	}
	if (horizon_ns < begin_ns + ATTACH_NS || horizon_ns < first_ns + ATTACH_NS)
		return false;
	count_unattached(c, task, horizon_ns);
	return own_stream(c, task, begin_ns);
}

static bool can_release(
	const struct record_task *task, uint64_t horizon_ns, uint64_t hold_ns, uint64_t end_ns)
{
	const struct record_event *e = &task->event[task->first];
	if (e->time_ns > horizon_ns)
		return false;
	if (e->time_ns + hold_ns <= horizon_ns) {
		/* Asleep: what it sleeps in may be written, with an earlier stamp, when it has
		 * woken up. */
		bool asleep = e->kind == RECORD_EVENT_out && task->owner && task->owner->number &&
			      (task->first + 1 == task->nr || e[1].time_ns + hold_ns > horizon_ns);
		if (!asleep)
			return true;
	}
	return end_ns <= horizon_ns;
}

/* It has ended, so long ago that nothing of that life can come any more. */
static bool is_over(
	const struct record_converter *c, const struct record_task *task, uint64_t now_ns)
{
	return task->exit_ns && task->exit_ns + HOLD_NS < now_ns && task->first == task->nr &&
	       !task->reserved && !task->live && task->tid != c->main_pid;
}

/* Else each look would go through all that ever lived. */
static void forget_task(struct record_converter *c, size_t i)
{
	struct record_task *task = c->task[i], *last = c->task[c->nr_tasks - 1];
	enum base_status status = base_map_put(&c->tasks, 0, last->tid, i); /* (it is there) */
	event_set_owner(task, NULL);
	set_exit(c, task, 0);
	c->task[i] = last;
	c->nr_tasks--;
	(void)base_map_remove(&c->tasks, 0, task->tid);
	base_free(task->event);
	base_free(task->map);
	base_free(task);
	if (status != BASE_OK)
		record_sink_fail(&c->sink, status, "no memory for one more task");
}

static void release_task(
	struct record_converter *c, struct record_task *task, uint64_t horizon_ns, uint64_t hold_ns)
{
	uint64_t end_ns = life_end(task); /* looked for once a life: many events may wait for it */
	while (task->first < task->nr &&
		can_release(task, horizon_ns, task->owner ? hold_ns : 0, end_ns)) {
		bool ends = ends_life(task->event[task->first].kind);
		if (!task->owner && !settle_owner(c, task, horizon_ns))
			return;
		event_write_event(c, task);
		if (ends)
			end_ns = life_end(task);
	}
	if (task->exit_ns && task->first == task->nr) { /* so much need not stay until it is over */
		base_free(task->event);
		task->event = NULL;
		task->first = task->nr = task->capacity = 0;
	}
}

void record_converter_release(struct record_converter *c, uint64_t horizon_ns)
{
	uint64_t hold_ns = c->nr_waiting > RECORD_EVENTS_MAX ? 0 : HOLD_NS;
	if (!c->nr_waiting && !c->nr_exited)
		return;
	for (size_t i = 0; i < c->nr_tasks && !record_sink_failed(&c->sink);) {
		release_task(c, c->task[i], horizon_ns, hold_ns);
		if (is_over(c, c->task[i], horizon_ns))
			forget_task(c, i);
		else
			i++;
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool is_main(const struct record_thread *t)
{
	return t->tid == t->pid && t->started;
}

static void end_process(struct record_converter *c, struct record_thread *t, int64_t status,
	uint64_t end_ns, bool (*alive)(uint32_t pid))
{
	if (t->pid != c->main_pid) {
		if (!alive(t->pid))
			put_process_end(c, t, t->last_ns, -1);
		return;
	}
	if (status < 0)
		return;
	if (c->main_exit_ns)
		end_ns = c->main_exit_ns;
	put_process_end(c, t, end_ns > t->last_ns ? end_ns : t->last_ns, status);
}

void record_converter_finish(
	struct record_converter *c, int64_t status, uint64_t end_ns, bool (*alive)(uint32_t pid))
{
	for (size_t i = 0; i < c->nr_tasks && !record_sink_failed(&c->sink); i++) {
		struct record_task *task = c->task[i];
		while (task->first < task->nr) {
			if (!task->owner)
				(void)settle_owner(c, task, UINT64_MAX - HOLD_NS);
			event_write_event(c, task);
		}
		count_unattached(c, task, end_ns);
	}
	/* An image that is not its process's newest has ended by exec. */
	for (size_t i = 0; i < c->nr_threads && !record_sink_failed(&c->sink); i++) {
		struct record_thread *t = c->thread[i];
		if (is_main(t) && record_world_pid(&c->world, t->pid) == t->image->number)
			end_process(c, t, status, end_ns, alive);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* task.c - tasks, their processes and streams; the streams of contexts. */
#include "system/convert.h"
#include "os/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMMAND_MAX = 4096, FILE_TEXT_MAX = 4096 };

/* ---- /proc ----------------------------------------------------------------------------------- */

/* A task that we have not seen begin: process and parent. */
static uint32_t task_pid_of(uint32_t tid, uint32_t *ret_parent)
{
	char text[FILE_TEXT_MAX];
	uint64_t pid = 0, parent = 0;
	if (os_proc_read((pid_t)tid, "status", text, sizeof text) > 0) {
		(void)os_parse_field(text, "Tgid", 10, &pid);
		(void)os_parse_field(text, "PPid", 10, &parent);
	}
	*ret_parent = (uint32_t)parent;
	return pid ? (uint32_t)pid : tid; /* gone: take it for a process of its own */
}

static uint64_t task_namespace_of(uint32_t pid, const char *name)
{
	char path[48];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%u/ns/%s", pid, name);
	return stat(path, &st) ? 0 : (uint64_t)st.st_ino;
}

/* The line of the processor controller, where it has a hierarchy of its own; else the unified one.
 */
static const char *cgroup_path(char *text)
{
	static const char *const controller[] = {":cpu:", ":cpu,", ",cpu:", "0::/"};
	char *line = NULL;
	for (size_t i = 0; !line && i < BASE_COUNT(controller); i++)
		line = strstr(text, controller[i]);
	char *path = line ? strchr(line, '/') : NULL;
	if (!path)
		return "";
	path[strcspn(path, "\n")] = 0;
	return path;
}

static void write_group(struct system_kernel *k, const struct record_image *image)
{
	char text[FILE_TEXT_MAX];
	struct record_sink *sink = &k->converter->sink;
	if (os_proc_read((pid_t)image->pid, "cgroup", text, sizeof text) <= 0)
		return;
	const char *cgroup = cgroup_path(text);
	struct trace_record r = {.kind = TRACE_group,
		.u.group = {.process = image->process,
			.cgroup = record_sink_text(sink, cgroup, strlen(cgroup)),
			.net_namespace = task_namespace_of(image->pid, "net"),
			.pid_namespace = task_namespace_of(image->pid, "pid")}};
	record_sink_put(sink, &r);
}

void system_kernel_attached(void *ctx, const struct record_image *image)
{
	write_group(ctx, image);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* "redis-server *:6379", "nginx: worker process": a title that the program wrote over its command
 * line. What it was started as, the kernel still knows. */
static void rename_if_titled(struct system_kernel *k, struct record_image *image, const char *comm)
{
	struct record_world *w = &k->converter->world;
	char text[KERNEL_COMM_BYTES + 2] = "";
	const char *name = base_strtab_get(k->converter->sink.strings, image->name);
	if (!*comm) {
		(void)os_proc_read((pid_t)image->pid, "comm", text, sizeof text);
		text[strcspn(text, "\n")] = 0;
		comm = text;
	}
	size_t length = strlen(comm);
	if (length && strchr(name, ' ') && !strncmp(name, comm, length) &&
		strchr(" :", name[length]) && name[length])
		record_image_rename(w, image, comm, length);
}

/* A new image, named by its command line, else by `comm`. */
static struct record_image *task_add_image(
	struct system_kernel *k, uint32_t pid, uint32_t parent, const char *comm)
{
	struct record_world *w = &k->converter->world;
	char text[COMMAND_MAX];
	struct record_image *image = record_world_extra(w, pid);
	if (!image)
		return NULL;
	image->parent = parent;
	ssize_t n = os_proc_read((pid_t)pid, "cmdline", text, sizeof text);
	if (n > 1) {
		record_image_describe(w, image, text, (size_t)n - 1);
		rename_if_titled(k, image, comm);
	} else {
		if (!*comm) {
			(void)os_proc_read((pid_t)pid, "comm", text, sizeof text);
			text[strcspn(text, "\n")] = 0;
			comm = text;
		}
		record_image_rename(w, image, comm, strlen(comm));
	}
	image->begun = true;
	write_group(k, image);
	return image;
}

struct record_image *system_kernel_image(
	struct system_kernel *k, const struct system_kernel_task *t)
{
	const struct record_world *w = &k->converter->world;
	return t->pid ? record_world_find(w, record_world_pid(w, t->pid)) : NULL;
}

static struct record_image *task_image_of(
	struct system_kernel *k, struct system_kernel_task *t, const char *comm)
{
	uint32_t parent = 0;
	if (!t->pid)
		t->pid = task_pid_of(t->tid, &parent);
	struct record_image *image = system_kernel_image(k, t);
	if (image && !image->ended)
		return image;
	return task_add_image(
		k, t->pid, parent ? record_world_pid(&k->converter->world, parent) : 0, comm);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

struct system_kernel_task *system_kernel_task(struct system_kernel *k, uint32_t tid)
{
	if (BASE_UNLIKELY(!tid || tid >= SYSTEM_TID_MAX))
		return NULL;
	struct system_kernel_task **page = &k->task_page[tid / SYSTEM_TID_PAGE], *t;
	if (BASE_UNLIKELY(!*page)) {
		*page = base_alloc(SYSTEM_TID_PAGE * sizeof **page);
		if (!*page) {
			record_sink_fail(
				&k->converter->sink, BASE_ERR_NOMEM, "no memory for one more task");
			return NULL;
		}
	}
	t = &(*page)[tid % SYSTEM_TID_PAGE];
	if (BASE_UNLIKELY(!t->tid)) {
		uint64_t known;
		t->tid = tid;
		t->own = base_map_get(&k->converter->tasks, 0, tid, &known);
		if (t->own)
			t->pid = k->converter->task[known]->pid;
	}
	return t;
}

void system_kernel_tasks_fini(struct system_kernel *k)
{
	for (size_t i = 0; k->task_page && i < SYSTEM_TID_MAX / SYSTEM_TID_PAGE; i++)
		base_free(k->task_page[i]);
	base_free(k->task_page);
	k->task_page = NULL;
}

static void mark_recorder(struct system_kernel *k, const struct system_kernel_task *t)
{
	struct record_sink *sink = &k->converter->sink;
	struct trace_record r = {.kind = TRACE_context,
		.u.context = {.stream = t->stream,
			.type = TRACE_CONTEXT_recorder,
			.name = record_sink_text(sink, "longpole", 8)}};
	record_sink_put(sink, &r);
}

static uint32_t stream_new(struct system_kernel *k, struct system_kernel_task *t, const char *comm)
{
	char text[64];
	struct record_sink *sink = &k->converter->sink;
	const struct record_image *image = task_image_of(k, t, comm);
	if (!image)
		return 0;
	if (!*comm) {
		(void)os_proc_read_task((pid_t)t->pid, (pid_t)t->tid, "comm", text, sizeof text);
		text[strcspn(text, "\n")] = 0;
		comm = text;
	}
	t->stream = record_sink_stream(
		sink, image->process, t->tid, record_sink_text(sink, comm, strlen(comm)));
	if (t->pid == k->own_pid)
		mark_recorder(k, t);
	system_asleep_put(k, t);
	return t->stream;
}

uint32_t system_kernel_stream(struct system_kernel *k, struct system_kernel_task *t)
{
	if (BASE_UNLIKELY(t->own))
		return record_converter_stream(k->converter, t->tid);
	return t->stream ? t->stream : stream_new(k, t, "");
}

void system_kernel_put(
	struct system_kernel *k, struct system_kernel_task *t, struct trace_record *r)
{
	if (BASE_UNLIKELY(t->own)) {
		record_converter_kernel(k->converter, t->tid, r);
		return;
	}
	r->stream = t->stream ? t->stream : stream_new(k, t, "");
	if (r->stream)
		record_sink_put(&k->converter->sink, r);
}

/* ---- births, deaths, names ------------------------------------------------------------------- */

static void comm_of(const struct kernel_slot *s, char ret[KERNEL_COMM_BYTES + 1])
{
	memcpy(ret, s + 1, KERNEL_COMM_BYTES);
	ret[KERNEL_COMM_BYTES] = 0;
}

/* A number that no other birth of this trace has, nor any that the preload library gives out. */
static uint64_t next_token(struct system_kernel *k)
{
	return 1ull << 62 | ++k->nr_births;
}

/* The child has another name than the parent only later: its command line is the parent's still. */
static void fork_image(struct system_kernel *k, const struct system_kernel_task *parent,
	uint32_t pid, const char *comm)
{
	struct record_world *w = &k->converter->world;
	const struct record_image *from = system_kernel_image(k, parent);
	struct record_image *image = record_world_extra(w, pid);
	if (!image)
		return;
	image->begun = true;
	if (from) {
		image->parent = from->number;
		image->command = from->command;
		image->name = 0;
		record_image_set_forked(w, image);
	}
	if (*comm)
		record_image_rename(w, image, comm, strlen(comm));
	else if (from) /* not told: it is the parent's until an exec */
		record_image_rename(w, image,
			base_strtab_get(k->converter->sink.strings, from->name),
			strlen(base_strtab_get(k->converter->sink.strings, from->name)));
	write_group(k, image);
}

void system_kernel_fork(struct system_kernel *k, struct system_kernel_task *parent,
	uint64_t time_ns, const struct kernel_slot *s)
{
	char comm[KERNEL_COMM_BYTES + 1];
	uint32_t tid = (uint32_t)s->a, pid = (uint32_t)(s->a >> 32);
	struct system_kernel_task *child = system_kernel_task(k, tid);
	bool is_process = tid == pid;
	if (!child)
		return;
	comm_of(s, comm);
	*child = (struct system_kernel_task){.tid = tid, .pid = pid, .own = parent->own};
	if (!parent->pid)
		parent->pid = (uint32_t)s->b;
	if (child->own) { /* the ring and perf.c tell the rest */
		(void)record_converter_task(k->converter, tid, pid);
		return;
	}
	if (!system_kernel_stream(k, parent))
		return;
	if (is_process)
		fork_image(k, parent, pid, comm);
	uint64_t token = next_token(k);
	struct trace_record r = {.time_ns = time_ns};
	if (is_process) {
		r.kind = TRACE_process_fork;
		r.u.process_fork.token = token;
	} else {
		r.kind = TRACE_thread_create;
		r.u.thread_create.token = token;
	}
	system_kernel_put(k, parent, &r);
	stream_new(k, child, comm);
	r = (struct trace_record){.time_ns = time_ns};
	if (is_process) {
		r.kind = TRACE_process_begin;
		r.u.process_begin.token = token;
	} else {
		r.kind = TRACE_thread_begin;
		r.u.thread_begin.token = token;
	}
	system_kernel_put(k, child, &r);
}

void system_kernel_exec(struct system_kernel *k, struct system_kernel_task *t, uint64_t time_ns,
	const struct kernel_slot *s)
{
	char comm[KERNEL_COMM_BYTES + 1];
	uint32_t before;
	if (t->own)
		return; /* the ring and perf.c tell it */
	comm_of(s, comm);
	if (!system_kernel_stream(k, t))
		return;
	struct trace_record r = {.time_ns = time_ns, .kind = TRACE_process_exec};
	system_kernel_put(k, t, &r);
	/* The next image's records are in a stream of its own. */
	before = record_world_pid(&k->converter->world, t->pid);
	if (!task_add_image(k, t->pid, before, comm))
		return;
	bool on_processor = t->on_processor;
	*t = (struct system_kernel_task){
		.tid = t->tid, .pid = t->pid, .on_processor = on_processor};
	stream_new(k, t, comm);
	r = (struct trace_record){.time_ns = time_ns, .kind = TRACE_process_begin};
	system_kernel_put(k, t, &r);
}

void system_kernel_end(struct system_kernel *k, struct system_kernel_task *t, uint64_t time_ns)
{
	struct trace_record r = {.time_ns = time_ns, .kind = TRACE_thread_end};
	t->dying = false;
	if (t->own)
		return;         /* the ring and perf.c tell it */
	if (t->tid == t->pid) { /* the leader: its threads have ended, or do so with it */
		struct record_image *image = system_kernel_image(k, t);
		if (image)
			image->ended = true;
		r.kind = TRACE_process_end;
		r.u.process_end.status = t->status;
	}
	system_kernel_put(k, t, &r);
}

void system_kernel_comm(struct system_kernel *k, const struct kernel_slot *s)
{
	char comm[KERNEL_COMM_BYTES + 1];
	struct system_kernel_task *t = system_kernel_task(k, (uint32_t)s->a);
	if (!t || t->own || !t->stream)
		return; /* named when it is first seen */
	comm_of(s, comm);
	struct record_image *image = system_kernel_image(k, t);
	if (!image)
		return;
	struct record_sink *sink = &k->converter->sink;
	record_sink_stream_again(sink, t->stream, image->process, t->tid,
		record_sink_text(sink, comm, strlen(comm)));
	if (t->tid == t->pid && !image->command)
		record_image_rename(&k->converter->world, image, comm, strlen(comm));
}

/* ---- contexts -------------------------------------------------------------------------------- */

static const char *softirq_name(unsigned vector)
{
	static const char *const name[] = {"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL",
		"TASKLET", "SCHED", "HRTIMER", "RCU"};
	return vector < BASE_COUNT(name) ? name[vector] : "unknown";
}

static const char *ipi_name(unsigned vector)
{
	static const char *const name[] = {
		[KERNEL_IPI_reschedule] = "reschedule",
		[KERNEL_IPI_call] = "call function",
		[KERNEL_IPI_call_single] = "call function on one",
		[KERNEL_IPI_irq_work] = "irq work",
	};
	return vector < BASE_COUNT(name) ? name[vector] : "unknown";
}

/* What /proc/interrupts and sysfs call the line: its drivers. */
static void irq_name(unsigned line, char *ret, size_t size)
{
	char path[48];
	snprintf(path, sizeof path, "/sys/kernel/irq/%u/actions", line);
	if (os_read_file(path, ret, size) <= 0)
		snprintf(ret, size, "line %u", line);
	ret[strcspn(ret, "\n")] = 0;
}

static void context_name(unsigned type, unsigned vector, char *ret, size_t size)
{
	const char *text = "";
	switch (type) {
	case TRACE_CONTEXT_irq:
		irq_name(vector, ret, size);
		return;
	case TRACE_CONTEXT_softirq:
		text = softirq_name(vector);
		break;
	case TRACE_CONTEXT_ipi:
		text = ipi_name(vector);
		break;
	case TRACE_CONTEXT_timer:
		text = "local timer";
		break;
	case TRACE_CONTEXT_idle:
		text = "idle";
		break;
	default:
		text = "interrupt";
		break;
	}
	snprintf(ret, size, "%s", text);
}

static uint32_t context_new(
	struct system_kernel *k, unsigned type, unsigned vector, unsigned processor)
{
	static const char *const kind[] = {
#define X(name, text) text,
		TRACE_CONTEXTS(X)
#undef X
	};
	char name[128], title[192];
	struct record_sink *sink = &k->converter->sink;
	context_name(type, vector, name, sizeof name);
	snprintf(title, sizeof title, "%s %s on processor %u",
		type < BASE_COUNT(kind) ? kind[type] : "context", name, processor);
	uint32_t stream =
		record_sink_stream(sink, 0, 0, record_sink_text(sink, title, strlen(title)));
	struct trace_record r = {.kind = TRACE_context,
		.u.context = {.stream = stream,
			.type = type,
			.number = vector == KERNEL_VECTOR_UNKNOWN ? 0 : vector,
			.processor = processor,
			.name = record_sink_text(sink, name, strlen(name))}};
	record_sink_put(sink, &r);
	return stream;
}

uint32_t system_kernel_context(
	struct system_kernel *k, unsigned type, unsigned vector, unsigned processor)
{
	uint64_t key = (uint64_t)type << 16 | vector, known;
	if (base_map_get(&k->contexts, key, processor, &known))
		return (uint32_t)known;
	uint32_t stream = context_new(k, type, vector, processor);
	enum base_status status = base_map_put(&k->contexts, key, processor, stream);
	if (status != BASE_OK)
		record_sink_fail(&k->converter->sink, status, "no memory for one more context");
	return stream;
}

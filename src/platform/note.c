/* SPDX-License-Identifier: Apache-2.0 */
/* note.c - one process, one stream, and definitions as they are needed. */
#include "platform/note.h"

#include "trace/enums.h"

#include <string.h>

enum { PROCESS = 1, STREAM = 1, PID = 1 };

static void note_put(struct platform_note *n, const struct trace_record *r)
{
	if (n->writer && n->status == BASE_OK)
		n->status = trace_writer_put(n->writer, r, n->err);
}

#define PUT(n, stream_, time_, kind_, ...)                                                         \
	note_put(n, &(struct trace_record){.time_ns = (time_),                                     \
			    .stream = (stream_),                                                   \
			    .kind = TRACE_##kind_,                                                 \
			    .u.kind_ = {__VA_ARGS__}})

/* The text's id in the file; defines it when it is new. */
static uint32_t note_string_of(struct platform_note *n, const char *text)
{
	uint32_t id = 0;
	if (!n->writer || n->status != BASE_OK)
		return 0;
	n->status = base_strtab_intern(n->strings, text, strlen(text), &id);
	if (n->status != BASE_OK)
		return (void)base_fail(n->err, n->status, "out of memory for names"), 0;
	if (id > n->nr_written_strings) {
		n->nr_written_strings = id;
		PUT(n, 0, 0, string, .string = id,
			.text = {.bytes = text, .length = (uint32_t)strlen(text)});
	}
	return id;
}

enum base_status platform_note_open(
	struct platform_note *n, const char *path, const char *command, struct base_err *err)
{
	*n = (struct platform_note){.err = err};
	if (!path)
		return BASE_OK;
	n->strings = base_strtab_new();
	if (!n->strings)
		return n->status = base_fail(err, BASE_ERR_NOMEM, "out of memory for names");
	struct trace_info info = {.size = sizeof info,
		.host = "simulated",
		.command = command,
		.tool = "longpole platform",
		.flags = TRACE_INFO_SYNTHETIC};
	n->status = trace_writer_open(path, &info, &n->writer, err);
	if (n->status != BASE_OK)
		return n->status;
	uint32_t name = note_string_of(n, "platform");
	PUT(n, 0, 0, process, .process = PROCESS, .pid = PID, .name = name,
		.command = note_string_of(n, command));
	PUT(n, 0, 0, stream, .stream = STREAM, .process = PROCESS, .tid = PID, .name = name);
	PUT(n, STREAM, 0, process_begin, .token = 0);
	PUT(n, STREAM, 0, thread_begin, .handle = 0);
	return n->status;
}

enum base_status platform_note_close(
	struct platform_note *n, uint64_t end_ns, uint64_t *ret_bytes, struct base_err *err)
{
	enum base_status s = n->status;
	*ret_bytes = 0;
	if (n->writer) {
		PUT(n, STREAM, end_ns, thread_end);
		PUT(n, STREAM, end_ns, process_end, .status = 0);
		s = n->status;
		*ret_bytes = trace_writer_bytes(n->writer);
		enum base_status closed = trace_writer_close(n->writer, s == BASE_OK ? err : NULL);
		s = s == BASE_OK ? closed : s;
	}
	n->strings = base_strtab_free(n->strings);
	n->writer = NULL;
	return s;
}

uint32_t platform_note_define_actor(
	struct platform_note *n, const char *system, const char *name, uint64_t instance)
{
	uint32_t system_id = note_string_of(n, system), name_id = note_string_of(n, name);
	PUT(n, 0, 0, actor, .actor = ++n->nr_actors, .system = system_id, .name = name_id,
		.instance = instance);
	return n->nr_actors;
}

uint32_t platform_note_define_queue(
	struct platform_note *n, const char *name, uint64_t instance, uint64_t capacity)
{
	uint32_t name_id = note_string_of(n, name);
	PUT(n, 0, 0, object, .object = ++n->nr_objects, .process = PROCESS,
		.type = TRACE_OBJECT_queue, .address = instance, .capacity = capacity,
		.name = name_id);
	return n->nr_objects;
}

uint32_t platform_note_define_state(struct platform_note *n, const char *name)
{
	uint32_t name_id = note_string_of(n, name);
	PUT(n, 0, 0, state, .state = ++n->nr_states, .name = name_id);
	return n->nr_states;
}

static inline void platform_note_act(struct platform_note *n, uint64_t time_ns, uint32_t actor)
{
	n->nr_verbs++;
	if (n->acting == actor)
		return;
	n->acting = actor;
	PUT(n, STREAM, time_ns, note_act, .actor = actor);
}

void platform_note_enter(struct platform_note *n, uint64_t time_ns, uint32_t actor, uint32_t state)
{
	platform_note_act(n, time_ns, actor);
	PUT(n, STREAM, time_ns, note_state, .state = state);
}

void platform_note_verb(struct platform_note *n, uint64_t time_ns, uint32_t actor,
	enum trace_kind kind, uint32_t object, uint64_t nr_units, uint64_t flags)
{
	platform_note_act(n, time_ns, actor);
	/* all verbs on queues are of one shape */
	note_put(n, &(struct trace_record){.time_ns = time_ns,
			    .stream = STREAM,
			    .kind = (uint16_t)kind,
			    .u.note_enqueue = {.object = object, .n = nr_units, .flags = flags}});
}

void platform_note_item(struct platform_note *n, uint64_t time_ns, uint32_t actor,
	enum trace_kind kind, uint32_t object, uint64_t key)
{
	platform_note_act(n, time_ns, actor);
	note_put(n, &(struct trace_record){.time_ns = time_ns,
			    .stream = STREAM,
			    .kind = (uint16_t)kind,
			    .u.note_put_item = {.object = object, .n = 1, .key = key}});
}

void platform_note_identify(
	struct platform_note *n, uint64_t time_ns, uint32_t actor, uint64_t connection)
{
	platform_note_act(n, time_ns, actor);
	PUT(n, STREAM, time_ns, note_identify, .connection = connection);
}

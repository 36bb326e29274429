/* SPDX-License-Identifier: Apache-2.0 */
/* note.c - the simulated machines write their trace as another program's would: longpole/trace.h. */
#include "platform/note.h"

#include <string.h>

/* The library's error as one of ours: a line each is a cause. */
static enum base_status note_fail(struct base_err *err, const struct longpole_error *e)
{
	enum base_status s = (enum base_status)e->status;
	const char *line = e->text;
	for (bool first = true; *line || first; first = false) {
		size_t length = strcspn(line, "\n");
		s = first ? base_fail(err, s, "%.*s", (int)length, line)
			  : base_cause(err, s, "%.*s", (int)length, line);
		line += length + (line[length] == '\n');
	}
	if (err)
		err->sys_errno = e->sys_errno;
	return s;
}

enum base_status platform_note_open(
	struct platform_note *n, const char *path, const char *command, struct base_err *err)
{
	struct longpole_error error = {.size = sizeof error};
	struct longpole_writer_options options = {.size = sizeof options,
		.program = "platform",
		.command = command,
		.host = "simulated",
		.tool = "longpole platform"};
	*n = (struct platform_note){0};
	if (!path || !longpole_writer_open(path, &options, &n->writer, &error))
		return BASE_OK;
	return note_fail(err, &error);
}

enum base_status platform_note_close(
	struct platform_note *n, uint64_t end_ns, uint64_t *ret_bytes, struct base_err *err)
{
	struct longpole_error error = {.size = sizeof error};
	*ret_bytes = longpole_writer_bytes(n->writer);
	int closed = longpole_writer_close(n->writer, end_ns, &error);
	n->writer = NULL;
	return closed ? note_fail(err, &error) : BASE_OK;
}

uint32_t platform_note_new_actor(
	struct platform_note *n, const char *system, const char *name, uint64_t instance)
{
	n->nr_actors++;
	return longpole_writer_new_actor(n->writer, system, name, instance);
}

uint32_t platform_note_new_queue(
	struct platform_note *n, const char *name, uint64_t instance, uint64_t capacity)
{
	n->nr_queues++;
	return longpole_writer_new_queue(n->writer, name, instance, capacity);
}

/* The writer keeps its first failure, and says at the end what it was. */
#define NOTE(n, verb, ...)                                                                         \
	do {                                                                                       \
		(n)->nr_verbs++;                                                                   \
		if ((n)->writer)                                                                   \
			(n)->status = (enum base_status)longpole_writer_##verb(                    \
				(n)->writer, __VA_ARGS__);                                         \
	} while (0)

void platform_note_enter(struct platform_note *n, uint64_t time_ns, uint32_t actor, uint32_t state)
{
	NOTE(n, enter, time_ns, actor, state);
}

void platform_note_queue(struct platform_note *n, uint64_t time_ns, uint32_t actor,
	enum longpole_queue_verb verb, uint32_t queue, uint64_t nr_units, uint64_t flags)
{
	NOTE(n, queue, time_ns, actor, verb, queue, nr_units, flags);
}

void platform_note_item(struct platform_note *n, uint64_t time_ns, uint32_t actor,
	enum longpole_queue_verb verb, uint32_t queue, uint64_t key)
{
	NOTE(n, item, time_ns, actor, verb, queue, key, 1, 0);
}

void platform_note_identify(
	struct platform_note *n, uint64_t time_ns, uint32_t actor, uint64_t connection)
{
	NOTE(n, identify, time_ns, actor, connection);
}

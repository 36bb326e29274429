/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - a trace of actors, states and queues: one process, one stream that speaks for whoever
 * acts, and definitions as they are needed. The first error is kept.
 */
#include "api/api.h"
#include "trace/enums.h"
#include "trace/trace.h"

#include "config.h"

#include <string.h>

enum { PROCESS = 1, STREAM = 1, PID = 1 };

/* The header's numbers are those of records. */
#define SAME(verb, kind)                                                                           \
	_Static_assert((int)LONGPOLE_##verb == (int)TRACE_note_##kind, "verbs are kinds");
SAME(ENQUEUE, enqueue)
SAME(DEQUEUE, dequeue)
SAME(PEEK, peek)
SAME(RESERVE, reserve)
SAME(RESIZE, resize)
SAME(WAIT_EMPTY, wait_empty)
SAME(WAIT_FULL, wait_full)
SAME(PUT_ITEM, put_item)
SAME(TAKE_ITEM, take_item)
enum {
	FLAGS = LONGPOLE_QUEUE_NEWEST | LONGPOLE_QUEUE_EMPTIED | LONGPOLE_QUEUE_TOKENS |
		LONGPOLE_QUEUE_SMALLEST | LONGPOLE_QUEUE_ANONYMOUS
};

struct longpole_writer {
	struct trace_writer *writer;
	struct base_strtab *strings;
	uint32_t nr_written_strings, nr_actors, nr_queues, nr_states;
	uint32_t acting; /* whom the stream speaks for; 0: nobody */
	uint64_t last_ns;
	enum base_status status; /* the first failure; then nothing is written any more */
	struct base_err err;
};

static void write_record(struct longpole_writer *w, const struct trace_record *r)
{
	if (w->status == BASE_OK)
		w->status = trace_writer_put(w->writer, r, &w->err);
}

#define PUT(w, stream_, time_, kind_, ...)                                                         \
	write_record(w, &(struct trace_record){.time_ns = (time_),                                 \
				.stream = (stream_),                                               \
				.kind = TRACE_##kind_,                                             \
				.u.kind_ = {__VA_ARGS__}})

/* ---- definitions ----------------------------------------------------------------------------- */

/* The text's id in the file; defines it when it is new. */
static uint32_t write_string(struct longpole_writer *w, const char *text)
{
	uint32_t id = 0;
	size_t length = text ? strlen(text) : 0;
	if (w->status != BASE_OK || !length)
		return 0;
	enum base_status s = base_strtab_intern(w->strings, text, length, &id);
	if (s != BASE_OK)
		w->status = base_fail(&w->err, s, "out of memory for names");
	else if (id > w->nr_written_strings)
		PUT(w, 0, 0, string, .string = w->nr_written_strings = id,
			.text = {.bytes = text, .length = (uint32_t)length});
	return id;
}

/* The new number, which is one more than the last; 0: it could not be defined. */
static uint32_t write_defined(struct longpole_writer *w, uint32_t *nr)
{
	return w->status == BASE_OK ? ++*nr : 0;
}

uint32_t longpole_writer_new_actor(
	struct longpole_writer *w, const char *system, const char *name, uint64_t instance)
{
	if (!w)
		return 0;
	uint32_t system_id = write_string(w, system), name_id = write_string(w, name);
	PUT(w, 0, 0, actor, .actor = w->nr_actors + 1, .system = system_id, .name = name_id,
		.instance = instance);
	return write_defined(w, &w->nr_actors);
}

uint32_t longpole_writer_new_queue(
	struct longpole_writer *w, const char *name, uint64_t instance, uint64_t capacity)
{
	if (!w)
		return 0;
	uint32_t name_id = write_string(w, name);
	PUT(w, 0, 0, object, .object = w->nr_queues + 1, .process = PROCESS,
		.type = TRACE_OBJECT_queue, .address = instance, .capacity = capacity,
		.name = name_id);
	return write_defined(w, &w->nr_queues);
}

uint32_t longpole_writer_new_state(struct longpole_writer *w, const char *name)
{
	if (!w)
		return 0;
	uint32_t name_id = write_string(w, name);
	PUT(w, 0, 0, state, .state = w->nr_states + 1, .name = name_id);
	return write_defined(w, &w->nr_states);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void write_free(struct longpole_writer *w)
{
	if (w)
		base_strtab_free(w->strings);
	base_free(w);
}

static void write_begin(
	struct longpole_writer *w, const char *path, const struct longpole_writer_options *o)
{
	struct trace_info info = {.size = sizeof info,
		.host = o->host ? o->host : "",
		.command = o->command ? o->command : "",
		.tool = o->tool ? o->tool : "liblongpole " LONGPOLE_VERSION,
		.origin_unix_ns = o->origin_unix_ns,
		.nr_processors = o->nr_processors,
		.flags = TRACE_INFO_SYNTHETIC};
	w->status = trace_writer_open(path, &info, &w->writer, &w->err);
	uint32_t name = write_string(w, o->program);
	PUT(w, 0, 0, process, .process = PROCESS, .pid = PID, .name = name,
		.command = write_string(w, o->command));
	PUT(w, 0, 0, stream, .stream = STREAM, .process = PROCESS, .tid = PID, .name = name);
	PUT(w, STREAM, 0, process_begin, .token = 0);
	PUT(w, STREAM, 0, thread_begin, .handle = 0);
}

int longpole_writer_open(const char *path, const struct longpole_writer_options *options,
	struct longpole_writer **ret, struct longpole_error *error)
{
	struct longpole_writer_options o;
	struct base_err err;
	if (!path || !ret)
		return api_refuse(error, "no path, or no place for the writer");
	*ret = NULL;
	if (!api_take(&o, sizeof o, options) || o.reserved)
		return api_refuse(error, "the options' size is wrong, or one is not known here");
	struct longpole_writer *w = base_alloc(sizeof *w);
	if (w)
		w->strings = base_strtab_new();
	if (!w || !w->strings) {
		write_free(w);
		return api_finish(
			error, base_fail(&err, BASE_ERR_NOMEM, "out of memory for a writer"), &err);
	}
	write_begin(w, path, &o);
	if (w->status == BASE_OK) {
		*ret = w;
		return api_finish(error, BASE_OK, NULL);
	}
	int s = api_finish(error, w->status, &w->err);
	/* (where the first records failed, that is what is told) */
	enum base_status closed = w->writer ? trace_writer_close(w->writer, NULL) : BASE_OK;
	(void)closed;
	write_free(w);
	return s;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static bool write_refuse(struct longpole_writer *w, const char *why)
{
	if (w->status == BASE_OK)
		w->status = base_fail(&w->err, BASE_ERR_USAGE,
			"%s, after %llu ns: nothing was written from there on", why,
			(unsigned long long)w->last_ns);
	return false;
}

/* Whoever does the next verb; false: nothing is to be written. */
static bool write_act(struct longpole_writer *w, uint64_t time_ns, uint32_t actor)
{
	if (w->status != BASE_OK)
		return false;
	if (!actor || actor > w->nr_actors)
		return write_refuse(w, "no actor has that number");
	if (time_ns < w->last_ns)
		return write_refuse(w, "the time is before that of the last call");
	w->last_ns = time_ns;
	if (w->acting == actor)
		return true;
	w->acting = actor;
	PUT(w, STREAM, time_ns, note_act, .actor = actor);
	return true;
}

int longpole_writer_enter(
	struct longpole_writer *w, uint64_t time_ns, uint32_t actor, uint32_t state)
{
	if (!w)
		return LONGPOLE_STATUS_USAGE;
	if (!state || state > w->nr_states)
		write_refuse(w, "no state has that number");
	else if (write_act(w, time_ns, actor))
		PUT(w, STREAM, time_ns, note_state, .state = state);
	return (int)w->status;
}

static bool write_is_queue(struct longpole_writer *w, bool is_verb, uint32_t queue, uint64_t flags)
{
	if (!is_verb)
		return write_refuse(w, "that is no such verb");
	if (!queue || queue > w->nr_queues)
		return write_refuse(w, "no queue has that number");
	return !(flags & ~(uint64_t)FLAGS) || write_refuse(w, "there is no such flag");
}

int longpole_writer_queue(struct longpole_writer *w, uint64_t time_ns, uint32_t actor,
	enum longpole_queue_verb verb, uint32_t queue, uint64_t nr_units, uint64_t flags)
{
	if (!w)
		return LONGPOLE_STATUS_USAGE;
	bool is_verb = verb >= LONGPOLE_ENQUEUE && verb <= LONGPOLE_WAIT_FULL;
	/* all verbs on queues are of one shape */
	if (write_is_queue(w, is_verb, queue, flags) && write_act(w, time_ns, actor))
		write_record(w, &(struct trace_record){.time_ns = time_ns,
					.stream = STREAM,
					.kind = (uint16_t)verb,
					.u.note_enqueue = {
						.object = queue, .n = nr_units, .flags = flags}});
	return (int)w->status;
}

int longpole_writer_item(struct longpole_writer *w, uint64_t time_ns, uint32_t actor,
	enum longpole_queue_verb verb, uint32_t queue, uint64_t key, uint64_t nr_units,
	uint64_t flags)
{
	if (!w)
		return LONGPOLE_STATUS_USAGE;
	bool is_verb = verb == LONGPOLE_PUT_ITEM || verb == LONGPOLE_TAKE_ITEM;
	if (write_is_queue(w, is_verb, queue, flags) && write_act(w, time_ns, actor))
		write_record(w, &(struct trace_record){.time_ns = time_ns,
					.stream = STREAM,
					.kind = (uint16_t)verb,
					.u.note_put_item = {.object = queue,
						.n = nr_units,
						.key = key,
						.flags = flags}});
	return (int)w->status;
}

int longpole_writer_link(struct longpole_writer *w, uint64_t time_ns, uint32_t actor, uint32_t to)
{
	if (!w)
		return LONGPOLE_STATUS_USAGE;
	if (!to || to > w->nr_actors)
		write_refuse(w, "no actor has that number");
	else if (write_act(w, time_ns, actor))
		PUT(w, STREAM, time_ns, note_link, .actor = to);
	return (int)w->status;
}

int longpole_writer_identify(
	struct longpole_writer *w, uint64_t time_ns, uint32_t actor, uint64_t connection)
{
	if (!w)
		return LONGPOLE_STATUS_USAGE;
	if (write_act(w, time_ns, actor))
		PUT(w, STREAM, time_ns, note_identify, .connection = connection);
	return (int)w->status;
}

int longpole_writer_end(struct longpole_writer *w, uint64_t time_ns, uint32_t actor)
{
	if (!w)
		return LONGPOLE_STATUS_USAGE;
	if (write_act(w, time_ns, actor)) {
		PUT(w, STREAM, time_ns, note_end, .actor = actor);
		w->acting = 0;
	}
	return (int)w->status;
}

uint64_t longpole_writer_bytes(const struct longpole_writer *w)
{
	return w ? trace_writer_bytes(w->writer) : 0;
}

int longpole_writer_close(struct longpole_writer *w, uint64_t end_ns, struct longpole_error *error)
{
	struct base_err err;
	if (!w)
		return api_finish(error, BASE_OK, NULL);
	if (end_ns < w->last_ns)
		write_refuse(w, "the end is before the last call");
	PUT(w, STREAM, end_ns, thread_end);
	PUT(w, STREAM, end_ns, process_end, .status = 0);
	enum base_status closed = trace_writer_close(w->writer, &err);
	int s = w->status == BASE_OK ? api_finish(error, closed, &err)
				     : api_finish(error, w->status, &w->err);
	write_free(w);
	return s;
}

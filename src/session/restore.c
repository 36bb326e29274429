/* SPDX-License-Identifier: Apache-2.0 */
/* restore.c - from a trace's records and a journal back to what a converter knows. */
#include "session/restore.h"
#define LONGPOLE_DISABLE /* flags only */
#include "longpole/annotate.h"
#include "trace/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct session_restored {
	struct record_converter *c;
	struct restored_stream {
		uint64_t last_ns;
		bool process_ended;
		uint32_t nr_notes;
		struct record_note *note; /* RECORD_NOTES_MAX; NULL: none yet */
	} * stream;                       /* by number */
	size_t nr_streams, stream_capacity;
	uint32_t *actor_name; /* by actor */
	size_t nr_actors, actor_capacity;
};

struct session_restored *session_restored_new(struct record_converter *c)
{
	struct session_restored *r = base_alloc(sizeof *r);
	if (!r)
		return NULL;
	r->c = c;
	c->world.is_past = true;
	return r;
}

void session_restored_free(struct session_restored *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nr_streams; i++)
		base_free(r->stream[i].note);
	base_free(r->stream);
	base_free(r->actor_name);
	base_free(r);
}

static enum base_status restore_corrupt(struct base_err *err, const char *what)
{
	return base_fail(
		err, BASE_ERR_CORRUPT, "what the recorder kept does not fit together: %s", what);
}

static enum base_status restore_no_memory(struct base_err *err)
{
	return base_fail(err, BASE_ERR_NOMEM, "no memory to recover a recording");
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* Room for a definition with that id, which is also the highest one then; false: no memory, or no
 * such id can be. */
#define RESTORE_ROOM(id, nr, array, capacity)                                                      \
	((id) && (id) <= RECORD_DEFS_LIMIT &&                                                      \
		base_grow(&(array), &(capacity), (size_t)(id) + 1, sizeof *(array)) == BASE_OK &&  \
		((nr) = (id) > (nr) ? (id) : (nr), true))

static bool restore_string(struct record_sink *s, const struct trace_string *d)
{
	uint32_t id = 0;
	if (base_strtab_intern(s->strings, d->text.bytes, d->text.length, &id) != BASE_OK)
		return false;
	s->nr_strings_written = id + 1;
	return id == d->string;
}

static bool restore_module(struct record_sink *s, const struct trace_module *d)
{
	if (!RESTORE_ROOM(d->module, s->nr_modules, s->module, s->module_capacity))
		return false;
	s->module[d->module] = (struct record_module){.path = d->path, .build_id = d->build_id};
	return base_map_put(&s->modules, d->path, d->build_id, d->module) == BASE_OK;
}

static bool restore_site(struct record_sink *s, const struct trace_site *d)
{
	if (!RESTORE_ROOM(d->site, s->nr_sites, s->site, s->site_capacity))
		return false;
	s->site[d->site] = (struct record_site){
		.module = d->module <= s->nr_modules ? d->module : 0, .offset = d->offset};
	return base_map_put(&s->sites, d->module, d->offset, d->site) == BASE_OK;
}

static bool restore_object(struct record_sink *s, const struct trace_object *d)
{
	if (!RESTORE_ROOM(d->object, s->nr_objects, s->object, s->object_capacity))
		return false;
	s->object[d->object] = *d;
	s->nr_pairs = d->pair > s->nr_pairs ? d->pair : s->nr_pairs;
	return true;
}

static bool restore_actor(struct session_restored *r, const struct trace_actor *d)
{
	uint32_t nr = r->c->sink.nr_actors;
	if (!RESTORE_ROOM(d->actor, nr, r->actor_name, r->actor_capacity))
		return false;
	r->c->sink.nr_actors = nr;
	r->nr_actors = (size_t)nr + 1;
	r->actor_name[d->actor] = d->name;
	return true;
}

static void at_least(uint32_t *nr, uint32_t id)
{
	*nr = id > *nr && id <= RECORD_DEFS_LIMIT ? id : *nr;
}

static bool restore_definition(struct session_restored *r, const struct trace_record *d)
{
	struct record_sink *s = &r->c->sink;
	switch (d->kind) {
	case TRACE_string:
		return restore_string(s, &d->u.string);
	case TRACE_module:
		return restore_module(s, &d->u.module);
	case TRACE_site:
		return restore_site(s, &d->u.site);
	case TRACE_object:
		return restore_object(s, &d->u.object);
	case TRACE_actor:
		return restore_actor(r, &d->u.actor);
	case TRACE_stack:
		at_least(&s->nr_stacks, d->u.stack.stack);
		return base_map_put(&s->stacks, d->u.stack.parent, d->u.stack.site,
			       d->u.stack.stack) == BASE_OK;
	case TRACE_process:
		at_least(&s->nr_processes, d->u.process.process);
		return true;
	case TRACE_stream:
		at_least(&s->nr_streams, d->u.stream.stream);
		return true;
	case TRACE_state:
		at_least(&s->nr_states, d->u.state.state);
		return true;
	case TRACE_inlined:
		at_least(&s->nr_inlined, d->u.inlined.inlined);
		return true;
	default:
		return true;
	}
}

/* ---- records --------------------------------------------------------------------------------- */

static struct restored_stream *stream_at(struct session_restored *r, uint32_t stream)
{
	if (stream >= r->nr_streams) {
		if (base_grow(&r->stream, &r->stream_capacity, (size_t)stream + 1,
			    sizeof *r->stream) != BASE_OK)
			return NULL;
		r->nr_streams = (size_t)stream + 1;
	}
	return &r->stream[stream];
}

static bool push_note(struct session_restored *r, struct restored_stream *s, uint32_t actor)
{
	if (!s->note)
		s->note = base_alloc(RECORD_NOTES_MAX * sizeof *s->note);
	if (!s->note)
		return false;
	if (s->nr_notes < RECORD_NOTES_MAX)
		s->note[s->nr_notes++] = (struct record_note){
			.actor = actor, .name = actor < r->nr_actors ? r->actor_name[actor] : 0};
	return true;
}

/* The machines that a thread is in, as the converter counts them. */
static bool restore_notes(
	struct session_restored *r, struct restored_stream *s, const struct trace_record *d)
{
	uint64_t flags = 0;
	switch (d->kind) {
	case TRACE_note_begin:
		return push_note(r, s, d->u.note_begin.actor);
	case TRACE_note_act:
		s->nr_notes = 0;
		return push_note(r, s, d->u.note_act.actor);
	case TRACE_note_end:
		if (s->nr_notes && s->note[s->nr_notes - 1].actor == d->u.note_end.actor)
			s->nr_notes--;
		return true;
	case TRACE_note_link:
		flags = d->u.note_link.flags;
		break;
	case TRACE_note_put_item:
	case TRACE_note_take_item: /* of one layout */
		flags = d->u.note_put_item.flags;
		break;
	default: /* the queue verbs have one layout */
		if (d->kind >= TRACE_note_enqueue && d->kind <= TRACE_note_assert)
			flags = d->u.note_enqueue.flags;
		break;
	}
	if ((flags & LONGPOLE_END) && s->nr_notes)
		s->nr_notes--;
	return true;
}

static void restore_exact(struct record_sink *s, uint32_t site)
{
	if (site <= s->nr_sites)
		record_sink_site_is_exact(s, site);
}

enum base_status session_restore_record(
	struct session_restored *r, const struct trace_record *d, struct base_err *err)
{
	if (d->kind < TRACE_FIRST_DATA_KIND)
		return restore_definition(r, d)
			       ? BASE_OK
			       : restore_corrupt(err, trace_kind_find(d->kind)->name);
	struct restored_stream *s = stream_at(r, d->stream);
	if (!s || !restore_notes(r, s, d))
		return restore_no_memory(err);
	s->last_ns = d->time_ns;
	if (d->kind == TRACE_process_end)
		s->process_ended = true;
	else if (d->kind == TRACE_sample)
		restore_exact(&r->c->sink, d->u.sample.site);
	else if (d->kind == TRACE_thread_begin)
		restore_exact(&r->c->sink, d->u.thread_begin.site);
	return BASE_OK;
}

/* ---- the journal ----------------------------------------------------------------------------- */

static struct record_image *image_at(struct session_restored *r, uint64_t number)
{
	return number < RECORD_IMAGES_MAX ? record_world_find(&r->c->world, (uint32_t)number)
					  : NULL;
}

/* Does such a value mean something that is defined? */
static bool restore_is_defined(const struct record_sink *s, uint64_t map, uint64_t value)
{
	switch (map) {
	case RECORD_MAP_objects:
	case RECORD_MAP_pairs:
	case RECORD_MAP_queues:
		return value <= s->nr_objects;
	case RECORD_MAP_actors:
		return value <= s->nr_actors;
	case RECORD_MAP_places:
		return value <= s->nr_sites;
	case RECORD_MAP_states:
		return value <= s->nr_states;
	case RECORD_MAP_names:
		return value >> 32 < s->nr_strings_written && (value & UINT32_MAX) <= s->nr_sites;
	default:
		return true;
	}
}

static bool apply_map(struct session_restored *r, const uint64_t *w)
{
	struct base_map *m = w[0] < RECORD_MAP_NR
				     ? record_converter_map(r->c, (enum record_map_number)w[0])
				     : NULL;
	if (!m || !restore_is_defined(&r->c->sink, w[0], w[3]))
		return false;
	if (w[0] == RECORD_MAP_mappings && w[3] > r->c->world.nr_mappings)
		r->c->world.nr_mappings = w[3];
	return base_map_put(m, w[1], w[2], w[3]) == BASE_OK;
}

static bool apply_image(struct session_restored *r, const uint64_t *w)
{
	return !image_at(r, w[0]) && w[0] < RECORD_IMAGES_MAX && w[3] <= r->c->sink.nr_processes &&
	       record_world_known_image(&r->c->world, (uint32_t)w[0], (uint32_t)w[1],
		       (uint32_t)w[2], (uint32_t)w[3]);
}

static bool apply_range(struct session_restored *r, const uint64_t *w)
{
	struct record_image *image = image_at(r, w[0]);
	if (image && w[4] <= r->c->sink.nr_modules)
		record_image_module(&r->c->world, image,
			(struct record_range){.start = w[1],
				.end = w[2],
				.bias = w[3],
				.module = (uint32_t)w[4],
				.by_kernel = w[5]});
	return true; /* (of an image that only the kernel saw: nothing in the ring is of it) */
}

static bool apply_unload(struct session_restored *r, const uint64_t *w)
{
	struct record_image *image = image_at(r, w[0]);
	if (image)
		record_image_unload(&r->c->world, image, w[1], UINT64_MAX);
	record_world_forget_unloaded(&r->c->world, UINT64_MAX);
	return true;
}

static bool apply_forked(struct session_restored *r, const uint64_t *w)
{
	struct record_image *image = image_at(r, w[0]);
	if (image)
		record_image_set_forked(&r->c->world, image);
	return true; /* (as above) */
}

static bool apply_shared(struct session_restored *r, const uint64_t *w)
{
	struct record_image *image = image_at(r, w[0]);
	if (!image)
		return true;
	if (base_grow(&image->shared, &image->shared_capacity, image->nr_shared + 1,
		    sizeof *image->shared) != BASE_OK)
		return false;
	/* The newest first: it counts where two overlap. */
	memmove(image->shared + 1, image->shared, image->nr_shared++ * sizeof *image->shared);
	image->shared[0] = (struct record_shared){
		.start = w[1], .end = w[2], .offset = w[3], .dev = w[4], .ino = w[5]};
	return true;
}

static bool apply_thread(struct session_restored *r, const uint64_t *w)
{
	struct record_converter *c = r->c;
	struct record_image *image = image_at(r, w[0]);
	if (!image || !w[6] || w[6] > c->sink.nr_streams)
		return false;
	struct record_thread *t =
		record_converter_thread(c, image->number, 0, (uint32_t)w[2], (uint32_t)w[3], w[1]);
	if (!t)
		return false;
	t->own_pid = (uint32_t)w[4];
	t->own_tid = (uint32_t)w[5];
	t->stream = (uint32_t)w[6];
	image->pid_ns = w[7];
	t->started = true;
	const struct restored_stream *s = t->stream < r->nr_streams ? &r->stream[t->stream] : NULL;
	if (!s)
		return true;
	t->last_ns = s->last_ns;
	image->ended = image->ended || s->process_ended;
	for (uint32_t i = 0; i < s->nr_notes; i++)
		record_thread_push_note(c, t, s->note[i]);
	return true;
}

static bool apply_named(struct session_restored *r, const uint64_t *w)
{
	struct record_sink *s = &r->c->sink;
	if (w[0] > s->nr_objects || w[1] > s->nr_modules)
		return false;
	record_sink_object_at(s, (uint32_t)w[0], (uint32_t)w[1], w[2]);
	return true;
}

static bool apply_made(struct session_restored *r, const uint64_t *w)
{
	struct record_sink *s = &r->c->sink;
	struct record_made made = {
		.object = (uint32_t)w[0], .init_site = (uint32_t)w[1], .heap_site = (uint32_t)w[2]};
	bool fits = w[0] <= s->nr_objects && w[1] <= s->nr_sites && w[2] <= s->nr_sites;
	for (; made.nr_path < RECORD_MADE_PATH && w[3 + made.nr_path]; made.nr_path++) {
		made.path[made.nr_path] = (uint32_t)w[3 + made.nr_path];
		fits = fits && w[3 + made.nr_path] <= s->nr_sites;
	}
	if (fits)
		record_sink_object_made(s, &made);
	return fits;
}

enum base_status session_restore_entries(
	struct session_restored *r, const uint8_t *bytes, size_t nr, struct base_err *err)
{
	static bool (*const how[])(struct session_restored * r, const uint64_t *w) = {
#define JOURNAL(kind, words) apply_##kind,
		RECORD_JOURNAL(JOURNAL)
#undef JOURNAL
	};
	struct record_journal_entry e;
	for (const uint8_t *p = bytes, *end = bytes + nr; p < end;) {
		p = record_journal_read(p, end, &e);
		if (!p)
			return restore_corrupt(err, "the journal is damaged");
		if (!how[e.kind](r, e.word))
			return record_sink_failed(&r->c->sink)
				       ? restore_no_memory(err)
				       : restore_corrupt(err, "the journal");
		if (record_sink_failed(&r->c->sink))
			return restore_no_memory(err);
	}
	return BASE_OK;
}

enum base_status session_restore_journal(struct session_restored *r, int dir_fd, const char *name,
	uint64_t size_bytes, struct base_err *err)
{
	enum base_status status = BASE_OK;
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return base_fail_errno(err, errno, "%s", name);
	uint8_t *bytes = size_bytes < SIZE_MAX ? base_alloc((size_t)size_bytes + 1) : NULL;
	if (!bytes)
		status = restore_no_memory(err);
	else if (pread(fd, bytes, (size_t)size_bytes, 0) != (ssize_t)size_bytes)
		status = restore_corrupt(err, "the journal was cut");
	else
		status = session_restore_entries(r, bytes, (size_t)size_bytes, err);
	base_free(bytes);
	close(fd);
	return status;
}

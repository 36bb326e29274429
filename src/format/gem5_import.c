/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gem5_import.c - annotate.bin as a trace: one stream that speaks for the machines in turn
 * (note_act), each record one note. What the simulator knew and a trace cannot say is counted.
 */
#include "format/gem5.h"

#define LONGPOLE_DISABLE /* for the flags only */
#include "longpole/annotate.h"

#include <string.h>

enum { BATCH_RECORDS = 4096, KEY_MAX_BYTES = 256 << 20, STREAM = 1 };

/* ---- bytes ----------------------------------------------------------------------------------- */

static uint64_t gem5_take(const uint8_t *p, unsigned nr_bytes, bool big_endian)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < nr_bytes; i++)
		v |= (uint64_t)p[big_endian ? nr_bytes - 1 - i : i] << 8 * i;
	return v;
}

static struct gem5_record gem5_take_record(const uint8_t *p, bool big)
{
	return (struct gem5_record){
		.tick = gem5_take(p, 8, big),
		.data = (uint32_t)gem5_take(p + 8, 4, big),
		.machine = (uint16_t)gem5_take(p + 12, 2, big),
		.what = (uint16_t)gem5_take(p + 14, 2, big),
		.op = p[16],
		.flags = p[17],
		.cpu = p[18],
	};
}

/* ---- the run --------------------------------------------------------------------------------- */

struct gem5_import {
	const struct format_source *from;
	struct trace_writer *to;
	struct base_err *err;
	struct base_str *notes;
	uint64_t tick_ps;
	bool big_endian;
	uint64_t nr_records; /* in the file, as far as it goes */
	bool cut;

	struct gem5_key key;
	bool named; /* the key is whole: an id beyond it is an error, else it gets a name */
	struct base_strtab *strings; /* texts of the trace; ids are its string ids */
	uint32_t *machine, *queue;   /* the file's ids -> the trace's; 0: not defined yet */
	uint32_t nr_machines, nr_queues, nr_states;
	struct base_map states; /* (machine's name, state's id) -> the trace's */

	uint32_t acting; /* the file's machine */
	unsigned cpu;
	uint64_t nr_done, nr_unknown_ops, nr_bad_ids, nr_links_open, nr_flags, nr_hardware;
	uint64_t nr_cpu_changes, nr_waits;
	enum base_status status;
};

static void gem5_put(struct gem5_import *im, struct trace_record r)
{
	if (im->status == BASE_OK)
		im->status = trace_writer_put(im->to, &r, im->err);
}

#define PUT(im, at, by, what, ...)                                                                 \
	gem5_put(im, (struct trace_record){.time_ns = (at),                                        \
			     .stream = (by),                                                       \
			     .kind = TRACE_##what,                                                 \
			     .u.what = {__VA_ARGS__}})

/* The trace's id of a text, defined when new. */
static uint32_t string(struct gem5_import *im, const char *text)
{
	uint32_t id = 0, before = base_strtab_count(im->strings);
	struct base_str clean = {0};
	format_clean_add(&clean, text);
	enum base_status s = clean.failed ? BASE_ERR_NOMEM
					  : base_strtab_intern(im->strings, base_str_text(&clean),
						    clean.length, &id);
	base_str_fini(&clean);
	if (s != BASE_OK && im->status == BASE_OK)
		im->status = base_fail(im->err, s, "out of memory for names");
	if (id == before && s == BASE_OK) {
		const char *kept = base_strtab_get(im->strings, id);
		PUT(im, 0, 0, string, .string = id, .text = {kept, (uint32_t)strlen(kept)});
	}
	return id;
}

static uint32_t generated(struct gem5_import *im, const char *what, unsigned number)
{
	struct base_str s = {0};
	base_str_addf(&s, "%s %u", what, number);
	uint32_t id = string(im, base_str_text(&s));
	base_str_fini(&s);
	return id;
}

static const struct gem5_thing *gem5_named(const struct gem5_things *t, uint32_t id)
{
	return id < t->nr && t->thing[id].name ? &t->thing[id] : NULL;
}

static const char *system_text(const struct gem5_import *im, uint64_t system)
{
	bool known = system && system < im->key.nr_systems;
	return known ? base_strtab_get(im->key.text, im->key.system[system]) : "";
}

/* 0: there is no such machine. */
static uint32_t machine(struct gem5_import *im, uint32_t id)
{
	const struct gem5_thing *t = gem5_named(&im->key.machines, id);
	if (!id || (!t && im->named))
		return 0;
	if (im->machine[id])
		return im->machine[id];
	uint32_t system = 0, name;
	if (t) {
		system = string(im, system_text(im, t->system));
		name = string(im, base_strtab_get(im->key.text, t->name));
	} else {
		name = generated(im, "machine", id);
	}
	im->machine[id] = ++im->nr_machines;
	PUT(im, 0, 0, actor, .actor = im->nr_machines, .system = system, .name = name,
		.instance = t ? t->instance : 0);
	return im->nr_machines;
}

/* A queue of a trace belongs to no system; where there are several, its name says which. */
static uint32_t queue_name(struct gem5_import *im, const struct gem5_thing *t)
{
	struct base_str s = {0};
	const char *system = system_text(im, t->system);
	base_str_add(&s, base_strtab_get(im->key.text, t->name));
	if (*system && im->key.nr_systems > 2)
		base_str_addf(&s, "@%s", system);
	uint32_t id = string(im, base_str_text(&s));
	base_str_fini(&s);
	return id;
}

static uint32_t queue(struct gem5_import *im, uint32_t id)
{
	const struct gem5_thing *t = gem5_named(&im->key.queues, id);
	if (!id || (!t && im->named))
		return 0;
	if (im->queue[id])
		return im->queue[id];
	uint32_t name = t ? queue_name(im, t) : generated(im, "queue", id);
	im->queue[id] = ++im->nr_queues;
	PUT(im, 0, 0, object, .object = im->nr_queues, .type = TRACE_OBJECT_queue,
		.address = t ? t->instance : 0, .name = name);
	return im->nr_queues;
}

/* States are counted by machine name. One that the key does not name gets its number. */
static uint32_t state(struct gem5_import *im, uint32_t machine_id, uint32_t id)
{
	const struct gem5_thing *t = gem5_named(&im->key.machines, machine_id);
	uint64_t hi = t ? t->name : UINT64_C(1) << 32 | machine_id, found, text;
	if (base_map_get(&im->states, hi, id, &found))
		return (uint32_t)found;
	uint32_t name;
	if (t && base_map_get(&im->key.states, t->name, id, &text))
		name = string(im, base_strtab_get(im->key.text, (uint32_t)text));
	else
		name = generated(im, "state", id);
	if (!base_map_get(&im->states, UINT64_MAX, name, &found)) { /* its own for each text */
		found = ++im->nr_states;
		PUT(im, 0, 0, state, .state = (uint32_t)found, .name = name);
		if (im->status == BASE_OK)
			im->status = base_map_put(&im->states, UINT64_MAX, name, found);
	}
	if (im->status == BASE_OK)
		im->status = base_map_put(&im->states, hi, id, found);
	return (uint32_t)found;
}

static uint64_t time_of(const struct gem5_import *im, uint64_t tick)
{
	unsigned __int128 ns = (unsigned __int128)tick * im->tick_ps / 1000;
	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

static enum trace_kind gem5_import_kind_of(uint8_t op)
{
	switch (op) {
	case GEM5_BEGIN:
		return TRACE_note_state;
	case GEM5_WAIT_EMPTY:
		return TRACE_note_wait_empty;
	case GEM5_WAIT_FULL:
		return TRACE_note_wait_full;
	case GEM5_QUEUE:
		return TRACE_note_enqueue;
	case GEM5_DEQUEUE:
		return TRACE_note_dequeue;
	case GEM5_SIZE_QUEUE:
		return TRACE_note_resize;
	case GEM5_PEEK:
		return TRACE_note_peek;
	case GEM5_LINK:
		return TRACE_note_link;
	case GEM5_IDENT:
		return TRACE_note_identify;
	case GEM5_RESERVE:
		return TRACE_note_reserve;
	default:
		return (enum trace_kind)0;
	}
}

/* One record without its machine. False: it mentions what is not there. */
static bool gem5_import_convert(
	struct gem5_import *im, const struct gem5_record *g, struct trace_record *r)
{
	switch (g->op) {
	case GEM5_BEGIN:
		r->u.note_state = (struct trace_note_state){.state = state(im, g->machine, g->what),
			.flags = g->flags & GEM5_FL_BAD ? LONGPOLE_SUSPECT : 0};
		return true;
	case GEM5_LINK:
		r->u.note_link.actor = machine(im, g->what);
		return r->u.note_link.actor != 0;
	case GEM5_IDENT:
		r->u.note_identify.connection = g->data;
		return true;
	default:
		break;
	}
	bool all = g->data == GEM5_ALL && (g->op == GEM5_DEQUEUE || g->op == GEM5_PEEK);
	uint64_t flags = (g->flags & GEM5_FL_QOPP ? LONGPOLE_LIFO : 0u) |
			 (g->flags & GEM5_FL_RESET ? LONGPOLE_RESET : 0u);
	r->u.note_enqueue = (struct trace_note_enqueue){/* all queue verbs are of one shape */
		.object = queue(im, g->what),
		.n = all ? LONGPOLE_ALL : g->data,
		.flags = flags};
	return r->u.note_enqueue.object != 0;
}

static void count_unsaid(struct gem5_import *im, const struct gem5_record *g)
{
	bool begins = g->op == GEM5_BEGIN;
	uint8_t told = begins ? GEM5_FL_BAD : GEM5_FL_QOPP | GEM5_FL_RESET;
	im->nr_hardware += (g->flags & GEM5_FL_HW) != 0;
	im->nr_waits += begins && g->flags & GEM5_FL_WAIT;
	told |= GEM5_FL_HW | (begins ? GEM5_FL_WAIT : 0);
	im->nr_flags += (g->flags & (uint8_t)~told) != 0;
	im->nr_cpu_changes += im->nr_done && im->cpu != g->cpu;
	im->cpu = g->cpu;
}

static void one(struct gem5_import *im, const struct gem5_record *g)
{
	struct trace_record r = {.time_ns = time_of(im, g->tick),
		.stream = STREAM,
		.kind = (uint16_t)gem5_import_kind_of(g->op)};
	if (!r.kind) {
		im->nr_unknown_ops++;
		return;
	}
	if (g->op == GEM5_LINK && g->what == GEM5_LINK_LATER) {
		im->nr_links_open++;
		return;
	}
	uint32_t actor = machine(im, g->machine);
	if (!actor || !gem5_import_convert(im, g, &r)) {
		im->nr_bad_ids++;
		return;
	}
	count_unsaid(im, g);
	if (im->acting != g->machine)
		PUT(im, r.time_ns, STREAM, note_act, .actor = actor);
	im->acting = g->machine;
	gem5_put(im, r);
	im->nr_done++;
}

/* ---- the file -------------------------------------------------------------------------------- */

struct header {
	uint64_t nr_records, key_offset;
	uint32_t key_bytes;
};

static enum base_status read_bytes(struct gem5_import *im, uint64_t offset, void *to, size_t length)
{
	return im->from->read(im->from->ctx, offset, to, length, im->err);
}

static enum base_status read_header(struct gem5_import *im, struct header *h)
{
	uint8_t b[GEM5_HEADER_BYTES];
	if (im->from->size_bytes < sizeof b)
		return base_fail(im->err, BASE_ERR_FOREIGN,
			"%llu {byte is|bytes are} no annotate.bin: its header alone has %zu",
			(unsigned long long)im->from->size_bytes, sizeof b);
	enum base_status s = read_bytes(im, 0, b, sizeof b);
	if (s != BASE_OK)
		return s;
	uint64_t version = gem5_take(b, 8, false);
	im->big_endian = gem5_take(b, 8, true) == GEM5_VERSION;
	if (version != GEM5_VERSION && !im->big_endian)
		return base_fail(im->err, BASE_ERR_FOREIGN,
			"begins with 0x%016llx instead of annotate.bin's version 0x%016llx, in "
			"either "
			"byte order",
			(unsigned long long)version, (unsigned long long)GEM5_VERSION);
	*h = (struct header){.nr_records = gem5_take(b + 8, 8, im->big_endian),
		.key_offset = gem5_take(b + 16, 8, im->big_endian),
		.key_bytes = (uint32_t)gem5_take(b + 32, 4, im->big_endian)};
	return BASE_OK;
}

/* Where the records end; what is wrong with that is noted. */
static void find_records(struct gem5_import *im, const struct header *h)
{
	uint64_t size = im->from->size_bytes, end = size;
	bool ended = h->nr_records && h->key_offset;
	if (h->key_offset >= GEM5_HEADER_BYTES && h->key_offset < size)
		end = h->key_offset;
	im->nr_records = (end - GEM5_HEADER_BYTES) / GEM5_RECORD_BYTES;
	if (ended && h->nr_records <= im->nr_records) {
		im->nr_records = h->nr_records;
		return;
	}
	im->cut = true;
	uint64_t rest = (end - GEM5_HEADER_BYTES) % GEM5_RECORD_BYTES;
	if (!ended)
		base_str_add(im->notes, "the simulation was cut short, its annotations were never "
					"ended: imported as far as they go\n");
	else
		base_str_addf(im->notes,
			"the header promises %llu {record|records}, there are %llu: imported as "
			"far as they "
			"go\n",
			(unsigned long long)h->nr_records, (unsigned long long)im->nr_records);
	format_note_count(im->notes, rest, "the last %s {byte is|bytes are} no whole record");
}

static enum base_status read_key(struct gem5_import *im, const struct header *h)
{
	uint64_t size = im->from->size_bytes, length = h->key_bytes;
	if (h->key_offset < GEM5_HEADER_BYTES || !length) {
		base_str_add(im->notes, "the file has no key: names are generated\n");
		return format_gem5_key_parse(&im->key, "", 0, im->err);
	}
	uint64_t there = h->key_offset < size ? size - h->key_offset : 0;
	bool whole = length <= there;
	if (!whole) {
		length = there;
		base_str_addf(im->notes,
			"the key is cut after %llu of %u {byte|bytes}: names beyond are "
			"generated\n",
			(unsigned long long)length, h->key_bytes);
		im->cut = true;
	}
	if (length > KEY_MAX_BYTES)
		return base_fail(im->err, BASE_ERR_LIMIT,
			"the key has %llu {byte|bytes}, more than the %d that are read",
			(unsigned long long)length, KEY_MAX_BYTES);
	char *text = base_alloc((size_t)length + 1);
	if (!text)
		return base_fail(im->err, BASE_ERR_NOMEM, "out of memory for the key");
	enum base_status s = BASE_OK;
	if (length)
		s = read_bytes(im, h->key_offset, text, (size_t)length);
	if (s == BASE_OK)
		s = format_gem5_key_parse(&im->key, text, (size_t)length, im->err);
	base_free(text);
	im->named = s == BASE_OK && whole && !im->key.nr_damaged;
	if (s == BASE_OK && im->key.nr_damaged) {
		base_str_add(im->notes, "the key is damaged, names beyond are generated: ");
		format_clean_add(im->notes, base_str_text(&im->key.damage));
		base_str_add(im->notes, "\n");
	}
	return s;
}

static enum base_status read_records(
	struct gem5_import *im, const struct format_import_options *opts)
{
	uint8_t *bytes = base_alloc((size_t)BATCH_RECORDS * GEM5_RECORD_BYTES);
	uint64_t at = GEM5_HEADER_BYTES, left = im->nr_records;
	if (!bytes)
		return base_fail(im->err, BASE_ERR_NOMEM, "out of memory for records");
	while (left && im->status == BASE_OK) {
		size_t nr = left < BATCH_RECORDS ? (size_t)left : BATCH_RECORDS;
		im->status = read_bytes(im, at, bytes, nr * GEM5_RECORD_BYTES);
		for (size_t i = 0; i < nr && im->status == BASE_OK; i++) {
			struct gem5_record g =
				gem5_take_record(bytes + i * GEM5_RECORD_BYTES, im->big_endian);
			one(im, &g);
		}
		at += nr * GEM5_RECORD_BYTES;
		left -= nr;
		if (opts->progress)
			opts->progress(opts->progress_ctx, at, im->from->size_bytes);
	}
	base_free(bytes);
	return im->status;
}

static void define_stream(struct gem5_import *im)
{
	uint32_t program = string(im, "gem5"), command = string(im, im->from->name);
	PUT(im, 0, 0, process, .process = 1, .name = program, .command = command);
	PUT(im, 0, 0, stream, .stream = STREAM, .process = 1, .name = program);
}

static void note_all(struct gem5_import *im)
{
	struct base_str *n = im->notes;
	base_str_add_counted(n, "%s {record|records}", im->nr_done);
	base_str_addf(n, " of %u state {machine|machines} on %u {queue|queues}, in %s byte order\n",
		im->nr_machines, im->nr_queues, im->big_endian ? "big-endian" : "little-endian");
	format_note_count(n, im->nr_unknown_ops,
		"%s {record of unknown operations was|records of unknown operations were} left "
		"out");
	format_note_count(n, im->nr_bad_ids,
		"%s {record mentions|records mention} ids that the key lacks and were left out");
	format_note_count(n, im->nr_links_open,
		"%s {link into code without annotations was|links into code without annotations "
		"were} left out (nothing took them up)");
	format_note_count(n, im->nr_hardware,
		"%s {record is|records are} of hardware models; a trace does not tell them from "
		"software");
	format_note_count(n, im->nr_cpu_changes,
		"the processor changes %s {time|times} between records; a trace of machines does "
		"not say "
		"on which one they ran");
	format_note_count(n, im->nr_waits,
		"%s {state was|states were} marked as waits of hardware for something that is no "
		"queue; they "
		"count as execution");
	format_note_count(
		n, im->nr_flags, "%s {record has|records have} flags that mean nothing there");
	uint64_t skipped = im->nr_unknown_ops + im->nr_bad_ids;
	if (skipped)
		trace_writer_count(im->to, TRACE_DIAG_import_skipped, skipped);
	if (im->cut)
		trace_writer_count(im->to, TRACE_DIAG_import_cut, 1);
}

static enum base_status gem5_import_run(
	struct gem5_import *im, const struct format_import_options *opts)
{
	struct header h = {0};
	enum base_status s = read_header(im, &h);
	if (s != BASE_OK)
		return s;
	im->strings = base_strtab_new();
	im->machine = base_alloc(GEM5_IDS * sizeof *im->machine);
	im->queue = base_alloc(GEM5_IDS * sizeof *im->queue);
	if (!im->strings || !im->machine || !im->queue)
		return base_fail(im->err, BASE_ERR_NOMEM, "out of memory for ids");
	find_records(im, &h);
	s = read_key(im, &h);
	if (s != BASE_OK)
		return s;
	define_stream(im);
	s = read_records(im, opts);
	if (s == BASE_OK)
		note_all(im);
	return s;
}

enum base_status format_import_gem5(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	struct gem5_import im = {.from = from,
		.to = to,
		.err = err,
		.notes = notes,
		.tick_ps = opts->tick_ps ? opts->tick_ps : GEM5_TICK_PS};
	enum base_status s = gem5_import_run(&im, opts);
	format_gem5_key_fini(&im.key);
	base_strtab_free(im.strings);
	base_map_fini(&im.states);
	base_free(im.machine);
	base_free(im.queue);
	return s;
}

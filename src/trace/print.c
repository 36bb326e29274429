/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - a record for people and for programs, by the table: no kind is known here. */
#include "trace/trace.h"
#include "trace/enums.h"
#include "trace/syscalls.h"

#include <string.h>

/* Frames of a call path; it also ends a path that a damaged file bites into its tail. */
enum { STACK_FRAMES_MAX = 256 };

/* Without a format to interpret: a dump prints some hundred million of these. */
static void print_add_u64(struct base_str *out, uint64_t v)
{
	char digits[20];
	size_t at = sizeof digits;

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	base_str_add_bytes(out, digits + at, sizeof digits - at);
}

static void add_s64(struct base_str *out, int64_t v)
{
	if (v < 0)
		base_str_add_bytes(out, "-", 1);
	print_add_u64(out, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static void add_hex(struct base_str *out, uint64_t v)
{
	char digits[18];
	size_t at = sizeof digits;

	do {
		digits[--at] = "0123456789abcdef"[v & 15];
		v >>= 4;
	} while (v);
	digits[--at] = 'x';
	digits[--at] = '0';
	base_str_add_bytes(out, digits + at, sizeof digits - at);
}

/* ---- names of ids ---------------------------------------------------------------------------- */

/* Each names one id of a table; adds nothing when there is no name. */

static void name_string(struct base_str *out, const struct trace_defs *d, uint64_t id)
{
	base_str_add(out, trace_text_of(d, (uint32_t)id));
}

static void name_process(struct base_str *out, const struct trace_defs *d, uint64_t id)
{
	if (!id || id >= d->nr_processes)
		return;
	base_str_add(out, trace_text_of(d, d->processes[id].name));
	base_str_add(out, "[");
	print_add_u64(out, d->processes[id].pid);
	base_str_add(out, "]");
}

static void name_stream(struct base_str *out, const struct trace_defs *d, uint64_t id)
{
	if (!id || id >= d->nr_streams)
		return;
	const char *name = trace_text_of(d, d->streams[id].name);
	if (*name)
		base_str_add(out, name);
	else if (d->streams[id].tid)
		print_add_u64(out, d->streams[id].tid);
}

static void print_name_module(struct base_str *out, const struct trace_defs *d, uint64_t id)
{
	if (id && id < d->nr_modules)
		base_str_add(out, trace_text_of(d, d->modules[id].path));
}

static void name_unresolved_site(struct base_str *out, const struct trace_defs *d, uint64_t id)
{
	const struct trace_site *s = &d->sites[id];
	const char *path =
		s->module < d->nr_modules ? trace_text_of(d, d->modules[s->module].path) : "";
	const char *slash = strrchr(path, '/');

	base_str_add(out, slash ? slash + 1 : path);
	if (*path)
		base_str_add(out, "+");
	add_hex(out, s->offset);
}

static void print_name_site(struct base_str *out, const struct trace_defs *d, uint64_t id)
{
	if (!id || id >= d->nr_sites)
		return;
	static const struct trace_symbol none;
	const struct trace_symbol *s = id < d->nr_symbols ? &d->symbols[id] : &none;
	const char *function = trace_text_of(d, s->function), *file = trace_text_of(d, s->file);

	if (*function)
		base_str_add(out, function);
	else
		name_unresolved_site(out, d, id);
	if (*file) {
		base_str_add(out, " (");
		base_str_add(out, file);
		base_str_add(out, ":");
		print_add_u64(out, s->line);
		base_str_add(out, ")");
	} else if (*function && d->sites[id].offset >= s->function_offset) {
		base_str_add(out, "+");
		add_hex(out, d->sites[id].offset - s->function_offset);
	}
}

static void name_stack(struct base_str *out, const struct trace_defs *d, uint64_t id)
{
	for (int i = 0; i < STACK_FRAMES_MAX && id && id < d->nr_stacks; i++) {
		if (i)
			base_str_add(out, " < ");
		print_name_site(out, d, d->stacks[id].site);
		id = d->stacks[id].parent;
	}
}

/* One function for each list of enums.h. */
#define ENUM_NAMER(function, LIST)                                                                 \
	static void function(struct base_str *out, const struct trace_defs *d, uint64_t value)     \
	{                                                                                          \
		static const char *const text[] = {LIST(ENUM_TEXT)};                               \
                                                                                                   \
		(void)d;                                                                           \
		if (value < BASE_COUNT(text))                                                      \
			base_str_add(out, text[value]);                                            \
	}
#define ENUM_TEXT(name, text) text,
ENUM_NAMER(name_object_type, TRACE_OBJECT_TYPES)
ENUM_NAMER(name_io, TRACE_IO_OPS)
ENUM_NAMER(name_context, TRACE_CONTEXTS)
ENUM_NAMER(name_sleep, TRACE_SLEEPS)
ENUM_NAMER(name_task, TRACE_TASKS)
ENUM_NAMER(name_turn, TRACE_TURNS)
ENUM_NAMER(name_disk, TRACE_DISK_OPS)
ENUM_NAMER(name_ring_op, TRACE_RING_OPS)
ENUM_NAMER(name_mpi_op, TRACE_MPI_OPS)
ENUM_NAMER(name_work, TRACE_WORKS)

const char *trace_object_type_text(uint64_t type)
{
	static const char *const text[] = {TRACE_OBJECT_TYPES(ENUM_TEXT)};

	return type < BASE_COUNT(text) ? text[type] : "object";
}

static void name_syscall(struct base_str *out, const struct trace_defs *d, uint64_t number)
{
	const char *name = trace_syscall_find(number)->name;

	(void)d;
	if (name)
		base_str_add(out, name);
}

static void print_name_object(struct base_str *out, const struct trace_defs *d, uint64_t id)
{
	if (!id || id >= d->nr_objects)
		return;
	const struct trace_object *o = &d->objects[id];
	const char *name = trace_text_of(d, o->name);

	base_str_add(out, trace_object_type_text(o->type));
	base_str_add(out, " ");
	if (*name)
		base_str_add(out, name);
	else
		add_hex(out, o->address);
}

static void print_name_actor(struct base_str *out, const struct trace_defs *d, uint64_t id)
{
	if (!id || id >= d->nr_actors)
		return;
	const struct trace_actor *a = &d->actors[id];
	const char *system = trace_text_of(d, a->system);

	base_str_add(out, system);
	if (*system)
		base_str_add(out, "/");
	base_str_add(out, trace_text_of(d, a->name));
	if (a->instance) {
		base_str_add(out, "#");
		print_add_u64(out, a->instance);
	}
}

static void name_state(struct base_str *out, const struct trace_defs *d, uint64_t id)
{
	if (id && id < d->nr_states)
		base_str_add(out, trace_text_of(d, d->states[id].name));
}

/* A field's unit says which table its values are of. */
static const struct namer {
	const char *unit;
	void (*name)(struct base_str *out, const struct trace_defs *d, uint64_t id);
} namers[] = {
	{"string", name_string},
	{"site", print_name_site},
	{"object", print_name_object},
	{"stack", name_stack},
	{"actor", print_name_actor},
	{"state", name_state},
	{"process", name_process},
	{"stream", name_stream},
	{"module", print_name_module},
	{"enum trace_object_type", name_object_type},
	{"enum trace_io", name_io},
	{"x86-64 system call", name_syscall},
	{"enum trace_context", name_context},
	{"enum trace_sleep", name_sleep},
	{"enum trace_task", name_task},
	{"enum trace_turn", name_turn},
	{"enum trace_disk", name_disk},
	{"io_uring operation", name_ring_op},
	{"enum trace_mpi", name_mpi_op},
	{"enum trace_work", name_work},
};

static const struct namer *find_namer(const char *unit)
{
	for (size_t i = 0; i < BASE_COUNT(namers); i++) {
		if (!strcmp(namers[i].unit, unit))
			return &namers[i];
	}
	return NULL;
}

/* ---- escaping -------------------------------------------------------------------------------- */

/*
 * As JSON has it between quotes. A byte that is not UTF-8 becomes a lone low surrogate, U+DC00 +
 * byte, as in Python's "surrogateescape": the line stays valid JSON and the byte can be had back.
 */
static void print_add_escaped(struct base_str *out, const char *text, size_t length)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + length, *plain = p;

	while (p < end) {
		uint32_t code = 0;
		size_t n = base_utf8_decode(p, (size_t)(end - p), &code);
		if (n && *p != '"' && *p != '\\' && base_is_shown(code)) {
			p += n;
			continue;
		}
		base_str_add_bytes(out, plain, (size_t)(p - plain));
		if (*p == '"' || *p == '\\') {
			base_str_add_bytes(out, "\\", 1);
			base_str_add_bytes(out, p, 1);
		} else if (*p == '\n') {
			base_str_add(out, "\\n");
		} else if (*p == '\t') {
			base_str_add(out, "\\t");
		} else {
			base_str_add_escape(out, n ? code : 0xdc00u + *p);
		}
		p += n ? n : 1;
		plain = p;
	}
	base_str_add_bytes(out, plain, (size_t)(p - plain));
}

static void print_add_quoted(struct base_str *out, const char *text, size_t length)
{
	base_str_add_bytes(out, "\"", 1);
	print_add_escaped(out, text, length);
	base_str_add_bytes(out, "\"", 1);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Fields are at their offset, whatever the kind: read them by their bytes. */
uint64_t trace_field_number(const struct trace_record *r, const struct trace_field_desc *f)
{
	const char *p = (const char *)r + f->offset;
	uint64_t v = 0;
	uint32_t id;

	if (f->type == TRACE_FIELD_ID) {
		memcpy(&id, p, sizeof id);
		return id;
	}
	memcpy(&v, p, sizeof v);
	return v;
}

struct trace_text trace_field_text(const struct trace_record *r, const struct trace_field_desc *f)
{
	struct trace_text text;

	memcpy(&text, (const char *)r + f->offset, sizeof text);
	return text;
}

static void print_add_value(
	struct base_str *out, const struct trace_record *r, const struct trace_field_desc *f)
{
	if (f->type == TRACE_FIELD_TEXT) {
		struct trace_text text = trace_field_text(r, f);
		print_add_quoted(out, text.bytes, text.length);
	} else if (f->type == TRACE_FIELD_S64) {
		add_s64(out, (int64_t)trace_field_number(r, f));
	} else {
		print_add_u64(out, trace_field_number(r, f));
	}
}

static bool is_address(const struct trace_field_desc *f)
{
	return !strcmp(f->unit, "address") || !strcmp(f->name, "offset") ||
	       !strcmp(f->name, "function_offset") || !strcmp(f->unit, "pthread_t");
}

bool trace_field_name(struct base_str *name, const struct trace_defs *d,
	const struct trace_record *r, const struct trace_field_desc *f)
{
	const struct namer *namer = f->type == TRACE_FIELD_TEXT ? NULL : find_namer(f->unit);

	base_str_reset(name);
	if (!namer)
		return false;
	namer->name(name, d, trace_field_number(r, f));
	return name->length || name->failed;
}

void trace_stream_name(struct base_str *name, const struct trace_defs *d, uint32_t stream)
{
	base_str_reset(name);
	name_stream(name, d, stream);
}

void trace_print_text(
	struct base_str *out, const struct trace_defs *d, const struct trace_record *r)
{
	const struct trace_kind_desc *k = trace_kind_find(r->kind);
	struct base_str name = {0};

	if (r->stream) {
		print_add_u64(out, r->time_ns);
		base_str_add(out, " ");
		print_add_u64(out, r->stream);
		base_str_add(out, ":");
		trace_stream_name(&name, d, r->stream);
		print_add_escaped(out, base_str_text(&name), name.length);
		base_str_add(out, " ");
	}
	base_str_add(out, k ? k->name : "unknown");
	for (unsigned i = 0; k && i < k->nr_fields; i++) {
		const struct trace_field_desc *f = &k->field[i];

		base_str_add(out, " ");
		base_str_add(out, f->name);
		base_str_add(out, "=");
		if (is_address(f))
			add_hex(out, trace_field_number(r, f));
		else
			print_add_value(out, r, f);
		if (!trace_field_name(&name, d, r, f))
			continue;
		base_str_add(out, "(");
		print_add_escaped(out, base_str_text(&name), name.length);
		base_str_add(out, ")");
		out->failed |= name.failed;
	}
	base_str_fini(&name);
}

static void add_json_field(struct base_str *out, struct base_str *name, const struct trace_defs *d,
	const struct trace_record *r, const struct trace_field_desc *f)
{
	base_str_add(out, ",\"");
	base_str_add(out, f->name);
	base_str_add(out, "\":");
	print_add_value(out, r, f);
	if (!trace_field_name(name, d, r, f))
		return;
	base_str_add(out, ",\"");
	base_str_add(out, f->name);
	base_str_add(out, "_text\":");
	print_add_quoted(out, base_str_text(name), name->length);
	out->failed |= name->failed;
}

void trace_print_json(
	struct base_str *out, const struct trace_defs *d, const struct trace_record *r)
{
	const struct trace_kind_desc *k = trace_kind_find(r->kind);
	struct base_str name = {0};

	base_str_add(out, "{\"kind\":\"");
	base_str_add(out, k ? k->name : "unknown");
	base_str_add(out, "\"");
	if (r->stream) {
		base_str_add(out, ",\"time_ns\":");
		print_add_u64(out, r->time_ns);
		base_str_add(out, ",\"stream\":");
		print_add_u64(out, r->stream);
	}
	for (unsigned i = 0; k && i < k->nr_fields; i++)
		add_json_field(out, &name, d, r, &k->field[i]);
	base_str_add(out, "}");
	base_str_fini(&name);
}

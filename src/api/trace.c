/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - kinds of records, and a trace that is open for reading. */
#include "api/api.h"
#include "trace/trace.h"

#include <string.h>

/* ---- kinds ----------------------------------------------------------------------------------- */

_Static_assert((int)LONGPOLE_FIELD_ID == (int)TRACE_FIELD_ID &&
		       (int)LONGPOLE_FIELD_U64 == (int)TRACE_FIELD_U64 &&
		       (int)LONGPOLE_FIELD_S64 == (int)TRACE_FIELD_S64 &&
		       (int)LONGPOLE_FIELD_TEXT == (int)TRACE_FIELD_TEXT,
	"types of fields have their numbers for ever");

static int api_give_kind(struct longpole_kind *ret, const struct trace_kind_desc *k)
{
	return API_GIVE(
		ret, .kind = k->kind, .nr_fields = k->nr_fields, .name = k->name, .doc = k->doc);
}

int longpole_kind_at(uint32_t i, struct longpole_kind *ret)
{
	unsigned nr;
	const struct trace_kind_desc *k = trace_kind_table(&nr);
	return i < nr ? api_give_kind(ret, &k[i]) : LONGPOLE_STATUS_END;
}

int longpole_kind_find(const char *name, struct longpole_kind *ret)
{
	unsigned nr;
	const struct trace_kind_desc *k = trace_kind_table(&nr);
	for (unsigned i = 0; name && i < nr; i++)
		if (!strcmp(k[i].name, name))
			return api_give_kind(ret, &k[i]);
	return name ? LONGPOLE_STATUS_NOTFOUND : LONGPOLE_STATUS_USAGE;
}

int longpole_kind_field(uint32_t kind, uint32_t field, struct longpole_field *ret)
{
	const struct trace_kind_desc *k = trace_kind_find(kind);
	if (!k)
		return LONGPOLE_STATUS_NOTFOUND;
	if (field >= k->nr_fields)
		return LONGPOLE_STATUS_END;
	const struct trace_field_desc *f = &k->field[field];
	return API_GIVE(
		ret, .type = (int32_t)f->type, .name = f->name, .unit = f->unit, .doc = f->doc);
}

int longpole_kind_field_find(uint32_t kind, const char *name)
{
	const struct trace_kind_desc *k = trace_kind_find(kind);
	for (unsigned i = 0; k && name && i < k->nr_fields; i++)
		if (!strcmp(k->field[i].name, name))
			return (int)i;
	return -1;
}

/* ---- opening --------------------------------------------------------------------------------- */

struct longpole_trace {
	struct trace_reader *reader;
	struct trace_batch batch;
	size_t next;               /* of the batch */
	struct base_str *name;     /* of each field of the record, as far as somebody asked */
	size_t nr_names;           /* room */
	struct base_strtab *texts; /* that live as long as the handle */
	uint32_t path;             /* of these */
	bool is_part;              /* opened for a part of its time */
};

struct trace_reader *api_reader(struct longpole_trace *trace)
{
	trace->batch.nr = trace->next = 0; /* another one uses it from now */
	return trace->is_part ? NULL : trace->reader;
}

const char *api_path(const struct longpole_trace *trace)
{
	return base_strtab_get(trace->texts, trace->path);
}

void longpole_trace_close(struct longpole_trace *t)
{
	if (!t)
		return;
	trace_reader_close(t->reader);
	for (size_t i = 0; i < t->nr_names; i++)
		base_str_fini(&t->name[i]);
	base_free(t->name);
	base_strtab_free(t->texts);
	base_free(t);
}

static enum base_status api_open(struct longpole_trace *t, const char *path, const void *bytes,
	size_t nr_bytes, const struct longpole_trace_options *o, struct base_err *err)
{
	struct trace_reader_options opts = {.size = sizeof opts,
		.from_ns = o->from_ns,
		.to_ns = o->to_ns,
		.with_definitions = o->with_definitions != 0};
	const char *name = path ? path : "bytes in memory";
	t->is_part = o->from_ns || o->to_ns;
	if (base_strtab_intern(t->texts, name, strlen(name), &t->path) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for a trace");
	return path ? trace_reader_open(path, &opts, &t->reader, err)
		    : trace_reader_open_memory(bytes, nr_bytes, &opts, &t->reader, err);
}

static int api_open_any(const char *path, const void *bytes, size_t nr_bytes,
	const struct longpole_trace_options *options, struct longpole_trace **ret,
	struct longpole_error *error)
{
	struct longpole_trace_options o;
	struct base_err err;
	*ret = NULL;
	if (!api_take(&o, sizeof o, options) || o.reserved)
		return api_refuse(error, "the options' size is wrong, or one is not known here");
	struct longpole_trace *t = base_alloc(sizeof *t);
	if (t)
		t->texts = base_strtab_new();
	enum base_status s = t && t->texts
				     ? api_open(t, path, bytes, nr_bytes, &o, &err)
				     : base_fail(&err, BASE_ERR_NOMEM, "out of memory for a trace");
	if (s == BASE_OK)
		*ret = t;
	else
		longpole_trace_close(t);
	return api_finish(error, s, &err);
}

int longpole_trace_open(const char *path, const struct longpole_trace_options *options,
	struct longpole_trace **ret, struct longpole_error *error)
{
	if (!path || !ret)
		return api_refuse(error, "no path, or no place for the trace");
	return api_open_any(path, NULL, 0, options, ret, error);
}

int longpole_trace_open_memory(const void *bytes, size_t nr_bytes,
	const struct longpole_trace_options *options, struct longpole_trace **ret,
	struct longpole_error *error)
{
	if (!bytes || !ret)
		return api_refuse(error, "no bytes, or no place for the trace");
	return api_open_any(NULL, bytes, nr_bytes, options, ret, error);
}

int longpole_trace_verify(struct longpole_trace *t, struct longpole_error *error)
{
	struct base_err err;
	if (!t)
		return api_refuse(error, "no trace");
	return api_finish(error, trace_reader_verify(t->reader, &err), &err);
}

/* ---- what it is ------------------------------------------------------------------------------ */

bool api_is_partial(const struct trace_health *h)
{
	bool is = h->readable_bytes < h->file_bytes;
	for (unsigned i = 0; i < TRACE_DIAG_NR; i++)
		is |= h->count[i] &&
		      trace_diag_describe((enum trace_diag)i)->extent == TRACE_EXTENT_partial;
	return is;
}

static const char *api_text_or_empty(const char *text)
{
	return text ? text : "";
}

int longpole_trace_get_info(const struct longpole_trace *t, struct longpole_trace_info *ret)
{
	if (!t)
		return LONGPOLE_STATUS_USAGE;
	const struct trace_info *i = trace_reader_info(t->reader);
	const struct trace_health *h = trace_reader_health(t->reader);
	return API_GIVE(ret, .command = api_text_or_empty(i->command),
		.host = api_text_or_empty(i->host), .tool = api_text_or_empty(i->tool),
		.origin_unix_ns = i->origin_unix_ns, .origin_mono_ns = i->origin_mono_ns,
		.clock_hz = i->tick_hz, .last_ns = trace_reader_last_ns(t->reader),
		.nr_records = trace_reader_record_count(t->reader), .file_bytes = h->file_bytes,
		.readable_bytes = h->readable_bytes, .nr_processors = i->nr_processors,
		.nr_streams = trace_reader_defs(t->reader)->nr_streams,
		.is_partial = api_is_partial(h),
		.is_synthetic = (i->flags & TRACE_INFO_SYNTHETIC) != 0);
}

/* A text that lives as long as the handle; frees `text`. NULL: no memory. */
static const char *api_keep(struct longpole_trace *t, struct base_str *text)
{
	uint32_t id;
	bool kept = !text->failed &&
		    base_strtab_intern(t->texts, base_str_text(text), text->length, &id) == BASE_OK;
	base_str_fini(text);
	return kept ? base_strtab_get(t->texts, id) : NULL;
}

int longpole_trace_loss(struct longpole_trace *t, uint32_t i, struct longpole_loss *ret)
{
	static const char *const severity[] = {[TRACE_SEVERITY_info] = "info",
		[TRACE_SEVERITY_data_loss] = "data_loss",
		[TRACE_SEVERITY_error] = "error"};
	if (!t)
		return LONGPOLE_STATUS_USAGE;
	const struct trace_health *h = trace_reader_health(t->reader);
	for (unsigned k = 0; k < TRACE_DIAG_NR; k++) {
		const struct trace_diag_desc *d = trace_diag_describe((enum trace_diag)k);
		struct base_str text = {0};
		if (!h->count[k] || i--)
			continue;
		base_str_add_counted(&text, d->sentence, h->count[k]);
		const char *kept = api_keep(t, &text);
		if (!kept)
			return LONGPOLE_STATUS_NOMEM;
		return API_GIVE(ret, .name = d->name, .severity = severity[d->severity],
			.text = kept, .count = h->count[k],
			.is_partial = d->extent == TRACE_EXTENT_partial);
	}
	return LONGPOLE_STATUS_END;
}

const char *longpole_trace_stream_name(struct longpole_trace *t, uint32_t stream)
{
	struct base_str name = {0};
	if (!t)
		return "";
	trace_stream_name(&name, trace_reader_defs(t->reader), stream);
	return api_text_or_empty(api_keep(t, &name));
}

/* ---- records --------------------------------------------------------------------------------- */

int longpole_trace_next(
	struct longpole_trace *t, struct longpole_record *ret, struct longpole_error *error)
{
	struct base_err err;
	enum base_status s = BASE_OK;
	if (!t || !ret || ret->size < sizeof ret->size)
		return api_refuse(error, "no trace, or no place for the record (is its size set?)");
	while (s == BASE_OK && t->next == t->batch.nr) {
		t->batch.nr = t->next = 0;
		s = trace_reader_next(t->reader, &t->batch, &err);
	}
	if (s != BASE_OK)
		return api_finish(error, s, &err);
	const struct trace_record *r = &t->batch.record[t->next++];
	const struct trace_kind_desc *k = trace_kind_find(r->kind);
	/* (a reader gives records of kinds that it knows only) */
	(void)API_GIVE(ret, .time_ns = r->time_ns, .stream = r->stream, .kind = r->kind,
		.kind_name = k ? k->name : "", .nr_fields = k ? k->nr_fields : 0);
	return api_finish(error, s, &err);
}

int longpole_trace_rewind(struct longpole_trace *t, struct longpole_error *error)
{
	struct base_err err;
	if (!t)
		return api_refuse(error, "no trace");
	t->batch.nr = t->next = 0;
	return api_finish(error, trace_reader_rewind(t->reader, &err), &err);
}

/* Of the current record's field; NULL: no memory. */
static const struct base_str *api_name(struct longpole_trace *t, const struct trace_record *r,
	const struct trace_field_desc *f, size_t field)
{
	if (base_grow(&t->name, &t->nr_names, field + 1, sizeof *t->name) != BASE_OK)
		return NULL;
	struct base_str *name = &t->name[field];
	name->failed = false; /* of another record */
	if (f->type == TRACE_FIELD_TEXT) {
		struct trace_text text = trace_field_text(r, f);
		base_str_reset(name);
		base_str_add_bytes(name, text.bytes, text.length);
	} else {
		trace_field_name(name, trace_reader_defs(t->reader), r, f);
	}
	return name->failed ? NULL : name;
}

int longpole_trace_field(struct longpole_trace *t, uint32_t field, struct longpole_value *ret)
{
	if (!t || !t->next)
		return LONGPOLE_STATUS_USAGE;
	const struct trace_record *r = &t->batch.record[t->next - 1];
	const struct trace_kind_desc *k = trace_kind_find(r->kind);
	if (!k || field >= k->nr_fields)
		return LONGPOLE_STATUS_END;
	const struct trace_field_desc *f = &k->field[field];
	const struct base_str *name = api_name(t, r, f, field);
	uint64_t number = f->type == TRACE_FIELD_TEXT ? 0 : trace_field_number(r, f);
	if (!name)
		return LONGPOLE_STATUS_NOMEM;
	return API_GIVE(ret, .type = (int32_t)f->type, .u64 = number, .s64 = (int64_t)number,
		.text = base_str_text(name), .text_bytes = name->length);
}

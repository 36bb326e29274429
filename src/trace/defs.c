/* SPDX-License-Identifier: Apache-2.0 */
/* defs.c - stream 0 into dense tables. */
#include "trace/reader.h"

#include <inttypes.h>

/*
 * Ids are dense, but may come out of order. A table may be that much larger than the definitions
 * seen: a damaged id costs a little memory, never all of it.
 */
enum { SPARE_IDS = 4096, IDS_PER_DEFINITION = 16 };

static bool id_is_sane(uint32_t id, uint64_t nr_seen)
{
	return id > 0 && id < SPARE_IDS + nr_seen * IDS_PER_DEFINITION;
}

/* Some tables' ids are those of streams, sites or processes, of which few may have such a row. */
static uint64_t nr_owners_seen(const struct trace_defs_builder *b)
{
	return b->nr_streams_seen + b->nr_sites_seen + b->nr_processes_seen;
}

/* BASE_END: not an id that we take. */
#define DEF_TABLE(kind, plural)                                                                    \
	static enum base_status add_##kind(                                                        \
		struct trace_defs_builder *b, const struct trace_##kind *v)                        \
	{                                                                                          \
		uint32_t id;                                                                       \
                                                                                                   \
		memcpy(&id, v, sizeof id); /* the first field of each */                           \
		b->nr_##plural##_seen++;                                                           \
		if (!id_is_sane(id, b->nr_##plural##_seen + nr_owners_seen(b)))                    \
			return BASE_END;                                                           \
		enum base_status status = base_grow(&b->defs.plural, &b->plural##_capacity,        \
			(size_t)id + 1, sizeof *b->defs.plural);                                   \
		if (status != BASE_OK)                                                             \
			return status;                                                             \
		b->defs.plural[id] = *v;                                                           \
		if (id >= b->defs.nr_##plural)                                                     \
			b->defs.nr_##plural = id + 1;                                              \
		return BASE_OK;                                                                    \
	}
#include "trace/defs.def"
#undef DEF_TABLE

static enum base_status defs_add_string(struct trace_defs_builder *b, const struct trace_string *v)
{
	struct trace_defs *d = &b->defs;
	uint32_t text;

	if (!id_is_sane(v->string, ++b->nr_texts_seen))
		return BASE_END;
	enum base_status status =
		base_grow(&d->text, &b->texts_capacity, (size_t)v->string + 1, sizeof *d->text);
	if (status != BASE_OK)
		return status;
	status = base_strtab_intern(d->strings, v->text.bytes, v->text.length, &text);
	if (status != BASE_OK)
		return status;
	d->text[v->string] = base_strtab_get(d->strings, text);
	if (v->string >= d->nr_texts)
		d->nr_texts = v->string + 1;
	return BASE_OK;
}

static enum base_status add_definition(struct trace_reader *r, const struct trace_record *def)
{
	enum base_status status;

	switch (def->kind) {
	case TRACE_string:
		status = defs_add_string(&r->builder, &def->u.string);
		break;
#define DEF_TABLE(kind, plural)                                                                    \
	case TRACE_##kind:                                                                         \
		status = add_##kind(&r->builder, &def->u.kind);                                    \
		break;
#include "trace/defs.def"
#undef DEF_TABLE
	default:
		return BASE_OK;
	}
	if (status == BASE_END) {
		r->health.count[TRACE_DIAG_ids_unknown]++;
		status = BASE_OK;
	}
	return status;
}

/* One chunk's records. BASE_END: what follows in the chunk is damaged. */
static enum base_status load_records(
	struct trace_reader *r, const struct trace_buffer *b, const struct trace_chunk_header *h)
{
	const uint8_t *p = b->bytes, *end = p + h->raw_bytes;

	for (uint32_t i = 0; i < h->nr_records; i++) {
		struct trace_record def = {0};
		uint64_t kind;

		p = base_get_uvarint(p, end, &kind);
		if (!p || kind >= TRACE_FIRST_DATA_KIND)
			return BASE_END;
		const struct trace_schema_kind *theirs = trace_schema_find(&r->schema, kind);
		if (theirs) {
			p = trace_skip_fields(theirs, p, end);
			if (!p)
				return BASE_END;
			r->health.count[TRACE_DIAG_kinds_unknown]++;
			continue;
		}
		def.kind = (uint16_t)kind;
		p = trace_decode_fields(p, end, def.kind, &def);
		if (!p || p > end)
			return BASE_END;
		enum base_status status = add_definition(r, &def);
		if (status != BASE_OK)
			return status;
	}
	return p == end ? BASE_OK : BASE_END;
}

enum base_status trace_defs_load(struct trace_reader *r, struct base_err *err)
{
	for (uint32_t i = r->cursor[0].first_chunk; i != TRACE_NO_CHUNK; i = r->chunk[i].next) {
		struct trace_buffer buffer = {0};
		struct trace_chunk_header h;
		struct base_err ignored = {0};
		enum base_status status = trace_chunk_fetch(r, i, &buffer, &h, &ignored);

		if (status == BASE_OK && !h.content) {
			status = load_records(r, &buffer, &h);
			trace_buffer_release(r, &buffer);
			if (status == BASE_ERR_NOMEM || status == BASE_ERR_LIMIT)
				return base_fail(err, status,
					"%s: the definitions at byte %" PRIu64, r->source.name,
					r->chunk[i].entry.offset);
		} else if (status != BASE_OK && status != BASE_ERR_CORRUPT) {
			if (err)
				*err = ignored;
			return status;
		}
		if (status != BASE_OK) {
			r->chunk[i].damaged = true;
			trace_chunk_damaged(r, i);
		}
	}
	return BASE_OK;
}

enum base_status trace_defs_init(struct trace_defs_builder *b)
{
	struct trace_defs *d = &b->defs;
	enum base_status status;

	d->strings = base_strtab_new();
	if (!d->strings)
		return BASE_ERR_NOMEM;
		/* Entry 0 is always there, so that "none" needs no special case. */
#define DEF_TABLE(kind, plural)                                                                    \
	status = base_grow(&d->plural, &b->plural##_capacity, 1, sizeof *d->plural);               \
	if (status != BASE_OK)                                                                     \
		return status;                                                                     \
	d->nr_##plural = 1;
#include "trace/defs.def"
#undef DEF_TABLE
	status = base_grow(&d->text, &b->texts_capacity, 1, sizeof *d->text);
	if (status == BASE_OK)
		d->nr_texts = 1;
	return status;
}

void trace_defs_fini(struct trace_defs_builder *b)
{
	struct trace_defs *d = &b->defs;

#define DEF_TABLE(kind, plural) base_free(d->plural);
#include "trace/defs.def"
#undef DEF_TABLE
	base_free(d->text);
	base_strtab_free(d->strings);
}

uint64_t trace_cost_each_ns(const struct trace_defs *d, const char *name)
{
	for (uint32_t i = 1; i < d->nr_costs; i++) {
		const struct trace_cost *c = &d->costs[i];
		if (c->name && c->n && !strcmp(trace_text_of(d, c->name), name))
			return c->total_ns / c->n;
	}
	return 0;
}

const char *trace_text_of(const struct trace_defs *d, uint32_t string_id)
{
	return string_id < d->nr_texts && d->text[string_id] ? d->text[string_id] : "";
}

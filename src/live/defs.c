/* SPDX-License-Identifier: Apache-2.0 */
/* defs.c - one generation of definitions. */
#include "live/defs.h"

#include <string.h>

enum {
	FIRST_DATA_KIND = 32, /* below: definitions */
	KEEP_NS =
		60 * 1000000000ll, /* an object that nobody mentions for so long may be forgotten */
	KEEP_MAX = 1 << 18,        /* sites and the like, whatever their age */
	NEST_MAX = 8,              /* a definition that names one that names one ... */
};

/* ---- which fields are ids of what ------------------------------------------------------------ */

static enum live_table defs_table_of(const char *unit)
{
	static const char *const name[LIVE_TABLE_NR] = {"", "string", "process", "stream", "module",
		"site", "stack", "object", "actor", "state"};
	for (unsigned t = 1; t < LIVE_TABLE_NR; t++)
		if (!strcmp(unit, name[t]))
			return (enum live_table)t;
	return LIVE_TABLE_none;
}

/* What a definition's first field numbers. */
static enum live_table own_table(unsigned kind)
{
	static const uint8_t table[] = {
		[TRACE_string] = LIVE_TABLE_string,
		[TRACE_process] = LIVE_TABLE_process,
		[TRACE_stream] = LIVE_TABLE_stream,
		[TRACE_module] = LIVE_TABLE_module,
		[TRACE_site] = LIVE_TABLE_site,
		[TRACE_symbol] = LIVE_TABLE_site,
		[TRACE_object] = LIVE_TABLE_object,
		[TRACE_actor] = LIVE_TABLE_actor,
		[TRACE_state] = LIVE_TABLE_state,
		[TRACE_context] = LIVE_TABLE_stream,
		[TRACE_group] = LIVE_TABLE_process,
	};
	return kind < BASE_COUNT(table) ? (enum live_table)table[kind] : LIVE_TABLE_none;
}

static void find_fields(struct live_defs *d)
{
	unsigned nr_kinds;
	const struct trace_kind_desc *k = trace_kind_table(&nr_kinds);
	for (unsigned n = 0; n < nr_kinds; n++, k++) {
		struct live_fields *ids = &d->fields[k->kind % LIVE_KINDS];
		for (unsigned i = k->kind < FIRST_DATA_KIND; i < k->nr_fields; i++) {
			const struct trace_field_desc *f = &k->field[i];
			enum live_table t = f->type == TRACE_FIELD_ID ? defs_table_of(f->unit)
								      : LIVE_TABLE_none;
			if (t == LIVE_TABLE_none)
				continue;
			BASE_ASSERT(ids->nr < LIVE_FIELDS);
			ids->field[ids->nr].offset = f->offset;
			ids->field[ids->nr++].table = (uint8_t)t;
		}
	}
}

static uint32_t *defs_field_of(struct trace_record *r, uint16_t offset)
{
	return (uint32_t *)(void *)((char *)r + offset);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static bool defs_keep(struct live_defs *d, enum base_status s)
{
	if (s != BASE_OK && d->status == BASE_OK)
		d->status = s;
	return s == BASE_OK;
}

static uint32_t defs_known(const struct live_defs *d, enum live_table t, uint32_t outer)
{
	uint64_t inner;
	return base_map_get(&d->ids[t].inner, outer, 0, &inner) ? (uint32_t)inner : 0;
}

static uint32_t make_id(struct live_defs *d, enum live_table t, uint32_t outer)
{
	struct live_ids *ids = &d->ids[t];
	uint32_t inner = ids->nr;
	if (!defs_keep(d, base_grow(&ids->outer, &ids->outer_capacity, (size_t)inner + 1,
				  sizeof *ids->outer)) ||
		!defs_keep(d, base_grow(&ids->used_ns, &ids->used_capacity, (size_t)inner + 1,
				      sizeof *ids->used_ns)) ||
		!defs_keep(d, base_map_put(&ids->inner, outer, 0, inner)))
		return 0;
	ids->outer[inner] = outer;
	ids->used_ns[inner] = d->now_ns;
	ids->nr++;
	return inner;
}

static uint32_t bring(struct live_defs *d, enum live_table t, uint32_t outer, unsigned depth);

/* The inner id of an outer one that a record mentions; 0: nothing is known of it. */
/* NOLINTNEXTLINE(misc-no-recursion): at most NEST_MAX deep */
static inline uint32_t inner_of(
	struct live_defs *d, enum live_table t, uint32_t outer, unsigned depth)
{
	struct live_ids *ids = &d->ids[t];
	if (!outer || t == LIVE_TABLE_stack)
		return 0;
	__typeof__(&ids->recent[0]) recent = &ids->recent[outer % BASE_COUNT(ids->recent)];
	if (BASE_UNLIKELY(recent->outer != outer)) {
		uint32_t inner = defs_known(d, t, outer);
		if (!inner && d->older)
			inner = bring(d, t, outer, depth);
		if (!inner)
			return 0;
		recent->outer = outer;
		recent->inner = inner;
	}
	ids->used_ns[recent->inner] = d->now_ns;
	return recent->inner;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most NEST_MAX deep */
static inline void translate_fields(struct live_defs *d, struct trace_record *r, unsigned depth)
{
	const struct live_fields *ids = &d->fields[r->kind % LIVE_KINDS];
	for (unsigned i = 0; i < ids->nr; i++) {
		uint32_t *id = defs_field_of(r, ids->field[i].offset);
		*id = inner_of(d, (enum live_table)ids->field[i].table, *id, depth);
	}
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define DEF_TABLE(kind, plural)                                                                    \
	static void put_##kind(struct live_defs *d, uint32_t id, const struct trace_record *r)     \
	{                                                                                          \
		if (!defs_keep(d, base_grow(&d->defs.plural, &d->plural##_capacity,                \
					  (size_t)id + 1, sizeof *d->defs.plural)))                \
			return;                                                                    \
		d->defs.plural[id] = r->u.kind;                                                    \
		memcpy(&d->defs.plural[id], &id, sizeof id);                                       \
		if (id >= d->defs.nr_##plural)                                                     \
			d->defs.nr_##plural = id + 1;                                              \
	}
#include "trace/defs.def"
#undef DEF_TABLE

static void defs_put_text(struct live_defs *d, uint32_t id, const char *bytes, size_t length)
{
	uint32_t text;
	if (!defs_keep(d, base_grow(&d->defs.text, &d->texts_capacity, (size_t)id + 1,
				  sizeof *d->defs.text)) ||
		!defs_keep(d, base_strtab_intern(d->defs.strings, bytes, length, &text)))
		return;
	d->defs.text[id] = base_strtab_get(d->defs.strings, text);
	if (id >= d->defs.nr_texts)
		d->defs.nr_texts = id + 1;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

struct live_defs *live_defs_new(const struct live_defs *older)
{
	struct live_defs *d = base_alloc(sizeof *d);
	if (!d)
		return NULL;
	d->older = older;
	find_fields(d);
	d->defs.strings = base_strtab_new();
	if (!d->defs.strings)
		return live_defs_free(d);
	for (unsigned t = 1; t < LIVE_TABLE_NR; t++)
		d->ids[t].nr = 1;
		/* entry 0 of each is all zero */
#define DEF_TABLE(kind, plural)                                                                    \
	defs_keep(                                                                                 \
		d, base_grow(&d->defs.plural, &d->plural##_capacity, 1, sizeof *d->defs.plural));  \
	d->defs.nr_##plural = 1;
#include "trace/defs.def"
#undef DEF_TABLE
	defs_put_text(d, 0, "", 0);
	return d->status == BASE_OK ? d : live_defs_free(d);
}

struct live_defs *live_defs_free(struct live_defs *d)
{
	if (!d)
		return NULL;
	for (unsigned t = 0; t < LIVE_TABLE_NR; t++) {
		base_map_fini(&d->ids[t].inner);
		base_free(d->ids[t].outer);
		base_free(d->ids[t].used_ns);
	}
#define DEF_TABLE(kind, plural) base_free(d->defs.plural);
#include "trace/defs.def"
#undef DEF_TABLE
	base_free(d->defs.text);
	base_free(d->ended);
	base_strtab_free(d->defs.strings);
	base_free(d);
	return NULL;
}

uint64_t live_defs_size(const struct live_defs *d)
{
	uint64_t nr = 0;
	for (unsigned t = 1; t < LIVE_TABLE_NR; t++)
		nr += d->ids[t].nr;
	return nr;
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* r has inner ids but for its own. */
static void defs_put(struct live_defs *d, uint32_t id, const struct trace_record *r)
{
	switch (r->kind) {
	case TRACE_string:
		defs_put_text(d, id, r->u.string.text.bytes, r->u.string.text.length);
		break;
#define DEF_TABLE(kind, plural)                                                                    \
	case TRACE_##kind:                                                                         \
		put_##kind(d, id, r);                                                              \
		break;
#include "trace/defs.def"
#undef DEF_TABLE
	default:
		break;
	}
}

static void defs_add(struct live_defs *d, struct trace_record r, uint32_t outer, unsigned depth)
{
	enum live_table t = own_table(r.kind);
	if (t == LIVE_TABLE_none || !outer)
		return;
	uint32_t inner = defs_known(d, t, outer);
	if (!inner && d->older && defs_known(d->older, t, outer))
		inner = bring(d, t, outer, depth); /* what else is known of it */
	if (!inner)
		inner = make_id(d, t, outer);
	translate_fields(d, &r, depth);
	if (inner && d->status == BASE_OK)
		defs_put(d, inner, &r);
}

enum base_status live_defs_add(struct live_defs *d, const struct trace_record *r)
{
	uint32_t outer;
	memcpy(&outer, &r->u, sizeof outer); /* the first field of each */
	defs_add(d, *r, outer, 0);
	return d->status;
}

/* ---- from the older generation --------------------------------------------------------------- */

static uint32_t outer_of(const struct live_defs *d, enum live_table t, uint32_t inner)
{
	return inner && inner < d->ids[t].nr ? d->ids[t].outer[inner] : 0;
}

/* Ids of the older generation become outer ones. */
static void untranslate_fields(const struct live_defs *older, struct trace_record *r)
{
	const struct live_fields *ids = &older->fields[r->kind % LIVE_KINDS];
	for (unsigned i = 0; i < ids->nr; i++) {
		uint32_t *id = defs_field_of(r, ids->field[i].offset);
		*id = outer_of(older, (enum live_table)ids->field[i].table, *id);
	}
}

/* All that the older generation has under this number. */
/* NOLINTNEXTLINE(misc-no-recursion): at most NEST_MAX deep */
static void bring_rows(
	struct live_defs *d, enum live_table t, uint32_t theirs, uint32_t inner, unsigned depth)
{
	const struct trace_defs *o = &d->older->defs;
	if (t == LIVE_TABLE_string) {
		const char *text = trace_text_of(o, theirs);
		defs_put_text(d, inner, text, strlen(text));
		return;
	}
#define DEF_TABLE(table, plural)                                                                   \
	if (own_table(TRACE_##table) == t && theirs < o->nr_##plural) {                            \
		uint32_t id;                                                                       \
		memcpy(&id, &o->plural[theirs], sizeof id);                                        \
		struct trace_record r = {.kind = TRACE_##table, .u.table = o->plural[theirs]};     \
		if (id) { /* defined, not only skipped */                                          \
			untranslate_fields(d->older, &r);                                          \
			translate_fields(d, &r, depth + 1);                                        \
			defs_put(d, inner, &r);                                                    \
		}                                                                                  \
	}
#include "trace/defs.def"
#undef DEF_TABLE
}

/* NOLINTNEXTLINE(misc-no-recursion): at most NEST_MAX deep */
static uint32_t bring(struct live_defs *d, enum live_table t, uint32_t outer, unsigned depth)
{
	uint32_t theirs = defs_known(d->older, t, outer);
	if (!theirs || depth >= NEST_MAX)
		return 0;
	uint32_t inner = make_id(d, t, outer); /* first, for circles */
	if (!inner)
		return 0;
	bring_rows(d, t, theirs, inner, depth);
	if (t == LIVE_TABLE_stream && theirs < d->older->ended_capacity &&
		d->older->ended[theirs] &&
		defs_keep(d, base_grow(&d->ended, &d->ended_capacity, (size_t)inner + 1,
				     sizeof *d->ended)))
		d->ended[inner] = true;
	return inner;
}

static bool is_kept(const struct live_defs *older, enum live_table t, uint32_t inner)
{
	if (t == LIVE_TABLE_stream)
		return inner >= older->ended_capacity || !older->ended[inner];
	if (t == LIVE_TABLE_string || t == LIVE_TABLE_process)
		return false; /* those that others name come with them */
	bool recent = older->ids[t].used_ns[inner] + (uint64_t)KEEP_NS >= older->now_ns;
	return recent || (t != LIVE_TABLE_object && older->ids[t].nr <= (uint32_t)KEEP_MAX);
}

enum base_status live_defs_take_over(struct live_defs *d)
{
	const struct live_defs *older = d->older;
	for (unsigned t = 1; older && t < LIVE_TABLE_NR; t++)
		for (uint32_t i = 1; i < older->ids[t].nr && d->status == BASE_OK; i++) {
			uint32_t outer = older->ids[t].outer[i];
			if (defs_known(d, (enum live_table)t, outer))
				continue;
			if (is_kept(older, (enum live_table)t, i))
				bring(d, (enum live_table)t, outer, 0);
			else if (t == LIVE_TABLE_object)
				d->nr_forgotten++;
		}
	d->older = NULL;
	return d->status;
}

/* ---- records --------------------------------------------------------------------------------- */

enum base_status live_defs_translate(struct live_defs *d, struct trace_record *r)
{
	d->now_ns = r->time_ns;
	r->stream = inner_of(d, LIVE_TABLE_stream, r->stream, 0);
	translate_fields(d, r, 0);
	if ((r->kind == TRACE_thread_end || r->kind == TRACE_process_end) && r->stream &&
		defs_keep(d, base_grow(&d->ended, &d->ended_capacity, (size_t)r->stream + 1,
				     sizeof *d->ended)))
		d->ended[r->stream] = true;
	return d->status;
}

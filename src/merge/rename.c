/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rename.c - ids that were one input's become the merged trace's: each table of an input is moved
 * behind those of the inputs before it. Which fields are ids, and of what, the kinds' table says.
 */
#include "merge/private.h"

#include <string.h>

static const struct {
	const char *unit;
	enum merge_table table;
} units[] = {
#define DEF_TABLE(kind, plural) {#kind, MERGE_TABLE_##kind},
#include "trace/defs.def"
#undef DEF_TABLE
	{"string", MERGE_TABLE_string},
	{"connection", MERGE_TABLE_connection},
};

static enum merge_table rename_table_of(const char *unit)
{
	for (size_t i = 0; i < BASE_COUNT(units); i++)
		if (!strcmp(units[i].unit, unit))
			return units[i].table;
	return MERGE_TABLE_NR;
}

static uint32_t highest_pair(const struct trace_defs *d)
{
	uint32_t highest = 0;
	for (uint32_t i = 1; i < d->nr_objects; i++)
		/* more than one a socket is damage */
		if (d->objects[i].pair > highest && d->objects[i].pair < d->nr_objects)
			highest = d->objects[i].pair;
	return highest;
}

/* Symbols and loops that wait are by site, contexts by stream, groups by process: those may go
 * farther. */
static uint32_t rename_end_of(const struct merge_input *in, enum merge_table table)
{
	const struct trace_defs *d = in->defs;
	uint32_t own[MERGE_TABLE_NR] = {
#define DEF_TABLE(kind, plural) [MERGE_TABLE_##kind] = d->nr_##plural,
#include "trace/defs.def"
#undef DEF_TABLE
		[MERGE_TABLE_connection] = highest_pair(d) + 1,
	};
	if (table == MERGE_TABLE_site && own[MERGE_TABLE_wait_loop] > own[MERGE_TABLE_symbol])
		own[MERGE_TABLE_symbol] = own[MERGE_TABLE_wait_loop];
	if (table == MERGE_TABLE_site && own[MERGE_TABLE_symbol] > own[table])
		return own[MERGE_TABLE_symbol];
	if (table == MERGE_TABLE_stream && own[MERGE_TABLE_context] > own[table])
		return own[MERGE_TABLE_context];
	if (table == MERGE_TABLE_process && own[MERGE_TABLE_group] > own[table])
		return own[MERGE_TABLE_group];
	return own[table];
}

static uint32_t place_processors(struct merge_input *in, uint32_t first)
{
	in->first_processor = first;
	in->nr_processors = in->info->nr_processors < 1u << 16 ? in->info->nr_processors : 1u << 16;
	return in->nr_processors;
}

static uint32_t rename_new_id(const struct merge_input *in, enum merge_table table, uint32_t id)
{
	if (table == MERGE_TABLE_NR || !id)
		return table == MERGE_TABLE_NR ? id : 0;
	if (table == MERGE_TABLE_string)
		return id < in->defs->nr_texts ? in->string[id] : 0;
	if (id >= in->end[table])
		return 0;
	if (table == MERGE_TABLE_object && in->object[id].id)
		return in->object[id].id; /* the same pipe in another input */
	return in->base[table] + id;
}

/* Keys that pair records of one input must not meet another's. */
static uint64_t new_token(const struct merge *m, const struct merge_input *in, uint64_t token)
{
	uint64_t salt = (uint64_t)(in - m->input);
	return token && salt ? base_hash_u64(token ^ salt << 56) | 1 : token;
}

static bool plan_field(const struct trace_kind_desc *k, unsigned i, struct merge_field *ret)
{
	const struct trace_field_desc *f = &k->field[i];
	bool own = !i && !strcmp(f->unit, "id");
	enum merge_table table = rename_table_of(own ? k->name : f->unit);
	*ret = (struct merge_field){.offset = f->offset, .table = (uint8_t)table};
	ret->change = MERGE_CHANGE_id;
	if (f->type == TRACE_FIELD_ID)
		return table != MERGE_TABLE_NR;
	bool is_token = !strcmp(f->name, "token");
	ret->change = is_token ? MERGE_CHANGE_token : MERGE_CHANGE_processor;
	return f->type == TRACE_FIELD_U64 && (is_token || !strcmp(f->name, "processor"));
}

static enum base_status make_plans(struct merge *m)
{
	unsigned nr;
	const struct trace_kind_desc *k = trace_kind_table(&nr);
	m->plan = base_alloc(MERGE_KINDS * sizeof *m->plan);
	if (!m->plan)
		return base_fail(m->err, BASE_ERR_NOMEM, "no memory for the kinds of records");
	for (unsigned i = 0; i < nr; i++) {
		BASE_ASSERT(k[i].kind < MERGE_KINDS && k[i].nr_fields <= MERGE_FIELDS_MAX);
		struct merge_plan *p = &m->plan[k[i].kind];
		for (unsigned n = 0; n < k[i].nr_fields; n++)
			p->nr += plan_field(&k[i], n, &p->field[p->nr]);
	}
	return BASE_OK;
}

enum base_status merge_place_tables(struct merge *m)
{
	uint32_t next[MERGE_TABLE_NR] = {0}, first_processor = 0, widest = 0;
	next[MERGE_TABLE_connection] = m->nr_new_pairs;
	for (uint32_t n = 0; n < m->nr_inputs; n++) {
		struct merge_input *in = &m->input[m->by_host[n]];
		bool same = n && merge_same_boot(in, &m->input[m->by_host[n - 1]]);
		if (!same) {
			first_processor += widest;
			widest = 0;
		}
		uint32_t nr = place_processors(in, first_processor);
		widest = nr > widest ? nr : widest;
		for (enum merge_table t = 0; t < MERGE_TABLE_string; t++) {
			in->base[t] = next[t];
			in->end[t] = rename_end_of(in, t);
			next[t] += in->end[t] - (in->end[t] > 0);
		}
		in->base[MERGE_TABLE_connection] = next[MERGE_TABLE_connection];
		in->end[MERGE_TABLE_connection] = rename_end_of(in, MERGE_TABLE_connection);
		next[MERGE_TABLE_connection] += in->end[MERGE_TABLE_connection] - 1;
	}
	return make_plans(m);
}

uint32_t merge_nr_processors(const struct merge *m)
{
	uint32_t end = 0;
	for (uint32_t i = 0; i < m->nr_inputs; i++)
		if (m->input[i].first_processor + m->input[i].nr_processors > end)
			end = m->input[i].first_processor + m->input[i].nr_processors;
	return end;
}

void merge_rename(const struct merge *m, const struct merge_input *in, struct trace_record *r)
{
	const struct merge_plan *p = &m->plan[r->kind < MERGE_KINDS ? r->kind : 0];
	for (unsigned i = 0; i < p->nr; i++) {
		const struct merge_field *f = &p->field[i];
		uint8_t *at = (uint8_t *)r + f->offset;
		uint32_t id;
		uint64_t v;
		if (f->change == MERGE_CHANGE_id) {
			memcpy(&id, at, sizeof id);
			id = rename_new_id(in, (enum merge_table)f->table, id);
			memcpy(at, &id, sizeof id);
			continue;
		}
		memcpy(&v, at, sizeof v);
		v = f->change == MERGE_CHANGE_token ? new_token(m, in, v) : v + in->first_processor;
		memcpy(at, &v, sizeof v);
	}
	r->stream = rename_new_id(in, MERGE_TABLE_stream, r->stream);
}

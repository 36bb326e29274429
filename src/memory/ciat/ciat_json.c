/* SPDX-License-Identifier: Apache-2.0 */
/* ciat_json.c - the result for programs; keys are only ever added. */
#include "memory/ciat/ciat.h"
#include "base/column.h"
#include "base/json.h"
#include "memory/stream/silent.h"

enum { LINES_MAX = 100, SITES_PER_LINE_MAX = 8, FUNCTIONS_MAX = 1000 };

static const char *const size_name[] = {
#define SIZE(name, bytes, line) #name,
#include "memory/ciat/ciat_sizes.def"
};
static const char *const reg_name[MEMORY_REG_KINDS] = {"unknown", "integer", "float", "vector"};

enum { CIAT_LINES = 1, CIAT_OF_PHASES = 2 }; /* .needs; the second: not of the whole run */
struct ciat_json {
	const struct memory_ciat_result *result;
	const struct memory_source *source;
	const struct memory_names *names;
};
#define RESULT (((const struct ciat_json *)all)->result)

static unsigned ciat_json_has(const struct memory_ciat_result *r)
{
	return r->lines_known ? CIAT_LINES : 0;
}

struct ciat_access {
	const char *size, *reg;
	uint64_t count;
};
struct ciat_string {
	uint64_t from, to, count;
};
struct ciat_call {
	const char *name;
	struct memory_ciat_call_sum sum;
};
struct ciat_reuse {
	uint64_t cache_bytes, distances;
	double miss_ratio;
};
struct ciat_place { /* of an address */
	uint64_t at;
	bool found;
	struct memory_place place;
};
struct ciat_allocating {
	struct ciat_place code;
	uint64_t offset_bytes;
};
struct ciat_site {
	const struct memory_ciat_site *site;
	struct ciat_place code, data;
	struct ciat_allocating allocating;
	bool is_allocated;
	uint64_t first_offset_bytes;
	const char *field;
};
struct ciat_line {
	const struct memory_ciat_line *line;
	struct ciat_place data;
};
struct ciat_instruction {
	struct memory_ciat_function f;
	struct ciat_place code;
};

static json_t *access_json(
	const struct memory_ciat_counts *n, unsigned kind, const struct base_table *table)
{
	json_t *list = json_array();
	for (unsigned s = 0; s < MEMORY_CIAT_SIZES; s++)
		for (unsigned r = 0; r < MEMORY_REG_KINDS; r++) {
			struct ciat_access a = {size_name[s], reg_name[r], n->access[kind][s][r]};
			if (a.count)
				json_array_append_new(list, base_table_json(table, &a, NULL, 0));
		}
	return list;
}

static uint64_t ciat_json_total(const struct memory_ciat_counts *n, unsigned kind)
{
	uint64_t sum = 0;
	for (unsigned s = 0; s < MEMORY_CIAT_SIZES; s++)
		for (unsigned r = 0; r < MEMORY_REG_KINDS; r++)
			sum += n->access[kind][s][r];
	return sum;
}

static json_t *strings_json(
	const struct memory_ciat_counts *n, unsigned kind, const struct base_table *table)
{
	json_t *list = json_array();
	for (unsigned i = 1; i < MEMORY_CIAT_STRINGS; i++) {
		bool exact = i <= MEMORY_CIAT_STRING_EXACT;
		uint64_t least = exact ? i : UINT64_C(1) << (i - MEMORY_CIAT_STRING_EXACT + 5);
		if (!exact && i == MEMORY_CIAT_STRING_EXACT + 1)
			least++;
		struct ciat_string x = {least, exact ? i : 2 * least - 1, n->string[kind][i]};
		if (x.count)
			json_array_append_new(list, base_table_json(table, &x, NULL, 0));
	}
	return list;
}

static json_t *calls_json(const struct memory_ciat_counts *n, const struct base_table *table)
{
	json_t *list = json_array();
	for (unsigned k = 0; k < MEMORY_CIAT_CALLS; k++) {
		if (!n->call[k].count)
			continue;
		struct ciat_call x = {memory_call_find(k)->name, n->call[k]};
		json_array_append_new(list, base_table_json(table, &x, NULL, 0));
	}
	return list;
}

static json_t *sharing_json(const struct memory_ciat_result *r, const struct memory_ciat_phase *p)
{
	json_t *list = json_array();
	for (uint32_t k = 1; k <= r->nr_threads; k++)
		json_array_append_new(list, json_integer(p->sharing[k]));
	return list;
}

static json_t *invalidation_json(
	const struct memory_ciat_result *r, const struct memory_ciat_phase *p)
{
	json_t *list = json_array();
	for (uint32_t k = 1; k <= r->nr_threads; k++)
		json_array_append_new(list, base_json_u64(p->invalidation[k]));
	return list;
}

static struct ciat_place ciat_json_place(const struct ciat_json *j, uint64_t at, bool code)
{
	struct ciat_place p = {.at = at, .place = {.name = "", .file = ""}};
	bool (*find)(const struct memory_source *, uint64_t, struct memory_place *) =
		code ? j->source->ops->code_place : j->source->ops->data_place;
	p.found = (find && find(j->source, at, &p.place)) ||
		  (j->names && j->names->place(j->names->ctx, at, code, &p.place));
	if (!p.found)
		p.place = (struct memory_place){.name = "", .file = ""};
	return p;
}

static struct ciat_site ciat_json_site(
	const struct ciat_json *j, const struct memory_ciat_site *e, struct base_str *field)
{
	const struct memory_ciat_result *r = j->result;
	unsigned first = e->offsets ? (unsigned)__builtin_ctzll(e->offsets) : 0;
	struct ciat_site x = {.site = e,
		.code = ciat_json_place(j, e->code, true),
		.is_allocated = e->heap != 0,
		.first_offset_bytes = (uint64_t)first * r->line_bytes / 64};
	if (e->heap)
		x.allocating = (struct ciat_allocating){
			ciat_json_place(j, r->heap[e->heap - 1].code, true), e->heap_offset};
	else
		x.data = ciat_json_place(j, e->line + x.first_offset_bytes, false);
	if (j->names && j->names->field(j->names->ctx, r, e, field) && !field->failed)
		x.field = base_str_text(field);
	return x;
}

static json_t *sites_json(const struct ciat_json *j, uint64_t line, const struct base_table *table)
{
	const struct memory_ciat_result *r = j->result;
	json_t *list = json_array();
	size_t at = BASE_PARTITION(i, r->nr_sites, r->site[i].line < line);
	for (; at < r->nr_sites && r->site[at].line == line &&
		json_array_size(list) < SITES_PER_LINE_MAX;
		at++) {
		struct base_str field = {0};
		struct ciat_site x = ciat_json_site(j, &r->site[at], &field);
		json_array_append_new(list, base_table_json(table, &x, j, 0));
		base_str_fini(&field);
	}
	return list;
}

static json_t *lines_json(const struct ciat_json *j, const struct base_table *table)
{
	const struct memory_ciat_result *r = j->result;
	json_t *list = json_array();
	for (size_t i = 0; i < r->nr_lines && i < LINES_MAX; i++) {
		struct ciat_line x = {&r->line[i], ciat_json_place(j, r->line[i].address, false)};
		json_array_append_new(list, base_table_json(table, &x, j, 0));
	}
	return list;
}

static json_t *instructions_json(const struct ciat_json *j, const struct base_table *table)
{
	const struct memory_ciat_result *r = j->result;
	json_t *list = json_array();
	for (size_t i = 0; i < r->nr_functions && i < FUNCTIONS_MAX; i++) {
		struct ciat_instruction x = {
			r->function[i], ciat_json_place(j, r->function[i].code, true)};
		json_array_append_new(list, base_table_json(table, &x, j, 0));
	}
	return list;
}

static json_t *matrix_json(const struct memory_ciat_result *r)
{
	json_t *list = json_array();
	for (uint32_t from = 0; from < r->nr_threads; from++) {
		json_t *row = json_array();
		for (uint32_t to = 0; to < r->nr_threads; to++)
			json_array_append_new(
				row, base_json_u64(r->matrix[(size_t)from * r->nr_threads + to]));
		json_array_append_new(list, row);
	}
	return list;
}

static json_t *curve_json(const struct memory_ciat_result *r, const struct memory_reuse_curve *c,
	const struct base_table *table)
{
	json_t *list = json_array();
	unsigned last = 0;
	for (unsigned i = 0; i < MEMORY_REUSE_BUCKETS; i++)
		last = c->count[i] > 0 ? i : last;
	for (unsigned i = memory_reuse_least(c); i <= last; i++) {
		struct ciat_reuse x = {(uint64_t)r->line_bytes << i, (uint64_t)c->count[i],
			memory_reuse_miss_ratio(c, i)};
		json_array_append_new(list, base_table_json(table, &x, NULL, 0));
	}
	return list;
}

#include "memory/ciat/ciat.def"

json_t *memory_ciat_json(const struct memory_ciat_result *r, const struct memory_source *s,
	const struct memory_names *names)
{
	struct ciat_json j = {r, s, names};
	return base_table_json(&memory_ciat_table, r, &j, ciat_json_has(r));
}

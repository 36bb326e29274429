/* SPDX-License-Identifier: Apache-2.0 */
/* ciat_tables.c - accesses and sharing summed by data object and by function. */
#include "cmd/memory/ciat.h"
#include "base/column.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 1000 }; /* of JSON */
#define UNNAMED "memory without a name (stacks, thread data, blocks not seen)"

/* ---- rows ------------------------------------------------------------------------------------ */

static struct ciat_row *ciat_tables_row_of(
	struct ciat_table *t, const char *name, enum ciat_kind kind)
{
	uint32_t id;
	uint64_t at;
	t->texts = t->texts ? t->texts : base_strtab_new();
	if (!t->texts || base_strtab_intern(t->texts, name, strlen(name), &id) != BASE_OK)
		return NULL;
	if (base_map_get(&t->by_name, kind, id, &at))
		return &t->row[at];
	struct base_str copy = {0};
	base_str_add(&copy, name);
	if (copy.failed || base_grow(&t->row, &t->capacity, t->nr + 1, sizeof *t->row) != BASE_OK ||
		base_map_put(&t->by_name, kind, id, t->nr) != BASE_OK) {
		base_str_fini(&copy);
		return NULL;
	}
	t->row[t->nr] = (struct ciat_row){.name = copy.buf, .kind = kind};
	return &t->row[t->nr++];
}

static int by_trouble(const void *x, const void *y)
{
	const struct ciat_row *a = x, *b = y;
	uint64_t ma = a->true_misses + a->false_misses + a->upgrades;
	uint64_t mb = b->true_misses + b->false_misses + b->upgrades;
	if (ma != mb)
		return ma < mb ? 1 : -1;
	if (a->accesses != b->accesses)
		return a->accesses < b->accesses ? 1 : -1;
	return strcmp(a->name, b->name);
}

static void ciat_tables_sort(struct ciat_table *t)
{
	if (t->row)
		qsort(t->row, t->nr, sizeof *t->row, by_trouble);
}

void ciat_table_fini(struct ciat_table *t)
{
	for (size_t i = 0; i < t->nr; i++)
		base_free(t->row[i].name);
	base_free(t->row);
	base_map_fini(&t->by_name);
	if (t->texts)
		base_strtab_free(t->texts);
	*t = (struct ciat_table){0};
}

/* ---- data objects ---------------------------------------------------------------------------- */

static void name_heap(
	struct base_str *out, struct cmd_slack_names *n, const struct memory_ciat_heap *h)
{
	struct base_str text = {0};
	cmd_slack_heap(n, h->code, &text);
	const char *from = strstr(base_str_text(&text), " from ");
	base_str_add(out, h->mapping && from ? "mapping" : "");
	base_str_add(out, h->mapping && from ? from : base_str_text(&text));
	base_str_fini(&text);
}

static struct ciat_row *heap_row(
	struct ciat_table *t, struct cmd_slack_names *n, const struct memory_ciat_heap *h)
{
	struct base_str name = {0};
	name_heap(&name, n, h);
	struct ciat_row *row = name.failed ? NULL
					   : ciat_tables_row_of(t, base_str_text(&name),
						     h->mapping ? CIAT_MAPPING : CIAT_HEAP);
	base_str_fini(&name);
	return row;
}

static struct ciat_row *section_row(struct ciat_table *t, const char *path, const char *section)
{
	struct base_str name = {0};
	cmd_slack_section_name(&name, path, section);
	struct ciat_row *row =
		name.failed ? NULL : ciat_tables_row_of(t, base_str_text(&name), CIAT_SECTION);
	base_str_fini(&name);
	return row;
}

/* The object that a place without a block belongs to. */
static struct ciat_row *place_row(struct ciat_table *t, struct cmd_slack_names *n, uint64_t address)
{
	struct symbol_variable v;
	struct memory_place p = {.name = "", .file = ""};
	const struct memory_source_ops *ops = n->source->ops;
	if (ops->data_place)
		return ops->data_place(n->source, address, &p)
			       ? ciat_tables_row_of(t, p.name, CIAT_VARIABLE)
			       : ciat_tables_row_of(t, UNNAMED, CIAT_UNNAMED);
	if (cmd_slack_variable(n, address, &v) && v.offset <= address)
		return ciat_tables_row_of(t, v.name, CIAT_VARIABLE);
	const char *path;
	return cmd_slack_section(n, address, &v, &path) && v.offset <= address
		       ? section_row(t, path, v.name)
		       : ciat_tables_row_of(t, UNNAMED, CIAT_UNNAMED);
}

bool ciat_data_at(struct base_str *out, struct cmd_slack_names *n, uint64_t address)
{
	struct symbol_variable v;
	const char *path;
	if (cmd_slack_data_at(n, address, out))
		return true;
	if (!cmd_slack_section(n, address, &v, &path) || v.offset > address)
		return false;
	cmd_slack_section_name(out, path, v.name);
	base_str_addf(out, "+0x%" PRIx64, address - v.offset);
	return true;
}

static uint64_t place_of_site(const struct memory_ciat_result *r, const struct memory_ciat_site *e)
{
	unsigned first = e->offsets ? (unsigned)__builtin_ctzll(e->offsets) : 0;
	return e->line + first * (uint64_t)r->line_bytes / 64;
}

/* Of places that one instruction met the first and the last: "table[0] to table[7]", or both. */
static bool add_fields(struct base_str *out, struct cmd_slack_names *n,
	const struct memory_ciat_result *r, const struct memory_ciat_site *e)
{
	struct base_str first = {0}, last = {0};
	unsigned top = e->offsets ? 63u - (unsigned)__builtin_clzll(e->offsets) : 0;
	bool found = ciat_data_at(&first, n, place_of_site(r, e));
	if (found)
		base_str_add(out, base_str_text(&first));
	if (found && ciat_data_at(&last, n, e->line + top * (uint64_t)r->line_bytes / 64) &&
		strcmp(base_str_text(&first), base_str_text(&last)) != 0)
		base_str_addf(out, __builtin_popcountll(e->offsets) > 2 ? " to %s" : " and %s",
			base_str_text(&last));
	base_str_fini(&first);
	base_str_fini(&last);
	return found;
}

bool ciat_site_object(struct base_str *out, struct cmd_slack_names *n,
	const struct memory_ciat_result *r, const struct memory_ciat_site *e)
{
	if (!e->heap)
		return !n->source->ops->data_place && add_fields(out, n, r, e);
	const struct memory_ciat_heap *h = &r->heap[e->heap - 1];
	/* (Of blocks of several sizes it is not known which this one was.) */
	uint64_t each = h->blocks && h->bytes % h->blocks == 0 ? h->bytes / h->blocks : 0;
	if (!h->mapping && cmd_slack_heap_member(n, h->code, each, e->heap_offset, out))
		base_str_add(out, " in ");
	name_heap(out, n, h);
	base_str_addf(out, ", byte %" PRIu64, e->heap_offset);
	return true;
}

/* All loads of an instruction. */
static uint64_t loads_of(const struct memory_ciat_result *r, uint64_t code)
{
	size_t k = BASE_PARTITION(i, r->nr_functions, r->function[i].code < code);
	return k < r->nr_functions && r->function[k].code == code ? r->function[k].loads : 0;
}

static bool ciat_tables_add_sites(
	struct ciat_table *t, struct cmd_slack_names *n, const struct memory_ciat_result *r)
{
	for (size_t i = 0; i < r->nr_sites; i++) {
		const struct memory_ciat_site *e = &r->site[i];
		struct ciat_row *row = e->heap ? heap_row(t, n, &r->heap[e->heap - 1])
					       : place_row(t, n, place_of_site(r, e));
		if (!row)
			return false;
		row->true_misses += e->true_misses;
		row->false_misses += e->false_misses;
		row->upgrades += e->upgrades;
		/* Sites come by line; two objects may take turns in one. */
		row->lines_moved += !row->lines_moved || row->last_line != e->line;
		row->last_line = e->line;
		row->readers_loads += e->stores ? 0 : loads_of(r, e->code);
	}
	return true;
}

struct object { /* a variable, or a piece of a section that has none */
	uint64_t from, end;
	const char *name, *path; /* path: of the section's file */
};

/* The one that `at` is in, or the next one. */
static bool next_object(struct cmd_slack_names *n, uint64_t at, struct object *ret)
{
	struct symbol_variable v, s;
	const char *path;
	bool variable = cmd_slack_variable(n, at, &v);
	bool section = cmd_slack_section(n, at, &s, &path);
	if (variable && (v.offset <= at || !section || s.offset >= v.offset)) {
		uint64_t bytes = v.size_bytes ? v.size_bytes : 1;
		*ret = (struct object){v.offset, v.offset + bytes, v.name, NULL};
	} else if (section) {
		uint64_t end = s.offset + s.size_bytes;
		*ret = (struct object){s.offset > at ? s.offset : at,
			variable && v.offset < end ? v.offset : end, s.name, path};
	}
	return variable || section;
}

/* Variables that were touched; what is left has no name. */
static bool add_variables(struct ciat_table *t, struct cmd_slack_names *n,
	const struct memory_ciat *c, uint64_t *left)
{
	uint64_t at = 0;
	while (n->source->ops->linked && (at = memory_ciat_touched(c, at)) != UINT64_MAX) {
		struct object o;
		if (!next_object(n, at, &o))
			break;
		if (o.from > at) {
			at = o.from;
			continue;
		}
		uint64_t sum = memory_ciat_accesses(c, o.from, o.end);
		struct ciat_row *row = o.path ? section_row(t, o.path, o.name)
					      : ciat_tables_row_of(t, o.name, CIAT_VARIABLE);
		if (!row)
			return false;
		row->accesses += sum;
		*left -= sum < *left ? sum : *left;
		at = o.end > at ? o.end : at + 1;
	}
	return true;
}

enum base_status ciat_objects(struct ciat_table *t, struct cmd_slack_names *n,
	const struct memory_ciat *c, const struct memory_ciat_result *r)
{
	uint64_t left = r->usage.data_accesses;
	bool ok = true;
	for (size_t i = 0; i < r->nr_heap && ok; i++) {
		const struct memory_ciat_heap *h = &r->heap[i];
		struct ciat_row *row = heap_row(t, n, h);
		ok = row != NULL;
		if (!row)
			break;
		row->accesses += h->accesses;
		row->blocks += h->blocks;
		row->allocated_bytes += h->bytes;
		left -= h->accesses < left ? h->accesses : left;
	}
	ok = ok && add_variables(t, n, c, &left) && ciat_tables_add_sites(t, n, r);
	if (ok && left) {
		struct ciat_row *row = ciat_tables_row_of(t, UNNAMED, CIAT_UNNAMED);
		ok = row != NULL;
		if (row)
			row->accesses += left;
	}
	ciat_tables_sort(t);
	return ok ? BASE_OK : BASE_ERR_NOMEM;
}

const char *ciat_unseen_code(const struct cmd_slack_names *n)
{
	return n->source->ops->linked ? "(system calls, and library calls recorded as ranges)"
				      : "unknown instructions";
}

/* ---- functions ------------------------------------------------------------------------------- */

/* The row of the function that an instruction is in; NULL: no memory. */
static struct ciat_row *function_row(
	struct ciat_table *t, struct cmd_slack_names *n, uint64_t code, struct base_str *name)
{
	base_str_reset(name);
	if (code)
		cmd_slack_name(n, CMD_SLACK_FUNCTION, code, name);
	else
		base_str_add(name, ciat_unseen_code(n));
	struct ciat_row *row =
		name->failed ? NULL : ciat_tables_row_of(t, base_str_text(name), CIAT_FUNCTION);
	if (row)
		row->code |= code;
	return row;
}

enum base_status ciat_functions(
	struct ciat_table *t, struct cmd_slack_names *n, const struct memory_ciat_result *r)
{
	struct base_str name = {0};
	bool ok = true;
	for (size_t i = 0; i < r->nr_functions && ok; i++) {
		const struct memory_ciat_function *f = &r->function[i];
		struct ciat_row *row = function_row(t, n, f->code, &name);
		ok = row != NULL;
		if (!row)
			break;
		row->loads += f->loads;
		row->stores += f->stores;
		row->accesses += f->loads + f->stores;
		row->raw += f->raw;
	}
	for (size_t i = 0; i < r->nr_sites && ok; i++) {
		const struct memory_ciat_site *e = &r->site[i];
		struct ciat_row *row = function_row(t, n, e->code, &name);
		ok = row != NULL;
		if (!row)
			break;
		row->true_misses += e->true_misses;
		row->false_misses += e->false_misses;
		row->upgrades += e->upgrades;
	}
	base_str_fini(&name);
	ciat_tables_sort(t);
	return ok ? BASE_OK : BASE_ERR_NOMEM;
}

/* ---- text and JSON --------------------------------------------------------------------------- */

void ciat_objects_text(struct base_str *out, const struct ciat_table *t, size_t rows)
{
	if (!t->nr || (t->nr == 1 && t->row[0].kind == CIAT_UNNAMED))
		return;
	base_str_add(
		out, "\n      accesses  lines moved    false     true  upgrades  data object\n");
	for (size_t i = 0; i < t->nr && i < rows; i++) {
		const struct ciat_row *o = &t->row[i];
		base_str_addf(out,
			"  %12" PRIu64 " %12" PRIu64 " %8" PRIu64 " %8" PRIu64 "  %8" PRIu64 "  ",
			o->accesses, o->lines_moved, o->false_misses, o->true_misses, o->upgrades);
		report_name_add(out, o->name);
		if (o->blocks) {
			base_str_addf(out, " (%" PRIu64 " {block|blocks}, ", o->blocks);
			base_str_add_size(out, o->allocated_bytes);
			base_str_add(out, ")");
		}
		base_str_add(out, "\n");
	}
	if (t->nr > rows)
		base_str_addf(out, "  (%zu more: --json has them)\n", t->nr - rows);
}

void ciat_functions_text(struct base_str *out, const struct ciat_table *t, size_t rows)
{
	if (!t->nr || (t->nr == 1 && !t->row[0].code))
		return;
	base_str_add(out,
		"\n         loads       stores       RAW    false     true  upgrades  function\n");
	for (size_t i = 0; i < t->nr && i < rows; i++) {
		const struct ciat_row *o = &t->row[i];
		base_str_addf(out,
			"  %12" PRIu64 " %12" PRIu64 " %9" PRIu64 " %8" PRIu64 " %8" PRIu64
			"  %8" PRIu64 "  ",
			o->loads, o->stores, o->raw, o->false_misses, o->true_misses, o->upgrades);
		report_name_add(out, o->name);
		base_str_add(out, "\n");
	}
	if (t->nr > rows)
		base_str_addf(out, "  (%zu more: --json has them)\n", t->nr - rows);
}

static const char *const kind_name[] = {
	"variable", "heap", "mapping", "section", "unnamed", "function"};

#include "cmd/memory/ciat.def"

json_t *ciat_objects_json(const struct ciat_table *t)
{
	return base_table_json_list(
		&ciat_object, t->row, t->nr < ROWS_MAX ? t->nr : ROWS_MAX, NULL, 0);
}

json_t *ciat_functions_json(const struct ciat_table *t)
{
	return base_table_json_list(
		&ciat_function, t->row, t->nr < ROWS_MAX ? t->nr : ROWS_MAX, NULL, 0);
}

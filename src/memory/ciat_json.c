/* SPDX-License-Identifier: Apache-2.0 */
/* ciat_json.c - the result for programs; keys are only ever added. */
#include "memory/ciat.h"
#include "base/json.h"
#include "memory/silent.h"

#include <math.h>

enum { LINES_MAX = 100, SITES_PER_LINE_MAX = 8, FUNCTIONS_MAX = 1000 };

static const char *const size_name[] = {
#define SIZE(name, bytes, line) #name,
#include "memory/ciat_sizes.def"
};
static const char *const reg_name[MEMORY_REG_KINDS] = {"unknown", "integer", "float", "vector"};
static const char *const kind_name[] = {"loads", "stores"};
static const char *const string_name[] = {"load_strings", "store_strings"};

static void ciat_json_put(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, base_json_u64(n));
}

static json_t *ciat_json_address(uint64_t a)
{
	return json_sprintf("0x%llx", (unsigned long long)a);
}

static json_t *real(double v)
{
	return json_real(round(v * 1e6) / 1e6);
}

static json_t *access_json(const struct memory_ciat_counts *n, unsigned kind)
{
	json_t *list = json_array();
	for (unsigned s = 0; s < MEMORY_CIAT_SIZES; s++)
		for (unsigned r = 0; r < MEMORY_REG_KINDS; r++)
			if (n->access[kind][s][r])
				json_array_append_new(
					list, json_pack("{s:s, s:s, s:o}", "size", size_name[s],
						      "register", reg_name[r], "count",
						      base_json_u64(n->access[kind][s][r])));
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

static json_t *strings_json(const struct memory_ciat_counts *n, unsigned kind)
{
	json_t *list = json_array();
	for (unsigned i = 1; i < MEMORY_CIAT_STRINGS; i++) {
		bool exact = i <= MEMORY_CIAT_STRING_EXACT;
		uint64_t least = exact ? i : UINT64_C(1) << (i - MEMORY_CIAT_STRING_EXACT + 5);
		if (!exact && i == MEMORY_CIAT_STRING_EXACT + 1)
			least++;
		if (n->string[kind][i])
			json_array_append_new(list,
				json_pack("{s:o, s:o, s:o}", "length_from", base_json_u64(least),
					"length_to", base_json_u64(exact ? i : 2 * least - 1),
					"count", base_json_u64(n->string[kind][i])));
	}
	return list;
}

static json_t *calls_json(const struct memory_ciat_counts *n)
{
	json_t *list = json_array();
	for (unsigned k = 0; k < MEMORY_CIAT_CALLS; k++)
		if (n->call[k].count)
			json_array_append_new(list,
				json_pack("{s:s, s:o, s:o, s:o}", "call", memory_call_find(k)->name,
					"count", base_json_u64(n->call[k].count), "time_ns",
					base_json_u64(n->call[k].time_ns), "amount_bytes",
					base_json_u64(n->call[k].amount)));
	return list;
}

static json_t *ciat_json_counts_json(const struct memory_ciat_counts *n, bool lines)
{
	json_t *o = json_object();
	for (unsigned k = 0; k < 2; k++) {
		ciat_json_put(o, kind_name[k], ciat_json_total(n, k));
		json_object_set_new(o, k ? "stores_by" : "loads_by", access_json(n, k));
		json_object_set_new(o, string_name[k], strings_json(n, k));
	}
	ciat_json_put(o, "load_bytes", n->access_bytes[0]);
	ciat_json_put(o, "store_bytes", n->access_bytes[1]);
	ciat_json_put(o, "atomics", n->atomics);
	ciat_json_put(o, "instructions", n->instructions);
	ciat_json_put(o, "fetched_instructions", n->fetched);
	ciat_json_put(o, "taken_branches", n->branches);
	ciat_json_put(o, "procedure_calls", n->procedure_calls);
	ciat_json_put(o, "instrumented_procedure_calls", n->procedure_starts);
	ciat_json_put(o, "raw", n->event[MEMORY_CIAT_RAW]);
	ciat_json_put(o, "war", n->event[MEMORY_CIAT_WAR]);
	ciat_json_put(o, "waw", n->event[MEMORY_CIAT_WAW]);
	ciat_json_put(o, "rar", n->event[MEMORY_CIAT_RAR]);
	ciat_json_put(o, "range_load_bytes", n->range_load_bytes);
	ciat_json_put(o, "range_store_bytes", n->range_store_bytes);
	if (lines) {
		ciat_json_put(o, "line_first_misses", n->cold_misses);
		ciat_json_put(o, "line_true_sharing_misses", n->true_misses);
		ciat_json_put(o, "line_false_sharing_misses", n->false_misses);
		ciat_json_put(o, "line_upgrades", n->upgrades);
	}
	json_object_set_new(o, "calls", calls_json(n));
	return o;
}

static json_t *ciat_json_phase_json(
	const struct memory_ciat_result *r, const struct memory_ciat_phase *p)
{
	json_t *sharing = json_array(), *invalidation = json_array(), *threads = json_array();
	for (uint32_t k = 1; k <= r->nr_threads; k++) {
		json_array_append_new(sharing, json_integer(p->sharing[k]));
		json_array_append_new(invalidation, base_json_u64(p->invalidation[k]));
	}
	for (uint32_t i = 0; i < r->nr_threads; i++)
		json_array_append_new(
			threads, ciat_json_counts_json(&p->thread[i], r->lines_known));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "begin_clock",
		base_json_u64(p->begin_clock), "end_clock", base_json_u64(p->end_clock), "all",
		ciat_json_counts_json(&p->all, r->lines_known), "threads", threads,
		"sharing_degree_from_1", sharing, "invalidation_degree_from_1", invalidation);
}

static json_t *usage_json(const struct memory_ciat_usage *u)
{
	json_t *o = json_object();
#define FIGURE(number, name, line) ciat_json_put(o, #name, u->name);
#include "memory/ciat_usage.def"
	json_object_set_new(o, "data_locality_index", real(u->data_locality));
	json_object_set_new(o, "code_locality_index", real(u->code_locality));
	return o;
}

struct namer {
	const struct memory_source *source;
	const struct memory_names *names;
};

static bool ciat_json_place_of(
	const struct namer *n, uint64_t at, bool code, struct memory_place *ret)
{
	bool (*find)(const struct memory_source *, uint64_t, struct memory_place *) =
		code ? n->source->ops->code_place : n->source->ops->data_place;
	*ret = (struct memory_place){.name = "", .file = ""};
	return (find && find(n->source, at, ret)) ||
	       (n->names && n->names->place(n->names->ctx, at, code, ret));
}

static void put_place(json_t *o, const struct namer *n, uint64_t at, bool code)
{
	struct memory_place p;
	if (!ciat_json_place_of(n, at, code, &p))
		return;
	json_object_set_new(o, code ? "function" : "object", json_string(p.name));
	if (p.file[0]) {
		json_object_set_new(o, "file", json_string(p.file));
		ciat_json_put(o, "line", p.line);
	}
	if (!code && p.start)
		ciat_json_put(o, "object_offset_bytes", at - p.start);
}

static void put_field(json_t *o, const struct namer *n, const struct memory_ciat_result *r,
	const struct memory_ciat_site *site)
{
	struct base_str text = {0};
	if (n->names && n->names->field(n->names->ctx, r, site, &text) && !text.failed)
		json_object_set_new(o, "field", json_string(base_str_text(&text)));
	base_str_fini(&text);
}

static json_t *sites_json(const struct memory_ciat_result *r, const struct namer *n, uint64_t line)
{
	json_t *list = json_array();
	size_t at = BASE_PARTITION(i, r->nr_sites, r->site[i].line < line);
	for (; at < r->nr_sites && r->site[at].line == line &&
		json_array_size(list) < SITES_PER_LINE_MAX;
		at++) {
		const struct memory_ciat_site *e = &r->site[at];
		json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:b, s:i, s:b}", "code",
			ciat_json_address(e->code), "true_misses", base_json_u64(e->true_misses),
			"false_misses", base_json_u64(e->false_misses), "upgrades",
			base_json_u64(e->upgrades), "stores", (int)e->stores, "thread",
			(int)e->thread, "several_threads", (int)e->several);
		unsigned first = e->offsets ? (unsigned)__builtin_ctzll(e->offsets) : 0;
		ciat_json_put(o, "first_offset_bytes", (uint64_t)first * r->line_bytes / 64);
		put_place(o, n, e->code, true);
		if (e->heap) {
			json_t *by = json_object();
			json_object_set_new(
				by, "code", ciat_json_address(r->heap[e->heap - 1].code));
			ciat_json_put(by, "offset_bytes", e->heap_offset);
			put_place(by, n, r->heap[e->heap - 1].code, true);
			json_object_set_new(o, "allocated_by", by);
		} else {
			put_place(o, n, line + (uint64_t)first * r->line_bytes / 64, false);
		}
		put_field(o, n, r, e);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *lines_json(const struct memory_ciat_result *r, const struct namer *n)
{
	json_t *list = json_array();
	for (size_t i = 0; i < r->nr_lines && i < LINES_MAX; i++) {
		const struct memory_ciat_line *l = &r->line[i];
		json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:i, s:o}", "address",
			ciat_json_address(l->address), "false_misses",
			base_json_u64(l->false_misses), "true_misses",
			base_json_u64(l->true_misses), "upgrades", base_json_u64(l->upgrades),
			"last_writers", (int)l->writers, "sites", sites_json(r, n, l->address));
		put_place(o, n, l->address, false);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *functions_json(const struct memory_ciat_result *r, const struct namer *n)
{
	json_t *list = json_array();
	for (size_t i = 0; i < r->nr_functions && i < FUNCTIONS_MAX; i++) {
		const struct memory_ciat_function *f = &r->function[i];
		json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o}", "code",
			ciat_json_address(f->code), "loads", base_json_u64(f->loads), "stores",
			base_json_u64(f->stores), "raw", base_json_u64(f->raw), "sharing_misses",
			base_json_u64(f->misses));
		put_place(o, n, f->code, true);
		json_array_append_new(list, o);
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

static json_t *curve_json(const struct memory_reuse_curve *c, uint32_t line_bytes)
{
	json_t *list = json_array();
	unsigned last = 0;
	for (unsigned i = 0; i < MEMORY_REUSE_BUCKETS; i++)
		last = c->count[i] > 0 ? i : last;
	for (unsigned i = memory_reuse_least(c); i <= last; i++)
		json_array_append_new(
			list, json_pack("{s:o, s:o, s:o}", "cache_bytes",
				      base_json_u64((uint64_t)line_bytes << i), "distances",
				      base_json_u64((uint64_t)c->count[i]), "miss_ratio",
				      real(memory_reuse_miss_ratio(c, i))));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "accesses", base_json_u64(c->accesses),
		"first", base_json_u64(c->cold), "sampled_share", real(c->sampled_share),
		"sampled_lines", base_json_u64(c->sampled_lines), "curve", list);
}

json_t *memory_ciat_json(const struct memory_ciat_result *r, const struct memory_source *s,
	const struct memory_names *names)
{
	const struct namer n = {s, names};
	json_t *phases = json_array();
	for (size_t i = 0; i < r->nr_phases; i++) {
		json_t *p = ciat_json_phase_json(r, &r->phase[i]);
		json_object_set_new(p, "phase", json_string(memory_phase_name(r->phase[i].kind)));
		ciat_json_put(p, "number", r->phase[i].number);
		json_array_append_new(phases, p);
	}
	json_t *o = json_object();
	ciat_json_put(o, "threads", r->nr_threads);
	ciat_json_put(o, "location_bytes", r->location_bytes);
	ciat_json_put(o, "line_bytes", r->line_bytes);
	ciat_json_put(o, "state_bytes", r->memory_bytes);
	json_object_set_new(o, "phases", phases);
	ciat_json_put(o, "phases_left_out", r->phases_left_out);
	json_object_set_new(o, "total", ciat_json_phase_json(r, &r->total));
	json_object_set_new(o, "usage", usage_json(&r->usage));
	json_object_set_new(o, "communication_matrix", matrix_json(r));
	if (r->lines_known)
		json_object_set_new(o, "lines", lines_json(r, &n));
	ciat_json_put(o, "lines_moved", r->nr_lines);
	if (r->nr_functions)
		json_object_set_new(o, "instructions", functions_json(r, &n));
	json_t *silent = memory_silent_json(s, r->nr_threads);
	if (silent)
		json_object_set_new(o, "silent_stores", silent);
	if (r->has_reuse) {
		json_object_set_new(o, "reuse_shared", curve_json(&r->shared_curve, r->line_bytes));
		json_object_set_new(
			o, "reuse_private", curve_json(&r->private_curve, r->line_bytes));
	}
	return o;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callers.c - samples with their stacks: how much of a state is in a function with all that it
 * calls, and what code is called that has no name of its own.
 */
#include "model/model_private.h"
#include "symbol/symbol.h"

#include <string.h>

enum { FUNCTIONS_MAX = 256 }; /* of one stack, with what is inlined */

static const char *callers_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static const char *module_name(const struct model *m, uint32_t module)
{
	return module && module < m->defs->nr_modules
		       ? callers_base_name(trace_text_of(m->defs, m->defs->modules[module].path))
		       : "";
}

static uint32_t module_of(const struct model *m, uint32_t site)
{
	return site < m->defs->nr_sites ? m->defs->sites[site].module : 0;
}

/* "libz.so.1+0x4970": made up, of a module without names. */
static bool is_made_up(const struct model *m, uint32_t module, const char *function)
{
	const char *name = module_name(m, module);
	size_t length = strlen(name);
	return length && !strncmp(function, name, length) && !strncmp(function + length, "+0x", 3);
}

static bool module_is_library(const struct model *m, uint32_t module)
{
	return strstr(module_name(m, module), ".so") != NULL;
}

/* The string of a site's own function; 0: it has no name. */
static uint32_t named_function(const struct model *m, uint32_t site)
{
	uint32_t function = site < m->defs->nr_symbols ? m->defs->symbols[site].function : 0;
	bool made_up = is_made_up(m, module_of(m, site), trace_text_of(m->defs, function));
	return made_up && module_is_library(m, module_of(m, site)) ? 0 : function;
}

/* ---- code without a name --------------------------------------------------------------------- */

/* The nearest caller that one would name, of any module but `not_of` (0: of any); 0: none. */
static uint32_t nearest_caller(const struct model *m, uint32_t stack, uint32_t not_of)
{
	const struct trace_defs *d = m->defs;
	for (size_t steps = 0; stack && stack < d->nr_stacks && steps < d->nr_stacks;
		steps++, stack = d->stacks[stack].parent) {
		uint32_t site = d->stacks[stack].site, function = named_function(m, site);
		if (function && (!not_of || module_of(m, site) != not_of) &&
			!symbol_is_plumbing(trace_text_of(d, function)))
			return site;
	}
	return 0;
}

static void add_call(struct base_str *s, const char *before, const char *function)
{
	base_str_add(s, before);
	symbol_short_add(s, function, false);
	base_str_add(s, strstr(function, "+0x") ? "" : "()"); /* (an address is no name) */
}

/* "libz, called from deflate() < compress_thread()": by the library's own function that has a name,
 * if one has, and by its caller. */
static const char *inside_text(struct model *m, uint32_t module, const char *near, const char *far)
{
	struct base_str s = {0};
	const char *name = module_name(m, module);
	base_str_add_bytes(&s, name, (size_t)(strstr(name, ".so") - name));
	if (*near)
		add_call(&s, ", called from ", near);
	if (*far)
		add_call(&s, " < ", far);
	return model_keep_text(m, &s);
}

static uint64_t inside_of(struct model *m, uint32_t module, uint32_t stack)
{
	struct model_sampled *s = &m->sampled;
	uint32_t near = nearest_caller(m, stack, 0);
	uint32_t far = near && module_of(m, near) == module ? nearest_caller(m, stack, module) : 0;
	uint32_t near_name = near ? named_function(m, near) : 0;
	uint32_t far_name = far ? named_function(m, far) : 0;
	uint64_t ix, callers = (uint64_t)near_name << 32 | far_name;
	if (!base_map_get(&s->insides, module, callers, &ix)) {
		ix = s->nr_insides;
		if (base_grow(&s->inside, &s->inside_capacity, ix + 1, sizeof *s->inside) !=
				BASE_OK ||
			base_map_put(&s->insides, module, callers, ix) != BASE_OK) {
			m->status = base_fail(m->err, BASE_ERR_NOMEM, "out of memory for samples");
			return (uint64_t)MODEL_SAMPLE_module << 32 | module;
		}
		s->inside[s->nr_insides++] = inside_text(m, module,
			trace_text_of(m->defs, near_name), trace_text_of(m->defs, far_name));
	}
	return (uint64_t)MODEL_SAMPLE_inside << 32 | ix;
}

/* As one would name it: not after a library's insides, nor after what only calls others. */
static uint64_t callers_resolve(struct model *m, uint64_t function, uint32_t module, uint32_t stack)
{
	const char *name = function >> 32 ? "" : trace_text_of(m->defs, (uint32_t)function);
	bool nameless = function >> 32 == MODEL_SAMPLE_module || is_made_up(m, module, name);
	if (nameless && module_is_library(m, module))
		return inside_of(m, module, stack);
	if (*name && symbol_is_plumbing(name)) {
		uint32_t near = nearest_caller(m, stack, 0);
		return near ? named_function(m, near) : function;
	}
	return function;
}

uint64_t model_sample_key(struct model *m, uint64_t function, uint32_t module, uint32_t stack)
{
	struct model_sampled *s = &m->sampled;
	uint64_t ix;
	if (stack >= m->defs->nr_stacks)
		stack = 0;
	if (!base_map_get(&s->points, function, stack, &ix)) {
		ix = s->nr_points;
		if (base_grow(&s->point, &s->point_capacity, ix + 1, sizeof *s->point) != BASE_OK ||
			base_map_put(&s->points, function, stack, ix) != BASE_OK) {
			m->status = base_fail(m->err, BASE_ERR_NOMEM, "out of memory for samples");
			return function;
		}
		s->point[s->nr_points++] = (struct sample_point){
			.function = callers_resolve(m, function, module, stack), .stack = stack};
	}
	return (uint64_t)MODEL_SAMPLE_point << 32 | ix;
}

uint64_t model_sample_function(const struct model *m, uint64_t key)
{
	return key >> 32 == MODEL_SAMPLE_point ? m->sampled.point[(uint32_t)key].function : key;
}

/* ---- whose a sample is ----------------------------------------------------------------------- */

struct functions { /* each once: strings, or keys of what has none */
	uint64_t of[FUNCTIONS_MAX];
	size_t nr;
};

static void functions_add(struct functions *f, uint64_t function)
{
	size_t i = 0;
	while (i < f->nr && f->of[i] != function)
		i++;
	if (i == f->nr && function && f->nr < FUNCTIONS_MAX)
		f->of[f->nr++] = function;
}

static void functions_add_chain(const struct model *m, struct functions *f, uint32_t chain)
{
	for (; chain; chain = m->sampled.chain[chain].parent)
		functions_add(f, m->sampled.chain[chain].function);
}

/* What a sample ran in: a function, and what is inlined there. */
static void functions_of_leaf(const struct model *m, struct functions *f, uint64_t key)
{
	uint64_t function = model_sample_function(m, key);
	if (function >> 32 == MODEL_SAMPLE_chain)
		functions_add_chain(m, f, (uint32_t)function);
	else
		functions_add(f, function);
}

static uint32_t callers_stack(const struct model *m, uint64_t key)
{
	return key >> 32 == MODEL_SAMPLE_point ? m->sampled.point[(uint32_t)key].stack : 0;
}

static void functions_of_callers(struct model *m, struct functions *f, uint64_t key)
{
	const struct trace_defs *d = m->defs;
	uint32_t stack = callers_stack(m, key);
	for (size_t steps = 0; stack && stack < d->nr_stacks && steps < d->nr_stacks;
		steps++, stack = d->stacks[stack].parent) {
		uint32_t site = d->stacks[stack].site;
		functions_add(f, named_function(m, site));
		functions_add_chain(m, f, model_site_chain(m, site));
	}
}

static const char *callers_text(const struct model *m, uint64_t function)
{
	if (function >> 32 == MODEL_SAMPLE_inside)
		return m->sampled.inside[(uint32_t)function];
	return function >> 32 ? "" : trace_text_of(m->defs, (uint32_t)function);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* What the kernel should have had is in no row. */
static bool take_kernel(const struct function_list *l,
	bool (*take)(void *ctx, const struct model_call_path *p), void *ctx)
{
	for (size_t i = 0; i < l->nr; i++) {
		const struct model_function_share *f = &l->function[i];
		struct model_call_path p = {
			.function = f->function, .where = f->where, .share = f->share};
		if (!strcmp(f->where, MODEL_KERNEL_NOT_SAMPLED))
			return take(ctx, &p);
	}
	return true;
}

bool model_each_call_path(struct model *m, uint32_t state,
	bool (*take)(void *ctx, const struct model_call_path *p), void *ctx)
{
	const struct function_list *l = model_function_list(m, state);
	if (!l)
		return true;
	for (size_t i = 0; i < l->nr_rows; i++) {
		const struct sample_row *row = &l->row[i];
		struct sampled of = model_sampled_of(m, row);
		struct model_call_path p = {.function = of.name,
			.where = of.where,
			.stack = callers_stack(m, row->function),
			.chain = of.chain,
			.share = model_row_share(l, row)};
		if (!take(ctx, &p))
			return false;
	}
	return take_kernel(l, take, ctx);
}

/* ---- questions ------------------------------------------------------------------------------- */

static bool function_matches(const struct model *m, struct model_match *match, uint64_t function)
{
	uint64_t known;
	if (!base_map_get(&match->functions, 0, function, &known)) {
		const char *text = callers_text(m, function);
		known = *text && match->is_it(match->ctx, text);
		(void)!base_map_put(&match->functions, 0, function, known);
	}
	return known;
}

static bool row_matches(struct model *m, struct model_match *match, uint64_t key)
{
	uint64_t known;
	if (base_map_get(&match->points, 0, key, &known))
		return known;
	struct functions f = {.nr = 0};
	functions_of_leaf(m, &f, key);
	if (!match->self)
		functions_of_callers(m, &f, key);
	known = 0;
	for (size_t i = 0; i < f.nr && !known; i++)
		known = function_matches(m, match, f.of[i]);
	(void)!base_map_put(&match->points, 0, key, known);
	return known;
}

bool model_share_in(struct model *m, uint32_t state, struct model_match *match,
	struct model_function_share *ret)
{
	const struct function_list *l = model_function_list(m, state);
	struct strata matching = {0};
	*ret = (struct model_function_share){.function = "", .where = ""};
	for (size_t i = 0; l && i < l->nr_rows; i++) {
		const struct sample_row *row = &l->row[i];
		if (!row_matches(m, match, row->function))
			continue;
		matching.nr[row->stratum] += row->nr;
		ret->nr_samples += row->nr;
	}
	if (ret->nr_samples)
		model_share_of(l, &matching, ret);
	return ret->nr_samples > 0;
}

void model_match_fini(struct model_match *match)
{
	base_map_fini(&match->functions);
	base_map_fini(&match->points);
}

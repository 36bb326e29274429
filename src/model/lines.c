/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.c - of each sampled function the line that somebody opens who reads its name in an answer.
 * In the program's own code that is the line that most of its samples were in, of the innermost
 * function, inlined or not. A library's function is called from the program's own code: that line,
 * and the function that it is in, if nearly all samples have the same one.
 */
#include "model/model_private.h"

#include <stdlib.h>
#include <string.h>

void model_count_line(struct model *m, uint32_t site, uint32_t stack)
{
	const struct trace_defs *d = m->defs;
	const uint32_t leaf = site && site < d->nr_symbols ? d->symbols[site].function : 0;
	uint32_t function = 0;
	uint64_t nr = 0;
	for (size_t steps = 0; !model_site_code(m, site).file && steps < d->nr_stacks; steps++) {
		if (!leaf)
			return;
		function = leaf;
		if (!stack || stack >= d->nr_stacks) {
			site = 0; /* of no known caller */
			break;
		}
		site = d->stacks[stack].site;
		stack = d->stacks[stack].parent;
	}
	base_map_get(&m->sampled.lines, function, site, &nr);
	model_put(m, &m->sampled.lines, function, site, nr + 1);
}

#define CALLER_SHARE_MIN 0.9 /* of a function's samples */

struct lines_pass {
	struct model *m;
	struct base_map counts;  /* (function, file and line) -> samples */
	struct base_map callers; /* (a library's function, the program's or 0) -> samples */
	struct base_map all;     /* (a library's function, 0) -> samples */
	struct base_map caller;  /* (a library's function, 0) -> the program's */
	bool failed;
};

static bool lines_add(
	struct lines_pass *p, struct base_map *map, uint64_t a, uint64_t b, uint64_t nr)
{
	uint64_t before = 0;
	base_map_get(map, a, b, &before);
	p->failed = p->failed || base_map_put(map, a, b, before + nr) != BASE_OK;
	return !p->failed;
}

static bool lines_add_site(void *ctx, uint64_t leaf, uint64_t site, uint64_t nr_samples)
{
	struct lines_pass *p = ctx;
	const struct model_code code = model_site_code(p->m, (uint32_t)site);
	const uint64_t function = leaf ? leaf : code.function;
	const uint64_t place = (uint64_t)code.file << 32 | (uint32_t)code.line;
	if (leaf && !(lines_add(p, &p->callers, leaf, code.file ? code.function : 0, nr_samples) &&
			    lines_add(p, &p->all, leaf, 0, nr_samples)))
		return false;
	return !function || !code.file || lines_add(p, &p->counts, function, place, nr_samples);
}

static bool lines_find_caller(void *ctx, uint64_t leaf, uint64_t caller, uint64_t nr_samples)
{
	struct lines_pass *p = ctx;
	uint64_t all = 0;
	base_map_get(&p->all, leaf, 0, &all);
	return !caller || (double)nr_samples < CALLER_SHARE_MIN * (double)all ||
	       lines_add(p, &p->caller, leaf, 0, caller);
}

static bool lines_add_line(void *ctx, uint64_t function, uint64_t place, uint64_t nr_samples)
{
	struct lines_pass *p = ctx;
	struct model_sampled *s = &p->m->sampled;
	uint64_t caller = 0;
	base_map_get(&p->caller, function, 0, &caller);
	if (base_grow(&s->line, &s->line_capacity, s->nr_lines + 1, sizeof *s->line) != BASE_OK) {
		p->failed = true;
		return false;
	}
	s->line[s->nr_lines++] =
		(struct model_line){.function = trace_text_of(p->m->defs, (uint32_t)function),
			.file = (uint32_t)(place >> 32),
			.line = (uint32_t)place,
			.caller = (uint32_t)caller,
			.nr_samples = nr_samples};
	return true;
}

/* By function, its line with most samples first; of equal ones that which comes first. */
static int lines_compare(const void *a, const void *b)
{
	const struct model_line *x = a, *y = b;
	int c = strcmp(x->function, y->function);
	if (c)
		return c;
	if (x->nr_samples != y->nr_samples)
		return x->nr_samples < y->nr_samples ? 1 : -1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

enum base_status model_find_lines(struct model *m)
{
	struct lines_pass p = {.m = m};
	struct model_sampled *s = &m->sampled;
	size_t kept = 0;
	s->nr_lines = 0;
	base_map_each(&s->lines, lines_add_site, &p);
	if (!p.failed)
		base_map_each(&p.callers, lines_find_caller, &p);
	if (!p.failed)
		base_map_each(&p.counts, lines_add_line, &p);
	base_map_fini(&p.counts);
	base_map_fini(&p.callers);
	base_map_fini(&p.all);
	base_map_fini(&p.caller);
	if (s->nr_lines)
		qsort(s->line, s->nr_lines, sizeof *s->line, lines_compare);
	for (size_t i = 0; i < s->nr_lines; i++)
		if (!kept || strcmp(s->line[kept - 1].function, s->line[i].function) != 0)
			s->line[kept++] = s->line[i];
	s->nr_lines = kept;
	return p.failed ? base_fail(m->err, BASE_ERR_NOMEM, "no memory for the lines of samples")
			: BASE_OK;
}

static int lines_compare_name(const void *name, const void *line)
{
	return strcmp(name, ((const struct model_line *)line)->function);
}

static const struct model_line *lines_find(const struct model_sampled *s, const char *function)
{
	return s->nr_lines ? bsearch(function, s->line, s->nr_lines, sizeof *s->line,
				     lines_compare_name)
			   : NULL;
}

const char *model_function_line(struct model *m, const char *function)
{
	const struct model_line *l = lines_find(&m->sampled, function);
	return l ? model_place_text(m, l->file, l->line) : "";
}

const char *model_function_caller(const struct model *m, const char *function)
{
	const struct model_line *l = lines_find(&m->sampled, function);
	return l ? trace_text_of(m->defs, l->caller) : "";
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.c - of each sampled function the line that somebody opens who reads its name in an answer.
 * In the program's own code that is the line that most of its samples were in, of the innermost
 * function, inlined or not. A library's function is called from the program's own code: that line.
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
		if (!stack || stack >= d->nr_stacks || !leaf)
			return;
		function = leaf;
		site = d->stacks[stack].site;
		stack = d->stacks[stack].parent;
	}
	base_map_get(&m->sampled.lines, function, site, &nr);
	model_put(m, &m->sampled.lines, function, site, nr + 1);
}

struct lines_pass {
	struct model *m;
	struct base_map counts; /* (function, file and line) -> samples */
	bool failed;
};

static bool lines_add_site(void *ctx, uint64_t leaf, uint64_t site, uint64_t nr_samples)
{
	struct lines_pass *p = ctx;
	const struct model_code code = model_site_code(p->m, (uint32_t)site);
	const uint64_t function = leaf ? leaf : code.function;
	uint64_t nr = 0, place = (uint64_t)code.file << 32 | (uint32_t)code.line;
	if (!function || !code.file)
		return true;
	base_map_get(&p->counts, function, place, &nr);
	p->failed = base_map_put(&p->counts, function, place, nr + nr_samples) != BASE_OK;
	return !p->failed;
}

static bool lines_add_line(void *ctx, uint64_t function, uint64_t place, uint64_t nr_samples)
{
	struct lines_pass *p = ctx;
	struct model_sampled *s = &p->m->sampled;
	if (base_grow(&s->line, &s->line_capacity, s->nr_lines + 1, sizeof *s->line) != BASE_OK) {
		p->failed = true;
		return false;
	}
	s->line[s->nr_lines++] =
		(struct model_line){.function = trace_text_of(p->m->defs, (uint32_t)function),
			.file = (uint32_t)(place >> 32),
			.line = (uint32_t)place,
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
		base_map_each(&p.counts, lines_add_line, &p);
	base_map_fini(&p.counts);
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

const char *model_function_line(struct model *m, const char *function)
{
	const struct model_sampled *s = &m->sampled;
	const struct model_line *l = s->nr_lines ? bsearch(function, s->line, s->nr_lines,
							   sizeof *s->line, lines_compare_name)
						 : NULL;
	return l ? model_place_text(m, l->file, l->line) : "";
}

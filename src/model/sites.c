/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites.c - places in the code: their texts, their frames with what was inlined there, call paths;
 * and the chains of inlined functions, numbered, that samples are counted by.
 */
#include "model/model_private.h"

#include <string.h>

static const char *sites_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

const char *model_function_at(const struct model *m, uint32_t site)
{
	return model_site_function(m, site);
}

const char *model_site_function(const struct model *m, uint32_t site)
{
	if (site && site < m->defs->nr_symbols && m->defs->symbols[site].function)
		return trace_text_of(m->defs, m->defs->symbols[site].function);
	return "";
}

/* ---- inlined functions ----------------------------------------------------------------------- */

enum base_status model_index_inlined(struct model *m)
{
	const struct trace_defs *d = m->defs;
	enum base_status s = BASE_OK;
	for (uint32_t i = m->sampled.nr_inlines ? m->sampled.nr_inlines : 1;
		i < d->nr_inlines && s == BASE_OK; i++)
		if (d->inlines[i].site && d->inlines[i].site != d->inlines[i - 1].site)
			s = base_map_put(&m->sampled.inlined_at, 0, d->inlines[i].site, i);
	m->sampled.nr_inlines = d->nr_inlines;
	return s;
}

/* Its rows: the innermost one first. */
static uint32_t inlined_rows(const struct model *m, uint32_t site, uint32_t *ret_nr)
{
	const struct trace_defs *d = m->defs;
	uint64_t first;
	*ret_nr = 0;
	if (!base_map_get(&m->sampled.inlined_at, 0, site, &first))
		return 0;
	while (*ret_nr < MODEL_FRAMES_MAX - 1 && first + *ret_nr < d->nr_inlines &&
		d->inlines[first + *ret_nr].site == site)
		++*ret_nr;
	return (uint32_t)first;
}

unsigned model_site_frames(
	const struct model *m, uint32_t site, struct model_frame ret[static MODEL_FRAMES_MAX])
{
	const struct trace_defs *d = m->defs;
	const struct trace_symbol *y = site && site < d->nr_symbols ? &d->symbols[site] : NULL;
	uint32_t nr, first = inlined_rows(m, site, &nr);
	if (!y || (!y->function && !y->file))
		return 0;
	ret[0] = (struct model_frame){.function = trace_text_of(d, y->function)};
	for (uint32_t i = 0; i < nr; i++) { /* from the outermost one */
		const struct trace_inlined *in = &d->inlines[first + nr - 1 - i];
		ret[i].file = trace_text_of(d, in->file);
		ret[i].line = in->line;
		ret[i + 1] = (struct model_frame){
			.function = trace_text_of(d, in->function), .inlined = true};
	}
	ret[nr].file = trace_text_of(d, y->file);
	ret[nr].line = y->line;
	return nr + 1;
}

/* What compilers and package managers bring lies elsewhere than a program's own sources. */
static bool is_brought(const char *file)
{
	static const char *const others[] = {"/usr/", "/rustc/", "/.cargo/", "/.rustup/"};
	for (size_t i = 0; i < BASE_COUNT(others); i++)
		if (strstr(file, others[i]))
			return true;
	return false;
}

static bool is_own_source(const char *file)
{
	return strchr(file, '/') && !is_brought(file);
}

static bool sites_begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Code that somebody builds here: no library that is installed, no kernel, no recorder. */
static bool is_own_module(const struct model *m, uint32_t site)
{
	static const char *const installed[] = {"[", "/usr/lib", "/lib/", "/lib64/"};
	const struct trace_defs *d = m->defs;
	uint32_t module = site < d->nr_sites ? d->sites[site].module : 0;
	const char *path = module && module < d->nr_modules
				   ? trace_text_of(d, d->modules[module].path)
				   : installed[0];
	for (size_t i = 0; i < BASE_COUNT(installed); i++)
		if (sites_begins(path, installed[i]))
			return false;
	return !sites_begins(sites_base_name(path), "liblongpole-");
}

static uint32_t chain_of(struct model *m, uint32_t parent, uint32_t function, bool brought)
{
	uint64_t ix;
	if (base_map_get(&m->sampled.chains, parent, function, &ix))
		return (uint32_t)ix;
	/* number 0 is no chain */
	ix = m->sampled.nr_chains ? m->sampled.nr_chains : 1;
	if (base_grow(&m->sampled.chain, &m->sampled.chain_capacity, ix + 1,
		    sizeof *m->sampled.chain) != BASE_OK ||
		base_map_put(&m->sampled.chains, parent, function, ix) != BASE_OK) {
		m->status = base_fail(m->err, BASE_ERR_NOMEM, "no memory for inlined functions");
		return 0;
	}
	m->sampled.chain[ix] =
		(struct model_chain){.parent = parent, .function = function, .brought = brought};
	m->sampled.nr_chains = (uint32_t)ix + 1;
	return (uint32_t)ix;
}

uint32_t model_site_chain(struct model *m, uint32_t site)
{
	const struct trace_defs *d = m->defs;
	uint32_t nr, first = inlined_rows(m, site, &nr);
	if (!nr || site >= d->nr_symbols || !d->symbols[site].function)
		return 0;
	/* (a row's file is where it was inlined: where the next one outside has its code) */
	const bool own = is_own_module(m, site);
	uint32_t file = d->inlines[first + nr - 1].file, function = d->symbols[site].function;
	uint32_t at = chain_of(m, 0, function, !own || is_brought(trace_text_of(d, file)));
	for (uint32_t i = nr; at && i-- > 0;) {
		file = i ? d->inlines[first + i - 1].file : d->symbols[site].file;
		at = chain_of(m, at, d->inlines[first + i].function,
			!own || is_brought(trace_text_of(d, file)));
	}
	return at;
}

uint32_t model_chain_function(const struct model *m, uint32_t chain)
{
	while (m->sampled.chain[chain].parent)
		chain = m->sampled.chain[chain].parent;
	return m->sampled.chain[chain].function;
}

struct model_code model_site_code(const struct model *m, uint32_t site)
{
	const struct trace_defs *d = m->defs;
	const struct trace_symbol *y = site && site < d->nr_symbols ? &d->symbols[site] : NULL;
	uint32_t nr, first = inlined_rows(m, site, &nr), i = 0;
	/* (code that a runtime makes, and lines of interpreters, are in no file of the machine's) */
	if (!y || (d->sites[site].module && !is_own_module(m, site)))
		return (struct model_code){0};
	struct model_code at = {.file = y->file, .line = y->line};
	for (; i < nr && is_brought(trace_text_of(d, at.file)); i++)
		at = (struct model_code){
			.file = d->inlines[first + i].file, .line = d->inlines[first + i].line};
	at.function = i < nr ? d->inlines[first + i].function : y->function;
	return at;
}

const char *model_chain_inner(const struct model *m, uint32_t chain)
{
	while (chain && m->sampled.chain[chain].brought)
		chain = m->sampled.chain[chain].parent;
	bool inlined = chain && m->sampled.chain[chain].parent;
	return inlined ? trace_text_of(m->defs, m->sampled.chain[chain].function) : "";
}

unsigned model_chain_frames(
	const struct model *m, uint32_t chain, const char *ret[static MODEL_FRAMES_MAX])
{
	unsigned nr = 0;
	for (uint32_t i = chain; i && m->sampled.chain[i].parent; i = m->sampled.chain[i].parent)
		nr++;
	for (unsigned i = nr; i-- > 0; chain = m->sampled.chain[chain].parent)
		ret[i] = trace_text_of(m->defs, m->sampled.chain[chain].function);
	return nr;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The directory is narrowed to what it has in common with the file's. */
static void sites_narrow(struct source_tree *t, const char *file)
{
	if (!is_own_source(file))
		return;
	if (!t->directory) {
		t->directory = file;
		t->length = (size_t)(sites_base_name(file) - file);
	}
	while (t->length && strncmp(t->directory, file, t->length) != 0)
		for (t->length--; t->length && t->directory[t->length - 1] != '/';)
			t->length--;
}

/* Where the program's own sources are: what all of them that are known here have in common. */
static const struct source_tree *source_tree_of(struct model *m)
{
	const struct trace_defs *d = m->defs;
	struct source_tree *t = &m->naming.sources;
	if (t->nr_symbols == d->nr_symbols && t->nr_inlines == d->nr_inlines)
		return t;
	*t = (struct source_tree){.nr_symbols = d->nr_symbols, .nr_inlines = d->nr_inlines};
	for (uint32_t i = 1; i < d->nr_symbols; i++)
		if (is_own_module(m, i))
			sites_narrow(t, trace_text_of(d, d->symbols[i].file));
	for (uint32_t i = 1; i < d->nr_inlines; i++)
		if (is_own_module(m, d->inlines[i].site))
			sites_narrow(t, trace_text_of(d, d->inlines[i].file));
	if (t->length == 1 && *t->directory == '/')
		t->length = 0; /* nothing in common */
	return t;
}

/* From there on; of a file that is not there, or where nothing is in common, its last part. */
static const char *source_name(struct model *m, const char *file)
{
	const struct source_tree *t = source_tree_of(m);
	bool within = t->length && !strncmp(file, t->directory, t->length) && is_own_source(file);
	return within ? file + t->length : sites_base_name(file);
}

static void sites_add_frame(struct model *m, struct base_str *s, const struct model_frame *f)
{
	base_str_add(s, *f->function ? f->function : "");
	if (*f->file)
		base_str_addf(s, *f->function ? " (%s:%llu)" : "%s:%llu", source_name(m, f->file),
			(unsigned long long)f->line);
}

/* "produce (q.h:40), inlined in main": the code that somebody would open, and whose call paths show
 * it. What the system's headers inlined in the end (locks' and containers' insides) is left out. */
static bool sites_add_frames(struct model *m, struct base_str *s, uint32_t site)
{
	struct model_frame frame[MODEL_FRAMES_MAX];
	unsigned nr = model_site_frames(m, site, frame);
	if (!nr)
		return false;
	while (nr > 1 && is_brought(frame[nr - 1].file))
		nr--;
	sites_add_frame(m, s, &frame[nr - 1]);
	if (nr > 1)
		base_str_addf(s, ", inlined in %s", frame[0].function);
	return true;
}

static void sites_add_place(struct model *m, struct base_str *s, uint32_t site)
{
	const struct trace_defs *d = m->defs;
	if (sites_add_frames(m, s, site) || site >= d->nr_sites)
		return;
	const struct trace_site *at = &d->sites[site];
	if (at->module && at->module < d->nr_modules)
		base_str_addf(s, "%s+0x%llx",
			sites_base_name(trace_text_of(d, d->modules[at->module].path)),
			(unsigned long long)at->offset);
	else
		base_str_addf(s, "0x%llx", (unsigned long long)at->offset);
}

const char *model_place_text(struct model *m, uint32_t file, uint64_t line)
{
	struct base_str s = {0};
	base_str_addf(&s, "%s:%llu", source_name(m, trace_text_of(m->defs, file)),
		(unsigned long long)line);
	return model_keep_text(m, &s);
}

const char *model_site_text(struct model *m, uint32_t site)
{
	if (!site || site >= m->naming.nr_site_texts)
		return "";
	if (!m->naming.site_text[site]) {
		struct base_str s = {0};
		sites_add_place(m, &s, site);
		m->naming.site_text[site] = model_keep_text(m, &s);
	}
	return m->naming.site_text[site];
}

/* ---- call paths ------------------------------------------------------------------------------ */

/* A site's functions, innermost first, into frame[*at - 1] and those before it. */
static void sites_add_site(struct model *m, uint32_t site, struct model_frame *frame, size_t *at)
{
	struct model_frame f[MODEL_FRAMES_MAX];
	unsigned nr = model_site_frames(m, site, f);
	if (!nr || !*f[0].function) {
		frame[--*at] =
			(struct model_frame){.function = model_site_text(m, site), .file = ""};
		return;
	}
	while (nr-- > 0 && *at > 0)
		frame[--*at] = f[nr];
}

size_t model_stack_frames(struct model *m, uint32_t stack, struct model_frame *frame, size_t max)
{
	const struct trace_defs *d = m->defs;
	size_t at = max; /* innermost first in the file: fill from the back */
	for (size_t steps = 0; stack && stack < d->nr_stacks && at > 0 && steps < d->nr_stacks;
		steps++, stack = d->stacks[stack].parent)
		sites_add_site(m, d->stacks[stack].site, frame, &at);
	memmove(frame, frame + at, (max - at) * sizeof *frame);
	return max - at;
}

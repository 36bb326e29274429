/* SPDX-License-Identifier: Apache-2.0 */
/* functions.c - where the processor was in a state, by samples: functions, and what was inlined in
 * them. */
#include "report/private.h"
#include "symbol/symbol.h"

#include <stdlib.h>
#include <string.h>

enum { INLINED_SHOWN = 3 };
#define SHOWN_FROM 0.05 /* of the running time */

static const char *way_text(struct base_arena *a, const struct model *m, uint32_t chain)
{
	const char *frame[MODEL_FRAMES_MAX];
	unsigned nr = model_chain_frames(m, chain, frame);
	struct base_str s = {0};
	for (unsigned i = nr; i-- > 0;) {
		report_clean_add(&s, *frame[i] ? frame[i] : "?");
		base_str_add(&s, i ? " < " : "");
	}
	return report_keep(a, &s);
}

/* Only the first ways of each state: a long tail would never be shown. */
static bool functions_add_inlined(struct report_function *f, struct base_arena *a, struct model *m,
	const struct model_inlined_share *in, double weight)
{
	size_t i = 0;
	while (i < f->nr_inlined && f->inlined[i].chain != in->chain)
		i++;
	if (i == REPORT_INLINED_MAX)
		return true;
	if (i == f->nr_inlined) {
		const char *way = way_text(a, m, in->chain);
		const char *function = model_chain_inner(m, in->chain);
		const char *inner = report_clean(a, function);
		const char *where = report_clean(a, model_function_line(m, function));
		if (!way || !inner || !where)
			return false;
		f->inlined[f->nr_inlined++] = (struct report_inlined){
			.way = way, .inner = inner, .inner_where = where, .chain = in->chain};
	}
	f->inlined[i].nr_samples += in->nr_samples;
	f->inlined[i].share += in->share * weight;
	return true;
}

enum base_status report_function_add(struct report_function *f, struct base_arena *a,
	struct model *m, const struct model_function_share *share, double weight)
{
	if (!f->name) {
		f->name = report_clean(a, share->function);
		f->where = report_clean(
			a, *share->where ? share->where : model_function_line(m, share->function));
		f->caller = report_clean(a, model_function_caller(m, share->function));
		f->caller_where =
			f->caller ? report_clean(a, model_function_line(m, share->function)) : NULL;
	}
	bool kept = f->name && f->where && f->caller && f->caller_where;
	f->nr_samples += share->nr_samples;
	f->share += share->share * weight;
	f->share_low += share->share_low * weight;
	f->share_high += share->share_high * weight;
	for (size_t i = 0; kept && i < share->nr_inlined; i++)
		kept = functions_add_inlined(f, a, m, &share->inlined[i], weight);
	return kept ? BASE_OK : BASE_ERR_NOMEM;
}

static int by_share(const void *a, const void *b)
{
	const struct report_function *x = a, *y = b;
	if (x->share != y->share)
		return x->share < y->share ? 1 : -1;
	int c = strcmp(x->name, y->name);
	return c ? c : strcmp(x->where, y->where);
}

static int inlined_by_share(const void *a, const void *b)
{
	const struct report_inlined *x = a, *y = b;
	if (x->share != y->share)
		return x->share < y->share ? 1 : -1;
	return strcmp(x->way, y->way);
}

/* The optimiser inlines what a reader knows as a function: it is called what it would be called
 * without the optimiser. */
static void functions_say(struct report_function *f)
{
	f->said = f->name;
	f->said_where = f->where;
	for (size_t i = 0; i < f->nr_inlined; i++) {
		double share = 0;
		for (size_t k = 0; k < f->nr_inlined; k++)
			if (!strcmp(f->inlined[k].inner, f->inlined[i].inner))
				share += f->inlined[k].share;
		if (!*f->inlined[i].inner || share < REPORT_FUNCTION_ALL * f->share)
			continue;
		f->said = f->inlined[i].inner;
		f->said_where = f->inlined[i].inner_where;
		return;
	}
}

void report_functions_finish(struct report_function *f, size_t nr, double weight)
{
	for (size_t i = 0; i < nr; i++) {
		f[i].share /= weight;
		f[i].share_low /= weight;
		f[i].share_high /= weight;
		for (size_t k = 0; k < f[i].nr_inlined; k++)
			f[i].inlined[k].share /= weight;
		qsort(f[i].inlined, f[i].nr_inlined, sizeof *f[i].inlined, inlined_by_share);
		functions_say(&f[i]);
	}
	if (nr)
		qsort(f, nr, sizeof *f, by_share);
}

static const char *functions_own(const struct report_function *f)
{
	return *f->caller ? f->caller : f->said;
}

struct report_main report_functions_main(const struct report_function *f, size_t nr, double least)
{
	for (size_t i = 0; i < nr; i++) {
		double share = 0;
		for (size_t k = i; k < nr; k++)
			share += strcmp(functions_own(&f[k]), functions_own(&f[i])) == 0
					 ? f[k].share
					 : 0;
		if (*functions_own(&f[i]) && share >= least)
			return (struct report_main){.name = functions_own(&f[i]),
				.where = *f[i].caller ? f[i].caller_where : f[i].said_where,
				.sampled = f[i].name};
	}
	return (struct report_main){0};
}

/* ---- rendered -------------------------------------------------------------------------------- */

/* Whole where it fits, or all is asked for. */
static void functions_add_name(struct base_str *s, const struct report_style *st, const char *name)
{
	enum { LONG = 40 };
	if (st->full || report_width(name) <= LONG)
		base_str_add(s, name);
	else
		symbol_short_add(s, name, st->utf8);
}

static void functions_add_function(
	struct base_str *s, const struct report_style *st, const struct report_function *f)
{
	base_str_add(s, s->length ? ", " : "");
	functions_add_name(s, st, *f->name ? f->name : *f->where ? f->where : "?");
	base_str_addf(s, " %.0f %% %s%.0f", f->share * 100, st->utf8 ? "\xc2\xb1" : "+-",
		(f->share_high - f->share_low) * 50);
}

static void functions_end_line(
	struct base_str *out, const struct report_style *st, struct base_str *line, size_t indent)
{
	if (line->length) {
		base_str_addf(out, "%*s", (int)indent, "");
		report_color_begin(out, st, REPORT_DIM);
		report_cell(out, st, base_str_text(line),
			st->columns > indent + 20 ? st->columns - indent : 20, false);
		report_color_end(out, st);
		base_str_add(out, "\n");
	}
	base_str_reset(line);
}

void report_functions_text(struct base_str *out, const struct report_style *st,
	const struct report_function *f, size_t nr, size_t indent)
{
	struct base_str line = {0};
	for (size_t i = 0; i < nr && f[i].share >= SHOWN_FROM; i++)
		functions_add_function(&line, st, &f[i]);
	functions_end_line(out, st, &line, indent);
	for (size_t i = 0; i < nr && f[i].share >= SHOWN_FROM; i++)
		for (size_t k = 0; k < f[i].nr_inlined && k < INLINED_SHOWN &&
				   f[i].inlined[k].share >= SHOWN_FROM;
			k++) {
			base_str_addf(&line, "%.0f %% inlined %s", f[i].inlined[k].share * 100,
				f[i].inlined[k].way);
			functions_end_line(out, st, &line, indent + 2);
		}
	base_str_fini(&line);
}

#include "report/functions.def"

json_t *report_functions_json(const struct report_function *f, size_t nr)
{
	return base_table_json_list(&report_function_table, f, nr, NULL, 0);
}

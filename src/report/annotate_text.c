/* SPDX-License-Identifier: Apache-2.0 */
/* annotate_text.c - the two renderers of annotate.h. */
#include "report/annotate.h"
#include "report/private.h"

#include <string.h>

enum { AROUND = 2, WHOLE_LINES = 60, NUMBER_WIDTH = 7, JSON_AROUND = 4 };

static const struct report_annotated_line *annotate_sampled(
	const struct report_annotated_file *f, uint64_t line)
{
	for (size_t i = 0; i < f->nr_sampled; i++)
		if (f->sampled[i].line == line)
			return &f->sampled[i];
	return NULL;
}

/* Sampled, or near to a line that is; a short function is shown whole. */
static bool annotate_is_shown(const struct report_annotated_file *f, uint64_t line, uint64_t around)
{
	size_t first = f->nr_sampled > 1 && !f->sampled[0].line; /* 0: no line is known */
	uint64_t low = f->sampled[first].line, high = f->sampled[f->nr_sampled - 1].line;
	if (high - low < WHOLE_LINES && line >= low && line <= high)
		return true;
	for (size_t i = first; i < f->nr_sampled; i++)
		if (line + around >= f->sampled[i].line && line <= f->sampled[i].line + around)
			return true;
	return false;
}

static void annotate_share(struct base_str *out, uint64_t nr, uint64_t all)
{
	struct base_str s = {0};
	if (nr)
		report_percent(&s, (double)nr / (double)all);
	base_str_addf(out, "%*s", NUMBER_WIDTH, base_str_text(&s));
	base_str_fini(&s);
}

static void annotate_row(struct base_str *out, const struct report_annotation *a,
	const struct report_annotated_line *l, uint64_t line, const char *text,
	const struct report_style *st)
{
	bool hot = st->color && l && l->nr_all;
	base_str_add(out, hot ? "\x1b[1m" : "");
	annotate_share(out, l ? l->nr_all : 0, a->nr_samples);
	annotate_share(out, l ? l->nr_own : 0, a->nr_samples);
	base_str_addf(out, " %6llu  ", (unsigned long long)line);
	unsigned used = 2 * NUMBER_WIDTH + 9, room = st->columns > used ? st->columns - used : 0;
	size_t length = strlen(text), shown = length;
	while (shown > room || (shown < length && ((unsigned char)text[shown] & 0xc0) == 0x80))
		shown--;
	base_str_add_bytes(out, text, shown);
	base_str_add(out, hot ? "\x1b[0m\n" : "\n");
}

static void annotate_unread(struct base_str *out, const struct report_annotation *a,
	const struct report_annotated_file *f, const struct report_style *st)
{
	base_str_addf(out, "  (source not shown: %s)\n", f->why);
	for (size_t i = 0; i < f->nr_sampled; i++)
		annotate_row(out, a, &f->sampled[i], f->sampled[i].line,
			f->sampled[i].line ? "" : "(no line known)", st);
}

static void annotate_file(struct base_str *out, const struct report_annotation *a,
	const struct report_annotated_file *f, const struct report_style *st)
{
	uint64_t shown = 0;
	base_str_addf(out, "\n%s\n", *f->path ? f->path : "(no file known)");
	base_str_addf(out, "%*s%*s %6s  %s\n", NUMBER_WIDTH, "all", NUMBER_WIDTH, "own", "line",
		f->why ? "" : "source");
	if (f->newer)
		base_str_add(out,
			"  (the file was changed after the recording: lines may have moved)\n");
	if (!f->text) {
		annotate_unread(out, a, f, st);
		return;
	}
	if (!f->sampled[0].line)
		annotate_row(out, a, &f->sampled[0], 0, "(no line known)", st);
	for (uint64_t line = 1; line <= f->nr_text; line++) {
		if (!annotate_is_shown(f, line, AROUND))
			continue;
		if (shown && shown + 1 != line)
			base_str_addf(out, "%*s\n", 2 * NUMBER_WIDTH + 7, st->utf8 ? "⋮" : ":");
		annotate_row(out, a, annotate_sampled(f, line), line, f->text[line - 1], st);
		shown = line;
	}
	for (size_t i = 0; i < f->nr_sampled; i++)
		if (f->sampled[i].line > f->nr_text)
			annotate_row(out, a, &f->sampled[i], f->sampled[i].line,
				"(the file has no such line)", st);
}

void report_annotate_text(
	struct base_str *out, const struct report_annotation *a, const struct report_style *st)
{
	for (size_t i = 0; i < a->nr_functions; i++) {
		const struct report_annotated *f = &a->function[i];
		base_str_addf(out, "%s%s: ", i ? "\n" : "", f->function);
		report_percent(out, (double)f->nr_all / (double)a->nr_samples);
		base_str_addf(out, " of %llu {sample|samples} are in it or in what it calls, ",
			(unsigned long long)a->nr_samples);
		report_percent(out, (double)f->nr_own / (double)a->nr_samples);
		base_str_add(out, " in its own code (observed).\n");
		for (size_t k = 0; k < f->nr_files; k++)
			annotate_file(out, a, &f->file[k], st);
	}
	report_trace_text_caveats(out, &a->trace, st);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

struct annotate_row { /* a line, sampled or beside such */
	uint64_t line, nr_all, nr_own;
	const char *source;
};

static void annotate_add_line(json_t *list, const struct base_table *table,
	const struct report_annotated_line *l, uint64_t line, const char *source)
{
	struct annotate_row row = {line, l ? l->nr_all : 0, l ? l->nr_own : 0, source};
	json_array_append_new(list, base_table_json(table, &row, NULL, 0));
}

static json_t *annotate_lines_json(
	const struct report_annotated_file *f, const struct base_table *table)
{
	json_t *list = json_array();
	for (uint64_t line = 1; f->text && line <= f->nr_text; line++)
		if (annotate_is_shown(f, line, JSON_AROUND))
			annotate_add_line(
				list, table, annotate_sampled(f, line), line, f->text[line - 1]);
	for (size_t i = 0; i < f->nr_sampled; i++)
		if (!f->text || f->sampled[i].line > f->nr_text)
			annotate_add_line(list, table, &f->sampled[i], f->sampled[i].line, NULL);
	return list;
}

#include "report/annotate.def"

json_t *report_annotate_result(const struct report_annotation *a)
{
	return base_table_json(&report_annotate_document, a, NULL, 0);
}

json_t *report_annotate_json(const struct report_annotation *a)
{
	return report_envelope(report_annotate_document.name, &a->trace, report_annotate_result(a));
}

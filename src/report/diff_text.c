/* SPDX-License-Identifier: Apache-2.0 */
/* diff_text.c - struct report_diff for people, for programs, and as a picture. */
#include "report/diff.h"
#include "report/private.h"

#include "config.h"

#include <math.h>
#include <string.h>

enum { NAME_WIDTH = 64, VALUE_WIDTH = 12, CHANGE_WIDTH = 28 };

void report_diff_value(struct base_str *s, enum report_unit unit, double value)
{
	if (unit == REPORT_UNIT_ns)
		report_ns(s, value);
	else if (unit == REPORT_UNIT_share)
		report_percent(s, value);
	else if (value >= (unit == REPORT_UNIT_count ? 10 : 1000) && value < 1e15)
		base_str_add_count(s, (uint64_t)llround(value > 0 ? value : 0));
	else
		base_str_addf(s, "%.3g", value);
}

/* "-38 %", with the interval in brackets. */
void report_diff_change(struct base_str *s, const struct report_diff_point *p)
{
	if (!p->compared) {
		base_str_add(s, p->median.value > 0 ? "from nothing" : "none");
		return;
	}
	base_str_addf(s, "%+.1f %%", (p->ratio.value - 1) * 100);
	if (p->ratio.low < p->ratio.high)
		base_str_addf(
			s, " [%+.1f, %+.1f]", (p->ratio.low - 1) * 100, (p->ratio.high - 1) * 100);
}

/* Bytes of the words that all versions' names begin with: they tell none from another. */
static size_t shared_words(const struct report_diff *d)
{
	size_t same = 0, words = 0;
	for (; d->nr_versions > 1 && d->label[0][same]; same++) {
		for (size_t v = 1; v < d->nr_versions; v++)
			if (d->label[v][same] != d->label[0][same])
				return words;
		if (d->label[0][same] == ' ')
			words = same + 1;
	}
	return words;
}

/* ---- text ------------------------------------------------------------------------------------ */

struct move {
	const struct report_quantity *q;
	size_t version;
};

#define STATE_LEAST 0.01 /* of the run: a state that moved by less is no news */

static bool is_news(const struct report_diff *d, const struct report_quantity *q, size_t version)
{
	double moved_ns = fabs(q->version[version].median.value - q->version[0].median.value);
	if (strncmp(q->key, REPORT_DIFF_STATE_KEY, strlen(REPORT_DIFF_STATE_KEY)) != 0)
		return true;
	for (size_t i = 0; i < d->nr_quantities; i++)
		if (!strcmp(d->quantity[i].key, "elapsed"))
			return moved_ns >= STATE_LEAST * d->quantity[i].version[0].median.value;
	return true;
}

/* What moved most in the program as a whole, else of one lock or state; returns how many moved. */
static size_t moves_of(const struct report_diff *d, size_t version, struct move *ret_most)
{
	size_t nr = 0;
	double most = -1;
	for (size_t i = 0; i < d->nr_quantities; i++) {
		const struct report_quantity *q = &d->quantity[i];
		const struct report_diff_point *p = &q->version[version];
		if (!p->significant || !is_news(d, q, version))
			continue;
		nr++;
		double by = report_diff_moved(p, &q->version[0]);
		by = !strcmp(q->key, "elapsed") ? HUGE_VAL : by; /* what it is all about */
		if (by <= most || (q->detail && ret_most->q && !ret_most->q->detail))
			continue;
		most = by;
		*ret_most = (struct move){q, version};
	}
	return nr;
}

/* Of the last version, as the table's changes; where it is as the first, of the one before. */
static size_t count_moves(const struct report_diff *d, struct move *ret_most)
{
	size_t nr = 0;
	for (size_t v = d->nr_versions; !nr && v-- > 1;)
		nr = moves_of(d, v, ret_most);
	return nr;
}

void report_diff_finding(struct base_str *out, const struct report_diff *d)
{
	struct base_str s = {0};
	struct move m = {0};
	size_t nr = count_moves(d, &m), fewest = SIZE_MAX;
	for (size_t v = 0; v < d->nr_versions; v++)
		fewest = d->nr_runs[v] < fewest ? d->nr_runs[v] : fewest;
	if (nr && m.q) {
		const struct report_diff_point *p = &m.q->version[m.version];
		base_str_addf(&s, "From %s to %s, %s %s ", d->label[0], d->label[m.version],
			m.q->name,
			p->median.value < m.q->version[0].median.value ? "fell:" : "rose:");
		if (p->compared) {
			report_diff_change(&s, p);
			base_str_add(&s, ",");
		}
		base_str_add(&s, p->compared ? " from " : "from ");
		report_diff_value(&s, m.q->unit, m.q->version[0].median.value);
		base_str_add(&s, " to ");
		report_diff_value(&s, m.q->unit, p->median.value);
		base_str_addf(&s, " (95 %% interval of %zu and %zu {run|runs}, p = %.2g)",
			m.q->version[0].nr_runs, p->nr_runs, p->p);
		if (nr > 1)
			base_str_add_counted(&s,
				"; %s more {change is|changes are} more than chance would make",
				nr - 1);
		base_str_add(&s, ".");
	} else if (fewest < REPORT_DIFF_RUNS_SURE) {
		base_str_addf(&s,
			"Nothing can be said for sure: a version has %zu {run|runs}, and it takes "
			"%d of "
			"each to tell a change from chance.",
			fewest, REPORT_DIFF_RUNS_SURE);
	} else {
		base_str_add(&s, "Nothing moved by more than chance would move it.");
	}
	base_str_add(out, base_str_text(&s));
	out->failed |= s.failed;
	base_str_fini(&s);
}

/* Of each version, that one quantity of so many can stand alone: 2 / C(2n, n) <= level / nr. */
static size_t runs_needed(size_t nr)
{
	double p = 1; /* 2 / C(2, 1) */
	size_t n = 1;
	while (p * (double)nr > REPORT_DIFF_LEVEL && n < REPORT_DIFF_RUNS_MAX) {
		n++;
		p *= (double)n / (double)(4 * n - 2);
	}
	return n < REPORT_DIFF_RUNS_SURE ? REPORT_DIFF_RUNS_SURE : n;
}

void report_diff_known_by(struct base_str *out, const struct report_diff *d)
{
	size_t fewest = SIZE_MAX, needed = runs_needed(d->nr_tested);
	for (size_t v = 0; v < d->nr_versions; v++)
		fewest = d->nr_runs[v] < fewest ? d->nr_runs[v] : fewest;
	base_str_addf(out,
		"medians of runs, with the 95 %% bootstrap interval of each by itself. * marks "
		"what a rank test calls a change, with %d runs or more of both. The run's length "
		"is tested at 5 %%, the other %zu {change|changes} together at 5 %% (Benjamini and "
		"Hochberg). So one comparison in twenty of the same program with itself has such a "
		"mark",
		REPORT_DIFF_RUNS_SURE, d->nr_tested);
	if (d->nr_tested && fewest < needed)
		base_str_addf(out,
			". With %zu {run|runs} only many that moved at once can get one; a single "
			"lock "
			"or "
			"state needs %zu of each",
			fewest, needed);
}

static bool any_move(const struct report_quantity *q, size_t nr_versions)
{
	for (size_t v = 1; v < nr_versions; v++)
		if (q->version[v].significant)
			return true;
	return false;
}

static void diff_text_row(struct base_str *out, const struct report_diff *d,
	const struct report_quantity *q, size_t name_width, const struct report_style *st)
{
	report_cell(out, st, q->name, name_width, true);
	for (size_t v = 0; v < d->nr_versions; v++) {
		const struct report_diff_point *p = &q->version[v];
		struct base_str s = {0};
		if (p->nr_runs)
			report_diff_value(&s, q->unit, p->median.value);
		else
			base_str_add(&s, "-");
		report_right(out, base_str_text(&s), VALUE_WIDTH);
		base_str_fini(&s);
	}
	const struct report_diff_point *last = &q->version[d->nr_versions - 1];
	struct base_str s = {0};
	if (d->nr_versions > 1 && (last->compared || last->significant)) {
		report_diff_change(&s, last);
		if (last->significant)
			base_str_add(&s, " *");
	}
	base_str_add(out, "  ");
	report_color_begin(out, st, last->significant ? REPORT_BOLD : REPORT_DIM);
	base_str_add(out, base_str_text(&s));
	report_color_end(out, st);
	base_str_add(out, "\n");
	base_str_fini(&s);
}

void report_diff_text(struct base_str *out, const struct report_diff *d, bool all,
	const struct report_style *style)
{
	size_t fixed = VALUE_WIDTH * d->nr_versions + CHANGE_WIDTH;
	size_t width = style->columns > fixed + 20 ? style->columns - fixed : 20;
	width = width > NAME_WIDTH ? NAME_WIDTH : width;
	report_color_begin(out, style, REPORT_BOLD);
	report_diff_finding(out, d);
	report_color_end(out, style);
	base_str_add(out, "\n\n");
	report_color_begin(out, style, REPORT_DIM);
	size_t shared = shared_words(d);
	struct base_str head = {0};
	base_str_addf(&head, "median of %.*s", (int)shared, d->nr_versions ? d->label[0] : "");
	report_cell(out, style, base_str_text(&head), width, true);
	base_str_fini(&head);
	for (size_t v = 0; v < d->nr_versions; v++) {
		struct base_str s = {0};
		report_cell(&s, style, d->label[v] + shared, VALUE_WIDTH - 1, false);
		report_right(out, base_str_text(&s), VALUE_WIDTH);
		base_str_fini(&s);
	}
	base_str_add(out, d->nr_versions > 1 ? "  last against first [95 %]" : "");
	report_color_end(out, style);
	base_str_add(out, "\n");
	size_t hidden = 0;
	for (size_t i = 0; i < d->nr_quantities; i++) {
		const struct report_quantity *q = &d->quantity[i];
		if (q->detail && !all && !any_move(q, d->nr_versions)) {
			hidden++;
			continue;
		}
		diff_text_row(out, d, q, width, style);
	}
	if (hidden)
		base_str_addf(out,
			"... %zu more of single locks and states, which did not move (--all shows "
			"them)\n",
			hidden);
	base_str_add(out, "\n");
	struct base_str known = {0};
	report_diff_known_by(&known, d);
	report_wrap(out, style, "KNOWN BY", REPORT_LABEL_WIDTH, base_str_text(&known));
	base_str_fini(&known);
	if (d->counted)
		report_wrap(out, style, "", REPORT_LABEL_WIDTH,
			"holds of counting recordings are estimated from a sample; what the "
			"critical "
			"path has of a lock is not known there");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *unit_key(enum report_unit unit)
{
	static const char *const key[] = {"ns", "count", "share", "rate"};
	return key[unit];
}

static json_t *rounded(double value)
{
	return json_real(round(value * 1e6) / 1e6);
}

static json_t *diff_text_point_json(const struct report_diff_point *p)
{
	if (!p->nr_runs)
		return json_null();
	json_t *o = json_pack("{s:o, s:o, s:o, s:o}", "runs", base_json_u64(p->nr_runs), "median",
		rounded(p->median.value), "low", rounded(p->median.low), "high",
		rounded(p->median.high));
	if (p->tested)
		json_object_set_new(o, "p_value", rounded(p->p));
	if (p->compared || p->tested)
		json_object_set_new(o, "significant", json_boolean(p->significant));
	if (p->compared) {
		json_object_set_new(o, "ratio", rounded(p->ratio.value));
		json_object_set_new(o, "ratio_low", rounded(p->ratio.low));
		json_object_set_new(o, "ratio_high", rounded(p->ratio.high));
	}
	return o;
}

json_t *report_diff_json(const struct report_diff *d)
{
	json_t *versions = json_array(), *quantities = json_array();
	for (size_t v = 0; v < d->nr_versions; v++) {
		json_t *paths = json_array();
		for (size_t i = 0; i < d->nr_runs[v]; i++)
			json_array_append_new(paths, json_string(d->path[v][i]));
		json_array_append_new(
			versions, json_pack("{s:s, s:o}", "label", d->label[v], "runs", paths));
	}
	for (size_t i = 0; i < d->nr_quantities; i++) {
		const struct report_quantity *q = &d->quantity[i];
		json_t *points = json_array();
		for (size_t v = 0; v < d->nr_versions; v++)
			json_array_append_new(points, diff_text_point_json(&q->version[v]));
		json_array_append_new(
			quantities, json_pack("{s:s, s:s, s:s, s:b, s:o}", "key", q->key, "name",
					    q->name, "unit", unit_key(q->unit), "of_one_lock",
					    q->detail, "versions", points));
	}
	return json_pack("{s:s, s:s, s:{s:o, s:o}}", "schema", "longpole/diff/1", "tool",
		"longpole " LONGPOLE_VERSION, "result", "versions", versions, "quantities",
		quantities);
}

/* ---- SVG ------------------------------------------------------------------------------------- */

enum {
	PANEL_W = 300,
	PANEL_H = 206,
	PANELS_A_ROW = 3,
	MARGIN = 14,
	LEFT = 66,
	LINE = 16,
	TOP = 34 + LINE,
	BOTTOM = 34,
	HEADING_WIDTH = 37
};

static void add_xml(struct base_str *out, const char *text)
{
	static const struct {
		char c;
		const char *as;
	} special[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
	for (; *text; text++) {
		const char *as = NULL;
		for (size_t i = 0; i < BASE_COUNT(special); i++)
			if (*text == special[i].c)
				as = special[i].as;
		if (as)
			base_str_add(out, as);
		else
			base_str_add_bytes(out, text, 1);
	}
}

static void diff_text_add_label(struct base_str *out, double x, double y, const char *anchor,
	const char *class, const char *text)
{
	base_str_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y,
		anchor, class);
	add_xml(out, text);
	base_str_add(out, "</text>\n");
}

/* In two lines if it must: a lock's name is at the end. */
static void diff_text_add_heading(struct base_str *out, double x, double y, const char *text)
{
	const struct report_style st = {.utf8 = true};
	struct base_str first = {0}, second = {0};
	size_t at = 0;
	for (const char *p = strchr(text, ' '); p && report_width(text) > HEADING_WIDTH;
		p = strchr(p + 1, ' '))
		at = p - text <= HEADING_WIDTH ? (size_t)(p - text) : at;
	base_str_add_bytes(&first, text, at);
	report_cell(&second, &st, text + at + (at > 0), HEADING_WIDTH, false);
	if (at)
		diff_text_add_label(out, x, y, "start", "h", base_str_text(&first));
	diff_text_add_label(out, x, y + LINE, "start", "h", base_str_text(&second));
	out->failed |= first.failed || second.failed;
	base_str_fini(&first);
	base_str_fini(&second);
}

static void axis_value(
	struct base_str *out, double x, double y, enum report_unit unit, double value)
{
	struct base_str s = {0};
	if (unit == REPORT_UNIT_share)
		base_str_addf(&s, "%.3g %%", value * 100);
	else
		report_diff_value(&s, unit, value);
	diff_text_add_label(out, x, y, "end", "t", base_str_text(&s));
	base_str_fini(&s);
}

/* The next of 1, 2, 4, 6, 8, 10 times a power of ten, whose half is short, too. */
static double axis_end(double value)
{
	static const double step[] = {1, 2, 4, 6, 8, 10};
	double ten = pow(10, floor(log10(value)));
	size_t i = 0;
	while (i + 1 < BASE_COUNT(step) && step[i] * ten < value)
		i++;
	return step[i] * ten;
}

static void panel(struct base_str *out, const struct report_diff *d,
	const struct report_quantity *q, size_t n)
{
	double x0 = MARGIN + (double)(n % PANELS_A_ROW) * (PANEL_W + MARGIN);
	size_t diff_text_row = n / PANELS_A_ROW;
	double y0 = MARGIN + (double)diff_text_row * (PANEL_H + MARGIN);
	double w = PANEL_W - LEFT - 10, h = PANEL_H - TOP - BOTTOM, top = 0, bx = 0, by = 0;
	bool drawn = false;
	for (size_t v = 0; v < d->nr_versions; v++)
		top = fmax(top, q->version[v].nr_runs ? q->version[v].median.high : 0);
	top = top > 0 ? axis_end(top) : 1;
	double left = x0 + LEFT, bottom = y0 + TOP + h;
	diff_text_add_heading(out, x0 + 4, y0 + 16, q->name);
	for (int i = 0; i <= 2; i++) {
		double y = bottom - h * i / 2;
		base_str_addf(out,
			"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"g\"/>\n",
			left, y, left + w, y);
		axis_value(out, left - 6, y + 4, q->unit, top * i / 2);
	}
	for (size_t v = 0; v < d->nr_versions; v++) {
		const struct report_diff_point *p = &q->version[v];
		double x = left + w * ((double)v + 0.5) / (double)d->nr_versions;
		struct base_str label = {0};
		report_cell(&label, &(struct report_style){.utf8 = true},
			d->label[v] + shared_words(d), (size_t)(w / (double)d->nr_versions / 6),
			false);
		diff_text_add_label(out, x, bottom + 16, "middle", "t", base_str_text(&label));
		base_str_fini(&label);
		if (!p->nr_runs)
			continue;
		double y = bottom - h * p->median.value / top;
		if (drawn)
			base_str_addf(out,
				"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
				"class=\"l\"/>\n",
				bx, by, x, y);
		if (p->median.low < p->median.high)
			base_str_addf(out,
				"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
				"class=\"e\"/>\n",
				x, bottom - h * p->median.low / top, x,
				bottom - h * p->median.high / top);
		base_str_addf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"%s\"/>\n", x, y,
			p->significant ? "s" : "p");
		bx = x;
		by = y;
		drawn = true;
	}
}

void report_diff_svg(struct base_str *out, const struct report_diff *d)
{
	size_t nr = 0;
	for (size_t i = 0; i < d->nr_quantities; i++)
		nr += !d->quantity[i].detail || any_move(&d->quantity[i], d->nr_versions);
	size_t rows = (nr + PANELS_A_ROW - 1) / PANELS_A_ROW;
	size_t width = MARGIN + PANELS_A_ROW * (PANEL_W + MARGIN);
	size_t height = MARGIN + rows * (PANEL_H + MARGIN) + 20;
	base_str_addf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" "
		"viewBox=\"0 0 %zu "
		"%zu\">\n<style>text{font-family:sans-serif;fill:#222}.h{font-size:13px;"
		"font-weight:bold}.t{font-size:11px}.g{stroke:#ddd}.l{stroke:#5b7fa6;stroke-width:"
		"1.5}"
		".e{stroke:#222;stroke-width:1.5}.p{fill:#5b7fa6}.s{fill:#c4442f}</style>\n"
		"<rect width=\"%zu\" height=\"%zu\" fill=\"#fff\"/>\n",
		width, height, width, height, width, height);
	for (size_t i = 0, n = 0; i < d->nr_quantities; i++)
		if (!d->quantity[i].detail || any_move(&d->quantity[i], d->nr_versions))
			panel(out, d, &d->quantity[i], n++);
	struct base_str foot = {0};
	if (shared_words(d))
		base_str_addf(&foot, "%.*s: ", (int)shared_words(d) - 1, d->label[0]);
	base_str_add(&foot, "median of each version's runs, 95 % bootstrap interval; red: moved "
			    "against the first "
			    "version by more than chance");
	diff_text_add_label(out, MARGIN, (double)height - 10, "start", "t", base_str_text(&foot));
	out->failed |= foot.failed;
	base_str_fini(&foot);
	base_str_add(out, "</svg>\n");
}

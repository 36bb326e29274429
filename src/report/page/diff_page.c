/* SPDX-License-Identifier: Apache-2.0 */
/* diff_page.c - struct report_diff as Markdown for a pull request, as a page, and as JUnit for CI.
 */
#include "report/diff.h"
#include "report/page/html.h"
#include "report/private.h"

#include <string.h>

static bool is_shown(const struct report_diff *d, const struct report_quantity *q, bool all)
{
	bool moved = false;
	for (size_t v = 1; v < d->nr_versions; v++)
		moved |= q->version[v].significant;
	return all || !q->detail || moved;
}

static void diff_page_value(struct base_str *out, const struct report_quantity *q, size_t v)
{
	if (q->version[v].nr_runs)
		report_diff_value(out, q->unit, q->version[v].median.value);
	else
		base_str_add(out, "-");
}

static void change(struct base_str *out, const struct report_diff_point *p)
{
	if (p->compared || p->significant)
		report_diff_change(out, p);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

/* Names are others' texts: nothing in them is markup, ends a cell or a line. */
static void markdown_text(struct base_str *out, const char *text)
{
	struct base_str clean = {0};
	report_clean_add(&clean, text);
	for (const char *p = base_str_text(&clean); *p; p++) {
		if (*p == '<' || *p == '>' || *p == '&')
			base_str_addf(out, "&#%d;", *p);
		else if (strchr("\\`*_{}[]|#!~@", *p))
			base_str_addf(out, "\\%c", *p);
		else
			base_str_add_bytes(out, p, 1);
	}
	out->failed |= clean.failed;
	base_str_fini(&clean);
}

void report_diff_markdown(struct base_str *out, const struct report_diff *d, bool all)
{
	struct base_str text = {0};
	size_t hidden = 0;
	report_diff_finding(&text, d);
	base_str_add(out, "**");
	markdown_text(out, base_str_text(&text));
	base_str_add(out, "**\n\n| median of |");
	base_str_fini(&text);
	for (size_t v = 0; v < d->nr_versions; v++) {
		base_str_add(out, " ");
		markdown_text(out, d->label[v]);
		base_str_addf(out, " (%zu {run|runs}) |", d->nr_runs[v]);
	}
	base_str_add(out, " last against first [95 %] |\n|---|");
	for (size_t v = 0; v <= d->nr_versions; v++)
		base_str_add(out, "---:|");
	base_str_add(out, "\n");
	for (size_t i = 0; i < d->nr_quantities; i++) {
		const struct report_quantity *q = &d->quantity[i];
		const struct report_diff_point *last = &q->version[d->nr_versions - 1];
		if (!is_shown(d, q, all)) {
			hidden++;
			continue;
		}
		base_str_add(out, "| ");
		markdown_text(out, q->name);
		for (size_t v = 0; v < d->nr_versions; v++) {
			base_str_add(out, " | ");
			diff_page_value(out, q, v);
		}
		base_str_add(out, last->significant ? " | **" : " | ");
		change(out, last);
		base_str_add(out, last->significant ? "** \\* |\n" : " |\n");
	}
	if (hidden)
		base_str_addf(out, "\n%zu more of single locks and states did not move.\n", hidden);
	base_str_add(out, "\nKnown by ");
	report_diff_known_by(out, d);
	base_str_add(out, ".\n");
}

/* ---- the page -------------------------------------------------------------------------------- */

static const char page_begin[] =
	"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
	"'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	"<meta name=\"color-scheme\" content=\"light dark\">\n<title>longpole diff</title>\n"
	"<style>body{font:15px/1.45 system-ui,sans-serif;max-width:1200px;margin:0 auto;"
	"padding:0 20px 40px;color:#16191d;background:#fff}"
	".finding{font-size:18px;max-width:70em}table{border-collapse:collapse;width:100%}"
	"th,td{text-align:right;padding:4px 10px 4px 0;border-bottom:1px solid #e1e5e9;"
	"font-weight:400}tbody th,thead th:first-child{text-align:left;overflow-wrap:anywhere}"
	"thead th{color:#59616b}td{white-space:nowrap;font-variant-numeric:tabular-nums}"
	".moved td:last-child{font-weight:700}.over{color:#b3261e;font-weight:700}"
	".more{color:#59616b}svg{max-width:100%;height:auto}"
	"@media(prefers-color-scheme:dark){body{color:#e9edf1;background:#14181d}"
	"th,td{border-color:#2d343c}thead th,.more{color:#a3adb8}.over{color:#ff9d94}}"
	"</style>\n</head>\n<body>\n<main>\n<h1>What changed</h1>\n";

static void page_row(
	struct base_str *out, const struct report_diff *d, const struct report_quantity *q)
{
	const struct report_diff_point *last = &q->version[d->nr_versions - 1];
	base_str_addf(out, "<tr%s><th scope=\"row\">", last->significant ? " class=\"moved\"" : "");
	report_html_text(out, q->name);
	base_str_add(out, "</th>");
	for (size_t v = 0; v < d->nr_versions; v++) {
		base_str_add(out, "<td>");
		diff_page_value(out, q, v);
		base_str_add(out, "</td>");
	}
	base_str_add(out, "<td>");
	change(out, last);
	base_str_add(out, last->significant ? " *</td></tr>\n" : "</td></tr>\n");
}

static void page_rows(
	struct base_str *out, const struct report_diff *d, const char *caption, bool moved)
{
	size_t nr = 0;
	for (size_t i = 0; i < d->nr_quantities; i++) {
		const struct report_quantity *q = &d->quantity[i];
		if (is_shown(d, q, false) != moved)
			continue;
		if (!nr++) {
			base_str_addf(out,
				"<h2>%s</h2>\n<table>\n<thead><tr><th "
				"scope=\"col\">median of</th>",
				caption);
			for (size_t v = 0; v < d->nr_versions; v++) {
				base_str_add(out, "<th scope=\"col\">");
				report_html_text(out, d->label[v]);
				base_str_addf(out, " (%zu)</th>", d->nr_runs[v]);
			}
			base_str_add(out, "<th scope=\"col\">last against first [95&#8239;%]"
					  "</th></tr></thead>\n<tbody>\n");
		}
		page_row(out, d, q);
	}
	if (nr)
		base_str_add(out, "</tbody>\n</table>\n");
}

void report_diff_page(struct base_str *out, const struct report_diff *d,
	const struct report_diff_gate *gate, size_t nr_gates)
{
	struct base_str text = {0};
	report_diff_finding(&text, d);
	base_str_add(out, page_begin);
	base_str_add(out, "<p class=\"finding\">");
	report_html_text(out, base_str_text(&text));
	base_str_add(out, "</p>\n");
	base_str_fini(&text);
	for (size_t i = 0; i < nr_gates; i++) {
		bool over = gate[i].broken || gate[i].unknown;
		base_str_addf(out, "<p class=\"%s\">", over ? "over" : "more");
		base_str_add(out, gate[i].unknown  ? "not known, for a trace is not whole: "
				  : gate[i].broken ? "over the budget: "
						   : "within the budget: ");
		report_html_text(out, gate[i].budget);
		base_str_add(out, "</p>\n");
	}
	page_rows(out, d, "The program, and what moved", true);
	struct base_str known = {0};
	report_diff_known_by(&known, d);
	base_str_add(out, "<p class=\"more\">Known by ");
	report_html_text(out, base_str_text(&known));
	base_str_add(out, ".</p>\n<h2>Trends</h2>\n");
	base_str_fini(&known);
	report_diff_svg(out, d);
	page_rows(out, d, "Single locks and states that did not move", false);
	base_str_add(out, "</main>\n</body>\n</html>\n");
}

/* ---- JUnit ----------------------------------------------------------------------------------- */

/* A budget is a test; without one, the comparison itself is one that passes. */
void report_diff_junit(struct base_str *out, const struct report_diff *d,
	const struct report_diff_gate *gate, size_t nr_gates)
{
	struct base_str text = {0};
	size_t nr_broken = 0, nr_unknown = 0;
	for (size_t i = 0; i < nr_gates; i++) {
		nr_unknown += gate[i].unknown;
		nr_broken += gate[i].broken && !gate[i].unknown;
	}
	report_diff_finding(&text, d);
	base_str_addf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite "
		"name=\"longpole diff\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
		"skipped=\"0\" time=\"0\">\n",
		nr_gates ? nr_gates : 1, nr_broken, nr_unknown);
	if (!nr_gates)
		base_str_add(
			out, "<testcase classname=\"longpole\" name=\"compared\" time=\"0\"/>\n");
	for (size_t i = 0; i < nr_gates; i++) {
		base_str_add(out, "<testcase classname=\"longpole\" name=\"");
		report_html_text(out, gate[i].budget);
		if (gate[i].unknown) {
			base_str_add(out,
				"\" time=\"0\">\n<error type=\"trace\" message=\"a trace is "
				"damaged or not whole\"/>\n</testcase>\n");
			continue;
		}
		base_str_add(out, gate[i].broken ? "\" time=\"0\">\n<failure type=\"budget\" "
						   "message=\""
						 : "\" time=\"0\"/>\n");
		if (!gate[i].broken)
			continue;
		report_html_text(out, gate[i].found);
		base_str_add(out, "\">");
		report_html_text(out, base_str_text(&text));
		base_str_add(out, "</failure>\n</testcase>\n");
	}
	base_str_add(out, "</testsuite>\n</testsuites>\n");
	base_str_fini(&text);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* html_static.c - what the page says without JavaScript and on paper: the answer, tables. */
#include "report/page/html_private.h"

#include <ctype.h>
#include <string.h>

enum { ROWS = 12 };

static void html_static_text(
	struct base_str *out, const char *before, const char *what, const char *after)
{
	base_str_add(out, before);
	report_html_text(out, what);
	base_str_add(out, after);
}

void report_html_units(struct base_str *out, const char *html_static_text, size_t length)
{
	size_t from = 0;
	for (size_t i = 1; i + 2 < length; i++)
		if (isdigit((unsigned char)html_static_text[i - 1]) &&
			!memcmp(html_static_text + i, " us", 3) &&
			(i + 3 == length || !isalnum((unsigned char)html_static_text[i + 3]))) {
			base_str_add_bytes(out, html_static_text + from, i - from);
			base_str_add(out, " \xc2\xb5s");
			from = i + 3;
		}
	base_str_add_bytes(out, html_static_text + from, length - from);
}

static void html_static_cell_ns(struct base_str *out, double ns)
{
	struct base_str number = {0};
	report_ns(&number, ns);
	base_str_add(out, "<td class=n>");
	report_html_units(out, base_str_text(&number), number.length);
	base_str_add(out, "</td>");
	base_str_fini(&number);
}

static void cell_share(struct base_str *out, double share)
{
	base_str_add(out, "<td class=n>");
	report_percent(out, share);
	base_str_add(out, "</td>");
}

static void html_static_cell_count(struct base_str *out, uint64_t n)
{
	base_str_add(out, "<td class=n>");
	base_str_add_count(out, n);
	base_str_add(out, "</td>");
}

/* A column of numbers has a # before its name. */
static void html_static_head(struct base_str *out, const char *title, const char *const *column)
{
	base_str_addf(out, "<h2>%s</h2>\n<table><thead><tr>", title);
	for (; *column; column++)
		base_str_addf(out,
			**column == '#' ? "<th scope=col class=n>%s</th>" : "<th scope=col>%s</th>",
			*column + (**column == '#'));
	base_str_add(out, "</tr></thead><tbody>\n");
}

static void tail(struct base_str *out, size_t shown, size_t all)
{
	base_str_add(out, "</tbody></table>\n");
	if (all > shown)
		base_str_addf(out, "<p class=more>and %zu more</p>\n", all - shown);
}

static size_t html_static_at_most(size_t nr)
{
	return nr < ROWS ? nr : ROWS;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void html_static_opportunities(struct base_str *out, const struct report *r)
{
	static const char *const column[] = {"if it took less", "#share of the path",
		"#&minus;10&#8239;%", "#&minus;25&#8239;%", "#&minus;50&#8239;%", "#gone",
		"#helps until", "then", NULL};
	size_t nr = html_static_at_most(r->nr_opportunities);
	if (!nr)
		return;
	html_static_head(out, "What a fix would buy", column);
	for (size_t i = 0; i < nr; i++) {
		const struct report_opportunity *o = &r->opportunity[i];
		html_static_text(out, "<tr><th scope=row>", o->state, "</th>");
		cell_share(out, o->share);
		for (unsigned k = 0; k < REPORT_LEVELS; k++)
			base_str_addf(out, "<td class=n>%.2f&times;</td>", o->speedup[k]);
		if (o->useful_reduction >= 1)
			base_str_add(out, "<td class=n>all of it</td>");
		else if (o->useful_reduction < 0.01)
			base_str_add(out, "<td class=n>&lt;1&#8239;%</td>");
		else
			base_str_addf(out, "<td class=n>&minus;%.0f&#8239;%%</td>",
				o->useful_reduction * 100);
		html_static_text(out, "<td>", o->next, "</td></tr>\n");
	}
	tail(out, nr, r->nr_opportunities);
	base_str_add(out, "<p class=more>Predicted from the longest path with less of that state; "
			  "it does not reorder threads.</p>\n");
}

static void path_rows(struct base_str *out, const struct report *r)
{
	static const char *const column[] = {
		"#share", "#time", "#waiting", "state", "who", "where", NULL};
	size_t nr = html_static_at_most(r->nr_rows);
	html_static_head(out, "The critical path", column);
	for (size_t i = 0; i < nr; i++) {
		const struct report_row *row = &r->row[i];
		base_str_add(out, "<tr>");
		cell_share(out, row->share);
		html_static_cell_ns(out, row->path_ns);
		cell_share(out, row->waiting_share);
		html_static_text(out, "<td>", row->state, "</td>");
		html_static_text(out, "<td>", row->actor, "</td>");
		html_static_text(out, "<td>", row->where, "</td></tr>\n");
	}
	tail(out, nr, r->nr_rows);
}

static void html_static_caveats(struct base_str *out, const struct report_html *h)
{
	const json_t *list = json_object_get(json_object_get(h->document, "answer"), "caveats");
	if (!json_array_size(list))
		return;
	base_str_add(out, "<h2>What to be careful about</h2>\n<ul>\n");
	for (size_t i = 0; i < json_array_size(list); i++)
		html_static_text(
			out, "<li>", json_string_value(json_array_get(list, i)), "</li>\n");
	base_str_add(out, "</ul>\n");
}

static void facts(struct base_str *out, const struct report_html *h)
{
	const struct report_trace *t = &h->report->trace;
	html_static_text(out, "<p class=facts><code>", t->command, "</code>");
	if (*t->host)
		html_static_text(out, " on ", t->host, "");
	base_str_add(out, ", ");
	base_str_add_counted(out, "%s {record|records}, ", t->nr_records);
	if (t->nr_processors)
		base_str_add_counted(out, "%s {processor|processors}, ", t->nr_processors);
	base_str_add(out, "critical path ");
	report_ns(out, h->report->elapsed_ns);
	base_str_addf(
		out, ", of which %.1f&#8239;%% explained</p>\n", 100 * h->report->explained_share);
}

/* ---- locks and queues ------------------------------------------------------------------------ */

static void locks(struct base_str *out, const struct report_locks *l)
{
	static const char *const column[] = {
		"lock", "#taken", "#had to wait", "#waited", "#held", "#on the path", NULL};
	size_t nr = html_static_at_most(l->nr_locks);
	if (!nr)
		return;
	html_static_head(out, "Locks", column);
	for (size_t i = 0; i < nr; i++) {
		const struct report_lock *k = &l->lock[i];
		html_static_text(out, "<tr><th scope=row>", k->name, "</th>");
		html_static_cell_count(out, k->use.acquired);
		html_static_cell_count(out, k->use.contended);
		html_static_cell_ns(out, (double)k->use.wait.total_ns);
		html_static_cell_ns(out, (double)k->use.hold.total_ns);
		html_static_cell_ns(out, k->path_ns);
		base_str_add(out, "</tr>\n");
	}
	tail(out, nr, l->nr_locks);
}

static void queues(struct base_str *out, const struct report_queues *q)
{
	static const char *const column[] = {"queue", "#units in", "#waits for units",
		"#waited for units", "#waited for room", "#most in it", NULL};
	size_t nr = html_static_at_most(q->nr_queues);
	if (!nr)
		return;
	html_static_head(out, "Queues", column);
	for (size_t i = 0; i < nr; i++) {
		const struct report_queue *x = &q->queue[i];
		html_static_text(out, "<tr><th scope=row>", x->name, "</th>");
		html_static_cell_count(out, x->s.enqueued);
		html_static_cell_count(out, x->s.nr_waits_data);
		html_static_cell_ns(out, (double)x->s.wait_data_ns);
		html_static_cell_ns(out, (double)x->s.wait_space_ns);
		html_static_cell_count(out, x->s.max_units);
		base_str_add(out, "</tr>\n");
	}
	tail(out, nr, q->nr_queues);
}

void report_html_static(struct base_str *out, const struct report_html *h)
{
	html_static_text(out, "<h1>", h->name, "</h1>\n");
	if (!h->report) {
		base_str_add(out, "<p class=finding>There is no answer for this trace.</p>\n");
		html_static_text(out, "<p>", h->reason, "</p>\n");
		return;
	}
	html_static_text(out, "<p class=finding>", h->report->pole, "");
	html_static_text(out, " <span class=sure>(", h->report->certainty, ")</span></p>\n");
	facts(out, h);
	html_static_opportunities(out, h->report);
	if (h->has_timeline)
		report_html_static_timeline(out, &h->timeline);
	path_rows(out, h->report);
	if (h->locks)
		locks(out, h->locks);
	if (h->queues)
		queues(out, h->queues);
	html_static_caveats(out, h);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - struct report for people: the finding, what a fix would buy, the path, caveats, what to
 * do next. */
#include "report/private.h"

#include <string.h>

enum {
	ROWS_DEFAULT = 5,
	FULL_SHARE_PER_MILLE = 10,
	SUMMARY_SHARE_PER_MILLE = 20,
	BAR_WIDTH = 8,
};

/* A multiplication sign only where it can be shown. */
static void text_add_actor(struct base_str *out, const struct report_style *st, const char *actor)
{
	const char *sign = st->utf8 ? NULL : strstr(actor, "\xc3\x97");
	base_str_add_bytes(out, actor, sign ? (size_t)(sign - actor) : strlen(actor));
	if (sign)
		base_str_addf(out, "x%s", sign + 2);
}

/* ---- opportunities --------------------------------------------------------------------------- */

static void add_useful(
	struct base_str *out, const struct report_style *st, const struct report_opportunity *o)
{
	if (o->useful_exact && o->useful_reduction >= 1) {
		base_str_add(out, "all of it");
		return;
	}
	if (!o->useful_exact)
		base_str_add(out, st->utf8 ? "\xe2\x89\xa5" : ">=");
	if (o->useful_reduction < 0.01)
		base_str_add(out, "<1 %");
	else
		base_str_addf(out, "-%.0f %%", o->useful_reduction * 100);
}

static void opportunity_line(struct base_str *out, const struct report_style *st,
	const struct report_opportunity *o, size_t name_width, size_t then_width)
{
	base_str_add(out, "  ");
	report_cell(out, st, o->state, name_width - 2, true);
	for (unsigned k = 0; k < REPORT_LEVELS; k++) {
		struct base_str cell = {0};
		report_speedup(&cell, st, o->speedup[k]);
		report_right(out, base_str_text(&cell), 8);
		base_str_fini(&cell);
	}
	struct base_str useful = {0};
	add_useful(&useful, st, o);
	report_right(out, base_str_text(&useful), 11);
	base_str_fini(&useful);
	base_str_add(out, "  ");
	report_cell(out, st, *o->next ? o->next : "nothing else", then_width, false);
	base_str_add(out, "\n");
}

/* As wide as the names, but the last column keeps some place. */
static void opportunity_columns(const struct report *r, const struct report_style *st, size_t max,
	size_t *ret_name, size_t *ret_then)
{
	enum { NUMBERS = REPORT_LEVELS * 8 + 11 + 2, NAME_MIN = 16, THEN_MIN = 20 };
	size_t rest = st->columns > NUMBERS + NAME_MIN + THEN_MIN ? st->columns - NUMBERS
								  : NAME_MIN + THEN_MIN;
	size_t name = NAME_MIN, then = THEN_MIN;
	for (size_t i = 0; i < r->nr_opportunities && i < max; i++) {
		size_t a = report_width(r->opportunity[i].state) + 2;
		size_t b = report_width(r->opportunity[i].next);
		name = a > name ? a : name;
		then = b > then ? b : then;
	}
	if (name + then > rest) {
		size_t half = rest * 11 / 20;
		name = name < half ? name : then < rest - half ? rest - then : half;
		then = rest - name;
	}
	*ret_name = name;
	*ret_then = then;
}

static void text_opportunities(
	struct base_str *out, const struct report *r, const struct report_style *st, size_t max)
{
	size_t name_width, then_width;
	opportunity_columns(r, st, max, &name_width, &then_width);
	report_color_begin(out, st, REPORT_BOLD);
	report_cell(out, st, "IF IT TOOK LESS", name_width, true);
	for (unsigned k = 0; k < REPORT_LEVELS; k++) {
		struct base_str cell = {0};
		base_str_addf(&cell, "-%u %%", report_level_percent[k]);
		report_right(out, base_str_text(&cell), 8);
		base_str_fini(&cell);
	}
	report_right(out, "helps until", 13 - 2 + 1);
	base_str_add(out, " then");
	report_color_end(out, st);
	base_str_add(out, "\n");
	for (size_t i = 0; i < r->nr_opportunities && i < max; i++)
		opportunity_line(out, st, &r->opportunity[i], name_width, then_width);
}

void report_opportunities_text(
	struct base_str *out, const struct report *r, const struct report_style *style)
{
	text_opportunities(out, r, style, REPORT_OPPORTUNITIES_MAX);
	base_str_add(out,
		"\nPredicted by the longest path with edited weights (method: path), for all "
		"states of 1 % of it and more.\n'helps until': from there on each percent buys "
		"less than half of what the first did.\n");
	if (r->opportunities_cut)
		base_str_addf(
			out, "Only the %d longest states are shown.\n", REPORT_OPPORTUNITIES_MAX);
}

/* ---- the path -------------------------------------------------------------------------------- */

enum { SHARE_WIDTH = 7, WAITING_WIDTH = 9, TEXT_AT = SHARE_WIDTH + WAITING_WIDTH + BAR_WIDTH + 3 };

struct columns {
	size_t state, actor, where;
};

static void row_line(struct base_str *out, const struct report_style *st,
	const struct report_row *row, const struct columns *c)
{
	struct base_str cell = {0};
	report_percent(&cell, row->share);
	report_right(out, base_str_text(&cell), SHARE_WIDTH);
	base_str_reset(&cell);
	report_percent(&cell, row->waiting_share);
	report_right(out, base_str_text(&cell), WAITING_WIDTH);
	base_str_add(out, "  ");
	report_bar(out, st, row->share, BAR_WIDTH);
	base_str_add(out, " ");
	report_cell(out, st, row->state, c->state, true);
	base_str_add(out, "  ");
	base_str_reset(&cell);
	text_add_actor(&cell, st, row->actor);
	report_cell(out, st, base_str_text(&cell), c->actor, *row->where);
	if (*row->where) {
		base_str_add(out, "  ");
		report_cell(out, st, row->where, c->where, false);
	}
	base_str_add(out, "\n");
	base_str_fini(&cell);
	report_functions_text(out, st, row->function, row->nr_functions, TEXT_AT + 2);
}

static size_t text_at_most(size_t n, size_t max)
{
	return n < max ? n : max;
}

/* Columns as wide as their texts, but together no wider than the terminal. */
static struct columns fit_columns(
	const struct report *r, const struct report_style *st, size_t nr_rows)
{
	struct columns c = {.state = 8, .actor = 6, .where = 8};
	for (size_t i = 0; i < nr_rows; i++) {
		size_t w[] = {report_width(r->row[i].state), report_width(r->row[i].actor),
			report_width(r->row[i].where)};
		c.state = w[0] > c.state ? w[0] : c.state;
		c.actor = w[1] > c.actor ? w[1] : c.actor;
		c.where = w[2] > c.where ? w[2] : c.where;
	}
	size_t used = TEXT_AT + 4, rest = st->columns > used + 36 ? st->columns - used : 36;
	if (c.state + c.actor + c.where > rest) {
		c.actor = text_at_most(c.actor, rest / 4);
		c.state = text_at_most(c.state, (rest - c.actor) * 3 / 5);
		c.where = text_at_most(c.where, rest - c.actor - c.state);
		c.state = rest - c.actor - c.where;
	}
	return c;
}

static size_t rows_to_show(const struct report *r, const struct report_style *st)
{
	unsigned least = st->full ? FULL_SHARE_PER_MILLE : SUMMARY_SHARE_PER_MILLE;
	size_t n = 0;
	while (n < r->nr_rows && r->row[n].share * 1000 >= least && (st->full || n < ROWS_DEFAULT))
		n++;
	return n ? n : r->nr_rows ? 1 : 0;
}

static void path_table(struct base_str *out, const struct report *r, const struct report_style *st)
{
	size_t n = rows_to_show(r, st);
	struct columns c = fit_columns(r, st, n);
	struct base_str title = {0};
	base_str_add(&title, "THE PATH");
	if (r->trace.process)
		base_str_addf(&title, " of %s, process %llu", r->trace.process,
			(unsigned long long)r->trace.pid);
	base_str_add(&title, ", ");
	report_ns(&title, r->elapsed_ns);
	report_heading(out, st, base_str_text(&title));
	base_str_fini(&title);
	base_str_add(out, "\n");
	report_color_begin(out, st, REPORT_DIM);
	report_right(out, "share", SHARE_WIDTH);
	report_right(out, "waiting", WAITING_WIDTH);
	base_str_addf(out, "  %*s ", BAR_WIDTH, "");
	report_cell(out, st, "state", c.state, true);
	base_str_add(out, "  ");
	report_cell(out, st, "who", c.actor, true);
	base_str_add(out, "  where");
	report_color_end(out, st);
	base_str_add(out, "\n");
	for (size_t i = 0; i < n; i++)
		row_line(out, st, &r->row[i], &c);
	double rest = 0;
	for (size_t i = n; i < r->nr_rows; i++)
		rest += r->row[i].share;
	if (n < r->nr_rows && rest > 0.0005) {
		struct base_str cell = {0};
		report_percent(&cell, rest);
		report_right(out, base_str_text(&cell), SHARE_WIDTH);
		base_str_addf(out, "%*s  %zu more {state|states}%s\n",
			WAITING_WIDTH + BAR_WIDTH + 1, "", r->nr_rows - n,
			st->full ? " below 1 %" : " (see --full)");
		base_str_fini(&cell);
	}
}

static void text_runner_up(
	struct base_str *out, const struct report *r, const struct report_style *st)
{
	if (!r->runner_up.found)
		return;
	struct base_str s = {0};
	double shorter_ns = r->elapsed_ns - r->runner_up.length_ns;
	base_str_add(&s, "the second longest path is ");
	if (shorter_ns < 1) {
		base_str_add(&s, "as long");
	} else {
		report_ns(&s, shorter_ns);
		base_str_add(&s, " shorter (");
		report_percent(&s, shorter_ns / r->elapsed_ns);
		base_str_add(&s, ")");
	}
	if (*r->runner_up.state) {
		base_str_add(&s, "; it spends ");
		report_ns(&s, r->runner_up.more_ns);
		base_str_addf(&s, " more in %s", r->runner_up.state);
	}
	report_wrap(out, st, "RUNNER-UP", REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
}

/* ---- caveats and what to do next ------------------------------------------------------------- */

/* An old trace does not say what its recording cost; how many records there are hints at it. */
static bool dense_caveat(struct base_str *out, const struct report *r,
	const struct report_style *st, const char *label)
{
	enum { DENSE_HZ = 1000 * 1000 }; /* a processor: some percent of its time went into them */
	if (r->trace.nr_costs)
		return false;
	uint64_t processors = r->trace.nr_processors ? r->trace.nr_processors : 1;
	double span_ns = (double)r->trace.last_ns;
	double rate_hz = span_ns > 0 ? (double)r->trace.nr_records * 1e9 / span_ns : 0;
	if (rate_hz / (double)processors < DENSE_HZ)
		return false;
	struct base_str s = {0};
	base_str_add_counted(&s, "%s {record|records}", (uint64_t)rate_hz);
	base_str_add(&s, " a second were made, each of which takes some tens of nanoseconds: the "
			 "shortest states look longer than they are without recording");
	report_wrap(out, st, label, REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
	return true;
}

void report_unnamed_words(struct base_str *s, const struct report *r)
{
	report_percent(s, r->unnamed.share);
	base_str_addf(s,
		" of the path is code without names, most of it in %s: install its -dbgsym "
		"package, "
		"or set DEBUGINFOD_URLS, and record again",
		r->unnamed.file);
}

void report_text_caveats(
	struct base_str *out, const struct report *r, const struct report_style *st)
{
	const char *label = "CAVEATS";
	report_trace_caveats(out, &r->trace, st, &label);
	if (r->nr_annotation_findings) {
		struct base_str s = {0};
		base_str_add_counted(&s, "%s annotation {finding|findings}; see longpole coach",
			r->nr_annotation_findings);
		report_wrap(out, st, label, REPORT_LABEL_WIDTH, base_str_text(&s));
		label = "";
		base_str_fini(&s);
	}
	if (report_spins_text(out, &r->spins, st, label,
		    "Run longpole spin, which says who changes what they read"))
		label = "";
	if (r->box.fixed_ns > 0) {
		struct base_str s = {0};
		report_box_words(&s, &r->box);
		report_wrap(out, st, label, REPORT_LABEL_WIDTH, base_str_text(&s));
		label = "";
		base_str_fini(&s);
	}
	if (r->unnamed.share >= REPORT_UNNAMED_FROM) {
		struct base_str s = {0};
		report_unnamed_words(&s, r);
		report_wrap(out, st, label, REPORT_LABEL_WIDTH, base_str_text(&s));
		label = "";
		base_str_fini(&s);
	}
	if (r->polled_share >= REPORT_POLLS_FROM) {
		struct base_str s = {0};
		report_polled_words(&s, r->polled_share);
		report_wrap(out, st, label, REPORT_LABEL_WIDTH, base_str_text(&s));
		label = "";
		base_str_fini(&s);
	}
	if (r->explained_share < 0.9995) {
		struct base_str s = {0};
		report_ns(&s, r->unexplained_ns);
		base_str_add(&s, " of the path (");
		report_percent(&s, 1 - r->explained_share);
		base_str_add(&s, ") are waits that no recorded event ended");
		if (r->explained_share < 0.95)
			base_str_add(&s, ": longpole coach says where");
		report_wrap(out, st, label, REPORT_LABEL_WIDTH, base_str_text(&s));
		label = "";
		base_str_fini(&s);
	}
	if (report_quota_caveat(out, &r->trace, st, label))
		label = "";
	if (!r->trace.nr_actors || !r->trace.nr_processors)
		return; /* simulated or imported: nothing was disturbed, nothing hidden */
	if (report_cost_caveat(out, &r->trace, st, label) || dense_caveat(out, r, st, label))
		label = "";
	if (r->trace.process) {
		report_blocked_caveat(out, &r->trace, st, label);
		return;
	}
	if (r->trace.of_goroutines)
		return; /* their scheduler tells every wait */
	report_wrap(out, st, label, REPORT_LABEL_WIDTH,
		"not seen: waits that bypass libc (Go, spinning); they count as "
		"running or blocked");
}

/* Much of the path was blocked where a library cannot look: the kernel can. */
static bool wants_the_kernel(const struct report *r)
{
	double blocked_ns = 0;
	for (size_t i = 0; i < r->nr_rows; i++)
		if (r->row[i].kind == MODEL_STATE_blocked)
			blocked_ns += r->row[i].path_ns;
	return !r->trace.process && *r->trace.command && blocked_ns > r->elapsed_ns / 10;
}

static void report_text_next(
	struct base_str *out, const struct report *r, const struct report_style *st)
{
	const struct report_trace *t = &r->trace;
	const struct report_parts *p = &r->parts;
	bool kernel = wants_the_kernel(r);
	bool predicted = p->nr && p->part[0].predicted && p->own.own_ns > p->own.elapsed_ns / 10;
	const char *label = "NEXT";
	if (kernel) {
		report_heading(out, st, label);
		base_str_addf(out,
			"%*slongpole record --system -- %s   (as root: the kernel shows who woke "
			"whom)\n",
			(int)(REPORT_LABEL_WIDTH - strlen(label)), "", t->command);
		label = "";
	}
	if (predicted) {
		report_next_line(out, st, label, "whatif", t, "'#1=-50%'");
		label = "";
	}
	report_next_line(out, st, label, p->nr && p->part[0].is_lock ? "locks" : "path", t, NULL);
	report_next_line(out, st, "", "view", t, NULL);
}

void report_text(struct base_str *out, const struct report *r, const struct report_style *style)
{
	report_screen(out, r, style);
	if (style->full) {
		text_opportunities(out, r, style, REPORT_OPPORTUNITIES_MAX);
		base_str_add(out, "\n");
		path_table(out, r, style);
		text_runner_up(out, r, style);
		report_text_caveats(out, r, style);
	}
	report_text_next(out, r, style);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen.c - the first screen of a report: what to change, where, what it would buy, how sure that
 * is. Whole at 60 columns; what is wider has more columns, by rank.
 */
#include "report/private.h"

#include <math.h>
#include <string.h>

enum {
	NAME_MIN = 14,
	PLACE_MIN = 8,
	THEN_MIN = 10,
	BAR_MAX = 15,
	BAR_MIN = 6,
	SHARE_WIDTH = 6,
	GAIN_WIDTH = 8,
	INDENT = 9,
	CAVEATS_SHOWN = 3,
	SPEEDUP_SHOWN_MAX = 999,
	NAME_LONG = 60,
	DETAIL_LONG = 40,
};
#define PART_SHARE_MIN 0.01 /* of the path without what is apart: parts with less are "others" */
#define OWN_SHARE_MIN  0.1  /* of the path: with less, what is apart is the finding */
#define NOTHING        1.01 /* a speedup below is none */
#define GAINS_MORE     0.03 /* so much more than the first part: it is worth a line */
#define BUSY_SHARE_MIN 0.05 /* of the path: what is apart is worth a line */

/* ---- what a part is -------------------------------------------------------------------------- */

/* "f (a.c:4), inlined in run" -> "a.c:4"; "" for an address, which says less than the name. What has
 * no line is not said anew where the state's name ends with it. */
static const char *screen_place(struct base_arena *a, const char *where, bool name_ends_with_it)
{
	for (const char *open = strstr(where, " ("); open; open = strstr(open + 1, " (")) {
		const char *file = open + 2, *close = strchr(file, ')');
		const char *colon = close ? memchr(file, ':', (size_t)(close - file)) : NULL;
		if (colon && strspn(colon + 1, "0123456789") == (size_t)(close - colon - 1))
			return base_arena_strndup(a, file, (size_t)(close - file));
	}
	return strstr(where, "+0x") || name_ends_with_it ? "" : where;
}

static const struct report_row *screen_row(const struct report *r, uint32_t topic)
{
	for (size_t i = 0; i < r->nr_rows; i++)
		if (r->row[i].topic == topic)
			return &r->row[i];
	return NULL;
}

/* Its function is in a loop that only waits, by its code. */
static bool screen_spins(const struct report *r, const struct report_row *row)
{
	for (size_t i = 0; row->main.name && i < r->spins.nr; i++)
		if (!strcmp(r->spins.spin[i].function, row->main.sampled))
			return true;
	return false;
}

static enum base_status screen_add_detail(
	struct report_part *p, struct base_arena *a, const char *text, double ns)
{
	if (p->nr_details == REPORT_PART_DETAILS || ns < PART_SHARE_MIN * p->path_ns)
		return BASE_OK;
	p->detail[p->nr_details] = (struct report_part_detail){
		.text = base_arena_strndup(a, text, strlen(text)), .path_ns = ns};
	return p->detail[p->nr_details++].text ? BASE_OK : BASE_ERR_NOMEM;
}

/* The line of the function that it is called after; else where it began. "": the name says it. */
static const char *screen_topic_place(
	struct base_arena *a, const struct report_row *row, bool is_called_after_function)
{
	const bool is_of_functions =
		row->cause == MODEL_CAUSE_run_function || row->cause == MODEL_CAUSE_run_functions;
	if (is_called_after_function)
		return row->main.where;
	if (row->nr_functions && is_of_functions)
		return row->function[0].said_where;
	if (row->cause == MODEL_CAUSE_run_spread)
		return "";
	return screen_place(a, row->where, row->kind == MODEL_STATE_run);
}

/* Of a topic: the functions that its longest row was in. */
static enum base_status screen_describe_topic(
	struct report *r, struct report_part *p, struct model *m, const struct report_index *ix)
{
	const struct report_row *row = screen_row(r, p->topic);
	struct base_str text = {0};
	report_topic_text(&text, r, m, ix, p->topic);
	if (row && screen_spins(r, row))
		base_str_add(&text, "; it may only be spinning (longpole spin)");
	p->text = report_keep(r->arena, &text);
	if (!row)
		return p->text ? BASE_OK : BASE_ERR_NOMEM;
	const bool holds = row->kind == MODEL_STATE_hold;
	const bool in_vain = holds && !report_topic_is_waited_for(m, ix, row);
	const char *function = holds && !in_vain ? NULL : row->main.name; /* the lock says more */
	p->place = screen_topic_place(r->arena, row, function != NULL);
	if (in_vain) {
		base_str_addf(&text, "running under %s", row->what);
		p->name = report_keep(r->arena, &text);
	}
	if (function) {
		base_str_addf(&text, "%s%s", function, strpbrk(function, "+(") ? "" : "()");
		p->name = report_keep(r->arena, &text);
	}
	enum base_status s = p->text && p->place && p->name ? BASE_OK : BASE_ERR_NOMEM;
	for (size_t i = 0; s == BASE_OK && row->nr_functions > 1 && i < row->nr_functions; i++)
		if (*row->function[i].name)
			s = screen_add_detail(p, r->arena, row->function[i].said,
				row->function[i].share * p->path_ns);
	return s;
}

/* What the path's actor does while it holds the lock. */
static const struct {
	const char *detail; /* NULL: the state's name */
	const char *text;   /* after "mutex m: "; NULL: "... (NAME) while they hold it" */
} screen_under[MODEL_STATE_NR] = {
	[MODEL_STATE_run] = {"computing while it is held", "its holders compute"},
	[MODEL_STATE_hold] = {"computing while it is held", "its holders compute"},
	[MODEL_STATE_latency] = {"hand-off", "it goes slowly from one thread to the next"},
	[MODEL_STATE_wait] = {"waiting for it", "its holders wait"},
	[MODEL_STATE_runnable] = {"held without a processor", "its holders wait for a processor"},
	[MODEL_STATE_sleep] = {"sleeping while it is held", "its holders sleep"},
	[MODEL_STATE_blocked] = {"blocked while it is held",
		"its holders are blocked, it is not seen in what"},
	[MODEL_STATE_io] = {NULL, "its holders are in the kernel"},
};

struct under { /* of a lock's time: in states of one kind */
	double ns[MODEL_STATE_NR], most_ns[MODEL_STATE_NR];
	uint32_t most[MODEL_STATE_NR]; /* the state with most of it */
};

static void screen_sum_under(struct under *u, const struct report_part *p, struct model *m)
{
	for (size_t i = 0; i < p->nr_states; i++) {
		const struct report_state_share *x = &p->state[i];
		unsigned kind = model_state(m, x->state)->kind;
		if (x->apart)
			continue;
		u->ns[kind] += x->path_ns;
		if (x->path_ns > u->most_ns[kind]) {
			u->most_ns[kind] = x->path_ns;
			u->most[kind] = x->state;
		}
	}
}

static const char *screen_under_name(struct model *m, const struct under *u, unsigned kind)
{
	const char *text = screen_under[kind].detail;
	return text ? text : model_state(m, u->most[kind])->name;
}

static const char *screen_under_text(struct model *m, const struct under *u, unsigned kind)
{
	if (u->most_ns[kind] > 0 && model_state(m, u->most[kind])->cause == MODEL_CAUSE_mpi_call)
		return "its holders are in MPI";
	return screen_under[kind].text ? screen_under[kind].text : "what its holders do";
}

/* What holders compute in, by samples, most first. */
enum { SCREEN_COMPUTE_MAX = 256 }; /* (they come in no order: the last place is given anew) */
struct screen_compute {
	const char *function[SCREEN_COMPUTE_MAX];
	double ns[SCREEN_COMPUTE_MAX];
	size_t nr;
	double all_ns; /* with what no sample says a function of */
};

static void screen_add_compute(struct screen_compute *c, const char *function, double ns)
{
	size_t i = 0;
	while (i < c->nr && strcmp(c->function[i], function) != 0)
		i++;
	if (i == SCREEN_COMPUTE_MAX)
		c->ns[--i] = 0;
	c->nr += i == c->nr;
	c->function[i] = function;
	c->ns[i] += ns;
	for (; i > 0 && c->ns[i] > c->ns[i - 1]; i--) { /* most first */
		const char *name = c->function[i];
		double more_ns = c->ns[i];
		c->function[i] = c->function[i - 1];
		c->ns[i] = c->ns[i - 1];
		c->function[i - 1] = name;
		c->ns[i - 1] = more_ns;
	}
}

/* Each state has its functions in the shares that all rows of its topic have them in. */
static void screen_find_compute(struct screen_compute *c, const struct report *r,
	const struct report_part *p, struct model *m, const struct report_index *ix)
{
	for (size_t i = 0; i < p->nr_states; i++) {
		const struct report_state_share *x = &p->state[i];
		const unsigned kind = model_state(m, x->state)->kind;
		const struct report_row *row = screen_row(r, ix->topic_of[x->state]);
		if (x->apart || (kind != MODEL_STATE_run && kind != MODEL_STATE_hold))
			continue;
		c->all_ns += x->path_ns;
		for (size_t k = 0; row && k < row->nr_functions; k++)
			if (*row->function[k].name)
				screen_add_compute(c, row->function[k].said,
					row->function[k].share * x->path_ns);
	}
}

/* After "its holders compute": " in f()", or ", 62 % of it in f, 33 % in g". */
static void screen_add_functions(struct base_str *s, const struct screen_compute *c)
{
	enum { NAMED = 2, TENTH = 10 };
	if (c->nr && c->ns[0] >= c->all_ns * REPORT_FUNCTION_ALL) {
		base_str_addf(
			s, " in %s%s", c->function[0], strpbrk(c->function[0], "+(") ? "" : "()");
		return;
	}
	for (size_t i = 0; i < c->nr && i < NAMED && c->ns[i] * TENTH >= c->all_ns; i++)
		base_str_addf(s, ", %.0f %% %sin %s", c->ns[i] / c->all_ns * 100, i ? "" : "of it ",
			c->function[i]);
}

/* Where those took it who computed longest with it; else where it was waited for. The arena's (the
 * model is gone when it is shown); NULL: no memory. */
static const char *screen_taken(struct base_arena *a, struct model *m, const struct under *u,
	unsigned most, const char *taken)
{
	const bool computes = most == MODEL_STATE_run || most == MODEL_STATE_hold;
	const char *longest = computes && u->most_ns[most] > 0
				      ? model_site_text(m, model_state(m, u->most[most])->site)
				      : "";
	return *longest ? report_clean(a, longest) : taken;
}

static enum base_status screen_describe_lock(
	struct report *r, struct report_part *p, struct model *m, const struct report_index *ix)
{
	struct under u = {0};
	struct screen_compute compute = {0};
	struct base_str text = {0};
	const char *taken = p->place;
	enum base_status s = BASE_OK;
	screen_sum_under(&u, p, m);
	for (unsigned i = 0; s == BASE_OK && i < REPORT_PART_DETAILS; i++) {
		unsigned most = 0;
		for (unsigned k = 1; k < MODEL_STATE_NR; k++)
			most = u.ns[k] > u.ns[most] ? k : most;
		if (!i) {
			p->kind = (enum model_state_kind)most;
			taken = screen_taken(r->arena, m, &u, most, taken);
			base_str_addf(&text, "%s: %s", p->name, screen_under_text(m, &u, most));
			screen_find_compute(&compute, r, p, m, ix);
			if (most == MODEL_STATE_run || most == MODEL_STATE_hold)
				screen_add_functions(&text, &compute);
		}
		struct base_str clean = {0};
		report_clean_add(&clean, screen_under_name(m, &u, most));
		s = screen_add_detail(p, r->arena, base_str_text(&clean), u.ns[most]);
		base_str_fini(&clean);
		u.ns[most] = 0;
	}
	if (taken && *taken)
		base_str_addf(&text, ", taken at %s", taken);
	p->place = taken ? screen_place(r->arena, taken, false) : NULL;
	p->text = report_keep(r->arena, &text);
	return s == BASE_OK && !(p->text && p->place) ? BASE_ERR_NOMEM : s;
}

enum base_status report_describe_parts(
	struct report *r, struct model *m, const struct report_index *ix, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (size_t i = 0; s == BASE_OK && i < r->parts.nr; i++) {
		struct report_part *p = &r->parts.part[i];
		s = p->is_lock ? screen_describe_lock(r, p, m, ix)
			       : screen_describe_topic(r, p, m, ix);
	}
	return s == BASE_OK ? s : report_no_memory(err);
}

/* ---- the head -------------------------------------------------------------------------------- */

static void screen_head(struct base_str *out, const struct report *r, const struct report_style *st)
{
	struct base_str left = {0}, right = {0};
	const char *dot = report_dot(st);
	base_str_add(&left, r->trace.process        ? r->trace.process
			    : r->trace.process_text ? r->trace.process_text
			    : *r->trace.command     ? r->trace.command
						    : r->trace.path);
	base_str_addf(&right, "  ");
	report_ns(&right, r->elapsed_ns);
	if (r->trace.nr_actors)
		base_str_addf(&right,
			r->trace.of_goroutines ? "%s%llu {goroutine|goroutines}"
					       : "%s%llu {thread|threads}",
			dot, (unsigned long long)r->trace.nr_actors);
	if (r->trace.nr_processors)
		base_str_addf(&right, "%s%llu {CPU|CPUs}", dot,
			(unsigned long long)r->trace.nr_processors);
	size_t used = report_width(base_str_text(&right)), path = report_width(r->trace.path) + 2;
	size_t room = st->columns > used + 8 ? st->columns - used : 8;
	bool has_path = report_width(base_str_text(&left)) + path <= room;
	report_color_begin(out, st, REPORT_BOLD);
	report_cut(out, st, base_str_text(&left), has_path ? room - path : room);
	report_color_end(out, st);
	base_str_add(out, base_str_text(&right));
	if (has_path) {
		size_t at = report_width(base_str_text(&left)) + used;
		report_color_begin(out, st, REPORT_DIM);
		report_right(out, r->trace.path, st->columns - at);
		report_color_end(out, st);
	}
	base_str_add(out, "\n");
	base_str_fini(&left);
	base_str_fini(&right);
}

/* ---- the long pole --------------------------------------------------------------------------- */

/* What is shorter when it is halved; after "Half of it" where nothing fits better. */
static const char *screen_halving(const struct report_part *p)
{
	static const char *const what[MODEL_STATE_NR] = {
		[MODEL_STATE_run] = "Half of that work",
		[MODEL_STATE_hold] = "Half of that work",
		[MODEL_STATE_sleep] = "Sleeping half as long",
		[MODEL_STATE_wait] = "Waiting half as long",
		[MODEL_STATE_io] = "Half as long in the kernel",
		[MODEL_STATE_annotated] = "Half as long in it",
	};
	if (p->is_lock)
		return "Holding it half as long";
	if (p->cause == MODEL_CAUSE_mpi_call)
		return "Half as long in MPI";
	return what[p->kind] ? what[p->kind] : "Half as long";
}

static void screen_gain(struct base_str *out, const struct report *r, const struct report_part *p,
	const struct report_style *st)
{
	const struct report_best *b = &p->gain[REPORT_PART_HALVED];
	struct base_str s = {0};
	if (!p->predicted || b->none || b->speedup <= 0)
		return;
	if (b->throughput > 0) {
		base_str_addf(&s, "%s: ", screen_halving(p));
		report_speedup(&s, st, b->throughput);
		base_str_addf(&s,
			" the work in the same time (%.2f to %.2f). The run lasts as long, however "
			"fast it is: speedups are of its work.",
			b->throughput_low, b->throughput_high);
		report_wrap(out, st, "", 0, base_str_text(&s));
		base_str_fini(&s);
		return;
	}
	if (b->speedup < NOTHING) {
		base_str_addf(&s, "%s would gain nothing (", screen_halving(p));
		report_speedup(&s, st, b->speedup);
		if (b->low < b->high)
			base_str_addf(&s, ", %.2f to %.2f", b->low, b->high);
		base_str_add(&s, ")");
		report_wrap(out, st, "", 0, base_str_text(&s));
		base_str_fini(&s);
		return;
	}
	base_str_addf(&s, "%s: ", screen_halving(p));
	report_ns(&s, r->elapsed_ns);
	base_str_addf(&s, " %s ", report_arrow(st));
	report_ns(&s, r->elapsed_ns / b->speedup);
	base_str_add(&s, " (");
	report_speedup(&s, st, b->speedup);
	if (b->no_interval)
		base_str_add(&s, ", simulated; no interval, since the trace is long)");
	else if (b->low < b->high)
		base_str_addf(&s, ", %.2f to %.2f)", b->low, b->high);
	else
		base_str_add(&s,
			", from the longest path alone; longpole whatif says how sure that is)");
	report_wrap(out, st, "", 0, base_str_text(&s));
	base_str_fini(&s);
}

static double screen_halved(const struct report_part *p)
{
	return report_best_gain(&p->gain[REPORT_PART_HALVED]);
}

/* The part that has most of the path need not be the one that gains most. */
static void screen_other_gain(
	struct base_str *out, const struct report *r, const struct report_style *st)
{
	const struct report_part *p = r->parts.part;
	struct base_str s = {0};
	size_t best = 0;
	for (size_t i = 1; i < r->parts.nr && p[i].predicted; i++)
		if (!p[i].gain[REPORT_PART_HALVED].none &&
			screen_halved(&p[i]) > screen_halved(&p[best]))
			best = i;
	if (!p->predicted || screen_halved(&p[best]) < screen_halved(p) + GAINS_MORE)
		return;
	base_str_addf(&s, "#%zu would gain more: half of ", best + 1);
	report_add_elided(&s, p[best].name, st->full ? SIZE_MAX : NAME_LONG, report_more(st));
	base_str_add(&s, ", ");
	report_speedup(&s, st, screen_halved(&p[best]));
	base_str_add(&s, ".");
	report_wrap(out, st, "", 0, base_str_text(&s));
	base_str_fini(&s);
}

/* Hardly any of the path is the program's own doing. */
static bool screen_is_apart(const struct report_parts *p)
{
	return !p->nr || p->own.own_ns < OWN_SHARE_MIN * p->own.elapsed_ns;
}

enum base_status report_fill_pole(struct report *r, struct base_err *err)
{
	struct base_str s = {0};
	if (screen_is_apart(&r->parts))
		base_str_addf(&s, "%s.", r->finding);
	else
		base_str_addf(&s, "The long pole is %s.", r->parts.part[0].text);
	r->pole = report_keep(r->arena, &s);
	return r->pole ? BASE_OK : report_no_memory(err);
}

static void screen_pole(struct base_str *out, const struct report *r, const struct report_style *st)
{
	struct base_str s = {0};
	report_add_elided(&s, r->pole, st->full ? SIZE_MAX : st->columns, report_more(st));
	report_color_begin(out, st, REPORT_BOLD);
	report_wrap(out, st, "", 0, base_str_text(&s));
	report_color_end(out, st);
	base_str_fini(&s);
	if (screen_is_apart(&r->parts))
		return;
	screen_gain(out, r, &r->parts.part[0], st);
	screen_other_gain(out, r, st);
}

/* ---- what is not the program's doing --------------------------------------------------------- */

static void screen_apart(
	struct base_str *out, const struct report *r, const struct report_style *st)
{
	static const char *const text[REPORT_APART_NR] = {
		[REPORT_APART_PROCESSOR] = "waiting for processors that other programs had",
		[REPORT_APART_SCHEDULER] = "waking up on idle processors",
		[REPORT_APART_OUTSIDE] = "waiting for others that were not recorded",
		[REPORT_APART_RECORDER] = "longpole itself",
		[REPORT_APART_IDLE] = "of which nothing was recorded",
	};
	const struct report_parts *p = &r->parts;
	struct base_str s = {0};
	const char *between = "";
	if (p->own.elapsed_ns - p->own.own_ns <= BUSY_SHARE_MIN * p->own.elapsed_ns)
		return;
	base_str_add(&s, "Not the program's doing: ");
	for (unsigned i = 0; i < REPORT_APART_NR; i++) {
		if (p->own.apart_ns[i] < PART_SHARE_MIN * p->own.elapsed_ns)
			continue;
		base_str_add(&s, between);
		report_percent(&s, p->own.apart_ns[i] / p->own.elapsed_ns);
		base_str_addf(&s, " %s", text[i]);
		between = ", ";
	}
	base_str_add(&s, ". Shares below are of the other ");
	report_ns(&s, p->own.own_ns);
	base_str_add(&s, "; speedups are of the whole run.");
	report_wrap(out, st, "", 0, base_str_text(&s));
	base_str_fini(&s);
}

/* ---- the table ------------------------------------------------------------------------------- */

struct screen_columns { /* widths; 0: left out */
	size_t bar, name, place, gain, then;
};

static size_t screen_rows(const struct report *r, const struct report_style *st)
{
	size_t max = st->full ? REPORT_PARTS_MAX : REPORT_PARTS_DEFAULT, n = 0;
	while (n < r->parts.nr && n < max && r->parts.part[n].share >= PART_SHARE_MIN)
		n++;
	return n ? n : r->parts.nr ? 1 : 0;
}

static size_t screen_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static const char *screen_then_name(const struct report_part *p)
{
	return *p->then ? p->then : "nothing";
}

/* As wide as their texts. Where that is too wide: first no bar, then no place, then no THEN; names
 * are cut. */
static struct screen_columns screen_fit(
	const struct report *r, const struct report_style *st, size_t nr_rows)
{
	enum { HEAD = 4 + SHARE_WIDTH + 1 };
	struct screen_columns c = {.bar = BAR_MAX, .name = NAME_MIN, .gain = GAIN_WIDTH, .then = 4};
	for (size_t i = 0; i < nr_rows; i++) {
		const struct report_part *p = &r->parts.part[i];
		size_t w[] = {report_width(p->name), report_width(p->place),
			p->predicted ? report_width(screen_then_name(p)) : 0};
		c.name = w[0] > c.name ? w[0] : c.name;
		c.place = w[1] > c.place ? w[1] : c.place;
		c.then = w[2] > c.then ? w[2] : c.then;
	}
	size_t columns = st->columns > HEAD ? st->columns - HEAD : 1;
	size_t numbers = 2 * GAIN_WIDTH + 2;
	if (columns < BAR_MAX + 1 + NAME_MIN + PLACE_MIN + numbers + THEN_MIN + 4)
		c.bar = columns < BAR_MIN + 1 + NAME_MIN + PLACE_MIN + numbers + THEN_MIN + 4
				? 0
				: BAR_MIN;
	size_t rest = columns - screen_least(columns, numbers + (c.bar ? c.bar + 1 : 0));
	if (rest < NAME_MIN + PLACE_MIN + THEN_MIN + 2)
		c.place = 0;
	if (rest < NAME_MIN + THEN_MIN)
		c.then = 0;
	size_t wanted = c.name + (c.place ? c.place + 2 : 0) + c.then;
	if (wanted > rest) {
		c.then = screen_least(c.then, THEN_MIN + (rest - screen_least(rest, 40)) / 3);
		c.place = screen_least(c.place, PLACE_MIN + (rest - screen_least(rest, 34)) / 3);
		size_t others = c.then + (c.place ? c.place + 2 : 0);
		c.name = rest > others + NAME_MIN ? screen_least(c.name, rest - others) : NAME_MIN;
	}
	return c;
}

static void screen_gain_cell(
	struct base_str *out, const struct report_style *st, const struct report_best *b, bool made)
{
	struct base_str cell = {0};
	const double gain = report_best_gain(b);
	if (made && !b->none && gain > 0 && gain < SPEEDUP_SHOWN_MAX)
		base_str_addf(&cell, "%.*f%s",
			gain < 9.995  ? 2
			: gain < 99.5 ? 1
				      : 0,
			gain, report_times(st));
	else if (made && !b->none && gain > 0)
		base_str_addf(&cell, ">%d%s", SPEEDUP_SHOWN_MAX, report_times(st));
	report_right(out, base_str_text(&cell), GAIN_WIDTH);
	base_str_fini(&cell);
}

/* By name; by number where that does not fit. */
static void screen_then(struct base_str *out, const struct report *r, const struct report_part *p,
	size_t width, const struct report_style *st)
{
	const char *name = screen_then_name(p);
	size_t n = 0;
	while (n < r->parts.nr && r->parts.part[n].name != p->then)
		n++;
	if (report_width(name) > width && n < screen_rows(r, st))
		base_str_addf(out, "#%zu", n + 1);
	else
		report_cell(out, st, name, width, false);
}

static enum report_color screen_color(enum model_state_kind kind)
{
	return model_state_kind_waits(kind) ? REPORT_RED : REPORT_GREEN;
}

static void screen_details(struct base_str *out, const struct report *r,
	const struct report_part *p, const struct report_style *st)
{
	struct base_str s = {0};
	if (p->nr_details < 2 && !p->is_lock)
		return;
	for (size_t i = 0; i < p->nr_details; i++) {
		const double share = report_own_share(&r->parts.own, p->detail[i].path_ns);
		if (share < PART_SHARE_MIN && !p->is_lock && !st->full)
			break;
		base_str_add(&s, i ? ", " : "");
		report_add_elided(
			&s, p->detail[i].text, st->full ? SIZE_MAX : DETAIL_LONG, report_more(st));
		base_str_add(&s, " ");
		report_percent(&s, share);
	}
	if (p->is_lock) {
		base_str_addf(&s, "; %llu {wait|waits}, ", (unsigned long long)p->nr_waits);
		report_ns(&s, (double)p->wait_ns);
		base_str_addf(&s, " in all, by up to %llu {thread|threads} at once",
			(unsigned long long)p->waiters_max);
	}
	if (!s.length)
		return;
	report_color_begin(out, st, REPORT_DIM);
	report_wrap(out, st, st->utf8 ? "       \xe2\x94\x94 " : "       - ", INDENT,
		base_str_text(&s));
	report_color_end(out, st);
	base_str_fini(&s);
}

static void screen_row_line(struct base_str *out, const struct report *r, size_t i,
	const struct screen_columns *c, const struct report_style *st)
{
	const struct report_part *p = &r->parts.part[i];
	struct base_str cell = {0};
	base_str_addf(&cell, "#%zu", i + 1);
	report_right(out, base_str_text(&cell), 4);
	base_str_reset(&cell);
	report_percent(&cell, p->share);
	report_right(out, base_str_text(&cell), SHARE_WIDTH);
	base_str_fini(&cell);
	base_str_add(out, " ");
	report_color_begin(out, st, screen_color(p->kind));
	if (c->bar) {
		report_bar(out, st, p->share, (unsigned)c->bar);
		base_str_add(out, " ");
	}
	report_color_end(out, st);
	report_cell(out, st, p->name, c->name, true);
	if (c->place) {
		base_str_add(out, "  ");
		report_cell(out, st, p->place, c->place, true);
	}
	screen_gain_cell(out, st, &p->gain[REPORT_PART_HALVED], p->predicted);
	screen_gain_cell(out, st, &p->gain[REPORT_PART_GONE], p->predicted);
	if (c->then && p->predicted) {
		base_str_add(out, "  ");
		screen_then(out, r, p, c->then, st);
	}
	base_str_add(out, "\n");
	screen_details(out, r, p, st);
}

static void screen_title(struct base_str *out, const struct screen_columns *c,
	const struct report_style *st, double explained)
{
	struct base_str s = {0};
	size_t width = 4 + SHARE_WIDTH + 1 + (c->bar ? c->bar + 1 : 0) + c->name +
		       (c->place ? c->place + 2 : 0);
	base_str_add(&s, "WHERE THE TIME GOES");
	base_str_add(&s, width >= 42 && explained >= 0.9995 ? " (critical path, observed)"
			 : width >= 32                      ? " (critical path)"
							    : "");
	report_color_begin(out, st, REPORT_BOLD);
	report_cell(out, st, base_str_text(&s), width, true);
	report_right(out, "HALVED", GAIN_WIDTH);
	report_right(out, "GONE", GAIN_WIDTH);
	if (c->then)
		base_str_add(out, "  THEN");
	report_color_end(out, st);
	base_str_add(out, "\n");
	base_str_fini(&s);
}

static void screen_table(
	struct base_str *out, const struct report *r, const struct report_style *st)
{
	size_t n = screen_rows(r, st);
	struct screen_columns c = screen_fit(r, st, n);
	double rest = 0;
	if (!n)
		return;
	screen_title(out, &c, st, r->explained_share);
	for (size_t i = 0; i < n; i++)
		screen_row_line(out, r, i, &c, st);
	for (size_t i = n; i < r->parts.nr; i++)
		rest += r->parts.part[i].share;
	if (rest > 0.0005) {
		struct base_str cell = {0};
		report_percent(&cell, rest);
		report_right(out, base_str_text(&cell), 4 + SHARE_WIDTH);
		base_str_addf(out, " %zu {other|others}%s\n", r->parts.nr - n,
			st->full ? "" : " (--full)");
		base_str_fini(&cell);
	}
}

/* ---- caveats --------------------------------------------------------------------------------- */

/* What could change the answer, and by how much of it at most. */
struct screen_caveat {
	struct base_str text;
	double size;
};
struct screen_caveats {
	struct screen_caveat of[16];
	size_t nr;
};

/* NULL: no room. */
static struct base_str *screen_caveat(struct screen_caveats *c, double size)
{
	if (c->nr == BASE_COUNT(c->of))
		return NULL;
	c->of[c->nr] = (struct screen_caveat){.size = size};
	return &c->of[c->nr++].text;
}

static void screen_trace_caveats(struct screen_caveats *c, const struct report_trace *t)
{
	struct base_str *s;
	if (t->readable_bytes < t->file_bytes && (s = screen_caveat(c, 1))) {
		base_str_add(s, "a cut or damaged file: only ");
		base_str_add_size(s, t->readable_bytes);
		base_str_add(s, " of ");
		base_str_add_size(s, t->file_bytes);
		base_str_add(s, " could be read");
	}
	if ((t->from_ns || t->to_ns) && (s = screen_caveat(c, 0.9))) {
		base_str_add(s, "only the window from ");
		base_str_add_ns(s, t->from_ns);
		base_str_add(s, " to ");
		base_str_add_ns(s, t->to_ns && t->to_ns < t->last_ns ? t->to_ns : t->last_ns);
		base_str_add(s, " was analysed (--from, --to)");
	}
	for (size_t i = 0; i < t->nr_diags; i++) {
		bool harmless = !strcmp(t->diag[i].severity, "info");
		if ((s = screen_caveat(c, harmless ? 0.005 : 0.8)))
			base_str_add(s, t->diag[i].text);
	}
	if (t->quota_period_ns && (s = screen_caveat(c, 0.5)))
		report_quota_words(s, t->quota_ns, t->quota_period_ns);
}

/* Of nested locks each has the time of both. */
static bool screen_overlaps(const struct report_parts *p)
{
	double all_ns = 0;
	for (size_t i = 0; i < p->nr; i++)
		all_ns += p->part[i].path_ns;
	return all_ns > p->own.own_ns * (1 + PART_SHARE_MIN);
}

static void screen_rank_caveats(struct screen_caveats *c, const struct report_ranks *r)
{
	struct base_str *s;
	for (size_t i = 0; i < r->nr; i++) {
		const char *text[] = {
			r->world[i].missing, r->world[i].ended, r->world[i].unfinished};
		for (size_t k = 0; k < BASE_COUNT(text); k++)
			if (*text[k] && (s = screen_caveat(c, 1)))
				base_str_add(s, text[k]);
	}
}

static void screen_path_caveats(struct screen_caveats *c, const struct report *r)
{
	struct base_str *s;
	if (screen_overlaps(&r->parts) && (s = screen_caveat(c, 0.4)))
		base_str_add(s, "locks are held inside of others: such time counts in both shares");
	double unseen = 1 - r->explained_share, blocked = 0;
	for (size_t i = 0; i < r->nr_rows; i++)
		blocked += r->row[i].kind == MODEL_STATE_blocked ? r->row[i].share : 0;
	for (size_t i = 0; i < r->spins.nr; i++) {
		const struct report_spin *spin = &r->spins.spin[i];
		if (!(s = screen_caveat(c, spin->path_share)))
			break;
		base_str_addf(s, "%s may only be spinning", spin->function);
		if (*spin->word)
			base_str_addf(s, " on %s", spin->word);
		base_str_add(s, ", ");
		report_percent(s, spin->path_share);
		base_str_add(s, " of the path (longpole spin)");
	}
	if (r->box.fixed_ns > 0 && (s = screen_caveat(c, 1)))
		report_box_words(s, &r->box);
	if (r->polled_share >= PART_SHARE_MIN && (s = screen_caveat(c, r->polled_share)))
		report_polled_words(s, r->polled_share);
	if (r->timed_share - r->polled_share >= PART_SHARE_MIN &&
		(s = screen_caveat(c, r->timed_share))) {
		report_percent(s, r->timed_share);
		base_str_add(s,
			" of the path are waits that a time limit or a signal ended: what they "
			"wait for is not seen, and less work elsewhere may end them sooner");
	}
	if (r->unnamed.share >= REPORT_UNNAMED_FROM && (s = screen_caveat(c, r->unnamed.share)))
		report_unnamed_words(s, r);
	if (r->nr_annotation_findings && (s = screen_caveat(c, 0.3)))
		base_str_add_counted(s, "%s annotation {finding|findings}; see longpole coach",
			r->nr_annotation_findings);
	if (unseen >= 0.0005 && (s = screen_caveat(c, unseen))) {
		report_percent(s, unseen);
		base_str_add(
			s, " of the path are waits that no recorded event ended (longpole coach)");
	}
	if (!r->trace.nr_actors || !r->trace.nr_processors)
		return; /* simulated or imported: nothing was disturbed, nothing hidden */
	if (r->trace.cost_share >= 0.005 && (s = screen_caveat(c, r->trace.cost_share_high))) {
		base_str_add(s, "recording cost ");
		report_percent(s, r->trace.cost_share);
		base_str_add(s, " of CPU time (");
		report_percent(s, r->trace.cost_share_low);
		base_str_add(s, " to ");
		report_percent(s, r->trace.cost_share_high);
		base_str_add(s, ")");
	}
	if (r->trace.process || blocked < PART_SHARE_MIN || !(s = screen_caveat(c, blocked)))
		return;
	report_percent(s, blocked);
	base_str_add(s, " of the path is blocked outside every recorded call (malloc's locks, Go): "
			"what that waits for is not seen");
}

static void screen_caveats(
	struct base_str *out, const struct report *r, const struct report_style *st)
{
	struct screen_caveats c = {0};
	size_t shown = 0;
	screen_rank_caveats(&c, &r->trace.ranks);
	screen_trace_caveats(&c, &r->trace);
	screen_path_caveats(&c, r);
	while (shown < CAVEATS_SHOWN) {
		size_t largest = 0;
		for (size_t i = 1; i < c.nr; i++)
			largest = c.of[i].size > c.of[largest].size ? i : largest;
		if (!c.nr || c.of[largest].size <= 0)
			break;
		report_wrap(out, st, "! ", 2, base_str_text(&c.of[largest].text));
		c.of[largest].size = 0;
		shown++;
	}
	if (c.nr > shown)
		base_str_addf(out, "! %zu more (--full)\n", c.nr - shown);
	for (size_t i = 0; i < c.nr; i++)
		base_str_fini(&c.of[i].text);
}

void report_screen(struct base_str *out, const struct report *r, const struct report_style *st)
{
	screen_head(out, r, st);
	screen_pole(out, r, st);
	screen_apart(out, r, st);
	base_str_add(out, "\n");
	screen_table(out, r, st);
	if (r->imbalance_part) {
		struct base_str s = {0};
		report_imbalance_words(&s, r);
		report_wrap(out, st, "", 0, base_str_text(&s));
		base_str_fini(&s);
	}
	base_str_add(out, "\n");
	if (!st->full)
		screen_caveats(out, r, st);
}

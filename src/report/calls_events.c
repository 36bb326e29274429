/* SPDX-License-Identifier: Apache-2.0 */
/* calls_events.c - what the processor counted in library calls (seed 001, figures 7 to 9): by
 * category and function, in user space and in the kernel, beside the program's own code. */
#include "report/calls.h"
#include "report/private.h"

#include <string.h>

enum { NAME_WIDTH = 30, CELL_WIDTH = 12 };

/* Some calls, or the program, in one mode. */
struct events_row {
	double calls; /* 0: not calls */
	double count[REPORT_CALL_EVENTS];
	bool known;
};

static int calls_events_place_of(const struct report_calls *c, const char *event)
{
	return report_event_place(c->event_name, c->nr_events, event);
}

static struct events_row calls_events_row_of(
	const struct report_call_use *u, enum report_call_mode mode)
{
	struct events_row row = {.calls = (double)u->calls};
	for (unsigned i = 0; i < REPORT_CALL_EVENTS; i++) {
		row.count[i] = u->event[mode][i].all;
		row.known |= u->event[mode][i].nr + u->event[mode][i].special_nr > 0;
	}
	return row;
}

static struct events_row program_row(const struct report_calls *c, enum report_call_mode mode)
{
	struct events_row row = {.known = true};
	for (unsigned i = 0; i < c->nr_events; i++)
		row.count[i] = c->program_event[mode][i];
	return row;
}

/* What the program did outside of library calls: what is left. */
static struct events_row rest_row(const struct report_calls *c, enum report_call_mode mode)
{
	struct events_row row = program_row(c, mode), calls = calls_events_row_of(&c->all, mode);
	for (unsigned i = 0; i < c->nr_events; i++)
		row.count[i] = row.count[i] > calls.count[i] ? row.count[i] - calls.count[i] : 0;
	return row;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void events_cell(struct base_str *out, const struct base_str *s)
{
	report_right(out, base_str_text(s), CELL_WIDTH);
}

static void share_cell(struct base_str *out, double count, double whole)
{
	struct base_str s = {0};
	if (whole > 0)
		report_percent(&s, count / whole);
	else
		base_str_add(&s, "-");
	events_cell(out, &s);
	base_str_fini(&s);
}

/* Is that a column of its own, with its share? Cycles and instructions make one together. */
static bool is_own_column(const struct report_calls *c, unsigned i)
{
	int cycles = calls_events_place_of(c, "cycles"),
	    instructions = calls_events_place_of(c, "instructions");
	return cycles < 0 || instructions < 0 || ((int)i != cycles && (int)i != instructions);
}

static void events_heads(struct base_str *out, const struct report_calls *c,
	const struct report_style *st, const char *what, enum report_call_mode mode)
{
	struct base_str s = {0};
	int cycles = calls_events_place_of(c, "cycles"),
	    instructions = calls_events_place_of(c, "instructions");
	report_color_begin(out, st, REPORT_DIM);
	base_str_addf(&s, "%s, %s", what, mode == REPORT_CALL_USER ? "user space" : "kernel");
	report_cell(out, st, base_str_text(&s), NAME_WIDTH, true);
	report_right(out, "calls", CELL_WIDTH + 2);
	if (cycles >= 0 && instructions >= 0) {
		report_right(out, "cycles", CELL_WIDTH);
		report_right(out, "CPI", CELL_WIDTH);
	}
	for (unsigned i = 0; i < c->nr_events; i++) {
		if (!is_own_column(c, i))
			continue;
		report_right(out, report_event_short(c->event_name[i]), CELL_WIDTH);
		base_str_reset(&s);
		base_str_addf(&s, "%s/%s", report_event_short(c->event_name[i]),
			instructions >= 0 && (int)i != instructions ? "ki" : "call");
		events_cell(out, &s);
	}
	report_color_end(out, st);
	base_str_add(out, "\n");
	base_str_fini(&s);
}

static void events_line(struct base_str *out, const struct report_calls *c,
	const struct report_style *st, const char *name, struct events_row row,
	const struct events_row *both)
{
	struct base_str s = {0};
	int cycles = calls_events_place_of(c, "cycles"),
	    instructions = calls_events_place_of(c, "instructions");
	report_cell(out, st, name, NAME_WIDTH, true);
	if (row.calls > 0)
		base_str_add_count(&s, (uint64_t)row.calls);
	else
		base_str_add(&s, "-");
	report_right(out, base_str_text(&s), CELL_WIDTH + 2);
	base_str_fini(&s);
	if (cycles >= 0 && instructions >= 0) {
		share_cell(out, row.count[cycles], row.known ? both->count[cycles] : 0);
		report_event_ratio(out, row.count[cycles], row.count[instructions], CELL_WIDTH);
	}
	for (unsigned i = 0; i < c->nr_events; i++) {
		if (!is_own_column(c, i))
			continue;
		share_cell(out, row.count[i], row.known ? both->count[i] : 0);
		if (instructions >= 0 && (int)i != instructions)
			report_event_ratio(
				out, row.count[i], row.count[instructions] / 1000, CELL_WIDTH);
		else
			report_event_ratio(
				out, row.count[i], row.known ? row.calls : 0, CELL_WIDTH);
	}
	base_str_add(out, "\n");
}

static const char *const category_text[] = {
#define X(id, text) text,
	TRACE_CALLS(X)
#undef X
};

static void events_table(struct base_str *out, const struct report_calls *c,
	const struct report_calls_view *view, const struct report_style *st,
	enum report_call_mode mode)
{
	struct events_row both = program_row(c, REPORT_CALL_USER),
			  kernel = program_row(c, REPORT_CALL_KERNEL);
	for (unsigned i = 0; i < c->nr_events; i++)
		both.count[i] += kernel.count[i];
	events_heads(out, c, st, "category", mode);
	for (unsigned i = 0; i < TRACE_CALL_NR; i++)
		if (c->category[i].calls)
			events_line(out, c, st, category_text[i],
				calls_events_row_of(&c->category[i], mode), &both);
	events_line(out, c, st, "all library calls", calls_events_row_of(&c->all, mode), &both);
	events_line(out, c, st, "the program's own code", rest_row(c, mode), &both);
	events_line(out, c, st, "the whole program", program_row(c, mode), &both);
	base_str_add(out, "\n");
	events_heads(out, c, st, "function", mode);
	size_t nr = view->limit && view->limit < c->nr_functions ? view->limit : c->nr_functions;
	for (size_t i = 0; i < nr; i++)
		events_line(out, c, st, c->function[i].name,
			calls_events_row_of(&c->function[i].use, mode), &both);
	if (nr < c->nr_functions)
		base_str_addf(out, "... %zu more (--all shows them)\n", c->nr_functions - nr);
	base_str_add(out, "\n");
}

void report_calls_events_text(struct base_str *out, const struct report_calls *c,
	const struct report_calls_view *view, const struct report_style *st)
{
	struct base_str s = {0};
	if (!c->nr_events)
		return;
	events_table(out, c, view, st, REPORT_CALL_USER);
	if (c->has_kernel_events)
		events_table(out, c, view, st, REPORT_CALL_KERNEL);
	base_str_add(&s,
		"perf's counters of each thread, read where a call begins and ends, less what "
		"reading counts itself. One call of 32 is counted so, of those that enter the "
		"kernel one of 8, and a place's first call and large copies always. A column "
		"without a unit is the share of all that the program had, in user space and the "
		"kernel; /ki is per 1,000 instructions. The program's own code is what is left");
	if (!c->has_kernel_events)
		base_str_add(&s, ". What the kernel did is not counted");
	if (c->least_running_share < 0.999) {
		base_str_add(&s, ". The events shared the processor's counters: only calls that "
				 "had them from begin to end are in the sample, and the program's "
				 "totals are scaled (a thread had them ");
		report_percent(&s, c->least_running_share);
		base_str_add(&s, " of the time)");
	}
	report_wrap(out, st, "EVENTS", REPORT_LABEL_WIDTH, base_str_text(&s));
	if (c->all.without_events) {
		base_str_reset(&s);
		base_str_add_counted(&s,
			"%s {call is|calls are} in no event's count: nothing was measured at {its "
			"place|their places}",
			c->all.without_events);
		report_wrap(out, st, "MISSING", REPORT_LABEL_WIDTH, base_str_text(&s));
	}
	base_str_fini(&s);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *const mode_key[] = {"user", "kernel"};

static json_t *calls_events_row_json(const struct report_calls *c, struct events_row row)
{
	json_t *o = json_object(), *counts = json_object();
	int cycles = calls_events_place_of(c, "cycles"),
	    instructions = calls_events_place_of(c, "instructions");
	for (unsigned i = 0; i < c->nr_events; i++)
		json_object_set_new(counts, c->event_name[i], report_json_ns(row.count[i]));
	json_object_set_new(o, "counts", counts);
	if (cycles >= 0 && instructions >= 0 && row.count[instructions] > 0)
		json_object_set_new(o, "cycles_per_instruction",
			report_json_share(row.count[cycles] / row.count[instructions]));
	return o;
}

/* user and kernel; what was not counted is absent. NULL: no events were. */
json_t *report_calls_events_json(const struct report_calls *c, const struct report_call_use *u)
{
	json_t *o = c->nr_events ? json_object() : NULL;
	for (unsigned mode = 0; o && mode < REPORT_CALL_MODES; mode++) {
		const struct report_call_event *e = &u->event[mode][0];
		if (!(e->nr + e->special_nr))
			continue;
		json_t *row = calls_events_row_json(c, calls_events_row_of(u, mode));
		json_object_set_new(row, "measured_calls", base_json_u64(e->nr + e->special_nr));
		json_object_set_new(o, mode_key[mode], row);
	}
	return o;
}

json_t *report_calls_program_events_json(const struct report_calls *c)
{
	json_t *o = c->nr_events ? json_object() : NULL;
	for (unsigned mode = 0; o && mode < REPORT_CALL_MODES; mode++) {
		if (mode == REPORT_CALL_KERNEL && !c->has_kernel_events)
			continue;
		json_t *row = calls_events_row_json(c, program_row(c, mode));
		json_object_set_new(row, "own_code", calls_events_row_json(c, rest_row(c, mode)));
		json_object_set_new(o, mode_key[mode], row);
	}
	return o;
}

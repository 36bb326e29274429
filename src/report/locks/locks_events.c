/* SPDX-License-Identifier: Apache-2.0 */
/* locks_events.c - what the processor counted while locks were taken and held (seed 001, sections 4
 * and 5): critical sections that would gain by better caches stand out. */
#include "report/locks/locks.h"
#include "report/predict/predictor.h"

enum { NAME_WIDTH = 34, CELL_WIDTH = 11 };

static const char *const mode_text[] = {"user space", "kernel"};
static const char *const mode_key[] = {"user", "kernel"};

/* Calls or holds, and what was counted in them. */
struct events_row {
	double nr, count[REPORT_LOCK_EVENTS];
};

static struct events_row locks_events_row_of(
	const struct report_lock_use *u, unsigned mode, bool taking)
{
	struct events_row row = {0};
	for (unsigned i = 0; i < REPORT_LOCK_EVENTS; i++) {
		const struct report_lock_event *e = &u->event[mode][i];
		row.count[i] = (double)(taking ? e->taking_count : e->count);
		if (!i)
			row.nr = (double)(taking ? e->taking_nr : e->nr);
	}
	return row;
}

/* Cycles and instructions are one column each time, and their ratio one; others are by instructions
 * where these were counted, too. */
static void locks_events_heads(struct base_str *out, const struct report_locks *l,
	const struct report_style *st, unsigned mode, bool taking)
{
	struct base_str s = {0};
	int cycles = report_event_place(l->event_name, l->nr_events, "cycles");
	int instructions = report_event_place(l->event_name, l->nr_events, "instructions");
	base_str_add(out, "\n");
	report_color_begin(out, st, REPORT_DIM);
	base_str_addf(&s, "%s, %s", taking ? "taking it while free" : "while it is held",
		mode_text[mode]);
	report_cell(out, st, base_str_text(&s), NAME_WIDTH, true);
	report_right(out, taking ? "calls" : "holds", CELL_WIDTH);
	for (unsigned i = 0; i < l->nr_events; i++) {
		const char *name = report_event_short(l->event_name[i]);
		bool by_instructions =
			instructions >= 0 && (int)i != instructions && (int)i != cycles;
		base_str_reset(&s);
		base_str_addf(&s, "%s%s", name, by_instructions ? "/ki" : "");
		if ((int)i == instructions && cycles >= 0)
			report_right(out, "CPI", CELL_WIDTH);
		else
			report_right(out, base_str_text(&s), CELL_WIDTH);
	}
	report_color_end(out, st);
	base_str_add(out, "\n");
	base_str_fini(&s);
}

static void line(struct base_str *out, const struct report_locks *l, const struct report_style *st,
	const char *name, struct events_row row)
{
	struct base_str s = {0};
	int cycles = report_event_place(l->event_name, l->nr_events, "cycles");
	int instructions = report_event_place(l->event_name, l->nr_events, "instructions");
	report_cell(out, st, name, NAME_WIDTH, true);
	base_str_add_count(&s, (uint64_t)row.nr);
	report_right(out, base_str_text(&s), CELL_WIDTH);
	base_str_fini(&s);
	for (unsigned i = 0; i < l->nr_events; i++) {
		if ((int)i == instructions && cycles >= 0)
			report_event_ratio(
				out, row.count[cycles], row.count[instructions], CELL_WIDTH);
		else if (instructions >= 0 && (int)i != instructions && (int)i != cycles)
			report_event_ratio(
				out, row.count[i], row.count[instructions] / 1000, CELL_WIDTH);
		else
			report_event_ratio(out, row.count[i], row.nr, CELL_WIDTH);
	}
	base_str_add(out, "\n");
}

static void locks_events_table(struct base_str *out, const struct report_locks *l,
	const struct report_locks_view *view, const struct report_style *st, unsigned mode,
	bool taking)
{
	if (!(locks_events_row_of(&l->all, mode, taking).nr > 0))
		return;
	locks_events_heads(out, l, st, mode, taking);
	for (size_t i = 0; i < l->nr_locks && (!view->limit || i < view->limit); i++) {
		struct events_row row = locks_events_row_of(&l->lock[i].use, mode, taking);
		if (row.nr > 0)
			line(out, l, st, l->lock[i].name, row);
	}
	line(out, l, st, "all", locks_events_row_of(&l->all, mode, taking));
}

void report_locks_events_text(struct base_str *out, const struct report_locks *l,
	const struct report_locks_view *view, const struct report_style *st)
{
	if (!l->nr_events)
		return;
	for (unsigned taking = 0; taking < 2; taking++)
		for (unsigned mode = 0; mode < REPORT_LOCK_MODES; mode++)
			locks_events_table(out, l, view, st, mode, taking);
	base_str_add(out, "\n");
	report_wrap(out, st, "EVENTS", REPORT_LABEL_WIDTH,
		"perf's counters of each thread, less what reading counts itself. They are read "
		"after a mutex is taken and before it is given up, in the holds that are timed "
		"(rarer ones stand for more). They are also read around the call that took it, if "
		"it was free. Numbers are averages of one hold or call, but for CPI, cycles per "
		"instruction, and /ki, per 1,000 instructions. Not in it: holds that do not end "
		"last, of read-write and spin locks, and after a condition's wait");
}

static json_t *locks_events_row_json(const struct report_locks *l, struct events_row row)
{
	json_t *o = json_object(), *counts = json_object();
	int cycles = report_event_place(l->event_name, l->nr_events, "cycles");
	int instructions = report_event_place(l->event_name, l->nr_events, "instructions");
	for (unsigned i = 0; i < l->nr_events; i++)
		json_object_set_new(counts, l->event_name[i], report_json_ns(row.count[i]));
	json_object_set_new(o, "counts", counts);
	if (cycles >= 0 && instructions >= 0 && row.count[instructions] > 0)
		json_object_set_new(o, "cycles_per_instruction",
			report_json_share(row.count[cycles] / row.count[instructions]));
	json_object_set_new(o, "measured_calls", report_json_ns(row.nr));
	return o;
}

/* NULL: none was counted. */
json_t *report_lock_events_json(const struct report_locks *l, const struct report_lock_use *u)
{
	static const char *const key[] = {"held", "taking"};
	json_t *o = l->nr_events ? json_object() : NULL;
	for (unsigned taking = 0; o && taking < 2; taking++) {
		json_t *modes = json_object();
		for (unsigned mode = 0; mode < REPORT_LOCK_MODES; mode++) {
			struct events_row row = locks_events_row_of(u, mode, taking);
			if (row.nr > 0)
				json_object_set_new(
					modes, mode_key[mode], locks_events_row_json(l, row));
		}
		json_object_set_new(o, key[taking], modes);
	}
	return o;
}

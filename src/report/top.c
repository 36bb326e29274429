/* SPDX-License-Identifier: Apache-2.0 */
/* top.c - one window of `longpole top`, as text and as a line of JSON. */
#include "report/private.h"
#include "report/top.h"

#include "config.h"

#include <time.h>

enum { BAR_WIDTH = 8, NUMBERS_WIDTH = 28, WHERE_MIN = 8 };

/* Of what the numbers leave; the rest is for where. */
static size_t state_width(const struct report_style *st)
{
	return (st->columns - NUMBERS_WIDTH) * 46 / 100;
}

static size_t process_width(const struct report_style *st)
{
	return (st->columns - NUMBERS_WIDTH) * 24 / 100;
}

static double top_share_of(double part, double all)
{
	return all > 0 ? part / all : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void top_add_moment(
	struct base_str *out, const struct live_window *w, const struct report_top_head *head)
{
	char text[32];
	struct tm tm;
	time_t t = (time_t)((head->origin_unix_ns + w->to_ns) / 1000000000u);
	if (head->origin_unix_ns && localtime_r(&t, &tm) &&
		strftime(text, sizeof text, "%H:%M:%S", &tm)) {
		base_str_addf(out, "%s, ", text);
	}
	base_str_add_ns(out, w->from_ns);
	base_str_add(out, " to ");
	base_str_add_ns(out, w->to_ns);
}

void report_top_finding(struct base_str *out, const struct live_window *w)
{
	if (!w->nr_states || w->path_ns <= 0) {
		base_str_add(out, "nothing was on a critical path");
		return;
	}
	const struct live_row *top = &w->state[0];
	struct report_crowd crowd = {0};
	for (size_t i = 0; i < w->nr_states; i++)
		report_crowd_add(&crowd, w->state[i].had, w->state[i].path_ns);
	bool crowded = crowd.nr > 1 && crowd.path_ns > top->path_ns;
	report_percent(out, top_share_of(crowded ? crowd.path_ns : top->path_ns, w->path_ns));
	base_str_add(
		out, w->nr_paths == 1 ? " of the critical path is " : " of the critical paths is ");
	if (crowded) {
		report_crowd_text(out, &crowd, w->path_ns, 0);
	} else {
		report_clean_add(out, top->name);
		base_str_add(out, ", ");
		report_clean_add(out, top->process);
	}
	base_str_add(out, " (observed; ");
	double explained = 1 - top_share_of(w->unexplained_ns, w->path_ns);
	if (explained > 0.9995)
		base_str_add(out, "all");
	else
		report_percent(out, explained);
	base_str_addf(out, " of %s is explained)", w->nr_paths == 1 ? "the path" : "their length");
}

static void top_add_row(struct base_str *out, const struct report_style *st,
	const struct live_row *r, double all_ns, const char *name, const char *process)
{
	struct base_str share = {0}, waiting = {0};
	report_percent(&share, top_share_of(r->path_ns, all_ns));
	report_percent(&waiting, top_share_of(r->waiting_ns, r->path_ns));
	base_str_add(out, " ");
	report_right(out, base_str_text(&share), 7);
	report_right(out, base_str_text(&waiting), 9);
	base_str_add(out, "  ");
	report_bar(out, st, top_share_of(r->path_ns, all_ns), BAR_WIDTH);
	base_str_add(out, " ");
	size_t used = NUMBERS_WIDTH + state_width(st) + process_width(st) + 5;
	bool in_process = process && *process;
	report_cell(out, st, name, state_width(st), in_process);
	if (in_process) {
		base_str_add(out, "  ");
		report_cell(out, st, process, process_width(st), *r->where);
	}
	if (in_process && *r->where && st->columns >= used + WHERE_MIN) {
		base_str_add(out, "  ");
		report_cell(out, st, r->where, st->columns - used, false);
	}
	base_str_add(out, "\n");
	base_str_fini(&share);
	base_str_fini(&waiting);
}

static void add_title(struct base_str *out, const struct report_style *st, const char *title)
{
	report_color_begin(out, st, REPORT_BOLD);
	base_str_add(out, title);
	report_color_end(out, st);
	base_str_add(out, "\n");
}

enum column { COLUMN_state, COLUMN_process, COLUMN_connection };

static void add_table(struct base_str *out, const struct report_style *st, const char *title,
	const struct live_row *row, size_t nr, double all_ns, size_t limit, enum column column)
{
	size_t shown = limit && nr > limit ? limit : nr;
	double rest_ns = 0;
	if (!nr)
		return;
	add_title(out, st, title);
	for (size_t i = 0; i < nr; i++) {
		const char *name = column == COLUMN_process ? row[i].process : row[i].name;
		if (i < shown)
			top_add_row(out, st, &row[i], all_ns, name,
				column == COLUMN_state ? row[i].process : NULL);
		else
			rest_ns += row[i].path_ns;
	}
	if (shown == nr)
		return;
	struct base_str share = {0};
	report_percent(&share, top_share_of(rest_ns, all_ns));
	base_str_add(out, " ");
	report_right(out, base_str_text(&share), 7);
	base_str_addf(out, "  %zu more\n", nr - shown);
	base_str_fini(&share);
}

void report_top_tables(struct base_str *out, const struct live_window *w, size_t limit,
	const struct report_style *st)
{
	add_table(out, st, "  share  waiting  STATES", w->state, w->nr_states, w->path_ns, limit,
		COLUMN_state);
	add_table(out, st, "  share  waiting  PROCESSES", w->process, w->nr_processes, w->path_ns,
		limit, COLUMN_process);
	add_table(out, st, "  share  waiting  CONNECTIONS", w->connection, w->nr_connections,
		w->path_ns, limit, COLUMN_connection);
}

static void top_add_caveats(
	struct base_str *out, const struct report_style *st, const struct live_window *w)
{
	struct base_str s = {0};
	if (!w->to_the_end && !w->hindsight)
		base_str_add(&s, "what came later was not known; ");
	if (w->fresh)
		base_str_add(&s, "a fresh model: what is older than two windows was not known; ");
	if (w->nr_lost) {
		base_str_add_counted(&s,
			"%s {record was|records were} lost (longpole or the kernel could not keep "
			"up); ",
			w->nr_lost);
	}
	if (w->nr_late) {
		base_str_add_counted(&s,
			"%s {record came late and counts as later than it was|records came late "
			"and count as later than they were}; ",
			w->nr_late);
	}
	if (s.length > 2) {
		s.buf[s.length - 2] = 0;
		report_wrap(out, st, "CAVEATS", 11, base_str_text(&s));
	}
	base_str_fini(&s);
}

void report_top_text(struct base_str *out, const struct live_window *w,
	const struct report_top_head *head, const struct report_style *st)
{
	struct base_str finding = {0};
	report_top_finding(&finding, w);
	report_color_begin(out, st, REPORT_BOLD);
	base_str_add(out, base_str_text(&finding));
	report_color_end(out, st);
	base_str_add(out, "\n");
	base_str_fini(&finding);
	report_clean_add(out, head->what);
	base_str_addf(out, ", window %llu: ", (unsigned long long)w->number);
	top_add_moment(out, w, head);
	base_str_addf(out, "; %u {path|paths}, ", w->nr_paths);
	if (w->nr_asleep)
		base_str_addf(out, "%u more of processes that slept, ", w->nr_asleep);
	base_str_add_counted(out, "%s {record|records}\n", w->nr_records);
	report_top_tables(out, w, head->limit, st);
	top_add_caveats(out, st, w);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *top_clean(const char *text)
{
	struct base_str s = {0};
	report_clean_add(&s, text);
	json_t *j = json_string(base_str_text(&s));
	base_str_fini(&s);
	return j;
}

static json_t *json_row(const struct live_row *r, double all_ns, enum column column, bool hosts)
{
	json_t *j = json_object();
	if (column == COLUMN_state) {
		json_object_set_new(j, "state", top_clean(r->name));
		json_object_set_new(j, "process", top_clean(r->process));
		json_object_set_new(j, "kind", json_string(model_state_kind_name(r->kind)));
		if (r->had && *r->had)
			json_object_set_new(j, "processor_had_by", top_clean(r->had));
		if (!hosts)
			json_object_set_new(j, "where", top_clean(r->where));
	} else {
		json_object_set_new(j, column == COLUMN_process ? "process" : "connection",
			top_clean(column == COLUMN_process ? r->process : r->name));
	}
	if (hosts)
		json_object_set_new(j, "most_on", top_clean(r->where));
	json_object_set_new(j, "path_ns", report_json_ns(r->path_ns));
	json_object_set_new(j, "share", report_json_share(top_share_of(r->path_ns, all_ns)));
	json_object_set_new(j, "waiting_ns", report_json_ns(r->waiting_ns));
	json_object_set_new(j, "unexplained_ns", report_json_ns(r->unexplained_ns));
	json_object_set_new(j, "visits", base_json_u64(r->visits));
	return j;
}

static json_t *json_rows(const struct live_row *row, size_t nr, double all_ns, size_t limit,
	enum column column, bool hosts)
{
	json_t *list = json_array();
	for (size_t i = 0; i < nr && (!limit || i < limit); i++)
		json_array_append_new(list, json_row(&row[i], all_ns, column, hosts));
	return list;
}

void report_top_json_tables(json_t *to, const struct live_window *w, size_t limit, bool hosts)
{
	json_object_set_new(to, "nr_states", base_json_u64(w->nr_states));
	json_object_set_new(to, "states",
		json_rows(w->state, w->nr_states, w->path_ns, limit, COLUMN_state, hosts));
	json_object_set_new(to, "processes",
		json_rows(w->process, w->nr_processes, w->path_ns, limit, COLUMN_process, hosts));
	json_object_set_new(to, "connections",
		json_rows(w->connection, w->nr_connections, w->path_ns, limit, COLUMN_connection,
			hosts));
}

json_t *report_top_json(const struct live_window *w, const struct report_top_head *head)
{
	struct base_str finding = {0};
	report_top_finding(&finding, w);
	json_t *j = json_pack("{s:s, s:s, s:o, s:o, s:o}", "schema", "longpole/top/1", "tool",
		"longpole " LONGPOLE_VERSION, "host", top_clean(head->host), "what",
		top_clean(head->what), "finding", top_clean(base_str_text(&finding)));
	base_str_fini(&finding);
	if (!j)
		return NULL;
	json_object_set_new(j, "window", base_json_u64(w->number));
	json_object_set_new(j, "from_ns", base_json_u64(w->from_ns));
	json_object_set_new(j, "to_ns", base_json_u64(w->to_ns));
	json_object_set_new(j, "origin_unix_ns", base_json_u64(head->origin_unix_ns));
	json_object_set_new(j, "paths", json_integer(w->nr_paths));
	json_object_set_new(j, "asleep", json_integer(w->nr_asleep));
	json_object_set_new(j, "path_ns", report_json_ns(w->path_ns));
	json_object_set_new(j, "unexplained_ns", report_json_ns(w->unexplained_ns));
	json_object_set_new(j, "explained_share",
		report_json_share(w->path_ns > 0 ? 1 - w->unexplained_ns / w->path_ns : 1));
	json_object_set_new(j, "records", base_json_u64(w->nr_records));
	json_object_set_new(j, "lost_records", base_json_u64(w->nr_lost));
	json_object_set_new(j, "late_records", base_json_u64(w->nr_late));
	json_object_set_new(j, "hindsight_windows", json_integer(w->hindsight));
	json_object_set_new(j, "to_the_end", json_boolean(w->to_the_end));
	json_object_set_new(j, "fresh_model", json_boolean(w->fresh));
	report_top_json_tables(j, w, head->limit, false);
	return j;
}

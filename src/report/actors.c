/* SPDX-License-Identifier: Apache-2.0 */
/* actors.c - what each thread and state machine did: active, waiting, ready without a processor and
 * who had it; its states and their functions (seed 000, sections 5.7 and 5.1.4). */
#include "report/private.h"

#include <stdlib.h>
#include <string.h>

/* ---- building -------------------------------------------------------------------------------- */

struct actors_build {
	struct report_actors *out;
	struct model *m;
	const char *pattern;
	bool groups;
	struct base_map rows;   /* number of the row's name -> row */
	uint32_t *row_of;       /* by actor; REPORT_NONE: not shown */
	struct base_map states; /* (row, state's identity and place) -> state row */
	struct base_map waits;  /* (row, number of its holder's name) -> index */
	size_t *state_capacity, *ready_capacity; /* by row */
};

static enum base_status make_row(struct actors_build *b, uint32_t actor)
{
	const struct model_actor *a = model_actor(b->m, actor);
	const char *name = b->groups ? a->group : a->name;
	uint32_t text = b->groups ? a->group_text : a->name_text;
	uint64_t row;
	b->row_of[actor] = REPORT_NONE;
	if (a->kind == MODEL_ACTOR_meeting)
		return BASE_OK;
	if (b->pattern && !report_pattern_matches(b->pattern, a->name) &&
		!report_pattern_matches(b->pattern, a->group))
		return BASE_OK;
	if (!base_map_get(&b->rows, 0, text, &row)) {
		row = b->out->nr_actors;
		enum base_status s = base_map_put(&b->rows, 0, text, row);
		if (s != BASE_OK)
			return s;
	}
	struct report_actor *r = &b->out->actor[row];
	b->row_of[actor] = (uint32_t)row;
	if (!r->name) {
		r->name = report_clean(b->out->arena, name);
		r->is_thread = a->kind == MODEL_ACTOR_thread;
		r->cgroup = report_clean(b->out->arena, a->cgroup ? a->cgroup : "");
		b->out->nr_actors++;
	} else if (r->cgroup && strcmp(r->cgroup, a->cgroup ? a->cgroup : "") != 0) {
		r->cgroup = "several";
	}
	r->nr_members++;
	return r->name && r->cgroup ? BASE_OK : BASE_ERR_NOMEM;
}

static enum base_status find_state(
	struct actors_build *b, uint32_t row, uint32_t state, struct report_actor_state **ret)
{
	const struct model_state *st = model_state(b->m, state);
	struct report_actor *r = &b->out->actor[row];
	uint64_t ix, what = (uint64_t)st->identity << 32 | st->where_text;
	if (!base_map_get(&b->states, row, what, &ix)) {
		enum base_status s = base_grow(
			&r->state, &b->state_capacity[row], r->nr_states + 1, sizeof *r->state);
		if (s == BASE_OK)
			s = base_map_put(&b->states, row, what, r->nr_states);
		if (s != BASE_OK)
			return s;
		ix = r->nr_states++;
		r->state[ix] = (struct report_actor_state){
			.kind = st->kind,
			/* (the path follows those of ours: elsewhere only the rest has this name)
			 */
			.name = st->kind == MODEL_STATE_runnable && !b->out->trace.process
					? "ready, without a processor"
					: report_clean(b->out->arena, st->name),
			.where = report_clean(b->out->arena, st->where),
			.state = state,
		};
		if (!r->state[ix].name || !r->state[ix].where)
			return BASE_ERR_NOMEM;
	}
	*ret = &r->state[ix];
	return BASE_OK;
}

/* Three or fewer of the functions that the processor was in; of the first of equal states. */
static enum base_status add_state_functions(
	struct actors_build *b, struct report_actor_state *s, uint32_t state)
{
	size_t nr;
	const struct model_function_share *f = model_functions(b->m, state, &nr);
	if (s->nr_functions || model_state_kind_waits(s->kind))
		return BASE_OK;
	for (size_t i = 0; i < nr && i < REPORT_FUNCTIONS_MAX; i++)
		if (report_function_add(&s->function[s->nr_functions++], b->out->arena, b->m, &f[i],
			    1) != BASE_OK)
			return BASE_ERR_NOMEM;
	report_functions_finish(s->function, s->nr_functions, 1);
	return BASE_OK;
}

static enum base_status actors_add_total(struct actors_build *b, const struct graph_state_totals *t)
{
	uint32_t row = b->row_of[t->actor];
	const struct model_state *st = model_state(b->m, t->state);
	uint64_t away = model_away_ns(b->m, t->actor, t->state);
	uint64_t total = t->total_ns > away ? t->total_ns - away : 0;
	if (row == REPORT_NONE || st->kind == MODEL_STATE_idle || (!total && !t->visits))
		return BASE_OK;
	struct report_actor_state *s = NULL;
	enum base_status status = find_state(b, row, t->state, &s);
	if (status != BASE_OK || !s)
		return status;
	struct report_actor *r = &b->out->actor[row];
	uint64_t waiting = model_state_kind_waits(st->kind) ? total : t->waiting_ns;
	waiting = waiting > total ? total : waiting;
	bool ready = st->kind == MODEL_STATE_runnable;
	s->total_ns += total;
	s->visits += t->visits;
	r->total_ns += total;
	r->ready_ns += ready ? total : 0;
	r->waiting_ns += ready ? 0 : waiting;
	r->active_ns += total - waiting;
	return add_state_functions(b, s, t->state);
}

static enum base_status actors_add_path(struct actors_build *b, const struct graph_path_state *p)
{
	uint32_t row = b->row_of[p->actor];
	struct report_actor_state *s = NULL;
	if (row == REPORT_NONE)
		return BASE_OK;
	b->out->actor[row].path_ns += p->path_ns;
	if (model_state(b->m, p->state)->kind == MODEL_STATE_latency)
		return BASE_OK; /* a hand-off is no state that anybody is in */
	enum base_status status = find_state(b, row, p->state, &s);
	if (status == BASE_OK && s)
		s->path_ns += p->path_ns;
	return status;
}

static enum base_status add_ready(struct actors_build *b, const struct model_processor_wait *w)
{
	uint32_t row = b->row_of[w->waiting], text = REPORT_NONE;
	const char *name = "programs that were not recorded";
	if (row == REPORT_NONE)
		return BASE_OK;
	if (w->had != MODEL_OTHERS) {
		const struct model_actor *had = model_actor(b->m, w->had);
		name = b->groups ? had->group : had->name;
		text = b->groups ? had->group_text : had->name_text;
	}
	struct report_actor *r = &b->out->actor[row];
	uint64_t ix;
	if (!base_map_get(&b->waits, row, text, &ix)) {
		enum base_status s =
			base_grow(&r->had, &b->ready_capacity[row], r->nr_had + 1, sizeof *r->had);
		if (s == BASE_OK)
			s = base_map_put(&b->waits, row, text, r->nr_had);
		if (s != BASE_OK)
			return s;
		ix = r->nr_had++;
		r->had[ix] = (struct report_had){.name = report_clean(b->out->arena, name)};
		if (!r->had[ix].name)
			return BASE_ERR_NOMEM;
	}
	r->had[ix].wait_ns += w->wait_ns;
	r->had[ix].nr += w->nr;
	return BASE_OK;
}

static int by_state_time(const void *pa, const void *pb)
{
	const struct report_actor_state *a = pa, *b = pb;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	int c = strcmp(a->name, b->name);
	return c ? c : strcmp(a->where, b->where);
}

static int by_had_time(const void *pa, const void *pb)
{
	const struct report_had *a = pa, *b = pb;
	if (a->wait_ns != b->wait_ns)
		return a->wait_ns > b->wait_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int by_actor_path(const void *pa, const void *pb)
{
	const struct report_actor *a = pa, *b = pb;
	if (a->path_ns != b->path_ns)
		return a->path_ns > b->path_ns ? -1 : 1;
	if (a->active_ns != b->active_ns)
		return a->active_ns > b->active_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void sort_all(struct report_actors *out)
{
	size_t nr = 0;
	for (size_t i = 0; i < out->nr_actors; i++) {
		struct report_actor *r = &out->actor[i];
		if (r->nr_states)
			qsort(r->state, r->nr_states, sizeof *r->state, by_state_time);
		if (r->nr_had)
			qsort(r->had, r->nr_had, sizeof *r->had, by_had_time);
	}
	for (size_t i = 0; i < out->nr_actors; i++) /* an actor that never did anything is not
						       shown */
		if (out->actor[i].total_ns || out->actor[i].path_ns > 0) {
			struct report_actor keep = out->actor[nr];
			out->actor[nr++] = out->actor[i];
			out->actor[i] = keep;
		}
	out->nr_empty = out->nr_actors - nr;
	if (nr)
		qsort(out->actor, nr, sizeof *out->actor, by_actor_path);
}

static enum base_status actors_fill_all(struct actors_build *b, struct base_err *err)
{
	struct graph *g = model_graph(b->m);
	uint32_t nr = graph_nr_actors(g);
	struct graph_lane_result lane;
	const struct graph_state_totals *totals;
	size_t nr_totals, nr_waits;
	enum base_status s = graph_lane(g, 0, &lane, err);
	if (s == BASE_OK)
		s = graph_totals(g, &totals, &nr_totals, err);
	if (s != BASE_OK)
		return s;
	b->out->elapsed_ns = (double)(lane.end_ns - lane.start_ns);
	for (uint32_t i = 0; s == BASE_OK && i < nr; i++)
		s = make_row(b, i);
	if (s == BASE_OK && b->pattern && !b->out->nr_actors)
		return base_fail(err, BASE_ERR_NOTFOUND,
			"no actor of this trace matches '%s'; 'longpole actors --all' lists them",
			b->pattern);
	for (size_t i = 0; s == BASE_OK && i < nr_totals; i++)
		s = actors_add_total(b, &totals[i]);
	for (size_t i = 0; s == BASE_OK && i < lane.nr_states; i++)
		s = actors_add_path(b, &lane.state[i]);
	const struct model_processor_wait *w = model_processor_waits(b->m, &nr_waits);
	for (size_t i = 0; s == BASE_OK && i < nr_waits; i++)
		s = add_ready(b, &w[i]);
	if (s != BASE_OK)
		return report_no_memory(err);
	sort_all(b->out);
	return s;
}

static enum base_status actors_fill(struct report_actors *out, struct model *m,
	const struct report_actors_options *opts, struct base_err *err)
{
	uint32_t nr = graph_nr_actors(model_graph(m));
	struct actors_build b = {
		.out = out,
		.m = m,
		.pattern = opts->pattern,
		.groups = opts->groups,
		.row_of = base_alloc(((size_t)nr + 1) * sizeof *b.row_of),
		.state_capacity = base_alloc(((size_t)nr + 1) * sizeof *b.state_capacity),
		.ready_capacity = base_alloc(((size_t)nr + 1) * sizeof *b.ready_capacity),
	};
	out->actor = report_array(out->arena, nr, sizeof *out->actor);
	bool room = b.row_of && b.state_capacity && b.ready_capacity && out->actor;
	enum base_status s = room ? actors_fill_all(&b, err) : report_no_memory(err);
	base_map_fini(&b.rows);
	base_map_fini(&b.states);
	base_map_fini(&b.waits);
	base_free(b.row_of);
	base_free(b.state_capacity);
	base_free(b.ready_capacity);
	return s;
}

enum base_status report_actors_build(const struct report_run *run,
	const struct report_actors_options *opts, struct report_actors **ret, struct base_err *err)
{
	struct report_pass_options plain = {0};
	struct model *m = NULL;
	struct report_actors *a = report_answer_new(sizeof *a);
	if (!a)
		return report_no_memory(err);
	enum base_status s = report_pass(run, "looking at who does what", &plain, &m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&a->trace, a->arena, run, m, err);
	if (s == BASE_OK)
		s = actors_fill(a, m, opts, err);
	model_free(m);
	if (s != BASE_OK)
		report_actors_free(a);
	else
		*ret = a;
	return s;
}

struct report_actors *report_actors_free(struct report_actors *a)
{
	if (!a)
		return NULL;
	for (size_t i = 0; i < a->nr_actors; i++) {
		base_free(a->actor[i].state);
		base_free(a->actor[i].had);
	}
	return report_answer_free(a);
}

/* ---- text ------------------------------------------------------------------------------------ */

static double actors_share_of(double part, double all)
{
	return all > 0 ? part / all : 0;
}

static void actors_add_part(struct base_str *s, const struct report_style *st, const char *what,
	double part, double all)
{
	base_str_addf(s, "%s%s ", report_dot(st), what);
	report_percent(s, actors_share_of(part, all));
}

static void actors_heading(struct base_str *out, const struct report_style *st,
	const struct report_actors *all, const struct report_actor *a)
{
	struct base_str s = {0}, label = {0};
	double total = (double)a->total_ns;
	report_ns(&s, total);
	actors_add_part(&s, st, "active", (double)a->active_ns, total);
	actors_add_part(&s, st, "waiting", (double)a->waiting_ns, total);
	actors_add_part(&s, st, "ready", (double)a->ready_ns, total);
	base_str_add(&s, report_dot(st));
	report_percent(&s, actors_share_of(a->path_ns, all->elapsed_ns));
	base_str_add(&s, " of the critical path");
	if (*a->cgroup && strcmp(a->cgroup, "/") != 0)
		base_str_addf(&s, "%scgroup %s", report_dot(st), a->cgroup);
	base_str_add(&label, a->name);
	if (a->nr_members > 1)
		base_str_addf(
			&label, " %s%llu", report_times(st), (unsigned long long)a->nr_members);
	base_str_add(&label, "  ");
	report_wrap(out, st, base_str_text(&label), 6, base_str_text(&s));
	base_str_fini(&label);
	base_str_fini(&s);
}

struct actors_of {
	const struct report_actors *all;
	const struct report_actor *actor;
};
#include "report/actors.def"

static void state_line(struct base_str *out, const struct report_style *st,
	const struct base_layout *l, const struct report_actor_state *s)
{
	size_t numbers = base_layout_width(l) + 2;
	struct base_str cell = {0};
	base_layout_cells(out, l, s);
	base_str_addf(&cell, "%s%s%s", s->name, *s->where ? "  " : "", s->where);
	base_str_add(out, "  ");
	report_cell(out, st, base_str_text(&cell),
		st->columns > numbers + 20 ? st->columns - numbers : 20, false);
	base_str_add(out, "\n");
	base_str_fini(&cell);
	report_functions_text(out, st, s->function, s->nr_functions, numbers + 2);
}

static void actors_state_lines(struct base_str *out, const struct report_style *st,
	const struct report_actors *all, const struct report_actor *a, size_t limit)
{
	struct base_layout l = {
		.table = &actors_state, .all = &(struct actors_of){all, a}, .utf8 = st->utf8};
	size_t nr = limit && limit < a->nr_states ? limit : a->nr_states;
	report_color_begin(out, st, REPORT_DIM);
	base_layout_titles(out, &l);
	base_str_add(out, "  state");
	report_color_end(out, st);
	base_str_add(out, "\n");
	for (size_t i = 0; i < nr; i++)
		state_line(out, st, &l, &a->state[i]);
	if (nr < a->nr_states) {
		base_str_add_blanks(out, base_layout_width(&l) + 2);
		base_str_add_counted(out, "... %s more {state|states}\n", a->nr_states - nr);
	}
}

/* Seed 000, section 5.1.4: otherwise ready, but waiting for the shared processor. */
static void ready_lines(
	struct base_str *out, const struct report_style *st, const struct report_actor *a)
{
	enum { SHOWN = 3 };
	struct base_str s = {0};
	if (!a->nr_had)
		return;
	base_str_add(&s, "while the processor ran ");
	for (size_t i = 0; i < a->nr_had && i < SHOWN; i++) {
		base_str_addf(&s, "%s%s ", i ? ", " : "", a->had[i].name);
		base_str_add_ns(&s, a->had[i].wait_ns);
	}
	if (a->nr_had > SHOWN)
		base_str_addf(&s, ", %zu more", a->nr_had - SHOWN);
	report_wrap(out, st, "  ready", 8, base_str_text(&s));
	base_str_fini(&s);
}

void report_actors_text(struct base_str *out, const struct report_actors *all,
	const struct report_actors_options *opts, const struct report_style *style)
{
	size_t shown = all->nr_actors - all->nr_empty;
	size_t nr = opts->limit && opts->limit < shown ? opts->limit : shown;
	for (size_t i = 0; i < nr; i++) {
		const struct report_actor *a = &all->actor[i];
		actors_heading(out, style, all, a);
		actors_state_lines(out, style, all, a, opts->nr_states);
		ready_lines(out, style, a);
	}
	if (nr < shown)
		base_str_addf(out, "... %zu more (--all shows them)\n", shown - nr);
	report_trace_text_caveats(out, &all->trace, style);
}

json_t *report_actors_json(const struct report_actors *all)
{
	return report_envelope(report_actors_document.name, &all->trace,
		base_table_json(&report_actors_document, all, all, 0));
}

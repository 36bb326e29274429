/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - struct report: rows of the path, the runner-up; the rest is asked of its neighbours. */
#include "model/findings.h"
#include "report/private.h"
#include "symbol/symbol.h"

#include <stdlib.h>
#include <string.h>

const unsigned report_level_percent[REPORT_LEVELS] = {10, 25, 50, 100};

#define SINGLE_ACTOR_SHARE 0.9 /* of a row: from here on the row is that instance's */

/* ---- rows ------------------------------------------------------------------------------------ */

struct row_functions { /* function shares of a row's states, weighted by their path time */
	struct report_function *function;
	size_t nr, capacity;
	double weight_ns;
};
struct rows {
	struct report *r;
	struct model *m;
	const struct report_index *ix;
	struct base_map by_key;          /* (group, topic; where) -> row */
	struct row_functions *functions; /* by row */
	struct report_row *row;
	struct actor_shares {
		struct base_map by; /* (row or topic, actor) -> share */
		struct actor_share {
			double path_ns;
			uint32_t of, actor;
		} * share;
		size_t nr, capacity;
	} in_row, in_topic;
	size_t nr, capacity, functions_capacity;
	double unnamed_most; /* of one function without a name: its share */
};
/* The actors: one of them, or how many. */
struct actors {
	const struct actor_share *most;
	double path_ns; /* of all */
	uint32_t nr;
};

static enum base_status build_find_row(
	struct rows *w, const struct graph_path_state *p, size_t *ret, struct base_err *err)
{
	const struct model_state *st = model_state(w->m, p->state);
	const struct model_actor *ac = model_actor(w->m, p->actor);
	uint32_t topic = p->state < w->ix->nr_states ? w->ix->topic_of[p->state] : 0;
	uint64_t hi = (uint64_t)ac->group_ix << 32 | topic, found;
	if (base_map_get(&w->by_key, hi, st->where_text, &found)) {
		*ret = (size_t)found;
		return BASE_OK;
	}
	enum base_status s = base_grow(&w->row, &w->capacity, w->nr + 1, sizeof *w->row);
	if (s == BASE_OK)
		s = base_grow(
			&w->functions, &w->functions_capacity, w->nr + 1, sizeof *w->functions);
	if (s == BASE_OK)
		s = base_map_put(&w->by_key, hi, st->where_text, w->nr);
	struct base_arena *a = w->r->arena;
	struct report_row row = {
		.kind = st->kind,
		.cause = st->cause,
		.state = report_clean(a, st->name),
		.what = report_clean(a, st->what),
		.where = report_clean(a, st->where),
		.group = report_clean(a, ac->group),
		.topic = topic,
	};
	if (s != BASE_OK || !row.state || !row.what || !row.where || !row.group)
		return base_fail(err, s == BASE_OK ? BASE_ERR_NOMEM : s,
			"out of memory for the report's rows");
	w->row[w->nr] = row;
	*ret = w->nr++;
	return BASE_OK;
}

static enum base_status build_add_function(struct rows *w, struct row_functions *f,
	const struct model_function_share *share, double weight_ns)
{
	size_t i = 0;
	/* (only what has no name is told apart by its file) */
	while (i < f->nr &&
		(strcmp(f->function[i].name, share->function) != 0 ||
			(!*share->function && strcmp(f->function[i].where, share->where) != 0)))
		i++;
	if (i == f->nr) {
		enum base_status s =
			base_grow(&f->function, &f->capacity, f->nr + 1, sizeof *f->function);
		if (s != BASE_OK)
			return s;
		f->function[f->nr++] = (struct report_function){0};
	}
	return report_function_add(&f->function[i], w->r->arena, w->m, share, weight_ns);
}

/* Only the first functions of each state: a long tail would cost much and never be shown. */
static enum base_status build_add_functions(
	struct rows *w, size_t row, const struct graph_path_state *p, double running_ns)
{
	enum { LOOK_AT = 8 };
	size_t nr;
	const struct model_function_share *share = model_functions(w->m, p->state, &nr);
	if (!nr || running_ns <= 0)
		return BASE_OK;
	struct row_functions *f = &w->functions[row];
	f->weight_ns += running_ns;
	for (size_t i = 0; i < nr && i < LOOK_AT; i++) {
		enum base_status s = build_add_function(w, f, &share[i], running_ns);
		if (s != BASE_OK)
			return s;
	}
	return BASE_OK;
}

static int build_by_path_ns(const void *a, const void *b)
{
	const struct report_row *x = a, *y = b;
	if (x->path_ns != y->path_ns)
		return x->path_ns < y->path_ns ? 1 : -1;
	int c = strcmp(x->state, y->state);
	c = c ? c : strcmp(x->group, y->group);
	return c ? c : strcmp(x->where, y->where);
}

static enum base_status build_add_actor(
	struct actor_shares *in, uint32_t of, const struct graph_path_state *p)
{
	uint64_t i;
	if (!base_map_get(&in->by, of, p->actor, &i)) {
		enum base_status s =
			base_grow(&in->share, &in->capacity, in->nr + 1, sizeof *in->share);
		if (s != BASE_OK)
			return s;
		i = in->nr++;
		in->share[i] = (struct actor_share){.of = of, .actor = p->actor};
		s = base_map_put(&in->by, of, p->actor, i);
		if (s != BASE_OK)
			return s;
	}
	in->share[i].path_ns += p->path_ns;
	return BASE_OK;
}

/* nr: rows or topics. NULL: no memory. */
static struct actors *build_sum_actors(
	const struct rows *w, const struct actor_shares *in, size_t nr)
{
	struct actors *a = report_array(w->r->arena, nr, sizeof *a);
	for (size_t i = 0; a && i < in->nr; i++) {
		const struct actor_share *share = &in->share[i];
		struct actors *of = &a[share->of];
		of->nr++;
		of->path_ns += share->path_ns;
		if (!of->most || share->path_ns > of->most->path_ns)
			of->most = share;
	}
	return a;
}

/* The one that nearly all of it is of; else false. */
static bool is_one(const struct actors *a)
{
	return a->nr == 1 || a->most->path_ns >= SINGLE_ACTOR_SHARE * a->path_ns;
}

/* What it was without a processor in calls of which the state only says that they went on. */
static double away_in_call_ns(const struct model *m, const struct graph_path_state *p)
{
	const struct model_state *st = model_state(m, p->state);
	double called_ns = p->path_ns - p->unexplained_ns - p->latency_ns;
	return st->call_ns ? called_ns * (double)st->away_ns / (double)st->call_ns : 0;
}

static enum base_status build_add_path_state(
	struct rows *w, const struct graph_path_state *p, struct base_err *err)
{
	size_t i = 0;
	enum base_status s = build_find_row(w, p, &i, err);
	if (s != BASE_OK || !w->row)
		return s;
	struct report_row *row = &w->row[i];
	double aside_ns = p->unexplained_ns + p->latency_ns;
	bool waits = model_state_kind_waits(row->kind) || aside_ns > p->path_ns;
	double waiting_ns = waits ? p->path_ns : aside_ns + away_in_call_ns(w->m, p);
	row->path_ns += p->path_ns;
	if (w->r->elapsed_ns > 0)
		w->r->timed_share +=
			p->path_ns * model_state_timed_share(w->m, p->state) / w->r->elapsed_ns;
	row->waiting_ns += waiting_ns;
	row->unexplained_ns += p->unexplained_ns;
	row->visits += p->visits;
	w->r->unexplained_ns += p->unexplained_ns;
	s = build_add_actor(&w->in_row, (uint32_t)i, p);
	if (s == BASE_OK)
		s = build_add_actor(&w->in_topic, row->topic, p);
	if (s == BASE_OK)
		s = build_add_functions(w, i, p, p->path_ns - waiting_ns);
	return s == BASE_OK ? s : report_no_memory(err);
}

static const char *build_name_actor(const struct rows *w, const struct actors *a)
{
	return report_clean(w->r->arena, model_actor(w->m, a->most->actor)->name);
}

/* Functions that have no name but their file's, with an address. */
static bool build_add_unnamed(struct rows *w, const struct row_functions *f)
{
	struct report *r = w->r;
	for (size_t i = 0; i < f->nr && r->elapsed_ns > 0; i++) {
		size_t length = symbol_made_up(f->function[i].name);
		double share = f->function[i].share * f->weight_ns / r->elapsed_ns;
		if (!length)
			continue;
		r->unnamed.share += share;
		if (share <= w->unnamed_most)
			continue;
		w->unnamed_most = share;
		r->unnamed.file = base_arena_strndup(r->arena, f->function[i].name, length);
		if (!r->unnamed.file)
			return false;
	}
	return true;
}

static enum base_status finish_row(struct rows *w, size_t i, const struct actors *in_row,
	const struct actors *in_topic, struct base_err *err)
{
	struct report_row *row = &w->row[i];
	struct row_functions *f = &w->functions[i];
	struct base_str name = {0};
	row->share = w->r->elapsed_ns > 0 ? row->path_ns / w->r->elapsed_ns : 0;
	row->waiting_share = row->path_ns > 0 ? row->waiting_ns / row->path_ns : 0;
	row->nr_actors = in_row->nr;
	row->nr_topic_actors = in_topic->nr;
	row->topic_actor = is_one(in_topic) ? build_name_actor(w, in_topic) : "";
	row->noun = model_actor_noun(w->m, in_topic->most->actor);
	if (is_one(in_row)) {
		row->actor = build_name_actor(w, in_row);
	} else {
		base_str_addf(&name, "%s \xc3\x97%u", row->group, row->nr_actors);
		row->actor = report_keep(w->r->arena, &name);
	}
	report_functions_finish(f->function, f->nr, f->weight_ns);
	/* (what is done under a lock that nobody waits for is called after a function, as what is
	 * done under none is) */
	row->main = report_functions_main(
		f->function, f->nr, row->kind == MODEL_STATE_hold ? 0.5 : REPORT_FUNCTION_ALL);
	for (size_t k = 0; k < f->nr && k < REPORT_FUNCTIONS_MAX; k++)
		row->function[row->nr_functions++] = f->function[k];
	if (!build_add_unnamed(w, f))
		return report_no_memory(err);
	return row->actor && row->topic_actor ? BASE_OK : report_no_memory(err);
}

static enum base_status build_finish_rows(struct rows *w, struct base_err *err)
{
	const struct actors *in_row = build_sum_actors(w, &w->in_row, w->nr);
	const struct actors *in_topic = build_sum_actors(w, &w->in_topic, w->ix->nr_topics);
	enum base_status s = in_row && in_topic ? BASE_OK : report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < w->nr; i++)
		s = finish_row(w, i, &in_row[i], &in_topic[w->row[i].topic], err);
	return s;
}

static enum base_status fill_rows(
	struct report *r, struct model *m, const struct report_index *ix, struct base_err *err)
{
	struct graph_lane_result lane = {0};
	struct rows w = {.r = r, .m = m, .ix = ix};
	enum base_status s = graph_lane(model_graph(m), 0, &lane, err);
	if (s == BASE_OK && !lane.found)
		s = report_no_path(err);
	if (s == BASE_OK) {
		r->start_ns = lane.start_ns;
		r->end_ns = lane.end_ns;
		r->elapsed_ns = lane.length_ns;
	}
	for (size_t i = 0; s == BASE_OK && i < lane.nr_states; i++)
		s = build_add_path_state(&w, &lane.state[i], err);
	if (s == BASE_OK)
		s = build_finish_rows(&w, err);
	if (s == BASE_OK) {
		r->explained_share = r->elapsed_ns > 0 ? 1 - r->unexplained_ns / r->elapsed_ns : 1;
		r->row = report_array(r->arena, w.nr, sizeof *r->row);
		if (!r->row)
			s = report_no_memory(err);
	}
	if (s == BASE_OK && w.nr && w.row) {
		memcpy(r->row, w.row, w.nr * sizeof *w.row);
		r->nr_rows = w.nr;
		qsort(r->row, r->nr_rows, sizeof *r->row, build_by_path_ns);
	}
	for (size_t i = 0; i < w.nr; i++)
		base_free(w.functions[i].function);
	base_free(w.functions);
	base_free(w.in_row.share);
	base_free(w.in_topic.share);
	base_free(w.row);
	base_map_fini(&w.in_row.by);
	base_map_fini(&w.in_topic.by);
	base_map_fini(&w.by_key);
	return s;
}

/* ---- the runner-up --------------------------------------------------------------------------- */

/* It is best told from the path by what it has more of. */
static enum base_status fill_runner_up(
	struct report *r, struct model *m, const struct report_index *ix, struct base_err *err)
{
	struct graph_lane_result lane;
	enum base_status s = graph_lane(model_graph(m), GRAPH_RUNNER_UP, &lane, err);
	if (s != BASE_OK || !lane.found)
		return s;
	double *path = report_array(r->arena, ix->nr_topics, sizeof *path);
	double *other = report_array(r->arena, ix->nr_topics, sizeof *other);
	double path_ns, other_ns;
	if (!path || !other)
		return report_no_memory(err);
	s = report_lane_topics(model_graph(m), ix, 0, path, NULL, &path_ns, err);
	if (s == BASE_OK)
		s = report_lane_topics(
			model_graph(m), ix, GRAPH_RUNNER_UP, other, NULL, &other_ns, err);
	if (s != BASE_OK)
		return s;
	for (uint32_t t = 0; t < ix->nr_topics; t++)
		other[t] -= path[t];
	uint32_t most = report_largest_topic(other, ix, REPORT_NONE);
	r->runner_up.found = true;
	r->runner_up.length_ns = other_ns;
	r->runner_up.state = "";
	if (most != REPORT_NONE) {
		r->runner_up.state =
			report_clean(r->arena, model_state(m, ix->first_state[most])->name);
		r->runner_up.more_ns = other[most];
	}
	return r->runner_up.state ? BASE_OK : report_no_memory(err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

enum base_status report_build(const struct report_run *run, const struct report_options *opts,
	struct report **ret, struct base_err *err)
{
	struct report_pass_options first = {.runner_up = true};
	struct report_predictor predictor = {0};
	struct report_shared_pass shared = {0};
	struct report_run with = report_sharing(run, &shared);
	struct model *m = NULL;
	struct report_index ix = {0};
	struct report *r = report_answer_new(sizeof *r);
	enum base_status s = BASE_OK;
	if (!r)
		return report_no_memory(err);
	run = &with;
	if (s == BASE_OK && (opts->nr_parts_max || opts->nr_opportunities_max))
		s = report_predictor_pass(
			&predictor, run, "finding the critical path", &first, &m, err);
	else if (s == BASE_OK)
		s = report_pass(run, "finding the critical path", &first, &m, err);
	if (s == BASE_OK)
		s = report_index_init(&ix, m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&r->trace, r->arena, run, m, err);
	if (s == BASE_OK) {
		size_t nr_findings;
		uint64_t nr_more;
		model_findings(m, &nr_findings, &nr_more);
		r->nr_annotation_findings = nr_findings + nr_more;
		s = fill_rows(r, m, &ix, err);
	}
	if (s == BASE_OK)
		s = report_fill_spins(&r->spins, r->arena, m, err);
	double polled_ns = 0;
	if (s == BASE_OK)
		s = report_polled_path_ns(&polled_ns, m, err);
	if (s == BASE_OK)
		s = report_fill_box(&r->box, r->arena, m, err);
	if (s == BASE_OK && r->elapsed_ns > 0)
		r->polled_share = polled_ns / r->elapsed_ns;
	if (s == BASE_OK)
		s = fill_runner_up(r, m, &ix, err);
	if (s == BASE_OK)
		s = report_fill_opportunities(
			r, &predictor, m, &ix, opts->nr_opportunities_max, err);
	if (s == BASE_OK)
		s = report_fill_parts(&r->parts, r->arena, run, m, &ix, err);
	if (s == BASE_OK)
		s = report_fill_imbalance(r, m, err);
	if (s == BASE_OK)
		s = report_describe_parts(r, m, &ix, err);
	if (s == BASE_OK)
		s = report_predict_parts(&r->parts, r->arena, &predictor, m, opts, err);
	if (s == BASE_OK)
		s = report_fill_finding(r, m, &ix, err);
	if (s == BASE_OK)
		s = report_fill_pole(r, err);
	report_predictor_fini(&predictor);
	report_index_fini(&ix);
	model_free(m);
	report_shared_pass_fini(&shared);
	if (s != BASE_OK)
		report_free(r);
	else
		*ret = r;
	return s;
}

struct report *report_free(struct report *r)
{
	return report_answer_free(r);
}

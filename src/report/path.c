/* SPDX-License-Identifier: Apache-2.0 */
/* path.c - the critical path step by step (seed 000, figure 5.2): cumulative time, increment, who,
 * what, through which queue. */
#include "report/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP_NONE UINT32_MAX

struct folding { /* names are made once an id, not once a step */
	struct report_path *p;
	struct model *m;
	const char **actor, **state, **where, **queue;
	size_t capacity;
	uint32_t last_actor, last_state;
};

static const char *name_once(struct folding *f, const char **cache, uint32_t id, const char *name)
{
	if (!cache[id])
		cache[id] = report_clean(f->p->arena, name);
	return cache[id];
}

/* Tokens of threads, processes and processors have no name of their own: the state says it all. */
static const char *path_queue_name(struct folding *f, uint32_t queue)
{
	if (queue == STEP_NONE || !model_queue(f->m, queue)->object)
		return "";
	return name_once(f, f->queue, queue, model_queue(f->m, queue)->name);
}

static bool begins_step(const struct folding *f, const struct graph_path_edge *e)
{
	return !f->p->nr_steps || e->actor != f->last_actor || e->state != f->last_state ||
	       (e->queue != STEP_NONE && e->from_actor != e->actor);
}

static enum base_status path_add_edge(
	struct folding *f, const struct graph_path_edge *e, struct base_err *err)
{
	struct report_path *p = f->p;
	if (begins_step(f, e)) {
		enum base_status s =
			base_grow(&p->step, &f->capacity, p->nr_steps + 1, sizeof *p->step);
		if (s != BASE_OK)
			return base_fail(err, s, "out of memory for %zu {step|steps} of the path",
				p->nr_steps);
		const struct model_state *st = model_state(f->m, e->state);
		struct report_step step = {
			.actor =
				name_once(f, f->actor, e->actor, model_actor(f->m, e->actor)->name),
			.state = name_once(f, f->state, e->state, st->name),
			.where = name_once(f, f->where, e->state, st->where),
			.queue = path_queue_name(f, e->queue),
			.kind = st->kind,
			.begin_ns = e->begin_ns,
		};
		if (!step.actor || !step.state || !step.where || !step.queue)
			return report_no_memory(err);
		p->step[p->nr_steps++] = step;
	}
	struct report_step *last = &p->step[p->nr_steps - 1];
	last->end_ns = e->end_ns;
	last->weight_ns += e->weight_ns;
	last->nr_edges++;
	f->last_actor = e->actor;
	f->last_state = e->state;
	return BASE_OK;
}

static enum base_status path_fold(struct report_path *p, struct model *m,
	const struct report_path_options *opts, struct base_err *err)
{
	struct graph *g = model_graph(m);
	const struct graph_path_edge *edge;
	size_t nr;
	struct graph_lane_result lane;
	enum base_status s = graph_lane(g, 0, &lane, err);
	if (s == BASE_OK && !lane.found)
		s = report_no_path(err);
	if (s == BASE_OK)
		s = graph_path(g, &edge, &nr, err);
	if (s != BASE_OK)
		return s;
	p->start_ns = lane.start_ns;
	p->end_ns = lane.end_ns;
	p->elapsed_ns = lane.length_ns;
	uint32_t nr_states = graph_nr_states(g);
	struct folding f = {.p = p, .m = m};
	f.actor = report_array(p->arena, graph_nr_actors(g), sizeof *f.actor);
	f.state = report_array(p->arena, nr_states, sizeof *f.state);
	f.where = report_array(p->arena, nr_states, sizeof *f.where);
	f.queue = report_array(p->arena, graph_nr_queues(g), sizeof *f.queue);
	if (!f.actor || !f.state || !f.where || !f.queue)
		return report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		if (edge[i].end_ns >= opts->from_ns &&
			(!opts->to_ns || edge[i].begin_ns < opts->to_ns))
			s = path_add_edge(&f, &edge[i], err);
	return s;
}

enum base_status report_path_build(const struct report_run *run,
	const struct report_path_options *opts, struct report_path **ret, struct base_err *err)
{
	struct report_pass_options pass = {.keep_path = true};
	struct model *m = NULL;
	struct report_path *p = report_answer_new(sizeof *p);
	if (!p)
		return report_no_memory(err);
	enum base_status s = report_pass(run, "finding the critical path", &pass, &m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&p->trace, p->arena, run, m, err);
	if (s == BASE_OK)
		s = path_fold(p, m, opts, err);
	model_free(m);
	if (s != BASE_OK)
		report_path_free(p);
	else
		*ret = p;
	return s;
}

struct report_path *report_path_free(struct report_path *p)
{
	if (p) {
		base_free(p->step);
		base_arena_free(p->arena);
	}
	base_free(p);
	return NULL;
}

/* ---- rendering ------------------------------------------------------------------------------- */

static int descending(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return *x < *y ? 1 : *x > *y ? -1 : 0;
}

/* Steps of less are gathered; *ret_ties of exactly that weight are still shown. No memory: all are
 * shown. */
static double least_shown_ns(const struct report_path *p, size_t limit, size_t *ret_ties)
{
	*ret_ties = SIZE_MAX;
	if (!limit || p->nr_steps <= limit)
		return -1;
	double *weight = base_alloc(p->nr_steps * sizeof *weight);
	if (!weight)
		return -1;
	for (size_t i = 0; i < p->nr_steps; i++)
		weight[i] = p->step[i].weight_ns;
	qsort(weight, p->nr_steps, sizeof *weight, descending);
	double least = weight[limit - 1];
	*ret_ties = 0;
	for (size_t i = 0; i < limit; i++)
		*ret_ties += weight[i] >= least && weight[i] <= least;
	base_free(weight);
	return least;
}

struct gap {
	size_t nr;
	double weight_ns;
};

static void path_column_ns(struct base_str *out, double ns, size_t width)
{
	struct base_str s = {0};
	report_ns(&s, ns);
	report_right(out, base_str_text(&s), width);
	base_str_fini(&s);
}

static void flush_gap(struct base_str *out, struct gap *g, double cumulative_ns)
{
	if (g->nr) {
		path_column_ns(out, cumulative_ns, 11);
		path_column_ns(out, g->weight_ns, 11);
		base_str_add_counted(out, "  ... %s shorter {step|steps}\n", g->nr);
	}
	*g = (struct gap){0};
}

static void step_line(struct base_str *out, const struct report_style *st,
	const struct report_step *s, double cumulative_ns)
{
	enum { ACTOR_WIDTH = 26 };
	path_column_ns(out, cumulative_ns, 11);
	path_column_ns(out, s->weight_ns, 11);
	base_str_add(out, "  ");
	report_cell(out, st, s->actor, ACTOR_WIDTH, true);
	base_str_addf(out, "  %s", s->state);
	if (*s->where)
		base_str_addf(out, ", %s", s->where);
	if (*s->queue && s->kind != MODEL_STATE_latency)
		base_str_addf(out, "  [%s]", s->queue);
	if (s->nr_edges > 1)
		base_str_addf(out, "  %s%llu", report_times(st), (unsigned long long)s->nr_edges);
	base_str_add(out, "\n");
}

void report_path_text(struct base_str *out, const struct report_path *p,
	const struct report_path_options *opts, const struct report_style *style)
{
	size_t ties;
	double least_ns = least_shown_ns(p, opts->limit, &ties), cumulative_ns = 0;
	struct gap gap = {0};
	base_str_add(out, "The critical path: ");
	report_ns(out, p->elapsed_ns);
	base_str_add(out, " in ");
	base_str_add_counted(out, "%s {step|steps}", p->nr_steps);
	if (opts->from_ns || opts->to_ns)
		base_str_add(out, " of the window asked for");
	if (least_ns >= 0)
		base_str_addf(out, ", of which the %zu longest are shown (--all shows each)",
			opts->limit);
	base_str_add(out, "\n");
	report_color_begin(out, style, REPORT_DIM);
	base_str_add(
		out, " cumulative  increment  who                         state, where  [through]");
	report_color_end(out, style);
	base_str_add(out, "\n");
	if (p->nr_steps)
		cumulative_ns = (double)(p->step[0].begin_ns - p->start_ns);
	for (size_t i = 0; i < p->nr_steps; i++) {
		const struct report_step *s = &p->step[i];
		bool tie = s->weight_ns <= least_ns;
		if (s->weight_ns < least_ns || (tie && !ties)) {
			gap.nr++;
			gap.weight_ns += s->weight_ns;
			cumulative_ns += s->weight_ns;
			continue;
		}
		ties -= tie;
		flush_gap(out, &gap, cumulative_ns);
		cumulative_ns += s->weight_ns;
		step_line(out, style, s, cumulative_ns);
	}
	flush_gap(out, &gap, cumulative_ns);
	report_trace_text_caveats(out, &p->trace, style);
}

struct path_step {
	struct report_step step;
	double cumulative_ns;
};
static json_t *path_steps_json(const struct report_path *p, const struct base_table *table)
{
	json_t *list = json_array();
	double cumulative_ns = p->nr_steps ? (double)(p->step[0].begin_ns - p->start_ns) : 0;
	for (size_t i = 0; i < p->nr_steps; i++) {
		cumulative_ns += p->step[i].weight_ns;
		struct path_step step = {p->step[i], cumulative_ns};
		json_array_append_new(list, base_table_json(table, &step, NULL, 0));
	}
	return list;
}

#include "report/path.def"

json_t *report_path_json(const struct report_path *p, const struct report_path_options *opts)
{
	return report_envelope(report_path_document.name, &p->trace,
		base_table_json(&report_path_document, p, opts, 0));
}

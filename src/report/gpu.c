/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.c - the critical path of steps on accelerators, by what the path is in: kernels, collective operations, copies,
 * launches, operators, synchronisation, loading of data. Each nanosecond of a step lies on the run's path in one place.
 */
#include "report/gpu.h"

#include "report/gpu_links.h"
#include "report/private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GPU_NO_WORK UINT32_MAX

struct gpu_build {
	struct report_gpu *out;
	const struct report_run *run;
	const struct report_gpu_options *opts;
	const struct trace_defs *defs;
	struct report_predictor predictor;
	struct model *m;
	uint32_t nr_states;
	uint32_t *work;   /* by state of the graph: index in defs->works; GPU_NO_WORK */
	uint32_t *row_of; /* by index in works: row; GPU_NO_WORK */
	struct base_map by_text, by_object;
	/* By defined state: how often it was entered, in all, and within steps. */
	uint64_t *entered, *entered_in_steps;
	size_t nr_open;                        /* steps, while the records are gone through */
	struct base_map by_rank;               /* -> index in met */
	struct report_gpu_rank *met, *met_all; /* within steps; in all */
	size_t nr_met, met_capacity, met_all_capacity;
	struct report_transfer *transfer; /* by defined state; of no bytes: none */
	struct report_links links;
};

static double gpu_share_of(const struct report_gpu_step *s, enum trace_work_type type)
{
	double length_ns = (double)(s->end_ns - s->begin_ns);
	return length_ns > 0 ? s->work_ns[type] / length_ns : 0;
}

static double gpu_rest_of(const struct report_gpu_step *s)
{
	return gpu_share_of(s, TRACE_WORK_other) + gpu_share_of(s, TRACE_WORK_idle);
}

static const char *gpu_work_text(enum trace_work_type type)
{
	static const char *const text[] = {
#define X(name, text) [TRACE_WORK_##name] = text,
		TRACE_WORKS(X)
#undef X
	};
	return type < TRACE_WORK_NR ? text[type] : "other";
}

/* ---- steps ----------------------------------------------------------------------------------- */

static enum base_status gpu_add_step(
	struct gpu_build *b, const struct trace_record *r, struct base_err *err)
{
	struct report_gpu *out = b->out;
	const char *name = trace_text_of(b->defs, r->u.step_begin.name);
	if (b->opts->step && !report_pattern_matches(b->opts->step, name))
		return BASE_OK;
	if (r->kind == TRACE_step_end) {
		for (size_t i = out->nr_steps; i--;) {
			struct report_gpu_step *s = &out->step[i];
			/* one may begin before the one before has ended */
			if (s->rank != r->u.step_end.rank || s->text != r->u.step_end.name ||
				s->end_ns > s->begin_ns)
				continue;
			s->end_ns = r->time_ns;
			b->nr_open -= b->nr_open > 0;
			break;
		}
		return BASE_OK;
	}
	/* steps of other ranks are the same steps */
	if (out->nr_steps && out->step[0].rank != r->u.step_begin.rank)
		return BASE_OK;
	if (base_grow(&out->step, &out->step_capacity, out->nr_steps + 1, sizeof *out->step) !=
		BASE_OK)
		return report_no_memory(err);
	out->step[out->nr_steps] = (struct report_gpu_step){.name = report_clean(out->arena, name),
		.rank = r->u.step_begin.rank,
		.text = r->u.step_begin.name,
		.begin_ns = r->time_ns,
		.end_ns = r->time_ns};
	b->nr_open++;
	return out->step[out->nr_steps++].name ? BASE_OK : report_no_memory(err);
}

/* A trace without steps is one. */
static enum base_status gpu_no_steps(struct gpu_build *b, struct base_err *err)
{
	struct report_gpu *out = b->out;
	if (b->opts->step)
		return base_fail(err, BASE_ERR_NOTFOUND, "no step of this trace matches '%s'",
			b->opts->step);
	if (base_grow(&out->step, &out->step_capacity, 1, sizeof *out->step) != BASE_OK)
		return report_no_memory(err);
	out->step[out->nr_steps++] = (struct report_gpu_step){.name = "the whole trace",
		.begin_ns = b->run->from_ns,
		.end_ns = b->run->to_ns ? b->run->to_ns : trace_reader_last_ns(b->run->reader)};
	return BASE_OK;
}

/* Of a rank; NULL: no memory. Both arrays have it at one place. */
static struct report_gpu_rank *gpu_met_of(struct gpu_build *b, uint64_t rank, bool all)
{
	uint64_t ix = b->nr_met;
	if (base_map_get(&b->by_rank, 0, rank, &ix))
		return all ? &b->met_all[ix] : &b->met[ix];
	if (base_grow(&b->met, &b->met_capacity, b->nr_met + 1, sizeof *b->met) != BASE_OK ||
		base_grow(&b->met_all, &b->met_all_capacity, b->nr_met + 1, sizeof *b->met_all) !=
			BASE_OK ||
		base_map_put(&b->by_rank, 0, rank, b->nr_met) != BASE_OK)
		return NULL;
	b->met[ix] = b->met_all[ix] = (struct report_gpu_rank){.rank = rank};
	b->nr_met++;
	return all ? &b->met_all[ix] : &b->met[ix];
}

static enum base_status gpu_meet(
	struct gpu_build *b, const struct trace_meet *t, bool all, struct base_err *err)
{
	struct report_gpu_rank *r = gpu_met_of(b, t->rank, all);
	if (!r)
		return report_no_memory(err);
	r->nr_meetings++;
	r->nr_last += t->rank == t->last;
	r->waits_ns += t->waited_ns;
	r = gpu_met_of(b, t->last, all);
	if (!r)
		return report_no_memory(err);
	r->waited_for_ns += t->waited_ns;
	return BASE_OK;
}

static void gpu_transfer(struct gpu_build *b, const struct trace_transfer *t)
{
	if (t->state < b->defs->nr_states)
		b->transfer[t->state] =
			(struct report_transfer){.operation = trace_text_of(b->defs, t->name),
				.bytes = (double)t->bytes,
				.ranks = (double)t->ranks};
}

/* Steps, and how often each state is entered. */
static enum base_status gpu_see(
	struct gpu_build *b, const struct trace_record *r, struct base_err *err)
{
	if (r->kind == TRACE_note_state && r->u.note_state.state < b->defs->nr_states) {
		b->entered[r->u.note_state.state]++;
		b->entered_in_steps[r->u.note_state.state] += b->nr_open > 0;
	}
	if (r->kind == TRACE_transfer)
		gpu_transfer(b, &r->u.transfer);
	if (r->kind == TRACE_meet) {
		enum base_status met = gpu_meet(b, &r->u.meet, true, err);
		return met == BASE_OK && b->nr_open ? gpu_meet(b, &r->u.meet, false, err) : met;
	}
	if (r->kind != TRACE_step_begin && r->kind != TRACE_step_end)
		return BASE_OK;
	return gpu_add_step(b, r, err);
}

static enum base_status gpu_find_steps(struct gpu_build *b, struct base_err *err)
{
	struct trace_batch batch;
	size_t nr = (size_t)b->defs->nr_states + 1;
	b->entered = report_array(b->out->arena, nr, sizeof *b->entered);
	b->entered_in_steps = report_array(b->out->arena, nr, sizeof *b->entered_in_steps);
	b->transfer = report_array(b->out->arena, nr, sizeof *b->transfer);
	if (!b->entered || !b->entered_in_steps || !b->transfer)
		return report_no_memory(err);
	enum base_status s = trace_reader_rewind(b->run->reader, err);
	while (s == BASE_OK && (s = trace_reader_next(b->run->reader, &batch, err)) == BASE_OK)
		for (size_t i = 0; i < batch.nr && s == BASE_OK; i++)
			s = gpu_see(b, &batch.record[i], err);
	if (s != BASE_END)
		return s;
	if (!b->out->nr_steps) {
		b->entered_in_steps = b->entered;
		return gpu_no_steps(b, err);
	}
	for (size_t i = 0; i < b->out->nr_steps; i++) /* one that a cut file does not end */
		if (b->out->step[i].end_ns == b->out->step[i].begin_ns)
			b->out->step[i].end_ns = trace_reader_last_ns(b->run->reader);
	return BASE_OK;
}

/* ---- the path -------------------------------------------------------------------------------- */

static enum base_status gpu_index_works(struct gpu_build *b, struct base_err *err)
{
	const struct trace_defs *d = b->defs;
	enum base_status s = BASE_OK;
	for (uint32_t i = 1; i < d->nr_works && s == BASE_OK; i++) {
		const struct trace_work *w = &d->works[i];
		if (w->object)
			s = base_map_put(&b->by_object, 0, w->object, i);
		else if (w->state && w->state < d->nr_states)
			s = base_map_put(&b->by_text, 0, d->states[w->state].name, i);
	}
	return s == BASE_OK ? s : report_no_memory(err);
}

/* The model numbers texts on its own: what a state stands for is found by its text, once. */
static enum base_status gpu_index_states(struct gpu_build *b, struct base_err *err)
{
	struct base_strtab *names = base_strtab_new();
	struct base_map works = {0};
	b->nr_states = graph_nr_states(model_graph(b->m));
	b->work = report_array(b->out->arena, (size_t)b->nr_states + 1, sizeof *b->work);
	b->row_of = report_array(b->out->arena, (size_t)b->defs->nr_works + 1, sizeof *b->row_of);
	enum base_status s = names && b->work && b->row_of ? BASE_OK : BASE_ERR_NOMEM;
	for (uint32_t i = 1; i < b->defs->nr_works && s == BASE_OK; i++) {
		const struct trace_work *w = &b->defs->works[i];
		const char *name = trace_text_of(b->defs,
			w->state < b->defs->nr_states ? b->defs->states[w->state].name : 0);
		uint32_t id = 0;
		b->row_of[i] = GPU_NO_WORK;
		if (w->object)
			continue;
		s = base_strtab_intern(names, name, strlen(name), &id);
		if (s == BASE_OK)
			s = base_map_put(&works, 0, id, i);
	}
	for (uint32_t i = 0; i < b->nr_states && s == BASE_OK; i++) {
		const struct model_state *st = model_state(b->m, i);
		uint64_t ix = GPU_NO_WORK;
		uint32_t id = 0;
		if (st->kind == MODEL_STATE_latency && st->object)
			(void)base_map_get(&b->by_object, 0, st->object, &ix);
		if (st->cause == MODEL_CAUSE_annotated_machine) {
			const char *name = model_text(b->m, st->argument[1].text);
			s = base_strtab_intern(names, name, strlen(name), &id);
			if (s == BASE_OK)
				(void)base_map_get(&works, 0, id, &ix);
		}
		b->work[i] = (uint32_t)ix;
	}
	base_strtab_free(names);
	base_map_fini(&works);
	return s == BASE_OK ? s : report_no_memory(err);
}

static enum trace_work_type gpu_type_of(const struct gpu_build *b, uint32_t state)
{
	uint32_t w = b->work[state];
	uint64_t type = w == GPU_NO_WORK ? TRACE_WORK_other : b->defs->works[w].type;
	return type < TRACE_WORK_NR ? (enum trace_work_type)type : TRACE_WORK_other;
}

static struct report_gpu_row *gpu_row_of(struct gpu_build *b, uint32_t state, size_t *capacity)
{
	uint32_t w = b->work[state];
	struct report_gpu *out = b->out;
	if (w == GPU_NO_WORK)
		return NULL;
	if (b->row_of[w] == GPU_NO_WORK) {
		if (base_grow(&out->row, capacity, out->nr_rows + 1, sizeof *out->row) != BASE_OK)
			return NULL;
		out->row[out->nr_rows] = (struct report_gpu_row){
			.name = report_clean(
				out->arena, trace_text_of(b->defs, b->defs->works[w].name)),
			.outer = b->defs->works[w].operator== b->defs->works[w].name
					 ? ""
					 : report_clean(
						   out->arena, trace_text_of(b->defs,
								       b->defs->works[w].operator)),
			.type = gpu_type_of(b, state),
			.visits = b->defs->works[w].state < b->defs->nr_states
					  ? b->entered_in_steps[b->defs->works[w].state]
					  : 0};
		b->row_of[w] = (uint32_t)out->nr_rows++;
	}
	return &out->row[b->row_of[w]];
}

static void gpu_clip(struct report_gpu_step *s, const struct graph_path_edge *e,
	enum trace_work_type type, double *ret_ns)
{
	uint64_t begin_ns = e->begin_ns > s->begin_ns ? e->begin_ns : s->begin_ns;
	uint64_t end_ns = e->end_ns < s->end_ns ? e->end_ns : s->end_ns;
	double ns = end_ns > begin_ns && e->weight_ns > 0 ? (double)(end_ns - begin_ns) : 0;
	s->work_ns[type] += ns;
	*ret_ns += ns;
}

static enum base_status gpu_fill_path(struct gpu_build *b, struct base_err *err)
{
	const struct graph_path_edge *edge = NULL;
	size_t nr = 0, capacity = 0, nr_totals = 0, at = 0;
	const struct graph_state_totals *totals = NULL;
	struct report_gpu *out = b->out;
	enum base_status s = graph_path(model_graph(b->m), &edge, &nr, err);
	if (s == BASE_OK)
		s = graph_totals(model_graph(b->m), &totals, &nr_totals, err);
	for (size_t i = 0; i < nr && s == BASE_OK; i++) {
		enum trace_work_type type = gpu_type_of(b, edge[i].state);
		double ns = 0, ignored = 0;
		while (at < out->nr_steps && out->step[at].end_ns <= edge[i].begin_ns)
			at++;
		for (size_t k = at; k < out->nr_steps && out->step[k].begin_ns < edge[i].end_ns;
			k++)
			gpu_clip(&out->step[k], &edge[i], type, &ignored);
		gpu_clip(&out->all, &edge[i], type, &ns);
		struct report_gpu_row *row =
			ns > 0 ? gpu_row_of(b, edge[i].state, &capacity) : NULL;
		if (row)
			row->path_ns += ns;
	}
	for (size_t i = 0; i < nr_totals && s == BASE_OK; i++) {
		const struct graph_state_totals *t = &totals[i];
		if (model_state_kind_waits(model_state(b->m, t->state)->kind) || !t->total_ns)
			continue;
		struct report_gpu_row *row = gpu_row_of(b, t->state, &capacity);
		if (row) {
			row->total_ns += t->total_ns - t->waiting_ns;
		}
	}
	return s;
}

static int gpu_by_path(const void *pa, const void *pb)
{
	const struct report_gpu_row *a = pa, *b = pb;
	if (a->path_ns != b->path_ns)
		return a->path_ns > b->path_ns ? -1 : 1;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	int c = strcmp(a->name, b->name);
	return c ? c : strcmp(a->outer, b->outer);
}

static int gpu_by_length(const void *pa, const void *pb)
{
	const double *a = pa, *b = pb;
	return *a < *b ? -1 : *a > *b;
}

static enum base_status gpu_finish(struct gpu_build *b, struct base_err *err)
{
	struct report_gpu *out = b->out;
	double length_ns = (double)(out->all.end_ns - out->all.begin_ns);
	double *step_ns = report_array(out->arena, out->nr_steps + 1, sizeof *step_ns);
	if (!step_ns)
		return report_no_memory(err);
	for (size_t i = 0; i < out->nr_rows; i++) {
		out->row[i].share = length_ns > 0 ? out->row[i].path_ns / length_ns : 0;
		if (!out->row[i].name || !out->row[i].outer)
			return report_no_memory(err);
	}
	if (out->nr_rows)
		qsort(out->row, out->nr_rows, sizeof *out->row, gpu_by_path);
	for (size_t i = 0; i < out->nr_steps; i++)
		step_ns[i] = (double)(out->step[i].end_ns - out->step[i].begin_ns);
	qsort(step_ns, out->nr_steps, sizeof *step_ns, gpu_by_length);
	out->least_ns = step_ns[0];
	out->median_ns = step_ns[out->nr_steps / 2];
	out->most_ns = step_ns[out->nr_steps - 1];
	out->explained_share = 1 - gpu_rest_of(&out->all);
	return BASE_OK;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static int gpu_by_waited_for(const void *pa, const void *pb)
{
	const struct report_gpu_rank *a = pa, *b = pb;
	if (a->waited_for_ns != b->waited_for_ns)
		return a->waited_for_ns > b->waited_for_ns ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static enum base_status gpu_fill_ranks(struct gpu_build *b, bool has_steps, struct base_err *err)
{
	struct report_gpu *out = b->out;
	out->rank = report_array(out->arena, b->nr_met + 1, sizeof *out->rank);
	if (!out->rank)
		return report_no_memory(err);
	out->nr_ranks = b->nr_met;
	if (b->nr_met)
		memcpy(out->rank, has_steps ? b->met : b->met_all, b->nr_met * sizeof *out->rank);
	if (b->nr_met)
		qsort(out->rank, b->nr_met, sizeof *out->rank, gpu_by_waited_for);
	return BASE_OK;
}

/* ---- changes --------------------------------------------------------------------------------- */

enum gpu_how {
	GPU_HOW_factor, /* all states of some sorts */
	GPU_HOW_links,  /* collectives, by their bytes */
	GPU_HOW_ring,   /* collectives, by their ranks; and the factor for the sorts */
	GPU_HOW_tree,
};

/* Each scales all states of some sorts; cuts: what goes through queues of that sort waits for nobody. */
static const struct gpu_change {
	const char *text;
	unsigned types, cuts; /* bits */
	double factor;
	enum gpu_how how;
	bool is_shared; /* the work of all ranks is shared by more: the factor is that of their numbers */
} gpu_changes[] = {
#define GPU_BIT(name) (1u << TRACE_WORK_##name)
	{"launches take no time (as in a CUDA graph)", GPU_BIT(launch) | GPU_BIT(gap), 0, 0,
		GPU_HOW_factor, false},
	{"communication is hidden, all of it", GPU_BIT(communication) | GPU_BIT(peer), 0, 0,
		GPU_HOW_factor, false},
	{"collectives overlap with all that follows on other streams", 0, GPU_BIT(communication), 0,
		GPU_HOW_factor, false},
	{"links are %g times as fast", GPU_BIT(communication), 0, 0, GPU_HOW_links, false},
	{"there are %g ranks on a ring, each with as much work as now", 0, 0, 1, GPU_HOW_ring,
		false},
	{"there are %g ranks on trees, each with as much work as now", 0, 0, 1, GPU_HOW_tree,
		false},
	{"%g ranks on a ring share the kernels' work", GPU_BIT(compute) | GPU_BIT(data), 0, 1,
		GPU_HOW_ring, true},
	{"%g ranks on trees share the kernels' work", GPU_BIT(compute) | GPU_BIT(data), 0, 1,
		GPU_HOW_tree, true},
	{"no thread synchronises with a stream", GPU_BIT(sync), GPU_BIT(sync), 0, GPU_HOW_factor,
		false},
	{"data are there at once", GPU_BIT(data), 0, 0, GPU_HOW_factor, false},
	{"copies take no time", GPU_BIT(copy), 0, 0, GPU_HOW_factor, false},
	{"the host is twice as fast", GPU_BIT(host) | GPU_BIT(launch) | GPU_BIT(data), 0, 0.5,
		GPU_HOW_factor, false},
	{"kernels take half as long", GPU_BIT(compute), 0, 0.5, GPU_HOW_factor, false},
#undef GPU_BIT
};
enum { GPU_LINKS_DEFAULT = 2 };

static struct report_transfer *gpu_transfer_of(const struct gpu_build *b, uint32_t state)
{
	uint32_t w = b->work[state];
	uint32_t defined = w == GPU_NO_WORK ? 0 : b->defs->works[w].state;
	struct report_transfer *t =
		defined && defined < b->defs->nr_states ? &b->transfer[defined] : NULL;
	return t && t->bytes > 0 ? t : NULL;
}

/* How long each collective takes, without waiting; from that, what steps and bytes cost. */
static enum base_status gpu_fit_links(struct gpu_build *b, struct base_err *err)
{
	const struct graph_state_totals *totals = NULL;
	size_t nr = 0, nr_found = 0;
	enum base_status s = graph_totals(model_graph(b->m), &totals, &nr, err);
	struct report_transfer *all = report_array(b->out->arena, nr + 1, sizeof *all);
	if (s != BASE_OK || !all)
		return s == BASE_OK ? report_no_memory(err) : s;
	for (size_t i = 0; i < nr; i++) {
		struct report_transfer *t = gpu_transfer_of(b, totals[i].state);
		if (!t || model_state_kind_waits(model_state(b->m, totals[i].state)->kind))
			continue;
		t->times = (double)b->entered[b->defs->works[b->work[totals[i].state]].state];
		t->mean_ns = t->times > 0 ? (double)(totals[i].total_ns - totals[i].waiting_ns) /
						    t->times
					  : 0;
		if (t->mean_ns > 0)
			all[nr_found++] = *t;
	}
	b->links = report_links_fit(all, nr_found);
	return BASE_OK;
}

/* The largest group is that of all ranks: it grows with them. */
static double gpu_nr_ranks(const struct gpu_build *b)
{
	double most = (double)b->nr_met;
	for (uint32_t i = 0; i < b->defs->nr_states; i++)
		if (b->transfer[i].ranks > most)
			most = b->transfer[i].ranks;
	return most;
}

/* False: the change leaves this state as it is. */
static bool gpu_factor(
	const struct gpu_build *b, const struct gpu_change *c, uint32_t state, double *ret)
{
	const struct report_transfer *t = gpu_transfer_of(b, state);
	double now = gpu_nr_ranks(b), then = (double)b->opts->ranks;
	double links = b->opts->links > 0 ? b->opts->links : GPU_LINKS_DEFAULT;
	bool is_meant = c->types >> gpu_type_of(b, state) & 1;
	*ret = c->is_shared ? now / then : c->factor;
	if (c->how == GPU_HOW_factor || !t)
		return is_meant && c->how != GPU_HOW_links;
	double share = report_links_share(&b->links, t);
	*ret = c->how == GPU_HOW_links
		       ? 1 - share + share / links
		       : report_links_ranks(&b->links, t, then, c->how == GPU_HOW_tree);
	return c->how == GPU_HOW_links || t->ranks >= now;
}

static bool gpu_is_asked(const struct gpu_build *b, const struct gpu_change *c)
{
	return (c->how != GPU_HOW_ring && c->how != GPU_HOW_tree) ||
	       (b->opts->ranks && gpu_nr_ranks(b) > 0);
}

static enum base_status gpu_edits_of(struct gpu_build *b, const struct gpu_change *c,
	struct graph_scenario *ret, struct base_err *err)
{
	uint32_t nr_queues = graph_nr_queues(model_graph(b->m));
	struct graph_edit *edit =
		report_array(b->out->arena, (size_t)b->nr_states + nr_queues + 1, sizeof *edit);
	if (!edit)
		return report_no_memory(err);
	*ret = (struct graph_scenario){.edit = edit};
	for (uint32_t i = 0; i < b->nr_states; i++) {
		double factor;
		if (b->work[i] != GPU_NO_WORK && gpu_factor(b, c, i, &factor))
			edit[ret->nr_edits++] = (struct graph_edit){
				.kind = GRAPH_EDIT_SCALE_STATE, .id = i, .factor = factor};
	}
	for (uint32_t i = 0; i < nr_queues; i++) {
		uint64_t ix;
		if (base_map_get(&b->by_object, 0, model_queue(b->m, i)->object, &ix) &&
			c->cuts >> b->defs->works[ix].type & 1)
			edit[ret->nr_edits++] =
				(struct graph_edit){.kind = GRAPH_EDIT_IGNORE_QUEUE, .id = i};
	}
	return BASE_OK;
}

static const char *gpu_change_text(struct gpu_build *b, const struct gpu_change *c)
{
	double links = b->opts->links > 0 ? b->opts->links : GPU_LINKS_DEFAULT;
	double n = c->how == GPU_HOW_links ? links : (double)b->opts->ranks;
	struct base_str text = {0};
	const char *number = strstr(c->text, "%g");
	if (number)
		base_str_addf(&text, "%.*s%g%s", (int)(number - c->text), c->text, n, number + 2);
	const char *said = number ? report_clean(b->out->arena, base_str_text(&text)) : c->text;
	base_str_fini(&text);
	return said;
}

static enum base_status gpu_predict(
	struct gpu_build *b, const struct report_run *run, struct base_err *err)
{
	struct graph_scenario lane[BASE_COUNT(gpu_changes)];
	unsigned which[BASE_COUNT(gpu_changes)], nr = 0;
	struct model *m = NULL;
	struct graph_lane_result r;
	enum base_status s = gpu_fit_links(b, err);
	b->out->change =
		report_array(b->out->arena, BASE_COUNT(gpu_changes), sizeof *b->out->change);
	if (!b->out->change)
		return report_no_memory(err);
	for (unsigned i = 0; s == BASE_OK && i < BASE_COUNT(gpu_changes); i++) {
		if (!gpu_is_asked(b, &gpu_changes[i]))
			continue;
		s = gpu_edits_of(b, &gpu_changes[i], &lane[nr], err);
		if (s == BASE_OK && lane[nr].nr_edits)
			which[nr++] = i;
	}
	struct report_pass_options pass = {.scenario = lane, .nr_scenarios = nr};
	if (s == BASE_OK && nr)
		s = report_predictor_ready(&b->predictor, b->m, nr, err);
	if (s == BASE_OK && nr)
		s = report_pass(run, "predicting changes", &pass, &m, err);
	for (unsigned i = 0; i < nr && s == BASE_OK; i++) {
		struct report_answer a = {0};
		s = graph_lane(model_graph(m), i + 1, &r, err);
		if (s == BASE_OK)
			s = report_predictor_ask(&b->predictor, &lane[i], r.length_ns, &a, err);
		if (s == BASE_OK)
			b->out->change[b->out->nr_changes++] = (struct report_gpu_change){
				.change = gpu_change_text(b, &gpu_changes[which[i]]),
				.length_ns = r.length_ns,
				.speedup = a.best.speedup,
				.low = a.best.low,
				.high = a.best.high};
	}
	model_free(m);
	return s;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static enum base_status gpu_fill(struct gpu_build *b, struct base_err *err)
{
	struct report_gpu *out = b->out;
	struct report_run run = *b->run;
	struct report_pass_options keep = {.keep_path = true};
	b->defs = trace_reader_defs(b->run->reader);
	if (b->defs->nr_works <= 1)
		return base_fail(err, BASE_ERR_NOTFOUND,
			"this trace has no accelerator in it: 'longpole import pytorch FILE' makes "
			"one "
			"of what PyTorch's profiler wrote");
	enum base_status s = gpu_find_steps(b, err);
	if (s == BASE_OK)
		s = gpu_fill_ranks(b, b->entered != b->entered_in_steps, err);
	if (s != BASE_OK)
		return s;
	out->all = (struct report_gpu_step){
		.name = "all", .rank = out->step[0].rank, .begin_ns = out->step[0].begin_ns};
	for (size_t i = 0; i < out->nr_steps; i++)
		if (out->step[i].end_ns > out->all.end_ns)
			out->all.end_ns = out->step[i].end_ns;
	if (!run.from_ns && !run.to_ns) {
		run.from_ns = out->all.begin_ns;
		run.to_ns = out->all.end_ns;
	}
	s = gpu_index_works(b, err);
	if (s == BASE_OK)
		s = report_predictor_pass(
			&b->predictor, &run, "finding the critical path", &keep, &b->m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&out->trace, out->arena, b->run, b->m, err);
	if (s == BASE_OK)
		s = gpu_index_states(b, err);
	if (s == BASE_OK)
		s = gpu_fill_path(b, err);
	if (s == BASE_OK)
		s = gpu_finish(b, err);
	return s == BASE_OK ? gpu_predict(b, &run, err) : s;
}

enum base_status report_gpu_build(const struct report_run *run,
	const struct report_gpu_options *opts, struct report_gpu **ret, struct base_err *err)
{
	struct gpu_build b = {.out = report_answer_new(sizeof *b.out), .run = run, .opts = opts};
	if (!b.out)
		return report_no_memory(err);
	enum base_status s = gpu_fill(&b, err);
	report_predictor_fini(&b.predictor);
	model_free(b.m);
	base_map_fini(&b.by_text);
	base_map_fini(&b.by_object);
	base_map_fini(&b.by_rank);
	base_free(b.met);
	base_free(b.met_all);
	if (s != BASE_OK)
		report_gpu_free(b.out);
	else
		*ret = b.out;
	return s;
}

struct report_gpu *report_gpu_free(struct report_gpu *g)
{
	if (g) {
		base_free(g->step);
		base_free(g->row);
		base_arena_free(g->arena);
	}
	base_free(g);
	return NULL;
}

#include "report/gpu.def"

/* ---- text ------------------------------------------------------------------------------------ */

static void gpu_text_steps(
	struct base_str *out, const struct report_gpu *g, const struct report_style *st)
{
	enum { STEPS_SHOWN = 12 };
	struct base_layout l = {.table = &gpu_step, .all = g, .utf8 = st->utf8};
	base_layout_fit(
		&l, st->columns, report_table_longest(&gpu_step, g->step, g->nr_steps), 16, 16);
	report_table_lines(
		out, &l, g->step, g->nr_steps < STEPS_SHOWN ? g->nr_steps : STEPS_SHOWN, 0, st);
	if (g->nr_steps > STEPS_SHOWN)
		base_str_addf(out, "... %zu more (--json has them)\n", g->nr_steps - STEPS_SHOWN);
	if (g->nr_steps > 1)
		report_table_line(out, &l, &g->all, st);
	if (g->nr_steps > 1) {
		base_str_add(out, "steps take ");
		report_ns(out, g->least_ns);
		base_str_add(out, " to ");
		report_ns(out, g->most_ns);
		base_str_add(out, ", half of them up to ");
		report_ns(out, g->median_ns);
		base_str_add(out, "\n");
	}
}

static void gpu_text_ranks(struct base_str *out, const struct report_gpu *g, size_t limit,
	const struct report_style *st)
{
	size_t nr = limit && limit < g->nr_ranks ? limit : g->nr_ranks;
	if (g->nr_ranks < 2)
		return;
	report_color_begin(out, st, REPORT_DIM);
	base_str_add(out, "\n    rank  came last  of times  waited for     waits\n");
	report_color_end(out, st);
	for (size_t i = 0; i < nr; i++) {
		const struct report_gpu_rank *r = &g->rank[i];
		struct base_str for_it = {0}, it = {0};
		report_ns(&for_it, (double)r->waited_for_ns);
		report_ns(&it, (double)r->waits_ns);
		base_str_addf(out, "%8" PRIu64 "%11" PRIu64 "%10" PRIu64, r->rank, r->nr_last,
			r->nr_meetings);
		base_str_add_right(out, base_str_text(&for_it), 12);
		base_str_add_right(out, base_str_text(&it), 10);
		base_str_add(out, "\n");
		base_str_fini(&for_it);
		base_str_fini(&it);
	}
	if (nr < g->nr_ranks)
		base_str_addf(out, "... %zu more (--all shows them)\n", g->nr_ranks - nr);
}

static void gpu_text_row(
	struct base_str *out, const struct report_gpu_row *r, const struct report_style *st)
{
	struct base_str s = {0}, name = {0};
	report_percent(&s, r->share);
	base_str_add_right(out, base_str_text(&s), 8);
	base_str_reset(&s);
	report_ns(&s, (double)r->total_ns);
	base_str_add_right(out, base_str_text(&s), 10);
	base_str_reset(&s);
	base_str_add_count(&s, r->visits);
	base_str_add_right(out, base_str_text(&s), 9);
	base_str_addf(out, "  %-15s  ", gpu_work_text(r->type));
	base_str_add(&name, r->name);
	if (*r->outer)
		base_str_addf(&name, ", in %s", r->outer);
	report_cell(out, st, base_str_text(&name), st->columns > 66 ? st->columns - 46 : 20, false);
	base_str_add(out, "\n");
	base_str_fini(&s);
	base_str_fini(&name);
}

static void gpu_text_changes(struct base_str *out, const struct report_gpu *g)
{
	for (size_t i = 0; i < g->nr_changes; i++) {
		const struct report_gpu_change *c = &g->change[i];
		base_str_addf(out, "  %.2fx", c->speedup);
		if (c->low < c->high)
			base_str_addf(out, " (%.2f to %.2f)", c->low, c->high);
		base_str_addf(out, "  %s\n", c->change);
	}
}

void report_gpu_text(struct base_str *out, const struct report_gpu *g,
	const struct report_gpu_options *opts, const struct report_style *style)
{
	size_t nr = opts->limit && opts->limit < g->nr_rows ? opts->limit : g->nr_rows;
	gpu_text_steps(out, g, style);
	gpu_text_ranks(out, g, opts->limit, style);
	report_color_begin(out, style, REPORT_DIM);
	base_str_add(out, "\n    path     total    times  work             what\n");
	report_color_end(out, style);
	for (size_t i = 0; i < nr; i++)
		gpu_text_row(out, &g->row[i], style);
	if (nr < g->nr_rows)
		base_str_addf(out, "... %zu more (--all shows them)\n", g->nr_rows - nr);
	base_str_add(out, "\nthese steps would be so many times as fast, if\n");
	gpu_text_changes(out, g);
	report_trace_text_caveats(out, &g->trace, style);
}

json_t *report_gpu_json(const struct report_gpu *g)
{
	return report_envelope(report_gpu_document.name, &g->trace,
		base_table_json(&report_gpu_document, g, g, 0));
}

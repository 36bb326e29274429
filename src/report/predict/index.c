/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - what all builders share: passes over the trace, topics, the trace's own facts. */
#include "report/predict/predictor.h"

#include <math.h>
#include <string.h>

/* ---- passes ---------------------------------------------------------------------------------- */

struct pass {
	const struct report_run *run;
	const char *what;
};

static void pass_progress(void *ctx, uint64_t done_records, uint64_t all_records)
{
	const struct pass *p = ctx;
	p->run->progress(p->run->progress_ctx, p->what, done_records, all_records);
}

static enum base_status pass_make(const struct report_run *run, const char *what,
	const struct report_pass_options *opts, struct model **ret, struct base_err *err)
{
	struct pass p = {.run = run, .what = what};
	enum base_status s = trace_reader_rewind(run->reader, err);
	if (s == BASE_OK) {
		if (run->progress)
			pass_progress(&p, 0, trace_reader_record_count(run->reader));
		struct model_options mo = {
			.size = sizeof mo,
			.scenario = opts->scenario,
			.nr_scenarios = opts->nr_scenarios,
			.keep_path = opts->keep_path,
			.runner_up = opts->runner_up,
			.sink = opts->sink,
			.listener = opts->listener,
			.watch = opts->watch,
			.max_memory_bytes = run->max_memory_bytes,
			.from_ns = run->from_ns,
			.to_ns = run->to_ns,
			.start = run->start,
			.end = run->end,
			.process = run->process,
			.crossings = opts->crossings,
			.connections = opts->connections,
			.connection = opts->connections ? 0 : run->connection,
			.progress = run->progress ? pass_progress : NULL,
			.progress_ctx = &p,
		};
		s = model_run(run->reader, &mo, ret, err);
	}
	if (s == BASE_OK && run->connection && !model_nr_connections(*ret)) {
		*ret = model_free(*ret);
		return base_fail(err, BASE_ERR_NOTFOUND,
			"connection %llu is not identified in this trace; 'longpole connections' "
			"lists those that are",
			(unsigned long long)run->connection);
	}
	return s == BASE_OK ? s : base_cause(err, s, "while %s", what);
}

/* What it finds has all that such a pass could be asked for. (A sink hears it while it is made.) */
static bool pass_is_plain(const struct report_pass_options *o)
{
	return !o->nr_scenarios && !o->listener && !o->watch && !o->connections;
}

static bool pass_has(const struct report_pass_options *made, const struct report_pass_options *o)
{
	return made->keep_path >= o->keep_path && made->runner_up >= o->runner_up &&
	       made->crossings >= o->crossings && !o->sink;
}

enum base_status report_pass(const struct report_run *run, const char *what,
	const struct report_pass_options *opts, struct model **ret, struct base_err *err)
{
	struct report_shared_pass *shared = run->shared;
	if (!shared || !pass_is_plain(opts) || (shared->m && !pass_has(&shared->made, opts)))
		return pass_make(run, what, opts, ret, err);
	if (!shared->m) {
		struct report_pass_options all = *opts;
		if (shared->has_all)
			all.keep_path = all.runner_up = all.crossings = true;
		all.keep_path |= report_replay_fits(run); /* the locks are looked for on it */
		enum base_status s = report_shared_tape(shared, run, opts->sink, &all.sink, err);
		if (s == BASE_OK)
			s = pass_make(run, what, &all, &shared->m, err);
		if (s != BASE_OK)
			return s;
		shared->made = all;
	}
	*ret = model_share(shared->m);
	return BASE_OK;
}

void report_shared_pass_fini(struct report_shared_pass *shared)
{
	report_shared_lanes_fini(shared);
	shared->m = model_free(shared->m);
}

struct report_run report_sharing(const struct report_run *run, struct report_shared_pass *own)
{
	struct report_run with = *run;
	if (!with.shared)
		with.shared = own;
	return with;
}

enum base_status report_no_path(struct base_err *err)
{
	return base_fail(err, BASE_ERR_NOTFOUND,
		"no chain of dependences leads from the path's start to its end: nothing after the "
		"start had to happen before the end ('longpole queues' shows who waited for whom)");
}

/* ---- topics ---------------------------------------------------------------------------------- */

enum base_status report_index_init(struct report_index *ix, struct model *m, struct base_err *err)
{
	*ix = (struct report_index){.nr_states = graph_nr_states(model_graph(m))};
	ix->topic_of = base_alloc((ix->nr_states + 1) * sizeof *ix->topic_of);
	ix->first_state = base_alloc((ix->nr_states + 1) * sizeof *ix->first_state);
	ix->is_recorders = base_alloc((ix->nr_states + 1) * sizeof *ix->is_recorders);
	ix->is_apart = base_alloc((ix->nr_states + 1) * sizeof *ix->is_apart);
	if (!ix->topic_of || !ix->first_state || !ix->is_recorders || !ix->is_apart) {
		report_index_fini(ix);
		return report_no_memory(err);
	}
	for (uint32_t i = 0; i < ix->nr_states; i++) {
		const struct model_state *st = model_state(m, i);
		ix->topic_of[i] = st->identity;
		if (st->identity >= ix->nr_topics) {
			ix->first_state[st->identity] = i;
			ix->is_recorders[st->identity] = st->is_recorders;
			ix->is_apart[st->identity] = report_why_apart(m, i) != REPORT_APART_NR;
			ix->nr_topics = st->identity + 1;
		}
	}
	return BASE_OK;
}

void report_index_fini(struct report_index *ix)
{
	base_free(ix->topic_of);
	base_free(ix->first_state);
	base_free(ix->is_recorders);
	base_free(ix->is_apart);
	*ix = (struct report_index){0};
}

enum base_status report_lane_topics(struct graph *g, const struct report_index *ix, unsigned lane,
	double *topic_ns, double *observed_ns, double *ret_length_ns, struct base_err *err)
{
	struct graph_lane_result result;
	enum base_status s = graph_lane(g, lane, &result, err);
	if (s != BASE_OK)
		return s;
	for (uint32_t t = 0; t < ix->nr_topics; t++) {
		topic_ns[t] = 0;
		if (observed_ns)
			observed_ns[t] = 0;
	}
	for (size_t i = 0; i < result.nr_states; i++) {
		const struct graph_path_state *p = &result.state[i];
		if (p->state >= ix->nr_states)
			continue;
		topic_ns[ix->topic_of[p->state]] += p->path_ns;
		if (observed_ns)
			observed_ns[ix->topic_of[p->state]] += p->observed_ns;
	}
	*ret_length_ns = result.length_ns;
	return BASE_OK;
}

static uint32_t index_largest(
	const double *topic_ns, const struct report_index *ix, uint32_t except, bool apart_too)
{
	uint32_t best = REPORT_NONE;
	for (uint32_t t = 0; t < ix->nr_topics; t++)
		if (t != except && topic_ns[t] > 0 && !ix->is_recorders[t] &&
			(apart_too || !ix->is_apart[t]) &&
			(best == REPORT_NONE || topic_ns[t] > topic_ns[best]))
			best = t;
	return best;
}

uint32_t report_largest_topic(
	const double *topic_ns, const struct report_index *ix, uint32_t except)
{
	uint32_t own = index_largest(topic_ns, ix, except, false);
	return own != REPORT_NONE ? own : index_largest(topic_ns, ix, except, true);
}

double report_topic_share(
	const double *topic_ns, const struct report_index *ix, uint32_t topic, double length_ns)
{
	double own_ns = 0;
	for (uint32_t t = 0; t < ix->nr_topics; t++)
		own_ns += ix->is_apart[t] ? 0 : topic_ns[t];
	double all_ns = ix->is_apart[topic] ? length_ns : own_ns;
	return all_ns > 0 ? topic_ns[topic] / all_ns : 0;
}

/* ---- the trace ------------------------------------------------------------------------------- */

static const char *severity_name(enum trace_severity s)
{
	return s == TRACE_SEVERITY_info    ? "info"
	       : s == TRACE_SEVERITY_error ? "error"
					   : "data_loss";
}

static const char *diag_text(struct base_arena *a, const char *sentence, uint64_t count)
{
	struct base_str s = {0};
	base_str_add_counted(&s, sentence, count);
	return report_keep(a, &s);
}

/* What parts in the program take is estimated; reality was in this on the shapes tried. */
static const double COST_LOW = 2. / 3, COST_HIGH = 3. / 2;

/* Wakes to know what those cost: in "getting ready", too. */
static bool is_of_own_threads(const char *name)
{
	return !strcmp(name, TRACE_COST_WAKING) || !strcmp(name, TRACE_COST_WAKING_BUSY);
}

static enum base_status fill_costs(struct report_trace *t, struct base_arena *a,
	const struct trace_defs *d, struct base_err *err)
{
	uint64_t own_ns = 0, beside_ns = 0;
	t->cost = report_array(a, d->nr_costs, sizeof *t->cost);
	if (!t->cost)
		return report_no_memory(err);
	for (uint32_t i = 1; i < d->nr_costs; i++) {
		const struct trace_cost *c = &d->costs[i];
		if (!c->name)
			continue;
		struct report_cost *out = &t->cost[t->nr_costs++];
		*out = (struct report_cost){.name = report_clean(a, trace_text_of(d, c->name)),
			.method = report_clean(a, trace_text_of(d, c->method)),
			.n = c->n,
			.total_ns = c->total_ns,
			.beside = c->beside};
		if (!out->name || !out->method)
			return report_no_memory(err);
		uint64_t *sum_ns = c->beside ? &beside_ns : &own_ns;
		if (!is_of_own_threads(out->name) && c->total_ns <= UINT64_MAX - *sum_ns)
			*sum_ns += c->total_ns;
		t->target_cpu_ns = c->target_cpu_ns;
	}
	if (t->target_cpu_ns)
		t->cost_share = fmin((double)own_ns / (double)t->target_cpu_ns, 1);
	t->cost_share_low = t->cost_share * COST_LOW;
	t->cost_share_high = fmin(t->cost_share * COST_HIGH, 1);
	t->own_cpu_ns = beside_ns;
	return BASE_OK;
}

static const char *index_place_of(struct model *m, uint32_t state)
{
	uint32_t site = model_state(m, state)->site;
	return site ? model_site_text(m, site) : "";
}

static bool unseen_waits(struct report_trace *t, struct model *m, struct base_arena *a)
{
	const struct model_unseen *k = model_unseen_kinds(m, &t->nr_unseen);
	t->unseen = report_array(a, t->nr_unseen, sizeof *t->unseen);
	for (size_t i = 0; t->unseen && i < t->nr_unseen; i++) {
		t->unseen[i] = (struct report_unseen){
			.wait = report_clean(a, model_state(m, k[i].state)->name),
			.place = report_clean(a, index_place_of(m, k[i].state)),
			.several = k[i].several,
			.nr = k[i].nr,
			.total_ns = k[i].total_ns,
			.longest_ns = k[i].longest_ns,
			.longest_begin_ns = k[i].longest_begin_ns,
			.longest_actor = report_clean(a, model_actor(m, k[i].longest_actor)->name),
		};
		if (!t->unseen[i].wait || !t->unseen[i].place || !t->unseen[i].longest_actor)
			return false;
	}
	return t->unseen != NULL;
}

static const char *clean_or_none(struct base_arena *a, const char *text)
{
	return text ? report_clean(a, text) : NULL;
}

enum base_status report_fill_trace(struct report_trace *t, struct base_arena *a,
	const struct report_run *run, struct model *m, struct base_err *err)
{
	const struct trace_info *info = trace_reader_info(run->reader);
	const struct trace_health *health = model_health(m);
	*t = (struct report_trace){
		.path = report_clean(a, run->trace_path),
		.host = report_clean(a, info->host ? info->host : ""),
		.command = report_clean(a, info->command ? info->command : ""),
		.tool = report_clean(a, info->tool ? info->tool : ""),
		.file_bytes = health->file_bytes,
		.readable_bytes = health->readable_bytes,
		.nr_records = model_nr_records(m),
		.last_ns = model_last_ns(m),
		.from_ns = run->from_ns,
		.to_ns = run->to_ns,
		.start_text = clean_or_none(a, run->start_text),
		.end_text = clean_or_none(a, run->end_text),
		.process_text = clean_or_none(a, run->process),
		.connection = run->connection,
		.nr_processors = info->nr_processors,
		.quota_ns = report_quota(run->reader)->quota_ns,
		.quota_period_ns = report_quota(run->reader)->period_ns,
		.switches_only = (info->flags & (TRACE_INFO_SYSTEM | TRACE_INFO_KERNEL)) ==
				 TRACE_INFO_SYSTEM,
		.of_goroutines = model_has_tasks(m),
		.diag = report_array(a, TRACE_DIAG_NR, sizeof *t->diag),
	};
	if (!t->path || !t->host || !t->command || !t->tool || !t->diag)
		return report_no_memory(err);
	if (model_is_system(m)) {
		t->process = report_clean(a, model_end_process(m, &t->pid));
		if (!t->process)
			return report_no_memory(err);
		t->waits = model_waits(m);
		if (!unseen_waits(t, m, a))
			return report_no_memory(err);
	}
	uint32_t nr = graph_nr_actors(model_graph(m));
	for (uint32_t i = 0; i < nr; i++)
		t->nr_actors += model_actor(m, i)->tid != 0;
	for (unsigned d = 0; d < TRACE_DIAG_NR; d++) {
		const struct trace_diag_desc *desc = trace_diag_describe((enum trace_diag)d);
		if (!health->count[d] || !desc)
			continue;
		struct report_diag *out = &t->diag[t->nr_diags++];
		*out = (struct report_diag){
			.name = desc->name,
			.severity = severity_name(desc->severity),
			.source = desc->source,
			.text = diag_text(a, desc->sentence, health->count[d]),
			.count = health->count[d],
		};
		if (!out->text)
			return report_no_memory(err);
	}
	enum base_status s = report_fill_ranks(&t->ranks, a, m, err);
	return s == BASE_OK ? fill_costs(t, a, trace_reader_defs(run->reader), err) : s;
}

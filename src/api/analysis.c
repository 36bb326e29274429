/* SPDX-License-Identifier: Apache-2.0 */
/* analysis.c - the answer, the path, the queues: what report/ builds, as the public header has it. */

#include "api/analysis.h"
#include "api/api.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

struct longpole_analysis {
	struct longpole_trace *own; /* NULL: the trace is the caller's */
	struct report_run run;
	struct report_places places;
	char *text[3]; /* copies of the options' texts */
	struct report *report;
};

struct report_run *api_run(struct longpole_analysis *a)
{
	return &a->run;
}

uint64_t api_ns(double ns)
{
	return ns > 0 ? (uint64_t)llround(ns) : 0;
}

struct longpole_gain api_gain(const struct report_best *b)
{
	return (struct longpole_gain){.speedup = b->speedup,
		.low = b->low,
		.high = b->high,
		.method = report_method_of(b->replay_share)};
}

/* ---- building -------------------------------------------------------------------------------- */

void longpole_analysis_close(struct longpole_analysis *a)
{
	if (!a)
		return;
	report_free(a->report);
	report_places_fini(&a->places);
	for (size_t i = 0; i < BASE_COUNT(a->text); i++)
		base_free(a->text[i]);
	longpole_trace_close(a->own);
	base_free(a);
}

/* Keeps a copy of a text; NULL stays NULL. */
static enum base_status analysis_copy(
	char **keep, const char *text, const char **ret, struct base_err *err)
{
	if (!text)
		return BASE_OK;
	size_t size = strlen(text) + 1;
	*ret = *keep = base_alloc(size);
	if (!*keep)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for an option");
	memcpy(*keep, text, size);
	return BASE_OK;
}

/* Nothing but the whole run needs no window. */
static enum base_status analysis_window(
	struct report_run *run, const struct longpole_analysis_options *o, struct base_err *err)
{
	uint64_t last_ns = trace_reader_last_ns(run->reader);
	if (o->from_ns > last_ns || (o->to_ns && o->from_ns >= o->to_ns))
		return base_fail(err, BASE_ERR_USAGE,
			"nothing lies between from_ns and to_ns (the trace's last record is at "
			"%llu ns)",
			(unsigned long long)last_ns);
	run->from_ns = o->from_ns;
	run->to_ns = o->to_ns < last_ns ? o->to_ns : 0;
	return BASE_OK;
}

static enum base_status analysis_set(struct longpole_analysis *a, struct longpole_trace *trace,
	const struct longpole_analysis_options *o, struct base_err *err)
{
	struct report_run *run = &a->run;
	*run = (struct report_run){.reader = api_reader(trace),
		.trace_path = api_path(trace),
		.max_memory_bytes = o->max_memory_bytes,
		.connection = o->connection,
		.progress = o->progress,
		.progress_ctx = o->progress_context};
	if (!run->reader)
		return base_fail(err, BASE_ERR_USAGE,
			"%s was opened for a part of its time: the analysis has options for that",
			run->trace_path);
	enum base_status s = analysis_copy(&a->text[0], o->start, &run->start_text, err);
	if (s == BASE_OK)
		s = analysis_copy(&a->text[1], o->end, &run->end_text, err);
	if (s == BASE_OK)
		s = analysis_copy(&a->text[2], o->process, &run->process, err);
	return s == BASE_OK ? analysis_window(run, o, err) : s;
}

static enum base_status analysis_build(
	struct longpole_analysis *a, uint32_t nr_parts, struct base_err *err)
{
	struct report_run *run = &a->run;
	struct report_options opts = {
		.nr_parts_max = nr_parts ? nr_parts : REPORT_PARTS_DEFAULT, .all_intervals = true};
	enum base_status s = BASE_OK;
	if (run->start_text || run->end_text)
		s = report_places_find(&a->places, run, run->start_text, run->end_text, err);
	if (s == BASE_OK && run->start_text)
		run->start = &a->places.start;
	if (s == BASE_OK && run->end_text)
		run->end = &a->places.end;
	if (s == BASE_OK)
		s = report_build(run, &opts, &a->report, err);
	return s == BASE_OK ? s : base_cause(err, s, "while analysing %s", run->trace_path);
}

/* Of the trace, or of the one at `path`. */
static int analysis_make(const char *path, struct longpole_trace *trace,
	const struct longpole_analysis_options *options, struct longpole_analysis **ret,
	struct longpole_error *error)
{
	struct longpole_analysis_options o;
	struct base_err err;
	*ret = NULL;
	if (!api_take(&o, sizeof o, options) || o.nr_parts > REPORT_PARTS_MAX || o.reserved)
		return api_refuse(error, "an option, or the options' size, is wrong");
	struct longpole_analysis *a = base_alloc(sizeof *a);
	if (!a)
		return api_finish(error,
			base_fail(&err, BASE_ERR_NOMEM, "out of memory for an analysis"), &err);
	if (!trace) {
		int s = longpole_trace_open(path, NULL, &a->own, error);
		if (s != LONGPOLE_STATUS_OK)
			return longpole_analysis_close(a), s;
		trace = a->own;
	}
	locale_t before = api_locale_begin();
	enum base_status s = analysis_set(a, trace, &o, &err);
	if (s == BASE_OK)
		s = analysis_build(a, o.nr_parts, &err);
	api_locale_end(before);
	if (s == BASE_OK)
		*ret = a;
	else
		longpole_analysis_close(a);
	return api_finish(error, s, &err);
}

int longpole_analysis_open(const char *path, const struct longpole_analysis_options *options,
	struct longpole_analysis **ret, struct longpole_error *error)
{
	if (!path || !ret)
		return api_refuse(error, "no path, or no place for the analysis");
	return analysis_make(path, NULL, options, ret, error);
}

int longpole_analysis_new(struct longpole_trace *trace,
	const struct longpole_analysis_options *options, struct longpole_analysis **ret,
	struct longpole_error *error)
{
	if (!trace || !ret)
		return api_refuse(error, "no trace, or no place for the analysis");
	return analysis_make(NULL, trace, options, ret, error);
}

/* ---- the answer ------------------------------------------------------------------------------ */

int longpole_analysis_answer(const struct longpole_analysis *a, struct longpole_answer *ret)
{
	if (!a)
		return LONGPOLE_STATUS_USAGE;
	const struct report *r = a->report;
	return API_GIVE(ret, .pole = r->pole, .finding = r->finding, .certainty = r->certainty,
		.start_ns = r->start_ns, .end_ns = r->end_ns, .elapsed_ns = api_ns(r->elapsed_ns),
		.unexplained_ns = api_ns(r->unexplained_ns), .explained_share = r->explained_share,
		.polled_share = r->polled_share, .nr_threads = r->trace.nr_actors,
		.is_partial = api_is_partial(trace_reader_health(a->run.reader)),
		.nr_parts = (uint32_t)r->parts.nr, .nr_states = (uint32_t)r->nr_rows);
}

int longpole_analysis_part(const struct longpole_analysis *a, uint32_t i, struct longpole_part *ret)
{
	static const struct longpole_gain unknown = {.method = ""};
	if (!a)
		return LONGPOLE_STATUS_USAGE;
	if (i >= a->report->parts.nr)
		return LONGPOLE_STATUS_END;
	const struct report_part *p = &a->report->parts.part[i];
	return API_GIVE(ret, .name = p->name, .where = p->place, .text = p->text ? p->text : "",
		.kind = model_state_kind_name(p->kind), .path_ns = api_ns(p->path_ns),
		.share = p->share, .is_lock = p->is_lock, .is_predicted = p->predicted,
		.halved = p->predicted ? api_gain(&p->gain[REPORT_PART_HALVED]) : unknown,
		.gone = p->predicted ? api_gain(&p->gain[REPORT_PART_GONE]) : unknown,
		.then = p->then ? p->then : "", .nr_waits = p->nr_waits, .wait_ns = p->wait_ns,
		.waiters_max = p->waiters_max);
}

int longpole_analysis_state(
	const struct longpole_analysis *a, uint32_t i, struct longpole_state *ret)
{
	if (!a)
		return LONGPOLE_STATUS_USAGE;
	if (i >= a->report->nr_rows)
		return LONGPOLE_STATUS_END;
	const struct report_row *r = &a->report->row[i];
	return API_GIVE(ret, .state = r->state, .where = r->where, .actor = r->actor,
		.group = r->group, .kind = model_state_kind_name(r->kind),
		.path_ns = api_ns(r->path_ns), .unexplained_ns = api_ns(r->unexplained_ns),
		.share = r->share, .waiting_share = r->waiting_share, .visits = r->visits,
		.nr_actors = r->nr_actors);
}

/* Of the trace's counters there is one with that name. */
static bool analysis_is_partial(const char *name)
{
	for (unsigned i = 0; i < TRACE_DIAG_NR; i++) {
		const struct trace_diag_desc *d = trace_diag_describe((enum trace_diag)i);
		if (!strcmp(d->name, name))
			return d->extent == TRACE_EXTENT_partial;
	}
	return false;
}

int longpole_analysis_loss(const struct longpole_analysis *a, uint32_t i, struct longpole_loss *ret)
{
	if (!a)
		return LONGPOLE_STATUS_USAGE;
	if (i >= a->report->trace.nr_diags)
		return LONGPOLE_STATUS_END;
	const struct report_diag *d = &a->report->trace.diag[i];
	return API_GIVE(ret, .name = d->name, .severity = d->severity, .text = d->text,
		.count = d->count, .is_partial = analysis_is_partial(d->name));
}

/* ---- path ------------------------------------------------------------------------------------ */

/* A longpole_path is a report_path, a longpole_queues a report_queues. */
static const struct report_path *path_of(const struct longpole_path *p)
{
	return (const struct report_path *)p;
}

void longpole_path_free(struct longpole_path *p)
{
	report_path_free((struct report_path *)p);
}

int longpole_path_new(
	struct longpole_analysis *a, struct longpole_path **ret, struct longpole_error *error)
{
	struct base_err err;
	if (!a || !ret)
		return api_refuse(error, "no analysis, or no place for the path");
	*ret = NULL;
	locale_t before = api_locale_begin();
	struct report_path *p = NULL;
	enum base_status s = report_path_build(&a->run,
		&(struct report_path_options){.from_ns = a->run.from_ns, .to_ns = a->run.to_ns}, &p,
		&err);
	api_locale_end(before);
	*ret = (struct longpole_path *)p;
	return api_finish(error, s, &err);
}

uint64_t longpole_path_nr_steps(const struct longpole_path *p)
{
	return p ? path_of(p)->nr_steps : 0;
}

int longpole_path_step(const struct longpole_path *p, uint64_t i, struct longpole_step *ret)
{
	if (!p)
		return LONGPOLE_STATUS_USAGE;
	if (i >= path_of(p)->nr_steps)
		return LONGPOLE_STATUS_END;
	const struct report_step *s = &path_of(p)->step[i];
	return API_GIVE(ret, .actor = s->actor, .state = s->state, .where = s->where,
		.kind = model_state_kind_name(s->kind), .queue = s->queue, .begin_ns = s->begin_ns,
		.end_ns = s->end_ns, .increment_ns = api_ns(s->weight_ns), .nr_edges = s->nr_edges);
}

/* ---- queues ---------------------------------------------------------------------------------- */

static const struct report_queues *queues_of(const struct longpole_queues *q)
{
	return (const struct report_queues *)q;
}

void longpole_queues_free(struct longpole_queues *q)
{
	report_queues_free((struct report_queues *)q);
}

int longpole_queues_new(struct longpole_analysis *a, const char *pattern,
	struct longpole_queues **ret, struct longpole_error *error)
{
	struct base_err err;
	if (!a || !ret)
		return api_refuse(error, "no analysis, or no place for the queues");
	*ret = NULL;
	locale_t before = api_locale_begin();
	struct report_queues *q = NULL;
	enum base_status s = report_queues_build(&a->run, pattern, &q, &err);
	api_locale_end(before);
	*ret = (struct longpole_queues *)q;
	return api_finish(error, s, &err);
}

uint64_t longpole_queues_nr(const struct longpole_queues *q)
{
	return q ? queues_of(q)->nr_queues : 0;
}

int longpole_queues_queue(const struct longpole_queues *q, uint64_t i, struct longpole_queue *ret)
{
	if (!q)
		return LONGPOLE_STATUS_USAGE;
	if (i >= queues_of(q)->nr_queues)
		return LONGPOLE_STATUS_END;
	const struct report_queue *r = &queues_of(q)->queue[i];
	const struct graph_queue_stats *s = &r->s;
	return API_GIVE(ret, .name = r->name, .type = r->type, .nr_members = r->nr_members,
		.nr_enqueues = s->nr_enqueues, .nr_dequeues = s->nr_dequeues,
		.enqueued_units = s->enqueued, .dequeued_units = s->dequeued,
		.nr_waits_for_units = s->nr_waits_data, .wait_for_units_ns = s->wait_data_ns,
		.nr_waits_for_room = s->nr_waits_space, .wait_for_room_ns = s->wait_space_ns,
		.nr_latencies = s->nr_latencies, .latency_ns = s->latency_ns,
		.residence_ns = s->residence_ns, .max_units = s->max_units,
		.mean_units = r->mean_units);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* queues.c - who waited on which queue. Queues of one name (all locks of a class, say) are one row.
 */
#include "report/private.h"

#include <stdlib.h>
#include <string.h>

static uint64_t waited_ns(const struct report_queue *q)
{
	return q->s.wait_data_ns + q->s.wait_space_ns;
}

static int by_wait(const void *a, const void *b)
{
	const struct report_queue *x = a, *y = b;
	if (waited_ns(x) != waited_ns(y))
		return waited_ns(x) < waited_ns(y) ? 1 : -1;
	if (x->s.nr_dequeues != y->s.nr_dequeues)
		return x->s.nr_dequeues < y->s.nr_dequeues ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void queues_add_latency(struct report_queue *q, const struct graph_queue_stats *s)
{
	q->s.nr_latencies += s->nr_latencies;
	q->s.latency_ns += s->latency_ns;
}

static void add_stats(struct report_queue *q, const struct graph_queue_stats *s)
{
	q->nr_members++;
	q->s.enqueued += s->enqueued;
	q->s.dequeued += s->dequeued;
	q->s.nr_enqueues += s->nr_enqueues;
	q->s.nr_dequeues += s->nr_dequeues;
	q->s.nr_waits_data += s->nr_waits_data;
	q->s.wait_data_ns += s->wait_data_ns;
	q->s.nr_waits_space += s->nr_waits_space;
	q->s.wait_space_ns += s->wait_space_ns;
	queues_add_latency(q, s);
	q->s.residence_ns += s->residence_ns;
	q->s.units_time += s->units_time;
	q->s.underflows += s->underflows;
	q->s.overflows += s->overflows;
	if (s->max_units > q->s.max_units)
		q->s.max_units = s->max_units;
}

static enum base_status queues_fill(
	struct report_queues *out, struct model *m, const char *pattern, struct base_err *err)
{
	struct graph *g = model_graph(m);
	struct base_strtab *names = base_strtab_new();
	struct graph_lane_result lane;
	uint32_t nr = graph_nr_queues(g);
	enum base_status s = graph_lane(g, 0, &lane, err);
	out->queue = report_array(out->arena, nr, sizeof *out->queue);
	if (s == BASE_OK && (!names || !out->queue))
		s = report_no_memory(err);
	for (uint32_t i = 0; s == BASE_OK && i < nr; i++) {
		const struct model_queue *mq = model_queue(m, i);
		uint32_t id;
		if (mq->part == MODEL_QUEUE_wake && !pattern)
			continue;
		if (pattern && !report_pattern_matches(pattern, mq->name))
			continue;
		s = base_strtab_intern(names, mq->name, strlen(mq->name), &id);
		if (s != BASE_OK) {
			s = base_fail(err, s, "out of memory for the queues' names");
			break;
		}
		struct report_queue *q = &out->queue[id ? id - 1 : 0];
		if (!q->name) {
			q->name = report_clean(out->arena, mq->name);
			q->name_text = mq->name_text;
			q->type = trace_object_type_text(mq->type);
			q->is_token = !mq->object;
			q->is_lock = model_object_is(mq->type, MODEL_TRAIT_lock);
			out->nr_queues++;
		}
		if (!q->name)
			s = report_no_memory(err);
		if (mq->part == MODEL_QUEUE_whole)
			add_stats(q, graph_queue_stats(g, i));
		else if (mq->part == MODEL_QUEUE_helper)
			queues_add_latency(q, graph_queue_stats(g, i));
	}
	base_strtab_free(names);
	if (s != BASE_OK)
		return s;
	if (pattern && !out->nr_queues)
		return base_fail(err, BASE_ERR_NOTFOUND,
			"no queue of this trace matches '%s'; 'longpole queues' lists them",
			pattern);
	out->elapsed_ns = (double)(lane.end_ns - lane.start_ns);
	for (size_t i = 0; i < out->nr_queues; i++)
		out->queue[i].mean_units =
			out->elapsed_ns > 0 ? (double)out->queue[i].s.units_time / out->elapsed_ns
					    : 0;
	if (out->nr_queues)
		qsort(out->queue, out->nr_queues, sizeof *out->queue, by_wait);
	return BASE_OK;
}

enum base_status report_queues_model(const struct report_run *run, const char *pattern,
	struct report_queues **ret, struct model **ret_model, struct base_err *err)
{
	struct report_pass_options plain = {0};
	struct model *m = NULL;
	struct report_queues *q = report_answer_new(sizeof *q);
	if (!q)
		return report_no_memory(err);
	enum base_status s = report_pass(run, "counting who waits on what", &plain, &m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&q->trace, q->arena, run, m, err);
	if (s == BASE_OK)
		s = queues_fill(q, m, pattern, err);
	if (s != BASE_OK) {
		model_free(m);
		report_queues_free(q);
		return s;
	}
	*ret = q;
	*ret_model = m;
	return s;
}

enum base_status report_queues_build(const struct report_run *run, const char *pattern,
	struct report_queues **ret, struct base_err *err)
{
	struct model *m = NULL;
	enum base_status s = report_queues_model(run, pattern, ret, &m, err);
	model_free(m);
	return s;
}

struct report_queues *report_queues_free(struct report_queues *q)
{
	return report_answer_free(q);
}

/* ---- rendering ------------------------------------------------------------------------------- */

/* Somebody waited for room: else text has no columns of it (JSON always has its keys). */
enum { QUEUES_SPACE = 1 };

#include "report/queues.def"

static bool queues_wait_for_space(const struct report_queues *q, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (q->queue[i].s.nr_waits_space)
			return true;
	return false;
}

void report_queues_text(struct base_str *out, const struct report_queues *q, size_t limit,
	const struct report_style *style)
{
	enum { NAME_LEAST = 16, NAME_WANTED = 22, NAME_MOST = 44 };
	size_t nr = limit && limit < q->nr_queues ? limit : q->nr_queues;
	size_t longest = report_table_longest(&queues_queue, q->queue, nr);
	struct base_layout l = {.table = &queues_queue,
		.all = q,
		.has = queues_wait_for_space(q, nr) ? QUEUES_SPACE : 0,
		.utf8 = style->utf8};
	base_layout_fit(&l, style->columns, longest < NAME_MOST ? longest : NAME_MOST, NAME_WANTED,
		NAME_LEAST);
	report_table_lines(out, &l, q->queue, q->nr_queues, limit, style);
	report_trace_text_caveats(out, &q->trace, style);
}

json_t *report_queues_json(const struct report_queues *q)
{
	return report_envelope(report_queues_document.name, &q->trace,
		base_table_json(&report_queues_document, q, q, QUEUES_SPACE));
}

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
		return base_fail(
			err, BASE_ERR_NOTFOUND, "no queue of this trace matches '%s'", pattern);
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
	struct report_queues *q = base_alloc(sizeof *q);
	enum base_status s = BASE_OK;
	if (!q)
		return report_no_memory(err);
	q->arena = base_arena_new(0);
	if (!q->arena)
		s = report_no_memory(err);
	if (s == BASE_OK)
		s = report_pass(run, "counting who waits on what", &plain, &m, err);
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
	if (q)
		base_arena_free(q->arena);
	base_free(q);
	return NULL;
}

/* ---- rendering ------------------------------------------------------------------------------- */

static void ns_or_dash(struct base_str *out, uint64_t ns, uint64_t nr, size_t width)
{
	struct base_str s = {0};
	if (nr)
		base_str_add_ns(&s, ns);
	else
		base_str_add(&s, "-");
	report_right(out, base_str_text(&s), width);
	base_str_fini(&s);
}

static void queues_count(struct base_str *out, uint64_t n, size_t width)
{
	struct base_str s = {0};
	base_str_add_count(&s, n);
	report_right(out, base_str_text(&s), width);
	base_str_fini(&s);
}

static uint64_t queues_mean(uint64_t sum, uint64_t nr)
{
	return nr ? sum / nr : 0;
}

static void queue_line(struct base_str *out, const struct report_style *st,
	const struct report_queue *q, size_t name_width, double elapsed_ns)
{
	const struct graph_queue_stats *s = &q->s;
	struct base_str cell = {0};
	if (q->nr_members > 1)
		base_str_addf(&cell, "%s %s%llu", q->name, report_times(st),
			(unsigned long long)q->nr_members);
	else
		base_str_add(&cell, q->name);
	report_cell(out, st, base_str_text(&cell), name_width, true);
	ns_or_dash(out, s->wait_data_ns, s->nr_waits_data, 10);
	queues_count(out, s->nr_waits_data, 11);
	ns_or_dash(out, s->wait_space_ns, s->nr_waits_space, 10);
	queues_count(out, s->nr_waits_space, 9);
	ns_or_dash(out, queues_mean(s->latency_ns, s->nr_latencies), s->nr_latencies, 9);
	ns_or_dash(out, queues_mean(s->residence_ns, s->dequeued), s->dequeued, 10);
	base_str_reset(&cell);
	base_str_addf(&cell, "%.3g", q->mean_units);
	report_right(out, base_str_text(&cell), 9);
	queues_count(out, s->max_units, 9);
	base_str_reset(&cell);
	base_str_add_count(
		&cell, elapsed_ns > 0 ? (uint64_t)((double)s->dequeued * 1e9 / elapsed_ns) : 0);
	report_right(out, base_str_text(&cell), 14);
	base_str_add(out, "\n");
	base_str_fini(&cell);
}

void report_queues_text(struct base_str *out, const struct report_queues *q, size_t limit,
	const struct report_style *style)
{
	size_t nr = limit && limit < q->nr_queues ? limit : q->nr_queues, name_width = 16;
	for (size_t i = 0; i < nr; i++) {
		size_t width =
			report_width(q->queue[i].name) + (q->queue[i].nr_members > 1 ? 6 : 0);
		name_width = width > name_width ? width : name_width;
	}
	name_width = name_width > 44 ? 44 : name_width;
	report_color_begin(out, style, REPORT_DIM);
	report_cell(out, style, "queue", name_width, true);
	base_str_add(out,
		"   waited for data      for space    latency residence    mean      max     "
		"units/s");
	report_color_end(out, style);
	base_str_add(out, "\n");
	for (size_t i = 0; i < nr; i++)
		queue_line(out, style, &q->queue[i], name_width, q->elapsed_ns);
	if (nr < q->nr_queues)
		base_str_addf(out, "... %zu more (--all shows them)\n", q->nr_queues - nr);
	report_trace_text_caveats(out, &q->trace, style);
}

json_t *report_queues_json(const struct report_queues *q)
{
	json_t *list = json_array();
	for (size_t i = 0; i < q->nr_queues; i++) {
		const struct report_queue *x = &q->queue[i];
		const struct graph_queue_stats *s = &x->s;
		json_t *row = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "queue", x->name,
			"type", x->type, "members", report_json_u64(x->nr_members),
			"enqueued_units", report_json_u64(s->enqueued), "dequeued_units",
			report_json_u64(s->dequeued), "enqueues", report_json_u64(s->nr_enqueues),
			"dequeues", report_json_u64(s->nr_dequeues));
		json_t *waits = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "waits_for_data",
			report_json_u64(s->nr_waits_data), "wait_for_data_ns",
			report_json_u64(s->wait_data_ns), "waits_for_space",
			report_json_u64(s->nr_waits_space), "wait_for_space_ns",
			report_json_u64(s->wait_space_ns), "latencies",
			report_json_u64(s->nr_latencies), "latency_ns",
			report_json_u64(s->latency_ns), "residence_ns",
			report_json_u64(s->residence_ns));
		json_t *rest = json_pack("{s:o, s:o, s:o, s:o}", "max_units",
			report_json_u64(s->max_units), "mean_units",
			report_json_share(x->mean_units), "underflows",
			report_json_u64(s->underflows), "overflows", report_json_u64(s->overflows));
		json_object_update(row, waits);
		json_object_update(row, rest);
		json_decref(waits);
		json_decref(rest);
		json_array_append_new(list, row);
	}
	json_t *result = json_pack(
		"{s:o, s:o}", "elapsed_ns", report_json_ns(q->elapsed_ns), "queues", list);
	return report_envelope("longpole/queues/1", &q->trace, result);
}

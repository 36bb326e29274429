/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histograms.c - a page of histograms for each queue (seed 000, section 5.8). Two passes: the first
 * says which queues are waited for most, the second watches those.
 */
#include "report/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- building -------------------------------------------------------------------------------- */

struct choice { /* rows of queues.c that get a page */
	const struct report_queues *queues;
	struct base_map rows; /* number of the name -> row */
	uint32_t *row_of_queue;
};

static enum base_status histograms_choose(struct choice *c, struct model *m, size_t nr_rows)
{
	uint32_t nr = graph_nr_queues(model_graph(m));
	enum base_status s = BASE_OK;
	uint64_t row;
	for (size_t i = 0; s == BASE_OK && i < nr_rows; i++)
		s = base_map_put(&c->rows, 0, c->queues->queue[i].name_text, i);
	for (uint32_t i = 0; s == BASE_OK && i < nr; i++) {
		const struct model_queue *q = model_queue(m, i);
		bool found = q->part == MODEL_QUEUE_whole &&
			     base_map_get(&c->rows, 0, q->name_text, &row);
		c->row_of_queue[i] = found ? (uint32_t)row : GRAPH_WATCH_NONE;
	}
	return s;
}

static enum base_status histograms_choose_rows(
	struct report_histograms *h, struct model *m, uint32_t **ret, struct base_err *err)
{
	struct choice c = {.queues = h->queues};
	uint32_t nr = graph_nr_queues(model_graph(m));
	c.row_of_queue = base_alloc(((size_t)nr + 1) * sizeof *c.row_of_queue);
	enum base_status s = c.row_of_queue ? histograms_choose(&c, m, h->nr_rows) : BASE_ERR_NOMEM;
	base_map_fini(&c.rows);
	if (s == BASE_OK) {
		*ret = c.row_of_queue;
		return s;
	}
	base_free(c.row_of_queue);
	return report_no_memory(err);
}

static enum base_status histograms_watch(struct report_histograms *h, const struct report_run *run,
	struct model *first, struct base_err *err)
{
	struct graph_lane_result lane;
	uint32_t *row_of_queue = NULL;
	struct model *m = NULL;
	enum base_status s = graph_lane(model_graph(first), 0, &lane, err);
	if (s == BASE_OK)
		s = histograms_choose_rows(h, first, &row_of_queue, err);
	if (s != BASE_OK)
		return s;
	struct graph_watch_options wo = {
		.size = sizeof wo,
		.row_of_queue = row_of_queue,
		.nr_queues = graph_nr_queues(model_graph(first)),
		.nr_rows = (uint32_t)h->nr_rows,
		.start_ns = lane.start_ns,
		.end_ns = lane.end_ns,
	};
	h->start_ns = lane.start_ns;
	h->end_ns = lane.end_ns;
	s = graph_watch_new(&wo, &h->watch, err);
	if (s == BASE_OK) {
		struct report_pass_options po = {.watch = h->watch};
		s = report_pass(run, "counting into histograms", &po, &m, err);
	}
	if (s == BASE_OK)
		s = graph_watch_finish(h->watch, model_graph(m), err);
	model_free(m);
	base_free(row_of_queue);
	return s;
}

/* Starts and ends of threads, and processors: last, for nobody reads a page of them. */
static void histograms_order(struct report_queues *q)
{
	size_t nr = 0;
	for (size_t i = 0; i < q->nr_queues; i++) {
		struct report_queue row = q->queue[i];
		if (row.is_token)
			continue;
		memmove(q->queue + nr + 1, q->queue + nr, (i - nr) * sizeof row);
		q->queue[nr++] = row;
	}
}

enum base_status report_histograms_build(const struct report_run *run, const char *pattern,
	size_t limit, struct report_histograms **ret, struct base_err *err)
{
	struct model *m = NULL;
	struct report_histograms *h = base_alloc(sizeof *h);
	if (!h)
		return report_no_memory(err);
	enum base_status s = report_queues_model(run, pattern, &h->queues, &m, err);
	if (s == BASE_OK) {
		histograms_order(h->queues);
		h->nr_rows = limit && limit < h->queues->nr_queues ? limit : h->queues->nr_queues;
		s = histograms_watch(h, run, m, err);
	}
	model_free(m);
	if (s != BASE_OK)
		report_histograms_free(h);
	else
		*ret = h;
	return s;
}

struct report_histograms *report_histograms_free(struct report_histograms *h)
{
	if (!h)
		return NULL;
	graph_watch_free(h->watch);
	report_queues_free(h->queues);
	base_free(h);
	return NULL;
}

/* ---- what the measures are called ------------------------------------------------------------ */

static const struct measure {
	const char *key, *value_unit, *count_unit, *text;
} measure[GRAPH_MEASURE_NR] = {
#define X(name, value, count, text) {#name, value, count, text},
	GRAPH_MEASURES(X)
#undef X
};

static const char *heading_of(enum graph_measure what)
{
	static const char *const heading[GRAPH_MEASURE_NR] = {
		[GRAPH_MEASURE_occupancy] = "OCCUPANCY",
		[GRAPH_MEASURE_wait_data] = "WAITS FOR UNITS",
		[GRAPH_MEASURE_wait_space] = "WAITS FOR SPACE",
		[GRAPH_MEASURE_latency] = "LATENCY",
		[GRAPH_MEASURE_residence] = "RESIDENCE",
		[GRAPH_MEASURE_service] = "SERVICE",
	};
	return heading[what];
}

static bool is_duration(enum graph_measure what)
{
	return !strcmp(measure[what].value_unit, "ns");
}

static void histograms_add_value(struct base_str *out, enum graph_measure what, uint64_t value)
{
	if (is_duration(what))
		base_str_add_ns(out, value);
	else
		base_str_add_count(out, value);
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { LINES_MAX = 14, LOW_WIDTH = 10, COUNT_WIDTH = 12, SHARE_WIDTH = 8, INDENT = 4 };

/* So many fine buckets a line that the whole range takes at most LINES_MAX. */
static unsigned buckets_a_line(const struct base_histogram *h)
{
	unsigned first = base_histogram_index(h->least), last = base_histogram_index(h->greatest);
	unsigned step = 1;
	while (last / step - first / step >= LINES_MAX)
		step *= 2;
	return step;
}

static uint64_t line_count(
	const struct base_histogram *h, unsigned line, unsigned step, uint64_t *ret_low)
{
	uint64_t sum = 0, low, high;
	for (unsigned i = line * step; i < (line + 1) * step && i < BASE_HISTOGRAM_BUCKETS; i++)
		sum += base_histogram_bucket(h, i, &low, &high);
	base_histogram_bucket(h, line * step, ret_low, &high);
	return sum;
}

static void histograms_add_line(struct base_str *out, const struct report_style *st,
	enum graph_measure what, uint64_t low, uint64_t count, uint64_t most, uint64_t all)
{
	unsigned fixed = INDENT + LOW_WIDTH + 2 + COUNT_WIDTH + SHARE_WIDTH + 1;
	unsigned bar = st->columns > fixed + 10 ? st->columns - fixed : 10;
	struct base_str cell = {0};
	bar = bar > 60 ? 60 : bar;
	histograms_add_value(&cell, what, low);
	base_str_addf(out, "%*s", INDENT, "");
	report_right(out, base_str_text(&cell), LOW_WIDTH);
	base_str_add(out, "  ");
	report_bar(out, st, most ? (double)count / (double)most : 0, bar);
	base_str_reset(&cell);
	if (what == GRAPH_MEASURE_occupancy) /* of time */
		base_str_add_ns(&cell, count);
	else
		base_str_add_count(&cell, count);
	report_right(out, base_str_text(&cell), COUNT_WIDTH);
	base_str_reset(&cell);
	if (count)
		report_percent(&cell, (double)count / (double)all);
	report_right(out, base_str_text(&cell), SHARE_WIDTH);
	base_str_add(out, "\n");
	base_str_fini(&cell);
}

static void add_summary(struct base_str *out, const struct report_style *st,
	enum graph_measure what, const struct base_histogram *h, const char *text)
{
	static const struct {
		const char *name;
		double share;
	} quantile[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}};
	struct base_str s = {0};
	if (what == GRAPH_MEASURE_occupancy) {
		base_str_addf(&s, "mean %.3g", base_histogram_mean(h));
	} else {
		base_str_add_count(&s, h->count);
		base_str_addf(&s, " %s%smean ", measure[what].count_unit, report_dot(st));
		report_ns(&s, base_histogram_mean(h));
	}
	for (size_t i = 0; i < BASE_COUNT(quantile); i++) {
		base_str_addf(&s, "%s%s ", report_dot(st), quantile[i].name);
		histograms_add_value(&s, what,
			quantile[i].share < 1 ? base_histogram_quantile(h, quantile[i].share)
					      : h->greatest);
	}
	base_str_add(out, "  ");
	report_color_begin(out, st, REPORT_BOLD);
	base_str_addf(out, "%-16s", heading_of(what));
	report_color_end(out, st);
	base_str_addf(out, "%s\n", base_str_text(&s));
	report_color_begin(out, st, REPORT_DIM);
	base_str_addf(out, "%*s%s\n", INDENT, "", text);
	report_color_end(out, st);
	base_str_fini(&s);
}

/* Lines between two that count something are left out when they are many. */
static unsigned empty_lines(
	const struct base_histogram *h, unsigned from, unsigned last, unsigned step)
{
	unsigned i = from;
	uint64_t low;
	while (i <= last && !line_count(h, i, step, &low))
		i++;
	return i - from;
}

static void histograms_add_histogram(struct base_str *out, const struct report_style *st,
	enum graph_measure what, const struct base_histogram *h, const char *text)
{
	enum { FEW = 3, GAP_LINES = 3 };
	uint64_t most = 0, low;
	if (!h->count)
		return;
	add_summary(out, st, what, h, text);
	if (what != GRAPH_MEASURE_occupancy && h->count <= FEW)
		return;
	unsigned step = buckets_a_line(h);
	unsigned first = base_histogram_index(h->least) / step;
	unsigned last = base_histogram_index(h->greatest) / step;
	for (unsigned i = first; i <= last; i++) {
		uint64_t n = line_count(h, i, step, &low);
		most = n > most ? n : most;
	}
	for (unsigned i = first; i <= last; i++) {
		unsigned gap = empty_lines(h, i, last, step);
		if (gap >= GAP_LINES) {
			base_str_addf(out, "%*s%s\n", INDENT + LOW_WIDTH - 3, "", "...");
			i += gap;
		}
		uint64_t n = line_count(h, i, step, &low);
		histograms_add_line(out, st, what, low, n, most, h->count);
	}
}

static void add_per_second(struct base_str *out, double rate)
{
	if (rate < 10)
		base_str_addf(out, "%.2g/s", rate);
	else {
		base_str_add_count(out, (uint64_t)llround(rate));
		base_str_add(out, "/s");
	}
}

/* A rate over time: one mark a slot, as high as its share of the highest. */
static void add_rate(struct base_str *out, const struct report_style *st, const char *heading,
	const uint64_t *slot, const struct report_histograms *h)
{
	static const char *const block[] = {" ", "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
		"\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88"};
	static const char ascii[] = " .:-=+*%#";
	enum { HEIGHTS = 8 };
	unsigned a_mark = st->columns >= GRAPH_WATCH_SLOTS + INDENT ? 1 : 2;
	uint64_t all = 0, most = 0;
	double elapsed_ns = (double)(h->end_ns - h->start_ns);
	for (unsigned i = 0; i < GRAPH_WATCH_SLOTS; i += a_mark) {
		uint64_t n = slot[i] + (a_mark == 2 ? slot[i + 1] : 0);
		all += n;
		most = n > most ? n : most;
	}
	if (!all || elapsed_ns <= 0)
		return;
	double mark_ns = elapsed_ns * a_mark / GRAPH_WATCH_SLOTS;
	report_color_begin(out, st, REPORT_BOLD);
	base_str_addf(out, "  %-16s", heading);
	report_color_end(out, st);
	base_str_add_counted(out, "%s {unit|units}", all);
	base_str_addf(out, "%smean ", report_dot(st));
	add_per_second(out, (double)all * 1e9 / elapsed_ns);
	base_str_addf(out, "%smost ", report_dot(st));
	add_per_second(out, (double)most * 1e9 / mark_ns);
	base_str_addf(out, "%sa mark is ", report_dot(st));
	report_ns(out, mark_ns);
	base_str_addf(out, "\n%*s", INDENT, "");
	for (unsigned i = 0; i < GRAPH_WATCH_SLOTS; i += a_mark) {
		uint64_t n = slot[i] + (a_mark == 2 ? slot[i + 1] : 0);
		unsigned height =
			n ? 1 + (unsigned)((double)(HEIGHTS - 1) * (double)n / (double)most) : 0;
		if (st->utf8)
			base_str_add(out, block[height]);
		else
			base_str_add_bytes(out, &ascii[height], 1);
	}
	base_str_add(out, "\n");
}

/* What a lock's token says in the language of locks. */
static const char *histograms_text_of(const struct report_queue *q, enum graph_measure what)
{
	static const char *const of_lock[GRAPH_MEASURE_NR] = {
		[GRAPH_MEASURE_occupancy] = "1: it is free, 0: it is held, weighted by time",
		[GRAPH_MEASURE_wait_data] = "waits for the lock",
		[GRAPH_MEASURE_latency] = "hand-off: from its release to when the waiter went on",
		[GRAPH_MEASURE_residence] = "free: from its release to when it was next taken",
		[GRAPH_MEASURE_service] = "held: from taking to releasing it",
	};
	return q->is_lock && of_lock[what] ? of_lock[what] : measure[what].text;
}

static void histograms_add_page(struct base_str *out, const struct report_style *st,
	const struct report_histograms *h, uint32_t row)
{
	const struct report_queue *q = &h->queues->queue[row];
	report_color_begin(out, st, REPORT_BOLD);
	base_str_add(out, q->name);
	report_color_end(out, st);
	if (q->nr_members > 1)
		base_str_addf(out, "  %llu of that name, counted together",
			(unsigned long long)q->nr_members);
	base_str_add(out, "\n");
	for (unsigned m = 0; m < GRAPH_MEASURE_NR; m++)
		histograms_add_histogram(out, st, (enum graph_measure)m,
			graph_watch_histogram(h->watch, row, (enum graph_measure)m),
			histograms_text_of(q, (enum graph_measure)m));
	add_rate(out, st, "ARRIVALS", graph_watch_arrived(h->watch, row), h);
	add_rate(out, st, "DEPARTURES", graph_watch_departed(h->watch, row), h);
}

void report_histograms_text(
	struct base_str *out, const struct report_histograms *h, const struct report_style *style)
{
	for (size_t i = 0; i < h->nr_rows; i++) {
		if (i)
			base_str_add(out, "\n");
		histograms_add_page(out, style, h, (uint32_t)i);
	}
	if (h->nr_rows < h->queues->nr_queues)
		base_str_addf(out,
			"\n... %zu more {queue|queues} (--histogram=PATTERN, --limit, --all)\n",
			h->queues->nr_queues - h->nr_rows);
	report_trace_text_caveats(out, &h->queues->trace, style);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *keyed_value(json_t *in, const char *key, const char *unit, uint64_t value)
{
	char name[48];
	snprintf(name, sizeof name, "%s_%s", key, unit);
	json_object_set_new(in, name, base_json_u64(value));
	return in;
}

static json_t *buckets_json(enum graph_measure what, const struct base_histogram *h)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < BASE_HISTOGRAM_BUCKETS; i++) {
		uint64_t low, high, n = base_histogram_bucket(h, i, &low, &high);
		if (!n)
			continue;
		json_t *b = json_object();
		keyed_value(b, "low", measure[what].value_unit, low);
		keyed_value(b, "high", measure[what].value_unit, high);
		keyed_value(b, "count", measure[what].count_unit, n);
		json_array_append_new(list, b);
	}
	return list;
}

static json_t *histograms_histogram_json(enum graph_measure what, const struct base_histogram *h)
{
	const char *unit = measure[what].value_unit;
	json_t *o = json_object();
	char mean[32];
	json_object_set_new(o, "text", json_string(measure[what].text));
	keyed_value(o, "count", measure[what].count_unit, h->count);
	snprintf(mean, sizeof mean, "mean_%s", unit);
	json_object_set_new(o, mean, report_json_share(base_histogram_mean(h)));
	keyed_value(o, "p50", unit, base_histogram_quantile(h, 0.5));
	keyed_value(o, "p90", unit, base_histogram_quantile(h, 0.9));
	keyed_value(o, "p99", unit, base_histogram_quantile(h, 0.99));
	keyed_value(o, "min", unit, h->least);
	keyed_value(o, "max", unit, h->greatest);
	json_object_set_new(o, "buckets", buckets_json(what, h));
	return o;
}

static json_t *slots_json(const uint64_t *slot)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < GRAPH_WATCH_SLOTS; i++)
		json_array_append_new(list, base_json_u64(slot[i]));
	return list;
}

json_t *report_histograms_json(const struct report_histograms *h)
{
	json_t *list = json_array();
	for (size_t i = 0; i < h->nr_rows; i++) {
		const struct report_queue *q = &h->queues->queue[i];
		json_t *all = json_object();
		for (unsigned m = 0; m < GRAPH_MEASURE_NR; m++)
			json_object_set_new(all, measure[m].key,
				histograms_histogram_json((enum graph_measure)m,
					graph_watch_histogram(
						h->watch, (uint32_t)i, (enum graph_measure)m)));
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "queue", q->name, "type",
				      q->type, "members", base_json_u64(q->nr_members),
				      "histograms", all, "arrived_units",
				      slots_json(graph_watch_arrived(h->watch, (uint32_t)i)),
				      "departed_units",
				      slots_json(graph_watch_departed(h->watch, (uint32_t)i))));
	}
	double slot_ns = (double)(h->end_ns - h->start_ns) / GRAPH_WATCH_SLOTS;
	json_t *result = json_pack("{s:o, s:o, s:o, s:o}", "elapsed_ns",
		report_json_ns(h->queues->elapsed_ns), "rate_slot_ns", report_json_ns(slot_ns),
		"queues_in_all", base_json_u64(h->queues->nr_queues), "queues", list);
	return report_envelope("longpole/histograms/1", &h->queues->trace, result);
}

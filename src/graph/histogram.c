/* SPDX-License-Identifier: Apache-2.0 */
/* histogram.c - the watch: distributions of what the engine sees at chosen queues. */
#include "graph/histogram.h"

#include "graph/priv.h"

enum { OPEN_MAX = 8 }; /* units that an actor holds at a time, each taken from another queue */

struct open {
	uint32_t queue;
	uint64_t since_ns;
};

struct holder {
	struct open open[OPEN_MAX];
	uint32_t nr;
};

struct graph_watch_row {
	struct graph_watch *watch;
	struct base_histogram histogram[GRAPH_MEASURE_NR];
	uint64_t arrived[GRAPH_WATCH_SLOTS], departed[GRAPH_WATCH_SLOTS];
};

struct graph_watch {
	struct graph_watch_row *row;
	uint32_t *row_of_queue;
	bool *holds; /* by queue: whoever takes from it holds a unit (not so a processor) */
	uint32_t nr_queues, nr_rows;
	uint64_t start_ns, end_ns;
	struct holder *holder; /* by actor */
	size_t nr_holders, holder_capacity;
	bool failed; /* out of memory: said at the end */
};

/* ---- life cycle ------------------------------------------------------------------------------ */

static enum base_status histogram_no_memory(struct base_err *err)
{
	base_fail(err, BASE_ERR_NOMEM, "out of memory for the queues' histograms");
	return BASE_ERR_NOMEM;
}

enum base_status graph_watch_new(
	const struct graph_watch_options *opts, struct graph_watch **ret, struct base_err *err)
{
	struct graph_watch *w = base_alloc(sizeof *w);
	size_t nr_queues = opts->nr_queues;

	if (!w)
		return histogram_no_memory(err);
	w->nr_queues = opts->nr_queues;
	w->nr_rows = opts->nr_rows;
	w->start_ns = opts->start_ns;
	w->end_ns = opts->end_ns > opts->start_ns ? opts->end_ns : opts->start_ns + 1;
	w->row = base_alloc(((size_t)opts->nr_rows + 1) * sizeof *w->row);
	w->row_of_queue = base_alloc((nr_queues + 1) * sizeof *w->row_of_queue);
	w->holds = base_alloc((nr_queues + 1) * sizeof *w->holds);
	if (!w->row || !w->row_of_queue || !w->holds) {
		graph_watch_free(w);
		return histogram_no_memory(err);
	}
	for (uint32_t i = 0; i < w->nr_rows; i++)
		w->row[i].watch = w;
	if (nr_queues)
		memcpy(w->row_of_queue, opts->row_of_queue, nr_queues * sizeof *w->row_of_queue);
	*ret = w;
	return BASE_OK;
}

struct graph_watch *graph_watch_free(struct graph_watch *w)
{
	if (!w)
		return NULL;
	for (uint32_t i = 0; w->row && i < w->nr_rows; i++) {
		for (unsigned m = 0; m < GRAPH_MEASURE_NR; m++)
			base_histogram_fini(&w->row[i].histogram[m]);
	}
	base_free(w->row);
	base_free(w->row_of_queue);
	base_free(w->holds);
	base_free(w->holder);
	base_free(w);
	return NULL;
}

static struct graph_watch_row *histogram_row_of(const struct graph_watch *w, uint32_t queue)
{
	uint32_t row = queue < w->nr_queues ? w->row_of_queue[queue] : GRAPH_WATCH_NONE;

	return row < w->nr_rows ? &w->row[row] : NULL;
}

struct graph_watch_row *graph_watch_queue(
	struct graph_watch *w, uint32_t queue, const struct graph_queue_options *o)
{
	struct graph_watch_row *row = histogram_row_of(w, queue);

	if (row)
		w->holds[queue] = !o->processor;
	return row;
}

enum base_status graph_watch_finish(
	struct graph_watch *w, const struct graph *g, struct base_err *err)
{
	for (uint32_t i = 0; i < w->nr_queues && i < g->nr_queues; i++) {
		const struct queue *q = &g->queue[i];

		if (q->watch && q->t_units < w->end_ns)
			graph_watch_occupied(q->watch, q->data.nr_units, w->end_ns - q->t_units);
	}
	return w->failed ? histogram_no_memory(err) : BASE_OK;
}

/* ---- what the engine sees -------------------------------------------------------------------- */

static void histogram_add(
	struct graph_watch_row *row, enum graph_measure what, uint64_t value, uint64_t n)
{
	if (base_histogram_add(&row->histogram[what], value, n) != BASE_OK)
		row->watch->failed = true;
}

void graph_watch_occupied(struct graph_watch_row *row, uint64_t units, uint64_t duration_ns)
{
	histogram_add(row, GRAPH_MEASURE_occupancy, units, duration_ns);
}

void graph_watch_waited(struct graph_watch_row *row, bool space, uint64_t wait_ns)
{
	histogram_add(row, space ? GRAPH_MEASURE_wait_space : GRAPH_MEASURE_wait_data, wait_ns, 1);
}

void graph_watch_late(struct graph_watch_row *row, uint64_t latency_ns)
{
	histogram_add(row, GRAPH_MEASURE_latency, latency_ns, 1);
}

static uint32_t histogram_slot_of(const struct graph_watch *w, uint64_t time_ns)
{
	uint64_t at = time_ns > w->start_ns ? time_ns - w->start_ns : 0;
	double share = (double)at / (double)(w->end_ns - w->start_ns);

	return share < 1 ? (uint32_t)(share * GRAPH_WATCH_SLOTS) : GRAPH_WATCH_SLOTS - 1;
}

void graph_watch_put(struct graph_watch_row *row, uint64_t time_ns, uint64_t n)
{
	row->arrived[histogram_slot_of(row->watch, time_ns)] += n;
}

void graph_watch_taken(
	struct graph_watch_row *row, uint64_t time_ns, uint64_t n, uint64_t residence_ns)
{
	row->departed[histogram_slot_of(row->watch, time_ns)] += n;
	histogram_add(row, GRAPH_MEASURE_residence, residence_ns, n);
}

/* ---- who holds what -------------------------------------------------------------------------- */

static struct holder *histogram_holder_of(struct graph_watch *w, uint32_t actor)
{
	if (actor >= w->nr_holders) {
		if (base_grow(&w->holder, &w->holder_capacity, (size_t)actor + 1,
			    sizeof *w->holder) != BASE_OK) {
			w->failed = true;
			return NULL;
		}
		memset(w->holder + w->nr_holders, 0,
			(actor + 1 - w->nr_holders) * sizeof *w->holder);
		w->nr_holders = (size_t)actor + 1;
	}
	return &w->holder[actor];
}

static void close_open(struct graph_watch *w, struct holder *h, uint32_t i, uint64_t t)
{
	struct graph_watch_row *row = histogram_row_of(w, h->open[i].queue);

	if (row)
		histogram_add(row, GRAPH_MEASURE_service, t - h->open[i].since_ns, 1);
	h->open[i] = h->open[--h->nr];
}

/* What was taken from this queue is given back, or finished: the actor is here again. */
static bool close_queue(struct graph_watch *w, struct holder *h, uint32_t queue, uint64_t t)
{
	for (uint32_t i = 0; i < h->nr; i++) {
		if (h->open[i].queue != queue)
			continue;
		close_open(w, h, i, t);
		return true;
	}
	return false;
}

static void histogram_take(struct graph_watch *w, struct holder *h, uint32_t queue, uint64_t t)
{
	close_queue(w, h, queue, t);
	if (queue >= w->nr_queues || !w->holds[queue])
		return;
	if (h->nr == OPEN_MAX) /* the oldest is forgotten, not counted */
		memmove(h->open, h->open + 1, --h->nr * sizeof *h->open);
	h->open[h->nr++] = (struct open){.queue = queue, .since_ns = t};
}

/* To where nothing was taken from: a result, so that all that went into it is done. */
static void histogram_put(struct graph_watch *w, struct holder *h, uint32_t queue, uint64_t t)
{
	if (close_queue(w, h, queue, t))
		return;
	while (h->nr)
		close_open(w, h, h->nr - 1, t);
}

void graph_watch_verb(
	struct graph_watch *w, enum graph_verb_kind kind, const struct graph_verb *v, uint64_t t)
{
	bool puts = kind == GRAPH_VERB_enqueue, takes = kind == GRAPH_VERB_dequeue;
	bool waits = kind == GRAPH_VERB_wait_empty || kind == GRAPH_VERB_wait_full;
	struct holder *h;

	/* From the back: a put undone in part, or all there is of a lock that was free. */
	bool undone = v->flags & GRAPH_BACK && v->n != GRAPH_ALL;

	if (!(puts || takes || waits) || v->flags & GRAPH_ASIDE || undone)
		return;
	h = histogram_holder_of(w, v->actor);
	if (!h)
		return;
	if (puts)
		histogram_put(w, h, v->queue, t);
	else if (takes)
		histogram_take(w, h, v->queue, t);
	else
		close_queue(w, h, v->queue, t);
}

/* ---- results --------------------------------------------------------------------------------- */

const struct base_histogram *graph_watch_histogram(
	const struct graph_watch *w, uint32_t row, enum graph_measure what)
{
	BASE_ASSERT(row < w->nr_rows && what < GRAPH_MEASURE_NR);
	return &w->row[row].histogram[what];
}

const uint64_t *graph_watch_arrived(const struct graph_watch *w, uint32_t row)
{
	BASE_ASSERT(row < w->nr_rows);
	return w->row[row].arrived;
}

const uint64_t *graph_watch_departed(const struct graph_watch *w, uint32_t row)
{
	BASE_ASSERT(row < w->nr_rows);
	return w->row[row].departed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.c - resource dependence loops (seed 000 section 5.4): where the critical path goes round
 * and round because something is finite.
 *
 * The path is a walk over actors; every return of units (room in a bounded queue, a token, a
 * credit) closes a loop. From the path's crossings, summed, a loop is a returning crossing together
 * with the way from its receiver back to its giver that the path takes most often (the widest one).
 * What k units more would buy, a lane says for each k. Threads of one start routine are one actor
 * here, and queues of one name one queue.
 */
#include "report/private.h"

#include <stdlib.h>

enum { LOOPS_TRIED_MAX = 14 }; /* two passes */

/* ---- crossings between groups ---------------------------------------------------------------- */

struct edge {
	uint32_t from, to, queue; /* groups; queue name; NONE: a link */
	bool space, returns;
	uint64_t visits;
	double latency_ns;
};
struct net {
	struct base_arena *arena;
	struct model *m;
	struct base_map names;        /* (groups or queues, number of the name) -> id, from 1 */
	uint32_t *group_of, *name_of; /* ids, by actor; by queue */
	const char **name;            /* by id */
	struct edge *edge;
	size_t nr_edges, edge_capacity;
	struct base_map by_key;
	uint32_t nr_names;
};

enum named { LOOPS_GROUP, LOOPS_QUEUE };

static uint32_t loops_name_id(
	struct net *n, enum named what, uint32_t text, const char *name, enum base_status *s)
{
	uint64_t id;
	if (base_map_get(&n->names, what, text, &id))
		return (uint32_t)id;
	if (*s == BASE_OK)
		*s = base_map_put(&n->names, what, text, n->nr_names);
	n->name[n->nr_names] = name;
	return n->nr_names++;
}

static enum base_status loops_name_all(struct net *n, struct base_err *err)
{
	struct graph *g = model_graph(n->m);
	uint32_t nr_actors = graph_nr_actors(g), nr_queues = graph_nr_queues(g);
	enum base_status s = BASE_OK;
	n->nr_names = 1;
	n->name = report_array(n->arena, (size_t)nr_actors + nr_queues + 1, sizeof *n->name);
	n->group_of = report_array(n->arena, nr_actors, sizeof *n->group_of);
	n->name_of = report_array(n->arena, nr_queues, sizeof *n->name_of);
	if (!n->name || !n->group_of || !n->name_of)
		return report_no_memory(err);
	for (uint32_t i = 0; i < nr_actors; i++) {
		const struct model_actor *a = model_actor(n->m, i);
		n->group_of[i] = loops_name_id(n, LOOPS_GROUP, a->group_text, a->group, &s);
	}
	for (uint32_t i = 0; i < nr_queues; i++) {
		const struct model_queue *q = model_queue(n->m, i);
		n->name_of[i] = loops_name_id(n, LOOPS_QUEUE, q->name_text, q->name, &s);
	}
	return s == BASE_OK ? s : report_no_memory(err);
}

/* A unit that comes back: room, a token, a credit. */
static bool returns_units(const struct net *n, const struct graph_crossing *c)
{
	return c->queue != REPORT_NONE && (c->space || model_queue(n->m, c->queue)->tokens);
}

static enum base_status add_crossing(
	struct net *n, const struct graph_crossing *c, struct base_err *err)
{
	uint32_t queue = c->queue == REPORT_NONE ? REPORT_NONE : n->name_of[c->queue];
	uint32_t from = n->group_of[c->from_actor], to = n->group_of[c->to_actor];
	uint64_t hi = (uint64_t)from << 32 | to, lo = (uint64_t)queue << 1 | c->space, i;
	enum base_status s = BASE_OK;
	if (c->from_actor == c->to_actor)
		return BASE_OK; /* its own units: nobody was waited for */
	if (!base_map_get(&n->by_key, hi, lo, &i)) {
		i = n->nr_edges;
		s = base_grow(&n->edge, &n->edge_capacity, n->nr_edges + 1, sizeof *n->edge);
		if (s == BASE_OK)
			s = base_map_put(&n->by_key, hi, lo, i);
		if (s != BASE_OK)
			return report_no_memory(err);
		n->edge[n->nr_edges++] = (struct edge){
			.from = from,
			.to = to,
			.queue = queue,
			.space = c->space,
			.returns = returns_units(n, c),
		};
	}
	n->edge[i].visits += c->visits;
	n->edge[i].latency_ns += c->latency_ns;
	return BASE_OK;
}

static enum base_status loops_gather(struct net *n, struct base_err *err)
{
	const struct graph_crossing *c;
	size_t nr;
	enum base_status s = loops_name_all(n, err);
	if (s == BASE_OK)
		s = graph_crossings_of(model_graph(n->m), 0, 0, &c, &nr, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		s = add_crossing(n, &c[i], err);
	return s;
}

/* ---- the widest way back --------------------------------------------------------------------- */

struct way { /* by name id of a group */
	uint64_t width;
	uint32_t over; /* edge by which it is reached; NONE: the start */
	bool done;
};

/* From `from` to all others, by the edges but `without`. Dijkstra, with widths for lengths; the
 * groups are few. */
static void loops_widen(const struct net *n, uint32_t from, uint32_t without, struct way *way)
{
	for (uint32_t i = 0; i < n->nr_names; i++)
		way[i] = (struct way){.over = REPORT_NONE};
	way[from].width = UINT64_MAX;
	for (;;) {
		uint32_t best = REPORT_NONE;
		for (uint32_t i = 0; i < n->nr_names; i++)
			if (!way[i].done && way[i].width &&
				(best == REPORT_NONE || way[i].width > way[best].width))
				best = i;
		if (best == REPORT_NONE)
			return;
		way[best].done = true;
		for (uint32_t e = 0; e < n->nr_edges; e++) {
			const struct edge *x = &n->edge[e];
			uint64_t width = x->visits < way[best].width ? x->visits : way[best].width;
			if (x->from != best || e == without || way[x->to].done ||
				width <= way[x->to].width)
				continue;
			way[x->to].width = width;
			way[x->to].over = e;
		}
	}
}

/* The loop's stations: the receiver first, the giver last, each with the queue that leads on. */
static enum base_status fill_stations(struct report_loop *loop, const struct net *n,
	uint32_t closing, const struct way *way, struct base_err *err)
{
	const struct edge *e = &n->edge[closing];
	size_t nr = 1;
	for (uint32_t at = e->from; way[at].over != REPORT_NONE; at = n->edge[way[at].over].from)
		nr++;
	loop->station = report_array(n->arena, nr, sizeof *loop->station);
	if (!loop->station)
		return report_no_memory(err);
	loop->nr_stations = nr;
	uint32_t at = e->from, next = closing;
	for (size_t i = nr; i-- > 0;) {
		uint32_t queue = n->edge[next].queue;
		loop->station[i].actor = report_clean(n->arena, n->name[at]);
		loop->station[i].queue =
			queue == REPORT_NONE ? "" : report_clean(n->arena, n->name[queue]);
		loop->station[i].space = n->edge[next].space;
		if (!loop->station[i].actor || !loop->station[i].queue)
			return report_no_memory(err);
		next = way[at].over;
		at = next == REPORT_NONE ? at : n->edge[next].from;
	}
	return BASE_OK;
}

static int most_rounds_first(const void *a, const void *b)
{
	const struct edge *const *x = a, *const *y = b;
	if ((*x)->visits != (*y)->visits)
		return (*x)->visits > (*y)->visits ? -1 : 1;
	return *x < *y ? -1 : 1;
}

enum { FEW_UNITS = 16 };

/* 1, 2, 4 of few; of many (bytes, say) a quarter, half and all of them again. */
static void choose_sizes(struct report_loop *loop, uint64_t units)
{
	uint64_t first = units < FEW_UNITS ? 1 : units / 4;
	for (unsigned k = 0; k < REPORT_LOOP_LANES - 1; k++)
		loop->more[k] = first << k;
}

/* What the queue of that name holds at most, when all of that name agree; 0: not known. */
static void fill_queue(struct report_loop *loop, const struct net *n, const struct edge *e)
{
	uint32_t nr = graph_nr_queues(model_graph(n->m));
	uint64_t most = 0;
	for (uint32_t i = 0; i < nr; i++) {
		const struct model_queue *q = model_queue(n->m, i);
		const struct graph_queue_stats *st = graph_queue_stats(model_graph(n->m), i);
		if (n->name_of[i] != e->queue)
			continue;
		most = st->max_units > most ? st->max_units : most;
		bool inferred;
		uint64_t size = q->tokens ? 0 : model_queue_size(n->m, i, &inferred);
		loop->capacity = loop->nr_queues++ && loop->capacity != size ? 0 : size;
		loop->size_inferred |= size && inferred;
		loop->resizable |= size || q->tokens;
		loop->tokens |= q->tokens;
	}
	choose_sizes(loop, loop->capacity ? loop->capacity : most);
}

static enum base_status find_loops(
	struct report_loops *out, const struct net *n, uint32_t **ret_names, struct base_err *err)
{
	const struct edge **closing = report_array(n->arena, n->nr_edges, sizeof *closing);
	struct way *way = report_array(n->arena, n->nr_names, sizeof *way);
	size_t nr = 0;
	out->loop = report_array(n->arena, n->nr_edges, sizeof *out->loop);
	*ret_names = report_array(n->arena, n->nr_edges, sizeof **ret_names);
	if (!closing || !way || !out->loop || !*ret_names)
		return report_no_memory(err);
	for (size_t i = 0; i < n->nr_edges; i++)
		if (n->edge[i].returns)
			closing[nr++] = &n->edge[i];
	if (nr > 1)
		qsort(closing, nr, sizeof *closing, most_rounds_first);
	for (size_t i = 0; i < nr; i++) {
		const struct edge *e = closing[i];
		uint32_t ix = (uint32_t)(e - n->edge);
		loops_widen(n, e->to, ix, way);
		if (e->from != e->to && !way[e->from].width)
			continue; /* the path never came back */
		struct report_loop *loop = &out->loop[out->nr_loops];
		*loop = (struct report_loop){
			.queue = report_clean(n->arena, n->name[e->queue]),
			.space = e->space,
			.nr_rounds = e->visits,
			.latency_ns = e->latency_ns,
		};
		enum base_status s =
			loop->queue ? fill_stations(loop, n, ix, way, err) : report_no_memory(err);
		if (s != BASE_OK)
			return s;
		fill_queue(loop, n, e);
		(*ret_names)[out->nr_loops++] = e->queue;
	}
	return BASE_OK;
}

/* ---- what more units would buy --------------------------------------------------------------- */

static enum base_status edits_of(const struct net *n, const struct report_loop *loop, uint32_t name,
	unsigned lane, struct graph_scenario *ret, struct base_err *err)
{
	uint32_t nr = graph_nr_queues(model_graph(n->m));
	struct graph_edit *edit = report_array(n->arena, loop->nr_queues, sizeof *edit);
	size_t at = 0;
	if (!edit)
		return report_no_memory(err);
	for (uint32_t i = 0; i < nr; i++) {
		if (n->name_of[i] != name)
			continue;
		if (lane == REPORT_LOOP_LANES - 1)
			edit[at++] =
				(struct graph_edit){.kind = loop->space ? GRAPH_EDIT_UNBOUND_QUEUE
									: GRAPH_EDIT_IGNORE_QUEUE,
					.id = i};
		else
			edit[at++] = (struct graph_edit){.kind = GRAPH_EDIT_RESIZE_QUEUE,
				.id = i,
				.units = loop->more[lane]};
	}
	*ret = (struct graph_scenario){.edit = edit, .nr_edits = at};
	return BASE_OK;
}

static enum base_status read_lanes(struct report_loops *out, struct model *m,
	const struct report_index *ix, struct report_predictor *predictor,
	const struct graph_scenario *scenario, const struct report_lane *answers,
	struct base_err *err)
{
	double *topic_ns = report_array(out->arena, ix->nr_topics, sizeof *topic_ns);
	enum base_status s = topic_ns ? BASE_OK : report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < out->nr_loops * REPORT_LOOP_LANES; i++) {
		struct report_loop *loop = &out->loop[i / REPORT_LOOP_LANES];
		unsigned lane = (unsigned)(i % REPORT_LOOP_LANES);
		struct report_answer answer;
		report_lane_sums(&answers[i], ix, topic_ns, NULL);
		s = report_predictor_ask(
			predictor, &scenario[i], answers[i].length_ns, &answer, err);
		if (s != BASE_OK)
			break;
		loop->speedup[lane] = answer.best.speedup;
		/* neither method knows: a long trace, a size that nobody declared */
		loop->resizable &= answer.best.speedup > 0 && !answer.best.none;
		/* (a unit more can be left unused) */
		if (lane && loop->resizable && loop->speedup[lane] < loop->speedup[lane - 1])
			loop->speedup[lane] = loop->speedup[lane - 1];
		uint32_t next = report_largest_topic(topic_ns, ix, REPORT_NONE);
		if (lane == REPORT_LOOP_LANES - 1 && next != REPORT_NONE)
			loop->next = report_clean(
				out->arena, model_state(m, ix->first_state[next])->name);
	}
	return s;
}

static enum base_status loops_predict(struct report_loops *out, struct report_predictor *predictor,
	const struct net *n, const uint32_t *name, const struct report_index *ix,
	struct base_err *err)
{
	size_t nr = out->nr_loops * REPORT_LOOP_LANES;
	struct graph_scenario *lane = report_array(n->arena, nr, sizeof *lane);
	struct report_lane *answer = report_array(n->arena, nr, sizeof *answer);
	enum base_status s = lane && answer ? report_predictor_ready(predictor, n->m, nr, err)
					    : report_no_memory(err);
	report_predictor_leave_intervals(predictor);
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		s = edits_of(n, &out->loop[i / REPORT_LOOP_LANES], name[i / REPORT_LOOP_LANES],
			i % REPORT_LOOP_LANES, &lane[i], err);
	if (s == BASE_OK)
		s = report_lanes(
			predictor->run, "trying more units", lane, nr, answer, n->arena, err);
	return s == BASE_OK ? read_lanes(out, n->m, ix, predictor, lane, answer, err) : s;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* What would buy most comes first; of the same, what the path goes round most often. */
static int most_gain_first(const void *a, const void *b)
{
	const struct report_loop *x = a, *y = b;
	double gain_x = x->speedup[REPORT_LOOP_LANES - 1],
	       gain_y = y->speedup[REPORT_LOOP_LANES - 1];
	if (gain_x != gain_y)
		return gain_x > gain_y ? -1 : 1;
	return (x->nr_rounds < y->nr_rounds) - (x->nr_rounds > y->nr_rounds);
}

enum base_status report_loops_build(const struct report_run *run, size_t nr_loops_max,
	struct report_loops **ret, struct base_err *err)
{
	struct report_pass_options first = {.crossings = true};
	struct report_loops *out = report_answer_new(sizeof *out);
	struct report_predictor predictor = {0};
	struct report_index ix = {0};
	struct graph_lane_result lane = {0};
	struct net n = {0};
	uint32_t *name = NULL;
	enum base_status s = BASE_OK;
	if (!out)
		return report_no_memory(err);
	n.arena = out->arena;
	s = report_predictor_pass(&predictor, run, "looking for loops", &first, &n.m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&out->trace, out->arena, run, n.m, err);
	if (s == BASE_OK)
		s = graph_lane(model_graph(n.m), 0, &lane, err);
	if (s == BASE_OK && !lane.found)
		s = report_no_path(err);
	out->elapsed_ns = lane.length_ns;
	if (s == BASE_OK)
		s = loops_gather(&n, err);
	if (s == BASE_OK)
		s = find_loops(out, &n, &name, err);
	out->nr_found = out->nr_loops;
	if (out->nr_loops > LOOPS_TRIED_MAX)
		out->nr_loops = LOOPS_TRIED_MAX; /* those of most rounds */
	if (s == BASE_OK)
		s = report_index_init(&ix, n.m, err);
	if (s == BASE_OK && out->nr_loops)
		s = loops_predict(out, &predictor, &n, name, &ix, err);
	if (s == BASE_OK && out->nr_loops > 1)
		qsort(out->loop, out->nr_loops, sizeof *out->loop, most_gain_first);
	if (nr_loops_max && out->nr_loops > nr_loops_max)
		out->nr_loops = nr_loops_max;
	report_predictor_fini(&predictor);
	report_index_fini(&ix);
	base_map_fini(&n.by_key);
	base_map_fini(&n.names);
	base_free(n.edge);
	model_free(n.m);
	if (s != BASE_OK)
		report_loops_free(out);
	else
		*ret = out;
	return s;
}

struct report_loops *report_loops_free(struct report_loops *l)
{
	return report_answer_free(l);
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *loops_arrow(const struct report_style *st)
{
	return st->utf8 ? "\xe2\x86\x92" : "->";
}

static void what_returns(struct base_str *out, const struct report_loop *l)
{
	if (l->space && l->capacity)
		base_str_addf(out, "room in %s (at most %llu {unit|units}%s)", l->queue,
			(unsigned long long)l->capacity,
			l->size_inferred ? ", inferred: the most that it held" : "");
	else if (l->space)
		base_str_addf(out, "room in %s (its size is not known)", l->queue);
	else
		base_str_addf(out, "%s", l->queue);
}

static void round_lines(
	struct base_str *out, const struct report_style *st, const struct report_loop *l)
{
	struct base_str way = {0};
	for (size_t i = 0; i < l->nr_stations; i++) {
		const struct report_station *at = &l->station[i];
		base_str_addf(&way, "%s %s ", at->actor, loops_arrow(st));
		if (*at->queue)
			base_str_addf(&way, "[%s%s] %s ", at->space ? "room in " : "", at->queue,
				loops_arrow(st));
	}
	base_str_add(&way, l->station[0].actor);
	report_wrap(out, st, "    ", 4, base_str_text(&way));
	base_str_fini(&way);
}

static void loop_lines(struct base_str *out, const struct report_style *st, size_t number,
	const struct report_loop *l, double elapsed_ns)
{
	base_str_addf(out, "%zu. ", number);
	report_color_begin(out, st, REPORT_BOLD);
	what_returns(out, l);
	report_color_end(out, st);
	base_str_add(out, ": ");
	base_str_add_counted(out, "%s {round|rounds}, one every ", l->nr_rounds);
	report_ns(out, elapsed_ns / (double)l->nr_rounds);
	base_str_add(out, " of the path\n");
	round_lines(out, st, l);
	base_str_add(out, "    with");
	for (unsigned k = 0; l->resizable && k < REPORT_LOOP_LANES - 1; k++)
		base_str_addf(out, "  +%llu: %.2f%s", (unsigned long long)l->more[k], l->speedup[k],
			report_times(st));
	base_str_addf(
		out, "  no limit: %.2f%s", l->speedup[REPORT_LOOP_LANES - 1], report_times(st));
	if (l->next && *l->next)
		base_str_addf(out, "; then the longest is %s", l->next);
	base_str_add(out, "\n");
}

void report_loops_text(
	struct base_str *out, const struct report_loops *l, const struct report_style *style)
{
	if (!l->nr_loops) {
		base_str_add(out, "The critical path of ");
		report_ns(out, l->elapsed_ns);
		base_str_add(out,
			" goes round no loop of a finite resource: no bounded queue, lock or "
			"credit holds it back (observed).\n");
		report_trace_text_caveats(out, &l->trace, style);
		return;
	}
	const struct report_loop *best = &l->loop[0];
	base_str_add(out, "The path goes round ");
	base_str_addf(out,
		"%zu {loop|loops} of finite resources; the one that holds it back most is ",
		l->nr_found);
	what_returns(out, best);
	base_str_addf(out, ": %.2f%s if it had no limit (predicted, as by whatif).\n\n",
		best->speedup[REPORT_LOOP_LANES - 1], report_times(style));
	for (size_t i = 0; i < l->nr_loops; i++)
		loop_lines(out, style, i + 1, &l->loop[i], l->elapsed_ns);
	if (l->nr_found > l->nr_loops)
		base_str_addf(
			out, "and %zu with fewer rounds (see --all)\n", l->nr_found - l->nr_loops);
	report_trace_text_caveats(out, &l->trace, style);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

struct loops_more {
	uint64_t units;
	double speedup;
};
static json_t *loops_sizes_json(const struct report_loop *l, const struct base_table *more)
{
	struct loops_more size[REPORT_LOOP_LANES - 1];
	for (unsigned k = 0; k < BASE_COUNT(size); k++)
		size[k] = (struct loops_more){l->more[k], l->speedup[k]};
	return base_table_json_list(more, size, l->resizable ? BASE_COUNT(size) : 0, NULL, 0);
}

#include "report/loops.def"

json_t *report_loops_json(const struct report_loops *l)
{
	return report_envelope(report_loops_document.name, &l->trace,
		base_table_json(&report_loops_document, l, l, 0));
}

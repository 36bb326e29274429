/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locks.c - locks by name, with what the critical path has of each and what halving its hold would
 * buy.
 *
 * Names and the path are the model's, counts those of locks_count.c. A lock's part of the path is
 * the time in which the path is in a thread that holds it (it being the innermost), waits for it,
 * or has just been handed it.
 */
#include "report/locks/locks_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HALF 0.5 /* of each hold: what "halved" asks for */

struct builder {
	struct report_locks *out;
	const struct report_run *run;
	const struct report_locks_options *opts;
	struct model *m;
	struct report_predictor predictor;
	struct lock_count count;
	struct lock_path path;
	bool pieces;               /* path is filled */
	const char **name_of;      /* by object definition; NULL: not a lock that was used */
	uint32_t *row_of;          /* by object definition; REPORT_NONE */
	uint32_t nr_objects;       /* definitions */
	struct base_map site_rows; /* (row, place) -> index into its sites */
};

double report_lock_gain(const struct report_lock *l)
{
	if (!l->halved.tried)
		return 1;
	return fmin(l->halved.answer.best.speedup, l->halved.most_speedup);
}

uint64_t report_lock_holds(const struct report_lock_use *u)
{
	uint64_t all = u->acquired + u->retaken;
	return all > u->nested ? all - u->nested : 0;
}

uint64_t report_lock_hold_ns(const struct report_lock_use *u)
{
	uint64_t holds = report_lock_holds(u);
	if (!u->nr_held || u->hold.nr >= holds)
		return u->hold.total_ns;
	return (uint64_t)llround(u->held_ns / (double)u->nr_held * (double)holds);
}

double report_lock_hold_mean_ns(const struct report_lock_use *u)
{
	uint64_t holds = report_lock_holds(u);
	uint64_t of = holds > u->hold.nr ? holds : u->hold.nr;
	return of ? (double)report_lock_hold_ns(u) / (double)of : 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The site that took a lock most often, or waited for a condition variable: a nameless one of a
 * tally is called after it. */
static uint32_t main_site(const struct builder *b, uint32_t object)
{
	uint32_t site = 0;
	uint64_t most = 0;
	for (size_t i = 0; i < b->count.nr_cells; i++) {
		const struct lock_cell *x = &b->count.cell[i];
		uint64_t n = x->use.acquired + x->use.retaken;
		if (x->object == object && (n > most || (n == most && x->site < site))) {
			most = n;
			site = x->site;
		}
	}
	for (size_t i = 0; !site && i < b->count.nr_conds; i++)
		site = b->count.cond[i].object == object ? b->count.cond[i].site : 0;
	return site;
}

static const char *make_name(struct builder *b, uint32_t object)
{
	const struct trace_defs *d = trace_reader_defs(b->run->reader);
	const struct trace_object *def = trace_def_object(d, object);
	struct base_str s = {0};
	base_str_add(&s, trace_object_type_text(def->type));
	const char *own = trace_text_of(d, def->name);
	const char *where = *own ? "" : model_site_text(b->m, main_site(b, object));
	if (*own)
		base_str_addf(&s, " %s", own);
	else if (*where)
		base_str_addf(&s, " of %s", where);
	else
		base_str_addf(&s, " 0x%llx", (unsigned long long)def->address);
	struct base_str clean = {0};
	report_clean_add(&clean, base_str_text(&s));
	base_str_fini(&s);
	return report_keep(b->out->arena, &clean);
}

static enum base_status find_names(struct builder *b, struct base_err *err)
{
	const struct trace_defs *d = trace_reader_defs(b->run->reader);
	b->nr_objects = d->nr_objects;
	b->name_of = report_array(b->out->arena, b->nr_objects, sizeof *b->name_of);
	b->row_of = report_array(b->out->arena, b->nr_objects, sizeof *b->row_of);
	if (!b->name_of || !b->row_of)
		return report_no_memory(err);
	for (uint32_t i = 0; i < b->nr_objects; i++)
		b->row_of[i] = REPORT_NONE;
	uint32_t nr_queues = graph_nr_queues(model_graph(b->m));
	for (uint32_t q = 0; q < nr_queues; q++) {
		const struct model_queue *mq = model_queue(b->m, q);
		if (!mq->object || mq->object >= b->nr_objects || mq->part != MODEL_QUEUE_whole)
			continue;
		b->name_of[mq->object] = report_clean(b->out->arena, mq->name);
		if (!b->name_of[mq->object])
			return report_no_memory(err);
	}
	return BASE_OK;
}

static enum base_status locks_name_object(struct builder *b, uint32_t object, struct base_err *err)
{
	if (!b->name_of[object])
		b->name_of[object] = make_name(b, object);
	return b->name_of[object] ? BASE_OK : report_no_memory(err);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static enum base_status make_rows(struct builder *b, struct base_err *err)
{
	struct report_locks *out = b->out;
	const struct trace_defs *d = trace_reader_defs(b->run->reader);
	struct base_strtab *names = base_strtab_new();
	enum base_status s = names ? BASE_OK : report_no_memory(err);
	out->lock = report_array(out->arena, b->count.nr_objects, sizeof *out->lock);
	if (!out->lock)
		s = report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < b->count.nr_objects; i++) {
		uint32_t object = b->count.object[i].object, id = 0;
		if (object >= b->nr_objects)
			continue;
		s = locks_name_object(b, object, err);
		const char *name = s == BASE_OK ? b->name_of[object] : "";
		if (s != BASE_OK ||
			(b->opts->pattern && !report_pattern_matches(b->opts->pattern, name)))
			continue;
		if (base_strtab_intern(names, name, strlen(name), &id) != BASE_OK || !id) {
			s = report_no_memory(err);
			break;
		}
		struct report_lock *row = &out->lock[id - 1];
		if (!row->name) {
			row->name = name;
			row->type = trace_object_type_text(trace_def_object(d, object)->type);
			row->is_loop = trace_def_object(d, object)->type == TRACE_OBJECT_event_loop;
			out->nr_locks++;
		}
		row->nr_members++;
		b->row_of[object] = id - 1;
	}
	base_strtab_free(names);
	return s;
}

/* Numbers of the cells' places, by their texts: calls that the text does not tell apart (of one
 * line; of a function without lines) are one. NULL: no memory. */
static uint32_t *places_of(struct builder *b)
{
	uint32_t *place = report_array(b->out->arena, b->count.nr_cells, sizeof *place);
	struct base_strtab *texts = base_strtab_new();
	bool good = place && texts;
	for (size_t i = 0; good && i < b->count.nr_cells; i++) {
		const char *text = model_site_text(b->m, b->count.cell[i].site);
		good = base_strtab_intern(texts, text, strlen(text), &place[i]) == BASE_OK;
	}
	base_strtab_free(texts);
	return good ? place : NULL;
}

static enum base_status locks_add_site(struct builder *b, uint32_t row, uint32_t place,
	const struct lock_cell *cell, struct base_err *err)
{
	struct report_lock *l = &b->out->lock[row];
	uint64_t at;
	if (!base_map_get(&b->site_rows, row, place, &at)) {
		at = l->nr_sites++;
		if (base_map_put(&b->site_rows, row, place, at) != BASE_OK)
			return report_no_memory(err);
	}
	if (!l->site)
		return BASE_OK; /* the first round only numbers them */
	struct report_lock_site *site = &l->site[at];
	if (!site->where) {
		const char *text = model_site_text(b->m, cell->site);
		site->where = report_clean(b->out->arena, *text ? text : "?");
	}
	report_lock_use_add(&site->use, &cell->use);
	return site->where ? BASE_OK : report_no_memory(err);
}

static int by_acquired(const void *a, const void *b)
{
	const struct report_lock_site *x = a, *y = b;
	if (x->use.acquired != y->use.acquired)
		return x->use.acquired < y->use.acquired ? 1 : -1;
	return strcmp(x->where, y->where);
}

static uint32_t row_of(const struct builder *b, uint32_t object)
{
	return object < b->nr_objects ? b->row_of[object] : REPORT_NONE;
}

static enum base_status locks_add_sites(struct builder *b, struct base_err *err)
{
	struct report_locks *out = b->out;
	enum base_status s = BASE_OK;
	const uint32_t *place = places_of(b);
	if (!place)
		return report_no_memory(err);
	for (int round = 0; s == BASE_OK && round < 2; round++) {
		for (size_t i = 0; s == BASE_OK && i < b->count.nr_cells; i++) {
			uint32_t row = row_of(b, b->count.cell[i].object);
			if (row != REPORT_NONE)
				s = locks_add_site(b, row, place[i], &b->count.cell[i], err);
		}
		for (size_t i = 0; s == BASE_OK && !round && i < out->nr_locks; i++) {
			struct report_lock *l = &out->lock[i];
			l->site = report_array(out->arena, l->nr_sites, sizeof *l->site);
			if (!l->site)
				s = report_no_memory(err);
		}
	}
	for (size_t i = 0; s == BASE_OK && i < out->nr_locks; i++)
		if (out->lock[i].nr_sites)
			qsort(out->lock[i].site, out->lock[i].nr_sites, sizeof *out->lock[i].site,
				by_acquired);
	return s;
}

static uint64_t locks_mean(uint64_t total, uint64_t nr)
{
	return nr ? total / nr : 0;
}

/* Everything that was counted, by row and in all. Each lock's mean is one entry of by_static. */
static enum base_status locks_add_counts(struct builder *b, struct base_err *err)
{
	struct report_locks *out = b->out;
	struct report_lock_use *of = base_alloc((b->count.nr_objects + 1) * sizeof *of);
	enum base_status s = of ? BASE_OK : report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < b->count.nr_cells; i++) {
		const struct lock_cell *cell = &b->count.cell[i];
		uint32_t row = row_of(b, cell->object);
		uint64_t at;
		if (row == REPORT_NONE || !base_map_get(&b->count.object_of, 0, cell->object, &at))
			continue;
		struct report_lock_use use = cell->use;
		report_lock_use_add(&out->lock[row].use, &use);
		report_lock_use_add(&out->all, &use);
		report_lock_use_add(&of[at], &use);
	}
	for (size_t i = 0; s == BASE_OK && i < b->count.nr_objects; i++) {
		const struct lock_object *o = &b->count.object[i];
		uint32_t row = row_of(b, o->object);
		if (row == REPORT_NONE)
			continue;
		struct report_lock *l = &out->lock[row];
		struct report_lock_bins *bins = &out->by_static;
		out->nr_static++;
		l->nr_threads = o->nr_threads > l->nr_threads ? o->nr_threads : l->nr_threads;
		l->waiters_max = o->waiters_max > l->waiters_max ? o->waiters_max : l->waiters_max;
		l->waited_by_any_ns += o->waited_by_any_ns;
		l->nr_convoys += o->nr_convoys;
		l->convoy_ns += o->convoy_ns;
		if (o->convoy_longest > l->convoy_longest)
			l->convoy_longest = o->convoy_longest;
		if (base_histogram_merge(&l->hold, &o->hold) != BASE_OK ||
			base_histogram_merge(&l->wait, &o->wait) != BASE_OK)
			s = report_no_memory(err);
		if (of[i].hold.nr)
			bins->hold[report_lock_bin((uint64_t)report_lock_hold_mean_ns(&of[i]))]++;
		if (of[i].wait.nr)
			bins->wait[report_lock_bin(
				locks_mean(of[i].wait.total_ns, of[i].wait.nr))]++;
		if (of[i].lock_call.nr)
			bins->lock_call[report_lock_bin(
				locks_mean(of[i].lock_call.total_ns, of[i].lock_call.nr))]++;
		if (of[i].unlock_call.nr)
			bins->unlock_call[report_lock_bin(
				locks_mean(of[i].unlock_call.total_ns, of[i].unlock_call.nr))]++;
	}
	out->dynamic = b->count.dynamic;
	out->has |= out->all.shared ? REPORT_LOCKS_shared : 0;
	out->has |= out->all.failed ? REPORT_LOCKS_failed : 0;
	base_free(of);
	return s;
}

/* ---- condition variables, threads ------------------------------------------------------------ */

static int conds_by_wait(const void *a, const void *b)
{
	const struct report_lock_cond *x = a, *y = b;
	if (x->wait.total_ns != y->wait.total_ns)
		return x->wait.total_ns < y->wait.total_ns ? 1 : -1;
	if (x->waits != y->waits)
		return x->waits < y->waits ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void cond_add(struct report_lock_cond *to, const struct report_lock_cond *from)
{
	to->nr_members++;
	to->waits += from->waits;
	to->timeouts += from->timeouts;
	to->signals += from->signals;
	to->broadcasts += from->broadcasts;
	to->wait.nr += from->wait.nr;
	to->wait.total_ns += from->wait.total_ns;
	if (from->wait.max_ns > to->wait.max_ns)
		to->wait.max_ns = from->wait.max_ns;
}

static enum base_status add_conds(struct builder *b, struct base_err *err)
{
	struct report_locks *out = b->out;
	struct base_strtab *names = base_strtab_new();
	enum base_status s = names ? BASE_OK : report_no_memory(err);
	out->cond = report_array(out->arena, b->count.nr_conds, sizeof *out->cond);
	if (!out->cond)
		s = report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < b->count.nr_conds; i++) {
		uint32_t object = b->count.cond[i].object, id = 0;
		if (object >= b->nr_objects ||
			trace_def_object(trace_reader_defs(b->run->reader), object)->type ==
				TRACE_OBJECT_eventfd) /* a file with a count */
			continue;
		s = locks_name_object(b, object, err);
		if (s != BASE_OK)
			break;
		const char *name = b->name_of[object];
		if (b->opts->pattern && !report_pattern_matches(b->opts->pattern, name))
			continue;
		if (base_strtab_intern(names, name, strlen(name), &id) != BASE_OK || !id) {
			s = report_no_memory(err);
			break;
		}
		struct report_lock_cond *x = &out->cond[id - 1];
		out->nr_conds += !x->name;
		x->name = name;
		cond_add(x, &b->count.cond[i].sum);
	}
	base_strtab_free(names);
	if (s == BASE_OK && out->nr_conds)
		qsort(out->cond, out->nr_conds, sizeof *out->cond, conds_by_wait);
	return s;
}

static int threads_by_held(const void *a, const void *b)
{
	const struct report_lock_thread *x = a, *y = b;
	if (x->held_ns != y->held_ns)
		return x->held_ns < y->held_ns ? 1 : -1;
	if (x->acquired != y->acquired)
		return x->acquired < y->acquired ? 1 : -1;
	return strcmp(x->name, y->name);
}

static enum base_status locks_add_threads(struct builder *b, struct base_err *err)
{
	struct report_locks *out = b->out;
	uint64_t running_ns = 0;
	out->thread = report_array(out->arena, b->count.nr_threads, sizeof *out->thread);
	if (!out->thread)
		return report_no_memory(err);
	for (size_t i = 0; i < b->count.nr_threads; i++) {
		const struct lock_thread *t = &b->count.thread[i];
		uint32_t actor = model_stream_actor(b->m, t->stream);
		running_ns += t->sum.running_ns;
		out->wait_ns += t->sum.wait_ns; /* of those that gave up, too */
		if (!t->sum.acquired)
			continue;
		struct report_lock_thread *x = &out->thread[out->nr_threads++];
		*x = t->sum;
		x->name = report_clean(
			out->arena, actor == REPORT_NONE ? "?" : model_actor(b->m, actor)->name);
		if (!x->name)
			return report_no_memory(err);
		out->held_ns += x->held_ns;
		out->held_running_ns += x->held_running_ns;
	}
	if (out->has & REPORT_LOCKS_some)
		out->wait_ns = out->all.wait.total_ns;
	out->nr_threads_locking = out->nr_threads;
	out->cpu_ns = out->trace.target_cpu_ns;
	if (!out->cpu_ns || b->run->from_ns ||
		b->run->to_ns) /* the kernel's sum is of the whole run */
		out->cpu_ns = running_ns;
	if (out->nr_threads)
		qsort(out->thread, out->nr_threads, sizeof *out->thread, threads_by_held);
	return BASE_OK;
}

/* ---- the critical path ----------------------------------------------------------------------- */

static uint32_t state_row(const struct builder *b, uint32_t state)
{
	const struct model_state *st = model_state(b->m, state);
	bool about = st->kind == MODEL_STATE_hold || st->kind == MODEL_STATE_wait ||
		     st->kind == MODEL_STATE_latency;
	return about && st->object ? row_of(b, st->object) : REPORT_NONE;
}

/* (of a row) which states it has; the first round only counts them */
static enum base_status locks_add_state(struct builder *b, struct base_map *of, uint32_t row,
	struct report_state_share x, struct base_err *err)
{
	struct report_lock *l = &b->out->lock[row];
	uint64_t at;
	if (!base_map_get(of, row, x.state, &at)) {
		at = l->nr_states++;
		if (base_map_put(of, row, x.state, at) != BASE_OK)
			return report_no_memory(err);
	}
	if (l->state) {
		x.share = fmin(l->state[at].share + x.share, 1);
		x.path_ns += l->state[at].path_ns;
		x.follows |= l->state[at].follows;
		l->state[at] = x;
	}
	return BASE_OK;
}

/* Its own states are the lock's as a whole; of every other one the part of its path time in which
 * the lock was held. */
static enum base_status locks_list_states(
	struct builder *b, struct base_map *of, const double *path_ns, struct base_err *err)
{
	uint32_t nr_states = graph_nr_states(model_graph(b->m));
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; s == BASE_OK && i < nr_states; i++) {
		uint32_t row = state_row(b, i);
		bool holds = model_state(b->m, i)->kind == MODEL_STATE_hold;
		struct report_state_share x = {.state = i,
			.share = 1,
			.follows = !holds,
			.path_ns = holds && b->pieces ? 0 : path_ns[i]};
		if (row != REPORT_NONE)
			s = locks_add_state(b, of, row, x, err);
	}
	for (size_t i = 0; s == BASE_OK && i < b->path.nr_unders; i++) {
		const struct lock_under *u = &b->path.under[i];
		uint32_t row = row_of(b, u->object);
		double all_ns = u->state < b->path.nr_states ? b->path.state_ns[u->state] : 0;
		bool own = state_row(b, u->state) == row;
		struct report_state_share x = {.state = u->state,
			.share = own || all_ns <= 0 ? 0 : fmin(u->ns / all_ns, 1),
			.path_ns = u->ns};
		if (row != REPORT_NONE)
			s = locks_add_state(b, of, row, x, err);
	}
	return s;
}

static void locks_find_mostly(const struct builder *b, struct report_lock *l)
{
	double most_ns = 0;
	for (size_t i = 0; i < l->nr_states; i++) {
		const struct model_state *st = model_state(b->m, l->state[i].state);
		if (l->state[i].follows || st->kind == MODEL_STATE_runnable ||
			l->state[i].path_ns <= most_ns)
			continue;
		most_ns = l->state[i].path_ns;
		l->mostly = base_arena_strndup(b->out->arena, st->name, strlen(st->name));
	}
}

/* What is done under it, without what is not the program's doing. */
static void locks_find_own(const struct builder *b, struct report_lock *l)
{
	l->own_path_ns = l->path_ns;
	for (size_t i = 0; i < l->nr_states; i++) {
		struct report_state_share *x = &l->state[i];
		x->apart = report_why_apart(b->m, x->state) != REPORT_APART_NR;
		l->own_path_ns -= x->apart ? x->path_ns : 0;
	}
	locks_find_mostly(b, l);
}

static enum base_status locks_add_states(
	struct builder *b, const struct graph_lane_result *lane, struct base_err *err)
{
	struct base_map of = {0};
	uint32_t nr_states = graph_nr_states(model_graph(b->m));
	double *path_ns = base_alloc(((size_t)nr_states + 1) * sizeof *path_ns);
	enum base_status s = path_ns ? BASE_OK : report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < lane->nr_states; i++)
		if (lane->state[i].state < nr_states)
			path_ns[lane->state[i].state] += lane->state[i].path_ns;
	if (s == BASE_OK)
		s = locks_list_states(b, &of, path_ns, err);
	for (size_t i = 0; s == BASE_OK && i < b->out->nr_locks; i++) {
		struct report_lock *l = &b->out->lock[i];
		l->state = report_array(b->out->arena, l->nr_states, sizeof *l->state);
		if (!l->state)
			s = report_no_memory(err);
	}
	if (s == BASE_OK)
		s = locks_list_states(b, &of, path_ns, err);
	for (size_t i = 0; s == BASE_OK && i < b->out->nr_locks; i++)
		locks_find_own(b, &b->out->lock[i]);
	base_map_fini(&of);
	base_free(path_ns);
	return s;
}

/* Waits and hand-offs are states of the lock; what the path does under it, locks_path.c has found.
 */
static enum base_status locks_add_path(struct builder *b, struct base_err *err)
{
	struct graph_lane_result lane;
	struct report_locks *out = b->out;
	enum base_status s = graph_lane(model_graph(b->m), 0, &lane, err);
	if (s != BASE_OK)
		return s;
	if (!(b->count.has & REPORT_LOCKS_events) || !lane.found || lane.length_ns <= 0)
		return BASE_OK; /* tallies know of no lock */
	out->has |= REPORT_LOCKS_path;
	out->path_ns = lane.length_ns;
	s = report_own_path(&out->own, b->m, err);
	if (s != BASE_OK)
		return s;
	for (size_t i = 0; i < lane.nr_states; i++) {
		const struct model_state *st = model_state(b->m, lane.state[i].state);
		uint32_t row = state_row(b, lane.state[i].state);
		out->outside_ns += st->kind == MODEL_STATE_external ? lane.state[i].path_ns : 0;
		if (row == REPORT_NONE || (st->kind == MODEL_STATE_hold && b->pieces))
			continue;
		out->lock[row].path_ns += lane.state[i].path_ns;
		out->lock[row].path_hold_ns +=
			st->kind == MODEL_STATE_hold ? lane.state[i].path_ns : 0;
	}
	out->has |= b->pieces ? 0 : (unsigned)REPORT_LOCKS_inner;
	for (size_t i = 0; i < b->path.nr_unders; i++) {
		uint32_t row = row_of(b, b->path.under[i].object);
		if (row == REPORT_NONE)
			continue;
		out->lock[row].path_ns += b->path.under[i].ns;
		out->lock[row].path_hold_ns += b->path.under[i].ns;
	}
	return locks_add_states(b, &lane, err);
}

static enum base_status locks_ask(
	struct builder *b, const struct graph_scenario *lane, unsigned nr, struct base_err *err)
{
	struct report_lane answer[GRAPH_LANES_MAX - 1];
	enum base_status s = report_predictor_ready(&b->predictor, b->m, nr, err);
	report_predictor_leave_intervals(&b->predictor);
	if (s == BASE_OK)
		s = report_lanes(
			b->run, "predicting shorter holds", lane, nr, answer, b->out->arena, err);
	for (unsigned i = 0; s == BASE_OK && i < nr; i++) {
		struct report_lock_gain *g = &b->out->lock[i].halved;
		g->tried = true;
		g->most_speedup = report_most_speedup(
			b->out->path_ns, (double)report_lock_hold_ns(&b->out->lock[i].use), HALF);
		s = report_predictor_ask(
			&b->predictor, &lane[i], answer[i].length_ns, &g->answer, err);
	}
	b->out->has |= b->predictor.log ? REPORT_LOCKS_replay : 0;
	b->out->own_error = b->predictor.base.own_error;
	return s;
}

/* The first rows of the table as it is sorted now. */
static enum base_status add_gains(struct builder *b, struct base_err *err)
{
	struct graph_scenario lane[GRAPH_LANES_MAX - 1];
	unsigned nr = 0, max = b->opts->nr_gains_max;
	max = max > BASE_COUNT(lane) ? BASE_COUNT(lane) : max;
	enum base_status s = BASE_OK;
	if (!(b->out->has & REPORT_LOCKS_path))
		return s;
	while (s == BASE_OK && nr < max && nr < b->out->nr_locks && b->out->lock[nr].path_ns > 0) {
		s = report_shorter(b->out->arena, b->out->lock[nr].state,
			b->out->lock[nr].nr_states, HALF, &lane[nr], err);
		nr++;
	}
	if (s == BASE_OK && nr)
		s = locks_ask(b, lane, nr, err);
	return s;
}

/* ---- order ----------------------------------------------------------------------------------- */

static double sort_key(const struct report_lock *l, enum report_lock_sort sort)
{
	switch (sort) {
	case REPORT_LOCK_SORT_path:
		return l->path_ns;
	case REPORT_LOCK_SORT_gain:
		return report_lock_gain(l);
	case REPORT_LOCK_SORT_hold:
		return (double)report_lock_hold_ns(&l->use);
	case REPORT_LOCK_SORT_acquired:
		return (double)l->use.acquired;
	case REPORT_LOCK_SORT_contended:
		return (double)l->use.contended;
	case REPORT_LOCK_SORT_convoys:
		return (double)l->convoy_ns;
	case REPORT_LOCK_SORT_name:
		return 0;
	case REPORT_LOCK_SORT_wait:
	default:
		return (double)l->use.wait.total_ns;
	}
}

/* What was asked for, then what is worst, then what is used most. */
static int locks_compare(const void *a, const void *b, void *ctx)
{
	static const enum report_lock_sort then[] = {
		REPORT_LOCK_SORT_wait, REPORT_LOCK_SORT_hold, REPORT_LOCK_SORT_acquired};
	const enum report_lock_sort *sort = ctx;
	const struct report_lock *x = a, *y = b;
	double p = sort_key(x, *sort), q = sort_key(y, *sort);
	for (size_t i = 0; p == q && *sort != REPORT_LOCK_SORT_name && i < BASE_COUNT(then); i++) {
		p = sort_key(x, then[i]);
		q = sort_key(y, then[i]);
	}
	return p != q ? (p < q ? 1 : -1) : strcmp(x->name, y->name);
}

static void sort_locks(struct report_locks *out, enum report_lock_sort sort)
{
	if (out->nr_locks)
		qsort_r(out->lock, out->nr_locks, sizeof *out->lock, locks_compare, &sort);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum base_status run_model(struct builder *b, struct base_err *err)
{
	/* the path piece by piece takes memory, as replay does */
	bool keep = report_replay_fits(b->run);
	struct report_pass_options plain = {.keep_path = keep};
	bool replay = b->opts->nr_gains_max && !b->opts->by_path_only;
	static const char what[] = "finding the critical path";
	return replay ? report_predictor_pass(&b->predictor, b->run, what, &plain, &b->m, err)
		      : report_pass(b->run, what, &plain, &b->m, err);
}

static enum base_status keep_pieces(struct builder *b, struct base_err *err)
{
	struct graph_lane_result lane;
	enum base_status s = graph_lane(model_graph(b->m), 0, &lane, err);
	if (s != BASE_OK || !report_replay_fits(b->run) || !lane.found)
		return s;
	b->pieces = true;
	return report_lock_path_init(&b->path, b->m, err);
}

static enum base_status locks_fill(struct builder *b, struct base_err *err)
{
	struct report_locks *out = b->out;
	const struct trace_info *info = trace_reader_info(b->run->reader);
	enum base_status s = run_model(b, err);
	if (s == BASE_OK)
		s = report_fill_trace(&out->trace, out->arena, b->run, b->m, err);
	if (s == BASE_OK)
		s = keep_pieces(b, err);
	if (s == BASE_OK)
		s = report_locks_count(&b->count, b->run, b->pieces ? &b->path : NULL, b->m, err);
	if (s != BASE_OK)
		return s;
	uint64_t last_ns = trace_reader_last_ns(b->run->reader);
	uint64_t to_ns = b->run->to_ns && b->run->to_ns < last_ns ? b->run->to_ns : last_ns;
	out->tick_hz = info->tick_hz;
	out->elapsed_ns = to_ns > b->run->from_ns ? to_ns - b->run->from_ns : 0;
	out->nr_full = b->count.nr_full;
	for (unsigned i = 0; i < b->count.nr_events; i++) {
		out->event_name[i] = report_clean(out->arena, b->count.event_name[i]);
		if (!out->event_name[i])
			return report_no_memory(err);
	}
	out->nr_events = b->count.nr_events;
	out->floor_bare_ps = b->count.floor_bare_ps;
	out->floor_stamps_ps = b->count.floor_stamps_ps;
	out->mode = report_clean(
		out->arena, trace_text_of(trace_reader_defs(b->run->reader), b->count.mode));
	out->has = b->count.has | (b->opts->pattern ? REPORT_LOCKS_some : 0);
	s = out->mode ? find_names(b, err) : report_no_memory(err);
	if (s == BASE_OK)
		s = make_rows(b, err);
	if (s == BASE_OK)
		s = locks_add_sites(b, err);
	if (s == BASE_OK)
		s = locks_add_counts(b, err);
	if (s == BASE_OK)
		s = add_conds(b, err);
	if (s == BASE_OK)
		s = locks_add_threads(b, err);
	if (s == BASE_OK)
		s = locks_add_path(b, err);
	if (s != BASE_OK)
		return s;
	sort_locks(out, REPORT_LOCK_SORT_path);
	bool on_path =
		out->nr_locks && out->lock[0].path_ns >= REPORT_LOCKS_PATH_LEAST * out->path_ns;
	s = add_gains(b, err);
	/* where the path has hardly any of them, what is waited for comes first */
	enum report_lock_sort sort = b->opts->sort == REPORT_LOCK_SORT_path && !on_path
					     ? REPORT_LOCK_SORT_wait
					     : b->opts->sort;
	sort_locks(out, sort);
	if (s == BASE_OK && b->opts->pattern && !out->nr_locks)
		s = base_fail(err, BASE_ERR_NOTFOUND,
			"no lock of this trace matches '%s'; 'longpole locks' lists them",
			b->opts->pattern);
	return s;
}

enum base_status report_locks_build(const struct report_run *run,
	const struct report_locks_options *opts, struct report_locks **ret, struct base_err *err)
{
	if (opts->size != sizeof *opts)
		return base_fail(err, BASE_ERR_USAGE, "report_locks_build: incomplete options");
	struct report_locks *out = report_answer_new(sizeof *out);
	if (!out)
		return report_no_memory(err);
	struct builder b = {.out = out, .run = run, .opts = opts};
	enum base_status s = locks_fill(&b, err);
	report_locks_count_fini(&b.count);
	report_lock_path_fini(&b.path);
	base_map_fini(&b.site_rows);
	report_predictor_fini(&b.predictor);
	model_free(b.m);
	if (s != BASE_OK)
		report_locks_free(out);
	else
		*ret = out;
	return s;
}

struct report_locks *report_locks_free(struct report_locks *l)
{
	if (!l)
		return NULL;
	for (size_t i = 0; i < l->nr_locks; i++) {
		base_histogram_fini(&l->lock[i].hold);
		base_histogram_fini(&l->lock[i].wait);
	}
	return report_answer_free(l);
}

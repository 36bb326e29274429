/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.c - the critical path, taken apart as somebody would change it.
 *
 * The path's states say what its actor does: asleep, in a write. That it holds a lock meanwhile, for
 * which others wait, is what matters then: all that is done under such a lock is the lock's part,
 * wherever the time goes. A lock that keeps nobody waiting hides nothing that is done under it.
 * What is not the program's doing is no part: waiting for processors that other programs had, for
 * what was not recorded, longpole itself.
 */
#include "report/locks/locks_private.h"
#include "report/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WAITED_MIN 0.01 /* of the path: for how long others waited for a lock, all in all */
#define SHARE_MIN  0.05 /* of the path: what is done under it */

static const double parts_reduction[REPORT_PART_LEVELS] = {0.5, 1};

struct parts {
	struct report_parts *out;
	struct base_arena *arena;
	struct model *m;
	const struct report_index *ix;
	double *path_ns, *taken, *taken_ns; /* by state; taken: what locks have of it */
	size_t capacity;
};

/* ---- locks ----------------------------------------------------------------------------------- */

/* Did anybody wait for a lock? Only then is it worth to go through the trace once more. */
static bool parts_has_contended(struct model *m, double elapsed_ns)
{
	const struct graph *g = model_graph(m);
	uint64_t waited_ns = 0;
	for (uint32_t i = 0; i < graph_nr_queues(g); i++)
		if (model_object_is(model_queue(m, i)->type, MODEL_TRAIT_lock) ||
			model_is_used_as_lock(m, model_queue(m, i)->object))
			waited_ns += graph_queue_stats(g, i)->wait_data_ns;
	return (double)waited_ns >= WAITED_MIN * elapsed_ns;
}

static enum base_status parts_add_lock(
	struct parts *w, const struct report_lock *l, struct base_err *err)
{
	struct report_part *p = &w->out->part[w->out->nr++];
	*p = (struct report_part){.is_lock = true,
		.topic = REPORT_NONE,
		.name = report_clean(w->arena, l->name),
		.place = l->nr_sites && *l->site[0].where != '?'
				 ? report_clean(w->arena, l->site[0].where)
				 : "",
		.path_ns = l->own_path_ns,
		.nr_waits = l->use.contended,
		.wait_ns = l->use.wait.total_ns,
		.waiters_max = l->waiters_max,
		.held_ns = (double)report_lock_hold_ns(&l->use),
		.state = report_array(w->arena, l->nr_states, sizeof *p->state),
		.nr_states = l->nr_states};
	if (!p->name || !p->place || !p->state)
		return report_no_memory(err);
	for (size_t i = 0; i < l->nr_states; i++) {
		struct report_state_share *x = &p->state[i];
		*x = l->state[i];
		if (x->apart)
			continue;
		w->taken[x->state] = fmin(w->taken[x->state] + x->share, 1);
		w->taken_ns[x->state] += x->path_ns;
	}
	return BASE_OK;
}

/* A lock that every running thread has is what a program spends its time under, whether or not it
 * holds anybody up: a part only where threads wait for it much of the time. */
static double parts_waited_min(const struct parts *w, const struct report_lock *l)
{
	const double much = 0.1;
	for (size_t i = 0; i < l->nr_states; i++)
		if (model_state_about(w->m, l->state[i].state, MODEL_TRAIT_had_to_run))
			return much;
	return WAITED_MIN;
}

static enum base_status parts_add_locks(
	struct parts *w, const struct report_run *run, struct base_err *err)
{
	struct report_locks_options opts = {.size = sizeof opts, .sort = REPORT_LOCK_SORT_path};
	struct report_locks *locks = NULL;
	if (!parts_has_contended(w->m, w->out->own.elapsed_ns))
		return BASE_OK;
	enum base_status s = report_locks_build(run, &opts, &locks, err);
	if (s != BASE_OK)
		return s == BASE_ERR_NOTFOUND ? BASE_OK : s;
	w->capacity += locks->nr_locks;
	w->out->part = report_array(w->arena, w->capacity, sizeof *w->out->part);
	if (!w->out->part)
		s = report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < locks->nr_locks; i++) {
		const struct report_lock *l = &locks->lock[i];
		if (l->path_ns >= SHARE_MIN * locks->path_ns && l->use.contended &&
			(double)l->use.wait.total_ns >= parts_waited_min(w, l) * locks->path_ns)
			s = parts_add_lock(w, l, err);
	}
	report_locks_free(locks);
	return s;
}

/* ---- topics ---------------------------------------------------------------------------------- */

static enum base_status parts_add_topic(
	struct parts *w, uint32_t topic, const uint32_t *state, size_t nr, struct base_err *err)
{
	const struct model_state *first = model_state(w->m, w->ix->first_state[topic]);
	double path_ns = 0;
	for (size_t i = 0; i < nr; i++)
		path_ns += fmax(w->path_ns[state[i]] - w->taken_ns[state[i]], 0);
	if (path_ns <= 0 || report_why_apart(w->m, w->ix->first_state[topic]) != REPORT_APART_NR)
		return BASE_OK;
	struct report_part *p = &w->out->part[w->out->nr++];
	*p = (struct report_part){.topic = topic,
		.kind = first->kind,
		.cause = first->cause,
		.name = report_clean(w->arena, first->name),
		.place = "",
		.path_ns = path_ns,
		.state = report_array(w->arena, nr, sizeof *p->state)};
	if (!p->name || !p->state)
		return report_no_memory(err);
	for (size_t i = 0; i < nr; i++)
		if (w->taken[state[i]] < 1)
			p->state[p->nr_states++] = (struct report_state_share){.state = state[i],
				.share = 1 - w->taken[state[i]],
				.path_ns = fmax(w->path_ns[state[i]] - w->taken_ns[state[i]], 0)};
	return BASE_OK;
}

/* By topic, its states next to each other. */
static enum base_status parts_add_topics(struct parts *w, struct base_err *err)
{
	uint32_t nr_topics = w->ix->nr_topics, nr_states = w->ix->nr_states;
	uint32_t *begin = report_array(w->arena, (size_t)nr_topics + 2, sizeof *begin);
	uint32_t *state = report_array(w->arena, nr_states, sizeof *state);
	enum base_status s = begin && state ? BASE_OK : report_no_memory(err);
	for (uint32_t i = 0; s == BASE_OK && i < nr_states; i++)
		begin[w->ix->topic_of[i] + 2]++;
	for (uint32_t t = 0; s == BASE_OK && t < nr_topics; t++)
		begin[t + 2] += begin[t + 1];
	for (uint32_t i = 0; s == BASE_OK && i < nr_states; i++)
		state[begin[w->ix->topic_of[i] + 1]++] = i;
	for (uint32_t t = 0; s == BASE_OK && t < nr_topics; t++)
		s = parts_add_topic(w, t, state + begin[t], begin[t + 1] - begin[t], err);
	return s;
}

/* ---- all parts ------------------------------------------------------------------------------- */

static int parts_by_path_ns(const void *a, const void *b)
{
	const struct report_part *x = a, *y = b;
	if (x->path_ns != y->path_ns)
		return x->path_ns < y->path_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

static enum base_status parts_read_path(struct parts *w, struct base_err *err)
{
	struct graph_lane_result lane;
	enum base_status s = graph_lane(model_graph(w->m), 0, &lane, err);
	if (s != BASE_OK)
		return s;
	w->path_ns = report_array(w->arena, w->ix->nr_states, sizeof *w->path_ns);
	w->taken = report_array(w->arena, w->ix->nr_states, sizeof *w->taken);
	w->taken_ns = report_array(w->arena, w->ix->nr_states, sizeof *w->taken_ns);
	w->out->part = report_array(w->arena, w->capacity, sizeof *w->out->part);
	if (!w->path_ns || !w->taken || !w->taken_ns || !w->out->part)
		return report_no_memory(err);
	for (size_t i = 0; i < lane.nr_states; i++)
		if (lane.state[i].state < w->ix->nr_states)
			w->path_ns[lane.state[i].state] += lane.state[i].path_ns;
	return BASE_OK;
}

enum base_status report_fill_parts(struct report_parts *ret, struct base_arena *a,
	const struct report_run *run, struct model *m, const struct report_index *ix,
	struct base_err *err)
{
	struct parts w = {.out = ret, .arena = a, .m = m, .ix = ix, .capacity = ix->nr_topics};
	*ret = (struct report_parts){0};
	enum base_status s = parts_read_path(&w, err);
	if (s == BASE_OK)
		s = report_own_path(&ret->own, m, err);
	if (s == BASE_OK && ret->own.elapsed_ns > 0)
		s = parts_add_locks(&w, run, err);
	if (s == BASE_OK)
		s = parts_add_topics(&w, err);
	if (s != BASE_OK)
		return s;
	for (size_t i = 0; i < ret->nr; i++)
		ret->part[i].share = report_own_share(&ret->own, ret->part[i].path_ns);
	if (ret->nr)
		qsort(ret->part, ret->nr, sizeof *ret->part, parts_by_path_ns);
	return BASE_OK;
}

enum base_status report_fill_lock_parts(struct report_parts *ret, struct base_arena *a,
	const struct report_run *run, struct base_err *err)
{
	struct report_locks_options opts = {.size = sizeof opts, .sort = REPORT_LOCK_SORT_path};
	struct report_locks *locks = NULL;
	*ret = (struct report_parts){0};
	enum base_status s = report_locks_build(run, &opts, &locks, err);
	if (s != BASE_OK)
		return s == BASE_ERR_NOTFOUND ? BASE_OK : s;
	ret->part = report_array(a, locks->nr_locks, sizeof *ret->part);
	if (!ret->part)
		s = report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < locks->nr_locks; i++) {
		const struct report_lock *l = &locks->lock[i];
		struct report_part *p = &ret->part[ret->nr];
		*p = (struct report_part){.is_lock = true,
			.name = report_clean(a, l->name),
			.path_ns = l->own_path_ns,
			.held_ns = (double)report_lock_hold_ns(&l->use),
			.state = report_array(a, l->nr_states, sizeof *p->state),
			.nr_states = l->nr_states};
		if (!p->name || !p->state)
			s = report_no_memory(err);
		else if (l->nr_states)
			memcpy(p->state, l->state, l->nr_states * sizeof *p->state);
		ret->nr += l->nr_states != 0;
	}
	report_locks_free(locks);
	return s;
}

bool report_is_part_number(const char *text)
{
	size_t nr = strspn(text + (*text == '#'), "0123456789");
	return *text == '#' && nr && nr < 20 && !text[1 + nr];
}

const struct report_part *report_find_part(const struct report_parts *p, const char *name)
{
	if (report_is_part_number(name)) {
		unsigned long n = strtoul(name + 1, NULL, 10);
		return n && n <= p->nr ? &p->part[n - 1] : NULL;
	}
	for (size_t i = 0; i < p->nr; i++)
		if (p->part[i].is_lock && !strcmp(p->part[i].name, name))
			return &p->part[i];
	return NULL;
}

enum base_status report_part_name(const struct report_run *run, const char *number,
	struct base_str *ret, struct base_err *err)
{
	struct report_pass_options plain = {0};
	struct report_index ix = {0};
	struct report_parts parts = {0};
	struct model *m = NULL;
	struct base_arena *a = base_arena_new(0);
	enum base_status s = a ? report_pass(run, "finding the critical path", &plain, &m, err)
			       : report_no_memory(err);
	if (s == BASE_OK)
		s = report_index_init(&ix, m, err);
	if (s == BASE_OK)
		s = report_fill_parts(&parts, a, run, m, &ix, err);
	const struct report_part *p = s == BASE_OK ? report_find_part(&parts, number) : NULL;
	if (p)
		base_str_add(ret, p->name);
	else if (s == BASE_OK)
		s = base_fail(err, BASE_ERR_NOTFOUND,
			"%s: this trace's path has %zu {part|parts}; 'longpole report --full' "
			"numbers "
			"them",
			number, parts.nr);
	report_index_fini(&ix);
	model_free(m);
	base_arena_free(a);
	return s;
}

/* ---- predictions ----------------------------------------------------------------------------- */

/* A lane's path, by parts: the longest one but `gone`; "": none. */
static enum base_status parts_longest_then(const struct report_parts *p,
	const struct report_lane *lane, uint32_t nr_states, const struct report_part *gone,
	const char **ret, struct base_err *err)
{
	double *by_state = base_alloc(((size_t)nr_states + 1) * sizeof *by_state);
	double most_ns = 0;
	*ret = "";
	if (!by_state)
		return report_no_memory(err);
	for (size_t i = 0; i < lane->nr_states; i++)
		if (lane->state[i].state < nr_states)
			by_state[lane->state[i].state] += lane->state[i].path_ns;
	for (size_t i = 0; i < p->nr; i++) {
		const struct report_part *x = &p->part[i];
		double ns = 0;
		for (size_t k = 0; k < x->nr_states; k++)
			if (x->state[k].state < nr_states && !x->state[k].apart)
				ns += by_state[x->state[k].state] * x->state[k].share;
		if (x != gone && ns > most_ns) {
			most_ns = ns;
			*ret = x->name;
		}
	}
	base_free(by_state);
	return BASE_OK;
}

/* As believed, but no more than what all of a lock's holds take. */
static struct report_best parts_gain(const struct report_parts *all, const struct report_part *p,
	struct report_best b, double reduction)
{
	if (p->is_lock)
		b.speedup = fmin(
			b.speedup, report_most_speedup(all->own.elapsed_ns, p->held_ns, reduction));
	b.low = fmin(b.low, b.speedup);
	b.high = b.no_interval ? b.speedup : b.high;
	return b;
}

enum base_status report_predict_parts(struct report_parts *p, struct base_arena *a,
	struct report_predictor *predictor, struct model *m, const struct report_options *opts,
	struct base_err *err)
{
	size_t nr = REPORT_PART_LEVELS * (opts->nr_parts_max < p->nr ? opts->nr_parts_max : p->nr);
	if (!nr || p->own.elapsed_ns <= 0)
		return BASE_OK;
	struct graph_scenario *lane = report_array(a, nr, sizeof *lane);
	struct report_lane *path = report_array(a, nr, sizeof *path);
	if (!lane || !path)
		return report_no_memory(err);
	enum base_status s = report_predictor_ready(
		predictor, m, REPORT_PARTS_DEFAULT * REPORT_PART_LEVELS, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		const struct report_part *x = &p->part[i / REPORT_PART_LEVELS];
		s = report_shorter(a, x->state, x->nr_states,
			parts_reduction[i % REPORT_PART_LEVELS], &lane[i], err);
	}
	if (s == BASE_OK)
		s = report_lanes(predictor->run, "predicting what less of each would do", lane, nr,
			path, a, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		struct report_part *x = &p->part[i / REPORT_PART_LEVELS];
		unsigned level = i % REPORT_PART_LEVELS;
		struct report_answer answer = {0};
		if (!opts->all_intervals && i) /* nobody sees them, and they take most time */
			report_predictor_leave_intervals(predictor);
		s = report_predictor_ask(predictor, &lane[i], path[i].length_ns, &answer, err);
		if (s == BASE_OK && level == REPORT_PART_GONE)
			s = parts_longest_then(
				p, &path[i], graph_nr_states(model_graph(m)), x, &x->then, err);
		x->gain[level] = parts_gain(p, x, answer.best, parts_reduction[level]);
		x->predicted = true;
	}
	return s;
}

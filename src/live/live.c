/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.c - records to models, models to windows, windows to answers.
 *
 * A generation is a model with its definitions. When it has seen too much that is gone, a next one
 * begins beside it, at the end of a window; for one window both are fed, so that the new one learns
 * which thread holds what and which waits for which; then it answers, and the old one stays only
 * until its last window has had its hindsight.
 */
#include "live/private.h"

#include <string.h>

enum { ASLEEP_BELOW = 20 }; /* busy for less than one in so many: asleep */

/* ---- life cycle ------------------------------------------------------------------------------ */

static void free_generation(struct generation *g)
{
	for (size_t i = 0; i < g->nr_parts; i++)
		graph_part_free(g->part[i].part);
	base_free(g->part);
	model_free(g->model);
	live_defs_free(g->defs);
	*g = (struct generation){0};
}

static enum base_status start_generation(
	struct live *l, struct generation *g, const struct live_defs *older, struct base_err *err)
{
	*g = (struct generation){.names = l->opts.defs, .last = UINT64_MAX};
	if (!g->names) {
		g->defs = live_defs_new(older);
		if (!g->defs)
			return base_fail(err, BASE_ERR_NOMEM, "out of memory for definitions");
		g->names = &g->defs->defs;
	}
	struct model_options o = {.size = sizeof o,
		.max_memory_bytes = l->opts.max_memory_bytes,
		.system = l->opts.system,
		.command = l->command,
		.turns = true};
	return model_new(g->names, &o, &g->model, err);
}

struct live *live_free(struct live *l)
{
	if (!l)
		return NULL;
	free_generation(&l->now);
	free_generation(&l->next);
	live_late_fini(&l->late);
	base_free(l->count);
	base_free(l->process);
	base_free(l->cgroup);
	base_free(l->command);
	base_free(l);
	return NULL;
}

static bool live_copy_text(char **to, const char *from)
{
	if (!from)
		return true;
	*to = base_alloc(strlen(from) + 1);
	if (*to)
		memcpy(*to, from, strlen(from) + 1);
	return *to;
}

enum base_status live_new(const struct live_options *opts, struct live **ret, struct base_err *err)
{
	struct live *l = base_alloc(sizeof *l);
	*ret = NULL;
	BASE_ASSERT(opts->interval_ns && opts->answer);
	if (!l)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory");
	l->opts = *opts;
	if (!l->opts.max_entries)
		l->opts.max_entries = LIVE_ENTRIES_MAX;
	l->end_ns = l->opts.interval_ns;
	live_late_init(&l->late, l->opts.late_ns);
	enum base_status s = base_grow(&l->count, &l->count_capacity, 1, sizeof *l->count);
	if (s != BASE_OK || !live_copy_text(&l->process, opts->process) ||
		!live_copy_text(&l->cgroup, opts->cgroup) ||
		!live_copy_text(&l->command, opts->command))
		s = base_fail(err, BASE_ERR_NOMEM, "out of memory");
	l->opts.process = l->process;
	l->opts.cgroup = l->cgroup;
	if (s == BASE_OK)
		s = start_generation(l, &l->now, NULL, err);
	if (s != BASE_OK) {
		live_free(l);
		return s;
	}
	*ret = l;
	return BASE_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Nothing, or next to it, but sleep: what nobody waits for holds nobody up. */
static bool is_asleep(
	const struct model *m, const struct graph_path_state *state, size_t nr, double length_ns)
{
	static const bool idle[MODEL_STATE_NR] = {
		[MODEL_STATE_wait] = true, /* ended by an interrupt: else it would weigh nothing */
		[MODEL_STATE_blocked] = true,
		[MODEL_STATE_external] = true,
		[MODEL_STATE_sleep] = true,
		[MODEL_STATE_idle] = true,
	};
	double busy_ns = 0;
	for (size_t i = 0; i < nr; i++)
		if (!idle[model_state(m, state[i].state)->kind])
			busy_ns += state[i].path_ns;
	return busy_ns * ASLEEP_BELOW < length_ns;
}

static enum base_status live_add_path(struct live *l, struct generation *g, struct answer *a,
	const struct graph_part *part, const struct subject *subject, struct base_err *err)
{
	struct graph_path_state *state;
	double length_ns;
	size_t nr;
	enum base_status s = graph_part_path(
		part, subject->anchor, subject->since_ns, &state, &nr, &length_ns, err);
	if (s != BASE_OK)
		return s;
	if (l->opts.whom == LIVE_WHOM_processes && !l->process && !l->cgroup &&
		is_asleep(g->model, state, nr, length_ns))
		a->w.nr_asleep++;
	else
		s = live_answer_add(a, g->model, g->names, state, nr, length_ns, err);
	base_free(state);
	return s;
}

/* The oldest window of the generation, which is the next one to answer. */
static enum base_status live_answer(
	struct live *l, struct generation *g, bool to_the_end, struct base_err *err)
{
	const struct graph_part *part = g->part[0].part;
	struct answer *a = live_answer_new();
	struct subjects subjects = {0};
	BASE_ASSERT(l->nr_counts && l->count);
	if (!a)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for a window's answer");
	enum base_status s = live_subjects(l, g, 0, &subjects, err);
	if (s == BASE_OK)
		s = model_refresh_names(g->model, err);
	for (size_t i = 0; i < subjects.nr && s == BASE_OK; i++)
		s = live_add_path(l, g, a, part, &subjects.subject[i], err);
	if (s == BASE_OK) {
		live_answer_finish(a);
		a->w.number = l->answered;
		a->w.from_ns = graph_part_from_ns(part);
		a->w.to_ns = graph_part_to_ns(part);
		a->w.nr_records = l->count[0].nr_records;
		a->w.nr_late = l->count[0].nr_late;
		a->w.nr_lost = l->count[0].nr_lost;
		a->w.hindsight = (unsigned)g->nr_parts - 1;
		a->w.to_the_end = to_the_end;
		a->w.fresh = g->first == l->answered && l->answered;
		s = l->opts.answer(l->opts.ctx, &a->w, err);
	}
	base_free(subjects.subject);
	live_answer_free(a);
	return s;
}

static void drop_part(struct generation *g)
{
	graph_part_free(g->part[0].part);
	memmove(g->part, g->part + 1, --g->nr_parts * sizeof *g->part);
}

/* What a model remembers, one with another. */
static uint64_t size_of(const struct generation *g)
{
	const struct graph *graph = model_graph(g->model);
	return (g->defs ? live_defs_size(g->defs) : 0) + graph_nr_actors(graph) +
	       graph_nr_queues(graph) + graph_nr_states(graph);
}

/* The old generation has answered all that it was to. */
static enum base_status live_hand_over(struct live *l, struct base_err *err)
{
	enum base_status s = live_defs_take_over(l->next.defs);
	if (s != BASE_OK)
		return base_fail(err, s, "out of memory for definitions");
	l->health.nr_forgotten += l->next.defs->nr_forgotten;
	l->health.nr_models++;
	l->next.nr_seeded = size_of(&l->next);
	free_generation(&l->now);
	l->now = l->next;
	l->next = (struct generation){0};
	return BASE_OK;
}

/* Windows that have had their hindsight; `all`: nothing more will come. */
static enum base_status answer_ready(struct live *l, bool all, struct base_err *err)
{
	enum base_status s = BASE_OK;
	while (s == BASE_OK && l->now.nr_parts &&
		(all || l->now.nr_parts > LIVE_WINDOWS_MAX ||
			l->now.nr_parts - 1 >= l->opts.hindsight)) {
		s = live_answer(l, &l->now, all, err);
		if (s != BASE_OK)
			break;
		drop_part(&l->now);
		memmove(l->count, l->count + 1, l->nr_counts-- * sizeof *l->count);
		l->answered++;
		if (l->next.model && l->answered > l->now.last)
			s = live_hand_over(l, err);
	}
	return s;
}

/* ---- windows --------------------------------------------------------------------------------- */

static enum base_status turn(
	struct live *l, struct generation *g, uint64_t time_ns, struct base_err *err)
{
	struct graph_part *part;
	enum base_status s =
		model_turn(g->model, time_ns, l->opts.whom == LIVE_WHOM_processes, &part, err);
	if (s != BASE_OK)
		return s;
	s = base_grow(&g->part, &g->part_capacity, g->nr_parts + 1, sizeof *g->part);
	if (s != BASE_OK || l->window < g->first) {
		graph_part_free(part);
		return s == BASE_OK ? s : base_fail(err, s, "out of memory for a window");
	}
	g->part[g->nr_parts++] = (struct part_info){.part = part, .number = l->window};
	return BASE_OK;
}

/* With all of the past in view there is only one generation. */
static bool needs_next(const struct live *l)
{
	return !l->next.model && !l->opts.defs && l->opts.hindsight != LIVE_HINDSIGHT_ALL &&
	       size_of(&l->now) > l->now.nr_seeded + l->opts.max_entries;
}

static void note_memory(struct live *l)
{
	uint64_t sum = l->late.nr_waiting * sizeof(struct late_record);
	const struct generation *g[] = {&l->now, &l->next};
	for (size_t i = 0; i < BASE_COUNT(g); i++) {
		sum += g[i]->model ? graph_memory_bytes(model_graph(g[i]->model)) : 0;
		for (size_t k = 0; k < g[i]->nr_parts; k++)
			sum += graph_part_memory_bytes(g[i]->part[k].part);
	}
	if (sum > l->health.memory_peak_bytes)
		l->health.memory_peak_bytes = sum;
}

/* The process at which a fresh model will have to end its paths. */
static void note_root(struct live *l)
{
	const struct trace_defs *d = l->now.names;
	if (l->root_pid || l->now.first)
		return;
	uint32_t end = model_end_actor_now(l->now.model);
	uint32_t stream = end == GRAPH_ANY_ACTOR ? 0 : model_actor_stream(l->now.model, end);
	l->root_pid = trace_def_process(d, trace_def_stream(d, stream)->process)->pid;
}

static enum base_status end_window(struct live *l, uint64_t time_ns, struct base_err *err)
{
	enum base_status s = turn(l, &l->now, time_ns, err);
	if (s == BASE_OK && l->next.model)
		s = turn(l, &l->next, time_ns, err);
	if (s != BASE_OK)
		return s;
	l->window++;
	l->health.nr_windows++;
	note_memory(l);
	note_root(l);
	s = base_grow(&l->count, &l->count_capacity, l->nr_counts + 2, sizeof *l->count);
	if (s != BASE_OK)
		return base_fail(err, s, "out of memory for a window");
	l->count[++l->nr_counts] = (struct window_count){0};
	if (needs_next(l)) {
		s = start_generation(l, &l->next, l->now.defs, err);
		l->now.last = l->window; /* one window beside each other */
		l->next.first = l->window + 1;
	}
	return s == BASE_OK ? answer_ready(l, false, err) : s;
}

/* ---- records --------------------------------------------------------------------------------- */

static enum base_status feed(struct live *l, struct generation *g, struct base_err *err)
{
	struct trace_record copy[256];
	if (!g->defs)
		return model_feed(g->model, l->batch, l->nr_batch, err);
	for (size_t at = 0; at < l->nr_batch;) {
		size_t n =
			l->nr_batch - at < BASE_COUNT(copy) ? l->nr_batch - at : BASE_COUNT(copy);
		memcpy(copy, l->batch + at, n * sizeof *copy);
		for (size_t i = 0; i < n; i++) {
			enum base_status s = live_defs_translate(g->defs, &copy[i]);
			if (s != BASE_OK)
				return base_fail(err, s, "out of memory for definitions");
		}
		enum base_status s = model_feed(g->model, copy, n, err);
		if (s != BASE_OK)
			return s;
		at += n;
	}
	return BASE_OK;
}

static enum base_status live_flush(struct live *l, struct base_err *err)
{
	if (!l->nr_batch)
		return BASE_OK;
	enum base_status s = feed(l, &l->now, err);
	if (s == BASE_OK && l->next.model)
		s = feed(l, &l->next, err);
	l->nr_batch = 0;
	return s;
}

static enum base_status feed_record(
	struct live *l, const struct trace_record *r, struct base_err *err)
{
	enum base_status s = BASE_OK;
	while (s == BASE_OK && r->time_ns > l->end_ns) {
		s = live_flush(l, err);
		if (s == BASE_OK)
			s = end_window(l, l->end_ns, err);
		l->end_ns += l->opts.interval_ns;
	}
	if (s == BASE_OK && l->nr_batch == TRACE_BATCH_MAX)
		s = live_flush(l, err);
	if (s != BASE_OK)
		return s;
	struct trace_record *to = &l->batch[l->nr_batch++];
	*to = *r;
	if (to->time_ns < l->last_ns)
		to->time_ns = l->last_ns;
	l->last_ns = to->time_ns;
	l->count[l->nr_counts].nr_records++;
	l->health.nr_records++;
	return BASE_OK;
}

static enum base_status live_release(struct live *l, uint64_t time_ns, struct base_err *err)
{
	enum base_status s = BASE_OK;
	struct late_record *r;
	size_t nr;
	while (s == BASE_OK && (r = live_late_take(&l->late, time_ns, &nr))) {
		for (size_t i = 0; i < nr && s == BASE_OK; i++)
			s = feed_record(l, &r[i].r, err);
		live_late_drop(&l->late);
	}
	return s;
}

static enum base_status live_define(
	struct live *l, const struct trace_record *r, struct base_err *err)
{
	if (!l->now.defs)
		return BASE_OK; /* they are all known */
	/* what waits in the batch may mean an older definition of it; it may as well be the new */
	enum base_status s = live_defs_add(l->now.defs, r);
	if (s == BASE_OK && l->next.model)
		s = live_defs_add(l->next.defs, r);
	return s == BASE_OK ? s : base_fail(err, s, "out of memory for definitions");
}

static enum base_status live_live_put(
	struct live *l, const struct trace_record *r, struct base_err *err)
{
	if (r->kind < 32)
		return live_define(l, r, err);
	l->started = true;
	if (!l->opts.late_ns)
		return feed_record(l, r, err);
	enum base_status s = BASE_OK;
	while (s == BASE_OK && l->late.order && live_late_is_full(&l->late, r->time_ns)) {
		/* no room: the oldest ones must go, whoever is late */
		s = live_release(l, (l->late.first + 1) * l->late.span_ns, err);
	}
	uint64_t nr_late = l->late.nr_late;
	if (s == BASE_OK && live_late_put(&l->late, r) != BASE_OK)
		s = base_fail(err, BASE_ERR_NOMEM, "out of memory for records that wait");
	l->count[l->nr_counts].nr_late += l->late.nr_late - nr_late;
	l->health.nr_late = l->late.nr_late;
	return s;
}

enum base_status live_put(struct live *l, const struct trace_record *r, struct base_err *err)
{
	if (l->status != BASE_OK)
		return base_fail(err, l->status, "it failed before");
	return l->status = live_live_put(l, r, err);
}

static enum base_status live_live_advance(struct live *l, uint64_t time_ns, struct base_err *err)
{
	enum base_status s = live_release(l, time_ns, err);
	if (s != BASE_OK || !l->started)
		return s;
	while (s == BASE_OK && time_ns > l->end_ns) {
		s = live_flush(l, err);
		if (s == BASE_OK)
			s = end_window(l, l->end_ns, err);
		l->end_ns += l->opts.interval_ns;
	}
	return s;
}

enum base_status live_advance(struct live *l, uint64_t time_ns, struct base_err *err)
{
	if (l->status != BASE_OK)
		return base_fail(err, l->status, "it failed before");
	return l->status = live_live_advance(
		       l, time_ns > l->opts.late_ns ? time_ns - l->opts.late_ns : 0, err);
}

void live_lost(struct live *l, uint64_t n)
{
	l->health.nr_lost += n;
	l->count[l->nr_counts].nr_lost += n;
}

enum base_status live_finish(struct live *l, struct base_err *err)
{
	if (l->status != BASE_OK)
		return base_fail(err, l->status, "it failed before");
	enum base_status s = live_release(l, UINT64_MAX, err);
	if (s == BASE_OK && l->started)
		s = live_flush(l, err);
	if (s == BASE_OK && l->started)
		s = end_window(l, l->last_ns < l->end_ns ? l->last_ns : l->end_ns, err);
	while (s == BASE_OK && l->now.nr_parts)
		s = answer_ready(l, true, err);
	return l->status = s;
}

struct live_health live_health(const struct live *l)
{
	struct live_health h = l->health;
	h.nr_entries = size_of(&l->now) + (l->next.model ? size_of(&l->next) : 0);
	h.model = *model_health(l->now.model);
	return h;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html_collect.c - the timeline of a run: what each actor did, where the path was, how full queues
 * were.
 *
 * The engine tells each edge of each actor as it closes (graph_listener); neighbours in one state
 * are one slice. A wait that something ended is cut where that became available: from there on it
 * is the hand-off's latency, as on the path.
 */
#include "report/page/html_private.h"

#include <stdlib.h>
#include <string.h>

#define TRACKS_BYTES_MAX ((size_t)1 << 30) /* of all slices together */

struct row_units {
	int64_t now;
	uint64_t since_ns;
};
struct waiter { /* one more, or one less, that waits on a token */
	uint64_t time_ns;
	uint32_t row;
	int32_t more;
};
struct collect {
	struct html_timeline *t;
	struct html_track *track; /* by actor */
	uint32_t *next_state;     /* by actor */
	size_t nr_tracks, tracks_capacity, states_capacity;
	uint32_t *latency_state; /* by queue; NONE: none */
	size_t nr_queues, queues_capacity;
	const uint32_t *row_of_queue; /* of the first pass */
	uint32_t nr_known_queues;
	int64_t *units; /* by queue */
	size_t units_capacity;
	struct row_units *unit; /* by row */
	struct waiter *waiter;
	size_t nr_waiters, waiters_capacity;
	size_t bytes;
};

/* ---- listening ------------------------------------------------------------------------------- */

static enum base_status grow_tracks(struct collect *c, uint32_t actor)
{
	size_t need = (size_t)actor + 1;
	enum base_status s = base_grow(&c->track, &c->tracks_capacity, need, sizeof *c->track);
	if (s == BASE_OK)
		s = base_grow(&c->next_state, &c->states_capacity, need, sizeof *c->next_state);
	if (s == BASE_OK && need > c->nr_tracks)
		c->nr_tracks = need;
	return s;
}

static enum base_status html_collect_add_slice(struct collect *c, uint32_t actor, uint64_t begin_ns,
	uint64_t end_ns, uint32_t state, struct base_err *err)
{
	struct html_track *t = &c->track[actor];
	size_t before = t->length;
	enum base_status s = report_html_track_add(t, begin_ns, end_ns, state);
	c->bytes += t->length - before;
	if (s != BASE_OK)
		return report_no_memory(err);
	if (c->bytes > TRACKS_BYTES_MAX)
		return base_fail(err, BASE_ERR_LIMIT,
			"there is more than a page can be made of: look at a part of the run "
			"(--from, --to)");
	return BASE_OK;
}

static uint32_t html_collect_row_of(const struct collect *c, uint32_t queue)
{
	return queue < c->nr_known_queues ? c->row_of_queue[queue] : REPORT_NONE;
}

static enum base_status add_waiter(struct collect *c, const struct graph_moment *m)
{
	uint32_t row = m->waited ? html_collect_row_of(c, m->wait_queue) : REPORT_NONE;
	if (row == REPORT_NONE || !c->t->row[row].waiters || m->end_ns <= m->begin_ns)
		return BASE_OK;
	enum base_status s =
		base_grow(&c->waiter, &c->waiters_capacity, c->nr_waiters + 2, sizeof *c->waiter);
	if (s != BASE_OK)
		return s;
	uint64_t until_ns = m->explained ? m->end_ns - m->latency_ns : m->end_ns;
	c->waiter[c->nr_waiters++] = (struct waiter){.time_ns = m->begin_ns, .row = row, .more = 1};
	c->waiter[c->nr_waiters++] = (struct waiter){.time_ns = until_ns, .row = row, .more = -1};
	return BASE_OK;
}

static enum base_status html_collect_on_moment(
	void *ctx, const struct graph_moment *m, uint32_t *ret_mark, struct base_err *err)
{
	struct collect *c = ctx;
	(void)ret_mark;
	enum base_status s = grow_tracks(c, m->actor);
	if (s == BASE_OK)
		s = add_waiter(c, m);
	if (s != BASE_OK)
		return report_no_memory(err);
	c->next_state[m->actor] = m->next_state;
	if (m->state == REPORT_NONE)
		return BASE_OK;
	uint64_t cut_ns = m->end_ns;
	uint32_t late = REPORT_NONE;
	if (m->waited && m->explained && m->nr_deps) {
		uint32_t queue = m->dep[m->last].queue;
		late = queue < c->nr_queues ? c->latency_state[queue] : REPORT_NONE;
		if (late != REPORT_NONE && m->latency_ns < m->end_ns - m->begin_ns)
			cut_ns -= m->latency_ns;
	}
	s = html_collect_add_slice(c, m->actor, m->begin_ns, cut_ns, m->state, err);
	if (s == BASE_OK && cut_ns < m->end_ns)
		s = html_collect_add_slice(c, m->actor, cut_ns, m->end_ns, late, err);
	return s;
}

static enum base_status html_collect_on_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	struct collect *c = ctx;
	size_t need = (size_t)queue + 1;
	if (base_grow(&c->latency_state, &c->queues_capacity, need, sizeof *c->latency_state) !=
			BASE_OK ||
		base_grow(&c->units, &c->units_capacity, need, sizeof *c->units) != BASE_OK)
		return report_no_memory(err);
	c->latency_state[queue] = o->latency_state;
	c->units[queue] = o->initial == GRAPH_UNLIMITED ? 0 : (int64_t)o->initial;
	c->nr_queues = need > c->nr_queues ? need : c->nr_queues;
	uint32_t row = html_collect_row_of(c, queue);
	if (row != REPORT_NONE && !c->t->row[row].waiters)
		c->unit[row].now += c->units[queue];
	return BASE_OK;
}

/* Units as the engine has them: never below none. */
static enum base_status html_collect_on_verb(void *ctx, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from_actor, struct base_err *err)
{
	struct collect *c = ctx;
	(void)from_actor;
	if (kind != GRAPH_VERB_enqueue && kind != GRAPH_VERB_dequeue && kind != GRAPH_VERB_resize)
		return BASE_OK;
	uint32_t row = html_collect_row_of(c, v->queue);
	if (row == REPORT_NONE || c->t->row[row].waiters)
		return BASE_OK;
	int64_t before = c->units[v->queue], after = v->n;
	if (kind == GRAPH_VERB_enqueue)
		after = before + v->n;
	else if (kind == GRAPH_VERB_dequeue)
		after = v->n == GRAPH_ALL || v->n > before ? 0 : before - v->n;
	c->units[v->queue] = after;
	if (before == after)
		return BASE_OK;
	struct row_units *u = &c->unit[row];
	uint64_t now = u->now > 0 ? (uint64_t)u->now : 0;
	struct html_row *r = &c->t->row[row];
	if (report_html_track_add(&r->track, u->since_ns, v->time_ns,
		    now < HTML_NOTHING ? (uint32_t)now : HTML_NOTHING - 1) != BASE_OK)
		return report_no_memory(err);
	u->since_ns = v->time_ns;
	u->now += after - before;
	if (u->now > 0 && (uint64_t)u->now > r->greatest)
		r->greatest = (uint64_t)u->now;
	return BASE_OK;
}

/* ---- who waits on tokens --------------------------------------------------------------------- */

static int html_collect_by_time(const void *a, const void *b)
{
	const struct waiter *x = a, *y = b;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->more - y->more;
}

static enum base_status count_waiters(struct collect *c)
{
	if (c->nr_waiters)
		qsort(c->waiter, c->nr_waiters, sizeof *c->waiter, html_collect_by_time);
	for (size_t i = 0; i < c->nr_waiters; i++) {
		const struct waiter *w = &c->waiter[i];
		struct row_units *u = &c->unit[w->row];
		struct html_row *r = &c->t->row[w->row];
		enum base_status s = report_html_track_add(
			&r->track, u->since_ns, w->time_ns, u->now > 0 ? (uint32_t)u->now : 0);
		if (s != BASE_OK)
			return s;
		u->since_ns = w->time_ns;
		u->now += w->more;
		if (u->now > 0 && (uint64_t)u->now > r->greatest)
			r->greatest = (uint64_t)u->now;
	}
	return BASE_OK;
}

static enum base_status close_rows(struct collect *c)
{
	enum base_status s = count_waiters(c);
	for (size_t i = 0; s == BASE_OK && i < c->t->nr_rows; i++) {
		struct row_units *u = &c->unit[i];
		s = report_html_track_add(&c->t->row[i].track, u->since_ns, c->t->end_ns,
			u->now > 0 ? (uint32_t)u->now : 0);
		if (s == BASE_OK)
			s = report_html_track_close(&c->t->row[i].track);
	}
	return s;
}

/* ---- which queues ---------------------------------------------------------------------------- */

static enum base_status html_collect_choose_rows(
	struct html_timeline *t, const struct report_queues *q, struct base_err *err)
{
	t->row = report_array(t->arena, REPORT_HTML_QUEUES_MAX, sizeof *t->row);
	if (!t->row)
		return report_no_memory(err);
	for (size_t i = 0; i < q->nr_queues && t->nr_rows < REPORT_HTML_QUEUES_MAX; i++) {
		const struct report_queue *from = &q->queue[i];
		if (from->is_token || !(from->s.nr_waits_data + from->s.nr_waits_space))
			continue;
		if (!from->is_lock && !from->s.max_units) /* a row that is always empty */
			continue;
		struct html_row row = {.name = report_clean(t->arena, from->name),
			.type = report_clean(t->arena, from->type),
			.name_text = from->name_text,
			.waiters = from->is_lock};
		if (!row.name || !row.type)
			return report_no_memory(err);
		t->row[t->nr_rows++] = row;
	}
	return BASE_OK;
}

static void map_rows(struct html_timeline *t, struct model *m, uint32_t *row_of_queue)
{
	uint32_t nr = graph_nr_queues(model_graph(m));
	for (uint32_t i = 0; i < nr; i++) {
		const struct model_queue *q = model_queue(m, i);
		row_of_queue[i] = REPORT_NONE;
		if (q->part != MODEL_QUEUE_whole)
			continue;
		for (size_t k = 0; k < t->nr_rows; k++)
			if (q->name_text == t->row[k].name_text) {
				row_of_queue[i] = (uint32_t)k;
				t->row[k].waiters |= q->tokens;
			}
	}
}

/* ---- which lanes ----------------------------------------------------------------------------- */

struct score {
	uint32_t actor;
	double path_ns, family_ns;
	bool crowd;
	uint64_t active_ns, wait_ns;
};

static int by_score(const void *a, const void *b)
{
	const struct score *x = a, *y = b;
	if (x->path_ns != y->path_ns)
		return x->path_ns < y->path_ns ? 1 : -1;
	if (x->active_ns != y->active_ns)
		return x->active_ns < y->active_ns ? 1 : -1;
	return x->actor < y->actor ? -1 : x->actor > y->actor;
}

static int by_family(const void *a, const void *b)
{
	const struct score *x = a, *y = b;
	if (x->crowd != y->crowd)
		return x->crowd ? 1 : -1;
	if (x->family_ns != y->family_ns)
		return x->family_ns < y->family_ns ? 1 : -1;
	return x->actor < y->actor ? -1 : x->actor > y->actor;
}

static enum base_status score_actors(struct score *score, struct model *m,
	const struct graph_lane_result *lane, struct base_err *err)
{
	struct graph *g = model_graph(m);
	const struct graph_state_totals *total;
	size_t nr;
	enum base_status s = graph_totals(g, &total, &nr, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		enum model_state_kind kind = model_state(m, total[i].state)->kind;
		struct score *to = &score[total[i].actor];
		if (kind == MODEL_STATE_idle)
			continue;
		uint64_t waiting_ns =
			model_state_kind_waits(kind) ? total[i].total_ns : total[i].waiting_ns;
		to->wait_ns += waiting_ns;
		to->active_ns += total[i].total_ns - waiting_ns;
	}
	for (size_t i = 0; s == BASE_OK && i < lane->nr_states; i++)
		score[lane->state[i].actor].path_ns += lane->state[i].path_ns;
	return s;
}

static bool is_nobody(const struct model_actor *a)
{
	return a->kind == MODEL_ACTOR_meeting;
}

enum { CROWD = 12 };

/* What is on the path stands first, beside its kin: a thread's are those of its process, which has
 * all their path time; a machine's those of its group, which has its longest member's. */
static void set_families(struct score *score, size_t nr, struct model *m)
{
	for (size_t i = 0; i < nr; i++) {
		const struct model_actor *a = model_actor(m, score[i].actor);
		unsigned nr_group = 0;
		score[i].family_ns = 0;
		for (size_t k = 0; k < nr; k++) {
			const struct model_actor *b = model_actor(m, score[k].actor);
			double ns = score[k].path_ns;
			bool kin = a->group_text == b->group_text;
			nr_group += kin;
			if (a->pid && a->pid == b->pid)
				score[i].family_ns += ns;
			else if (!a->pid && kin && ns > score[i].family_ns)
				score[i].family_ns = ns;
		}
		score[i].crowd = !a->tid && nr_group > CROWD;
	}
}

static enum base_status choose_lanes(struct html_timeline *t, struct collect *c, struct model *m,
	const struct graph_lane_result *lane, uint32_t *lane_of, struct base_err *err)
{
	uint32_t nr = graph_nr_actors(model_graph(m));
	struct score *score = base_alloc(((size_t)nr + 1) * sizeof *score);
	if (!score)
		return report_no_memory(err);
	for (uint32_t i = 0; i < nr; i++)
		score[i].actor = i;
	enum base_status s = score_actors(score, m, lane, err);
	if (s != BASE_OK) {
		base_free(score);
		return s;
	}
	qsort(score, nr, sizeof *score, by_score);
	size_t chosen = 0;
	for (uint32_t i = 0; i < nr; i++) {
		const struct score *from = &score[i];
		bool empty = !(from->path_ns > 0) && !from->active_ns && !from->wait_ns;
		if (empty || (is_nobody(model_actor(m, from->actor)) && !(from->path_ns > 0)))
			continue;
		if (chosen == REPORT_HTML_LANES_MAX)
			t->nr_other_lanes++;
		else
			score[chosen++] = *from;
	}
	set_families(score, chosen, m);
	qsort(score, chosen, sizeof *score, by_family);
	t->lane = report_array(t->arena, chosen, sizeof *t->lane);
	for (size_t i = 0; t->lane && i < chosen; i++) {
		const struct model_actor *a = model_actor(m, score[i].actor);
		struct html_lane *l = &t->lane[i];
		*l = (struct html_lane){.actor = score[i].actor,
			.name = report_clean(t->arena, a->name),
			.group = report_clean(t->arena, a->group),
			.pid = a->pid,
			.tid = a->tid,
			.begin_ns = a->begin_ns,
			.end_ns = a->end_ns,
			.active_ns = score[i].active_ns,
			.wait_ns = score[i].wait_ns,
			.path_ns = score[i].path_ns};
		if (l->actor < c->nr_tracks) {
			l->track = c->track[l->actor];
			c->track[l->actor] = (struct html_track){0};
		}
		lane_of[l->actor] = (uint32_t)i;
		t->nr_lanes++;
		if (!l->name || !l->group)
			s = report_no_memory(err);
	}
	base_free(score);
	return t->lane ? s : report_no_memory(err);
}

/* When a thread that was not seen to end cannot have gone on: its end, or when the image that an
 * execve() put in its place began. `begun_ns` knows of later actors when each thread began. */
static uint64_t html_collect_end_ns(
	const struct html_timeline *t, const struct model_actor *a, struct base_map *begun_ns)
{
	uint64_t end_ns = a->ended && a->end_ns < t->end_ns ? a->end_ns : t->end_ns, next_ns;
	if (a->tid && !a->ended && base_map_get(begun_ns, a->pid, a->tid, &next_ns) &&
		next_ns >= a->end_ns && next_ns < end_ns)
		end_ns = next_ns;
	return end_ns;
}

/* What an actor was in when the records ended is open: until its end, or the run's. From the last
 * one back: actors have the order in which they began. */
static enum base_status html_collect_close(struct html_timeline *t, struct collect *c,
	struct model *m, struct base_map *begun_ns, struct base_err *err)
{
	for (size_t i = c->nr_tracks; i-- > 0;) {
		struct html_track *k = &c->track[i];
		const struct model_actor *a = model_actor(m, (uint32_t)i);
		uint64_t end_ns = html_collect_end_ns(t, a, begun_ns);
		if (a->tid && base_map_put(begun_ns, a->pid, a->tid, a->begin_ns) != BASE_OK)
			return report_no_memory(err);
		if (k->begun && c->next_state[i] != REPORT_NONE && end_ns > k->open.end_ns) {
			enum base_status s = html_collect_add_slice(
				c, (uint32_t)i, k->open.end_ns, end_ns, c->next_state[i], err);
			if (s != BASE_OK)
				return s;
		}
		if (report_html_track_close(k) != BASE_OK)
			return report_no_memory(err);
	}
	return BASE_OK;
}

static enum base_status close_tracks(
	struct html_timeline *t, struct collect *c, struct model *m, struct base_err *err)
{
	struct base_map begun_ns = {0};
	enum base_status s = html_collect_close(t, c, m, &begun_ns, err);
	base_map_fini(&begun_ns);
	return s;
}

/* ---- states: from the model's ids to those of the page --------------------------------------- */

/* Names of the queues that objects are: what a state waits for or holds. */
static enum base_status name_queues(
	struct html_timeline *t, struct model *m, const uint32_t *object, struct base_err *err)
{
	struct base_map name_of = {0};
	uint32_t nr = graph_nr_queues(model_graph(m));
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; s == BASE_OK && i < nr; i++) {
		const struct model_queue *q = model_queue(m, i);
		if (q->object && q->part == MODEL_QUEUE_whole)
			s = base_map_put(&name_of, 0, q->object, i);
	}
	for (uint32_t i = 0; s == BASE_OK && i < t->nr_states; i++) {
		uint64_t queue;
		t->state[i].queue = "";
		if (object[i] && base_map_get(&name_of, 0, object[i], &queue))
			t->state[i].queue =
				report_clean(t->arena, model_queue(m, (uint32_t)queue)->name);
		if (!t->state[i].queue)
			s = BASE_ERR_NOMEM;
	}
	base_map_fini(&name_of);
	return s == BASE_OK ? s : report_no_memory(err);
}

struct used { /* a topic, or a state */
	double path_ns;
	uint64_t total_ns;
	uint32_t id;
};

static int by_use(const void *a, const void *b)
{
	const struct used *x = a, *y = b;
	if (x->path_ns != y->path_ns)
		return x->path_ns < y->path_ns ? 1 : -1;
	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* States of one kind and name have one colour: a topic's, the one with most path time first. */
static enum base_status rank_topics(struct html_timeline *t, struct base_err *err)
{
	struct base_strtab *names = base_strtab_new();
	struct used *topic = base_alloc(((size_t)t->nr_states + 1) * sizeof *topic);
	uint32_t *rank = base_alloc(((size_t)t->nr_states + 1) * sizeof *rank);
	enum base_status s = names && topic && rank ? BASE_OK : BASE_ERR_NOMEM;
	uint32_t nr = 0;
	for (uint32_t i = 0; s == BASE_OK && i < t->nr_states; i++) {
		struct html_state *st = &t->state[i];
		struct base_str key = {0};
		base_str_addf(&key, "%d %s", (int)st->kind, st->name);
		s = key.failed ? BASE_ERR_NOMEM
			       : base_strtab_intern(
					 names, base_str_text(&key), key.length, &st->topic);
		base_str_fini(&key);
		if (s != BASE_OK)
			break;
		st->topic--; /* id 0 is "" */
		nr = st->topic >= nr ? st->topic + 1 : nr;
		topic[st->topic].id = st->topic;
		topic[st->topic].path_ns += st->path_ns;
		topic[st->topic].total_ns += st->total_ns;
	}
	if (s == BASE_OK && nr)
		qsort(topic, nr, sizeof *topic, by_use);
	for (uint32_t i = 0; s == BASE_OK && i < nr; i++)
		rank[topic[i].id] = i;
	for (uint32_t i = 0; s == BASE_OK && i < t->nr_states; i++)
		t->state[i].topic = rank[t->state[i].topic];
	base_strtab_free(names);
	base_free(topic);
	base_free(rank);
	return s == BASE_OK ? s : report_no_memory(err);
}

static void count_use(const struct html_timeline *t, struct used *used)
{
	for (size_t i = 0; i < t->nr_lanes; i++) {
		struct html_cursor c = report_html_cursor_of(&t->lane[i].track, t->end_ns);
		for (uint64_t at = t->start_ns; at < t->end_ns;) {
			const struct html_slice *s = report_html_cursor_seek(&c, at);
			uint64_t until = s->end_ns < t->end_ns ? s->end_ns : t->end_ns;
			if (s->value != HTML_NOTHING)
				used[s->value].total_ns += until - at;
			at = until;
		}
	}
}

static enum base_status html_collect_renumber(struct html_track *t, const uint32_t *to)
{
	struct html_track fresh = {0};
	struct html_cursor c = report_html_cursor_of(t, UINT64_MAX);
	enum base_status s = BASE_OK;
	for (uint64_t at = t->begin_ns; s == BASE_OK;) {
		const struct html_slice *from = report_html_cursor_seek(&c, at);
		if (from->end_ns == UINT64_MAX)
			break;
		if (from->value != HTML_NOTHING && to[from->value] != HTML_NOTHING)
			s = report_html_track_add(&fresh, at, from->end_ns, to[from->value]);
		at = from->end_ns;
	}
	if (s == BASE_OK)
		s = report_html_track_close(&fresh);
	report_html_track_fini(t);
	*t = fresh;
	return s;
}

static enum base_status take_states(struct html_timeline *t, struct model *m, struct used *used,
	uint32_t nr, uint32_t *to, struct base_err *err)
{
	uint32_t nr_used = 0;
	qsort(used, nr, sizeof *used, by_use);
	for (uint32_t i = 0; i < nr; i++)
		to[i] = HTML_NOTHING;
	while (nr_used < nr && (used[nr_used].path_ns > 0 || used[nr_used].total_ns))
		nr_used++;
	t->state = report_array(t->arena, nr_used, sizeof *t->state);
	uint32_t *object = report_array(t->arena, nr_used, sizeof *object);
	if (!t->state || !object)
		return report_no_memory(err);
	for (uint32_t i = 0; i < nr_used; i++) {
		const struct model_state *st = model_state(m, used[i].id);
		if (st->kind == MODEL_STATE_idle) /* drawn as nothing */
			continue;
		struct html_state *s = &t->state[t->nr_states];
		object[t->nr_states] = st->object;
		to[used[i].id] = t->nr_states++;
		*s = (struct html_state){.kind = st->kind,
			.name = report_clean(t->arena, st->name),
			.where = report_clean(t->arena, st->where),
			.path_ns = used[i].path_ns,
			.total_ns = used[i].total_ns};
		if (!s->name || !s->where)
			return report_no_memory(err);
	}
	enum base_status s = name_queues(t, m, object, err);
	return s == BASE_OK ? rank_topics(t, err) : s;
}

static enum base_status number_states(struct html_timeline *t, struct model *m,
	const struct graph_lane_result *lane, uint32_t *to, struct base_err *err)
{
	uint32_t nr = graph_nr_states(model_graph(m));
	struct used *used = base_alloc(((size_t)nr + 1) * sizeof *used);
	if (!used)
		return report_no_memory(err);
	for (uint32_t i = 0; i < nr; i++)
		used[i].id = i;
	for (size_t i = 0; i < lane->nr_states; i++)
		used[lane->state[i].state].path_ns += lane->state[i].path_ns;
	count_use(t, used);
	enum base_status s = take_states(t, m, used, nr, to, err);
	for (size_t i = 0; s == BASE_OK && i < t->nr_lanes; i++) {
		if (html_collect_renumber(&t->lane[i].track, to) != BASE_OK)
			s = report_no_memory(err);
		t->nr_slices += t->lane[i].track.nr_slices;
	}
	base_free(used);
	return s;
}

/* ---- the path -------------------------------------------------------------------------------- */

static enum base_status find_step(struct html_timeline *t, struct base_map *known, size_t *capacity,
	struct html_step step, uint32_t *ret)
{
	uint64_t found;
	if (base_map_get(known, step.lane, step.state, &found)) {
		*ret = (uint32_t)found;
		return BASE_OK;
	}
	enum base_status s = base_grow(&t->step, capacity, t->nr_steps + 1, sizeof *t->step);
	if (s == BASE_OK)
		s = base_map_put(known, step.lane, step.state, t->nr_steps);
	if (s != BASE_OK)
		return s;
	*ret = (uint32_t)t->nr_steps;
	t->step[t->nr_steps++] = step;
	return BASE_OK;
}

static enum base_status draw_path(struct html_timeline *t, struct model *m, const uint32_t *lane_of,
	const uint32_t *to, struct base_err *err)
{
	const struct graph_path_edge *edge;
	struct base_map known = {0};
	size_t nr, capacity = 0;
	enum base_status s = graph_path(model_graph(m), &edge, &nr, err);
	if (s != BASE_OK)
		return s;
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		uint32_t step = 0;
		s = find_step(t, &known, &capacity,
			(struct html_step){
				.lane = lane_of[edge[i].actor], .state = to[edge[i].state]},
			&step);
		if (s == BASE_OK)
			s = report_html_track_add(&t->path, edge[i].begin_ns, edge[i].end_ns, step);
	}
	if (s == BASE_OK)
		s = report_html_track_close(&t->path);
	base_map_fini(&known);
	return s == BASE_OK ? s : report_no_memory(err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum base_status html_collect_shape(struct html_timeline *t, struct collect *c,
	struct model *m, const struct graph_lane_result *lane, struct base_err *err)
{
	struct graph *g = model_graph(m);
	size_t nr_actors = graph_nr_actors(g), nr_states = graph_nr_states(g);
	uint32_t *lane_of = base_alloc((nr_actors + 1) * sizeof *lane_of);
	uint32_t *to = base_alloc((nr_states + 1) * sizeof *to);
	enum base_status s = lane_of && to ? close_tracks(t, c, m, err) : report_no_memory(err);
	for (size_t i = 0; lane_of && i < nr_actors; i++)
		lane_of[i] = HTML_NOTHING;
	if (s == BASE_OK)
		s = choose_lanes(t, c, m, lane, lane_of, err);
	if (s == BASE_OK)
		s = number_states(t, m, lane, to, err);
	if (s == BASE_OK)
		s = draw_path(t, m, lane_of, to, err);
	if (s == BASE_OK && close_rows(c) != BASE_OK)
		s = report_no_memory(err);
	if (s == BASE_OK) {
		t->waits = report_array(t->arena, (size_t)t->nr_states + 1, sizeof *t->waits);
		s = t->waits ? s : report_no_memory(err);
	}
	for (size_t i = 0; s == BASE_OK && i < t->nr_states; i++)
		t->waits[i] = model_state_kind_waits(t->state[i].kind);
	base_free(lane_of);
	base_free(to);
	return s;
}

static enum base_status html_collect_collect(struct html_timeline *t, const struct report_run *run,
	struct collect *c, struct base_err *err)
{
	struct graph_listener listener = {.ctx = c, .moment = html_collect_on_moment};
	struct graph_sink sink = {
		.ctx = c, .queue = html_collect_on_queue, .verb = html_collect_on_verb};
	struct report_pass_options opts = {.keep_path = true, .listener = &listener, .sink = &sink};
	struct graph_lane_result lane;
	struct model *m = NULL;
	enum base_status s = report_pass(run, "drawing the timeline", &opts, &m, err);
	if (s == BASE_OK)
		s = graph_lane(model_graph(m), 0, &lane, err);
	if (s == BASE_OK && !lane.found)
		s = report_no_path(err);
	if (s == BASE_OK) {
		t->start_ns = lane.start_ns;
		t->end_ns = lane.end_ns;
		t->path_ns = lane.length_ns;
		s = html_collect_shape(t, c, m, &lane, err);
	}
	model_free(m);
	return s;
}

enum base_status report_html_timeline_build(
	struct html_timeline *t, const struct report_run *run, struct base_err *err)
{
	*t = (struct html_timeline){.arena = base_arena_new(0)};
	struct report_queues *q = NULL;
	struct collect c = {.t = t};
	struct model *m = NULL;
	uint32_t *row_of_queue = NULL;
	enum base_status s =
		t->arena ? report_queues_model(run, NULL, &q, &m, err) : report_no_memory(err);
	if (s == BASE_OK)
		s = html_collect_choose_rows(t, q, err);
	if (s == BASE_OK) {
		c.nr_known_queues = graph_nr_queues(model_graph(m));
		row_of_queue = base_alloc(((size_t)c.nr_known_queues + 1) * sizeof *row_of_queue);
		c.unit = base_alloc((REPORT_HTML_QUEUES_MAX + 1) * sizeof *c.unit);
		c.row_of_queue = row_of_queue;
		if (row_of_queue && c.unit)
			map_rows(t, m, row_of_queue);
		else
			s = report_no_memory(err);
	}
	model_free(m);
	if (s == BASE_OK)
		s = html_collect_collect(t, run, &c, err);
	for (size_t i = 0; i < c.nr_tracks; i++)
		report_html_track_fini(&c.track[i]);
	base_free(c.track);
	base_free(c.next_state);
	base_free(c.latency_state);
	base_free(c.units);
	base_free(c.unit);
	base_free(c.waiter);
	base_free(row_of_queue);
	report_queues_free(q);
	if (s != BASE_OK)
		report_html_timeline_fini(t);
	return s;
}

void report_html_timeline_fini(struct html_timeline *t)
{
	for (size_t i = 0; i < t->nr_lanes; i++)
		report_html_track_fini(&t->lane[i].track);
	for (size_t i = 0; i < t->nr_rows; i++)
		report_html_track_fini(&t->row[i].track);
	report_html_track_fini(&t->path);
	base_free(t->step);
	base_arena_free(t->arena);
	*t = (struct html_timeline){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - the compact graph with names (seed 000, section 5.9): classes of what has one name,
 * then one of three views. */
#include "graph/compact.h"
#include "report/graph/graph_private.h"

#include <stdlib.h>
#include <string.h>

const char *report_graph_view_name(enum report_graph_view v)
{
	return v == REPORT_GRAPH_interaction ? "interaction"
	       : v == REPORT_GRAPH_states    ? "states"
					     : "machine";
}

/* ---- classes --------------------------------------------------------------------------------- */

struct interning {
	struct base_strtab *names;
	struct base_str key;
};

static enum base_status graph_intern(
	struct interning *in, uint32_t *ret_class, struct base_err *err)
{
	uint32_t id;
	enum base_status s = in->key.failed ? BASE_ERR_NOMEM
					    : base_strtab_intern(in->names, base_str_text(&in->key),
						      in->key.length, &id);
	if (s != BASE_OK)
		return report_no_memory(err);
	*ret_class = id - 1; /* id 0 is "" */
	return BASE_OK;
}

static enum base_status interning_begin(struct interning *in, struct base_err *err)
{
	*in = (struct interning){.names = base_strtab_new()};
	return in->names ? BASE_OK : report_no_memory(err);
}

static void interning_end(struct interning *in)
{
	base_strtab_free(in->names);
	base_str_fini(&in->key);
}

static bool is_chosen(const struct report_graph_options *o, const struct model_actor *a)
{
	return o->view != REPORT_GRAPH_machine || report_pattern_matches(o->actor, a->name);
}

/* Groups, those members apart that were asked for. */
static enum base_status group_actors(struct graph_names *n, struct model *m,
	const struct report_graph_options *o, uint32_t *group, uint64_t *members,
	struct base_err *err)
{
	struct interning in;
	enum base_status s = interning_begin(&in, err);
	for (uint32_t a = 0; a < n->nr_actors && s == BASE_OK; a++) {
		const struct model_actor *actor = model_actor(m, a);
		base_str_reset(&in.key);
		base_str_addf(&in.key, "%d %u", is_chosen(o, actor), actor->group_text);
		s = graph_intern(&in, &group[a], err);
		if (s == BASE_OK)
			members[group[a]]++;
	}
	interning_end(&in);
	return s;
}

static const char *graph_folded_name(struct base_arena *a, const char *group, uint64_t nr)
{
	struct base_str s = {0};
	report_clean_add(&s, group);
	base_str_addf(&s, " \xc3\x97%llu", (unsigned long long)nr);
	return report_keep(a, &s);
}

/* An actor is a class of its own, or its whole group is one. */
static enum base_status class_actors(struct graph_names *n, struct report_graph *g, struct model *m,
	const struct report_graph_options *o, struct base_err *err)
{
	uint32_t *group = report_array(n->scratch, n->nr_actors, sizeof *group);
	uint64_t *members = report_array(n->scratch, n->nr_actors, sizeof *members);
	uint32_t *first = report_array(n->scratch, n->nr_actors, sizeof *first);
	enum base_status s = group && members && first ? BASE_OK : report_no_memory(err);
	if (s == BASE_OK)
		s = group_actors(n, m, o, group, members, err);
	for (uint32_t a = 0; a < n->nr_actors && s == BASE_OK; a++) {
		const struct model_actor *actor = model_actor(m, a);
		uint64_t nr = members[group[a]];
		bool fold = !o->each_actor && nr > REPORT_GRAPH_HANDFUL;
		if (fold && first[group[a]]) {
			n->actor_class[a] = first[group[a]] - 1;
			continue;
		}
		uint32_t class_ix = n->nr_actor_classes++;
		first[group[a]] = class_ix + 1;
		n->actor_class[a] = class_ix;
		n->chosen[class_ix] = is_chosen(o, actor);
		n->nr_chosen += n->chosen[class_ix];
		n->actor_name[class_ix] = fold ? graph_folded_name(g->arena, actor->group, nr)
					       : report_clean(g->arena, actor->name);
		if (!n->actor_name[class_ix])
			s = report_no_memory(err);
		g->nr_folded_groups += fold;
		g->nr_folded_actors += fold ? nr : 0;
	}
	return s;
}

static enum base_status class_states(
	struct graph_names *n, struct report_graph *g, struct model *m, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < n->nr_states && s == BASE_OK; i++) {
		const struct model_state *st = model_state(m, i);
		n->state_class[i] = st->identity;
		if (n->state_name[st->identity])
			continue;
		n->state_name[n->state_class[i]] = report_clean(g->arena, st->name);
		n->state_idle[n->state_class[i]] = st->kind == MODEL_STATE_idle;
		if (!n->state_name[n->state_class[i]])
			s = report_no_memory(err);
	}
	return s;
}

/* A pipe or a connection is itself, whatever the place that all of its kind are named after. */
static bool is_itself(const struct model_queue *q)
{
	return q->object && model_object_is(q->type, MODEL_TRAIT_numbered);
}

static void add_queue_name(
	struct base_str *out, const struct model_queue *q, const struct trace_defs *defs)
{
	const struct trace_object *o =
		q->object < defs->nr_objects ? &defs->objects[q->object] : &defs->objects[0];
	if (!q->object)
		base_str_add(out, q->type == TRACE_OBJECT_NR ? "processors" : "start or end");
	else if (is_itself(q) && !o->name)
		base_str_addf(out, "%.*s %llu", (int)strcspn(q->name, " "), q->name,
			(unsigned long long)o->address);
	else
		report_clean_add(out, q->name);
}

/* Other queues of one name are one: all locks of a class. */
static enum base_status name_queue_class(struct graph_names *n, struct report_graph *g,
	const struct model_queue *q, const struct trace_defs *defs, uint32_t class_ix,
	struct base_err *err)
{
	struct base_str name = {0};
	add_queue_name(&name, q, defs);
	n->queue_name[class_ix] = report_keep(g->arena, &name);
	n->queue_type[class_ix] = q->type;
	n->queue_is_token[class_ix] = !q->object && q->type != TRACE_OBJECT_NR;
	if (class_ix >= n->nr_queue_classes)
		n->nr_queue_classes = class_ix + 1;
	return n->queue_name[class_ix] ? BASE_OK : report_no_memory(err);
}

static enum base_status class_queues(struct graph_names *n, struct report_graph *g, struct model *m,
	const struct trace_defs *defs, struct base_err *err)
{
	struct interning in;
	enum base_status s = interning_begin(&in, err);
	for (uint32_t i = 0; i < n->nr_queues && s == BASE_OK; i++) {
		const struct model_queue *q = model_queue(m, i);
		base_str_reset(&in.key);
		base_str_addf(&in.key, "%u ", is_itself(q) ? q->object : 0);
		add_queue_name(&in.key, q, defs);
		s = graph_intern(&in, &n->queue_class[i], err);
		if (s == BASE_OK && !n->queue_name[n->queue_class[i]])
			s = name_queue_class(n, g, q, defs, n->queue_class[i], err);
	}
	interning_end(&in);
	return s;
}

static enum base_status no_such_actor(const char *pattern, struct model *m, struct base_err *err)
{
	struct base_str list = {0};
	uint32_t nr = graph_nr_actors(model_graph(m));
	for (uint32_t a = 0; a < nr && a < 6; a++) {
		base_str_add(&list, a ? ", " : "");
		report_clean_add(&list, model_actor(m, a)->name);
	}
	enum base_status s = base_fail(err, BASE_ERR_NOTFOUND,
		"no thread or state machine matches '%s'; there %s %s%s", pattern,
		nr == 1 ? "is" : "are", base_str_text(&list), nr > 6 ? ", ..." : "");
	base_str_fini(&list);
	return s;
}

static enum base_status make_names(struct graph_names *n, struct report_graph *g, struct model *m,
	const struct trace_defs *defs, const struct report_graph_options *o, struct base_err *err)
{
	struct graph *engine = model_graph(m);
	struct base_arena *a = n->scratch = base_arena_new(0);
	if (!a)
		return report_no_memory(err);
	n->nr_actors = graph_nr_actors(engine);
	n->nr_states = graph_nr_states(engine);
	n->nr_queues = graph_nr_queues(engine);
	n->actor_class = report_array(a, n->nr_actors, sizeof *n->actor_class);
	n->actor_name = report_array(a, n->nr_actors, sizeof *n->actor_name);
	n->chosen = report_array(a, n->nr_actors, sizeof *n->chosen);
	n->state_class = report_array(a, n->nr_states, sizeof *n->state_class);
	n->state_name = report_array(a, n->nr_states, sizeof *n->state_name);
	n->state_idle = report_array(a, n->nr_states, sizeof *n->state_idle);
	n->queue_class = report_array(a, n->nr_queues, sizeof *n->queue_class);
	n->queue_name = report_array(a, n->nr_queues, sizeof *n->queue_name);
	n->queue_type = report_array(a, n->nr_queues, sizeof *n->queue_type);
	n->queue_is_token = report_array(a, n->nr_queues, sizeof *n->queue_is_token);
	if (!n->actor_class || !n->actor_name || !n->chosen || !n->state_class || !n->state_name ||
		!n->state_idle || !n->queue_class || !n->queue_name || !n->queue_type ||
		!n->queue_is_token)
		return report_no_memory(err);
	enum base_status s = class_actors(n, g, m, o, err);
	if (s == BASE_OK)
		s = class_states(n, g, m, err);
	if (s == BASE_OK)
		s = class_queues(n, g, m, defs, err);
	if (s == BASE_OK && !n->nr_chosen)
		s = no_such_actor(o->actor, m, err);
	return s;
}

/* ---- the passes ------------------------------------------------------------------------------ */

/* First the path, then what it is laid over. */
static enum base_status graph_record(const struct report_run *run, double *ret_elapsed_ns,
	struct model **ret, struct graph_compact *ret_c, struct base_err *err)
{
	struct report_pass_options first = {.keep_path = true}, second = {0};
	struct graph_compact_options co = {.size = sizeof co};
	struct graph_compact_recorder *recorder = NULL;
	struct graph_lane_result lane;
	struct model *m = NULL;
	enum base_status s = report_pass(run, "finding the critical path", &first, &m, err);
	if (s == BASE_OK)
		s = graph_lane(model_graph(m), 0, &lane, err);
	if (s == BASE_OK)
		s = graph_path(model_graph(m), &co.path, &co.nr_path, err);
	if (s == BASE_OK)
		s = graph_compact_new(&co, &recorder, err);
	if (s == BASE_OK) {
		*ret_elapsed_ns = lane.length_ns;
		second.sink = graph_compact_sink(recorder);
		second.listener = graph_compact_listener(recorder);
		s = report_pass(run, "drawing the graph", &second, ret, err);
	}
	if (s == BASE_OK)
		s = graph_compact_finish(recorder, ret_c, err);
	graph_compact_free(recorder);
	model_free(m);
	return s;
}

/* By classes, of the actors that were asked for. */
static enum base_status graph_shape(const struct graph_compact *all, const struct graph_names *n,
	enum report_graph_view view, struct graph_compact *ret, struct base_err *err)
{
	struct graph_compact_classes k = {n->actor_class, n->state_class, n->queue_class};
	struct graph_compact folded;
	enum base_status s = graph_compact_fold(all, &k, &folded, err);
	if (s != BASE_OK || view != REPORT_GRAPH_machine) {
		*ret = folded;
		return s;
	}
	s = graph_compact_select(&folded, n->chosen, ret, err);
	graph_compact_fini(&folded);
	return s;
}

/* What helps an object (a pipe's end of file, an rwlock's readers) carries tokens of ours, no data:
 * only waits on it are drawn. */
static void forget_helpers(struct graph_compact *all, struct model *m)
{
	size_t kept = 0;
	for (size_t i = 0; i < all->nr_uses; i++) {
		struct graph_compact_use u = all->use[i];
		if (model_queue(m, u.queue)->part != MODEL_QUEUE_whole) {
			u.put_units = u.taken_units = u.nr_puts = u.nr_takes = 0;
			if (!u.nr_waits_data && !u.nr_waits_space)
				continue;
		}
		all->use[kept++] = u;
	}
	all->nr_uses = kept;
}

static void graph_count_all(struct report_graph *g, const struct graph_compact *c)
{
	for (size_t i = 0; i < c->nr_edges; i++) {
		g->all_time_ns += c->edge[i].time_ns;
		g->all_visits += c->edge[i].visits;
	}
	for (size_t i = 0; i < c->nr_crosses; i++)
		g->all_uses += c->cross[i].uses;
	g->unplaced_ns = c->unplaced_ns;
}

static enum base_status graph_fill(struct report_graph *g, struct model *m,
	const struct trace_defs *defs, struct graph_compact *all,
	const struct report_graph_options *o, struct base_err *err)
{
	struct graph_names names = {0};
	struct graph_compact c = {0};
	enum base_status s = make_names(&names, g, m, defs, o, err);
	if (s == BASE_OK)
		forget_helpers(all, m);
	if (s == BASE_OK)
		s = graph_shape(all, &names, o->view, &c, err);
	if (s == BASE_OK && !o->each_actor)
		s = report_graph_fold_queues(g, &names, &c, err);
	if (s == BASE_OK) {
		graph_count_all(g, &c);
		s = o->view == REPORT_GRAPH_interaction
			    ? report_graph_fill_interaction(g, &names, &c, o, err)
			    : report_graph_fill_states(g, &names, &c, o->max_nodes, err);
	}
	graph_compact_fini(&c);
	base_arena_free(names.scratch);
	return s;
}

static int heaviest_first(const void *pa, const void *pb)
{
	const struct report_graph_edge *a = pa, *b = pb;
	if (a->path_ns != b->path_ns)
		return a->path_ns < b->path_ns ? 1 : -1;
	if (a->path_visits != b->path_visits)
		return a->path_visits < b->path_visits ? 1 : -1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? 1 : -1;
	if (a->passes != b->passes)
		return a->passes < b->passes ? 1 : -1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* One view of what was recorded. */
static enum base_status graph_build_view(const struct report_run *run, struct model *m,
	struct graph_compact *all, const struct report_graph_options *opts,
	struct report_graph **ret, struct base_err *err)
{
	struct report_graph_options o = *opts;
	struct report_graph *g = report_answer_new(sizeof *g);
	if (!g)
		return report_no_memory(err);
	g->view = o.view;
	if (!o.max_nodes)
		o.max_nodes = REPORT_GRAPH_NODES_DEFAULT;
	enum base_status s = report_fill_trace(&g->trace, g->arena, run, m, err);
	if (s == BASE_OK)
		s = graph_fill(g, m, trace_reader_defs(run->reader), all, &o, err);
	if (s != BASE_OK) {
		report_graph_free(g);
		return s;
	}
	if (g->nr_edges)
		qsort(g->edge, g->nr_edges, sizeof *g->edge, heaviest_first);
	*ret = g;
	return BASE_OK;
}

enum base_status report_graph_build_views(const struct report_run *run,
	const struct report_graph_options *opts, unsigned nr, struct report_graph **ret,
	struct base_err *err)
{
	struct graph_compact all = {0};
	struct model *m = NULL;
	double elapsed_ns = 0;
	unsigned made = 0;
	enum base_status s = graph_record(run, &elapsed_ns, &m, &all, err);
	for (; s == BASE_OK && made < nr; made += s == BASE_OK) {
		s = graph_build_view(run, m, &all, &opts[made], &ret[made], err);
		if (s == BASE_OK)
			ret[made]->elapsed_ns = elapsed_ns;
	}
	while (s != BASE_OK && made) {
		made--;
		ret[made] = report_graph_free(ret[made]);
	}
	graph_compact_fini(&all);
	model_free(m);
	return s;
}

enum base_status report_graph_build(const struct report_run *run,
	const struct report_graph_options *opts, struct report_graph **ret, struct base_err *err)
{
	return report_graph_build_views(run, opts, 1, ret, err);
}

struct report_graph *report_graph_free(struct report_graph *g)
{
	if (g) {
		base_free(g->edge);
		base_arena_free(g->arena);
	}
	base_free(g);
	return NULL;
}

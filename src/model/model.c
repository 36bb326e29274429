/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - the run: reads the trace, finds each record's thread and rule. */
#include "model/model_private.h"

#include <string.h>

typedef void rule_fn(struct model *m, struct thread *t, const struct trace_record *r);

enum { PROGRESS_EVERY = 1 << 17 };

static rule_fn *const rule_table[MODEL_KINDS] = {
#define RULE(kind) [TRACE_##kind] = model_rule_##kind,
#include "model/rules.def"
};

/* ---- what recording took --------------------------------------------------------------------- */

/* Of each record that a thread writes itself, as the recorder measured; elder ones had one number
 * for all. */
static void find_recording(struct model *m)
{
	for (unsigned kind = 0; kind < MODEL_KINDS && m->sink && m->sink->recording; kind++) {
		const char *cost = trace_cost_of_kind(kind);
		uint64_t ns = cost ? trace_cost_each_ns(m->defs, cost) : 0;
		if (cost && !ns)
			ns = trace_cost_each_ns(m->defs, TRACE_COST_RECORDS);
		m->recording_ns[kind] = ns;
	}
}

/* ---- the run --------------------------------------------------------------------------------- */

/* A thread, or a context, that is no actor yet. */
static void model_begin_thread(struct model *m, struct thread *t, uint32_t stream, uint32_t site)
{
	const struct trace_stream *def = &m->defs->streams[stream];
	const struct trace_context *c = trace_def_context(m->defs, stream);
	t->seen = true;
	t->stream = stream;
	t->process = def->process;
	t->k.context = c->type < TRACE_CONTEXT_NR && c->type != TRACE_CONTEXT_recorder
			       ? (enum trace_context_type)c->type
			       : TRACE_CONTEXT_none;
	uint32_t host = model_host_of(m, stream);
	if (c->type == TRACE_CONTEXT_recorder)
		t->role = model_role_of_context(m, host, TRACE_CONTEXT_recorder, c->name);
	else
		t->role = t->k.context != TRACE_CONTEXT_none
				  ? model_role_of_context(m, host, t->k.context, c->name)
				  : model_role_of(m, host, def->process, site);
	if (m->status != BASE_OK)
		return;
	model_find_server(m, t);
	t->actor = model_make_actor(m, t->role, stream);
	t->run_state = model_run_state(m, t, 0);
	t->graph_state = t->run_state;
	t->exit_queue = NONE;
	t->io.queue = NONE;
	t->cpu.processor_queue = NONE;
	t->k.wake_queue = t->k.task.arrivals = t->k.task.channel = NONE;
	t->k.asleep_state = NONE;
	t->k.packet_by = NONE;
	t->k.asleep_on = GRAPH_VERB_wait;
	t->k.call.queue = NONE;
}

static bool model_is_thread(const struct model *m, uint32_t stream)
{
	uint64_t type = trace_def_context(m->defs, stream)->type;
	return type == TRACE_CONTEXT_none || type == TRACE_CONTEXT_recorder;
}

/* Threads from `from` on have been waiting since before the recording, or are to be born. */
static void begin_threads(struct model *m, uint32_t from, uint64_t time_ns, uint32_t flags)
{
	for (uint32_t i = from; i < m->nr_threads && m->status == BASE_OK; i++) {
		struct thread *t = &m->thread[i];
		model_begin_thread(m, t, i, 0);
		if (m->status != BASE_OK)
			return;
		t->life.begin_ns = t->life.end_ns = time_ns;
		t->life.born_ns = UINT64_MAX;
		t->k.unborn = true;
		if (!model_is_thread(m, i))
			continue;
		model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0,
			model_make_state(m, MODEL_CAUSE_unseen, NONE, NONE, 0, 0),
			t->k.server ? 0 : flags);
		t->mode = MODE_BLOCKED;
		t->resume_state = t->run_state;
		uint64_t unused;
		if (!base_map_get(&m->known.handles, MODEL_LEADERS | t->process, 0, &unused))
			model_put(m, &m->known.handles, MODEL_LEADERS | t->process, 0, i);
	}
}

/* All that are known by now; what is defined later has no path until somebody gives it one. */
static void begin_system(struct model *m, uint64_t time_ns)
{
	uint32_t flags = m->opts->start || m->follow.by_connection ? 0 : GRAPH_START;
	m->started = true;
	begin_threads(m, 1, time_ns, flags);
}

/* The programs that other recordings of a merged trace began with: until then nothing was recorded
 * of them, but they depend on nobody. (`first` begins by itself.) */
static void begin_recordings(struct model *m, uint32_t first, uint64_t time_ns, uint32_t flags)
{
	for (uint32_t i = 1; i < m->nr_threads && m->status == BASE_OK; i++) {
		struct thread *t = &m->thread[i];
		uint32_t process = m->defs->streams[i].process;
		uint64_t leader;
		if (!process || trace_def_process(m->defs, process)->parent ||
			process == m->defs->streams[first].process ||
			base_map_get(&m->known.handles, MODEL_LEADERS | process, 0, &leader))
			continue;
		model_begin_thread(m, t, i, 0);
		if (m->status != BASE_OK)
			return;
		t->life.begin_ns = t->life.born_ns = time_ns;
		model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0,
			model_make_state(m, MODEL_CAUSE_unseen, NONE, NONE, 0, 0), flags);
		t->mode = MODE_BLOCKED;
		t->resume_state = t->run_state;
		model_put(m, &m->known.handles, MODEL_LEADERS | process, 0, i);
	}
}

/* A stream's first record makes its actor. Its rule decides whether it starts a path, or goes on
 * with another's. */
static __attribute__((noinline)) struct thread *new_thread_of(
	struct model *m, const struct trace_record *r)
{
	if (m->is_system && !m->started)
		begin_system(m, r->time_ns);
	if (!r->stream || r->stream >= m->nr_threads) {
		model_count(m, TRACE_DIAG_ids_unknown);
		return NULL;
	}
	struct thread *t = &m->thread[r->stream];
	if (t->seen)
		return t;
	/* The kernel's view of a thread may begin before its own: its first record will say who it
	 * is. The first of all is the program itself, which the dynamic loader is making ready. */
	if (m->started &&
		(r->kind == TRACE_cpu_in || r->kind == TRACE_cpu_out || r->kind == TRACE_sample)) {
		if (r->kind == TRACE_cpu_in)
			model_unborn_in(m, t, r);
		return NULL;
	}
	const struct trace_stream *def = &m->defs->streams[r->stream];
	uint32_t site = r->kind == TRACE_thread_begin ? r->u.thread_begin.site : 0;
	bool first = !m->started;
	if (!m->run.root_process) {
		m->run.root_process = def->process;
		m->run.root_pid =
			model_pid_key(m, r->stream, trace_def_process(m->defs, def->process)->pid);
	}
	model_begin_thread(m, t, r->stream, site);
	if (m->status != BASE_OK)
		return NULL;
	t->life.begin_ns = t->life.born_ns = r->time_ns;
	if (first) {
		uint32_t flags = m->opts->start || m->follow.by_connection ? 0 : GRAPH_START;
		m->part.end_actor = t->actor;
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, t->run_state, flags);
		m->started = true;
		if (m->run.is_merged)
			begin_recordings(m, r->stream, r->time_ns, flags);
	} else if (r->kind != TRACE_process_begin && r->kind != TRACE_thread_begin) {
		/* its creation was not seen: control came from its process's first thread, as far
		 * as anyone can tell */
		uint64_t leader;
		if (base_map_get(&m->known.handles, MODEL_LEADERS | def->process, 0, &leader) &&
			leader != r->stream)
			model_link(m, t->actor, r->time_ns, t->run_state, m->thread[leader].actor);
	}
	uint64_t unused;
	if (!base_map_get(&m->known.handles, MODEL_LEADERS | def->process, 0, &unused))
		model_put(m, &m->known.handles, MODEL_LEADERS | def->process, 0, r->stream);
	return t;
}

/* The program that the user started begins: so does the path. */
static void start_at_root(struct model *m, const struct thread *t, uint64_t time_ns)
{
	m->part.restarts = false;
	m->looks_closer = m->is_system || m->part.left;
	m->part.end_actor = t->actor;
	model_keep(m, graph_restart(m->graph, time_ns, m->err));
	model_forget_samples(m); /* counted anew */
}

/* Recordings of the system, and what is true of few records: does a rule apply to this one? */
static __attribute__((noinline)) bool may_apply(
	struct model *m, struct thread *t, const struct trace_record *r)
{
	if (m->status != BASE_OK || (m->part.left && r->kind == TRACE_sample))
		return false;
	/* (the kernel still sees it exit, and wake whoever waits for that; and it may say what it counted) */
	if (t->ended && r->kind != TRACE_lock_waits &&
		!(m->is_system && r->kind > TRACE_sample && r->kind != TRACE_lost))
		return false;
	if (t->k.context != TRACE_CONTEXT_none && r->kind < TRACE_sample) {
		model_count(m, TRACE_DIAG_ids_unknown); /* no interrupt takes a mutex */
		return false;
	}
	if (m->is_system && !t->k.looked)
		model_follow_exec(m, t, r->time_ns);
	if (m->is_system && !t->k.on)
		model_seen_running(m, t, r);
	/* by pid: its first image may have done nothing that was recorded */
	if (m->part.restarts && model_pid_of(m, t) == m->run.root_pid)
		start_at_root(m, t, r->time_ns);
	return true;
}

static inline void model_apply(struct model *m, const struct trace_record *r)
{
	rule_fn *rule = r->kind < MODEL_KINDS ? rule_table[r->kind] : NULL;
	if (BASE_UNLIKELY(!rule))
		return;
	struct thread *t = r->stream < m->nr_threads ? &m->thread[r->stream] : NULL;
	if (BASE_UNLIKELY(!t || !t->seen))
		t = new_thread_of(m, r);
	if (BASE_UNLIKELY(!t))
		return;
	if (BASE_UNLIKELY(m->looks_closer || t->ended || t->k.context != TRACE_CONTEXT_none) &&
		!may_apply(m, t, r))
		return;
	t->life.end_ns = r->time_ns;
	if (BASE_UNLIKELY(t->announced.is_on) && model_is_within_announced(m, t, r))
		return;
	rule(m, t, r);
	if (BASE_UNLIKELY(m->recording_ns[r->kind] != 0))
		model_tell_recording(m, t, m->recording_ns[r->kind]);
}

/* ---- the window ------------------------------------------------------------------------------ */

/* The first moment after it. */
static void expect_end(struct model *m)
{
	uint64_t to_ns = m->opts->to_ns;
	m->part.next_bound_ns = to_ns && to_ns != UINT64_MAX ? to_ns + 1 : UINT64_MAX;
}

static void start_window(struct model *m)
{
	m->part.entered = !m->opts->from_ns;
	if (m->part.entered)
		expect_end(m);
	else
		m->part.next_bound_ns = m->opts->from_ns;
}

/* A record at or after the window's next bound is about to be applied. */
static __attribute__((noinline)) void cross_bounds(struct model *m, uint64_t time_ns)
{
	if (!m->part.entered) {
		model_keep(m, graph_restart(m->graph, m->opts->from_ns, m->err));
		model_forget_samples(m); /* counted anew */
		m->part.entered = true;
		expect_end(m);
	}
	if (m->status == BASE_OK && time_ns >= m->part.next_bound_ns) {
		model_keep(m, graph_cut(m->graph, m->opts->to_ns, m->err));
		m->part.left = m->looks_closer = true;
		m->part.next_bound_ns = UINT64_MAX;
	}
}

static enum base_status check_window(struct model *m)
{
	if (m->part.entered)
		return BASE_OK;
	return base_fail(m->err, BASE_ERR_NOTFOUND,
		"the window begins at %llu ns, but the trace's last record is at %llu ns",
		(unsigned long long)m->opts->from_ns, (unsigned long long)m->seen.last_ns);
}

/* The next in time order. */
static inline void apply_next(void *model, const struct trace_record *r)
{
	struct model *m = model;
	if (BASE_UNLIKELY(r->time_ns >= m->part.next_bound_ns))
		cross_bounds(m, r->time_ns);
	m->seen.last_ns = r->time_ns;
	model_apply(m, r);
}

/* After some of them. */
static enum base_status end_batch(struct model *m, size_t nr)
{
	if (m->status != BASE_OK)
		return base_cause(m->err, m->status,
			"while building the dependence graph, after %llu {record|records}",
			(unsigned long long)m->seen.nr_records);
	m->seen.nr_records += nr;
	return BASE_OK;
}

static enum base_status model_read_all(struct model *m, struct trace_reader *r)
{
	uint64_t all = trace_reader_record_count(r), reported = 0;
	for (;;) {
		size_t nr;
		enum base_status s = trace_reader_visit(r, apply_next, m, &nr, m->err);
		if (s == BASE_END)
			return BASE_OK;
		if (s != BASE_OK)
			return base_cause(m->err, s, "while reading the trace for its model");
		s = end_batch(m, nr);
		if (s != BASE_OK)
			return s;
		if (m->opts->progress && m->seen.nr_records - reported >= PROGRESS_EVERY) {
			reported = m->seen.nr_records;
			m->opts->progress(m->opts->progress_ctx, m->seen.nr_records, all);
		}
	}
}

/* The root process's last moment; where its thread only spoke for others, or ended before the
 * window, whichever came last. */
static uint32_t default_end(struct model *m)
{
	if (m->is_system || m->opts->process)
		return model_system_end(m);
	uint32_t thread =
		m->part.end_actor < m->made.nr_actors ? m->made.actor[m->part.end_actor].thread : 0;
	bool acts = thread < m->nr_threads &&
		    (m->thread[thread].acts || m->thread[thread].life.end_ns < m->opts->from_ns);
	return acts ? GRAPH_ANY_ACTOR : m->part.end_actor;
}

static enum base_status finish_paths(struct model *m)
{
	m->part.path_end = default_end(m);
	if (m->follow.by_connection && !m->opts->end) {
		model_end_connections(m);
		if (m->status != BASE_OK)
			return m->status;
	}
	uint32_t end = m->follow.by_connection || m->opts->end ? GRAPH_ENDS : m->part.path_end;
	return graph_finish(m->graph, end, m->err);
}

/* ---- tables as long as the definitions ------------------------------------------------------- */

static const struct object unused_object = {.queue = NONE,
	.queue2 = NONE,
	.queue3 = NONE,
	.room = NONE,
	.lock.pseudo = NONE,
	.sending.sender = NONE};

/* A pipe that the library knows is the kernel's of that inode. */
static void find_same(struct model *m, uint32_t object)
{
	const struct trace_object *def = &m->defs->objects[object];
	uint64_t first;
	if (def->type != TRACE_OBJECT_pipe || !def->address)
		return;
	if (base_map_get(&m->known.pipes, 0, def->address, &first))
		m->object[object].same_as = (uint32_t)first;
	else
		model_put(m, &m->known.pipes, 0, def->address, object);
}

static void grow_objects(struct model *m)
{
	uint32_t nr = m->defs->nr_objects, from = m->nr_objects;
	uint64_t pairs = m->nr_connections;
	for (uint32_t i = from; i < nr; i++)
		if (m->defs->objects[i].pair >= pairs)
			pairs = m->defs->objects[i].pair + 1;
	if (pairs > nr)
		pairs = nr;
	if (!model_grow(
		    m, &m->object, &m->room.object_capacity, (size_t)nr + 1, sizeof *m->object) ||
		!model_grow(m, &m->listener, &m->room.listener_capacity, (size_t)nr + 1,
			sizeof *m->listener) ||
		!model_grow(m, &m->connection, &m->room.connection_capacity, pairs + 1,
			sizeof *m->connection) ||
		(m->annotated.flight &&
			!model_grow(m, &m->annotated.flight, &m->annotated.flight_capacity,
				(size_t)nr + 1, sizeof *m->annotated.flight)))
		return;
	for (uint32_t i = from; i < nr; i++)
		m->object[i] = unused_object;
	for (uint32_t i = from; m->is_system && i < nr; i++)
		find_same(m, i);
	for (uint32_t i = m->nr_connections; i < pairs; i++)
		m->connection[i] = (struct connection){.side = {unused_object, unused_object}};
	m->nr_objects = nr;
	m->nr_connections = (uint32_t)pairs;
	model_keep(m, model_find_listeners(m));
}

static enum base_status grow_tables(struct model *m)
{
	const struct trace_defs *d = m->defs;
	uint32_t nr_threads = m->nr_threads;
	if (d->nr_streams > m->nr_threads && model_grow(m, &m->thread, &m->room.thread_capacity,
						     (size_t)d->nr_streams + 1, sizeof *m->thread))
		m->nr_threads = d->nr_streams;
	if (d->nr_objects > m->nr_objects)
		grow_objects(m);
	if (d->nr_actors > m->annotated.nr_standings &&
		model_grow(m, &m->annotated.standing, &m->annotated.standing_capacity,
			(size_t)d->nr_actors + 1, sizeof *m->annotated.standing))
		m->annotated.nr_standings = d->nr_actors;
	if (d->nr_sites > m->naming.nr_site_texts &&
		model_grow(m, &m->naming.site_text, &m->naming.site_text_capacity,
			(size_t)d->nr_sites + 1, sizeof *m->naming.site_text))
		m->naming.nr_site_texts = d->nr_sites;
	if (d->nr_inlines > m->sampled.nr_inlines)
		model_keep(m, model_index_inlined(m));
	if (m->is_system && d->nr_processes > m->kernel.nr_run_times &&
		model_grow(m, &m->kernel.run_time, &m->kernel.run_time_capacity,
			(size_t)d->nr_processes + 1, sizeof *m->kernel.run_time)) {
		m->kernel.nr_run_times = d->nr_processes;
		model_find_root(m);
	}
	if (m->run.is_merged)
		model_find_root(m);
	if (m->is_system && m->started && nr_threads < m->nr_threads)
		begin_threads(m, nr_threads, m->seen.last_ns, 0);
	m->looks_closer = m->is_system || m->part.left || m->part.restarts;
	return m->status;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

enum base_status model_new(const struct trace_defs *defs, const struct model_options *opts,
	struct model **ret, struct base_err *err)
{
	struct model *m = base_alloc(sizeof *m);
	*ret = NULL;
	if (!m)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for the model");
	m->own_opts = opts ? *opts : (struct model_options){.size = sizeof *opts};
	m->opts = &m->own_opts;
	m->err = err ? err : &m->own_err;
	m->defs = defs;
	m->sink = m->opts->sink;
	find_recording(m);
	m->follow.by_connection = m->opts->connections || m->opts->connection;
	m->is_watched = m->follow.by_connection || m->sink || m->opts->start || m->opts->end;
	m->is_system = m->opts->system;
	m->run.is_merged = m->opts->merged;
	m->run.wait_all = m->opts->wait_all;
	start_window(m);
	m->arena = base_arena_new(0);
	enum base_status s =
		m->arena ? grow_tables(m)
			 : base_fail(m->err, BASE_ERR_NOMEM, "out of memory for the model");
	struct graph_options g = {
		.size = sizeof g,
		.scenario = m->opts->scenario,
		.nr_scenarios = m->opts->nr_scenarios,
		.keep_path = m->opts->keep_path,
		.runner_up = m->opts->runner_up,
		.crossings = m->opts->crossings,
		.max_memory_bytes = m->opts->max_memory_bytes,
		.listener = m->opts->listener,
		.watch = m->opts->watch,
		.restarts = m->opts->from_ns != 0 || (m->part.restarts && !m->opts->turns),
	};
	if (s == BASE_OK)
		s = graph_new(&g, &m->graph, m->err);
	if (s != BASE_OK) {
		model_free(m);
		return s;
	}
	m->err = NULL;
	*ret = m;
	return BASE_OK;
}

enum base_status model_feed(
	struct model *m, const struct trace_record *r, size_t nr, struct base_err *err)
{
	m->err = err ? err : &m->own_err;
	enum base_status s = grow_tables(m);
	for (size_t i = 0; i < nr && s == BASE_OK; i++)
		apply_next(m, &r[i]);
	if (s == BASE_OK)
		s = end_batch(m, nr);
	m->err = NULL;
	return s;
}

enum base_status model_turn(struct model *m, uint64_t time_ns, bool start_all,
	struct graph_part **ret, struct base_err *err)
{
	*ret = NULL;
	if (m->status != BASE_OK)
		return base_fail(err, m->status, "the model failed before");
	enum base_status s = graph_turn(m->graph, time_ns, start_all, ret, err);
	if (s != BASE_OK)
		m->status = s;
	return s;
}

uint32_t model_end_actor_now(struct model *m)
{
	return m->started ? default_end(m) : GRAPH_ANY_ACTOR;
}

static enum base_status model_finish(struct model *m)
{
	if (!m->started)
		return base_fail(m->err, BASE_ERR_NOTFOUND,
			"the trace has no record of any thread: nothing to analyse");
	if (m->part.restarts)
		return base_fail(m->err, BASE_ERR_NOTFOUND,
			"the program that was started did nothing that was recorded: nothing to "
			"analyse");
	enum base_status s = check_window(m);
	if (s == BASE_OK)
		s = finish_paths(m);
	if (s != BASE_OK)
		return s;
	model_finish_threads(m);
	model_check_all(m);
	model_sort_processor_waits(m);
	s = m->status == BASE_OK ? model_make_names(m) : m->status;
	for (uint32_t q = 0; q < m->made.nr_queues; q++) {
		const struct graph_queue_stats *st = graph_queue_stats(m->graph, q);
		m->seen.health.count[TRACE_DIAG_queue_overflow] += st->overflows;
		m->seen.health.count[TRACE_DIAG_queue_underflow] += st->underflows;
	}
	return s;
}

enum base_status model_run(struct trace_reader *r, const struct model_options *opts,
	struct model **ret, struct base_err *err)
{
	struct model_options o = opts ? *opts : (struct model_options){.size = sizeof *opts};
	struct model *m = NULL;
	o.system = trace_reader_info(r)->flags & TRACE_INFO_SYSTEM;
	o.merged = trace_reader_info(r)->flags & TRACE_INFO_MERGED;
	o.wait_all = trace_reader_info(r)->flags & TRACE_INFO_WAIT_ALL;
	o.command = trace_reader_info(r)->command;
	enum base_status s = model_new(trace_reader_defs(r), &o, &m, err);
	if (s != BASE_OK || !m)
		return s;
	m->err = err ? err : &m->own_err;
	s = model_read_all(m, r);
	if (s == BASE_OK)
		s = model_finish(m);
	const struct trace_health *read = trace_reader_health(r);
	if (s != BASE_OK && read->readable_bytes < read->file_bytes)
		s = base_cause(m->err, s,
			"the file is cut or damaged: %llu of its %llu {byte|bytes} could be read",
			(unsigned long long)read->readable_bytes,
			(unsigned long long)read->file_bytes);
	m->err = NULL;
	if (s != BASE_OK) {
		model_free(m);
		return s;
	}
	for (unsigned d = 0; d < TRACE_DIAG_NR; d++)
		m->seen.health.count[d] += read->count[d];
	/* the trace's writer has counted them all, if it came to its end */
	if (m->seen.health.count[TRACE_DIAG_records_lost] < m->seen.nr_lost)
		m->seen.health.count[TRACE_DIAG_records_lost] = m->seen.nr_lost;
	m->seen.health.readable_bytes = read->readable_bytes;
	m->seen.health.file_bytes = read->file_bytes;
	*ret = m;
	return BASE_OK;
}

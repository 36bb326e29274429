/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - threads' slices, straight from the records: a begin and its end. */
#include "format/private.h"
#include "trace/enums.h"

#include <string.h>

enum { HELD_MAX = 64, MACHINES_MAX = 16, DURATION_CLASSES = 64 };

struct view { /* what a thread is seen doing */
	enum format_slice_kind kind;
	uint32_t object, detail, site, stack;
};
struct seen {                       /* a thread */
	struct view doing;          /* none: see the next ones */
	enum format_slice_kind off; /* runnable or blocked while it has no processor */
	struct view held[HELD_MAX];
	unsigned nr_held;
	uint32_t machine_state[MACHINES_MAX];
	unsigned nr_machines;
	struct view shown;
	uint64_t shown_since_ns;
	bool wanted, decided;
};
struct timeline {
	const struct format_options *opts;
	struct format_threads threads;
	struct seen *seen; /* by stream */
	uint32_t nr_streams;
	format_slice_fn *visit;
	void *ctx;
	struct base_err *err;
};

/* ---- names ----------------------------------------------------------------------------------- */

static void add_object(struct base_str *out, const struct trace_defs *d, uint32_t object)
{
	const struct trace_object *o = &d->objects[object && object < d->nr_objects ? object : 0];
	if (!d->nr_objects || !object || object >= d->nr_objects) {
		base_str_add(out, "?");
		return;
	}
	base_str_add(out, trace_object_type_text(o->type));
	if (o->name) {
		base_str_add(out, " ");
		format_clean_add(out, trace_text_of(d, o->name));
	} else {
		base_str_addf(out, " 0x%llx", (unsigned long long)o->address);
	}
}

static void timeline_add_wait(
	struct base_str *out, const struct trace_defs *d, const struct format_slice *s)
{
	base_str_add(out, "wait: ");
	if (s->detail == FORMAT_WAIT_join) {
		base_str_add(out, "a thread's end");
	} else if (s->detail == FORMAT_WAIT_child) {
		base_str_add(out, "a child process");
	} else {
		if (s->detail == FORMAT_WAIT_space)
			base_str_add(out, "space in ");
		add_object(out, d, s->object);
	}
}

void format_slice_label(
	struct base_str *out, const struct trace_defs *d, const struct format_slice *s)
{
	static const char *const op[] = {
#define X(name, t) t,
		TRACE_IO_OPS(X)
#undef X
	};
	switch (s->kind) {
	case FORMAT_SLICE_wait:
		timeline_add_wait(out, d, s);
		break;
	case FORMAT_SLICE_io:
		base_str_addf(out, "%s%s", s->detail < TRACE_IO_NR ? op[s->detail] : "call",
			s->object ? ": " : "");
		if (s->object)
			add_object(out, d, s->object);
		break;
	case FORMAT_SLICE_hold:
		base_str_add(out, "holds ");
		add_object(out, d, s->object);
		break;
	case FORMAT_SLICE_state:
		base_str_add(out, "state ");
		format_clean_add(out, s->detail && s->detail < d->nr_states
					      ? trace_text_of(d, d->states[s->detail].name)
					      : "begun");
		break;
	case FORMAT_SLICE_poll:
		base_str_add(out, "wait: readiness");
		break;
	case FORMAT_SLICE_sleep:
		base_str_add(out, "sleep");
		break;
	case FORMAT_SLICE_runnable:
		base_str_add(out, "wait: a processor");
		break;
	case FORMAT_SLICE_blocked:
		base_str_add(out, "blocked, not seen in what");
		break;
	default:
		base_str_add(out, "runs");
	}
}

const char *format_slice_kind_name(enum format_slice_kind k)
{
	static const char *const name[] = {[FORMAT_SLICE_none] = "run",
		[FORMAT_SLICE_wait] = "wait",
		[FORMAT_SLICE_io] = "io",
		[FORMAT_SLICE_poll] = "poll",
		[FORMAT_SLICE_sleep] = "sleep",
		[FORMAT_SLICE_runnable] = "runnable",
		[FORMAT_SLICE_blocked] = "blocked",
		[FORMAT_SLICE_hold] = "hold",
		[FORMAT_SLICE_state] = "state"};
	return k < BASE_COUNT(name) ? name[k] : "?";
}

enum base_status format_threads_init(
	struct format_threads *t, const struct format_input *in, struct base_err *err)
{
	uint32_t nr = graph_nr_actors(model_graph(in->model));
	*t = (struct format_threads){.in = in};
	for (uint32_t i = 0; i < nr; i++) {
		const struct model_actor *a = model_actor(in->model, i);
		enum base_status s = base_map_put(&t->actor_of, a->pid, a->tid, i);
		if (s != BASE_OK) {
			format_threads_fini(t);
			return base_fail(err, s, "out of memory for %u {thread|threads}", nr);
		}
	}
	return BASE_OK;
}

void format_threads_fini(struct format_threads *t)
{
	base_map_fini(&t->actor_of);
}

void format_thread_name(struct base_str *out, const struct format_threads *t, uint32_t stream)
{
	const struct trace_defs *d = trace_reader_defs(t->in->reader);
	if (!stream || stream >= d->nr_streams)
		return;
	const struct trace_stream *s = &d->streams[stream];
	const struct trace_process *p =
		&d->processes[s->process < d->nr_processes ? s->process : 0];
	const char *process = d->nr_processes ? trace_text_of(d, p->name) : "";
	const char *own = trace_text_of(d, s->name);
	uint64_t actor;
	if (*own && strcmp(own, process) != 0) {
		format_clean_add(out, process);
		base_str_add(out, "/");
		format_clean_add(out, own);
	} else if (d->nr_processes && base_map_get(&t->actor_of, p->pid, s->tid, &actor)) {
		format_clean_add(out, model_actor(t->in->model, (uint32_t)actor)->group);
	} else {
		format_clean_add(out, process);
	}
	base_str_addf(out, " %llu", (unsigned long long)s->tid);
}

/* ---- slices ---------------------------------------------------------------------------------- */

static struct view visible(const struct seen *t)
{
	if (t->doing.kind != FORMAT_SLICE_none)
		return t->doing;
	if (t->off != FORMAT_SLICE_none)
		return (struct view){.kind = t->off};
	if (t->nr_held)
		return t->held[t->nr_held - 1];
	if (t->nr_machines && t->machine_state[t->nr_machines - 1])
		return (struct view){
			.kind = FORMAT_SLICE_state, .detail = t->machine_state[t->nr_machines - 1]};
	return (struct view){0};
}

static bool same(const struct view *a, const struct view *b)
{
	return a->kind == b->kind && a->object == b->object && a->detail == b->detail &&
	       a->site == b->site;
}

static bool timeline_is_wanted(struct timeline *w, struct seen *t, uint32_t stream)
{
	if (!t->decided) {
		struct base_str name = {0};
		format_thread_name(&name, &w->threads, stream);
		t->decided = true;
		t->wanted = !w->opts->thread || strstr(base_str_text(&name), w->opts->thread);
		base_str_fini(&name);
	}
	return t->wanted;
}

static enum base_status end_slice(struct timeline *w, uint32_t stream, uint64_t time_ns)
{
	struct seen *t = &w->seen[stream];
	struct format_slice s = {
		.begin_ns = t->shown_since_ns,
		.end_ns = time_ns,
		.stream = stream,
		.kind = t->shown.kind,
		.object = t->shown.object,
		.detail = t->shown.detail,
		.site = t->shown.site,
		.stack = t->shown.stack,
	};
	const struct format_options *o = w->opts;
	if (s.kind == FORMAT_SLICE_none || s.end_ns <= s.begin_ns ||
		s.end_ns - s.begin_ns < o->min_duration_ns || s.end_ns <= o->from_ns ||
		(o->to_ns && s.begin_ns >= o->to_ns) || !timeline_is_wanted(w, t, stream))
		return BASE_OK;
	return w->visit(w->ctx, &s, w->err);
}

static enum base_status timeline_show(struct timeline *w, uint32_t stream, uint64_t time_ns)
{
	struct seen *t = &w->seen[stream];
	struct view now = visible(t);
	if (same(&now, &t->shown))
		return BASE_OK;
	enum base_status s = end_slice(w, stream, time_ns);
	t->shown = now;
	t->shown_since_ns = time_ns;
	return s;
}

/* ---- records -> views ------------------------------------------------------------------------ */

static void timeline_hold(struct seen *t, uint32_t object, uint32_t site)
{
	t->doing = (struct view){0};
	if (t->nr_held < HELD_MAX)
		t->held[t->nr_held++] =
			(struct view){.kind = FORMAT_SLICE_hold, .object = object, .site = site};
}

static void timeline_release(struct seen *t, uint32_t object)
{
	for (unsigned i = t->nr_held; i-- > 0;) {
		if (t->held[i].object != object)
			continue;
		memmove(&t->held[i], &t->held[i + 1], (t->nr_held - i - 1) * sizeof t->held[0]);
		t->nr_held--;
		return;
	}
}

static struct view timeline_waits(uint32_t object, uint32_t detail, uint32_t site, uint32_t stack)
{
	return (struct view){.kind = FORMAT_SLICE_wait,
		.object = object,
		.detail = detail,
		.site = site,
		.stack = stack};
}

/* The stack of a call that lasted comes with its end. */
static void timeline_done(struct seen *t, uint32_t stack)
{
	if (stack && same(&t->doing, &t->shown))
		t->shown.stack = stack;
	t->doing = (struct view){0};
}

static void apply_lock(struct seen *t, const struct trace_record *r)
{
	switch (r->kind) {
	case TRACE_lock_wait:
	case TRACE_shared_wait: /* same fields */
		t->doing = timeline_waits(r->u.lock_wait.object, FORMAT_WAIT_object,
			r->u.lock_wait.site, r->u.lock_wait.stack);
		break;
	case TRACE_lock_acquire:
	case TRACE_shared_acquire:
		timeline_hold(t, r->u.lock_acquire.object, r->u.lock_acquire.site);
		break;
	case TRACE_lock_release:
	case TRACE_shared_release:
		timeline_release(t, r->u.lock_release.object);
		break;
	case TRACE_cond_wait:
		timeline_release(t, r->u.cond_wait.mutex);
		t->doing = timeline_waits(r->u.cond_wait.object, FORMAT_WAIT_object,
			r->u.cond_wait.site, r->u.cond_wait.stack);
		break;
	case TRACE_cond_wake:
		if (r->u.cond_wake.mutex)
			timeline_hold(t, r->u.cond_wake.mutex, r->u.cond_wake.site);
		else
			timeline_done(t, 0);
		break;
	case TRACE_barrier_arrive:
		t->doing = timeline_waits(r->u.barrier_arrive.object, FORMAT_WAIT_object,
			r->u.barrier_arrive.site, r->u.barrier_arrive.stack);
		break;
	case TRACE_token_wait:
		t->doing = timeline_waits(r->u.token_wait.object, FORMAT_WAIT_object,
			r->u.token_wait.site, r->u.token_wait.stack);
		break;
	case TRACE_message_wait:
		t->doing = timeline_waits(r->u.message_wait.object, FORMAT_WAIT_object,
			r->u.message_wait.site, r->u.message_wait.stack);
		break;
	default: /* lock_fail, barrier_leave, token_take, message_sent, message_received */
		timeline_done(t, 0);
	}
}

static void apply_call(struct seen *t, const struct trace_record *r)
{
	switch (r->kind) {
	case TRACE_io_begin:
		t->doing = (struct view){.kind = FORMAT_SLICE_io,
			.object = r->u.io_begin.object,
			.detail = (uint32_t)r->u.io_begin.op,
			.site = r->u.io_begin.site};
		break;
	case TRACE_io_end:
		timeline_done(t, r->u.io_end.stack);
		break;
	case TRACE_poll_begin:
		t->doing = (struct view){.kind = FORMAT_SLICE_poll, .site = r->u.poll_begin.site};
		break;
	case TRACE_poll_end:
		timeline_done(t, r->u.poll_end.stack);
		break;
	case TRACE_sleep_begin:
		t->doing = (struct view){.kind = FORMAT_SLICE_sleep, .site = r->u.sleep_begin.site};
		break;
	case TRACE_sleep_until:
		t->doing = (struct view){.kind = FORMAT_SLICE_sleep, .site = r->u.sleep_until.site};
		break;
	case TRACE_child_wait:
		t->doing = timeline_waits(
			0, FORMAT_WAIT_child, r->u.child_wait.site, r->u.child_wait.stack);
		break;
	case TRACE_join_wait:
		t->doing = timeline_waits(
			0, FORMAT_WAIT_join, r->u.join_wait.site, r->u.join_wait.stack);
		break;
	default: /* sleep_end, child_waited, join_done */
		timeline_done(t, 0);
	}
}

static void apply_note(struct seen *t, const struct trace_record *r)
{
	switch (r->kind) {
	case TRACE_note_begin:
		if (t->nr_machines < MACHINES_MAX)
			t->machine_state[t->nr_machines++] = 0;
		break;
	case TRACE_note_end:
		t->nr_machines -= t->nr_machines > 0;
		break;
	case TRACE_note_state:
		if (t->nr_machines)
			t->machine_state[t->nr_machines - 1] = r->u.note_state.state;
		timeline_done(t, 0);
		break;
	case TRACE_note_wait_empty:
		t->doing = timeline_waits(r->u.note_wait_empty.object, FORMAT_WAIT_object,
			r->u.note_wait_empty.site, 0);
		break;
	case TRACE_note_wait_full:
		t->doing = timeline_waits(
			r->u.note_wait_full.object, FORMAT_WAIT_space, r->u.note_wait_full.site, 0);
		break;
	case TRACE_note_dequeue:
	case TRACE_note_peek:
	case TRACE_note_enqueue:
	case TRACE_note_reserve:
		timeline_done(t, 0);
		break;
	default:
		break;
	}
}

static void apply_cpu(struct seen *t, const struct trace_record *r)
{
	if (r->kind == TRACE_cpu_in)
		t->off = FORMAT_SLICE_none;
	else
		t->off = r->u.cpu_out.preempted & 1 ? FORMAT_SLICE_runnable : FORMAT_SLICE_blocked;
}

static void timeline_apply(struct seen *t, const struct trace_record *r)
{
	switch (r->kind) {
	case TRACE_lock_wait ... TRACE_token_take:
		if (r->kind != TRACE_cond_signal && r->kind != TRACE_cond_broadcast &&
			r->kind != TRACE_token_set && r->kind != TRACE_token_give)
			apply_lock(t, r);
		break;
	case TRACE_message_sent:
	case TRACE_message_wait:
	case TRACE_message_received:
		apply_lock(t, r);
		break;
	case TRACE_io_begin ... TRACE_sleep_end:
	case TRACE_child_wait:
	case TRACE_child_waited:
	case TRACE_join_wait:
	case TRACE_join_done:
		apply_call(t, r);
		break;
	case TRACE_note_begin ... TRACE_note_identify:
		apply_note(t, r);
		break;
	case TRACE_cpu_out:
	case TRACE_cpu_in:
		apply_cpu(t, r);
		break;
	case TRACE_thread_end:
	case TRACE_process_end:
	case TRACE_process_exec:
		t->doing = (struct view){0};
		t->nr_held = t->nr_machines = 0;
		t->off = FORMAT_SLICE_none;
		break;
	default:
		break;
	}
}

/* A name that fits no thread is a mistake, and no empty file. */
static enum base_status timeline_check_thread(const struct timeline *w)
{
	bool is_wanted = false, is_decided = false;
	for (uint32_t i = 1; i < w->nr_streams; i++) {
		is_decided |= w->seen[i].decided;
		is_wanted |= w->seen[i].wanted;
	}
	return is_decided && !is_wanted
		       ? base_fail(w->err, BASE_ERR_USAGE,
				 "--thread=%s: no thread has that in its name (longpole actors "
				 "lists them)",
				 w->opts->thread)
		       : BASE_OK;
}

enum base_status format_timeline(const struct format_input *in, const struct format_options *opts,
	format_slice_fn *visit, void *ctx, struct base_err *err)
{
	const struct trace_defs *defs = trace_reader_defs(in->reader);
	struct timeline w = {.opts = opts,
		.nr_streams = defs->nr_streams,
		.visit = visit,
		.ctx = ctx,
		.err = err};
	w.seen = base_alloc(((size_t)w.nr_streams + 1) * sizeof *w.seen);
	enum base_status s =
		w.seen ? format_threads_init(&w.threads, in, err) : format_no_memory(err);
	if (s == BASE_OK)
		s = trace_reader_rewind(in->reader, err);
	uint64_t last_ns = 0;
	while (s == BASE_OK) {
		struct trace_batch b;
		s = trace_reader_next(in->reader, &b, err);
		for (size_t i = 0; s == BASE_OK && i < b.nr; i++) {
			const struct trace_record *r = &b.record[i];
			last_ns = r->time_ns;
			if (!r->stream || r->stream >= w.nr_streams)
				continue;
			timeline_apply(&w.seen[r->stream], r);
			s = timeline_show(&w, r->stream, r->time_ns);
		}
	}
	if (s == BASE_END)
		s = BASE_OK;
	for (uint32_t i = 1; s == BASE_OK && i < w.nr_streams; i++)
		s = end_slice(&w, i, last_ns);
	if (s == BASE_OK)
		s = timeline_check_thread(&w);
	base_free(w.seen);
	format_threads_fini(&w.threads);
	return s;
}

/* ---- the guard ------------------------------------------------------------------------------- */

struct count {
	uint64_t by_duration[DURATION_CLASSES]; /* class = number of bits */
	uint64_t nr;
};

static enum base_status count_slice(void *ctx, const struct format_slice *s, struct base_err *err)
{
	struct count *c = ctx;
	(void)err;
	c->nr++;
	c->by_duration[63 - __builtin_clzll(s->end_ns - s->begin_ns)]++;
	return BASE_OK;
}

enum base_status format_guard(const struct format_input *in, const struct format_options *opts,
	const char *format, uint64_t max_events, struct base_err *err)
{
	struct count c = {0};
	if (trace_reader_record_count(in->reader) <= max_events)
		return BASE_OK; /* a slice needs a record */
	enum base_status s = format_timeline(in, opts, count_slice, &c, err);
	if (s != BASE_OK || c.nr <= max_events)
		return s;
	uint64_t rest = c.nr;
	unsigned class_ix = 0;
	while (class_ix < DURATION_CLASSES - 1 && rest > max_events)
		rest -= c.by_duration[class_ix++];
	struct base_str most = {0}, all = {0};
	base_str_add_count(&all, c.nr);
	base_str_add_count(&most, max_events);
	s = base_fail(err, BASE_ERR_LIMIT,
		"%s {event is|events are} more than the %s that %s viewers take well; add "
		"--min-duration=%lluns, "
		"or a window (--from=1s --to=2s), or --max-events=%llu",
		base_str_text(&all), base_str_text(&most), format, 1ull << class_ix,
		(unsigned long long)c.nr);
	base_str_fini(&most);
	base_str_fini(&all);
	return s;
}

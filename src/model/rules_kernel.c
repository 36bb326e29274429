/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_kernel.c - the whole system's switches and wakes. A thread that leaves its processor
 * without being preempted waits; it goes on when somebody wakes it, and then for a processor. What
 * it waited for is known when it ends: a thread's wake is a unit in the woken one's queue; that of
 * an interrupt with a known cause, too; of any other interrupt the kind names the wait, which stays
 * the thread's own. Nobody who was merely interrupted has anything to do with it.
 */
#include "model/model_private.h"

#include <stdlib.h>
#include <string.h>

enum {
	QUOTA_NS = 1000 * 1000, /* no processor for so long although nobody had it */
	WAKERS_MAX = 1 << 10,
	STACK_MAX = 16, /* frames looked at */
};

/* ---- names of waits -------------------------------------------------------------------------- */

static uint32_t rules_kernel_add_waker(struct model *m, struct waker waker)
{
	for (uint32_t i = 0; i < m->kernel.nr_wakers; i++)
		if (m->kernel.waker[i].type == waker.type &&
			m->kernel.waker[i].name == waker.name &&
			m->kernel.waker[i].timed == waker.timed)
			return i + 1;
	if (m->kernel.nr_wakers >= WAKERS_MAX)
		return 0;
	enum base_status s = base_grow(&m->kernel.waker, &m->kernel.waker_capacity,
		m->kernel.nr_wakers + 1, sizeof *m->kernel.waker);
	if (s != BASE_OK) {
		m->status = base_fail(m->err, s, "out of memory for interrupts");
		return 0;
	}
	m->kernel.waker[m->kernel.nr_wakers++] = waker;
	return (uint32_t)m->kernel.nr_wakers;
}

static uint32_t context_as_waker(struct model *m, const struct thread *context)
{
	return rules_kernel_add_waker(
		m, (struct waker){.type = context->k.context,
			   .name = trace_def_context(m->defs, context->stream)->name});
}

static uint32_t name_of_program(const struct model *m, const struct thread *t)
{
	return t->role < m->made.nr_roles ? m->made.role[t->role].process_name : 0;
}

/* A kernel thread that serves nobody who is known: its role takes a context's place. */
static uint32_t worker_as_waker(struct model *m, const struct thread *worker)
{
	return rules_kernel_add_waker(m, (struct waker){.name = name_of_program(m, worker)});
}

static enum model_cause cause_of_waker(const struct model *m, uint32_t waker)
{
	const struct waker *w = waker ? &m->kernel.waker[waker - 1] : NULL;
	const char *name = w ? trace_text_of(m->defs, w->name) : "";
	if (!w)
		return MODEL_CAUSE_call_wait;
	if (w->type == TRACE_CONTEXT_timer || !strcmp(name, "TIMER") || !strcmp(name, "HRTIMER"))
		return MODEL_CAUSE_call_sleep;
	if (w->type == TRACE_CONTEXT_irq || !strncmp(name, "NET_", 4))
		return MODEL_CAUSE_call_outside;
	return MODEL_CAUSE_call_wait;
}

/* The state of a wait in the thread's present call, or outside of any that is known; `waker` 0: not
 * known. */
static uint32_t rules_kernel_wait_state(
	struct model *m, const struct thread *t, enum model_cause cause, uint32_t waker)
{
	const struct call *c = &t->k.call;
	uint32_t call = c->active ? (uint32_t)c->number + 1 : 0;
	bool about = c->active && c->object && c->object < m->nr_objects;
	if (!call && !waker)
		cause = cause == MODEL_CAUSE_call_blocked ? MODEL_CAUSE_asleep_unseen
							  : MODEL_CAUSE_asleep;
	return model_make_state(m, cause, NONE, about ? model_class_of(m, c->object, 0) : NONE,
		t->k.asleep_site, model_call_detail(call, waker));
}

/* ---- the processor --------------------------------------------------------------------------- */

void model_be_ready(struct model *m, struct thread *t, uint64_t time_ns, uint32_t flags)
{
	uint32_t queue = model_processor_queue(m, t->k.processor);
	if (queue == NONE)
		return;
	model_verb(m, t, GRAPH_VERB_wait_empty, time_ns, queue, 1, model_runnable_state(m), flags);
	t->mode = MODE_RUNNABLE;
	t->cpu.ready_ns = time_ns;
}

/* ---- waking ---------------------------------------------------------------------------------- */

uint32_t model_wake_queue(struct model *m, struct thread *t)
{
	if (t->k.wake_queue == NONE) {
		t->k.wake_queue = model_make_queue(m, 0, 0, MODEL_TYPE_WAKE, NONE, GRAPH_FIFO);
		if (t->k.wake_queue < m->made.nr_queues) {
			m->made.queue[t->k.wake_queue].wakes = t->stream + 1;
			m->made.queue[t->k.wake_queue].pub.part = MODEL_QUEUE_wake;
		}
	}
	return t->k.wake_queue;
}

/* What it was before it was first seen has nothing to do with what makes it go on. */
static void forget_idle(struct model *m, struct thread *t, uint64_t time_ns)
{
	if (!t->nr_machines)
		model_verb_of(m, t->actor, GRAPH_VERB_forget, time_ns, 0, 0, t->graph_state, 0);
}

/*
 * It has slept for a lock of the kernel's, and another program let go of it. That one had it by
 * chance, as it might have had the processor: to follow it would lose the path in a program that
 * has nothing to do with this one. So the wait stays the thread's, and says who had the lock.
 */
static bool is_strangers_lock(
	const struct model *m, const struct thread *waker, const struct thread *t)
{
	const char *name = trace_text_of(m->defs, m->made.role[t->role].process_name);
	return t->k.lock && t->mode == MODE_BLOCKED && !model_is_context(waker) &&
	       t->process != waker->process &&
	       strcmp(name, trace_text_of(m->defs, m->made.role[waker->role].process_name)) != 0;
}

/*
 * A timer has just woken the waker, which has done next to nothing since; and `t` came to wait for
 * it only then. It met it by chance (a log writer that looks every 200 ms, and has the log's lock):
 * to follow it would explain a moment's wait by all the sleep before. A thread that came while it
 * slept waits for the timer, too.
 */
static bool is_met_by_chance(const struct thread *waker, const struct thread *t, uint64_t time_ns)
{
	return t->mode == MODE_BLOCKED && !model_is_context(waker) &&
	       t->k.asleep_ns > waker->k.timer_ns &&
	       model_is_next_to_nothing(time_ns - waker->k.timer_ns, waker->k.timed_ns);
}

/* The name of the wait that stays the thread's own, although another thread ended it; else NONE. */
static uint32_t own_wait(
	struct model *m, const struct thread *waker, const struct thread *t, uint64_t time_ns)
{
	if (!model_is_credited(waker) || t->k.anybodys)
		return NONE;
	if (is_strangers_lock(m, waker, t))
		return model_make_state(m, MODEL_CAUSE_wait_kernel_lock, waker->role,
			model_class_of(m, t->k.lock, 0), 0, 0);
	if (is_met_by_chance(waker, t, time_ns))
		return rules_kernel_wait_state(m, t, MODEL_CAUSE_call_wait,
			rules_kernel_add_waker(m,
				(struct waker){.name = name_of_program(m, waker), .timed = true}));
	return NONE;
}

static void a_timer_woke(struct thread *t, uint64_t time_ns)
{
	t->k.timer_ns = time_ns;
	t->k.timed_ns = time_ns - t->k.asleep_ns;
}

/* The wait is over: because of the waker, or because of something of the waker's kind. */
static void rules_kernel_end_wait(
	struct model *m, struct thread *waker, struct thread *t, uint64_t time_ns)
{
	bool credited = model_is_credited(waker) && !t->k.anybodys;
	uint32_t own = own_wait(m, waker, t, time_ns);
	t->k.timed_ns = credited ? 0 : t->k.timed_ns;
	if (own != NONE) {
		model_rename(m, t, time_ns, own);
		model_be_ready(m, t, time_ns, GRAPH_EXPLAINED);
		return;
	}
	if (credited &&
		model_call_ready(m, t, t->k.asleep_on)) { /* and the thread that saw to it is the
							     cause */
		model_call_goes_on(m, t, time_ns, model_runnable_state(m));
		model_be_ready(m, t, time_ns, 0);
		return;
	}
	if (credited) {
		if (t->k.unborn && !model_is_context(waker))
			forget_idle(m, t, time_ns);
		model_verb(m, t, GRAPH_VERB_dequeue, time_ns, t->k.wake_queue, GRAPH_ALL,
			model_runnable_state(m), GRAPH_LAST);
		t->k.credited = t->k.server;
		model_be_ready(m, t, time_ns, 0);
		return;
	}
	if (model_clock_rings(m, t, time_ns, model_runnable_state(m))) {
		a_timer_woke(t, time_ns);
		model_be_ready(m, t, time_ns, 0);
		return;
	}
	uint32_t by = t->k.anybodys     ? worker_as_waker(m, t)
		      : waker->k.server ? worker_as_waker(m, waker)
					: context_as_waker(m, waker);
	enum model_cause cause = cause_of_waker(m, by);
	if (waker->k.fired_site)
		t->k.asleep_site = waker->k.fired_site;
	if (cause == MODEL_CAUSE_call_sleep)
		a_timer_woke(t, time_ns);
	if (!t->k.unborn)
		model_rename(m, t, time_ns, rules_kernel_wait_state(m, t, cause, by));
	model_be_ready(m, t, time_ns, GRAPH_EXPLAINED);
}

/* A token, instead of any older one. A thread that does it while it waits, as far as its other
 * records say, goes on waiting. */
static void give_wake(struct model *m, struct thread *waker, uint32_t queue, uint64_t time_ns)
{
	uint32_t actor = model_acting(waker), state = model_busy_state(waker);
	bool aside = !model_may_act(m, waker, time_ns);
	if (graph_queue_units(m->graph, queue))
		model_verb_of(m, actor, GRAPH_VERB_dequeue, time_ns, queue, GRAPH_ALL, state,
			GRAPH_BACK | GRAPH_ASIDE);
	model_verb_of(
		m, actor, GRAPH_VERB_enqueue, time_ns, queue, 1, state, aside ? GRAPH_ASIDE : 0);
}

/* `t` waits no more, because `waker` (thread or context) says so. */
static void rules_kernel_wake(
	struct model *m, struct thread *waker, struct thread *t, uint64_t time_ns)
{
	model_call_passes(m, waker, time_ns);
	model_take_raise(m, waker, time_ns);
	if (model_is_credited(waker) && !t->k.anybodys && own_wait(m, waker, t, time_ns) == NONE)
		give_wake(m, waker, model_wake_queue(m, t), time_ns);
	switch (t->mode) {
	case MODE_BLOCKED:
		rules_kernel_end_wait(m, waker, t, time_ns);
		if (t->k.unborn)
			model_born(m, t, time_ns);
		return;
	case MODE_WAITING:
		model_known_woken(m, waker, t, time_ns);
		return;
	case MODE_RUNNABLE:
		if (!t->k.early || t->k.asleep_state == NONE) /* ready already */
			return;
		/* the waking before its sleep was for nothing: this one ended it */
		model_rename(m, t, time_ns, t->k.asleep_state);
		rules_kernel_end_wait(m, waker, t, time_ns);
		return;
	case MODE_RUNNING: /* perhaps on its way to sleep */
		t->k.early = true;
		return;
	}
}

/* Records name the stream that was known when they were written: between an exec and the first
 * thing that the new image says, the old one. */
static struct thread *goes_on_as(struct model *m, struct thread *t)
{
	uint64_t tid = trace_def_stream(m->defs, t->stream)->tid, stream;
	if (!t->k.gone ||
		!base_map_get(&m->known.by_tid, model_host_of(m, t->stream), tid, &stream) ||
		stream >= m->nr_threads || m->thread[stream].k.gone)
		return t;
	return &m->thread[stream];
}

void model_rule_wake(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t stream = r->u.wake.woken;
	if (!m->is_system)
		return;
	if (!stream || stream >= m->nr_threads) {
		model_count(m, TRACE_DIAG_ids_unknown);
		return;
	}
	struct thread *woken = goes_on_as(m, &m->thread[stream]);
	if (woken == t || model_is_context(woken))
		return;
	rules_kernel_wake(m, t, woken, r->time_ns);
}

/* Of a process; all that are not defined together. */
struct run_time *model_run_time(struct model *m, uint32_t process)
{
	return process < m->kernel.nr_run_times ? &m->kernel.run_time[process]
						: &m->kernel.undefined;
}

static struct run_time *run_time_of(struct model *m, const struct thread *t)
{
	return model_run_time(m, t->process);
}

/* ---- on and off ------------------------------------------------------------------------------ */

/* In a call of the library's that may sleep: its name for the wait is the better one. */
static bool names_itself(const struct model *m, const struct thread *t)
{
	enum model_state_kind kind = t->graph_state < m->made.nr_states
					     ? m->made.state[t->graph_state].pub.kind
					     : MODEL_STATE_run;
	enum model_cause cause = t->graph_state < m->made.nr_states
					 ? m->made.state[t->graph_state].pub.cause
					 : MODEL_CAUSE_run;
	bool ours = cause == MODEL_CAUSE_call || cause == MODEL_CAUSE_call_sleep ||
		    cause == MODEL_CAUSE_call_outside || cause == MODEL_CAUSE_kernel_lock;
	return (!ours || t->k.lock) &&
	       (kind == MODEL_STATE_io || kind == MODEL_STATE_sleep ||
		       kind == MODEL_STATE_external || kind == MODEL_STATE_start);
}

static void fall_asleep(struct model *m, struct thread *t, uint64_t time_ns)
{
	model_visit_leaves(t, time_ns);
	t->resume_state = t->graph_state;
	uint32_t state = names_itself(m, t)
				 ? t->graph_state
				 : rules_kernel_wait_state(m, t, MODEL_CAUSE_call_wait, 0);
	bool early = t->k.early;
	run_time_of(m, t)->nr_blocks += !t->k.guessed;
	t->k.asleep_state = state;
	t->k.asleep_ns = time_ns;
	t->k.asleep_on = model_call_wait(m, t, time_ns);
	if (t->k.server && !t->nr_machines) {
		model_verb(m, t, GRAPH_VERB_forget, time_ns, 0, 0, state, 0);
		t->k.credited = false;
	} else {
		model_verb(m, t, t->k.asleep_on, time_ns,
			t->k.asleep_on == GRAPH_VERB_wait ? 0 : t->k.call.queue, 1, state, 0);
	}
	t->mode = MODE_BLOCKED;
	if (early) /* somebody was quicker than it */
		model_be_ready(m, t, time_ns, 0);
}

void model_kernel_out(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint64_t number = r->u.cpu_out.processor;
	bool preempted = r->u.cpu_out.preempted == TRACE_LEFT_runnable ||
			 r->u.cpu_out.preempted == TRACE_LEFT_throttled;
	if (model_is_context(t))
		return;
	if (t->k.on && t->cpu.begin_run_ns < r->time_ns)
		run_time_of(m, t)->run_ns += r->time_ns - t->cpu.begin_run_ns;
	t->k.guessed = r->u.cpu_out.preempted == TRACE_LEFT_unseen;
	if (t->k.guessed && t->k.on)
		model_hidden_run(m, t->cpu.begin_run_ns, r->time_ns);
	model_processor_out(m, t, number, r->time_ns, preempted);
	t->k.on = false;
	t->k.processor = number < MODEL_PROCESSORS_MAX ? (uint32_t)number : 0;
	if (t->mode == MODE_BLOCKED || t->mode == MODE_RUNNABLE) { /* its coming was not seen */
		model_verb(
			m, t, GRAPH_VERB_state, r->time_ns, 0, 0, t->resume_state, GRAPH_EXPLAINED);
		if (t->k.unborn)
			model_born(m, t, r->time_ns);
	}
	if (t->mode == MODE_WAITING)
		model_known_leaves(m, t, r->time_ns, preempted);
	if (t->mode != MODE_RUNNING)
		return;
	if (!preempted) {
		fall_asleep(m, t, r->time_ns);
		return;
	}
	model_visit_leaves(t, r->time_ns);
	t->resume_state = t->graph_state;
	t->k.early = false;
	t->k.throttled = r->u.cpu_out.preempted == TRACE_LEFT_throttled;
	model_be_ready(m, t, r->time_ns, 0);
}

/* A cgroup of its own may have one; how large, nobody recorded. NONE: it has none. */
static uint32_t quota_of(const struct model *m, const struct thread *t)
{
	uint32_t cgroup = model_cgroup(m, t->process);
	const char *path = trace_text_of(m->defs, cgroup);
	if (!*path || !strcmp(path, "/"))
		return NONE;
	return cgroup;
}

/* Why it had to wait, now that it is known where it runs. */
static uint32_t processor_wait(
	struct model *m, const struct thread *t, uint64_t number, uint64_t now)
{
	if (t->k.throttled)
		return model_make_state(m, MODEL_CAUSE_processor_throttled, NONE, NONE, 0,
			model_cgroup(m, t->process));
	struct model_had had = model_had_processor(m, t, number, t->cpu.ready_ns, now);
	if (t->k.processor != number) {
		struct model_had before =
			model_had_processor(m, t, t->k.processor, t->cpu.ready_ns, now);
		if (before.had_ns > had.had_ns) /* it waited there, and was taken away */
			had = before;
	}
	uint64_t idle_ns = had.known_ns > had.had_ns ? had.known_ns - had.had_ns : 0;
	if (had.role != NONE && had.had_ns >= idle_ns)
		return model_make_state(m, MODEL_CAUSE_processor_had, had.role, NONE, 0, 0);
	if (idle_ns < QUOTA_NS)
		return model_make_state(m, MODEL_CAUSE_processor_idle, NONE, NONE, 0, 0);
	uint32_t quota = quota_of(m, t);
	return quota == NONE
		       ? model_make_state(m, MODEL_CAUSE_processor_stolen, NONE, NONE, 0, 0)
		       : model_make_state(m, MODEL_CAUSE_processor_quota, NONE, NONE, 0, quota);
}

/* It runs again, there: so what it waited for has come, and so has a processor. */
static void rules_kernel_go_on(struct model *m, struct thread *t, uint64_t number, uint64_t time_ns)
{
	if (t->mode == MODE_RUNNABLE) {
		bool answered = t->k.answered;
		model_rename(m, t, time_ns, processor_wait(m, t, number, time_ns));
		t->k.throttled = false;
		model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0, t->resume_state, GRAPH_EXPLAINED);
		if (answered)
			model_known_runs(t);
	} else if (t->mode == MODE_BLOCKED) {
		if (!t->k.unborn) {
			uint32_t state = t->k.guessed ? model_make_state(m, MODEL_CAUSE_hidden,
								NONE, NONE, 0, 0)
						      : rules_kernel_wait_state(
								m, t, MODEL_CAUSE_call_blocked, 0);
			if (!t->k.guessed)
				model_unseen_wake(m, t, state, time_ns);
			model_rename(m, t, time_ns, state);
		}
		model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0, t->resume_state,
			t->k.unborn ? GRAPH_EXPLAINED : 0);
	}
	if (t->k.unborn)
		model_born(m, t, time_ns);
	t->k.early = false;
	t->k.asleep_site = 0;
}

void model_kernel_in(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint64_t number = r->u.cpu_in.processor;
	if (model_is_context(t))
		return;
	model_processor_in(m, t, number, r->time_ns);
	t->k.on = true;
	t->cpu.begin_run_ns = r->time_ns;
	rules_kernel_go_on(m, t, number, r->time_ns);
	t->k.processor = number < MODEL_PROCESSORS_MAX ? (uint32_t)number : 0;
}

/* It does something: then it has a processor, which its switch did not say. */
void model_seen_running(struct model *m, struct thread *t, const struct trace_record *r)
{
	switch (r->kind) {
	case TRACE_cpu_in:
	case TRACE_cpu_out:
	case TRACE_lost:
	case TRACE_call_end:
	case TRACE_thread_end: /* what the kernel says of it comes with its last switch */
	case TRACE_process_end:
		return;
	default:
		break;
	}
	if (model_is_context(t) || t->k.unborn)
		return;
	t->k.on = true;
	t->cpu.begin_run_ns = r->time_ns;
	rules_kernel_go_on(m, t, t->k.processor, r->time_ns);
}

/* Where in the kernel it goes to sleep: the innermost function that is not the scheduler's. Of a
 * thread of which nothing else was seen but that it is in a call: since then it has slept there. */
void model_rule_wait_at(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_defs *d = m->defs;
	uint32_t stack = r->u.wait_at.stack;
	t->k.asleep_site = 0;
	for (uint32_t steps = 0; stack && stack < d->nr_stacks && steps < STACK_MAX; steps++) {
		uint32_t site = d->stacks[stack].site;
		const char *function = trace_text_of(d, trace_def_symbol(d, site)->function);
		t->k.asleep_site = site < d->nr_sites ? site : 0;
		if (!strstr(function, "schedule"))
			break;
		stack = d->stacks[stack].parent;
	}
	if (t->k.unborn && t->k.call.active) {
		fall_asleep(m, t, r->time_ns);
		model_born(m, t, r->time_ns);
	}
}

/* ---- a new image in an old thread ------------------------------------------------------------ */

static bool is_exec(const struct call *c)
{
	return c->number == 59 || c->number == 322; /* execve, execveat */
}

/* The thread's first record in this stream: was it another stream's until now? Then it goes on. */
void model_follow_exec(struct model *m, struct thread *t, uint64_t time_ns)
{
	uint64_t tid = trace_def_stream(m->defs, t->stream)->tid, stream = 0;
	uint64_t host = model_host_of(m, t->stream);
	struct thread *old = NULL;
	t->k.looked = true;
	if (!tid || model_is_context(t))
		return;
	if (base_map_get(&m->known.by_tid, host, tid, &stream) && stream < m->nr_threads)
		old = &m->thread[stream];
	enum base_status s = base_map_put(&m->known.by_tid, host, tid, t->stream);
	if (s != BASE_OK)
		m->status = base_fail(m->err, s, "out of memory for threads");
	if (!old || old == t || old->k.gone || !t->k.unborn)
		return;
	if (!old->k.on && !(old->k.call.active && is_exec(&old->k.call)))
		return;
	rules_kernel_go_on(m, old, old->k.processor, time_ns);
	model_link(m, t->actor, time_ns, t->run_state, model_acting(old));
	t->graph_state = t->run_state;
	t->mode = MODE_RUNNING;
	model_born(m, t, time_ns);
	t->k.on = true;
	t->k.processor = old->k.processor;
	t->cpu.begin_run_ns = time_ns;
	run_time_of(m, old)->run_ns += time_ns - old->cpu.begin_run_ns;
	model_processor_taken_over(m, old, t, time_ns);
	old->life.end_ns = time_ns;
	old->ended = old->k.gone = true;
	old->k.on = false;
}

/* ---- births ---------------------------------------------------------------------------------- */

void model_be_born(struct model *m, struct thread *t, uint64_t time_ns, uint32_t queue, bool runs)
{
	if (!t->k.unborn) {
		model_born(m, t, time_ns); /* somebody woke it before it said so */
		return;
	}
	if (queue != NONE && graph_queue_units(m->graph, queue)) {
		forget_idle(m, t, time_ns);
		model_verb(m, t, GRAPH_VERB_dequeue, time_ns, queue, 1, t->run_state,
			GRAPH_LAST | GRAPH_EXPLAINED);
	} else
		model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0, t->run_state, GRAPH_EXPLAINED);
	model_born(m, t, time_ns);
	t->resume_state = t->run_state;
	if (!runs)
		model_be_ready(m, t, time_ns, 0);
}

/* ---- the whole run --------------------------------------------------------------------------- */

/* Is it the one that the user named, by number or by name? */
static bool rules_kernel_is_named(const struct model *m, uint32_t process, const char *name)
{
	const struct trace_process *p = trace_def_process(m->defs, process);
	char *end;
	unsigned long long pid = strtoull(name, &end, 10);
	return *end == 0 && end != name ? p->pid == pid
					: !strcmp(trace_text_of(m->defs, p->name), name);
}

static bool is_recorder(const struct model *m, const struct thread *t)
{
	return trace_def_context(m->defs, t->stream)->type == TRACE_CONTEXT_recorder;
}

/* By which of several processes of one name the one that is meant is told; without switches, how long its threads lived. */
static uint64_t rules_kernel_ran_ns(const struct model *m, const struct thread *t)
{
	if (m->is_system)
		return t->process < m->kernel.nr_run_times ? m->kernel.run_time[t->process].run_ns
							   : 0;
	return t->life.end_ns > t->life.begin_ns ? t->life.end_ns - t->life.begin_ns : 0;
}

/* The thread whose last moment ends the path: of the wanted process, the one that was started (or
 * the last one of those that it started, when they were waited for), or the one that ran most. */
uint32_t model_system_end(struct model *m)
{
	const char *name = m->opts->process;
	uint64_t pid = name ? 0 : m->run.root_pid, most = 0, last = 0;
	uint32_t actor = GRAPH_ANY_ACTOR, end_stream = 0;
	for (uint32_t i = 1; i < m->nr_threads && !pid; i++) {
		const struct thread *t = &m->thread[i];
		uint64_t ran = rules_kernel_ran_ns(m, t) + 1;
		if (model_is_context(t) || is_recorder(m, t) || ran <= most || !t->seen ||
			(name && !rules_kernel_is_named(m, t->process, name)))
			continue;
		most = ran;
		m->part.end_process = t->process;
		end_stream = t->stream;
	}
	bool all = m->run.wait_all && pid;
	if (!pid)
		pid = model_pid_key(
			m, end_stream, trace_def_process(m->defs, m->part.end_process)->pid);
	for (uint32_t i = 1; i < m->nr_threads; i++) {
		const struct thread *t = &m->thread[i];
		if (model_is_context(t) || !t->seen || t->life.end_ns < last ||
			t->life.end_ns <= t->life.begin_ns ||
			(model_pid_of(m, t) != pid && !(all && model_is_of_program(m, t->process))))
			continue;
		last = t->life.end_ns;
		actor = t->actor;
		m->part.end_process = t->process;
	}
	if (name && actor == GRAPH_ANY_ACTOR && m->status == BASE_OK)
		m->status = base_fail(m->err, BASE_ERR_NOTFOUND,
			"no process '%s' did anything in this recording; 'longpole actors --all' "
			"names "
			"those that did",
			name);
	return actor;
}

const char *model_end_process(const struct model *m, uint64_t *ret_pid)
{
	const struct trace_process *p = trace_def_process(m->defs, m->part.end_process);
	*ret_pid = p->pid;
	return trace_text_of(m->defs, p->name);
}

bool model_is_system(const struct model *m)
{
	return m->is_system;
}

struct model_waits model_waits(const struct model *m)
{
	struct model_waits w = {0};
	for (uint32_t i = 0; i < m->kernel.nr_run_times; i++) {
		w.nr += m->kernel.run_time[i].nr_blocks;
		w.nr_unseen += m->kernel.run_time[i].nr_unseen;
		w.nr_hidden += m->kernel.run_time[i].nr_hidden;
	}
	return w;
}

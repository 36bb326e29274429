/* SPDX-License-Identifier: Apache-2.0 */
/* rules_thread.c - threads and processes: start, end, join, fork, exec, wait; the processor;
 * samples. */
#include "model/model_private.h"

#include <string.h>

/* The stream that first spoke for a process image; 0: none. */
static uint32_t leader_of(const struct model *m, uint32_t process)
{
	uint64_t stream;
	return base_map_get(&m->known.handles, MODEL_LEADERS | process, 0, &stream)
		       ? (uint32_t)stream
		       : 0;
}

bool model_is_of_program(const struct model *m, uint32_t process)
{
	const struct trace_defs *d = m->defs;
	if (!m->run.root_process || m->run.root_process >= d->nr_processes)
		return false;
	uint64_t pid = m->run.is_merged ? UINT64_MAX : d->processes[m->run.root_process].pid;
	/* (what a file says may be a circle) */
	for (uint32_t i = 0; process && process < d->nr_processes && i < d->nr_processes; i++) {
		if (process == m->run.root_process || d->processes[process].pid == pid)
			return true;
		process = d->processes[process].parent;
	}
	return false;
}

/* It was made, and could begin when another of ours had left the processor. */
static void take_first_processor(struct model *m, struct thread *t, uint64_t time_ns)
{
	uint64_t number = t->cpu.came.to - 1;
	if (!t->cpu.came.to)
		return;
	uint32_t queue = model_processor_queue(m, number);
	if (t->cpu.came.by_switch && queue != NONE && graph_queue_units(m->graph, queue))
		model_verb_of(m, t->actor, GRAPH_VERB_peek, time_ns, queue, 1, t->run_state,
			GRAPH_LAST | GRAPH_MORE | GRAPH_OPTIONAL);
	model_processor_in(m, t, number, t->cpu.came.ns);
	t->cpu.came.to = 0;
}

/* begun_ns: since when a process was being started; 0: none was. Its last part is ours. */
static void begin_from(struct model *m, struct thread *t, const struct trace_record *r,
	uint32_t queue, uint64_t begun_ns)
{
	bool forked = r->kind == TRACE_process_begin && r->u.process_begin.token;
	uint64_t own_ns =
		begun_ns && begun_ns < r->time_ns
			? trace_cost_each_ns(m->defs, forked ? TRACE_COST_FORKS : TRACE_COST_STARTS)
			: 0;
	if (own_ns > r->time_ns - begun_ns)
		own_ns = r->time_ns - begun_ns;
	uint32_t state =
		own_ns ? model_make_state(m, MODEL_CAUSE_start_recorder, t->role, NONE, 0, 0)
		       : t->run_state;
	take_first_processor(m, t, r->time_ns - own_ns);
	model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns - own_ns, queue, 1, state, GRAPH_LAST);
	model_born(m, t, r->time_ns - own_ns);
	model_tell_recording(m, t, own_ns);
	if (own_ns)
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, t->run_state, 0);
}

/* A thread's first moment: after whoever made it; when that was not seen, after its parent as far
 * as anyone can tell. */
static void rules_thread_begin(struct model *m, struct thread *t, const struct trace_record *r,
	uint32_t queue, uint64_t begun_ns)
{
	if (m->is_system) {
		model_be_born(m, t, r->time_ns, queue, t->k.on);
		return;
	}
	if (queue != NONE) {
		begin_from(m, t, r, queue, begun_ns);
		return;
	}
	uint32_t parent =
		t->process < m->defs->nr_processes ? m->defs->processes[t->process].parent : 0;
	uint32_t leader = leader_of(m, t->life.main_thread ? parent : t->process);
	if (!leader && !m->run.is_merged) /* else it may be of another recording */
		leader = leader_of(m, m->run.root_process);
	if (leader && leader != t->stream)
		model_link(m, t->actor, r->time_ns, t->run_state, m->thread[leader].actor);
	else if (m->run.is_merged && t->mode == MODE_BLOCKED) /* its recording begins with it */
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, t->run_state, 0);
	t->life.begin_ns = m->run.is_merged ? r->time_ns : t->life.begin_ns;
	model_born(m, t, r->time_ns);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* NONE: a vfork's child that has not executed a program, or nobody was seen to start it. */
static uint32_t spawned_by(struct model *m, uint32_t parent)
{
	uint32_t queue = model_token_queue(m, TOKEN_spawn, parent, 0, false);
	return queue != NONE && graph_queue_units(m->graph, queue) ? queue : NONE;
}

void model_rule_process_begin(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t parent =
		t->process < m->defs->nr_processes ? m->defs->processes[t->process].parent : 0;
	uint32_t queue = NONE;
	uint64_t begun_ns = 0;
	t->life.main_thread = true;
	model_note_birth(m, t, r->u.process_begin.token);
	model_inherit_affinity(m, t, leader_of(m, parent), r->u.process_begin.token);
	if (t->process == m->run.root_process && !m->is_system)
		return; /* started when it was first seen */
	if (r->u.process_begin.token)
		queue = model_token_queue(m, TOKEN_fork, parent, r->u.process_begin.token, false);
	(void)base_map_get(&m->known.handles, MODEL_BIRTHS | t->process, 0, &begun_ns);
	if (queue == NONE) {
		queue = model_token_queue(m, TOKEN_exec, model_pid_of(m, t), 0, false);
		if (queue != NONE)
			(void)base_map_get(
				&m->known.handles, MODEL_EXECS, model_pid_of(m, t), &begun_ns);
	}
	if (queue == NONE)
		queue = spawned_by(m, parent);
	rules_thread_begin(m, t, r, queue, begun_ns);
	if (model_pid_of(m, t) == m->run.root_pid)
		m->part.end_actor = t->actor;
}

bool model_descends(const struct model *m, const struct thread *t, uint64_t pid_key)
{
	enum { IMAGES_MAX = 256 };
	const struct trace_process *p = trace_def_process(m->defs, t->process);
	for (int i = 0; i < IMAGES_MAX; i++) {
		if (model_pid_key(m, t->stream, p->pid) == pid_key)
			return true;
		if (!p->parent)
			return false;
		p = trace_def_process(m->defs, p->parent);
	}
	return false;
}

/* A pipe ends with the process that wrote into it, or that inherited it from one that closed it,
 * and may not have used it: a reader of "end of file" has waited for this. A process that does not
 * have it gives its token before the one that ends the wait. */
static void rules_thread_close_written(struct model *m, struct thread *t, uint64_t time_ns)
{
	model_owned_begin(m);
	model_owned_add(m, OWNED_written, t->process, 0);
	model_owned_add_inherited(m, t);
	size_t nr = model_owned_sort(m);
	for (size_t i = 0; i < nr; i++) {
		uint32_t queue = m->object[m->ending.object[i]].queue2;
		if (queue == NONE ||
			m->defs->objects[m->ending.object[i]].type != TRACE_OBJECT_pipe)
			continue;
		model_verb(m, t, GRAPH_VERB_resize, time_ns, queue, 0, t->graph_state, 0);
		model_verb(m, t, GRAPH_VERB_enqueue, time_ns, queue, 1, t->graph_state, 0);
	}
}

/* The pid of the process that forked t's, which an exec does not change; 0: none that is
 * recorded. */
static uint64_t parent_pid_of(const struct model *m, const struct thread *t)
{
	enum { EXECS_MAX = 64 };
	const struct trace_process *p = trace_def_process(m->defs, t->process);
	uint64_t pid = p->pid;
	for (int i = 0; i < EXECS_MAX && p->parent && p->pid == pid; i++)
		p = trace_def_process(m->defs, p->parent);
	return p->pid == pid ? 0 : model_pid_key(m, t->stream, p->pid);
}

/* The newest counts. */
static void rules_thread_tell(
	struct model *m, struct thread *t, uint64_t time_ns, enum token_kind what, uint64_t whom)
{
	uint32_t queue = model_token_queue(m, what, whom, 0, true);
	model_verb(m, t, GRAPH_VERB_resize, time_ns, queue, 0, t->graph_state, 0);
	model_verb(m, t, GRAPH_VERB_enqueue, time_ns, queue, 1, t->graph_state, 0);
}

/* In killers: when something was told to the process, which need not be a signal. */
enum { TOLD_NS = 2 };

static void tell_process(struct model *m, struct thread *t, uint64_t time_ns, uint64_t whom)
{
	rules_thread_tell(m, t, time_ns, TOKEN_child, whom);
	model_put(m, &m->timing.killers, whom, TOLD_NS, time_ns);
}

/* For a parent that waits without saying for whom: system(). */
static void tell_parent(struct model *m, struct thread *t, uint64_t time_ns)
{
	uint64_t parent = parent_pid_of(m, t);
	if (parent)
		tell_process(m, t, time_ns, parent);
}

/* The threads that may get a signal that was sent to a group: of all that wait only those that it
 * woke are woken meanwhile. */
#define EVERY_PROCESS MODEL_EVERY_PROCESS

/* Did the last word for t's process go to all, not to it alone? */
static bool is_told_with_all(const struct model *m, const struct thread *t)
{
	uint64_t all_ns, own_ns;
	return base_map_get(&m->timing.killers, EVERY_PROCESS, TOLD_NS, &all_ns) &&
	       all_ns >= t->life.begin_ns &&
	       !(base_map_get(&m->timing.killers, model_pid_of(m, t), TOLD_NS, &own_ns) &&
		       own_ns > all_ns);
}

static void signal_process(struct model *m, struct thread *t, uint64_t time_ns, uint64_t whom)
{
	tell_process(m, t, time_ns, whom);
	model_put(m, &m->timing.killers, whom, 0, model_acting(t));
	model_put(m, &m->timing.killers, whom, 1, time_ns);
}

void model_rule_signal_send(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_signal_send *s = &r->u.signal_send;
	uint64_t stream;
	model_handler_began(m, t, r->time_ns);
	if (s->pid)
		signal_process(m, t, r->time_ns, model_pid_key(m, t->stream, s->pid));
	else if (!s->handle)
		signal_process(m, t, r->time_ns, EVERY_PROCESS);
	else if (base_map_get(&m->known.handles, t->process, s->handle, &stream)) {
		rules_thread_tell(m, t, r->time_ns, TOKEN_signal, stream);
		m->thread[stream].signal.sender = model_acting(t);
		m->thread[stream].signal.sent_ns = r->time_ns;
	}
}

static void rules_thread_leave(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t idle = model_idle_state(m),
		 queue = model_token_queue(m, TOKEN_exit, model_pid_of(m, t), 0, true);
	if (t->life.main_thread) {
		rules_thread_close_written(m, t, r->time_ns);
		model_give_locks_up(m, t, r->time_ns);
		tell_parent(m, t, r->time_ns);
	}
	model_verb(m, t, GRAPH_VERB_resize, r->time_ns, queue, 0, t->graph_state, 0);
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, queue, 1, t->graph_state, 0);
	if (t->actor != m->part.end_actor && !m->is_system)
		model_verb(m, t, GRAPH_VERB_wait, r->time_ns, 0, 0, idle, 0);
}

/* ---- pthread_exit() in the main thread: the process goes on until the last of the others ends ---- */

/* A rank of a program that a launcher of MPI's was started to run: the path ends with the last. */
static bool ends_ranks(const struct model *m, const struct thread *t)
{
	return model_is_mpi_launched(m) && model_mpi_rank(m, t->process) >= 0;
}

static uint32_t last_thread_queue(struct model *m, const struct thread *t)
{
	return model_token_queue(m, TOKEN_last_thread, t->process, 0, true);
}

static void await_others(struct model *m, struct thread *t, uint64_t time_ns)
{
	if (m->is_system || leader_of(m, t->process) != t->stream || !t->life.nr_others)
		return;
	t->life.left_alone = true;
	model_verb(m, t, GRAPH_VERB_wait_empty, time_ns, last_thread_queue(m, t), 1,
		model_make_state(m, MODEL_CAUSE_wait_thread, NONE, NONE, 0, 0), 0);
}

static void other_ended(struct model *m, struct thread *t, uint64_t time_ns)
{
	uint32_t first = leader_of(m, t->process);
	if (first == t->stream || !m->thread[first].life.nr_others)
		return;
	m->thread[first].life.nr_others--;
	m->thread[first].life.last_ended = t->stream;
	if (!m->thread[first].life.left_alone)
		return;
	uint32_t queue = last_thread_queue(m, t);
	model_verb(m, t, GRAPH_VERB_resize, time_ns, queue, 0, t->graph_state, 0);
	model_verb(m, t, GRAPH_VERB_enqueue, time_ns, queue, 1, t->graph_state, 0);
}

/* If none of them ended meanwhile it was exit(), which waits for nobody. */
static void end_await(struct model *m, struct thread *t, uint64_t time_ns)
{
	uint32_t queue = last_thread_queue(m, t);
	if (m->status != BASE_OK) /* no such queue */
		return;
	if (graph_queue_units(m->graph, queue)) {
		model_verb(m, t, GRAPH_VERB_dequeue, time_ns, queue, GRAPH_ALL, t->run_state,
			GRAPH_LAST);
		return;
	}
	model_rename(m, t, time_ns, t->run_state);
	model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0, t->run_state, GRAPH_EXPLAINED);
}

uint32_t model_exit_queue(struct model *m, struct thread *t)
{
	if (t->exit_queue == NONE)
		t->exit_queue = model_make_queue(m, 0, 0, TRACE_OBJECT_none, NONE, GRAPH_FIFO);
	return t->exit_queue;
}

/* exit() in another thread, which then says that it ends: where the main thread waited for whatever
 * it was, it waited for that. */
static void end_by_other(struct model *m, struct thread *t, const struct trace_record *r)
{
	int64_t status = r->u.process_end.status;
	bool exited = status >= 0 && !(status & 0x7f); /* as waitpid: no signal */
	uint32_t other = m->thread[leader_of(m, t->process)].life.last_ended;
	bool waits = t->mode == MODE_WAITING || t->mode == MODE_BLOCKED;
	if (t->life.left || !exited || !other || !waits || m->is_system)
		return;
	model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, model_exit_queue(m, &m->thread[other]), 1,
		t->run_state, GRAPH_LAST);
}

/* Nobody else gets a mutex of a thread that has ended, but for robust ones: these waited for its
 * end. */
static void give_up_held(struct model *m, struct thread *t, uint64_t time_ns)
{
	for (uint32_t i = 0; i < t->nr_held; i++) {
		struct object *o = model_object(m, t->held[i].object);
		if (!o || o->queue == NONE ||
			m->defs->objects[t->held[i].object].type != TRACE_OBJECT_mutex)
			continue;
		o->lock.released_ns = time_ns;
		model_verb(m, t, GRAPH_VERB_enqueue, time_ns, o->queue, 1, t->graph_state, 0);
	}
	t->nr_held = 0;
}

void model_rule_process_end(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (t->acts) { /* its machines are where they are */
		t->ended = true;
		return;
	}
	model_cut_short(m, t, r);
	model_mpi_process_ends(m, t, r->u.process_end.status, r->time_ns);
	if (t->life.left_alone)
		end_await(m, t, r->time_ns);
	else
		end_by_other(m, t, r);
	give_up_held(m, t, r->time_ns);
	/* before it leaves: the path may end here, and must not wait then */
	if ((m->run.wait_all && model_is_of_program(m, t->process)) || ends_ranks(m, t))
		m->part.end_actor = t->actor;
	rules_thread_leave(m, t, r);
	t->ended = true;
	if (model_pid_of(m, t) == m->run.root_pid && !model_is_mpi_launched(m))
		m->part.end_actor = t->actor;
}

/* A vfork's child speaks for its parent, which is not awake. */
static void say_for_parent(struct model *m, struct thread *t, enum graph_verb_kind verb,
	uint64_t time_ns, uint32_t queue, enum model_cause cause, uint32_t site)
{
	enum mode mode = t->mode;
	uint32_t state = model_make_state(m, cause, t->role, NONE, site, 0);
	if (mode != MODE_RUNNABLE) {
		model_verb(m, t, verb, time_ns, queue, 1, state, 0);
		t->mode = mode;
		return;
	}
	/* it has not come to sleep yet */
	t->resume_state = t->spawn.in_child ? state : model_current_state(t);
	if (verb == GRAPH_VERB_enqueue)
		model_verb_of(m, model_acting(t), verb, time_ns, queue, 1, state, GRAPH_ASIDE);
}

/* About to start a process, which is a program from then on but for a fork. */
void model_rule_process_fork(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint64_t token = r->u.process_fork.token;
	uint32_t site = r->u.process_fork.site;
	bool said = t->spawn.in_child && m->is_system;
	bool for_parent = t->spawn.in_child && t->mode != MODE_RUNNING;
	t->spawn.in_child = false;
	if (said)
		return;
	model_pass_affinity(m, t, leader_of(m, t->process), token);
	uint32_t queue =
		model_token_queue(m, token ? TOKEN_fork : TOKEN_spawn, t->process, token, true);
	model_put(m, &m->known.handles, MODEL_FORKS | t->process, token, r->time_ns);
	t->spawn.site = token ? 0 : site;
	if (for_parent) {
		say_for_parent(
			m, t, GRAPH_VERB_enqueue, r->time_ns, queue, MODEL_CAUSE_start, site);
		return;
	}
	if (!t->nr_held)
		t->run_state = model_run_state(m, t, site);
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, queue, 1, model_current_state(t), 0);
}

/* The parent waits in vfork() until its child, which runs the parent's code meanwhile, executes a
 * program or ends. (In recordings of the system the kernel says what it waits for.) */
void model_rule_process_vfork(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t site = r->u.process_vfork.site;
	if (m->is_system && t->spawn.site == site && t->mode != MODE_RUNNING)
		return; /* exec has failed */
	if (m->is_system) {
		struct trace_record fork = {.time_ns = r->time_ns, .kind = TRACE_process_fork};
		fork.u.process_fork.site = site;
		model_rule_process_fork(m, t, &fork);
		t->spawn.in_child = true;
		return;
	}
	bool goes_on = t->mode == MODE_BLOCKED || t->mode == MODE_RUNNABLE;
	if (!t->nr_held && !goes_on)
		t->run_state = model_run_state(m, t, site);
	t->spawn.in_child = true;
	t->spawn.site = 0;
	say_for_parent(m, t, GRAPH_VERB_state, r->time_ns, 0, MODEL_CAUSE_start_child, site);
	if (!goes_on)
		t->mode = MODE_RUNNING;
}

void model_rule_process_exec(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t queue = model_token_queue(m, TOKEN_exec, model_pid_of(m, t), 0, true);
	model_put(m, &m->known.handles, MODEL_EXECS, model_pid_of(m, t), r->time_ns);
	uint32_t start =
		model_make_state(m, MODEL_CAUSE_start, t->role, NONE, r->u.process_exec.site, 0);
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, queue, 1, start, 0);
}

void model_rule_child_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	model_handler_began(m, t, r->time_ns);
	uint32_t site = r->u.child_wait.site;
	model_verb(m, t, GRAPH_VERB_wait, r->time_ns, site, 0,
		model_make_state(m, MODEL_CAUSE_wait_child, NONE, NONE, site, 0), 0);
	t->resumes = true;
}

/* The signal that was sent last, or the child that ended last, if it did in the wait that is over
 * now. `otherwise` is GRAPH_EXPLAINED where something unseen may have ended it, too
 * (MODEL_NOTHING_CAME: but not what it waited for), else 0. */
void model_signal_came(struct model *m, struct thread *t, uint64_t time_ns, uint32_t otherwise)
{
	uint32_t own = model_token_queue(m, TOKEN_signal, t->stream, 0, false);
	uint64_t whom = is_told_with_all(m, t) ? EVERY_PROCESS : model_pid_of(m, t);
	uint32_t queue = model_token_queue(m, TOKEN_child, whom, 0, false);
	if (queue == NONE)
		model_broken_off(m, t, time_ns);
	if (own != NONE && graph_queue_units(m->graph, own))
		model_verb(m, t, GRAPH_VERB_dequeue, time_ns, own, 1, model_current_state(t),
			GRAPH_LAST | otherwise);
	else if (queue == NONE)
		model_verb(
			m, t, GRAPH_VERB_state, time_ns, 0, 0, model_current_state(t), otherwise);
	else
		model_verb(m, t, GRAPH_VERB_peek, time_ns, queue, 1, model_current_state(t),
			GRAPH_LAST | otherwise);
}

/* A call begins while another one waits: in a signal's handler. So a signal has ended that wait, as
 * a child's end does with a shell's read. (Where the kernel said who woke it, model_verb() knows.)
 * Or it goes on when the handler is over. */
void model_handler_began(struct model *m, struct thread *t, uint64_t time_ns)
{
	bool waits = t->mode == MODE_WAITING && !t->k.woken, sleeps = t->io.state != NONE;
	bool goes_on = t->io.active ? waits || sleeps : waits && t->resumes;
	if (goes_on && !m->is_system && !t->interrupted) {
		t->interrupted = true;
		t->signal.outer =
			waits ? t->awaits
			      : (struct awaited){.verb = GRAPH_VERB_state, .state = t->io.state};
		t->signal.outer_io = t->io;
		t->io.active = false;
	}
	if (!waits)
		return;
	t->signal.handled_ns = time_ns;
	model_signal_came(m, t, time_ns, 0);
}

/* The handler is over, and what it interrupted still waits (a garbage collector's, which stops all
 * threads by a signal). */
static void resume_wait(struct model *m, struct thread *t, uint64_t time_ns)
{
	const struct awaited w = t->signal.outer;
	model_verb(m, t, w.verb, time_ns, w.queue, w.n, w.state, 0);
	t->resumes = t->cpu.left_in_wait = t->mode == MODE_WAITING;
	t->interrupted = false;
	if (t->signal.outer_io.active)
		t->io = t->signal.outer_io;
}

/* A join, or a wait for a child, that a handler interrupted is over; it is not when the handler has
 * another. */
static void outer_ended(struct thread *t)
{
	if (t->mode != MODE_WAITING && t->signal.outer.verb == GRAPH_VERB_wait &&
		!t->signal.outer_io.active)
		t->interrupted = false;
}

void model_rule_child_waited(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint64_t pid = model_pid_key(m, t->stream, r->u.child_waited.pid);
	uint32_t queue = pid ? model_token_queue(m, TOKEN_exit, pid, 0, false) : NONE;
	uint32_t site =
		t->graph_state < m->made.nr_states ? m->made.state[t->graph_state].pub.site : 0;
	outer_ended(t);
	if (!t->nr_held)
		t->run_state = model_run_state(m, t, site);
	if (!pid) /* system(), or nobody had ended */
		model_signal_came(m, t, r->time_ns, MODEL_NOTHING_CAME);
	else if (queue == NONE)
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t),
			GRAPH_EXPLAINED);
	else
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns, queue, 1, model_current_state(t),
			GRAPH_LAST);
}

/* ---- threads --------------------------------------------------------------------------------- */

void model_rule_thread_create(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint32_t queue =
		model_token_queue(m, TOKEN_thread, t->process, r->u.thread_create.token, true);
	model_pass_affinity(m, t, leader_of(m, t->process), r->u.thread_create.token);
	if (!t->nr_held)
		t->run_state = model_run_state(m, t, r->u.thread_create.site);
	model_verb(m, t, GRAPH_VERB_enqueue, r->time_ns, queue, 1, model_current_state(t), 0);
}

void model_rule_thread_begin(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_thread_begin *b = &r->u.thread_begin;
	enum base_status s = base_map_put(&m->known.handles, t->process, b->handle, t->stream);
	if (s != BASE_OK)
		m->status = base_fail(m->err, s, "out of memory for threads");
	uint32_t first = leader_of(m, t->process);
	if (first != t->stream) {
		m->thread[first].life.nr_others++;
		model_inherit_affinity(m, t, first, b->token);
		model_mpi_thread_begins(m, t, first);
	}
	if (!b->token) {
		t->life.main_thread = true;
		if (m->is_system)
			rules_thread_begin(m, t, r, NONE, 0);
		return;
	}
	rules_thread_begin(
		m, t, r, model_token_queue(m, TOKEN_thread, t->process, b->token, false), 0);
}

void model_free_thread(struct thread *t)
{
	base_free(t->runs.by_site);
	base_free(t->turn.runs.by_site);
	base_free(t->held);
	base_free(t->machine);
	base_free(t->visit.sample);
	base_free(t->k.task.needs);
	t->k.task.needs = NULL;
	t->k.task.nr_needs = t->k.task.needs_capacity = 0;
	t->runs.by_site = t->turn.runs.by_site = NULL;
	t->turn.runs.capacity = 0;
	t->held = NULL;
	t->machine = NULL;
	t->visit = (struct visit){0};
	t->nr_held = t->nr_machines = 0;
	t->runs.capacity = t->held_capacity = t->machine_capacity = 0;
}

/* One token a processor: the one before is stale. */
static void put_processor_back(
	struct model *m, struct thread *t, uint64_t number, uint32_t queue, uint64_t time_ns)
{
	struct object *p = &m->processors.processor[number];
	uint64_t slept_ns = t->mode == MODE_WAITING ? t->limit.timed_before_ns : t->limit.timed_ns;
	model_verb_of(m, model_acting(t), GRAPH_VERB_dequeue, time_ns, queue, GRAPH_ALL,
		t->graph_state, GRAPH_BACK | GRAPH_ASIDE);
	model_verb_of(m, model_acting(t), GRAPH_VERB_enqueue, time_ns, queue, 1, t->graph_state,
		GRAPH_ASIDE | (model_is_beside_mpi(m, t) ? GRAPH_NOBODY
							 : model_by_chance(t, slept_ns, time_ns)));
	p->user = t->stream;
	p->left_ns = time_ns;
}

/* A thread's last leaving is not shown, since its events end before it: it leaves as it ends. */
static void end_last_stay(struct model *m, struct thread *t, uint64_t time_ns)
{
	uint64_t number;
	uint32_t queue = NONE;
	if (!m->is_system && model_processor_of(m, t, &number))
		queue = model_processor_queue(m, number);
	if (queue != NONE)
		put_processor_back(m, t, number, queue, time_ns);
}

void model_rule_thread_end(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (t->acts)
		return;
	model_cancelled(m, t, r->time_ns);
	give_up_held(m, t, r->time_ns);
	model_forget_machines(m, t, r->time_ns);
	end_last_stay(m, t, r->time_ns);
	t->life.left = true;
	if (t->life.main_thread) {
		if (ends_ranks(m, t))
			m->part.end_actor = t->actor;
		rules_thread_leave(m, t, r); /* its process_end may follow: then that one counts */
		await_others(m, t, r->time_ns);
		return;
	}
	model_verb(
		m, t, GRAPH_VERB_enqueue, r->time_ns, model_exit_queue(m, t), 1, t->graph_state, 0);
	other_ended(m, t, r->time_ns);
	if (t->actor != m->part.end_actor && !m->is_system)
		model_verb(m, t, GRAPH_VERB_wait, r->time_ns, 0, 0, model_idle_state(m), 0);
	t->ended = true;
	model_count_visit(m, t);
	model_free_thread(t);
}

void model_rule_join_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	model_verb(m, t, GRAPH_VERB_wait, r->time_ns, 0, 0,
		model_make_state(m, MODEL_CAUSE_wait_thread, NONE, NONE, r->u.join_wait.site, 0),
		0);
	t->resumes = true;
}

/*
 * A thread that ticks: it sleeps again and again, looks whether it is to end, and now was told so
 * in the middle of a sleep. A thread that joins it waits for the rest of that sleep, and not for
 * all the others: the sooner it comes, the fewer there are. So does one that broke the sleep off by
 * a signal, and comes to join when it is over, or all but.
 */
static bool was_ticking(const struct thread *ended, const struct thread *t)
{
	enum { A_ROW = 8 };
	uint64_t begin_ns = ended->naps.begin_ns, end_ns = ended->naps.end_ns;
	bool is_over = t->entered_ns >= end_ns;
	bool told =
		ended->naps.broken &&
		(is_over || model_is_next_to_nothing(end_ns - t->entered_ns, end_ns - begin_ns));
	return begin_ns < t->entered_ns && (told || (ended->naps.nr >= A_ROW && !is_over)) &&
	       model_is_next_to_nothing(ended->life.end_ns - end_ns, end_ns - begin_ns);
}

void model_rule_join_done(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint64_t stream;
	uint32_t site =
		t->graph_state < m->made.nr_states ? m->made.state[t->graph_state].pub.site : 0;
	outer_ended(t);
	if (!t->nr_held)
		t->run_state = model_run_state(m, t, site);
	if (!base_map_get(&m->known.handles, t->process, r->u.join_done.handle, &stream))
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t), 0);
	else if (t->mode == MODE_WAITING && was_ticking(&m->thread[stream], t))
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, model_current_state(t),
			GRAPH_EXPLAINED);
	else
		model_verb(m, t, GRAPH_VERB_dequeue, r->time_ns,
			model_exit_queue(m, &m->thread[stream]), 1, model_current_state(t),
			GRAPH_LAST);
}

/* ---- the processor: a token that the run queue waits for ------------------------------------- */

enum {
	SWITCH_MAX_NS = 20000,  /* between the two records of one context switch */
	ENDING_MAX_NS = 100000, /* between a thread's last record and the switch that ends it */
};

uint32_t model_processor_queue(struct model *m, uint64_t number)
{
	if (number >= MODEL_PROCESSORS_MAX)
		return NONE;
	if (number >= m->processors.nr_processors) {
		enum base_status s =
			base_grow(&m->processors.processor, &m->processors.processor_capacity,
				number + 1, sizeof *m->processors.processor);
		if (s != BASE_OK) {
			m->status = base_fail(m->err, s,
				"out of memory for %llu {processor|processors}",
				(unsigned long long)number);
			return NONE;
		}
		for (; m->processors.nr_processors <= number; m->processors.nr_processors++)
			m->processors.processor[m->processors.nr_processors].queue = NONE;
	}
	struct object *p = &m->processors.processor[number];
	if (p->queue == NONE)
		p->queue = model_make_processor(m, number);
	return p->queue;
}

/*
 * A thread slept until a time limit, has done next to nothing since and now gives up a lock or its
 * processor, or wakes one that came since: what met it there met it by chance. A path through it
 * would explain a moment's wait by all that sleep.
 */
uint32_t model_by_chance(const struct thread *t, uint64_t slept_ns, uint64_t time_ns)
{
	bool slept = slept_ns && model_is_next_to_nothing(time_ns - t->limit.timer_ns, slept_ns);
	bool napped = t->naps.nr && !t->naps.held &&
		      model_is_next_to_nothing(
			      time_ns - t->naps.end_ns, t->naps.end_ns - t->naps.begin_ns);
	return slept || napped ? GRAPH_NOBODY : 0;
}

bool model_is_next_to_nothing(uint64_t time_ns, uint64_t slept_ns)
{
	enum { NEXT_TO_NOTHING = 100 }; /* that part of the sleep */
	return time_ns < slept_ns / NEXT_TO_NOTHING;
}

/* A time limit ended a wait. What it held meanwhile others have waited for: not by chance. */
void model_napped(struct thread *t, uint64_t begin_ns, uint64_t end_ns)
{
	bool again = t->naps.nr &&
		     model_is_next_to_nothing(begin_ns - t->naps.end_ns, end_ns - begin_ns);
	t->naps.nr = again ? t->naps.nr + 1 : 1;
	t->naps.held =
		t->nr_held || t->naps.nr_units_held || t->turn.task; /* a task has its loop */
	t->naps.broken = false;
	t->naps.begin_ns = begin_ns;
	t->naps.end_ns = end_ns;
	t->limit.timer_ns = end_ns;
}

/* Until a deadline that had passed (its thread came late): a row of naps goes on. */
void model_nap_was_over(struct thread *t, uint64_t begin_ns, uint64_t end_ns)
{
	if (t->naps.nr && model_is_next_to_nothing(
				  begin_ns - t->naps.end_ns, t->naps.end_ns - t->naps.begin_ns))
		t->naps.end_ns = end_ns;
}

/* Another of ours was there before. */
static bool is_after_ours(const struct model *m, const struct thread *t, uint64_t number)
{
	const struct object *p = &m->processors.processor[number];
	return p->user && p->user != t->stream && graph_queue_units(m->graph, p->queue);
}

/* It left in the very switch in which this one came: what leaving takes is longer for one that
 * ends. */
static bool is_next_after_ours(
	const struct model *m, const struct thread *t, uint64_t number, uint64_t time_ns)
{
	const struct object *p = &m->processors.processor[number];
	return is_after_ours(m, t, number) &&
	       time_ns - p->left_ns <=
		       (m->thread[p->user].life.left ? ENDING_MAX_NS : SWITCH_MAX_NS);
}

void model_unborn_in(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint64_t number = r->u.cpu_in.processor;
	uint32_t queue = m->is_system ? NONE : model_processor_queue(m, number);
	if (queue == NONE)
		return;
	t->stream = r->stream;
	t->cpu.came.to = (uint32_t)number + 1;
	t->cpu.came.ns = r->time_ns;
	t->cpu.came.by_switch = is_next_after_ours(m, t, number, r->time_ns);
}

/* Asleep within a read or write that had not waited: the queue was full or empty after all. */
static bool thread_rule_io_sleeps(
	struct model *m, struct thread *t, enum model_state_kind kind, uint64_t now)
{
	if (!t->io.active || t->io.queue == NONE)
		return false;
	bool writes = t->io.op == TRACE_IO_write;
	if (!writes && (t->io.op != TRACE_IO_read || kind != MODEL_STATE_io))
		return false;
	if (writes)
		t->io.wants_space = true;
	model_verb(m, t, writes ? GRAPH_VERB_wait_full : GRAPH_VERB_wait_empty, now, t->io.queue, 1,
		model_wait_state(m, model_class_of(m, t->io.object, 0), 0, writes), 0);
	t->cpu.left_in_wait = true;
	return true;
}

/* Asleep where no recorded call says in what: the kernel's word, or "blocked". */
static void thread_rule_blocks(struct model *m, struct thread *t, uint64_t why, uint64_t now)
{
	uint32_t site = m->made.state[t->graph_state].pub.site;
	/* vfork() and posix_spawn() return when the child has begun its program, or has ended */
	bool spawns = t->spawn.site && t->spawn.site == site;
	t->spawn.site = 0;
	model_visit_leaves(t, now);
	t->resume_state = t->graph_state;
	uint32_t state =
		why == TRACE_LEFT_in_fault
			? model_make_state(m, MODEL_CAUSE_page_fault, NONE, NONE, site, 0)
		: why == TRACE_LEFT_in_loader
			? model_make_state(m, MODEL_CAUSE_start_load, t->role, NONE, 0, 0)
			: model_make_state(m, spawns ? MODEL_CAUSE_start : MODEL_CAUSE_blocked,
				  t->role, NONE, site, 0);
	bool known = spawns || why >= TRACE_LEFT_in_fault;
	model_verb(m, t, known ? GRAPH_VERB_state : GRAPH_VERB_wait, now, 0, 0, state, 0);
	t->mode = MODE_BLOCKED;
}

/* A running thread sleeps, of its own will. */
static void thread_rule_sleeps(struct model *m, struct thread *t, uint64_t why, uint64_t now)
{
	enum model_state_kind kind = t->graph_state < m->made.nr_states
					     ? m->made.state[t->graph_state].pub.kind
					     : MODEL_STATE_run;
	if (thread_rule_io_sleeps(m, t, kind, now))
		return;
	if (t->spawn.in_child) {
		t->resume_state = model_current_state(t);
		t->mode = MODE_BLOCKED;
		return;
	}
	if (kind == MODEL_STATE_io || kind == MODEL_STATE_sleep || kind == MODEL_STATE_external ||
		kind == MODEL_STATE_start || kind == MODEL_STATE_idle)
		return; /* a call that may sleep: its state says so */
	if (t->interrupted && why < TRACE_LEFT_in_fault) {
		resume_wait(m, t, now);
		return;
	}
	if (t->io.active && t->io.state != NONE && why < TRACE_LEFT_in_fault) {
		/* What was called within the call is over: by a library that stands in for it, by a
		 * signal's handler. The call itself goes on. */
		model_verb(m, t, GRAPH_VERB_state, now, 0, 0, t->io.state, 0);
		return;
	}
	thread_rule_blocks(m, t, why, now);
}

void model_rule_cpu_out(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (m->is_system) {
		model_kernel_out(m, t, r);
		return;
	}
	uint32_t queue = model_processor_queue(m, r->u.cpu_out.processor);
	uint64_t why = r->u.cpu_out.preempted;
	bool preempted = why && why < TRACE_LEFT_in_fault;
	if (queue == NONE)
		return;
	model_processor_out(m, t, r->u.cpu_out.processor, r->time_ns, preempted);
	t->cpu.processor_queue = NONE;
	t->cpu.on_ns = 0;
	/* Woken within its wait and asleep again: what it did meanwhile is no part of any path that
	 * we know, so the processor still is as the one before left it. */
	if (t->mode != MODE_WAITING || !t->cpu.left_in_wait)
		put_processor_back(m, t, r->u.cpu_out.processor, queue, r->time_ns);
	t->cpu.left_in_wait = true;
	t->io.out_ns = r->time_ns;
	t->io.preempted = preempted;
	if (!preempted)
		model_rule_writer_sleeps(m, t, r->time_ns);
	if (t->mode != MODE_RUNNING)
		return;
	if (preempted) {
		model_visit_leaves(t, r->time_ns);
		t->resume_state = t->graph_state;
		model_verb(m, t, GRAPH_VERB_wait_empty, r->time_ns, queue, 1,
			model_runnable_state(m), 0);
		t->mode = MODE_RUNNABLE;
		return;
	}
	thread_rule_sleeps(m, t, why, r->time_ns);
}

/*
 * The thread that had the processor last had come from a sleep when t was at work already. A path
 * through it would explain t's wait by all that sleep. The wait is t's own, named by what the other
 * thread did there.
 */
static bool ticked_meanwhile(const struct model *m, const struct thread *t, uint64_t number)
{
	const struct object *p = &m->processors.processor[number];
	const struct thread *had = &m->thread[p->user];
	return had->naps.nr && had->naps.end_ns > t->naps.works_ns &&
	       had->naps.works_ns <= had->naps.end_ns && had->naps.end_ns <= p->left_ns;
}

static void met_ticker(struct model *m, struct thread *t, uint64_t number, uint64_t time_ns)
{
	struct model_had had = model_had_processor(m, t, number, t->entered_ns, time_ns);
	if (had.role != NONE && had.had_ns >= (time_ns - t->entered_ns) / 2)
		model_rename(m, t, time_ns,
			model_make_state(m, MODEL_CAUSE_processor_had, had.role, NONE, 0, 0));
}

void model_rule_cpu_in(struct model *m, struct thread *t, const struct trace_record *r)
{
	if (m->is_system) {
		model_kernel_in(m, t, r);
		return;
	}
	uint32_t queue = model_processor_queue(m, r->u.cpu_in.processor);
	if (queue == NONE)
		return;
	model_processor_in(m, t, r->u.cpu_in.processor, r->time_ns);
	if (t->io.out_ns)
		*(t->io.preempted ? &t->io.begin_ns : &t->io.away_ns) += r->time_ns - t->io.out_ns;
	t->io.out_ns = 0;
	/* A runnable thread waits for the recorded thread that left the processor last, and then
	 * for other programs. */
	bool ours = is_after_ours(m, t, r->u.cpu_in.processor);
	switch (t->mode) {
	case MODE_RUNNING:
		return;
	case MODE_RUNNABLE:
		model_task_comes(m, t, r);
		if (ours && ticked_meanwhile(m, t, r->u.cpu_in.processor)) {
			ours = false;
			met_ticker(m, t, r->u.cpu_in.processor, r->time_ns);
		}
		model_verb(m, t, ours ? GRAPH_VERB_dequeue : GRAPH_VERB_state, r->time_ns, queue, 1,
			t->resume_state, GRAPH_LAST | GRAPH_EXPLAINED);
		return;
	case MODE_BLOCKED:
		if (m->made.state[t->graph_state].pub.kind == MODEL_STATE_blocked)
			model_count(m, TRACE_DIAG_futex_unseen);
		model_verb(m, t, GRAPH_VERB_state, r->time_ns, 0, 0, t->resume_state, 0);
		t->spawn.in_child = false;
		return;
	case MODE_WAITING:
		/* one that was asleep waited for it only if it came in the very switch in which
		 * that one left */
		if (is_next_after_ours(m, t, r->u.cpu_in.processor, r->time_ns))
			t->cpu.processor_queue = queue;
		else
			t->cpu.on_ns = r->time_ns;
		model_rule_writer_wakes(m, t, r->time_ns);
		return;
	}
}

void model_rule_lost(struct model *m, struct thread *t, const struct trace_record *r)
{
	(void)t;
	m->seen.nr_lost += r->u.lost.n;
}

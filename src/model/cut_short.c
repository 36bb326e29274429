/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_short.c - a process that a signal ends in a sleep or a wait, without a word of its own, and a
 * thread that is cancelled there. What
 * it did until then has no end that could be looked for: it is cut (GRAPH_CUTS).
 */
#include "model/model_private.h"

#include <signal.h>

enum { CUT_AT_ONCE_NS = 50000000 };

/* To t's process alone or to a group that it may be in. */
static bool last_signal(
	const struct model *m, const struct thread *t, uint64_t *ret_killer, uint64_t *ret_sent_ns)
{
	uint64_t whom[] = {model_pid_of(m, t), MODEL_EVERY_PROCESS}, killer, sent_ns;
	bool found = false;
	for (size_t i = 0; i < BASE_COUNT(whom); i++)
		if (base_map_get(&m->timing.killers, whom[i], 0, &killer) &&
			base_map_get(&m->timing.killers, whom[i], 1, &sent_ns) &&
			(!found || sent_ns > *ret_sent_ns)) {
			*ret_killer = killer;
			*ret_sent_ns = sent_ns;
			found = true;
		}
	return found;
}

/* Somebody recorded did it just now, whatever t was doing. */
static bool cut_by_other(
	const struct model *m, const struct thread *t, uint64_t time_ns, uint32_t own)
{
	uint64_t killer, sent_ns;
	return last_signal(m, t, &killer, &sent_ns) && killer != own &&
	       time_ns - sent_ns < CUT_AT_ONCE_NS;
}

static enum model_state_kind cut_state(const struct model *m, const struct thread *t)
{
	return t->graph_state < m->made.nr_states ? m->made.state[t->graph_state].pub.kind
						  : MODEL_STATE_idle;
}

/* (An image that has executed another one ends with a start, and never says so.) */
static bool cut_computes(const struct model *m, const struct thread *t)
{
	enum model_state_kind kind = cut_state(m, t);
	return t->seen && !t->ended && !t->life.left && !t->acts &&
	       (t->mode == MODE_RUNNING || t->mode == MODE_RUNNABLE) &&
	       (kind == MODEL_STATE_run || kind == MODEL_STATE_hold ||
		       kind == MODEL_STATE_annotated || kind == MODEL_STATE_runnable);
}

/* Of the process's threads, or of all, the one that has done so for longest; NULL: all wait. */
static const struct thread *cut_worker(const struct model *m, const struct thread *t, bool of_all)
{
	const struct thread *found = NULL;
	for (uint32_t i = 1; i < m->nr_threads; i++) {
		const struct thread *o = &m->thread[i];
		if (o != t && cut_computes(m, o) && (of_all || o->process == t->process) &&
			(!found || o->entered_ns < found->entered_ns))
			found = o;
	}
	return found;
}

/* Is the whole run cut? The program that was started is; or another process has just been; or the
 * terminal's signal came, to all. Of another process only its parent knows by what (-1): of those
 * that nobody recorded has ended, in a wait, most end with the run. */
static bool cut_is_of_all(
	const struct model *m, const struct thread *t, int64_t status, bool at_once)
{
	return at_once || model_pid_of(m, t) == m->run.root_pid || status < 0 || status == SIGINT ||
	       status == SIGQUIT || status == SIGHUP;
}

/* Of a pipeline or a tree of processes that are all ended at once it may be gone already. */
static uint32_t cut_worker_of_any(
	const struct model *m, const struct thread *t, const struct trace_record *r)
{
	bool at_once = m->run.cut_ns && r->time_ns - m->run.cut_ns < CUT_AT_ONCE_NS;
	const struct thread *worker = cut_worker(m, t, false);
	if (!worker && cut_is_of_all(m, t, r->u.process_end.status, at_once))
		worker = cut_worker(m, t, true);
	return worker ? model_acting(worker) : at_once ? m->run.cut_actor : NONE;
}

/* Its own timer would have ended it whoever worked. */
static bool cut_from_outside(int64_t status)
{
	int number = (int)(status & 0x7f); /* as waitpid has it; -1: not known */
	return status < 0 || (number && number != SIGALRM && number != SIGVTALRM &&
				     number != SIGPROF && number != SIGXCPU);
}

/*
 * A signal that says "end", and not that the program did something wrong. As long as the run is, as
 * long somebody outside wanted it to be.
 */
static bool cut_is_wish(int64_t status)
{
	static const bool wish[0x80] = {[SIGINT] = true,
		[SIGTERM] = true,
		[SIGHUP] = true,
		[SIGQUIT] = true,
		[SIGKILL] = true,
		[SIGUSR1] = true,
		[SIGUSR2] = true};
	return status > 0 && wish[status & 0x7f];
}

/*
 * A recorded thread that sent a signal into the wait ended it. If none did (Ctrl-C, timeout), the
 * wait would have lasted on, and nothing says for what: it is told as one for the thread that was
 * at work. So also where a handler tidied up and had its signal sent again.
 */
void model_cut_short(struct model *m, struct thread *t, const struct trace_record *r)
{
	uint64_t killer = NONE, sent_ns = 0;
	uint32_t own = model_acting(t), worker = own;
	bool sleeps = t->mode == MODE_WAITING || cut_state(m, t) == MODEL_STATE_sleep;
	bool handled = t->signal.handled_ns && r->time_ns - t->signal.handled_ns < CUT_AT_ONCE_NS;
	if (t->life.left || m->is_system)
		return;
	bool told = sleeps && last_signal(m, t, &killer, &sent_ns) && sent_ns >= t->entered_ns;
	if (told && killer != own) {
		model_link_cuts(m, t, r->time_ns, model_current_state(t), (uint32_t)killer);
		return;
	}
	if (!cut_from_outside(r->u.process_end.status))
		return;
	if (model_pid_of(m, t) == m->run.root_pid && cut_is_wish(r->u.process_end.status) &&
		!cut_by_other(m, t, r->time_ns, own))
		m->run.cut_signal = (int)(r->u.process_end.status & 0x7f);
	if (handled || !cut_computes(m, t))
		worker = cut_worker_of_any(m, t, r);
	if (worker == NONE)
		return;
	if (worker != own)
		model_link_cuts(m, t, r->time_ns, model_current_state(t), worker);
	m->run.cut_actor = worker;
	m->run.cut_ns = r->time_ns;
}

void model_broken_off(struct model *m, const struct thread *t, uint64_t time_ns)
{
	uint64_t killer, sent_ns;
	bool known = last_signal(m, t, &killer, &sent_ns) && sent_ns >= t->entered_ns;
	bool own = t->signal.sent_ns && t->signal.sent_ns >= t->entered_ns;
	if (!known && !own && !m->is_system && model_pid_of(m, t) == m->run.root_pid &&
		!m->run.broken_off_ns)
		m->run.broken_off_ns = time_ns;
}

/* (A timer's signals are told by themselves.) */
uint64_t model_first_broken_off(const struct model *m)
{
	return m->timing.nr_box_timers ? 0 : m->run.broken_off_ns;
}

void model_cancelled(struct model *m, struct thread *t, uint64_t time_ns)
{
	bool sleeps = t->mode == MODE_WAITING || t->mode == MODE_BLOCKED ||
		      (model_state_kind_waits(cut_state(m, t)) &&
			      cut_state(m, t) != MODEL_STATE_runnable);
	if (sleeps && !m->is_system && t->signal.sent_ns && t->signal.sent_ns >= t->entered_ns &&
		t->signal.sender != model_acting(t))
		model_link_cuts(m, t, time_ns, model_current_state(t), t->signal.sender);
}

/* Did whom the path ends with run on when the recording was over? */
static bool cut_end_lives(const struct model *m)
{
	uint32_t actor = m->part.end_actor;
	uint32_t thread = actor < m->made.nr_actors ? m->made.actor[actor].thread : 0;
	return thread && thread < m->nr_threads && !m->thread[thread].ended;
}

int model_ended_from_outside(const struct model *m)
{
	const uint64_t *count = m->seen.health.count;
	if (m->run.cut_signal)
		return m->run.cut_signal;
	if (count[TRACE_DIAG_asked_to_end] && count[TRACE_DIAG_asked_to_end] < NSIG)
		return (int)count[TRACE_DIAG_asked_to_end];
	bool before = count[TRACE_DIAG_ended_before] || count[TRACE_DIAG_recorder_killed];
	return before && !m->run.is_merged && cut_end_lives(m) ? MODEL_RECORDING_ENDED : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_kernel_known.c - waits that the library knows (a lock, a condition, bytes), as the kernel
 * sees them. The library says when a wait begins and when its call returns. The kernel says when
 * the thread was woken and when it got a processor: between the two it is ready, which is no part
 * of the hand-off. So at the wake the wait ends, by what came meanwhile or else by the waker, and
 * what is left is a wait for a processor; at the processor the hand-off begins. A thread that goes
 * to sleep again in the same call (somebody was quicker to take the lock) waits again.
 */
#include "model/model_private.h"

void model_begin_wait(
	struct model *m, struct thread *t, enum graph_verb_kind verb, uint32_t queue, int64_t n)
{
	t->cpu.left_in_wait = t->resumes = false;
	t->awaits = (struct awaited){.verb = verb, .queue = queue, .state = t->graph_state, .n = n};
	if (m->is_system && verb == GRAPH_VERB_wait_empty)
		t->awaits.empty = !graph_queue_units(m->graph, queue);
	else
		t->awaits.empty = verb == GRAPH_VERB_wait_full;
}

static bool has_come(const struct model *m, const struct awaited *w)
{
	uint64_t capacity = w->queue < m->made.nr_queues ? m->made.queue[w->queue].pub.capacity : 0;
	if (!w->empty)
		return false;
	if (w->verb == GRAPH_VERB_wait_full)
		return capacity && graph_queue_units(m->graph, w->queue) < capacity;
	return graph_queue_units(m->graph, w->queue) != 0;
}

static uint32_t hand_over_state(const struct model *m, const struct thread *t)
{
	const struct awaited *w = &t->awaits;
	bool known = w->verb != GRAPH_VERB_wait && w->queue < m->made.nr_queues;
	return known ? m->made.queue[w->queue].latency_state : model_current_state(t);
}

/* Its wait ends by what it waited for, which is there; by its waker; or not at all. */
static void rules_kernel_known_answer(struct model *m, struct thread *t, uint64_t time_ns)
{
	struct awaited w = t->awaits;
	uint32_t wakes = t->k.wake_queue, after = hand_over_state(m, t),
		 ready = model_runnable_state(m);
	bool woken = t->k.woken && wakes != NONE && graph_queue_units(m->graph, wakes);
	t->k.woken = t->k.early = false;
	if (has_come(m, &w)) {
		if (woken) /* in its place */
			model_verb_of(m, model_acting(t), GRAPH_VERB_dequeue, time_ns, wakes,
				GRAPH_ALL, t->graph_state, GRAPH_BACK | GRAPH_ASIDE);
		if (w.verb == GRAPH_VERB_wait_full)
			model_verb(m, t, GRAPH_VERB_reserve, time_ns, w.queue, 1, ready, 0);
		else
			model_verb(m, t, GRAPH_VERB_peek, time_ns, w.queue, 1, ready, GRAPH_LAST);
	} else if (woken) {
		model_verb(m, t, GRAPH_VERB_dequeue, time_ns, wakes, GRAPH_ALL, ready, GRAPH_LAST);
	} else {
		return;
	}
	model_be_ready(m, t, time_ns, 0);
	t->resume_state = after;
	t->k.known = w;
	t->k.answered = true;
}

void model_known_woken(struct model *m, struct thread *waker, struct thread *t, uint64_t time_ns)
{
	t->k.woken = model_is_credited(waker);
	if (t->k.on) /* perhaps on its way to sleep */
		t->k.early = true;
	else
		rules_kernel_known_answer(m, t, time_ns);
}

void model_known_leaves(struct model *m, struct thread *t, uint64_t time_ns, bool preempted)
{
	bool early = t->k.early, woken = t->k.woken;
	if (preempted) {
		if (!t->k.answered) /* it spins, or is about to sleep: what it waits for is to come
				     */
			return;
		t->resume_state = t->graph_state;
		model_be_ready(m, t, time_ns, 0);
		t->k.answered = true;
		return;
	}
	if (t->k.answered) /* in vain */
		model_verb(m, t, t->k.known.verb, time_ns, t->k.known.queue, t->k.known.n,
			t->k.known.state, 0);
	t->k.woken = woken;
	if (early)
		rules_kernel_known_answer(m, t, time_ns);
}

void model_known_runs(struct thread *t)
{
	t->mode = MODE_WAITING; /* as far as the library has said */
	t->k.answered = true;
}

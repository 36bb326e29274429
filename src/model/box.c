/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box.c - runs that last for a time: a timer's signal (alarm, setitimer, timer_settime) says when
 * the work is over, as in a load generator. Less work is then more of it, not a shorter run. How the
 * program takes the signal no record says. What is known: when a timer that sends its signal once
 * has done so, and for how long it had been set.
 */
#include "model/model_private.h"

enum {
	BOX_TIMERS = 64,          /* of one run: more are not followed */
	ENDS_WITHIN_NS = 1000000, /* a thread that the signal ends has its last record that long
				     before */
};

static struct box_timer *box_timer_of(struct model *m, uint32_t process, uint64_t timer)
{
	struct model_timing *w = &m->timing;
	for (uint32_t i = 0; i < w->nr_box_timers; i++)
		if (w->box_timer[i].process == process && w->box_timer[i].timer == timer)
			return &w->box_timer[i];
	if (w->nr_box_timers == BOX_TIMERS || !model_grow(m, &w->box_timer, &w->box_timer_capacity,
						      w->nr_box_timers + 1, sizeof *w->box_timer))
		return NULL;
	w->box_timer[w->nr_box_timers] = (struct box_timer){.process = process, .timer = timer};
	return &w->box_timer[w->nr_box_timers++];
}

/* A process takes its timers with it. */
static bool box_is_alive(const struct model *m, uint32_t process, uint64_t time_ns)
{
	for (uint32_t i = 1; i < m->nr_threads; i++)
		if (m->thread[i].seen && m->thread[i].process == process &&
			m->thread[i].life.end_ns + ENDS_WITHIN_NS >= time_ns)
			return true;
	return process == m->run.root_process;
}

/* It has sent its signal by then: so long it had been set. */
static void box_sends(const struct model *m, struct box_timer *b, uint64_t time_ns)
{
	if (!b->due_ns || b->due_ns > time_ns || !box_is_alive(m, b->process, b->due_ns))
		return;
	b->sum_ns += b->due_ns - b->set_ns;
	b->sent_ns = b->due_ns;
	b->sent_site = b->site;
	b->nr_sent++;
	b->due_ns = 0;
}

void model_rule_signal_timer(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_signal_timer *s = &r->u.signal_timer;
	struct box_timer *b = box_timer_of(m, t->process, s->timer);
	if (!b)
		return;
	box_sends(m, b, r->time_ns);
	b->set_ns = r->time_ns;
	b->site = s->site;
	/* (periodic ones tick) */
	b->due_ns = s->armed && !s->period_ns && s->first_ns < INT64_MAX / 2
			    ? r->time_ns + s->first_ns
			    : 0;
}

bool model_box(struct model *m, uint64_t end_ns, struct model_box *ret)
{
	const struct box_timer *last = NULL;
	for (uint32_t i = 0; i < m->timing.nr_box_timers; i++) {
		struct box_timer *b = &m->timing.box_timer[i];
		box_sends(m, b, end_ns);
		if (b->nr_sent && (!last || b->sent_ns > last->sent_ns))
			last = b;
	}
	*ret = (struct model_box){0};
	if (!last || last->sent_ns > end_ns)
		return false;
	*ret = (struct model_box){.set_ns = last->sum_ns,
		.after_ns = end_ns - last->sent_ns,
		.nr = last->nr_sent,
		.site = last->sent_site};
	return true;
}

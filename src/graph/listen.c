/* SPDX-License-Identifier: Apache-2.0 */
/* listen.c - tells a listener of each moment: what closed, and which dependences counted. */
#include "graph/priv.h"

/* The dependences in the listener's words, and the one that became available last (NULL: none). */
static const struct dep *translate(
	struct graph_dependence *told, const struct dep *dep, size_t nr_deps)
{
	const struct dep *latest = NULL;

	for (size_t i = 0; i < nr_deps; i++) {
		const struct dep *d = &dep[i];

		told[i] = (struct graph_dependence){
			.available_ns = d->available_ns,
			.from_actor = d->actor,
			.mark = d->mark,
			.queue = d->link ? NONE : d->queue,
			.space = d->space,
		};
		if (!latest || d->available_ns > latest->available_ns ||
			(d->available_ns == latest->available_ns && d->order > latest->order))
			latest = d;
	}
	return latest;
}

/* A wait on no known queue was on the one that ended it. */
static void tell_wait(struct graph_moment *m, const struct actor *a, const struct dep *latest)
{
	m->wait_queue = NONE;
	if (a->wait == WAIT_NO)
		return;
	m->waited = true;
	if (a->wait != WAIT_UNKNOWN) {
		m->wait_queue = a->wait_queue;
		m->waited_for_space = a->wait == WAIT_SPACE;
	} else if (latest && !latest->link) {
		m->wait_queue = latest->queue;
		m->waited_for_space = latest->space;
	}
}

enum base_status graph_tell(struct graph *g, struct actor *a, const struct graph_verb *v,
	uint64_t t, bool pathless, const struct dep *dep, size_t nr_deps, struct base_err *err)
{
	struct graph_moment m = {
		.begin_ns = a->started ? a->t_last : t,
		.end_ns = t,
		.actor = a->id,
		.state = a->started ? a->state : NONE,
		.next_state = v->state,
		.nr_deps = nr_deps,
	};
	const struct dep *latest;
	enum base_status s = graph_mem_need(g, &g->listening.told, &g->listening.told_capacity,
		nr_deps, sizeof *g->listening.told, err);

	if (s)
		return s;
	latest = translate(g->listening.told, dep, nr_deps);
	tell_wait(&m, a, latest);
	m.last = latest ? (size_t)(latest - dep) : 0;
	m.explained = latest && (pathless || (m.waited && latest->available_ns > a->t_last));
	m.latency_ns = m.explained ? t - latest->available_ns : 0;
	m.dep = g->listening.told;
	return g->listening.listener->moment(g->listening.listener->ctx, &m, &a->mark, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* unseen.c - waits that ended, and nobody was seen to end them: how many of which kind. */
#include "model/model_private.h"

#include <stdlib.h>

/* The kind is the state that the wait is then found to be: its call, object and place in the
 * kernel. What finds no room any more is counted with the last kind. */
static void unseen_count_kind(
	struct model *m, const struct thread *t, uint32_t state, uint64_t begin_ns, uint64_t ns)
{
	struct model_unseen *k = NULL;
	for (size_t i = 0; i < m->kernel.nr_unseen_kinds && !k; i++)
		if (m->kernel.unseen_kind[i].state == state)
			k = &m->kernel.unseen_kind[i];
	if (!k && m->kernel.nr_unseen_kinds < MODEL_UNSEEN_KINDS) {
		k = &m->kernel.unseen_kind[m->kernel.nr_unseen_kinds++];
		*k = (struct model_unseen){.state = state};
	}
	if (!k) {
		k = &m->kernel.unseen_kind[MODEL_UNSEEN_KINDS - 1];
		k->several = true;
	}
	k->nr++;
	k->total_ns += ns;
	if (ns >= k->longest_ns) {
		k->longest_ns = ns;
		k->longest_begin_ns = begin_ns;
		k->longest_actor = t->actor;
	}
}

void model_unseen_wake(struct model *m, const struct thread *t, uint32_t state, uint64_t time_ns)
{
	struct run_time *rt = model_run_time(m, t->process);
	model_count(m, TRACE_DIAG_wakes_unseen);
	rt->nr_unseen++;
	unseen_count_kind(m, t, state, t->k.asleep_ns, time_ns - t->k.asleep_ns);
	if (t->k.asleep_ns < m->kernel.hidden_until_ns)
		rt->nr_hidden++;
	else
		m->kernel.unseen[m->kernel.nr_unseen++ % MODEL_UNSEEN_MAX] = (struct unseen){
			.process = t->process, .begin_ns = t->k.asleep_ns, .end_ns = time_ns};
}

/* What the kernel does not show went on from here to there. */
void model_hidden_run(struct model *m, uint64_t begin_ns, uint64_t end_ns)
{
	for (uint32_t i = 0; i < MODEL_UNSEEN_MAX; i++) {
		struct unseen *u = &m->kernel.unseen[i];
		if (!u->end_ns || u->end_ns < begin_ns || u->begin_ns > end_ns)
			continue;
		model_run_time(m, u->process)->nr_hidden++;
		u->end_ns = 0;
	}
	m->kernel.hidden_until_ns = end_ns;
}

static int unseen_most_first(const void *pa, const void *pb)
{
	const struct model_unseen *a = pa, *b = pb;
	if (a->nr != b->nr)
		return a->nr < b->nr ? 1 : -1;
	return a->state < b->state ? -1 : a->state > b->state;
}

const struct model_unseen *model_unseen_kinds(struct model *m, size_t *ret_nr)
{
	qsort(m->kernel.unseen_kind, m->kernel.nr_unseen_kinds, sizeof *m->kernel.unseen_kind,
		unseen_most_first);
	*ret_nr = m->kernel.nr_unseen_kinds;
	return m->kernel.unseen_kind;
}

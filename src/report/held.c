/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.c - the lock under which the path spends its time, when others waited for it. The path's
 * states name what its actor does: asleep, in a write. That it holds a lock meanwhile only `locks`
 * knew (report/locks_path.c), and so did nobody who reads the report alone. A lock that keeps
 * nobody waiting hides nothing that is done under it.
 */
#include "report/locks.h"
#include "report/private.h"

#define WAITED_MIN 0.01 /* of the path: for how long others waited for it, all in all */
#define SHARE_MIN  0.05 /* of the path: what is done under it */

/* Did anybody wait for a lock? Only then is it worth to go through the trace once more. */
static bool has_contended(struct model *m, double elapsed_ns)
{
	const struct graph *g = model_graph(m);
	uint64_t waited_ns = 0;
	for (uint32_t i = 0; i < graph_nr_queues(g); i++)
		if (model_object_is(model_queue(m, i)->type, MODEL_TRAIT_lock))
			waited_ns += graph_queue_stats(g, i)->wait_data_ns;
	return (double)waited_ns >= WAITED_MIN * elapsed_ns;
}

enum base_status report_fill_held(
	struct report *r, const struct report_run *run, struct model *m, struct base_err *err)
{
	struct report_locks_options opts = {
		.size = sizeof opts, .sort = REPORT_LOCK_SORT_path, .nr_gains_max = 3};
	struct report_locks *locks = NULL;
	if (!has_contended(m, r->elapsed_ns))
		return BASE_OK;
	enum base_status s = report_locks_build(run, &opts, &locks, err);
	if (s != BASE_OK)
		return s == BASE_ERR_NOTFOUND ? BASE_OK : s;
	for (size_t i = 0; i < locks->nr_locks && !r->held.name; i++) {
		const struct report_lock *l = &locks->lock[i];
		double waited_ns = (double)l->use.wait.total_ns;
		if (l->path_ns < SHARE_MIN * locks->path_ns || !l->use.contended ||
			waited_ns < WAITED_MIN * locks->path_ns)
			continue;
		r->held = (struct report_held){.name = report_clean(r->arena, l->name),
			.path_share = l->path_ns / locks->path_ns,
			.nr_waits = l->use.contended,
			.wait_ns = l->use.wait.total_ns,
			.halved_speedup = l->halved.tried ? report_lock_gain(l) : 0};
		if (!r->held.name)
			s = report_no_memory(err);
	}
	report_locks_free(locks);
	return s;
}

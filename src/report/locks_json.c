/* SPDX-License-Identifier: Apache-2.0 */
/* locks_json.c - struct report_locks for programs. What is not known has no key. */
#include "report/locks_private.h"

#include <math.h>

static void locks_json_set(json_t *o, const char *key, json_t *value)
{
	json_object_set_new(o, key, value);
}

static void set_times_of(json_t *o, const char *key, const struct report_times *t, double mean_ns)
{
	if (!t->nr)
		return;
	json_t *times = json_pack("{s:o, s:o, s:o}", "count", report_json_u64(t->nr), "total_ns",
		report_json_u64(t->total_ns), "mean_ns", report_json_ns(mean_ns));
	if (t->max_ns || !t->total_ns) /* of conditions that are counted it is not known */
		locks_json_set(times, "max_ns", report_json_u64(t->max_ns));
	locks_json_set(o, key, times);
}

static void set_times(json_t *o, const char *key, const struct report_times *t)
{
	set_times_of(o, key, t, t->nr ? (double)t->total_ns / (double)t->nr : 0);
}

static void set_use(json_t *o, const struct report_lock_use *u)
{
	locks_json_set(o, "acquisitions", report_json_u64(u->acquired));
	locks_json_set(o, "shared_acquisitions", report_json_u64(u->shared));
	locks_json_set(o, "reacquisitions_after_wait", report_json_u64(u->retaken));
	if (u->nested)
		locks_json_set(o, "nested_acquisitions", report_json_u64(u->nested));
	locks_json_set(o, "contended", report_json_u64(u->contended));
	locks_json_set(o, "contended_share",
		report_json_share(u->acquired ? (double)u->contended / (double)u->acquired : 0));
	locks_json_set(o, "failed", report_json_u64(u->failed));
	set_times(o, "wait", &u->wait);
	set_times_of(o, "hold", &u->hold, report_lock_hold_mean_ns(u));
	set_times(o, "lock_call", &u->lock_call);
	set_times(o, "unlock_call", &u->unlock_call);
	if (u->hold.nr) {
		locks_json_set(o, "held_ns", report_json_u64(report_lock_hold_ns(u)));
		locks_json_set(
			o, "held_estimated", json_boolean(u->hold.nr < report_lock_holds(u)));
		locks_json_set(o, "held_standard_error_ns", report_json_ns(sqrt(u->hold_variance)));
	}
}

static void set_events(json_t *o, const struct report_locks *l, const struct report_lock_use *u)
{
	json_t *events = report_lock_events_json(l, u);
	if (events)
		locks_json_set(o, "events", events);
}

static json_t *distribution(const struct base_histogram *h)
{
	static const struct {
		const char *key;
		double share;
	} quantile[] = {{"p50_ns", 0.5}, {"p90_ns", 0.9}, {"p99_ns", 0.99}};
	json_t *o = json_object();
	for (size_t i = 0; i < BASE_COUNT(quantile); i++)
		locks_json_set(o, quantile[i].key,
			report_json_u64(base_histogram_quantile(h, quantile[i].share)));
	return o;
}

static json_t *sites(const struct report_lock *l)
{
	json_t *list = json_array();
	for (size_t i = 0; i < l->nr_sites; i++) {
		json_t *o = json_pack("{s:s}", "where", l->site[i].where);
		set_use(o, &l->site[i].use);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *locks_json_lock(const struct report_locks *all, const struct report_lock *l)
{
	json_t *o = json_pack("{s:s, s:s, s:o, s:o}", "lock", l->name, "type", l->type, "members",
		report_json_u64(l->nr_members), "threads", report_json_u64(l->nr_threads));
	set_use(o, &l->use);
	set_events(o, all, &l->use);
	if (all->has & REPORT_LOCKS_events) {
		locks_json_set(o, "waiters_max", report_json_u64(l->waiters_max));
		locks_json_set(o, "waited_by_any_ns", report_json_u64(l->waited_by_any_ns));
		locks_json_set(o, "convoys", report_json_u64(l->nr_convoys));
		locks_json_set(o, "convoy_ns", report_json_u64(l->convoy_ns));
		locks_json_set(
			o, "convoy_longest_acquisitions", report_json_u64(l->convoy_longest));
	}
	if (l->hold.count)
		locks_json_set(o, "hold_distribution", distribution(&l->hold));
	if (l->wait.count)
		locks_json_set(o, "wait_distribution", distribution(&l->wait));
	if (all->has & REPORT_LOCKS_path) {
		locks_json_set(o, "path_ns", report_json_ns(l->path_ns));
		locks_json_set(o, "path_share", report_json_share(l->path_ns / all->path_ns));
		locks_json_set(o, "path_hold_ns", report_json_ns(l->path_hold_ns));
	}
	if (l->halved.tried) {
		json_t *h = json_pack("{s:o, s:s, s:o}", "predicted_speedup",
			report_json_share(report_lock_gain(l)), "method",
			report_method_of(l->halved.answer.best.replay_share), "path_speedup",
			report_json_share(l->halved.answer.path_speedup));
		if (l->halved.answer.replayed)
			locks_json_set(h, "replay_speedup",
				report_json_share(l->halved.answer.replay_speedup));
		locks_json_set(o, "halved_hold", h);
	}
	locks_json_set(o, "sites", sites(l));
	return o;
}

static json_t *conds(const struct report_locks *l)
{
	json_t *list = json_array();
	for (size_t i = 0; i < l->nr_conds; i++) {
		const struct report_lock_cond *x = &l->cond[i];
		json_t *o = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "condition_variable",
			x->name, "members", report_json_u64(x->nr_members), "waits",
			report_json_u64(x->waits), "timeouts", report_json_u64(x->timeouts),
			"signals", report_json_u64(x->signals), "broadcasts",
			report_json_u64(x->broadcasts));
		set_times(o, "wait", &x->wait);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *locks_json_threads(const struct report_locks *l)
{
	json_t *list = json_array();
	for (size_t i = 0; i < l->nr_threads; i++) {
		const struct report_lock_thread *x = &l->thread[i];
		json_t *o = json_pack("{s:s, s:o, s:o, s:o, s:o}", "thread", x->name,
			"acquisitions", report_json_u64(x->acquired), "contended",
			report_json_u64(x->contended), "static_locks",
			report_json_u64(x->nr_static), "wait_ns", report_json_u64(x->wait_ns));
		if (l->has & REPORT_LOCKS_held)
			locks_json_set(o, "held_ns", report_json_u64(x->held_ns));
		if (l->has & REPORT_LOCKS_running)
			locks_json_set(o, "running_ns", report_json_u64(x->running_ns));
		locks_json_set(o, "alive_ns", report_json_u64(x->alive_ns));
		json_array_append_new(list, o);
	}
	return list;
}

/* [{"from_ns", "dynamic", "static"}], bins that are empty in both left out. */
static json_t *bins(const uint64_t *dynamic, const uint64_t *by_static)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < REPORT_LOCK_BINS; i++)
		if (dynamic[i] || by_static[i])
			json_array_append_new(
				list, json_pack("{s:o, s:o, s:o}", "from_ns",
					      report_json_u64(i ? (uint64_t)1 << i : 0), "dynamic",
					      report_json_u64(dynamic[i]), "static",
					      report_json_u64(by_static[i])));
	return list;
}

static json_t *totals(const struct report_locks *l)
{
	json_t *o = json_object();
	set_use(o, &l->all);
	set_events(o, l, &l->all);
	locks_json_set(o, "static_locks", report_json_u64(l->nr_static));
	locks_json_set(o, "threads_locking", report_json_u64(l->nr_threads_locking));
	locks_json_set(o, "wait_all_threads_ns", report_json_u64(l->wait_ns));
	bool of_all = !(l->has & REPORT_LOCKS_some);
	if (of_all && l->has & REPORT_LOCKS_held)
		locks_json_set(o, "held_all_threads_ns", report_json_u64(l->held_ns));
	if (of_all && l->has & REPORT_LOCKS_events && l->has & REPORT_LOCKS_running)
		locks_json_set(
			o, "held_on_processor_all_threads_ns", report_json_u64(l->held_running_ns));
	if (l->cpu_ns) {
		double ticks = (double)l->cpu_ns * (double)l->tick_hz / 1e9;
		locks_json_set(o, "cpu_ns", report_json_u64(l->cpu_ns));
		locks_json_set(o, "dynamic_per_ms",
			report_json_share((double)l->all.acquired / (double)l->cpu_ns * 1e6));
		if (ticks > 0)
			locks_json_set(o, "dynamic_per_10k_ticks",
				report_json_share((double)l->all.acquired / ticks * 1e4));
	}
	return o;
}

json_t *report_locks_json(const struct report_locks *l)
{
	json_t *list = json_array();
	for (size_t i = 0; i < l->nr_locks; i++)
		json_array_append_new(list, locks_json_lock(l, &l->lock[i]));
	json_t *result = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "elapsed_ns",
		report_json_u64(l->elapsed_ns), "tick_hz", report_json_u64(l->tick_hz), "totals",
		totals(l), "locks", list, "condition_variables", conds(l), "threads",
		locks_json_threads(l));
	const struct report_lock_bins *d = &l->dynamic, *s = &l->by_static;
	locks_json_set(result, "histograms",
		json_pack("{s:o, s:o, s:o, s:o}", "hold", bins(d->hold, s->hold), "wait",
			bins(d->wait, s->wait), "lock_call", bins(d->lock_call, s->lock_call),
			"unlock_call", bins(d->unlock_call, s->unlock_call)));
	locks_json_set(
		result, "counted_without_times", json_boolean(!(l->has & REPORT_LOCKS_events)));
	if (*l->mode)
		locks_json_set(result, "recorded_as", report_json_text(l->mode));
	if (l->nr_full)
		locks_json_set(result, "table_full_acquisitions", report_json_u64(l->nr_full));
	if (l->floor_bare_ps) {
		locks_json_set(result, "floor_bare_ps", report_json_u64(l->floor_bare_ps));
		locks_json_set(result, "floor_stamps_ps", report_json_u64(l->floor_stamps_ps));
	}
	if (l->has & REPORT_LOCKS_path) {
		locks_json_set(result, "path_ns", report_json_ns(l->path_ns));
		locks_json_set(result, "path_outside_ns", report_json_ns(l->outside_ns));
	}
	if (l->has & REPORT_LOCKS_replay)
		locks_json_set(result, "replay_own_error_share", report_json_share(l->own_error));
	return report_envelope("longpole/locks/1", &l->trace, result);
}

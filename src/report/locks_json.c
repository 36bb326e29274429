/* SPDX-License-Identifier: Apache-2.0 */
/* locks_json.c - the tables of struct report_locks, for people and programs; what is computed for
 * them. */
#include "report/locks_private.h"

#include <math.h>

enum { LOCKS_OF_ALL = REPORT_LOCKS_some }; /* in .needs: where that is not set */

static double locks_mean_ns(const void *row, const void *all)
{
	const struct report_times *t = row;
	(void)all;
	return t->nr ? (double)t->total_ns / (double)t->nr : 0;
}

/* Of conditions that are counted it is not known. */
static double locks_max_ns(const void *row, const void *all)
{
	const struct report_times *t = row;
	(void)all;
	return t->max_ns || !t->total_ns ? (double)t->max_ns : NAN;
}

static uint64_t locks_hold_mean_ns(const void *row, const void *all)
{
	(void)all;
	return (uint64_t)report_lock_hold_mean_ns(row);
}

static uint64_t locks_held_ns(const void *row, const void *all)
{
	(void)all;
	return report_lock_hold_ns(row);
}

static bool locks_is_estimated(const void *row, const void *all)
{
	const struct report_lock_use *u = row;
	(void)all;
	return u->hold.nr < report_lock_holds(u);
}

static double locks_standard_error_ns(const void *row, const void *all)
{
	(void)all;
	return sqrt(((const struct report_lock_use *)row)->hold_variance);
}

static uint64_t locks_median_ns(const void *row, const void *all)
{
	(void)all;
	return base_histogram_quantile(row, 0.5);
}

static uint64_t locks_p90_ns(const void *row, const void *all)
{
	(void)all;
	return base_histogram_quantile(row, 0.9);
}

static uint64_t locks_p99_ns(const void *row, const void *all)
{
	(void)all;
	return base_histogram_quantile(row, 0.99);
}

static double locks_gain(const void *row, const void *all)
{
	(void)all;
	return report_lock_gain(row);
}

static const char *locks_method(const void *row, const void *all)
{
	(void)all;
	return report_method_of(((const struct report_lock *)row)->halved.answer.best.replay_share);
}

static double locks_path_share(const void *row, const void *all)
{
	return ((const struct report_lock *)row)->path_ns /
	       ((const struct report_locks *)all)->path_ns;
}

static json_t *locks_lock_events(const void *row, const void *all)
{
	return report_lock_events_json(all, &((const struct report_lock *)row)->use);
}

static json_t *locks_all_events(const void *row, const void *all)
{
	return report_lock_events_json(all, &((const struct report_locks *)row)->all);
}

static double locks_per_ms(const void *row, const void *all)
{
	const struct report_locks *l = row;
	(void)all;
	return (double)l->all.acquired / (double)l->cpu_ns * 1e6;
}

static double locks_per_10k_ticks(const void *row, const void *all)
{
	const struct report_locks *l = row;
	double ticks = (double)l->cpu_ns * (double)l->tick_hz / 1e9;
	(void)all;
	return ticks > 0 ? (double)l->all.acquired / ticks * 1e4 : NAN;
}

static bool locks_have_no_times(const void *row, const void *all)
{
	(void)all;
	return !(((const struct report_locks *)row)->has & REPORT_LOCKS_events);
}

struct locks_bin {
	uint64_t from_ns, dynamic, by_static;
};
static json_t *locks_hold_json(const void *row, const void *all);
static json_t *locks_hold_bins(const void *row, const void *all);
static json_t *locks_wait_bins(const void *row, const void *all);
static json_t *locks_lock_bins(const void *row, const void *all);
static json_t *locks_unlock_bins(const void *row, const void *all);

#include "report/locks.def"

/* Its mean is of all holds. */
static json_t *locks_hold_json(const void *row, const void *all)
{
	const struct report_lock_use *u = row;
	json_t *o = base_table_json(&locks_duration, &u->hold, all, 0);
	json_object_set_new(o, "mean_ns", report_json_ns(report_lock_hold_mean_ns(u)));
	return o;
}

/* Bins that are empty in both are left out. */
static json_t *locks_bins_json(const uint64_t *dynamic, const uint64_t *by_static)
{
	struct locks_bin bin[REPORT_LOCK_BINS];
	size_t nr = 0;
	for (unsigned i = 0; i < REPORT_LOCK_BINS; i++)
		if (dynamic[i] || by_static[i])
			bin[nr++] = (struct locks_bin){
				i ? (uint64_t)1 << i : 0, dynamic[i], by_static[i]};
	return base_table_json_list(&locks_bin, bin, nr, NULL, 0);
}

#define LOCKS_BINS(name, member)                                                                   \
	static json_t *name(const void *row, const void *all)                                      \
	{                                                                                          \
		const struct report_locks *l = row;                                                \
		(void)all;                                                                         \
		return locks_bins_json(l->dynamic.member, l->by_static.member);                    \
	}
LOCKS_BINS(locks_hold_bins, hold)
LOCKS_BINS(locks_wait_bins, wait)
LOCKS_BINS(locks_lock_bins, lock_call)
LOCKS_BINS(locks_unlock_bins, unlock_call)

json_t *report_locks_json(const struct report_locks *l)
{
	return report_envelope(report_locks_document.name, &l->trace,
		base_table_json(&report_locks_document, l, l, l->has ^ LOCKS_OF_ALL));
}

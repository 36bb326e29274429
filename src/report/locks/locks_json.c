/* SPDX-License-Identifier: Apache-2.0 */
/* locks_json.c - the tables of struct report_locks, for people and programs; what is computed for
 * them. */
#include "report/locks/locks_private.h"

#include <math.h>

enum { LOCKS_OF_ALL = REPORT_LOCKS_some }; /* in .needs: where that is not set */
struct locks_bin {
	uint64_t from_ns, dynamic, by_static;
};
static json_t *locks_json_hold(const struct report_lock_use *u);
static json_t *locks_json_bins(const uint64_t *dynamic, const uint64_t *by_static);

static double locks_json_ticks(const struct report_locks *l)
{
	return (double)l->cpu_ns * (double)l->tick_hz / 1e9;
}

#include "report/locks/locks.def"

/* Its mean is of all holds. */
static json_t *locks_json_hold(const struct report_lock_use *u)
{
	json_t *o = base_table_json(&locks_duration, &u->hold, NULL, 0);
	json_object_set_new(o, "mean_ns", report_json_ns(report_lock_hold_mean_ns(u)));
	return o;
}

/* Bins that are empty in both are left out. */
static json_t *locks_json_bins(const uint64_t *dynamic, const uint64_t *by_static)
{
	struct locks_bin bin[REPORT_LOCK_BINS];
	size_t nr = 0;
	for (unsigned i = 0; i < REPORT_LOCK_BINS; i++)
		if (dynamic[i] || by_static[i])
			bin[nr++] = (struct locks_bin){
				i ? (uint64_t)1 << i : 0, dynamic[i], by_static[i]};
	return base_table_json_list(&locks_bin, bin, nr, NULL, 0);
}

json_t *report_locks_json(const struct report_locks *l)
{
	return report_envelope(report_locks_document.name, &l->trace,
		base_table_json(&report_locks_document, l, l, l->has ^ LOCKS_OF_ALL));
}

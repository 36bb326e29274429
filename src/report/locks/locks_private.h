/* SPDX-License-Identifier: Apache-2.0 */
/* locks_private.h - shared by locks*.c: what one pass over the records counts, before names. */
#ifndef LONGPOLE_REPORT_LOCKS_PRIVATE_H
#define LONGPOLE_REPORT_LOCKS_PRIVATE_H

#include "report/locks/locks.h"
#include "report/predict/predictor.h"
#include "trace/enums.h"

struct lock_cell { /* one lock, taken at one place */
	uint32_t object, site;
	struct report_lock_use use;
};
struct lock_object {
	uint32_t object;
	uint64_t nr_threads, nr_waiting, waiting_since_ns;
	uint64_t waiters_max, waited_by_any_ns;
	uint64_t run, run_since_ns, run_last_ns; /* acquisitions in a row that had to wait */
	uint64_t nr_convoys, convoy_ns, convoy_longest;
	struct base_histogram hold, wait;
};
struct lock_cond {
	uint32_t object, site; /* site: of a counted one, the lowest at which a thread waited */
	struct report_lock_cond sum;
};
struct lock_held {
	uint32_t object, site;
	bool shared;
	uint64_t since_ns;
	uint64_t told_ns; /* the path was told of it until then */
};
struct lock_thread {
	uint32_t stream;
	struct lock_held *held;
	size_t nr_held, held_capacity;
	uint64_t held_since_ns;            /* nr_held > 0 */
	uint32_t waits_object, waits_cond; /* 0: none */
	uint64_t wait_since_ns, cond_since_ns;
	uint32_t calls_object, leaves_object, leaves_site; /* in the lock function; in unlock */
	uint64_t call_since_ns, leave_since_ns;
	bool on_processor, began, ended;
	uint64_t task; /* of an event loop, that has its turn; 0: none */
	uint64_t processor_since_ns, begin_ns, last_ns;
	struct report_lock_thread sum;
};
struct lock_piece { /* of the critical path, inside one actor */
	uint32_t actor, state;
	uint64_t begin_ns, end_ns;
	double weight; /* path time a ns */
};
struct lock_under { /* path time in a state while the lock was held */
	uint32_t object, state;
	double ns;
};
struct lock_path {
	struct lock_piece *piece; /* by actor, then time */
	size_t nr_pieces;
	double *state_ns; /* path time of each state, inside actors */
	uint32_t nr_states;
	struct lock_under *under;
	size_t nr_unders, unders_capacity;
	struct base_map unders; /* (object, state) -> under */
};
struct model;
/* Of a model that was run with keep_path. */
enum base_status report_lock_path_init(
	struct lock_path *p, struct model *m, struct base_err *err) BASE_MUST_CHECK;
void report_lock_path_fini(struct lock_path *p);
/* The actor held the lock from begin to end. False: no memory. */
bool report_lock_path_hold(
	struct lock_path *p, uint32_t actor, uint32_t object, uint64_t begin_ns, uint64_t end_ns);

struct lock_count {
	struct lock_path *path; /* hears every hold; NULL: nobody does */
	const struct model *model;
	uint64_t from_ns, to_ns; /* the window: intervals are cut to it */
	unsigned has;            /* REPORT_LOCKS_events, _tallies, _calls, _running, _held */
	struct lock_cell *cell;
	struct lock_object *object;
	struct lock_cond *cond;
	struct lock_thread *thread;
	size_t nr_cells, nr_objects, nr_conds, nr_threads;
	size_t cells_capacity, objects_capacity, conds_capacity, threads_capacity;
	struct base_map cell_of, object_of, cond_of, thread_of, pairs;
	struct report_lock_bins dynamic;
	uint64_t nr_full, floor_bare_ps, floor_stamps_ps;
	uint32_t mode; /* string id */
	const struct trace_defs *defs;
	const char *event_name[REPORT_LOCK_EVENTS]; /* of defs */
	unsigned nr_events;
	bool no_memory;
};
/* One pass over the run's records. */
enum base_status report_locks_count(struct lock_count *c, const struct report_run *run,
	struct lock_path *path, const struct model *m, struct base_err *err) BASE_MUST_CHECK;
void report_locks_count_fini(struct lock_count *c);

void report_lock_use_add(struct report_lock_use *to, const struct report_lock_use *from);
unsigned report_lock_bin(uint64_t ns);
/* locks.def */
extern const struct base_table report_lock_table, report_lock_site_table, report_lock_cond_table,
	report_lock_thread_table;

/* Time of all holds: measured, or estimated; and of one. */
uint64_t report_lock_hold_ns(const struct report_lock_use *u);
double report_lock_hold_mean_ns(const struct report_lock_use *u);

#endif

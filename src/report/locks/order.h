/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h - deadlocks that did not happen, but could: the order in which threads take locks.
 *
 * A thread that takes lock B while it has lock A makes an edge A -> B, unless it could not wait for
 * B for ever (pthread_mutex_trylock(), pthread_mutex_timedlock(), std::scoped_lock). A cycle of
 * edges of different threads is a potential deadlock, unless a lock that all of them had guards it
 * (gate lock), or thread creation and joins never let them run at the same time. K. Havelund,
 * "Using runtime analysis to guide model checking of Java programs", SPIN 2000 (GoodLock); S.
 * Bensalem, K. Havelund, "Dynamic deadlock analysis of multi-threaded programs", HVC 2005 (gate
 * locks, segments).
 */
#ifndef LONGPOLE_REPORT_ORDER_H
#define LONGPOLE_REPORT_ORDER_H

#include "report/predict/predict.h"

enum { REPORT_ORDER_LENGTH_MAX = 6, REPORT_ORDER_CYCLES_MAX = 256 };

struct report_order_step { /* has one lock, takes the next */
	const char *thread;
	const char *has, *has_where;
	const char *takes, *takes_where;
	bool has_shared, takes_shared; /* as a reader of a rwlock */
	uint64_t times;
};
struct report_order_cycle {
	struct report_order_step step[REPORT_ORDER_LENGTH_MAX];
	size_t nr_steps;
};
struct report_order {
	struct base_arena *arena;
	const char *trace_path, *command;
	struct report_order_cycle *cycle; /* the shortest first */
	size_t nr_cycles;
	bool cut; /* there are more than REPORT_ORDER_CYCLES_MAX */
	uint64_t nr_locks, nr_edges, nr_acquired, nr_threads;
	uint64_t nr_gated,
		nr_ordered; /* cycles left out: a lock guards them; one ends before another */
	uint64_t nr_tried;  /* acquisitions that could not wait for ever: they make no edge */
	uint64_t nr_lost;   /* records that the recorder lost */
};

enum base_status report_order_build(const struct report_run *run, struct report_order **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_order *report_order_free(struct report_order *o);
void report_order_text(struct base_str *out, const struct report_order *o);
json_t *report_order_json(const struct report_order *o);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - who has slept, and since when. */
#ifndef LONGPOLE_DEADLOCK_MONITOR_H
#define LONGPOLE_DEADLOCK_MONITOR_H

#include "deadlock/facts/types.h"

/*
 * A pass costs about 0.25 us a thread where BPF is allowed (root), else about 5 us
 * from /proc. A thread that was not put on a processor since the last pass has slept all the time;
 * `since_ns` is when that was first seen, so it is never too early.
 */
struct deadlock_sleeper {
	struct deadlock_thread thread;
	uint64_t since_ns; /* of the clock given to deadlock_monitor_pass() */
	uint32_t nr_looks; /* passes since then; 0: it is new, or ran */
};
struct deadlock_monitor;
enum base_status deadlock_monitor_open(
	bool use_bpf, struct deadlock_monitor **ret, struct base_err *err) BASE_MUST_CHECK;
struct deadlock_monitor *deadlock_monitor_close(struct deadlock_monitor *m);
/* Why BPF is not used; NULL: it is. */
const char *deadlock_monitor_without_bpf(const struct deadlock_monitor *m);
enum base_status deadlock_monitor_pass(
	struct deadlock_monitor *m, uint64_t now_ns, struct base_err *err) BASE_MUST_CHECK;
/* All user threads of the last pass, sorted by tid; until the next pass. */
const struct deadlock_sleeper *deadlock_monitor_threads(
	const struct deadlock_monitor *m, size_t *ret_nr);
/* A thread of the last pass has slept on, though it has `t->runs` by now: we stopped it. */
void deadlock_monitor_forgive(struct deadlock_monitor *m, const struct deadlock_thread *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* perf_own.c - which of everybody's events are of the program that is recorded. */
#include "system/perf_own.h"

#define NO_TID                                                                                     \
	UINT32_MAX /* as the kernel writes it: a thread that has ended leaves its processor */

void system_perf_own_init(struct system_perf_own *own, uint32_t child)
{
	*own = (struct system_perf_own){.awaited = child};
}

void system_perf_own_fini(struct system_perf_own *own)
{
	base_map_fini(&own->tasks);
	base_map_fini(&own->ending);
	base_map_fini(&own->execed);
}

bool system_perf_own_outlives(struct system_perf_own *own, const struct system_perf_record *r)
{
	uint32_t tid = r->event.tid;
	if (r->event.kind == RECORD_EVENT_exec) {
		if (base_map_put(&own->execed, 0, tid, 1) != BASE_OK)
			base_map_fini(&own->execed); /* without memory ends are believed */
		return false;
	}
	bool fresh = own->execed.nr_used && base_map_remove(&own->execed, 0, tid);
	return fresh && r->event.kind == RECORD_EVENT_exit;
}

static uint64_t nr_tasks(const struct system_perf_own *own, uint32_t pid)
{
	uint64_t nr = 0;
	return base_map_get(&own->tasks, 0, pid, &nr) ? nr : 0;
}

static bool set_tasks(struct system_perf_own *own, struct system_perf_record *r, uint64_t nr)
{
	if (base_map_put(&own->tasks, 0, r->event.pid, nr) == BASE_OK)
		return true;
	r->event.kind = RECORD_EVENT_lost;
	r->event.ip = 1;
	return true;
}

static bool take_fork(struct system_perf_own *own, struct system_perf_record *r)
{
	uint64_t nr = nr_tasks(own, r->event.pid);
	if (!nr && !nr_tasks(own, r->event.other))
		return false;
	base_map_remove(&own->ending, 0, r->event.tid);
	return set_tasks(own, r, nr + 1);
}

static bool perf_own_take_exit(struct system_perf_own *own, struct system_perf_record *r)
{
	uint64_t nr = nr_tasks(own, r->event.pid);
	if (!nr)
		return false;
	if (nr == 1)
		base_map_remove(&own->tasks, 0, r->event.pid);
	else if (base_map_put(&own->ending, 0, r->event.tid, 1) == BASE_OK)
		return set_tasks(own, r, nr - 1);
	return true;
}

/* The child's first one is where all begins; one that is not its process's first thread takes the
 * number of that one, which has ended. */
static bool take_exec(struct system_perf_own *own, struct system_perf_record *r)
{
	base_map_remove(&own->ending, 0, r->event.tid);
	if (own->awaited && r->event.pid == own->awaited) {
		own->awaited = 0;
		return set_tasks(own, r, 1);
	}
	return nr_tasks(own, r->event.pid) > 0;
}

bool system_perf_own_takes(struct system_perf_own *own, struct system_perf_record *r)
{
	uint64_t is_ending;
	switch (r->event.kind) {
	case RECORD_EVENT_lost: /* whose, nobody knows */
		return true;
	case RECORD_EVENT_fork:
		return take_fork(own, r);
	case RECORD_EVENT_exit:
		return perf_own_take_exit(own, r);
	case RECORD_EVENT_exec:
		return take_exec(own, r);
	default:
		break;
	}
	if (!nr_tasks(own, r->event.pid) || r->event.tid == NO_TID)
		return false;
	if (!own->ending.nr_used || !base_map_get(&own->ending, 0, r->event.tid, &is_ending))
		return true;
	/* On its own each event of a thread ends before its last switch: here, too. */
	if (r->event.kind == RECORD_EVENT_out)
		base_map_remove(&own->ending, 0, r->event.tid);
	return false;
}

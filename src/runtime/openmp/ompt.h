/* SPDX-License-Identifier: Apache-2.0 */
/* ompt.h - of OpenMP's tool interface (OMPT: OpenMP 5.1, chapter 4) what we use: compilers
 * that have it bring it as omp-tools.h, gcc does not. */
#ifndef LONGPOLE_RUNTIME_OPENMP_OMPT_H
#define LONGPOLE_RUNTIME_OPENMP_OMPT_H

#include <stdint.h>

/* A word of the tool's with a thread, a region, a task. */
union ompt_word {
	uint64_t value;
	void *address;
};

typedef void ompt_function(void);
typedef ompt_function *ompt_lookup(const char *name);

/* ompt_start_tool_result_t */
struct ompt_tool {
	int (*initialize)(ompt_lookup *lookup, int device, union ompt_word *tool);
	void (*finalize)(union ompt_word *tool);
	union ompt_word word;
};

enum ompt_event {
	OMPT_thread_end = 2,
	OMPT_parallel_begin = 3,
	OMPT_parallel_end = 4,
	OMPT_task_create = 5,
	OMPT_task_schedule = 6,
	OMPT_implicit_task = 7,
	OMPT_sync_region_wait = 16,
	OMPT_task_dependence = 19,
	OMPT_sync_region = 23,
};

enum ompt_scope { OMPT_BEGIN = 1, OMPT_END = 2 };

enum ompt_sync {
	OMPT_BARRIER = 1,
	OMPT_BARRIER_IMPLICIT = 2, /* until OpenMP 5.1: of a loop or the like, or a region's end */
	OMPT_BARRIER_EXPLICIT = 3,
	OMPT_BARRIER_IMPLEMENTATION = 4,
	OMPT_TASKWAIT = 5,
	OMPT_TASKGROUP = 6,
	OMPT_REDUCTION = 7,
	OMPT_BARRIER_WORKSHARE = 8,
	OMPT_BARRIER_PARALLEL = 9, /* a region's end */
	OMPT_BARRIER_TEAMS = 10,   /* ... of a league of teams */
};

/* of a task's flags */
enum { OMPT_TASK_INITIAL = 0x1, OMPT_TASK_TASKWAIT = 0x10 };

/* why a thread leaves a task */
enum ompt_task_status {
	OMPT_TASK_COMPLETE = 1,
	OMPT_TASK_YIELD = 2,
	OMPT_TASK_CANCEL = 3,
	OMPT_TASK_DETACH = 4, /* its text is over, an event of it is to come */
	OMPT_TASK_EARLY_FULFILL = 5,
	OMPT_TASK_LATE_FULFILL = 6, /* ... and has come */
	OMPT_TASK_SWITCH = 7,
	OMPT_TASKWAIT_COMPLETE = 8,
};

#endif

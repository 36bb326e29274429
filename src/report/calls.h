/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - what a program does in libc, libm and pthreads (seed 001, section 5): by category,
 * function and place, from call_count and call_time records.
 *
 * A call's time is inclusive of all that the function called; a call made inside another counted
 * function is that one's in the categories, and stands in its own row with `inside`.
 */
#ifndef LONGPOLE_REPORT_CALLS_H
#define LONGPOLE_REPORT_CALLS_H

#include "report/report.h"
#include "trace/enums.h"

/* Events that the processor, or the kernel, counted in calls, by their place in event_name. */
enum { REPORT_CALL_EVENTS = 4 };
enum report_call_mode { REPORT_CALL_USER, REPORT_CALL_KERNEL, REPORT_CALL_MODES };
struct report_call_event {
	uint64_t nr, count, special_nr, special_count; /* measured, as timed and special below */
	double all;                                    /* of all calls, estimated place by place */
};

struct report_call_use {
	uint64_t calls, bytes;
	uint64_t failed, last_error;      /* error: of where most failed; 0: not known */
	uint64_t most_failed;             /* there */
	uint64_t timed, timed_ns, max_ns; /* timed: all calls, or a sample */
	uint64_t special, special_ns;     /* beside the sample, all timed */
	bool special_waits;               /* ... of which only the next line's had a processor */
	uint64_t special_cpu, special_cpu_ns;   /* of special: processor time was measured */
	uint64_t cpu_timed, cpu_timed_ns;       /* of those that enter the kernel */
	uint64_t kernel_timed, kernel_timed_ns; /* of timed: inside of system calls */
	uint64_t kernel_special, kernel_special_ns;
	double ns, cpu_ns, kernel_ns; /* of all calls, estimated place by place; kernel_ns: of those
					 places where it was measured */
	bool is_estimate;             /* of a sample: not each call was timed */
	struct report_call_event event[REPORT_CALL_MODES][REPORT_CALL_EVENTS];
	uint64_t without_events; /* calls that `event` says nothing of */
};
struct report_call_place {
	const char *where;  /* caller */
	const char *inside; /* "" the program's own call */
	struct report_call_use use;
};
struct report_call_function {
	const char *name;
	enum trace_call category;
	struct report_call_use use;      /* all calls */
	struct report_call_use inside;   /* of these, made inside other counted functions */
	struct report_call_place *place; /* most time first */
	size_t nr_places;
};
struct report_calls {
	struct base_arena *arena;
	struct report_trace trace;
	uint64_t tick_hz, elapsed_ns, cpu_ns; /* cpu_ns: the program's; 0: not known */
	struct report_call_use all, category[TRACE_CALL_NR]; /* the program's own calls */
	struct report_call_function *function;               /* most processor time first */
	size_t nr_functions;
	uint64_t nr_full;
	bool has_kernel; /* time inside of system calls was measured */
	const char *event_name[REPORT_CALL_EVENTS];
	unsigned nr_events;
	bool has_kernel_events;
	/* Of all threads from their first counted call on. */
	double program_event[REPORT_CALL_MODES][REPORT_CALL_EVENTS];
	double least_running_share; /* of the time, that a thread's events had counters; 1: always
				     */
};
enum base_status report_calls_build(const struct report_run *run, struct report_calls **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_calls *report_calls_free(struct report_calls *c);
struct report_calls_view {
	size_t limit; /* 0: all */
	bool places;
};
void report_calls_text(struct base_str *out, const struct report_calls *c,
	const struct report_calls_view *view, const struct report_style *style);
json_t *report_calls_json(const struct report_calls *c);
/* Tables of the events, in user space and in the kernel (calls_events.c). */
void report_calls_events_text(struct base_str *out, const struct report_calls *c,
	const struct report_calls_view *view, const struct report_style *style);
json_t *report_calls_events_json(const struct report_calls *c, const struct report_call_use *u);
json_t *report_calls_program_events_json(const struct report_calls *c);

#endif

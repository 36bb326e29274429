/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - from the kernel's events, in order, to records in the streams of tasks and of
 * contexts.
 *
 * A task is foreign, then its records are written at once; or it belongs to the program that the
 * session runs (`own`): then they take the way of all kernel events of that program (see
 * record/convert.h), between the ring's records. What ran where is followed here, so that a switch
 * that the kernel did not show is noticed.
 */
#ifndef LONGPOLE_SYSTEM_CONVERT_H
#define LONGPOLE_SYSTEM_CONVERT_H

#include "record/convert.h"
#include "system/system.h"

enum {
	SYSTEM_TID_PAGE = 1 << 10, /* tasks are kept in pages of so many */
	SYSTEM_TID_MAX = 1 << 22,  /* the kernel's limit */
	SYSTEM_KERNEL_TICKS = 3,
};

struct system_kernel_task {
	uint32_t tid, pid; /* pid 0: not known yet */
	uint32_t stream;   /* of a foreign task; 0: none yet */
	bool own, recorder, begun;
	bool on_processor, woken_early, own_futex;
	bool dying; /* its end is written when it has left its processor: it still wakes its parent
		     */
	int64_t status;
	struct system_kernel_call { /* that it is in */
		uint64_t number, op, n;
		uint32_t object;
		bool active, timed; /* it has started a timer, which is due */
		int64_t delay_ns;   /* then */
	} call;
};

struct system_kernel {
	struct record_converter *converter;
	struct system_source source;
	enum system_level level;
	bool open;
	uint32_t own_pid; /* ours: the recorder's */
	/* CLOCK_MONOTONIC -> time_ns on the newest stretch of the clock */
	uint64_t line_mono_ns, line_time_ns, line_factor;
	uint64_t from_mono_ns;        /* what was before is not of this recording */
	uint64_t start_ns;            /* the same on the trace's clock */
	uint64_t event_mono_ns;       /* of the event that is converted */
	struct system_asleep *asleep; /* NULL: nobody has looked */
	struct system_kernel_task **task_page;
	struct system_kernel_cpu {
		uint32_t tid;
		bool known;
		uint32_t soft; /* stream of the softirq that runs; 0: none */
	} * cpu;
	struct base_map contexts; /* (context << 16 | vector, processor) -> stream */
	struct base_map objects;  /* see system/object.c */
	struct base_map keys;     /* (0, address) -> small number */
	uint64_t nr_keys;
	uint64_t tick[SYSTEM_KERNEL_TICKS]; /* functions of timers that nobody waits for; 0: not
					       there */
	bool ticks_known;
	struct base_map limits;     /* (0, socket) -> its buffers' limits, as last written */
	struct record_image *image; /* what describes descriptors of nobody in particular */
	uint64_t nr_descriptors, socket_device;
	uint32_t module; /* the kernel's code; 0: not mentioned yet */
	struct system_kernel_names *names;
	bool alone;                     /* nothing of this machine is looked up in /proc */
	struct system_samples *samples; /* of all threads; NULL: none */
	uint64_t nr_births;
	uint64_t nr_events, nr_switches, nr_switches_lost, nr_wakes_early;
	char no_samples_why[SYSTEM_WHY]; /* "": there are, or were not asked for */
	struct system_attempt attempt[SYSTEM_ATTEMPTS_MAX];
	unsigned nr_attempts;
};

typedef void system_kernel_handler(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns);

/* system/sample.c: samples of foreign tasks, which wait until the events before them are written.
 */
void system_samples_open(struct system_kernel *k, uint64_t sample_hz);
bool system_samples_set_hz(struct system_kernel *k, uint64_t sample_hz); /* false: as before */
void system_samples_read(struct system_kernel *k);
/* Puts those before mono_ns, at time_of_sample(). */
void system_samples_put(struct system_kernel *k, uint64_t mono_ns);
void system_samples_close(struct system_kernel *k);
uint64_t system_kernel_time(const struct system_kernel *k, uint64_t mono_ns);

/* Opens the best source. Events from now on are kept; they are converted by the first
 * system_kernel_read(). */
enum base_status system_kernel_open(struct system_kernel *k, const struct system_options *o,
	struct base_err *err) BASE_MUST_CHECK;
/* Once the converter is there. */
void system_kernel_start(struct system_kernel *k, struct record_converter *c);
/* Everything that can be put in order now. `final`: everything. The first error is the sink's. */
void system_kernel_read(struct system_kernel *k, bool final);
/* The last definitions. */
void system_kernel_finish(struct system_kernel *k);
void system_kernel_close(struct system_kernel *k); /* NULL-safe, also when not open */

/* system/asleep.c: the calls in which threads sleep when the recording begins. */
void system_asleep_read(struct system_kernel *k);
/* The task's stream is new: what it slept in goes first. */
void system_asleep_put(struct system_kernel *k, struct system_kernel_task *t);
void system_asleep_close(struct system_kernel *k);

/* ---- system/task.c --------------------------------------------------------------------------- */

/* The task with that tid, made on first sight. NULL: no memory, or no such number. */
struct system_kernel_task *system_kernel_task(struct system_kernel *k, uint32_t tid);
/* Its stream; names it from /proc when it is new. 0: no memory. */
uint32_t system_kernel_stream(struct system_kernel *k, struct system_kernel_task *t);
/* The image of its process; NULL: not known yet. */
struct record_image *system_kernel_image(
	struct system_kernel *k, const struct system_kernel_task *t);
void system_kernel_fork(struct system_kernel *k, struct system_kernel_task *parent,
	uint64_t time_ns, const struct kernel_slot *s);
void system_kernel_exec(struct system_kernel *k, struct system_kernel_task *t, uint64_t time_ns,
	const struct kernel_slot *s);
/* It has left its processor for the last time. */
void system_kernel_end(struct system_kernel *k, struct system_kernel_task *t, uint64_t time_ns);
void system_kernel_comm(struct system_kernel *k, const struct kernel_slot *s);
/* An image of the program's own has attached: `ctx` is the system_kernel. */
void system_kernel_attached(void *ctx, const struct record_image *image);
/* The stream of a context on a processor. */
uint32_t system_kernel_context(
	struct system_kernel *k, unsigned type, unsigned vector, unsigned processor);
void system_kernel_tasks_fini(struct system_kernel *k);

/* Puts a record of the event's actor: its context, or the current task. */
void system_kernel_put_actor(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, struct trace_record *r);
/* Puts a record of the task, at once or into the queue of its program's. */
void system_kernel_put(
	struct system_kernel *k, struct system_kernel_task *t, struct trace_record *r);

#endif

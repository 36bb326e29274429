/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system_convert.h - from the kernel's events, in order, to records in the streams of tasks and of
 * contexts.
 *
 * A task is foreign, then its records are written at once; or it belongs to the program that the
 * session runs (`own`): then they take the way of all kernel events of that program (see
 * session_convert.h), between the ring's records. Who ran where is followed here, so that a switch
 * that the kernel did not show is noticed.
 */
#ifndef LONGPOLE_RECORD_SYSTEM_CONVERT_H
#define LONGPOLE_RECORD_SYSTEM_CONVERT_H

#include "record/session_convert.h"
#include "record/system.h"

enum {
	RECORD_TID_PAGE = 1 << 10, /* tasks are kept in pages of so many */
	RECORD_TID_MAX = 1 << 22,  /* the kernel's limit */
	RECORD_KERNEL_TICKS = 3,
};

struct record_kernel_task {
	uint32_t tid, pid; /* pid 0: not known yet */
	uint32_t stream;   /* of a foreign task; 0: none yet */
	bool own, recorder, begun;
	bool on_processor, woken_early, own_futex;
	bool dying; /* its end is written when it has left its processor: it still wakes its parent
		     */
	int64_t status;
	struct record_kernel_call { /* that it is in */
		uint64_t number, op, n;
		uint32_t object;
		bool active, timed; /* it has started a timer, which is due */
		int64_t delay_ns;   /* then */
	} call;
};

struct record_kernel {
	struct record_converter *converter;
	struct record_source source;
	enum record_level level;
	bool open;
	uint32_t own_pid; /* ours: the recorder's */
	/* CLOCK_MONOTONIC -> time_ns on the newest stretch of the clock */
	uint64_t line_mono_ns, line_time_ns, line_factor;
	uint64_t from_mono_ns;        /* what was before is not of this recording */
	uint64_t start_ns;            /* the same on the trace's clock */
	uint64_t event_mono_ns;       /* of the event that is converted */
	struct record_asleep *asleep; /* NULL: nobody has looked */
	struct record_kernel_task **task_page;
	struct record_kernel_cpu {
		uint32_t tid;
		bool known;
		uint32_t soft; /* stream of the softirq that runs; 0: none */
	} * cpu;
	struct base_map contexts; /* (context << 16 | vector, processor) -> stream */
	struct base_map objects;  /* see system_object.c */
	struct base_map keys;     /* (0, address) -> small number */
	uint64_t nr_keys;
	uint64_t tick[RECORD_KERNEL_TICKS]; /* functions of timers that nobody waits for; 0: not
					       there */
	bool ticks_known;
	struct base_map limits;     /* (0, socket) -> its buffers' limits, as last written */
	struct record_image *image; /* what describes descriptors of nobody in particular */
	uint64_t nr_descriptors, socket_device;
	uint32_t module; /* the kernel's code; 0: not mentioned yet */
	struct record_kernel_names *names;
	bool alone;                     /* nothing of this machine is looked up in /proc */
	struct record_samples *samples; /* of all threads; NULL: none */
	uint64_t nr_births;
	uint64_t nr_events, nr_switches, nr_switches_lost, nr_wakes_early;
	char no_samples_why[RECORD_SYSTEM_WHY]; /* "": there are, or were not asked for */
	struct record_attempt attempt[RECORD_ATTEMPTS_MAX];
	unsigned nr_attempts;
};

typedef void record_kernel_handler(
	struct record_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns);

/* system_sample.c: samples of foreign tasks, which wait until the events before them are written.
 */
void record_samples_open(struct record_kernel *k, uint64_t sample_hz);
bool record_samples_set_hz(struct record_kernel *k, uint64_t sample_hz); /* false: as before */
void record_samples_read(struct record_kernel *k);
/* Puts those before mono_ns, at time_of_sample(). */
void record_samples_put(struct record_kernel *k, uint64_t mono_ns);
void record_samples_close(struct record_kernel *k);
uint64_t record_kernel_time(const struct record_kernel *k, uint64_t mono_ns);

/* Opens the best source. Events from now on are kept; they are converted by the first
 * record_kernel_read(). */
enum base_status record_kernel_open(struct record_kernel *k, const struct record_system_options *o,
	struct base_err *err) BASE_MUST_CHECK;
/* Once the converter is there. */
void record_kernel_start(struct record_kernel *k, struct record_converter *c);
/* Everything that can be put in order now. `final`: everything. The first error is the sink's. */
void record_kernel_read(struct record_kernel *k, bool final);
/* The last definitions. */
void record_kernel_finish(struct record_kernel *k);
void record_kernel_close(struct record_kernel *k); /* NULL-safe, also when not open */

/* system_asleep.c: the calls in which threads sleep when the recording begins. */
void record_asleep_read(struct record_kernel *k);
/* The task's stream is new: what it slept in goes first. */
void record_asleep_put(struct record_kernel *k, struct record_kernel_task *t);
void record_asleep_close(struct record_kernel *k);

/* ---- system_task.c ---------------------------------------------------------------------------
 */

/* The task with that tid, made on first sight. NULL: no memory, or no such number. */
struct record_kernel_task *record_kernel_task(struct record_kernel *k, uint32_t tid);
/* Its stream; names it from /proc when it is new. 0: no memory. */
uint32_t record_kernel_stream(struct record_kernel *k, struct record_kernel_task *t);
/* The image of its process; NULL: not known yet. */
struct record_image *record_kernel_image(
	struct record_kernel *k, const struct record_kernel_task *t);
void record_kernel_fork(struct record_kernel *k, struct record_kernel_task *parent,
	uint64_t time_ns, const struct kernel_slot *s);
void record_kernel_exec(struct record_kernel *k, struct record_kernel_task *t, uint64_t time_ns,
	const struct kernel_slot *s);
/* It has left its processor for the last time. */
void record_kernel_end(struct record_kernel *k, struct record_kernel_task *t, uint64_t time_ns);
void record_kernel_comm(struct record_kernel *k, const struct kernel_slot *s);
/* An image of the program's own has attached: `ctx` is the record_kernel. */
void record_kernel_attached(void *ctx, const struct record_image *image);
/* The stream of a context on a processor. */
uint32_t record_kernel_context(
	struct record_kernel *k, unsigned type, unsigned vector, unsigned processor);
void record_kernel_tasks_fini(struct record_kernel *k);

/* Puts a record of who does the event: its context, or the current task. */
void record_kernel_put_actor(
	struct record_kernel *k, const struct kernel_slot *s, unsigned cpu, struct trace_record *r);
/* Puts a record of the task, at once or into the queue of its program's. */
void record_kernel_put(
	struct record_kernel *k, struct record_kernel_task *t, struct trace_record *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h - what kernel traces of other tools have in common: switches, wakes, births and deaths
 * of threads, interrupts, system calls. Importers add events in any order; then they are sorted and
 * written as a recording of the whole system.
 *
 * Units: ns of the tool's clock; the earliest event becomes time 0. Memory: 48 bytes an event, at
 * most FORMAT_SCHED_EVENTS_MAX.
 */
#ifndef LONGPOLE_FORMAT_KERNEL_H
#define LONGPOLE_FORMAT_KERNEL_H

#include "format/private.h"
#include "trace/enums.h"

enum { FORMAT_SCHED_EVENTS_MAX = 1 << 25, FORMAT_SCHED_TASKS_MAX = 1 << 22 };
#define FORMAT_SCHED_UNKNOWN UINT32_MAX

enum format_sched_kind {
	FORMAT_SCHED_switch, /* actor leaves the processor, tid enters it */
	FORMAT_SCHED_waking, /* actor makes tid runnable: seen where the waker is */
	FORMAT_SCHED_wakeup, /* the same, seen where tid will run: used where there is no waking */
	FORMAT_SCHED_wake_new,      /* the same of a thread that was just made */
	FORMAT_SCHED_fork,          /* actor makes tid, of process pid */
	FORMAT_SCHED_exec,          /* actor has a new image, called name */
	FORMAT_SCHED_exit,          /* actor ends when it leaves its processor */
	FORMAT_SCHED_name,          /* tid is called name from now, and is of process pid */
	FORMAT_SCHED_context_begin, /* an interrupt begins on the processor: context, number */
	FORMAT_SCHED_context_end,
	FORMAT_SCHED_call_begin, /* actor enters system call `number` */
	FORMAT_SCHED_call_end,   /* and leaves it; value is the result */
	/* Of programs themselves, value is a mutex's address: actor wants it, has it, did not get it by
	 * trying, has given it back. */
	FORMAT_SCHED_lock_wanted,
	FORMAT_SCHED_lock_taken,
	FORMAT_SCHED_lock_failed,
	FORMAT_SCHED_lock_released,
	FORMAT_SCHED_lost, /* so many events were lost before: value. The last kind. */
};
struct format_sched_event {
	uint64_t time_ns;
	uint64_t value;
	uint32_t actor, actor_name; /* who was on the processor; UNKNOWN: as the switches say */
	uint32_t tid, name, pid;    /* names: format_sched_name(), 0 unknown; pid 0 unknown */
	uint16_t cpu, number;
	uint8_t kind, context; /* context: enum trace_context_type of the waker; 0: the actor */
	bool runnable;         /* switch: the actor did not want to leave */
	uint32_t order;        /* filled in */
};

struct format_sched;
struct format_sched *format_sched_new(void);
struct format_sched *format_sched_free(struct format_sched *s);
/* The program that the recorder started (NULL: none is known), which outlives s. */
struct format_started;
void format_sched_started(struct format_sched *s, const struct format_started *started);
/* The id of a name of that many bytes, or up to its first NUL. 0: none, or no memory. */
uint32_t format_sched_name(struct format_sched *s, const char *text, size_t length);
enum base_status format_sched_add(struct format_sched *s, const struct format_sched_event *e,
	struct base_err *err) BASE_MUST_CHECK;
/* Events are given away as they come, FORMAT_SCHED_GIVEN at a time, and not kept. The callback gets
 * all names so far: an event's are among them. At the end format_sched_give() for the rest. */
enum { FORMAT_SCHED_GIVEN = 1 << 12 };
typedef enum base_status (*format_sched_taker)(void *ctx, const struct format_sched_event *e,
	size_t nr, const struct base_strtab *names, struct base_err *err);
void format_sched_give_to(struct format_sched *s, format_sched_taker take, void *ctx);
enum base_status format_sched_give(struct format_sched *s, struct base_err *err) BASE_MUST_CHECK;
/* Sorts and writes all. ERR_FOREIGN when there is neither a switch nor a lock: then nothing can be said
 * about waiting. Notes get what had to be guessed. */
enum base_status format_sched_write(struct format_sched *s, struct trace_writer *to,
	struct base_str *notes, struct base_err *err) BASE_MUST_CHECK;

/*
 * Text fields of events, as "name=value" pairs of ftrace's own printing and the field names of CTF
 * and tracefs have the same words: an event of the kernel by its name ("sched_switch") and its
 * fields' values, found by a callback. False: an event that says nothing of scheduling.
 */
struct format_sched_fields {
	void *ctx;
	/* False: there is no such field. Texts are borrowed; of an integer `text` is NULL. */
	bool (*get)(void *ctx, const char *name, int64_t *ret_number, const char **ret_text,
		size_t *ret_length);
};
bool format_sched_convert(struct format_sched *s, const char *event,
	const struct format_sched_fields *f, struct format_sched_event *e);

#endif

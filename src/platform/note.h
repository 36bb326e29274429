/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note.h - what the simulated machines do, as annotation records of one stream. Without a path
 * nothing is written, but verbs are counted all the same.
 */
#ifndef LONGPOLE_PLATFORM_NOTE_H
#define LONGPOLE_PLATFORM_NOTE_H

#include "trace/trace.h"

struct platform_note {
	struct trace_writer *writer; /* NULL: nothing is written */
	struct base_strtab *strings;
	uint32_t nr_written_strings, nr_actors, nr_objects, nr_states;
	uint32_t acting; /* whom the stream speaks for */
	uint64_t nr_verbs;
	enum base_status status; /* the first failure; then nothing is written any more */
	struct base_err *err;
};

/* path NULL: no trace. `command` describes the run. The caller keeps err as long as n. */
enum base_status platform_note_open(struct platform_note *n, const char *path, const char *command,
	struct base_err *err) BASE_MUST_CHECK;
/* Ends the stream and the file at end_ns; always frees. */
enum base_status platform_note_close(struct platform_note *n, uint64_t end_ns, uint64_t *ret_bytes,
	struct base_err *err) BASE_MUST_CHECK;

/* Definitions; ids are dense from 1. A queue's capacity 0: not bounded. */
uint32_t platform_note_define_actor(
	struct platform_note *n, const char *system, const char *name, uint64_t instance);
uint32_t platform_note_define_queue(
	struct platform_note *n, const char *name, uint64_t instance, uint64_t capacity);
uint32_t platform_note_define_state(struct platform_note *n, const char *name);

/* Verbs of an actor; times must not decrease. kind: TRACE_note_enqueue and its kin. */
void platform_note_enter(struct platform_note *n, uint64_t time_ns, uint32_t actor, uint32_t state);
void platform_note_verb(struct platform_note *n, uint64_t time_ns, uint32_t actor,
	enum trace_kind kind, uint32_t object, uint64_t nr_units, uint64_t flags);
/* kind: TRACE_note_put_item, TRACE_note_take_item. */
void platform_note_item(struct platform_note *n, uint64_t time_ns, uint32_t actor,
	enum trace_kind kind, uint32_t object, uint64_t key);
void platform_note_identify(
	struct platform_note *n, uint64_t time_ns, uint32_t actor, uint64_t connection);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note.h - what the simulated machines do, as a trace: any simulator could write it, by the public
 * header. Without a path nothing is written, but verbs are counted all the same.
 */
#ifndef LONGPOLE_PLATFORM_NOTE_H
#define LONGPOLE_PLATFORM_NOTE_H

#include "base/base.h"
#include "longpole/trace.h"

struct platform_note {
	struct longpole_writer *writer; /* NULL: nothing is written */
	uint64_t nr_actors, nr_queues, nr_verbs;
	enum base_status status; /* of the last verb: a failure lasts */
};

/* path NULL: no trace. `command` describes the run. */
enum base_status platform_note_open(struct platform_note *n, const char *path, const char *command,
	struct base_err *err) BASE_MUST_CHECK;
/* Ends the run and the file at end_ns; always frees. What could not be written is said here. */
enum base_status platform_note_close(struct platform_note *n, uint64_t end_ns, uint64_t *ret_bytes,
	struct base_err *err) BASE_MUST_CHECK;

/* A queue's capacity 0: not bounded. */
uint32_t platform_note_new_actor(
	struct platform_note *n, const char *system, const char *name, uint64_t instance);
uint32_t platform_note_new_queue(
	struct platform_note *n, const char *name, uint64_t instance, uint64_t capacity);

/* Verbs of an actor; times must not decrease. */
void platform_note_enter(struct platform_note *n, uint64_t time_ns, uint32_t actor, uint32_t state);
void platform_note_queue(struct platform_note *n, uint64_t time_ns, uint32_t actor,
	enum longpole_queue_verb verb, uint32_t queue, uint64_t nr_units, uint64_t flags);
/* verb: LONGPOLE_PUT_ITEM, LONGPOLE_TAKE_ITEM. */
void platform_note_item(struct platform_note *n, uint64_t time_ns, uint32_t actor,
	enum longpole_queue_verb verb, uint32_t queue, uint64_t key);
void platform_note_identify(
	struct platform_note *n, uint64_t time_ns, uint32_t actor, uint64_t connection);

#endif

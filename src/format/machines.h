/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machines.h - traces of spans and slices as state machines: importers say, in any order, which
 * machine enters which state, and what it hands to which other; then all is sorted and written as
 * annotations of one stream (note_act).
 *
 * Units: ns; the earliest time becomes 0. At one time, what is said first comes first.
 */
#ifndef LONGPOLE_FORMAT_MACHINES_H
#define LONGPOLE_FORMAT_MACHINES_H

#include "format/private.h"

enum { FORMAT_MACHINES_VERBS_MAX = 1 << 26, FORMAT_JSON_BYTES_MAX = 1 << 29 };

enum format_machine_verb {
	FORMAT_MACHINE_state,      /* enters state `id` */
	FORMAT_MACHINE_put,        /* one unit with this key into queue `id` */
	FORMAT_MACHINE_wait,       /* waits: queue `id` has no unit for it */
	FORMAT_MACHINE_take,       /* takes the unit with this key */
	FORMAT_MACHINE_identify,   /* serves connection `key` from now */
	FORMAT_MACHINE_step_begin, /* of nobody: text `id`, rank `key` */
	FORMAT_MACHINE_step_end,
	FORMAT_MACHINE_meet, /* of nobody: meeting `id` */
};

struct format_machines;
struct format_machines *format_machines_new(void);
struct format_machines *format_machines_free(struct format_machines *m);
/* Ids of machines, states and queues, made when new; 0: no memory (and then write() fails). */
uint32_t format_machines_actor(
	struct format_machines *m, const char *system, const char *name, uint64_t instance);
uint32_t format_machines_state(struct format_machines *m, const char *name);
uint32_t format_machines_queue(struct format_machines *m, const char *name);
void format_machines_add(struct format_machines *m, uint64_t time_ns, uint32_t actor,
	enum format_machine_verb verb, uint32_t id, uint64_t key);
/* Of accelerators: what a state, or a queue (state 0), stands for. `outer`: the operator; "" none. */
void format_machines_work(struct format_machines *m, enum trace_work_type type, uint32_t state,
	uint32_t queue, const char *name, const char *outer);
/* Begin or end of a step, which is no machine's. */
void format_machines_step(
	struct format_machines *m, uint64_t time_ns, bool begins, const char *name, uint64_t rank);
/* What a state that is a collective operation moves, in bytes of one rank, among how many (0: not known). */
void format_machines_transfer(struct format_machines *m, uint32_t state, uint64_t nr_bytes,
	uint64_t nr_ranks, const char *operation);
/* One of those who meet; the last one came at time_ns. */
struct format_meeting {
	const char *name, *group;
	uint64_t rank, last, waited_ns;
};
void format_machines_meet(
	struct format_machines *m, uint64_t time_ns, const struct format_meeting *meeting);
/* ERR_FOREIGN when nothing was added. */
enum base_status format_machines_write(struct format_machines *m, const char *program,
	struct trace_writer *to, struct base_err *err) BASE_MUST_CHECK;

/* The whole file as text, NUL-terminated, from base_alloc. */
enum base_status format_read_all(const struct format_source *from, char **ret, size_t *ret_length,
	struct base_err *err) BASE_MUST_CHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - what an import of OTF2 knows: definitions (defs.c) and the location whose events come (events.c). */
#ifndef LONGPOLE_FORMAT_OTF2_PRIVATE_H
#define LONGPOLE_FORMAT_OTF2_PRIVATE_H

#include "format/otf2/items.h"

/* Texts are ids of im->text, which are the trace's strings, too. Indices NONE: there is none. */
struct otf2_node {
	uint32_t name, class_, parent;
};
struct otf2_process {
	uint32_t name, node; /* node: its reference */
	uint32_t host, rank; /* host: from 1; rank: in the world, NONE */
	uint32_t id;         /* in the trace */
};
struct otf2_location {
	uint32_t name, process;
	uint64_t reference;
	uint32_t rank;   /* among all that communicate; NONE */
	uint32_t stream; /* in the trace */
	bool is_first;   /* of its process */
	uint32_t first_member, nr_members;
};
struct otf2_region { /* its site in the trace: index + 1; its state: the same */
	uint32_t name, file;
	uint64_t line;
	uint32_t op; /* enum trace_mpi; NONE: no function that the model knows */
	bool is_mpi;
};
struct otf2_group {
	uint64_t type, flags;
	size_t first, nr; /* members */
};
struct otf2_comm { /* its object in the trace: index + 1 */
	uint32_t name, group, parent;
	bool is_world, is_used;
};
struct otf2_member { /* a location in a communicator */
	uint32_t comm, rank, size;
};

/* The location whose events come. */
struct otf2_now {
	bool is_open, has_begun;
	uint32_t location;
	uint64_t last_ns;
	uint32_t *stack; /* regions that are entered, the innermost last */
	size_t nr_stack, stack_capacity;
	size_t call_depth; /* of the function of MPI on the stack that is going on; 0: none */
	uint64_t call_ns;
	struct otf2_item *item; /* of that call */
	size_t nr_items, item_capacity;
	struct trace_record
		*record; /* not written yet: what a receive gets is known when it is complete */
	size_t nr_records, record_capacity, nr_pending;
	uint64_t nr_written;
	struct base_map pending;        /* (0, request) -> number of its record */
	uint32_t kept, wanted;          /* states; 0: none */
	uint64_t wanted_ns;             /* since when */
	uint64_t look_ns, last_look_ns; /* calls that looked and found nothing; 0: none */
};

struct otf2_import {
	struct trace_writer *to;
	const char *program;
	struct base_strtab *text;
	uint32_t said;       /* the text that came last */
	struct base_map ids; /* (kind, reference) -> index; of strings the text */
	uint64_t ticks_a_second, first_tick;
	struct otf2_node *node;
	struct otf2_process *process;
	struct otf2_location *location;
	struct otf2_region *region;
	struct otf2_group *group;
	struct otf2_comm *comm;
	struct otf2_member *member;
	uint64_t *group_member;
	uint32_t *window; /* its communicator's reference */
	size_t nr_nodes, node_capacity, nr_processes, process_capacity, nr_locations,
		location_capacity, nr_regions, region_capacity, nr_groups, group_capacity, nr_comms,
		comm_capacity, nr_members, nr_group_members, group_member_capacity, nr_windows,
		window_capacity;
	bool is_settled;
	uint64_t nr_unknown, nr_open,
		nr_back; /* events: of no communicator, never complete, back in time */
	struct otf2_now now;
	struct format_apart_items items;
};

static inline uint32_t otf2_find(
	const struct otf2_import *im, enum otf2_kind kind, uint64_t reference)
{
	uint64_t i;
	return base_map_get(&im->ids, kind, reference, &i) ? (uint32_t)i : OTF2_NONE;
}

enum base_status format_otf2_take_definition(
	struct otf2_import *im, const struct otf2_item *i, struct base_err *err) BASE_MUST_CHECK;
/* All definitions are there: writes the trace's. */
enum base_status format_otf2_settle(struct otf2_import *im, struct base_err *err) BASE_MUST_CHECK;
enum base_status format_otf2_take_event(
	struct otf2_import *im, const struct otf2_item *i, struct base_err *err) BASE_MUST_CHECK;
/* Whatever is open is over. */
enum base_status format_otf2_end_location(
	struct otf2_import *im, bool is_cut, struct base_err *err) BASE_MUST_CHECK;
void format_otf2_now_fini(struct otf2_now *n);

#endif

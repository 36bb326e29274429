/* SPDX-License-Identifier: Apache-2.0 */
/*
 * items.h - what the reader of OTF2 archives (read.c, in a process of its own) hands over to the
 * import (import.c): definitions, then each location's events in their order. Names and numbers are
 * those of OTF2 3.0 (Score-P); times are ticks of the archive's clock.
 */
#ifndef LONGPOLE_FORMAT_OTF2_ITEMS_H
#define LONGPOLE_FORMAT_OTF2_ITEMS_H

#include "format/apart.h"

enum { OTF2_VALUES = 5 };

/* ITEM(kind, values) - references are the archive's; a location is a number from 0, as they are defined */
#define OTF2_ITEMS(ITEM)                                                                           \
	ITEM(clock, "ticks a second, first tick, length")                                          \
	ITEM(string, "reference; it is the text before")                                           \
	ITEM(node, "reference, name, class, parent of the system's tree")                          \
	ITEM(process, "reference, name, node")                                                     \
	ITEM(location, "reference, name, process; location: its number")                           \
	ITEM(region, "reference, name, is of MPI, file, line")                                     \
	ITEM(group, "reference, type, flags, members; so many follow")                             \
	ITEM(members, "of the group before, OTF2_VALUES at most")                                  \
	ITEM(comm, "reference, name, group, parent")                                               \
	ITEM(window, "reference, communicator")                                                    \
	ITEM(begin, "of a location's events")                                                      \
	ITEM(end, "of its events; 1: they could not be read to their end")                         \
	ITEM(program, "begins or ends")                                                            \
	ITEM(enter, "region")                                                                      \
	ITEM(leave, "region")                                                                      \
	ITEM(send, "receiver, communicator, tag, bytes")                                           \
	ITEM(receive, "sender, communicator, tag, bytes")                                          \
	ITEM(send_begins, "receiver, communicator, tag, bytes, request")                           \
	ITEM(receive_begins, "request")                                                            \
	ITEM(sent, "request")                                                                      \
	ITEM(received, "sender, communicator, tag, bytes, request")                                \
	ITEM(cancelled, "request")                                                                 \
	ITEM(collective, "operation, communicator, root, bytes")                                   \
	ITEM(collective_begins, "request")                                                         \
	ITEM(collective_ends, "operation, communicator, root, bytes, request")                     \
	ITEM(window_collective, "operation, window, root, bytes")

enum otf2_kind {
#define ITEM(kind, values) OTF2_##kind##_ITEM,
	OTF2_ITEMS(ITEM)
#undef ITEM
		OTF2_KIND_NR
};
struct otf2_item {
	uint64_t ticks; /* of an event */
	uint64_t value[OTF2_VALUES];
	uint32_t kind, location;
};
_Static_assert(sizeof(struct otf2_item) == 56, "no padding: all of it is given away");

/* Numbers of OTF2 that are in files (OTF2_Definitions.h, OTF2_Events.h); checked in read.c. */
enum {
	OTF2_GROUP_OF_LOCATIONS = 4,   /* a member is a location's reference: the ranks */
	OTF2_GROUP_OF_RANKS = 5,       /* a member is an index into that */
	OTF2_GROUP_HAS_REFERENCES = 1, /* flag: members are locations' references all the same */
};
#define OTF2_NONE     UINT32_MAX
#define OTF2_ROOT_MAX (UINT32_MAX - 3) /* what is above is no rank */

enum { OTF2_COUNT_OTHER, OTF2_COUNT_CUT, OTF2_COUNT_NR };
_Static_assert((int)OTF2_COUNT_NR <= (int)FORMAT_APART_COUNTS, "the reader's counts have room");

/* Gives all of the archive with that anchor file; in the child. */
enum base_status format_otf2_read(struct format_apart_giver *g, const char *path,
	uint64_t count[static FORMAT_APART_COUNTS], struct base_err *err) BASE_MUST_CHECK;

/* Takes items, and writes the trace; of what is not trusted. */
struct otf2_import;
struct otf2_import *format_otf2_new(struct trace_writer *to, const char *program);
struct otf2_import *format_otf2_free(struct otf2_import *im);
const struct format_apart_items *format_otf2_items(struct otf2_import *im);
/* After the last item. A line in `notes` for everything that was left out. */
enum base_status format_otf2_close(
	struct otf2_import *im, struct base_str *notes, struct base_err *err) BASE_MUST_CHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defs.h - definitions that come and go. Private to live.
 *
 * A recorder's ids only grow. One generation of definitions gives each id that is mentioned a dense
 * one of its own ("inner"), so that a model of it is as large as what it has seen. The next
 * generation begins empty, takes from the older one what is mentioned, and at the end what may be
 * mentioned again: threads that live, code, objects of the last minute. What then is left over is
 * forgotten.
 */
#ifndef LONGPOLE_LIVE_DEFS_H
#define LONGPOLE_LIVE_DEFS_H

#include "trace/trace.h"

enum live_table {
	LIVE_TABLE_none, /* not an id */
	LIVE_TABLE_string,
	LIVE_TABLE_process,
	LIVE_TABLE_stream,
	LIVE_TABLE_module,
	LIVE_TABLE_site,
	LIVE_TABLE_stack, /* not kept: nobody asks a window for a call path */
	LIVE_TABLE_object,
	LIVE_TABLE_actor,
	LIVE_TABLE_state,
	LIVE_TABLE_NR
};

struct live_ids {              /* of one table */
	struct base_map inner; /* by outer */
	uint32_t *outer;       /* by inner */
	uint64_t *used_ns;     /* by inner: mentioned last */
	size_t outer_capacity, used_capacity;
	uint32_t nr; /* highest inner + 1 */
	struct {
		uint32_t outer, inner;
	} recent[64];
};

enum { LIVE_KINDS = 256, LIVE_FIELDS = 8 };
struct live_fields { /* of one kind of record: which are ids, but for a definition's own */
	unsigned nr;
	struct {
		uint16_t offset;
		uint8_t table;
	} field[LIVE_FIELDS];
};

struct live_defs {
	struct trace_defs defs; /* inner ids */
	struct live_fields fields[LIVE_KINDS];
	struct live_ids ids[LIVE_TABLE_NR];
	bool *ended; /* by inner stream */
	size_t ended_capacity;
#define DEF_TABLE(kind, plural) size_t plural##_capacity;
#include "trace/defs.def"
#undef DEF_TABLE
	size_t texts_capacity;
	const struct live_defs *older; /* while it is there */
	uint64_t now_ns;               /* of the record being translated */
	uint64_t nr_forgotten;         /* taken over no more */
	enum base_status status;       /* first failure */
};

struct live_defs *live_defs_new(const struct live_defs *older);
struct live_defs *live_defs_free(struct live_defs *d);
/* A definition (a record of stream 0), with outer ids. */
enum base_status live_defs_add(struct live_defs *d, const struct trace_record *r) BASE_MUST_CHECK;
/* Makes a record's ids inner ones; 0 where nothing is known of an id. */
enum base_status live_defs_translate(struct live_defs *d, struct trace_record *r) BASE_MUST_CHECK;
/* The older generation is about to go. */
enum base_status live_defs_take_over(struct live_defs *d) BASE_MUST_CHECK;
/* Entries in all tables. */
uint64_t live_defs_size(const struct live_defs *d);

#endif

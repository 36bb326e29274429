/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gem5.h - annotate.bin: what the import and the export of gem5's annotations share. Private to
 * format.
 *
 * The simulator wrote, without padding and in its host's byte order:
 *
 *   header 40: u64 version, number of records, offset of the key, offset of the index;
 *              u32 bytes of the key, bytes of the index. Rewritten at exit: until then all but the
 *              version is 0.
 *   record 19: u64 tick; u32 data; u16 state machine; u16 state, queue or machine; u8 operation,
 *              flags, processor
 *   key:       Python assignments (gem5_key.c); ids count from 1, 0 is none
 *   index:     u64 offset of record 100000 k - 1, for k = 1, 2, ...
 */
#ifndef LONGPOLE_FORMAT_GEM5_H
#define LONGPOLE_FORMAT_GEM5_H

#include "format/private.h"

#define GEM5_VERSION UINT64_C(0x4D35414E00000101) /* "M5AN", version 1, capabilities 1 */

enum {
	GEM5_HEADER_BYTES = 40,
	GEM5_RECORD_BYTES = 19,
	GEM5_INDEX_EVERY = 100000,
	GEM5_TICK_PS = 1,
	GEM5_IDS = 1 << 16,
	GEM5_LINK_LATER = 0xFFFF, /* target of a link that no machine took up */
	GEM5_NAME_MAX = 49,       /* what the simulator kept of a name */
};
#define GEM5_ALL UINT32_MAX /* data of a dequeue or peek: all units there are */

enum gem5_op {
	GEM5_BEGIN = 1,
	GEM5_WAIT_EMPTY = 2,
	GEM5_WAIT_FULL = 3,
	GEM5_QUEUE = 4,
	GEM5_DEQUEUE = 5,
	GEM5_SIZE_QUEUE = 8,
	GEM5_PEEK = 9,
	GEM5_LINK = 10,
	GEM5_IDENT = 11,
	GEM5_RESERVE = 12,
};
enum gem5_flag {
	GEM5_FL_HW = 1,
	GEM5_FL_BAD = 2,
	GEM5_FL_QOPP = 4,
	GEM5_FL_WAIT = 8,
	GEM5_FL_LINK = 16,
	GEM5_FL_RESET = 32,
};

struct gem5_record {
	uint64_t tick;
	uint32_t data;
	uint16_t machine, what; /* what: a state, queue or machine, as the operation says */
	uint8_t op, flags, cpu;
};

/* A machine or queue of the key. Texts are ids of gem5_key.text. */
struct gem5_thing {
	uint64_t system, instance;
	uint32_t name;
};
struct gem5_things {
	struct gem5_thing *thing; /* by id; 0: none */
	size_t nr, capacity;
};
struct gem5_key {
	struct base_strtab *text;
	struct gem5_things machines, queues;
	uint32_t *system; /* text, by id */
	size_t nr_systems, system_capacity;
	struct base_map states; /* (machine's name, id) -> text */
	uint64_t nr_damaged;    /* statements that could not be read to their end */
	struct base_str damage; /* the first of them */
};

/* Reads what it can: damage is counted, not an error. Only ERR_NOMEM and ERR_LIMIT (texts). */
enum base_status format_gem5_key_parse(
	struct gem5_key *k, const char *text, size_t length, struct base_err *err) BASE_MUST_CHECK;
void format_gem5_key_fini(struct gem5_key *k);
/* A Python string literal. */
void format_gem5_key_quote(struct base_str *out, const char *text);

#endif

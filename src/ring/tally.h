/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.h - tables in shared memory in which a program's threads count, and `longpole` reads.
 *
 *   ring file: head, blocks, | state 0 .. n-1 (page-aligned) | table 0 .. n-1 | tags 0 .. n-1 |
 *              entries 0 .. n-1 | with events: what each entry has of them, 0 .. n-1 |
 *
 * A thread takes a free table at its first count and is its only writer. When that is full, it
 * takes several in a row, which are as one table, and then more: as of a program with a lock for
 * each of its objects. What it counted before stays where it is, and the reader adds. Tables are in
 * the ring's file (ring.h), so they survive crash, _exit, exec and SIGKILL; a fork's child finds
 * preload_self empty and takes tables of its own. Nothing is written at a thread's end but its
 * table's state. The reader may look at any time: every number grows only.
 *
 * Counters change by one instruction, so a signal handler that counts in between loses nothing.
 * Pages of a table that are not needed are never touched.
 */
#ifndef LONGPOLE_RING_TALLY_H
#define LONGPOLE_RING_TALLY_H

#include "ring/ring.h"

#include <stdint.h>

enum {
	TALLY_TABLES = 4096,
	TALLY_ENTRIES = 2048, /* a power of two */
	TALLY_PROBES = 16,    /* entries looked at before a table counts as full */
	TALLY_BINS = 40,      /* log2 of ns */
};
/* ring_head.tally_mask: of every so many holds one is timed, less one. With TALLY_ALL only every
 * second tag, and entry, is used: the one behind is a struct tally_held. */
enum { TALLY_ALL = 1, TALLY_EIGHTH = 7, TALLY_NEVER = 2 /* (n & 2) == 1 never holds */ };
enum tally_state { TALLY_FREE, TALLY_ACTIVE, TALLY_DONE };

/* Of a lock taken at one place; of a condition variable; of a function called by another. */
enum tally_lock_field {
	TALLY_acquired,
	TALLY_shared,
	TALLY_retaken,
	TALLY_contended,
	TALLY_failed,
	TALLY_wait_nr,
	TALLY_wait_ns,
	TALLY_wait_max_ns,
	TALLY_hold_nr,
	TALLY_hold_ns,
	TALLY_hold_max_ns,
	TALLY_LOCK_FIELDS
};
enum tally_cond_field {
	TALLY_waits,
	TALLY_timeouts,
	TALLY_signals,
	TALLY_broadcasts,
	TALLY_cond_wait_ns,
};
enum tally_call_field {
	TALLY_calls,
	TALLY_timed,
	TALLY_timed_ns,
	TALLY_call_max_ns,
	TALLY_bytes,
	TALLY_cpu_nr,
	TALLY_cpu_ns,
	TALLY_special_nr, /* timed, all of them: large copies, locks that were taken */
	TALLY_special_ns,
	TALLY_kernel_ns, /* of the timed ones; both if tally_table.has_kernel */
	TALLY_special_kernel_ns,
};
_Static_assert((int)TALLY_special_kernel_ns < (int)TALLY_LOCK_FIELDS, "n[]");
/* What is touched each time: small, so that thousands fit into a cache. */
struct tally_tag {
	uint64_t tag; /* of what is counted (tally_tag_of()); 0: free; 1: being made */
	/* Of a lock: acquisitions until the next one that is looked at, and how many there will
	 * have been then, modulo 2^32. Both change at once. */
	union {
		uint64_t turn;
		struct {
			uint32_t left, end;
		};
	};
};
struct tally_held {     /* holds of less than 2^32 ticks; others are in the entry */
	uint64_t ticks; /* in all, without what the stamps take */
	uint32_t nr, max_ticks;
};
_Static_assert(sizeof(struct tally_held) == sizeof(struct tally_tag), "in its place");
struct tally_entry {
	uint64_t key;  /* locks: ring.h's object word; calls: calls.h; 0:
			  free */
	uint64_t site; /* locks: caller's address */
	uint64_t n[TALLY_LOCK_FIELDS];
	union {
		/* Locks: timed holds stand for others, some for more: hold_nr is the sum of their
		 * weights, hold_ns that of weight * ns. */
		struct {
			double squares;          /* of weight * ns^2 */
			uint64_t weight_squares; /* of weight^2 */
		};
		/* Calls. */
		struct {
			uint64_t failed, last_error; /* 0: not known which */
		};
	};
	uint64_t unused;
};
_Static_assert(sizeof(struct tally_entry) == 128, "two lines");

/* What calls did, by perf's events: of so many calls, in user space and in the kernel. Of others it
 * is not known: the sample did not have them, or the events shared counters and had none for a
 * while. Sums may be less than nothing, by what reading takes. */
enum tally_mode { TALLY_USER, TALLY_KERNEL, TALLY_MODES };
struct tally_event_sums {
	uint64_t nr[TALLY_MODES];
	uint64_t count[TALLY_MODES][RING_EVENTS];
};
struct tally_events {
	struct tally_event_sums sampled, special; /* as TALLY_timed and TALLY_special_nr */
};
_Static_assert(sizeof(struct tally_events) == 160, "tally_events_of()");

struct tally_table {
	uint32_t pid, tid, image, parent_image;
	uint64_t thread;     /* as in struct ring_block */
	uint64_t end_tsc;    /* when it was DONE; 0: not yet */
	uint64_t full;       /* counts that found no place */
	uint32_t nr, before; /* the first of nr in a row; 1 + the first of those before; 0: none */
	uint64_t has_kernel; /* time inside of system calls is counted, too */
	uint64_t held_ticks; /* TALLY_ALL: with at least one lock held */
	uint64_t wait_bin[TALLY_BINS], hold_bin[TALLY_BINS];
	struct ring_ids ids;
	/* The thread's events from its first counted call to the last that was looked at. */
	uint64_t event_count[TALLY_MODES][RING_EVENTS];
	uint64_t enabled_ns[TALLY_MODES], running_ns[TALLY_MODES];
	uint64_t unused[(4096 - 64 - 16) / 8 - 2 * TALLY_BINS - TALLY_MODES * (RING_EVENTS + 2)];
};
_Static_assert(sizeof(struct tally_table) == 4096, "a page");

/* Acquisitions, from what there were at the last turn, or at any time not long ago. */
static inline uint64_t tally_acquired(uint64_t before, uint64_t turn)
{
	uint32_t now = (uint32_t)(turn >> 32) - (uint32_t)turn;
	return before + (uint64_t)(int64_t)(int32_t)(now - (uint32_t)before);
}

enum {
	TALLY_TAG_BYTES = TALLY_ENTRIES * sizeof(struct tally_tag),
	TALLY_ENTRY_BYTES = TALLY_ENTRIES * sizeof(struct tally_entry),
	TALLY_EVENT_BYTES = TALLY_ENTRIES * sizeof(struct tally_events),
};
_Static_assert(sizeof(struct tally_entry) == 8 * sizeof(struct tally_tag), "tally_entry_of()");
static inline uint64_t tally_table_offset(uint32_t nr_tables, uint32_t i)
{
	uint64_t states = ((uint64_t)nr_tables * sizeof(uint32_t) + 4095) / 4096 * 4096;
	return states + (uint64_t)i * sizeof(struct tally_table);
}
static inline uint64_t tally_tags_offset(uint32_t nr_tables, uint32_t i)
{
	return tally_table_offset(nr_tables, nr_tables) + (uint64_t)i * TALLY_TAG_BYTES;
}
static inline uint64_t tally_entries_offset(uint32_t nr_tables, uint32_t i)
{
	return tally_tags_offset(nr_tables, nr_tables) + (uint64_t)i * TALLY_ENTRY_BYTES;
}
static inline uint64_t tally_events_offset(uint32_t nr_tables, uint32_t i)
{
	return tally_entries_offset(nr_tables, nr_tables) + (uint64_t)i * TALLY_EVENT_BYTES;
}
static inline uint64_t tally_bytes(uint32_t nr_tables, uint32_t nr_events)
{
	return tally_events_offset(nr_tables, nr_events ? nr_tables : 0);
}
/* As ring_layout_fits(), of the tables: behind the blocks, page-aligned. */
static inline int tally_layout_fits(const struct ring_head *copy, uint64_t file_bytes)
{
	return copy->nr_tables <= TALLY_TABLES && copy->nr_events <= RING_EVENTS &&
	       copy->tables_offset % 4096 == 0 &&
	       copy->tables_offset >= ring_blocks_offset(copy->nr_blocks) +
					      (uint64_t)copy->nr_blocks * RING_BLOCK_BYTES &&
	       copy->tables_offset <= file_bytes &&
	       tally_bytes(copy->nr_tables, copy->nr_events) <= file_bytes - copy->tables_offset;
}

#endif

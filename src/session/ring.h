/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - the recorder's side of ring.h: make the file, read the blocks, give them back.
 */
#ifndef LONGPOLE_SESSION_RING_H
#define LONGPOLE_SESSION_RING_H

#include "system/hardware.h"
#include "record/convert.h"
#include "session/place.h"

enum {
	SESSION_RING_BYTES_MIN = 1 << 20,
	SESSION_RING_BLOCKS_MAX = 1 << 20,
	SESSION_RING_WARM_BYTES = 16 << 20, /* before the program runs */
	SESSION_RING_AHEAD_BYTES = 8 << 20, /* beyond what it has ever used, as it runs, at least */
	SESSION_RING_AHEAD_MOST_BYTES = 64 << 20, /* ... if it takes much between two looks */
	SESSION_RING_WORDS = (RING_BLOCK_BYTES - sizeof(struct ring_block)) / 8, /* of one block */
};

struct session_ring {
	struct session_place place;
	char path[SESSION_PLACE_PATH];
	int fd;                 /* has our lock: preload.c */
	struct ring_head *head; /* shared with the target: trust nothing in it */
	uint8_t *blocks;
	size_t size_bytes;
	uint64_t tables_offset; /* session/tally.c; nr_tables 0: none */
	uint32_t nr_tables;
	bool all_held;                 /* TALLY_ALL */
	struct system_hardware events; /* that are counted with calls */
	uint32_t nr_blocks;
	struct session_block {
		uint32_t cursor; /* words read */
		bool known, skipped;
	} * block;
	struct record_thread *
		*listed; /* threads with unread blocks, in the order of (image, number) */
	size_t nr_listed, listed_capacity;
	/* Read, but kept until the next checkpoint (session/keep.h); NULL: none are kept. */
	uint32_t *held;
	uint32_t nr_held, held_most;
	uint64_t tick;
	uint32_t nr_used;    /* blocks handed out, when last looked */
	uint32_t nr_reached; /* none from here on was ever handed out: the lowest are first */
	uint32_t nr_warm;    /* those up to here have memory */
	uint32_t step_most;  /* nr_reached grew by so much at once */
	const uint64_t *read_before; /* of each block: session_ring_progress(); NULL: nothing */
	uint64_t bury_ns;
	/* of the tick that is under way */
	struct record_converter *converter;
	uint64_t horizon, limit;
	bool final;
	void (*many_held)(void *ctx); /* time for a checkpoint; NULL with `held` NULL */
	void *many_held_ctx;
};

#define SESSION_RING_FILE "ring"
/* In /dev/shm, else $TMPDIR, else /tmp; no larger than half of what is free there. recording = 0.
 */
enum base_status session_ring_create(struct session_ring *r, size_t size_bytes,
	unsigned stack_depth, uint64_t tsc_origin, struct base_err *err) BASE_MUST_CHECK;
/* Gets memory for the first blocks, then for those that will be next, so that the program need not:
 * a page that is new costs it 1 to 3 us, us a third. Takes about span_ns at most; false: that was
 * not enough. */
void session_ring_warm_up(struct session_ring *r, uint64_t span_ns);
bool session_ring_warm_ahead(struct session_ring *r, uint64_t span_ns);
/* Somebody has shortened the file: what was there is lost, and reads as zeros (bus.h). */
bool session_ring_was_cut(const struct session_ring *r);
void session_ring_destroy(struct session_ring *r); /* removes the file, too */

/* One round: convert all records with stamps up to `horizon` (ticks since tsc_origin); stamps after
 * `limit` are damage. `final`: nobody writes any more, wait for nothing. */
void session_ring_drain(struct session_ring *r, struct record_converter *c, uint64_t horizon,
	uint64_t limit, bool final);

/* Looks what there is without reading it. True: at most half of the blocks wait, one process image
 * wrote them, and few of its threads have ended. (Of several, what they share must be looked up
 * while they live.) */
bool session_ring_can_wait(struct session_ring *r, struct record_converter *c);

/* The ring that a recorder left. `fd` is its file and is not closed. ERR_VERSION: of another
 * layout; ERR_CORRUPT: no ring. */
enum base_status session_ring_open(
	struct session_ring *r, int fd, const char *name, struct base_err *err) BASE_MUST_CHECK;

/* From now on blocks that were read are kept until session_ring_give_back_held(): what is made of
 * them may not be in a file yet. `many_held` is called, in a drain, when so many are that it is
 * time for that. False: no memory. */
bool session_ring_hold(
	struct session_ring *r, void (*many_held)(void *ctx), void *ctx) BASE_MUST_CHECK;
void session_ring_give_back_held(struct session_ring *r);
/* How far a block has been read, and whose block that was: for ring.read_before. */
uint64_t session_ring_progress(const struct session_ring *r, uint32_t block);

struct ring_block *session_ring_block(const struct session_ring *r, uint32_t block);

#endif

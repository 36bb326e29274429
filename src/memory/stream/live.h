/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - a source that is still being recorded: one thread puts chunks (stream.h, 3) in, another
 * one analyses them. No file.
 *
 * The order of the analysis is that of a file as long as it may wait for a thread's next chunk,
 * however long that takes. A thread that waits for others that the analysis holds up would wait for
 * ever: so when others have put MEMORY_LIVE_AHEAD_BYTES meanwhile (an eighth of it for a thread
 * whose chunk says that it waits), or there is no room, they go first (nr_late). Time plays no part
 * in that. A thread that runs puts a chunk at least every TARGET_LIVE_PIECES pieces.
 */
#ifndef LONGPOLE_MEMORY_LIVE_H
#define LONGPOLE_MEMORY_LIVE_H

#include "memory/stream/decode.h"

enum {
	MEMORY_LIVE_ROOM_BYTES = 64 << 20, /* twice that while the analysis waits */
	MEMORY_LIVE_AHEAD_BYTES = 64 << 20,
	MEMORY_LIVE_THREADS = 64
};

struct memory_live;
/* max_threads: more are an error of next(). serial: MEMORY_CHUNK_SERIAL will be set. */
enum base_status memory_live_new(uint32_t max_threads, unsigned level, bool serial,
	struct memory_live **ret, struct base_err *err) BASE_MUST_CHECK;
/* As for all sources; closing it frees all, and is the last call. */
struct memory_source *memory_live_source(struct memory_live *l);

/* ---- who records */

/* Before the first chunk. */
void memory_live_clock(struct memory_live *l, struct memory_clock clock);
/* false: what was put was not analysed yet; put nothing, and come again. */
bool memory_live_has_room(struct memory_live *l);
/* Copies a chunk, table or stream. It is not seen before the commit. ERR_NOMEM. */
enum base_status memory_live_put(
	struct memory_live *l, const uint8_t *chunk, size_t size_bytes) BASE_MUST_CHECK;
/* What was put is seen. Between two commits put all that was there: what a chunk needs (tables, the
 * chunks of a thread that was joined) must not come later than it. */
void memory_live_commit(struct memory_live *l);
/* There will be no more. */
void memory_live_end(struct memory_live *l);

/* ---- who analyses */

/* Sleeps until something was committed or all is over; at most for some ms. */
void memory_live_wait(struct memory_live *l);
/* How many threads have come; how often others went before one that should have been waited for. */
uint32_t memory_live_threads(const struct memory_live *l);
uint64_t memory_live_late(const struct memory_live *l);
/* Chunks of other processes (after a fork or an exec), which are left out. */
uint64_t memory_live_others(const struct memory_live *l);

#endif

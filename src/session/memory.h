/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - the recorder's side of ring/memory_ring.h: make the file, take the chunks, write
 * them into the trace, give the blocks back. */
#ifndef LONGPOLE_SESSION_MEMORY_H
#define LONGPOLE_SESSION_MEMORY_H

#include "ring/memory_ring.h"
#include "record/convert.h"
#include "session/place.h"

#include <pthread.h>

enum { SESSION_MEMORY_BLOCKS = 64, SESSION_MEMORY_GROWING = 8 };

struct session_memory_stream {
	uint32_t image;
	uint64_t thread;    /* 0: the image's tables */
	uint64_t sequence;  /* next */
	uint64_t nr_joined; /* chunks that are no longer such: others' numbers are that much less */
	uint32_t stream, definition;
	uint64_t last_ns;
	uint32_t tid, pid;
	bool linked; /* its thread's stream of records is known */
};

/* What takes the chunks in place of a trace. */
struct session_memory_taker {
	void *ctx;
	bool (*has_room)(void *ctx); /* false: come again */
	/* Ticks become nanoseconds by the clock: the first time it is asked for it stands. */
	void (*put)(
		void *ctx, const struct os_clock *clock, const uint8_t *chunk, size_t size_bytes);
	void (*commit)(void *ctx);
};

struct record_words;
struct record_coder;
struct session_memory {
	const struct session_memory_taker *taker; /* NULL: the trace */
	struct session_place place;
	char path[SESSION_PLACE_PATH]; /* "": not made */
	struct memory_ring_head *head; /* shared with the target: trust nothing in it; NULL: not
					  made, or removed */
	void *mapped;                  /* it */
	pthread_t remover;
	bool removes; /* there is one */
	unsigned level;
	struct session_memory_stream *stream;
	size_t nr_streams, streams_capacity;
	uint32_t nr_definitions;
	uint8_t *copy;              /* of one block: the target may write to its own */
	struct record_words *words; /* what encodes for the target */
	struct session_memory_growing {
		struct record_coder *coder; /* NULL: not used yet */
		uint32_t definition;        /* of the stream; 0: none has it */
		uint64_t used;
	} growing[SESSION_MEMORY_GROWING];
	unsigned nr_encoded; /* raw chunks in this round */
	uint64_t nr_encoded_ever;
	bool beside;     /* the program's threads take turns: we encode while it runs */
	bool encodes;    /* what is raw has not to wait for the end */
	bool overflowed; /* there was no room for it any more */
	uint64_t nr_chunks, nr_bytes, nr_damaged, lost_words, nr_encoded_words;
};

enum base_status session_memory_create(struct session_memory *m, unsigned level, bool beside,
	unsigned long nr_processors, const struct session_memory_taker *taker,
	struct base_err *err) BASE_MUST_CHECK;
/* For the process that becomes the program, while it waits: the file gets its pages, or it is of no
 * use, since a writer would be killed for one that is not there. And those are filled that a
 * program that we encode for writes first: a fresh page costs its first writer as much as encoding
 * what it holds. (Not before Linux 5.14: then it pays.) Returns 0 or an errno, of which
 * session_memory_no_room() makes an error. */
int session_memory_make_pages(const void *memory /* struct session_memory */);
enum base_status session_memory_no_room(
	const struct session_memory *m, int why, struct base_err *err);
/* All is taken: the file is removed while the caller goes on with something else, for it takes as
 * long as to start a program. */
void session_memory_remove(struct session_memory *m);
void session_memory_destroy(struct session_memory *m); /* removes it, too */
/* Blocks are free, more than a writer may leave raw, or there are none at all: a round may be put
 * off.
 */
bool session_memory_can_wait(const struct session_memory *m);
/* One round. Returns how many chunks were taken. `has_spare`: nobody else needs the processor that
 * we run on; `final`: nobody writes any more. */
unsigned session_memory_drain(
	struct session_memory *m, struct record_converter *c, bool has_spare, bool final);
/* The definitions again, now that all threads are known. */
void session_memory_finish(struct session_memory *m, struct record_converter *c);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stream.h - heads of blocks, threads, and their words into the recorder's shared memory.
 *
 * What a thread does to itself needs no lock. One lock is for all the rest: blocks, shapes,
 * objects, tables. A thread waits for the recorder under it, so nothing is overtaken by what comes
 * later.
 */
#ifndef LONGPOLE_QEMU_STREAM_H
#define LONGPOLE_QEMU_STREAM_H

#include "block.h"

#include "memory/stream/source.h"

struct thread {
	/* Of the block that is being executed: its words are next[0] (the head), next[1 ...]. */
	struct block *block; /* NULL: none is */
	const struct block_shape *shape;
	/* Of the next access; what none is like when it has strayed, or executes no block. */
	const struct block_expected *expected;
	uint64_t *next, *limit;  /* word; a block begins below the limit */
	struct block_seen *seen; /* as many as have been, when it is not as expected */
	unsigned nr_seen;
	bool strays;
	/* The piece. */
	uint64_t *words, begin_ticks;
	struct thread *next_thread;
	uint64_t number, sequence, lost;
	uint32_t tid;
	uint8_t *chunk; /* in the ring; NULL: none is open */
	uint32_t chunk_block, chunk_used, chunk_most;
	/* The system call that it is in. */
	uint64_t call_ticks, argument[2];
	bool in_call, ended, joined;
};

/* false: the ring cannot be used; said on standard error. */
bool stream_open(const char *ring_path);
/* The calling thread's, from its first call on. NULL: no memory. */
extern __thread struct thread *stream_self __attribute__((
	tls_model("initial-exec"), visibility("hidden"))); /* (for stream_thread()) */
struct thread *stream_new_thread(void);
static inline struct thread *stream_thread(void)
{
	return stream_self ? stream_self : stream_new_thread();
}
/* The block that was translated at `address`. Never NULL but without memory. */
struct block *stream_block(const struct block *like, const void *host);

/* What is mapped where may be otherwise now. */
void stream_maps(void);

/* A block begins; the one before has ended. */
void stream_begin(struct thread *t, struct block *b);
/* What is not as expected. */
void stream_stray(struct thread *t, struct block_key key, uint64_t address);
/* Ends the block that is being executed. */
void stream_end_block(struct thread *t);

static inline uint64_t stream_now_ticks(void)
{
	return __builtin_ia32_rdtsc();
}
/* Marks, of a thread that executes no block. */
void stream_mark_range(struct thread *t, bool store, uint64_t address, uint64_t bytes);
void stream_mark_call(struct thread *t, enum memory_call_kind kind, uint64_t began_ticks,
	const uint64_t argument[4]);
/* The piece ended then; the next one begins now. */
void stream_cut(struct thread *t, uint64_t end_ticks);
/* A system call begins: who follows need not wait for the thread. */
void stream_waits(struct thread *t);
/* Marks those as joined that have ended, when this one is alone. */
void stream_join_ended(struct thread *t);
void stream_end_thread(struct thread *t);
/* The program ends: all that is there. */
void stream_close(void);

static inline void stream_access(struct thread *t, struct block_key key, uint64_t address)
{
	const struct block_expected *e = t->expected;
	uint64_t *word = t->next + 1;
	if (e->key.info == key.info && e->key.instruction == key.instruction) {
		if (e->slot != BLOCK_NO_SLOT) {
			word[e->slot] = address;
		} else if (word[e->base] + (uint64_t)(int64_t)e->disp != address) {
			stream_stray(t, key, address);
			return;
		}
		if (e->ticks)
			word[e->ticks] = stream_now_ticks();
		t->expected++;
		return;
	}
	stream_stray(t, key, address);
}

#endif

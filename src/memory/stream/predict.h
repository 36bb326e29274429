/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.h - which block comes next, and what a plain slot has, as the stream format (stream.h)
 * predicts them: the same state in the encoder and in the decoder. No libc.
 *
 * A block that follows itself is expected to do so as often as the last time, and then to be left
 * for where it was left when the blocks before it were the same (a path of three: Q. Jacobson, E.
 * Rotenberg and J. Smith, "Path-based next trace prediction", 1997): inner loops with a constant
 * number of iterations need no token, nor does what depends on where one comes from. A place that
 * has been right gives way when it was wrong twice in a row.
 *
 * A slot has its last value and a stride, or the plain word before it in the stream (of whatever
 * block) and an offset, once the same offset was there twice when it had to be coded: an address
 * that is random itself is used again in the blocks that follow.
 */
#ifndef LONGPOLE_MEMORY_PREDICT_H
#define LONGPOLE_MEMORY_PREDICT_H

#include <stdint.h>

enum {
	MEMORY_PATH_SHIFT = 10, /* of the path's hash for one block more: three count */
	MEMORY_PATH_BITS = 3,   /* of it that choose a successor's place */
};
struct memory_successor {
	uint32_t next[1 << MEMORY_PATH_BITS]; /* index of a successor that is another block << 1 |
						 it has been right; 0: none yet */
	uint32_t run, trips; /* how often it has followed itself by now; in all, last time */
};

/* The path to a block: those before it, each once however often it follows itself. */
static inline uint32_t memory_path(uint32_t path, uint32_t previous)
{
	return path << MEMORY_PATH_SHIFT ^ previous;
}

static inline unsigned memory_path_place(uint32_t path)
{
	return path * UINT32_C(0x9e3779b9) >> (32 - MEMORY_PATH_BITS);
}

static inline uint32_t memory_successor(
	const struct memory_successor *s, unsigned place, uint32_t own)
{
	return s->run < s->trips ? own : s->next[place] >> 1;
}

/* It followed itself `times` more. */
static inline void memory_successor_repeats(struct memory_successor *s, uint32_t times)
{
	s->run += times;
	if (s->run > s->trips)
		s->trips = UINT32_MAX; /* more often than last time: who knows */
}

/* Another block, `next`, came after it. */
static inline void memory_successor_leaves(
	struct memory_successor *s, unsigned place, uint32_t next)
{
	uint32_t *is = &s->next[place];
	uint32_t other = *is & 1 ? *is ^ 1 : next << 1;
	*is = *is >> 1 == next ? *is | 1 : other;
	s->trips = s->run;
	s->run = 0;
}

struct memory_slot_state {
	uint64_t last, stride;
	uint64_t offset;  /* from the word before, when it was coded last */
	uint64_t follows; /* all bits: the word before counts; 0: its own last value */
};

static inline uint64_t memory_slot_predicted(const struct memory_slot_state *s, uint64_t word)
{
	return s->last + s->stride + ((word + s->offset - s->last - s->stride) & s->follows);
}

/* After a value that was coded. */
static inline void memory_slot_learn(struct memory_slot_state *s, uint64_t word, uint64_t value)
{
	const uint64_t stride = value - s->last, offset = value - word;
	const uint64_t strides = -(uint64_t)(stride == s->stride),
		       same = -(uint64_t)(offset == s->offset);
	s->follows = (s->follows | same) & ~strides;
	s->stride = stride;
	s->offset = offset;
	s->last = value;
}

#endif

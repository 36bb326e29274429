/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.h - which block comes next, and what a plain slot has, as the stream format (stream.h)
 * predicts them: the same state in the encoder and in the decoder. No libc.
 *
 * A block that follows itself is expected to do so as often as the last time, and then to be left
 * for where it was left last time: inner loops with a constant number of iterations need no token.
 *
 * A slot has its last value and a stride, or the plain word before it in the stream (of whatever
 * block) and an offset, once the same offset was there twice when it had to be coded: an address
 * that is random itself is used again in the blocks that follow.
 */
#ifndef LONGPOLE_MEMORY_PREDICT_H
#define LONGPOLE_MEMORY_PREDICT_H

#include <stdint.h>

struct memory_successor {
	uint32_t other;      /* index of the last successor that was another block; 0: none yet */
	uint32_t run, trips; /* how often it has followed itself by now; in all, last time */
};

static inline uint32_t memory_successor(const struct memory_successor *s, uint32_t own)
{
	return s->run < s->trips ? own : s->other;
}

/* It followed itself `times` more. */
static inline void memory_successor_repeats(struct memory_successor *s, uint32_t times)
{
	s->run += times;
	if (s->run > s->trips)
		s->trips = UINT32_MAX; /* more often than last time: who knows */
}

static inline void memory_successor_learn(struct memory_successor *s, uint32_t own, uint32_t next)
{
	if (next == own) {
		memory_successor_repeats(s, 1);
		return;
	}
	s->trips = s->run;
	s->run = 0;
	s->other = next;
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
	uint64_t stride = value - s->last, offset = value - word;
	if (stride == s->stride)
		s->follows = 0;
	else if (offset == s->offset)
		s->follows = ~UINT64_C(0);
	s->stride = stride;
	s->offset = offset;
	s->last = value;
}

#endif

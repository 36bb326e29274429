/* SPDX-License-Identifier: Apache-2.0 */
/* words.h - raw words of memory streams (ring/memory_ring.h), which the target left to us,
 * become chunks of memory/stream/stream.h, as its own runtime library would have made them. */
#ifndef LONGPOLE_RECORD_WORDS_H
#define LONGPOLE_RECORD_WORDS_H

#include "ring/memory_ring.h"

#include <stdbool.h>
#include <stddef.h>

struct record_words;
struct record_words *record_words_new(void); /* NULL: no memory */
void record_words_free(struct record_words *w);
/* From a table chunk: where the heads of blocks are. One may come again. */
void record_words_learn(struct record_words *w, const uint8_t *chunk, size_t size_bytes);

/* What raw chunks become: a chunk that grows. */
struct record_coder;
struct record_coder *record_coder_new(void); /* NULL: no memory */
void record_coder_free(struct record_coder *c);
/* Its chunk, which has an end now, and stays until there is another; NULL: there is none. */
const uint8_t *record_coder_take(struct record_coder *c, size_t *ret_bytes);

/* A chunk of raw words, which the target may still write to; its head as it was, with sense. */
struct record_raw {
	const uint8_t *chunk;
	struct memory_chunk_head head;
	size_t at;         /* 0 at first */
	uint64_t nr_words; /* that were encoded */
	uint64_t nr_lost;  /* that made no sense */
	bool begun;        /* the coder's chunk is one that began with words of this one */
};
/* Behind what the coder has of the same thread. False: take its chunk, then again: there is no room
 * for what is left, or it is of others. */
bool record_words_encode(struct record_words *w, struct record_coder *c, struct record_raw *r);

#endif

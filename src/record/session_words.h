/* SPDX-License-Identifier: Apache-2.0 */
/* session_words.h - raw words of memory streams (memory_ring.h), which the target left to us,
 * become chunks of memory/stream.h, as its own runtime library would have made them. */
#ifndef LONGPOLE_RECORD_SESSION_WORDS_H
#define LONGPOLE_RECORD_SESSION_WORDS_H

#include "record/memory_ring.h"

#include <stddef.h>

struct record_words;
struct record_words *record_words_new(void); /* NULL: no memory */
void record_words_free(struct record_words *w);
/* From a table chunk: where the heads of blocks are. One may come again. */
void record_words_learn(struct record_words *w, const uint8_t *chunk, size_t size_bytes);
/* A chunk of raw words, which is changed; `out` has room for MEMORY_RING_BLOCK_BYTES. Returns how
 * many words made no sense and are lost. */
uint64_t record_words_encode(struct record_words *w, uint8_t *raw, size_t size_bytes, uint8_t *out);

#endif

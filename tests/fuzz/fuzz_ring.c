/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ring.c - two blocks of a ring that a crashing program has scribbled on. The input: for each
 * block its header (six bytes), then words that both share by halves.
 */
#include "session/ring.h"
#include "fuzz_converter.h"

enum { HEADER = 6, BLOCKS = 2 };

static void fill(struct session_ring *r, uint32_t i, const uint8_t *header, const uint8_t *words,
	size_t size)
{
	struct ring_block *b = session_ring_block(r, i);
	r->head->free_map[0] &= ~(1ull << i);
	b->state = header[0] & 3;
	b->image = header[1] & 7;
	b->parent_image = header[2] & 7;
	b->thread = header[3] & 3;
	b->sequence = header[4] & 3;
	b->nr_words = (uint64_t)header[5] << (header[5] & 7);
	b->pid = b->tid = 0x7ffffff0 + (header[1] & 7u);
	memcpy(b->word, words, size < SESSION_RING_WORDS * 8 ? size : SESSION_RING_WORDS * 8);
}

static void drain(struct record_converter *c, void *ctx)
{
	struct session_ring *ring = ctx;
	session_ring_drain(ring, c, END / 2, END, false);
	record_converter_release(c, END / 2);
	session_ring_drain(ring, c, END, END, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session_ring ring;
	if (size < BLOCKS * HEADER ||
		session_ring_create(&ring, SESSION_RING_BYTES_MIN, 16, 0, NULL) != BASE_OK)
		return 0;
	const uint8_t *words = data + BLOCKS * HEADER;
	size_t half = (size - BLOCKS * HEADER) / 16 * 8;
	fill(&ring, 0, data, words, half);
	fill(&ring, 1, data + HEADER, words + half, half);
	fuzz_converter(drain, &ring);
	session_ring_destroy(&ring);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ring.c - two blocks of a ring that a crashing program has scribbled on. The input: for each
 * block its header (six bytes), then words that both share by halves.
 */
#include "record/session_ring.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 6, BLOCKS = 2, END = 1 << 30 };

static void fill(
	struct record_ring *r, uint32_t i, const uint8_t *header, const uint8_t *words, size_t size)
{
	struct ring_block *b = record_ring_block(r, i);
	r->head->free_map[0] &= ~(1ull << i);
	b->state = header[0] & 3;
	b->image = header[1] & 7;
	b->parent_image = header[2] & 7;
	b->thread = header[3] & 3;
	b->sequence = header[4] & 3;
	b->nr_words = (uint64_t)header[5] << (header[5] & 7);
	b->pid = b->tid = 0x7ffffff0 + (header[1] & 7u);
	memcpy(b->word, words, size < RECORD_RING_WORDS * 8 ? size : RECORD_RING_WORDS * 8);
}

static bool nobody_lives(uint32_t pid)
{
	(void)pid;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_clock clock = {0};
	struct record_ring ring;
	struct trace_info info = {.size = sizeof info, .host = "", .command = "", .tool = ""};
	struct trace_writer *w;
	if (size < BLOCKS * HEADER ||
		!record_clock_fix(&clock, (struct record_clock_pair){0, 0},
			(struct record_clock_pair){END, END}) ||
		record_ring_create(&ring, RECORD_RING_BYTES_MIN, 16, 0, NULL) != BASE_OK)
		return 0;
	struct record_converter *c = base_alloc(sizeof *c);
	if (!c || trace_writer_open("/dev/null", &info, &w, NULL) != BASE_OK)
		goto out;
	const uint8_t *words = data + BLOCKS * HEADER;
	size_t half = (size - BLOCKS * HEADER) / 16 * 8;
	fill(&ring, 0, data, words, half);
	fill(&ring, 1, data + HEADER, words + half, half);
	if (record_converter_init(c, &clock, w, NULL) == BASE_OK) {
		record_ring_drain(&ring, c, END / 2, END, false);
		record_converter_release(c, END / 2);
		record_ring_drain(&ring, c, END, END, true);
		record_converter_finish(c, 0, END, nobody_lives);
		BASE_ASSERT(c->sink.status == BASE_OK);
	}
	record_converter_fini(c);
	(void)!trace_writer_close(w, NULL);
out:
	base_free(c);
	record_ring_destroy(&ring);
	return 0;
}

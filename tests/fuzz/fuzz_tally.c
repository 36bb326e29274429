/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tally.c - two tables of counts that a crashing program has scribbled on. The input: for each
 * its state and header (eight bytes), then entries of 16 words that both share by halves.
 */
#include "record/session_tally.h"
#include "record/tally.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 8, TABLES = 2, END = 1 << 30 };

static void fill(struct record_ring *r, uint32_t i, const uint8_t *header, const uint8_t *entries,
	size_t size)
{
	uint8_t *tables = (uint8_t *)r->head + r->tables_offset;
	struct tally_table *t = (void *)(tables + tally_table_offset(r->nr_tables, i));
	((uint32_t *)(void *)tables)[i] = header[0];
	t->image = header[1];
	t->parent_image = header[2];
	t->thread = header[3];
	t->end_tsc = (uint64_t)header[4] << (header[5] & 63);
	t->full = header[6];
	t->wait_bin[header[7] % TALLY_BINS] = header[6];
	t->hold_bin[header[7] % TALLY_BINS] = UINT64_MAX;
	t->pid = t->tid = 0x7ffffff0 + (header[1] & 7u);
	memcpy(t->entry, entries, size < sizeof t->entry ? size : sizeof t->entry);
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
	if (size < TABLES * HEADER ||
		!record_clock_fix(&clock, (struct record_clock_pair){0, 0},
			(struct record_clock_pair){END, END}) ||
		record_ring_create(&ring, RECORD_RING_BYTES_MIN, 16, 0, NULL) != BASE_OK)
		return 0;
	struct record_converter *c = base_alloc(sizeof *c);
	if (!c || record_tally_create(&ring, 7, NULL) != BASE_OK ||
		trace_writer_open("/dev/null", &info, &w, NULL) != BASE_OK)
		goto out;
	const uint8_t *entries = data + TABLES * HEADER;
	size_t half = (size - TABLES * HEADER) / 16 * 8;
	fill(&ring, 0, data, entries, half);
	fill(&ring, 1, data + HEADER, entries + half, half);
	if (record_converter_init(c, &clock, w, NULL) == BASE_OK) {
		record_ring_drain(&ring, c, END / 2, END, false);
		record_tally_drain(&ring, c, END / 2, false);
		record_tally_drain(&ring, c, END, true);
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

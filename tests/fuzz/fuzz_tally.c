/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tally.c - two tables of counts that a crashing program has scribbled on. The input: for each
 * its state and header (eight bytes), then entries of 16 words that both share by halves.
 */
#include "session/tally.h"
#include "ring/tally.h"
#include "fuzz_converter.h"

enum { HEADER = 8, TABLES = 2 };

static void fill(struct session_ring *r, uint32_t i, const uint8_t *header, const uint8_t *entries,
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
	memcpy(tables + tally_entries_offset(r->nr_tables, i), entries,
		size < TALLY_ENTRY_BYTES ? size : TALLY_ENTRY_BYTES);
	memcpy(tables + tally_events_offset(r->nr_tables, i), entries,
		size < TALLY_EVENT_BYTES ? size : TALLY_EVENT_BYTES);
	for (unsigned k = 0; k < 4 * TALLY_MODES; k++)
		t->event_count[k / 4][k % 4] = t->enabled_ns[k / 4] = t->running_ns[k / 4] =
			(uint64_t)header[4] << (header[5] & 63);
	memcpy(tables + tally_tags_offset(r->nr_tables, i), entries,
		size < TALLY_TAG_BYTES ? size : TALLY_TAG_BYTES);
}

static void drain(struct record_converter *c, void *ctx)
{
	struct session_ring *ring = ctx;
	session_ring_drain(ring, c, END / 2, END, false);
	session_tally_drain(ring, c, END / 2, false);
	session_tally_drain(ring, c, END, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session_ring ring;
	if (size < TABLES * HEADER ||
		session_ring_create(&ring, SESSION_RING_BYTES_MIN, 16, 0, NULL) != BASE_OK)
		return 0;
	const struct system_hardware events = {
		.event = {system_hardware_at(0), system_hardware_at(1)}, .nr = 2};
	if (session_tally_create(&ring, 7, &events, NULL) == BASE_OK) {
		const uint8_t *entries = data + TABLES * HEADER;
		size_t half = (size - TABLES * HEADER) / 16 * 8;
		fill(&ring, 0, data, entries, half);
		fill(&ring, 1, data + HEADER, entries + half, half);
		fuzz_converter(drain, &ring);
	}
	session_ring_destroy(&ring);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_memory_stream.c - any bytes as the tables of a recorded program and a chunk of its stream:
 * items that come out must keep the promises of source.h.
 *
 * Input: u16 bytes of the block section, u16 bytes of the info section, those, then the pieces. The
 * heads are made here, for nobody would guess them.
 */
#include "memory/stream/decode.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

enum { LENGTHS = 4, BLOCKS_AT = 0x10000, INFO_AT = 0x20000, CALLS = 64 };

static bool add(struct memory_tables_builder *b, unsigned section, uint64_t address,
	const uint8_t *bytes, size_t nr, uint8_t *chunk)
{
	struct memory_chunk_head h = {.magic = MEMORY_CHUNK_MAGIC,
		.version = MEMORY_STREAM_VERSION,
		.type = MEMORY_CHUNK_TABLE};
	struct memory_table_head t = {.section = section, .address = address, .bytes = nr};
	h.bytes = (uint32_t)(sizeof h + sizeof t + nr);
	memcpy(chunk, &h, sizeof h);
	memcpy(chunk + sizeof h, &t, sizeof t);
	memcpy(chunk + sizeof h + sizeof t, bytes, nr);
	return memory_tables_add(b, chunk, h.bytes, NULL) == BASE_OK;
}

static void walk(const struct memory_tables *t, struct memory_decoder *d, struct memory_item *item)
{
	struct memory_call call[CALLS];
	struct memory_walk w = {.tables = t, .level = 3, .clock = {0, 1 << 20}};
	struct memory_words words;
	while (memory_decoder_piece(d, &words, NULL) == BASE_OK) {
		size_t nr, nr_calls;
		memory_walk_begin(&w, &words);
		while ((nr = memory_walk_items(
				&w, item, MEMORY_BATCH_MAX, call, CALLS, &nr_calls))) {
			struct memory_batch b = {
				.item = item, .nr = nr, .call = call, .nr_calls = nr_calls};
			BASE_ASSERT(memory_batch_check(&b, NULL) == BASE_OK);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct memory_tables t;
	if (size_bytes < LENGTHS || size_bytes > 1 << 16)
		return 0;
	size_t blocks = data[0] | (size_t)data[1] << 8, info = data[2] | (size_t)data[3] << 8;
	size_t left = size_bytes - LENGTHS;
	blocks = (blocks > left ? left : blocks) / sizeof(struct memory_block_head) *
		 sizeof(struct memory_block_head);
	info = info > left - blocks ? left - blocks : info;
	const uint8_t *p = data + LENGTHS, *pieces = p + blocks + info;
	size_t nr = left - blocks - info;
	uint8_t *chunk = base_alloc(size_bytes + 256);
	struct memory_item *item = base_alloc(MEMORY_BATCH_MAX * sizeof *item);
	struct memory_tables_builder *b = memory_tables_begin(1);
	bool good = chunk && item && b &&
		    add(b, MEMORY_TABLE_BLOCKS, BLOCKS_AT, p, blocks, chunk) &&
		    add(b, MEMORY_TABLE_INFO, INFO_AT, p + blocks, info, chunk);
	if (!good) {
		memory_tables_free(b);
	} else if (memory_tables_end(b, 3, &t, NULL) == BASE_OK) {
		struct memory_decoder *d = memory_decoder_new(&t);
		for (uint16_t version = 1; memory_stream_known(version); version++) {
			struct memory_chunk_head h = {.magic = MEMORY_CHUNK_MAGIC,
				.version = version,
				.type = MEMORY_CHUNK_STREAM,
				.bytes = (uint32_t)(sizeof h + nr)};
			memcpy(chunk, &h, sizeof h);
			memcpy(chunk + sizeof h, pieces, nr);
			if (d && memory_decoder_chunk(d, chunk, h.bytes, NULL) == BASE_OK)
				walk(&t, d, item);
		}
		memory_decoder_free(d);
		memory_tables_fini(&t);
	}
	base_free(item);
	base_free(chunk);
	return 0;
}

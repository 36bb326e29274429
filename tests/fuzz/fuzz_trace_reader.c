/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_trace_reader.c - any bytes as a file: opened, read to the end, printed, read again.
 *
 * Checksums would stop nearly every mutation at the door. So those of the header, of chunk headers
 * and payloads and of the footer are made right first wherever such a thing stands; the damage that
 * they find is for unit tests.
 */
#include "trace/trace.h"
#include "trace/layout.h"

#include <stdlib.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void right_chunks(uint8_t *p, size_t nr, size_t at)
{
	while (nr - at >= TRACE_CHUNK_HEADER_BYTES && trace_get_u32(p + at) == TRACE_CHUNK_MAGIC) {
		uint8_t *h = p + at;
		size_t stored_bytes = trace_get_u32(h + 36);
		size_t room = nr - at - TRACE_CHUNK_HEADER_BYTES;

		if (stored_bytes <= room)
			trace_put_u64(h + 40, XXH64(h + TRACE_CHUNK_HEADER_BYTES, stored_bytes, 0));
		trace_put_u64(h + 48, XXH64(h, 48, 0));
		if (stored_bytes > room)
			return;
		at += TRACE_CHUNK_HEADER_BYTES + stored_bytes;
	}
}

static void right_checksums(uint8_t *p, size_t nr)
{
	if (nr < TRACE_HEADER_FIXED_BYTES + 8)
		return;
	size_t header_bytes = trace_get_u32(p + 12);
	if (header_bytes < TRACE_HEADER_FIXED_BYTES + 8 || header_bytes > nr)
		return;
	trace_put_u64(p + header_bytes - 8, XXH64(p, header_bytes - 8, 0));
	right_chunks(p, nr, header_bytes);
	if (nr < TRACE_TAIL_BYTES)
		return;
	uint64_t offset, bytes;
	uint8_t *tail = p + nr - TRACE_TAIL_BYTES;
	if (trace_tail_decode(tail, nr, &offset, &bytes))
		trace_put_u64(tail + 16, trace_footer_hash(p + offset, (size_t)bytes, offset));
}

/* Returns a number that depends on all records. Their order must be that of time. */
static uint64_t read_all(struct trace_reader *r, bool print)
{
	struct base_str out = {0};
	struct base_err err = {0};
	struct trace_batch batch;
	uint64_t sum = 0, last_ns = 0;
	enum base_status status;

	while ((status = trace_reader_next(r, &batch, &err)) == BASE_OK) {
		BASE_ASSERT(batch.nr > 0 && batch.nr <= TRACE_BATCH_MAX);
		for (size_t i = 0; i < batch.nr; i++) {
			const struct trace_record *a = &batch.record[i];
			BASE_ASSERT(trace_kind_find(a->kind) && a->time_ns >= last_ns);
			last_ns = a->time_ns;
			sum = base_hash_u64(sum ^ a->time_ns ^ a->kind ^ (uint64_t)a->stream << 32);
			if (!print)
				continue;
			base_str_reset(&out);
			trace_print_text(&out, trace_reader_defs(r), a);
			trace_print_json(&out, trace_reader_defs(r), a);
			BASE_ASSERT(!out.failed);
		}
	}
	/* Memory has no refusals of its own. */
	BASE_ASSERT(status == BASE_END || status == BASE_ERR_LIMIT || status == BASE_ERR_NOMEM);
	base_str_fini(&out);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct trace_reader_options opts = {.size = sizeof opts, .with_definitions = true};
	struct trace_reader *r;
	struct base_err err = {0};
	uint8_t *bytes = malloc(size_bytes ? size_bytes : 1);

	if (!bytes)
		return 0;
	if (size_bytes)
		memcpy(bytes, data, size_bytes);
	right_checksums(bytes, size_bytes);
	if (trace_reader_open_memory(bytes, size_bytes, &opts, &r, &err) == BASE_OK) {
		uint64_t first = read_all(r, true);
		struct trace_health health = *trace_reader_health(r);
		BASE_ASSERT(health.readable_bytes <= health.file_bytes);
		BASE_ASSERT(trace_reader_rewind(r, &err) == BASE_OK);
		BASE_ASSERT(read_all(r, false) == first);
		BASE_ASSERT(!memcmp(&health, trace_reader_health(r), sizeof health));
		trace_reader_close(r);
	}
	opts = (struct trace_reader_options){.size = sizeof opts, .from_ns = 1000, .to_ns = 5000};
	if (trace_reader_open_memory(bytes, size_bytes, &opts, &r, &err) == BASE_OK) {
		read_all(r, false);
		trace_reader_close(r);
	}
	free(bytes);
	return 0;
}

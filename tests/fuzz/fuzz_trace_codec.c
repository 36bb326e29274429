/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_trace_codec.c - bytes as records: what decodes, encodes to the very same bytes. */
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct trace_codec_state reading = {0}, writing = {0};
	const uint8_t *p = data, *end = data + size_bytes;
	uint8_t *again = malloc(size_bytes ? size_bytes : 1);

	if (!again)
		return 0;
	while (p < end) {
		struct trace_record r;
		const uint8_t *after = trace_decode(p, end, &reading, &r);

		if (!after)
			break;
		BASE_ASSERT(after > p && after <= end);
		size_t nr = (size_t)(after - p);
		/* Just enough room, then a byte less. */
		struct trace_codec_state before = writing;
		BASE_ASSERT(trace_encode(again, again + nr, &writing, &r) == again + nr);
		BASE_ASSERT(!memcmp(again, p, nr));
		BASE_ASSERT(writing.last_ns == reading.last_ns);
		BASE_ASSERT(!trace_encode(again, again + nr - 1, &before, &r));
		p = after;
	}
	free(again);
	return 0;
}

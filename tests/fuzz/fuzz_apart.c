/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_apart.c - a child that read a foreign file hands over anything: refused, or events that can
 * be written. The first byte is the size of the pieces that they come in. */
#include "format/apart.h"
#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct base_err err = {0};
	uint64_t count[FORMAT_APART_COUNTS] = {0};
	struct format_sched *to = format_sched_new();
	struct format_apart_taker t = {.to = to, .count = count};
	size_t piece = size_bytes && *data ? *data : 1 << 16;
	enum base_status s = BASE_OK;
	for (size_t at = 1; s == BASE_OK && at < size_bytes; at += piece) {
		size_t nr = size_bytes - at < piece ? size_bytes - at : piece;
		s = format_apart_take(&t, data + at, nr, &err);
	}
	format_apart_fini(&t);
	if (s == BASE_OK) {
		struct fuzz_trace trace = fuzz_trace_begin(TRACE_INFO_SYSTEM);
		struct base_str notes = {0};
		s = format_sched_write(to, trace.w, &notes, &err);
		BASE_ASSERT(s == BASE_OK || s == BASE_ERR_FOREIGN || s == BASE_ERR_LIMIT);
		base_str_fini(&notes);
		fuzz_trace_end(&trace, s == BASE_OK);
	}
	format_sched_free(to);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_perf_ring.c - the bytes of a perf_event buffer, one record after the other, parsed and
 * converted. */
#include "record/perf.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { END = 1 << 30 };

static bool nobody_lives(uint32_t pid)
{
	(void)pid;
	return false;
}

static void convert(struct record_converter *c, const uint8_t *data, size_t size)
{
	struct record_perf_record *r = base_alloc(sizeof *r);
	for (size_t length; r && (length = record_perf_parse(data, size, r));
		data += length, size -= length) {
		struct record_event e = r->event;
		if (e.kind == RECORD_EVENT_none)
			continue;
		BASE_ASSERT(e.nr_frames <= RECORD_FRAMES_MAX);
		if (e.nr_frames) {
			e.frame = base_alloc(e.nr_frames * sizeof *e.frame);
			memcpy(e.frame, r->frames, e.nr_frames * sizeof *e.frame);
		}
		/* no process of this machine is meant */
		e.pid = 0x7ffffff0 + (e.pid & 7);
		e.tid = 0x7ffffff0 + (e.tid & 7);
		record_converter_event(c, &e, &r->map, r->comm);
	}
	base_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_clock clock = {0};
	struct trace_info info = {.size = sizeof info, .host = "", .command = "", .tool = ""};
	struct trace_writer *w;
	struct record_converter *c = base_alloc(sizeof *c);
	if (c &&
		record_clock_fix(&clock, (struct record_clock_pair){0, 0},
			(struct record_clock_pair){END, END}) &&
		trace_writer_open("/dev/null", &info, &w, NULL) == BASE_OK) {
		if (record_converter_init(c, &clock, w, NULL) == BASE_OK) {
			convert(c, data, size);
			record_converter_release(c, UINT64_MAX / 2);
			record_converter_finish(c, 0, END, nobody_lives);
			BASE_ASSERT(c->sink.status == BASE_OK);
		}
		record_converter_fini(c);
		(void)!trace_writer_close(w, NULL);
	}
	base_free(c);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_perf_ring.c - the bytes of a perf_event buffer, one record after the other, parsed and
 * converted. */
#include "system/perf.h"
#include "fuzz_converter.h"

struct input {
	const uint8_t *data;
	size_t size;
};

static void convert(struct record_converter *c, void *ctx)
{
	struct input *in = ctx;
	struct system_perf_record *r = base_alloc(sizeof *r);
	for (size_t length; r && (length = system_perf_parse(in->data, in->size, r));
		in->data += length, in->size -= length) {
		struct record_event e = r->event;
		if (e.kind == RECORD_EVENT_none)
			continue;
		BASE_ASSERT(e.nr_frames <= RECORD_FRAMES_MAX);
		if (e.kind == RECORD_EVENT_sample)
			e.nr_frames = record_converter_unwind(
				c, 0x7ffffff0 + (e.pid & 7), &r->user, r->frames, e.nr_frames);
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
	record_converter_release(c, UINT64_MAX / 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_converter(convert, &(struct input){data, size});
	return 0;
}

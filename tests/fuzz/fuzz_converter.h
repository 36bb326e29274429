/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_converter.h - a converter that writes to nowhere, for what a crashed program or the kernel
 * may have left. */
#ifndef LONGPOLE_FUZZ_CONVERTER_H
#define LONGPOLE_FUZZ_CONVERTER_H

#include "record/convert.h"

#include <string.h>

enum { END = 1 << 30 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline bool nobody_lives(uint32_t pid)
{
	(void)pid;
	return false;
}

/* `feed` gives it records; then it has to finish without an error. */
static inline void fuzz_converter(void (*feed)(struct record_converter *c, void *ctx), void *ctx)
{
	struct os_clock clock = {0};
	struct trace_info info = {.size = sizeof info, .host = "", .command = "", .tool = ""};
	struct trace_writer *w;
	struct record_converter *c = base_alloc(sizeof *c);
	if (c &&
		os_clock_fix(
			&clock, (struct os_clock_pair){0, 0}, (struct os_clock_pair){END, END}) &&
		trace_writer_open("/dev/null", &info, &w, NULL) == BASE_OK) {
		if (record_converter_init(c, &clock, w, NULL) == BASE_OK) {
			feed(c, ctx);
			record_converter_finish(c, 0, END, nobody_lives);
			BASE_ASSERT(c->sink.status == BASE_OK);
		}
		record_converter_fini(c);
		(void)!trace_writer_close(w, NULL);
	}
	base_free(c);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_gem5.c - any bytes as an annotate.bin: imported into a trace, which must be readable and can
 * be exported again; and any bytes as its key alone.
 *
 * Few mutations would keep a header that leads to records and names at once. So its version is made
 * right first, in the byte order that the last byte says; the rest of it is as given.
 */
#include "format/format.h"
#include "format/gem5.h"
#include "../unit/format_memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static enum base_status drop(void *ctx, const void *bytes, size_t length, struct base_err *err)
{
	uint64_t *sum = ctx;
	(void)bytes;
	(void)err;
	*sum += length;
	return BASE_OK;
}

static void read_back(const char *path)
{
	struct format_options o = {0};
	struct format_input in = {.name = "a.lpt", .tool = "fuzz"};
	uint64_t written = 0;
	struct format_sink sink = {.write = drop, .ctx = &written};
	struct base_str text = {0};
	struct trace_batch b;
	enum base_status s = trace_reader_open(path, NULL, &in.reader, NULL);
	BASE_ASSERT(s == BASE_OK);
	while ((s = trace_reader_next(in.reader, &b, NULL)) == BASE_OK)
		for (size_t i = 0; i < b.nr; i++) {
			base_str_reset(&text);
			trace_print_text(&text, trace_reader_defs(in.reader), &b.record[i]);
		}
	BASE_ASSERT(s == BASE_END && !text.failed);
	s = format_export(format_find("gem5"), &in, &o, &sink, NULL);
	/* a time beyond the ticks of 64 bits; or nothing to export */
	BASE_ASSERT(s == BASE_OK || s == BASE_ERR_LIMIT || s == BASE_ERR_NOTFOUND);
	BASE_ASSERT(s != BASE_OK || written > GEM5_HEADER_BYTES);
	base_str_fini(&text);
	trace_reader_close(in.reader);
}

static void import(const uint8_t *bytes, size_t nr)
{
	char path[] = "/tmp/longpole-fuzz-XXXXXX";
	int fd = mkstemp(path);
	struct memory memory = {bytes, nr};
	struct format_source from = memory_source(&memory, "annotate.bin");
	struct format_import_options o = {.tick_ps = nr % 3 * 500};
	struct trace_info info = {
		.size = sizeof info, .host = "", .command = "", .tool = "", .nr_processors = 1};
	struct base_str notes = {0};
	struct trace_writer *w;
	if (fd < 0)
		return;
	close(fd);
	enum base_status s = trace_writer_open(path, &info, &w, NULL);
	BASE_ASSERT(s == BASE_OK);
	s = format_import(format_import_find("gem5"), &from, w, &o, &notes, NULL);
	BASE_ASSERT(s == BASE_OK || s == BASE_ERR_FOREIGN || s == BASE_ERR_LIMIT);
	enum base_status closed = trace_writer_close(w, NULL);
	BASE_ASSERT(closed == BASE_OK && !notes.failed);
	if (s == BASE_OK)
		read_back(path);
	base_str_fini(&notes);
	unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	static const uint8_t version[8] = {0x01, 0x01, 0x00, 0x00, 0x4e, 0x41, 0x35, 0x4d};
	struct gem5_key key;
	uint8_t *bytes = calloc(size_bytes ? size_bytes : 1, 1);
	if (!bytes)
		return 0;
	if (size_bytes)
		memcpy(bytes, data, size_bytes);
	if (format_gem5_key_parse(&key, (const char *)bytes, size_bytes, NULL) == BASE_OK)
		format_gem5_key_fini(&key);
	if (size_bytes > sizeof version)
		for (size_t i = 0; i < sizeof version; i++)
			bytes[i] = version[bytes[size_bytes - 1] & 1 ? sizeof version - 1 - i : i];
	import(bytes, size_bytes);
	free(bytes);
	return 0;
}

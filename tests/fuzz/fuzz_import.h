/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_import.h - any bytes as a file of an import format: refused, or imported into a trace that
 * can be read and modelled. */
#ifndef LONGPOLE_FUZZ_IMPORT_H
#define LONGPOLE_FUZZ_IMPORT_H

#include "format/format.h"
#include "../unit/format_memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static inline void fuzz_model(const char *path)
{
	struct model_options o = {.size = sizeof o};
	struct trace_reader *r;
	struct model *m = NULL;
	enum base_status s = trace_reader_open(path, NULL, &r, NULL);
	BASE_ASSERT(s == BASE_OK);
	s = model_run(r, &o, &m, NULL);
	/* nothing but idle processors: there is nothing to analyse */
	BASE_ASSERT(s == BASE_OK || s == BASE_ERR_LIMIT || s == BASE_ERR_NOMEM ||
		    s == BASE_ERR_NOTFOUND);
	model_free(m);
	trace_reader_close(r);
}

/* A trace that an import is written into: in memory, where it can be. */
struct fuzz_trace {
	char path[48];
	struct trace_writer *w;
};

static inline struct fuzz_trace fuzz_trace_begin(uint32_t flags)
{
	struct fuzz_trace t = {.path = "/dev/shm/longpole-fuzz-XXXXXX"};
	struct trace_info info = {.size = sizeof info,
		.host = "",
		.command = "",
		.tool = "",
		.nr_processors = 1,
		.flags = flags};
	int fd = mkstemp(t.path);
	BASE_ASSERT(fd >= 0);
	close(fd);
	enum base_status s = trace_writer_open(t.path, &info, &t.w, NULL);
	BASE_ASSERT(s == BASE_OK);
	return t;
}

static inline void fuzz_trace_end(struct fuzz_trace *t, bool is_good)
{
	enum base_status closed = trace_writer_close(t->w, NULL);
	BASE_ASSERT(closed == BASE_OK);
	if (is_good)
		fuzz_model(t->path);
	unlink(t->path);
}

/* `path`: for formats that a library reads. */
static inline void fuzz_import_from(const char *format, struct format_source from)
{
	const struct format_import_desc *f = format_import_find(format);
	struct format_started started;
	BASE_ASSERT(format_import_started(f, &from, &started, NULL) == BASE_OK);
	struct format_import_options o = {.started = &started};
	struct base_str notes = {0};
	struct fuzz_trace t = fuzz_trace_begin(
		f->flags & FORMAT_IMPORT_SYSTEM ? TRACE_INFO_SYSTEM : TRACE_INFO_SYNTHETIC);
	enum base_status s = format_import(f, &from, t.w, &o, &notes, NULL);
	BASE_ASSERT(s == BASE_OK || s == BASE_ERR_FOREIGN || s == BASE_ERR_LIMIT);
	BASE_ASSERT(!notes.failed);
	fuzz_trace_end(&t, s == BASE_OK);
	base_str_fini(&notes);
	base_str_fini(&started.command);
}

static inline void fuzz_import(const char *format, const uint8_t *bytes, size_t nr)
{
	struct memory memory = {bytes, nr};
	fuzz_import_from(format, memory_source(&memory, "input"));
}

#endif

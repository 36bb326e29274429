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

static inline void fuzz_import(const char *format, const uint8_t *bytes, size_t nr)
{
	char path[] = "/tmp/longpole-fuzz-XXXXXX";
	const struct format_import_desc *f = format_import_find(format);
	struct memory memory = {bytes, nr};
	struct format_source from = memory_source(&memory, "input");
	struct format_import_options o = {0};
	struct trace_info info = {.size = sizeof info,
		.host = "",
		.command = "",
		.tool = "",
		.nr_processors = 1,
		.flags =
			f->flags & FORMAT_IMPORT_SYSTEM ? TRACE_INFO_SYSTEM : TRACE_INFO_SYNTHETIC};
	struct base_str notes = {0};
	struct trace_writer *w;
	int fd = mkstemp(path);
	if (fd < 0)
		return;
	close(fd);
	enum base_status s = trace_writer_open(path, &info, &w, NULL);
	BASE_ASSERT(s == BASE_OK);
	s = format_import(f, &from, w, &o, &notes, NULL);
	BASE_ASSERT(s == BASE_OK || s == BASE_ERR_FOREIGN || s == BASE_ERR_LIMIT);
	enum base_status closed = trace_writer_close(w, NULL);
	BASE_ASSERT(closed == BASE_OK && !notes.failed);
	if (s == BASE_OK)
		fuzz_model(path);
	base_str_fini(&notes);
	unlink(path);
}

#endif

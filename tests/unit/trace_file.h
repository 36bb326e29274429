/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file.h - small traces on disk and in memory, for the tests of trace. */
#ifndef LONGPOLE_TESTS_TRACE_FILE_H
#define LONGPOLE_TESTS_TRACE_FILE_H

#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct trace_info test_info = {
	.size = sizeof test_info,
	.host = "host",
	.command = "prog 'a b'",
	.tool = "test",
	.origin_mono_ns = 123456789,
	.origin_unix_ns = 1700000000000000000,
	.tick_hz = 2400000000,
	.nr_processors = 8,
	.flags = TRACE_INFO_SYNTHETIC,
};

/* An unused path of our own; free() it after unlink(). */
static inline char *temporary_path(void)
{
	const char *dir = getenv("TMPDIR");
	char *path = NULL;

	if (asprintf(&path, "%s/longpole-test-XXXXXX", dir ? dir : "/tmp") < 0)
		abort();
	int fd = mkstemp(path);
	if (fd < 0)
		abort();
	close(fd);
	return path;
}

/* Exactly as large as the file, so that the address sanitizer sees one byte too many. */
static inline uint8_t *read_file(const char *path, size_t *ret_size)
{
	FILE *f = fopen(path, "rb");

	if (!f || fseek(f, 0, SEEK_END))
		abort();
	long size = ftell(f);
	rewind(f);
	uint8_t *bytes = malloc(size ? (size_t)size : 1);
	if (!bytes || fread(bytes, 1, (size_t)size, f) != (size_t)size)
		abort();
	fclose(f);
	*ret_size = (size_t)size;
	return bytes;
}

static inline void write_file(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(bytes, 1, size, f) != size || fclose(f))
		abort();
}

/* All records that a reader gives; texts are copies. */
struct record_list {
	struct trace_record *record;
	size_t nr, capacity;
};

static inline void record_list_fini(struct record_list *l)
{
	for (size_t i = 0; i < l->nr; i++) {
		if (l->record[i].kind == TRACE_string)
			free((char *)(uintptr_t)l->record[i].u.string.text.bytes);
	}
	free(l->record);
	*l = (struct record_list){0};
}

static inline void record_list_add(struct record_list *l, const struct trace_record *r)
{
	if (l->nr == l->capacity) {
		l->capacity = l->capacity ? 2 * l->capacity : 64;
		l->record = realloc(l->record, l->capacity * sizeof *l->record);
		if (!l->record)
			abort();
	}
	l->record[l->nr] = *r;
	if (r->kind == TRACE_string) {
		/* (not base_alloc: its failures are under test) */
		char *copy = malloc(r->u.string.text.length + 1);

		if (!copy)
			abort();
		memcpy(copy, r->u.string.text.bytes, r->u.string.text.length);
		l->record[l->nr].u.string.text.bytes = copy;
	}
	l->nr++;
}

/* Reads to the end; returns the status that ended it. */
static inline enum base_status read_all(
	struct trace_reader *r, struct record_list *ret, struct base_err *err)
{
	struct trace_batch batch;
	enum base_status status;

	while ((status = trace_reader_next(r, &batch, err)) == BASE_OK) {
		for (size_t i = 0; i < batch.nr; i++)
			record_list_add(ret, &batch.record[i]);
	}
	return status;
}

#endif

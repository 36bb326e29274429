/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_golden.c - the golden traces, always the same records. `make_golden DIR` writes DIR/NAME.lpt
 * and DIR/bad/NAME.lpt. They are committed: a new longpole must read what an old one wrote. Run it
 * only to add one more.
 */
#include "trace/trace.h"
#include "trace/enums.h"
#include "trace/layout.h"

#include "../unit/trace_file.h"
#include "../unit/trace_future.h"
#include "../unit/trace_random.h"

#include <err.h>
#include <sys/stat.h>

static struct base_err error;

static void ok(enum base_status status)
{
	if (status != BASE_OK)
		errx(1, "%s: %s", base_status_name(status), error.nr_causes ? error.cause[0] : "");
}

static struct trace_writer *begin(const char *dir, const char *name)
{
	struct trace_writer *w;
	char path[4096];

	snprintf(path, sizeof path, "%s/%s.lpt", dir, name);
	ok(trace_writer_open(path, &test_info, &w, &error));
	return w;
}

static void put(struct trace_writer *w, const struct trace_record *r)
{
	ok(trace_writer_put(w, r, &error));
}

#define PUT(w, stream_, time_, kind_, ...)                                                         \
	put(w, &(struct trace_record){.time_ns = (time_),                                          \
		       .stream = (stream_),                                                        \
		       .kind = TRACE_##kind_,                                                      \
		       .u.kind_ = {__VA_ARGS__}})

static void text(struct trace_writer *w, uint32_t id, const char *s)
{
	PUT(w, 0, 0, string, .string = id, .text = {s, (uint32_t)strlen(s)});
}

/* Nothing but a header and an index. */
static void make_empty(const char *dir)
{
	ok(trace_writer_close(begin(dir, "empty"), &error));
}

/* Two threads, one lock, all that a name can be. */
static void make_lock(const char *dir)
{
	struct trace_writer *w = begin(dir, "lock");

	text(w, 1, "prog");
	text(w, 2, "/usr/bin/prog");
	text(w, 3, "produce");
	text(w, 4, "prog.c");
	text(w, 5, "worker \xe2\x82\xac");
	text(w, 6, "not utf-8: \xff\xc0\x80, quote \", backslash \\, newline \n, tab \t, bell \a");
	PUT(w, 0, 0, process, .process = 1, .pid = 100, .name = 1, .command = 2);
	PUT(w, 0, 0, stream, .stream = 1, .process = 1, .tid = 100);
	PUT(w, 0, 0, stream, .stream = 2, .process = 1, .tid = 101, .name = 5);
	PUT(w, 0, 0, module, .module = 1, .path = 2, .build_id = 0);
	PUT(w, 0, 0, site, .site = 1, .module = 1, .offset = 0x1139);
	PUT(w, 0, 0, site, .site = 2, .module = 1, .offset = 0x2000);
	PUT(w, 0, 0, site, .site = 3, .offset = UINT64_C(0x7fff12345678));
	PUT(w, 0, 0, symbol, .site = 1, .function = 3, .file = 4, .line = 17,
		.function_offset = 0x1129);
	PUT(w, 0, 0, stack, .stack = 1, .site = 2);
	PUT(w, 0, 0, stack, .stack = 2, .parent = 1, .site = 1);
	PUT(w, 0, 0, object, .object = 1, .process = 1, .type = TRACE_OBJECT_mutex,
		.address = 0x404080);
	PUT(w, 0, 0, object, .object = 2, .process = 1, .type = TRACE_OBJECT_mutex,
		.address = 0x4040c0, .name = 6);
	PUT(w, 1, 0, process_begin, 0);
	PUT(w, 1, 0, thread_begin, 0);
	PUT(w, 1, 1000, thread_create, .token = 1, .site = 2);
	PUT(w, 2, 1000, thread_begin, .token = 1, .handle = UINT64_C(0x7f0000001700), .site = 1);
	PUT(w, 1, 1500, lock_acquire, .object = 1, .site = 1);
	PUT(w, 2, 1600, lock_wait, .object = 1, .site = 3, .stack = 2);
	PUT(w, 1, 1900, lock_release, .object = 1, .site = 2);
	PUT(w, 2, 1900, lock_acquire, .object = 1, .site = 3);
	PUT(w, 2, 2000, lock_acquire, .object = 2, .site = 1);
	PUT(w, 2, 2100, lock_release, .object = 2, .site = 1);
	PUT(w, 2, 2200, lock_release, .object = 1, .site = 99);
	PUT(w, 2, 2300, thread_end);
	PUT(w, 1, 2000, join_wait, .handle = UINT64_C(0x7f0000001700), .site = 2, .stack = 1);
	PUT(w, 1, 2310, join_done, .handle = UINT64_C(0x7f0000001700));
	PUT(w, 1, 2400, process_end, .status = -1);
	trace_writer_count(w, TRACE_DIAG_records_lost, 12);
	ok(trace_writer_close(w, &error));
}

/* Every kind a few times with values of every length; several chunks. */
static void make_kinds(const char *dir)
{
	struct trace_writer *w = begin(dir, "kinds");
	uint64_t seed = 42, now_ns[4] = {0};
	unsigned nr_kinds;
	const struct trace_kind_desc *k = trace_kind_table(&nr_kinds);

	for (unsigned n = 0; n < 4 * nr_kinds; n++) {
		struct trace_record r;
		random_fields(&seed, &k[n % nr_kinds], "golden text", 11, &r);
		if (r.kind >= TRACE_FIRST_DATA_KIND) {
			r.stream = 1 + (uint32_t)random_below(&seed, 3);
			r.time_ns = now_ns[r.stream] += random_wide(&seed) >> 10;
		}
		put(w, &r);
		if (n % 100 == 99)
			ok(trace_writer_flush(w, &error));
	}
	ok(trace_writer_close(w, &error));
}

/* Large enough that chunks are compressed. */
static void make_long(const char *dir)
{
	struct trace_writer *w = begin(dir, "long");

	PUT(w, 0, 0, object, .object = 1, .type = TRACE_OBJECT_spin, .address = 0x1000);
	for (uint64_t i = 0; i < 400; i++) {
		PUT(w, 1 + (uint32_t)(i % 5), i * 10, lock_acquire, .object = 1,
			.site = (uint32_t)(i % 7));
		PUT(w, 1 + (uint32_t)(i % 5), i * 10 + 6, lock_release, .object = 1,
			.site = (uint32_t)(i % 7));
	}
	ok(trace_writer_close(w, &error));
}

/* Large enough for columns: threads that nest locks and wait for some, and a stream of little. */
static void make_columns(const char *dir)
{
	struct trace_writer *w = begin(dir, "columns");
	uint64_t seed = 9, now_ns[4] = {0};

	PUT(w, 0, 0, object, .object = 1, .type = TRACE_OBJECT_mutex, .address = 0x1000);
	PUT(w, 0, 0, object, .object = 200, .type = TRACE_OBJECT_mutex, .address = 0x2000);
	for (uint32_t i = 0; i < 600; i++) {
		uint32_t stream = 1 + i % 2, object = random_below(&seed, 2) ? 1 : 200;
		uint64_t *now = &now_ns[stream];
		PUT(w, stream, *now += random_below(&seed, 300), lock_acquire, .object = 2,
			.site = 7);
		if (i % 9 == 0)
			PUT(w, stream, *now += 5, lock_wait, .object = object, .site = 300,
				.stack = i);
		PUT(w, stream, *now += random_wide(&seed) >> 44, lock_acquire, .object = object,
			.site = 300);
		PUT(w, stream, *now += 12, lock_release, .object = object, .site = 301);
		PUT(w, stream, *now += 7, lock_release, .object = 2, .site = 8);
	}
	PUT(w, 3, 10, lock_acquire, .object = 1, .site = 7);
	PUT(w, 3, 17, process_end, .status = -1);
	ok(trace_writer_close(w, &error));
}

static void save(const char *dir, const char *name, const uint8_t *bytes, size_t nr)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s.lpt", dir, name);
	write_file(path, bytes, nr);
}

/* What went wrong with lock.lpt; and what a later longpole may write. */
static void make_damaged(const char *dir)
{
	char path[4096], bad[4096];
	size_t nr, future_nr;

	snprintf(path, sizeof path, "%s/lock.lpt", dir);
	snprintf(bad, sizeof bad, "%s/bad", dir);
	mkdir(bad, 0777);
	uint8_t *bytes = read_file(path, &nr);
	uint32_t header_bytes = trace_get_u32(bytes + 12);
	uint64_t footer = footer_offset_of(bytes, nr);

	uint8_t *future = add_future_kind(bytes, nr, footer, 5000, &future_nr);
	save(dir, "future_kind", future, future_nr);
	free(future);
	save(bad, "cut_header", bytes, header_bytes / 2);
	save(bad, "cut_chunk", bytes, (size_t)footer - 20);
	save(bad, "cut_footer", bytes, nr - 10);
	save(bad, "no_footer", bytes, (size_t)footer);
	save(bad, "empty_file", bytes, 0);
	save(bad, "not_a_trace", (const uint8_t *)"#!/bin/sh\necho hello\n", 21);

	bytes[header_bytes + TRACE_CHUNK_HEADER_BYTES + 3] ^= 0x10;
	save(bad, "flip_definitions", bytes, nr);
	bytes[header_bytes + TRACE_CHUNK_HEADER_BYTES + 3] ^= 0x10;
	bytes[footer - 5] ^= 0x01;
	save(bad, "flip_last_chunk", bytes, nr);
	bytes[footer - 5] ^= 0x01;
	bytes[header_bytes + 9] ^= 0x80;
	save(bad, "flip_chunk_header", bytes, nr);
	save(bad, "flip_chunk_header_no_footer", bytes, (size_t)footer);
	bytes[header_bytes + 9] ^= 0x80;
	bytes[footer + 20] ^= 0x04;
	save(bad, "flip_index", bytes, nr);
	bytes[footer + 20] ^= 0x04;
	bytes[70] ^= 0x20;
	save(bad, "flip_header", bytes, nr);
	bytes[70] ^= 0x20;
	trace_put_u32(bytes + 8, TRACE_VERSION + 1);
	save(bad, "newer_version", bytes, nr);
	free(bytes);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: make_golden DIR");
	make_empty(argv[1]);
	make_lock(argv[1]);
	make_kinds(argv[1]);
	make_long(argv[1]);
	make_columns(argv[1]);
	make_damaged(argv[1]);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_fixture.h - a ring that the test fills as a recorded program would, and the trace that
 * comes out of it.
 *
 * The clock is made up: one tick is one nanosecond, and CLOCK_MONOTONIC_RAW is 1,000,000 ahead of
 * the trace's time.
 */
#ifndef LONGPOLE_TESTS_RECORD_FIXTURE_H
#define LONGPOLE_TESTS_RECORD_FIXTURE_H

#include "session/ring.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIXTURE_RAW_NS = 1000000, FIXTURE_GONE_PID = 0x7ffffff0 };

struct fixture {
	struct os_clock clock;
	struct session_ring ring;
	struct record_converter converter;
	struct trace_writer *writer;
	struct trace_reader *reader;
	char path[64];
};

static inline void fixture_open(struct fixture *f)
{
	memset(f, 0, sizeof *f);
	struct os_clock_pair first = {.tsc = 5000, .raw_ns = FIXTURE_RAW_NS},
			     last = {.tsc = 1000005000, .raw_ns = FIXTURE_RAW_NS + 1000000000};
	f->clock.tsc_origin = first.tsc;
	f->clock.raw_origin_ns = first.raw_ns;
	assert_true(os_clock_fix(&f->clock, first, last));
	os_clock_add_pair(&f->clock, first);
	os_clock_add_pair(&f->clock, last);
	assert_int_equal(session_ring_create(&f->ring, SESSION_RING_BYTES_MIN, 16, first.tsc, NULL),
		BASE_OK);
	temporary_file(f->path, NULL, 0);
	struct trace_info info = {.size = sizeof info,
		.host = "",
		.command = "",
		.tool = "test",
		.origin_mono_ns = f->clock.raw_origin_ns,
		.origin_unix_ns = f->clock.unix_origin_ns};
	assert_int_equal(trace_writer_open(f->path, &info, &f->writer, NULL), BASE_OK);
	assert_int_equal(record_converter_init(&f->converter, &f->clock, f->writer, NULL), BASE_OK);
}

static inline void fixture_drain(struct fixture *f, uint64_t horizon)
{
	session_ring_drain(&f->ring, &f->converter, horizon, horizon + 1000000000, false);
	record_converter_release(&f->converter, horizon);
	assert_int_equal(f->converter.sink.status, BASE_OK);
}

static inline bool fixture_nobody_lives(uint32_t pid)
{
	(void)pid;
	return false;
}

/* Everything is converted; the trace is written and opened for reading. */
static inline void fixture_finish(struct fixture *f)
{
	uint64_t end = 1ull << 40;
	session_ring_drain(&f->ring, &f->converter, end, end, true);
	record_converter_release(&f->converter, end);
	record_converter_finish(&f->converter, -1, 0, fixture_nobody_lives);
	assert_int_equal(f->converter.sink.status, BASE_OK);
	assert_int_equal(trace_writer_close(f->writer, NULL), BASE_OK);
	f->writer = NULL;
	assert_int_equal(trace_reader_open(f->path, NULL, &f->reader, NULL), BASE_OK);
}

static inline void fixture_close(struct fixture *f)
{
	trace_reader_close(f->reader);
	record_converter_fini(&f->converter);
	session_ring_destroy(&f->ring);
	unlink(f->path);
}

/* All records of the trace in time order, but not where processes begin and end; returns how many
 * (at most max). */
static inline size_t fixture_records(struct fixture *f, struct trace_record *record, size_t max)
{
	struct trace_batch batch;
	size_t nr = 0;
	enum base_status status;
	while ((status = trace_reader_next(f->reader, &batch, NULL)) == BASE_OK)
		for (size_t i = 0; i < batch.nr && nr < max; i++)
			if (batch.record[i].kind != TRACE_process_begin &&
				batch.record[i].kind != TRACE_process_end)
				record[nr++] = batch.record[i];
	assert_int_equal(status, BASE_END);
	return nr;
}

static inline const struct trace_defs *fixture_defs(struct fixture *f)
{
	return trace_reader_defs(f->reader);
}

/* ---- the recorded program's side ------------------------------------------------------------- */

struct fake_thread {
	struct fixture *f;
	uint32_t image, parent, pid, tid, sequence;
	uint64_t number;
	struct ring_block *block;
	uint32_t index;
	size_t used;
};

static inline void fake_take_block(struct fake_thread *t, uint32_t index)
{
	t->index = index;
	t->block = session_ring_block(&t->f->ring, index);
	assert_int_equal(t->block->state, RING_BLOCK_FREE);
	t->f->ring.head->free_map[index / 64] &= ~(1ull << index % 64);
	t->block->pid = t->pid;
	t->block->tid = t->tid;
	t->block->image = t->image;
	t->block->parent_image = t->parent;
	t->block->sequence = t->sequence++;
	t->block->thread = t->number;
	t->block->state = RING_BLOCK_ACTIVE;
	t->used = 0;
}

static inline void fake_done(struct fake_thread *t)
{
	t->block->nr_words = t->used;
	t->block->state = RING_BLOCK_DONE;
}

static inline void fake_words(
	struct fake_thread *t, uint64_t time, unsigned kind, const uint64_t *words, size_t nr)
{
	assert_true(t->used + nr + 1 <= SESSION_RING_WORDS);
	memcpy(t->block->word + t->used + 1, words, nr * sizeof *words);
	t->block->word[t->used] = time << 8 | kind;
	t->used += nr + 1;
}
#define FAKE_WORDS(...)                                                                            \
	(const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)
#define FAKE(t, time, kind, ...) fake_words(t, time, kind, FAKE_WORDS(__VA_ARGS__))

static inline void fake_text(struct fake_thread *t, uint64_t time, unsigned kind,
	const uint64_t *words, size_t nr, const char *text, size_t text_bytes)
{
	uint64_t all[64] = {0};
	assert_true(nr + (text_bytes + 7) / 8 <= 64);
	memcpy(all, words, nr * sizeof *words);
	memcpy(all + nr, text, text_bytes);
	fake_words(t, time, kind, all, nr + (text_bytes + 7) / 8);
}

static inline void fake_module(struct fake_thread *t, uint64_t time, uint64_t start, uint64_t end,
	uint64_t bias, const char *path)
{
	fake_text(t, time, RING_module,
		FAKE_WORDS(start, end, bias, 2ull << 32 | strlen(path), 0xabcd, 0, 0), path,
		strlen(path));
}

static inline void fake_descriptor(struct fake_thread *t, uint64_t time, uint64_t incarnation,
	enum trace_object_type type, uint64_t ino, uint64_t pair_ino, const char *name)
{
	fake_text(t, time, RING_descriptor,
		FAKE_WORDS(incarnation, 3, type, 12, ino, 65536, pair_ino, strlen(name)), name,
		strlen(name));
}

/* Image `image` begins in this thread: forked when token is not 0. */
static inline void fake_image(struct fake_thread *t, uint64_t time, uint64_t token)
{
	static const char command[] = "/bin/prog\0a b";
	fake_text(t, time, RING_image, FAKE_WORDS(1, sizeof command - 1), command,
		sizeof command - 1);
	FAKE(t, time, TRACE_process_begin, token);
}

static inline uint64_t fake_object(enum trace_object_type type, uint64_t address)
{
	return (uint64_t)type << RING_OBJECT_TYPE_SHIFT | address;
}

#endif

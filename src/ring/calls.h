/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - numbers of the functions in calls.def: from 1, as a table's keys carry them. */
#ifndef LONGPOLE_RING_CALLS_H
#define LONGPOLE_RING_CALLS_H

#include <stdint.h>

enum calls_function {
	CALLS_none,
#define CALL(category, timing, result, name, parameters, arguments, bytes) CALLS_##name,
#define CALL_VOID(category, timing, name, parameters, arguments)           CALLS_##name,
#define CALL_OWN(category, timing, name)                                   CALLS_##name,
#include "ring/calls.def"
	CALLS_NR
};

/* What calls.def says of their time. */
enum {
	CALLS_LEAF = 1,   /* one in so many is timed; without it all are */
	CALLS_CPU = 2,    /* processor time is measured, too, of one in so many */
	CALLS_LOCK = 4,   /* a thread that finds it taken waits: such calls are all timed */
	CALLS_STREAM = 8, /* the same, and of those that reach the kernel processor time, too */
};
enum calls_timing {
	TIMING_often = CALLS_LEAF,
	TIMING_bulk = CALLS_LEAF,
	TIMING_brief = 0,
	TIMING_waits = CALLS_CPU,
	TIMING_lock = CALLS_LEAF | CALLS_LOCK,
	TIMING_read_lock = TIMING_lock,
	TIMING_write_lock = TIMING_lock,
	TIMING_spin_lock = CALLS_LEAF, /* a waiter is busy */
	TIMING_text_in = CALLS_STREAM,
	TIMING_bytes_in = CALLS_STREAM,
	TIMING_text_out = CALLS_STREAM,
	TIMING_text_stdout = CALLS_STREAM,
	TIMING_bytes_out = CALLS_STREAM,
	TIMING_char_in = CALLS_LEAF | CALLS_STREAM,
	TIMING_char_stdin = TIMING_char_in,
	TIMING_char_out = TIMING_char_in,
	TIMING_char_stdout = TIMING_char_in,
};

/* How it says that it failed (ring/calls_failed.def). */
enum calls_fails { CALLS_FAILS_never, CALLS_FAILS_number, CALLS_FAILS_result };
enum calls_kind {
	CALLS_KIND_io,
	CALLS_KIND_memory,
	CALLS_KIND_string,
	CALLS_KIND_pthreads,
	CALLS_KIND_math,
	CALLS_KIND_other
};

/* A table entry's key; caller: the counted function inside which it was called, or CALLS_none. */
#define CALLS_KEY           (1ull << 63)
#define CALLS_FUNCTION(key) ((unsigned)((key) >> 8 & 0xffff))
#define CALLS_CALLER(key)   ((unsigned)((key) >> 32 & 0xffff))
static inline uint64_t calls_key(unsigned function, unsigned caller)
{
	return CALLS_KEY | (uint64_t)caller << 32 | (uint64_t)function << 8;
}

#endif

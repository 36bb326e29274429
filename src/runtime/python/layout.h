/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - where CPython has what, by version: offsets from its headers (x86-64), and for 3.13
 * those that it publishes itself (_Py_DebugOffsets, PEP 768). Also the table of a code object's
 * lines (3.11 and later). No code behind it: readers inside and outside of a process have their own
 * ways to read.
 */
#ifndef LONGPOLE_RUNTIME_PYTHON_LAYOUT_H
#define LONGPOLE_RUNTIME_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Offsets in bytes. The same in all of them: bytes and tuples have ob_size at 16; of a text the
 * length is at 16, its state at 32. */
enum {
	PYTHON_TYPE = 8, /* of an object */
	PYTHON_SIZE = 16,
	PYTHON_BYTES = 32,
	PYTHON_TEXT_LENGTH = 16,
	PYTHON_TEXT_STATE = 32,
	PYTHON_FLOAT = 16,
	PYTHON_TYPE_NAME = 24, /* of a type; the bytes of its objects */
	PYTHON_TYPE_BYTES = 32,
};
struct python_layout {
	uint32_t version; /* 0x030b: 3.11 */
	uint32_t interpreters, next_interpreter, threads;
	uint32_t next_thread, pthread, native, frame;
	bool is_behind_cframe; /* `frame` is of a struct that has the frame at `cframe` */
	uint32_t cframe;
	uint32_t previous, code, instruction, owner;
	uint32_t file, name, line_table, first_line, instructions;
	uint32_t ascii, compact; /* where a text's characters begin */
	/* The global lock: of the runtime itself, or what the main interpreter points to there. */
	uint32_t main_interpreter, gil;
	bool is_gil_of_interpreter;
	/* A coroutine's frame; a frame's variables, and how many of them, and of what it computes
	 * with, there are. */
	uint32_t coroutine_frame, variables, top;
};
static const struct python_layout python_layouts[] = {
	{.version = 0x030b,
		.interpreters = 40,
		.next_interpreter = 0,
		.threads = 16,
		.next_thread = 8,
		.pthread = 152,
		.native = 160,
		.frame = 56,
		.is_behind_cframe = true,
		.cframe = 8,
		.previous = 48,
		.code = 32,
		.instruction = 56,
		.owner = 69,
		.file = 112,
		.name = 128,
		.line_table = 136,
		.first_line = 72,
		.instructions = 184,
		.ascii = 48,
		.compact = 72,
		.main_interpreter = 48,
		.gil = 360,
		.coroutine_frame = 80,
		.variables = 72,
		.top = 64},
	{.version = 0x030c,
		.interpreters = 40,
		.next_interpreter = 0,
		.threads = 72,
		.next_thread = 8,
		.pthread = 136,
		.native = 144,
		.frame = 56,
		.is_behind_cframe = true,
		.cframe = 0,
		.previous = 8,
		.code = 0,
		.instruction = 56,
		.owner = 70,
		.file = 112,
		.name = 128,
		.line_table = 136,
		.first_line = 68,
		.instructions = 192,
		.ascii = 40,
		.compact = 56,
		.main_interpreter = 48,
		.gil = 384,
		.is_gil_of_interpreter = true,
		.coroutine_frame = 72,
		.variables = 72,
		.top = 64},
};

/* Where 3.13 says it: at which offsets of _Py_DebugOffsets, which is where _PyRuntime begins. */
#define PYTHON_FIELD(member, at)                                                                   \
	{                                                                                          \
		offsetof(struct python_layout, member), at                                         \
	}
static const struct {
	size_t member;
	uint32_t at;
} python_published[] = {
	PYTHON_FIELD(interpreters, 40),
	PYTHON_FIELD(next_interpreter, 64),
	PYTHON_FIELD(threads, 72),
	PYTHON_FIELD(gil, 112),
	PYTHON_FIELD(next_thread, 168),
	PYTHON_FIELD(frame, 184),
	PYTHON_FIELD(pthread, 192),
	PYTHON_FIELD(native, 200),
	PYTHON_FIELD(previous, 232),
	PYTHON_FIELD(code, 240),
	PYTHON_FIELD(instruction, 248),
	PYTHON_FIELD(owner, 264),
	PYTHON_FIELD(file, 280),
	PYTHON_FIELD(name, 296),
	PYTHON_FIELD(line_table, 304),
	PYTHON_FIELD(first_line, 312),
	PYTHON_FIELD(instructions, 344),
	PYTHON_FIELD(ascii, 560),
};
enum {
	PYTHON_PUBLISHED_BYTES = 584,
	PYTHON_PUBLISHED_VERSION = 8,
	PYTHON_PUBLISHED_FREE_THREADED = 16,
	PYTHON_SAYS_ITSELF = 0x030d,
	PYTHON_OFFSET_MAX = 1 << 20,
};

/* In the struct of the global lock, of all versions. FREE and its MUTEX: a thread that wants the
 * lock waits there; TAKEN: one that was made to give it up waits there until another has it. */
enum {
	PYTHON_GIL_FREE = 32,
	PYTHON_GIL_MUTEX = 80,
	PYTHON_GIL_TAKEN = 120,
	PYTHON_GIL_TAKEN_MUTEX = 168,
	PYTHON_GIL_BYTES = 208,
};

/* False: there is no row of that version (0x030b: 3.11). */
static inline bool python_layout_of(uint32_t version, struct python_layout *ret)
{
	for (size_t i = 0; i < sizeof python_layouts / sizeof *python_layouts; i++) {
		if (python_layouts[i].version != version)
			continue;
		*ret = python_layouts[i];
		return true;
	}
	return false;
}

/* From the first PYTHON_PUBLISHED_BYTES of _PyRuntime. False: it does not say them, or has no
 * global lock. */
static inline bool python_layout_published(const uint8_t *bytes, struct python_layout *ret)
{
	uint64_t value;
	if (memcmp(bytes, "xdebugpy", 8) != 0)
		return false;
	memcpy(&value, bytes + PYTHON_PUBLISHED_VERSION, sizeof value);
	if (value >> 16 != PYTHON_SAYS_ITSELF)
		return false;
	memcpy(&value, bytes + PYTHON_PUBLISHED_FREE_THREADED, sizeof value);
	if (value)
		return false;
	/* (what it does not say is as its first release has it) */
	*ret = (struct python_layout){.version = PYTHON_SAYS_ITSELF,
		.is_gil_of_interpreter = true,
		.coroutine_frame = 72,
		.variables = 72,
		.top = 64};
	for (size_t i = 0; i < sizeof python_published / sizeof *python_published; i++) {
		memcpy(&value, bytes + python_published[i].at, sizeof value);
		if (value > PYTHON_OFFSET_MAX)
			return false;
		const uint32_t offset = (uint32_t)value;
		memcpy((char *)ret + python_published[i].member, &offset, sizeof offset);
	}
	ret->compact = ret->ascii + 16; /* utf8_length and utf8 come between */
	ret->main_interpreter = ret->interpreters + 8;
	return true;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Six bits a byte, the lowest first. */
static inline uint32_t python_take_number(const uint8_t *table, size_t size, size_t *at)
{
	uint32_t value = 0;
	for (unsigned shift = 0; *at < size && shift < 32; shift += 6) {
		const uint8_t b = table[(*at)++];
		value |= (uint32_t)(b & 0x3f) << shift;
		if (!(b & 0x40))
			break;
	}
	return value;
}

/* The line of the instruction at `unit` (in units of two bytes), by a code object's table of
 * locations, which begins with line `first`; 0: it has none. */
static inline uint32_t python_line(const uint8_t *table, size_t size, uint32_t first, uint64_t unit)
{
	enum { SHORT_LINES = 10, NO_COLUMNS = 13, LONG = 14, NOWHERE = 15 };
	uint32_t line = first;
	uint64_t begins = 0;
	for (size_t at = 0; at < size;) {
		const unsigned code = table[at] >> 3 & 15, units = (table[at] & 7) + 1u;
		at++;
		if (code == NO_COLUMNS || code == LONG) {
			const uint32_t n = python_take_number(table, size, &at);
			line = n & 1 ? line - (n >> 1) : line + (n >> 1);
		} else if (code >= SHORT_LINES && code < NO_COLUMNS) {
			line += code - SHORT_LINES;
		}
		if (unit >= begins && unit - begins < units)
			return code == NOWHERE ? 0 : line;
		begins += units;
		while (at < size &&
			!(table[at] & 0x80)) /* only the first byte of an entry has it */
			at++;
	}
	return 0;
}

#endif

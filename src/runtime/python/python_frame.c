/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_frame.c - the Python frames of the thread that asks, as places of the ring (RING_place).
 *
 * Read are only what this thread itself executes: its frames, and the code objects that these hold.
 * Nobody else changes them meanwhile, with or without the global lock. A place is named once, when
 * it is met first, by reads that cannot fault; from then on it is one word of a table, found by the
 * code object, its table of lines and name (another object may come to lie there), and the
 * instruction.
 */
#include "preload/place.h"
#include "runtime/python/python.h"

#ifndef PRELOAD_STATIC

enum {
	SLOT_BITS = 13,
	WALK_MAX = 32, /* frames looked at for one of the program's own */
	FUNCTION_BYTES = 200,
	FILE_BYTES = 400,
	TABLE_BYTES = 4096, /* of lines: at once */
	TABLE_MAX = 1 << 16,
	OWNED_BY_C = 3,
};

#define PLACE_BEGINS PLACE_SPECIAL /* what begins the work of a thread or process */
static uint64_t python_places[1 << SLOT_BITS];

struct python_code {
	uintptr_t code, instruction;
};

/* ---- naming ---------------------------------------------------------------------------------- */

static size_t frame_put_character(char *to, uint32_t c)
{
	size_t n = c >= 0x10000 ? 4 : c >= 0x800 ? 3 : c >= 0x80 ? 2 : 1;
	static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	for (size_t i = n; i-- > 1; c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(first[n] | c);
	return n;
}

/* A str object as UTF-8; a long one is cut at its beginning, where it says less. Returns bytes; 0:
 * it cannot be read. */
static size_t frame_text_of(uintptr_t object, char *to, size_t room)
{
	enum { CHARACTERS = FILE_BYTES };
	const struct python_layout *l = &python_found.layout;
	uint64_t length;
	uint32_t state;
	uint8_t raw[CHARACTERS * 4];
	if (!python_read(object + PYTHON_TEXT_LENGTH, &length, sizeof length) ||
		!python_read(object + PYTHON_TEXT_STATE, &state, sizeof state))
		return 0;
	const unsigned kind = state >> 2 & 7; /* bytes of a character */
	const bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
	if (!is_compact || (kind != 1 && kind != 2 && kind != 4) || length > 1 << 20)
		return 0;
	uint64_t most = is_ascii ? room : room / (kind == 1 ? 2 : kind == 2 ? 3 : 4);
	uint64_t nr = length < most ? length : most, n = 0;
	uintptr_t at = object + (is_ascii ? l->ascii : l->compact) + (length - nr) * kind;
	if (!nr || !python_read(at, raw, nr * kind))
		return 0;
	for (uint64_t i = 0; i < nr; i++) {
		uint32_t c = 0;
		memcpy(&c, raw + i * kind, kind);
		n += frame_put_character(to + n, c);
	}
	return n;
}

/* The table of lines is the code's own and does not change: read where it lies, once it has been
 * seen that all of it can be read. */
static uint32_t frame_line_of(const struct python_code *c)
{
	const struct python_layout *l = &python_found.layout;
	uint8_t bytes[TABLE_BYTES];
	uintptr_t table = 0;
	uint64_t size = 0;
	uint32_t first = 0;
	if (!python_read(c->code + l->line_table, &table, sizeof table) ||
		!python_read(table + PYTHON_SIZE, &size, sizeof size) || !size ||
		size > TABLE_MAX || c->instruction < c->code + l->instructions ||
		!python_read(c->code + l->first_line, &first, sizeof first))
		return 0;
	for (uint64_t at = 0; at < size; at += sizeof bytes)
		if (!python_read(table + PYTHON_BYTES + at, bytes,
			    size - at < sizeof bytes ? size - at : sizeof bytes))
			return 0;
	return python_line((const uint8_t *)(table + PYTHON_BYTES), size, first,
		(c->instruction - c->code - l->instructions) / 2);
}

static bool frame_is_library(const char *file)
{
	return file[0] == '<' || (strstr(file, "/lib/python3") && !strstr(file, "-packages/"));
}

/* Whoever waits below these waits for work, whatever line of the program's made the thread. */
static bool frame_begins(const char *function)
{
	static const char names[][20] = {"_bootstrap", "_bootstrap_inner", "_worker", "worker",
		"_feed", "_handle_workers", "_handle_tasks", "_handle_results", "_run_once",
		"_process_worker"};
	const char *dot = strrchr(function, '.');
	for (size_t i = 0; i < PRELOAD_COUNT(names); i++)
		if (strcmp(dot ? dot + 1 : function, names[i]) == 0)
			return true;
	return false;
}

/* Writes RING_place. Returns what is known; PLACE_KNOWN alone: it has no name. */
static PRELOAD_COLD uint64_t frame_name(const struct python_code *c)
{
	const struct python_layout *l = &python_found.layout;
	char text[FUNCTION_BYTES + FILE_BYTES + 2], *file;
	uintptr_t function_object = 0, file_object = 0;
	if (!python_read(c->code + l->name, &function_object, sizeof function_object) ||
		!python_read(c->code + l->file, &file_object, sizeof file_object))
		return PLACE_KNOWN;
	size_t function_bytes = frame_text_of(function_object, text, FUNCTION_BYTES);
	file = text + function_bytes;
	size_t file_bytes = frame_text_of(file_object, file, FILE_BYTES);
	if (!function_bytes || !file_bytes)
		return PLACE_KNOWN;
	file[file_bytes] = '\0';
	const bool is_library = frame_is_library(file);
	uint32_t number = preload_place_name(text, function_bytes, file_bytes, frame_line_of(c));
	*file = '\0'; /* (it was sent already) */
	const bool begins = is_library && frame_begins(text);
	return PLACE_KNOWN | (is_library ? PLACE_LIBRARY : 0) | (begins ? PLACE_BEGINS : 0) |
	       number;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* What is known of the place. Two words tell another object that came to lie there. */
static uint64_t frame_place(const struct python_code *c)
{
	const struct python_layout *l = &python_found.layout;
	const struct preload_thread *self;
	const uint64_t hash = preload_place_hash(c->code, c->instruction - c->code,
		python_word(c->code + l->line_table) ^ python_word(c->code + l->name) << 16);
	uint64_t known = preload_place_known(python_places, SLOT_BITS, hash);
	if (PRELOAD_LIKELY(known))
		return known;
	self = preload_own();
	if (self->busy || self->ended)
		return PLACE_KNOWN; /* in a signal handler: it is named the next time */
	known = frame_name(c);
	preload_place_keep(python_places, SLOT_BITS, hash, known);
	return known;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* The innermost; 0: none. */
uintptr_t python_frame_first(void)
{
	const struct python_layout *l = &python_found.layout;
	uintptr_t thread = python_thread(), frame = thread ? python_word(thread + l->frame) : 0;
	return frame && l->is_behind_cframe ? python_word(frame + l->cframe) : frame;
}

/* 0: what is no function of anybody (the interpreter puts one where its own C code begins). */
uint64_t python_frame_place(uintptr_t frame)
{
	const struct python_layout *l = &python_found.layout;
	struct python_code c = {python_word(frame + l->code), python_word(frame + l->instruction)};
	if ((l->version >= 0x030c && *(const uint8_t *)(frame + l->owner) == OWNED_BY_C) ||
		!c.code || !c.instruction)
		return 0;
	return frame_place(&c);
}

uint64_t python_frame_function(uintptr_t frame)
{
	const struct python_layout *l = &python_found.layout;
	const uintptr_t code = python_word(frame + l->code);
	struct python_code c = {code, code + l->instructions};
	return code ? frame_place(&c) : 0;
}

bool python_frame_is(uintptr_t frame, const char *name, size_t nr_bytes)
{
	const struct python_layout *l = &python_found.layout;
	const uintptr_t code = python_word(frame + l->code);
	const uintptr_t text = code ? python_word(code + l->name) : 0;
	return text && python_word(text + PYTHON_TEXT_LENGTH) == nr_bytes &&
	       memcmp((const char *)text + l->ascii, name, nr_bytes) == 0;
}

uintptr_t preload_python_site(uintptr_t caller)
{
	uint64_t innermost = 0;
	if (!preload_python_is_own(caller) || !preload_on())
		return caller;
	if (preload_self->python_site)
		return preload_self->python_site;
	uintptr_t frame = python_frame_first();
	for (int i = 0; frame && i < WALK_MAX; i++) {
		uint64_t place = python_frame_place(frame);
		if (place & PLACE_NUMBER) {
			if (!(place & PLACE_LIBRARY) || place & PLACE_BEGINS)
				return ring_place(place & PLACE_NUMBER);
			innermost = innermost ? innermost : place & PLACE_NUMBER;
		}
		frame = python_word(frame + python_found.layout.previous);
	}
	return innermost ? ring_place(innermost) : caller;
}

size_t preload_python_frames(uint64_t *to, size_t max)
{
	size_t nr = 0;
	uintptr_t frame = python_frame_first();
	while (frame && nr < max) {
		uint64_t place = python_frame_place(frame) & PLACE_NUMBER;
		if (place)
			to[nr++] = ring_place(place);
		frame = python_word(frame + python_found.layout.previous);
	}
	return nr;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* python_outside.c - from _PyRuntime to threads and frames, read in another process. */
#include "runtime/python/python_outside.h"

enum {
	OUTSIDE_FRAMES_MAX = 1 << 10, /* looked at */
	OUTSIDE_FRAME_BYTES = 96,     /* of a frame, or of a code object: read at once */
	OUTSIDE_TEXT_MAX = 1024,
	OUTSIDE_TABLE_MAX = 1 << 16,
	OUTSIDE_OWNED_BY_C = 3,
	/* of the struct of the global lock */
	OUTSIDE_GIL_HOLDER = 8,
	OUTSIDE_GIL_LOCKED = 16,
};

uint64_t python_outside_pointer(const struct python_reader *r, uint64_t address, uint32_t offset)
{
	uint64_t value = 0;
	return address && r->read(r->ctx, address + offset, &value, sizeof value) ? value : 0;
}

bool python_outside_layout(const struct python_reader *r, uint64_t runtime, uint32_t version,
	struct python_layout *ret)
{
	uint8_t published[PYTHON_PUBLISHED_BYTES];
	return python_layout_of(version, ret) ||
	       (version == PYTHON_SAYS_ITSELF &&
		       r->read(r->ctx, runtime, published, sizeof published) &&
		       python_layout_published(published, ret));
}

/* ---- threads --------------------------------------------------------------------------------- */

uint64_t python_outside_running(const struct python_reader *r, uint64_t runtime)
{
	const struct python_layout *l = r->layout;
	uint64_t gil = runtime + l->gil, holder;
	uint8_t lock[OUTSIDE_GIL_LOCKED + sizeof(int32_t)];
	int32_t locked;
	if (l->is_gil_of_interpreter)
		gil = python_outside_pointer(
			r, python_outside_pointer(r, runtime, l->main_interpreter), l->gil);
	if (!gil || !r->read(r->ctx, gil, lock, sizeof lock))
		return 0;
	memcpy(&holder, lock + OUTSIDE_GIL_HOLDER, sizeof holder);
	memcpy(&locked, lock + OUTSIDE_GIL_LOCKED, sizeof locked);
	return locked == 1 ? holder : 0;
}

uint64_t python_outside_innermost(const struct python_reader *r, uint64_t thread)
{
	const uint64_t frame = python_outside_pointer(r, thread, r->layout->frame);
	return r->layout->is_behind_cframe ? python_outside_pointer(r, frame, r->layout->cframe)
					   : frame;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static uint64_t outside_word(const uint8_t bytes[OUTSIDE_FRAME_BYTES], uint32_t offset)
{
	uint64_t value = 0;
	if (offset <= OUTSIDE_FRAME_BYTES - sizeof value)
		memcpy(&value, bytes + offset, sizeof value);
	return value;
}

size_t python_outside_frames(
	const struct python_reader *r, uint64_t frame, struct python_frame *ret, size_t max)
{
	const struct python_layout *l = r->layout;
	uint8_t bytes[OUTSIDE_FRAME_BYTES];
	size_t nr = 0;
	for (int i = 0; frame && i < OUTSIDE_FRAMES_MAX && nr < max; i++) {
		if (!r->read(r->ctx, frame, bytes, sizeof bytes))
			break;
		const struct python_frame f = {
			outside_word(bytes, l->code), outside_word(bytes, l->instruction)};
		const bool is_entry = l->version >= 0x030c && l->owner < sizeof bytes &&
				      bytes[l->owner] == OUTSIDE_OWNED_BY_C;
		if (!is_entry && f.code && f.instruction)
			ret[nr++] = f;
		frame = outside_word(bytes, l->previous);
	}
	return nr;
}

static uint32_t outside_least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

bool python_outside_code(
	const struct python_reader *r, uint64_t code, struct python_code_words *ret)
{
	const struct python_layout *l = r->layout;
	const uint32_t from = outside_least(l->name, outside_least(l->file, l->line_table));
	uint8_t bytes[OUTSIDE_FRAME_BYTES];
	/* (at once: they are neighbours) */
	if (!code || !r->read(r->ctx, code + from, bytes, sizeof bytes))
		return false;
	ret->name = outside_word(bytes, l->name - from);
	ret->file = outside_word(bytes, l->file - from);
	ret->line_table = outside_word(bytes, l->line_table - from);
	return ret->name && ret->file && ret->line_table;
}

/* ---- texts and lines ------------------------------------------------------------------------- */

static void outside_add_character(struct base_str *out, uint32_t c)
{
	char utf8[4] = {(char)c};
	size_t n = 1;
	if (c >= 0x10000) {
		n = 4;
		utf8[0] = (char)(0xf0 | (c >> 18 & 7));
	} else if (c >= 0x800) {
		n = 3;
		utf8[0] = (char)(0xe0 | c >> 12);
	} else if (c >= 0x80) {
		n = 2;
		utf8[0] = (char)(0xc0 | c >> 6);
	}
	for (size_t i = 1; i < n; i++)
		utf8[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
	base_str_add_bytes(out, utf8, n);
}

bool python_outside_text(const struct python_reader *r, uint64_t object, struct base_str *out)
{
	uint64_t length;
	uint32_t state;
	uint8_t bytes[OUTSIDE_TEXT_MAX * 4];
	if (!object || !r->read(r->ctx, object + PYTHON_TEXT_LENGTH, &length, sizeof length) ||
		!r->read(r->ctx, object + PYTHON_TEXT_STATE, &state, sizeof state))
		return false;
	const unsigned kind = state >> 2 & 7; /* bytes of a character */
	const bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
	const uint32_t begins = is_ascii ? r->layout->ascii : r->layout->compact;
	if (!is_compact || (kind != 1 && kind != 2 && kind != 4) || !length ||
		length > OUTSIDE_TEXT_MAX ||
		!r->read(r->ctx, object + begins, bytes, length * kind))
		return false;
	for (size_t i = 0; i < length; i++) {
		uint32_t c = 0;
		memcpy(&c, bytes + i * kind, kind);
		outside_add_character(out, c);
	}
	return !out->failed;
}

uint32_t python_outside_line(const struct python_reader *r, const struct python_frame *frame)
{
	const struct python_layout *l = r->layout;
	const uint64_t table = python_outside_pointer(r, frame->code, l->line_table);
	uint64_t size = 0;
	uint32_t first = 0, line = 0;
	if (!table || frame->instruction < frame->code + l->instructions ||
		!r->read(r->ctx, table + PYTHON_SIZE, &size, sizeof size) || !size ||
		size > OUTSIDE_TABLE_MAX ||
		!r->read(r->ctx, frame->code + l->first_line, &first, sizeof first))
		return 0;
	uint8_t *bytes = base_alloc(size);
	if (bytes && r->read(r->ctx, table + PYTHON_BYTES, bytes, size))
		line = python_line(bytes, size, first,
			(frame->instruction - frame->code - l->instructions) / 2);
	base_free(bytes);
	return line;
}

bool python_outside_is_library(const char *file)
{
	return file[0] == '<' || (strstr(file, "/lib/python3") && !strstr(file, "-packages/"));
}

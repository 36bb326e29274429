/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - protobuf's wire format, both ways: only the few messages that we need, by hand. A
 * message is encoded into a string of its own, then added with its length.
 */
#ifndef LONGPOLE_FORMAT_WIRE_H
#define LONGPOLE_FORMAT_WIRE_H

#include "base/base.h"

#include <string.h>

static inline void format_wire_varint(struct base_str *s, uint64_t v)
{
	uint8_t bytes[BASE_VARINT_MAX];
	base_str_add_bytes(s, bytes, (size_t)(base_put_uvarint(bytes, v) - bytes));
}

static inline void format_wire_number(struct base_str *s, unsigned field, uint64_t v)
{
	format_wire_varint(s, (uint64_t)field << 3);
	format_wire_varint(s, v);
}

static inline void format_wire_bytes(
	struct base_str *s, unsigned field, const void *bytes, size_t length)
{
	format_wire_varint(s, (uint64_t)field << 3 | 2);
	format_wire_varint(s, length);
	base_str_add_bytes(s, bytes, length);
}

static inline void format_wire_text(struct base_str *s, unsigned field, const char *text)
{
	format_wire_bytes(s, field, text, strlen(text));
}

static inline void format_wire_message(
	struct base_str *s, unsigned field, const struct base_str *message)
{
	format_wire_bytes(s, field, base_str_text(message), message->length);
	s->failed |= message->failed;
}

static inline void format_wire_fixed64(struct base_str *s, unsigned field, uint64_t v)
{
	uint8_t bytes[8];
	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	format_wire_varint(s, (uint64_t)field << 3 | 1);
	base_str_add_bytes(s, bytes, sizeof bytes);
}

/* ---- reading: nothing is trusted ------------------------------------------------------------- */

enum format_wire_type {
	FORMAT_WIRE_varint,
	FORMAT_WIRE_fixed64,
	FORMAT_WIRE_bytes,
	FORMAT_WIRE_fixed32 = 5
};
struct format_wire_field {
	uint32_t number;
	enum format_wire_type type;
	uint64_t value;       /* varint, fixed; of bytes their length */
	const uint8_t *bytes; /* borrowed */
};
/* The next field of [p, end). Returns what follows it; NULL: there is none, or it is damaged (then
 * p != end). Overlong varints are taken, as protobuf's own readers do. */
const uint8_t *format_wire_next(
	const uint8_t *p, const uint8_t *end, struct format_wire_field *ret);

#endif

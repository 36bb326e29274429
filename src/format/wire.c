/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - fields of a protobuf message whose bytes nobody vouches for. */
#include "format/wire.h"

static const uint8_t *get_varint(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		if (p >= end)
			return NULL;
		uint8_t b = *p++;
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = v;
			return p;
		}
	}
	return NULL;
}

static const uint8_t *get_fixed(
	const uint8_t *p, const uint8_t *end, unsigned nr, struct format_wire_field *ret)
{
	if ((size_t)(end - p) < nr)
		return NULL;
	for (unsigned i = 0; i < nr; i++)
		ret->value |= (uint64_t)p[i] << 8 * i;
	return p + nr;
}

const uint8_t *format_wire_next(const uint8_t *p, const uint8_t *end, struct format_wire_field *ret)
{
	uint64_t tag;
	*ret = (struct format_wire_field){0};
	p = get_varint(p, end, &tag);
	if (!p || tag >> 3 > UINT32_MAX || !(tag >> 3))
		return NULL;
	ret->number = (uint32_t)(tag >> 3);
	switch (tag & 7) {
	case FORMAT_WIRE_varint:
		ret->type = FORMAT_WIRE_varint;
		return get_varint(p, end, &ret->value);
	case FORMAT_WIRE_fixed64:
		ret->type = FORMAT_WIRE_fixed64;
		return get_fixed(p, end, 8, ret);
	case FORMAT_WIRE_fixed32:
		ret->type = FORMAT_WIRE_fixed32;
		return get_fixed(p, end, 4, ret);
	case FORMAT_WIRE_bytes:
		ret->type = FORMAT_WIRE_bytes;
		p = get_varint(p, end, &ret->value);
		if (!p || ret->value > (uint64_t)(end - p))
			return NULL;
		ret->bytes = p;
		return p + ret->value;
	default:
		return NULL;
	}
}

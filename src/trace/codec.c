/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - one record to bytes and back, with every bound checked. */
#include "trace/codec.h"
#include "trace/layout.h"

#define FIELD_ONE(kind_, type_, name_, unit_, doc_) +1
#define FIELD_TEXTS(kind_, type_, name_, unit_, doc_)                                              \
	+(TRACE_FIELD_##type_ == TRACE_FIELD_TEXT && (int)TRACE_##kind_ != (int)TRACE_string)
#define REC(kind_, since_, FIELDS, doc_)                                                           \
	_Static_assert(0 FIELDS(FIELD_ONE, kind_) <= TRACE_KIND_FIELDS_MAX, "too many fields");    \
	_Static_assert(0 FIELDS(FIELD_TEXTS, kind_) == 0, "trace_text_bytes() has to know it");    \
	_Static_assert(TRACE_##kind_ > 0 && (int)TRACE_##kind_ < (int)TRACE_KINDS_MAX,             \
		"see "                                                                             \
		"TRACE_KINDS_MAX");
#include "trace/records.def"

const uint8_t *trace_get_padded_long(const uint8_t *p, uint64_t *ret)
{
	*ret = 0;
	return base_get_uvarint(p, p + BASE_VARINT_MAX, ret);
}

static uint8_t *put_ID(uint8_t *p, uint32_t v)
{
	return base_put_uvarint(p, v);
}

static uint8_t *put_U64(uint8_t *p, uint64_t v)
{
	return base_put_uvarint(p, v);
}

static uint8_t *put_S64(uint8_t *p, int64_t v)
{
	return base_put_uvarint(p, base_zigzag(v));
}

static uint8_t *put_TEXT(uint8_t *p, struct trace_text v)
{
	p = base_put_uvarint(p, v.length);
	if (v.length)
		memcpy(p, v.bytes, v.length);
	return p + v.length;
}

uint8_t *trace_encode_roomy(uint8_t *p, struct trace_codec_state *s, const struct trace_record *r)
{
	p = base_put_uvarint(p, r->kind);
	if (r->kind >= TRACE_FIRST_DATA_KIND) {
		if (r->time_ns < s->last_ns)
			return NULL;
		p = base_put_uvarint(p, r->time_ns - s->last_ns);
	}
	switch (r->kind) {
#define FIELD_PUT(kind_, type_, name_, unit_, doc_) p = put_##type_(p, r->u.kind_.name_);
#define REC(kind_, since_, FIELDS, doc_)                                                           \
	case TRACE_##kind_:                                                                        \
		FIELDS(FIELD_PUT, kind_)                                                           \
		break;
#include "trace/records.def"
	default:
		return NULL;
	}
	if (r->kind >= TRACE_FIRST_DATA_KIND)
		s->last_ns = r->time_ns;
	return p;
}

uint8_t *trace_encode(
	uint8_t *p, uint8_t *end, struct trace_codec_state *s, const struct trace_record *r)
{
	uint64_t text_bytes = trace_text_bytes(r), room = (uint64_t)(end - p);

	if (room >= TRACE_RECORD_BYTES_MAX + text_bytes)
		return trace_encode_roomy(p, s, r);

	/* It may just fit: all but the text through a buffer of our own. */
	uint8_t small[TRACE_RECORD_BYTES_MAX];
	struct trace_codec_state after = *s;
	struct trace_record head = *r;
	if (text_bytes)
		head.u.string.text.length = 0;
	uint8_t *small_end = trace_encode_roomy(small, &after, &head);
	if (!small_end)
		return NULL;
	if (text_bytes)
		small_end = base_put_uvarint(small_end - 1, text_bytes);
	size_t small_bytes = (size_t)(small_end - small);
	if (small_bytes > room || text_bytes > room - small_bytes)
		return NULL;
	memcpy(p, small, small_bytes);
	p += small_bytes;
	if (text_bytes)
		memcpy(p, r->u.string.text.bytes, (size_t)text_bytes);
	*s = after;
	return p + text_bytes;
}

bool trace_form_make(struct trace_form *ret, const struct trace_record *r)
{
	uint8_t bytes[TRACE_RECORD_BYTES_MAX];
	struct trace_codec_state s = {.last_ns = r->time_ns};
	_Static_assert(TRACE_KINDS_MAX <= 1 << 14, "a kind has at most two bytes");
	if (r->kind < TRACE_FIRST_DATA_KIND)
		return false;
	const uint8_t *end = trace_encode_roomy(bytes, &s, r);
	const uint8_t *time = base_put_uvarint(bytes, r->kind), *fields = time + 1;
	if (!end || end - fields > TRACE_FORM_BYTES)
		return false;
	*ret = (struct trace_form){
		.nr_kind_bytes = (uint8_t)(time - bytes), .nr_bytes = (uint8_t)(end - fields)};
	memcpy(ret->kind, bytes, ret->nr_kind_bytes);
	memcpy(ret->fields, fields, ret->nr_bytes);
	return true;
}

/* A text points into [p, end), not into the copy that was decoded. */
static void move_text(struct trace_record *r, const uint8_t *copy, const uint8_t *p)
{
	if (r->kind == TRACE_string)
		r->u.string.text.bytes =
			(const char *)p + ((const uint8_t *)r->u.string.text.bytes - copy);
}

const uint8_t *trace_decode(
	const uint8_t *p, const uint8_t *end, struct trace_codec_state *s, struct trace_record *ret)
{
	uint64_t kind, delta_ns = 0;

	*ret = (struct trace_record){0};
	p = base_get_uvarint(p, end, &kind);
	if (!p || kind > UINT16_MAX)
		return NULL;
	ret->kind = (uint16_t)kind;
	if (kind >= TRACE_FIRST_DATA_KIND) {
		p = base_get_uvarint(p, end, &delta_ns);
		if (!p || delta_ns > UINT64_MAX - s->last_ns)
			return NULL;
		ret->time_ns = s->last_ns + delta_ns;
	}

	const uint8_t *after;
	if (end - p >= TRACE_PAD_BYTES) {
		/* The fields themselves, or else a text, which is checked, are shorter than that.
		 */
		after = trace_decode_fields(p, end, ret->kind, ret);
	} else {
		uint8_t padded[2 * TRACE_PAD_BYTES] = {0};
		size_t room = (size_t)(end - p);
		if (room)
			memcpy(padded, p, room);
		after = trace_decode_fields(padded, padded + room, ret->kind, ret);
		if (after) {
			move_text(ret, padded, p);
			after = p + (after - padded);
		}
	}
	if (!after || after > end)
		return NULL;
	if (kind >= TRACE_FIRST_DATA_KIND)
		s->last_ns = ret->time_ns;
	return after;
}

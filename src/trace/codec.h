/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - a record's bytes: kind, then (not in definitions) the time since the record before,
 * then the fields in the order of records.def, all varints. Private to trace.
 *
 * trace_decode_fields() is the reader's inner loop. It does not check every byte against the end:
 * its input must be followed by TRACE_PAD_BYTES zeros. A varint ends at the first zero byte at the
 * latest, so a record that runs over the end stays inside the padding; the caller compares the end
 * once.
 */
#ifndef LONGPOLE_TRACE_CODEC_H
#define LONGPOLE_TRACE_CODEC_H

#include "trace/trace.h"

#include <endian.h>
#include <string.h>

/* Each field of each kind has a decoder of its own, in a release. In a build for tests the compiler
 * decides: with so many copies three files take a minute and a half to compile. */
#ifdef TRACE_QUICK_BUILD
#define TRACE_INLINE inline
#else
#define TRACE_INLINE BASE_INLINE
#endif

enum { TRACE_PAD_BYTES = 128, TRACE_KIND_FIELDS_MAX = 8 };

/* Without texts: kind, time and fields. */
enum { TRACE_RECORD_BYTES_MAX = (2 + TRACE_KIND_FIELDS_MAX) * BASE_VARINT_MAX };

/* Out of line: varints of three bytes and more. Sets *ret in any case. */
const uint8_t *trace_get_padded_long(const uint8_t *p, uint64_t *ret);

/* Returns the byte after the varint, NULL when it is overlong or too big. */
static TRACE_INLINE const uint8_t *trace_get_padded(const uint8_t *p, uint64_t *ret)
{
	if (BASE_LIKELY(!(*p & 0x80))) {
		*ret = *p;
		return p + 1;
	}
	if (BASE_LIKELY(!(p[1] & 0x80))) {
		*ret = (uint64_t)(*p & 0x7f) | (uint64_t)p[1] << 7;
		return p[1] ? p + 2 : NULL;
	}

	uint64_t v; /* (*ret may stay in a register) */
	p = trace_get_padded_long(p, &v);
	*ret = v;
	return p;
}

/* The same without a branch on the length while that is at most four bytes, for numbers whose
 * length varies: times. */
static TRACE_INLINE const uint8_t *trace_get_padded_mixed(const uint8_t *p, uint64_t *ret)
{
	uint32_t x;

	memcpy(&x, p, sizeof x);
	x = le32toh(x);
	uint32_t stop = ~x & 0x80808080u;
	if (BASE_UNLIKELY(!stop)) {
		uint64_t v;
		p = trace_get_padded_long(p, &v);
		*ret = v;
		return p;
	}
	unsigned last = (unsigned)__builtin_ctz(stop) >> 3; /* number of the last byte */
	x &= stop ^ (stop - 1);
	/* Close the gaps: 4 times 7 bits, 2 times 14. */
	x = (x & 0x007f007fu) | (x & 0x7f007f00u) >> 1;
	x = (x & 0x00003fffu) | (x & 0x3fff0000u) >> 2;
	*ret = x;
	if (BASE_UNLIKELY(!p[last] && last))
		return NULL; /* overlong */
	return p + last + 1;
}

static TRACE_INLINE const uint8_t *trace_get_padded_ID(
	const uint8_t *p, const uint8_t *end, uint32_t *ret)
{
	uint64_t v;

	(void)end;
	p = trace_get_padded(p, &v);
	*ret = (uint32_t)v;
	return BASE_LIKELY(p && v <= UINT32_MAX) ? p : NULL;
}

static TRACE_INLINE const uint8_t *trace_get_padded_U64(
	const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	(void)end;
	return trace_get_padded(p, ret);
}

static TRACE_INLINE const uint8_t *trace_get_padded_S64(
	const uint8_t *p, const uint8_t *end, int64_t *ret)
{
	uint64_t v;

	(void)end;
	p = trace_get_padded(p, &v);
	*ret = base_unzigzag(v);
	return p;
}

static TRACE_INLINE const uint8_t *trace_get_padded_TEXT(
	const uint8_t *p, const uint8_t *end, struct trace_text *ret)
{
	uint64_t length;

	p = trace_get_padded(p, &length);
	if (!p || p > end || length > (uint64_t)(end - p))
		return NULL;
	*ret = (struct trace_text){.bytes = (const char *)p, .length = (uint32_t)length};
	return p + length;
}

/* Fields of a known kind; [p, end) is followed by TRACE_PAD_BYTES zeros. NULL: damaged; the result
 * may lie behind `end`: damaged, too. */
static TRACE_INLINE const uint8_t *trace_decode_fields(
	const uint8_t *p, const uint8_t *end, unsigned kind, struct trace_record *ret)
{
	switch (kind) {
#define FIELD_GET(kind_, type_, name_, unit_, doc_)                                                \
	p = trace_get_padded_##type_(p, end, &ret->u.kind_.name_);                                 \
	if (BASE_UNLIKELY(!p))                                                                     \
		return NULL;
#define REC(kind_, since_, FIELDS, doc_)                                                           \
	case TRACE_##kind_:                                                                        \
		FIELDS(FIELD_GET, kind_)                                                           \
		return p;
#include "trace/records.def"
#undef FIELD_GET
	default:
		return NULL;
	}
}

/* Bytes of text in the record: what it needs beyond TRACE_RECORD_BYTES_MAX. */
static inline uint64_t trace_text_bytes(const struct trace_record *r)
{
	return r->kind == TRACE_string ? r->u.string.text.length : 0;
}

/* Encodes a record for which there is room. NULL: unknown kind, or a time before the last. */
uint8_t *trace_encode_roomy(uint8_t *p, struct trace_codec_state *s, const struct trace_record *r);

#endif

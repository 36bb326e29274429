/* SPDX-License-Identifier: Apache-2.0 */
/* html_track.c - slices of one lane, encoded as they come; cursors; buckets. */
#include "report/page/html_time.h"

#include <string.h>
#include <zlib.h>

static enum base_status html_track_encode(struct html_track *t, const struct html_slice *s)
{
	enum base_status status = base_grow(
		&t->byte, &t->capacity, t->length + (size_t)2 * BASE_VARINT_MAX, sizeof *t->byte);
	if (status != BASE_OK)
		return status;
	uint8_t *p = t->byte + t->length;
	p = base_put_uvarint(p, s->value == HTML_NOTHING ? 0 : (uint64_t)s->value + 1);
	p = base_put_uvarint(p, s->end_ns - s->begin_ns);
	t->length = (size_t)(p - t->byte);
	t->end_ns = s->end_ns;
	t->nr_slices++;
	return BASE_OK;
}

static enum base_status html_track_push(
	struct html_track *t, uint64_t begin_ns, uint64_t end_ns, uint32_t value)
{
	if (t->open.end_ns > t->open.begin_ns && t->open.value == value) {
		t->open.end_ns = end_ns;
		return BASE_OK;
	}
	enum base_status s = report_html_track_close(t);
	t->open = (struct html_slice){.begin_ns = begin_ns, .end_ns = end_ns, .value = value};
	return s;
}

enum base_status report_html_track_add(
	struct html_track *t, uint64_t begin_ns, uint64_t end_ns, uint32_t value)
{
	if (!t->begun) {
		t->begun = true;
		t->begin_ns = t->end_ns = begin_ns;
		t->open = (struct html_slice){.begin_ns = begin_ns, .end_ns = begin_ns};
	}
	uint64_t until_ns = t->open.end_ns;
	enum base_status s = BASE_OK;
	if (begin_ns < until_ns)
		begin_ns = until_ns;
	if (end_ns <= begin_ns)
		return BASE_OK;
	if (begin_ns > until_ns)
		s = html_track_push(t, until_ns, begin_ns, HTML_NOTHING);
	return s == BASE_OK ? html_track_push(t, begin_ns, end_ns, value) : s;
}

enum base_status report_html_track_close(struct html_track *t)
{
	enum base_status s =
		t->open.end_ns > t->open.begin_ns ? html_track_encode(t, &t->open) : BASE_OK;
	t->open.begin_ns = t->open.end_ns;
	return s;
}

void report_html_track_fini(struct html_track *t)
{
	base_free(t->byte);
	*t = (struct html_track){0};
}

/* ---- reading --------------------------------------------------------------------------------- */

struct html_cursor report_html_cursor_of(const struct html_track *t, uint64_t limit_ns)
{
	return (struct html_cursor){
		.track = t,
		.at = t->byte,
		.limit_ns = limit_ns,
		.now = {.begin_ns = 0,
			.end_ns = t->nr_slices && t->begin_ns < limit_ns ? t->begin_ns : UINT64_MAX,
			.value = HTML_NOTHING},
	};
}

const struct html_slice *report_html_cursor_seek(struct html_cursor *c, uint64_t time_ns)
{
	const struct html_track *t = c->track;
	while (c->now.end_ns <= time_ns && c->now.end_ns != UINT64_MAX) {
		uint64_t value = 0, duration_ns = 0;
		const uint8_t *end = t->byte + t->length;
		c->now.begin_ns = c->now.end_ns;
		if (c->at >= end || c->now.begin_ns >= c->limit_ns) {
			c->now.end_ns = UINT64_MAX;
			c->now.value = HTML_NOTHING;
			break;
		}
		c->at = base_get_uvarint(c->at, end, &value);
		c->at = base_get_uvarint(c->at, end, &duration_ns);
		c->now.end_ns += duration_ns;
		c->now.value = (uint32_t)value - 1;
		if (c->now.end_ns > c->limit_ns)
			c->now.end_ns = c->limit_ns;
	}
	return &c->now;
}

static uint8_t fifteenths(uint64_t part_ns, uint64_t of_ns)
{
	if (!part_ns)
		return 0;
	double n = (double)part_ns * HTML_FIFTEENTHS / (double)of_ns + 0.5;
	return n < 1 ? 1 : n > HTML_FIFTEENTHS ? HTML_FIFTEENTHS : (uint8_t)n;
}

struct html_bucket report_html_bucket_of(struct html_cursor *c, uint64_t from_ns, uint64_t to_ns,
	const bool *waits, uint64_t *sum_ns)
{
	struct html_bucket b = {.active = HTML_NOTHING, .waiting = HTML_NOTHING};
	uint64_t all_ns[2] = {0}, most_ns[2] = {0};
	/* The cursor may not go back, so both rounds walk with copies of it. */
	struct html_cursor clean = *c;
	for (uint64_t at = from_ns; at < to_ns;) {
		const struct html_slice *s = report_html_cursor_seek(c, at);
		uint64_t until = s->end_ns < to_ns ? s->end_ns : to_ns;
		if (s->value != HTML_NOTHING) {
			bool w = waits && waits[s->value];
			uint64_t sum = sum_ns[s->value] += until - at;
			all_ns[w] += until - at;
			uint32_t *best = w ? &b.waiting : &b.active;
			/* the smaller value of two that are as long: same bytes every time */
			if (sum > most_ns[w] || (sum == most_ns[w] && s->value < *best)) {
				most_ns[w] = sum;
				*best = s->value;
			}
		}
		at = until;
	}
	for (uint64_t at = from_ns; at < to_ns;) {
		const struct html_slice *s = report_html_cursor_seek(&clean, at);
		if (s->value != HTML_NOTHING)
			sum_ns[s->value] = 0;
		at = s->end_ns < to_ns ? s->end_ns : to_ns;
	}
	b.active_fifteenths = fifteenths(all_ns[0], to_ns - from_ns);
	b.wait_fifteenths = fifteenths(all_ns[1], to_ns - from_ns);
	if (b.active_fifteenths + b.wait_fifteenths > HTML_FIFTEENTHS) {
		if (b.active_fifteenths > b.wait_fifteenths)
			b.active_fifteenths--;
		else
			b.wait_fifteenths--;
	}
	return b;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

void report_html_put(struct html_bytes *b, uint64_t v)
{
	if (base_grow(&b->byte, &b->capacity, b->length + BASE_VARINT_MAX, 1) != BASE_OK) {
		b->failed = true;
		return;
	}
	b->length = (size_t)(base_put_uvarint(b->byte + b->length, v) - b->byte);
}

static char *base64(const uint8_t *p, size_t length, size_t *ret_length)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = base_alloc((length + 2) / 3 * 4 + 1), *to = text;
	for (size_t i = 0; text && i < length; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;
		v |= i + 1 < length ? (uint32_t)p[i + 1] << 8 : 0;
		v |= i + 2 < length ? (uint32_t)p[i + 2] : 0;
		*to++ = digit[v >> 18];
		*to++ = digit[v >> 12 & 63];
		*to++ = i + 1 < length ? digit[v >> 6 & 63] : '=';
		*to++ = i + 2 < length ? digit[v & 63] : '=';
	}
	*ret_length = (size_t)(to - text);
	return text;
}

char *report_html_pack(const uint8_t *bytes, size_t length, size_t *ret_length)
{
	static const uint8_t none[1];
	uLongf packed_bytes = compressBound(length);
	uint8_t *packed = base_alloc(packed_bytes);
	char *text = NULL;
	if (packed && compress2(packed, &packed_bytes, length ? bytes : none, length, 6) == Z_OK)
		text = base64(packed, packed_bytes, ret_length);
	base_free(packed);
	return text;
}

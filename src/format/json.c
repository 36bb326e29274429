/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - JSON as other programs write it. */
#include "format/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	DIGITS_SAFE = 18, /* decimal digits that always fit 63 bits */
	ESCAPE_BYTES = 6, /* of a UTF-16 unit */
	HIGH_SURROGATE = 0xd800 >> 10,
	LOW_SURROGATE = 0xdc00 >> 10,
};

static int digit_of(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : 16;
}

static bool json_number_in(const char *p, uint64_t *ret)
{
	uint64_t n = 0;
	p += strspn(p, " \t");
	bool negative = *p == '-';
	p += negative;
	bool hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
	p += hex ? 2 : 0;
	const uint64_t base = hex ? 16 : 10;
	const char *first = p;
	for (; (uint64_t)digit_of(*p) < base; p++) {
		uint64_t digit = (uint64_t)digit_of(*p);
		if (n > (UINT64_MAX - digit) / base)
			return false;
		n = n * base + digit;
	}
	bool any = p > first;
	p += strspn(p, " \t");
	*ret = negative ? 0 - n : n;
	return any && !*p;
}

bool format_json_number(const json_t *v, uint64_t *ret)
{
	if (json_is_integer(v)) {
		*ret = (uint64_t)json_integer_value(v);
		return true;
	}
	if (json_is_real(v)) {
		double r = json_real_value(v);
		if (r != floor(r) || !(fabs(r) < 0x1p63))
			return false;
		*ret = (uint64_t)(int64_t)r;
		return true;
	}
	return json_is_string(v) && json_number_in(json_string_value(v), ret);
}

bool format_json_real(const json_t *v, double *ret)
{
	char *end = NULL;
	const char *text = json_string_value(v);
	*ret = text ? strtod(text, &end) : json_number_value(v);
	return text ? end > text && !end[strspn(end, " \t")] : json_is_number(v);
}

size_t format_json_mark_bytes(const char *text, size_t length)
{
	return length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

struct mend {
	struct base_str *out;
	const char *text;
	size_t length;
	bool comma;      /* seen, not yet written */
	bool after_item; /* a comma may stand here */
};

static void mend_item(struct mend *m)
{
	if (m->comma && m->after_item)
		base_str_add(m->out, ",");
	m->comma = false;
	m->after_item = true;
}

/* The UTF-16 unit that an escape at i says; UINT32_MAX: none does. */
static uint32_t unit_at(const struct mend *m, size_t i)
{
	uint32_t unit = 0;
	if (m->length - i < ESCAPE_BYTES || m->text[i] != '\\' || m->text[i + 1] != 'u')
		return UINT32_MAX;
	for (size_t k = 2; k < ESCAPE_BYTES; k++) {
		int digit = digit_of(m->text[i + k]);
		if (digit > 15)
			return UINT32_MAX;
		unit = unit << 4 | (uint32_t)digit;
	}
	return unit;
}

/* What stands behind a backslash; returns how many bytes. Half a surrogate pair is what a text cut
 * in the middle of a character leaves; a backslash that escapes nothing means itself. */
static size_t mend_escape(struct mend *m, size_t i)
{
	uint32_t unit = unit_at(m, i);
	size_t n = 1;
	if (unit < UINT32_MAX) {
		n = ESCAPE_BYTES;
		if (unit >> 10 == HIGH_SURROGATE && unit_at(m, i + n) >> 10 == LOW_SURROGATE)
			n *= 2;
		else if (unit >> 11 == HIGH_SURROGATE >> 1) {
			base_str_add(m->out, "\xef\xbf\xbd");
			return n;
		}
	} else if (i + 1 < m->length && m->text[i + 1] && strchr("\"\\/bfnrt", m->text[i + 1])) {
		n = 2;
	}
	if (n == 1)
		base_str_add(m->out, "\\");
	base_str_add_bytes(m->out, m->text + i, n);
	return n;
}

/* A string from its quote on; returns where it ends. */
static size_t mend_string(struct mend *m, size_t i)
{
	base_str_add(m->out, "\"");
	for (i++; i < m->length && m->text[i] != '"';) {
		const unsigned char *p = (const unsigned char *)m->text + i;
		uint32_t code;
		size_t n = base_utf8_decode(p, m->length - i, &code);
		if (*p == '\\')
			n = mend_escape(m, i);
		else if (*p < 0x20 || !n)
			base_str_add(m->out, *p < 0x20 ? " " : "\xef\xbf\xbd");
		else
			base_str_add_bytes(m->out, p, n);
		i += n ? n : 1;
	}
	if (i < m->length)
		base_str_add(m->out, "\"");
	return i + 1;
}

/* A number or a word. */
static size_t mend_word(struct mend *m, size_t i)
{
	size_t n = 1;
	while (i + n < m->length && !strchr(",:[]{}\" \t\r\n", m->text[i + n]))
		n++;
	const char *p = m->text + i;
	size_t sign = *p == '-';
	bool whole = n - sign > DIGITS_SAFE;
	for (size_t k = sign; whole && k < n; k++)
		whole = p[k] >= '0' && p[k] <= '9';
	if (whole)
		base_str_add(m->out, "\"");
	if ((n == 3 && !memcmp(p, "NaN", 3)) || (n - sign == 8 && !memcmp(p + sign, "Infinity", 8)))
		base_str_add(m->out, "null");
	else
		base_str_add_bytes(m->out, p, n);
	if (whole)
		base_str_add(m->out, "\"");
	return i + n;
}

void format_json_mend(struct base_str *out, const char *text, size_t length)
{
	struct mend m = {.out = out, .text = text, .length = length};
	for (size_t i = format_json_mark_bytes(text, length); i < length;) {
		char c = text[i];
		if (c == ',') {
			m.comma = true;
			i++;
		} else if (c && strchr(" \t\r\n", c)) {
			base_str_add_bytes(out, &text[i++], 1);
		} else if (c == ']' || c == '}' || c == ':') {
			m.comma = false;
			m.after_item = c != ':';
			base_str_add_bytes(out, &text[i++], 1);
		} else {
			mend_item(&m);
			if (c == '[' || c == '{') {
				m.after_item = false;
				base_str_add_bytes(out, &text[i++], 1);
			} else {
				i = c == '"' ? mend_string(&m, i) : mend_word(&m, i);
			}
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - JSON as other programs write it. */
#include "format/json.h"

#include <math.h>
#include <string.h>

enum { DIGITS_SAFE = 18 }; /* decimal digits that always fit 63 bits */

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

/* A string from its quote on; returns where it ends. */
static size_t mend_string(struct mend *m, size_t i)
{
	base_str_add(m->out, "\"");
	for (i++; i < m->length && m->text[i] != '"';) {
		const unsigned char *p = (const unsigned char *)m->text + i;
		uint32_t code;
		size_t n = base_utf8_decode(p, m->length - i, &code);
		if (*p == '\\' && i + 1 < m->length && p[1] >= 0x20 && p[1] < 0x80)
			base_str_add_bytes(m->out, p, n = 2);
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
	for (size_t i = 0; i < length;) {
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

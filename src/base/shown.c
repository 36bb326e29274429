/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shown.c - texts of others, as they may be shown. A terminal obeys control characters (of both
 * sets), and what turns the direction of a line makes it read as what it does not say.
 */
#include "base/base.h"

#include <string.h>

size_t base_utf8_decode(const unsigned char *p, size_t nr_bytes, uint32_t *ret_code)
{
	static const struct {
		unsigned char mask, lead, nr;
		uint32_t least;
	} form[] = {{0x80, 0x00, 1, 0}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800},
		{0xf8, 0xf0, 4, 0x10000}};
	for (size_t i = 0; i < BASE_COUNT(form) && nr_bytes; i++) {
		if ((p[0] & form[i].mask) != form[i].lead)
			continue;
		if (form[i].nr > nr_bytes)
			return 0;
		uint32_t code = p[0] & (unsigned)(unsigned char)~form[i].mask;
		for (size_t k = 1; k < form[i].nr; k++) {
			if ((p[k] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (p[k] & 0x3fu);
		}
		bool surrogate = code >= 0xd800 && code < 0xe000;
		if (code < form[i].least || code > 0x10ffff || surrogate)
			return 0;
		*ret_code = code;
		return form[i].nr;
	}
	return 0;
}

bool base_is_shown(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{0x00, 0x1f},       /* C0 */
		{0x7f, 0x9f},       /* delete, C1 */
		{0x061c, 0x061c},   /* directions: marks, ... */
		{0x200e, 0x200f},   /* ... */
		{0x2028, 0x202e},   /* ends of lines and paragraphs; embeddings, overrides, ... */
		{0x2066, 0x206f},   /* ... isolates; shaping */
		{0xfff9, 0xfffb},   /* annotations between lines */
		{0xe0000, 0xe007f}, /* tags */
	};
	for (size_t i = 0; i < BASE_COUNT(hidden); i++)
		if (code >= hidden[i].first && code <= hidden[i].last)
			return false;
	return true;
}

void base_str_add_escape(struct base_str *s, uint32_t code)
{
	if (code < 0x10000)
		base_str_addf(s, "\\u%04x", code);
	else
		base_str_addf(s, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
			0xdc00 + (code & 0x3ff));
}

/* "ESC [ 1 m": a colour of ours. Its length; 0: it is none. */
static size_t shown_color(const unsigned char *p, size_t nr_bytes)
{
	size_t i = 2;
	if (nr_bytes < 3 || p[0] != 033 || p[1] != '[')
		return 0;
	while (i < nr_bytes && ((p[i] >= '0' && p[i] <= '9') || p[i] == ';'))
		i++;
	return i < nr_bytes && p[i] == 'm' ? i + 1 : 0;
}

/* How many bytes at p stay as they are; 0: none. */
static size_t shown_as_is(
	const unsigned char *p, size_t nr_bytes, size_t n, uint32_t code, enum base_shown how)
{
	if (n && (base_is_shown(code) || (how != BASE_SHOWN_NAME && (*p == '\n' || *p == '\t'))))
		return n;
	return how == BASE_SHOWN_LINES ? shown_color(p, nr_bytes) : 0;
}

void base_str_add_shown(struct base_str *s, const char *text, size_t nr_bytes, enum base_shown how)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + nr_bytes, *plain = p;
	while (p < end) {
		uint32_t code = 0;
		size_t n = base_utf8_decode(p, (size_t)(end - p), &code);
		size_t stay = shown_as_is(p, (size_t)(end - p), n, code, how);
		if (stay) {
			p += stay;
			continue;
		}
		base_str_add_bytes(s, plain, (size_t)(p - plain));
		if (how == BASE_SHOWN_JSON)
			base_str_add_escape(s, n ? code : 0xdc00u + *p);
		else
			base_str_add(s, n ? "?" : "\xef\xbf\xbd");
		p += n ? n : 1;
		plain = p;
	}
	base_str_add_bytes(s, plain, (size_t)(p - plain));
}

void base_str_make_shown(struct base_str *s, enum base_shown how)
{
	struct base_str shown = {0};
	base_str_add_shown(&shown, base_str_text(s), s->length, how);
	if (shown.failed) {
		base_str_fini(&shown);
		s->failed = true;
		return;
	}
	shown.failed = s->failed;
	base_str_fini(s);
	*s = shown;
}

void base_str_add_quoted(struct base_str *s, const char *word, size_t length)
{
	bool plain = length > 0;
	for (size_t i = 0; i < length && plain; i++) {
		char c = word[i];
		plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			(c >= '0' && c <= '9') || (c && strchr("_-+=./:,@%", c)) ||
			(unsigned char)c >= 0x80;
	}
	if (plain) {
		base_str_add_bytes(s, word, length);
		return;
	}
	base_str_add(s, "'");
	for (size_t i = 0; i < length; i++) {
		if (word[i] == '\'')
			base_str_add(s, "'\\''");
		else
			base_str_add_bytes(s, word + i, 1);
	}
	base_str_add(s, "'");
}

void base_str_add_command(struct base_str *s, char *const *argv)
{
	for (char *const *arg = argv; *arg; arg++) {
		base_str_add(s, arg == argv ? "" : " ");
		base_str_add_quoted(s, *arg, strlen(*arg));
	}
}

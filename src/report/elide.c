/* SPDX-License-Identifier: Apache-2.0 */
/* elide.c - C++'s names, shortened where they say least. */
#include "report/private.h"

#include <ctype.h>
#include <string.h>

static bool elide_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Bytes of "operator<<", "operator()", "operator->" and their kin at `p`; 0: none is there. */
static size_t operator_bytes(const char *text, const char *p)
{
	static const char word[] = "operator";
	size_t n = sizeof word - 1;
	if (strncmp(p, word, n) != 0 || (p > text && elide_is_word(p[-1])) || elide_is_word(p[n]))
		return 0;
	if (!strncmp(p + n, "()", 2) || !strncmp(p + n, "[]", 2))
		return n + 2;
	/* operator< of a template is "operator< <int>" */
	return n + strspn(p + n, "<>=!+-*/%^&|~,");
}

/* The bracket that closes the one at `p`; NULL: it is none. */
static const char *closing(const char *text, const char *p)
{
	size_t depth = 0;
	while (*p) {
		size_t skip = operator_bytes(text, p);
		if (skip) {
			p += skip;
			continue;
		}
		if (strchr("<({[", *p)) {
			depth++;
		} else if (strchr(">)}]", *p) && !(*p == '>' && p > text && p[-1] == '-')) {
			if (!--depth)
				return p;
		}
		p++;
	}
	return NULL;
}

/* Without what is between such brackets, where they follow a name. */
static void leave_out(struct base_str *out, const char *text, char bracket, const char *more)
{
	size_t least = 3; /* "<int>" says as much */
	bool after_operator = false;
	for (const char *p = text; *p;) {
		size_t skip = operator_bytes(text, p);
		bool follows = after_operator ||
			       (p > text && (elide_is_word(p[-1]) || p[-1] == '>' || p[-1] == ')'));
		const char *end = !skip && *p == bracket && follows ? closing(text, p) : NULL;
		after_operator = skip > 0;
		if (end && end > p + 1 + least) {
			base_str_add_bytes(out, p, 1);
			base_str_add(out, more);
			p = end;
		} else {
			skip = skip ? skip : 1;
			base_str_add_bytes(out, p, skip);
			p += skip;
		}
	}
}

void report_add_elided(struct base_str *out, const char *name, size_t width, const char *more)
{
	struct base_str text[2] = {{0}, {0}};
	static const char bracket[] = {'<', '('};
	const char *now = name;
	for (size_t i = 0; i < BASE_COUNT(text) && report_width(now) > width; i++) {
		leave_out(&text[i], now, bracket[i], more);
		now = base_str_text(&text[i]);
	}
	base_str_add(out, now);
	for (size_t i = 0; i < BASE_COUNT(text); i++)
		base_str_fini(&text[i]);
}

void report_name_add(struct base_str *out, const char *name)
{
	enum { LONG = 60 };
	struct base_str text = {0};
	report_add_elided(&text, name, LONG, "..");
	report_clean_add(out, base_str_text(&text));
	base_str_fini(&text);
}

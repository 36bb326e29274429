/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html_page.c - the built page (ui/dist/report.html, in this program by html_embed.S) with a
 * report's texts and data put where its markers are.
 */
#include "report/html_private.h"

#include <string.h>

extern const char report_page_begin[], report_page_end[];

#define MARK_TITLE  "<!--longpole:title-->"
#define MARK_STATIC "<!--longpole:static-->"
#define MARK_DATA   "<!--longpole:data-->"

size_t report_html_template_bytes(void)
{
	return (size_t)(report_page_end - report_page_begin);
}

void report_html_text(struct base_str *out, const char *text)
{
	struct base_str clean = {0};
	report_clean_add(&clean, text);
	for (const char *p = base_str_text(&clean); *p;) {
		size_t length = strcspn(p, "&<>\"'");
		base_str_add_bytes(out, p, length);
		p += length;
		if (*p)
			base_str_addf(out, "&#%d;", *p++);
	}
	out->failed |= clean.failed;
	base_str_fini(&clean);
}

/* '<', '>' and '&' are in strings only, and there an escape means the same; U+2028 and U+2029 end a
 * line in old JavaScript. */
static void add_script(struct base_str *out, const char *json, size_t length)
{
	size_t from = 0, i = 0;
	while (i < length) {
		const unsigned char *p = (const unsigned char *)json + i;
		bool separator = length - i > 2 && p[0] == 0xe2 && p[1] == 0x80 &&
				 (p[2] == 0xa8 || p[2] == 0xa9);
		if (*p != '<' && *p != '>' && *p != '&' && !separator) {
			i++;
			continue;
		}
		base_str_add_bytes(out, json + from, i - from);
		if (separator)
			base_str_add(out, p[2] == 0xa8 ? "\\u2028" : "\\u2029");
		else
			base_str_addf(out, "\\u%04x", *p);
		i += separator ? 3 : 1;
		from = i;
	}
	base_str_add_bytes(out, json + from, length - from);
}

/* Adds the page up to the mark and returns what follows it. The page is ours and has each mark
 * once. */
static const char *up_to(struct base_str *out, const char *from, const char *mark)
{
	size_t length = (size_t)(report_page_end - from);
	const char *at = memmem(from, length, mark, strlen(mark));
	BASE_ASSERT(at);
	base_str_add_bytes(out, from, (size_t)(at - from));
	return at + strlen(mark);
}

void report_html_page(struct base_str *out, const struct report_html *h)
{
	const char *rest = up_to(out, report_page_begin, MARK_TITLE);
	base_str_add(out, "longpole: ");
	report_html_text(out, h->name);
	rest = up_to(out, rest, MARK_STATIC);
	report_html_static(out, h);
	rest = up_to(out, rest, MARK_DATA);
	add_script(out, h->text, h->length);
	base_str_add_bytes(out, rest, (size_t)(report_page_end - rest));
}

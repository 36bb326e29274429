/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html_page.c - the built page (ui/dist/report.html, in this program by html_embed.S) with a
 * report's texts and data put where its markers are.
 */
#include "report/page/html_private.h"

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

/* '<', '>' and '&' are in strings only, and there an escape means the same; so is what is not
 * shown, of which U+2028 and U+2029 end a line in old JavaScript. */
static void add_script(struct base_str *out, const char *json, size_t length)
{
	const unsigned char *p = (const unsigned char *)json, *end = p + length, *plain = p;
	while (p < end) {
		uint32_t code = *p;
		size_t n = base_utf8_decode(p, (size_t)(end - p), &code);
		bool is_markup = *p == '<' || *p == '>' || *p == '&';
		if (!is_markup && (!n || base_is_shown(code) || *p == '\n' || *p == '\t')) {
			p += n ? n : 1;
			continue;
		}
		base_str_add_bytes(out, plain, (size_t)(p - plain));
		base_str_add_escape(out, code);
		plain = p += n;
	}
	base_str_add_bytes(out, plain, (size_t)(end - plain));
}

/* Adds the page up to the mark and returns what follows it. The page is ours and has each mark
 * once. */
static const char *html_page_up_to(struct base_str *out, const char *from, const char *mark)
{
	size_t length = (size_t)(report_page_end - from);
	const char *at = memmem(from, length, mark, strlen(mark));
	BASE_ASSERT(at);
	base_str_add_bytes(out, from, (size_t)(at - from));
	return at + strlen(mark);
}

void report_html_page(struct base_str *out, const struct report_html *h)
{
	const char *rest = html_page_up_to(out, report_page_begin, MARK_TITLE);
	base_str_add(out, "longpole: ");
	report_html_text(out, h->name);
	rest = html_page_up_to(out, rest, MARK_STATIC);
	report_html_static(out, h);
	rest = html_page_up_to(out, rest, MARK_DATA);
	add_script(out, h->text, h->length);
	base_str_add_bytes(out, rest, (size_t)(report_page_end - rest));
}

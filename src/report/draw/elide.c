/* SPDX-License-Identifier: Apache-2.0 */
/* elide.c - C++'s and Rust's names, shortened where they say least (symbol/short.c). */
#include "report/draw/draw.h"
#include "symbol/symbol.h"

void report_add_elided(struct base_str *out, const char *name, size_t width, const char *more)
{
	if (report_width(name) > width)
		symbol_short_add_text(out, name, (unsigned char)*more >= 0x80);
	else
		base_str_add(out, name);
}

void report_name_add(struct base_str *out, const char *name)
{
	enum { LONG = 60 };
	struct base_str text = {0};
	report_add_elided(&text, name, LONG, "..");
	report_clean_add(out, base_str_text(&text));
	base_str_fini(&text);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* session_names.c - the last definitions of a trace: functions and lines of all sites, names of
 * static objects. */
#include "record/session_names.h"
#include "record/symbols.h"

#include <string.h>

static const char *text_of(const struct record_sink *s, uint32_t id)
{
	return base_strtab_get(s->strings, id);
}

static uint32_t text_id(struct record_sink *s, const char *text)
{
	return text ? record_sink_text(s, text, strlen(text)) : 0;
}

static bool name_site(struct record_sink *s, struct record_symbols *symbols, uint32_t site)
{
	struct record_symbol found;
	/* A return address may be the next function's first byte: the call is before it. */
	const struct record_site *at = &s->site[site];
	uint64_t offset = at->exact ? at->offset : at->offset - 1;
	if (!record_symbols_code(symbols, offset, &found))
		return false;
	struct trace_record r = {.kind = TRACE_symbol,
		.u.symbol = {.site = site,
			.function = text_id(s, found.function),
			.file = text_id(s, found.file),
			.line = found.line,
			.function_offset = found.function_offset}};
	record_sink_put(s, &r);
	return true;
}

static void name_object(
	struct record_sink *s, struct record_symbols *symbols, const struct record_named *named)
{
	struct base_str name = {0};
	if (!s->object[named->object].name && record_symbols_data(symbols, named->offset, &name)) {
		s->object[named->object].name = text_id(s, base_str_text(&name));
		record_sink_object_again(s, named->object);
	}
	base_str_fini(&name);
}

uint64_t record_sink_name_all(struct record_sink *s)
{
	uint64_t nr = 0;
	for (uint32_t module = 1; module <= s->nr_modules && !record_sink_failed(s); module++) {
		struct record_symbols *symbols = record_symbols_open(
			text_of(s, s->module[module].path), text_of(s, s->module[module].build_id));
		for (uint32_t site = 1; symbols && site <= s->nr_sites; site++)
			if (s->site[site].module == module && !record_sink_failed(s))
				nr += name_site(s, symbols, site);
		for (size_t i = 0; symbols && i < s->nr_named; i++)
			if (s->named[i].module == module && !record_sink_failed(s))
				name_object(s, symbols, &s->named[i]);
		record_symbols_close(symbols);
	}
	return nr;
}

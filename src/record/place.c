/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - places that programs name themselves: lines of a language that an interpreter runs.
 *
 * An image calls them by numbers of its own, and may call one by several: each file, function and
 * line is one site, of no file of code, whose symbol is written at once.
 */
#include "record/image.h"

#include "ring/ring.h"

static void place_put(
	struct record_world *w, struct base_map *map, uint64_t hi, uint64_t lo, uint64_t site)
{
	enum base_status status = base_map_put(map, hi, lo, site);
	if (status != BASE_OK)
		record_sink_fail(w->sink, status, "no memory for one more place");
}

static uint32_t place_new_site(
	struct record_world *w, uint64_t place, uint32_t function, uint32_t file, uint64_t line)
{
	uint32_t site = record_sink_site_of_no_file(w->sink, place);
	struct trace_record r = {.kind = TRACE_symbol,
		.u.symbol = {.site = site,
			.function = function,
			.file = file,
			.line = line,
			.function_offset = place}};
	if (!site || record_sink_failed(w->sink))
		return 0;
	record_sink_put(w->sink, &r);
	w->sink->site[site].function = function;
	w->sink->site[site].file = file;
	w->sink->site[site].line = (uint32_t)line;
	return site;
}

void record_image_place(struct record_world *w, const struct record_image *image, uint64_t place,
	const char *function, size_t function_bytes, const char *file, size_t file_bytes,
	uint64_t line)
{
	uint64_t known;
	if (!RING_IS_PLACE(place) || base_map_get(&w->places, image->number, place, &known))
		return;
	const uint32_t function_text = record_sink_text(w->sink, function, function_bytes);
	const uint32_t file_text = record_sink_text(w->sink, file, file_bytes);
	const uint64_t where = (uint64_t)function_text << 32 | file_text;
	if (!base_map_get(&w->lines, where, line, &known)) {
		known = place_new_site(w, place, function_text, file_text, line);
		if (!known)
			return;
		place_put(w, &w->lines, where, line, known);
	}
	place_put(w, &w->places, image->number, place, known);
	RECORD_JOURNAL_ADD(w->sink->journal, map, RECORD_MAP_places, image->number, place, known);
}

uint32_t record_place_site(struct record_world *w, struct record_image *image, uint64_t place)
{
	uint64_t known;
	if (base_map_get(&w->places, image->number, place, &known))
		return (uint32_t)known;
	if (w->look_ahead && w->look_ahead(w->look_ahead_ctx, image) &&
		base_map_get(&w->places, image->number, place, &known))
		return (uint32_t)known;
	return 0;
}

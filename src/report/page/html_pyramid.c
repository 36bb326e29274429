/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html_pyramid.c - tiles of the timeline, coarse to fine, until the page has enough data.
 *
 * Levels are swept one after the other: a cursor a track, tiles in the order of time, so a level
 * costs one walk over the slices. Whole levels may take WHOLE_SHARE of the bytes; what is left is
 * for the tiles around the chosen moments, down to leaves.
 */
#include "report/page/html_time.h"

#include <stdlib.h>

#define WHOLE_SHARE 0.6
enum { LEVELS_MAX = 32, FINEST_LOG2 = 2 }; /* buckets of 4 ns would hardly be less than slices */

struct sweep {
	const struct html_pyramid_input *in;
	struct html_pyramid *p;
	struct html_cursor *cursor; /* by track: where the next tile begins */
	uint64_t *sum_ns;           /* by value */
	struct html_bytes bytes;
	unsigned level, log2;
};
struct wish { /* tiles of a level to make, ascending */
	uint64_t *index;
	size_t nr, capacity;
};

static uint64_t tile_span_ns(const struct sweep *w)
{
	return (uint64_t)HTML_TILE_BUCKETS << w->log2;
}

/* ---- one tile -------------------------------------------------------------------------------- */

static size_t slices_in(const struct sweep *w, uint64_t from_ns, uint64_t to_ns)
{
	size_t nr = 0;
	for (size_t i = 0; i < w->in->nr_tracks && nr <= HTML_LEAF_SLICES; i++) {
		struct html_cursor c = w->cursor[i];
		for (uint64_t at = from_ns; at < to_ns && nr <= HTML_LEAF_SLICES; nr++)
			at = report_html_cursor_seek(&c, at)->end_ns;
	}
	return nr;
}

static void put_slices(struct sweep *w, struct html_cursor *c, uint64_t from_ns, uint64_t to_ns)
{
	for (uint64_t at = from_ns; at < to_ns;) {
		const struct html_slice *s = report_html_cursor_seek(c, at);
		uint64_t until = s->end_ns < to_ns ? s->end_ns : to_ns;
		report_html_put(&w->bytes, s->value == HTML_NOTHING ? 0 : (uint64_t)s->value + 1);
		report_html_put(&w->bytes, until - at);
		at = until;
	}
}

static void put_state_buckets(struct sweep *w, size_t track, uint64_t from_ns, uint64_t width_ns)
{
	struct html_cursor *c = &w->cursor[track];
	struct html_bucket run = {0};
	unsigned nr = 0;
	for (unsigned i = 0; i <= HTML_TILE_BUCKETS; i++) {
		struct html_bucket b = {0};
		if (i < HTML_TILE_BUCKETS)
			b = report_html_bucket_of(c, from_ns + i * width_ns,
				from_ns + (i + 1) * width_ns, w->in->track[track].waits, w->sum_ns);
		if (nr && (i == HTML_TILE_BUCKETS || b.active != run.active ||
				  b.waiting != run.waiting ||
				  b.active_fifteenths != run.active_fifteenths ||
				  b.wait_fifteenths != run.wait_fifteenths)) {
			report_html_put(&w->bytes, nr);
			report_html_put(&w->bytes,
				run.active == HTML_NOTHING ? 0 : (uint64_t)run.active + 1);
			report_html_put(&w->bytes,
				run.waiting == HTML_NOTHING ? 0 : (uint64_t)run.waiting + 1);
			report_html_put(&w->bytes,
				(uint64_t)run.active_fifteenths << 4 | run.wait_fifteenths);
			nr = 0;
		}
		run = b;
		nr++;
	}
}

static void put_unit_buckets(
	struct sweep *w, struct html_cursor *c, uint64_t from_ns, uint64_t width_ns)
{
	uint64_t least = 0, greatest = 0, nr = 0;
	for (unsigned i = 0; i <= HTML_TILE_BUCKETS; i++) {
		uint64_t low = UINT64_MAX, high = 0, to_ns = from_ns + (i + 1) * width_ns;
		for (uint64_t at = from_ns + i * width_ns; i < HTML_TILE_BUCKETS && at < to_ns;) {
			const struct html_slice *s = report_html_cursor_seek(c, at);
			uint64_t units = s->value == HTML_NOTHING ? 0 : s->value;
			low = units < low ? units : low;
			high = units > high ? units : high;
			at = s->end_ns;
		}
		if (nr && (i == HTML_TILE_BUCKETS || low != least || high != greatest)) {
			report_html_put(&w->bytes, nr);
			report_html_put(&w->bytes, least);
			report_html_put(&w->bytes, greatest);
			nr = 0;
		}
		least = low;
		greatest = high;
		nr++;
	}
}

static enum base_status add_tile(struct sweep *w, uint64_t index, bool leaf)
{
	struct html_pyramid *p = w->p;
	size_t length;
	enum base_status s = base_grow(&p->tile, &p->capacity, p->nr_tiles + 1, sizeof *p->tile);
	if (s != BASE_OK || w->bytes.failed)
		return BASE_ERR_NOMEM;
	char *text = report_html_pack(w->bytes.byte, w->bytes.length, &length);
	if (!text)
		return BASE_ERR_NOMEM;
	length += sizeof "\"12/1234567890\":\"\",";
	p->tile[p->nr_tiles++] = (struct html_tile){
		.level = w->level, .index = index, .leaf = leaf, .text = text, .nr_bytes = length};
	p->nr_bytes += length;
	return BASE_OK;
}

/* Writes a tile at the cursors, which then stand at its end. */
static enum base_status write_tile(struct sweep *w, uint64_t index)
{
	uint64_t from_ns = w->in->start_ns + index * tile_span_ns(w);
	uint64_t to_ns = from_ns + tile_span_ns(w), width_ns = (uint64_t)1 << w->log2;
	for (size_t i = 0; i < w->in->nr_tracks; i++)
		(void)report_html_cursor_seek(&w->cursor[i], from_ns);
	bool leaf = w->log2 <= FINEST_LOG2 || slices_in(w, from_ns, to_ns) <= HTML_LEAF_SLICES;
	w->bytes.length = 0;
	report_html_put(&w->bytes, leaf);
	for (size_t i = 0; i < w->in->nr_tracks; i++) {
		struct html_cursor *c = &w->cursor[i];
		if (leaf)
			put_slices(w, c, from_ns, to_ns);
		else if (w->in->track[i].kind == HTML_TRACK_states)
			put_state_buckets(w, i, from_ns, width_ns);
		else
			put_unit_buckets(w, c, from_ns, width_ns);
	}
	return add_tile(w, index, leaf);
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* The children of the level's tiles that are no leaves; with moments only those that have one. */
static enum base_status wish_children(struct sweep *w, struct wish *ret, bool all)
{
	uint64_t span_ns = tile_span_ns(w) / 4, length_ns = w->in->end_ns - w->in->start_ns;
	size_t nr = w->p->nr_tiles;
	ret->nr = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct html_tile *t = &w->p->tile[i];
		if (t->level != w->level || t->leaf)
			continue;
		for (unsigned k = 0; k < 4; k++) {
			uint64_t child = t->index * 4 + k, from_ns = child * span_ns;
			bool wanted = all;
			for (size_t j = 0; !wanted && j < w->in->nr_moments; j++) {
				uint64_t at = w->in->moment_ns[j] - w->in->start_ns;
				wanted = at >= from_ns && at < from_ns + span_ns;
			}
			if (from_ns >= length_ns || !wanted)
				continue;
			enum base_status s = base_grow(
				&ret->index, &ret->capacity, ret->nr + 1, sizeof *ret->index);
			if (s != BASE_OK)
				return s;
			ret->index[ret->nr++] = child;
		}
	}
	return BASE_OK;
}

static void drop_last(struct html_pyramid *p)
{
	struct html_tile *t = &p->tile[--p->nr_tiles];
	p->nr_bytes -= t->nr_bytes;
	base_free(t->text);
}

/* Stops before there are more than max_bytes; *ret_done: all of them were made. The first tile is
 * always there. */
static enum base_status html_pyramid_make(
	struct sweep *w, const struct wish *wish, size_t max_bytes, bool *ret_done)
{
	for (size_t i = 0; i < w->in->nr_tracks; i++)
		w->cursor[i] = report_html_cursor_of(w->in->track[i].track, w->in->end_ns);
	*ret_done = true;
	for (size_t i = 0; i < wish->nr; i++) {
		enum base_status s = write_tile(w, wish->index[i]);
		if (s != BASE_OK)
			return s;
		if (w->level && w->p->nr_bytes > max_bytes) {
			drop_last(w->p);
			*ret_done = false;
			break;
		}
	}
	return BASE_OK;
}

static void drop_level(struct html_pyramid *p, unsigned level)
{
	while (p->nr_tiles && p->tile[p->nr_tiles - 1].level == level)
		drop_last(p);
}

static enum base_status all_levels(struct sweep *w, struct wish *wish)
{
	size_t whole_bytes = (size_t)((double)w->in->max_bytes * WHOLE_SHARE);
	unsigned top = w->log2;
	bool all = true;
	for (w->level = 0; w->level < LEVELS_MAX; w->level++) {
		bool done;
		unsigned shift = 2 * w->level;
		w->log2 = top > shift ? top - shift : 0;
		enum base_status s =
			html_pyramid_make(w, wish, all ? whole_bytes : w->in->max_bytes, &done);
		if (s != BASE_OK)
			return s;
		if (all && !done) { /* a level in part would be fine in one half of the run only */
			drop_level(w->p, w->level);
			w->level--;
			w->log2 = top - 2 * w->level;
			all = false;
		} else if (all) {
			w->p->nr_levels = w->level + 1;
		} else if (!done) {
			break;
		}
		s = wish_children(w, wish, all);
		if (s != BASE_OK)
			return s;
		if (!wish->nr) {
			w->p->whole = all;
			break;
		}
	}
	return BASE_OK;
}

static int by_level(const void *a, const void *b)
{
	const struct html_tile *x = a, *y = b;
	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

enum base_status report_html_pyramid_build(
	struct html_pyramid *p, const struct html_pyramid_input *in, struct base_err *err)
{
	*p = (struct html_pyramid){0};
	struct sweep w = {.in = in, .p = p};
	struct wish wish = {0};
	uint64_t length_ns = in->end_ns - in->start_ns;
	while (((uint64_t)HTML_TILE_BUCKETS << w.log2) < length_ns)
		w.log2++;
	p->top_log2 = w.log2;
	w.cursor = base_alloc((in->nr_tracks + 1) * sizeof *w.cursor);
	w.sum_ns = base_alloc(((size_t)in->nr_values + 1) * sizeof *w.sum_ns);
	enum base_status s = w.cursor && w.sum_ns
				     ? base_grow(&wish.index, &wish.capacity, 1, sizeof *wish.index)
				     : BASE_ERR_NOMEM;
	if (s == BASE_OK) {
		wish.index[wish.nr++] = 0;
		s = all_levels(&w, &wish);
	}
	if (s == BASE_OK && p->nr_tiles)
		qsort(p->tile, p->nr_tiles, sizeof *p->tile, by_level);
	base_free(w.cursor);
	base_free(w.sum_ns);
	base_free(w.bytes.byte);
	base_free(wish.index);
	if (s == BASE_OK)
		return s;
	report_html_pyramid_fini(p);
	return base_fail(err, s, "out of memory for the page's timeline");
}

void report_html_pyramid_fini(struct html_pyramid *p)
{
	for (size_t i = 0; i < p->nr_tiles; i++)
		base_free(p->tile[i].text);
	base_free(p->tile);
	*p = (struct html_pyramid){0};
}

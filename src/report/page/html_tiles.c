/* SPDX-License-Identifier: Apache-2.0 */
/* html_tiles.c - the timeline's part of the document: lanes, states, tiles, exact sums. */
#include "report/page/html_private.h"

#include <math.h>
#include <stdlib.h>

enum { MOMENTS_MAX = 48, EVENLY = 33 };

/* ---- exact sums: per lane and bin, the time in each state ------------------------------------ */

static uint64_t bin_begin(const struct html_timeline *t, unsigned bin, unsigned nr_bins)
{
	uint64_t length_ns = t->end_ns - t->start_ns;
	return t->start_ns + length_ns / nr_bins * bin + length_ns % nr_bins * bin / nr_bins;
}

static void put_bin(struct html_bytes *b, struct html_cursor *c, uint64_t from_ns, uint64_t to_ns,
	uint64_t *sum_ns, uint32_t *seen)
{
	uint32_t nr = 0;
	for (uint64_t at = from_ns; at < to_ns;) {
		const struct html_slice *s = report_html_cursor_seek(c, at);
		uint64_t until = s->end_ns < to_ns ? s->end_ns : to_ns;
		if (s->value != HTML_NOTHING) {
			if (!sum_ns[s->value])
				seen[nr++] = s->value;
			sum_ns[s->value] += until - at;
		}
		at = until;
	}
	report_html_put(b, nr);
	for (uint32_t i = 0; i < nr; i++) {
		report_html_put(b, seen[i]);
		report_html_put(b, sum_ns[seen[i]]);
		sum_ns[seen[i]] = 0;
	}
}

static json_t *sums_of(const struct html_timeline *t, unsigned nr_bins)
{
	size_t nr_values = t->nr_states > t->nr_steps ? t->nr_states : t->nr_steps, length;
	uint64_t *sum_ns = base_alloc((nr_values + 1) * sizeof *sum_ns);
	uint32_t *seen = base_alloc((nr_values + 1) * sizeof *seen);
	struct html_bytes b = {0};
	json_t *ret = NULL;
	for (size_t i = 0; sum_ns && seen && i <= t->nr_lanes; i++) {
		struct html_cursor c = report_html_cursor_of(
			i < t->nr_lanes ? &t->lane[i].track : &t->path, t->end_ns);
		for (unsigned k = 0; k < nr_bins; k++)
			put_bin(&b, &c, bin_begin(t, k, nr_bins), bin_begin(t, k + 1, nr_bins),
				sum_ns, seen);
	}
	char *text =
		sum_ns && seen && !b.failed ? report_html_pack(b.byte, b.length, &length) : NULL;
	if (text)
		ret = json_stringn(text, length);
	base_free(text);
	base_free(b.byte);
	base_free(sum_ns);
	base_free(seen);
	return ret;
}

/* As many bins as fit into an eighth of the data. */
static json_t *sums(const struct html_timeline *t, size_t max_bytes, unsigned *ret_nr_bins)
{
	for (unsigned nr = REPORT_HTML_BINS;; nr /= 2) {
		json_t *text = sums_of(t, nr);
		*ret_nr_bins = nr;
		if (!text || nr <= REPORT_HTML_BINS_MIN ||
			json_string_length(text) <= max_bytes / 8)
			return text;
		json_decref(text);
	}
}

/* ---- moments that somebody will want to see -------------------------------------------------- */

static void html_tiles_add_moment(
	uint64_t *moment, size_t *nr, const struct html_timeline *t, uint64_t at_ns)
{
	if (*nr < MOMENTS_MAX && at_ns >= t->start_ns && at_ns < t->end_ns)
		moment[(*nr)++] = at_ns;
}

/* The longest visit to each of the path's longest states, the begin, the end, and evenly between.
 */
static size_t choose_moments(const struct html_timeline *t, uint64_t moment[MOMENTS_MAX])
{
	enum { STATES = 8 };
	uint64_t longest_ns[STATES] = {0}, at_ns[STATES] = {0};
	size_t nr = 0;
	struct html_cursor c = report_html_cursor_of(&t->path, t->end_ns);
	for (uint64_t at = t->start_ns; at < t->end_ns;) {
		const struct html_slice *s = report_html_cursor_seek(&c, at);
		uint32_t state = s->value == HTML_NOTHING ? STATES : t->step[s->value].state;
		if (state < STATES && s->end_ns - at > longest_ns[state]) {
			longest_ns[state] = s->end_ns - at;
			at_ns[state] = s->end_ns - 1; /* what comes of it is seen with it */
		}
		at = s->end_ns;
	}
	for (unsigned i = 0; i < STATES; i++)
		if (longest_ns[i])
			html_tiles_add_moment(moment, &nr, t, at_ns[i]);
	for (unsigned i = 0; i < EVENLY; i++)
		html_tiles_add_moment(moment, &nr, t,
			t->start_ns + (t->end_ns - t->start_ns - 1) / (EVENLY - 1) * i);
	return nr;
}

/* ---- the document ---------------------------------------------------------------------------- */

static json_t *lanes(const struct html_timeline *t)
{
	json_t *list = json_array();
	for (size_t i = 0; i < t->nr_lanes; i++) {
		const struct html_lane *l = &t->lane[i];
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", l->name,
				"group", l->group, "pid", base_json_u64(l->pid), "tid",
				base_json_u64(l->tid), "active_ns", base_json_u64(l->active_ns),
				"wait_ns", base_json_u64(l->wait_ns), "path_ns",
				report_json_ns(l->path_ns), "begin_ns", base_json_u64(l->begin_ns),
				"end_ns", base_json_u64(l->end_ns)));
	}
	return list;
}

static json_t *html_tiles_states(const struct html_timeline *t)
{
	json_t *list = json_array();
	for (size_t i = 0; i < t->nr_states; i++) {
		const struct html_state *s = &t->state[i];
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:I, s:s, s:b, s:o, s:o}", "name", s->name,
				      "where", s->where, "queue", s->queue, "topic",
				      (json_int_t)s->topic, "kind", model_state_kind_name(s->kind),
				      "waits", (int)model_state_kind_waits(s->kind), "path_ns",
				      report_json_ns(s->path_ns), "total_ns",
				      base_json_u64(s->total_ns)));
	}
	return list;
}

static json_t *steps(const struct html_timeline *t)
{
	json_t *list = json_array();
	for (size_t i = 0; i < t->nr_steps; i++) {
		const struct html_step *s = &t->step[i];
		json_array_append_new(list,
			json_pack("[I, I]",
				s->lane == HTML_NOTHING ? (json_int_t)-1 : (json_int_t)s->lane,
				s->state == HTML_NOTHING ? (json_int_t)-1 : (json_int_t)s->state));
	}
	return list;
}

static json_t *html_tiles_rows(const struct html_timeline *t)
{
	json_t *list = json_array();
	for (size_t i = 0; i < t->nr_rows; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:b, s:o}", "name", t->row[i].name, "type",
				      t->row[i].type, "waiters", (int)t->row[i].waiters, "greatest",
				      base_json_u64(t->row[i].greatest)));
	return list;
}

static json_t *tiles(const struct html_pyramid *p)
{
	json_t *to = json_object();
	char key[48];
	for (size_t i = 0; i < p->nr_tiles; i++) {
		const struct html_tile *t = &p->tile[i];
		snprintf(key, sizeof key, "%u/%llu", t->level, (unsigned long long)t->index);
		json_object_set_new(to, key, json_string(t->text));
	}
	return to;
}

static json_t *html_tiles_leaves(const struct html_pyramid *p)
{
	json_t *list = json_array();
	for (size_t i = 0; i < p->nr_tiles; i++)
		if (p->tile[i].leaf)
			json_array_append_new(list, json_sprintf("%u/%llu", p->tile[i].level,
							    (unsigned long long)p->tile[i].index));
	return list;
}

static enum base_status add_tiles(
	const struct html_timeline *t, size_t max_bytes, json_t *to, struct base_err *err)
{
	struct html_pyramid_track *track =
		base_alloc((t->nr_lanes + t->nr_rows + 1) * sizeof *track);
	uint64_t moment[MOMENTS_MAX];
	struct html_pyramid p;
	size_t nr = 0;
	if (!track)
		return report_no_memory(err);
	for (size_t i = 0; i < t->nr_lanes; i++)
		track[nr++] = (struct html_pyramid_track){
			.track = &t->lane[i].track, .kind = HTML_TRACK_states, .waits = t->waits};
	track[nr++] = (struct html_pyramid_track){.track = &t->path, .kind = HTML_TRACK_states};
	for (size_t i = 0; i < t->nr_rows; i++)
		track[nr++] = (struct html_pyramid_track){
			.track = &t->row[i].track, .kind = HTML_TRACK_units};
	struct html_pyramid_input in = {
		.track = track,
		.nr_tracks = nr,
		.start_ns = t->start_ns,
		.end_ns = t->end_ns,
		.nr_values = (uint32_t)(t->nr_states > t->nr_steps ? t->nr_states : t->nr_steps),
		.max_bytes = max_bytes,
		.moment_ns = moment,
		.nr_moments = choose_moments(t, moment),
	};
	enum base_status s = report_html_pyramid_build(&p, &in, err);
	base_free(track);
	if (s != BASE_OK)
		return s;
	json_t *part =
		json_pack("{s:I, s:i, s:I, s:b, s:o, s:o}", "bucket_log2", (json_int_t)p.top_log2,
			"buckets", (int)HTML_TILE_BUCKETS, "whole_levels", (json_int_t)p.nr_levels,
			"whole", (int)p.whole, "leaves", html_tiles_leaves(&p), "tiles", tiles(&p));
	report_html_pyramid_fini(&p);
	if (!part || json_object_update(to, part))
		s = report_no_memory(err);
	json_decref(part);
	return s;
}

enum base_status report_html_timeline_json(
	const struct html_timeline *t, size_t max_bytes, json_t **ret, struct base_err *err)
{
	unsigned nr_bins;
	json_t *bins = sums(t, max_bytes, &nr_bins);
	json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "start_ns",
		base_json_u64(t->start_ns), "end_ns", base_json_u64(t->end_ns), "path_ns",
		report_json_ns(t->path_ns), "lanes", lanes(t), "lanes_left_out",
		base_json_u64(t->nr_other_lanes), "states", html_tiles_states(t), "steps", steps(t),
		"queues", html_tiles_rows(t), "sums", bins, "bins", (int)nr_bins);
	if (!o)
		return report_no_memory(err);
	size_t small = json_dumpb(o, NULL, 0, JSON_COMPACT);
	enum base_status s = add_tiles(t, max_bytes > small ? max_bytes - small : 0, o, err);
	if (s == BASE_OK)
		*ret = o;
	else
		json_decref(o);
	return s;
}

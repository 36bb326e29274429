/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html_time.h - what each lane did when, in little memory; and the pyramid made of it.
 *
 * A track is a row of slices (value, duration) without gaps from its first moment on: 2 to 6 bytes
 * a slice. Lanes have one (values are states), the path has one (values are steps' kinds), and
 * queues have one (values are numbers of units).
 */
#ifndef LONGPOLE_REPORT_HTML_TIME_H
#define LONGPOLE_REPORT_HTML_TIME_H

#include "base/base.h"

#define HTML_NOTHING UINT32_MAX
enum { HTML_TILE_BUCKETS = 1024, HTML_LEAF_SLICES = 8192, HTML_FIFTEENTHS = 15 };

struct html_slice {
	uint64_t begin_ns, end_ns;
	uint32_t value; /* HTML_NOTHING: a gap */
};
struct html_track {
	uint8_t *byte;
	size_t length, capacity;
	uint64_t begin_ns, end_ns; /* of what is encoded; the open slice follows */
	struct html_slice open;
	bool begun;
	size_t nr_slices;
};
/* Slices in the order of time. What overlaps the one before is cut off; equal neighbours become
 * one. */
enum base_status report_html_track_add(
	struct html_track *t, uint64_t begin_ns, uint64_t end_ns, uint32_t value) BASE_MUST_CHECK;
enum base_status report_html_track_close(struct html_track *t) BASE_MUST_CHECK;
void report_html_track_fini(struct html_track *t);

/* Walks a closed track. Before its first moment and after its last one there is nothing. */
struct html_cursor {
	const struct html_track *track;
	const uint8_t *at;
	uint64_t limit_ns; /* from here on there is nothing */
	struct html_slice now;
};
struct html_cursor report_html_cursor_of(const struct html_track *t, uint64_t limit_ns);
/* Moves on to the slice that is under way at time_ns (never back) and returns it. */
const struct html_slice *report_html_cursor_seek(struct html_cursor *c, uint64_t time_ns);

enum html_track_kind {
	HTML_TRACK_states, /* a bucket: what had most of its active time, and of its waiting */
	HTML_TRACK_units   /* a bucket: the least and the greatest */
};
/* What is drawn of a bucket of states. */
struct html_bucket {
	uint32_t active, waiting;                   /* the longest; HTML_NOTHING: none */
	uint8_t active_fifteenths, wait_fifteenths; /* of the bucket; at least 1 when any */
};
/* The dominating values of [from_ns, to_ns) at the cursor. waits[value] (NULL: none); sum_ns: one
 * zero a value, left so. */
struct html_bucket report_html_bucket_of(struct html_cursor *c, uint64_t from_ns, uint64_t to_ns,
	const bool *waits, uint64_t *sum_ns);

struct html_pyramid_track {
	const struct html_track *track;
	enum html_track_kind kind;
	const bool *waits; /* by value; NULL: none does */
};
struct html_pyramid_input {
	const struct html_pyramid_track *track;
	size_t nr_tracks;
	uint64_t start_ns, end_ns;
	uint32_t nr_values;        /* of all tracks of states */
	size_t max_bytes;          /* of all tiles as text */
	const uint64_t *moment_ns; /* to have in full detail, the most interesting first */
	size_t nr_moments;
};
struct html_tile {
	unsigned level;
	uint64_t index;
	bool leaf;
	char *text;      /* base64 of deflated bytes; see doc/page.md */
	size_t nr_bytes; /* in the document */
};
struct html_pyramid {
	struct html_tile *tile; /* by level, index */
	size_t nr_tiles, capacity, nr_bytes;
	unsigned top_log2;  /* of a bucket of level 0, in ns */
	unsigned nr_levels; /* that are complete: every moment is in a tile of it or in a leaf */
	bool whole;         /* every slice is in a leaf */
};
enum base_status report_html_pyramid_build(struct html_pyramid *p,
	const struct html_pyramid_input *in, struct base_err *err) BASE_MUST_CHECK;
void report_html_pyramid_fini(struct html_pyramid *p);

/* Bytes, deflated and as base64, NUL at its end; NULL: no memory. base_free() it. */
char *report_html_pack(const uint8_t *bytes, size_t length, size_t *ret_length);

struct html_bytes {
	uint8_t *byte;
	size_t length, capacity;
	bool failed;
};
void report_html_put(struct html_bytes *b, uint64_t v); /* a varint */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_html.c - the page's data: the pyramid against brute force, sums against the run,
 * names that would be markup. */
#include "report_fixture.h"
#include "report/page/html.h"
#include "report/page/html_time.h"
#include "report/locks/locks.h"

#include <zlib.h>

/* ---- reading what was packed, independently of the writer ------------------------------------ */

static uint8_t *unpack(const char *text, size_t *ret_length)
{
	size_t length = strlen(text), nr = 0;
	uint8_t *packed = calloc(1, length + 4), *bytes = NULL;
	uint32_t bits = 0;
	unsigned have = 0;
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	assert_int_equal(length % 4, 0);
	for (size_t i = 0; i < length && text[i] != '='; i++) {
		const char *at = strchr(digit, text[i]);
		assert_non_null(at);
		bits = bits << 6 | (uint32_t)(at - digit);
		have += 6;
		if (have >= 8) {
			have -= 8;
			packed[nr++] = (uint8_t)(bits >> have);
		}
	}
	for (uLongf room = 1 << 16;; room *= 2) {
		uLongf got = room;
		bytes = realloc(bytes, room);
		int z = uncompress(bytes, &got, packed, nr);
		*ret_length = got;
		if (z == Z_OK)
			break;
		assert_int_equal(z, Z_BUF_ERROR);
	}
	free(packed);
	return bytes;
}

struct numbers {
	uint8_t *byte;
	const uint8_t *at, *end;
};

static struct numbers numbers_of(const char *text)
{
	size_t length;
	struct numbers n = {.byte = unpack(text, &length)};
	n.at = n.byte;
	n.end = n.byte + length;
	return n;
}

static uint64_t next(struct numbers *n)
{
	uint64_t v = 0;
	n->at = base_get_uvarint(n->at, n->end, &v);
	assert_non_null(n->at);
	return v;
}

/* ---- random lanes, as plain lists ------------------------------------------------------------ */

enum { TRACKS = 4, STATES = 3, VALUES = 6, SLICES = 30000 };

struct plain {
	struct html_slice slice[SLICES];
	size_t nr;
};
struct world {
	struct plain plain[TRACKS];
	struct html_track track[TRACKS];
	struct html_pyramid_track in[TRACKS];
	bool waits[VALUES];
	uint64_t end_ns;
};

static uint64_t seed;
static uint64_t dice(uint64_t n)
{
	seed = base_hash_u64(seed + 0x9e3779b97f4a7c15u);
	return seed % n;
}

/* Long and short slices, gaps; the last track is a queue. */
static struct world *world_new(size_t nr_slices, uint64_t longest_ns)
{
	struct world *w = calloc(1, sizeof *w);
	for (unsigned v = 0; v < VALUES; v++)
		w->waits[v] = v % 3 == 1;
	for (unsigned i = 0; i < TRACKS; i++) {
		uint64_t at = 1000 + dice(500);
		uint32_t last = HTML_NOTHING;
		for (size_t k = 0; k < nr_slices; k++) {
			uint64_t length = 1 + dice(dice(10) ? 40 : longest_ns);
			uint32_t value = (uint32_t)dice(VALUES);
			if (dice(9) && value != last) {
				w->plain[i].slice[w->plain[i].nr++] =
					(struct html_slice){at, at + length, value};
				assert_int_equal(
					report_html_track_add(&w->track[i], at, at + length, value),
					BASE_OK);
				last = value;
			} else {
				last = HTML_NOTHING; /* a gap */
			}
			at += length;
		}
		assert_int_equal(report_html_track_close(&w->track[i]), BASE_OK);
		if (at > w->end_ns)
			w->end_ns = at;
		w->in[i] = (struct html_pyramid_track){
			.track = &w->track[i],
			.kind = i < STATES ? HTML_TRACK_states : HTML_TRACK_units,
			.waits = i == 1 ? NULL : w->waits,
		};
	}
	w->end_ns -= w->end_ns / 10; /* what comes after the end is not there */
	return w;
}

static void world_free(struct world *w)
{
	for (unsigned i = 0; i < TRACKS; i++)
		report_html_track_fini(&w->track[i]);
	free(w);
}

/* Brute force over the list, from *hint on (slices before it end before `from`). */
static struct html_bucket bucket_by_hand(const struct plain *p, size_t *hint, const bool *waits,
	uint64_t from, uint64_t to, uint64_t end)
{
	struct html_bucket b = {.active = HTML_NOTHING, .waiting = HTML_NOTHING};
	uint64_t sum[VALUES] = {0}, all[2] = {0}, best[2] = {0};
	while (*hint < p->nr && p->slice[*hint].end_ns <= from)
		++*hint;
	for (size_t i = *hint; i < p->nr && p->slice[i].begin_ns < to; i++) {
		uint64_t a = p->slice[i].begin_ns > from ? p->slice[i].begin_ns : from;
		uint64_t z = p->slice[i].end_ns < to ? p->slice[i].end_ns : to;
		z = z < end ? z : end;
		if (z > a)
			sum[p->slice[i].value] += z - a;
	}
	for (uint32_t v = 0; v < VALUES; v++) {
		bool w = waits && waits[v];
		all[w] += sum[v];
		if (sum[v] > best[w]) {
			best[w] = sum[v];
			*(w ? &b.waiting : &b.active) = v;
		}
	}
	double width = (double)(to - from);
	double n[2] = {(double)all[0] * 15 / width, (double)all[1] * 15 / width};
	/* within one: rounding is the writer's business, that nothing is shown as nothing is not */
	b.active_fifteenths = (uint8_t)(n[0] + 0.5);
	b.wait_fifteenths = (uint8_t)(n[1] + 0.5);
	return b;
}

static void units_by_hand(const struct plain *p, size_t *hint, uint64_t from, uint64_t to,
	uint64_t end, uint64_t *ret_low, uint64_t *ret_high)
{
	uint64_t covered = 0;
	*ret_low = UINT64_MAX;
	*ret_high = 0;
	while (*hint < p->nr && p->slice[*hint].end_ns <= from)
		++*hint;
	for (size_t i = *hint; i < p->nr && p->slice[i].begin_ns < to; i++) {
		uint64_t a = p->slice[i].begin_ns > from ? p->slice[i].begin_ns : from;
		uint64_t z = p->slice[i].end_ns < to ? p->slice[i].end_ns : to;
		z = z < end ? z : end;
		if (z <= a)
			continue;
		covered += z - a;
		*ret_low = p->slice[i].value < *ret_low ? p->slice[i].value : *ret_low;
		*ret_high = p->slice[i].value > *ret_high ? p->slice[i].value : *ret_high;
	}
	if (covered < to - from)
		*ret_low = 0;
}

static bool near_by_one(unsigned a, unsigned b)
{
	return a + 1 >= b && b + 1 >= a;
}

static void check_states(
	struct numbers *n, const struct world *w, unsigned track, uint64_t from, uint64_t width_ns)
{
	size_t hint = 0;
	for (unsigned i = 0; i < HTML_TILE_BUCKETS;) {
		uint64_t run = next(n), active = next(n), waiting = next(n), q = next(n);
		assert_true(run >= 1 && i + run <= HTML_TILE_BUCKETS);
		for (; run; run--, i++) {
			struct html_bucket b =
				bucket_by_hand(&w->plain[track], &hint, w->in[track].waits,
					from + i * width_ns, from + (i + 1) * width_ns, w->end_ns);
			assert_int_equal((uint32_t)(active - 1), b.active);
			assert_int_equal((uint32_t)(waiting - 1), b.waiting);
			assert_true(near_by_one((unsigned)(q >> 4), b.active_fifteenths));
			assert_true(near_by_one((unsigned)(q & 15), b.wait_fifteenths));
			assert_true((q >> 4) + (q & 15) <= 15);
			assert_int_equal(active != 0, q >> 4 != 0);
			assert_int_equal(waiting != 0, (q & 15) != 0);
		}
	}
}

static void check_units(
	struct numbers *n, const struct world *w, unsigned track, uint64_t from, uint64_t width_ns)
{
	size_t hint = 0;
	for (unsigned i = 0; i < HTML_TILE_BUCKETS;) {
		uint64_t run = next(n), low = next(n), high = next(n), want_low, want_high;
		for (; run; run--, i++) {
			units_by_hand(&w->plain[track], &hint, from + i * width_ns,
				from + (i + 1) * width_ns, w->end_ns, &want_low, &want_high);
			assert_int_equal(low, want_low);
			assert_int_equal(high, want_high);
		}
	}
}

/* A leaf has the list itself. */
static void check_leaf(
	struct numbers *n, const struct world *w, unsigned track, uint64_t from, uint64_t span_ns)
{
	const struct plain *p = &w->plain[track];
	size_t hint = 0;
	for (uint64_t at = from; at < from + span_ns;) {
		uint64_t value = next(n), length = next(n);
		assert_true(length > 0);
		while (hint < p->nr && p->slice[hint].end_ns <= at)
			hint++;
		const struct html_slice *s =
			hint < p->nr && at < w->end_ns ? &p->slice[hint] : NULL;
		bool inside = s && s->begin_ns <= at;
		uint64_t until = inside ? s->end_ns : s ? s->begin_ns : UINT64_MAX;
		until = at < w->end_ns && until > w->end_ns ? w->end_ns : until;
		until = until < from + span_ns ? until : from + span_ns;
		assert_int_equal((uint32_t)(value - 1), inside ? s->value : HTML_NOTHING);
		/* two gaps side by side may come as one or as two */
		if (inside)
			assert_int_equal(at + length, until);
		else
			assert_true(at + length <= until);
		at += length;
	}
}

static void check_pyramid(const struct world *w, const struct html_pyramid *p)
{
	size_t bytes = 0;
	for (size_t i = 0; i < p->nr_tiles; i++) {
		const struct html_tile *t = &p->tile[i];
		unsigned log2 = p->top_log2 > 2 * t->level ? p->top_log2 - 2 * t->level : 0;
		uint64_t width_ns = (uint64_t)1 << log2, span_ns = width_ns * HTML_TILE_BUCKETS;
		uint64_t from = 1000 + t->index * span_ns;
		struct numbers n = numbers_of(t->text);
		assert_int_equal(next(&n), t->leaf);
		for (unsigned k = 0; k < TRACKS; k++) {
			if (t->leaf)
				check_leaf(&n, w, k, from, span_ns);
			else if (k < STATES)
				check_states(&n, w, k, from, width_ns);
			else
				check_units(&n, w, k, from, width_ns);
		}
		assert_ptr_equal(n.at, n.end);
		free(n.byte);
		bytes += strlen(t->text);
	}
	assert_true(bytes <= p->nr_bytes);
}

static void build(const struct world *w, size_t max_bytes, struct html_pyramid *p)
{
	struct base_err err;
	uint64_t moment[3] = {1000, w->end_ns / 2, w->end_ns - 1};
	struct html_pyramid_input in = {
		.track = w->in,
		.nr_tracks = TRACKS,
		.start_ns = 1000,
		.end_ns = w->end_ns,
		.nr_values = VALUES,
		.max_bytes = max_bytes,
		.moment_ns = moment,
		.nr_moments = 3,
	};
	assert_int_equal(report_html_pyramid_build(p, &in, &err), BASE_OK);
}

/* Does a leaf have the moment? */
static bool has_leaf_at(const struct html_pyramid *p, uint64_t time_ns)
{
	for (size_t i = 0; i < p->nr_tiles; i++) {
		const struct html_tile *t = &p->tile[i];
		uint64_t span = (uint64_t)HTML_TILE_BUCKETS << (p->top_log2 - 2 * t->level);
		uint64_t from = 1000 + t->index * span;
		if (t->leaf && time_ns >= from && time_ns < from + span)
			return true;
	}
	return false;
}

static void pyramid_is_what_brute_force_says(void **state)
{
	(void)state;
	for (seed = 1; seed < 4; seed++) {
		struct world *w = world_new(SLICES, seed == 1 ? 100 : 30000);
		struct html_pyramid p;
		build(w, 50000000, &p);
		assert_true(p.whole && p.nr_levels > 2);
		check_pyramid(w, &p);
		for (uint64_t at = 1000; at < w->end_ns; at += w->end_ns / 777)
			assert_true(has_leaf_at(&p, at));
		report_html_pyramid_fini(&p);
		world_free(w);
	}
}

static void pyramid_keeps_its_size(void **state)
{
	(void)state;
	seed = 7;
	struct world *w = world_new(SLICES, 5000);
	size_t last = 0;
	for (size_t max = 60000; max < 2000000; max *= 3) {
		struct html_pyramid p;
		build(w, max, &p);
		check_pyramid(w, &p);
		assert_true(p.nr_bytes <= max);
		assert_true(p.nr_bytes >= last);
		assert_true(p.nr_levels >= 1);
		last = p.nr_bytes;
		report_html_pyramid_fini(&p);
	}
	/* room for some: the chosen moments come first */
	struct html_pyramid p;
	build(w, 350000, &p);
	assert_false(p.whole);
	assert_true(has_leaf_at(&p, 1000));
	assert_true(has_leaf_at(&p, w->end_ns / 2));
	report_html_pyramid_fini(&p);
	world_free(w);
}

/* ---- the document ---------------------------------------------------------------------------- */

static enum base_status two_waits(
	const struct report_run *run, struct model *m, struct base_str *ret, struct base_err *err)
{
	(void)run;
	(void)err;
	assert_non_null(m);
	base_str_add(ret, "prog;main;[wait: mutex m] 700000\nprog;x 5\n");
	return BASE_OK;
}

static struct report_html *page_of(struct bench *b, struct base_str *page)
{
	struct report_run run = {.reader = b->reader, .trace_path = "/tmp/a/t.lpt"};
	struct report_html_options opts = {.waits_by_call_path = two_waits};
	struct report_html *h = NULL;
	assert_int_equal(report_html_build(&run, &opts, &h, &b->err), BASE_OK);
	report_html_page(page, h);
	assert_false(page->failed);
	return h;
}

static json_int_t integer(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

/* Time in a lane's states is the time that the lane was there; the path covers the run. */
static void check_sums(const json_t *t, const uint64_t *lane_ns)
{
	size_t nr_lanes = json_array_size(json_object_get(t, "lanes"));
	json_int_t bins = integer(t, "bins");
	struct numbers n = numbers_of(json_string_value(json_object_get(t, "sums")));
	for (size_t i = 0; i <= nr_lanes; i++) {
		uint64_t all = 0;
		for (json_int_t k = 0; k < bins; k++)
			for (uint64_t left = next(&n); left; left--) {
				uint64_t value = next(&n);
				assert_true(value < json_array_size(json_object_get(
							    t, i < nr_lanes ? "states" : "steps")));
				all += next(&n);
			}
		if (i < nr_lanes)
			assert_int_equal(all, lane_ns[i]);
		else
			assert_int_equal(all, integer(t, "end_ns") - integer(t, "start_ns"));
	}
	assert_ptr_equal(n.at, n.end);
	free(n.byte);
	assert_int_equal(integer(t, "path_ns"), integer(t, "end_ns") - integer(t, "start_ns"));
}

/* The sliders' points and the answer's table are of one function; returns how many were compared.
 */
static unsigned says_what_the_report_says(const json_t *d)
{
	unsigned nr = 0;
	size_t i, k;
	const json_t *curve, *point, *row,
		*table = json_object_get(json_object_get(d, "answer"), "opportunities"),
		*states = json_object_get(json_object_get(d, "whatif"), "states");
	json_array_foreach(states, i, curve)
		json_array_foreach(json_object_get(curve, "predicted"), k, point)
	{
		size_t r;
		double speedup = json_real_value(json_object_get(point, "speedup"));
		json_array_foreach(table, r, row)
		{
			if (integer(row, "reduction_percent") !=
					integer(point, "reduction_percent") ||
				strcmp(json_string_value(json_object_get(row, "state")),
					json_string_value(json_object_get(curve, "state"))) != 0)
				continue;
			assert_near(json_real_value(json_object_get(row, "predicted_speedup")),
				speedup, 1e-6);
			nr++;
		}
	}
	return nr;
}

static void time_sums_to_the_run(void **state)
{
	(void)state;
	struct bench b;
	struct base_str page = {0};
	slow_and_fast(&b);
	struct report_html *h = page_of(&b, &page);
	const json_t *d = report_html_json(h), *t = json_object_get(d, "timeline");
	assert_non_null(t);
	assert_int_equal(json_array_size(json_object_get(t, "lanes")), 3);
	check_sums(t, (const uint64_t[]){1001000, 985000, 575000});
	assert_true(json_is_true(json_object_get(t, "whole")));
	assert_string_equal(json_string_value(json_object_get(d, "name")), "t.lpt");
	/* the curve of slow: 985 us of it, of which 401 help */
	const json_t *curve =
		json_array_get(json_object_get(json_object_get(d, "whatif"), "states"), 0);
	const json_t *pieces = json_object_get(curve, "pieces");
	const json_t *first = json_array_get(pieces, 0);
	assert_near(json_real_value(json_object_get(first, "to")), 0.406, 0.004);
	assert_true(json_is_true(json_object_get(first, "exact")));
	assert_near((double)integer(first, "to_ns"), 601000, 3000);
	assert_true(says_what_the_report_says(d) >= 2);
	/* what is readable without JavaScript */
	assert_non_null(strstr(base_str_text(&page), "<p class=finding>"));
	assert_non_null(strstr(base_str_text(&page), "<svg class=timeline"));
	assert_non_null(strstr(base_str_text(&page), ">running slow"));
	base_str_fini(&page);
	report_html_free(h);
	finish(&b);
}

static void locks_have_lanes(void **state)
{
	(void)state;
	struct bench b;
	struct base_str page = {0};
	taking_turns(&b);
	struct report_html *h = page_of(&b, &page);
	const json_t *t = json_object_get(report_html_json(h), "timeline");
	const json_t *q = json_array_get(json_object_get(t, "queues"), 0);
	assert_string_equal(json_string_value(json_object_get(q, "name")), "mutex m");
	assert_true(json_is_true(json_object_get(q, "waiters")));
	assert_int_equal(integer(q, "greatest"), 1);
	const json_t *flame = json_object_get(report_html_json(h), "flame"), *nodes, *node;
	size_t i;
	json_int_t all = 0;
	nodes = json_object_get(flame, "wait");
	json_array_foreach(nodes, i, node) all += json_integer_value(json_array_get(node, 2));
	assert_int_equal(all, 700005);
	nodes = json_object_get(flame, "path");
	all = 0;
	json_array_foreach(nodes, i, node) all += json_integer_value(json_array_get(node, 2));
	assert_near((double)all, (double)integer(t, "path_ns"), 100);
	base_str_fini(&page);
	report_html_free(h);
	finish(&b);
}

/* ---- names that want to be markup ------------------------------------------------------------ */

#define EVIL                                                                                       \
	"</script><script>alert(1)</script><!--\"'&\xe2\x80\xa8\xe2\x80\xa9<img src=x "            \
	"onerror=alert(2)>"

static void hostile_names(void **state)
{
	(void)state;
	struct bench b;
	struct base_str page = {0};
	start(&b);
	uint32_t p = process(&b, EVIL), work = site(&b, EVIL), m = mutex(&b, EVIL);
	begin_threads(&b, p, 2);
	PUT(&b, 1, 1, thread_create, .token = 1, .site = work);
	PUT(&b, 1, 2, thread_begin, .token = 1, .handle = 2000, .site = work);
	PUT(&b, 2, 2, lock_acquire, .object = m, .site = work);
	PUT(&b, 3, 1, lock_wait, .object = m, .site = work);
	PUT(&b, 50, 2, lock_release, .object = m, .site = work);
	PUT(&b, 51, 1, lock_acquire, .object = m, .site = work);
	PUT(&b, 60, 1, lock_release, .object = m, .site = work);
	PUT(&b, 61, 2, thread_end);
	PUT(&b, 62, 1, join_wait, .handle = 2000);
	PUT(&b, 63, 1, join_done, .handle = 2000);
	end(&b, 70);
	struct report_html *h = page_of(&b, &page);
	const char *text = base_str_text(&page);
	/* the markup comes through nowhere, a line separator not into the script's data */
	assert_null(strstr(text, "<script>alert"));
	assert_null(strstr(text, "<img"));
	const char *data = strstr(text, "id=\"data\">");
	assert_non_null(data);
	data += strlen("id=\"data\">");
	assert_null(strstr(data, "\xe2\x80\xa8"));
	size_t length = strcspn(data, "<");
	assert_true(!strncmp(data + length, "</script>", 9));
	/* and the names are the same when they are read */
	json_error_t why;
	json_t *d = json_loadb(data, length, 0, &why);
	assert_non_null(d);
	const json_t *lane =
		json_array_get(json_object_get(json_object_get(d, "timeline"), "lanes"), 0);
	assert_non_null(strstr(
		json_string_value(json_object_get(lane, "name")), "<img src=x onerror=alert(2)>"));
	assert_true(json_equal(d, (json_t *)report_html_json(h)));
	json_decref(d);
	base_str_fini(&page);
	report_html_free(h);
	finish(&b);
}

static void nothing_to_see(void **state)
{
	(void)state;
	struct bench b;
	struct base_str page = {0};
	start(&b);
	assert_int_equal(trace_writer_close(b.w, &b.err), BASE_OK);
	assert_int_equal(trace_reader_open(b.path, NULL, &b.reader, &b.err), BASE_OK);
	struct report_html *h = page_of(&b, &page);
	assert_non_null(strstr(base_str_text(&page), "There is no answer"));
	assert_null(json_object_get(report_html_json(h), "timeline"));
	assert_non_null(
		json_object_get(json_object_get(report_html_json(h), "absent"), "timeline"));
	base_str_fini(&page);
	report_html_free(h);
	finish(&b);
}

static void says_the_same(const struct report_html *h, const char *part, json_t *document)
{
	assert_true(json_equal(
		json_object_get(report_html_json(h), part), json_object_get(document, "result")));
	json_decref(document);
}

/* Though its parts share what they learn, and what was simulated for one of them. */
static void parts_say_what_their_commands_say(void **state)
{
	(void)state;
	struct bench b;
	struct base_str page = {0};
	slow_and_fast(&b);
	struct report_html *h = page_of(&b, &page);
	struct report_run run = {.reader = b.reader, .trace_path = b.path};
	struct report_options report_opts = {.nr_opportunities_max = REPORT_OPPORTUNITIES_MAX,
		.nr_parts_max = REPORT_PARTS_DEFAULT};
	struct report_locks_options locks_opts = {
		.size = sizeof locks_opts, .sort = REPORT_LOCK_SORT_path, .nr_gains_max = 5};
	struct report *r = NULL;
	struct report_locks *locks = NULL;
	struct report_loops *loops = NULL;
	assert_int_equal(report_loops_build(&run, 0, &loops, &b.err), BASE_OK);
	says_the_same(h, "loops", report_loops_json(loops));
	assert_int_equal(report_locks_build(&run, &locks_opts, &locks, &b.err), BASE_OK);
	says_the_same(h, "locks", report_locks_json(locks));
	assert_int_equal(report_build(&run, &report_opts, &r, &b.err), BASE_OK);
	json_t *document = report_json(r), *answer = json_object_get(document, "result");
	assert_true(json_array_size(json_object_get(answer, "opportunities")) > 0);
	json_object_set(answer, "caveats",
		json_object_get(json_object_get(report_html_json(h), "answer"), "caveats"));
	says_the_same(h, "answer", document);
	report_loops_free(loops);
	report_locks_free(locks);
	report_free(r);
	base_str_fini(&page);
	report_html_free(h);
	finish(&b);
}

static void template_is_small(void **state)
{
	(void)state;
	assert_in_range(report_html_template_bytes(), 20000, REPORT_HTML_PAGE_MAX);
}

static void out_of_memory(void **state)
{
	(void)state;
	struct bench b;
	slow_and_fast(&b);
	struct report_run run = {.reader = b.reader, .trace_path = b.path};
	struct report_html_options opts = {.waits_by_call_path = two_waits};
	unsigned refused = 0;
	/* a walk with growing steps: each pass over the trace allocates the same things */
	for (uint64_t n = 1, step = 1;; n += step, step = 1 + n / 60) {
		struct report_html *h = NULL;
		enum base_status s = WITHOUT_NTH(n, report_html_build(&run, &opts, &h, NULL));
		if (s == BASE_OK && n > 20000) {
			report_html_free(h);
			break;
		}
		refused += s != BASE_OK;
		if (s == BASE_OK)
			report_html_free(h);
	}
	assert_true(refused > 100);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pyramid_is_what_brute_force_says),
		cmocka_unit_test(pyramid_keeps_its_size),
		cmocka_unit_test(time_sums_to_the_run),
		cmocka_unit_test(locks_have_lanes),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(nothing_to_see),
		cmocka_unit_test(parts_say_what_their_commands_say),
		cmocka_unit_test(template_is_small),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

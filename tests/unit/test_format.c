/* SPDX-License-Identifier: Apache-2.0 */
/* test_format.c - exports against what their formats' definitions ask for: nesting, order, sums. */
#include "report_fixture.h"

#include "format/format.h"

#include <jansson.h>

static enum base_status keep_bytes(
	void *ctx, const void *bytes, size_t length, struct base_err *err)
{
	struct base_str *s = ctx;
	(void)err;
	base_str_add_bytes(s, bytes, length);
	return BASE_OK;
}

static enum base_status export(struct bench *b, const char *name, struct format_options *opts,
	struct base_str *out, double *ret_elapsed_ns) {
	struct model_options mo = {.size = sizeof mo, .keep_path = true};
	struct format_input in = {.reader = b->reader, .name = "a.lpt", .tool = "test"};
	struct format_sink sink = {.write = keep_bytes, .ctx = out};
	struct graph_lane_result lane;
	assert_int_equal(trace_reader_rewind(b->reader, &b->err), BASE_OK);
	assert_int_equal(model_run(b->reader, &mo, &in.model, &b->err), BASE_OK);
	assert_int_equal(graph_lane(model_graph(in.model), 0, &lane, &b->err), BASE_OK);
	if (ret_elapsed_ns) *ret_elapsed_ns = lane.length_ns;
	enum base_status s = format_export(format_find(name), &in, opts, &sink, &b->err);
	model_free(in.model);
	return s;
}

/* ---- protobuf, read independently of the encoder --------------------------------------------- */

struct field {
	uint64_t number, value; /* varint, fixed64, or length */
	const uint8_t *bytes;
};

static const uint8_t *next_field(const uint8_t *p, const uint8_t *end, struct field *ret)
{
	uint64_t tag = 0;
	*ret = (struct field){0};
	p = base_get_uvarint(p, end, &tag);
	assert_non_null(p);
	ret->number = tag >> 3;
	if ((tag & 7) == 1) {
		ret->value = 0;
		for (unsigned i = 0; i < 8; i++)
			ret->value |= (uint64_t)p[i] << 8 * i;
		return p + 8;
	}
	p = base_get_uvarint(p, end, &ret->value);
	assert_non_null(p);
	ret->bytes = p;
	if ((tag & 7) == 2) {
		assert_true(ret->value <= (uint64_t)(end - p));
		p += ret->value;
	}
	return p;
}

enum { TRACKS_MAX = 16 };
struct track {
	uint64_t id, last_ns, slice_ns;
	unsigned open, nr;
};

static struct track *track_of(struct track *t, uint64_t id)
{
	for (unsigned i = 0; i < TRACKS_MAX; i++)
		if (!t[i].id || t[i].id == id) {
			t[i].id = id;
			return &t[i];
		}
	fail_msg("more tracks than expected");
	return NULL;
}

static void read_event(
	struct field packet, uint64_t time_ns, struct track *tracks, unsigned *ret_flows)
{
	uint64_t type = 0, track = 0;
	struct field f;
	for (const uint8_t *p = packet.bytes, *end = p + packet.value; p < end;) {
		p = next_field(p, end, &f);
		type = f.number == 9 ? f.value : type;
		track = f.number == 11 ? f.value : track;
		*ret_flows += f.number == 47 || f.number == 48;
	}
	struct track *t = track_of(tracks, track);
	assert_true(type == 3 || time_ns >= t->last_ns);
	if (type == 1) {
		assert_int_equal(t->open++, 0); /* flat */
		t->nr++;
		t->slice_ns -= time_ns;
	} else if (type == 2) {
		assert_int_equal(t->open--, 1);
		t->slice_ns += time_ns;
	}
	if (type != 3)
		t->last_ns = time_ns;
}

static void perfetto_nests(void **state)
{
	(void)state;
	struct bench b;
	struct base_str out = {0};
	struct track tracks[TRACKS_MAX] = {0};
	struct format_options opts = {0};
	double elapsed_ns;
	unsigned flows = 0, descriptors = 0;
	taking_turns(&b);
	assert_int_equal(export(&b, "perfetto", &opts, &out, &elapsed_ns), BASE_OK);
	const uint8_t *p = (const uint8_t *)base_str_text(&out), *end = p + out.length;
	while (p < end) {
		struct field packet, f, event = {0};
		uint64_t time_ns = 0;
		p = next_field(p, end, &packet);
		assert_int_equal(packet.number, 1);
		for (const uint8_t *q = packet.bytes, *stop = q + packet.value; q < stop;) {
			q = next_field(q, stop, &f);
			time_ns = f.number == 8 ? f.value : time_ns;
			event = f.number == 11 ? f : event;
			descriptors += f.number == 60;
		}
		if (event.bytes)
			read_event(event, time_ns, tracks, &flows);
	}
	assert_int_equal(descriptors, 1 + 1 + 3); /* the path, a process, three threads */
	for (unsigned i = 0; i < TRACKS_MAX; i++)
		assert_int_equal(tracks[i].open, 0);
	const struct track *path = track_of(tracks, 1);
	assert_near((double)path->slice_ns, elapsed_ns, 1);
	assert_true(path->nr >= 8);
	assert_true(flows >= 2 * 7); /* at least: the lock goes to and fro */
	assert_int_equal(flows % 2, 0);
	base_str_fini(&out);
	finish(&b);
}

static void speedscope_is_balanced(void **state)
{
	(void)state;
	struct bench b;
	struct base_str out = {0};
	struct format_options opts = {0};
	taking_turns(&b);
	assert_int_equal(export(&b, "speedscope", &opts, &out, NULL), BASE_OK);
	json_t *j = json_loads(base_str_text(&out), 0, NULL);
	assert_non_null(j);
	const json_t *profiles = json_object_get(j, "profiles");
	size_t nr_frames = json_array_size(json_object_get(json_object_get(j, "shared"), "frames"));
	size_t nr_evented = 0;
	for (size_t i = 0; i < json_array_size(profiles); i++) {
		const json_t *profile = json_array_get(profiles, i), *e;
		if (strcmp(json_string_value(json_object_get(profile, "type")), "evented") != 0)
			continue;
		nr_evented++;
		const json_t *events = json_object_get(profile, "events");
		json_int_t last = json_integer_value(json_object_get(profile, "startValue"));
		json_int_t stack[8] = {0};
		size_t depth = 0, k;
		json_array_foreach(events, k, e)
		{
			json_int_t at = json_integer_value(json_object_get(e, "at"));
			json_int_t frame = json_integer_value(json_object_get(e, "frame"));
			bool open = *json_string_value(json_object_get(e, "type")) == 'O';
			assert_true(at >= last && frame >= 0 && (size_t)frame < nr_frames);
			last = at;
			assert_true(open ? depth < BASE_COUNT(stack) : depth > 0);
			if (open)
				stack[depth++] = frame;
			else
				assert_int_equal(stack[--depth], frame);
		}
		assert_int_equal(depth, 0);
		assert_int_equal(last, json_integer_value(json_object_get(profile, "endValue")));
	}
	assert_int_equal(nr_evented, 1 + 3);
	json_decref(j);
	base_str_fini(&out);
	finish(&b);
}

/* Sum of the weights of lines with `part` in them. */
static double sum_of(const struct base_str *out, const char *part)
{
	double sum = 0;
	for (const char *p = base_str_text(out); *p;) {
		size_t length = strcspn(p, "\n");
		struct base_str line = {0};
		base_str_add_bytes(&line, p, length);
		const char *space = strrchr(base_str_text(&line), ' ');
		assert_non_null(space);
		if (strstr(base_str_text(&line), part))
			sum += strtod(space, NULL);
		base_str_fini(&line);
		p += length + (p[length] == '\n');
	}
	return sum;
}

static void collapsed_adds_up(void **state)
{
	(void)state;
	struct bench b;
	struct base_str path = {0}, wait = {0};
	struct format_options opts = {0};
	double elapsed_ns;
	taking_turns(&b);
	assert_int_equal(export(&b, "collapsed", &opts, &path, &elapsed_ns), BASE_OK);
	assert_near(sum_of(&path, ""), elapsed_ns, 10);
	assert_near(sum_of(&path, "holding mutex m;fill "), 600e3, 1);
	opts.weight = FORMAT_WEIGHT_wait;
	assert_int_equal(export(&b, "collapsed", &opts, &wait, NULL), BASE_OK);
	assert_near(sum_of(&wait, "[wait: mutex m]"), 713e3, 1);
	base_str_fini(&path);
	base_str_fini(&wait);
	finish(&b);
}

static void options_leave_out(void **state)
{
	(void)state;
	struct bench b;
	struct base_str all = {0}, some = {0}, none = {0};
	struct format_options opts = {.weight = FORMAT_WEIGHT_wait};
	taking_turns(&b);
	assert_int_equal(export(&b, "collapsed", &opts, &all, NULL), BASE_OK);
	opts.min_duration_ns = 103000;
	assert_int_equal(export(&b, "collapsed", &opts, &some, NULL), BASE_OK);
	assert_near(sum_of(&some, "mutex"), 0, 0.1);
	assert_true(sum_of(&some, "thread") > 700e3);
	opts = (struct format_options){.weight = FORMAT_WEIGHT_wait, .thread = "nobody"};
	assert_int_equal(export(&b, "collapsed", &opts, &none, NULL), BASE_ERR_USAGE);
	assert_non_null(strstr(b.err.cause[0], "--thread=nobody"));
	assert_int_equal(none.length, 0);
	opts = (struct format_options){.max_events = 5};
	base_str_reset(&none);
	assert_int_equal(export(&b, "perfetto", &opts, &none, NULL), BASE_ERR_LIMIT);
	assert_non_null(strstr(b.err.cause[0], "--min-duration="));
	assert_int_equal(none.length, 0);
	base_str_fini(&all);
	base_str_fini(&some);
	base_str_fini(&none);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perfetto_nests),
		cmocka_unit_test(speedscope_is_balanced),
		cmocka_unit_test(collapsed_adds_up),
		cmocka_unit_test(options_leave_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

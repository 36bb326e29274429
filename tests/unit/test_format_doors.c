/* SPDX-License-Identifier: Apache-2.0 */
/* test_format_doors.c - imports of whole, cut and damaged files, and exports, with every allocation
 * failing once; the same input gives the same bytes. The files are those of the fuzz corpora. */
#include "format_memory.h"
#include "report_fixture.h"

#include "format/format.h"
#include "format/sarif.h"

#include <jansson.h>

struct file {
	uint8_t *bytes;
	size_t nr;
};

static struct file load(const char *name)
{
	char path[4096];
	struct file f = {0};
	const char *source = getenv("LONGPOLE_SOURCE");
	snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", source ? source : ".", name);
	FILE *in = fopen(path, "r");
	if (!in)
		return f;
	f.bytes = malloc(1 << 20);
	f.nr = fread(f.bytes, 1, 1 << 20, in);
	fclose(in);
	return f;
}

/* Imports the first nr bytes into the file `path`. */
static enum base_status import(
	const char *format, const struct file *f, size_t nr, const char *path)
{
	struct memory part = {f->bytes, nr};
	const struct format_import_desc *desc = format_import_find(format);
	struct format_source from = memory_source(&part, "input");
	struct format_import_options o = {0};
	struct trace_info info = {.size = sizeof info,
		.host = "",
		.command = "",
		.tool = "",
		.nr_processors = 1,
		.flags = desc->flags & FORMAT_IMPORT_SYSTEM ? TRACE_INFO_SYSTEM
							    : TRACE_INFO_SYNTHETIC};
	struct base_str notes = {0};
	struct base_err err = {0};
	struct trace_writer *w = NULL;
	enum base_status s = trace_writer_open(path, &info, &w, &err);
	if (s == BASE_OK)
		s = format_import(desc, &from, w, &o, &notes, &err);
	enum base_status closed = w ? trace_writer_close(w, &err) : BASE_OK;
	base_str_fini(&notes);
	return s == BASE_OK ? closed : s;
}

static void temporary(char path[64])
{
	snprintf(path, 64, "/tmp/longpole-test-doors-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

static double running(const char *path, const char *process, const char *who)
{
	struct model_options o = {.size = sizeof o, .process = process};
	struct base_err err = {0};
	struct trace_reader *r;
	struct model *m;
	struct graph_lane_result lane;
	double sum = 0;
	assert_int_equal(trace_reader_open(path, NULL, &r, &err), BASE_OK);
	assert_int_equal(model_run(r, &o, &m, &err), BASE_OK);
	assert_int_equal(graph_lane(model_graph(m), 0, &lane, &err), BASE_OK);
	for (size_t i = 0; i < lane.nr_states; i++)
		if (strstr(model_actor(m, lane.state[i].actor)->name, who) &&
			!model_state_kind_waits(model_state(m, lane.state[i].state)->kind))
			sum += lane.state[i].path_ns;
	model_free(m);
	trace_reader_close(r);
	return sum;
}

static const struct {
	const char *format, *name;
} inputs[] = {{"perf", "perf_data/story"}, {"perfetto", "perfetto/whole"},
	{"perfetto", "perfetto/compact"}, {"otlp", "spans/otlp"}, {"otlp", "spans/jaeger"},
	{"chrome", "spans/chrome"}};

/* A client works 100 us, wakes a server; that runs 500 us and wakes it; it runs from 640 to 700. */
static void kernel_traces_have_one_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		char path[64];
		temporary(path);
		struct file f = load(inputs[i].name);
		assert_non_null(f.bytes);
		assert_int_equal(import(inputs[i].format, &f, f.nr, path), BASE_OK);
		assert_near(running(path, "client", "server"), 500000, 0.5);
		assert_near(running(path, "client", "client"), 160000, 0.5);
		free(f.bytes);
		unlink(path);
	}
}

/* Cut anywhere: refused, or imported as far as it goes. */
static void cut_files(void **state)
{
	(void)state;
	char path[64];
	temporary(path);
	for (size_t i = 0; i < BASE_COUNT(inputs); i++) {
		struct file f = load(inputs[i].name);
		size_t step = f.nr / 150 + 1;
		for (size_t nr = 0; nr < f.nr; nr += step) {
			enum base_status s = import(inputs[i].format, &f, nr, path);
			assert_true(s == BASE_OK || s == BASE_ERR_FOREIGN);
		}
		free(f.bytes);
	}
	unlink(path);
}

static void imports_without_memory(void **state)
{
	(void)state;
	char path[64];
	temporary(path);
	for (size_t i = 0; i < BASE_COUNT(inputs); i++) {
		struct file f = load(inputs[i].name);
		enum base_status s = BASE_ERR_NOMEM;
		unsigned nr_failed = 0;
		for (uint64_t n = 1; s != BASE_OK && n < 5000; n++) {
			base_alloc_fail_nth(n);
			s = import(inputs[i].format, &f, f.nr, path);
			nr_failed += s == BASE_ERR_NOMEM;
			assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
		}
		base_alloc_fail_nth(0);
		assert_int_equal(s, BASE_OK);
		assert_true(nr_failed > 5);
		free(f.bytes);
	}
	unlink(path);
}

/* ---- exports -----------------------------------------------------------------------------------
 */

static enum base_status keep_bytes(
	void *ctx, const void *bytes, size_t length, struct base_err *err)
{
	(void)err;
	base_str_add_bytes(ctx, bytes, length);
	return BASE_OK;
}

static enum base_status begin_file(void *ctx, const char *name, struct base_err *err)
{
	(void)err;
	base_str_add(ctx, name);
	return BASE_OK;
}

/* The model runs with memory; then the n-th allocation from there fails (0: none). */
static enum base_status export(struct bench *b, const char *name, enum format_weight weight,
	uint64_t nth, struct base_str *out) {
	struct format_events events; format_events_init(&events);
	struct model_options mo = {.size = sizeof mo,
		.keep_path = true,
		.listener = &events.listener,
		.sink = &events.sink};
	struct format_input in = {.reader = b->reader,
		.events = &events,
		.name = "a.lpt",
		.tool = "test 1"};
	struct format_options o = {.weight = weight};
	struct format_sink sink = {.write = keep_bytes, .begin = begin_file, .ctx = out};
	assert_int_equal(trace_reader_rewind(b->reader, &b->err), BASE_OK);
	assert_int_equal(model_run(b->reader, &mo, &in.model, &b->err), BASE_OK);
	assert_true(events.nr_dependences >= 7); /* the lock goes to and fro */
	base_alloc_fail_nth(nth);
	enum base_status s = format_export(format_find(name), &in, &o, &sink, &b->err);
	base_alloc_fail_nth(0);
	model_free(in.model);
	format_events_fini(&events);
	return s;
}

static const struct {
	const char *format;
	enum format_weight weight;
} outputs[] = {{"perfetto", 0}, {"firefox", 0}, {"pprof", FORMAT_WEIGHT_path},
	{"pprof", FORMAT_WEIGHT_wait}, {"chrome", 0}, {"otlp", 0}, {"csv", 0}, {"sarif", 0},
	{"ctf", 0}};

static void exports_are_reproducible(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	for (size_t i = 0; i < BASE_COUNT(outputs); i++) {
		struct base_str one = {0}, other = {0};
		assert_int_equal(
			export(&b, outputs[i].format, outputs[i].weight, 0, &one), BASE_OK);
		assert_int_equal(
			export(&b, outputs[i].format, outputs[i].weight, 0, &other), BASE_OK);
		assert_true(one.length > 200);
		assert_int_equal(one.length, other.length);
		assert_memory_equal(one.buf, other.buf, one.length);
		base_str_fini(&one);
		base_str_fini(&other);
	}
	finish(&b);
}

static void exports_without_memory(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	for (size_t i = 0; i < BASE_COUNT(outputs); i++) {
		enum base_status s = BASE_ERR_NOMEM;
		unsigned nr_failed = 0;
		struct base_str whole = {0};
		assert_int_equal(
			export(&b, outputs[i].format, outputs[i].weight, 0, &whole), BASE_OK);
		for (uint64_t n = 1; s != BASE_OK && n < 3000; n++) {
			struct base_str out = {0};
			s = export(&b, outputs[i].format, outputs[i].weight, n, &out);
			/* the sink's own text may be what failed */
			if (out.failed)
				s = BASE_ERR_NOMEM;
			assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
			nr_failed += s != BASE_OK;
			if (s == BASE_OK) { /* then nothing is missing */
				if (out.length != whole.length)
					print_message("%s, allocation %llu\n", outputs[i].format,
						(unsigned long long)n);
				assert_int_equal(out.length, whole.length);
				assert_memory_equal(out.buf, whole.buf, out.length);
			}
			base_str_fini(&out);
		}
		assert_int_equal(s, BASE_OK);
		assert_true(nr_failed > 3);
		base_str_fini(&whole);
	}
	finish(&b);
}

/* The writer that others use: two threads that wait for each other. */
static void sarif_of_a_deadlock(void **state)
{
	(void)state;
	static const struct format_sarif_rule rule[] = {
		{"longpole/deadlock", "threads wait for each other", "take locks in one order"}};
	const struct format_sarif_place a[] = {
		{.file = "src/a b.c", .line = 3, .text = "holds \"x\"", .function = "f"},
		{.file = "src/a b.c", .line = 4, .text = "waits for y", .function = "f"}};
	const struct format_sarif_place c[] = {{.file = "/abs/c.c", .line = 9, .text = "holds y"}};
	const struct format_sarif_flow flow[] = {{"one", a, 2}, {"two", c, 1}};
	struct format_sarif s;
	format_sarif_begin(&s, "0", rule, 1);
	format_sarif_result(&s, &(struct format_sarif_result){.level = FORMAT_SARIF_error,
					.text = "a deadlock",
					.place = &a[1],
					.flow = flow,
					.nr_flows = 2,
					.fingerprint = 7});
	format_sarif_end(&s);
	json_t *j = json_loads(base_str_text(&s.text), 0, NULL);
	assert_non_null(j);
	const char *thread, *uri, *other, *level;
	json_int_t line;
	assert_int_equal(
		json_unpack(j,
			"{s:[{s:[{s:s,s:[{s:{s:{s:s},s:{s:I}}}],s:[{s:[{},{s:s,s:[{s:{s:{s:{s:s}}}}"
			"]}]}]}]}]}",
			"runs", "results", "level", &level, "locations", "physicalLocation",
			"artifactLocation", "uri", &uri, "region", "startLine", &line, "codeFlows",
			"threadFlows", "id", &thread, "locations", "location", "physicalLocation",
			"artifactLocation", "uri", &other),
		0);
	assert_string_equal(level, "error");
	assert_string_equal(uri, "src/a%20b.c");
	assert_int_equal(line, 4);
	assert_string_equal(thread, "two");
	assert_string_equal(other, "file:///abs/c.c");
	json_decref(j);
	format_sarif_fini(&s);

	struct base_str buf = {0};
	struct format_sarif_place place;
	assert_true(format_sarif_parse_place("f(int, char) (dir/x.c:42)", &buf, &place));
	assert_string_equal(place.function, "f(int, char)");
	assert_string_equal(place.file, "dir/x.c");
	assert_int_equal(place.line, 42);
	assert_false(format_sarif_parse_place("libz.so.1+0x4970", &buf, &place));
	assert_false(format_sarif_parse_place("", &buf, &place));
	base_str_fini(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_traces_have_one_answer),
		cmocka_unit_test(cut_files),
		cmocka_unit_test(imports_without_memory),
		cmocka_unit_test(exports_are_reproducible),
		cmocka_unit_test(exports_without_memory),
		cmocka_unit_test(sarif_of_a_deadlock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

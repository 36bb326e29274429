/* SPDX-License-Identifier: Apache-2.0 */
/* test_format_doors.c - imports of whole, cut and damaged files, and exports, with every allocation
 * failing once; the same input gives the same bytes. The files are those of the fuzz corpora. */
#include "format_memory.h"
#include "report_fixture.h"

#include "format/format.h"
#include "format/sarif.h"

#include <jansson.h>
#include <zstd.h>

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
	struct format_started started;
	struct base_err err = {0};
	enum base_status s = format_import_started(desc, &from, &started, &err);
	struct format_import_options o = {.started = &started};
	struct trace_info info = {.size = sizeof info,
		.host = "",
		.command = "",
		.tool = "",
		.nr_processors = 1,
		.flags = desc->flags & FORMAT_IMPORT_SYSTEM ? TRACE_INFO_SYSTEM
							    : TRACE_INFO_SYNTHETIC};
	struct base_str notes = {0};
	struct trace_writer *w = NULL;
	if (s == BASE_OK)
		s = trace_writer_open(path, &info, &w, &err);
	if (s == BASE_OK)
		s = format_import(desc, &from, w, &o, &notes, &err);
	enum base_status closed = w ? trace_writer_close(w, &err) : BASE_OK;
	base_str_fini(&notes);
	base_str_fini(&started.command);
	return s == BASE_OK ? closed : s;
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
		char path[TEMPORARY_PATH];
		temporary_file(path, NULL, 0);
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
	char path[TEMPORARY_PATH];
	temporary_file(path, NULL, 0);
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

/* ---- perf record -z -------------------------------------------------------------------------- */

enum { PERF_DATA_AT = 40, PERF_FEATURES_AT = 72, COMPRESSED = 81, COMPRESSED2 = 83 };

static uint64_t word(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

/* One record of a piece of the stream; that of kind 83 has its length and is padded to 8. */
static void add_piece(struct file *to, uint32_t kind, const uint8_t *bytes, uint64_t nr)
{
	size_t extra = kind == COMPRESSED2 ? 8 : 0, padding = extra ? (size_t)(-nr & 7) : 0;
	uint32_t head[2] = {kind, (uint32_t)(8 + extra + nr + padding) << 16};
	memcpy(to->bytes + to->nr, head, sizeof head);
	memcpy(to->bytes + to->nr + 8, &nr, extra);
	memcpy(to->bytes + to->nr + 8 + extra, bytes, nr);
	memset(to->bytes + to->nr + 8 + extra + nr, 0xee, padding);
	to->nr += 8 + extra + nr + padding;
}

/* The same recording as perf record -z writes it: its records as one stream, cut anywhere. */
static struct file compress_perf(const struct file *f, uint32_t kind, size_t piece)
{
	struct file to = {.bytes = malloc(1 << 20)};
	uint64_t at = word(f->bytes + PERF_DATA_AT), end = at + word(f->bytes + PERF_DATA_AT + 8);
	ZSTD_CStream *z = ZSTD_createCStream();
	memcpy(to.bytes, f->bytes, at);
	to.nr = at;
	for (uint64_t from = at; from < end; from += piece) {
		uint8_t out[1 << 12];
		ZSTD_inBuffer i = {f->bytes + from, end - from < piece ? end - from : piece, 0};
		ZSTD_outBuffer o = {out, sizeof out, 0};
		assert_int_equal(ZSTD_compressStream2(z, &o, &i, ZSTD_e_flush), 0);
		add_piece(&to, kind, out, o.pos);
	}
	ZSTD_freeCStream(z);
	uint64_t nr_bytes = to.nr - at, moved = to.nr - end;
	memcpy(to.bytes + PERF_DATA_AT + 8, &nr_bytes, sizeof nr_bytes);
	memcpy(to.bytes + to.nr, f->bytes + end, f->nr - end);
	unsigned nr_features = (unsigned)__builtin_popcountll(word(f->bytes + PERF_FEATURES_AT));
	for (unsigned i = 0; i < nr_features; i++) {
		uint64_t offset = word(f->bytes + end + i * 16) + moved;
		memcpy(to.bytes + to.nr + i * 16, &offset, sizeof offset);
	}
	to.nr += f->nr - end;
	return to;
}

static struct file load_trace(const char *path)
{
	struct file f = {.bytes = malloc(1 << 20)};
	FILE *in = fopen(path, "r");
	assert_non_null(in);
	f.nr = fread(f.bytes, 1, 1 << 20, in);
	fclose(in);
	return f;
}

/* Byte for byte what comes of the same recording without -z; also damaged ones have an answer. */
static void compressed_perf_is_the_same(void **state)
{
	char path[TEMPORARY_PATH];
	(void)state;
	temporary_file(path, NULL, 0);
	struct file f = load("perf_data/story");
	assert_int_equal(import("perf", &f, f.nr, path), BASE_OK);
	struct file want = load_trace(path);
	assert_true(want.nr > 200);
	for (size_t piece = 1; piece < 1200; piece = piece * 3 + 1) {
		for (uint32_t kind = COMPRESSED; kind <= COMPRESSED2; kind += 2) {
			struct file z = compress_perf(&f, kind, piece);
			assert_int_equal(import("perf", &z, z.nr, path), BASE_OK);
			struct file got = load_trace(path);
			assert_int_equal(got.nr, want.nr);
			assert_memory_equal(got.bytes, want.bytes, want.nr);
			free(got.bytes);
			uint64_t at = word(f.bytes + PERF_DATA_AT);
			z.bytes[at + 20] ^= 0x55;
			enum base_status s = import("perf", &z, z.nr, path);
			assert_true(s == BASE_OK || s == BASE_ERR_FOREIGN);
			free(z.bytes);
		}
	}
	free(want.bytes);
	free(f.bytes);
	unlink(path);
}

static void imports_without_memory(void **state)
{
	(void)state;
	char path[TEMPORARY_PATH];
	temporary_file(path, NULL, 0);
	for (size_t i = 0; i < BASE_COUNT(inputs); i++) {
		struct file f = load(inputs[i].name);
		SWEEP_ALLOCATIONS(6, import(inputs[i].format, &f, f.nr, path));
		free(f.bytes);
	}
	unlink(path);
}

/* ---- exports --------------------------------------------------------------------------------- */

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
	/* Nowhere, and twice the same: each is somewhere, and itself. */
	s.program = "bin/server";
	for (int i = 0; i < 2; i++)
		format_sarif_result(
			&s, &(struct format_sarif_result){
				    .level = FORMAT_SARIF_note, .text = "b", .fingerprint = 7});
	format_sarif_end(&s);
	json_t *j = json_loads(base_str_text(&s.text), 0, NULL);
	assert_non_null(j);
	json_t *results = json_object_get(json_array_get(json_object_get(j, "runs"), 0), "results");
	const char *print[3], *nowhere;
	json_int_t first_line;
	assert_int_equal(json_array_size(results), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(
			json_unpack(json_array_get(results, i), "{s:{s:s}}", "partialFingerprints",
				"primaryLocationLineHash", &print[i]),
			0);
	assert_string_not_equal(print[0], print[1]);
	assert_string_not_equal(print[0], print[2]);
	assert_string_not_equal(print[1], print[2]);
	assert_int_equal(json_unpack(json_array_get(results, 1), "{s:[{s:{s:{s:s},s:{s:I}}}]}",
				 "locations", "physicalLocation", "artifactLocation", "uri",
				 &nowhere, "region", "startLine", &first_line),
		0);
	assert_string_equal(nowhere, "bin/server");
	assert_int_equal(first_line, 1);
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

/* A perf.data with a command line and what perf's child becomes; `exec`: the comm record's misc. */
static struct file started_perf(
	const char *const *words, unsigned nr_words, const char *comm, bool is_child, uint16_t exec)
{
	enum { ATTR_BYTES = 64 };
	struct file f = {.bytes = calloc(1, 4096)};
	uint8_t *b = f.bytes, *data = b + 104 + ATTR_BYTES + 16, *p = data;
	const struct {
		const char *name;
		uint16_t misc;
	} record[] = {{comm, 1 << 13}, /* another process of that name */
		{is_child ? "perf-exec" : "other", 0}, {comm, exec}};
	for (uint32_t i = 0; i < BASE_COUNT(record); i++, p += 32) {
		uint32_t type = 3, pid = i ? 42 : 41;
		uint16_t size = 32;
		memcpy(p, &type, 4);
		memcpy(p + 4, &record[i].misc, 2);
		memcpy(p + 6, &size, 2);
		memcpy(p + 8, &pid, 4);
		memcpy(p + 12, &pid, 4);
		snprintf((char *)p + 16, 16, "%s", record[i].name);
	}
	/* the sections of features: tracing data, which are cut, and the command line */
	uint64_t data_at = (uint64_t)(data - b), data_bytes = (uint64_t)(p - data);
	uint8_t *sections = p, *line = p + 32, *to = line + 4;
	memcpy(line, &nr_words, 4);
	for (unsigned i = 0; i < nr_words; i++, to += 36) {
		uint32_t size = 32;
		memcpy(to, &size, 4);
		snprintf((char *)to + 4, 32, "%s", words[i]);
	}
	static const uint8_t no_tracing[] = {0x17, 8, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
	memcpy(to, no_tracing, sizeof no_tracing);
	const uint64_t section[] = {
		(uint64_t)(to - b), sizeof no_tracing, (uint64_t)(line - b), (uint64_t)(to - line)};
	memcpy(sections, section, sizeof section);
	const uint64_t head[] = {0x32454c4946524550, 104, ATTR_BYTES + 16, 104, ATTR_BYTES + 16,
		data_at, data_bytes, 0, 0, 1 << 1 | 1 << 11};
	memcpy(b, head, sizeof head);
	f.nr = (size_t)(to - b) + sizeof no_tracing;
	return f;
}

static void perf_says_what_it_started(void **state)
{
	static const char *const plain[] = {
		"perf", "record", "-a", "-o", "x.data", "./a b/server", "-n"};
	static const char *const dashes[] = {"perf", "record", "-o", "server", "--", "server", "x"};
	static const struct {
		const char *const *words;
		unsigned nr;
		const char *comm;
		bool is_child;
		uint16_t exec;
		const char *want;
	} c[] = {
		{plain, 7, "server", true, 1 << 13, "'./a b/server' -n"},
		{dashes, 7, "server", true, 1 << 13, "server x"},
		{dashes, 7, "server", false, 1 << 13, NULL}, /* somebody else's */
		{dashes, 7, "server", true, 0, NULL},        /* a thread that calls itself so */
		{dashes, 7, "serve", true, 1 << 13, NULL},
		{dashes, 4, "other", true, 1 << 13, NULL},
		{dashes, 0, "server", true, 1 << 13, NULL},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(c); i++) {
		struct file f =
			started_perf(c[i].words, c[i].nr, c[i].comm, c[i].is_child, c[i].exec);
		for (size_t nr = 0; nr <= f.nr; nr++) { /* cut, too */
			struct memory part = {f.bytes, nr};
			struct format_source from = memory_source(&part, "input");
			struct format_started s;
			assert_int_equal(
				format_import_started(format_import_find("perf"), &from, &s, NULL),
				BASE_OK);
			assert_int_equal(s.pid, nr == f.nr && c[i].want ? 42 : 0);
			if (s.pid)
				assert_string_equal(base_str_text(&s.command), c[i].want);
			base_str_fini(&s.command);
		}
		free(f.bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_says_what_it_started),
		cmocka_unit_test(kernel_traces_have_one_answer),
		cmocka_unit_test(cut_files),
		cmocka_unit_test(compressed_perf_is_the_same),
		cmocka_unit_test(imports_without_memory),
		cmocka_unit_test(exports_are_reproducible),
		cmocka_unit_test(exports_without_memory),
		cmocka_unit_test(sarif_of_a_deadlock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace.c - records, files, order, seeking, schema, printing. Damage: test_trace_damage.c. */
#include "trace/trace.h"
#include "trace/enums.h"
#include "trace/layout.h"
#include "test.h"
#include "trace_file.h"
#include "trace_future.h"
#include "trace_random.h"

#include <errno.h>

#define OK(call) assert_int_equal((call), BASE_OK)

static const char letters[] = "The quick brown fox jumps over the lazy dog";

/* ---- one record ------------------------------------------------------------------------------ */

static void check_codec(const struct trace_record *r, uint64_t last_ns)
{
	uint8_t bytes[512], again[512];
	struct trace_codec_state s = {.last_ns = last_ns};
	uint8_t *end = trace_encode(bytes, bytes + sizeof bytes, &s, r);
	assert_non_null(end);
	size_t nr = (size_t)(end - bytes);

	/* Copies of just that size, so that the address sanitizer sees one byte too many. */
	for (size_t size = 0; size <= nr; size++) {
		uint8_t *exact = malloc(size ? size : 1);
		struct trace_record back;

		memcpy(exact, bytes, size);
		s.last_ns = last_ns;
		const uint8_t *after = trace_decode(exact, exact + size, &s, &back);
		if (size < nr) {
			assert_null(after);
			assert_int_equal(s.last_ns, last_ns);
		} else {
			assert_ptr_equal(after, exact + nr);
			assert_true(records_equal(r, &back));
		}
		s.last_ns = last_ns;
		after = trace_encode(exact, exact + size, &s, r);
		if (size < nr)
			assert_null(after);
		else
			assert_memory_equal(exact, bytes, nr);
		free(exact);
	}
	s.last_ns = last_ns;
	assert_ptr_equal(trace_encode(again, again + nr, &s, r), again + nr);
	assert_memory_equal(again, bytes, nr);
}

static void codec_round_trip(void **state)
{
	uint64_t seed = 1;
	unsigned nr_kinds;
	const struct trace_kind_desc *k = trace_kind_table(&nr_kinds);

	(void)state;
	for (unsigned i = 0; i < nr_kinds; i++) {
		for (int n = 0; n < 100; n++) {
			struct trace_record r;
			uint64_t last_ns = random_wide(&seed);

			random_fields(&seed, &k[i], letters, sizeof letters - 1, &r);
			if (k[i].kind >= 32)
				r.time_ns = last_ns + random_u64(&seed) % (UINT64_MAX - last_ns);
			check_codec(&r, last_ns);
		}
	}
}

/* Whatever decodes, encodes to the same bytes. */
static void codec_is_canonical(void **state)
{
	uint64_t seed = 2, nr_decoded = 0;

	(void)state;
	for (int n = 0; n < 300000; n++) {
		uint8_t bytes[64], again[64];
		struct trace_codec_state s = {.last_ns = random_wide(&seed)}, before = s;
		struct trace_record r;

		for (size_t i = 0; i < sizeof bytes; i++)
			bytes[i] = (uint8_t)(random_u64(&seed) & (n & 1 ? 0xff : 0x9f));
		bytes[0] = (uint8_t)random_below(&seed, 128);
		size_t size = 1 + random_below(&seed, sizeof bytes);
		const uint8_t *end = trace_decode(bytes, bytes + size, &s, &r);
		if (!end)
			continue;
		nr_decoded++;
		struct trace_codec_state t = before;
		assert_ptr_equal(
			trace_encode(again, again + sizeof again, &t, &r), again + (end - bytes));
		assert_memory_equal(again, bytes, (size_t)(end - bytes));
		assert_int_equal(t.last_ns, s.last_ns);
	}
	assert_true(nr_decoded > 10000);
}

static void codec_refuses(void **state)
{
	struct trace_codec_state s = {.last_ns = 100};
	struct trace_record r = {.kind = TRACE_thread_end, .time_ns = 99};
	uint8_t bytes[256];

	(void)state;
	assert_null(trace_encode(bytes, bytes + sizeof bytes, &s, &r)); /* time goes back */
	r = (struct trace_record){.kind = 31, .time_ns = 100};
	assert_null(trace_encode(bytes, bytes + sizeof bytes, &s, &r));
	static const uint8_t bad[][12] = {
		{0},                                                      /* kind 0 */
		{TRACE_lock_acquire, 0, 0x80, 0, 0},                      /* overlong */
		{0xb1, 0, 0, 0, 0},                                       /* overlong kind */
		{TRACE_lock_acquire, 0, 0xff, 0xff, 0xff, 0xff, 0x1f, 0}, /* id of 33 bits */
		{TRACE_thread_end, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			1}, /* time */
	};
	for (size_t i = 0; i < BASE_COUNT(bad); i++)
		assert_null(trace_decode(bad[i], bad[i] + sizeof bad[i], &s, &r));
}

static void table_is_sound(void **state)
{
	unsigned nr;
	const struct trace_kind_desc *k = trace_kind_table(&nr);

	(void)state;
	assert_true(sizeof(struct trace_record) <= 64); /* a cache line */
	for (unsigned i = 0; i < nr; i++) {
		assert_ptr_equal(trace_kind_find(k[i].kind), &k[i]);
		assert_true(!i || k[i].kind > k[i - 1].kind);
		assert_true(k[i].since >= 1 && k[i].since <= TRACE_VERSION);
		assert_true(*k[i].doc);
	}
	assert_null(trace_kind_find(0));
	assert_null(trace_kind_find(65535));
	static const struct {
		unsigned kind;
		const char *cost;
	} row[] = {{TRACE_lock_acquire, TRACE_COST_LOCKS}, {TRACE_lock_return, TRACE_COST_LOCKS},
		{TRACE_cond_wait, TRACE_COST_RECORDS}, {TRACE_io_begin, TRACE_COST_CALLS},
		{TRACE_message_received, TRACE_COST_CALLS}, {TRACE_note_state, TRACE_COST_RECORDS},
		{TRACE_process_begin, TRACE_COST_RECORDS}, {TRACE_sample, NULL},
		{TRACE_string, NULL}, {TRACE_call_begin, NULL}, {65535, NULL}};
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		const char *cost = trace_cost_of_kind(row[i].kind);
		assert_true(cost ? row[i].cost && !strcmp(cost, row[i].cost) : !row[i].cost);
	}
	for (int d = 0; d < TRACE_DIAG_NR; d++) {
		const char *sentence = trace_diag_describe((enum trace_diag)d)->sentence;
		struct base_str one = {0}, many = {0};

		base_str_add_counted(&one, sentence, 1);
		base_str_add_counted(&many, sentence, 2);
		assert_true(one.length && many.length);
		assert_null(strpbrk(base_str_text(&one), "{|}%"));
		assert_null(strpbrk(base_str_text(&many), "{|}%"));
		/* What is counted has a singular: "1 waits" is none. */
		const char *place = strstr(sentence, "%s");
		if (place && d != TRACE_DIAG_kernel_gap_ms && d != TRACE_DIAG_stolen_ms &&
			d != TRACE_DIAG_clock_error_ns && d != TRACE_DIAG_clock_tick_ns &&
			d != TRACE_DIAG_asked_to_end) /* a number of its own kind */
			assert_non_null(strchr(place, '{'));
		base_str_fini(&one);
		base_str_fini(&many);
	}
}

/* ---- files ----------------------------------------------------------------------------------- */

struct sample {
	uint32_t nr_streams;
	size_t nr_records;
	uint64_t delta_ns;     /* largest step within a stream */
	unsigned flush_one_in; /* 0: never */
};

/* Random records of all kinds, some as forms; *ret gets them as written. */
static void write_sample(
	const char *path, const struct sample *sample, uint64_t seed, struct record_list *ret)
{
	struct base_err err = {0};
	struct trace_writer *w;
	unsigned nr_kinds;
	const struct trace_kind_desc *k = trace_kind_table(&nr_kinds);
	uint64_t *now_ns = calloc(sample->nr_streams + 1, sizeof *now_ns);

	OK(trace_writer_open(path, &test_info, &w, &err));
	for (size_t i = 0; i < sample->nr_records; i++) {
		struct trace_record r;
		const struct trace_kind_desc *kind = &k[random_below(&seed, nr_kinds)];

		random_fields(&seed, kind, letters, sizeof letters - 1, &r);
		if (kind->kind >= 32) {
			r.stream = 1 + (uint32_t)random_below(&seed, sample->nr_streams);
			r.time_ns = now_ns[r.stream] += random_below(&seed, sample->delta_ns + 1);
		}
		struct trace_form form;
		if (random_below(&seed, 2) && trace_form_make(&form, &r))
			OK(trace_writer_put_form(w, r.stream, r.time_ns, &form, &err));
		else
			OK(trace_writer_put(w, &r, &err));
		record_list_add(ret, &r);
		if (sample->flush_one_in && !random_below(&seed, sample->flush_one_in))
			OK(trace_writer_flush(w, &err));
	}
	assert_int_equal(trace_writer_records(w), sample->nr_records);
	OK(trace_writer_close(w, &err));
	free(now_ns);
}

/* The naive reference: a stable sort by time and stream. Definitions have time 0 and stream 0. */
static int compare_records(const void *a, const void *b, void *base)
{
	const struct trace_record *r = *(const struct trace_record *const *)a;
	const struct trace_record *s = *(const struct trace_record *const *)b;

	(void)base;
	if (r->time_ns != s->time_ns && r->stream && s->stream)
		return r->time_ns < s->time_ns ? -1 : 1;
	if (!r->stream != !s->stream)
		return r->stream ? 1 : -1;
	if (r->stream != s->stream)
		return r->stream < s->stream ? -1 : 1;
	return r < s ? -1 : r > s;
}

static void sort_naively(struct record_list *l)
{
	const struct trace_record **order = malloc((l->nr + 1) * sizeof *order);
	struct trace_record *sorted = malloc((l->nr + 1) * sizeof *sorted);

	for (size_t i = 0; i < l->nr; i++)
		order[i] = &l->record[i];
	qsort_r(order, l->nr, sizeof *order, compare_records, NULL);
	for (size_t i = 0; i < l->nr; i++)
		sorted[i] = *order[i];
	free(order);
	free(l->record);
	l->record = sorted;
	l->capacity = l->nr + 1;
}

static void assert_healthy(const struct trace_reader *r)
{
	const struct trace_health *h = trace_reader_health(r);

	for (int d = 0; d < TRACE_DIAG_NR; d++) {
		/* Random definitions have random ids. */
		if (d != TRACE_DIAG_ids_unknown)
			assert_int_equal(h->count[d], 0);
	}
	assert_int_equal(h->readable_bytes, h->file_bytes);
}

static bool in_window(const struct trace_record *r, const struct trace_reader_options *o)
{
	return !r->stream ? o->with_definitions
			  : r->time_ns >= o->from_ns && (!o->to_ns || r->time_ns < o->to_ns);
}

static void check_reading(
	const char *path, const struct record_list *sorted, const struct trace_reader_options *opts)
{
	struct base_err err = {0};
	struct trace_reader *r;
	struct record_list got = {0};

	OK(trace_reader_open(path, opts, &r, &err));
	assert_int_equal(read_all(r, &got, &err), BASE_END);
	assert_healthy(r);
	for (int pass = 0;; pass++) {
		size_t at = 0;
		for (size_t i = 0; i < sorted->nr; i++) {
			if (!in_window(&sorted->record[i], opts))
				continue;
			assert_true(at < got.nr);
			assert_true(records_equal(&sorted->record[i], &got.record[at++]));
		}
		assert_int_equal(at, got.nr);
		record_list_fini(&got);
		if (pass)
			break;
		OK(trace_reader_rewind(r, &err));
		assert_int_equal(read_all(r, &got, &err), BASE_END);
	}
	trace_reader_close(r);
}

static void check_sample(const struct sample *sample, uint64_t seed)
{
	char *path = temporary_path();
	struct record_list list = {0};
	struct trace_reader_options opts = {.size = sizeof opts, .with_definitions = true};

	write_sample(path, sample, seed, &list);
	sort_naively(&list);
	check_reading(path, &list, &opts);
	opts.with_definitions = false;
	check_reading(path, &list, &opts);
	for (int i = 0; i < 12; i++) {
		uint64_t end_ns = list.record[list.nr - 1].time_ns;
		opts.from_ns = random_below(&seed, end_ns + 2);
		opts.to_ns = i & 1 ? opts.from_ns + random_below(&seed, end_ns / 4 + 2) : 0;
		opts.with_definitions = i & 2;
		check_reading(path, &list, &opts);
	}
	unlink(path);
	free(path);
	record_list_fini(&list);
}

static void merge_equals_sort(void **state)
{
	static const struct sample samples[] = {
		{.nr_streams = 1, .nr_records = 20000, .delta_ns = 100},
		{.nr_streams = 2, .nr_records = 20000, .delta_ns = 1},
		{.nr_streams = 4, .nr_records = 200000, .delta_ns = 1000},
		{.nr_streams = 7, .nr_records = 20000, .delta_ns = 3, .flush_one_in = 500},
		{.nr_streams = 16, .nr_records = 20000, .delta_ns = 0},
		{.nr_streams = 17, .nr_records = 20000, .delta_ns = 2},
		{.nr_streams = 3, .nr_records = 150, .delta_ns = UINT64_C(1) << 57}, /* late */
		{.nr_streams = 40, .nr_records = 50000, .delta_ns = 50, .flush_one_in = 5000},
	};

	(void)state;
	for (size_t i = 0; i < BASE_COUNT(samples); i++)
		check_sample(&samples[i], 100 + i);
}

static void three_thousand_streams(void **state)
{
	const struct sample many = {.nr_streams = 3000, .nr_records = 300000, .delta_ns = 1000};

	(void)state;
	check_sample(&many, 7);
}

static void header_is_kept(void **state)
{
	char *path = temporary_path();
	struct base_err err = {0};
	struct trace_writer *w;
	struct trace_reader *r;

	(void)state;
	OK(trace_writer_open(path, &test_info, &w, &err));
	trace_writer_count(w, TRACE_DIAG_records_lost, 5);
	trace_writer_count(w, TRACE_DIAG_records_lost, 2);
	trace_writer_count(w, TRACE_DIAG_perf_lost, UINT64_C(1) << 60);
	OK(trace_writer_close(w, &err));
	OK(trace_reader_open(path, NULL, &r, &err));
	const struct trace_info *info = trace_reader_info(r);
	assert_string_equal(info->host, test_info.host);
	assert_string_equal(info->command, test_info.command);
	assert_string_equal(info->tool, test_info.tool);
	assert_int_equal(info->origin_mono_ns, test_info.origin_mono_ns);
	assert_int_equal(info->origin_unix_ns, test_info.origin_unix_ns);
	assert_int_equal(info->tick_hz, test_info.tick_hz);
	assert_int_equal(info->nr_processors, test_info.nr_processors);
	assert_int_equal(info->flags, test_info.flags);
	const struct trace_health *h = trace_reader_health(r);
	assert_int_equal(h->count[TRACE_DIAG_records_lost], 7);
	assert_int_equal(h->count[TRACE_DIAG_perf_lost], UINT64_C(1) << 60);
	assert_int_equal(h->count[TRACE_DIAG_disk_full], 0);
	struct trace_batch batch;
	assert_int_equal(trace_reader_next(r, &batch, &err), BASE_END);
	assert_int_equal(batch.nr, 0);
	trace_reader_close(r);
	unlink(path);
	free(path);
}

static void writer_refuses(void **state)
{
	char *path = temporary_path();
	struct base_err err = {0};
	struct trace_writer *w;
	struct trace_reader *r;
	struct record_list got = {0};

	(void)state;
	OK(trace_writer_open(path, &test_info, &w, &err));
	struct trace_record a = {.kind = TRACE_thread_end, .time_ns = 10};
	assert_int_equal(trace_writer_put(w, &a, &err), BASE_ERR_USAGE);
	a.stream = TRACE_STREAM_MAX;
	assert_int_equal(trace_writer_put(w, &a, &err), BASE_ERR_LIMIT);
	a.stream = 1;
	a.kind = 127;
	assert_int_equal(trace_writer_put(w, &a, &err), BASE_ERR_USAGE);
	a.kind = 31;
	assert_int_equal(trace_writer_put(w, &a, &err), BASE_ERR_USAGE);
	a.kind = TRACE_thread_end;
	OK(trace_writer_put(w, &a, &err));
	a.time_ns = 9;
	OK(trace_writer_put(w, &a, &err));
	OK(trace_writer_flush(w, &err));
	struct trace_form form;
	assert_true(trace_form_make(&form, &a));
	OK(trace_writer_put_form(w, 1, 8, &form, &err));
	assert_int_equal(
		trace_writer_put_form(w, TRACE_STREAM_MAX, 8, &form, &err), BASE_ERR_LIMIT);
	a.kind = TRACE_site;
	assert_false(trace_form_make(&form, &a));
	OK(trace_writer_close(w, &err));

	OK(trace_reader_open(path, NULL, &r, &err));
	assert_int_equal(read_all(r, &got, &err), BASE_END);
	assert_int_equal(got.nr, 3);
	for (size_t i = 0; i < got.nr; i++)
		assert_int_equal(got.record[i].time_ns, 10);
	assert_int_equal(trace_reader_health(r)->count[TRACE_DIAG_time_raised], 2);
	assert_int_equal(trace_reader_record_count(r), 3);
	assert_int_equal(trace_reader_last_ns(r), 10);
	record_list_fini(&got);
	trace_reader_close(r);
	unlink(path);
	free(path);
}

static void long_texts(void **state)
{
	static const size_t lengths[] = {0, 1, 4000, 260000, 300000, 2000000, 5};
	char *path = temporary_path(), *text = malloc(TRACE_TEXT_MAX);
	struct base_err err = {0};
	struct trace_writer *w;
	struct trace_reader *r;

	(void)state;
	for (size_t i = 0; i < TRACE_TEXT_MAX; i++)
		text[i] = (char)('a' + base_hash_u64(i) % 26);
	OK(trace_writer_open(path, &test_info, &w, &err));
	struct trace_record a = {.kind = TRACE_string};
	for (uint32_t i = 0; i < BASE_COUNT(lengths); i++) {
		a.u.string.string = i + 1;
		a.u.string.text = (struct trace_text){text, (uint32_t)lengths[i]};
		OK(trace_writer_put(w, &a, &err));
	}
	a.u.string.text.length = TRACE_TEXT_MAX;
	assert_int_equal(trace_writer_put(w, &a, &err), BASE_ERR_LIMIT);
	OK(trace_writer_close(w, &err));

	OK(trace_reader_open(path, NULL, &r, &err));
	for (uint32_t i = 0; i < BASE_COUNT(lengths); i++) {
		const char *got = trace_text_of(trace_reader_defs(r), i + 1);
		assert_int_equal(strlen(got), lengths[i]);
		assert_memory_equal(got, text, lengths[i]);
	}
	trace_reader_close(r);
	unlink(path);
	free(path);
	free(text);
}

/* So many that not even a small buffer each stays below the writer's limit. */
static void more_streams_than_buffers(void **state)
{
	enum { STREAMS = 20000, ROUNDS = 40 };
	char *path = temporary_path();
	struct base_err err = {0};
	struct trace_writer *w;
	struct trace_reader *r;
	struct trace_batch batch;
	uint64_t nr = 0;

	(void)state;
	OK(trace_writer_open(path, &test_info, &w, &err));
	for (uint64_t i = 0; i < ROUNDS * STREAMS; i++) {
		struct trace_record a = {
			.kind = TRACE_lock_acquire,
			.stream = 1 + (uint32_t)(i % STREAMS),
			.time_ns = i * 1000,
			.u.lock_acquire = {.object = (uint32_t)(i * 7919), .site = (uint32_t)i},
		};
		OK(trace_writer_put(w, &a, &err));
	}
	OK(trace_writer_close(w, &err));
	OK(trace_reader_open(path, NULL, &r, &err));
	while (trace_reader_next(r, &batch, &err) == BASE_OK) {
		for (size_t i = 0; i < batch.nr; i++, nr++)
			assert_int_equal(batch.record[i].time_ns, nr * 1000);
	}
	assert_int_equal(nr, (uint64_t)ROUNDS * STREAMS);
	assert_healthy(r);
	trace_reader_close(r);
	unlink(path);
	free(path);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static void put_definition(struct trace_writer *w, const struct trace_record *r)
{
	struct base_err err = {0};

	OK(trace_writer_put(w, r, &err));
}

static void define_text(struct trace_writer *w, uint32_t id, const char *text)
{
	struct trace_record r = {
		.kind = TRACE_string,
		.u.string = {.string = id, .text = {text, (uint32_t)strlen(text)}},
	};

	put_definition(w, &r);
}

#define DEFINE(w, kind_, ...)                                                                      \
	put_definition(w, &(struct trace_record){.kind = TRACE_##kind_, .u.kind_ = {__VA_ARGS__}})

static struct trace_reader *open_defined(const char *path)
{
	struct base_err err = {0};
	struct trace_writer *w;
	struct trace_reader *r;

	OK(trace_writer_open(path, &test_info, &w, &err));
	define_text(w, 1, "/usr/bin/prog");
	define_text(w, 2, "main");
	define_text(w, 3, "prog.c");
	define_text(w, 4, "cache \"hot\"\n\xff\xc3\xa9");
	define_text(w, 5, "worker");
	define_text(w, 7, "stage");
	DEFINE(w, process, .process = 1, .pid = 77, .name = 2);
	DEFINE(w, stream, .stream = 2, .process = 1, .tid = 78, .name = 5);
	DEFINE(w, stream, .stream = 3, .process = 1, .tid = 79);
	DEFINE(w, module, .module = 1, .path = 1);
	DEFINE(w, site, .site = 3, .module = 1, .offset = 0x30); /* out of order */
	DEFINE(w, site, .site = 1, .module = 1, .offset = 0x1234);
	DEFINE(w, site, .site = 2, .module = 0, .offset = 0xdeadbeef);
	DEFINE(w, symbol, .site = 1, .function = 2, .file = 3, .line = 42);
	DEFINE(w, symbol, .site = 3, .function = 2, .function_offset = 0x10);
	DEFINE(w, stack, .stack = 1, .site = 1);
	DEFINE(w, stack, .stack = 2, .parent = 1, .site = 2);
	DEFINE(w, stack, .stack = 3, .parent = 3, .site = 2); /* its own parent */
	DEFINE(w, object, .object = 1, .type = TRACE_OBJECT_mutex, .address = 0x404040, .name = 4);
	DEFINE(w, object, .object = 2, .type = TRACE_OBJECT_NR, .address = 0x40);
	DEFINE(w, actor, .actor = 1, .system = 2, .name = 7, .instance = 9);
	DEFINE(w, state, .state = 1, .name = 7, .site = 1);
	DEFINE(w, object, .object = UINT32_MAX); /* refused by readers */
	DEFINE(w, object, .object = 0);
	OK(trace_writer_close(w, &err));
	OK(trace_reader_open(path, NULL, &r, &err));
	return r;
}

static void definitions_are_tables(void **state)
{
	char *path = temporary_path();
	struct trace_reader *r = open_defined(path);
	const struct trace_defs *d = trace_reader_defs(r);

	(void)state;
	assert_int_equal(d->nr_sites, 4);
	assert_int_equal(d->sites[1].offset, 0x1234);
	assert_int_equal(d->symbols[1].line, 42);
	assert_int_equal(d->symbols[2].site, 0);
	assert_int_equal(d->nr_objects, 3);
	assert_int_equal(d->objects[0].address, 0);
	assert_string_equal(trace_text_of(d, 2), "main");
	assert_string_equal(trace_text_of(d, 0), "");
	assert_string_equal(trace_text_of(d, 6), "");
	assert_string_equal(trace_text_of(d, 8), "");
	assert_string_equal(trace_text_of(d, UINT32_MAX), "");
	assert_ptr_equal(trace_def_site(d, UINT32_MAX), &d->sites[0]);
	assert_ptr_equal(trace_def_site(d, 3), &d->sites[3]);
	assert_int_equal(trace_reader_health(r)->count[TRACE_DIAG_ids_unknown], 2);
	trace_reader_close(r);
	unlink(path);
	free(path);
}

/* Of many sites (streams, processes) only a late one may have a name (be something special). */
static void few_of_many_are_described(void **state)
{
	enum { MANY = 10000, SITES = 0, STREAMS, PROCESSES, NOTHING };
	(void)state;
	for (int many = SITES; many <= NOTHING; many++) {
		char *path = temporary_path();
		struct base_err err = {0};
		struct trace_writer *w;
		struct trace_reader *r;
		struct trace_batch batch;
		OK(trace_writer_open(path, &test_info, &w, &err));
		for (uint32_t id = 1; id <= MANY; id++) {
			struct trace_record row[] = {
				[SITES] = {.kind = TRACE_site, .u.site = {.site = id}},
				[STREAMS] = {.kind = TRACE_stream, .u.stream = {.stream = id}},
				[PROCESSES] = {.kind = TRACE_process, .u.process = {.process = id}},
			};
			if (many != NOTHING)
				put_definition(w, &row[many]);
		}
		put_definition(w, &(struct trace_record){.kind = TRACE_symbol,
					  .u.symbol = {.site = MANY, .line = 7}});
		put_definition(w, &(struct trace_record){.kind = TRACE_wait_loop,
					  .u.wait_loop = {.site = MANY, .begin = 7}});
		put_definition(w, &(struct trace_record){.kind = TRACE_context,
					  .u.context = {.stream = MANY, .type = 7}});
		put_definition(w,
			&(struct trace_record){.kind = TRACE_group, .u.group = {.process = MANY}});
		OK(trace_writer_close(w, &err));
		OK(trace_reader_open(path, NULL, &r, &err));
		assert_int_equal(trace_reader_next(r, &batch, &err), BASE_END);
		assert_int_equal(trace_reader_health(r)->count[TRACE_DIAG_ids_unknown],
			many == NOTHING ? 4 : 0);
		const struct trace_defs *d = trace_reader_defs(r);
		if (many != NOTHING) {
			assert_int_equal(d->symbols[MANY].line, 7);
			assert_int_equal(d->wait_loops[MANY].begin, 7);
			assert_int_equal(d->contexts[MANY].type, 7);
			assert_int_equal(d->groups[MANY].process, MANY);
		}
		trace_reader_close(r);
		unlink(path);
		free(path);
	}
}

static void printing(void **state)
{
	static const struct {
		struct trace_record record;
		const char *text, *json;
	} rows[] = {
		{{.kind = TRACE_lock_acquire, .stream = 2, .time_ns = 5, .u.lock_acquire = {1, 1}},
			"5 2:worker lock_acquire object=1(mutex cache "
			"\\\"hot\\\"\\n\\udcff\xc3\xa9) "
			"site=1(main (prog.c:42))",
			"{\"kind\":\"lock_acquire\",\"time_ns\":5,\"stream\":2,\"object\":1,"
			"\"object_"
			"text\":\"mutex cache "
			"\\\"hot\\\"\\n\\udcff\xc3\xa9\",\"site\":1,\"site_text\":"
			"\"main (prog.c:42)\"}"},
		{{.kind = TRACE_lock_release, .stream = 3, .u.lock_release = {2, 3}},
			"0 3:79 lock_release object=2(object 0x40) site=3(main+0x20)",
			"{\"kind\":\"lock_release\",\"time_ns\":0,\"stream\":3,\"object\":2,"
			"\"object_"
			"text\":\"object 0x40\",\"site\":3,\"site_text\":\"main+0x20\"}"},
		{{.kind = TRACE_sample, .stream = 9, .time_ns = UINT64_MAX, .u.sample = {2, 2}},
			"18446744073709551615 9: sample site=2(0xdeadbeef) stack=2(0xdeadbeef < "
			"main "
			"(prog.c:42))",
			"{\"kind\":\"sample\",\"time_ns\":18446744073709551615,\"stream\":9,"
			"\"site\":2,"
			"\"site_text\":\"0xdeadbeef\",\"stack\":2,\"stack_text\":\"0xdeadbeef < "
			"main "
			"(prog.c:42)\"}"},
		{{.kind = TRACE_lock_acquire, .stream = 2, .u.lock_acquire = {99, UINT32_MAX}},
			"0 2:worker lock_acquire object=99 site=4294967295",
			"{\"kind\":\"lock_acquire\",\"time_ns\":0,\"stream\":2,\"object\":99,"
			"\"site\":"
			"4294967295}"},
		{{.kind = TRACE_process_end, .stream = 2, .u.process_end = {INT64_MIN}},
			"0 2:worker process_end status=-9223372036854775808",
			"{\"kind\":\"process_end\",\"time_ns\":0,\"stream\":2,\"status\":-"
			"9223372036854775808}"},
		{{.kind = TRACE_note_begin, .stream = 2, .u.note_begin = {.actor = 1}},
			"0 2:worker note_begin actor=1(main/stage#9) flags=0",
			"{\"kind\":\"note_begin\",\"time_ns\":0,\"stream\":2,\"actor\":1,\"actor_"
			"text\":"
			"\"main/stage#9\",\"flags\":0}"},
		{{.kind = TRACE_string, .u.string = {3, {"a\\\x01\x7f", 4}}},
			"string string=3 text=\"a\\\\\\u0001\\u007f\"",
			"{\"kind\":\"string\",\"string\":3,\"text\":\"a\\\\\\u0001\\u007f\"}"},
		{{.kind = TRACE_thread_end, .stream = 2}, "0 2:worker thread_end",
			"{\"kind\":\"thread_end\",\"time_ns\":0,\"stream\":2}"},
	};
	char *path = temporary_path();
	struct trace_reader *r = open_defined(path);
	const struct trace_defs *d = trace_reader_defs(r);
	struct base_str s = {0};

	(void)state;
	for (size_t i = 0; i < BASE_COUNT(rows); i++) {
		base_str_reset(&s);
		trace_print_text(&s, d, &rows[i].record);
		assert_string_equal(base_str_text(&s), rows[i].text);
		base_str_reset(&s);
		trace_print_json(&s, d, &rows[i].record);
		assert_string_equal(base_str_text(&s), rows[i].json);
	}
	/* A path that is its own caller ends. */
	struct trace_record cyclic = {.kind = TRACE_sample, .stream = 2, .u.sample = {1, 3}};
	base_str_reset(&s);
	trace_print_text(&s, d, &cyclic);
	assert_true(s.length < 10000);
	base_str_fini(&s);
	trace_reader_close(r);
	unlink(path);
	free(path);
}

/* Whatever the ids are, printing is safe. */
static void printing_random_records(void **state)
{
	char *path = temporary_path();
	struct trace_reader *r = open_defined(path);
	struct base_str s = {0};
	uint64_t seed = 5;
	unsigned nr_kinds;
	const struct trace_kind_desc *k = trace_kind_table(&nr_kinds);

	(void)state;
	for (int n = 0; n < 20000; n++) {
		struct trace_record a;
		random_fields(&seed, &k[random_below(&seed, nr_kinds)], letters, 10, &a);
		a.stream = a.kind < 32 ? 0 : (uint32_t)random_wide(&seed);
		base_str_reset(&s);
		trace_print_text(&s, trace_reader_defs(r), &a);
		trace_print_json(&s, trace_reader_defs(r), &a);
		assert_false(s.failed);
	}
	base_str_fini(&s);
	trace_reader_close(r);
	unlink(path);
	free(path);
}

/* ---- versions and schema --------------------------------------------------------------------- */

static uint8_t *small_trace(size_t *ret_nr)
{
	char *path = temporary_path();
	struct record_list list = {0};
	const struct sample few = {.nr_streams = 2, .nr_records = 40, .delta_ns = 100};

	write_sample(path, &few, 3, &list);
	uint8_t *bytes = read_file(path, ret_nr);
	record_list_fini(&list);
	unlink(path);
	free(path);
	return bytes;
}

static void newer_version_is_refused(void **state)
{
	size_t nr;
	uint8_t *bytes = small_trace(&nr);
	struct base_err err = {0};
	struct trace_reader *r;

	(void)state;
	trace_put_u32(bytes + 8, 7);
	assert_int_equal(trace_reader_open_memory(bytes, nr, NULL, &r, &err), BASE_ERR_VERSION);
	assert_null(r);
	assert_non_null(strstr(err.cause[0], "version 7"));
	assert_non_null(strstr(err.cause[0], "version 2"));
	free(bytes);
}

static void unknown_kinds_are_skipped(void **state)
{
	size_t nr, longer_nr;
	uint8_t *bytes = small_trace(&nr);
	struct base_err err = {0};
	struct record_list before = {0}, after = {0};
	struct trace_reader *r;

	(void)state;
	OK(trace_reader_open_memory(bytes, nr, NULL, &r, &err));
	uint64_t time_ns = trace_reader_last_ns(r) + 5;
	assert_int_equal(read_all(r, &before, &err), BASE_END);
	trace_reader_close(r);
	uint8_t *longer =
		add_future_kind(bytes, nr, footer_offset_of(bytes, nr), time_ns, &longer_nr);
	OK(trace_reader_open_memory(longer, longer_nr, NULL, &r, &err));
	assert_int_equal(read_all(r, &after, &err), BASE_END);
	assert_int_equal(trace_reader_health(r)->count[TRACE_DIAG_kinds_unknown], 2);
	assert_int_equal(trace_reader_health(r)->count[TRACE_DIAG_chunks_damaged], 0);
	assert_int_equal(after.nr, before.nr + 1);
	for (size_t i = 0; i < before.nr; i++)
		assert_true(records_equal(&before.record[i], &after.record[i]));
	const struct trace_record *last = &after.record[before.nr];
	assert_int_equal(last->kind, TRACE_lock_acquire);
	assert_int_equal(last->time_ns, time_ns + 10);
	assert_int_equal(last->u.lock_acquire.object, 1);
	assert_int_equal(last->u.lock_acquire.site, 2);
	trace_reader_close(r);
	record_list_fini(&before);
	record_list_fini(&after);
	free(longer);
	free(bytes);
}

/* A known kind with other fields would be read wrongly: refused. */
static void changed_fields_are_refused(void **state)
{
	static const uint8_t acquire[] = {TRACE_lock_acquire, 12, 'l', 'o', 'c', 'k', '_'};
	size_t nr;
	uint8_t *bytes = small_trace(&nr);
	uint32_t header_bytes = trace_get_u32(bytes + 12);
	uint8_t *row = memmem(bytes, header_bytes, acquire, sizeof acquire);
	struct base_err err = {0};
	struct trace_reader *r;

	(void)state;
	assert_non_null(row);
	uint8_t *type = row + 2 + 12 + 1; /* of the first field */
	assert_int_equal(*type, TRACE_FIELD_ID);
	*type = TRACE_FIELD_S64;
	trace_put_u64(bytes + header_bytes - 8, XXH64(bytes, header_bytes - 8, 0));
	assert_int_equal(trace_reader_open_memory(bytes, nr, NULL, &r, &err), BASE_ERR_CORRUPT);
	assert_non_null(strstr(err.cause[0], "lock_acquire"));
	free(bytes);
}

static void other_files_are_refused(void **state)
{
	struct base_err err = {0};
	struct trace_reader *r;

	(void)state;
	assert_int_equal(trace_reader_open_memory("", 0, NULL, &r, &err), BASE_ERR_FORMAT);
	assert_int_equal(
		trace_reader_open_memory("#!/bin/sh\n", 10, NULL, &r, &err), BASE_ERR_FORMAT);
	assert_int_equal(trace_reader_open_memory("long", 4, NULL, &r, &err), BASE_ERR_TRUNCATED);
	assert_int_equal(trace_reader_open("/nonexistent/x", NULL, &r, &err), BASE_ERR_ENV);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_int_equal(trace_reader_open("/", NULL, &r, &err), BASE_ERR_FORMAT);
	trace_reader_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_sound),
		cmocka_unit_test(codec_round_trip),
		cmocka_unit_test(codec_is_canonical),
		cmocka_unit_test(codec_refuses),
		cmocka_unit_test(merge_equals_sort),
		cmocka_unit_test(three_thousand_streams),
		cmocka_unit_test(more_streams_than_buffers),
		cmocka_unit_test(header_is_kept),
		cmocka_unit_test(writer_refuses),
		cmocka_unit_test(long_texts),
		cmocka_unit_test(definitions_are_tables),
		cmocka_unit_test(few_of_many_are_described),
		cmocka_unit_test(printing),
		cmocka_unit_test(printing_random_records),
		cmocka_unit_test(newer_version_is_refused),
		cmocka_unit_test(unknown_kinds_are_skipped),
		cmocka_unit_test(changed_fields_are_refused),
		cmocka_unit_test(other_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

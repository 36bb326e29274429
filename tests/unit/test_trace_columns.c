/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace_columns.c - records in columns: known bytes, the way there and back, damage. */
#include "trace/columns.h"
#include "trace/trace.h"
#include "test.h"
#include "trace_file.h"
#include "trace_random.h"

#include <xxhash.h>

#define OK(call) assert_int_equal((call), BASE_OK)

enum { UNKNOWN = 1000 }; /* a kind that the schema of these files describes: an ID and a TEXT */

/* ---- files ----------------------------------------------------------------------------------- */

struct bytes {
	uint8_t *at;
	size_t nr;
};

static void add(struct bytes *b, const void *more, size_t nr)
{
	b->at = realloc(b->at, b->nr + nr + 1);
	if (nr)
		memcpy(b->at + b->nr, more, nr);
	b->nr += nr;
}

/* A file's header, with UNKNOWN in its schema. */
static void add_header(struct bytes *b)
{
	static const uint8_t row[] = {0xe8, 0x07, 3, 'n', 'e', 'w', 2, TRACE_FIELD_ID, 1, 'a', 0,
		TRACE_FIELD_TEXT, 1, 'b', 0};
	struct base_str header = {0};
	OK(trace_header_encode(&header, &test_info, NULL));
	uint8_t *old = (uint8_t *)header.buf;
	uint32_t schema_at = 64;
	for (int i = 0; i < 3; i++)
		schema_at += trace_get_u32(old + 48 + 4 * i);
	/* the number of kinds is a varint of two bytes */
	unsigned nr_kinds = ((old[schema_at] & 0x7f) | (unsigned)old[schema_at + 1] << 7) + 1;
	assert_true(nr_kinds > 128);
	old[schema_at] = (uint8_t)(nr_kinds | 0x80);
	old[schema_at + 1] = (uint8_t)(nr_kinds >> 7);
	add(b, old, header.length - 8);
	add(b, row, sizeof row);
	trace_put_u32(b->at + 12, (uint32_t)b->nr + 8);
	trace_put_u32(b->at + 60, trace_get_u32(b->at + 60) + (uint32_t)sizeof row);
	uint8_t hash[8];
	trace_put_u64(hash, XXH64(b->at, b->nr, 0));
	add(b, hash, sizeof hash);
	base_str_fini(&header);
}

/* A file of one chunk in columns, not compressed, of times 1000 to last_ns, without a footer. */
static struct bytes file_of(const void *payload, size_t nr, uint32_t nr_records, uint64_t last_ns)
{
	struct bytes b = {0};
	uint8_t head[TRACE_CHUNK_HEADER_BYTES];
	struct trace_chunk_header h = {
		.stream = 1,
		.nr_records = nr_records,
		.content = TRACE_CONTENT_COLUMNS,
		.first_ns = 1000,
		.last_ns = last_ns,
		.raw_bytes = (uint32_t)nr,
		.stored_bytes = (uint32_t)nr,
		.payload_hash = XXH64(payload, nr, 0),
	};
	add_header(&b);
	trace_chunk_header_encode(head, &h);
	add(&b, head, sizeof head);
	add(&b, payload, nr);
	return b;
}

static struct trace_health read_list(const struct bytes *b, struct record_list *ret)
{
	struct base_err err = {0};
	struct trace_reader *r;
	OK(trace_reader_open_memory(b->at, b->nr, NULL, &r, &err));
	assert_int_equal(read_all(r, ret, &err), BASE_END);
	struct trace_health health = *trace_reader_health(r);
	trace_reader_close(r);
	return health;
}

/* ---- known bytes ----------------------------------------------------------------------------- */

/* lock_acquire (49) of 5 at 1000, released (50) at 1200, acquired at 1201; sites 7, 300, 7. */
static const uint8_t rows[] = {49, 0, 5, 7, 50, 0xc8, 0x01, 5, 0xac, 0x02, 49, 1, 5, 7};
static const uint8_t in_columns[] = {2, /* kinds */
	49, 2, 2, 2, 2,                 /* records; bytes of times, objects, sites */
	50, 1, 2, 1, 2,                 /* */
	0, 1, 0,                        /* acquire, release, acquire */
	0, 1, 5, 5, 7, 7,               /* acquires */
	0xc8, 0x01, 5, 0xac, 0x02};     /* releases */

static void known_bytes(void **state)
{
	struct trace_splitter *s = trace_splitter_new();
	const struct trace_column_part *part;
	(void)state;

	for (int again = 0; again < 2; again++) {
		struct bytes got = {0};
		size_t nr = trace_columns_split(s, rows, sizeof rows, &part);
		assert_int_equal(nr, 2 + 6);
		for (size_t i = 0; i < nr; i++)
			add(&got, part[i].bytes, part[i].nr);
		assert_int_equal(got.nr, sizeof in_columns);
		assert_memory_equal(got.at, in_columns, got.nr);
		free(got.at);
	}
	trace_splitter_free(s);

	struct bytes b = file_of(in_columns, sizeof in_columns, 3, 1201);
	struct record_list list = {0};
	struct trace_health health = read_list(&b, &list);
	assert_int_equal(health.readable_bytes, b.nr);
	assert_int_equal(list.nr, 3);
	assert_int_equal(list.record[0].kind, TRACE_lock_acquire);
	assert_int_equal(list.record[0].time_ns, 1000);
	assert_int_equal(list.record[1].kind, TRACE_lock_release);
	assert_int_equal(list.record[1].time_ns, 1200);
	assert_int_equal(list.record[1].u.lock_release.object, 5);
	assert_int_equal(list.record[1].u.lock_release.site, 300);
	assert_int_equal(list.record[2].time_ns, 1201);
	assert_int_equal(list.record[2].u.lock_acquire.site, 7);
	record_list_fini(&list);
	free(b.at);
}

/* A kind that only the schema knows: its records are passed over, their times count. */
static void unknown_kinds_are_skipped(void **state)
{
	static const uint8_t payload[] = {2, 0xe8, 0x07, 2, 2, 3, 5, /* 1000: two records */
		49, 1, 1, 1, 1, 0, 1, 0,                             /* */
		0, 20, 1, 0x80, 0x01, 2, 'h', 'i', 1, 'x', 10, 3, 4};
	struct bytes b = file_of(payload, sizeof payload, 3, 1030);
	struct record_list list = {0};
	struct trace_health health = read_list(&b, &list);

	(void)state;
	assert_int_equal(health.count[TRACE_DIAG_chunks_damaged], 0);
	assert_int_equal(health.count[TRACE_DIAG_kinds_unknown], 2);
	assert_int_equal(list.nr, 1);
	assert_int_equal(list.record[0].time_ns, 1010);
	assert_int_equal(list.record[0].u.lock_acquire.object, 3);
	assert_int_equal(list.record[0].u.lock_acquire.site, 4);
	record_list_fini(&list);
	free(b.at);
}

/* ---- what is not right ----------------------------------------------------------------------- */

/* Each change of one byte, and what is left of the chunk. */
static void wrong_heads_are_damage(void **state)
{
	static const struct {
		uint8_t at, byte;
		size_t nr_left;
	} change[] = {
		{0, 0, 0},     /* no kinds */
		{0, 1, 0},     /* fewer than there are */
		{1, 50, 0},    /* a kind twice */
		{1, 1, 0},     /* a definition */
		{1, 127, 0},   /* a kind that nobody knows */
		{2, 1, 0},     /* more in the columns than records of it */
		{2, 3, 0},     /* fewer */
		{3, 3, 0},     /* a longer column than there are bytes */
		{8, 1, 0},     /* a column that ends within a number */
		{11, 1, 0},    /* the first record's time is not the chunk's */
		{11, 2, 0},    /* its kind is not there */
		{12, 2, 1},    /* nor is the second one's */
		{12, 0, 2},    /* more records of a kind than there are */
		{14, 1, 0},    /* the first time is not 0 */
		{20, 0xc9, 2}, /* the chunk's last time is passed */
		{21, 0x00, 1}, /* a number that is longer than needed */
		{24, 0x80, 0}, /* and one that has no end */
		{23, 0x2c, 0}, /* two numbers instead of one */
		{15, 0, 3},    /* the last time is not the chunk's */
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(change); i++) {
		uint8_t payload[sizeof in_columns];
		memcpy(payload, in_columns, sizeof payload);
		payload[change[i].at] = change[i].byte;
		struct bytes b = file_of(payload, sizeof payload, 3, 1201);
		struct record_list list = {0};
		struct trace_health health = read_list(&b, &list);
		if (health.count[TRACE_DIAG_chunks_damaged] != 1 || list.nr != change[i].nr_left)
			fail_msg("change %zu: %llu damaged, %zu left", i,
				(unsigned long long)health.count[TRACE_DIAG_chunks_damaged],
				list.nr);
		record_list_fini(&list);
		free(b.at);
	}
	/* One record more or fewer than the header says; a byte more or fewer. */
	for (uint32_t nr_records = 2; nr_records <= 4; nr_records += 2) {
		struct bytes b = file_of(in_columns, sizeof in_columns, nr_records, 1201);
		struct record_list list = {0};
		assert_int_equal(read_list(&b, &list).count[TRACE_DIAG_chunks_damaged], 1);
		assert_int_equal(list.nr, 0);
		free(b.at);
	}
	for (size_t nr = 3; nr < sizeof in_columns; nr++) {
		struct bytes b = file_of(in_columns, nr, 3, 1201);
		struct record_list list = {0};
		assert_int_equal(read_list(&b, &list).count[TRACE_DIAG_chunks_damaged], 1);
		assert_int_equal(list.nr, 0);
		free(b.at);
	}
}

/* ---- any records ----------------------------------------------------------------------------- */

/* Records of all kinds, or of some, as the writer's buffer has them. */
static struct bytes random_rows(uint64_t *seed, struct record_list *ret)
{
	struct bytes b = {0};
	unsigned nr_kinds;
	const struct trace_kind_desc *k = trace_kind_table(&nr_kinds);
	struct trace_codec_state state = {.last_ns = 1000};
	uint64_t nr_wanted = 1 + random_below(seed, 300), some = 1 + random_below(seed, nr_kinds);

	while (ret->nr < nr_wanted) {
		struct trace_record r;
		uint8_t one[TRACE_RECORD_BYTES_MAX];
		random_fields(seed, &k[nr_kinds - 1 - random_below(seed, some)], "", 0, &r);
		if (r.kind < TRACE_FIRST_DATA_KIND) {
			some = nr_kinds / 2;
			continue;
		}
		r.stream = 1;
		r.time_ns = state.last_ns;
		if (ret->nr)
			r.time_ns += random_below(seed, 2) ? random_below(seed, 200)
							   : random_wide(seed) >> 20;
		add(&b, one, (size_t)(trace_encode_roomy(one, &state, &r) - one));
		record_list_add(ret, &r);
	}
	return b;
}

static struct bytes split(struct trace_splitter *s, const struct bytes *from)
{
	const struct trace_column_part *part;
	struct bytes b = {0};
	size_t nr = trace_columns_split(s, from->at, from->nr, &part);
	for (size_t i = 0; i < nr; i++)
		add(&b, part[i].bytes, part[i].nr);
	return b;
}

static void there_and_back(void **state)
{
	struct trace_splitter *s = trace_splitter_new();
	uint64_t seed = 3;

	(void)state;
	for (int n = 0; n < 500; n++) {
		struct record_list put = {0}, got = {0};
		struct bytes from = random_rows(&seed, &put), columns = split(s, &from);
		struct bytes b = file_of(
			columns.at, columns.nr, (uint32_t)put.nr, put.record[put.nr - 1].time_ns);
		assert_int_equal(read_list(&b, &got).readable_bytes, b.nr);
		assert_int_equal(got.nr, put.nr);
		for (size_t i = 0; i < put.nr; i++)
			assert_true(records_equal(&put.record[i], &got.record[i]));
		record_list_fini(&put);
		record_list_fini(&got);
		free(from.at);
		free(columns.at);
		free(b.at);
	}
	trace_splitter_free(s);
}

/* Any bytes changed under right hashes: less is read, in order, or something else; no crash. */
static void forged_columns(void **state)
{
	struct trace_splitter *s = trace_splitter_new();
	uint64_t seed = 4;

	(void)state;
	for (int n = 0; n < 5000; n++) {
		struct record_list put = {0}, got = {0};
		struct bytes from = random_rows(&seed, &put), columns = split(s, &from);
		size_t reach = random_below(&seed, 2) && columns.nr > 40 ? 40 : columns.nr;
		for (uint64_t i = 1 + random_below(&seed, 4); i; i--)
			columns.at[random_below(&seed, reach)] = (uint8_t)random_u64(&seed);
		struct bytes b = file_of(
			columns.at, columns.nr, (uint32_t)put.nr, put.record[put.nr - 1].time_ns);
		(void)read_list(&b, &got);
		for (size_t i = 1; i < got.nr; i++)
			assert_true(got.record[i].time_ns >= got.record[i - 1].time_ns);
		assert_true(got.nr <= put.nr);
		record_list_fini(&put);
		record_list_fini(&got);
		free(from.at);
		free(columns.at);
		free(b.at);
	}
	trace_splitter_free(s);
}

/* ---- the writer ------------------------------------------------------------------------------ */

/* A long chunk of records is written in columns unless it is to be plain; a short one is not. */
static void writer_uses_columns(void **state)
{
	(void)state;
	for (int way = 0; way < 3; way++) { /* long, plain, short */
		char *path = temporary_path();
		struct trace_writer *w;
		size_t nr, nr_in_columns = 0;
		struct record_list got = {0};
		uint64_t nr_records = way == 2 ? 100 : 200000;

		OK(trace_writer_open(path, &test_info, &w, NULL));
		if (way == 1)
			trace_writer_set_plain(w);
		for (uint64_t i = 0; i < nr_records; i++) {
			struct trace_record r = {.time_ns = i * 300,
				.stream = 1,
				.kind = i % 2 ? TRACE_lock_release : TRACE_lock_acquire};
			r.u.lock_acquire = (struct trace_lock_acquire){.object = (uint32_t)i / 2};
			OK(trace_writer_put(w, &r, NULL));
		}
		OK(trace_writer_close(w, NULL));
		uint8_t *bytes = read_file(path, &nr);
		struct trace_chunk_header h;
		for (size_t at = trace_get_u32(bytes + 12);
			trace_chunk_header_decode(bytes + at, &h);
			at += TRACE_CHUNK_HEADER_BYTES + h.stored_bytes)
			nr_in_columns += h.content == TRACE_CONTENT_COLUMNS;
		assert_true(way ? nr_in_columns == 0 : nr_in_columns > 1);
		struct bytes b = {bytes, nr};
		assert_int_equal(read_list(&b, &got).readable_bytes, nr);
		assert_int_equal(got.nr, nr_records);
		for (uint64_t i = 0; i < nr_records; i++) {
			assert_int_equal(got.record[i].time_ns, i * 300);
			assert_int_equal(got.record[i].u.lock_release.object, i / 2);
		}
		record_list_fini(&got);
		free(bytes);
		unlink(path);
		free(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_bytes),
		cmocka_unit_test(unknown_kinds_are_skipped),
		cmocka_unit_test(wrong_heads_are_damage),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(forged_columns),
		cmocka_unit_test(writer_uses_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

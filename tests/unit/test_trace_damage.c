/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_trace_damage.c - files that were cut, flipped, forged; machines without memory or space. The
 * law: a reader gives what was written, in order, or less, and then says so.
 */
#include "trace/trace.h"
#include "trace/layout.h"
#include "test.h"
#include "trace_file.h"
#include "trace_future.h"
#include "trace_random.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define OK(call) assert_int_equal((call), BASE_OK)

static struct trace_reader_options all = {.size = sizeof all, .with_definitions = true};

static int start_ahead(void **unused)
{
	(void)unused;
	all.ahead = TRACE_AHEAD_ALWAYS;
	return 0;
}

static int end_ahead(void **unused)
{
	(void)unused;
	all.ahead = TRACE_AHEAD_AUTO;
	return 0;
}

/* Two data streams, definitions before and between, some chunks each. */
static enum base_status put_some(
	struct trace_writer *w, unsigned nr_rounds, uint64_t seed, struct base_err *err)
{
	unsigned nr_kinds;
	const struct trace_kind_desc *k = trace_kind_table(&nr_kinds);
	uint64_t now_ns[3] = {0};
	enum base_status status = BASE_OK;

	for (unsigned round = 0; round < nr_rounds; round++) {
		for (int i = 0; i < 12; i++) {
			struct trace_record r;
			random_fields(
				&seed, &k[random_below(&seed, nr_kinds)], "definition", 10, &r);
			if (r.kind >= 32) {
				r.stream = 1 + (uint32_t)random_below(&seed, 2);
				r.time_ns = now_ns[r.stream] += random_below(&seed, 1000);
			}
			status = trace_writer_put(w, &r, err);
			if (status != BASE_OK)
				return status;
		}
		status = trace_writer_flush(w, err);
		if (status != BASE_OK)
			return status;
	}
	return status;
}

static uint8_t *make_trace(unsigned nr_rounds, size_t *ret_nr)
{
	char *path = temporary_path();
	struct base_err err = {0};
	struct trace_writer *w;

	OK(trace_writer_open(path, &test_info, &w, &err));
	trace_writer_count(w, TRACE_DIAG_records_lost, 3);
	OK(put_some(w, nr_rounds, 11, &err));
	OK(trace_writer_close(w, &err));
	uint8_t *bytes = read_file(path, ret_nr);
	unlink(path);
	free(path);
	return bytes;
}

static uint8_t *copy_of(const uint8_t *bytes, size_t nr)
{
	uint8_t *copy = malloc(nr ? nr : 1);

	memcpy(copy, bytes, nr);
	return copy;
}

static void read_whole(const uint8_t *bytes, size_t nr, struct record_list *ret)
{
	struct base_err err = {0};
	struct trace_reader *r;

	OK(trace_reader_open_memory(bytes, nr, &all, &r, &err));
	assert_int_equal(read_all(r, ret, &err), BASE_END);
	assert_int_equal(trace_reader_health(r)->readable_bytes, nr);
	trace_reader_close(r);
}

/* Each stream's records must be a subsequence of what was written (a prefix when `prefix`), all in
 * time order. */
static void assert_part_of(
	const struct record_list *whole, const struct record_list *part, bool prefix)
{
	for (uint32_t stream = 0; stream <= 2; stream++) {
		size_t at = 0;
		for (size_t i = 0; i < part->nr; i++) {
			if (part->record[i].stream != stream)
				continue;
			for (;; at++) {
				assert_true(at < whole->nr);
				if (whole->record[at].stream != stream)
					continue;
				if (records_equal(&whole->record[at], &part->record[i]))
					break;
				assert_false(prefix);
			}
			at++;
		}
	}
	for (size_t i = 1; i < part->nr; i++)
		assert_true(part->record[i].time_ns >= part->record[i - 1].time_ns);
}

static uint64_t trouble(const struct trace_health *h)
{
	return h->count[TRACE_DIAG_chunks_damaged] + h->count[TRACE_DIAG_tail_cut] +
	       h->count[TRACE_DIAG_index_rebuilt];
}

static void cut_at_every_byte(void **state)
{
	size_t nr;
	uint8_t *bytes = make_trace(3, &nr);
	struct record_list whole = {0};
	size_t most = 0;

	(void)state;
	read_whole(bytes, nr, &whole);
	for (size_t size = 0; size < nr; size++) {
		uint8_t *cut = copy_of(bytes, size);
		struct base_err err = {0};
		struct trace_reader *r;
		struct record_list part = {0};
		enum base_status status = trace_reader_open_memory(cut, size, &all, &r, &err);

		if (size < trace_get_u32(bytes + 12)) {
			assert_true(status == BASE_ERR_TRUNCATED ||
				    (!size && status == BASE_ERR_FORMAT));
		} else {
			assert_int_equal(status, BASE_OK);
			assert_int_equal(read_all(r, &part, &err), BASE_END);
			assert_part_of(&whole, &part, true);
			const struct trace_health *h = trace_reader_health(r);
			assert_int_equal(h->count[TRACE_DIAG_index_rebuilt], 1);
			assert_int_equal(h->count[TRACE_DIAG_chunks_damaged], 0);
			assert_true(h->readable_bytes <= size);
			assert_int_equal(h->file_bytes, size);
			assert_true(part.nr >= most); /* a longer piece never gives less */
			most = part.nr;
			trace_reader_close(r);
		}
		record_list_fini(&part);
		free(cut);
	}
	assert_int_equal(most, whole.nr); /* without the footer all is there */
	record_list_fini(&whole);
	free(bytes);
}

static void every_bit_flipped(void **state)
{
	size_t nr;
	uint8_t *bytes = make_trace(2, &nr);
	struct record_list whole = {0};

	(void)state;
	read_whole(bytes, nr, &whole);
	for (size_t bit = 0; bit < nr * 8; bit++) {
		struct base_err err = {0};
		struct trace_reader *r;
		struct record_list part = {0};

		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		uint8_t *exact = copy_of(bytes, nr);
		if (trace_reader_open_memory(exact, nr, &all, &r, &err) == BASE_OK) {
			assert_int_equal(read_all(r, &part, &err), BASE_END);
			assert_part_of(&whole, &part, false);
			assert_true(trouble(trace_reader_health(r)) > 0);
			trace_reader_close(r);
		} else {
			assert_true(bit / 8 < trace_get_u32(bytes + 12) || bit / 8 < 16);
		}
		record_list_fini(&part);
		free(exact);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	record_list_fini(&whole);
	free(bytes);
}

/* Bytes that are wrong in many places at once, with the checksums of the chunks made right again.
 */
static void forged_chunks(void **state)
{
	size_t nr;
	uint8_t *bytes = make_trace(3, &nr);
	uint64_t seed = 17;
	uint32_t header_bytes = trace_get_u32(bytes + 12);

	(void)state;
	for (int n = 0; n < 20000; n++) {
		uint8_t *forged = copy_of(bytes, nr);
		struct base_err err = {0};
		struct trace_reader *r;
		struct record_list got = {0};
		size_t at = header_bytes;

		while (trace_get_u32(forged + at) == TRACE_CHUNK_MAGIC) {
			struct trace_chunk_header h;
			uint8_t *payload = forged + at + TRACE_CHUNK_HEADER_BYTES;
			assert_true(trace_chunk_header_decode(forged + at, &h));
			for (uint64_t i = random_below(&seed, 4); i > 0; i--)
				payload[random_below(&seed, h.stored_bytes)] =
					(uint8_t)random_u64(&seed);
			at += TRACE_CHUNK_HEADER_BYTES + h.stored_bytes;
			h.payload_hash = XXH64(payload, h.stored_bytes, 0);
			switch (random_below(&seed, 12)) {
			case 0:
				h.nr_records += (uint32_t)random_below(&seed, 3) - 1;
				break;
			case 1:
				h.first_ns += random_below(&seed, 3) - 1;
				break;
			case 2:
				h.last_ns += random_below(&seed, 3) - 1;
				break;
			case 3:
				h.stream = (uint32_t)random_below(&seed, 4);
				break;
			case 4:
				h.raw_bytes += (uint32_t)random_below(&seed, 3) - 1;
				break;
			default:
				break;
			}
			trace_chunk_header_encode(payload - TRACE_CHUNK_HEADER_BYTES, &h);
		}
		size_t size =
			random_below(&seed, 2) ? nr : at; /* with a stale index, or without one */
		OK(trace_reader_open_memory(forged, size, &all, &r, &err));
		assert_int_equal(read_all(r, &got, &err), BASE_END);
		for (size_t i = 1; i < got.nr; i++)
			assert_true(got.record[i].time_ns >= got.record[i - 1].time_ns);
		struct base_str s = {0};
		for (size_t i = 0; i < got.nr; i++)
			trace_print_json(&s, trace_reader_defs(r), &got.record[i]);
		base_str_fini(&s);
		trace_reader_close(r);
		record_list_fini(&got);
		free(forged);
	}
	free(bytes);
}

/* Damage amid a file without an index: what follows is found again. */
static void resync_after_damage(void **state)
{
	size_t nr;
	uint8_t *bytes = make_trace(8, &nr);
	size_t header_bytes = trace_get_u32(bytes + 12), at = header_bytes, nr_chunks = 0;
	struct record_list whole = {0};

	(void)state;
	read_whole(bytes, nr, &whole);
	for (; trace_get_u32(bytes + at) == TRACE_CHUNK_MAGIC; nr_chunks++) {
		struct trace_chunk_header h;
		uint8_t *cut = copy_of(bytes, footer_offset_of(bytes, nr));
		struct base_err err = {0};
		struct trace_reader *r;
		struct record_list part = {0};

		assert_true(trace_chunk_header_decode(bytes + at, &h));
		memset(cut + at, 0xaa, TRACE_CHUNK_HEADER_BYTES / 2);
		OK(trace_reader_open_memory(cut, footer_offset_of(bytes, nr), &all, &r, &err));
		assert_int_equal(read_all(r, &part, &err), BASE_END);
		assert_part_of(&whole, &part, false);
		assert_int_equal(part.nr, whole.nr - h.nr_records);
		at += TRACE_CHUNK_HEADER_BYTES + h.stored_bytes;
		const struct trace_health *health = trace_reader_health(r);
		bool is_last = at == footer_offset_of(bytes, nr);
		assert_int_equal(health->count[TRACE_DIAG_chunks_damaged], !is_last);
		assert_int_equal(health->count[TRACE_DIAG_tail_cut],
			is_last ? TRACE_CHUNK_HEADER_BYTES + h.stored_bytes : 0);
		assert_int_equal(health->readable_bytes,
			health->file_bytes - TRACE_CHUNK_HEADER_BYTES - h.stored_bytes);
		trace_reader_close(r);
		record_list_fini(&part);
		free(cut);
	}
	assert_true(nr_chunks > 10);
	record_list_fini(&whole);
	free(bytes);
}

/* Garbage of megabytes between chunks, with false magics across block borders. */
static void resync_over_garbage(void **state)
{
	size_t nr, garbage = 300001;
	uint8_t *bytes = make_trace(2, &nr);
	size_t header_bytes = trace_get_u32(bytes + 12);
	uint8_t *mixed = malloc(nr + garbage);
	struct record_list whole = {0}, part = {0};
	struct base_err err = {0};
	struct trace_reader *r;

	(void)state;
	read_whole(bytes, nr, &whole);
	memcpy(mixed, bytes, header_bytes);
	for (size_t i = 0; i < garbage; i++)
		mixed[header_bytes + i] = (uint8_t) "LPCK"[i % 4];
	memcpy(mixed + header_bytes + garbage, bytes + header_bytes, nr - header_bytes);
	OK(trace_reader_open_memory(mixed, nr + garbage, &all, &r, &err));
	assert_int_equal(read_all(r, &part, &err), BASE_END);
	assert_int_equal(part.nr, whole.nr);
	assert_part_of(&whole, &part, true);
	assert_int_equal(trace_reader_health(r)->count[TRACE_DIAG_chunks_damaged], 1);
	trace_reader_close(r);
	record_list_fini(&whole);
	record_list_fini(&part);
	free(mixed);
	free(bytes);
}

/* A second pass says the same as the first. */
static void damage_is_counted_once_a_pass(void **state)
{
	size_t nr;
	uint8_t *bytes = make_trace(4, &nr);
	struct base_err err = {0};
	struct trace_reader *r;

	(void)state;
	for (size_t at = trace_get_u32(bytes + 12);
		trace_get_u32(bytes + at) == TRACE_CHUNK_MAGIC;) {
		struct trace_chunk_header h;
		assert_true(trace_chunk_header_decode(bytes + at, &h));
		bytes[at + TRACE_CHUNK_HEADER_BYTES] ^= 1;
		at += TRACE_CHUNK_HEADER_BYTES + h.stored_bytes;
		OK(trace_reader_open_memory(bytes, nr, &all, &r, &err));
		struct trace_health first;
		for (int pass = 0; pass < 3; pass++) {
			struct record_list got = {0};
			assert_int_equal(read_all(r, &got, &err), BASE_END);
			if (!pass)
				first = *trace_reader_health(r);
			assert_memory_equal(&first, trace_reader_health(r), sizeof first);
			OK(trace_reader_rewind(r, &err));
			record_list_fini(&got);
		}
		assert_int_equal(first.count[TRACE_DIAG_records_lost], 3);
		trace_reader_close(r);
	}
	free(bytes);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Everything once; the status of what failed first. */
static enum base_status write_and_read(const char *path, struct base_err *err)
{
	struct trace_writer *w;
	struct trace_reader *r;
	struct record_list got = {0};

	enum base_status status = trace_writer_open(path, &test_info, &w, err);
	if (status != BASE_OK)
		return status;
	status = put_some(w, 3, 11, err);
	enum base_status closed = trace_writer_close(w, status == BASE_OK ? err : NULL);
	if (status != BASE_OK || closed != BASE_OK)
		return status != BASE_OK ? status : closed;
	status = trace_reader_open(path, &all, &r, err);
	if (status != BASE_OK)
		return status;
	status = read_all(r, &got, err);
	if (status == BASE_ERR_NOMEM) { /* a failure ends nothing: the next call goes on */
		base_alloc_fail_nth(0);
		assert_int_equal(read_all(r, &got, NULL), BASE_END);
	}
	trace_reader_close(r);
	if (status == BASE_END)
		assert_int_equal(got.nr, 36);
	record_list_fini(&got);
	return status;
}

static void every_allocation_fails(void **state)
{
	char *path = temporary_path();
	uint64_t nr_failed = 0;

	(void)state;
	for (uint64_t nth = 1;; nth++) {
		struct base_err err = {0};
		base_alloc_fail_nth(nth);
		enum base_status status = write_and_read(path, &err);
		base_alloc_fail_nth(0);
		if (status == BASE_END)
			break;
		assert_int_equal(status, BASE_ERR_NOMEM);
		assert_int_equal(err.status, BASE_ERR_NOMEM);
		nr_failed++;
	}
	assert_true(nr_failed > 40);
	unlink(path);
	free(path);
}

/* An index without a footer needs memory, too. */
static void every_allocation_fails_without_index(void **state)
{
	size_t nr;
	uint8_t *bytes = make_trace(2, &nr);

	(void)state;
	nr = footer_offset_of(bytes, nr);
	bytes[trace_get_u32(bytes + 12)] ^= 1; /* and one chunk to look for */
	for (uint64_t nth = 1;; nth++) {
		struct base_err err = {0};
		struct trace_reader *r;
		enum base_status status =
			WITHOUT_NTH(nth, trace_reader_open_memory(bytes, nr, &all, &r, &err));
		trace_reader_close(r);
		if (status == BASE_OK)
			break;
	}
	free(bytes);
}

/* ---- disk ------------------------------------------------------------------------------------ */

/* Writes until it fails, then some more; what is there must be readable and a prefix. */
static void fill_up(const char *path, int expected_errno)
{
	struct base_err err = {0};
	struct trace_writer *w;
	struct trace_reader *r;
	struct trace_batch batch;
	enum base_status status = BASE_OK;
	uint64_t nr_put = 0, nr = 0;

	OK(trace_writer_open(path, &test_info, &w, &err));
	for (; status == BASE_OK && nr_put < 100000000; nr_put++) {
		struct trace_record a = {
			.kind = TRACE_lock_acquire,
			.stream = 1,
			.time_ns = nr_put,
			.u.lock_acquire = {.object = (uint32_t)base_hash_u64(nr_put),
				.site = (uint32_t)base_hash_u64(~nr_put)},
		};
		status = trace_writer_put(w, &a, &err);
	}
	assert_int_equal(status, BASE_ERR_IO);
	assert_int_equal(err.sys_errno, expected_errno);
	struct trace_record end = {.kind = TRACE_thread_end, .stream = 1, .time_ns = UINT64_MAX};
	assert_int_equal(trace_writer_put(w, &end, &err), BASE_ERR_IO);
	assert_int_equal(err.sys_errno, expected_errno);
	assert_int_equal(trace_writer_flush(w, &err), BASE_ERR_IO);
	memset(&err, 0, sizeof err);
	assert_int_equal(trace_writer_close(w, &err), BASE_ERR_IO);
	assert_int_equal(err.sys_errno, expected_errno);

	OK(trace_reader_open(path, NULL, &r, &err));
	while ((status = trace_reader_next(r, &batch, &err)) == BASE_OK) {
		for (size_t i = 0; i < batch.nr; i++, nr++) {
			assert_int_equal(batch.record[i].time_ns, nr);
			assert_int_equal(
				batch.record[i].u.lock_acquire.object, (uint32_t)base_hash_u64(nr));
		}
	}
	assert_int_equal(status, BASE_END);
	assert_true(nr > 0 && nr < nr_put);
	const struct trace_health *h = trace_reader_health(r);
	/* The footer fits into what the part of a chunk had taken, and says it; or there is none.
	 */
	assert_true(h->count[TRACE_DIAG_disk_full] == 1 || h->count[TRACE_DIAG_index_rebuilt] == 1);
	assert_int_equal(h->count[TRACE_DIAG_tail_cut], 0);
	trace_reader_close(r);
}

static void file_size_limit(void **state)
{
	char *path = temporary_path();
	struct rlimit before, limit;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (rlim_t size = 400000; size < 2000000; size += 123457) {
		limit = (struct rlimit){.rlim_cur = size, .rlim_max = before.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		fill_up(path, EFBIG);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	}
	signal(SIGXFSZ, handler);
	unlink(path);
	free(path);
}

static void full_device(void **state)
{
	struct base_err err = {0};
	struct trace_writer *w;

	(void)state;
	if (access("/dev/full", W_OK))
		skip();
	assert_int_equal(trace_writer_open("/dev/full", &test_info, &w, &err), BASE_ERR_IO);
	assert_int_equal(err.sys_errno, ENOSPC);
	assert_null(w);
	assert_int_equal(
		trace_writer_open("/nonexistent/x.lpt", &test_info, &w, &err), BASE_ERR_ENV);
}

static void full_file_system(void **state)
{
	char *dir = temporary_path(), *path = NULL;

	(void)state;
	unlink(dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	/* In a mount namespace of our own, which goes with us. */
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("tmpfs", dir, "tmpfs", 0, "size=1m")) {
		rmdir(dir);
		free(dir);
		skip();
	}
	assert_true(asprintf(&path, "%s/full.lpt", dir) > 0);
	fill_up(path, ENOSPC);
	umount(dir);
	rmdir(dir);
	free(path);
	free(dir);
}

/* What a writer that is killed leaves: whole chunks. */
static void writer_disappears(void **state)
{
	char *path = temporary_path();
	struct base_err err = {0};
	struct trace_writer *w;
	struct trace_reader *r;
	struct record_list got = {0};
	size_t nr;

	(void)state;
	OK(trace_writer_open(path, &test_info, &w, &err));
	OK(put_some(w, 5, 11, &err));
	uint8_t *bytes = read_file(path, &nr); /* as it is before the close */
	OK(trace_reader_open_memory(bytes, nr, &all, &r, &err));
	assert_int_equal(read_all(r, &got, &err), BASE_END);
	assert_int_equal(got.nr, 60);
	assert_int_equal(trace_reader_health(r)->count[TRACE_DIAG_index_rebuilt], 1);
	assert_int_equal(trace_reader_health(r)->count[TRACE_DIAG_tail_cut], 0);
	trace_reader_close(r);
	OK(trace_writer_close(w, &err));
	record_list_fini(&got);
	free(bytes);
	unlink(path);
	free(path);
}

/* The same with another thread that decodes. */
#define AHEAD(test)                                                                                \
	{                                                                                          \
#test "_ahead", test, start_ahead, end_ahead, NULL                                 \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(every_bit_flipped),
		cmocka_unit_test(forged_chunks),
		cmocka_unit_test(resync_after_damage),
		cmocka_unit_test(resync_over_garbage),
		cmocka_unit_test(damage_is_counted_once_a_pass),
		cmocka_unit_test(every_allocation_fails),
		cmocka_unit_test(every_allocation_fails_without_index),
		cmocka_unit_test(file_size_limit),
		cmocka_unit_test(full_device),
		cmocka_unit_test(full_file_system),
		cmocka_unit_test(writer_disappears),
		AHEAD(cut_at_every_byte),
		AHEAD(forged_chunks),
		AHEAD(resync_after_damage),
		AHEAD(resync_over_garbage),
		AHEAD(damage_is_counted_once_a_pass),
		AHEAD(every_allocation_fails),
		AHEAD(every_allocation_fails_without_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

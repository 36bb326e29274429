/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that decodes ahead changes nothing: batch for batch, with what is said of the trace's
 * health by then. (Cut, damaged and forged traces: test_trace_damage.c, which runs both ways.) */
#include "trace/layout.h"
#include "trace/reader.h"
#include "test.h"
#include "trace_file.h"
#include "trace_random.h"

#include <sched.h>

#define OK(call) assert_int_equal((call), BASE_OK)

enum { RECORDS = (2 * TRACE_AHEAD_BATCHES + 3) * TRACE_BATCH_MAX };

/* Goes round the ring more than twice; some chunks are damaged. */
static uint8_t *make_trace(uint32_t nr_streams, size_t *ret_nr)
{
	char *path = temporary_path();
	struct trace_writer *w;
	uint64_t seed = nr_streams, now_ns = 0;

	OK(trace_writer_open(path, &test_info, &w, NULL));
	for (uint32_t i = 0; i < RECORDS; i++) {
		struct trace_record r = {.time_ns = now_ns += random_below(&seed, 100),
			.stream = 1 + (uint32_t)random_below(&seed, nr_streams),
			.kind = TRACE_lock_acquire,
			.u.lock_acquire = {.object = (uint32_t)random_below(&seed, 1 << 20)}};
		OK(trace_writer_put(w, &r, NULL));
		if (i % (RECORDS / 16) == 0)
			OK(trace_writer_flush(w, NULL));
	}
	OK(trace_writer_close(w, NULL));
	uint8_t *bytes = read_file(path, ret_nr);
	unlink(path);
	free(path);

	struct trace_chunk_header h;
	unsigned nr = 0;
	for (size_t at = trace_get_u32(bytes + 12); trace_get_u32(bytes + at) == TRACE_CHUNK_MAGIC;
		at += TRACE_CHUNK_HEADER_BYTES + h.stored_bytes) {
		assert_true(trace_chunk_header_decode(bytes + at, &h));
		if (++nr % 5 == 0)
			bytes[at + TRACE_CHUNK_HEADER_BYTES] ^= 1;
	}
	assert_true(nr > 10);
	return bytes;
}

static struct trace_reader *open_as(const uint8_t *bytes, size_t nr, uint64_t from_ns,
	uint64_t to_ns, enum trace_ahead_choice ahead)
{
	struct trace_reader_options o = {
		.size = sizeof o, .from_ns = from_ns, .to_ns = to_ns, .ahead = ahead};
	struct trace_reader *r;

	OK(trace_reader_open_memory(bytes, nr, &o, &r, NULL));
	return r;
}

/* Reads both, `nr_batches` at most; returns how many there were. */
static size_t compare(struct trace_reader *a, struct trace_reader *b, size_t nr_batches)
{
	for (size_t nr = 0; nr < nr_batches; nr++) {
		struct trace_batch x, y;
		enum base_status status = trace_reader_next(a, &x, NULL);

		assert_int_equal(trace_reader_next(b, &y, NULL), status);
		assert_int_equal(x.nr, y.nr);
		assert_memory_equal(trace_reader_health(a), trace_reader_health(b),
			sizeof(struct trace_health));
		for (size_t i = 0; i < x.nr; i++)
			assert_true(records_equal(&x.record[i], &y.record[i]));
		if (status != BASE_OK) {
			assert_int_equal(status, BASE_END);
			return nr;
		}
	}
	return nr_batches;
}

struct visit { /* what a batch has, to which the visited records are compared */
	struct trace_batch expected;
	size_t nr;
};

static void visit(void *ctx, const struct trace_record *r)
{
	struct visit *v = ctx;

	assert_true(v->nr < v->expected.nr);
	assert_true(records_equal(r, &v->expected.record[v->nr++]));
}

/* Visiting is reading without a copy; every third batch is read, nevertheless. */
static void check_visit(const uint8_t *bytes, size_t nr_bytes, uint64_t from_ns, uint64_t to_ns,
	enum trace_ahead_choice ahead)
{
	struct trace_reader *a = open_as(bytes, nr_bytes, from_ns, to_ns, TRACE_AHEAD_NEVER),
			    *b = open_as(bytes, nr_bytes, from_ns, to_ns, ahead);
	enum base_status status = BASE_OK;

	for (size_t nr_batches = 0; status == BASE_OK; nr_batches++) {
		struct visit v = {.nr = 0};
		size_t nr = 0;

		if (nr_batches % 3 == 2 && compare(a, b, 1) == 0)
			break;
		status = trace_reader_next(a, &v.expected, NULL);
		assert_int_equal(trace_reader_visit(b, visit, &v, &nr, NULL), status);
		assert_int_equal(nr, v.expected.nr);
		assert_int_equal(nr, v.nr);
		assert_memory_equal(trace_reader_health(a), trace_reader_health(b),
			sizeof(struct trace_health));
	}
	trace_reader_close(a);
	trace_reader_close(b);
}

static void check(uint32_t nr_streams)
{
	size_t nr;
	uint8_t *bytes = make_trace(nr_streams, &nr);
	struct trace_reader *a = open_as(bytes, nr, 0, 0, TRACE_AHEAD_NEVER),
			    *b = open_as(bytes, nr, 0, 0, TRACE_AHEAD_ALWAYS);
	uint64_t last_ns = trace_reader_last_ns(a);
	size_t nr_batches = compare(a, b, SIZE_MAX);

	assert_true(nr_batches > TRACE_AHEAD_BATCHES);
	assert_true(trace_reader_health(a)->count[TRACE_DIAG_chunks_damaged] > 2);
	assert_int_equal(compare(a, b, 3), 0); /* the end stays the end */
	for (size_t stop = 0; stop < nr_batches; stop++) {
		OK(trace_reader_rewind(a, NULL));
		OK(trace_reader_rewind(b, NULL));
		assert_int_equal(compare(a, b, stop), stop);
	}
	trace_reader_close(a);
	trace_reader_close(b); /* in the middle */
	for (uint64_t part = 0; part < 4; part++) {
		a = open_as(
			bytes, nr, last_ns * part / 7, last_ns * (part + 3) / 7, TRACE_AHEAD_NEVER);
		b = open_as(bytes, nr, last_ns * part / 7, last_ns * (part + 3) / 7,
			TRACE_AHEAD_ALWAYS);
		assert_true(compare(a, b, SIZE_MAX) > 2);
		trace_reader_close(a);
		trace_reader_close(b);
	}
	for (enum trace_ahead_choice ahead = TRACE_AHEAD_NEVER; ahead <= TRACE_AHEAD_ALWAYS;
		ahead++) {
		check_visit(bytes, nr, 0, 0, ahead);
		check_visit(bytes, nr, last_ns / 7, last_ns * 6 / 7, ahead);
	}
	free(bytes);
}

static void few_streams(void **state)
{
	(void)state;
	check(5);
}

static void many_streams(void **state)
{
	(void)state;
	check(TRACE_FEW_LEAVES + 14);
}

/* A file that is cut while it is read: both say so, at the same place. */
static void cut_while_reading(void **state)
{
	struct trace_reader *r[2];
	char *path = temporary_path();
	size_t nr, nr_read[2] = {0};
	uint8_t *bytes = make_trace(3, &nr);
	struct trace_health health[2];

	(void)state;
	write_file(path, bytes, nr);
	for (int i = 0; i < 2; i++) {
		struct trace_reader_options o = {
			.size = sizeof o, .ahead = i ? TRACE_AHEAD_ALWAYS : TRACE_AHEAD_NEVER};
		OK(trace_reader_open(path, &o, &r[i], NULL));
	}
	assert_int_equal(truncate(path, (off_t)(nr / 2)), 0);
	for (int i = 0; i < 2; i++) {
		struct trace_batch batch;
		enum base_status status;
		while ((status = trace_reader_next(r[i], &batch, NULL)) == BASE_OK)
			nr_read[i] += batch.nr;
		assert_int_equal(status, BASE_END);
		health[i] = *trace_reader_health(r[i]);
		trace_reader_close(r[i]);
	}
	assert_int_equal(nr_read[0], nr_read[1]);
	assert_true(nr_read[0] > 0 && nr_read[0] < RECORDS);
	assert_memory_equal(&health[0], &health[1], sizeof health[0]);
	unlink(path);
	free(path);
	free(bytes);
}

/* With one processor there is nothing to be gained, nor in short traces. */
static void auto_asks_for_processors(void **state)
{
	cpu_set_t before, one;
	size_t nr;
	uint8_t *bytes = make_trace(2, &nr);
	struct trace_reader *r = open_as(bytes, nr, 0, 0, TRACE_AHEAD_AUTO);

	(void)state;
	assert_false(r->reads_ahead); /* short */
	r->nr_records = 1 << 20;
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	assert_int_equal(trace_ahead_wanted(r), CPU_COUNT(&before) > 1);
	CPU_ZERO(&one);
	for (unsigned i = 0; !CPU_COUNT(&one); i++) {
		if (CPU_ISSET(i, &before))
			CPU_SET(i, &one);
	}
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	assert_false(trace_ahead_wanted(r));
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
	trace_reader_close(r);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_streams),
		cmocka_unit_test(many_streams),
		cmocka_unit_test(cut_while_reading),
		cmocka_unit_test(auto_asks_for_processors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

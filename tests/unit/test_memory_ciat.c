/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory_ciat.c - ciat against brute force, hand-made traces, and a formula. */
#include "memory/ciat/ciat.h"
#include "memory_fixture.h"
#include "test.h"

/* Runs all of a fixture through the analysis; closes the fixture. */
static struct memory_ciat *analyse(struct fixture *f, const struct memory_ciat_options *options,
	const struct memory_order_options *order_options, const struct memory_ciat_result **ret)
{
	static const struct memory_ciat_options plain;
	static const struct memory_order_options plain_order = {.disk_latency_ms = -1};
	struct memory_order *o;
	struct memory_ciat *c;
	struct base_err err = {0};
	assert_int_equal(memory_order_new(&f->source, NULL,
				 order_options ? order_options : &plain_order, &o, &err),
		BASE_OK);
	assert_int_equal(
		memory_ciat_new(memory_order_threads(o), options ? options : &plain, &c, &err),
		BASE_OK);
	for (;;) {
		struct memory_steps steps;
		enum base_status s = memory_order_next(o, &steps, &err);
		if (s == BASE_END)
			break;
		assert_int_equal(s, BASE_OK);
		assert_int_equal(memory_ciat_add(c, &steps, &err), BASE_OK);
	}
	assert_int_equal(
		memory_ciat_finish(c, f->source.info.instruction_bytes, ret, &err), BASE_OK);
	memory_order_free(o);
	memory_source_close(&f->source);
	return c;
}

/* ---- by hand --------------------------------------------------------------------------------- */

static void test_events(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(3, 0);
	const struct memory_ciat_result *r;
	/* Threads go in turns: a row is a time. Each has its own location where it idles. */
	static const struct {
		int kind[3]; /* of thread 0, 1, 2; -1: its own location */
	} row[] = {
		{{MEMORY_STORE, -1, -1}},
		{{MEMORY_LOAD, MEMORY_LOAD, MEMORY_LOAD}}, /* RAW twice: S[2] */
		{{-1, MEMORY_LOAD, -1}},                   /* again: nothing */
		{{-1, MEMORY_STORE, -1}},                  /* WAR, degree 1 (thread 2) */
		{{-1, -1, MEMORY_STORE}},                  /* WAW */
		{{MEMORY_LOAD, -1, -1}},                   /* RAW: S[1] */
		{{MEMORY_STORE, -1, -1}},                  /* only reader stores: WAW */
	};
	for (size_t i = 0; i < BASE_COUNT(row); i++)
		for (uint32_t t = 0; t < 3; t++)
			fixture_access(f, t,
				row[i].kind[t] < 0 ? MEMORY_STORE
						   : (enum memory_item_kind)row[i].kind[t],
				row[i].kind[t] < 0 ? 0x2000 + t * 64 : 0x1000, 4);
	struct memory_ciat *c = analyse(f, NULL, NULL, &r);
	const struct memory_ciat_counts *n = &r->total.all;
	assert_int_equal(n->event[MEMORY_CIAT_RAW], 3);
	assert_int_equal(n->event[MEMORY_CIAT_WAR], 1);
	assert_int_equal(n->event[MEMORY_CIAT_WAW], 2);
	assert_int_equal(n->event[MEMORY_CIAT_RAR], 0);
	assert_int_equal(r->total.sharing[1], 1);
	assert_int_equal(r->total.sharing[2], 1);
	assert_int_equal(r->total.invalidation[1], 1);
	assert_int_equal(r->matrix[0 * 3 + 1], 1);
	assert_int_equal(r->matrix[0 * 3 + 2], 1);
	assert_int_equal(r->matrix[2 * 3 + 0], 1);
	memory_ciat_free(c);
}

static void test_strings_and_sizes(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(1, 0);
	const struct memory_ciat_result *r;
	static const char order[] = "LLLSLSSLLL"; /* load strings 3 1 3, store strings 1 2 */
	for (size_t i = 0; order[i]; i++)
		fixture_access(f, 0, order[i] == 'L' ? MEMORY_LOAD : MEMORY_STORE, 0x1000, 8);
	fixture_access(f, 0, MEMORY_STORE, 0x1000, 0);
	fixture_access(f, 0, MEMORY_STORE, 0x1001, 3);
	struct memory_ciat *c = analyse(f, NULL, NULL, &r);
	const struct memory_ciat_counts *n = &r->total.all;
	assert_int_equal(n->string[0][3], 2);
	assert_int_equal(n->string[0][1], 1);
	assert_int_equal(n->string[1][1], 1);
	assert_int_equal(n->string[1][2], 2);
	assert_int_equal(n->access[0][MEMORY_CIAT_SIZE_double][0], 7);
	assert_int_equal(n->access[1][MEMORY_CIAT_SIZE_zero][0], 1);
	assert_int_equal(n->access[1][MEMORY_CIAT_SIZE_three][0], 1);
	assert_int_equal(r->usage.touched_bytes, 8);
	assert_int_equal(r->usage.data_accesses, 11);
	memory_ciat_free(c);
}

static void test_phases(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(2, MEMORY_SOURCE_THREADS);
	const struct memory_ciat_result *r;
	fixture_access(f, 0, MEMORY_STORE, 0x1000, 4);
	fixture_call(f, 0, MEMORY_CALL_spawn, 7, 2);
	fixture_access(f, 0, MEMORY_LOAD, 0x1000, 4);
	fixture_call(f, 0, MEMORY_CALL_join, 7, 0);
	fixture_call(f, 0, MEMORY_CALL_marker, 0, 42);
	fixture_access(f, 0, MEMORY_STORE, 0x1000, 4);
	for (unsigned i = 0; i < 5; i++)
		fixture_access(f, 1, MEMORY_LOAD, 0x1000, 4);
	fixture_call(f, 1, MEMORY_CALL_join, 7, 0);
	struct memory_ciat *c = analyse(f, NULL, NULL, &r);
	assert_int_equal(r->nr_phases, 4);
	assert_int_equal(r->phase[0].kind, MEMORY_PHASE_SERIAL);
	assert_int_equal(r->phase[1].kind, MEMORY_PHASE_PARALLEL);
	assert_int_equal(r->phase[1].number, 7);
	assert_int_equal(r->phase[1].all.event[MEMORY_CIAT_RAW], 1);
	assert_int_equal(r->phase[1].begin_clock, 1);
	assert_int_equal(r->phase[1].end_clock, 6); /* the slower one's */
	assert_int_equal(r->phase[3].kind, MEMORY_PHASE_USER);
	assert_int_equal(r->phase[3].number, 42);
	assert_int_equal(r->phase[3].all.event[MEMORY_CIAT_WAR], 1);
	assert_int_equal(r->phase[3].end_clock, 7);
	memory_ciat_free(c);
}

/* Two counters in one line, then a line apart. */
static void test_false_sharing(void **state)
{
	(void)state;
	for (unsigned apart = 4; apart <= 64; apart *= 16) {
		struct fixture *f = fixture_new(2, 0);
		const struct memory_ciat_result *r;
		for (unsigned i = 0; i < 100; i++)
			for (uint32_t t = 0; t < 2; t++)
				fixture_access(f, t, MEMORY_STORE, 0x1000 + t * apart, 4);
		struct memory_ciat *c = analyse(f, NULL, NULL, &r);
		assert_int_equal(r->total.all.false_misses, apart == 4 ? 198 : 0);
		assert_int_equal(r->total.all.true_misses, 0);
		assert_int_equal(r->total.all.cold_misses, 2);
		memory_ciat_free(c);
	}
	struct fixture *f = fixture_new(2, 0); /* one counter: every miss brings news */
	const struct memory_ciat_result *r;
	for (unsigned i = 0; i < 100; i++)
		for (uint32_t t = 0; t < 2; t++)
			fixture_access(f, t, MEMORY_ATOMIC, 0x1000, 4);
	struct memory_ciat *c = analyse(f, NULL, NULL, &r);
	assert_int_equal(r->total.all.false_misses, 0);
	assert_int_equal(r->total.all.true_misses, 198);
	memory_ciat_free(c);
}

/* ---- the seed's matrix multiplication: counts by formula ------------------------------------- */

enum { N = 32, P = 4 };

/* C = A B, rows in blocks per thread; thread 0 fills A and B first. An inner loop is a REPEAT. */
static struct fixture *matrix_multiplication(void)
{
	struct fixture *f = fixture_new(P, MEMORY_SOURCE_THREADS);
	const uint64_t a = 0x100000, b = 0x200000, c = 0x300000;
	fixture_put(
		f, 0, (struct memory_item){.kind = MEMORY_REPEAT, .address = 2, .count = N * N});
	for (unsigned m = 0; m < 2; m++)
		fixture_put(f, 0,
			(struct memory_item){.kind = MEMORY_STORE,
				.address = m ? b : a,
				.stride_bytes = 8,
				.size_bytes = 8,
				.reg = MEMORY_REG_FLOAT,
				.instructions = 1});
	fixture_call(f, 0, MEMORY_CALL_spawn, 1, P);
	for (uint32_t t = 0; t < P; t++) {
		for (unsigned i = t * N / P; i < (t + 1) * N / P; i++)
			for (unsigned j = 0; j < N; j++) {
				fixture_put(f, t,
					(struct memory_item){
						.kind = MEMORY_REPEAT, .address = 2, .count = N});
				fixture_put(f, t,
					(struct memory_item){.kind = MEMORY_LOAD,
						.address = a + 8 * N * i,
						.stride_bytes = 8,
						.size_bytes = 8,
						.instructions = 1});
				fixture_put(f, t,
					(struct memory_item){.kind = MEMORY_LOAD,
						.address = b + 8 * j,
						.stride_bytes = 8 * N,
						.size_bytes = 8,
						.instructions = 1});
				fixture_access(f, t, MEMORY_STORE, c + 8 * (N * i + j), 8);
			}
		fixture_call(f, t, MEMORY_CALL_join, 1, 0);
	}
	return f;
}

static void test_matrix_formula(void **state)
{
	(void)state;
	const struct memory_ciat_result *r;
	struct memory_ciat_options o = {.location_bytes = 8, .with_reuse = true};
	struct memory_ciat *c = analyse(matrix_multiplication(), &o, NULL, &r);
	const struct memory_ciat_counts *n = &r->total.all;
	uint64_t loads = 2ull * N * N * N, stores = 3ull * N * N;
	assert_int_equal(n->access[0][MEMORY_CIAT_SIZE_double][0], loads);
	assert_int_equal(n->access_bytes[1], stores * 8);
	/* Thread 0 wrote A and B: the others read all of B, and their rows of A. */
	assert_int_equal(n->event[MEMORY_CIAT_RAW], (P - 1) * N * N + (P - 1) * N * N / P);
	assert_int_equal(r->total.sharing[P - 1], N * N);
	assert_int_equal(r->total.sharing[1], (P - 1) * N * N / P);
	assert_int_equal(
		n->event[MEMORY_CIAT_WAR] + n->event[MEMORY_CIAT_WAW] + n->event[MEMORY_CIAT_RAR],
		0);
	assert_int_equal(r->usage.data_bytes, 3 * N * N * 8);
	assert_int_equal(r->usage.data_accesses, loads + stores);
	assert_int_equal(r->usage.shared_bytes, (N * N + (P - 1) * N * N / P) * 8);
	assert_int_equal(r->shared_curve.cold, 3 * N * N * 8 / 64);
	memory_ciat_free(c);
}

/* More accesses than a location's own count can say, one by one and in a loop. */
static void test_many_accesses(void **state)
{
	(void)state;
	enum { ONE_BY_ONE = 70000, AT = 0x5008 };
	const uint64_t in_loop = UINT64_C(200000);
	const struct memory_ciat_result *r;
	struct fixture *f = fixture_new(1, 0);
	for (unsigned i = 0; i < ONE_BY_ONE; i++)
		fixture_access(f, 0, MEMORY_LOAD, AT, 8);
	fixture_put(
		f, 0, (struct memory_item){.kind = MEMORY_REPEAT, .address = 1, .count = in_loop});
	fixture_access(f, 0, MEMORY_STORE, AT + 8, 4);
	struct memory_ciat *c = analyse(f, NULL, NULL, &r);
	assert_int_equal(r->usage.data_accesses, ONE_BY_ONE + in_loop);
	assert_int_equal(memory_ciat_accesses(c, AT, AT + 4), ONE_BY_ONE);
	assert_int_equal(memory_ciat_accesses(c, AT + 8, AT + 12), in_loop);
	assert_int_equal(memory_ciat_accesses(c, AT + 4, AT + 8), 0);
	memory_ciat_free(c);
}

/* ---- brute force ----------------------------------------------------------------------------- */

enum { BYTES = 3 * 4096, MOST = 40 };

struct brute {
	unsigned location_bytes, nr_threads;
	int writer[BYTES];
	bool reader[BYTES][MOST], toucher[BYTES][MOST], byte[BYTES];
	uint64_t accesses_at[BYTES];
	uint64_t event[MEMORY_CIAT_EVENTS], invalidation[MOST + 1];
	uint64_t degree[BYTES * 40]; /* of each value that was ever read by another */
	size_t value_of[BYTES], nr_values;
};

static unsigned brute_readers(const struct brute *b, unsigned g, unsigned but)
{
	unsigned nr = 0;
	for (unsigned t = 0; t < b->nr_threads; t++)
		nr += t != but && b->reader[g][t];
	return nr;
}

static void brute_access(struct brute *b, unsigned t, bool store, unsigned at, unsigned size)
{
	bool event[MEMORY_CIAT_EVENTS] = {0};
	b->accesses_at[at / b->location_bytes]++;
	for (unsigned i = at; i < at + size; i++)
		b->byte[i] = true;
	for (unsigned g = at / b->location_bytes; g <= (at + size - 1) / b->location_bytes; g++) {
		b->toucher[g][t] = true;
		if (store) {
			unsigned others = brute_readers(b, g, t);
			if (others) {
				event[MEMORY_CIAT_WAR] = true;
				b->invalidation[others]++;
			} else if (b->writer[g] >= 0 && b->writer[g] != (int)t) {
				event[MEMORY_CIAT_WAW] = true;
			}
			memset(b->reader[g], 0, sizeof b->reader[g]);
			b->writer[g] = (int)t;
			b->value_of[g] = ++b->nr_values;
			continue;
		}
		if (b->writer[g] == (int)t || b->reader[g][t])
			continue;
		if (b->writer[g] >= 0) {
			event[MEMORY_CIAT_RAW] = true;
			b->degree[b->value_of[g]]++;
		} else if (brute_readers(b, g, MOST)) {
			event[MEMORY_CIAT_RAR] = true;
		}
		b->reader[g][t] = true;
	}
	for (unsigned e = 0; e < MEMORY_CIAT_EVENTS; e++)
		b->event[e] += event[e] && !(e == MEMORY_CIAT_WAW && event[MEMORY_CIAT_WAR]);
}

static void compare(const struct brute *b, const struct memory_ciat_result *r)
{
	uint64_t shared = 0, touched = 0, shared_accesses = 0, sharing[MOST + 1] = {0};
	for (unsigned e = 0; e < MEMORY_CIAT_EVENTS; e++)
		assert_int_equal(r->total.all.event[e], b->event[e]);
	for (size_t v = 1; v <= b->nr_values; v++)
		sharing[b->degree[v]]++;
	for (unsigned k = 1; k <= b->nr_threads; k++) {
		assert_int_equal(r->total.sharing[k], sharing[k]);
		assert_int_equal(r->total.invalidation[k], b->invalidation[k]);
	}
	for (unsigned g = 0; g < BYTES / b->location_bytes; g++) {
		unsigned touchers = 0, bytes = 0;
		for (unsigned t = 0; t < b->nr_threads; t++)
			touchers += b->toucher[g][t];
		for (unsigned i = 0; i < b->location_bytes; i++)
			bytes += b->byte[g * b->location_bytes + i];
		touched += bytes;
		shared += touchers > 1 ? bytes : 0;
		shared_accesses += touchers > 1 ? b->accesses_at[g] : 0;
	}
	assert_int_equal(r->usage.touched_bytes, touched);
	assert_int_equal(r->usage.shared_bytes, shared);
	assert_int_equal(r->usage.shared_data_accesses, shared_accesses);
}

static void one_random_trace(unsigned nr_threads, unsigned location_bytes, uint64_t seed)
{
	static struct brute b;
	static const uint16_t size[] = {1, 2, 4, 4, 8, 8, 16, 32, 3, 64};
	struct fixture *f = fixture_new(nr_threads, 0);
	const struct memory_ciat_result *r;
	memset(&b, 0, sizeof b);
	b.location_bytes = location_bytes;
	b.nr_threads = nr_threads;
	for (unsigned i = 0; i < BYTES; i++)
		b.writer[i] = -1;
	for (unsigned i = 0; i < 300; i++)
		for (uint32_t t = 0; t < nr_threads; t++) { /* clocks are equal: in turns */
			uint16_t bytes = size[fixture_random(&seed) % BASE_COUNT(size)];
			unsigned range = fixture_random(&seed) % 4 ? 128 : BYTES - 64;
			unsigned at = 4096 - 64 + fixture_random(&seed) % range;
			bool store = !(fixture_random(&seed) % 3);
			at = at + bytes > BYTES ? 0 : at;
			fixture_access(f, t, store ? MEMORY_STORE : MEMORY_LOAD,
				0x7ffff0000000 + at, bytes);
			brute_access(&b, t, store, at, bytes);
		}
	struct memory_ciat_options o = {.location_bytes = location_bytes};
	struct memory_ciat *c = analyse(f, &o, NULL, &r);
	compare(&b, r);
	memory_ciat_free(c);
}

static void test_brute_force(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		for (unsigned location_bytes = 1; location_bytes <= 8; location_bytes *= 2)
			one_random_trace(
				seed <= 3 ? (unsigned)seed + 1 : MOST, location_bytes, seed);
}

/* Reuse distances against a list that is searched. */
static void test_reuse(void **state)
{
	(void)state;
	enum { ACCESSES = 9000, LINES = 700 };
	static uint64_t stack[LINES];
	size_t nr_stack = 0;
	double count[MEMORY_REUSE_BUCKETS] = {0};
	uint64_t seed = 5, cold = 0;
	struct fixture *f = fixture_new(1, 0);
	for (unsigned i = 0; i < ACCESSES; i++) {
		uint32_t x = fixture_random(&seed) % LINES;
		uint64_t line = (uint64_t)x * x / LINES;
		size_t at = 0;
		fixture_access(f, 0, MEMORY_LOAD, line * 64, 8);
		while (at < nr_stack && stack[at] != line)
			at++;
		if (at == nr_stack) {
			cold++;
			nr_stack++;
		} else {
			unsigned bucket = 0;
			while (at >> bucket)
				bucket++;
			count[bucket]++;
		}
		memmove(stack + 1, stack, at * sizeof *stack);
		stack[0] = line;
	}
	const struct memory_ciat_result *r;
	struct memory_ciat_options o = {.with_reuse = true};
	struct memory_ciat *c = analyse(f, &o, NULL, &r);
	assert_int_equal(r->shared_curve.cold, cold);
	for (unsigned i = 0; i < MEMORY_REUSE_BUCKETS; i++)
		assert_true(r->shared_curve.count[i] == count[i]);
	memory_ciat_free(c);
}

/* SHARDS at a tenth: the curve of a cyclic and a skewed stream is near the exact one. */
static void test_sampled_reuse(void **state)
{
	(void)state;
	struct memory_reuse_curve curve[2];
	for (unsigned sampled = 0; sampled < 2; sampled++) {
		uint64_t seed = 9;
		struct fixture *f = fixture_new(1, 0);
		for (unsigned i = 0; i < 60000; i++) {
			uint64_t x = fixture_random(&seed) % 4096;
			fixture_access(f, 0, MEMORY_LOAD,
				(i % 2 ? x * x / 4096 : 5000 + i / 2 % 2000) * 64, 8);
		}
		const struct memory_ciat_result *r;
		struct memory_ciat_options o = {.with_reuse = true,
			.reuse_share = sampled ? 0.1 : 1,
			.without_lines = true};
		struct memory_ciat *c = analyse(f, &o, NULL, &r);
		curve[sampled] = r->shared_curve;
		memory_ciat_free(c);
	}
	assert_true(curve[1].sampled_share > 0.09 && curve[1].sampled_share < 0.11);
	assert_int_equal(memory_reuse_least(&curve[0]), 0);
	assert_int_equal(memory_reuse_least(&curve[1]), 4); /* 16 lines: one in ten was followed */
	assert_true(curve[1].sampled_lines > curve[0].sampled_lines / 15 &&
		    curve[1].sampled_lines < curve[0].sampled_lines / 7);
	for (unsigned log2_lines = memory_reuse_least(&curve[1]); log2_lines <= 14; log2_lines++) {
		double error = memory_reuse_miss_ratio(&curve[0], log2_lines) -
			       memory_reuse_miss_ratio(&curve[1], log2_lines);
		assert_true(error < 0.06 && error > -0.06);
	}
}

static void test_code(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(2, MEMORY_SOURCE_INSTRUCTIONS);
	const struct memory_ciat_result *r;
	f->source.info.instruction_bytes = 4;
	for (uint32_t t = 0; t < 2; t++) {
		fixture_put(f, t,
			(struct memory_item){.kind = MEMORY_REPEAT, .address = 1, .count = 10});
		fixture_put(f, t,
			(struct memory_item){.kind = MEMORY_BLOCK,
				.address = 0x4000 + t * 8,
				.size_bytes = 16,
				.count = 4,
				.instructions = 4});
	}
	struct memory_ciat *c = analyse(f, NULL, NULL, &r);
	assert_int_equal(r->usage.code_bytes, 24);
	assert_int_equal(r->usage.shared_bytes, 8);
	assert_int_equal(r->usage.code_accesses, 80);
	assert_int_equal(r->usage.shared_code_accesses, 40);
	assert_true(r->usage.code_locality == 80.0 / 6);
	assert_int_equal(r->total.all.instructions, 80);
	memory_ciat_free(c);
}

static void fixture_allocate(struct fixture *f, uint32_t thread, uint64_t address, uint64_t bytes,
	uint64_t code, enum memory_allocation how, uint64_t when_ns)
{
	struct fixture_thread *t = &f->thread[thread];
	fixture_call(f, thread, MEMORY_CALL_allocate, address, bytes);
	t->call[t->nr_calls - 1].argument[2] = code;
	t->call[t->nr_calls - 1].argument[3] = how;
	t->call[t->nr_calls - 1].start_ns = t->call[t->nr_calls - 1].end_ns = when_ns;
}

static void fixture_release(
	struct fixture *f, uint32_t thread, uint64_t address, uint64_t bytes, uint64_t when_ns)
{
	struct fixture_thread *t = &f->thread[thread];
	fixture_call(f, thread, MEMORY_CALL_release, address, bytes);
	t->call[t->nr_calls - 1].start_ns = t->call[t->nr_calls - 1].end_ns = when_ns;
}

/* Accesses count for the call that allocated the memory when they happened. */
static void test_heap(void **state)
{
	(void)state;
	enum { SMALL = 0x10000, LARGE = 0x100000, PIECE = 0x10000 };
	struct fixture *f = fixture_new(2, 0);
	const struct memory_ciat_result *r;
	fixture_access(f, 0, MEMORY_STORE, SMALL, 8); /* nobody's */
	fixture_allocate(f, 0, SMALL, 64, 0x1111, MEMORY_ALLOCATION_HEAP, 10);
	for (unsigned i = 0; i < 5; i++)
		fixture_access(f, 0, MEMORY_STORE, SMALL + 8, 8);
	fixture_release(f, 0, SMALL, 0, 20);
	fixture_allocate(f, 0, SMALL, 32, 0x2222, MEMORY_ALLOCATION_HEAP, 30);
	fixture_release(f, 0, SMALL, 0, 25); /* late: of the block before */
	for (unsigned i = 0; i < 3; i++)
		fixture_access(f, 0, MEMORY_STORE, SMALL + 16, 8);
	fixture_access(f, 0, MEMORY_STORE, SMALL + 32, 8); /* behind it */
	/* A mapping, and a heap's block in it. */
	fixture_allocate(f, 0, LARGE, 4 * PIECE, 0x3333, MEMORY_ALLOCATION_MAPPING, 40);
	fixture_access(f, 0, MEMORY_STORE, LARGE + 8, 8);
	fixture_allocate(f, 0, LARGE + PIECE, PIECE, 0x4444, MEMORY_ALLOCATION_HEAP, 50);
	fixture_access(f, 0, MEMORY_STORE, LARGE + 2 * PIECE - 8, 8);
	fixture_access(f, 0, MEMORY_STORE, LARGE + PIECE, 8);
	/* Its end was not seen; the same place again. */
	fixture_allocate(f, 0, LARGE + PIECE, PIECE, 0x2222, MEMORY_ALLOCATION_HEAP, 60);
	fixture_access(f, 0, MEMORY_STORE, LARGE + PIECE, 8);
	fixture_release(f, 0, LARGE, 4 * PIECE, 70);
	fixture_access(f, 0, MEMORY_STORE, LARGE + 16, 8); /* nobody's */
	/* The second thread shares the small block's line, without its values, when all is done. */
	fixture_access(f, 1, MEMORY_STORE, 0x9000, 4);
	f->thread[1].item[0].instructions = 100;
	fixture_access(f, 1, MEMORY_STORE, SMALL + 24, 8);
	fixture_access(f, 0, MEMORY_LOAD, 0x8000, 4);
	f->thread[0].item[f->thread[0].nr - 1].instructions = 200;
	fixture_access(f, 0, MEMORY_STORE, SMALL + 16, 8);
	struct memory_ciat *c = analyse(f, NULL, NULL, &r);
	assert_int_equal(r->nr_heap, 4);
	assert_int_equal(r->heap[0].code, 0x1111);
	assert_int_equal(r->heap[0].accesses, 5);
	assert_int_equal(r->heap[1].code, 0x2222);
	assert_int_equal(r->heap[1].blocks, 2);
	assert_int_equal(r->heap[1].bytes, 32 + PIECE);
	assert_int_equal(r->heap[1].accesses, 3 + 1 + 2);
	assert_true(r->heap[2].mapping);
	assert_int_equal(r->heap[2].accesses, 1);
	assert_int_equal(r->heap[3].accesses, 2);
	assert_int_equal(r->total.all.false_misses, 1);
	assert_int_equal(r->nr_sites, 1);
	assert_int_equal(r->site[0].heap, 2);
	assert_int_equal(r->site[0].heap_offset, 16);
	assert_int_equal(memory_ciat_accesses(c, SMALL, SMALL + 64), 1 + 5 + 3 + 1 + 2);
	assert_int_equal(memory_ciat_touched(c, 0), 0x8000);
	assert_int_equal(memory_ciat_touched(c, 0x9004), SMALL);
	assert_true(memory_ciat_touched(c, LARGE + 4 * PIECE) == UINT64_MAX);
	memory_ciat_free(c);
}

/* Random blocks, against a list of each word's owner. */
/* Two threads in turns get the same memory, store and load in it, and give it back. How often a
 * line came back changed, and what one thread has of the other. */
static void hand_over(uint64_t address, uint64_t bytes, enum memory_allocation how,
	struct memory_ciat_counts *ret)
{
	enum { TURNS = 6, WORDS = 40 };
	struct fixture *f = fixture_new(2, 0);
	const struct memory_ciat_result *r;
	for (unsigned turn = 0; turn < TURNS; turn++) {
		unsigned t = turn % 2;
		fixture_allocate(f, t, address, bytes, 0x1000 + t, how, 10 * turn + 1);
		for (unsigned i = 0; i < WORDS; i++) {
			fixture_access(f, t, MEMORY_STORE, address + i * 64, 8);
			fixture_access(f, t, MEMORY_LOAD, address + i * 64, 8);
		}
		fixture_release(
			f, t, address, how == MEMORY_ALLOCATION_MAPPING ? bytes : 0, 10 * turn + 2);
		for (unsigned i = 0; i < 2; i++)
			fixture_call(f, i, MEMORY_CALL_barrier, 0x99, 2);
	}
	struct memory_ciat *c = analyse(f, NULL, NULL, &r);
	*ret = r->total.all;
	assert_int_equal(r->usage.shared_bytes, WORDS * 8); /* addresses, whatever is there */
	assert_int_equal(r->nr_heap, 2);
	memory_ciat_free(c);
}

static void test_mapped_anew(void **state)
{
	(void)state;
	enum { PLACE = 0x7000000, LARGE = 200 << 10 };
	static const struct {
		uint64_t address, bytes;
		enum memory_allocation how;
		bool anew;
	} row[] = {
		{PLACE, 8192, MEMORY_ALLOCATION_MAPPING, true},
		{PLACE + 16, LARGE, MEMORY_ALLOCATION_HEAP, true}, /* malloc has it mapped */
		{PLACE + 32, LARGE, MEMORY_ALLOCATION_HEAP, false},
		{PLACE + 16, 8192, MEMORY_ALLOCATION_HEAP, false},
	};
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct memory_ciat_counts n;
		hand_over(row[i].address, row[i].bytes, row[i].how, &n);
		assert_int_equal(n.true_misses + n.false_misses, row[i].anew ? 0 : 4 * 40);
		assert_int_equal(n.event[MEMORY_CIAT_WAW], row[i].anew ? 0 : 5 * 40);
		assert_int_equal(n.cold_misses, row[i].anew ? 6 * 40 : 2 * 40);
	}
}

static void test_heap_random(void **state)
{
	(void)state;
	enum { WORDS = 4096, SITES = 5, STEPS = 60, EVERY = 40 };
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct fixture *f = fixture_new(1, 0);
		const struct memory_ciat_result *r;
		static unsigned char owner[WORDS]; /* site + 1 */
		static unsigned short begin[WORDS];
		uint64_t expected[SITES + 1] = {0}, random = seed;
		unsigned nr_calls = 0;
		memset(owner, 0, sizeof owner);
		while (nr_calls < STEPS) {
			unsigned at = fixture_random(&random) % WORDS, words;
			if (fixture_random(&random) % EVERY) {
				fixture_access(f, 0, MEMORY_STORE, 0x40000 + at * 16, 8);
				expected[owner[at]]++;
				continue;
			}
			nr_calls++;
			if (owner[at]) {
				unsigned first = begin[at], site = owner[at];
				fixture_release(f, 0, 0x40000 + first * 16, 0, nr_calls);
				for (unsigned i = first;
					i < WORDS && owner[i] == site && begin[i] == first; i++)
					owner[i] = 0;
				continue;
			}
			for (words = 0; at + words < WORDS && !owner[at + words] &&
					words < 1 + fixture_random(&random) % 4000;)
				words++;
			if (!words)
				continue;
			unsigned site = fixture_random(&random) % SITES;
			fixture_allocate(f, 0, 0x40000 + at * 16, words * 16, 0x100 + site,
				MEMORY_ALLOCATION_HEAP, nr_calls);
			for (unsigned i = at; i < at + words; i++) {
				owner[i] = (unsigned char)(site + 1);
				begin[i] = (unsigned short)at;
			}
		}
		struct memory_ciat *c = analyse(f, NULL, NULL, &r);
		for (size_t i = 0; i < r->nr_heap; i++)
			assert_int_equal(
				r->heap[i].accesses, expected[r->heap[i].code - 0x100 + 1]);
		assert_true(r->nr_heap == SITES);
		memory_ciat_free(c);
	}
}

/* A memory limit is a status, and so is any allocation that fails. */
static void test_failures(void **state)
{
	(void)state;
	struct memory_ciat_options tiny = {.memory_limit_bytes = 50000};
	for (uint64_t nth = 0; nth < 400; nth++) {
		struct fixture *f = fixture_new(2, 0);
		struct memory_order_options plain = {.disk_latency_ms = -1};
		struct memory_order *o = NULL;
		struct memory_ciat *c = NULL;
		const struct memory_ciat_result *r;
		struct base_err err = {0};
		fixture_allocate(f, 0, 0, 4096, 1, MEMORY_ALLOCATION_HEAP, 1);
		fixture_allocate(f, 0, 4096, 65536, 2, MEMORY_ALLOCATION_HEAP, 1);
		for (unsigned i = 0; i < 64; i++)
			fixture_access(
				f, i & 1, i & 2 ? MEMORY_STORE : MEMORY_LOAD, i * 4096 / 8, 8);
		struct memory_ciat_options big = {.with_reuse = true, .with_functions = true};
		base_alloc_fail_nth(nth);
		enum base_status s = memory_order_new(&f->source, NULL, &plain, &o, &err);
		if (s == BASE_OK)
			s = memory_ciat_new(2, nth ? &big : &tiny, &c, &err);
		struct memory_steps steps;
		while (s == BASE_OK && (s = memory_order_next(o, &steps, &err)) == BASE_OK)
			s = memory_ciat_add(c, &steps, &err);
		if (s == BASE_END)
			s = memory_ciat_finish(c, 0, &r, &err);
		base_alloc_fail_nth(0);
		memory_ciat_free(c);
		memory_order_free(o);
		memory_source_close(&f->source);
		if (!nth)
			assert_int_equal(s, BASE_ERR_LIMIT);
		else if (s == BASE_OK)
			return;
		else
			assert_int_equal(s, BASE_ERR_NOMEM);
		assert_true(err.nr_causes > 0);
	}
	fail_msg("never succeeded");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_strings_and_sizes),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_false_sharing),
		cmocka_unit_test(test_matrix_formula),
		cmocka_unit_test(test_many_accesses),
		cmocka_unit_test(test_brute_force),
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_sampled_reuse),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_heap),
		cmocka_unit_test(test_mapped_anew),
		cmocka_unit_test(test_heap_random),
		cmocka_unit_test(test_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

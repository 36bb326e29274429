/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory_runs.c - the law: loops analysed as a whole are loops analysed access by access. */
#include "memory/cdat/cdat.h"
#include "memory/ciat/ciat.h"
#include "memory_fixture.h"
#include "test.h"

enum { LOOPS = 60, BODY_MAX = 6, ARENA_BYTES = 3 * 4096 };
#define ARENA UINT64_C(0x10000)

struct answer {
	char *tags, *json, *pages;
	uint64_t offered, taken; /* iterations */
	uint64_t heap_accesses;
};

static void free_answer(struct answer *a)
{
	free(a->tags);
	free(a->json);
	free(a->pages);
}

static char *text_of(struct base_str *s)
{
	char *text = strdup(base_str_text(s));
	base_str_fini(s);
	return text;
}

static uint64_t iterations(const struct memory_steps *s)
{
	uint64_t nr = 0;
	for (size_t i = 0; i < s->nr_pieces; i++)
		nr += s->piece[i].end - s->piece[i].begin;
	return nr;
}

static struct answer analyse(struct fixture *f, const struct memory_ciat_options *options,
	const struct memory_order_options *order_options, bool runs)
{
	struct answer a = {0};
	struct memory_order *o;
	struct memory_ciat *c;
	struct base_err err = {0};
	const struct memory_ciat_result *r;
	assert_int_equal(memory_order_new(&f->source, NULL, order_options, &o, &err), BASE_OK);
	assert_int_equal(memory_ciat_new(memory_order_threads(o), options, &c, &err), BASE_OK);
	if (runs)
		assert_int_equal(memory_order_allow_runs(o, &err), BASE_OK);
	for (;;) {
		struct memory_steps steps;
		enum base_status s = memory_order_next(o, &steps, &err);
		if (s == BASE_END)
			break;
		assert_int_equal(s, BASE_OK);
		a.offered += iterations(&steps);
		assert_int_equal(memory_ciat_add(c, &steps, &err), BASE_OK);
		a.taken += iterations(&steps);
	}
	assert_int_equal(memory_ciat_finish(c, 0, &r, &err), BASE_OK);
	struct base_str tags = {0}, pages = {0};
	memory_ciat_tags(&tags, r);
	memory_ciat_usage_file(&pages, r);
	json_t *json = memory_ciat_json(r, &f->source, NULL);
	a.json = json_dumps(json, JSON_SORT_KEYS);
	json_decref(json);
	a.tags = text_of(&tags);
	a.pages = text_of(&pages);
	for (size_t i = 0; i < r->nr_heap; i++)
		a.heap_accesses += (i + 1) * r->heap[i].accesses;
	memory_ciat_free(c);
	memory_order_free(o);
	return a;
}

static struct memory_item random_item(uint64_t *seed, uint32_t thread, unsigned nr_threads)
{
	static const uint16_t sizes[] = {1, 2, 4, 8, 8, 8, 16, 32, 3, 0};
	static const int64_t strides[] = {0, 0, 8, 8, 16, 4, -8, 24, 1, 256};
	uint32_t what = fixture_random(seed) % 16;
	struct memory_item t = {.code = 0x400000 + fixture_random(seed) % 8 * 4,
		.address = ARENA + fixture_random(seed) % ARENA_BYTES,
		.instructions = fixture_random(seed) % 4 != 0 ? 1 + fixture_random(seed) % 2 : 0};
	if (what >= 12) {
		t.kind = (uint8_t)(MEMORY_BLOCK + what % 5);
		t.address = t.code;
		if (t.kind == MEMORY_BLOCK) {
			if (!(fixture_random(seed) % 4)) /* code where data is */
				t.address = ARENA + 65536 + fixture_random(seed) % ARENA_BYTES;
			t.count = 2;
			t.size_bytes = 6;
		}
		return t;
	}
	t.kind = what < 7 ? MEMORY_LOAD : what < 11 ? MEMORY_STORE : MEMORY_ATOMIC;
	t.size_bytes = sizes[fixture_random(seed) % BASE_COUNT(sizes)];
	t.stride_bytes = strides[fixture_random(seed) % BASE_COUNT(strides)];
	if (fixture_random(seed) % 3) /* most have memory of their own, or read all the same */
		t.address += ARENA_BYTES * 2 * (1 + (t.kind == MEMORY_LOAD ? nr_threads : thread));
	if (fixture_random(seed) % 2)
		t.address &= ~UINT64_C(7);
	return t;
}

/* A thread that takes and gives at random waits often, and sometimes for nothing. */
static void random_unit(struct fixture *f, uint32_t thread, uint64_t time_ns, uint64_t *seed)
{
	static const enum memory_call_kind kinds[] = {MEMORY_CALL_lock, MEMORY_CALL_unlock,
		MEMORY_CALL_unlock, MEMORY_CALL_semaphore, MEMORY_CALL_wait, MEMORY_CALL_signal,
		MEMORY_CALL_signal, MEMORY_CALL_signalled};
	enum memory_call_kind kind = kinds[fixture_random(seed) % BASE_COUNT(kinds)];
	fixture_call_at(f, thread, kind, 0x700 + fixture_random(seed) % 3, time_ns, time_ns);
	struct memory_call *call = &f->thread[thread].call[f->thread[thread].nr_calls - 1];
	call->argument[1] = fixture_random(seed) % (kind == MEMORY_CALL_signalled ? 8 : 2);
}

static void random_thread(struct fixture *f, uint32_t thread, unsigned nr_threads, uint64_t *seed)
{
	uint64_t time_ns = 0;
	for (unsigned n = 0; n < LOOPS; n++) {
		uint32_t nr = 1 + fixture_random(seed) % BODY_MAX;
		uint64_t count = 1 + fixture_random(seed) % (n % 4 ? 100 : 3);
		if (n % 8 == 7) { /* all that is shared, again and again: nothing in it is news */
			fixture_put(f, thread,
				(struct memory_item){.kind = MEMORY_REPEAT,
					.address = 1,
					.count = ARENA_BYTES / 8});
			fixture_put(f, thread,
				(struct memory_item){.kind = MEMORY_LOAD,
					.address = ARENA + 65536,
					.size_bytes = 8,
					.stride_bytes = 8,
					.instructions = 1});
		}
		if (f->source.info.flags & MEMORY_SOURCE_SERIAL) {
			time_ns += 1 + fixture_random(seed) % 1000;
			fixture_put(f, thread,
				(struct memory_item){.kind = MEMORY_STAMP, .address = time_ns});
		}
		fixture_put(f, thread,
			(struct memory_item){.kind = MEMORY_REPEAT, .address = nr, .count = count});
		for (uint32_t i = 0; i < nr; i++) {
			struct memory_item t = random_item(seed, thread, nr_threads);
			t.address += t.kind <= MEMORY_ATOMIC ? 65536 : 0; /* room for strides */
			fixture_put(f, thread, t);
		}
		for (uint32_t i = fixture_random(seed) % 4; i > 0; i--)
			fixture_access(f, thread, i % 2 ? MEMORY_LOAD : MEMORY_STORE,
				ARENA + fixture_random(seed) % ARENA_BYTES, 8);
		if (!(fixture_random(seed) % 16))
			fixture_call(f, thread, MEMORY_CALL_barrier, 0x999, nr_threads);
		else if (!(f->source.info.flags & MEMORY_SOURCE_SERIAL) &&
			 !(fixture_random(seed) % 4))
			random_unit(f, thread, 100 * n + fixture_random(seed) % 1000, seed);
	}
}

/* Returns the share of loops' iterations that were taken as a whole. */
static double one_law(unsigned nr_threads, uint32_t flags,
	const struct memory_ciat_options *options, uint64_t seed)
{
	struct fixture *f = fixture_new(nr_threads, flags);
	struct memory_order_options order = {.disk_latency_ms = -1};
	struct base_err err = {0};
	for (uint32_t t = 0; t < nr_threads; t++)
		random_thread(f, t, nr_threads, &seed);
	struct answer one = analyse(f, options, &order, false);
	assert_int_equal(f->source.ops->rewind(&f->source, &err), BASE_OK);
	struct answer all = analyse(f, options, &order, true);
	assert_string_equal(one.tags, all.tags);
	assert_string_equal(one.json, all.json);
	assert_string_equal(one.pages, all.pages);
	assert_int_equal(one.offered, 0);
	double share = all.offered ? (double)all.taken / (double)all.offered : 0;
	free_answer(&one);
	free_answer(&all);
	memory_source_close(&f->source);
	return share;
}

static void test_law(void **state)
{
	(void)state;
	double taken = 0;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct memory_ciat_options o = {.with_functions = seed % 2,
			.without_lines = seed % 5 == 0,
			.location_bytes = 1u << seed % 4,
			.line_bytes = seed % 3 ? 64 : 8};
		taken += one_law(1 + (unsigned)(seed % 5), 0, &o, seed);
		taken += one_law(1 + (unsigned)(seed % 5), MEMORY_SOURCE_SERIAL, &o, seed);
	}
	taken += one_law(40, 0, &(struct memory_ciat_options){0}, 99); /* sets of over 32 */
	assert_true(taken > 10); /* of 81: the law is about something */
}

/* ---- the same of simulated machines: all that is offered is taken, transaction by transaction ---- */

static void keep_detailed(void *ctx, const struct memory_cdat_transaction *t)
{
	memory_cdat_detailed_line(ctx, t, 2);
}

static struct answer simulate(struct fixture *f, const struct memory_cdat_config *config, bool runs,
	bool check, bool traced)
{
	struct answer a = {0};
	struct memory_order_options order = {.disk_latency_ms = -1};
	struct base_str tags = {0}, trace = {0};
	struct memory_cdat_options options = {
		.check = check, .detailed = traced ? keep_detailed : NULL, .trace_ctx = &trace};
	struct memory_order *o;
	struct memory_cdat *c;
	struct base_err err = {0};
	const struct memory_cdat_result *r;
	assert_int_equal(memory_order_new(&f->source, NULL, &order, &o, &err), BASE_OK);
	assert_int_equal(
		memory_cdat_new(config, memory_order_threads(o), &options, &c, &err), BASE_OK);
	if (runs)
		assert_int_equal(memory_order_allow_runs(o, &err), BASE_OK);
	for (;;) {
		struct memory_steps steps;
		enum base_status s = memory_order_next(o, &steps, &err);
		if (s == BASE_END)
			break;
		assert_int_equal(s, BASE_OK);
		a.offered += iterations(&steps);
		assert_int_equal(memory_cdat_add(c, &steps, &err), BASE_OK);
		a.taken += iterations(&steps);
	}
	assert_int_equal(memory_cdat_finish(c, &r, &err), BASE_OK);
	memory_cdat_tags(&tags, r);
	json_t *json = memory_cdat_json(r, config);
	a.json = json_dumps(json, JSON_SORT_KEYS);
	json_decref(json);
	a.tags = text_of(&tags);
	a.pages = text_of(&trace);
	memory_cdat_free(c);
	memory_order_free(o);
	return a;
}

static void test_machines(void **state)
{
	(void)state;
	static const char *const machine[][4] = {
		{"nodes=2", "processors=2"},
		{"nodes=2", "processors=2", "protocol=mesi", "data_bytes=512"},
		{"processors=4", "protocol=dir4", "data_bytes=1024", "data_ways=2"},
		{"processors=4", "cycle_ps=500", "replacement=random", "code_bytes=128"},
		{"processors=4", "second_bytes=4096", "data_bytes=512", "mapping=scatter"},
		{"nodes=2", "processors=2", "interconnect_bytes=1024", "migrate_after=3"},
		{"processors=4", "data_bytes=512", "data_ways=4", "replacement=fifo"},
		{"nodes=2", "processors=2", "mapping=1:0 0:1 0:0 1:1"},
		{"nodes=2", "processors=2", "code_bytes=0", "line_bytes=16"},
	};
	uint64_t taken = 0;
	for (uint64_t seed = 1; seed <= 90; seed++) {
		const char *const *set = machine[seed % BASE_COUNT(machine)];
		unsigned nr_threads = 1 + (unsigned)(seed % 4);
		uint64_t draws = seed;
		struct base_err err = {0};
		struct memory_cdat_config *k = memory_cdat_config_new();
		for (size_t i = 0; i < BASE_COUNT(machine[0]) && set[i]; i++)
			assert_int_equal(memory_cdat_config_set(k, set[i], &err), BASE_OK);
		struct fixture *f = fixture_new(nr_threads, seed % 5 ? 0 : MEMORY_SOURCE_SERIAL);
		for (uint32_t t = 0; t < nr_threads; t++)
			random_thread(f, t, nr_threads, &draws);
		/* Watched, step by step, every request goes the long way; else it may be cut short.
		 */
		struct answer one = simulate(f, k, false, true, seed % 2);
		assert_int_equal(f->source.ops->rewind(&f->source, &err), BASE_OK);
		struct answer all = simulate(f, k, true, seed % 5 == 1, seed % 2);
		assert_string_equal(one.tags, all.tags);
		assert_string_equal(one.json, all.json);
		assert_string_equal(one.pages, all.pages);
		assert_int_equal(all.offered, all.taken);
		taken += all.taken;
		free_answer(&one);
		free_answer(&all);
		memory_source_close(&f->source);
		memory_cdat_config_free(k);
	}
	assert_true(taken > 10000); /* the law is about something */
}

/* Threads that mostly read, what does not fit into their caches: most loads miss, and nobody else
 * could tell when. */
static void random_reader(struct fixture *f, uint32_t thread, uint64_t *seed)
{
	static const int64_t strides[] = {0, 8, 64, -64, 128, 320, 1024, 24};
	for (unsigned n = 0; n < LOOPS; n++) {
		uint32_t nr = 1 + fixture_random(seed) % 4;
		fixture_put(f, thread,
			(struct memory_item){.kind = MEMORY_REPEAT,
				.address = nr,
				.count = 40 + fixture_random(seed) % 160});
		for (uint32_t i = 0; i < nr; i++) {
			uint32_t what = fixture_random(seed) % 64;
			uint64_t place = fixture_random(seed) % 4 ? 0 : 1 + thread;
			struct memory_item t = {.kind = MEMORY_LOAD,
				.code = 0x400000,
				.address = ARENA + (1 + place) * 0x100000 +
					   fixture_random(seed) % 64 * 56,
				.size_bytes = 8,
				.stride_bytes = strides[fixture_random(seed) % BASE_COUNT(strides)],
				.instructions = fixture_random(seed) % 3};
			if (what < 3) { /* to its own, or to what all read */
				t.kind = MEMORY_STORE;
			} else if (what < 12) {
				t.kind = MEMORY_BLOCK;
				t.count = 2;
				t.size_bytes = 6;
				t.address = what < 4 ? t.address : 0x400000 + what * 64;
			}
			fixture_put(f, thread, t);
		}
		fixture_access(f, thread, MEMORY_LOAD, ARENA, 8);
	}
}

static void test_readers(void **state)
{
	(void)state;
	static const char *const machine[][4] = {
		{"nodes=2", "processors=2", "data_bytes=4096"},
		{"nodes=4", "processors=1", "data_bytes=1024", "cycle_ps=500"},
		{"processors=4", "data_bytes=1024", "data_ways=2", "protocol=dir4"},
		{"nodes=2", "processors=2", "data_bytes=1536", "replacement=fifo"},
		{"nodes=2", "processors=2", "data_bytes=512", "data_ways=1"},
		{"nodes=2", "processors=2", "protocol=dirmosi", "allocation=rr1"},
	};
	for (uint64_t seed = 1; seed <= 60; seed++) {
		const char *const *set = machine[seed % BASE_COUNT(machine)];
		unsigned nr_threads = 1 + (unsigned)(seed / 8 % 4);
		uint64_t draws = seed;
		struct base_err err = {0};
		struct memory_cdat_config *k = memory_cdat_config_new();
		for (size_t i = 0; i < BASE_COUNT(machine[0]) && set[i]; i++)
			assert_int_equal(memory_cdat_config_set(k, set[i], &err), BASE_OK);
		struct fixture *f = fixture_new(nr_threads, 0);
		for (uint32_t t = 0; t < nr_threads; t++)
			random_reader(f, t, &draws);
		struct answer one = simulate(f, k, false, true, false);
		assert_int_equal(f->source.ops->rewind(&f->source, &err), BASE_OK);
		struct answer all = simulate(f, k, true, false, false);
		assert_string_equal(one.tags, all.tags);
		assert_string_equal(one.json, all.json);
		assert_true(all.taken > 1000);
		free_answer(&one);
		free_answer(&all);
		memory_source_close(&f->source);
		memory_cdat_config_free(k);
	}
}

/* A loop that stores over its own code. */
static void test_own_code(void **state)
{
	(void)state;
	struct base_err err = {0};
	struct memory_cdat_config *k = memory_cdat_config_new();
	struct fixture *f = fixture_new(1, 0);
	fixture_put(
		f, 0, (struct memory_item){.kind = MEMORY_REPEAT, .address = 2, .count = 40000});
	fixture_put(f, 0,
		(struct memory_item){.kind = MEMORY_BLOCK,
			.code = 0x5a980,
			.address = 0x5a980,
			.size_bytes = 6,
			.count = 2,
			.instructions = 2});
	fixture_put(f, 0,
		(struct memory_item){.kind = MEMORY_STORE,
			.address = 0x20000,
			.size_bytes = 8,
			.stride_bytes = 8});
	struct answer one = simulate(f, k, false, false, false);
	assert_int_equal(f->source.ops->rewind(&f->source, &err), BASE_OK);
	struct answer all = simulate(f, k, true, false, false);
	assert_string_equal(one.tags, all.tags);
	assert_true(all.taken > 30000);
	free_answer(&one);
	free_answer(&all);
	memory_source_close(&f->source);
	memory_cdat_config_free(k);
}

/* Threads that read the same and write their own: all of it is taken as a whole, and only the
 * beginning and the end of loops are steps. */
static void test_taken(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(4, 0);
	struct memory_order_options order = {.disk_latency_ms = -1};
	static const struct memory_ciat_options plain;
	for (uint32_t t = 0; t < 4; t++)
		for (unsigned again = 0; again < 8; again++) {
			fixture_put(f, t,
				(struct memory_item){
					.kind = MEMORY_REPEAT, .address = 2, .count = 1000});
			fixture_put(f, t,
				(struct memory_item){.kind = MEMORY_LOAD,
					.address = 0x10000,
					.size_bytes = 8,
					.stride_bytes = 8,
					.instructions = 1});
			fixture_put(f, t,
				(struct memory_item){.kind = MEMORY_STORE,
					.address = 0x100000 + t * 0x10000,
					.size_bytes = 8,
					.stride_bytes = 8,
					.instructions = 1});
		}
	struct answer a = analyse(f, &plain, &order, true);
	assert_true(a.taken > 4 * 6 * 1000); /* the first round reads what was never written: RAR */
	free_answer(&a);
	memory_source_close(&f->source);
}

/* Nests of loops go over the same places again and again. Thread 0 reads a table, and from time to
 * time thread 1 stores to it, or it is released and another block begins there. */
static void put_loop(struct fixture *f, uint32_t thread, unsigned kind, uint64_t address)
{
	fixture_put(
		f, thread, (struct memory_item){.kind = MEMORY_REPEAT, .address = 1, .count = 512});
	fixture_put(f, thread,
		(struct memory_item){.kind = (uint8_t)kind,
			.code = 0x400000 + kind,
			.address = address,
			.size_bytes = 8,
			.stride_bytes = 8,
			.instructions = 1});
}

static void test_nests(void **state)
{
	(void)state;
	uint64_t taken = 0;
	for (unsigned every = 3; every < 100; every += 30) {
		struct fixture *f = fixture_new(2, 0);
		struct memory_order_options order = {.disk_latency_ms = -1};
		struct memory_ciat_options plain = {.with_functions = true};
		struct base_err err = {0};
		const uint64_t table = 0x20000, own = 0x80000;
		for (unsigned i = 0; i <= 6 * every; i++) {
			/* Before the reader comes to it, so that it is news at once, or after. */
			uint64_t stored = i / every % 2 ? table - 64 : table + 64;
			put_loop(f, 0, MEMORY_LOAD, table);
			put_loop(f, 1, MEMORY_STORE, i % every > 1 ? own : stored);
			if (i % every == every / 2)
				fixture_access(f, 1, MEMORY_STORE, table + 256, 8);
			if (i % every == 1) {
				fixture_call(f, 0, MEMORY_CALL_release, table, 0);
				fixture_call(f, 0, MEMORY_CALL_allocate, table, 4096 + i);
				f->thread[0].call[f->thread[0].nr_calls - 1].argument[2] =
					0x1000 + i;
			}
		}
		struct answer one = analyse(f, &plain, &order, false);
		assert_int_equal(f->source.ops->rewind(&f->source, &err), BASE_OK);
		struct answer all = analyse(f, &plain, &order, true);
		assert_string_equal(one.tags, all.tags);
		assert_string_equal(one.json, all.json);
		assert_string_equal(one.pages, all.pages);
		taken += all.taken;
		assert_true(one.heap_accesses > 10000);
		assert_int_equal(one.heap_accesses, all.heap_accesses);
		free_answer(&one);
		free_answer(&all);
		memory_source_close(&f->source);
	}
	assert_true(taken > 10000);
}

static void test_failures(void **state)
{
	(void)state;
	for (uint64_t nth = 1; nth < 400; nth++) {
		struct fixture *f = fixture_new(3, 0);
		struct memory_order_options plain = {.disk_latency_ms = -1};
		struct memory_ciat_options options = {.with_functions = true};
		struct memory_order *o = NULL;
		struct memory_ciat *c = NULL;
		const struct memory_ciat_result *r;
		struct base_err err = {0};
		uint64_t seed = 7;
		for (uint32_t t = 0; t < 3; t++)
			random_thread(f, t, 3, &seed);
		base_alloc_fail_nth(nth);
		enum base_status s = memory_order_new(&f->source, NULL, &plain, &o, &err);
		if (s == BASE_OK)
			s = memory_order_allow_runs(o, &err);
		if (s == BASE_OK)
			s = memory_ciat_new(3, &options, &c, &err);
		struct memory_steps steps;
		while (s == BASE_OK && (s = memory_order_next(o, &steps, &err)) == BASE_OK)
			s = memory_ciat_add(c, &steps, &err);
		if (s == BASE_END)
			s = memory_ciat_finish(c, 0, &r, &err);
		base_alloc_fail_nth(0);
		memory_ciat_free(c);
		memory_order_free(o);
		memory_source_close(&f->source);
		if (s == BASE_OK)
			return;
		assert_int_equal(s, BASE_ERR_NOMEM);
	}
	fail_msg("never succeeded");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_law),
		cmocka_unit_test(test_machines),
		cmocka_unit_test(test_readers),
		cmocka_unit_test(test_own_code),
		cmocka_unit_test(test_nests),
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_memory_total.c - sources that come in the order in which things happened: it is kept, and
 * cut into phases. Laws on random sequences; what the orders are called.
 */
#include "memory/order/order.h"
#include "memory_fixture.h"
#include "test.h"

enum { THREADS = 4, ITEMS = 3000, TRIALS = 40 };

/* Items of all threads in one row, handed out in batches of one thread. */
struct total {
	struct memory_source source;
	struct memory_item item[ITEMS];
	uint32_t thread[ITEMS];
	struct memory_call call[ITEMS];
	size_t nr, at, nr_calls, batch_max;
};

static enum base_status total_next(
	struct memory_source *s, int thread, struct memory_batch *ret, struct base_err *err)
{
	struct total *t = (struct total *)s;
	size_t nr = 0;
	(void)err;
	assert_int_equal(thread, MEMORY_ANY_THREAD);
	if (t->at == t->nr)
		return BASE_END;
	while (t->at + nr < t->nr && nr < t->batch_max && t->thread[t->at + nr] == t->thread[t->at])
		nr++;
	*ret = (struct memory_batch){.item = t->item + t->at,
		.nr = nr,
		.call = t->call,
		.nr_calls = t->nr_calls,
		.thread = t->thread[t->at]};
	t->at += nr;
	return BASE_OK;
}

static void total_close(struct memory_source *s)
{
	(void)s;
}

static const struct memory_source_ops total_ops = {.next = total_next, .close = total_close};

static void begin(struct total *t)
{
	t->source = (struct memory_source){.ops = &total_ops,
		.info = {.nr_threads = THREADS,
			.flags = MEMORY_SOURCE_TOTAL_ORDER | MEMORY_SOURCE_THREADS,
			.format = "total",
			.unseen = ""}};
	t->nr = t->at = t->nr_calls = 0;
	t->batch_max = MEMORY_BATCH_MAX;
}

static void one_access(struct total *t, uint32_t thread, uint64_t address)
{
	t->thread[t->nr] = thread;
	t->item[t->nr++] = (struct memory_item){
		.kind = MEMORY_LOAD, .address = address, .size_bytes = 4, .instructions = 3};
}

static void call(
	struct total *t, uint32_t thread, enum memory_call_kind kind, uint64_t a, uint64_t b)
{
	t->call[t->nr_calls] = (struct memory_call){.kind = (uint8_t)kind, .argument = {a, b}};
	t->thread[t->nr] = thread;
	t->item[t->nr++] = (struct memory_item){.kind = MEMORY_CALL, .address = t->nr_calls++};
}

/* ---- phases ---------------------------------------------------------------------------------- */

struct phase {
	enum memory_phase_kind kind;
	uint64_t region, nr_accesses;
};

/* Goes through all steps: each item once, in its turn, in a phase, of a thread that runs. */
static size_t play(struct total *t, bool starts_parallel, struct phase *phase, size_t max)
{
	const struct memory_order_options options = {.starts_parallel = starts_parallel};
	struct memory_order *o;
	struct base_err err = {0};
	bool active[THREADS] = {false}, is_open = false;
	size_t nr_phases = 0, item = 0;
	assert_int_equal(memory_order_new(&t->source, NULL, &options, &o, &err), BASE_OK);
	assert_string_equal(memory_order_sentence(o), "the order of accesses is the recorded one");
	for (;;) {
		struct memory_steps steps;
		const enum base_status s = memory_order_next(o, &steps, &err);
		if (s == BASE_END)
			break;
		assert_int_equal(s, BASE_OK);
		for (size_t i = 0; i < steps.nr; i++) {
			const struct memory_step *x = &steps.step[i];
			if (x->kind == MEMORY_STEP_PHASE_BEGIN) {
				assert_false(is_open);
				is_open = true;
				assert_true(nr_phases < max);
				phase[nr_phases++] =
					(struct phase){.kind = (enum memory_phase_kind)x->address,
						.region = x->count};
			} else if (x->kind == MEMORY_STEP_PHASE_END) {
				assert_true(is_open);
				is_open = false;
				assert_int_equal(x->address, phase[nr_phases - 1].kind);
			} else if (x->kind == MEMORY_STEP_ACTIVE) {
				assert_true(is_open && !active[x->thread]);
				active[x->thread] = true;
			} else if (x->kind == MEMORY_STEP_IDLE) {
				assert_true(active[x->thread]);
				active[x->thread] = false;
			} else {
				assert_true(item < t->nr && is_open && active[x->thread]);
				assert_int_equal(x->thread, t->thread[item]);
				assert_int_equal(x->kind, t->item[item].kind);
				if (x->kind == MEMORY_CALL) {
					assert_int_equal(steps.call[x->call].kind,
						t->call[t->item[item].address].kind);
				} else {
					assert_int_equal(x->address, t->item[item].address);
					phase[nr_phases - 1].nr_accesses++;
				}
				item++;
			}
		}
	}
	assert_int_equal(item, t->nr);
	assert_false(is_open);
	for (int i = 0; i < THREADS; i++)
		assert_false(active[i]);
	memory_order_free(o);
	return nr_phases;
}

static void assert_phases(
	struct total *t, bool starts_parallel, const struct phase *expected, size_t nr)
{
	struct phase phase[16];
	t->at = 0;
	assert_int_equal(play(t, starts_parallel, phase, BASE_COUNT(phase)), nr);
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(phase[i].kind, expected[i].kind);
		assert_int_equal(phase[i].region, expected[i].region);
		assert_int_equal(phase[i].nr_accesses, expected[i].nr_accesses);
	}
}

/* Parallel from the first creation to the last join; sections of main's own making. */
static void test_phases(void **state)
{
	static const struct phase serial = {MEMORY_PHASE_SERIAL, 0, 1};
	static struct total t;
	(void)state;
	begin(&t);
	one_access(&t, 0, 64);
	call(&t, 0, MEMORY_CALL_thread_create, 1, 0);
	one_access(&t, 1, 128);
	call(&t, 0, MEMORY_CALL_thread_create, 2, 0);
	one_access(&t, 2, 192);
	call(&t, 0, MEMORY_CALL_thread_join, 1, 0);
	one_access(&t, 0, 64);
	call(&t, 0, MEMORY_CALL_thread_join, 2, 0);
	one_access(&t, 0, 64);
	const struct phase created[] = {serial, {MEMORY_PHASE_PARALLEL, 1, 3}, serial};
	assert_phases(&t, false, created, 3);
	const struct phase whole = {MEMORY_PHASE_PARALLEL, 0, 5};
	assert_phases(&t, true, &whole, 1);
	begin(&t);
	one_access(&t, 0, 64);
	call(&t, 0, MEMORY_CALL_spawn, 77, 0);
	one_access(&t, 1, 64);
	call(&t, 1, MEMORY_CALL_join, 0, 0); /* main's counts */
	one_access(&t, 2, 64);
	call(&t, 0, MEMORY_CALL_join, 0, 0);
	one_access(&t, 0, 64);
	call(&t, 0, MEMORY_CALL_join, 0, 0); /* once more is nothing */
	one_access(&t, 0, 64);
	const struct phase spawned[] = {
		serial, {MEMORY_PHASE_PARALLEL, 77, 2}, {MEMORY_PHASE_SERIAL, 0, 2}};
	assert_phases(&t, false, spawned, 3);
	begin(&t);
	one_access(&t, 0, 64);
	call(&t, 0, MEMORY_CALL_marker, 0, 5);
	one_access(&t, 0, 64);
	one_access(&t, 0, 64);
	call(&t, 1, MEMORY_CALL_marker, 0, 6); /* main's count, */
	call(&t, 0, MEMORY_CALL_marker, 1, 7); /* and those without a command */
	one_access(&t, 1, 64);
	call(&t, 0, MEMORY_CALL_phase, 9, 8);
	one_access(&t, 0, 64);
	const struct phase marked[] = {
		serial, {MEMORY_PHASE_USER, 5, 3}, {MEMORY_PHASE_USER, 8, 1}};
	assert_phases(&t, false, marked, 3);
	assert_phases(&t, true,
		(const struct phase[]){{MEMORY_PHASE_PARALLEL, 0, 1}, marked[1], marked[2]}, 3);
}

/* Whatever the order and the batches. */
static void test_order_is_kept(void **state)
{
	static struct total t;
	static struct phase phase[ITEMS];
	(void)state;
	for (uint64_t seed = 1; seed <= TRIALS; seed++) {
		uint64_t s = seed;
		begin(&t);
		t.batch_max = 1 + fixture_random(&s) % 5;
		for (unsigned i = 0; i < ITEMS - 1; i++) {
			const uint32_t thread = fixture_random(&s) % THREADS;
			static const enum memory_call_kind kind[] = {MEMORY_CALL_marker,
				MEMORY_CALL_spawn, MEMORY_CALL_join, MEMORY_CALL_thread_create,
				MEMORY_CALL_thread_join, MEMORY_CALL_barrier};
			if (fixture_random(&s) % 16)
				one_access(&t, thread, 4 * (fixture_random(&s) % 1000));
			else
				call(&t, thread, kind[fixture_random(&s) % BASE_COUNT(kind)],
					fixture_random(&s) % 2, 1);
		}
		play(&t, seed % 2, phase, ITEMS);
	}
}

static void test_a_thread_too_many(void **state)
{
	static struct total t;
	struct memory_order *o;
	struct memory_steps steps;
	struct base_err err = {0};
	(void)state;
	begin(&t);
	one_access(&t, THREADS, 64);
	const struct memory_order_options options = {0};
	assert_int_equal(memory_order_new(&t.source, NULL, &options, &o, &err), BASE_OK);
	assert_int_equal(memory_order_next(o, &steps, &err), BASE_ERR_CORRUPT);
	memory_order_free(o);
}

/* ---- which orders there are ------------------------------------------------------------------ */

static void test_orders(void **state)
{
	static const struct {
		uint32_t nr_threads, flags;
		struct memory_order_options options;
		const char *begins; /* NULL: refused */
	} row[] = {
		{1, 0, {0}, "one thread: its own order"},
		{2, 0, {0},
			"threads were interleaved by pseudo clocks (an instruction is a cycle), as "
			"if they ran equally fast"},
		{2, 0, {.mode = MEMORY_ORDER_TIME}, "threads were interleaved by recorded times"},
		{2, MEMORY_SOURCE_SERIAL, {0},
			"the order of accesses is the recorded one: one thread"},
		{2, MEMORY_SOURCE_SERIAL, {.mode = MEMORY_ORDER_PSEUDO},
			"threads were interleaved by pseudo clocks (an instruction is a cycle), as "
			"if they ran side"},
		{2, 0, {.mode = MEMORY_ORDER_SLICES, .nr_processors = 1},
			"processes were interleaved slice by slice"},
		{1, 0, {.mode = MEMORY_ORDER_ROUND_ROBIN, .nr_processors = 2},
			"processes were interleaved in turns"},
		{2, 0, {.mode = MEMORY_ORDER_SLICES}, NULL},
		{2, 0, {.mode = MEMORY_ORDER_SLICES, .nr_processors = MEMORY_THREADS_MAX + 1},
			NULL},
		{2, MEMORY_SOURCE_TOTAL_ORDER, {.mode = MEMORY_ORDER_SLICES, .nr_processors = 1},
			NULL},
		{2, MEMORY_SOURCE_TOTAL_ORDER, {.mode = MEMORY_ORDER_PSEUDO}, NULL},
		{2, MEMORY_SOURCE_TOTAL_ORDER, {.mode = MEMORY_ORDER_TIME},
			"the order of accesses is the recorded one"},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct fixture *f = fixture_new(row[i].nr_threads, row[i].flags);
		struct memory_order *o = NULL;
		struct base_err err = {0};
		const enum base_status s =
			memory_order_new(&f->source, NULL, &row[i].options, &o, &err);
		assert_int_equal(s, row[i].begins ? BASE_OK : BASE_ERR_USAGE);
		if (o)
			assert_memory_equal(
				memory_order_sentence(o), row[i].begins, strlen(row[i].begins));
		memory_order_free(o);
		fixture_close(&f->source);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_order_is_kept),
		cmocka_unit_test(test_a_thread_too_many),
		cmocka_unit_test(test_orders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

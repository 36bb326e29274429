/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_samples.c - which function a state's time went to, and what a running state is called
 * after it.
 */
#include "model/model.h"
#include "model_fixture.h"

#include <string.h>

static void sampled(struct bench *b, uint64_t at, uint32_t by, uint32_t where, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		PUT(b, at + i, by, sample, .site = where);
}

static bool is_named(struct bench *b, const char *name)
{
	for (uint32_t i = 0; i < 64; i++) /* (unknown ones are "?") */
		if (!strcmp(model_state(b->model, i)->name, name))
			return true;
	return false;
}

/* Two workers of one role: where their samples were, by thread. */
static void run_workers(struct bench *b, const unsigned first[2], const unsigned second[2])
{
	start(b);
	uint32_t worker = site(b, "worker"), match = site(b, "match"), emit = site(b, "emit");
	spawn(b, 2, worker);
	sampled(b, 100, 2, match, first[0]);
	sampled(b, 200, 2, emit, first[1]);
	PUT(b, 350, 1, join_wait, .handle = 2000, .site = worker);
	PUT(b, 400, 2, thread_end);
	PUT(b, 410, 1, join_done, .handle = 2000);
	sampled(b, 500, 3, match, second[0]);
	sampled(b, 600, 3, emit, second[1]);
	PUT(b, 700, 1, join_wait, .handle = 2001, .site = worker);
	PUT(b, 800, 3, thread_end);
	PUT(b, 810, 1, join_done, .handle = 2001);
	end(b, 900);
}

/* No function has half of the samples, two together have: both name it, and are what it is about. */
static void two_functions_name_a_state(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t worker = site(&b, "worker");
	spawn(&b, 1, worker);
	sampled(&b, 100, 2, site(&b, "match"), 40);
	sampled(&b, 200, 2, site(&b, "emit"), 30);
	sampled(&b, 300, 2, site(&b, "read"), 20);
	sampled(&b, 350, 2, site(&b, "sort"), 20);
	PUT(&b, 400, 2, thread_end);
	end(&b, 900);
	assert_true(is_named(&b, "running match and emit"));
	unsigned nr = 0;
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b.model)); i++) {
		const struct model_state *st = model_state(b.model, i);
		if (st->cause != MODEL_CAUSE_run_functions)
			continue;
		uint32_t other = model_state_argument(st, MODEL_ARGUMENT_other_function);
		assert_string_equal(model_text(b.model, other), "emit");
		nr++;
	}
	assert_int_equal(nr, 1);
	finish(&b);
}

/* One does a bit more of this, the other of that: one name. */
static void equal_threads_have_equal_names(void **state)
{
	(void)state;
	struct bench b;
	run_workers(&b, (unsigned[]){48, 52}, (unsigned[]){60, 40});
	assert_true(is_named(&b, "running match"));
	assert_false(is_named(&b, "running emit"));
	finish(&b);
	run_workers(&b, (unsigned[]){60, 0}, (unsigned[]){0, 50}); /* they surely differ */
	assert_true(is_named(&b, "running match"));
	assert_true(is_named(&b, "running emit"));
	finish(&b);
}

/*
 * Two workers that are in the same functions, but for their data's sake in one of them more: no two
 * functions have half of all samples, and yet neither worker has a name of its own. A fifth
 * function that only one of them is in makes it another.
 */
static void workers_with_other_data(struct bench *b, bool same)
{
	enum { FUNCTIONS = 5 };
	static const char *const text[FUNCTIONS] = {"scan", "sort", "code", "emit", "hash"};
	static const unsigned mixed[2][FUNCTIONS] = {{40, 20, 20, 15, 5}, {10, 20, 20, 20, 30}},
			      apart[2][FUNCTIONS] = {{15, 15, 10, 10, 50}, {20, 20, 30, 30}};
	start(b);
	uint32_t worker = site(b, "worker"), where[FUNCTIONS];
	for (unsigned f = 0; f < FUNCTIONS; f++)
		where[f] = site(b, text[f]);
	spawn(b, 2, worker);
	for (uint32_t i = 0; i < 2; i++) {
		for (unsigned f = 0; f < FUNCTIONS; f++)
			sampled(b, 1000 * i + 100 * f + 100, 2 + i, where[f],
				(same ? mixed : apart)[i][f]);
		PUT(b, 1000 * i + 650, 1, join_wait, .handle = 2000 + i, .site = worker);
		PUT(b, 1000 * i + 700, 2 + i, thread_end);
		PUT(b, 1000 * i + 710, 1, join_done, .handle = 2000 + i);
	}
	end(b, 2000);
}

static void other_data_is_no_other_work(void **state)
{
	(void)state;
	struct bench b;
	workers_with_other_data(&b, true);
	assert_true(is_named(&b, "running after worker"));
	assert_false(is_named(&b, "running scan and sort"));
	assert_false(is_named(&b, "running hash and sort"));
	finish(&b);
	workers_with_other_data(&b, false);
	assert_true(is_named(&b, "running hash"));
	finish(&b);
}

/* None of a few samples is in the function that made the last recorded call: it is not what runs.
 */
static void few_samples_say_what_does_not_run(void **state)
{
	(void)state;
	struct bench b;
	static const char *const text[] = {"scan", "sort", "code", "emit", "hash", "copy"};
	for (unsigned nr = 0; nr <= 6; nr += 6) {
		start(&b);
		uint32_t worker = site(&b, "worker");
		spawn(&b, 2, worker);
		for (unsigned f = 0; f < nr; f++)
			sampled(&b, 100 + f, 2, site(&b, text[f]), 1);
		PUT(&b, 400, 2, thread_end);
		end(&b, 500);
		assert_int_equal(is_named(&b, "running after worker"), nr > 0);
		finish(&b);
	}
}

/* What both did says with less error what each did, unless one surely did something else. */
static void equal_threads_share_samples(void **state)
{
	(void)state;
	struct bench b;
	size_t nr;
	run_workers(&b, (unsigned[]){48, 52}, (unsigned[]){52, 48});
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b.model)); i++) {
		const struct model_function_share *f = model_functions(b.model, i, &nr);
		assert_true(!nr || (nr == 2 && f[0].nr_samples == 100));
	}
	finish(&b);
	run_workers(&b, (unsigned[]){30, 70}, (unsigned[]){70, 30});
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b.model)); i++) {
		const struct model_function_share *f = model_functions(b.model, i, &nr);
		assert_true(!nr || (nr == 2 && f[0].nr_samples == 70));
	}
	finish(&b);
}

/* Samples of the program's own code in a system call met its way in and out: they do not say what
 * the call's time was. The kernel's do. */
static void a_calls_time_is_the_kernels(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process_of(&b, "prog", 0, 100),
		 text[] = {string(&b, "write"), string(&b, "copy")},
		 path[] = {string(&b, "/lib/libc.so"), string(&b, "[kernel]")};
	stream(&b, p);
	for (uint32_t i = 0; i < 2; i++) {
		PUT(&b, 0, 0, module, .module = i + 1, .path = path[i]);
		PUT(&b, 0, 0, site, .site = i + 1, .module = i + 1, .offset = 64);
		PUT(&b, 0, 0, symbol, .site = i + 1, .function = text[i]);
	}
	uint32_t file = object(&b, TRACE_OBJECT_file, "/tmp/x", 0);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 100, 1, sample, .site = 1);
	PUT(&b, 200, 1, io_begin, .object = file, .op = TRACE_IO_write, .n = 10);
	PUT(&b, 300, 1, sample, .site = 1);
	PUT(&b, 400, 1, sample, .site = 2);
	PUT(&b, 900, 1, io_end, .object = file, .op = TRACE_IO_write, .result = 10);
	end(&b, 1000);
	unsigned nr_run = 0, nr_call = 0;
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b.model)); i++) {
		size_t nr;
		const struct model_function_share *f = model_functions(b.model, i, &nr);
		enum model_state_kind kind = model_state(b.model, i)->kind;
		for (size_t k = 0; k < nr; k++)
			assert_string_equal(
				f[k].function, kind == MODEL_STATE_io ? "copy" : "write");
		nr_run += kind == MODEL_STATE_run && nr;
		nr_call += kind == MODEL_STATE_io && nr;
	}
	assert_int_equal(nr_run, 1);
	assert_int_equal(nr_call, 1);
	finish(&b);
}

/* A function of the recorder's library has the name of the one that it stands for, and is not it.
 */
static void the_recorder_is_told_from_the_program(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process_of(&b, "prog", 0, 100), text = string(&b, "put"),
		 path[] = {string(&b, "/lib/libx.so"),
			 string(&b, "/usr/lib/longpole/liblongpole-preload.so")};
	stream(&b, p);
	for (uint32_t i = 0; i < 2; i++) {
		PUT(&b, 0, 0, module, .module = i + 1, .path = path[i]);
		PUT(&b, 0, 0, site, .site = i + 1, .module = i + 1, .offset = 64);
		PUT(&b, 0, 0, symbol, .site = i + 1, .function = text);
	}
	PUT(&b, 0, 1, process_begin, .token = 0);
	for (uint32_t i = 0; i < 100; i++)
		PUT(&b, 10 * i, 1, sample, .site = i % 4 ? 1 : 2);
	end(&b, 1000);
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b.model)); i++) {
		size_t nr;
		const struct model_function_share *f = model_functions(b.model, i, &nr);
		if (!nr)
			continue;
		assert_int_equal(nr, 2);
		assert_string_equal(f[0].function, "put");
		assert_int_equal(f[0].nr_samples, 75);
		assert_string_equal(f[1].function, "");
		assert_string_equal(f[1].where, "longpole's recorder");
	}
	assert_true(is_named(&b, "running put"));
	finish(&b);
}

/* Work, then a fourth of the time finish, in which every other sample is lost, and in every other
 * visit another thread has the processor meanwhile. A sample itself takes some time, half of it
 * before its stamp. */
static void share_of_time(unsigned cost_ns)
{
	enum { VISITS = 320, PARTS = 16, PART_NS = 100, AWAY_NS = 777, FINISH = 12 };
	struct bench b;
	start(&b);
	uint32_t worker = site(&b, "worker"), work = site(&b, "work"), done = site(&b, "finish");
	uint32_t lock = object(&b, TRACE_OBJECT_mutex, "big_lock", 0);
	if (cost_ns)
		PUT(&b, 0, 0, cost, .cost = 1, .name = string(&b, TRACE_COST_SAMPLES), .n = VISITS,
			.total_ns = (uint64_t)VISITS * cost_ns);
	uint64_t at = 100;
	spawn(&b, 2, worker);
	PUT(&b, at, 2, lock_acquire, .object = lock, .site = worker);
	for (unsigned i = 0; i < VISITS; i++) {
		unsigned part = i * 7 % PARTS;
		PUT(&b, at + 1, 2, lock_release, .object = lock, .site = worker);
		at += 1;
		uint64_t sample_ns = at + part * PART_NS + PART_NS / 2 + cost_ns / 2;
		bool lost = part >= FINISH && i / PARTS % 2, preempted = i % 3 == 0;
		if (!lost && (!preempted || part < 5))
			PUT(&b, sample_ns, 2, sample, .site = part < FINISH ? work : done);
		if (preempted) {
			PUT(&b, at + 5 * PART_NS, 2, cpu_out, .processor = 0, .preempted = 1);
			at += AWAY_NS;
			PUT(&b, at + 5 * PART_NS, 2, cpu_in, .processor = 0);
			if (!lost && part >= 5)
				PUT(&b, sample_ns + AWAY_NS, 2, sample,
					.site = part < FINISH ? work : done);
		}
		at += PARTS * PART_NS + (lost ? 0 : cost_ns);
		PUT(&b, at, 2, lock_acquire, .object = lock, .site = worker);
	}
	PUT(&b, at + 1, 2, lock_release, .object = lock, .site = worker);
	PUT(&b, at + 2, 2, thread_end);
	end(&b, at + 100);
	unsigned seen = 0;
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b.model)); i++) {
		size_t nr;
		const struct model_function_share *f = model_functions(b.model, i, &nr);
		if (!nr)
			continue;
		seen++;
		assert_int_equal(nr, 2);
		assert_int_equal(f[0].nr_samples, VISITS * 3 / 4);
		assert_int_equal(f[1].nr_samples, VISITS / 8);
		assert_float_equal(f[0].share, 0.75, 1e-9);
		assert_float_equal(f[1].share, 0.25, 1e-9);
		assert_true(f[1].share_low < 0.25 && f[1].share_low > 0.2);
	}
	assert_true(seen > 0);
	finish(&b);
}

static void share_is_of_time_and_not_of_samples(void **state)
{
	(void)state;
	share_of_time(0);
	share_of_time(240);
}

/* Fewer samples than the time should have: the rest of it was in the kernel. Only where it is known
 * when the thread had a processor. */
static void what_is_not_sampled_is_the_kernels(void **state)
{
	(void)state;
	for (unsigned switches = 0; switches < 2; switches++) {
		struct bench b;
		bool seen = false;
		start(&b);
		PUT(&b, 0, 0, cost, .cost = 1, .name = string(&b, TRACE_COST_SAMPLES), .n = 40,
			.method = string(&b,
				"measured before the program ran; 100000000 a second")); /* one in
											    10 ns */
		PUT(&b, 0, 0, cost, .cost = 2, .name = string(&b, TRACE_COST_SWITCHES),
			.n = switches);
		uint32_t worker = site(&b, "worker"), match = site(&b, "match");
		spawn(&b, 1, worker);
		for (unsigned i = 0; i < 40; i++)
			PUT(&b, 20 + 25 * i, 2, sample, .site = match);
		PUT(&b, 1015, 2, thread_end);
		end(&b, 1100);
		for (uint32_t i = 0; i < graph_nr_states(model_graph(b.model)); i++) {
			size_t nr;
			const struct model_function_share *f = model_functions(b.model, i, &nr);
			for (size_t k = 0; k < nr; k++) {
				bool kernel = !strcmp(f[k].where, "the kernel (not sampled)");
				seen |= kernel;
				if (nr == 2)
					assert_float_equal(
						f[k].share, (kernel ? 0.6F : 0.4F), 0.01F);
			}
		}
		assert_int_equal(seen, switches);
		assert_int_equal(is_named(&b, "running after worker"), switches);
		assert_int_equal(is_named(&b, "running match"), !switches);
		finish(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_functions_name_a_state),
		cmocka_unit_test(equal_threads_have_equal_names),
		cmocka_unit_test(other_data_is_no_other_work),
		cmocka_unit_test(few_samples_say_what_does_not_run),
		cmocka_unit_test(equal_threads_share_samples),
		cmocka_unit_test(a_calls_time_is_the_kernels),
		cmocka_unit_test(the_recorder_is_told_from_the_program),
		cmocka_unit_test(share_is_of_time_and_not_of_samples),
		cmocka_unit_test(what_is_not_sampled_is_the_kernels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

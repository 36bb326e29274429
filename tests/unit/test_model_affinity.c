/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_affinity.c - which processors a sink is told that threads may run on; where threads
 * begin and end on processors; samples in loops that wait. */
#include "model/model.h"
#include "model_fixture.h"

enum { SETS = 16, ACTORS = 16, NOT_SAID = 99 };

struct heard {
	uint64_t set[SETS][2]; /* processors below 128 */
	uint32_t nr_sets, of[ACTORS];
	struct graph_sink sink;
};

static enum base_status hear_verb(void *ctx, enum graph_verb_kind kind, const struct graph_verb *v,
	uint32_t from_actor, struct base_err *err)
{
	(void)ctx, (void)kind, (void)v, (void)from_actor, (void)err;
	return BASE_OK;
}

static enum base_status hear_set(
	void *ctx, uint32_t set, const uint64_t *bits, size_t nr_words, struct base_err *err)
{
	struct heard *h = ctx;
	(void)err;
	assert_int_equal(set, h->nr_sets);
	assert_true(set < SETS && nr_words);
	for (size_t i = 0; i < nr_words && i < 2; i++)
		h->set[set][i] = bits[i];
	h->nr_sets++;
	return BASE_OK;
}

static enum base_status hear_affinity(void *ctx, uint32_t actor, uint32_t set, struct base_err *err)
{
	struct heard *h = ctx;
	(void)err;
	assert_true(actor < ACTORS && set < h->nr_sets);
	h->of[actor] = set;
	return BASE_OK;
}

static void listen(struct bench *b, struct heard *h)
{
	*h = (struct heard){.sink = {.ctx = h,
				    .verb = hear_verb,
				    .processor_set = hear_set,
				    .affinity = hear_affinity}};
	for (unsigned i = 0; i < ACTORS; i++)
		h->of[i] = NOT_SAID;
	b->options.sink = &h->sink;
}

/* Of that stream; 0: nothing was said. */
static uint64_t may_use(const struct bench *b, const struct heard *h, uint32_t stream)
{
	uint32_t set = h->of[model_stream_actor(b->model, stream)];
	return set == NOT_SAID ? 0 : h->set[set][0];
}

static void says(
	struct bench *b, uint64_t t, uint32_t stream, uint64_t whose, uint64_t id, const char *list)
{
	uint32_t text = *list ? string(b, list) : 0;
	PUT(b, t, stream, affinity, .whose = whose, .id = id, .processors = text);
}

/* Own, by tid, by handle, by token; a thread begins with its maker's. */
static void test_whose(void **state)
{
	struct bench b;
	struct heard h;
	(void)state;
	start(&b);
	uint32_t where = site(&b, "f");
	uint32_t p = process_of(&b, "prog", 0, 100);
	for (unsigned i = 0; i < 5; i++)
		stream(&b, p);
	PUT(&b, 0, 1, process_begin, .token = 0);
	says(&b, 0, 1, TRACE_WHOSE_own, 0, "0-3");
	PUT(&b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	for (unsigned i = 0; i < 3; i++) { /* streams 2, 3, 4 */
		PUT(&b, 10 * (i + 1), 1, thread_create, .token = i + 1, .site = where);
		if (i == 2)
			says(&b, 31, 1, TRACE_WHOSE_token, 3, "2");
		PUT(&b, 10 * (i + 1) + 5, 2 + i, thread_begin, .token = i + 1, .handle = 2000 + i,
			.site = where);
	}
	says(&b, 50, 1, TRACE_WHOSE_handle, 2000, "1,3");
	says(&b, 51, 2, TRACE_WHOSE_handle, 7777, "0");           /* of nobody */
	says(&b, 52, 1, TRACE_WHOSE_tid, 99999, "0");             /* of nobody */
	says(&b, 53, 1, 77, 0, "0-1");                            /* not a way to say it: its own */
	PUT(&b, 60, 4, thread_create, .token = 9, .site = where); /* by the one that is tied */
	PUT(&b, 65, 5, thread_begin, .token = 9, .handle = 2009, .site = where);
	listen(&b, &h);
	end(&b, 100);
	assert_int_equal(may_use(&b, &h, 1), 0x3);
	assert_int_equal(may_use(&b, &h, 2), 0xa);
	assert_int_equal(may_use(&b, &h, 3), 0xf);
	assert_int_equal(may_use(&b, &h, 4), 0x4);
	assert_int_equal(may_use(&b, &h, 5), 0x4);
	finish(&b);
}

/* Lists as the kernel writes them, and what no kernel writes. */
static void test_lists(void **state)
{
	static const struct {
		const char *list;
		uint64_t low, high;
		bool is_none;
	} lists[] = {
		{"0", 1, 0, false},
		{"0-3,8", 0x10f, 0, false},
		{"63-64", UINT64_C(1) << 63, 1, false},
		{"5,5,5", 0x20, 0, false},
		{"1,,2", 0x2, 0, false},
		{"1-", 0x2, 0, false},
		{"2-x", 0x4, 0, false},
		{"3-1", 0, 0, true},
		{"x", 0, 0, true},
		{"-1", 0, 0, true},
		{"99999999999999999999999", 0, 0, true},
		{"0-99999999999999999999999", UINT64_MAX, UINT64_MAX, false},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(lists); i++) {
		struct bench b;
		struct heard h;
		start(&b);
		spawn(&b, 1, site(&b, "f"));
		says(&b, 40, 2, TRACE_WHOSE_own, 0, lists[i].list);
		listen(&b, &h);
		end(&b, 100);
		assert_int_equal(h.nr_sets, !lists[i].is_none);
		assert_true(h.set[0][0] == lists[i].low && h.set[0][1] == lists[i].high);
		finish(&b);
	}
}

/* chrt and taskset are programs of the same process: what they could use before counts no more. */
static void test_before_exec(void **state)
{
	struct bench b;
	struct heard h;
	(void)state;
	start(&b);
	uint32_t before = process_of(&b, "taskset", 0, 100);
	uint32_t after = process_of(&b, "prog", before, 100);
	stream(&b, before);
	stream(&b, after);
	PUT(&b, 0, 1, process_begin, .token = 0);
	says(&b, 0, 1, TRACE_WHOSE_own, 0, "0-7");
	PUT(&b, 5, 1, process_exec, .site = site(&b, "main"));
	PUT(&b, 10, 2, process_begin, .token = 0);
	says(&b, 10, 2, TRACE_WHOSE_own, 0, "4");
	PUT(&b, 90, 2, thread_end);
	PUT(&b, 90, 2, process_end, .status = 0);
	listen(&b, &h);
	analyse(&b);
	assert_int_equal(may_use(&b, &h, 1), 0x10);
	assert_int_equal(may_use(&b, &h, 2), 0x10);
	finish(&b);
}

/* Main, on processor 0, makes two threads, and waits for one of them while the first one begins. */
static uint32_t main_joins(struct bench *b, uint64_t handle, uint64_t processor)
{
	start(b);
	uint32_t where = site(b, "f"), p = process_of(b, "prog", 0, 100);
	begin_threads(b, p, 3);
	PUT(b, 10, 1, thread_create, .token = 1, .site = where);
	PUT(b, 20, 1, thread_create, .token = 2, .site = where);
	PUT(b, 30, 1, join_wait, .handle = handle, .site = where);
	PUT(b, 31, 1, cpu_out, .processor = 0, .preempted = 0);
	PUT(b, 32, 2, cpu_in, .processor = processor);
	return where;
}

/*
 * Both threads have one processor. The second one's first time on it is shown before the thread has
 * said that it begins, and the first one's last leaving is not shown: the second one waited for the
 * first one's work, not for whoever made it.
 */
static void test_begins_when_another_has_ended(void **state)
{
	struct bench b;
	(void)state;
	uint32_t where = main_joins(&b, 2001, 0);
	PUT(&b, 33, 2, thread_begin, .token = 1, .handle = 2000, .site = where);
	PUT(&b, 500033, 2, thread_end);
	PUT(&b, 500040, 3, cpu_in, .processor = 0);
	PUT(&b, 500041, 3, thread_begin, .token = 2, .handle = 2001, .site = where);
	PUT(&b, 700041, 3, thread_end);
	PUT(&b, 700050, 1, cpu_in, .processor = 0);
	PUT(&b, 700051, 1, join_done, .handle = 2001);
	b.is_otherwise_in_replay = true;
	end(&b, 700060);
	assert_true(on_path(&b, "start of a thread") < 100);
	assert_true(on_path(&b, "running") > 690000);
	finish(&b);
}

/*
 * Two threads, a processor each; the main thread joins the longer one, and comes to the processor
 * on which the shorter one had ended long before: it did not wait for that one.
 */
static void test_joins_where_another_ended_long_ago(void **state)
{
	struct bench b;
	(void)state;
	uint32_t where = main_joins(&b, 2000, 1);
	PUT(&b, 33, 2, thread_begin, .token = 1, .handle = 2000, .site = site(&b, "longer"));
	PUT(&b, 34, 3, cpu_in, .processor = 0);
	PUT(&b, 35, 3, thread_begin, .token = 2, .handle = 2001, .site = site(&b, "shorter"));
	PUT(&b, 500000, 3, thread_end);
	PUT(&b, 900000, 2, thread_end);
	PUT(&b, 900050, 1, cpu_in, .processor = 0);
	PUT(&b, 900051, 1, join_done, .handle = 2000);
	PUT(&b, 900060, 1, join_wait, .handle = 2001, .site = where);
	PUT(&b, 900070, 1, join_done, .handle = 2001);
	end(&b, 900080);
	assert_true(on_path(&b, "longer") > 890000);
	assert_true(on_path(&b, "idle") < 100);
	finish(&b);
}

/* Three of four samples are in a loop that waits, whatever the site's function does beside. */
static void test_samples_in_waits(void **state)
{
	struct bench b;
	(void)state;
	start(&b);
	spawn(&b, 1, site(&b, "f"));
	uint32_t poll = site(&b, "poll"), work = site(&b, "poll"), word = string(&b, "ready");
	PUT(&b, 0, 0, wait_loop, .site = poll, .word = word, .begin = 64);
	for (unsigned i = 0; i < 40; i++)
		PUT(&b, 100 + 10 * i, 2, sample, .site = i % 4 ? poll : work);
	PUT(&b, 600, 2, thread_end);
	PUT(&b, 610, 1, join_wait, .handle = 2000, .site = work);
	PUT(&b, 620, 1, join_done, .handle = 2000);
	end(&b, 700);
	unsigned nr = 0;
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b.model)); i++) {
		struct model_spin s = model_state_spin(b.model, i);
		if (s.share <= 0)
			continue;
		nr++;
		assert_true(s.share > 0.74 && s.share < 0.76);
		assert_int_equal(s.site, poll);
		assert_string_equal(s.word, "ready");
		assert_string_equal(model_function_at(b.model, s.site), "poll");
	}
	assert_int_equal(nr, 1);
	assert_true(model_state_spin(b.model, UINT32_MAX).share == 0);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whose),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_before_exec),
		cmocka_unit_test(test_begins_when_another_has_ended),
		cmocka_unit_test(test_joins_where_another_ended_long_ago),
		cmocka_unit_test(test_samples_in_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

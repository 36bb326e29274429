/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_order.c - locks taken in opposite order: which of them could have hung. Times in us.
 */
#include "report_fixture.h"

#include "report/locks/order.h"

/* What happens between the two threads' turns, and to the second one's acquisitions. */
struct between {
	bool tries;          /* its second lock is only tried */
	bool tries_first;    /* its first one is */
	uint64_t life[2][2]; /* of lock a (0) and b (1), told before the first and the second turn;
				0: not told */
	size_t want;
};

static void tell_lives(struct bench *b, uint64_t at, const uint32_t lock[2], const uint64_t life[2])
{
	for (int i = 0; i < 2; i++) {
		if (life[i])
			PUT(b, at, 2, object_new, .object = lock[i], .life = life[i]);
	}
}

static void take_two(struct bench *b, uint64_t at, uint32_t thread, const uint32_t lock[2],
	const struct between *is)
{
	if (is && is->tries_first)
		PUT(b, at, thread, lock_try, .object = lock[0]);
	PUT(b, at + 1, thread, lock_acquire, .object = lock[0]);
	if (is && is->tries)
		PUT(b, at + 2, thread, lock_try, .object = lock[1]);
	PUT(b, at + 3, thread, lock_acquire, .object = lock[1]);
	PUT(b, at + 4, thread, lock_release, .object = lock[1]);
	PUT(b, at + 5, thread, lock_release, .object = lock[0]);
}

/* Thread 2 takes a, then b; thread 3 takes b, then a, a long time later. */
static void opposite(struct bench *b, const struct between *is)
{
	start(b);
	const uint32_t p = process(b, "prog");
	for (unsigned i = 0; i < 3; i++)
		stream(b, p);
	const uint32_t a_b[2] = {mutex(b, "a"), mutex(b, "b")}, b_a[2] = {a_b[1], a_b[0]};
	PUT(b, 0, 1, process_begin, .token = 0);
	PUT(b, 0, 1, thread_begin, .handle = 1000);
	PUT(b, 1, 1, thread_create, .token = 1);
	PUT(b, 2, 2, thread_begin, .token = 1, .handle = 2000);
	PUT(b, 3, 1, thread_create, .token = 2);
	PUT(b, 4, 3, thread_begin, .token = 2, .handle = 2001);
	tell_lives(b, 9, a_b, is->life[0]);
	take_two(b, 10, 2, a_b, NULL);
	tell_lives(b, 99, a_b, is->life[1]);
	take_two(b, 100, 3, b_a, is);
	end(b, 200);
}

static void who_could_have_hung(void **state)
{
	static const struct between cases[] = {
		{.want = 1},
		{.tries = true, .want = 0},
		{.tries_first = true, .want = 1},      /* what it has, it has */
		{.life = {{1, 2}, {1, 2}}, .want = 1}, /* told again */
		{.life = {{1, 2}, {3, 2}}, .want = 0}, /* a is another lock */
		{.life = {{0, 0}, {0, 2}},
			.want = 0}, /* b is, which was not made by a call before */
		{.life = {{1, 2}, {0, 0}}, .want = 1},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(cases); i++) {
		struct bench b;
		struct report_order *o;
		opposite(&b, &cases[i]);
		struct report_run run = {.reader = b.reader, .trace_path = "t.lpt"};
		assert_int_equal(report_order_build(&run, &o, &b.err), BASE_OK);
		assert_int_equal(o->nr_cycles, cases[i].want);
		assert_int_equal(o->nr_tried, cases[i].tries + cases[i].tries_first);
		assert_int_equal(o->nr_acquired, 4);
		if (o->nr_cycles) {
			assert_int_equal(o->cycle[0].nr_steps, 2);
			assert_string_equal(o->cycle[0].step[0].has, "mutex a");
			assert_string_equal(o->cycle[0].step[0].takes, "mutex b");
		}
		report_order_free(o);
		finish(&b);
	}
}

static void survives_lack_of_memory(void **state)
{
	const struct between is = {.tries_first = true, .life = {{1, 2}, {1, 2}}};
	struct bench b;
	(void)state;
	opposite(&b, &is);
	struct report_run run = {.reader = b.reader, .trace_path = "t.lpt"};
	struct report_order *o = NULL;
	SWEEP_ALLOCATIONS(1, report_order_build(&run, &o, &b.err));
	assert_int_equal(o->nr_cycles, 1);
	report_order_free(o);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_could_have_hung),
		cmocka_unit_test(survives_lack_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

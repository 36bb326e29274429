/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_kernel_known.c - waits that the library knows, in a recording of the whole system:
 * woken and on a processor are two moments, and what lies between is a wait for the processor.
 */
#include "kernel_fixture.h"
#include "model/model.h"

struct pair { /* `a` waits for what `w` gives; both in a's program, so that paths begin with both */
	uint32_t a, w, object, fn;
};

static struct pair begin(struct bench *b, enum trace_object_type type)
{
	start(b, "");
	b->options.process = "a";
	struct pair p = {.a = thread(b, "a"), .w = thread(b, "w")};
	p.object = object(b, type, "x", 0);
	p.fn = site(b, "worker");
	IN(b, 0, p.a, 0);
	IN(b, 0, p.w, 1);
	return p;
}

/* The lock is free at 500, w wakes a at 510, and goes on working on the processor that a gets at
 * 800. */
static void lock_and_no_processor(void **state)
{
	(void)state;
	struct bench b;
	struct pair p = begin(&b, TRACE_OBJECT_mutex);
	PUT(&b, 10, p.w, lock_acquire, .object = p.object, .site = p.fn);
	PUT(&b, 50, p.a, lock_wait, .object = p.object, .site = p.fn);
	SLEEPS(&b, 55, p.a, 1);
	PUT(&b, 500, p.w, lock_release, .object = p.object, .site = p.fn);
	WAKES(&b, 510, p.w, p.a);
	YIELDS(&b, 800, p.w, 1);
	IN(&b, 800, p.a, 1);
	PUT(&b, 807, p.a, lock_acquire, .object = p.object, .site = p.fn);
	PUT(&b, 900, p.a, lock_release, .object = p.object, .site = p.fn);
	SLEEPS(&b, 1000, p.a, 1);
	analyse(&b);
	conserved(&b, 1000);
	assert_float_equal(on_path_of(&b, "w", "holding mutex x"), 490, 1e-6);
	assert_float_equal(on_path_of(&b, "a", "waiting for a processor that w had"), 290, 1e-6);
	assert_float_equal(on_path_of(&b, "a", "hand-off of mutex x"), 10 + 7, 1e-6);
	assert_float_equal(on_path_of(&b, "a", "holding mutex x"), 93, 1e-6);
	assert_float_equal(on_path_of(&b, "w", ""), 500, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* Woken for the lock, but a third takes it first: a waits again, and that one is why. */
static void lock_that_another_takes(void **state)
{
	(void)state;
	struct bench b;
	struct pair p = begin(&b, TRACE_OBJECT_mutex);
	uint32_t thief = thread(&b, "thief");
	IN(&b, 5, thief, 2);
	PUT(&b, 10, p.w, lock_acquire, .object = p.object, .site = p.fn);
	PUT(&b, 50, p.a, lock_wait, .object = p.object, .site = p.fn);
	SLEEPS(&b, 55, p.a, 0);
	PUT(&b, 200, p.w, lock_release, .object = p.object, .site = p.fn);
	WAKES(&b, 210, p.w, p.a);
	PUT(&b, 220, thief, lock_acquire, .object = p.object, .site = p.fn);
	IN(&b, 250, p.a, 0);
	SLEEPS(&b, 260, p.a, 0);
	PUT(&b, 700, thief, lock_release, .object = p.object, .site = p.fn);
	WAKES(&b, 705, thief, p.a);
	IN(&b, 715, p.a, 0);
	PUT(&b, 720, p.a, lock_acquire, .object = p.object, .site = p.fn);
	SLEEPS(&b, 800, p.a, 0);
	analyse(&b);
	conserved(&b, 800);
	assert_float_equal(on_path_of(&b, "thief", "holding mutex x"), 480, 1e-6);
	assert_float_equal(on_path_of(&b, "a", "holding mutex x"), 80, 1e-6);
	assert_float_equal(on_path_of(&b, "a", "hand-off of mutex x"), 5 + 5, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* A condition's signals have queues of their own: who woke it is the cause. */
static void condition_and_no_processor(void **state)
{
	(void)state;
	struct bench b;
	struct pair p = begin(&b, TRACE_OBJECT_cond);
	uint32_t lock = object(&b, TRACE_OBJECT_mutex, "m", 0);
	PUT(&b, 10, p.a, lock_acquire, .object = lock, .site = p.fn);
	PUT(&b, 20, p.a, cond_wait, .object = p.object, .mutex = lock, .site = p.fn);
	SLEEPS(&b, 25, p.a, 1);
	PUT(&b, 500, p.w, cond_signal, .object = p.object, .site = p.fn);
	WAKES(&b, 505, p.w, p.a);
	YIELDS(&b, 900, p.w, 1);
	IN(&b, 900, p.a, 1);
	PUT(&b, 910, p.a, cond_wake, .object = p.object, .mutex = lock, .site = p.fn);
	SLEEPS(&b, 1000, p.a, 1);
	analyse(&b);
	conserved(&b, 1000);
	assert_float_equal(on_path_of(&b, "w", ""), 505, 1e-6);
	assert_float_equal(on_path_of(&b, "a", "waiting for a processor that w had"), 395, 1e-6);
	assert_float_equal(on_path_of(&b, "a", "hand-off"), 10, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* A timer ends the wait for a semaphore that nobody gave: it stays the wait's. */
static void time_runs_out(void **state)
{
	(void)state;
	struct bench b;
	struct pair p = begin(&b, TRACE_OBJECT_semaphore);
	uint32_t timer = context(&b, TRACE_CONTEXT_timer, 1, "local timer");
	PUT(&b, 1, p.w, token_set, .object = p.object, .n = 0);
	PUT(&b, 50, p.a, token_wait, .object = p.object, .n = 1, .site = p.fn);
	SLEEPS(&b, 55, p.a, 0);
	WAKES(&b, 400, timer, p.a);
	IN(&b, 405, p.a, 0);
	PUT(&b, 410, p.a, token_take, .object = p.object, .n = 0, .site = p.fn);
	SLEEPS(&b, 500, p.a, 0);
	analyse(&b);
	conserved(&b, 500);
	assert_float_equal(on_path_of(&b, "w", ""), 0, 1e-6);
	assert_float_equal(on_path_of(&b, "a", "waiting for semaphore x"), 360, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* With the token at hand it is preempted: that is the processor's, too. */
static void preempted_with_the_token(void **state)
{
	(void)state;
	struct bench b;
	struct pair p = begin(&b, TRACE_OBJECT_semaphore);
	PUT(&b, 1, p.w, token_set, .object = p.object, .n = 0);
	PUT(&b, 50, p.a, token_wait, .object = p.object, .n = 1, .site = p.fn);
	SLEEPS(&b, 55, p.a, 1);
	PUT(&b, 400, p.w, token_give, .object = p.object, .n = 1, .site = p.fn);
	WAKES(&b, 402, p.w, p.a);
	YIELDS(&b, 500, p.w, 1);
	IN(&b, 500, p.a, 1);
	YIELDS(&b, 504, p.a, 1);
	IN(&b, 504, p.w, 1);
	YIELDS(&b, 600, p.w, 1);
	IN(&b, 600, p.a, 1);
	PUT(&b, 603, p.a, token_take, .object = p.object, .n = 1, .site = p.fn);
	SLEEPS(&b, 700, p.a, 1);
	analyse(&b);
	conserved(&b, 700);
	assert_float_equal(on_path_of(&b, "w", ""), 400, 1e-6);
	assert_float_equal(
		on_path_of(&b, "a", "waiting for a processor that w had"), 98 + 96, 1e-6);
	assert_float_equal(on_path_of(&b, "a", "hand-off of semaphore x"), 2 + 4 + 3, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock_and_no_processor),
		cmocka_unit_test(lock_that_another_takes),
		cmocka_unit_test(condition_and_no_processor),
		cmocka_unit_test(time_runs_out),
		cmocka_unit_test(preempted_with_the_token),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

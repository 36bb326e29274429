/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_turn.c - tasks that take turns on an event loop's thread. Known answers. */
#include "model/model.h"
#include "model_fixture.h"

struct loop {
	struct bench b;
	uint32_t object, slow, quick, sleeps;
};

static void begin_loop(struct loop *l)
{
	start(&l->b);
	(void)process_of(&l->b, "prog", 0, 100);
	begin_threads(&l->b, 1, 1);
	l->object = object(&l->b, TRACE_OBJECT_event_loop, "of asyncio", 0);
	l->slow = site(&l->b, "slow");
	l->quick = site(&l->b, "quick");
	l->sleeps = site(&l->b, "Queue.get");
	PUT(&l->b, 10, 1, lock_acquire, .object = l->object);
}

static void begin_turn(struct loop *l, uint64_t at, uint64_t task, uint32_t role)
{
	PUT(&l->b, at, 1, lock_release, .object = l->object);
	PUT(&l->b, at, 1, turn_begin, .task = task, .object = l->object, .site = role);
	PUT(&l->b, at, 1, lock_acquire, .object = l->object, .site = role);
}

static void end_turn(
	struct loop *l, uint64_t at, enum trace_turn how, uint64_t remaining_ns, uint32_t role)
{
	PUT(&l->b, at, 1, lock_release, .object = l->object, .site = role);
	PUT(&l->b, at, 1, turn_end, .how = how, .remaining_ns = remaining_ns,
		.at = remaining_ns || how == TRACE_TURN_ends ? 0 : l->sleeps, .site = role);
	PUT(&l->b, at, 1, lock_acquire, .object = l->object);
}

static void idle(struct loop *l, uint64_t from, uint64_t to)
{
	PUT(&l->b, from, 1, lock_release, .object = l->object);
	PUT(&l->b, from, 1, poll_begin, .n = 1);
	PUT(&l->b, to, 1, poll_end, .result = 0);
	PUT(&l->b, to, 1, lock_acquire, .object = l->object);
}

static void due(struct loop *l, uint64_t at, uint64_t task, bool timed, uint32_t role)
{
	PUT(&l->b, at, 1, turn_due, .task = task, .timed = timed, .object = l->object,
		.site = role);
}

/* Nobody else has anything to do: the loop's sleep is the task's whose time comes. */
static void the_loop_sleeps_for_whose_time_comes(void **state)
{
	(void)state;
	struct loop l = {0};
	begin_loop(&l);
	begin_turn(&l, 100, 1, l.slow);
	end_turn(&l, 200, TRACE_TURN_waits, 10000000, l.slow);
	begin_turn(&l, 300, 2, l.quick);
	end_turn(&l, 400, TRACE_TURN_waits, 30000000, l.quick);
	idle(&l, 500, 10000200);
	due(&l, 10000300, 1, true, l.slow);
	begin_turn(&l, 10000400, 1, l.slow);
	end_turn(&l, 10000500, TRACE_TURN_ends, 0, l.slow);
	idle(&l, 10000600, 30000400);
	due(&l, 30000500, 2, true, l.quick);
	begin_turn(&l, 30000600, 2, l.quick);
	end_turn(&l, 30000700, TRACE_TURN_ends, 0, l.quick);
	end(&l.b, 30001000);
	/* the path leads through the one that ends last, and only through that one's sleep */
	assert_float_equal(on_path(&l.b, "sleeping in quick"), 30000000, 1);
	assert_float_equal(on_path(&l.b, "sleeping in slow"), 0, 1);
	assert_float_equal(on_path(&l.b, "running"), 1000, 1);
	/* a task, and the clock that it sleeps by, are a task; what they take turns on is a thread */
	for (uint32_t i = 0; i < graph_nr_actors(model_graph(l.b.model)); i++) {
		bool is_task = strchr(model_actor(l.b.model, i)->name, '/') != NULL;
		assert_int_equal(model_actor_noun(l.b.model, i),
			is_task ? MODEL_NOUN_task : MODEL_NOUN_thread);
	}
	finish(&l.b);
}

/* What one computes in its turn holds the other up, whose time has come long since. */
static void who_holds_the_loop_up_is_on_the_path(void **state)
{
	(void)state;
	struct loop l = {0};
	begin_loop(&l);
	begin_turn(&l, 100, 2, l.quick);
	end_turn(&l, 200, TRACE_TURN_waits, 5000000, l.quick);
	begin_turn(&l, 300, 1, l.slow);
	PUT(&l.b, 400, 1, sleep_begin, .site = l.slow);
	PUT(&l.b, 50000400, 1, sleep_end);
	end_turn(&l, 50000500, TRACE_TURN_ends, 0, l.slow);
	due(&l, 50000600, 2, true, l.quick);
	begin_turn(&l, 50000700, 2, l.quick);
	end_turn(&l, 50000800, TRACE_TURN_ends, 0, l.quick);
	end(&l.b, 50001000);
	assert_float_equal(on_path_of(&l.b, "slow", "sleeping"), 50000000, 1);
	assert_float_equal(on_path(&l.b, "sleeping in quick"), 0, 1);
	/* had it slept half as long, so would the whole */
	takes_then(&l.b, "sleeping", 0.5, 25001000, 25001000);
	finish(&l.b);
}

/* A queue's other side makes it ready, in its own turn. */
static void who_makes_it_ready_is_followed(void **state)
{
	(void)state;
	struct loop l = {0};
	begin_loop(&l);
	begin_turn(&l, 100, 2, l.quick);
	end_turn(&l, 200, TRACE_TURN_waits, 0, l.quick);
	begin_turn(&l, 300, 1, l.slow);
	end_turn(&l, 400, TRACE_TURN_waits, 20000000, l.slow);
	idle(&l, 500, 20000400);
	due(&l, 20000500, 1, true, l.slow);
	begin_turn(&l, 20000600, 1, l.slow);
	due(&l, 20000700, 2, false, l.quick);
	end_turn(&l, 20000800, TRACE_TURN_ends, 0, l.slow);
	begin_turn(&l, 20000900, 2, l.quick);
	end_turn(&l, 20001000, TRACE_TURN_ends, 0, l.quick);
	end(&l.b, 20001100);
	assert_float_equal(on_path(&l.b, "sleeping in slow"), 20000000, 1);
	assert_float_equal(on_path(&l.b, "waiting at Queue.get in quick"), 0, 1);
	takes_then(&l.b, "sleeping in slow", 0.5, 10001100, 10001100);
	finish(&l.b);
}

/* Numbers, objects and sites that are not there, turns that end twice or begin within each other: no
 * more than counted. */
static void nothing_is_trusted(void **state)
{
	(void)state;
	struct loop l = {0};
	begin_loop(&l);
	end_turn(&l, 20, TRACE_TURN_ends, 0, l.slow);
	PUT(&l.b, 30, 1, turn_begin, .task = 1, .object = 99, .site = 99);
	PUT(&l.b, 40, 1, turn_due, .task = 1, .object = 99, .site = 99);
	PUT(&l.b, 50, 1, turn_begin, .task = 1, .object = l.object, .site = 99);
	PUT(&l.b, 60, 1, turn_begin, .task = 2, .object = l.object, .site = 99);
	PUT(&l.b, 70, 1, turn_due, .task = 1, .object = l.object, .timed = 7);
	PUT(&l.b, 80, 1, turn_end, .how = 99, .at = 99, .site = 99, .remaining_ns = UINT64_MAX);
	PUT(&l.b, 90, 1, turn_end, .how = 99, .at = 99, .site = 99);
	PUT(&l.b, 95, 1, turn_due, .task = 1, .object = l.object, .timed = 1);
	PUT(&l.b, 96, 1, turn_due, .task = 1, .object = l.object, .timed = 1);
	end(&l.b, 100);
	finish(&l.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_loop_sleeps_for_whose_time_comes),
		cmocka_unit_test(who_holds_the_loop_up_is_on_the_path),
		cmocka_unit_test(who_makes_it_ready_is_followed),
		cmocka_unit_test(nothing_is_trusted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_replay_counts.c - what replay learns of condition variables: that who did not wait for
 * a signal needed what it announced. */
#include "graph/replay.h"

#include "replay_fixture.h"

enum { LOCK, VARIABLE, SIGNALS, ROOM };
enum { PRODUCER = 1, CONSUMER };
enum { ITEMS = 8 };

static struct graph_replay *begin(const struct graph_sink **ret)
{
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);

	assert_true(s->counts);
	declare(s);
	declare_queue(s, LOCK, (struct graph_queue_options){.initial = 1});
	declare_queue(s, VARIABLE, (struct graph_queue_options){.counts = true});
	declare_queue(s, SIGNALS, (struct graph_queue_options){.discipline = GRAPH_FIFO});
	say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
	say_link(s, 0, PRODUCER, RUN);
	say_link(s, 0, CONSUMER, HOLD);
	*ret = s;
	return r;
}

static void lock(const struct graph_sink *s, uint64_t t, uint32_t actor, uint32_t state)
{
	say(s, GRAPH_VERB_dequeue, t, actor, LOCK, GRAPH_ALL, state, GRAPH_BACK);
}

static void unlock(const struct graph_sink *s, uint64_t t, uint32_t actor, uint32_t state)
{
	say(s, GRAPH_VERB_enqueue, t, actor, LOCK, 1, state, 0);
}

/* Another one is there, and, when somebody waits, that one is told. */
static void signal(const struct graph_sink *s, uint64_t t, bool is_awaited)
{
	say(s, GRAPH_VERB_enqueue, t, PRODUCER, VARIABLE, 1, RUN, is_awaited ? GRAPH_MORE : 0);
	if (is_awaited)
		say(s, GRAPH_VERB_enqueue, t, PRODUCER, SIGNALS, 1, RUN, 0);
}

/* The consumer finds nothing, and waits from time 1 to time 5. */
static void wait_for_first(const struct graph_sink *s)
{
	lock(s, 0, CONSUMER, HOLD);
	unlock(s, 1, CONSUMER, WAIT);
	say(s, GRAPH_VERB_wait_empty, 1, CONSUMER, VARIABLE, 1, WAIT, 0);
	lock(s, 4, PRODUCER, RUN);
	signal(s, 5, true);
	unlock(s, 5, PRODUCER, RUN);
	say(s, GRAPH_VERB_dequeue, 5, CONSUMER, SIGNALS, 1, HOLD, GRAPH_LAST);
	lock(s, 5, CONSUMER, HOLD);
}

/* Items come at 5, 10, 15, 20; each takes 1 to fetch and 10 to consume, and the last 5 more. */
static void test_ring(void **state)
{
	const struct graph_sink *s;
	struct graph_replay *r = begin(&s);
	struct graph_replay_result res;

	(void)state;
	wait_for_first(s);
	unlock(s, 6, CONSUMER, OTHER);
	lock(s, 9, PRODUCER, RUN);
	signal(s, 10, false);
	unlock(s, 10, PRODUCER, RUN);
	lock(s, 14, PRODUCER, RUN);
	signal(s, 15, false);
	unlock(s, 15, PRODUCER, RUN);
	lock(s, 16, CONSUMER, HOLD);
	unlock(s, 17, CONSUMER, OTHER);
	lock(s, 19, PRODUCER, RUN);
	signal(s, 20, false);
	unlock(s, 20, PRODUCER, IDLE);
	lock(s, 27, CONSUMER, HOLD);
	unlock(s, 28, CONSUMER, OTHER);
	lock(s, 38, CONSUMER, HOLD);
	unlock(s, 39, CONSUMER, OTHER);
	say(s, GRAPH_VERB_state, 49, CONSUMER, 0, 0, RUN, 0);
	say(s, GRAPH_VERB_state, 54, CONSUMER, 0, 0, IDLE, 0);
	assert_int_equal(graph_replay_learn(r, &(struct graph_replay_measured){0}, NULL), BASE_OK);
	assert_int_equal(replay_end(r, nothing, &res), 54);
	/* Not consumed, each is fetched when it is there, the last at 20. */
	assert_int_equal(
		replay_end(r, (struct graph_edit){GRAPH_EDIT_SCALE_STATE, OTHER, 0, 0}, &res), 26);
	assert_int_equal(res.nr_stuck, 0);
	graph_replay_free(r);
}

/* The consumer has taken one, and says that there is room; `told`: to somebody who might wait. */
static void tell_room(const struct graph_sink *s, uint64_t t, bool told)
{
	if (told)
		say(s, GRAPH_VERB_enqueue, t, CONSUMER, ROOM, 1, HOLD, 0);
}

/* One item each 10, fetched 5 later, in 1; when it is the last, nobody signals room where !all. */
static struct graph_replay *steady(bool room, bool all)
{
	const struct graph_sink *s;
	struct graph_replay *r = begin(&s);

	declare_queue(s, ROOM, (struct graph_queue_options){.counts = true});
	wait_for_first(s);
	tell_room(s, 6, room);
	unlock(s, 6, CONSUMER, OTHER);
	for (uint64_t i = 1; i < ITEMS; i++) {
		lock(s, 10 * i, PRODUCER, LATENCY);
		signal(s, 10 * i, false);
		unlock(s, 10 * i, PRODUCER, i + 1 < ITEMS ? RUN : IDLE);
		lock(s, 10 * i + 5, CONSUMER, HOLD);
		tell_room(s, 10 * i + 6, room && (all || i + 1 < ITEMS));
		unlock(s, 10 * i + 6, CONSUMER, OTHER);
	}
	say(s, GRAPH_VERB_state, 10 * ITEMS, CONSUMER, 0, 0, IDLE, 0);
	assert_int_equal(graph_replay_learn(r, &(struct graph_replay_measured){0}, NULL), BASE_OK);
	return r;
}

/* What was never full: at most one item was in it. When producing takes no time, all but two must
 * have been fetched before the last one is put: the first is from 1 to 2, each other one 10 later.
 */
static void test_room(void **state)
{
	const struct graph_edit at_once = {GRAPH_EDIT_SCALE_STATE, RUN, 0, 0};

	(void)state;
	for (unsigned kind = 0; kind < 3; kind++) {
		struct graph_replay *r = steady(kind > 0, kind > 1);
		struct graph_replay_result res;

		graph_replay_set_end(r, PRODUCER);
		assert_int_equal(replay_end(r, nothing, &res), 10 * (ITEMS - 1));
		assert_int_equal(replay_end(r, at_once, &res), kind > 1 ? 2 + 10 * (ITEMS - 3) : 2);
		assert_int_equal(res.nr_stuck, 0);
		graph_replay_free(r);
	}
}

/* A state, not a number: once it is reached, the place is gone through without another signal. */
static void test_state(void **state)
{
	enum { TIMES = 12 };
	const struct graph_sink *s;
	struct graph_replay *r = begin(&s);
	struct graph_replay_result res;

	(void)state;
	wait_for_first(s);
	unlock(s, 6, CONSUMER, OTHER);
	for (uint64_t i = 1; i <= TIMES; i++) {
		lock(s, 10 * i + 6, CONSUMER, HOLD);
		unlock(s, 10 * i + 7, CONSUMER, OTHER);
	}
	say(s, GRAPH_VERB_state, 10 * TIMES + 7, CONSUMER, 0, 0, IDLE, 0);
	say(s, GRAPH_VERB_state, 10 * TIMES + 7, PRODUCER, 0, 0, IDLE, 0);
	assert_int_equal(graph_replay_learn(r, &(struct graph_replay_measured){0}, NULL), BASE_OK);
	assert_int_equal(replay_end(r, nothing, &res), 10 * TIMES + 7);
	replay_end(r, (struct graph_edit){GRAPH_EDIT_SCALE_STATE, OTHER, 0, 0}, &res);
	assert_int_equal(res.nr_stuck, 0);
	graph_replay_free(r);
}

/* A reader gives an rwlock back and would take it again before the writer, for whom it is, is
 * awake; a mutex it would get. */
static void test_handed(void **state)
{
	(void)state;
	for (unsigned handed = 0; handed < 2; handed++) {
		struct graph_replay *r = new_replay();
		const struct graph_sink *s = graph_replay_sink(r);
		struct graph_replay_result res;

		declare(s);
		declare_queue(s, 0,
			(struct graph_queue_options){
				.discipline = GRAPH_POOL, .initial = 2, .handed = handed});
		say(s, GRAPH_VERB_state, 0, 0, 0, 0, IDLE, GRAPH_START);
		say_link(s, 0, 1, RUN);
		say_link(s, 0, 2, RUN);
		say(s, GRAPH_VERB_dequeue, 1, 1, 0, 1, HOLD, 0);
		say(s, GRAPH_VERB_wait_empty, 2, 2, 0, 2, WAIT, 0);
		say(s, GRAPH_VERB_enqueue, 10, 1, 0, 1, OTHER, 0);
		say(s, GRAPH_VERB_dequeue, 14, 2, 0, 2, HOLD, 0); /* awake 4 later */
		say(s, GRAPH_VERB_enqueue, 20, 2, 0, 2, IDLE, 0);
		say(s, GRAPH_VERB_dequeue, 30, 1, 0, 1, HOLD, 0);
		say(s, GRAPH_VERB_enqueue, 35, 1, 0, 1, IDLE, 0);
		assert_int_equal(replay_end(r, nothing, &res), 35);
		/* Back after 2 instead of 20: it comes between, from 12 to 17; or when the writer
		 * has done, as late as one who is woken. */
		assert_int_equal(
			replay_end(
				r, (struct graph_edit){GRAPH_EDIT_SCALE_STATE, OTHER, .1, 0}, &res),
			handed ? 20 + 4 + 5 : 17 + 4 + 6);
		graph_replay_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_handed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

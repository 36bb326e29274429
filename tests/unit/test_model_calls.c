/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_calls.c - known answers: children, and waits that a time limit or a signal ends. */
#include "model/model.h"
#include "model_fixture.h"

#include <errno.h>

/* system() does not say which child it waited for: the one that ended last. An exec keeps the pid.
 */
static void system_waits_for_its_child(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t main_fn = site(&b, "parent"), child_fn = site(&b, "child");
	uint32_t p = process_of(&b, "parent", 0, 100), s = process_of(&b, "sh", p, 101),
		 c = process_of(&b, "child", s, 101);
	stream(&b, p);
	stream(&b, s);
	stream(&b, c);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 10, 1, process_fork, .token = 0, .site = main_fn);
	PUT(&b, 12, 1, child_wait, .site = main_fn);
	PUT(&b, 20, 2, process_begin, .token = 0);
	PUT(&b, 30, 2, process_exec, .site = child_fn);
	PUT(&b, 40, 3, process_begin, .token = 0);
	PUT(&b, 400, 3, process_end, .status = 0);
	PUT(&b, 410, 1, child_waited, .pid = 0);
	PUT(&b, 420, 1, child_wait, .site = main_fn);
	PUT(&b, 430, 1, child_waited, .pid = 0); /* nobody had ended */
	end(&b, 500);
	assert_float_equal(on_path(&b, "running parent"), (420 - 410) + (500 - 430), 1e-6);
	assert_float_equal(on_path(&b, "waiting for a child process"), 430 - 420, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* make waits for a free slot, and a child's end interrupts that. A time limit ends a wait itself.
 */
static void a_childs_end_interrupts(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t main_fn = site(&b, "parent"), wait_fn = site(&b, "wait_for_slot");
	uint32_t p = process_of(&b, "parent", 0, 100), c = process_of(&b, "child", p, 101);
	stream(&b, p);
	stream(&b, c);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 10, 1, process_fork, .token = 0, .site = main_fn);
	PUT(&b, 12, 1, poll_begin, .n = 1, .site = wait_fn);
	PUT(&b, 20, 2, process_begin, .token = 0);
	PUT(&b, 400, 2, process_end, .status = 0);
	PUT(&b, 410, 1, poll_end, .result = -EINTR);
	PUT(&b, 420, 1, poll_begin, .n = 0, .site = wait_fn); /* for a signal */
	PUT(&b, 480, 1, poll_end, .result = -EINTR);          /* by something else */
	end(&b, 500);
	assert_float_equal(on_path(&b, "waiting for a signal"), 480 - 420, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* A shell reads what its child writes; the handler of SIGCHLD asks for the child in the middle of
 * that. Of the second wait, which began after the child's end, it is not the cause. */
static void a_handler_waits_for_the_child(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t main_fn = site(&b, "shell"), handler = site(&b, "on_child");
	uint32_t p = process_of(&b, "shell", 0, 100), c = process_of(&b, "child", p, 101);
	uint32_t end_of = object(&b, TRACE_OBJECT_pipe, "", 65536);
	stream(&b, p);
	stream(&b, c);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 10, 1, process_fork, .token = 0, .site = main_fn);
	PUT(&b, 12, 1, io_begin, .object = end_of, .op = TRACE_IO_read, .n = 9, .site = main_fn);
	PUT(&b, 20, 2, process_begin, .token = 0);
	PUT(&b, 390, 2, io_close, .object = end_of, .ends = 2, .site = main_fn);
	PUT(&b, 400, 2, process_end, .status = 0);
	PUT(&b, 404, 1, child_wait, .site = handler);
	PUT(&b, 405, 1, child_waited, .pid = 101);
	PUT(&b, 406, 1, child_wait, .site = handler);
	PUT(&b, 407, 1, child_waited, .pid = 0);
	PUT(&b, 410, 1, io_end, .object = end_of, .op = TRACE_IO_read, .result = 0);
	PUT(&b, 420, 1, io_begin, .object = end_of, .op = TRACE_IO_read, .n = 9, .site = main_fn);
	PUT(&b, 480, 1, child_wait, .site = handler);
	PUT(&b, 481, 1, child_waited, .pid = 0);
	PUT(&b, 490, 1, io_end, .object = end_of, .op = TRACE_IO_read, .result = 0);
	end(&b, 500);
	assert_float_equal(on_path_of(&b, "child", "running"), 400 - 20, 1e-6);
	assert_float_equal(on_path(&b, "waiting for data in pipe"), 480 - 420, 1e-6);
	finish(&b);
}

/*
 * A thread looks now and then, by a time limit, whether the work is done. The worker meets it at
 * the lock once: it was the work that took long, not the sleep. When it then keeps the lock for
 * long, it was that.
 */
static void a_time_limit_is_met_by_chance(void **state)
{
	(void)state;
	for (uint64_t holds = 5; holds <= 2005; holds += 2000) {
		struct bench b;
		start(&b);
		uint32_t work = site(&b, "work"), look = site(&b, "look");
		uint32_t lock = object(&b, TRACE_OBJECT_mutex, "lock", 0);
		uint32_t done = object(&b, TRACE_OBJECT_cond, "done", 0);
		uint64_t t = 1000 + holds;
		spawn(&b, 1, work);
		PUT(&b, 40, 1, lock_acquire, .object = lock, .site = look);
		PUT(&b, 50, 1, cond_wait, .object = done, .mutex = lock, .site = look);
		PUT(&b, 1000, 1, cond_wake, .object = done, .mutex = lock, .site = look,
			.result = 110);
		PUT(&b, 1002, 2, lock_wait, .object = lock, .site = work);
		PUT(&b, t, 1, cond_wait, .object = done, .mutex = lock, .site = look);
		PUT(&b, t + 1, 2, lock_acquire, .object = lock, .site = work);
		PUT(&b, t + 2, 2, lock_release, .object = lock, .site = work);
		PUT(&b, 9000, 2, cond_signal, .object = done, .site = work);
		PUT(&b, 9001, 1, cond_wake, .object = done, .mutex = lock, .site = look,
			.result = 0);
		end(&b, 9002);
		if (holds == 5)
			assert_float_equal(
				on_path(&b, "waiting for condition variable done"), 0, 1e-6);
		else
			assert_float_equal(on_path(&b, "holding mutex lock"), (float)holds, 20);
		if (holds != 5)
			assert_float_equal(on_path(&b, "sleeping until a time limit"), 950, 1e-6);
		assert_true(on_path(&b, "waiting for mutex lock") < 10);
		finish(&b);
	}
}

/*
 * A runtime's thread wakes up each second and holds up the worker for a moment: it was not the
 * second that took long. A thread that waited all that second waited for it.
 */
static void a_periodic_stop_is_met_by_chance(void **state)
{
	(void)state;
	for (int early = 0; early < 2; early++) {
		struct bench b;
		start(&b);
		uint32_t work = site(&b, "work"), watch = site(&b, "watch");
		uint32_t alarm = object(&b, TRACE_OBJECT_cond, "alarm", 0);
		uint32_t gate = object(&b, TRACE_OBJECT_futex, "gate", 0);
		spawn(&b, 1, work);
		PUT(&b, 40, 2, cond_wait, .object = alarm, .site = watch);
		PUT(&b, early ? 90 : 1003, 1, cond_wait, .object = gate, .site = work);
		PUT(&b, 1000, 2, cond_wake, .object = alarm, .site = watch, .result = 110);
		PUT(&b, 1006, 2, cond_broadcast, .object = gate, .site = watch);
		PUT(&b, 1007, 1, cond_wake, .object = gate, .site = work);
		end(&b, 9000);
		double asleep_ns = early ? 960 : 0;
		assert_float_equal(on_path(&b, "sleeping until a time limit"), asleep_ns, 1e-6);
		finish(&b);
	}
}

/* The kernel finds another value in the futex word: the call took time, but nobody was waited for.
 */
static void a_changed_word_is_not_waited_for(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t work = site(&b, "work"), gate = object(&b, TRACE_OBJECT_futex, "gate", 0);
	spawn(&b, 1, work);
	for (unsigned i = 0; i < 10; i++) {
		PUT(&b, 100 + 100 * i, 1, cond_wait, .object = gate, .site = work);
		PUT(&b, 180 + 100 * i, 1, cond_wake, .object = gate, .site = work,
			.result = EAGAIN);
	}
	end(&b, 1200);
	assert_float_equal(on_path(&b, "waiting for"), 0, 1e-6);
	assert_float_equal(on_path(&b, "running"), 1200, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* Another has the mutex in the middle of the sleep, or for a moment just before its end, which is
 * no reason for it; or for most of it until its end, which is. */
static void a_time_limit_waits_for_the_mutex_at_its_end(void **state)
{
	static const struct {
		uint64_t taken_ns, given_up_ns;
		float asleep_ns, holding_ns;
	} run[] = {{100, 400, 950, 10 + 100}, {100, 998, 0, 898 + 100}, {997, 998, 950, 10 + 100},
		{700, 998, 950, 10 + 100}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(run); i++) {
		struct bench b;
		start(&b);
		uint32_t work = site(&b, "work"), look = site(&b, "look");
		uint32_t lock = object(&b, TRACE_OBJECT_mutex, "lock", 0);
		uint32_t done = object(&b, TRACE_OBJECT_cond, "done", 0);
		spawn(&b, 1, work);
		PUT(&b, 40, 1, lock_acquire, .object = lock, .site = look);
		PUT(&b, 50, 1, cond_wait, .object = done, .mutex = lock, .site = look);
		PUT(&b, run[i].taken_ns, 2, lock_acquire, .object = lock, .site = work);
		PUT(&b, run[i].given_up_ns, 2, lock_release, .object = lock, .site = work);
		PUT(&b, 1000, 1, cond_wake, .object = done, .mutex = lock, .site = look,
			.result = ETIMEDOUT);
		end(&b, 1100);
		assert_float_equal(
			on_path(&b, "sleeping until a time limit"), run[i].asleep_ns, 1e-6);
		assert_float_equal(on_path(&b, "holding"), run[i].holding_ns, 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		finish(&b);
	}
}

enum wait_for { CHILD, MESSAGE, BYTES, CALLER, READINESS, WAITS_FOR_NR };

static void begin_to_wait(struct bench *b, enum wait_for what, uint64_t t, uint32_t object)
{
	if (what == CHILD)
		PUT(b, t, 1, child_wait, .site = 1);
	else if (what == READINESS)
		PUT(b, t, 1, poll_begin, .n = 1, .site = 1);
	else if (what != MESSAGE)
		PUT(b, t, 1, io_begin, .object = object, .n = 1, .site = 1,
			.op = what == BYTES ? TRACE_IO_read : TRACE_IO_accept);
	else {
		PUT(b, t, 1, message_receive, .object = object, .site = 1);
		PUT(b, t, 1, message_wait, .object = object, .site = 1);
	}
}

static void give(struct bench *b, enum wait_for what, uint64_t t, uint32_t object, uint32_t call)
{
	if (what == MESSAGE)
		PUT(b, t, 2, message_send, .object = object, .n = 1, .site = 2);
	else if (what == BYTES || what == READINESS)
		PUT(b, t, 2, io_begin, .object = object, .op = TRACE_IO_write, .n = 1, .site = 2);
	else if (what == CALLER)
		PUT(b, t, 2, io_begin, .object = call, .op = TRACE_IO_connect, .site = 2);
	PUT(b, t, 2, process_end, .status = 0);
}

static void end_to_wait(
	struct bench *b, enum wait_for what, uint64_t t, uint32_t object, bool is_broken)
{
	if (what == CHILD)
		PUT(b, t, 1, child_waited, .pid = is_broken ? 0 : 101);
	else if (what == READINESS)
		PUT(b, t, 1, poll_end, .object = is_broken ? 0 : object,
			.result = is_broken ? -EINTR : 1);
	else if (what != MESSAGE)
		PUT(b, t, 1, io_end, .object = object, .result = is_broken ? -EINTR : 1,
			.op = what == BYTES ? TRACE_IO_read : TRACE_IO_accept);
	else
		PUT(b, t, 1, message_received, .object = object, .n = !is_broken);
}

/* A timer's signal breaks a wait off again and again: it lasts as long as what it is for. */
static void a_wait_is_broken_off_and_begun_again(void **state)
{
	static const struct {
		enum trace_object_type type;
		const char *name;
	} object_of[WAITS_FOR_NR] = {
		[MESSAGE] = {TRACE_OBJECT_message_queue, "/jobs"},
		[CALLER] = {TRACE_OBJECT_listener, "tcp 0.0.0.0:80 -"},
		[BYTES] = {TRACE_OBJECT_pipe, ""},
		[READINESS] = {TRACE_OBJECT_pipe, ""},
	};
	(void)state;
	for (enum wait_for what = 0; what < WAITS_FOR_NR; what++) {
		struct bench b;
		start(&b);
		site(&b, "parent");
		site(&b, "child");
		uint32_t p = process_of(&b, "parent", 0, 100), c = process_of(&b, "child", p, 101);
		stream(&b, p);
		stream(&b, c);
		uint32_t id = what == CHILD
				      ? 0
				      : object(&b, object_of[what].type, object_of[what].name, 100);
		uint32_t call = object(&b, TRACE_OBJECT_socket, "tcp 10.0.0.1:5 10.0.0.1:80", 0);
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 10, 1, process_fork, .token = 1, .site = 1);
		PUT(&b, 10, 2, process_begin, .token = 1);
		PUT(&b, 10, 2, sleep_begin, .duration_ns = 390, .site = 2);
		for (uint64_t t = 20; t < 320; t += 100) {
			begin_to_wait(&b, what, t, id);
			end_to_wait(&b, what, t + 99, id, true);
		}
		begin_to_wait(&b, what, 320, id);
		PUT(&b, 400, 2, sleep_end);
		give(&b, what, 400, id, call);
		end_to_wait(&b, what, 402, id, false);
		end(&b, 500);
		assert_float_equal(on_path(&b, "sleeping"), 390, 1e-6);
		takes_then(&b, "sleeping", 0.5, 500 - 195, 500 - 195);
		finish(&b);
	}
}

/* A signal ends a sleep of 800 after 300, or one of 400: the call says so, or a handler jumps out of
 * it. Half as long a sleep is not over before the signal; or it is. */
static void a_signal_ends_a_sleep(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		bool jumps = i & 1, is_broken = i < 4;
		uint64_t asked_ns = i < 2 ? 800 : is_broken ? 400 : 300;
		struct bench b;
		start(&b);
		b.tick_ns = 1000;
		uint32_t fn = site(&b, "nap");
		stream(&b, process_of(&b, "prog", 0, 100));
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 100, 1, sleep_begin, .duration_ns = asked_ns * 1000, .site = fn);
		PUT(&b, 105, 1, cpu_out, .processor = 0, .preempted = 1);
		PUT(&b, 110, 1, cpu_in, .processor = 0);
		if (!jumps)
			PUT(&b, 400, 1, sleep_end);
		PUT(&b, 400, 1, io_begin, .op = TRACE_IO_open, .site = fn);
		PUT(&b, 400, 1, io_end, .op = TRACE_IO_open);
		PUT(&b, 500, 1, thread_end);
		PUT(&b, 500, 1, process_end, .status = 0);
		analyse(&b);
		conserved(&b, 500000);
		for (uint32_t s = 0; s < graph_nr_states(model_graph(b.model)); s++)
			if (model_state(b.model, s)->kind == MODEL_STATE_sleep)
				assert_true(model_state_timed_share(b.model, s) == is_broken);
		assert_float_equal(on_path(&b, "sleeping"), 295000, 1e-6);
		uint64_t is_ns = i < 2 ? 497500 : is_broken ? 402500 : 352500;
		takes_then(&b, "sleeping", 0.5, 352500, is_ns);
		finish(&b);
	}
}

/* A timer of 100 us that is set at 10 and again at so many; the run ends at 200 (us). */
static void timers_send_signals_once(void **state)
{
	static const struct {
		uint64_t again_us, first_us, period_us;
		bool armed, sent;
		uint64_t set_us, after_us, nr;
	} row[] = {
		{0, 0, 0, false, true, 100, 90, 1},    /* not set again */
		{50, 0, 0, false, false, 0, 0, 0},     /* stopped before */
		{50, 500, 0, true, false, 0, 0, 0},    /* ... or put off beyond the end */
		{120, 70, 0, true, true, 170, 10, 2},  /* again, after the first */
		{120, 70, 10, true, true, 100, 90, 1}, /* ... as one that ticks */
		{50, 145, 0, true, true, 145, 5, 1},   /* put off */
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct bench b;
		struct model_box box;
		start(&b);
		b.tick_ns = 1000;
		uint32_t fn = site(&b, "limit");
		stream(&b, process_of(&b, "prog", 0, 100));
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 10, 1, signal_timer, .timer = 3, .first_ns = 100000, .armed = 1,
			.site = fn);
		if (row[i].again_us)
			PUT(&b, row[i].again_us, 1, signal_timer, .timer = 3,
				.first_ns = row[i].first_us * 1000,
				.period_ns = row[i].period_us * 1000, .armed = row[i].armed,
				.site = fn);
		PUT(&b, 200, 1, thread_end);
		PUT(&b, 200, 1, process_end, .status = 0);
		analyse(&b);
		assert_int_equal(model_box(b.model, 200000, &box), row[i].sent);
		assert_int_equal(box.set_ns, row[i].set_us * 1000);
		assert_int_equal(box.after_ns, row[i].after_us * 1000);
		assert_int_equal(box.nr, row[i].nr);
		assert_int_equal(box.site, row[i].sent ? fn : 0);
		finish(&b);
	}
}

/* Naps at one place, so many; a post after every so many of them (0: none): as long as polled. */
static void naps_again_and_again_may_poll(void **state)
{
	static const struct {
		unsigned nr, posts_after;
		bool limit; /* in waits that a time limit ends */
		uint64_t polled_us;
		bool holds;      /* ... under a lock: others wait for that */
		uint32_t leaves; /* what is done in a file after each, + 1 */
	} row[] = {{1, 0, false, 0, false, 0}, {3, 0, false, 0, false, 0},
		{4, 0, false, 400, false, 0}, {10, 0, false, 1000, false, 0},
		{10, 1, false, 0, false, 0}, {10, 5, false, 900, false, 0},
		{3, 0, true, 0, false, 0}, {10, 0, true, 1000, false, 0},
		{10, 0, false, 0, true, 0}, {10, 5, false, 0, true, 0},
		{10, 0, false, 0, false, TRACE_IO_write + 1},
		{10, 0, true, 0, false, TRACE_IO_sync + 1},
		{10, 0, false, 1000, false, TRACE_IO_read + 1}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct bench b;
		uint64_t t = 1, polled_ns = 0;
		start(&b);
		b.tick_ns = 1000;
		uint32_t fn = site(&b, "look"), sem = object(&b, TRACE_OBJECT_semaphore, "s", 0);
		uint32_t lock = object(&b, TRACE_OBJECT_mutex, "m", 0);
		uint32_t file = object(&b, TRACE_OBJECT_file, "/log", 0);
		stream(&b, process_of(&b, "prog", 0, 100));
		PUT(&b, 0, 1, process_begin, .token = 0);
		for (unsigned k = 0; k < row[i].nr; k++, t += 110) {
			if (row[i].holds)
				PUT(&b, t, 1, lock_acquire, .object = lock, .site = fn);
			if (row[i].limit) {
				PUT(&b, t, 1, token_wait, .object = sem, .n = 1, .site = fn);
				PUT(&b, t + 100, 1, lock_fail, .object = sem, .site = fn);
			} else {
				PUT(&b, t, 1, sleep_begin, .duration_ns = 90000, .site = fn);
				PUT(&b, t + 100, 1, sleep_end);
			}
			if (row[i].holds)
				PUT(&b, t + 103, 1, lock_release, .object = lock, .site = fn);
			if (row[i].leaves) {
				PUT(&b, t + 104, 1, io_begin, .object = file,
					.op = row[i].leaves - 1, .site = fn);
				PUT(&b, t + 105, 1, io_end, .object = file,
					.op = row[i].leaves - 1);
			}
			if (row[i].posts_after && k % row[i].posts_after == row[i].posts_after - 1)
				PUT(&b, t + 105, 1, token_give, .object = sem, .n = 1, .site = fn);
		}
		PUT(&b, t, 1, thread_end);
		PUT(&b, t, 1, process_end, .status = 0);
		analyse(&b);
		for (uint32_t s = 0; s < graph_nr_states(model_graph(b.model)); s++)
			polled_ns += model_state(b.model, s)->polled_ns;
		assert_int_equal(polled_ns, row[i].polled_us * 1000);
		finish(&b);
	}
}

/* A call sleeps or does not: of 100 ns of flushes 60 were without a processor. Time for which
 * others had taken the processor is no part of them. */
static void calls_tell_how_long_they_slept(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "commit"), file = object(&b, TRACE_OBJECT_file, "/db", 0);
	spawn(&b, 0, fn);
	for (uint64_t t = 100; t <= 300; t += 200) {
		PUT(&b, t, 1, io_begin, .object = file, .op = TRACE_IO_sync, .site = fn);
		PUT(&b, t + 10, 1, cpu_out, .processor = 0, .preempted = t > 100);
		PUT(&b, t + 70, 1, cpu_in, .processor = 0);
		PUT(&b, t + 80, 1, io_end, .object = file, .op = TRACE_IO_sync);
	}
	end(&b, 500);
	bool found = false;
	struct graph_lane_result l = lane(&b, 0);
	for (size_t i = 0; i < l.nr_states; i++) {
		const struct model_state *s = model_state(b.model, l.state[i].state);
		if (s->kind != MODEL_STATE_io)
			continue;
		found = true;
		assert_int_equal(s->call_ns, 80 + 20);
		assert_int_equal(s->away_ns, 60);
	}
	assert_true(found);
	finish(&b);
}

/* A library that stands in for fsync() sleeps in it first: what comes after the sleep is the call
 * again; what comes after the call's end is not. */
static void a_call_goes_on_after_what_was_called_in_it(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "commit"), file = object(&b, TRACE_OBJECT_file, "/db", 0);
	uint32_t slow = site(&b, "slow");
	spawn(&b, 0, fn);
	PUT(&b, 100, 1, io_begin, .object = file, .op = TRACE_IO_sync, .site = fn);
	PUT(&b, 100, 1, sleep_begin, .duration_ns = 200, .site = slow);
	PUT(&b, 100, 1, cpu_out, .processor = 0);
	PUT(&b, 300, 1, cpu_in, .processor = 0);
	PUT(&b, 300, 1, sleep_end);
	PUT(&b, 300, 1, cpu_out, .processor = 0);
	PUT(&b, 340, 1, cpu_in, .processor = 0);
	PUT(&b, 340, 1, io_end, .object = file, .op = TRACE_IO_sync);
	PUT(&b, 400, 1, cpu_out, .processor = 0);
	PUT(&b, 500, 1, cpu_in, .processor = 0);
	end(&b, 1000);
	double io_ns = 0, sleep_ns = 0, blocked_ns = 0;
	struct graph_lane_result l = lane(&b, 0);
	for (size_t i = 0; i < l.nr_states; i++) {
		enum model_state_kind kind = model_state(b.model, l.state[i].state)->kind;
		*(kind == MODEL_STATE_io              ? &io_ns
			: kind == MODEL_STATE_sleep   ? &sleep_ns
			: kind == MODEL_STATE_blocked ? &blocked_ns
						      : &(double){0}) += l.state[i].path_ns;
	}
	assert_float_equal(sleep_ns, 200, 1e-6);
	assert_float_equal(io_ns, 40, 1e-6);
	assert_float_equal(blocked_ns, 100, 1e-6);
	finish(&b);
}

/* A child gives up what its parent had taken before the fork: nothing is amiss. A lock that nobody
 * has taken is, and so is one that is given up twice. */
static void a_child_gives_up_what_was_held_at_the_fork(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "atfork");
	uint32_t p = process_of(&b, "parent", 0, 100), c = process_of(&b, "child", p, 101);
	uint32_t own = object(&b, TRACE_OBJECT_mutex, "of the parent", 0);
	uint32_t copy = object(&b, TRACE_OBJECT_mutex, "of the child", 0);
	stream(&b, p);
	stream(&b, c);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 5, 1, lock_release, .object = own, .site = fn); /* 1 */
	PUT(&b, 10, 1, process_fork, .token = 0, .site = fn);
	PUT(&b, 20, 2, process_begin, .token = 0);
	PUT(&b, 30, 2, lock_release, .object = copy, .site = fn);
	PUT(&b, 40, 2, lock_release, .object = copy, .site = fn); /* 2 */
	PUT(&b, 50, 2, process_end, .status = 0);
	end(&b, 100);
	assert_int_equal(model_health(b.model)->count[TRACE_DIAG_release_unmatched], 2);
	finish(&b);
}

/* Samples are taken outside the kernel only: of a call they tell nothing. */
static void a_call_has_no_functions(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "load"), file = object(&b, TRACE_OBJECT_file, "/db", 0);
	spawn(&b, 0, fn);
	PUT(&b, 100, 1, io_begin, .object = file, .op = TRACE_IO_read, .site = fn);
	PUT(&b, 120, 1, sample, .site = site(&b, "stub"));
	PUT(&b, 400, 1, io_end, .object = file, .op = TRACE_IO_read, .result = 8);
	PUT(&b, 450, 1, sample, .site = fn);
	end(&b, 500);
	unsigned nr_with = 0;
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b.model)); i++) {
		size_t nr;
		model_functions(b.model, i, &nr);
		nr_with += nr != 0;
		assert_true(!nr || model_state(b.model, i)->kind == MODEL_STATE_run);
	}
	assert_int_equal(nr_with, 1);
	finish(&b);
}

/* A robust mutex is had by whoever waits for it when the thread that holds it ends. */
static void the_end_of_a_thread_gives_up_its_mutex(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "worker");
	uint32_t lock = object(&b, TRACE_OBJECT_mutex, "robust", 0);
	spawn(&b, 2, fn);
	PUT(&b, 100, 2, lock_acquire, .object = lock, .site = fn);
	PUT(&b, 150, 3, lock_wait, .object = lock, .site = fn);
	PUT(&b, 160, 1, join_wait, .handle = 2001, .site = fn);
	PUT(&b, 500, 2, thread_end);
	PUT(&b, 504, 3, lock_acquire, .object = lock, .site = fn);
	PUT(&b, 600, 3, lock_release, .object = lock, .site = fn);
	PUT(&b, 610, 3, thread_end);
	PUT(&b, 620, 1, join_done, .handle = 2001);
	end(&b, 700);
	assert_float_equal(on_path(&b, "holding mutex robust"), 400 + 96, 1e-6);
	assert_float_equal(on_path(&b, "hand-off of mutex robust"), 4, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	assert_int_equal(model_health(b.model)->count[TRACE_DIAG_queue_underflow], 0);
	finish(&b);
}

/* To the process, then to the thread: who sent it ended the wait. */
static void a_signal_comes_from_its_sender(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "worker"), main_fn = site(&b, "main");
	spawn(&b, 1, fn);
	PUT(&b, 20, 1, poll_begin, .n = 0, .site = main_fn);
	PUT(&b, 300, 2, signal_send, .pid = 100, .number = 10, .site = fn);
	PUT(&b, 310, 1, poll_end, .result = -EINTR);
	PUT(&b, 320, 1, poll_begin, .n = 0, .site = main_fn);
	PUT(&b, 600, 2, signal_send, .handle = 1000, .number = 10, .site = fn);
	PUT(&b, 620, 1, poll_end, .result = -EINTR);
	end(&b, 700);
	assert_float_equal(on_path_of(&b, "worker", "running"), 600 - 15, 1e-6);
	assert_float_equal(on_path(&b, "waiting for a signal"), 0, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* The kernel sees the program before its first own instruction, while its libraries are loaded. */
static void the_loader_is_of_the_run(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process_of(&b, "prog", 0, 100);
	stream(&b, p);
	PUT(&b, 10, 1, cpu_in, .processor = 0);
	PUT(&b, 30, 1, cpu_out, .processor = 0, .preempted = 1);
	PUT(&b, 50, 1, cpu_in, .processor = 0);
	PUT(&b, 80, 1, process_begin, .token = 0);
	PUT(&b, 80, 1, thread_begin, .token = 0, .handle = 1000);
	PUT(&b, 100, 1, thread_end);
	PUT(&b, 100, 1, process_end, .status = 0);
	analyse(&b);
	conserved(&b, 90);
	assert_float_equal(on_path(&b, "waiting for a processor"), 20, 1e-6);
	finish(&b);
}

/* The same of a processor: others had it for long, then
 * main looks at the clock there for a moment, or stays for long: the worker was ready before. */
static void a_time_limit_takes_the_processor_by_chance(void **state)
{
	(void)state;
	for (uint64_t stays = 5000; stays <= 2005000; stays += 2000000) {
		struct bench b;
		start(&b);
		uint32_t work = site(&b, "work"), look = site(&b, "look");
		uint32_t lock = object(&b, TRACE_OBJECT_mutex, "lock", 0);
		uint32_t done = object(&b, TRACE_OBJECT_cond, "done", 0);
		uint64_t t = 1000000 + stays;
		spawn(&b, 1, work);
		PUT(&b, 40, 1, lock_acquire, .object = lock, .site = look);
		PUT(&b, 50, 1, cond_wait, .object = done, .mutex = lock, .site = look);
		PUT(&b, 51, 1, cpu_out, .processor = 0, .preempted = 0);
		PUT(&b, 60000, 2, cpu_out, .processor = 1, .preempted = 1);
		PUT(&b, 999999, 1, cpu_in, .processor = 1);
		PUT(&b, 1000000, 1, cond_wake, .object = done, .mutex = lock, .site = look,
			.result = 110);
		PUT(&b, t - 1, 1, cond_wait, .object = done, .mutex = lock, .site = look);
		PUT(&b, t, 1, cpu_out, .processor = 1, .preempted = 0);
		PUT(&b, t + 1, 2, cpu_in, .processor = 1);
		PUT(&b, 9000000, 2, cond_signal, .object = done, .site = work);
		PUT(&b, 9000001, 1, cond_wake, .object = done, .mutex = lock, .site = look,
			.result = 0);
		b.is_otherwise_in_replay = true;
		end(&b, 9000002);
		assert_float_equal(on_path(&b, "sleeping until a time limit"), 0, 1e-6);
		assert_float_equal(on_path(&b, "waiting for a processor that prog had"),
			stays == 5000 ? 0.0f : (float)(t + 1 - 60000), 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		finish(&b);
	}
}

/* Main waits, for what nobody ends, and another thread calls exit(): the run waited for that one.
 * Not if a signal ended the process. */
static void another_thread_exits(void **state)
{
	(void)state;
	for (unsigned by_signal = 0; by_signal < 2; by_signal++) {
		struct bench b;
		start(&b);
		uint32_t worker = site(&b, "worker");
		spawn(&b, 2, worker);
		PUT(&b, 100, 1, join_wait, .handle = 2000, .site = worker);
		PUT(&b, 300, 2, thread_end);
		PUT(&b, 900, 3, thread_end);
		PUT(&b, 1000, 1, process_end, .status = by_signal ? 15 : 3 << 8);
		analyse(&b);
		conserved(&b, 1000);
		assert_float_equal(
			on_path(&b, "waiting for a thread's end"), (by_signal ? 900 : 0), 1e-6);
		assert_float_equal(
			on_path(&b, "end of a thread or process"), (by_signal ? 0 : 100), 1e-6);
		assert_float_equal(unexplained(&b), (by_signal ? 900 : 0), 1e-6);
		finish(&b);
	}
}

/* A garbage collector stops main by a signal, whose handler tells it so and waits: what main waited
 * for before, it waits for afterwards. */
static void a_handler_does_not_end_a_wait(void **state)
{
	(void)state;
	for (unsigned asleep = 0; asleep < 2; asleep++) {
		struct bench b;
		start(&b);
		uint32_t worker = site(&b, "worker"),
			 stopped = object(&b, TRACE_OBJECT_semaphore, "", 0);
		spawn(&b, 1, worker);
		PUT(&b, 20, 1, cpu_in, .processor = 0);
		PUT(&b, 100, 1, join_wait, .handle = 2000, .site = worker);
		PUT(&b, 110, 1, cpu_out, .processor = 0);
		for (unsigned at = 300; at < 600; at += 200) {
			PUT(&b, at, 1, cpu_in, .processor = 0);
			PUT(&b, at + 10, 1, token_give, .object = stopped, .n = 1, .site = worker);
			PUT(&b, at + 20, 1, poll_begin, .n = 0, .site = worker);
			PUT(&b, at + 30, 1, cpu_out, .processor = 0);
			PUT(&b, at + 90, 1, cpu_in, .processor = 0);
			PUT(&b, at + 100, 1, poll_end, .result = -EINTR);
			PUT(&b, at + 110, 1, cpu_out, .processor = 0);
		}
		PUT(&b, asleep ? 900 : 615, 2, thread_end);
		PUT(&b, asleep ? 910 : 617, 1, cpu_in, .processor = 0);
		PUT(&b, asleep ? 920 : 625, 1, join_done, .handle = 2000);
		end(&b, 1000);
		assert_float_equal(on_path(&b, "blocked outside every recorded call"), 0, 1e-6);
		assert_float_equal(
			on_path(&b, "end of a thread or process"), (asleep ? 20 : 10), 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		finish(&b);
	}
}

/* Whatever waits, and whatever a handler does in the middle: the wait goes on, and who ended it did. */
enum outer { OUTER_TOKEN, OUTER_LOCK, OUTER_FUTEX, OUTER_READ, OUTER_JOIN, OUTER_SYNC, NR_OUTER };
enum inner { INNER_TAKE, INNER_WAIT, INNER_WRITE, INNER_SLEEP, INNER_LOCK, INNER_POLL, NR_INNER };

static void outer_begins(struct bench *b, enum outer outer, uint64_t at, uint32_t o, uint32_t where)
{
	switch (outer) {
	case OUTER_TOKEN:
		PUT(b, at, 1, token_wait, .object = o, .n = 1, .site = where);
		break;
	case OUTER_LOCK:
		PUT(b, at, 1, lock_wait, .object = o, .site = where);
		break;
	case OUTER_FUTEX:
		PUT(b, at, 1, cond_wait, .object = o, .site = where);
		break;
	case OUTER_READ:
	case OUTER_SYNC:
		PUT(b, at, 1, io_begin, .object = o, .n = 8, .site = where,
			.op = outer == OUTER_READ ? TRACE_IO_read : TRACE_IO_sync);
		break;
	default:
		PUT(b, at, 1, join_wait, .handle = 2000, .site = where);
	}
}

static void outer_ends(struct bench *b, enum outer outer, uint64_t at, uint32_t o, uint32_t where)
{
	switch (outer) {
	case OUTER_TOKEN:
		PUT(b, at, 2, token_give, .object = o, .n = 1, .site = where);
		PUT(b, at + 20, 1, token_take, .object = o, .n = 1, .site = where);
		break;
	case OUTER_LOCK:
		PUT(b, at, 2, lock_release, .object = o, .site = where);
		PUT(b, at + 20, 1, lock_acquire, .object = o, .site = where);
		break;
	case OUTER_FUTEX:
		PUT(b, at, 2, cond_signal, .object = o, .site = where);
		PUT(b, at + 20, 1, cond_wake, .object = o, .result = 0, .site = where);
		break;
	case OUTER_READ:
		PUT(b, at, 2, io_begin, .object = o, .op = TRACE_IO_write, .n = 8, .site = where);
		PUT(b, at + 2, 2, io_end, .object = o, .op = TRACE_IO_write, .result = 8);
		PUT(b, at + 20, 1, io_end, .object = o, .op = TRACE_IO_read, .result = 8);
		break;
	case OUTER_SYNC:
		PUT(b, at + 20, 1, io_end, .object = o, .op = TRACE_IO_sync, .result = 0);
		break;
	default:
		PUT(b, at, 2, thread_end);
		PUT(b, at + 20, 1, join_done, .handle = 2000);
	}
}

static void handler_does(struct bench *b, enum inner inner, uint64_t at, uint32_t o, uint32_t where)
{
	switch (inner) {
	case INNER_TAKE:
		PUT(b, at, 1, token_give, .object = o, .n = 1, .site = where);
		PUT(b, at + 5, 1, token_take, .object = o, .n = 1, .site = where);
		break;
	case INNER_WAIT:
		PUT(b, at, 1, token_wait, .object = o, .n = 1, .site = where);
		PUT(b, at + 5, 2, token_give, .object = o, .n = 1, .site = where);
		PUT(b, at + 10, 1, token_take, .object = o, .n = 1, .site = where);
		break;
	case INNER_WRITE:
		PUT(b, at, 1, io_begin, .object = o, .op = TRACE_IO_write, .n = 1, .site = where);
		PUT(b, at + 5, 1, io_end, .object = o, .op = TRACE_IO_write, .result = 1);
		break;
	case INNER_SLEEP:
		PUT(b, at, 1, sleep_begin, .duration_ns = 10, .site = where);
		PUT(b, at + 10, 1, sleep_end);
		break;
	case INNER_LOCK:
		PUT(b, at, 1, io_begin, .object = o, .op = TRACE_IO_write, .n = 1, .site = where);
		PUT(b, at + 2, 1, io_end, .object = o, .op = TRACE_IO_write, .result = 1);
		PUT(b, at + 4, 1, lock_acquire, .object = o + 1, .site = where);
		PUT(b, at + 8, 1, lock_release, .object = o + 1, .site = where);
		break;
	default:
		PUT(b, at, 1, poll_begin, .n = 0, .site = where);
		PUT(b, at + 10, 1, poll_end, .result = -EINTR);
	}
}

static void what_a_handler_interrupts_goes_on(void **state)
{
	(void)state;
	static const enum trace_object_type waited[] = {TRACE_OBJECT_semaphore, TRACE_OBJECT_mutex,
		TRACE_OBJECT_cond, TRACE_OBJECT_pipe, TRACE_OBJECT_file, TRACE_OBJECT_file};
	for (unsigned i = 0; i < NR_OUTER * NR_INNER; i++) {
		enum outer outer = i / NR_INNER;
		enum inner inner = i % NR_INNER;
		struct bench b;
		start(&b);
		bool io = inner == INNER_WRITE || inner == INNER_LOCK;
		uint32_t worker = site(&b, "worker"), o = object(&b, waited[outer], "o", 65536),
			 of_handler = object(
				 &b, io ? TRACE_OBJECT_file : TRACE_OBJECT_semaphore, "h", 0);
		(void)object(&b, TRACE_OBJECT_mutex, "m", 0);
		spawn(&b, 1, worker);
		if (outer == OUTER_LOCK)
			PUT(&b, 20, 2, lock_acquire, .object = o, .site = worker);
		PUT(&b, 30, 1, cpu_in, .processor = 0);
		outer_begins(&b, outer, 100, o, worker);
		PUT(&b, 110, 1, cpu_out, .processor = 0);
		for (unsigned at = 1000; at < 5000; at += 1000) {
			PUT(&b, at, 1, cpu_in, .processor = 0);
			handler_does(&b, inner, at + 10, of_handler, worker);
			PUT(&b, at + 30, 1, cpu_out, .processor = 0);
		}
		PUT(&b, 9010, 1, cpu_in, .processor = 0);
		outer_ends(&b, outer, 9000, o, worker);
		end(&b, 10000);
		assert_float_equal(on_path(&b, "blocked outside every recorded call"), 0, 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		if (outer == OUTER_SYNC)
			assert_true(on_path(&b, "fsync") > (inner == INNER_WAIT ? 4500 : 8500));
		else
			assert_true(on_path(&b, "running worker") + on_path(&b, "mutex") > 8500);
		finish(&b);
	}
}

/* A thread ticks: it sleeps for 1,000 of every 1,001, and ends after that many. */
static void tick(struct bench *b, unsigned nr_ticks, uint32_t by, uint32_t where)
{
	for (unsigned i = 0; i < nr_ticks; i++) {
		PUT(b, 100 + 1001 * i, by, sleep_begin, .duration_ns = 1000, .site = where);
		PUT(b, 1100 + 1001 * i, by, sleep_end);
	}
}

/* A thread that comes to join it in the middle of its last sleep has not waited for the ones
 * before; one that came to join it at once has, and so has one that joins a thread that slept a few
 * times only. */
static void joining_who_ticks(void **state)
{
	(void)state;
	static const struct {
		unsigned nr_ticks, join_ns;
		float asleep_ns, joining_ns;
	} run[] = {{20, 20000, 0, 130}, {20, 50, 20000, 0}, {3, 3000, 3000, 0}};
	for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
		struct bench b;
		uint64_t end_ns = 100 + 1001 * run[i].nr_ticks;
		start(&b);
		uint32_t worker = site(&b, "worker");
		spawn(&b, 1, worker);
		if (run[i].join_ns < 100)
			PUT(&b, run[i].join_ns, 1, join_wait, .handle = 2000, .site = worker);
		tick(&b, run[i].nr_ticks, 2, worker);
		if (run[i].join_ns > 100)
			PUT(&b, run[i].join_ns, 1, join_wait, .handle = 2000, .site = worker);
		PUT(&b, end_ns, 2, thread_end);
		PUT(&b, end_ns + 10, 1, join_done, .handle = 2000);
		end(&b, end_ns + 100);
		assert_float_equal((float)(on_path(&b, "sleeping") +
					   on_path(&b, "waiting for a clock's deadline")),
			run[i].asleep_ns, 20);
		assert_float_equal(
			on_path(&b, "waiting for a thread's end"), run[i].joining_ns, 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		finish(&b);
	}
}

/* One that ticks by deadlines comes late each fourth time, finds the next one passed, and goes on: who
 * joins it in the middle of the last sleep waits for the rest of that one all the same. */
static void joining_who_ticks_late(void **state)
{
	(void)state;
	enum { PERIOD = 1000000, NR = 30 };
	struct bench b;
	start(&b);
	uint32_t worker = site(&b, "worker"), joins = site(&b, "joins");
	spawn(&b, 1, worker);
	uint64_t now = 100, due = 100, join_ns = 0;
	for (unsigned i = 0; i < NR; i++) {
		bool late = i % 4 == 2;
		due += PERIOD;
		int64_t left_ns = (int64_t)(due - now);
		PUT(&b, now, 2, sleep_until, .remaining_ns = left_ns, .deadline_ns = due,
			.site = worker);
		join_ns = now + PERIOD / 2;
		if (i == NR - 1)
			PUT(&b, join_ns, 1, join_wait, .handle = 2000, .site = joins);
		now = (left_ns < 0 ? now + 21000 : due) + (late ? PERIOD + 10000 : 50);
		PUT(&b, now, 2, sleep_end);
		now += 400;
	}
	PUT(&b, now, 2, thread_end);
	PUT(&b, now + 10, 1, join_done, .handle = 2000);
	end(&b, now + 100);
	assert_true(on_path(&b, "sleeping") == 0);
	assert_true(on_path(&b, "waiting for a clock's deadline") == 0);
	assert_true(on_path(&b, "waiting for a thread's end") == (double)(now + 10 - join_ns));
	finish(&b);
}

/* A ticker takes a processor for a moment: the thread that had it waits for that moment, and not
 * for the sleep. */
static void a_ticks_processor_is_met_by_chance(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t worker = site(&b, "worker");
	spawn(&b, 1, worker);
	tick(&b, 1, 2, worker);
	PUT(&b, 1095, 1, cpu_out, .processor = 0, .preempted = 1);
	PUT(&b, 1096, 2, cpu_in, .processor = 0);
	PUT(&b, 1102, 2, sleep_begin, .duration_ns = 1000, .site = worker);
	PUT(&b, 1103, 2, cpu_out, .processor = 0);
	PUT(&b, 1104, 1, cpu_in, .processor = 0);
	b.is_otherwise_in_replay = true;
	end(&b, 1200);
	assert_float_equal(on_path(&b, "sleeping"), 0, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* A wait on a bare futex word is over when its signal is there: what follows is no part of it. */
static void a_futex_wait_ends(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t worker = site(&b, "worker"), word = object(&b, TRACE_OBJECT_futex, "", 0);
	spawn(&b, 1, worker);
	PUT(&b, 100, 2, cond_wait, .object = word, .site = worker);
	PUT(&b, 200, 1, cond_signal, .object = word, .site = worker);
	PUT(&b, 210, 2, cpu_in, .processor = 0);
	PUT(&b, 211, 2, cond_wake, .object = word, .site = worker);
	PUT(&b, 220, 1, join_wait, .handle = 2000, .site = worker);
	PUT(&b, 300, 2, cpu_out, .processor = 0, .preempted = 1);
	PUT(&b, 700, 2, cpu_in, .processor = 0);
	PUT(&b, 800, 2, thread_end);
	PUT(&b, 810, 1, join_done, .handle = 2000);
	end(&b, 1000);
	assert_float_equal(
		on_path(&b, "waiting for a processor that other programs had"), 400, 1e-6);
	assert_float_equal(on_path(&b, "hand-off of futex"), 11, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(system_waits_for_its_child),
		cmocka_unit_test(a_childs_end_interrupts),
		cmocka_unit_test(a_handler_waits_for_the_child),
		cmocka_unit_test(a_time_limit_is_met_by_chance),
		cmocka_unit_test(a_periodic_stop_is_met_by_chance),
		cmocka_unit_test(a_time_limit_waits_for_the_mutex_at_its_end),
		cmocka_unit_test(a_wait_is_broken_off_and_begun_again),
		cmocka_unit_test(a_signal_ends_a_sleep),
		cmocka_unit_test(timers_send_signals_once),
		cmocka_unit_test(naps_again_and_again_may_poll),
		cmocka_unit_test(calls_tell_how_long_they_slept),
		cmocka_unit_test(a_call_goes_on_after_what_was_called_in_it),
		cmocka_unit_test(a_child_gives_up_what_was_held_at_the_fork),
		cmocka_unit_test(a_call_has_no_functions),
		cmocka_unit_test(the_end_of_a_thread_gives_up_its_mutex),
		cmocka_unit_test(a_signal_comes_from_its_sender),
		cmocka_unit_test(a_changed_word_is_not_waited_for),
		cmocka_unit_test(the_loader_is_of_the_run),
		cmocka_unit_test(a_time_limit_takes_the_processor_by_chance),
		cmocka_unit_test(another_thread_exits),
		cmocka_unit_test(a_handler_does_not_end_a_wait),
		cmocka_unit_test(what_a_handler_interrupts_goes_on),
		cmocka_unit_test(joining_who_ticks),
		cmocka_unit_test(joining_who_ticks_late),
		cmocka_unit_test(a_ticks_processor_is_met_by_chance),
		cmocka_unit_test(a_futex_wait_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
